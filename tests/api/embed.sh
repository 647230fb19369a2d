#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example that readers start from runs, and says what it should; a C++ program links and runs as well.
set -u
. "$TIDE_SOURCE/tests/lib.sh"
embed=$TIDE_BUILD/examples/example-embed

check_status "the example ends well" 0 "$embed" store.db
cp .out out
cat >want <<'WANT'
messages:
  2 message.user {"turn":1,"content":"what is 1 squared?"}
  3 message.assistant {"turn":1,"content":"1"}
  7 message.user {"turn":2,"content":"what is 2 squared?"}
  8 message.assistant {"turn":2,"content":"4"}
  12 message.user {"turn":3,"content":"what is 3 squared?"}
  13 message.assistant {"turn":3,"content":"9"}
checkpoint at 16: turn, clean
after rolling back to 6:
  2 message.user {"turn":1,"content":"what is 1 squared?"}
  3 message.assistant {"turn":1,"content":"1"}
spent: 45 tokens in 3 calls
memory is back: last is 9
WANT
check "the example says what it should" diff want out
check "the example runs again on the same store" "$embed" store.db

durable=$TIDE_BUILD/examples/example-durable
"$durable" d.db >out
check_is "the durable example waits" 7 $?
token=$(sed -n 's/^waiting for approval: //p' out)
check_is "after two steps" 2 "$(grep -c '^  doing' out)"
check_status "without an answer it stays where it is" 7 "$durable" d.db
"$durable" d.db "$token" yes >out
check_is "answered, it ends well" 0 $?
check_is "and does only what was not done" "  doing: ship" "$(grep '^  doing' out)"
check_status "the token works once" 8 "$durable" d.db "$token" yes
"$durable" d.db >out
check_is "and what is done is left alone" "0 " "$? $(cat out)"

agent=$TIDE_BUILD/examples/example-agent
check_status "the agent of the example answers" 0 "$agent" a.db "$TIDE_SOURCE/examples/agent.json" "book me a seat"
cp .out out
cat >want <<'WANT'
I book a seat.
  book {"seat":"1A"}: denied by hook 'guard': row 1 is too expensive
Then another one.
  book {"seat":"12C"}: booked
Seat 12C is yours.
WANT
check "its hook denies, its tool books, the model hears of both" diff want out
check_is "what its tool did" '{"seat":"12C"}' "$(cat a.db.bookings)"
check_status "without a prompt nothing is left to do" 3 "$agent" a.db "$TIDE_SOURCE/examples/agent.json"
sed 's/{"text": "Seat/{"delay_ms": 600000, "text": "Seat/' "$TIDE_SOURCE/examples/agent.json" >slow.json
"$agent" k.db slow.json "book me a seat" >killed 2>&1 &
pid=$!
end=$((SECONDS + 30))
# What it shows is a preview: the result goes to disk while the model answers, and a kill before that makes it unknown.
until "$TIDE_BIN" --store k.db log show travel 2>/dev/null | grep -q 'tool.completed' || [ $SECONDS -ge $end ]; do :; done
kill -KILL $pid
wait $pid 2>/dev/null
"$agent" k.db "$TIDE_SOURCE/examples/agent.json" >out
check_is "killed after it booked, it goes on" 0 $?
check_is "and says only what was not said" "Seat 12C is yours." "$(cat out)"
check_is "one seat is booked" 1 "$(wc -l <k.db.bookings)"

graph=$TIDE_BUILD/examples/example-graph
"$graph" g.db >out 2>err
check_is "the graph of the example fails where a key is missing" 1 $?
check "and says which" grep -q "needs 'rate'" err
"$graph" g.db '{"rate": 80}' >out
check_is "given it, it goes on" 0 $?
cat >want <<'WANT'
price starts
price is complete
  checkpoint: edge_transition
  checkpoint: node_complete
bill starts
bill is complete
  checkpoint: node_complete
memory: {"hours":12,"rate":80,"total":960}
WANT
check "at the node that failed, with checkpoints as it has configured them" diff want out
check_status "then nothing is left to run" 2 "$graph" g.db
check_is "and one bill is sent" '{"total":960}' "$(cat g.db.bills)"

cat >use.cpp <<'CPP'
#include <tidemark.h>
#include <cstdio>
int main(int, char **argv)
{
    tide_store *store = nullptr;
    tide_session *session = nullptr;
    tide_err err{};
    tide_store_options options{};
    options.size = sizeof options;
    options.flags = TIDE_OPEN_CREATE;
    if (tide_store_open(argv[1], &options, &store, &err) || tide_session_create(store, "cpp", nullptr, &session, &err))
        return std::puts(err.msg), 1;
    tide_new_event event{"message.user", "{\"content\":\"from C++\"}", 0};
    int64_t seq = 0;
    if (tide_session_append(session, 0, &event, 1, &seq, &err))
        return std::puts(err.msg), 1;
    std::printf("seq %lld\n", static_cast<long long>(seq));
    tide_session_close(session);
    tide_store_close(store);
    return 0;
}
CPP
check "a C++ program compiles and links" c++ -std=c++17 -Wall -Wextra -Werror -I"$TIDE_SOURCE/include" use.cpp \
    -L"$TIDE_BUILD" -ltidemark -Wl,-rpath,"$TIDE_BUILD" -o use
check "and appends" test "$(./use cpp.db)" = "seq 2"
finish
