#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An attacker who knows the format: changes an event of a session and makes its digests right again.

    forge.py STORE SESSION SEQ FROM TO [all|one|none]

In the body of event SEQ the text FROM becomes TO. Then the digests are computed anew: of every event from there on (all), of that one
alone (one), or not at all (none). STORE is files:DIR or the path of a database that nobody has open.
"""
import hashlib
import json
import sqlite3
import struct
import sys
from datetime import datetime, timezone

store, session, seq, old, new = sys.argv[1:6]
how = sys.argv[6] if len(sys.argv) > 6 else "all"
seq = int(seq)


def text(b):
    return struct.pack("<q", len(b)) + b


def digest(before, number, epoch, ms, kind, body):
    h = hashlib.blake2b(digest_size=32)
    h.update(before + text(session.encode()) + struct.pack("<qqq", number, epoch, ms) + text(kind.encode()) + text(body))
    return h.digest()


def touched(number):
    return number == seq if how == "one" else number >= seq and how == "all"


def forge_database():
    db = sqlite3.connect(store)
    sid = db.execute("SELECT sid FROM sessions WHERE id = ?", (session,)).fetchone()[0]
    rows = db.execute("SELECT pos, seq, epoch, ts, kind, body, digest FROM events WHERE sid = ? ORDER BY seq", (sid,)).fetchall()
    before = bytes(32)
    for pos, number, epoch, ms, kind, body, mark in rows:
        if number == seq:
            assert old in body, body
            body = body.replace(old, new)
            db.execute("UPDATE events SET body = ? WHERE pos = ?", (body, pos))
        if touched(number):
            mark = digest(before, number, epoch, ms, kind, body.encode())
            db.execute("UPDATE events SET digest = ? WHERE pos = ?", (mark, pos))
        before = mark
    # The checks of rows are no secret either; `store check --rebuild` is not needed: a session that is not live has one row.
    if how == "all":
        db.execute("UPDATE sessions SET digest = ? WHERE sid = ?", (before, sid))
        db.execute("UPDATE live SET digest = ? WHERE sid = ?", (before, sid))
    db.commit()


def forge_files():
    path = store[len("files:"):] + "/sessions/" + session + ".messages.jsonl"
    lines = open(path, encoding="utf-8").read().splitlines()
    before = bytes(32)
    for i, line in enumerate(lines):
        event = json.loads(line)
        mark = event["tidemark"]["digest"]
        head, end = line.rsplit(',"tidemark":', 1)
        begin = '{"seq":%d,"ts":"%s","kind":"%s"' % (event["seq"], event["ts"], event["kind"])
        body = head[len(begin) + 1:]
        if event["seq"] == seq:
            assert old in body, body
            body = body.replace(old, new)
        if touched(event["seq"]):
            ms = datetime.strptime(event["ts"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
            ms = round(ms.timestamp() * 1000)
            after = digest(before, event["seq"], event["tidemark"]["epoch"], ms, event["kind"], ("{" + body + "}").encode()).hex()
            end = end.replace(mark, after)
            mark = after
        before = bytes.fromhex(mark)
        lines[i] = begin + ("," + body if body else "") + ',"tidemark":' + end
    open(path, "w", encoding="utf-8").write("\n".join(lines) + "\n")


forge_files() if store.startswith("files:") else forge_database()
