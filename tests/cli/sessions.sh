#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Making, listing and showing sessions; checkpoints, forks, rollback, prune, delete; ids and their prefixes.
# shellcheck disable=SC2016 # messages hold backquotes
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

refuses_as 'without a store reading says so' 3 'NOT_FOUND|file||*||init_store' sessions list
refuses_as 'without a store appending says so' 3 'NOT_FOUND|file||*||init_store' log append a --kind x.y
check 'and neither has made one' test ! -e "$work/data"

id=$(tidemark sessions new --title 'Fix the build' --agent coder --agent-id c1 --task-id T-1 --provider anthropic --model m \
    --metadata '{"n": 1.50, "list":[1,2]}')
check 'an id is made' test "${id#sess_}" != "$id"
check_is 'the store is in the XDG data directory' 1 "$(find data/tidemark -maxdepth 1 -name "$(if on_files; then echo files; else echo tidemark.db; fi)" | wc -l)"
check_is 'its fields are stored as they are' \
    '"kind":"session.created","agent":"coder","agent_id":"c1","task_id":"T-1","title":"Fix the build","working_dir":"'"$work"'","provider":{"type":"anthropic","model":"m"},"metadata":{"n":1.50,"list":[1,2]}}' \
    "$(tidemark log show "$id" | cut -d, -f 3-)"
check_is 'an id can be chosen' '{"session_id":"mine"}' "$(tidemark sessions new --id mine --working-dir /srv --json)"
refuses_as 'an id that is taken' 4 'EXISTS|session|mine|||' sessions new --id mine
check_is 'a working directory can be chosen' /srv "$(tidemark sessions show mine --json | json '$.working_dir')"

check_is 'the newest is first' "mine $id" "$(tidemark sessions list --ids | tr '\n' ' ' | sed 's/ $//')"
check 'the list is one JSON document' eval 'tidemark sessions list --json | is_json'
check_is 'a list filtered by agent' "$id" "$(tidemark sessions list --agent coder --ids)"
check_is 'a list filtered by agent id' "$id" "$(tidemark sessions list --agent c1 --ids)"
check_is 'a list filtered by task' "$id" "$(tidemark sessions list --task-id T-1 --ids)"
check_is 'a list filtered by status' "mine $id " "$(tidemark sessions list --status idle --ids | tr '\n' ' ')"
check_is 'a list of nothing' '{"sessions":[]}' "$(tidemark sessions list --status running --json)"
check_is 'a limited list' mine "$(tidemark sessions list --limit 1 --ids)"
check_is 'ids as JSON' "{\"ids\":[\"mine\",\"$id\"]}" "$(tidemark sessions list --ids --json)"
check_is 'no ids as JSON' '{"ids":[]}' "$(tidemark sessions list --ids --json --status running)"
refuses_as 'an unknown status' 2 'INVALID|argument||status||' sessions list --status asleep
cp "$work/.err" unknown-status
for word in running waiting idle completed failed cancelled interrupted interrupted_startup interrupted_waiting damaged active paused; do
    tidemark sessions list --help | grep -e '--status' | grep -qw "$word" && grep -qw "$word" unknown-status &&
        tidemark sessions list --status "$word" >/dev/null || echo "$word"
done >untold
check_is 'every status is in the help, in the complaint, and taken' '' "$(cat untold)"
check 'the table shows the title' eval 'tidemark sessions list | holds "Fix the build"'
check_is 'no colours without a terminal' '' "$(tidemark sessions list | tr -dc '\033')"
check 'colours when asked for' eval "tidemark --color always sessions list | grep -q '^.\[2m'"
tidemark sessions new --id evil --title "$(printf 'a\033[31mb\nc')" >/dev/null
check_is 'control characters of a title do not reach the terminal' '' "$(tidemark sessions list | tr -dc '\033')"
check_is 'and it stays one line' 4 "$(tidemark sessions list | wc -l)"
check_is 'but are kept' "$(printf 'a\033[31mb\nc')" "$(tidemark sessions show evil --json | json '$.title')"
tidemark sessions delete evil >/dev/null

shown=$(tidemark sessions show "$id" --json)
check_is 'show gives the id' "$id|$id" "$(echo "$shown" | json '$.id')|$(echo "$shown" | json '$.session_id')"
check_is 'show gives the provider' '{"type":"anthropic","model":"m"}' "$(echo "$shown" | json '$.provider')"
check_is 'show gives where it stands' 'idle|none|1' \
    "$(echo "$shown" | json '$.status')|$(echo "$shown" | json '$.outcome')|$(echo "$shown" | json '$.last_seq')"
check_is 'show says that checkpoints are on' 1 "$(echo "$shown" | json '$.checkpoints_enabled')"
check 'show for people gives the title' eval "tidemark sessions show $id | holds 'Fix the build'"

# ---- ids ----
check_is 'a unique prefix is enough' "$id" "$(tidemark sessions show "${id%????}" --json | json '$.id')"
tidemark sessions new --id pre-1 >/dev/null
tidemark sessions new --id pre-2 >/dev/null
refuses_as 'a prefix of two' 3 'AMBIGUOUS|||||' sessions show pre
check_is 'a whole id wins over longer ones' pre "$(tidemark sessions new --id pre >/dev/null; tidemark sessions show pre --json | json '$.id')"
refuses_as 'an unknown id' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions show nobody
refuses_as 'deleting an unknown id' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions delete nobody

# ---- checkpoints ----
tidemark log append mine --kind memory.set --data '{"values":{"k":1}}' >/dev/null
one=$(tidemark sessions checkpoint mine --description 'first' --node a --next-node b)
tidemark log append mine --kind memory.set --data '{"values":{"k":2,"l":[true]}}' >/dev/null
two=$(tidemark sessions checkpoint mine --type turn --json | json '$.checkpoint_id')
listed=$(tidemark sessions checkpoints mine --json)
check_is 'checkpoints are listed, oldest first' "$one|$two|2" \
    "$(echo "$listed" | json '$.checkpoints[0].checkpoint_id')|$(echo "$listed" | json '$.latest_checkpoint_id')|$(echo "$listed" | json '$.total_checkpoints')"
check_is 'with their members' 'user_checkpoint|a|b|1|1|first|3' \
    "$(for m in type current_node next_node is_clean can_resume_from description seq; do echo "$listed" | json "\$.checkpoints[0].$m"; done | paste -sd '|')"
check_is 'filtered by type' "$two" "$(tidemark sessions checkpoints mine --type turn --ids)"
check_is 'filtered by clean' "$one $two " "$(tidemark sessions checkpoints mine --clean --ids | tr '\n' ' ')"
check_is 'limited to the newest' "$two" "$(tidemark sessions checkpoints mine --limit 1 --ids)"
check_is 'their ids as JSON' "{\"ids\":[\"$one\",\"$two\"]}" "$(tidemark sessions checkpoints mine --ids --json)"
check_is 'of none, all is there' '{"session_id":"pre","checkpoints":[],"latest_checkpoint_id":null,"total_checkpoints":0}' \
    "$(tidemark sessions checkpoints pre --json)"
check_is 'show names the one to resume from' "$two" "$(tidemark sessions show mine --json | json '$.resume_from_checkpoint_id')"
check_is 'inspect shows the memory of then' '{"k":1}' "$(tidemark sessions inspect mine "$one" --memory --json | json '$.state.memory')"
check 'inspect for people shows it as well' eval "tidemark sessions inspect mine $two --memory | holds 'l = [true]'"
refuses_as 'inspect of an unknown checkpoint' 3 'NOT_FOUND|checkpoint|mine|ckpt_zz||list_checkpoints' sessions inspect mine ckpt_zz
refuses_as 'an unknown type' 2 'INVALID|argument||type||' sessions checkpoint mine --type tern
check_is 'state at a checkpoint' '{"k":1}' "$(tidemark state mine --at "$one" | json '$.content.memory')"
check_is 'state at a seq' '{"k":1}' "$(tidemark state mine --at 2 | json '$.content.memory')"
check_is 'state now' '{"k":2,"l":[true]}' "$(tidemark state mine | json '$.content.memory')"
check 'state is one line' eval 'tidemark state mine | is_json'
check 'state can be indented' test "$(tidemark state mine --pretty | wc -l)" -gt 20
refuses_as 'state at a seq that is not there' 3 'NOT_FOUND|event|mine||6|show_log' state mine --at 6
refuses_as 'state at no position' 2 'INVALID|argument||at||' state mine --at 0
refuses_as 'state at a negative position' 2 'INVALID|argument||at||' state mine --at -1
refuses_as 'state at a huge position' 2 'INVALID|argument||at||' state mine --at 99999999999999999999
refuses_as 'state at an unknown checkpoint' 3 'NOT_FOUND|checkpoint|mine|ckpt_zz||list_checkpoints' state mine --at ckpt_zz

# ---- fork and rollback ----
fork=$(tidemark sessions fork mine --at "$one" --title forked)
check_is 'a fork has its parent' "mine|3" "$(tidemark sessions show "$fork" --json | json '$.parent.session_id')|$(tidemark sessions show "$fork" --json | json '$.parent.seq')"
check_is 'a fork begins with the state of the fork point' '{"k":1}' "$(tidemark state "$fork" | json '$.content.memory')"
tidemark log append "$fork" --kind memory.set --data '{"values":{"k":"forked"}}' >/dev/null
check_is 'neither sees the other' '{"k":"forked"}|{"k":2,"l":[true]}' \
    "$(tidemark state "$fork" | json '$.content.memory')|$(tidemark state mine | json '$.content.memory')"
check_is 'its own events begin behind the fork point' '4 5 ' "$(tidemark log show "$fork" | sed 's/{"seq":\([0-9]*\).*/\1/' | tr '\n' ' ')"
check_is 'inherited ones on demand' '1 2 3 4 5 ' "$(tidemark log show "$fork" --inherited | sed 's/{"seq":\([0-9]*\).*/\1/' | tr '\n' ' ')"
refuses_as 'a parent is not deleted' 4 'HAS_FORKS|session|mine|||' sessions delete mine
refuses_as 'a fork at a seq that is not there' 3 'NOT_FOUND|event|mine||99|show_log' sessions fork mine --at 99
refuses_as 'a fork with an id that is taken' 4 'EXISTS|session|pre|||' sessions fork mine --id pre
check_is 'a fork as JSON' '{"session_id":"f2","parent":{"session_id":"mine","seq":5}}' "$(tidemark sessions fork mine --id f2 --json)"

check_is 'rollback' '{"session_id":"mine","to_seq":3,"seq":6}' "$(tidemark sessions rollback mine --to "$one" --reason 'try again' --json)"
check_is 'after it the memory is that of then' '{"k":1}' "$(tidemark state mine | json '$.content.memory')"
check_is 'the cut checkpoint is not listed' "$one" "$(tidemark sessions checkpoints mine --ids)"
check_is 'but with --all' "$one $two " "$(tidemark sessions checkpoints mine --all --ids | tr '\n' ' ')"
check 'rolling back to a later point undoes it' tidemark sessions rollback mine --to 5
check_is 'and the memory is back' '{"k":2,"l":[true]}' "$(tidemark state mine | json '$.content.memory')"
refuses_as 'rollback to a seq that is not there' 3 'NOT_FOUND|event|mine||99|show_log' sessions rollback mine --to 99
refuses_as 'rollback with both ways for effects' 2 'INVALID|argument||reuse_effects||' sessions rollback mine --to 1 --reuse-effects --redo-effects
tidemark sessions new --id effects >/dev/null
tidemark log append effects - >/dev/null <<'LINES'
{"kind":"tool.started","turn":1,"call_id":"c1","tool":"mail","effect":"once"}
{"kind":"tool.completed","turn":1,"call_id":"c1","tool":"mail","result":"sent"}
LINES
refuses_as 'rollback past a finished once-effect' 4 'EFFECTS|session|effects|||repeat,repeat' sessions rollback effects --to 1
check_is 'nothing was appended by that' 3 "$(tidemark log show effects | wc -l)"
check 'rollback past it with --reuse-effects' tidemark sessions rollback effects --to 1 --reuse-effects

# ---- prune, verify, delete ----
for i in 1 2 3 4 5; do last=$(tidemark sessions checkpoint effects --description "$i"); done
check_is 'prune' '{"session_id":"effects","deleted":3}' "$(tidemark sessions prune effects --keep 2 --json)"
check_is 'what is left is the newest' "2|$last" "$(tidemark sessions checkpoints effects --json | json '$.total_checkpoints')|$(tidemark sessions checkpoints effects --json | json '$.latest_checkpoint_id')"
refuses_as 'prune to a negative number' 2 'INVALID|argument||keep||' sessions prune effects --keep -1
check_is 'verify of some' '1|2' "$(tidemark sessions verify effects mine --json | json '$.ok')|$(tidemark sessions verify effects mine --json | json '$.sessions' | grep -o '"ok":true' | wc -l)"
check 'verify of all' tidemark sessions verify --all
refuses_as 'verify of nothing' 2 'INVALID|argument||id||' sessions verify
refuses_as 'verify of an unknown session' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions verify nobody
check_is 'delete' 'deleted effects' "$(tidemark sessions delete effects)"
refuses_as 'a second delete' 3 'NOT_FOUND|session|effects|||list_sessions' sessions delete effects
tidemark sessions new --id job >/dev/null
tidemark sessions new --id job-2 >/dev/null
check_is 'delete of one whose id begins another' 'deleted job' "$(tidemark sessions delete job)"
refuses_as 'again: it does not mean the other' 3 'NOT_FOUND|session|job|||list_sessions' sessions delete job
check_is 'which is still there' job-2 "$(tidemark sessions show job-2 --json | json '$.id')"
check 'the help says so' eval "tidemark sessions delete --help | holds 'a prefix is not enough to delete'"
refuses_as 'nothing of it is left' 3 'NOT_FOUND|session|effects|||list_sessions' log show effects

# ---- somebody who may not ----
chmod 711 "$work"
tidemark --store files:closed sessions new --id s >/dev/null
chown -R 65534 closed 2>/dev/null
chmod 000 closed/sessions
# as_other ARGS...: tidemark as somebody without rights, which root is not.
as_other() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$TIDE_BIN" "$@"
    else
        tidemark "$@"
    fi
}
if as_other version >/dev/null 2>&1; then
    as_other --store "files:$work/closed" sessions list >out 2>err
    check_is 'a directory that may not be read is said in one line' '6 1 0' "$? $(wc -l <err) $(wc -c <out)"
    check 'with what to do' grep -q 'Permission denied: give yourself permission, or name another place$' err
else
    skip 'a directory that may not be read' 'nobody else may run the program here'
fi
chmod 700 closed/sessions
finish
