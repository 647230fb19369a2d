#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The life of a session, drawn: `tidemark sessions timeline`; logs made by hand.
# shellcheck disable=SC2317 # functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# one ID KIND DATA
one() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# width: the columns of the longest line on standard input.
width() {
    LC_ALL=C.UTF-8 wc -L
}

started() {
    one job tool.started "{\"call_id\":\"r1/$1/${3:-1}\",\"tool\":\"$1\",\"effect\":\"$2\",\"attempt\":0}"
}
ended() {
    one job "tool.${2:-completed}" "{\"call_id\":\"r1/$1/${3:-1}\",\"tool\":\"$1\",\"error\":{\"message\":\"exit status 4\"}}"
}

tidemark sessions new --id job --title 'Deploy' >/dev/null
one job run.started '{"run_id":"r1","argv":["./deploy.sh","--prod"],"pid":4711}'
started build pure
ended build
started build pure 2
ended build completed 2
one job checkpoint '{"checkpoint_id":"c1","type":"safe_point"}'
started upload idempotent
one job run.interrupted '{"run_id":"r1","reason":"process_restart"}'
one job run.started '{"run_id":"r2","argv":["./deploy.sh","--prod"],"pid":4712,"resumed_from":{"run_id":"r1"}}'
started upload idempotent
ended upload
one job token.minted '{"token_id":"t1"}'
one job run.waiting '{"run_id":"r2","wait_name":"go","wait_kind":"approval","resume_token_id":"t1","question":"Ship it?"}'
one job token.consumed '{"token_id":"t1"}'
one job run.resumed '{"run_id":"r2","by":"local","input":"yes"}'
started switch once
one job run.interrupted '{"run_id":"r2","reason":"process_restart"}'
one job run.started '{"run_id":"r3","argv":["./deploy.sh","--prod"],"resumed_from":{"run_id":"r2"}}'
one job tool.unknown '{"call_id":"r1/switch/1","tool":"switch"}'
started notify pure
ended notify failed
one job my.kind '{}'
one job run.failed '{"run_id":"r3","error":{"message":"notify failed"}}'

tidemark sessions timeline job >drawn
tidemark sessions timeline job --json >as-json
check 'it is drawn' test -s drawn
check 'it fits 80 columns' test "$(width <drawn)" -le 80
wide=$(tidemark sessions timeline job --width 120 | width)
check 'and uses more when there are' test "$wide" -gt 80 -a "$wide" -le 120
check_is 'no colours without a terminal' '' "$(tr -dc '\033' <drawn)"
check 'colours when asked for' eval "tidemark --color always sessions timeline job | grep -q '.\[32m'"
check_is 'colours change nothing else' "$(cat drawn)" "$(tidemark --color always sessions timeline job | sed 's/\x1b\[[0-9;]*m//g')"
check_is 'one lane per run' 3 "$(grep -c '^ ● run ' drawn)"
check 'the program is named' grep -q 'deploy.sh --prod' drawn
check 'a step that ran' grep -q '├ build .*█.* ran$' drawn
check 'the second use of a name is told apart' grep -q '├ build#2 ' drawn
check 'a step that was cut' grep -q '├ upload .*✗.* cut$' drawn
check 'a run that was killed' grep -q '✗ interrupted (its process ended), detected at ' drawn
check 'what a later run kept' grep -q '┊ 2 kept .*░' drawn
check 'by name' grep -q '┊   build, build#2$' drawn
check 'a step that was run again because it had been cut' grep -q '├ upload .* ran again$' drawn
check 'a wait that was answered' grep -q '◆ go .*╍.* answered$' drawn
check 'with question and answer' grep -q 'Ship it? → yes, by local' drawn
check 'a step of which nobody knows' grep -q '├ switch .*▒.* unknown$' drawn
check 'a step that failed, with its error' eval "grep -q '├ notify .* failed$' drawn && grep -q 'exit status 4' drawn"
check 'how it ended' grep -q '✗ failed at .*notify failed' drawn
check 'checkpoints are marked' grep -q 'checkpoints .*◇' drawn
check_is 'the summary' '3 steps finished, none of them run again; 1 interrupted and run again; 1 failed; 1 unknown; 1 wait; 2 interruptions' \
    "$(grep -A1 '^3 steps' drawn | paste -sd ' ')"
check 'what is of another kind is counted' grep -q '^1 event of other kinds$' drawn
check 'the data is one JSON document' is_json <as-json
check_is 'with the same figures' '5|3|0|1|1|1|2|3' \
    "$(for m in steps ran_once repeated failed unknown waits interruptions runs; do json "\$.summary.$m" <as-json; done | paste -sd '|')"
check_is 'and the lanes' 'interrupted|interrupted|failed|["build","build#2"]|r1' \
    "$(json '$.runs[0].outcome' <as-json)|$(json '$.runs[1].outcome' <as-json)|$(json '$.runs[2].outcome' <as-json)|$(json '$.runs[1].kept_names' <as-json)|$(json '$.runs[1].continues' <as-json)"
check_is 'and the items' 'step|upload|idempotent|cut' \
    "$(for m in type name effect outcome; do json "\$.runs[0].items[2].$m" <as-json; done | paste -sd '|')"

# ---- a step that ran twice is said ----
tidemark sessions new --id twice >/dev/null
for run in 1 2; do
    one twice run.started "{\"run_id\":\"r$run\"}"
    one twice tool.started '{"call_id":"c1","tool":"pay","effect":"once"}'
    one twice tool.completed '{"call_id":"c1","tool":"pay"}'
    one twice run.completed "{\"run_id\":\"r$run\"}"
done
check 'what was done twice is counted as repeated' eval "tidemark sessions timeline twice | grep -q '^1 step finished, 1 of them run again'"

# ---- other logs ----
tidemark sessions new --id empty >/dev/null
check 'a session without anything' eval 'tidemark sessions timeline empty | holds "0 steps finished; 0 waits"'
check_is 'its data' '0|0' "$(tidemark sessions timeline empty --json | json '$.summary.steps')|$(tidemark sessions timeline empty --json | json '$.summary.runs')"
tidemark sessions new --id chat >/dev/null
one chat message.user '{"content":"hello"}'
one chat llm.request '{"turn":1}'
one chat message.assistant '{"content":"hi","turn":1}'
check 'a chat shows its messages' eval "tidemark sessions timeline chat | grep -q 'messages .*•.* 2$'"
check 'and its model calls' eval "tidemark sessions timeline chat | grep -q 'model calls .*▪.* 1$'"
tidemark sessions new --id gone >/dev/null
one gone run.started '{"run_id":"r1"}'
one gone tool.started '{"call_id":"c1","tool":"x","effect":"once"}'
check 'a run whose process is gone' eval "tidemark sessions timeline gone | grep -q '✗ its process is gone'"
check 'and what was under way in it is cut' eval "tidemark sessions timeline gone | grep -q '├ x .* cut$'"
check 'and the interruption counts, though nobody has written it down' eval "tidemark sessions timeline gone | grep -q '1 interruption$'"
one gone run.interrupted '{"run_id":"r1","reason":"process_restart"}'
check 'once it is, too' eval "tidemark sessions timeline gone | grep -q '1 interruption$'"

# ---- cut, and what came of it ----
# cut ID: a run that was killed in the middle of its step, and one that continues it.
cut() {
    tidemark sessions new --id "$1" >/dev/null
    one "$1" run.started '{"run_id":"r1"}'
    one "$1" tool.started '{"call_id":"c1","tool":"pay","effect":"once"}'
    one "$1" run.interrupted '{"run_id":"r1","reason":"process_restart"}'
    one "$1" run.started '{"run_id":"r2","resumed_from":{"run_id":"r1"}}'
}
# sum ID: its summary, on one line.
sum() {
    tidemark sessions timeline "$1" | sed -n '/ finished/,$p' | paste -sd ' '
}
cut happened
one happened tool.completed '{"call_id":"c1","tool":"pay","settled":"probe: it had happened"}'
one happened run.completed '{"run_id":"r2"}'
check_is 'found to have happened' '1 step finished, not run again; 1 interrupted and found to have happened; 0 waits; 1 interruption' "$(sum happened)"
cut had-not
one had-not tool.failed '{"call_id":"c1","tool":"pay","settled":"probe: it had not happened"}'
one had-not tool.started '{"call_id":"c1","tool":"pay","effect":"once"}'
one had-not tool.completed '{"call_id":"c1","tool":"pay"}'
one had-not run.completed '{"run_id":"r2"}'
check_is 'found not to have happened, and run' '1 step finished, not run again; 1 interrupted and run again; 0 waits; 1 interruption' "$(sum had-not)"
cut cut-twice
one cut-twice tool.started '{"call_id":"c1","tool":"pay","effect":"pure"}'
one cut-twice run.interrupted '{"run_id":"r2","reason":"process_restart"}'
one cut-twice run.started '{"run_id":"r3","resumed_from":{"run_id":"r2"}}'
one cut-twice tool.started '{"call_id":"c1","tool":"pay","effect":"pure"}'
one cut-twice tool.completed '{"call_id":"c1","tool":"pay"}'
one cut-twice run.completed '{"run_id":"r3"}'
check_is 'cut twice counts once' '1 step finished, not run again; 1 interrupted and run again; 0 waits; 2 interruptions' "$(sum cut-twice)"
tidemark sessions new --id evil --title "$(printf 'a\033[31mb')" >/dev/null
one evil run.started '{"run_id":"r1"}'
one evil tool.started '{"call_id":"c1","tool":"x\u001b[31my\u202e","effect":"\u001b[2J"}'
check_is 'control characters do not reach the terminal' '' "$(tidemark sessions timeline evil | tr -dc '\033')"
one evil tool.failed "{\"call_id\":\"c1\",\"error\":\"$(repeat 5000 é)\"}"
check 'long texts are cut to the width' test "$(tidemark sessions timeline evil | width)" -le 80

# ---- a token that is minted anew: the same wait ----
tidemark sessions new --id turned >/dev/null
one turned run.started '{"run_id":"r1"}'
for t in t1 t2; do
    one turned token.minted "{\"token_id\":\"$t\"}"
    one turned run.waiting "{\"run_id\":\"r1\",\"wait_name\":\"go\",\"wait_kind\":\"approval\",\"since_seq\":2,\"resume_token_id\":\"$t\"}"
done
check_is 'is drawn once while it waits' '1 1' "$(tidemark sessions timeline turned | grep -c '◆ go') $(tidemark sessions timeline turned --json | json '$.summary.waits')"
one turned run.resumed '{"run_id":"r1","by":"local","input":"yes"}'
one turned run.waiting '{"run_id":"r1","wait_name":"go","wait_kind":"approval","since_seq":8}'
one turned run.resumed '{"run_id":"r1","by":"local","input":"yes"}'
one turned run.completed '{"run_id":"r1"}'
check_is 'and when it was answered; another of the same name is another' '2 0 2' \
    "$(tidemark sessions timeline turned | grep -c '◆ go.*answered$') $(tidemark sessions timeline turned | grep -c 'over$') $(tidemark sessions timeline turned --json | json '$.summary.waits')"

# ---- many ----
tidemark sessions new --id many >/dev/null
{
    printf '{"kind":"run.started","run_id":"r1"}\n'
    for ((i = 1; i <= 500; i++)); do
        printf '{"kind":"tool.started","call_id":"r1/s/%d","tool":"s","effect":"pure"}\n{"kind":"tool.completed","call_id":"r1/s/%d","tool":"s"}\n' "$i" "$i"
    done
} >lines
check 'many steps are written' tidemark log append many - <lines
check_is 'few of them are drawn' 48 "$(tidemark sessions timeline many | grep -c '^ ├ s')"
check 'the others are counted' eval "tidemark sessions timeline many | grep -q '⋮ *452 more, not drawn: 452 ran'"
check 'and all are in the summary' eval "tidemark sessions timeline many | grep -q '^500 steps finished, none of them run again'"
tidemark sessions new --id often >/dev/null
for ((i = 1; i <= 100; i++)); do
    printf '{"kind":"run.started","run_id":"r%d"}\n{"kind":"run.completed","run_id":"r%d"}\n' "$i" "$i"
done >lines
check 'many runs are written' tidemark log append often - <lines
check_is 'few of them are drawn, the first and the last among them' '64|run 1|run 100' \
    "$(tidemark sessions timeline often | grep -o '● run [0-9]*' | sed 's/● //' >runs; wc -l <runs)|$(head -n 1 runs)|$(tail -n 1 runs)"
check 'the others are counted' eval "tidemark sessions timeline often | grep -q '36 more runs'"

# ---- followed ----
tidemark sessions new --id live >/dev/null
"$TIDE_BIN" sessions timeline live --follow --json >followed 2>err &
follower=$!
# drawn N: so often.
drawn() {
    [ "$(wc -l <followed)" -ge "$1" ]
}
check 'follow draws what is there' wait_for drawn 1
tidemark sessions new --id another >/dev/null
one live run.started '{"run_id":"r1"}'
check 'and again when something is committed' wait_for drawn 2
one live run.waiting '{"run_id":"r1","wait_name":"go","wait_kind":"approval"}'
check 'also when it waits' wait_for drawn 3
one live run.resumed '{"run_id":"r1","by":"local"}'
one live run.completed '{"run_id":"r1"}'
wait "$follower"
check_is 'it ends with the session' '0 completed' "$? $(tail -n 1 followed | json '$.runs[0].outcome')"
check_is 'not for what happens to others' '1' "$(head -n 2 followed | tail -n 1 | json '$.summary.runs')"
check_is 'of one that is at an end there is one drawing' 1 "$(timeout 10 "$TIDE_BIN" sessions timeline live --follow --json | wc -l)"
tidemark sessions new --id open >/dev/null
env --default-signal=INT "$TIDE_BIN" sessions timeline open --follow >followed &
follower=$!
check 'for people, too' wait_for grep -q 'nothing to draw' followed
kill -INT "$follower"
wait "$follower"
check_is 'Ctrl-C ends it well' 0 $?
if command -v tmux >/dev/null; then
    trap 'tmux -S "$work/terminal" kill-server 2>/dev/null; remove_work' EXIT
    one open run.started '{"run_id":"r1"}'
    for ((i = 1; i <= 30; i++)); do one open tool.started "{\"call_id\":\"r1/s$i/1\",\"tool\":\"s$i\",\"effect\":\"pure\"}"; done
    tmux -S "$work/terminal" -f /dev/null new-session -d -x 100 -y 20 "$TIDE_BIN sessions timeline open --follow; echo status \$?; read -r _"
    shown() {
        tmux -S "$work/terminal" capture-pane -p >screen
        grep -q "$1" screen
    }
    check 'on a terminal the end is shown when there is no room' wait_for shown '30 interrupted'
    check_is 'below the first line' open "$(head -n 1 screen | sed 's/ .*//')"
    one open tool.completed '{"call_id":"r1/s1/1","tool":"s1"}'
    check 'and drawn again in place' wait_for shown '29 interrupted'
    tmux -S "$work/terminal" send-keys C-c
    check 'the last drawing stays' wait_for shown '^status 0'
fi

refuses_as 'an unknown session' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions timeline nobody
refuses_as 'too narrow' 2 'INVALID|argument||width||' sessions timeline job --width 40
finish
