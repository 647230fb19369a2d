// SPDX-License-Identifier: Apache-2.0
// Resume with what a person gives: values of the memory (secret ones are handed to the run and kept out of the log), a checkpoint to go
// back to, what became of effects of unknown outcome. The verdict is asked for first.
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import type { Plan } from '../api/schema';
import { oneLine, visible } from '../model/text';
import { go, sessionPath } from '../place';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import '../session/state_at.css';
import { Button, Failure, Field, JsonText, Note } from '../ui/parts';
import { Icon } from '../ui/icon';
import { Sentence } from '../ui/sentence';
import { toast } from '../ui/toast';

interface Override {
    name: string;
    value: string;
    isSecret: boolean;
}

/* JSON where it is JSON, else a text; a secret is always a text. */
function valueOf(o: Override): unknown {
    if (o.isSecret) return o.value;
    try {
        return JSON.parse(o.value);
    } catch {
        return o.value;
    }
}

const WHAT: Record<string, string> = { resume: 'It continues where it stopped', rollback: 'It goes back first, and continues', fork: 'A fork continues; this session stays as it is' };

/* What a resume would do, in words: the server's verdict, nothing has happened yet. */
function Verdict({ plan }: { plan: Plan }) {
    const lists: [string, string[]][] = [
        ['runs', plan.nodes_to_run.map(n => (n.visit > 1 ? `${n.node} (visit ${n.visit})` : n.node))], ['is kept and does not run again', plan.complete], ['counts as happened', plan.happened], ['failed before', plan.failed],
        ['values given', plan.overrides.map(o => (o.never_stored ? `${o.key} (stored nowhere)` : o.key))], ['values still missing', plan.missing_inputs.map(m => `${m.key} of ${m.node}${m.later ? ', may come later' : ''}`)], ['renamed', plan.renames.map(r => `${r.from} to ${r.to}`)],
    ];
    return (
        <div className="col" data-testid="verdict">
            {plan.refused.map((r, i) => <Note key={i} tone="fail">{r.node && <b className="mono">{visible(r.node)} </b>}{visible(r.reason)}</Note>)}
            {plan.refused.length === 0 && <Note tone="done">{WHAT[plan.action] ?? plan.action}, from {plan.from.checkpoint ? 'the checkpoint at ' : ''}event {plan.from.seq}.</Note>}
            {plan.warnings.map((w, i) => <Note key={i} tone="wait">{visible(w)}</Note>)}
            {plan.graph?.changed && <Note tone="wait">The graph has changed since then: the new version runs.</Note>}
            <dl className="memory">{lists.filter(l => l[1].length > 0).map(([name, all]) => <div key={name}><dt>{name}</dt><dd className="mono">{all.slice(0, 40).map(one => oneLine(one, 80)).join(', ')}{all.length > 40 && ` and ${all.length - 40} more`}</dd></div>)}</dl>
            <details className="small"><summary>As JSON</summary><JsonText value={plan} /></details>
        </div>
    );
}

export default function ResumeDialog({ sessionId, given, onClose }: DialogProps) {
    const known = { ...given } as Record<string, unknown>;
    const asksCheckpoint = 'checkpoint' in known;
    const wantedSet = (known.set ?? null) as Record<string, unknown> | null;
    const [checkpoint, setCheckpoint] = useState(typeof known.checkpoint === 'string' ? known.checkpoint : '');
    const [overrides, setOverrides] = useState<Override[]>(wantedSet ? Object.keys(wantedSet).map(name => ({ name, value: '', isSecret: true })) : []);
    const [effects, setEffects] = useState<'refuse' | 'reuse' | 'redo'>('refuse');
    const [verdict, setVerdict] = useState<{ key: string; data: Plan } | null>(null);
    const doing = useDoing();
    const session = useQuery('session.get', { id: sessionId });
    const list = useQuery('checkpoint.list', asksCheckpoint || session.data?.kind === 'graph' ? { id: sessionId, limit: 100 } : null);
    const isGraph = session.data?.kind === 'graph';

    const request = () => {
        const set = Object.fromEntries(overrides.filter(o => o.name.trim()).map(o => [o.name.trim(), valueOf(o)]));
        return { ...Object.fromEntries(Object.entries(known).filter(([name, v]) => v !== null && name !== 'set')), checkpoint: checkpoint || null, set: Object.keys(set).length ? set : null, reuse_effects: effects === 'reuse' || null, redo_effects: effects === 'redo' || null };
    };
    const key = JSON.stringify([checkpoint, overrides, effects]);
    const isJudged = verdict?.key === key && !doing.error;
    const isReady = isJudged && verdict?.data.refused.length === 0;
    const label = isReady && verdict?.data.action === 'fork' ? 'Resume as a fork' : isReady && verdict?.data.action === 'rollback' ? 'Roll back and resume' : 'Resume';
    const judge = () => void doing.run(async () => setVerdict({ key, data: await call('session.resume', { id: sessionId, dry_run: true, ...request() } as never) }));
    const resume = () => void doing.run(async () => {
        const started = await call('session.resume', { id: sessionId, ...request() } as never) as { session_id?: string };
        const id = started.session_id ?? sessionId;
        toast(id === sessionId ? `Resumed: ${id}` : `Resumed as a fork: ${id}`);
        onClose();
        if (id !== sessionId) go(sessionPath(id));
    });
    const change = (i: number, part: Partial<Override>) => setOverrides(now => now.map((o, k) => (k === i ? { ...o, ...part } : o)));
    return (
        <Dialog title={`Resume ${sessionId}`} onClose={onClose} footer={<><Button onClick={onClose}>Close</Button><Button look={isJudged ? undefined : 'primary'} busy={doing.busy && !isJudged} disabled={isJudged} onClick={judge}>See what would happen</Button><Button look={isReady ? 'primary' : undefined} disabled={!isReady} busy={doing.busy && isJudged} title={isReady ? undefined : 'first see what would happen'} onClick={resume}>{label}</Button></>}>
            {session.data && <p className="dim said why"><Sentence text={session.data.why} /></p>}
            {(asksCheckpoint || isGraph) && (
                <Field label="From" help={isGraph ? 'A graph goes back to this checkpoint first. One that has completed continues as a fork.' : undefined}>
                    {id => (
                        <select id={id} className="input" value={checkpoint} onChange={e => setCheckpoint(e.target.value)}>
                            <option value="">where it stopped</option>
                            {list.data?.checkpoints.filter(c => c.can_resume_from && !c.rolled_back).map(c => <option key={c.checkpoint_id} value={c.checkpoint_id}>{c.seq}: {c.description ?? `${c.type} ${c.current_node ?? ''}`}{c.is_clean ? '' : ' (after a failure)'}</option>)}
                            {checkpoint && !list.data?.checkpoints.some(c => c.checkpoint_id === checkpoint) && <option value={checkpoint}>{checkpoint}</option>}
                        </select>
                    )}
                </Field>
            )}
            {(isGraph || session.data?.kind === 'program') && (
                <fieldset className="field"><legend>Values of its memory</legend>
                    {overrides.map((o, i) => (
                        <div key={i} className="row">
                            <input className="input mono" aria-label="Name" placeholder="name" value={o.name} onChange={e => change(i, { name: e.target.value })} />
                            <input className="input mono" aria-label={`Value of ${o.name || 'this'}`} placeholder={o.isSecret ? 'secret' : 'JSON or text'} type={o.isSecret ? 'password' : 'text'} autoComplete="off" value={o.value} onChange={e => change(i, { value: e.target.value })} />
                            <label className="row tiny"><input type="checkbox" checked={o.isSecret} onChange={e => change(i, { isSecret: e.target.checked })} />secret</label>
                            <button type="button" className="button plain small" aria-label={`Remove ${o.name || 'this value'}`} onClick={() => setOverrides(now => now.filter((_, k) => k !== i))}><Icon name="close" size={12} /></button>
                        </div>
                    ))}
                    <div className="row"><Button size="small" onClick={() => setOverrides(now => [...now, { name: '', value: '', isSecret: false }])}>Add a value</Button></div>
                    {overrides.some(o => o.isSecret) && <span className="help">What is typed here is hidden. Keys that the graph excludes (such as api_key) are handed to the run and stored nowhere; others are stored in the log.</span>}
                </fieldset>
            )}
            {checkpoint && (
                <fieldset className="field"><legend>Finished effects behind it that must happen once</legend>
                    {([['refuse', 'refuse'], ['reuse', 'keep their results'], ['redo', 'let them happen again']] as const).map(([value, label]) => <label key={value} className="row small"><input type="radio" name="effects" checked={effects === value} onChange={() => setEffects(value)} />{label}</label>)}
                </fieldset>
            )}
            {isJudged && verdict && <Verdict plan={verdict.data} />}
            {doing.error ? <Failure error={doing.error} /> : null}
        </Dialog>
    );
}
