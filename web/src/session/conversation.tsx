// SPDX-License-Identifier: Apache-2.0
// The conversation: what was said, what tools did (folded), where it was cut, rolled back or forked, what is said right now, and the
// question that waits. Only what is on the screen is drawn.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useLayoutEffect, useRef } from 'react';
import type { TabProps } from '../pages/session';
import { entryKey, type Entry } from '../model/conversation';
import { oneLine, visible } from '../model/text';
import { Badge } from '../ui/badge';
import { Button, Empty, JsonText, Time } from '../ui/parts';
import type { Tone } from '../model/status';
import { AnswerForm } from './answer_form';
import { Markdown, Plain } from './markdown';
import './conversation.css';

const TONES: Record<string, Tone> = { ok: 'done', failed: 'fail', unknown: 'cut', no_result: 'cut', interrupted: 'cut', cancelled: 'quiet', started: 'run', continued: 'run' };
const WORDS: Record<string, string> = { ok: 'done', unknown: 'outcome unknown', no_result: 'no result' };

function Note({ entry, children }: { entry: Entry; children: React.ReactNode }) {
    return <div className="said-note"><span className="grow">{children}</span><Time at={entry.ts} withDate={false} /></div>;
}

function Tool({ entry }: { entry: Entry }) {
    const outcome = entry.outcome ?? '';
    const args = entry.args as Record<string, unknown> | null | undefined;
    const line = args ? oneLine(typeof args.command === 'string' ? args.command : typeof args.path === 'string' ? args.path : JSON.stringify(args), 140) : '';
    return (
        <details className="tool">
            <summary><span className="mono tool-name">{oneLine(entry.name ?? 'tool', 60)}</span><span className="mono faint one-line grow">{line}</span>{outcome && <Badge tone={TONES[outcome] ?? 'quiet'}>{WORDS[outcome] ?? outcome}</Badge>}</summary>
            <div className="col tool-body">{args && <JsonText value={args} />}{entry.text ? <Plain text={entry.text} mono /> : <span className="faint small">It printed nothing.</span>}</div>
        </details>
    );
}

function Body({ entry }: { entry: Entry }) {
    const text = entry.text ?? '';
    switch (entry.type) {
        case 'user': return <div className="bubble-user"><Plain text={text} /></div>;
        case 'assistant': return <div className="bubble-model"><Markdown text={text} /></div>;
        case 'tool': return <Tool entry={entry} />;
        case 'node': return <Note entry={entry}>Node <b className="mono">{visible(entry.name ?? '')}</b> {WORDS[entry.outcome ?? ''] ?? entry.outcome}{text && <>: {oneLine(text, 400)}</>}</Note>;
        case 'question': return <Note entry={entry}>It asks: {visible(text)}</Note>;
        case 'answer': return <Note entry={entry}>{entry.by ? visible(entry.by) : 'Somebody'} answered: <b>{visible(text)}</b></Note>;
        case 'rollback': return <Note entry={entry}>Rolled back to {entry.to_seq}{text && <>: {visible(text)}</>}</Note>;
        case 'fork': return <Note entry={entry}>It begins as a fork of {visible(entry.name ?? '')} at {entry.to_seq}. What stands above is shared.</Note>;
        case 'forked': return <Note entry={entry}>{visible(entry.name ?? '')} was forked off here.</Note>;
        default: return <Note entry={entry}>The run {WORDS[entry.outcome ?? ''] ?? entry.outcome}{text && <>: {visible(text)}</>}</Note>;
    }
}

const EntryView = memo(function EntryView({ entry, isPicked, isLater, pick }: { entry: Entry; isPicked: boolean; isLater: boolean; pick: (seq: number) => void }) {
    return (
        <div className={`entry ${entry.rolled_back ? 'entry-cut' : ''} ${isPicked ? 'entry-picked' : ''} ${isLater ? 'entry-later' : ''}`} title={isLater ? 'not there yet at the moment that is shown' : undefined}>
            <button type="button" className="entry-seq number" title="The state as of here" aria-label={`The state as of ${entry.seq}`} disabled={entry.inherited} onClick={() => pick(entry.seq)}>{entry.seq}</button>
            <div className="grow">{entry.node && entry.type !== 'node' && <span className="tag mono">{oneLine(entry.node, 40)}</span>}<Body entry={entry} /></div>
        </div>
    );
});

export function Conversation({ live, at, pick, id }: TabProps) {
    const list = useRef<HTMLDivElement>(null);
    const atEnd = useRef(true);
    const { entries, streaming, page } = live;
    const rows = useWindowVirtualizer({ count: entries.length, estimateSize: () => 72, overscan: 8, scrollMargin: list.current?.offsetTop ?? 0, getItemKey: i => { const e = entries[i]; return e ? entryKey(e) : i; } });
    const shown = rows.getVirtualItems();
    const last = entries[entries.length - 1];
    const end = last ? entryKey(last) : '';

    useEffect(() => {
        const look = () => { atEnd.current = innerHeight + scrollY >= document.documentElement.scrollHeight - 160; };
        addEventListener('scroll', look, { passive: true });
        return () => removeEventListener('scroll', look);
    }, []);
    useLayoutEffect(() => {
        if (atEnd.current && at === null) scrollTo({ top: document.documentElement.scrollHeight });
    }, [end, streaming?.text, rows.getTotalSize(), at]);

    return (
        <div className="conversation">
            {live.hasOlder && <div className="row"><Button size="small" onClick={live.readOlder}>Earlier</Button></div>}
            {entries.length === 0 && !streaming && <Empty title="Nothing was said yet">{page?.session.kind === 'log' && <p>Events that an application appends are in the log.</p>}</Empty>}
            <div ref={list} className="entries" style={{ height: rows.getTotalSize() }}>
                {shown.map(item => {
                    const entry = entries[item.index];
                    return entry && (
                        <div key={item.key} ref={rows.measureElement} data-index={item.index} className="entry-place" style={{ transform: `translateY(${item.start - rows.options.scrollMargin}px)` }}>
                            <EntryView entry={entry} isPicked={at === entry.seq} isLater={at !== null && !entry.inherited && entry.seq > at} pick={pick} />
                        </div>
                    );
                })}
            </div>
            {streaming && (streaming.text || streaming.note) && (
                <div className="entry" data-testid="streaming" aria-live="off"><span className="entry-seq"><span className="spinner" aria-label="It is speaking" /></span><div className="grow bubble-model">{streaming.text && <Markdown text={streaming.text} />}{streaming.note && <p className="faint small">{visible(streaming.note)}</p>}</div></div>
            )}
            {page?.question && <div className="card pad question-card"><AnswerForm key={`${page.session.last_seq}`} sessionId={id} question={page.question} onDone={live.read} /></div>}
        </div>
    );
}
