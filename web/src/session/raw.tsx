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
            <h3><code>GET {path}</code></h3>
            <JsonText value={live.page?.session} />
            <h3><code>GET {path}/state{at ? `?at=${at}` : ''}</code></h3>
            {state.error ? <Failure error={state.error} retry={state.read} /> : <JsonText value={state.data} />}
        </div>
    );
}
