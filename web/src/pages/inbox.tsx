// SPDX-License-Identifier: Apache-2.0
// Everything that waits for a person, oldest first, with the exact question, answered in place.
import { useEffect, useRef } from 'react';
import { useQuery } from '../api/query';
import { followAll, useAll } from '../model/all';
import { oneLine } from '../model/text';
import { sessionPath, type Place } from '../place';
import { AnswerForm } from '../session/answer_form';
import { Moves } from '../session/moves';
import { Age, Empty, Failure, Link, Loading } from '../ui/parts';
import { StatusBadge } from '../ui/badge';

const AGAIN_MS = 250;

export default function Inbox({ place }: { place: Place }) {
    void place;
    const inbox = useQuery('session.inbox', { limit: 100 });
    const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
    const soon = () => {
        clearTimeout(timer.current);
        timer.current = setTimeout(inbox.read, AGAIN_MS);
    };

    useEffect(() => () => clearTimeout(timer.current), []);
    useEffect(() => { if (inbox.data) followAll(inbox.data.position ?? null); }, [inbox.data]);
    useAll({ onState: soon, onGone: soon, onStale: inbox.read });
    return (
        <>
            <div className="page-head"><h1>Inbox</h1>{inbox.data && inbox.data.total > 0 && <span className="dim">{inbox.data.total} waiting, oldest first</span>}</div>
            {inbox.error ? <Failure error={inbox.error} retry={inbox.read} /> : null}
            {!inbox.data && !inbox.error && <Loading what="Reading the inbox" />}
            {inbox.data?.items.length === 0 && <Empty title="Nobody waits for you"><p>Approvals and questions of all sessions appear here, with exactly what they would do.</p></Empty>}
            <ul className="col inbox">
                {inbox.data?.items.map(item => (
                    <li key={item.session.session_id} className="card pad col" data-session={item.session.session_id}>
                        <div className="row wrap"><Link className="line-title" to={sessionPath(item.session.session_id)}>{oneLine(item.session.title || item.session.session_id, 120)}</Link><StatusBadge session={item.session} /><span className="tag">{item.session.kind}</span>{item.session.task_id && <Link className="tag" to={`/tasks/${encodeURIComponent(item.session.task_id)}`}>{oneLine(item.session.task_id, 40)}</Link>}<span className="end small faint">since <Age at={item.question.since} /></span></div>
                        {item.session.status === 'waiting' ? <AnswerForm sessionId={item.session.session_id} question={item.question} onDone={inbox.read} /> : <><p className="said">{oneLine(item.session.why, 600)}</p><Moves session={item.session} /></>}
                    </li>
                ))}
            </ul>
        </>
    );
}
