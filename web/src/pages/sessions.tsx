// SPDX-License-Identifier: Apache-2.0
// All sessions, live: how each stands, why it does not move, and what moves it.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { call } from '../api/client';
import { useQuery } from '../api/query';
import { followAll, useAll, useIsPolled } from '../model/all';
import { joined, withFirstPage, withoutRow, withRow, type SessionRow } from '../model/session_list';
import { SessionLine } from '../session/line';
import { go, withParams, type Place } from '../place';
import { Button, Empty, Failure, Link, Loading, Note } from '../ui/parts';
import './sessions.css';

const PAGE = 100;
const LOOK = 5000; /* sessions that a filter looks at for one page: each answer comes soon, and the list goes on */
const LINE_PX = 66;
const AGAIN_MS = 400;
const LOOK_AGAIN_MS = 8000; /* for what was deleted: no stream of all sessions tells */

/* Both vocabularies: ours, that of graphs, that of task sessions. The server knows what each means. */
const STATUSES: [string, string[]][] = [
    ['Status', ['running', 'waiting', 'idle', 'interrupted', 'interrupted_startup', 'interrupted_waiting', 'damaged']],
    ['Outcome', ['completed', 'failed', 'cancelled']],
    ['As graphs say', ['active', 'paused']],
    ['As task sessions say', ['RUNNING', 'WAITING_FOR_INPUT', 'COMPLETED', 'FAILED', 'CANCELLED', 'ERROR']],
];
const KINDS = ['chat', 'program', 'graph', 'log', 'task'];
const FILTERS = ['text', 'status', 'kind', 'task_id', 'agent'] as const;

function Filters({ place }: { place: Place }) {
    const given = place.params.get('text') ?? '';
    const [text, setText] = useState(given);
    const sent = useRef(given); /* what was typed here last; another text in the address came from elsewhere */
    const set = (name: string, value: string) => go(withParams(place, { [name]: value || null }), 'replace');
    const latest = useRef(set);
    latest.current = set;

    useEffect(() => {
        if (given === sent.current) return;
        sent.current = given;
        setText(given);
    }, [given]);
    useEffect(() => {
        if (text === sent.current) return;
        const timer = setTimeout(() => {
            sent.current = text;
            latest.current('text', text);
        }, 200);
        return () => clearTimeout(timer);
    }, [text]);
    return (
        <form className="filters" role="search" onSubmit={e => e.preventDefault()}>
            <input className="input grow" type="search" aria-label="Text in title, id, task or why" placeholder="Search title, id, task, why" value={text} onChange={e => setText(e.target.value)} data-key="/" />
            <select className="input" aria-label="Status" value={place.params.get('status') ?? ''} onChange={e => set('status', e.target.value)}>
                <option value="">any status</option>
                {STATUSES.map(([group, words]) => <optgroup key={group} label={group}>{words.map(w => <option key={w} value={w}>{w}</option>)}</optgroup>)}
            </select>
            <select className="input" aria-label="Kind" value={place.params.get('kind') ?? ''} onChange={e => set('kind', e.target.value)}>
                <option value="">any kind</option>
                {KINDS.map(k => <option key={k}>{k}</option>)}
            </select>
            <input className="input narrow" aria-label="Task" placeholder="task" defaultValue={place.params.get('task_id') ?? ''} key={`t${place.params.get('task_id')}`} onKeyDown={e => { if (e.key === 'Enter') set('task_id', e.currentTarget.value.trim()); }} onBlur={e => set('task_id', e.currentTarget.value.trim())} />
            <input className="input narrow" aria-label="Agent" placeholder="agent" defaultValue={place.params.get('agent') ?? ''} key={`a${place.params.get('agent')}`} onKeyDown={e => { if (e.key === 'Enter') set('agent', e.currentTarget.value.trim()); }} onBlur={e => set('agent', e.currentTarget.value.trim())} />
        </form>
    );
}

function Lines({ rows, onEnd }: { rows: SessionRow[]; onEnd: () => void }) {
    const list = useRef<HTMLUListElement>(null);
    const lines = useWindowVirtualizer({ count: rows.length, estimateSize: () => LINE_PX, overscan: 12, scrollMargin: list.current?.offsetTop ?? 0, getItemKey: i => rows[i]?.session_id ?? i });
    const shown = lines.getVirtualItems();
    const last = shown[shown.length - 1]?.index ?? 0;

    useEffect(() => {
        if (rows.length && last >= rows.length - 20) onEnd();
    }, [last, rows.length, onEnd]);
    return (
        <ul className="lines card" ref={list} aria-label="Sessions" style={{ height: lines.getTotalSize() }}>
            {shown.map(item => {
                const row = rows[item.index];
                return row && (
                    <li key={item.key} ref={lines.measureElement} data-index={item.index} aria-setsize={rows.length} aria-posinset={item.index + 1} style={{ transform: `translateY(${item.start - lines.options.scrollMargin}px)` }}>
                        <SessionLine session={row} />
                    </li>
                );
            })}
        </ul>
    );
}

export default function Sessions({ place }: { place: Place }) {
    const filter = useMemo(() => {
        const given: Record<string, string | number> = { limit: PAGE };
        for (const name of FILTERS) {
            const value = place.params.get(name);
            if (value) given[name] = value;
        }
        return Object.keys(given).length > 1 ? { ...given, look: LOOK } : given;
    }, [place]);
    const isFiltered = Object.keys(filter).length > 1;
    const list = useQuery('session.list', filter);
    const [more, setMore] = useState<{ rows: SessionRow[]; cursor: string | null } | null>(null);
    const busy = useRef(false);
    const again = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const polled = useIsPolled();
    const shownFor = useRef<object | null>(null);

    useEffect(() => {
        if (!list.data) return;
        followAll(list.data.position ?? null);
        const { sessions, next_cursor } = list.data;
        const isNew = shownFor.current !== filter;
        shownFor.current = filter;
        setMore(held => (isNew || !held ? { rows: sessions, cursor: next_cursor } : { rows: withFirstPage(held.rows, sessions, next_cursor === null), cursor: held.rows.length > sessions.length ? held.cursor : next_cursor }));
    }, [list.data, filter]);
    useEffect(() => {
        const timer = setInterval(() => { if (!document.hidden) list.read(); }, LOOK_AGAIN_MS);
        return () => clearInterval(timer);
    }, [list.read]);
    useEffect(() => () => clearTimeout(again.current), []);
    const readSoon = () => {
        clearTimeout(again.current);
        again.current = setTimeout(list.read, AGAIN_MS);
    };
    useAll({
        onState: s => (isFiltered ? readSoon() : setMore(held => held && { ...held, rows: withRow(held.rows, s) })),
        onGone: id => setMore(held => held && { ...held, rows: withoutRow(held.rows, id) }),
        onStale: list.read,
    });
    const onEnd = useCallback(() => {
        if (!more?.cursor || busy.current) return;
        busy.current = true;
        call('session.list', { ...filter, after: more.cursor })
            .then(page => setMore(held => held && { rows: joined(held.rows, page.sessions), cursor: page.next_cursor }))
            .catch(() => undefined)
            .finally(() => { busy.current = false; });
    }, [more?.cursor, filter]);

    const isShort = more !== null && more.cursor !== null && more.rows.length < PAGE / 2;
    useEffect(() => { if (isShort) onEnd(); }, [isShort, more?.cursor, onEnd]);

    return (
        <>
            <div className="page-head"><h1>Sessions</h1>{polled && <span className="tag" title="A store of plain files has no order of all sessions to follow">read every 4 s</span>}<span className="end"><Link className="button primary" to="/start">Start a session</Link></span></div>
            <Filters place={place} />
            {list.error ? <Failure error={list.error} retry={list.read} /> : null}
            {!more && !list.error && <Loading what="Reading the sessions" />}
            {more && more.rows.length > 0 && <Lines rows={more.rows} onEnd={onEnd} />}
            {more && more.rows.length === 0 && more.cursor && <Loading what="Looking for sessions" />}
            {more && more.rows.length === 0 && !more.cursor && (isFiltered
                ? <Empty title="No session is like that"><p>Other filters may find more.</p><Button onClick={() => go('/')}>All sessions</Button></Empty>
                : <Empty title="No session yet"><p>Whatever runs under Tidemark on this store appears here by itself. Try:</p><code>tidemark exec --session hello -- sh -c 'tidemark step greet -- echo hello'</code><Note>A session is never lost: kill it anywhere, and its line here says what continues it.</Note></Empty>)}
        </>
    );
}
