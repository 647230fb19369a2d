#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark exec, resume and cancel: what is refused before anything is written, how runs end, signals, output, recovery.
# shellcheck disable=SC2016,SC2317 # programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
TIDEMARK_STORE=$(store_at "$work/s")
export PATH TIDEMARK_STORE


# ---- a full disk, in a mount namespace of its own: `exec.sh full` is this part alone ----
full_disk() {
    mkdir small
    trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
    mount -t tmpfs -o size=3m tmpfs small || return
    TIDEMARK_STORE=$(store_at "$work/small/s")
    write_script fills <<'E'
tidemark step before --effect pure -- echo before
tidemark step more --effect pure -- sh -c 'head -c 50000 /dev/zero | tr "\\0" x' >/dev/null # past the room that the log had
[ -e roomy ] || cat /dev/zero >small/fill 2>/dev/null
tidemark step during --effect "$1" -- sh -c 'echo ran >>during.ran; head -c 500000 /dev/zero | tr "\\0" x' | wc -c
tidemark step behind --effect pure -- echo behind
E
    for how in stop continue; do
        rm -f out err
        "$TIDE_BIN" exec --session "$how" --on-store-error "$how" -- ./fills pure >out 2>err &
        local runner=$!
        if [ "$how" = stop ]; then wait_for grep -q 'the run pauses' err; else wait_for grep -q behind out; fi
        [ "$how" = stop ] && check_is 'stop: nothing goes on before there is room' before "$(cat out)"
        [ "$how" = continue ] && check 'continue: it says that it is degraded' grep -q 'durability: degraded' err
        rm small/fill
        wait "$runner"
        check_is "$how: when there is room the run ends well" 0 $?
        check_is "$how: with all of its output" 'before 500000 behind ' "$(tr '\n' ' ' <out)"
        check_is "$how: the log has it whole" completed "$(tidemark sessions show "$how" --json | json '$.outcome')"
    done
    rm -f during.ran out err
    "$TIDE_BIN" exec --session once --on-store-error continue -- ./fills once >out 2>err &
    local runner=$!
    wait_for grep -q 'no space left' err
    check_is 'continue: nothing that must happen once begins' '' "$(cat during.ran 2>/dev/null)"
    rm small/fill
    wait "$runner"
    check_is 'but when there is room' ran "$(cat during.ran 2>/dev/null)"
    rm -f out err
    "$TIDE_BIN" exec --session told -- ./fills pure >out 2>err &
    runner=$!
    wait_for grep -q 'the run pauses' err
    kill -TERM "$runner"
    wait "$runner"
    check_is 'a held run can be stopped, and says what could not be written' 6 $?
    rm small/fill
    touch roomy
    check_is 'and is found interrupted' interrupted_startup "$(status_of told)"
    tidemark resume told >out 2>&1
    check_is 'and goes on' 'before 500000 behind ' "$(tr '\n' ' ' <out)"
}
if [ "${1:-}" = full ]; then
    full_disk
    finish
fi
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    unshare -m bash "$0" full || failures=$((failures + 1))
else
    skip 'a full disk' 'needs root and mount namespaces'
fi

# ---- refused before anything is written ----
refuses_as 'no program' 2 'INVALID|argument||program||' exec
refuses_as 'a missing program' 127 'NOT_FOUND|file||./nothing||' exec -- ./nothing
refuses_as 'a missing program of $PATH' 127 'NOT_FOUND|file||no-such-program-here||' exec -- no-such-program-here
echo x >plain
refuses_as 'a file that may not be executed' 126 'DENIED|file||./plain||' exec -- ./plain
mkdir dir
refuses_as 'a directory' 126 'DENIED|file||./dir||' exec -- ./dir
refuses_as 'a variable that is not set' 2 'INVALID|argument||env||' exec --env HOME,NOT_SET_HERE -- true
refuses_as 'a variable without a name' 2 'INVALID|argument||env||' exec --env HOME,,X -- true
refuses 'an argument that is not UTF-8' 2 'argument 1 of the program is not valid UTF-8' exec -- true "$(printf 'a\377')"
refuses_as 'a token descriptor that is not open' 2 'INVALID|argument||token_fd||' exec --token-fd 99 -- true
check 'none of that made a store' test ! -e s.db -a ! -e s.files

# ---- how runs end ----
check_status 'exit 0' 0 tidemark exec --session ok -- true
check_is 'completed' completed "$(tidemark sessions show ok --json | json '$.outcome')"
check_end 'exit 5' 5 tidemark exec --session five -- sh -c 'exit 5'
check_is 'failed' failed "$(tidemark sessions show five --json | json '$.outcome')"
check_is 'with its message' 'sh ended with exit status 5' "$(field five run.failed '$.error.message')"
check_is 'and its exit status' 5 "$(field five run.failed '$.exit_status')"
tidemark exec --session five2 -- sh -c 'exit 5' 2>err
check 'and one line shows how to continue' grep -qx 'tidemark: sh ended with exit status 5: `tidemark resume five2` resumes it' err
check_status 'a program that is killed' 137 tidemark exec --session killed -- sh -c 'kill -9 $$'
check_is 'is failed, by a signal' signal "$(field killed run.failed '$.error.code')"
# Whoever started us in the background made us ignore that one.
check_status 'a program that interrupts itself' 130 env --default-signal=INT "$TIDE_BIN" exec --session int -- sh -c 'kill -INT $$'
check_is 'is interrupted' interrupted_startup "$(status_of int)"
check_end 'usage stays usage of the program' 2 tidemark exec -- sh -c 'exit 2'
check_is 'options behind the program are its own' '--json --help' "$(tidemark exec -- echo --json --help)"
check_is 'also without --' '--json' "$(tidemark exec echo --json)"
check_is 'and a -- of its own' '-- x' "$(tidemark exec -- echo -- x)"
check_is 'standard input is the program'"'"'s' typed "$(echo typed | tidemark exec -- cat)"

# ---- what is recorded ----
SECRET=hunter2 tidemark exec --session rec --title T --env SECRET,HOME -- sh -c 'echo out; echo err >&2' >out 2>err
check_is 'standard output is passed on' out "$(cat out)"
check_is 'standard error as well' err "$(cat err)"
check_is 'the argv' '["sh","-c","echo out; echo err >&2"]' "$(field rec run.started '$.argv')"
check_is 'the directory' "$(pwd)" "$(field rec run.started '$.cwd')"
check_is 'the names of the environment' '["SECRET","HOME"]' "$(field rec run.started '$.env')"
check 'no value of it' sh -c "! '$TIDE_BIN' log show rec | grep -q hunter2"
check_is 'the program' "$(command -v sh)" "$(field rec run.started '$.program')"
check 'its digest' sh -c "'$TIDE_BIN' log show rec | grep -qE '\"program_digest\":\"[0-9a-f]{64}\"'"
check_is 'the output' out "$(field rec run.completed '$.output.stdout')"
check_is 'the output of errors' err "$(field rec run.completed '$.output.stderr')"
check_is 'the title' T "$(tidemark sessions show rec --json | json '$.title')"
tidemark exec --session big -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo "line $i of some length"; i=$((i+1)); done' >out
check_is 'output that is long comes through whole' 3000 "$(wc -l <out)"
check_is 'all of it is counted' "$(wc -c <out)" "$(field big run.completed '$.output.stdout_bytes')"
tail -c 16384 out >last
check_is 'its last 16 KiB are recorded' "$(cat last)" "$(field big run.completed '$.output.stdout')"
tidemark exec --session bin -- printf 'a\377b' >out
check_is 'bytes that are no text pass through' 'a377b' "$(od -An -c out | tr -d ' \n')"
check_is 'a reader that goes away ends the program as it would' y "$(tidemark exec --session pipe -- yes 2>/dev/null | head -n 1)"
check_is 'and that is recorded' failed "$(tidemark sessions show pipe --json | json '$.outcome')"

mkfifo slow_reader
"$TIDE_BIN" exec --session slowly -- sh -c 'yes | head -c 100000' >slow_reader &
exec 8<slow_reader
is_completed() {
    [ "$(tidemark sessions show slowly --json | json '$.outcome')" = completed ]
}
check 'the record does not wait for a slow reader' wait_for is_completed
check_is 'who gets all of it' 100000 "$(wc -c <&8)"
exec 8<&-
wait

# ---- signals ----
write_script slow <<'E'
trap 'echo trapped >trapped; exit 3' TERM
echo $$ >slow.pid
while :; do sleep 0.05; done
E
ignored=$((0x$(awk '/^SigIgn/ { print $2 }' /proc/$$/status) & 1)) # SIGHUP, by whoever started us
for signal in TERM HUP; do # a shell's background children ignore SIGINT
    [ "$signal$ignored" != HUP1 ] || continue
    rm -f slow.pid
    "$TIDE_BIN" exec --session "sig-$signal" -- ./slow >/dev/null 2>&1 &
    runner=$!
    wait_for test -s slow.pid
    kill -"$signal" "$runner"
    wait "$runner"
    got=$?
    check_is "SIG$signal: exit status" $((128 + $(kill -l "$signal"))) "$got"
    check_is "SIG$signal: interrupted" interrupted_startup "$(status_of "sig-$signal")"
    check_is "SIG$signal: shutdown" shutdown "$(field "sig-$signal" run.interrupted '$.reason')"
    check "SIG$signal: the program is gone" gone "$(cat slow.pid)"
done
check 'the program heard SIGTERM' test -e trapped
write_script deaf <<'E'
trap '' TERM
echo $$ >deaf.pid
while :; do sleep 0.05; done
E
"$TIDE_BIN" exec --session deaf -- ./deaf >/dev/null 2>&1 &
runner=$!
wait_for test -s deaf.pid
kill -TERM "$runner"
kill -TERM "$runner"
wait "$runner"
check_is 'one that does not listen is killed' 143 $?
check_is 'a second signal does not skip the record' shutdown "$(field deaf run.interrupted '$.reason')"
check 'nothing is left of it' gone "$(cat deaf.pid)"

# One that takes a while to look at: its digest is taken before the supervisor listens. If it took less than we did to tell
# it, the signal was not early, and a longer one is tried.
write_script early <<'E'
: >ran
exit 0
E
# listens PID: it is the program itself, no longer the shell that became it, and catches SIGTERM.
listens() {
    [ "/proc/$1/exe" -ef "$TIDE_BIN" ] && [ $((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$1/status") & 0x4000)) -ne 0 ]
}
for size in 400M 1600M 6400M; do
    rm -f ran
    truncate -s $size early
    "$TIDE_BIN" exec --session "early-$size" -- ./early >/dev/null 2>&1 &
    runner=$!
    wait_for listens "$runner"
    kill -TERM "$runner"
    wait "$runner" && got=0 || got=$?
    [ -e ran ] || break
done
check_is 'a signal before the program is started' 143 "$got"
check 'is not lost' test ! -e ran
rm -f early

# ---- what is left behind ----
write_script leaves <<'E'
setsid sh -c 'echo $$ >left; exec sleep 1000' &
until [ -s left ]; do :; done
exit 0
E
tidemark exec --session left -- ./leaves 2>err
check_is 'a program that leaves a process behind' 0 $?
check 'is told so' grep -q 'left 1 process running: ended it' err
check 'it is gone' gone "$(cat left)"

# ---- killed, and resumed ----
write_script twice <<'E'
echo run >>runs
[ "$(wc -l <runs)" -gt 1 ] && { echo "$VALUE $(pwd)"; exit 0; }
echo $$ >twice.pid
exec sleep 1000
E
VALUE=1 "$TIDE_BIN" exec --session tw --env VALUE -- ./twice >/dev/null 2>&1 &
runner=$!
wait_for test -s twice.pid
kill -KILL "$runner"
wait "$runner" 2>/dev/null
check 'the program dies with exec' wait_for gone "$(cat twice.pid)"
check_is 'the session is interrupted' interrupted_startup "$(status_of tw)"
refuses_as 'resume without the variable' 2 'INVALID|argument||env||' resume tw
cd dir || exit
check_is 'resumed from elsewhere: in its own directory' "2 $work" "$(VALUE=2 tidemark resume tw)"
cd .. || exit
VALUE=2 refuses 'what is completed is not resumed' 2 'tw' resume tw
refuses_as 'an unknown session' 3 'NOT_FOUND|session|nothing|||list_sessions' resume nothing
tidemark sessions new --id plain >/dev/null
refuses_as 'a session without a program' 2 'WRONG_STATE|session|plain|||start' resume plain
check_is 'exec --resume is the same' 'again' "$(tidemark exec --session er -- sh -c '[ -e er ] && echo again || { touch er; exit 1; }' >/dev/null 2>&1; tidemark exec --resume er)"
refuses_as 'exec --resume takes no program' 2 'INVALID|argument||program||' exec --resume er -- true

# A program that is gone, or has changed.
write_script vanishes <<'E'
exit 1
E
tidemark exec --session van -- ./vanishes >/dev/null 2>&1
mv vanishes away
refuses_as 'a program that is gone' 127 'NOT_FOUND|file||*||' resume van
write_script vanishes <<'E'
echo other
E
check_is 'a program that has changed runs' other "$(tidemark resume van 2>err)"
check 'and that is said' grep -q 'vanishes has changed since it ran last: recorded steps return their results from the log' err
check_is 'and recorded' 1 "$(tidemark log show van | grep -c '"program_changed":true')"
# One that has not been touched for a moment is known by its size and times, and not read again.
write_script still <<'E'
exit 1
E
n=0
until tidemark exec --session "still-$n" -- ./still >/dev/null 2>&1
    tidemark log show "still-$n" | grep -q '"program_stat":"'; do
    n=$((n + 1))
done
tidemark resume "still-$n" >/dev/null 2>err
check_is 'a program that lies still is the same' 0 "$(grep -c 'has changed' err)"
check_is 'its digest is recorded with each run' 1 "$(tidemark log show "still-$n" | grep -o '"program_digest":"[0-9a-f]*"' | sort -u | wc -l)"
cp -p still before
printf '#!/bin/bash\nexit 0\n' >still
touch -r before still
tidemark resume "still-$n" >/dev/null 2>err
check 'one of the same size and time is read, and has changed' grep -q 'still has changed since it ran last' err
mkdir inside
(cd inside && tidemark exec --session cwd -- sh -c 'exit 1') >/dev/null 2>&1
rmdir inside
refuses_as 'a directory that is gone' 3 "NOT_FOUND|file||$work/inside||" resume cwd

# The start itself fails: behind the gate there is nothing that can run.
printf '#!/nonexistent/interpreter\n' >bad
chmod +x bad
check_status 'a start that fails' 127 tidemark exec --session bad -- ./bad
check_is 'is an interruption' interrupted_startup "$(status_of bad)"
check_is 'with its code' start_failed "$(field bad run.interrupted '$.error.code')"
printf '#!/bin/sh\necho mended\n' >bad
check_is 'and goes on when it is mended' mended "$(tidemark resume bad 2>/dev/null)"

# ---- held, cancelled ----
rm -f slow.pid trapped
"$TIDE_BIN" exec --session held -- ./slow >/dev/null 2>err &
runner=$!
wait_for test -s slow.pid
on_files && wait_for test -s s.files/sessions/held.tokens.json # its holder writes it a little later
refuses_as 'a session that is run cannot be run twice' 4 'HELD|session|held|||cancel' exec --session held -- true
refuses_as 'nor resumed' 4 'HELD|session|held|||cancel' resume held
check_is 'a message is queued for who runs it' 1 "$(tidemark sessions send held hello | grep -c '^queued for session held')"
check 'cancel' tidemark cancel held --reason enough
wait "$runner"
check_is 'the run ends with exit status 1' 1 $?
check 'and one line' grep -q 'session held was cancelled' err
check_is 'cancelled' cancelled "$(tidemark sessions show held --json | json '$.outcome')"
check 'the program was asked first' test -e trapped
check_is 'cancel of what is over' 'session held had nothing to cancel: it is unchanged' "$(tidemark cancel held)"
check_is 'as JSON' nothing "$(tidemark cancel held --json | json '$.cancelled')"
refuses_as 'cancel of what is not there' 3 'NOT_FOUND|session|nothing|||list_sessions' cancel nothing

# ---- the same session again ----
check_is 'a second run of a session' second "$(tidemark exec --session ok -- echo second)"
check_is 'has its own start' 2 "$(tidemark log show ok | grep -c '"kind":"run.started"')"

# ---- a terminal ----
if command -v script >/dev/null; then
    tty_run() {
        env script -qec "$1" /dev/null </dev/null | tr -d '\r'
    }
    check_is 'on a terminal the program sees one' 'tty' "$(tty_run "'$TIDE_BIN' exec --session tty -- sh -c '[ -t 1 ] && echo tty'")"
    check_is 'its output is recorded' 'tty' "$(field tty run.completed '$.output.stdout')"
    check_is 'in a pipe it sees a pipe' 'no' "$(tidemark exec -- sh -c '[ -t 1 ] || echo no')"
else
    skip 'on a terminal the program sees one' 'no script(1) here'
fi

# ---- the examples, as their comments say ----
examples=$TIDE_SOURCE/examples
cp -r "$examples/deploy" place
(cd place && tidemark exec --session deploy -- ./deploy.sh) >/dev/null 2>&1
check_is 'deploy.sh asks, and has not released' '7 no' "$? $(test -e place/place/released || echo no)"
check_is 'it releases when it may' released "$(tidemark resume deploy --input yes | tail -n 1)"
check_is 'having migrated once' 1 "$(wc -l <place/place/migrated)"
cp -r "$examples/deploy" place2
(cd place2 && tidemark exec --session deploy-no -- ./deploy.sh) >/dev/null 2>&1
check_end 'a no ends it' 1 tidemark resume deploy-no --input no
check 'and nothing is migrated or released' test ! -e place2/place/migrated -a ! -e place2/place/released
nobody_reads() {
    ! pgrep -f "cat $1" >/dev/null
}
# Killed in the step that must happen once, before and after it happened: once in the end.
for when in before after; do
    cp -r "$examples/deploy" "cut-$when"
    hold="$work/cut-$when/hold"
    mkfifo "$hold"
    if [ $when = before ]; then
        sed "s|^echo migrated|cat '$hold'; &|" "$examples/deploy/migrate" >"cut-$when/migrate"
    else
        echo "cat '$hold'" >>"cut-$when/migrate"
    fi
    (cd "cut-$when" && tidemark exec --session "cut-$when" -- ./deploy.sh) >/dev/null 2>&1
    "$TIDE_BIN" resume "cut-$when" --input yes >/dev/null 2>&1 &
    runner=$!
    exec 7>"$hold" # opens when the migration has come so far
    kill -KILL "$runner"
    wait "$runner" 2>/dev/null
    wait_for nobody_reads "$hold" # or it would go on for a moment
    exec 7>&-
    cp "$examples/deploy/migrate" "cut-$when/migrate"
    check_is "deploy.sh killed $when it migrated: once" 'released 1' \
        "$(tidemark resume "cut-$when" 2>/dev/null | tail -n 1) $(wc -l <"cut-$when/place/migrated")"
done
check_status 'nightly.sh sleeps' 7 tidemark exec --session nightly -- "$examples/nightly.sh" "$work/night" 1h
check_is 'and goes on' 'done' "$(tidemark resume nightly --now | tail -n 1)"
check_is 'one message' 1 "$(wc -l <night/messages)"
if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
    check_status 'agent.py asks' 7 tidemark exec --session agent -- python3 "$examples/agent.py"
    check_status 'and works' 7 tidemark resume agent --input 'count the files'
    check_is 'and ends' '1 turn(s) done' "$(tidemark resume agent --input 'done' | tail -n 1)"
else
    skip 'agent.py' 'no python3 here'
fi

check_is 'no process stays behind' '' "$(pgrep -f "$work" | grep -vx $$)"
finish
