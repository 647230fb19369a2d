// SPDX-License-Identifier: Apache-2.0
// Back to an earlier position, after a look at what that undoes. What happened in the world stays happened.
import { useState } from 'react';
import { ApiError, call } from '../api/client';
import { useDoing } from '../api/query';
import { plural } from '../model/format';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, Field, Note } from '../ui/parts';
import { toast } from '../ui/toast';

export default function RollbackDialog({ sessionId, given, onClose }: DialogProps) {
    const [to, setTo] = useState(given.to === undefined || given.to === null ? '' : String(given.to));
    const [reason, setReason] = useState('');
    const [effects, setEffects] = useState<'refuse' | 'reuse' | 'redo'>('refuse');
    const doing = useDoing();
    const chosen = to.trim();
    const options = { reuse_effects: effects === 'reuse' || null, redo_effects: effects === 'redo' || null };
    const [undone, setUndone] = useState<{ to: string; data: { undone: Record<string, unknown> } } | null>(null);

    const look = () => void doing.run(async () => setUndone({ to: chosen, data: await call('session.rollback', { id: sessionId, to: chosen, dry_run: true, ...options }) as never }));
    const back = () => void doing.run(async () => {
        const before = await call('session.get', { id: sessionId });
        await call('session.rollback', { id: sessionId, to: chosen, reason: reason || null, ...options });
        toast(`Rolled back to ${chosen}`, before.last_seq ? { label: 'Undo', run: () => void call('session.rollback', { id: sessionId, to: before.last_seq ?? 0, reason: 'undone' }).catch((e: unknown) => toast(e instanceof Error ? e.message : String(e))) } : undefined);
        onClose();
    });
    const isKnown = undone?.to === chosen && !doing.error;
    const numbers = isKnown ? Object.entries(undone?.data.undone ?? {}).filter((e): e is [string, number] => typeof e[1] === 'number' && e[1] > 0) : [];
    const once = isKnown ? ((undone?.data.undone.once_effects as string[] | undefined) ?? []) : [];
    return (
        <Dialog title={`Roll back ${sessionId}`} onClose={onClose} footer={<><Button onClick={onClose}>Close</Button>{isKnown ? <Button look="danger" busy={doing.busy} onClick={back}>Roll back</Button> : <Button look="primary" busy={doing.busy} disabled={!chosen} onClick={look}>See what it undoes</Button>}</>}>
            <Field label="To" help="A seq or the id of a checkpoint.">{id => <input id={id} className="input mono" value={to} onChange={e => setTo(e.target.value)} />}</Field>
            <Field label="Reason" help="Kept in the log.">{id => <input id={id} className="input" value={reason} onChange={e => setReason(e.target.value)} />}</Field>
            <fieldset className="field"><legend>Finished effects that must happen once</legend>
                {([['refuse', 'refuse to go behind them'], ['reuse', 'keep their results: the same call is answered from the log'], ['redo', 'let them happen again']] as const).map(([value, label]) => (
                    <label key={value} className="row small"><input type="radio" name="effects" checked={effects === value} onChange={() => { setEffects(value); setUndone(null); }} />{label}</label>
                ))}
            </fieldset>
            {isKnown && <Note tone="wait">{numbers.length ? <>It undoes {numbers.map(([name, n]) => plural(n, name.replace(/s$/, '').replace('_', ' '))).join(', ')}.</> : 'It undoes nothing but what was noted.'}{once.length > 0 && <> What happened once stays happened: {once.join(', ')}.</>} The events stay in the log, and rolling forward again undoes this.</Note>}
            {doing.error ? <Failure error={doing.error instanceof ApiError && doing.error.code === 'EFFECTS' ? new Error(`${doing.error.message}. Choose above what becomes of them.`) : doing.error} /> : null}
        </Dialog>
    );
}
