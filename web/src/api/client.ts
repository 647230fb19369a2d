// SPDX-License-Identifier: Apache-2.0
// One request to the API: by action, as the document names them. What changes something gets a key of its own and is repeated with
// it until the server has answered, so that a server that restarts meanwhile carries it out once.
import { routes, type Actions, type Problem, type Requests } from './schema';
import { noteClock } from './clock';
import { forgetToken, heldToken } from './token';

export type Action = keyof Actions & keyof typeof routes;
export type Hint = Problem['error']['hints'][number];

/* What failed: a problem document of the server, or that there was no answer (status 0). */
export class ApiError extends Error {
    constructor(readonly status: number, readonly code: string, message: string, readonly hints: Hint[] = [], readonly about: string | null = null) {
        super(message);
    }
    get isLost() {
        return this.status === 0;
    }
}

const LOST = 'The server does not answer. Nothing is lost; this is tried again when it is back.';

type Given = Record<string, unknown>;

function address(action: Action, params: Given): { url: string; left: Given } {
    const left = { ...params };
    const url = routes[action].path.replace(/\{(\w+)\}/g, (_, name: string) => {
        const value = String(left[name]);
        delete left[name];
        return encodeURIComponent(value);
    });
    return { url, left };
}

function query(left: Given): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(left))
        if (value !== undefined && value !== null && value !== '') search.set(name, Array.isArray(value) ? value.join(',') : String(value));
    const text = search.toString();
    return text ? `?${text}` : '';
}

async function failure(answer: Response): Promise<ApiError> {
    const text = await answer.text();
    try {
        const problem = JSON.parse(text) as Problem;
        return new ApiError(answer.status, problem.error.error, problem.detail, problem.error.hints, problem.error.detail.name);
    } catch {
        return new ApiError(answer.status, 'FAILED', text.slice(0, 300) || answer.statusText);
    }
}

const pause = (ms: number, signal?: AbortSignal) =>
    new Promise<void>(done => {
        const timer = setTimeout(done, ms);
        signal?.addEventListener('abort', () => { clearTimeout(timer); done(); });
    });

export interface RequestOptions {
    signal?: AbortSignal;
    ifMatch?: number; /* the seq that was looked at */
    tries?: number;   /* of a request that gets no answer [5 for what changes something, else 1] */
}

/* The parameters of the path, of the query and the members of the body are one object, as over the WebSocket. */
export async function call<A extends Action>(action: A, params: Requests[A], options: RequestOptions = {}): Promise<Actions[A]> {
    const { method } = routes[action];
    const { url, left } = address(action, params as Given);
    const reads = method === 'GET';
    const inQuery = reads || method === 'DELETE';
    const headers: Record<string, string> = { Accept: 'application/json' };
    const token = heldToken();

    if (token) headers.Authorization = `Bearer ${token.token}`;
    if (!reads) headers['Idempotency-Key'] = crypto.randomUUID();
    if (options.ifMatch !== undefined) headers['If-Match'] = `"${options.ifMatch}"`;
    if (!inQuery) headers['Content-Type'] = 'application/json';
    for (let left_tries = options.tries ?? (reads ? 1 : 5), wait = 300; ; left_tries--, wait *= 2) {
        let answer: Response;
        const sent = Date.now();
        try {
            answer = await fetch(url + (inQuery ? query(left) : ''), { method, headers, signal: options.signal, body: inQuery ? undefined : JSON.stringify(left), credentials: 'omit', redirect: 'error' });
        } catch (e) {
            if (options.signal?.aborted) throw e;
            if (left_tries <= 1) throw new ApiError(0, 'LOST', LOST);
            await pause(wait, options.signal);
            continue;
        }
        noteClock(answer.headers.get('Date'), sent, Date.now());
        if (answer.status === 503 && left_tries > 1) {
            await pause(Math.min(Number(answer.headers.get('Retry-After') ?? 1) * 1000, 5000), options.signal);
            continue;
        }
        if (!answer.ok) {
            const error = await failure(answer);
            if (answer.status === 401 && action !== 'session.resume' && action !== 'wait.answer' && action !== 'session.answer') forgetToken('The server does not know this token any more.');
            throw error;
        }
        if (answer.status === 204 || !(answer.headers.get('Content-Type') ?? '').includes('json')) return undefined as Actions[A];
        return (await answer.json()) as Actions[A];
    }
}

/* What a failure says, for people. */
export function errorText(e: unknown): string {
    return e instanceof Error ? e.message : String(e);
}
