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


def without_offers(text):
    return [l for l in text.splitlines() if "tidemark " not in l]


def same(*args, ages=True):
    for server in SERVERS:
        for form in ([], ["--json"]):
            for _ in range(5):  # a second may pass between the two
                local, through = s.run(*args, *form), remote(*args, *form, server=server)
                want(through.returncode, local.returncode, "the exit status of %r, which says %r," % (args, through.stderr))
                here, there = own_command(local.stdout, server), own_command(through.stdout, server)
                if form and here.startswith("{"):
                    same_json(here, there)
                    break
                if without_offers(here) == without_offers(there):
                    break
                time.sleep(0.3)
            else:
                want(there, here, "the text of %r through %s" % (args, server))
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
    for more in (["--last", "2"], ["--from", "2", "--to", "4"], ["--kind", "run.*"], ["--kind", "memory.set"]):
        same("log", "show", "log-one", *more)
    same("log", "show", "forked", "--inherited")
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


def it_sends():
    chat2 = chat("first", "second\nline")
    r = remote("sessions", "send", chat2, "more")
    want((r.returncode, r.stdout, r.stderr), (0, "second\nline\n", ""))
    r = remote("sessions", "send", "--queue", chat2, "later")
    want(r.stdout, "queued for session %s: seq %d\n" % (chat2, json.loads(s.run("sessions", "show", chat2, "--json").stdout)["last_seq"]))
    one = json.loads(remote("sessions", "queue", chat2, "--json").stdout)
    want(one["content"], "later")
    r = remote("sessions", "queue", chat2, "--withdraw", one["queue_id"])
    want(r.stdout, "withdrawn from session %s: %s\n" % (chat2, one["queue_id"]))
    want(remote("sessions", "queue", chat2).stdout, "")


def it_cancels():
    program("c1")
    r = remote("cancel", "c1", "--reason", "no need", "--json", server="unix:" + UNIX)
    want(json.loads(r.stdout), {"session_id": "c1", "cancelled": "done"})
    want(remote("cancel", "c1").stdout, "session c1 had nothing to cancel: it is unchanged\n")
    want("no need" in s.run("log", "show", "c1").stdout, True)


case("a command prints through a server what it prints on the store", it_prints_what_the_store_prints)
case("a command fails through a server as it fails on the store", it_fails_as_the_store_does)
case("an answer resumes a program, whose end is shown", it_answers_and_resumes)
case("a run that parks shows its token once", it_parks_and_shows_the_token_once)
case("a message is sent, queued and withdrawn", it_sends)
case("a run is cancelled", it_cancels)
s.done()
end()
