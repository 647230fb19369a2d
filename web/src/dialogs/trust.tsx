// SPDX-License-Identifier: Apache-2.0
// A session that came from elsewhere: exactly what would run, then trust in that. If it changes meanwhile, nothing is trusted.
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import type { DialogProps } from '../session/moves';
import { visible } from '../model/text';
import '../session/state_at.css';
import { Dialog } from '../ui/dialog';
import { Button, Failure, JsonText, Loading, Note } from '../ui/parts';
import { toast } from '../ui/toast';

/* As a shell would need it: what is one word stays one. */
const word = (w: string) => (/^[\w./:=@%+,-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`);

export default function TrustDialog({ sessionId, onClose }: DialogProps) {
    const shown = useQuery('trust.show', { id: sessionId });
    const doing = useDoing();
    const would = shown.data?.would_run as { working_dir?: string | null; program?: { argv?: string[]; program?: string; program_digest?: string; cwd?: string; path?: string; env?: unknown[] } | null } | undefined;
    const p = would?.program;
    const facts = ([['command', p?.argv?.map(word).join(' ')], ['file', p?.program], ['its digest', p?.program_digest], ['directory', p?.cwd ?? would?.working_dir], ['PATH', p?.path], ['environment', p?.env?.length ? JSON.stringify(p.env) : undefined]] as [string, string | null | undefined][]).filter((f): f is [string, string] => typeof f[1] === 'string' && f[1] !== '');
    const give = () => void doing.run(async () => {
        await call('trust.give', { id: sessionId, would_run: shown.data?.would_run as never });
        toast(`Trusted: ${sessionId}`);
        onClose();
    });
    return (
        <Dialog wide title={`Trust ${sessionId}?`} onClose={onClose} footer={<><Button onClick={onClose}>Do not trust</Button><Button look="primary" busy={doing.busy} disabled={!shown.data} onClick={give}>Trust exactly this</Button></>}>
            <Note tone="wait">This session came from elsewhere. Nothing of it has run here. If you trust it, this is what can run, where, and with what:</Note>
            {shown.error ? <Failure error={shown.error} retry={shown.read} /> : null}
            {!shown.data && !shown.error && <Loading what="Reading what would run" />}
            {facts.length > 0 && <dl className="memory">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd className="mono">{visible(value)}</dd></div>)}</dl>}
            {shown.data && <details className="small" open={!facts.some(f => f[0] === 'command')}><summary>All of it, as JSON</summary><JsonText value={shown.data.would_run} /></details>}
            {doing.error ? <Failure error={doing.error} retry={shown.read} /> : null}
        </Dialog>
    );
}
