#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How errors read: what failed, why, and what to do, in one line. What they mean to programs is tested by types (errors.sh, and
# refuses_as in the other files); their words are tested here, one of each kind.
# shellcheck disable=SC2016 # backquotes are part of the lines
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY

# reads NAME LINE ARGS...: the whole line, with the store's path as STORE.
reads() {
    local name=$1 want=$2
    shift 2
    tidemark "$@" >/dev/null 2>.err </dev/null
    check_is "$name" "tidemark: $want" "$(sed "s|$work/[^']*tidemark/[^']*|STORE|g; s|^\(tidemark: .*\) since [^ ]*|\1 since TIME|" .err)"
}

reads 'no store' "open store: no store at 'STORE': \`tidemark store init\` creates one" sessions list
tidemark sessions new --id there >/dev/null
tidemark log append there --kind note --data '{}' >/dev/null
tidemark log append there --kind note --data '{}' >/dev/null
tidemark sessions new --id theory >/dev/null
reads 'no session' "no session 'nope' in 'STORE': \`tidemark sessions list\` shows what there is" sessions show nope
reads 'several' "'the' fits two sessions: theory, there: give more of the id" sessions show the
reads 'one that is there already' "create session: a session 'there' exists already: choose another id" sessions new --id there
reads 'no checkpoint' "no checkpoint 'ckpt_x' in session 'there': \`tidemark sessions checkpoints there\` lists its checkpoints" sessions inspect there ckpt_x
reads 'a wrong key' "unknown key 'modle': did you mean 'model'?" config get modle
reads 'no key of a provider' 'no key for anthropic (ANTHROPIC_API_KEY is not set): `tidemark config set api_key file:PATH` sets it' chat --provider anthropic --model m -p hi
reads 'a setting that is not set' 'model is not set: `tidemark config set model VALUE` sets it' config get model
reads 'an event that is not there' "seq 9 of session 'there': its last event is 3: \`tidemark log show there\` shows all of it" sessions fork there --at 9
reads 'arguments that exclude each other' '--watch shows everything: omit --output' chat --watch --output text -p x
reads 'an argument of the store' '--store: the path is empty: give sqlite:PATH or files:DIR, or the path of a database' --store '' sessions list
reads 'a directory in the place of a file' "read '.': Is a directory: put the file itself there" config get model --config .
printf '{"model":\n"m",}\n' >torn.json
reads 'no JSON' 'torn.json: not JSON: line 2, column 5: expected a key in quotes, found '"'}'" config get model --config torn.json
tidemark exec --session asks -- sh -c "'$TIDE_BIN' wait ok --kind approval --question 'Ship it?'" >/dev/null 2>&1
reads 'a question' "resume: session 'asks' waits for approval: Ship it?: \`tidemark resume asks --input yes\` answers" resume asks
cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "pay", "nodes": [
  {"id": "pay", "type": "function", "retries": 0, "effect": "once", "program": ["false"], "outputs": ["x"]}]}
END
tidemark run graph.json --session paid >/dev/null 2>&1 </dev/null
reads 'what must happen once' "node 'pay' must happen once and failed: find out whether it happened: \`--happened pay --set 'x=…'\` records that it did, \`--retry pay\` runs it again" \
    sessions resume paid
reads 'what it gave is missing' "node 'pay' happened, and its outputs stay unset (x): \`--set 'x=…'\` sets it" sessions resume paid --happened pay
reads 'an argument too many' "session 'paid' does not wait for an answer: its last run failed (and 1 more): omit \`--input\`, \`--dry-run\` lists all" sessions resume paid --input yes
tidemark exec --session prog -- true >/dev/null 2>&1
tidemark token rotate asks >/dev/null
tidemark sessions export asks >asks.jsonl
TIDEMARK_STORE=$(store_at copied) && export TIDEMARK_STORE
tidemark sessions import asks.jsonl >/dev/null
tidemark sessions trust asks --yes >/dev/null
reads 'a wait that has ended, in words' "resume: session 'asks' does not wait any more: the token that answers it was revoked: \`tidemark token rotate asks\` opens the wait again, \`tidemark resume asks\` continues without" resume asks --input yes
default_store
reads 'an argument of another kind of session' "--set: session 'prog' runs no graph, and this is for graphs: \`tidemark why prog\` explains its status" resume prog --set a=1
damage there 2
reads 'damage' "session 'there': event 2 is damaged: \`tidemark log show there --to 1\` shows what is intact before it" log show there

tidemark timeline x 2>err
check_is 'a command of a group is found without it' "tidemark: unknown command 'timeline': did you mean 'sessions timeline'?" "$(cat err)"
tidemark sessions delete 2>err
check_is 'an option is named once, an operand as such' 'tidemark: sessions delete: ID is missing; or give filters, as --older-than 30d' "$(cat err)"
tidemark exec --ensure -- true 2>err
check_is 'also where another option wants it' 'tidemark: --ensure needs --session ID' "$(cat err)"
finish
