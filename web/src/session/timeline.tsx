// SPDX-License-Identifier: Apache-2.0
// The life of a session: a lane for each run, with its steps, nodes, waits and interruptions. A click on any moment shows the state as of
// then. Ctrl and the wheel, + and -, zoom; arrows move.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { serverNow } from '../api/clock';
import { useQuery } from '../api/query';
import type { Actions } from '../api/schema';
import { duration, plural } from '../model/format';
import { oneLine } from '../model/text';
import { scaleOf, seqAt, ticks, type Scale, type Span } from '../model/timeline_scale';
import type { TabProps } from '../pages/session';
import { Badge, Shape } from '../ui/badge';
import { Button, Empty, Failure, Loading, Note } from '../ui/parts';
import type { Tone } from '../model/status';
import './timeline.css';

type Run = Actions['session.timeline']['runs'][number];
type Item = Run['items'][number];
const TONES: Record<string, Tone> = { done: 'done', ran: 'done', answered: 'done', over: 'done', completed: 'done', failed: 'fail', unknown: 'cut', cut: 'cut', settled: 'done', interrupted: 'cut', gone: 'cut', waiting: 'wait', waits: 'wait', sleeps: 'wait', running: 'run', runs: 'run', 'ran again': 'done', cancelled: 'quiet' };
const tone = (word: string | null): Tone => TONES[word ?? ''] ?? 'quiet';
const ms = (at: string | null | undefined) => (at ? Date.parse(at) : NaN);

function busySpans(runs: Run[], now: number): Span[] {
    const spans: Span[] = [];
    for (const run of runs) {
        const items = run.items;
        for (const at of [run.started_at, run.ended_at]) if (at) spans.push({ from: ms(at), to: ms(at) });
        for (const item of items) {
            const from = ms(item.started_at), to = item.ended_at ? ms(item.ended_at) : now;
            if (Number.isNaN(from)) continue;
            if (item.type === 'wait' || item.type === 'sleep') spans.push({ from, to: from }, { from: to, to });
            else spans.push({ from, to });
        }
    }
    return spans;
}

function wholeSpan(runs: Run[], now: number): Span {
    const spans = busySpans(runs, now);
    const from = spans.reduce((least, s) => Math.min(least, s.from), Infinity);
    const to = spans.reduce((most, s) => Math.max(most, s.to), -Infinity);
    return Number.isFinite(from) ? { from, to: Math.max(to, from + 1) } : { from: now - 1000, to: now };
}

const LABEL_PX = 92;

/* Labels never lie over each other: folds and the end of the line bring them closer than their steps are. */
function spaced(scale: Scale, apart: number): (t: number) => boolean {
    let last = -1;
    return t => {
        const at = scale.at(t);
        if (last >= 0 && (at - last < apart || (at > 0.9 && at - last < apart * 1.5))) return false;
        last = at;
        return true;
    };
}

export default function Timeline({ id, live, at, pick }: TabProps) {
    const [whole, setWhole] = useState(false);
    const [from, setFrom] = useState(() => newestPart(live.lastSeq));
    const line = useQuery('session.timeline', { id, from: whole ? undefined : from, whole: whole || undefined });
    const [view, setView] = useState<Span | null>(null);
    const [folds, setFolds] = useState(true);
    const box = useRef<HTMLDivElement>(null);
    const [width_px, setWidth] = useState(800);
    const drag = useRef<{ x: number; view: Span; moved: boolean } | null>(null);
    const seen = useRef(0);
    const now = useRef(serverNow());

    useEffect(() => { if (from !== undefined && live.lastSeq > from + 2 * PART) setFrom(newestPart(live.lastSeq)); }, [live.lastSeq, from]);
    useEffect(() => {
        if (live.lastSeq === seen.current) return;
        const isFirst = seen.current === 0;
        seen.current = live.lastSeq;
        now.current = serverNow();
        if (!isFirst) {
            const timer = setTimeout(line.read, 300);
            return () => clearTimeout(timer);
        }
        return undefined;
    }, [live.lastSeq, line.read]);

    const runs = useMemo(() => line.data?.runs.filter(r => r.items.length > 0 || r.run_id) ?? [], [line.data]);
    const all = useMemo(() => wholeSpan(runs, now.current), [runs]);
    const window = view ?? all;
    const scale = useMemo(() => scaleOf(busySpans(runs, now.current), window, folds), [runs, window, folds]);
    const axis = (line.data?.axis ?? []) as [number, number][];
    const zoom = (factor: number, centre = 0.5) => {
        const middle = scale.time(centre);
        const length = Math.max(1, (window.to - window.from) * factor);
        const from = middle - (middle - window.from) * factor;
        setView(length >= all.to - all.from ? null : { from: Math.max(all.from, from), to: Math.min(all.to, from + length) });
    };
    const shift = (share: number) => {
        const by = (window.to - window.from) * share;
        const from = Math.max(all.from, Math.min(all.to - (window.to - window.from), window.from + by));
        setView({ from, to: from + (window.to - window.from) });
    };
    const keys = (e: React.KeyboardEvent) => {
        if (e.key === '+' || e.key === '=') zoom(0.5);
        else if (e.key === '-') zoom(2);
        else if (e.key === 'ArrowLeft') shift(-0.2);
        else if (e.key === 'ArrowRight') shift(0.2);
        else if (e.key === '0') setView(null);
        else return;
        e.preventDefault();
    };
    const place = (x: number) => {
        const r = box.current?.getBoundingClientRect();
        return r ? Math.max(0, Math.min(1, (x - r.left) / r.width)) : 0;
    };
    useEffect(() => {
        const element = box.current;
        const wheel = (e: WheelEvent) => {
            if (!e.ctrlKey && !e.metaKey) return;
            e.preventDefault();
            zoom(e.deltaY > 0 ? 1.25 : 0.8, place(e.clientX));
        };
        element?.addEventListener('wheel', wheel, { passive: false });
        return () => element?.removeEventListener('wheel', wheel);
    });

    useLayoutEffect(() => { setWidth(now => box.current?.clientWidth ?? now); });

    if (line.error && !line.data) return <Failure error={line.error} retry={line.read} />;
    if (!line.data) return <Loading what="Reading the timeline" />;
    if (runs.length === 0) return <Empty title="Nothing has run in it yet"><p>A run appears here as a lane, with its steps, waits and interruptions.</p></Empty>;
    const sum = line.data.summary;
    const apart = LABEL_PX / Math.max(LABEL_PX, width_px);
    const marks = ticks(scale, 6).filter(spaced(scale, apart));
    const left = (t: number) => `${scale.at(t) * 100}%`;
    const width = (a: number, b: number) => `max(4px, ${(scale.at(b) - scale.at(a)) * 100}%)`;
    return (
        <div className="col">
            <div className="row wrap small">
                <span className="dim">{[[sum.runs, 'run'], [sum.steps, 'step'], [sum.nodes, 'node'], [sum.waits, 'wait'], [sum.interruptions, 'interruption'], [sum.checkpoints, 'checkpoint']].filter(([n]) => (n as number) > 0).map(([n, w]) => plural(n as number, w as string)).join(', ')}</span>
                <span className="end row"><label className="row tiny dim"><input type="checkbox" checked={folds} onChange={e => setFolds(e.target.checked)} />fold empty time</label><Button size="small" onClick={() => zoom(0.5)} aria-label="Zoom in">+</Button><Button size="small" onClick={() => zoom(2)} aria-label="Zoom out">−</Button><Button size="small" disabled={!view} onClick={() => setView(null)}>All</Button></span>
            </div>
            {line.data.partial && <Note action={<Button size="small" busy={line.isReading} onClick={() => setWhole(true)}>Read all</Button>}>The newest part of a long log: events {line.data.first_seq} to {line.data.last_seq}.</Note>}
            <div className="card tl" role="group" aria-label="Timeline" tabIndex={0} onKeyDown={keys}>
                <div className="tl-names"><div className="tl-axis" />{runs.map(r => <RunName key={r.number} run={r} />)}</div>
                <div className="tl-box" ref={box}
                    onPointerDown={e => { drag.current = { x: e.clientX, view: window, moved: false }; }}
                    onPointerMove={e => {
                        const d = drag.current;
                        if (!d || !view || Math.abs(e.clientX - d.x) < 5) return;
                        d.moved = true;
                        const by = ((d.x - e.clientX) / (box.current?.clientWidth ?? 1)) * (d.view.to - d.view.from);
                        const from = Math.max(all.from, Math.min(all.to - (d.view.to - d.view.from), d.view.from + by));
                        setView({ from, to: from + (d.view.to - d.view.from) });
                    }}
                    onPointerUp={e => {
                        const d = drag.current;
                        drag.current = null;
                        if (d?.moved || (e.target as HTMLElement).closest('button')) return;
                        const seq = seqAt(axis, scale.time(place(e.clientX)));
                        if (seq) pick(seq);
                    }}
                    onPointerLeave={() => { drag.current = null; }}>
                    <div className="tl-axis">{marks.map(t => <span key={t} className={scale.at(t) > 0.9 ? 'tl-last' : scale.at(t) < 0.1 ? 'tl-first' : ''} style={{ left: left(t) }}>{tickText(t, marks)}</span>)}</div>
                    {scale.folds.map(f => <div key={f.from} className="tl-fold" style={{ left: left(f.from), width: width(f.from, f.to) }} title={`nothing happened for ${duration(f.to - f.from)}`}><span>{duration(f.to - f.from)}</span></div>)}
                    {runs.map(r => <Lane key={r.number} run={r} now={now.current} share={t => scale.at(t)} left={left} width={width} at={at} pick={pick} window={window} />)}
                    {at !== null && axis.length > 0 && <At axis={axis} at={at} left={left} window={window} />}
                </div>
            </div>
            <Legend />
        </div>
    );
}

function At({ axis, at, left, window }: { axis: [number, number][]; at: number; left: (t: number) => string; window: Span }) {
    let t = axis[0]?.[1] ?? 0;
    for (const [seq, when] of axis) if (seq <= at) t = when;
    if (t < window.from || t > window.to) return null;
    return <div className="tl-at" style={{ left: left(t) }} aria-hidden="true" />;
}

function RunName({ run }: { run: Run }) {
    const rows = Math.max(1, run.items.length);
    return (
        <div className="tl-name" style={{ height: rows * 24 + 34 }}>
            <b className="one-line">run {run.number}</b>{run.outcome && <Badge tone={tone(run.outcome)}>{run.outcome === 'gone' ? 'interrupted' : run.outcome}</Badge>}
            {run.kept > 0 && <span className="faint tiny one-line" title={run.kept_names.join(', ')}>{run.kept} kept, not run again</span>}
            {run.omitted_items > 0 && <span className="faint tiny">and {run.omitted_items} more</span>}
        </div>
    );
}

const PART = 8000; /* events of a long log that are read at first: what is seen comes soon */

/* Where the part begins; undefined: the log is short enough for all of it. */
function newestPart(lastSeq: number): number | undefined {
    return lastSeq > 2 * PART ? lastSeq - PART : undefined;
}

/* A time under the line: as fine as the steps between them, with the date where they are days. */
function tickText(t: number, all: number[]): string {
    const step = all.length > 1 ? Math.abs((all[1] ?? 0) - (all[0] ?? 0)) : 1000;
    const d = new Date(t);
    if (step >= 86_400_000) return d.toLocaleDateString([], { month: 'short', day: 'numeric' });
    const time = d.toLocaleTimeString('en-GB', step >= 60_000 ? { hour: '2-digit', minute: '2-digit' } : { hour: '2-digit', minute: '2-digit', second: '2-digit' });
    return step < 1000 ? `${time}.${String(d.getMilliseconds()).padStart(3, '0')}` : time;
}

/* What there is to say of an item, in words. */
function said(item: Item): string {
    const more = 'effect' in item ? item.effect : 'kind' in item ? item.kind : null;
    const found = 'found' in item ? item.found : null;
    return `${item.name}${more ? `, ${more}` : ''}: ${item.outcome}${item.ms ? `, ${duration(item.ms)}` : ''}${item.note ? `. ${item.note}` : ''}${found ? `. ${found}` : ''}`;
}

function Lane({ run, now, left, share, width, at, pick, window }: { run: Run; now: number; share: (t: number) => number; left: (t: number) => string; width: (a: number, b: number) => string; at: number | null; pick: (seq: number) => void; window: Span }) {
    const from = ms(run.started_at), to = run.ended_at ? ms(run.ended_at) : run.outcome === 'running' ? now : from;
    const items = run.items;
    return (
        <div className="tl-lane" style={{ height: Math.max(1, items.length) * 24 + 34 }}>
            {!Number.isNaN(from) && <div className={`tl-run tone-${tone(run.outcome)}`} style={{ left: left(from), width: width(from, to) }} title={run.error ?? run.reason ?? ''} />}
            {run.points.map((p, i) => {
                const t = ms(p.at);
                if (Number.isNaN(t) || t < window.from || t > window.to) return null;
                return <button key={`p${i}`} type="button" className={`tl-point tl-${p.kind}`} style={{ left: left(t) }} title={`${p.kind.replace('_', ' ')} (${p.seq})`} aria-label={`${p.kind.replace('_', ' ')}, event ${p.seq}`} onClick={() => pick(p.seq)} />;
            })}
            {items.map((item, i) => {
                const a = ms(item.started_at), b = item.ended_at ? ms(item.ended_at) : item.outcome === 'cut' ? to : now;
                if (Number.isNaN(a) || b < window.from || a > window.to) return null;
                const isParked = item.type === 'wait' || item.type === 'sleep';
                const isPicked = at !== null && item.seq != null && at >= item.seq && at <= (item.end_seq ?? item.seq);
                const text = said(item);
                return (
                    <button key={i} type="button" className={`tl-item tone-${tone(item.outcome)} ${isParked ? 'tl-parked' : ''} ${isPicked ? 'tl-picked' : ''} ${share(a) > 0.8 ? 'tl-left' : ''}`} style={{ left: left(a), width: width(a, b), top: 28 + i * 24 }} title={oneLine(text, 400)} aria-label={oneLine(text, 200)} onClick={() => { const seq = item.end_seq ?? item.seq; if (seq) pick(seq); }}>
                        <Shape tone={tone(item.outcome)} size={10} /><span>{oneLine(item.name, 60)}</span>
                    </button>
                );
            })}
        </div>
    );
}

function Legend() {
    const rows: [Tone, string][] = [['done', 'done, answered'], ['wait', 'waits'], ['fail', 'failed'], ['cut', 'interrupted, outcome unknown'], ['run', 'runs']];
    return <div className="row wrap tiny faint">{rows.map(([t, word]) => <span key={t} className="row"><span className={`tl-key tone-${t}`}><Shape tone={t} size={10} /></span>{word}</span>)}<span>A click on any moment shows the state as of then.</span></div>;
}
