// SPDX-License-Identifier: Apache-2.0
// The WebSocket: what happens to sessions, as it is committed. Each subscription has a cursor; after a break it continues behind the
// last event that it gave, so nothing is missing and nothing comes twice.
//
//   connecting ─► live ─► lost ─► connecting …          (the pauses grow to five seconds; a page that is looked at again tries at once)
import type { Json, JsonObject, SessionStatus } from './schema';
import { forgetToken, heldToken, subscribeToken } from './token';

export type LiveState = 'connecting' | 'live' | 'lost';

export interface LogEvent {
    seq: number;
    ts: string;
    kind: string;
    [member: string]: Json;
}

/* A piece of a turn that is running: kept nowhere. */
export interface Streamed {
    type: string;
    [member: string]: Json;
}

export interface Watcher {
    onEvent?(event: LogEvent, sessionId: string): void;
    onState?(session: SessionStatus): void;
    onText?(piece: Streamed, sessionId: string): void;
    onReset?(): void;                        /* the cursor is not there any more: read anew */
    onGone?(sessionId: string): void;        /* the session was deleted */
    onBack?(): void;                         /* connected again after a break */
    onRefused?(message: string): void;       /* it cannot be followed */
}

interface Subscription {
    sessionId: string | null; /* null: all sessions */
    after: number | undefined;
    kinds: string[] | undefined;
    watcher: Watcher;
    name: string | null; /* once the server has taken it */
}

interface Notice {
    id: string | null;
    type: string;
    action: string;
    payload: JsonObject;
}

const PAUSE_MAX = 5000;
let socket: WebSocket | null = null;
let state: LiveState = 'connecting';
let pause = 250;
let timer: ReturnType<typeof setTimeout> | undefined;
let numbered = 0;
const subscriptions = new Set<Subscription>();
const asked = new Map<string, (notice: Notice) => void>();
const listeners = new Set<() => void>();

function become(next: LiveState) {
    if (state === next) return;
    state = next;
    listeners.forEach(tell => tell());
}

export const liveState = () => state;
export function subscribeLive(tell: () => void) {
    listeners.add(tell);
    return () => void listeners.delete(tell);
}

function ask(action: string, payload: JsonObject): Promise<Notice> {
    const id = `r${++numbered}`;
    return new Promise(done => {
        asked.set(id, done);
        socket?.send(JSON.stringify({ id, type: 'request', action, payload, timestamp: new Date().toISOString() }));
    });
}

async function join(s: Subscription) {
    const payload: JsonObject = { snapshot: false };
    if (s.sessionId) payload.session_id = s.sessionId;
    if (s.after !== undefined) payload.after = s.after;
    if (s.kinds) payload.kinds = s.kinds;
    const answer = await ask('subscribe', payload);
    if (answer.type === 'error') s.watcher.onRefused?.(String((answer.payload as { message?: string }).message ?? 'it cannot be followed'));
    else s.name = String(answer.payload.subscription);
}

const isFor = (s: Subscription, payload: JsonObject) => payload.subscription === (s.sessionId ?? '*');

function deliver(s: Subscription, { action, payload }: Notice) {
    const id = String(payload.session_id ?? '');
    const cursor = s.sessionId ? payload.seq : payload.position;
    switch (action) {
        case 'session.message.added':
        case 'session.message.updated':
        case 'session.event':
            if (typeof cursor === 'number') {
                if (s.after !== undefined && cursor <= s.after) return;
                s.after = cursor;
            }
            s.watcher.onEvent?.(payload.event as LogEvent, id);
            break;
        case 'session.state_changed':
            s.watcher.onState?.(payload.session as unknown as SessionStatus);
            break;
        case 'session.text':
            s.watcher.onText?.(payload.streamed as Streamed, id);
            break;
        case 'session.reset':
            if (typeof cursor === 'number') s.after = cursor;
            s.watcher.onReset?.();
            break;
        case 'session.deleted':
            s.watcher.onGone?.(id);
            break;
    }
}

function take(text: string) {
    const notice = JSON.parse(text) as Notice;
    if (notice.id && asked.has(notice.id)) {
        asked.get(notice.id)?.(notice);
        asked.delete(notice.id);
        return;
    }
    for (const s of [...subscriptions]) if (isFor(s, notice.payload)) deliver(s, notice);
}

function lost(code: number) {
    socket = null;
    asked.clear();
    subscriptions.forEach(s => (s.name = null));
    if (code === 1008) {
        forgetToken('This token was revoked or has expired.');
        become('lost');
        return;
    }
    become('lost');
    schedule();
}

function schedule() {
    clearTimeout(timer);
    if (!heldToken()) return;
    timer = setTimeout(connect, pause);
    pause = Math.min(pause * 2, PAUSE_MAX);
}

export function connect() {
    const token = heldToken();
    if (!token || socket) return;
    clearTimeout(timer);
    const mine = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/v1/ws`, ['tidemark.v1', `bearer.${token.token}`]);
    let opened = false;
    socket = mine;
    mine.onopen = () => {
        const wasLost = state === 'lost';
        opened = true;
        pause = 250;
        become('live');
        subscriptions.forEach(s => void join(s));
        if (wasLost) subscriptions.forEach(s => s.watcher.onBack?.());
    };
    mine.onmessage = m => take(String(m.data));
    mine.onclose = e => {
        if (socket !== mine) return;
        lost(opened ? e.code : 0);
    };
}

function leave(s: Subscription) {
    if (!subscriptions.delete(s)) return;
    if (socket?.readyState === WebSocket.OPEN) void ask('unsubscribe', s.sessionId ? { session_id: s.sessionId } : {});
}

/* Follows a session, or all of them, behind `after`. Returns what ends it. */
export function follow(sessionId: string | null, after: number | undefined, watcher: Watcher, kinds?: string[]): () => void {
    const s: Subscription = { sessionId, after, kinds, watcher, name: null };
    for (const other of subscriptions)
        if (other.sessionId === sessionId) leave(other); /* the server has one of a name for each connection */
    subscriptions.add(s);
    if (socket?.readyState === WebSocket.OPEN) void join(s);
    else connect();
    return () => leave(s);
}

subscribeToken(() => {
    if (heldToken()) connect();
    else {
        clearTimeout(timer);
        const mine = socket;
        socket = null;
        asked.clear();
        mine?.close(1000);
    }
});
for (const name of ['online', 'focus'])
    addEventListener(name, () => {
        if (state === 'lost' && !socket) {
            pause = 250;
            connect();
        }
    });
