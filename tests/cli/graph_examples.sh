#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The graphs of examples/graphs, offline, as their README says; the graphs that docs/GRAPHS.md shows; the demo that plays them.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
cp -R "$TIDE_SOURCE/examples/graphs" graphs
cd graphs || exit 1
export SEARCH_LOG=$work/searches MEASURE_LOG=$work/measured OUTBOX=$work/outbox

for graph in approval files improve research review; do
    check "$graph is right" tidemark graph check $graph.json
done

# ---- research: a failure that is mended
check_status 'a wrong key fails the search' 1 tidemark run research.json --session rivers --script research.script.json \
    --set api_key=wrong-key-1
check_is 'all three were tried' 3 "$(wc -l <"$SEARCH_LOG")"
check_is 'it is listed as failed' rivers "$(tidemark sessions list --agent research --status failed --json | json '$.sessions[0].session_id')"
check 'it has checkpoints' test "$(tidemark sessions checkpoints rivers --ids | wc -l)" -ge 3
check_status 'without the key it is refused' 2 tidemark sessions resume rivers --script research.script.json
check_is 'and nothing ran' 3 "$(wc -l <"$SEARCH_LOG")"
SEARCH_KEY=open-sesame tidemark sessions resume rivers --script research.script.json --set "api_key=\$SEARCH_KEY" >out 2>err
check_is 'with the right one it ends well' 0 $?
check 'with a report' grep -q '^report: .*James Thomson' out
check_is 'only the search that failed ran again' 'archive: who saw it first?' "$(tail -n +4 "$SEARCH_LOG")"
check_is 'the plan was not asked for again' 0 "$(grep -c '^plan: starts' err)"
check_is 'neither key is stored' '' "$(grep -rlaE 'wrong-key-1|open-sesame' "$work/data")"

# ---- review: fan-out and fan-in
check_is 'branches merge what they note, and the verdict waits for all' \
    'notes: ["length: right","shape: right","spelling: teh"]
verdict: 1 to mend' "$(tidemark run review.json -q)"
check_is 'another file, another verdict' 'verdict: 1 to mend' "$(tidemark run review.json -q --set file=texts/lake.txt | tail -n 1)"

# ---- approval: a person is waited for
check_status 'it is parked' 7 tidemark run approval.json --session letter --script approval.script.json
check 'nothing was sent' test ! -e "$OUTBOX"
check_is 'approved, it is sent' 'sent: 4096' "$(tidemark sessions resume letter --script approval.script.json --input yes 2>err)"
check_is 'once' 1 "$(wc -l <"$OUTBOX")"
check_status 'it is parked again' 7 tidemark run approval.json --session other --script approval.script.json
check_is 'refused, it is not' 'sent: 0' "$(tidemark sessions resume other --script approval.script.json --input no 2>err)"
check_is 'nothing more was sent' 1 "$(wc -l <"$OUTBOX")"

# ---- improve: a loop with an end
check_is 'the third draft is good enough' 'result: After a crash the log is what is left, and all state is computed from it.' \
    "$(tidemark run improve.json --session improve --script improve.script.json -q 2>err)"
check_is 'after three visits' 3 "$(tidemark log show improve | grep -c '"kind":"node.completed","node":"draft"')"
echo '{"nodes": {"draft": [{"calls": [{"name": "set_output", "args": {"key": "text", "value": "no"}}]}]}}' >bad.script.json
check_is 'one that is never good enough ends after four' 'result: no draft was good enough: 0' \
    "$(tidemark run improve.json --script bad.script.json -q 2>err)"

# ---- files: one program for each
rm "$MEASURE_LOG"
check_is 'the words of all files' 'total: 68
longest: texts/river.txt' "$(tidemark run files.json -q)"
check_is 'each was measured once' 4 "$(grep -c '^texts/' "$MEASURE_LOG")"

# ---- what is shown elsewhere
awk '/^```json$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print >("doc." n ".json") }' "$TIDE_SOURCE/docs/GRAPHS.md"
whole=0
for file in doc.*.json; do
    if grep -q '"tidemark_graph"' "$file"; then
        whole=$((whole + 1))
        check "the graph in docs/GRAPHS.md, $file" tidemark graph check "$file"
    else
        check "the piece in docs/GRAPHS.md, $file" test "$(sqlite3 :memory: "SELECT json_valid(CAST(readfile('$file') AS TEXT))")" = 1
    fi
done
check 'there is a whole graph in docs/GRAPHS.md' test $whole -ge 1
demo=$(TIDEMARK=$TIDE_BIN "$TIDE_BUILD/examples/tidemark-demo" --graph --json)
check_is 'the demo plays all of them' '1|5' "$(echo "$demo" | json '$.right')|$(echo "$demo" | json '$.played')"
finish
