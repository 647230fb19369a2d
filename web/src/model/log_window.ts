// SPDX-License-Identifier: Apache-2.0
// Pure: a log of any length as rows on the screen. The scrolled height has a bound that every browser can draw, so a row of a long log is
// found by where the scrolling stands, and near the top and the end by rows.
export const ROW_PX = 26;
const HEIGHT_MAX = 8_000_000;

export const heightOf = (count: number) => Math.min(count * ROW_PX, HEIGHT_MAX);

/* The first row on the screen, of `count`, when `top` of the height is scrolled away and `view` is seen. */
export function firstRow(count: number, top: number, view: number): number {
    const height = heightOf(count);
    const rows = Math.ceil(view / ROW_PX);
    if (count * ROW_PX <= HEIGHT_MAX) return Math.max(0, Math.min(Math.floor(top / ROW_PX), Math.max(0, count - rows)));
    const share = Math.max(0, Math.min(1, top / Math.max(1, height - view)));
    return Math.round(share * Math.max(0, count - rows));
}

/* Where to scroll so that this row is the first one. */
export function topOf(count: number, row: number, view: number): number {
    const height = heightOf(count);
    if (count * ROW_PX <= HEIGHT_MAX) return row * ROW_PX;
    const rows = Math.ceil(view / ROW_PX);
    return Math.round((row / Math.max(1, count - rows)) * Math.max(0, height - view));
}

/* The pages (of `size` rows) that the screen needs, one more on each side. */
export function pagesFor(first: number, rows: number, count: number, size: number): number[] {
    const from = Math.max(0, Math.floor(first / size));
    const to = Math.min(Math.floor(Math.max(0, count - 1) / size), Math.floor((first + rows) / size));
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
}
