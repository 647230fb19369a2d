# SPDX-License-Identifier: Apache-2.0
# The server through clients from npm, which know nothing of it; skipped where they cannot be had.
import os
import subprocess
import sys

from serving import Server

root = os.environ["TIDE_SOURCE"]
where = os.path.join(os.environ.get("TIDE_BUILD", os.path.join(root, "build")), "clients")
setup = subprocess.run([os.path.join(root, "tools/setup-clients"), where], stdout=subprocess.PIPE, text=True)
if setup.returncode == 77:
    print("SKIP: the clients cannot be had from npm, and were not fetched before")
if setup.returncode:
    sys.exit(setup.returncode)
s = Server()
ran = subprocess.run([setup.stdout.strip(), os.path.join(where, "clients.mjs"), str(s.port), s.token], timeout=100)
s.done()
sys.exit(ran.returncode)
