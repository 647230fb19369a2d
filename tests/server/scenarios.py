# SPDX-License-Identifier: Apache-2.0
# One engine behind every face: the same stories told through commands, HTTP and the WebSocket end in the same logs, and are refused
# with the same codes.
import json
import os
import stat
import subprocess
import time

from frames import Socket
from serving import BIN, case, end, want
from watched import Server

s = Server()
DIR = s.dir.name


# What is done in a story: the words of its command, and the request. {} stands for the session.
DEEDS = {
    "show": (["sessions", "show", "{}"], "GET", "/sessions/{}", "session.get"),
    "checkpoint": (["sessions", "checkpoint", "{}"], "POST", "/sessions/{}/checkpoints", "checkpoint.create"),
    "prune": (["sessions", "prune", "{}"], "POST", "/sessions/{}/prune", "checkpoint.prune"),
    "rollback": (["sessions", "rollback", "{}"], "POST", "/sessions/{}/rollback", "session.rollback"),
    "fork": (["sessions", "fork", "{}"], "POST", "/sessions/{}/fork", "session.fork"),
    "delete": (["sessions", "delete", "{}", "--yes"], "DELETE", "/sessions/{}", "session.delete"),
    "verify": (["sessions", "verify", "{}"], "GET", "/sessions/{}/verify", "session.verify"),
    "cancel": (["cancel", "{}"], "POST", "/sessions/{}/cancel", "session.cancel"),
    "send": (["sessions", "send", "{}"], "POST", "/sessions/{}/messages", "message.send"),
    "resume": (["resume", "{}"], "POST", "/sessions/{}/resume", "session.resume"),
    "answer": (["resume", "{}"], "POST", "/sessions/{}/answer", "session.answer"),
}
WAITS = ("send", "resume", "answer")  # for the end of what they begin
OPTIONS = {"session_id": "--id", "input": "--input-json", "content": None}


class Commands:
    name = "commands"

    def run(self, *words):
        return s.run(*words)

    def do(self, what, one, **args):
        words = [w.format(one) for w in DEEDS[what][0]]
        for key, value in args.items():
            option = OPTIONS.get(key, "--" + key.replace("_", "-"))
            for v in value if isinstance(value, list) else [value]:
                words += [option] if option else []
                if key == "input":
                    words.append(json.dumps(v))
                elif v is not True:
                    words.append(str(v))
        r = self.run(*words, "--json")
        said = [json.loads(line) for line in r.stderr.splitlines() if line.startswith('{"error":')]
        return (said[-1]["error"], said[-1]) if said else ("OK", r.stdout)


class Remote(Commands):
    name = "remote"  # the same commands through the server

    def run(self, *words):
        if words[1] in ("delete", "prune"):  # of a store alone
            return s.run(*words)
        return subprocess.run([BIN, "--server", "http://127.0.0.1:%d" % s.port, *words], capture_output=True, text=True, env=dict(s.env, TIDEMARK_TOKEN=s.token))


class Http:
    name = "HTTP"

    def do(self, what, one, **args):
        _, method, path, _ = DEEDS[what]
        if what in WAITS:
            args["wait"] = True
        a = s.api(method, path.format(one), None if method in ("GET", "DELETE") else args)
        return ("OK", a.json if a.bytes else {}) if a.status < 400 else (a.json["error"]["error"], a.json["error"])


class Sockets:
    name = "WebSocket"

    def __init__(self):
        self.socket = Socket(s)

    def do(self, what, one, **args):
        if what in WAITS:
            args["wait"] = True
        a = self.socket.ask(DEEDS[what][3], dict(args, id=one))
        return ("OK", a["payload"]) if a["type"] == "response" else (a["payload"]["error"], a["payload"])


def write(name, text, mode=stat.S_IRWXU):
    path = os.path.join(DIR, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def lines(name):
    try:
        with open(os.path.join(DIR, name)) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def log(one, kind=None):
    return [e for e in s.api("GET", "/sessions/%s/log?limit=1000" % one).json["events"] if kind in (None, e["kind"])]


def status(one):
    return s.api("GET", "/sessions/" + one).json["status"]


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        want(time.monotonic() < end_at, True, "in time")
        time.sleep(0.02)


TOLD = ("tool", "effect", "reason", "outcome", "decision", "input", "content", "values", "text", "to_seq", "type", "wait_kind", "node", "to", "from", "result")


def story(one):
    """What the log tells, without what differs from one telling to the next."""
    until(lambda: status(one) != "running")
    return [(e["kind"], [(k, e[k]) for k in TOLD if k in e]) for e in log(one)]


def script(one, text):
    return write(one + ".sh", "#!/bin/sh -e\ncd %s\n%s" % (DIR, text.replace("LEDGER", one + ".ledger").replace("NAME", one)))


def program(one, text):
    r = s.run("exec", "--json", "--session", one, "--", script(one, text))
    return json.loads(r.stdout.splitlines()[-1])


def begin(one, text):
    """Its process, once the program has made NAME.here."""
    p = subprocess.Popen([BIN, "--store", s.store, "exec", "--session", one, "--", script(one, text)], env=s.env, stderr=subprocess.DEVNULL)
    until(lambda: os.path.exists(os.path.join(DIR, one + ".here")))
    return p


def step(name, deed="", effect="once"):
    return "tidemark step %s --effect %s -- sh -c '%s echo %s >> LEDGER'\n" % (name, effect, deed, name)


ASKS = step("one") + "go=$(tidemark wait go --kind approval --question 'go?')\ntidemark set go=\"$go\"\n" + step("two")


# ---- the stories ----

def a_program_that_was_killed_goes_on_where_it_was(face, one):
    begin(one, step("one") + "[ -e NAME.go ] || { touch NAME.here; exec sleep 60; }\n" + step("two")).kill()
    until(lambda: status(one) == "interrupted_startup")
    write(one + ".go", "")
    want(face.do("resume", one)[0], "OK")
    want(lines(one + ".ledger"), ["one", "two"])
    want(face.do("resume", one)[0], "WRONG_STATE")


def an_answer_counts_once(face, one):
    token = program(one, ASKS)["token"]
    other = program(one + "-other", ASKS)["token"]
    want(face.do("answer", one, input=True, token="nonsense")[0], "TOKEN_MALFORMED")
    want(face.do("answer", one, input=True, token=other)[0], "TOKEN_FOREIGN")
    want(lines(one + ".ledger"), ["one"])
    want(face.do("answer", one, input=True, token=token)[0], "OK")
    want(lines(one + ".ledger"), ["one", "two"])
    want(face.do("answer", one, input=True, token=token)[0], "TOKEN_CONSUMED")
    want([len(log(one, kind)) for kind in ("token.consumed", "run.resumed")], [1, 1])


def a_no_ends_it_as_the_program_says(face, one):
    token = program(one, step("one") + "tidemark wait go --kind approval --question 'go?' > /dev/null || exit 3\n" + step("two"))["token"]
    face.do("answer", one, input=False, token=token)
    want(lines(one + ".ledger"), ["one"])
    want(face.do("answer", "nobody", input=True)[0], "NOT_FOUND")


def a_message_supersedes_a_wait(face, one):
    token = program(one, step("one") + "said=$(tidemark wait go --kind input --question 'what?')\ntidemark set said=\"$said\"\n" + step("two"))["token"]
    want(face.do("send", one, content="use the other one")[0], "OK")
    until(lambda: status(one) == "idle")
    want(lines(one + ".ledger"), ["one", "two"])
    want(face.do("answer", one, input="late", token=token)[0], "TOKEN_REVOKED")


def what_may_have_happened_is_decided_by_a_person(face, one):
    begin(one, step("one") + step("two", "touch NAME.here; sleep 60;") + step("three")).kill()
    until(lambda: status(one) == "interrupted_startup")
    face.do("resume", one)  # ends at the step: nothing says whether it happened
    until(lambda: status(one) != "running")
    want(lines(one + ".ledger"), ["one"])
    want(face.do("resume", one, happened=["nothing"])[0] in ("NOT_FOUND", "INVALID"), True)
    want(face.do("resume", one, happened=["two"])[0], "OK")
    want(lines(one + ".ledger"), ["one", "three"])


def a_cancel_ends_what_waits_and_what_runs(face, one):
    program(one, ASKS)
    want(face.do("cancel", one)[0], "OK")
    want(s.api("GET", "/sessions/" + one).json["outcome"], "cancelled")
    two = one + "-two"
    p = begin(two, "touch NAME.here\nexec sleep 60\n")
    want(face.do("resume", two)[0], "HELD")
    want(face.do("cancel", two)[0], "OK")
    p.wait(20)
    want(s.api("GET", "/sessions/" + two).json["outcome"], "cancelled")
    want(face.do("cancel", two)[0], "OK")
    want(face.do("cancel", "nobody")[0], "NOT_FOUND")


def positions_are_gone_back_to_and_forked(face, one):
    s.session(session_id=one)
    s.append(one, 3)
    want(face.do("checkpoint", one, description="here")[0], "OK")
    s.append(one, 2)
    want(face.do("fork", one, at="3", session_id=one + "-fork")[0], "OK")
    want(face.do("rollback", one, to="2", reason="wrong turn")[0], "OK")
    want(s.api("GET", "/sessions/%s/state" % one).json["content"]["memory"], {"n": 0})
    want(s.api("GET", "/sessions/%s/state" % (one + "-fork")).json["content"]["memory"], {"n": 1})
    want(face.do("rollback", one, to="99")[0] in ("NOT_FOUND", "INVALID"), True)
    want(face.do("fork", one, at="nothing")[0], "NOT_FOUND")
    want(face.do("fork", one, session_id=one)[0], "EXISTS")
    want(face.do("delete", one)[0], "HAS_FORKS")
    want(face.do("checkpoint", one)[0], "OK")
    want(face.do("prune", one, keep=1)[0], "OK")
    want(len(s.api("GET", "/sessions/%s/checkpoints" % one).json["checkpoints"]), 1)
    want(face.do("verify", one)[0], "OK")
    want(face.do("delete", one + "-fork")[0], "OK")
    want(face.do("delete", one + "-fork")[0], "NOT_FOUND")


def a_chat_answers_each_message_once(face, one):
    turns = write(one + ".json", json.dumps({"turns": [{"text": "answer %d" % i} for i in range(4)]}), 0o600)
    one = json.loads(s.run("chat", "--script", turns, "-p", "hello", "--output", "json").stdout)["session_id"]
    for text in ("and now?", "and then?"):
        want(face.do("send", one, content=text)[0], "OK")
        until(lambda: status(one) == "idle")
    said = [(e["type"], e["text"]) for e in s.api("GET", "/sessions/%s/transcript" % one).json["entries"]]
    want(said, [("user", "hello"), ("assistant", "answer 0"), ("user", "and now?"), ("assistant", "answer 1"),
                ("user", "and then?"), ("assistant", "answer 2")])
    want(face.do("send", one, content=" ")[0], "INVALID")
    want(face.do("send", "nobody", content="x")[0], "NOT_FOUND")
    return one


GRAPH = {"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
    {"id": "a", "type": "function", "program": ["sh", "-c", "echo a >> LEDGER"], "effect": "once"},
    {"id": "ask", "type": "human_input", "question": "go on?", "outputs": ["go"]},
    {"id": "b", "type": "function", "program": ["sh", "-c", "echo b >> LEDGER"], "effect": "once"}],
    "edges": [{"from": "a", "to": "ask"}, {"from": "ask", "to": "b"}]}


def a_graph_asks_and_goes_on(face, one):
    path = write(one + ".graph.json", json.dumps(GRAPH).replace("LEDGER", os.path.join(DIR, one + ".ledger")), 0o600)
    r = s.run("run", path, "--session", one, "--json")
    want(r.returncode, 7, r.stderr)
    want(lines(one + ".ledger"), ["a"])
    want(face.do("resume", one)[0], "WRONG_STATE")
    want(face.do("answer", one, input="yes")[0], "OK")
    want(lines(one + ".ledger"), ["a", "b"])
    want(face.do("resume", one)[0], "WRONG_STATE")
    want(face.do("resume", one, checkpoint="nothing")[0], "NOT_FOUND")


def what_came_from_elsewhere_runs_nothing(face, one):
    program(one, ASKS)
    exported = s.run("sessions", "export", one).stdout
    want(face.do("delete", one)[0], "OK")
    want(s.run("sessions", "import", write(one + ".jsonl", exported)).returncode, 0)
    for what, args in (("resume", {}), ("answer", {"input": True}), ("send", {"content": "go"})):
        want(face.do(what, one, **args)[0], "UNTRUSTED", what)
    want(lines(one + ".ledger"), ["one"])
    want(face.do("fork", one, session_id=one + "-fork")[0], "OK")
    want(face.do("resume", one + "-fork")[0], "UNTRUSTED")


STORIES = (a_program_that_was_killed_goes_on_where_it_was, an_answer_counts_once, a_no_ends_it_as_the_program_says, a_message_supersedes_a_wait,
           what_may_have_happened_is_decided_by_a_person, a_cancel_ends_what_waits_and_what_runs, positions_are_gone_back_to_and_forked,
           a_chat_answers_each_message_once, a_graph_asks_and_goes_on, what_came_from_elsewhere_runs_nothing)
FACES = (Commands(), Remote(), Http(), Sockets())


def told_by_every_face(tell):
    first = None
    for face in FACES:
        one = "%s-%s" % (tell.__name__.replace("_", "-"), face.name.lower())
        try:
            one = tell(face, one) or one
        except Exception as e:
            raise AssertionError("through %s: %s: %s" % (face.name, type(e).__name__, e)) from e
        now = json.dumps(story(one)).replace(one, "ONE")
        first = first or now
        want(now, first, "the log that %s leave" % face.name)


for tell in STORIES:
    case(tell.__name__.replace("_", " ") + ", whichever face is used", lambda: told_by_every_face(tell))
s.done()
end()
