#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every command that the sessions and errors of other tests offer works: each is run in a copy of its store (tests/offers.sh).
#
#   offers.sh [NAME…]    these tests of tests/cli; without names all of them (make offers)
set -u
place=$(mktemp -d "${TMPDIR:-/tmp}/tidemark-offers.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM
if [ $# -eq 0 ]; then
    for file in "$TIDE_SOURCE"/tests/cli/*.sh; do
        name=$(basename "$file" .sh)
        # Not: what is read by others, this one, and what looks at files that an offer that is tried would change or move.
        case $name in lib | offers | *_screen | demo) continue ;; esac
        set -- "$@" "$name"
    done
fi
# helper NAME: the program that the test is given, if it is given one.
helper() {
    # shellcheck disable=SC2016 # as it stands in the file
    sed -n "s:^[a-zA-Z_ ]*=\${1\:?the program \([a-z_]*\)}.*:$TIDE_BUILD/tests/real-\1:p" "$TIDE_SOURCE/tests/cli/$1.sh"
}

failures=0
for name in "$@"; do
    # shellcheck disable=SC2046 # no word, or one
    TIDEMARK_TEST_OFFERS=$place bash "$TIDE_SOURCE/tests/cli/$name.sh" $(helper "$name") >"$place/out" 2>&1
    if grep -q '^ok - every command that is offered works' "$place/out"; then
        echo "ok - $name: $(sed -n 's/^# offers: //p' "$place/out") of offers work"
    else
        echo "not ok - $name: every offer works"
        sed -n '/^not ok - every command/,$p' "$place/out" | sed '1d'
        grep -q '^not ok - every command' "$place/out" || tail -n 20 "$place/out" | sed 's/^/# /'
        failures=$((failures + 1))
    fi
done
[ "$failures" -eq 0 ]
