#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where a graph begins, what it is for, where its programs are, and how often items of a map are tried.
# shellcheck disable=SC2016 # dollars and backquotes are part of the texts
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE
mkdir -p graph/parts elsewhere
cat >graph/g.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "first", "goal": "peace", "entry_points": {"late": "inner"},
 "nodes": [
  {"id": "first", "type": "function", "program": ["./where.sh"], "outputs": ["dir"]},
  {"id": "inner", "type": "subgraph", "file": "parts/in.json", "outputs": ["in"]},
  {"id": "ask", "type": "human_input", "question": "For {goal}?", "outputs": ["said"]}],
 "edges": [{"from": "first", "to": "inner"}, {"from": "inner", "to": "ask"}]}
END
cat >graph/parts/in.json <<'END'
{"id": "in", "entry": "i", "nodes": [{"id": "i", "type": "function", "program": ["./in.sh"], "outputs": ["in"]}]}
END
printf '#!/bin/sh\nprintf "{\\"dir\\": \\"%%s\\"}" "$PWD"\n' >graph/where.sh
printf '#!/bin/sh\necho in >>"%s/ran"\necho "{\\"in\\": 1}"\n' "$work" >graph/parts/in.sh
chmod +x graph/where.sh graph/parts/in.sh
events() {
    tidemark log show "$1"
}

# ---- programs ----
cd elsewhere || exit 1
check_status 'programs are looked for beside the file that names them' 7 tidemark run ../graph/g.json --session a
check 'and run where the session works' eval "events a | grep memory.set | grep -qF '\"dir\":\"$work/elsewhere\"'"
check_is 'also those of a file inside' in "$(cat ../ran)"
check 'which the stored graph names from the directory of the graph' eval \
    "events a | grep -qF '\"program\":[\"parts/in.sh\"]'"
check_status 'a resume finds them too' 0 env -C / "$TIDE_BIN" resume a --input yes
mv ../graph/where.sh ../graph/kept.sh
check_status 'one that is missing' 1 tidemark run ../graph/g.json --session b
check 'is told with the directory' eval \
    "tidemark why b | grep -qF './where.sh: no such program in $work/graph (the directory of the graph)'"
mv ../graph/kept.sh ../graph/where.sh
check_status 'and found by a resume from anywhere' 7 env -C / "$TIDE_BIN" resume b

# ---- the goal ----
check_is 'the goal of the graph is asked for' 'For peace?' "$(tidemark sessions show b --json | json '$.run.wait.question')"
check_status 'a run may give another' 7 tidemark run ../graph/g.json --session c --goal 'a cup of tea'
check_is 'which stands in its texts' 'For a cup of tea?' "$(tidemark sessions show c --json | json '$.run.wait.question')"
check 'and is stored with the run' eval "events c | grep run.started | grep -qF '\"goal\":\"a cup of tea\"'"

# ---- entry points ----
check_status 'a run begins at an entry point' 7 tidemark run ../graph/g.json --session d --entry late
check_is 'and nothing before it runs' 0 "$(events d | grep -c '"node":"first"')"
check 'which is stored with the run' eval "events d | grep run.started | grep -qF '\"entry\":\"late\"'"
refuses_as 'one that is not there' 2 'INVALID|argument||entry||' run ../graph/g.json --session e --entry early
refuses_as 'and leaves no session' 3 'NOT_FOUND|session|e|||list_sessions' sessions show e

# ---- retries of a map ----
cat >map.json <<'END'
{"tidemark_graph": 1, "id": "m", "entry": "m", "memory": {"l": [1]},
 "nodes": [{"id": "m", "type": "map", "over": "l", "retries": 0, "outputs": ["z"],
  "node": {"type": "function", "program": ["./fails.sh"], "outputs": ["z"]}}]}
END
printf '#!/bin/sh\necho try >>tries\nexit 1\n' >fails.sh
chmod +x fails.sh
check_status 'a map whose items fail' 1 tidemark run map.json
check_is 'tries them as often as the map says' 1 "$(wc -l <tries)"
finish
