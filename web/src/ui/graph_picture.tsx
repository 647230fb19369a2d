// SPDX-License-Identifier: Apache-2.0
// A graph as a picture: nodes with their states, edges with whether they were taken. Ctrl and the wheel, or the buttons, zoom; dragging moves.
import { useMemo, useRef, useState } from 'react';
import { layOut, NODE_H, NODE_W } from '../model/graph_layout';
import { oneLine } from '../model/text';
import type { Tone } from '../model/status';
import { Shape } from './badge';
import { Button } from './parts';
import './graph_picture.css';

export interface PictureNode {
    id: string;
    type: string;
    tone?: Tone;
    word?: string; /* "completed, 3 times, 1.2 s" */
}

export interface PictureEdge {
    id: string;
    from: string;
    to: string;
    label?: string;
    taken?: number;
}

export function GraphPicture({ nodes, edges, entry, picked, onPick }: { nodes: PictureNode[]; edges: PictureEdge[]; entry?: string; picked?: string | null; onPick?: (id: string) => void }) {
    const layout = useMemo(() => layOut(nodes.map(n => n.id), edges, entry), [nodes, edges, entry]);
    const [zoom, setZoom] = useState(1);
    const drag = useRef<{ x: number; y: number; left: number; top: number } | null>(null);
    const box = useRef<HTMLDivElement>(null);
    const byId = new Map(nodes.map(n => [n.id, n]));
    const edgeById = new Map(edges.map(e => [e.id, e]));
    return (
        <div className="picture card">
            <div className="picture-zoom row"><Button size="small" aria-label="Zoom in" onClick={() => setZoom(z => Math.min(2.5, z * 1.25))}>+</Button><Button size="small" aria-label="Zoom out" onClick={() => setZoom(z => Math.max(0.2, z / 1.25))}>−</Button></div>
            <div className="picture-box" ref={box} tabIndex={0} role="group" aria-label={`Graph of ${nodes.length} nodes`}
                onPointerDown={e => { const b = e.currentTarget; drag.current = { x: e.clientX, y: e.clientY, left: b.scrollLeft, top: b.scrollTop }; }}
                onPointerMove={e => { const d = drag.current; if (d && e.buttons) { e.currentTarget.scrollLeft = d.left + d.x - e.clientX; e.currentTarget.scrollTop = d.top + d.y - e.clientY; } }}
                onPointerUp={() => { drag.current = null; }}
                onWheel={e => { if (e.ctrlKey || e.metaKey) setZoom(z => Math.max(0.2, Math.min(2.5, z * (e.deltaY > 0 ? 0.9 : 1.1)))); }}>
                <svg width={layout.width * zoom} height={layout.height * zoom} viewBox={`0 0 ${layout.width} ${layout.height}`}>
                    <defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" className="picture-arrow" /></marker></defs>
                    {layout.edges.map(e => {
                        const edge = edgeById.get(e.id);
                        return <path key={e.id} d={e.path} markerEnd="url(#arrow)" className={`picture-edge ${edge?.taken ? 'picture-taken' : ''} ${e.isBack ? 'picture-back' : ''}`}><title>{`${e.from} → ${e.to}${edge?.label ? `: ${edge.label}` : ''}${edge?.taken ? `, taken ${edge.taken} times` : ''}`}</title></path>;
                    })}
                    {layout.nodes.map(n => {
                        const node = byId.get(n.id);
                        const tone = node?.tone ?? 'quiet';
                        return (
                            <g key={n.id} transform={`translate(${n.x} ${n.y})`} className={`picture-node picture-${tone} ${picked === n.id ? 'picture-picked' : ''}`} role="button" tabIndex={0} aria-label={`${n.id}, ${node?.type}${node?.word ? `, ${node.word}` : ''}`}
                                onClick={() => onPick?.(n.id)} onKeyDown={e => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); onPick?.(n.id); } }} data-node={n.id}>
                                <rect width={NODE_W} height={NODE_H} rx="9" />
                                <svg x="10" y="10" width="14" height="14" className={`tone-ink-${tone}`}><Shape tone={tone} size={14} /></svg>
                                <text x="30" y="21" className="picture-name">{oneLine(n.id, 17)}</text>
                                <text x="12" y="41" className="picture-word">{oneLine(node?.word || node?.type || '', 26)}</text>
                            </g>
                        );
                    })}
                </svg>
            </div>
        </div>
    );
}
