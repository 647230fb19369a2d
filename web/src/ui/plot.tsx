// SPDX-License-Identifier: Apache-2.0
// Lines over time, drawn as steps, each with a dash of its own beside its colour; the numbers stand below as a table for those who cannot see them.
import { useState } from 'react';
import type { Tone } from '../model/status';
import './plot.css';

interface Line {
    name: string;
    values: number[];
    tone: Tone;
}

const W = 720, H = 180, LEFT = 4, BOTTOM = 18, TOP = 8;
const DASHES = ['', '7 4', '2 3'];

export function Plot({ title, times, lines, format, onPick }: { title: string; times: number[]; lines: Line[]; format: (n: number) => string; onPick?: (index: number) => void }) {
    const [over, setOver] = useState<number | null>(null);
    const from = times[0] ?? 0, last = Math.max(times[times.length - 1] ?? 1, from + 1);
    const to = last + (last - from) * 0.06; /* so that what came last is seen */
    const most = Math.max(1e-9, ...lines.flatMap(l => l.values));
    const x = (t: number) => LEFT + ((t - from) / (to - from)) * (W - LEFT - 4);
    const y = (v: number) => H - BOTTOM - (v / most) * (H - BOTTOM - TOP);
    const path = (l: Line) => l.values.map((v, i) => `${i ? `H${x(times[i] ?? 0).toFixed(1)}V` : `M${x(times[i] ?? 0).toFixed(1)} `}${y(v).toFixed(1)}`).join('') + `H${W - 4}`;
    const nearest = (clientX: number, box: DOMRect) => {
        const t = from + ((clientX - box.left) / box.width) * (to - from);
        return times.reduce((best, one, i) => (Math.abs(one - t) < Math.abs((times[best] ?? 0) - t) ? i : best), 0);
    };
    const shown = over ?? times.length - 1;
    return (
        <figure className="card pad plot">
            <figcaption className="row wrap"><b>{title}</b><span className="end row wrap small">{lines.map((l, i) => <span key={l.name} className="row"><svg width="22" height="8" aria-hidden="true"><path d="M0 4H22" className={`plot-line plot-${l.tone}`} strokeDasharray={DASHES[i % 3]} /></svg>{l.name} <b className="number">{format(l.values[shown] ?? 0)}</b></span>)}</span></figcaption>
            <svg viewBox={`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${lines.map(l => `${l.name} ${format(l.values[l.values.length - 1] ?? 0)}`).join(', ')}`}
                onPointerMove={e => setOver(nearest(e.clientX, e.currentTarget.getBoundingClientRect()))} onPointerLeave={() => setOver(null)} onClick={e => onPick?.(nearest(e.clientX, e.currentTarget.getBoundingClientRect()))}>
                {[0, 0.5, 1].map(share => <path key={share} d={`M0 ${y(most * share)}H${W}`} className="plot-grid" />)}
                {lines.map((l, i) => <path key={l.name} d={path(l)} className={`plot-line plot-${l.tone}`} strokeDasharray={DASHES[i % 3]} vectorEffect="non-scaling-stroke" />)}
                {over !== null && <path d={`M${x(times[over] ?? 0)} ${TOP}V${H - BOTTOM}`} className="plot-at" vectorEffect="non-scaling-stroke" />}
            </svg>
            <div className="row tiny faint"><span>{new Date(from).toLocaleString()}</span><span className="end">{new Date(last).toLocaleString()}</span></div>
        </figure>
    );
}
