// SPDX-License-Identifier: Apache-2.0
// The raw events, however many: only those on the screen are read. With a filter the server looks for them, a piece of the log at a time.
import { memo, useCallback, useEffect, useRef, useState } from 'react';
import { call } from '../api/client';
import { errorText } from '../api/client';
import type { LogEvent } from '../api/live';
import type { TabProps } from '../pages/session';
import { count as counted } from '../model/format';
import { firstRow, heightOf, pagesFor, ROW_PX, topOf } from '../model/log_window';
import { oneLine } from '../model/text';
import { go, withParams } from '../place';
import { Button, Empty, Failure, JsonText, Time } from '../ui/parts';
import './log.css';

const PAGE = 200;
const PAGES_HELD = 40;

function summary(e: LogEvent): string {
    const { seq, ts, kind, ...rest } = e;
    void seq, ts, kind;
    return oneLine(JSON.stringify(rest).slice(1, -1), 400);
}

const Row = memo(function Row({ seq, event, isPicked, pick }: { seq: number; event: LogEvent | undefined; isPicked: boolean; pick: (seq: number) => void }) {
    return (
        <button type="button" className={`log-row ${isPicked ? 'log-picked' : ''}`} onClick={() => pick(seq)} aria-label={`Event ${seq}${event ? `, ${event.kind}` : ''}`}>
            <span className="number faint">{seq}</span>
            <span className="number faint log-ts">{event ? <Time at={event.ts} withDate={false} /> : ''}</span>
            <span className="mono log-kind">{event?.kind ?? '…'}</span>
            <span className="mono faint one-line">{event ? summary(event) : ''}</span>
        </button>
    );
});

function Whole({ id, live, at, pick }: TabProps) {
    const first_seq = live.page?.session.parent ? (live.page.session.parent.seq ?? 0) + 1 : 1;
    const count = Math.max(0, live.lastSeq - first_seq + 1);
    const box = useRef<HTMLDivElement>(null);
    const [scroll, setScroll] = useState({ top: 0, view: 600 });
    const [pages, setPages] = useState<Map<number, LogEvent[]>>(new Map());
    const [error, setError] = useState<unknown>(null);
    const asked = useRef(new Set<number>());
    const wasPlaced = useRef(false);
    const rows = Math.ceil(scroll.view / ROW_PX) + 1;
    const first = firstRow(count, scroll.top, scroll.view);

    const read = useCallback((page: number, end: number) => {
        if (asked.current.has(page)) return;
        asked.current.add(page);
        const after = first_seq - 1 + page * PAGE;
        call('session.log', { id, after, to: Math.min(after + PAGE, end), limit: PAGE })
            .then(got => setPages(held => {
                const next = new Map(held);
                const before = next.get(page) ?? [];
                next.delete(page);
                next.set(page, (got.events as unknown as LogEvent[]).map((e, i) => (before[i]?.seq === e.seq ? before[i] : e)));
                for (const old of next.keys()) {
                    if (next.size <= PAGES_HELD) break;
                    next.delete(old);
                    asked.current.delete(old);
                }
                return next;
            }))
            .catch((e: unknown) => { asked.current.delete(page); setError(e); });
    }, [id, first_seq]);

    useEffect(() => {
        for (const page of pagesFor(first, rows, count, PAGE)) {
            const held = pages.get(page);
            if (held && held.length < PAGE && page * PAGE + held.length < count) asked.current.delete(page); /* it has grown */
            read(page, live.lastSeq);
        }
    }, [first, rows, count, read, pages, live.lastSeq]);
    useEffect(() => {
        const element = box.current;
        if (!element) return;
        const seen = new ResizeObserver(() => setScroll(s => ({ ...s, view: element.clientHeight })));
        seen.observe(element);
        return () => seen.disconnect();
    }, []);
    useEffect(() => {
        const element = box.current;
        if (!element || wasPlaced.current || count === 0) return;
        wasPlaced.current = true;
        const row = at === null ? count : Math.max(0, at - first_seq - 4);
        element.scrollTop = topOf(count, row, element.clientHeight);
    }, [count, at, first_seq]);

    if (count === 0) return <Empty title="No event of its own yet" />;
    return (
        <>
            {error ? <Failure error={error} retry={() => { setError(null); asked.current.clear(); setScroll({ ...scroll }); }} /> : null}
            <div className="log card" ref={box} tabIndex={0} role="region" aria-label={`Log of ${counted(count)} events`} onScroll={e => setScroll({ top: e.currentTarget.scrollTop, view: e.currentTarget.clientHeight })}>
                <div style={{ height: heightOf(count), position: 'relative' }}>
                    <div className="log-rows" style={{ transform: `translateY(${count * ROW_PX <= heightOf(count) ? first * ROW_PX : scroll.top}px)` }}>
                        {Array.from({ length: Math.min(rows, count - first) }, (_, i) => {
                            const index = first + i, seq = first_seq + index;
                            const event = pages.get(Math.floor(index / PAGE))?.[index % PAGE];
                            return <Row key={seq} seq={seq} event={event?.seq === seq ? event : undefined} isPicked={at === seq} pick={pick} />;
                        })}
                    </div>
                </div>
            </div>
        </>
    );
}

function Filtered({ id, live, at, pick, kinds, text }: TabProps & { kinds: string; text: string }) {
    const [found, setFound] = useState<LogEvent[]>([]);
    const [looked, setLooked] = useState(0);
    const [error, setError] = useState<unknown>(null);
    const [busy, setBusy] = useState(false);
    const stop = useRef<AbortController | null>(null);

    const look = useCallback((from: number) => {
        stop.current?.abort();
        stop.current = new AbortController();
        setBusy(true);
        setError(null);
        call('session.log', { id, after: from, kinds: kinds || undefined, text: text || undefined, limit: PAGE }, { signal: stop.current.signal })
            .then(got => {
                setFound(held => (from === 0 ? [] : held).concat(got.events as unknown as LogEvent[]));
                setLooked(Math.max(got.last_seq, from));
                setBusy(false);
            })
            .catch((e: unknown) => {
                if ((e as Error).name === 'AbortError') return;
                setError(e);
                setBusy(false);
            });
    }, [id, kinds, text]);
    useEffect(() => {
        look(0);
        return () => stop.current?.abort();
    }, [look]);
    return (
        <div className="card log-found">
            {found.map(e => <Row key={e.seq} seq={e.seq} event={e} isPicked={at === e.seq} pick={pick} />)}
            {error ? <Failure error={errorText(error)} /> : null}
            <div className="row pad small dim">{counted(found.length)} found in the first {counted(looked)} of {counted(live.lastSeq)} events{looked < live.lastSeq && <Button size="small" busy={busy} onClick={() => look(looked)}>Look further</Button>}</div>
        </div>
    );
}

export default function Log(props: TabProps) {
    const { place, at, id } = props;
    const kinds = place.params.get('kinds') ?? '';
    const text = place.params.get('text') ?? '';
    const [jump, setJump] = useState('');
    const [picked, setPicked] = useState<LogEvent | null>(null);

    useEffect(() => {
        setPicked(null);
        if (at === null) return;
        call('session.log', { id, after: at - 1, to: at, limit: 1 }).then(got => setPicked((got.events[0] as unknown as LogEvent) ?? null)).catch(() => undefined);
    }, [at, id]);
    return (
        <div className="col">
            <form className="filters" onSubmit={e => { e.preventDefault(); const seq = Number(jump); if (Number.isSafeInteger(seq) && seq > 0) { props.pick(seq); } }}>
                <input className="input grow" aria-label="Kinds, separated by commas" placeholder="kinds: message.,tool.failed" defaultValue={kinds} onKeyDown={e => { if (e.key === 'Enter') { e.preventDefault(); go(withParams(place, { kinds: e.currentTarget.value.trim() || null }), 'replace'); } }} />
                <input className="input grow" aria-label="Text in events" placeholder="text in events" defaultValue={text} onKeyDown={e => { if (e.key === 'Enter') { e.preventDefault(); go(withParams(place, { text: e.currentTarget.value || null }), 'replace'); } }} />
                <input className="input narrow" inputMode="numeric" aria-label="Go to a seq" placeholder="seq" value={jump} onChange={e => setJump(e.target.value)} />
                <Button type="submit">Go</Button>
            </form>
            {kinds || text ? <Filtered key={`${kinds} ${text}`} {...props} kinds={kinds} text={text} /> : <Whole key={id} {...props} />}
            {picked && <details open className="small"><summary>Event {picked.seq}</summary><JsonText value={picked} /></details>}
        </div>
    );
}
