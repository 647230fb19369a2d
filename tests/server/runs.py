# SPDX-License-Identifier: Apache-2.0
# What runs in and behind the server: prompts that are accepted are answered once, programs outlive it, a stop parks what runs.
import json
import os
import stat
import threading
import time

from serving import Server, Stream, case, end, want


def path(s, name):
    return os.path.join(s.dir.name, name)


def write(s, name, text, mode=0o600):
    with open(path(s, name), "w") as f:
        f.write(text)
    os.chmod(path(s, name), mode)
    return path(s, name)


def lines(s, name):
    try:
        with open(path(s, name)) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def chat(s, turns):
    script = write(s, "script.json", json.dumps({"turns": turns}))
    r = s.run("chat", "--script", script, "-p", "hello", "--output", "json")
    return json.loads(r.stdout)["session_id"]


def said(s, one, who):
    return [e["text"] for e in s.api("GET", "/sessions/%s/transcript" % one).json["entries"] if e["type"] == who]


def until(is_so, seconds=20):
    end_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end_at:
            raise AssertionError("not within %d s" % seconds)
        time.sleep(0.02)


def status(s, one):
    return s.api("GET", "/sessions/" + one).json["status"]


def a_prompt_is_answered_and_its_text_streamed():
    s = Server()
    one = chat(s, [{"text": "first"}, {"text": "second", "delay_ms": 300}])
    r = Stream(s, "/sessions/%s/events" % one)
    a = s.api("POST", "/sessions/%s/messages" % one, {"content": "and now?"})
    want(a.status, 202)
    want(a.json["run_id"][:4], "run_")
    r.wait(lambda r: any(d.get("kind") == "run.completed" for _, d in r.events()))
    want(said(s, one, "assistant"), ["first", "second"])
    want("".join(d["text"] for _, e, d in r.got if e == "text" and d["type"] == "text"), "second")
    want(any(e == "status" and d["status"] == "running" for _, e, d in r.got), True)
    r.close()
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": " "}).status, 400)
    want(s.api("POST", "/sessions/nobody/messages", {"content": "x"}).status, 404)
    s.done()


def an_accepted_prompt_survives_the_server():
    s = Server("--auto-resume", "live")
    one = chat(s, [{"text": "first"}] + [{"text": "answer %d" % i} for i in range(8)])
    for i in range(6):
        want(s.api("POST", "/sessions/%s/messages" % one, {"content": "prompt %d" % i}).status, 202)
        s.kill()
        s.start()
        until(lambda: len(said(s, one, "assistant")) == i + 2 and status(s, one) == "idle")
    want(said(s, one, "user"), ["hello"] + ["prompt %d" % i for i in range(6)])
    want(len(said(s, one, "assistant")), 7)
    want(s.api("GET", "/sessions/%s/queue" % one).json["messages"], [])
    s.done()


def what_ran_when_the_server_died_goes_on_with_the_next():
    s = Server()
    del s.env["TIDEMARK_AUTO_RESUME"]  # nobody says what to resume
    s.kill()
    s.start()
    one = chat(s, [{"text": "first"}, {"text": "second", "delay_ms": 700}])
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": "and now?"}).status, 202)
    until(lambda: status(s, one) == "running")
    s.kill()
    s.start()
    until(lambda: said(s, one, "assistant") == ["first", "second"] and status(s, one) == "idle")
    want("run.interrupted" in [e["kind"] for e in s.api("GET", "/sessions/%s/log" % one).json["events"]], True)
    s.done()


def the_eleventh_message_in_the_queue_is_refused():
    s = Server()
    one = s.session()
    for i in range(10):
        want(s.api("POST", "/sessions/%s/messages" % one, {"content": "m%d" % i, "queue": True}).status, 202)
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": "one more", "queue": True}).status, 503)
    queue = s.api("GET", "/sessions/%s/queue" % one).json["messages"]
    want([m["content"] for m in queue], ["m%d" % i for i in range(10)])
    busy = chat(s, [{"text": "first"}, {"text": "second", "delay_ms": 60000}])
    want(s.api("POST", "/sessions/%s/messages" % busy, {"content": "now"}).status, 202)
    until(lambda: status(s, busy) == "running")
    for i in range(10):
        path, body = (("messages", {"content": "m%d" % i}), ("runs", {"prompt": "m%d" % i}))[i % 2]
        a = s.api("POST", "/sessions/%s/%s" % (busy, path), body)
        want((a.status, a.json["queue_id"][:2]), (202, "q_"), path)
    for path, body in (("messages", {"content": "one more"}), ("runs", {"prompt": "one more"})):
        a = s.api("POST", "/sessions/%s/%s" % (busy, path), body)
        want((a.status, a.json["error"]["error"]), (503, "BUSY"), path)
    want([m["content"] for m in s.api("GET", "/sessions/%s/queue" % busy).json["messages"]], ["m%d" % i for i in range(10)])
    want(s.api("POST", "/sessions/%s/cancel" % busy).status, 200)
    want(s.api("DELETE", "/sessions/%s/queue/%s" % (one, queue[3]["queue_id"])).status, 204)
    want(s.api("DELETE", "/sessions/%s/queue/%s" % (one, queue[3]["queue_id"])).status, 404)
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": "one more", "queue": True}).status, 202)
    s.done()


def a_condition_holds_for_messages_too():
    """Of many who know the session as it is one may change it."""
    s = Server()
    one, log = chat(s, [{"text": "answer %d" % i} for i in range(8)]), s.session()
    for session, more in ((one, {}), (log, {"queue": True})):
        for _ in range(3):
            last, got = s.api("GET", "/sessions/" + session).json["last_seq"], []
            send = lambda: got.append(s.api("POST", "/sessions/%s/messages" % session, dict(more, content="hello"), fields={"If-Match": '"%d"' % last}).status)
            threads = [threading.Thread(target=send) for _ in range(20)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            want(sorted(got), [202] + [409] * 19)
            until(lambda: status(s, session) == "idle")
    want(len(said(s, one, "user")), 4)
    want(len(s.api("GET", "/sessions/%s/queue" % log).json["messages"]), 3)
    s.done()


def program(s, name, text):
    write(s, name, "#!/bin/sh\ncd %s\n%s" % (s.dir.name, text), stat.S_IRWXU)
    s.run("exec", "--session", name, "--", path(s, name))


def an_answer_continues_a_program():
    s = Server()
    program(s, "p", "tidemark step one --effect once -- sh -c 'echo one >> ledger'\n"
                    "tidemark wait go --kind approval --question 'go?' > answer\n"
                    "tidemark step two --effect once -- sh -c 'echo two >> ledger'\n")
    want(status(s, "p"), "waiting")
    a = s.api("POST", "/sessions/p/answer", {"input": "perhaps"})
    want((a.status, a.json["error"]["error"]), (400, "INVALID"))
    want(s.api("POST", "/sessions/p/answer", {"input": "yes", "token": "rt_x"}).status, 400)
    want(s.api("POST", "/sessions/p/answer", {"input": "yes"}).status, 202)
    until(lambda: status(s, "p") == "idle")
    want(lines(s, "ledger"), ["one", "two"])
    want(lines(s, "answer"), ["yes"])
    want(s.api("POST", "/sessions/p/answer", {"input": "yes"}).status, 409)
    s.done()


def a_program_outlives_the_server():
    s = Server("--auto-resume", "live")
    program(s, "p", "tidemark step one --effect once -- sh -c 'echo one >> ledger'\n"
                    "tidemark wait go --kind approval --question 'go?' > answer\n"
                    "tidemark step two --effect once -- sh -c 'echo begun >> ledger; while [ ! -e stop ]; do sleep 0.05; done; echo two >> ledger'\n")
    want(s.api("POST", "/sessions/p/answer", {"input": "yes"}).status, 202)
    until(lambda: "begun" in lines(s, "ledger"))
    for _ in range(3):
        s.kill()
        s.start()
        want(status(s, "p"), "running")
    write(s, "stop", "")
    until(lambda: status(s, "p") == "idle")
    want(lines(s, "ledger"), ["one", "begun", "two"])
    kinds = [e["kind"] for e in s.api("GET", "/sessions/p/log").json["events"]]
    want("run.interrupted" in kinds, False)
    s.done()


def sleeps_end_when_they_are_due():
    s = Server()
    program(s, "p", "tidemark sleep nap 2s\necho over >> ledger\n")
    want(status(s, "p"), "waiting")
    until(lambda: lines(s, "ledger") == ["over"] and status(s, "p") == "idle")
    s.done()


case("a prompt is answered, and its text streamed", a_prompt_is_answered_and_its_text_streamed)
case("an accepted prompt survives the server, and is answered once", an_accepted_prompt_survives_the_server)
case("what ran when the server died goes on with the next", what_ran_when_the_server_died_goes_on_with_the_next)
case("the eleventh message in the queue is refused", the_eleventh_message_in_the_queue_is_refused)
case("a condition holds for messages, too", a_condition_holds_for_messages_too)
case("an answer continues a program", an_answer_continues_a_program)
case("a program outlives the server", a_program_outlives_the_server)
case("sleeps end when they are due", sleeps_end_when_they_are_due)
end()
