# SPDX-License-Identifier: Apache-2.0
# Every route with everything that can be wrong with a request, from the table that the server itself prints: each is refused by name,
# and nothing is half done.
import http.client
import json
import os
import re
import threading

from serving import case, end, want
from watched import Server

s = Server()
document = s.ask("GET", "/openapi.json").json
WRONG = {"string": [1, True, [], {}], "integer": ["x", 1.5, -1, 1e30, True, [], {}], "boolean": ["true", 1, [], {}],
         "object": ["x", 1, []], "array": ["x", {}, [1]],
         "string|integer": [1.5, 0, -1, True, [], {}]}
IN_QUERY = {"integer": ["x", "-1", "1.5", "", "99999999999999999999"], "boolean": ["maybe", "1", "TRUE"]}
UNTOLD = ("/api/v1/ws",)  # an upgrade: tests/server/websocket.py


def routes():
    for path, operations in document["paths"].items():
        for method, o in operations.items():
            if path not in UNTOLD:
                yield method.upper(), path, o


def schema_of(o):
    content = o.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema")


def type_of(schema):
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    kind = schema.get("type")
    return "|".join(kind) if isinstance(kind, list) else kind, schema


def a_body(schema):
    """The least that could be right."""
    examples = {"string": "x", "string|integer": "x", "integer": 1, "boolean": True, "object": {}, "array": []}
    return {name: examples.get(type_of(schema["properties"][name])[0]) for name in schema.get("required", [])}


def there():
    """What a request could have changed."""
    figures = s.ask("GET", "/metrics").bytes.decode()
    return [s.api("GET", "/store").json[k] for k in ("sessions", "events", "last_position")], \
        re.search(r"^tidemark_events_total (\d+)", figures, re.M).group(1), s.api("GET", "/tokens").json


def refused(answer, names, about):
    want(answer.status, 400, about)
    e = answer.json["error"]
    want((e["error"], e["detail"]["name"] in names, "\n" in e["message"]), ("INVALID", True, False), (about, e))


def ids(path, one="one"):
    return re.sub(r"\{[^}]*\}", "nothing", path.replace("{id}", one).replace("{task}", "t").replace("{digest}", "0" * 64))


def no_member_is_passed_over_or_taken_for_another():
    tried = 0
    for method, path, o in routes():
        schema = schema_of(o)
        if not schema:
            continue
        right = a_body(schema)
        for name, value in [("titel", 1), ("__proto__", {}), ("", 1), ("x" * 60, 1), ("id", "two")]:
            if name not in schema["properties"]:
                refused(s.ask(method, ids(path), dict(right, **{name: value})), (name or None,), (method, path, name[:20]))
                tried += 1
        for name, member in schema["properties"].items():
            kind, exact = type_of(member)
            wrong = WRONG.get(kind, []) + (["no such word"] if "enum" in exact else []) + (["../x", "", "x" * 65, "-x"] if "pattern" in exact else [])
            for value in wrong:
                if kind == "integer" and value == -1 and exact.get("minimum", 0) < 0:
                    continue
                refused(s.ask(method, ids(path), dict(right, **{name: value})), (name,), (method, path, name, value))
                tried += 1
        for name in schema.get("required", []):
            for body in ({k: v for k, v in right.items() if k != name}, dict(right, **{name: None})):
                refused(s.ask(method, ids(path), body), schema["required"], (method, path, "without " + name))
                tried += 1
    print("# %d bodies" % tried)
    want(tried > 500, True, tried)


def a_body_is_one_object_in_json():
    for method, path, o in routes():
        if not schema_of(o):
            continue
        for raw in (b"{", b"{} {}", b"[]", b"[{}]", b"null", b"1", b"\"x\"", b"{\"a\":}", b"{'a':1}", b"\xff\xfe", b"{\"a\":\"\xff\"}", b"\xef\xbb\xbf{}", b"{\"a\":\"\\ud800\"}",
                    b"{\"a\":" * 300 + b"1" + b"}" * 300, b"{\"a\":01}", b"{\"a\":NaN}", b"\0", b"{\"a\":1,}"):
            a = s.ask(method, ids(path), raw=raw, fields={"Content-Type": "application/json"})
            want((a.status, a.json["error"]["error"]), (400, "INVALID"), (method, path, raw[:30]))
        for kind in ("text/plain", "application/xml", "application/jsonp", "multipart/form-data"):
            want(s.ask(method, ids(path), raw=b"{}", fields={"Content-Type": kind}).status, 415, (method, path, kind))
        if schema_of(o).get("required"):
            want(s.ask(method, ids(path), raw=b"").status, 400, (method, path, "nothing"))
            want(s.ask(method, ids(path), raw=b"", fields={"Content-Type": "application/json"}).status, 400, (method, path, "nothing"))


def no_parameter_is_passed_over():
    tried = 0
    for method, path, o in routes():
        if "{" in path and method != "GET":
            continue  # a body's fields, above
        query = [p for p in o["parameters"] if p["in"] == "query"]
        body = a_body(schema_of(o)) if schema_of(o) else None
        refused(s.ask(method, ids(path) + "?nonsense=1", body), ("nonsense",), (method, path))
        for p in query:
            kind, exact = type_of(p["schema"])
            one = {"integer": "1", "boolean": "true"}.get(kind) or exact.get("enum", ["x"])[0]
            refused(s.ask(method, "%s?%s=%s&%s=%s" % (ids(path), p["name"], one, p["name"], one), body), (p["name"],), (method, path, p["name"], "twice"))
            for value in IN_QUERY.get(kind, []) + (["no-such-word", ""] if "enum" in exact else []) + ["%ff", "%00"]:
                if value == "-1" and exact.get("minimum", 0) < 0:
                    continue
                refused(s.ask(method, "%s?%s=%s" % (ids(path), p["name"], value), body), (p["name"], None if value in ("%00", "%ff") else p["name"]), (method, path, p["name"], value))
                tried += 1
    print("# %d parameters" % tried)
    want(tried > 60, True, tried)


def what_is_not_there_is_not_found():
    for method, path, o in routes():
        if "{" not in path:
            continue
        body = a_body(schema_of(o)) if schema_of(o) else None
        for one in ("nobody", "on", "o", "..%2f..%2fetc%2fpasswd", "%00", "one%00", "-x", "x" * 65, "%ff", "%c0%ae", "one%2e", "ONE"):
            address = re.sub(r"\{[^}]*\}", one, path)
            a = s.ask(method, address, body)
            if path.endswith("/tasks/{task}") and method in ("PUT", "PATCH"):
                want(a.status in (400, 404) or one in ("nobody", "on", "o", "ONE", "one%2e", "-x", "x" * 65), True, (method, address, a.status))
                continue
            want(a.status in (400, 404), True, (method, address, a.status, a.bytes[:100]))
            want(a.json["error"]["message"].count("\n"), 0)


def what_is_not_there_costs_little():
    """Whoever asks for sessions that are not there, even without a token, does not keep the server busy, however many there are."""
    t = Server()
    makers = [threading.Thread(target=lambda: [t.session() for _ in range(190)]) for _ in range(8)]
    for m in makers:
        m.start()
    for m in makers:
        m.join()
    ticks = lambda: sum(int(n) for n in open("/proc/%d/stat" % t.process.pid).read().rsplit(")", 1)[1].split()[11:13])
    before = ticks()
    c = http.client.HTTPConnection("127.0.0.1", t.port, timeout=20)
    for n in range(1000):
        c.request("GET", "/api/v1/sessions/nobody%d" % n, None, {"Authorization": "Bearer " + t.token})
        r = c.getresponse()
        r.read()
        want(r.status, 404)
    c.close()
    want((ticks() - before) / os.sysconf("SC_CLK_TCK") < 0.5, True, "%g s of processor time for 1,000 requests; it" % ((ticks() - before) / os.sysconf("SC_CLK_TCK")))
    t.done()


def positions_and_cursors_are_checked():
    for after in ("1", "99", "9223372036854775806", "9223372036854775807"):
        page = s.api("GET", "/sessions/one/log?after=" + after).json
        want((page["events"], page["last_seq"]), ([], int(after)))
    rows = [("/sessions/one/log?after=99", 200), ("/sessions/one/log?after=99999999999", 200), ("/sessions/one/state?at=99", 404), ("/sessions/one/usage?at=99", 404),
            ("/sessions/one/state?at=x", 404), ("/sessions/one/checkpoints/nothing", 404), ("/sessions?after=nonsense", 400), ("/sessions?after=%s" % ("9" * 400), 400),
            ("/sessions/one/runs/run_nothing", 404), ("/tasks/t/sessions/one", 404), ("/tasks/other/sessions/one", 404), ("/sessions/one/transcript?at=99", 400)]
    for path, status in rows:
        a = s.api("GET", path)
        want(a.status, status, (path, a.bytes[:200]))
    for value in ('"99"', "1", "W/\"1\"", "*", '"x"', '""', '"-1"', '"1", "2"'):
        a = s.api("POST", "/sessions/one/events", {"kind": "note"}, fields={"If-Match": value})
        want(a.status, 409 if value == '"99"' else 400, (value, a.bytes[:200]))
    for value in ("", "x" * 300, "\x01"):
        a = s.api("POST", "/sessions/one/checkpoints", {}, fields={"Idempotency-Key": value.encode("latin-1")})
        want(a.status, 400, value)


s.session(session_id="one")
before = there()
for test in (no_member_is_passed_over_or_taken_for_another, a_body_is_one_object_in_json, no_parameter_is_passed_over, what_is_not_there_is_not_found,
             positions_and_cursors_are_checked, what_is_not_there_costs_little):
    case(test.__name__.replace("_", " "), test)
case("nothing was changed by any of it", lambda: want(there(), before))
s.done()
end()
