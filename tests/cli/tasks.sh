#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tidemark tasks: what sessions of a task are together, and what a person says of it.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
PATH=$(dirname "$TIDE_BIN"):$PATH

# of TASK FIELD...: what is shown of it, with bars between.
of() {
    local task=$1 field
    shift
    tidemark tasks show "$task" --json >.task
    for field; do json "\$.$field" <.task; done | paste -sd '|'
}

check_is 'no tasks' '{"tasks":[]}' "$(tidemark sessions new --id other >/dev/null; tidemark tasks list --json)"

refuses_as 'a task that nothing is of' 3 'NOT_FOUND|argument||task||' tasks show build
tidemark sessions new --id one --task-id build >/dev/null
tidemark exec --session one -- true
tidemark sessions new --id two --task-id build >/dev/null
check_is 'its state is that of the session that changed last' IDLE "$(of build state)"
tidemark exec --session one -- true 2>/dev/null
check_is 'of the other one when that changes' COMPLETED "$(of build state)"
tidemark exec --session two -- tidemark wait go --kind approval --question 'go?' 2>/dev/null
check_is 'one that waits weighs more' 'WAITING_FOR_INPUT|2|1' "$(of build state sessions waiting)"

check 'a person sets a state and a title' tidemark tasks set build --state REVIEW --title 'the build'
check_is 'which counts' 'REVIEW|the build|WAITING_FOR_INPUT|1' \
    "$(of build state title derived_state is_set)"
check_is 'its session is none of its sessions' 2 "$(of build sessions)"
check_is 'it is of its own kind' "$(of build session_id)" "$(tidemark sessions list --kind task --ids)"
tidemark tasks show build >.shown
check 'people see both states' grep -q 'REVIEW, as a person set it; from its sessions: WAITING_FOR_INPUT' .shown
check 'and when it changed' eval "! grep -q 'ago ago' .shown && grep -q '^changed' .shown"
check 'and the sessions' eval "grep -q '  one  ' .shown && grep -q '  two  ' .shown"
check_is 'lists are by state' build "$(tidemark tasks list --state REVIEW --ids)"
check_is 'and nothing else' '' "$(tidemark tasks list --state TODO --ids)"
check 'a table' eval "tidemark tasks list | grep -q '^build  *REVIEW  *the build  *2 '"
tidemark tasks set build --state '' >/dev/null
check_is 'an empty state is taken back, the title stays' 'WAITING_FOR_INPUT|the build|0' \
    "$(of build state title is_set)"

tidemark tasks set 'a task/of any name' --state TODO >/dev/null
check_is 'a task may be there before its sessions' 'TODO|0' "$(of 'a task/of any name' state sessions)"
check_is 'the one that changed last is first' 'a task/of any name' "$(tidemark tasks list --ids --limit 1)"
refuses_as 'a state in small letters' 2 'INVALID|argument||state||' tasks set build --state review
refuses_as 'nothing to be set' 2 'INVALID|argument||state||' tasks set build
refuses_as 'a message to a task' 2 'INVALID|session|task_build|||' sessions send task_build hello
tidemark sessions new --id task_taken >/dev/null
refuses_as 'a session in its place' 4 'EXISTS|session|task_taken|||' tasks set taken --state REVIEW
finish
