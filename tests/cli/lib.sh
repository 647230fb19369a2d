# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the command line share beyond tests/lib.sh.

# shellcheck source=tests/lib.sh
. "$TIDE_SOURCE/tests/lib.sh"

# refuses NAME STATUS TEXT ARGS...: tidemark ends with this status, one line on standard error that begins with
# "tidemark: " and holds TEXT, and nothing on standard output. Standard input is what the caller gives.
refuses() {
    local name=$1 want=$2 text=$3 got
    shift 3
    is_refusal "$want" && (cd "$work" && store_files >.before)
    tidemark "$@" >"$work/.out" 2>"$work/.err" && got=0 || got=$?
    if [ "$got" -eq "$want" ] && [ "$(wc -l <"$work/.err")" -eq 1 ] && [ ! -s "$work/.out" ] &&
        grep -q '^tidemark: \|^{"error":' "$work/.err" && grep -qF -- "$text" "$work/.err"; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        echo "# want status $want and one line with '$text'; got status $got, and:"
        sed 's/^/# out: /' "$work/.out" | head -n 5 | cut -c1-300
        sed 's/^/# err: /' "$work/.err" | head -n 5 | cut -c1-300
        failures=$((failures + 1))
    fi
    if [ "${look:-}" != none ] && is_refusal "$want"; then check_unchanged "$name"; fi
}

# fails NAME STATUS TEXT ARGS...: as refuses, but something ran, and its end is in the log.
fails() {
    local look=none
    refuses "$@"
}

# error_types: of the error (--json) in the last line of standard input: code|subject|session|name|position|actions.
error_types() {
    tail -n 1 >"$work/.json"
    sqlite3 :memory: "WITH e(j) AS (SELECT CAST(readfile('$work/.json') AS TEXT))
        SELECT json_extract(j, '\$.error'), json_extract(j, '\$.detail.subject'), json_extract(j, '\$.detail.session_id'),
            json_extract(j, '\$.detail.name'), json_extract(j, '\$.detail.position'),
            (SELECT group_concat(json_extract(value, '\$.action')) FROM json_each(j, '\$.hints')) FROM e"
}

# refuses_as NAME STATUS TYPES ARGS...: as refuses, by what programs read: the error's types fit the pattern TYPES.
refuses_as() {
    local name=$1 want=$2 types=$3 got is
    shift 3
    is_refusal "$want" && (cd "$work" && store_files >.before)
    tidemark --json "$@" >"$work/.out" 2>"$work/.err" && got=0 || got=$?
    is=$(error_types <"$work/.err" 2>&1)
    # shellcheck disable=SC2254 # a pattern
    case "$got $(wc -l <"$work/.err") $(wc -c <"$work/.out") $is" in
    "$want 1 0 "$types) echo "ok - $name" ;;
    *)
        echo "not ok - $name"
        echo "# want status $want and '$types'; got status $got and '$is'"
        sed 's/^/# err: /' "$work/.err" | head -n 5 | cut -c1-300
        failures=$((failures + 1))
        ;;
    esac
    if [ "${look:-}" != none ] && is_refusal "$want"; then check_unchanged "$name"; fi
}

fails_as() {
    local look=none
    refuses_as "$@"
}

# json PATH: the member of the JSON document on standard input; true and false are 1 and 0, null is empty.
json() {
    cat >"$work/.json"
    sqlite3 :memory: "SELECT json_extract(CAST(readfile('$work/.json') AS TEXT), '$1')"
}

# is_json: standard input is one line with one JSON document.
is_json() {
    cat >"$work/.json"
    [ "$(wc -l <"$work/.json")" -eq 1 ] &&
        [ "$(sqlite3 :memory: "SELECT json_valid(CAST(readfile('$work/.json') AS TEXT))")" = 1 ]
}

# write_script NAME: a program of this name from standard input.
write_script() {
    { echo '#!/bin/bash'; cat; } >"$1"
    chmod +x "$1"
}

# ---- what a session says of itself ----

status_of() {
    tidemark sessions show "$1" --json | json '$.status'
}
# count ID KIND: events of this kind.
count() {
    tidemark log show "$1" --kind "$2" | wc -l
}
# field ID KIND PATH: of the last event of this kind.
field() {
    tidemark log show "$1" --kind "$2" | tail -n 1 | json "$3"
}
# ran NAME: so often did this step really happen, by the ledger that its program keeps.
ran() {
    grep -cx "$1" ledger || true
}

# view_is NAME WANT SQL: what the views of s.db say, in one line.
view_is() {
    if on_files; then
        skip "$1" 'views are SQL'
    else
        check_is "$1" "$2" "$(sqlite3 -readonly s.db "$3" | paste -sd ' ')"
    fi
}

# damage SESSION SEQ: behind the back of the default store, this event was made at another time than it was.
damage() {
    local log="data/tidemark/files/sessions/$1.messages.jsonl"
    if on_files; then
        sed "/^{\"seq\":$2,/ { s/0Z\"/1Z\"/; t; s/[1-9]Z\"/0Z\"/ }" "$log" >.damaged
        cat .damaged >"$log"
    else
        sqlite3 data/tidemark/tidemark.db "UPDATE events SET ts = ts + 1 WHERE seq = $2 AND sid = (SELECT sid FROM sessions WHERE id = '$1')"
    fi
}

# lists_agree CASE: of every session that can be read the list offers what why offers.
lists_agree() {
    tidemark sessions list --json >.list
    sqlite3 :memory: "SELECT json_extract(value, '\$.session_id') || ' ' || json_extract(value, '\$.next') FROM json_each(CAST(readfile('.list') AS TEXT), '\$.sessions')" >.next
    while read -r id listed; do
        tidemark why "$id" --json >.why 2>/dev/null || continue
        echo "$id" >&3
        [ "$listed" = "$(json '$.next' <.why)" ] || echo "$id: listed $listed, why: $(json '$.next' <.why)"
    done <.next >.differ 3>.compared
    check "$1" test -s .compared
    check_is "$1: the same" '' "$(cat .differ)"
}

# holds TEXT: standard input holds it.
holds() {
    grep -qF -- "$1"
}

# wait_for COMMAND...: until it succeeds, at most half a minute.
wait_for() {
    local end=$((SECONDS + 30))
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || return 1
    done
}

# gone PID: it does not run any more; a zombie does not. Looked at once: it may end between two looks.
gone() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
    [[ $stat == *') Z '* ]]
}

# has_lines FILE N: more than N lines.
has_lines() {
    [ "$(wc -l <"$1")" -gt "$2" ]
}

# repeat N TEXT
repeat() {
    printf "%0$1d" 0 | sed "s/0/$2/g"
}

# ---- a terminal for what is drawn: one of tmux ----

# begin_screen WHAT: skips the test where there is no tmux.
begin_screen() {
    unset TMUX
    export TERM=xterm LC_ALL=C.UTF-8
    if ! command -v tmux >/dev/null; then
        skip "$1" 'no tmux here'
        finish
    fi
    trap 'terminal kill-server 2>/dev/null; remove_work' EXIT
}
terminal() {
    tmux -S "$work/terminal" -f /dev/null "$@"
}
close_screen() {
    terminal kill-server 2>/dev/null
    wait_for eval '! terminal has-session'
}
screen() {
    terminal capture-pane -p
}
is_shown() {
    screen | grep -q -- "$1"
}
# shows NAME PATTERN: it comes to stand on the screen.
shows() {
    if wait_for is_shown "$2"; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        echo "# want on the screen: $2"
        screen | sed 's/^/# /' | grep -v '^# *$'
        failures=$((failures + 1))
    fi
}

# forged FILE LINES...: an export of these events (kind, then body) with digests that are right.
forged() {
    python3 - "$@" <<'END'
import hashlib, json, struct, sys
name, rest = sys.argv[1], sys.argv[2:]
text = lambda b: struct.pack("<q", len(b)) + b
before, lines = bytes(32), []
for i in range(0, len(rest), 2):
    seq, kind, body = i // 2 + 1, rest[i], json.dumps(json.loads(rest[i + 1]), separators=(",", ":"))
    ms = 1700000000000 + seq
    before = hashlib.blake2b(before + text(name.encode()) + struct.pack("<qqq", seq, 1, ms) + text(kind.encode()) + text(body.encode()), digest_size=32).digest()
    inner = "," + body[1:-1] if len(body) > 2 else ""
    lines.append('{"seq":%d,"ts":"2023-11-14T22:13:20.%03dZ","kind":"%s"%s,"tidemark":{"epoch":1,"digest":"%s"}}' % (seq, seq, kind, inner, before.hex()))
print('{"tidemark":"export","version":1,"session_id":"%s","first_seq":1,"last_seq":%d,"keyed":false,"head_digest":"%s"}' % (name, len(lines), before.hex()))
print("\n".join(lines))
END
}
