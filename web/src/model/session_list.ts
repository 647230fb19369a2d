// SPDX-License-Identifier: Apache-2.0
// Pure: rows of sessions and what becomes of one of them. Which rows a filter takes is the server's to say, so a filtered list is read
// again; one without a filter is changed in place.
import type { SessionPage, SessionStatus } from '../api/schema';

export type SessionRow = SessionPage['sessions'][number];

const created = (row: SessionRow) => Date.parse(row.created_at ?? '') || 0;

/* A row as it is now: in its place, or as a new one where the list by creation has it. The same list when it says nothing new. */
export function withRow(rows: SessionRow[], now: SessionStatus): SessionRow[] {
    const row = now as unknown as SessionRow;
    const at = rows.findIndex(r => r.session_id === row.session_id);
    if (at >= 0) {
        const held = rows[at];
        if (held && (held.last_seq ?? 0) > (row.last_seq ?? 0)) return rows;
        return rows.map((r, i) => (i === at ? { ...r, ...row } : r));
    }
    const before = rows.findIndex(r => created(r) < created(row));
    if (before < 0) return rows; /* older than what was read so far: it comes with a later page */
    return [...rows.slice(0, before), row, ...rows.slice(before)];
}

export const withoutRow = (rows: SessionRow[], id: string): SessionRow[] => (rows.some(r => r.session_id === id) ? rows.filter(r => r.session_id !== id) : rows);

/* Pages follow each other; a session that came meanwhile is in one of them only. */
export function joined(rows: SessionRow[], more: SessionRow[]): SessionRow[] {
    const known = new Set(rows.map(r => r.session_id));
    return [...rows, ...more.filter(r => !known.has(r.session_id))];
}

/*
 * The first page again: up to its last row the list is as the page says, so that what was deleted meanwhile is gone (no event tells of
 * that). Rows of later pages stay. `isAll`: there is no later page.
 */
export function withFirstPage(rows: SessionRow[], page: SessionRow[], isAll: boolean): SessionRow[] {
    const last = page[page.length - 1];
    if (isAll || !last) return page;
    const known = new Set(page.map(r => r.session_id));
    return [...page, ...rows.filter(r => !known.has(r.session_id) && created(r) < created(last))];
}
