// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aheadOf } from '../src/api/clock';

const date = (ms: number) => new Date(ms).toUTCString();
const T = Date.parse('2026-05-01T10:00:00Z');

describe('the clock of the server', () => {
    it.each([
        ['is the same within the doubt that whole seconds leave', date(T), T - 900, T + 1100, 0],
        ['is three minutes ahead', date(T + 180_000), T + 400, T + 600, 180_000],
        ['is an hour behind', date(T - 3_600_000), T + 500, T + 500, -3_600_000],
        ['is not told by an answer that took long', date(T + 180_000), T, T + 9000, 0],
        ['is not told where there is no date', null, T, T, 0],
        ['is not told by a date that is none', 'soon', T, T, 0],
    ])('%s', (_, said, sent, received, want) => expect(aheadOf(said, sent, received)).toBe(want));
});
