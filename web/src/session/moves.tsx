// SPDX-License-Identifier: Apache-2.0
// What moves a session: `next` of the server as buttons. What needs an answer, a choice or a second look opens a dialog.
import { lazy, Suspense, useState } from 'react';
import { call, errorText } from '../api/client';
import { may } from '../api/token';
import { firstMove, isForward, moveOf, type Form, type Move, type Next } from '../model/moves';
import { go, sessionPath } from '../place';
import { Button } from '../ui/parts';
import { toast } from '../ui/toast';

const AnswerDialog = lazy(() => import('../dialogs/answer'));
const CancelDialog = lazy(() => import('../dialogs/cancel'));
const DeleteDialog = lazy(() => import('../dialogs/delete'));
const ForkDialog = lazy(() => import('../dialogs/fork'));
const ResumeDialog = lazy(() => import('../dialogs/resume'));
const RollbackDialog = lazy(() => import('../dialogs/rollback'));
const TokenDialog = lazy(() => import('../dialogs/token'));
const TrustDialog = lazy(() => import('../dialogs/trust'));

export interface DialogProps {
    sessionId: string;
    given: Record<string, unknown>; /* what is known already: of `next`, or of the place it was opened at */
    onClose: () => void;
}

export function MoveDialog({ form, ...rest }: DialogProps & { form: Form }) {
    return (
        <Suspense fallback={null}>
            {form === 'answer' && <AnswerDialog {...rest} />}
            {form === 'cancel' && <CancelDialog {...rest} />}
            {form === 'delete' && <DeleteDialog {...rest} />}
            {form === 'fork' && <ForkDialog {...rest} />}
            {form === 'resume' && <ResumeDialog {...rest} />}
            {form === 'rollback' && <RollbackDialog {...rest} />}
            {form === 'token' && <TokenDialog {...rest} />}
            {form === 'trust' && <TrustDialog {...rest} />}
        </Suspense>
    );
}

export function MoveButton({ sessionId, next, move, look, size }: { sessionId: string; next: Next; move: Move; look?: 'primary' | 'danger'; size?: 'small' }) {
    const [busy, setBusy] = useState(false);
    const [open, setOpen] = useState(false);

    const click = () => {
        if (move.form) {
            setOpen(true);
        } else if (move.place !== undefined) {
            go(sessionPath(sessionId, move.place));
        } else if (move.does) {
            setBusy(true);
            call(move.does, { id: sessionId, ...next.arguments } as never)
                .then(() => toast(`${move.label}: ${sessionId}`))
                .catch((e: unknown) => toast(errorText(e)))
                .finally(() => setBusy(false));
        }
    };
    return (
        <>
            <Button look={move.isDanger ? 'danger' : look} size={size} busy={busy} title={move.help} onClick={click} data-move={next.action}>{size !== 'small' && move.label === 'Resume' ? 'Resume session' : move.label}</Button>
            {open && move.form && <MoveDialog form={move.form} sessionId={sessionId} given={next.arguments} onClose={() => setOpen(false)} />}
        </>
    );
}

export function FirstMove({ session }: { session: { session_id: string; next: Next[] } }) {
    const first = firstMove(session.next, may);
    if (!first) return null;
    return <MoveButton sessionId={session.session_id} next={first.next} move={first.move} size="small" />;
}

/* All of them, the likeliest first and strongest. */
export function Moves({ session, skip = [] }: { session: { session_id: string; next: Next[] }; skip?: string[] }) {
    const all = session.next.flatMap(next => {
        const move = moveOf(next);
        return move && may(move.scope) && move.place !== '' && !skip.includes(next.action) ? [{ next, move }] : [];
    });
    return (
        <div className="row wrap">
            {all.map(({ next, move }, i) => <MoveButton key={`${next.action} ${JSON.stringify(next.arguments)}`} sessionId={session.session_id} next={next} move={move} look={i === 0 && isForward(next.action) ? 'primary' : undefined} />)}
        </div>
    );
}
