# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What is offered is tried. Read by tests/lib.sh when TIDEMARK_TEST_OFFERS names a directory: every command that a session's
# shellcheck disable=SC2016,SC2154 # backquotes in patterns; work is of tests/lib.sh
# `next` or an error of the test offers is recorded with a copy of the test's directory as it was then, each kind of offer once.
# At the end of the test each is run in its copy: it must not be refused, and must not leave everything as it was.
#
# An offer is of a kind: the session's kind, status, outcome and reason, and the command without ids. Words in capitals are filled
# in as a person would. What only looks (why, log show, …) has to succeed.

offers=$TIDEMARK_TEST_OFFERS/$(basename "$0" .sh)-${TIDEMARK_TEST_STORE:-sqlite}
rm -rf "$offers"
mkdir -p "$offers"
: >"$offers/kinds"
offers_bin=$TIDE_BIN

# offer KIND ID COMMAND: records it. Only commands of ours: a signal to a process cannot be tried in a copy.
offer() {
    local n
    case $3 in 'tidemark '*) ;; *) return 0 ;; esac
    printf '%s\n' "$1" >>"$offers/kinds"
    n=$offers/$(wc -l <"$offers/kinds")
    mkdir "$n"
    cp -a "$work" "$n/work" 2>/dev/null
    printf '%s\n' "$1" >"$n/kind"
    printf '%s\n' "$2" >"$n/session"
    printf '%s\n' "$3" >"$n/command"
    printf '%s\n' "$PWD" >"$n/cwd"
    printf '%s\n' "$offer_store" >"$n/store"
    export -p | grep -vE '^declare -x (PWD|OLDPWD|SHLVL)|^declare -[a-z]*r' >"$n/env"
}

# offer_plain COMMAND: without the store, the key and the settings that it names.
offer_plain() {
    sed -E "s/^tidemark( --(store|key-file|config) ('[^']*'|\\\\'|[^ '])+)+/tidemark/" <<<"$1"
}

# offer_given COMMAND: those options.
offer_given() {
    sed -nE "s/^tidemark(( --(store|key-file|config) ('[^']*'|\\\\'|[^ '])+)+).*/\1/p" <<<"$1"
}

# new_kinds: of lines "about|id|command" on standard input those of a kind that is not recorded, as "kind|id|command".
new_kinds() {
    awk -F '|' -v kinds="$offers/kinds" '
        BEGIN { while ((getline line <kinds) > 0) seen[line] = 1 }
        {
            command = $3
            for (i = 4; i <= NF; i++) command = command "|" $i
            kind = $1 ": " command
            if ($2 != "") { n = split(kind, words, " "); kind = ""; for (i = 1; i <= n; i++) kind = kind (i > 1 ? " " : "") (words[i] == $2 ? "ID" : words[i]) }
            gsub(/ --(store|key-file|config) (\047[^\047]*\047|\\\047|[^ \047])+/, "", kind)
            gsub(/(sess|run|ckpt|tok|rt)_[A-Za-z0-9_]+/, "ID", kind)
            if (!(kind in seen)) { seen[kind] = 1; print kind "|" $2 "|" command }
        }'
}

record() {
    local kind id command
    while IFS='|' read -r kind id command; do
        offer "$kind" "$id" "$command"
    done
}

# offers_in LIST: what the sessions of a list in JSON offer, as new_kinds takes it.
offers_in() {
    sqlite3 -separator '|' :memory: "
        SELECT ifnull(json_extract(s.value, '\$.kind'), '') || ' ' || json_extract(s.value, '\$.status') || ' ' ||
               json_extract(s.value, '\$.outcome') || ' ' || ifnull(json_extract(s.value, '\$.reason'), ''),
               json_extract(s.value, '\$.session_id'), json_extract(n.value, '\$.command')
        FROM json_each(CAST(readfile('$1') AS TEXT), '\$.sessions') s, json_each(s.value, '\$.next') n
        WHERE json_extract(n.value, '\$.command') IS NOT NULL" 2>/dev/null
}

# offers_of_sessions: what the store's sessions offer now.
offers_of_sessions() {
    "$offers_bin" ${offer_store:+--store "$offer_store"} sessions list --json >"$offers/list" 2>/dev/null </dev/null || return 0
    offers_in "$offers/list" | new_kinds >"$offers/new"
    record <"$offers/new"
}

# offers_of_error STATUS FILE BYTES: what stands behind so many bytes of the file that standard error went to.
offers_of_error() {
    tail -c "+$(($3 + 1))" "$2" 2>/dev/null | grep -a '^tidemark: \|^{"error"' |
        grep -aoE '`tidemark [^`]*`|"command":"tidemark ([^"\\]|\\.)*"' |
        sed -E '/^"/ { s/^"command":"(.*)"$/\1/; s/\\(.)/\1/g }; s/^`(.*)`$/\1/' | sed "s/^/error $1||/" | new_kinds >"$offers/new"
    record <"$offers/new"
}

# without OPTION ARGS...: the arguments, quoted, without that option, each in front of its value if it has one.
without() {
    local option=$1 word skip=no
    shift
    for word in "$@"; do
        case $skip$word in
            "no$option") skip=value && continue ;;
            "no$option="*) continue ;;
            value-*) ;;
            value*) skip=no && "$offers_bin" help "$1" "$2" 2>/dev/null | grep -q -- "$option [A-Z]" && continue ;;
        esac
        skip=no
        printf ' %q' "$word"
    done
}

# with OPTIONS ARGS...: the arguments, quoted, and these options of a shell's line before what belongs to a program.
with() {
    local options=$1 word
    shift
    for word in "$@"; do
        [ "$word" != -- ] || { printf ' %s' "$options" && options=''; }
        printf ' %q' "$word"
    done
    printf ' %s' "$options"
}

# takes OPTION COMMAND...: whether the command that begins with these words has it.
takes() {
    local option=${1%% *}
    "$offers_bin" help "$2" 2>/dev/null | grep -q -- " $option\b" || "$offers_bin" help "$2" "${3:-}" 2>/dev/null | grep -q -- " $option\b"
}

# offers_of_repeat STATUS FILE BYTES ARGS...: the same command again, with what the error adds to it, or takes away. Not where a
# value is a person's to find, where input was read, and where there is more than one obstacle; nor what a step of a program said.
offers_of_repeat() {
    local status=$1 said hint
    said=$(tail -c "+$(($3 + 1))" "$2" 2>/dev/null | grep -a '^tidemark: ')
    shift 3
    case " $* " in *' - '* | *' log append '*) return 0 ;; esac
    case $said in *'(and '[0-9]*' more)'*) return 0 ;; esac
    grep -aoE '(omit )?`--[^`]*`' <<<"$said" | tr -d '`' | while IFS= read -r hint; do
        case $1 in exec | resume) takes "${hint#omit }" "$@" || continue ;; esac
        case $hint in
            'omit '*) printf 'error %s||tidemark%s\n' "$status" "$(without "${hint#omit }" "$@")" ;;
            *' '[A-Z]*) ;;
            *) printf 'error %s||tidemark%s\n' "$status" "$(with "$hint" "$@")" ;;
        esac
    done | new_kinds >"$offers/new"
    record <"$offers/new"
}

tidemark() {
    local status file='' bytes=0 previous='' word offer_store=''
    for word in "$@"; do
        [ "$previous" != --store ] || offer_store=$word
        case $word in --store=*) offer_store=${word#--store=} ;; --) break ;; esac
        previous=$word
    done
    file=$(readlink "/proc/$BASHPID/fd/2")
    [ -f "$file" ] || file=''
    [ -z "$file" ] || bytes=$(stat -c %s "$file")
    "$offers_bin" "$@"
    status=$?
    # Inside a run, and where the test stands in for something else, nothing is looked at.
    [ -z "${TIDEMARK_RUN:-}" ] || return $status
    {
        exec 9>"$offers/lock"
        flock 9
        [ "$status" -eq 0 ] || [ -z "$file" ] || { offers_of_error "$status" "$file" "$bytes" && offers_of_repeat "$status" "$file" "$bytes" "$@"; }
        offers_of_sessions
        exec 9>&-
    } </dev/null >/dev/null 2>&1
    return $status
}

# ---- at the end ----

# offer_checkpoint ID: the newest one that the session can be resumed from without a further decision.
offer_checkpoint() {
    local one
    for one in $("$offers_bin" ${store:+--store "$store"} sessions checkpoints "$1" --ids 2>/dev/null </dev/null); do
        "$offers_bin" ${store:+--store "$store"} sessions resume "$1" --checkpoint "$one" --dry-run >/dev/null 2>&1 </dev/null && break
    done
    echo "$one"
}

# offer_program ID: the program of the session and its arguments, as a shell reads them.
offer_program() {
    "$offers_bin" ${store:+--store "$store"} log show "$1" --kind run.started --json 2>/dev/null </dev/null | tail -n 1 >"$offers/started"
    sqlite3 :memory: "SELECT value FROM json_each(CAST(readfile('$offers/started') AS TEXT), '\$.argv')" 2>/dev/null |
        while IFS= read -r word; do printf '%q ' "$word"; done
}

# offer_filled COMMAND: words in capitals as a person would fill them in.
offer_filled() {
    local checkpoint='' program=''
    case $1 in *NEW.json*) # a person mends it: here it may take more steps
        "$offers_bin" ${store:+--store "$store"} log show "$(sed -E 's/.* resume ([^ ]+).*/\1/' <<<"$1")" --kind run.started --json 2>/dev/null </dev/null | grep '"graph":{' | tail -n 1 >"$offers/started"
        sqlite3 :memory: "SELECT json_set(json_extract(CAST(readfile('$offers/started') AS TEXT), '\$.graph'), '\$.max_steps', 1000)" >graph.json 2>/dev/null
        ;;
    esac
    case $1 in *CHECKPOINT*) checkpoint=$(offer_checkpoint "$(sed -E 's/.* resume ([^ ]+).*/\1/' <<<"$1")") ;; esac
    case $1 in *' --ensure '*) program=$(offer_program "$(sed -E 's/.* --session ([^ ]+).*/\1/' <<<"$1")") ;; esac
    set -- "${1/%-- PROGRAM/-- ${program:-true}}"
    sed -E "s/ PROGRAM\$/ true/; s/ -- PROGRAM\b/ -- true/; s/\b(GRAPH|NEW)\.json/graph.json/; s/\bTEXT\b/more/g; s/=JSON/=1/g; s/=…/=1/g
        s/\bCHECKPOINT\b/$checkpoint/; s/(chat --resume [^ ]*|^tidemark.* chat)\$/\1 -p more/; s/(sessions trust [^ ]*)\$/\1 --yes/" <<<"$1"
}

# What only shows something.
offer_looks() {
    case $(offer_plain "$1") in
        *' --help' | *' --dry-run'* | *' --show' | 'tidemark help'*) true ;;
        'tidemark why '* | 'tidemark log show '* | 'tidemark state '* | 'tidemark doctor'*) true ;;
        'tidemark sessions list'* | 'tidemark sessions show '* | 'tidemark sessions checkpoints '* | 'tidemark sessions timeline '*) true ;;
        'tidemark sessions verify '* | 'tidemark sessions inspect '* | 'tidemark store check'* | 'tidemark store info'*) true ;;
        'tidemark config list'* | 'tidemark config get '* | 'tidemark config check'* | 'tidemark graph check '* | 'tidemark graph show '* | 'tidemark schema'*) true ;;
        *) false ;;
    esac
}

# offer_state GIVEN: what the store holds, in a few lines: which sessions, how far, and the settings.
offer_state() {
    eval "\"$offers_bin\" $1 sessions list --json" 2>/dev/null </dev/null | grep -o '"session_id":"[^"]*"\|"last_seq":[0-9]*\|"trusted":[a-z]*'
    eval "\"$offers_bin\" $1 store info" >/dev/null 2>&1 </dev/null && echo store
    cat "$work/config/tidemark/config.json" 2>/dev/null
    find "$work" -name '*.json' -newer "$offers/began" 2>/dev/null
}

# offer_judged DIRECTORY STATUS SAME: whether it worked. A program's exit status is its own: what counts is that something was done.
offer_judged() {
    if [ "$2" -eq 5 ] && grep -q 'is damaged\|^damaged ' "$offers/out"; then
        true # damage is found by whoever reads it: no list can know of it
    elif offer_looks "$(cat "$1/command")"; then
        ! is_refusal "$2" || grep -q '^problem' "$offers/out" # a check that says what is wrong
    else
        # Or what it needs is not there: a program that the test took away, a variable that it set for one call.
        [ "$3" = no ] || [ "$2" -eq 126 ] || [ "$2" -eq 127 ] || grep -q 'is not set: set it\|: no key for \|no key of origin' "$offers/out"
    fi
}

# offer_try DIRECTORY: one, where the test was. What moved on while it was copied is not offered there any more, and left out.
offer_try() {
    local command store given before id same=no status
    id=$(cat "$1/session")
    store=$(cat "$1/store")
    rm -rf "$work"
    mv "$1/work" "$work"
    touch "$offers/began"
    mkdir -p "$offers/bin"
    ln -sf "$offers_bin" "$offers/bin/tidemark"
    (
        for name in $(env | sed -n 's/^\(TIDEMARK_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
        # shellcheck disable=SC1091
        . "$1/env"
        cd "$(cat "$1/cwd")" 2>/dev/null || cd "$work" || exit 1
        command=$(offer_filled "$(cat "$1/command")")
        : >"$offers/list"
        if [ -n "$id" ]; then
            tidemark_now ${store:+--store "$store"} sessions list --json >"$offers/list" 2>/dev/null
            offers_in "$offers/list" | cut -d '|' -f 2- | grep -qxF -- "$id|$(cat "$1/command")" || exit 0
        fi
        case $command in *'[redacted:'*) exit 0 ;; esac # the person gives what is not stored
        given=$(offer_given "$command")
        before=$(offer_state "$given")
        timeout 5 env "PATH=$offers/bin:$PATH" bash -c "$command" </dev/null >"$offers/out" 2>&1
        status=$?
        [ "$before" != "$(offer_state "$given")" ] || same=yes
        offer_judged "$1" $status $same ||
            echo "exit status $status, unchanged: $same: $(cat "$1/kind"): $command: $(head -c 400 "$offers/out" | tr '\n' ' ')"
        # Going on as offered must not end where another command is needed: the first one was the wrong one.
        case $(offer_plain "$(cat "$1/command")") in 'tidemark resume '* | 'tidemark sessions resume '*)
            grep -aoE 'tidemark: .*' "$offers/out" | grep -aoE '`tidemark [^`]*resume [^`]*`' | tr -d '`' | grep -vxF -- "$(cat "$1/command")" | grep -- '--retry\|--accept-change' |
                grep -vxFf <(offers_in "$offers/list" | cut -d '|' -f 3-) |
                sed "s|^|ends where another is needed: $(cat "$1/kind"): $command: |"
            ;;
        esac
    ) 2>/dev/null
}

tidemark_now() {
    "$offers_bin" "$@" </dev/null
}

offers_try_all() {
    local n
    cd / || return
    # Its socket is in the directory that is moved away.
    [ ! -S "$work/terminal" ] || tmux -S "$work/terminal" kill-server 2>/dev/null
    for n in "$offers"/[0-9]*; do
        [ -d "$n" ] && offer_try "$n"
    done >"$offers/problems"
    echo "# offers: $(wc -l <"$offers/kinds") kinds"
    if [ -s "$offers/problems" ]; then
        echo "not ok - every command that is offered works"
        sed 's/^/# /' "$offers/problems"
        failures=$((failures + 1))
    else
        echo "ok - every command that is offered works"
        rm -rf "$offers"
    fi
}
