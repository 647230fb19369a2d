// SPDX-License-Identifier: Apache-2.0
// Checkpoints: where a session can go back to. Each can be looked at, resumed from, forked at, compared with another.
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import { may } from '../api/token';
import type { Form } from '../model/moves';
import type { TabProps } from '../pages/session';
import { oneLine } from '../model/text';
import { go } from '../place';
import { Badge } from '../ui/badge';
import { Button, Empty, Failure, Loading, SureButton, Time } from '../ui/parts';
import { toast } from '../ui/toast';
import { MoveDialog } from './moves';
import './checkpoints.css';

export default function Checkpoints({ id, live, at, pick }: TabProps) {
    const list = useQuery('checkpoint.list', { id, limit: 200, rolled_back: true });
    const [form, setForm] = useState<{ form: Form; given: Record<string, unknown> } | null>(null);
    const [chosen, setChosen] = useState<string[]>([]);
    const [name, setName] = useState('');
    const doing = useDoing();
    const isGraph = live.page?.session.kind === 'graph';
    const total = live.page?.session.total_checkpoints ?? 0;
    const held = list.data?.checkpoints.filter(c => !c.rolled_back).length ?? 0;
    const choose = (checkpoint: string) => setChosen(now => (now.includes(checkpoint) ? now.filter(c => c !== checkpoint) : [...now.slice(-1), checkpoint]));
    const make = () => void doing.run(async () => {
        await call('checkpoint.create', { id, description: name || null });
        setName('');
        toast('Checkpoint made');
        list.read();
    });

    return (
        <div className="col">
            <div className="row wrap">
                {may('write') && <form className="row" onSubmit={e => { e.preventDefault(); make(); }}><input className="input" aria-label="Description of a new checkpoint" placeholder="description" value={name} onChange={e => setName(e.target.value)} /><Button type="submit" busy={doing.busy}>Make a checkpoint</Button></form>}
                <span className="end row">{total !== held && total > 0 && !list.isReading && <Button size="small" onClick={list.read}>Read again</Button>}<Button disabled={chosen.length !== 2} onClick={() => go(`/compare?a=${encodeURIComponent(id)}&at=${encodeURIComponent(chosen[0] ?? '')}&b=${encodeURIComponent(id)}&bt=${encodeURIComponent(chosen[1] ?? '')}`)}>Compare the chosen two</Button></span>
            </div>
            {doing.error ? <Failure error={doing.error} /> : null}
            {list.error ? <Failure error={list.error} retry={list.read} /> : null}
            {!list.data && !list.error && <Loading what="Reading the checkpoints" />}
            {list.data?.checkpoints.length === 0 && <Empty title="No checkpoint yet"><p>A turn of an agent and a node of a graph make one by themselves.</p></Empty>}
            {list.data && list.data.checkpoints.length > 0 && (
                <ul className="card checkpoints" aria-label="Checkpoints">
                    {[...list.data.checkpoints].sort((x, y) => y.seq - x.seq).map(c => (
                        <li key={c.checkpoint_id} className={at === c.seq ? 'log-picked' : ''} data-checkpoint={c.checkpoint_id}>
                            <input type="checkbox" aria-label={`Choose ${c.checkpoint_id} to compare`} checked={chosen.includes(c.checkpoint_id)} onChange={() => choose(c.checkpoint_id)} />
                            <button type="button" className="button plain small number checkpoint-seq" onClick={() => pick(c.seq)}>{c.seq}</button>
                            <div className="grow">
                                <div className="row wrap"><b>{c.type.replace('_', ' ')}</b>{c.current_node && <span className="tag mono">{oneLine(c.current_node, 40)}</span>}{c.is_clean ? <Badge tone="done">clean</Badge> : <Badge tone="fail">after a failure</Badge>}{c.rolled_back && <Badge tone="quiet">rolled back</Badge>}{!c.can_resume_from && <span className="tag">not a place to resume from</span>}</div>
                                <div className="small dim one-line">{c.description ? oneLine(c.description, 200) : <span className="mono faint">{c.checkpoint_id}</span>}</div>
                            </div>
                            <span className="small faint"><Time at={c.created_at} withDate={false} /></span>
                            {may('write') && (
                                <div className="row">
                                    {isGraph && c.can_resume_from && <Button size="small" onClick={() => setForm({ form: 'resume', given: { checkpoint: c.checkpoint_id } })}>Resume</Button>}
                                    <Button size="small" onClick={() => setForm({ form: 'fork', given: { at: c.checkpoint_id } })}>Fork</Button>
                                    {!c.rolled_back && <Button size="small" onClick={() => setForm({ form: 'rollback', given: { to: c.checkpoint_id } })}>Roll back</Button>}
                                    {!c.rolled_back && <SureButton sure="Really delete" size="small" look="plain" aria-label={`Delete ${c.checkpoint_id}`} onClick={() => void doing.run(async () => { await call('checkpoint.delete', { id, checkpoint: c.checkpoint_id }); list.read(); })}>Delete</SureButton>}
                                </div>
                            )}
                        </li>
                    ))}
                </ul>
            )}
            {form && <MoveDialog form={form.form} sessionId={id} given={form.given} onClose={() => { setForm(null); list.read(); }} />}
        </div>
    );
}
