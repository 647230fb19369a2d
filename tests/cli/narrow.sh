#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A terminal of 40 columns: no line of ours is longer, and no word is cut. A word that is longer than the terminal, which is a
# name, a path or a part of a command, has a line of its own. What fills a wide terminal is the same words.
# shellcheck disable=SC2016,SC2317 # programs hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE TERM=xterm LC_ALL=C.UTF-8 NO_COLOR=1

if ! command -v script >/dev/null; then
    skip 'a narrow terminal' 'no script(1) here'
    finish
fi
# at COLUMNS ARGS...: what a terminal of this width shows.
at() {
    local columns=$1
    shift
    timeout -k 1 20 script -qec "stty cols $columns rows 50; $(printf '%q ' "$TIDE_BIN" "$@")" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g'
}
# too_long: lines that are longer than 40 columns and could be broken; a command that is there to be pasted stays in one piece.
too_long() {
    sed '/^Examples$/,$d; s/`[^`]*`/COMMAND/g' | grep -E '^.{41,}' | grep -vE '^ *(answer *|next *)?tidemark ' | sed 's/^ *//' | grep ' '
}
words() {
    grep -o '[^ ]*' | grep .
}

# ---- every command's help ----
tidemark help --table | cut -f 1 | sort -u | sed 's/^tidemark *//' >commands
bad='' cut='' n=0
while read -r command; do
    n=$((n + 1))
    # shellcheck disable=SC2086,SC2090 # words
    at 40 $command --help >narrow
    # shellcheck disable=SC2086,SC2090
    at 400 $command --help >wide
    [ -z "$(too_long <narrow)" ] || bad="$bad [$command: $(too_long <narrow | head -n 1)]"
    [ "$(words <narrow)" = "$(words <wide)" ] || cut="$cut [$command]"
done <commands
check "there are commands ($n)" test "$n" -ge 10
check_is 'no line of a help is longer than the terminal' '' "$bad"
check_is 'and no word of it is cut or missing' '' "$cut"
at 40 help exec >narrow
check 'an option has its text below it' eval "grep -A1 '^      --session ID$' narrow | grep -q '^        run in this session; create it'"
check 'an example is one line' grep -qx "  tidemark exec --session release --title 'Release 2.4' -- ./deploy.sh" narrow
at 80 help exec >narrow
check 'beside it its lines begin below each other' eval "grep -A1 '^      --session ID   ' narrow | grep -q '^                                 (default: a new session)$'"
check 'and a paragraph is filled' grep -qx 'The program calls `tidemark step`, `wait`, `sleep`, `set`, `get` and' narrow

# ---- sessions in every state ----
mkdir -p work && cd work || exit 1
printf '#!/bin/sh\nset -e\n"$TIDE_BIN" step build --effect pure -- true\n"$TIDE_BIN" wait approve --kind approval --question "Is everything ready for the release to everyone?" --deadline 2d\n' >deploy.sh
chmod +x deploy.sh
cd .. || exit 1
export TIDE_BIN
(cd work && tidemark exec --session a-deployment-that-waits -- ./deploy.sh) >/dev/null 2>&1
tidemark exec --session failed -- sh -c 'exit 3' >/dev/null 2>&1
tidemark exec --session complete -- true >/dev/null 2>&1
cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "plan", "nodes": [
  {"id": "plan", "type": "lua", "code": "return {pages = 3}", "outputs": ["pages"]},
  {"id": "approve", "type": "human_input", "kind": "approval", "question": "Shall all of these pages be published at once?", "outputs": ["fine"]},
  {"id": "publish", "type": "function", "program": ["true"]}],
 "edges": [{"from": "plan", "to": "approve"}, {"from": "approve", "to": "publish", "when": "output.fine and memory.pages > 2"}]}
END
sed 's/"to": "publish"/"to": "nowhere"/' graph.json >broken.json
sed 's/"plan"/"a-node-with-a-rather-long-name"/' graph.json >long.json
tidemark run long.json --session asks-for-more --no-input >/dev/null 2>&1

# fits NAME ARGS...: at 40 columns.
fits() {
    local what=$1
    shift
    at 40 "$@" >narrow
    check "$what: something is shown" test -s narrow
    check_is "$what: no line is longer than the terminal" '' "$(too_long <narrow)"
}
# The words, whenever they are asked for.
ageless() {
    words | paste -sd ' ' | sed -E 's/\<(now|[0-9]+ (second|minute)s? ago)\>/AGE/g' | words
}
# whole NAME ARGS...: and all its words are there.
whole() {
    fits "$@"
    local what=$1
    shift
    at 400 "$@" | ageless >wide
    check_is "$what: no word is cut" '' "$(ageless <narrow | diff - wide)"
}
tidemark tasks set nightly-builds --state REVIEW --title 'All that is built at night, and who looks at it' >/dev/null
fits 'sessions list' sessions list
whole 'why, of one that waits' why a-deployment-that-waits
whole 'why, of one that failed' why failed
tidemark exec --session a-program-with-a-rather-long-name -- false >/dev/null 2>&1
at 40 why a-program-with-a-rather-long-name >narrow
check 'an offered command is one line' grep -qx '  tidemark resume a-program-with-a-rather-long-name' narrow
at 40 exec --session a-program-with-a-rather-long-name -- false >narrow
check 'also in a sentence' grep -q '`tidemark resume a-program-with-a-rather-long-name`' narrow
whole 'tasks show' tasks show nightly-builds
fits 'sessions show' sessions show a-deployment-that-waits
at 80 sessions show a-deployment-that-waits >narrow
check 'a long value goes on below itself' eval "grep -A1 '^why ' narrow | grep -q '^             [a-z0-9]'"
fits 'sessions checkpoints' sessions checkpoints a-deployment-that-waits
at 80 sessions checkpoints asks-for-more >narrow
check_is 'a row of checkpoints is one line of 80 columns' "$(tidemark sessions checkpoints asks-for-more --ids | words | paste -sd ' ')" \
    "$(sed 1d narrow | cut -d ' ' -f 1 | words | paste -sd ' ')"
at 40 sessions checkpoints asks-for-more >narrow
check_is 'at 40 it begins with the id alone' "$(tidemark sessions checkpoints asks-for-more --ids | words | paste -sd ' ')" \
    "$(sed 1d narrow | grep -v '^  ' | paste -sd ' ')"
check 'and the rest stands below it, whole' eval "words <narrow | paste -sd ' ' | grep -q ' before node a-node-with-a-rather-long-name '"
tidemark config list --names >keys
at 80 config list >narrow
check_is 'a row of settings is one line of 80 columns' "$(paste -sd ' ' keys)" "$(sed 1d narrow | cut -d ' ' -f 1 | paste -sd ' ')"
at 40 config list >narrow
check_is 'at 40 it begins with the key alone' "$(paste -sd ' ' keys)" "$(sed 1d narrow | grep -v '^  ' | paste -sd ' ')"
check_is 'and nothing is left out' "$(at 400 config list | words | paste -sd ' ')" "$(words <narrow | paste -sd ' ')"
fits 'config list' config list
fits 'a transcript' sessions transcript a-deployment-that-waits
fits 'doctor' doctor
fits 'graph show' graph show graph.json
fits 'graph check' graph check broken.json
fits 'a graph that is refused' run broken.json
fits 'a graph that waits' run graph.json --session asks --no-input
whole 'an error' sessions show nope
whole 'an error of the arguments' sessions list --no-such-option
whole 'a refused answer' resume a-deployment-that-waits --input maybe
fits 'a timeline says what it needs' sessions timeline a-deployment-that-waits
check_is 'in one sentence' 1 "$(words <narrow | paste -sd ' ' | grep -c 'the timeline needs 80 columns, and this terminal has 40')"
check_is 'and is drawn all the same when that is wanted' 0 "$(at 40 sessions timeline a-deployment-that-waits --width 80 >narrow; echo $?)"
finish
