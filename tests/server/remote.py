# SPDX-License-Identifier: Apache-2.0
# Commands through a server (--server): they print what they print on the store itself, fail as they fail there, and a request that had to
# be sent again was carried out once. What is no server, or not the one that is meant, is said in one line.
import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time

from serving import BIN, Server, case, end, want

s = Server("--unix", "off")
UNIX = os.path.join(s.dir.name, "run", "s.sock")
s.stop()
s.options = ("--unix", UNIX)
s.start()
s.env.pop("TIDEMARK_TOKEN", None)
HTTP = "http://127.0.0.1:%d" % s.port
SERVERS = [HTTP, "unix:" + UNIX]
USAGE, NOT_FOUND, IO, WAITS, TOKEN = 2, 3, 6, 7, 8


def command(*args, env=None, text=None, timeout=60):
    r = subprocess.run([BIN, *args], env=dict(s.env, **(env or {})), capture_output=True, text=True, input=text, timeout=timeout)
    return r


def remote(*args, server=None, **more):
    return command("--server", server or HTTP, *args, **more)


def line_of(r, status, *words):
    """One clear line on standard error, nothing on standard output."""
    want(r.returncode, status, "%r has the exit status, says %r;" % (r.args[1:], r.stderr))
    want(r.stdout, "", "the output of a command that failed")
    want(r.stderr.count("\n"), 1, "the lines of %r;" % r.stderr)
    for word in words:
        want(word in r.stderr, True, "%r has %r;" % (r.stderr, word))


def write(name, text, mode=0o600):
    path = os.path.join(s.dir.name, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def ledger(one):
    try:
        with open(os.path.join(s.dir.name, one + ".ledger")) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def program(one, wait="--kind approval --question 'go?'"):
    """A program that does something once, waits, and does another thing once. Gives the token of its wait."""
    text = ("#!/bin/sh\ncd %s\ntidemark step one --effect once -- sh -c 'echo one >> %s.ledger'\n"
            "tidemark wait go %s > /dev/null\n"
            "tidemark step two --effect once -- sh -c 'echo two >> %s.ledger'\necho done; echo aside >&2\n") % (s.dir.name, one, wait, one)
    r = s.run("exec", "--json", "--session", one, "--", write(one, text, stat.S_IRWXU))
    return json.loads(r.stdout.splitlines()[-1])["token"]


def chat(*answers):
    """A chat that gave the first of these answers. Gives its id."""
    script = write("chat-%d.json" % len(os.listdir(s.dir.name)), json.dumps({"turns": [{"text": a} for a in answers]}))
    return json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]


# ---- the same output ----

def own_command(text, server):
    """What is offered names the server in place of the store."""
    return text.replace("tidemark --server " + server, "tidemark").replace("tidemark --store " + s.store, "tidemark")


def offered(v):
    """Takes the commands away that are offered, and gives those through a server."""
    if isinstance(v, dict):
        mine = [v.pop("command")] if "command" in v and "action" in v else []
        return mine + [c for x in v.values() for c in offered(x)]
    return [c for x in v for c in offered(x)] if isinstance(v, list) else []


def same_json(local, through):
    for a, b in zip(local.splitlines(), through.splitlines()):
        x, y = json.loads(a), json.loads(b)
        here, there = offered(x), offered(y)
        want(json.dumps(y), json.dumps(x), "the JSON")
        want([c in (h, None) or "sessions send" in c for c, h in zip(there, here)], [True] * len(here), "offers %r" % there)
    want(len(through.splitlines()), len(local.splitlines()), "lines of JSON")


def without_offers(lines):
    return [l for l in lines if "tidemark " not in l]


def ageless(text):
    """A second may pass between the two."""
    return [re.sub(r" {2,}", "  ", re.sub(r"\d+ \w+ ago|now", "AGO", l)) for l in text.splitlines()]


def same(*args):
    for server in SERVERS:
        for form in ([], ["--json"]):
            local, through = s.run(*args, *form), remote(*args, *form, server=server)
            want(through.returncode, local.returncode, "the exit status of %r, which says %r," % (args, through.stderr))
            here, there = own_command(local.stdout, server), own_command(through.stdout, server)
            if form and here.startswith("{"):
                same_json(here, there)
            else:
                want(without_offers(ageless(there)), without_offers(ageless(here)), "the text of %r through %s" % (args, server))
            want(own_command(through.stderr, server), own_command(local.stderr, server), "standard error of %r" % (args,))


def same_text(*args):
    local = s.run(*args)
    want((local.returncode, bool(local.stdout)), (0, True), local.stderr)
    for server in SERVERS:
        want(remote(*args, server=server).stdout, local.stdout, "the text of %r" % (args,))


def prepare():
    s.run("sessions", "new", "--id", "log-one", "--title", "A log", "--agent", "someone", "--task-id", "t1")
    s.append("log-one", 5)
    program("waits")
    s.run("exec", "--session", "fails", "--", "sh", "-c", "echo hello; exit 3")
    s.run("exec", "--session", "fine", "--", "sh", "-c", "tidemark step a -- echo b; tidemark checkpoint mark; echo hello")
    s.run("sessions", "checkpoint", "log-one", "--description", "for later")
    s.run("sessions", "fork", "log-one", "--at", "3", "--id", "forked")
    s.run("sessions", "send", "--queue", "log-one", "a message\nof two lines")
    global talk
    talk = chat("An answer of the model.", "Another one.")
    s.run("tasks", "set", "t2", "--state", "REVIEW", "--title", "Two")


def it_prints_what_the_store_prints():
    prepare()
    same("sessions", "list")
    same("sessions", "list", "--ids")
    same("sessions", "list", "--status", "failed")
    same("sessions", "list", "--kind", "program", "--limit", "2")
    same("sessions", "list", "--agent", "someone")
    same("sessions", "list", "--task-id", "t1")
    same("sessions", "list", "--since", "1h")
    for one in ("log-one", "waits", "fails", "fine", "forked", talk):
        same("sessions", "show", one)
        same("why", one)
        same("sessions", "transcript", one)
        same("sessions", "timeline", one)
        same("sessions", "checkpoints", one)
        same("sessions", "checkpoints", one, "--ids")
        same("sessions", "verify", one)
        same("log", "show", one)
        same("state", one)
    same("why", "log")
    same("sessions", "queue", "log-one")
    same("sessions", "transcript", talk, "--full")
    for form in ("markdown", "html", "text"):
        same_text("sessions", "transcript", talk, "--format", form)
    same("sessions", "timeline", "waits", "--width", "120")
    same("sessions", "checkpoints", "fine", "--type", "user_checkpoint", "--limit", "1")
    same("sessions", "checkpoints", "log-one", "--clean", "--all")
    for one in ("fine", "log-one"):
        mark = s.run("sessions", "checkpoints", one, "--ids").stdout.split()[-1]
        same("sessions", "inspect", one, mark)
        same("sessions", "inspect", one, mark, "--memory")
        same("state", one, "--at", mark)
    same("sessions", "verify", "fine", "talk", "log-one")
    same("sessions", "verify", "--all")
    for more in (["--last", "2"], ["--from", "2", "--to", "4"], ["--kind", "run.*"], ["--kind", "memory.set"]):
        same("log", "show", "log-one", *more)
    same("log", "show", "forked", "--inherited")
    same("log", "show", "--all")
    same("log", "show", "--all", "--kind", "run.*", "--after", "10")
    same("log", "show", "fine", "--kind", "checkpoint")
    same_text("state", "log-one", "--at", "3", "--pretty")
    same("tasks", "list")
    same("tasks", "list", "--ids")
    same("tasks", "list", "--state", "REVIEW")
    same("tasks", "show", "t1")
    same("tasks", "show", "t2")
    same("store", "info")


def it_fails_as_the_store_does():
    same("why", "nobody")
    same("why", "f")
    same("sessions", "show", "nobody")
    same("sessions", "list", "--status", "nonsense")
    same("sessions", "queue", "log-one", "--withdraw", "nothing")
    same("cancel", "nobody")
    same("log", "show", "nobody")
    same("log", "show", "log-one", "--from", "5", "--to", "2")
    same("log", "show")
    same("state", "log-one", "--at", "999")
    same("sessions", "inspect", "log-one", "nothing")
    same("sessions", "checkpoints", "nobody")
    same("sessions", "transcript", "nobody")
    same("sessions", "timeline", "nobody")
    same("sessions", "verify", "nobody")
    same("sessions", "verify")
    same("sessions", "rollback", "log-one", "--to", "999")
    same("sessions", "fork", "nobody")
    same("sessions", "fork", "log-one", "--id", "forked")
    same("tasks", "show", "nothing")
    same("tasks", "set", "t1")
    same("tasks", "set", "t1", "--state", "not a state")
    same("token", "rotate", "log-one")
    same("resume", "nobody")
    same("sessions", "send", "nobody", "hello")


# ---- what changes something ----

def it_answers_and_resumes():
    token = program("r1")
    line_of(remote("resume", "r1", "--token", "nonsense", "--input", "yes"), TOKEN)
    r = remote("resume", "r1", "--token", token, "--input", "yes", "--reason", "looks good")
    want((r.returncode, r.stdout, r.stderr), (0, "done\n", "tidemark: approved: looks good\naside\n"), "the end of the program")
    want(ledger("r1"), ["one", "two"])
    log = s.run("log", "show", "r1").stdout
    want("looks good" in log, True, "the reason in the log")
    line_of(remote("resume", "r1", "--token", token, "--input", "yes"), TOKEN)
    line_of(remote("resume", "r1"), USAGE)


def it_parks_and_shows_the_token_once():
    text = ("#!/bin/sh\ntidemark wait a --kind approval --question 'a?' > /dev/null\n"
            "tidemark wait b --kind input --question 'b?' > /dev/null\n")
    s.run("exec", "--json", "--session", "two", "--", write("two", text, stat.S_IRWXU))
    r = remote("resume", "two", "--input", "yes", "--json", server="unix:" + UNIX)
    want(r.returncode, WAITS, r.stderr)
    parked = json.loads(r.stdout)
    want((parked["session_id"], parked["wait"]["name"], parked["token"][:3]), ("two", "b", "rt_"))
    r = remote("resume", "two", "--token", parked["token"], "--input", "words")
    want((r.returncode, r.stdout, r.stderr), (0, "", ""))


def the_token_of_a_wait_is_enough_to_answer_it():
    token, env = program("secret"), {"XDG_STATE_HOME": s.dir.name + "/empty"}
    line_of(remote("resume", "secret", "--input", "yes", env=env), IO, "a token is needed")
    line_of(remote("resume", "nobody", "--token", token, "--input", "yes", env=env), TOKEN)
    r = remote("resume", "secret", "--token", token, "--input", "yes", "--reason", "fine", env=env)
    want((r.returncode, r.stdout), (0, "session secret was answered, and continues on the server\n"), r.stderr)
    for _ in range(200):
        if last("secret")["status"] == "idle":
            break
        time.sleep(0.05)
    want((last("secret")["outcome"], ledger("secret")), ("completed", ["one", "two"]))


def it_says_how_a_run_ended():
    token = program("bad")
    with open(os.path.join(s.dir.name, "bad"), "a") as f:
        f.write("echo last words >&2; exit 5\n")
    r = remote("resume", "bad", "--token", token, "--input", "yes", "--accept-change")
    want((r.returncode, r.stdout), (5, "done\n"), r.stderr)
    lines = r.stderr.splitlines()
    want(lines[:2], ["aside", "last words"])
    want("ended with exit status 5: `tidemark --server %s resume bad` resumes it" % HTTP in lines[2], True, r.stderr)
    r = remote("resume", "bad", "--json")
    want((r.returncode, json.loads(r.stdout)["status"]), (5, "idle"))
    error = json.loads(r.stderr.splitlines()[-1])
    want((error["error"], error["detail"]["session_id"]), ("FAILED", "bad"))
    want(all(h["command"].startswith("tidemark --server " + HTTP + " ") for h in error["hints"]), True, error["hints"])


def it_answers_a_chat():
    script = write("asks.json", json.dumps({"turns": [{"text": "first"}, {"calls": [{"name": "bash", "args": {"command": "echo hi"}}]}, {"text": "all done"}]}))
    one = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    r = remote("sessions", "send", one, "run it", "--json", server="unix:" + UNIX)
    want(r.returncode, WAITS, r.stderr)
    token = json.loads(r.stdout)["token"]
    r = remote("sessions", "resume", one, "--token", "-", "--input", "yes", text=token + "\n")
    want((r.returncode, r.stdout), (0, "all done\n"), r.stderr)


def it_runs_a_graph():
    graph = write("g.json", json.dumps({
        "tidemark_graph": 1, "id": "g", "entry": "ask", "edges": [{"from": "ask", "to": "out"}],
        "nodes": [{"id": "ask", "type": "human_input", "kind": "approval", "question": "go on?", "outputs": ["approved"]},
                  {"id": "out", "type": "lua", "inputs": ["approved"], "outputs": ["x"], "code": "return {x = 1}"}]}))
    r = s.run("run", graph, "--session", "g1", "--no-input")
    if r.returncode != WAITS:
        raise AssertionError(r.stderr)
    r = remote("resume", "g1", "--input", "yes")
    want((r.returncode, r.stdout), (0, "session g1 has completed\n"), r.stderr)


def the_beginning_of_an_id_is_enough():
    for one in ("begins-1", "begins-2", "gone-1"):
        s.session(session_id=one)
    for server in SERVERS:
        want(json.loads(remote("sessions", "show", "gone", "--json", server=server).stdout)["id"], "gone-1")
        for args in (("log", "show", "gone"), ("sessions", "checkpoints", "gone", "--json"), ("state", "gone")):
            want(remote(*args, server=server).stdout, s.run(*args).stdout, args)
        line_of(remote("sessions", "show", "begins", server=server), NOT_FOUND, "fits two sessions", "begins-1", "begins-2")
        line_of(remote("sessions", "show", "begone", server=server), NOT_FOUND, "no session 'begone'")
        want(remote("sessions", "send", "--queue", "gone", "hello", server=server).returncode, 0)
    want(len(s.run("sessions", "queue", "gone-1").stdout.splitlines()), 2)
    want(s.api("DELETE", "/sessions/gone-1").status, 200)


def what_is_too_big_is_refused():
    """The server refuses by the head, before all of the body was sent."""
    big = write("big.txt", "x" * (3 << 20))
    line_of(remote("resume", "g1", "--set", "k=@" + big), USAGE, "too big")
    line_of(remote("resume", "g1", "--set", "k=@" + big, server="unix:" + UNIX), USAGE, "too big")


def ctrl_c_ends_the_command_alone():
    text = "#!/bin/sh\ntidemark wait a --kind approval --question 'a?' > /dev/null\nsleep 30\n"
    s.run("exec", "--session", "long", "--", write("long", text, stat.S_IRWXU))
    p = subprocess.Popen([BIN, "--server", HTTP, "resume", "long", "--input", "yes"], env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(200):
        if last("long")["status"] == "running":
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    want((p.wait(10), p.stdout.read()), (130, ""))
    want("cancel long" in p.stderr.read(), True)
    want(last("long")["status"], "running")
    want(remote("cancel", "long").returncode, 0)


def it_sends():
    chat2 = chat("first", "second\nline")
    r = remote("sessions", "send", chat2, "more")
    want((r.returncode, r.stdout, r.stderr), (0, "second\nline\n", ""))
    s.run("sessions", "new", "--id", "log-two")  # nothing runs there: what is queued stays
    r = remote("sessions", "send", "--queue", "log-two", "later")
    want(r.stdout, "queued for session log-two: seq 2\n", r.stderr)
    one = json.loads(remote("sessions", "queue", "log-two", "--json").stdout)
    want(one["content"], "later")
    r = remote("sessions", "queue", "log-two", "--withdraw", one["queue_id"])
    want(r.stdout, "withdrawn from session log-two: %s\n" % one["queue_id"], r.stderr)
    want(remote("sessions", "queue", "log-two").stdout, "")


def it_cancels():
    program("c1")
    r = remote("cancel", "c1", "--reason", "no need", "--json", server="unix:" + UNIX)
    want(json.loads(r.stdout), {"session_id": "c1", "cancelled": "done"})
    want(remote("cancel", "c1").stdout, "session c1 had nothing to cancel: it is unchanged\n")
    want("no need" in s.run("log", "show", "c1").stdout, True)


def last(one):
    return json.loads(s.run("sessions", "show", one, "--json").stdout)


def it_changes_what_the_store_changes():
    s.run("sessions", "new", "--id", "changed")
    s.append("changed", 4)
    mark = remote("sessions", "checkpoint", "changed", "--description", "here").stdout.strip()
    want(s.run("sessions", "checkpoints", "changed", "--ids").stdout.split(), [mark])
    want(remote("sessions", "rollback", "changed", "--to", "3", "--reason", "back", "--json").stdout,
         '{"session_id":"changed","to_seq":3,"seq":%d}\n' % last("changed")["last_seq"])
    want(remote("sessions", "rollback", "changed", "--to", "4").stdout,
         "rolled back to 4; the log is now at %d\n" % last("changed")["last_seq"])
    want(json.loads(remote("sessions", "fork", "changed", "--at", "2", "--id", "fork-of", "--title", "F", "--json").stdout),
         {"session_id": "fork-of", "parent": {"session_id": "changed", "seq": 2}})
    want(last("fork-of")["title"], "F")
    want(remote("sessions", "fork", "changed").stdout.strip() in s.run("sessions", "list", "--ids").stdout.split(), True)
    want(remote("sessions", "checkpoint", "delete", "changed", mark).stdout, "1 checkpoint deleted\n")
    for _ in range(3):
        want(remote("sessions", "checkpoint", "changed").returncode, 0)
    want(json.loads(remote("sessions", "prune", "changed", "--keep", "1", "--json").stdout), {"session_id": "changed", "deleted": 2})
    want(remote("tasks", "set", "t9", "--state", "REVIEW", "--title", "Nine").stdout, s.run("tasks", "show", "t9").stdout)
    program("rotated")
    token = remote("token", "rotate", "rotated").stdout.strip()
    want(remote("resume", "rotated", "--token", token, "--input", "yes").returncode, 0)
    by = [json.loads(l).get("by") for l in s.run("log", "show", "changed").stdout.splitlines() if "session.rolled_back" in l]
    want(len(set(by)), 1, "who did it")


def it_trusts():
    env = {"TIDEMARK_ORIGIN_KEY": "the key of somebody else, elsewhere"}
    other = s.dir.name + "/other.db"
    command("--store", other, "exec", "--session", "foreign", "--", "sh", "-c", "tidemark wait go --question 'go?'", env=env)
    path = write("foreign.jsonl", command("--store", other, "sessions", "export", "foreign", env=env).stdout)
    want(s.run("sessions", "import", path).returncode, 0)
    same("sessions", "trust", "foreign", "--show")
    line_of(remote("resume", "foreign"), 11)
    r = remote("sessions", "trust", "foreign", "--yes", "--json")
    want((r.returncode, json.loads(r.stdout)["trusted_now"]), (0, True), r.stderr)


# ---- once ----

class Between:
    """Stands between a command and the server: passes requests on, and does something when a POST has been sent and answered."""

    def __init__(self, then):
        self.then, self.posts = then, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def request(self, c):
        text = b""
        while b"\r\n\r\n" not in text:
            piece = c.recv(65536)
            if not piece:
                return None
            text += piece
        head, body = text.split(b"\r\n\r\n", 1)
        length = int(next((l.split(b":")[1] for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")), b"0"))
        while len(body) < length:
            body += c.recv(65536)
        head = re.sub(rb"Host: [^\r]*", b"Host: 127.0.0.1:%d" % s.port, head)
        return head + b"\r\nConnection: close\r\n\r\n" + body

    def serve(self, c):
        with c:
            request = self.request(c)
            if not request:
                return
            is_post = request.startswith(b"POST")
            self.posts += is_post
            try:
                with socket.create_connection(("127.0.0.1", s.port), timeout=30) as up:
                    up.sendall(request)
                    answer = b""
                    while True:
                        piece = up.recv(65536)
                        if not piece:
                            break
                        answer += piece
            except OSError:
                return
            if is_post and self.then(self.posts):
                return  # the answer is lost
            try:
                c.sendall(answer)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def restart(n):
    if n > 1:
        return False
    s.kill()
    s.start()
    return True


def a_request_whose_answer_was_lost_is_carried_out_once():
    s.run("sessions", "new", "--id", "once")
    b = Between(lambda n: n == 1)
    want(remote("sessions", "send", "--queue", "once", "hello", server=b.url).returncode, 0)
    want(b.posts, 2)
    b.close()
    want(len(s.run("sessions", "queue", "once").stdout.splitlines()), 1)


def a_request_is_carried_out_once_though_the_server_was_killed():
    for i, (args, count) in enumerate([
            (("sessions", "send", "--queue", "%s", "hello"), "queue.added"),
            (("sessions", "checkpoint", "%s"), "checkpoint"),
            (("sessions", "rollback", "%s", "--to", "2"), "session.rolled_back")]):
        one = "killed-%d" % i
        s.run("sessions", "new", "--id", one)
        s.append(one, 3)
        b = Between(restart)
        r = remote(*[a.replace("%s", one) for a in args], server=b.url)
        want((r.returncode, b.posts), (0, 2), "%r says %r;" % (args, r.stderr))
        b.close()
        want([json.loads(l)["kind"] for l in s.run("log", "show", one).stdout.splitlines()].count(count), 1, count)


def an_answer_is_given_once_though_the_server_was_killed():
    token = program("killed-wait")
    b = Between(restart)
    r = remote("resume", "killed-wait", "--token", token, "--input", "yes", server=b.url)
    want((r.returncode, b.posts), (0, 2), r.stderr)
    b.close()
    want(ledger("killed-wait"), ["one", "two"])
    want(s.run("log", "show", "killed-wait", "--kind", "run.resumed").stdout.count("\n"), 1)


def a_run_is_waited_for_though_the_server_was_killed():
    text = ("#!/bin/sh\ncd %s\ntidemark wait a --kind approval --question 'a?' > /dev/null\n"
            "tidemark step slow --effect once -- sh -c 'echo slow >> outlives.ledger; sleep 3'\necho the end\n") % s.dir.name
    s.run("exec", "--session", "outlives", "--", write("outlives", text, stat.S_IRWXU))
    p = subprocess.Popen([BIN, "--server", HTTP, "resume", "outlives", "--input", "yes"], env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(400):
        if ledger("outlives"):
            break
        time.sleep(0.05)
    s.kill()
    time.sleep(0.5)
    s.start()
    out, said = p.communicate(timeout=60)
    want((p.returncode, out), (0, "the end\n"), said)
    want(ledger("outlives"), ["slow"])
    want(s.run("log", "show", "outlives", "--kind", "run.resumed").stdout.count("\n"), 1)


def a_server_that_stays_away_is_given_up():
    s.run("sessions", "new", "--id", "away")
    b = Between(lambda n: True)
    r = remote("sessions", "send", "--queue", "away", "hello", server=b.url, timeout=60)
    b.close()
    line_of(r, IO, "it is not known whether the request was carried out")
    want(b.posts > 3, True, "tries")
    want(len(s.run("sessions", "queue", "away").stdout.splitlines()), 1)


# ---- following ----

def a_log_is_followed_across_a_restart():
    s.run("sessions", "new", "--id", "followed")
    s.append("followed", 2)
    p = subprocess.Popen([BIN, "--server", HTTP, "log", "show", "--follow", "followed", "--to", "9"], env=s.env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    got = [p.stdout.readline() for _ in range(3)]
    s.append("followed", 3)
    got += [p.stdout.readline() for _ in range(3)]
    s.kill()
    s.start()
    s.append("followed", 3)
    got += p.stdout.readlines()
    want(p.wait(20), 0, p.stderr.read())
    want("".join(got), s.run("log", "show", "followed").stdout)


def a_timeline_is_followed_until_the_end():
    program("drawn")
    for form in ([], ["--json"]):
        p = subprocess.Popen([BIN, "--server", HTTP, "sessions", "timeline", "drawn", "--follow", *form], env=s.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        first = p.stdout.readline()
        if not form:
            want(remote("resume", "drawn", "--input", "yes").returncode, 0)
        rest, said = p.communicate(timeout=30)
        want((p.returncode, said), (0, ""))
        final = s.run("sessions", "timeline", "drawn", *form).stdout
        want((first + rest).endswith(final), True, "the last drawing, not %r" % (first + rest)[-300:])
        if not form:
            want("approval" in (first + rest)[:-len(final)], True, "an earlier drawing")


def all_logs_are_followed():
    p = subprocess.Popen([BIN, "--server", HTTP, "log", "show", "--all", "--follow", "--kind", "memory.set"], env=s.env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    before = s.run("log", "show", "--all", "--kind", "memory.set").stdout.splitlines()
    want([p.stdout.readline().rstrip("\n") for _ in before], before)
    s.run("sessions", "new", "--id", "newer")
    s.append("newer", 2)
    got = [json.loads(p.stdout.readline()) for _ in range(2)]
    want([(e["session_id"], e["seq"]) for e in got], [("newer", 2), ("newer", 3)])
    p.send_signal(signal.SIGINT)
    want((p.wait(10), p.stderr.read()), (0, ""))


def a_follower_that_is_interrupted_ends_well():
    p = subprocess.Popen([BIN, "--server", HTTP, "log", "show", "-f", "log-one"], env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.readline()
    local = subprocess.Popen([BIN, "--store", s.store, "log", "show", "-f", "log-one"], env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    local.stdout.readline()
    time.sleep(0.3)
    for one in (p, local):
        one.send_signal(signal.SIGINT)
    want((p.wait(10), p.stderr.read()), (local.wait(10), local.stderr.read()))
    gone = subprocess.Popen([BIN, "--server", HTTP, "log", "show", "-f", "fork-of"], env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    gone.stdout.readline()
    want(s.run("sessions", "delete", "fork-of").returncode, 0)
    want(gone.wait(10), NOT_FOUND)
    want("was deleted" in gone.stderr.read(), True)


# ---- what is refused ----

def other_commands_are_refused():
    for args in (["run", "x.json"], ["exec", "--", "true"], ["chat"], ["serve"], ["sessions", "new"], ["store", "check"], ["doctor"],
                 ["log", "append", "x", "--kind", "note"], ["sessions", "delete", "log-one"], ["recover"], ["config", "list"]):
        line_of(remote(*args), USAGE, "does not work through a server", "--store")
    for args in (["resume", "waits", "--dry-run"], ["resume", "waits", "--provider", "openai"], ["sessions", "checkpoint", "waits", "--type", "turn"]):
        line_of(remote(*args), USAGE, "works on a store only")
    line_of(command("--server", HTTP, "--store", s.store, "why", "waits"), USAGE, "--server and --store")
    want(remote("run", "--help").returncode, 0)


def the_environment_names_a_server():
    env = {"TIDEMARK_SERVER": HTTP}
    want(command("why", "waits", env=env).stdout, remote("why", "waits").stdout.replace(" --server " + HTTP, ""))
    want(command("--store", s.store, "why", "waits", env=env).stdout, s.run("why", "waits").stdout)
    for args in (["version"], ["config", "list"], ["schema"], ["completion", "bash"]):
        want(command(*args, env=env).returncode, 0, args)
    line_of(command("sessions", "new", env=env), USAGE, "unset TIDEMARK_SERVER")
    line_of(command("exec", "--", "true", env=env), USAGE, "unset TIDEMARK_SERVER")
    want(command("--store", s.store, "exec", "--session", "inner", "--", "sh", "-c", "tidemark step a -- echo b", env=env).returncode, 0)


def addresses_that_are_none_are_refused():
    for url, word in (("nonsense", "not the address of a server"), ("", "not the address of a server"), ("http://", "not the address of a server"), ("unix:", "not the address of a server"),
                      ("http://127.0.0.1:0", "not the address of a server"), ("http://127.0.0.1:99999", "not the address of a server"),
                      ("http://127.0.0.1:80/path", "not the address of a server"), ("http://user@127.0.0.1", "not the address of a server"),
                      ("ftp://127.0.0.1", "not the address of a server"), ("http://[::1", "not the address of a server")):
        line_of(command("--server", url, "why", "x"), USAGE, word)
    for host in ("192.0.2.1", "example.org", "0.0.0.0", "127.0.0.1.example.org", "[2001:db8::1]", "[::ffff:192.0.2.1]"):
        line_of(command("--server", "http://%s:7007" % host, "why", "x"), IO, "is another machine", "https://")
    line_of(command("--server", HTTP, "--pin", "sha256//" + "A" * 43 + "=", "why", "x"), USAGE, "--pin")


def nobody_there_is_said_at_once():
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line_of(command("--server", "http://127.0.0.1:%d" % port, "why", "x"), IO, "no server answers there")
    line_of(command("--server", "unix:" + s.dir.name + "/nothing.sock", "why", "x"), IO, "no server answers there")
    line_of(command("--server", "unix:/" + "x" * 200, "why", "x"), USAGE, "path of a socket")
    want(time.monotonic() - began < 3, True, "the time")


def a_wrong_token_is_refused():
    line_of(remote("why", "waits", env={"TIDEMARK_TOKEN": "tide_nothing"}), IO, "unknown, expired or revoked", "TIDEMARK_TOKEN")
    line_of(remote("why", "waits", env={"TIDEMARK_TOKEN": "a b"}), USAGE, "TIDEMARK_TOKEN")
    line_of(remote("why", "waits", env={"XDG_STATE_HOME": s.dir.name + "/empty"}), IO, "a token is needed")
    token = json.loads(s.run("access", "create", "reader", "--scopes", "read", "--json").stdout)["token"]
    env = {"TIDEMARK_TOKEN": token, "XDG_STATE_HOME": s.dir.name + "/empty"}
    want(remote("why", "waits", env=env).stdout, remote("why", "waits").stdout)
    line_of(remote("cancel", "waits", env=env), IO, "lacks the scope write")
    want(remote("why", "waits", env=env, server="http://localhost:%d" % s.port).returncode, 0)


def another_user_gets_no_token():
    if os.geteuid() != 0:
        return  # there is no other user to be
    code = ("import os, socket\nos.setuid(65534)\nl = socket.create_server(('127.0.0.1', 0))\nprint(l.getsockname()[1], flush=True)\n"
            "c = l.accept()[0]\nprint(repr(c.recv(65536)), flush=True)\n"
            "c.sendall(b'HTTP/1.1 401 No\\r\\nContent-Length: 0\\r\\n\\r\\n')\n")
    p = subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, text=True, cwd="/")
    url = "http://127.0.0.1:%s" % p.stdout.readline().strip()
    line_of(remote("why", "x", server=url), IO)
    got = p.stdout.readline()
    p.wait(10)
    want(("GET" in got, "Authorization" in got), (True, False), got)


# ---- what is no server ----

class Fake:
    """Answers each request with the same bytes, then goes on with what `more` gives."""

    def __init__(self, text, more=None, family=None):
        self.text, self.more, self.asked = text, more, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            with c:
                self.asked += 1
                try:
                    c.recv(65536)
                    c.sendall(self.text)
                    for piece in self.more() if self.more else ():
                        c.sendall(piece)
                except OSError:
                    pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)  # else it could take what comes to the next one, whose descriptor is the same
        self.listener.close()


def forever(piece):
    def give():
        while True:
            yield piece
    return give


def what_is_no_server_is_refused():
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    for text, more, word in (
            (b"SSH-2.0-OpenSSH_9.2\r\n", None, "speaks no HTTP"),
            (b"HTTP/1.1 banana\r\n\r\n", None, "speaks no HTTP"),
            (b"HTTP/1.1 200 OK\r\nno field\r\n\r\n", None, "speaks no HTTP"),
            (b"HTTP/1.1 101 Switching\r\n\r\n", None, "speaks no HTTP"),
            (ok + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", None, "speaks no HTTP"),
            (ok + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", None, "speaks no HTTP"),
            (ok + b"Content-Length: -2\r\n\r\n{}", None, "speaks no HTTP"),
            (ok + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None, "speaks no HTTP"),
            (ok + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx\r\n", None, "speaks no HTTP"),
            (ok + b"Content-Length: 999999999999\r\n\r\n", None, "more than"),
            (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", None, "is not Tidemark"),
            (ok + b"Content-Length: 4\r\n\r\n{\"a\"", None, "is not Tidemark"),
            (ok + b"Content-Length: 2\r\n\r\n[]", None, "another version"),
            (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n", None, "is not Tidemark"),
            (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", None, "is not Tidemark"),
            (b"HTTP/1.1 200 OK\r\n", forever(b"X-Field: 1\r\n" * 500), "more than"),
            (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, None, "speaks no HTTP"),
            (b"", forever(b"x" * 65536), "speaks no HTTP"),
            (ok + b"\r\n", forever(b" " * (1 << 20)), "more than"),
            (ok + b"Transfer-Encoding: chunked\r\n\r\n", forever(b"10000\r\n" + b" " * 65536 + b"\r\n"), "more than")):
        f = Fake(text, more)
        line_of(remote("why", "x", server=f.url, timeout=50), IO, word)
        want(f.asked, 1, "it is asked once, says %r," % text[:60])
        f.close()
    f = Fake(ok + b"Content-Length: 100\r\n\r\n{")
    line_of(remote("why", "x", server=f.url, timeout=50), IO, "in the middle of the answer")
    want(f.asked > 3, True, "a connection that broke is tried again")
    f.close()


def a_server_that_lies_reaches_no_shell_and_no_terminal():
    """Ids, commands that are offered, and pages that repeat: what comes from a server is not believed."""
    evil = "x; touch %s/owned #" % s.dir.name
    row = {"session_id": "good", "id": "good", "kind": "program", "title": "\x1b]0;owned\x07", "status": "waiting", "outcome": "none",
           "why": "\x1b[2Jgone", "next": [], "last_seq": 1, "first_seq": 1, "since": "2026-01-01T00:00:00.000Z", "next_cursor": None}

    def lies(*args, **more):
        f = Fake(answer(dict(row, **more)))
        r = remote(*args, server=f.url, timeout=50)
        f.close()
        return r

    for bad in (evil, "$(touch owned)", "\x1b]0;owned\x07", "a\nb", "-rf", "", "x" * 65, None, 7, ["a"]):
        line_of(lies("why", "good", session_id=bad), IO, "another version")
        line_of(lies("sessions", "list", "--ids", sessions=[dict(row, session_id=bad)]), IO, "another version")
    line_of(lies("cancel", "good", session_id=evil, cancelled="done"), IO, "another version")
    del row["session_id"]
    line_of(lies("why", "good"), IO, "another version")
    row["session_id"] = "good"
    for offer in ({"session_id": evil, "arguments": {}}, {"session_id": "good", "arguments": {"value": evil}}, {"session_id": "good", "arguments": {"pid": [evil]}},
                  {"session_id": "good", "arguments": {"key": {evil: evil}}}, {"session_id": "good", "arguments": {"now": True, evil: True}},
                  {"session_id": "good", "arguments": {"retry": [evil], "checkpoint": evil, "set": {evil: 1}, "map": {evil: evil}, "text": evil, "to": [evil]}}):
        for action in ("resume", "repeat") if "retry" in offer["arguments"] else ("why",):
            r = lies("why", "good", next=[dict(offer, action=action)])
            offered = "\n".join(l for l in r.stdout.splitlines() if "tidemark " in l)
            hint = Fake(answer({"error": {"error": "WRONG_STATE", "message": "no", "hints": [dict(offer, action=action)]}}, b"409 Conflict"))
            said = remote("cancel", "good", server=hint.url, timeout=50)
            hint.close()
            want((r.returncode, said.returncode), (0, USAGE), r.stderr + said.stderr)
            offered += "\n" + "\n".join(re.findall("`([^`]*)`", said.stderr))
            subprocess.run(["sh", "-c", offered.replace("tidemark ", "true ")], cwd=s.dir.name, capture_output=True)
            want(os.path.exists(s.dir.name + "/owned"), False, offered)
    page = answer({"events": [{"seq": 1, "ts": "2026-01-01T00:00:00.000Z", "kind": "note"}], "last_seq": 1, **row})
    f = Fake(page)
    r = remote("log", "show", "good", server=f.url, timeout=50)
    want((r.returncode, "repeats a page of the log" in r.stderr), (IO, True), r.stderr)
    f.close()


def answer(v, status=b"200 OK"):
    body = json.dumps(v).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def completion_carries_out_nothing():
    """What bash completes to is words, whatever they look like."""
    names = write("tidemark", "#!/bin/sh\necho 'good$(touch %s/owned)' 'go`touch %s/owned`' fine finer '*'\n" % (s.dir.name, s.dir.name), 0o700)
    script = write("completion.bash", command("completion", "bash").stdout)
    said = subprocess.run(["bash", "-c", ". %s; PATH=%s:$PATH; COMP_WORDS=(tidemark why ''); COMP_CWORD=2; _tidemark; printf '%%s\\n' \"${COMPREPLY[@]}\"" % (script, os.path.dirname(names))],
                          capture_output=True, text=True, cwd=s.dir.name)
    want((said.stdout.split(), os.path.exists(s.dir.name + "/owned")), (["fine", "finer"], False), said.stderr)


# ---- TLS ----

class Tls:
    """A server with a certificate of its own."""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="tidemark-tls-")
        self.store = os.path.join(self.dir.name, "s.db")
        self.env = dict(s.env, XDG_STATE_HOME=self.dir.name + "/state", XDG_CONFIG_HOME=self.dir.name + "/config", XDG_RUNTIME_DIR=self.dir.name)
        subprocess.run([BIN, "--store", self.store, "sessions", "new", "--id", "a"], env=self.env, check=True, capture_output=True)
        self.process = subprocess.Popen([BIN, "--store", self.store, "serve", "--tls", "--listen", "127.0.0.1:0", "--unix", "off"],
                                        env=self.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        lines = [self.process.stderr.readline() for _ in range(2)]
        self.port = int(re.search(r"https://127\.0\.0\.1:(\d+)", lines[0]).group(1))
        self.url = "https://127.0.0.1:%d" % self.port
        self.pin = re.search(r"--pin (sha256//[^;\s]+)", lines[1]).group(1)
        with open(self.dir.name + "/state/tidemark/server.token") as f:
            self.token = f.read().strip()
        self.elsewhere = dict(self.env, XDG_STATE_HOME=self.dir.name + "/empty", TIDEMARK_TOKEN=self.token)

    def done(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.process.stderr.close()
        self.dir.cleanup()


def tls_is_pinned():
    t = Tls()
    wrong = "sha256//" + "A" * 43 + "="
    local = subprocess.run([BIN, "--store", t.store, "sessions", "list", "--ids"], env=t.env, capture_output=True, text=True).stdout
    for r in (command("--server", t.url, "sessions", "list", "--ids", env=t.env),
              command("--server", "https://localhost:%d/" % t.port, "sessions", "list", "--ids", env=t.env),
              command("--server", t.url, "--pin", t.pin, "sessions", "list", "--ids", env=t.elsewhere),
              command("--server", t.url, "sessions", "list", "--ids", env=dict(t.elsewhere, TIDEMARK_SERVER_PIN=t.pin))):
        want((r.returncode, r.stdout), (0, local), r.stderr)
    r = command("--server", t.url, "--pin", t.pin, "sessions", "queue", "a", env=t.elsewhere)
    want((r.returncode, r.stdout), (0, ""), r.stderr)
    r = command("--server", t.url, "sessions", "send", "--queue", "a", "x" * 100000, env=t.env)
    want(r.returncode, 0, r.stderr)
    line_of(command("--server", t.url, "--pin", wrong, "why", "a", env=t.env), IO, "another key than the one that is pinned", t.pin)
    line_of(command("--server", t.url, "why", "a", env=t.elsewhere), IO, "is not to be trusted", "pin")
    line_of(command("--server", t.url, "--pin", "nonsense", "why", "a", env=t.env), USAGE, "is not a pin")
    line_of(command("--server", t.url.replace("https", "http"), "why", "a", env=t.env), IO)
    line_of(command("--server", HTTP.replace("http", "https"), "why", "a", env=t.env), IO)
    t.done()


def nothing_is_sent_to_a_server_that_did_not_prove_itself():
    t = Tls()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(t.dir.name + "/state/tidemark/server-tls.pem")
    got = []

    def serve(listener):
        while True:
            try:
                c, _ = listener.accept()
                with context.wrap_socket(c, server_side=True) as tls:
                    got.append(tls.recv(65536))
            except OSError:
                if listener.fileno() < 0:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        url = "https://127.0.0.1:%d" % listener.getsockname()[1]
        line_of(command("--server", url, "--pin", "sha256//" + "B" * 43 + "=", "why", "a", env=t.elsewhere), IO)
        line_of(command("--server", url, "why", "a", env=t.elsewhere), IO)
        want(b"".join(got), b"")
    t.done()


case("a command prints through a server what it prints on the store", it_prints_what_the_store_prints)
case("a command fails through a server as it fails on the store", it_fails_as_the_store_does)
case("an answer resumes a program, whose end is shown", it_answers_and_resumes)
case("a run that parks shows its token once", it_parks_and_shows_the_token_once)
case("a run that fails says so, with its exit status", it_says_how_a_run_ended)
case("the token of a wait is enough to answer it", the_token_of_a_wait_is_enough_to_answer_it)
case("a chat is answered", it_answers_a_chat)
case("a graph is resumed", it_runs_a_graph)
case("the beginning of an id is enough", the_beginning_of_an_id_is_enough)
case("what is too big for a request is refused", what_is_too_big_is_refused)
case("Ctrl-C ends the command and not the run", ctrl_c_ends_the_command_alone)
case("a message is sent, queued and withdrawn", it_sends)
case("a run is cancelled", it_cancels)
case("checkpoints, rollbacks, forks, tasks and tokens are made", it_changes_what_the_store_changes)
case("a session from elsewhere is shown and trusted", it_trusts)
case("a request whose answer was lost is carried out once", a_request_whose_answer_was_lost_is_carried_out_once)
case("a request is carried out once though the server was killed", a_request_is_carried_out_once_though_the_server_was_killed)
case("an answer is given once though the server was killed", an_answer_is_given_once_though_the_server_was_killed)
case("a run is waited for though the server was killed", a_run_is_waited_for_though_the_server_was_killed)
case("a server that stays away is given up", a_server_that_stays_away_is_given_up)
case("a log is followed across a restart", a_log_is_followed_across_a_restart)
case("a timeline is followed until the end", a_timeline_is_followed_until_the_end)
case("the logs of all sessions are followed", all_logs_are_followed)
case("following ends as on a store", a_follower_that_is_interrupted_ends_well)
case("other commands and options are refused", other_commands_are_refused)
case("the environment names a server", the_environment_names_a_server)
case("addresses that are none are refused", addresses_that_are_none_are_refused)
case("that nobody is there is said at once", nobody_there_is_said_at_once)
case("a wrong token is refused", a_wrong_token_is_refused)
case("a process of another user gets no token", another_user_gets_no_token)
case("what is no server is refused", what_is_no_server_is_refused)
case("a server that lies reaches no shell and no terminal", a_server_that_lies_reaches_no_shell_and_no_terminal)
case("the completion of bash carries out nothing", completion_carries_out_nothing)
case("TLS is pinned", tls_is_pinned)
case("nothing is sent to a server that did not prove itself", nothing_is_sent_to_a_server_that_did_not_prove_itself)
s.done()
end()
