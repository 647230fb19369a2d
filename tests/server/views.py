# SPDX-License-Identifier: Apache-2.0
# What a page of sessions is drawn from: one request for each page, parts of long logs, what waits for a person.
import json
import os
import stat
import subprocess
import sys
import tempfile
import time

from frames import Socket
from serving import BIN, case, end, want
from watched import Server

FILES = sys.argv[1:] == ["files"]
PLACE = tempfile.TemporaryDirectory(prefix="tidemark-views-")
s = Server(store="files:" + PLACE.name + "/s") if FILES else Server()
DIR = s.dir.name
socket = Socket(s)
names = {}


def program(one, text, *more):
    path = os.path.join(DIR, one + ".sh")
    with open(path, "w") as f:
        f.write("#!/bin/sh -e\ncd %s\n%s" % (DIR, text))
    os.chmod(path, stat.S_IRWXU)
    return s.run("exec", "--session", one, *more, "--", path)


def asks(one, question="go on?", kind="approval", more=""):
    program(one, "tidemark wait go --kind %s --question '%s' %s > /dev/null\n" % (kind, question, more))
    want(s.api("GET", "/sessions/" + one).json["status"], "waiting", one)


def script(name, turns):
    return s.write(name + ".json", json.dumps({"turns": turns, "repeat": True}))


def chat(turns, prompts, one=None, cwd=None):
    """Its id."""
    turns = script("turns", turns)
    for prompt in prompts:
        of_it = ["--resume", one] if one else []
        r = subprocess.run([BIN, "--store", s.store, "chat", "--script", turns, "-p", prompt, "--output", "json", *of_it], env=s.env, cwd=cwd or DIR, capture_output=True, text=True)
        want(r.returncode in (0, 7), True, r.stderr)
        one = one or json.loads(r.stdout.splitlines()[-1])["session_id"]
    return one


def log(name, events):
    """A session of these events."""
    s.session(session_id=name)
    lines = "".join(json.dumps({"kind": k, **d}) + "\n" for k, d in events)
    r = subprocess.run([BIN, "--store", s.store, "log", "append", name, "-"], input=lines, env=s.env, capture_output=True, text=True)
    want(r.returncode, 0, r.stderr)


def get(path, status=200):
    a = s.api("GET", path)
    want(a.status, status, path + ": %r" % a.bytes[:300])
    return a.json


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        want(time.monotonic() < end_at, True, "in time")
        time.sleep(0.02)


def over_the_socket(action, payload):
    a = socket.ask(action, payload)
    want(a["type"], "response", "%s: %r" % (action, a))
    return a["payload"]


# ---- one request for a page ----

def a_page_without_its_task_is_the_same_otherwise():
    one = s.session(task_id="counted")
    whole, quick = get("/sessions/%s/page" % one), get("/sessions/%s/page?no_task=true" % one)
    want((whole["task"]["task_id"], quick["task"]), ("counted", None))
    want(dict(whole, task=None, position=0), dict(quick, position=0))


def one_request_fills_the_page_of_a_session():
    one = s.session(title="a page", task_id="pages")
    s.append(one, 3)
    p = get("/sessions/%s/page" % one)
    want(p["session"], get("/sessions/" + one))
    want(p["task"]["task_id"], "pages")
    want((p["question"], p["queue"], p["entries"], p["entries_before"]), (None, [], [], None))
    before = p["position"]
    s.append(one)
    after = get("/sessions/%s/page" % one)["position"]
    if FILES:
        want((before, after), (None, None), "files have no order among sessions, so positions")
    else:
        want((before >= p["session"]["last_seq"], after), (True, before + 1), "the position moves with the log")
    want(over_the_socket("session.page", {"id": one})["session"]["id"], one)
    want(s.api("GET", "/sessions/%s/page" % one).fields["etag"], '"%d"' % get("/sessions/" + one)["last_seq"])
    want(s.api("GET", "/sessions/nobody/page").status, 404)
    want(s.api("GET", "/sessions/%s/page?limit=0" % one).status, 400)


def its_question_and_queue_are_there():
    asks("ask", "ship it?", "approval", "--deadline 1h --default no")
    want(s.api("POST", "/sessions/ask/messages", {"content": "wait a moment", "queue": True}).status, 202)
    p = get("/sessions/ask/page")
    q = p["question"]
    want((q["text"], q["kind"], q["name"], q["approval"]), ("ship it?", "approval", "go", True))
    want((q["tool"], q["args"], q["diff"]), (None, None, None))
    want((q["default"], q["on_deadline"], q["deadline_at"] > q["since"]), ("no", "default", True))
    want([m["content"] for m in p["queue"]], ["wait a moment"])
    want(p["session"]["queued_messages"], 1)
    want(s.api("POST", "/sessions/ask/cancel", {}).status, 200)
    want(get("/sessions/ask/page")["question"], None, "what is cancelled asks nothing, so its question")


CALLS = [{"name": "write", "args": {"path": "notes.txt", "content": "new\n"}}]


def an_edit_is_shown_to_who_may_answer():
    work = os.path.join(DIR, "work")
    os.makedirs(work)
    with open(os.path.join(work, "notes.txt"), "w") as f:
        f.write("old\n")
    edit = chat([{"calls": CALLS}, {"text": "done"}], ["write it"], cwd=work)
    want(get("/sessions/" + edit)["status"], "waiting")
    q = get("/sessions/%s/page" % edit)["question"]
    want((q["tool"], q["args"]["path"], q["approval"]), ("write", "notes.txt", True))
    want("-old" in q["diff"] and "+new" in q["diff"], True, q["diff"])
    reader, answerer = s.make_token("page-reader", "read"), s.make_token("page-answerer", "answer")
    for token, shown in ((reader, False), (answerer, True)):
        q = s.api("GET", "/sessions/%s/page" % edit, token=token).json["question"]
        want((q["tool"], q["diff"] is not None), ("write", shown), "what a token sees")
        item = [i for i in s.api("GET", "/inbox", token=token).json["items"] if i["session"]["session_id"] == edit][0]
        want(item["question"]["diff"] is not None, shown, "what a token sees in the inbox")


# ---- the inbox ----

def the_inbox_has_who_waits_oldest_first():
    for one in ("w1", "w2", "w3"):
        asks(one, "may %s go on?" % one)
    program("sleeps", "tidemark sleep nap 1h\n")
    want(get("/sessions/sleeps")["status"], "waiting")
    s.session(title="nothing of it waits")
    want(program("ended", "true\n").returncode, 0)
    inbox = get("/inbox")
    ids = [i["session"]["session_id"] for i in inbox["items"]]
    want([i for i in ids if i.startswith("w")], ["w1", "w2", "w3"])
    want([i for i in ids if i in ("sleeps", "ended", "ask")], [], "who waits for nobody")
    want(inbox["total"], len(ids))
    want([i["since"] for i in inbox["items"]], sorted(i["since"] for i in inbox["items"]))
    item = inbox["items"][ids.index("w2")]
    want((item["question"]["text"], item["session"]["status"]), ("may w2 go on?", "waiting"))
    want(item["since"], item["question"]["since"])
    want(over_the_socket("session.inbox", {"limit": 1})["total"], inbox["total"])
    got, after = [], ""
    while after is not None:
        page = get("/inbox?limit=1" + (after and "&after=" + after))
        want((len(page["items"]), page["total"]), (1, len(ids)))
        got, after = got + [page["items"][0]["session"]["session_id"]], page["next_cursor"]
    want(got, ids)
    after = get("/inbox?limit=%d" % (ids.index("w2") + 1))["next_cursor"]
    want(s.api("POST", "/sessions/w2/answer", {"input": True, "wait": True}).status, 202)
    want([i["session"]["session_id"] for i in get("/inbox?after=" + after)["items"]][:1], ["w3"], "behind one that was answered")
    want(get("/inbox")["total"], len(ids) - 1)
    for bad in ("x", "1", "a.b", "1.../x", "."):
        want(s.api("GET", "/inbox?after=" + bad).status, 400, bad)


def a_wait_that_lapsed_still_waits_for_a_person():
    asks("late", "in time?", "input", "--deadline 1s")
    until(lambda: get("/sessions/late")["status"] == "interrupted_waiting")
    late = [i for i in get("/inbox")["items"] if i["session"]["session_id"] == "late"]
    want([i["question"]["text"] for i in late], ["in time?"])


# ---- pages of a transcript ----

def pages_of(one, limit):
    """All pages from the end back, and all from the beginning on."""
    back, before = [], None
    while True:
        p = get("/sessions/%s/transcript?limit=%d" % (one, limit) + ("&before=%d" % before if before else ""))
        back, before = p["entries"] + back, p["entries_before"]
        if not before:
            break
    on, after = [], 0
    while after is not None:
        p = get("/sessions/%s/transcript?limit=%d&after=%d" % (one, limit, after))
        on, after = on + p["entries"], p["entries_after"]
    return back, on


def whole(one):
    p = get("/sessions/%s/transcript" % one)
    want((p["entries_before"], p["entries_after"]), (None, None))
    return p["entries"]


def pages_of_a_transcript_are_the_transcript():
    turns = [{"text": "look"}, {"text": "I read it.", "calls": [{"name": "glob", "args": {"pattern": "*.none"}}]}]
    talk = names["talk"] = chat(turns, ["prompt %d" % i for i in range(6)])
    program("steps", "".join("tidemark step s%d --effect pure -- echo %d > /dev/null\n" % (i, i) for i in range(9)) + "false\n")
    for one in (talk, "steps"):
        all_of_it = whole(one)
        want(len(all_of_it) > 8, True, all_of_it)
        for limit in (1, 2, 3, 7, 1000):
            back, on = pages_of(one, limit)
            want(back, all_of_it, "%s, %d from the end back" % (one, limit))
            want(on, all_of_it, "%s, %d from the beginning on" % (one, limit))
        last = get("/sessions/%s/transcript?limit=3" % one)
        want((last["entries"], last["entries_after"]), (all_of_it[-3:], None))
        want(get("/sessions/%s/page?limit=3" % one)["entries"], all_of_it[-3:])
    middle = whole(talk)[4]["seq"]
    want([e["seq"] < middle for e in get("/sessions/%s/transcript?before=%d&limit=2" % (talk, middle))["entries"]], [True, True])
    want(get("/sessions/%s/transcript?after=100000" % talk)["entries"], [])
    want(get("/sessions/%s/transcript?before=1" % talk)["entries"], [])


def forks_and_rollbacks_are_the_same_on_pages():
    talk = names["talk"]
    want(s.api("POST", "/sessions/%s/rollback" % talk, {"to": 12, "redo_effects": True}).status, 200)
    chat([{"text": "anew"}], ["again"], talk)
    fork = s.api("POST", "/sessions/%s/fork" % talk, {"session_id": "talk-fork"}).json["session_id"]
    chat([{"text": "elsewhere"}], ["and here?"], fork)
    want({e["rolled_back"] for e in whole(talk)}, {True, False})
    want({e["inherited"] for e in whole(fork)}, {True, False})
    for one in (talk, fork):
        all_of_it = whole(one)
        for limit in (1, 4, 9):
            back, on = pages_of(one, limit)
            want(back, all_of_it, "%s, %d back" % (one, limit))
            want(on, all_of_it, "%s, %d on" % (one, limit))


def a_long_log_is_looked_at_in_part():
    """Little is said in it: a page looks at so much of it and says where it stopped; calls and results apart find each other."""
    filler = lambda n: [("memory.set", {"values": {"n": i}}) for i in range(n)]
    said = [("message.user", {"content": "first"}),
            ("message.assistant", {"content": "", "tool_calls": [{"id": "near", "name": "glob", "args": {"pattern": "x"}}]})]
    said += filler(300) + [("message.tool", {"tool_call_id": "near", "content": "found"})]
    said += [("message.assistant", {"content": "", "tool_calls": [{"id": "far", "name": "grep", "args": {"pattern": "y"}}]})]
    said += filler(25000) + [("message.tool", {"tool_call_id": "far", "tool_name": "grep", "content": "late"}), ("message.user", {"content": "last"})]
    log("long", said)
    p = get("/sessions/long/transcript?limit=3")
    want([e["text"] for e in p["entries"]], ["late", "last"])
    want(p["entries_before"] > 5000, True, p["entries_before"])
    back, on = pages_of("long", 3)
    want([e["text"] for e in back], ["first", "found", "", "late", "last"])
    want(on, back)
    near = back[1]
    want((near["name"], near["args"], near["outcome"]), ("glob", {"pattern": "x"}, "ok"))
    want((back[2]["name"], back[2]["outcome"]), ("grep", "no_result"))


# ---- logs ----

def a_log_is_filtered_and_read_back():
    log("mixed", [(("note.even", "note.odd")[i % 2], {"n": i, "said": "N%d \u00dcber \"Tide\"" % i}) for i in range(3000)])
    seqs = lambda p: [e["seq"] for e in p["events"]]
    every = get("/sessions/mixed/log?limit=1000")
    want((seqs(every), every["first_seq"], every["last_seq"]), (list(range(1, 1001)), None, 1000))
    back = get("/sessions/mixed/log?before=2500&limit=3")
    want((seqs(back), back["first_seq"], back["last_seq"]), ([2497, 2498, 2499], 2497, 2499))
    back = get("/sessions/mixed/log?before=3&limit=10")
    want((seqs(back), back["first_seq"]), ([1, 2], None))
    want(seqs(get("/sessions/mixed/log?before=9000&limit=2")), [3000, 3001])
    odd = get("/sessions/mixed/log?kinds=note.odd&after=100&limit=3")
    want((seqs(odd), odd["first_seq"], odd["last_seq"]), ([101, 103, 105], 101, 105))
    odd = get("/sessions/mixed/log?kinds=note.odd,session.&before=7&limit=3")
    want((seqs(odd), odd["first_seq"]), ([1, 3, 5], None))
    want(len(get("/sessions/mixed/log?kinds=note.&limit=1000&after=2500")["events"]), 501)
    one = get("/sessions/mixed/log?text=n1234%20%C3%BCBER%20%22tide%22")
    want((seqs(one), one["last_seq"]), ([1236], 3001))
    want(seqs(get("/sessions/mixed/log?text=n1234&before=3001&limit=5")), [1236])
    want(seqs(get("/sessions/mixed/log?text=n1234&kinds=note.odd")), [])
    want(seqs(get("/sessions/mixed/log?text=note.even%20n77&to=80")), [])
    want(seqs(get("/sessions/mixed/log?text=note.odd%20n77&to=80")), [79])
    want(seqs(over_the_socket("session.log", {"id": "mixed", "kinds": "note.even", "before": 10, "limit": 2})), [6, 8])


def a_search_of_a_long_log_says_how_far_it_looked():
    p = get("/sessions/long/log?text=late")
    want((p["events"], p["last_seq"]), ([], 20000))
    p = get("/sessions/long/log?text=late&after=20000")
    want([e["content"] for e in p["events"]], ["late"])
    last = get("/sessions/long")["last_seq"]
    p = get("/sessions/long/log?text=first&before=%d" % (last + 1))
    want((p["events"], p["first_seq"], p["last_seq"]), ([], last - 19999, last))
    p = get("/sessions/long/log?text=first&before=%d" % p["first_seq"])
    want(([e["content"] for e in p["events"]], p["first_seq"]), (["first"], None))


# ---- timelines ----

def a_part_of_a_timeline_knows_what_began_before():
    whole_of_it = get("/sessions/steps/timeline")
    run = whole_of_it["runs"][0]
    want((whole_of_it["partial"], whole_of_it["first_seq"]), (False, 1))
    want(run["last_seq"], whole_of_it["last_seq"], "a run ends with its last event, which")
    steps = [i for i in run["items"] if i["type"] == "step"]
    want(len(steps), 9)
    for i, step in enumerate(steps):
        part = get("/sessions/steps/timeline?from=%d" % step["end_seq"])
        want(part["partial"], True)
        lane = part["runs"][0]
        want((lane["number"], lane["run_id"], lane["program"], lane["started_at"], lane["first_seq"]),
             (1, run["run_id"], run["program"], run["started_at"], run["first_seq"]), "the lane of a part")
        want(lane["items"][0], step, "a step that began before the part")
        want([x["name"] for x in lane["items"]], [x["name"] for x in steps[i:]])
        early = get("/sessions/steps/timeline?to=%d" % step["seq"])["runs"][0]
        want([(x["name"], x["outcome"]) for x in early["items"][-1:]], [(step["name"], "running")])
        want(early["outcome"], "running")
    part = get("/sessions/steps/timeline?from=%d&to=%d" % (steps[2]["seq"], steps[4]["end_seq"]))
    want([x["name"] for x in part["runs"][0]["items"]], ["s2", "s3", "s4"])
    want((part["first_seq"], part["last_seq"], part["summary"]["events"]), (steps[2]["seq"], steps[4]["end_seq"], steps[4]["end_seq"] - steps[2]["seq"] + 1))
    behind = get("/sessions/steps/timeline?from=%d" % run["last_seq"])["runs"][0]
    want((behind["outcome"], behind["error"]), (run["outcome"], run["error"]))
    want(get("/sessions/steps/timeline?from=100000")["runs"], [])
    want(over_the_socket("session.timeline", {"id": "steps", "from": steps[8]["seq"]})["runs"][0]["items"][0]["name"], "s8")


def a_part_knows_that_it_waits():
    asks("parts", "still there?")
    want(s.api("POST", "/sessions/parts/messages", {"content": "hello", "queue": True}).status, 202)
    last = get("/sessions/parts")["last_seq"]
    item = get("/sessions/parts/timeline")["runs"][0]["items"][-1]
    part = get("/sessions/parts/timeline?from=%d" % last)["runs"][0]
    want((part["outcome"], part["items"]), ("waiting", [item]))
    want((item["type"], item["note"], item["end_seq"]), ("wait", "still there?", None))
    want([(x["kind"], x["seq"]) for x in part["points"]], [("inputs", last)])


def a_long_timeline_is_its_newest_part():
    last = get("/sessions/long")["last_seq"]
    t = get("/sessions/long/timeline")
    want((t["partial"], t["first_seq"], t["last_seq"]), (True, last - 19999, last))
    t = get("/sessions/long/timeline?from=2&to=%d" % last)
    want((t["first_seq"], t["last_seq"]), (last - 19999, last))
    t = get("/sessions/long/timeline?from=2")
    want((t["first_seq"], t["last_seq"], t["summary"]["events"]), (2, 20001, 20000))
    t = get("/sessions/long/timeline?whole=true")
    want((t["partial"], t["first_seq"], t["last_seq"], t["summary"]["events"]), (False, 1, last, last))
    want((128 <= len(t["axis"]) <= 256, t["axis"][0][0], t["axis"] == sorted(t["axis"])), (True, 1, True), t["axis"])
    points = t["runs"][0]["points"]
    want((points[0]["kind"], points[0]["seq"], len(points), t["runs"][0]["marks"]), ("messages", 2, 6, {"messages": 6}))


# ---- graphs ----

GRAPH = {"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
    {"id": "a", "type": "function", "program": ["sh", "-c", "true"], "effect": "pure"},
    {"id": "ask", "type": "human_input", "question": "go on?", "outputs": ["go"]},
    {"id": "b", "type": "function", "program": ["sh", "-c", "test -e b.ready"], "effect": "once"},
    {"id": "never", "type": "function", "program": ["sh", "-c", "true"]}],
    "edges": [{"id": "first", "from": "a", "to": "ask"}, {"from": "ask", "to": "b"}, {"from": "ask", "to": "never", "when": "false"}]}


def graph(one, path, status=200):
    return get("/sessions/%s/graph%s" % (one, path), status)


def states(g):
    return {n["id"]: n["state"] for n in g["nodes"]}


def a_graph_is_shown_as_of_any_event():
    path = s.write("g.json", json.dumps(GRAPH))
    r = subprocess.run([BIN, "--store", s.store, "run", path, "--session", "drawn", "--json"], env=s.env, cwd=DIR, capture_output=True, text=True)
    want(r.returncode, 7, r.stderr)
    g = graph("drawn", "")
    want(states(g), {"a": "completed", "ask": "waiting", "b": "none", "never": "none"})
    want(([n["id"] for n in g["graph"]["nodes"]], g["graph"]["id"], g["partial"]), (["a", "ask", "b", "never"], "g", False))
    a = g["nodes"][0]
    want((a["type"], a["visits"], a["attempts"], a["error"], a["ms"] >= 0, a["ended_at"] >= a["started_at"]), ("function", 1, 1, None, True, True))
    want([(e["id"], e["from"], e["to"], e["taken"]) for e in g["edges"]],
         [("first", "a", "ask", 1), (None, "ask", "b", 0), (None, "ask", "never", 0)])
    want([(p["node"], p["visit"]) for p in g["path"]], [("a", 1), ("ask", 1)])
    events = {(e["kind"], e.get("node")): e["seq"] for e in get("/sessions/drawn/log")["events"]}
    want(states(graph("drawn", "?at=%d" % events[("node.started", "a")]))["a"], "active")
    want(states(graph("drawn", "?at=%d" % (events[("node.started", "a")] - 1)))["a"], "ready")
    want(graph("drawn", "?at=%d" % events[("node.completed", "a")])["nodes"][0]["seq"], events[("node.completed", "a")])
    want(graph("drawn", "?at=1", 404)["error"]["error"], "NOT_FOUND")
    want(graph("drawn", "?at=99999", 404)["error"]["error"], "NOT_FOUND")
    want(graph("steps", "", 404)["error"]["error"], "NOT_FOUND")
    want(graph("nobody", "", 404)["error"]["error"], "NOT_FOUND")
    want(s.api("POST", "/sessions/drawn/answer", {"input": "yes", "wait": True}).status < 500, True)
    until(lambda: get("/sessions/drawn")["status"] != "running")
    g = graph("drawn", "")
    want((states(g)["b"], states(g)["ask"]), ("failed", "completed"))
    want(g["nodes"][2]["error"] is not None, True)
    s.write("b.ready", "")
    a = s.api("POST", "/sessions/drawn/resume", {"retry": ["b"], "wait": True})
    want(a.status, 202, a.bytes)
    until(lambda: get("/sessions/drawn")["outcome"] == "completed")
    g = graph("drawn", "")
    want(states(g), {"a": "completed", "ask": "completed", "b": "completed", "never": "skipped"})
    want((g["edges"][1]["taken"], g["edges"][2]["last_seq"], g["nodes"][2]["error"]), (1, None, None))
    want(over_the_socket("session.graph", {"id": "drawn", "at": str(events[("node.started", "a")])})["seq"], events[("node.started", "a")])


def a_graph_that_was_rolled_back_is_where_it_was():
    before = graph("drawn", "")
    to = before["nodes"][0]["seq"]
    undone = s.api("POST", "/sessions/drawn/rollback", {"to": to, "dry_run": True, "redo_effects": True})
    want(undone.status, 200)
    want((undone.json["to_seq"], undone.json["undone"]["nodes"], undone.json["undone"]["once_effects"]), (to, 2, ["b"]))
    want(s.api("POST", "/sessions/drawn/rollback", {"to": to, "redo_effects": True}).status, 200)
    g = graph("drawn", "")
    want((states(g)["a"], states(g)["b"], [p["node"] for p in g["path"]]), ("completed", "none", ["a"]))
    want(graph("drawn", "?at=%d" % before["seq"]), before)


# ---- what would be done ----

def a_resume_says_what_it_would_do():
    program("cut", "tidemark step one --effect pure -- true\ntidemark step two --effect pure -- false\n")
    last = get("/sessions/cut")["last_seq"]
    a = s.api("POST", "/sessions/cut/resume", {"dry_run": True})
    want((a.status, a.json["session_id"], a.json["action"], a.json["refused"]), (200, "cut", "resume", []))
    want(a.json["complete"], ["one"])
    want(json.loads(s.run("resume", "cut", "--dry-run", "--json").stdout), a.json)
    a = s.api("POST", "/sessions/w1/resume", {"dry_run": True})
    want((a.status, [r["code"] for r in a.json["refused"]]), (200, ["WRONG_STATE"]))
    want(s.api("POST", "/sessions/w1/resume", {"dry_run": True, "input": True}).json["refused"], [])
    want(get("/sessions/w1")["status"], "waiting")
    a = s.api("POST", "/sessions/drawn/resume", {"dry_run": True})
    want((a.status, a.json["graph"]["id"]), (200, "g"))
    want(json.loads(s.run("resume", "drawn", "--dry-run", "--json").stdout), a.json)
    want(get("/sessions/cut")["last_seq"], last)
    want(s.api("POST", "/sessions/nobody/resume", {"dry_run": True}).status, 404)
    want(s.api("POST", "/sessions/cut/resume", {"dry_run": True}, token=s.make_token("dry-reader", "read")).status, 403)
    want(over_the_socket("session.resume", {"id": "cut", "dry_run": True})["complete"], ["one"])


def a_rollback_says_what_it_would_undo():
    program("undo", "tidemark step zero --effect pure -- true\ntidemark step once --effect once -- true\ntidemark step unsure --effect pure -- true\n")
    steps = {i["name"]: i for i in get("/sessions/undo/timeline")["runs"][0]["items"]}
    last = get("/sessions/undo")["last_seq"]
    to = steps["zero"]["end_seq"]
    a = s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": to})
    want((a.status, a.json["error"]["error"]), (409, "EFFECTS"))
    a = s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": to, "reuse_effects": True})
    want((a.status, a.json["seq"], a.json["undone"]), (200, last, {"messages": 0, "tools": 2, "nodes": 0, "checkpoints": 0, "once_effects": ["once"]}))
    a = s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": steps["once"]["seq"], "reuse_effects": True})
    want(a.json["undone"]["once_effects"], ["once"], "what was open where it goes back to, once effects")
    a = s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": steps["once"]["end_seq"]})
    want((a.status, a.json["undone"]["tools"], a.json["undone"]["once_effects"]), (200, 1, []))
    a = s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": last})
    want(a.json["undone"]["tools"], 0)
    want(s.api("POST", "/sessions/undo/rollback", {"dry_run": True, "to": last + 1}).status, 404)
    want(get("/sessions/undo")["last_seq"], last)
    done = s.api("POST", "/sessions/undo/rollback", {"to": steps["once"]["end_seq"]}).json
    want("undone" in done, False)
    talk = names["talk"]
    first = next(e["seq"] for e in whole(talk) if not e["rolled_back"])
    a = s.api("POST", "/sessions/%s/rollback" % talk, {"dry_run": True, "to": first, "redo_effects": True}).json
    kept = [e for e in get("/sessions/%s/log?kinds=message." % talk)["events"] if e["seq"] > first]
    cut = {e["seq"] for e in whole(talk) if e["rolled_back"]}
    want((a["undone"]["messages"] > 2, a["undone"]["messages"] < len(kept), len(cut) > 2), (True, True, True))


# ---- what requests may start ----

def what_may_be_started_is_listed():
    want(get("/startable"), {"programs": [], "graph_roots": [], "graphs": [], "working_roots": [], "chat": None})
    roots = os.path.join(DIR, "roots")
    os.makedirs(roots + "/deep/er")
    os.makedirs(roots + "/.hidden")
    for name, text in (("a.json", json.dumps(GRAPH)), ("deep/er/b.json", json.dumps(GRAPH)), (".hidden/c.json", json.dumps(GRAPH)),
                       ("note.json", '{"a": 1}'), ("text.txt", '"nodes"')):
        with open(os.path.join(roots, name), "w") as f:
            f.write(text)
    os.symlink(os.path.join(DIR, "g.json"), roots + "/link.json")
    os.symlink(DIR, roots + "/everything")
    os.mkfifo(roots + "/pipe.json")
    os.makedirs(s.dir.name + "/config/tidemark", exist_ok=True)
    config = {"provider": "script", "script": "x.json", "model": "m1", "server_graph_roots": [roots], "server_working_roots": [DIR],
              "server_programs": {"deploy": {"argv": ["./deploy.sh", "--key", "hush-hush"], "cwd": DIR, "env": ["SECRET_NAME"]}}}
    with open(s.dir.name + "/config/tidemark/config.json", "w") as f:
        json.dump(config, f)
    a = s.api("GET", "/startable", token=s.make_token("start-reader", "read"))
    want(a.json, {"programs": [{"name": "deploy", "argv0": "./deploy.sh", "cwd": DIR}], "graph_roots": [roots], "graphs": ["a.json", "deep/er/b.json"],
                  "working_roots": [DIR], "chat": {"provider": "script", "model": "m1"}})
    want(b"hush" in a.bytes or b"SECRET_NAME" in a.bytes, False)
    for name in a.json["graphs"]:
        want(s.api("POST", "/sessions", {"kind": "graph", "graph": name, "session_id": "from-" + name[0]}).status, 201, name)
    for name in a.json["graphs"]:
        until(lambda: get("/sessions/from-" + name[0])["status"] != "running")
    want(over_the_socket("store.startable", {})["graphs"], ["a.json", "deep/er/b.json"])


# ---- usage over time ----

def usage_over_time_ends_with_the_total():
    talk = names["talk"]
    u = get("/sessions/%s/usage/series" % talk)
    want(u["total"], get("/sessions/%s/usage" % talk))
    spent = get("/sessions/%s/log?kinds=llm.usage" % talk)["events"]
    want([p["seq"] for p in u["points"]], [e["seq"] for e in spent])
    want({k: u["points"][-1][k] for k in u["total"]}, u["total"])
    for p in u["points"]:
        want({k: p[k] for k in u["total"]}, get("/sessions/%s/usage?at=%d" % (talk, p["seq"])))
    few = get("/sessions/%s/usage/series?points=3" % talk)["points"]
    want((len(few), few[-1], [p in u["points"] for p in few]), (3, u["points"][-1], [True] * 3))
    log("spent", [("llm.usage", {"turn": 1, "input_tokens": 2, "output_tokens": 1}) if i % 10 == 0 else ("note", {}) for i in range(24000)])
    u = over_the_socket("session.usage.series", {"id": "spent", "points": 50})
    want((u["total"]["calls"], u["total"]["input_tokens"], 40 <= len(u["points"]) <= 50), (2400, 4800, True))
    want([p["calls"] for p in u["points"]], sorted(p["calls"] for p in u["points"]))
    want((u["points"][-1]["calls"], u["points"][-1]["seq"]), (2400, 24001))
    p = u["points"][17]
    want(get("/sessions/spent/usage?at=%d" % p["seq"])["calls"], p["calls"])
    want(get("/sessions/steps/usage/series")["points"], [])


# ---- lists ----

def lists_are_searched_and_say_what_was_spent():
    s.session(title="Über die Gezeiten", task_id="t-needle", agent="Ada")
    s.session(title="something else")
    found = lambda text: [r["title"] for r in get("/sessions?text=" + text)["sessions"]]
    for text in ("gezeiten", "%C3%BCBER", "T-NEEDLE", "ada%20GEZ", "needle%20ADA"):
        want(found(text), ["Über die Gezeiten"], text)
    want(found("gezeiten%20else"), [])
    want(found("nowhere"), [])
    want([r["session_id"] for r in get("/sessions?text=may%20W3%20go%20on")["sessions"]], ["w3"])
    want([r["session_id"] for r in get("/sessions?text=may%20w3%20status&status=waiting")["sessions"]], [])
    got, after, pages = [], "", 0
    while after is not None:
        page = get("/sessions?text=needle&look=3" + (after and "&after=" + after))
        got, after, pages = got + [r["title"] for r in page["sessions"]], page["next_cursor"], pages + 1
    n = len(get("/sessions?limit=1000")["sessions"])
    want((got, n // 3 <= pages <= n // 3 + 1), (["Über die Gezeiten"], True))
    want(s.api("GET", "/sessions?look=0").status, 400)
    page = get("/sessions?limit=1")
    want(page["position"] is None if FILES else page["position"] > 0, True)
    usage = {r["session_id"]: r["usage"] for r in get("/sessions?limit=1000")["sessions"]}
    talk = names["talk"]
    want(usage[talk], get("/sessions/%s/usage" % talk))
    want(usage[talk]["calls"] > 5, True)


case("a page without its task is the same otherwise", a_page_without_its_task_is_the_same_otherwise)
case("one request fills the page of a session", one_request_fills_the_page_of_a_session)
case("its question and queue are there", its_question_and_queue_are_there)
case("an edit is shown to who may answer", an_edit_is_shown_to_who_may_answer)
case("the inbox has who waits, oldest first", the_inbox_has_who_waits_oldest_first)
case("a wait that lapsed still waits for a person", a_wait_that_lapsed_still_waits_for_a_person)
case("pages of a transcript are the transcript", pages_of_a_transcript_are_the_transcript)
case("forks and rollbacks are the same on pages", forks_and_rollbacks_are_the_same_on_pages)
case("a long log is looked at in part", a_long_log_is_looked_at_in_part)
case("a log is filtered and read back", a_log_is_filtered_and_read_back)
case("a search of a long log says how far it looked", a_search_of_a_long_log_says_how_far_it_looked)
case("a part of a timeline knows what began before", a_part_of_a_timeline_knows_what_began_before)
case("a part knows that it waits", a_part_knows_that_it_waits)
case("a long timeline is its newest part", a_long_timeline_is_its_newest_part)
case("a graph is shown as of any event", a_graph_is_shown_as_of_any_event)
case("a graph that was rolled back is where it was", a_graph_that_was_rolled_back_is_where_it_was)
case("a resume says what it would do", a_resume_says_what_it_would_do)
case("a rollback says what it would undo", a_rollback_says_what_it_would_undo)
case("what may be started is listed", what_may_be_started_is_listed)
case("usage over time ends with the total", usage_over_time_ends_with_the_total)
case("lists are searched and say what was spent", lists_are_searched_and_say_what_was_spent)
socket.close()
s.done()
PLACE.cleanup()
end()
