#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo: plain without a terminal, in colour with one; the world is as promised; it cleans up after itself, also when
# it is stopped.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
mkdir tmp
export TMPDIR=$work/tmp TIDEMARK=$TIDE_BIN

"$TIDE_BUILD/examples/tidemark-demo" >out 2>err
check_is 'without a terminal it ends well' '0 0' "$? $(wc -c <err)"
check 'it shows the program' grep -q 'tidemark step migrate .*--effect once' out
check 'the supervisor is killed' grep -q '✗ kill -9' out
check 'why it does not move is said' grep -q 'interrupted (' out
check 'it waits for approval' grep -q 'Release it to everyone?' out
check 'the timeline is drawn' grep -q 'not rerun' out
check 'what must happen once happened once' grep -q 'Nothing was lost' out
check_is 'in plain text' '' "$(tr -dc '\033\r' <out)"
demo=$("$TIDE_BUILD/examples/tidemark-demo" --json)
check_is 'as JSON' '1|1|1' "$(echo "$demo" | json '$.right')|$(echo "$demo" | json '$.happened.migrate')|$(echo "$demo" | json '$.happened.announce')"
check 'it was killed before and after the approval' test "$(echo "$demo" | json '$.kills')" -ge 2
check_is 'nothing is left behind' '' "$(ls tmp)"
check 'it touches no store of the person' test ! -e data

if command -v script >/dev/null; then
    mkfifo keys
    # With the console of the tests, whatever this build has.
    TIDEMARK=$TIDE_BUILD/tests/tidemark-console TERM=xterm script -qec "stty cols 80; $TIDE_BUILD/examples/tidemark-demo" /dev/null >out <keys &
    demo=$!
    exec 3>keys
    wait_for grep -qs 'Enter alone' out
    echo >&3
    wait_for grep -qs 'Enter stops' out
    tr -d '\r' <out | sed -n 's/^    \(curl .*\)/\1/p' >lines
    check_is 'it offers two lines' 2 "$(wc -l <lines | tr -d ' ')"
    check_is 'the first shows what there is' 'deploy|completed' \
        "$(eval "$(sed -n 1p lines)" 2>/dev/null | json '$.sessions[0].session_id')|$(eval "$(sed -n 1p lines)" 2>/dev/null | json '$.sessions[0].outcome')"
    eval "timeout 20 $(sed -n 2p lines)" 2>/dev/null | head -n 2 >followed
    check_is 'the second follows everything from the beginning' 'id: 1|1' "$(head -n 1 followed)|$(grep -c '"session.created"' followed)"
    page=$(tr -d '\r' <out | sed -n 's/^    \(http:.*\)#code=.*/\1/p')
    check_is 'it offers the console' 1 "$(curl -s "$page" | grep -c '<title>')"
    check_is 'whose code signs in' 201 "$(tr -d '\r' <out | sed -n 's/^    http:.*#code=\(.*\)/{"code":"\1"}/p' |
        curl -s -o signed_in -w '%{http_code}' -H 'Content-Type: application/json' -d @- "${page}api/v1/signin")"
    check 'the server of this person is left alone' test ! -e state/tidemark/server.token
    echo >&3
    wait $demo
    check_is 'on a terminal it ends well' 0 $?
    exec 3>&-
    check_is 'and the server with it' '' "$(ls tmp)"
    check 'in colour' grep -q "$(printf '\033\[31m')" out
    check 'and nothing was lost' grep -q 'Nothing was lost' out
    tr -d '\r' <out | sed 's/\x1b\[[0-9;]*m//g' | grep -v 'rt_\|^    curl ' >plain
    check 'no line is longer than the terminal' test "$(LC_ALL=C.UTF-8 wc -L <plain)" -le 80
    check 'the timeline keeps its shape' grep -q '^ ● run 1 ' plain
else
    skip 'on a terminal' 'no script(1) here'
fi

chat=$("$TIDE_BUILD/examples/tidemark-demo" --chat --json)
check_is 'an agent that is killed: nothing happens twice' 1 "$(echo "$chat" | json '$.right')"
check 'nor what must happen once' test "$(echo "$chat" | json '$.happened.tagged')" -le 1
check 'and it was killed' test "$(echo "$chat" | json '$.kills')" -ge 1

"$TIDE_BUILD/examples/tidemark-demo" >stopped 2>&1 &
demo=$!
wait_for grep -qs 'kill -9' stopped
kill -TERM $demo
wait $demo
check_is 'stopped, it ends as the signal says' 143 $?
check_is 'and leaves nothing behind' '' "$(ls tmp)"
TIDEMARK=./none "$TIDE_BUILD/examples/tidemark-demo" 2>err
check_is 'without a tidemark it says so' "1 tidemark-demo: find './none', which TIDEMARK names: No such file or directory" "$? $(cat err)"
finish
