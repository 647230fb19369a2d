# SPDX-License-Identifier: Apache-2.0
# The server in operation: what it refuses to start with, where it listens and to whom, what it does when the disk is full and when it
# is told to stop.
import base64
import hashlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import time

from serving import BIN, Answer, Server, case, end, want

EXPIRED = """-----BEGIN CERTIFICATE-----
MIIBCjCBsgIBATAKBggqhkjOPQQDAjASMRAwDgYDVQQDDAdleHBpcmVkMB4XDTIw
MDEwMTAwMDAwMFoXDTIwMDEwMjAwMDAwMFowEjEQMA4GA1UEAwwHZXhwaXJlZDBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABNCEK7aHzx4nU1v3CX7yNrCMIxLm7HD3
ycoSbmaNxbUMPNiHZTqVxYF0q0oSwe3lNwT5hR++wW0W+d8ZCVOZ5A4wCgYIKoZI
zj0EAwIDRwAwRAIgY20HkH15nLeDwQwjErXCaxQbIpKu50bwKQl33gcBrPACIEUP
YJmYKrQRkirxUcA6SH85iQT3bxSgezHrVyHzNSjZ
-----END CERTIFICATE-----
"""
# Of that certificate alone; nothing trusts it.
EXPIRED_KEY = "-----BEGIN %s KEY-----\n" % "PRIVATE" + """MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgH8lSNL4G+nqR4qGq
UlaDwS9U2eQ6HKCJ0yGNNNmrplehRANCAATQhCu2h88eJ1Nb9wl+8jawjCMS5uxw
98nKEm5mjcW1DDzYh2U6lcWBdKtKEsHt5TcE+YUfvsFtFvnfGQlTmeQO
""" + "-----END %s KEY-----\n" % "PRIVATE"


class Place:
    """A directory with nothing in it, and servers that are started there."""

    def __init__(self):
        self.temp = tempfile.TemporaryDirectory(prefix="tidemark-place-")
        self.dir = self.temp.name
        self.env = dict(os.environ, XDG_STATE_HOME=self.dir + "/state", XDG_CONFIG_HOME=self.dir + "/config",
                        XDG_RUNTIME_DIR=self.dir)
        self.store = self.dir + "/s.db"

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def popen(self, *args, **more):
        return subprocess.Popen([BIN, "--store", self.store, "serve", *args], env=self.env, text=True,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    def refuses(self, status, words, *args):
        """Ends at once with this status and one line, and no store is made."""
        p = self.popen(*args)
        said = p.communicate(timeout=20)[1]
        want((p.returncode, said.count("\n")), (status, 1), said)
        if words not in said:
            raise AssertionError("'%s' is not in: %s" % (words, said))
        want(os.path.exists(self.store), False, "a store")

    def done(self):
        self.temp.cleanup()


class Started:
    """A server of a place, by what it prints."""

    def __init__(self, place, *args, lines, **more):
        self.process = place.popen(*args, **more)
        self.lines = [self.process.stderr.readline() for _ in range(lines)]
        self.port = next((int(m.group(1)) for m in map(re.compile(r"://127\.0\.0\.1:(\d+)").search, self.lines) if m), 0)
        self.unix = next((m.group(1) for m in map(re.compile(r"unix:([^;\n]+)").search, self.lines) if m), None)
        self.pin = next((m.group(1) for m in map(re.compile(r"--pin (sha256//[^;\s]+)").search, self.lines) if m), None)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.process.stderr.close()
        return status

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def ask(c, path="/api/v1/store", **fields):
    try:
        c.request("GET", path, None, {k.replace("_", "-"): v for k, v in fields.items()})
        return Answer(c.getresponse())
    finally:
        c.close()


# ---- what it does not start with ----

def what_is_unsafe_or_wrong_is_refused_and_nothing_is_made():
    p = Place()
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = taken.getsockname()[1]
    p.refuses(4, "port %d of 127.0.0.1 is in use" % port, "--listen", "127.0.0.1:%d" % port)
    taken.close()
    p.refuses(6, "needs TLS", "--listen", "0.0.0.0:0")
    p.refuses(6, "needs TLS", "--listen", "[::]:0")
    p.refuses(2, "is not an ADDRESS:PORT", "--listen", "7007")
    p.refuses(2, "is not an address", "--listen", "nowhere.invalid:7007")
    p.refuses(2, "is not a name of a host", "--host", "a b")
    p.refuses(2, "is not a name of a host", "--host", "*")
    p.refuses(2, "is not an origin", "--origin", "console.example.org")
    p.refuses(2, "is not an origin", "--origin", "https://console.example.org/page")
    p.done()


def a_certificate_that_is_no_good_is_refused():
    p = Place()
    crt, key = p.write("crt.pem", EXPIRED), p.write("key.pem", EXPIRED_KEY)
    listen = ("--listen", "127.0.0.1:0")
    p.refuses(2, "has expired", *listen, "--tls-certificate", crt, "--tls-key", key)
    p.refuses(2, "go together", *listen, "--tls-certificate", crt)
    p.refuses(2, "go together", *listen, "--tls-key", key)
    p.refuses(3, "No such file", *listen, "--tls-certificate", crt, "--tls-key", p.dir + "/none")
    p.refuses(2, "not a PEM key", *listen, "--tls-certificate", crt, "--tls-key", crt)
    p.refuses(2, "not a PEM certificate", *listen, "--tls-certificate", p.write("x", "x"), "--tls-key", key)
    p.refuses(6, "can be read by others", *listen, "--tls-certificate", crt, "--tls-key", p.write("open.pem", EXPIRED_KEY, 0o644))
    s = Started(p, *listen, "--tls", lines=3)
    want(s.stop(), 0)
    os.remove(p.store)
    p.refuses(2, "of another key", *listen, "--tls-certificate", p.dir + "/state/tidemark/server-tls.pem", "--tls-key", key)
    os.chmod(p.dir + "/state/tidemark/server-tls.pem", 0o640)
    p.refuses(6, "can be read by others", *listen, "--tls")
    p.done()


def a_token_file_that_others_can_read_is_refused():
    p = Place()
    s = Started(p, "--listen", "127.0.0.1:0", lines=2)
    want(s.stop(), 0)
    for name in ("server.token", "access.json"):
        path = p.dir + "/state/tidemark/" + name
        want(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        os.chmod(path, 0o644)
        q = p.popen("--listen", "127.0.0.1:0")
        said = q.communicate(timeout=20)[1]
        want((q.returncode, said.count("\n"), "can be read or written by others" in said), (6, 1, True), said)
        os.chmod(path, 0o600)
    p.done()


def a_second_server_is_refused_by_name_and_a_killed_one_is_in_nobodys_way():
    for scheme in ("sqlite:", "files:"):
        p = Place()
        p.store = scheme + p.store
        s = Started(p, "--listen", "127.0.0.1:0", lines=2)
        other = Place()
        q = subprocess.run([BIN, "--store", p.store, "serve", "--listen", "127.0.0.1:0"], env=other.env,
                           capture_output=True, text=True, timeout=20)
        want((q.returncode, "process %d serves" % s.process.pid in q.stderr, "since 20" in q.stderr), (4, True, True), q.stderr)
        want(ask(Unix(s.unix)).status, 200)
        s.kill()
        s = Started(p, "--listen", "127.0.0.1:%d" % s.port, lines=2)
        want(ask(Unix(s.unix)).status, 200)
        want(s.stop(), 0)
        want(Started(p, "--listen", "127.0.0.1:0", lines=2).stop(), 0)
        other.done()
        p.done()


# ---- where it listens, and to whom ----

def the_unix_socket_is_of_this_user_alone():
    p = Place()
    s = Started(p, "--listen", "off", lines=1)
    want(os.path.dirname(s.unix), p.dir + "/tidemark")
    want(stat.S_IMODE(os.stat(os.path.dirname(s.unix)).st_mode), 0o700)
    want(stat.S_IMODE(os.stat(s.unix).st_mode), 0o600)
    want(ask(Unix(s.unix)).status, 200)
    want(ask(Unix(s.unix), Authorization="Bearer nonsense").status, 401)
    want(ask(Unix(s.unix), Origin="http://evil.example").status, 403)
    s.kill()  # leaves its file
    s = Started(p, "--listen", "off", lines=1)
    want(ask(Unix(s.unix)).status, 200)
    want(s.stop(), 0)
    want(os.path.exists(s.unix), False)
    os.mkdir(p.dir + "/open", 0o755)
    p.store += "2"
    p.refuses(6, "only this user can enter", "--listen", "off", "--unix", p.dir + "/open/s")
    os.mkdir(p.dir + "/own", 0o700)
    with open(p.dir + "/own/s", "w"):
        pass
    p.refuses(4, "is not a socket", "--listen", "off", "--unix", p.dir + "/own/s")
    p.refuses(2, "at most", "--listen", "off", "--unix", p.dir + "/own/" + "s" * 100)
    s = Started(p, "--listen", "off", "--unix", p.dir + "/own/t", lines=1)
    want(s.unix, p.dir + "/own/t")
    third = Place()
    third.refuses(4, "somebody listens", "--listen", "off", "--unix", s.unix)
    third.done()
    want(s.stop(), 0)
    p.done()


def tls_has_a_key_that_stays_and_is_pinned():
    p = Place()
    s = Started(p, "--listen", "127.0.0.1:0", "--tls", lines=3)
    own = p.dir + "/state/tidemark/server-tls.pem"
    want(stat.S_IMODE(os.stat(own).st_mode), 0o600)
    c = ssl.create_default_context(cafile=own)  # it is its own authority, for the names that it has
    with open(p.dir + "/state/tidemark/server.token") as f:
        token = f.read().strip()
    want(ask(http.client.HTTPSConnection("127.0.0.1", s.port, context=c, timeout=20), Authorization="Bearer " + token).status, 200)
    want(ask(http.client.HTTPSConnection("localhost", s.port, context=c, timeout=20)).status, 401)
    with socket.create_connection(("127.0.0.1", s.port)) as plain, c.wrap_socket(plain, server_hostname="localhost") as t:
        der = t.getpeercert(True)
    point = der[der.index(b"\x03\x42\x00\x04") - 23:][:91]  # the SubjectPublicKeyInfo of a P-256 key has this length
    want(s.pin, "sha256//" + base64.b64encode(hashlib.sha256(point).digest()).decode())
    want(s.stop(), 0)
    again = Started(p, "--listen", "127.0.0.1:0", "--tls", lines=3)
    want(again.pin, s.pin)
    want(again.stop(), 0)
    p.done()


def only_the_hosts_and_origins_that_are_named_are_answered():
    s = Server("--host", "box.example.org", "--host", "other.example.org:99", "--origin", "https://console.example.org")
    for host, status in (("box.example.org", 200), ("box.example.org:%d" % s.port, 200), ("other.example.org:99", 200),
                         ("other.example.org", 421), ("BOX.example.org", 200), ("box.example.org.", 421),
                         ("xbox.example.org", 421), ("127.0.0.1", 421)):
        want(s.api("GET", "/store", fields={"Host": host}).status, status, host)
    for origin, status in (("https://console.example.org", 200), ("http://console.example.org", 403), ("null", 403),
                           ("https://console.example.org.evil.example", 403), ("http://localhost:%d" % s.port, 200)):
        want(s.api("GET", "/store", fields={"Origin": origin}).status, status, origin)
    s.done()


# ---- limits ----

def the_settings_limit_what_is_sent():
    with tempfile.TemporaryDirectory() as d:
        config = d + "/config.json"
        with open(config, "w") as f:
            json.dump({"server_max_body_bytes": 2048, "server_max_depth": 8, "server_max_head_bytes": 4096,
                       "server_head_timeout_ms": 300, "server_max_connections_per_address": 8}, f)
        s = Server("--config", config)
        deep = {}
        for _ in range(8):
            deep = {"x": deep}
        want(s.api("POST", "/sessions", {"metadata": {"x": "y" * 1500}}).status, 201)
        want(s.api("POST", "/sessions", {"metadata": {"x": "y" * 2500}}).status, 413)
        want(s.api("POST", "/sessions", {"metadata": deep}).status, 400)
        want(s.api("GET", "/store", fields={"X": "y" * 5000}).status, 431)
        with socket.create_connection(("127.0.0.1", s.port), timeout=10) as slow:
            slow.send(b"GET / HTTP/1.1\r\n")
            want(slow.recv(100), b"")
        held = [socket.create_connection(("127.0.0.1", s.port), timeout=10) for _ in range(8)]
        more = socket.create_connection(("127.0.0.1", s.port), timeout=10)
        want(more.recv(100), b"")
        for c in [*held, more]:
            c.close()
        s.done()


def nobody_asks_or_guesses_without_end():
    with tempfile.TemporaryDirectory() as d:
        config = d + "/config.json"
        with open(config, "w") as f:
            json.dump({"server_max_requests_per_second": 5}, f)
        s = Server("--config", config)
        got = [s.api("GET", "/store") for _ in range(40)]
        want({a.status for a in got}, {200, 429})
        want(next(a for a in got if a.status == 429).fields["retry-after"], "1")
        s.done()
    s = Server()
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=20)
    seen = set()
    for i in range(600):
        c.request("GET", "/api/v1/store", None, {"Authorization": "Bearer tide_%d" % i})
        r = c.getresponse()
        r.read()
        seen.add(r.status)
    want(seen, {401, 429})
    want(s.api("GET", "/store", token=False).status, 401)
    c.close()
    s.done()


# ---- trouble, and the end ----

def a_full_disk_refuses_new_work_and_answers_reads():
    s = Server()
    one = s.session(title="before")
    s.append(one, 3)
    script = s.dir.name + "/script.json"
    with open(script, "w") as f:
        json.dump({"turns": [{"text": "first"}, {"text": "second"}]}, f)
    chat = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    pid = s.process.pid
    limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limit[1]))
    a = s.api("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"x": "y" * 100000}}})
    want((a.status in (503, 507), a.fields["content-type"]), (True, "application/problem+json"), a.bytes)
    want(a.json["detail"] != "", True)
    want(s.api("POST", "/sessions", {}).status in (503, 507), True)
    a = s.api("POST", "/sessions/%s/messages" % chat, {"content": "and now?"})
    want(a.status in (503, 507), True, a.bytes)
    want(s.api("GET", "/sessions/" + one).json["last_seq"], 4)
    want(len(s.api("GET", "/sessions").json["sessions"]), 2)
    want(len(s.api("GET", "/sessions/%s/log" % one).json["events"]), 4)
    want(s.ask("GET", "/healthz", token=False).status, 200)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
    for _ in range(100):
        a = s.api("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"x": 1}}})
        if a.status == 201:
            break
        time.sleep(0.1)
    want((a.status, a.json["seq"]), (201, 5))
    want(s.api("POST", "/sessions/%s/messages" % chat, {"content": "and now?"}).status, 202)
    want(s.stop(), 0)
    s.dir.cleanup()


def a_damaged_session_is_named_and_in_nobodys_way():
    with tempfile.TemporaryDirectory() as d:
        s = Server(store="files:" + d + "/plain")
        for one in ("good", "bad"):
            s.session(session_id=one)
            s.append(one, 4)
        want(s.stop(), 0)
        path = d + "/plain/sessions/bad.messages.jsonl"
        with open(path) as f:
            lines = f.readlines()
        lines[2] = lines[2].replace('"n":1', '"n":7')
        with open(path, "w") as f:
            f.writelines(lines)
        s.start()
        for method, view, body in [("GET", v, None) for v in ("", "/log", "/state", "/status", "/why", "/timeline", "/transcript", "/trust", "/queue", "/export", "/events")] + [
                ("POST", "/events", {"kind": "note"}), ("POST", "/messages", {"content": "x"}), ("POST", "/fork", {}), ("POST", "/rollback", {"to": "2"}),
                ("POST", "/checkpoints", {}), ("POST", "/resume", {})]:
            a = s.api(method, "/sessions/bad" + view, body)
            want((a.status, a.json["error"]["error"], a.json["error"]["detail"]["position"]), (500, "CORRUPT", 3), method + view)
        want([r["ok"] for r in s.api("GET", "/sessions/bad/verify").json["sessions"]], [False])
        want(s.api("GET", "/sessions/good/verify").json["ok"], True)
        want({r["session_id"] for r in s.api("GET", "/sessions").json["sessions"]}, {"good", "bad"})
        s.append("good", 2)
        want(s.api("GET", "/sessions/good").json["last_seq"], 7)
        want(s.ask("GET", "/readyz").status, 200)
        with open(path) as f:
            want(f.readlines(), lines)  # nothing was put behind the damage
        s.done()


def what_waited_in_memory_is_counted():
    os.environ["TIDEMARK_ON_STORE_ERROR"] = "continue"
    s = Server()
    del os.environ["TIDEMARK_ON_STORE_ERROR"]
    script = s.dir.name + "/script.json"
    with open(script, "w") as f:
        json.dump({"turns": [{"text": "first"}, {"text": "second", "delay_ms": 700, "calls": [{"name": "glob", "args": {"pattern": "*.none"}}]},
                             {"text": "third", "delay_ms": 700}]}, f)
    chat = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    figure = lambda: next(float(line.split()[1]) for line in s.ask("GET", "/metrics").bytes.decode().splitlines()
                          if line.startswith("tidemark_runs_degraded_total "))
    want(figure(), 0)
    want(s.api("POST", "/sessions/%s/messages" % chat, {"content": "and now?"}).status, 202)
    limit = resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
    time.sleep(2)
    resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, limit)
    until(lambda: figure() == 1)
    want(s.api("GET", "/sessions/" + chat).json["durability"], "degraded")
    want(s.stop(), 0)
    s.dir.cleanup()


def chats(s, n, delay_ms):
    ids = []
    for i in range(n):
        script = os.path.join(s.dir.name, "script-%d.json" % i)
        with open(script, "w") as f:
            json.dump({"turns": [{"text": "first"}, {"text": "second", "delay_ms": delay_ms}]}, f)
        ids.append(json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"])
    return ids


def until(is_so, seconds=30):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.05)


def fifty_active_runs_are_parked_and_continued():
    s = Server("--auto-resume", "all", "--jobs", "64", "--stop-within", "8s")
    ids = chats(s, 50, 2500)
    for one in ids:
        want(s.api("POST", "/sessions/%s/messages" % one, {"content": "and now?"}).status, 202)
    want(s.api("POST", "/sessions/%s/cancel" % ids[0], {"reason": "no more"}).status, 200)
    began = time.monotonic()
    want(s.stop(), 0)
    want(time.monotonic() - began < 8, True, "in time")
    for one in ids:
        kinds = [json.loads(line) for line in s.run("log", "show", one).stdout.splitlines()]
        want(sum(e["kind"] == "message.user" for e in kinds), 2)
        last = [e for e in kinds if e["kind"].startswith("run.")][-1]
        want((last["kind"], last.get("reason")) in (("run.completed", "completed"), ("run.completed", None), ("run.interrupted", "shutdown"))
             or (one == ids[0] and last["kind"] == "run.cancelled"), True, str(last))
    s.start()
    until(lambda: all(s.api("GET", "/sessions/" + one).json["status"] == "idle" for one in ids))
    outcomes = [s.api("GET", "/sessions/" + one).json["outcome"] for one in ids]
    want(outcomes, ["cancelled"] + ["completed"] * 49)
    for one in ids[1:]:
        said = [e["text"] for e in s.api("GET", "/sessions/%s/transcript" % one).json["entries"] if e["type"] == "assistant"]
        want(said, ["first", "second"])
    s.done()


def what_does_not_park_is_left_and_the_second_signal_ends_at_once():
    s = Server("--stop-within", "600ms")
    held = socket.create_connection(("127.0.0.1", s.port), timeout=10)
    held.sendall(b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                 b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{" % (s.port, s.token.encode()))
    began = time.monotonic()
    want(s.stop(), 0)
    want(time.monotonic() - began < 2, True, "in time")
    held.close()
    s.dir.cleanup()
    s = Server("--stop-within", "60s")
    s.process.send_signal(signal.SIGSTOP)  # so that both are there when it looks
    s.process.send_signal(signal.SIGTERM)
    s.process.send_signal(signal.SIGINT)
    s.process.send_signal(signal.SIGCONT)
    want(s.process.wait(10) in (0, -signal.SIGTERM, -signal.SIGINT), True)
    s.process.stderr.close()
    s.dir.cleanup()


case("what is unsafe or wrong is refused, and nothing is made", what_is_unsafe_or_wrong_is_refused_and_nothing_is_made)
case("a certificate that is no good is refused", a_certificate_that_is_no_good_is_refused)
case("a token file that others can read is refused", a_token_file_that_others_can_read_is_refused)
case("a second server is refused by name, and a killed one is in nobody's way",
     a_second_server_is_refused_by_name_and_a_killed_one_is_in_nobodys_way)
case("the unix socket is of this user alone", the_unix_socket_is_of_this_user_alone)
case("TLS has a key that stays and is pinned", tls_has_a_key_that_stays_and_is_pinned)
case("only the hosts and origins that are named are answered", only_the_hosts_and_origins_that_are_named_are_answered)
case("the settings limit what is sent", the_settings_limit_what_is_sent)
case("nobody asks or guesses without end", nobody_asks_or_guesses_without_end)
case("a full disk refuses new work and answers reads", a_full_disk_refuses_new_work_and_answers_reads)
case("a damaged session is named, and in nobody's way", a_damaged_session_is_named_and_in_nobodys_way)
case("what waited in memory is counted", what_waited_in_memory_is_counted)
case("fifty active runs are parked and continued", fifty_active_runs_are_parked_and_continued)
case("what does not park is left, and the second signal ends at once",
     what_does_not_park_is_left_and_the_second_signal_ends_at_once)
end()
