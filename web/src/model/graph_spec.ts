// SPDX-License-Identifier: Apache-2.0
// Pure: the parts of a graph's JSON that a picture needs.
import type { PictureEdge, PictureNode } from '../ui/graph_picture';

interface SpecNode {
    id?: unknown;
    type?: unknown;
}
interface SpecEdge {
    id?: unknown;
    from?: unknown;
    to?: unknown;
    type?: unknown;
    when?: unknown;
}

export function partsOf(graph: unknown): { nodes: PictureNode[]; edges: PictureEdge[]; entry?: string } {
    const g = (graph ?? {}) as { nodes?: unknown; edges?: unknown; entry?: unknown };
    const nodes = (Array.isArray(g.nodes) ? (g.nodes as SpecNode[]) : []).filter(n => typeof n?.id === 'string').map(n => ({ id: String(n.id), type: typeof n.type === 'string' ? n.type : 'event_loop' }));
    const edges = (Array.isArray(g.edges) ? (g.edges as SpecEdge[]) : []).filter(e => typeof e?.from === 'string' && typeof e.to === 'string').map((e, i) => ({ id: typeof e.id === 'string' ? e.id : `${String(e.from)}>${String(e.to)}#${i}`, from: String(e.from), to: String(e.to), label: [e.type, e.when].filter(x => typeof x === 'string').join(' ') }));
    return { nodes, edges, entry: typeof g.entry === 'string' ? g.entry : nodes[0]?.id };
}
