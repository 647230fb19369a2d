// SPDX-License-Identifier: Apache-2.0
// Light, dark, or as the system is; kept in this browser.
import { useState } from 'react';
import { Icon } from './icon';

const KEY = 'tidemark.theme';
const read = () => {
    try {
        return localStorage.getItem(KEY);
    } catch {
        return null;
    }
};
const apply = (theme: string | null) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
};
apply(read());

const order: (string | null)[] = [null, 'light', 'dark'];

export function Theme() {
    const [theme, setTheme] = useState(read);
    const next = order[(order.indexOf(theme) + 1) % order.length] ?? null;
    return (
        <button type="button" className="button plain small" onClick={() => {
            setTheme(next);
            apply(next);
            try {
                if (next) localStorage.setItem(KEY, next);
                else localStorage.removeItem(KEY);
            } catch {
                /* it lasts as long as the page */
            }
        }}><Icon name="theme" size={14} />{theme ?? 'system'} theme</button>
    );
}
