// SPDX-License-Identifier: Apache-2.0
// What can be started here is in the server's settings: chats, graphs beneath its roots, programs by name.
import { useEffect, useState } from 'react';
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import { may } from '../api/token';
import { visible } from '../model/text';
import { go, sessionPath, withParams, type Place } from '../place';
import { Button, Empty, Failure, Field, Link, Loading, Note, Tabs } from '../ui/parts';

function parseSet(text: string): Record<string, unknown> | null {
    if (!text.trim()) return null;
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('The values must be one JSON object, such as {"topic": "tides"}.');
    return value as Record<string, unknown>;
}

export default function Start({ place }: { place: Place }) {
    const can = useQuery('store.startable', {});
    const what = place.params.get('what') ?? 'chat';
    const [title, setTitle] = useState('');
    const [task, setTask] = useState(place.params.get('task_id') ?? '');
    const [prompt, setPrompt] = useState('');
    const [chosen, setChosen] = useState('');
    const [dir, setDir] = useState('');
    const [set, setSet] = useState('');
    const from = place.params.get('from');
    const model = useQuery('session.get', from ? { id: from } : null);
    const doing = useDoing();

    useEffect(() => { /* instead of a session that cannot be resumed: what it was, to be changed */
        const s = model.data;
        if (!s) return;
        setTitle(s.title ?? '');
        setTask(s.task_id ?? '');
        if (typeof s.working_dir === 'string') setDir(s.working_dir);
        if (s.kind === 'graph' || s.kind === 'program') go(withParams(place, { what: s.kind }), 'replace');
    }, [model.data]);

    if (!may('run')) return <><h1>Start a session</h1><Note>This token may not start anything: it needs the scope run.</Note></>;
    if (can.error) return <><h1>Start a session</h1><Failure error={can.error} retry={can.read} /></>;
    if (!can.data) return <Loading what="Reading what can be started" />;
    const { programs, graphs, working_roots, chat } = can.data;
    const needsRoot = (what === 'chat' || what === 'graph') && working_roots.length === 0;
    const options = what === 'program' ? programs.map(p => p.name) : what === 'graph' ? graphs : [];
    const selected = chosen || options[0] || '';
    const start = () => void doing.run(async () => {
        const made = await call('session.create', {
            kind: what as 'chat' | 'graph' | 'program' | 'log', title: title || null, task_id: task || null,
            ...(what === 'chat' ? { prompt, working_dir: dir || null } : {}),
            ...(what === 'graph' ? { graph: selected, working_dir: dir || null, set: parseSet(set) as never } : {}),
            ...(what === 'program' ? { program: selected, set: parseSet(set) as never } : {}),
        });
        go(sessionPath(made.session_id));
    });
    const setting = { chat: 'server_working_roots', graph: 'server_graph_roots', program: 'server_programs' }[what];
    const isEmpty = what === 'chat' ? !chat : what !== 'log' && options.length === 0;
    return (
        <>
            <div className="page-head"><h1>Start a session</h1></div>
            {from && <Note>Instead of <Link to={sessionPath(from)}>{visible(model.data?.title || from)}</Link>, which stays as it is.</Note>}
            <Tabs label="What to start" current={what} onPick={id => { setChosen(''); doing.clear(); go(withParams(place, { what: id === 'chat' ? null : id }), 'replace'); }} tabs={[{ id: 'chat', label: 'Chat' }, { id: 'graph', label: 'Graph', count: graphs.length }, { id: 'program', label: 'Program', count: programs.length }, { id: 'log', label: 'Empty log' }]} />
            <div role="tabpanel" id={`panel-${what}`} aria-labelledby={`tab-${what}`}>
                {isEmpty || needsRoot ? (
                    <Empty title={what === 'chat' ? 'No chat can be started here yet' : what === 'graph' ? 'No graph is offered here yet' : 'No program is offered here yet'}>
                        <p>What requests may start is in the settings of the machine that the server runs on:</p>
                        <code>{what === 'program' ? 'tidemark config set server_programs \'{"deploy": {"argv": ["./deploy.sh"], "cwd": "~/work"}}\'' : `tidemark config set ${needsRoot ? 'server_working_roots' : setting} '["~/${needsRoot ? 'work' : 'graphs'}"]'`}</code>
                        {what === 'graph' && <p><Link to="/graphs">Or upload a graph</Link></p>}
                        <Button onClick={can.read}>Look again</Button>
                    </Empty>
                ) : (
                    <form className="card pad col" onSubmit={e => { e.preventDefault(); start(); }}>
                        {what === 'chat' && <Field label="First message" help={chat?.model ? `Asked of ${chat.model}` : `Asked of the provider ${chat?.provider}`}>{id => <textarea id={id} className="input" rows={4} value={prompt} onChange={e => setPrompt(e.target.value)} autoFocus />}</Field>}
                        {options.length > 0 && <Field label={what === 'program' ? 'Program' : 'Graph'}>{id => <select id={id} className="input" value={selected} onChange={e => setChosen(e.target.value)}>{options.map(o => <option key={o} value={o}>{visible(o)}</option>)}</select>}</Field>}
                        {what === 'program' && <p className="small faint mono">{programs.filter(p => p.name === selected).map(p => `${visible(p.argv0)} in ${visible(p.cwd ?? '')}`)}</p>}
                        {(what === 'chat' || what === 'graph') && working_roots.length > 0 && <Field label="Directory" help={`Beneath ${working_roots.map(visible).join(', ')}; empty: the first of them.`}>{id => <input id={id} className="input mono" list="roots" value={dir} onChange={e => setDir(e.target.value)} />}</Field>}
                        <datalist id="roots">{working_roots.map(r => <option key={r} value={r} />)}</datalist>
                        {(what === 'graph' || what === 'program') && <Field label="Values" help='One JSON object, such as {"topic": "tides"}.'>{id => <textarea id={id} className="input mono" rows={3} value={set} onChange={e => setSet(e.target.value)} />}</Field>}
                        <div className="row wrap top"><Field label="Title">{id => <input id={id} className="input" value={title} onChange={e => setTitle(e.target.value)} />}</Field><Field label="Task">{id => <input id={id} className="input" value={task} onChange={e => setTask(e.target.value)} />}</Field></div>
                        {doing.error ? <Failure error={doing.error} /> : null}
                        <div className="row"><Button type="submit" look="primary" busy={doing.busy} disabled={what === 'chat' && !prompt.trim()}>{what === 'log' ? 'Make it' : 'Start'}</Button></div>
                    </form>
                )}
            </div>
        </>
    );
}
