#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts the independent mock of the model protocols on a free port of the loopback, runs the tests that talk to it, ends it.
#
#     aimock.sh PROGRAM           the built test_aimock
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
program=${1:?the test program}

status=0
mock=$("$root/tools/setup-aimock" "${TIDE_BUILD:-$root/build}/aimock") || status=$?
if [ "$status" -ne 0 ]; then
    [ "$status" -ne 77 ] || echo 'SKIP: the package registry cannot be reached, and the mock was not fetched before'
    exit "$status"
fi

work=$(mktemp -d)
pid=
: >"$work/log"
finish() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
    [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

# Pieces of seven: some cut a character of two UTF-16 units in the middle.
# shellcheck disable=SC2086 # a program and its first argument
AIMOCK_API_KEYS=test-key $mock --port 0 --fixtures "$root/tests/agent/aimock.json" --chunk-size 7 --strict \
    --validate-on-load >"$work/log" 2>&1 </dev/null &
pid=$!

tries=0
while ! grep -q 'listening on' "$work/log"; do
    tries=$((tries + 1))
    if [ $tries -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
        echo 'not ok - the mock starts'
        cat "$work/log"
        exit 1
    fi
    sleep 0.1
done
AIMOCK_URL=$(sed -n 's/.*listening on \(http[^ ]*\).*/\1/p' "$work/log")/v1 "$program"
