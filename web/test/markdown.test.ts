// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parseBlocks, parseInline } from '../src/model/markdown';

describe('Markdown of models', () => {
    it('tells blocks apart', () => {
        expect(parseBlocks('# Tides\n\nThey come.\nThey go.\n\n- one\n- two\n\n```js\na < b\n```\n> said').map(b => b.type)).toEqual(['heading', 'text', 'list', 'code', 'quote']);
    });
    it('reads a table', () => {
        expect(parseBlocks('a|b\n-|-\n1|2\n3|4')).toEqual([{ type: 'table', head: ['a', 'b'], rows: [['1', '2'], ['3', '4']] }]);
    });
    it('keeps a fence that is not closed as code', () => expect(parseBlocks('```\nx\ny')).toEqual([{ type: 'code', text: 'x\ny' }]));
    it('reads emphasis, code and links', () => {
        expect(parseInline('a **b *c*** `d*` [e](https://e.example/f)').map(p => p.type)).toEqual(['text', 'strong', 'text', 'code', 'text', 'link']);
    });
    it('makes no link of what is none', () => {
        for (const bad of ['[x](javascript:alert(1))', '[x](data:text/html,x)', '[x](//evil.example)'])
            expect(parseInline(bad).every(p => p.type === 'text')).toBe(true);
    });
    it('leaves HTML as text', () => expect(parseInline('<img src=x onerror=alert(1)>')).toEqual([{ type: 'text', text: '<img src=x onerror=alert(1)>' }]));
    it('leaves names with underscores alone', () => expect(parseInline('run_id and agent_id')).toEqual([{ type: 'text', text: 'run_id and agent_id' }]));
    it('is linear in hostile text', () => {
        const began = performance.now();
        for (const c of ['*', '_', '`', '[', '](', '**a', 'http', '|', '> ', '- '])
            parseBlocks(c.repeat(100_000)).forEach(b => 'text' in b && parseInline(b.text));
        expect(performance.now() - began).toBeLessThan(3000);
    });
});
