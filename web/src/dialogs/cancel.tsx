// SPDX-License-Identifier: Apache-2.0
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing } from '../api/query';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, Field } from '../ui/parts';
import { toast } from '../ui/toast';

const HOW: Record<string, string> = { done: 'cancelled', answered: 'its process ended it', forced: 'its process did not answer and lost the session', nothing: 'nothing was open' };

export default function CancelDialog({ sessionId, onClose }: DialogProps) {
    const [reason, setReason] = useState('');
    const doing = useDoing();
    const cancel = () => void doing.run(async () => {
        const ended = await call('session.cancel', { id: sessionId, reason: reason || null });
        toast(`${sessionId}: ${HOW[ended.cancelled] ?? ended.cancelled}`);
        onClose();
    });
    return (
        <Dialog title={`Cancel ${sessionId}?`} onClose={onClose} footer={<><Button onClick={onClose}>Keep it</Button><Button look="danger" busy={doing.busy} onClick={cancel}>Cancel its run</Button></>}>
            <p className="dim">Its run ends. Everything it did stays in its log, and nothing resumes it by itself.</p>
            <Field label="Reason" help="Kept in the log.">{id => <input id={id} className="input" value={reason} onChange={e => setReason(e.target.value)} />}</Field>
            {doing.error ? <Failure error={doing.error} /> : null}
        </Dialog>
    );
}
