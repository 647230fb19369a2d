#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The setting notify: a program hears of what became of runs, at least once each, under an id that stays the same; what was sent
# is in the log. It is never in the way of a run, and no session names it.
#
#   notify.sh KILL_AT    a program that kills another behind its n-th sync (tests/real/kill_at.c)
# shellcheck disable=SC2016,SC2317 # programs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
kill_at=${1:?the program kill_at}
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

# What was received: the JSON, a line each. `how`: what it does then.
cat >receiver <<'END'
#!/bin/sh
how=$(cat "$(dirname "$0")/how" 2>/dev/null)
cat >>"$(dirname "$0")/received"
eval "$how"
END
chmod +x receiver
: >received
tidemark config set notify "[\"$work/receiver\",\"--quiet\"]"
tidemark config set notify_retry_ms 1

# field NAME: of each that was received.
field() {
    sqlite3 :memory: "SELECT json_extract(value, '\$.$1') FROM json_each('[' || replace(trim(CAST(readfile('received') AS TEXT), char(10)), char(10), ',') || ']')"
}

# events ID KIND: how many its log has.
events() {
    tidemark log show "$1" --json | grep -c "\"kind\":\"$2\""
}

# is_sent ID N: so many of its notifications are recorded as sent.
is_sent() {
    [ "$(events "$1" notify.sent)" -eq "$2" ]
}

# ---- who wrote the transition sends it ----
tidemark exec --session well -- true >/dev/null 2>&1
check 'a completed run is sent' wait_for is_sent well 1
check_is 'with its transition' completed "$(field transition)"
seq=$(tidemark log show well --json | sed -n 's/^{"seq":\([0-9]*\),.*"kind":"run.completed".*/\1/p')
check_is 'under an id of session and seq' "well:$seq" "$(field id)"
check_is 'and with the session' 'idle completed' "$(field session.status) $(field session.outcome)"
check_is 'the event names it' "well:$seq" "$(tidemark log show well --json | sed -n 's/.*"notify_id":"\([^"]*\)".*/\1/p')"
check_is 'nothing is left to send' '' "$(tidemark notify)"
check_is 'and the session is not live any more' '0 checked, 0 interrupted, 0 timed out, 0 with an expired token, 0 due' "$(tidemark recover)"

: >received
tidemark exec --session bad -- sh -c 'exit 3' >/dev/null 2>&1
check 'a failed run is sent' wait_for is_sent bad 1
check_is 'as failed, with its error' 'failed sh ended with exit status 3' "$(field transition) $(field error)"

: >received
tidemark exec --session asks -- sh -c 'tidemark() { "$TIDE_BIN" "$@"; }; tidemark wait ok --kind approval --question "Ship it?" && tidemark sleep nap 0s' >/dev/null 2>&1
check 'a wait is sent' wait_for is_sent asks 1
check_is 'with its question' 'waiting approval Ship it?' "$(field transition) $(field wait_kind) $(field question)"
check_is 'and the command that answers it, wherever it is read' "tidemark --store $(on_files || echo sqlite:)$TIDEMARK_STORE resume asks --input yes" "$(field 'session.next[0].command')"
check 'the answer is taken' tidemark resume asks --input yes
check 'its end is sent, its sleep is not' wait_for is_sent asks 2
check_is 'in their order' 'waiting completed' "$(field transition | paste -sd ' ')"

: >received
TZ=Asia/Tokyo tidemark exec --session away -- sh -c 'tidemark() { "$TIDE_BIN" "$@"; }; tidemark wait ok --kind input' >/dev/null 2>&1
check 'in another zone' wait_for is_sent away 1
check_is 'times in its sentences are UTC, as in all JSON' UTC "$(field session.why | sed 's/^it waits for input, since [-0-9]* [0-9:]* //')"
says_when() {
    TZ=Asia/Tokyo tidemark notify | holds ' JST on'
}
sends_later() {
    tidemark notify >/dev/null
    is_sent later 1
}
echo 'exit 1' >how
tidemark config set notify_retry_ms 100
tidemark exec --session later -- true >/dev/null 2>&1
check 'people see in their own time when one that failed is tried again' wait_for says_when
rm how
check 'then it is sent' wait_for sends_later
tidemark config set notify_retry_ms 1

: >received
tidemark sessions new --id cut >/dev/null
tidemark log append cut --kind run.started --data '{"run_id":"r1","boot_id":"b1","argv":["./job"]}' >/dev/null
check 'recovery finds a run that was cut' tidemark recover
check_is 'and has sent it when it ends' 'interrupted 1' "$(field transition) $(events cut notify.sent)"

python=
for python in python3 /usr/bin/python3 ''; do
    [ -n "$python" ] && "$python" -c 'import jsonschema' 2>/dev/null && break
done
if [ -n "$python" ]; then
    tidemark schema notification >.schema.notification
    mkdir .documents
    cp received .documents/0
    check_is 'what is sent is as the schema has it' '' "$(printf '0\tnotification\n' | "$python" "$TIDE_SOURCE/tests/cli/schema.py" 2>&1)"
else
    skip 'what is sent is as the schema has it' 'no python3-jsonschema here'
fi

# ---- only what is asked for ----
tidemark config set notify_on '["failed"]'
tidemark exec --session quiet -- true >/dev/null 2>&1
check_is 'what notify_on does not name is not marked' 0 "$(tidemark log show quiet --json | grep -c '"notify":true')"
tidemark config set notify_on '["waiting","interrupted","failed","completed"]'
refuses_as 'a word that is no transition is refused' 2 'INVALID|key||notify_on||' config set notify_on '["ended"]'
refuses_as 'a program that is not a list is refused' 2 'INVALID|key||notify||' config set notify '"sh -c x"'

check 'config check names a program that is not there' holds 'notify: ' < <(TIDEMARK_NOTIFY='["/nonexistent/tell"]' tidemark config check)

# ---- not in the way: a program that hangs, one that fails ----
echo 'exec sleep 600' >how
tidemark config set notify_timeout_ms 300
began=$SECONDS
tidemark exec --session hung -- true >/dev/null 2>&1
check 'the run does not wait for the program' test $((SECONDS - began)) -lt 30
has_failed() { [ "$(events hung notify.failed)" -ge 1 ]; }
check 'one that hangs is ended, and that is recorded' wait_for has_failed
check 'with the time of the next try' holds '"retry_at":"' < <(tidemark log show hung --json)
echo 'echo no route >&2; exit 1' >how
tidemark exec --session lost -- true >/dev/null 2>&1
given_up() { tidemark recover >/dev/null && [ "$(tidemark log show "$1" --json | grep '"notify.failed"' | grep -vc retry_at)" -eq 1 ]; }
check 'one that fails is tried again by recovery, and given up in the end' wait_for given_up lost
check_is 'after eight tries' 8 "$(events lost notify.failed)"
check 'each with its reason' holds 'exit status 1: no route' < <(tidemark log show lost --json)
check 'also the one that hung' wait_for given_up hung
check_is 'then nothing is left' '' "$(tidemark notify)"
rm how
tidemark config set notify_timeout_ms 10000

# ---- killed anywhere ----
# ids ID: the transitions of a session that ask for it, and those that were received.
asked() {
    tidemark log show "$1" --json | grep '"notify":true' | sed "s/^{\"seq\":\([0-9]*\),.*/$1:\1/"
}
all_received() {
    tidemark recover >/dev/null 2>&1
    [ "$(asked "$1")" = "$(field id | grep "^$1:" | sort -u -t : -k 2n)" ] && is_sent "$1" "$(asked "$1" | wc -l)"
}
: >received
for n in $(seq 40); do
    "$kill_at" "$n" "$TIDE_BIN" exec --session "k$n" -- true </dev/null >/dev/null 2>&1 && ended=0 || ended=$?
    [ "$ended" -ne 77 ] || break
    tidemark sessions show "k$n" >/dev/null 2>&1 || continue
    check "killed behind sync $n of the run: each transition is received and recorded" wait_for all_received "k$n"
    [ "$ended" -eq 0 ] || break
done
if [ "$ended" -eq 77 ]; then
    skip 'killed behind every sync' 'nothing can be traced here'
else
    check 'that was every sync of it' test "$ended" -eq 1
    # The process that sends: killed by its own program, before and after it was received; and behind each sync.
    for how in 'kill -9 $PPID' 'kill -9 $PPID; exit 1'; do
        : >received
        echo "$how" >how
        id=p$((${#how} % 10))
        tidemark exec --session "$id" -- true >/dev/null 2>&1
        check 'a sender that was killed has sent' wait_for grep -q "\"id\":\"$id:" received
        rm how
        check 'it is sent again under the same id, and recorded once' wait_for all_received "$id"
        check "$id: twice" test "$(field id | grep -c "^$id:")" -ge 2
    done
    echo 'exit 1' >how
    tidemark exec --session sender -- true >/dev/null 2>&1
    has_failed() { [ "$(events sender notify.failed)" -ge 1 ]; }
    wait_for has_failed
    rm how
    : >received
    for n in $(seq 40); do
        "$kill_at" "$n" "$TIDE_BIN" notify </dev/null >/dev/null 2>&1 && ended=0 || ended=$?
        [ "$ended" -eq 0 ] || break
    done
    check 'a sender that is killed behind every sync' wait_for all_received sender
fi

# ---- many at once ----
: >received
echo 'sleep 0.2' >how
for n in $(seq 8); do tidemark exec --session "m$n" -- true >/dev/null 2>&1; done
senders=0 # of this store: by their command lines
for file in /proc/[0-9]*/cmdline; do
    case $( (tr '\0' ' ' <"$file") 2>/dev/null) in "tidemark --store "*"$work"*" notify ") senders=$((senders + 1)) ;; esac
done
check 'two senders at most for a store' test "$senders" -le 2
rm how
every() { for n in $(seq 8); do is_sent "m$n" 1 || return 1; done; }
check 'and all are sent' wait_for every

# ---- a chat ----
: >received
cat >talk.json <<'END'
{"turns": [{"text": "I look.", "calls": [{"name": "bash", "args": {"command": "true"}}]}, {"text": "Done."}]}
END
talk=$(tidemark chat --script talk.json --output json -p go </dev/null 2>/dev/null | json '$.session_id')
check 'the question of a chat is sent' wait_for is_sent "$talk" 1
check_is 'with what it asks about' 'waiting approval chat' "$(field transition) $(field wait_kind) $(field session.kind)"
check 'its answer is taken' tidemark resume "$talk" --input yes --script talk.json
check 'its end is sent too' wait_for is_sent "$talk" 2
check_is 'each once, in their order' 'waiting completed' "$(field transition | paste -sd ' ')"

# ---- a token that expires is no transition: the run still waits ----
: >received
tidemark sessions new --id expires >/dev/null
tidemark log append expires --kind run.started --data '{"run_id":"r1","argv":["./job"]}' >/dev/null
tidemark log append expires --kind token.minted --data '{"token_id":"t1","expires_at":"2001-01-01T00:00:00.000Z"}' >/dev/null
tidemark log append expires --kind run.waiting --data '{"run_id":"r1","wait_kind":"input","resume_token_id":"t1"}' >/dev/null
check 'its wait is sent' wait_for is_sent expires 1
check 'recovery records that the token has expired' eval "tidemark recover | grep -q '1 with an expired token'"
check_is 'the event is there, and asks for nothing' '1 1' "$(events expires token.expired) $(tidemark log show expires --json | grep -c '"notify":true')"
check_is 'nothing is left to send' '' "$(tidemark notify)"
check_is 'and nothing more was' waiting "$(field transition)"

# ---- retention keeps what has something to send ----
: >received
echo 'exit 1' >how
tidemark exec --session unsent -- true >/dev/null 2>&1
is_tried() { [ "$(events unsent notify.failed)" -ge 1 ]; }
check 'it could not be sent' wait_for is_tried
TIDEMARK_NOTIFY='[]' TIDEMARK_RETENTION=1ms tidemark recover >/dev/null 2>&1
check 'a session with a notification that was not delivered is kept' tidemark sessions show unsent
rm how
is_delivered() { tidemark recover >/dev/null 2>&1 && is_sent unsent 1; }
check 'it is delivered' wait_for is_delivered
is_gone() { TIDEMARK_RETENTION=1ms tidemark recover >/dev/null 2>&1 && ! tidemark sessions show unsent >/dev/null 2>&1; }
check 'then it goes' wait_for is_gone

# ---- what came from elsewhere ----
tidemark sessions new --id other --metadata '{"notify":["touch","named-by-the-session"]}' >/dev/null
tidemark log append other --kind run.started --data '{"run_id":"r1","argv":["touch","ran"]}' >/dev/null
TIDEMARK_NOTIFY='["/nonexistent"]' tidemark log append other --kind run.completed --data '{"run_id":"r1","notify":true}' >/dev/null
tidemark sessions export other >other.jsonl
: >received
TIDEMARK_STORE=$(store_at "$work/elsewhere")
tidemark store init >/dev/null
id=$(tidemark sessions import other.jsonl)
tidemark recover >/dev/null
check_is 'what was imported sends nothing' '' "$(tidemark notify)$(cat received)"
tidemark sessions trust "$id" --yes >/dev/null 2>&1
tidemark recover >/dev/null
check_is 'what it asked for before it was trusted neither' '' "$(tidemark notify)$(cat received)"
is_deleted() { TIDEMARK_RETENTION=1ms tidemark recover >/dev/null 2>&1 && ! tidemark sessions show "$1" >/dev/null 2>&1; }
TIDEMARK_STORE=$(store_at "$work/third")
id=$(tidemark sessions import other.jsonl)
check 'what was imported, and will never send, is not kept for it' wait_for is_deleted "$id"
check 'and a program that it names is not run' test ! -e named-by-the-session
finish
