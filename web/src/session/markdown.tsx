// SPDX-License-Identifier: Apache-2.0
// What models write, as elements: paragraphs, lists, headings, code, emphasis. Never HTML, never an image, and a link only where it
// shows where it leads. What is not understood is shown as it was written.
import { Fragment, memo, useState } from 'react';
import { cut, visible } from '../model/text';
import { parseBlocks, parseInline, type Block, type Inline } from '../model/markdown';
import { Button } from '../ui/parts';
import { bytes } from '../model/format';

const SHOWN = 20_000; /* characters of one text, until a person asks for more */

function Inlines({ parts }: { parts: Inline[] }) {
    return (
        <>
            {parts.map((p, i) => {
                switch (p.type) {
                    case 'code': return <code key={i} className="code">{p.text}</code>;
                    case 'strong': return <strong key={i}><Inlines parts={p.parts} /></strong>;
                    case 'em': return <em key={i}><Inlines parts={p.parts} /></em>;
                    case 'link': return <a key={i} href={p.href} rel="noopener noreferrer nofollow" target="_blank" title={p.href}>{p.text}{p.text === p.href ? '' : <span className="faint"> ({p.href})</span>}</a>;
                    default: return <Fragment key={i}>{p.text}</Fragment>;
                }
            })}
        </>
    );
}

function BlockView({ block }: { block: Block }) {
    switch (block.type) {
        case 'code': return <pre className="json" tabIndex={0}>{block.text}</pre>;
        case 'heading': return <p className={`heading h${Math.min(block.level, 3)}`}><Inlines parts={parseInline(block.text)} /></p>;
        case 'list': {
            const items = block.items.map((item, i) => <li key={i}><Inlines parts={parseInline(item)} /></li>);
            return block.ordered ? <ol className="bullets">{items}</ol> : <ul className="bullets">{items}</ul>;
        }
        case 'quote': return <blockquote><Inlines parts={parseInline(block.text)} /></blockquote>;
        case 'table': return (
            <div className="scroll-x"><table className="cells"><thead><tr>{block.head.map((c, i) => <th key={i}><Inlines parts={parseInline(c)} /></th>)}</tr></thead>
                <tbody>{block.rows.map((r, i) => <tr key={i}>{r.map((c, k) => <td key={k}><Inlines parts={parseInline(c)} /></td>)}</tr>)}</tbody></table></div>
        );
        default: return <p className="said"><Inlines parts={parseInline(block.text)} /></p>;
    }
}

function More({ text, children }: { text: string; children: (shown: string) => React.ReactNode }) {
    const [max, setMax] = useState(SHOWN);
    const part = cut(text, max);
    return (
        <>
            {children(part.text)}
            {part.isCut && <div className="row"><span className="faint small">{bytes(text.length)} in all</span><Button size="small" onClick={() => setMax(max * 10)}>Show more</Button></div>}
        </>
    );
}

export const Markdown = memo(function Markdown({ text }: { text: string }) {
    return <More text={text}>{shown => <div className="markdown">{parseBlocks(visible(shown)).map((b, i) => <BlockView key={i} block={b} />)}</div>}</More>;
});

/* As it is, in its own lines: what users write, and what tools print. */
export const Plain = memo(function Plain({ text, mono }: { text: string; mono?: boolean }) {
    return <More text={text}>{shown => (mono ? <pre className="json" tabIndex={0}>{visible(shown)}</pre> : <p className="said">{visible(shown)}</p>)}</More>;
});
