# SPDX-License-Identifier: Apache-2.0
# A request with an Idempotency-Key is carried out once, whoever repeats it and however the server ends between.
import glob
import http.client
import json
import os
import random
import stat
import subprocess
import sys
import threading
import time

from serving import Server, case, end, want

seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 30)
rnd = random.Random(seed)
s = Server()
EVENT = {"kind": "memory.set", "data": {"values": {"x": 1}}}


def keyed(method, path, body=None, key="k", **more):
    return s.api(method, path, body, fields=dict(more.pop("fields", {}), **{"Idempotency-Key": key}), **more)


def events(one, kind=None):
    return [e for e in s.api("GET", "/sessions/%s/log?limit=1000" % one).json["events"] if kind in (None, e["kind"])]


def same(a, b):
    want((a.status, a.bytes, a.fields.get("location"), a.fields.get("etag")), (b.status, b.bytes, b.fields.get("location"), b.fields.get("etag")))


def every_unsafe_request_has_one_effect():
    first = keyed("POST", "/sessions", {"title": "t"}, key="make")
    want(first.status, 201)
    one = first.json["session_id"]
    steps = [
        ("POST", "/sessions", {"title": "t"}, "make"),
        ("POST", "/sessions/%s/events" % one, EVENT, "e"),
        ("POST", "/sessions/%s/checkpoints" % one, {"description": "c"}, "c"),
        ("POST", "/sessions/%s/messages" % one, {"content": "hello", "queue": True}, "m"),
        ("POST", "/sessions/%s/fork" % one, {"at": "2"}, "f"),
        ("POST", "/sessions/%s/rollback" % one, {"to": "2"}, "r"),
        ("POST", "/sessions/%s/prune" % one, {"keep": 0}, "p"),
        ("POST", "/sessions/%s/cancel" % one, {}, "x"),
        ("PATCH", "/sessions/" + one, {"title": "u"}, "u"),
    ]
    answers = [first]
    for method, path, body, key in steps[1:]:
        a = keyed(method, path, body, key=key)
        want(a.status < 300, True, path + " " + a.bytes.decode())
        answers.append(a)
    before = events(one)
    updated = events(one, "session.updated")[-1]
    want(("id" in updated["request"], updated["by"]), (True, s.api("GET", "/tokens").json["tokens"][0]["name"]))
    queue = s.api("GET", "/sessions/%s/queue" % one).json["messages"]
    a = keyed("DELETE", "/sessions/%s/queue/%s" % (one, queue[0]["queue_id"]), key="w")
    want(a.status, 204)
    same(keyed("DELETE", "/sessions/%s/queue/%s" % (one, queue[0]["queue_id"]), key="w"), a)
    for how in (None, s.kill, s.stop):
        if how:
            how()
            s.start()
        for (method, path, body, key), first_answer in zip(steps, answers):
            same(keyed(method, path, body, key=key), first_answer)
    want(len(events(one)), len(before) + 1)  # queue.withdrawn
    fork = answers[4].json["session_id"]
    a = keyed("DELETE", "/sessions/" + fork, key="d")
    want(a.status, 200)
    same(keyed("DELETE", "/sessions/" + fork, key="d"), a)


def another_body_with_the_key_is_refused():
    one = s.session()
    path = "/sessions/%s/events" % one
    want(keyed("POST", path, EVENT, key="other").status, 201)
    for method, p, body in (("POST", path, {"kind": "memory.set", "data": {"values": {"x": 2}}}),
                            ("POST", "/sessions/%s/checkpoints" % one, {}), ("POST", "/sessions/%s/events" % s.session(), EVENT)):
        a = keyed(method, p, body, key="other")
        want((a.status, a.json["error"]["detail"]["name"]), (409, "Idempotency-Key"))
    want(len(events(one)), 2)
    want(keyed("POST", path, EVENT, key="").status, 400)
    want(keyed("POST", path, EVENT, key="x" * 256).status, 400)
    want(keyed("POST", path, EVENT, key="other", fields={"If-Match": '"1"'}).status, 409)
    want(keyed("GET", "/sessions/" + one, key="other").status, 200)  # what changes nothing has no use for it


def a_refused_request_may_be_tried_again():
    one = s.session()
    path = "/sessions/%s/events" % one
    want(keyed("POST", path, EVENT, key="later", fields={"If-Match": '"7"'}).status, 409)
    s.append(one, 6)
    want(keyed("POST", path, EVENT, key="later", fields={"If-Match": '"7"'}).status, 201)
    want(keyed("POST", path, EVENT, key="later", fields={"If-Match": '"7"'}).json["seq"], 8)


def many_at_once_have_one_effect():
    one = s.session()
    got, lock = [], threading.Lock()

    def post():
        a = keyed("POST", "/sessions/%s/events" % one, EVENT, key="crowd")
        with lock:
            got.append((a.status, a.bytes))

    threads = [threading.Thread(target=post) for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    want(set(got), {(201, b'{"seq":2}\n')})
    want(len(events(one)), 2)


def a_key_belongs_to_its_token():
    one = s.session()
    other = s.run("access", "create", "other", "--scopes", "write").stdout.strip()
    a = keyed("POST", "/sessions/%s/events" % one, EVENT, key="mine")
    b = keyed("POST", "/sessions/%s/events" % one, EVENT, key="mine", token=other)
    want((a.json["seq"], b.json["seq"]), (2, 3))


def the_event_names_its_request():
    one = s.session()
    keyed("POST", "/sessions/%s/events" % one, EVENT, key="named")
    e = events(one)[1]
    want((len(e["request"]["id"]), len(e["request"]["digest"])), (32, 32))
    text = json.dumps(events(one))
    want("named" in text or s.token in text, False)


def kills_between_leave_one_effect():
    """Requests with keys, repeated until they are answered, while the server is killed again and again."""
    one = s.session()
    done = {}
    stopping = threading.Event()

    def client(k):
        n = 0
        while not stopping.is_set():
            key = "kill-%d-%d" % (k, n)
            while not stopping.is_set():
                try:
                    made = keyed("POST", "/sessions", {"title": key}, key=key + "-s")
                    a = keyed("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"k": key}}}, key=key)
                    if a.status == 201 and made.status == 201:
                        done[key] = (a.json["seq"], made.json["session_id"])
                        break
                except (OSError, http.client.HTTPException, ValueError):
                    time.sleep(0.01)
            n += 1

    threads = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(4)]
    for t in threads:
        t.start()
    for _ in range(10):
        time.sleep(rnd.uniform(0.05, 0.3))
        s.kill()
        s.start()
    time.sleep(0.2)
    stopping.set()
    for t in threads:
        t.join(20)
    stored, after = [], 1
    while True:
        page = s.api("GET", "/sessions/%s/log?after=%d&limit=1000" % (one, after)).json
        if not page["events"]:
            break
        stored += page["events"]
        after = page["last_seq"]
    by_key = {}
    for e in stored:
        by_key.setdefault(e["values"]["k"], []).append(e["seq"])
    for key, seqs in by_key.items():
        want(len(seqs), 1, "seed %d: %s" % (seed, key))
    for key, (seq, made) in done.items():
        want(by_key[key], [seq], "seed %d: %s" % (seed, key))
    titles, cursor = [], ""
    while cursor is not None:
        page = s.api("GET", "/sessions?limit=1000" + (cursor and "&after=" + cursor)).json
        titles += [r["title"] for r in page["sessions"] if (r["title"] or "").startswith("kill-")]
        cursor = page["next_cursor"]
    want(len(titles), len(set(titles)), "seed %d: sessions" % seed)
    made = {m for _, m in done.values()}
    want(len(made), len(done))
    want(len(done) > 10, True, "%d requests" % len(done))


def lose_answers():
    """Killed when everything was done and before an answer was noted: the journal knows what was begun, and the logs the rest."""
    s.kill()
    journal = glob.glob(s.dir.name + "/state/tidemark/requests-*.jsonl")[0]
    with open(journal) as f:
        rows = {v["id"]: {k: v[k] for k in ("id", "digest", "at")} for v in map(json.loads, f) if v["at"]}
    with open(journal, "w") as f:
        f.writelines(json.dumps(v) + "\n" for v in rows.values())
    s.start()


def write_script(name, text):
    path = os.path.join(s.dir.name, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, stat.S_IRWXU)
    return path


def settings():
    os.makedirs(s.dir.name + "/config/tidemark", exist_ok=True)
    os.makedirs(s.dir.name + "/work", exist_ok=True)
    text = "#!/bin/sh\ncd %s\ntidemark step one --effect once -- sh -c 'echo $TIDEMARK_SESSION >> ledger'\n" % s.dir.name
    programs = {"runs": write_script("runs", text), "waits": write_script("waits", text + "tidemark wait go --kind approval --question 'go?' > /dev/null\n"),
                "takes": write_script("takes", "#!/bin/sh\nsleep 3\n")}
    with open(s.dir.name + "/config/tidemark/config.json", "w") as f:
        json.dump({"server_programs": {k: {"argv": [v], "cwd": s.dir.name} for k, v in programs.items()},
                   "server_working_roots": [s.dir.name + "/work"]}, f)


def steps_done():
    with open(s.dir.name + "/ledger") as f:
        return len(f.read().split())


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def stands(one, *statuses):
    until(lambda: s.api("GET", "/sessions/" + one).json["status"] in statuses)


def what_was_done_is_known_though_its_answer_was_lost():
    settings()
    digest = s.api("POST", "/graphs", {"graph": {"tidemark_graph": 1, "id": "w", "entry": "a", "nodes": [
        {"id": "a", "type": "lua", "outputs": ["h"], "code": "return {h = 2}"}]}}).json["digest"]
    rows = [("POST", "/sessions", {"kind": "program", "program": "runs"}), ("POST", "/sessions", {"kind": "program", "program": "runs", "set": {"a": 1}}),
            ("POST", "/sessions", {"kind": "program", "program": "waits", "session_id": "waits"}), ("POST", "/graphs/%s/run" % digest, {}),
            ("POST", "/graphs/%s/run" % digest, {"session_id": "named"})]
    answers = [keyed(*row, key="lost-%d" % i) for i, row in enumerate(rows)]
    for a in answers:
        want(a.status, 201, a.bytes)
        stands(a.json["session_id"], "idle", "waiting")
    token = s.api("POST", "/sessions/waits/token").json["token"]
    rows += [("POST", "/waits/answer", {"session_id": "waits", "token": token, "input": "yes"})]
    answers.append(keyed(*rows[-1], key="lost-5", token=False))
    want(answers[-1].status, 202)
    stands("waits", "idle")
    rows += [("POST", "/sessions/waits/runs", {}), ("DELETE", "/sessions/named", None)]
    answers += [keyed(*row, key="lost-%d" % (6 + i)) for i, row in enumerate(rows[6:])]
    stands("waits", "waiting")
    rows += [("POST", "/sessions/waits/messages", {"content": "hello"})]
    answers.append(keyed(*rows[-1], key="lost-8"))
    stands("waits", "waiting")
    before, done = {r["session_id"]: r["last_seq"] for r in s.api("GET", "/sessions").json["sessions"]}, steps_done()
    lose_answers()
    for i, (row, first) in enumerate(zip(rows, answers)):
        if row[1] != "/graphs/%s/run" % digest or "session_id" not in row[2]:  # that one was deleted since
            same(keyed(*row, key="lost-%d" % i, token=i != 5), first)
    want({r["session_id"]: r["last_seq"] for r in s.api("GET", "/sessions").json["sessions"]}, before)
    want(steps_done(), done)


def what_others_put_into_a_session_stays():
    """Made, and not begun when the server was killed: it is made again, unless somebody was told that something of his is there."""
    settings()
    s.kill()
    s.options = ("--jobs", "1")
    s.start()
    want(s.api("POST", "/sessions", {"kind": "program", "program": "takes", "session_id": "takes"}).status, 201)
    bodies = {one: {"kind": "program", "program": "runs", "session_id": one} for one in ("free", "used")}
    for one, body in bodies.items():  # they wait for the one place, and their answers for that
        threading.Thread(target=lambda one=one, body=body: trouble_is_fine(lambda: keyed("POST", "/sessions", body, key="stays-" + one)), daemon=True).start()
        until(lambda: s.api("GET", "/sessions/" + one).status == 200)
    s.append("used")
    s.kill()
    s.options = ()
    s.start()
    a = keyed("POST", "/sessions", bodies["used"], key="stays-used")
    want((a.status, a.json["error"]["error"]), (409, "EXISTS"), a.bytes)
    want([e["kind"] for e in events("used")], ["session.created", "memory.set"])
    want(keyed("POST", "/sessions", bodies["free"], key="stays-free").status, 201)
    stands("free", "idle")
    want([e["kind"] for e in events("free")].count("run.completed"), 1)


def trouble_is_fine(fn):
    try:
        fn()
    except (OSError, http.client.HTTPException):
        pass


def insist(path, key):
    deadline = time.monotonic() + 20
    while True:
        a = keyed("POST", path, EVENT, key=key)
        if a.status == 201 or time.monotonic() > deadline:
            want(a.status, 201)
            return a


def a_failed_sync_passes():
    """The disk refuses to sync the journal once: that request is refused, nobody waits for ever, and the next ones are kept again."""
    one = s.session()
    journal = glob.glob(s.dir.name + "/state/tidemark/requests-*.jsonl")[0]
    path = "/sessions/%s/events" % one
    before = keyed("POST", path, EVENT, key="before")
    tracer = subprocess.Popen(["strace", "-f", "-p", str(s.process.pid), "-P", journal, "-e", "trace=fdatasync",
                               "-e", "inject=fdatasync:error=EIO:when=1"], stderr=subprocess.PIPE, text=True)
    try:
        want("attached" in tracer.stderr.readline(), True)
        a = keyed("POST", path, EVENT, key="struck")
        want((a.status, a.json["error"]["error"], len(events(one))), (500, "IO", 2))
        insist(path, "struck")  # each thread's first sync fails
    finally:
        tracer.terminate()
        tracer.wait()
        tracer.stderr.close()
    again = insist(path, "struck")
    want(len(events(one)), 3)
    s.kill()
    s.start()
    same(keyed("POST", path, EVENT, key="struck"), again)
    same(keyed("POST", path, EVENT, key="before"), before)
    want(len(events(one)), 3)


def a_log_tells_nothing_of_what_a_request_held():
    """The digest of a request is made with the user's key: without it nobody can try what fits."""
    digests = []
    for key in ("one key of origin", "another key of origin", "one key of origin"):
        os.environ["TIDEMARK_ORIGIN_KEY"], before = key, os.environ["TIDEMARK_ORIGIN_KEY"]
        t = Server()
        os.environ["TIDEMARK_ORIGIN_KEY"] = before
        a = t.api("POST", "/sessions", {"session_id": "s", "title": "the pin is 4711"}, fields={"Idempotency-Key": "k"})
        want(a.status, 201)
        digests.append(t.api("GET", "/sessions/s/log").json["events"][0]["request"]["digest"])
        t.done()
    want((digests[0] == digests[2], digests[0] == digests[1]), (True, False))


case("every unsafe request has one effect and one answer, across restarts", every_unsafe_request_has_one_effect)
case("another request with the same key is refused", another_body_with_the_key_is_refused)
case("a refused request may be tried again", a_refused_request_may_be_tried_again)
case("many at once have one effect", many_at_once_have_one_effect)
case("a key belongs to its token", a_key_belongs_to_its_token)
case("the event names its request, and neither key nor token", the_event_names_its_request)
case("a log tells nothing of what a request held", a_log_tells_nothing_of_what_a_request_held)
case("a failed sync passes", a_failed_sync_passes)
case("what was done is known though its answer was lost", what_was_done_is_known_though_its_answer_was_lost)
case("what others put into a session stays", what_others_put_into_a_session_stays)
case("kills in between leave one effect", kills_between_leave_one_effect)
s.done()
end()
