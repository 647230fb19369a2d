// SPDX-License-Identifier: Apache-2.0
// Where the page is: the address is the place, so that it can be shared. "/sessions/deploy?tab=log&at=41".
import { useMemo, useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
const tell = () => listeners.forEach(one => one());
addEventListener('popstate', tell);

const subscribe = (one: () => void) => {
    listeners.add(one);
    return () => void listeners.delete(one);
};

export interface Place {
    path: string;
    segments: string[];
    params: URLSearchParams;
}

export function usePlace(): Place {
    const href = useSyncExternalStore(subscribe, () => location.pathname + location.search);
    return useMemo(() => {
        const url = new URL(href, location.origin);
        return { path: url.pathname, segments: url.pathname.split('/').filter(Boolean).map(decodeURIComponent), params: url.searchParams };
    }, [href]);
}

export function go(to: string, how: 'push' | 'replace' = 'push') {
    if (to === location.pathname + location.search) return;
    history[how === 'push' ? 'pushState' : 'replaceState'](null, '', to);
    tell();
    if (how === 'push' && new URL(to, location.origin).pathname !== lastPath) scrollTo(0, 0);
    lastPath = location.pathname;
}
let lastPath = location.pathname;

/* The same place with other parameters; null takes one away. */
export function withParams(place: Place, change: Record<string, string | null>): string {
    const params = new URLSearchParams(place.params);
    for (const [name, value] of Object.entries(change))
        if (value === null || value === '') params.delete(name);
        else params.set(name, value);
    const text = params.toString();
    return place.path + (text ? `?${text}` : '');
}

export const sessionPath = (id: string, params = '') => `/sessions/${encodeURIComponent(id)}${params}`;
