// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { withNewest, withOlder, withPiece, type Entry } from '../src/model/conversation';

const e = (seq: number, text = '', more: Partial<Entry> = {}) => ({ seq, type: 'user', text, inherited: false, ...more }) as Entry;
const seqs = (list: Entry[]) => list.map(x => x.seq).join(' ');

describe('a conversation in pages', () => {
    it('takes the newest page as it is and keeps what is older', () => {
        const next = withNewest([e(1), e(2), e(3, 'runs')], [e(3, 'done'), e(4)]);
        expect(seqs(next)).toBe('1 2 3 4');
        expect(next[2]?.text).toBe('done');
    });
    it('keeps an entry that says the same, so that it is not drawn again', () => {
        const held = [e(1), e(2), e(3, 'runs')];
        const next = withNewest(held, [e(2), e(3, 'done'), e(4)]);
        expect(next[1]).toBe(held[1]);
        expect(next[2]).not.toBe(held[2]);
    });
    it('drops what a rollback took out of the newest page', () => expect(seqs(withNewest([e(1), e(2), e(3)], [e(2), e(4)]))).toBe('1 2 4'));
    it('joins when the held end is not in the page', () => expect(seqs(withNewest([e(1), e(2)], [e(5), e(6)]))).toBe('5 6'));
    it('puts older ones before, each once', () => expect(seqs(withOlder([e(3), e(4)], [e(1), e(2), e(3)]))).toBe('1 2 3 4'));
    it('tells what a parent said from what the fork says', () => expect(withOlder([e(3)], [e(3, '', { inherited: true })])).toHaveLength(2));
});

describe('text of a running turn', () => {
    it('gathers, and begins again when the call is tried again', () => {
        let s = withPiece(null, { type: 'text', text: 'The mo' });
        s = withPiece(s, { type: 'text', text: 'on' });
        expect(s?.text).toBe('The moon');
        expect(withPiece(s, { type: 'retry', text: '503' })).toEqual({ text: '', note: '503' });
        expect(withPiece(s, { type: 'discard' })?.text).toBe('');
    });
});
