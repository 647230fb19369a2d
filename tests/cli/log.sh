#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Appending one by one and in streams, acknowledgements, reading ranges, following, several writers, kill -9.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# seqs: the seq of each event on standard input, on one line.
seqs() {
    sed 's/{"seq":\([0-9]*\).*/\1/' | paste -sd ' '
}

tidemark sessions new --id s >/dev/null
check_is 'append acknowledges with the seq' '{"seq":2}' "$(tidemark log append s --kind message.user --data '{"content":"hi","x":1.50}')"
check_is 'what is read is what was written' '"kind":"message.user","content":"hi","x":1.50}' "$(tidemark log show s --from 2 | cut -d, -f 3-)"
check_is 'without data' '{"seq":3}' "$(tidemark log append s --kind a.b)"
printf '{ "from" : "a file" }\n' >data.json
check_is 'data from a file' '{"seq":4}' "$(tidemark log append s --kind a.b --data @data.json)"
check_is 'white space around values is not kept' '"kind":"a.b","from":"a file"}' "$(tidemark log show s --last 1 | cut -d, -f 3-)"
check_is 'the expected seq' '{"seq":5}' "$(tidemark log append s --kind a.b --expect 4)"
refuses_as 'another expected seq' 4 'CONFLICT|session|s|||' log append s --kind a.b --expect 4

# ---- streams ----
check_is 'a stream is acknowledged line by line' '{"seq":6} {"seq":7} {"seq":8}' \
    "$(printf '{"kind":"a.b","i":1}\n\n{"i":2,"kind":"a.b","j":{"kind":"inner"}}\n{"kind":"a.b"}' | tidemark log append s - | paste -sd ' ')"
check_is 'kind is taken out wherever it stands' '"kind":"a.b","i":2,"j":{"kind":"inner"}}' "$(tidemark log show s --from 7 --to 7 | cut -d, -f 3-)"
check_is 'one kind for all lines' '"kind":"c.d","n":1}' "$(echo '{"n":1}' | tidemark log append s - --kind c.d >/dev/null; tidemark log show s --last 1 | cut -d, -f 3-)"
check_is 'each line by itself' '{"seq":10} {"seq":11}' "$(printf '{"kind":"a.b"}\n{"kind":"a.b"}\n' | tidemark log append s - --sync each | paste -sd ' ')"
check_is 'escaped keys are kept as they are' '"kind":"a.b","\u0061\"":1}' "$(printf '{"kind":"a.b","\\u0061\\"":1}\n' | tidemark log append s - >/dev/null; tidemark log show s --last 1 | cut -d, -f 3-)"

# stream_stops NAME TEXT LINE: between two good lines, LINE is refused naming line 2; the first one is stored, the last not.
stream_stops() {
    local before after
    before=$(tidemark log show s | wc -l)
    # shellcheck disable=SC2059 # the line is a format, for bytes that cannot stand in a script
    printf '{"kind":"ok.ok"}\n'"$3"'\n{"kind":"ok.ok"}\n' | tidemark log append s - >out 2>err
    check_is "$1: status" 2 $?
    after=$(tidemark log show s | wc -l)
    check_is "$1: the good line before it is stored and acknowledged" "$((before + 1)) {\"seq\":$((before + 1))}" "$after $(cat out)"
    check "$1: one line that names it" eval "[ \$(wc -l <err) -eq 1 ] && grep -qF 'line 2' err && grep -qF -- '$2' err"
}
stream_stops 'malformed' 'expected' '{"kind":"a.b"'
stream_stops 'not an object' 'object' '[1]'
stream_stops 'no kind' 'no "kind"' '{"a":1}'
stream_stops 'a kind that is no text' 'not a string' '{"kind":5}'
stream_stops 'a kind with capitals' "is not an event kind" '{"kind":"A B"}'
check 'a kind with capitals: is named' grep -qF "'A B'" err
stream_stops 'a byte order mark' 'byte order mark' '\357\273\277{"kind":"a.b"}'
stream_stops 'a seq of its own' 'omit it' '{"kind":"a.b","seq":1}'
stream_stops 'a time of its own' 'omit it' '{"kind":"a.b","ts":"x"}'
stream_stops 'a message without its content' 'it needs a value' '{"kind":"message.user","text":"hi"}'
stream_stops 'a message of a tool without its call' 'it needs a string' '{"kind":"message.tool","content":"done"}'
stream_stops 'an answer without content and calls' 'it needs a value' '{"kind":"message.assistant","turn":1}'
stream_stops 'a call without a name' 'must be an array of objects with' '{"kind":"message.assistant","tool_calls":[{"id":"c1"}]}'
stream_stops 'a wrong type' 'turn' '{"kind":"message.user","content":"x","turn":"one"}'
stream_stops 'invalid UTF-8' 'UTF-8' '{"kind":"a.b","x":"\377"}'
stream_stops 'a NUL byte' 'NUL' '{"kind":"a.b","x":"\000"}'
stream_stops 'a lone surrogate' 'surrogate' '{"kind":"a.b","x":"\\ud800"}'
stream_stops 'a duplicate key' 'duplicate' '{"kind":"a.b","x":1,"x":2}'
stream_stops 'two values' 'expected the end' '{"kind":"a.b"} {}'
echo '{"kind":"message.user","turn":1}' >bare
fails_as 'for programs: the field, and the line' 2 'INVALID|field||content|1|' log append s - <bare
fails_as 'of another fault the line' 2 'INVALID|file|||1|' log append s - <<<'[1]'
refuses_as 'the field of one event' 2 'INVALID|field|s|content||' log append s --kind message.user --data '{"text":"hi"}'
echo '{"kind":"a.b"}' >own-kind
# The lease is taken before the first line.
fails_as 'a line with a kind of its own beside --kind' 2 'INVALID|file|||1|repeat' log append s - --kind c.d <own-kind
refuses_as 'data beside a stream' 2 'INVALID|argument||data||' log append s - --data '{}' </dev/null
refuses_as 'another operand than -' 2 'INVALID|argument||_||' log append s file

# ---- ranges ----
tidemark sessions new --id r >/dev/null
for i in 2 3 4 5 6; do echo "{\"kind\":\"k.$((i % 2))\"}"; done | tidemark log append r - >/dev/null
check_is 'from' '4 5 6' "$(tidemark log show r --from 4 | seqs)"
check_is 'to' '1 2' "$(tidemark log show r --to 2 | seqs)"
check_is 'from and to' '3 4' "$(tidemark log show r --from 3 --to 4 | seqs)"
check_is 'the last ones' '5 6' "$(tidemark log show r --last 2 | seqs)"
check_is 'more than there are' '1 2 3 4 5 6' "$(tidemark log show r --last 100 | seqs)"
check_is 'behind the end' '' "$(tidemark log show r --from 100)"
check_is 'of a kind' '2 4 6' "$(tidemark log show r --kind k.0 | seqs)"
check_is 'of kinds that begin so' '2 3 4 5 6' "$(tidemark log show r --kind 'k.*' | seqs)"
refuses_as 'from behind to' 2 'INVALID|argument||from||' log show r --from 4 --to 3
refuses_as 'a negative from' 2 'INVALID|argument||from||' log show r --from -1
refuses_as 'a huge from' 2 'INVALID|argument||from||' log show r --from 9223372036854775808
refuses_as 'no session' 2 'INVALID|argument||id||' log show
if on_files; then
    refuses_as 'all sessions: there is no order over them' 2 'INVALID|argument||all||' log show --all
    refuses_as 'and none to follow' 2 'INVALID|argument||all||' log show --all --follow
else
    check_is 'all sessions, in order' "$(tidemark log show --all | sed 's/{"pos":\([0-9]*\).*/\1/')" "$(tidemark log show --all | sed 's/{"pos":\([0-9]*\).*/\1/' | sort -n)"
    pos=$(tidemark log show --all | tail -n 2 | head -n 1 | sed 's/{"pos":\([0-9]*\).*/\1/')
    check_is 'all sessions behind a position' 1 "$(tidemark log show --all --after "$pos" | grep -c '"session_id":"r","seq":6')"
fi

# ---- following ----
mkfifo follow
env --default-signal=INT "$TIDE_BIN" log show r --from 6 --follow >follow & # a shell makes its background jobs ignore it
follower=$!
exec 5<follow
read -r -t 10 line <&5
check_is 'follow begins with what is there' 6 "$(echo "$line" | seqs)"
tidemark log append r --kind new.one >/dev/null
read -r -t 10 line <&5
check_is 'follow shows what is new' 7 "$(echo "$line" | seqs)"
kill -INT $follower
wait $follower
check_is 'follow ends well when interrupted' 0 $?
exec 5<&-
tidemark log show r --from 7 --to 8 --follow >out &
follower=$!
tidemark log append r --kind new.two >/dev/null
wait $follower
check_is 'follow ends when --to is reached' '7 8' "$(seqs <out)"
# An event may be committed at any moment while the follower opens store, watch and session.
missed=0
tidemark sessions new --id beside >/dev/null
for n in $(seq 2 41); do
    timeout 20 "$TIDE_BIN" log show beside --from "$n" --to "$n" --follow >out &
    follower=$!
    tidemark log append beside --kind new.one >/dev/null
    wait $follower || missed=$((missed + 1))
done
check_is 'an event beside the start of a follower is not missed' 0 $missed
check_is 'a reader that goes away ends it' '1' "$(timeout 10 "$TIDE_BIN" log show r --follow | head -n 1 | seqs)"

# ---- two writers ----
# shellcheck disable=SC2317 # called by wait_for
# live: some process holds a session.
live() {
    [ "$(tidemark store info --json | json '$.live_sessions')" -gt 0 ]
}
mkfifo feed
"$TIDE_BIN" log append r - <feed >acks &
holder=$!
exec 6>feed
check 'a stream holds the session before its first line' wait_for live
refuses_as 'another writer is told at once' 4 'HELD|session|r|||' log append r --kind x.y
refuses_as 'another stream as well, without a line' 4 'HELD|session|r|||' log append r - </dev/null
check_is 'show tells who holds it' "held by process $holder" "$(tidemark sessions show r | sed -n 's/^held by  *\(process [0-9]*\) .*/held by \1/p')"
check 'show tells programs' eval "tidemark sessions show r --json | json '\$.holder' | grep -q '^process $holder '"
check 'list as well' eval "tidemark sessions list --json | json '\$.sessions' | grep -q '\"holder\":\"process $holder '"
exec 6>&-
wait $holder
check_is 'a stream without a line ends well' '0 0' "$? $(wc -l <acks)"
check_is 'then nobody holds it' 'null ' "$(tidemark sessions show r --json | grep -o '"holder":[a-z]*' | cut -d: -f 2) $(tidemark sessions show r | grep 'held by')"
"$TIDE_BIN" log append r - <feed >acks &
holder=$!
exec 6>feed
echo '{"kind":"held.one"}' >&6
wait_for has_lines acks 0
refuses_as 'another writer is told who holds it' 4 'HELD|session|r|||' log append r --kind x.y
refuses_as 'delete as well' 4 'HELD|session|r|||' sessions delete r
check_is 'but inputs are taken' '{"seq":10}' "$(tidemark log append r --input --kind queue.added --data '{"queue_id":"q1","content":"more"}')"
refuses_as 'what is not an input is not' 2 'INVALID|session|r|||' log append r --input --kind message.user --data '{"content":"x"}'
echo '{"kind":"held.two"}' >&6
exec 6>&-
wait $holder
check_is 'the holder goes on behind them' '{"seq":9} {"seq":11}' "$(paste -sd ' ' acks)"
check_is 'and gives the lease back' '{"seq":12}' "$(tidemark log append r --kind x.y)"

# ---- kill -9: everything acknowledged is there, in order, once ----
tidemark sessions new --id k >/dev/null
: >acked
for round in 1 2 3 4 5 6 7 8 9 10; do
    i=0
    rm -f pid # it may be written behind the first acknowledgements
    (while :; do i=$((i + 1)); echo "{\"kind\":\"a.b\",\"round\":$round,\"i\":$i}"; done) 2>/dev/null |
        { "$TIDE_BIN" log append k - & echo $! >pid; wait $!; } >acks 2>/dev/null &
    wait_for has_lines acks $((round * 20))
    wait_for test -s pid
    kill -KILL "$(cat pid)"
    wait $!
    grep '}$' acks >>acked
    : >acks
done
tidemark log show k >events
check_is 'no seq is missing or twice' "$(seq -s ' ' 1 "$(wc -l <events)")" "$(seqs <events)"
seqs <acked | tr ' ' '\n' | sort -n >acked.seqs
check_is 'no acknowledgement was given twice' '' "$(uniq -d acked.seqs)"
check 'all that was acknowledged is there' test "$(tail -n 1 acked.seqs)" -le "$(wc -l <events)"
check 'many were acknowledged' test "$(wc -l <acked.seqs)" -gt 1000
check 'the chain is whole' tidemark sessions verify k

# ---- deleted under it ----
if on_files; then
    tidemark sessions new --id gone >/dev/null
    mkfifo into
    "$TIDE_BIN" log append gone - <into >out 2>err &
    appender=$!
    exec 6>into
    echo '{"kind":"a.b"}' >&6
    wait_for has_lines out 0
    rm data/tidemark/files/sessions/gone.*
    echo '{"kind":"a.b"}' >&6
    exec 6>&-
    wait $appender
    check_is 'a log that is deleted under a stream is named, with what to do' \
        "5 tidemark: log append: line 2: the log of session 'gone' is gone, and its mark; live/gone.json shows that a process held it: restore sessions/gone.*: \`tidemark sessions delete gone\` removes what is left of it" "$? $(cat err)"
else
    skip 'a log that is deleted under a stream' 'there is no file of its own'
fi

# ---- size ----
(printf '{"kind":"big.one","s":"' && head -c 9000000 /dev/zero | tr '\0' x && printf '"}\n') >big.jsonl
check_is 'an event of many MiB' '{"seq":2}' "$(tidemark sessions new --id big >/dev/null; tidemark log append big - <big.jsonl)"
check_is 'comes back byte for byte' "$(sed 's/^{//' big.jsonl | md5sum)" "$(tidemark log show big --from 2 | sed 's/.*"kind"/"kind"/' | md5sum)"
export TIDEMARK_MAX_RECORD_BYTES=5000
fails_as 'a line over the limit' 2 'TOO_BIG|||||' log append big - <big.jsonl
refuses_as 'data over the limit' 2 'TOO_BIG|session|big|||' log append big --kind x.y --data "{\"s\":\"$(repeat 5001 x)\"}"
refuses_as 'a file over the limit' 2 'TOO_BIG|file||big.jsonl||' log append big --kind x.y --data @big.jsonl
export TIDEMARK_MAX_RECORD_BYTES=lots
refuses_as 'a limit that is no number' 2 'INVALID|key||TIDEMARK_MAX_RECORD_BYTES||' log show big
unset TIDEMARK_MAX_RECORD_BYTES
check_is 'nothing was written' 2 "$(tidemark log show big | wc -l)"

# ---- standard output that fails ----
tidemark log show r >/dev/full 2>err
check_is 'a full device' '6 1' "$? $(grep -c 'write to standard output' err)"
tidemark log show k 2>err | head -n 1 >/dev/null
check_is 'a closed pipe is no complaint' '' "$(cat err)"
tidemark sessions list >&- 2>err
check_is 'a closed standard output is one' '6 1' "$? $(wc -l <err)"
finish
