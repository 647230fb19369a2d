// SPDX-License-Identifier: Apache-2.0
// A new token for a wait: shown once, here.
import { useState } from 'react';
import { call } from '../api/client';
import { useDoing } from '../api/query';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, Note } from '../ui/parts';

export default function TokenDialog({ sessionId, onClose }: DialogProps) {
    const [token, setToken] = useState<string | null>(null);
    const doing = useDoing();
    const make = () => void doing.run(async () => setToken((await call('wait.rotate', { id: sessionId })).token ?? null));
    return (
        <Dialog title="A new token for this wait" onClose={onClose} footer={token ? <Button look="primary" onClick={onClose}>Done</Button> : <><Button onClick={onClose}>Close</Button><Button look="primary" busy={doing.busy} onClick={make}>Make it</Button></>}>
            <p className="dim">Whoever has it can answer this one wait, once, and do nothing else. The token before it becomes void.</p>
            {token && <><Note tone="wait">It is shown only here, and only now.</Note><pre className="json">{token}</pre></>}
            {doing.error ? <Failure error={doing.error} /> : null}
        </Dialog>
    );
}
