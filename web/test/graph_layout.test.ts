// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { layOut, NODE_H, NODE_W } from '../src/model/graph_layout';

const edges = (text: string) => text.split(' ').filter(Boolean).map((t, i) => ({ id: `e${i}`, from: t[0]!, to: t[1]! }));

describe('where nodes stand', () => {
    it('puts each below what it follows', () => {
        const l = layOut(['a', 'b', 'c', 'd'], edges('ab ac bd cd ad'), 'a');
        const layer = Object.fromEntries(l.nodes.map(n => [n.id, n.layer]));
        expect(layer).toEqual({ a: 0, b: 1, c: 1, d: 2 });
    });
    it('takes circles, edges to itself and to nobody', () => {
        const l = layOut(['a', 'b', 'c'], edges('ab bc ca bb ax'), 'a');
        expect(l.edges.filter(e => e.isBack).map(e => e.from + e.to).sort()).toEqual(['bb', 'ca']);
        expect(l.edges).toHaveLength(4);
    });
    it('never puts two nodes on each other', () => {
        const ids = Array.from({ length: 60 }, (_, i) => `n${i}`);
        const l = layOut(ids, ids.slice(1).map((id, i) => ({ id: `e${i}`, from: ids[Math.floor(i / 4)]!, to: id })), 'n0');
        for (const a of l.nodes)
            for (const b of l.nodes) if (a !== b) expect(Math.abs(a.x - b.x) >= NODE_W || Math.abs(a.y - b.y) >= NODE_H).toBe(true);
        expect(Math.max(...l.nodes.map(n => n.x + NODE_W))).toBeLessThanOrEqual(l.width);
    });
    it('takes a wide and a long graph in time', () => {
        const ids = Array.from({ length: 1000 }, (_, i) => `n${i}`);
        const began = performance.now();
        layOut(ids, ids.slice(1).map((id, i) => ({ id: `e${i}`, from: ids[i]!, to: id })), 'n0');
        layOut(ids, ids.slice(1).map((id, i) => ({ id: `e${i}`, from: 'n0', to: id })), 'n0');
        expect(performance.now() - began).toBeLessThan(2000);
    });
});
