#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# store copy: from store to store with seqs, times and digests; again, after a stop, on a full disk; and between kinds of stores.
if [ "${1:-}" = full ]; then
    # shellcheck source=tests/cli/lib.sh
    . "$TIDE_SOURCE/tests/cli/lib.sh"
    mkdir small
    trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
    mount -t tmpfs -o size=4m tmpfs small || { skip 'a full disk' 'cannot mount'; finish; }
    a=$(store_at "$work/a") b=$(store_at "$work/small/b")
    for id in one two three; do
        tidemark --store "$a" sessions new --id $id >/dev/null
        for i in $(seq 25); do echo "{\"kind\":\"a.b\",\"i\":$i,\"s\":\"$id $(repeat 40000 "$i")\"}"; done |
            tidemark --store "$a" log append $id - >/dev/null
    done
    tidemark store copy "$a" "$b" >out 2>err
    check_is 'full: status' 6 $?
    check_is 'full: one line' 1 "$(wc -l <err)"
    check 'full: says what to do' grep -qi 'run the same command again.*no space left.*free some space' err
    for id in $(tidemark --store "$b" sessions list --ids); do
        check "full: $id is whole" cmp <(tidemark --store "$a" sessions export "$id") <(tidemark --store "$b" sessions export "$id")
    done
    check 'full: not all are there' test "$(tidemark --store "$b" sessions list --ids | wc -l)" -lt 3
    mount -o remount,size=64m small
    check 'full: with room it goes on' tidemark store copy "$a" "$b"
    check_is 'full: all are there' 3 "$(tidemark --store "$b" sessions list --ids | wc -l)"
    check 'full: the copy is whole' tidemark --store "$b" store check
    finish
fi
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
a=$(store_at "$work/a") b=$(store_at "$work/b")

at() {
    local store=$1
    shift
    tidemark --store "$store" "$@"
}

# shellcheck disable=SC2317 # called by check
# same ID FROM TO: every event with its seq, time, epoch, kind, body and digest.
same() {
    cmp <(at "$2" sessions export "$1") <(at "$3" sessions export "$1")
}

at "$a" sessions new --id s --title 'überall ✔' >/dev/null
for i in $(seq 300); do echo "{\"kind\":\"message.user\",\"turn\":$i,\"content\":\"line \\u00e9 \\\"$i\\\" é\"}"; done |
    at "$a" log append s - >/dev/null
echo "{\"kind\":\"a.b\",\"big\":\"$(repeat 200000 x)\"}" | at "$a" log append s - >/dev/null
at "$a" sessions checkpoint s >/dev/null
fork=$(at "$a" sessions fork s --at 100)
at "$a" log append "$fork" --kind a.b --data '{"of":"the fork"}' >/dev/null
at "$a" sessions new --id idle >/dev/null

# ---- there ----
check_is 'a copy says what it did' 'copied 3 sessions (306 events, 213 KiB)' "$(tidemark store copy "$a" "$b")"
for id in s "$fork" idle; do check "$id is the same" same "$id" "$a" "$b"; done
check_is 'lists show them in the same order' "$(at "$a" sessions list --ids)" "$(at "$b" sessions list --ids)"
check_is 'the state is the same' "$(at "$a" state s)" "$(at "$b" state s)"
check 'the copy is whole' at "$b" store check
check_is 'again: nothing to do' 'copied 0 sessions (0 events, 0 bytes); 3 were there already' "$(tidemark store copy "$a" "$b")"
at "$a" log append s --kind a.b >/dev/null
check_is 'a session that went on is continued' 'copied 0 sessions, continued 1 (1 event, 5 bytes); 2 were there already' \
    "$(tidemark store copy "$a" "$b")"
check 'and is the same' same s "$a" "$b"
check_is 'nobody holds it' '{"seq":305}' "$(at "$b" log append s --kind a.b)"
tidemark store copy "$a" "$b" >out
check_is 'one that went on there has nothing to copy' 's: has continued there, to seq 305 from 304: nothing to copy' "$(head -n 1 out)"

# ---- some ----
c=$(store_at "$work/c")
tidemark store copy "$a" "$c" --session "$fork" >out
check_is 'a fork brings its parent, and says so' "s: is copied too: '$fork' is a fork of it" "$(head -n 1 out)"
check_is 'and nothing else' "$(printf '%s\ns' "$fork" | sort)" "$(at "$c" sessions list --ids | sort)"
check_is 'as JSON' '1 1 1' "$(tidemark store copy "$a" "$c" --session idle --session s --json >out; for m in copied same ok; do json "\$.$m" <out; done | paste -sd ' ')"

# ---- what is in the way ----
at "$a" log append s --kind c.d >/dev/null
at "$a" sessions new --id late >/dev/null
tidemark store copy "$a" "$b" >out 2>err
check_is 'another history: status' 4 $?
check_is 'another history: one line says how it ended' 1 "$(wc -l <err)"
check 'another history: names it' grep -q '^s: it is already there and differs from seq 305 on: delete it there' out
check 'another history: the others are copied' same late "$a" "$b"
check_is 'another history: as JSON' 's 0 4' "$(tidemark store copy "$a" "$b" --json >out 2>err; status=$?; json '$.problems[0].where' <out | tr '\n' ' '; json '$.ok' <out | tr '\n' ' '; echo $status)"
refuses_as 'the same store' 2 'INVALID|argument||dst||' store copy "$a" "$a"
refuses_as 'the same store by another name' 2 'INVALID|argument||dst||' store copy "$a" "${a/a.db/./a.db}"
refuses_as 'no store to copy from' 3 'NOT_FOUND|file||*||' store copy "$(store_at "$work/none")" "$(store_at "$work/new")"
check_is 'makes none' '' "$(find . -name 'new*' -o -name 'none*')"
refuses_as 'an unknown session' 3 'NOT_FOUND|session|nobody|||' store copy "$a" "$b" --session nobody
refuses_as 'one store alone' 2 'INVALID|argument||dst||' store copy "$a"
refuses_as '--store as well' 2 'INVALID|argument||store||' --store "$a" store copy "$a" "$b"
refuses 'an unknown kind of store' 2 'DST: unknown kind of store' store copy "$a" postgres://x
if [ "$(id -u)" -ne 0 ]; then
    mkdir shut && chmod 500 shut
    refuses 'a place that cannot be written' 6 'DST' store copy "$a" "$(store_at "$work/shut/b")"
else
    skip 'a place that cannot be written' 'root may write everywhere'
fi

# ---- keys ----
k=$(store_at "$work/k") u=$(store_at "$work/u")
echo 0123456789abcdef >key
check 'into a store with a key' eval "tidemark store copy '$a' '$k' --dst-key-file key | grep -q '^keys: '"
check 'it is whole with its key' at "$k" --key-file key store check
refuses_as 'without the key' 5 'WRONG_KEY|||||' store copy "$a" "$k"
check 'and back' tidemark --key-file key store copy "$k" "$u" --dst-no-key
check 'the digests are those of the first' same s "$a" "$u"
check 'one descriptor gives the key for both' eval "tidemark --key-fd 5 store copy '$k' '$(store_at "$work/k2")' 5<key"
check 'and then the digests are the same' cmp <(at "$k" --key-file key sessions export s) <(at "$(store_at "$work/k2")" --key-file key sessions export s)
refuses_as 'a key and none' 2 'INVALID|argument||dst_key_file||' store copy "$a" "$k" --dst-key-file key --dst-no-key

# ---- nothing is left out without a word ----
for id in good lost cut; do at files:odd sessions new --id $id >/dev/null; done
mv odd/sessions/lost.messages.jsonl elsewhere
ln -s ../../elsewhere odd/sessions/lost.messages.jsonl
rm odd/sessions/lost.json
echo '{' >odd/live/cut.json
tidemark store copy files:odd "$(store_at "$work/o")" >out 2>err
check 'what cannot be read: no success' test $? -ne 0
check_is 'each is named' '1 1' "$(grep -c '^lost: .*symbolic link' out) $(grep -c '^cut: .*live/cut.json' out)"
check_is 'of how many' 1 "$(grep -c '2 of 3 sessions not copied' err)"
check_is 'the others are there' good "$(at "$(store_at "$work/o")" sessions list --ids)"
check_is 'a list has them, too' 3 "$(at files:odd sessions list --ids | wc -l)"
refuses_as 'a place in the source' 2 'INVALID|argument||dst||' store copy files:odd files:odd/sessions/in
refuses_as 'a database in the source' 2 'INVALID|argument||dst||' store copy files:odd odd/new.db
check_is 'makes none there' '' "$(find odd -name in -o -name 'new.db*')"
at files:torn sessions new --id t >/dev/null
tidemark store copy files:torn files:torn2 >/dev/null
at files:torn log append t --kind a.b >/dev/null
printf half >>torn2/sessions/t.messages.jsonl
tidemark store copy files:torn files:torn2 >out 2>err
check_is 'what was mended there is told, once' '0 1 1' "$? $(wc -l <err) $(grep -c '^tidemark: session t: .*(4 bytes).*torn-1' err)"

# ---- stopped ----
d=$(store_at "$work/d")
at "$a" sessions new --id long >/dev/null
yes '{"kind":"message.user","turn":1,"content":"the tide comes in and goes out again, and so does this line"}' | head -n 100000 |
    at "$a" log append long - >/dev/null
"$TIDE_BIN" store copy "$a" "$d" --session long >out 2>err &
pid=$!
wait_for test -e "${d#files:}"
kill -TERM $pid # a shell's background processes do not hear SIGINT
wait $pid
status=$?
if [ $status -eq 0 ]; then
    skip 'stopped' 'it was faster'
else
    check_is 'stopped: status' 143 $status
    check 'stopped: shows how to continue' grep -q 'run the same command again' err
fi
check 'stopped: the same command goes on' tidemark store copy "$a" "$d" --session long
check 'stopped: and arrives' same long "$a" "$d"
check 'stopped: whole' at "$d" store check

# ---- between kinds ----
if tidemark store copy "$work/kind.db" "files:$work/kind" 2>&1 | grep -q 'unknown kind'; then
    skip 'between kinds of stores' 'there is one kind'
else
    check 'from files or SQLite into SQLite' tidemark store copy "$a" sqlite:"$work/kind.db"
    check 'into files' tidemark store copy sqlite:"$work/kind.db" files:"$work/kind"
    check 'and back' tidemark store copy files:"$work/kind" sqlite:"$work/back.db"
    for id in s "$fork" idle long; do check "$id is the same" same "$id" "$a" "$work/back.db"; done
    check 'whole as files' at files:"$work/kind" store check
    check 'whole at the end' at "$work/back.db" store check
fi

# ---- a full disk ----
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    TIDEMARK_TEST_STORE=$store_kind unshare -m bash "$TIDE_SOURCE/tests/cli/store_copy.sh" full || failures=$((failures + 1))
else
    skip 'a full disk' 'needs root and mount namespaces'
fi
finish
