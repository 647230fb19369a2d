// SPDX-License-Identifier: Apache-2.0
// A page that is open while its server is replaced by another version: when the server is back, the page asks whether it is still the one
// that is served. The names of its files have digests, so that its own script tells.
import { liveState, subscribeLive } from './live';

let isOld = false;
let wasLost = false;
const listeners = new Set<() => void>();

async function look() {
    const mine = document.querySelector('script[type="module"][src]')?.getAttribute('src');
    if (!mine || isOld) return;
    try {
        const answer = await fetch('/', { cache: 'no-store', credentials: 'omit' });
        if (!answer.ok || (await answer.text()).includes(mine)) return;
    } catch {
        return; /* it is gone again: asked when it is back */
    }
    isOld = true;
    listeners.forEach(tell => tell());
}

subscribeLive(() => {
    if (liveState() === 'live' && wasLost) void look();
    wasLost = liveState() === 'lost' || (wasLost && liveState() !== 'live');
});

export const isOutdated = () => isOld;
export function subscribeOutdated(tell: () => void) {
    listeners.add(tell);
    return () => void listeners.delete(tell);
}
