// SPDX-License-Identifier: Apache-2.0
// Who has no token yet: a code in the address's fragment, which is never sent, is exchanged for one, and leaves the address at once.
import { useEffect, useState } from 'react';
import { call, errorText } from '../api/client';
import { keepToken, lostReason } from '../api/token';
import { Button, Field, Note } from '../ui/parts';

function takeCode(): string | null {
    const code = new URLSearchParams(location.hash.slice(1)).get('code');
    if (location.hash) history.replaceState(null, '', location.pathname + location.search);
    return code;
}
let first = takeCode(); /* once, before anything renders */

export function SignIn() {
    const [code, setCode] = useState('');
    const [busy, setBusy] = useState(first !== null);
    const [error, setError] = useState<string | null>(lostReason());

    const exchange = (with_code: string) => {
        setBusy(true);
        call('signin.use', { code: with_code })
            .then(({ name, scopes, token, expires_at }) => keepToken({ name, scopes, token: token ?? '', expires_at }))
            .catch((e: unknown) => {
                setError(errorText(e));
                setBusy(false);
            });
    };
    useEffect(() => {
        if (first === null) return;
        const once = first;
        first = null;
        exchange(once);
    }, []);
    const submit = (e: React.FormEvent) => {
        e.preventDefault();
        const given = code.trim();
        exchange(given.includes('#code=') ? given.slice(given.indexOf('#code=') + 6) : given);
    };
    return (
        <main className="main" id="main">
            <div className="empty">
                <img src="/favicon.svg" alt="" width="48" height="48" />
                <h1>Tidemark</h1>
                <p>To sign in, run this on the machine of the server and open the address that it prints:</p>
                <code>tidemark console</code>
                <form className="col" onSubmit={submit}>
                    <Field label="Or enter its code" help="It is valid once, within one minute.">{id => <input id={id} className="input mono" autoComplete="off" spellCheck={false} value={code} onChange={e => setCode(e.target.value)} />}</Field>
                    <Button look="primary" type="submit" busy={busy} disabled={!code.trim()}>Sign in</Button>
                </form>
                {error && <Note tone="fail">{error}</Note>}
            </div>
        </main>
    );
}
