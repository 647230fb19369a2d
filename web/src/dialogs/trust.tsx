// SPDX-License-Identifier: Apache-2.0
// A session that came from elsewhere: exactly what would run, then trust in that. If it changes meanwhile, nothing is trusted.
import { call } from '../api/client';
import { useDoing, useQuery } from '../api/query';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Button, Failure, JsonText, Loading, Note } from '../ui/parts';
import { toast } from '../ui/toast';

export default function TrustDialog({ sessionId, onClose }: DialogProps) {
    const shown = useQuery('trust.show', { id: sessionId });
    const doing = useDoing();
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
            {shown.data && <JsonText value={shown.data.would_run} />}
            {doing.error ? <Failure error={doing.error} retry={shown.read} /> : null}
        </Dialog>
    );
}
