// SPDX-License-Identifier: Apache-2.0
// A report of `tidemark torture --json`, as a page. The file stays in this browser.
import { useState } from 'react';
import { count, duration, plural } from '../model/format';
import { oneLine, visible } from '../model/text';
import type { Place } from '../place';
import { Badge } from '../ui/badge';
import { Empty, JsonText, Note } from '../ui/parts';

interface Fault {
    session_id: string;
    killed: string;
    why?: string;
    key?: string;
    node?: string;
    want?: unknown;
    got?: unknown;
}

interface Report {
    right: boolean;
    file: string;
    store_kind: string;
    ms: number;
    uninterrupted_ms: number;
    nodes: number;
    appends: number;
    kills: number;
    resumes: number;
    seed: number;
    crash_points: { found: number; tried: number; reached: number; before_append: number; after_append: number; inside_node: number };
    complete_run_again: Fault[];
    once_repeated: Fault[];
    differences: Fault[];
    not_ended: Fault[];
    not_judged: Fault[];
    [member: string]: unknown;
}

const FAULTS: [keyof Report, string][] = [['once_repeated', 'happened twice although it must happen once'], ['complete_run_again', 'complete nodes that ran again'], ['differences', 'values that differ from the run without a kill'], ['not_ended', 'sessions that did not end'], ['not_judged', 'sessions that took another path after a decision']];

function Faults({ what, list }: { what: string; list: Fault[] }) {
    if (list.length === 0) return null;
    return (
        <section className="card pad col"><h2>{count(list.length)} {what}</h2>
            <ul className="col small">{list.slice(0, 200).map((f, i) => <li key={i} className="col"><span><b className="mono">{f.session_id}</b> killed {visible(f.killed)}{f.node && <>, node <span className="mono">{visible(f.node)}</span></>}{f.key && <>, key <span className="mono">{visible(f.key)}</span></>}{f.why && <>: {visible(f.why)}</>}</span>{f.want !== undefined && <span className="mono tiny faint">wanted {oneLine(JSON.stringify(f.want), 200)}, got {oneLine(JSON.stringify(f.got), 200)}</span>}</li>)}</ul>
        </section>
    );
}

function isReport(v: unknown): v is Report {
    const r = v as Report | null;
    return typeof r === 'object' && r !== null && typeof r.right === 'boolean' && typeof r.kills === 'number' && typeof r.crash_points === 'object' && FAULTS.every(([name]) => Array.isArray(r[name]));
}

export default function Torture({ place }: { place: Place }) {
    void place;
    const [report, setReport] = useState<Report | null>(null);
    const [wrong, setWrong] = useState<string | null>(null);
    const open = (text: string, name: string) => {
        try {
            const value: unknown = JSON.parse(text);
            if (!isReport(value)) throw new Error('it is JSON, but no report of tidemark torture');
            setReport(value);
            setWrong(null);
        } catch (e) {
            setReport(null);
            setWrong(`${name}: ${e instanceof Error ? e.message : String(e)}`);
        }
    };
    const places: [string, number][] = report ? [['before something was recorded', report.crash_points.before_append], ['after it', report.crash_points.after_append], ['inside a node', report.crash_points.inside_node]] : [];
    const most = Math.max(1, ...places.map(p => p[1]));
    return (
        <>
            <div className="page-head"><h1>Torture report</h1><label className="button primary end">Open a report<input type="file" className="unseen" accept=".json,application/json" onChange={e => { const file = e.target.files?.[0]; if (file) void file.text().then(text => open(text, file.name)); }} /></label></div>
            {wrong && <Note tone="fail">{visible(wrong)}</Note>}
            {!report && !wrong && <Empty title="Kill your graph everywhere, and see what happened"><p>Make a report, then open it here:</p><code>tidemark torture graph.json --json &gt; report.json</code></Empty>}
            {report && (
                <>
                    <div className="row wrap"><Badge tone={report.right ? 'done' : 'fail'}>{report.right ? 'every check passed' : 'checks failed'}</Badge><b className="mono">{visible(report.file)}</b><span className="dim">on {report.store_kind}, seed {report.seed}, {duration(report.ms)}</span></div>
                    <p>{plural(report.kills, 'kill')} at {count(report.crash_points.tried)} of {plural(report.crash_points.found, 'place')}, {plural(report.resumes, 'resume')}. The run without a kill: {plural(report.nodes, 'node')}, {plural(report.appends, 'append')}, {duration(report.uninterrupted_ms)}.</p>
                    <section className="card pad col"><h2>Where it was killed</h2>{places.map(([name, n]) => <div key={name} className="row small"><span className="grow">{name}</span><meter min={0} max={most} value={n} aria-label={name} /><b className="number">{count(n)}</b></div>)}</section>
                    {FAULTS.map(([name, what]) => <Faults key={String(name)} what={what} list={report[name] as Fault[]} />)}
                    <details className="small"><summary>All of it</summary><JsonText value={report} /></details>
                </>
            )}
        </>
    );
}
