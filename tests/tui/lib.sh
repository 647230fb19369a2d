# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # what is waited for is evaluated each time
# What the tests of the full screen share: it runs in a terminal of tmux, and every look waits for what is to be seen.

# open_tui COLUMNS ROWS [NAME=VALUE]... -- ARGS...: in a new terminal; the exit status is in the file ended.
open_tui() {
    local columns=$1 rows=$2 vars=()
    shift 2
    while [ "$1" != -- ]; do
        vars+=("$1")
        shift
    done
    shift
    close_screen
    rm -f ended
    wait_for terminal new-session -d -x "$columns" -y "$rows" \
        "env $(printf '%q ' "${vars[@]}" "$TIDE_BIN" tui "$@"); echo \$? >ended; echo ENDED; read -r _"
    terminal set-option -g escape-time 0
}
keys() {
    terminal send-keys "$@"
}
type_text() {
    terminal send-keys -l -- "$1"
}
shows_not() {
    if wait_for eval '! is_shown "$2"'; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "# not wanted on the screen: $2"
        screen | sed 's/^/# /' | grep -v '^# *$'
        failures=$((failures + 1))
    fi
}
has_ended() {
    [ -s ended ]
}
# Each line of the screen fits, and no byte acts on the terminal.
is_clean() {
    ! screen | LC_ALL=C grep -q "[$(printf '\001-\010\013-\037')]"
}
is_ascii() {
    ! screen | LC_ALL=C grep -q "[$(printf '\200-\377')]"
}

# ---- sessions that there is something to do about ----

make_deploy() {
    write_script deploy.sh <<'END'
tidemark step build --effect pure -- true
tidemark wait release --kind approval --question 'Release it to everyone?' >/dev/null
tidemark step publish --effect once -- sh -c 'echo published >>ledger'
END
    tidemark exec --session "${1:-deploy}" --title "${2:-Release 2.4}" -- ./deploy.sh >/dev/null 2>&1 || true
}

# Cut while a step waits for the file go.
make_cut() {
    write_script cut.sh <<'END'
tidemark step first --effect pure -- true
tidemark step slow --effect idempotent -- sh -c 'until [ -e go ]; do :; done'
END
    "$TIDE_BIN" exec --session cut --title 'An import' -- ./cut.sh >/dev/null 2>&1 &
    local pid=$!
    wait_for eval 'tidemark log show cut --kind tool.started | grep -q slow'
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    wait_for eval '[ "$(status_of cut)" = interrupted_startup ]'
}
