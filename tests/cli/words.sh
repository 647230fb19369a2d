#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What people read is true: what can be done after each end, which option means something to what, why a key is not used,
# and that stored text shows nothing but itself.
# shellcheck disable=SC2016,SC2317 # backquotes in patterns; functions are called by name
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
anew='`tidemark exec --session told -- PROGRAM` runs it anew'
tidemark exec --session told -- sh -c 'kill -KILL $$' sh "$DEPLOY_TOKEN" 2>err
check 'killed: exec says how it is run anew' holds "$anew" <err
check_is 'and offers no resume' 0 "$(grep -c 'tidemark resume' err)"
check 'why says why' holds 'held a secret, which is not stored: it is not run again from the log' <<<"$(tidemark why told)"
check_is 'and advises the same' 'tidemark exec --session told -- PROGRAM' "$(tidemark why told --json | json '$.next[0]')"
check_is 'no command of it resumes' 0 "$(tidemark why told | grep -c 'tidemark resume')"
tidemark exec --session told -- sh -c 'kill -KILL $PPID' sh "$DEPLOY_TOKEN" 2>err
check 'recovery has nothing to run' holds ' 0 resumed' <<<"$(tidemark recover --run-due --auto-resume all 2>&1)"
check_is 'and why no other advice' 'tidemark cancel told;tidemark exec --session told -- PROGRAM' "$(tidemark why told --json | json '$.next[0]');$(tidemark why told --json | json '$.next[1]')"
tidemark exec --session told -- sh -c 'tidemark wait w --kind input' sh "$DEPLOY_TOKEN" 2>err
check 'waiting: exec says how it is run anew' holds "$anew" <err
check_is 'and offers no answer' 0 "$(grep -c 'tidemark resume told' err)"
check_is 'nor does why' 0 "$(tidemark why told | grep -c 'tidemark resume')"
tidemark exec --session told -- sh -c 'kill -KILL $$' 2>err
check 'without a secret it is run again' holds '`tidemark resume told` runs it again' <err
check_is 'and why offers it' 'tidemark resume told' "$(tidemark why told --json | json '$.next[0]')"
unset DEPLOY_TOKEN

# ---- options by what runs ----
tidemark exec --session program -- sh -c 'exit 1' 2>/dev/null
TIDEMARK_SCRIPT=$work/none.json tidemark chat -p hi --script answers.json --output json 2>/dev/null </dev/null | json '$.session_id' >chat.id
chat=$(cat chat.id)
tidemark run graph.json --session graph -q 2>/dev/null
# only FOR SESSION COMMAND OPTION...: refused, naming what it is for.
only() {
    # shellcheck disable=SC2086
    refuses "$3: ${*:4} is for $1" 2 "for $1" $3 "$2" "${@:4}"
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
    for option in '--checkpoint 1' '--set a=1' '--graph graph.json' '--map a=b' --fallback --dry-run '--parallel 2' \
        '--provider script' '--model m' '--base-url http://x' '--script s' --no-input --yes '--output json' --quiet; do
        # shellcheck disable=SC2086
        case $option in --map*) option="$option --graph graph.json" ;; esac
        # shellcheck disable=SC2086
        only graphs "$session" 'sessions resume' $option
    done
done
tidemark exec --session nap -- sh -c 'tidemark sleep s 1ms' 2>/dev/null
recovered() {
    tidemark recover --run-due >/dev/null 2>&1
    [ "$(tidemark why nap --json | json '$.outcome')" = completed ]
}
check 'recovery resumes programs all the same' wait_for recovered
refuses 'sessions trust: shown or trusted, not both' 2 '--show and --yes: give one of them' sessions trust graph --show --yes
refuses 'store trust: the same' 2 '--show and --yes: give one of them' store trust --yes --show

# ---- a graph whose beginning is damaged ----
# Long enough for a snapshot: its state can be read, its first events cannot.
sed 's/x = 1/x = 1, pad = string.rep('"'tide '"', 20000)/; s/"outputs": \["x"\]/"outputs": ["x", "pad"]/' graph.json >long.json
tidemark run long.json --session broken -q 2>/dev/null
damage broken 2
for option in '--checkpoint 1' '--set a=1' '--graph graph.json'; do
    # shellcheck disable=SC2086
    refuses "$option: damage is called damage" 5 'is damaged' sessions resume broken $option
done
refuses 'of resume, too' 5 'is damaged' resume broken --set a=1

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
flock --no-fork "$lock" sh -c 'echo held >held; exec sleep 300' &
holder=$!
check 'it holds the lock' wait_for test -s held
kill -STOP $holder
tidemark sessions new >out 2>err && got=0 || got=$?
check_is 'a stopped one: refused' 6 "$got"
check 'it says what helps' holds "\`kill -CONT $holder\`" <err
check_is 'and not to wait for it' 0 "$(grep -c 'try again when' err)"
end_holder
wait $holder 2>/dev/null
check 'then it goes on' tidemark sessions new
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
