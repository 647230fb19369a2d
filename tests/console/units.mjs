// SPDX-License-Identifier: Apache-2.0
// Prints what vitest reported as JSON (units.json in this directory) a line a case, as tests/lib.sh does.
import { readFileSync } from 'node:fs';

for (const file of JSON.parse(readFileSync('units.json', 'utf8')).testResults)
    for (const t of file.assertionResults) console.log(`${t.status === 'passed' ? 'ok' : 'not ok'} - ${t.fullName}`);
