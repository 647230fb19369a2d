#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The doctor's findings: one heading for each kind, the first few named, and those that a person accepts forgotten until they
# change.
# shellcheck disable=SC2016 # messages hold backquotes
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
export XDG_STATE_HOME=$work/state TIDEMARK_STORE
TIDEMARK_STORE=$(store_at s)

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# failed ID: a session whose run failed.
failed() {
    tidemark sessions new --id "$1" >/dev/null
    put "$1" run.started "{\"run_id\":\"$1-r1\",\"argv\":[\"true\"],\"cwd\":\"$work\",\"env\":[]}"
    put "$1" run.failed "{\"run_id\":\"$1-r1\",\"error\":{\"code\":\"FAILED\",\"message\":\"no luck\"},\"resumable\":true}"
}

# cut_off ID: a session whose process is gone.
cut_off() {
    tidemark sessions new --id "$1" >/dev/null
    put "$1" run.started "{\"run_id\":\"$1-r1\"}"
}

# of NAME: how many of the findings in JSON are of this check; further arguments go to the doctor.
of() {
    local name=$1
    shift
    tidemark doctor --json "$@" >"$work/.doctor"
    sqlite3 :memory: "SELECT count(*) FROM json_each(CAST(readfile('$work/.doctor') AS TEXT), '\$.checks') WHERE json_extract(value, '\$.name') = '$name' AND json_extract(value, '\$.status') <> 'ok'"
}

# ---- groups ----
failed f1
check 'one finding is one line, as it is' eval "tidemark doctor | grep -q '^warn  sessions   f1: its last run failed at .*: tidemark resume f1$'"
for i in $(seq 2 40); do failed "f$i"; done
for i in $(seq 1 12); do cut_off "c$i"; done
tidemark doctor >out
check 'fifty sessions are a page' [ "$(wc -l <out)" -le 30 ]
check 'a heading says how many there are of a kind' grep -q '^warn  sessions   40 sessions whose last run failed: `tidemark resume ID` continues one$' out
check_is 'the first few of them are named' 3 "$(grep -c '^  *f[0-9]*: its last run failed at .*: tidemark resume f[0-9]*$' out)"
check 'and how to see the rest' grep -q '^  *37 more: `tidemark doctor --all` lists them$' out
check 'each kind has its own heading' grep -q '^warn  recovery   12 sessions that were interrupted: `tidemark recover` records it$' out
check_is 'and its own first few' 3 "$(grep -c '^  *c[0-9]*, interrupted: ' out)"
check_is '--all names all of them' '40 12' "$(tidemark doctor --all | grep -c '^  *f[0-9]*: ') $(tidemark doctor --all | grep -c '^  *c[0-9]*, interrupted: ')"
check_is 'JSON has all of them, with their kind and what they are about' '40 failed f40' "$(of sessions) $(sqlite3 :memory: "SELECT json_extract(value, '\$.kind') || ' ' || json_extract(value, '\$.about') FROM json_each(CAST(readfile('$work/.doctor') AS TEXT), '\$.checks') WHERE json_extract(value, '\$.name') = 'sessions' LIMIT 1")"

# ---- what is forgotten ----
check_is 'nothing is forgotten' '0|' "$(tidemark doctor --json | json '$.forgotten')|$(tidemark doctor | grep forgotten)"
tidemark doctor --forget sessions:f7 >out
check 'forgetting one says so' grep -q '^forgot sessions:f7' out
check_is 'it is not shown any more' '39 0' "$(of sessions) $(tidemark doctor --all | grep -v forgotten | grep -c ' f7: ')"
check 'but that there is one' eval "tidemark doctor | grep -q '^1 forgotten, \`tidemark doctor --all\` shows them$'"
check 'which --all shows' eval "tidemark doctor --all | grep -q ' f7: its last run failed .*(forgotten)$'"
check_is 'in JSON too' '1 1' "$(tidemark doctor --json --all | json '$.forgotten') $(tidemark doctor --json --all | grep -o '"about":"f7","forgotten":true' | wc -l)"
check 'the list is for the user alone' eval "[ \"\$(stat -c %a '$XDG_STATE_HOME/tidemark/doctor-forgotten.jsonl')\" = 600 ]"
tidemark doctor --forget sessions:f7 >out
check_is 'forgetting it again changes nothing' 1 "$(tidemark doctor --json | json '$.forgotten')"

tidemark doctor --forget sessions --forget recovery >out
check 'a whole check: all that it finds now' grep -q '^forgot 40 findings of sessions' out
check_is 'none of them is shown' '0 0' "$(of sessions) $(of recovery)"
check 'a store where everything is accepted is a short page' [ "$(tidemark doctor | wc -l)" -le 20 ]
failed f41
check 'what comes later is shown' eval "tidemark doctor | grep -q '^warn  sessions   f41: '"
put f9 run.started '{"run_id":"f9-r2"}'
put f9 run.failed '{"run_id":"f9-r2","error":{"code":"FAILED","message":"again"},"resumable":true}'
check 'what was forgotten comes back when it changes' eval "tidemark doctor | grep -q ' f9: its last run failed'"
cut_off c13
check_is 'an interruption that was forgotten stays so beside a new one' 'c13' "$(tidemark doctor --json | grep -o '"kind":"interrupted","about":"[^"]*"' | cut -d'"' -f8)"
TIDEMARK_STORE=$(store_at other) tidemark sessions new --id f9 >/dev/null
check_is 'it is of this store alone' 0 "$(TIDEMARK_STORE=$(store_at other) tidemark doctor --json | json '$.forgotten')"
check_is 'also by another name of it' "$(tidemark doctor --json | json '$.forgotten')" "$(TIDEMARK_STORE=$(store_at "$work/./s") tidemark doctor --json | json '$.forgotten')"

tidemark doctor --remember sessions:f7 >out
check 'what was forgotten can be shown again' eval "grep -q '^sessions:f7 is shown again' out && tidemark doctor | grep -q ' f7: '"
tidemark doctor --remember sessions --remember recovery >out
check_is 'a whole check as well' '0 41' "$(tidemark doctor --json | json '$.forgotten') $(of sessions)"

# ---- what cannot be forgotten ----
refuses_as 'what is not found' 3 'NOT_FOUND|argument||forget||repeat' doctor --forget sessions:nobody
refuses_as 'what is in order' 3 'NOT_FOUND|argument||forget||repeat' doctor --forget program
refuses_as 'a check that there is not' 3 'NOT_FOUND|argument||forget||repeat' doctor --forget nonsense
refuses_as 'both at once' 2 'INVALID|argument||forget||' doctor --forget sessions --remember sessions
printf 'this is no list\n' >"$XDG_STATE_HOME/tidemark/doctor-forgotten.jsonl"
check 'a list that cannot be read forgets nothing, and is a finding' eval "tidemark doctor | grep -q '^warn  forgotten .*doctor-forgotten.jsonl'"
rm "$XDG_STATE_HOME/tidemark/doctor-forgotten.jsonl"
printf 'no store' >broken.db
TIDEMARK_STORE=broken.db refuses_as 'a failure of the whole store' 2 'INVALID|argument||forget||repeat' doctor --forget open

# ---- the settings, the files ----
printf '{"nonsense": 1, "more_nonsense": 2}' >config.json
tidemark doctor --config config.json >out
check 'problems of the settings are a group' grep -q '^warn  settings   2 problems in the settings' out
tidemark doctor --config config.json --forget settings >/dev/null
check_is 'and can be forgotten' 0 "$(of settings --config config.json)"
printf '{"nonsense": 1, "others": 2}' >config.json
check_is 'but not those that come later' 1 "$(of settings --config config.json)"
finish
