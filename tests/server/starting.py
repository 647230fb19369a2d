# SPDX-License-Identifier: Apache-2.0
# Sessions of every kind made and run over HTTP, as far as the settings let a request name what runs.
import hashlib
import json
import os
import secrets
import stat
import time

from serving import Server, case, end, want

s = Server()


def path(name):
    return os.path.join(s.dir.name, name)


def write(name, text, mode=0o600):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    with open(path(name), "w") as f:
        f.write(text)
    os.chmod(path(name), mode)


def settings(**changed):
    all = {"provider": "script", "script": path("answers.json"),
           "server_programs": {"greet": {"argv": ["./greet.sh", "hello"], "cwd": path("work")},
                               "slow": {"argv": ["./slow.sh"], "cwd": path("work")},
                               "asks": {"argv": ["./asks.sh"], "cwd": path("work")},
                               "bad": {"argv": ["./bad.sh"], "cwd": path("work")},
                               "gone": {"argv": ["./gone.sh"], "cwd": path("work")},
                               "lost": {"argv": ["true"], "cwd": path("nowhere")}},
           "server_graph_roots": [path("graphs")], "server_working_roots": [path("work"), path("more")]}
    all.update(changed)
    write("config/tidemark/config.json", json.dumps(all))


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def show(one):
    return s.api("GET", "/sessions/" + one).json


def said(one, who):
    return [e["text"] for e in s.api("GET", "/sessions/%s/transcript" % one).json["entries"] if e["type"] == who]


def token(name, *scopes):
    """A token of these scopes, by the file that the server follows."""
    secret = "tide_" + secrets.token_urlsafe(32)
    with open(path("state/tidemark/access.json")) as f:
        all = json.load(f)
    all["tokens"].append({"name": name, "id": secrets.token_hex(8), "scopes": scopes, "created_ms": 1, "expires_ms": 0,
                          "hash": hashlib.blake2b(secret.encode(), digest_size=32).hexdigest()})
    write("state/tidemark/access.json.new", json.dumps(all))
    os.rename(path("state/tidemark/access.json.new"), path("state/tidemark/access.json"))
    return secret


GRAPH = {"tidemark_graph": 1, "id": "sum", "entry": "add",
         "nodes": [{"id": "add", "type": "lua", "code": "return {c = memory.a + memory.b}", "inputs": ["a", "b"], "outputs": ["c"]}],
         "edges": []}


def prepare():
    write("answers.json", json.dumps({"turns": [{"text": "first"}, {"text": "second"}, {"text": "third"}]}))
    write("work/greet.sh", '#!/bin/sh\necho "$1 $(tidemark get who)" > said\npwd > where\n', stat.S_IRWXU)
    write("work/slow.sh", "#!/bin/sh\nwhile [ ! -e stop ]; do sleep 0.02; done\n", stat.S_IRWXU)
    write("work/asks.sh", "#!/bin/sh\ntidemark wait go --kind approval --question 'go?' > /dev/null\n", stat.S_IRWXU)
    write("work/bad.sh", "#!/bin/sh\nexit 3\n", stat.S_IRWXU)
    write("work/inner/x", "")
    write("more/x", "")
    write("graphs/sum.json", json.dumps(GRAPH))
    write("graphs/broken.json", "{")
    write("outside/secret.json", json.dumps(GRAPH))
    os.symlink(path("outside/secret.json"), path("graphs/link.json"))
    os.symlink("../outside", path("work/out"))
    settings()


def a_chat_is_made_with_its_first_prompt():
    a = s.api("POST", "/sessions", {"kind": "chat", "prompt": "hello", "title": "greeting", "task_id": "t", "metadata": {"a": 1}})
    want((a.status, a.json["run_id"][:4]), (201, "run_"))
    one = a.json["session_id"]
    want(a.fields["location"], "/api/v1/sessions/" + one)
    until(lambda: show(one)["status"] == "idle")
    d = show(one)
    want((d["kind"], d["title"], d["task_id"], d["working_dir"], d["outcome"], d["metadata"]),
         ("chat", "greeting", "t", os.path.realpath(path("work")), "completed", {"a": 1}))
    want((said(one, "user"), said(one, "assistant")), (["hello"], ["first"]))
    a = s.api("POST", "/sessions/%s/runs" % one, {"prompt": "and?"})
    want((a.status, a.json["run_id"][:4]), (202, "run_"))
    until(lambda: said(one, "assistant") == ["first", "second"] and show(one)["status"] == "idle")
    runs = s.api("GET", "/sessions/%s/runs" % one).json["runs"]
    want([r["status"] for r in runs], ["completed", "completed"])
    want(s.api("GET", "/sessions/%s/runs/%s" % (one, runs[1]["run_id"])).json, runs[1])
    want(s.api("GET", "/sessions/%s/runs?limit=1" % one).json["runs"], runs[1:])
    want(s.api("GET", "/sessions/%s/runs/nothing" % one).status, 404)
    want(s.api("POST", "/sessions/%s/runs" % one, {}).status, 400)


def a_chat_may_wait_for_its_first_prompt():
    a = s.api("POST", "/sessions", {"kind": "chat", "model": "big", "working_dir": path("more")})
    one = a.json["session_id"]
    d = show(one)
    want((a.status, a.json["run_id"], d["kind"], d["status"], d["provider"], d["working_dir"]),
         (201, None, "chat", "idle", {"type": "script", "model": "big", "script": path("answers.json")}, os.path.realpath(path("more"))))
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": "now"}).status, 202)
    until(lambda: said(one, "assistant") == ["first"])


def a_program_is_started_by_its_name():
    a = s.api("POST", "/sessions", {"kind": "program", "program": "greet", "session_id": "greets", "set": {"who": "you"}})
    want((a.status, a.json["session_id"], a.json["run_id"][:4]), (201, "greets", "run_"))
    until(lambda: show("greets")["outcome"] == "completed")
    with open(path("work/said")) as f:
        want(f.read().strip(), 'hello you')
    want((show("greets")["kind"], show("greets")["agent"]), ("program", "greet"))
    want(s.api("POST", "/sessions", {"kind": "program", "program": "greet", "session_id": "greets"}).status, 409)
    want(s.api("POST", "/sessions/greets/runs", {"set": {"who": "them"}}).status, 202)
    until(lambda: len(s.api("GET", "/sessions/greets/runs").json["runs"]) == 2 and show("greets")["status"] == "idle")
    with open(path("work/said")) as f:
        want(f.read().strip(), 'hello them')


def what_cannot_begin_leaves_no_session():
    for name, status in (("gone", 404), ("lost", 404)):
        a = s.api("POST", "/sessions", {"kind": "program", "program": name, "session_id": "never"})
        want((a.status, a.json["error"]["error"]), (status, "NOT_FOUND"), name)
        want(s.api("GET", "/sessions/never").status, 404)
    a = s.api("POST", "/sessions", {"kind": "program", "program": "bad", "session_id": "bad"})
    want(a.status, 201)
    until(lambda: show("bad")["outcome"] == "failed")


def a_run_that_is_refused_changes_nothing():
    want(s.api("POST", "/sessions", {"kind": "program", "program": "asks", "session_id": "asks", "set": {"who": "me"}}).status, 201)
    until(lambda: show("asks")["status"] == "waiting")
    first = s.api("GET", "/sessions/asks/log").json["events"]
    own = s.api("GET", "/tokens").json["tokens"][0]["name"]
    want([(e["values"], e["by"]) for e in first if e["kind"] == "memory.set"], [({"who": "me"}, own)])
    for body, status, code in (({"set": {"who": "you"}}, 409, "UNFINISHED"), ({"program": "gone", "set": {"who": "you"}}, 404, "NOT_FOUND"),
                               ({"program": "gone", "new_run": True, "set": {"who": "you"}}, 404, "NOT_FOUND")):
        a = s.api("POST", "/sessions/asks/runs", body)
        want((a.status, a.json["error"]["error"]), (status, code), a.bytes)
        want(s.api("GET", "/sessions/asks/log").json["events"], first)
    want(s.api("POST", "/sessions/asks/runs", {"new_run": True, "set": {"who": "you"}}).status, 202)
    until(lambda: show("asks")["status"] == "waiting")
    more = s.api("GET", "/sessions/asks/log").json["events"][len(first):]
    want([(e["values"], e["by"]) for e in more if e["kind"] == "memory.set"], [({"who": "you"}, own)])


def a_graph_is_started_beneath_its_root():
    for name in ("sum.json", path("graphs/sum.json")):
        a = s.api("POST", "/sessions", {"kind": "graph", "graph": name, "set": {"a": 1, "b": 2}, "task_id": "sums"})
        want(a.status, 201, a.bytes)
        want(a.json["run_id"][:4], "run_")
        one = a.json["session_id"]
        until(lambda: show(one)["outcome"] == "completed")
        d = show(one)
        want((d["kind"], d["agent"], d["task_id"], d["working_dir"]), ("graph", "sum", "sums", os.path.realpath(path("work"))))
        want(s.api("GET", "/sessions/%s/state" % one).json["content"]["memory"]["c"], 3)
    want(s.api("POST", "/sessions/%s/runs" % one, {"graph": "sum.json", "set": {"a": 2, "b": 2}}).status, 202)
    until(lambda: s.api("GET", "/sessions/%s/state" % one).json["content"]["memory"]["c"] == 4)
    want(s.api("POST", "/sessions/%s/runs" % one, {}).status, 400)
    a = s.api("POST", "/sessions", {"kind": "graph", "graph": "sum.json", "set": {"a": 1}, "session_id": "short"})
    want(a.status, 400)
    want(s.api("GET", "/sessions/short").status, 404)


def nothing_leads_out_of_a_root():
    rows = [
        ({"kind": "chat", "working_dir": path("outside")}, 403, "working_dir"),
        ({"kind": "chat", "working_dir": "/"}, 403, "working_dir"),
        ({"kind": "chat", "working_dir": path("work/../outside")}, 403, "working_dir"),
        ({"kind": "chat", "working_dir": ".."}, 403, "working_dir"),
        ({"kind": "chat", "working_dir": "out"}, 403, "working_dir"),
        ({"kind": "chat", "working_dir": "inner/x"}, 400, "working_dir"),
        ({"kind": "chat", "working_dir": "nothing"}, 400, "working_dir"),
        ({"kind": "graph", "graph": "../outside/secret.json"}, 403, "graph"),
        ({"kind": "graph", "graph": path("outside/secret.json")}, 403, "graph"),
        ({"kind": "graph", "graph": "link.json"}, 403, "graph"),
        ({"kind": "graph", "graph": "nothing.json"}, 400, "graph"),
        ({"kind": "graph", "graph": "broken.json"}, 400, path("graphs/broken.json")),
        ({"kind": "graph"}, 400, "graph"),
        ({"kind": "graph", "graph": "sum.json", "graph_digest": "00"}, 400, "graph_digest"),
        ({"kind": "program", "program": "nothing"}, 403, "program"),
        ({"kind": "program"}, 400, "program"),
        ({"kind": "log", "program": "greet"}, 400, "program"),
        ({"kind": "chat", "program": "greet"}, 400, "program"),
        ({"kind": "program", "program": "greet", "prompt": "x"}, 400, "prompt"),
        ({"kind": "program", "program": "greet", "argv": ["sh"]}, 400, "argv"),
        ({"kind": "chat", "base_url": "http://x"}, 400, "base_url"),
        ({"kind": "chat", "prompt": " "}, 400, "prompt"),
        ({"kind": "chat", "agent": "chat"}, 400, "agent"),
        ({"kind": "task"}, 400, "kind"),
        ({"agent": "chat"}, 400, "agent"),
        ({"set": {"a": 1}}, 400, "set"),
    ]
    before = len(s.api("GET", "/sessions").json["sessions"])
    for body, status, name in rows:
        a = s.api("POST", "/sessions", body)
        want((a.status, a.json["error"]["detail"]["name"]), (status, name), json.dumps(body))
    want(len(s.api("GET", "/sessions").json["sessions"]), before)
    settings(server_working_roots=[])
    want(s.api("POST", "/sessions", {"kind": "chat"}).status, 403)
    settings(server_working_roots=[path("gone")])
    want(s.api("POST", "/sessions", {"kind": "chat"}).status in (400, 404), True)
    settings()


def the_latest_run_is_cancelled_and_no_other():
    one = s.api("POST", "/sessions", {"kind": "program", "program": "slow"}).json
    run = "/sessions/%s/runs/%s" % (one["session_id"], one["run_id"])
    want(s.api("GET", run).json["status"], "running")
    want(s.api("POST", run + "x/cancel").status, 404)
    want(s.api("POST", run + "/cancel", {"reason": "enough"}).json["cancelled"] in ("done", "answered", "forced"), True)
    until(lambda: s.api("GET", run).json["status"] == "cancelled")
    want(s.api("POST", run + "/cancel").status, 409)


def what_a_session_says_of_itself_changes():
    one = s.session(title="old", metadata={"a": 1})
    a = s.api("PATCH", "/sessions/" + one, {"title": "new", "task_id": "t9", "agent": "me", "metadata": {"b": 2}}, fields={"If-Match": '"1"'})
    want((a.status, a.json["seq"], a.fields["etag"]), (200, 2, '"2"'))
    d = show(one)
    want((d["title"], d["task_id"], d["agent"], d["metadata"]), ("new", "t9", "me", {"b": 2}))
    want(s.api("GET", "/sessions/%s/log?after=1" % one).json["events"][0]["kind"], "session.updated")
    want(s.api("PATCH", "/sessions/" + one, {"title": "newer"}, fields={"If-Match": '"1"'}).status, 409)
    want(s.api("PATCH", "/sessions/" + one, {"title": "newer"}, fields={"If-Match": "1"}).status, 400)
    for body in ({}, {"status": "idle"}, {"title": 1}, {"agent": "chat"}, None):
        want(s.api("PATCH", "/sessions/" + one, body).status, 400, body)
    want(s.api("PATCH", "/sessions/nobody", {"title": "x"}).status, 404)
    want(show(one)["title"], "new")


def each_kind_needs_its_scope():
    one = s.session(task_id="t")
    rows = [
        ("POST", "/sessions", {"kind": "log"}, "read", 403), ("POST", "/sessions", {"kind": "log"}, "write", 201),
        ("POST", "/sessions", {"kind": "chat"}, "write", 403), ("POST", "/sessions", {"kind": "chat"}, "run", 201),
        ("POST", "/sessions", {"kind": "program", "program": "greet"}, "write", 403),
        ("POST", "/sessions", {"kind": "graph", "graph": "sum.json", "set": {"a": 1, "b": 1}}, "run", 201),
        ("POST", "/sessions", {"kind": "graph", "graph_digest": "0" * 64}, "run", 403),
        ("POST", "/sessions/%s/runs" % one, {"program": "greet"}, "write", 403),
        ("PATCH", "/sessions/" + one, {"title": "x"}, "read", 403), ("PATCH", "/sessions/" + one, {"title": "x"}, "write", 200),
        ("GET", "/sessions/%s/runs" % one, None, "read", 200), ("GET", "/sessions/%s/status" % one, None, "answer", 200),
    ]
    tokens = {scope: token(scope, scope) for scope in ("read", "answer", "write", "run")}
    for method, where, body, scope, status in rows:
        a = s.api(method, where, body, token=tokens[scope])
        want(a.status, status, "%s %s %s as %s: %r" % (method, where, json.dumps(body), scope, a.bytes))


prepare()
case("a chat is made with its first prompt", a_chat_is_made_with_its_first_prompt)
case("a chat may wait for its first prompt", a_chat_may_wait_for_its_first_prompt)
case("a program is started by its name", a_program_is_started_by_its_name)
case("what cannot begin leaves no session", what_cannot_begin_leaves_no_session)
case("a run that is refused changes nothing", a_run_that_is_refused_changes_nothing)
case("a graph is started beneath its root", a_graph_is_started_beneath_its_root)
case("nothing leads out of a root", nothing_leads_out_of_a_root)
case("the latest run is cancelled, and no other", the_latest_run_is_cancelled_and_no_other)
case("what a session says of itself changes", what_a_session_says_of_itself_changes)
case("each kind needs its scope", each_kind_needs_its_scope)
s.done()
end()
