# SPDX-License-Identifier: Apache-2.0
# The WebSocket: who gets one, what is asked through it, what is followed, and how it ends.
import json
import socket
import struct
import threading
import time

from frames import BINARY, CLOSE, PING, TEXT, Refused, Socket, frame, handshake
from serving import case, end, want
from watched import Server

s = Server()


def the_token_is_checked_before_the_upgrade():
    w = Socket(s)
    want(b"sec-websocket-protocol: tidemark.v1\r\n" in w.head.lower() + b"\r\n", True)
    want(s.token.encode() in w.head, False)
    want(w.ask("ping")["type"], "response")
    w.close()
    w = Socket(s, protocol=False)
    want(b"sec-websocket-protocol" in w.head.lower(), False)
    want(w.ask("server.health")["payload"], "ok\n")
    w.close()
    key, version = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"
    up = ["Connection: Upgrade", "Upgrade: websocket"]
    own = ["Host: 127.0.0.1:%d" % s.port]
    bearer = ["Authorization: Bearer " + s.token]
    rows = [
        (401, own + up + [key, version]),
        (401, own + up + [key, version, "Sec-WebSocket-Protocol: tidemark.v1"]),
        (401, own + up + [key, version, "Sec-WebSocket-Protocol: tidemark.v1, bearer.tide_wrong"]),
        (401, own + up + [key, version, "Sec-WebSocket-Protocol: tidemark.v1, bearer."]),
        (401, own + up + [key, version, "Sec-WebSocket-Protocol: tidemark.v1, bearer." + s.token, "Authorization: Bearer no"]),
        (400, own + up + [key, version, "Sec-WebSocket-Protocol: bearer." + s.token]),
        (400, own + up + [key, version, "Sec-WebSocket-Protocol: other.v2, bearer." + s.token]),
        (421, ["Host: evil.example"] + up + [key, version] + bearer),
        (403, own + up + [key, version, "Origin: http://evil.example"] + bearer),
        (403, own + up + [key, version, "Origin: null"] + bearer),
        (426, own + [key, version] + bearer),
        (426, own + ["Connection: Upgrade", "Upgrade: h2c", key, version] + bearer),
        (426, own + up + [key, "Sec-WebSocket-Version: 8"] + bearer),
        (400, own + up + ["Sec-WebSocket-Key: short", version] + bearer),
        (400, own + up + [version] + bearer),
        (101, own + up + [key, version, "Origin: http://127.0.0.1:%d" % s.port] + bearer),
    ]
    for status, lines in rows:
        c = socket.create_connection(("127.0.0.1", s.port), timeout=10)
        c.sendall(("GET /api/v1/ws HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode())
        want(int(c.recv(4096).split(b" ", 2)[1]), status, lines)
        c.close()
    try:
        Socket(s, path="/api/v1/ws?token=" + s.token, token="tide_wrong")
        raise AssertionError("a token in the address is taken")
    except Refused as r:
        want(r.status, 401)
    try:
        Socket(s, path="/api/v1/sessions")
        raise AssertionError("a protocol is a token elsewhere")
    except Refused as r:
        want(r.status, 401)


def every_action_of_http_is_asked_the_same_way():
    w = Socket(s)
    made = w.ask("session.create", {"title": "over a socket", "task_id": "t9"})
    want(sorted(made), ["action", "id", "payload", "timestamp", "type"])
    want((made["type"], made["action"]), ("response", "session.create"))
    one = made["payload"]["session_id"]
    want(w.ask("session.get", {"id": one})["payload"]["title"], "over a socket")
    want(w.ask("session.list", {"task_id": "t9", "limit": 1})["payload"]["sessions"][0]["session_id"], one)
    body = {"id": one, "kind": "memory.set", "data": {"values": {"n": 1}}}
    want(w.ask("event.append", body, if_match=1)["payload"]["seq"], 2)
    conflict = w.ask("event.append", body, if_match=1)
    want((conflict["type"], conflict["payload"]["error"]), ("error", "CONFLICT"))
    kept = w.ask("checkpoint.create", {"id": one})["payload"]["checkpoint_id"]
    want(w.ask("checkpoint.delete", {"id": one, "checkpoint": kept})["payload"], {})
    want(s.api("GET", "/sessions/" + one).json["last_seq"], 4)
    document = s.ask("GET", "/openapi.json").json
    names = [o["operationId"] for p in document["paths"].values() for o in p.values()]
    for name in names:  # each is known; what it answers is not looked at here
        answer = w.ask(name, {"nonsense": 1})
        want(answer["action"], name)
        want(answer["payload"].get("error") != "NOT_FOUND" if isinstance(answer["payload"], dict) else True, True, name)
    for p in document["paths"].values():  # one object holds all: no name may stand for two things
        for o in p.values():
            members = [q["name"] for q in o["parameters"]]
            body = o.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            members += list(body.get("properties", {}))
            want(len(members), len(set(members)), o["operationId"])
    w.close()


def bad_messages_are_refused_by_name():
    w = Socket(s)
    one = s.session()
    rows = [
        ("nothing.there", {}, "NOT_FOUND", "action"),
        ("session.get", {}, "INVALID", "id"),
        ("session.get", {"id": ""}, "INVALID", "id"),
        ("session.get", {"id": 7}, "INVALID", "id"),
        ("session.get", {"id": "nobody"}, "NOT_FOUND", "nobody"),
        ("session.get", {"id": "../x"}, "NOT_FOUND", ""),
        ("session.get", {"id": one, "more": 1}, "INVALID", "more"),
        ("session.list", {"limit": 0}, "INVALID", "limit"),
        ("session.list", {"limit": "1"}, "INVALID", "limit"),
        ("event.append", {"id": one}, "INVALID", "kind"),
        ("session.follow", {"id": one}, "INVALID", "action"),
        ("websocket.open", {}, "INVALID", "action"),
        ("subscribe", {"session_id": "nobody"}, "NOT_FOUND", "nobody"),
        ("subscribe", {"session_id": one[:-1]}, "NOT_FOUND", one[:-1]),
        ("session.get", {"id": one[:-1]}, "NOT_FOUND", one[:-1]),
        ("subscribe", {"session_id": "../x"}, "INVALID", "session_id"),
        ("subscribe", {"session_id": one, "task_id": "t"}, "INVALID", "task_id"),
        ("subscribe", {"after": -1}, "INVALID", "after"),
        ("subscribe", {"kinds": "run."}, "INVALID", "kinds"),
        ("unsubscribe", {"session_id": one}, "NOT_FOUND", "session_id"),
    ]
    for action, payload, code, name in rows:
        a = w.ask(action, payload)
        detail = a["payload"]["detail"]
        want((a["type"], a["payload"]["error"]), ("error", code), action)
        want(name in (detail.get("name") or "", detail.get("session_id") or "", ""), True, (action, detail))
    for text in ("{", "[]", "1", '{"id":1}', '{"id":1,"type":"request"}', '{"id":1,"type":"response","action":"ping"}',
                 '{"id":1,"type":"request","action":"ping","more":1}', '{"id":{},"type":"request","action":"ping"}',
                 '{"id":1,"type":"request","action":"ping","payload":[]}', '{"id":"%s","type":"request","action":"ping"}' % ("x" * 200),
                 '{"id":1,"type":"request","action":"ping","payload":%s}' % ('{"a":' * 100 + "1" + "}" * 100)):
        n = len(w.got)
        w.raw(frame(TEXT, text.encode()))
        w.wait(lambda w: len(w.got) > n)
        want((w.got[-1]["type"], w.got[-1]["payload"]["error"]), ("error", "INVALID"), text)
    w.close()


def a_token_does_what_its_scope_says():
    made = s.make_token("reader", "read")
    w = Socket(s, token=made)
    one = s.session()
    want(w.ask("session.get", {"id": one})["type"], "response")
    want(w.ask("subscribe", {"session_id": one})["type"], "response")
    for action, payload in (("event.append", {"id": one, "kind": "memory.set"}), ("session.delete", {"id": one}),
                            ("message.send", {"id": one, "content": "x"}), ("session.create", {})):
        a = w.ask(action, payload)
        want((a["type"], a["payload"]["error"]), ("error", "DENIED"), action)
    w.close()


def a_revoked_token_closes_its_sockets_within_a_second():
    made = s.make_token("gone", "read,write")
    idle, follows = Socket(s, token=made), Socket(s, token=made)
    follows.ask("subscribe", {})
    began = time.monotonic()
    s.revoke("gone")
    for w in (idle, follows):
        w.wait(lambda w: w.closed is not None)
        want(w.closed, 1008)
        w.close()
    want(time.monotonic() - began < 1.5, True, "%.1f s" % (time.monotonic() - began))


def what_is_followed_comes_after_the_snapshot_and_once():
    one = s.session(task_id="t1")
    s.append(one, 3)
    stop = threading.Event()

    def write():
        while not stop.is_set():
            s.append(one)

    t = threading.Thread(target=write)
    t.start()
    sockets = []
    for _ in range(10):
        w = Socket(s)
        want(w.ask("subscribe", {"session_id": one})["payload"], {"subscription": one})
        sockets.append(w)
    time.sleep(0.2)
    stop.set()
    t.join()
    head = s.api("GET", "/sessions/" + one).json["last_seq"]
    for w in sockets:
        w.wait(lambda w: w.events() and w.events()[-1]["seq"] == head)
        first = [m["action"] for m in w.got if m["type"] == "notification"][0]
        want(first, "session.snapshot")
        snapshot = w.of("session.snapshot")[0]
        want((snapshot["session_id"], snapshot["task_id"], snapshot["session"]["task_id"]), (one, "t1", "t1"))
        want([e["seq"] for e in w.events()], list(range(snapshot["seq"] + 1, head + 1)))
        want({e["session_id"] for e in w.events()}, {one})
        want({e["task_id"] for e in w.events()}, {"t1"})
        w.close()
    w = Socket(s)
    w.ask("subscribe", {"session_id": one, "after": head - 2, "snapshot": False})
    w.wait(lambda w: len(w.events()) == 2)
    want([e["seq"] for e in w.events()], [head - 1, head])
    want(w.of("session.snapshot"), [])
    want(w.ask("subscribe", {"session_id": one})["payload"]["error"], "EXISTS")
    want(w.ask("unsubscribe", {"session_id": one})["payload"], {"subscription": one})
    s.append(one)
    want(w.ask("subscribe", {"session_id": one, "after": head + 100})["type"], "response")
    w.wait(lambda w: w.of("session.reset"))
    want((w.of("session.reset")[0]["seq"], w.of("session.reset")[0]["session"]["session_id"]), (head + 1, one))
    want(len(w.events()), 2)
    s.append(one)
    w.wait(lambda w: len(w.events()) == 3)
    want(s.api("DELETE", "/sessions/" + one).status, 200)
    w.wait(lambda w: w.of("session.deleted"))
    want(w.ask("unsubscribe", {"session_id": one})["payload"]["error"], "NOT_FOUND")
    w.close()


def two_sessions_of_a_task_never_mix():
    a, b, c = s.session(task_id="same"), s.session(task_id="same"), s.session(task_id="another")
    of_a, of_task, of_all = Socket(s), Socket(s), Socket(s)
    of_a.ask("subscribe", {"session_id": a})
    of_task.ask("subscribe", {"task_id": "same"})
    of_all.ask("subscribe", {"session_ids": [b, c], "snapshot": False})
    for one in (a, b, c):
        s.append(one, 2)
        want(s.api("POST", "/sessions/%s/messages" % one, {"content": "hello", "queue": True}).status, 202)
    of_a.wait(lambda w: len(w.events()) == 3)
    of_task.wait(lambda w: len(w.events()) == 6)
    of_all.wait(lambda w: len(w.events()) == 6)
    want({e["session_id"] for e in of_a.events()}, {a})
    want({(e["session_id"], e["task_id"]) for e in of_task.events()}, {(a, "same"), (b, "same")})
    want({(e["session_id"], e["task_id"]) for e in of_all.events()}, {(b, "same"), (c, "another")})
    want({p["session_id"] for p in of_task.of("session.state_changed")} - {a, b}, set())
    snapshot = of_task.of("session.snapshot")[0]
    want((snapshot["subscription"], "session" in snapshot), ("*", False))
    positions = [e["position"] for e in of_task.events()]
    want(positions, sorted(set(positions)))
    again = Socket(s)
    again.ask("subscribe", {"task_id": "same", "after": positions[2], "snapshot": False})
    again.wait(lambda w: len(w.events()) == 3)
    want([e["position"] for e in again.events()], positions[3:])
    for w in (of_a, of_task, of_all, again):
        w.close()


def a_run_is_told_as_it_goes():
    script = s.write("script.json", json.dumps({"turns": [{"text": "first"}, {"text": "the second answer", "delay_ms": 500}]}))
    one = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    other = s.session()
    w, beside = Socket(s), Socket(s)
    w.ask("subscribe", {"session_id": one})
    beside.ask("subscribe", {"session_id": other})
    sent = w.ask("message.send", {"id": one, "content": "and now?"})
    want((sent["type"], sent["payload"]["run_id"][:4]), ("response", "run_"))
    w.wait(lambda w: any(e["event"]["kind"] == "run.completed" for e in w.events()))
    w.wait(lambda w: w.of("session.state_changed") and w.of("session.state_changed")[-1]["session"]["state"] == "COMPLETED")
    added = [e["event"]["kind"] for e in w.of("session.message.added")]
    want(added, ["message.user", "message.assistant"])
    want("".join(p["streamed"]["text"] for p in w.of("session.text") if p["streamed"]["type"] == "text"), "the second answer")
    want("RUNNING" in [p["session"]["state"] for p in w.of("session.state_changed")], True)
    last = w.of("session.state_changed")[-1]
    want((last["session_id"], last["session"]["needs_resume"], last["session"]["resume_reason"]), (one, False, None))
    want(w.ask("task.session.status", {"id": one})["payload"]["state"], "COMPLETED")
    want([m for m in beside.got if m["type"] == "notification" and m["action"] != "session.snapshot"], [])
    w.close()
    beside.close()


def requests_at_once_are_bounded():
    w = Socket(s)
    w.raw(b"".join(frame(TEXT, json.dumps({"id": i, "type": "request", "action": "session.list"}).encode()) for i in range(300)))
    w.wait(lambda w: len(w.answers) == 300)
    kinds = {a["payload"].get("error", "answered") for a in w.answers.values()}
    want(kinds <= {"answered", "BUSY"} and "answered" in kinds, True, kinds)
    want(w.ask("ping")["type"], "response")
    w.close()


def it_ends_as_it_should():
    w = Socket(s)
    w.raw(frame(PING, b"x"))
    w.wait(lambda w: w.pongs == 1)
    w.raw(frame(CLOSE, struct.pack(">H", 1000)))
    w.wait(lambda w: w.closed is not None)
    want(w.closed, 1000)
    rows = [
        (1003, frame(BINARY, b"x")),
        (1009, frame(TEXT, b"x" * (1 << 20) + b"x")),
        (1002, frame(TEXT, b"x", mask=False)),
        (1002, frame(3, b"x")),
        (1002, frame(TEXT, b"x", rsv=4)),
        (1002, frame(0, b"x")),
        (1002, frame(PING, b"x" * 126)),
        (1002, frame(PING, b"x", fin=False)),
        (1002, frame(CLOSE, b"x")),
        (1007, frame(TEXT, b"\xff\xfe")),
    ]
    for code, data in rows:
        w = Socket(s)
        w.raw(data)
        w.wait(lambda w: w.closed is not None)
        want(w.closed in (code, 1005), True, (w.closed, data[:20]))  # some without a code, which the rules allow
        w.close()
    for cut in (1, 40, -1):  # one that vanishes inside its upgrade, or just behind it
        for _ in range(20):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=10)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.sendall(handshake(s.port, s.token)[:cut] + (b"\n" if cut < 0 else b""))
            c.close()
    want(s.api("GET", "/sessions").status, 200)


def pings_that_nobody_reads_cost_nothing():
    w = Socket(s, reads=False)
    w.s.settimeout(2)
    before = s.memory()
    try:
        for _ in range(400):
            w.raw(frame(PING, b"") * 2000)
    except OSError:
        pass
    want(s.memory() - before < 32 << 10, True, "%d KiB more" % (s.memory() - before))
    w.close()
    want(s.api("GET", "/sessions").status, 200)


def a_stop_says_goodbye():
    w, follows = Socket(s), Socket(s)
    follows.ask("subscribe", {})
    want(s.stop(), 0)
    for c in (w, follows):
        c.wait(lambda c: c.closed is not None)
        want(c.closed, 1001)
        c.close()


for test in (the_token_is_checked_before_the_upgrade, every_action_of_http_is_asked_the_same_way,
             bad_messages_are_refused_by_name, a_token_does_what_its_scope_says,
             a_revoked_token_closes_its_sockets_within_a_second, what_is_followed_comes_after_the_snapshot_and_once,
             two_sessions_of_a_task_never_mix, a_run_is_told_as_it_goes, requests_at_once_are_bounded,
             it_ends_as_it_should, pings_that_nobody_reads_cost_nothing, a_stop_says_goodbye):
    case(test.__name__.replace("_", " "), test)
s.done()
end()
