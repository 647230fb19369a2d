// SPDX-License-Identifier: Apache-2.0
// Pure: time on a line. Long stretches in which nothing happens (a wait of days) are folded to a mark, so that what happened can be seen.
export interface Span {
    from: number;
    to: number;
}

export interface Scale {
    from: number;
    to: number;
    folds: Span[];
    at(ms: number): number;   /* time to place, 0 to 1 */
    time(at: number): number; /* and back */
}

const FOLD_SHARE = 0.08; /* of all that is not folded: how much a fold takes */
const FOLD_MIN = 0.25;   /* a stretch this long, of the whole, is folded */

/* `busy`: when something happened. */
export function scaleOf(busy: Span[], window: Span, folds_wanted = true): Scale {
    const from = window.from, to = Math.max(window.to, window.from + 1);
    const sorted = busy.filter(b => b.to >= from && b.from <= to).map(b => ({ from: Math.max(b.from, from), to: Math.min(b.to, to) })).sort((a, b) => a.from - b.from);
    const folds: Span[] = [];
    let end = from;
    for (const b of sorted) {
        if (folds_wanted && b.from - end > (to - from) * FOLD_MIN) folds.push({ from: end, to: b.from });
        end = Math.max(end, b.to);
    }
    if (folds_wanted && sorted.length && to - end > (to - from) * FOLD_MIN) folds.push({ from: end, to });

    const folded = folds.reduce((sum, f) => sum + f.to - f.from, 0);
    const seen = Math.max(1, to - from - folded);
    const each = seen * FOLD_SHARE;
    const total = seen + each * folds.length;
    /* Pieces of the line: each with its time and its length. */
    const pieces: { from: number; to: number; begin: number; length: number }[] = [];
    let time = from, place = 0;
    const add = (until: number, length: number) => {
        if (until > time) pieces.push({ from: time, to: until, begin: place / total, length: length / total });
        place += length;
        time = until;
    };
    for (const f of folds) {
        add(f.from, f.from - time);
        add(f.to, each);
    }
    add(to, to - time);
    if (pieces.length === 0) pieces.push({ from, to, begin: 0, length: 1 });
    return {
        from, to, folds,
        at(ms) {
            const t = Math.max(from, Math.min(to, ms));
            const p = pieces.find(piece => t <= piece.to) ?? pieces[pieces.length - 1]!;
            return p.begin + (p.length * (t - p.from)) / Math.max(1, p.to - p.from);
        },
        time(at) {
            const p = pieces.find(piece => at <= piece.begin + piece.length) ?? pieces[pieces.length - 1]!;
            return p.from + ((at - p.begin) / Math.max(p.length, 1e-9)) * (p.to - p.from);
        },
    };
}

/* Pairs of seq and time, rising: the last seq at or before this time. */
export function seqAt(axis: [number, number][], ms: number): number | null {
    let low = 0, high = axis.length - 1;
    if (high < 0) return null;
    while (low < high) {
        const mid = (low + high + 1) >> 1;
        if ((axis[mid]?.[1] ?? 0) <= ms) low = mid;
        else high = mid - 1;
    }
    const a = axis[low]!, b = axis[low + 1];
    if (!b || b[1] <= a[1]) return a[0];
    return Math.max(a[0], Math.min(b[0], Math.round(a[0] + ((ms - a[1]) / (b[1] - a[1])) * (b[0] - a[0]))));
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000, 2_592_000_000];

/* Times to write under the line, about `n` of them. */
export function ticks(scale: Scale, n: number): number[] {
    const seen = scale.to - scale.from - scale.folds.reduce((sum, f) => sum + f.to - f.from, 0);
    const step = STEPS.find(s => seen / s <= n) ?? 2_592_000_000 * Math.ceil(seen / 2_592_000_000 / n);
    const found: number[] = [];
    const isFolded = (t: number) => scale.folds.some(f => t > f.from && t < f.to);
    let t = Math.ceil(scale.from / step) * step;
    for (let i = 0; t <= scale.to && i < 2000 && found.length < n * 3; i++, t += step) {
        const fold = scale.folds.find(f => t > f.from && t < f.to);
        if (fold) t = Math.max(t, Math.floor(fold.to / step) * step);
        if (t <= scale.to && !isFolded(t)) found.push(t);
    }
    return found;
}
