#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever stands in a log that came from elsewhere, no command lets it act on a terminal: text for people is clean everywhere, JSON
# where a terminal gets it.
# shellcheck disable=SC2016 # JSON holds dollars
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
export TIDEMARK_STORE TERM=dumb
TIDEMARK_STORE=$(store_at s)

# Each text of these events clears the screen, turns the direction of what follows and begins a line of its own. The second control is one
# character above ASCII, which JSON may hold as it is.
t='\u001b[2J\u202e\u0007\r\nX\u009b31m'
forged evil session.created "{\"title\":\"$t\",\"agent\":\"$t\",\"agent_id\":\"$t\",\"task_id\":\"$t\",\"working_dir\":\"$t\",\"provider\":{\"type\":\"openai\",\"model\":\"$t\",\"base_url\":\"$t\"},\"metadata\":{\"$t\":\"$t\"}}" \
    run.started "{\"run_id\":\"r$t\",\"argv\":[\"$t\",\"$t\"],\"cwd\":\"$t\",\"env\":[\"$t\"],\"program\":\"$t\",\"path\":\"$t\"}" \
    message.user "{\"message_id\":\"m1\",\"turn\":1,\"content\":\"$t\"}" \
    message.assistant "{\"message_id\":\"m2\",\"turn\":1,\"content\":\"$t\",\"tool_calls\":[{\"id\":\"$t\",\"name\":\"$t\",\"args\":{\"$t\":\"$t\"}}]}" \
    llm.error "{\"turn\":1,\"context\":\"$t\",\"code\":\"$t\",\"message\":\"$t\",\"attempt\":1}" \
    memory.set "{\"values\":{\"$t\":\"$t\"},\"node\":\"$t\"}" \
    tool.started "{\"turn\":1,\"call_id\":\"$t\",\"tool\":\"$t\",\"args_digest\":\"0\",\"effect\":\"once\",\"key\":\"$t\",\"attempt\":0}" \
    tool.failed "{\"turn\":1,\"call_id\":\"$t\",\"tool\":\"$t\",\"attempt\":0,\"error\":{\"code\":\"$t\",\"message\":\"$t\"}}" \
    node.started "{\"node\":\"$t\",\"visit\":1}" \
    node.failed "{\"node\":\"$t\",\"visit\":1,\"error\":{\"code\":\"$t\",\"message\":\"$t\"}}" \
    hook.fired "{\"event\":\"$t\",\"hook\":\"$t\",\"decision\":\"$t\"}" \
    approval.requested "{\"approval_id\":\"$t\",\"call_id\":\"$t\",\"question\":\"$t\"}" \
    queue.added "{\"queue_id\":\"$t\",\"content\":\"$t\"}" \
    checkpoint "{\"checkpoint_id\":\"c$t\",\"type\":\"user_checkpoint\",\"description\":\"$t\",\"node\":\"$t\",\"execution_path\":[\"$t\"],\"metrics\":{\"nodes_with_failures\":[\"$t\"]}}" \
    run.waiting "{\"run_id\":\"r$t\",\"wait_name\":\"$t\",\"wait_kind\":\"input\",\"question\":\"$t\",\"since_seq\":1}" >evil.jsonl
check 'it is imported as it is' tidemark sessions import evil.jsonl

# looked_at: every command of standard input, with its output in a pipe and on a terminal. One line each.
looked_at() {
    python3 -c '
import os, pty, subprocess, sys
def acts(text):
    return sorted({"U+%04X" % ord(c) for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u2066"})
def on_terminal(argv):
    ours, theirs = pty.openpty()
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    out = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    p.wait()
    os.close(ours)
    return out.replace(b"\r\n", b"\n")
for words in sys.stdin.read().splitlines():
    argv = [sys.argv[1], "--color", "never"] + words.split()
    piped = b"" if "json" in words or words.split()[0] in ("state", "log") or "markdown" in words else subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    found = {"in a pipe": acts(piped.decode("utf-8", "replace")), "on a terminal": acts(on_terminal(argv).decode("utf-8", "replace"))}
    for where, what in found.items():
        print("%s - %s, %s" % ("not ok" if what else "ok", words, where), *(["\n# " + " ".join(what)] if what else []))
' "$TIDE_BIN"
}
commands='sessions list
sessions list --json
why evil
why evil --json
sessions show evil
sessions show evil --json
sessions timeline evil
sessions timeline evil --json
sessions transcript evil
sessions transcript evil --json
sessions transcript evil --format html
sessions transcript evil --format markdown
sessions checkpoints evil
sessions checkpoints evil --ids
sessions checkpoints evil --json
sessions queue evil
sessions queue evil --json
state evil
log show evil
sessions export evil
sessions verify evil
sessions trust evil --show
sessions trust evil --show --json
recover --dry-run
recover --dry-run --json
doctor
doctor --json
store check
resume evil
chat --resume evil -p x'
looked_at <<<"$commands" >looked
grep '^ok' looked
check_is 'nothing acts on a terminal before it is trusted' '' "$(grep -v '^ok' looked)"
tidemark sessions trust evil --yes >/dev/null
looked_at <<<"$commands" >looked
check_is 'nor afterwards' '' "$(grep -v '^ok' looked)"
cat >titles.py <<'END'
import json, os, pty, subprocess, sys
argv = [sys.argv[1], "sessions", "show", "evil", "--json"]
piped = subprocess.run(argv, stdout=subprocess.PIPE).stdout
ours, theirs = pty.openpty()
subprocess.run(argv, stdout=theirs)
shown = os.read(ours, 65536)
print("\u009b".encode() in piped, json.loads(piped)["title"] == json.loads(shown)["title"])
END
check_is 'programs get JSON as it was, and a terminal the same value' 'True True' "$(python3 titles.py "$TIDE_BIN")"
finish
