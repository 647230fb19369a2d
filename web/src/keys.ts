// SPDX-License-Identifier: Apache-2.0
// Keys of the whole page: "/" to search, g and a letter to a place, j and k through lists, ? for help. Never while somebody types.
import { useEffect, useState } from 'react';
import { go } from './place';

const PLACES: Record<string, string> = { s: '/', i: '/inbox', t: '/tasks', g: '/graphs', n: '/start', a: '/access' };
export const HELP: [string, string][] = [['/', 'search'], ['j, k', 'next, previous line'], ['Enter', 'open the line'], ['g s', 'sessions'], ['g i', 'inbox'], ['g t', 'tasks'], ['g g', 'graphs'], ['g n', 'start'], ['g a', 'access'], ['1 … 7', 'views of a session'], ['[, ]', 'one event back, on'], ['Esc', 'close what is open'], ['?', 'this list']];

const isTyping = (e: Element | null) => e instanceof HTMLInputElement || e instanceof HTMLTextAreaElement || e instanceof HTMLSelectElement || (e instanceof HTMLElement && e.isContentEditable);

/* A key that is nobody else's: nobody types, no dialog is open. */
export const isFree = (e: KeyboardEvent) => !(e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || isTyping(document.activeElement) || document.querySelector('dialog[open]'));

function step(by: number) {
    const links = [...document.querySelectorAll<HTMLElement>('.line-title')];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))]?.focus();
}

export function useKeys(): { isHelp: boolean; closeHelp: () => void } {
    const [isHelp, setHelp] = useState(false);

    useEffect(() => {
        let leader = 0;
        const down = (e: KeyboardEvent) => {
            if (!isFree(e)) return;
            const isLed = Date.now() - leader < 1200;
            leader = 0;
            if (isLed && PLACES[e.key]) go(PLACES[e.key]!);
            else if (e.key === 'g') leader = Date.now();
            else if (e.key === 'j') step(1);
            else if (e.key === 'k') step(-1);
            else if (e.key === '?') setHelp(true);
            else if (e.key === '/') document.querySelector<HTMLElement>('[data-key="/"]')?.focus();
            else return;
            e.preventDefault();
        };
        addEventListener('keydown', down);
        return () => removeEventListener('keydown', down);
    }, []);
    return { isHelp, closeHelp: () => setHelp(false) };
}
