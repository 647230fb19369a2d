#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sessions of other programs in a directory of files: what only their snapshots say is in the log after the first write, recovery
# finds their open runs, and the index of tokens keeps every token.
#
#   store_foreign.sh KILL_AT    a program that kills another behind its n-th sync (tests/real/kill_at.c)
# shellcheck disable=SC2016,SC2317 # messages hold backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
kill_at=${1:?the program kill_at}
PATH="$(dirname "$TIDE_BIN"):$PATH"
export PATH TIDEMARK_STORE=files:d
logs=d/sessions

# fresh: an empty store.
fresh() {
    rm -rf d
    tidemark store init >/dev/null
}
run() {
    echo "{\"run_id\":\"run_9f5\",\"boot_id\":\"b0\",\"started_at\":\"2026-02-21T10:01:03Z\",\"ended_at\":${1:-null},\"wait\":${2:-null}}"
}
wait_block='{"kind":"tool_result","since_seq":2,"resume_token_id":"rt_5f0","deadline_at":"2026-02-21T10:11:03Z"}'
# snapshot ID RUN: as another program writes it.
snapshot() {
    cat >"$logs/$1.json" <<END
{"id":"$1","title":"Fix flaky test","working_dir":"/repo","provider":{"type":"native","model":"m1"},"created_at":"2026-02-21T10:00:00Z",
 "updated_at":"2026-02-21T10:03:14Z","last_seq":2,"run":$2,"recovery":{"last_boot_seen":"b0","interruption":null}}
END
}
# lines ID EVENT...: its log, without digests.
lines() {
    local id=$1 seq=0
    shift
    for event; do
        seq=$((seq + 1))
        echo "{\"seq\":$seq,\"ts\":\"2026-02-21T10:01:0${seq}Z\",$event}"
    done >"$logs/$id.messages.jsonl"
}
described() {
    for m in title working_dir provider.model created_at; do
        tidemark sessions show "$1" --json | json "\$.$m"
    done | xargs
}
session_file() {
    for m in title working_dir provider.model created_at; do
        json "\$.$m" <"$logs/$1.json"
    done | xargs
}
kinds() {
    tidemark log show "$1" | sed 's/.*"kind":"\([a-z._]*\)".*/\1/' | xargs
}
status() {
    tidemark why "$1" --json | json '$.status'
}
all='Fix flaky test /repo m1 2026-02-21T10:00:00.000Z'
hi='"kind":"message.user","content":"run tests"'

# ---- what the first write carries into the log ----
fresh
snapshot one "$(run '"2026-02-21T10:02:03Z"')"
lines one "$hi" "$hi"
cp $logs/one.json theirs.json
cp $logs/one.messages.jsonl theirs.jsonl
check_is 'the first write is taken' '{"seq":4}' "$(tidemark log append one --kind note.made 2>/dev/null)"
check_is 'what only the snapshot said is in the log, once' 'message.user message.user session.updated note.made' "$(kinds one)"
check_is 'and what is shown comes from there' "$all" "$(described one)"
check_is 'also beside the log' "$all" "$(session_file one)"
tidemark log append one --kind note.made >/dev/null
check_is 'the next write says nothing again' 1 "$(kinds one | tr ' ' '\n' | grep -c session.updated)"
rm $logs/one.json
check_is 'without the snapshot nothing is missing' "$all" "$(described one)"
check 'the log of the other program is kept' cmp theirs.jsonl $logs/one.original
check 'so is its snapshot' cmp theirs.json $logs/one.original-2
check 'all is proved' tidemark sessions verify one
check 'and whole' tidemark store check
check_is 'a fork is as old as it is' '' "$(tidemark sessions fork one --id forked >/dev/null && described forked | grep -o '2026-02-21T10:00:00')"
check_is 'it goes along into another store' "$all" "$(tidemark store copy files:d copy.db >/dev/null 2>&1; TIDEMARK_STORE=copy.db described one)"

snapshot said null
lines said '"kind":"session.created","title":"In the log","agent":"a"' "$hi"
tidemark log append said --kind note.made >/dev/null 2>&1
check_is 'what the log says itself stands' 'In the log /repo m1 2026-02-21T10:01:01.000Z' "$(described said)"
lines alone "$hi"
check_is 'without a snapshot nothing comes between' '{"seq":2}' "$(tidemark log append alone --kind note.made 2>/dev/null)"
lines odd "$hi"
echo '{"id":"another","title":"Not its own"}' >$logs/odd.json
check_is 'nor from a file that is no snapshot of it' '{"seq":2}' "$(tidemark log append odd --kind note.made 2>/dev/null)"
lines torn "$hi"
echo '{"id":"torn","ti' >$logs/torn.json
check_is 'nor from one that cannot be read' '{"seq":2}' "$(tidemark log append torn --kind note.made 2>/dev/null)"

# ---- a kill at any moment leaves the old one or the new one ----
n=0
until [ -e ended ]; do
    n=$((n + 1))
    fresh
    snapshot one null
    lines one "$hi"
    "$kill_at" "$n" tidemark log append one --kind note.made >out 2>/dev/null && got=0 || got=$?
    [ "$got" -eq 0 ] || echo "$got" >ended
    tidemark log append one --kind note.made >/dev/null 2>&1
    tidemark sessions verify one >/dev/null 2>&1 && [ "$(described one)" = "$all" ] &&
        [ "$(kinds one | tr ' ' '\n' | grep -c session.updated)" = 1 ] || echo "$n: $(described one): $(kinds one)" >>lost
    [ "$n" -lt 100 ] || break
done
check "killed behind each of its syncs ($n): nothing is lost and nothing is said twice" test ! -e lost
check 'all were tried' eval '[ "$n" -gt 3 ] && grep -qx "1\|77" ended # 77: nothing can be traced here'

# ---- recovery finds them ----
fresh
lines cut '"kind":"run.started","run_id":"run_9f5","boot_id":"b0"' "$hi"
lines waits '"kind":"run.started","run_id":"run_9f5"' '"kind":"run.waiting","run_id":"run_9f5","wait_kind":"tool_result","resume_token_id":"rt_5f0","deadline_at":"2026-02-21T10:11:03.000Z"'
lines ended '"kind":"run.started","run_id":"run_9f5"' '"kind":"run.completed","run_id":"run_9f5"'
lines talk "$hi"
snapshot only "$(run)"
snapshot parked "$(run null "$wait_block")"
snapshot over "$(run '"2026-02-21T10:02:03Z"')"
snapshot both "$(run)"
lines both "$hi"
cp $logs/ended.messages.jsonl ended.jsonl
snapshot late "$(run null "$wait_block")"
lines late "$hi"
tidemark recover --dry-run >dry 2>&1
check_is 'a dry run changes nothing' 'run.started message.user|message.user|' "$(kinds cut)|$(kinds both)|$(find $logs -name '*.original*' -o -name 'only.m*')"
check_is 'and finds what only a snapshot knows, alone or beside a log' 'interrupted:both interrupted:cut interrupted:only timed:late timed:parked timed:waits' \
    "$(sed -n 's/^\([a-z]*\) .* \([a-z]*\): it .*/\1:\2/p; s/^\([a-z]*\)  *\([a-z]*\): it .*/\1:\2/p' dry | sort -u | paste -sd ' ')"
tidemark doctor --json >found
check_is 'the doctor as well' 'interrupted:both interrupted:cut interrupted:only timed_out:late timed_out:parked timed_out:waits' \
    "$(grep -o '"kind":"[a-z_]*","about":"[a-z]*"' found | sed 's/"kind":"\(.*\)","about":"\(.*\)"/\1:\2/' | sort -u | paste -sd ' ')"
check 'with their number' grep -qF 'would find 3 interrupted, 3 past the deadline' found
tidemark recover >out 2>err
check_is 'recovery treats them as it was said' "$(tail -n 1 dry)" "$(tail -n 1 out)"
check_is 'a log without digests' 'run.started message.user run.interrupted status.derived' "$(kinds cut)"
check_is 'one that waited past its deadline' 'run.started run.waiting run.interrupted status.derived' "$(kinds waits)"
check_is 'it waited' interrupted_waiting "$(status waits)"
check_is 'a snapshot alone' 'session.created run.started run.interrupted status.derived' "$(kinds only)"
check_is 'of which all is known' "$all" "$(described only)"
check_is 'a snapshot alone that waits' 'session.created run.started run.waiting run.interrupted status.derived' "$(kinds parked)"
check_is 'with what it waited for' tool_result "$(tidemark sessions show parked --json | json '$.run.wait.kind')"
check_is 'a run that only the snapshot beside a log knows' 'message.user session.updated run.started run.interrupted status.derived' "$(kinds both)"
check_is 'each is interrupted' 'interrupted_startup interrupted_startup interrupted_startup' "$(status cut) $(status only) $(status both)"
check_is 'the run has its id' run_9f5 "$(tidemark log show waits --kind run.interrupted | json '$.run_id')"
check 'what has ended is left as it is' cmp ended.jsonl $logs/ended.messages.jsonl
check_is 'so is what never ran' 1 "$(grep -c . $logs/talk.messages.jsonl)"
check_is 'and a snapshot of a run that ended' '' "$(find $logs -name 'over.m*')"
check_is 'once' "$(for s in cut waits only parked both; do kinds $s; done)" "$(tidemark recover >/dev/null 2>&1; for s in cut waits only parked both; do kinds $s; done)"
check_status 'nothing of them runs before a person trusts them' 11 tidemark resume cut
check 'all is whole' tidemark store check

# ---- tokens ----
fresh
cat >asks.sh <<'END'
#!/bin/sh
tidemark wait first --kind input --question one
tidemark wait second --kind approval --question two
END
chmod +x asks.sh
tidemark exec --session asks -- ./asks.sh >/dev/null 2>token
token=$(grep -o 'rt_[A-Za-z0-9._-]*' token | tail -n 1)
tidemark token rotate asks >rotated
check_is 'a wait began at its own event' "$(tidemark log show asks --kind run.waiting | head -n 1 | json '$.seq')" \
    "$(json '$.run.wait.since_seq' <$logs/asks.json)"
tidemark resume asks --input '"a"' >/dev/null 2>&1
tidemark resume asks --input yes >/dev/null 2>&1
# tokens: of each its kind and what became of it.
tokens() {
    sqlite3 :memory: "SELECT group_concat(value ->> '\$.wait_kind' || ' ' || (value ->> '\$.status'), ', ') FROM json_each(CAST(readfile('$logs/asks.tokens.json') AS TEXT), '\$.tokens')"
}
check_is 'the index keeps every token, with its kind' 'input revoked, input revoked, approval revoked' "$(tokens)"
check_is 'each has its run and its hash' 3 "$(grep -c '"secret_hash": "' $logs/asks.tokens.json)"
rm $logs/asks.tokens.json d/cache -r
tidemark store check --rebuild >/dev/null
check_is 'it is made anew from the log' 'input revoked, input revoked, approval revoked' "$(tokens)"
check 'no secret is in it' eval "! grep -q '${token#*.}' $logs/asks.tokens.json"

finish
