// SPDX-License-Identifier: Apache-2.0
// What models were asked and what it cost, over the session's life.
import { useQuery } from '../api/query';
import { cost, count } from '../model/format';
import type { TabProps } from '../pages/session';
import { Plot } from '../ui/plot';
import { Empty, Failure, Loading } from '../ui/parts';

export default function UsageView({ id, live, pick }: TabProps) {
    const series = useQuery('session.usage.series', { id, points: 200 });

    if (series.error) return <Failure error={series.error} retry={series.read} />;
    if (!series.data) return <Loading what="Reading the usage" />;
    const { total } = series.data;
    const first = series.data.points[0];
    if (!first) return <Empty title="No model was asked"><p>Tokens and cost of each call appear here.</p></Empty>;
    const zero = { ...first, seq: 1, ts: live.page?.session.created_at ?? first.ts, calls: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost: 0 };
    const points = [zero, ...series.data.points];
    const times = points.map(p => Date.parse(p.ts ?? ''));
    const figures: [string, string][] = [['calls', count(total.calls)], ['tokens in', count(total.input_tokens)], ['of these from the cache', count(total.cached_tokens)], ['tokens out', count(total.output_tokens)], ['cost', cost(total.cost)]];
    return (
        <div className="col">
            <dl className="facts">{figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd className="number">{value}</dd></div>)}</dl>
            <Plot title="Tokens, all together" times={times} onPick={i => { const p = points[i]; if (p) pick(p.seq); }} lines={[{ name: 'in', values: points.map(p => p.input_tokens), tone: 'run' }, { name: 'from the cache', values: points.map(p => p.cached_tokens), tone: 'wait' }, { name: 'out', values: points.map(p => p.output_tokens), tone: 'done' }]} format={count} />
            {total.cost > 0 && <Plot title="Cost, all together" times={times} onPick={i => { const p = points[i]; if (p) pick(p.seq); }} lines={[{ name: 'cost', values: points.map(p => p.cost), tone: 'cut' }]} format={n => `$${n.toFixed(n < 1 ? 4 : 2)}`} />}
        </div>
    );
}
