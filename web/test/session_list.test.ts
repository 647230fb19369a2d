// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { SessionStatus } from '../src/api/schema';
import { joined, withFirstPage, withoutRow, withRow, type SessionRow } from '../src/model/session_list';

const row = (id: string, minute: number, last_seq = 1, why = '') => ({ session_id: id, created_at: `2026-02-21T10:${String(minute).padStart(2, '0')}:00.000Z`, last_seq, why }) as unknown as SessionRow;
const now = (r: SessionRow) => r as unknown as SessionStatus;
const ids = (rows: SessionRow[]) => rows.map(r => r.session_id).join(' ');

describe('a list of sessions', () => {
    const list = [row('c', 3), row('b', 2, 5, 'waits'), row('a', 1)];

    it('changes a row in its place', () => {
        const next = withRow(list, now(row('b', 2, 6, 'runs')));
        expect(ids(next)).toBe('c b a');
        expect(next[1]?.why).toBe('runs');
    });
    it('keeps what is newer than a notice that comes late', () => expect(withRow(list, now(row('b', 2, 4, 'old')))).toBe(list));
    it('puts a new session where it belongs by creation', () => {
        expect(ids(withRow(list, now(row('d', 4))))).toBe('d c b a');
        expect(ids(withRow(list, now(row('x', 2))))).toBe('c b x a');
    });
    it('leaves one that is older than all to a later page', () => expect(withRow(list, now(row('z', 0)))).toBe(list));
    it('drops a deleted one, and nothing else', () => {
        expect(ids(withoutRow(list, 'b'))).toBe('c a');
        expect(withoutRow(list, 'nobody')).toBe(list);
    });
    it('drops what the first page does not have any more, and keeps later pages', () => {
        expect(ids(withFirstPage([row('d', 4), row('c', 3), row('b', 2), row('a', 1)], [row('e', 5), row('d', 4), row('b', 2)], false))).toBe('e d b a');
        expect(ids(withFirstPage(list, [row('c', 3)], true))).toBe('c');
    });
    it('joins pages without repeating a session', () => expect(ids(joined(list, [row('a', 1), row('y', 0)]))).toBe('c b a y'));
});
