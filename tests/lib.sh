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
export HOME="$work" XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_CACHE_HOME="$work/cache" XDG_STATE_HOME="$work/state"
store_kind=${TIDEMARK_TEST_STORE:-sqlite}
for name in $(env | sed -n 's/^\(TIDEMARK_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
cd "$work" || exit 1
failures=0

tidemark() {
    "$TIDE_BIN" "$@"
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
    "$@" >"$work/.out" 2>&1 && got=0 || got=$?
    check_is "$name" "exit status $want" "exit status $got"
    [ "$want" -eq "$got" ] || sed 's/^/# /' "$work/.out"
}

skip() {
    echo "ok - $1 # SKIP $2"
}

finish() {
    [ "$failures" -eq 0 ]
    exit
}
