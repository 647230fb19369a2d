#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A session as people read it: `tidemark sessions transcript`, as text, Markdown, HTML and JSON.
# shellcheck disable=SC2016,SC2317 # scripts hold dollars; functions are called by name
# shellcheck source=tests/cli/lib.sh
. "$TIDE_SOURCE/tests/cli/lib.sh"
unset TMUX
TIDEMARK_STORE=$(store_at "$work/s")
PATH=$(dirname "$TIDE_BIN"):$PATH
export TIDEMARK_STORE PATH TERM=xterm LC_ALL=C.UTF-8

# put ID KIND DATA: one event.
put() {
    tidemark log append "$1" --kind "$2" --data "$3" >/dev/null
}

# ---- a conversation, made by hand so that it has everything ----------------------------------------------------------

tidemark sessions new --id talk --title 'Count <b>letters</b>' >/dev/null                                             # 1
put talk run.started '{"run_id":"r1","loop":"agent"}'                                                                  # 2
put talk message.user '{"turn":1,"content":"list <i>letters</i> & \"more\""}'                                         # 3
put talk message.assistant '{"turn":1,"content":"I look.","tool_calls":[{"id":"c1","name":"bash","args":{"command":"ls\n-a"}},{"id":"c2","name":"read","args":{"path":"x","from":2}}]}' # 4
put talk tool.started '{"call_id":"c1","tool":"bash","turn":1}'                                                        # 5
put talk tool.completed '{"call_id":"c1","tool":"bash","turn":1}'                                                      # 6
put talk message.tool '{"turn":1,"tool_call_id":"c1","tool_name":"bash","content":"one\ntwo\nthree\nfour\n<script>alert(1)</script>\n````\nfence\u202e\u0007"}' # 7
put talk message.tool '{"turn":1,"tool_call_id":"c2","tool_name":"read","content":"no such file","is_error":true}'     # 8
put talk message.assistant '{"turn":2,"content":[{"type":"text","text":"Four <script>alert(2)</script>"},{"type":"image"}]}' # 9
put talk run.interrupted '{"run_id":"r1","reason":"process_restart"}'                                                  # 10
put talk run.started '{"run_id":"r2","loop":"agent","resumed_from":{"run_id":"r1"}}'                                   # 11
put talk message.user '{"turn":3,"content":"a wrong turn"}'                                                            # 12
put talk message.assistant '{"turn":3,"content":"gone wrong","tool_calls":[{"id":"c3","name":"bash","args":{}}]}'      # 13
tidemark sessions rollback talk --to 9 --reason 'that was wrong' >/dev/null                                           # 14
put talk message.user '{"turn":3,"content":"the right turn"}'                                                          # 15
tidemark sessions fork talk --at 9 --id other >/dev/null
put other message.user '{"turn":3,"content":"the other turn"}'

tidemark sessions transcript talk >text
check_is 'the conversation, in order' User,Assistant,Assistant,User,Assistant,User "$(grep -o '^\(User\|Assistant\) ·' text | cut -d' ' -f1 | paste -sd ,)"
check 'what was said' grep -q '^list <i>letters</i> & "more"$' text
check 'a tool in one line, with its argument' grep -q '^✓ bash ls -a$' text
check 'its result is folded' eval "grep -q '^  three$' text && ! grep -q four text && grep -q '^  … 4 more lines$' text"
check 'unless all is asked for' eval 'tidemark sessions transcript talk --full | grep -q "^  four$"'
check 'a tool that failed' eval "grep -A1 '^✗ read ' text | grep -q '^  no such file$'"
check 'where it was cut' grep -q '^— interrupted: its process ended' text
check 'and went on' grep -q '^— resumed' text
check_is 'what a rollback cut off is marked' 3 "$(grep -c 'rolled back$' text)"
check 'and is there' grep -q '^┊ a wrong turn$' text
check 'what came after it is not' eval "grep -B1 '^the right turn$' text | head -n 1 | grep -q 'UTC$'"
check 'the rollback' grep -q '^↶ rolled back to event 9: that was wrong$' text
check 'the fork, where it was made' eval "grep -n 'session other was forked off here' text | cut -d: -f1 >at && [ \$(cat at) -lt \$(grep -n 'a wrong turn' text | cut -d: -f1) ]"
check_is 'nothing moves the terminal' '' "$(tidemark sessions transcript talk --full | tr -dc '\a\033')"
check 'nor turns its letters' eval "! tidemark sessions transcript talk --full | grep -q \$'\u202e'"
tidemark sessions transcript other >fork
check 'a fork has what it inherits' grep -q '^list <i>letters' fork
check 'and says where its own begins' grep -q '^⑂ forked from talk at event 9: everything above is inherited$' fork
check 'not what came after in its parent' eval '! grep -q "wrong turn" fork'
check 'but its own' eval "sed -n '/^⑂ forked from/,\$p' fork | grep -q '^the other turn$'"
tidemark sessions rollback talk --to 13 >/dev/null
check 'a rollback to a later point gives back what was cut off' eval "tidemark sessions transcript talk | grep -q '^a wrong turn$' && tidemark sessions transcript talk | grep -q '^┊ the right turn$'"

# ---- times -----------------------------------------------------------------------------------------------------------

check 'times are local' eval "TZ='<+0530>-5:30' tidemark sessions transcript talk | grep -q '^User · 20.* +0530'"
check 'or UTC' eval "TZ='<+0530>-5:30' tidemark --utc sessions transcript talk | grep -q '^User · 20.* UTC'"
check 'always in JSON' eval "TZ='<+0530>-5:30' tidemark sessions transcript talk --json | json '\$.entries[0].ts' | grep -q 'Z\$'"

# ---- documents -------------------------------------------------------------------------------------------------------

tidemark sessions transcript talk --format html >page.html
cat >page.py <<'END'
import html.parser, sys
class Page(html.parser.HTMLParser):
    stack, seen, text, bad = [], set(), '', []
    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != 'meta': self.stack.append(tag)
        for name, value in attrs:
            if name.startswith('on') or name in ('src', 'href') or 'url(' in (value or ''): self.bad.append(name)
    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag: self.bad.append('/' + tag)
    def handle_data(self, data):
        self.text += data
p = Page()
source = open(sys.argv[1], encoding='utf-8').read()
p.feed(source)
print('open', p.stack, 'bad', p.bad, 'script', 'script' in p.seen, 'i', 'i' in p.seen, 'b', source.count('<b>'))
print('says', all(t in p.text for t in ('list <i>letters</i> & "more"', '<script>alert(1)</script>', '<script>alert(2)</script>', 'Count <b>letters</b>', 'four')))
print('unseen', any(c in source for c in '\u202e\a'))
END
check_is 'the page is whole, and has no tags but its own' "open [] bad [] script False i False b 0|says True|unseen False" "$(python3 page.py page.html | paste -sd '|')"
check 'it forbids itself to load anything' grep -q "Content-Security-Policy\" content=\"default-src 'none'" page.html
check_is 'tools are folded' 3 "$(grep -c '<details><summary>' page.html)"
check 'what was cut off is marked' grep -q '<article class="user cut">' page.html
tidemark sessions transcript talk --format markdown >page.md
check 'Markdown: who said it' grep -q '^## User · ' page.md
check 'prose has no tags' eval "grep -qF 'list \\<i>letters\\</i>' page.md && ! grep -v '^<details>\|^</details>' page.md | sed '/^\`\`\`/,/^\`\`\`/d' | grep -q '^[^\\\\]*<[a-z]'"
check_is 'a fence is longer than those in it' 2 "$(grep -c '^`````$' page.md)"
refuses_as 'a format that is none' 2 'INVALID|argument||format||' sessions transcript talk --format pdf
refuses_as 'two formats' 2 'INVALID|argument||format||' sessions transcript talk --format html --json
refuses_as 'no session' 3 'NOT_FOUND|session|nobody|||list_sessions' sessions transcript nobody

# ---- programs and graphs ---------------------------------------------------------------------------------------------

cat >job.sh <<'END'
#!/bin/sh
tidemark step build -- echo built
tidemark wait go --kind approval --question 'Ship it?' >/dev/null
tidemark step ship -- sh -c 'echo no dock >&2; exit 3'
END
chmod +x job.sh
tidemark exec --session job -- ./job.sh >/dev/null 2>&1
tidemark resume job --input yes >/dev/null 2>&1
tidemark sessions transcript job >text
check 'a step and its output' eval "grep -A1 '^✓ build' text | grep -q '^  built$'"
check 'a question' grep -q '^— waits for approval: Ship it?$' text
check 'and its answer' grep -q '^— answered by local: yes$' text
tidemark exec --session refused -- ./job.sh >/dev/null 2>&1
tidemark resume refused --input no --reason 'not on Friday' >/dev/null 2>&1
check 'an answer with its reason is in words' eval "tidemark sessions transcript refused | grep -qx '— answered by local: no: not on Friday'"
check 'also in the timeline' eval "tidemark sessions timeline refused | grep -q 'Ship it? → no: not on Friday, by local'"
check 'a step that failed' eval "grep -A1 '^✗ ship' text | grep -q 'exit status 3'"
check 'how it ended' grep -q "^— failed: ./job.sh ended with exit status 3 at step 'ship'$" text
cat >graph.json <<'END'
{"tidemark_graph": 1, "id": "g", "entry": "a", "nodes": [{"id": "a", "type": "lua", "code": "return {x = 1}", "outputs": ["x"]}, {"id": "b", "type": "lua", "code": "error('no luck')"}],
 "edges": [{"from": "a", "to": "b"}]}
END
tidemark run graph.json --session g >/dev/null 2>&1
tidemark sessions transcript g >text
check 'nodes of a graph' eval "grep -q '^— node a is complete$' text && grep -q '^— node b failed: .*no luck' text"

begin_screen 'at a terminal'
put talk message.assistant '{"turn":4,"content":"This sentence is longer than forty columns and broken at words."}'
wait_for terminal new-session -d -x 40 -y 100 "$(printf '%q ' "$TIDE_BIN" sessions transcript talk); echo ENDED; read -r _"
wait_for is_shown ENDED
terminal capture-pane -p >screen
check 'a narrow terminal breaks lines at words' eval "grep -q '^This sentence is longer than forty *$' screen && grep -q '^columns and broken at words.$' screen"
finish
