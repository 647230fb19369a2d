#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The log of programs, graphs, resumes and recovery: where the settings say, at the level they say, without secrets, and not a
# second time where the command itself speaks.
# shellcheck disable=SC2016,SC2034,SC2317 # programs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH=$(dirname "$TIDE_BIN"):$PATH
export MY_TOKEN=sk-hunter2-hunter2
echo "{\"log_level\": \"debug\", \"log_format\": \"json\", \"log_file\": \"$work/log\"}" >logs.json
echo "{\"log_level\": \"error\", \"log_format\": \"json\", \"log_file\": \"$work/log\"}" >errors.json

# records LEVEL MESSAGE: how many there are.
records() {
    grep -c "\"level\":\"$1\",\"msg\":\"$2\"" log
}

tidemark --config logs.json exec --session p -- sh -c 'tidemark step a -- true; tidemark step b -- sh -c "exit 1"; exit 3' 2>err
check_is 'a program: its run' '1|1' "$(records info 'run started')|$(records error 'run ended')"
check_is 'its steps' '2|1|1' "$(records debug 'step started')|$(records debug 'step ended')|$(records warn 'step ended')"
check_is 'standard error has what the command says, once' 1 "$(wc -l <err | tr -d ' ')"
: >log
tidemark --config logs.json resume p 2>/dev/null
check_is 'resume logs the run that goes on' '1|1' "$(records info 'run started')|$(records error 'run ended')"
: >log
tidemark --config errors.json exec --session q -- sh -c 'tidemark step a -- false; exit 3' 2>/dev/null
check_is 'the level leaves out the rest' '1|1' "$(wc -l <log | tr -d ' ')|$(records error 'run ended')"

cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [{"id": "a", "type": "function", "program": ["sh", "-c", "echo '{\"x\":1}'"], "outputs": ["x"]}]}
END
: >log
tidemark --config logs.json run graph.json --quiet >/dev/null 2>err
check_is 'a graph: its run and its node' '1|1|1' "$(records info 'run ended')|$(records debug 'node started')|$(records debug 'node complete')"
check_is 'and nothing on standard error' '' "$(cat err)"

echo '{"turns": [{"text": "Hello."}]}' >hello.json
: >log
tidemark --config logs.json chat --script hello.json -p hi </dev/null >/dev/null 2>err
check_is 'a chat: its run, its agent, its turn' '1|1|1' "$(records info 'run ended')|$(records info 'agent works')|$(records debug turn)"

echo '{"action": "modify_args", "args": {"command": "echo changed"}}' >changed
sed 's/"debug"/"debug", "hooks": [{"name": "change", "event": "pre_tool_use", "command": ["cat", "changed"]}]/' logs.json >args.json
echo '{"turns": [{"text": "I look.", "calls": [{"name": "bash", "args": {"command": "echo given"}}]}, {"text": "Done."}]}' >tool.json
: >log
tidemark --config args.json chat --yes --script tool.json -p go </dev/null >/dev/null 2>err
check_is 'changed arguments of a tool call, with its turn as a number' '1|1' \
    "$(records debug 'tool arguments changed by a hook')|$(grep -c "changed by a hook.*echo changed" log)"
check_is 'a tool call: its arguments and its turn' '1|1' \
    "$(records debug 'tool call')|$(grep -c '"msg":"tool call".*"turn":1,.*echo changed' log)"
check_is 'numbers are numbers' 2 "$(grep -c '"msg":"turn".*"turn":[12],"input_tokens":[0-9]*,"output_tokens":[0-9]*' log)"
echo "{\"turns\": [{\"text\": \"I look.\", \"calls\": [{\"name\": \"bash\", \"args\": {\"command\": \"echo $MY_TOKEN\"}}]}, {\"text\": \"Done.\"}]}" >secret.json
: >log
tidemark --config logs.json chat --yes --script secret.json -p go </dev/null >/dev/null 2>err
check_is 'arguments without secrets' '1|0' "$(records debug 'tool call')|$(grep -c "$MY_TOKEN" log)"

tidemark sessions new --id late >/dev/null
while read -r kind data; do tidemark log append late --kind "$kind" --data "$data" >/dev/null; done <<'END'
run.started {"run_id":"r1"}
token.minted {"token_id":"t1"}
run.waiting {"run_id":"r1","wait_kind":"input","resume_token_id":"t1","deadline_at":"2001-01-01T00:00:00.000Z"}
END
: >log
tidemark --config logs.json recover >/dev/null 2>err
check_is 'recovery: what became of it' 1 "$(records info recovered)"

: >log
tidemark --config logs.json exec --session hide -- sh -c "tidemark step '$MY_TOKEN' -- true; tidemark step named -- sh -c 'echo $MY_TOKEN >&2; exit 1'; exit 1" >/dev/null 2>&1
check_is 'no secret is in the log' '0|1' "$(grep -c "$MY_TOKEN" log)|$(records error 'run ended')"

tidemark --verbose exec -- sh -c 'tidemark step a -- false; exit 3' 2>err
check_is '--verbose: on standard error, but for the error, which the command says' '1|1|0|1' \
    "$(grep -c 'info: run started' err)|$(grep -c 'warn: step ended' err)|$(grep -c 'error: run ended' err)|$(grep -c '^tidemark: .*exit status 3' err)"
tidemark exec -- sh -c 'tidemark step a -- false; exit 3' 2>err
check_is 'by default only what the command says' 1 "$(wc -l <err | tr -d ' ')"
TIDEMARK_LOG_LEVEL=info tidemark --log-format json exec -- true 2>err
check_is 'a variable and --log-format' 'run started' "$(head -n 1 err | json '$.msg')"
TIDEMARK_LOG_LEVEL=loud tidemark exec -- true >out 2>err && got=0 || got=$?
check_is 'a level that is none is refused' '2|1' "$got|$(grep -c TIDEMARK_LOG_LEVEL err)"
finish
