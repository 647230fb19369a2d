# SPDX-License-Identifier: Apache-2.0
# Tasks over HTTP: derived from their sessions, but for what a person sets; no session is taken for another's.
import json
import os
import stat
import time

from serving import Server, case, end, want

s = Server()


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def task(name):
    return s.api("GET", "/tasks/" + name)


def a_task_is_what_its_sessions_are():
    want(task("a").status, 404)
    one, two = s.session(task_id="a"), s.session(task_id="a")
    s.session(task_id="b")
    d = task("a").json
    want((d["state"], d["derived_state"], d["is_set"], d["sessions"], d["session_id"], d["seq"]), ("IDLE", "IDLE", False, 2, None, 0))
    with open(s.dir.name + "/wait.sh", "w") as f:
        f.write("#!/bin/sh\ntidemark wait go --kind approval --question 'go?'\n")
    os.chmod(s.dir.name + "/wait.sh", stat.S_IRWXU)
    s.run("exec", "--session", one, "--", s.dir.name + "/wait.sh")
    d = task("a").json
    want((d["state"], d["waiting"], d["running"]), ("WAITING_FOR_INPUT", 1, 0))
    want(s.run("exec", "--session", two, "--", "true").returncode, 0)
    want(task("a").json["state"], "WAITING_FOR_INPUT")
    want(s.api("POST", "/sessions/%s/answer" % one, {"input": True}).status, 202)
    until(lambda: task("a").json["state"] == "COMPLETED")
    want({t["task_id"]: t["sessions"] for t in s.api("GET", "/tasks").json["tasks"]}, {"a": 2, "b": 1})
    want([t["task_id"] for t in s.api("GET", "/tasks?state=COMPLETED").json["tasks"]], ["a"])
    want(len(s.api("GET", "/tasks?limit=1").json["tasks"]), 1)


def what_a_person_sets_counts_until_it_is_taken_back():
    one = s.session(task_id="set")
    a = s.api("PUT", "/tasks/set", {"state": "REVIEW", "title": "the big one"})
    want((a.status, a.json["state"], a.json["title"], a.json["derived_state"], a.json["sessions"]), (200, "REVIEW", "the big one", "IDLE", 1))
    etag = a.fields["etag"]
    holder = s.api("GET", "/sessions/" + a.json["session_id"]).json
    want((holder["kind"], holder["task_id"]), ("task", "set"))
    want([t["session_id"] for t in s.api("GET", "/sessions?kind=task").json["sessions"]], [holder["session_id"]])
    s.kill()
    s.start()
    want(task("set").json["state"], "REVIEW")
    want(s.api("PATCH", "/tasks/set", {"state": "DONE"}, fields={"If-Match": etag}).json["state"], "DONE")
    want(s.api("PATCH", "/tasks/set", {"state": "REVIEW"}, fields={"If-Match": etag}).status, 409)
    a = s.api("PATCH", "/tasks/set", {"state": ""})
    want((a.json["state"], a.json["is_set"], a.json["title"]), ("IDLE", False, "the big one"))
    want([r["session_id"] for r in s.api("GET", "/tasks/set/sessions").json["sessions"]], [one])
    want(s.api("POST", "/sessions/%s/runs" % holder["session_id"], {"program": "x"}).status, 400)
    want(s.api("POST", "/sessions/%s/messages" % holder["session_id"], {"content": "x"}).status, 400)


def a_task_may_be_there_before_its_sessions():
    a = s.api("PUT", "/tasks/new%20one%2F7", {"state": "TODO"})
    want((a.status, a.json["task_id"], a.json["sessions"]), (200, "new one/7", 0))
    page = s.api("GET", "/tasks/new%20one%2F7/sessions").json
    want((page["sessions"], page["next_cursor"]), ([], None))
    s.session(task_id="new one/7")
    want(task("new%20one%2F7").json["sessions"], 1)


def no_session_is_taken_for_one_of_another_task():
    one, other = s.session(task_id="mine"), s.session(task_id="theirs")
    want(s.api("GET", "/tasks/mine/sessions/" + one).json["session_id"], one)
    want(s.api("GET", "/tasks/mine/sessions/" + other).status, 404)
    want(s.api("GET", "/tasks/theirs/sessions/" + one).status, 404)
    want(s.api("GET", "/tasks/nobody/sessions").status, 404)
    holder = s.api("PUT", "/tasks/mine", {"state": "REVIEW"}).json["session_id"]
    want(s.api("GET", "/tasks/mine/sessions/" + holder).status, 404)
    want(s.api("PATCH", "/sessions/" + one, {"task_id": "theirs"}).status, 200)
    want(s.api("GET", "/tasks/mine/sessions/" + one).status, 404)
    s.session(session_id="task_taken", task_id="other")
    want(s.api("PUT", "/tasks/taken", {"state": "REVIEW"}).status, 409)


def sessions_of_a_task_are_paged():
    ids = {s.session(task_id="many") for _ in range(5)}
    s.api("PUT", "/tasks/many", {"state": "REVIEW"})
    got, after = set(), ""
    while after is not None:
        page = s.api("GET", "/tasks/many/sessions?limit=2" + (after and "&after=" + after)).json
        want(len(page["sessions"]) <= 2, True)
        got |= {r["session_id"] for r in page["sessions"]}
        after = page["next_cursor"]
    want(got, ids)


def bad_input_is_refused_by_name():
    rows = [({"state": "review"}, "state"), ({"state": "A" * 33}, "state"), ({"state": 1}, "state"), ({"stat": "X"}, "stat"), ({}, None), (None, None)]
    for body, name in rows:
        a = s.api("PUT", "/tasks/bad", body)
        want((a.status, a.json["error"]["detail"]["name"]), (400, name), json.dumps(body))
    want(s.api("PUT", "/tasks/" + "x" * 513, {"state": "REVIEW"}).status, 400)
    want(s.api("PUT", "/tasks/%ff", {"state": "REVIEW"}).status in (400, 404), True)
    want(task("bad").status, 404)
    want(s.api("GET", "/tasks?limit=0").status, 400)
    want(s.api("POST", "/tasks").status, 405)


case("a task is what its sessions are", a_task_is_what_its_sessions_are)
case("what a person sets counts until it is taken back", what_a_person_sets_counts_until_it_is_taken_back)
case("a task may be there before its sessions", a_task_may_be_there_before_its_sessions)
case("no session is taken for one of another task", no_session_is_taken_for_one_of_another_task)
case("sessions of a task are paged", sessions_of_a_task_are_paged)
case("bad input is refused by name", bad_input_is_refused_by_name)
s.done()
end()
