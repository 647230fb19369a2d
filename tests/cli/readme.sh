#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The README followed literally: the commands are taken from it, line by line, and do what it says.
# shellcheck disable=SC2016,SC2086,SC2154 # dollars of the README; a list of words; variables that its commands set
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH=$(dirname "$TIDE_BIN"):$PATH
unset ANTHROPIC_API_KEY OPENAI_API_KEY
readme=$TIDE_SOURCE/README.md

# block TEXT: the code block of the README that holds TEXT.
block() {
    awk -v text="$1" '/^```/ { if (inside && hit) exit; inside = !inside; hit = 0; out = ""; next }
        inside { out = out $0 "\n"; if (index($0, text)) hit = 1 } END { if (hit) printf "%s", out }' "$readme"
}
# commands: the lines behind "$ ", without comments.
commands() {
    sed -n 's/^\$ //p' | sed 's/  *# .*//'
}

# ---- the deploy ----
cp -r "$TIDE_SOURCE/examples/deploy" deploy
cd deploy || exit 1
check_is 'the deploy of the README is that of the examples' "$(block '--probe')" "$(grep -v '^# \|^#$' deploy.sh)"
block 'exec --session deploy' | commands >steps
check_is 'two commands' 2 "$(wc -l <steps | tr -d ' ')"
eval "$(sed -n 1p steps)" >out 2>&1
check_is 'it asks' '7|1' "$?|$(grep -c 'Release it to everyone?' out)"
eval "$(sed -n 2p steps)" >out 2>&1
check_is 'the answer lets it finish' '0|1|1' "$?|$(wc -l <place/migrated | tr -d ' ')|$(test -s place/released && echo 1)"
check_is 'the timeline draws it' 1 "$(eval "$(block 'sessions timeline' | commands)" | grep -c 'migrate *once')"
cd "$work" || exit 1

# ---- the graph ----
cp -r "$TIDE_SOURCE/examples/graphs" graphs
mkdir -p examples && mv graphs examples/graphs
block 'research.json' | commands >steps
eval "$(sed -n 1p steps)" || exit 1
eval "$(sed -n 2p ../../steps)" >out 2>&1
check_is 'the graph fails for its key' '1|1' "$?|$(grep -c "the archive does not know this api_key: .tidemark .*resume rivers --set" out)"
eval "$(sed -n 3p ../../steps)"
eval "$(sed -n 4p ../../steps)" >out 2>&1
check_is 'the resume completes it' '0|1' "$?|$(grep -c '^report: Unevenness bends a channel' out)"
cd "$work" || exit 1

# ---- the chat ----
eval "$(block 'config set model NAME' | sed -n '1s/  *#.*//p')" >/dev/null
check_is 'its settings' NAME "$(tidemark config get model)"
check 'another provider' eval "tidemark $(grep -o 'config set provider [a-z]*' "$readme" | head -n 1)"
tidemark config set model --unset
tidemark config set provider --unset
block 'cat script.json' >chat
sed -n '/^{"turns"/,/\]}$/p' chat >script.json
check 'its script is JSON' eval "tr -d '\n' <script.json | json '\$.turns[0].text' >/dev/null"
commands <chat >steps
eval "$(grep 'chat --script' steps)" >out 2>err </dev/null
id=$(grep -o 'sess_[a-z0-9]*' err | head -n 1)
check 'it waits for an approval' test -n "$id"
eval "exec $(grep 'resume sess_' steps | sed "s/sess_…/$id/; s/ *&$//")" >out 2>&1 </dev/null & # exec: the kill is for tidemark, not for a shell
runner=$!
wait_for test -s tags
kill -9 $runner
wait $runner 2>/dev/null
eval "$(grep 'chat --continue' steps)" >out 2>&1 </dev/null
check_is 'killed in the middle of the tool: it continues, and the tag is there once' '1|1' "$(grep -c '^v2.4 stands in tags, once.' out)|$(wc -l <tags | tr -d ' ')"

# ---- the server: its address and its token are those of a person's home ----
rm -r deploy
cp -r "$TIDE_SOURCE/examples/deploy" deploy
cd deploy || exit 1
block 'tidemark serve' | sed -n '/^\$ curl/,/-d /p' | sed 's/^\$ //' >ask
block 'tidemark serve' | commands >steps
export HOME=$work/home
unset XDG_STATE_HOME XDG_RUNTIME_DIR
mkdir "$HOME"
# A pipe, as a terminal would be: in a file there is no code. The console is that of the tests, whatever this build has.
mkdir with-console
ln -s "$TIDE_BUILD/tests/tidemark-console" with-console/tidemark
mkfifo pipe
cat pipe >said &
PATH=$PWD/with-console:$PATH eval "exec $(sed -n '1s/serve/serve --listen 127.0.0.1:0 --host 127.0.0.1:7007/; 1s/ *&$//p' steps)" 2>pipe & # exec: the signal is for tidemark
server=$!
wait_for grep -qs console: said
varies='s|[0-9]*;|PORT;|; s|[0-9]*/#code=[-A-Za-z0-9_]*|PORT/#code=CODE|; s|/[^ ]*tidemark/|/|g'
check_is 'it says where it is as the README does' "$(block 'tidemark serve' | grep '^tidemark:' | sed "$varies")" \
    "$(sed "$varies; s|/run/server[-0-9a-f]*[.]sock|/server.sock|" said)"
echo "connect-to = 127.0.0.1:7007:$(grep -o '127[.0-9:]*' said | head -n 1)" >"$HOME/.curlrc"
eval "$(sed -n 2p steps | sed 's/session deploy/session deployed/')" >out 2>&1
check_is 'the deploy waits' '7|1' "$?|$(grep -c 'Release it to everyone?' out)"
sed -i 's|sessions/deploy/|sessions/deployed/|' ask
eval "$(cat ask)" >answer 2>err
check_is 'an answer by HTTP lets it finish' 'deployed|idle|1' "$(json '$.session_id' <answer)|$(json '$.status' <answer)|$(wc -l <place/migrated | tr -d ' ')"
kill $server
wait $server
check_is 'the server ends when it is told to' 0 $?
cd "$work" || exit 1

# ---- the log ----
block 'sessions new --title' | sed 's/  *# .*//' >steps
eval "$(sed -n 1,3p steps)" >/dev/null
ckpt=$(eval "$(sed -n 4p steps)")
eval "$(sed -n 5p steps)" >/dev/null
check_is 'the memory' wild "$(eval "$(sed -n 6p steps)" | json '$.content.memory.branch')"
eval "$(sed -n 7p steps | sed "s/ckpt_…/$ckpt/")" >/dev/null 2>&1
check_is 'rolled back' main "$(tidemark state "$id" | json '$.content.memory.branch')"
check 'a fork' eval "$(sed -n 8p steps) >/dev/null"
check_is 'followed' 1 "$(eval "timeout 10 $(sed -n 9p steps)" | head -n 1 | wc -l | tr -d ' ')"
if ! on_files; then
    check_is 'the query' '1|user|hello' "$(sqlite3 "$work/data/tidemark/tidemark.db" "$(grep -o 'SELECT turn.*NOT deleted' "$readme")" | grep hello | sort -u)"
fi
check_is 'a stream' '{"seq":7}' "$(echo '{"kind":"note.one"}' | eval "$(block 'my-agent' | sed 's/^my-agent | //; s/  *# .*//')")"
finish
