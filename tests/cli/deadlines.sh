#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A graph's question whose deadline passes: nobody answers, and an edge leads on to a node that must happen once. The process at
# whose terminal it is asked carries it out; when that is killed, at whichever of its commits, or when recovery is, another
# one does. Whatever is killed, and whoever else answers meanwhile: one outcome, and the node behind it runs once.
#
#   deadlines.sh KILL_AT    a program that kills another behind its n-th sync (tests/real/kill_at.c)
# shellcheck disable=SC2016,SC2317 # programs of graphs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
kill_at=${1:?the program kill_at}
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE TERM=xterm LC_ALL=C.UTF-8

"$kill_at" 1 true
if [ $? -eq 77 ]; then
    skip 'deadlines and kills' 'nothing can be traced here'
    finish
fi

# graph FILE DEADLINE: "late" is where the edge of the deadline leads, "send" where an answer does.
graph() {
    cat >"$1" <<END
{"tidemark_graph": 1, "id": "deadline", "entry": "ask", "nodes": [
  {"id": "ask", "type": "human_input", "question": "Who?", "outputs": ["name"], "deadline": "$2"},
  {"id": "late", "type": "function", "effect": "once", "program": ["./work"], "outputs": ["way"]},
  {"id": "send", "type": "function", "effect": "once", "program": ["./work"], "outputs": ["way"]}],
 "edges": [{"from": "ask", "to": "send", "on": "success"}, {"from": "ask", "to": "late", "on": "timeout"}]}
END
}
graph soon.json 150ms
cat >work <<'END'
#!/bin/sh
echo "$TIDEMARK_NODE begins" >>"world.$TIDEMARK_SESSION_ID"
echo "$TIDEMARK_NODE is done" >>"world.$TIDEMARK_SESSION_ID"
echo "{\"way\": \"$TIDEMARK_NODE\"}"
END
chmod +x work

# Somebody sits at the terminal and types nothing.
mkfifo keys
exec 9<>keys
at_terminal() {
    timeout -k 1 20 script -qec "$(printf '%q ' "$@")" /dev/null <&9 >screen 2>&1
}
status_of() {
    tidemark sessions show "$1" --json | json '$.status' | tr -d '\n'
    tidemark sessions show "$1" --json | json '$.outcome'
}
did() {
    grep -c "$2 is done" "world.$1" 2>/dev/null
}
events() {
    tidemark log show "$1" | grep -c "$2"
}

# drive ID: as a person, a timer and an operator would, until it is complete. Of a node whose outcome is unknown the world is asked.
drive() {
    local n node
    for n in $(seq 200); do
        case $(status_of "$1") in
        idlecompleted) return 0 ;;
        waiting*) tidemark recover --run-due >/dev/null 2>&1 ;;
        *)
            tidemark resume "$1" --no-input </dev/null >/dev/null 2>err
            [ $? -eq 10 ] || continue
            for node in late send; do
                ! grep -q "'$node'" err || if [ "$(did "$1" $node)" = 1 ]; then
                    tidemark resume "$1" --happened $node --set "way=$node" </dev/null >/dev/null 2>&1
                else
                    tidemark resume "$1" --retry $node </dev/null >/dev/null 2>&1
                fi
            done
            ;;
        esac
    done
    echo "# $1 is $(status_of "$1") after $n rounds"
    return 1
}

# one_outcome ID: the question is over once, one edge was taken, one node has done its work, once, and the memory says the same.
one_outcome() {
    local ends way
    ends=$(tidemark log show "$1" | grep -c '"kind":"node\.\(completed\|failed\)".*"node":"ask"')
    way=$(tidemark state "$1" | json '$.content.memory.way')
    [ "$ends" = 1 ] && [ "$(events "$1" '"kind":"edge.taken","from":"ask"')" = 1 ] &&
        [ "$(grep -c 'is done' "world.$1")" = 1 ] && [ "$(did "$1" "$way")" = 1 ] && return
    echo "# $1: the question ended $ends times, edges $(events "$1" '"kind":"edge.taken","from":"ask"'), memory $way, the world:"
    sed 's/^/#   /' "world.$1"
    tidemark log show "$1" | cut -c1-200 | sed 's/^/#   /'
    return 1
}

# ---- nothing is killed ----
check 'a question at a terminal ends at its deadline' at_terminal "$TIDE_BIN" run soon.json --session alone
check_is 'by the edge for it, in the process that asked' '1 late 1' \
    "$(did alone late) $(tidemark state alone | json '$.content.memory.way') $(events alone run.started)"
check 'with one outcome' one_outcome alone

# ---- the process that asks is killed, everywhere ----
bad='' n=0 killed=0
while n=$((n + 1)); [ $n -lt 60 ]; do
    at_terminal "$kill_at" $n "$TIDE_BIN" run soon.json --session "t$n"
    got=$?
    [ $got -eq 0 ] && killed=$((killed + 1))
    if ! tidemark sessions show "t$n" >/dev/null 2>&1 || [ "$(events "t$n" run.started)" -eq 0 ]; then
        [ $got -eq 0 ] && continue # before there was anything
        bad="$bad $n"
    elif ! drive "t$n" || ! one_outcome "t$n" || [ "$(did "t$n" late)" != 1 ]; then
        bad="$bad $n"
    fi
    [ $got -eq 0 ] || break
done
check_is "killed behind each of its $killed commits it goes on by the same edge" '' "$bad"
check 'there were commits before the deadline and behind it' test "$killed" -ge 6

# ---- recovery is killed ----
bad='' n=0 killed=0
while n=$((n + 1)); [ $n -lt 60 ]; do
    tidemark run soon.json --session "r$n" </dev/null >/dev/null 2>&1 # parked: 7
    until tidemark recover --dry-run --json | grep -q "\"r$n\""; do :; done
    "$kill_at" $n "$TIDE_BIN" recover --run-due </dev/null >/dev/null 2>&1
    got=$?
    [ $got -eq 0 ] && killed=$((killed + 1))
    drive "r$n" && one_outcome "r$n" && [ "$(did "r$n" late)" = 1 ] || bad="$bad $n"
    [ $got -eq 0 ] || break
done
check_is "and so does recovery, killed behind each of its $killed commits" '' "$bad"
check 'recovery commits more than once' test "$killed" -ge 2

# ---- an answer comes at the same moment ----
bad='' late=0 sent=0
for n in $(seq 24); do
    tidemark run soon.json --session "a$n" </dev/null >/dev/null 2>&1
    deadline=$(date -u -d "$(tidemark sessions show "a$n" --json | json '$.run.wait.deadline_at')" +%s%3N)
    until [ "$(date +%s%3N)" -ge $((deadline - 40 + 2 * n)) ]; do :; done
    "$TIDE_BIN" resume "a$n" --input me </dev/null >/dev/null 2>&1 &
    "$TIDE_BIN" recover --run-due </dev/null >/dev/null 2>&1 &
    [ $((n % 3)) -ne 0 ] || kill -KILL $! 2>/dev/null
    { wait; } 2>/dev/null
    drive "a$n" && one_outcome "a$n" || bad="$bad $n"
    [ "$(did "a$n" late)" = 1 ] && late=$((late + 1)) || sent=$((sent + 1))
done
check_is "an answer at the deadline: one of the two counts ($sent answers, $late deadlines)" '' "$bad"

finish
