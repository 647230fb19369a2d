// SPDX-License-Identifier: Apache-2.0
// What a page reads: an action with its parameters, read when it is first looked at, again when asked, and again when the server is
// back. What was read before is shown meanwhile, so that nothing flickers.
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { call, ApiError, type Action } from './client';
import { liveState, subscribeLive } from './live';
import type { Actions, Requests } from './schema';

export interface Query<T> {
    data: T | undefined;
    error: unknown;
    isReading: boolean;
    read: () => void;               /* again */
    change: (to: (data: T) => T) => void; /* what is known better meanwhile */
}

export function useQuery<A extends Action>(action: A, params: Requests[A] | null): Query<Actions[A]> {
    const key = params === null ? null : `${action} ${JSON.stringify(params)}`;
    const [held, setHeld] = useState<{ key: string | null; data: Actions[A] | undefined; error: unknown }>({ key: null, data: undefined, error: null });
    const [turn, setTurn] = useState(0);
    const [isReading, setReading] = useState(false);
    const wasLost = useRef(false);
    const underWay = useRef<{ again: boolean } | null>(null);
    const live = useSyncExternalStore(subscribeLive, liveState);

    useEffect(() => {
        if (key === null || params === null) return;
        const stop = new AbortController();
        const mine = { again: false };
        underWay.current = mine;
        setReading(true);
        call(action, params, { signal: stop.signal })
            .then(data => setHeld({ key, data, error: null }))
            .catch((error: unknown) => {
                if (stop.signal.aborted) return;
                wasLost.current = error instanceof ApiError && error.isLost;
                setHeld(before => ({ key, data: before.key === key ? before.data : undefined, error }));
            })
            .finally(() => {
                if (underWay.current === mine) underWay.current = null;
                if (stop.signal.aborted) return;
                setReading(false);
                if (mine.again) setTurn(t => t + 1);
            });
        return () => {
            stop.abort();
            if (underWay.current === mine) underWay.current = null;
        };
    }, [key, turn]);

    useEffect(() => {
        if (live === 'live' && wasLost.current) {
            wasLost.current = false;
            setTurn(t => t + 1);
        }
    }, [live]);

    /* One that is under way is waited for, then read once more: whoever asks often still gets answers. */
    const read = useCallback(() => {
        if (underWay.current) underWay.current.again = true;
        else setTurn(t => t + 1);
    }, []);
    const change = useCallback((to: (data: Actions[A]) => Actions[A]) => setHeld(before => (before.data === undefined ? before : { ...before, data: to(before.data) })), []);
    const isCurrent = held.key === key;
    return { data: isCurrent ? held.data : undefined, error: isCurrent ? held.error : null, isReading, read, change };
}

/* Something that a person does: busy while it is under way, and what it failed with. */
export function useDoing(): { busy: boolean; error: unknown; run: (what: () => Promise<unknown>) => Promise<boolean>; clear: () => void } {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<unknown>(null);
    const run = useCallback(async (what: () => Promise<unknown>) => {
        setBusy(true);
        setError(null);
        try {
            await what();
            return true;
        } catch (e) {
            setError(e);
            return false;
        } finally {
            setBusy(false);
        }
    }, []);
    const clear = useCallback(() => setError(null), []);
    return { busy, error, run, clear };
}
