// SPDX-License-Identifier: Apache-2.0
// A store with a story in it, the real server on it, and a real browser that is signed in as a person signs in. Whatever a page logs as
// an error, fails to load or tries against its policy fails the case in which it happens.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, chmodSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export const SOURCE = process.env.TIDE_SOURCE;
export const BIN = process.env.TIDE_BIN;
export const ANSWERS = {
    turns: [
        { text: 'The **moon** pulls the sea:\n\n- spring tides at new moon\n- neap tides between\n\n```sh\necho tide\n```\n', usage: { input_tokens: 1200, output_tokens: 220 } },
        { text: 'Hostile: <script>window.hacked = 1</script> <img src=x onerror="window.hacked=1"> \u001b[31mred \u202etfel', usage: { input_tokens: 1400, output_tokens: 60 } },
        { text: Array.from({ length: 60 }, (_, i) => `word${i}`).join(' '), chunk_ms: 60, usage: { input_tokens: 1500, output_tokens: 80 } },
        { text: 'And the wind helps.', usage: { input_tokens: 1500, output_tokens: 80 } },
    ],
    repeat: true,
};

export async function freePort() {
    return new Promise(done => {
        const s = createServer().listen(0, '127.0.0.1', () => {
            const { port } = s.address();
            s.close(() => done(port));
        });
    });
}

export async function until(isSo, what, ms = 15_000) {
    for (const end = Date.now() + ms; Date.now() < end; ) {
        const got = await isSo();
        if (got) return got;
        await new Promise(done => setTimeout(done, 25));
    }
    throw new Error(`not within ${ms} ms: ${what}`);
}

export class Place {
    constructor() {
        this.dir = mkdtempSync(join(tmpdir(), 'tide-console-'));
        this.work = join(this.dir, 'work');
        this.graphs = join(this.dir, 'graphs');
        for (const d of ['work', 'graphs', 'run', 'config/tidemark', 'state', 'data']) mkdirSync(join(this.dir, d), { recursive: true });
        chmodSync(join(this.dir, 'run'), 0o700);
        this.store = process.env.CONSOLE_STORE === 'files' ? `files:${join(this.dir, 'data/store')}` : `sqlite:${join(this.dir, 'data/store.db')}`;
        this.env = { PATH: `${join(BIN, '..')}:/usr/bin:/bin`, HOME: this.dir, LANG: 'C.UTF-8', TZ: 'UTC', XDG_RUNTIME_DIR: join(this.dir, 'run'), XDG_CONFIG_HOME: join(this.dir, 'config'), XDG_STATE_HOME: join(this.dir, 'state'), XDG_DATA_HOME: join(this.dir, 'data'), TIDEMARK_STORE: this.store, TIDEMARK_ORIGIN_KEY: 'a key for tests alone' };
        this.put('config/tidemark/answers.json', JSON.stringify(ANSWERS));
        this.put('config/tidemark/config.json', JSON.stringify({ provider: 'script', script: 'answers.json', server_programs: { hello: { argv: ['./hello.sh'], cwd: this.work } }, server_graph_roots: [this.graphs], server_working_roots: [this.work] }));
        this.put('work/deploy.sh', "#!/bin/sh\ntidemark step build --effect pure -- true\ntidemark wait release --kind approval --question 'Release 2.1 to everyone?' >/dev/null\ntidemark step publish --effect once -- true\n", 0o755);
        this.put('work/cut.sh', '#!/bin/sh\ntidemark step one --effect once -- true\ntidemark step two --effect pure -- sh -c \'[ -e go ] || exec sleep 600\'\n', 0o755);
        this.put('work/hello.sh', '#!/bin/sh\ntidemark step greet -- echo hello\n', 0o755);
        this.put('work/bad.sh', '#!/bin/sh\ntidemark step fine --effect pure -- true\ntidemark step broken --effect pure -- false\n', 0o755);
        this.put('graphs/tides.json', JSON.stringify({ tidemark_graph: 1, id: 'tides', name: 'Tides', entry: 'a', memory: { word: 'tide' }, nodes: [{ id: 'a', type: 'lua', inputs: ['word'], outputs: ['long'], code: "return {long = memory.word .. '!'}" }, { id: 'b', type: 'human_input', question: 'Is it high?', outputs: ['high'] }, { id: 'c', type: 'lua', inputs: ['long', 'high'], outputs: ['end'], code: "return {['end'] = memory.long .. tostring(memory.high)}" }], edges: [{ from: 'a', to: 'b' }, { from: 'b', to: 'c' }] }));
    }
    put(name, text, mode = 0o600) {
        writeFileSync(join(this.dir, name), text, { mode });
    }
    /* A command; its standard output. What it exits with is the caller's, unless it is to succeed. */
    run(...args) {
        return spawnSync(BIN, args, { cwd: this.work, env: this.env, encoding: 'utf8', timeout: 30_000, input: '' });
    }
    ok(...args) {
        const r = this.run(...args);
        if (r.status !== 0) throw new Error(`tidemark ${args.join(' ')}: ${r.status}: ${r.stderr}`);
        return r.stdout;
    }
    async story() {
        this.ok('sessions', 'new', '--id', 'deploy', '--title', 'Deploy 2.1', '--task-id', 'release');
        this.run('exec', '--session', 'deploy', '--', './deploy.sh');
        this.ok('sessions', 'new', '--id', 'deploy-old', '--title', 'Deploy 2.0', '--task-id', 'release');
        this.run('exec', '--session', 'deploy-old', '--', './deploy.sh');
        this.run('resume', 'deploy-old', '--input', 'yes');
        this.run('exec', '--session', 'broken', '--', './bad.sh');
        const cut = spawn(BIN, ['exec', '--session', 'nightly', '--', './cut.sh'], { cwd: this.work, env: this.env, stdio: 'ignore' });
        await until(() => this.run('log', 'show', 'nightly', '--json').stdout.includes('"two"'), 'the program is in its second step');
        cut.kill('SIGKILL');
        await new Promise(done => cut.once('exit', done));
        this.put('work/go', '');
        this.chat = JSON.parse(this.ok('chat', '-p', 'Why are there tides?', '--output', 'json')).session_id;
        this.run('run', join(this.graphs, 'tides.json'), '--session', 'tides');
    }
    async serve() {
        this.port ??= await freePort();
        this.server = spawn(BIN, ['serve', '--listen', `127.0.0.1:${this.port}`, '--auto-resume', 'off'], { cwd: this.dir, env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
        let said = '';
        this.server.stderr.on('data', d => (said += d));
        await until(() => said.includes('console: '), `the server says where it is: ${said}`);
        this.url = said.match(/console: (\S+)/)?.[1];
    }
    async kill(signal = 'SIGKILL') {
        const over = new Promise(done => this.server.once('exit', done));
        this.server.kill(signal);
        await over;
    }
    signInUrl() {
        return this.ok('console').trim();
    }
    async done() {
        if (this.server && this.server.exitCode === null && this.server.signalCode === null) await this.kill('SIGTERM');
        rmSync(this.dir, { recursive: true, force: true });
    }
}

export async function openBrowser() {
    return chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'] });
}

/* What a page said that it must not say (a refusal that it shows is none). A server that is killed in a case is allowed to be missed. */
export class Watch {
    constructor() {
        this.said = [];
        this.mayMiss = false;
    }
    on(page) {
        page.on('pageerror', e => this.said.push(`error: ${e.message}`));
        page.on('console', m => {
            if (m.type() === 'error' && !/status of (400|404|409|410)/.test(m.text()) && !(this.mayMiss && /ERR_CONNECTION|WebSocket connection|Failed to load resource/.test(m.text()))) this.said.push(`console: ${m.text()}`);
        });
        page.on('request', r => {
            if (!r.url().startsWith('http://127.0.0.1:') && !r.url().startsWith('blob:')) this.said.push(`request to elsewhere: ${r.url()}`);
        });
    }
    check() {
        const said = this.said.splice(0);
        if (said.length) throw new Error(said.join('; '));
    }
}

const axe = () => readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
/* What a screen reader would stumble over. Scripts of ours run outside of the page's policy. */
export async function accessible(page) {
    await page.evaluate(axe());
    const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => `${n.target.join(" ")} (${(n.any[0] ?? n.all[0] ?? n.none[0])?.message})`).join(", ")}`));
    if (found.length) throw new Error(`axe: ${found.join('; ')}`);
}
