#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the console computes by itself, without a browser: the folds of its pages (web/test).
set -u

[ -f "$TIDE_BUILD/web/dist/index.html" ] || { echo 'SKIP: this build has no console'; exit 77; }
cd "$TIDE_BUILD/web" || exit 1
node node_modules/vitest/vitest.mjs run --reporter=json --outputFile=units.json >units.log 2>&1
status=$?
node "$TIDE_SOURCE/tests/console/units.mjs" || cat units.log
exit $status
