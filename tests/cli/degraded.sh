#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `on_store_error: continue` on a disk that is full for a while: what touches nothing outside goes on in memory. That is said when
# it begins and when the store is whole again, once each; afterwards list, show, why, state and the last line show it. Runs in a
# mount namespace of its own with a small tmpfs.
# shellcheck disable=SC2016,SC2317 # programs hold dollars; functions are called by name
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
    echo 'ok - a full disk # SKIP needs root and mount namespaces'
    exit 0
fi
if [ "${1:-}" != inside ]; then
    exec unshare -m bash "$0" inside
fi
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
mkdir small
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
mount -t tmpfs -o size=12m tmpfs small || { skip 'a full disk' 'cannot mount'; finish; }
PATH=$(dirname "$TIDE_BIN"):$PATH
TIDEMARK_STORE=$(store_at "$work/small/s")
export PATH TIDEMARK_STORE TIDEMARK_PROVIDER=script

# More than a log has room for, and one that fills the disk first.
size=200000
on_files && size=1300000
cat >program <<END_OF_PROGRAM
#!/bin/sh
tidemark step before --effect pure -- echo before
cat /dev/zero >small/fill 2>/dev/null
tidemark step during --effect pure -- sh -c 'head -c $size /dev/zero | tr "\\\\0" x' | wc -c
tidemark step behind --effect pure -- echo behind
while [ -e small/fill ]; do sleep 0.1; done
END_OF_PROGRAM
chmod +x program
cat >graph.json <<END_OF_GRAPH
{"tidemark_graph": 1, "id": "g", "entry": "a", "checkpoints": {"async_checkpoint": false}, "nodes": [
  {"id": "a", "type": "function", "effect": "pure", "program": ["sh", "-c", "cat /dev/zero >small/fill; printf '{\"x\":\"%0${size}d\"}' 1"], "outputs": ["x"]},
  {"id": "b", "type": "lua", "inputs": ["x"], "outputs": ["y"], "code": "return {y = 1}"},
  {"id": "c", "type": "function", "effect": "once", "program": ["sh", "-c", "echo '{\"z\": 1}'"], "inputs": ["y"], "outputs": ["z"]}],
 "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}
END_OF_GRAPH
text=$(repeat "$size" x)
cat >chat.json <<END_OF_ANSWERS
{"turns": [{"calls": [{"name": "bash", "args": {"command": "cat /dev/zero >$work/small/fill; true"}}]},
  {"text": "$text", "calls": [{"name": "glob", "args": {"pattern": "*.none"}}]}, {"text": "Still here.", "calls": [{"name": "bash", "args": {"command": "true"}}]}, {"text": "Done."}]}
END_OF_ANSWERS
cat >agent.json <<END_OF_ANSWERS
{"nodes": {"w": [{"calls": [{"name": "bash", "args": {"command": "cat /dev/zero >$work/small/fill; true"}}]},
  {"text": "$text", "calls": [{"name": "glob", "args": {"pattern": "*.none"}}]}, {"text": "Still here.", "calls": [{"name": "bash", "args": {"command": "true"}}]}, {"calls": [{"name": "set_output", "args": {"key": "x", "value": 1}}]}, {"text": "Done."}]}}
END_OF_ANSWERS
echo '{"tidemark_graph": 1, "id": "g", "entry": "w", "nodes": [{"id": "w", "type": "event_loop", "prompt": "write", "outputs": ["x"]}]}' >agent_graph.json

said() {
    grep -c "$1" err
}
# degraded NAME SESSION COMMAND...: the disk is full until it has been said.
degraded() {
    local whose=$1 id=$2 run
    shift 2
    : >err
    "$@" >out 2>err </dev/null &
    run=$!
    check "$whose: it is said when it begins" wait_for grep -qi 'no space left.*(durability: degraded)' err
    sleep 1 # what must not begin before the store is back is waited for by now
    rm -f small/fill
    wait "$run"
    check_is "$whose: it completes" 0 $?
    check_is "$whose: its beginning is said once" 1 "$(said '(durability: degraded)')"
    check_is "$whose: that the store is whole again, too" 1 "$(said 'the store can be written again')"
    check_is "$whose: and how much of it waited, at the end" 1 "$(tail -n 3 err | grep -c 'durability: degraded: [0-9]* events\? waited in memory')"
    [ -n "$id" ] || id=$(tidemark sessions list --ids | head -n 1)
    check "$whose: list" holds degraded <<<"$(tidemark sessions list | grep "$id")"
    check_is "$whose: list, JSON" degraded "$(tidemark sessions list --json | json '$.sessions[0].durability')"
    check "$whose: show" holds degraded <<<"$(tidemark sessions show "$id" | grep -i durability)"
    check "$whose: why" holds '(durability: degraded: ' <<<"$(tidemark why "$id")"
    check "$whose: state" eval "[ $(tidemark state "$id" | json '$.ledger.run.degraded') -gt 0 ]"
    check "$whose: the log" eval "tidemark log show $id | grep -q '\"durability\":\"degraded\"'"
    tidemark sessions delete "$id" >/dev/null 2>&1
    tidemark store compact >/dev/null 2>&1
}
degraded exec one tidemark exec --session one --on-store-error continue -- ./program
degraded 'exec, as set' two env TIDEMARK_ON_STORE_ERROR=continue "$TIDE_BIN" exec --session two -- ./program
tidemark config set on_store_error continue >/dev/null
degraded 'exec, as the file says' three tidemark exec --session three -- ./program
degraded run four tidemark run graph.json --session four
degraded chat '' tidemark chat --script chat.json --yes -p go
degraded 'a graph with an agent' six tidemark run agent_graph.json --session six --script agent.json --yes

# What is given wins over what is set.
: >err
tidemark exec --session held --on-store-error stop -- ./program >out 2>err &
run=$!
check 'exec, told otherwise than set: held' wait_for grep -q 'the run pauses' err
check_is 'it says nothing of memory' 0 "$(said degraded)"
rm small/fill
wait "$run"
check_is 'and completes' 0 $?
check_is 'whole' full "$(tidemark why held --json | json '$.durability')"
tidemark sessions delete held >/dev/null
: >err
tidemark run graph.json --session held --on-store-error stop >out 2>err &
run=$!
check 'run, too' wait_for grep -qi 'no space left.*paus' err
rm small/fill
wait "$run"
check_is 'run: whole' full "$(tidemark why held --json | json '$.durability')"
TIDEMARK_ON_STORE_ERROR=never refuses 'a word that is none' 2 'not one of: stop' exec -- true
finish
