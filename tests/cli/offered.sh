#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is offered is pasted into the same shell: it names the store, the key and the settings that were given, and it works.
# shellcheck disable=SC2016,SC2317 # backquotes in texts; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# ---- --store is given again ----

store=$(store_at "my store's")
quoted="'${store//\'/\'\\\'\'}'"
ours="tidemark --store $quoted"
mkdir bin && ln -s "$TIDE_BIN" bin/tidemark
PATH=$work/bin:$PATH

# paste COMMAND: as a shell takes it.
paste_it() {
    bash -c "$1" </dev/null
}

# every FILE: of all commands of ours in it none lacks the store.
every() {
    grep -oE '`tidemark [^`]*`|"command":"tidemark ([^"\\]|\\.)*"|^ *(answer +|next +)?tidemark .*' "$1" | sed 's/\\\\/\\/g' >.commands
    grep -qF -- "$ours" .commands && ! grep -vF -- "$ours" .commands
}

tidemark --store "$store" exec --session ask -- sh -c '"$0" wait go --kind approval --question "Go?"' "$TIDE_BIN" >out 2>&1
check 'a wait is answered in the store that was given' every out
check 'why names it' eval 'tidemark --store "$store" why ask >out; every out'
check 'and the command that it offers is taken' eval 'paste_it "$(sed -n "s/^ *\(tidemark .* resume .*\)/\1/p" out | head -n 1 | sed s/TEXT/yes/)"'
check_is 'there' completed "$(tidemark --store "$store" sessions show ask --json | json '$.outcome')"
tidemark --store "$store" exec --session bad -- false >out 2>&1
check 'so does the last line of a program that failed' every out
check 'and what a list offers to programs' eval 'tidemark --store "$store" sessions list --json >out; every out'
check 'an error' eval '! tidemark --store "$store" exec --session bad -- false 2>out; every out'
check 'an error as JSON' eval '! tidemark --store "$store" --json exec --session bad -- false 2>out; every out'
check 'the doctor' eval 'tidemark --store "$store" doctor >out; grep -qF ": $ours resume bad" out && ! grep "tidemark [a-z]" out'
tidemark --store "$store" exec --session once -- sh -c '"$0" step pay --effect once -- false' "$TIDE_BIN" >/dev/null 2>&1
tidemark --store "$store" resume once >out 2>&1
check 'a command inside a program names the store of its run' every out
tidemark --store "$store" exec --session outer -- "$TIDE_BIN" exec --session own -- false >out 2>&1
check_is 'a session of its own store, inside, is offered there' 'tidemark: false ended with exit status 1: `tidemark resume own` resumes it' "$(head -n 1 out)"
check_is 'what the environment names needs no option' 'tidemark resume bad' "$(TIDEMARK_STORE=$store tidemark why bad | grep -oE 'tidemark resume .*' | head -n 1)"

printf '{}\n' >settings.json
check 'the settings that were given are given again' eval 'tidemark --store "$store" --config settings.json why bad >out; grep -qF -- "$ours --config settings.json resume bad" out'
head -c 32 /dev/urandom | base64 >key
tidemark --store keyed.db --key-file key exec --session k -- false 2>out
check 'and the file of the key' holds '`tidemark --store keyed.db --key-file key resume k`' <out
long=$(repeat 180 d)
mkdir "$long"
long=$(store_at "$long/$(repeat 120 s)")
tidemark --store "$long" exec --session l -- false 2>out
check 'a long path is not cut' holds "\`tidemark --store $long resume l\` resumes it" <out
! tidemark --store "$long" exec --session l -- false 2>out
check 'in an error neither, and the error stands whole before it' holds "session 'l'" <out
check 'with its command' holds "\`tidemark --store $long resume l\`" <out

# ---- of a graph that contained a secret ----
cat >use <<'END'
#!/bin/sh
[ -e fixed ] && echo '{"o":1}'
END
chmod +x use
cat >secret.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [{"id": "a", "type": "function", "program": ["./use", "a-well-kept-secret"], "outputs": ["o"], "retries": 0}]}
END
default_store
MY_TOKEN=a-well-kept-secret tidemark run secret.json --session secret --quiet 2>out
check 'its failed run offers to give the graph again' holds 'a secret, which is not stored: `tidemark sessions resume secret --graph NEW.json` continues' <out
check 'so do its list and why, which says the reason' eval 'tidemark why secret >out; holds "give the graph again" <out; holds "resume secret --graph NEW.json" <out; tidemark sessions list --json | holds "resume secret --graph NEW.json"'
touch fixed
check 'and it works' tidemark sessions resume secret --graph secret.json --quiet

# ---- of a graph whose input is stored nowhere ----
rm fixed
sed 's/"a-well-kept-secret"\]/"x"], "inputs": ["pass"]/; s/"entry"/"checkpoints": {"exclude_memory_keys": ["pass"]}, "entry"/' secret.json >missing.json
tidemark run missing.json --session missing --set pass=1 --quiet 2>out
check 'the doctor names what is missing' eval 'tidemark doctor >out; grep -q "missing: .*tidemark sessions resume missing --set .pass=…." out'

# ---- a step of unknown outcome ----
printf '#!/bin/sh\n"$0" step pay --effect once -- sh -c '"'"'kill -9 "$(cat pid)"; exec sleep 0.1'"'"'\n' | sed "s:\"\$0\":'$TIDE_BIN':" >pays
chmod +x pays
# shellcheck disable=SC2016
sh -c 'echo $$ >pid; exec "$0" exec --session pays -- ./pays' "$TIDE_BIN" >/dev/null 2>&1
wait_for eval 'tidemark recover >/dev/null; [ "$(tidemark why pays --json | json "$.outcome")" = interrupted ]'
check_is 'why offers to continue, and both ways past the step' 'tidemark resume pays|tidemark resume pays --happened pay|tidemark resume pays --retry pay|tidemark cancel pays' "$(tidemark why pays | sed -n 's/^  //p' | paste -sd '|')"
lists_agree 'the list of them'
tidemark resume pays --dry-run >out
check 'a dry run says that its resume ends there' holds "note         step 'pay' must happen once and was interrupted: its outcome is unknown" <out
check 'and both ways on' holds '`--happened pay` records that it did, `--retry pay` runs it again' <out
check_is 'also for programs' "step 'pay' must happen once" "$(tidemark resume pays --dry-run --json | json '$.warnings[0]' | cut -c 1-27)"
check 'not when it is answered' eval '! tidemark resume pays --dry-run --happened pay | holds unknown'
tidemark resume pays >out 2>&1
check 'the step that ends there offers what why does' holds '`tidemark resume pays --happened pay` records that it did, `tidemark resume pays --retry pay` runs it again' <out
tidemark exec --session fails -- "$TIDE_BIN" step pay --effect once -- false 2>/dev/null
tidemark resume fails >out 2>&1
check 'so does one that failed' holds 'it is not run again: `tidemark resume fails --happened pay` records that it did, `tidemark resume fails --retry pay` runs it again' <out
check 'a dry run says it as well' eval "tidemark resume fails --dry-run | holds \"step 'pay' must happen once and failed: it is not run again\""

# ---- lines of a question ----
tidemark exec --session lines -- "$TIDE_BIN" wait w --kind input --question "$(printf 'first\nsecond \033[31m')" >out 2>&1
check_is 'each is a line' '  question  first|            second �[31m' "$(sed -n '2,3p' out | paste -sd '|')"
check 'in a sentence they are one' eval 'tidemark why lines | holds "\"first second "'
check 'as JSON they are as they are' eval "tidemark sessions show lines --json | grep -qiF '\"question\":\"first\\nsecond \\u001b[31m'"
tidemark exec --session script -- sh -c 'true
true'
check_is 'a script of many lines is one line in lists' 'sh -c true true' "$(tidemark sessions show script --json | json '$.title')"

# ---- JSON on standard error ----
# only_json: each line of standard input is JSON.
only_json() {
    [ -s "$1" ] && while read -r line; do is_json <<<"$line" || return 1; done <"$1"
}
tidemark exec --json --session json -- sh -c 'echo out; exit 3' >out 2>err
check_is 'the output of the program is its own' out "$(cat out)"
check_is 'its failure is an error, with what helps' 'FAILED|session|json|||resume' "$(error_types <err)"
tidemark exec --json --new-run --session json -- true 2>err
check 'notices are JSON' only_json err
check_is 'with their text' 'a new run begins; the last run of this session was failed' "$(json '$.notice' <err)"
tidemark run --json missing.json --session again --set pass=1 --quiet >out 2>err
check_is 'a graph that failed says it once more as an error' 'FAILED|node|again|a||resume' "$(error_types <err)"

finish
