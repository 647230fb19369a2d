#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What commands print with --json is what `tidemark schema` promises: real outputs, held against the schemas by a checker that
# is not ours. Each output is taken, and is refused without a member, with one more, and with one of another type.
# shellcheck disable=SC2016,SC2046,SC2317 # programs of graphs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

python=
for python in python3 /usr/bin/python3 ''; do
    [ -n "$python" ] && "$python" -c 'import jsonschema' 2>/dev/null && break
done
if [ -z "$python" ]; then
    skip 'outputs are as the schemas promise' 'no python3-jsonschema here'
    finish
fi

# is_a NAME CASE: the documents on standard input, one a line, are of this shape. They are kept, and checked together at the end.
mkdir .documents
: >.checks
is_a() {
    n=$(wc -l <.checks | tr -d ' ') # it may run in a subshell
    cat >".documents/$n"
    [ -f ".schema.$1" ] || tidemark schema "$1" >".schema.$1"
    printf '%s\t%s\t%s\n' "$n" "$1" "$2" >>.checks
    echo "$1" >>.used
}

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# ---- sessions in every state ----
tidemark sessions new --id fresh --title 'A title' --agent a --agent-id b --task-id t --metadata '{"k":[1]}' >/dev/null
for id in cut killed asks late asleep finished failed stopped lost; do
    tidemark sessions new --id "$id" >/dev/null
    put "$id" run.started '{"run_id":"r1","boot_id":"b1","argv":["./job"],"pid":4711}'
done
put killed run.interrupted '{"run_id":"r1","reason":"process_restart","resumable":true}'
put asks token.minted '{"token_id":"t1","run_id":"r1"}'
put asks run.waiting '{"run_id":"r1","wait_name":"ok","wait_kind":"approval","resume_token_id":"t1","question":"Ship it?","deadline_at":"2999-01-01T00:00:00.000Z"}'
put late token.minted '{"token_id":"t1","run_id":"r1"}'
put late run.waiting '{"run_id":"r1","wait_kind":"input","resume_token_id":"t1","deadline_at":"2001-01-01T00:00:00.000Z"}'
put asleep run.waiting '{"run_id":"r1","wait_name":"nap","wait_kind":"timer","due_at":"2999-01-01T00:00:00.000Z"}'
put finished run.completed '{"run_id":"r1"}'
put failed run.failed '{"run_id":"r1","reason":"exit","error":{"message":"exit status 3"},"resumable":true}'
put stopped run.cancelled '{"run_id":"r1","reason":"user"}'
put lost run.interrupted '{"run_id":"r1","reason":"process_restart","resumable":false}'
tidemark sessions checkpoint finished --node a --next-node b --description d >/dev/null
tidemark sessions fork finished --id forked >/dev/null
tidemark sessions export fresh >fresh.jsonl
tidemark --store "$(store_at "$work/other")" store init >/dev/null
tidemark --store "$(store_at "$work/other")" sessions import fresh.jsonl >/dev/null

cat >graph.json <<'END_GRAPH'
{"tidemark_graph": 1, "id": "chain", "name": "A chain", "entry": "a", "memory": {"word": "tide"},
 "nodes": [
  {"id": "a", "type": "lua", "code": "return {long = memory.word .. '!'}", "outputs": ["long"]},
  {"id": "b", "type": "function", "retries": 1, "program": ["sh", "-c", "[ -f fixed ] || { echo boom >&2; exit 3; }; echo '{\"n\": 2}'"], "outputs": ["n"]},
  {"id": "c", "type": "lua", "code": "return {sum = memory.n + 1}", "outputs": ["sum"]}],
 "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}
END_GRAPH
tidemark run graph.json --session broken --output stream-json >broken.out 2>err
touch fixed
tidemark run graph.json --session whole --output stream-json >whole.out 2>err
cat >tool.json <<'END_TOOL'
{"turns":[{"text":"I look.","calls":[{"name":"bash","args":{"command":"echo hi"}}]},{"text":"Done."}]}
END_TOOL
tidemark chat --script tool.json --yes --output stream-json -p go </dev/null >chat.out 2>err

tidemark sessions list --json | is_a sessions 'a list'
tidemark --store "$(store_at "$work/other")" sessions list --json | is_a sessions 'a list of what is not trusted'
tidemark sessions list --json --ids | is_a ids 'ids'
tidemark schema --json | is_a ids 'the names of the schemas'
for id in $(tidemark sessions list --ids); do tidemark sessions show "$id" --json; done >all
is_a session_detail 'every session' <all
for id in $(tidemark sessions list --ids); do tidemark why "$id" --json; done >all
is_a why 'why of every session' <all
for id in $(tidemark sessions list --ids); do tidemark sessions timeline "$id" --json; done >all
is_a timeline 'the timeline of every session' <all
for id in $(tidemark sessions list --ids); do tidemark sessions transcript "$id" --json; done >all
is_a transcript 'the transcript of every session' <all
tidemark sessions delete --older-than 0s --dry-run --json >all
is_a deletion 'what filters mean' <all
for id in finished fresh whole; do tidemark sessions checkpoints "$id" --json; done >all
is_a checkpoints 'checkpoints' <all
for id in $(tidemark sessions checkpoints whole --ids); do
    tidemark sessions inspect whole "$id" --json
    tidemark sessions inspect whole "$id" --json --memory
done >all
is_a inspection 'every checkpoint of a graph' <all
for file in broken.out whole.out chat.out; do
    grep -v '"type":"result"' "$file" | is_a event "what is streamed: $file"
done

# ---- how things end ----
for file in broken.out whole.out; do tail -n 1 "$file"; done | is_a run 'the end of a graph'
cat >ask.json <<'END_ASK'
{"tidemark_graph": 1, "id": "ask", "entry": "q", "nodes": [{"id": "q", "type": "human_input", "question": "Go on?", "outputs": ["ok"]}]}
END_ASK
tidemark run ask.json --session asked --json 2>/dev/null | is_a run 'a graph that waits'
tail -n 1 chat.out | is_a chat 'the end of a stream'
tidemark chat --script tool.json --json -p go </dev/null 2>/dev/null | is_a chat 'a chat that waits for an approval'
tidemark chat --script tool.json --yes --json -p go </dev/null 2>/dev/null | is_a chat 'a chat'
tidemark exec --session parks --json -- sh -c "'$TIDE_BIN' wait ok --kind approval --question 'Go on?'" 2>/dev/null | is_a parked 'a program that waits'
tidemark exec --session naps --json -- sh -c "'$TIDE_BIN' sleep nap 1h" 2>/dev/null | is_a parked 'a program that sleeps'

# ---- what commands did ----
tidemark sessions new --id brief --json | is_a created 'a new session'
tidemark sessions export brief >brief.jsonl
tidemark log append brief --kind note --data '{}' --json | is_a appended 'an event'
tidemark sessions checkpoint brief --json | is_a saved 'a checkpoint'
tidemark sessions fork brief --id brieffork --json | is_a forked 'a fork'
tidemark sessions rollback brief --to 1 --json | is_a rolled_back 'a rollback'
tidemark exec -- "$TIDE_BIN" checkpoint --json 2>/dev/null | is_a marked 'a checkpoint of a program'
tidemark sessions prune brief --keep 0 --json | is_a pruned 'checkpoints deleted'
tidemark sessions delete brieffork --json | is_a deleted 'a deleted session'
tidemark sessions delete brief --json | is_a deleted 'another'
tidemark sessions import brief.jsonl --json | is_a created 'an imported session'
tidemark store init --json | is_a store 'a store'
tidemark store compact --json | is_a compacted 'a compacted store'
tidemark sessions send fresh 'a word' --queue --json | is_a queued 'a message'
tidemark tasks set seven --state REVIEW --json | is_a task 'a task that was set'
tidemark tasks list --json | is_a tasks 'tasks'
tidemark sessions queue fresh --json | is_a queued_message 'a message that nobody has taken'
tidemark token rotate parks --json | is_a token 'a token'
tidemark token rotate parks --json --token-fd 9 9>/dev/null | is_a token 'a token in a descriptor'
tidemark resume parks --input yes --request-id once >/dev/null 2>&1
tidemark resume parks --input yes --request-id once --json 2>/dev/null | is_a resumed 'a resume that was done before'
for id in naps fresh; do tidemark cancel "$id" --json; done | is_a cancelled 'ended, and nothing to end'

# ---- what was looked at ----
other=$(store_at "$work/other")
tidemark sessions new --id dies >/dev/null
put dies run.started '{"run_id":"r1","boot_id":"b1","argv":["true"],"cwd":"/","pid":4711}'
{
    tidemark recover --dry-run --json
    tidemark recover --run-due --auto-resume live --json 2>/dev/null
} | is_a recovery 'what recovery says'
tidemark sessions verify --all --json | is_a verification 'all sessions'
tidemark --store "$other" sessions trust fresh --show --json | is_a trust 'what would run'
tidemark --store "$other" store trust --show --json | is_a store_trusted 'how many are not trusted'
for url in "$other" "sqlite:$work/third.db" "files:$work/fourth"; do
    tidemark --store "$url" store init >/dev/null
    tidemark --store "$url" store info --json
done | is_a store_info 'stores of both kinds'
tidemark store check --json | is_a store_check 'a store that is whole'
{
    tidemark store copy "$TIDEMARK_STORE" "sqlite:$work/copy.db" --json
    tidemark sessions new --id brief >/dev/null 2>&1
    tidemark --store "sqlite:$work/clash.db" sessions new --id fresh >/dev/null
    tidemark store copy "$TIDEMARK_STORE" "sqlite:$work/clash.db" --session fresh --json 2>/dev/null
} | is_a store_copy 'a copy, and one that is refused'
{
    tidemark doctor --json
    tidemark doctor --json --all
} | is_a doctor 'the doctor'
tidemark config list --json | is_a settings 'the settings'
echo '{"provider":"nobody","hooks":[{}],"colour":1}' >bad.json
for file in bad.json none.json; do
    [ "$file" = bad.json ] || echo '{}' >"$file"
    tidemark config check --config "$file" --json
done | is_a settings_check 'settings that are wrong, and right'
echo '{"tidemark_graph": 1, "id": "x", "entry": "nowhere", "nodes": []}' >wrong.json
for file in graph.json wrong.json; do tidemark graph check "$file" --json; done | is_a graph_check 'graphs'
sed 's/"id": "b"/"id": "bee"/;s/"from": "b"/"from": "bee"/;s/"to": "b"/"to": "bee"/' graph.json >newer.json
rm fixed
tidemark run graph.json --session again >/dev/null 2>&1
{
    tidemark graph diff graph.json newer.json --json
    tidemark graph diff graph.json newer.json --against-live --json
    tidemark graph diff graph.json graph.json --against-live --json
} | is_a graph_diff 'two versions of a graph'
{
    tidemark sessions resume again --dry-run --json
    tidemark sessions resume again --dry-run --json --set x=1 --happened b --graph newer.json
    tidemark sessions resume again --dry-run --json --graph newer.json --map b=bee
    tidemark sessions resume whole --dry-run --json --checkpoint "$(tidemark sessions checkpoints whole --ids | head -n 1)"
} 2>/dev/null | is_a plan 'what a resume would do'
touch fixed
tidemark store copy "$TIDEMARK_STORE" "files:$work/session_files" >/dev/null 2>&1
tidemark --store "files:$work/session_files" exec --session asking -- sh -c "'$TIDE_BIN' wait ok --kind approval" >/dev/null 2>&1
# flat FILE...: each in a line of its own.
flat() {
    for file; do tr -d '\n' <"$file" && echo; done
}
flat $(find session_files -name '*.json' ! -name '*.tokens.json' -path '*sessions*' ! -path '*/live/*') | is_a session_file 'the files of a store of files'
flat $(find session_files -name '*.tokens.json') | is_a tokens_file 'and those of tokens'
tidemark version --json | is_a version 'the version'
cat >counts.json <<'END_COUNTS'
{"tidemark_graph": 1, "id": "counts", "entry": "count", "nodes": [
  {"id": "count", "type": "function", "outputs": ["n"], "program": ["sh", "-c", "echo x >>count.$TIDEMARK_SESSION_ID; sleep 0.1; echo \"{\\\"n\\\": $(grep -c x count.$TIDEMARK_SESSION_ID)}\""]}]}
END_COUNTS
{
    tidemark torture graph.json --crash-points 3 --json 2>/dev/null
    TMPDIR=$work tidemark torture counts.json --crash-points 6 --seed 1 --json 2>/dev/null
} | is_a torture 'a graph that keeps what was promised, and one that does not'
for id in whole forked; do tidemark state "$id" --json; done | is_a state 'states'
tidemark state whole --at 3 --json | is_a state 'an earlier one'
{
    tidemark log show whole
    tidemark log show --all
} | is_a log_event 'every event'

# ---- errors ----
{
    tidemark --json sessions show nope
    tidemark --json sessions inspect fresh nope
    tidemark --json config get no_such_setting
    tidemark --json sessions list --no-such-option
} 2>&1 | is_a error 'errors'

tidemark exec --session once -- true >/dev/null
tidemark --json exec --session once -- true 2>&1 | is_a notice 'a notice'

# ---- tokens of the server ----
tidemark --json access create mine --scopes read | is_a access 'a token of the server'
tidemark --json access list | is_a accesses 'all of them'
tidemark --json access revoke mine | is_a access_revoked 'one less'

"$TIDE_BIN" serve --listen 127.0.0.1:0 2>.serving &
server=$!
check 'there is a server' wait_for grep -q console .serving
tidemark --json console | is_a signin_code 'a code to sign in with'
kill $server
wait $server

# ---- notifications ----
printf '#!/bin/sh\ncat >>%s/notified\n' "$work" >tell
chmod +x tell
tidemark sessions new --id tells >/dev/null
put tells run.failed '{"run_id":"r1","error":{"message":"no"},"notify":true}'
TIDEMARK_NOTIFY='["/nonexistent"]' TIDEMARK_NOTIFY_RETRY_MS=1 tidemark notify --json >.outcomes
is_told() {
    TIDEMARK_NOTIFY="[\"$work/tell\"]" tidemark notify --json >>.outcomes && [ -s notified ]
}
check 'a notification is sent' wait_for is_told # its second try may not be due yet
is_a notified 'what became of a notification' <.outcomes
is_a notification 'what a program is told' <notified

# ---- the checks ----
"$python" "$TIDE_SOURCE/tests/cli/schema.py" <.checks >.problems || printf 'schema.py\tfailed\n' >>.problems
while IFS='	' read -r n name what; do
    check_is "$what: $name" '' "$(sed -n "s/^$n	//p" .problems | head -n 5)"
done <.checks
check_is 'nothing else' '' "$(grep -v '^[0-9]*	' .problems)"
check 'all of them' test "$(wc -l <.checks)" -gt 50

# Every schema is held against something. What only the server answers is checked in tests/server.
check_is 'every schema was used' '' "$(tidemark schema --names | grep -vxFf .used | grep -vx 'session\|checkpoint\|usage\|accepted\|recovery_report')"

# ---- kinds ----
check_is 'a kind for each' 'log|program|chat|graph' \
    "$(for id in fresh cut "$(tidemark sessions list --ids --kind chat --limit 1)" whole; do tidemark sessions show "$id" --json | json '$.kind'; done | paste -sd '|')"
check_is 'graphs alone' 'again asked whole broken' "$(tidemark sessions list --kind graph --ids | paste -sd ' ')"
check_is 'all are of one kind' "$(tidemark sessions list --ids | sort)" \
    "$(for kind in log program chat graph task; do tidemark sessions list --kind "$kind" --ids; done | sort)"
refuses_as 'a kind that there is not' 2 'INVALID|argument||kind||' sessions list --kind dog
check 'people see it' eval "tidemark sessions show whole | grep -q '^kind *graph' && tidemark why whole | head -n 1 | grep -q '  graph, ' && tidemark sessions list | grep -q '^whole .* graph '"

finish
