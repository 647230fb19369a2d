# SPDX-License-Identifier: Apache-2.0
# Waits: who may answer them, with which token, once; a token is shown once, to whoever parked the run.
import json
import os
import stat
import threading
import time

from frames import Socket
from serving import Server, Stream, case, end, want

s = Server()


def write(name, text, mode=0o600):
    path = os.path.join(s.dir.name, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def status(one):
    return s.api("GET", "/sessions/" + one).json["status"]


def ledger(one):
    try:
        with open(os.path.join(s.dir.name, one + ".ledger")) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def program(one, waits="tidemark wait go --kind approval --question 'go?' > /dev/null\n"):
    """A program that does something once, waits, and does another thing once. Gives the token of its wait."""
    text = ("#!/bin/sh\ncd %s\ntidemark step one --effect once -- sh -c 'echo one >> %s.ledger'\n%s"
            "tidemark step two --effect once -- sh -c 'echo two >> %s.ledger'\n") % (s.dir.name, one, waits, one)
    r = s.run("exec", "--json", "--session", one, "--", write(one, text, stat.S_IRWXU))
    return json.loads(r.stdout.splitlines()[-1])["token"]


def events(one, kind=None):
    return [e for e in s.api("GET", "/sessions/%s/log" % one).json["events"] if kind in (None, e["kind"])]


def answer(one, token, **more):
    return s.api("POST", "/sessions/%s/answer" % one, dict({"input": "yes", "token": token}, **more))


def every_token_has_its_status():
    token, other = program("a"), program("b")
    want(answer("a", "nonsense").status, 400, "malformed")
    want(answer("a", "rt_x.y").status, 400, "malformed")
    want(answer("a", other).status, 401, "of another session")
    want(answer("a", token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")).status, 401, "wrong")
    want(answer("nobody", token).status, 404)
    fresh = s.api("POST", "/sessions/a/token").json["token"]
    want(answer("a", token).status, 410, "revoked")
    a = answer("a", fresh)
    want((a.status, a.json["session_id"]), (202, "a"))
    until(lambda: status("a") == "idle")
    want(answer("a", fresh).status, 410, "used")
    want(s.api("POST", "/sessions/a/answer", {"input": "yes"}).status, 409, "wrong state")
    want(s.api("POST", "/sessions/a/resume", {}).status, 409, "wrong state")
    want(s.api("POST", "/sessions/a/token").status, 409, "nothing to rotate")
    want(ledger("a"), ["one", "two"])
    want(len(events("a", "token.consumed")), 1)
    want(len(events("a", "run.resumed")), 1)


def of_a_hundred_answers_one_counts():
    token = program("many")
    got, lock = [], threading.Lock()

    def give():
        st = answer("many", token).status
        with lock:
            got.append(st)

    threads = [threading.Thread(target=give) for _ in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    want(got.count(202), 1, "one is taken; got %r" % sorted(set(got)))
    want(set(got) - {202, 409, 410}, set())
    until(lambda: status("many") == "idle")
    want(ledger("many"), ["one", "two"])


def the_token_goes_to_whoever_parked_the_run():
    twice = "tidemark wait go --kind approval --question 'go?' > /dev/null\ntidemark wait on --kind approval --question 'on?' > /dev/null\n"
    token = program("twice", twice)
    r = Stream(s, "/sessions/twice/events?after=0")
    a = answer("twice", token, wait=True)
    want((a.status, a.json["status"]), (202, "waiting"))
    second = a.json["token"]
    want(second[:3], "rt_")
    a = answer("twice", second, wait=True)
    want((a.json["status"], "token" in a.json), ("idle", False))
    r.wait(lambda r: any(d["kind"] == "run.completed" for _, d in r.events()))
    r.close()
    everything = json.dumps([d for _, _, d in r.got]) + json.dumps(events("twice"))
    for secret in (token, second):
        want(secret.split(".")[1] in everything, False, "the secret in events")


def a_chat_says_its_token_once():
    script = write("chat.json", json.dumps({"turns": [
        {"text": "first"},
        {"calls": [{"name": "bash", "args": {"command": "echo hi"}}]},
        {"text": "done"}]}))
    one = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    a = s.api("POST", "/sessions/%s/messages" % one, {"content": "run it", "wait": True}, fields={"Idempotency-Key": "k1"})
    want((a.status, a.json["status"]), (202, "waiting"))
    token = a.json["token"]
    again = s.api("POST", "/sessions/%s/messages" % one, {"content": "run it", "wait": True}, fields={"Idempotency-Key": "k1"})
    want((again.json["run_id"], "token" in again.json), (a.json["run_id"], False))
    a = s.ask("POST", "/api/v1/waits/answer", {"session_id": one, "token": token, "input": "yes"}, token=False)
    want(a.status, 202)
    until(lambda: status(one) == "idle")
    want([e["by"] for e in events(one, "run.resumed")], ["token"])


def the_secret_alone_answers_that_wait_and_nothing_else():
    token, other = program("s1"), program("s2")
    ask = lambda body, **more: s.ask("POST", "/api/v1/waits/answer", body, token=False, **more)
    want(ask({"session_id": "s1", "token": other, "input": "yes"}).status, 401)
    want(ask({"session_id": "nobody", "token": token, "input": "yes"}).status, 401, "nothing is learned")
    want(ask({"session_id": "s1", "token": "x", "input": "yes"}).status, 400)
    want(ask({"session_id": "s1", "token": token}).status, 400)
    want(ask({"session_id": "s1", "token": token, "input": "yes", "retry": ["one"]}).status, 400)
    want(ask({"session_id": "s1", "token": token, "input": "perhaps"}).status, 400)
    for method, path in (("GET", "/sessions/s1"), ("POST", "/sessions/s1/cancel"), ("GET", "/sessions/s1/events")):
        want(s.api(method, path, token=token).status, 401, path)
    want(ask({"session_id": "s1", "token": token, "input": "yes"}).status, 202)
    until(lambda: status("s1") == "idle")
    want(ask({"session_id": "s1", "token": token, "input": "yes"}).status, 410)
    want(ledger("s1"), ["one", "two"])
    want(status("s2"), "waiting")
    want(s.api("POST", "/sessions/s2/cancel").status, 200)


def whoever_may_not_answer_gets_no_token():
    """With the token of a wait anybody may answer it: who parks the run again does not learn it by that."""
    writer = s.run("access", "create", "writer", "--scopes", "write").stdout.strip()
    asker = s.run("access", "create", "asker", "--scopes", "answer").stdout.strip()
    program("w1", "tidemark wait go --kind approval --question 'go?' > /dev/null || exit 1\n")
    for path, body in (("messages", {"content": "yes", "wait": True}), ("messages", {"content": "again", "wait": True})):
        a = s.api("POST", "/sessions/w1/" + path, body, token=writer)
        want((a.status, a.json["status"], "token" in a.json), (202, "waiting", False), path)
    want(s.api("POST", "/sessions/w1/messages", {"content": "mine", "wait": True}).json["token"][:3], "rt_")
    want(s.api("POST", "/sessions/w1/answer", {"input": "no", "wait": True}, token=asker).status, 202)
    a = s.api("POST", "/sessions/w1/resume", {"ask_again": "go", "wait": True}, token=writer)
    want("token" in a.json, False, a.bytes)
    want(ledger("w1"), ["one"])


def an_answer_without_an_answer_is_no_resume():
    """To go on with what failed is for those who may write."""
    asker = s.run("access", "create", "asker2", "--scopes", "answer").stdout.strip()
    s.run("exec", "--session", "fell", "--", write("fell", "#!/bin/sh\ncd %s\n[ -e up ] || exit 3\necho up >> fell.ledger\n" % s.dir.name, stat.S_IRWXU))
    write("up", "")
    for body in ({}, {"input": None}, {"token": "rt_x.y"}):
        a = s.api("POST", "/sessions/fell/answer", body, token=asker)
        want((a.status, a.json["error"]["detail"]["name"]), (400, "input"), body)
    want((status("fell"), ledger("fell")), ("idle", []))


def a_question_that_was_answered_with_no_is_asked_again():
    program("again", "tidemark wait go --kind approval --question 'go?' > /dev/null || exit 1\n")
    ended = lambda: s.api("GET", "/sessions/again").json["outcome"]
    for _ in range(2):
        want(s.api("POST", "/sessions/again/answer", {"input": "no", "wait": True}).status in (202, 500), True)
        until(lambda: ended() == "failed")
        a = s.api("POST", "/sessions/again/resume", {"ask_again": "go", "wait": True})
        want((a.status, a.json["status"], a.json["token"][:3]), (202, "waiting", "rt_"), a.bytes)
    want(ledger("again"), ["one"])
    want(s.ask("POST", "/api/v1/waits/answer", {"session_id": "again", "token": a.json["token"], "input": "yes"}, token=False).status, 202)
    until(lambda: ended() == "completed")
    want(ledger("again"), ["one", "two"])
    a = s.api("POST", "/sessions/again/resume", {"ask_again": "nothing"})
    want(a.status in (400, 404, 409), True, a.bytes)


def what_means_nothing_to_a_kind_is_refused_by_name():
    program("options")
    script = write("options.json", json.dumps({"turns": [{"text": "first"}]}))
    chat = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    for one, names in (("options", ("checkpoint", "fallback", "reuse_effects", "redo_effects", "set")),
                       (chat, ("checkpoint", "set", "now", "accept_change", "retry", "happened"))):
        for name in names:
            value = {"checkpoint": "1", "set": {"a": 1}, "retry": ["x"], "happened": ["x"]}.get(name, True)
            a = s.api("POST", "/sessions/%s/resume" % one, {name: value})
            want((a.status, a.json["error"]["error"], a.json["error"]["detail"]["name"]), (400, "INVALID", name), a.bytes)
    for one, body in ((chat, {"program": "x"}), (chat, {"prompt": "x", "set": {"a": 1}}), ("options", {"prompt": "x"}), ("options", {"graph": "x"})):
        a = s.api("POST", "/sessions/%s/runs" % one, body)
        want((a.status, a.json["error"]["detail"]["name"] in body), (400, True), a.bytes)
    want(status("options"), "waiting")
    a = s.api("POST", "/sessions/options/answer", {"input": "yes", "reason": "why not"})
    want(a.status, 202, a.bytes)


def a_graph_that_waits_again_is_no_failure():
    os.makedirs(s.dir.name + "/config/tidemark", exist_ok=True)
    write("config/tidemark/config.json", json.dumps({"server_graph_roots": [s.dir.name], "server_working_roots": [s.dir.name]}))
    write("ask.json", json.dumps({"tidemark_graph": 1, "id": "g", "entry": "ask", "nodes": [
        {"id": "ask", "type": "human_input", "kind": "approval", "question": "go?", "outputs": ["ok"]}]}))
    want(s.api("POST", "/sessions", {"kind": "graph", "graph": "ask.json", "session_id": "graph"}).status, 201)
    parked = lambda: s.api("GET", "/sessions/graph").json
    until(lambda: (parked()["status"], parked()["holder"]) == ("waiting", None))
    a = s.api("POST", "/sessions/graph/resume", {"redo_effects": True})
    want((a.status, a.json["error"]["detail"]["name"]), (400, "redo_effects"), a.bytes)
    for body in ({"content": "what?"}, {"content": "what?", "wait": True}):
        a = s.api("POST", "/sessions/graph/messages", body)
        want((a.status, a.json["session_id"], a.json["run_id"][:4]), (202, "graph", "run_"), a.bytes)
        want(a.json["run_id"], [e["run_id"] for e in events("graph", "run.started")][-1])
        until(lambda: (parked()["status"], parked()["holder"]) == ("waiting", None))
    want((a.json["status"], a.json["token"][:3]), ("waiting", "rt_"))


def a_lapsed_wait_is_opened_again():
    token = program("late", "tidemark wait go --kind approval --deadline 1s --question 'go?' > /dev/null\n")
    until(lambda: status("late") == "interrupted_waiting")
    want(answer("late", token).status, 410)
    a = s.api("POST", "/sessions/late/token", {"deadline_ms": int(time.time() * 1000) + 3600000})
    want(a.status, 200)
    want(status("late"), "waiting")
    want(answer("late", token).status, 410)
    want(s.api("POST", "/sessions/late/token", {"deadline_ms": 5}).status, 400)
    want(answer("late", a.json["token"]).status, 202)
    until(lambda: status("late") == "idle")
    want(ledger("late"), ["one", "two"])


def guessing_is_slowed_down():
    token = program("guess")
    wrong = {"session_id": "guess", "token": "rt_x." + "A" * 43, "input": "yes"}
    got = []
    while len(got) < 2000 and 429 not in got:
        got.append(s.ask("POST", "/api/v1/waits/answer", wrong, token=False).status)
    want((set(got), got[-1]), ({401, 429}, 429))
    w, got = Socket(s), []
    while len(got) < 2000 and "BUSY" not in got:
        got.append(w.ask("wait.answer", wrong)["payload"]["error"])
    w.close()
    want((set(got), got[-1]), ({"TOKEN_FOREIGN", "BUSY"}, "BUSY"))
    want(s.ask("POST", "/api/v1/waits/answer", dict(wrong, token=token), token=False).status, 202)  # nobody is locked out


case("every token has its status", every_token_has_its_status)
case("of a hundred answers with the right token one counts", of_a_hundred_answers_one_counts)
case("the token of a wait goes to whoever parked the run, and is in no event", the_token_goes_to_whoever_parked_the_run)
case("a chat says its token once, also to a request that is repeated", a_chat_says_its_token_once)
case("the secret alone answers that wait and nothing else", the_secret_alone_answers_that_wait_and_nothing_else)
case("whoever may not answer gets no token of a wait", whoever_may_not_answer_gets_no_token)
case("an answer without an answer is no resume", an_answer_without_an_answer_is_no_resume)
case("a question that was answered with no is asked again", a_question_that_was_answered_with_no_is_asked_again)
case("what means nothing to a kind is refused by name", what_means_nothing_to_a_kind_is_refused_by_name)
case("a graph that waits again is no failure", a_graph_that_waits_again_is_no_failure)
case("a wait whose token lapsed is opened again", a_lapsed_wait_is_opened_again)
case("guessing is slowed down", guessing_is_slowed_down)
s.done()
end()
