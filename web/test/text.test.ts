// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { cut, oneLine, visible } from '../src/model/text';

describe('text from a log', () => {
    it('shows what would act on a terminal as signs', () => expect(visible('\u001b[31mred\u0007')).toBe('\u241b[31mred\u2407'));
    it('shows what would turn the direction', () => expect(visible('a\u202eb\u2066c')).toBe('a⟨U+202E⟩b⟨U+2066⟩c'));
    it('keeps lines, tabs and every other character', () => expect(visible('é\tüñ\n日本🌊')).toBe('é\tüñ\n日本🌊'));
    it('never cuts a character in half', () => {
        expect(cut('a🌊b', 2)).toEqual({ text: 'a', isCut: true });
        expect(cut('a🌊b', 3)).toEqual({ text: 'a🌊', isCut: true });
    });
    it('makes one line', () => expect(oneLine('a\n  b\u0000', 10)).toBe('a b␀'));
});
