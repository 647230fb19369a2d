// SPDX-License-Identifier: Apache-2.0
// The token of this tab. It comes in exchange for a code that is valid once, is kept until the tab closes, and is in no address.
export interface HeldToken {
    name: string;
    token: string;
    scopes: string[];
    expires_at: string | null;
}

const KEY = 'tidemark.token';
let held: HeldToken | null = null;
let reason: string | null = null; /* why there is none any more */
const listeners = new Set<() => void>();

try {
    held = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as HeldToken | null;
} catch {
    held = null;
}

function changed() {
    listeners.forEach(tell => tell());
}

export function heldToken() {
    return held;
}

export function lostReason() {
    return reason;
}

export function subscribeToken(tell: () => void) {
    listeners.add(tell);
    return () => void listeners.delete(tell);
}

export function keepToken(token: HeldToken) {
    held = token;
    reason = null;
    try {
        sessionStorage.setItem(KEY, JSON.stringify(token));
    } catch {
        /* it lasts as long as the page */
    }
    changed();
}

export function forgetToken(why: string | null) {
    if (!held) return;
    held = null;
    reason = why;
    try {
        sessionStorage.removeItem(KEY);
    } catch {
        /* nothing was kept */
    }
    changed();
}

export function may(scope: string): boolean {
    const scopes = held?.scopes ?? [];
    return scopes.includes(scope) || scopes.includes('admin');
}
