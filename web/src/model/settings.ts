// SPDX-License-Identifier: Apache-2.0
// What a person chose for this browser.
import { useSyncExternalStore } from 'react';

const KEY = 'tidemark.resume_by_itself';
const listeners = new Set<() => void>();
let resumes = read();

function read(): boolean {
    try {
        return localStorage.getItem(KEY) === 'yes';
    } catch {
        return false;
    }
}

export function setResumesByItself(on: boolean) {
    resumes = on;
    try {
        if (on) localStorage.setItem(KEY, 'yes');
        else localStorage.removeItem(KEY);
    } catch {
        /* it lasts as long as the page */
    }
    listeners.forEach(tell => tell());
}

/* An interrupted session that can be resumed is resumed when it is opened, where nothing is left for a person to decide. */
export const useResumesByItself = () =>
    useSyncExternalStore(tell => {
        listeners.add(tell);
        return () => void listeners.delete(tell);
    }, () => resumes);
