#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Logs of plain files that somebody edited in the middle, of sessions so long that they are loaded from stored states: whoever
# would continue behind the damage is refused by name, before anything happens; what is intact is never refused.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
export PATH TIDEMARK_STORE=files:d
logs=d/sessions

# sum ID: of its log.
sum() {
    cksum <"$logs/$1.messages.jsonl"
}
# edit ID SEQ: another letter in that event, in place.
edit() {
    sed "/^{\"seq\":$2,/ s/letters/Letters/" "$logs/$1.messages.jsonl" >edited
    cat edited >"$logs/$1.messages.jsonl"
}
# unedit ID SEQ
unedit() {
    sed "/^{\"seq\":$2,/ s/Letters/letters/" "$logs/$1.messages.jsonl" >edited
    cat edited >"$logs/$1.messages.jsonl"
}
# lines N: so many events.
lines() {
    for ((i = 1; i <= $1; i++)); do
        echo "{\"values\": {\"key$((i % 20))\": \"letters $i\"}}"
    done
}
# long ID: 3,000 events, given back.
long() {
    tidemark sessions new --id "$1" >/dev/null
    lines 2999 | tidemark log append "$1" - --kind memory.set >/dev/null
}
event='{"values": {"one": "more"}}'

tidemark store init >/dev/null
long a
check 'it has a stored state' test -f d/cache/a/state-3000
check_is 'as it is, it takes one more' '{"seq":3001}' "$(tidemark log append a --kind memory.set --data "$event")"

# ---- edited ----
edit a 700
before=$(sum a)
refuses_as 'an append' 5 'CORRUPT|event|a||700|show_log' log append a --kind memory.set --data "$event"
refuses_as 'lines from standard input' 5 'CORRUPT|event|a||700|show_log' log append a - --kind memory.set <<<"$event"
refuses_as 'a message' 5 'CORRUPT|event|a||700|show_log' sessions send a hello
refuses_as 'an input' 5 'CORRUPT|event|a||700|show_log' log append a --input --kind cancel.requested --data '{}'
refuses_as 'a program' 5 'CORRUPT|event|a||700|show_log' exec --session a -- touch "$work/ran"
check 'which did not run' test ! -e ran
refuses_as 'a resume' 5 'CORRUPT|session|a|||' resume a
refuses_as 'a fork' 5 'CORRUPT|event|a||700|show_log' sessions fork a --id f
refuses_as 'a rollback' 5 'CORRUPT|event|a||700|show_log' sessions rollback a --to 2000
check_is 'nothing was written' "$before" "$(sum a)"
check_is 'nor made' a "$(tidemark sessions list --ids)"
check_is 'the good prefix can be read' 699 "$(tidemark log show a --to 699 --json | wc -l)"
check_is 'and forked' g "$(tidemark sessions fork a --at 699 --id g)"
check_is 'and gone on from' '{"seq":701}' "$(tidemark log append g --kind memory.set --data "$event")"

# ---- put back, or never changed ----
unedit a 700
check_is 'put back, it takes one more' '{"seq":3002}' "$(tidemark log append a --kind memory.set --data "$event")"
touch "$logs/a.messages.jsonl"
check_is 'touched, too' '{"seq":3003}' "$(tidemark log append a --kind memory.set --data "$event")"
cp -r d e
check_is 'and a copy' '{"seq":3004}' "$(tidemark --store files:e log append a --kind memory.set --data "$event")"
rm -rf d/cache
check_is 'and without a cache' '{"seq":3004}' "$(tidemark log append a --kind memory.set --data "$event")"

# ---- what changes no event ----
sed -i '500s/$/ /' "$logs/a.messages.jsonl"
check_is 'a space more behind a line' '{"seq":3005}' "$(tidemark log append a --kind memory.set --data "$event" 2>&1)"
check_is 'and no event less' "ok       a  3005 events" "$(tidemark sessions verify a)"
check_is 'it can be read from there on' 501 "$(tidemark log show a --from 501 --to 501 | json '$.seq')"
sed -i 's/^{"seq":800,.*"at":[0-9]*/&0/' "$logs/a.messages.jsonl"
# Which event is named depends on how many were written together: the first of them, at most the 800th.
refuses_as 'how lines were written together is proved as well' 5 'CORRUPT|event|a||[1-8][0-9][0-9]|show_log' log append a --kind memory.set --data "$event"
sed -i 's/^\({"seq":800,.*"at":[0-9]*\)0,/\1,/; 500s/ $//' "$logs/a.messages.jsonl"
check_is 'put back' '{"seq":3006}' "$(tidemark log append a --kind memory.set --data "$event")"

# ---- while somebody holds it ----
mkfifo lines
"$TIDE_BIN" log append a - --kind memory.set <lines >acks &
exec 3>lines
echo "$event" >&3
check 'one holds it' wait_for test -s acks
edit a 700
echo "$event" >&3
check 'which goes on' wait_for has_lines acks 1
exec 3>&-
wait $!
check_is 'until it ends' 0 $?
refuses_as 'the next one finds it' 5 'CORRUPT|event|a||700|show_log' log append a --kind memory.set --data "$event"
unedit a 700
check_is 'put back, it goes on' '{"seq":3009}' "$(tidemark log append a --kind memory.set --data "$event")"

# ---- a fork stands on its parent ----
check_is 'a fork behind the event' h "$(tidemark sessions fork a --at 3001 --id h)"
check_is 'and a fork of that' i "$(tidemark sessions fork h --id i)"
lines 1500 | tidemark log append i - --kind memory.set >/dev/null
check_is 'it has a stored state of its own' 1 "$(find d/cache/i -name 'state-*' | head -n 1 | wc -l)"
check_is 'verify reads all of it' 'ok       i  1501 events' "$(tidemark sessions verify i)"
edit a 700
tidemark sessions verify i >out 2>err
check_is 'and what it shares' "5 damaged  i  session 'a': event 700 is damaged" "$? $(cut -d: -f 1-2 out)"
check 'no more than that' tidemark sessions verify g
tidemark sessions verify --all >out 2>err
check_is 'of all, each is read once' 'ok i' "$(awk '$2 == "i" {print $1, $2}' out)"
unedit a 700
check_is 'takes one more' '{"seq":4504}' "$(tidemark log append i --kind memory.set --data "$event")"
edit a 700
refuses_as 'not when the parent was edited' 5 'CORRUPT|event|*||700|show_log' log append h --kind memory.set --data "$event"
unedit a 700
touch "$logs/a.messages.jsonl"
cp d/cache/a.head kept.head
tidemark log append h --kind memory.set --data "$event" >out
check 'a parent that is proved' test "$(cksum <kept.head)" != "$(cksum <d/cache/a.head)"
cp d/cache/a.head kept.head
tidemark log append h --kind memory.set --data "$event" >out
check 'is proved once' cmp kept.head d/cache/a.head
edit a 700
refuses_as "nor the parent's parent" 5 'CORRUPT|event|*||700|show_log' log append i --kind memory.set --data "$event"
check_is 'one from before the event does' '{"seq":702}' "$(tidemark log append g --kind memory.set --data "$event")"
unedit a 700

# ---- a copy that goes on with what is there ----
tidemark store copy files:d files:c --session a >out 2>&1
check_is 'a copy' 0 $?
check_is 'and one more event' 0 "$(tidemark log append a --kind memory.set --data "$event" >/dev/null; echo $?)"
kept=$logs
logs=c/sessions
edit a 700
tidemark store copy files:d files:c --session a >out 2>err
check_is 'is not continued where it was edited' '5 1' "$? $(grep -c "^tidemark: .*event 700 is damaged" err)"
unedit a 700
check_is 'put back, it is' 0 "$(tidemark store copy files:d files:c --session a >/dev/null 2>&1; echo $?)"
check_is 'with the new event' "$(tidemark sessions show a --json | json '$.last_seq')" \
    "$(tidemark --store files:c sessions show a --json | json '$.last_seq')"
logs=$kept

# ---- after a kill ----
# killed ID: a step that was killed with all that it had.
killed() {
    rm -f begun
    # shellcheck disable=SC2016 # for the inner shell
    "$TIDE_BIN" exec --new-run --session "$1" -- sh -c 'echo $$ >begun.1 && mv begun.1 begun && exec sleep 600' 2>/dev/null &
    wait_for test -s begun
    kill -KILL $! "$(cat begun)"
    wait $! 2>/dev/null
}
long k
killed k
tidemark recover >out
check_is 'one that was killed is looked after' '0 interrupted' "$? $(tidemark sessions show k --json | json '$.outcome')"
killed k
edit k 1500
tidemark recover >out 2>err
check_is 'one that was killed and edited is named by who looks after it' '5 1' "$? $(grep -c "event 1500 is damaged" err)"
refuses_as 'and not gone on with' 5 'CORRUPT|session|k|||' resume k
unedit k 1500
check_is 'put back, it is looked after' 0 "$(tidemark recover >/dev/null; echo $?)"

# ---- what a cut left is not thrown away by one who writes nothing ----
long t
rm -f acks
"$TIDE_BIN" log append t - --kind memory.set <lines >acks &
exec 3>lines
echo "$event" >&3
wait_for test -s acks
kill -KILL $!
wait $! 2>/dev/null
exec 3>&-
printf '{"half' >>"$logs/t.messages.jsonl"
tidemark recover >out 2>&1
check_is 'who gives back the lease of the one that was killed leaves it' '{"half' "$(tail -c 6 "$logs/t.messages.jsonl")"
tidemark log append t --kind memory.set --data "$event" >out 2>&1
check_is 'and who writes keeps it aside' '{"half' "$(cat "$logs/t.torn-1")"
rm -r "$logs"/t.* d/cache/t*

# ---- what is lost stays told, whoever looked meanwhile ----
tidemark sessions new --id l >/dev/null
for i in 2 3 4 5 6; do tidemark log append l --kind note.made >/dev/null; done
sed -i '$d' "$logs/l.messages.jsonl"
lost() { tidemark store check 2>/dev/null | grep -c "^l: session 'l' ends at event $1, but event 6 was acknowledged: restore sessions/l.messages.jsonl"; }
check_is 'the end of a log is missing' 1 "$(lost 5)"
refuses_as 'nobody writes behind it' 5 'CORRUPT|session|l|||check_store' log append l --kind note.made
check_status 'nor does one who comes and writes nothing' 5 tidemark log append l - </dev/null
refuses_as 'it is not forked either' 5 'CORRUPT|session|l|||check_store' sessions fork l --at 2 --id m
check_is 'and it stays told' 1 "$(lost 5)"
: >"$logs/l.messages.jsonl"
check_is 'all of it is: it is listed' l "$(tidemark sessions list --status damaged --ids | grep -x l)"
check_is 'and what to do' 1 "$(lost 0)"
rm "$logs"/l.* d/cache/l.*

# ---- a graph goes on in a fork, at the last checkpoint before the damage ----
cat >graph.json <<'GRAPH'
{"tidemark_graph": 1, "id": "g", "entry": "fill", "memory": {"key": ""}, "nodes": [
  {"id": "fill", "type": "lua", "outputs": ["text"], "code": "return {text = string.rep('letters ', 30000)}"},
  {"id": "more", "type": "lua", "outputs": ["more"], "code": "return {more = string.rep('letters ', 30000)}"},
  {"id": "need", "type": "lua", "inputs": ["key"], "outputs": ["done"], "code": "return {done = assert(inputs.key ~= '' and inputs.key, 'no key')}"}],
 "edges": [{"from": "fill", "to": "more"}, {"from": "more", "to": "need"}]}
GRAPH
tidemark run graph.json --session r >out 2>err
check_is 'a graph that lacks a key' 1 $?
at=$(grep letters "$logs/r.messages.jsonl" | grep -o '^{"seq":[0-9]*' | tail -n 1 | cut -d: -f2)
edit r "$at"
tidemark sessions resume r --set key=1 --dry-run >out 2>err
check 'would be resumed in a fork' holds 'it would continue in a fork, from checkpoint' <err
was=$(tidemark sessions list --ids | wc -l)
tidemark sessions resume r --input yes >out 2>err
check_is 'refused, it leaves no fork' "2 $was" "$? $(tidemark sessions list --ids | wc -l)"
tidemark sessions resume r --set key=1 >out 2>err
check_is 'goes on with the rest' 0 $?
check 'in a fork, and says so' holds 'session r is damaged' <err
check_is 'from before the damage' 1 "$(tidemark log show "$(tidemark sessions list --ids | grep -v '^[a-z]$')" --json | grep -c '"node.started".*"more"')"
finish
