// SPDX-License-Identifier: Apache-2.0
// Pure: where the nodes of a graph stand. Layers by the longest way from the entry (edges that lead back do not count), order within a
// layer by where the neighbours stand, so that few edges cross.
export interface LaidNode {
    id: string;
    x: number;
    y: number;
    layer: number;
}

export interface LaidEdge {
    id: string;
    from: string;
    to: string;
    path: string;
    isBack: boolean;
}

export interface Layout {
    nodes: LaidNode[];
    edges: LaidEdge[];
    width: number;
    height: number;
}

export const NODE_W = 168, NODE_H = 54;
const GAP_X = 36, GAP_Y = 54, PAD = 28;

interface Edge {
    id: string;
    from: string;
    to: string;
}

/* Edges that close a circle, by a walk from the entry. */
function backEdges(ids: string[], edges: Edge[], entry: string | undefined): Set<string> {
    const out = new Map<string, Edge[]>(ids.map(id => [id, []]));
    for (const e of edges) out.get(e.from)?.push(e);
    const state = new Map<string, 'open' | 'over'>();
    const back = new Set<string>();
    for (const root of [...(entry ? [entry] : []), ...ids]) {
        if (state.has(root)) continue;
        const stack: { id: string; next: number }[] = [{ id: root, next: 0 }];
        state.set(root, 'open');
        while (stack.length) {
            const top = stack[stack.length - 1]!;
            const e = out.get(top.id)?.[top.next++];
            if (!e) {
                state.set(top.id, 'over');
                stack.pop();
            } else if (state.get(e.to) === 'open') back.add(e.id);
            else if (!state.has(e.to) && out.has(e.to)) {
                state.set(e.to, 'open');
                stack.push({ id: e.to, next: 0 });
            }
        }
    }
    return back;
}

export function layOut(ids: string[], edges: Edge[], entry?: string): Layout {
    const known = new Set(ids);
    const real = edges.filter(e => known.has(e.from) && known.has(e.to));
    const back = backEdges(ids, real, entry);
    const forward = real.filter(e => !back.has(e.id) && e.from !== e.to);
    const layer = new Map(ids.map(id => [id, 0]));
    const waiting = new Map(ids.map(id => [id, 0]));
    const out = new Map<string, Edge[]>(ids.map(id => [id, []]));
    for (const e of forward) {
        waiting.set(e.to, (waiting.get(e.to) ?? 0) + 1);
        out.get(e.from)?.push(e);
    }
    const ready = ids.filter(id => waiting.get(id) === 0);
    for (let i = 0; i < ready.length; i++)
        for (const e of out.get(ready[i]!) ?? []) {
            layer.set(e.to, Math.max(layer.get(e.to) ?? 0, (layer.get(e.from) ?? 0) + 1));
            const left = (waiting.get(e.to) ?? 1) - 1;
            waiting.set(e.to, left);
            if (left === 0) ready.push(e.to);
        }

    const layers: string[][] = [];
    for (const id of ids) (layers[layer.get(id) ?? 0] ??= []).push(id);
    for (let i = 0; i < layers.length; i++) layers[i] ??= [];
    const order = new Map<string, number>();
    const number = () => layers.forEach(l => l.forEach((id, i) => order.set(id, i)));
    number();
    for (let pass = 0; pass < 6; pass++) {
        const down = pass % 2 === 0;
        for (const l of down ? layers : [...layers].reverse()) {
            const middle = (id: string) => {
                const near = forward.filter(e => (down ? e.to : e.from) === id).map(e => order.get(down ? e.from : e.to) ?? 0);
                return near.length ? near.reduce((a, b) => a + b, 0) / near.length : (order.get(id) ?? 0);
            };
            const places = new Map(l.map(id => [id, middle(id)]));
            l.sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
            l.forEach((id, i) => order.set(id, i));
        }
    }

    const widest = Math.max(1, ...layers.map(l => l.length));
    const width = PAD * 2 + widest * NODE_W + (widest - 1) * GAP_X + (back.size ? 40 : 0);
    const nodes: LaidNode[] = layers.flatMap((l, row) => {
        const used = l.length * NODE_W + (l.length - 1) * GAP_X;
        return l.map((id, i) => ({ id, layer: row, x: PAD + (width - PAD * 2 - (back.size ? 40 : 0) - used) / 2 + i * (NODE_W + GAP_X), y: PAD + row * (NODE_H + GAP_Y) }));
    });
    const at = new Map(nodes.map(n => [n.id, n]));
    const laid = real.map((e, i): LaidEdge => {
        const a = at.get(e.from)!, b = at.get(e.to)!;
        const isBack = back.has(e.id) || e.from === e.to;
        if (isBack) {
            const side = width - 14 - (i % 4) * 6;
            const ay = a.y + NODE_H / 2 + 8, by = b.y + NODE_H / 2 - 8;
            return { id: e.id, from: e.from, to: e.to, isBack, path: `M${a.x + NODE_W} ${ay}C${side + 8} ${ay} ${side + 8} ${by} ${b.x + NODE_W + 2} ${by}` };
        }
        const ax = a.x + NODE_W / 2, bx = b.x + NODE_W / 2, ay = a.y + NODE_H, by = b.y - 3, bend = Math.max(24, (by - ay) / 2);
        return { id: e.id, from: e.from, to: e.to, isBack, path: `M${ax} ${ay}C${ax} ${ay + bend} ${bx} ${by - bend} ${bx} ${by}` };
    });
    return { nodes, edges: laid, width, height: PAD * 2 + layers.length * NODE_H + (layers.length - 1) * GAP_Y };
}
