// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { changes } from '../src/model/state_diff';

describe('what changed between two states', () => {
    it('names what was set, changed and deleted by path', () => {
        expect(changes({ memory: { a: 1, b: 2 }, turn: 1 }, { memory: { a: 1, b: 3, c: 4 }, turn: 1 })).toEqual([
            { path: 'memory.b', before: 2, after: 3 },
            { path: 'memory.c', before: undefined, after: 4 },
        ]);
        expect(changes({ x: 1 }, {})).toEqual([{ path: 'x', before: 1, after: undefined }]);
    });
    it('says nothing where nothing changed', () => expect(changes({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([]));
    it('takes lists and deep parts as one', () => expect(changes({ a: [1] }, { a: [1, 2] })).toEqual([{ path: 'a', before: [1], after: [1, 2] }]));
});
