// SPDX-License-Identifier: Apache-2.0
// A sentence of the server. Times in it are UTC; here they are local, and UTC is the tooltip.
import { Fragment } from 'react';
import { visible } from '../model/text';

const TIME = /(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC/g;

export function localTimes(text: string): { text: string; utc: string | null }[] {
    const parts: { text: string; utc: string | null }[] = [];
    let from = 0;
    for (const m of text.matchAll(TIME)) {
        const at = new Date(`${m[1]?.replace(' ', 'T')}Z`);
        if (Number.isNaN(at.getTime())) continue;
        parts.push({ text: text.slice(from, m.index), utc: null }, { text: at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium' }), utc: m[0] });
        from = m.index + m[0].length;
    }
    parts.push({ text: text.slice(from), utc: null });
    return parts.filter(p => p.text);
}

export function Sentence({ text }: { text: string }) {
    return <>{localTimes(visible(text)).map((p, i) => (p.utc ? <time key={i} title={p.utc}>{p.text}</time> : <Fragment key={i}>{p.text}</Fragment>))}</>;
}
