// SPDX-License-Identifier: Apache-2.0
// Two states side by side: two checkpoints of a session, or two sessions, such as a fork and its parent.
import { useMemo } from 'react';
import { useQuery } from '../api/query';
import { changes, isSame } from '../model/state_diff';
import { oneLine } from '../model/text';
import { go, sessionPath, withParams, type Place } from '../place';
import { Empty, Failure, Field, Link, Loading, Note } from '../ui/parts';
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

export default function Compare({ place }: { place: Place }) {
    const p = place.params;
    const a: Side = { id: p.get('a') ?? '', at: p.get('at') ?? '' }, b: Side = { id: p.get('b') ?? '', at: p.get('bt') ?? '' };
    const left = useSide(a), right = useSide(b);
    const both = left.data && right.data ? { left: left.data, right: right.data } : null;
    const found = useMemo(() => (both ? changes({ memory: (both.left.content as { memory?: unknown }).memory, content: { ...(both.left.content as object), memory: null, spans: null }, ledger: both.left.ledger }, { memory: (both.right.content as { memory?: unknown }).memory, content: { ...(both.right.content as object), memory: null, spans: null }, ledger: both.right.ledger }) : []), [both?.left, both?.right]);
    const set = (which: 'a' | 'b', side: Side) => go(withParams(place, which === 'a' ? { a: side.id, at: side.at } : { b: side.id, bt: side.at }));
    return (
        <>
            <div className="page-head"><h1>Compare</h1></div>
            <div className="compare-picks"><Pick label="Left" side={a} onChange={s => set('a', s)} /><Pick label="Right" side={b} onChange={s => set('b', s)} /></div>
            {left.error ? <Failure error={left.error} retry={left.read} /> : null}
            {right.error ? <Failure error={right.error} retry={right.read} /> : null}
            {(!a.id || !b.id) && <Empty title="Two moments, side by side"><p>Choose two checkpoints of a session, or a fork and its parent.</p></Empty>}
            {a.id && b.id && !both && !left.error && !right.error && <Loading what="Reading both" />}
            {both && (
                <>
                    {found.length === 0 && <Note tone="done">Memory, position and ledger are the same.</Note>}
                    <table className="card compare">
                        <thead><tr><th>What</th><th><Link to={sessionPath(both.left.session_id, `?at=${both.left.seq}`)}>{both.left.session_id} at {both.left.seq}</Link></th><th><Link to={sessionPath(both.right.session_id, `?at=${both.right.seq}`)}>{both.right.session_id} at {both.right.seq}</Link></th></tr></thead>
                        <tbody>{found.map(c => <tr key={c.path}><th scope="row" className="mono">{oneLine(c.path, 120)}</th><td className={`mono ${c.before === undefined ? 'faint' : ''}`}>{c.before === undefined ? 'nothing' : oneLine(JSON.stringify(c.before), 600)}</td><td className={`mono ${isSame(c.before, c.after) ? '' : 'compare-new'}`}>{c.after === undefined ? 'nothing' : oneLine(JSON.stringify(c.after), 600)}</td></tr>)}</tbody>
                    </table>
                </>
            )}
        </>
    );
}
