#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Status in people's words wherever people read it, codes in JSON; what a resumed program says about its steps.
# shellcheck disable=SC2016,SC2094,SC2317 # the programs are written with dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset TMUX
TIDEMARK_STORE=$(store_at "$work/s")
PATH=$(dirname "$TIDE_BIN"):$PATH
export TIDEMARK_STORE PATH TERM=xterm LC_ALL=C.UTF-8

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}
make() {
    tidemark sessions new --id "$1" >/dev/null
    put "$1" run.started '{"run_id":"r1","boot_id":"b1","argv":["./job"]}'
}

# ---- the words --------------------------------------------------------------------------------------------------------

make gone
make killed
put killed run.interrupted '{"run_id":"r1","reason":"process_restart"}'
make stopped
put stopped run.interrupted '{"run_id":"r1","reason":"shutdown","by":"person"}'
make asks
put asks token.minted '{"token_id":"t1","run_id":"r1"}'
put asks run.waiting '{"run_id":"r1","wait_name":"ok","wait_kind":"approval","resume_token_id":"t1"}'
make late
put late token.minted '{"token_id":"t1","run_id":"r1"}'
put late run.waiting '{"run_id":"r1","wait_kind":"input","resume_token_id":"t1","deadline_at":"2001-01-01T00:00:00.000Z"}'
make asleep
put asleep run.waiting '{"run_id":"r1","wait_name":"nap","wait_kind":"timer","wait_key":"r1/nap/1","due_at":"2999-01-01T00:00:00.000Z"}'
make finished
put finished run.completed '{"run_id":"r1"}'
make failed
put failed run.failed '{"run_id":"r1","error":{"message":"no disk"},"resumable":true}'
tidemark sessions new --id fresh >/dev/null

tidemark sessions list >list
while IFS='=' read -r id words codes; do
    check "$id in a list" grep -q "^$id  *$words  *[a-z]" list
    check "$id in show" eval "tidemark sessions show $id | grep -q '^status  *$words\$'"
    check "$id in why" eval "tidemark why $id | head -n 1 | grep -q '^$id  $words  [a-z]'"
    check "$id on a timeline" eval "tidemark sessions timeline $id | head -n 1 | grep -q '  $words\$'"
    check_is "$id in JSON" "$codes" "$(for m in status reason; do tidemark why "$id" --json | json "\$.$m"; done | paste -sd '|')"
done <<'END'
gone=interrupted (its process ended)=interrupted_startup|owner_gone
killed=interrupted (its process ended)=interrupted_startup|process_restart
stopped=interrupted (stopped)=interrupted_startup|shutdown
asks=waiting (approval)=waiting|approval
late=interrupted (deadline passed)=interrupted_waiting|wait_timeout
asleep=waiting (sleeps)=waiting|timer
finished=completed=idle|completed
failed=failed=idle|failed
fresh=idle=idle|none
END
check_is 'the timeline as JSON keeps the codes' 'idle, failed' "$(tidemark sessions timeline failed --json | json '$.status')"
tidemark sessions timeline killed >drawn
check 'the end of a run in words' grep -q '✗ interrupted (its process ended), detected at ' drawn
for id in gone killed stopped late; do
    { tidemark why $id; tidemark sessions show $id; tidemark sessions timeline $id; } >all
    check "no code is left in what people read of $id" eval '! grep -q "_startup\|_waiting\|process_restart\|owner_gone\|wait_timeout" all'
done
check 'recovery in words' eval "tidemark recover --dry-run >found && grep -q '^timed out  *late: ' found && ! grep -q timed_out found"
check 'who stopped it is said once' eval "tidemark why stopped | grep -q 'a person stopped it at 2.*, so it is not resumed automatically' && ! tidemark why stopped | holds 'its process was stopped'"
check_is 'a point in time is said once' 1 "$(tidemark why failed | grep -c 20..-)"

# ---- times -----------------------------------------------------------------------------------------------------------

export TZ='<+0530>-5:30'
check 'people read local times in why' eval "tidemark why asleep | holds 'until 2999-01-01 05:30:00 +0530'"
check 'with --utc they do not' eval "tidemark --utc why asleep | holds 'until 2999-01-01 00:00:00 UTC'"
check 'JSON has UTC' eval "tidemark why asleep --json | holds 'until 2999-01-01 00:00:00 UTC'"
check 'and so has the state, which is JSON' eval "tidemark state asleep | holds 'until 2999-01-01 00:00:00 UTC'"
check 'in show' eval "tidemark sessions show late | grep -q '^created .* +0530 (' && tidemark --utc sessions show late | grep -q '^created .* UTC ('"
check 'on a timeline' eval "tidemark sessions timeline late | sed -n 2p | grep -q ' +0530, over '"
check 'what recovery says' eval "tidemark recover --dry-run | holds 'the deadline, which was 2001-01-01 05:30:00 +0530'"
tidemark exec --session zone -- tidemark wait ok --kind approval --deadline 2999-01-01T00:00:00Z 2>err
check 'a wait names its deadline in local time' grep -q '^  deadline  2999-01-01 05:30:00 +0530$' err
tidemark exec --session nap -- tidemark sleep nap 2999-01-01T00:00:00Z 2>err
check 'a sleep, too' grep -q 'sleeps until 2999-01-01 05:30:00 +0530: nap' err
refuses_as 'and an error' 2 'WRONG_STATE|session|nap|||resume' resume nap
export TZ=UTC

# ---- steps -----------------------------------------------------------------------------------------------------------

# `migrate` is killed with its run the first time; the probe finds that it had not happened.
cat >deploy.sh <<'END'
#!/bin/sh
set -e
tidemark step build --effect pure -- echo built
tidemark step migrate --effect once --probe 'exit 1' -- sh -c '[ -e cut ] || { touch cut; kill -9 $(cat pid); }; echo migrated'
tidemark step release --effect idempotent -- sh -c 'exit ${RELEASE:-3}'
END
chmod +x deploy.sh
sh -c 'echo $$ >pid; exec tidemark exec --session dd -- ./deploy.sh' >/dev/null 2>&1
tidemark resume dd >/dev/null 2>err || true
check 'the last line names the step that failed' eval "tail -n 1 err | grep -q \"^tidemark: ./deploy.sh ended with exit status 3 at step 'release': \""
check 'and so does why' eval "tidemark why dd | holds \"at step 'release'\""
tidemark sessions timeline dd >drawn
check 'the timeline draws what the probe found' eval "grep -A1 '├ migrate .* ran again$' drawn | grep -q 'probe: it had not happened'"
check_is 'as JSON too' 'probe: it had not happened' "$(tidemark sessions timeline dd --json | json '$.runs[1].items[0].found')"
check_is 'nothing about kept steps without a terminal' '' "$(grep kept err)"
cat >tolerant.sh <<'END'
#!/bin/sh
tidemark step first -- false
tidemark step second -- true
exit 4
END
chmod +x tolerant.sh
tidemark exec --session tolerant -- ./tolerant.sh 2>err
check 'a failure that the program went past is not named' eval "grep -q 'exit status 4: ' err && ! grep -q 'first' err"

# The count is that of the chain: the program is begun anew.
rm -f cut
tidemark exec --session "done" -- sh -c 'tidemark step one -- true; tidemark step two -- true' >/dev/null
sh -c 'echo $$ >pid; exec tidemark exec --session done -- ./deploy.sh' >/dev/null 2>&1
check 'why counts the steps of the current chain' eval "tidemark why done | holds '; 1 step had been finished; it was in the middle of migrate'"

begin_screen 'kept steps at a terminal'
wait_for terminal new-session -d -x 80 -y 24 "RELEASE=0 $(printf '%q ' "$TIDE_BIN" resume dd); echo ENDED; read -r _"
wait_for is_shown ENDED
terminal capture-pane -p -e >screen
check 'kept steps say so at a terminal' eval "grep -q 'build: kept from run 1' screen && grep -q 'migrate: kept from run 2' screen"
check 'dim' grep -q '\[2mbuild: kept' screen
check 'one that runs does not' eval '! grep -q "release: kept" screen'
finish
