// SPDX-License-Identifier: Apache-2.0
// Sessions that were interrupted and can be resumed: by a button, or by themselves when they are opened, as this browser is set.
import { useEffect, useRef } from 'react';
import { call, errorText } from '../api/client';
import type { SessionStatus } from '../api/schema';
import { may } from '../api/token';
import { plainResume } from '../model/moves';
import { setResumesByItself, useResumesByItself } from '../model/settings';
import { toast } from '../ui/toast';

type Shown = Pick<SessionStatus, 'session_id' | 'needs_resume' | 'is_resumable' | 'trusted' | 'last_seq' | 'next'>;

export function ResumeByItself({ session: s, done }: { session: Shown; done: () => void }) {
    const isOn = useResumesByItself();
    const tried = useRef<number | null>(null); /* once for each interruption */
    const next = s.needs_resume && s.is_resumable && s.trusted && may('write') ? plainResume(s.next) : null;
    const seq = s.last_seq ?? 0;

    useEffect(() => {
        if (!isOn || !next || tried.current === seq) return;
        tried.current = seq;
        call('session.resume', { id: s.session_id, ...next.arguments } as never)
            .then(() => { toast(`Resumed by itself: ${s.session_id}`); done(); })
            .catch((e: unknown) => toast(errorText(e)));
    }, [isOn, next !== null, seq, s.session_id]);
    if (!next) return null;
    return <label className="row small dim"><input type="checkbox" checked={isOn} onChange={e => setResumesByItself(e.target.checked)} />resume such sessions by themselves when I open them</label>;
}
