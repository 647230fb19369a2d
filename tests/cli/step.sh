#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark step: what is recorded, what is run again, and every way in which a step's program can misbehave.
# shellcheck disable=SC2016,SC2317 # programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
TIDEMARK_STORE=$(store_at "$work/s")
export PATH TIDEMARK_STORE

lines() {
    wc -l <"$1" 2>/dev/null || echo 0
}

# ---- outside a run ----
refuses_as 'step outside exec' 2 'INVALID|||||start' step a -- true
refuses_as 'wait outside exec' 2 'INVALID|||||start' wait a --kind input
refuses_as 'sleep outside exec' 2 'INVALID|||||start' sleep a 1s
refuses_as 'set outside exec' 2 'INVALID|||||start' set a=b
refuses_as 'get outside exec' 2 'INVALID|||||start' get a
refuses_as 'checkpoint outside exec' 2 'INVALID|||||start' checkpoint
check 'nothing of that made a store' test ! -e s.db -a ! -e s.files
TIDEMARK_RUN=tidemark-00000000000000000000000000000000 refuses 'a run that has ended' 3 'has ended' step a -- true
TIDEMARK_RUN=nonsense refuses 'a socket that is none' 2 'is not the name' step a -- true

# ---- arguments ----
refuses_as 'no program' 2 'INVALID|argument||program||' step a
refuses_as 'an unknown effect' 2 'INVALID|argument||effect||' step a --effect maybe -- true
for bad in '' 5 -1s 1x s 1h- 99999999999d 1.5s; do
    refuses_as "a duration '$bad'" 2 'INVALID|argument||timeout||' step a --timeout "$bad" -- true
done
refuses_as 'too much output' 2 'INVALID|argument||max_output||' step a --max-output 49M -- true
refuses_as 'a size that is none' 2 'INVALID|argument||max_output||' step a --max-output 1X -- true

# ---- recorded and answered ----
write_script answers <<'E'
out=$(tidemark step one --effect pure -- sh -c 'echo ran >>ran; printf "a\nb\n\n"; exit 0')
printf '%s' "$out" >got
tidemark step two -- sh -c 'echo ran >>ran2; printf "x\377\0y"; exit 3' >bytes
echo $? >status
for i in 1 2 3; do tidemark step loop --effect pure -- sh -c "echo ran >>ran3; echo $i" >>loop; done
[ -e second ] || exit 9
E
check_end 'the first run fails at its end' 9 tidemark exec --session a -- ./answers
first=$(od -An -tx1 <bytes)
rm bytes got loop
touch second
check 'resumed' tidemark resume a
check_is 'a finished step is not run again' 1 "$(lines ran)"
check_is 'its output is what it was' 'a
b' "$(cat got)"
check_is 'bytes that are no text come back exactly' "$first" "$(od -An -tx1 <bytes)"
check_is 'so does the exit status of a failed once' 3 "$(cat status)"
check_is 'which is not run again either' 1 "$(lines ran2)"
check_is 'each use of a name in a loop is a step of its own' '1 2 3' "$(tr '\n' ' ' <loop | sed 's/ $//')"
check_is 'and none was run again' 3 "$(lines ran3)"
check_is 'a start for each' 5 "$(count a tool.started)"
tidemark log show a | grep '"tool":"two"' | grep -c '"output_base64":"eP8AeQ=="' >n
check_is 'the log has the bytes as base64' 1 "$(cat n)"

# A failed step that may be done again is; a failed once is, when a person says so.
write_script fails <<'E'
tidemark step p --effect pure -- sh -c 'echo ran >>p.ran; exit 1'
tidemark step o -- sh -c 'echo ran >>o.ran; exit 4'
exit $?
E
check_end 'a failing program' 4 tidemark exec --session f -- ./fails
tidemark resume f >out 2>err
check_is 'resumed: the stored status again' 4 $?
check_is 'the pure one ran again' 2 "$(lines p.ran)"
check_is 'the once did not' 1 "$(lines o.ran)"
check 'and it says so' grep -q "step 'o' failed before and must happen once.*--happened o.*--retry o" err
for option in retry happened; do
    refuses_as "a name that is not there, --$option" 2 'INVALID|step||nosuch||' resume f --$option nosuch
    refuses_as "nor with what it gave, --$option" 2 'INVALID|step||o={"q":1}||' resume f --$option 'o={"q":1}'
done
check_end 'with --retry it runs' 4 tidemark resume f --retry o
check_is 'once more' 2 "$(lines o.ran)"

# ---- environment ----
write_script environment <<'E'
tidemark step e --effect idempotent -- sh -c 'echo "$TIDEMARK_IDEMPOTENCY_KEY $TIDEMARK_ATTEMPT"' >env
tidemark step outer --effect pure -- sh -c 'tidemark step inner --effect pure -- echo nested' >nested
echo "$TIDEMARK_SESSION_ID $TIDEMARK_RUN_ID" >ids
E
check 'environment' tidemark exec --session e -- ./environment
check 'the idempotency key has 32 digits, the first attempt is 0' grep -qE '^[0-9a-f]{32} 0$' env
check_is 'steps may be nested' nested "$(cat nested)"
check_is "the ids are there" "e $(tidemark sessions show e --json | json "\$.run.run_id")" "$(cat ids)"

# ---- retries ----
write_script again <<'E'
tidemark step r --effect idempotent --retries 2 -- sh -c 'echo "$TIDEMARK_IDEMPOTENCY_KEY" >>r.keys; [ "$TIDEMARK_ATTEMPT" -ge 2 ] && echo done'
E
check_is 'the third attempt succeeds' 'done' "$(tidemark exec --session r -- ./again 2>err)"
check_is 'three attempts' 3 "$(lines r.keys)"
check_is 'with the same key' 1 "$(sort -u r.keys | wc -l)"
check 'and it says that it tries again' grep -q 'tried again' err
write_script once_again <<'E'
tidemark step r --retries 2 -- true
E
check_end 'once and retries do not go together' 2 tidemark exec --session r2 -- ./once_again

# ---- programs that misbehave ----
# one NAME STATUS WORDS ARGS...: a run of one step; its exit status and what is said.
one() {
    local name=$1 want=$2 words=$3 got n
    shift 3
    n=$RANDOM$RANDOM
    printf '%s\0' "$@" | tee args >"args.$n"
    write_script step_of_args <<'E'
mapfile -d '' -t args <"$1"
tidemark step x "${args[@]}"
status=$?
[ "$status" -eq 0 ] || exit "$status"
E
    timeout 60 tidemark exec --session "m$n" -- ./step_of_args "args.$n" >out 2>err && got=0 || got=$?
    check_is "$name: exit status" "$want" "$got"
    if [ -n "$words" ]; then check "$name: says '$words'" grep -qF -- "$words" err; fi
}
one 'a program that is missing' 127 'no such program' -- ./nothing
one 'a program that may not be executed' 126 'may not be executed' -- ./args
one 'a program that is killed' 137 'was killed by signal 9' --effect pure -- sh -c 'kill -9 $$'
one 'a time limit' 124 'took longer than 200ms' --effect pure --timeout 200ms -- sleep 1000
one 'a time limit of a once' 124 'took longer than 200ms' --timeout 200ms -- sleep 1000
one 'one that ignores SIGTERM' 124 'took longer' --effect pure --timeout 200ms -- sh -c "trap '' TERM; while :; do sleep 1; done"
one '100 MiB of output' 1 'printed more than 16 MiB: redirect it into a file, or allow more (max_output)' --effect pure -- head -c 104857600 /dev/zero
# What must happen once has happened, however much it said: it is recorded with the beginning of that.
write_script talks <<'E'
tidemark step talk --max-output 10 -- sh -c 'echo ran >>talk.ran; printf "éééééé"; exit "$1"' sh "$1" >said
echo $? >talk.status
[ -e again ] || exit 9
E
for status in 0 3; do
    rm -f again talk.ran
    tidemark exec --session "talk$status" -- ./talks $status >/dev/null 2>err
    check 'a once that prints too much: what is kept is said' grep -qx \
        "tidemark: step 'talk' ran to its end, but printed more than 10 bytes: only that much is kept" err
    check_is 'it ends as its program did, and prints what is kept' "$status|ééééé" "$(cat talk.status)|$(cat said)"
    touch again
    tidemark resume "talk$status" >/dev/null 2>err
    check_is 'and so again when it is resumed, without being run' "$status|ééééé|1" "$(cat talk.status)|$(cat said)|$(lines talk.ran)"
done
check_is 'what is completed is no failure' '1|0' "$(count talk0 tool.completed)|$(count talk0 tool.failed)"
write_script mid_character <<'E'
tidemark step talk --max-output 9 -- printf 'éééééé'
E
check_is 'no character is cut in two' 'éééé' "$(tidemark exec --session mid -- ./mid_character 2>/dev/null)"
one '17 MiB of a once' 0 'only that much is kept' -- head -c 17825792 /dev/zero
check_is '16 MiB of it are kept' 16777216 "$(wc -c <out)"
one 'all that one record may hold, of a once' 0 'only that much is kept' --max-output 48M -- head -c 60000000 /dev/zero
one '17 MiB with more room' 0 '' --effect pure --max-output 48M -- head -c 17825792 /dev/zero
check_is '17 MiB came through' 17825792 "$(wc -c <out)"
one 'output closed early' 5 '' --effect pure -- sh -c 'exec >&-; exit 5'
one 'children left behind' 0 'left 1 process running: ended it' --effect pure -- sh -c 'sleep 1000 & echo $! >left; exit 0'
check 'they are gone' wait_for gone "$(cat left)"
one 'children that hold the output' 0 'left 1 process running' --effect pure -- sh -c 'sleep 1000 & echo $! >left; echo word'
check_is 'its output is there' word "$(cat out)"
check 'and the holder is gone' wait_for gone "$(cat left)"
one 'more than one record of the store may hold' 1 'more than one record of the store may hold' --effect pure --max-output 48M -- head -c 50331648 /dev/zero
one 'a binary that prints nothing' 0 '' --effect pure -- true

write_script fallback <<'E'
tidemark step a --effect pure -- ./nothing 2>/dev/null || tidemark step a --effect pure -- echo fallback
E
check_is 'a program that is missing is no attempt: the name is free' fallback "$(tidemark exec --session fb -- ./fallback)"

write_script reader_gone <<'E'
tidemark step big --effect pure -- sh -c 'echo ran >>big.ran; yes | head -c 1000000' | head -n 1
exit 0
E
check_is 'a reader that goes away gets its line' y "$(tidemark exec --session g -- ./reader_gone 2>/dev/null)"
check_is 'the step is recorded all the same' 1 "$(count g tool.completed)"

# ---- arguments that changed ----
write_script changed <<'E'
tidemark step c --effect pure -- echo "$(cat word)" || exit
[ -e go ] || exit 1
E
echo one >word
tidemark exec --session c -- ./changed >/dev/null 2>&1
echo two >word
touch go
tidemark resume c >out 2>err
check 'other arguments are refused by name' grep -q "step 'c' is recorded with other arguments" err
check_is 'unless they are accepted: what is recorded answers' one "$(tidemark resume c --accept-change 2>/dev/null)"

# ---- cut ----
# The step's process alone is killed: its program dies, the log says so.
write_script cut <<'E'
tidemark step k --effect "$(cat effect)" -- sh -c 'echo ran >>k.ran; echo $$ >k.pid; [ -e go ] && exit 0; exec sleep 1000' &
step=$!
echo $step >step.pid
wait $step
tidemark get nothing 2>/dev/null # the run goes on
exit 1
E
for effect in pure once; do
    rm -f go k.pid k.ran step.pid
    echo "$effect" >effect
    "$TIDE_BIN" exec --session "cut-$effect" -- ./cut >/dev/null 2>&1 &
    runner=$!
    wait_for test -s k.pid
    wait_for test -s step.pid # whoever wrote the other is not who writes this one
    kill -KILL "$(cat step.pid)"
    wait "$runner"
    check "a killed step of effect $effect: its program dies" wait_for gone "$(cat k.pid)"
    touch go
    tidemark resume "cut-$effect" >out 2>err
    runs=$(lines k.ran)
    if [ "$effect" = pure ]; then
        check_is 'a pure one is run again' 2 "$runs"
        check_is 'it was recorded as failed' 1 "$(count cut-pure tool.failed)"
    else
        check_is 'a once is not run again' 1 "$runs"
        check_is 'it was recorded as unknown' 1 "$(count cut-once tool.unknown)"
        check 'and that is said' grep -q "step 'k': outcome unknown" err
    fi
done

# exec alone is killed: everything below it dies; resume answers what was finished.
write_script killed <<'E'
echo $$ >program.pid
tidemark step done --effect pure -- sh -c 'echo ran >>done.ran; echo result'
tidemark step "$1" --effect "$1" --probe 'cat probe.out 2>/dev/null; exit "$(cat probe)"' -- sh -c 'echo ran >>inner.ran; echo $$ >inner.pid; [ -e go ] || exec sleep 1000; echo fresh'
E
kill_exec() {
    rm -f inner.pid inner.ran done.ran go probe.out
    "$TIDE_BIN" exec --session "$1" -- ./killed "$2" >/dev/null 2>&1 &
    local runner=$!
    wait_for test -s inner.pid
    kill -KILL "$runner"
    wait "$runner" 2>/dev/null
    check "$1: the program dies with exec" wait_for gone "$(cat program.pid)"
    check "$1: the step's program as well" wait_for gone "$(cat inner.pid)"
    touch go
}
kill_exec k-pure pure
check_is 'a cut pure step runs again, a finished one answers' 'result
fresh' "$(tidemark resume k-pure)"
check_is 'the finished one ran once' 1 "$(lines done.ran)"
kill_exec k-yes once
echo 0 >probe
echo found >probe.out
check_is 'the probe says that it happened: its output is the result' 'result
found' "$(tidemark resume k-yes)"
check_is 'it was not run again' 1 "$(lines inner.ran)"
kill_exec k-no once
echo 1 >probe
check_is 'the probe says that it did not: it runs' 'result
fresh' "$(tidemark resume k-no)"
check_is 'twice in all' 2 "$(lines inner.ran)"
kill_exec k-maybe once
echo 7 >probe
check_end 'the probe cannot tell: exit status 10' 10 tidemark resume k-maybe
check_is 'not run' 1 "$(lines inner.ran)"
check_is 'a person may: it runs' 'result
fresh' "$(tidemark resume k-maybe --retry once)"
kill_exec k-idempotent idempotent
check_is 'a cut idempotent step runs again' 'result
fresh' "$(tidemark resume k-idempotent)"

# ---- in parallel ----
write_script parallel <<'E'
for i in 1 2 3 4 5 6; do tidemark step "p$i" --effect pure -- sh -c "echo $i" & done
wait
tidemark step same --effect pure -- sh -c 'echo up >up; while [ ! -e down ]; do :; done' &
until [ -e up ]; do :; done
tidemark step same --effect pure -- true
echo "same: $?" >same
touch down
wait
E
check_is 'six steps in parallel' '1 2 3 4 5 6 ' "$(tidemark exec --session p -- ./parallel 2>err | sort | tr '\n' ' ')"
check_is 'the same name twice in parallel is refused' 'same: 2' "$(cat same)"
check 'with a reason' grep -q "step 'same' is already running" err

# ---- memory ----
write_script memory <<'E'
tidemark set a=text
tidemark set b:='{"x": [1, 2]}'
tidemark set 'c=with = and spaces'
tidemark get a
tidemark get b
tidemark get a --json
tidemark get c
tidemark get nothing 2>/dev/null
echo "$?"
tidemark set nonsense 2>/dev/null
echo "$?"
tidemark set x:=nonsense 2>/dev/null
echo "$?"
tidemark checkpoint 'here' --type user_checkpoint >id
E
check_is 'set and get' 'text
{"x":[1,2]}
"text"
with = and spaces
3
2
2' "$(tidemark exec --session mem -- ./memory)"
check_is 'a checkpoint is in the log' "$(cat id)" "$(tidemark sessions checkpoints mem --ids)"

if on_files; then
    # Whoever runs it looks as well, now and then, and may be the first to see it.
    step_sees_it() {
        rm -f s.files/live/gone.*
        tidemark exec --session gone -- sh -c 'rm s.files/sessions/gone.*; tidemark step a -- true' 2>&1 |
            grep -q "the log of session 'gone' is gone.*: .tidemark sessions delete gone. removes what is left of it"
    }
    check 'a session that is deleted under a step is said, with what to do' wait_for step_sees_it
else
    skip 'a session that is deleted under a step' 'there is no file of its own'
fi

# ---- a rollback that redoes means what it cut off, not what an earlier one kept ----
cat >payer <<'EOF'
#!/bin/sh
tidemark step base -- true
test -e first && { tidemark step other -- sh -c 'echo other >>others'; exit 1; }
tidemark step pay -- sh -c 'echo paid >>paid'
exit "$(cat ends)"
EOF
chmod +x payer
echo 1 >ends
tidemark exec --session payer -- ./payer >/dev/null 2>&1
tidemark sessions rollback payer --to 4 --reuse-effects >/dev/null
touch first
tidemark resume payer >/dev/null 2>&1
other=$(tidemark log show payer | grep '"kind":"tool.started".*"tool":"other"' | json '$.seq')
tidemark sessions rollback payer --to "$((other - 1))" --redo-effects >/dev/null
echo 0 >ends
tidemark resume payer >/dev/null 2>&1
check_is 'what was cut off happens again' 2 "$(wc -l <others)"
rm first
tidemark sessions rollback payer --to "$((other - 1))" --redo-effects >/dev/null
check_status 'it goes on' 0 tidemark resume payer
check_is 'what an earlier rollback kept does not' 1 "$(wc -l <paid)"

check_is 'no process stays behind' '' "$(pgrep -f "$work" | grep -vx $$)"
finish
