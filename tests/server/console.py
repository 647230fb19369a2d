# SPDX-License-Identifier: Apache-2.0
# The console: how its files are served, by a client that is no browser, and signing in to it with a code.
import glob
import gzip
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time

from frames import Socket
from serving import BARE_BIN, BIN, CONSOLE_BIN, Answer, Stream, case, end, want
from watched import Server

FILES = os.path.join(os.environ["TIDE_SOURCE"], "tests/server/console")
PLACES = ["/", "/inbox", "/sessions", "/sessions/deploy", "/sessions/deploy/log", "/tasks", "/tasks/7", "/graphs", "/graphs/" + "0f" * 32,
          "/compare", "/start", "/access", "/torture", "/sessions?status=waiting", "/?x"]
SAFE = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".txt": "text/plain; charset=utf-8"}
IMMUTABLE = "public, max-age=31536000, immutable"
SCRIPT = "/assets/page-4e5f6a7b.js"

s = Server(binary=CONSOLE_BIN)


def get(path, method="GET", server=s, **fields):
    return server.ask(method, path, token=False, promised=path.startswith("/api"), fields={k.replace("_", "-"): v for k, v in fields.items()})


def content(name):
    with open(os.path.join(FILES, name), "rb") as f:
        return f.read()


def is_safe(a, about):
    want({k: a.fields.get(k) for k in SAFE}, SAFE, about)
    want([k for k in a.fields if k in ("set-cookie", "server", "x-powered-by") or k.startswith("access-control")], [], about)


def unzipped(a):
    return gzip.decompress(a.bytes) if a.fields.get("content-encoding") == "gzip" else a.bytes


def every_place_is_the_page():
    for path in PLACES:
        for encoding in ("gzip", None):
            a = get(path, **({"Accept_Encoding": encoding} if encoding else {}))
            want((a.status, a.fields["content-type"], a.fields["cache-control"]), (200, TYPES[".html"], "no-cache"), path)
            want(a.fields.get("content-encoding"), encoding, path)
            want(unzipped(a), content("index.html"), path)
            is_safe(a, path)


def what_is_no_place_is_not_the_page():
    for path in ("/inbox/", "/inbox/x", "/sessions/", "/sessions//x", "/sessions/.", "/sessions/..", "/sessions/../api/v1/sessions", "/sessions/x/../../y",
                 "//", "/index.html", "/Sessions", "/sessionsx", "/compare/x", "/start/", "/%73essions", "/assets", "/favicon.ico", "/.", "/.."):
        a = get(path)
        want((a.status, a.fields["content-type"]), (401, "application/problem+json"), path)
        want(b"<" in a.bytes, False, path)


def files_are_what_they_are():
    """Each by its own name, for good; compressed where that is smaller."""
    names = [os.path.relpath(os.path.join(d, n), FILES) for d, _, ns in os.walk(FILES) for n in ns]
    want(len(names) > 4, True)
    zipped = 0
    for name in names:
        path = "/" + name if name != "index.html" else "/"
        a, b = get(path, Accept_Encoding="gzip, deflate, br"), get(path)
        want((a.status, b.status), (200, 200), name)
        want((unzipped(a), b.bytes), (content(name), content(name)), name)
        want(a.fields["content-type"], TYPES[os.path.splitext(name)[1]], name)
        want(a.fields["cache-control"], IMMUTABLE if name.startswith("assets/") else "no-cache", name)
        is_safe(a, name)
        is_safe(b, name)
        if "content-encoding" in a.fields:
            zipped += 1
            want(len(a.bytes) < len(b.bytes), True, name)
            want((a.fields["vary"], b.fields["vary"]), ("Accept-Encoding", "Accept-Encoding"), name)
            want(a.fields["etag"] != b.fields["etag"], True, name)
        want("content-encoding" in b.fields, False, name)
    want(zipped >= 2, True, "files that are compressed, of which there are some,")


def who_takes_gzip():
    for accept, zipped in (("gzip", True), ("GZIP", True), ("br, gzip", True), ("gzip;q=0.5", True), ("gzip; q=1.0", True), ("*", True), ("br,*;q=0.1", True),
                           ("identity", False), ("br", False), ("gzip;q=0", False), ("gzip; q=0.000, *", False), ("*;q=0", False), ("xgzip", False),
                           ("", False), (",;,", False), ("gzip-x", False)):
        a = get("/", Accept_Encoding=accept)
        want((a.status, "content-encoding" in a.fields), (200, zipped), repr(accept))


def a_page_that_is_known_is_not_sent_again():
    for path in ("/", "/inbox", SCRIPT, "/favicon.svg"):
        for accept in ("gzip", "identity"):
            first = get(path, Accept_Encoding=accept)
            tag = first.fields["etag"]
            want(re.fullmatch(r'"[0-9a-f]{32}(-gzip)?"', tag) is not None, True, tag)
            for known in (tag, "W/" + tag, "*", '"x", %s' % tag, 'W/"x" ,W/%s' % tag):
                a = get(path, Accept_Encoding=accept, If_None_Match=known)
                want((a.status, a.bytes, a.fields["etag"]), (304, b"", tag), known)
                want(a.fields["cache-control"], first.fields["cache-control"])
                is_safe(a, path)
            for other in ('"x"', tag[:-2] + '"', tag.strip('"'), ""):
                want(get(path, Accept_Encoding=accept, If_None_Match=other).status, 200, other)


def a_head_is_a_get_without_its_body():
    for path in ("/", "/sessions/x", SCRIPT, "/assets/gone-00000000.js"):
        a, b = get(path), get(path, "HEAD")
        drop = lambda f: {k: v for k, v in f.items() if k != "date"}
        want((b.status, b.bytes, drop(b.fields)), (a.status, b"", drop(a.fields)), path)


def other_methods_are_refused():
    for path in ("/", "/inbox", "/sessions/x", SCRIPT, "/assets/gone.js", "/favicon.svg"):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            a = get(path, method)
            want((a.status, a.fields["allow"]), (405, "GET, HEAD"), (method, path))
            is_safe(a, path)


def a_file_of_another_version_is_not_found():
    """Never the page in its place: a script that is HTML would be an error that nobody understands, and would be kept for a year."""
    for path in ("/assets/page-00000000.js", "/assets/", "/assets/page-4e5f6a7b.js.map", "/assets/../index.html", "/assets/..%2findex.html",
                 "/assets/%70age-4e5f6a7b.js", "/assets//page-4e5f6a7b.js", "/assets/page-4e5f6a7b.js/", "/assets/../../etc/passwd", "/assets/PAGE-4e5f6a7b.js"):
        a = get(path)
        want((a.status, a.fields["content-type"], a.fields["cache-control"]), (404, "text/plain; charset=utf-8", "no-store"), path)
        want((b"<" in a.bytes, b"root:" in a.bytes, b"Load the page again" in a.bytes), (False, False, True), path)
        is_safe(a, path)


def the_rules_of_host_and_origin_are_the_same():
    for path in ("/", "/inbox", SCRIPT, "/favicon.svg"):
        want(get(path, Host="evil.example").status, 421, path)
        want(get(path, Host="localhost:%d" % s.port).status, 200, path)
        want(get(path, Origin="http://evil.example").status, 403, path)
        want(get(path, Origin="http://127.0.0.1:%d" % s.port).status, 200, path)
        want(get(path, Authorization="Bearer x").status, 200, path)


def the_api_is_as_it_was():
    want(s.api("GET", "/sessions").status, 200)
    for path in ("/api/v1", "/api", "/nothing"):
        want((get(path).status, s.ask("GET", path).status), (401, 404), path)
    want(get("/healthz").bytes, b"ok\n")


def a_build_without_a_console_says_so():
    bare = Server(binary=BARE_BIN)
    for path in [*PLACES, SCRIPT, "/favicon.svg"]:
        a = get(path, server=bare)
        want((a.status, a.fields["content-type"], a.bytes.count(b"\n")), (404, "text/plain; charset=utf-8", 1), path)
        want(b"no console" in a.bytes and b"Node" in a.bytes and b"make build" in a.bytes, True, a.bytes)
        is_safe(a, path)
    want(get("/", "POST", server=bare).status, 405)
    want(bare.api("GET", "/sessions").status, 200)
    want(bare.api("POST", "/signin/codes").json["url"], None)
    said = bare.run("console")
    want((said.returncode, said.stdout), (2, ""), said.stderr)
    want("no console" in said.stderr, True, said.stderr)
    want("Node" in bare.said("no console"), True)
    bare.done()


def this_build_keeps_its_own_rules():
    """Whatever this build has: what its page loads is there, from nowhere else, and nothing is written into the page itself."""
    one = Server(binary=BIN)
    page = get("/", server=one)
    if page.status == 404:
        print("# this build has no console")
        return one.done()
    html = page.bytes.decode()
    loads = re.findall(r"""(?:src|href)=["']([^"']*)""", html)
    want(len(loads) > 1, True, html)
    total = len(get("/", server=one, Accept_Encoding="gzip").bytes)
    for path in loads:
        a = get(path, server=one, Accept_Encoding="gzip")
        want((path[0], path[:2] == "//", a.status), ("/", False, 200), path)
        total += len(a.bytes)
    want(re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|<base|https?://", html), [], html)
    want(total < 250 * 1024, True, "%d bytes that the page loads first, which is less than 250 KB," % total)
    return one.done()


# ---- signing in ----


def code_of(answer):
    want(answer.status, 201, answer.bytes)
    return answer.json["code"]


def new_code(**body):
    return code_of(s.api("POST", "/signin/codes", body))


def sign_in(code, server=s, token=False, **more):
    return server.api("POST", "/signin", dict(code=code, **more), token=token)


def signed_in(**body):
    a = sign_in(new_code(**body))
    want(a.status, 201, a.bytes)
    return a.json


def tokens():
    with open(s.tokens_file) as f:
        return {t["name"]: t for t in json.load(f)["tokens"]}


def a_code_becomes_a_token_once():
    made = s.api("POST", "/signin/codes")
    want(sorted(made.json), ["code", "expires_at", "url"])
    code = made.json["code"]
    want(made.json["url"], "http://127.0.0.1:%d/#code=%s" % (s.port, code))
    want(re.fullmatch(r"[A-Za-z0-9_-]{22}", code) is not None, True, code)
    a = sign_in(code)
    want(a.status, 201, a.bytes)
    want(re.fullmatch(r"console-[a-z0-9]{4}", a.json["name"]) is not None, True, a.json)
    want((a.json["scopes"], a.json["signed_in"], a.json["token"][:5]), (["read", "answer", "write", "run", "admin"], True, "tide_"))
    lives = time.mktime(time.strptime(a.json["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.gmtime())
    want(12 * 3600 - 60 < lives <= 12 * 3600 + 1, True, lives)
    want(a.fields["cache-control"], "no-store")
    want(s.api("GET", "/sessions", token=a.json["token"]).status, 200)
    for _ in range(3):
        again = sign_in(code)
        want((again.status, again.json["error"]["error"]), (410, "DENIED"))
    want(len([1 for t in tokens().values() if t.get("signed_in")]), 1)


def of_many_who_use_it_at_once_one_gets_in():
    code, got = new_code(), []
    threads = [threading.Thread(target=lambda: got.append(sign_in(code).status)) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    want(sorted(got), [201] + [410] * 11)


def what_is_no_code_is_refused():
    for code in ("x", "A" * 22, s.token, new_code() + "x", new_code()[:-1], "ä"):
        a = sign_in(code)
        want((a.status, a.fields.get("www-authenticate")), (401, "Bearer"), code)
    for body in ({}, {"code": ""}, {"code": 1}, {"code": None}, {"code": "x", "scopes": "admin"}, {"code": "a\0b"}, []):
        a = s.api("POST", "/signin", body, token=False)
        want(a.status in (400, 401), True, (body, a.status))
        want(a.status == 401, body == {"code": ""}, body)
    want(s.ask("POST", "/api/v1/signin", token=False, raw="code=x", fields={"Content-Type": "application/x-www-form-urlencoded"}).status, 415)
    want(get("/api/v1/signin?code=x").status, 401)  # no route: a code is not in an address


def codes_cannot_be_guessed():
    g = Server(binary=CONSOLE_BIN)
    statuses = [sign_in("%022d" % i, g).status for i in range(600)]
    want(set(statuses), {401, 429})
    want(statuses.count(401) < 500 and statuses[0] == 401, True, statuses.count(401))
    want(sign_in(code_of(g.api("POST", "/signin/codes")), g).status, 201)  # who has one gets in all the same
    want(g.api("GET", "/sessions", token="tide_wrong").status in (401, 429), True)
    g.done()


def a_code_never_allows_more_than_who_made_it():
    reader, both = s.make_token("reads", "read"), s.make_token("answers", "answer,write")
    a = sign_in(code_of(s.api("POST", "/signin/codes", token=reader)))
    want(a.json["scopes"], ["read"])
    want(s.api("POST", "/sessions", {}, token=a.json["token"]).status, 403)
    for token, scopes, status in ((reader, "read", 201), (reader, "answer", 403), (reader, "read,answer", 403), (reader, "admin", 403), (both, "answer", 201),
                                  (both, "run", 403), (both, "read write", 201), (True, "admin", 201), (True, "all", 400), (True, "", 400), (True, "read,x", 400)):
        got = s.api("POST", "/signin/codes", {"scopes": scopes}, token=token)
        want(got.status, status, (scopes, got.bytes))
        if status != 201:
            want(got.json["error"]["detail"]["name"], "scopes")
    want(sign_in(new_code(scopes="answer")).json["scopes"], ["read", "answer"])
    want(s.api("POST", "/signin/codes", token=False).status, 401)
    for name in ("reads", "answers"):
        s.revoke(name)


def what_was_signed_in_ends_with_what_allowed_it():
    """Whoever stole a token has nothing left when it is revoked or replaced; and nothing outlives it."""
    s.append(s.session())
    for how in ("revoke", "rotate"):
        above = s.make_token("above", "read")
        one = sign_in(code_of(s.api("POST", "/signin/codes", token=above))).json
        two = sign_in(code_of(s.api("POST", "/signin/codes", token=one["token"]))).json
        other = signed_in()
        late = code_of(s.api("POST", "/signin/codes", token=one["token"]))
        want([s.api("GET", "/sessions", token=t["token"]).status for t in (one, two, other)], [200] * 3)
        stream = Follow(two["token"])
        stream.wait(lambda r: r.got)
        want(s.run("access", how, "above").returncode, 0)
        want([s.api("GET", "/sessions", token=t["token"]).status for t in (one, two, other)], [401, 401, 200], how)
        want(sign_in(late).status, 403, how)
        stream.wait(lambda r: r.over, 5)
        stream.close()
        s.run("access", "revoke", "above")
    short = s.make_token("short", "read", lives_ms=3600000)
    a = sign_in(code_of(s.api("POST", "/signin/codes", token=short)))
    row = tokens()[a.json["name"]]
    want(row["expires_ms"] <= tokens()["short"]["expires_ms"], True, row)
    s.revoke("short")  # behind the server's back
    want(s.api("GET", "/me", token=a.json["token"]).status, 401)


class Follow(Stream):
    """A stream of another token."""

    def __init__(self, token):
        own, s.token = s.token, token
        try:
            super().__init__(s, "/events?after=0")
        finally:
            s.token = own


def names_are_kept_and_a_taken_one_leaves_the_code():
    code = new_code()
    taken = signed_in()["name"]
    for name, status in ((taken, 409), ("a b", 400), ("local", 400), ("x" * 65, 400)):
        a = sign_in(code, name=name)
        want((a.status, a.json["error"]["detail"]["name"]), (status, "name"), name)
    a = sign_in(code, name="ada-phone")
    want((a.status, a.json["name"]), (201, "ada-phone"))
    want(sign_in(code).status, 410)
    one = s.api("POST", "/sessions", {"title": "by a page"}, token=a.json["token"]).json["session_id"]
    want(s.api("GET", "/sessions/%s/log" % one).json["events"][0]["by"], "ada-phone")
    s.revoke("ada-phone")


def expired_ones_are_swept():
    old, kept = signed_in()["name"], signed_in()["name"]
    s.make_token("by-hand", "read")

    def expire(rows):
        for t in rows:
            if t["name"] in (old, "by-hand"):
                t["expires_ms"] = 1

    s.change_tokens(expire)
    want(s.api("GET", "/me").status, 200)
    new = signed_in()["name"]
    names = tokens()
    want((old in names, kept in names, new in names, "by-hand" in names), (False, True, True, True))
    s.revoke("by-hand")


def there_is_an_end_to_codes_and_tokens():
    t = Server(binary=CONSOLE_BIN)
    want(sign_in(re.search("#code=([\\w-]+)", t.said("console: ")).group(1), t).status, 201)
    code = lambda token: t.api("POST", "/signin/codes", token=token)
    makers = [t.make_token("maker%d" % i, "read,answer") for i in range(5)]
    for token in makers[:4]:
        codes = [code_of(code(token)) for _ in range(6)]
        want([sign_in(c, t).status for c in codes[:2]], [410, 410], "the oldest two of six, which made room,")
    refused = code(makers[4])
    want((refused.status, refused.json["error"]["error"], refused.fields["retry-after"]), (429, "BUSY", "1"))
    owners = code_of(code(True))  # who may do everything is not kept out by others
    want([sign_in(c, t).status for c in (owners, codes[-1])], [201, 201])
    want(code(makers[4]).status, 201)
    end_ms = int(time.time() * 1000) + 3600000
    t.change_tokens(lambda rows: rows.extend({"name": "filled%d" % i, "id": "%016x" % i, "hash": "%064x" % i, "scopes": ["read"], "created_ms": 1,
                                              "expires_ms": end_ms, "signed_in": True} for i in range(256)))
    last = code_of(code(True))
    a = sign_in(last, t)
    want((a.status, a.json["error"]["error"]), (503, "BUSY"))
    want(t.run("access", "revoke", "filled7").returncode, 0)
    t.run("access", "revoke", "filled8")
    t.run("access", "revoke", "filled9")
    t.run("access", "revoke", "filled10")
    want(sign_in(last, t).status, 201)
    t.done()


def who_i_am():
    mine = signed_in(scopes="read,answer")
    a = s.api("GET", "/me", token=mine["token"])
    want((a.json["name"], a.json["scopes"], a.json["expires_at"], a.json["is_local"], a.json["revocable"]),
         (mine["name"], ["read", "answer"], mine["expires_at"], False, True))
    want((a.json["version"], a.json["store"]), (s.run("--version").stdout.split()[-1], {"url": s.api("GET", "/me").json["store"]["url"], "kind": "sqlite"}))
    want(s.store in a.json["store"]["url"], True)
    a = s.api("GET", "/me")
    want((a.json["expires_at"], a.json["is_local"], a.json["revocable"]), (None, False, False))
    local = over_unix("GET", "/api/v1/me")
    want((local.json["name"], local.json["is_local"], local.json["revocable"]), ("local", True, False))
    want(get("/api/v1/me").status, 401)


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(glob.glob(s.dir.name + "/tidemark/server*.sock")[0])


def over_unix(method, path):
    c = Unix("localhost")
    c.request(method, path)
    a = Answer(c.getresponse())
    c.close()
    return a


def whoever_signs_out_is_out():
    mine = signed_in()
    below = sign_in(code_of(s.api("POST", "/signin/codes", token=mine["token"]))).json
    web = Socket(s, token=mine["token"])
    want(s.api("DELETE", "/me", token=mine["token"]).status, 204)
    want([s.api("GET", "/me", token=t["token"]).status for t in (mine, below)], [401, 401])
    web.wait(lambda w: w.closed)
    want(web.closed, 1008)
    web.close()
    want(s.api("DELETE", "/me").status, 403)  # of this user's commands
    want(s.api("GET", "/me").status, 200)
    want(over_unix("DELETE", "/api/v1/me").status, 403)
    byhand = s.make_token("hand", "read")
    want(s.api("DELETE", "/me", token=byhand).status, 204)
    want("hand" in tokens(), False)


def a_repeated_request_is_not_shown_it_again():
    key = {"Idempotency-Key": "the-same"}
    a, b = [s.api("POST", "/signin/codes", fields=key) for _ in range(2)]
    want((a.status, b.status, "code" in b.json, b.json["url"]), (201, 201, False, None))
    c, d = [s.api("POST", "/signin", {"code": a.json["code"]}, token=False, fields=key) for _ in range(2)]
    want((c.status, d.status, c.json["name"], "token" in d.json), (201, 201, d.json["name"], False))
    secrets = [a.json["code"], c.json["token"]]
    for d, _, names in os.walk(s.dir.name):
        for name in names:
            try:
                with open(os.path.join(d, name), "rb") as f:
                    data = f.read()
            except OSError:  # a socket
                continue
            want([x for x in secrets if x.encode() in data], [], name)


def over_a_websocket_as_well():
    web = Socket(s)
    made = web.ask("signin.code", {"scopes": "read"})["payload"]
    token = web.ask("signin.use", {"code": made["code"]})["payload"]
    want(token["scopes"], ["read"])
    want(web.ask("signin.use", {"code": made["code"]})["type"], "error")
    want(web.ask("me.get", {})["payload"]["is_local"], False)
    web.close()


# ---- commands ----


def the_server_prints_a_url_and_nothing_else_of_it():
    t = Server("--verbose", binary=CONSOLE_BIN)
    line = t.said("console: ")
    m = re.search(r"console: (http://127\.0\.0\.1:%d/)#code=([\w-]{22}) \(once, within one minute; `(tidemark .*console)` makes another\)" % t.port, line)
    want(m is not None, True, line)
    want(get("/", server=t).status, 200)
    a = sign_in(m.group(2), t)
    want((a.status, a.json["scopes"]), (201, ["read", "answer", "write", "run", "admin"]))
    want(sign_in(m.group(2), t).status, 410)
    want(t.api("GET", "/me", token=a.json["token"]).status, 200)
    url = t.run("console")
    want((url.returncode, url.stderr, url.stdout.startswith(m.group(1) + "#code=")), (0, "", True), url.stdout)
    code = url.stdout.strip().split("#code=")[1]
    want(sign_in(code, t).status, 201)
    t.process.terminate()
    rest = t.process.stderr.read()
    t.process.wait(20)
    for secret in (m.group(2), a.json["token"], code):
        want(secret in rest, False, rest)
    t.done()


class Kept:
    """A server whose standard error goes elsewhere than to whoever looks now."""

    def __init__(self, server, stderr, **env):
        self.process = subprocess.Popen([CONSOLE_BIN, "--store", server.store, "serve", "--listen", "127.0.0.1:0"], env=dict(server.env, **env), stderr=stderr,
                                        stdin=subprocess.DEVNULL)

    def line(self, path):
        """What it said of the console."""
        until = time.monotonic() + 20
        while True:
            with open(path) as f:
                lines = [line for line in f if "console" in line and line.endswith("\n")]
            if lines:
                break
            want(time.monotonic() < until and self.process.poll() is None, True, "in time")
            time.sleep(0.02)
        self.end()
        return lines[0]

    def end(self):
        self.process.terminate()
        self.process.wait(20)


ALONE = r"tidemark: console: http://127\.0\.0\.1:\d+/ \(`tidemark .*console` prints a URL that signs in\)\n"


def what_is_kept_has_no_code():
    """A file, or the log of a service manager."""
    t = Server(binary=CONSOLE_BIN)
    t.stop()
    path = t.dir.name + "/said"
    with open(path, "w") as said:
        line = Kept(t, said).line(path)
    want(re.fullmatch(ALONE, line) is not None, True, line)
    for is_journal in (True, False):
        ours, theirs = socket.socketpair()
        st = os.fstat(theirs.fileno())
        p = Kept(t, theirs, JOURNAL_STREAM="%d:%d" % (st.st_dev, st.st_ino + (0 if is_journal else 1)))
        theirs.close()
        with ours.makefile() as f:
            line = next(line for line in f if "console" in line)
        p.end()
        ours.close()
        want(re.fullmatch(ALONE, line) is not None, is_journal, line)
        want("#code=" in line, not is_journal, line)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(t.dir.name + "/notify")
    p = subprocess.Popen([CONSOLE_BIN, "--store", t.store, "serve", "--listen", "127.0.0.1:0"], env=dict(t.env, NOTIFY_SOCKET=t.dir.name + "/notify"),
                         stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    line = next(line for line in p.stderr if "console" in line)
    p.terminate()
    p.wait(20)
    p.stderr.close()
    manager.close()
    want(re.fullmatch(ALONE, line) is not None, True, line)
    t.done()


def the_command_asks_the_server_of_the_store():
    narrow = s.run("console", "--scopes", "read,answer", "--json")
    made = json.loads(narrow.stdout)
    want(sign_in(made["code"]).json["scopes"], ["read", "answer"])
    want((s.run("console", "--scopes", "all").returncode, s.run("console", "--scopes", "").returncode, s.run("console", "x").returncode), (2, 2, 2))
    by_url = subprocess.run([CONSOLE_BIN, "--server", "http://127.0.0.1:%d" % s.port, "console"], env=dict(s.env, TIDEMARK_TOKEN=s.make_token("asks", "read")),
                            capture_output=True, text=True)
    want(by_url.returncode, 0, by_url.stderr)
    want(sign_in(by_url.stdout.strip().split("#code=")[1]).json["scopes"], ["read"])
    s.revoke("asks")
    nobody = subprocess.run([CONSOLE_BIN, "--store", s.dir.name + "/other.db", "console"], env=s.env, capture_output=True, text=True)
    want((nobody.returncode, nobody.stdout, "no server serves this store" in nobody.stderr), (3, "", True), nobody.stderr)
    want("serve" in nobody.stderr and os.path.exists(s.dir.name + "/other.db"), False)


def a_server_that_was_killed_is_missing():
    t = Server(binary=CONSOLE_BIN)
    t.kill()
    gone = t.run("console")
    want((gone.returncode, gone.stdout, "no server answers there" in gone.stderr), (6, "", True), gone.stderr)
    t.start()
    want(t.run("console").returncode, 0)
    t.done()


def a_browser_finds_the_url_in_a_file():
    """Arguments can be seen by every user of the machine."""
    tools = s.dir.name + "/tools"
    os.mkdir(tools)
    with open(tools + "/xdg-open", "w") as f:
        f.write('#!/bin/sh\necho "$@" >%s/new && mv %s/new %s/opened\n' % (tools, tools, tools))
    os.chmod(tools + "/xdg-open", 0o700)
    env = dict(s.env, PATH=tools + ":" + s.env["PATH"])
    p = subprocess.run([CONSOLE_BIN, "--store", s.store, "console", "--open"], env=env, capture_output=True, text=True)
    want((p.returncode, p.stderr, p.stdout.count("\n")), (0, "", 1), p.stderr)
    until = time.monotonic() + 20
    while not os.path.exists(tools + "/opened"):
        want(time.monotonic() < until, True, "in time")
        time.sleep(0.02)
    path = open(tools + "/opened").read().strip()
    want(("#code=" in path, os.stat(path).st_mode & 0o777), (False, 0o600), path)
    url = p.stdout.strip()
    want('content="0; url=%s"' % url in open(path).read(), True)
    want(sign_in(url.split("#code=")[1]).status, 201)
    p = subprocess.run([CONSOLE_BIN, "--store", s.store, "console", "--open"], env=dict(env, PATH="/nonexistent"), capture_output=True, text=True)
    want((p.returncode, p.stdout.count("#code="), "xdg-open" in p.stderr), (0, 1, True), p.stderr)


for test in (every_place_is_the_page, what_is_no_place_is_not_the_page, files_are_what_they_are, who_takes_gzip, a_page_that_is_known_is_not_sent_again,
             a_head_is_a_get_without_its_body, other_methods_are_refused, a_file_of_another_version_is_not_found, the_rules_of_host_and_origin_are_the_same,
             the_api_is_as_it_was, a_build_without_a_console_says_so, this_build_keeps_its_own_rules, a_code_becomes_a_token_once,
             of_many_who_use_it_at_once_one_gets_in, what_is_no_code_is_refused, codes_cannot_be_guessed, a_code_never_allows_more_than_who_made_it,
             what_was_signed_in_ends_with_what_allowed_it, names_are_kept_and_a_taken_one_leaves_the_code, expired_ones_are_swept,
             there_is_an_end_to_codes_and_tokens, who_i_am, whoever_signs_out_is_out, a_repeated_request_is_not_shown_it_again, over_a_websocket_as_well,
             the_server_prints_a_url_and_nothing_else_of_it, what_is_kept_has_no_code, the_command_asks_the_server_of_the_store,
             a_server_that_was_killed_is_missing, a_browser_finds_the_url_in_a_file):
    case(test.__name__.replace("_", " "), test)
s.done()
end()
