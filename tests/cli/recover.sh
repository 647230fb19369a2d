#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Recovery: what is written down, once; what goes on by itself and what does not; the watch. What runs is counted in a
# file of its own.
# shellcheck disable=SC2016,SC2317 # messages hold backquotes; wait_for calls by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset TIDEMARK_AUTO_RESUME
PATH=$(dirname "$TIDE_BIN"):$PATH

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# make ID [PROGRAM]: a session whose run has begun, by that program, and whose process is gone.
make() {
    tidemark sessions new --id "$1" >/dev/null
    put "$1" run.started "{\"run_id\":\"$1-r1\"${2:+,\"argv\":[\"$2\"],\"cwd\":\"$work\",\"env\":[]}}"
}

# program NAME: from standard input.
program() {
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}

status_of() {
    tidemark why "$1" --json | json '$.status'
}


: >ledger

# ---- what is written down ----
refuses_as 'without a store' 3 'NOT_FOUND|file||*||init_store' recover
make cut
make late
put late token.minted '{"token_id":"t1"}'
put late run.waiting '{"run_id":"late-r1","wait_kind":"input","resume_token_id":"t1","deadline_at":"2001-01-01T00:00:00.000Z"}'
make old
put old token.minted '{"token_id":"t1","expires_at":"2001-01-01T00:00:00.000Z"}'
put old run.waiting '{"run_id":"old-r1","wait_kind":"input","resume_token_id":"t1"}'
make asleep
put asleep run.waiting '{"run_id":"asleep-r1","wait_kind":"timer","due_at":"2999-01-01T00:00:00.000Z"}'
make asks
put asks token.minted '{"token_id":"t1"}'
put asks run.waiting '{"run_id":"asks-r1","wait_kind":"input","resume_token_id":"t1"}'
make finished
put finished run.completed '{"run_id":"finished-r1"}'

check 'the doctor says what would be done' eval "tidemark doctor | grep -q 'recovery .*would find 1 interrupted, 1 past the deadline, 1 with an expired token, 0 due'"
check 'of which session, and why' eval "tidemark doctor | grep -q 'recovery .*cut, interrupted: .*process ended'"
check_is 'and nothing about recovery is in order then' 0 "$(tidemark doctor --json | json '$.checks' | grep -o '"name":"recovery","status":"ok"' | wc -l)"
check_is 'the doctor warns about each, and in sum' 4 "$(tidemark doctor --json | json '$.checks' | grep -o '"name":"recovery","status":"warn"' | wc -l)"
events_of_all() {
    for id in $(tidemark sessions list --ids); do tidemark log show "$id"; done | wc -l
}
before=$(events_of_all)
tidemark recover --dry-run >dry
check_is 'a dry run names what it would do' 'interrupted,timed out,token expired' "$(head -n -1 dry | cut -c1-13 | sed 's/ *$//' | sort | paste -sd ,)"
check 'and says why' grep -q '^timed out *late: .*there was no answer before the deadline, which was 2001-01-01' dry
check_is 'and writes nothing' "$before" "$(events_of_all)"
tidemark recover --json >first
check_is 'every line is a JSON document' 4 "$(while read -r line; do echo "$line" | is_json && echo; done <first | wc -l)"
check_is 'the summary counts' '3|1|1|1|0' \
    "$(for m in looked_at interrupted timed_out tokens_expired due; do tail -n 1 first | json "\$.summary.$m"; done | paste -sd '|')"
check_is 'and says when to look again' 2999-01-01T00:00:00.000Z "$(tail -n 1 first | json '$.summary.next_at')"
check_is 'a run whose process is gone is interrupted' 'interrupted_startup|1|process_restart' \
    "$(status_of cut)|$(count cut run.interrupted)|$(tidemark why cut --json | json '$.reason')"
check_is 'a wait past its deadline is over, its token revoked' 'interrupted_waiting|1|1|wait_timeout' \
    "$(status_of late)|$(count late run.interrupted)|$(count late token.revoked)|$(tidemark why late --json | json '$.reason')"
check_is 'a token past its time has expired' 'interrupted_waiting|1' "$(status_of old)|$(count old token.expired)"
check_is 'what sleeps, asks or is finished is left alone' 'waiting|waiting|idle' "$(status_of asleep)|$(status_of asks)|$(status_of finished)"
after=$(events_of_all)
check_is 'a second time there is nothing to do' '0 checked, 0 interrupted, 0 timed out, 0 with an expired token, 0 due; the next is due at 2999-01-01 00:00:00 UTC' \
    "$(tidemark recover)"
check_is 'and nothing is written' "$after" "$(events_of_all)"
check 'the doctor says so too' eval "tidemark doctor | grep -q 'recovery .*nothing to do'"
make both
for _ in 1 2 3 4; do "$TIDE_BIN" recover >/dev/null & done
wait
check_is 'several at once write it down once' 1 "$(count both run.interrupted)"

# ---- what goes on ----
program nap <<'END'
tidemark sleep nap "$(cat nap.time)" || exit
tidemark step done -- sh -c 'echo nap >>ledger'
END
program good <<'END'
tidemark step done -- sh -c 'echo good >>ledger'
END
program bad <<'END'
echo bad >>ledger
exit 3
END
program dies <<'END'
echo dies >>ledger
kill -9 "$(cut -d' ' -f4 /proc/$PPID/stat)" # exec, above its guard
END

# parks ID [OPTION...]: nap sleeps, in a session of this name, and is parked. On a busy machine its time may be over before:
# then it has not slept, and is given more.
parks() {
    local id=$1 got=0
    shift
    for time in 300ms 3s 20s; do
        echo $time >nap.time
        tidemark "$@" exec --session "$id" -- ./nap && got=0 || got=$?
        [ "$got" -eq 0 ] || break
        tidemark "$@" sessions delete "$id"
        sed -i '/^nap$/d' ledger
    done
    [ "$got" -eq 7 ]
}
check 'a program that sleeps is parked' parks napping
is_due() {
    [ "$(tidemark why "$1" --json | json '$.reason')" = due ]
}
check 'until it is due' wait_for is_due napping
check_is 'what is due is told' due "$(tidemark recover --json | head -n 1 | json '$.action')"
check_is 'and not run unasked' 0 "$(ran nap)"
check 'the doctor says what lets it go on' eval "tidemark doctor | grep -q 'recovery .*due: .*recover --run-due'"
check 'a dry run says that it would be resumed' eval "tidemark recover --dry-run --run-due | grep -q '^due .*it would be resumed'"
check_is 'but does not' 0 "$(ran nap)"
check 'what is due goes on' tidemark recover --run-due
check_is 'once' '1|idle' "$(ran nap)|$(status_of napping)"
check 'there is nothing left to go on' tidemark recover --run-due
check_is 'so nothing does' 1 "$(ran nap)"

make live "$work/good"
make plain
make person "$work/good"
put person run.interrupted '{"run_id":"person-r1","reason":"shutdown","by":"person"}'
make parked "$work/good"
put parked token.minted '{"token_id":"t1"}'
put parked run.waiting '{"run_id":"parked-r1","wait_kind":"input","resume_token_id":"t1"}'
put parked run.interrupted '{"run_id":"parked-r1","reason":"process_exit"}'
make stopped "$work/good"
tidemark cancel stopped >/dev/null 2>&1
check 'interrupted ones are left alone' eval 'tidemark recover --run-due >out'
check 'and it is said how they go on' grep -q '^interrupted *live: .*`tidemark resume live` resumes it, or --auto-resume live$' out
check 'none was resumed, and the summary says so' eval "tail -n 1 out | grep -q ' due, 0 resumed'"
check_is 'unless asked for' '0|interrupted_startup' "$(ran good)|$(status_of live)"
check 'live: what ran when its process died goes on' eval 'tidemark recover --run-due --auto-resume live >out 2>err'
check_is 'and nothing else' '1|idle|interrupted_startup|interrupted_startup|interrupted_waiting|idle' \
    "$(ran good)|$(for s in live plain person parked stopped; do status_of $s; done | paste -sd '|')"
check 'the summary says how many went on' eval "tail -n 1 out | grep -q ' due, 1 resumed'"
check_is 'it is said' 'resumed ended' "$(grep -o '^resumed\|^ended' out | paste -sd ' ')"
make again "$work/good"
check 'the environment can ask for it' env TIDEMARK_AUTO_RESUME=live "$TIDE_BIN" recover --run-due
check_is 'and is heard' 2 "$(ran good)"
make crashed "$work/good"
put crashed run.interrupted '{"run_id":"crashed-r1","reason":"process_exit"}'
check 'all: every interrupted run goes on' tidemark recover --run-due --auto-resume all
check_is 'but what a person stopped or was asked does not' '3|interrupted_startup|interrupted_waiting|idle' \
    "$(ran good)|$(for s in person parked stopped; do status_of $s; done | paste -sd '|')"

# ---- what does not get on ----
make failing "$work/bad"
check 'a program that fails does not fail recovery' eval 'tidemark recover --run-due --auto-resume live >out'
check 'but is said' grep -q '^ended *failing: failed with exit status 3' out
check_is 'it ran once' 1 "$(ran bad)"
make missing "$work/nowhere"
check 'neither does one that is not there' eval 'tidemark recover --run-due --auto-resume live >out 2>err'
check 'which is said too' grep -q '^ended *missing: failed' out
make dying "$work/dies"
for _ in 1 2 3 4 5 6; do
    tidemark recover --run-due --auto-resume live --max-resumes 2
done >out 2>err
check_is 'one that dies each time is let go on so often and no more' '2|interrupted_startup' "$(ran dies)|$(status_of dying)"
check 'and it is said that it needs a person' grep -q 'it needs a person' out

# ---- a store with a key ----
printf 'sixteen bytes or more' >key
chmod 600 key
TIDEMARK_STORE=$(store_at "$work/keyed")
export TIDEMARK_STORE
parks locked --key-file key >/dev/null 2>&1
locked_is_due() {
    [ "$(tidemark --key-file key why locked --json | json '$.reason')" = due ]
}
check 'with a key, until it is due' wait_for locked_is_due
check 'the key is handed on' tidemark --key-file key recover --run-due
check_is 'and works' idle "$(tidemark --key-file key why locked --json | json '$.status')"
default_store

# ---- the watch ----
program long <<'END'
tidemark step begin -- sh -c 'echo long >>ledger'
tidemark step hold --effect pure -- sleep 1000
END
"$TIDE_BIN" recover --watch --run-due --auto-resume live --interval 1s --json >watched 2>err &
watch=$! # not the function: the signal is for the program itself
trap 'kill -TERM $watch 2>/dev/null; remove_work' EXIT
check 'while it is watched a program parks' parks tended
idle() {
    [ "$(status_of "$1")" = idle ]
}
check 'and goes on without anybody' wait_for idle tended
make held "$work/long"
has_run() {
    [ "$(ran "$1")" -gt 0 ]
}
check 'so does one that was interrupted' wait_for has_run long
under_way() {
    tidemark log show held --kind tool.started | grep -q '"tool":"hold"'
}
check 'and is in the middle of a step' wait_for under_way
kill -TERM $watch
wait $watch && got=0 || got=$?
trap remove_work EXIT
check_is 'the watch ends when it is told to' 0 "$got"
check_is 'and what ran under it was stopped in order' 'interrupted_startup|shutdown' \
    "$(status_of held)|$(tidemark why held --json | json '$.reason')"
check_is 'what it said is JSON' '' "$(while read -r line; do echo "$line" | is_json || echo "$line"; done <watched)"

program again <<'END'
tidemark sleep first 1s
tidemark sleep second 1s
END
tidemark exec --session again -- ./again >/dev/null 2>&1
mv again hidden
"$TIDE_BIN" recover --watch --run-due --max-resumes 1 >watched 2>err &
watch=$!
trap 'kill -TERM $watch 2>/dev/null; remove_work' EXIT
check 'one that could not go on is let alone' wait_for grep -q '^ended *again: .* not retried here' watched
mv hidden again
check_status 'until somebody else lets it' 7 tidemark resume again
check 'then it goes on when it is due once more' wait_for idle again
kill -TERM $watch
wait $watch
trap remove_work EXIT

if command -v script >/dev/null; then
    script -qefc "echo \$\$ >watch.pid; exec $TIDE_BIN recover --watch" /dev/null >out </dev/null &
    typescript=$!
    check 'on a terminal a watch says that it watches' wait_for grep -q 'watching .*tidemark.*; Ctrl-C ends it' out
    kill -TERM "$(cat watch.pid)"
    wait $typescript
else
    skip 'on a terminal a watch says that it watches' 'no script(1) here'
fi

# ---- one that is damaged ----
make broken
make whole
damage broken 2
tidemark recover >out 2>err
check_is 'one that is damaged is said, and in nobody else'"'"'s way' '5 1 interrupted_startup' "$? $(grep -c "session 'broken'" err) $(status_of whole)"
check 'and there is a summary' grep -q '^[0-9]* checked, [0-9]* interrupted, ' out

# ---- usage ----
refuses_as '--auto-resume alone' 2 'INVALID|argument||auto_resume||' recover --auto-resume live
refuses_as '--interval alone' 2 'INVALID|argument||interval||' recover --interval 5s
refuses_as 'a watch that does nothing' 2 'INVALID|argument||watch||' recover --watch --dry-run
refuses_as 'a key that can be read only once' 2 'INVALID|argument||run_due||' --key-fd 3 recover --run-due 3<key
TIDEMARK_AUTO_RESUME=maybe refuses 'a word in the environment that means nothing' 2 "'maybe' is not one of" recover --run-due
finish
