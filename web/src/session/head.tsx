// SPDX-License-Identifier: Apache-2.0
// How a session stands: its status, why, what moves it; who made it, with what, where from; and whether its log was verified.
import { useState } from 'react';
import { call, errorText } from '../api/client';
import { may } from '../api/token';
import { cost, count, plural, short } from '../model/format';
import { useQuery } from '../api/query';
import type { SessionLive } from '../model/session_page';
import { oneLine, visible } from '../model/text';
import { sessionPath, type Place } from '../place';
import { Badge, StatusBadge } from '../ui/badge';
import { Button, Link, Note, Time } from '../ui/parts';
import { MoveDialog, Moves } from './moves';
import { ResumeByItself } from './resume_by_itself';
import type { Form } from '../model/moves';
import { Sentence } from '../ui/sentence';
import './head.css';

function Verify({ id, wanted }: { id: string; wanted: boolean }) {
    const [said, setSaid] = useState<{ ok: boolean; text: string } | null>(null);
    const [busy, setBusy] = useState(false);
    const [asked, setAsked] = useState(false);
    const verify = () => {
        setBusy(true);
        setAsked(true);
        call('session.verify', { id })
            .then(v => setSaid({ ok: v.ok, text: v.ok ? `${plural(v.events, 'event')} verified` : (v.sessions[0]?.error ?? 'the log is damaged') }))
            .catch((e: unknown) => setSaid({ ok: false, text: errorText(e) }))
            .finally(() => setBusy(false));
    };
    if (wanted && !asked) queueMicrotask(verify);
    if (said) return <span title={visible(said.text)}><Badge tone={said.ok ? 'done' : 'fail'}>{oneLine(said.text, 60)}</Badge></span>;
    return <Button size="small" look="plain" busy={busy} onClick={verify}>Verify the log</Button>;
}

function More({ id, lastSeq }: { id: string; lastSeq: number }) {
    const [form, setForm] = useState<Form | null>(null);
    const forms: { form: Form; label: string; scope: string }[] = [
        { form: 'fork', label: 'Fork', scope: 'write' },
        { form: 'rollback', label: 'Roll back', scope: 'write' },
        { form: 'delete', label: 'Delete', scope: 'admin' },
    ];
    return (
        <>
            {forms.filter(f => may(f.scope)).map(f => <Button key={f.form} size="small" look="plain" onClick={() => setForm(f.form)}>{f.label}</Button>)}
            {form && <MoveDialog form={form} sessionId={id} given={form === 'fork' ? { at: lastSeq } : {}} onClose={() => setForm(null)} />}
        </>
    );
}

/* `isAsked`: the question stands below with its own form. */
export function SessionHead({ live, place, isAsked }: { live: SessionLive; place: Place; isAsked: boolean }) {
    const page = live.page;
    const task = useQuery('task.get', page?.session.task_id ? { task: page.session.task_id } : null); /* its title: read over all sessions, so beside the page */
    if (!page) return null;
    const s = page.session;
    const provider = s.provider as { type?: string; model?: string } | null;
    const facts: [string, React.ReactNode][] = [
        ['kind', s.kind ?? 'log'],
        ['task', s.task_id ? <Link to={`/tasks/${encodeURIComponent(s.task_id)}`}>{oneLine(task.data?.title ?? s.task_id, 60)}</Link> : null],
        ['agent', s.agent],
        ['model', provider?.model ?? provider?.type ?? null],
        ['directory', typeof s.working_dir === 'string' ? <span className="mono">{visible(s.working_dir)}</span> : null],
        ['events', count(live.lastSeq)],
        ['tokens', s.usage.input_tokens + s.usage.output_tokens ? `${short(s.usage.input_tokens)} in, ${short(s.usage.output_tokens)} out` : null],
        ['cost', s.usage.cost ? cost(s.usage.cost) : null],
        ['began', <Time key="t" at={s.created_at} />],
        ['fork of', s.parent ? <>
            <Link to={sessionPath(s.parent.session_id, `?at=${s.parent.seq}`)}>{s.parent.session_id} at {s.parent.seq}</Link>{' '}
            <Link className="faint" to={`/compare?a=${encodeURIComponent(s.parent.session_id)}&b=${encodeURIComponent(s.session_id)}`}>compare</Link>
        </> : null],
        ['held by', s.holder],
    ];
    return (
        <header className="head">
            <div className="row wrap">
                <Link to="/" className="button plain small" aria-label="All sessions">←</Link>
                <h1 className="said">{oneLine(s.title || s.session_id, 160)}</h1>
                <StatusBadge session={s} />
                {s.durability === 'degraded' && <Badge tone="wait">not yet on disk</Badge>}
                <span className="end row"><Verify id={s.session_id} wanted={place.params.has('verify')} /><More id={s.session_id} lastSeq={live.lastSeq} /></span>
            </div>
            <div className="head-why">
                <p className="grow said why"><Sentence text={s.why} /></p>
                <Moves session={s} skip={page.question && isAsked ? ['answer', 'prompt'] : ['prompt']} />
            </div>
            <ResumeByItself session={s} done={live.read} />
            {s.needs_resume && !s.is_resumable && <Note tone="cut" action={<Link className="button small" to={`/start?from=${encodeURIComponent(s.session_id)}`}>New session</Link>}>It cannot be resumed: {visible(s.error ?? s.why)}. What it said and did stays here.</Note>}
            {s.error && s.outcome === 'failed' && (s.failed_at_node || !s.why.includes(s.error)) && <Note tone="fail">{visible(s.error)}{s.failed_at_node && <> (at {visible(s.failed_at_node)})</>}</Note>}
            <dl className="facts">
                <div><dt>id</dt><dd className="mono">{s.session_id}</dd></div>
                {facts.filter(f => f[1] !== null && f[1] !== undefined && f[1] !== '').map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
            </dl>
        </header>
    );
}
