#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark graph diff: two versions node by node, and which sessions under way could go on with the new one.
# shellcheck disable=SC2016 # programs of graphs hold dollars
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

cat >old.json <<'END'
{"tidemark_graph": 1, "id": "flow", "entry": "plan",
 "nodes": [
  {"id": "plan", "type": "lua", "code": "return {x = 1}", "outputs": ["x"]},
  {"id": "ask", "type": "human_input", "question": "Go on with {x}?", "inputs": ["x"], "outputs": ["y"]},
  {"id": "work", "type": "function", "retries": 0, "program": ["sh", "-c", "exit 1"], "inputs": ["y"], "outputs": ["z"]},
  {"id": "rest", "type": "lua", "code": "return {}"}],
 "edges": [{"from": "plan", "to": "ask"}, {"from": "ask", "to": "work"}, {"from": "work", "to": "rest"}]}
END
cat >new.json <<'END'
{"tidemark_graph": 1, "id": "flow", "entry": "plan",
 "nodes": [
  {"id": "plan", "type": "lua", "code": "return {x = 2}", "outputs": ["x"]},
  {"id": "approve", "type": "human_input", "question": "Go on with {x}?", "inputs": ["x"], "outputs": ["y"]},
  {"id": "work", "type": "function", "retries": 0, "program": ["sh", "-c", "exit 1"], "inputs": ["y", "style"], "outputs": ["z"]}],
 "edges": [{"from": "plan", "to": "approve"}, {"from": "approve", "to": "work"}]}
END
sed 's/{x = 1}/{x = 3}/' old.json >alike.json

check_is 'every node has its word' '  compatible  plan     it and its ways changed
  removed     ask      it is gone; it may be called approve now: --map ask=approve
  broken      work     needs '"'style'"', which it did not
  removed     rest     it is gone
  added       approve
5 of 5 nodes differ' "$(tidemark graph diff old.json new.json)"
check_is 'what is the same' 'the same: 4 nodes' "$(tidemark graph diff old.json old.json)"
sed 's/"id": "flow",/"id": "flow", "memory": {"m": 1},/' old.json >memory.json
check 'and what is beside the nodes' eval "tidemark graph diff old.json memory.json | grep -q 'every node is the same; what differs'"
check_is 'one of both from standard input' '1 of 4 nodes differ' "$(tidemark graph diff alike.json - <old.json | tail -n 1)"
refuses_as 'not both' 2 'INVALID|argument||new||' graph diff - - <old.json
refuses_as 'a file that is not there' 3 'NOT_FOUND|file||none.json||' graph diff old.json none.json
echo '{"tidemark_graph":1}' >bad.json
refuses_as 'a graph that is wrong' 2 'INVALID|file||bad.json||' graph diff old.json bad.json
tidemark graph diff old.json new.json --json >out
check 'as JSON' eval 'is_json <out'
check_is 'with what a node needs and may be called' 'style approve' "$(json '$.nodes[2].needs[0]' <out) $(json '$.nodes[1].rename' <out)"
cat >two.json <<'END'
{"tidemark_graph": 1, "id": "two", "entry": "p", "nodes": [
  {"id": "p", "type": "lua", "code": "return {x = 1}", "outputs": ["x"]},
  {"id": "q", "type": "human_input", "question": "Sure?", "inputs": ["x"], "outputs": ["y"]},
  {"id": "r", "type": "human_input", "question": "Why?", "inputs": ["x"], "outputs": ["y"]}],
 "edges": [{"from": "p", "to": "q"}, {"from": "q", "to": "r"}]}
END
cat >one.json <<'END'
{"tidemark_graph": 1, "id": "two", "entry": "p", "nodes": [
  {"id": "p", "type": "lua", "code": "return {x = 1}", "outputs": ["x"]},
  {"id": "s", "type": "human_input", "question": "Why?", "inputs": ["x", "tone"], "outputs": ["y"]}],
 "edges": [{"from": "p", "to": "s"}]}
END
check_is 'two nodes do not become one' '--map r=s' "$(tidemark graph diff two.json one.json | grep -o -- '--map .*')"

cat >once.json <<'END'
{"tidemark_graph": 1, "id": "once", "entry": "p", "nodes": [
  {"id": "p", "type": "function", "effect": "once", "program": ["true"]},
  {"id": "m", "type": "map", "over": "{1}", "node": {"type": "function", "effect": "once", "program": ["true"]}},
  {"id": "s", "type": "subgraph", "graph": {"id": "in", "entry": "q", "nodes": [
    {"id": "q", "type": "function", "effect": "once", "program": ["true"]}]}}],
 "edges": [{"from": "p", "to": "m"}, {"from": "m", "to": "s"}]}
END
sed 's/"once", "program"/"pure", "program"/' once.json >pure.json
check_is 'what had to happen once and may be repeated now is named' "  compatible  p  p had to happen once
  compatible  m  its items had to happen once
  compatible  s  q had to happen once" "$(tidemark graph diff once.json pure.json | grep -o '^.* had to happen once')"
check_is 'the other way round it is not' 0 "$(tidemark graph diff pure.json once.json | grep -c 'had to happen once')"

# ---- sessions under way ----
refuses_as 'without a store there are none' 3 'NOT_FOUND|file||*||init_store' graph diff old.json new.json --against-live
tidemark run old.json --session asks -q >out 2>&1
tidemark run old.json --session works --title 'Works hard' -q >out 2>&1
tidemark resume works --input yes >out 2>&1
tidemark run new.json --session newer --set style=plain -q >out 2>&1
tidemark run alike.json --session other -q >out 2>&1
tidemark run old.json --session stopped -q >out 2>&1
sed 's/exit 1/echo {\\\\\\"z\\\\\\":1}/;s/"flow"/"another"/' old.json >another.json
tidemark run another.json --session elsewhere -q >out 2>&1
tidemark cancel stopped >out 2>&1
tidemark graph diff old.json new.json --against-live >out
check_is 'some could not go on' 1 $?
check_is 'they are counted and named' '
5 unfinished sessions
       1  run this version already
       3  can continue with a mapping of node names
      stopped  interrupted_waiting  --map ask=approve
      other  waiting  --map ask=approve
      asks  waiting  --map ask=approve
       1  cannot continue with it
      works  idle  Works hard  node '"'work': needs 'style', which it did not" "$(sed '1,/differ$/d;s/stopped  [a-z_]*/stopped  interrupted_waiting/' out)"
tidemark graph diff new.json alike.json --against-live --json >out
check 'as JSON, all of them' eval 'is_json <out'
# fit ID: of the session, in out
fit() {
    sqlite3 :memory: "SELECT json_extract(value, '\$.fit') FROM json_each(CAST(readfile('out') AS TEXT), '\$.sessions')
        WHERE json_extract(value, '\$.session_id') = '$1'"
}
check_is 'each by the version that it runs' 'same compatible compatible mapping' "$(fit other) $(fit works) $(fit asks) $(fit newer)"
check_is 'with numbers' 1 "$(json '$.live.same' <out)"
tidemark graph diff old.json alike.json --against-live >out
check_is 'a mapping is asked for' 1 $?
sed 's/"type": "human_input", "question": "Go on with {x}?"/"type": "lua", "code": "return {y = 1}"/' old.json >asked.json
tidemark graph diff old.json asked.json --against-live --json >out
check_is 'what is half-way through a node cannot become another' stuck "$(fit asks)"
sed 's/"type": "function", "retries": 0, "program": \["sh", "-c", "exit 1"\]/"type": "lua", "code": "return {z = 1}"/' old.json >worked.json
tidemark graph diff old.json worked.json --against-live --json >out
check_is 'what failed and begins anew can' compatible "$(fit works)"
check 'and a resume agrees' tidemark sessions resume works --graph worked.json --dry-run
cat >outer.json <<'END'
{"tidemark_graph": 1, "id": "outer", "entry": "sub", "nodes": [{"id": "sub", "type": "subgraph", "graph": {"id": "in", "entry": "who",
 "nodes": [{"id": "who", "type": "human_input", "question": "Who?", "outputs": ["name"]}]}}]}
END
tidemark run outer.json --session inside -q >out 2>&1
sed 's/"who"/"whom"/g' outer.json >moved.json
tidemark graph diff outer.json moved.json --against-live --json >out
check_is 'what stands inside a node must be there as well' 'stuck sub#1/who' \
    "$(fit inside) $(sqlite3 :memory: "SELECT json_extract(CAST(readfile('out') AS TEXT), '\$.sessions[0].node')")"
tidemark run two.json --session two -q >out 2>&1
tidemark sessions resume two --input yes -q >out 2>&1
check 'a new input of a renamed node is asked for as well' eval \
    "tidemark graph diff two.json one.json --against-live | grep -q 'two  waiting  .*--map r=s --set .tone=…'"
tidemark sessions delete two >/dev/null
tidemark sessions delete newer >/dev/null
tidemark graph diff old.json alike.json --against-live >out
check_is 'all can go on' '0 0' "$? $(grep -c cannot out)"

finish
