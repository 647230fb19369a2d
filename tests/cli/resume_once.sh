#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ways back to before what must happen once, after a kill: checkpoints, rollbacks, other names, damage. It never happens
# twice without a word, and nothing is written before everything was looked at.
# shellcheck disable=SC2016,SC2317 # variables are for the programs; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

pay='"type": "function", "effect": "once", "outputs": ["paid"],
   "program": ["sh", "-c", "echo pay >>world; test -e ok || exec sleep 60; echo {\\\"paid\\\": 1}"]'
a='{"id": "a", "type": "function", "program": ["sh", "-c", "echo a >>world; echo {\\\"a\\\": 1}"], "outputs": ["a"]}'
z='{"id": "z", "type": "lua", "code": "return {z = 1}", "outputs": ["z"]}'
cat >pay.json <<END
{"tidemark_graph": 1, "id": "pay", "entry": "a", "nodes": [$a, {"id": "pay", $pay}, $z],
 "edges": [{"from": "a", "to": "pay"}, {"from": "pay", "to": "z"}]}
END
sed 's/"id": "pay", "type"/"id": "buy", "type"/; s/"to": "pay"/"to": "buy"/; s/"from": "pay"/"from": "buy"/' pay.json >buy.json
sed 's/"once"/"idempotent"/' pay.json >again.json
cat >inside.json <<END
{"tidemark_graph": 1, "id": "inside", "entry": "a", "nodes": [$a, {"id": "s", "type": "subgraph", "outputs": ["paid"],
  "graph": {"tidemark_graph": 1, "id": "i", "entry": "pay", "nodes": [{"id": "pay", $pay}]}}], "edges": [{"from": "a", "to": "s"}]}
END
cat >each.json <<END
{"tidemark_graph": 1, "id": "each", "entry": "a", "nodes": [$a, {"id": "m", "type": "map", "over": "{1}", "outputs": ["all"],
  "node": {$pay}}], "edges": [{"from": "a", "to": "m"}]}
END

# killed ID GRAPH: killed while it pays; from now on paying is quick.
killed() {
    rm -f world ok
    : >world
    "$TIDE_BIN" run "$2" --session "$1" --quiet >/dev/null 2>&1 &
    runner=$!
    wait_for grep -q pay world
    begun=$(tidemark sessions checkpoints "$1" --ids | sed -n 1p) # while it lives: who looks at a dead one writes that down
    kill -KILL $runner
    wait $runner 2>/dev/null
    : >ok
}

world() {
    tr '\n' ' ' <world
}

first() {
    tidemark sessions checkpoints "$1" --ids | sed -n "${2:-1}p"
}

last() {
    tidemark sessions show "$1" --json | json '$.last_seq'
}

# ---- straight after a kill ----
for i in 1 2 3; do
    killed "k$i" again.json
    check_is "back to a checkpoint straight after a kill, $i" 'z: 1 a pay a pay ' \
        "$(tidemark sessions resume "k$i" --checkpoint "$begun" --quiet) $(world)"
done
check_is 'the run that was cut has ended before' 'run.interrupted session.rolled_back run.started' \
    "$(tidemark log show k1 --json | grep -o '"kind":"[a-z_.]*"' | cut -d'"' -f4 | grep -v status.derived | grep -A 2 'run.interrupted' | paste -sd ' ')"

# ---- it was cut ----
killed c1 pay.json
ckpt=$(first c1 2)
seq=$(last c1)
refuses_as 'without a choice it is in the way' 4 'EFFECTS|session|c1|||repeat,repeat' sessions resume c1 --checkpoint "$ckpt"
refuses_as 'there is nothing to use again' 10 'UNSETTLED|node|*|pay||repeat,repeat' \
    sessions resume c1 --checkpoint "$ckpt" --reuse-effects
check_status 'a dry run is as wrong' 10 tidemark sessions resume c1 --checkpoint "$ckpt" --reuse-effects --dry-run
check_is 'nothing was written' "$seq" "$(last c1)"
check_is 'nor done' 'a pay ' "$(world)"
check_is 'who knows that it happened says so' 'z: 1' \
    "$(tidemark sessions resume c1 --checkpoint "$ckpt" --reuse-effects --happened pay --set paid:=1 --quiet)"
check_is 'and it does not happen again' 'a pay ' "$(world)"
killed c2 pay.json
tidemark sessions rollback c2 --to "$(first c2 2)" --reuse-effects >/dev/null
refuses_as 'nor after a rollback by hand' 10 'UNSETTLED|node|c2|pay||repeat,repeat' sessions resume c2
check 'why offers what works' eval "tidemark why c2 | grep -q '^  tidemark sessions resume c2 --retry pay$'"
check_is 'it may be tried again' 'z: 1 a pay pay ' "$(tidemark sessions resume c2 --retry pay --quiet) $(world)"
tidemark sessions rollback c2 --to "$(first c2 2)" --reuse-effects >/dev/null
check_is 'what completed since answers, also of a session that has completed' 'z: 1 a pay pay ' \
    "$(tidemark sessions resume c2 --quiet) $(world)"
killed c3 inside.json
refuses_as 'inside a node' 10 'UNSETTLED|node|c3|s#1/pay||repeat,repeat' sessions resume c3 --checkpoint "$(first c3)" --reuse-effects
killed c4 each.json
refuses_as 'an item of a map' 10 'UNSETTLED|node|c4|*||repeat,repeat' sessions resume c4 --checkpoint "$(first c4)" --reuse-effects
check_status 'which may be tried again' 0 tidemark sessions resume c4 --checkpoint "$(first c4)" --reuse-effects --retry 'm#1[0]' --quiet
check_is 'and is, once' 'a pay a pay ' "$(world)"

# ---- items of a map that completed ----
cat >items.json <<'END'
{"tidemark_graph": 1, "id": "items", "entry": "m", "nodes": [
  {"id": "m", "type": "map", "over": "{1, 2}", "parallel": 1, "outputs": ["all"], "node": {"type": "function", "effect": "once",
   "outputs": ["r"], "program": ["sh", "-c", "echo item >>world; echo {\\\"r\\\": 5}"]}},
  {"id": "last", "type": "function", "retries": 0, "inputs": ["all"], "outputs": ["z"],
   "program": ["sh", "-c", "test -e ok && echo {\\\"z\\\": 1}"]}],
 "edges": [{"from": "m", "to": "last"}]}
END
rm -f world ok
tidemark run items.json --session i1 --quiet >out 2>err
check 'nothing is said of items that completed' eval '! grep -q "must happen once\|was cut" err'
check 'nor by why' eval '! tidemark why i1 | grep -q -- "--retry\|must happen once"'
check 'nor are they cut in the timeline' eval '! tidemark sessions timeline i1 | grep -q " cut"'
: >ok
check_is 'they answer from the log' 'z: 1 item item ' \
    "$(tidemark sessions resume i1 --checkpoint "$(first i1)" --reuse-effects --quiet) $(world)"

# ---- a graph that takes it for something that may be repeated ----
sed 's/"once"/"pure"/' pay.json >pure.json
sed 's/"once"/"pure"/' each.json >each_pure.json
sed 's/"once"/"pure"/' inside.json >inside_pure.json
for weak in again pure; do
    killed "w$weak" pay.json
    seq=$(last "w$weak")
    refuses_as "what was cut is asked about, $weak" 10 'UNSETTLED|node|*|pay||repeat,repeat' \
        sessions resume "w$weak" --graph $weak.json
    refuses_as "also from a checkpoint, $weak" 10 'UNSETTLED|node|*|pay||repeat,repeat' \
        sessions resume "w$weak" --graph $weak.json --checkpoint "$(first "w$weak" 2)" --reuse-effects
    check_is "nothing was written, $weak" "$seq" "$(last "w$weak")"
    check_is "with a word it goes on, $weak" 'z: 1 a pay pay ' \
        "$(tidemark sessions resume "w$weak" --graph $weak.json --retry pay --quiet) $(world)"
done
killed w3 each.json
refuses_as 'an item of a map, too' 10 'UNSETTLED|node|w3|*||repeat,repeat' sessions resume w3 --graph each_pure.json
killed w4 inside.json
refuses_as 'and what is inside a node' 10 'UNSETTLED|node|w4|s#1/pay||repeat,repeat' sessions resume w4 --graph inside_pure.json
check_is 'none of them happened again' 'a pay ' "$(world)"

# ---- words that contradict each other, or what is there ----
killed o1 pay.json
refuses_as 'happened, and not' 2 'INVALID|node|o1|pay||repeat' sessions resume o1 --happened pay --retry pay
refuses_as 'two new names' 2 'INVALID|node|o1|pay||repeat' \
    sessions resume o1 --graph buy.json --map pay=buy --map pay=z
refuses_as 'a node that is there is not forgotten as another' 2 'INVALID|node|o1|pay||repeat,repeat' \
    sessions resume o1 --map pay=z
refuses_as 'who said --fallback is not told to' 10 'UNSETTLED|node|*|pay||repeat,repeat' \
    sessions resume o1 --checkpoint "$(first o1 2)" --reuse-effects --fallback
check_is 'nothing was done' 'a pay ' "$(world)"
cat >beside.json <<END
{"tidemark_graph": 1, "id": "beside", "entry": "e", "nodes": [{"id": "e", "type": "lua", "code": "return {}"},
  {"id": "pay", $pay}, {"id": "y", "type": "lua", "code": "return {y = 1}", "outputs": ["y"]}],
 "edges": [{"from": "e", "to": "pay"}, {"from": "e", "to": "y"}]}
END
killed o2 beside.json
mark=$(tidemark sessions checkpoints o2 | grep unsettled | sed -n 1p | cut -d' ' -f1)
check 'one that is unsettled' test -n "$mark"
refuses_as 'the reason that --fallback cannot help with comes first' 10 'UNSETTLED|node|*|pay||repeat,repeat' \
    sessions resume o2 --checkpoint "$mark" --fallback

# ---- steps of programs ----
cat >program.sh <<'END'
"$TIDE_BIN" step one -- sh -c 'echo one >>world; test -e ok' || exit $?
END
rm -f world ok
tidemark exec --session st1 -- sh program.sh >/dev/null 2>&1
: >ok
tidemark sessions rollback st1 --to 2 >/dev/null
tidemark resume st1 >/dev/null 2>err
check_is 'a step that failed is not run again by a rollback' '1 one ' "$? $(world)"
check 'it says how' holds "failed before and must happen once, so it is not run again: \`tidemark resume st1 --happened one\` records that it did, \`tidemark resume st1 --retry one\`" <err
check_status 'which works' 0 tidemark resume st1 --retry one

# ---- other names ----
killed n1 pay.json
refuses_as 'a name that is not there: what it looks like now' 2 'INVALID|node|n1|qqqq||repeat' \
    sessions resume n1 --graph buy.json --map pay=qqqq
check_is 'the old name is understood beside --map' 'z: 1' \
    "$(tidemark sessions resume n1 --graph buy.json --map pay=buy --happened pay --set paid:=1 --quiet)"
ckpt=$(first n1 3)
tidemark sessions resume n1 --checkpoint "$ckpt" --redo-effects >out 2>err
check_is 'a name that was recorded need not be given again' '0 z: 1' "$? $(cat out)"
check 'and is said' holds "node 'pay' is called 'buy' in this graph" <err
killed n2 pay.json
check_is 'the new one as well' 'z: 1' \
    "$(tidemark sessions resume n2 --graph buy.json --map pay=buy --happened buy --set paid:=1 --quiet)"

# ---- damage ----
# damaged ID: the event that says that it was cut. It is not the last: in files that would be one that was not written whole.
damaged() {
    tidemark recover >/dev/null 2>&1
    tidemark sessions checkpoint "$1" >/dev/null
    damage "$1" $(($(last "$1") - 2))
}
killed d1 again.json
damaged d1
tidemark sessions resume d1 --dry-run >out 2>err
check_is 'a dry run of a damaged one lists what is complete and what would run' 'complete     a|runs         pay (ready)' \
    "$(grep -E '^(complete|runs) ' out | paste -sd '|')"
check_is 'also as JSON' pay "$(tidemark sessions resume d1 --dry-run --json 2>/dev/null | json '$.nodes_to_run[0].node')"
killed d2 pay.json
damaged d2
refuses_as 'what is known to have begun is not done again in a fork' 4 'EFFECTS|session|d2|||repeat' sessions resume d2
check_is 'and was not' 'a pay ' "$(world)"
check_status 'unless somebody says so' 0 tidemark sessions resume d2 --fallback --redo-effects --quiet
# A log that is long enough is opened from a snapshot: only who goes back comes to what is damaged.
{
    printf '{"tidemark_graph": 1, "id": "long", "entry": "n0", "memory": {"long": "%0100d"}, "checkpoints": {"max_checkpoints_per_session": 0}, "nodes": [' 0
    for i in $(seq 0 59); do
        printf '{"id": "n%d", "type": "lua", "code": "return {k%d = memory.long}", "outputs": ["k%d"]}, ' "$i" "$i" "$i"
    done
    printf '{"id": "z", "type": "function", "retries": 0, "program": ["sh", "-c", "test -e ok && cat z"], "outputs": ["z"]}], "edges": ['
    for i in $(seq 0 58); do
        printf '{"from": "n%d", "to": "n%d"}, ' "$i" $((i + 1))
    done
    printf '{"from": "n59", "to": "z"}]}\n'
} >long.json
echo '{"z": 1}' >z
rm -f ok
tidemark run long.json --session d3 --quiet >/dev/null 2>&1
: >ok
marks=$(tidemark sessions checkpoints d3 --json)
damage d3 "$(printf '%s' "$marks" | json '$.checkpoints[40].seq')"
tidemark sessions resume d3 --checkpoint "$(printf '%s' "$marks" | json '$.checkpoints[40].checkpoint_id')" --fallback --quiet >out 2>err
check_is 'a damaged one goes on from another checkpoint' '0 z: 1' "$? $(cat out)"
fork=$(tidemark sessions list --ids --limit 1)
check 'and says in which fork, however quiet' holds "continuing in the fork $fork, from checkpoint $(
    printf '%s' "$marks" | json '$.checkpoints[39].checkpoint_id')" <err

lists_agree 'list and why offer something'

finish
