# SPDX-License-Identifier: Apache-2.0
# docs/SERVER.md followed literally: its files, its commands and its answers, from top to bottom, on a real server. A route without an
# example fails, and so does an example of a route that there is not.
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from serving import BIN, CONSOLE_BIN, case, end, want

PAGE = os.path.join(os.environ["TIDE_SOURCE"], "docs", "SERVER.md")
MORE = "…"
SECONDS = 20  # that something which was started may take until a GET shows it

# What differs from one run to the next, each with its kind.
VARIES = re.compile(r"\b(?P<token>tide_[\w-]{43})|\b(?P<id>[a-z]+_[0-9A-Za-z]{20,}(?:\.[\w-]{43})?)|\b(?P<digest>[0-9a-f]{64}|[0-9a-f]{32})\b"
                    r"|(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}Z| UTC))|(?P<cursor>^\d{13}\.)|(?P<owner>\bowner-[0-9a-f]{8}\b)"
                    r"|(?P<place>/[^\s;\"']*?(?=/\.local/|/work\b|/tidemark/))|(?P<port>127\.0\.0\.1:\d+)"
                    r"|(?P<code>(?<![\w-])[\w-]{22}(?![\w-]))|(?P<signed_in>\bconsole-[a-z0-9]{4}\b)")


class Example:
    """A command, and what the page shows of its answer: of curl the status first, which ends the command as well."""

    def __init__(self, heading, text):
        self.heading, self.is_curl = heading, text.startswith("curl ")
        parts = re.split(r"^(\d{3})\n", text, maxsplit=1, flags=re.M) if self.is_curl else ["", "", ""]
        want(len(parts), 3, "a status below: %s; the parts" % text)
        if not self.is_curl:
            parts[0], _, parts[2] = text.partition("\n")
        self.command, self.status, self.shown = parts[0].rstrip("\n"), parts[1], parts[2]

    def request(self):
        """The method and the path of a curl line, without the query."""
        url = re.search(r"(?:http://[^/\s\"]+|\$API)(/[^\s\"?]*)", self.command)
        method = re.search(r" -X ([A-Z]+)", self.command)
        has_body = re.search(r" (-d|--data-binary) ", self.command)
        path = url.group(1) if "$API" not in self.command else "/api/v1" + url.group(1)
        return method.group(1) if method else "POST" if has_body else "GET", path


class Page:
    def __init__(self, text):
        self.files = re.findall(r"^`~/(\S+)`[^\n]*:\n\n```\w+\n(.*?)^```$", text, re.M | re.S)
        self.sections, self.examples = {}, []
        heading = ""
        for part in re.split(r"^(?=##+ )", text, flags=re.M):
            heading = part.split("\n", 1)[0].lstrip("# ")
            self.sections[heading] = part
            for block in re.findall(r"^```\n\$ (.*?)^```$", part, re.M | re.S):
                for text_of_one in re.split(r"^\$ ", block, flags=re.M):
                    self.examples.append(Example(heading, text_of_one))

    def serving(self):
        return next(e for e in self.examples if e.command == "tidemark serve")


class World:
    """A home with the files of the page, a server, and a curl that finds it behind the address of the page."""

    def __init__(self, page):
        self.temp = tempfile.TemporaryDirectory(prefix="tidemark-page-")
        self.home = self.temp.name
        for name, text in page.files:
            self.write(name, text, 0o700 if text.startswith("#!") else 0o600)
        os.makedirs(self.home + "/run", 0o700)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TIDEMARK_")) or k == "TIDEMARK_ORIGIN_KEY"}
        self.env = dict(kept, HOME=self.home, XDG_RUNTIME_DIR=self.home + "/run",
                        PATH=os.path.dirname(BIN) + ":" + os.environ["PATH"])
        self.setup = []  # what is no curl is done again before each: it sets variables
        self.server = subprocess.Popen([CONSOLE_BIN, "serve", "--listen", "127.0.0.1:0", "--host", "127.0.0.1:7007"], env=self.env,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = [self.server.stderr.readline() for _ in page.serving().shown.splitlines()]
        threading.Thread(target=self.server.stderr.read, daemon=True).start()  # what programs say
        self.port = re.search(r"127\.0\.0\.1:(\d+)", self.said[0]).group(1)
        self.write(".curlrc", 'silent\nshow-error\nmax-time = 30\nconnect-to = "127.0.0.1:7007:127.0.0.1:%s"\ndump-header = "%s/head"\n'
                   % (self.port, self.home), 0o600)

    def write(self, name, text, mode):
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)

    def status(self):
        with open(self.home + "/head") as f:
            return re.search(r"^HTTP/1\.1 (\d+)", f.read()).group(1)

    def start(self, command):
        try:
            os.remove(self.home + "/head")
        except FileNotFoundError:
            pass
        return subprocess.Popen(["bash", "-c", "\n".join([*self.setup, command])], env=self.env, cwd=self.home, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)

    def run(self, command):
        return self.start(command).communicate(timeout=60)[0]

    def follow(self, command, lines):
        """As much of an answer that does not end as the page shows of it."""
        p = self.start(command)
        timer = threading.Timer(SECONDS, os.killpg, (p.pid, signal.SIGKILL))
        timer.start()
        try:
            got = [p.stdout.readline() for _ in range(lines)]
            while not lines and "\n\n" not in self.head():
                time.sleep(0.02)
            return "".join(got)
        finally:
            timer.cancel()
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()

    def head(self):
        try:
            with open(self.home + "/head") as f:
                return f.read().replace("\r", "")
        except FileNotFoundError:
            return ""

    def done(self):
        self.server.send_signal(signal.SIGTERM)
        want(self.server.wait(20), 0, "the server's exit status")
        self.temp.cleanup()


class Likeness:
    """Whether an answer is what the page shows, but for what varies; and what ids of the page are in this run."""

    def __init__(self):
        self.known = {}

    def known_in(self, text):
        for shown, got in self.known.items():
            text = text.replace(shown, got)
        return text

    def text(self, shown, got, where):
        kinds = lambda t: VARIES.sub(lambda m: "<%s>" % m.lastgroup, t)
        want(kinds(got), kinds(shown), where)
        for s, g in zip(VARIES.finditer(shown), VARIES.finditer(got)):
            if s.lastgroup in ("id", "token", "digest", "code"):
                self.known[s.group()] = g.group()

    def value(self, shown, got, where):
        if shown == MORE:
            return
        want(type(got).__name__, type(shown).__name__, "the type of " + where)
        if isinstance(shown, dict):
            names = set(shown) - {MORE}
            want(set(got) & names if MORE in shown else set(got), names, "the members of " + where)
            for name in names:
                self.value(shown[name], got[name], where + "." + name)
        elif isinstance(shown, list):
            n = shown.index(MORE) if MORE in shown else len(shown)
            want(len(got) > n if MORE in shown else len(got), True if MORE in shown else n, "the length of " + where)
            for i in range(n):
                self.value(shown[i], got[i], "%s[%d]" % (where, i))
        elif isinstance(shown, str):
            self.text(shown, got, where)
        elif isinstance(shown, bool) or shown is None or where.endswith(".status"):
            want(got, shown, where)

    def body(self, shown, got):
        try:
            self.value(json.loads(shown), json.loads(got), "$")
        except ValueError:
            self.lines(shown.splitlines(), got.splitlines())

    def lines(self, shown, got):
        if shown and shown[-1] == MORE:
            want(len(got) >= len(shown), True, "there is more")
            shown = shown[:-1]
            got = got[:len(shown)]
        want(len(got), len(shown), "the lines of %r, their number" % got)
        for s, g in zip(shown, got):
            name, colon, data = s.partition(": ")
            if colon and data.startswith("{"):
                want(g.partition(": ")[0], name)
                self.value(json.loads(data), json.loads(g.partition(": ")[2]), name)
            elif name == "id":
                want(re.fullmatch(r"id: \d+", g) is not None, True, g)
            else:
                self.text(s, g, "a line")


page = Page(open(PAGE, encoding="utf-8").read())
world = World(page)
like = Likeness()


def attempt(e):
    """One example, once."""
    command = like.known_in(e.command)
    if " -N " in command:
        got = world.follow(command, len(e.shown.splitlines()))
    else:
        got = world.run(command)
    if e.is_curl:
        want(world.status(), e.status, "the status, with %r" % got[:400])
    like.body(e.shown, got)


def run(e):
    until = time.monotonic() + SECONDS
    while e.is_curl and e.request()[0] == "GET":
        try:
            return attempt(e)
        except (AssertionError, ValueError, KeyError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
    attempt(e)
    if not e.is_curl and not e.command.startswith("tidemark "):
        world.setup.append(e.command)
    return None


def every_example_does_what_the_page_shows():
    serving = page.serving()
    like.lines(serving.shown.splitlines(), [line.rstrip("\n") for line in world.said])
    for e in page.examples:
        if e is serving:
            continue
        try:
            run(e)
        except Exception as why:
            raise AssertionError("%s\n  $ %s\n  %s: %s" % (e.heading, e.command, type(why).__name__, why)) from why


def the_page_has_every_route_and_no_other():
    document = json.loads(world.run("curl -H @$HOME/auth http://127.0.0.1:7007/openapi.json"))
    routes = {"%s %s" % (method.upper(), path): o for path, ops in document["paths"].items() for method, o in ops.items()}
    headings = {h for h in page.sections if re.match(r"[A-Z]+ /", h)}
    want(sorted(headings - set(routes)), [], "sections about routes that there are not")
    want(sorted(set(routes) - headings), [], "routes without a section")
    for name, route in routes.items():
        section = page.sections[name]
        of_it = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(name)) + "$")
        want(any(of_it.match("%s %s" % e.request()) for e in page.examples if e.is_curl and e.heading == name), True, "an example of " + name)
        want(("Scope `%s`" % route["x-scope"] if "x-scope" in route else "No token") in section, True, "the scope of " + name)
        body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {}).get("properties", {})
        for field in [p["name"] for p in route["parameters"] if p["in"] == "query"] + list(body):
            want(re.search("`%s[`=]" % field, section) is not None, True, "%s of %s is explained, which" % (field, name))
    for e in page.examples:
        if e.is_curl:
            method, path = e.request()
            is_one = any(re.match(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(r)) + "$", "%s %s" % (method, path)) for r in routes)
            want(is_one, True, "%s %s, which the page asks, is a route, which" % (method, path))


def the_page_has_every_metric():
    metrics = re.findall(r"^# TYPE (\w+)", world.run("curl -H @$HOME/auth http://127.0.0.1:7007/metrics"), re.M)
    want(len(metrics) > 20, True)
    want([m for m in metrics if not re.search("`%s[`{]" % m, page.sections["GET /metrics"])], [], "metrics that are not explained")


case("every example of docs/SERVER.md does what the page shows", every_example_does_what_the_page_shows)
case("the page has every route, and no other", the_page_has_every_route_and_no_other)
case("the page has every metric", the_page_has_every_metric)
world.done()
end()
