// SPDX-License-Identifier: Apache-2.0
// Small drawings in one style: 16 units, one stroke. They say nothing that words beside them do not.
const paths: Record<string, string> = {
    sessions: 'M2 4h12M2 8h12M2 12h8',
    inbox: 'M2 9l2-6h8l2 6v4H2zM2 9h4l1 2h2l1-2h4',
    tasks: 'M2 3h4v10H2zM10 3h4v6h-4z',
    graph: 'M3 3h4v3H3zM9 10h4v3H9zM5 6v5h4',
    compare: 'M8 2v12M3 5h3M3 8h3M3 11h3M10 5h3M10 8h3M10 11h3',
    start: 'M5 3l8 5-8 5z',
    access: 'M10 6a3 3 0 1 0-3 3h1l1 1h1v1h1v1h2v-2L9.800 7.800',
    torture: 'M9 2L4 9h4l-1 5 5-7H8z',
    close: 'M4 4l8 8M12 4l-8 8',
    back: 'M10 3L5 8l5 5',
    more: 'M3 8h.01M8 8h.01M13 8h.01',
    down: 'M4 6l4 4 4-4',
    right: 'M6 4l4 4-4 4',
    check: 'M3 8.500l3.500 3.500L13 4.500',
    copy: 'M5 5V2h9v9h-3M2 5h9v9H2z',
    search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3',
    theme: 'M8 2a6 6 0 1 0 0 12zM8 2v12',
};

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
    return (
        <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
            <path d={paths[name] ?? ''} />
        </svg>
    );
}
