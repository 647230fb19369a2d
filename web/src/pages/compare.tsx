// SPDX-License-Identifier: Apache-2.0
// Two states side by side: two checkpoints of a session, or two sessions, such as a fork and its parent.
import { useMemo } from 'react';
import { useQuery } from '../api/query';
import { entryKey, type Entry } from '../model/conversation';
import { plural } from '../model/format';
import { changes, isSame, type Change } from '../model/state_diff';
import { oneLine } from '../model/text';
import { go, sessionPath, withParams, type Place } from '../place';
import { Button, Empty, Failure, Field, Link, Loading, Note } from '../ui/parts';
import './compare.css';

interface Side {
    id: string;
    at: string;
}

function useSide(side: Side) {
    return useQuery('session.state', side.id ? { id: side.id, at: side.at || undefined } : null);
}

function Pick({ label, side, onChange }: { label: string; side: Side; onChange: (side: Side) => void }) {
    return (
        <form className="row top" onSubmit={e => { e.preventDefault(); const f = new FormData(e.currentTarget); onChange({ id: String(f.get('id')).trim(), at: String(f.get('at')).trim() }); }}>
            <Field label={`${label}: session`}>{id => <input id={id} name="id" className="input mono" defaultValue={side.id} key={side.id} />}</Field>
            <Field label="at" help="seq or checkpoint">{id => <input id={id} name="at" className="input mono" defaultValue={side.at} key={side.at} />}</Field>
            <button type="submit" className="button compare-go">Show</button>
        </form>
    );
}

/* What both share is not repeated: from the first entry on that only one of them has. */
function ownEntries(mine: Entry[], other: Entry[]): Entry[] {
    let same = 0;
    const isSameEntry = (a: Entry | undefined, b: Entry | undefined) => a !== undefined && b !== undefined && a.seq === b.seq && a.type === b.type && a.ts === b.ts && a.text === b.text;
    while (same < mine.length && isSameEntry(mine[same], other[same])) same++;
    return mine.slice(same);
}

function Said({ side, seq, entries }: { side: string; seq: number; entries: Entry[] }) {
    return (
        <section className="card pad col" aria-label={`Said in ${side}`}>
            <h3><Link to={sessionPath(side, `?at=${seq}&tab=conversation`)}>{side}</Link></h3>
            {entries.length === 0 ? <p className="faint small">Nothing of its own.</p> : <ul className="col small">{entries.map(e => <li key={entryKey(e)}><span className="faint">{e.seq} {e.type}{e.name ? ` ${oneLine(e.name, 40)}` : ''}</span> <span className="said">{oneLine(e.text || (e.outcome ?? ''), 400)}</span></li>)}</ul>}
        </section>
    );
}

function Table({ found, heads }: { found: Change[]; heads: React.ReactNode }) {
    return (
        <table className="card compare">
            <thead><tr><th>What</th>{heads}</tr></thead>
            <tbody>{found.map(c => <tr key={c.path}><th scope="row" className="mono">{oneLine(c.path, 120)}</th><td className={`mono ${c.before === undefined ? 'faint' : ''}`}>{c.before === undefined ? 'nothing' : oneLine(JSON.stringify(c.before), 600)}</td><td className={`mono ${isSame(c.before, c.after) ? '' : 'compare-new'}`}>{c.after === undefined ? 'nothing' : oneLine(JSON.stringify(c.after), 600)}</td></tr>)}</tbody>
        </table>
    );
}

const memoryOf = (state: { content: unknown }) => (state.content as { memory?: unknown; outputs?: unknown } | null)?.memory;
const restOf = (state: { content: unknown }) => ({ ...(state.content as object), memory: null, spans: null });

export default function Compare({ place }: { place: Place }) {
    const p = place.params;
    const a: Side = { id: p.get('a') ?? '', at: p.get('at') ?? '' }, b: Side = { id: p.get('b') ?? '', at: p.get('bt') ?? '' };
    const left = useSide(a), right = useSide(b);
    const both = left.data && right.data ? { left: left.data, right: right.data } : null;
    const saidLeft = useQuery('session.transcript', both ? { id: a.id, before: both.left.seq + 1, limit: 60 } : null);
    const saidRight = useQuery('session.transcript', both ? { id: b.id, before: both.right.seq + 1, limit: 60 } : null);
    const memory = useMemo(() => (both ? changes(memoryOf(both.left), memoryOf(both.right), 'memory') : []), [both?.left, both?.right]);
    const content = useMemo(() => (both ? changes(restOf(both.left), restOf(both.right)) : []), [both?.left, both?.right]);
    const ledger = useMemo(() => (both ? changes(both.left.ledger, both.right.ledger, 'ledger') : []), [both?.left, both?.right]);
    const set = (which: 'a' | 'b', side: Side) => go(withParams(place, which === 'a' ? { a: side.id, at: side.at } : { b: side.id, bt: side.at }));
    const heads = both && <>{[both.left, both.right].map((s, i) => <th key={i}><Link to={sessionPath(s.session_id, `?at=${s.seq}`)}>{s.session_id} at {s.seq}</Link></th>)}</>;
    return (
        <>
            <div className="page-head"><h1>Compare</h1><span className="end"><Button size="small" disabled={!a.id || !b.id} onClick={() => go(withParams(place, { a: b.id, at: b.at, b: a.id, bt: a.at }))}>Swap</Button></span></div>
            <div className="compare-picks"><Pick label="Left" side={a} onChange={s => set('a', s)} /><Pick label="Right" side={b} onChange={s => set('b', s)} /></div>
            {left.error ? <Failure error={left.error} retry={left.read} /> : null}
            {right.error ? <Failure error={right.error} retry={right.read} /> : null}
            {(!a.id || !b.id) && <Empty title="Two moments, side by side"><p>Choose two checkpoints of a session, or a fork and its parent. A fork has the link at its head.</p></Empty>}
            {a.id && b.id && !both && !left.error && !right.error && <Loading what="Reading both" />}
            {both && (
                <>
                    <h2>Memory</h2>
                    {memory.length === 0 ? <Note tone="done">Their memory is the same.</Note> : <Table found={memory} heads={heads} />}
                    {saidLeft.data && saidRight.data && <><h2>Said, each by itself</h2><div className="compare-said"><Said side={a.id} seq={both.left.seq} entries={ownEntries(saidLeft.data.entries, saidRight.data.entries)} /><Said side={b.id} seq={both.right.seq} entries={ownEntries(saidRight.data.entries, saidLeft.data.entries)} /></div></>}
                    <h2>Position and outputs</h2>
                    {content.length === 0 ? <Note tone="done">They stand at the same position.</Note> : <Table found={content} heads={heads} />}
                    {ledger.length > 0 && <details className="small"><summary>What happened in the world: {plural(ledger.length, 'difference')}</summary><Table found={ledger} heads={heads} /></details>}
                </>
            )}
        </>
    );
}
