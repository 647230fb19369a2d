// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { scaleOf, seqAt, ticks } from '../src/model/timeline_scale';

describe('time on a line', () => {
    it('is linear where nothing is folded', () => {
        const s = scaleOf([{ from: 0, to: 100 }], { from: 0, to: 100 });
        expect(s.at(50)).toBeCloseTo(0.5);
        expect(s.time(0.25)).toBeCloseTo(25);
        expect(s.folds).toEqual([]);
    });
    it('folds a long stretch in which nothing happens, and comes back', () => {
        const day = 86_400_000;
        const s = scaleOf([{ from: 0, to: 1000 }, { from: 3 * day, to: 3 * day + 1000 }], { from: 0, to: 3 * day + 1000 });
        expect(s.folds).toHaveLength(1);
        expect(s.at(1000)).toBeGreaterThan(0.4);
        for (const t of [0, 400, 1000, 3 * day, 3 * day + 700]) expect(Math.abs(s.time(s.at(t)) - t)).toBeLessThan(2);
        expect(ticks(s, 8).every(t => t <= 1000 || t >= 3 * day)).toBe(true);
    });
    it('never leaves the line', () => {
        const s = scaleOf([], { from: 10, to: 10 });
        expect(s.at(-5)).toBe(0);
        expect(s.at(99)).toBe(1);
    });
    it('writes a bounded number of times', () => expect(ticks(scaleOf([], { from: 0, to: 1e13 }), 8).length).toBeLessThan(25));
});

describe('the seq at a time', () => {
    const axis: [number, number][] = [[1, 100], [5, 200], [9, 200], [20, 400]];
    it('is that of the event, or between two', () => {
        expect(seqAt(axis, 100)).toBe(1);
        expect(seqAt(axis, 150)).toBe(3);
        expect(seqAt(axis, 200)).toBe(9);
        expect(seqAt(axis, 1e9)).toBe(20);
        expect(seqAt([], 5)).toBe(null);
    });
});
