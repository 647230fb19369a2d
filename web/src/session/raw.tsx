// SPDX-License-Identifier: Apache-2.0
// Everything as the API has it: the session, its state, and the addresses they come from.
import { useQuery } from '../api/query';
import type { TabProps } from '../pages/session';
import { Failure, JsonText } from '../ui/parts';

export default function Raw({ id, live, at }: TabProps) {
    const state = useQuery('session.state', { id, at: at ? String(at) : undefined });
    const path = `/api/v1/sessions/${encodeURIComponent(id)}`;
    return (
        <div className="col">
            <h2><code>GET {path}</code></h2>
            <JsonText value={live.page?.session} />
            <h2><code>GET {path}/state{at ? `?at=${at}` : ''}</code></h2>
            {state.error ? <Failure error={state.error} retry={state.read} /> : <JsonText value={state.data} />}
        </div>
    );
}
