# SPDX-License-Identifier: Apache-2.0
# What the server offers works: each request that `next` of a session or a hint of an error names is sent to a server on a copy of
# the store. It must not be refused, and must not leave everything as it was. tests/cli/offers.sh does so with commands.
import json
import os
import shutil
import time

from serving import Server, case, end, want

s = Server()
DIR = s.dir.name

GRAPH = {"tidemark_graph": 1, "id": "g", "entry": "a"}
ONCE = dict(GRAPH, nodes=[{"id": "a", "type": "function", "effect": "once", "retries": 0, "program": ["false"], "outputs": ["x"]}])
KEY = dict(GRAPH, checkpoints={"exclude_memory_keys": ["api_key"]}, nodes=[
    {"id": "a", "type": "function", "retries": 0, "program": ["false"], "inputs": ["api_key"]}])
ASKS = dict(GRAPH, nodes=[{"id": "a", "type": "human_input", "kind": "approval", "question": "Go?", "outputs": ["fine"]}])
CHAT = {"turns": [{"text": "I look.", "calls": [{"name": "bash", "args": {"command": "true"}}]}, {"text": "Done."}], "repeat": True}
BROKEN = {"turns": [{"fail": [{"status": 401}]}], "repeat": True}


def write(name, value):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))
    os.chmod(path, 0o700)
    return path


def program(name, text):
    """A session that runs this script."""
    s.run("exec", "--session", name, "--", write(name + ".sh", "#!/bin/sh\n" + text.replace("tidemark", os.environ["TIDE_BIN"])))


def make():
    program("asks", "tidemark wait go --kind approval --question 'Go?'")
    program("input", "tidemark wait go --kind input --question 'Which?'")
    program("denied", "tidemark wait go --kind approval --question 'Go?'")
    s.run("resume", "denied", "--input", "no")
    program("late", "tidemark wait go --kind input --deadline 1ms")
    s.run("recover")
    program("sleeps", "tidemark sleep nap 24h")
    program("fails", "exit 3")
    program("once", "tidemark step pay --effect once -- false")
    program("changes", "tidemark step c -- echo $(cat %s/n)\ntest -e %s/never" % (DIR, DIR))
    write("n", "2")
    s.run("resume", "changes")
    program("cancelled", "tidemark wait go --kind input")
    s.run("cancel", "cancelled")
    program("done", "true")
    for name, graph, more in (("graph-once", ONCE, []), ("graph-key", KEY, ["--set", "api_key=wrong"]), ("graph-asks", ASKS, [])):
        s.run("run", write(name + ".json", graph), "--session", name, "--no-input", *more)
    s.run("chat", "--script", write("chat.json", CHAT), "-p", "go")
    s.run("chat", "--script", write("broken.json", BROKEN), "-p", "go")
    s.run("sessions", "new", "--id", "empty")


def filled(v, kind=None):
    """What a person would put where there is null."""
    if isinstance(v, dict):
        kind = v.get("kind", kind)
        return {k: (kind == "approval" or "more") if k == "input" and x is None else filled(x, kind) for k, x in v.items()}
    return [filled(x, kind) for x in v] if isinstance(v, list) else 1 if v is None else v


def offers_of(items):
    """(method, path, body) of those that are requests. What needs a document of the client is left out."""
    for n in items:
        if n["command"] and n["command"].startswith(("POST ", "DELETE ", "GET ", "PUT ")) and not {"graph", "checkpoint"} & set(n["arguments"]):
            method, path, *body = n["command"].split(" ", 2)
            yield method, path, filled(json.loads(body[0])) if body else None


PARTS = ("", "-wal", "-shm", "-mark", "-queue")


class Copy(Server):
    """A server on a copy of the store as it is now."""

    def __init__(self):
        self.of = os.path.join(DIR, "copy.db")
        for part in PARTS:
            if os.path.exists(s.store + part):
                shutil.copy2(s.store + part, self.of + part)
        super().__init__(store=self.of)

    def done(self):
        self.end()
        super().done()
        for part in PARTS:
            if os.path.exists(self.of + part):
                os.remove(self.of + part)


def follow(about, method, path, body):
    """What is wrong with it; nothing: None."""
    t = Copy()
    try:
        one = path.split("/")[4] if path.startswith("/api/v1/sessions/") and len(path.split("/")) > 4 else None
        before = t.api("GET", "/sessions/" + one).json["last_seq"] if one else 0
        a = t.ask(method, path, {} if body is None and method == "POST" else body)
        if a.status >= 300:
            return "%s: %s %s %s: %d: %s" % (about, method, path, body, a.status, a.json["detail"])
        end_at = time.monotonic() + 10
        while method == "POST" and one and t.api("GET", "/sessions/" + one).json["last_seq"] == before:
            if time.monotonic() > end_at:
                return "%s: %s %s %s: it did nothing" % (about, method, path, body)
            time.sleep(0.02)
        return None
    finally:
        t.done()


def all_work(found, least):
    s.stop()
    want(len(found) >= least, True, "%d offers: whether there are enough" % len(found))
    want([p for p in (follow(about, *offer) for about, offer in found) if p], [])
    s.start()


def what_sessions_offer_works():
    make()
    all_work([(x["session_id"], o) for x in s.api("GET", "/sessions?limit=100").json["sessions"] for o in offers_of(x["next"])], 25)


def what_errors_offer_works():
    found = {}
    ids = [x["session_id"] for x in s.api("GET", "/sessions?limit=100").json["sessions"]]
    s.stop()
    for action, body in (("resume", {}), ("answer", {"input": "ys"}), ("answer", {"input": "no", "token": "rt_a.b"}), ("token", {}), ("runs", {}),
                         ("rollback", {"to": 0})):
        t = Copy()
        for one in ids:
            if (one, action) != ("input", "answer"):  # any text is an answer there
                a = t.api("POST", "/sessions/%s/%s" % (one, action), body)
                for o in offers_of(a.json["error"]["hints"]) if a.status >= 400 and "error" in a.json else []:
                    found[json.dumps(o)] = "%s of %s" % (action, one), o
        t.done()
    s.start()
    all_work(list(found.values()), 8)


case("what sessions offer works", what_sessions_offer_works)
case("what errors offer works", what_errors_offer_works)
s.done()
end()
