// SPDX-License-Identifier: Apache-2.0
// What a session asks, with the exact action that an approval is about, and the answer. Two people may answer at once: one answer
// counts, and the other one hears that the question is answered.
import { useState } from 'react';
import { ApiError, call } from '../api/client';
import { useDoing } from '../api/query';
import type { Actions } from '../api/schema';
import { may } from '../api/token';
import { visible } from '../model/text';
import { Button, Diff, Failure, Field, JsonText, Note, Time } from '../ui/parts';
import { toast } from '../ui/toast';

export type Question = NonNullable<Actions['session.page']['question']>;

function Action({ question }: { question: Question }) {
    if (!question.tool) return null;
    const args = question.args as Record<string, unknown> | null;
    const command = args && typeof args.command === 'string' ? args.command : null;
    return (
        <div className="col">
            <div className="row wrap small"><span className="tag mono">{question.tool}</span>{question.working_dir && <span className="faint mono">in {visible(question.working_dir)}</span>}</div>
            {question.diff ? <Diff text={question.diff} /> : command ? <pre className="json" tabIndex={0}>{visible(command)}</pre> : args ? <JsonText value={args} /> : null}
            {(question.diff || command) && args && <details className="small"><summary>All arguments</summary><JsonText value={args} /></details>}
        </div>
    );
}

export function AnswerForm({ sessionId, question, onDone }: { sessionId: string; question: Question; onDone?: () => void }) {
    const [text, setText] = useState('');
    const [reason, setReason] = useState('');
    const [missed, setMissed] = useState<string | null>(null);
    const doing = useDoing();
    const allowed = may('answer');

    const send = (input: string) => void doing.run(async () => {
        try {
            await call('session.answer', { id: sessionId, input, reason: reason || null });
        } catch (e) {
            if (e instanceof ApiError && (e.status === 409 || e.status === 410)) {
                setMissed(e.message);
                return;
            }
            throw e;
        }
        toast(question.approval ? (input === 'yes' ? 'Approved' : 'Denied') : 'Answered');
        onDone?.();
    });
    return (
        <div className="col answer" data-testid="question">
            <p className="said">{visible(question.text)}</p>
            <Action question={question} />
            {question.deadline_at && <p className="small dim">Until <Time at={question.deadline_at} />{question.default !== null && question.default !== undefined && <>, then by itself: <code>{JSON.stringify(question.default)}</code></>}</p>}
            {missed ? <Note tone="wait">Somebody was faster: {visible(missed)}</Note> : !allowed ? <Note>This token may not answer.</Note> : question.approval ? (
                <>
                    <div className="row wrap"><Button look="primary" busy={doing.busy} onClick={() => send('yes')}>Approve</Button><Button look="danger" disabled={doing.busy} onClick={() => send('no')}>Deny</Button>
                        <input className="input answer-reason" aria-label="Reason, optional" placeholder="Reason (optional, kept with the answer)" value={reason} onChange={e => setReason(e.target.value)} /></div>
                </>
            ) : (
                <form className="col" onSubmit={e => { e.preventDefault(); send(text); }}>
                    <Field label="Answer">{id => <textarea id={id} className="input" rows={2} value={text} onChange={e => setText(e.target.value)} onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) send(text); }} />}</Field>
                    <div className="row"><Button look="primary" type="submit" busy={doing.busy} disabled={!text}>Answer</Button></div>
                </form>
            )}
            {doing.error ? <Failure error={doing.error} /> : null}
        </div>
    );
}
