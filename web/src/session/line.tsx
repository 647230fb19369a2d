// SPDX-License-Identifier: Apache-2.0
// A session in two lines: what it is and how it stands; why, and what moves it.
import { cost, short } from '../model/format';
import type { SessionRow } from '../model/session_list';
import { oneLine } from '../model/text';
import { sessionPath } from '../place';
import { StatusBadge } from '../ui/badge';
import { Age, Link } from '../ui/parts';
import { FirstMove } from './moves';
import { Sentence } from '../ui/sentence';
import './line.css';

export function SessionLine({ session }: { session: SessionRow }) {
    const usage = session.usage;
    return (
        <article className="line" data-session={session.session_id}>
            <div className="line-main">
                <div className="row">
                    <StatusBadge session={session} />
                    <Link className="line-title one-line" to={sessionPath(session.session_id)}>{oneLine(session.title || session.session_id, 120)}</Link>
                    {!session.trusted && <span className="tag" title="It came from elsewhere: nothing of it runs before somebody trusts it">not trusted</span>}
                    {session.durability === 'degraded' && <span className="tag">degraded</span>}
                </div>
                <div className="line-why one-line why" title={oneLine(session.why)}><Sentence text={oneLine(session.why)} />{session.queued_messages > 0 && ` · ${session.queued_messages} queued`}</div>
            </div>
            <div className="line-facts">
                <span className="tag">{session.kind ?? 'log'}</span>
                {session.task_id && <Link className="tag one-line" to={`/tasks/${encodeURIComponent(session.task_id)}`}>{oneLine(session.task_id, 40)}</Link>}
                <span className="number faint" title="tokens in and out">{usage && usage.input_tokens + usage.output_tokens > 0 ? `${short(usage.input_tokens + usage.output_tokens)} tok` : ''}</span>
                <span className="number faint">{usage && usage.cost > 0 ? cost(usage.cost) : ''}</span>
                <span className="number faint line-age"><Age at={session.updated_at} /></span>
            </div>
            <div className="line-move"><FirstMove session={session} /></div>
        </article>
    );
}
