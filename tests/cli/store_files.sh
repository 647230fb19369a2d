#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store of plain files as a person meets it: making it, the files and what grep, jq and git see of them, kills, torn tails,
# damage, files that do not belong there, two processes, and names that are no store. A full disk: full_disk.sh.
# shellcheck disable=SC2016,SC2317 # jq programs and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH="$(dirname "$TIDE_BIN"):$PATH"
export PATH TIDEMARK_STORE=files:d
logs=d/sessions

has() {
    command -v "$1" >/dev/null
}
gone() {
    [ ! -r "/proc/$1/stat" ] || grep -q ') Z ' "/proc/$1/stat"
}
# fresh: the store d as it was kept in kept.
fresh() {
    rm -rf d
    cp -a kept d
}

# shows NAME LINES TEXT ID: its log, as far as it can be read, then why not further.
shows() {
    tidemark log show "$4" >out 2>err
    check_is "$1" "5 $2 1 1" "$? $(wc -l <out) $(wc -l <err) $(grep -cF -- "$3" err)"
}

# ---- names ----
check_is 'init makes it and says where it is' files:d "$(tidemark store init)"
check_is 'init again: it is there' '{"url":"files:d","sessions":0}' "$(tidemark store init --json)"
check_is 'a slash at the end is the same store' one "$(tidemark --store files:d// sessions new --id one)"
check_is 'no shell puts the home for a ~ behind files:' one "$(tidemark --store 'files:~/d' sessions list --ids)"
check_is 'a whole path' one "$(tidemark --store "files:$work/d" sessions list --ids)"
check_is 'from another directory' one "$(cd / && tidemark --store "files:$work/d/" sessions list --ids)"
check_is 'sqlite: has it as well' two "$(tidemark --store 'sqlite:~/two.db' sessions new --id two)"
check 'and it is in the home' test -f two.db
refuses_as 'an empty name' 2 'INVALID|argument||store||' --store files: sessions list
refuses_as 'another kind' 2 'INVALID|argument||store||' --store filez:d sessions list
refuses_as 'nothing there' 3 'NOT_FOUND|file||none||init_store' --store files:none sessions list
check 'nothing was made' test ! -e none
echo text >file
tidemark --store files:file sessions list 2>err
check_is 'a file' 1 "$(grep -c "^tidemark: open store: 'file' is a file, not a file store (sqlite:PATH): give another path with --store\$" err)"
refuses_as 'a directory, named as a database' 5 'NOT_A_STORE|||||' --store d sessions list
ln -s d link
tidemark --store files:link sessions list 2>err
check_is 'a symbolic link is refused in one line' '1 1' "$(wc -l <err) $(grep -c "^tidemark: open store: 'link' " err)"
check_is 'settings' one "$(echo '{"store": "files:~/d"}' >set.json; unset TIDEMARK_STORE; tidemark sessions list --ids --config set.json)"
check_is 'settings: beside their file' three "$(mkdir place; echo '{"store": "files:kept"}' >place/set.json; unset TIDEMARK_STORE; tidemark sessions new --id three --config place/set.json)"
check 'there it is' test -f place/kept/sessions/three.messages.jsonl
if [ "$(id -u)" -eq 0 ] && has setpriv; then
    chmod 755 "$work"
    (
        tidemark() { setpriv --reuid=65534 --regid=65534 --clear-groups "$TIDE_BIN" "$@"; }
        refuses_as 'no permission: read' 6 'DENIED|file||*||' --store "files:$work/d" sessions list
        refuses_as 'no permission: make' 6 'DENIED|file||*||' --store "files:$work/e" sessions new
        cp -a d shut
        chown -R 65534:65534 shut
        chmod 0 shut/live
        refuses_as 'no permission: who is at work' 6 'DENIED|file||*||' --store "files:$work/shut" sessions list
        chmod 700 shut/live
        check_is 'with it: as ever' one "$(tidemark --store "files:$work/shut" sessions list --ids)"
        exit "$failures"
    )
    failures=$((failures + $?))
else
    skip 'no permission' 'needs root'
fi

# ---- what people do, and what is there then ----
echo '{"turns":[{"text":"Hello, reader."},{"text":"Second."}]}' >hello.json
check_is 'chat' 'Hello, reader.' "$(tidemark chat --script hello.json -p 'good day' </dev/null)"
chat=$(tidemark sessions list --ids | head -n 1)
check_status 'exec' 0 tidemark exec --session prog -- tidemark step hello -- echo hello
cat >graph.json <<'E'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "program": ["sh", "-c", "echo '{\"x\":1}'"], "outputs": ["x"]}]}
E
check_status 'run' 0 tidemark run graph.json --session graph
for i in 1 2 3; do echo "{\"kind\":\"note.made\",\"i\":$i}"; done | tidemark log append one - >acks
check_is 'append' '2 3 4' "$(sed 's/[^0-9]//g' acks | paste -sd ' ')"
check_status 'a question' 7 tidemark exec --session ask -- tidemark wait which --kind input --question 'which one?'
check_is 'files are for the owner alone' 600 "$(find d -type f -exec stat -c %a {} + | sort -u)"
check_is 'directories too' 700 "$(find d -type d -exec stat -c %a {} + | sort -u)"
check_is 'four files a session' "one.json one.mark one.messages.jsonl one.tokens.json" "$(cd $logs && echo one.*)"
check_is 'nothing else among the sessions' '' "$(find $logs -mindepth 1 ! -name '*.json' ! -name '*.messages.jsonl' ! -name '*.mark')"
check_is 'only what waits is live' ask.json "$(ls d/live)"
check_is 'nobody is left' '' "$(ls d/boots)"
check_is 'check' ok "$(tidemark store check)"
check_is 'compact has nothing to do' 'nothing to do: this store has no write-ahead log' "$(tidemark store compact)"
check_is 'info' '5|0' "$(tidemark store info --json | json '$.sessions')|$(tidemark store info --json | json '$.torn_tails')"
tidemark doctor >doctor.out
check_is 'doctor: all is well' '0 0' "$? $(grep -vc '^ok' doctor.out)"
check 'doctor: says what there is' grep -q '^ok  *figures  *version 3, 5 sessions, ' doctor.out
check 'doctor: nothing of SQLite' eval '! grep -q "SQLite\|write-ahead\|reserve" doctor.out'
chmod 755 $logs
check 'doctor: open to others' eval "tidemark doctor | holds \"chmod 700 'd/sessions'\""
chmod 700 $logs
refuses_as 'all sessions: there is no order over them' 2 'INVALID|argument||all||' log show --all
refuses_as 'nor to be followed' 2 'INVALID|argument||all||' log show --all --follow

# plain FILE: the lines of a log as log show prints them.
plain() {
    sed 's/,"tidemark":{[^{}]*}}$/}/' "$1"
}
for id in one prog graph ask "$chat"; do
    check "grep and log show agree: $id" eval "tidemark log show $id | cmp - <(plain $logs/$id.messages.jsonl)"
done
check_is 'grep finds what log show finds' "$(tidemark log show "$chat" --kind 'message.*' | wc -l)" \
    "$(grep -c '"kind":"message\.' "$logs/$chat.messages.jsonl")"
check_is 'the answer is found by its words' "$logs/$chat.messages.jsonl" "$(grep -l 'Hello, reader' $logs/*.messages.jsonl)"
if has jq; then
    check_is 'jq: what was said' 'good day' "$(jq -r 'select(.kind=="message.user") | .content' "$logs/$chat.messages.jsonl")"
    check 'jq reads every file' eval 'jq -e . d/store.json d/sessions/*.json d/sessions/*.jsonl d/live/*.json >/dev/null'
    check 'jq: without what is Tidemark'"'"'s own' eval "tidemark log show prog | cmp - <(jq -c 'del(.tidemark)' $logs/prog.messages.jsonl)"
    check_is 'jq: which sessions wait for an answer' 'ask which one?' "$(jq -r 'select(.run.wait) | .id' $logs/ask.json) $(tidemark sessions show ask --json | jq -r .run.wait.question)"
else
    skip 'jq' 'not installed'
fi

# ---- git: reading changes nothing, and what is written once stays ----
if has git; then
    git() { command git -C d -c user.name=x -c user.email=x@example.org -c core.excludesFile=/dev/null "$@"; }
    git init -q . && git add -A && git commit -qm first
    check_is 'git has the logs and what is computed from them, no more' '.gitattributes .gitignore sessions store.json' "$(git ls-files | sed 's,/.*,,' | sort -u | paste -sd ' ')"
    for id in one prog ask; do
        tidemark log show $id && tidemark sessions show $id && tidemark state $id && tidemark sessions verify $id && tidemark why $id
    done >/dev/null
    { tidemark sessions list; tidemark store check; tidemark doctor; tidemark recover; tidemark store compact; } >/dev/null
    check_is 'reading and looking after it changes nothing' '' "$(git status --porcelain)"
    tidemark log append one --kind note.made >/dev/null
    check_is 'an append changes one session' 'sessions/one.json sessions/one.mark sessions/one.messages.jsonl' "$(git status --porcelain | awk '{print $2}' | paste -sd ' ')"
    check_is 'its log by one line' '1 0' "$(git diff --numstat sessions/one.messages.jsonl | awk '{print $1, $2}')"
    git add -A && git commit -qm second
    check_is 'and then nothing' '' "$(git status --porcelain)"
    command git clone -q d clone
    check_is 'a clone is the same store' "$(tidemark sessions list --ids | sort)" "$(tidemark --store files:clone sessions list --ids | sort)"
    check 'whole' tidemark --store files:clone store check
    check_is 'and goes on' '{"seq":6}' "$(tidemark --store files:clone log append one --kind note.made)"
    rm -rf d/.git
    unset -f git
else
    skip 'git' 'not installed'
fi

# ---- only the log counts ----
answers() {
    for id in one prog graph ask "$chat"; do
        tidemark log show "$id"
        tidemark state "$id"
        tidemark sessions show "$id" --json
    done
    tidemark sessions list --json
}
answers >before
cp -a d kept
rm -rf d/cache d/sessions/*.json
check 'without caches, session files and token files: the same answers' eval 'answers | cmp - before'
tidemark log append one --kind note.made >/dev/null
check 'an append makes those of its session again' test -s $logs/one.json -a -s $logs/one.tokens.json
if has jq; then
    check_is 'as far as the log is' "$(wc -l <$logs/one.messages.jsonl)" "$(jq .last_seq $logs/one.json)"
fi

# ---- session files: the process that makes or changes a session writes them ----
# has_session_file ID [DIR]: its session file is as far as its log, and it has an index of its tokens.
has_session_file() {
    local at=${2:-d}/sessions/$1 last
    last=$(tail -n 1 "$at.messages.jsonl" | json '$.seq')
    test -s "$at.tokens.json" && grep -q "^  \"last_seq\": $last,\$" "$at.json"
}
fresh
forked=$(tidemark sessions fork prog)
check 'a fork has its session files' has_session_file "$forked"
tidemark token rotate ask >/dev/null
check 'a token from outside is in the session file' has_session_file ask
tidemark sessions send one 'hello' >/dev/null
tidemark sessions rollback one --to 2 >/dev/null
check 'so is a rollback' has_session_file one
tidemark sessions export ask >ask.export
tidemark --store files:imported sessions import ask.export >/dev/null
check 'an import has its session files' has_session_file ask imported
check 'whose token works no more: its secret was given to somebody elsewhere' grep -q '"status": "revoked"' imported/sessions/ask.tokens.json
tidemark sessions new --id long >/dev/null
for i in $(seq 40); do echo "{\"kind\":\"k.k\",\"i\":\"$(repeat 130000 x)\"}"; done | tidemark log append long - >/dev/null
tidemark store copy files:d files:copied >/dev/null
for id in ask prog long "$forked"; do check "a copy has its session files: $id" has_session_file "$id" copied; done
check 'they are the same' cmp copied/sessions/ask.tokens.json $logs/ask.tokens.json
stat -c '%i %Y %n' $logs/*.json >stats
rm $logs/one.json $logs/ask.tokens.json
echo '{}' >$logs/prog.json
check 'check --rebuild' tidemark store check --rebuild
for id in one ask prog; do check "makes those anew that are missing or behind: $id" has_session_file "$id"; done
check_is 'and leaves the others alone' '' "$(grep -v '/one.json\|/ask.tokens.json\|/prog.json' stats | while read -r _ _ name; do stat -c '%i %Y %n' "$name"; done | grep -vxFf stats)"
fresh
if has jq; then
    jq '.last_seq = 99 | .title = "from the future"' $logs/one.json >future
    cat future >$logs/one.json
    check 'a session file from the future changes no answer' eval 'answers | cmp - before'
    tidemark log append one --kind note.made >/dev/null
    check_is 'and is made anew' "$(wc -l <$logs/one.messages.jsonl)" "$(jq .last_seq $logs/one.json)"
fi

# ---- kill -9, and resume ----
fresh
write_script twice <<'E'
tidemark step first -- sh -c 'echo first >>ledger'
echo $$ >twice.pid
until [ -e go ]; do sleep 0.02; done
tidemark step second -- sh -c 'echo second >>ledger'
E
"$TIDE_BIN" exec --session cut -- ./twice >/dev/null 2>&1 &
runner=$!
wait_for test -s twice.pid
kill -KILL $runner
wait $runner 2>/dev/null
wait_for gone "$(cat twice.pid)"
check_is 'a killed run is found interrupted' interrupted_startup "$(tidemark sessions show cut --json | json '$.status')"
touch go
check_status 'resume goes on' 0 tidemark resume cut
check_is 'each step once' 'first second' "$(paste -sd ' ' ledger)"
check 'the session is whole' tidemark sessions verify cut
mkfifo feed
"$TIDE_BIN" log append one - <feed >killed.acks 2>/dev/null &
writer=$!
exec 6>feed
for i in $(seq 300); do echo "{\"kind\":\"k.k\",\"i\":$i}"; done >&6
wait_for has_lines killed.acks 299
kill -KILL $writer
wait $writer 2>/dev/null
exec 6>&-
check 'a killed writer: what was acknowledged is there' test "$(tidemark log show one | wc -l)" -ge "$(tail -n 1 killed.acks | json '$.seq')"
check_is 'and the next one goes on at once' "{\"seq\":$(($(tidemark log show one | wc -l) + 1))}" "$(tidemark log append one --kind k.k)"
check 'whole' tidemark store check

# ---- torn tails: cut off by the next write, kept aside, told once ----
# torn NAME WHOLE: the log of `one` in d has a torn tail behind its first WHOLE events.
torn() {
    local whole=$2 before
    before=$(tidemark log show one --to "$whole")
    check_is "$1: a reader sees what is whole" "$before" "$(tidemark log show one)"
    tidemark store check >out 2>err
    check_is "$1: check says so, in one line" '5 1' "$? $(grep -c '^one: its log ends in an incomplete write' out)"
    check "$1: and the doctor" eval "tidemark doctor | grep -q '^warn  *torn '"
    tail -c "+$(($(head -n "$whole" $logs/one.messages.jsonl | wc -c) + 1))" $logs/one.messages.jsonl >torn.tail
    check_is "$1: the next append goes behind it" "{\"seq\":$((whole + 1))}" "$(tidemark log append one --kind note.made 2>err)"
    check_is "$1: and tells it" '1 1' "$(wc -l <err) $(grep -c "^tidemark: session one: .*($(wc -c <torn.tail) bytes).* sessions/one.torn-1" err)"
    check "$1: it is kept aside" cmp torn.tail $logs/one.torn-1
    check_is "$1: once" '' "$(tidemark log append one --kind note.made 2>&1 >/dev/null)"
    check_is "$1: all is well" ok "$(tidemark store check)"
}
rm -rf d
tidemark sessions new --id one >/dev/null
for i in 2 3 4; do
    tidemark log append one --kind note.made --data "{\"i\":$i}" >/dev/null
    cp $logs/one.mark "mark$i"
done
for i in 5 6 7; do echo "{\"kind\":\"note.made\",\"i\":$i}"; done | tidemark log append one - >/dev/null
rm -rf kept d/cache
cp -a d kept

tail -n 1 kept/sessions/one.messages.jsonl | head -c 60 >>$logs/one.messages.jsonl
torn 'half a line' 7
fresh
head -c 9000 /dev/zero >>$logs/one.messages.jsonl
torn 'zeros' 7
fresh
head -n 5 kept/sessions/one.messages.jsonl >$logs/one.messages.jsonl
cp mark4 $logs/one.mark
torn 'half a batch' 4
fresh
head -n 3 kept/sessions/one.messages.jsonl >$logs/one.messages.jsonl
sed -n 4p kept/sessions/one.messages.jsonl | tr -d '\n' >>$logs/one.messages.jsonl
cp mark3 $logs/one.mark
torn 'no newline' 3
fresh
{ head -n 4 kept/sessions/one.messages.jsonl; sed -n '5,7p' kept/sessions/one.messages.jsonl | head -c 200; head -c 512 /dev/zero; } >$logs/one.messages.jsonl
cp mark4 $logs/one.mark
torn 'sectors missing in the last batch' 4
{ head -c 99 /dev/zero; } >>$logs/one.messages.jsonl
tidemark log append one --kind note.made >/dev/null 2>&1
check 'a second tail has a name of its own' test -e $logs/one.torn-1 -a -e $logs/one.torn-2

fresh
printf '{' >>$logs/one.messages.jsonl
tidemark log append one --kind note.made >/dev/null 2>err
check 'one byte is one' grep -q 'its incomplete last write (1 byte) was removed' err

# ---- the log of one session under the name of another: nobody's, and nothing of it is cut off ----
# misnamed NAME: the log of `two` is that of another.
misnamed() {
    cp $logs/two.messages.jsonl theirs
    tidemark store check >out 2>err
    check_is "$1: check says so, in one line" '5 1 1' "$? $(wc -l <out) $(grep -c "^two: .* its log does not match its name" out)"
    refuses_as "$1: it is not read" 5 'CORRUPT|session|two|||' log show two
    refuses_as "$1: nor appended to" 5 'CORRUPT|session|two|||' log append two --kind note.made
    refuses_as "$1: nor sent to" 5 'CORRUPT|session|two|||' sessions send two hello
    check "$1: it is as it was" cmp theirs $logs/two.messages.jsonl
    check_is "$1: nothing is kept aside" '' "$(find $logs -name '*torn*')"
    check_is "$1: the list has it as damaged" two "$(tidemark sessions list --status damaged --ids)"
}
fresh
cp $logs/one.messages.jsonl $logs/two.messages.jsonl
misnamed 'a copy'
printf '{"half' >>$logs/two.messages.jsonl
misnamed 'a copy with a torn tail'
fresh
head -n 1 $logs/one.messages.jsonl >$logs/two.messages.jsonl
misnamed 'one event'
fresh
tidemark sessions fork one --id two >/dev/null
tidemark sessions fork one --id three >/dev/null
mv $logs/three.messages.jsonl $logs/two.messages.jsonl
rm -r $logs/three.* d/cache
misnamed 'one fork for another'
check 'it can be deleted' tidemark sessions delete two

# ---- damage in the middle: named, and what is before it can be read ----
fresh
sed -i '3s/"i":3/"i":9/' $logs/one.messages.jsonl
shows 'a changed byte: what is whole, then' 2 "session 'one': event 3 is damaged" one
check_is 'the command it names shows what is whole' '1 2' "$(tidemark log show one --to 2 | sed 's/{"seq":\([0-9]*\).*/\1/' | paste -sd ' ')"
refuses_as 'nothing is appended' 5 'CORRUPT|event|one||3|show_log' log append one --kind note.made
tidemark store check >out 2>err
check_is 'check names it' '5 1' "$? $(grep -c 'event 3 is damaged' out)"
check_is 'it was left as it is' '' "$(find $logs -name '*torn*')"
check 'doctor: damaged' eval "tidemark doctor | grep -q '^fail .*event 3 is damaged'"
fresh
sed -i 3d $logs/one.messages.jsonl
shows 'a line that is gone' 2 'event 3 is damaged' one
check_is 'what is before it can be read' 2 "$(tidemark log show one --to 2 | wc -l)"
fresh
sed -i '3s/.*/this is no event/' $logs/one.messages.jsonl
shows 'a line that is no event' 2 'event 3 is damaged' one
check_is 'what is before that' 2 "$(tidemark log show one --to 2 | wc -l)"

check_is 'check names it once' '1 1' "$(tidemark store check 2>/dev/null | wc -l) $(tidemark store check 2>/dev/null | grep -c 'event 3 is damaged')"
rm $logs/one.messages.jsonl
tidemark store check >out 2>err
check_is 'a log that is gone, its session file is there' '5 1' "$? $(grep -c "^one: the log of session 'one' is gone" out)"
refuses_as 'it is not simply missing' 5 'CORRUPT|session|one|||delete' sessions show one
check_is 'the list has it' damaged "$(tidemark sessions list --json | json '$.sessions[0].status')"
check_is 'what nobody knows is left blank' 'one damaged - - -' "$(tidemark sessions list | sed -n 's/  */ /g; s/ $//; /^one/p')"
check_is 'in JSON, too' '"created_at":null,"updated_at":null,"first_seq":null,"last_seq":null' "$(tidemark sessions list --json | grep -o '"created_at":[^,]*,"updated_at":[^,]*,"first_seq":[^,]*,"last_seq":[^,]*')"
check 'what is left of it can be deleted' tidemark sessions delete one
check_is 'then nothing is left' '' "$(ls $logs)"
tidemark sessions new --id long >/dev/null
for i in $(seq 600); do echo "{\"kind\":\"k.k\",\"i\":$i}"; done | tidemark log append long - >/dev/null
check 'a long session has a folder among the caches' test -d d/cache/long
tidemark sessions delete long >/dev/null
check_is 'which goes with it' '' "$(ls d/cache)"

# ---- events that are gone from the end: what was acknowledged is missed, wherever the log came from ----
fresh
cp -r d older
for i in 8 9; do tidemark log append one --kind note.made >/dev/null; done
cp $logs/one.messages.jsonl whole
head -n 8 whole >shorter
mv shorter $logs/one.messages.jsonl
gone="session 'one' ends at event 8, but event 9 was acknowledged: restore sessions/one.messages.jsonl"
tidemark store check >out 2>err
check_is 'a last event that is gone: check names it' '5 1' "$? $(grep -c "^one: $gone" out)"
check_is 'whoever reads is told' '5 1' "$(tidemark log show one >out 2>err; echo $?) $(grep -c "$gone" err)"
refuses_as 'also who reads behind it' 5 'CORRUPT|session|one|||check_store' log show one --from 9
refuses_as 'far behind it' 5 'CORRUPT|session|one|||check_store' log show one --from 700
check_is 'whoever verifies' '5 1' "$(tidemark sessions verify one >out 2>err; echo $?) $(grep -c "$gone" err)"
refuses_as 'whoever would write' 5 'CORRUPT|session|one|||check_store' log append one --kind note.made
refuses_as 'whoever would resume' 5 'CORRUPT|session|one|||' sessions resume one
check_is 'what is there can be read' 8 "$(tidemark log show one --to 8 | wc -l)"
: >$logs/one.messages.jsonl
refuses_as 'all of them gone' 5 'CORRUPT|session|one|||check_store' log append one --kind note.made
cp whole $logs/one.messages.jsonl
check_is 'put back, it goes on' '{"seq":10}' "$(tidemark log append one --kind note.made 2>&1)"
cp -r d longer
sed -i '$s/"digest":"./"digest":"x/' $logs/one.messages.jsonl
refuses_as 'one letter of the last event' 5 'CORRUPT|session|one|||check_store' log show one --from 10
tidemark store check --accept-loss >out 2>err
check_is 'it can be given up' '1' "$(grep -c 'session one: continues without the events 10 to 10, which are lost' err)"
check_is 'what is left of it is kept aside by the next write' '{"seq":10} 1' "$(tidemark log append one --kind note.made 2>err) $(grep -c 'sessions/one.torn-1' err)"
check_is 'and all is well' ok "$(tidemark store check)"
rm -rf d
mv longer d

# ---- the mark: damaged, it is refused; missing, only where something else says how far the log goes ----
cp -r d marked
printf X | dd of=$logs/one.mark bs=1 seek=30 conv=notrunc 2>/dev/null
refuses_as 'a damaged mark: nobody reads' 5 'CORRUPT|session|one|||check_store' log show one --from 11
refuses_as 'nor writes' 5 'CORRUPT|session|one|||check_store' log append one --kind note.made
check_is 'the list has it' damaged "$(tidemark sessions list --json | json '$.sessions[0].status')"
tidemark store check --accept-loss >out 2>err
check_is 'it can be made anew' '1 ok' "$(grep -c 'session one: its log is accepted as it is, up to event 10' err) $(tidemark store check)"
rm $logs/one.mark
check_is 'a missing one: given back at its last event' '10 ok' "$(tidemark log show one | wc -l) $(tidemark store check)"
check_is 'the next write makes it, and says so once' '1 0' "$(tidemark log append one --kind note.made 2>&1 | grep -c 'session one had no mark') $(tidemark log append one --kind note.made 2>&1 | grep -c 'had no mark')"
rm $logs/one.mark
sed -i '$d' $logs/one.messages.jsonl
refuses_as 'missing, and its log was cut' 5 'CORRUPT|session|one|||check_store' log show one --from 12
rm -rf d
mv marked d
sed -i 's/"last_seq": *[0-9]*/"last_seq":999/' $logs/one.json
rm -rf d/cache
check_is 'a snapshot from the future is not believed' '10 10' "$(tidemark log show one | wc -l) $(tidemark sessions show one --json | json '$.last_seq')"
check_is 'and made anew' '{"seq":11} 11' "$(tidemark log append one --kind note.made 2>/dev/null) $(json '$.last_seq' <$logs/one.json)"
cp older/sessions/* $logs
check_is 'an older log with its mark is what it is' '{"seq":8}' "$(tidemark log append one --kind note.made)"
rm -rf d/cache
sed -i '8s/"kind"/"kinD"/' $logs/one.messages.jsonl
refuses_as 'a last event that was changed' 5 'CORRUPT|session|one|||check_store' log append one --kind note.made
sed -i '8s/"kinD"/"kind"/' $logs/one.messages.jsonl
truncate -s -5 $logs/one.messages.jsonl
refuses_as 'a cut that took what was acknowledged' 5 'CORRUPT|session|one|||check_store' log append one --kind note.made

# ---- the same when who wrote it was killed: what was kept of the log before is no proof that nothing is missing ----
rm -rf d
tidemark sessions new --id one >/dev/null
before=$(stat -c %s $logs/one.messages.jsonl)
mkfifo has_session_file.pipe
"$TIDE_BIN" log append one - --sync each <has_session_file.pipe >has_session_file.acks &
writer=$!
exec 6>has_session_file.pipe
echo '{"kind":"session.updated","title":"in the session file"}' >&6
wait_for has_lines has_session_file.acks 0
kill -KILL $writer
wait $writer 2>/dev/null
exec 6>&-
truncate -s "$before" $logs/one.messages.jsonl
tidemark store check >out 2>err
check_is 'an end that is gone behind a kill is named' '5 1' "$? $(grep -c "^one: session 'one' ends at event 1, but event 2 was acknowledged" out)"

# ---- parents: proved when a fork is read; nobody is his own ancestor ----
rm -rf d
for i in x p; do tidemark sessions new --id $i >/dev/null; done
for i in 2 3 4; do tidemark log append p --kind memory.set --data "{\"values\":{\"k\":$i}}" >/dev/null; done
tidemark sessions fork p --at 3 --id child >/dev/null
tidemark sessions fork child --id grandchild >/dev/null
cp -r d family
for name in child grandchild x; do
    says="names session '$name' as its parent, which has no event 3 of its own"
    [ $name != x ] || says="does not continue 'x' at seq 3"
    sed -i "1s/\"parent\":\"p\"/\"parent\":\"$name\"/" $logs/child.messages.jsonl
    rm -rf d/cache
    refuses_as "$name for a parent: it is not read" 5 'CORRUPT|session|child|||' sessions show child
    refuses_as "$name for a parent: nor what stands on it" 5 'CORRUPT|session|child|||' log show grandchild --inherited
    check_is "$name for a parent: the others are listed" 'child damaged|grandchild damaged|p idle|x idle' "$(tidemark sessions list --json | tr '{' '\n' | sed -n 's/.*"session_id":"\([a-z]*\)".*"status":"\([a-z]*\)".*/\1 \2/p' | sort | paste -sd '|')"
    check_is "$name for a parent: verify" '5 1' "$(tidemark sessions verify child >out 2>err; echo $?) $(grep -c "session 'child' $says" err)"
    rm -rf d
    cp -r family d
done
head -n 2 family/sessions/p.messages.jsonl >$logs/p.messages.jsonl
rm -rf $logs/p.mark $logs/p.json d/cache
for i in 7 8; do tidemark log append p --kind memory.set --data "{\"values\":{\"k\":$i}}" >/dev/null 2>&1; done
refuses_as 'a parent that went on differently: the fork is not read' 5 'CORRUPT|session|child|||' state child
refuses_as 'nor what it inherits' 5 'CORRUPT|session|child|||' log show child --inherited
refuses_as 'nor gone on with' 5 'CORRUPT|session|child|||' log append child --kind note.made

# ---- a store of the version before marks, and a clone without them: taken as they stand, once ----
rm -rf d
cp -r kept d
printf x >>$logs/one.messages.jsonl
rm $logs/one.mark $logs/one.json
sed -i 's/"version":3/"version":1/' d/store.json
check_is 'the version before: it is read' 7 "$(tidemark log show one | wc -l)"
check_is 'it is adopted, once' '1 0' "$(tidemark log append one --kind note.made 2>&1 | grep -c 'is of an older version: 1 log without a mark') $(tidemark log append one --kind note.made 2>&1 | grep -c 'older version')"
check_is 'then it is of this one' '3 ok' "$(json '$.version' <d/store.json) $(tidemark store check)"
rm -rf d
cp -r kept d
rm -rf d/live d/boots d/cache d/lock d/changes $logs/one.mark $logs/one.json
check_is 'a clone without marks: it is read' 7 "$(tidemark log show one | wc -l)"
check_is 'it is adopted, once' '1 0' "$(tidemark log append one --kind note.made 2>&1 | grep -c 'is a clone, or another') $(tidemark log append one --kind note.made 2>&1 | grep -c 'is a clone')"
rm $logs/one.*
check_is 'a log that is gone with its snapshot and its mark is not there' '' "$(tidemark sessions list --ids)"
rm -rf d
cp -r kept d
rm $logs/one.messages.jsonl $logs/one.json
refuses_as 'its mark misses it' 5 'CORRUPT|session|one|||delete' log show one
check_is 'so does the list' damaged "$(tidemark sessions list --json | json '$.sessions[0].status')"

# ---- a fork without its parent hides no other ----
rm -rf d
for i in x p; do tidemark sessions new --id $i >/dev/null; done
tidemark sessions fork p --id child >/dev/null
rm $logs/p.*
check_is 'the others are listed' 'child damaged x idle' "$(tidemark sessions list --json | json '$.sessions[0].session_id') $(tidemark sessions list --json | json '$.sessions[0].status') $(tidemark sessions list --json | json '$.sessions[1].session_id') $(tidemark sessions list --json | json '$.sessions[1].status')"
refuses_as 'it says what is missing' 5 'CORRUPT|session|child|||' sessions show child

# ---- a clone: only what is versioned is there ----
fresh
rm -rf d/live d/boots d/cache d/lock d/changes
check 'doctor has nothing to complain of' tidemark doctor
check 'recovery finds nothing' tidemark recover --dry-run
check_is 'it is read' 7 "$(tidemark log show one | wc -l)"
rm -rf d/sessions
check_is 'of a store without sessions: git keeps no empty directories' 'ok ' "$(tidemark store check) $(tidemark sessions list --ids)"
check_is 'one can be made there' new "$(tidemark sessions new --id new)"
rm -rf d/sessions
refuses_as 'what had sessions has none any more' 5 'CORRUPT|file||sessions||' sessions list
refuses_as 'nor is another put in their place' 5 'CORRUPT|file||sessions||' log append new --kind note.made
check 'nothing was made' test ! -e d/sessions

# ---- what does not belong there ----
fresh
: >$logs/empty.messages.jsonl
check_is 'a log without an event is no session' one "$(tidemark sessions list --ids)"
tidemark store check >out 2>err
check_is 'check says so' '5 1' "$? $(grep -c '^empty: its log has no event' out)"
fresh
echo '{' >d/store.json
refuses_as 'a damaged store.json' 5 'CORRUPT|file||store.json||' sessions list
rm d/store.json
check_is 'what it says to do works' '{"seq":8}' "$(tidemark log append one --kind note.made)"
check_is 'it is there again' ok "$(tidemark store check)"
fresh
mv $logs/one.messages.jsonl elsewhere
ln -s ../../elsewhere $logs/one.messages.jsonl
refuses_as 'a log that is a symbolic link' 6 'DENIED|file|one|d/sessions/one.messages.jsonl||replace_file' log show one
refuses_as 'is not written either' 6 'DENIED|file|one|d/sessions/one.messages.jsonl||replace_file' log append one --kind note.made
tidemark store check >out 2>err
check_is 'check names it, once' '5 1 1' "$? $(wc -l <out) $(grep -c '^one: .*one.messages.jsonl.*symbolic link' out)"
check 'what it leads to is as it was' cmp elsewhere kept/sessions/one.messages.jsonl
for folder in sessions live boots cache; do
    fresh
    mkdir -p d/$folder
    rm -rf moved
    mv d/$folder moved
    ln -s ../moved d/$folder
    refuses "a link in the place of $folder" 6 "'d/$folder' is a symbolic link, which is not followed: put the directory itself there" sessions list
    refuses "to write: $folder" 6 "'d/$folder' is a symbolic link" log append one --kind note.made
    rm d/$folder
    echo text >d/$folder
    refuses "a file in the place of $folder" 6 "'d/$folder' is not a directory: put the directory itself there" sessions list
done
fresh
mkdir d/live/one.json
tidemark sessions new --id two >/dev/null
check_is 'who holds it cannot be read: the others are listed' 'two idle one damaged' "$(tidemark sessions list | awk 'NR > 1 {print $1, $2}' | paste -sd ' ')"
check_is 'and why' "open 'd/live/one.json': not a regular file" "$(tidemark sessions list --json | json '$.sessions[1].why')"
fresh
rm $logs/one.messages.jsonl
mkdir $logs/one.messages.jsonl
refuses_as 'a directory in the place of a log' 6 'DENIED|file|one|d/sessions/one.messages.jsonl||replace_file' log show one
tidemark log append one --kind note.made 2>err
check 'to write: the same advice' grep -q "one.messages.jsonl': .*: put the file itself there$" err
tidemark store check >out 2>err
check_is 'check names it, once' '5 1 1' "$? $(wc -l <out) $(grep -c '^one: .*one.messages.jsonl.*not a regular file' out)"
fresh
echo 'my notes' >$logs/notes.txt
echo '{}' >$logs/things.json
cp $logs/one.messages.jsonl "$logs/my session.messages.jsonl"
touch $logs/.hidden $logs/one.torn-7 $logs/one.original-2
check_is 'what is no file of a session is no damage' ok "$(tidemark store check 2>err)"
check_is 'and told, by its name' 'my session.messages.jsonl notes.txt things.json' "$(sed -n 's,^tidemark: sessions/\(.*\) is not a file of a session: it is ignored$,\1,p' err | sort | paste -sd ' ')"
check_is 'nothing else is' 3 "$(wc -l <err)"
for i in $(seq 20); do touch "$logs/note $i"; done
check_is 'of many the first are named, the others counted' '9 1' "$(tidemark store check 2>&1 >/dev/null | wc -l) $(tidemark store check 2>&1 >/dev/null | grep -c '^tidemark: and so are 15 more$')"
fresh
echo 'my notes' >$logs/notes.txt
mkdir $logs/folder
check_is 'files of others are no sessions' one "$(tidemark sessions list --ids)"
tidemark store check >out 2>err
check_is 'check names what is not a file' '5 1' "$? $(grep -c '^folder: ' out)"
rmdir $logs/folder
check_is 'a file beside the logs does no harm' ok "$(tidemark store check)"
check_is 'and stays' 'my notes' "$(cat $logs/notes.txt)"
sed -i 's/"version":3/"version":9/' d/store.json
refuses_as 'a newer store' 5 'TOO_NEW|file||?*||' sessions list
refuses_as 'a newer store, to write' 5 'TOO_NEW|file||?*||' log append one --kind note.made
check 'doctor: a newer store' eval "tidemark doctor | grep -q '^fail .*use a newer tidemark'"

# ---- sessions of another program: read as they are, made ours by the first write ----
fresh
printf '%s\n' '{"seq":1,"ts":"2026-01-01T00:00:00.000Z","kind":"session.created","title":"theirs"}' \
    '{"seq":2,"ts":"2026-01-01T00:00:01.000Z","kind":"message.user","content":"hi"}' >$logs/theirs.messages.jsonl
cp $logs/theirs.messages.jsonl theirs
check_is 'lines without digests are read' 'hi' "$(tidemark log show theirs --kind message.user | json '$.content')"
check 'as they are' cmp theirs $logs/theirs.messages.jsonl
check_is 'they are unverified, and that is said' 1 "$(tidemark sessions verify theirs --json | json '$.sessions[0].unverified')"
check_is 'the first write goes behind them' '{"seq":3}' "$(tidemark log append theirs --kind note.made 2>err)"
check_is 'and tells what it did' '1 1' "$(wc -l <err) $(grep -c '^tidemark: session theirs was written by another program' err)"
check 'what was there is kept' cmp theirs $logs/theirs.original
check_is 'now every line is proved' 3 "$(grep -c '"digest":"' $logs/theirs.messages.jsonl)"
check 'whole' tidemark sessions verify theirs
check_is 'the next write tells nothing' '' "$(tidemark log append theirs --kind note.made 2>&1 >/dev/null)"

printf '%s\n' '{"id":"snap","title":"only a snapshot","working_dir":"/w","created_at":"2025-02-02T03:04:05Z","last_seq":9}' >$logs/snap.json
check_is 'a snapshot without a log is a session' 'only a snapshot' "$(tidemark sessions show snap --json | json '$.title')"
check 'reading makes nothing' test ! -e $logs/snap.messages.jsonl
tidemark sessions delete theirs
check 'nor does writing elsewhere' test ! -e $logs/snap.messages.jsonl
check_is 'it can be written to' '{"seq":2}' "$(tidemark log append snap --kind note.made 2>/dev/null)"
check 'and is whole then' tidemark sessions verify snap
check 'the snapshot is kept' grep -q '"last_seq":9' $logs/snap.original
echo '{}' >$logs/things.json
check_is 'any other JSON is no session' '' "$(tidemark sessions list --ids | grep things)"

# theirs TEXT: a log of another program
theirs() {
    printf '%b' "$1" >$logs/t.messages.jsonl
    cp $logs/t.messages.jsonl theirs
}
theirs '{"seq":1,"kind":"message.user"}\n\n{"seq":2,"kind":"message.user","content":"last"}'
check_is 'empty lines, no times, no last newline' last "$(tidemark log show t | tail -n 1 | json '$.content')"
tidemark sessions export t -o t.export
check_is 'its export can be imported' t "$(tidemark --store t.db sessions import t.export)"
check 'it can be copied' tidemark store copy files:d copy.db
check_is 'again: it is there' 'copied 0 sessions; 3 were there already' "$(tidemark store copy files:d copy.db | sed 's/ (.*)//; s/already.*/already/')"
check_is 'as it was' 1970-01-01T00:00:00.000Z "$(tidemark --store copy.db log show t | head -n 1 | json '$.ts')"
check_is 'it can be written to' '{"seq":3}' "$(tidemark log append t --kind note.made 2>/dev/null)"
check 'and is whole' tidemark sessions verify t
check 'all that was there is kept' cmp theirs $logs/t.original
rm $logs/t.*
echo mine >$logs/t.original
theirs '{"seq":1,"kind":"message.user"}\n'
tidemark log append t --kind note.made >/dev/null 2>err
check 'a name that is taken stays' grep -qx mine $logs/t.original
check 'another is found, and told' eval "grep -q 'sessions/t.original-2$' err && cmp theirs $logs/t.original-2"
tidemark sessions delete t
theirs '{"seq":1,"kind":"message.user"}\n{"seq":2,"kind":"MessageUser"}\n'
shows 'a kind that is none' 1 'line 2 of its log, which another program wrote, is not an event: its kind' t
refuses_as 'is not cut off' 5 'CORRUPT|session|t|||' log append t --kind note.made
theirs '{"seq":1,"kind":"message.user"}\n{"seq":5,"kind":"message.user"}\n'
refuses_as 'a gap' 5 'CORRUPT|session|t|||' log append t --kind note.made
theirs 'notes of mine\n'
refuses_as 'no JSON at all' 5 'CORRUPT|session|t|||' log append t --kind note.made
theirs '{"seq":1,"ts":"noon","kind":"message.user"}\n'
refuses_as 'a time that is none' 5 'CORRUPT|session|t|||' log append t --kind note.made
check 'nothing was changed' cmp theirs $logs/t.messages.jsonl
check_is 'nor kept aside' '' "$(find $logs -name 't.torn*')"
rm $logs/t.messages.jsonl

# ---- two processes, and a log that is deleted while it is written ----
fresh
for w in 1 2; do
    for i in $(seq 40); do
        tidemark sessions send one "$w-$i" >/dev/null || echo failed >>failed
    done &
done
wait
check 'two processes: none was refused' test ! -e failed
check_is 'all arrived, without a gap' '87 87' "$(tidemark log show one | wc -l) $(tidemark log show one | tail -n 1 | json '$.seq')"
check 'whole' tidemark sessions verify one
"$TIDE_BIN" log append one - <feed >deleted.acks 2>deleted.err &
writer=$!
exec 6>feed
echo '{"kind":"k.k"}' >&6
wait_for test -s deleted.acks
refuses_as 'while one holds it another is told who' 4 'HELD|session|one|||' log append one --kind k.k
printf '{"half' >>$logs/one.messages.jsonl
refuses_as 'and mends nothing that is not its own' 4 'HELD|session|one|||' log append one --kind k.k
check_is 'nothing is kept aside' '' "$(find $logs -name 'one.torn*')"
rm $logs/one.messages.jsonl
echo '{"kind":"k.k"}' >&6
exec 6>&-
wait $writer
got=$?
check_is 'a log that is deleted in use: one line' '1 1' "$(wc -l <deleted.err) $(grep -c '^tidemark: ' deleted.err)"
check 'and no success' test $got -ne 0
check_is 'nothing was acknowledged behind it' 1 "$(wc -l <deleted.acks)"
check_is 'the others go on' other "$(tidemark sessions new --id other)"
finish
