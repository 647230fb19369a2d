# SPDX-License-Identifier: Apache-2.0
# The server under a service manager: sockets that it is given, what it says of itself, and that it is heard of while it works.
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from serving import BIN, case, end, want

# Passes descriptors from 3 on and says for whom, as the service manager does.
LAUNCH = """
import os, sys
fds = [int(f) for f in sys.argv[1].split(",") if f]
kept = [os.dup(f) for f in fds]
for i, f in enumerate(kept):
    os.dup2(f, 3 + i)
    os.set_inheritable(3 + i, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=sys.argv[2])
if sys.argv[3] != "0":
    os.environ.update(WATCHDOG_PID=str(os.getpid()), WATCHDOG_USEC=sys.argv[3])
os.execv(sys.argv[4], sys.argv[4:])
"""


class Manager:
    def __init__(self):
        self.temp = tempfile.TemporaryDirectory(prefix="tidemark-manager-")
        self.dir = self.temp.name
        self.env = dict(os.environ, XDG_STATE_HOME=self.dir + "/state", XDG_CONFIG_HOME=self.dir + "/config",
                        XDG_RUNTIME_DIR=self.dir, NOTIFY_SOCKET=self.dir + "/notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.dir + "/notify")
        self.notify.settimeout(20)
        self.tcp = socket.socket()
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen()
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(self.dir + "/given")
        self.unix.listen()
        self.serve = [BIN, "--store", self.dir + "/s.db", "serve"]

    def start(self, sockets, names="", watchdog_us=0, options=()):
        fds = [s.fileno() for s in sockets]
        return subprocess.Popen([sys.executable, "-c", LAUNCH, ",".join(map(str, fds)), names, str(watchdog_us), *self.serve,
                                 *options], env=self.env, pass_fds=fds, stderr=subprocess.PIPE, text=True)

    def hears(self):
        return self.notify.recv(4096).decode()

    def done(self):
        for s in (self.notify, self.tcp, self.unix):
            s.close()
        self.temp.cleanup()


def ask(address, head=b"Host: localhost"):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as c:
        c.settimeout(20)
        c.connect(address)
        c.sendall(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + head + b"\r\n\r\n")
        return c.recv(100).split(b" ")[1]


def the_sockets_that_it_is_given_are_its_addresses():
    m = Manager()
    port = m.tcp.getsockname()[1]
    p = m.start([m.tcp, m.unix], "http:unix")
    want(m.hears(), "READY=1")
    want(p.stderr.readline().split(";")[0], "tidemark: http://127.0.0.1:%d" % port)
    want(p.stderr.readline().split(";")[0], "tidemark: unix:%s/given" % m.dir)
    want(ask(("127.0.0.1", port), b"Host: 127.0.0.1:%d" % port), b"200")
    want(ask(m.dir + "/given"), b"200")
    want(os.path.exists(m.dir + "/tidemark"), False)  # a socket of its own
    p.send_signal(signal.SIGTERM)
    want(m.hears().split("\n")[0], "STOPPING=1")
    want(p.wait(20), 0)
    p.stderr.close()
    want(os.path.exists(m.dir + "/given"), True)  # the manager's
    with socket.create_connection(("127.0.0.1", port), timeout=10) as early:  # before the next one is there
        early.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        p = m.start([m.tcp, m.unix])
        want(early.recv(100).split(b" ")[1], b"200")
    p.kill()
    p.wait()
    p.stderr.close()
    m.done()


def what_is_no_listening_socket_is_refused():
    m = Manager()
    idle, datagram, any_ = socket.socket(), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket()
    any_.bind(("0.0.0.0", 0))
    any_.listen()
    for s, status, words in ((idle, 2, "does not listen"), (datagram, 2, "does not listen"), (any_, 6, "needs TLS")):
        p = m.start([s], "mine")
        said = p.communicate(timeout=20)[1]
        want((p.returncode, said.count("\n"), words in said), (status, 1, True), said)
        s.close()
    m.env.update(LISTEN_FDS="2", LISTEN_PID="1")  # meant for another process
    p = subprocess.Popen([*m.serve, "--listen", "127.0.0.1:0"], env=m.env, stderr=subprocess.PIPE, text=True)
    want(m.hears(), "READY=1")
    p.send_signal(signal.SIGTERM)
    want(p.wait(20), 0)
    p.stderr.close()
    m.done()


def it_is_heard_of_as_long_as_it_works():
    m = Manager()
    p = m.start([m.tcp], "", 400000)
    want(m.hears(), "READY=1")
    began = time.monotonic()
    want([m.hears() for _ in range(4)], ["WATCHDOG=1"] * 4)
    want(time.monotonic() - began < 2, True, "often enough")
    p.send_signal(signal.SIGTERM)
    while m.hears() == "WATCHDOG=1":
        pass
    want(p.wait(20), 0)
    p.stderr.close()
    m.done()


def programs_know_nothing_of_the_manager():
    m = Manager()
    p = m.start([m.unix], "unix")
    want(m.hears(), "READY=1")
    script = m.dir + "/p"
    with open(script, "w") as f:
        f.write("#!/bin/sh\ntidemark wait go --kind input > %s/answer\nenv > %s/env.new && mv %s/env.new %s/env\n" % ((m.dir,) * 4))
    os.chmod(script, 0o700)
    env = {k: v for k, v in m.env.items() if k != "NOTIFY_SOCKET"}
    subprocess.run([BIN, "--store", m.dir + "/s.db", "exec", "--session", "p", "--", script], env=env, capture_output=True)
    body = b'{"input":"yes"}'
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(m.dir + "/given")
        c.sendall(b"POST /api/v1/sessions/p/answer HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        want(c.recv(100).split(b" ")[1], b"202")
    end_at = time.monotonic() + 20
    while not os.path.exists(m.dir + "/env") and time.monotonic() < end_at:
        time.sleep(0.02)
    with open(m.dir + "/env") as f:
        want(re.findall("^(LISTEN_[A-Z]*|NOTIFY_SOCKET|WATCHDOG_[A-Z]*)=", f.read(), re.M), [])
    p.send_signal(signal.SIGTERM)
    want(p.wait(20), 0)
    p.stderr.close()
    m.done()


def systemd_socket_activate_starts_it():
    activate = shutil.which("systemd-socket-activate")
    if not activate:
        print("# systemd-socket-activate is not here")
        return
    m = Manager()
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
    probe.close()
    names = ["-E" + k for k in m.env if k.startswith(("XDG_", "TIDE", "NOTIFY"))]
    p = subprocess.Popen([activate, "-l", "127.0.0.1:%d" % port, "--fdname=http", *names, *m.serve], env=m.env,
                         stderr=subprocess.PIPE, text=True)
    want("Listening" in p.stderr.readline(), True)
    want(ask(("127.0.0.1", port), b"Host: 127.0.0.1:%d" % port), b"200")
    want(m.hears(), "READY=1")
    p.send_signal(signal.SIGTERM)
    want(p.wait(20), 0)
    p.stderr.close()
    m.done()


def the_unit_is_as_the_manual_says():
    here = os.path.join(os.environ["TIDE_SOURCE"], "examples")
    with open(here + "/tidemark.service") as f:
        unit = f.read()
    for line in ("Type=notify", "KillMode=process", "WatchdogSec=60s", "NoNewPrivileges=yes"):
        want(line in unit.split("\n"), True, line)
    verify = shutil.which("systemd-analyze")
    if not verify:
        return
    with tempfile.TemporaryDirectory() as d:
        for name in ("tidemark.service", "tidemark.socket"):
            with open(os.path.join(here, name)) as f, open(os.path.join(d, name), "w") as out:
                out.write(f.read().replace("ExecStart=tidemark", "ExecStart=" + BIN))
        r = subprocess.run([verify, "verify", "--user", "--man=no", d + "/tidemark.service", d + "/tidemark.socket"],
                           env=dict(os.environ, XDG_RUNTIME_DIR=d), capture_output=True, text=True)
        if "Failed to initialize manager" in r.stderr:
            return
        want([line for line in r.stderr.splitlines() if "tidemark" in line], [])


case("the sockets that it is given are its addresses", the_sockets_that_it_is_given_are_its_addresses)
case("what is no listening socket is refused", what_is_no_listening_socket_is_refused)
case("it is heard of as long as it works", it_is_heard_of_as_long_as_it_works)
case("programs know nothing of the manager", programs_know_nothing_of_the_manager)
case("systemd-socket-activate starts it", systemd_socket_activate_starts_it)
case("the unit is as the manual says", the_unit_is_as_the_manual_says)
end()
