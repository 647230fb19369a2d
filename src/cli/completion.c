/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark completion: scripts for bash, zsh and fish, printed from the tables. Each script finds the command's words on
 * the line ($at), skipping options and their values; then offers commands, options, or what the value may be. Ids are
 * asked from the store that the line names.
 *
 * The texts that stand between @ and @ are filled in from the tables.
 */
#include <stdio.h>

#include "cli/cli.h"

/* ---- pieces that the scripts share ---- */

/* 'text' with quotes as the shell wants them. */
static void put_quoted(struct out *out, const char *text, bool fish)
{
    buf_add_char(&out->text, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            buf_add_str(&out->text, fish ? STR("\\'") : STR("'\\''"));
        else if (*text == '\\' && fish)
            buf_add_str(&out->text, STR("\\\\"));
        else
            buf_add_char(&out->text, *text);
    }
    buf_add_char(&out->text, '\'');
}

static const char *words_of(const struct command *c, char buf[64])
{
    snprintf(buf, 64, "%s%s%s", c->group ? c->group : "", c->group ? " " : "", c->name);
    return buf;
}

/* Calls fn for every option of the global table and of every command. */
static void each_option(struct out *out, void (*fn)(struct out *out, const struct command *c, const struct opt *o))
{
    for (const struct opt *o = global_options; o->name; o++)
        fn(out, NULL, o);
    for (const struct command *const *c = commands; *c; c++)
        for (const struct opt *o = (*c)->options; o && o->name; o++)
            if (!o->hidden)
                fn(out, *c, o);
}

/* "--store|--key-file|-o": those that a value follows. */
static void put_valued(struct out *out, const struct command *c, const struct opt *o)
{
    (void)c;
    if (o->type == VALUE_NONE)
        return;
    outf(out, "|--%s", o->name);
    if (o->letter)
        outf(out, "|-%c", o->letter);
}

/* By their first word: of "checkpoint delete" that is another command. */
static void put_group_commands(struct out *out, const struct command_group *g)
{
    for (const struct command *const *c = commands; *c; c++)
        if ((*c)->group && strcmp((*c)->group, g->name) == 0 && !strchr((*c)->name, ' '))
            outf(out, " %s", (*c)->name);
}

/* What a type of value completes to, as a word that the scripts' own functions know. */
static const char *source_of(enum value_type type)
{
    switch (type) {
    case VALUE_SESSION:
        return "sessions";
    case VALUE_CHECKPOINT:
    case VALUE_POSITION:
        return "checkpoints";
    case VALUE_FILE:
        return "files";
    case VALUE_DIR:
        return "dirs";
    case VALUE_SHELL:
        return "shells";
    case VALUE_COMMAND:
        return "commands";
    case VALUE_SCHEMA:
        return "schemas";
    case VALUE_SETTING:
        return "settings";
    case VALUE_DATA:
        return "data";
    default:
        return NULL;
    }
}

/* --session takes a new id or that of a session that there is: only those can be offered. */
static const char *source_of_option(const struct opt *o)
{
    return o->type == VALUE_ID && strcmp(o->name, "session") == 0 ? "sessions" : source_of(o->type);
}

/* ---- bash and zsh: the same case tables, other ways to offer ---- */

/* '--type') offer words '…' ;; — keyed by command and option, since the same name may take other values. */
static void put_value_case(struct out *out, const struct command *c, const struct opt *o)
{
    char name[64];

    if (o->type == VALUE_NONE || (!o->words && !source_of_option(o)))
        return;
    outf(out, "    '%s '--%s", c ? words_of(c, name) : "", o->name);
    if (o->letter)
        outf(out, "|'%s '-%c", c ? name : "", o->letter);
    outf(out, ") _tidemark_offer ");
    if (o->words)
        put_quoted(out, o->words, false);
    else
        outf(out, "@%s", source_of_option(o));
    outf(out, "; return ;;\n");
}

/* help: first the commands and groups, then the commands of the group. */
static void put_command_words(struct out *out, const char *name)
{
    outf(out, "    '%s '0) _tidemark_offer @commands ;;\n    '%s '1) case $id in\n", name, name);
    for (const struct command_group *g = command_groups; g->name; g++) {
        outf(out, "        %s) _tidemark_offer '", g->name);
        put_group_commands(out, g);
        outf(out, "' ;;\n");
    }
    outf(out, "        esac ;;\n");
}

static void put_operand_case(struct out *out, const struct command *c)
{
    char name[64];
    size_t i = 0;

    for (const struct operand *o = c->operands; o->name; o++, i++) {
        if (!source_of(o->type))
            continue;
        if (o->type == VALUE_COMMAND)
            put_command_words(out, words_of(c, name));
        else if (o->flags & OPERAND_MANY)
            outf(out, "    '%s '*) _tidemark_offer @%s ;;\n", words_of(c, name), source_of(o->type));
        else
            outf(out, "    '%s '%zu) _tidemark_offer @%s ;;\n", words_of(c, name), i, source_of(o->type));
    }
}

static void put_option_names(struct out *out, const struct opt *table)
{
    for (const struct opt *o = table; o && o->name; o++)
        if (!o->hidden)
            outf(out, " --%s", o->name);
}

static void put_cases(struct out *out)
{
    char name[64];

    outf(out, "    case $prev in\n    --*|-?)\n    case \"$at $prev\" in\n");
    for (const struct command *const *c = commands; *c; c++)
        for (const struct opt *o = (*c)->options; o && o->name; o++)
            put_value_case(out, *c, o);
    outf(out, "    esac\n    case \" $prev\" in\n");
    for (const struct opt *o = global_options; o->name; o++)
        put_value_case(out, NULL, o);
    outf(out, "    esac ;;\n    esac\n    case $cur in\n    -*) case $at in\n");
    for (const struct command *const *c = commands; *c; c++) {
        outf(out, "    '%s') _tidemark_offer '", words_of(*c, name));
        put_option_names(out, (*c)->options);
        put_option_names(out, global_options);
        outf(out, "' ;;\n");
    }
    outf(out, "    *) _tidemark_offer '");
    put_option_names(out, global_options);
    outf(out, "' ;;\n    esac; return ;;\n    esac\n    case $at in\n    '') _tidemark_offer @commands; return ;;\n");
    for (const struct command_group *g = command_groups; g->name; g++) {
        outf(out, "    '%s') _tidemark_offer '", g->name);
        put_group_commands(out, g);
        outf(out, "'; return ;;\n");
    }
    outf(out, "    esac\n    case \"$at $n\" in\n");
    for (const struct command *const *c = commands; *c; c++)
        put_operand_case(out, *c);
    outf(out, "    esac\n");
}

static void put_command_list(struct out *out)
{
    for (const struct command_group *g = command_groups; g->name; g++)
        outf(out, " %s", g->name);
    for (const struct command *const *c = commands; *c; c++)
        if (!(*c)->group)
            outf(out, " %s", (*c)->name);
}

/* Walks the words before the cursor: $at, $n operands behind it, $id the first of them, $store. */
static void put_walk(struct out *out, const char *first, const char *last, const char *word)
{
    outf(out,
         "    for ((i = %s; i < %s; i++)); do\n"
         "        w=%s\n"
         /* bash makes these words of their own: in files:DIR the colon as well */
         "        [[ -n $skip && $w == [=@] ]] && continue\n"
         "        [[ $w == : ]] && { colon=1; continue; }\n"
         "        if [[ -n $colon ]]; then colon=; [[ -n $store && $store == \"$last\" ]] && store+=:$w; continue; fi\n"
         "        last=$w\n"
         "        if [[ -n $skip ]]; then [[ $skip == --store ]] && store=$w; skip=; continue; fi\n"
         "        case $w in\n"
         "        --store=*) store=${w#--store=} ;;\n"
         "        '' ",
         first, last, word);
    each_option(out, put_valued);
    outf(out, ") skip=$w ;;\n"
              "        -?*) ;;\n"
              "        *) case $at in\n"
              "            '') at=$w ;;\n"
              "            ");
    for (const struct command_group *g = command_groups; g->name; g++)
        outf(out, "%s%s", g == command_groups ? "" : "|", g->name);
    outf(out, ") at=\"$at $w\" ;;\n"
              "            *) n=$((n + 1)); [[ $n -eq 1 ]] && id=$w ;;\n"
              "            esac ;;\n"
              "        esac\n"
              "    done\n");
}

static void print_bash(struct out *out)
{
    outf(out,
         "# bash completion for tidemark, made by `tidemark completion bash`\n"
         "_tidemark_offer() {\n"
         "    local words=$1 list word\n"
         "    case $1 in\n"
         "    @sessions) words=$(tidemark sessions list --ids ${store:+--store \"$store\"} 2>/dev/null) ;;\n"
         "    @checkpoints) words=$(tidemark sessions checkpoints \"$id\" --ids ${store:+--store \"$store\"} "
         "2>/dev/null) ;;\n"
         "    @files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); return ;;\n"
         "    @dirs) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n"
         "    @data) _tidemark_data; return ;;\n"
         "    @shells) words='bash zsh fish' ;;\n"
         "    @schemas) words=$(tidemark schema --names 2>/dev/null) ;;\n"
         "    @settings) words=$(tidemark config list --names 2>/dev/null) ;;\n"
         "    @commands) words='");
    put_command_list(out);
    outf(out,
         "' ;;\n"
         "    esac\n"
         /* not by compgen -W, which would carry out what stands in the words: ids may come from a server */
         "    read -r -d '' -a list <<<\"$words\"\n"
         "    for word in \"${list[@]}\"; do\n"
         "        [[ $word == \"$cur\"* && $word != *[!A-Za-z0-9_.:@/-]* ]] && COMPREPLY+=(\"$word\")\n"
         "    done\n"
         "}\n\n"
         /* JSON, or @ and a file: the @ belongs to what readline replaces, though bash makes it a word of its own */
         "_tidemark_data() {\n"
         "    [[ $file == @ || $cur == @* ]] || return\n"
         "    mapfile -t COMPREPLY < <(compgen -P @ -f -- \"${cur#@}\")\n"
         "    [[ ${#COMPREPLY[@]} -eq 1 && -d ${COMPREPLY[0]#@} ]] || return\n"
         "    COMPREPLY[0]+=/\n"
         "    compopt -o nospace 2>/dev/null\n"
         "}\n\n"
         "_tidemark() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} p=$COMP_CWORD prev at= n=0 id= store= skip= colon= last= i w file=\n"
         "    COMPREPLY=()\n"
         "    [[ $cur == : ]] && { cur=; p=$((p - 1)); }\n" /* what is typed began before the colon */
         "    [[ $p -gt 2 && ${COMP_WORDS[p-1]} == : ]] && p=$((p - 2))\n"
         "    prev=${COMP_WORDS[p-1]}\n"
         "    if [[ $prev == [=@] && $p -gt 1 ]]; then file=$prev; prev=${COMP_WORDS[p-2]}; fi\n"
         "    [[ $cur == = ]] && cur=\n");
    put_walk(out, "1", "COMP_CWORD", "${COMP_WORDS[i]}");
    put_cases(out);
    outf(out, "}\ncomplete -F _tidemark tidemark\n");
}

static void print_zsh(struct out *out)
{
    outf(out,
         "#compdef tidemark\n"
         "# zsh completion for tidemark, made by `tidemark completion zsh`\n"
         "_tidemark_offer() {\n"
         "    case $1 in\n"
         "    @sessions) compadd -- ${(f)\"$(tidemark sessions list --ids ${store:+--store=$store} 2>/dev/null)\"} ;;\n"
         "    @checkpoints) compadd -- ${(f)\"$(tidemark sessions checkpoints $id --ids ${store:+--store=$store} "
         "2>/dev/null)\"} ;;\n"
         "    @files) compset -P '(sqlite|files):'; _files ;;\n"
         "    @dirs) _files -/ ;;\n"
         "    @data) compset -P @ && _files ;;\n"
         "    @shells) compadd bash zsh fish ;;\n"
         "    @schemas) compadd -- ${(f)\"$(tidemark schema --names 2>/dev/null)\"} ;;\n"
         "    @settings) compadd -- ${(f)\"$(tidemark config list --names 2>/dev/null)\"} ;;\n"
         "    @commands) compadd --");
    put_command_list(out);
    outf(out, " ;;\n"
              "    *) compadd -- ${=1} ;;\n"
              "    esac\n"
              "}\n\n"
              "_tidemark() {\n"
              "    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} at= n=0 id= store= skip= colon= last= i w\n");
    put_walk(out, "2", "CURRENT", "${words[i]}");
    put_cases(out);
    outf(out, "}\n"
              "if [[ $funcstack[1] == _tidemark ]]; then _tidemark \"$@\"; else compdef _tidemark tidemark; fi\n");
}

/* ---- fish ---- */

static void put_fish_option(struct out *out, const struct command *c, const struct opt *o)
{
    const char *source = source_of(o->type);
    char name[64];

    outf(out, "complete -c tidemark");
    if (c)
        outf(out, " -n '__tidemark_at \"%s\"'", words_of(c, name));
    outf(out, " -l %s", o->name);
    if (o->letter)
        outf(out, " -s %c", o->letter);
    if (o->type != VALUE_NONE)
        outf(out, source && strcmp(source, "files") == 0 ? " -r -F" : " -x");
    if (o->type != VALUE_NONE && (o->words || (source && strcmp(source, "files") != 0))) {
        outf(out, " -a ");
        if (o->words)
            put_quoted(out, o->words, true);
        else
            outf(out, "'(__tidemark_%s)'", source);
    }
    outf(out, " -d ");
    put_quoted(out, o->help, true);
    outf(out, "\n");
}

static void put_fish_command(struct out *out, const char *path, const char *name, const char *help)
{
    outf(out, "complete -c tidemark -f -n '__tidemark_at \"%s\"' -a %s -d ", path, name);
    put_quoted(out, help, true);
    outf(out, "\n");
}

/* The condition is that so many operands stand before this one; of "many" any number. */
static void put_fish_operands(struct out *out, const struct command *c)
{
    char name[64];
    size_t i = 0;

    for (const struct operand *o = c->operands; o->name; o++, i++) {
        const char *source = source_of(o->type);

        if (!source)
            continue;
        outf(out, "complete -c tidemark %s -n '__tidemark_at \"%s\"", strcmp(source, "files") == 0 ? "-F" : "-f",
             words_of(c, name));
        if (!(o->flags & OPERAND_MANY))
            outf(out, " %zu", i);
        if (strcmp(source, "files") != 0)
            outf(out, "' -a '(__tidemark_%s)", source);
        outf(out, "'\n");
    }
}

/* For help: first the commands and groups, then the commands of the group. */
static void put_fish_commands(struct out *out)
{
    outf(out, "function __tidemark_commands\n"
              "    set -l words (__tidemark_words)\n"
              "    switch \"$words[2..-1]\"\n"
              "        case ''\n"
              "            printf '%%s\\n'");
    put_command_list(out);
    for (const struct command_group *g = command_groups; g->name; g++) {
        outf(out, "\n        case %s\n            printf '%%s\\n'", g->name);
        put_group_commands(out, g);
    }
    outf(out, "\n    end\nend\n");
}

static void print_fish(struct out *out)
{
    outf(out, "# fish completion for tidemark, made by `tidemark completion fish`\n"
              "function __tidemark_words\n"
              "    set -l skip\n"
              "    for w in (commandline -opc)[2..-1]\n"
              "        if set -q skip[1]; set -e skip; continue; end\n"
              "        switch $w\n"
              "            case ");
    for (const struct opt *o = global_options; o->name; o++)
        if (o->type != VALUE_NONE)
            outf(out, "--%s ", o->name);
    for (const struct command *const *c = commands; *c; c++)
        for (const struct opt *o = (*c)->options; o && o->name; o++)
            if (o->type != VALUE_NONE)
                outf(out, "--%s ", o->name);
    outf(out, "\n                set skip 1\n"
              "            case '-*'\n"
              "            case '*'\n"
              "                echo $w\n"
              "        end\n"
              "    end\n"
              "end\n"
              "function __tidemark_at -a path operands\n"
              "    set -l words (__tidemark_words)\n"
              "    set -l n (count (string split -n ' ' -- $path))\n"
              "    if test -z \"$path\"; test (count $words) -eq 0; return; end\n"
              "    test \"$words[1..$n]\" = \"$path\" 2>/dev/null; or return 1\n"
              "    test -z \"$operands\"; or test (count $words) -eq (math $n + $operands); or return 1\n"
              "    if contains -- $path ");
    for (const struct command_group *g = command_groups; g->name; g++)
        outf(out, "%s ", g->name);
    outf(out, "; test (count $words) -eq 1; return; end\n"
              "end\n"
              "function __tidemark_sessions\n"
              "    tidemark sessions list --ids 2>/dev/null\n"
              "end\n"
              "function __tidemark_checkpoints\n"
              "    set -l words (__tidemark_words)\n"
              "    test (count $words) -ge 2; and tidemark sessions checkpoints $words[-1] --ids 2>/dev/null\n"
              "end\n"
              "function __tidemark_dirs\n"
              "    __fish_complete_directories\n"
              "end\n"
              "function __tidemark_schemas\n"
              "    tidemark schema --names 2>/dev/null\n"
              "end\n"
              "function __tidemark_settings\n"
              "    tidemark config list --names 2>/dev/null\n"
              "end\n"
              "function __tidemark_shells\n"
              "    printf '%%s\\n' bash zsh fish\n"
              "end\n"
              "function __tidemark_data\n"
              "    set -l t (commandline -ct)\n"
              "    string match -q '@*' -- $t; and printf '@%%s\\n' (__fish_complete_path (string sub -s 2 -- $t))\n"
              "end\n");
    put_fish_commands(out);
    outf(out, "complete -c tidemark -f\n");
    for (const struct command_group *g = command_groups; g->name; g++)
        put_fish_command(out, "", g->name, g->help);
    for (const struct command *const *c = commands; *c; c++) {
        if (!strchr((*c)->name, ' '))
            put_fish_command(out, (*c)->group ? (*c)->group : "", (*c)->name, (*c)->help);
        put_fish_operands(out, *c);
    }
    each_option(out, put_fish_option);
}

/* ---- the command ---- */

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    static const struct {
        const char *shell;
        void (*print)(struct out *out);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};

    (void)err;
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++)
        if (strcmp(shells[i].shell, args_operand(&cli->args, 0)) == 0)
            shells[i].print(&cli->out);
    return TIDE_OK;
}

const struct command cmd_completion = {
    .name = "completion",
    .run = run,
    .operands = {{"bash|zsh|fish", VALUE_SHELL, 0}},
    .help = "print a completion script for the shell",
    .more = "bash:  tidemark completion bash > ~/.local/share/bash-completion/completions/tidemark\n"
            "zsh:   tidemark completion zsh > a directory of $fpath, as _tidemark\n"
            "fish:  tidemark completion fish > ~/.config/fish/completions/tidemark.fish",
};
