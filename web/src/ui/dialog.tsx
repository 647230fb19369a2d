// SPDX-License-Identifier: Apache-2.0
// A dialog: the browser's own element, which keeps the focus inside and ends with Escape.
import { useEffect, useId, useRef } from 'react';
import { Icon } from './icon';

export function Dialog({ title, onClose, children, footer, wide }: { title: string; onClose: () => void; children: React.ReactNode; footer?: React.ReactNode; wide?: boolean }) {
    const ref = useRef<HTMLDialogElement>(null);
    const id = useId();

    useEffect(() => {
        const dialog = ref.current;
        const before = document.activeElement as HTMLElement | null;
        if (dialog && !dialog.open) dialog.showModal();
        return () => {
            dialog?.close();
            before?.focus?.();
        };
    }, []);
    return (
        <dialog ref={ref} className={`dialog ${wide ? 'wide' : ''}`} aria-labelledby={id} onCancel={e => { e.preventDefault(); onClose(); }}>
            <header><h2 id={id} className="grow">{title}</h2><button type="button" className="button plain small" aria-label="Close" onClick={onClose}><Icon name="close" /></button></header>
            <div className="body">{children}</div>
            {footer && <footer>{footer}</footer>}
        </dialog>
    );
}
