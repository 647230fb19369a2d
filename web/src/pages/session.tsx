// SPDX-License-Identifier: Apache-2.0
// One session: how it stands and what moves it, then its conversation, timeline, graph, checkpoints, log, usage; and its state as of any
// moment that is clicked (`?at=`), beside whatever is shown.
import { lazy, Suspense, useCallback, useEffect } from 'react';
import { useSession, type SessionLive } from '../model/session_page';
import { isFree } from '../keys';
import { oneLine } from '../model/text';
import { go, withParams, type Place } from '../place';
import { Composer } from '../session/composer';
import { Conversation } from '../session/conversation';
import { SessionHead } from '../session/head';
import { Empty, Failure, Link, Loading, Tabs } from '../ui/parts';
import './session.css';

const Checkpoints = lazy(() => import('../session/checkpoints'));
const GraphView = lazy(() => import('../session/graph'));
const Log = lazy(() => import('../session/log'));
const Raw = lazy(() => import('../session/raw'));
const StateAt = lazy(() => import('../session/state_at'));
const Timeline = lazy(() => import('../session/timeline'));
const UsageView = lazy(() => import('../session/usage'));

export interface TabProps {
    id: string;
    live: SessionLive;
    place: Place;
    at: number | null;              /* the moment that is looked at */
    pick: (seq: number | null) => void;
}

/* What a session of a kind has; the panels of a workspace would be rows like these. */
const tabs: { id: string; label: string; kinds?: string[]; page: React.ComponentType<TabProps> }[] = [
    { id: 'conversation', label: 'Conversation', page: Conversation },
    { id: 'timeline', label: 'Timeline', page: Timeline },
    { id: 'graph', label: 'Graph', kinds: ['graph'], page: GraphView },
    { id: 'checkpoints', label: 'Checkpoints', page: Checkpoints },
    { id: 'log', label: 'Log', page: Log },
    { id: 'usage', label: 'Usage', page: UsageView },
    { id: 'raw', label: 'Raw', page: Raw },
];

export default function Session({ id, place }: { id: string; place: Place }) {
    const live = useSession(id);
    const kind = live.page?.session.kind ?? null;
    const shown = tabs.filter(t => !t.kinds || (kind && t.kinds.includes(kind)));
    const wanted = place.params.get('tab');
    const first = kind === 'graph' ? 'graph' : 'conversation';
    const tab = shown.find(t => t.id === wanted) ?? shown.find(t => t.id === first) ?? shown[0];
    const asked = Number(place.params.get('at'));
    const at = Number.isSafeInteger(asked) && asked > 0 ? asked : null;
    const pick = useCallback((seq: number | null) => go(withParams(place, { at: seq === null ? null : String(seq) }), 'replace'), [place]);

    const title = live.page ? oneLine(live.page.session.title || id, 80) : null;
    useEffect(() => { if (title !== null) document.title = `${title} · Tidemark`; }, [title]);
    useEffect(() => {
        const down = (e: KeyboardEvent) => {
            const step = e.key === '[' ? -1 : e.key === ']' ? 1 : 0;
            if (!isFree(e) || !live.lastSeq) return;
            if (step) pick(Math.max(1, Math.min(live.lastSeq, (at ?? live.lastSeq) + step)));
            else if (e.key === 'Escape' && at !== null) pick(null);
            else if (/^[1-9]$/.test(e.key) && shown[Number(e.key) - 1]) go(withParams(place, { tab: shown[Number(e.key) - 1]!.id === first ? null : shown[Number(e.key) - 1]!.id }));
            else return;
            e.preventDefault();
        };
        addEventListener('keydown', down);
        return () => removeEventListener('keydown', down);
    });

    if (live.isGone) return <Empty title="This session was deleted"><p>Somebody deleted it while you looked.</p><Link to="/" className="button">All sessions</Link></Empty>;
    if (live.error && !live.page) return <><div className="page-head"><Link to="/" className="button plain small" aria-label="All sessions">←</Link><h1 className="said">{id}</h1></div><Failure error={live.error} retry={live.read} /></>;
    if (!live.page || !tab) return <Loading what={`Reading ${id}`} />;
    return (
        <>
            <SessionHead live={live} place={place} isAsked={tab.id === 'conversation'} />
            <Tabs label="Views of the session" tabs={shown.map(t => ({ id: t.id, label: t.label, count: t.id === 'checkpoints' ? live.page?.session.total_checkpoints : undefined }))} current={tab.id} onPick={next => go(withParams(place, { tab: next === first ? null : next }))} />
            <div className={`session-body ${at === null ? '' : 'with-side'}`}>
                <section role="tabpanel" id={`panel-${tab.id}`} aria-labelledby={`tab-${tab.id}`} className="session-main">
                    <Suspense fallback={<Loading what="Reading" />}><tab.page id={id} live={live} place={place} at={at} pick={pick} /></Suspense>
                    {tab.id === 'conversation' && <Composer id={id} live={live} isWanted={place.params.has('write')} />}
                </section>
                {at !== null && <Suspense fallback={<Loading what="Reading the state" />}><StateAt id={id} at={Math.min(at, live.lastSeq || at)} lastSeq={live.lastSeq} pick={pick} /></Suspense>}
            </div>
        </>
    );
}
