#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Durable programs whose processes are killed, stopped and cancelled one by one: who dies with whom, what is recorded, what
# may go on and when. Everything below a run is found by a mark in its environment. Killing at every event is
# tests/real/test_kill_programs.c.
#
#   kills.sh SURVIVOR    a program that keeps what it starts from dying with its parent (tests/real/survivor.c)
# shellcheck disable=SC2317 # wait_for calls by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
export SURVIVOR=${1:?the program survivor}
PATH=$(dirname "$TIDE_BIN"):$PATH
mkdir data
TIDEMARK_STORE=$(store_at "$work/data/s")
export PATH TIDEMARK_STORE
unset TIDEMARK_AUTO_RESUME

# ---- the kit ----
marked() {
    grep -lzxs "TIDE_TEST_MARK=$work" /proc/[0-9]*/environ | cut -d/ -f3
}
nobody() {
    [ -z "$(marked)" ]
}
# What a failed test leaves is ended: each has the name of our own directory in its environment.
end_marked() {
    local pid
    for pid in $(marked); do
        kill -KILL "$pid"
    done
}
trap 'end_marked; remove_work' EXIT

# program NAME: from standard input.
program() {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
# begin ARGS...: tidemark in the background, with the mark; its pid is $run. What runs there would ignore SIGINT, and whoever
# started us may have made us ignore SIGHUP.
begin() {
    rm -f pid.*
    TIDE_TEST_MARK=$work env --default-signal=INT,HUP "$TIDE_BIN" "$@" >out 2>err &
    run=$!
}
# over: waits for the end of what begin began; $got is its exit status.
over() {
    got='still running'
    wait_for gone "$run" || return
    wait "$run" 2>/dev/null && got=0 || got=$?
}
# kill_both: exec and the guard of its programs, so that nobody is left to end these.
kill_both() {
    kill -STOP $run
    wait_for grep -q ') T ' /proc/$run/stat
    kill -KILL "$(guard_of $run)"
    kill -KILL $run
}
guard_of() {
    tr -d ' ' </proc/"$1"/task/"$1"/children
}
member() {
    tidemark why "$1" --json | json "\$.$2"
}
# state_of ID: status/outcome/reason
state_of() {
    echo "$(member "$1" status)/$(member "$1" outcome)/$(member "$1" reason)"
}
outcome_of() {
    state_of "$1" | cut -d/ -f1,2
}
logged() {
    [ "$(count "$1" "$2")" -gt 0 ]
}
: >ledger

# It does not listen to any signal, nor does its step, until there is a file `go`.
program stubborn <<'END'
trap '' TERM INT HUP
echo $$ >pid.program
tidemark step hold --effect "$1" -- sh -c 'trap "" TERM INT HUP; echo "$1" >>ledger; [ -e go ] && exit; echo $$ >pid.step; while :; do sleep 1000; done' x "$1" || exit
echo after >>ledger
END

# ---- the supervisor alone is killed ----
for effect in pure once; do
    rm -f go
    begin exec --session "cut-$effect" -- ./stubborn $effect
    check "$effect: it is in the middle of a step" wait_for test -s pid.step
    kill -KILL $run
    over
    check_is "$effect: exec was killed" 137 "$got"
    check "$effect: nothing of the program lives on, whatever it ignores" wait_for nobody
    check_is "$effect: it is seen at once" interrupted_startup "$(member cut-$effect status)"
    check "$effect: recovery" tidemark recover
    check_is "$effect: says so" interrupted_startup/interrupted/process_restart "$(state_of cut-$effect)"
    check "$effect: recovery again" tidemark recover
    check_is "$effect: once" 1 "$(count cut-$effect run.interrupted)"
    touch go
done
check 'a cut pure step is run again' tidemark resume cut-pure
check_is 'that is twice in all, and the rest once' '2 1' "$(ran pure) $(ran after)"
refuses_once() {
    tidemark resume cut-once 2>err
    [ $? -eq 10 ] && grep -q -- '--retry hold' err
}
check 'a cut once is not: exit status 10, and it says what to do' refuses_once
check_is 'it ran once' 1 "$(ran once)"
check 'a person says that it may' tidemark resume cut-once --retry hold
check_is 'then it does' '2 2' "$(ran once) $(ran after)"

begin exec --session busy -- sh -c 'echo $$ >pid.program; exec sleep 1000'
check 'a program outside any step' wait_for test -s pid.program
kill -KILL $run
over
check 'dies with exec as well' wait_for nobody
check 'and is not wanted any more' tidemark cancel busy

# A step's program lives on, because its parent could not end it and the kernel was told not to.
program lives <<'END'
tidemark step live --effect idempotent -- "$SURVIVOR" sh -c 'echo live >>ledger; [ -e go ] && exit; echo "$PPID" >pid.parent; echo $$ >pid.step; exec sleep 1000'
END
rm -f go
begin exec --session lives -- ./lives
check 'a step that can escape' wait_for test -s pid.step
kill -STOP $run # so that it does not see the step's end, and the step not its
check 'its supervisor is stopped' wait_for grep -q ') T ' /proc/$run/stat
kill -KILL "$(cat pid.parent)"
check 'its parent is killed' wait_for gone "$(cat pid.parent)"
kill_both
over
touch go
refuses 'resume is refused while a step lives on' 4 "process $(cat pid.step)" resume lives
tidemark recover --run-due --auto-resume live >out 2>err
check_is 'recovery does not let it go on either' '1 interrupted_startup' "$(ran live) $(member lives status)"
kill -KILL "$(cat pid.step)"
check 'when it is gone' wait_for nobody
check 'it goes on' tidemark resume lives
check_is 'and runs again' 2 "$(ran live)"

program lives_itself <<'END'
[ -n "$ESCAPED" ] || ESCAPED=1 exec "$SURVIVOR" "$0"
echo itself >>ledger
[ -e go ] && exit
echo $$ >pid.program
exec sleep 1000
END
rm -f go
begin exec --session itself -- ./lives_itself
check 'a program that can escape' wait_for test -s pid.program
kill_both
over
refuses_as 'resume is refused while the program lives on' 4 'ALIVE|||||' resume itself
kill -KILL "$(cat pid.program)"
check 'when that is gone' wait_for nobody
touch go
check 'that goes on' tidemark resume itself
check_is 'and runs again as well' 2 "$(ran itself)"

# ---- the program alone is killed ----
rm -f go
: >ledger
begin exec --session headless -- ./stubborn pure
check 'a program in the middle of a step' wait_for test -s pid.step
kill -KILL "$(cat pid.program)"
over
check_is 'is killed: exit status' 137 "$got"
check 'its step dies' wait_for nobody
check_is 'it failed' idle/failed "$(outcome_of headless)"
touch go
check 'and can be resumed' tidemark resume headless
check_is 'what was cut runs again' '2 1' "$(ran pure) $(ran after)"

# ---- exec is told to stop ----
program polite <<'END'
tidemark step first -- sh -c 'echo first >>ledger'
tidemark step hold --effect pure -- sh -c 'echo hold >>ledger; [ -e go ] && exit; echo $$ >pid.step; exec sleep 1000'
END
for signal in TERM:143 INT:130 HUP:129; do
    want=${signal#*:} signal=${signal%:*}
    rm -f go
    : >ledger
    begin exec --session "told-$signal" -- ./polite
    check "SIG$signal: in the middle of a step" wait_for test -s pid.step
    kill "-$signal" $run
    over
    check_is "SIG$signal: exit status" "$want" "$got"
    check "SIG$signal: nothing lives on" wait_for nobody
    check_is "SIG$signal: a shutdown" interrupted_startup/interrupted/shutdown "$(state_of "told-$signal")"
    check "SIG$signal: recovery has nothing to add" tidemark recover
    check_is "SIG$signal: one event says so" 1 "$(count "told-$signal" run.interrupted)"
    touch go
    check "SIG$signal: it can be resumed" tidemark resume "told-$signal"
    check_is "SIG$signal: what was done is not done again" '1 2' "$(ran first) $(ran hold)"
done
rm -f go
begin exec --session deaf -- ./stubborn pure
check 'a program that does not listen' wait_for test -s pid.step
kill -TERM $run
over
check_is 'is ended all the same' 143 "$got"
check 'and nothing of it lives on' wait_for nobody
check_is 'as a shutdown' interrupted_startup/interrupted/shutdown "$(state_of deaf)"

# ---- cancel ----
check 'cancel with no process' tidemark cancel deaf
check_is 'no process: cancelled' idle/cancelled "$(outcome_of deaf)"
rm -f go
begin exec --session live -- ./polite
check 'one that runs' wait_for test -s pid.step
check 'cancel with a live one' tidemark cancel live
check_is 'live: cancelled' idle/cancelled "$(outcome_of live)"
over
check_is 'live: exec ends' 1 "$got"
check 'live: and all of it' wait_for nobody
begin exec --session stopped -- ./stubborn pure
check 'another that runs' wait_for test -s pid.step
kill -STOP $run
check 'cancel with a stopped one' tidemark cancel stopped
check_is 'stopped: cancelled' idle/cancelled "$(outcome_of stopped)"
before=$(tidemark log show stopped | wc -l)
kill -CONT $run
over
check_is 'stopped: when it wakes it ends with the status of a lost lease' 4 "$got"
check 'stopped: says why' grep -q '^tidemark: .*taken' err
check 'stopped: ends its program' wait_for nobody
check_is 'stopped: and writes nothing more' "$before" "$(tidemark log show stopped | wc -l)"
: >ledger
touch go
check 'recovery that lets go on what it may' tidemark recover --run-due --auto-resume all
check_is 'does not touch what a person cancelled' '|idle/cancelled|idle/cancelled|idle/cancelled' \
    "$(cat ledger)|$(outcome_of deaf)|$(outcome_of live)|$(outcome_of stopped)"

# ---- a sleep ----
program nap <<'END'
trap '' TERM # parking takes a while then
tidemark step before -- sh -c 'echo before >>ledger'
tidemark sleep nap "$1"
tidemark step after -- sh -c 'echo after >>ledger'
END
begin exec --session long -- ./nap 3h
check 'a program goes to sleep for three hours' wait_for logged long run.waiting
kill -KILL $run
over
check 'killed while it parks: nothing lives on' wait_for nobody
for i in 1 2; do
    check_is "it waits ($i)" waiting "$(member long status)"
    begin recover --watch --run-due --interval 1s
    check "a watch ($i)" wait_for marked
    kill -KILL $run
    over
    check "is killed ($i)" wait_for nobody
done
begin exec --session nap -- ./nap 1s
check 'another sleeps for a second' wait_for logged nap run.waiting
kill -KILL $run
over
check 'killed while that parks: nothing lives on' wait_for nobody
check_is 'both wait' 'waiting waiting' "$(member nap status) $(member long status)"
is_due() {
    [ "$(member nap reason)" = due ] || [ "$(member nap status)" != waiting ]
}
check 'it becomes due' wait_for is_due
begin recover --run-due
tidemark recover --run-due >out2 2>err2
got2=$?
over
check_is 'two let it go on at once' '0 0' "$got $got2"
check 'nothing is left of that' wait_for nobody
check_is 'it went on once' '2 1 idle' "$(ran before) $(ran after) $(member nap status)"
check_is 'no run was interrupted' '0 0' "$(count nap run.interrupted) $(count long run.interrupted)"
check_is 'the other waits' waiting "$(member long status)"

# ---- a token, while its session is killed ----
program ask <<'END'
answer=$(tidemark wait ok --kind input ${1:+--expires "$1"}) || exit
echo "got $answer" >>ledger
tidemark step hold --effect pure -- sh -c '[ -e go ] && exit; echo $$ >pid.step; exec sleep 1000'
END
# asks ID [EXPIRES]: a session that waits; its token is in the file token.
asks() {
    tidemark exec --session "$1" --token-fd 3 -- ./ask ${2:+"$2"} 3>token >out 2>err
    [ $? -eq 7 ]
}
# kept: the secret of the token, as text or as bytes, is somewhere in the data directory.
kept() {
    local secret bytes
    secret=$(sed 's/.*[.]//' token)
    bytes=$(echo "$secret=" | tr '_-' '/+' | base64 -d | od -An -v -tx1 | tr -d '\n' | sed 's/ /\\x/g')
    [ ${#bytes} -eq 128 ] || echo 'no secret of 32 bytes'
    grep -raqF -e "$secret" data || LC_ALL=C grep -raqP -e "$bytes" data
}
rm -f go
check 'a session asks' asks asked
begin resume asked --token @token --input word
check 'its token lets it go on' wait_for test -s pid.step
check_is 'it runs; one token.consumed, one run.resumed' 'running 1 1' \
    "$(member asked status) $(count asked token.consumed) $(count asked run.resumed)"
kill -KILL $run
over
check 'killed: nothing is left of it' wait_for nobody
refuses_as 'killed: the token was used all the same' 8 'TOKEN_CONSUMED|session|asked|||' resume asked --token "$(cat token)"
touch go
check 'killed: it goes on without one' tidemark resume asked
check_is 'killed: with the answer that was given' 2 "$(ran 'got word')"
check_is 'the secret is nowhere below the data directory' '' "$(kept && echo kept)"
cp token data/planted
check_is 'where it would be found' kept "$(kept && echo kept)"
rm data/planted

check 'a session asks for a moment only' asks brief 3s
expired() {
    [ "$(member brief status)" = interrupted_waiting ]
}
check 'it is over by itself' wait_for expired
refuses_as 'an expired token says so' 8 'TOKEN_EXPIRED|session|brief|||rotate_token' resume brief --token "$(cat token)"
check 'recovery writes it down' tidemark recover
check_is 'once' '1 interrupted_waiting' "$(count brief token.expired) $(member brief status)"

# ---- a message while it waits ----
rm -f go
check 'another asks' asks message
cp token old
begin sessions send message 'the news'
check 'a message begins it anew' wait_for test -s pid.step
check_is 'it runs, with a new run' 'running 2' "$(member message status) $(count message run.started)"
check_is 'it got the message' 1 "$(ran 'got the news')"
refuses_as 'the old token is revoked' 8 'TOKEN_REVOKED|session|message|||' resume message --token "$(cat old)"
check_is 'with an event' 1 "$(count message token.revoked)"
kill -KILL $run
over
check 'killed: nothing lives on' wait_for nobody
touch go
check 'killed: it goes on' tidemark resume message
check_is 'killed: the message is still its answer' 2 "$(ran 'got the news')"
# ---- what a killed exec leaves behind besides its program and its steps ----
program leaves <<'E'
[ -e leaves.again ] && exit 0
sleep 1987 &
echo $! >left.1
setsid sleep 1987 &
echo $! >left.2
(setsid sh -c 'sleep 1987 & echo $! >left.4' &)
until [ -s left.4 ]; do :; done
: >left.all
exec sleep 1987
E
begin exec --session leaves -- ./leaves
wait_for test -e left.all
kill -KILL $run
over
check 'a killed exec leaves no child working' wait_for gone "$(cat left.1)"
check 'nor one that had left its group' wait_for gone "$(cat left.2)"
check 'nor one whose parent is gone' wait_for gone "$(cat left.4)"
rm left.*
begin exec --session both -- ./leaves
wait_for test -e left.all
kill_both
over
touch leaves.again
check 'when its guard is killed as well a resume ends what was left behind' tidemark resume both
check 'one is gone' gone "$(cat left.1)"
check 'and the one that had left its group' gone "$(cat left.2)"
check 'and the one whose parent is gone' gone "$(cat left.4)"
# ---- the same of a chat and of a graph: a tool, a hook and a node ----
rm -f leaves.again left.*
cat >tool.json <<'END'
{"turns": [{"calls": [{"id": "c1", "name": "bash", "args": {"command": "./leaves"}}]}, {"text": "Done."}]}
END
cat >node.json <<'END'
{"tidemark_graph": 1, "id": "leaves", "entry": "a", "nodes": [{"id": "a", "type": "function", "program": ["./leaves"]}]}
END
cat >hooks.json <<'END'
{"hooks": [{"name": "asks", "event": "agent_start", "command": ["./leaves"]}]}
END
echo '{"hooks_file": "hooks.json"}' >asking.json
for what in 'chat --yes --script tool.json -p go' 'run node.json' 'chat --config asking.json --script tool.json -p go'; do
    # shellcheck disable=SC2086 # words
    begin $what </dev/null
    check "$what: it works" wait_for test -e left.all
    kill -KILL $run
    over
    check "$what: killed, it leaves nothing working" wait_for nobody
    rm -f left.*
done
# ---- the guard alone is killed ----
rm -f leaves.again left.*
begin exec --session unguarded -- ./leaves
wait_for test -e left.all
kill -KILL "$(guard_of $run)"
over
check_is 'a killed guard takes the program along' 137 "$got"
check 'and exec ends what is left' wait_for nobody
check_is 'and says so' idle/failed "$(outcome_of unguarded)"
# ---- tidemark step alone is killed: what its program had started does not work on beside a second try ----
program stepless <<'E'
tidemark step lonely --effect pure -- sh -c 'echo "$PPID" >pid.parent; sleep 1987 & echo $! >left.3; wait'
echo over >over
E
"$TIDE_BIN" exec --session stepless -- ./stepless >/dev/null 2>&1 &
runner=$!
wait_for test -s left.3
kill -KILL "$(cat pid.parent)" # not by its name: the same test may run elsewhere
wait_for test -e over
check 'its program took all of its group along' wait_for gone "$(cat left.3)"
wait "$runner" 2>/dev/null
finish
