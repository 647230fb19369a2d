// SPDX-License-Identifier: Apache-2.0
// The frame: the places, the connection, and the page of the place where we are. A place is a row; its page is loaded when it is first
// looked at.
import { lazy, Suspense, useEffect, useSyncExternalStore } from 'react';
import { useQuery } from './api/query';
import { clockDiffers, subscribeClock } from './api/clock';
import { connect, liveState, subscribeLive } from './api/live';
import { isOutdated, subscribeOutdated } from './api/outdated';
import { heldToken, subscribeToken } from './api/token';
import { HELP, useKeys } from './keys';
import { useAll } from './model/all';
import { duration } from './model/format';
import { SignIn } from './pages/sign_in';
import { usePlace, type Place } from './place';
import { ErrorBoundary } from './ui/error_boundary';
import { Dialog } from './ui/dialog';
import { Icon } from './ui/icon';
import { Button, Empty, Link, Loading } from './ui/parts';
import { Theme } from './ui/theme';
import { Toasts } from './ui/toast';

const Sessions = lazy(() => import('./pages/sessions'));
const Session = lazy(() => import('./pages/session'));
const Inbox = lazy(() => import('./pages/inbox'));
const Tasks = lazy(() => import('./pages/tasks'));
const Graphs = lazy(() => import('./pages/graphs'));
const Compare = lazy(() => import('./pages/compare'));
const Start = lazy(() => import('./pages/start'));
const Access = lazy(() => import('./pages/access'));
const Torture = lazy(() => import('./pages/torture'));

interface PageRow {
    segment: string;
    label: string;
    icon: string;
    page: React.ComponentType<{ place: Place }>;
    isHidden?: boolean; /* reached from other pages */
}
const pages: PageRow[] = [
    { segment: 'sessions', label: 'Sessions', icon: 'sessions', page: ({ place }) => (place.segments[1] ? <Session key={place.segments[1]} id={place.segments[1]} place={place} /> : <Sessions place={place} />) },
    { segment: 'inbox', label: 'Inbox', icon: 'inbox', page: Inbox },
    { segment: 'tasks', label: 'Tasks', icon: 'tasks', page: Tasks },
    { segment: 'graphs', label: 'Graphs', icon: 'graph', page: Graphs },
    { segment: 'start', label: 'Start', icon: 'start', page: Start },
    { segment: 'compare', label: 'Compare', icon: 'compare', page: Compare, isHidden: true },
    { segment: 'torture', label: 'Torture', icon: 'torture', page: Torture, isHidden: true },
    { segment: 'access', label: 'Access', icon: 'access', page: Access },
];

function Places({ current, waiting }: { current: string; waiting: number }) {
    return (
        <nav className="places" aria-label="Places">
            {pages.filter(p => !p.isHidden).map(p => (
                <Link key={p.segment} to={p.segment === 'sessions' ? '/' : `/${p.segment}`} aria-current={p.segment === current ? 'page' : undefined}>
                    <Icon name={p.icon} /><span>{p.label}</span>
                    {p.segment === 'inbox' && waiting > 0 && <span className="bubble" aria-label={`${waiting} waiting`}>{waiting > 99 ? '99+' : waiting}</span>}
                </Link>
            ))}
        </nav>
    );
}

function Connection() {
    const live = useSyncExternalStore(subscribeLive, liveState);
    const word = live === 'live' ? 'live' : live === 'lost' ? 'reconnecting' : 'connecting';
    return <span className={`connection ${live}`} data-testid="connection"><i aria-hidden="true" />{word}</span>;
}

function Banner() {
    const live = useSyncExternalStore(subscribeLive, liveState);
    const isOld = useSyncExternalStore(subscribeOutdated, isOutdated);
    if (live !== 'lost' && isOld) return <div className="banner" role="status">This page is of an older version than the server.<Button size="small" onClick={() => location.reload()}>Load it again</Button></div>;
    if (live !== 'lost') return null;
    return <div className="banner" role="status"><span className="spinner" aria-hidden="true" />The server does not answer. Sessions are safe in their store; this page continues when it is back.</div>;
}

function Clock() {
    const by = useSyncExternalStore(subscribeClock, clockDiffers);
    if (!by) return null;
    return <span className="clock">The clock of this machine is {duration(Math.abs(by))} {by > 0 ? 'behind' : 'ahead of'} the server's. Ages are by the server's.</span>;
}

function Page({ place }: { place: Place }) {
    const segment = place.segments[0] ?? 'sessions';
    const row = pages.find(p => p.segment === segment);
    if (!row) return <Empty title="There is nothing at this address"><Link to="/">All sessions</Link></Empty>;
    return <row.page place={place} />;
}

function Shell() {
    const place = usePlace();
    const me = useQuery('me.get', {});
    const inbox = useQuery('session.inbox', { limit: 1 });
    const segment = place.segments[0] ?? 'sessions';

    const keys = useKeys();

    const title = pages.find(p => p.segment === segment)?.label ?? '';
    useEffect(() => { if (segment !== 'sessions' || !place.segments[1]) document.title = `${title} · Tidemark`; }, [title, segment, place.segments[1]]);
    useEffect(connect, []);
    useAll({ onState: inbox.read, onGone: inbox.read, onStale: inbox.read });
    return (
        <div className="shell">
            <a className="skip" href="#main">Skip to the page</a>
            <aside className="side">
                <Link to="/" className="brand"><img src="/favicon.svg" alt="" width="24" height="24" />Tidemark</Link>
                <Places current={segment} waiting={inbox.data?.total ?? 0} />
                <footer>
                    <Connection />
                    <Clock />
                    {me.data && <span title={me.data.store.url} className="one-line">{me.data.name}, {me.data.scopes.includes('admin') ? 'admin' : me.data.scopes.join(', ')}</span>}
                    <div className="row"><Theme /><span className="end">{me.data?.version}</span></div>
                </footer>
            </aside>
            <div>
                <Banner />
                <main className="main" id="main" tabIndex={-1}>
                    <ErrorBoundary key={place.path}><Suspense fallback={<Loading what="Reading" />}><Page place={place} /></Suspense></ErrorBoundary>
                </main>
            </div>
            <Toasts />
            {keys.isHelp && <Dialog title="Keys" onClose={keys.closeHelp}><dl className="facts keys">{HELP.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl></Dialog>}
        </div>
    );
}

export function App() {
    const token = useSyncExternalStore(subscribeToken, heldToken);
    return token ? <Shell key={token.token} /> : <SignIn />;
}
