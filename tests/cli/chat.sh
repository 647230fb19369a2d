#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark chat without a terminal and at one, with the provider that answers from a file: prompts, output, approvals,
# retries, hooks, kills in the middle, rolling back, and what is refused without leaving anything behind.
# shellcheck disable=SC2016,SC2317 # scripts and messages hold dollars and backquotes; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE TMPDIR="$work/tmp"
mkdir tmp

# chat NAME ARGS...: with the answers of NAME.json; its id is then in $id, its answer in $answer.
chat() {
    local script=$1.json
    shift
    tidemark chat --script "$script" --output json "$@" </dev/null >out 2>err && got=0 || got=$?
    id=$(json '$.session_id' <out)
    answer=$(json '$.answer' <out)
}
outcome_of() {
    tidemark sessions show "$1" --json | json '$.outcome'
}
sessions() {
    tidemark sessions list --ids | wc -l
}
every_line_is_json() {
    local line n=0
    while IFS= read -r line; do
        printf '%s\n' "$line" | is_json || return 1
        n=$((n + 1))
    done
    [ "$n" -gt 1 ]
}

echo '{"turns":[{"text":"Hello."},{"text":"Second."},{"text":"Third."}]}' >hello.json
echo '{"turns":[{"text":"I look.","calls":[{"name":"bash","args":{"command":"echo hi >>ran; echo hi"}}]},{"text":"Done."}]}' >tool.json

# ---- prompts ----
check_is 'a prompt is answered' Hello. "$(tidemark chat --script hello.json -p hi </dev/null)"
check_is 'nothing else is said' '' "$(tidemark chat --script hello.json -p hi </dev/null 2>&1 >/dev/null)"
check_is 'a prompt may be piped in' Hello. "$(echo 'hi there' | tidemark chat --script hello.json)"
id=$(tidemark sessions list --ids | head -n 1)
check_is 'without its newline' 'hi there' "$(field "$id" message.user '$.content')"
printf 'line 1\nline 2\n' | tidemark chat --script hello.json -p 'what is this?' >/dev/null
id=$(tidemark sessions list --ids | head -n 1)
check_is 'what is piped in stands behind -p' 'what is this?

line 1
line 2' "$(field "$id" message.user '$.content')"
check_is 'its title is the first line' 'what is this?' "$(tidemark sessions show "$id" --json | json '$.title')"
echo 'the plan' >plan
mkdir elsewhere
chat hello -p 'read @plan.'
check_is 'a file of the prompt is added' 'read @plan.

<file path="plan">
the plan

</file>' "$(field "$id" message.user '$.content')"
check_is 'which is told' 'tidemark: + plan, 1 line' "$(cat err)"
chat hello -p 'read @noplan, @elsewhere/ and @plan'
check_is 'as is what is no file' 'tidemark: @noplan: no such file; it is sent as it is
tidemark: @elsewhere/: a directory; it is sent as it is
tidemark: + plan, 1 line' "$(cat err)"
chat hello -p 'mail a@b.c'
check_is 'an address is none' 'mail a@b.c' "$(field "$id" message.user '$.content')"
check_is 'an agent and a title' 'me|mine' "$(chat hello -p x --agent me --title mine; tidemark sessions show "$id" --json >s; json '$.agent' <s)|$(json '$.title' <s)"
n=$(sessions)
refuses_as 'no prompt' 2 'INVALID|argument||prompt||' chat --script hello.json </dev/null
refuses_as 'an empty prompt' 2 'INVALID|argument||prompt||' chat --script hello.json -p '' </dev/null
printf 'a\377' >bytes
refuses_as 'a prompt that is not UTF-8' 2 'INVALID|argument||prompt||' chat --script hello.json <bytes
refuses_as 'a script that is not there' 3 'NOT_FOUND|file||none.json||repeat' chat --script none.json -p hi </dev/null
echo '{"turns":[{"txet":"x"}]}' >wrong.json
refuses_as 'a script that is wrong' 2 "INVALID|file||$work/wrong.json||" chat --script wrong.json -p hi </dev/null
refuses_as '--resume and --continue' 2 'INVALID|argument||resume||' chat --resume x --continue </dev/null
refuses_as '--from without --resume' 2 'INVALID|argument||from||' chat --from checkpoint </dev/null
refuses_as '--no-store with --resume' 2 'INVALID|argument||no_store||' chat --no-store --resume x </dev/null
refuses_as 'no key' 2 'INVALID|key||*||set_setting' chat --provider anthropic --model m -p hi </dev/null
refuses_as 'nor one for the other' 2 'INVALID|key||*||set_setting' chat --provider openai --model m -p hi </dev/null
refuses_as 'neither: one line says all' 2 'INVALID|key||*||set_setting,set_setting' chat -p hi </dev/null
ANTHROPIC_API_KEY=k refuses_as 'no model' 2 'INVALID|key||model||repeat,set_setting' chat -p hi </dev/null
OPENAI_API_KEY=sk-key-of-openai refuses_as "the other provider's key is there: it is suggested" 2 'INVALID|key||api_key||set_setting' chat --model m -p hi </dev/null
OPENAI_API_KEY=sk-key-of-openai tidemark chat --model m -p hi </dev/null >out 2>err
check 'by name' grep -q 'tidemark config set provider openai' err
check_is 'doctor: no provider is no trouble' 1 "$(tidemark doctor | grep -c '^ok *provider ')"
check_is "doctor: the other provider's key alone: it is suggested" 1 "$(OPENAI_API_KEY=sk-key-of-openai tidemark doctor | grep -c '^warn *provider .*tidemark config set provider openai')"
echo '{"provider": "openai", "model": "m"}' >half.json
check_is 'doctor: a model without a key is' 1 "$(tidemark doctor --config half.json | grep -c '^warn *provider .*OPENAI_API_KEY')"
check_is 'doctor: no model: the setting is named, and no option that it has not' '1|0' "$(ANTHROPIC_API_KEY=k tidemark doctor >out; grep -c '^warn *provider .*config set model' out)|$(grep -c -- --model out)"
echo '{"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:1"}' >nobody.json
check_is 'doctor: nobody is asked' 1 "$(tidemark doctor --config nobody.json | grep -c '^ok *provider ')"
tidemark doctor --online --config nobody.json >out && got=0 || got=$?
check_is 'doctor --online: what goes wrong, in plain words' '1|1' "$got|$(grep -c '^fail *provider .*no connection to 127.0.0.1:1: Connection refused: check the network and base_url' out)"
echo '{"provider": "script", "model": "m", "script": "'"$work"'/hello.json"}' >yes.json
check_is 'doctor --online: an answer' 1 "$(tidemark doctor --online --config yes.json | grep -c '^ok *provider .*answers')"
refuses_as 'a prompt of blanks' 2 'INVALID|argument||prompt||' chat --script hello.json -p '  ' </dev/null
printf 'a\0b' >bytes
refuses_as 'a prompt with a NUL byte' 2 'INVALID|argument||prompt||' chat --script hello.json <bytes
refuses_as 'a script and another provider' 2 'INVALID|argument||script||' chat --script hello.json --provider openai -p x </dev/null
refuses_as '--redo-effects without --from' 2 'INVALID|argument||redo_effects||' chat --script hello.json --redo-effects -p x </dev/null
refuses_as '--watch with --output' 2 'INVALID|argument||watch||' chat --script hello.json --watch --output json -p x </dev/null
refuses_as '--json with --output text' 2 'INVALID|argument||output||' chat --script hello.json --json --output text -p x </dev/null
refuses_as 'an empty model' 2 'INVALID|argument||model||' chat --script hello.json --model '' -p x </dev/null
check_is 'what was refused left nothing behind' "$n" "$(sessions)"
for how in '--output json' '--output stream-json' --watch ''; do
    # shellcheck disable=SC2086 # words
    tidemark chat --script hello.json $how -p x </dev/null >/dev/full 2>err && got=0 || got=$?
    check_is "what cannot be written is an error: ${how:-text}" '6 tidemark: write to standard output: No space left on device: free some space, then try again' "$got $(tail -n 1 err)"
done

# ---- images ----
printf '\211PNG\r\n\032\n' >dot.png
head -c 90000 /dev/urandom >>dot.png
cp dot.png 'no-name'
chat hello -p 'what is on @dot.png and @no-name?'
check_is 'an image is told' "tidemark: + dot.png, image/png, 88 KiB
tidemark: + no-name, image/png, 88 KiB" "$(cat err)"
check_is 'the prompt stays as it was typed' 'what is on @dot.png and @no-name?' "$(field "$id" message.user '$.content')"
check_is 'its bytes are in the log' "$(base64 -w0 dot.png)" "$(field "$id" message.user '$.image_data.0')"
if [ "${TIDEMARK_TEST_STORE:-}" != files ]; then
    n=$(tidemark store info --json | json '$.big_values')
    chat hello -p 'again @dot.png'
    check_is 'stored once by digest' "$n" "$(tidemark store info --json | json '$.big_values')"
fi
first=$(field "$id" message.user '$.image_data.0')
rm dot.png
chat hello --resume "$id" -p more
check_is 'a resume needs no file' 0 "$got"
check_is 'and has the same bytes' "$first" "$(tidemark log show "$id" | grep '"kind":"message.user"' | head -n 1 | json '$.image_data.0')"
(printf 'GIF89a' && head -c 3932160 /dev/zero) >big.gif
chat hello -p 'and @big.gif'
check_is 'one that is too big is none' 'tidemark: @big.gif: an image of more than 3.75 MiB; it is sent as it is' "$(cat err)"
rm big.gif no-name

# ---- instructions of the project ----
umask 022
mkdir -p repo/.git repo/sub/deep
echo 'outside says' >AGENTS.md
echo 'root says' >repo/AGENTS.md
echo 'claude says' >repo/CLAUDE.md
echo 'deep says' >repo/sub/deep/AGENTS.md
ln -s AGENTS.md repo/sub/deep/CLAUDE.md
cp hello.json repo/sub/deep/
cd repo/sub/deep || exit 1
chat hello -p hi
check_is 'AGENTS.md and CLAUDE.md up to the root of the repository are in the system prompt, the nearest last' \
    '../../CLAUDE.md|../../AGENTS.md|AGENTS.md' \
    "$(field "$id" llm.request '$.system' | sed -n 's/^<instructions path="\(.*\)">$/\1/p' | paste -sd '|')"
check_is 'with what they say' 'claude says|root says|deep says' \
    "$(field "$id" llm.request '$.system' | sed -n '/^<instr/{n;p}' | paste -sd '|')"
check_is 'and nothing is said of it' '' "$(cat err)"
first=$(field "$id" llm.request '$.system_digest')
echo 'deep says more' >AGENTS.md
chat hello --resume "$id" -p again
check_is 'a resumed chat sends what is stored' "$first" "$(field "$id" llm.request '$.system_digest')"
check 'and says that they have changed' grep -q "the project's instructions have changed" err
chat hello --resume "$id" -p anew --refresh-prompt
check 'until they are rendered anew' eval '[ "$(field "$id" llm.request $.system_digest)" != "$first" ]'
check 'with what they say now' eval 'field "$id" llm.request $.system | grep -q "^deep says more"'
TIDEMARK_PROJECT_INSTRUCTIONS=false chat hello -p hi
check_is 'off by a setting' 0 "$(field "$id" llm.request '$.system' | grep -c '<instructions')"
# refused_file NAME REASON: CLAUDE.md, as it is now, is not used, and that is said.
refused_file() {
    chat hello -p hi
    check_is "$1" "tidemark: CLAUDE.md is not used: $2|0" "$(cat err)|$(field "$id" llm.request '$.system' | grep -c 'path="CLAUDE.md')"
    rm -rf CLAUDE.md
}
rm CLAUDE.md
echo evil >CLAUDE.md && chmod 646 CLAUDE.md
refused_file 'not what others may write to' 'others may write to it (chmod go-w)'
echo evil >CLAUDE.md && chmod 664 CLAUDE.md
refused_file 'nor what a group may write to' 'others may write to it (chmod go-w)'
ln -s ../../../../AGENTS.md CLAUDE.md
refused_file 'not a link that leads out' 'it leads out of the repository, or may not be opened'
mkfifo CLAUDE.md
refused_file 'not what is no file' 'it is not a regular file'
head -c 65537 /dev/zero | tr '\0' x >CLAUDE.md
refused_file 'not more than 64 KiB' 'more than 64 KiB in total'
printf 'a\0b' >CLAUDE.md
refused_file 'not what is no text' 'it is not text'
if [ "$(id -u)" = 0 ]; then
    echo evil >CLAUDE.md && chown 12345 CLAUDE.md
    refused_file 'not what belongs to another user' 'it belongs to another user'
fi
cd "$work" || exit 1
mkdir alone && cp hello.json alone/ && cd alone || exit 1
chat hello -p hi
check_is 'without a repository only the directory itself counts' 0 "$(field "$id" llm.request '$.system' | grep -c '<instructions')"
cd "$work" && rm AGENTS.md || exit 1

# ---- output ----
tidemark chat --script tool.json --yes --output json -p go </dev/null >out
check 'json: one object' is_json <out
check_is 'its answer, status, turns' 'Done.|completed|2' "$(json '$.answer' <out)|$(json '$.status' <out)|$(json '$.turns' <out)"
check_is '--json is the same' completed "$(tidemark chat --script hello.json --json -p go </dev/null | json '$.status')"
tidemark chat --script tool.json --yes --output stream-json -p go </dev/null >out
check 'stream-json: every line is one' every_line_is_json <out
check_is 'in order' 'text usage text_end tool tool_end text usage text_end result' \
    "$(sed 's/^{"type":"\([a-z_]*\)".*/\1/' out | paste -sd ' ')"
check_is 'what a tool said' $'hi\n' "$(grep '"tool_end"' out | json '$.text')"$'\n'
check_is 'the last is the result' Done. "$(tail -n 1 out | json '$.answer')"
if command -v python3 >/dev/null; then
    check 'another reader takes it as well' python3 -c 'import json; [json.loads(line) for line in open("out")]'
else
    skip 'another reader takes it as well' 'no python3 here'
fi

# ---- approvals ----
rm -f ran
tidemark chat --script tool.json -p go </dev/null >out 2>err
check_is 'what needs a word waits: exit status 7' 7 $?
id=$(tidemark sessions list --ids | head -n 1)
check_is 'nothing ran' '' "$(cat ran 2>/dev/null)"
check_is 'nothing is on standard output' '' "$(cat out)"
check 'one line says what for, and the command' grep -qx "tidemark: .*allow bash echo hi >>ran; echo hi?: \`tidemark resume $id --input allow\` (or deny)" err
check 'why says so' eval "tidemark why $id | grep -qF 'it waits for approval: \"allow bash echo hi'"
check_is 'it waits' waiting "$(status_of "$id")"
tidemark chat --resume "$id" </dev/null >out 2>err
check_is 'going on without an answer waits on' 7 $?
check_is 'asked once in the log' 1 "$(count "$id" approval.requested)"
check_is 'allowed, it goes on' Done. "$(tidemark resume "$id" --input allow 2>err)"
check_is 'and says what was allowed' 'tidemark: allow bash echo hi >>ran; echo hi? allow' "$(cat err)"
check_is 'and it ran once' hi "$(cat ran)"
check_is 'which is recorded' 'allow|person' "$(field "$id" approval.given '$.decision')|$(field "$id" approval.given '$.by')"
refuses_as 'an answer is taken once' 2 "WRONG_STATE|session|$id|||repeat" resume "$id" --input allow
rm -f ran
chat tool -p go
check_is 'as JSON: waiting, with a token' "waiting|7" "$(json '$.status' <out)|$got"
token=$(json '$.resume_token' <out)
check_is 'the token answers' Done. "$(echo "$token" | tidemark resume "$id" --token - --input deny)"
check_is 'denied: nothing ran' '' "$(cat ran 2>/dev/null)"
check_is 'and the model was told' 'denied by the user' "$(field "$id" message.tool '$.content')"
chat tool -p go
token=$(json '$.resume_token' <out)
refuses_as 'any other answer is refused' 2 "INVALID|session|$id|||answer" resume "$id" --input 'use another file'
refuses_as 'also with the token' 2 "INVALID|session|$id|||answer" resume "$id" --token "$token" --input ys
check_is 'and it waits on' waiting "$(status_of "$id")"
check_is 'a no may have a reason, and the token is still good' Done. "$(tidemark resume "$id" --token "$token" --input no --reason 'use another file')"
check_is 'for the model' 'denied by the user: use another file' "$(field "$id" message.tool '$.content')"
check_is 'and in the log' 'deny|use another file' "$(field "$id" approval.given '$.decision')|$(field "$id" approval.given '$.reason')"
rm -f ran
chat tool -p go
check_is 'a yes as well' Done. "$(tidemark resume "$id" --input yes --reason 'only this once')"
check 'for the model' eval "field '$id' message.tool '$.content' | tail -n 1 | grep -qF '[allowed by the user: only this once]'"
check_is 'it ran once' hi "$(cat ran)"
refuses_as 'an answer to nothing' 2 "WRONG_STATE|session|$id|||repeat" resume "$id" --input yes
chat tool -p go
chat hello --resume "$id" -p 'never mind'
check_is 'another prompt in place of the answer' Second. "$answer"
check_is 'no call is left without a result' 'not run: the user stopped this turn, or did not allow it, and sent another prompt' "$(field "$id" message.tool '$.content')"
echo '{"permissions":[{"tool":"bash","permission":"deny"}]}' >deny.json
chat tool -p go --yes --config deny.json
check_is 'the settings are stronger than --yes' 'denied by the permission rule {"tool":"bash","permission":"deny"}' "$(field "$id" message.tool '$.content')"
echo '{"permissions":[{"tool":"read","permission":"ask"},{"tool":"bash"}]}' >norule.json
refuses_as 'rules are counted as the settings have them, also with --yes' 2 'INVALID|key||permissions||' chat --script tool.json --yes --config norule.json -p go </dev/null
rm -f ran
chat tool -p go
check_is '--yes answers what waits already' 'Done.|hi' "$(tidemark chat --resume "$id" --yes </dev/null)|$(cat ran)"
echo '{"permissions":[{"tool":"bash","permission":"ask"}]}' >ask.json
chat tool -p go
tidemark chat --resume "$id" --yes --config ask.json </dev/null >out 2>err
check_is 'but not what the settings ask about' 7 $?
chat tool --resume "$id" --from seq:4 --config deny.json
check_is '--from: what it waited for is withdrawn, and the turn done again' 'Done.|completed' "$answer|$(outcome_of "$id")"
check 'which is told' grep -q 'not answered, and withdrawn by the rollback: allow bash' err
echo '{"auto_approve_tools":["bash"]}' >approve.json
chat tool -p go --config approve.json
check_is 'settings may allow a tool' 'Done.|hi' "$answer|$(tail -n 1 ran)"
chat tool -p go --no-tools
check 'without tools it is told that there are none' eval "field $id message.tool '\$.content' | grep -q 'there is no tool .bash.: there are none'"

# ---- the same session ----
chat hello -p one
first=$id
chat hello --resume "$id" -p two
chat hello --resume "${id%?}" -p three
check_is 'three prompts: one id' "$first" "$id"
check_is 'three answers' 'Hello. Second. Third.' "$(tidemark log show "$id" | grep message.assistant | sed 's/.*"content":"\([^"]*\)".*/\1/' | paste -sd ' ')"
check_is 'turns rise' '1 2 3' "$(tidemark log show "$id" | grep message.assistant | sed 's/.*"turn":\([0-9]*\).*/\1/' | paste -sd ' ')"
check_is 'usage is summed up' 3 "$(json '$.usage.calls' <out)"
refuses 'nothing is left to do' 3 'nothing is left to do' chat --resume "$id" </dev/null
check_is 'system prompt and tools are stored once' 1 "$(tidemark log show "$id" | grep -c '"system":')"
check_is 'the provider as well, with the session' '0 script' "$(count "$id" session.updated) $(field "$id" session.created '$.provider.type')"
n=$(sessions)
refuses_as 'an unknown session' 3 'NOT_FOUND|session|nobody-here|||list_sessions' chat --resume nobody-here -p hi </dev/null
check_is 'makes none' "$n" "$(sessions)"
tidemark sessions new --id plain >/dev/null
refuses_as 'a session that is no chat' 2 'INVALID|session|plain|||start,repeat' chat --resume plain -p hi </dev/null
check_is '--continue: the latest of this directory' "$first" "$(cd elsewhere && tidemark chat --script ../hello.json -p x </dev/null >/dev/null && cd .. &&
    tidemark chat --continue -p four --output json </dev/null 2>/dev/null | json '$.session_id')"
mkdir empty
(cd empty && refuses '--continue where nothing was begun' 3 'no chat was begun in this directory' chat --continue -p x </dev/null)
check_is 'another provider is said aloud' 'tidemark: model other instead of script, as told' \
    "$(tidemark chat --resume "$first" --model other -p five </dev/null 2>&1 >/dev/null | head -n 1)"

# ---- rolling back ----
chat hello -p one
chat hello --resume "$id" -p two
last=$(tidemark sessions checkpoints "$id" --json | json '$.checkpoints[0].checkpoint_id')
tidemark sessions checkpoints "$id" --json >cps
before=$(sqlite3 :memory: "SELECT json_extract(value, '$.checkpoint_id') FROM json_each(readfile('cps'), '$.checkpoints') WHERE json_extract(value, '$.turn') = 1")
seq=$(sqlite3 :memory: "SELECT json_extract(value, '$.seq') FROM json_each(readfile('cps'), '$.checkpoints') WHERE json_extract(value, '$.turn') = 1")
check 'there are checkpoints' test -n "$last" -a -n "$before"
chat hello --resume "$id" --from "$before" -p again
check_is '--from CHECKPOINT: the answer of that turn again' Second. "$answer"
chat hello --resume "$id" --from "seq:$seq" -p again
check_is '--from seq:N' Second. "$answer"
check_is 'turn numbers are not used again' 4 "$(field "$id" message.assistant '$.turn')"
view_is 'what was rolled back is marked' 2 "SELECT count(*) FROM messages WHERE session_id = '$id' AND role = 'assistant' AND deleted"
refuses_as '--from no number' 2 'INVALID|argument||from||' chat --resume "$id" --from seq:-1 -p x </dev/null
refuses_as '--from nothing that is there' 3 'NOT_FOUND|checkpoint|*|ckpt_nope||list_checkpoints' chat --resume "$id" --from ckpt_nope -p x </dev/null
echo '{"turns":[{"fail":[{"status":401,"message":"bad key"}]}]}' >unauthorized.json
chat unauthorized -p hi
tidemark chat --resume "$id" --from checkpoint --script hello.json </dev/null >out 2>err
check_is '--from checkpoint without one' Hello. "$(cat out)"
check 'says that everything is kept' grep -q 'has no checkpoint yet: everything is kept' err

# A turn that was cut is done again: its prompt stays. What must happen once is not, unless that is said.
echo '{"turns":[{"text":"Hello."},{"text":"I do.","calls":[{"name":"bash","args":{"command":"echo did >>again; echo $$ >again.pid; [ -e quick ] || exec sleep 1000"}}]},{"text":"Redone."}]}' >redo.json
for how in '' --reuse-effects --redo-effects; do
    rm -f again again.pid quick
    chat redo -p one
    "$TIDE_BIN" chat --resume "$id" --yes -p two </dev/null >/dev/null 2>&1 &
    pid=$!
    wait_for test -s again.pid
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    touch quick
    if [ -z "$how" ]; then
        # That the turn was cut is recorded, as recovery would.
        fails_as '--from checkpoint: what must happen once is in the way' 4 "EFFECTS|session|$id|||repeat,repeat" chat --resume "$id" --yes --from checkpoint </dev/null
        continue
    fi
    check_is "--from checkpoint $how: the turn is done again" Redone. "$(tidemark chat --resume "$id" --yes --from checkpoint "$how" </dev/null 2>/dev/null)"
    view_is "$how: with the prompt that was cut" two "SELECT content FROM messages WHERE session_id = '$id' AND role = 'user' AND NOT deleted ORDER BY id DESC LIMIT 1"
    check_is "$how: so often" "$([ "$how" = --redo-effects ] && echo 2 || echo 1)" "$(wc -l <again)"
done

# ---- retries ----
echo '{"turns":[{"text":"At last.","fail":[{"status":429},{"status":429},null]}]}' >limited.json
echo '{"retry_base_delay_ms":10}' >fast.json
tidemark chat --script limited.json --config fast.json -p hi </dev/null >out 2>err
check_is '429, 429, 200: answered' At\ last. "$(cat out)"
check_is 'each attempt is seen' 'attempt 2 of 4 in attempt 3 of 4 in' "$(grep -o 'attempt [0-9] of 4 in' err | paste -sd ' ')"
id=$(tidemark sessions list --ids | head -n 1)
view_is 'each failed one is a row' '0 1' "SELECT attempt FROM errors WHERE session_id = '$id' ORDER BY id"
echo '{"turns":[{"text":"x","fail":[{"status":503},{"status":503},{"status":503},{"status":503},{"status":503},{"status":503}]}]}' >down.json
chat down --config fast.json -p hi
check_is '503 for ever: it fails' 'failed|1' "$(json '$.status' <out)|$got"
view_is 'after four calls, four rows' '0 1 2 3' "SELECT attempt FROM errors WHERE session_id = '$id' ORDER BY id"
check 'it shows how to continue' grep -q "tidemark .*chat --resume $id" err
check_is 'it can be resumed' 1 "$(tidemark sessions show "$id" --json | json '$.is_resumable')"
check_is 'and is, when the trouble is over' Hello. "$(tidemark chat --resume "$id" --script hello.json </dev/null 2>/dev/null)"
check_is 'the prompt was not asked for again' 1 "$(count "$id" message.user)"
echo '{"turns":[{"text":"Only."}]}' >short.json
chat short -p one
chat short --resume "$id" -p two
check 'a script that is too short says what to do' grep -q 'short.json has 1 turn, and turn 2 was asked for: add one, or "repeat": true: `tidemark chat' err
tidemark chat --script unauthorized.json -p hi </dev/null >out 2>err
check_is '401: exit status' 1 $?
id=$(tidemark sessions list --ids | head -n 1)
check_is 'one call' 1 "$(count "$id" llm.error)"
check "the key is to be checked" grep -q "bad key.*check the provider's key.*tidemark chat --resume $id" err
check_is 'one line' 1 "$(wc -l <err)"
echo '{}' >empty.json
tidemark chat --script limited.json --config empty.json -p hi </dev/null >out 2>err
# What is shown is what is left when the failure is on disk: a slow one takes its part of it.
check_is 'a config without the keys has the defaults' 'attempt 2 of 4 in 0.5 s|attempt 3 of 4 in 1.0 s' \
    "$(sed -n 's/.*\(attempt 2 of 4 in\) 0\.[1-6] s.*/\1 0.5 s/p; s/.*\(attempt 3 of 4 in\) \(0\.[4-9]\|1\.[01]\) s.*/\1 1.0 s/p' err | paste -sd '|')"

# ---- a log that nobody reads ----
mkfifo nobody.fifo
exec 8<>nobody.fifo # both ends, so that it has a reader, who does not read
full() {
    dd if=/dev/zero of=nobody.fifo bs=4096 oflag=nonblock >/dev/null 2>&1
    ! dd if=/dev/zero of=nobody.fifo bs=4096 count=1 oflag=nonblock >/dev/null 2>&1
}
check 'a full pipe' full
timeout 60 "$TIDE_BIN" chat --script limited.json --config fast.json --verbose -p hi </dev/null >out 2>nobody.fifo && got=0 || got=$?
check_is 'as standard error it does not hold up the answer' 'At last.|0' "$(cat out)|$got"
dd if=nobody.fifo of=/dev/null bs=65536 count=16 iflag=nonblock 2>/dev/null
timeout 60 "$TIDE_BIN" chat --script tool.json --yes --verbose -p go </dev/null >out 2>nobody.fifo
dd if=nobody.fifo of=err bs=65536 count=16 iflag=nonblock 2>/dev/null
check 'with room again it has the log' grep -q 'debug: tool done' err
check 'a full pipe once more' full
echo '{"retry_base_delay_ms":10,"log_file":"nobody.fifo"}' >unread.json
check_is 'nor as the log file' 'At last.' "$(timeout 60 "$TIDE_BIN" chat --script limited.json --config unread.json --verbose -p hi </dev/null 2>/dev/null)"
exec 8>&-
refuses_as 'one that has no reader at all' 6 'IO|key||log_file||' chat --script hello.json --config unread.json -p hi </dev/null
echo '{"log_file":"/dev/full"}' >fulldev.json
check_is 'a log file that takes nothing' Done. "$(tidemark chat --script tool.json --yes --config fulldev.json --verbose -p go </dev/null 2>&1)"

# ---- max_turns ----
echo '{"turns":[{"calls":[{"name":"glob","args":{"pattern":"*"}}]}],"repeat":true}' >endless.json
chat endless --max-turns 3 -p go
check_is 'max_turns: it fails' 'failed|1|3' "$(json '$.status' <out)|$got|$(json '$.turns' <out)"
check_is 'with its row' max_turns "$(field "$id" llm.error '$.context')"
chat endless --max-turns 2 --resume "$id"
check_is 'it goes on' 'failed|5' "$(json '$.status' <out)|$(field "$id" message.assistant '$.turn')"

# ---- a budget, a key ----
echo '{"prices":{"scr*":{"input":1000,"output":1000}},"max_cost":0.5}' >budget.json
chat tool --yes --config budget.json -p go
check_is 'a budget that is used up parks' 'waiting|7' "$(json '$.status' <out)|$got"
check 'and says so' eval "tidemark why $id | grep -q 'the budget of 0.5 is used up'"
check_is 'allowed as much again, it goes on' Done. "$(tidemark resume "$id" --input allow --config budget.json)"
echo '{"max_retries":1,"retry_base_delay_ms":5}' >once.json
ANTHROPIC_API_KEY=sk-SECRET tidemark chat --provider anthropic --model m --base-url http://127.0.0.1:1 --config once.json --verbose -p hi </dev/null >out 2>err
check_is 'nobody answers: exit status' 1 $?
check 'which is said' grep -q 'check the network and base_url' err
check 'the key is nowhere' eval "! grep -rqs SECRET s.db s.db-wal s.files out err"

# ---- hooks ----
echo '{"hooks_file":"nothing.json"}' >nohooks.json
refuses_as 'a hooks file that is not there' 3 'NOT_FOUND|key||hooks_file||' chat --script hello.json --config nohooks.json -p x </dev/null
echo '{"hooks":{"a":1}}' >nolist.json
echo '{"hooks_file":"nolist.json"}' >nolisted.json
refuses_as 'a hooks file that holds no list' 2 'INVALID|key||hooks_file||' chat --script hello.json --config nolisted.json -p x </dev/null
cat >hooks.json <<'END'
{"hooks":[{"name":"no-shell","event":"pre_tool_use","matcher":"ba.h","action":"deny","reason":"not today"},
          {"name":"notes","event":"turn_start","action":"log"}]}
END
echo '{"hooks_file":"hooks.json"}' >hooked.json
rm -f ran
chat tool --yes --config hooked.json -p go
check_is 'a hook denies' "denied by hook 'no-shell': not today" "$(field "$id" message.tool '$.content')"
check_is 'nothing ran' '' "$(cat ran 2>/dev/null)"
check_is 'and the run went on' Done. "$answer"
check_is 'what hooks decided is recorded' 'pre_tool_use:deny turn_start:continue' \
    "$(tidemark log show "$id" | grep hook.fired | sed 's/.*"event":"\([a-z_]*\)".*"decision":"\([a-z_]*\)".*/\1:\2/' | sort -u | paste -sd ' ')"
echo '{"hooks":[{"name":"enough","event":"post_tool_use","action":"stop","reason":"enough"}]}' >stops.json
chat tool --yes --config stops.json -p go
check_is 'a hook stops' 'stopped|cancelled' "$(json '$.status' <out)|$(outcome_of "$id")"
check_is 'the tool that ran has its result' hi "$(field "$id" message.tool '$.content')"
cat >crash.json <<'END'
{"hooks":[{"name":"crashes","event":"pre_tool_use","command":"kill -9 $$"},
          {"name":"fails","event":"turn_end","command":["false"]},
          {"name":"bad","event":"pre_tool_use","matcher":"(","action":"deny"}]}
END
tidemark chat --script tool.json --yes --config crash.json -p go </dev/null >out 2>err
check_is 'hooks that fail: the run goes on' 'Done.' "$(cat out)"
for hook in crashes fails bad; do
    check "a warning names $hook" grep -q "hook '$hook'" err
done
echo '{"hooks":[{"name":"gone","event":"pre_tool_use","command":["./no-such-hook"]},{"name":"away","event":"pre_tool_use","command":"./no-such-hook"}]}' >gone.json
tidemark chat --script endless.json --max-turns 3 --config gone.json -p go </dev/null >out 2>err
check_is 'a hook whose program is not there is told of once' '1 1' "$(grep -c "hook 'gone': .*no such program: skipped" err) $(grep -c "hook 'away': exit status 127" err)"
echo '{"action":"modify_args","args":{"command":"echo changed"}}' >changed
echo '{"hooks":[{"name":"changes","event":"pre_tool_use","command":["cat","changed"]}]}' >changes.json
chat tool --yes --config changes.json -p go
check_is 'a hook changes the arguments' changed "$(field "$id" message.tool '$.content')"

echo '{"hooks":[{"name":"guard","event":"PreToolUse","command":"echo not on a Friday >&2; exit 2"}]}' >denies.json
chat tool --yes --config denies.json -p go
check_is 'exit status 2 of a hook denies, and says why' "denied by hook 'guard': not on a Friday|0" "$(field "$id" message.tool '$.content')|$(count "$id" tool.started)"
echo '{"hooks":[{"name":"guard","event":"PreToolUse","command":["./no-such-hook"],"on_failure":"deny"}]}' >closed.json
chat tool --yes --config closed.json -p go
check_is 'a hook that fails closed denies' 0 "$(count "$id" tool.started)"
tidemark config check --config closed.json >out 2>err && got=0 || got=$?
check_is 'config check names a program that is missing' '1|1' "$got|$(grep -c "hook 'guard'" out)"
check 'doctor as well' eval "tidemark doctor --config closed.json | grep -q \"hook 'guard'\""

# ---- a store that cannot be written, and none at all ----
refuses_as 'a store that cannot be made' 3 'NOT_FOUND|file||/proc/nothing||' chat --store "$(store_at /proc/nothing/s)" --script hello.json -p hi </dev/null
check_is '--no-store talks all the same' Hello. "$(tidemark chat --no-store --store "$(store_at /proc/nothing/s)" --script hello.json -p hi </dev/null)"
n=$(sessions)
check_is 'and keeps nothing' Hello. "$(tidemark chat --no-store --script hello.json -p hi </dev/null)"
check_is 'in the store' "$n" "$(sessions)"
check_is 'nor elsewhere' '' "$(ls tmp)"
ANTHROPIC_API_KEY=k tidemark chat --no-store --provider anthropic --model m --base-url http://127.0.0.1:1 --config once.json -p hi </dev/null 2>err
check 'when it fails, nothing is offered that would need it' eval "grep -q 'check the network and base_url' err && ! grep -q 'tidemark chat' err"
ANTHROPIC_API_KEY=k tidemark chat --no-store --provider anthropic --model m --base-url http://127.0.0.1:1 --config once.json --json -p hi </dev/null >out 2>err
check_is 'nor as JSON' '[]' "$(tail -n 1 err | json '$.hints')"
mkdir -p "tmp/$(repeat 100 d)"
check_is 'however long the name of its place is' Hello. "$(TMPDIR=$work/tmp/$(repeat 100 d) tidemark chat --no-store --script hello.json -p hi </dev/null)"
echo '{"provider":"script","script":"../hello.json"}' >elsewhere/beside.json
check_is 'a script of the settings is beside them' Hello. "$(tidemark chat --config elsewhere/beside.json -p hi </dev/null)"

# ---- killed in the middle of a tool ----
echo '{"turns":[{"text":"I do.","calls":[{"name":"bash","args":{"command":"echo did >>ledger; echo $$ >tool.pid; exec sleep 1000"}},{"name":"bash","args":{"command":"echo second >>ledger"}}]},{"text":"Checked."}]}' >slow.json
# killed_chat TITLE: a chat that is killed while its first tool runs; its id is in $id.
killed_chat() {
    rm -f ledger tool.pid
    "$TIDE_BIN" chat --script slow.json --yes --title "$1" -p go </dev/null >/dev/null 2>&1 &
    local pid=$!
    wait_for test -s tool.pid
    id=$(tidemark sessions list --ids | head -n 1)
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
}
killed_chat first
check 'the tool dies with the chat' wait_for gone "$(cat tool.pid)"
check_is 'it was cut' interrupted_startup "$(status_of "$id")"
check 'why says in the middle of what' eval "tidemark why $id | grep -q 'in the middle of'"
check_is 'recover writes it down' 1 "$(tidemark recover | grep -c "^interrupted  *$id: .* in the middle of bash")"
check_is 'once' process_restart "$(field "$id" run.interrupted '$.reason')"
check_is 'it goes on' Checked. "$(tidemark chat --resume "$id" --yes </dev/null 2>/dev/null)"
check_is 'what was done is not done again, what was not is done' 'did second' "$(paste -sd ' ' ledger)"
check 'and the model is told that nobody knows' eval "tidemark log show $id | grep message.tool | head -n 1 | grep -q 'outcome unknown'"
check_is 'one interruption' 1 "$(count "$id" run.interrupted)"
echo '{"auto_approve_tools":true}' >"$work/all.json"
killed_chat second
TIDEMARK_CONFIG=$work/all.json tidemark recover --run-due --auto-resume live >out 2>err
check_is 'recover --run-due goes on with it' "did second|completed" "$(paste -sd ' ' ledger)|$(outcome_of "$id")"
killed_chat third
chat slow --resume "$id" --yes -p 'and now?'
check_is 'a new prompt comes behind what was cut' 'did second' "$(paste -sd ' ' ledger)"

# ---- stopped ----
rm -f ledger tool.pid
env --default-signal=INT "$TIDE_BIN" chat --script slow.json --yes -p go </dev/null >out 2>err &
pid=$!
wait_for test -s tool.pid
id=$(tidemark sessions list --ids | head -n 1)
began=$SECONDS
kill -INT "$pid"
wait "$pid"
check_is 'Ctrl-C: exit status' 130 $?
check 'soon' test $((SECONDS - began)) -lt 30
check 'the tool is gone' gone "$(cat tool.pid)"
check 'one line shows how to continue' grep -qx "tidemark: stopped: \`tidemark chat --resume $id\` continues" err
check_is 'it is interrupted, by a person' 'shutdown|person' "$(field "$id" run.interrupted '$.reason')|$(field "$id" run.interrupted '$.by')"
check_is 'recovery leaves it alone' 0 "$(tidemark recover --run-due --auto-resume all 2>/dev/null | grep -c "resumed.*$id")"
check_is 'a person goes on' Checked. "$(tidemark resume "$id" 2>/dev/null || TIDEMARK_CONFIG=$work/all.json tidemark resume "$id" --input allow 2>/dev/null)"
check_is 'nothing is doubled' 1 "$(grep -c did ledger)"

# ---- others have a word with it ----
rm -f ledger tool.pid
"$TIDE_BIN" chat --script slow.json --yes -p go </dev/null >out 2>err &
pid=$!
wait_for test -s tool.pid
id=$(tidemark sessions list --ids | head -n 1)
refuses_as 'a second process is told who works on it' 4 "HELD|session|$id|||cancel" chat --resume "$id" -p x </dev/null
"$TIDE_BIN" chat --watch --resume "$id" </dev/null >watched 2>watched.err &
watcher=$!
check 'one that only watches sees what was said' wait_for grep -q '^› go' watched.err
check 'and that another works on it' wait_for grep -q 'another process' watched.err
check_is 'a message is queued for it' 1 "$(tidemark sessions send "$id" 'hurry up' | grep -c "^queued for session $id")"
check 'cancel' tidemark cancel "$id"
wait "$pid"
check_is 'ends it: exit status 1' 1 $?
wait "$watcher"
check_is 'and the one that watched' 0 $?
check_is 'cancelled' cancelled "$(outcome_of "$id")"
check 'its tool is gone' gone "$(cat tool.pid)"
check_is 'a person may go on with it' Checked. "$(tidemark chat --resume "$id" --yes </dev/null 2>/dev/null)"
check_is 'and the message was taken up' 'hurry up' "$(tidemark log show "$id" | grep message.user | tail -n 1 | json '$.content')"
check_is 'a message to one that nobody runs is answered' Hello. "$(tidemark chat --script hello.json -p one </dev/null >/dev/null
    tidemark sessions send "$(tidemark sessions list --ids | head -n 1)" two >/dev/null
    tidemark log show "$(tidemark sessions list --ids | head -n 1)" | grep message.assistant | head -n 1 | json '$.content')"
check_is 'with the next answer' Second. "$(field "$(tidemark sessions list --ids | head -n 1)" message.assistant '$.content')"

# ---- a model that is configured meanwhile ----
# keeps VARIABLE=VALUE… -- OPTIONS: what is said when the chat is resumed with this set.
keeps() {
    local set=()
    while [ "$1" != -- ]; do
        set+=("$1")
        shift
    done
    env "${set[@]}" "$TIDE_BIN" chat --resume "$id" -p more "${@:2}" </dev/null 2>&1 >/dev/null
}
kept() {
    echo "tidemark: this chat keeps its $1; configured now: $2 (to change: $3)"
}
echo '{"turns":[{"text":"Yes."}],"repeat":true}' >yes.json
echo '{"model":"newer"}' >newer.config
echo '{"model":"newer","provider":"script"}' >both.config
chat yes -p hi
want=$(kept 'model script' 'model newer' '--model newer')
check_is 'a chat that keeps its model says so, and how to change it' "$want" "$(keeps TIDEMARK_MODEL=newer TIDEMARK_PROVIDER=script --)"
check_is 'also where no provider is set' "$want" "$(keeps TIDEMARK_MODEL=newer --)"
check_is 'or the settings say it' "$want" "$(keeps TIDEMARK_CONFIG=newer.config --)"
check_is 'with a provider' "$want" "$(keeps TIDEMARK_CONFIG=both.config --)"
check_is 'by an option' "$want" "$(keeps A=1 -- --config newer.config)"
check_is 'or its provider is told again' "$want" "$(keeps TIDEMARK_MODEL=newer -- --provider script)"
check_is 'or its script' "$want" "$(keeps TIDEMARK_MODEL=newer -- --script yes.json)"
check_is 'nothing is said when it is the same' '' "$(keeps TIDEMARK_MODEL=script --)"
check_is 'or nothing is set' '' "$(keeps TIDEMARK_PROVIDER=script --)"
check_is 'it is changed as it says' 'tidemark: model newer instead of script, as told' "$(keeps TIDEMARK_MODEL=newer -- --model newer)"
check_is 'and then kept' '' "$(keeps TIDEMARK_MODEL=newer --)"
check_is 'another provider is named as well' \
    "$(kept 'provider script, model newer' 'provider openai, model big' '--provider openai --model big')" "$(keeps TIDEMARK_PROVIDER=openai TIDEMARK_MODEL=big --)"
check_is 'or alone' "$(kept 'provider script' 'provider openai' '--provider openai')" "$(keeps TIDEMARK_PROVIDER=openai --)"
check_is 'also when a model is told' "$(printf '%s\n%s' 'tidemark: model other instead of newer, as told' "$(kept 'provider script' 'provider openai' '--provider openai')")" \
    "$(keeps TIDEMARK_PROVIDER=openai TIDEMARK_MODEL=big -- --model other)"
check_is 'a script has no server' '' "$(keeps TIDEMARK_BASE_URL=http://127.0.0.1:1/v1 --)"
# A chat that nobody answers: what is kept is said before anyone is asked.
here=http://127.0.0.1:1
TIDEMARK_MAX_RETRIES=0 OPENAI_API_KEY=none "$TIDE_BIN" chat --provider openai --model small --base-url $here -p hi </dev/null >/dev/null 2>&1
id=$(tidemark sessions list --ids | head -n 1)
said() {
    TIDEMARK_MAX_RETRIES=0 keeps "$@" | grep 'this chat keeps'
}
check_is 'a model alone, of another provider than the default' "$(kept 'model small' 'model big' '--model big')" "$(said TIDEMARK_MODEL=big --)"
check_is 'a server' "$(kept "server $here" "server $here/v2" "--base-url $here/v2")" "$(said TIDEMARK_BASE_URL=$here/v2 --)"
check_is 'all of them' \
    "$(kept "provider openai, model small, server $here" "provider anthropic, model big, server $here/v2" "--provider anthropic --model big --base-url $here/v2")" \
    "$(said TIDEMARK_PROVIDER=anthropic TIDEMARK_MODEL=big TIDEMARK_BASE_URL=$here/v2 --)"
check_is 'but not what is told' '' "$(said TIDEMARK_BASE_URL=$here/v2 -- --base-url $here)"

# ---- a pause that a provider asks for ----
echo '{"turns":[{"text":"At last.","fail":[{"status":429,"message":"slow down","retry_after":99999999}]}]}' >slow.json
"$TIDE_BIN" chat --script slow.json -p hi </dev/null >out 2>err &
chat_pid=$!
paused() {
    grep -q 'attempt 2 of 4 in 900' err
}
check 'the pause is capped and shown' wait_for paused
id=$(tidemark sessions list --ids | head -n 1)
check 'why says when it is tried again, and why' holds 'a model call failed and is retried at 20' <<<"$(tidemark why "$id")"
check 'with what the provider said' holds 'slow down (asks for a pause of 99999999 s, capped to 900 s by max_retry_after_ms)' <<<"$(tidemark why "$id")"
kill -KILL "$chat_pid"
wait "$chat_pid" 2>/dev/null
check_is 'a person who resumes it does not wait' 'At last.' "$(tidemark resume "$id" </dev/null)"

# ---- looked at from outside ----
chat tool --yes -p 'look at me'
view_is 'the view of messages' 'user|look at me assistant|I look. tool|hi assistant|Done.' \
    "SELECT role, trim(content, char(10)) FROM messages WHERE session_id = '$id' AND NOT deleted ORDER BY id"
view_is 'the view of usage' 2 "SELECT count(*) FROM token_usage WHERE session_id = '$id' AND input_tokens > 0"
check 'the timeline' eval "tidemark sessions timeline $id | grep -q 'bash  *once .* ran'"
check 'it verifies' tidemark sessions verify "$id"
check 'it is deleted' tidemark sessions delete "$id"
view_is 'with all that was of it' 0 "SELECT (SELECT count(*) FROM messages WHERE session_id = '$id') + (SELECT count(*) FROM token_usage WHERE session_id = '$id') + (SELECT count(*) FROM checkpoints WHERE session_id = '$id')"
refuses_as 'a second time it is not there' 3 "NOT_FOUND|session|$id|||list_sessions" sessions delete "$id"

# Answers from a file are found by the turn, not by what is left of the conversation when old turns are dropped.
python3 - "$work/ledger" >dropping.json <<'END'
import json, sys
turns = []
for i in range(5):
    turns += [{"text": "x" * 3000, "calls": [{"name": "bash", "args": {"command": "echo %d >>%s" % (i, sys.argv[1])}}]}, {"text": "done"}]
print(json.dumps({"turns": turns}))
END
echo '{"max_context_tokens":5000}' >dropping.config
rm -f ledger
export TIDEMARK_CONFIG=$work/dropping.config
id=$(tidemark chat --script dropping.json --yes -p 'go' --output json </dev/null | json '$.session_id')
for _ in 1 2 3 4; do tidemark chat --resume "$id" --yes -p 'more' </dev/null >/dev/null 2>&1; done
unset TIDEMARK_CONFIG
check 'old turns were dropped' test "$(count "$id" context.trimmed)" -gt 0
check_is 'and the effects of none are repeated' '0 1 2 3 4' "$(paste -sd ' ' ledger)"

check_is 'no process stays behind' '' "$(pgrep -f "$work" | grep -vx $$)"
finish
