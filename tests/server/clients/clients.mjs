// SPDX-License-Identifier: Apache-2.0
// The server through clients and checkers that other people wrote: undici for HTTP, eventsource for streams, ws for WebSockets, a
// validator of OpenAPI documents, a parser of Prometheus' text format.
//
//     node clients.mjs PORT TOKEN          prints "ok - …" or "not ok - …" for each case
import assert from 'node:assert/strict';
import { Validator } from '@seriousme/openapi-schema-validator';
import { EventSource } from 'eventsource';
import parsePrometheus from 'parse-prometheus-text-format';
import { request, Pool } from 'undici';
import { WebSocket } from 'ws';

const [port, token] = process.argv.slice(2);
const origin = `http://127.0.0.1:${port}`;
const bearer = { authorization: `Bearer ${token}` };
let failed = 0;

async function ask(method, path, body) {
    const headers = body === undefined ? bearer : { ...bearer, 'content-type': 'application/json' };
    const answer = await request(`${origin}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    return { status: answer.statusCode, headers: answer.headers, json: await answer.body.json() };
}

const append = (id, n) => ask('POST', `/sessions/${id}/events`, { kind: 'memory.set', data: { values: { n } } });

function follow(path, last) {
    const headers = last === undefined ? bearer : { ...bearer, 'last-event-id': String(last) };
    const source = new EventSource(`${origin}/api/v1${path}`, {
        fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } }),
    });
    source.got = [];
    source.onmessage = e => source.got.push([Number(e.lastEventId), JSON.parse(e.data)]);
    return source;
}

async function until(isSo, what) {
    for (let i = 0; i < 1000; i++) {
        if (isSo()) return;
        await new Promise(done => setTimeout(done, 10));
    }
    throw new Error(`not within 10 s: ${what}`);
}

function open(protocols, options) {
    const ws = new WebSocket(`ws://127.0.0.1:${port}/api/v1/ws`, protocols, options);
    ws.answers = new Map();
    ws.told = [];
    ws.on('message', data => {
        const m = JSON.parse(data);
        if (m.type === 'notification') ws.told.push(m);
        else ws.answers.set(m.id, m);
    });
    ws.ask = async (action, payload) => {
        const id = `r${ws.answers.size + 1}`;
        ws.send(JSON.stringify({ id, type: 'request', action, payload, timestamp: new Date().toISOString() }));
        await until(() => ws.answers.has(id), action);
        return ws.answers.get(id);
    };
    return new Promise((done, fail) => ws.on('open', () => done(ws)).on('unexpected-response', (_, r) => fail(new Error(`status ${r.statusCode}`)))
        .on('error', fail));
}

const cases = {
    'undici makes, reads and deletes a session': async () => {
        const made = await ask('POST', '/sessions', { title: 'undici' });
        assert.equal(made.status, 201);
        const id = made.json.session_id;
        assert.equal(made.headers.location, `/api/v1/sessions/${id}`);
        assert.equal((await ask('GET', `/sessions/${id}`)).json.title, 'undici');
        assert.equal((await ask('DELETE', `/sessions/${id}`)).status, 200);
        const gone = await ask('GET', `/sessions/${id}`);
        assert.equal(gone.status, 404);
        assert.equal(gone.headers['content-type'], 'application/problem+json');
    },
    'undici pipelines on one connection': async () => {
        const pool = new Pool(origin, { connections: 1, pipelining: 20 });
        const answers = await Promise.all(Array.from({ length: 200 }, () => pool.request({ method: 'GET', path: '/api/v1/store', headers: bearer })));
        for (const a of answers) {
            assert.equal(a.statusCode, 200);
            await a.body.json();
        }
        await pool.close();
    },
    'eventsource follows, and continues where it was': async () => {
        const id = (await ask('POST', '/sessions', {})).json.session_id;
        const first = follow(`/sessions/${id}/events?after=0`);
        await until(() => first.got.length === 1, 'the first event');
        for (let n = 0; n < 50; n++) await append(id, n);
        await until(() => first.got.length === 51, 'its events');
        first.close();
        assert.deepEqual(first.got.map(([seq]) => seq), Array.from({ length: 51 }, (_, i) => i + 1));
        const second = follow(`/sessions/${id}/events`, 40);
        await until(() => second.got.length === 11, 'the rest');
        second.close();
        assert.deepEqual(second.got.map(([seq]) => seq), Array.from({ length: 11 }, (_, i) => i + 41));
    },
    'ws asks and follows with the token as a protocol': async () => {
        const ws = await open(['tidemark.v1', `bearer.${token}`]);
        assert.equal(ws.protocol, 'tidemark.v1');
        const id = (await ws.ask('session.create', { title: 'ws', task_id: 't' })).payload.session_id;
        assert.equal((await ws.ask('subscribe', { session_id: id })).type, 'response');
        for (let n = 0; n < 50; n++) await append(id, n);
        await until(() => ws.told.filter(m => m.action === 'session.event').length === 50, 'its events');
        assert.equal(ws.told[0].action, 'session.snapshot');
        assert.ok(ws.told.every(m => m.payload.session_id === id && m.payload.task_id === 't'));
        assert.equal((await ws.ask('session.get', { id: 'nobody' })).payload.error, 'NOT_FOUND');
        const pong = new Promise(done => ws.on('pong', done));
        ws.ping('are you there');
        assert.equal(String(await pong), 'are you there');
        const closed = new Promise(done => ws.on('close', done));
        ws.close(1000);
        assert.equal(await closed, 1000);
    },
    'ws with the token as a field, fragments and long messages': async () => {
        const ws = await open([], { headers: bearer });
        const text = JSON.stringify({ id: 'x', type: 'request', action: 'session.create', payload: { title: 'é'.repeat(100000) } });
        for (let i = 0; i < text.length; i += 9999) ws.send(text.slice(i, i + 9999), { fin: i + 9999 >= text.length });
        await until(() => ws.answers.has('x'), 'an answer');
        assert.equal(ws.answers.get('x').type, 'response');
        ws.terminate();
    },
    'ws without a token, or from another page, is refused': async () => {
        await assert.rejects(open(['tidemark.v1']), /status 401/);
        await assert.rejects(open(['tidemark.v1', 'bearer.tide_wrong']), /status 401/);
        await assert.rejects(open(['tidemark.v1', `bearer.${token}`], { origin: 'http://evil.example' }), /status 403/);
    },
};

const checks = {
    'the document is OpenAPI 3.1': async () => {
        const text = await (await request(`${origin}/openapi.json`, { headers: bearer })).body.json();
        assert.equal((await new Validator().validate({ ...text, paths: { nothing: 1 } })).valid, false);
        const result = await new Validator().validate(text);
        assert.deepEqual(result.errors ?? [], []);
        assert.equal(result.valid, true);
    },
    'the figures are Prometheus\' text format': async () => {
        const id = (await ask('POST', '/sessions', {})).json.session_id;
        for (let n = 0; n < 5; n++) await append(id, n);
        const answer = await request(`${origin}/metrics`, { headers: bearer });
        const families = new Map(parsePrometheus(await answer.body.text()).map(f => [f.name, f]));
        assert.match(answer.headers['content-type'], /^text\/plain; version=0\.0\.4/);
        for (const f of families.values()) {
            assert.ok(f.help && ['COUNTER', 'GAUGE', 'HISTOGRAM'].includes(f.type), f.name);
            assert.ok(f.type !== 'COUNTER' || f.name.endsWith('_total'), f.name);
            for (const m of f.metrics) assert.ok(m.buckets || Number.isFinite(Number(m.value)), f.name);
        }
        const { buckets, count } = families.get('tidemark_commit_appends').metrics[0];
        const counts = Object.values(buckets).map(Number);
        assert.deepEqual(counts, [...counts].sort((a, b) => a - b));
        assert.equal(counts.at(-1), Number(count));
    },
};

for (const [name, run] of Object.entries({ ...checks, ...cases })) {
    try {
        await run();
        console.log(`ok - ${name}`);
    } catch (e) {
        failed++;
        console.log(`not ok - ${name}: ${e.message}`);
    }
}
process.exit(failed ? 1 : 0);
