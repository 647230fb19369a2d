# SPDX-License-Identifier: Apache-2.0
# A server of the real binary on a store of its own, and a client for it that knows nothing of it but HTTP.
import atexit
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from jsonschema import Draft202012Validator

BIN = os.environ["TIDE_BIN"]
CONSOLE_BIN = os.environ["TIDE_BUILD"] + "/tests/tidemark-console"  # with the console of console/, whatever BIN has
BARE_BIN = os.environ["TIDE_BUILD"] + "/tests/tidemark-bare"  # with none
failed = 0


def case(name, fn):
    """Runs one case and says how it went, as tests/lib.sh does."""
    global failed
    try:
        fn()
        print("ok - " + name, flush=True)
    except Exception as e:  # whatever it is, it is this case's
        failed += 1
        print("not ok - %s: %s: %s" % (name, type(e).__name__, e), flush=True)


def want(got, expected, about=""):
    if got != expected:
        raise AssertionError("%s wants %r, got %r" % (about, expected, got))


class Answer:
    def __init__(self, r):
        self.status = r.status
        self.fields = {k.lower(): v for k, v in r.getheaders()}
        self.bytes = r.read()

    @property
    def json(self):
        return json.loads(self.bytes)


class Promises:
    """The server's own document (/openapi.json): what answers may be. A checker that is not ours holds answers against it."""

    MOST = 30  # of one kind

    def __init__(self, document):
        self.document, self.validators, self.seen = document, {}, {}
        self.paths = [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(p)) + "$"), ops) for p, ops in document["paths"].items()]

    def check(self, method, path, answer):
        path = path.split("?")[0]
        operation = next((ops[method.lower()] for p, ops in self.paths if p.match(path) and method.lower() in ops), None)
        if operation is None:
            return want(answer.status in (401, 404, 405, 421, 403, 400), True, "%s %s is not promised, its status" % (method, path))
        key = operation["operationId"], answer.status
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] > self.MOST:
            return None
        promised = operation["responses"].get(str(answer.status))
        if promised is None:
            want(answer.status >= 400, True, "%s answers %d, which is promised" % key)
            promised = operation["responses"]["default"]
        if "content" not in promised:
            return want(answer.bytes, b"", "the answer of %s" % key[0])
        if answer.status == 431 and "content-type" not in answer.fields:
            return None  # a head that is too big to be read: the HTTP library's own answer
        kind = answer.fields["content-type"].split(";")[0]
        want(kind in promised["content"], True, "%s answers with %s, which is promised" % (key[0], kind))
        if kind in ("application/json", "application/problem+json"):
            for e in self.validator(promised["content"][kind]["schema"]).iter_errors(answer.json):
                raise AssertionError("%s answers %s: %s" % (key[0], "/".join(map(str, e.absolute_path)), e.message[:300]))

    def validator(self, schema):
        text = json.dumps(schema)
        if text not in self.validators:
            self.validators[text] = Draft202012Validator(dict(schema, components=self.document["components"]))
        return self.validators[text]


class Server:
    def __init__(self, *options, store=None, binary=BIN):
        self.binary = binary
        self.dir = tempfile.TemporaryDirectory(prefix="tidemark-serve-")
        self.store = store or os.path.join(self.dir.name, "s.db")
        self.env = dict(os.environ, XDG_STATE_HOME=self.dir.name + "/state", XDG_CONFIG_HOME=self.dir.name + "/config",
                        XDG_RUNTIME_DIR=self.dir.name, TIDEMARK_AUTO_RESUME="off")  # what a test cuts stays cut
        self.options = options
        self.port = 0
        self.promises = None
        atexit.register(self.end)
        self.start()
        self.promises = Promises(self.ask("GET", "/openapi.json").json)

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "--store", self.store, "serve", "--listen", "127.0.0.1:%d" % self.port, *self.options],
            env=self.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        line = self.process.stderr.readline()
        if "http://" not in line:
            raise AssertionError("the server says: " + line + self.process.stderr.read())
        self.port = int(line.split("http://127.0.0.1:")[1].split(";")[0].split("/")[0])
        with open(self.dir.name + "/state/tidemark/server.token") as f:
            self.token = f.read().strip()

    def said(self, words):
        """The next line of it that has these words."""
        for line in self.process.stderr:
            if words in line:
                return line
        raise AssertionError("the server ended without saying " + words)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def end(self):
        """Of a case that failed: nothing is left behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.stderr.close()
        return status

    def done(self):
        if self.process.poll() is None:
            self.stop()
        for _ in range(200):  # a program outlives its server, and may still write here for a moment
            try:
                return self.dir.cleanup()
            except OSError:
                time.sleep(0.05)
        raise AssertionError("something still writes to " + self.dir.name)

    def run(self, *args):
        return subprocess.run([self.binary, "--store", self.store, *args], env=self.env, capture_output=True, text=True)

    def ask(self, method, path, body=None, token=True, fields=None, raw=None, promised=True):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        f = dict(fields or {})
        if token:
            f.setdefault("Authorization", "Bearer " + (self.token if token is True else token))
        if body is not None:
            f.setdefault("Content-Type", "application/json")
            raw = json.dumps(body)
        try:
            c.request(method, path, raw, f)
            answer = Answer(c.getresponse())
        finally:
            c.close()
        if self.promises and promised and method != "HEAD":
            self.promises.check(method, path, answer)
        return answer

    def api(self, method, path, body=None, **more):
        return self.ask(method, "/api/v1" + path, body, **more)

    def session(self, **fields):
        return self.api("POST", "/sessions", fields).json["session_id"]

    def append(self, session, n=1):
        for i in range(n):
            want(self.api("POST", "/sessions/%s/events" % session, {"kind": "memory.set", "data": {"values": {"n": i}}}).status, 201)


class Stream:
    """Reads server-sent events in a thread: (id, event, data)."""

    def __init__(self, server, path, last=None):
        self.c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        f = {"Authorization": "Bearer " + server.token}
        if last is not None:
            f["Last-Event-ID"] = str(last)
        self.c.request("GET", "/api/v1" + path, None, f)
        self.r = self.c.getresponse()
        self.status = self.r.status
        self.got = []
        self.beats = []  # ids without an event
        self.changed = threading.Condition()
        self.over = False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        now = {}
        try:
            for line in self.r:
                line = line.decode().rstrip("\n")
                if not line:
                    if "data" in now:
                        with self.changed:
                            self.got.append((now.get("id"), now.get("event"), json.loads(now["data"])))
                            self.changed.notify_all()
                    elif "id" in now:
                        with self.changed:
                            self.beats.append(int(now["id"]))
                            self.changed.notify_all()
                    now = {}
                elif not line.startswith(":"):
                    name, value = line.split(": ", 1)
                    now[name] = value
        except (OSError, http.client.HTTPException, ValueError):
            pass
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def events(self):
        return [(int(i), d) for i, e, d in self.got if e is None]

    def wait(self, is_so, seconds=10):
        end = time.monotonic() + seconds
        with self.changed:
            while not is_so(self):
                left = end - time.monotonic()
                if left <= 0:
                    raise AssertionError("not within %d s; got %r" % (seconds, self.got[-3:]))
                self.changed.wait(left)

    def close(self):
        if self.c.sock:
            self.c.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.c.close()


def end():
    sys.exit(1 if failed else 0)
