#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Help, usage errors, completion scripts and manual pages: all of them follow the tables.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

tidemark >out 2>err
check_is 'no command: exit status 2' 2 $?
check_is 'no command: nothing on standard output' '' "$(cat out)"
check 'no command: the help is on standard error' grep -q '^usage: tidemark COMMAND' err
check 'help is on standard output' sh -c "'$TIDE_BIN' --help | grep -q '^usage: tidemark COMMAND'"
check_is 'help begins with what people and programs use' 'chat run exec step wait sleep set get checkpoint resume cancel why' \
    "$(tidemark help | sed -n '5,16p' | awk '{print $1}' | paste -sd ' ')"
check 'then come the groups, then the rest' eval "tidemark help | tr '\n' ' ' | grep -q ' recover .* sessions new .* store compact .* doctor '"
for status in '7 waiting' '8 token refused' '9 changed arguments' '10 outcome unknown'; do
    check "help names exit status $status" eval "tidemark help | grep -qF '$status'"
done
check_is 'a group alone shows its commands and fails' 2 "$(tidemark sessions >/dev/null 2>&1; echo $?)"
check_is 'the version' "tidemark $("$TIDE_SOURCE/tools/version")" "$(tidemark --version)"
check_is 'the version as JSON' "$("$TIDE_SOURCE/tools/version")" "$(tidemark --version --json | json '$.version')"

tidemark help --table >table
check 'the table has rows' test "$(wc -l <table)" -gt 60
check_is 'every row of the tables has its help' '' "$(awk -F '\t' '$3 == ""' table)"

cut -f 1 table | sort -u | while read -r words; do
    # shellcheck disable=SC2086 # the words of a command
    tidemark $words --help >page 2>&1 && grep -q '^usage: tidemark' page || echo "$words"
done >unhelped
check_is 'every command answers --help' '' "$(cat unhelped)"
check_is 'help COMMAND is the same as COMMAND --help' "$(tidemark sessions new --help)" "$(tidemark help sessions new)"
check 'help comes before complaints' tidemark sessions rollback --help --bogus

# page_of WORD: the manual page of a command's family.
page_of() {
    case $1 in
        cancel | token) set -- exec ;;
        wait | sleep | set | get | checkpoint) set -- step ;;
    esac
    set -- "$TIDE_SOURCE/man/tidemark-$1.1.scd"
    [ -f "$1" ] || set -- "$TIDE_SOURCE/man/tidemark.1.scd"
    echo "$1"
}

# Every command and option stands in the manual page of its family.
while IFS='|' read -r words option _; do
    page=$(page_of "${words%% *}")
    grep -qF -- "${option:-$words}" "$page" || echo "$words $option"
done < <(tr '\t' '|' <table) >unhelped
check_is 'every command and option is in its manual page' '' "$(cat unhelped)"

# What else the pages must have: every page is built, every exit status and variable is explained, the example compiles.
all=$TIDE_SOURCE/man/tidemark.1.scd
(cd "$TIDE_SOURCE/man" && for page in *.scd; do grep -q "'${page%.scd}'" meson.build || echo "$page"; done) >unhelped
check_is 'every manual page is built' '' "$(cat unhelped)"
sed -n '/^#define TIDE_CODES(X)/,/^$/s/^    X([A-Z_]*, [0-9]*, \([0-9]*\), .*/\1/p' "$TIDE_SOURCE/include/tidemark.h" | sort -un >statuses
check 'the table of codes has rows' test "$(wc -l <statuses)" -gt 8
while read -r status; do grep -q "^\*$status\*" "$all" || echo "$status"; done <statuses >unhelped
check_is 'every exit status is in the manual page' '' "$(cat unhelped)"
grep -rhoE 'getenv\("TIDEMARK_[A-Z_]*|"TIDEMARK_[A-Z_]*=' "$TIDE_SOURCE/src" | grep -o 'TIDEMARK_[A-Z_]*' | sort -u >variables
check 'there are variables' test "$(wc -l <variables)" -gt 5
while read -r name; do grep -qF "*$name*" "$all" || echo "$name"; done <variables >unhelped
check_is 'every variable is in the manual page' '' "$(cat unhelped)"
# shellcheck disable=SC2016 # backticks as they stand in the page
sed -n '/^```/,/^```/p' "$TIDE_SOURCE/man/libtidemark.3.scd" | sed '/^```/d; s/\\\\/\\/g' >example.c
if command -v cc >/dev/null; then
    check 'the example of the library compiles' cc -std=gnu11 -Wall -Wextra -Werror -fsyntax-only -I "$TIDE_SOURCE/include" example.c
else
    skip 'the example of the library compiles' 'no cc here'
fi

# What is in the tree for readers is installed.
grep -hoE "^ *'[A-Za-z./_-]+',?$" "$TIDE_SOURCE/meson.build" "$TIDE_SOURCE/examples/meson.build" | grep -oE "[A-Za-z./_-]+'" | tr -d "'" >installed
(cd "$TIDE_SOURCE" && for file in docs/*.* examples/*.*; do grep -qxF "${file#examples/}" "$work/installed" || echo "$file"; done) | grep -vx 'examples/meson.build' >unhelped
check_is 'every document and example is installed' '' "$(cat unhelped)"

# Every kind of event stands in its manual page, beginning a paragraph; the page and its readers know of each other.
sed -n 's/^    {"\([a-z_.]*\)", \(0\|KIND_.*\),.*/\1/p' "$TIDE_SOURCE/src/session/kinds.c" | sort -u >kinds
events=$TIDE_SOURCE/man/tidemark-events.7.scd
check 'the table of kinds has rows' test "$(wc -l <kinds)" -gt 40
while read -r kind; do
    grep '^\*' "$events" | grep -qF "*$kind*" || echo "$kind"
done <kinds >unhelped
check_is 'every kind of event is in its manual page' '' "$(cat unhelped)"
grep '^\*' "$events" | grep -o '\*[a-z_]*\.[a-z_]*\*' | tr -d '*' | grep -vxFf kinds >unknown
check_is 'and none that is not there' '' "$(cat unknown)"
grep -o '{"[a-z_]*", F_[A-Z]*, NEED}' "$TIDE_SOURCE/src/session/kinds.c" | cut -d '"' -f 2 | sort -u | while read -r field; do
    grep -qF "*$field*\\*" "$events" || echo "$field"
done >unhelped
check_is 'what is required is marked' '' "$(cat unhelped)"
for word in seq ts kind tidemark; do grep -qF "*$word*" "$events" || echo "$word"; done >unhelped
check_is 'the reserved words are named' '' "$(cat unhelped)"
check_is 'the pages on the log and on all lead there' 2 "$(grep -lF 'tidemark-events*(7)' "$TIDE_SOURCE"/man/tidemark.1.scd "$TIDE_SOURCE"/man/tidemark-log.1.scd | wc -l)"

refuses 'an unknown command names the nearest' 2 "did you mean 'sessions'?" sesions list
refuses 'an unknown command of a group names the nearest' 2 "did you mean 'sessions list'?" sessions lsit
refuses 'an unknown command that is near nothing' 2 'tidemark help' frobnicate
refuses_as 'an unknown option names the nearest' 2 'INVALID|argument||titel||' sessions new --titel x
refuses_as 'an unknown option that is near nothing' 2 'INVALID|argument||frobnicate||' sessions list --frobnicate
refuses_as 'an unknown letter' 2 'INVALID|argument||x||' sessions list -x
refuses_as 'a missing value' 2 'INVALID|argument||limit||' sessions list --limit
refuses_as 'a flag with a value' 2 'INVALID|argument||json||' sessions list --json=yes
refuses_as 'a missing operand' 2 'INVALID|argument||id||' sessions show
refuses 'an operand too many' 2 "unexpected 'b'" sessions show a b
refuses_as 'a missing required option' 2 'INVALID|argument||to||' sessions rollback a
refuses 'a word that is none of the choices' 2 'is not one of: bash zsh fish' completion tcsh
refuses 'help about an unknown command' 2 'did you mean' help sessions nwe

tidemark --store s.db sessions new --id a >/dev/null
check_is 'options may stand before the command' a "$(tidemark --store s.db sessions list --ids)"
check_is 'options may stand between the words' a "$(tidemark sessions --store=s.db list --ids)"
check_is 'options may stand behind' a "$(tidemark sessions list --ids --store s.db)"
refuses_as 'an option with a value is given once' 2 'INVALID|argument||to||' log show a --to 3 --to 4
refuses_as 'also as --name=VALUE' 2 'INVALID|argument||to||' log show a --to=3 --to=3
refuses_as 'the store as well' 2 'INVALID|argument||store||' --store other.db sessions list --ids --store s.db
check_is 'a flag may be repeated' '{"ids":["a"]}' "$(tidemark --store s.db sessions list --ids --json --ids --json)"
refuses_as 'after -- nothing is an option' 2 'INVALID|argument||id||' --store s.db sessions show -- --json

for shell in bash zsh fish; do
    tidemark completion "$shell" >"completion.$shell"
    check "completion for $shell is printed" test -s "completion.$shell"
    if command -v "$shell" >/dev/null; then
        check "completion for $shell is valid" "$shell" -n "completion.$shell"
    else
        skip "completion for $shell is valid" "no $shell here"
    fi
done

# complete WORDS...: what bash offers for the last of them.
complete_bash() {
    PATH="$(dirname "$TIDE_BIN"):$PATH" TIDEMARK_STORE=s.db bash -c '
        . ./completion.bash
        COMP_WORDS=(tidemark "$@") COMP_CWORD=$#
        _tidemark
        printf "%s\n" "${COMPREPLY[@]}" | sort | tr "\n" " "' bash "$@"
}
check_is 'bash completes commands' 'schema serve sessions set sleep state step store ' "$(complete_bash s)"
check_is 'bash completes commands of a group' 'checkpoint checkpoints ' "$(complete_bash sessions check)"
check_is 'bash completes options' '--store ' "$(complete_bash log show --st)"
check_is 'bash completes values' 'each group ' "$(complete_bash log append a --sync '')"
check_is 'bash completes session ids' 'a ' "$(complete_bash sessions show '')"
check_is 'bash completes the commands of a group for help' 'checkpoint checkpoints ' "$(complete_bash help sessions check)"
check_is 'bash completes the groups for help' 'schema serve sessions set sleep state step store ' "$(complete_bash help s)"
check_is 'bash offers nothing for help of what is no group' ' ' "$(complete_bash help state '')"
check_is 'bash completes sessions for exec --session' 'a ' "$(complete_bash exec --session '')"
check_is 'bash completes keys of the settings' 'max_turns ' "$(complete_bash config set max_tu)"
touch data-file
check_is 'bash completes files behind --data @' '@data-file ' "$(complete_bash log append a --data @data-f)"
check_is 'also where @ is a word of its own, as it is when typed' '@data-file ' "$(complete_bash log append a --data @ data-f)"
check_is 'JSON is not completed' ' ' "$(complete_bash log append a --data data-f)"
check_is 'bash completes values behind =' 'each ' "$(complete_bash log append a --sync = ea)"
check_is 'bash takes the store behind = from the line' 'b ' "$(tidemark --store t.db sessions new --id b >/dev/null; complete_bash --store = t.db sessions show '')"
mkdir plain
check_is 'bash completes the directory of a store of files, where a colon is a word of its own' 'plain ' "$(complete_bash --store files : pl)"
check_is 'also behind =' 'plain ' "$(complete_bash --store = files : pl)"
check_is 'and takes that store from the line' 'c ' "$(tidemark --store files:plain sessions new --id c >/dev/null; complete_bash --store files : plain sessions show '')"
check_is 'bash goes on behind it' 'checkpoint checkpoints ' "$(complete_bash --store sqlite : t.db sessions check)"
check_is 'bash passes over values of options' 'a ' "$(complete_bash --color never sessions show '')"
# ---- one command under two names ----
options_of() {
    tidemark "$@" --help | sed -n '/^usage/d; /^Examples/,$d; p'
}
check_is 'resume and sessions resume are one command' "$(options_of resume)" "$(options_of sessions resume)"
tidemark exec --session for-kinds -- true >/dev/null 2>&1
for option in '--checkpoint x' '--checkpoint x --reuse-effects' '--checkpoint x --redo-effects' '--set a=1' '--graph g.json' '--map a=b' '--fallback' '--parallel 2' '--quiet' '--no-input'; do
    # shellcheck disable=SC2086 # words
    tidemark sessions resume for-kinds $option --json >/dev/null 2>err
    check_is "$option of a program: for which kind it is" '2 INVALID|argument|for-kinds 1' "$? $(error_types <err | cut -d '|' -f 1-3) $(grep -c 'this is for graphs' err)"
done

finish
