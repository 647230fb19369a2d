# SPDX-License-Identifier: Apache-2.0
# The API by its routes: what they answer, what they refuse, and who may ask.
import http.client
import signal
import subprocess

from serving import Server, Stream, case, end, want

s = Server()


def sessions_are_made_read_changed_and_deleted():
    made = s.api("POST", "/sessions", {"title": "hello", "task_id": "t1", "metadata": {"a": [1, 2]}})
    want(made.status, 201)
    one = made.json["session_id"]
    want(made.fields["location"], "/api/v1/sessions/" + one)
    got = s.api("GET", "/sessions/" + one)
    want(got.fields["etag"], '"1"')
    want((got.json["title"], got.json["task_id"], got.json["metadata"]), ("hello", "t1", {"a": [1, 2]}))
    want(s.api("POST", "/sessions", {"session_id": one}).status, 409)
    s.append(one, 3)
    want(s.api("GET", "/sessions/%s/state" % one).json["content"]["memory"]["n"], 2)
    want(s.api("GET", "/sessions/%s/state?at=2" % one).json["content"]["memory"]["n"], 0)
    page = s.api("GET", "/sessions/%s/log?after=1&limit=2" % one).json
    want([e["seq"] for e in page["events"]], [2, 3])
    want(page["last_seq"], 3)
    kept = s.api("POST", "/sessions/%s/checkpoints" % one, {"description": "here"}).json
    want(s.api("GET", "/sessions/%s/checkpoints" % one).json["checkpoints"][0]["checkpoint_id"], kept["checkpoint_id"])
    want(s.api("GET", "/sessions/%s/checkpoints/%s?memory=true" % (one, kept["checkpoint_id"])).json["state"]["memory"]["n"], 2)
    want(s.api("POST", "/sessions/%s/rollback" % one, {"to": "2", "reason": "again"}).status, 200)
    want(s.api("GET", "/sessions/%s/state" % one).json["content"]["memory"]["n"], 0)
    fork = s.api("POST", "/sessions/%s/fork" % one, {"at": "3"}).json["session_id"]
    want(s.api("DELETE", "/sessions/" + one).status, 409)
    want(s.api("DELETE", "/sessions/" + fork).status, 200)
    want(s.api("DELETE", "/sessions/" + one).status, 200)
    want(s.api("GET", "/sessions/" + one).status, 404)
    want(s.api("DELETE", "/sessions/" + one).status, 404)


def an_answer_leaves_the_session_free():
    """Who was answered may go on at once: nothing of the call before holds the session."""
    for _ in range(50):
        one = s.session()
        s.append(one)
        kept = s.api("POST", "/sessions/%s/checkpoints" % one, {}).json
        want(s.api("POST", "/sessions/%s/rollback" % one, {"to": "1"}).status, 200)
        s.append(one)
        want(s.api("DELETE", "/sessions/%s/checkpoints/%s" % (one, kept["checkpoint_id"])).status in (204, 404), True)
        s.append(one)
        want(s.run("log", "append", one, "--kind", "memory.set", "--data", '{"values":{"a":1}}').returncode, 0)


def every_view_of_a_session_can_be_asked_for():
    one = s.session()
    s.append(one, 3)
    for view in ("", "/why", "/usage", "/state", "/log", "/transcript", "/timeline", "/verify", "/checkpoints", "/queue", "/trust"):
        want(s.api("GET", "/sessions/" + one + view).status, 200, view)


def an_id_is_whole():
    """What is gone is not taken for another whose id begins so; whoever has a prefix asks what it stands for."""
    for one in ("deploy", "deploy-1", "deploy-2"):
        s.session(session_id=one)
    r = Stream(s, "/sessions/deploy/events?after=0")
    r.wait(lambda r: r.events())
    want(s.api("DELETE", "/sessions/deploy").status, 200)
    r.wait(lambda r: any(e == "gone" for _, e, _ in r.got))
    r.close()
    s.api("DELETE", "/sessions/deploy-2")
    want(s.api("POST", "/sessions/deploy/events", {"kind": "memory.set", "data": {"values": {"n": 1}}}).status, 404)
    want(s.api("POST", "/sessions/deploy/messages", {"content": "x"}).status, 404)
    want(s.api("DELETE", "/sessions/deploy").status, 404)
    want(s.api("GET", "/sessions/deploy-1").json["last_seq"], 1)
    want(s.api("GET", "/resolve?prefix=deploy").json, {"session_id": "deploy-1"})
    want(s.api("GET", "/resolve?prefix=deploy-1").json, {"session_id": "deploy-1"})
    want(s.api("GET", "/resolve?prefix=deplox").status, 404)
    want(s.api("GET", "/resolve?prefix=..").status, 400)
    s.session(session_id="deploy-11")
    s.session(session_id="deploy-12")
    a = s.api("GET", "/resolve?prefix=depl")
    want((a.status, a.json["error"]["error"]), (409, "AMBIGUOUS"))


def lists_are_paged():
    ids = [s.session(task_id="paged") for _ in range(7)]
    got, after = [], ""
    while after is not None:
        page = s.api("GET", "/sessions?task_id=paged&limit=3" + (after and "&after=" + after)).json
        got += [r["session_id"] for r in page["sessions"]]
        after = page["next_cursor"]
    want(sorted(got), sorted(ids))


def conditions_are_kept():
    one = s.session()
    body = {"kind": "memory.set", "data": {"values": {"x": 1}}}
    want(s.api("POST", "/sessions/%s/events" % one, body, fields={"If-Match": '"1"'}).status, 201)
    want(s.api("POST", "/sessions/%s/events" % one, body, fields={"If-Match": '"1"'}).status, 409)
    want(s.api("POST", "/sessions/%s/events" % one, body, fields={"If-Match": "1"}).status, 400)


def bad_input_is_refused_by_name():
    one = s.session()
    rows = [
        ("POST", "/sessions", {"titel": "x"}, 400, "titel"),
        ("POST", "/sessions", {"title": 1}, 400, "title"),
        ("POST", "/sessions", {"session_id": "../x"}, 400, "session_id"),
        ("POST", "/sessions/%s/events" % one, {"data": {}}, 400, "kind"),
        ("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": []}, 400, "data"),
        ("POST", "/sessions/%s/prune" % one, {"keep": -1}, 400, "keep"),
        ("POST", "/sessions/%s/prune" % one, {"keep": 1.5}, 400, "keep"),
        ("GET", "/sessions?limit=0", None, 400, "limit"),
        ("GET", "/sessions?after=nothing", None, 400, "after"),
        ("GET", "/sessions?limit=x", None, 400, "limit"),
        ("GET", "/sessions?kind=dog", None, 400, "kind"),
        ("GET", "/sessions?nope=1", None, 400, "nope"),
        ("GET", "/sessions/%s/events?after=-1" % one, None, 400, "after"),
    ]
    for method, path, body, status, name in rows:
        a = s.api(method, path, body)
        want((a.status, a.json["error"]["detail"]["name"]), (status, name), method + " " + path)
        want(a.fields["content-type"], "application/problem+json")
    want(s.api("POST", "/sessions", raw="{", fields={"Content-Type": "application/json"}).status, 400)
    want(s.api("POST", "/sessions", raw="[1]", fields={"Content-Type": "application/json"}).status, 400)
    want(s.api("POST", "/sessions", raw="a=b", fields={"Content-Type": "application/x-www-form-urlencoded"}).status, 415)
    want(s.api("POST", "/sessions", raw="{}", fields={"Content-Type": "text/plain"}).status, 415)
    want(s.api("GET", "/sessions/%ff").status in (400, 404), True)
    want(s.api("GET", "/sessions/nobody").status, 404)
    want(s.api("GET", "/sessions/..%2f..%2fetc").status, 404)
    a = s.api("PUT", "/sessions")
    want((a.status, a.fields["allow"], a.json["detail"]), (405, "GET, POST", "this address takes only: GET, POST"))
    want(s.api("GET", "/nothing").status, 404)


def who_may_ask():
    want(s.ask("GET", "/healthz", token=False).bytes, b"ok\n")
    want(s.api("GET", "/sessions", token=False).status, 401)
    want(s.api("GET", "/sessions", token="tide_wrong").status, 401)
    want(s.api("GET", "/nothing", token=False).status, 401)
    want(s.api("GET", "/sessions", token=False, fields={"Authorization": "Basic " + s.token}).status, 401)
    for host in ("evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "localhost:%d.evil" % s.port, ""):
        want(s.ask("GET", "/healthz", fields={"Host": host}).status in (421, 400), True, host)
    want(s.api("GET", "/sessions", fields={"Host": "localhost:%d" % s.port}).status, 200)
    for origin in ("http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:%d" % s.port, "http://127.0.0.1:%d.evil" % s.port):
        want(s.api("GET", "/sessions", fields={"Origin": origin}).status, 403, origin)
    want(s.api("GET", "/sessions", fields={"Origin": "http://127.0.0.1:%d" % s.port}).status, 200)


def streams_begin_where_they_are_told():
    one = s.session()
    s.append(one, 3)
    r = Stream(s, "/sessions/%s/events?after=2" % one)
    r.wait(lambda r: len(r.events()) == 2)
    s.append(one, 2)
    r.wait(lambda r: len(r.events()) == 4)
    want([i for i, _ in r.events()], [3, 4, 5, 6])
    r.close()
    r = Stream(s, "/sessions/%s/events?after=0" % one, last=5)
    r.wait(lambda r: len(r.events()) == 1)
    want([i for i, _ in r.events()], [6])
    r.close()
    r = Stream(s, "/sessions/%s/events" % one)  # from now on
    s.append(one)
    r.wait(lambda r: len(r.events()) == 1)
    want([i for i, _ in r.events()], [7])
    r.close()
    r = Stream(s, "/sessions/%s/events?after=100" % one)
    r.wait(lambda r: r.got)
    want((r.got[0][0], r.got[0][1], r.got[0][2]["session_id"]), ("7", "reset", one))
    r.close()
    r = Stream(s, "/sessions/%s/events?after=0&kinds=session.created" % one)
    r.wait(lambda r: r.events())
    s.append(one)
    r.wait(lambda r: any(e == "status" for _, e, _ in r.got) or True)
    want([d["kind"] for _, d in r.events()], ["session.created"])
    r.close()


def stream_of_all_has_every_session():
    r = Stream(s, "/events")
    ids = [s.session() for _ in range(3)]
    for i in ids:
        s.append(i, 2)
    r.wait(lambda r: len(r.events()) == 9)
    want({d["session_id"] for _, d in r.events()}, set(ids))
    want([i for i, _ in r.events()], sorted(i for i, _ in r.events()))
    r.close()


def stream_of_a_deleted_session_ends():
    one = s.session()
    r = Stream(s, "/sessions/%s/events?after=0" % one)
    r.wait(lambda r: r.events())
    want(s.api("DELETE", "/sessions/" + one).status, 200)
    r.wait(lambda r: any(e == "gone" for _, e, _ in r.got))
    r.wait(lambda r: r.over)
    r.close()


def commands_beside_the_server_are_seen():
    one = s.session()
    r = Stream(s, "/sessions/%s/events?after=1" % one)
    want(s.run("log", "append", one, "--kind", "memory.set", "--data", '{"values":{"a":1}}').returncode, 0)
    r.wait(lambda r: len(r.events()) == 1)
    r.close()


def as_many_as_come_at_once_are_answered():
    """Also just as many as the HTTP library takes from the kernel at a time."""
    for n in (127, 128, 129, 256):
        lines = [http.client.HTTPConnection("127.0.0.1", s.port, timeout=5) for _ in range(n)]
        for turn in range(3):
            s.process.send_signal(signal.SIGSTOP if turn else 0)  # what is sent is all there when it looks
            for line in lines:
                line.request("GET", "/healthz")
            s.process.send_signal(signal.SIGCONT)
            want([line.getresponse().read() for line in lines], [b"ok\n"] * n, "of %d" % n)
        for line in lines:
            line.close()


def stop_is_clean():
    one = s.session()
    r = Stream(s, "/sessions/%s/events?after=0" % one)
    r.wait(lambda r: r.events())
    want(s.stop(), 0)
    r.wait(lambda r: r.over)
    r.close()


def figures_are_of_what_happened():
    """Read from the text format: names, types, values."""
    def read():
        values, types = {}, {}
        for line in s.ask("GET", "/metrics").bytes.decode().splitlines():
            if line.startswith("# TYPE "):
                types[line.split()[2]] = line.split()[3]
            elif not line.startswith("#"):
                values[line.rsplit(" ", 1)[0]] = float(line.rsplit(" ", 1)[1])
        return values, types

    before, types = read()
    one = s.session()
    s.append(one, 3)
    after, _ = read()
    want(after["tidemark_events_total"] - before["tidemark_events_total"], 4)
    want(after["tidemark_commit_appends_count"] - before["tidemark_commit_appends_count"] > 0, True)
    want(types["tidemark_commit_appends"], "histogram")
    want(after['tidemark_commit_appends_bucket{le="+Inf"}'], after["tidemark_commit_appends_count"])
    want(s.ask("GET", "/metrics", token=False).status, 401)
    want(s.ask("GET", "/readyz").bytes, b"ok\n")


def the_document_names_every_route():
    d = s.ask("GET", "/openapi.json").json
    want(d["openapi"][:2], "3.")
    want("get" in d["paths"]["/api/v1/sessions/{id}/why"], True)
    ids = [o["operationId"] for p in d["paths"].values() for o in p.values()]
    want(len(ids), len(set(ids)))


case("figures are of what happened", figures_are_of_what_happened)
case("the document names every route", the_document_names_every_route)
case("sessions are made, read, changed and deleted", sessions_are_made_read_changed_and_deleted)
case("an answer leaves the session free", an_answer_leaves_the_session_free)
case("every view of a session can be asked for", every_view_of_a_session_can_be_asked_for)
case("an id is whole", an_id_is_whole)
case("lists are paged", lists_are_paged)
case("conditions are kept", conditions_are_kept)
case("bad input is refused by name", bad_input_is_refused_by_name)
case("who may ask", who_may_ask)
case("streams begin where they are told", streams_begin_where_they_are_told)
case("the stream of all has every session, in one order", stream_of_all_has_every_session)
case("the stream of a deleted session ends", stream_of_a_deleted_session_ends)
case("commands beside the server are seen", commands_beside_the_server_are_seen)
case("as many as come at once are answered", as_many_as_come_at_once_are_answered)
case("a stop is clean", stop_is_clean)
s.done()
end()
