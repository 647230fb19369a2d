#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Can the simulator find bugs? Each patch in bugs/ plants one into the sources; with it the simulator must fail, for a
# reason of its own and not by crashing. Only what a patch changes is compiled, with the flags of this build, and linked with the rest.
#
#   tests/sim/planted.sh [NAME...]        (all: without names)
#
# A patch begins with a line "run: ARGUMENTS" for the simulator; "with: NAME" says which one, tidemark-sim else. TIDE_SOURCE and TIDE_BUILD say where sources and build are.
set -u
source=${TIDE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
build=$(cd "${TIDE_BUILD:-$source/build}" && pwd)
bugs=$source/tests/sim/bugs
work=$(mktemp -d "${TMPDIR:-/tmp}/tidemark-planted.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The command that compiles one source of the library, for another source and object.
compile() {
    command=$(grep -F "\"command\": " "$build/compile_commands.json" | grep -F -- "/$1\"" | head -n 1 |
        sed -e 's/^ *"command": "//' -e 's/",$//' -e 's/\\"/"/g' -e 's/ -M[DQF]\( [^ ]*\.o[^ ]*\)\{0,1\}//g' \
            -e 's/ -o [^ ]*//' -e 's/ -c [^ ]*$//')
    [ -n "$command" ] || return 1
    (cd "$build" && eval "$command -O1 -w -o '$3' -c '$2'")
}

# The simulator with one bug in it.
plant() {
    dir=$1
    grep '^+++ b/' "$2" | cut -c 7- | while read -r file; do
        mkdir -p "$dir/$(dirname "$file")" && cp "$source/$file" "$dir/$file" || exit 1
    done || return 1
    patch -d "$dir" -p1 --no-backup-if-mismatch <"$2" || return 1
    grep '^+++ b/' "$2" | cut -c 7- | while read -r file; do
        compile "$file" "$dir/$file" "$dir/$(basename "$file" .c).o" || exit 1
    done || return 1
    with=$(sed -n 's/^with: //p' "$2")
    # shellcheck disable=SC2046 # lists of words
    cc -o "$dir/sim" "$dir"/*.o "$build/tests/${with:-tidemark-sim}.p"/*.o "$build/libtidemark.a" "$build/tests/libsim.a" \
        $(pkg-config --libs sqlite3 libsodium libpcre2-8 lua5.4) -lm -ldl -pthread
}

one() {
    patch=$1
    name=$(basename "$patch" .patch)
    dir=$work/$name
    if ! plant "$dir" "$patch" >"$dir.log" 2>&1; then
        echo "not ok - $name (cannot be planted)"
        sed 's/^/# /' "$dir.log"
        return
    fi
    # shellcheck disable=SC2046 # a list of words
    (cd "$work" && timeout 120 "$dir/sim" $(sed -n 's/^run: //p' "$patch")) >"$dir.log" 2>&1
    status=$?
    found=$(grep -m 1 -e 'WRONG' -e 'bug: .* this must hold' "$dir.log" | cut -c 1-150)
    if { [ $status -eq 1 ] || [ $status -eq 134 ]; } && [ -n "$found" ]; then # 134: an invariant found it
        echo "ok - finds_$name ($(grep -c '' "$dir.log") lines;$(sed -n 's/^# again with: tidemark-sim[a-z-]*/ /p; s/^# it failed/ failed/p' "$dir.log" | head -n 1))"
        echo "#   ${found#\# }"
    else
        echo "not ok - finds_$name (exit status $status)"
        tail -n 5 "$dir.log" | sed 's/^/# /'
    fi
    rm -rf "$dir"
}

if [ "${1-}" = --one ]; then
    one "$2"
    exit
fi
if [ $# -eq 0 ]; then
    find "$bugs" -name '*.patch' | sort
else
    printf "$bugs/%s.patch\n" "$@"
fi | TIDE_SOURCE=$source TIDE_BUILD=$build xargs -P 2 -n 1 "$0" --one | tee "$work/all"
! grep -q '^not ok' "$work/all"
