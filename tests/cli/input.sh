#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad input on every way in: one clear line, the right exit status, nothing half-written.
# shellcheck disable=SC2016 # dollars and backquotes are part of the texts
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"

# Nothing of a bad call may make a store.
refuses_as 'a new id that leads elsewhere' 2 'INVALID|argument||id||' sessions new --id ../x
refuses_as 'metadata that is malformed' 2 'INVALID|file|||1|' sessions new --metadata '{"a":'
refuses_as 'metadata that is no object' 2 'INVALID|argument||metadata||' sessions new --metadata '[1]'
refuses_as 'metadata with a lone surrogate' 2 'INVALID|file|||1|' sessions new --metadata '{"a":"\udfff"}'
refuses_as 'metadata that is too deep' 2 'INVALID|file|||1|' sessions new --metadata "{\"a\":$(repeat 200 '[')$(repeat 200 ']')}"
refuses_as 'a title that is not UTF-8' 2 'INVALID|argument||title||' sessions new --title "$(printf 'a\xc3(')"
refuses_as 'a title with an overlong form' 2 'INVALID|argument||title||' sessions new --title "$(printf '\xc0\xaf')"
refuses_as 'a directory name that is not UTF-8' 2 'INVALID|argument||working_dir||' sessions new --working-dir "$(printf '/\xff')"
check 'no store was made' test ! -e data

tidemark sessions new --id s --title t >/dev/null
tidemark log append s --kind message.user --data '{"content":"x"}' >/dev/null
tidemark sessions checkpoint s >/dev/null
tidemark sessions export s >before

# ---- ids, wherever one is taken ----
long=$(repeat 65 a)
long_ok=$(repeat 64 a)
for bad in ../x a/b .. . /etc/passwd 'a b' 'a.b' 'é' '' "$long" "$(printf 'a\nb')"; do
    shown=$(printf %s "${bad:0:12}" | tr '\n' ' ')
    refuses_as "show '$shown'" 2 'INVALID|argument||id||' sessions show "$bad"
    refuses_as "log append '$shown'" 2 'INVALID|argument||id||' log append "$bad" --kind x.y
    refuses_as "delete '$shown'" 2 'INVALID|argument||id||' sessions delete "$bad"
    refuses_as "new --id '$shown'" 2 'INVALID|argument||id||' sessions new --id "$bad"
    refuses_as "inspect '$shown'" 2 'INVALID|argument||checkpoint||' sessions inspect s "$bad"
    refuses_as "fork --at '$shown'" 2 'INVALID|argument||at||' sessions fork s --at "$bad"
done
refuses_as 'an id that begins with -' 2 'INVALID|argument||id||' sessions show -- -a
check_is 'an id of 64 characters' "$long_ok" "$(tidemark sessions new --id "$long_ok")"

# ---- numbers ----
for bad in -1 0 9223372036854775808 99999999999999999999999 -9223372036854775809 1.5 1e3 0x10 abc '' ' 1' '1 '; do
    [ "$bad" = 0 ] || refuses "list --limit '$bad'" 2 '--limit' sessions list --limit "$bad" # 0: all
    refuses_as "log show --from '$bad'" 2 'INVALID|argument||from||' log show s --from "$bad"
done
for bad in -1 0 9223372036854775808 99999999999999999999999 1.5 '' ' 1'; do
    refuses_as "rollback --to '$bad'" 2 'INVALID|argument||to||' sessions rollback s --to "$bad"
done
refuses_as 'rollback --to a word is a checkpoint that is not there' 3 'NOT_FOUND|checkpoint|s|1e3||list_checkpoints' sessions rollback s --to 1e3
check 'the largest number' tidemark sessions list --limit 9223372036854775807
check_is 'the largest seq' '' "$(tidemark log show s --from 9223372036854775807)"
refuses_as 'the largest seq of a state' 3 'NOT_FOUND|event|s||9223372036854775807|show_log' state s --at 9223372036854775807

# ---- event data ----
append() {
    local name=$1 text=$2
    shift 2
    refuses "append: $name" 2 "$text" log append s "$@"
}
append 'malformed' 'not valid JSON' --kind a.b --data '{"a":}'
append 'unfinished' 'not valid JSON' --kind a.b --data '{"a":1'
append 'nothing' 'JSON' --kind a.b --data ''
append 'an array' 'must be a JSON object' --kind a.b --data '[]'
append 'a number' 'must be a JSON object' --kind a.b --data '1'
append 'something behind it' 'not valid JSON' --kind a.b --data '{} {}'
append 'single quotes' 'not valid JSON' --kind a.b --data "{'a':1}"
append 'a comment' 'not valid JSON' --kind a.b --data '{/**/}'
append 'NaN' 'not valid JSON' --kind a.b --data '{"a":NaN}'
append 'a leading zero' 'not valid JSON' --kind a.b --data '{"a":01}'
append 'a trailing comma' 'not valid JSON' --kind a.b --data '{"a":1,}'
append 'a raw control character' 'control' --kind a.b --data "$(printf '{"a":"\t"}')"
append 'a lone surrogate' 'lone surrogate' --kind a.b --data '{"a":"\ud800x"}'
append 'a lone low surrogate' 'lone surrogate' --kind a.b --data '{"a":"\udc00"}'
append 'invalid UTF-8' 'not valid UTF-8' --kind a.b --data "$(printf '{"a":"\xed\xa0\x80"}')"
append 'a duplicate key' 'duplicate key' --kind a.b --data '{"a":1,"a":2}'
append 'deep nesting' 'nesting deeper' --kind a.b --data "$(repeat 100000 '[')"
append 'deep nesting of objects' 'nesting deeper' --kind a.b --data "$(repeat 10000 '{"a":')"
append 'a seq of its own' "'seq'" --kind a.b --data '{"seq":1}'
append 'a kind of its own' "'kind'" --kind a.b --data '{"kind":"x"}'
append 'a wrong type' "'turn'" --kind message.user --data '{"content":"x","turn":"1"}'
append 'memory that is no object' "'values'" --kind memory.set --data '{"values":[]}'
append 'no kind' '--kind KIND is missing' --data '{}'
append 'a kind is named in what is said of it' "--kind: 'A b' is not an event kind" --kind 'A b'
append 'and what a kind is' 'such as message.user' --kind 'A b'
append 'a kind with a terminal sequence' 'is not an event kind' --kind "$(printf 'a\033[31m')"
check_is 'whose bytes are not shown' '' "$(tr -dc '\033' <"$work/.err")"
append 'an empty kind' 'kind' --kind '' --data '{}'
append 'a kind with a space' 'kind' --kind 'a b' --data '{}'
append 'a kind that is too long' 'kind' --kind "$long" --data '{}'
append 'a kind that is not UTF-8' '--kind' --kind "$(printf '\xff')" --data '{}'
append 'a kind of the library itself' 'session.created' --kind session.created --data '{}'
printf '{"a":"\0"}' >nul.json
append 'a NUL byte' 'NUL' --kind a.b --data @nul.json
printf '\xff\xfe{}' >bom.json
printf '\xef\xbb\xbf{}' >utf8-bom.json
append 'a byte order mark' 'byte order mark' --kind a.b --data @utf8-bom.json
append 'a byte order mark in an argument' 'byte order mark' --kind a.b --data "$(cat utf8-bom.json)"
append 'a file of another encoding' 'not valid JSON' --kind a.b --data @bom.json
refuses_as 'append: a file that is not there' 3 'NOT_FOUND|file||nothing||' log append s --kind a.b --data @nothing
refuses_as 'append: a directory' 6 'DENIED|file||.||replace_file' log append s --kind a.b --data @.
check 'append: 128 levels are taken' tidemark log append "$long_ok" --kind a.b --data "{\"a\":$(repeat 127 '[')$(repeat 127 ']')}"
check_is 'append: numbers keep their text' '"kind":"a.b","a":[1E400,-0,0.10,123456789012345678901234567890]}' \
    "$(tidemark log append "$long_ok" --kind a.b --data '{"a":[1E400,-0,0.10,123456789012345678901234567890]}' >/dev/null; tidemark log show "$long_ok" --last 1 | cut -d, -f 3-)"

# ---- the rest ----
refuses_as 'a store of an unknown kind' 2 'INVALID|argument||store||' --store postgres://x sessions list
refuses_as 'an empty store path' 2 'INVALID|argument||store||' --store '' sessions list
refuses_as 'an empty path behind sqlite:' 2 'INVALID|argument||store||' --store sqlite: sessions list
refuses_as 'an empty path behind files:' 2 'INVALID|argument||store||' --store 'files: ' store init
refuses_as 'a store path that is too long' 2 'INVALID|argument||store||' --store "/$(repeat 5000 x)" sessions list
refuses_as 'a name in it that is too long' 2 'INVALID|file||||' --store "./$(repeat 600 x)" store init
refuses_as 'a kind of store in other letters' 2 'INVALID|argument||store||' --store Files:d store init
refuses_as 'a kind of store alone' 2 'INVALID|argument||store||' --store files store init
TIDEMARK_STORE=SQLite refuses 'also from the environment' 2 "'SQLite' is a kind of store: give sqlite:PATH" store init
refuses_as 'a kind of store that is none, in other letters' 2 'INVALID|argument||store||' --store Postgres:x store init
refuses_as 'the home of somebody else' 2 'INVALID|argument||store||' --store 'files:~nobody/x' store init
refuses_as 'a store on another machine' 2 'INVALID|argument||store||' --store files://x/y store init
check 'three slashes are one' eval "tidemark --store files://$PWD/abs store init && test -f abs/store.json"
check_is 'of a home that is the root as well' "files:$PWD/abs" "$(HOME=/ tidemark --store "files:~$PWD/abs" store init)"
check 'a name that is only like one' tidemark --store ./files store init
check_is 'nothing else was made' '' "$(find . -maxdepth 1 \( -name 'Files*' -o -name 'SQLite*' -o -name '*nobody*' -o -name ' *' \))"
(unset HOME XDG_DATA_HOME TIDEMARK_STORE && refuses 'no home' 2 'give `--store PATH`' sessions list)
(unset TIDEMARK_STORE && export XDG_DATA_HOME=relative && refuses 'a relative XDG directory is passed over' 3 '.local/share/tidemark' sessions list)

tidemark sessions export s >after
check 'nothing of all this was written' cmp before after
check 'the store is whole' tidemark store check
finish
