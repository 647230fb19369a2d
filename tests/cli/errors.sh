#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What an error tells programs: its code, what it is about and what helps, as JSON on standard error (--json). Nothing here looks
# at a message; that they read well is tested in wording.sh.
# shellcheck disable=SC2016 # programs hold dollars
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# is_error NAME WANT ARGS...: the command fails, and its error is WANT: code, subject, session, name, position, actions.
is_error() {
    local name=$1 want=$2
    shift 2
    tidemark --json "$@" >.out 2>.err </dev/null
    check_is "$name" "$want" "$(tail -n 1 .err | error_types)"
}

tidemark sessions new --id there >/dev/null
tidemark log append there --kind note --data '{}' >/dev/null
tidemark log append there --kind note --data '{}' >/dev/null

is_error 'a session that is not there' 'NOT_FOUND|session|nope|||list_sessions' sessions show nope
is_error 'an append to it' 'NOT_FOUND|session|nope|||list_sessions' log append nope --kind note --data '{}'
is_error 'a session that is there already' 'EXISTS|session|there|||' sessions new --id there
is_error 'a checkpoint that is not there' 'NOT_FOUND|checkpoint|there|ckpt_x||list_checkpoints' sessions inspect there ckpt_x
is_error 'a setting that is not there' 'INVALID|key||no_such_setting||list_settings' config get no_such_setting
printf '{"model":\n"m",}\n' >torn.json
is_error 'a file that is no JSON: the line' 'INVALID|file||torn.json|2|' config get model --config torn.json
is_error 'a file that is a directory' 'DENIED|file||.||replace_file' config get model --config .
is_error 'an option that is not there' 'INVALID|argument||no_such_option||' sessions list --no-such-option
is_error 'a store that is not there' "NOT_FOUND|file||$(store_at none | sed 's/^files://')||init_store" --store "$(store_at none)" sessions list

# ---- an export whose third line is not what it was ----
tidemark sessions export there >there.jsonl
sed '3s/"note"/"nope"/' there.jsonl >changed.jsonl
is_error 'a line that was changed' 'CORRUPT|file|||3|' --store "$(store_at other)" sessions import changed.jsonl
sed '3s/.*/{/' there.jsonl >torn.jsonl
is_error 'a line that is no JSON' 'INVALID|file|||3|' --store "$(store_at other)" sessions import torn.jsonl

cat >graph.json <<'END_GRAPH'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "retries": 0, "effect": "once", "program": ["sh", "-c", "exit 3"], "outputs": ["x"]}]}
END_GRAPH

# ---- from a step, over the socket of its run ----
cat >pays.sh <<'END_PROGRAM'
"$TIDE_BIN" --json step pay -- echo "$(cat amount)" 2>step.json
"$TIDE_BIN" --json get gone 2>get.json
exit 1
END_PROGRAM
export TIDE_BIN
echo 1 >amount
check_status 'the first time' 1 tidemark exec --session pays -- sh pays.sh
check_is 'a value that was never set' 'NOT_FOUND|key|pays|gone||' "$(error_types <get.json)"
echo 2 >amount
check_status 'with another amount' 1 tidemark resume pays
check_is 'a step with other arguments than before' 'CHANGED|step|pays|pay||resume' "$(error_types <step.json)"

# ---- settings, files, events, arguments ----
is_error 'a setting that is not set' 'NOT_FOUND|key||model||set_setting' config get model
is_error 'a file of the settings that is not there' 'NOT_FOUND|file||none.json||' config get model --config none.json
is_error 'also for a check' 'NOT_FOUND|file||none.json||' config check --config none.json
is_error 'a value that a setting does not take' 'INVALID|key||provider||' config set provider wrong
is_error 'a file that cannot be made' 'NOT_FOUND|file||none/x||' sessions export pays --output none/x
is_error 'no wait of which there could be a token' 'WRONG_STATE|session|pays|||why' token rotate pays
is_error 'a graph that is not there' 'NOT_FOUND|file||none.json||' run none.json
is_error 'an event that is not there' 'NOT_FOUND|event|pays||999|show_log' sessions fork pays --at 999
is_error 'a store of an unknown kind' 'INVALID|argument||store||' --store foo:x sessions list
is_error 'a word that is no status' 'INVALID|argument||status||' sessions list --status wrong
is_error 'a step that is not open' 'INVALID|step|pays|nosuch||show_timeline' resume pays --retry nosuch
# What a command refuses itself, after its arguments were read: which of them it is.
while IFS='|' read -r subject name words; do
    # shellcheck disable=SC2086 # words
    is_error "$words" "INVALID|$subject||$name||" $words
done <<'END_REFUSED'
argument|id|log show
argument|last|log show --all --last 1
argument|after|log show pays --after 1
argument|last|log show pays --last 1 --from 1
argument|from|log show pays --from 5 --to 2
argument|kind|log append pays
argument|sync|log append pays --kind a --sync
argument|data|log append pays - --data {}
argument|id|sessions verify
argument|id|sessions delete
argument|id|sessions delete pays --older-than 1d
argument|dry_run|sessions delete pays --dry-run
argument|yes|sessions delete --older-than 0s
argument|show|sessions trust pays --show --yes
argument|format|sessions transcript pays --format text
argument|reuse_effects|sessions rollback pays --to 1 --reuse-effects --redo-effects
argument|name|schema nothing
argument|value|config set model
argument|ensure|exec --ensure --new-run --session a -- true
argument|session|exec --ensure -- true
argument|title|exec --resume pays --title t
argument|program|exec --resume pays -- true
argument|program|exec
argument|map|resume pays --map x
argument|reuse_effects|resume pays --reuse-effects --redo-effects
argument|redo_effects|resume pays --redo-effects
argument|input|resume pays --input a --input-json 1
argument|set|run graph.json --set x
argument|set|run graph.json --set x=1 --set x=2
argument|set|run graph.json --set x=$NO_SUCH_VARIABLE
argument|set|resume pays --set x:=y
argument|script|run graph.json --script x --provider openai
argument|output|run graph.json --output text
argument|model|run graph.json --model=
argument|no_checkpoints|run graph.json --no-checkpoints --checkpoint checkpoint_on_edge=true
argument|jobs|recover --jobs 2
argument|interval|recover --interval 1s
argument|watch|recover --watch --dry-run
argument|dot|graph show graph.json --dot --mermaid
argument|new|graph diff - -
argument|prompt|chat
argument|prompt|chat --prompt=
argument|watch|chat --watch
argument|resume|chat --resume pays --continue
argument|from|chat --from 3 -p hi
argument|redo_effects|chat --redo-effects -p hi
argument|output|chat -p hi --output text
argument|script|chat -p hi --script x --provider openai
argument|no_store|chat --no-store --continue -p hi
argument|forget|doctor --forget a --remember b
argument|crash_points|torture graph.json --crash-points x
argument|dst|store copy . .
file|.|sessions import .
file|torn.json|graph show torn.json
END_REFUSED
is_error 'a token that is not in its file' 'TOKEN_MALFORMED|argument||token||' resume pays --token @/dev/null
is_error 'whose file is not there' 'NOT_FOUND|file||none.token||' resume pays --token @none.token
is_error 'a session that is further' 'CONFLICT|session|pays|||' log append pays --kind a --data '{}' --expect 1

# What is wrong with the command line itself, also when --json stands behind it.
for given in 'config path --json' '--json config path' 'frob --json' 'sessions frob --json'; do
    # shellcheck disable=SC2086 # words
    tidemark $given >out 2>err
    check_is "$given: status" 2 $?
    check_is "$given: one line of JSON" 'INVALID|||||' "$(error_types <err)"
    check_is "$given: nothing else" '' "$(cat out)"
done
tidemark sessions list --limit x --json 2>err
check_is 'which argument' 'INVALID|argument||limit||' "$(error_types <err)"
tidemark sessions list --no-such --json 2>err
check_is 'one that there is not' 'INVALID|argument||no_such||' "$(error_types <err)"
tidemark sessions show --json 2>err
check_is 'one that is missing' 'INVALID|argument||id||' "$(error_types <err)"
tidemark exec --json -- ./nosuch 2>err
check_is 'a program that is not there: as of a shell' 127 $?
check_is 'and as JSON' 'NOT_FOUND|file||./nosuch||' "$(error_types <err)"
tidemark frob -- --json 2>err
check 'not behind --' grep -q '^tidemark: ' err

# ---- of a graph ----
tidemark run graph.json --session broken --json >run.json 2>/dev/null </dev/null
check_is 'the node that failed' a "$(json '$.failed_node' <run.json)"
is_error 'a graph that is refused because of it' 'UNSETTLED|node|broken|a||repeat,repeat' sessions resume broken

# ---- damage ----
damage there 2
is_error 'an event that is damaged' 'CORRUPT|event|there||2|show_log' log show there

finish
