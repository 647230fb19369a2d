// SPDX-License-Identifier: Apache-2.0
// Pure: the small part of Markdown that models use, as data. Linear in its input: each line and each character is looked at a bounded
// number of times, whatever it says.
export type Block =
    | { type: 'text' | 'quote' | 'code'; text: string }
    | { type: 'heading'; level: number; text: string }
    | { type: 'list'; ordered: boolean; items: string[] }
    | { type: 'table'; head: string[]; rows: string[][] };

export type Inline =
    | { type: 'text' | 'code'; text: string }
    | { type: 'strong' | 'em'; parts: Inline[] }
    | { type: 'link'; text: string; href: string };

const LIST = /^\s{0,3}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const LINE_MAX = 4000; /* longer lines are text */

const cells = (line: string) => line.trim().replace(/^\||\|$/g, '').split('|').map(c => c.trim());
const isRule = (line: string | undefined) => !!line && line.length < LINE_MAX && /^[\s|:-]+$/.test(line) && line.includes('-') && line.includes('|');

export function parseBlocks(text: string): Block[] {
    const lines = text.split('\n');
    const blocks: Block[] = [];
    let open: string[] = [];
    const end = () => {
        if (open.length) blocks.push({ type: 'text', text: open.join('\n') });
        open = [];
    };

    for (let i = 0; i < lines.length; i++) {
        const line = lines[i] ?? '';
        const isShort = line.length < LINE_MAX;
        const fence = isShort ? /^\s{0,3}(```+|~~~+)/.exec(line)?.[1] : undefined;
        if (fence) {
            const inside: string[] = [];
            end();
            for (i++; i < lines.length && !(lines[i] ?? '').trimStart().startsWith(fence); i++) inside.push(lines[i] ?? '');
            blocks.push({ type: 'code', text: inside.join('\n') });
            continue;
        }
        const heading = isShort ? /^(#{1,6})\s+(.+?)\s*#*$/.exec(line) : null;
        if (heading) {
            end();
            blocks.push({ type: 'heading', level: heading[1]?.length ?? 1, text: heading[2] ?? '' });
            continue;
        }
        const item = isShort ? LIST.exec(line) : null;
        if (item) {
            const ordered = item[2] !== undefined;
            const last = blocks[blocks.length - 1];
            const text_of_item = item[3] ?? '';
            if (open.length === 0 && last?.type === 'list' && last.ordered === ordered) last.items.push(text_of_item);
            else {
                end();
                blocks.push({ type: 'list', ordered, items: [text_of_item] });
            }
            continue;
        }
        if (isShort && line.startsWith('>')) {
            const last = blocks[blocks.length - 1];
            const said = line.replace(/^>\s?/, '');
            if (open.length === 0 && last?.type === 'quote') last.text += `\n${said}`;
            else {
                end();
                blocks.push({ type: 'quote', text: said });
            }
            continue;
        }
        if (isShort && line.includes('|') && isRule(lines[i + 1])) {
            const rows: string[][] = [];
            end();
            for (i += 2; i < lines.length && (lines[i] ?? '').includes('|'); i++) rows.push(cells(lines[i] ?? ''));
            i--;
            blocks.push({ type: 'table', head: cells(line), rows });
            continue;
        }
        if (line.trim() === '') end();
        else open.push(line);
    }
    end();
    return blocks;
}

const isLink = (href: string) => /^https?:\/\/[^\s"'<>]+$/.test(href);
const DEPTH = 4;

export function parseInline(text: string, depth = 0): Inline[] {
    const parts: Inline[] = [];
    let from = 0;
    const plain = (to: number) => {
        if (to > from) parts.push({ type: 'text', text: text.slice(from, to) });
    };
    const closing = new Map<string, number>(); /* where a mark was looked for in vain from: not again */
    const find = (mark: string, at: number) => {
        if ((closing.get(mark) ?? Infinity) <= at) return -1;
        const found = text.indexOf(mark, at);
        if (found < 0) closing.set(mark, at);
        return found;
    };

    for (let i = 0; i < text.length; ) {
        const c = text[i];
        if (c === '`') {
            const end = find('`', i + 1);
            if (end > i + 1) {
                plain(i);
                parts.push({ type: 'code', text: text.slice(i + 1, end) });
                i = from = end + 1;
                continue;
            }
        } else if ((c === '*' || c === '_') && depth < DEPTH) {
            const mark = text[i + 1] === c ? c + c : c;
            const isInWord = c === '_' && /\w/.test(text[i - 1] ?? '');
            const end = isInWord || /\s/.test(text[i + mark.length] ?? ' ') ? -1 : find(mark, i + mark.length + 1);
            if (end > 0 && !/\s/.test(text[end - 1] ?? ' ') && !(c === '_' && /\w/.test(text[end + mark.length] ?? ''))) {
                plain(i);
                parts.push({ type: mark.length === 2 ? 'strong' : 'em', parts: parseInline(text.slice(i + mark.length, end), depth + 1) });
                i = from = end + mark.length;
                continue;
            }
        } else if (c === '[') {
            const close = find('](', i + 1);
            const end = close < 0 ? -1 : find(')', close + 2);
            const href = end < 0 ? '' : text.slice(close + 2, end);
            if (end > 0 && isLink(href) && close - i < 500) {
                plain(i);
                parts.push({ type: 'link', text: text.slice(i + 1, close), href });
                i = from = end + 1;
                continue;
            }
        } else if (c === 'h' && text.startsWith('http', i)) {
            const href = /^https?:\/\/[^\s"'<>)\]]{1,2000}/.exec(text.slice(i, i + 2010))?.[0].replace(/[.,;:!?]+$/, '');
            if (href && isLink(href)) {
                plain(i);
                parts.push({ type: 'link', text: href, href });
                i = from = i + href.length;
                continue;
            }
        }
        i++;
    }
    plain(text.length);
    return parts;
}
