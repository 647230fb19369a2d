// SPDX-License-Identifier: Apache-2.0
// Text from a log is shown as text: what would act on a terminal or turn the direction of a line is shown as a sign.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]|\u{e0000}|[\u{e0001}-\u{e007f}]/gu;

function sign(c: string): string {
    const code = c.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, '0')}\u27e9`;
}

export const visible = (text: string): string => text.replace(/\r\n/g, '\n').replace(HIDDEN, sign);

/* The first `max` characters, never half of one. */
export function cut(text: string, max: number): { text: string; isCut: boolean } {
    if (text.length <= max) return { text, isCut: false };
    const end = /[\ud800-\udbff]/.test(text[max - 1] ?? '') ? max - 1 : max;
    return { text: text.slice(0, end), isCut: true };
}

/* In one line, for rows and titles. */
export const oneLine = (text: string, max = 300): string => {
    const part = cut(visible(text.slice(0, max * 2)).replace(/\s+/g, ' ').trim(), max);
    return part.isCut ? `${part.text}…` : part.text;
};
