// SPDX-License-Identifier: Apache-2.0
// What happened, for some seconds at the corner; with what undoes it where something does.
import { useSyncExternalStore } from 'react';

interface Toast {
    id: number;
    text: string;
    undo?: { label: string; run: () => void };
}
let toasts: Toast[] = [];
let numbered = 0;
const listeners = new Set<() => void>();
const set = (next: Toast[]) => {
    toasts = next;
    listeners.forEach(tell => tell());
};
const drop = (id: number) => set(toasts.filter(t => t.id !== id));

export function toast(text: string, undo?: Toast['undo']) {
    const id = ++numbered;
    set([...toasts.slice(-3), { id, text, undo }]);
    setTimeout(() => drop(id), undo ? 10_000 : 5000);
}

export function Toasts() {
    const list = useSyncExternalStore(tell => { listeners.add(tell); return () => void listeners.delete(tell); }, () => toasts);
    return (
        <div className="toasts" role="status" aria-live="polite">
            {list.map(t => (
                <div key={t.id} className="toast"><span className="grow">{t.text}</span>{t.undo && <button type="button" onClick={() => { t.undo?.run(); drop(t.id); }}>{t.undo.label}</button>}</div>
            ))}
        </div>
    );
}
