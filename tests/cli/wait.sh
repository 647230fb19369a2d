#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark wait, sleep, resume, token rotate, sessions send: waits that survive, tokens that work once.
# shellcheck disable=SC2016,SC2317 # programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
TIDEMARK_STORE=$(store_at "$work/s")
export PATH TIDEMARK_STORE

# token_of FILE: the token in what was said.
token_of() {
    grep -o 'rt_[A-Za-z0-9_.-]*' "$1" | head -n 1
}

write_script asks <<'E'
echo $$ >asks.pid
tidemark step before --effect pure -- sh -c 'echo ran >>before.ran'
answer=$(tidemark wait go --kind "${1:-input}" --question 'really?' ${2:+--deadline "$2"})
status=$?
echo "answer: $answer, status $status"
E

# ---- a wait ----
tidemark exec --session w -- ./asks >out 2>err
check_is 'a run that waits ends with exit status 7' 7 $?
check_is 'nothing on standard output' '' "$(cat out)"
check 'people are told what it waits for' grep -q 'session w waits for input: go' err
check 'and the question' grep -q 'really?' err
check 'and the command' grep -qE 'tidemark resume w --token rt_[^ ]+ --input TEXT' err
check_is 'it waits' waiting "$(status_of w)"
check 'nothing runs meanwhile' gone "$(cat asks.pid)"
check 'the secret is not in the store' sh -c "! grep -raqF '$(token_of err | sed 's/.*\.//')' s.db s.db-wal s.files 2>/dev/null"
token=$(token_of err)

# ---- tokens that are refused, each by its own name ----
refuses_as 'a token of no shape' 8 'TOKEN_MALFORMED|session|w|||' resume w --token nonsense
refuses_as 'an empty token' 8 'TOKEN_MALFORMED|session|w|||' resume w --token ''
refuses_as 'a token that is too short' 8 'TOKEN_MALFORMED|session|w|||' resume w --token "${token%?}"
refuses_as 'a token that is too long' 8 'TOKEN_MALFORMED|session|w|||' resume w --token "${token}A"
refuses_as 'a token with another secret' 8 'TOKEN_FOREIGN|session|w|||' resume w --token "${token%.*}.$(printf '%043d' 0)"
refuses_as 'a token file that is not there' 3 'NOT_FOUND|file||nosuch||' resume w --token @nosuch
refuses_as 'two answers' 2 'INVALID|argument||input||' resume w --input a --input-json '"b"'
refuses_as 'an answer that is no JSON' 2 'INVALID|file|||1|' resume w --input-json '{'
tidemark exec --session other -- ./asks >/dev/null 2>err
refuses_as 'the token of another session' 8 'TOKEN_FOREIGN|session|w|||' resume w --token "$(token_of err)"
check_is 'it still waits' waiting "$(status_of w)"

# Nothing that can be refused costs the token.
mv asks away
refuses_as 'a program that is gone' 127 'NOT_FOUND|file||*||' resume w --token "$token" --input x
mv away asks
check_is 'the answer is on standard output' 'answer: hello world, status 0' "$(tidemark resume w --token "$token" --input 'hello world')"
check_is 'the step before it ran once in each session' 2 "$(wc -l <before.ran)"
refuses_as 'a token that was used' 8 'TOKEN_CONSUMED|session|w|||' resume w --token "$token"
check_is 'it is completed' completed "$(tidemark sessions show w --json | json '$.outcome')"

# ---- kinds of answers ----
# answer KIND ARGS...: what a wait of this kind prints and ends with.
answer() {
    local id=k$RANDOM$RANDOM kind=$1
    shift
    tidemark exec --session "$id" -- ./asks "$kind" >/dev/null 2>&1
    tidemark resume "$id" "$@"
}
check_is 'JSON is printed as it is' 'answer: {"a":[1,2]}, status 0' "$(answer input --input-json '{"a":[1,2]}')"
check_is 'a text with quotes' 'answer: say "hi", status 0' "$(answer input --input 'say "hi"')"
check_is 'null' 'answer: null, status 0' "$(answer input --input-json null)"
tidemark exec --session no-answer -- ./asks >/dev/null 2>&1
refuses_as 'no answer' 2 'WRONG_STATE|session|no-answer|||answer' resume no-answer
for yes in yes YES y ok Ok true allow always Approve approved ' yes '; do
    check_is "approval: $yes" "answer: $yes, status 0" "$(answer approval --input "$yes")"
done
check_is 'approval: true' 'answer: true, status 0' "$(answer approval --input-json true)"
check_is 'approval: a decision' 'answer: {"decision":"approve"}, status 0' "$(answer approval --input-json '{"decision":"approve"}')"
for no in no N false deny Reject rejected; do
    check_is "approval: '$no' is no" "answer: $no, status 1" "$(answer approval --input "$no")"
done
answer approval --input no >out 2>err
check_is 'what is no approval is said' "tidemark: not approved: the answer was 'no'" "$(cat err)"
answer approval --input no --reason "$(printf 'a\033[31mb') $(repeat 200 é)" >out 2>err
check 'and the reason' grep -q '^tidemark: not approved: a.*é…$' err
check_is 'without what would move the terminal' '' "$(tr -dc '\033' <err)"
check_is 'approval: false' 'answer: false, status 1' "$(answer approval --input-json false)"
check_is 'a tool result' 'answer: 42, status 0' "$(answer tool_result --input-json 42)"

# ---- tokens by descriptor, by standard input, as JSON ----
tidemark exec --session fd --token-fd 3 -- ./asks >/dev/null 2>err 3>token
check 'the descriptor gets the token and a newline' grep -qxE 'rt_[^ ]+' token
check_is 'one line' 1 "$(wc -l <token)"
check_is 'it is not shown then' '' "$(token_of err)"
check_is 'resumed by a token from a descriptor' 'answer: x, status 0' "$(tidemark resume fd --token @token --input x)"
tidemark exec --session js --json -- ./asks >out 2>/dev/null
check 'with --json one document' is_json <out
check_is 'the session' js "$(json '$.session_id' <out)"
check_is 'the status' waiting "$(json '$.status' <out)"
check_is 'the wait' 'go input really?' "$(json '$.wait.name' <out) $(json '$.wait.kind' <out) $(json '$.wait.question' <out)"
json '$.token' <out >token
check_is 'resumed by a token from standard input' 'answer: y, status 0' "$(tidemark resume js --token - --input y <token)"
refuses_as 'a descriptor that gives nothing' 8 'TOKEN_MALFORMED|argument||token||' resume js --token @/dev/null

# ---- the same request again ----
tidemark exec --session rq -- ./asks >/dev/null 2>&1
check_is 'the first is done' 'answer: 1, status 0' "$(tidemark resume rq --request-id r1 --input 1)"
check_is 'the same request again gets the first answer' 1 "$(tidemark resume rq --request-id r1 --input 1 --json | json '$.repeated')"
refuses_as 'with another answer it is another request' 4 'CONFLICT|argument||request_id||' resume rq --request-id r1 --input 2
check_is 'in words as well' 1 "$(tidemark resume rq --request-id r1 --input 1 | grep -c 'was resumed by this request before')"
check_is 'and runs nothing' 1 "$(tidemark log show rq | grep -c '"kind":"run.resumed"')"

# Among resumes at once one wins.
tidemark exec --session race -- ./asks >/dev/null 2>err
token=$(token_of err)
for i in 1 2 3 4; do tidemark resume race --token "$token" --input "$i" >"race.$i" 2>/dev/null & done
wait
check_is 'one of four wins' 1 "$(cat race.? | grep -c answer:)"
check_is 'the log has one' 1 "$(tidemark log show race | grep -c '"kind":"run.resumed"')"

# ---- deadlines ----
tidemark exec --session past -- ./asks input 2020-01-01T00:00:00Z >out 2>err
check 'a deadline in the past is refused' grep -q 'deadline of wait .go. has passed' err
check_is 'and nothing waits' idle "$(status_of past)"
tidemark exec --session dl -- ./asks input 1h >/dev/null 2>err
check 'a deadline is shown' grep -qE 'deadline  20[0-9-]+ [0-9]' err
refuses_as 'a deadline that is none' 2 'INVALID|argument||deadline||' token rotate dl --deadline soon

write_script late <<'E'
tidemark wait go --kind input --deadline "$(cat until)"
[ -e go ] || exit 1
E
# Soon, but not before it is answered, which on a busy machine takes its time.
for seconds in 2 6 20; do
    date -u -d "+$seconds seconds" +%Y-%m-%dT%H:%M:%SZ >until
    tidemark exec --session "late$seconds" -- ./late >/dev/null 2>&1
    tidemark resume "late$seconds" --input word >/dev/null 2>&1
    ! tidemark log show "late$seconds" | grep -q '"kind":"run.resumed"' || break
done
is_past() {
    [[ $(date -u +%Y-%m-%dT%H:%M:%SZ) > $(cat until) ]]
}
wait_for is_past
touch go
check_is 'an answer stays one when its deadline has passed' word "$(tidemark resume "late$seconds")"

# ---- rotate ----
old=$(token_of err)
new=$(tidemark token rotate dl)
check 'a new token is printed' sh -c "echo '$new' | grep -qxE 'rt_[^ ]+'"
refuses_as 'the old one is revoked' 8 'TOKEN_REVOKED|session|dl|||rotate_token' resume dl --token "$old"
check_is 'the new one works' 'answer: z, status 0' "$(tidemark resume dl --token "$new" --input z)"
refuses_as 'what does not wait has no token' 2 'WRONG_STATE|session|dl|||why' token rotate dl
tidemark exec --session rf -- ./asks >/dev/null 2>&1
tidemark token rotate rf --token-fd 3 >out 3>token_file
check 'into a descriptor' grep -qxE 'rt_[^ ]+' token_file
check_is 'and not printed then' '' "$(cat out)"

# ---- a wait held back by steps ----
write_script parallel <<'E'
tidemark step long --effect pure -- sh -c 'echo up >up; until [ -e down ]; do sleep 0.01; done; echo long' &
until [ -e up ]; do :; done
tidemark wait go --kind input &
tidemark step late --effect pure -- sh -c 'echo late >late' &
touch asked
wait
E
"$TIDE_BIN" exec --session par -- ./parallel >/dev/null 2>&1 &
runner=$!
wait_for test -e asked
check_is 'while a step is under way the run is not parked' running "$(status_of par)"
touch down
wait "$runner"
check_is 'then it parks' 7 $?
check_is 'the step was recorded first' 1 "$(tidemark log show par | grep -c '"tool":"long".*"output":"long')"
write_script nested_run <<'E'
tidemark step outer --effect pure -- tidemark exec --session inner-run -- ./asks
echo "$?"
E
check_is 'a run inside a step of another may wait' 7 "$(tidemark exec --session outer-run -- ./nested_run 2>/dev/null)"
write_script inside <<'E'
tidemark step outer --effect pure -- tidemark wait go --kind input 2>inner.err
echo "$?"
E
check_is 'inside a step nothing can wait' 2 "$(tidemark exec --session in -- ./inside 2>/dev/null)"
check 'and that is said' grep -q 'a step cannot wait' inner.err

# ---- sleep ----
write_script sleeps <<'E'
echo run >>sleeps.runs
tidemark sleep nap "$(cat nap)"
echo awake
E
echo 3h >nap
tidemark exec --session sl -- ./sleeps >out 2>err
check_is 'a run that sleeps ends with exit status 7' 7 $?
check 'and says until when' grep -qE 'session sl sleeps until 20[0-9-]+ [0-9].*nap' err
check 'and what continues it' grep -q 'tidemark recover --run-due' err
check_is 'it waits' waiting "$(status_of sl)"
refuses_as 'before it is due' 2 'WRONG_STATE|session|sl|||resume' resume sl
check_is 'unless it is to end now' awake "$(tidemark resume sl --now)"
echo 50ms >nap
tidemark exec --session sl2 -- ./sleeps >/dev/null 2>&1
wait_for sh -c "'$TIDE_BIN' resume sl2 2>/dev/null | grep -qx awake"
check_is 'when it is due it goes on' completed "$(tidemark sessions show sl2 --json | json '$.outcome')"
echo 0s >nap
check_is 'a sleep that is over at once' awake "$(tidemark exec --session sl3 -- ./sleeps)"
echo nonsense >nap
check_is 'a duration that is none' 1 "$(tidemark exec --session sl4 -- ./sleeps 2>&1 | grep -c 'neither a duration')"

# ---- send ----
tidemark exec --session send -- ./asks >/dev/null 2>err
token=$(token_of err)
check_is 'a message continues the program and answers its wait' 'answer: the message, status 0' "$(tidemark sessions send send 'the message')"
refuses_as 'the token of the superseded wait' 8 'TOKEN_REVOKED|session|send|||' resume send --token "$token"
tidemark exec --session send2 -- ./asks >/dev/null 2>&1
check_is 'with --queue it is queued' 1 "$(tidemark sessions send send2 later --queue --json | json '$.queue_id' | grep -c '^q_')"
tidemark sessions new --id bare >/dev/null
check_is 'where there is no program it is queued' 1 "$(tidemark sessions send bare hello | grep -c '^queued for session bare')"
refuses_as 'a message to nobody' 3 'NOT_FOUND|session|nothing|||list_sessions' sessions send nothing hello

# ---- cancel ----
tidemark exec --session ca -- ./asks >/dev/null 2>err
check 'a wait is cancelled' tidemark cancel ca
refuses_as 'its token is worth nothing' 8 'TOKEN_REVOKED|session|ca|||' resume ca --token "$(token_of err)"

check_is 'no process stays behind' '' "$(pgrep -f "$work" | grep -vx $$)"
finish
