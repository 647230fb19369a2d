# SPDX-License-Identifier: Apache-2.0
# Tokens: what each scope may do, made and ended by commands and by the API while the server runs; and what the log says of who asked.
import json
import time

from serving import Server, Stream, case, end, want

s = Server()


def access(*args):
    return s.run("access", *args)


def make(name, scopes, *more):
    return access("create", name, "--scopes", scopes, *more).stdout.strip()


class Reader(Stream):
    """A stream of another token."""

    def __init__(self, token, path):
        own, s.token = s.token, token
        try:
            super().__init__(s, path)
        finally:
            s.token = own


def scopes_are_kept():
    one = s.session()
    event = ("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"x": 1}}})
    rows = [
        (("GET", "/sessions", None), "read answer write run admin"),
        (("GET", "/sessions/%s" % one, None), "read answer write run admin"),
        (event, "write run admin"),
        (("POST", "/sessions/%s/cancel" % one, {}), "write run admin"),
        (("POST", "/sessions/%s/answer" % one, {"input": "yes"}), "answer admin"),
        (("POST", "/sessions/%s/token" % one, {}), "answer admin"),
        (("POST", "/sessions/%s/resume" % one, {"input": "yes"}), "admin"),
        (("GET", "/tokens", None), "admin"),
        (("POST", "/tokens", {"name": "x%d", "scopes": ["read"]}), "admin"),
        (("DELETE", "/tokens/none", None), "admin"),
        (("GET", "/sessions/%s/trust" % one, None), "read answer write run admin"),
        (("POST", "/sessions/%s/trust" % one, {"would_run": {}}), "admin"),
    ]
    for scope in ("read", "answer", "write", "run", "admin"):
        token = make("only-" + scope, scope)
        for (method, path, body), may in rows:
            got = s.api(method, path, body, token=token).status
            want(got == 403, scope not in may.split(), "%s as %s, got %d:" % (path, scope, got))


def commands_and_the_api_see_the_same():
    made = s.api("POST", "/tokens", {"name": "api", "scopes": ["read", "answer"], "expires_ms": int(time.time() * 1000) + 3600000})
    want((made.status, made.json["scopes"]), (201, ["read", "answer"]))
    want(s.api("GET", "/sessions", token=made.json["token"]).status, 200)
    rows = json.loads(access("list", "--json").stdout)["tokens"]
    want([r["scopes"] for r in rows if r["name"] == "api"], [["read", "answer"]])
    want(s.api("GET", "/tokens").json["tokens"], rows)
    want(any("token" in r or "hash" in r for r in rows), False)
    want("api" in access("list").stdout, True)
    want(access("create", "api", "--scopes", "read").returncode, 4)
    taken = s.api("POST", "/tokens", {"name": "api", "scopes": ["read"]})
    want((taken.status, taken.json["detail"].split(" already")[0]), (409, "there is a token 'api'"))
    want(s.api("DELETE", "/tokens/api").status, 204)
    want(s.api("DELETE", "/tokens/api").status, 404)
    want(s.api("GET", "/sessions", token=made.json["token"]).status, 401)


def bad_input_is_refused():
    for name in ("", "a b", "x" * 65, "local", "token", "deadline", "a/b"):
        a = s.api("POST", "/tokens", {"name": name, "scopes": ["read"]})
        want((a.status, a.json["error"]["detail"]["name"]), (400, "name"), repr(name))
    for scopes in ([], ["all"], ["read", "x"]):
        a = s.api("POST", "/tokens", {"name": "n", "scopes": scopes})
        want((a.status, a.json["error"]["detail"]["name"]), (400, "scopes"))
    want(s.api("POST", "/tokens", {"name": "n", "scopes": "read"}).status, 400)
    late = s.api("POST", "/tokens", {"name": "n", "scopes": ["read"], "expires_ms": 1})
    want((late.status, late.json["error"]["detail"]["name"]), (400, "expires_ms"))
    want(s.api("POST", "/tokens", {"name": "n", "scopes": ["read"], "hash": "x"}).status, 400)
    want(s.api("POST", "/tokens").status, 400)
    want(access("create", "n").returncode, 2)
    want(access("create", "n", "--scopes", "x").returncode, 2)
    want(access("revoke", "nobody").returncode, 3)
    want(access("rotate", "nobody").returncode, 3)


def revoked_and_rotated_at_once():
    """Without a restart: the next request is refused, and open streams close within a second."""
    one = s.session()
    for how in ("revoke", "rotate", "api"):
        name = "gone-" + how
        token = make(name, "read")
        readers = [Reader(token, "/sessions/%s/events?after=0" % one), Reader(token, "/events")]
        readers[0].wait(lambda r: r.events())
        began = time.monotonic()
        new = None
        if how == "api":
            a = s.api("POST", "/tokens/%s/rotate" % name)
            want(a.status, 200)
            new = a.json["token"]
        else:
            r = access(how, name)
            want(r.returncode, 0)
            new = r.stdout.strip() if how == "rotate" else None
        want(s.api("GET", "/sessions", token=token).status, 401)
        for r in readers:
            r.wait(lambda r: r.over, 5)
            r.close()
        want(time.monotonic() - began < 2, True, "closed after %.1f s" % (time.monotonic() - began))
        if new:
            want(s.api("GET", "/sessions", token=new).status, 200)


def a_token_ends_when_it_says():
    token = make("short", "read", "--expires", "1s")
    want(s.api("GET", "/sessions", token=token).status, 200)
    r = Reader(token, "/events")
    r.wait(lambda r: r.over, 5)
    r.close()
    want(s.api("GET", "/sessions", token=token).status, 401)
    row = [t for t in s.api("GET", "/tokens").json["tokens"] if t["name"] == "short"][0]
    want(row["expired"], True)


def the_log_says_who_it_was():
    token = make("alice", "write,answer,admin")
    api = lambda method, path, body=None: s.api(method, path, body, token=token)
    one = api("POST", "/sessions", {"title": "t"}).json["session_id"]
    want(api("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"x": 1}, "by": "somebody else"}}).status, 201)
    want(api("POST", "/sessions/%s/checkpoints" % one, {}).status, 201)
    want(api("POST", "/sessions/%s/prune" % one, {"keep": 0}).status, 200)
    want(api("POST", "/sessions/%s/rollback" % one, {"to": "2"}).status, 200)
    want(api("POST", "/sessions/%s/messages" % one, {"content": "m", "queue": True}).status, 202)
    queue = api("GET", "/sessions/%s/queue" % one).json["messages"]
    want(api("DELETE", "/sessions/%s/queue/%s" % (one, queue[0]["queue_id"])).status, 204)
    log = api("GET", "/sessions/%s/log" % one).json["events"]
    want([(e["kind"], e.get("by")) for e in log], [(k, "alice") for k in (
        "session.created", "memory.set", "checkpoint", "checkpoint.deleted", "session.rolled_back", "queue.added", "queue.withdrawn")])
    fork = api("POST", "/sessions/%s/fork" % one, {}).json["session_id"]
    want(api("GET", "/sessions/%s/log" % fork).json["events"][0]["by"], "alice")


def who_cancels_answers_and_trusts_is_in_the_log():
    token = make("bob", "admin")
    api = lambda method, path, body=None: s.api(method, path, body, token=token)
    for one in ("c", "d"):
        s.run("exec", "--session", one, "--", "sh", "-c", "tidemark wait go --kind approval --question 'go?'")
    want(api("POST", "/sessions/c/cancel", {"reason": "enough"}).status, 200)
    by = lambda one, kind: [e.get("by") for e in api("GET", "/sessions/%s/log" % one).json["events"] if e["kind"] == kind]
    want(by("c", "cancel.requested"), ["bob"])
    want(api("POST", "/sessions/d/token").status, 200)
    want(by("d", "run.waiting")[-1:], ["bob"])
    want(api("POST", "/sessions/d/answer", {"input": "yes", "wait": True}).status, 202)
    want(by("d", "run.resumed"), ["bob"])
    text = s.run("sessions", "export", "d").stdout
    other = Server()
    path = other.dir.name + "/d.jsonl"
    with open(path, "w") as f:
        f.write(text)
    want(other.run("sessions", "import", path).returncode, 0)
    shown = other.api("GET", "/sessions/d/trust").json
    want(other.api("POST", "/sessions/d/trust", {"would_run": shown["would_run"]}).status, 200)
    trusted = [e for e in other.api("GET", "/sessions/d/log").json["events"] if e["kind"] == "session.trusted"]
    name = other.api("GET", "/tokens").json["tokens"][0]["name"]
    want([e["by"] for e in trusted], [name] if trusted else [])
    other.done()


case("scopes are kept", scopes_are_kept)
case("commands and the API see the same tokens", commands_and_the_api_see_the_same)
case("bad input is refused", bad_input_is_refused)
case("a revoked or rotated token is of no use at once, and its streams close", revoked_and_rotated_at_once)
case("a token ends when it says", a_token_ends_when_it_says)
case("the log says who it was", the_log_says_who_it_was)
case("who cancels, answers and trusts is in the log", who_cancels_answers_and_trusts_is_in_the_log)
s.done()
end()
