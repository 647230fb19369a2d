// SPDX-License-Identifier: Apache-2.0
// One session, live: filled by one request, then moved on by its events. What an event does to the session is the server's to say: the
// page is read again, once for all events that come within a moment.
import { useCallback, useEffect, useRef, useState } from 'react';
import { call } from '../api/client';
import { follow, type LogEvent } from '../api/live';
import { useQuery } from '../api/query';
import type { Actions } from '../api/schema';
import { withNewest, withOlder, withPiece, type Entry, type Streaming } from './conversation';

const ENTRIES = 60;
const MOMENT_MS = 150;

export type SessionShown = Actions['session.page'];

export interface SessionLive {
    page: SessionShown | undefined;
    error: unknown;
    entries: Entry[];
    hasOlder: boolean;
    readOlder: () => void;
    streaming: Streaming | null;
    lastSeq: number;
    isGone: boolean;
    read: () => void;
}

export function useSession(id: string, onEvent?: (event: LogEvent) => void): SessionLive {
    const page = useQuery('session.page', { id, limit: ENTRIES, no_task: true });
    const [entries, setEntries] = useState<Entry[]>([]);
    const [before, setBefore] = useState<number | null | undefined>(undefined);
    const [streaming, setStreaming] = useState<Streaming | null>(null);
    const [lastSeq, setLastSeq] = useState(0);
    const [isGone, setGone] = useState(false);
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const tell = useRef(onEvent);
    const cursor = useRef<number | null>(null);
    const newest = useRef(0);
    tell.current = onEvent;

    const readSoon = useCallback(() => {
        if (timer.current !== undefined) return;
        timer.current = setTimeout(() => {
            timer.current = undefined;
            setLastSeq(now => Math.max(now, newest.current)); /* once for all of them: each is a drawing of the whole page */
            page.read();
        }, MOMENT_MS);
    }, [page.read]);
    useEffect(() => () => { clearTimeout(timer.current); timer.current = undefined; }, []);

    useEffect(() => {
        if (!page.data) return;
        const seq = page.data.session.last_seq ?? 0;
        cursor.current ??= seq;
        setEntries(held => withNewest(held, page.data?.entries ?? []));
        setBefore(held => (held === undefined ? page.data?.entries_before : held));
        setLastSeq(now => Math.max(now, seq));
        if (page.data.session.status !== 'running') setStreaming(null);
    }, [page.data]);

    const isRead = page.data !== undefined;
    useEffect(() => {
        if (!isRead) return;
        return follow(id, cursor.current ?? 0, {
            onEvent: event => {
                newest.current = Math.max(newest.current, event.seq);
                if (event.kind === 'message.assistant') setStreaming(null);
                tell.current?.(event);
                readSoon();
            },
            onState: readSoon,
            onText: piece => setStreaming(now => withPiece(now, piece)),
            onReset: page.read,
            onBack: page.read,
            onGone: () => setGone(true),
        });
    }, [id, isRead, readSoon, page.read]);

    const readOlder = useCallback(() => {
        if (typeof before !== 'number') return;
        setBefore(null);
        call('session.transcript', { id, before, limit: ENTRIES })
            .then(older => {
                setEntries(held => withOlder(held, older.entries));
                setBefore(older.entries_before ?? null);
            })
            .catch(() => setBefore(before));
    }, [before, id]);

    return { page: page.data, error: page.error, entries, hasOlder: typeof before === 'number', readOlder, streaming, lastSeq, isGone, read: page.read };
}
