// SPDX-License-Identifier: Apache-2.0
// Every flow of the console, as a person goes through it, in a real browser on the real server.
//
//     node flows.mjs [NAME]            prints "ok - …" or "not ok - …" for each case
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { accessible, BIN, openBrowser, Place, until, Watch } from './harness.mjs';

const only = process.argv[2];
const shots = process.env.CONSOLE_SHOTS;
const place = new Place();
const watch = new Watch();
let browser, context, page;
let failed = 0;

const want = (got, expected, about = '') => {
    if (JSON.stringify(got) !== JSON.stringify(expected)) throw new Error(`${about} wants ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`);
};

async function open(options = {}) {
    context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', timezoneId: 'UTC', locale: 'en-GB', ...options });
    page = await context.newPage();
    page.setDefaultTimeout(15_000);
    watch.on(page);
    await page.goto(place.signInUrl());
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

const visit = to => page.evaluate(p => { history.pushState(null, '', p); dispatchEvent(new PopStateEvent('popstate')); }, to);
const line = id => page.locator(`[data-session="${id}"]`);
const log = id => place.ok('log', 'show', id, '--json').trim().split('\n').map(l => JSON.parse(l));
const status = id => JSON.parse(place.ok('why', id, '--json')).status;
async function shot(name) {
    if (shots) await page.screenshot({ path: `${shots}/${name}.png` });
}

const cases = {
    async a_code_signs_in_once_and_leaves_the_address() {
        const url = place.signInUrl();
        const other = await browser.newPage();
        watch.on(other);
        await other.goto(url);
        await other.getByRole('navigation', { name: 'Places' }).waitFor();
        want(new URL(other.url()).hash, '');
        const second = await (await browser.newContext()).newPage();
        await second.goto(url);
        await second.getByText('tidemark console').waitFor();
        await second.getByRole('alert').waitFor();
        want(await second.evaluate(() => sessionStorage.length), 0);
        await other.close();
        await second.close();
    },

    async sessions_say_why_they_do_not_move_and_have_the_button_that_moves_them() {
        await visit('/');
        await line('deploy').waitFor();
        await line('deploy').getByText('waiting', { exact: true }).waitFor();
        await line('deploy').getByText('Release 2.1 to everyone?').waitFor();
        await line('nightly').getByText('interrupted', { exact: true }).waitFor();
        await line('broken').getByText('failed', { exact: true }).waitFor();
        await line('nightly').getByRole('button', { name: 'Resume' }).click();
        await line('nightly').getByText('completed', { exact: true }).waitFor();
        want(log('nightly').filter(e => e.kind === 'tool.started' && e.tool === 'one').length, 1, 'the finished step ran once');
        await shot('sessions');
    },

    async filters_take_both_vocabularies_and_text_and_are_in_the_address() {
        await visit('/');
        await page.getByLabel('Status').selectOption('paused');
        await line('deploy').waitFor();
        await line('broken').waitFor({ state: 'detached' });
        want(new URL(page.url()).searchParams.get('status'), 'paused');
        await page.getByLabel('Status').selectOption('FAILED');
        await line('broken').waitFor();
        await page.getByLabel('Status').selectOption('');
        await page.getByLabel('Kind').selectOption('graph');
        await line('tides').waitFor();
        await page.getByLabel('Kind').selectOption('');
        await page.getByRole('searchbox').fill('everyone');
        await line('deploy').waitFor();
        await line('broken').waitFor({ state: 'detached' });
        await page.getByRole('searchbox').fill('no session is like this');
        await page.getByText('No session is like that').waitFor();
    },

    async the_list_is_live() {
        await visit('/');
        await line('deploy').waitFor();
        place.ok('sessions', 'new', '--id', 'fresh', '--title', 'Just made');
        await line('fresh').waitFor();
        const r = place.run('exec', '--session', 'fresh', '--', './hello.sh'); if (r.status) throw new Error(r.stderr);
        await line('fresh').getByText('completed', { exact: true }).waitFor();
        place.ok('sessions', 'delete', 'fresh', '--yes');
        await line('fresh').waitFor({ state: 'detached' });
    },

    async an_approval_is_given_from_the_inbox() {
        await visit('/inbox');
        const item = page.locator('[data-session="deploy"]');
        await item.getByText('Release 2.1 to everyone?').waitFor();
        await shot('inbox');
        await item.getByLabel('Reason, optional').fill('tests pass');
        await item.getByRole('button', { name: 'Approve' }).click();
        await item.waitFor({ state: 'detached' });
        await until(() => status('deploy') === 'idle', 'the run went on and completed');
        want(log('deploy').filter(e => e.kind === 'tool.completed').length, 2, 'steps that finished');
        want(JSON.stringify(log('deploy')).includes('tests pass'), true, 'the reason is in the log');
    },

    async of_two_answers_one_counts_and_both_see_which() {
        place.ok('sessions', 'new', '--id', 'twice', '--title', 'Twice');
        place.run('exec', '--session', 'twice', '--', './deploy.sh');
        await visit('/inbox');
        const item = page.locator('[data-session="twice"]');
        await item.getByRole('button', { name: 'Deny' }).waitFor();
        await page.route('**/answer', async route => {
            place.run('resume', 'twice', '--input', 'yes');
            await route.continue();
        });
        await item.getByRole('button', { name: 'Deny' }).click();
        await until(async () => (await item.count()) === 0 || (await item.getByText('Somebody was faster').count()) > 0, 'the loser hears of it');
        await page.unroute('**/answer');
        want(log('twice').filter(e => e.kind === 'run.resumed').length, 1, 'answers that count');
        await visit('/sessions/twice');
        await page.getByText('answered: yes').waitFor();
    },

    async a_conversation_is_followed_as_it_is_spoken_across_a_kill_of_the_server() {
        await visit(`/sessions/${place.chat}`);
        await page.getByText('neap tides between').waitFor();
        await page.getByLabel('Message').fill('And what else?');
        await page.getByRole('button', { name: 'Send' }).click();
        await page.getByText('Hostile:').waitFor();
        want(await page.evaluate(() => window.hacked), undefined, 'what a model says runs nothing');
        want(await page.locator('.bubble-model img, .bubble-model script').count(), 0);
        await page.getByText('\u241b[31mred').waitFor();
        await page.getByLabel('Message').fill('Say more.');
        await page.getByRole('button', { name: 'Send' }).click();
        await page.getByTestId('streaming').getByText('word3').waitFor();
        watch.mayMiss = true;
        await place.kill();
        await page.locator('.banner', { hasText: 'The server does not answer.' }).waitFor();
        await place.serve();
        await page.locator('.banner', { hasText: 'The server does not answer.' }).waitFor({ state: 'detached' });
        const resume = page.getByRole('button', { name: 'Resume' }).first();
        await until(async () => (await page.getByText('word59').count()) > 0 || (await resume.count()) > 0, 'it says what continues it');
        if ((await page.getByText('word59').count()) === 0) await resume.click();
        await page.locator('.bubble-model', { hasText: 'word59' }).or(page.locator('.bubble-model', { hasText: 'And the wind helps.' })).first().waitFor();
        await until(() => status(place.chat) === 'idle', 'the turn is over');
        const events = log(place.chat);
        want(events.filter(e => e.kind === 'message.user').length, 3, 'prompts, each once');
        await until(async () => (await page.locator('.bubble-user').count()) === 3, 'each prompt is shown once');
        watch.mayMiss = false;
        watch.said = [];
        await shot('conversation');
    },

    async a_moment_is_what_the_command_says() {
        await visit('/sessions/tides?tab=log');
        await page.getByRole('button', { name: /^Event 4,/ }).click();
        await page.getByTestId('at').getByText('4', { exact: true }).waitFor();
        const told = JSON.parse(place.ok('state', 'tides', '--at', '4'));
        const shown = JSON.parse(await page.evaluate(async () => {
            const token = JSON.parse(sessionStorage.getItem('tidemark.token')).token;
            return (await fetch('/api/v1/sessions/tides/state?at=4', { headers: { Authorization: `Bearer ${token}` } })).text();
        }));
        want(shown.content, told.content);
        for (const name of Object.keys(told.content.memory)) await page.locator('.memory dt', { hasText: name }).first().waitFor();
        await page.getByRole('button', { name: 'One event on' }).click();
        await page.getByTestId('at').getByText('5', { exact: true }).waitFor();
        want(new URL(page.url()).searchParams.get('at'), '5', 'the moment is in the address');
        await shot('state');
        await page.getByRole('button', { name: 'Back to now' }).click();
        await page.getByRole('complementary', { name: /The state as of/ }).waitFor({ state: 'detached' });
        await page.getByRole('tab', { name: 'Log' }).focus();
        await page.keyboard.press('[');
        await page.getByRole('complementary', { name: /The state as of/ }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('complementary', { name: /The state as of/ }).waitFor({ state: 'detached' });
    },

    async a_graph_is_drawn_with_its_states_and_answered() {
        await visit('/sessions/tides');
        await page.locator('[data-node="a"]').waitFor();
        await until(async () => (await page.locator('[data-node="a"]').getAttribute('aria-label'))?.includes('completed'), 'a is completed');
        await shot('graph');
        await page.getByRole('tab', { name: 'Conversation' }).click();
        await page.getByTestId('question').getByLabel('Answer').fill('yes it is');
        await page.getByRole('button', { name: 'Answer', exact: true }).click();
        await until(() => status('tides') === 'idle', 'the graph went on');
        await page.getByRole('tab', { name: 'Graph' }).click();
        await until(async () => (await page.locator('[data-node="c"]').getAttribute('aria-label'))?.includes('completed'), 'c is completed');
    },

    async a_timeline_shows_runs_and_a_click_shows_the_state_of_then() {
        await visit('/sessions/nightly?tab=timeline');
        await page.getByText('run 1', { exact: true }).waitFor();
        await page.getByText('run 2', { exact: true }).waitFor();
        await page.locator('.tl-item', { hasText: 'one' }).first().click();
        await page.getByRole('complementary', { name: /The state as of/ }).waitFor();
        await page.getByRole('button', { name: 'Zoom in' }).click();
        await page.getByRole('button', { name: 'All', exact: true }).click();
        await shot('timeline');
    },

    async forks_and_rollbacks_are_made_and_undone() {
        await visit('/sessions/deploy-old');
        await page.getByRole('button', { name: 'Fork' }).click();
        await page.getByRole('dialog').getByLabel('At', { exact: true }).fill('4');
        await page.getByRole('dialog').getByLabel('Its id').fill('forked');
        await page.getByRole('dialog').getByRole('button', { name: 'Fork' }).click();
        await page.getByRole('link', { name: 'deploy-old at 4' }).waitFor();
        want(JSON.parse(place.ok('sessions', 'show', 'forked', '--json')).parent, { session_id: 'deploy-old', seq: 4 });
        place.ok('sessions', 'new', '--id', 'notes');
        for (const n of [1, 2, 3]) place.ok('log', 'append', 'notes', '--kind', 'memory.set', '--data', JSON.stringify({ values: { n } }));
        await visit('/sessions/notes');
        await page.getByRole('button', { name: 'Roll back' }).click();
        await page.getByRole('dialog').getByLabel('To', { exact: true }).fill('2');
        await page.getByRole('dialog').getByRole('button', { name: 'See what it undoes' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
        await page.getByRole('button', { name: 'Undo' }).waitFor();
        want(JSON.parse(place.ok('state', 'notes')).content.memory.n, 1);
        await page.getByRole('button', { name: 'Undo' }).click();
        await until(() => JSON.parse(place.ok('state', 'notes')).content.memory.n === 3, 'the rollback is undone');
    },

    async checkpoints_are_made_and_compared() {
        await visit('/sessions/notes?tab=checkpoints');
        for (const name of ['before', 'after']) {
            await page.getByLabel('Description of a new checkpoint').fill(name);
            await page.getByRole('button', { name: 'Make a checkpoint' }).click();
            await page.locator('.checkpoints li', { hasText: name }).waitFor();
            place.ok('log', 'append', 'notes', '--kind', 'memory.set', '--data', JSON.stringify({ values: { word: name } }));
        }
        for (const box of await page.getByRole('checkbox', { name: /to compare/ }).all()) await box.check();
        await page.getByRole('button', { name: 'Compare the chosen two' }).click();
        await page.getByRole('cell', { name: '"before"' }).waitFor();
        await shot('compare');
    },

    async a_fork_is_compared_with_its_parent() {
        await visit('/sessions/forked');
        await page.getByRole('link', { name: 'compare', exact: true }).click();
        await page.getByRole('region', { name: 'Said in deploy-old' }).getByText('publish').waitFor();
        await page.getByRole('region', { name: 'Said in forked' }).waitFor();
        await shot('compare-forks');
    },

    async a_graph_is_resumed_from_a_checkpoint_with_a_value_after_its_verdict() {
        place.put('graphs/word.json', JSON.stringify({ tidemark_graph: 1, id: 'word', entry: 'a', memory: { word: 'low' }, nodes: [{ id: 'a', type: 'lua', inputs: ['word'], outputs: ['end'], code: "if memory.word ~= 'high' then error('the word is ' .. memory.word) end return {['end'] = memory.word}" }], edges: [] }));
        place.run('run', `${place.graphs}/word.json`, '--session', 'word');
        await visit('/sessions/word?tab=checkpoints');
        await page.locator('.checkpoints').getByRole('button', { name: 'Resume' }).first().click();
        const dialog = page.getByRole('dialog');
        want(await dialog.getByRole('button', { name: 'Resume', exact: true }).isDisabled(), true, 'the verdict comes first:');
        await dialog.getByRole('button', { name: 'Add a value' }).click();
        await dialog.getByLabel('Name').fill('word');
        await dialog.getByLabel('Value of word').fill('high');
        await dialog.getByRole('button', { name: 'See what would happen' }).click();
        await dialog.getByTestId('verdict').getByText('word', { exact: true }).waitFor();
        want(log('word').filter(e => e.kind === 'run.started').length, 1, 'a verdict runs nothing:');
        await accessible(page);
        await shot('resume');
        await dialog.getByRole('button', { name: /^(Resume|Roll back and resume)$/ }).click();
        await until(() => status('word') === 'idle' && JSON.parse(place.ok('state', 'word')).content.memory.end === 'high', 'it completes with the value');
    },

    async an_interrupted_session_is_resumed_by_itself_where_the_browser_is_set_so() {
        rmSync(`${place.work}/go`);
        const cut = spawn(BIN, ['exec', '--session', 'again', '--', './cut.sh'], { cwd: place.work, env: place.env, stdio: 'ignore' });
        await until(() => place.run('log', 'show', 'again', '--json').stdout.includes('"two"'), 'the program is in its second step');
        cut.kill('SIGKILL');
        await new Promise(done => cut.once('exit', done));
        place.put('work/go', '');
        await visit('/sessions/again');
        await page.getByRole('button', { name: 'Resume session' }).waitFor();
        want(log('again').filter(e => e.kind === 'run.started').length, 1, 'nothing is resumed unasked:');
        await page.getByRole('checkbox', { name: /by themselves/ }).check();
        await page.getByText('completed', { exact: true }).first().waitFor();
        want(log('again').filter(e => e.kind === 'tool.started' && e.tool === 'one').length, 1, 'the finished step ran once:');
        await visit('/access');
        await page.getByRole('checkbox', { name: /by themselves/ }).uncheck();
    },

    async ages_are_by_the_clock_of_the_server() {
        const hour = 3_600_000;
        await page.route('**/api/v1/**', async route => {
            const response = await route.fetch();
            await route.fulfill({ response, headers: { ...response.headers(), date: new Date(Date.now() + hour).toUTCString() } });
        });
        await visit('/');
        await visit('/access');
        await page.getByText(/The clock of this machine is .* behind the server's/).waitFor();
        await visit('/');
        await line('deploy').locator('.line-age', { hasText: '1h' }).waitFor();
        await page.unroute('**/api/v1/**');
        await visit('/access');
        await page.getByText('The clock of this machine').waitFor({ state: 'detached' });
    },

    async a_page_of_an_older_version_says_so() {
        watch.mayMiss = true;
        await visit('/');
        const other = url => url.pathname === '/';
        await page.route(other, route => (route.request().resourceType() === 'document' ? route.continue() : route.fulfill({ contentType: 'text/html', body: '<script type="module" src="/assets/index-another.js"></script>' })));
        await place.kill();
        await page.locator('.banner', { hasText: 'The server does not answer.' }).waitFor();
        await place.serve();
        await page.getByText('This page is of an older version').waitFor();
        await page.unroute(other);
        await page.getByRole('button', { name: 'Load it again' }).click();
        await line('deploy').waitFor();
        want(await page.getByText('This page is of an older version').count(), 0);
        watch.mayMiss = false;
        watch.said = [];
    },

    async what_the_settings_name_is_started() {
        await visit('/start?what=program');
        await page.getByLabel('Title').fill('Started here');
        await page.getByRole('button', { name: 'Start', exact: true }).click();
        await page.getByRole('heading', { name: 'Started here' }).waitFor();
        await page.getByText('completed', { exact: true }).first().waitFor();
        await visit('/start?what=graph');
        await page.getByRole('button', { name: 'Start', exact: true }).click();
        await page.getByText('Is it high?').first().waitFor();
        await visit('/start');
        await page.getByLabel('First message').fill('Good morning');
        await page.getByRole('button', { name: 'Start', exact: true }).click();
        await page.locator('.bubble-user', { hasText: 'Good morning' }).waitFor();
    },

    async a_graph_is_checked_drawn_uploaded_and_run() {
        await visit('/graphs');
        const box = page.getByLabel('The graph, as JSON');
        await box.fill('{"tidemark_graph":1,"id":"waves","entry":"a","nodes":[]}');
        await page.locator('.note.fail').first().waitFor();
        await box.fill('{"tidemark_graph":1,"id":"waves","entry":"a","nodes":[{"id":"a","type":"lua","outputs":["x"],"code":"return {x = 1}"}],"edges":[]}');
        await page.getByText('It can run: 1 nodes').waitFor();
        await page.locator('[data-node="a"]').first().waitFor();
        await page.getByRole('button', { name: 'Upload' }).click();
        await page.getByRole('button', { name: 'Run it' }).click();
        await page.getByText('completed', { exact: true }).first().waitFor();
    },

    async tasks_keep_their_sessions_apart() {
        await visit('/tasks');
        await page.getByText('release').first().click();
        await page.locator('[data-session="deploy"]').waitFor();
        await page.locator('[data-session="deploy-old"]').waitFor();
        want(await page.locator('[data-session="broken"]').count(), 0);
        await page.getByLabel('State').fill('REVIEW');
        await page.getByRole('button', { name: 'Save' }).click();
        await until(() => JSON.parse(place.ok('tasks', 'show', 'release', '--json')).state === 'REVIEW', 'the state is set');
        await shot('task');
    },

    async what_came_from_elsewhere_is_trusted_only_as_it_was_shown() {
        const file = `${place.dir}/elsewhere.jsonl`;
        const other = `sqlite:${place.dir}/data/other.db`;
        place.run('exec', '--store', other, '--session', 'elsewhere', '--', './bad.sh');
        place.put('elsewhere.jsonl', place.ok('sessions', 'export', 'elsewhere', '--store', other));
        place.ok('sessions', 'import', file);
        await visit('/sessions/elsewhere');
        await page.getByRole('button', { name: 'Trust' }).first().click();
        await page.getByRole('dialog').getByText('bad.sh').first().waitFor();
        await accessible(page);
        await shot('trust');
        await page.getByRole('dialog').getByRole('button', { name: 'Trust exactly this' }).click();
        await until(() => JSON.parse(place.ok('sessions', 'show', 'elsewhere', '--json')).trusted, 'it is trusted');
    },

    async a_deleted_session_says_so_while_it_is_looked_at() {
        place.ok('sessions', 'new', '--id', 'going');
        await visit('/sessions/going');
        await page.getByRole('heading', { name: 'going' }).waitFor();
        place.ok('sessions', 'delete', 'going', '--yes');
        await page.getByText('This session was deleted').waitFor();
    },

    async everything_is_named_for_screen_readers() {
        for (const scheme of ['light', 'dark']) {
            await page.emulateMedia({ colorScheme: scheme });
            await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))); /* drawn in it */
            await until(() => page.evaluate(dark => getComputedStyle(document.body).backgroundColor === (dark ? 'rgb(15, 21, 22)' : 'rgb(246, 247, 247)'), scheme === 'dark'), `the page is ${scheme}`); /* the page's policy stops what polls inside of it */
            for (const to of ['/', '/inbox', '/tasks', '/tasks/release', '/graphs', '/start', '/access', '/torture', '/compare', '/sessions/tides', '/sessions/nightly?tab=timeline&at=3', '/sessions/deploy?tab=log', '/sessions/deploy?tab=conversation', '/sessions/notes?tab=checkpoints', `/sessions/${place.chat}?tab=usage`, '/sessions/deploy?tab=raw']) {
                await visit(to);
                await page.getByRole('heading', { level: 1 }).first().waitFor();
                await page.waitForLoadState('networkidle').catch(() => undefined);
                try {
                    await accessible(page);
                } catch (e) {
                    throw new Error(`${scheme} ${to}: ${e.message}`);
                }
            }
        }
        await page.emulateMedia({ colorScheme: 'light' });
    },

    async the_keyboard_does_all_of_it() {
        await visit('/');
        await line('deploy').waitFor();
        await page.keyboard.press('?');
        await page.getByRole('dialog', { name: 'Keys' }).waitFor();
        await page.keyboard.press('Escape');
        await page.keyboard.press('j');
        await page.keyboard.press('j');
        await page.keyboard.press('Enter');
        await page.getByRole('tablist', { name: 'Views of the session' }).waitFor();
        await page.keyboard.press('g');
        await page.keyboard.press('i');
        await page.getByRole('heading', { name: 'Inbox' }).waitFor();
        await page.keyboard.press('g');
        await page.keyboard.press('s');
        await page.getByRole('heading', { name: 'Sessions' }).waitFor();
        await page.keyboard.press('/');
        want(await page.evaluate(() => document.activeElement?.getAttribute('type')), 'search');
    },

    async a_phone_is_wide_enough() {
        await page.setViewportSize({ width: 360, height: 740 });
        for (const to of ['/', '/inbox', '/sessions/deploy', '/sessions/tides', '/sessions/nightly?tab=timeline', '/tasks', '/access']) {
            await visit(to);
            await page.getByRole('heading', { level: 1 }).first().waitFor();
            const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            want(wide <= 0, true, `${to} is ${wide} px too wide:`);
        }
        await shot('phone');
        await page.setViewportSize({ width: 1280, height: 800 });
    },

    async a_long_hostile_line_leaves_the_page_usable() {
        place.put('work/long.json', JSON.stringify({ turn: 1, content: `${'x'.repeat(10 * 1024 * 1024)}<script>window.hacked=1</script>` }));
        place.ok('sessions', 'new', '--id', 'long', '--title', '\u202eevil\u001b[2J<b>bold</b>');
        place.ok('log', 'append', 'long', '--kind', 'message.user', '--data', `@${place.work}/long.json`);
        await visit('/sessions/long');
        await page.getByText('Show more').waitFor();
        want(await page.locator('h1 b').count(), 0);
        want((await page.getByRole('heading', { level: 1 }).innerText()).includes('\u202e'), false);
        const began = Date.now();
        await page.getByRole('tab', { name: 'Log' }).click();
        await page.getByRole('button', { name: /^Event 2/ }).waitFor();
        want(Date.now() - began < 3000, true, 'the log opens soon:');
        want(await page.evaluate(() => window.hacked), undefined);
    },

    async a_revoked_token_signs_the_page_out() {
        await visit('/access');
        const own = await page.evaluate(() => JSON.parse(sessionStorage.getItem('tidemark.token')).name);
        watch.mayMiss = true;
        place.ok('access', 'revoke', own);
        await page.getByText('tidemark console').waitFor();
        want(await page.evaluate(() => sessionStorage.length), 0);
        watch.said = [];
        watch.mayMiss = false;
        await context.close();
        await open();
    },
};

try {
    await place.story();
    await place.serve();
    browser = await openBrowser();
    await open();
    for (const [name, run] of Object.entries(cases)) {
        if (only && !name.includes(only)) continue;
        try {
            await run();
            watch.check();
            console.log(`ok - ${name.replaceAll('_', ' ')}`);
        } catch (e) {
            failed++;
            console.log(`not ok - ${name.replaceAll('_', ' ')}: ${e.message.split('\n').slice(0, 12).join(' | ')}`);
            if (process.env.CONSOLE_FAILED) await page.screenshot({ path: `${process.env.CONSOLE_FAILED}/${name}.png` }).catch(() => undefined);
            watch.said = [];
            watch.mayMiss = false;
            await page.unrouteAll?.().catch(() => undefined);
            if (place.server.exitCode !== null || place.server.signalCode !== null) await place.serve();
            if ((await page.getByRole('navigation', { name: 'Places' }).count().catch(() => 0)) === 0 || (await page.getByRole('dialog').count()) > 0) {
                await context.close();
                await open();
            }
        }
    }
} finally {
    await browser?.close();
    await place.done();
}
process.exit(failed ? 1 : 0);
