// SPDX-License-Identifier: Apache-2.0
// A state: a shape, a colour and a word. Each tone has a shape of its own, so that colour is not needed to tell them apart.
import { look, type Tone } from '../model/status';

export function Shape({ tone, size = 12 }: { tone: Tone; size?: number }) {
    const p = { fill: 'none', stroke: 'currentColor', strokeWidth: 2, strokeLinecap: 'round' as const, strokeLinejoin: 'round' as const };
    return (
        <svg width={size} height={size} viewBox="0 0 12 12" aria-hidden="true" {...p}>
            {tone === 'run' && <path className="turns" d="M6 1.500a4.500 4.500 0 1 1-4.300 3.200" />}
            {tone === 'wait' && <path d="M3.500 2.500v7M8.500 2.500v7" />}
            {tone === 'done' && <path d="M2 6.500l2.700 2.700L10 3.200" />}
            {tone === 'fail' && <path d="M2.500 2.500l7 7M9.500 2.500l-7 7" />}
            {tone === 'cut' && <path d="M7 1L3 6.500h3.200L5 11l4-5.500H5.800z" />}
            {tone === 'quiet' && <circle cx="6" cy="6" r="3.500" />}
        </svg>
    );
}

export function Badge({ tone, children }: { tone: Tone; children: React.ReactNode }) {
    return <span className={`badge tone-${tone}`}><Shape tone={tone} />{children}</span>;
}

export function StatusBadge({ session }: { session: { status: string; outcome: string } }) {
    const { tone, word } = look(session);
    return <Badge tone={tone}>{word}</Badge>;
}
