#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The store as a whole: figures, checks, keys; files that are not stores, newer ones, damaged ones, full and read-only disks;
# and what the doctor says of each.
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
export TIDEMARK_STORE=s.db

# shellcheck disable=SC2317 # called by check
# doctor STATUS TEXT: doctor ends with this status and one of its lines holds TEXT.
doctor() {
    tidemark doctor >"$work/.doctor" 2>&1
    if [ $? -ne "$1" ] || ! grep -qF -- "$2" "$work/.doctor"; then
        cat "$work/.doctor"
        return 1
    fi
}

check 'doctor: no store yet' doctor 0 'no store at'
tidemark sessions new --id s >/dev/null
for i in 1 2 3; do tidemark log append s --kind memory.set --data "{\"values\":{\"k\":$i}}" >/dev/null; done
check_is 'info as JSON' '1|4' "$(tidemark store info --json | json '$.sessions')|$(tidemark store info --json | json '$.events')"
check 'info for people' eval 'tidemark store info | holds "sessions "'
check_is 'check' ok "$(tidemark store check)"
check_is 'check as JSON' '{"problems":[],"ok":true}' "$(tidemark store check --json)"
tidemark state s >before
check 'rebuild' tidemark store check --rebuild
check 'the state is the same without the caches' eval 'tidemark state s | cmp - before'
check 'compact' tidemark store compact
check_is 'the write-ahead log is empty then' 0 "$(tidemark store info --json | json '$.wal_bytes')"
check 'doctor: all is well' doctor 0 'the last 4 events of the newest session'
check 'doctor: counts one session as one' eval "tidemark doctor | grep -q '^ok  *figures .* 1 session, 4 events'"
check_is 'doctor: every check has a name of its own' '' "$(tidemark doctor | awk '{print $2}' | sort | uniq -d)"
rm s.db-reserve
check 'doctor: without the reserve' doctor 0 'the next command that writes creates it again'
check 'doctor: which is no want of space' eval '! grep -q "free some" .doctor'
rm s.db-mark
check 'doctor: without the mark' doctor 0 'was closed, and is one file'
tidemark log append s --kind a.b >/dev/null
check_is 'doctor: the next append makes both again' 2 "$(tidemark doctor | grep -c '^ok  *\(mark\|reserve\) ')"
check 'doctor: as JSON' eval 'tidemark doctor --json | is_json'
check_is 'doctor: ok as JSON' 1 "$(tidemark doctor --json | json '$.ok')"
check_is 'files are for the owner alone' '600' "$(stat -c %a s.db s.db-wal s.db-shm s.db-mark s.db-reserve 2>/dev/null | sort -u)"
(unset TIDEMARK_STORE && tidemark sessions new >/dev/null)
check_is 'directories are for the owner alone' '700 700' "$(stat -c %a data data/tidemark | paste -sd ' ')"
chmod 644 s.db
check 'doctor: open to others' doctor 0 "chmod 600 's.db'"
chmod 600 s.db

# ---- not a store ----
echo 'some text, longer than a header, to be kept' >text.db
refuses_as 'a text file' 5 'NOT_A_STORE|file||text.db||' --store text.db sessions list
refuses_as 'a text file, also when one would be made' 5 'NOT_A_STORE|file||text.db||' --store text.db sessions new
check_is 'it is left as it was' 'some text, longer than a header, to be kept' "$(cat text.db)"
sqlite3 other.db 'CREATE TABLE t(a); INSERT INTO t VALUES(1)'
sum=$(md5sum <other.db)
refuses_as 'a database of someone else' 5 'NOT_A_STORE|file||other.db||' --store other.db sessions list
refuses_as 'a database of someone else, also when one would be made' 5 'NOT_A_STORE|file||other.db||' --store other.db sessions new
check_is 'that one as well' "$sum" "$(md5sum <other.db)"
refuses_as 'a directory' 5 'NOT_A_STORE|||||' --store . sessions list
ln -s s.db link.db
refuses_as 'a symbolic link' 5 'NOT_A_STORE|file||link.db||' --store link.db sessions list
mkfifo pipe.db
refuses_as 'a pipe' 5 'NOT_A_STORE|file||pipe.db||' --store pipe.db sessions list
# todo STORE: what the doctor advises, as JSON, for each check that failed.
todo() {
    tidemark doctor --store "$1" --json >"$work/.doctor"
    sqlite3 :memory: "SELECT coalesce(json_extract(value, '\$.todo'), 'null') FROM json_each(CAST(readfile('$work/.doctor') AS TEXT), '\$.checks')
        WHERE json_extract(value, '\$.status') = 'fail'"
}
check_is 'doctor: what to do about it, for programs' 'give another path with --store' "$(todo text.db)"
check 'doctor: not a store' eval 'TIDEMARK_STORE=text.db doctor 1 "not a Tidemark store"'

# ---- a newer one ----
cp s.db newer.db
sqlite3 newer.db 'PRAGMA user_version=99' >/dev/null
refuses_as 'a newer store' 5 'TOO_NEW|file||newer.db||' --store newer.db sessions list
refuses_as 'a newer store, to write' 5 'TOO_NEW|file||newer.db||' --store newer.db log append s --kind x.y
check_is 'doctor: what to do about a newer one' 'use a newer tidemark' "$(todo newer.db)"
check 'doctor: a newer store' eval 'TIDEMARK_STORE=newer.db doctor 1 "version 99"'

# ---- damage ----
cp s.db cut.db
truncate -s 9000 cut.db
tidemark --store cut.db sessions list >out 2>err
check_is 'a file that is cut is named damaged' '5 1 0' "$? $(wc -l <err) $(wc -c <out)"
check 'doctor: a damaged store' eval 'TIDEMARK_STORE=cut.db doctor 1 "damaged"'
tidemark --store flip.db sessions new --id f --title 'findme-findme' >/dev/null
tidemark --store flip.db sessions new --id g >/dev/null
tidemark --store flip.db store compact >/dev/null
LC_ALL=C sed -i 's/findme-findme/findme-fundme/g' flip.db
tidemark --store flip.db sessions verify --all >out 2>err
check_is 'verify finds a changed byte' '5 1' "$? $(wc -l <err)"
check 'verify names the session' grep -q "'f'" err
check 'verify goes on to the others' grep -q 'ok .* g ' out
refuses_as 'reading it is refused' 5 'CORRUPT|event|f||1|' --store flip.db log show f
tidemark --store flip.db store check >out 2>err
check_is 'check finds it as well' '5 1' "$? $(wc -l <err)"
check_is 'check as JSON says so' 0 "$(tidemark --store flip.db store check --json 2>/dev/null | json '$.ok')"
check 'doctor: damaged events' eval 'TIDEMARK_STORE=flip.db doctor 1 "fail"'
tidemark --store lost.db sessions new --id l >/dev/null
tidemark --store lost.db store compact >/dev/null
mkfifo feed # a writer that is killed leaves its events in the log; one that ends moves them
"$TIDE_BIN" --store lost.db log append l - <feed >acks &
writer=$!
exec 6>feed
echo '{"kind":"x.y"}' >&6
wait_for test -s acks
kill -KILL $writer
wait $writer 2>/dev/null
exec 6>&-
rm lost.db-wal lost.db-shm
refuses_as 'a lost write-ahead log' 5 'CORRUPT|||||check_store' --store lost.db sessions list
check 'doctor: what to do about a lost log' eval 'todo lost.db | holds "--accept-loss"'
check 'doctor: a lost write-ahead log' eval 'TIDEMARK_STORE=lost.db doctor 1 "--accept-loss"'
check 'the loss is accepted on demand' tidemark --store lost.db store check --accept-loss
check_is 'and then it works' '{"seq":2}' "$(tidemark --store lost.db log append l --kind x.y)"

# ---- keys ----
printf 'a key of enough bytes\n' >key
printf 'another key of enough\n' >wrong
printf 'short' >short
check 'a store with a key' tidemark --store keyed.db --key-file key sessions new --id k
check 'the key from a descriptor' eval 'tidemark --store keyed.db --key-fd 9 sessions verify k 9<key'
check 'the key from a file named in the environment' env TIDEMARK_KEY_FILE=key "$TIDE_BIN" --store keyed.db sessions verify k
check 'the key from the environment' env TIDEMARK_KEY='a key of enough bytes' "$TIDE_BIN" --store keyed.db sessions verify k
refuses_as 'a wrong key' 5 'WRONG_KEY|file||keyed.db||' --store keyed.db --key-file wrong sessions list
check_is 'doctor: always says what to do' '' "$(for s in cut.db flip.db keyed.db .; do todo "$s"; done | grep -x null)"
refuses_as 'no key' 5 'WRONG_KEY|file||keyed.db||' --store keyed.db sessions list
refuses_as 'a key that is too short' 2 'INVALID|argument||key_file||' --store keyed.db --key-file short sessions list
head -c 65 /dev/zero >long
refuses_as 'a key that is too long' 2 'INVALID|argument||key_file||' --store keyed.db --key-file long sessions list
refuses_as 'a key file that is not there' 3 'NOT_FOUND|argument||key_file||' --store keyed.db --key-file nothing sessions list
refuses_as 'a descriptor that is not open' 6 'IO|argument||key_fd||' --store keyed.db --key-fd 77 sessions list

# ---- files that may not grow: an error like a full disk, not a signal ----
tidemark --store grow.db sessions new --id g >/dev/null
repeat 400000 x | sed 's/.*/{"s":"&"}/' >big
(ulimit -f 64 && exec "$TIDE_BIN" --store grow.db log append g --kind a.b --data @big) 2>&1 >/dev/null | cat >err
check_is 'a limit of the file size: status' 6 "${PIPESTATUS[0]}"
check_is 'a limit of the file size: one line' '1 1' "$(wc -l <err) $(grep -c '^tidemark: ' err)"
check_is 'nothing was written' 1 "$(tidemark --store grow.db log show g | wc -l)"

# ---- a directory that cannot be written ----
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    mkdir ro
    tidemark --store ro/s.db sessions new --id r >/dev/null
    chmod -R a+rX ro
    chmod 755 "$work"
    as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups "$TIDE_BIN" "$@"
    }
    (
        # shellcheck disable=SC2317 # called by refuses
        tidemark() { as_nobody "$@"; }
        refuses_as 'a read-only directory: append' 6 'DENIED|file||*||' --store "$work/ro/s.db" log append r --kind x.y
        refuses_as 'a read-only directory: new' 6 'DENIED|file||*||' --store "$work/ro/new.db" sessions new
        exit "$failures"
    )
    failures=$((failures + $?))
    check_is 'nothing was made there' '' "$(find ro -name 'new.db*')"
    check 'doctor: a read-only directory' eval "as_nobody --store $work/ro/s.db doctor | holds 'cannot be written'"
else
    skip 'a read-only directory' 'needs root'
fi
finish
