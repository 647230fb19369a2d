// SPDX-License-Identifier: Apache-2.0
// A page that failed says so, and the places beside it still work. Parts that are not there any more: the page is of an older version.
import { Component } from 'react';
import { Button, Note } from './parts';

export class ErrorBoundary extends Component<{ children: React.ReactNode }, { error: Error | null }> {
    state = { error: null as Error | null };

    static getDerivedStateFromError(error: Error) {
        return { error };
    }

    render() {
        const { error } = this.state;
        if (!error) return this.props.children;
        const isOlder = /dynamically imported module|Importing a module/.test(error.message);
        return (
            <div className="card pad col" role="alert">
                <h2>{isOlder ? 'This page is of an older version' : 'This page failed'}</h2>
                <Note tone="fail">{isOlder ? 'The server was replaced by another version while the page was open. Load it again: the place stays the same.' : error.message}</Note>
                <div className="row"><Button look="primary" onClick={() => location.reload()}>Load again</Button></div>
            </div>
        );
    }
}
