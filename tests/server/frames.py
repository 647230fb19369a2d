# SPDX-License-Identifier: Apache-2.0
# A WebSocket client of the standard library alone: every byte of it is in the hands of the test.
import base64
import json
import os
import socket
import struct
import threading
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode, payload=b"", fin=True, mask=True, rsv=0, length=None):
    n = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if not mask:
        return head + payload
    key = os.urandom(4)
    long = (key * (len(payload) // 4 + 1))[:len(payload)]
    return head + key + (int.from_bytes(payload, "big") ^ int.from_bytes(long, "big")).to_bytes(len(payload), "big")


def handshake(port, token, protocol=True, path="/api/v1/ws", fields=()):
    """The bytes of a request for an upgrade. protocol: the token goes there, else into Authorization."""
    lines = ["GET %s HTTP/1.1" % path, "Host: 127.0.0.1:%d" % port, "Connection: Upgrade", "Upgrade: websocket",
             "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode()]
    if token and protocol:
        lines.append("Sec-WebSocket-Protocol: tidemark.v1, bearer." + token)
    elif token:
        lines.append("Authorization: Bearer " + token)
    return ("\r\n".join([*lines, *fields]) + "\r\n\r\n").encode()


class Refused(Exception):
    def __init__(self, status):
        super().__init__("the server answers %d" % status)
        self.status = status


class Socket:
    """`got`: every message that came, as JSON; `closed`: the code of the close frame, 1006 where there was none."""

    def __init__(self, server, token=None, protocol=True, reads=True, **more):
        self.s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.s.sendall(handshake(server.port, token or server.token, protocol, **more))
        self.head, self.rest = self.read_head()
        status = int((self.head.split(b" ", 2) + [b"0", b"0"])[1])  # 0: it said nothing
        if status != 101:
            self.s.close()
            raise Refused(status)
        self.got, self.answers, self.pongs, self.closed = [], {}, 0, None
        self.changed = threading.Condition()
        self.n = 0
        self.thread = threading.Thread(target=self.read, daemon=True)
        if reads:
            self.thread.start()

    def read_head(self):
        head = b""
        while b"\r\n\r\n" not in head:
            more = self.s.recv(4096)
            if not more:
                break
            head += more
        head, _, rest = head.partition(b"\r\n\r\n")
        return head, rest

    def take(self, n):
        while len(self.rest) < n:
            more = self.s.recv(65536)
            if not more:
                raise OSError("the end")
            self.rest += more
        piece, self.rest = self.rest[:n], self.rest[n:]
        return piece

    def read_frame(self):
        one, two = self.take(2)
        n = two & 127
        if n == 126:
            n = struct.unpack(">H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.take(8))[0]
        return one & 15, self.take(n)

    def read(self):
        code = 1006
        try:
            while True:
                opcode, payload = self.read_frame()
                if opcode == CLOSE:
                    code = struct.unpack(">H", payload[:2])[0] if payload else 1005
                    self.s.sendall(frame(CLOSE, payload[:2]))
                    break
                if opcode == PING:
                    self.s.sendall(frame(PONG, payload))
                    continue
                with self.changed:
                    if opcode == PONG:
                        self.pongs += 1
                    else:
                        self.put(json.loads(payload))
                    self.changed.notify_all()
        except (OSError, ValueError):
            pass
        with self.changed:
            self.closed = code
            self.changed.notify_all()

    def put(self, message):
        self.got.append(message)
        if message["type"] != "notification":
            self.answers[message["id"]] = message

    def send(self, action, payload=None, **more):
        self.n += 1
        message = {"id": self.n, "type": "request", "action": action, **more}
        if payload is not None:
            message["payload"] = payload
        self.raw(frame(TEXT, json.dumps(message).encode()))
        return self.n

    def ask(self, action, payload=None, **more):
        n = self.send(action, payload, **more)
        self.wait(lambda w: n in w.answers)
        return self.answers[n]

    def raw(self, data):
        self.s.sendall(data)

    def of(self, *actions, subscription=None):
        return [m["payload"] for m in list(self.got) if m["type"] == "notification" and m["action"] in actions
                and subscription in (None, m["payload"]["subscription"])]

    def events(self, subscription=None):
        return self.of("session.event", "session.message.added", "session.message.updated", subscription=subscription)

    def wait(self, is_so, seconds=10):
        end = time.monotonic() + seconds
        with self.changed:
            while not is_so(self):
                left = end - time.monotonic()
                if left <= 0 or (self.closed is not None and not is_so(self)):
                    raise AssertionError("not within %d s, closed: %r, got %r" % (seconds, self.closed, self.got[-3:]))
                self.changed.wait(left)

    def close(self):
        try:
            self.s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if self.thread.ident:
            self.thread.join(10)
        self.s.close()
