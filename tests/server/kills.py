# SPDX-License-Identifier: Apache-2.0
# Servers are killed while clients write, ask and follow: what was acknowledged is there, what was asked is answered once, and every
# reader that comes back with its last position has every event once, in order.
#
#     kills.py [KILLS of each server] [SEED]
import http.client
import json
import random
import sys
import threading
import time

from frames import Refused, Socket
from serving import Stream, case, end, want
from watched import Server

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
TROUBLE = (OSError, http.client.HTTPException, Refused, AssertionError, ValueError)


class Reader:
    """Comes back as often as it is cut off. `got`: for each subscription the positions and the events, as they came."""

    def __init__(self, trial, *names, got=None):
        self.trial, self.got, self.resets = trial, got or {name: [] for name in names}, 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def last(self, name):
        return self.got[name][-1][0] if self.got[name] else 0

    def run(self):
        while not self.trial.stopping.is_set():
            try:
                self.follow()
            except TROUBLE:
                time.sleep(0.01)

    def idle(self, is_over):
        while not is_over() and not self.trial.stopping.is_set():
            time.sleep(0.005)


class StreamReader(Reader):
    def follow(self):
        name, = self.got
        r = Stream(self.trial.server, "/events" if name == "*" else "/sessions/%s/events" % name, last=self.last(name))
        self.idle(lambda: r.over)
        r.close()
        self.got[name] += r.events()
        self.resets += sum(1 for _, e, _ in r.got if e == "reset")


class SocketReader(Reader):
    """All of its subscriptions in one connection."""

    def follow(self):
        w = Socket(self.trial.server)
        try:
            for name in self.got:
                w.send("subscribe", {"after": self.last(name), **({} if name == "*" else {"session_id": name})})
            self.idle(lambda: w.closed is not None)
        finally:
            w.close()
            for name in self.got:
                self.got[name] += [(p["position" if name == "*" else "seq"], dict(p["event"], session_id=p["session_id"]))
                                   for p in w.events(name)]
            self.resets += len(w.of("session.reset"))


class Trial:
    """One server, and those who use it."""

    def __init__(self, n, store=None):
        self.name = "server %d, seed %d:" % (n, seed)
        self.rnd = random.Random(seed + n)
        self.server = Server("--auto-resume", "live")
        if store:
            self.server.done()
            self.server = Server("--auto-resume", "live", store="files:%s/plain" % self.server.dir.name)
        self.files = bool(store)
        self.stopping, self.acknowledged, self.prompts = threading.Event(), {}, []
        script = self.server.write("script.json", json.dumps({"turns": [{"text": "answer %d" % i} for i in range(1000)]}))
        self.chat = json.loads(self.server.run("chat", "--script", script, "-p", "hello", "--output", "json").stdout)["session_id"]
        self.ids = [self.server.session(task_id="t%d" % i) for i in range(3)]

    def work(self, fn, *args):
        def run():
            n = 0
            while not self.stopping.is_set():
                try:
                    fn(n, *args)
                    n += 1
                except TROUBLE:
                    n += 1
                    time.sleep(0.01)

        t = threading.Thread(target=run, daemon=True)
        t.start()
        return t

    def append(self, n, one):
        a = self.server.api("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"n": n}}})
        if a.status == 201:
            self.acknowledged.setdefault(one, set()).add(a.json["seq"])

    def prompt(self, n):
        text = "prompt %d" % n
        a = self.server.api("POST", "/sessions/%s/messages" % self.chat, {"content": text})
        if a.status == 202:
            self.prompts.append(text)
        time.sleep(0.05)

    def kill_again_and_again(self):
        for n in range(rounds):
            time.sleep(self.rnd.uniform(0.01, 0.2))
            self.server.kill()
            if n % 10 == 5 and not self.files:
                self.server.run("store", "compact")
            self.server.start()

    def run(self):
        every = [*self.ids, self.chat]
        readers = [StreamReader(self, i) for i in every] + [SocketReader(self, *every)]
        if not self.files:
            readers += [StreamReader(self, "*"), SocketReader(self, "*", self.ids[0])]
        workers = [self.work(self.append, i) for i in self.ids] + [self.work(self.prompt)]
        self.kill_again_and_again()
        time.sleep(0.2)
        self.stopping.set()
        for t in workers + [r.thread for r in readers]:
            t.join(20)
        self.await_answers()
        self.heads = {i: self.server.api("GET", "/sessions/" + i).json["last_seq"] for i in every}
        self.stopping.clear()
        last = [type(r)(self, got=r.got) for r in readers]  # what came behind the last look
        self.await_heads(last)
        for r in last:
            self.check(r)
        self.check_answers()

    def await_heads(self, readers):
        time.sleep(0.5)
        self.stopping.set()
        for r in readers:
            r.thread.join(20)

    def await_answers(self):
        end_at = time.monotonic() + 30
        while True:
            status = self.server.api("GET", "/sessions/" + self.chat).json["status"]
            queue = self.server.api("GET", "/sessions/%s/queue" % self.chat).json["messages"]
            if status == "idle" and not queue:
                return
            want(time.monotonic() < end_at, True, "%s the chat is %s with %d queued" % (self.name, status, len(queue)))
            time.sleep(0.05)

    def check(self, reader):
        want(reader.resets, 0, self.name)
        for name, got in reader.got.items():
            about = "%s %s of %s" % (self.name, type(reader).__name__, name)
            if name != "*":
                want([n for n, _ in got], list(range(1, self.heads[name] + 1)), about)
                want(self.acknowledged.get(name, set()) <= {n for n, _ in got}, True, about)
                continue
            want([n for n, _ in got], sorted({n for n, _ in got}), about)
            for one, head in self.heads.items():
                want([d["seq"] for _, d in got if d["session_id"] == one], list(range(1, head + 1)), about + ", " + one)

    def check_answers(self):
        """Prompts that wait when a run goes on are answered together; none twice, and none is left."""
        entries = [(e["type"], e["text"]) for e in self.server.api("GET", "/sessions/%s/transcript" % self.chat).json["entries"]
                   if e["type"] in ("user", "assistant")]
        users, answers = [t for who, t in entries if who == "user"], [t for who, t in entries if who == "assistant"]
        want(len(users), len(set(users)), self.name)
        want(set(self.prompts) - set(users), set(), self.name)
        want([t for t in users if t in self.prompts], self.prompts, self.name)
        want(answers, ["answer %d" % i for i in range(len(answers))], self.name)
        want(entries[-1][0], "assistant", self.name)

    def __str__(self):
        return "%d kills, %d events and %d prompts acknowledged%s" % (
            rounds, sum(len(a) for a in self.acknowledged.values()), len(self.prompts), " (files)" if self.files else "")


def nothing_is_lost_or_doubled():
    trials = [Trial(0), Trial(1), Trial(2), Trial(3, store="files")]
    failed = []

    def run(t):
        try:
            t.run()
        except Exception as e:
            failed.append("%s: %s" % (type(e).__name__, e))

    threads = [threading.Thread(target=run, args=(t,)) for t in trials]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for t in trials:
        print("# " + str(t), flush=True)
        t.server.done()
    want(failed, [])


case("killed servers lose nothing that they acknowledged, answer each prompt once, and no reader has a gap", nothing_is_lost_or_doubled)
end()
