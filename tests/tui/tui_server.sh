#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark tui --server: the same screen through a server, which is killed while somebody looks.
# shellcheck disable=SC2016,SC2317 # scripts hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
# shellcheck source=tests/tui/lib.sh
. "$TIDE_SOURCE/tests/tui/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
mkdir bin
ln -s "$TIDE_BIN" bin/tidemark
export TIDEMARK_STORE PATH="$work/bin:$PATH" TIDEMARK_PROVIDER=script TIDEMARK_SCRIPT="$work/answers.json"
echo '{"turns":[{"text":"The moon pulls the sea."}],"repeat":true}' >answers.json

begin_screen 'the full screen through a server'
trap 'kill -9 "$server" 2>/dev/null; terminal kill-server 2>/dev/null; remove_work' EXIT

serve() {
    "$TIDE_BIN" serve --auto-resume off --listen off --unix "$work/run/s.sock" >served 2>&1 &
    server=$!
    wait_for grep -q 'unix:' served
}
mkdir -m 700 run
make_deploy deploy 'Release 2.4'
make_deploy second 'Release 2.5'
make_cut
refuses_as 'a server that is none' 2 'INVALID|argument||server||' --server nonsense tui
serve
url=unix:$work/run/s.sock

open_tui 100 30 -- --server "unix:$work/run/none.sock"
wait_for has_ended
check_is 'a server that is not there ends it at once' 6 "$(cat ended)"
shows 'and is said' 'no server answers there'

open_tui 100 30 -- --server "$url"
shows 'the list' '◆ waiting .*Release 2.4'
shows 'where it is from' 's.sock'
shows 'what was cut' '▲ interrupted .*An import'
keys Tab
shows 'the inbox' 'Release it to everyone'
keys Enter y
shows_not 'answered in place' 'Release 2.4'
wait_for eval '[ "$(status_of deploy)" = idle ]'
check_is 'it went on' published "$(cat ledger)"

# ---- killed while somebody looks ----

keys o
shows 'a session' 'Release 2.5  waiting'
kill -9 $server
wait $server 2>/dev/null
shows 'a server that is killed is said' 'lost'
shows 'and tried again' 'trying again'
shows 'what was known stays' 'Release 2.5  waiting'
tidemark resume second --input yes >/dev/null 2>&1
check_is 'meanwhile it went on' idle "$(status_of second)"
serve
shows 'it is back' 'live'
shows 'and nothing was missed' 'Release 2.5  completed'
keys 3
shows 'the log is whole' 'run.completed'

# ---- resumed there, followed here ----

keys Escape Escape
open_tui 100 30 -- --server "$url" cut
shows 'why it stands still' 'its process ended'
keys r
shows 'what a resume would do' 'from where it stands'
keys Enter
shows 'it runs at the server' 'running'
touch go
shows 'and is followed to its end' '✓ An import  completed'

# ---- started there ----

keys Escape
tidemark chat -p 'What pulls the sea?' >/dev/null 2>&1
shows 'what others do comes by itself' 'What pulls the sea'
keys Home Enter
shows 'what was said' '● The moon pulls the sea'
keys s
type_text 'And the wind?'
keys Enter Enter
shows 'a message is sent' '› And the wind'

# ---- deleted while it is looked at ----

id=$(tidemark sessions list --ids | head -n 1)
check 'deleted, once the server has let it go' wait_for tidemark sessions delete "$id"
shows 'it was deleted, and that is said' 'It was deleted'
keys q q
wait_for has_ended
check_is 'q leaves it' 0 "$(cat ended)"

# ---- a token that may only read, one that is revoked ----

tidemark access create reader --scopes read >token
kill $server
wait $server 2>/dev/null
"$TIDE_BIN" serve --auto-resume off --listen 127.0.0.1:0 --unix off >served 2>&1 &
server=$!
wait_for grep -q 'http://' served
http=$(sed -n 's/.*\(http:[^;]*\);.*/\1/p' served)
make_deploy third 'Release 2.6'
open_tui 100 30 TIDEMARK_TOKEN="$(cat token)" -- --server "$http" --inbox
shows 'who may read sees the inbox' 'Release it to everyone'
keys Enter y
shows 'and may not answer' 'lacks the scope'
keys Escape
tidemark access revoke reader
shows 'a token that is revoked is said' 'lost\|revoked\|no token\|is not'
kill $server
wait $server 2>/dev/null
keys q
wait_for has_ended
finish
