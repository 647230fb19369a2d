// SPDX-License-Identifier: Apache-2.0
// Tasks, by state; a task with its sessions side by side. A session is of one task: another's never appears here in its place.
import { useEffect, useRef, useState } from 'react';
import { call, errorText } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import type { Tasks as TaskList } from '../api/schema';
import { may } from '../api/token';
import { useAll } from '../model/all';
import { plural } from '../model/format';
import { oneLine, visible } from '../model/text';
import { sessionPath, type Place } from '../place';
import { Moves } from '../session/moves';
import { StatusBadge } from '../ui/badge';
import { Age, Button, Empty, Failure, Field, Link, Loading } from '../ui/parts';
import { toast } from '../ui/toast';
import { Sentence } from '../ui/sentence';
import './tasks.css';

const COLUMNS: [string, string[]][] = [['Running', ['RUNNING']], ['Waiting for input', ['WAITING_FOR_INPUT']], ['Needs attention', ['FAILED', 'ERROR', 'CANCELLED']], ['Review', ['REVIEW']], ['Done', ['COMPLETED']]];
type Task = TaskList['tasks'][number];

const columnOf = (state: string) => COLUMNS.find(([, states]) => states.includes(state))?.[0] ?? 'Other';

function useSoon(read: () => void, ms: number) {
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    useEffect(() => () => clearTimeout(timer.current), []);
    return () => {
        clearTimeout(timer.current);
        timer.current = setTimeout(read, ms);
    };
}

function Card({ task }: { task: Task }) {
    return (
        <Link className="card pad task-card" to={`/tasks/${encodeURIComponent(task.task_id)}`}>
            <b className="said">{oneLine(task.title ?? task.task_id, 100)}</b>
            <span className="row wrap tiny faint"><span>{plural(task.sessions, 'session')}</span>{task.running > 0 && <span>{task.running} running</span>}{task.waiting > 0 && <span>{task.waiting} waiting</span>}{task.is_set && <span className="tag">set by a person</span>}<span className="end"><Age at={task.updated_at} /></span></span>
        </Link>
    );
}

function Board() {
    const list = useQuery('task.list', { limit: 500 });
    const soon = useSoon(list.read, 500);
    useAll({ onState: s => { if (s.task_id) soon(); }, onGone: soon, onStale: list.read });

    if (list.error) return <Failure error={list.error} retry={list.read} />;
    if (!list.data) return <Loading what="Reading the tasks" />;
    if (list.data.tasks.length === 0) return <Empty title="No task yet"><p>A session that is started with a task appears here:</p><code>tidemark sessions new --id deploy --task-id release &amp;&amp; tidemark exec --session deploy -- ./deploy.sh</code></Empty>;
    const columns = [...COLUMNS.map(([name]) => name), 'Other'].map(name => ({ name, tasks: list.data!.tasks.filter(t => columnOf(t.state) === name) })).filter(c => c.tasks.length > 0);
    return <div className="board">{columns.map(c => <section key={c.name} aria-label={c.name}><h2>{c.name} <span className="faint">{c.tasks.length}</span></h2><div className="col">{c.tasks.map(t => <Card key={t.task_id} task={t} />)}</div></section>)}</div>;
}

function Edit({ task, onDone }: { task: Task; onDone: () => void }) {
    const [title, setTitle] = useState(task.title ?? '');
    const [state, setState] = useState(task.is_set ? task.state : '');
    const doing = useDoing();
    const save = (next: string) => void doing.run(async () => {
        await call('task.update', { task: task.task_id, state: next, title: title || null }, { ifMatch: task.seq });
        toast(next ? `Set: ${next}` : 'Follows its sessions again', { label: 'Undo', run: () => void call('task.update', { task: task.task_id, state: task.is_set ? task.state : '', title: task.title }).then(onDone).catch((e: unknown) => toast(errorText(e))) });
        onDone();
    });
    return (
        <form className="row wrap top" onSubmit={e => { e.preventDefault(); save(state.trim()); }}>
            <Field label="Title">{id => <input id={id} className="input" value={title} onChange={e => setTitle(e.target.value)} />}</Field>
            <Field label="State" help={`From its sessions: ${task.derived_state}`}>{id => <input id={id} className="input" list="states" value={state} placeholder={task.derived_state} onChange={e => setState(e.target.value.toUpperCase())} />}</Field>
            <datalist id="states"><option>REVIEW</option><option>COMPLETED</option><option>WAITING_FOR_INPUT</option></datalist>
            <div className="row task-save"><Button type="submit" look="primary" busy={doing.busy}>Save</Button>{task.is_set && <Button onClick={() => { setState(''); save(''); }}>Follow its sessions</Button>}</div>
            {doing.error ? <Failure error={doing.error} /> : null}
        </form>
    );
}

function Task({ id }: { id: string }) {
    const task = useQuery('task.get', { task: id });
    const sessions = useQuery('task.sessions', { task: id, limit: 100 });
    const soon = useSoon(() => { task.read(); sessions.read(); }, 300);
    useAll({ onState: s => { if (s.task_id === id) soon(); }, onGone: soon, onStale: soon });

    if (task.error) return <><Link to="/tasks">All tasks</Link><Failure error={task.error} retry={task.read} /></>;
    if (!task.data) return <Loading what="Reading the task" />;
    return (
        <>
            <div className="page-head"><Link to="/tasks" className="button plain small" aria-label="All tasks">←</Link><h1 className="said">{visible(task.data.title ?? task.data.task_id)}</h1><span className="tag">{task.data.state}</span>{may('run') && <span className="end"><Link className="button primary" to={`/start?task_id=${encodeURIComponent(id)}`}>Start a session</Link></span>}</div>
            {may('write') && <Edit key={task.data.seq} task={task.data} onDone={() => { task.read(); sessions.read(); }} />}
            {sessions.error ? <Failure error={sessions.error} retry={sessions.read} /> : null}
            <ul className="beside">
                {sessions.data?.sessions.map(s => (
                    <li key={s.session_id} className="card pad col" data-session={s.session_id}>
                        <div className="row wrap"><StatusBadge session={s} /><span className="tag">{s.kind}</span><span className="end small faint"><Age at={s.updated_at} /></span></div>
                        <Link className="line-title" to={sessionPath(s.session_id)}>{oneLine(s.title || s.session_id, 120)}</Link>
                        <p className="small dim said why"><Sentence text={s.why} /></p>
                        {s.needs_resume && s.is_resumable && <p className="small">It was interrupted and can be resumed.</p>}
                        <Moves session={s} />
                    </li>
                ))}
            </ul>
        </>
    );
}

export default function Tasks({ place }: { place: Place }) {
    const id = place.segments[1];
    return id ? <Task key={id} id={id} /> : <><div className="page-head"><h1>Tasks</h1></div><Board /></>;
}
