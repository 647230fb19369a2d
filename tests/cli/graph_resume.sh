#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark sessions resume: a graph goes on where it failed, from a checkpoint, with other values, with another graph; what
# stands in the way is said before anything is written.
# shellcheck disable=SC2016,SC2094,SC2317 # variables are for tidemark to look up; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

cat >g.json <<'END'
{"tidemark_graph": 1, "id": "pipe", "entry": "fetch", "nodes": [
  {"id": "fetch", "type": "function", "program": ["sh", "-c", "echo fetch >>log; echo '{\"page\": \"hello\"}'"], "outputs": ["page"]},
  {"id": "post", "type": "function", "retries": 0, "inputs": ["page", "api_key"], "outputs": ["posted"],
   "program": ["sh", "-c", "echo post >>log; grep -q good && echo '{\"posted\": true}'"]},
  {"id": "tell", "type": "function", "program": ["sh", "-c", "echo tell >>log; echo '{\"told\": 1}'"], "outputs": ["told"]}],
 "edges": [{"from": "fetch", "to": "post"}, {"from": "post", "to": "tell"}]}
END

# begin ID: a session that failed at post; log is what has happened in the world.
begin() {
    : >log
    tidemark run g.json --session "$1" --set api_key=bad-hunter-1 --quiet >/dev/null 2>&1
}

happened() {
    tr '\n' ' ' <log
}

last() {
    tidemark sessions show "$1" --json | json '$.last_seq'
}

# ---- where it failed ----
begin s1
check_is 'the list says where and why' 's1 post' \
    "$(tidemark sessions list --agent pipe --status failed --json | json '$.sessions[0].session_id') $(
        tidemark sessions list --agent pipe --status failed --json | json '$.sessions[0].failed_at_node')"
check 'people see node, checkpoint and error' eval \
    "tidemark sessions list --status failed | grep -q \"^s1  failed  post  ckpt_.*node 'post' failed\""
seq=$(last s1)
refuses_as 'what was never stored is missed' 2 'INVALID|node|s1|post||repeat' sessions resume s1
check_status 'a dry run is as wrong' 2 tidemark sessions resume s1 --dry-run
check 'and says what to do' eval "tidemark sessions resume s1 --dry-run | grep -qF -- \"\`--set 'api_key=…'\`\""
check 'also as JSON' eval 'tidemark sessions resume s1 --dry-run --json | is_json'
check_is 'with what would run' post "$(tidemark sessions resume s1 --dry-run --json | json '$.nodes_to_run[0].node')"
check_is 'nothing was written by asking' "$seq" "$(last s1)"
check_is 'a value from the environment' 'told: 1' \
    "$(KEY=good-hunter-2 tidemark sessions resume s1 --set 'api_key=$KEY' --quiet)"
check_is 'what is complete did not run again' 'fetch post post tell ' "$(happened)"
tidemark sessions export s1 -o export.jsonl
tidemark log show s1 >shown
check_is 'the secret is in no file' '' "$(grep -rla 'hunter-' data export.jsonl shown)"

# ---- from a checkpoint ----
refuses_as 'a completed session has nothing left to run' 2 'WRONG_STATE|session|s1|||list_checkpoints,repeat' sessions resume s1
check_is 'its checkpoints by type' 3 "$(tidemark sessions checkpoints s1 --type node_complete --ids | wc -l)"
check_is 'those without a failure before them' 3 "$(tidemark sessions checkpoints s1 --clean --ids | wc -l)"
ckpt=$(tidemark sessions checkpoints s1 --type node_complete --ids | sed -n 1p)
check_is 'a checkpoint knows what ran before it' '["fetch"]' \
    "$(tidemark sessions inspect s1 "$ckpt" --json | json '$.execution_path')"
check_is 'and what comes next' post "$(tidemark sessions inspect s1 "$ckpt" --json | json '$.next_node')"
check_is 'and how many nodes were complete' 'complete     1 node|1' \
    "$(tidemark sessions inspect s1 "$ckpt" | grep '^complete')|$(tidemark sessions inspect s1 "$ckpt" --json | json '$.nodes_complete')"
check_is 'and figures' 1 "$(tidemark sessions inspect s1 "$ckpt" --json | json '$.metrics_snapshot.steps')"
check_is 'and the memory when asked for' hello \
    "$(tidemark sessions inspect s1 "$ckpt" --memory --json | json '$.state.memory.page')"
check 'for people too' eval "tidemark sessions inspect s1 $ckpt --memory | grep -q 'page = \"hello\"'"
: >log
seq=$(last s1)
fork=$(tidemark sessions resume s1 --checkpoint "$ckpt" --set api_key=good-hunter-3 --json --quiet 2>/dev/null | json '$.session_id')
check_is 'a fork begins there' 'post tell ' "$(happened)"
check_is 'the session itself stays as it is' "$seq" "$(last s1)"
check_is 'the fork has completed' completed "$(tidemark sessions show "$fork" --json | json '$.outcome')"
begin s2
ckpt=$(tidemark sessions checkpoints s2 --type node_start --ids | sed -n 1p)
check_is 'one that failed goes back' 'told: 1' \
    "$(tidemark sessions resume s2 --checkpoint "$ckpt" --set api_key=good --quiet)"
check_is 'to before its first node' 'fetch post fetch post tell ' "$(happened)"

# ---- another graph ----
begin s3
sed 's/"post"/"publish"/g' g.json >renamed.json
refuses_as 'a node that is gone is named' 2 'INVALID|node|s3|post||repeat,repeat' sessions resume s3 --graph renamed.json --set api_key=good
check_is 'with what it may be called now' '{"map":{"post":"publish"}}' "$(json '$.hints[0].arguments' <.err)"
refuses_as 'a name that is not there' 2 'INVALID|node|s3|pub||repeat' \
    sessions resume s3 --graph renamed.json --set api_key=good --map post=pub
tidemark sessions resume s3 --graph renamed.json --set api_key=good --map post=publish >out 2>err
check_is 'under its new name it goes on' 'told: 1' "$(cat out)"
check 'which is said' holds "node 'post' is called 'publish' in this graph" <err
check_is 'and recorded' 1 "$(tidemark log show s3 --json | grep -c '"kind":"node.renamed"')"
begin s4
cat >other.json <<'END'
{"tidemark_graph": 1, "id": "pipe", "entry": "fetch", "nodes": [
  {"id": "fetch", "type": "function", "program": ["sh", "-c", "echo fetch >>log; echo '{\"page\": \"hello\"}'"], "outputs": ["page"]},
  {"id": "print", "type": "lua", "code": "return {sent = 1}", "outputs": ["sent"]}],
 "edges": [{"from": "fetch", "to": "print"}]}
END
refuses_as 'without a likeness' 2 'INVALID|node|s4|post||repeat,repeat' sessions resume s4 --graph other.json
check_is 'there is no guess' '{"map":{"post":null}} {"fallback":true}' "$(json '$.hints[0].arguments' <.err) $(json '$.hints[1].arguments' <.err)"
tidemark sessions resume s4 --graph other.json --fallback --quiet >out 2>err
check_is 'the newest checkpoint that fits is taken when asked for' 'fetch post fetch ' "$(happened)"
check_is 'and it goes on from there' 'sent: 1' "$(cat out)"
begin s5
refuses_as 'a graph that is not there' 3 'NOT_FOUND|file||none.json||' sessions resume s5 --graph none.json
echo '{' >broken.json
refuses_as 'a graph that is none' 2 'INVALID|file||broken.json||*' sessions resume s5 --graph broken.json

# ---- a person ----
cat >ask.json <<'END'
{"tidemark_graph": 1, "id": "ask", "entry": "h", "nodes": [
  {"id": "h", "type": "human_input", "question": "Which colour?", "outputs": ["colour"]}]}
END
check_status 'a graph that asks waits' 7 tidemark run ask.json --session w1 --quiet
refuses_as 'going on is not answering' 2 'WRONG_STATE|session|w1|||answer,resume' sessions resume w1
check_status 'it waits still' 2 tidemark sessions resume w1 --dry-run
refuses_as 'one answer' 2 'INVALID|argument||input||' sessions resume w1 --input red --input-json '"red"'
refuses_as 'a token that is none' 8 'TOKEN_MALFORMED|session|w1|||' sessions resume w1 --token nonsense --input red
check_is 'the answer goes on' 'colour: red' "$(tidemark sessions resume w1 --input red --quiet)"
refuses_as 'once' 2 'WRONG_STATE|session|w1|||repeat,repeat' sessions resume w1 --input red

# ---- what must happen once ----
cat >once.json <<'END'
{"tidemark_graph": 1, "id": "once", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "code": "return {a = 1}", "outputs": ["a"]},
  {"id": "pay", "type": "function", "effect": "once", "program": ["sh", "-c", "echo pay >>log; echo '{\"paid\": 1}'"], "outputs": ["paid"]},
  {"id": "z", "type": "function", "retries": 0, "program": ["sh", "-c", "test -e ok && echo '{\"z\": 1}'"], "outputs": ["z"]}],
 "edges": [{"from": "a", "to": "pay"}, {"from": "pay", "to": "z"}]}
END
: >log
tidemark run once.json --session o1 --quiet >/dev/null 2>&1
ckpt=$(tidemark sessions checkpoints o1 --type node_complete --ids | sed -n 1p)
refuses_as 'going back past it is refused, and it is named' 4 'EFFECTS|session|o1|||repeat,repeat' sessions resume o1 --checkpoint "$ckpt"
refuses_as 'one of them' 2 'INVALID|argument||reuse_effects||' sessions resume o1 --checkpoint "$ckpt" --reuse-effects --redo-effects
refuses_as 'only where something happens again' 2 'INVALID|argument||reuse_effects||' sessions resume o1 --reuse-effects
: >ok
check_is 'what it gave is used again' 'z: 1' "$(tidemark sessions resume o1 --checkpoint "$ckpt" --reuse-effects --quiet)"
check_is 'it happened once' 'pay ' "$(happened)"
refuses_as 'also in a fork' 4 'EFFECTS|session|o1|||repeat' sessions resume o1 --checkpoint "$ckpt"
check_is 'somebody says so' 'z: 1' "$(tidemark sessions resume o1 --checkpoint "$ckpt" --redo-effects --quiet 2>/dev/null)"
check_is 'then it happens again' 'pay pay ' "$(happened)"
rm ok
tidemark run once.json --session o2 --quiet >/dev/null 2>&1
refuses_as 'a name that is wrong is no permission' 2 'INVALID|node|o2|payy||repeat' sessions resume o2 --retry payy

tidemark sessions fork s1 --at "$(tidemark sessions checkpoints s1 --type node_complete --ids | sed -n 1p)" --id hand >/dev/null
: >log
check_is 'a fork made by hand goes on' 'told: 1' "$(tidemark sessions resume hand --set api_key=good --quiet)"
check_is 'with what is open in it' 'post tell ' "$(happened)"

# ---- while it runs, and when it was killed ----
sed 's/echo pay >>log; /echo pay >>log; test -e ok || exec sleep 60; /' once.json >slow.json
: >log
"$TIDE_BIN" run slow.json --session k1 --quiet >/dev/null 2>&1 &
runner=$!
check 'it has begun' wait_for has_lines log 0
refuses_as 'one that runs elsewhere' 4 'HELD|session|k1|||cancel,repeat' sessions resume k1
kill -KILL $runner
wait $runner 2>/dev/null
# cut_at ID: what a crashed graph says of itself, in lists and by itself.
cut_at() {
    tidemark sessions list --status failed --json | json '$.sessions' >list
    sqlite3 :memory: "SELECT value ->> '\$.failed_at_node', value ->> '\$.error' FROM json_each(CAST(readfile('list') AS TEXT)) WHERE value ->> '\$.session_id' = '$1'"
    tidemark sessions show "$1" --json | json '$.failed_at_node'
}
cut='pay|interrupted: its process ended unexpectedly (killed, or the machine went down)
pay'
check_is 'one that was cut says where, and of what' "$cut" "$(cut_at k1)"
tidemark recover >/dev/null
check_is 'recovery changes nothing of that' "$cut" "$(cut_at k1)"
: >ok
refuses_as 'what must happen once and was interrupted is left to a person' 10 'UNSETTLED|node|k1|pay||repeat,repeat' sessions resume k1
check_is 'nothing happens meanwhile' 'pay ' "$(happened)"
check_is 'it may be tried again' 'z: 1' "$(tidemark sessions resume k1 --retry pay --quiet)"
check_is 'when somebody says so' 'pay pay ' "$(happened)"
check_is 'then it has no error' '' "$(tidemark sessions show k1 --json | json '$.error')"
rm ok
: >log
"$TIDE_BIN" run slow.json --session k2 --quiet >/dev/null 2>&1 &
runner=$!
check 'another one has begun' wait_for has_lines log 0
kill -KILL $runner
wait $runner 2>/dev/null
: >ok
tidemark sessions resume k2 --retry pay --quiet >/dev/null
check_is 'a resume right after a kill writes what recovery would' \
    'run.interrupted process_restart, status.derived interrupted_startup, run.started , status.derived running, ' \
    "$(tidemark log show k2 | grep -A 3 '"kind":"run.interrupted"' |
        sed 's/.*"kind":"\([a-z.]*\)"\(.*"status":"\([a-z_]*\)"\|.*"reason":"\([a-z_]*\)"\)\{0,1\}.*/\1 \3\4/' | tr '\n' ',' | sed 's/,/, /g')"

# ---- what is offered can be done ----
# offers NAME ID WANT: what `why` offers first.
offers() {
    check_is "$1" "  tidemark sessions resume $2$3" "$(tidemark why "$2" | grep '^  tidemark' | head -n 1)"
}
begin p1
offers 'a value that is never stored is part of the command' p1 " --set 'api_key=…'"
cat >pays.json <<'END'
{"tidemark_graph": 1, "id": "pays", "entry": "two", "nodes": [
  {"id": "two", "type": "function", "effect": "once", "program": ["false"], "outputs": ["two"]},
  {"id": "z", "type": "lua", "inputs": ["two"], "code": "return {z = inputs.two}", "outputs": ["z"]}],
 "edges": [{"from": "two", "to": "z"}]}
END
tidemark run pays.json --session p2 >out 2>err
check 'a node that must happen once is named with both ways' holds "--happened two --set 'two=…'\` or \`tidemark sessions resume p2 --retry two\`" <err
offers 'also by why' p2 " --happened two --set 'two=…'"
seq=$(last p2)
refuses_as 'what it gave has to be said' 2 'INVALID|node|p2|two||repeat' sessions resume p2 --happened two
check_is 'by its keys' '{"set":{"two":null}}' "$(json '$.hints[0].arguments' <.err)"
check_is 'and nothing was written' "$seq" "$(last p2)"
check_is 'a dry run does not run it' 0 "$(tidemark sessions resume p2 --happened two --dry-run | grep -c '^runs *two')"
check_is 'then it goes on' 'z: 5' "$(tidemark sessions resume p2 --happened two --set two=5 --quiet)"
cat >cut.json <<'END'
{"tidemark_graph": 1, "id": "cut", "entry": "s", "nodes": [{"id": "s", "type": "lua", "code": "return {}"},
  {"id": "one", "type": "function", "effect": "once", "program": ["sh", "-c", "echo one >>log; exec sleep 60"]},
  {"id": "two", "type": "function", "effect": "once", "program": ["sh", "-c", "echo two >>log; exec sleep 60"]},
  {"id": "bad", "type": "function", "retries": 0, "program": ["sh", "-c", "while [ $(wc -l <log) -lt 2 ]; do sleep 0.01; done; exit 1"]}],
 "edges": [{"from": "s", "to": "one"}, {"from": "s", "to": "two"}, {"from": "s", "to": "bad"}]}
END
: >log
tidemark run cut.json --session cut2 --parallel 3 --quiet >/dev/null 2>&1
check 'why names every node that may have happened' eval "tidemark why cut2 | holds 'nodes one, two must happen once and failed or were interrupted: find out whether they happened'"
cat >items.json <<'END'
{"tidemark_graph": 1, "id": "items", "entry": "all", "memory": {"list": [1]}, "nodes": [
  {"id": "all", "type": "map", "over": "list", "as": "p", "outputs": ["all"],
   "node": {"type": "function", "effect": "once", "program": ["sh", "-c", "test -e paid && echo '{\"x\": 1}'"], "outputs": ["x"]}}]}
END
tidemark run items.json --session p3 --quiet >/dev/null 2>&1
offers 'of an item of a map it is said what it gave' p3 " --happened 'all#1[0]=JSON'"
refuses_as 'and has to be' 2 'INVALID|node|p3|all#1[[]0]||repeat,repeat' sessions resume p3 --happened 'all#1[0]'
check_is 'with its keys' '{"happened":[{"name":"all#1[0]","output":{"x":null}}]}' "$(json '$.hints[0].arguments' <.err)"
tidemark run items.json --session p4 --quiet >/dev/null 2>&1
for given in '{"y":2}' '{"x":1,"y":2}'; do
    refuses_as "a key that it has not is not taken as a value nor left out: $given" 2 'INVALID|node|p4|all#1\[0\]||repeat' \
        sessions resume p4 --happened "all#1[0]=$given"
done
for option in happened retry; do
    refuses_as "a name that is not there is no permission: --$option" 2 'INVALID|node|p4|nosuch||repeat' \
        sessions resume p4 --$option nosuch
    refuses_as "nor an item, --$option" 2 'INVALID|node|p4|all#1\[7\]||repeat' resume p4 --$option 'all#1[7]'
done
refuses_as 'null is no value of an output that is always set' 2 'INVALID|node|p4|all#1\[0\]||repeat,repeat' \
    sessions resume p4 --happened 'all#1[0]={"x":null}'
refuses_as 'whatever it gave' 2 'INVALID|node|p4|nosuch||repeat' sessions resume p4 --happened 'nosuch={"q":1}'
refuses_as 'nor is what is no JSON' 2 'INVALID|node|p4|all#1\[0\]||repeat,repeat' sessions resume p4 --happened 'all#1[0]={"x":'
check_is 'then it is taken as done' 'all: [{"y":2}]' "$(tidemark sessions resume p4 --happened 'all#1[0]={"x":{"y":2}}' --quiet)"
: >paid
check_status 'or it is tried again' 0 tidemark sessions resume p3 --retry 'all#1[0]' --quiet
cat >steps.json <<'END'
{"tidemark_graph": 1, "id": "steps", "entry": "a", "max_steps": 1, "nodes": [
  {"id": "a", "type": "lua", "code": "return {a = 1}", "outputs": ["a"]},
  {"id": "b", "type": "lua", "code": "return {b = 1}", "outputs": ["b"]}], "edges": [{"from": "a", "to": "b"}]}
END
tidemark run steps.json --session p4 >out 2>err
check 'steps that are used up need another graph' holds 'sessions resume p4 --graph NEW.json' <err
offers 'why says so too' p4 ' --graph NEW.json'
refuses_as 'as it is it is refused' 2 'INVALID|session|p4|||repeat' sessions resume p4
sed 's/"max_steps": 1/"max_steps": 9/' steps.json >more.json
check_is 'with it it goes on' 'b: 1' "$(tidemark sessions resume p4 --graph more.json --quiet)"
begin p5
refuses_as 'names the wrong way round are turned' 2 'INVALID|node|p5|post||repeat,repeat' \
    sessions resume p5 --graph renamed.json --set api_key=good --map publish=post

# ---- inside an agent's work ----
cat >think.json <<'END'
{"tidemark_graph": 1, "id": "think", "entry": "think", "nodes": [
  {"id": "think", "type": "event_loop", "prompt": "Go", "outputs": ["a", "b", "c"]},
  {"id": "z", "type": "function", "retries": 0, "program": ["sh", "-c", "test -e zok && echo '{\"z\": 1}'"], "outputs": ["z"]}],
 "edges": [{"from": "think", "to": "z"}]}
END
turn='{"calls": [{"name": "set_output", "args": {"key": "%s", "value": "%s"}}]}'
# shellcheck disable=SC2059 # the format is the turn
{
    printf '{"nodes": {"think": ['
    printf "$turn, $turn, $turn" a 1 b 2 c 3
    printf ']}}'
} >answers.json
tidemark run think.json --session t0 --script answers.json --checkpoint checkpoint_on_loop_iteration=true --quiet >/dev/null 2>&1
: >zok
ckpt=$(tidemark sessions checkpoints t0 --type loop_iteration --ids | sed -n 2p)
check_is 'a checkpoint of a turn has the messages' 5 "$(tidemark sessions inspect t0 "$ckpt" --json | json '$.state.conversations.think.messages')"
tidemark sessions resume t0 --checkpoint "$ckpt" --script answers.json --json >out 2>err
check_is 'it goes on at the turn after it' 1 "$(grep -c 'think: set_output' err)"
check_is 'with what was set before' '1 2 3' "$(json '$.memory.a' <out) $(json '$.memory.b' <out) $(json '$.memory.c' <out)"

# ---- --set ----
printf 'from a file\n' >value
printf '[1, 2]' >list
cat >echo.json <<'END'
{"tidemark_graph": 1, "id": "echo", "entry": "e", "nodes": [
  {"id": "e", "type": "lua", "inputs": ["k"], "code": "return {out = inputs.k}", "outputs": ["out"]}]}
END
# set_gives WANT SET: what the node sees, as JSON.
set_gives() {
    VALUE='of $ME' tidemark run echo.json --set "$2" --json --quiet <value >"$work/.json" 2>/dev/null
    check_is "--set $2" "$1" \
        "$(sqlite3 :memory: "SELECT json_extract(CAST(readfile('$work/.json') AS TEXT), '$.memory') -> '$.out'")"
}
set_gives '"text"' 'k=text'
set_gives '""' 'k='
set_gives '"a=b"' 'k=a=b'
set_gives '"-5"' 'k=-5'
set_gives '"@x"' 'k==@x'
set_gives '"$x"' 'k==$x'
set_gives '"-"' 'k==-'
set_gives '{"a":[1,true]}' 'k:={"a": [1, true]}'
set_gives '"from a file"' 'k=@value'
set_gives '[1,2]' 'k:=@list'
set_gives '"from a file"' 'k=-'
set_gives '"of $ME"' 'k=$VALUE'
begin s6
seq=$(last s6)
refuses_as 'no key' 2 'INVALID|argument||set||' sessions resume s6 --set =x
refuses_as 'no value' 2 'INVALID|argument||set||' sessions resume s6 --set key
refuses_as 'no JSON' 2 'INVALID|argument||set||' sessions resume s6 --set 'k:={'
refuses_as 'no such file' 3 'NOT_FOUND|file||none||' sessions resume s6 --set k=@none
refuses_as 'no such variable' 2 'INVALID|argument||set||' sessions resume s6 --set 'k=$NONE_SUCH'
refuses_as 'no name of a variable' 2 'INVALID|argument||set||' sessions resume s6 --set 'k=$5'
refuses_as 'a key twice' 2 'INVALID|argument||set||' sessions resume s6 --set k=1 --set k=2
refuses_as 'standard input twice' 2 'INVALID|argument||set||' sessions resume s6 --set k=- --set l=- <value
printf '\377' >bytes
refuses_as 'bytes that are no text' 2 'INVALID|argument||set||' sessions resume s6 --set k=@bytes
refuses_as 'no pair' 2 'INVALID|argument||map||' sessions resume s6 --map post
refuses_as 'no such session' 3 'NOT_FOUND|session|none|||list_sessions' sessions resume none
refuses_as 'no such checkpoint' 3 'NOT_FOUND|checkpoint|s6|ckpt_none||list_checkpoints' sessions resume s6 --checkpoint ckpt_none
check_is 'none of these wrote anything' "$seq" "$(last s6)"
check_is 'a message shows no value' '' "$(tidemark sessions resume s6 --set 'api_key:=hunter-4 {' 2>&1 | grep hunter)"

# ---- what inspect may show ----
cat >two.json <<'END'
{"tidemark_graph": 1, "id": "two", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "code": "return {x = 'secret-7'}", "outputs": ["x"]},
  {"id": "b", "type": "function", "retries": 0, "program": ["sh", "-c", "[ -f mended ] && echo '{\"y\": 1}'"], "outputs": ["y"]}],
 "edges": [{"from": "a", "to": "b"}]}
END
# inspects ARGS...: a checkpoint of a run with these, with --memory and without.
inspects() {
    tidemark run two.json --session "$1" "${@:2}" --quiet >/dev/null 2>&1
    ckpt=$(tidemark sessions checkpoints "$1" --ids | tail -n 1)
    echo "$(tidemark sessions inspect "$1" "$ckpt" | grep -c secret-7) $(
        tidemark sessions inspect "$1" "$ckpt" --memory | grep -c secret-7) $(
        tidemark sessions inspect "$1" "$ckpt" --memory --json | grep -c secret-7)"
}
check_is 'what nodes gave, and the memory when it is asked for' '1 2 1' "$(inspects i1)"
check_is 'without being asked for' '2 2 1' "$(inspects i2 --checkpoint include_full_memory=true)"
check_is 'or not at all, as the run was told' '0 0 0' "$(inspects i3 --checkpoint include_full_memory=false)"
ckpt=$(tidemark sessions checkpoints i3 --ids | tail -n 1)
check 'and why' eval "tidemark sessions inspect i3 '$ckpt' --memory | grep -q 'memory .*include_full_memory is false'"
check 'an export holds it all the same' eval "tidemark sessions export i3 | grep -q secret-7"

# ---- plain resume ----
ckpt=$(tidemark sessions checkpoints i1 --type node_complete --ids | head -n 1)
tidemark sessions fork i1 --at "$ckpt" --id handmade >/dev/null
touch mended
check_is 'knows a fork made by hand' 'y: 1' "$(tidemark resume handmade 2>/dev/null)"
begin set1
check_is 'takes values' 'told: 1' "$(tidemark resume set1 --set api_key=good 2>/dev/null)"
tidemark exec --session prog2 -- sh -c 'exit 3' >/dev/null 2>&1
refuses_as 'of graphs alone' 2 'INVALID|argument|prog2|set||repeat' resume prog2 --set a=1
refuses_as 'refuses what is for programs' 2 'INVALID|argument|i1|accept_change||repeat' resume i1 --accept-change
damage i2 "$(tidemark sessions show i2 --json | json '$.last_seq')"
tidemark resume i2 >out 2>err
check_is 'goes on with a damaged one in a fork' '0 y: 1' "$? $(cat out)"
check 'and says so' holds 'session i2 is damaged' <err

# ---- what is no graph ----
tidemark sessions new --id plain >/dev/null
refuses_as 'a session that ran nothing' 2 'WRONG_STATE|session|plain|||start' sessions resume plain
refuses_as 'what is for graphs' 2 'INVALID|argument|plain|set||why' sessions resume plain --set a=1
tidemark exec --session prog -- sh -c 'exit 3' >/dev/null 2>&1
check_end 'a program goes on as with resume' 3 tidemark sessions resume prog

# ---- damage ----
begin d1
marks=$(tidemark sessions checkpoints d1 --json)
at=$(printf '%s' "$marks" | json '$.checkpoints[2].seq')
bad=$(printf '%s' "$marks" | json '$.checkpoints[2].checkpoint_id')
good=$(printf '%s' "$marks" | json '$.checkpoints[1].checkpoint_id')
damage d1 "$at"
refuses_as 'a damaged checkpoint is refused by name' 5 'CORRUPT|checkpoint|d1|*||repeat' sessions resume d1 --checkpoint "$bad" --set api_key=good
: >log
tidemark sessions resume d1 --set api_key=good --quiet >out 2>err
check_is 'without a name the newest that can be read is taken' 'told: 1' "$(cat out)"
check 'said aloud' holds "from checkpoint $good" <err
check 'with what is damaged' holds 'session d1 is damaged' <err
check_is 'what was complete there is not run again' 'post tell ' "$(happened)"
check_status 'or when asked for' 0 tidemark sessions resume d1 --checkpoint "$bad" --fallback --set api_key=good
begin d2
damage d2 1
refuses_as 'and when there is none, nothing begins anew in silence' 5 'CORRUPT|session|d2|||' \
    sessions resume d2 --set api_key=good

# ---- a full disk ----
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    size=1
    on_files && size=1300000 # more than a log has reserved
    cat >full.json <<END
{"tidemark_graph": 1, "id": "full", "entry": "a", "nodes": [{"id": "a", "type": "function", "outputs": ["x"],
  "program": ["sh", "-c", "cat /dev/zero >small/fill; printf '{\"x\":\"%0${size}d\"}' 1"]}]}
END
    mkdir small
    export -f wait_for
    : >held.err
    TIDEMARK_STORE=$(store_at "$work/small/s") unshare -m bash -c 'mount -t tmpfs -o size=3m tmpfs small || exit 77
        "$TIDE_BIN" run full.json --session held --quiet >held.out 2>held.err &
        wait_for grep -q "the run pauses" held.err
        rm -f small/fill
        wait $!'
    status=$?
    if [ $status -eq 77 ]; then
        skip 'held by a full disk' 'cannot mount'
    else
        check_is 'held by a full disk it says so once, however quiet, and goes on' '0 1' \
            "$status $(grep -c '^tidemark: .*: the run pauses and continues by itself when the store can be written$' held.err)"
    fi
else
    skip 'held by a full disk' 'needs root and mount namespaces'
fi

# ---- at a terminal ----
begin_screen 'what is never stored is asked for'
begin t1
terminal new-session -d -x 100 -y 30 "$(printf '%q ' "$TIDE_BIN" sessions resume t1); echo \$? >ended; read -r _"
check 'what is never stored is asked for' wait_for is_shown 'api_key of node post, which is never stored'
terminal send-keys -l good-hunter-6
terminal send-keys Enter
check 'and it goes on' wait_for test -s ended
check_is 'to its end' 0 "$(cat ended)"
check 'what was typed is not shown' eval '! is_shown hunter'
check_is 'nor stored' '' "$(grep -rla 'hunter-6' data)"
begin t2
rm -f ended
terminal new-session -d -x 100 -y 30 "$(printf '%q ' "$TIDE_BIN" resume t2); echo \$? >ended; read -r _"
check 'a plain resume asks as well' wait_for is_shown 'api_key of node post, which is never stored'
terminal send-keys -l good-hunter-8
terminal send-keys Enter
wait_for test -s ended
check_is 'and goes on' 0 "$(cat ended)"
begin t3
rm -f ended
terminal new-session -d -x 100 -y 30 "$(printf '%q ' "$TIDE_BIN" resume t3 --no-input); echo \$? >ended; read -r _"
wait_for test -s ended
check_is 'unless told to ask nothing' 2 "$(cat ended)"

lists_agree 'list and why offer something'

finish
