# SPDX-License-Identifier: Apache-2.0
# A server that is used for long: its memory and its descriptors stay where they are. Not a part of `make test`.
#
#     make soak SOAK_SECONDS=3600
import http.client
import json
import random
import sys
import threading
import time

from frames import Refused, Socket, frame, TEXT
from serving import Stream, case, end, want
from watched import Server

seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 3600
MORE_KIB, MORE_FDS = 8 << 10, 16  # what it may have grown by, from the first half to the second
s = Server()
stop = threading.Event()
done = {}
trouble = []


def use(name, fn):
    """Again and again, in a thread of its own; what goes wrong is the test's failure."""
    def run():
        rnd = random.Random(name)
        while not stop.is_set():
            try:
                fn(rnd)
                done[name] = done.get(name, 0) + 1
            except (OSError, http.client.HTTPException, Refused) as e:
                if not stop.is_set():
                    trouble.append("%s: %r" % (name, e))
                    time.sleep(0.1)
            except Exception as e:
                trouble.append("%s: %r" % (name, e))
                time.sleep(0.1)

    t = threading.Thread(target=run, daemon=True)
    t.start()
    return t


def sessions(rnd):
    """Made, written, read in every way, followed by all, deleted: the store stays as big as it is."""
    one = s.session(task_id="t%d" % rnd.randrange(5))
    s.append(one, rnd.randrange(1, 10))
    for path in ("", "/why", "/state", "/log", "/timeline", "/transcript", "/usage", "/checkpoints", "/verify", "/status"):
        want(s.api("GET", "/sessions/%s%s" % (one, path)).status, 200, path)
    want(s.api("DELETE", "/sessions/" + one).status, 200)


def chats(rnd):
    script = s.write("script-%d.json" % threading.get_ident(), json.dumps({"turns": [{"text": "one"}, {"text": "two"}]}))
    one = json.loads(s.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
    r = Stream(s, "/sessions/%s/events" % one)
    want(s.api("POST", "/sessions/%s/messages" % one, {"content": "more"}).status, 202)
    r.wait(lambda r: any(d["kind"] == "run.completed" for _, d in r.events()), 30)
    r.close()
    while s.api("DELETE", "/sessions/" + one).status == 409:  # it is just being left
        time.sleep(0.01)


def readers(rnd):
    r = Stream(s, rnd.choice(("/events", "/events?task_id=t1", "/events?after=0&kinds=run.")))
    time.sleep(rnd.random())
    r.close()


def sockets(rnd):
    w = Socket(s)
    w.ask("subscribe", {"snapshot": rnd.random() < 0.5})
    for _ in range(rnd.randrange(20)):
        want(w.ask("session.list", {"limit": 10})["type"], "response")
    if rnd.random() < 0.5:
        want(w.ask("unsubscribe", {})["type"], "response")
    w.close()


def strangers(rnd):
    for token in ("tide_wrong", s.token):
        want(s.api("GET", "/sessions/nobody", token=token).status in (401, 404, 429), True)
    w = Socket(s)
    w.raw(frame(TEXT, rnd.choice((b"{", b"\xff", b'{"id":1,"type":"request","action":"nothing"}'))))
    time.sleep(0.02)
    w.close()


def watch():
    samples = []
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        time.sleep(min(5, seconds / 20))
        samples.append((s.memory(), s.descriptors()))
        if len(samples) % 12 == 0:
            print("# %4d s: %d KiB, %d descriptors, %s" % (time.monotonic() - began, *samples[-1], json.dumps(done)), flush=True)
    return samples


def memory_and_descriptors_stay():
    for name, fn in (("sessions", sessions), ("sessions again", sessions), ("chats", chats), ("readers", readers), ("sockets", sockets),
                     ("strangers", strangers)):
        use(name, fn)
    samples = watch()
    stop.set()
    time.sleep(2)
    first, second = samples[len(samples) // 4:len(samples) // 2], samples[len(samples) // 2:]
    about = "%r to %r" % (max(first), max(second))
    want(trouble[:3], [])
    want(max(m for m, _ in second) - max(m for m, _ in first) < MORE_KIB, True, about)
    want(max(f for _, f in second) - max(f for _, f in first) < MORE_FDS, True, about)
    print("# %s; in the end %d KiB, %d descriptors" % (about, s.memory(), s.descriptors()))


case("memory and descriptors stay where they are for %d s" % seconds, memory_and_descriptors_stay)
want(s.stop(), 0)
s.done()
end()
