// SPDX-License-Identifier: Apache-2.0
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing } from '../api/query';
import { go } from '../place';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, Field } from '../ui/parts';
import { toast } from '../ui/toast';

export default function DeleteDialog({ sessionId, onClose }: DialogProps) {
    const [typed, setTyped] = useState('');
    const doing = useDoing();
    const remove = () => void doing.run(async () => {
        await call('session.delete', { id: sessionId });
        toast(`Deleted: ${sessionId}`);
        onClose();
        go('/');
    });
    return (
        <Dialog title="Delete this session for good?" onClose={onClose} footer={<><Button onClick={onClose}>Keep it</Button><Button look="danger" busy={doing.busy} disabled={typed !== sessionId} onClick={remove}>Delete for good</Button></>}>
            <p className="dim">Its whole log goes: messages, results, checkpoints, usage. This cannot be undone. A session that has forks is refused.</p>
            <Field label={`Type ${sessionId} to confirm`}>{id => <input id={id} className="input mono" autoComplete="off" value={typed} onChange={e => setTyped(e.target.value)} />}</Field>
            {doing.error ? <Failure error={doing.error} /> : null}
        </Dialog>
    );
}
