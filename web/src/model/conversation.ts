// SPDX-License-Identifier: Apache-2.0
// Pure: entries of a transcript that come in pages and again, as one list; and the text of a turn that is running.
import type { Actions } from '../api/schema';
import type { Streamed } from '../api/live';

export type Entry = Actions['session.page']['entries'][number];

const key = (e: Entry) => `${e.seq} ${e.type}${e.inherited ? ' p' : ''}`;
export const entryKey = key;

/* As they are now; one that says what it said stays the same object, so that it is not drawn again. */
function kept(held: Entry[], now: Entry[]): Entry[] {
    const known = new Map(held.map(e => [key(e), e]));
    return now.map(e => {
        const before = known.get(key(e));
        return before && JSON.stringify(before) === JSON.stringify(e) ? before : e;
    });
}

/*
 * The newest page over what is held: from its first entry on, it is how things are (a call has got its result, a rollback cut something
 * off). What is older stays; so does what is newer, when an older page comes late.
 */
export function withNewest(held: Entry[], page: Entry[]): Entry[] {
    const newest = kept(held.slice(-page.length * 2), page);
    const first = newest[0];
    const last = newest[newest.length - 1];
    if (!first || !last) return held;
    const from = held.findIndex(e => key(e) === key(first));
    if (from < 0) {
        const lastHeld = held[held.length - 1];
        return lastHeld && !lastHeld.inherited && lastHeld.seq >= first.seq ? held.filter(e => e.inherited || e.seq < first.seq).concat(newest) : newest;
    }
    const behind = held.slice(from).filter(e => !e.inherited && e.seq > last.seq && !last.inherited);
    return [...held.slice(0, from), ...newest, ...behind];
}

export function withOlder(held: Entry[], older: Entry[]): Entry[] {
    const known = new Set(held.map(key));
    return [...older.filter(e => !known.has(key(e))), ...held];
}

export interface Streaming {
    text: string;
    note: string | null; /* what it does besides speaking */
}

/* A piece of a turn. Text is a preview: it is gone when the message is there, and when the call is tried again. */
export function withPiece(now: Streaming | null, piece: Streamed): Streaming | null {
    const text = typeof piece.text === 'string' ? piece.text : '';
    switch (piece.type) {
        case 'text': return { text: (now?.text ?? '') + text, note: null };
        case 'discard': return { text: '', note: now?.note ?? null };
        case 'retry': return { text: '', note: text || 'The provider failed; it is asked again.' };
        case 'tool': return { text: now?.text ?? '', note: typeof piece.tool === 'string' ? `${piece.tool} runs` : null };
        case 'tool_end': return { text: now?.text ?? '', note: null };
        default: return now;
    }
}
