// SPDX-License-Identifier: Apache-2.0
// Pure: what a face makes of an action that the server offers (`next`): its label, whether it needs a form, and the request that does it.
import type { Action } from '../api/client';
import type { JsonObject, SessionPage } from '../api/schema';

export type Next = SessionPage['sessions'][number]['next'][number];

export type Form = 'answer' | 'resume' | 'cancel' | 'trust' | 'fork' | 'rollback' | 'delete' | 'token';

export interface Move {
    label: string;
    help: string;
    scope: string;
    form?: Form;           /* a dialog asks for what is missing, or a second time */
    does?: Action;         /* the request, with `arguments` as they are */
    place?: string;        /* nothing to do but to look: parameters of the session's page */
    isDanger?: boolean;
}

const rows: Record<string, Move> = {
    resume: { label: 'Resume', help: 'continue where it stopped', scope: 'write', does: 'session.resume', form: 'resume' },
    answer: { label: 'Answer', help: 'answer what it waits for', scope: 'answer', form: 'answer' },
    prompt: { label: 'Write', help: 'send it a message', scope: 'write', place: '?write=1' },
    start: { label: 'Start again', help: 'begin a new run', scope: 'run', does: 'run.start' },
    cancel: { label: 'Cancel', help: 'end its run', scope: 'write', form: 'cancel', isDanger: true },
    rotate_token: { label: 'New token', help: 'make a new token for its wait; the old one is void', scope: 'answer', form: 'token' },
    trust: { label: 'Trust', help: 'see what would run, and trust it', scope: 'admin', form: 'trust' },
    verify: { label: 'Verify', help: 'read every event and check the chain', scope: 'read', place: '?verify=1' },
    recover: { label: 'Recover', help: 'record what was interrupted, and continue what is due', scope: 'write', does: 'store.recover' as Action },
    fork: { label: 'Fork', help: 'a new session that shares its past', scope: 'write', form: 'fork' },
    rollback: { label: 'Roll back', help: 'go back to an earlier position', scope: 'write', form: 'rollback', isDanger: true },
    delete: { label: 'Delete', help: 'delete the session for good', scope: 'admin', form: 'delete', isDanger: true },
    why: { label: 'Why', help: 'see why it stands so', scope: 'read', place: '' },
    show_log: { label: 'Log', help: 'see its events', scope: 'read', place: '?tab=log' },
    show_timeline: { label: 'Timeline', help: 'see its runs over time', scope: 'read', place: '?tab=timeline' },
    list_checkpoints: { label: 'Checkpoints', help: 'choose a checkpoint', scope: 'read', place: '?tab=checkpoints' },
};

/* An argument that the server left open is a person's to give. */
export const isOpen = (args: JsonObject) => Object.values(args).some(v => v === null);

/* NULL: this page has nothing for it, or the server no request. */
export function moveOf(next: Next): Move | null {
    const row = rows[next.action];
    if (!row || (row.place === undefined && next.command === null)) return null;
    if (next.action === 'resume') {
        const { checkpoint, ask_again, happened, retry, now, set } = next.arguments as Record<string, unknown>;
        const named = Array.isArray(happened) ? happened.join(', ') : typeof happened === 'string' ? happened : '';
        const again = Array.isArray(retry) ? retry.join(', ') : typeof retry === 'string' ? retry : '';
        const label = ask_again ? 'Ask again' : named ? `It happened: ${named}` : again ? `Run again: ${again}` : now ? 'Continue now' : checkpoint === null ? 'Resume from…' : row.label;
        const needsForm = isOpen(next.arguments) || set !== undefined;
        return { ...row, label, form: needsForm ? 'resume' : undefined };
    }
    if (next.action === 'answer' && next.arguments.kind === 'approval') return { ...row, label: 'Decide', help: 'approve or deny' };
    return row;
}

/* Resume with nothing left to decide: no effect of unknown outcome, no value that is missing. */
export const plainResume = (next: Next[]): Next | null => {
    const first = next.find(n => isForward(n.action));
    const move = first?.action === 'resume' ? moveOf(first) : null;
    return first && move && !move.form && move.label === rows.resume?.label ? first : null;
};

/* It moves the session, rather than ending it or looking at it. */
export const isForward = (action: string) => !['cancel', 'rotate_token', 'delete', 'show_log', 'show_timeline', 'list_checkpoints', 'verify'].includes(action);

/* The one that is likeliest to move it; what this token may not do is left out. */
export function firstMove(next: Next[], may: (scope: string) => boolean): { next: Next; move: Move } | null {
    for (const one of next) {
        const move = moveOf(one);
        if (move && may(move.scope) && move.place !== '' && isForward(one.action)) return { next: one, move };
    }
    return null;
}
