# SPDX-License-Identifier: Apache-2.0
# A server whose tokens, memory and descriptors a test can look at and change, as its user could.
import hashlib
import json
import os
import secrets
import time

import serving


class Server(serving.Server):
    @property
    def tokens_file(self):
        return self.dir.name + "/state/tidemark/access.json"

    def change_tokens(self, change):
        with open(self.tokens_file) as f:
            all_tokens = json.load(f)
        change(all_tokens["tokens"])
        with open(os.open(self.tokens_file + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            json.dump(all_tokens, f)
        os.rename(self.tokens_file + ".new", self.tokens_file)

    def make_token(self, name, scopes, lives_ms=0):
        secret = "tide_" + secrets.token_urlsafe(32)
        row = {"name": name, "id": secrets.token_hex(8), "scopes": scopes.split(","), "created_ms": 0,
               "hash": hashlib.blake2b(secret.encode(), digest_size=32).hexdigest(),
               "expires_ms": lives_ms and int(time.time() * 1000) + lives_ms}
        self.change_tokens(lambda tokens: tokens.append(row))
        return secret

    def revoke(self, name):
        self.change_tokens(lambda tokens: tokens.remove(next(t for t in tokens if t["name"] == name)))

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def memory(self):
        """KiB that are resident, of no file."""
        with open("/proc/%d/status" % self.process.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))
