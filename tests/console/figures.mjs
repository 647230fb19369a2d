// SPDX-License-Identifier: Apache-2.0
// The console's figures, in a real browser on the real server: how much it loads, how soon it is there among very many sessions, how it
// moves in a very long one, and whether it stays smooth while much happens. Each row stands beside its limit.
//
//     node figures.mjs [--quick] [--store=URL]       --quick: smaller stores, to see that it runs; URL: one that is kept, filled at first
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { openBrowser, Place, until, Watch } from './harness.mjs';

const quick = process.argv.includes('--quick');
const SESSIONS = quick ? 2000 : 100_000;
const EVENTS = quick ? 30_000 : 1_000_000;
const TRIES = 7;
const rows = [];
const place = new Place();
const kept = process.argv.find(a => a.startsWith('--store='))?.slice('--store='.length);
if (kept) place.store = place.env.TIDEMARK_STORE = kept;
const watch = new Watch();

const median = all => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const worst = all => all.reduce((most, a) => Math.max(most, a), 0);
const number = n => (n >= 100 ? n.toFixed(0) : n.toFixed(1));
function row(what, measured, limit, unit, note = '') {
    rows.push(measured <= limit);
    console.log(`| ${what} | ${number(measured)} ${unit}${note} | ${limit} ${unit} | ${measured <= limit ? 'yes' : 'NO'} |`);
}

/* The stores of the C benchmark: finished sessions, some that wait, and a long one. */
function fill() {
    if (kept && existsSync(kept.replace(/^sqlite:/, ''))) return;
    const bench = join(process.env.TIDE_BUILD, 'bench/tidemark-bench');
    const r = spawnSync(bench, ['--fill', place.store, String(SESSIONS), String(EVENTS)], { env: place.env, encoding: 'utf8', timeout: 240_000 });
    if (r.status !== 0) throw new Error(`fill: ${r.stderr}`);
}

async function signedIn(browser, before = () => undefined) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId: 'UTC', locale: 'en-GB' });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    watch.on(page);
    before(page);
    await page.goto(place.signInUrl());
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    return page;
}

/* Every byte of an answer as it was sent, header included, until the list is there. The cache is off. */
async function firstLoad(browser) {
    const page = await signedIn(browser);
    const cdp = await page.context().newCDPSession(page);
    let bytes = 0;
    await page.locator('[data-session]').first().waitFor();
    await cdp.send('Network.enable');
    await cdp.send('Network.setCacheDisabled', { cacheDisabled: true });
    const own = new Set();
    cdp.on('Network.responseReceived', e => { if (!e.response.url.includes('/api/')) own.add(e.requestId); });
    cdp.on('Network.loadingFinished', e => { if (own.has(e.requestId)) bytes += e.encodedDataLength; });
    await page.reload({ waitUntil: 'networkidle' });
    row('first load, all files of the list page, as sent', bytes / 1000, 250, 'KB');
    await page.context().close();
}

/* When it first painted, and the first frame with a row of the list that could be clicked; both from the start of the navigation. */
async function firstPaint(browser) {
    const page = await signedIn(browser);
    await page.addInitScript(() => {
        const look = () => {
            if (document.querySelector('[data-session] a')) requestAnimationFrame(() => { globalThis.listAt = performance.now(); });
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
    const times = [];
    for (let i = 0; i < TRIES; i++) {
        await page.reload({ waitUntil: 'commit' });
        times.push(await until(() => page.evaluate(() => {
            const paint = performance.getEntriesByName('first-contentful-paint')[0];
            return paint && globalThis.listAt && { paint: paint.startTime, list: globalThis.listAt };
        }), 'the list is there'));
    }
    row(`first paint, ${SESSIONS.toLocaleString('en')} sessions`, median(times.map(t => t.paint)), 500, 'ms');
    row('the list can be used, after that', median(times.map(t => Math.max(0, t.list - t.paint))), 100, 'ms');
    await page.context().close();
}

/*
 * From what a person does to the frame that shows its effect. Both run in the page, so that the way to it is not measured, and are
 * compiled at once: its policy lets nothing be compiled later.
 */
const timed = (page, act, shown, arg) => page.evaluate(`(async () => {
    const arg = ${JSON.stringify(arg)}, began = performance.now();
    ${act};
    while (!(${shown})) {
        if (performance.now() - began > 20000) throw new Error('never shown: ' + ${JSON.stringify(shown)});
        await new Promise(done => requestAnimationFrame(done));
    }
    return performance.now() - began;
})()`);

const VISIT = "history.pushState(null, '', arg.to); dispatchEvent(new PopStateEvent('popstate'));";

async function heap(page) {
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable');
    const { metrics } = await cdp.send('Performance.getMetrics');
    return metrics.find(m => m.name === 'JSHeapUsedSize').value / 1e6;
}

async function longSession(browser) {
    const page = await signedIn(browser);
    const many = `a session of ${EVENTS.toLocaleString('en')} events`;
    const middle = Math.floor(EVENTS / 2);
    const open = [], task = [], log = [], jump = [], scroll = [], play = [], line = [], heaps = [];
    await page.locator('[data-session]').first().waitFor();
    await page.goto(page.url());
    for (let i = 0; i < TRIES; i++) {
        await timed(page, VISIT, "document.querySelector('[data-session] a')", { to: '/' });
        open.push(await timed(page, VISIT, "document.querySelector('.entry')", { to: '/sessions/talk' }));
        line.push(await timed(page, VISIT, "/Nothing has run|fold empty/.test(document.querySelector('#panel-timeline')?.textContent)", { to: '/sessions/talk?tab=timeline' }));
        log.push(await timed(page, VISIT, "[...document.querySelectorAll('.log-row')].some(r => !r.textContent.includes('…'))", { to: '/sessions/talk?tab=log' }));
        const box = "document.querySelector('.log')";
        const filled = "document.querySelectorAll('.log-row').length > 5 && [...document.querySelectorAll('.log-row')].every(r => r.querySelector('.log-kind').textContent !== '…') && [...document.querySelectorAll('.log-row')].some(r => Math.abs(Number(r.firstChild.textContent) - arg.near) < arg.within)";
        scroll.push(await timed(page, `${box}.scrollTop = ${box}.scrollHeight / 2 + arg.i * 400;`, filled, { i, near: middle, within: EVENTS / 50 }));
        jump.push(await timed(page, VISIT, "document.querySelector('[data-testid=at]')?.textContent === String(arg.at) && document.querySelector('.state-at .end .mono')?.textContent", { to: `/sessions/talk?tab=log&at=${middle + i}`, at: middle + i }));
        task.push(await timed(page, VISIT, "document.querySelector('[data-testid=at]')?.textContent === String(arg.at) && document.querySelector('.state-at .end .mono')?.textContent", { to: `/sessions/talk?at=${middle + 100 + i}`, at: middle + 100 + i }));
        for (let step = 0; step < 3; step++)
            play.push(await timed(page, "document.querySelector('[aria-label=\"One event on\"]').click()", "document.querySelector('[data-testid=at]').textContent === String(arg.at) && document.querySelector('.state-at .end .mono')?.textContent", { at: middle + 101 + i + step }));
        heaps.push(await heap(page));
    }
    row(`open ${many}`, worst(open), 100, 'ms', `, half within ${number(median(open))}`);
    row('the same, its timeline', worst(line), 100, 'ms', `, half within ${number(median(line))}`);
    row('the same, its log', worst(log), 100, 'ms', `, half within ${number(median(log))}`);
    row('log scrolled to the middle, rows read', worst(scroll), 100, 'ms', `, half within ${number(median(scroll))}`);
    row('state in the middle, beside the log', worst(jump), 100, 'ms', `, half within ${number(median(jump))}`);
    row('state in the middle, beside the conversation', worst(task), 100, 'ms', `, half within ${number(median(task))}`);
    row('play, one event on', worst(play), 100, 'ms', `, half within ${number(median(play))}`);
    const played = await playing(page, middle + 200);
    row('play by itself, 12 events: longest task of the page', played, 100, 'ms');
    heaps.push(await heap(page));
    row('heap of the tab (JSHeapUsedSize), nothing collected by hand', worst(heaps), 200, 'MB');
    await page.context().close();
}

/* Looks at frames until `stop`; the longest one, and the longest task. */
async function frames(page) {
    await page.evaluate(() => {
        const seen = { frame: 0, task: 0, frames: 0, late: 0, last: performance.now(), ends: false };
        const observer = new PerformanceObserver(list => list.getEntries().forEach(e => (seen.task = Math.max(seen.task, e.duration))));
        observer.observe({ type: 'longtask' });
        const look = now => {
            if (seen.frames++ > 0) {
                seen.frame = Math.max(seen.frame, now - seen.last);
                if (now - seen.last > 50) seen.late++;
            }
            seen.last = now;
            if (!seen.ends) requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
        globalThis.framesSeen = seen;
    });
    return () => page.evaluate(() => { globalThis.framesSeen.ends = true; return globalThis.framesSeen; });
}

async function playing(page, at) {
    await page.evaluate(to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }, `/sessions/talk?at=${at}`);
    const button = page.getByRole('button', { name: 'Play', exact: true });
    await button.click();
    const end = await frames(page);
    await until(async () => Number(await page.getByTestId('at').textContent()) >= at + 12, 'it plays');
    const seen = await end();
    await page.getByRole('button', { name: 'Pause' }).click();
    return seen.task;
}

/* As many appends each second, over HTTP, evenly; how many there were. */
async function updates(token, ids, perSecond, seconds) {
    const began = Date.now();
    const sent = [];
    let n = 0;
    for (; n < perSecond * seconds; n++) {
        const wait = began + (n * 1000) / perSecond - Date.now();
        if (wait > 0) await new Promise(done => setTimeout(done, wait));
        sent.push(fetch(`http://127.0.0.1:${place.port}/api/v1/sessions/${ids[n % ids.length]}/events`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: JSON.stringify({ kind: 'message.user', data: { turn: 1, content: `update ${n}.` } }) }).then(async r => { if (!r.ok) throw new Error(`append: ${r.status} ${await r.text()}`); }));
    }
    await Promise.all(sent);
    return n / ((Date.now() - began) / 1000);
}

async function busyPages(browser) {
    let notices = 0;
    const page = await signedIn(browser, p => p.on('websocket', w => w.on('framereceived', () => notices++)));
    const token = await page.evaluate(() => Object.values(sessionStorage).map(v => { try { return JSON.parse(v).token; } catch { return null; } }).find(Boolean));
    await page.locator('[data-session]').first().waitFor();
    const seconds = quick ? 3 : 10;
    const ids = await page.evaluate(() => [...document.querySelectorAll('[data-session]')].slice(0, 10).map(e => e.dataset.session));
    for (const [what, to, targets] of [['the list', '/', ids], ['an open session', `/sessions/${ids[0]}`, [ids[0]]], ['the log of a session', `/sessions/${ids[0]}?tab=log`, [ids[0]]]]) {
        await page.evaluate(t => { history.pushState(null, '', t); dispatchEvent(new PopStateEvent('popstate')); }, to);
        await page.waitForLoadState('networkidle');
        const end = await frames(page);
        notices = 0;
        const rate = await updates(token, targets, 50, seconds);
        await until(() => notices >= rate * 2, 'the page is told');
        if (to !== '/') await page.getByText(`update ${50 * seconds - 1}.`).first().waitFor();
        const seen = await end();
        row(`${number(rate)} updates/s on ${what}: longest frame`, seen.frame, 50, 'ms', ` (${seen.late} of ${seen.frames} over 50; longest task ${number(seen.task)}; told ${notices} times)`);
    }
    await page.context().close();
}

let browser;
try {
    console.log(`load of the machine at the start: ${loadavg().map(n => n.toFixed(1)).join(' ')}\n\n| what | measured | limit | reached |\n|---|---|---|---|`);
    fill();
    await place.serve();
    browser = await openBrowser();
    await firstLoad(browser);
    await firstPaint(browser);
    await longSession(browser);
    await busyPages(browser);
    watch.check();
    console.log(`\nload of the machine at the end: ${loadavg().map(n => n.toFixed(1)).join(' ')}\n${rows.every(Boolean) ? 'every figure is reached' : 'not every figure is reached'}`);
} finally {
    await browser?.close();
    await place.done();
}
process.exit(rows.every(Boolean) ? 0 : 1);
