#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Export and import: byte for byte, all or nothing, and files that are replaced only by whole ones.
# shellcheck disable=SC2016 # messages hold backquotes
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

tidemark sessions new --id s --title 'überall ✔' --metadata '{"big":123456789012345678901234567890,"e":1E+2}' >/dev/null
for i in $(seq 300); do echo "{\"kind\":\"message.user\",\"turn\":$i,\"content\":\"line \\u00e9 \\\"$i\\\" é\"}"; done |
    tidemark log append s - >/dev/null
echo "{\"kind\":\"a.b\",\"big\":\"$(repeat 200000 x)\"}" | tidemark log append s - >/dev/null
tidemark sessions checkpoint s >/dev/null
fork=$(tidemark sessions fork s --at 100)
tidemark log append "$fork" --kind a.b --data '{"of":"the fork"}' >/dev/null

tidemark sessions export s >s.jsonl
check_is 'a head line and one line per event' 304 "$(wc -l <s.jsonl)"
check_is 'import prints the id' s "$(tidemark --store "$(store_at two)" sessions import s.jsonl)"
check 'import makes the store' test -e two.db -o -e two.files
check 'export of the import is the same, byte for byte' eval "tidemark --store $(store_at two) sessions export s | cmp - s.jsonl"
check 'so is the log' eval "tidemark log show s | cmp - <(tidemark --store $(store_at two) log show s)"
check 'and the state' eval "tidemark state s | cmp - <(tidemark --store $(store_at two) state s)"
check 'the import is whole' tidemark --store "$(store_at two)" sessions verify s
refuses_as 'an id that is taken' 4 'EXISTS|session|s|||' --store "$(store_at two)" sessions import s.jsonl
tidemark sessions export "$fork" >fork.jsonl
# A new store is made before the export is read.
fails_as 'a fork without its parent' 3 'NOT_FOUND|session|*|||' --store "$(store_at three)" sessions import fork.jsonl
check_is 'a fork with it, from standard input' "{\"session_id\":\"$fork\"}" "$(tidemark --store "$(store_at two)" sessions import --json <fork.jsonl)"
check 'the fork is the same as well' eval "tidemark --store $(store_at two) sessions export $fork | cmp - fork.jsonl"

# ---- what is refused makes no store ----
head -n 5 s.jsonl >cut.jsonl
refuses_as 'an export that is cut, where there is no store' 2 'INVALID|file|||5|' --store "$(store_at absent)" sessions import cut.jsonl
check_status 'the same through a pipe' 2 eval 'cat cut.jsonl | tidemark --store "$(store_at absent)" sessions import'
check_status 'a chat that cannot begin' 3 tidemark --store "$(store_at absent)" chat -p x --script nowhere
check_status 'one that was never there' 3 tidemark --store "$(store_at absent)" chat --resume nobody -p x
check_is 'none of them makes a store' 'absent*' "$(echo absent*)"
check_is 'one through a pipe, where there is none' s "$(tidemark --store "$(store_at piped)" sessions import <s.jsonl)"
check 'is all there' eval 'cat s.jsonl | cmp - <(tidemark --store "$(store_at piped)" sessions export s)'

# ---- to a file ----
echo old >file.jsonl
check 'export to a file' tidemark sessions export s -o file.jsonl
check 'it is the same' cmp file.jsonl s.jsonl
check_is 'nothing else is left' file.jsonl "$(echo file.jsonl*)"
echo old >file.jsonl
refuses_as 'export of an unknown session' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions export nobody -o file.jsonl
check_is 'leaves the file as it was' old "$(cat file.jsonl)"
mkdir elsewhere
echo old >elsewhere/target.jsonl
ln -s elsewhere/target.jsonl link.jsonl
check 'export to a symbolic link' tidemark sessions export s -o link.jsonl
check_is 'the link stays' elsewhere/target.jsonl "$(readlink link.jsonl)"
check 'the file it leads to is replaced' cmp elsewhere/target.jsonl s.jsonl
check_is 'nothing else is left, here or there' 'link.jsonl elsewhere/target.jsonl' "$(echo link.jsonl* elsewhere/*)"
ln -s nowhere dangling.jsonl
refuses_as 'export to a link that leads nowhere' 3 'NOT_FOUND|file||dangling.jsonl||' sessions export s -o dangling.jsonl
mkfifo pipe # ours: a name below /dev would be lost to the whole machine, should it be replaced after all
cat pipe >from-pipe &
reader=$!
check 'export into a pipe' timeout 20 "$TIDE_BIN" sessions export s -o pipe
check 'the pipe stays' test -p pipe
[ -p pipe ] || kill $reader
wait $reader
check 'its reader gets all of it' cmp from-pipe s.jsonl
ln -s /proc/self/fd/1 stdout # what /dev/stdout is, but ours
check 'export to standard output by a name' eval 'tidemark sessions export s -o stdout | cmp - s.jsonl'
check_is 'the name stays' /proc/self/fd/1 "$(readlink stdout)"
(echo first && tidemark sessions export s -o stdout) >from-stdout
check 'which is written behind what is there' eval '(echo first && cat s.jsonl) | cmp - from-stdout'
refuses_as 'export to a directory' 6 'DENIED|file||elsewhere||replace_file' sessions export s -o elsewhere
refuses_as 'export into a directory that is not there' 3 'NOT_FOUND|file||no/where||' sessions export s -o no/where

# ---- what is not a whole export ----
# refuses_import NAME TEXT: import of bad.jsonl fails with status 2 or 5 and leaves no session.
refuses_import() {
    tidemark --store "$(store_at bad)" sessions import bad.jsonl >out 2>err
    status=$?
    check "$1: is refused" eval "[ $status -eq 2 ] || [ $status -eq 5 ]"
    check_is "$1: in one line, and nothing on standard output" '1 0' "$(wc -l <err) $(wc -c <out)"
    check_is "$1: leaves no session" '' "$(tidemark --store "$(store_at bad)" sessions list --ids)"
}
: >bad.jsonl
refuses_import 'an empty file'
head -n 100 s.jsonl >bad.jsonl
refuses_import 'a file that ends early'
head -c 20000 s.jsonl >bad.jsonl
refuses_import 'a file that ends inside a line'
sed '50s/line/lime/' s.jsonl >bad.jsonl
refuses_import 'a changed word'
sed '50d' s.jsonl >bad.jsonl
refuses_import 'a line left out'
sed '50{h;d};51{G}' s.jsonl >bad.jsonl
refuses_import 'two lines swapped'
sed '50{p}' s.jsonl >bad.jsonl
refuses_import 'a line twice'
sed '1d' s.jsonl >bad.jsonl
refuses_import 'no head'
sed '1s/"session_id":"s"/"session_id":"..\/x"/' s.jsonl >bad.jsonl
refuses_import 'an id that leads elsewhere'
head -c 100000 /dev/urandom >bad.jsonl
refuses_import 'noise'
(cat s.jsonl; echo '{}') >bad.jsonl
refuses_import 'a line too many'
refuses_as 'a file that is not there' 3 'NOT_FOUND|file||nothing.jsonl||' --store "$(store_at none)" sessions import nothing.jsonl
check 'and makes no store' test ! -e none.db -a ! -e none.files

# ---- a log that another program wrote: no digests, and not every line has a time ----
mkdir -p others/sessions
echo '{"tidemark_store":1,"layout":"files","version":1}' >others/store.json
cat >others/sessions/o.messages.jsonl <<'END'
{"seq":1,"kind":"session.created","title":"theirs"}
{"seq":2,"ts":"2026-02-21T10:00:00Z","kind":"message.user","turn":1,"content":"é \u00e9","n":2.50}
{"seq":3,"kind":"note.made","x":[1,{"y":null}]}
END
cp others/sessions/o.messages.jsonl before
check 'is exported' tidemark --store files:others sessions export o -o o.jsonl
check_is 'with digests' 0 "$(grep -c '0000000000000000' o.jsonl)"
check 'and stays as it was' cmp before others/sessions/o.messages.jsonl
check_is 'it can be imported' o "$(tidemark --store "$(store_at from-others)" sessions import o.jsonl)"
check 'and proved there' tidemark --store "$(store_at from-others)" sessions verify o
check_is 'seq, time, kind and body are the same' "$(tidemark --store files:others log show o)" "$(tidemark --store "$(store_at from-others)" log show o)"
check 'an export of the import is the same' eval "tidemark --store $(store_at from-others) sessions export o | cmp - o.jsonl"
refuses_as 'a directory' 2 'INVALID|file||others||' --store "$(store_at none)" sessions import others
check 'makes no store either' test ! -e none.db -a ! -e none.files

# ---- killed in the middle ----
tidemark --store "$(store_at killed)" sessions new --id other >/dev/null
mkfifo feed
"$TIDE_BIN" --store "$(store_at killed)" sessions import feed &
importer=$!
exec 5>feed
head -n -1 s.jsonl >&5 # more than a pipe holds: it has been read when this returns
kill -KILL $importer
wait $importer 2>/dev/null
exec 5>&-
check_is 'an import that is killed leaves no session' other "$(tidemark --store "$(store_at killed)" sessions list --ids)"
check_is 'and can be made again' s "$(tidemark --store "$(store_at killed)" sessions import s.jsonl)"
finish
