# SPDX-License-Identifier: Apache-2.0
# The server is killed while clients write and follow: what was acknowledged is there, and every reader that comes back with its last id
# has every event once, in order.
import http.client
import random
import sys
import threading
import time

from serving import Server, Stream, case, end, want

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
rnd = random.Random(seed)
s = Server()
ids = [s.session() for _ in range(4)]
acknowledged = {i: [] for i in ids}
stopping = threading.Event()


def write(one, pause):
    n = 0
    while not stopping.is_set():
        try:
            a = s.api("POST", "/sessions/%s/events" % one, {"kind": "memory.set", "data": {"values": {"n": n}}})
            if a.status == 201:
                acknowledged[one].append(a.json["seq"])
            n += 1
        except (OSError, http.client.HTTPException):
            time.sleep(pause)


class Reader:
    """Comes back as often as it is cut off, with the id that it got last."""

    def __init__(self, path):
        self.path, self.got, self.last = path, [], 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not stopping.is_set():
            try:
                r = Stream(s, self.path, last=self.last)
                while not r.over and not stopping.is_set():
                    time.sleep(0.005)
                r.close()
                for i, event, data in r.got:
                    if event is None:
                        self.got.append((int(i), data))
                        self.last = int(i)
                    elif event == "reset":
                        self.got.append((0, data))  # none may come: nothing that was acknowledged is lost
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)


def nothing_is_lost_or_doubled():
    readers = {i: Reader("/sessions/%s/events" % i) for i in ids}
    every = Reader("/events")
    writers = [threading.Thread(target=write, args=(i, 0.01), daemon=True) for i in ids]
    for w in writers:
        w.start()
    for _ in range(rounds):
        time.sleep(rnd.uniform(0.02, 0.25))
        s.kill()
        s.start()
    time.sleep(0.3)
    heads = {}
    stopping.set()
    for w in writers:
        w.join(20)
    for r in [*readers.values(), every]:
        r.thread.join(20)
    for i in ids:  # what came after a reader's last look
        heads[i] = s.api("GET", "/sessions/" + i).json["last_seq"]
        r = Stream(s, "/sessions/%s/events" % i, last=readers[i].last)
        r.wait(lambda r: readers[i].last >= heads[i] or (r.events() and r.events()[-1][0] >= heads[i]))
        r.close()
        got = [n for n, _ in readers[i].got] + [n for n, _ in r.events()]
        want(got, list(range(1, heads[i] + 1)), "session %s, seed %d:" % (i, seed))
        want(set(acknowledged[i]) <= set(got), True, "acknowledged")
    positions = [n for n, _ in every.got]
    want(positions, sorted(set(positions)), "all, seed %d:" % seed)
    for i in ids:
        seqs = [d["seq"] for _, d in every.got if d["session_id"] == i]
        want(seqs, list(range(1, len(seqs) + 1)), "all, of one, seed %d:" % seed)
    print("# %d kills, %d acknowledged" % (rounds, sum(len(a) for a in acknowledged.values())), flush=True)


case("a killed server loses nothing that it acknowledged, and no reader has a gap", nothing_is_lost_or_doubled)
s.done()
end()
