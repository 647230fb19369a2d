#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full disk: appends are refused, nothing acknowledged is lost, reading and the doctor go on, and when there is room again so
# does everything, without repair. Runs in a mount namespace of its own with a small tmpfs.
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
    echo 'ok - a full disk # SKIP needs root and mount namespaces'
    exit 0
fi
if [ "${1:-}" != inside ]; then
    exec unshare -m bash "$0" inside
fi
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
mkdir small
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
mount -t tmpfs -o size=3m tmpfs small || { skip 'a full disk' 'cannot mount'; finish; }
TIDEMARK_STORE=$(store_at "$work/small/s")
export TIDEMARK_STORE

fill() {
    cat /dev/zero >small/fill 2>/dev/null
    df --output=avail small | tail -n 1
}

tidemark sessions new --id s >/dev/null
tidemark log append s --kind a.b >/dev/null
check_is 'the disk is full' 0 "$(fill | tr -d ' ')"

# What is appended now is acknowledged or refused by name; the disk has little room left in files that exist.
for i in $(seq 20); do echo "{\"kind\":\"a.b\",\"i\":$i,\"s\":\"$(repeat 20000 x)\"}"; done >lines
tidemark log append s - <lines >acks 2>err
check_is 'append: refused for want of space' 6 $?
check_is 'append: in one line' 1 "$(grep -ci 'no space left' err)"
acked=$(wc -l <acks)
check_is 'append: all that was acknowledged is there, and no more' $((acked + 2)) "$(tidemark log show s | wc -l)"
fill >/dev/null
repeat 2000000 x | sed 's/.*/{"s":"&"}/' >big
refuses_as 'append: one event' 6 'FULL|file||*||' log append s --kind a.b --data @big
refuses_as 'export into the full disk' 6 'FULL|||||' sessions export s -o small/export
check_is 'leaves nothing there' '' "$(find small -name 'export*')"
refuses_as 'a new store' 6 'FULL|file||*||' --store "$(store_at small/new)" sessions new

check_is 'list' s "$(tidemark sessions list --ids)"
check 'show' tidemark sessions show s
check 'log show' eval 'tidemark log show s | holds "\"seq\":2"'
check 'state' tidemark state s
check 'verify' tidemark sessions verify s
tidemark doctor >doctor.out
check_is 'doctor says so' '1 1' "$? $(grep -c '^fail  *space' doctor.out)"
check_is 'and nothing else fails' 1 "$(grep -c '^fail' doctor.out)"

# Closed, with its helper files gone: SQLite alone could not even be opened for reading.
tidemark log show s >before
rm -f small/s.db-shm
fill >/dev/null
check 'it opens on a full disk without its helper files' eval 'tidemark log show s | cmp - before'
check_is 'doctor too' 1 "$(tidemark doctor | grep -c '^ok  *open')"

rm small/fill
check_is 'with room again it goes on by itself' "{\"seq\":$(($(wc -l <before) + 1))}" "$(tidemark log append s --kind a.b)"
check 'and is whole' tidemark store check
# A graph whose disk fills up while it runs is held, says so, and goes on where it was: nothing is done twice. What it gives is
# more than a log has room for.
size=200000
on_files && size=1300000
cat >full.json <<END
{"tidemark_graph": 1, "id": "full", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "program": ["sh", "-c", "echo a >>ledger; cat /dev/zero >small/fill; printf '{\"x\":\"%0${size}d\"}' 1"], "outputs": ["x"]},
  {"id": "b", "type": "function", "program": ["sh", "-c", "echo b >>ledger; echo '{\"y\":2}'"], "outputs": ["y"]}],
 "edges": [{"from": "a", "to": "b"}]}
END
tidemark run full.json --session held >run.out 2>run.err &
run=$!
wait_for grep -qi 'no space left' run.err
check 'a graph on a full disk says why it is held' grep -qi 'no space left' run.err
check_is 'by a name that is there' '' "$(grep tmp- run.err)"
check_is 'and has not begun what comes next' a "$(tr -d '\n' <ledger)"
rm small/fill
wait "$run"
check_is 'with room again it completes' 0 $?
check 'and says that it goes on' grep -q 'can be written again' run.err
check_is 'each node once' ab "$(tr -d '\n' <ledger)"
check 'the session is whole' tidemark sessions verify held

# So is a chat, a graph with an agent, and a program: the model's answer, or a step's output, is more than a log has reserved.
text=$(repeat "$size" x)
cat >chat.json <<END
{"turns": [{"calls": [{"name": "bash", "args": {"command": "echo c >>$work/ledger; cat /dev/zero >$work/small/fill"}}]}, {"text": "$text"}, {"text": "Done."}]}
END
cat >agent.json <<END
{"nodes": {"w": [{"calls": [{"name": "bash", "args": {"command": "echo w >>$work/ledger; cat /dev/zero >$work/small/fill"}}]},
  {"text": "$text", "calls": [{"name": "set_output", "args": {"key": "x", "value": 1}}]}, {"text": "Done."}]}}
END
cat >agent_graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "w", "nodes": [{"id": "w", "type": "event_loop", "prompt": "write", "outputs": ["x"]}]}
END
cat >program <<END
#!/bin/sh
tidemark step fill -- sh -c 'echo p >>$work/ledger; cat /dev/zero >$work/small/fill 2>/dev/null; true'
tidemark step big -- sh -c 'echo q >>$work/ledger; head -c $size /dev/zero | tr "\\0" x' | wc -c
END
chmod +x program
passes() {
    local whose=$1
    shift
    : >ledger
    : >err
    "$@" >out 2>err &
    run=$!
    wait_for grep -qi 'no space left' err
    check "$whose: says why it is held" grep -qi 'no space left.* paus' err
    rm small/fill
    wait "$run"
    check_is "$whose: with room again it completes" 0 $?
    check_is "$whose: what it did is done once" "$(sort -u ledger)" "$(sort ledger)"
    check "$whose: and is done" test -s ledger
}
on_disk() {
    passes "a chat on $1" tidemark chat --provider script --script chat.json --yes -p go
    passes "a graph with an agent on $1" tidemark run agent_graph.json --session "graph-$1" --provider script --script agent.json --yes
    passes "a program on $1" env PATH="$(dirname "$TIDE_BIN"):$PATH" "$TIDE_BIN" exec --session "program-$1" -- ./program
    passes "a plain graph on $1" tidemark run full.json --session "plain-$1"
    check "the store on $1 is whole" tidemark store check
}
umount small # what was stored so far would leave no room for more
mount -t tmpfs -o size=12m tmpfs small
# The disk is full before the session is made, and has room three seconds later: that is held as well, and each has one session then.
cat >begin_chat.json <<END
{"turns": [{"calls": [{"name": "bash", "args": {"command": "echo c >>$work/ledger"}}]}, {"text": "Done."}]}
END
cat >begin_graph.json <<END
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "program": ["sh", "-c", "echo a >>$work/ledger; echo '{\"x\":1}'"], "outputs": ["x"]}]}
END
begin() {
    local whose=$1
    shift
    "$@" >"$whose.out" 2>"$whose.err" &
    pids[$whose]=$!
}
declare -A pids
fill >/dev/null
# There is not even a store: it is made when there is room.
for whose in chat exec run; do
    : >ledger
    case $whose in
    chat) begin chat tidemark chat --provider script --script begin_chat.json --yes -p go ;;
    exec) begin exec tidemark exec -- sh -c "echo e >>$work/ledger" ;;
    run) begin run tidemark run begin_graph.json ;;
    esac
    check "$whose: without a store on a full disk it says why it is held" wait_for grep -q '^tidemark: open store: .* paus' "$whose.err"
    rm small/fill
    wait "${pids[$whose]}"
    check_is "$whose: with room it makes the store and completes, once" '0 1 1' "$? $(wc -l <ledger | tr -d ' ') $(tidemark sessions list --ids | wc -l | tr -d ' ')"
    store=${TIDEMARK_STORE#files:}
    rm -rf "$store" "$store"-*
    fill >/dev/null
done
rm small/fill
: >ledger
tidemark store init >/dev/null
fill >/dev/null
begin chat tidemark chat --provider script --script begin_chat.json --yes -p go
begin exec tidemark exec -- sh -c "echo e >>$work/ledger"
begin run tidemark run begin_graph.json
for whose in chat exec run; do wait_for grep -qi 'no space left' "$whose.err"; done
sleep 3
check_is 'on a full disk no session is made, nothing is done' '' "$(tidemark sessions list --ids; cat ledger)"
rm small/fill
for whose in chat exec run; do
    wait "${pids[$whose]}"
    check_is "$whose: held before its session was made, it completes" 0 $?
    check_is "$whose: said why, once" 1 "$(grep -ci '^tidemark: create session: .*no space left.* paus' "$whose.err")"
    check_is "$whose: by a name that is there" 0 "$(grep -c 'tmp-' "$whose.err")"
    check_is "$whose: said that it goes on" 1 "$(grep -c 'can be written again' "$whose.err")"
done
check_is 'each once' ace "$(sort ledger | tr -d '\n')"
check_is 'one session each' 3 "$(tidemark sessions list --ids | wc -l | tr -d ' ')"

# One that is stopped meanwhile leaves none.
fill >/dev/null
begin stopped "$TIDE_BIN" exec -- sh -c "echo e >>$work/ledger"
wait_for grep -qi 'no space left' stopped.err
kill -TERM "${pids[stopped]}"
wait "${pids[stopped]}"
check_is 'stopped while it is held: by the signal' 143 $?
rm small/fill
check_is 'and no session is left of it' 3 "$(tidemark sessions list --ids | wc -l | tr -d ' ')"
check 'the store is whole' tidemark store check

on_disk tmpfs
umount small
truncate -s 12M image
if mkfs.ext4 -q image 2>/dev/null && mount -o loop image small 2>/dev/null; then
    on_disk ext4
else
    skip 'a full ext4' 'cannot be made or mounted here'
fi

finish
