#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark run at a terminal, which is one of tmux: the tree of nodes, drawn in place, in narrow and in low windows; Ctrl-C.
# shellcheck disable=SC2016,SC2317 # programs of graphs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

begin_screen 'a graph at a terminal'

# open_run COLUMNS ROWS ARGS...: in a new window.
open_run() {
    local columns=$1 rows=$2
    shift 2
    rm -f ended
    wait_for terminal new-session -d -x "$columns" -y "$rows" \
        "TERM=$TERM $(printf '%q ' "$TIDE_BIN" "$@"); echo \$? >ended; echo ENDED; read -r _"
}

# Each node that waits goes on when a file is there.
cat >tree.json <<'END'
{"tidemark_graph": 1, "id": "tree", "entry": "plan",
 "nodes": [
  {"id": "plan", "type": "lua", "code": "return {pages = {1, 2, 3}}", "outputs": ["pages"]},
  {"id": "read", "type": "map", "over": "pages", "as": "page", "parallel": 1, "outputs": ["texts"],
   "node": {"type": "function", "program": ["sh", "-c", "p=$(cat); case $p in *2*) while [ ! -f go-on ]; do sleep 0.02; done;; esac; echo '{\"text\": 1}'"], "inputs": ["page"], "outputs": ["text"]}},
  {"id": "inner", "type": "subgraph", "graph": {"id": "in", "entry": "first", "nodes": [
    {"id": "first", "type": "function", "program": ["sh", "-c", "while [ ! -f go-on ]; do sleep 0.02; done; echo '{}'"]},
    {"id": "second", "type": "lua", "code": "return {}"}], "edges": [{"from": "first", "to": "second"}]}},
  {"id": "flaky", "type": "function", "retries": 1, "program": ["sh", "-c", "[ -f tried ] && echo '{\"ok\": true}' || { touch tried; echo no network >&2; exit 1; }"], "outputs": ["ok"]},
  {"id": "write", "type": "lua", "code": "return {report = 'done with ' .. #memory.texts}", "outputs": ["report"]}],
 "edges": [{"from": "plan", "to": "read"}, {"from": "plan", "to": "inner"}, {"from": "read", "to": "flaky"}, {"from": "inner", "to": "write"}, {"from": "flaky", "to": "write"}]}
END
open_run 80 24 run tree.json
shows 'the items of a map are counted' '^├ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] read  *[0-9.]* s  1/3$'
shows 'what is complete has its sign' '^├ ✓ plan  *[0-9.]* s$'
shows 'a graph inside says where it is' '^├ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] inner  *[0-9.]* s  0/2  first$'
shows 'what comes later waits' '^└ · write$'
check_is 'all of it once' 1 "$(screen | grep -c ' write')"
touch go-on
wait_for test -s ended
shows 'at the end all is complete' '^└ ✓ write  *[0-9.]* s$'
shows 'and summed up' '^completed: 5 nodes, 1 retry, [0-9]* checkpoints, [0-9.]* s$'
shows 'the result stands below' '^report: done with 3$'
check_is 'nothing is left of earlier drawings' '1 1' "$(screen | grep -c ' plan ') $(screen | grep -c '^tree ')"
close_screen

# ---- gone on with ----
rm -f go-on tried
open_run 80 24 run tree.json --session cut
wait_for is_shown 'read .* 1/3$'
close_screen # it hears SIGHUP
is_parked() {
    [ "$(tidemark sessions show cut --json | json '$.status')" = interrupted_startup ]
}
check 'a terminal that goes away parks it' wait_for is_parked
open_run 80 24 resume cut
shows 'what was complete is shown as that' '^├ ✓ plan  *before$'
shows 'also inside a map' '^├ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] read  *[0-9.]* s  1/3$'
touch go-on
wait_for test -s ended
shows 'and the rest comes to its end' '^└ ✓ write'
close_screen

# ---- narrow ----
rm -f go-on tried
open_run 40 24 run tree.json
shows 'a narrow window is filled, not exceeded' '^├ ✓ plan'
touch go-on
wait_for test -s ended
check 'no row is broken' eval '[ "$(screen | grep -c "^[├└]")" = 5 ]'
close_screen

# ---- more nodes than rows ----
{
    printf '{"tidemark_graph":1,"id":"many","entry":"n0","nodes":['
    for i in $(seq 0 49); do
        printf '%s{"id":"n%d","type":"function","program":["sh","-c","[ %d -ne 30 ] || { echo $$ >at; exec sleep 60; }; echo {}"]}' \
            "$([ "$i" -gt 0 ] && echo ,)" "$i" "$i"
    done
    printf '],"edges":['
    for i in $(seq 0 48); do printf '%s{"from":"n%d","to":"n%d"}' "$([ "$i" -gt 0 ] && echo ,)" "$i" $((i + 1)); done
    printf ']}'
} >many.json
open_run 80 12 run many.json --session many
shows 'the part around what runs' '^├ [⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] n30 '
shows 'what is above is counted' '^⋮ [0-9]* more above: [0-9]* done, 0 running$'
shows 'and what is below' '^⋮ [0-9]* more below: 0 done, 0 running$'
check 'it fits' eval '[ "$(screen | grep -c "^[├└⋮m]")" -le 12 ] && screen | grep -q "^many  "'
terminal send-keys C-c
wait_for test -s ended
check_is 'Ctrl-C parks it' 130 "$(cat ended)"
shows 'its node is parked' '^├ ‖ n30'
shows 'and shows how to continue' 'stopped: .tidemark sessions resume many. continues'
check 'its program is gone' eval '! kill -0 "$(cat at)"'
close_screen

# ---- asked ----
cat >ask.json <<'END'
{"tidemark_graph": 1, "id": "ask", "entry": "draft", "nodes": [
  {"id": "draft", "type": "event_loop", "prompt": "Write", "outputs": ["text"]},
  {"id": "name", "type": "human_input", "question": "What name\nfor {text}?", "inputs": ["text"], "outputs": ["name"]},
  {"id": "send", "type": "function", "program": ["sh", "-c", "grep -q hunter || exit 4; echo '{\"sent\": true}'"], "inputs": ["api_key", "name"], "outputs": ["sent"]}],
 "edges": [{"from": "draft", "to": "name"}, {"from": "name", "to": "send"}]}
END
cat >answers.json <<'END'
{"nodes": {"draft": [{"calls": [{"name": "bash", "args": {"command": "touch one\ntouch two"}}]},
 {"calls": [{"name": "set_output", "args": {"key": "text", "value": "tides"}}]}]}}
END
open_run 80 40 run ask.json --script answers.json --session ask --set api_key=hunter
shows 'a call is asked about, all of it' '^  > touch two$'
shows 'with the keys that answer it' '^\[y\]es, \[n\]o, give a \[r\]eason, \[l\]ater?$'
terminal send-keys -l maybe
shows 'what is neither is asked again' 'ater? maybe$'
terminal send-keys -l y
shows 'one key is enough, and a question follows as it is' '^  for tides?$'
check 'the call was made' test -f two
terminal send-keys -l 'Ébb & flow'
terminal send-keys Enter
wait_for test -s ended
check_is 'it goes on to its end, with what is never stored' 0 "$(cat ended)"
check_is 'the answer is as it was typed' 'Ébb & flow' "$(tidemark state ask | json '$.content.memory.name')"
shows 'and the tree stands below' '^└ ✓ send'
close_screen
open_run 80 40 run ask.json --script answers.json --session later --set api_key=hunter
shows 'it asks' '^\[y\]es, '
terminal send-keys -l l
wait_for test -s ended
check_is 'later leaves it parked' 7 "$(cat ended)"
shows 'with the command' '^  answer    tidemark resume later --token rt_'
close_screen
open_run 80 40 sessions resume later --set api_key=hunter
shows 'who comes back is asked' '^\[y\]es, '
terminal send-keys -l r
shows 'a reason can be given' '^reason: *$'
terminal send-keys -l 'not today'
terminal send-keys Enter
wait_for eval 'screen | grep -c "ater?" | grep -qx 2'
terminal send-keys -l n
shows 'and the next' '^  for tides?$'
check 'the model is told it' eval "tidemark log show later | grep '\"kind\":\"approval.given\"' | grep -q 'not today'"
terminal send-keys C-d
wait_for test -s ended
check_is 'Ctrl-D leaves it parked, too' 7 "$(cat ended)"
close_screen
open_run 80 40 run ask.json --script answers.json --session quietly --set api_key=hunter --no-input
wait_for test -s ended
check_is 'told to ask nothing, it parks' 7 "$(cat ended)"
check 'and nothing was asked' eval '! is_shown "ater?"'
close_screen

# An edit shows what it would change; a node of the graph is answered with one key as well, and its reason is an output.
cat >edit.json <<'END'
{"tidemark_graph": 1, "id": "edit", "entry": "draft", "nodes": [
  {"id": "draft", "type": "event_loop", "prompt": "Write", "outputs": ["text"]},
  {"id": "ok", "type": "human_input", "kind": "approval", "question": "Send it?", "outputs": ["fine", "why"]}],
 "edges": [{"from": "draft", "to": "ok"}]}
END
cat >edits.json <<'END'
{"nodes": {"draft": [{"calls": [{"name": "edit", "args": {"path": "note.txt", "old": "two", "new": "three"}}]},
 {"calls": [{"name": "set_output", "args": {"key": "text", "value": "tides"}}]}]}}
END
printf 'one\ntwo\nfour\n' >note.txt
open_run 40 40 run edit.json --script edits.json --session edit
shows 'an edit is shown as a diff' '^  @@ -1,3 +1,3 @@$'
shows 'with what goes' '^  -two$'
shows 'and what comes' '^  +three$'
shows 'in a narrow window the keys are named shortly' '^\[y\]es \[n\]o \[r\]eason \[l\]ater?$'
terminal send-keys -l y
shows 'a node asks' '^? Send it?$'
terminal send-keys -l r
shows 'for a reason, too' '^reason: *$'
terminal send-keys -l 'too early'
terminal send-keys Enter
wait_for eval 'screen | grep -c "ater?" | grep -qx 3'
terminal send-keys -l n
wait_for test -s ended
check_is 'the answer and the reason are outputs' '0 too early' "$(tidemark state edit | json '$.content.memory.fine') $(tidemark state edit | json '$.content.memory.why')"
check_is 'the file was edited' 'one three four' "$(paste -sd ' ' note.txt)"
close_screen

# ---- nobody answers ----
cat >slow.json <<'END'
{"tidemark_graph": 1, "id": "slow", "entry": "who", "nodes": [
  {"id": "who", "type": "human_input", "question": "Who?", "outputs": ["name"], "deadline": "500ms", "default": "nobody"}]}
END
open_run 80 24 run slow.json --session slow
shows 'a question says until when' '^until 20[0-9-]* [0-9:]* UTC$'
wait_for test -s ended
check_is 'the default answers at the deadline, in this process' '0 nobody 1' \
    "$(cat ended) $(tidemark state slow | json '$.content.memory.name') $(tidemark log show slow | grep -c '"kind":"run.started"')"
close_screen
sed 's/, "default": "nobody"//' slow.json >cut.json
open_run 80 24 run cut.json --session cut-off
wait_for test -s ended
check_is 'without one it is interrupted, and that is written down' '1 wait_timeout' \
    "$(cat ended) $(tidemark log show cut-off | grep '"kind":"run.interrupted"' | json '$.reason')"
shows 'and said' "^tidemark: session 'cut-off' waited for who#1, and there was no answer before"
close_screen
open_run 80 24 resume cut-off
shows 'a resume asks again' '^? Who?$'
wait_for test -s ended
check_is 'and is interrupted again' '1 2' "$(cat ended) $(tidemark log show cut-off | grep -c '"kind":"run.interrupted"')"
close_screen

# ---- a way that is not taken ----
cat >ways.json <<'END'
{"tidemark_graph": 1, "id": "ways", "entry": "decide", "memory": {"approved": true}, "nodes": [
  {"id": "decide", "type": "router", "routes": [{"when": "memory.approved", "to": "send"}], "otherwise": "shelve"},
  {"id": "send", "type": "lua", "code": "return {sent = 1}", "outputs": ["sent"]},
  {"id": "shelve", "type": "lua", "code": "return {sent = 0}", "outputs": ["sent"]}]}
END
open_run 80 24 run ways.json
wait_for test -s ended
shows 'is drawn as such at the end' '^[├└] - shelve  *not taken$'
shows 'and what is complete does not look unfinished' '^ways  [0-9.]* s  2/2 nodes, 1 not taken$'
close_screen

# ---- where nothing can be drawn ----
rm -f tried
TERM=dumb open_run 80 24 run tree.json
shows 'a terminal that cannot erase gets lines' '^plan: starts$'
close_screen

finish
