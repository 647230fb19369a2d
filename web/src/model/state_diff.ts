// SPDX-License-Identifier: Apache-2.0
// Pure: what changed between two states, by path: "memory.moon". Deep enough to be read, bounded so that big states stay readable.
export interface Change {
    path: string;
    before: unknown; /* undefined: it was not there */
    after: unknown;  /* undefined: it is gone */
}

const CHANGES_MAX = 500;

const isObject = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);
export const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);

export function changes(before: unknown, after: unknown, path = '', depth = 4): Change[] {
    const found: Change[] = [];
    const walk = (a: unknown, b: unknown, at: string, left: number) => {
        if (found.length >= CHANGES_MAX || isSame(a, b)) return;
        if (isObject(a) && isObject(b) && left > 0) {
            for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) walk(a[name], b[name], at ? `${at}.${name}` : name, left - 1);
            return;
        }
        found.push({ path: at, before: a, after: b });
    };
    walk(before, after, path, depth);
    return found;
}
