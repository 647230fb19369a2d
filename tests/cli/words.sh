#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people read is true: what can be done after each end, which option means something to what, why a key is not used,
# and that stored text shows nothing but itself.
# shellcheck disable=SC2016,SC2034,SC2317 # backquotes in patterns; variables are used by `eval`, functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
PATH=$(dirname "$TIDE_BIN"):$PATH
export PATH TIDEMARK_PROVIDER=script TIDEMARK_SCRIPT="$work/answers.json"

echo '{"turns":[{"text":"Done."}],"repeat":true}' >answers.json
cat >graph.json <<'END_OF_GRAPH'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "outputs": ["x"], "code": "return {x = 1}", "safe_point": true},
  {"id": "b", "type": "function", "program": ["sh", "-c", "exit 1"], "inputs": ["x"], "outputs": ["y"], "retries": 0}],
 "edges": [{"from": "a", "to": "b"}]}
END_OF_GRAPH

# ---- a command line that held a secret ----
export DEPLOY_TOKEN=sk-not-for-anyone-42
anew='`tidemark exec --ensure --session told -- PROGRAM` continues it'
tidemark exec --session told -- sh -c 'kill -KILL $$' sh "$DEPLOY_TOKEN" 2>err
check 'killed: exec says how it is continued' holds "$anew" <err
check_is 'and offers no resume' 0 "$(grep -c 'tidemark resume' err)"
check 'why says why' holds 'contained a secret, which is not stored: it is not run again from the log' <<<"$(tidemark why told)"
check_is 'and advises the same' 'tidemark exec --ensure --session told -- PROGRAM' "$(tidemark why told --json | json '$.next[0].command')"
check_is 'no command of it resumes' 0 "$(tidemark why told | grep -c 'tidemark resume')"
tidemark exec --new-run --session told -- sh -c 'kill -KILL $(cut -d" " -f4 /proc/$PPID/stat)' sh "$DEPLOY_TOKEN" 2>err
check 'recovery has nothing to run' holds ' 0 resumed' <<<"$(tidemark recover --run-due --auto-resume all 2>&1)"
check_is 'and why no other advice' 'tidemark cancel told;tidemark exec --ensure --session told -- PROGRAM' "$(tidemark why told --json | json '$.next[0].command');$(tidemark why told --json | json '$.next[1].command')"
tidemark exec --new-run --session told -- sh -c 'tidemark wait w --kind input' sh "$DEPLOY_TOKEN" 2>err
check 'waiting: exec says how it begins anew' holds '`tidemark exec --new-run --session told -- PROGRAM` starts a new run' <err
check_is 'and offers no answer' 0 "$(grep -c 'tidemark resume told' err)"
check_is 'nor does why' 0 "$(tidemark why told | grep -c 'tidemark resume')"
tidemark exec --new-run --session told -- sh -c 'kill -KILL $$' 2>err
check 'without a secret it is run again' holds '`tidemark resume told` resumes it' <err
check_is 'and why offers it' 'tidemark resume told' "$(tidemark why told --json | json '$.next[0].command')"
unset DEPLOY_TOKEN

# ---- options by what runs ----
tidemark exec --session program -- sh -c 'exit 1' 2>/dev/null
TIDEMARK_SCRIPT=$work/none.json tidemark chat -p hi --script answers.json --output json 2>/dev/null </dev/null | json '$.session_id' >chat.id
chat=$(cat chat.id)
tidemark run graph.json --session graph -q 2>/dev/null
# only FOR SESSION COMMAND OPTION...: refused, because it is for FOR. Of a chat that has completed the option is not all that is wrong.
only() {
    local helps=repeat
    [ "$2" != "$chat" ] || helps=why
    # shellcheck disable=SC2086
    refuses_as "$3: ${*:4} is for $1" 2 "INVALID|argument|$2|*||$helps" $3 "$2" "${@:4}"
}
for option in --now --accept-change '--request-id r'; do
    # shellcheck disable=SC2086 # words
    for session in graph "$chat"; do only programs "$session" resume $option; done
done
for option in '--retry s' '--happened s'; do
    # shellcheck disable=SC2086
    only programs "$chat" resume $option
done
only 'chats and graphs' program resume --keep-pause
for session in program "$chat"; do
    for option in --no-input '--set a=1'; do
        # shellcheck disable=SC2086
        only graphs "$session" resume $option
    done
    for option in '--checkpoint 1' '--set a=1' '--graph graph.json' '--map a=b' --fallback '--parallel 2' --no-input --quiet; do
        # shellcheck disable=SC2086
        case $option in --map*) option="$option --graph graph.json" ;; esac
        # shellcheck disable=SC2086
        only graphs "$session" 'sessions resume' $option
    done
done
for option in '--provider script' '--model m' '--base-url http://x' '--script s' --yes '--output json'; do
    # shellcheck disable=SC2086
    only 'chats and graphs' program 'sessions resume' $option
done
tidemark exec --session nap -- sh -c 'tidemark sleep s 300ms' 2>/dev/null
recovered() {
    tidemark recover --run-due >/dev/null 2>&1
    [ "$(tidemark why nap --json | json '$.outcome')" = completed ]
}
check 'recovery resumes programs all the same' wait_for recovered
refuses_as 'sessions trust: shown or trusted, not both' 2 'INVALID|argument||show||' sessions trust graph --show --yes
refuses_as 'store trust: the same' 2 'INVALID|argument||show||' store trust --yes --show

# ---- a graph whose beginning is damaged ----
# Long enough for a snapshot: its state can be read, its first events cannot.
sed 's/x = 1/x = 1, pad = string.rep('"'tide '"', 20000)/; s/"outputs": \["x"\]/"outputs": ["x", "pad"]/' graph.json >long.json
tidemark run long.json --session broken -q 2>/dev/null
damage broken 2
for option in '--checkpoint 1' '--set a=1' '--graph graph.json'; do
    # shellcheck disable=SC2086
    refuses_as "$option: damage is called damage" 5 'CORRUPT|*' sessions resume broken $option
done
refuses_as 'of resume, too' 5 'CORRUPT|*' resume broken --set a=1

# ---- a process that keeps others from writing ----
holder=
end_holder() {
    [ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null
}
trap 'end_holder; remove_work' EXIT
TIDEMARK_STORE=$(store_at "$work/locked")
export TIDEMARK_STORE
tidemark sessions new --id one >/dev/null
if on_files; then lock=locked.files/lock; else lock=locked.db-mark; fi
# A run of each kind is at work when that happens; one more begins meanwhile.
declare -A runs
work_until_go() {
    echo "touch $work/$1.begun; until [ -e $work/go ]; do sleep 0.05; done"
}
begin() {
    local whose=$1
    shift
    "$TIDE_BIN" "$@" >"$whose.out" 2>"$whose.err" </dev/null &
    runs[$whose]=$!
}
echo "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"$(work_until_go chat)\"}}]},{\"text\":\"Done.\"}]}" >chat.json
echo "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"function\",\"program\":[\"sh\",\"-c\",\"$(work_until_go graph); echo '{}'\"]}]}" >graph.json
begin chat chat --script chat.json --yes -p go
begin graph run graph.json
begin program exec -- sh -c "$(work_until_go program); '$TIDE_BIN' step x -- true"
for whose in chat graph program; do check "$whose: it is at work" wait_for test -e $whose.begun; done
flock --no-fork "$lock" sh -c 'echo held >held; exec sleep 300' &
holder=$!
check 'it holds the lock' wait_for test -s held
kill -STOP $holder
touch go
begin new exec -- true
tidemark sessions new >out 2>err && got=0 || got=$?
check_is 'a stopped one: refused' 6 "$got"
check 'it says what helps' holds "\`kill -CONT $holder\`" <err
check_is 'and not to wait for it' 0 "$(grep -c 'try again when' err)"
blocked='chat graph program new'
on_files && blocked=new # sessions that are there have locks of their own
for whose in $blocked; do
    check "$whose: says who it is, that it pauses, and what helps" \
        wait_for grep -q "process $holder .*is stopped .*pause.*: \`kill -CONT $holder\` lets it continue" "$whose.err"
done
end_holder
wait $holder 2>/dev/null
for whose in chat graph program new; do
    wait "${runs[$whose]}"
    check_is "$whose: then it completes" 0 $?
done
check 'then it goes on' tidemark sessions new
default_store

# ---- a key that is not used ----
tidemark sessions new --id mine >/dev/null
key=state/tidemark/origin.key
# because WHAT: each of these says once why the key is not used, and prints what it always does.
because() {
    local command
    for command in 'sessions list' 'sessions show mine' 'why mine' 'sessions timeline mine' 'log show mine' doctor; do
        # shellcheck disable=SC2086
        tidemark $command >out 2>err </dev/null
        check_is "$command, $1: says why" 1 "$(grep -c "^tidemark: the key of origin '.*$2.*; it is not used, and your own sessions count as foreign" err)"
    done
}
check 'a bare environment: what is missing is named' eval 'env -i TIDEMARK_STORE="$(tidemark store info --json | json "\$.url")" "$TIDE_BIN" why mine 2>&1 | holds "no state directory for the key of origin: neither HOME nor XDG_STATE_HOME is set; it is not used"'
check_is 'a key that is right is not spoken of' '' "$(tidemark sessions list 2>&1 >/dev/null)"
chmod 644 $key
because 'mode 644' 'can be read by others: `chmod 600`'
chmod 600 $key
mv $key key.real
ln -s "$work/nothing" $key
because 'a link to nothing' 'is a link to a file that is not there'
rm $key
ln -s "$work" $key
because 'a directory' 'is not a regular file'
rm $key
mv key.real $key
check_is 'right again' '' "$(tidemark sessions list 2>&1 >/dev/null)"

# ---- stored text shows nothing but itself ----
# Marks of direction, characters without a width, tags, a control, an escape sequence.
hostile=$(printf 'A\342\200\256B\342\200\213C\342\200\217D\330\234E\357\273\277F\033[31mG\342\201\246H\302\205I\363\240\200\241J\302\255K')
in_json=${hostile//$'\033'/\\u001b}
# is_clean: standard input holds none of them.
is_clean() {
    ! LC_ALL=C grep -q "$(printf '\342\200\256\\|\342\200\213\\|\342\200\217\\|\330\234\\|\357\273\277\\|\033\\|\342\201\246\\|\302\205\\|\363\240\200\241\\|\302\255')"
}
# shows COMMAND...: what it prints, both ways, is clean, and not nothing.
shows() {
    local what=$2
    tidemark "$@" >out 2>err </dev/null
    check "clean: ${*//"$hostile"/HOSTILE}" eval '[ "$what" = checkpoints ] || [ -n "$(cat out err)" ] && cat out err | is_clean || { cat -v out err | head -n 20; false; }'
}
check 'what is looked for is found' eval '! is_clean <<<"$hostile"'
TIDEMARK_STORE=$(store_at "$work/hostile")
export TIDEMARK_STORE
cat >answers.json <<END_OF_ANSWERS
{"turns":[{"text":"$in_json","calls":[{"name":"bash","args":{"command":"echo '$in_json'"}}]},{"text":"$in_json"}],"repeat":true}
END_OF_ANSWERS
cat >hostile.json <<END_OF_GRAPH
{"tidemark_graph": 1, "id": "h", "name": "$in_json", "description": "$in_json", "entry": "a", "nodes": [
  {"id": "a", "name": "$in_json", "description": "$in_json", "type": "human_input", "question": "$in_json", "outputs": ["x"]},
  {"id": "b", "name": "$in_json", "type": "function", "program": ["sh", "-c", "echo '$in_json' >&2; exit 1"], "inputs": ["x"], "outputs": ["y"], "retries": 0}],
 "edges": [{"from": "a", "to": "b"}]}
END_OF_GRAPH
cat >hostile.sh <<END_OF_PROGRAM
#!/bin/sh
tidemark step '$hostile' -- true
tidemark checkpoint '$hostile'
tidemark set 'k=$hostile'
tidemark wait '$hostile' --kind input --question '$hostile'
END_OF_PROGRAM
chmod +x hostile.sh
shows exec --session program --title "$hostile" -- ./hostile.sh "$hostile"
shows run hostile.json --session graph
shows resume graph --input "$hostile"
tidemark chat -p "$hostile" --title "$hostile" >out 2>err </dev/null
check 'clean: chat that waits' is_clean <err
chat=$(tidemark sessions list --ids | head -n 1)
for session in program graph "$chat"; do
    for command in 'sessions show' why 'sessions timeline' 'sessions checkpoints' 'sessions trust --show' 'sessions inspect' 'state --pretty' 'sessions verify'; do
        # shellcheck disable=SC2086
        shows $command $session
    done
done
shows sessions resume graph --dry-run
for command in 'sessions list' doctor recover 'recover --run-due' 'graph show hostile.json' 'graph check hostile.json' 'config list'; do
    # shellcheck disable=SC2086
    shows $command
done
for command in 'sessions show' why resume run 'sessions new --id' 'config get'; do
    # shellcheck disable=SC2086
    shows $command "$hostile"
done
joined=$(printf 'K\342\200\215L')
tidemark sessions new --title "$joined" >/dev/null
check 'a joiner in a title is seen' eval '! tidemark sessions list | grep -qF "$joined"'
check 'a pipe gets the bytes that are stored' eval "tidemark log show program | grep -qF '${in_json//\\u001b/}' || tidemark log show program | LC_ALL=C grep -q \"$(printf '\342\200\256')\""
if command -v script >/dev/null; then
    # at_terminal COMMAND...: what it prints on one; colours are its own.
    at_terminal() {
        script -qec "$(printf '%q ' "$TIDE_BIN" --color never "$@") 2>/dev/null" /dev/null </dev/null 2>&1
    }
    check 'at a terminal: log show' eval 'at_terminal log show program | is_clean'
    check 'at a terminal: state' eval 'at_terminal state program | is_clean'
    check 'at a terminal: it is the same JSON' eval '[ "$(at_terminal log show program | tr -d "\r" | head -n 1 | json "$.title")" = "$hostile" ]'
    check 'at a terminal: the answer of a chat' eval 'at_terminal resume "$chat" --input allow >out; grep -q A.*B.*K out && is_clean <out'
    check 'at a terminal: of the next one' eval 'at_terminal chat --resume "$chat" -p more --yes >out; grep -q A.*B.*K out && is_clean <out'
else
    skip 'at a terminal' 'no script here'
fi
default_store

# ---- what is not trusted, as pages and help have it ----
TIDEMARK_STORE=$(store_at "$work/foreign")
export TIDEMARK_STORE
TIDEMARK_SCRIPT=$work/done.json
echo '{"turns":[{"text":"Done."}],"repeat":true}' >done.json
tidemark chat -p hi >/dev/null 2>&1 </dev/null
chat=$(tidemark sessions list --ids)
tidemark run graph.json --session graph -q >/dev/null 2>&1
tidemark exec --session waits -- tidemark wait n --kind input >/dev/null 2>&1
tidemark exec --session nap -- tidemark sleep n 300ms >/dev/null 2>&1
export TIDEMARK_ORIGIN_KEY='the key of somebody else'
# foreign WORDS COMMAND...: refused with 11; the help of the command, which is these first words, has that status.
foreign() {
    local words=$1
    shift
    refuses_as "not trusted: $*" 11 'UNTRUSTED|session|*|||trust' "$@"
    # shellcheck disable=SC2086
    check "$words --help has it" eval "tidemark $words --help | tr '\n' ' ' | grep -q '\<11\>.*trust\|\<11 when the answer'"
}
foreign exec exec --session waits -- true
foreign exec exec --resume waits
foreign resume resume waits --input x
foreign run run graph.json --session graph
foreign chat chat --resume "$chat" -p x
foreign chat chat --continue -p x
foreign 'sessions resume' sessions resume graph --dry-run
foreign 'sessions send' sessions send waits hi
foreign 'token rotate' token rotate waits
for page in exec run chat recover; do
    check "tidemark-$page(1) has it" eval "grep -q '^# TRUST' '$TIDE_SOURCE/man/tidemark-$page.1.scd' && grep -q 'exit status 11' '$TIDE_SOURCE/man/tidemark-$page.1.scd'"
done
check 'the service, too' grep -q TIDEMARK_ORIGIN_KEY_FILE "$TIDE_SOURCE/examples/tidemark-recover.service"
names_trust() {
    tidemark recover --run-due >out && holds '`tidemark sessions trust nap`' <out
}
check 'recovery ends with 0 and names the command' wait_for names_trust
unset TIDEMARK_ORIGIN_KEY
TIDEMARK_ORIGIN_KEY_FILE=/nowhere refuses 'a key that is named and not there' 3 'TIDEMARK_ORIGIN_KEY_FILE' recover
finish_nap() {
    XDG_STATE_HOME=$work/elsewhere TIDEMARK_ORIGIN_KEY_FD=9 tidemark recover --run-due 9<"$work/state/tidemark/origin.key" >/dev/null 2>&1
    [ "$(tidemark why nap --json | json '$.outcome')" = completed ]
}
check 'with the key by a descriptor, from another home, it runs' wait_for finish_nap
default_store

# ---- one event is not several ----
if on_files; then
    skip 'one event is not several' 'of tables'
else
    TIDEMARK_STORE=one.db tidemark sessions new --id one >/dev/null
    TIDEMARK_STORE=one.db tidemark sessions new --id two >/dev/null
    sqlite3 one.db "DELETE FROM events WHERE sid = (SELECT sid FROM sessions WHERE id = 'one')"
    check 'one event is not several' holds 'should have 1 event and has 0' <<<"$(TIDEMARK_STORE=one.db tidemark store check 2>&1)"
fi
finish
