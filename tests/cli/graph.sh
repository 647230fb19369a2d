#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark graph: everything that is wrong at once, pictures, graphs from elsewhere, the schema.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

cat >good.json <<'END'
{"tidemark_graph": 1, "id": "release", "description": "From a plan to a release.", "entry": "plan", "max_steps": 50,
 "nodes": [
  {"id": "plan", "type": "event_loop", "prompt": "Plan", "description": "decides what goes in"},
  {"id": "build", "type": "function", "program": ["make", "all"]},
  {"id": "lint", "type": "function", "program": ["make", "lint"], "outputs": ["lint"]},
  {"id": "test", "type": "function", "program": ["make", "test"], "outputs": ["tests"]},
  {"id": "gate", "type": "router", "routes": [{"when": "memory.tests == 0", "to": "ask"}], "otherwise": "plan"},
  {"id": "ask", "type": "human_input", "question": "Ship it?", "kind": "approval", "deadline": "3h"}],
 "edges": [
  {"from": "plan", "to": "build"},
  {"from": "build", "to": "lint"}, {"from": "build", "to": "test"}, {"from": "build", "to": "ask", "on": "failure"},
  {"from": "lint", "to": "gate"}, {"from": "test", "to": "gate"}]}
END
sed 's/"entry": "plan"/"entry": "plann"/; s/"prompt"/"promt"/; s/"max_steps": 50/"max_steps": -1/' good.json >bad.json

# ---- check ----
check_is 'a graph that is right' 'ok  release: 6 nodes, 8 edges' "$(tidemark graph check good.json)"
check_status 'is no failure' 0 tidemark graph check good.json
check_is 'everything that is wrong, with its place and what to do' "problem  \$.max_steps: must be a whole number from 0 to 1000000000
problem  \$.nodes[0].promt: a node has no key 'promt'
         did you mean 'prompt'?
problem  \$.nodes[0]: a node of type event_loop must have prompt or system_prompt
problem  \$.entry: there is no node 'plann'
         did you mean 'plan'?

4 problems" "$(tidemark graph check bad.json)"
check_status 'is bad input, as for run and show' 2 tidemark graph check bad.json
check_is 'from standard input' 'ok  release: 6 nodes, 8 edges' "$(tidemark graph check - <good.json)"
sed 's/"otherwise": "plan"/"otherwise": "ask"/; s/"outputs": \["lint"\]/"inputs": ["paper"]/' good.json >warned.json
check_status 'warnings alone are no failure' 0 tidemark graph check warned.json
check 'but are told' eval "tidemark graph check warned.json | grep -qF \"warning  \\\$.nodes[2].inputs[0]: no node sets 'paper'\""
check 'as JSON' eval 'tidemark graph check bad.json --json | is_json'
check_is 'with places' '$.nodes[0].promt' "$(tidemark graph check bad.json --json | json '$.problems[1].path')"
check_is 'and a verdict' 0 "$(tidemark graph check bad.json --json | json '$.ok')"
check_is 'and a digest of what is right' 64 "$(tidemark graph check good.json --json | json '$.digest' | tr -d '\n' | wc -c)"
check_is 'the digest does not depend on blanks' "$(tidemark graph check good.json --json | json '$.digest')" \
    "$(tidemark graph show good.json --json | tidemark graph check - --json | json '$.digest')"
echo '{"tidemark_graph":1,"id":"x","entry":"alpha","nodes":[{"id":"alpha","type":"lua","code":"return {}"},{"id":"alpha","type":"lua","code":"return {}"}],
 "edges":[{"from":"alpha"},{"from":"alpha"},{"from":"alpha","to":"somewhere"}]}' >twice.json
check_is 'what follows from a problem is not one of its own' "problem  \$.edges[0]: an edge must have 'to'
         the node it leads to
problem  \$.edges[1]: an edge must have 'to'
         the node it leads to
problem  \$.nodes[1].id: 'alpha' is the id of \$.nodes[0] already
         each id may be used only once
problem  \$.edges[2].to: edge 'alpha' → 'somewhere': there is no node 'somewhere'
         one of: alpha

4 problems" "$(tidemark graph check twice.json)"
refuses_as 'no such file' 3 'NOT_FOUND|file||none.json||' graph check none.json
refuses_as 'a directory' 2 'INVALID|file||.||' graph check .
head -c 9000000 /dev/zero >huge.json
refuses_as 'a file that is too big' 2 'TOO_BIG|file||huge.json||' graph check huge.json
printf '{"tidemark_graph":1,"a\\u001b[31m":1}' >escape.json
check_is 'nothing reaches the terminal as it is' '' "$(tidemark graph check escape.json | grep "$(printf '\033')")"

# ---- show ----
tidemark graph show good.json >picture
check_is 'a graph as text' 'release  6 nodes, 8 edges
From a plan to a release.

  ●◂╮      plan   event_loop  decides what goes in
  ■ ┊      build  function    make all
  │ ┊        → lint, test  at once
  │ ┊        → ask  on failure
  ├─┊─┬─╮
  ■ ┊ │ │  lint   function    make lint
  │ ┊ ■ │  test   function    make test
  ├─┊─╯ │
  ◆ ┊   │  gate   router
  │ ┊   │    → ask  memory.tests == 0
  │ ┊   │    ↺ plan  otherwise
  ├─╯   │
  ╰─────┤
        ◉  ask    human_input Ship it?

  ● an agent  ■ a program  ◆ chooses the way  ◉ asks a person
  → X  CONDITION: to X if it holds (the first of them)
  → X, Y  at once: to all of them, in parallel  ↺ X, ┊: back to X, a loop' "$(cat picture)"
check_is 'no line is wider than asked for' 0 "$(tidemark graph show good.json --width 60 | awk '{ gsub(/[\200-\277]/, "") } length > 60' | wc -l)"
check 'colours when asked for' eval "tidemark graph show good.json --color always | grep -q \"\$(printf '\\033')\""
check 'for Graphviz' eval "tidemark graph show good.json --dot | grep -qF '\"build\" -> \"ask\" [label=\"on failure\"'"
check 'for Mermaid' eval "tidemark graph show good.json --mermaid | grep -qF 'n4 -.->|\"otherwise\"| n0'"
refuses_as 'one picture at a time' 2 'INVALID|argument||dot||' graph show good.json --dot --mermaid
refuses_as 'a graph with problems is not drawn' 2 'INVALID|file||bad.json||' graph show bad.json
mkdir empty
check_is 'without Graphviz it says so' \
    "tidemark: --svg needs Graphviz, and there is no program 'dot': install graphviz, or use --dot or --mermaid" \
    "$(env PATH="$work/empty" "$TIDE_BIN" graph show good.json --svg out.svg 2>&1)"
check 'and writes nothing' test ! -e out.svg
if command -v dot >/dev/null; then
    check 'with it a picture is written' tidemark graph show good.json --svg out.svg
    check 'which is one' grep -q '<svg' out.svg
    refuses 'not where it cannot be' 3 'none/out.svg' graph show good.json --svg none/out.svg
else
    skip 'with it a picture is written' 'no Graphviz here'
fi

# ---- subgraphs ----
mkdir -p parts
echo '{"tidemark_graph":1,"id":"inner","entry":"x","nodes":[{"id":"x","type":"lua","code":"return {}"}]}' >parts/inner.json
echo '{"tidemark_graph":1,"id":"outer","entry":"a","nodes":[{"id":"a","type":"subgraph","file":"parts/inner.json"}]}' >outer.json
check 'a file beside it is found' tidemark graph check outer.json
check 'from elsewhere too' eval "(cd parts && tidemark graph check ../outer.json)"
check 'and drawn behind' eval "tidemark graph show outer.json | grep -q '^inner in a'"
check 'and put in' eval "tidemark graph show outer.json --json | tidemark graph check -"
echo '{"tidemark_graph":1,"id":"inner","entry":"x","nodes":[{"id":"x","type":"subgraph","file":"../outer.json"}]}' >parts/inner.json
check 'a graph that contains itself' eval "tidemark graph check outer.json | grep -q 'contains itself'"

# ---- import ----
cat >agent.json <<'END'
{"agent": {"id": "a1", "name": "A"}, "goal": {"id": "g", "description": "Sell it."}, "required_tools": ["t"],
 "graph": {"entry_node": "x", "entry_points": {"start": "x", "last": "y"}, "terminal_nodes": ["y"],
 "nodes": [{"id": "x", "node_type": "llm_tool_use", "system_prompt": "Do", "output_keys": ["c"], "tools": ["t"]},
           {"id": "y", "node_type": "function", "function": "f", "input_keys": ["c"]}],
 "edges": [{"source": "x", "target": "y", "condition": "conditional", "condition_expr": "output['c'] > 0.8 and not output['d']"}]}}
END
tidemark graph import agent.json >made.json 2>warnings
check_is 'a graph of Hive is taken over' 0 $?
check 'and is right' tidemark graph check made.json
check_is 'what is left out is named' 2 "$(wc -l <warnings)"
check 'with its place' grep -qF '$.required_tools: ' warnings
check_is 'its goal is kept' 'Sell it.' "$(json '$.goal' <made.json)"
check_is 'and its entry points' y "$(json '$.entry_points.last' <made.json)"
check 'a check of the original says what to do' eval "tidemark graph check agent.json | grep -q 'tidemark graph import'"
refuses_as 'what is none' 2 'INVALID|file||good.json||' graph import good.json

# ---- small ones ----
echo '{"tidemark_graph":1,"id":"x","entry":"a","nodes":[{"id":"a","type":"lua","code":"return {}"}]}' >one.json
check_is 'one is one' 'ok  x: 1 node, 0 edges' "$(tidemark graph check one.json)"
# shaped EDGES...: a graph of three nodes with these.
shaped() {
    echo '{"tidemark_graph":1,"id":"x","entry":"a","nodes":[{"id":"a","type":"lua","code":"return {}"},
     {"id":"b","type":"lua","code":"return {}"},{"id":"c","type":"lua","code":"return {}"}],"edges":['"$1"']}' >shaped.json
    tidemark graph check shaped.json
}
shaped '{"from":"a","to":"b","when":"output.x"},{"from":"a","to":"c","when":"output.y"}' >out
check 'conditions without an else, and what one is' eval "grep -q 'the graph ends there' out && grep -qF 'an else is an edge with \"when\": \"true\" and the lowest priority' out"
check_is 'with one there is nothing to warn of' 'ok  x: 3 nodes, 2 edges' \
    "$(shaped '{"from":"a","to":"b","when":"output.x"},{"from":"a","to":"c","when":" true ","priority":-1}')"
check 'what stands behind it is never taken' eval \
    "shaped '{\"from\":\"a\",\"to\":\"b\",\"when\":\"output.x\"},{\"from\":\"a\",\"to\":\"c\",\"when\":\"true\",\"priority\":1}' | grep -qF \"\$.edges[0]: edge 'a' → 'b': never taken: 'a' → 'c' (\$.edges[1]) is always true before it\""

# ---- schema ----
check 'the schema is the published one' eval "tidemark graph schema | cmp - '$TIDE_SOURCE/docs/graph.schema.json'"
# shellcheck disable=SC2016 # the name of a key
check_is 'it has every type' 7 "$(tidemark graph schema | json '$."$defs".node.properties.type.enum' | tr ',' '\n' | wc -l)"

finish
