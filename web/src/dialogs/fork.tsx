// SPDX-License-Identifier: Apache-2.0
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing } from '../api/query';
import { go, sessionPath } from '../place';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, Field } from '../ui/parts';
import { toast } from '../ui/toast';

export default function ForkDialog({ sessionId, given, onClose }: DialogProps) {
    const [at, setAt] = useState(given.at === undefined || given.at === null ? '' : String(given.at));
    const [name, setName] = useState('');
    const doing = useDoing();
    const fork = () => void doing.run(async () => {
        const made = await call('session.fork', { id: sessionId, at: at.trim() || null, session_id: name.trim() || null });
        toast(`Forked: ${made.session_id}`);
        onClose();
        go(sessionPath(made.session_id));
    });
    return (
        <Dialog title={`Fork ${sessionId}`} onClose={onClose} footer={<><Button onClick={onClose}>Close</Button><Button look="primary" busy={doing.busy} onClick={fork}>Fork</Button></>}>
            <p className="dim">A new session that shares everything up to this position. Neither sees what the other does from there on. Effects that were under way are unknown in the fork.</p>
            <Field label="At" help="A seq or the id of a checkpoint; empty: as it is now.">{id => <input id={id} className="input mono" value={at} onChange={e => setAt(e.target.value)} />}</Field>
            <Field label="Its id" help="Empty: one is made.">{id => <input id={id} className="input mono" value={name} onChange={e => setName(e.target.value)} />}</Field>
            {doing.error ? <Failure error={doing.error} /> : null}
        </Dialog>
    );
}
