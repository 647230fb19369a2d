#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark torture: a graph is killed everywhere and resumed; what the world saw of it is as promised and as reported; what
# is wrong is found, said, and the store kept; nothing else is left behind.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
mkdir tmp
export TMPDIR=$work/tmp
export WORLD=$work/world

# what NAME: the member of the last report.
what() {
    json "\$.$1" <report
}

# ---- a graph with nearly everything ----

cat >all.json <<'END'
{"tidemark_graph": 1, "id": "all", "entry": "start", "memory": {"items": [1, 2]},
 "nodes": [
  {"id": "start", "type": "function", "program": ["sh", "-c", "echo \"start $TIDEMARK_SESSION_ID\" >>\"$WORLD\"; echo '{\"started\": true}'"], "outputs": ["started"]},
  {"id": "pay", "type": "function", "effect": "once", "program": ["sh", "-c", "sleep 0.05; echo \"pay $TIDEMARK_SESSION_ID\" >>\"$WORLD\"; echo '{\"paid\": 7}'"], "outputs": ["paid"]},
  {"id": "pages", "type": "map", "over": "memory.items", "as": "item", "outputs": ["pages"],
   "node": {"type": "function", "inputs": ["item"], "outputs": ["page"], "program": ["sh", "-c", "read x; echo \"{\\\"page\\\":$x}\""]}},
  {"id": "inside", "type": "subgraph", "outputs": ["deep"], "graph": {"tidemark_graph": 1, "id": "inner", "entry": "one",
   "nodes": [{"id": "one", "type": "function", "program": ["sh", "-c", "echo '{\"one\": 5}'"], "outputs": ["one"]},
             {"id": "two", "type": "lua", "code": "return {deep = memory.one * 2}", "outputs": ["deep"]}],
   "edges": [{"from": "one", "to": "two"}]}},
  {"id": "when", "type": "function", "program": ["sh", "-c", "echo \"{\\\"now\\\":\\\"$(date +%s%N)\\\"}\""], "outputs": ["now"]},
  {"id": "ask", "type": "human_input", "kind": "approval", "question": "{paid} and {deep}: fine?", "outputs": ["fine"]},
  {"id": "end", "type": "router", "routes": [{"when": "memory.fine", "to": "well"}], "otherwise": "badly"},
  {"id": "well", "type": "lua", "code": "return {sum = memory.paid + memory.deep}", "outputs": ["sum"]},
  {"id": "badly", "type": "lua", "code": "error('refused')", "outputs": ["sum"]}],
 "edges": [{"from": "start", "to": "pay"}, {"from": "start", "to": "pages"}, {"from": "start", "to": "inside"},
  {"from": "pay", "to": "when"}, {"from": "pages", "to": "when"}, {"from": "inside", "to": "when"}, {"from": "when", "to": "ask"},
  {"from": "ask", "to": "end"}]}
END
tidemark torture all.json --crash-points all --json >report 2>err
check_is 'nothing is wrong' '0|1|0' "$?|$(what right)|$(wc -c <err)"
check_is 'one JSON document' 1 "$(is_json <report && echo 1)"
check_is 'every point is tried' "$(what crash_points.found)" "$(what crash_points.tried)"
check_is 'before and after every append' "$(what appends)|$(what appends)" "$(what crash_points.before_append)|$(what crash_points.after_append)"
check 'and inside every node' test "$(what crash_points.inside_node)" -ge 7
check 'it was really killed' test "$(what kills)" -eq "$(what crash_points.reached)"
check 'and resumed, also to answer' test "$(what resumes)" -gt "$(what kills)"
check_is 'no complete node ran again' '[]' "$(what complete_run_again)"
check_is 'no effect was repeated' '[]' "$(what once_repeated)"
check_is 'the end is always the same' '[]' "$(what differences)"
check_is 'and always comes' '[]' "$(what not_ended)"
check 'what is not deterministic is left out' eval 'what not_deterministic | grep -qx "\[\"now\"\]"'
# A kill between the deed and the end of its program looks as if it came before: who is asked then lets it run again.
paid=$(grep ^pay "$WORLD" | sort -u | wc -l)
check 'no session paid twice, unless it was let run again' test "$(grep -c ^pay "$WORLD")" -le $((paid + $(what let_run_again)))
check_is 'every session paid' "$(($(what crash_points.tried) + 2))" "$paid"
check 'a person was asked about the one that was cut' test "$(($(what said_to_have_happened) + $(what let_run_again)))" -ge 2
check 'one that may run again does, and that is said' test "$(what cut_and_run_again)" -ge 1
check 'the world agrees' test "$(grep -c ^start "$WORLD")" -gt "$(grep ^start "$WORLD" | sort -u | wc -l)"
check_is 'nothing is left behind' '' "$(ls tmp)"
check 'no store of the person is touched' test ! -e data

tidemark torture all.json --crash-points 5 --kills 3 --seed 11 >out 2>err
check_is 'for people: it ends well' '0 0' "$? $(wc -c <err)"
check 'how much was tried' grep -q '^  crash points  *5 of [0-9]*:' out
check 'by which seed' grep -q -- '--seed 11' out
check_is 'four things that must not be' 4 "$(grep -c '0  ✓$' out)"
check 'the verdict' grep -q 'Nothing was lost' out
check_is 'in plain text' '' "$(tr -dc '\033\r' <out)"

# ---- another kind of store ----

tidemark torture all.json --crash-points 9 --store "files:$work/mine" --json >report 2>err
check_is 'of the kind that is named' '0|files|1|9' "$?|$(what store_kind)|$(what right)|$(what crash_points.tried)"
check_is 'never the one that is named' '' "$(ls -d mine 2>/dev/null)"
TIDEMARK_STORE="files:$work/mine" tidemark torture all.json --crash-points 2 >out 2>err
check 'for people' grep -q '^  store  *files, a new one' out
check_is 'and nothing is left behind of it' '' "$(ls tmp)"
TIDEMARK_STORE='' tidemark torture all.json --crash-points 1 >out 2>err
check 'without a name it is the default' grep -q '^  store  *sqlite, a new one' out

# ---- what is wrong is found ----

cat >counts.json <<'END'
{"tidemark_graph": 1, "id": "counts", "entry": "count", "nodes": [
  {"id": "count", "type": "function", "outputs": ["n"],
   "program": ["sh", "-c", "echo x >>count.$TIDEMARK_SESSION_ID; sleep 0.1; echo \"{\\\"n\\\": $(grep -c x count.$TIDEMARK_SESSION_ID)}\""]}],
 "edges": []}
END
tidemark torture counts.json --json >report
check_is 'a node that cannot bear to be run again is found' '1|0|n|1|2' \
    "$?|$(what right)|$(what 'differences[0].key')|$(what 'differences[0].want')|$(what 'differences[0].got')"
# Inside it may be killed before it has counted; behind it, before that is recorded, it has.
check 'where it was killed is said' eval "what differences | grep -q '\"killed\":\"before append [0-9]* .*node.completed'"
check 'the store is kept' test -e "$(what store | sed 's/^[a-z]*://')"
check 'with the session' eval "tidemark --store \"\$(what store)\" sessions show \"\$(what 'differences[0].session_id')\" | grep -q completed"
rm -rf tmp/*
tidemark torture counts.json >out
check_is 'for people, too' 1 $?
check 'with both values' grep -q 'n: 1 became 2' out
check 'and where the store is' grep -q "kept  *$TMPDIR/" out
rm -rf tmp/*

# ---- questions ----

check_status 'an answer decides where it goes' 0 tidemark torture all.json --crash-points 1 --answer yes
refuses 'a graph that fails by itself proves nothing' 1 'refused' torture all.json --crash-points 1 --answer no
check_is 'and leaves nothing behind' '' "$(ls tmp)"
cat >set.json <<'END'
{"tidemark_graph": 1, "id": "set", "entry": "a", "checkpoints": {"exclude_memory_keys": ["key"]}, "nodes": [
  {"id": "a", "type": "function", "inputs": ["key"], "program": ["sh", "-c", "grep -q $SECRET && echo '{\"ok\": 1}'"], "outputs": ["ok"]},
  {"id": "b", "type": "function", "inputs": ["key"], "program": ["sh", "-c", "grep -q $SECRET && echo '{\"fine\": 1}'"], "outputs": ["fine"]}],
 "edges": [{"from": "a", "to": "b"}]}
END
SECRET=hunter2-in-clear tidemark torture set.json --set key=hunter2-in-clear --keep --json >report
check_is 'a key that is never stored is given again' '0|1' "$?|$(what right)"
check_is 'and is in nothing that is kept' '' "$(grep -rl hunter2-in-clear tmp)"
check 'what is to be kept is' test -e "$(what store | sed 's/^[a-z]*://')"
rm -rf tmp/*

# ---- an agent ----

cat >agent.json <<'END'
{"tidemark_graph": 1, "id": "agent", "entry": "write", "nodes": [
  {"id": "write", "type": "event_loop", "tools": "none", "prompt": "Write.", "outputs": ["letter"]},
  {"id": "send", "type": "function", "effect": "once", "inputs": ["letter"], "program": ["sh", "-c", "echo '{\"sent\": 1}'"], "outputs": ["sent"]}],
 "edges": [{"from": "write", "to": "send"}]}
END
cat >script.json <<'END'
{"nodes": {"write": [{"calls": [{"name": "set_output", "args": {"key": "letter", "value": "Dear all"}}]}]}}
END
tidemark torture agent.json --script script.json --json >report
check_is 'an agent that answers from a file' '0|1' "$?|$(what right)"
check 'is killed wherever it records something' test "$(what crash_points.before_append)" -ge 4

# ---- bad input ----

refuses_as 'a file that is not there' 3 'NOT_FOUND|file||nowhere.json||' torture nowhere.json
echo '{"tidemark_graph": 1}' >bad.json
refuses_as 'a graph that is none' 2 'INVALID|file||bad.json||*' torture bad.json
refuses_as 'a number that is none' 2 'INVALID|argument||crash_points||' torture counts.json --crash-points many
refuses_as 'no point at all' 2 'INVALID|argument||crash_points||' torture counts.json --crash-points 0
echo '{"tidemark_graph": 1, "id": "c", "entry": "a", "nodes": [{"id": "a", "type": "function", "callback": "f"}], "edges": []}' >callback.json
refuses_as 'a callback that nobody registers' 2 'INVALID|node||a||' torture callback.json
cat >needs.json <<'END'
{"tidemark_graph": 1, "id": "needs", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "program": ["sh", "-c", "echo a >>ran; echo '{\"a\": 1}'"], "outputs": ["a"]},
  {"id": "b", "type": "lua", "inputs": ["q"], "code": "return {b = inputs.q}", "outputs": ["b"]}],
 "edges": [{"from": "a", "to": "b"}]}
END
refuses_as 'an input that nobody sets' 2 'INVALID|node||b||repeat' torture needs.json
check_is 'before anything has run' '' "$(cat ran 2>/dev/null)"
check_status 'with it it runs' 0 tidemark torture needs.json --crash-points 2 --set q=1
refuses_as 'no kind of store' 2 'INVALID|argument||store||' torture needs.json --set q=1 --store nonsense://x
check_is 'nothing was made of them' '' "$(ls tmp)"

# ---- stopped ----

# shellcheck disable=SC2016
sed 's/sleep 0.05/touch $WORLD.here; sleep 0.2/' all.json >slow.json
"$TIDE_BIN" torture slow.json >stopped 2>&1 &
torture=$!
wait_for test -e "$WORLD.here"
kill -TERM $torture
wait $torture
check_is 'stopped, it ends as the signal says' 143 $?
check_is 'and leaves nothing behind' '' "$(ls tmp)"
finish
