#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark run: graphs to their end, failed and gone on with, asked about, cut, stopped; what is printed and what is refused.
# shellcheck disable=SC2016,SC2317 # programs of graphs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

# run ARGS...: with its result in out, what it says in err, its exit status in $got, its session in $id.
run() {
    tidemark run "$@" >out 2>err </dev/null && got=0 || got=$?
    id=$(sed -n 's/^session //p' err | head -n 1)
}
newest() {
    tidemark sessions list --ids | head -n 1
}
sessions() {
    tidemark sessions list --ids | wc -l
}

# ---- to its end ----
cat >child.json <<'END'
{"tidemark_graph": 1, "id": "child", "entry": "a", "nodes": [{"id": "a", "type": "function", "program": ["echo", "{}"]}]}
END
check 'started by one that ignores SIGCHLD it hears of its programs all the same' \
    timeout -s KILL 60 env --ignore-signal=CHLD "$TIDE_BIN" run child.json

cat >chain.json <<'END'
{"tidemark_graph": 1, "id": "chain", "name": "A chain", "entry": "a", "memory": {"word": "tide"},
 "nodes": [
  {"id": "a", "type": "lua", "code": "return {long = memory.word .. '!'}", "outputs": ["long"]},
  {"id": "b", "type": "function", "retries": 0, "program": ["sh", "-c", "echo called >>calls; [ -f fixed ] || { echo boom >&2; exit 3; }; echo '{\"n\": 2}'"], "outputs": ["n"]},
  {"id": "c", "type": "lua", "code": "return {sum = memory.n + 1, text = 'one\\ntwo'}", "outputs": ["sum", "text"]}],
 "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}
END
touch fixed
run chain.json
check_is 'a graph runs to its end' 0 "$got"
check_is 'what its last node gave is printed' "sum: 3
text:
  one
  two" "$(cat out)"
check_is 'the session is said first' "session $id" "$(head -n 1 err)"
check_is 'then a line for each thing that happens' 'a: starts
a: done
b: starts
b: done
c: starts
c: done' "$(sed -n '2,7s/, .* s$//;2,7p' err)"
check 'and a sum' eval "tail -n 1 err | grep -q '^completed: 3 nodes, 6 checkpoints, '"
check_is 'the session is named after the graph' 'chain A chain' \
    "$(tidemark sessions show "$id" --json | json '$.agent') $(tidemark sessions show "$id" --json | json '$.title')"
check_is 'its directory is this one' "$work" "$(tidemark state "$id" | json '$.session.working_dir')"
run chain.json --verbose
check 'verbose adds edges and checkpoints' eval "grep -q '^a: leads to b' err && grep -q '^a: checkpoint ckpt_.*, node_complete' err"
run chain.json -q
check_is 'quiet says nothing' '' "$(cat err)"
check_is 'but prints the same' 'sum: 3' "$(head -n 1 out)"
tidemark run - -q <chain.json >out
check_is 'from standard input' 'sum: 3' "$(head -n 1 out)"
run chain.json --session mine --title 'My run'
check_is 'its id and title may be given' 'mine My run' "$id $(tidemark sessions show mine --json | json '$.title')"
run chain.json --set word=ebb --set extra:='[1,2]' --json
check 'JSON is one line' eval 'is_json <out'
check_is 'with the whole memory' 'ebb! [1,2] 2' "$(json '$.memory.long' <out) $(json '$.memory.extra' <out) $(json '$.memory.n' <out)"
check_is 'and figures' 'completed 3 0 6' \
    "$(json '$.status' <out) $(json '$.nodes' <out) $(json '$.retries' <out) $(json '$.checkpoints' <out)"
run chain.json --output stream-json
check_is 'a stream begins and ends' 'start result' "$(head -n 1 out | json '$.type') $(tail -n 1 out | json '$.type')"
check_is 'and tells each node' 3 "$(grep -c '"type":"node_end"' out)"

# ---- checkpoints by flag ----
run chain.json --no-checkpoints --json
check_is 'none when none are wanted' 0 "$(json '$.checkpoints' <out)"
run chain.json --checkpoint on_edge=true --checkpoint checkpoint_on_node_start=false --json
check_is 'as the flags say' 5 "$(json '$.checkpoints' <out)"
id=$(json '$.session_id' <out)
check 'which is recorded' eval "tidemark log show '$id' | grep '\"kind\":\"run.started\"' | holds '\"checkpoint_on_edge\":true'"
before=$(sessions)
refuses_as 'a checkpoint key that is none' 2 'INVALID|argument||checkpoint||' run chain.json --checkpoint foo=1
refuses_as 'one without a value' 2 'INVALID|argument||checkpoint||' run chain.json --checkpoint async_checkpoint
refuses_as 'a value that is none' 2 'INVALID|argument||checkpoint||' run chain.json --checkpoint async_checkpoint=maybe
refuses 'a value of another type' 2 'must be true or false' run chain.json --checkpoint async_checkpoint=7
refuses_as 'both' 2 'INVALID|argument||no_checkpoints||' run chain.json --checkpoint async_checkpoint=false --no-checkpoints

# ---- what is refused makes no session ----
refuses_as 'a file that is not there' 3 'NOT_FOUND|file||none.json||' run none.json
refuses_as 'a directory' 2 'INVALID|file||.||' run .
refuses_as 'an option that is none' 2 'INVALID|argument||bogus||' run chain.json --bogus
refuses_as 'no graph' 2 'INVALID|argument||graph||' run
refuses_as 'a key without a value' 2 'INVALID|argument||set||' run chain.json --set word
refuses_as 'a JSON value that is none' 2 'INVALID|argument||set||' run chain.json --set 'word:={'
refuses_as 'a file of a value that is not there' 3 'NOT_FOUND|file||gone||' run chain.json --set word=@gone
refuses_as 'the graph and a value from standard input' 2 'INVALID|argument||set||' run - --set word=- <chain.json
refuses_as '--json and a stream' 2 'INVALID|argument||output||' run chain.json --json --output stream-json
refuses_as 'a script and another provider' 2 'INVALID|argument||script||' run chain.json --script x --provider openai
refuses_as 'a descriptor that is closed' 2 'INVALID|argument||token_fd||' run chain.json --token-fd 77
echo '{"tidemark_graph": 1,' >half.json
run half.json
check_is 'half a JSON' '2 1' "$got $(grep -c '^problem  \$: not JSON' err)"
echo '{"tidemark_graph":1,"id":"x","entry":"q","nodes":[{"id":"a","type":"lua","code":"return {"},{"id":"b","type":"nope"}]}' >bad.json
run bad.json
check_is 'every problem is told' '2 3' "$got $(grep -c '^problem' err)"
check 'and how many' eval "tail -n 1 err | grep -q '^tidemark: bad.json has 3 problems, and nothing was run'"
{
    comma=
    printf '{"tidemark_graph":1,"id":"big","entry":"n0","nodes":['
    for i in $(seq 0 9999); do printf '%s{"id":"n%d","type":"lua","code":"return {}"}' "$comma" "$i" && comma=,; done
    printf ']}'
} >big.json
run big.json
check_is 'ten thousand nodes are one problem' '2 1 1' "$got $(grep -c '10000 are too many: at most 4096' err) $(grep -c '^problem' err)"
echo '{"tidemark_graph":1,"id":"x","entry":"a","nodes":[{"id":"a","type":"event_loop","prompt":"About {topic} and {nobody}","inputs":["topic"]}]}' >holes.json
run holes.json --script x
check_is 'a placeholder that nobody fills' '2 1' "$got $(grep -c '^problem.*nobody' err)"
echo '{"tidemark_graph":1,"id":"x","entry":"a","nodes":[{"id":"a","type":"function","callback":"f"}]}' >callback.json
refuses_as 'a callback' 2 'INVALID|node||a||' run callback.json
echo '{"tidemark_graph":1,"id":"x","entry":"a","nodes":[{"id":"a","type":"event_loop","prompt":"Hi","model":"m"}]}' >agent.json
refuses_as 'an agent without a key' 2 'INVALID|key||*||set_setting' run agent.json
refuses_as 'a script that is not there' 3 'NOT_FOUND|file||none.json||repeat' run agent.json --script none.json
check_is 'none of them left a session' "$before" "$(sessions)"

# ---- nodes that fail ----
# fails NAME TEXT NODE...: a graph of this node fails with it, once.
fails() {
    echo "{\"tidemark_graph\":1,\"id\":\"x\",\"entry\":\"a\",\"max_retries\":0,\"nodes\":[{\"id\":\"a\",$3}]}" >fails.json
    run fails.json
    if [ "$got" -eq 1 ] && tail -n 1 err | grep -q "^tidemark: node 'a' failed: .*tidemark sessions resume $id" &&
        grep -qF -- "$2" err; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/# /' err
        failures=$((failures + 1))
    fi
}
fails 'half a JSON value of a program' 'not one JSON value' '"type":"function","program":["sh","-c","printf \"{\\\"a\\\": \""],"outputs":["a"]'
fails 'Lua without end' 'stopped' '"type":"lua","code":"while true do end"'
fails 'Lua that eats memory' 'stopped' '"type":"lua","code":"local t = {} for i = 1, 1e9 do t[i] = string.rep(\"x\", 1e6) .. i end"'
fails 'a program that is not there' 'no-such-program' '"type":"function","program":["no-such-program"]'
fails 'an output that is missing' 'no value for: b' '"type":"lua","code":"return {}","outputs":["b"]'
fails 'one value over the limit of Lua' 'memory limit' '"type":"lua","code":"return {b = string.rep(\"x\", 70000000)}","outputs":["b"]'
fails 'output over its limit' 'more than' '"type":"function","program":["sh","-c","printf \"{\\\"b\\\":\\\"\"; head -c 70000000 /dev/zero | tr \"\\\\0\" x; printf \"\\\"}\""],"outputs":["b"]'

# ---- failed, and gone on with ----
rm -f fixed calls
run chain.json
check_is 'a node that fails' 1 "$got"
check_is 'one line says which, why and what to do' \
    "tidemark: node 'b' failed: exit status 3: boom: \`tidemark sessions resume $id\` continues" "$(tail -n 1 err)"
check_is 'nothing is printed' '' "$(cat out)"
refuses_as 'a session in the middle of a graph takes no other' 4 "EXISTS|session|$id|||resume" run chain.json --session "$id"
check 'why names the node' eval "tidemark why '$id' | grep -q \"node 'b' failed: exit status 3: boom\""
check 'and the command' eval "tidemark why '$id' | grep -q '  tidemark sessions resume $id\$'"
check_is 'it is listed as failed' "$id" "$(tidemark sessions list --agent chain --status failed --ids)"
touch fixed
tidemark resume "$id" >out 2>err
check_is 'resume goes on' '0 sum: 3' "$? $(head -n 1 out)"
check_is 'what was complete is not run again' 1 "$(tidemark log show "$id" | grep '"kind":"node.started"' | grep -c '"node":"a"')"
check_is 'what failed is' 2 "$(wc -l <calls)"
refuses_as 'what is complete is not resumed' 2 "WRONG_STATE|session|$id|||list_checkpoints,repeat" resume "$id"
check 'why offers a checkpoint then' eval "tidemark why '$id' | grep -q 'sessions resume $id --checkpoint'"
run chain.json --session "$id"
check_is 'a complete session can run another' 0 "$got"

# ---- asked about ----
cat >ask.json <<'END'
{"tidemark_graph": 1, "id": "ship", "entry": "build",
 "nodes": [
  {"id": "build", "type": "lua", "code": "return {version = '1.2'}", "outputs": ["version"]},
  {"id": "ok", "type": "human_input", "question": "Ship {version}?", "kind": "approval", "inputs": ["version"], "outputs": ["yes"], "deadline": "3h"},
  {"id": "deploy", "type": "function", "effect": "once", "program": ["sh", "-c", "echo x >>deploys; [ -f slow ] && { echo $$ >at; exec sleep 60; }; echo '{\"url\": \"u\"}'"], "outputs": ["url"]}],
 "edges": [{"from": "build", "to": "ok"}, {"from": "ok", "to": "deploy"}]}
END
run ask.json
check_is 'a question parks it' 7 "$got"
check 'it is shown' eval "grep -q '^  question  Ship 1.2?' err && grep -q '^  answer    tidemark resume $id --token rt_' err"
token=$(sed -n 's/.*--token \(rt_[^ ]*\).*/\1/p' err)
refuses_as 'a token that is wrong' 8 "TOKEN_MALFORMED|session|$id|||" resume "$id" --token "rt_x.y" --input yes
tidemark resume "$id" --token "$token" --input yes >out 2>err
check_is 'the token answers it' '0 url: u' "$? $(cat out)"
exec 5>token
run ask.json --json --token-fd 5
exec 5>&-
check_is 'as JSON, the token elsewhere' '7 waiting Ship 1.2? ok#1 1' \
    "$got $(json '$.status' <out) $(json '$.wait.question' <out) $(json '$.wait.name' <out) $(grep -c '^rt_' token)"
check_is 'it is not shown then' 0 "$(grep -c rt_ out)"
id=$(json '$.session_id' <out)
refuses_as 'what is for programs alone' 2 'INVALID|argument|*|now||repeat' resume "$id" --now

# ---- cut ----
touch slow
rm -f deploys at
run ask.json
"$TIDE_BIN" resume "$id" --input yes >out 2>err &
pid=$!
wait_for test -s at
kill -KILL $pid
{ wait $pid; } 2>/dev/null
kill "$(cat at)" 2>/dev/null
rm -f slow
check 'why says where it was' eval "tidemark why '$id' | grep -q '2 nodes are complete; node deploy was running'"
check_is 'and that it must happen once, once' 1 "$(tidemark why "$id" | grep -o 'node deploy must happen once and failed or was interrupted: find out whether it happened' | wc -l)"
check 'and how to settle it' eval "tidemark why '$id' | grep -q 'sessions resume $id --happened deploy'"
tidemark recover >/dev/null
check_is 'also when that is written down' 1 "$(tidemark why "$id" | grep -o 'must happen once' | wc -l)"
tidemark resume "$id" >out 2>err
check_is 'what must happen once and was interrupted is not run again' '10 1' "$? $(wc -l <deploys)"
tidemark resume "$id" --happened deploy --set url=u >out 2>err
check_is 'a person settles it' '0 1 url: u' "$? $(wc -l <deploys) $(cat out)"

# ---- stopped ----
cat >long.json <<'END'
{"tidemark_graph": 1, "id": "long", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "code": "return {x = 1}", "outputs": ["x"]},
  {"id": "b", "type": "function", "program": ["sh", "-c", "echo $$ >at; [ -f fixed ] || exec sleep 60; echo '{}'"]}],
 "edges": [{"from": "a", "to": "b"}]}
END
# stopped SIGNAL: the long one, stopped when b runs.
stopped() {
    rm -f at fixed
    # Background jobs of a script do not hear SIGINT otherwise.
    env --default-signal=INT "$TIDE_BIN" run long.json >out 2>err </dev/null &
    pid=$!
    wait_for test -s at
    kill "-$1" $pid
    wait $pid
    got=$?
    id=$(sed -n 's/^session //p' err)
}
stopped INT
check_is 'Ctrl-C parks it' 130 "$got"
check 'and shows how to continue' eval "tail -n 1 err | grep -q 'stopped: .tidemark sessions resume $id. continues'"
check 'its program is ended' eval '! kill -0 "$(cat at)"'
check 'what a person stopped stays' eval "tidemark why '$id' | grep -q 'a person stopped it'"
check_is 'recovery lets it be' 0 "$(tidemark recover --run-due --auto-resume all --json | tail -n 1 | json '$.summary.resumed')"
touch fixed
tidemark resume "$id" >out 2>err
check_is 'until a person resumes it' '0 completed' "$? $(tidemark sessions show "$id" --json | json '$.outcome')"
stopped TERM
check_is 'SIGTERM parks it too' 143 "$got"
touch fixed
check_is 'and recovery goes on with it' 1 "$(tidemark recover --run-due --auto-resume all --json 2>/dev/null | tail -n 1 | json '$.summary.resumed')"
check_is 'to its end' completed "$(tidemark sessions show "$id" --json | json '$.outcome')"

# ---- agents ----
cat >think.json <<'END'
{"tidemark_graph": 1, "id": "think", "entry": "think", "provider": "anthropic", "model": "m", "memory": {"topic": "tides"},
 "nodes": [{"id": "think", "type": "event_loop", "prompt": "About {topic}", "inputs": ["topic"], "outputs": ["idea"]}]}
END
echo '{"nodes":{"think":[{"calls":[{"name":"set_output","args":{"key":"idea","value":"moon"}}],"usage":{"input_tokens":1200,"output_tokens":300}}]}}' >answers.json
run think.json --script answers.json
check_is 'a script answers for all nodes, whatever the graph says' '0 idea: moon' "$got $(cat out)"
check 'tokens are summed up' eval "tail -n 1 err | grep -q '1500 tokens'"
run think.json --script answers.json --output stream-json
check_is 'what agents do is in the stream' 'think set_output' \
    "$(grep '"type":"tool"' out | json '$.node') $(grep '"type":"tool"' out | json '$.tool')"
check_is 'and the usage in the result' 1200 "$(tail -n 1 out | json '$.usage.input_tokens')"

echo '{"turns":[{"text":"a"}]}' >short.json
run think.json --script short.json
check_is 'what cannot help is not tried again, and no number says so' '1 1' \
    "$got $(grep -c '^think: failed: script: .*turn 2 was asked for' err)"

# ---- who answers is remembered ----
cat >approve.json <<'END'
{"tidemark_graph": 1, "id": "approve", "entry": "draft", "provider": "anthropic", "model": "m",
 "nodes": [
  {"id": "draft", "type": "event_loop", "prompt": "Write", "outputs": ["idea"], "max_visits": 3},
  {"id": "ok", "type": "human_input", "question": "Send {idea}?", "kind": "approval", "inputs": ["idea"], "outputs": ["yes"], "max_visits": 3},
  {"id": "send", "type": "lua", "code": "return {sent = memory.idea}", "outputs": ["sent"]}],
 "edges": [{"from": "draft", "to": "ok"}, {"from": "ok", "to": "send", "when": "memory.yes"},
  {"from": "ok", "to": "draft", "when": "true", "priority": -1}]}
END
sed 's/"think"/"draft"/' answers.json >drafts.json
run approve.json --script drafts.json
provider() {
    tidemark state "$id" | json "\$.session.provider.$1"
}
check_is 'what it was told is recorded' "script $work/drafts.json" "$(provider type) $(provider script)"
printed=$(sed -n 's/^  answer    tidemark \(.*\) yes$/tidemark \1 no/p' err)
eval "$printed" >out 2>err
check_is 'the printed command goes on with the same' '7 1' "$? $(grep -c '^draft: done' err)"
tidemark resume "$id" --input yes >out 2>err
check_is 'to its end' '0 sent: moon' "$? $(cat out)"
check_is 'it is no chat' 3 "$(tidemark chat --continue -p hi >/dev/null 2>&1 || echo $?)"
run approve.json --script drafts.json
tidemark sessions resume "$id" --provider anthropic --input yes >out 2>err
check_is 'a key is not missed where no agent runs' '0 sent: moon' "$? $(cat out)"
run approve.json --script drafts.json
tidemark sessions resume "$id" --provider anthropic --input no >out 2>err
check_is 'it is when one has to' 1 $?
check 'in one line' eval "tail -n 1 err | grep -q \"^tidemark: node 'draft' failed: no key for anthropic: set ANTHROPIC_API_KEY\""
refuses_as 'and before anything is written when it is the next' 2 'INVALID|key||*||set_setting' sessions resume "$id" --provider anthropic
tidemark resume "$id" >out 2>err
check_is 'as told, it goes on' '7' $?
run think.json --script answers.json --session again
run chain.json --session again
check_is 'another run forgets what the one before was told' '0 ' "$got $(provider type 2>/dev/null)"

# ---- what it needs from outside ----
cat >needs.json <<'END'
{"tidemark_graph": 1, "id": "needs", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "code": "return {}"},
  {"id": "post", "type": "function", "inputs": ["api_key", "name"], "program": ["sh", "-c", "echo '{\"done\": 1}'"], "outputs": ["done"]}],
 "edges": [{"from": "a", "to": "post"}]}
END
before=$(sessions)
run needs.json --set name=Bob
check_is 'a key that is never stored is missed before anything runs' 2 "$got"
check 'and named' eval "grep -qF \"node 'post' needs 'api_key', which is never stored and was not given\" err"
run needs.json --set api_key=sekret --set nmae=Bob
check_is 'also an input that nobody sets' 2 "$got"
check 'with what to give' holds "\`--set 'name=…'\` sets it" <err
check 'a key that nobody reads is noted' eval "grep -qF \"no node reads 'nmae' (did you mean 'name'?)\" err"
check_is 'there is no session of it' "$before" "$(sessions)"
run needs.json --set api_key=sekret --set name=Bob
check_is 'with both it runs' '0 done: 1' "$got $(cat out)"

# ---- a branch that fails while the others go on ----
cat >left.json <<'END'
{"tidemark_graph": 1, "id": "left", "entry": "a", "branch_failure": "continue", "max_retries": 0, "nodes": [
  {"id": "a", "type": "lua", "code": "return {a = 1}", "outputs": ["a"]},
  {"id": "b1", "type": "lua", "code": "return {b1 = 1}", "outputs": ["b1"]},
  {"id": "b3", "type": "function", "program": ["false"], "outputs": ["b3"]},
  {"id": "z", "type": "lua", "code": "return {z = 1}", "outputs": ["z"]}],
 "edges": [{"from": "a", "to": "b1"}, {"from": "a", "to": "b3"}, {"from": "b1", "to": "z", "when": "memory.nothing.at == 1"}]}
END
run left.json
check_is 'it is completed' 0 "$got"
check 'the sum says what was left behind' eval "tail -n 1 err | grep -q '; 1 node failed, the others continued: b3$'"
check 'and what could not be judged' eval "tail -n 1 err | grep -q ', 1 edge could not be judged,'"
check 'which edge was not taken' eval "grep -q '^b1: edge b1 → z not taken: ' err"
check 'why says it too' eval "tidemark why $id | tr '\n' ' ' | grep -q '1 node failed, the others continued: b3'"
check_is 'a dry run does not call it complete' 'failed b3' \
    "$(tidemark sessions resume "$id" --dry-run | grep -w b3 | awk '{print $1, $2}')"
check_is 'nor does JSON' '["b3"]' "$(tidemark run left.json --json 2>/dev/null | json '$.failed_nodes')"

# ---- where a model decides ----
cat >decide.json <<'END'
{"tidemark_graph": 1, "id": "decide", "entry": "draft", "nodes": [
  {"id": "draft", "type": "lua", "code": "return {}"},
  {"id": "longer", "type": "lua", "code": "return {way = 'longer'}", "outputs": ["way"]},
  {"id": "post", "type": "lua", "code": "return {way = 'post'}", "outputs": ["way"]}],
 "edges": [{"from": "draft", "to": "longer", "question": "Longer?"}, {"from": "draft", "to": "post", "question": "Post?"}]}
END
# decides NAME NODES WANT: with these answers it goes that way.
decides() {
    echo "{\"nodes\":{$2}}" >said.json
    run decide.json --script said.json
    check_is "$1" "0 way: $3" "$got $(cat out)"
}
decides 'a script answers for one way' '"draft>longer?":[{"text":"yes"}],"draft?":[{"text":"no"}]' longer
decides 'and for all that are not named' '"draft>longer?":[{"text":"no"}],"draft?":[{"text":"yes"}]' post

# ---- as a timeline ----
rm -f fixed
run chain.json
touch fixed
tidemark resume "$id" >out 2>err
tidemark sessions timeline "$id" >line
check_is 'its nodes are drawn' '▫ a node done ▫ b node failed ▫ b node done ▫ c node done ' \
    "$(sed -n 's/^ \(▫ [abc]  *node\) .* \([a-z]*\)$/\1 \2/p' line | tr -s ' ' | tr '\n' ' ')"
check 'what went wrong stands below' eval "grep -q '^ │   exit status 3: boom' line"
check 'what was complete is kept' eval "grep -q '^ ┊ 1 kept .*not rerun' line && grep -q '^ ┊   a$' line"
check 'and summed up' eval "tail -n 1 line | grep -q '^3 nodes complete; 0 waits'"
check_is 'also as JSON' 'node b failed 3' "$(tidemark sessions timeline "$id" --json >line && json '$.runs[0].items[1].type' <line) $(
    json '$.runs[0].items[1].name' <line) $(json '$.runs[0].items[1].outcome' <line) $(json '$.summary.nodes' <line)"
run ask.json -q
tidemark resume "$(newest)" --input yes >out 2>err
check_is 'one that must happen once stands there once' '▫ deploy once' \
    "$(tidemark sessions timeline "$(newest)" | grep deploy | sed 's/^ \(▫ deploy  *once\) .*/\1/' | tr -s ' ')"

# ---- Hive ----
cat >hive.json <<'END'
{"agent": {"id": "a1", "name": "A"}, "goal": {"id": "g"}, "graph": {"entry_node": "think", "terminal_nodes": ["think"],
 "nodes": [{"id": "think", "node_type": "llm_generate", "system_prompt": "Do", "output_keys": ["idea"]}], "edges": []}}
END
run hive.json --script answers.json
check_is 'an agent.json of Hive runs' '0 idea: moon' "$got $(cat out)"
check 'and that is said' eval "grep -q 'hive.json is an agent.json of Hive' err"

# ---- one id, two graphs ----
rm -f fixed
run chain.json
sed 's/memory.n + 1/memory.n + 100/' chain.json >other.json
touch fixed
run other.json -q
check_is 'another graph of the same id runs as it is' 'sum: 102' "$(head -n 1 out)"
id=$(tidemark sessions list --agent chain --status failed --ids | head -n 1)
tidemark resume "$id" >out 2>err
check_is 'and a session keeps its own' 'sum: 3' "$(head -n 1 out)"

# ---- a map counts its items, not what runs inside them ----
cat >each.json <<'END'
{"tidemark_graph":1,"id":"m","entry":"each","memory":{"list":[1,2,3,4]},"nodes":[
 {"id":"each","type":"map","over":"list","as":"it","parallel":3,"outputs":["k"],"node":{"type":"subgraph","inputs":["it"],"outputs":["k"],"graph":{"tidemark_graph":1,"id":"in","entry":"a","nodes":[
   {"id":"a","type":"lua","code":"return {k = 1}","outputs":["k"]},
   {"id":"two","type":"lua","code":"return {}"},
   {"id":"b","type":"human_input","question":"b?","outputs":["b"]},
   {"id":"c","type":"human_input","question":"c?","outputs":["c"]}],"edges":[{"from":"a","to":"two","when":"memory.it > 1"},{"from":"two","to":"b"},{"from":"two","to":"c"}]}}}],"edges":[]}
END
tidemark run each.json --session each --no-input </dev/null >out 2>err
check_is 'three at a time, and one that ends makes room for the next' '0 1 2 3' \
    "$(sed -n 's/^each#1\[\(.\)\]: starts$/\1/p' err | sort | paste -sd ' ')"

lists_agree 'list and why offer something'

finish
