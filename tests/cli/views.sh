#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The views for people in a store of SQLite: their columns are those that docs/FORMAT.md lists, and the queries that stand
# there answer what they say they do.
# shellcheck disable=SC2016 # the page has backquotes
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
export TIDEMARK_STORE="$work/s.db"
format=$TIDE_SOURCE/docs/FORMAT.md

query() {
    sqlite3 -readonly s.db "$@"
}
# documented N: the N-th query of the page, about the session of this test.
documented() {
    awk -v n="$1" '/^```sql$/ { on = ++i == n; next } /^```$/ { on = 0 } on' "$format" | sed "s/'demo'/'$id'/g"
}

# ---- a store in which something has happened ----
echo '{"turns":[{"text":"I look.","calls":[{"name":"bash","args":{"command":"echo hi"}}]},{"text":"Done."},{"text":"Again."}]}' >talk.json
echo '{"turns":[{"text":"At last.","fail":[{"status":503,"message":"busy"}]}]}' >busy.json
chat() {
    tidemark chat --script "$@" --output json </dev/null >out 2>err
    json '$.session_id' <out
}
mkdir -p config/tidemark
echo '{"retry_base_delay_ms":1}' >config/tidemark/config.json
id=$(chat talk.json --yes --title Talk --agent looker -p 'look at me')
chat talk.json --yes --resume "$id" -p 'once more' >/dev/null
chat busy.json -p hello >/dev/null
cat >fails.sh <<'END'
#!/bin/sh
exit 3
END
chmod +x fails.sh
tidemark exec --session broken -- ./fails.sh >/dev/null 2>&1
fork=$(tidemark sessions fork "$id" --at "$(query "SELECT checkpoint_id FROM checkpoints WHERE session_id = '$id' ORDER BY id LIMIT 1")")

# ---- what the page says ----
listed=$(sed -n 's/^| `\([a-z_]*\)` | \(`id`.*\|`session_id`, `agent`.*\) |$/\1 \2/p' "$format" | tr -d '`,')
check_is 'the page lists six views' 6 "$(wc -l <<<"$listed")"
while read -r view columns; do
    check_is "the columns of $view" "$columns" "$(query "SELECT group_concat(name, ' ') FROM pragma_table_info('$view')")"
done <<<"$listed"
check_is 'the page has five queries' 5 "$(grep -c '^```sql$' "$format")"
check_is 'what was said in a session' 'user||look at me;assistant||I look.;tool|bash|hi;assistant||Done.;user||once more;assistant||Again.;' \
    "$(documented 1 | query | sed '/^$/d' | tr '\n' ';')"
check_is 'what each model used' "$(date -u +%F)|script|4|1" \
    "$(documented 2 | query | awk -F'|' '{ print $1 "|" $2 "|" $3 "|" ($4 > 0 && $5 > 0) }')"
check_is 'what fails most often' 1 "$(documented 3 | query | grep -c '^llm_stream|.*busy.*|1|1|2')"
check_is 'and a program that failed' 1 "$(documented 3 | query | grep -c '^run.failed|')"
tidemark log append "$id" --kind message.user --data '{"content":"and then"}' >/dev/null
check_is 'what was said after the last checkpoint' 'user|and then' "$(documented 4 | query)"
check_is 'which runs did not complete' 'broken|failed' "$(documented 5 | query | awk -F'|' '{ print $1 "|" $3 }')"

# ---- what people rely on ----
for view in messages token_usage errors checkpoints runs; do
    check_is "ids of $view are unique over the store" 1 "$(query "SELECT count(*) = count(DISTINCT id) AND count(*) > 0 FROM $view")"
done
for view in messages token_usage checkpoints; do
    check_is "$view name the agent" looker "$(query "SELECT DISTINCT agent_id FROM $view WHERE session_id = '$id'")"
done
check_is 'a fork has the messages that it inherits' 'look at me;I look.;hi;' \
    "$(query "SELECT trim(content, char(10)) FROM messages WHERE session_id = '$fork' AND inherited AND NOT deleted ORDER BY id" | tr '\n' ';')"
check_is 'under the title of its parent' Talk "$(query "SELECT title FROM sessions_v WHERE session_id = '$fork'")"
check_is 'its own come behind them' "look at me;I look.;hi;here;" "$(
    tidemark log append "$fork" --kind message.user --data '{"content":"here"}' >/dev/null
    query "SELECT trim(content, char(10)) FROM messages WHERE session_id = '$fork' AND NOT deleted ORDER BY id" | tr '\n' ';'
)"
tidemark log append "$id" --kind session.updated --data '{"title":"Renamed","provider":{"type":"openai","model":"m2"}}' >/dev/null
check_is 'sessions_v follows session.updated' 'Renamed|openai|m2|looker' \
    "$(query "SELECT title, provider, model, agent FROM sessions_v WHERE session_id = '$id'")"
check_is 'but not in a fork from before' Talk "$(query "SELECT title FROM sessions_v WHERE session_id = '$fork'")"

finish
