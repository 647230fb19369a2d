# SPDX-License-Identifier: Apache-2.0
# The status of a session in the words of task sessions.
import json

from serving import Server, case, end, want

s = Server()


def a_status_has_both_vocabularies():
    one = s.session(task_id="t1")
    got = s.api("GET", "/sessions/%s/status" % one)
    want(got.status, 200)
    d = got.json
    want((d["session_id"], d["task_id"], d["state"], d["status"], d["outcome"]), (one, "t1", "IDLE", "idle", "none"))
    want((d["is_resumable"], d["needs_resume"], d["resume_reason"], d["reason"]), (False, False, None, "none"))
    want((d["graph_status"], isinstance(d["why"], str), isinstance(d["next"], list)), ("idle", True, True))


def an_interrupted_session_says_why_it_needs_a_resume():
    s.session(session_id="cut")
    for kind, data in (("run.started", {"run_id": "r1", "argv": ["true"], "cwd": "/"}),
                       ("run.interrupted", {"run_id": "r1", "reason": "process_exit", "resumable": True})):
        want(s.run("log", "append", "cut", "--kind", kind, "--data", json.dumps(data)).returncode, 0)
    d = s.api("GET", "/sessions/cut/status").json
    want((d["state"], d["status"], d["needs_resume"], d["resume_reason"]),
         ("WAITING_FOR_INPUT", "interrupted_startup", True, "process_exit"))


def an_unknown_session_has_none():
    want(s.api("GET", "/sessions/nobody/status").status, 404)
    want(s.api("GET", "/sessions/nobody/status?x=1").status, 400)
    want(s.api("GET", "/sessions/nobody/status", token=False).status, 401)


case("a status has both vocabularies", a_status_has_both_vocabularies)
case("an interrupted session says why it needs a resume", an_interrupted_session_says_why_it_needs_a_resume)
case("an unknown session has none", an_unknown_session_has_none)
s.done()
end()
