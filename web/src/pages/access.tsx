// SPDX-License-Identifier: Apache-2.0
// Who may reach this server: the token of this tab, and all named ones, made, revoked and shown once.
import { useState } from 'react';
import { call, errorText } from '../api/client';
import { serverNow } from '../api/clock';
import { useDoing, useQuery } from '../api/query';
import { forgetToken, may } from '../api/token';
import { setResumesByItself, useResumesByItself } from '../model/settings';
import type { Place } from '../place';
import { Button, Empty, Failure, Field, Note, SureButton, Time } from '../ui/parts';
import { toast } from '../ui/toast';

const SCOPES: [string, string][] = [['read', 'see everything'], ['answer', 'answer waits and approvals'], ['write', 'send, resume, cancel, fork, roll back'], ['run', 'start what the settings name'], ['admin', 'everything']];
const DAY = 86_400_000;

function Make({ onDone }: { onDone: () => void }) {
    const [name, setName] = useState('');
    const [scopes, setScopes] = useState<string[]>(['read']);
    const [days, setDays] = useState('30');
    const [secret, setSecret] = useState<string | null>(null);
    const doing = useDoing();
    const make = () => void doing.run(async () => {
        const made = await call('token.create', { name: name.trim(), scopes, expires_ms: Number(days) > 0 ? serverNow() + Number(days) * DAY : null });
        setSecret(made.token ?? null);
        setName('');
        onDone();
    });
    return (
        <form className="card pad col" onSubmit={e => { e.preventDefault(); make(); }}>
            <h2>Make a token</h2>
            <div className="row wrap top">
                <Field label="Name" help="The log calls its requests so.">{id => <input id={id} className="input" value={name} onChange={e => setName(e.target.value)} />}</Field>
                <Field label="Days" help="Empty: it never ends.">{id => <input id={id} className="input" inputMode="numeric" value={days} onChange={e => setDays(e.target.value)} />}</Field>
                <fieldset className="field"><legend>It may</legend>{SCOPES.map(([scope, help]) => <label key={scope} className="row small"><input type="checkbox" checked={scopes.includes(scope)} onChange={e => setScopes(now => (e.target.checked ? [...now, scope] : now.filter(s => s !== scope)))} />{scope}: {help}</label>)}</fieldset>
            </div>
            <div className="row"><Button type="submit" look="primary" busy={doing.busy} disabled={!name.trim() || scopes.length === 0}>Make it</Button></div>
            {doing.error ? <Failure error={doing.error} /> : null}
            {secret && <><Note tone="wait">It is shown only here, and only now.</Note><pre className="json">{secret}</pre></>}
        </form>
    );
}

function Tokens({ own }: { own: string | undefined }) {
    const list = useQuery('token.list', {});
    const revoke = (name: string) => void call('token.revoke', { name }).then(() => { toast(`Revoked: ${name}`); list.read(); }).catch((e: unknown) => toast(errorText(e)));
    return (
        <>
            {list.error ? <Failure error={list.error} retry={list.read} /> : null}
            {list.data?.tokens.length === 0 && <Empty title="No named token" />}
            {list.data && list.data.tokens.length > 0 && (
                <div className="card scroll-x"><table className="cells plain"><thead><tr><th>Name</th><th>It may</th><th>Made</th><th>Ends</th><th><span className="unseen">Actions</span></th></tr></thead>
                    <tbody>{list.data.tokens.map(t => <tr key={t.name}><td>{t.name}{t.name === own && <span className="tag">this tab</span>}</td><td>{t.scopes.join(', ')}</td><td><Time at={t.created_at} /></td><td>{t.expires_at ? <Time at={t.expires_at} /> : 'never'}{t.expired && ' (over)'}</td><td><SureButton size="small" sure={t.name === own ? 'Revoke and sign out' : 'Really revoke'} onClick={() => revoke(t.name)}>Revoke</SureButton></td></tr>)}</tbody></table></div>
            )}
            <Make onDone={list.read} />
        </>
    );
}

export default function Access({ place }: { place: Place }) {
    void place;
    const me = useQuery('me.get', {});
    const resumes = useResumesByItself();
    const [url, setUrl] = useState<string | null>(null);
    const doing = useDoing();
    const signOut = () => void doing.run(async () => {
        await call('me.end', {});
        forgetToken('Signed out.');
    });
    return (
        <>
            <div className="page-head"><h1>Access</h1></div>
            <div className="card pad col">
                <h2>This tab</h2>
                {me.error ? <Failure error={me.error} retry={me.read} /> : null}
                {me.data && <p>It uses the token <b className="mono">{me.data.name}</b>, which may {me.data.scopes.join(', ')}{me.data.expires_at && <>, until <Time at={me.data.expires_at} /></>}. It is kept in this tab only.</p>}
                <div className="row wrap"><Button onClick={() => void doing.run(async () => setUrl((await call('signin.code', {})).url))}>Open the console elsewhere</Button><Button look="danger" busy={doing.busy} onClick={signOut}>Sign out</Button></div>
                {url && <><Note tone="wait">Valid once, within one minute. Whoever opens it gets what this tab may.</Note><pre className="json">{url}</pre></>}
                {doing.error ? <Failure error={doing.error} /> : null}
            </div>
            <div className="card pad col">
                <h2>This browser</h2>
                <label className="row"><input type="checkbox" checked={resumes} onChange={e => setResumesByItself(e.target.checked)} />Resume interrupted sessions by themselves when I open them</label>
                <p className="small dim">Only where nothing is left to decide: never where it is unknown whether an effect happened, and never what is not trusted.</p>
            </div>
            {may('admin') && <Tokens own={me.data?.name} />}
        </>
    );
}
