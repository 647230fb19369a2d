# SPDX-License-Identifier: Apache-2.0
# Places to run are few: tasks take turns for them, and nobody who has to wait for one is forgotten.
import json
import os
import stat
import threading
import time

from serving import Server, Stream, case, end, want


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def path(s, name):
    return os.path.join(s.dir.name, name)


def server():
    """One place, taken by a program that ends when the file `stop` is there."""
    s = Server("--jobs", "1")
    os.makedirs(path(s, "config/tidemark"))
    os.makedirs(path(s, "work"))
    for name, text in (("block", "while [ ! -e stop ]; do sleep 0.02; done"), ("say", "tidemark get name >> ledger")):
        with open(path(s, "work/" + name), "w") as f:
            f.write("#!/bin/sh\n%s\n" % text)
        os.chmod(path(s, "work/" + name), stat.S_IRWXU)
    with open(path(s, "answers.json"), "w") as f:
        json.dump({"turns": [{"text": "answer %d" % i} for i in range(20)]}, f)
    with open(path(s, "config/tidemark/config.json"), "w") as f:
        json.dump({"provider": "script", "script": path(s, "answers.json"), "server_working_roots": [path(s, "work")],
                   "server_programs": {n: {"argv": ["./" + n], "cwd": path(s, "work")} for n in ("block", "say")}}, f)
    return s


def figure(s, name):
    for line in s.ask("GET", "/metrics").bytes.decode().splitlines():
        if line.startswith("tidemark_%s " % name):
            return float(line.split()[1])


def lines(s):
    try:
        with open(path(s, "work/ledger")) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def block(s):
    want(s.api("POST", "/sessions", {"kind": "program", "program": "block", "session_id": "block"}).status, 201)


def release(s):
    open(path(s, "work/stop"), "w").close()


class Asking(threading.Thread):
    def __init__(self, s, task, name):
        super().__init__()
        self.s, self.task, self.called = s, task, name
        self.start()

    def run(self):
        self.answer = self.s.api("POST", "/sessions", {"kind": "program", "program": "say", "task_id": self.task, "set": {"name": self.called}})


def those_who_ask_take_turns_by_task():
    s = server()
    block(s)
    asked = []
    for task, name in [("a", "a%d" % i) for i in range(5)] + [("b", "b")]:
        asked.append(Asking(s, task, name))
        until(lambda: figure(s, "runs_asked") == len(asked))
    want(figure(s, "runs_active"), 1)
    release(s)
    for one in asked:
        one.join(30)
        want(one.answer.status, 201)
    until(lambda: len(lines(s)) == 6)
    want(lines(s), ["a0", "b", "a1", "a2", "a3", "a4"])
    s.done()


def what_is_due_takes_turns_by_task():
    s = server()
    chats = {}
    for i, task in enumerate(["a"] * 5 + ["b"]):
        chats[s.api("POST", "/sessions", {"kind": "chat", "task_id": task}).json["session_id"]] = task
    block(s)
    for one in chats:
        a = s.api("POST", "/sessions/%s/messages" % one, {"content": "hello"})
        want((a.status, a.json["queue_id"][:2]), (202, "q_"))
    until(lambda: figure(s, "runs_due") == len(chats))
    r = Stream(s, "/events?kinds=run.started")
    release(s)
    r.wait(lambda r: len(r.events()) == len(chats), 30)
    order = [chats[d["session_id"]] for _, d in r.events()]
    want("b" in order[:2], True, order)
    r.close()
    until(lambda: all(s.api("GET", "/sessions/" + one).json["outcome"] == "completed" for one in chats))
    s.done()


def a_session_that_waits_for_its_turn_is_held():
    s = server()
    block(s)
    one = s.session(task_id="a")
    first = threading.Thread(target=lambda: s.api("POST", "/sessions/%s/runs" % one, {"program": "say", "set": {"name": "x"}}))
    first.start()
    until(lambda: figure(s, "runs_asked") == 1)
    want(s.api("POST", "/sessions/%s/runs" % one, {"program": "say"}).status, 409)
    release(s)
    first.join(30)
    s.done()


def a_stop_answers_those_who_wait():
    s = server()
    block(s)
    asked = [Asking(s, "a", "never"), Asking(s, "b", "never")]
    until(lambda: figure(s, "runs_asked") == 2)
    want(s.stop(), 0)
    for one in asked:
        one.join(30)
        want((one.answer.status, one.answer.fields.get("retry-after")), (503, "1"))
    s.start()
    want([r["session_id"] for r in s.api("GET", "/sessions").json["sessions"]], ["block"])
    release(s)
    until(lambda: s.api("GET", "/sessions/block").json["status"] == "idle")
    want(os.path.exists(path(s, "work/ledger")), False)
    s.done()


case("those who ask take turns by task", those_who_ask_take_turns_by_task)
case("what is due takes turns by task", what_is_due_takes_turns_by_task)
case("a session that waits for its turn is held", a_session_that_waits_for_its_turn_is_held)
case("a stop answers those who wait", a_stop_answers_those_who_wait)
end()
