// SPDX-License-Identifier: Apache-2.0
// What happens to any session: one subscription for the whole page, which lists, the inbox and the numbers at the side share. It begins
// at the position that the first list was read at, so that nothing between the list and the stream is missed.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { follow } from '../api/live';
import type { SessionStatus } from '../api/schema';
import { subscribeToken } from '../api/token';

export interface AllWatcher {
    onState?(session: SessionStatus): void;
    onGone?(sessionId: string): void;
    onStale?(): void; /* something was missed that cannot be had again: read anew */
}

/* What says that a session stands otherwise: messages and tools alone do not. */
const KINDS = ['run.', 'session.', 'approval.', 'queue.', 'token.', 'cancel.', 'node.failed', 'message.user', 'llm.usage', 'checkpoint'];

const watchers = new Set<AllWatcher>();
const listeners = new Set<() => void>();
let stop: (() => void) | null = null;
let isRefused = false; /* the store has no order of all sessions: plain files */

function refuse() {
    isRefused = true;
    listeners.forEach(tell => tell());
}

/* Begins behind `position`; what follows already goes on. */
export function followAll(position: number | null) {
    if (stop || position === null) {
        if (position === null && !stop) refuse();
        return;
    }
    isRefused = false;
    stop = follow(null, position, {
        onState: s => watchers.forEach(w => w.onState?.(s)),
        onGone: id => watchers.forEach(w => w.onGone?.(id)),
        onReset: () => watchers.forEach(w => w.onStale?.()),
        onRefused: refuse,
    }, KINDS);
}

subscribeToken(() => {
    stop?.();
    stop = null;
});

/* A store of plain files is read again every few seconds instead. */
export const useIsPolled = () =>
    useSyncExternalStore(tell => {
        listeners.add(tell);
        return () => void listeners.delete(tell);
    }, () => isRefused);

const POLL_MS = 4000;

export function useAll(watcher: AllWatcher) {
    const latest = useRef(watcher);
    const polled = useIsPolled();
    latest.current = watcher;
    useEffect(() => {
        const mine: AllWatcher = { onState: s => latest.current.onState?.(s), onGone: id => latest.current.onGone?.(id), onStale: () => latest.current.onStale?.() };
        watchers.add(mine);
        return () => void watchers.delete(mine);
    }, []);
    useEffect(() => {
        if (!polled) return;
        const timer = setInterval(() => { if (!document.hidden) latest.current.onStale?.(); }, POLL_MS);
        return () => clearInterval(timer);
    }, [polled]);
}
