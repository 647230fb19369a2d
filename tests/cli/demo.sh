#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo: plain without a terminal, a picture with one; it cleans up after itself, also when it is stopped.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
mkdir tmp
export TMPDIR=$work/tmp

tidemark demo >out 2>err
check_is 'without a terminal it ends well' '0 0' "$? $(wc -c <err)"
check 'it says equal' grep -q '^equal' out
check_is 'five workers were killed' 5 "$(grep -c 'killed with SIGKILL$' out)"
check_is 'in plain text' '' "$(tr -dc '\033\r' <out)"
demo=$(tidemark demo --json)
check_is 'as JSON' '1|5|0' "$(echo "$demo" | json '$.equal')|$(echo "$demo" | json '$.kills')|$(echo "$demo" | json '$.wrong')"
check_is 'found is what was acknowledged' "$(echo "$demo" | json '$.acknowledged')" "$(echo "$demo" | json '$.found')"
check_is 'nothing is left behind' '' "$(ls tmp)"
check 'it touches no store of the person' test ! -e data

if command -v script >/dev/null; then
    TERM=xterm script -qec "$TIDE_BIN demo" /dev/null >out </dev/null
    check_is 'on a terminal it ends well' 0 $?
    check_is 'five crosses are seen' 5 "$(grep -o '✖.*killed' out | wc -l)"
    check 'in colour' grep -q "$(printf '\033\[31m')" out
    check 'and it says equal' grep -q equal out
    # What is drawn over must fit on one line: of a run, nothing is wider than the terminal.
    for columns in 40 24; do
        TERM=xterm script -qec "stty cols $columns; $TIDE_BIN demo" /dev/null >out </dev/null
        check_is "$columns columns: it ends well" 0 $?
        tr '\r' '\n' <out | LC_ALL=C sed 's/\x1b\[[0-9;]*[mK]//g; s/█/x/g; s/·/x/g; s/✖/x/g' | grep '^ run ' |
            awk -v max=$columns 'length($0) > max' >wide
        check_is "$columns columns: no run is wider" '' "$(head -n 3 wide)"
        check_is "$columns columns: all runs are seen" 6 "$(tr '\r' '\n' <out | grep -c ' run .*\(killed\|finished\)')"
    done
else
    skip 'on a terminal' 'no script(1) here'
fi

"$TIDE_BIN" demo >out 2>&1 &
demo=$!
wait_for grep -q 'run 2' out
kill -TERM $demo
wait $demo
check_is 'stopped, it ends as the signal says' 143 $?
check_is 'and leaves nothing behind' '' "$(ls tmp)"
finish
