#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What came from elsewhere is data: nothing of it runs before a person has trusted it. What is one's own stays that, wherever it is copied.
# shellcheck disable=SC2016,SC2317 # messages hold backquotes, scripts hold variables; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
forge() { python3 "$TIDE_SOURCE/tests/cli/forge.py" "$@"; }
ln -s "$TIDE_BIN" tidemark
printf 'a key of 16 bytes' >my.key
PATH=$work:$PATH

# took: what really ran, in one line; forgotten when it was looked at.
took() {
    paste -sd ' ' "$work/ran" 2>/dev/null
    rm -f "$work/ran"
}
# as_other COMMAND...: another user, who has another key.
as_other() { XDG_STATE_HOME=$work/state-of-other "$@"; }
in_store() { "$TIDE_BIN" --store "$@"; }
is_due() { [ "$(in_store "$1" why nap --json | json '$.reason')" = due ]; }
# run_due STORE: what is due there, when it is.
run_due() {
    wait_for is_due "$1"
    in_store "$1" recover --run-due 2>&1
}

cat >sleeper <<END
#!/bin/bash
tidemark step a -- sh -c 'echo a >>$work/ran'
tidemark sleep nap 1s
echo woke >>$work/ran
END
cat >asker <<END
#!/bin/bash
tidemark wait ready --kind approval --question 'go?' >/dev/null
tidemark step deed -- sh -c 'echo deed >>$work/ran; exit \$(cat $work/fails 2>/dev/null || echo 0)'
END
chmod +x sleeper asker

# ---- an import ----
check_status 'a program of our own sleeps' 7 tidemark exec --session nap -- ./sleeper
check_is 'and did what comes before' a "$(took)"
tidemark sessions export nap >nap.jsonl
there=$(store_at there)
in_store "$there" sessions import nap.jsonl >/dev/null
check_is 'the state directory has the key, for its owner alone' '600 65' "$(stat -c '%a %s' state/tidemark/origin.key)"
check_status 'no store holds it' 1 grep -rqaF "$(cat state/tidemark/origin.key)" data there.*
run_due "$there" >out
check 'due as it is, recover says what it would take' grep -q 'tidemark .*sessions trust nap' out
check_is 'and runs nothing of it' '' "$(took)"
check 'the doctor does not offer to run it either' eval 'in_store "$there" doctor | grep "nap, due" | grep -q "tidemark .*sessions trust nap. shows what would run$"'
for words in 'resume nap' 'resume nap --now' 'sessions resume nap' 'sessions send nap hello' 'sessions send nap hello --queue' \
    'exec --session nap -- true' 'exec --resume nap' 'token rotate nap'; do
    # shellcheck disable=SC2086 # the words of a command
    check_status "refused: $words" 11 in_store "$there" $words
done
check_is 'nothing ran' '' "$(took)"
refuses_as 'in one line that says what to do' 11 'UNTRUSTED|session|nap|||trust' --store "$there" resume nap
check 'why says so' eval 'in_store "$there" why nap | grep -q "nothing of it runs until it is trusted"'
check_is 'and what moves it' "tidemark --store $there sessions trust nap" "$(in_store "$there" why nap --json | json '$.next[0].command')"
check_is 'lists tell it' 0 "$(in_store "$there" sessions list --json | json '$.sessions[0].trusted')"
check_is 'of our own as well' 1 "$(tidemark sessions show nap --json | json '$.trusted')"
check 'it is shown' eval 'in_store "$there" log show nap | grep -q run.waiting'
check 'it is exported as it came' eval 'in_store "$there" sessions export nap | cmp - nap.jsonl'
check 'it is verified' in_store "$there" sessions verify nap
fork=$(in_store "$there" sessions fork nap)
check_status 'a fork of it is no more trusted' 11 in_store "$there" resume "$fork"
check_status 'nor one from its middle' 11 in_store "$there" resume "$(in_store "$there" sessions fork nap --at 3)"
check_status 'nobody is there to ask: not trusted' 11 in_store "$there" sessions trust nap
check 'to look at it changes nothing' eval 'in_store "$there" sessions trust nap --show | grep -qF "[\"./sleeper\"]"'
check_is 'in JSON, too' './sleeper' "$(in_store "$there" sessions trust nap --show --json | json '$.would_run.program.argv[0]')"
check 'trusted' in_store "$there" sessions trust nap --yes
check_is 'the log says so' session.trusted "$(in_store "$there" log show nap --json | tail -n 1 | json '$.kind')"
run_due "$there" >/dev/null
check_is 'now it goes on, and repeats nothing' woke "$(took)"
check_is 'what is trusted already is not trusted again' "$(in_store "$there" log show nap | wc -l)" \
    "$(in_store "$there" sessions trust nap --yes >/dev/null && in_store "$there" log show nap | wc -l)"
check_status 'the fork from before is not' 11 in_store "$there" resume "$fork"
check 'a fork from now on is' eval '[ "$(in_store "$there" sessions show "$(in_store "$there" sessions fork nap)" --json | json "$.trusted")" = 1 ]'

# ---- what recovery writes down ----
cat >slow <<END
#!/bin/bash
tidemark step once -- sh -c 'echo begun >>$work/ran; exec sleep 60'
END
chmod +x slow
tidemark exec --session cut -- ./slow >/dev/null 2>&1 &
pid=$!
wait_for test -s ran
kill -KILL $pid
wait $pid 2>/dev/null
took >/dev/null
tidemark sessions export cut | in_store "$there" sessions import >/dev/null
in_store "$there" recover --run-due --auto-resume all >/dev/null
check_is 'an interruption is recorded' 1 "$(in_store "$there" log show cut --kind run.interrupted | wc -l)"
check_is 'and nothing is resumed' '' "$(took)"
check_status 'that event makes nothing ours' 11 in_store "$there" resume cut
check 'a person may cancel it' in_store "$there" cancel cut

# ---- tokens and approvals ----
echo 7 >fails
check_status 'a program of ours waits for an approval' 7 tidemark exec --session ask --token-fd 3 -- ./asker 3>token
tidemark sessions export ask >ask.jsonl
check_status 'approved, its deed fails' 7 tidemark resume ask --input yes
check_is 'it was tried' deed "$(took)"
tidemark sessions export ask >approved.jsonl
rm -f fails
in_store "$there" sessions import ask.jsonl >/dev/null
check_is 'an import revokes the token' imported "$(in_store "$there" log show ask --json --kind token.revoked | json '$.reason')"
check 'trusted, it can be looked at again' in_store "$there" sessions trust ask --yes
check_status 'the secret that was given away does not answer' 8 in_store "$there" resume ask --input yes --token "$(cat token)"
in_store "$there" sessions delete ask >/dev/null
in_store "$there" sessions import approved.jsonl >/dev/null
in_store "$there" sessions trust ask --yes >/dev/null
check_status 'what was approved elsewhere is asked again here' 7 in_store "$there" resume ask --retry deed
check_is 'and not done before that' '' "$(took)"
check 'approved here' in_store "$there" resume ask --input yes --retry deed
check_is 'it is done' deed "$(took)"

# ---- a chat with a server of its own ----
cat >server.py <<'END'
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    open("asked", "a").write("asked\n")
    c.close()
END
python3 server.py >port &
server=$!
trap 'kill $server 2>/dev/null; remove_work' EXIT
wait_for test -s port
url=http://127.0.0.1:$(cat port)
mkdir victim
echo 'BEGIN PRIVATE KEY' >victim/id_key
echo '{"turns":[{"calls":[{"name":"read","args":{"path":"id_key"}}]},{"text":"done"}]}' >script.json
(cd victim && tidemark chat -p 'read it' --script ../script.json </dev/null >/dev/null)
talk=$(tidemark sessions list --ids | head -n 1)
tidemark log append "$talk" --kind session.updated --data "{\"provider\":{\"type\":\"openai\",\"model\":\"m\",\"base_url\":\"$url\"}}" >/dev/null
tidemark sessions export "$talk" | in_store "$there" sessions import >/dev/null
for words in "chat --resume $talk -p more" "resume $talk" "sessions send $talk more"; do
    # shellcheck disable=SC2086 # the words of a command
    check_status "an imported chat: ${words%% "$talk"*}" 11 env OPENAI_API_KEY=sk-of-the-user-12345 "$TIDE_BIN" --store "$there" $words
done
check_is 'its server was asked nothing' '' "$(cat asked 2>/dev/null)"
in_store "$there" sessions trust "$talk" >out 2>/dev/null
check 'trust shows the server' holds "base_url \"$url\"" <out
check 'the directory' holds "directory    \"$work/victim\"" <out
check 'the tools' holds '"bash"' <out
kill $server
wait $server 2>/dev/null
trap remove_work EXIT

# ---- a graph ----
echo '{"tidemark_graph":1,"id":"g","entry":"a","nodes":[{"id":"a","type":"function","program":["sh","-c","echo a >>'"$work"'/ran; echo {}"]},
 {"id":"b","type":"function","retries":0,"program":["sh","-c","echo b >>'"$work"'/ran; exit 3"]}],"edges":[{"from":"a","to":"b"}]}' >g.json
tidemark run g.json --session graph >/dev/null 2>&1
check_is 'a graph of ours fails at its second node' 'a b' "$(took)"
tidemark sessions export graph | in_store "$there" sessions import >/dev/null
for words in 'sessions resume graph' 'resume graph' 'run g.json --session graph'; do
    # shellcheck disable=SC2086 # the words of a command
    check_status "an imported graph: $words" 11 in_store "$there" $words
done
check_status 'a dry run is refused for the same reason' 11 in_store "$there" sessions resume graph --dry-run
check_is 'nothing of it ran' '' "$(took)"
check 'trust shows what its nodes run' eval 'in_store "$there" sessions trust graph --show | grep -qF "exit 3"'
in_store "$there" sessions trust graph --yes >/dev/null
in_store "$there" sessions resume graph >/dev/null 2>&1
check_is 'trusted, it goes on where it was' b "$(took)"

# ---- a store as a whole: copied, cloned, restored ----
own=$(store_at own)
check_status 'a store of our own' 7 in_store "$own" exec --session nap -- ./sleeper
took >/dev/null
cp -r "${own#files:}" "$work/moved.${own##*.}"
moved=$(store_at moved)
check_status 'another user cannot run what is in a copy' 11 as_other in_store "$moved" resume nap
as_other run_due "$moved" >/dev/null
check_is 'nor does recover' '' "$(took)"
as_other in_store "$moved" log append nap --kind note --data '{}' >/dev/null
check_status 'what another wrote behind ours makes it theirs' 11 in_store "$moved" resume nap
check 'a copy of our own runs as before' eval 'cp -r "${own#files:}" "copy.${own##*.}" && run_due "$(store_at copy)"'
check_is 'it did' woke "$(took)"
check 'store copy keeps the proofs' tidemark store copy "$own" "$(store_at carried)"
check_is 'also to the other kind of store' 'carried other' "$(tidemark store copy "$own" files:other >/dev/null && tidemark store copy "$own" sqlite:other.db >/dev/null && echo carried other)"
for copy in "$(store_at carried)" files:other sqlite:other.db; do
    run_due "$copy" >/dev/null
    check_is "what $copy holds runs" woke "$(took)"
done
printf 'another key of digests' >digest.key
tidemark store copy "$own" "$(store_at keyed)" --dst-key-file digest.key >/dev/null
in_store "$(store_at keyed)" --key-file digest.key recover --run-due >/dev/null 2>&1
check_is 'and under another key of digests' woke "$(took)"
check 'all at once' eval 'as_other in_store "$moved" store trust --show | grep -q "1 not trusted"'
check_status 'nobody is there to ask' 11 as_other in_store "$moved" store trust
check 'trusted by the other' as_other in_store "$moved" store trust --yes
as_other run_due "$moved" >/dev/null
check_is 'now it runs there' woke "$(took)"

# ---- a copy that continues what is here ----
check_status 'a store of ours, and a copy of it' 7 in_store "$(store_at here)" exec --session nap -- ./sleeper
took >/dev/null
cp -r "$(basename "$(store_at here)" | sed 's/^files://')" "$(basename "$(store_at evil)" | sed 's/^files://')"
as_other in_store "$(store_at evil)" sessions trust nap --yes >/dev/null
as_other in_store "$(store_at evil)" exec --session nap -- sh -c "tidemark sleep evil 1ms; echo evil >>$work/ran" >/dev/null 2>&1
took >/dev/null
check 'another went on there, and that is copied back' tidemark store copy "$(store_at evil)" "$(store_at here)"
check_status 'what came with it is not ours' 11 in_store "$(store_at here)" resume nap --now
in_store "$(store_at here)" recover --run-due --auto-resume all >/dev/null 2>&1
check_is 'nothing of it runs' '' "$(took)"

# ---- what a log says of permissions ----
call() { echo "{\"id\":\"$1\",\"name\":\"bash\",\"args\":{\"command\":\"echo $2 >>$work/ran\"}}"; }
provider="{\"provider\":{\"type\":\"script\",\"model\":\"m\",\"script\":\"$work/end.json\"},\"working_dir\":\"$work\",\"agent\":\"chat\"}"
echo '{"turns":[{"text":"a"},{"text":"b"},{"text":"c"}]}' >end.json
begun='{"turn":1,"call_id":"c1","tool":"bash","args_digest":"0","effect":"pure","attempt":0}'
start='{"run_id":"run_1","loop":"agent"}'
said='{"message_id":"m1","turn":1,"content":"go"}'
forged begun session.created "$provider" run.started "$start" message.user "$said" \
    message.assistant "{\"message_id\":\"m2\",\"turn\":1,\"content\":\"\",\"tool_calls\":[$(call c1 begun)]}" tool.started "$begun" >begun.jsonl
forged twice session.created "$provider" run.started "$start" message.user "$said" \
    message.assistant "{\"message_id\":\"m2\",\"turn\":1,\"content\":\"\",\"tool_calls\":[$(call c1 evil),$(call c1 good)]}" >twice.jsonl
forged elsewhere session.created "$provider" run.started "$start" message.user "$said" \
    message.assistant "{\"message_id\":\"m2\",\"turn\":1,\"content\":\"\",\"tool_calls\":[$(call c1 evil)]}" \
    message.tool '{"message_id":"m3","turn":1,"node":"zz","tool_call_id":"c1","tool_name":"bash","content":"x"}' >elsewhere.jsonl
forged=$(store_at forged)
for case in begun twice elsewhere; do
    check "forged: $case" in_store "$forged" sessions import $case.jsonl
    in_store "$forged" sessions trust $case --yes >shown
    check "what it asks for is shown ($case)" grep -q "echo [a-z]* >>" shown
    [ $case = begun ] || check 'all of it' grep -q 'echo evil' shown
    in_store "$forged" chat --resume $case </dev/null >/dev/null 2>&1
    check_is 'and is not run without being asked about here' '' "$(took)"
done

# ---- messages that an append would refuse ----
forged bare session.created "$provider" run.started "$start" message.user '{"turn":1,"said":"hi"}' message.assistant '{"turn":1}' \
    message.tool '{"turn":1}' run.completed '{"run_id":"run_1"}' >bare.jsonl
check 'messages without content are taken in' in_store "$forged" sessions import bare.jsonl
check_is 'and read as they are' '"kind":"message.user","turn":1,"said":"hi"}' "$(in_store "$forged" log show bare --from 3 --to 3 | cut -d, -f 3-)"
check 'also as a conversation' in_store "$forged" sessions transcript bare
check 'which goes on' eval 'in_store "$forged" sessions trust bare --yes >/dev/null && in_store "$forged" chat --resume bare -p more </dev/null'
check_status 'no more of them can be appended' 2 in_store "$forged" log append bare --kind message.user --data '{"turn":1,"said":"hi"}'

# ---- what was answered under another name ----
sed 's/"wait_kind":"approval"/"wait_kind":"input"/' approved.jsonl >renamed.jsonl
python3 - renamed.jsonl >renamed2.jsonl <<'END'
import hashlib, json, struct, sys
from datetime import datetime, timezone
text = lambda b: struct.pack("<q", len(b)) + b
lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
head, before, out = json.loads(lines[0]), bytes(32), []
for line in lines[1:]:
    e = json.loads(line)
    front, mark = line.rsplit(',"tidemark":', 1)
    begin = '{"seq":%d,"ts":"%s","kind":"%s"' % (e["seq"], e["ts"], e["kind"])
    body = ("{" + front[len(begin) + 1:] + "}").encode()
    ms = round(datetime.strptime(e["ts"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp() * 1000)
    before = hashlib.blake2b(before + text(head["session_id"].encode()) + struct.pack("<qqq", e["seq"], e["tidemark"]["epoch"], ms) + text(e["kind"].encode()) + text(body), digest_size=32).digest()
    out.append(line.replace(e["tidemark"]["digest"], before.hex()))
head["head_digest"] = before.hex()
print(json.dumps(head, separators=(",", ":")))
print("\n".join(out))
END
check 'an approval under another name' in_store "$forged" sessions import renamed2.jsonl
in_store "$forged" sessions trust ask --yes >/dev/null
check_status 'is asked again as well' 7 in_store "$forged" resume ask --retry deed
check_is 'before anything is done' '' "$(took)"

# ---- behind the trust ----
check_status 'what was before it was not shown: no rollback to there' 11 in_store "$forged" sessions rollback ask --to 2
check_status 'and a fork from there is looked at first' 11 in_store "$forged" resume "$(in_store "$forged" sessions fork ask --at 4)"

# ---- the key in a log ----
in_store "$own" exec --session leak -- sh -c "tidemark step a -- cat $work/state/tidemark/origin.key" >/dev/null 2>&1
check_status 'a program that prints the key leaves it in no log' 1 grep -rqaF "$(cat state/tidemark/origin.key)" own.*
TIDEMARK_ORIGIN_KEY_FILE=my.key in_store "$(store_at by-key)" exec --session due -- ./sleeper >/dev/null 2>&1
took >/dev/null
wait_for eval '[ "$(TIDEMARK_ORIGIN_KEY_FILE=my.key in_store "$(store_at by-key)" why due --json | json "$.reason")" = due ]'
TIDEMARK_ORIGIN_KEY_FD=5 in_store "$(store_at by-key)" recover --run-due >out 2>&1 5< <(cat my.key)
check_is 'a key from a pipe is there for what recover starts' woke "$(took)"

# ---- edits ----
for how in all one none; do
    edited=$(store_at "edited-$how")
    cp -r "${own#files:}" "${edited#files:}"
    forge "$edited" nap 2 ./sleeper /bin/true "$how"
    if [ $how = all ] && on_files; then # as a clone: without what this machine keeps beside the logs
        rm -rf "${edited#files:}"/{live,boots,cache} "${edited#files:}"/sessions/nap.{mark,json,tokens.json}
    fi
    in_store "$edited" resume nap --now >out 2>&1 && ended=0 || ended=$?
    check "an edited program does not run (digests made right: $how): refused by name" eval '[ $ended = 11 -o $ended = 5 ] && grep -q nap out'
    check_is 'nothing of it does' '' "$(took)"
    [ $how = none ] && check 'what is before the damage can be forked' in_store "$edited" sessions fork nap --at 1
    [ $how = all ] && on_files && check_is 'with a chain that is right in itself it is not ours any more' 11 "$ended"
done

# ---- what a person is shown ----
printf '#!/bin/sh\nexit 3\n' >$'tricky\e[2J\u202e'
chmod +x tricky*
in_store "$own" exec --session tricky -- ./tricky* >/dev/null 2>&1
as_other in_store "$moved" sessions import <(in_store "$own" sessions export tricky) >/dev/null
as_other in_store "$moved" sessions trust tricky >out 2>/dev/null
check 'controls and marks that turn the text are spelled out' holds 'tricky\u001b[2J\u202e' <out
check_status 'and none reaches the terminal' 1 grep -qP '\x1b\[2J|\x{202e}' out

# ---- the key ----
other=$(store_at by-key)
TIDEMARK_ORIGIN_KEY_FILE=my.key in_store "$other" exec --session nap -- ./sleeper >/dev/null 2>&1
took >/dev/null
check_status 'under another key it is foreign' 11 in_store "$other" resume nap
check 'the same key from the environment' env TIDEMARK_ORIGIN_KEY='a key of 16 bytes' "$TIDE_BIN" --store "$other" resume nap --now
check_is 'it runs' woke "$(took)"
TIDEMARK_ORIGIN_KEY_FILE=my.key in_store "$other" exec --session nap2 -- ./sleeper >/dev/null 2>&1
took >/dev/null
check 'and from a descriptor' eval 'TIDEMARK_ORIGIN_KEY_FD=5 in_store "$other" resume nap2 --now 5<my.key'
check_is 'it runs, too' woke "$(took)"
TIDEMARK_ORIGIN_KEY=short refuses 'a key that is too short' 2 'a key of origin has 16 to 64 bytes' --store "$other" sessions list
TIDEMARK_ORIGIN_KEY_FILE=nowhere refuses 'a key that is not there' 3 'TIDEMARK_ORIGIN_KEY_FILE' --store "$other" sessions list
TIDEMARK_ORIGIN_KEY_FD=x refuses 'a descriptor that is none' 2 'not a descriptor' --store "$other" sessions list
chmod 644 state/tidemark/origin.key
check 'a key that others can read proves nothing, and that is said' eval 'in_store "$other" sessions new 2>&1 | grep -q "can be read by others"'
chmod 600 state/tidemark/origin.key
check 'a lost key makes everything foreign, and says so' eval 'XDG_STATE_HOME=$work/state-new in_store "$own" sessions new 2>&1 | grep -q "a new key of origin was made"'
check_is 'once' '' "$(XDG_STATE_HOME=$work/state-new in_store "$own" sessions new 2>&1 >/dev/null)"
mkdir state-closed && chmod 500 state-closed
if [ "$(id -u)" -ne 0 ]; then
    check 'no key can be made: it begins all the same, and says what that means' \
        eval 'XDG_STATE_HOME=$work/state-closed in_store "$own" exec -- true 2>&1 | grep -q "no key of origin"'
else
    touch state-file
    check 'no key can be made: it begins all the same, and says what that means' \
        eval 'XDG_STATE_HOME=$work/state-file in_store "$own" exec -- true 2>&1 | grep -q "no key of origin"'
fi

# ---- stores from before there were proofs ----
if on_files; then
    skip 'a store of an earlier version in the default place is ours' 'the default place is a database'
else
    unset TIDEMARK_STORE
    mkdir -p elsewhere old/tidemark
    cp data/tidemark/tidemark.db elsewhere/
    sqlite3 elsewhere/tidemark.db 'ALTER TABLE events DROP COLUMN proof; PRAGMA user_version=4; PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
    # found DIRECTORY: what `sessions new` says when a store of an earlier version is the default one there, and whether it is ours.
    found() {
        rm -f "$1"/tidemark/tidemark.db*
        mkdir -p "$1/tidemark"
        cp elsewhere/tidemark.db "$1/tidemark/"
        XDG_DATA_HOME=$work/$1 tidemark sessions new 2>"$1.err" >/dev/null
        grep 'an earlier version' "$1.err"
        XDG_DATA_HOME=$work/$1 tidemark sessions show nap --json | json '$.trusted'
    }
    ours=$(printf '%s\n1' 'tidemark: the store was made by an earlier version: its sessions are taken as yours, and may run')
    foreign=$(printf '%s\n0' 'tidemark: the store was made by an earlier version: its sessions count as foreign until you trust them')
    check_is 'a store of an earlier version in the default place is ours' "$ours" "$(found old)"
    check_is 'once: one that is put there later is not' "$foreign" "$(found old)"
    check 'it is trusted as any other' eval 'XDG_DATA_HOME=$work/old tidemark store trust --yes >/dev/null'
    check_is 'a place where this version made the first store adopts none' "$foreign" "$(found data)"
    check_is 'nor does one that was only written to' "$foreign" "$(XDG_DATA_HOME=$work/fresh tidemark sessions new >/dev/null 2>&1; found fresh)"
    check_is 'reading notes nothing' "$ours" "$(XDG_DATA_HOME=$work/read tidemark sessions list >/dev/null 2>&1; found read)"
    if [ "$(id -u)" != 0 ]; then
        check_is 'where it cannot be noted none is adopted' 0 "$(mkdir -p shut && chmod 500 shut; TIDEMARK_ORIGIN_KEY=0123456789abcdef XDG_STATE_HOME=$work/shut found unnoted | tail -n 1)"
    fi
    TIDEMARK_STORE=elsewhere/tidemark.db refuses 'elsewhere reading names the command that upgrades it' 6 'older version 4: `tidemark store init` upgrades it' sessions list
    in_store elsewhere/tidemark.db store init >/dev/null
    check 'which does' in_store elsewhere/tidemark.db sessions list
    check_is 'elsewhere it is asked about' 0 "$(in_store elsewhere/tidemark.db sessions show nap --json | json '$.trusted')"
    check 'and trusted as a whole' in_store elsewhere/tidemark.db store trust --yes
    check_is 'once and for all' 1 "$(in_store elsewhere/tidemark.db sessions show nap --json | json '$.trusted')"
fi
finish
