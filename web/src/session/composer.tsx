// SPDX-License-Identifier: Apache-2.0
// A message to the session, and those that wait for their turn. It is on disk when the box is empty again; until then what was written
// stays in the box.
import { useEffect, useRef, useState } from 'react';
import { call, errorText } from '../api/client';
import { useDoing } from '../api/query';
import { may } from '../api/token';
import type { SessionLive } from '../model/session_page';
import { oneLine } from '../model/text';
import { Button, Failure } from '../ui/parts';
import { toast } from '../ui/toast';

export function Composer({ id, live, isWanted }: { id: string; live: SessionLive; isWanted: boolean }) {
    const [text, setText] = useState('');
    const [queueOnly, setQueueOnly] = useState(false);
    const box = useRef<HTMLTextAreaElement>(null);
    const doing = useDoing();
    const session = live.page?.session;
    const queue = live.page?.queue ?? [];

    useEffect(() => { if (isWanted) box.current?.focus(); }, [isWanted]);
    if (!session || !may('write') || session.kind === 'task' || (session.kind === 'log' && !session.next.some(n => n.action === 'prompt'))) return null;
    const send = () => void doing.run(async () => {
        const done = await call('message.send', { id, content: text, queue: queueOnly || null });
        setText('');
        if (done.queue_id && !done.run_id) toast('Queued: its next run takes it');
        live.read();
    });
    return (
        <div className="col composer conversation">
            {queue.length > 0 && (
                <ul className="card pad col" aria-label="Queued messages">
                    {queue.map(m => (
                        <li key={m.queue_id} className="row small"><span className="tag">queued</span><span className="grow one-line">{oneLine(typeof m.content === 'string' ? m.content : JSON.stringify(m.content), 200)}</span>
                            <Button size="small" look="plain" onClick={() => void doing.run(async () => { await call('queue.withdraw', { id, queue: m.queue_id }); live.read(); const said = m.content; toast('Withdrawn', typeof said === 'string' ? { label: 'Undo', run: () => void call('message.send', { id, content: said, queue: true }).then(live.read).catch((e: unknown) => toast(errorText(e))) } : undefined); })}>Withdraw</Button></li>
                    ))}
                </ul>
            )}
            <form onSubmit={e => { e.preventDefault(); if (text.trim()) send(); }} className="col">
                <textarea ref={box} className="input" rows={3} aria-label="Message" placeholder={session.status === 'running' ? 'It runs: a message waits for its turn' : 'Write a message'} value={text} onChange={e => setText(e.target.value)} onKeyDown={e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && text.trim()) send(); }} />
                <div className="row"><label className="row small dim"><input type="checkbox" checked={queueOnly} onChange={e => setQueueOnly(e.target.checked)} />only queue it</label><span className="end faint tiny">Ctrl+Enter sends</span><Button look="primary" type="submit" busy={doing.busy} disabled={!text.trim()}>Send</Button></div>
            </form>
            {doing.error ? <Failure error={doing.error} /> : null}
        </div>
    );
}
