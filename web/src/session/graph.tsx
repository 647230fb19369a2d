// SPDX-License-Identifier: Apache-2.0
// The graph of a session: the state of each node, how often and how long it ran, and the path that was taken; now, or as of a moment.
import { useEffect, useMemo, useState } from 'react';
import { useQuery } from '../api/query';
import { duration } from '../model/format';
import { partsOf } from '../model/graph_spec';
import type { Tone } from '../model/status';
import { oneLine } from '../model/text';
import type { TabProps } from '../pages/session';
import { Badge } from '../ui/badge';
import { GraphPicture } from '../ui/graph_picture';
import { Failure, JsonText, Loading, Note, Time } from '../ui/parts';

const TONES: Record<string, Tone> = { completed: 'done', failed: 'fail', active: 'run', waiting: 'wait', ready: 'quiet', interrupted: 'cut', skipped: 'quiet', none: 'quiet' };

export default function GraphView({ id, live, at, pick }: TabProps) {
    const shown = useQuery('session.graph', { id, at: at === null ? undefined : String(at) });
    const [picked, setPicked] = useState<string | null>(null);
    const { lastSeq } = live;
    const read = shown.read;

    useEffect(() => {
        if (at === null && lastSeq) read();
    }, [lastSeq, at, read]);
    const picture = useMemo(() => {
        const parts = partsOf(shown.data?.graph);
        const states = new Map((shown.data?.nodes ?? []).map(n => [n.id, n]));
        return {
            ...parts,
            nodes: parts.nodes.map(n => {
                const s = states.get(n.id);
                const facts = s && s.state !== 'none' ? [s.state, s.visits > 1 ? `${s.visits} visits` : '', (s.attempts ?? 0) > 1 ? `${s.attempts} tries` : '', s.ms ? duration(s.ms) : ''].filter(Boolean).join(', ') : '';
                return { ...n, tone: TONES[s?.state ?? 'none'] ?? ('quiet' as Tone), word: facts || n.type };
            }),
            edges: parts.edges.map((e, i) => {
                const known = shown.data?.edges.find(k => k.id === e.id) ?? shown.data?.edges.filter(k => k.from === e.from && k.to === e.to)[0] ?? shown.data?.edges[i];
                return { ...e, taken: known && known.from === e.from && known.to === e.to ? known.taken : 0 };
            }),
        };
    }, [shown.data]);

    if (shown.error && !shown.data) return <Failure error={shown.error} retry={shown.read} />;
    if (!shown.data) return <Loading what="Reading the graph" />;
    const node = shown.data.nodes.find(n => n.id === picked);
    const spec = ((shown.data.graph as { nodes?: { id: string }[] } | null)?.nodes ?? []).find(n => n.id === picked);
    return (
        <div className="col">
            {at !== null && <Note>As of event {at}.</Note>}
            {shown.data.partial && <Note>Of a long log: times, errors and the path are of the newest 20,000 events.</Note>}
            <GraphPicture nodes={picture.nodes} edges={picture.edges} entry={picture.entry} picked={picked} onPick={n => setPicked(n === picked ? null : n)} />
            {node && (
                <div className="card pad col">
                    <div className="row wrap"><h3 className="mono">{node.id}</h3><Badge tone={TONES[node.state] ?? 'quiet'}>{node.state}</Badge>{node.seq ? <button type="button" className="button small" onClick={() => pick(node.seq as number)}>As of {node.seq}</button> : null}</div>
                    {node.error && <Note tone="fail">{oneLine(node.error, 600)}</Note>}
                    <p className="small dim">{node.visits} visits, {node.attempts} tries{node.ms ? `, ${duration(node.ms)}` : ''}</p>
                    <details className="small"><summary>Its definition</summary><JsonText value={spec} /></details>
                </div>
            )}
            <details className="small" open={shown.data.path.length < 40}>
                <summary>The path: {shown.data.path.length} nodes</summary>
                <ol className="row wrap">{shown.data.path.map((p, i) => <li key={i}><button type="button" className="button plain small mono" onClick={() => pick(p.seq)}>{oneLine(p.node, 40)}{p.visit > 1 ? ` ${p.visit}` : ''}</button><span className="faint tiny"><Time at={p.ts} withDate={false} /></span></li>)}</ol>
            </details>
        </div>
    );
}
