// SPDX-License-Identifier: Apache-2.0
// Graphs: check one and see it drawn before it is uploaded; those that were uploaded, drawn, compared with another version, run.
import { useEffect, useMemo, useState } from 'react';
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import type { GraphCheck } from '../api/schema';
import { may } from '../api/token';
import { partsOf } from '../model/graph_spec';
import { oneLine, visible } from '../model/text';
import { go, sessionPath, withParams, type Place } from '../place';
import { Badge } from '../ui/badge';
import { GraphPicture } from '../ui/graph_picture';
import { Age, Button, Empty, Failure, Field, JsonText, Link, Loading, Note } from '../ui/parts';
import { toast } from '../ui/toast';

const CHECK_MS = 350;

function Problems({ check }: { check: GraphCheck }) {
    if (check.problems.length === 0) return <Note tone="done">It can run: {check.nodes} nodes, {check.edges} edges.</Note>;
    return <ul className="col">{check.problems.map((p, i) => <li key={i}><Note tone={p.severity === 'problem' ? 'fail' : 'wait'}><b className="mono">{visible(p.path)}</b> {visible(p.what)}{p.hint && <span className="dim"> {visible(p.hint)}</span>}</Note></li>)}</ul>;
}

function Upload({ onDone }: { onDone: (digest: string) => void }) {
    const [text, setText] = useState('');
    const [check, setCheck] = useState<GraphCheck | null>(null);
    const [wrong, setWrong] = useState<string | null>(null);
    const doing = useDoing();
    const graph = useMemo<unknown>(() => {
        try {
            return text.trim() ? JSON.parse(text) : null;
        } catch {
            return undefined;
        }
    }, [text]);
    const parts = useMemo(() => partsOf(graph), [graph]);

    useEffect(() => {
        setCheck(null);
        setWrong(graph === undefined ? 'This is not JSON yet.' : null);
        if (!graph || typeof graph !== 'object') return;
        const stop = new AbortController();
        const timer = setTimeout(() => call('graph.check', { graph: graph as never }, { signal: stop.signal }).then(setCheck).catch((e: unknown) => { if (!stop.signal.aborted) setWrong(e instanceof Error ? e.message : String(e)); }), CHECK_MS);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [graph]);
    return (
        <div className="card pad col">
            <div className="row wrap"><h2 className="grow">Check and upload</h2><label className="button small">Open a file<input type="file" className="unseen" accept=".json,application/json" onChange={e => { const file = e.target.files?.[0]; if (file) void file.text().then(setText); }} /></label></div>
            <Field label="The graph, as JSON">{id => <textarea id={id} className="input mono" rows={8} spellCheck={false} value={text} onChange={e => setText(e.target.value)} />}</Field>
            {wrong && text.trim() && <Note tone="fail">{visible(wrong)}</Note>}
            {check && <Problems check={check} />}
            {parts.nodes.length > 0 && <GraphPicture nodes={parts.nodes.map(n => ({ ...n, word: n.type }))} edges={parts.edges} entry={parts.entry} />}
            {may('admin') ? <div className="row"><Button look="primary" disabled={!check?.ok} busy={doing.busy} onClick={() => void doing.run(async () => { const stored = await call('graph.upload', { graph: graph as never }); toast('Uploaded'); setText(''); onDone(stored.digest); })}>Upload</Button></div> : <p className="small faint">Uploading needs the scope admin.</p>}
            {doing.error ? <Failure error={doing.error} /> : null}
        </div>
    );
}

function Stored({ digest, others }: { digest: string; others: { digest: string; name: string | null }[] }) {
    const graph = useQuery('graph.get', { digest });
    const [set, setSet] = useState('');
    const [other, setOther] = useState('');
    const diff = useQuery('graph.diff', other ? { before_digest: digest, after_digest: other } : null);
    const doing = useDoing();
    const parts = useMemo(() => partsOf(graph.data), [graph.data]);
    const run = () => void doing.run(async () => {
        const made = await call('graph.run', { digest, set: (set.trim() ? JSON.parse(set) : null) as never });
        go(sessionPath(made.session_id));
    });
    if (graph.error) return <Failure error={graph.error} retry={graph.read} />;
    if (!graph.data) return <Loading what="Reading the graph" />;
    return (
        <div className="col">
            <GraphPicture nodes={parts.nodes.map(n => ({ ...n, word: n.type }))} edges={parts.edges} entry={parts.entry} />
            {may('admin') && <div className="card pad col"><Field label="Values" help='One JSON object, such as {"topic": "tides"}; empty: as the graph has them.'>{id => <textarea id={id} className="input mono" rows={2} value={set} onChange={e => setSet(e.target.value)} />}</Field><div className="row"><Button look="primary" busy={doing.busy} onClick={run}>Run it</Button></div>{doing.error ? <Failure error={doing.error} /> : null}</div>}
            {others.length > 0 && (
                <div className="card pad col">
                    <Field label="Compare with">{id => <select id={id} className="input" value={other} onChange={e => setOther(e.target.value)}><option value="">choose another version</option>{others.map(o => <option key={o.digest} value={o.digest}>{o.name} {o.digest.slice(0, 12)}</option>)}</select>}</Field>
                    {diff.error ? <Failure error={diff.error} /> : null}
                    {diff.data && (diff.data.same ? <Note>Nothing differs.</Note> : <ul className="col small">{diff.data.nodes.filter(n => n.change !== 'same').map(n => <li key={n.node} className="row"><Badge tone={n.change === 'broken' || n.change === 'removed' ? 'fail' : n.change === 'added' ? 'done' : 'wait'}>{n.change}</Badge><b className="mono">{visible(n.node)}</b><span className="dim">{visible(n.why ?? '')}</span></li>)}</ul>)}
                </div>
            )}
            <details className="small"><summary>Its JSON</summary><JsonText value={graph.data} /></details>
        </div>
    );
}

export default function Graphs({ place }: { place: Place }) {
    const list = useQuery('graph.list', {});
    const digest = place.params.get('digest');
    return (
        <>
            <div className="page-head"><h1>Graphs</h1><span className="end row"><Link className="button small plain" to="/torture">Torture report</Link></span></div>
            {list.error ? <Failure error={list.error} retry={list.read} /> : null}
            {list.data?.graphs.length === 0 && <Empty title="No graph was uploaded yet"><p>Paste one below: it is checked and drawn as you type. Graphs of files are started at Start.</p></Empty>}
            {list.data && list.data.graphs.length > 0 && (
                <ul className="card">
                    {list.data.graphs.map(g => <li key={g.digest}><button type="button" className={`log-row ${g.digest === digest ? 'log-picked' : ''}`} aria-pressed={g.digest === digest} onClick={() => go(withParams(place, { digest: g.digest === digest ? null : g.digest }))}><span className="mono faint">{g.digest.slice(0, 10)}</span><span className="faint"><Age at={g.created_at} /></span><b>{oneLine(g.name ?? '', 60)}</b><span /></button></li>)}
                </ul>
            )}
            {digest && <Stored key={digest} digest={digest} others={(list.data?.graphs ?? []).filter(g => g.digest !== digest)} />}
            <Upload onDone={d => { list.read(); go(withParams(place, { digest: d })); }} />
        </>
    );
}
