#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Messages that are queued: they show, recovery delivers each once, and one that no run has taken can be withdrawn.
# shellcheck disable=SC2016 # programs hold dollars
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH=$(dirname "$TIDE_BIN"):$PATH

cat >p.sh <<'END'
set -e
tidemark step one --effect once -- sh -c 'echo one >>world'
x=$(tidemark wait ask --kind input)
echo "got $x" >>world
END
# of ID MEMBER: of its list entry.
of() {
    tidemark sessions show "$1" --json | json "\$.$2"
}
world() {
    paste -sd ' ' world
}

tidemark exec --session p -- sh ./p.sh >/dev/null 2>&1
check_is 'without a message it needs an answer' '0|answer' "$(of p needs_resume)|$(of p 'next[0].action')"
tidemark sessions send p hello --queue >/dev/null
check_is 'one that waits for input takes a message' '1|resume|recover' "$(of p needs_resume)|$(of p 'next[0].action')|$(of p 'next[1].action')"
check 'why says that it is there' eval "tidemark why p | grep -q '1 message is queued'"
check_is 'the queue' 'hello' "$(tidemark sessions queue p --json | json '$.content')"
tidemark recover --run-due >/dev/null 2>&1
check_is 'recovery delivers it, and no step is repeated' 'one got hello' "$(world)"
tidemark recover --run-due >/dev/null 2>&1
check_is 'once' 'one got hello|0' "$(world)|$(of p needs_resume)"

tidemark sessions send p second --queue >/dev/null
tidemark sessions send p third --queue >/dev/null
check_is 'after a completed run: there are two, in order' 'second third' \
    "$(tidemark sessions queue p --json | while read -r line; do echo "$line" | json '$.content'; done | paste -sd ' ')"
# listed ID MEMBER: as the list of all sessions has it.
listed() {
    tidemark sessions list --json >.listed
    sqlite3 :memory: "SELECT json_extract(value, '\$.$2') FROM json_each(CAST(readfile('.listed') AS TEXT), '\$.sessions') WHERE json_extract(value, '\$.session_id') = '$1'"
}
check_is 'the list says so, with as many' "2|$(of p why)" "$(listed p queued_messages)|$(listed p why)"
check 'also in its table' eval "tidemark sessions list | grep -q '^p  *completed, 2 queued '"
id=$(tidemark sessions queue p --json | head -n 1 | json '$.queue_id')
refuses_as 'a message that is not there' 3 'NOT_FOUND|session|p|||' sessions queue p --withdraw q_none
check_is 'one is withdrawn' "$id" "$(tidemark sessions queue p --withdraw "$id" --json | json '$.queue_id')"
refuses_as 'and not twice' 3 'NOT_FOUND|session|p|||' sessions queue p --withdraw "$id"
check_is 'the other is left' 'third' "$(tidemark sessions queue p --json | json '$.content')"
tidemark recover --run-due >/dev/null 2>&1
check_is 'a program that has completed is not begun again for it: its steps would happen again' 'one got hello|0' "$(world)|$(of p needs_resume)"
refuses_as 'nor by a resume' 2 'WRONG_STATE|session|p|||' resume p
tidemark exec --session p -- sh ./p.sh >/dev/null 2>&1
check_is 'a new run takes it' 'one got hello one got third' "$(world)"
check_is 'and none is left in the list' 0 "$(listed p queued_messages)"
check_is 'the log says which was taken and which was not' '2|1' "$(tidemark log show p --kind queue.taken | wc -l | tr -d ' ')|$(tidemark log show p --kind queue.withdrawn | wc -l | tr -d ' ')"

tidemark exec --session asks -- tidemark wait ok --kind approval --question 'Ship it?' >/dev/null 2>&1
tidemark sessions send asks 'a remark' --queue >/dev/null
check_is 'an approval is not answered by a message' '0|answer' "$(of asks needs_resume)|$(of asks 'next[0].action')"
tidemark recover --run-due >/dev/null 2>&1
check_is 'recovery leaves it' waiting "$(of asks status)"

tidemark exec --session stopped -- tidemark wait a --kind input >/dev/null 2>&1
tidemark cancel stopped >/dev/null
tidemark sessions send stopped 'too late' --queue >/dev/null
tidemark recover --run-due >/dev/null 2>&1
check_is 'what a person stopped does not begin again by itself' 'cancelled|1' "$(of stopped outcome)|$(tidemark sessions queue stopped --json | wc -l | tr -d ' ')"

echo '{"turns":[{"text":"Hello."},{"text":"Two."}]}' >script.json
tidemark chat --script script.json -p hi </dev/null >/dev/null
chat=$(tidemark sessions list --ids --kind chat)
tidemark sessions send "$chat" more --queue >/dev/null
tidemark recover --run-due >/dev/null 2>&1
check_is 'a chat answers what was queued' 'more|Two.' \
    "$(tidemark log show "$chat" --kind message.user | tail -n 1 | json '$.content')|$(tidemark log show "$chat" --kind message.assistant | tail -n 1 | json '$.content')"

tidemark exec --session busy -- sh -c 'echo $$ >pid; exec tail -f /dev/null' >/dev/null 2>&1 &
runner=$!
wait_for test -s pid
tidemark sessions send busy word --queue >/dev/null
id=$(tidemark sessions queue busy --json | json '$.queue_id')
refuses_as 'while a process runs it nothing is withdrawn' 4 'HELD|session|busy|||cancel' sessions queue busy --withdraw "$id"
tidemark cancel busy >/dev/null
wait $runner

# A chat that was made and never ran begins with the message that is queued for it.
echo '{"turns":[{"text":"here I am"}]}' >answers.json
tidemark sessions new --id first --agent chat >/dev/null
tidemark sessions send first 'are you there?' --queue >/dev/null
check_is 'a first message makes a chat due' 'true' "$(tidemark why first --json | grep -o '"needs_resume":[a-z]*' | cut -d: -f2)"
TIDEMARK_PROVIDER=script TIDEMARK_SCRIPT=$PWD/answers.json tidemark recover --run-due >/dev/null 2>&1
check_is 'and is answered' 'completed|0' "$(tidemark sessions show first --json | json '$.outcome')|$(tidemark sessions queue first --json | wc -l | tr -d ' ')"
finish
