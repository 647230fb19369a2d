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

tidemark exec --session late -- tidemark wait answer --kind input --deadline 1s >/dev/null 2>&1
sleep 1.2 # until its deadline has passed
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
