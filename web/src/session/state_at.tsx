// SPDX-License-Identifier: Apache-2.0
// The state as of a moment: memory, position and what changed with the event there; and what can be done from there. The server computes
// it from the log, as `tidemark state --at` does.
import { useEffect, useMemo, useRef, useState } from 'react';
import { useQuery } from '../api/query';
import { may } from '../api/token';
import type { Form } from '../model/moves';
import { entryKey } from '../model/conversation';
import { changes, type Change } from '../model/state_diff';
import { oneLine } from '../model/text';
import { Icon } from '../ui/icon';
import { Button, Failure, JsonText, Time } from '../ui/parts';
import { MoveDialog } from './moves';
import './state_at.css';

const PLAY_MS = 350;

/* What a person looks for: not which pieces of logs it was read from. */
function told(content: unknown): Record<string, unknown> {
    const { spans, ...rest } = { ...(content as Record<string, unknown> | undefined) };
    void spans;
    return rest;
}

interface Content {
    memory?: Record<string, unknown>;
    outputs?: Record<string, unknown>;
    turn?: number;
    messages?: number;
    node?: string;
    next_node?: string;
    checkpoint_id?: string;
    visits?: Record<string, number>;
    position?: { ready?: object; active?: object };
}

const names = (v: object | undefined) => Object.keys(v ?? {}).join(', ');

/* Where it stood: what a person asks first. */
function positionOf(c: Content | undefined): [string, string][] {
    const rows: [string, string | number | undefined][] = [['turn', c?.turn || undefined], ['node', c?.node], ['next node', c?.next_node], ['active', names(c?.position?.active)], ['ready', names(c?.position?.ready)], ['visits', Object.entries(c?.visits ?? {}).map(([n, v]) => `${n} ${v}`).join(', ')], ['checkpoint', c?.checkpoint_id]];
    const known = rows.filter(r => r[1] !== undefined && r[1] !== '').map(([k, v]): [string, string] => [k, String(v)]);
    return known.length ? known : [['turn', '0']];
}

const short = (v: unknown) => (v === undefined ? 'nothing' : oneLine(JSON.stringify(v), 160));

function Changes({ list }: { list: Change[] }) {
    if (list.length === 0) return <p className="faint small">This event changed nothing that is kept in the state.</p>;
    return (
        <ul className="changes">
            {list.map(c => <li key={c.path}><b className="mono">{c.path}</b>{c.before !== undefined && <del className="mono">{short(c.before)}</del>}<ins className="mono">{short(c.after)}</ins></li>)}
        </ul>
    );
}

export default function StateAt({ id, at, lastSeq, pick }: { id: string; at: number; lastSeq: number; pick: (seq: number | null) => void }) {
    const now = useQuery('session.state', { id, at: String(at) });
    const before = useQuery('session.state', at > 1 ? { id, at: String(at - 1) } : null);
    const event = useQuery('session.log', { id, after: at - 1, to: at, limit: 1, inherited: true });
    const [plays, setPlays] = useState(false);
    const [form, setForm] = useState<Form | null>(null);
    const place = useRef({ at, lastSeq });
    place.current = { at, lastSeq };

    useEffect(() => {
        if (!plays) return;
        const timer = setInterval(() => {
            if (place.current.at >= place.current.lastSeq) setPlays(false);
            else pick(place.current.at + 1);
        }, PLAY_MS);
        return () => clearInterval(timer);
    }, [plays, pick]);
    const changed = useMemo(() => (now.data ? changes(told(before.data?.content), told(now.data.content)) : []), [now.data, before.data]);
    const content = now.data?.content as Content | undefined;
    const outputs = Object.entries(content?.outputs ?? {});
    const memory = Object.entries(content?.memory ?? {});
    const said = useQuery('session.transcript', { id, before: at + 1, limit: 4 });
    const rest = content ? Object.fromEntries(Object.entries(told(content)).filter(([name]) => name !== 'memory')) : {};
    const what = event.data?.events[0] as { kind?: string; ts?: string } | undefined;
    return (
        <aside className="card state-at" aria-label={`The state as of ${at}`}>
            <header className="row">
                <h2 className="grow">As of <span className="number" data-testid="at">{at}</span></h2>
                <button type="button" className="button plain small" aria-label="Back to now" onClick={() => pick(null)}><Icon name="close" /></button>
            </header>
            <input type="range" aria-label="Position in the log" min={1} max={Math.max(lastSeq, 1)} value={at} onChange={e => pick(Number(e.target.value))} />
            <div className="row">
                <Button size="small" disabled={at <= 1} onClick={() => pick(at - 1)} aria-label="One event back">‹</Button>
                <Button size="small" disabled={at >= lastSeq} onClick={() => pick(at + 1)} aria-label="One event on">›</Button>
                <Button size="small" disabled={at >= lastSeq && !plays} onClick={() => setPlays(!plays)}>{plays ? 'Pause' : 'Play'}</Button>
                <span className="end small dim"><span className="mono">{what?.kind ?? ''}</span> <Time at={what?.ts ?? null} withDate={false} /></span>
            </div>
            {now.error ? <Failure error={now.error} retry={now.read} /> : null}
            <h3>What changed here</h3>
            <Changes list={changed} />
            <h3>Memory {memory.length > 0 && <span className="faint">{memory.length}</span>}</h3>
            {memory.length === 0 ? <p className="faint small">Empty.</p> : <dl className="memory">{memory.map(([k, v]) => <div key={k}><dt className="mono">{oneLine(k, 80)}</dt><dd className="mono">{oneLine(JSON.stringify(v), 400)}</dd></div>)}</dl>}
            <h3>Position</h3>
            <dl className="memory">{positionOf(content).map(([k, v]) => <div key={k}><dt>{k}</dt><dd className="mono">{oneLine(v, 120)}</dd></div>)}</dl>
            <h3>Outputs {outputs.length > 0 && <span className="faint">{outputs.length}</span>}</h3>
            {outputs.length === 0 ? <p className="faint small">None.</p> : <dl className="memory">{outputs.map(([k, v]) => <div key={k}><dt className="mono">{oneLine(k, 80)}</dt><dd className="mono">{oneLine(JSON.stringify(v), 400)}</dd></div>)}</dl>}
            <h3>Said and done until then</h3>
            {said.data?.entries.length === 0 ? <p className="faint small">Nothing.</p> : <ul className="changes">{said.data?.entries.slice(-4).map(e => <li key={entryKey(e)}><span className="faint">{e.seq} {e.type}{e.name ? ` ${oneLine(e.name, 40)}` : ''}</span><span className="said">{oneLine(e.text || (e.outcome ?? ''), 160)}</span></li>)}</ul>}
            <details className="small"><summary>All of it</summary><JsonText value={rest} /></details>
            <details className="small"><summary>The event</summary><JsonText value={event.data?.events[0] ?? null} /></details>
            {may('write') && <div className="row wrap"><Button size="small" onClick={() => setForm('fork')}>Fork here</Button><Button size="small" onClick={() => setForm('rollback')}>Roll back to here</Button></div>}
            {form && <MoveDialog form={form} sessionId={id} given={form === 'fork' ? { at } : { to: at }} onClose={() => setForm(null)} />}
        </aside>
    );
}
