# SPDX-License-Identifier: Apache-2.0
# Graphs over HTTP: uploaded, checked, shown, compared, run.
import json
import os
import subprocess
import time

from serving import BIN, Server, case, end, want

s = Server()


def graph(code="return {c = memory.a + memory.b}", **more):
    return {"tidemark_graph": 1, "id": "sum", "name": "Add two", "entry": "add",
            "nodes": [{"id": "add", "type": "lua", "code": code, "inputs": ["a", "b"], "outputs": ["c"]}], "edges": [], **more}


def settings():
    os.makedirs(s.dir.name + "/config/tidemark", exist_ok=True)
    os.makedirs(s.dir.name + "/work", exist_ok=True)
    with open(s.dir.name + "/config/tidemark/config.json", "w") as f:
        json.dump({"server_working_roots": [s.dir.name + "/work"]}, f)


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def a_graph_is_stored_once_under_its_digest():
    a = s.api("POST", "/graphs", {"graph": graph()})
    want(a.status, 201, a.bytes)
    digest = a.json["digest"]
    want(a.fields["location"], "/api/v1/graphs/" + digest)
    want(s.api("POST", "/graphs", {"graph": graph()}).json, a.json)
    want([(g["digest"], g["name"]) for g in s.api("GET", "/graphs").json["graphs"]], [(digest, "Add two")])
    shown = s.api("GET", "/graphs/" + digest)
    want((shown.status, shown.json["id"]), (200, "sum"))
    want(s.api("POST", "/graphs", {"graph": shown.json}).json["digest"], digest)
    s.kill()
    s.start()
    want(s.api("GET", "/graphs/" + digest).json, shown.json)


def a_stored_graph_runs_by_its_digest():
    digest = s.api("POST", "/graphs", {"graph": graph()}).json["digest"]
    a = s.api("POST", "/graphs/%s/run" % digest, {"set": {"a": 1, "b": 2}, "session_id": "one"})
    want((a.status, a.json["run_id"][:4]), (201, "run_"))
    until(lambda: s.api("GET", "/sessions/one").json["outcome"] == "completed")
    want(s.api("GET", "/sessions/one/state").json["content"]["memory"]["c"], 3)
    a = s.api("POST", "/sessions", {"kind": "graph", "graph_digest": digest, "set": {"a": 1, "b": 5}})
    want(a.status, 201)
    want(s.api("POST", "/graphs/%s/run" % digest, {"set": {"a": 1}}).status, 400)
    want(s.api("POST", "/graphs/%s/run" % digest, {"graph": "x"}).status, 400)
    want(s.api("POST", "/graphs/%s/run" % ("0" * 64)).status, 404)
    want(s.api("POST", "/graphs/%s/run" % digest, {"set": {"a": 1, "b": 2}, "session_id": "one"}).status, 409)


def what_one_run_is_given_is_no_secret_of_others():
    g = graph("return {c = 1}", checkpoints={"exclude_memory_keys": ["pin"]})
    g["nodes"][0]["inputs"] = []
    digest = s.api("POST", "/graphs", {"graph": g}).json["digest"]
    a = s.api("POST", "/graphs/%s/run" % digest, {"set": {"pin": "a-pin-of-one-run"}, "title": "with a-pin-of-one-run", "session_id": "pin"})
    want(a.status, 201, a.bytes)
    until(lambda: s.api("GET", "/sessions/pin").json["outcome"] == "completed")
    want(s.api("GET", "/sessions/pin").json["title"], "with [redacted:pin]")
    want("a-pin-of-one-run" in s.run("log", "show", "pin").stdout, False)
    one = s.session()
    written = lambda: s.api("POST", "/sessions/%s/events" % one, {"kind": "note", "data": {"text": "a-pin-of-one-run"}}).status == 201 and \
        s.api("GET", "/sessions/%s/log" % one).json["events"][-1]["text"] == "a-pin-of-one-run"
    until(written)  # the run's session is closed a moment after its end is in the log
    s.api("DELETE", "/sessions/" + one)


def a_session_that_claims_a_digest_is_not_believed():
    digest = s.api("POST", "/graphs", {"graph": graph("return {c = 1}")}).json["digest"]
    other = "f" * 64
    one = s.session(session_id="graph_" + other[:40], agent_id=other)
    stored = s.api("GET", "/graphs/" + digest).json
    want(s.run("log", "append", one, "--kind", "graph.stored", "--data", json.dumps({"digest": other, "graph": stored})).returncode, 0)
    want(s.api("GET", "/graphs/" + other).status, 404)
    want(s.api("POST", "/graphs/%s/run" % other).status, 404)


def a_check_has_the_shape_of_the_command():
    bad = graph()
    bad["nodes"][0]["inputs"] = "a"
    a = s.api("POST", "/graphs/check", {"graph": bad})
    want((a.status, a.json["ok"], len(a.json["problems"]) > 0), (200, False, True))
    a = s.api("POST", "/graphs/check", {"graph": graph()})
    with open(s.dir.name + "/g.json", "w") as f:
        json.dump(graph(), f)
    said = json.loads(subprocess.run([BIN, "graph", "check", s.dir.name + "/g.json", "--json"], capture_output=True, env=s.env).stdout)
    want({**a.json, "file": None}, {**said, "file": None})
    want(s.api("POST", "/graphs", {"graph": bad}).status, 400)
    want(len(s.api("GET", "/graphs").json["graphs"]), 3)


def two_versions_are_compared():
    old = s.api("POST", "/graphs", {"graph": graph()}).json["digest"]
    a = s.api("POST", "/graphs/diff", {"before_digest": old, "after": graph("return {c = 2}"), "live": True})
    want((a.status, a.json["same"], a.json["nodes"][0]["change"], a.json["sessions"]), (200, False, "compatible", []))
    want(s.api("POST", "/graphs/diff", {"before": graph(), "after_digest": old}).json["same"], True)


def bad_input_is_refused_by_name():
    rows = [("/graphs", {}, "graph"), ("/graphs", {"graph": "x"}, "graph"), ("/graphs", {"graph": {}}, "graph"), ("/graphs", {"graf": {}}, "graf"),
            ("/graphs/check", {}, "graph"), ("/graphs/diff", {}, "before"), ("/graphs/diff", {"before": graph()}, "after"),
            ("/graphs/diff", {"before": graph(), "before_digest": "x", "after": graph()}, "before")]
    for where, body, name in rows:
        a = s.api("POST", where, body)
        want((a.status, a.json["error"]["detail"]["name"]), (400, name), "%s %r" % (where, body))
    want(s.api("GET", "/graphs/" + "0" * 64).status, 404)
    want(s.api("GET", "/graphs/nothing").status, 404)
    want(s.api("GET", "/graphs/%s?x=1" % ("0" * 64)).status, 400)
    want(s.api("POST", "/graphs", {"graph": graph(), "x": 1}).status, 400)


settings()
case("a graph is stored once, under its digest", a_graph_is_stored_once_under_its_digest)
case("a stored graph runs by its digest", a_stored_graph_runs_by_its_digest)
case("what one run is given is no secret of others", what_one_run_is_given_is_no_secret_of_others)
case("a session that claims a digest is not believed", a_session_that_claims_a_digest_is_not_believed)
case("a check has the shape of the command", a_check_has_the_shape_of_the_command)
case("two versions are compared", two_versions_are_compared)
case("bad input is refused by name", bad_input_is_refused_by_name)
s.done()
end()
