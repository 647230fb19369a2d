#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Right after a crash: chat, exec and run are killed behind each of their commits, and then the advice is followed, that of
# `why` and that of every refusal, until the session is complete. A command that was advised and is refused without another
# advice, or one that comes again, is a circle.
#
#   advice.sh KILL_AT    a program that kills another behind its n-th sync (tests/real/kill_at.c)
# shellcheck disable=SC2016,SC2317 # backquotes in patterns; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
kill_at=${1:?the program kill_at}
unset ANTHROPIC_API_KEY OPENAI_API_KEY
PATH=$(dirname "$TIDE_BIN"):$PATH
export PATH TIDEMARK_PROVIDER=script TIDEMARK_SCRIPT="$work/answers.json"

echo '{"turns":[{"text":"I look.","calls":[{"name":"bash","args":{"command":"echo hi"}}]},{"text":"Done."}],"repeat":true}' >answers.json
cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "lua", "outputs": ["x"], "code": "return {x = {1, 2}}"},
  {"id": "b", "type": "function", "program": ["sh", "-c", "echo '{\"y\": 1}'"], "inputs": ["x"], "outputs": ["y"]},
  {"id": "m", "type": "map", "over": "x", "outputs": ["z"], "node": {"type": "function", "program": ["sh", "-c", "echo '{\"z\": 1}'"], "effect": "once", "outputs": ["z"]}}],
 "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "m"}]}
END
printf '#!/bin/sh\ntidemark step one -- true && tidemark step two --effect once -- true\n' >program
chmod +x program

member() {
    tidemark why "$1" --json | json "\$.$2"
}
# filled COMMAND: the words in capitals as a person would fill them in.
filled() {
    sed "s|PROGRAM|./program|; s|GRAPH.json|graph.json|; s|TEXT|more|; s|=JSON|=1|g; s|\(chat --resume [^ ]*\)\$|\1 -p more|" <<<"$1"
}
# advised ID: the command that the refusal in `err` names, else the first that `why` gives.
advised() {
    if grep -q '`tidemark' err; then
        sed -n 's/.*`\(tidemark [^`]*\)`.*/\1/p' err | head -n 1
    else
        member "$1" 'next[0].command'
    fi
}
# follow ID COMMAND: does it, or what its refusal advises. Says where it ends, when it does not succeed.
follow() {
    local id=$1 command=$2 next seen=""
    for _ in 1 2 3 4; do
        command=$(filled "$command")
        case $seen in *"|$command|"*)
            echo "a circle: $seen $command"
            return 1
            ;;
        esac
        seen="$seen|$command|"
        bash -c "$command" </dev/null >out 2>err && return 0
        next=$(advised "$id")
        if [ -z "$next" ]; then
            echo "refused: $command: $(cat err)"
            return 1
        fi
        command=$next
    done
    echo "no end: $seen"
    return 1
}
# complete ID: by the first command that `why` gives, again and again.
complete() {
    local seen="" command
    for _ in 1 2 3 4; do
        [ "$(member "$1" status)/$(member "$1" outcome)" = idle/completed ] && return 0
        command=$(member "$1" 'next[0].command')
        case $seen in *"|$command|"*)
            echo "a circle of why: $seen $command"
            return 1
            ;;
        esac
        seen="$seen|$command|"
        follow "$1" "$command" || return 1
    done
    echo "not complete: $(tidemark why "$1")"
    return 1
}
# Whatever it is: each of these is a command that people try first.
try_all() {
    local what problem=''
    [ "$(member "$1" outcome)" != completed ] || return 0
    for what in "tidemark resume $1" "tidemark sessions resume $1" "tidemark chat --resume $1"; do
        cp -r store copy
        problem=$(follow "$1" "$what") || echo "$problem"
        rm -rf store
        mv copy store
    done
}
chats_continue() {
    tidemark chat --continue -p more --output json </dev/null 2>err | json '$.session_id'
}

# cuts NAME COMMAND...: killed behind each commit. Of commits that add nothing to the log the first stands for all.
cuts() {
    local name=$1 n id events last=none problems='' continued='' got
    shift
    for n in $(seq 60); do
        rm -rf store
        mkdir store
        TIDEMARK_STORE=$(store_at "$work/store/s")
        export TIDEMARK_STORE
        tidemark sessions new --id other >/dev/null
        tidemark sessions delete other >/dev/null
        "$kill_at" "$n" tidemark "$@" </dev/null >out 2>err && got=0 || got=$?
        if [ "$got" -eq 77 ]; then
            skip "$name" 'nothing can be traced here'
            return
        fi
        [ "$got" -eq 0 ] || break
        id=$(tidemark sessions list --ids)
        [ -n "$id" ] || continue
        events=$(tidemark log show "$id" | wc -l)
        [ "$events" != "$last" ] || continue
        last=$events
        problems="$problems$(try_all "$id" | sed "s/^/cut $n: /")"
        if [ "$1" = chat ] && [ "$(cp -r store copy && chats_continue)" != "$id" ]; then
            continued="$continued cut $n: $(cat err)"
        fi
        [ ! -e copy ] || { rm -rf store && mv copy store; }
        problems="$problems$(complete "$id" | sed "s/^/cut $n: /")"
    done
    check_is "$name: every advice leads on" '' "$problems"
    [ "$1" != chat ] || check_is "$name: --continue finds it" '' "$continued"
    check_is "$name: it was cut in several places" yes "$([ "$last" != none ] && [ "$n" -gt 3 ] && echo yes || echo "no: $n $last")"
}

cuts chat chat --yes -p hi
cuts exec exec -- ./program
cuts run run graph.json --quiet

# ---- a session that nothing has run in ----
TIDEMARK_STORE=$(store_at "$work/plain")
export TIDEMARK_STORE
tidemark sessions new --id plain >/dev/null
check_is 'a new session: its first advice is followed' '' "$(complete plain)"
tidemark sessions new --id plain2 >/dev/null
check_is 'a new session, resumed: the refusal leads on' '' "$(follow plain2 'tidemark resume plain2')"
tidemark sessions new --id plain3 >/dev/null
check_is 'a new session, talked to: the refusal leads on' '' "$(follow plain3 'tidemark chat --resume plain3')"

# ---- a supervisor that is stopped ----
# A cancel takes its lease by force, and its program lives on: what `why` says and what `resume` does must agree.
sleeper=
end_sleeper() {
    kill -CONT "$sleeper" 2>/dev/null
    kill -KILL "$sleeper" 2>/dev/null
}
trap 'end_sleeper; remove_work' EXIT
printf '#!/bin/sh\necho $$ >pid.program\nexec sleep 300\n' >sleeps
chmod +x sleeps
"$TIDE_BIN" exec --session stopped -- ./sleeps >out 2>err &
sleeper=$!
started() {
    [ -s pid.program ]
}
wait_for started
kill -STOP "$sleeper"
tidemark cancel stopped >/dev/null
check 'why names the program that lives' holds "its program is still alive (process $(cat pid.program)): it can be resumed when that has ended" <<<"$(tidemark why stopped)"
check_is 'and how it is ended' "kill $(cat pid.program)" "$(member stopped 'next[0].command')"
refuses 'a resume is refused for the same reason' 4 "is still alive (process $(cat pid.program))" resume stopped
bash -c "$(member stopped 'next[0].command')"
gone_program() {
    [ "$(member stopped 'next[0].command')" = 'tidemark resume stopped' ]
}
check 'then why advises to resume' wait_for gone_program
end_sleeper
wait "$sleeper" 2>/dev/null
printf '#!/bin/sh\ntrue\n' >sleeps
check 'which works' tidemark resume stopped
finish
