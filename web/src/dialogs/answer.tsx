// SPDX-License-Identifier: Apache-2.0
// The answer to what a session waits for, in a dialog; the form itself stands in the inbox and in the conversation, too.
import { useQuery } from '../api/query';
import { AnswerForm } from '../session/answer_form';
import type { DialogProps } from '../session/moves';
import { Dialog } from '../ui/dialog';
import { Failure, Loading, Note } from '../ui/parts';

export default function AnswerDialog({ sessionId, onClose }: DialogProps) {
    const page = useQuery('session.page', { id: sessionId, limit: 1 });
    return (
        <Dialog title={page.data?.session.title || sessionId} onClose={onClose}>
            {page.error ? <Failure error={page.error} retry={page.read} /> : null}
            {!page.data && !page.error && <Loading what="Reading the question" />}
            {page.data && (page.data.question ? <AnswerForm sessionId={sessionId} question={page.data.question} onDone={onClose} /> : <Note>It does not wait for an answer any more.</Note>)}
        </Dialog>
    );
}
