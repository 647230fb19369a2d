# SPDX-License-Identifier: Apache-2.0
# Sessions in and out as streams of any size; recovery; the doctor.
import http.client
import json
import os
import socket
import time

from serving import Server, case, end, want

s = Server()
LINES = {"Content-Type": "application/x-ndjson"}


def memory(server):
    """Resident KiB that are the process's own: not pages of files that are mapped."""
    with open("/proc/%d/status" % server.process.pid) as f:
        return int([line for line in f if line.startswith("RssAnon:")][0].split()[1])


def upload(server, data, token=True, fields=None):
    return server.api("POST", "/import", raw=data, token=token, fields=dict(LINES, **(fields or {})))


def what_goes_out_comes_in():
    one = s.session(title="to export")
    s.append(one, 20)
    a = s.api("GET", "/sessions/%s/export" % one)
    want((a.status, a.fields["content-type"]), (200, "application/x-ndjson"))
    want(a.bytes.decode(), s.run("sessions", "export", one).stdout)
    want(upload(s, a.bytes).status, 409)
    other = Server()
    b = upload(other, a.bytes, fields={"Idempotency-Key": "in"})
    want((b.status, b.json["session_id"], b.fields["location"]), (201, one, "/api/v1/sessions/" + one))
    want(upload(other, a.bytes, fields={"Idempotency-Key": "in"}).bytes, b.bytes)
    want(upload(other, a.bytes[:-10], fields={"Idempotency-Key": "in"}).status, 409)
    want(other.api("GET", "/sessions/%s/export" % one).bytes, a.bytes)
    v = other.api("GET", "/sessions/%s/verify" % one)
    want((v.status, v.json["ok"]), (200, True))
    want(other.api("GET", "/sessions/nobody/verify").status, 404)
    other.done()


def what_came_from_elsewhere_does_not_run():
    s.run("exec", "--session", "waits", "--", "sh", "-c", "tidemark wait go --kind approval --question 'go?'")
    text = s.api("GET", "/sessions/waits/export").bytes
    other = Server()
    want(upload(other, text).status, 201)
    want(other.api("POST", "/sessions/waits/answer", {"input": "yes"}).status, 403)
    other.done()


def bad_uploads_leave_nothing():
    one = s.session()
    s.append(one, 5)
    text = s.api("GET", "/sessions/%s/export" % one).bytes
    want(s.api("DELETE", "/sessions/" + one).status, 200)
    for what, data, status in (("empty", b"", 400), ("no JSON", b"hello\n", 400), ("cut", text[:-30], 400),
                               ("changed", text.replace(b'"n":3', b'"n":4'), 500), ("twice", text + text, 400)):
        got = upload(s, data).status
        want(got >= 400, True, what)
        want(s.api("GET", "/sessions/" + one).status, 404, what)
    want(s.api("POST", "/import", raw=text, fields={"Content-Type": "application/json"}).status, 415)
    reader = s.run("access", "create", "reader", "--scopes", "run").stdout.strip()
    want(upload(s, text, token=reader).status, 403)
    want(s.api("GET", "/sessions/nobody/export").status, 404)
    want(upload(s, text).status, 201)


def memory_stays_flat():
    """A session of 60 MB goes out to a slow reader and in again."""
    one = s.session()
    filler = "x" * 900000
    for _ in range(66):
        want(s.api("POST", "/sessions/%s/events" % one, {"kind": "note.kept", "data": {"text": filler + os.urandom(8).hex()}}).status, 201)
    s.kill()
    s.start()
    before = memory(s)
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=30)
    c.request("GET", "/api/v1/sessions/%s/export" % one, None, {"Authorization": "Bearer " + s.token})
    r = c.getresponse()
    peak, size, path = 0, 0, s.dir.name + "/big.jsonl"
    with open(path, "wb") as f:
        while True:
            piece = r.read(1 << 20)
            if not piece:
                break
            size += f.write(piece)
            peak = max(peak, memory(s))
    c.close()
    want(size > 55 << 20, True)
    want(peak - before < 24 << 10, True, "export: %d KiB more" % (peak - before))
    other = Server()
    before, peak = memory(other), 0
    k = socket.create_connection(("127.0.0.1", other.port))
    k.sendall(("POST /api/v1/import HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\n"
               "Content-Length: %d\r\nConnection: close\r\n\r\n" % (other.port, other.token, size)).encode())
    with open(path, "rb") as f:
        for piece in iter(lambda: f.read(1 << 20), b""):
            k.sendall(piece)
            peak = max(peak, memory(other))
    k.settimeout(60)
    answer = k.recv(4096)
    k.close()
    peak = max(peak, memory(other))
    want(answer[:12], b"HTTP/1.1 201")
    want(peak - before < 40 << 10, True, "import: %d KiB more" % (peak - before))
    want(other.api("GET", "/sessions/" + one).json["last_seq"], 67)
    other.done()


def a_reader_that_leaves_ends_its_export():
    one = [x["session_id"] for x in s.api("GET", "/sessions?limit=1").json["sessions"]][0]
    for _ in range(20):  # more than may be under way at once
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=10)
        c.request("GET", "/api/v1/sessions/%s/export" % one, None, {"Authorization": "Bearer " + s.token})
        st = c.getresponse().status
        c.sock.close() if c.sock else None
        c.close()
        want(st in (200, 503), True)
    until = time.monotonic() + 20
    while s.api("GET", "/sessions/%s/export" % one).status != 200:
        if time.monotonic() > until:
            raise AssertionError("exports stay")
        time.sleep(0.1)


def recovery_says_what_it_would_do_and_does_it():
    s.run("exec", "--session", "late", "--", "sh", "-c", "tidemark wait go --kind approval --deadline 300ms --question 'go?'")
    until = time.monotonic() + 10
    found = lambda method: [f for f in s.api(method, "/recovery").json["found"] if f["session_id"] == "late"]
    while not s.api("GET", "/sessions/late").json["status"] == "interrupted_waiting":
        if time.monotonic() > until:
            raise AssertionError("its deadline does not pass")
        time.sleep(0.05)
    a = s.api("GET", "/recovery")
    want((a.status, a.json["summary"]["dry_run"]), (200, True))
    a = s.api("POST", "/recovery")
    want((a.status, a.json["summary"]["dry_run"]), (200, False))
    want(found("POST"), [])
    kinds = [(e["kind"], e.get("reason")) for e in s.api("GET", "/sessions/late/log").json["events"]]
    want([r for k, r in kinds if k == "run.interrupted"], ["wait_timeout"])
    want(s.api("POST", "/recovery", {"x": 1}).status, 400)


def the_doctor_finds_what_the_command_finds():
    a = s.api("GET", "/doctor")
    want(a.status, 200)
    ours = {f["name"]: f["status"] for f in a.json["checks"]}
    theirs = {f["name"]: f["status"] for f in json.loads(s.run("doctor", "--json").stdout)["checks"]}
    want(ours, theirs)
    s.run("exec", "--session", "broken", "--", "false")
    broken = [f for f in s.api("GET", "/doctor").json["checks"] if f["about"] == "broken"]
    want([(f["status"], f["todo"]) for f in broken], [("warn", None)])
    want([(n["action"], n["session_id"], n["command"]) for n in broken[0]["next"]][:1],
         [("resume", "broken", "POST /api/v1/sessions/broken/resume")])
    want([c for c in ("resume", "recover", "sessions", "config") if "tidemark " + c in s.api("GET", "/doctor").bytes.decode()], [])
    want(s.api("GET", "/doctor", token=s.run("access", "create", "nosy", "--scopes", "read").stdout.strip()).status, 403)


case("what goes out comes in, byte for byte, once", what_goes_out_comes_in)
case("what came from elsewhere does not run", what_came_from_elsewhere_does_not_run)
case("bad uploads leave nothing", bad_uploads_leave_nothing)
case("memory stays flat", memory_stays_flat)
case("a reader that leaves ends its export", a_reader_that_leaves_ends_its_export)
case("recovery says what it would do, and does it", recovery_says_what_it_would_do_and_does_it)
case("the doctor finds what the command finds", the_doctor_finds_what_the_command_finds)
s.done()
end()
