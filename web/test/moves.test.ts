// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { plainResume, type Next } from '../src/model/moves';

const next = (action: string, args: object) => ({ action, session_id: 's', arguments: args, command: 'POST /x' }) as unknown as Next;

describe('a session is resumed by itself only where nothing is left to decide', () => {
    it.each([
        ['a plain resume', [next('resume', {}), next('cancel', {})], true],
        ['a look at the log comes before it', [next('show_log', {}), next('resume', {})], true],
        ['an effect of unknown outcome', [next('resume', { happened: ['pay'] }), next('resume', { retry: ['pay'] })], false],
        ['a value that is missing', [next('resume', { set: { key: null } })], false],
        ['a checkpoint to choose', [next('resume', { checkpoint: null })], false],
        ['trust comes first', [next('trust', {}), next('resume', {})], false],
        ['nothing to do', [], false],
    ])('%s', (_, all, want) => expect(plainResume(all) !== null).toBe(want));
});
