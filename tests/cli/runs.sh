#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which run is due: exec in a session that has run before, exec --ensure, a message to a run that waits; each of them also killed
# behind every commit.
#
#   runs.sh KILL_AT    a program that kills another behind its n-th sync (tests/real/kill_at.c)
# shellcheck disable=SC2016,SC2031,SC2317 # programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
kill_at=${1:?the program kill_at}
PATH="$(dirname "$TIDE_BIN"):$PATH"
TIDEMARK_STORE=$(store_at "$work/s")
export PATH TIDEMARK_STORE

# member ID NAME: of the session.
member() {
    tidemark sessions show "$1" --json | json "\$.$2"
}

# ---- exec in a session that has run before ----
write_script pays <<'E'
tidemark step pay -- sh -c 'echo pay >>ledger' || exit
[ -e go ] || case $1 in
fail) exit 3 ;;
die) kill -KILL "$(cut -d' ' -f4 "/proc/$PPID/stat")"; exec sleep 1000 ;; # exec, above the guard
wait) tidemark wait ok --kind approval --question 'ship it?' || exit ;;
nap) tidemark sleep nap 3h || exit ;;
esac
echo shipped
echo careful >&2
E
for how in fail die wait nap; do
    : >ledger
    tidemark exec --session "$how" -- ./pays "$how" >/dev/null 2>&1
    actions='resume,start'
    [ "$how" = wait ] && actions='answer,start'
    refuses_as "after '$how' a new run is refused" 4 "UNFINISHED|session|$how|||$actions" exec --session "$how" -- ./pays "$how"
    check_is "after '$how' nothing was repeated" 1 "$(ran pay)"
done
touch go
check_is 'what is named continues it' shipped "$(tidemark resume fail 2>/dev/null)"
tidemark exec --new-run --session die -- ./pays die >out 2>err
check_is 'a new run begins with --new-run' shipped "$(cat out)"
check 'and says what it repeats' grep -qx "tidemark: it repeats 1 finished step: 'pay'" err
check 'and how the last one ended' grep -qx 'tidemark: a new run begins; the last run of this session was interrupted' err
tidemark exec --new-run --session wait -- ./pays wait >out 2>err
check 'one that waits is superseded' grep -q 'its token is revoked' err
check 'and what it repeats' grep -qx "tidemark: it repeats 1 finished step: 'pay'" err
tidemark exec --session fail -- ./pays fail >out 2>err
check_is 'after a completed run a new one begins' "shipped" "$(cat out)"
check 'and says so' grep -qx 'tidemark: a new run begins; the last run of this session was completed' err
tidemark cancel nap >/dev/null
tidemark exec --session nap -- ./pays nap >out 2>err
check 'after a cancelled run, too' grep -qx 'tidemark: a new run begins; the last run of this session was cancelled' err
check 'and what it repeats is said' grep -qx "tidemark: it repeats 1 finished step: 'pay'" err
refuses_as 'a new run needs a session' 2 'INVALID|argument||session||' exec --new-run -- true
rm go

# A step that must happen once and was cut inside: a new run names it, and after a cancel it is not begun unasked.
cat >cutpay <<'E'
#!/bin/sh
tidemark step pay --effect once -- sh -c 'echo pay >>ledger; echo $$ >inside; [ -e go ] || exec tail -f /dev/null'
E
chmod +x cutpay
for how in kill cancel; do
    : >inside
    "$TIDE_BIN" exec --session "cut-$how" -- ./cutpay >/dev/null 2>&1 &
    runner=$!
    wait_for test -s inside
    if [ $how = kill ]; then kill -9 $runner; else tidemark cancel "cut-$how" >/dev/null; fi
    wait $runner 2>/dev/null
done
touch go
: >ledger
refuses_as 'cancelled inside a step that must happen once: no new run by itself' 4 'UNFINISHED|session|cut-cancel|||why,start' exec --session cut-cancel -- ./cutpay
tidemark --json exec --ensure --session cut-cancel -- ./cutpay >out 2>err
check_is 'nor one that --ensure would resume into the same step' 'CANCELLED|[{"name":"pay"}]' "$(json '$.error' <err)|$(json '$.hints[0].arguments.happened' <err)"
check_is 'and nothing was repeated' 0 "$(ran pay)"
refuses_as 'happened and to be run again' 2 'INVALID|step||pay||' resume cut-kill --retry pay --happened pay
check 'a dry run says so, too' eval "tidemark resume cut-kill --retry pay --happened pay --dry-run | grep -q 'cannot have happened and run again'"
check 'and of a step that is not open' eval "tidemark resume cut-kill --happened nothing --dry-run | grep -q \"no step 'nothing'\""
for how in kill cancel; do
    tidemark exec --new-run --session "cut-$how" -- ./cutpay >/dev/null 2>err
    check "after a $how a new run names the step" grep -qx "tidemark: it repeats 1 step that must happen once and may have happened: 'pay'" err
done
rm go

# ---- exec --ensure: begins, resumes, answers ----
ensure() {
    tidemark exec --ensure --session "$@"
}
: >ledger
check_end 'it begins' 3 ensure e -- ./pays fail
check_end 'it resumes' 3 ensure e -- ./pays fail
touch go
check_is 'it resumes until it completes' 'shipped 0' "$(ensure e -- ./pays fail 2>/dev/null) $?"
runs=$(count e run.started)
ensure e -- ./pays fail >out 2>err
check_is 'then it answers with the recorded exit status' 0 $?
check_is 'the recorded output' shipped "$(cat out)"
check_is 'and the recorded standard error' careful "$(cat err)"
check_is 'without a run' "$runs" "$(count e run.started)"
check_is 'the step happened once' 1 "$(ran pay)"
mv pays gone
check_is 'the record answers when the program is gone' shipped "$(ensure e -- ./pays fail 2>/dev/null)"
mv gone pays
refuses_as 'another program is not what is recorded' 2 'INVALID|session|e|||start' exec --ensure --session e -- ./pays wait
mkdir -p elsewhere
check_is 'nor the one of another directory' 2 "$(cd elsewhere && cp ../pays . && tidemark exec --ensure --session e -- ./pays fail >/dev/null 2>&1; echo $?)"
write_script where <<'E'
pwd
exit 3
E
ensure whole -- "$work/where" >/dev/null 2>&1
check_is 'one with its whole path goes on where it ran' "$work" "$(cd elsewhere && ensure whole -- "$work/where" 2>/dev/null)"
rm go
: >ledger
check_end 'one that waits' 7 ensure w -- ./pays wait
refuses_as 'waits on' 7 'WAITING|session|w|||answer' exec --ensure --session w -- ./pays wait
touch go
check_is 'and is answered by a resume' shipped "$(tidemark resume w --input yes 2>/dev/null)"
check_is 'then it is recorded' shipped "$(ensure w -- ./pays wait 2>/dev/null)"
rm go
check_end 'one that sleeps' 7 ensure n -- ./pays nap
refuses_as 'is left asleep' 7 'WAITING|session|n|||resume' exec --ensure --session n -- ./pays nap
tidemark cancel n >/dev/null
check_status 'one that was cancelled is not resumed' 1 ensure n -- ./pays nap
check_is 'nor begun anew' 1 "$(count n run.started)"
check_status 'what cannot be run' 127 ensure new -- ./nothing
check_status 'leaves no session' 3 tidemark why new
refuses_as 'it needs a session' 2 'INVALID|argument||session||' exec --ensure -- true
refuses_as 'and is no new run' 2 'INVALID|argument||ensure||' exec --ensure --new-run --session e -- true
export DEPLOY_TOKEN=hunter2hunter2
touch go
check_end 'a command line that holds a secret' 3 ensure hidden -- sh -c '[ -e now ] && echo "with $0" || exit 3' "$DEPLOY_TOKEN"
touch now
check_is 'is continued with what is given' "with $DEPLOY_TOKEN" "$(ensure hidden -- sh -c '[ -e now ] && echo "with $0" || exit 3' "$DEPLOY_TOKEN" 2>/dev/null)"
check_is 'as the same chain' 1 "$(tidemark log show hidden | grep -c '"resumed_from"')"
unset DEPLOY_TOKEN
ensure long -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo "line $i of some length"; i=$((i+1)); done' >/dev/null
ensure long -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo "line $i of some length"; i=$((i+1)); done' >out 2>err
check_is 'of long output the end is recorded' 'line 2999 of some length' "$(tail -n 1 out)"
check 'and that is said' grep -q 'only the last .* bytes are recorded' err
rm go

# Eight at once, for the same thing: one does it, and whoever comes later gets the record.
write_script slowly <<'E'
tidemark step pay -- sh -c 'echo pay >>ledger'
echo done
E
: >ledger
for i in 1 2 3 4 5 6 7 8; do
    "$TIDE_BIN" exec --ensure --session many -- ./slowly >"many.$i" 2>/dev/null &
done
wait
check_is 'of many at once one runs' 1 "$(count many run.started)"
check_is 'and pays once' 1 "$(ran pay)"
check_is 'all who were answered have the same' 'done' "$(cat many.* | sort -u)"

# ---- a message to a run that waits ----
write_script asks <<'E'
tidemark step pay -- sh -c 'echo pay >>ledger' || exit
answer=$(tidemark wait name --kind "${1:-input}") || exit
echo "got $answer"
E
: >ledger
tidemark exec --session m --token-fd 3 -- ./asks >/dev/null 2>&1 3>token
check_is 'a message answers a run that waits' 'got the news' "$(tidemark sessions send m 'the news' 2>err)"
check 'and says that the wait is over' grep -q 'its token is revoked' err
tidemark exec --session naps -- tidemark sleep nap 1h >/dev/null 2>&1
tidemark sessions send naps 'wake up' >/dev/null 2>err
check 'one that sleeps has no token to revoke' grep -qx 'tidemark: the run that waited is superseded' err
check_is 'no finished step is repeated' 1 "$(ran pay)"
check_is 'the run continues the chain' 1 "$(tidemark log show m | grep '"kind":"run.started"' | grep -c '"resumed_from"')"
refuses_as 'the token is revoked' 8 'TOKEN_REVOKED|session|m|||' resume m --token "$(cat token)"
check_is 'after a completed run a message begins a new one' 'got more news' "$(tidemark sessions send m 'more news' 2>/dev/null)"
check_is 'which repeats its steps' 2 "$(ran pay)"
: >ledger
tidemark exec --session ma -- ./asks approval >/dev/null 2>&1
check_end 'a message to an approval asks again' 7 tidemark sessions send ma 'hello'
check_is 'without repeating a step' 1 "$(ran pay)"
check_is 'and keeps the message' 'got yes' "$(tidemark resume ma --input yes)"
tidemark exec --session mq -- ./asks >/dev/null 2>&1
check 'with --queue' tidemark sessions send mq later --queue
check_is 'it is only queued' 'waiting 1' "$(member mq status) $(count mq run.started)"
tidemark exec --session mf -- ./pays fail >/dev/null 2>&1
touch go
: >ledger
tidemark sessions send mf hello >/dev/null 2>&1
check_is 'a message to a failed run continues it' '0 1' "$(ran pay) $(tidemark log show mf | grep -c '"resumed_from"')"
rm go
cat >asks.json <<'E'
{"tidemark_graph": 1, "id": "asks", "entry": "pay", "nodes": [
  {"id": "pay", "type": "function", "effect": "once", "program": ["sh", "-c", "echo node >>ledger; echo '{\"paid\": true}'"], "outputs": ["paid"]},
  {"id": "ask", "type": "human_input", "question": "which one?", "outputs": ["answer"]}],
 "edges": [{"from": "pay", "to": "ask"}]}
E
tidemark run asks.json --session g --no-input --token-fd 3 >/dev/null 2>&1 3>token
check_is 'a graph waits' waiting "$(member g status)"
tidemark sessions send g 'the blue one' >out 2>err
check_is 'a message answers it' completed "$(member g outcome)"
check_is 'with what was said' '"the blue one"' "$(tidemark log show g | grep '"by":"queue"' | json '$.input' | sed 's/.*/"&"/')"
check_is 'no finished node is repeated' 1 "$(ran node)"
check_is 'its run continues the chain' 1 "$(tidemark log show g | grep '"kind":"run.started"' | grep -c '"resumed_from"')"
refuses_as 'its token is revoked' 8 'TOKEN_REVOKED|session|g|||*' resume g --token "$(cat token)"
cat >tool.json <<'E'
{"turns": [{"calls": [{"id": "c1", "name": "bash", "args": {"command": "echo tool >>ledger"}}]},
           {"calls": [{"id": "c2", "name": "bash", "args": {"command": "echo tool2 >>ledger"}}]}, {"text": "Done."}]}
E
echo '{"permissions": [{"tool": "bash", "permission": "ask"}]}' >ask.json
tidemark chat --config ask.json --script tool.json -p go >/dev/null 2>&1
c=$(tidemark sessions list --kind chat --ids | head -n 1)
check_is 'a chat waits' waiting "$(member "$c" status)"
tidemark --config ask.json sessions send "$c" 'never mind' >/dev/null 2>&1
check_is 'a message withdraws its question, and its run continues the chain' '1 1' \
    "$(count "$c" token.revoked) $(tidemark log show "$c" | grep '"kind":"run.started"' | grep -c '"resumed_from"')"

# ---- one resume ----
both_say() {
    [ "$(tidemark resume "$@" 2>&1)" = "$(tidemark sessions resume "$@" 2>&1)" ]
}
options_of() {
    tidemark "$@" --help | sed -n 's/^ *\(-., \)\{0,1\}--\([a-z-]*\).*/\2/p'
}
check_is 'both have the same options' "$(options_of resume)" "$(options_of sessions resume)"
help_of() {
    tidemark "$@" --help | sed '1d; /^Examples$/,$d'
}
check_is 'and the same help' "$(help_of resume)" "$(help_of sessions resume)"
tidemark exec --session one -- ./pays fail >/dev/null 2>&1
for id in one g "$c"; do
    check "both say the same about $id" both_say "$id" --dry-run
    check "also as JSON" both_say "$id" --dry-run --json
done
check_is 'a dry run names the steps that are finished' '["pay"]' "$(tidemark resume one --dry-run --json | json '$.complete')"
check_is 'and changes nothing' 1 "$(count one run.started)"
check_is 'it says what stands in the way' WRONG_STATE "$(tidemark sessions resume m --dry-run --json | json '$.refused[0].code')"
refuses_as 'what is for graphs' 2 'INVALID|argument|*|map||repeat' resume one --map a=b
refuses_as 'what is for programs' 2 'INVALID|argument|*|now||repeat' sessions resume "$c" --now
touch go
check_is 'sessions resume takes what is for programs' shipped "$(tidemark sessions resume one --accept-change --request-id r1 2>/dev/null)"
rm go
tidemark exec --session short -- ./pays fail >/dev/null 2>&1
touch go
check_is 'the short form' shipped "$(tidemark --resume short 2>/dev/null)"
check_is 'with what a resume takes' 1 "$(tidemark --store "$TIDEMARK_STORE" --resume short --request-id r2 --dry-run | grep -c completed)"
rm go

# ---- a bare environment, as timers have it ----
bare() {
    env -i HOME="$HOME" XDG_STATE_HOME="$XDG_STATE_HOME" TIDEMARK_STORE="$TIDEMARK_STORE" "$TIDE_BIN" "$@"
}
write_script plain <<'E'
tidemark step a --effect pure -- echo step || exit
"$TIDEMARK" get nothing >/dev/null 2>&1
echo "$? $TIDEMARK"
E
check_is 'a program finds tidemark' "step
3 $TIDE_BIN" "$(bare exec --session bare -- ./plain 2>&1)"
mkdir -p tools
write_script tools/my-tool <<'E'
echo "my tool"
E
write_script tooled <<'E'
tidemark step tool --effect pure -- my-tool || exit
[ -e go ] || exit 3
my-tool
E
PATH="$work/tools:$PATH" tidemark exec --session tooled -- ./tooled >/dev/null 2>&1
touch go
check_is 'a resume has the PATH of the first run' 'my tool
my tool' "$(bare resume tooled 2>&1)"
rm go
check_is 'one that it does not find is not found' 127 "$(bare exec --session tooled3 -- my-tool >/dev/null 2>&1; echo $?)"
write_script tools/tidemark <<'E'
echo another
E
check_is 'another tidemark of that PATH does not take its place' step "$(PATH="$work/tools:$PATH" "$TIDE_BIN" exec --session other -- ./plain 2>/dev/null | head -n 1)"
rm tools/tidemark
check_is 'the order of PATH stays where it finds it' "$PATH" "$(tidemark exec --session order -- sh -c 'echo "$PATH"')"
check_is 'it is recorded' "$PATH" "$(tidemark log show order | grep '"kind":"run.started"' | json '$.path')"

# ---- killed behind every commit ----
"$kill_at" 1 true
if [ $? -eq 77 ]; then
    skip 'killed behind every commit' 'nothing can be traced here'
    finish
fi
write_script durable <<'E'
pay='echo "$TIDEMARK_IDEMPOTENCY_KEY" >>"$TEST_LEDGER"'
look='grep -qx "$TIDEMARK_IDEMPOTENCY_KEY" "$TEST_LEDGER"'
tidemark step pay --probe "$look" -- sh -c "$pay" || exit
answer=$(tidemark wait name --kind input) || exit
tidemark step ship --probe "$look" -- sh -c "$pay" || exit
echo "got $answer"
E
# holds_one CASE ID: both steps happened, once each, and the recorded result is that of a run that nobody killed.
holds_one() {
    local answer
    answer=$(tidemark exec --ensure --session "$2" -- ./durable 2>err)
    check_is "$1: one outcome" 'got news 2 2' "$answer $(wc -l <"$TEST_LEDGER") $(sort -u "$TEST_LEDGER" | wc -l)"
}
killed=0
for n in $(seq 60); do
    export TEST_LEDGER=$work/ledger.$n
    : >"$TEST_LEDGER"
    "$kill_at" "$n" "$TIDE_BIN" exec --ensure --session "k$n" -- ./durable >/dev/null 2>&1 </dev/null
    end=$?
    [ $end -eq 0 ] && killed=$((killed + 1))
    tidemark exec --ensure --session "k$n" -- ./durable >/dev/null 2>&1
    check_is "$n: it waits" 'waiting 1' "$(member "k$n" status) $(wc -l <"$TEST_LEDGER")"
    "$kill_at" "$n" "$TIDE_BIN" resume "k$n" --input news >/dev/null 2>&1 </dev/null
    [ "$(member "k$n" status)" != waiting ] || tidemark resume "k$n" --input news >/dev/null 2>&1
    tidemark exec --ensure --session "k$n" -- ./durable >/dev/null 2>&1
    holds_one "exec --ensure killed behind commit $n" "k$n"
    [ $end -eq 1 ] && break
done
check "exec --ensure was killed behind each of its commits ($killed)" test "$killed" -ge 4
check_is 'and came to an end' 1 "$end"
killed=0
for n in $(seq 60); do
    export TEST_LEDGER=$work/ledger.s$n
    : >"$TEST_LEDGER"
    tidemark exec --session "s$n" -- ./durable >/dev/null 2>&1
    "$kill_at" "$n" "$TIDE_BIN" sessions send "s$n" news >/dev/null 2>&1 </dev/null
    end=$?
    [ $end -eq 0 ] && killed=$((killed + 1))
    if [ "$(count "s$n" queue.added)" -eq 0 ]; then
        check_is "$n: a message that is not there has changed nothing" waiting "$(member "s$n" status)"
        tidemark sessions send "s$n" news >/dev/null 2>&1
    fi
    tidemark exec --ensure --session "s$n" -- ./durable >/dev/null 2>&1
    holds_one "sessions send killed behind commit $n" "s$n"
    check_is "$n: the message was taken once, the token revoked once" '1 1 1' \
        "$(count "s$n" queue.added) $(count "s$n" queue.taken) $(count "s$n" token.revoked)"
    [ $end -eq 1 ] && break
done
check "sessions send was killed behind each of its commits ($killed)" test "$killed" -ge 3
check_is 'and came to an end, too' 1 "$end"
finish
