// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { firstRow, heightOf, pagesFor, ROW_PX, topOf } from '../src/model/log_window';

describe('a log on the screen', () => {
    it('is rows of one height while that fits', () => {
        expect(heightOf(100)).toBe(100 * ROW_PX);
        expect(firstRow(100, 10 * ROW_PX, 260)).toBe(10);
        expect(firstRow(100, 1e9, 260)).toBe(90);
    });
    it('reaches every row of a million', () => {
        const view = 780;
        expect(heightOf(1_000_000)).toBeLessThan(16_000_000);
        expect(firstRow(1_000_000, 0, view)).toBe(0);
        expect(firstRow(1_000_000, heightOf(1_000_000) - view, view)).toBe(1_000_000 - 30);
        for (const row of [1, 17, 499_999, 999_000]) expect(Math.abs(firstRow(1_000_000, topOf(1_000_000, row, view), view) - row)).toBeLessThanOrEqual(1);
    });
    it('asks for the pages that are seen', () => {
        expect(pagesFor(190, 30, 1000, 200)).toEqual([0, 1]);
        expect(pagesFor(0, 30, 10, 200)).toEqual([0]);
        expect(pagesFor(0, 30, 0, 200)).toEqual([0]);
    });
});
