# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# What every shell test begins with:  . "$TIDE_SOURCE/tests/lib.sh"
#
# Each case prints "ok - name" or "not ok - name"; the script ends with `finish`. The test has an empty directory of its
# own ($work, removed at the end) as its home, so that nothing of the person's data is read or touched.
# TIDEMARK_TEST_STORE names the kind of store: sqlite, or files. What is about SQLite itself skips the rest with its reason.

work=$(mktemp -d "${TMPDIR:-/tmp}/tidemark-test.XXXXXX")
# A process that was told to end may still be writing.
remove_work() {
    for _ in $(seq 100); do
        rm -rf "$work" 2>/dev/null && return
        sleep 0.05
    done
    rm -rf "$work"
}
trap remove_work EXIT
trap 'exit 130' INT TERM
export TZ=UTC HOME="$work" XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache" XDG_STATE_HOME="$work/state"
store_kind=${TIDEMARK_TEST_STORE:-sqlite}
all_refusals=${TIDEMARK_TEST_REFUSALS:-}
test_offers=${TIDEMARK_TEST_OFFERS:-}
[ "$all_refusals" != all ] || exec 3>&2
for name in $(env | sed -n 's/^\(TIDEMARK_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
cd "$work" || exit 1
failures=0

# A command that is refused changes nothing. Every `refuses`, and every `check_status` with such a status, looks at all stores of
# the test before and after: each file has the bytes that it had; none is gone; none has come but -shm, -wal and -reserve of
# a store that was there. With TIDEMARK_TEST_REFUSALS=all every call of `tidemark` is looked at; what others do at the same
# time shows then, too. Left out: what processes tell each other (-shm, -queue, live/, boots/, changes) and caches; trouble of the
# disk (6), where what was stored before it stays; runs that end badly (1, 7, and by `fails` and `check_end`).
store_files() {
    find . -type f \( -name '*.db' -o -name '*.db-*' -o -path '*.files/*' -o -path './data/tidemark/*' \) ! -name '*-shm' ! -name '*-queue' \
        ! -path '*/live/*' ! -path '*/boots/*' ! -path '*/cache/*' ! -name changes \
        -exec cksum {} + 2>/dev/null | sort -k 3
}

# changed FILE: what is not as FILE says, one line each. A mark lags behind when a writer was killed right after its commit, and so
# does a session's own file (sessions/ID.json): the next one to open the store brings it up to date.
changed() {
    store_files | awk -v before="$1" '
        function lags(path) { return path ~ /\/sessions\/[^\/]*\.json$/ }
        function same_size(a, b) { sub(/.* /, "", a); sub(/.* /, "", b); return a == b }
        BEGIN { while ((getline line <before) > 0) { split(line, f, " "); was[f[3]] = f[1] " " f[2] } }
        { is[$3] = $1 " " $2 }
        END {
            for (path in was)
                if (!(path in is)) print "gone: " path
                else if (lags(path)) continue
                else if (path ~ /[-.]mark$/ && same_size(was[path], is[path])) continue
                else if (was[path] != is[path]) print "changed: " path " (" was[path] " -> " is[path] ")"
            for (path in is) {
                of = path
                if (!(path in was) && !lags(path) && !(sub(/-(wal|reserve)$/, "", of) && of in was)) print "new: " path
            }
        }'
}

is_refusal() {
    case $1 in 2 | 3 | 4 | 5 | 8 | 9 | 10 | 11) true ;; *) false ;; esac
}

# check_unchanged NAME: since `store_files >.before`.
check_unchanged() {
    (cd "$work" && changed .before >.changed)
    if [ -s "$work/.changed" ]; then
        echo "not ok - $1: it was refused, and changed something"
        sed 's/^/# /' "$work/.changed"
        failures=$((failures + 1))
    fi
}

tidemark() {
    if [ "$all_refusals" != all ]; then
        "$TIDE_BIN" "$@"
        return
    fi
    (cd "$work" && store_files) >"$work/.before.$$"
    "$TIDE_BIN" "$@"
    set -- $? "$*"
    if is_refusal "$1" && (cd "$work" && changed ".before.$$" | grep .) >"$work/.changed.$$"; then
        echo "# REFUSED ($1) AND CHANGED: $2" >&3
        sed 's/^/#   /' "$work/.changed.$$" >&3
    fi
    return "$1"
}

on_files() {
    [ "$store_kind" = files ]
}

# store_at PATH: the store of this name, as --store and TIDEMARK_STORE take it.
store_at() {
    if on_files; then echo "files:$1.files"; else echo "$1.db"; fi
}

# default_store: none is named; one that is not of SQLite has to be.
default_store() {
    unset TIDEMARK_STORE
    if on_files; then export TIDEMARK_STORE="files:$work/data/tidemark/files"; fi
}
default_store

# check NAME COMMAND...: the command succeeds. Its output is shown only when it does not.
check() {
    name=$1
    shift
    "$@" >"$work/.out" 2>&1 && got=0 || got=$?
    if [ "$got" -eq 0 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name"
        echo "# exit status $got of: $*"
        sed 's/^/# /' "$work/.out"
        failures=$((failures + 1))
    fi
}

# check_is NAME WANT GOT: two texts are the same.
check_is() {
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf 'want: %s\ngot:  %s\n' "$2" "$3" | sed 's/^/# /'
        failures=$((failures + 1))
    fi
}

# check_status NAME STATUS COMMAND...: the command ends with this exit status.
check_status() {
    name=$1
    want=$2
    shift 2
    is_refusal "$want" && (cd "$work" && store_files >.before)
    "$@" >"$work/.out" 2>&1 && got=0 || got=$?
    if [ "${look:-}" != none ] && is_refusal "$want"; then check_unchanged "$name"; fi
    check_is "$name" "exit status $want" "exit status $got"
    [ "$want" -eq "$got" ] || sed 's/^/# /' "$work/.out"
}

# check_end NAME STATUS COMMAND...: the same, of something that runs: its end is in the log.
check_end() {
    look=none
    check_status "$@"
    look=
}

skip() {
    echo "ok - $1 # SKIP $2"
}

# With TIDEMARK_TEST_OFFERS=DIRECTORY every command that the test's sessions and errors offer is tried at its end.
if [ -n "$test_offers" ]; then
    TIDEMARK_TEST_OFFERS=$test_offers
    # shellcheck source=tests/offers.sh
    . "$TIDE_SOURCE/tests/offers.sh"
    unset TIDEMARK_TEST_OFFERS
fi

finish() {
    [ -z "$test_offers" ] || offers_try_all
    [ "$failures" -eq 0 ]
    exit
}
