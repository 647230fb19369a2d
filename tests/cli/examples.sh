#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The help of every command ends with two examples, and each works when it is pasted: in a directory that has the sessions and
# files that they name, fresh for each. What is for the inside of a run is run by one.
# shellcheck disable=SC2016,SC2031 # programs hold dollars; the path is set for good
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
mkdir bin
ln -s "$TIDE_BIN" bin/tidemark
export PATH="$work/bin:$PATH" TIDEMARK_PROVIDER=script TIDEMARK_SCRIPT="$work/world/answers.json"

mkdir world
cd world || exit 1
echo '{"turns":[{"text":"A file."}],"repeat":true}' >answers.json
cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "tides", "entry": "a", "memory": {"word": "tide"},
 "nodes": [{"id": "a", "type": "lua", "inputs": ["word"], "outputs": ["long"], "code": "return {long = memory.word .. '!'}"}]}
END
sed 's/!/?/' graph.json >new.json
cat >agent.json <<'END'
{"agent": {"id": "h", "name": "H"}, "graph": {"id": "h", "goal_id": "g", "entry_node": "a", "terminal_nodes": ["a"],
 "nodes": [{"id": "a", "name": "A", "description": "d", "node_type": "event_loop", "input_keys": [], "output_keys": ["x"], "system_prompt": "p"}], "edges": []}}
END
printf '#!/bin/sh\ntidemark step build --effect pure -- true\ntidemark wait approve --kind approval --question "Release it?" >/dev/null\n' >deploy.sh
printf '#!/bin/sh\n' >publish.sh
printf 'all:\n\ttrue\n' >Makefile
chmod +x deploy.sh publish.sh
tidemark sessions new --id notes >/dev/null
tidemark log append notes --kind memory.set --data '{"values":{"a":1}}' >/dev/null
tidemark sessions checkpoint notes >/dev/null
tidemark sessions checkpoint notes >/dev/null
tidemark sessions export notes >notes.jsonl
tidemark exec --session deploy -- ./deploy.sh >/dev/null 2>&1
tidemark run graph.json --session tides --quiet >/dev/null 2>&1
tidemark --store here.db sessions new --id notes >/dev/null 2>&1 || { tidemark --store here.db store init && tidemark --store here.db sessions new --id notes; } >/dev/null
cd "$work" || exit 1

# is_good COMMAND STATUS: 7: it waits. An approval that is denied ends its program.
is_good() {
    case $1 in 'tidemark resume deploy --input no '*) [ "$2" -eq 1 ] || [ "$2" -eq 0 ] ;; *) [ "$2" -eq 0 ] || [ "$2" -eq 7 ] ;; esac
}

# with_server COMMAND: beside a server, whose console is that of the tests.
with_server() {
    PATH="$work/with-console:$PATH"
    "$work/with-console/tidemark" serve --listen 127.0.0.1:0 2>../said &
    server=$!
    wait_for grep -q console: ../said
    bash -c "$1"
    status=$?
    kill $server
    wait $server
    return $status
}

mkdir with-console
ln -s "$TIDE_BUILD/tests/tidemark-console" with-console/tidemark
tidemark help --table | cut -f 1 | sort -u | grep . >commands
check 'there are commands' test "$(wc -l <commands)" -gt 40
: >problems
cp -a world kept
cp -a data kept.data
n=0
while read -r words <&4; do
    # shellcheck disable=SC2086 # the words of a command
    tidemark $words --help | sed -n '/^Examples$/,$s/^  //p' >shown
    [ "$(wc -l <shown)" -eq 2 ] || echo "$words: $(wc -l <shown) examples" >>problems
    while IFS= read -r example <&5; do
        n=$((n + 1))
        case $example in 'tidemark chat' | 'tidemark tui'*) continue ;; esac # at a terminal
        rm -rf world data
        cp -a kept world
        cp -a kept.data data
        case $words in
            step | wait | sleep | set | get | checkpoint) (cd world && tidemark exec -- sh -c "$example") ;;
            serve) (cd world || exit; bash -c "exec $example" & server=$!; wait_for grep -q unix: ../out; kill $server; wait $server) ;; # it ends when it is told to
            console) (cd world && with_server "$example") ;;
            'sessions import') (cd world && tidemark sessions delete notes >/dev/null && bash -c "$example") ;;
            *) (cd world && bash -c "$example") ;;
        esac </dev/null >out 2>&1 && got=0 || got=$?
        is_good "$example" "$got" || echo "$example: exit status $got: $(head -c 300 out | tr '\n' ' ')" >>problems
    done 5<shown
done 4<commands
check_is 'every command has two examples that work' '' "$(cat problems)"
check 'they were run' test "$n" -gt 80
finish
