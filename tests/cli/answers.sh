#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Answers: one rule of yes and no for programs, chats and graphs, reasons, and what happens when nobody answers in time.
# shellcheck disable=SC2016,SC2317 # programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
TIDEMARK_STORE=$(store_at "$work/s")
TIDEMARK_SWEEP_INTERVAL=0s # only what is called here writes down what is over
export PATH TIDEMARK_STORE TIDEMARK_SWEEP_INTERVAL

shown() {
    tidemark sessions show "$1" --json | json "$2"
}
# When the clock says so: the deadline of the session's wait has passed.
deadline_passed() {
    local at
    at=$(shown "$1" '$.run.wait.deadline_at')
    [ "$(date +%s%3N)" -gt "$(date -d "$at" +%s%3N)" ]
}

# ---- one rule of yes and no ----
cat >ask <<'E'
#!/bin/sh
tidemark step build --effect pure -- sh -c 'echo built >>built'
tidemark wait release --kind approval --question 'Release?' "$@" >answer || exit 21
tidemark step publish --effect pure -- sh -c 'echo published >>published'
E
chmod +x ask
cat >graph.json <<'E'
{"tidemark_graph": 1, "id": "g", "entry": "ok", "nodes": [
  {"id": "ok", "type": "human_input", "kind": "approval", "question": "Release?", "outputs": ["yes", "why"]},
  {"id": "say", "type": "lua", "code": "return {said = tostring(memory.yes) .. ' ' .. tostring(memory.why)}", "inputs": ["yes", "why"], "outputs": ["said"]}],
 "edges": [{"from": "ok", "to": "say"}]}
E
cat >map.json <<'E'
{"tidemark_graph": 1, "id": "m", "entry": "each", "memory": {"list": [1, 2]}, "nodes": [
  {"id": "each", "type": "map", "over": "list", "outputs": ["all"], "node":
    {"type": "human_input", "kind": "approval", "question": "Take {item}?", "inputs": ["item"], "outputs": ["yes", "why"]}}]}
E
echo '{"turns":[{"calls":[{"name":"bash","args":{"command":"echo hi"}}]},{"text":"Done."}]}' >tool.json
tidemark exec --session program --token-fd 3 -- ./ask >/dev/null 2>&1 3>program.token
tidemark run graph.json --session graph --token-fd 3 --no-input >/dev/null 2>&1 3>graph.token
tidemark run map.json --session map --token-fd 3 --no-input >/dev/null 2>&1 3>map.token
tidemark chat --script tool.json --json -p go >out 2>/dev/null </dev/null
chat=$(json '$.session_id' <out)
json '$.resume_token' <out >"$chat.token"
for id in program graph map "$chat"; do
    check_is "$id: it waits for a yes or a no" 'waiting approval' "$(shown "$id" '$.status') $(shown "$id" '$.run.wait.kind')"
    for word in ys '' 'yes please'; do
        refuses_as "$id: '$word' is refused" 2 "INVALID|session|$id|||answer" \
            resume "$id" --input "$word"
        refuses_as "$id: '$word' with the token" 2 "INVALID|session|$id|||answer" resume "$id" --token @"$id.token" --input "$word"
    done
    refuses_as "$id: JSON that is neither" 2 "INVALID|session|$id|||answer" resume "$id" --input-json '{"decision":1}'
    refuses_as "$id: by types" 2 "INVALID|session|$id|||answer" resume "$id" --input ys
    refuses_as "$id: a reason without an answer" 2 'INVALID|argument||reason||repeat' resume "$id" --reason why
    refuses_as "$id: a reason beside an object" 2 'INVALID|argument||reason||' resume "$id" --input-json '{"decision":"no"}' --reason why
    check_is "$id: it still waits" 'waiting approval' "$(shown "$id" '$.status') $(shown "$id" '$.run.wait.kind')"
    check_is "$id: nothing was used" '0 0' "$(count "$id" run.resumed) $(count "$id" token.consumed)"
done
tidemark exec --session any -- sh -c 'tidemark wait text --kind input' >/dev/null 2>&1
refuses_as 'a reason goes with a yes or a no only' 2 'INVALID|argument|any|reason||repeat' resume any --input hello --reason why

# ---- reasons ----
tidemark resume program --token @program.token --input no --reason 'not on a Friday' >out 2>err
check_is 'a program gets a no' 21 $?
check_is 'its reason is part of the answer' 'no|not on a Friday' "$(json '$.decision' <answer)|$(json '$.reason' <answer)"
check 'and said' grep -qx 'tidemark: not approved: not on a Friday' err
check_is 'it is in the log' 'not on a Friday' "$(field program run.resumed '$.input.reason')"
check_is 'nothing was published' '' "$(cat published 2>/dev/null)"
tidemark exec --session yes -- ./ask >/dev/null 2>&1
check_is 'a yes has a reason as well' 'tidemark: approved: go' "$(tidemark resume yes --input yes --reason go 2>&1 >/dev/null)"
check_is 'a graph has both in its memory' 'said: false too early' "$(tidemark resume graph --token @graph.token --input no --reason 'too early' 2>/dev/null)"
tidemark resume map --token @map.token --input yes --reason good --token-fd 3 >/dev/null 2>&1 3>next.token
check_is 'an item of a map has the reason of its answer' 'all: [{"yes":true,"why":"good"},{"yes":false,"why":null}]' \
    "$(tidemark resume map --token @next.token --input no 2>/dev/null)"
check_is 'a chat goes on' Done. "$(tidemark resume "$chat" --token @"$chat.token" --input deny --reason 'use ls' 2>/dev/null)"
check_is 'its model sees the reason' 'denied by the user: use ls' "$(field "$chat" message.tool '$.content')"

# ---- asking again ----
check 'why offers it' eval "tidemark why program | grep -qx '  tidemark resume program --ask-again release'"
refuses_as 'a question that is none' 3 'NOT_FOUND|*|*|||show_timeline' resume program --ask-again nosuch
refuses 'an answer that is neither opens nothing' 2 'is neither yes nor no' resume program --ask-again release --input ys
tidemark resume program --ask-again release --token-fd 3 >out 2>err 3>program.token
check_is 'it waits again' '7 waiting approval' "$? $(shown program '$.status') $(shown program '$.run.wait.kind')"
check 'and says so' grep -qx 'session program waits for approval: release' err
check_is 'from the event that opened it again' "$(tidemark log show program --kind run.waiting | tail -n 1 | json '$.seq')" "$(shown program '$.run.wait.since_seq')"
refuses_as 'it has no answer now' 3 'NOT_FOUND|*|*|||show_timeline' resume program --ask-again release
check_status 'its new token answers it' 0 tidemark resume program --token @program.token --input yes
check_is 'what was done before it is kept' '2 2' "$(wc -l <built) $(wc -l <published)"
refuses_as 'a yes is not asked again' 2 'INVALID|*|*|||show_timeline' resume program --ask-again release
tidemark exec --session both -- ./ask >/dev/null 2>&1
tidemark resume both --input no >/dev/null 2>&1
check_status 'asked again and answered in one' 0 tidemark resume both --ask-again release --input yes --reason 'on second thoughts'
refuses_as 'a graph that went on with it' 2 'INVALID|session|graph|||fork' resume graph --ask-again 'ok#1'
sed 's/"to": "say"/"to": "say", "when": "memory.yes"/' graph.json >only.json
tidemark run only.json --session only --no-input >/dev/null 2>&1
tidemark resume only --input no >/dev/null 2>&1
check_is 'a graph that ended there' completed "$(shown only '$.outcome')"
check_is 'is offered it' "resume only --ask-again 'ok#1'" "$(tidemark why only | sed -n 's/^  tidemark \(sessions \)\{0,1\}\(resume.*--ask-again.*\)/\2/p')"
check_status 'asks again, by the name of the node too' 7 tidemark resume only --ask-again ok
check_is 'and goes on with the new answer' 'said: true nil' "$(tidemark resume only --input yes 2>/dev/null)"
refuses_as 'a chat whose model has answered' 2 "INVALID|session|$chat|||fork" resume "$chat" --ask-again "$(field "$chat" run.waiting '$.wait_name')"
echo '{"turns":[{"calls":[{"name":"bash","args":{"command":"echo hi >>ran"}}]},{"text":"Done.","fail":[{"status":400}]}]}' >fails.json
tidemark chat --script fails.json --json -p go >out 2>/dev/null </dev/null
chat=$(json '$.session_id' <out)
tidemark resume "$chat" --input no >/dev/null 2>&1
name=$(field "$chat" run.waiting '$.wait_name')
check_status 'a chat whose model has not' 7 tidemark resume "$chat" --ask-again "$name"
tidemark resume "$chat" --input yes >/dev/null 2>&1
check_is 'runs what is allowed now' hi "$(cat ran)"

# ---- what happens at the deadline ----
refuses_in() {
    local name=$1 text=$2
    shift 2
    tidemark exec -- tidemark wait w "$@" >/dev/null 2>err
    check "$name" grep -qF -- "$text" err
}
refuses_in 'a default without a deadline' 'a default needs a deadline' --kind input --default x
refuses_in 'a default that is not to be used' "'fail' at the deadline takes no default answer" --kind input --deadline 1h --default x --on-deadline fail
refuses_in 'no default to be used' "'default' at the deadline needs a default answer" --kind input --deadline 1h --on-deadline default
refuses_in 'a default that is neither yes nor no' 'is neither yes nor no' --kind approval --deadline 1h --default maybe
refuses_in 'two defaults' 'give one of them' --kind input --deadline 1h --default x --default-json 1
tidemark exec --session later -- ./ask --deadline 1h --default no >/dev/null 2>&1
check 'why says what will happen: a default' eval "tidemark why later | grep -q '; then it is answered with \"no\"'"
check_is 'as JSON' 'default no' "$(shown later '$.run.wait.on_deadline') $(shown later '$.run.wait.default')"
tidemark exec --session later2 -- ./ask --deadline 1h --on-deadline fail >/dev/null 2>&1
check 'why says what will happen: a failure' eval "tidemark why later2 | grep -q '; then its run fails'"
tidemark exec --session later3 -- ./ask --deadline 1h >/dev/null 2>&1
check 'why says what will happen: an interruption' eval "tidemark why later3 | grep -q '; then it is interrupted'"

rm -f published
tidemark exec --session yes-by-default -- ./ask --deadline 1s --default yes >/dev/null 2>&1
tidemark exec --session no-by-default -- ./ask --deadline 1s --default-json '{"decision":"no","reason":"nobody"}' >/dev/null 2>&1
tidemark exec --session fails -- ./ask --deadline 1s --on-deadline fail >/dev/null 2>&1
tidemark exec --session cut -- ./ask --deadline 1s >/dev/null 2>&1
tidemark exec --session unseen --token-fd 3 -- ./ask --deadline 1s --default no >/dev/null 2>&1 3>unseen.token
tidemark exec --session last -- ./ask --deadline 1s --default no >/dev/null 2>&1
wait_for deadline_passed last
check_is 'before anybody has written it down: it is due' 'waiting due' "$(shown unseen '$.status') $(shown unseen '$.reason')"
check 'and says so' eval "tidemark why unseen | grep -q 'it had no answer before its deadline, '"
refuses_as 'an answer is too late' 2 'WRONG_STATE|session|unseen|||resume' resume unseen --input yes
refuses_as 'also with the token' 8 'TOKEN_EXPIRED|session|unseen|||' resume unseen --token @unseen.token --input yes
check_status 'a resume goes on with the default' 21 tidemark resume unseen
check_is 'which is in the log' 'deadline no' "$(field unseen run.resumed '$.by') $(field unseen run.resumed '$.input')"
tidemark recover --json >found
check_is 'recovery writes the others down' '5 1' "$(grep -c '"action":"answered"\|"action":"timed_out"' found) $(grep -c '"action":"timed_out","session_id":"fails"' found)"
check_is 'with a default it is answered, and due' 'waiting due yes' "$(shown yes-by-default '$.status') $(shown yes-by-default '$.reason') $(field yes-by-default run.resumed '$.input')"
check_is 'told to fail it has failed' 'idle failed wait_timeout' "$(shown fails '$.status') $(shown fails '$.outcome') $(field fails run.failed '$.error.code')"
check_is 'else it is interrupted' interrupted_waiting "$(shown cut '$.status')"
check_is 'a second recovery has nothing to write' 0 "$(tidemark recover --json | grep -c '"action":"answered"\|"action":"timed_out"')"
refuses_as 'an answer is too late once it is written' 2 'WRONG_STATE|session|no-by-default|||resume' resume no-by-default --input yes
tidemark recover --run-due >out 2>err
check_is 'recover --run-due goes on with what was answered' 'completed failed' "$(shown yes-by-default '$.outcome') $(shown no-by-default '$.outcome')"
check_is 'once' 1 "$(wc -l <published)"
check_status 'what failed asks again when it is resumed' 7 tidemark resume fails
check_is 'and can be answered' 0 "$(tidemark resume fails --input yes >/dev/null 2>&1; echo $?)"

# ---- graphs ----
cat >late.json <<'E'
{"tidemark_graph": 1, "id": "late", "entry": "ok", "nodes": [
  {"id": "ok", "type": "human_input", "kind": "approval", "question": "Release?", "outputs": ["yes"], "deadline": "1s"},
  {"id": "late", "type": "lua", "code": "return {said = 'late ' .. tostring(memory.yes)}", "outputs": ["said"]},
  {"id": "say", "type": "lua", "code": "return {said = 'said ' .. tostring(memory.yes)}", "outputs": ["said"]}],
 "edges": [{"from": "ok", "to": "say"}, {"from": "ok", "to": "late", "on": "on_timeout"}]}
E
sed 's/"deadline": "1s"/"deadline": "1s", "default": true/' late.json >both.json
sed 's/, {"from": "ok", "to": "late", "on": "on_timeout"}//; /"id": "late", "type"/d' both.json >value.json
sed 's/"deadline": "1s"/"default": "ys"/' late.json >wrong.json
tidemark graph check wrong.json >out 2>&1
check_is 'a default and an edge without a deadline, and a default that is neither, are problems' 3 "$(grep -c '^problem' out)"
sed 's/"deadline": "1s"/"deadline": "1h"/' late.json >hour.json
tidemark run hour.json --session hour --no-input >/dev/null 2>&1
check 'before the deadline of one with an edge: it will go on without an answer' eval "tidemark why hour | holds '; then it continues without an answer'"
for id in late both value; do
    for n in 1 2 3; do tidemark run $id.json --session $id-$n --no-input >/dev/null 2>&1; done
    tidemark resume $id-3 --input yes >out 2>/dev/null
    check_is "$id: an answer in time takes the usual way" 'said: said true' "$(cat out)"
done
wait_for deadline_passed value-2
check_is 'an edge for the deadline is taken when somebody goes on' 'said: late nil' "$(tidemark resume late-1 2>/dev/null | grep said)"
refuses_as 'an answer is too late' 2 'WRONG_STATE|session|both-1|||repeat' resume both-1 --input yes
check_is 'with the default as its output' 'said: late true' "$(tidemark resume both-1 2>/dev/null | grep said)"
check_is 'without the edge the default is the answer' 'said: said true' "$(tidemark resume value-1 2>/dev/null | grep said)"
tidemark recover --run-due >out 2>err
check 'that nobody answered is no answer with no' eval "grep 'late-2: it had no answer before its deadline, .*(ok#1), and continues as soon as it is resumed$' out"
check_is 'recovery goes on with the others' 'completed completed completed' "$(shown late-2 '$.outcome') $(shown both-2 '$.outcome') $(shown value-2 '$.outcome')"
check_is 'on the same ways' 'late nil|late true|said true' "$(tidemark state late-2 | json '$.content.memory.said')|$(tidemark state both-2 | json '$.content.memory.said')|$(tidemark state value-2 | json '$.content.memory.said')"

# In one pass: what has just been answered goes on at once.
tidemark exec --session pass -- ./ask --deadline 1s --default yes >/dev/null 2>&1
wait_for deadline_passed pass
tidemark recover --run-due >out 2>err
check_is 'one pass answers it and goes on with it' completed "$(shown pass '$.outcome')"
finish
