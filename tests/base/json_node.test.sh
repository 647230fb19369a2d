#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our JSON reader against Node's JSON.parse on documents made from a seed: both must take the same ones and see the
# same values. Where strictness differs on purpose (duplicate keys, lone surrogates, depth, invalid UTF-8) the script
# works out by itself that the document has the fault and demands that ours names it.
#
#     json_node.test.sh [path of the json_verdict program]      without one it is compiled here
#     SEED=7 COUNT=100000 json_node.test.sh                     other documents, more of them
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

verdict=${1:-}
if [ -z "$verdict" ]; then
    verdict=$work/json_verdict
    ${CC:-cc} -std=gnu17 -D_GNU_SOURCE -O1 -I"$root/include" -I"$root/src" -include "$root/src/base/banned.h" \
        "$here/json_verdict.c" "$root"/src/base/*.c -lsodium -lpthread -o "$verdict"
fi
case $verdict in
    /*) ;;
    *) verdict=$PWD/$verdict ;;
esac

cat >"$work/compare.js" <<'JS'
'use strict';
const assert = require('assert');
const { spawnSync } = require('child_process');

const seed = Number(process.env.SEED || 20260221), count = Number(process.env.COUNT || 20000);
let state = seed >>> 0;
function random(n) { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = (list) => list[random(list.length)];

// ---- documents ----
const numbers = ['0', '-0', '1', '-1', '12', '1.5', '-0.25', '1e5', '1E+5', '2e-7', '0.0', '9007199254740993',
    '9223372036854775807', '-9223372036854775808', '1e999', '1e-999', '123456789012345678901234567890', '0e0'];
const badNumbers = ['01', '+1', '.5', '1.', '1.e3', '1e', '1e+', '-', '--1', '0x1f', '1_000', 'NaN', 'Infinity', '-Infinity'];
const pieces = ['a', 'key', ' ', '/', '\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\u0041', '\\u0000', '\\u00e9',
    '\\u20AC', '\\ud83d\\ude00', '\\uDBFF\\uDFFF', '\u00e9', '\u20ac', '\u{1f600}', '\u2028', '\x7f', '\ufeff',
    '0123456789abcdef', 'the quick brown fox'];
const badPieces = ['\\ud800', '\\udc00', '\\ud800\\ud800', '\\ud83dx', '\\ud83d\\n', '\\x41', '\\u12', '\\u12g4', '\\', '\n', '\t',
    '\0', '\x1f', '\\U0041', "\\'", '\\u{41}'];
const keys = ['a', 'b', 'c', 'key', '', '10', '9', '__proto__', 'constructor', 'x y', '\\u0061', '\\u0062', '\\/', '/', '\u00e9',
    '\\u00e9', '\\ud83d\\ude00', '\u{1f600}'];
const space = () => (random(4) ? '' : pick([' ', '\n', '\t', '\r\n', '  ', ' \n\t']));
function string(odds) {
    let text = '';
    for (let n = random(6); n > 0; n--) text += random(odds) ? pick(pieces) : pick(badPieces);
    return '"' + text + '"';
}
function object(depth, odds) {
    const used = new Set(), members = [];
    for (let n = random(8) ? random(6) : 14 + random(30); n > 0; n--) {
        let key = random(3) ? 'k' + members.length : pick(keys);
        if (used.has(JSON.parse('"' + key + '"')) && random(odds)) key = 'other' + members.length;
        used.add(JSON.parse('"' + key + '"'));
        members.push(space() + '"' + key + '"' + space() + ':' + space() + value(depth - 1, odds) + space());
    }
    return '{' + (members.join(',') || space()) + '}';
}
function array(depth, odds) {
    const items = [];
    for (let n = random(6); n > 0; n--) items.push(space() + value(depth - 1, odds) + space());
    return '[' + (items.join(',') || space()) + ']';
}
function value(depth, odds) { // about one part in `odds` is wrong
    const kind = random(depth > 0 ? 10 : 6);
    if (kind < 1) return pick(['true', 'false', 'null']);
    if (kind < 3) return random(odds) ? pick(numbers) : pick(badNumbers);
    if (kind < 6) return string(odds);
    return kind < 8 ? object(depth, odds) : array(depth, odds);
}
function mutate(bytes) {
    const out = Buffer.from(bytes), at = random(out.length || 1);
    switch (random(5)) {
    case 0: return out.subarray(0, at);
    case 1: return Buffer.concat([out.subarray(0, at), out.subarray(at + 1)]);
    case 2: return Buffer.concat([out.subarray(0, at), Buffer.from([random(256)]), out.subarray(at)]);
    case 3: return Buffer.concat([out, Buffer.from(pick(['}', ']', ',', '1', '\0', 'x', '"', '//', '\ufeff']))]);
    default: if (out.length) out[at] = random(4) ? pick([...Buffer.from('{}[]",:\\0-+.eE \n\0u')]) : random(256); return out;
    }
}
function nested(depth) {
    const open = [], close = [];
    for (let i = 0; i < depth; i++) {
        const list = random(2);
        open.push(list ? '[' : '{"a":');
        close.unshift(list ? ']' : '}');
    }
    return open.join('') + '1' + close.join('');
}
function document(i) {
    if (i % 50 === 0) return Buffer.from(nested(120 + random(16)));
    const text = Buffer.from(space() + value(1 + random(6), i % 2 ? 1e9 : 12) + space());
    return i % 5 === 4 ? mutate(text) : text;
}
const fixed = ['', ' ', '\ufeff{}', '{}', '[]', '""', 'nul', 'nullnull', '[1,]', '{"a":1,}', '[1 2]', "{'a':1}", '{a:1}', '[1]//',
    '/**/1', '"\u2028\u2029"', '\u00a01', '\v1', '\f1', '1\u2003', '{"__proto__":{"x":1}}', '{"a":1,"\\u0061":2}', '[\u2028]',
    ...numbers, ...badNumbers, ...pieces.map((p) => `"${p}"`), ...badPieces.map((p) => `"${p}"`)].map((t) => Buffer.from(t));

// ---- what Node thinks, and the faults it forgives ----
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const LONE = /[\ud800-\udfff]/u; // with the u flag pairs are one character, so this matches halves only
function count_members(v) {
    if (v === null || typeof v !== 'object') return 0;
    const own = Array.isArray(v) ? 0 : Object.keys(v).length;
    return Object.values(v).reduce((sum, item) => sum + count_members(item), own);
}
function has_lone(v) {
    if (typeof v === 'string') return LONE.test(v);
    if (v === null || typeof v !== 'object') return false;
    return Object.entries(v).some(([key, item]) => LONE.test(key) || has_lone(item));
}
function forgiven(text, v) {
    const bare = text.replace(/"(?:[^"\\]|\\.)*"/gs, ''), faults = new Set();
    let depth = 0, deepest = 0;
    for (const c of bare) {
        if (c === '[' || c === '{') deepest = Math.max(deepest, ++depth);
        if (c === ']' || c === '}') depth--;
    }
    if (deepest > 128) faults.add('nesting deeper than 128');
    if ((bare.match(/:/g) || []).length > count_members(v)) faults.add('duplicate key').add('lone surrogate');
    if (has_lone(v)) faults.add('lone surrogate'); // may also hide in what a duplicate key has overwritten: above
    return faults;
}
const tally = { taken: 0, refused: 0, forgiven: 0 };
function compare(bytes, line) {
    const [word, ...rest] = line.split('\t');
    let text, v;
    try {
        text = utf8.decode(bytes);
        v = JSON.parse(text);
    } catch (e) {
        assert.strictEqual(word, 'no', 'taken, but Node says: ' + e.message);
        assert.match(rest[0], /^line \d+, column \d+: [^\x00-\x1f\x7f]+$/, 'message');
        tally.refused++;
        return;
    }
    const faults = forgiven(text, v);
    if (faults.size) {
        assert.strictEqual(word, 'no', 'taken in spite of: ' + [...faults]);
        assert.ok([...faults].some((fault) => rest[0].includes(fault)), `"${rest[0]}" is none of: ` + [...faults]);
        tally.forgiven++;
        return;
    }
    assert.strictEqual(word, 'ok', 'refused: ' + rest[0]);
    const [compact, written, requoted] = rest;
    assert.strictEqual(compact === '1', written === text, 'the compact flag');
    assert.deepStrictEqual(JSON.parse(written), v, 'written');
    assert.strictEqual(JSON.stringify(JSON.parse(requoted)), JSON.stringify(v), 'decoded');
    tally.taken++;
}

const documents = fixed.concat(Array.from({ length: count }, (_, i) => document(i)));
const input = Buffer.concat(documents.flatMap((d) => [Buffer.from(d.length + '\n'), d]));
const run = spawnSync(process.argv[2], { input, maxBuffer: 1 << 30 });
const lines = run.stdout ? run.stdout.toString('utf8').split('\n') : [];
if (run.error || run.status !== 0 || lines.length !== documents.length + 1) {
    console.error(`json_node: ${process.argv[2]} ended with ${run.error || run.status} after ${lines.length - 1} of ` +
        `${documents.length} documents (SEED=${seed} COUNT=${count})\n${run.stderr}`);
    process.exit(1);
}
documents.forEach((bytes, i) => {
    try {
        compare(bytes, lines[i]);
    } catch (e) {
        console.error(`json_node: document ${i} (SEED=${seed} COUNT=${count}): ${e.message}\n` +
            `  bytes: ${bytes.toString('latin1').slice(0, 500).replace(/[^ -~]/g, (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'))}\n  ours:  ${lines[i].slice(0, 500)}`);
        process.exit(1);
    }
});
for (const [what, n] of Object.entries(tally))
    if (n < count / 50) {
        console.error(`json_node: only ${n} documents were ${what}: the test proves too little (SEED=${seed})`);
        process.exit(1);
    }
console.log(`# ${documents.length} documents: ${tally.taken} taken, ${tally.refused} refused by both, ` +
    `${tally.forgiven} refused by us alone, by name; seed ${seed}`);
JS
name="the JSON reader agrees with Node"
if node "$work/compare.js" "$verdict"; then
    echo "ok - $name"
else
    echo "not ok - $name"
    exit 1
fi
