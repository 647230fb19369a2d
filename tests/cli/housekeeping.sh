#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lists in the order of changes, deleting by filters, and the setting `retention`, which recovery applies.
# shellcheck disable=SC2016,SC2317 # functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset TMUX
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE TERM=xterm LC_ALL=C.UTF-8

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}
make() {
    tidemark sessions new --id "$1" --agent "${2:-a}" >/dev/null
    put "$1" run.started '{"run_id":"r1","argv":["./job"]}'
}
ids() {
    tidemark sessions list --ids "$@" | paste -sd ' '
}

for id in first second third; do
    make $id
    put $id run.completed '{"run_id":"r1"}'
done
check_is 'what changed last is first' 'third second first' "$(ids)"
put first my.note '{}'
check_is 'whenever it was made' 'first third second' "$(ids)"
check_is 'in JSON as well' first "$(tidemark sessions list --json | json '$.sessions[0].session_id')"
check_is 'the limit is of those' 'first third' "$(ids --limit 2)"
check_is 'no limit' 'first third second' "$(ids --limit 0)"
check_is 'since then' '' "$(ids --since 2999-01-01T00:00:00Z)"
check_is 'since a while ago' 'first third second' "$(ids --since 1h)"
check_is 'with a kind' 'first third second' "$(ids --kind program --since 1d)"
check_is 'of another kind there is none' '' "$(ids --kind chat)"
refuses_as 'a time that is none' 2 'INVALID|argument||since||' sessions list --since often

# ---- deleting ---------------------------------------------------------------------------------------------------------

make asks
put asks token.minted '{"token_id":"t1","run_id":"r1"}'
put asks run.waiting '{"run_id":"r1","wait_name":"ok","wait_kind":"approval","resume_token_id":"t1"}'
make cut
put cut run.interrupted '{"run_id":"r1","reason":"process_restart"}'
make failed other
put failed run.failed '{"run_id":"r1","error":{"message":"no"},"resumable":true}'
make queued
put queued run.completed '{"run_id":"r1"}'
tidemark log append queued --input --kind queue.added --data '{"queue_id":"q1","content":"and this"}' >/dev/null
make parent
put parent run.completed '{"run_id":"r1"}'
tidemark sessions fork parent --at 3 --id child >/dev/null
put child run.started '{"run_id":"r2"}'
put child run.waiting '{"run_id":"r2","wait_kind":"timer","due_at":"2999-01-01T00:00:00.000Z","wait_key":"r2/n/1"}'
all=$(ids)

refuses_as 'nothing to go by' 2 'INVALID|argument||id||' sessions delete
refuses_as 'an id and a filter' 2 'INVALID|argument||id||' sessions delete first --status completed
refuses_as 'nobody can be asked' 2 'INVALID|argument||yes||' sessions delete --older-than 0s
check_is 'and nothing is gone' "$all" "$(ids)"
check_is 'a dry run shows what is over' 'failed first parent second third' \
    "$(tidemark sessions delete --older-than 0s --dry-run --json | python3 -c 'import json,sys; print(" ".join(sorted(s["session_id"] for s in json.load(sys.stdin)["sessions"])))')"
check_is 'and deletes nothing' "$all" "$(ids)"
check 'for people' eval "tidemark sessions delete --status failed --dry-run | grep -q '^1 session would be deleted$'"
check 'one without a title has its agent there' eval "tidemark sessions delete --status failed --dry-run | grep -q '  failed *other  '"
check_is 'older than it is' 0 "$(tidemark sessions delete --older-than 1d --yes --json | json '$.deleted')"
check_is 'by agent and status' 1 "$(tidemark sessions delete --agent other --status failed --yes --json | json '$.deleted')"
check 'it is gone' eval '! tidemark sessions show failed 2>/dev/null'
tidemark sessions delete --status completed --kind program --older-than 0s --yes >out
check 'what has forks is kept, and that is said' eval "grep -q '^parent .*has forks' out && grep -q 'the others were kept' out"
check_is 'a status takes what it says' 'asks child cut parent' "$(ids | tr ' ' '\n' | sort | paste -sd ' ')"
tidemark sessions delete child >/dev/null
tidemark sessions fork parent --at 3 --id twin >/dev/null
check_is 'a fork goes before what it stands on' 2 "$(tidemark sessions delete --older-than 0s --yes --json | json '$.deleted')"

# ---- retention --------------------------------------------------------------------------------------------------------

tidemark sessions list --ids | while read -r id; do tidemark cancel "$id" >/dev/null 2>&1; done
for id in $(tidemark sessions list --ids); do tidemark sessions delete "$id" >/dev/null 2>&1; done
for id in $(tidemark sessions list --ids); do tidemark sessions delete "$id" >/dev/null 2>&1; done
check_is 'all is gone' '' "$(ids)"
make old
put old run.completed '{"run_id":"r1"}'
make asks
put asks token.minted '{"token_id":"t1","run_id":"r1"}'
put asks run.waiting '{"run_id":"r1","wait_name":"ok","wait_kind":"approval","resume_token_id":"t1"}'
make cut
put cut run.interrupted '{"run_id":"r1","reason":"process_restart"}'
make queued
put queued run.completed '{"run_id":"r1"}'
tidemark log append queued --input --kind queue.added --data '{"queue_id":"q1","content":"and this"}' >/dev/null
make parent
put parent run.completed '{"run_id":"r1"}'
tidemark sessions fork parent --at 3 --id child >/dev/null
tidemark exec --session sent -- true >/dev/null 2>&1
tidemark sessions send --queue sent 'and that' >/dev/null
tidemark recover >/dev/null
check_is 'it is off by default' 7 "$(ids | wc -w)"
check 'and so it stays with a long time' eval 'TIDEMARK_RETENTION=30d tidemark recover >/dev/null && test "$(ids | wc -w)" = 7'
check_is 'a dry run says what would go' 2 "$(TIDEMARK_RETENTION=1ms tidemark recover --dry-run --json | tail -n 1 | json '$.summary.deleted')"
check_is 'and deletes nothing' 7 "$(ids | wc -w)"
tidemark config set retention 1ms
check 'recovery applies it' eval "tidemark recover | grep -q ', 2 older than .retention. deleted'"
check_is 'never what waits, is interrupted, has a queue or is forked from' 'asks cut parent queued sent' "$(ids | tr ' ' '\n' | sort | paste -sd ' ')"
check 'what is forked from goes when its forks are gone' eval "tidemark recover >/dev/null; ! tidemark sessions show parent 2>/dev/null"
refuses_as 'a time that is none' 2 'INVALID|key||retention||' config set retention often

begin_screen 'at a terminal'
for i in $(seq 52); do tidemark sessions new --id "n$i" >/dev/null; done
wait_for terminal new-session -d -x 80 -y 70 "sh"
terminal send-keys "$(printf '%q ' "$TIDE_BIN" sessions list); echo EN''DED" Enter
wait_for is_shown ENDED
check_is 'a terminal shows the last 50' 50 "$(terminal capture-pane -p | grep -c ' idle \| waiting \| interrupted \| completed ')"
check 'and says that there are more' is_shown 'the 50 that changed last; --limit 0 shows all'
terminal send-keys "clear; $(printf '%q ' "$TIDE_BIN" sessions delete --kind log --status idle)" Enter
wait_for is_shown 'Delete 52 sessions permanently? \[y/N\]'
terminal send-keys n Enter
wait_for is_shown 'nothing was deleted'
check_is 'a no deletes nothing' 56 "$(ids | wc -w)"
terminal send-keys "clear; $(printf '%q ' "$TIDE_BIN" sessions delete --kind log --status idle)" Enter
wait_for is_shown 'Delete 52 sessions permanently? \[y/N\]'
terminal send-keys y Enter
wait_for is_shown '^52 deleted'
check_is 'a yes does' 4 "$(ids | wc -w)"
finish
