# SPDX-License-Identifier: Apache-2.0
# Streams of events: what is in them, which part of it, and what becomes of readers that are slow, cut off or behind.
import json
import os
import random
import signal
import socket
import threading
import time

from frames import Socket
from serving import Stream, case, end, want
from watched import Server

s = Server()
beats = Stream(s, "/events?kinds=nothing.")  # looked at in the end


def ids(r):
    return [i for i, _ in r.events()]


def the_stream_of_all_is_of_what_is_asked_for():
    start = s.api("GET", "/store").json["last_position"]
    a, b, c = s.session(task_id="t1"), s.session(task_id="t1"), s.session(task_id="t2")
    for one in (a, b, c):
        s.append(one, 2)
        s.api("POST", "/sessions/%s/checkpoints" % one, {})
    rows = [
        ("", {a, b, c}, 12),
        ("task_id=t1", {a, b}, 8),
        ("task_id=nobody", set(), 0),
        ("session_ids=%s,%s" % (a, c), {a, c}, 8),
        ("session_ids=%s&task_id=t1" % c, set(), 0),
        ("kinds=memory.set", {a, b, c}, 6),
        ("kinds=memory.,checkpoint", {a, b, c}, 9),
        ("kinds=memory", set(), 0),
        ("kinds=session.&task_id=t2", {c}, 1),
    ]
    for query, sessions, n in rows:
        r = Stream(s, "/events?after=%d&%s" % (start, query))
        last = s.session(task_id="t1" if "t1" in query else "end")  # behind all that is looked for
        r.wait(lambda r: len(r.events()) >= n)
        want({d["session_id"] for _, d in r.events()} - {last}, sessions, query)
        want(len([d for _, d in r.events() if d["session_id"] != last]), n, query)
        r.close()
    r = Stream(s, "/events?after=%d&task_id=t1" % start)
    r.wait(lambda r: len(r.events()) >= 8)
    want(s.api("PATCH", "/sessions/" + c, {"task_id": "t1"}).status in (200, 405), True)
    s.append(a)
    r.wait(lambda r: r.events()[-1][1]["session_id"] == a and r.events()[-1][1]["seq"] == 5)
    r.close()
    want(s.api("GET", "/events?task=t1").json["error"]["detail"]["name"], "task")
    want(s.api("GET", "/sessions/%s/events?task_id=t1" % a).json["error"]["detail"]["name"], "task_id")


def what_recovery_finds_is_in_the_stream():
    t = Server("--auto-resume", "off")
    script = t.write("script.json", json.dumps({"turns": [{"text": "first"}, {"text": "never", "delay_ms": 60000}, {"text": "after", "delay_ms": 500}]}))
    one = json.loads(t.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    r = Stream(t, "/events")
    want(t.api("POST", "/sessions/%s/messages" % one, {"content": "go on"}).status, 202)
    r.wait(lambda r: any(d["kind"] == "run.started" for _, d in r.events()))
    r.wait(lambda r: any(e == "status" and d["status"] == "running" for _, e, d in r.got))
    t.kill()
    r.wait(lambda r: r.over)
    last = ids(r)[-1]
    t.start()
    of_one = Stream(t, "/sessions/%s/events" % one, last=r.events()[-1][1]["seq"])
    r = Stream(t, "/events", last=last)
    for each in (r, of_one):
        each.wait(lambda r: any(d["kind"] == "status.derived" for _, d in r.events()))
        kinds = [d["kind"] for _, d in each.events()]
        want(kinds.index("run.interrupted") < kinds.index("status.derived"), True, kinds)
        want(next(d["status"] for _, d in each.events() if d["kind"] == "status.derived"), "interrupted_startup")
    n = len(r.events())
    want(t.api("POST", "/sessions/%s/resume" % one, {}).status, 202)
    r.wait(lambda r: any(d["kind"] == "status.derived" for _, d in r.events()[n:]))
    r.wait(lambda r: any(e == "status" and d["status"] == "running" for _, e, d in r.got))
    want([i for i in ids(r)], sorted(set(ids(r))))
    t.kill()
    t.dir.cleanup()


def text_and_status_have_no_id():
    script = s.write("script.json", json.dumps({"turns": [{"text": "one"}, {"text": "two words"}]}))
    one = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    r = Stream(s, "/sessions/%s/events" % one)
    s.api("POST", "/sessions/%s/messages" % one, {"content": "more"})
    r.wait(lambda r: any(d.get("kind") == "run.completed" for _, d in r.events()))
    r.wait(lambda r: any(e == "status" and d["outcome"] == "completed" for _, e, d in r.got))
    want({i for i, e, _ in r.got if e in ("text", "status")}, {None})
    want("".join(d["text"] for _, e, d in r.got if e == "text" and d["type"] == "text"), "two words")
    r.close()


def a_position_that_is_gone_is_said_once_with_a_snapshot():
    t = Server()
    made = sorted(t.session(title="s%d" % i) for i in range(300))
    r = Stream(t, "/events", last=1 << 40)
    r.wait(lambda r: len([1 for _, e, _ in r.got if e == "status"]) >= 300)
    want((r.got[0][0], r.got[0][1]), ("300", "reset"))
    want(len([1 for _, e, _ in r.got if e == "reset"]), 1)
    want(sorted(d["session_id"] for _, e, d in r.got if e == "status"), made)
    t.append(made[0])
    r.wait(lambda r: r.events())
    want(ids(r), [301])
    r.close()
    want(t.api("DELETE", "/sessions/" + made[0]).status, 200)  # the newest event of all: its position stays used
    t.kill()
    t.start()
    r = Stream(t, "/events", last=301)
    t.append(made[1])
    r.wait(lambda r: r.events())
    want([e for _, e, _ in r.got if e == "reset"], [])
    want(ids(r)[0] > 301, True)
    r.close()
    t.done()


def a_stream_goes_on_behind_an_event_bigger_than_what_may_wait():
    one = s.session()
    big = "x" * 3000000
    path = s.write("big.jsonl", json.dumps({"values": {"big": big}}))
    want(s.run("log", "append", one, "--kind", "memory.set", "--data", "@" + path).returncode, 0)
    s.append(one, 3)
    r = Stream(s, "/sessions/%s/events?after=0" % one)
    r.wait(lambda r: len(r.events()) == 5)
    want(r.events()[1][1]["values"]["big"] == big, True)
    r.close()
    w = Socket(s)
    w.ask("subscribe", {"session_id": one, "after": 0})
    w.wait(lambda w: len(w.events()) == 5)
    w.close()


def a_session_that_is_made_anew_is_another():
    """Deleted and made again with the same id between two looks of the server: who followed the first one is told so."""
    for store in (None, "files"):
        t = Server()
        if store:
            t.done()
            t = Server(store="files:%s/again" % s.dir.name)
        one = t.session(session_id="twice")
        t.append(one, 2)
        r, w = Stream(t, "/sessions/%s/events?after=0" % one), Socket(t)
        w.ask("subscribe", {"session_id": one, "after": 0})
        r.wait(lambda r: len(r.events()) == 3)
        w.wait(lambda w: len(w.events()) == 3)
        t.process.send_signal(signal.SIGSTOP)
        try:
            want(t.run("sessions", "delete", one, "--yes").returncode, 0)
            want(t.run("sessions", "new", "--id", one).returncode, 0)
            for n in range(5):
                want(t.run("log", "append", one, "--kind", "memory.set", "--data", '{"values":{"a":%d}}' % n).returncode, 0)
        finally:
            t.process.send_signal(signal.SIGCONT)
        r.wait(lambda r: r.over)
        w.wait(lambda w: w.of("session.deleted"))
        want((r.got[-1][1], len(r.events()), len(w.events())), ("gone", 3, 3))
        r.close()
        w.close()
        r = Stream(t, "/sessions/%s/events?after=0" % one)  # from its beginning
        r.wait(lambda r: len(r.events()) == 6)
        r.close()
        t.done()


class Stalled:
    """Asks for a stream and reads nothing of it until it is told to."""

    def __init__(self, path):
        self.s = socket.socket()
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.s.settimeout(20)
        self.s.connect(("127.0.0.1", s.port))
        self.s.sendall(("GET /api/v1%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (path, s.port, s.token)).encode())

    def ids(self):
        data = b""
        try:
            while True:
                piece = self.s.recv(1 << 20)
                if not piece:
                    break
                data += piece
        except OSError:
            pass
        blocks = data.split(b"\n\n")[:-1]  # the last one is cut
        return [int(line[4:]) for b in blocks for line in b.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"id: ")]


def figure(name):
    return next(float(line.split()[1]) for line in s.ask("GET", "/metrics").bytes.decode().splitlines() if line.startswith(name + " "))


def a_reader_that_stops_reading_is_dropped_and_costs_nothing():
    one = s.session()
    rnd = random.Random(1)
    dropped = figure("tidemark_followers_dropped_total")
    stalled = [Stalled("/sessions/%s/events?after=0" % one), Stalled("/events?session_ids=%s" % one)]
    socket_stalled = Socket(s, reads=False)
    socket_stalled.send("subscribe", {"session_id": one, "after": 0})
    healthy = Stream(s, "/sessions/%s/events?after=0" % one)
    healthy.wait(lambda r: r.events())
    before = s.memory()
    most = lag = 0
    for n in range(70):
        body = {"kind": "memory.set", "data": {"values": {"n": n, "big": "%x" % rnd.getrandbits(3000000)}}}
        want(s.api("POST", "/sessions/%s/events" % one, body).status, 201)
        most = max(most, s.memory())
    healthy.wait(lambda r: len(r.events()) == 71, 20)
    want(ids(healthy), list(range(1, 72)))
    want(most - before < 40 << 10, True, "%d KiB more for 50 MiB of events" % (most - before))
    want(s.run("store", "compact").returncode, 0)  # no reader holds the log
    want(os.path.getsize(s.store + "-wal") < 8 << 20 if os.path.exists(s.store + "-wal") else True, True)
    end_at = time.monotonic() + 20
    while figure("tidemark_followers_dropped_total") < dropped + 3:
        lag = max(lag, figure("tidemark_follower_lag_seconds"))
        want(time.monotonic() < end_at, True, "%d dropped in time:" % (figure("tidemark_followers_dropped_total") - dropped))
        time.sleep(0.2)
    want(5 < lag < 25, True, "%g s behind" % lag)
    want(figure("tidemark_follower_lag_seconds"), 0)
    got = stalled[0].ids()
    want(got, list(range(1, len(got) + 1)))
    want(len(got) < 71, True)
    r = Stream(s, "/sessions/%s/events" % one, last=got[-1] if got else 0)
    r.wait(lambda r: r.events() and r.events()[-1][0] == 71, 20)
    want(got + ids(r), list(range(1, 72)))
    r.close()
    socket_stalled.thread.start()
    socket_stalled.wait(lambda w: w.closed is not None)
    seqs = [e["seq"] for e in socket_stalled.events()]
    want((socket_stalled.closed, seqs), (1013, list(range(1, len(seqs) + 1))))
    socket_stalled.close()
    healthy.close()


def what_happens_once_a_stream_has_begun_is_in_it():
    """Without a position it begins when it is answered: not when the server comes round to it."""
    one, other = s.session(), s.session()
    busy = threading.Event()

    def keep_busy():
        while not busy.is_set():
            s.append(other, 20)

    t = threading.Thread(target=keep_busy)
    t.start()
    try:
        for n in range(40):
            path = ("/sessions/%s/events" % one, "/events?session_ids=" + one)[n % 2]
            r = Stream(s, path)
            s.append(one)
            r.wait(lambda r: r.events(), 10)
            want([d["values"] for _, d in r.events()], [{"n": 0}], path)
            r.close()
        for n in range(40):
            w = Socket(s)
            w.ask("subscribe", {"snapshot": False, **({"session_id": one} if n % 2 else {"session_ids": [one]})})
            s.append(one)
            w.wait(lambda w: w.events(), 10)
            w.close()
    finally:
        busy.set()
        t.join()


def quiet_streams_have_heartbeats():
    beats.wait(lambda r: beats.over or beats.beats, 20)
    want(beats.beats[0] > 0, True)  # a reader of few events is told how far it is
    beats.close()


def a_store_of_plain_files_has_no_order_of_all():
    t = Server(store="files:" + s.dir.name + "/plain")
    a = t.api("GET", "/events")
    want((a.status, "plain files" in a.json["detail"]), (400, True))
    one = t.session(task_id="t")
    r = Stream(t, "/sessions/%s/events?after=0" % one)
    t.append(one, 3)
    r.wait(lambda r: len(r.events()) == 4)
    want(ids(r), [1, 2, 3, 4])
    w = Socket(t)
    want(w.ask("subscribe", {})["payload"]["error"], "INVALID")
    want(w.ask("subscribe", {"session_id": one})["type"], "response")
    t.append(one)
    w.wait(lambda w: w.events())
    want((w.events()[0]["seq"], w.events()[0]["task_id"]), (5, "t"))
    want(t.api("DELETE", "/sessions/" + one).status, 200)
    w.wait(lambda w: w.of("session.deleted"))
    r.wait(lambda r: any(e == "gone" for _, e, _ in r.got))
    w.close()
    r.close()
    t.done()


for test in (the_stream_of_all_is_of_what_is_asked_for, what_recovery_finds_is_in_the_stream, text_and_status_have_no_id,
             a_position_that_is_gone_is_said_once_with_a_snapshot,
             a_stream_goes_on_behind_an_event_bigger_than_what_may_wait,
             a_session_that_is_made_anew_is_another,
             a_reader_that_stops_reading_is_dropped_and_costs_nothing,
             what_happens_once_a_stream_has_begun_is_in_it, quiet_streams_have_heartbeats,
             a_store_of_plain_files_has_no_order_of_all):
    case(test.__name__.replace("_", " "), test)
s.done()
end()
