// SPDX-License-Identifier: Apache-2.0
// The server's clock. Ages are told by it: the clock of the machine that shows the page may be wrong. What each answer says of the time
// (Date, in whole seconds) and how long it took leave about a second of doubt, so that small differences are none.
const DOUBT_MS = 2500;
const WORTH_SAYING_MS = 60_000;

let ahead = 0; /* of the server, before this machine */
const listeners = new Set<() => void>();

/* Pure: how far the server's clock is ahead, or 0 where nobody can tell. */
export function aheadOf(date: string | null, sent: number, received: number): number {
    const at = date === null ? NaN : Date.parse(date);
    if (Number.isNaN(at) || received - sent > DOUBT_MS * 2) return 0;
    const by = at + 500 - (sent + received) / 2;
    return Math.abs(by) < DOUBT_MS ? 0 : by;
}

export function noteClock(date: string | null, sent: number, received: number) {
    const by = aheadOf(date, sent, received);
    if (Math.abs(by - ahead) < DOUBT_MS) return;
    ahead = by;
    listeners.forEach(tell => tell());
}

export const serverNow = () => Date.now() + ahead;

/* By how much the clocks differ where a person should know it, else 0. */
export const clockDiffers = () => (Math.abs(ahead) >= WORTH_SAYING_MS ? ahead : 0);
export function subscribeClock(tell: () => void) {
    listeners.add(tell);
    return () => void listeners.delete(tell);
}
