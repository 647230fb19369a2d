# SPDX-License-Identifier: Apache-2.0
# Trouble of the disk that passes ends no run of the server: a chat, a graph and a program are held on a disk that is really full, and
# continue by themselves when there is room. In a mount namespace of its own with a small tmpfs.
import json
import os
import stat
import subprocess
import sys
import time

if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
    print("ok - a full disk # SKIP needs root and mount namespaces")
    sys.exit(0)
if sys.argv[1:] != ["inside"]:
    os.execvp("unshare", ["unshare", "-m", sys.executable, os.path.abspath(__file__), "inside"])

from serving import BIN, Server, case, end, want  # noqa: E402

TEXT = {"sqlite": 300000, "files": 1300000}  # more than a log has room for


class Small(Server):
    """Its store is on a disk of 12 MiB, which mount() makes."""

    def __init__(self, kind):
        import tempfile
        self.small = tempfile.mkdtemp(prefix="tidemark-small-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", self.small], check=True)
        super().__init__(store=("files:%s/s" if kind == "files" else "%s/s.db") % self.small)

    def fill(self):
        with open(self.small + "/fill", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(65536))
            except OSError:
                pass

    def room(self):
        try:
            os.unlink(self.small + "/fill")
        except FileNotFoundError:
            pass

    def done(self):
        self.room()
        super().done()
        subprocess.run(["umount", "-l", self.small], check=True)
        os.rmdir(self.small)


def write(s, name, text, mode=0o600):
    path = os.path.join(s.dir.name, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def until(is_so, seconds=40):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def prepare(s, size):
    """Each says that it is about to be given more than there is room for, and waits until the disk is full."""
    wait = "echo %%s >>%s/ledger; while [ ! -e %s/fill ]; do sleep 0.02; done" % (s.dir.name, s.small)
    call = lambda who: {"name": "bash", "args": {"command": wait % who}}
    write(s, "chat.json", json.dumps({"turns": [{"calls": [call("chat")]}, {"text": "x" * size}, {"text": "Done."}]}))
    write(s, "graphs/g.json", json.dumps({
        "tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
            {"id": "a", "type": "function", "effect": "once", "outputs": ["x"],
             "program": ["sh", "-c", wait % "graph" + "; printf '{\"x\":\"%%0%dd\"}' 1" % size]},
            {"id": "b", "type": "function", "program": ["sh", "-c", "echo behind >>%s/ledger; echo '{\"y\":2}'" % s.dir.name], "outputs": ["y"]}],
        "edges": [{"from": "a", "to": "b"}]}))
    program = write(s, "program", "#!/bin/sh\nPATH=%s:$PATH\ntidemark step wait --effect once -- sh -c '%s'\n"
                    "tidemark step big --effect once -- sh -c 'head -c %d /dev/zero | tr \"\\0\" x' | wc -c >>%s/ledger\n"
                    % (os.path.dirname(BIN), wait % "program", size, s.dir.name), stat.S_IRWXU)
    write(s, "config/tidemark/config.json", json.dumps({
        "provider": "script", "script": s.dir.name + "/chat.json", "permissions": [{"tool": "*", "permission": "allow"}],
        "server_programs": {"p": {"argv": [program], "cwd": s.dir.name}},
        "server_graph_roots": [s.dir.name + "/graphs"], "server_working_roots": [s.dir.name]}))


def ledger(s):
    try:
        with open(s.dir.name + "/ledger") as f:
            return sorted(f.read().split())
    except FileNotFoundError:
        return []


STARTS = {"chat": {"kind": "chat", "prompt": "go"}, "graph": {"kind": "graph", "graph": "g.json"}, "program": {"kind": "program", "program": "p"}}


def held_and_continued(kind):
    s, size = Small(kind), TEXT[kind]
    prepare(s, size)
    want({one: s.api("POST", "/sessions", dict(body, session_id=one)).status for one, body in STARTS.items()}, dict.fromkeys(STARTS, 201))
    until(lambda: ledger(s) == sorted(STARTS))
    s.fill()
    log = lambda one: s.api("GET", "/sessions/%s/log?limit=1000" % one).json["events"]
    end_at = time.monotonic() + 3  # that long there is no room
    while time.monotonic() < end_at:
        want({s.api("GET", "/sessions/" + one).json["status"] for one in STARTS}, {"running"})
        want(s.api("POST", "/sessions", {"title": "y" * 100000}).status in (503, 507), True)
        time.sleep(0.2)
    s.room()
    until(lambda: all(s.api("GET", "/sessions/" + one).json["outcome"] == "completed" for one in STARTS))
    want(ledger(s), sorted(["behind", "chat", "graph", "program", str(size)]))
    for one in STARTS:
        i = s.api("GET", "/sessions/" + one).json
        want((i["status"], i["durability"]), ("idle", "full"), one)
        want([e["kind"] for e in log(one)].count("run.started"), 1, one)
        want([e["kind"] for e in log(one) if e["kind"] in ("run.interrupted", "run.failed")], [], one)
        want(s.api("GET", "/sessions/%s/verify" % one).json["ok"], True)
    want(s.stop(), 0)
    s.done()


for store in ("sqlite", "files"):
    case("a full disk holds what the server runs, which continues by itself (%s)" % store, lambda: held_and_continued(store))
end()
