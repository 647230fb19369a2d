// SPDX-License-Identifier: Apache-2.0
// Links, buttons, notes, empty pages, times: what is too small for a file of its own.
import { useEffect, useId, useRef, useState, useSyncExternalStore } from 'react';
import { errorText } from '../api/client';
import { serverNow, subscribeClock } from '../api/clock';
import { ago } from '../model/format';
import { visible } from '../model/text';
import { go } from '../place';
import { Shape } from './badge';
import type { Tone } from '../model/status';

export function Link({ to, children, ...rest }: { to: string } & React.AnchorHTMLAttributes<HTMLAnchorElement>) {
    return (
        <a {...rest} href={to} onClick={e => {
            rest.onClick?.(e);
            if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
            e.preventDefault();
            go(to);
        }}>{children}</a>
    );
}

type ButtonProps = React.ButtonHTMLAttributes<HTMLButtonElement> & { look?: 'primary' | 'danger' | 'plain'; size?: 'small'; busy?: boolean };
export function Button({ look, size, busy, className = '', children, disabled, ...rest }: ButtonProps) {
    return (
        <button type="button" {...rest} disabled={disabled || busy} aria-busy={busy || undefined} className={`button ${look ?? ''} ${size ?? ''} ${className}`}>
            {busy && <span className="spinner" aria-hidden="true" />}{children}
        </button>
    );
}

/* For what cannot be undone: the first press asks, the second one does it. It asks no longer after some seconds, or when it is left. */
export function SureButton({ children, sure, onClick, ...rest }: ButtonProps & { sure: string; onClick: () => void }) {
    const [asks, setAsks] = useState(false);
    useEffect(() => {
        if (!asks) return;
        const timer = setTimeout(() => setAsks(false), 5000);
        return () => clearTimeout(timer);
    }, [asks]);
    return <Button {...rest} look={asks ? 'danger' : rest.look} aria-label={asks ? sure : rest['aria-label']} onBlur={() => setAsks(false)} onClick={() => { if (asks) onClick(); setAsks(!asks); }}>{asks ? sure : children}</Button>;
}

export function Note({ tone = 'quiet', children, action }: { tone?: Tone; children: React.ReactNode; action?: React.ReactNode }) {
    return <div className={`note ${tone}`} role={tone === 'fail' ? 'alert' : 'note'}><Shape tone={tone} size={14} /><div className="grow said">{children}</div>{action}</div>;
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
    return <Note tone="fail" action={retry && <Button size="small" onClick={retry}>Retry</Button>}>{visible(errorText(error))}</Note>;
}

/* Nothing here yet: what would be here, and how it gets here. */
export function Empty({ title, children }: { title: string; children?: React.ReactNode }) {
    return <div className="empty"><h2>{title}</h2>{children}</div>;
}

export function Loading({ what }: { what: string }) {
    const isLate = useLate(250);
    return <div className="empty" role="status">{isLate && <><span className="spinner" /><span className="faint">{what}</span></>}</div>;
}

function useLate(ms: number) {
    const [late, setLate] = useState(false);
    useEffect(() => {
        const timer = setTimeout(() => setLate(true), ms);
        return () => clearTimeout(timer);
    }, [ms]);
    return late;
}

/* One clock for all ages on the page, once in a second while anybody looks. */
const ticks = new Set<() => void>();
let now = serverNow();
const tick = () => {
    if (document.hidden) return;
    now = serverNow();
    ticks.forEach(tell => tell());
};
setInterval(tick, 1000);
subscribeClock(tick);
export const useNow = () =>
    useSyncExternalStore(tell => {
        ticks.add(tell);
        return () => void ticks.delete(tell);
    }, () => now);

export function Age({ at }: { at: string | null }) {
    const ms = useNow();
    if (!at) return <span className="faint">–</span>;
    return <time dateTime={at} title={`${at.replace('T', ' ').replace('Z', '')} UTC`} className="number">{ago(Date.parse(at), ms)}</time>;
}

/* Local time; UTC is the tooltip. */
export function Time({ at, withDate = true }: { at: string | null; withDate?: boolean }) {
    if (!at) return <span className="faint">–</span>;
    const d = new Date(at);
    const text = Number.isNaN(d.getTime()) ? at : withDate ? d.toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium' }) : d.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
    return <time dateTime={at} title={`${at.replace('T', ' ').replace('Z', '')} UTC`} className="number">{text}</time>;
}

export function Field({ label, help, children }: { label: string; help?: string; children: (id: string) => React.ReactNode }) {
    const id = useId();
    return <div className="field"><label htmlFor={id}>{label}</label>{children(id)}{help && <span className="help">{help}</span>}</div>;
}

export function Diff({ text }: { text: string }) {
    return (
        <div className="diff" role="figure" aria-label="The change, line by line" tabIndex={0}>
            {visible(text).split('\n').map((line, i) => (
                <div key={i} className={line.startsWith('+') ? 'plus' : line.startsWith('-') ? 'minus' : line.startsWith('@') ? 'at' : ''}>{line || ' '}</div>
            ))}
        </div>
    );
}

export function JsonText({ value }: { value: unknown }) {
    return <pre className="json" tabIndex={0}>{visible(JSON.stringify(value, null, 2) ?? '')}</pre>;
}

export function Tabs({ tabs, current, onPick, label }: { tabs: { id: string; label: string; count?: number }[]; current: string; onPick: (id: string) => void; label: string }) {
    const move = (e: React.KeyboardEvent) => {
        const step = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
        if (!step) return;
        const i = (tabs.findIndex(t => t.id === current) + step + tabs.length) % tabs.length;
        const next = tabs[i];
        if (!next) return;
        e.preventDefault();
        onPick(next.id);
        (e.currentTarget.children[i] as HTMLElement | undefined)?.focus();
    };
    const list = useRef<HTMLDivElement>(null);
    useEffect(() => { /* on a narrow screen the chosen one is seen whole */
        const box = list.current, chosen = box?.querySelector<HTMLElement>('[aria-selected="true"]');
        if (box && chosen) box.scrollLeft = chosen.offsetLeft - (box.clientWidth - chosen.offsetWidth) / 2;
    }, [current]);
    return (
        <div className="tabs" role="tablist" aria-label={label} onKeyDown={move} ref={list}>
            {tabs.map(t => (
                <button key={t.id} type="button" role="tab" id={`tab-${t.id}`} aria-selected={t.id === current} aria-controls={t.id === current ? `panel-${t.id}` : undefined} tabIndex={t.id === current ? 0 : -1} onClick={() => onPick(t.id)}>
                    {t.label}{t.count ? <span className="faint"> {t.count}</span> : null}
                </button>
            ))}
        </div>
    );
}
