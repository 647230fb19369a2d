#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark config: what counts and where it comes from, changing a key, and everything that is wrong at once.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY

file=$XDG_CONFIG_HOME/tidemark/config.json

# ---- without a file ----
check_is 'without a file the defaults count' 50 "$(tidemark config get max_turns)"
check 'a check says so' eval "tidemark config check | grep -q 'ok (there is no file'"
check 'looking makes no file' test ! -e "$XDG_CONFIG_HOME"
refuses_as 'a key that is not set' 3 'NOT_FOUND|key||model||set_setting' config get model
refuses_as 'an unknown key' 2 'INVALID|key||max_turn||' config get max_turn
refuses_as 'an unknown key to be set' 2 'INVALID|key||modle||' config set modle x
refuses_as 'no value' 2 'INVALID|argument||value||' config set model
refuses_as 'a value and --unset' 2 'INVALID|argument||value||' config set model x --unset

# ---- set and get ----
check 'a key is set' tidemark config set max_turns 7
check_is 'and read' 7 "$(tidemark config get max_turns)"
check_is 'the file is for its owner alone' 600 "$(stat -c %a "$file")"
check_is 'its directory too' 700 "$(stat -c %a "$(dirname "$file")")"
check 'text is taken as it is' tidemark config set system_prompt '{"be": "brief"}'
check_is 'and given back' '{"be": "brief"}' "$(tidemark config get system_prompt)"
check_is 'as JSON it is quoted' '"{\"be\": \"brief\"}"' "$(tidemark config get system_prompt --json)"
check 'JSON where the key is JSON' tidemark config set auto_approve_tools '["read", "grep"]'
check_is 'kept as it was given' '["read", "grep"]' "$(tidemark config get auto_approve_tools)"
refuses_as 'a value out of range' 2 'INVALID|key||max_turns||' config set max_turns 0
refuses_as 'none' 2 'INVALID|key||max_turns||' config set max_turns ''
refuses_as 'a negative one' 2 'INVALID|key||max_turns||' config set max_turns -3
refuses_as 'a word that is none' 2 'INVALID|key||provider||' config set provider acme
refuses_as 'JSON that is none' 2 'INVALID|file|||1|' config set hooks '[{'
refuses_as 'a permission that is none' 2 'INVALID|key||permissions||' config set permissions '[{"tool":"bash","permission":"denny"}]'
refuses_as 'a hook at no event' 2 'INVALID|key||hooks||' config set hooks '[{"event":"nowhere","action":"deny"}]'
check_is 'what was refused changed nothing' 7 "$(tidemark config get max_turns)"
check 'a key is removed' tidemark config set max_turns --unset
check_is 'and its default counts again' 50 "$(tidemark config get max_turns)"

echo '{"permissions":[{"tool":"read*","permission":"ask"},{"tool":"bahs","permission":"deny"}]}' >mistyped.json
check_is 'a rule for a tool that is none is a problem' "permission rule 2: there is no tool 'bahs': did you mean 'bash'?" "$(tidemark config check --config mistyped.json)"
refuses_as 'a text that a hook needs is named as the manual names it' 2 'INVALID|key||hooks||' config set hooks '[{"event":"turn_start","action":"append_context"}]'

# ---- a secret ----
refuses_as 'a key itself is refused' 2 'INVALID|key||api_key||' config set api_key sk-SECRET
check_is 'and not repeated' '' "$(tidemark config set api_key sk-SECRET 2>&1 | grep SECRET)"
check 'a reference is taken' tidemark config set api_key env:MY_KEY
check_is 'and shown' env:MY_KEY "$(tidemark config get api_key)"
check_is 'its value is not' '' "$(MY_KEY=sk-SECRET tidemark config list --json | grep SECRET)"
check_is 'nor by a check' '' "$(MY_KEY='sk SECRET' tidemark config check 2>&1 | grep SECRET)"
check 'a check looks whether it is there' eval "tidemark config check | grep -q 'the variable MY_KEY is not set'"
check 'and is content when it is' env MY_KEY=k "$TIDE_BIN" config check

# ---- which file ----
tidemark config set model home
echo '{"model": "named"}' >named.json
echo '{"model": "variable"}' >variable.json
check_is 'an option names the file' named "$(TIDEMARK_CONFIG=variable.json tidemark config get model --config named.json)"
check_is 'before the command as well' named "$(tidemark --config=named.json config get model)"
check_is 'else a variable does' variable "$(TIDEMARK_CONFIG=variable.json tidemark config get model)"
check_is 'else it is in the XDG directory' home "$(tidemark config get model)"
check_is 'or in the home' fallback "$(mkdir -p .config/tidemark && echo '{"model":"fallback"}' >.config/tidemark/config.json &&
    env -u XDG_CONFIG_HOME "$TIDE_BIN" config get model)"
refuses_as 'a file that was named must be there' 3 'NOT_FOUND|file||none.json||' config get model --config none.json
check 'but a set makes it' tidemark config set model new --config made.json
check_is 'so that it is' new "$(tidemark config get model --config made.json)"
refuses_as 'an empty name' 2 'INVALID|argument||config||' config get model --config ''

# ---- layers ----
check_is 'a variable wins' 3 "$(TIDEMARK_MAX_TURNS=3 tidemark config get max_turns)"
check 'and is said to' eval "TIDEMARK_MAX_TURNS=3 tidemark config list | grep -q '^max_turns  *3  *environment'"
check 'whoever sets what a variable overrides is told' eval \
    "TIDEMARK_MAX_TURNS=3 tidemark config set max_turns 4 2>&1 | grep -q 'TIDEMARK_MAX_TURNS is set and overrides the file'"
TIDEMARK_MAX_TURNS=x refuses 'a variable that is wrong is named' 2 'TIDEMARK_MAX_TURNS: must be' config get model

# ---- list ----
check 'a list as JSON' eval 'tidemark config list --json | is_json'
check_is 'names its file' "$file" "$(tidemark config list --json | json '$.file')"
check 'a list for people' eval "tidemark config list | grep -q '^model  *home  *file  *the model'"
check_is 'a list holds each key once' '' "$(tidemark config list | cut -d' ' -f1 | sort | uniq -d)"

# ---- check ----
cat >bad.json <<'END'
{"modle": "x", "max_turns": "many", "hooks": [{"name": "a", "event": "pre_tool_use", "matcher": "(", "action": "deny"}],
 "hooks_file": "more.json", "permissions": [{"tool": "bash", "permission": "maybe"}], "log_file": "nowhere/log"}
END
echo '{"hooks": [{"name": "b", "event": "turn_end", "action": "deny"}]}' >more.json
TIDEMARK_LOG_LEVEL=loud tidemark config check --config bad.json >problems
check_is 'problems: exit status 1' 1 $?
for words in "did you mean 'model'" 'max_turns: must be a whole number' "hook 'a': bad matcher '(' at character 2" \
    "hook 'b': 'deny' is not possible at turn_end" 'log_file: nowhere/log' "'permission' must be allow, ask or deny" 'TIDEMARK_LOG_LEVEL: must be one of'; do
    check "all are told: $words" grep -qF -- "$words" problems
done
check_is 'and no others' 7 "$(wc -l <problems)"
tidemark config check --config bad.json --json >out
check_is 'the same as JSON' '6|0' "$(sqlite3 :memory: "SELECT json_array_length(readfile('out'), '$.problems')")|$(json '$.ok' <out)"
printf '{"model": "x"\n"max_turns": 3}' >torn.json
check 'a file that is not JSON: line and column' eval "tidemark config check --config torn.json | grep -q 'torn.json: not JSON: line 2, column 1'"
refuses_as 'it is not used' 2 'INVALID|file||torn.json|2|' config get model --config torn.json
refuses_as 'nor changed' 2 'INVALID|file||*|2|' config set model y --config torn.json
echo '{"modle": 1, "model": "m"}' >warned.json
check_is 'an unknown key is only a warning' m "$(tidemark config get model --config warned.json 2>err)"
check 'on standard error' grep -q "^tidemark: warned.json: unknown key 'modle': did you mean 'model'?" err
refuses_as 'a directory is no file' 6 'DENIED|file||.||replace_file' config get model --config .

# ---- the log ----
check_is 'nothing is logged by itself' '' "$(MY_KEY=k tidemark config check 2>&1 >/dev/null)"
check '--verbose logs' eval "MY_KEY=k tidemark config check --verbose 2>&1 >/dev/null | grep -q 'debug: settings checked file='"
check_is '--log-format json' 'settings checked' "$(MY_KEY=k tidemark config check --verbose --log-format json 2>&1 >/dev/null | json '$.msg')"
echo '{"log_level": "debug", "log_format": "json", "log_file": "log"}' >logged.json
check_is 'to a file, nothing on standard error' '' "$(tidemark config check --config logged.json 2>&1 >/dev/null)"
check_is 'beside the config, as JSON' debug "$(json '$.level' <log)"
check_is 'for its owner alone' 600 "$(stat -c %a log)"
tidemark config check --config logged.json --log-format text >/dev/null
check_is 'appended' 2 "$(wc -l <log)"
check 'an option wins over the file' eval "tail -n 1 log | grep -q 'debug: settings checked'"

# ---- many at once, a full disk, a place that cannot be ----
keys='max_turns max_answer_tokens max_retries retry_base_delay_ms max_tokens hook_timeout_ms tool_timeout_ms silence_timeout_ms'
for key in $keys; do
    tidemark config set "$key" 77 --config many.json &
done
wait
check_is 'of many changes at once none is lost' 8 "$(grep -c ': 77' many.json)"
cp many.json before.json
check_status 'a disk that takes no more' 6 bash -c "ulimit -f 0; '$TIDE_BIN' config set model x --config many.json"
check 'leaves the file as it was' cmp many.json before.json
check_status 'a directory that cannot be made' 3 tidemark config set model x --config /dev/null/config.json
check_is 'nothing is left behind' '' "$(find . -name '*.json.*')"

# ---- what commands take from it ----
mkdir place
echo '{"store": "kept/own.db", "max_turns": "many"}' >place/config.json
check_is 'the store: beside the file' s1 "$(tidemark sessions new --id s1 --config place/config.json)"
check 'it is there' test -f place/kept/own.db
check_is 'and found again' s1 "$(TIDEMARK_CONFIG=place/config.json tidemark sessions list --ids)"
check_is 'by its other name, in the home' s2 "$(echo '{"db_path": "sqlite:~/home.db"}' >place/home.json; tidemark sessions new --id s2 --config place/home.json)"
check 'which is there' test -f home.db
check_is 'a variable wins' s2 "$(TIDEMARK_STORE=home.db tidemark sessions list --ids --config place/config.json)"
check_is 'and an option over both' s1 "$(TIDEMARK_STORE=home.db tidemark sessions list --ids --config place/config.json --store place/kept/own.db)"
echo '{"store": "fyles:x"}' >place/kind.json
refuses_as 'a store that is none' 2 'INVALID|key||store||' sessions list --config place/kind.json
echo '{"store": "Files:x"}' >place/letters.json
refuses_as 'or in other letters' 2 'INVALID|key||store||' sessions list --config place/letters.json
check_is 'a check finds it' 1 "$(env -u TIDEMARK_STORE "$TIDE_BIN" config check --config place/letters.json | grep -c 'did you mean files:')"
refuses_as 'and it is not written' 2 'INVALID|key||store||' config set store foo:x --config place/never.json
check 'at all' test ! -e place/never.json
echo '{"store": "files:plain/"}' >place/plain.json
check_is 'a store of plain files' s3 "$(tidemark sessions new --id s3 --config place/plain.json)"
check 'beside the file as well' test -f place/plain/sessions/s3.messages.jsonl
echo '{"store": 3}' >place/type.json
refuses_as 'one of the wrong type' 2 'INVALID|key||store||' sessions list --config place/type.json
refuses_as 'a file that is not JSON is named' 2 'INVALID|file||torn.json|2|' sessions list --config torn.json
refuses_as 'one that was named must be there' 3 'NOT_FOUND|file||nothing.json||' sessions list --config nothing.json
check 'whoever is told the store does not read it' tidemark sessions list --config torn.json --store home.db
check 'help neither' tidemark help --config torn.json
check 'nor does looking at the settings need a store' eval "tidemark config get max_turns --config place/home.json && test ! -e $XDG_DATA_HOME/tidemark"
check 'doctor says what is wrong with it' eval "tidemark doctor --config torn.json | grep -q 'fail .*not JSON'"

echo '{"auto_resume": "live"}' >place/live.json
echo '{"auto_resume": "sometimes"}' >place/never.json
"$TIDE_BIN" exec --store r.db --session r -- sh -c '[ -e again ] && exit 0; touch again; exec sleep 1000' &
pid=$!
wait_for test -e again
kill -KILL $pid
wait $pid 2>/dev/null
outcome_of_r() {
    tidemark sessions show r --store r.db --json | json '$.outcome'
}
check_is 'auto_resume: off by itself' interrupted "$(tidemark recover --store r.db --run-due >/dev/null 2>&1; outcome_of_r)"
check_is 'a variable wins over the file' interrupted "$(TIDEMARK_AUTO_RESUME=off tidemark recover --store r.db --run-due --config place/live.json >/dev/null 2>&1; outcome_of_r)"
check_is 'as the file says' completed "$(tidemark recover --store r.db --run-due --config place/live.json >/dev/null 2>&1; outcome_of_r)"
refuses_as 'a word that is none' 2 'INVALID|key||auto_resume||' recover --store r.db --run-due --config place/never.json
check 'which does not matter without --run-due' tidemark recover --store r.db --config place/never.json
echo '{"sweep_interval": "soon"}' >place/soon.json
refuses_as 'sweep_interval' 2 'INVALID|key||sweep_interval||' exec --store r.db --config place/soon.json -- true
check 'a variable in its place' env TIDEMARK_SWEEP_INTERVAL=5s "$TIDE_BIN" exec --store r.db --config place/soon.json -- true
echo '{"sweep_interval": "50ms"}' >place/often.json
"$TIDE_BIN" exec --store r.db --session cut -- sh -c 'touch cut; exec sleep 1000' &
pid=$!
wait_for test -e cut
mkfifo held
"$TIDE_BIN" exec --store r.db --config place/often.json --session sweeps -- cat held &
sweeper=$!
exec 8>held # opens when it runs: its first sweep may be over
kill -KILL $pid
wait $pid 2>/dev/null
began=$SECONDS
is_noticed() { # shellcheck disable=SC2317 # called by name
    tidemark log show cut --store r.db | grep -q '"kind":"run.interrupted"'
}
check 'what runs looks after others' wait_for is_noticed
check 'as often as the file says' test $((SECONDS - began)) -lt 20
exec 8>&-
wait $sweeper

# ---- the keychain ----
mkdir tool
cat >tool/secret-tool <<'END'
#!/bin/sh
(setsid sh -c 'echo $$ >far; exec sleep 1000' &)
until [ -s far ]; do sleep 0.01; done
echo $$ >near
exec sleep 1000
END
chmod 755 tool/secret-tool
echo '{"api_key": "keychain:k", "provider": "anthropic", "model": "m", "base_url": "http://127.0.0.1:1"}' >keychain.json
PATH=$work/tool:$PATH "$TIDE_BIN" chat --config keychain.json -p hi </dev/null >/dev/null 2>&1 &
pid=$!
check 'the keychain is asked' wait_for test -s near
kill -KILL $pid
wait $pid 2>/dev/null
check 'a chat that is killed leaves nothing of its program' wait_for gone "$(cat near)"
check 'nor what made a session of its own' wait_for gone "$(cat far)"

# ---- the manual ----
page=$TIDE_SOURCE/man/tidemark-config.5.scd
tidemark config list --json >list.json
sqlite3 -separator '|' :memory: "SELECT json_extract(value, '$.key'),
    CASE json_type(value, '$.default') WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE json_extract(value, '$.default') END, json_extract(value, '$.help')
    FROM json_each(readfile('list.json'), '$.keys')" >rows
check 'the table has rows' test "$(wc -l <rows)" -gt 30
while IFS='|' read -r key default help; do
    grep -A 1 -F "*$key* (${default:+default: }${default:-not set})" "$page" | grep -qF "	$help" || echo "$key"
done <rows >missing
check_is 'every key is in the manual page with its default and its help' '' "$(cat missing)"
sed -n 's/^\*\([a-z_]*\)\* (\(default: .*\|not set\))$/\1/p' "$page" | sort >named
check_is 'the manual page has no others' "$(cut -d '|' -f 1 rows | sort)" "$(cat named)"
finish
