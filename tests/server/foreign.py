# SPDX-License-Identifier: Apache-2.0
# What came from elsewhere is data for the server as well: it is shown, and nothing of it runs before a person has trusted it, however
# it is asked for and whatever goes on by itself.
import json
import os
import stat
import subprocess
import time

from serving import BIN, Server, case, end, want

s = Server("--auto-resume", "all")
elsewhere = os.path.join(s.dir.name, "elsewhere.db")
LINES = {"Content-Type": "application/x-ndjson"}


def path(name):
    return os.path.join(s.dir.name, name)


def write(name, text, mode=0o600):
    with open(path(name), "w") as f:
        f.write(text)
    os.chmod(path(name), mode)
    return path(name)


def ran():
    try:
        with open(path("ran")) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def until(is_so, seconds=30):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s; ran: %r" % (seconds, ran()))
        time.sleep(0.02)


def command(store, *args, **more):
    env = dict(s.env, PATH=os.path.dirname(BIN) + ":" + os.environ["PATH"])
    return subprocess.run([BIN, "--store", store, *args], env=env, capture_output=True, text=True, **more)


def come_from_elsewhere(*ids):
    for one in ids:
        exported = subprocess.run([BIN, "--store", elsewhere, "sessions", "export", one], env=s.env, capture_output=True).stdout
        want(s.api("POST", "/import", raw=exported, fields=LINES).status, 201, one)


def killed(store, one, program, begun):
    """A run of this program that was killed when it said so."""
    env = dict(s.env, PATH=os.path.dirname(BIN) + ":" + os.environ["PATH"])
    p = subprocess.Popen([BIN, "--store", store, "exec", "--session", one, "--", program], env=env, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    until(lambda: begun in ran())
    p.kill()
    p.wait()


def info(one):
    return s.api("GET", "/sessions/" + one).json


def refused(method, where, body=None):
    a = s.api(method, where, body)
    want((a.status, a.json["error"]["error"]), (403, "UNTRUSTED"), "%s %s %r: %r" % (method, where, body, a.bytes))
    want([x["action"] for x in a.json["error"]["hints"]], ["trust"], where)


def program(name, text):
    return write(name, "#!/bin/sh\n" + text, stat.S_IRWXU)


def what_is_due_or_was_cut_does_not_go_on_by_itself():
    """Sessions of our own that become due later, and were cut later, show that the server has looked."""
    nap = program("nap", "tidemark sleep nap $1\necho woke-$2 >>%s\n" % path("ran"))
    slow = lambda who: program("slow-" + who, "echo begun-%s >>%s\n[ -e %s ] && { echo resumed-%s >>%s; exit 0; }\nexec sleep 60\n"
                               % (who, path("ran"), path("go"), who, path("ran")))
    want(command(elsewhere, "exec", "--session", "due", "--", nap, "200ms", "foreign").returncode, 7)
    killed(elsewhere, "cut", slow("foreign"), "begun-foreign")
    write("go", "")
    come_from_elsewhere("due", "cut")
    want(command(s.store, "exec", "--session", "own", "--", nap, "700ms", "own").returncode, 7)
    until(lambda: "woke-own" in ran())
    os.unlink(path("go"))
    killed(s.store, "own-cut", slow("own"), "begun-own")
    write("go", "")
    until(lambda: "resumed-own" in ran())
    want([x for x in ran() if x.endswith("foreign")], ["begun-foreign"])
    want((info("due")["reason"], info("due")["trusted"], info("cut")["needs_resume"], info("cut")["trusted"]), ("due", False, True, False))
    want([e["kind"] for e in s.api("GET", "/sessions/cut/log").json["events"]].count("run.interrupted"), 1)


def no_request_runs_any_of_it():
    asks = program("asks", "tidemark wait go --kind approval --question 'go?' >/dev/null\necho deed >>%s\n" % path("ran"))
    script = write("script.json", json.dumps({"turns": [{"text": "hello", "calls": [
        {"name": "bash", "args": {"command": "echo tool >>" + path("ran")}}]}, {"text": "done"}]}))
    graph = write("graph.json", json.dumps({
        "tidemark_graph": 1, "id": "g", "entry": "q", "nodes": [
            {"id": "q", "type": "human_input", "question": "what?", "outputs": ["ans"]},
            {"id": "b", "type": "function", "program": ["sh", "-c", "echo node >>%s; echo {}" % path("ran")]}],
        "edges": [{"from": "q", "to": "b"}]}))
    want(command(elsewhere, "exec", "--session", "asks", "--", asks).returncode, 7)
    want(command(elsewhere, "run", graph, "--session", "graph", "--no-input").returncode, 7)
    talk = json.loads(command(elsewhere, "chat", "--script", script, "-p", "hi", "--output", "json").stdout)["session_id"]
    command(elsewhere, "sessions", "new", "--id", "plain")
    come_from_elsewhere("asks", "graph", talk, "plain")
    for one in ("asks", "graph", talk, "due", "cut"):
        refused("POST", "/sessions/%s/resume" % one, {})
        refused("POST", "/sessions/%s/messages" % one, {"content": "go on"})
        refused("POST", "/sessions/%s/messages" % one, {"content": "go on", "queue": True})
        refused("PATCH", "/sessions/" + one, {"title": "mine"})
        refused("POST", "/sessions/%s/runs" % one, {"prompt": "go on"})
        want(s.api("GET", "/sessions/%s/verify" % one).json["ok"], True)
        want([x["action"] for x in s.api("GET", "/sessions/%s/why" % one).json["next"]][:1], ["trust"], one)
    refused("POST", "/sessions/plain/runs", {"prompt": "go on"})
    for one in ("asks", "graph"):
        refused("POST", "/sessions/%s/answer" % one, {"input": "yes"})
        refused("POST", "/sessions/%s/answer" % one, {"input": "yes", "wait": True})
        refused("POST", "/sessions/%s/resume" % one, {"ask_again": "go" if one == "asks" else "q"})
        refused("POST", "/sessions/%s/resume" % one, {"retry": ["b"], "set": {"a": 1}} if one == "graph" else {"retry": ["a"]})
        refused("POST", "/sessions/%s/token" % one)
    fork = s.api("POST", "/sessions/asks/fork", {}).json["session_id"]
    refused("POST", "/sessions/%s/resume" % fork, {})
    want([x for x in ran() if x in ("deed", "tool", "node")], [])


def trusted_it_goes_on():
    shown = s.api("GET", "/sessions/due/trust").json
    want((shown["trusted_now"], shown["would_run"]["program"]["argv"][0]), (False, path("nap")))
    want(s.api("POST", "/sessions/due/trust", {"would_run": dict(shown["would_run"], seq=1)}).status, 409)
    want(s.api("POST", "/sessions/due/trust", {"would_run": shown["would_run"]}).status, 200)
    until(lambda: "woke-foreign" in ran())
    shown = s.api("GET", "/sessions/asks/trust").json
    want(s.api("POST", "/sessions/asks/trust", {"would_run": shown["would_run"]}).status, 200)
    want("deed" in ran(), False)
    a = s.api("POST", "/sessions/asks/resume", {"wait": True})  # its token was revoked: it is asked again
    want((a.status, ran().count("deed")), (202, 0), a.bytes)
    want(s.api("POST", "/sessions/asks/answer", {"input": "yes", "wait": True}).status, 202)
    until(lambda: "deed" in ran())


def a_graph_that_was_uploaded_elsewhere_is_shown_and_does_not_run():
    other = Server()
    graph = {"tidemark_graph": 1, "id": "bad", "name": "Harmless", "entry": "a", "nodes": [
        {"id": "a", "type": "function", "program": ["sh", "-c", "echo uploaded >>%s; echo {}" % path("ran")]}], "edges": []}
    stored = other.api("POST", "/graphs", {"graph": graph}).json
    exported = other.api("GET", "/sessions/%s/export" % stored["session_id"]).bytes
    other.done()
    want(s.api("POST", "/import", raw=exported, fields=LINES).status, 201)
    want(s.api("GET", "/graphs/" + stored["digest"]).json["name"], "Harmless")
    refused("POST", "/graphs/%s/run" % stored["digest"], {})
    refused("POST", "/sessions", {"kind": "graph", "graph_digest": stored["digest"]})
    want(s.api("POST", "/graphs", {"graph": graph}).status, 201)
    refused("POST", "/graphs/%s/run" % stored["digest"], {})
    want("uploaded" in ran(), False)
    shown = s.api("GET", "/sessions/%s/trust" % stored["session_id"]).json["would_run"]
    want("echo uploaded" in json.dumps(shown["stored_graph"]), True)
    want("echo uploaded" in s.run("sessions", "trust", stored["session_id"], "--show").stdout, True)
    want(s.api("POST", "/sessions/%s/trust" % stored["session_id"], {"would_run": shown}).status, 200)
    want(s.api("POST", "/graphs/%s/run" % stored["digest"], {}).status, 201)
    until(lambda: "uploaded" in ran())


def whatever_descriptor_has_the_key_programs_are_started_with_it():
    """A key that came through a pipe, on each of the descriptors that are used first."""
    for fd in (3, 4, 5):
        t = Server()
        t.stop()
        os.makedirs(t.dir.name + "/config/tidemark", exist_ok=True)
        nap = program("nap-with-key", "PATH=%s:$PATH\ntidemark sleep nap 100ms\necho woke-%d >>%s\n" % (os.path.dirname(BIN), fd, path("ran")))
        with open(t.dir.name + "/config/tidemark/config.json", "w") as f:
            json.dump({"server_programs": {"nap": {"argv": [nap], "cwd": path("work")}}}, f)
        env = dict(t.env, TIDEMARK_ORIGIN_KEY_FD=str(fd))
        del env["TIDEMARK_ORIGIN_KEY"]
        command = "exec \"$0\" --store \"$1\" serve --listen 127.0.0.1:%d %d< <(printf 'a key of some bytes')" % (t.port, fd)
        t.process = subprocess.Popen(["bash", "-c", command, BIN, t.store], env=env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        want("http://" in t.process.stderr.readline(), True)
        a = t.api("POST", "/sessions", {"kind": "program", "program": "nap", "session_id": "one"})
        want(a.status, 201, a.bytes)
        until(lambda: "woke-%d" % fd in ran())
        until(lambda: t.api("GET", "/sessions/one").json["outcome"] == "completed")
        want(t.api("GET", "/sessions/one").json["trusted"], True)
        t.done()


os.makedirs(path("config/tidemark"), exist_ok=True)
os.makedirs(path("work"), exist_ok=True)
write("config/tidemark/config.json", json.dumps({"server_working_roots": [path("work")]}))
case("what is due or was cut does not go on by itself", what_is_due_or_was_cut_does_not_go_on_by_itself)
case("no request runs any of it", no_request_runs_any_of_it)
case("trusted, it goes on", trusted_it_goes_on)
case("a graph that was uploaded elsewhere is shown, and does not run", a_graph_that_was_uploaded_elsewhere_is_shown_and_does_not_run)
case("whatever descriptor has the key, programs are started with it", whatever_descriptor_has_the_key_programs_are_started_with_it)
s.done()
end()
