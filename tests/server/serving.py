# SPDX-License-Identifier: Apache-2.0
# A server of the real binary on a store of its own, and a client for it that knows nothing of it but HTTP.
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BIN = os.environ["TIDE_BIN"]
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


class Server:
    def __init__(self, *options, store=None):
        self.dir = tempfile.TemporaryDirectory(prefix="tidemark-serve-")
        self.store = store or os.path.join(self.dir.name, "s.db")
        self.env = dict(os.environ, XDG_STATE_HOME=self.dir.name + "/state", XDG_CONFIG_HOME=self.dir.name + "/config",
                        XDG_RUNTIME_DIR=self.dir.name)
        self.options = options
        self.port = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BIN, "--store", self.store, "serve", "--listen", "127.0.0.1:%d" % self.port, *self.options],
            env=self.env, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        line = self.process.stderr.readline()
        if "http://" not in line:
            raise AssertionError("the server says: " + line + self.process.stderr.read())
        self.port = int(line.split("http://127.0.0.1:")[1].split(";")[0].split("/")[0])
        with open(self.dir.name + "/state/tidemark/server.token") as f:
            self.token = f.read().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.stderr.close()
        return status

    def done(self):
        if self.process.poll() is None:
            self.stop()
        self.dir.cleanup()

    def run(self, *args):
        return subprocess.run([BIN, "--store", self.store, *args], env=self.env, capture_output=True, text=True)

    def ask(self, method, path, body=None, token=True, fields=None, raw=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        f = dict(fields or {})
        if token:
            f.setdefault("Authorization", "Bearer " + (self.token if token is True else token))
        if body is not None:
            f.setdefault("Content-Type", "application/json")
            raw = json.dumps(body)
        try:
            c.request(method, path, raw, f)
            return Answer(c.getresponse())
        finally:
            c.close()

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
