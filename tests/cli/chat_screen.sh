#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark chat at a terminal, which is one of tmux: typed prompts, the commands behind a slash, a question that survives a
# kill, Ctrl-C, going back and branching off.
# shellcheck disable=SC2016,SC2317 # scripts hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset ANTHROPIC_API_KEY OPENAI_API_KEY
TIDEMARK_STORE=$(store_at "$work/s")
export TIDEMARK_STORE

begin_screen 'a chat at a terminal'

# open_chat ARGS...: in a new window; its pid is in the file pid.
open_chat() {
    rm -f pid ended
    wait_for terminal new-session -d -x 110 -y 60 \
        "sh -c 'echo \$\$ >pid; exec $(printf '%q ' "$TIDE_BIN" chat "$@")'; echo \$? >ended; echo ENDED; read -r _"
    wait_for is_shown '^\(›\|\[y\]es\)' # before it reads, what is typed would be dropped
}
type_line() {
    terminal send-keys -l -- "$1"
    terminal send-keys Enter
}
newest() {
    tidemark sessions list --ids | head -n 1
}
has_ended() {
    [ -s ended ]
}

cat >talk.json <<'END'
{"turns":[{"text":"I look.","calls":[{"name":"bash","args":{"command":"echo hi >>ran; echo hi"}}]},
          {"text":"Looked."},{"text":"A **bold** word."},{"text":"Fourth."},{"text":"Fifth."}]}
END

echo '{"auto_approve_tools":true}' >all.json

# ---- prompts, an answer to a question, commands ----
open_chat --script talk.json
shows 'it greets, with the model and the directory' '^tidemark chat · script.* · ~ · /help'
check_is 'looking around makes no session' 0 "$(tidemark sessions list --ids 2>/dev/null | wc -l)"
type_line /help
shows '/help lists what there is' '/rollback *WHERE'
type_line /nothing
shows 'what is unknown is said' '/nothing is not known'
type_line /why
shows 'a command that needs a session' 'there is no session yet'
type_line /tools
shows '/tools, before there is a session' '^bash  *ask'
type_line /hooks
shows '/hooks as well' '^no hooks'
type_line '/model other'
shows '/model says which' '^model other from the next prompt on'
type_line 'please look'
shows 'a tool is asked about' '? allow bash?'
shows 'with all of its command' '  \$ echo hi >>ran; echo hi$'
id=$(newest)
check_is 'the question is on disk' waiting "$(tidemark sessions show "$id" --json | json '$.status')"
type_line y
shows 'allowed, it runs' '✓ bash echo hi'
shows 'and the model goes on' 'Looked\.'
check_is 'it ran once' hi "$(cat ran)"
type_line 'and more'
shows 'a second prompt' 'A bold word'
type_line /usage
shows '/usage' '3 turns'
type_line /checkpoints
shows '/checkpoints: behind which prompt' 'ckpt_[0-9a-z]*  turn 3 .*› and more'
terminal send-keys -l '/rollback ck'
terminal send-keys Tab
shows 'Tab completes ids' '^› /rollback ckpt_[0-9a-z]'
terminal send-keys C-u
type_line /sessions
shows '/sessions' "$id .*please look"
type_line /quit
wait_for has_ended
check_is '/quit ends well' 0 "$(cat ended)"
shows 'and shows how to continue' "tidemark chat --resume $id"
close_screen

# ---- back, and elsewhere ----
open_chat --resume "$id"
shows 'resumed: the history is drawn again' 'Looked\.'
shows 'all of it' 'A bold word'
tidemark sessions checkpoints "$id" --json >cps
seq=$(sqlite3 :memory: "SELECT json_extract(value, '$.seq') FROM json_each(readfile('cps'), '$.checkpoints') WHERE json_extract(value, '$.turn') = 2")
type_line '/rollback seq:4'
shows '/rollback past what must happen once is refused' '--reuse-effects'
type_line "/rollback seq:$seq"
shows '/rollback' "rolled back to seq $seq"
check 'what came behind is no longer shown' eval '! is_shown "A bold word"'
type_line 'once more'
shows 'the turn is answered again' 'A bold word'
type_line /fork
shows '/fork' 'this is now the fork'
fork=$(newest)
check 'it is another session' test "$fork" != "$id"
type_line 'in the fork'
shows 'which goes on by itself' 'Fourth\.'
check_is 'the original does not see it' 0 "$(tidemark log show "$id" | grep -c 'in the fork')"
type_line "/resume ${id%?}"
check 'the screen is cleared' wait_for eval '! is_shown "Fourth"' # the fork shows all that the original does, and more
shows '/resume ID: that session, here' 'A bold word'
type_line 'and this one'
shows 'it goes on there' 'Fourth\.'
check_is 'in the right log' 1 "$(tidemark log show "$id" | grep -c 'and this one')"
type_line '/resume nobody-here'
shows '/resume of what is not there' "no session 'nobody-here'"
type_line '/clear'
shows '/clear' 'a new session begins with the next prompt'
type_line '/quit'
wait_for has_ended
close_screen

# ---- a question survives a kill, and is asked once more ----
rm -f ran
open_chat --script talk.json
type_line 'look again'
shows 'asked' 'allow bash'
id=$(newest)
kill -KILL "$(cat pid)"
wait_for has_ended
close_screen
check_is 'killed while it asks: it waits' waiting "$(tidemark sessions show "$id" --json | json '$.status')"
open_chat --continue
shows 'it is asked again' 'allow bash'
check_is 'nothing ran meanwhile' '' "$(cat ran 2>/dev/null)"
type_line n
shows 'and denied' 'Looked\.'
check_is 'asked once in the log' '1|1' "$(count "$id" approval.requested)|$(count "$id" approval.given)"
check_is 'nothing ran' '' "$(cat ran 2>/dev/null)"
terminal send-keys C-d
wait_for has_ended
check_is 'the end of the input ends it' 0 "$(cat ended)"
close_screen

# ---- what is typed before a question is no answer to it ----
rm -f ran go
echo '{"turns":[{"text":"Wait.","calls":[{"name":"bash","args":{"command":"until [ -e go ]; do :; done"}}]},{"text":"Now.","calls":[{"name":"bash","args":{"command":"echo hi >>ran"}}]},{"text":"Done."},{"text":"Next."}]}' >ahead.json
open_chat --script ahead.json
type_line 'begin'
shows 'the first is asked about' '\$ until'
type_line y
shows 'it works' 'bash until .* s'
type_line 'yes, and then'
touch go
shows 'the second is asked about' '\$ echo hi >>ran'
id=$(newest)
check_is 'and waits' waiting "$(tidemark sessions show "$id" --json | json '$.status')"
type_line abort
shows 'what is no answer is asked again' 'ater? abort'
check_is 'and allows nothing' waiting "$(tidemark sessions show "$id" --json | json '$.status')"
type_line n
shows 'what was typed is the next prompt' '^› yes, and then'
shows 'and is answered' 'Next\.'
check_is 'nothing ran' '' "$(cat ran 2>/dev/null)"
type_line /quit
wait_for has_ended
close_screen

# ---- nobody to speak to, and only to be watched ----
rm -f ended
terminal new-session -d -x 110 -y 60 "$TIDE_BIN chat --provider openai; echo \$? >ended; echo ENDED; read -r _"
shows 'no key and no model: said before a prompt is typed' 'no key for openai (OPENAI_API_KEY is not set), and no model'
wait_for has_ended
check_is 'with the status of that' 2 "$(cat ended)"
close_screen
rm -f go ended
terminal new-session -d -x 110 -y 60 "$TIDE_BIN chat --script ahead.json --config all.json --watch -p begin; echo \$? >ended; read -r line; echo \"\$line\" >line; read -r _"
shows '--watch shows that it works' 'bash until .* s'
terminal send-keys -l 'for the shell'
touch go
wait_for has_ended
check 'what is typed does not stand in between' eval '! is_shown "for the shell"'
terminal send-keys Enter
wait_for test -s line
check_is 'and is for whoever reads next' 'for the shell' "$(cat line)"
close_screen

# ---- Ctrl-C, a kill ----
echo '{"turns":[{"text":"Slowly.","calls":[{"name":"bash","args":{"command":"echo did >>ledger; echo $$ >tool.pid; exec sleep 1000"}}]},{"text":"Checked."}]}' >slow.json
open_chat --script slow.json --yes
type_line 'do it'
wait_for test -s tool.pid
id=$(newest)
terminal send-keys -l 'typed ahead'
terminal send-keys Enter
terminal send-keys C-c
shows 'Ctrl-C stops the turn, and says that alone' '^stopped$'
shows 'the call was stopped: it did not fail' '■ bash echo did .* stopped'
shows 'what was typed meanwhile stands there, unsent' '^› typed ahead$'
terminal send-keys C-c
shows 'Ctrl-C takes it away' '^›$'
check_is 'the session is interrupted, by a person' person "$(tidemark log show "$id" | grep '"kind":"run.interrupted"' | json '$.by')"
check 'its tool is gone' eval "! kill -0 $(cat tool.pid) 2>/dev/null"
type_line /resume
shows '/resume goes on where it was' 'Checked\.'
check_is 'the tool did not run again' 1 "$(wc -l <ledger)"
shows 'and it asks for more' '^›$'
terminal send-keys C-c
shows 'Ctrl-C at the prompt warns' 'Ctrl-C again, or /quit, leaves'
terminal send-keys C-c
wait_for has_ended
check_is 'twice leaves' 0 "$(cat ended)"
close_screen
rm -f tool.pid
open_chat --script slow.json --yes
type_line 'do it'
wait_for test -s tool.pid
terminal send-keys C-c
shows 'stopped' '^stopped$'
terminal send-keys C-c
wait_for has_ended
check_is 'and left, with two' 0 "$(cat ended)"
close_screen
rm -f tool.pid
open_chat --script slow.json --yes
type_line 'do it'
wait_for test -s tool.pid
id=$(newest)
kill -KILL "$(cat pid)"
wait_for has_ended
close_screen
open_chat --resume "$id" --yes
shows 'killed in a tool: it goes on by itself' 'it was interrupted: continuing where it stopped'
shows 'to its end' 'Checked\.'
check_is 'and did it once' 3 "$(wc -l <ledger)"
type_line /quit
wait_for has_ended
close_screen

# ---- /compact ----
echo '{"turns":[{"text":"The answer is 42."},{"text":"Asked, and 42.","delay_ms":2000},{"text":"After it."},{"text":"More."}]}' >compact.json
open_chat --script compact.json
type_line /compact
shows 'nothing to summarise' 'there is no session yet'
type_line 'what is it'
shows 'answered' 'The answer is 42'
id=$(newest)
type_line '/compact the number'
wait_for eval 'tidemark log show "$id" | grep -q "\"purpose\":\"compact\""'
kill -KILL "$(cat pid)"
wait_for has_ended
close_screen
open_chat --resume "$id"
shows 'killed while it summarises: everything is as it was' 'The answer is 42'
check_is 'no summary is there' 0 "$(count "$id" context.trimmed)"
type_line '/compact the number'
shows 'it is summarised' 'Asked, and 42'
shows 'which is said' 'gets this summary'
check_is 'one event holds the summary' 1 "$(tidemark log show "$id" | grep '"kind":"context.trimmed"' | grep -c '"summary":"\[Summary of .*Asked, and 42')"
check_is 'the log keeps everything' 1 "$(tidemark log show "$id" | grep -c 'The answer is 42')"
type_line 'and now'
shows 'it goes on' 'After it'
check_is 'the request carries the summary and the prompt' 2 "$(tidemark log show "$id" | grep '"kind":"llm.request"' | tail -n 1 | json '$.messages')"
type_line /quit
wait_for has_ended
close_screen
open_chat --resume "$id"
shows 'resumed: the summary stands for what was said' '^≡ .Summary of the conversation'
check 'and not the messages themselves' eval '! is_shown "The answer is 42"'
type_line /quit
wait_for has_ended
close_screen

# ---- a picker ----
first=$(tidemark chat --script talk.json --no-tools -p 'the first of two' --output json </dev/null | json '$.session_id')
# shellcheck disable=SC2034 # a check below evaluates it
second=$(tidemark chat --script talk.json --no-tools -p 'the second of two' --output json </dev/null | json '$.session_id')
open_picker() {
    rm -f pid ended
    terminal new-session -d -x 110 -y 60 \
        "sh -c 'echo \$\$ >pid; exec $(printf '%q ' "$TIDE_BIN" chat --resume)'; echo \$? >ended; echo ENDED; read -r _"
    shows 'chat --resume without an id shows a list' '^› the second of two'
}
open_picker
shows 'what changed last stands first' '^  the first of two · completed'
terminal send-keys Down Up Down
shows 'arrows move' '^› the first of two'
terminal send-keys Enter
shows 'Enter goes on with that one' "^tidemark chat · $first"
check 'the list has gone' eval '! is_shown "the second of two"'
type_line '/resume'
shows '/resume without an id: the list' '^› .* of two · completed'
terminal send-keys Escape
check 'Escape leaves it' wait_for eval '! is_shown "the second of two"'
type_line '/resume'
shows 'again' 'the second of two'
terminal send-keys Up Up Up Up Enter
shows 'and this one' '^› the second of two'
type_line 'here'
check 'it goes on there' wait_for eval 'tidemark log show "$second" | grep -q "\"content\":\"here\""'
type_line /quit
wait_for has_ended
close_screen
open_picker
terminal send-keys C-c
wait_for has_ended
check_is 'left without a choice' 0 "$(cat ended)"
close_screen
refuses_as 'without a terminal: one line' 2 'INVALID|argument||resume||' chat --resume </dev/null
refuses_as 'nor with a prompt' 2 'INVALID|argument||resume||' chat --resume -p hi </dev/null

# ---- one key, the diff of an edit, a reason ----
printf 'one\ntwo\nthree\n' >edited
cat >edits.json <<'END'
{"turns":[{"calls":[{"name":"edit","args":{"path":"edited","old":"two","new":"2\u001b[2J"}}]},
          {"calls":[{"name":"write","args":{"path":"fresh","content":"a\nb\n"}}]},
          {"calls":[{"name":"bash","args":{"command":"echo no >>ran"}}]},
          {"text":"Well."},{"text":"Next."}]}
END
rm -f ran
open_chat --script edits.json
type_line 'change it'
shows 'an edit is shown as a diff' '^  @@ -1,3 +1,3 @@'
shows 'with what goes' '^  -two$'
shows 'and what comes, its controls made visible' '^  +2␛\[2J$'
shows 'and lines around it' '^   three$'
terminal send-keys y
shows 'one key is enough' '✓ edit edited'
shows 'a file that is written is a diff' '^  @@ -0,0 +1,2 @@'
terminal send-keys y
shows 'it is written' '✓ write fresh'
shows 'the third is asked about' '\$ echo no'
terminal send-keys r
shows 'a reason is asked for' '^reason:'
type_line 'not in this directory'
shows 'and then again' '^\[y\]es.*ater? *$'
terminal send-keys n
shows 'the reason goes with the answer' '⊘ bash echo no'
shows 'and on' 'Well\.'
id=$(newest)
check_is 'it is recorded' 'deny|not in this directory' "$(tidemark log show "$id" | grep '"kind":"approval.given"' | tail -n 1 >given; json '$.decision' <given)|$(json '$.reason' <given)"
check_is 'the model is told' 'denied by the user: not in this directory' "$(tidemark log show "$id" | grep '"kind":"message.tool"' | tail -n 1 | json '$.content')"
check_is 'nothing ran' '' "$(cat ran 2>/dev/null)"
check 'the other two happened' eval 'grep -q "^2" edited && grep -q "^b" fresh'
type_line 'go on'
shows 'what was answered with is no prompt' 'Next\.'
type_line /quit
wait_for has_ended
close_screen

# ---- NO_COLOR: the layout of Markdown stays ----
printf '%s' '{"turns":[{"text":"# Head\n\n- one **two**\n- `three`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"}]}' >layout.json
NO_COLOR=1 open_chat --script layout.json
type_line 'show it'
shows 'without colours a table is a table' '^1 │ 2'
shows 'a list is a list' '^ *• one two'
check 'no mark is left' eval '! is_shown "^# Head\|\*\*two"'
terminal capture-pane -p -e >escapes
check 'bold stays' grep -q "$(printf '\033')\[1m.*two" escapes
check 'colours go' eval '! grep -q "$(printf "\033")\[[0-9;]*36m" escapes'
type_line /quit
wait_for has_ended
close_screen

# ---- AGENTS.md ----
mkdir -p repo/.git repo/sub
chmod 755 repo repo/sub
(cd repo && umask 022 && echo 'Root says this.' >AGENTS.md && echo 'Sub says that.' >sub/AGENTS.md && ln -s AGENTS.md sub/CLAUDE.md &&
    echo 'Open to all.' >CLAUDE.md && chmod 666 CLAUDE.md)
cp talk.json repo/sub/
cd repo/sub || exit 1
open_chat --script talk.json
shows 'the greeting names the instructions of the project' '^instructions of the project: ../AGENTS.md, AGENTS.md'
shows 'and what is not used' 'warning: ../CLAUDE.md is not used: others may write'
type_line 'remember it'
shows 'asked' 'allow bash'
id=$(newest)
close_screen
rm AGENTS.md CLAUDE.md
open_chat --resume "$id"
shows 'resumed: those that are stored are named' '^instructions of the project: ../AGENTS.md, AGENTS.md'
close_screen
echo '{"project_instructions":false}' >off.json
open_chat --script talk.json --config off.json
check 'off by a setting' eval '! is_shown "instructions of the project"'
close_screen
cd ../..

nobody_left() {
    ! pgrep -f "$work" | grep -vx $$
}
check 'no process stays behind' wait_for nobody_left # the terminal itself may need a moment
finish
