# SPDX-License-Identifier: Apache-2.0
# What must not get in: each row has the answer that is expected. Everything is bytes on a socket, as an attacker would write them.
import os
import re
import socket
import struct
import threading
import time

from frames import handshake
from serving import CONSOLE_BIN, case, end, want
from watched import Server

s = Server(binary=CONSOLE_BIN)
CONSOLE = ("/", "/sessions/x", "/assets/page-4e5f6a7b.js", "/favicon.svg")
ALL_SCOPES = ("read", "answer", "write", "run", "admin")
INCLUDES = {"read": {"read"}, "answer": {"read", "answer"}, "write": {"read", "write"}, "run": {"read", "write", "run"},
            "admin": set(ALL_SCOPES)}


class Line:
    """One connection."""

    def __init__(self, port=None):
        self.s = socket.create_connection(("127.0.0.1", port or s.port), timeout=15)

    def send(self, data):
        self.s.sendall(data if isinstance(data, bytes) else data.encode("latin-1"))

    def read(self):
        """All that comes until the other end closes."""
        data = b""
        try:
            while True:
                more = self.s.recv(65536)
                if not more:
                    break
                data += more
        except OSError:
            pass
        return data

    def answer(self):
        """One answer: status, fields, body; status 0: closed without one."""
        data = b""
        while b"\r\n\r\n" not in data:
            try:
                more = self.s.recv(65536)
            except OSError:
                more = b""
            if not more:
                return 0, {}, data
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        while len(body) < int(fields.get("content-length", 0)):
            body += self.s.recv(65536)
        return int(lines[0].split()[1]), fields, body

    def close(self):
        self.s.close()


def raw(data, port=None):
    line = Line(port)
    try:
        line.send(data)
        return line.answer()
    except OSError:
        return 0, {}, b""
    finally:
        line.close()


def request(method, path, fields=(), body="", host=None, token=True):
    lines = ["%s %s HTTP/1.1" % (method, path)]
    if host is not False:
        lines.append("Host: %s" % (host or "127.0.0.1:%d" % s.port))
    if token:
        lines.append("Authorization: Bearer " + (s.token if token is True else token))
    return "\r\n".join([*lines, *fields]) + "\r\n\r\n" + body


def only_this_host_and_these_origins():
    p = s.port
    hosts = [
        (200, "127.0.0.1:%d" % p), (200, "localhost:%d" % p), (200, "LOCALHOST:%d" % p), (200, "[::1]:%d" % p),
        (421, "127.0.0.1"), (421, "localhost"), (421, "127.0.0.1:%d" % (p + 1)), (421, "127.0.0.1:0%d" % p),
        (421, "127.0.0.2:%d" % p), (421, "127.1:%d" % p), (421, "0.0.0.0:%d" % p), (421, "2130706433:%d" % p),
        (421, "0x7f000001:%d" % p), (421, "[::ffff:127.0.0.1]:%d" % p), (421, "[::1%%lo]:%d" % p), (421, "::1:%d" % p),
        (421, "localhost.:%d" % p), (421, "localhost.evil.example:%d" % p), (421, "evil.example"), (421, "evil.example:%d" % p),
        (421, "localhost:%d.evil.example" % p), (421, "evil.example#127.0.0.1:%d" % p), (421, "user@127.0.0.1:%d" % p),
        (421, "127.0.0.1:%d, evil.example" % p), (421, "127.0.0.1:%d/" % p), (421, "http://127.0.0.1:%d" % p), (421, "\"127.0.0.1:%d\"" % p),
    ]
    for status, host in hosts:
        want(raw(request("GET", "/api/v1/store", host=host))[0], status, host)
        for path in ("/healthz", *CONSOLE):
            want(raw(request("GET", path, host=host, token=False))[0], status, (path, host))
    want(raw(request("GET", "/healthz", host=False))[0], 400)
    want(raw(request("GET", "/healthz", ["Host: evil.example"]))[0], 400)  # two
    want(raw("GET /healthz HTTP/1.0\r\n\r\n")[0] in (400, 421), True)
    want(raw("GET http://127.0.0.1:%d/healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (p, p))[0], 400)
    origins = [
        (200, "http://127.0.0.1:%d" % p), (200, "http://localhost:%d" % p), (200, "http://[::1]:%d" % p),
        (403, "null"), (403, ""), (403, "http://127.0.0.1"), (403, "https://127.0.0.1:%d" % p), (403, "http://127.0.0.1:%d/" % p),
        (403, "http://127.0.0.1:%d.evil.example" % p), (403, "http://evil.example"), (403, "http://evil.example:%d" % p),
        (403, "http://127.0.0.1:%d http://evil.example" % p), (403, "http://evil.example http://127.0.0.1:%d" % p),
        (403, "file://"), (403, "chrome-extension://abc"), (403, "http://user@127.0.0.1:%d" % p), (403, "*"),
    ]
    for status, origin in origins:
        code, fields, _ = raw(request("GET", "/api/v1/store", ["Origin: " + origin]))
        want(code, status, origin)
        want([f for f in fields if f.startswith("access-control") or f == "set-cookie"], [], origin)
        for path in ("/healthz", *CONSOLE):
            code, fields, _ = raw(request("GET", path, ["Origin: " + origin], token=False))
            want((code, [f for f in fields if f.startswith("access-control") or f == "set-cookie"]), (status, []), (path, origin))
    want(len(hosts) + len(origins) >= 40, True)
    for fields in (["Access-Control-Request-Method: POST"], ["Access-Control-Request-Headers: authorization"]):  # a preflight
        code, got, _ = raw(request("OPTIONS", "/api/v1/sessions", ["Origin: http://127.0.0.1:%d" % p, *fields], token=False))
        want((code, [f for f in got if f.startswith("access-control")]), (401, []))


def what_a_page_can_send_unasked_is_refused():
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain;charset=application/json",
                 "application/jsonp", "application/json, text/plain", "", "application/x-ndjson"):
        a = raw(request("POST", "/api/v1/sessions", ["Content-Type: " + kind, "Content-Length: 2"], "{}"))
        want(a[0], 415, kind)
        code = s.api("POST", "/signin/codes").json["code"]
        want(raw(request("POST", "/api/v1/signin", ["Content-Type: " + kind, "Content-Length: %d" % (len(code) + 11)], '{"code":"%s"}' % code, token=False))[0], 415, kind)
    for origin in ("http://evil.example", "null"):
        want(raw(request("POST", "/api/v1/signin", ["Content-Type: application/json", "Content-Length: 35", "Origin: " + origin], '{"code":"%s"}' % code, token=False))[0], 403, origin)
    want(s.api("POST", "/signin", {"code": code}, token=False).status, 201)  # it was not used by any of them
    want(raw(request("POST", "/api/v1/sessions", ["Content-Length: 2"], "{}"))[0], 415)
    want(raw(request("POST", "/api/v1/sessions", ["Content-Type: application/json", "Content-Type: text/plain", "Content-Length: 2"], "{}"))[0], 400)
    n = len(s.api("GET", "/sessions").json["sessions"])
    want(raw(request("GET", "/api/v1/sessions", ["Cookie: token=" + s.token, "Cookie: bearer=" + s.token], token=False))[0], 401)
    want(len(s.api("GET", "/sessions").json["sessions"]), n)


def paths_stay_where_they_are():
    one = s.session()
    rows = ["/api/v1/sessions/../sessions", "/api/v1/sessions/%2e%2e/store", "/api/v1/sessions/..%2f..%2fetc%2fpasswd",
            "/api/v1/sessions/%00", "/api/v1/sessions/" + one + "%00", "/api/v1/sessions/" + one + "/", "/api/v1//sessions",
            "/api/v1/sessions/%", "/api/v1/sessions/%zz", "/api/v1/sessions/%c0%ae%c0%ae", "/api/v1/sessions/./" + one,
            "/API/V1/sessions", "/api/v1/sessions;x=1", "/api/v1/sessions/" + one + "%2fevents", "/..", "/../../etc/passwd",
            "/assets/../../etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "/assets/%2e%2e/index.html", "/assets//etc/passwd", "/assets/\\..\\x", "/assets/page-4e5f6a7b.js%00",
            "/sessions/../../etc/passwd", "/sessions/./x", "/sessions//x", "/tasks/..", "/graphs/", "/assets/page-4e5f6a7b.js/..", "/favicon.svg/", "/index.html",
            "/api/v1/sessions/\\..\\x", "/api/v1/sessions/" + "a" * 65, "/api/v1/sessions/-x", "/healthz/..", "/healthz%3f"]
    for path in rows:
        code, _, body = raw(request("GET", path))
        want(code in (400, 404), True, (path, code))
        want((b"root:" in body, b"<" in body), (False, False), path)
    for path in ("", "*", "api/v1/sessions", "//evil.example/api/v1/sessions", "/a b", "/\x7f", "/\xe9", "http://127.0.0.1/x"):
        want(raw(request("GET", path))[0] in (0, 400, 404, 505), True, path)


def a_token_is_never_in_an_address():
    for path in ("/api/v1/sessions?token=%s", "/api/v1/sessions?access_token=%s", "/api/v1/events?token=%s", "/api/v1/ws?bearer=%s", "/api/v1/sessions/%s"):
        want(raw(request("GET", path % s.token, token=False))[0], 401, path)
        want(raw(request("GET", path % s.token))[0] in (400, 404, 426), True, path)
    code = s.api("POST", "/signin/codes").json["code"]  # nor a code
    for path in ("/?code=%s", "/sessions?code=%s", "/api/v1/me?code=%s", "/api/v1/signin?code=%s", "/api/v1/signin/%s"):
        want(raw(request("GET", path % code, token=False))[0] in (200, 401), True, path)
        want(raw(request("POST", path % code, ["Content-Type: application/json", "Content-Length: 2"], "{}", token=False))[0] in (400, 401, 405), True, path)
    want(s.api("POST", "/signin", {"code": code}, token=False).status, 201)
    for field in ("Authorization: %s", "Authorization: Basic %s", "Authorization: bearer", "Authorization: Bearer", "Authorization: Bearer  ",
                  "Authorization: Bearer %s x", "Authorization: Bearer x%s", "Proxy-Authorization: Bearer %s", "X-Token: %s", "Cookie: token=%s"):
        want(raw(request("GET", "/api/v1/sessions", [field.replace("%s", s.token)], token=False))[0], 401, field)
    want(raw(request("GET", "/api/v1/sessions", ["Authorization: Bearer x"]))[0], 400)  # two
    want(raw(request("GET", "/api/v1/sessions", token=s.token[:-1]))[0], 401)
    want(raw(request("GET", "/api/v1/sessions", token=s.token.swapcase()))[0], 401)


def two_programs_read_a_request_alike():
    ok = "Content-Type: application/json"
    rows = [
        [ok, "Content-Length: 2", "Content-Length: 2"], [ok, "Content-Length: 2", "Content-Length: 20"],
        [ok, "Content-Length: 2, 2"], [ok, "Content-Length: +2"], [ok, "Content-Length: -2"], [ok, "Content-Length: 0x2"], [ok, "Content-Length: 2 "*2],
        [ok, "Content-Length: 99999999999999999999"], [ok, "Content-Length: two"],
        [ok, "Content-Length: 2", "Transfer-Encoding: chunked"], [ok, "Transfer-Encoding: chunked", "Content-Length: 2"],
        [ok, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], [ok, "Transfer-Encoding: chunked, identity"],
        [ok, "Transfer-Encoding: identity, chunked"], [ok, "Transfer-Encoding: gzip, chunked"], [ok, "Transfer-Encoding: xchunked"],
        [ok, "Transfer-Encoding : chunked"], [ok, "Transfer-Encoding:\x0bchunked"], [ok, " Transfer-Encoding: chunked"],
        [ok, "X: a\r\n Transfer-Encoding: chunked"], [ok, "X: a\r\n\tb"], [ok, "Content-Length : 2"], [ok, "Content-Length\t: 2"],
        [ok, "X: a\rTransfer-Encoding: chunked"], [ok, "X: a\x00b"], [ok, "X\x00: b"],
        [ok, ": x"], [ok, "no colon"], ["Host: a", ok], [ok, "X: \x01"],
    ]
    before = len(s.api("GET", "/sessions?limit=1000").json["sessions"])
    smuggled = "POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n%s\r\nContent-Length: 2\r\n\r\n{}" % (s.port, s.token, ok)
    for fields in rows:
        line = Line()
        line.send(request("POST", "/api/v1/sessions/x/events", fields, "0\r\n\r\n" + smuggled))
        line.s.shutdown(socket.SHUT_WR)
        answers = re.findall(rb"HTTP/1\.1 (\d+)", line.read())
        line.close()
        want(b"201" in answers, False, (fields, answers))
        want(all(a in (b"400", b"404", b"413", b"415", b"431", b"501") for a in answers), True, (fields, answers))
    want(len(s.api("GET", "/sessions?limit=1000").json["sessions"]), before)
    for head in ("GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n", "GET /healthz\r\n\r\n",
                 "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00" * 100):
        line = Line()
        line.send(head)
        line.s.shutdown(socket.SHUT_WR)
        got = line.read()
        line.close()
        want(got[:15] in (b"",) or got[9:12] in (b"400", b"421", b"505", b"501"), True, (head, got[:60]))
    line = Line()  # a line may end with LF alone (RFC 9112, 2.2): two lines, two requests, and the second has its own token
    line.send(request("POST", "/api/v1/sessions/x/events", [ok, "X: a\nTransfer-Encoding: chunked"], "0\r\n\r\n" +
                      smuggled.replace(s.token, "x").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")))
    want(re.findall(rb"HTTP/1\.1 (\d+)", line.read()), [b"400", b"401"])
    line.close()
    chunked = request("POST", "/api/v1/sessions", [ok, "Transfer-Encoding: chunked"])
    for chunks in ("g\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\r\n{}x\r\n0\r\n\r\n", "fffffffffffffffff\r\n{}", "2;" + "x" * 20000 + "\r\n{}\r\n0\r\n\r\n"):
        code = raw(chunked + chunks)[0]
        want(code in (0, 400, 413, 431, 500), True, (code, chunks[:20]))
    want(raw(chunked + "2\r\n{}\r\n0\r\n\r\n")[0], 201)


def what_is_too_big_is_refused():
    ok = "Content-Type: application/json"
    rows = [
        ((414, 431, 400), request("GET", "/api/v1/sessions?x=" + "y" * 40000)),
        ((431, 400), request("GET", "/api/v1/sessions", ["X: " + "y" * 40000])),
        ((431, 400), request("GET", "/api/v1/sessions", ["X%d: y" % i for i in range(500)])),
        ((413,), request("POST", "/api/v1/sessions", [ok, "Content-Length: 1000000000"])),
        ((413,), request("POST", "/api/v1/sessions", [ok, "Content-Length: 1100000"], '{"title":"%s"}' % ("x" * 1099988))),
        ((413,), request("POST", "/api/v1/sessions", [ok, "Transfer-Encoding: chunked"], "120000\r\n" + "x" * 0x120000 + "\r\n0\r\n\r\n")),
    ]
    for statuses, data in rows:
        want(raw(data)[0] in (*statuses, 0), True, data[:80])
    deep = '{"metadata":%s1%s}'
    for before, after in (('{"a":', "}"), ("[", "]")):
        for depth, status in ((10, (201, 400)), (200, (400,)), (100000, (400,))):
            body = deep % (before * depth, after * depth) if before != "[" else '{"metadata":{"a":%s1%s}}' % ("[" * depth, "]" * depth)
            want(s.api("POST", "/sessions", raw=body, fields={"Content-Type": "application/json"}).status in status, True, (before, depth))
    for body in ('{"title":"a","title":"b"}', '{"title":"\\ud800"}', '{"title":"\x00"}', "{" * 1000, '{"title":1e999999999}', "\ufeff{}", '{"title":"a\\u0000b"}'):
        want(s.api("POST", "/sessions", raw=body.encode(), fields={"Content-Type": "application/json"}).status, 400, body)


def one_connection_is_served_in_order():
    n = 50
    line = Line()
    line.send(request("GET", "/api/v1/store") * n + request("GET", "/nothing", ["Connection: close"]))
    got = re.findall(rb"HTTP/1\.1 (\d+)", line.read())
    want(got, [b"200"] * n + [b"404"])
    line.close()
    for _ in range(20):  # half closed: answered, or closed where the end was seen first; never anything else
        line = Line()
        line.send(request("GET", "/api/v1/store"))
        line.s.shutdown(socket.SHUT_WR)
        want(line.answer()[0] in (200, 0), True)
        line.close()
    for cut in (0, 1, 15, 60, -1):  # one that vanishes, at any place
        data = request("POST", "/api/v1/sessions", ["Content-Type: application/json", "Content-Length: 20"], '{"title":"cut"')
        line = Line()
        line.send(data[:cut or None])
        line.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
    want([r for r in s.api("GET", "/sessions?limit=1000").json["sessions"] if r["title"] == "cut"], [])


def slow_clients_hold_nothing():
    """A byte now and then: the head and the body have deadlines."""
    t = Server()
    t.kill()
    os.makedirs(t.dir.name + "/config/tidemark")
    t.write("config/tidemark/config.json", '{"server_head_timeout_ms":1000,"server_body_timeout_ms":2000}')
    t.start()
    lines = [Line(t.port) for _ in range(3)]
    lines[0].send("GET /healthz HT")
    lines[1].send("POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
                  "Content-Length: 1000\r\n\r\n{" % (t.port, t.token))
    lines[2].send(handshake(t.port, t.token)[:60])
    began = time.monotonic()
    ended = {}

    def drip(i, byte):
        while i not in ended and time.monotonic() < began + 10:
            try:
                lines[i].s.settimeout(0.1)
                try:
                    if lines[i].s.recv(1000) == b"":
                        ended[i] = time.monotonic() - began
                        break
                except socket.timeout:
                    pass
                lines[i].send(byte)
            except OSError:
                ended[i] = time.monotonic() - began

    threads = [threading.Thread(target=drip, args=(i, byte)) for i, byte in enumerate(("T", " ", "x"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want(sorted(ended), [0, 1, 2])
    want(ended[0] < 3 and ended[2] < 3 and 1.5 < ended[1] < 5, True, ended)
    t.done()


def guessing_does_not_help_and_does_not_lock_out():
    codes = [raw(request("GET", "/api/v1/store", token="tide_%043d" % i))[0] for i in range(600)]
    counts = {code: codes.count(code) for code in set(codes)}
    want(set(counts) <= {401, 429} and counts[401] < 500 and codes[0] == 401, True, counts)
    want(raw(request("GET", "/api/v1/store"))[0], 200)  # whoever has the right one is not kept out by others of this address
    with open(s.tokens_file) as f:
        stored = f.read()
    want(s.token in stored, False)


def every_route_wants_its_scope():
    document = s.ask("GET", "/openapi.json").json
    tokens = {scope: s.make_token("only-" + scope, scope) for scope in ALL_SCOPES}
    expired = s.make_token("expired", "admin", lives_ms=1)
    tried = 0
    for path, operations in document["paths"].items():
        for method, o in operations.items():
            address = re.sub(r"\{[^}]*\}", "nobody", path)
            fields = {"Content-Type": next(iter(o["requestBody"]["content"]))} if "requestBody" in o else {}
            scope = o.get("x-scope")
            if o["operationId"] == "me.end":
                tokens_of_it = {scope: s.make_token("ends-" + scope, scope) for scope in ALL_SCOPES}
            else:
                tokens_of_it = tokens
            for name, token in [*tokens_of_it.items(), (None, None), ("wrong", "tide_wrong"), ("expired", expired)]:
                if path == "/api/v1/events" and name in tokens:
                    continue  # a stream: it does not end
                data = request(method.upper(), address, ["%s: %s" % f for f in fields.items()] + ["Content-Length: 0", "Connection: close"], token=token)
                code = raw(data)[0]
                tried += 1
                if not scope:
                    want(code, 200 if method == "get" else 400, (method, path, name))  # no token is needed, a body is
                elif name in tokens and scope in INCLUDES[name]:
                    want(code not in (0, 401, 403, 405, 500), True, (method, path, name, code))
                else:
                    want(code, 403 if name in tokens else 401, (method, path, name))
    print("# %d routes and scopes" % tried)
    want(tried > 200, True)
    for name in tokens:
        s.revoke("only-" + name)
    want({raw(request("GET", "/api/v1/store", token=t))[0] for t in tokens.values()}, {401})


def kinds_of_events():
    with open(os.environ["TIDE_SOURCE"] + "/man/tidemark-events.7.scd") as f:
        lines = [line for line in f if re.match(r"\*[a-z_]+(\.[a-z_]+)?\*(,| \(|$)", line)]
    return sorted({kind for line in lines for kind in re.findall(r"\*(checkpoint|[a-z_]+\.[a-z_]+)\*", line)})


# What a body of each kind needs: what is refused must be refused for its kind.
BODIES = {"token": {"token_id": "t"}, "approval": {"approval_id": "a", "decision": "approved"}, "tool": {"call_id": "c"}, "queue": {"queue_id": "q"},
          "node": {"node": "n", "from": "n", "to": "m"}, "edge": {"to": "n"}, "notify": {"of_seq": 1}, "graph": {"digest": "f" * 64, "graph": {}},
          "message": {"content": "x", "tool_call_id": "c"}, "memory": {"values": {"a": 1}, "keys": ["a"]}, "output": {"values": {}},
          "run": {"run_id": "r", "argv": ["/bin/sh", "-c", "touch owned"], "wait_kind": "approval", "resumable": True},
          "checkpoint": {"checkpoint_id": "c", "type": "turn", "checkpoint_ids": ["c"]}, "session": {"to_seq": 1, "provider": {"base_url": "http://evil.example"}}}
DATA = ("message.", "llm.", "memory.", "output.set", "hook.fired", "context.trimmed")


def an_append_says_nothing_that_is_believed():
    """Whoever may write data may not write what a resume would run, or what answers for a person."""
    kinds = kinds_of_events()
    want(len(kinds) > 45 and {"run.started", "approval.given", "token.consumed", "session.updated"} <= set(kinds), True, kinds)
    writer = s.make_token("writes", "write")
    log = s.session(title="events alone")
    want(s.run("exec", "--session", "ran", "--", "true").returncode, 0)
    ran = "ran"
    for one, is_data in ((log, lambda kind: kind.startswith(DATA)), (ran, lambda kind: False)):
        before = s.api("GET", "/sessions/" + one).json["last_seq"]
        put = 0
        for token in (writer, True):  # whatever the token may do, an append is not the way
            for kind in [*kinds, "build.finished", "run.paused"]:
                body = {"kind": kind, "data": BODIES.get(kind.split(".")[0], {})}
                a = s.api("POST", "/sessions/%s/events" % one, body, token=token)
                allowed = is_data(kind) or kind in ("build.finished", "run.paused")
                put += allowed
                want(a.status in ((201,) if allowed else (400, 403)), True, (one, kind, a.status, a.bytes[:200]))
                if a.status == 403:
                    want((a.json["error"]["error"], a.json["error"]["detail"]["name"]), ("DENIED", "kind"))
        want(s.api("GET", "/sessions/" + one).json["last_seq"], before + put)
    a = s.api("POST", "/sessions/%s/resume" % log, {})
    want(a.status, 409, a.bytes)
    s.revoke("writes")


def a_request_names_no_scope():
    reader = s.make_token("reader", "read")
    for fields in (["X-Scope: admin"], ["Authorization-Scope: admin"], ["X-HTTP-Method-Override: DELETE"], ["X-Forwarded-For: 127.0.0.1"], ["X-Original-URL: /healthz"]):
        want(raw(request("POST", "/api/v1/sessions", ["Content-Type: application/json", "Content-Length: 2", *fields], "{}", token=reader))[0], 403, fields)
    a = s.api("POST", "/sessions", {"scopes": ["admin"]})
    want((a.status, a.json["error"]["detail"]["name"]), (400, "scopes"))


def nothing_of_it_is_said_to_others():
    for path, token in (("/api/v1/store", True), ("/api/v1/nothing", True), ("/api/v1/store", False), ("/healthz", False), *((path, True) for path in CONSOLE)):
        _, fields, body = raw(request("GET", path, token=token))
        want(s.token.encode() in body, False)
        want([f for f in fields if f in ("set-cookie", "server", "x-powered-by") or f.startswith("access-control")], [], path)
        if path not in ("/healthz", *CONSOLE):
            want(fields["content-type"].split(";")[0] in ("application/json", "application/problem+json"), True, fields)


cases = (only_this_host_and_these_origins, what_a_page_can_send_unasked_is_refused, paths_stay_where_they_are,
         a_token_is_never_in_an_address, two_programs_read_a_request_alike, what_is_too_big_is_refused,
         one_connection_is_served_in_order, every_route_wants_its_scope, an_append_says_nothing_that_is_believed, a_request_names_no_scope,
         nothing_of_it_is_said_to_others, slow_clients_hold_nothing, guessing_does_not_help_and_does_not_lock_out)
for test in cases:
    case(test.__name__.replace("_", " "), test)
want(s.process.poll(), None)
s.done()
end()
