#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A known secret in a chat, in programs and their steps, in graphs and in plain events, printed by tools, repeated by models,
# escaped and in base64: it is in no byte of the store, in no log and in nothing that commands print from it.
# shellcheck disable=SC2016,SC2089,SC2090,SC2317 # programs hold dollars, the secret a quote; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
mkdir given kept # what holds the secret because the test put it there, and everything that must not
TIDEMARK_STORE=$(store_at "$work/kept/s")
export TIDEMARK_STORE XDG_STATE_HOME="$work/kept/state" XDG_DATA_HOME="$work/kept/data"
DEPLOY_TOKEN='sk-T3/Zq9x+7w"Lk 2Vb5nRm8'
export DEPLOY_TOKEN

in_json='sk-T3/Zq9x+7w\"Lk 2Vb5nRm8'
in_json_odd='sk-T3\/Zq9x+7w\u0022Lk\u00202Vb5nRm8'
in_url='sk-T3%2FZq9x%2B7w%22Lk%202Vb5nRm8'
in_url_lower='sk-T3%2fZq9x%2b7w%22Lk+2Vb5nRm8'
base64_of() {
    printf '%s' "$1" | base64 -w 0
}
# What no text that lacks the secret holds: the middle of each form.
forms=("${DEPLOY_TOKEN:0:12}" "${DEPLOY_TOKEN: -9}" "${in_json_odd:0:12}" "${in_url:0:16}" "${in_url_lower:0:16}"
    "$(base64_of "$DEPLOY_TOKEN" | cut -c 1-16)" "$(base64_of ":$DEPLOY_TOKEN" | cut -c 5-20)" "$(base64_of "a:$DEPLOY_TOKEN" | cut -c 5-20)")

# nowhere NAME: none of the forms is in any byte that was kept.
nowhere() {
    local form found=
    for form in "${forms[@]}"; do
        found+=$(grep -rlaF -e "$form" "$work/kept")
    done
    check_is "$1" '' "$found"
}
marks() {
    grep -o '\[redacted:DEPLOY_TOKEN\]' | wc -l
}

# ---- a chat ----
cat >given/hooks.json <<'END'
[{"name": "h", "event": "turn_start", "command": ["/bin/sh", "-c", "printf '{\"action\":\"append_context\",\"context\":\"hook: '; printf '%s' \"$DEPLOY_TOKEN\" | base64 -w 0; printf '\"}'"]}]
END
echo "{\"hooks_file\":\"hooks.json\",\"log_level\":\"debug\",\"log_file\":\"$work/kept/log\",\"permissions\":[{\"tool\":\"*\",\"permission\":\"allow\"}]}" >given/config.json
base64_call="echo $(base64_of "a:$DEPLOY_TOKEN") | base64 -d >given/decoded"
print_all='echo "$DEPLOY_TOKEN"; for p in "" : a:; do printf "%s%s" "$p" "$DEPLOY_TOKEN" | base64; done; printf "%s" "$DEPLOY_TOKEN" | sed "s:/:%2f:g"'
printf '{"turns":[{"text":"It is %s, or %s.","chunk_ms":1,"calls":[{"name":"bash","args":{"command":"%s"}},{"name":"bash","args":{"command":"%s"}}]},{"text":"So it is %s."}]}' \
    "$in_json" "$in_url" "$(printf '%s' "$print_all" | sed 's/["\\]/\\&/g')" "$base64_call" "$in_json_odd" >given/chat.json
tidemark chat --script given/chat.json --config given/config.json --output json -p "use $DEPLOY_TOKEN" </dev/null >kept/chat.out 2>kept/chat.err
check_is 'the chat has its answer' 'So it is [redacted:DEPLOY_TOKEN].' "$(json '$.answer' <kept/chat.out)"
chat=$(json '$.session_id' <kept/chat.out)
check_is 'the live call ran with what the model gave' "a:$DEPLOY_TOKEN" "$(cat given/decoded)"
tidemark log show "$chat" >kept/chat.log
check_is 'what the tool printed is marked, in each form' 5 "$(grep '"kind":"message.tool"' kept/chat.log | head -n 1 | marks)"
check_is 'and so is what the model, the hook and the user said' 7 "$(grep -E '"kind":"message.(user|assistant)"' kept/chat.log | marks)"
check 'events say so' eval 'grep "\"kind\":\"message.tool\"" kept/chat.log | head -n 1 | grep -q "\"redacted\":true"'
tidemark chat --script given/chat.json --config given/config.json --output stream-json -p "again" </dev/null >kept/stream.out 2>kept/stream.err
tidemark chat --script given/chat.json --config given/config.json -p "again" </dev/null >kept/text.out 2>kept/text.err
check 'a log was written' test -s kept/log
nowhere 'after chats'

# ---- a program ----
cat >given/program <<'END'
#!/bin/sh
tidemark step plain -- sh -c 'echo "token $DEPLOY_TOKEN"' >kept/step.out 2>kept/step.err
tidemark step bytes -- sh -c 'printf "\377%s\377" "$DEPLOY_TOKEN"' >kept/bytes.out 2>>kept/step.err
tidemark step fails -- sh -c 'echo "$DEPLOY_TOKEN"; exit 3' >>kept/step.out 2>>kept/step.err
tidemark set "k=$DEPLOY_TOKEN"
tidemark get k >kept/get.out
[ -e stop ] && exit 1
exit 0
END
chmod +x given/program
touch stop
PATH="$(dirname "$TIDE_BIN"):$PATH" tidemark exec --session prog -- given/program 2>kept/exec.err
check_is 'a step prints what is recorded' 'token [redacted:DEPLOY_TOKEN]' "$(head -n 1 kept/step.out)"
check_is 'of bytes that are no text, too' "$(printf '\377[redacted:DEPLOY_TOKEN]\377' | base64)" "$(base64 <kept/bytes.out)"
check 'and says so' holds "step 'plain' printed a secret" <kept/step.err
check_is 'what is set' '[redacted:DEPLOY_TOKEN]' "$(cat kept/get.out)"
mv kept/step.out given/first.out
mv kept/bytes.out given/first.bytes
rm stop
PATH="$(dirname "$TIDE_BIN"):$PATH" tidemark resume prog 2>kept/resume.err
check 'a resumed program gets the same' cmp given/first.out kept/step.out
check 'to the byte' cmp given/first.bytes kept/bytes.out
tidemark exec --session told -- sh -c 'exit 1' sh "$DEPLOY_TOKEN" 2>kept/told.err
refuses_as 'a command line that held it is not run from the log' 2 'WRONG_STATE|session|told|||start' resume told
SOME_PASSWORD=hunter2hunter2 refuses 'a name that holds one' 2 "'x-sk-[redacted:SOME_PASSWORD]'" sessions new --id x-sk-hunter2hunter2
PATH="$(dirname "$TIDE_BIN"):$PATH" tidemark exec --session waits --token-fd 5 -- sh -c 'tidemark wait ok --kind approval' 5>given/token 2>kept/wait.err
check 'a resume token has a secret' grep -q '^rt_[^.]*[.]' given/token
check_is 'which is nowhere either' '' "$(grep -rlaF -e "$(cut -d . -f 2 given/token)" kept)"
nowhere 'after programs'

# ---- graphs ----
cat >given/graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [
  {"id": "a", "type": "function", "program": ["sh", "-c", "echo \"{\\\"out\\\":\\\"$(printf '%s' \"$DEPLOY_TOKEN\" | base64 -w 0)\\\"}\""], "outputs": ["out"]},
  {"id": "b", "type": "lua", "inputs": ["out"], "code": "return {same = inputs.out}", "outputs": ["same"]},
  {"id": "c", "type": "function", "program": ["sh", "-c", "cat >given/inputs; echo \"cannot use $DEPLOY_TOKEN\" >&2; exit 1"], "inputs": ["pass"], "outputs": ["x"], "retries": 0}],
 "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}
END
tidemark run given/graph.json --session graph --set 'pass=$DEPLOY_TOKEN' --json >kept/graph.out 2>kept/graph.err
check_is 'nodes behind it see what is stored' '[redacted:DEPLOY_TOKEN]' "$(json '$.memory.same' <kept/graph.out | tr -d '=')"
check_is 'a function is given what is given' "$DEPLOY_TOKEN" "$(json '$.pass' <given/inputs)"
refuses_as 'and what it was given must be given again' 2 'INVALID|node|graph|c||repeat' sessions resume graph
GIVEN=given-by-its-name JSON='{"a":["given-inside-of-it"]}' tidemark run given/graph.json --session by-name --title 'of given-by-its-name' --set 'pass=$GIVEN' --set 'more:=$JSON' >kept/by-name.out 2>kept/by-name.err
check_is 'a function is given what a variable holds, whatever that is called' given-by-its-name "$(json '$.pass' <given/inputs)"
GIVEN=given-by-its-name tidemark sessions resume by-name --set 'pass=$GIVEN' >kept/by-name2.out 2>kept/by-name2.err
check_is 'also when it goes on' given-by-its-name "$(json '$.pass' <given/inputs)"
check_is 'a title that holds it' 'of [redacted:pass]' "$(tidemark sessions show by-name --json | json '$.title')"
check_is 'and it is nowhere' '' "$(grep -rlaE 'given-by-its-name|given-inside-of-it' kept)"
GIVEN=no-secret-at-all TIDEMARK_NOT_SECRET=GIVEN tidemark run given/graph.json --session exempt --set 'pass=$GIVEN' >kept/exempt.out 2>kept/exempt.err
check_is 'unless it is said that it is none' '"no-secret-at-all"' "$(tidemark state exempt | grep -o '"no-secret-at-all"' | head -n 1)"
ORDINARY=an-ordinary-value tidemark run given/graph.json --session plain --set 'api_key=$ORDINARY' --set pass=1 >kept/plain.out 2>kept/plain.err
tidemark log append plain --kind note --data '{"a":"an-ordinary-value"}' >/dev/null
check_is 'what is excluded is known to its run alone' 1 "$(tidemark log show plain | grep -c an-ordinary-value)"
PLAIN=a-quite-ordinary-one tidemark run given/graph.json --session titled --title 'of a-quite-ordinary-one' --set 'api_key=$PLAIN' --set pass=1 >kept/titled.out 2>kept/titled.err
check_is 'a title that holds what is excluded' 'of [redacted:api_key]' "$(tidemark sessions show titled --json | json '$.title')"
PLAIN=a-quite-ordinary-one tidemark run given/graph.json --session titled2 --title 'of a-quite-ordinary-one' --checkpoint exclude_memory_keys=other --set 'other=$PLAIN' --set pass=1 >>kept/titled.out 2>>kept/titled.err
check_is 'by an option' 'of [redacted:other]' "$(tidemark sessions show titled2 --json | json '$.title')"
PLAIN=a-quite-ordinary-one refuses 'a name' 2 "'x-[redacted:api_key]'" run given/graph.json --quiet --session x-a-quite-ordinary-one --set 'api_key=$PLAIN' --set pass=1
PLAIN=a-quite-ordinary-one tidemark sessions resume titled --set 'api_key=$PLAIN' --set 'other=a-quite-ordinary-one' >>kept/titled.out 2>>kept/titled.err
cat >given/asks.json <<'END'
{"tidemark_graph": 1, "id": "asks", "entry": "q", "nodes": [{"id": "q", "type": "human_input", "question": "what?", "outputs": ["ans"]}]}
END
PLAIN=a-quite-ordinary-one tidemark run given/asks.json --session answered --no-input --quiet --set 'api_key=$PLAIN' >/dev/null 2>>kept/titled.err
PLAIN=a-quite-ordinary-one tidemark sessions resume answered --quiet --set 'api_key=$PLAIN' --input 'it is a-quite-ordinary-one' >/dev/null 2>>kept/titled.err
check_is 'an answer' 'it is [redacted:api_key]' "$(tidemark log show answered --kind memory.set | tail -n 1 | json '$.values.ans')"
check_is 'and nothing of it is kept' '' "$(grep -rlaF a-quite-ordinary-one kept)"
sed "s:cannot use:cannot use $in_url:" given/graph.json >given/held.json
tidemark run given/held.json --session held --set pass=1 >kept/held.out 2>kept/held.err
refuses_as 'a graph that held it is not run from the log' 2 'INVALID|session|held|||resume' sessions resume held --set pass=1
check_status 'but from its file' 1 tidemark sessions resume held --graph given/held.json
nowhere 'after graphs'

# ---- plain events, and what is made of them ----
tidemark sessions new --id plainly --title "about $DEPLOY_TOKEN" --metadata "{\"$in_json\":[\"$in_json_odd\"]}" >/dev/null
tidemark log append plainly --kind message.user --data "{\"content\":\"$in_url $in_url_lower\"}" >/dev/null
tidemark log append plainly --input --kind queue.added --data "{\"queue_id\":\"q\",\"content\":\"$in_json\"}" >/dev/null
tidemark sessions send plainly "say $DEPLOY_TOKEN" >/dev/null 2>kept/send.err
{
    tidemark sessions list --json
    tidemark sessions show plainly
    tidemark sessions export "$chat"
    tidemark sessions timeline "$chat"
    tidemark sessions inspect "$chat"
    tidemark why prog
    tidemark state prog
} >kept/shown 2>&1
check 'all of it verifies' tidemark store check
nowhere 'after plain events'
TIDEMARK_NOT_SECRET=DEPLOY_TOKEN tidemark log append plainly --kind note --data "{\"a\":\"$in_json\"}" >/dev/null
check 'what is said to be no secret is stored' eval 'tidemark log show plainly | grep -qF "$in_json"'


# ---- the configured key ----
# Whoever answers, and whatever is run: it is known by every command that writes.
mkdir kept/configured
echo a-key-of-the-settings >given/key
chmod 600 given/key
echo '{"api_key":"file:key","permissions":[{"tool":"*","permission":"allow"}]}' >given/keyed.json
echo '{"turns":[{"text":"Look.","calls":[{"name":"bash","args":{"command":"cat given/key"}}]},{"text":"a-key-of-the-settings"}]}' >given/cat.json
export TIDEMARK_CONFIG=$work/given/keyed.json
check_is 'with a script' '[redacted:api_key]' "$(tidemark chat --script given/cat.json -p 'it is a-key-of-the-settings' </dev/null 2>kept/configured/err)"
PATH="$(dirname "$TIDE_BIN"):$PATH" tidemark exec --session keyed -- sh -c 'tidemark step a -- cat given/key' >kept/configured/out 2>&1
tidemark log append keyed --kind note --data '{"a":"a-key-of-the-settings"}' >/dev/null
check_is 'in events' '[redacted:api_key]' "$(tidemark log show keyed --kind note | json '$.a')"
TIDEMARK_CONFIG=$work/given/odd.json
echo '{"api_key":"env:ODD"}' >given/odd.json
ODD=an-odd-key-of-it tidemark log append keyed --kind other --data '{"a":"an-odd-key-of-it"}' >/dev/null
check_is 'that of a variable' '[redacted:api_key]' "$(tidemark log show keyed --kind other | json '$.a')"
unset TIDEMARK_CONFIG
check_is 'and it is nowhere' '' "$(grep -rlaE 'a-key-of-the-settings|an-odd-key-of-it' kept)"

# ---- what is asked ----
MY_TOKEN=supersecretvalue99 tidemark exec --session asks -- sh -c '"$0" wait w --kind input --question "is it $MY_TOKEN?"' "$TIDE_BIN" >out 2>&1
check 'a question is shown without it' holds 'is it [redacted:MY_TOKEN]?' <out
finish
