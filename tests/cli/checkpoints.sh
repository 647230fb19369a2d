#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints as people meet them: what each says of itself, what `inspect` shows, deleting and pruning, a damaged log, the count in
# a run's report, and where they are configured.
# shellcheck disable=SC2016,SC2317 # messages hold backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "read", "nodes": [
  {"id": "read", "type": "function", "program": ["sh", "-c", "echo '{\"text\": \"a b\", \"n\": 2}'"], "outputs": ["text", "n"], "effect": "pure"},
  {"id": "talk", "type": "event_loop", "prompt": "say it", "outputs": ["said"], "safe_point": true},
  {"id": "end", "type": "lua", "inputs": ["said"], "code": "return {z = inputs.said}", "outputs": ["z"]}],
 "edges": [{"from": "read", "to": "talk"}, {"from": "talk", "to": "end"}]}
END
cat >talk.json <<'END'
{"turns": [{"text": "I look.", "calls": [{"name": "bash", "args": {"command": "true"}}]},
           {"text": "I say.", "calls": [{"name": "set_output", "args": {"key": "said", "value": "hi"}}]}, {"text": "Done."}]}
END
run() {
    tidemark run graph.json --script talk.json --yes "$@" </dev/null 2>err
}
# of ID TYPE [N]: the N-th checkpoint of a type.
of() {
    tidemark sessions checkpoints "$1" --type "$2" --ids | sed -n "${3:-1}p"
}
describes() {
    tidemark sessions checkpoints "$1" ${2:+--type "$2"} --json | json '$.checkpoints' >list
    sqlite3 :memory: "SELECT value ->> '\$.description' FROM json_each(CAST(readfile('list') AS TEXT))"
}

# ---- what each says of itself ----
run --session g1 --checkpoint on_edge=true --checkpoint on_loop_iteration=true --output json >report
check_is 'it runs to its end' completed "$(json '$.status' <report)"
check_is 'before a node' 'before node read' "$(describes g1 node_start | head -n 1)"
check_is 'a node that is complete' 'node read completed' "$(describes g1 node_complete | head -n 1)"
check_is 'an edge' 'from node read to node talk' "$(describes g1 edge_transition | head -n 1)"
check_is 'a turn of an agent' 'after turn 1' "$(describes g1 loop_iteration | head -n 1)"
check_is 'a safe point' 'safe point after node talk' "$(describes g1 safe_point | head -n 1)"
check_is 'no checkpoint is without' 0 "$(describes g1 | grep -cx '')"
tidemark sessions new --id plain >/dev/null
tidemark sessions checkpoint plain >/dev/null
tidemark sessions checkpoint plain --type turn >/dev/null
tidemark sessions checkpoint plain --description 'my own' >/dev/null
tidemark log append plain --kind checkpoint --data '{"checkpoint_id":"old","type":"safe_point","node":"n"}' >/dev/null
check_is 'those by hand, and one of an earlier version' 'made by hand, after turn 0, my own, safe point after node n, ' "$(describes plain | tr '\n' ',' | sed 's/,/, /g')"

# ---- the count in the report ----
check_is 'the report counts every checkpoint' "$(tidemark sessions checkpoints g1 --ids | wc -l)" "$(json '$.checkpoints' <report)"
check_is 'turns of agents among them' 2 "$(tidemark sessions checkpoints g1 --type loop_iteration --ids | wc -l)"

# ---- inspect ----
ckpt=$(of g1 node_complete 2)
tidemark sessions inspect g1 "$ckpt" --json >seen
check_is 'what nodes have given, of functions and agents' '{"text":"a b","n":2,"said":"hi"}' "$(json '$.accumulated_outputs' <seen)"
last=$(tidemark log show g1 | grep '"kind":"message[.]' | tail -n 1 | json '$.message_id')
check_is 'the last message of each node' "{\"talk\":\"$last\"}" "$(json '$.conversation_states' <seen)"
check_is 'figures, also those that are zero' '0 []' "$(json '$.metrics_snapshot.total_retries' <seen) $(json '$.metrics_snapshot.nodes_with_failures' <seen)"
check_is 'at an earlier one there is less' '{"text":"a b","n":2} {}' \
    "$(tidemark sessions inspect g1 "$(of g1 node_complete)" --json >seen; json '$.accumulated_outputs' <seen) $(json '$.conversation_states' <seen)"
tidemark sessions inspect g1 "$ckpt" >seen
check_is 'people see them too' 1 "$(grep -c '^outputs  *3 keys$' seen)"
check_is 'with their values' 1 "$(grep -c '^  said = "hi"$' seen)"
run --session g2 --checkpoint include_full_memory=false --checkpoint include_conversation_snapshots=false -q >/dev/null
tidemark sessions inspect g2 "$(of g2 node_complete 2)" --json >seen
check_is 'what is not to be shown is not' '|||1' "$(json '$.accumulated_outputs' <seen)|$(json '$.conversation_states' <seen)||$(grep -c not_shown seen)"

# ---- deleting and pruning ----
n=$(tidemark sessions checkpoints g1 --ids | wc -l)
check_is 'one is deleted' '1 checkpoint deleted' "$(tidemark sessions checkpoint delete g1 "$ckpt")"
check_is 'the others stay' "$((n - 1)) 0" "$(tidemark sessions checkpoints g1 --ids | wc -l) $(tidemark sessions checkpoints g1 --ids | grep -c "$ckpt")"
refuses_as 'it is gone' 3 'NOT_FOUND|checkpoint|g1|*||list_checkpoints' sessions checkpoint delete g1 "$ckpt"
refuses_as 'both are to be named' 2 'INVALID|argument||checkpoint||' sessions checkpoint delete g1
check_is 'as JSON' 1 "$(tidemark sessions checkpoint delete g1 "$(of g1 node_start)" --json | json '$.deleted')"
check 'its help' eval "tidemark help sessions checkpoint delete | head -n 1 | grep -qF 'tidemark sessions checkpoint delete ID CHECKPOINT'"
for _ in 1 2 3 4 5 6 7 8 9; do tidemark sessions checkpoint plain >/dev/null; done
check_is 'pruning keeps ten unless it is told otherwise' '3 checkpoints deleted, 10' "$(tidemark sessions prune plain), $(tidemark sessions checkpoints plain --ids | wc -l)"

# ---- where they are configured ----
mkdir -p config/tidemark
starts() {
    tidemark sessions checkpoints "$1" --type node_start --ids | wc -l
}
sed 's/"id": "g",/"id": "g", "checkpoints": {"checkpoint_on_node_start": true, "checkpoint_on_edge": true},/' graph.json >told.json
echo '{"checkpoints": {"checkpoint_on_node_start": false, "checkpoint_on_node_complete": false}}' >config/tidemark/config.json
tidemark run told.json --script talk.json --yes --session c1 -q </dev/null >/dev/null
check_is 'the settings go over what a graph says, key by key' '0 0 2' \
    "$(starts c1) $(tidemark sessions checkpoints c1 --type node_complete --ids | wc -l) $(tidemark sessions checkpoints c1 --type edge_transition --ids | wc -l)"
tidemark run told.json --script talk.json --yes --session c2 -q --checkpoint on_node_start=true </dev/null >/dev/null
check_is 'and the command goes over them' '3 0' "$(starts c2) $(tidemark sessions checkpoints c2 --type node_complete --ids | wc -l)"
check_is 'both are recorded with the run' '0 1' \
    "$(tidemark log show c2 --kind run.started >started; json '$.checkpoints.checkpoint_on_node_complete' <started) $(json '$.checkpoints.checkpoint_on_node_start' <started)"
refuses_as 'a key that is none' 2 'INVALID|key||checkpoints||' config set checkpoints '{"checkpoint_on_nod": true}'
refuses_as 'a value that is none' 2 'INVALID|key||checkpoints||' config set checkpoints '{"checkpoint_on_edge": "often"}'
check 'one that is right' tidemark config set checkpoints '{"checkpoint_on_edge": false}'
rm config/tidemark/config.json
sed 's/"code": "return {z = inputs.said}"/"code": "error(1)"/' graph.json >fails.json
tidemark run fails.json --script talk.json --yes --session r1 -q --checkpoint on_edge=true </dev/null >/dev/null 2>&1
before=$(starts r1)
tidemark sessions resume r1 --graph graph.json --checkpoint-config on_node_start=false -q </dev/null >/dev/null
check_is 'a resume changes it from there on' "$before" "$(starts r1)"
check_is 'over what the run was told, key by key' '0 1' \
    "$(tidemark log show r1 | grep '"kind":"run.\(started\|resumed\)"' | tail -n 1 >started; json '$.checkpoints.checkpoint_on_node_start' <started) $(json '$.checkpoints.checkpoint_on_edge' <started)"
refuses_as 'a key that is none, of a resume' 2 'INVALID|argument||checkpoint_config||' sessions resume r1 --checkpoint-config nonsense=1
refuses_as 'what is no graph has none' 2 'INVALID|argument|plain|checkpoint_config||why' sessions resume plain --checkpoint-config on_edge=true

# ---- a damaged event hides only what it damages ----
tidemark sessions new --id hurt >/dev/null
for i in 1 2 3; do
    tidemark sessions checkpoint hurt --description "mark $i" >/dev/null
    tidemark log append hurt --kind note.made --data "{\"text\":\"note $i\"}" >/dev/null
done
# damage SEQ: something else in the body of an event.
damage() {
    if [ "$store_kind" = files ]; then
        sed -i "$1s/note 2\|mark 2/nope 2/" s.files/sessions/hurt.messages.jsonl
        rm -rf s.files/cache
    else
        sqlite3 s.db "UPDATE events SET body = replace(replace(body, 'note 2', 'nope 2'), 'mark 2', 'nope 2') WHERE seq = $1 AND sid = (SELECT sid FROM sessions WHERE id = 'hurt'); DELETE FROM snapshots"
    fi
}
damage 5
tidemark sessions checkpoints hurt >out 2>err && got=0 || got=$?
check_is 'all checkpoints are listed, and the damage is told' '5 3 1' "$got $(grep -c 'mark [123]' out) $(wc -l <err)"
check_is 'also as JSON' '3 5' "$(tidemark sessions checkpoints hurt --json 2>/dev/null >out; echo "$(json '$.total_checkpoints' <out) $(tidemark sessions checkpoints hurt --ids >/dev/null 2>&1; echo $?)")"
damage 4
tidemark sessions checkpoints hurt >out 2>err
check_is 'one that is damaged itself is missing, and no other' 'mark 1 mark 3' "$(grep -o 'mark [123]' out | xargs)"
tidemark sessions checkpoints hurt --limit 1 >out 2>err
check_is 'with the same options' 'mark 3' "$(grep -o 'mark [123]' out | xargs)"

finish
