#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark tui on a store, in a terminal of tmux: what is seen, what is answered, resumed, sent and cancelled there, at the sizes and with the
# characters that terminals have.
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
echo '{"turns":[{"text":"The moon pulls the sea."},{"text":"Twice a day."}],"repeat":true}' >answers.json

begin_screen 'the full screen'

# ---- without a terminal, and without a store ----

refuses 'a store that is not there is said' 3 'store init' tui
tidemark store init >/dev/null
fails 'it needs a terminal' 2 'needs a terminal' tui </dev/null
open_tui 80 24 --
shows 'an empty store teaches' 'There are no sessions yet'
tidemark sessions new --id first --title 'A first one' >/dev/null
shows 'a new session comes by itself' 'A first one'
keys q
wait_for has_ended
check_is 'q leaves it' 0 "$(cat ended)"
shows 'and the terminal is as it was' '^ENDED'

# ---- the list, the inbox, an approval ----

make_deploy deploy
tidemark chat -p 'What pulls the sea?' --session notes >/dev/null 2>&1 || tidemark chat -p 'What pulls the sea?' >/dev/null 2>&1
open_tui 100 30 --
shows 'a session that waits' '◆ waiting .*Release 2.4'
shows 'with what moves it' '▸ answer'
shows 'the inbox counts it' 'Inbox 1'
keys Tab
shows 'the inbox' 'Release it to everyone'
keys Enter
shows 'the question in full' 'Answer deploy'
keys Enter
shows_not 'Enter alone decides nothing' 'Answer deploy'
check_is 'it still waits' waiting "$(status_of deploy)"
keys Enter Tab
type_text 'reviewed, yes'
keys Tab
keys y
shows 'nothing is left' 'Nothing waits for you'
wait_for eval '[ "$(status_of deploy)" = idle ]'
check_is 'it went on, once' published "$(cat ledger)"
check 'the reason is in the log' eval 'tidemark log show deploy | grep -q "reviewed, yes"'

# ---- a conversation ----

keys Tab /
type_text 'pulls'
shows 'words filter the list' 'What pulls the sea'
shows_not 'the others are gone' 'Release 2.4'
keys Enter Enter
shows 'what was said' '● The moon pulls the sea'
keys s
type_text 'How often?'
keys Enter Enter
shows 'a message is answered' '● Twice a day'
keys 3
shows 'the log' 'message.assistant'
keys k Enter
shows 'an event in full' '"reason"\|"run_id"\|"checkpoint_id"'
keys Escape 4
shows 'its checkpoints' 'turn'
keys Enter
shows 'the state there' 'as of event'
keys Left
shows 'and one event before' 'as of event'
keys Escape Escape

# ---- an interrupted program is resumed, followed, and cancelled ----

make_cut
open_tui 100 30 -- cut
shows 'why it stands still' 'its process ended'
keys r
shows 'what a resume would do' 'from where it stands'
keys Enter
shows 'it runs' 'running'
keys 2
shows 'the timeline shows both runs' 'run 2'
shows 'with what is under way' '● slow'
touch go
shows 'it is followed to its end' '✓ An import  completed'
rm go
make_cut_again() {
    tidemark exec --session again --title 'Never ends' -- sh -c 'tidemark step slow --effect idempotent -- sh -c "until [ -e go ]; do :; done"' >/dev/null 2>&1 &
    wait_for eval 'tidemark log show again --kind tool.started | grep -q slow'
}
make_cut_again
keys Escape Escape
open_tui 80 24 -- again
shows 'one that runs' 'running'
keys x
shows 'a cancel is asked about' 'Its run ends now'
keys Enter
shows_not 'Enter alone leaves it' 'Its run ends now'
check_is 'it runs' running "$(status_of again)"
keys x
shows 'asked again' 'Its run ends now'
keys BTab BTab x
shows 'letters in a field press nothing' 'reason.*x'
keys Tab x
shows 'it was cancelled' 'cancelled'
wait

# ---- a graph: changes, a checkpoint, its nodes ----

cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "tides", "entry": "a", "memory": {"word": "tide"},
 "nodes": [{"id": "a", "type": "lua", "inputs": ["word"], "outputs": ["long"], "code": "return {long = memory.word .. '!'}"},
  {"id": "b", "type": "lua", "inputs": ["long"], "outputs": ["end"], "code": "if memory.long == 'tide!' then error('too short') end return {['end'] = memory.long}"}],
 "edges": [{"from": "a", "to": "b"}]}
END
tidemark run graph.json --session tides --quiet >/dev/null 2>&1
open_tui 100 30 -- tides
shows 'a graph that failed' 'failed'
keys 6
shows 'its nodes' '✓ a  *completed'
shows 'and the one that failed' '✗ b  *failed'
keys r
shows 'it is resumed with values' 'set'
keys BTab BTab
type_text 'long=ebb and flood'
keys Tab Tab c
shows 'which are checked first' 'is set first: long'
keys r
shows 'and it completes' '✓ tides  completed'
check_is 'with the value' 'ebb and flood' "$(tidemark state tides | json '$.content.memory.end')"

# ---- what texts hold ----

printf '%s' '{"content":"\u001b[2J\u001b]0;owned\u0007 \u202eevil \u200b潮汐 end"}' >hostile.json
tidemark sessions new --id hostile --title "$(printf '\033[31mred\033[0m \342\200\256gpj')" >/dev/null 2>&1 || tidemark sessions new --id hostile --title 'plain' >/dev/null
tidemark log append hostile --kind message.user --data @hostile.json >/dev/null 2>&1 || tidemark log append hostile --kind message.user --data "$(cat hostile.json)" >/dev/null
python3 -c 'import json; print(json.dumps({"kind": "message.assistant", "turn": 1, "content": "x" * (10 << 20)}))' >big.jsonl
tidemark log append hostile - <big.jsonl >/dev/null
open_tui 80 24 -- hostile
shows 'a line of ten mebibytes is cut' 'more bytes'
keys Home
shows 'escape sequences are shown as marks' '␛\[2J'
check 'and none is let through' is_clean
keys Escape
shows 'the list stands' 'Sessions'
check 'and is clean' is_clean

# ---- deleted while it is looked at ----

tidemark sessions new --id first-other --title 'Another one' >/dev/null
open_tui 80 24 -- first
shows 'a session' 'A first one'
tidemark sessions delete first >/dev/null
shows 'it was deleted, and that is said' 'It was deleted'
shows_not 'and none whose id only begins so takes its place' 'Another one'
keys Escape
shows_not 'it is gone from the list' 'A first one'

# ---- sizes and characters ----

open_tui 40 12 --
shows 'forty columns' 'Release 2.4'
keys Down
check 'clean' is_clean
keys '?'
shows 'the help' 'Everywhere'
keys Escape
terminal resize-window -x 300 -y 20
shows 'three hundred columns' 'KIND  *AGE.*WHY'
terminal resize-window -x 20 -y 4
shows 'and very few' 'Sessions'
terminal resize-window -x 80 -y 24
shows 'and back' 'STATUS .*TITLE'
keys q
wait_for has_ended

open_tui 80 24 LC_ALL=C -- deploy
shows 'without UTF-8' '+ Release 2.4  completed'
check 'everything is ASCII' is_ascii
keys 2
shows 'bars too' '#'
check 'in each view' is_ascii
open_tui 80 24 NO_COLOR=1 --
shows 'without colours states have shapes' '✓ completed'
check 'and there are none' eval '! terminal capture-pane -pe | grep -q "$(printf "\033\\[3[1-7]m")"'
open_tui 80 24 TERM=dumb --
wait_for has_ended
check_is 'a terminal that cannot be drawn on is refused' 2 "$(cat ended)"

# ---- signals, and a pipe ----

open_tui 80 24 -- deploy
shows 'up' 'Release 2.4'
kill -TERM "$(pgrep -P "$(terminal list-panes -F '#{pane_pid}')" tidemark | head -n 1)"
wait_for has_ended
check_is 'SIGTERM ends it' 143 "$(cat ended)"
shows 'and gives the terminal back' '^ENDED'

# ---- a store that is moved away ----

if ! on_files; then
    open_tui 80 24 --
    shows 'before' 'Release 2.4'
    for f in s.db*; do mv "$f" "away.$f"; done
    shows 'a store that is gone is said' 'lost'
    shows 'what was known stays' 'Release 2.4'
    for f in away.*; do mv "$f" "${f#away.}"; done
    shows 'it is back' 'live'
    tidemark sessions new --id late --title 'Came later' >/dev/null
    shows 'and followed' 'Came later'
fi

finish
