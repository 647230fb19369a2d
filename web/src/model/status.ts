// SPDX-License-Identifier: Apache-2.0
// A status in people's words, with a tone and a shape of its own: colour alone tells nobody anything. The status itself is the server's.
export type Tone = 'run' | 'wait' | 'done' | 'fail' | 'cut' | 'quiet';

export interface Look {
    tone: Tone;
    word: string;
}

interface Stands {
    status: string;
    outcome: string;
    needs_resume?: boolean;
}

export function look(s: Stands): Look {
    switch (s.status) {
        case 'running': return { tone: 'run', word: 'running' };
        case 'waiting': return { tone: 'wait', word: 'waiting' };
        case 'interrupted_startup': return { tone: 'cut', word: 'interrupted' };
        case 'interrupted_waiting': return { tone: 'cut', word: 'interrupted while waiting' };
        case 'damaged': return { tone: 'fail', word: 'damaged' };
    }
    switch (s.outcome) {
        case 'completed': return { tone: 'done', word: 'completed' };
        case 'failed': return { tone: 'fail', word: 'failed' };
        case 'cancelled': return { tone: 'quiet', word: 'cancelled' };
        case 'interrupted': return { tone: 'cut', word: 'interrupted' };
    }
    return { tone: 'quiet', word: 'idle' };
}
