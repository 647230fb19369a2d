#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where a session stands, why, since when and what moves it: `tidemark why`, `sessions show`, lists; logs made by hand.
# shellcheck disable=SC2317 # functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# make ID [RUN_FIELDS]: a session whose run has begun, by a program, unless the fields say otherwise.
make() {
    tidemark sessions new --id "$1" >/dev/null
    put "$1" run.started "${2:-{\"run_id\":\"r1\",\"boot_id\":\"b1\",\"argv\":[\"./job\"],\"pid\":4711\}}"
}

printf '#!/bin/sh\n' >job
chmod +x job

# next ID: the commands, one line.
next() {
    tidemark why "$1" --json | python3 -c 'import json,sys; print(",".join(n["command"] for n in json.load(sys.stdin)["next"]))'
}

# stands ID: status, outcome and reason.
stands() {
    local shown
    shown=$(tidemark why "$1" --json)
    for m in status outcome reason; do echo "$shown" | json "\$.$m"; done | paste -sd '|'
}

# has_member JSON PATH
has_member() {
    printf '%s' "$1" >"$work/.json"
    [ "$(sqlite3 :memory: "SELECT json_type(CAST(readfile('$work/.json') AS TEXT), '\$.$2') IS NOT NULL")" = 1 ]
}

tidemark sessions new --id fresh >/dev/null
make cut
make plain '{"run_id":"r1"}'
make killed
put killed run.interrupted '{"run_id":"r1","reason":"process_restart","resumable":true}'
make asks
put asks token.minted '{"token_id":"t1","run_id":"r1"}'
put asks run.waiting '{"run_id":"r1","wait_name":"ok","wait_kind":"approval","resume_token_id":"t1","question":"Ship it?","deadline_at":"2999-01-01T00:00:00.000Z"}'
make late
put late token.minted '{"token_id":"t1","run_id":"r1"}'
put late run.waiting '{"run_id":"r1","wait_kind":"input","resume_token_id":"t1","deadline_at":"2001-01-01T00:00:00.000Z"}'
make parked
put parked token.minted '{"token_id":"t1"}'
put parked run.waiting '{"run_id":"r1","wait_kind":"input","resume_token_id":"t1"}'
put parked run.interrupted '{"run_id":"r1","reason":"process_exit"}'
make asleep
put asleep run.waiting '{"run_id":"r1","wait_name":"nap","wait_kind":"timer","due_at":"2999-01-01T00:00:00.000Z"}'
make due
put due run.waiting '{"run_id":"r1","wait_name":"nap","wait_kind":"timer","due_at":"2001-01-01T00:00:00.000Z"}'
make finished
put finished run.completed '{"run_id":"r1"}'
make failed
put failed run.failed '{"run_id":"r1","reason":"exit","error":{"message":"exit status 3"},"resumable":true}'
make hopeless
put hopeless run.failed '{"run_id":"r1","resumable":false}'
make stopped
put stopped run.cancelled '{"run_id":"r1","reason":"user"}'
make lost
put lost run.interrupted '{"run_id":"r1","reason":"process_restart","resumable":false}'

while IFS='=' read -r id status commands; do
    check_is "$id stands where it should" "$status" "$(stands "$id")"
    check_is "$id is moved by these commands" "$commands" "$(next "$id")"
done <<END
fresh=idle|none|none=tidemark exec --session fresh -- PROGRAM
cut=interrupted_startup|interrupted|owner_gone=tidemark resume cut,tidemark cancel cut
plain=interrupted_startup|interrupted|owner_gone=tidemark cancel plain,tidemark exec --ensure --session plain -- PROGRAM
killed=interrupted_startup|interrupted|process_restart=tidemark resume killed,tidemark cancel killed
asks=waiting|none|approval=tidemark resume asks --input yes,tidemark token rotate asks,tidemark cancel asks
late=interrupted_waiting|interrupted|wait_timeout=tidemark token rotate late,tidemark resume late,tidemark cancel late
parked=interrupted_waiting|interrupted|process_exit=tidemark token rotate parked,tidemark resume parked,tidemark cancel parked
asleep=waiting|none|timer=tidemark resume asleep --now,tidemark cancel asleep
due=waiting|none|due=tidemark resume due,tidemark recover --run-due
finished=idle|completed|completed=tidemark exec --session finished -- PROGRAM
failed=idle|failed|exit=tidemark resume failed
hopeless=idle|failed|failed=tidemark exec --new-run --session hopeless -- PROGRAM
stopped=idle|cancelled|user=tidemark resume stopped
lost=interrupted_startup|interrupted|process_restart=tidemark cancel lost,tidemark exec --new-run --session lost -- PROGRAM
END

check 'the sentence names the process' eval 'tidemark why cut | holds "the process that ran it (pid 4711) is gone"'
check 'the sentence has the question and the end of the wait' \
    eval 'tidemark why asks | holds "it waits for approval: \"Ship it?\"" && tidemark why asks | holds "until 2999-01-01 00:00:00 UTC"'
check 'the sentence has the deadline that passed' eval 'tidemark why late | holds "the deadline, which was 2001-01-01 00:00:00 UTC"'
check 'the sentence has the error' eval 'tidemark why failed | holds "exit status 3"'
check 'without a program the sentence says who can resume it' eval 'tidemark why plain | holds "resume it with the program that created it"'
refuses_as 'and so does resume' 2 'WRONG_STATE|session|plain|||' resume plain
check_is 'since when it waits is the time of the wait' \
    "$(tidemark log show asks --kind run.waiting | json '$.ts')" "$(tidemark why asks --json | json '$.since')"
check_is 'since when it is over is the time of its end' \
    "$(tidemark log show finished --kind run.completed | json '$.ts')" "$(tidemark why finished --json | json '$.since')"
check_is 'every command stands on a line of its own' 3 "$(tidemark why asks | grep -c '^  tidemark ')"
check_is 'no colours without a terminal' '' "$(tidemark why cut | tr -dc '\033')"
check 'colours when asked for' eval "tidemark --color always why cut | grep -q '.\[33minterrupted (its'"
check 'the answer is one JSON document' eval 'tidemark why cut --json | is_json'
refuses_as 'an unknown session' 3 'NOT_FOUND|session|nobody|||list_sessions' why nobody
refuses_as 'no session at all' 2 'INVALID|argument||id||' why

if command -v script >/dev/null; then
    TERM=dumb script -qec "stty cols 50; $TIDE_BIN why asks" /dev/null </dev/null | tr -d '\r' >out
    check_is 'on a terminal the sentence is wrapped at words' "$(tidemark why asks | sed -n 2p)" "$(sed -n '2,/^$/p' out | grep -v '^$' | paste -sd ' ')"
    check 'and fits' test "$(wc -L <out)" -le 50
else
    skip 'on a terminal the sentence is wrapped at words' 'no script(1) here'
fi

# ---- both vocabularies ----
# words ID: graph word and error, task state and error, resumable, needs to be resumed.
words() {
    local shown
    shown=$(tidemark sessions show "$1" --json)
    for m in graph_status graph_error task_state task_error is_resumable needs_resume; do echo "$shown" | json "\$.$m"; done | paste -sd '|'
}
check_is 'words for interrupted' 'failed|interrupted|WAITING_FOR_INPUT||1|1' "$(words cut)"
check_is 'words for interrupted, never to be resumed' 'failed|interrupted|ERROR|not_resumable|0|0' "$(words lost)"
check_is 'words for a wait that is over' 'paused|interrupted|WAITING_FOR_INPUT||1|1' "$(words late)"
check_is 'words for waiting' 'paused||WAITING_FOR_INPUT||1|0' "$(words asks)"
check_is 'words for cancelled' 'cancelled||CANCELLED||1|0' "$(words stopped)"
check_is 'words for failed' 'failed||FAILED||1|1' "$(words failed)"
check_is 'words for failed for good' 'failed||FAILED||0|0' "$(words hopeless)"
check_is 'words for completed' 'completed||COMPLETED||0|0' "$(words finished)"
check_is 'a list takes the words of graphs' 'asks asleep due late parked' \
    "$(tidemark sessions list --status paused --ids | sort | paste -sd ' ')"
check_is 'a list takes the words of task sessions' lost "$(tidemark sessions list --status ERROR --ids)"

# ---- the shape of show ----
shown=$(tidemark sessions show asks --json)
check_is 'the run' 'r1|b1|' "$(for m in run_id boot_id ended_at; do echo "$shown" | json "\$.run.$m"; done | paste -sd '|')"
check_is 'when it began' "$(tidemark log show asks --kind run.started | json '$.ts')" "$(echo "$shown" | json '$.run.started_at')"
check_is 'the wait' 'approval|ok|t1|2999-01-01T00:00:00.000Z|4' \
    "$(for m in kind name resume_token_id deadline_at since_seq; do echo "$shown" | json "\$.run.wait.$m"; done | paste -sd '|')"
check_is 'nothing was interrupted' 'b1|' "$(echo "$shown" | json '$.recovery.last_boot_seen')|$(echo "$shown" | json '$.recovery.interruption')"
check_is 'an interruption' process_restart "$(tidemark sessions show killed --json | json '$.recovery.interruption')"
check_is 'without a run there is none' '|' "$(tidemark sessions show fresh --json | json '$.run')|$(tidemark sessions show fresh --json | json '$.recovery.last_boot_seen')"
make refused
put refused run.waiting '{"run_id":"r1","wait_kind":"approval","resume_token_id":"t1"}'
put refused run.cancelled '{"run_id":"r1","reason":"user"}'
check_is 'there is nothing to answer any more' '' "$(tidemark sessions show refused --json | json '$.run.wait')"
check_is 'what it was parked for when it was interrupted' input "$(tidemark sessions show parked --json | json '$.run.wait.kind')"
check_is 'an interruption of a wait' process_exit "$(tidemark sessions show parked --json | json '$.recovery.interruption')"
tidemark sessions new --id foreign >/dev/null
put foreign run.waiting '{"wait_kind":"input"}'
check_is 'a run without an id' '|input' "$(for m in run_id wait.kind; do tidemark sessions show foreign --json | json "\$.run.$m"; done | paste -sd '|')"

# Every member is there, null or not, on every store.
for member in id title working_dir provider created_at updated_at last_seq run run.run_id run.boot_id run.started_at run.ended_at \
    run.wait run.wait.kind run.wait.since_seq run.wait.resume_token_id run.wait.deadline_at recovery recovery.last_boot_seen \
    recovery.interruption; do
    check "the member $member" has_member "$shown" "$member"
done
check 'show names the next command' eval "tidemark sessions show cut | grep -q '^next  *tidemark resume cut'"

lists_agree 'list and why offer something'

finish
