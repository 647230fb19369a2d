/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over argv. The first words that are not options name the command; what follows are its operands. A table is
 * consulted for every option, so the rows are the grammar.
 *
 * --help ends the parsing once the command is known: the user who asks for help should get it, not a complaint.
 */
#include "cli/args.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/nearest.h"
#include "cli/args_check.h"

struct parser {
    int argc, at; /* at: the next argument */
    char **argv;
    struct args *args;
    bool options_ended;
    bool satisfied; /* help or the version was asked for */
};

/* Its words: "sessions new". */
static const char *command_name(const struct args *args, char out[64])
{
    const char *group = args->group ? args->group->name : "", *name = args->command ? args->command->name : "";

    snprintf(out, 64, "%s%s%s", group, *group && *name ? " " : "", name);
    return out;
}

/* Puts "sessions new: " before the message once the command is known. */
static enum tide_code in_command(const struct args *args, struct tide_err *err)
{
    char name[64];

    return args->group || args->command ? tide_wrap(err, "%s", command_name(args, name)) : err->code;
}

/* "log-format" as log_format, "KEY" as key. */
static void argument_name(char *out, size_t size, const char *name)
{
    size_t n = 0;

    for (; *name && n + 1 < size; name++)
        out[n++] = *name == '-' ? '_' : (char)tolower((unsigned char)*name);
    out[n] = '\0';
}

static void note_wrong(struct args *args, const char *name)
{
    argument_name(args->wrong, sizeof(args->wrong), name);
}

static bool refused;

bool args_refused(void)
{
    return refused;
}

enum tide_code args_refuse(struct tide_err *err, const char *name, const char *fmt, ...)
{
    char text[sizeof(err->msg)], argument[64];
    va_list list;

    va_start(list, fmt);
    vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    tide_fail(err, TIDE_INVALID, "%s", text);
    argument_name(argument, sizeof(argument), name);
    refused = true;
    return tide_about(err, TIDE_SUBJECT_ARGUMENT, argument);
}

/* ---- names that may have been meant ---- */

struct names {
    const struct command_group *group;
    const struct command *const *command;
    const struct command_group *next_group;
    const struct opt *option;
    const struct opt *global;
};

static const char *next_command(void *arg)
{
    struct names *n = arg;

    while (*n->command) {
        const struct command *c = *n->command++;

        if (n->group ? c->group && strcmp(c->group, n->group->name) == 0 : !c->group)
            return c->name;
    }
    if (n->next_group && n->next_group->name)
        return n->next_group++->name;
    return NULL;
}

static const char *next_option(void *arg)
{
    struct names *n = arg;

    while (n->option && n->option->name) {
        const struct opt *o = n->option++;

        if (!o->hidden)
            return o->name;
    }
    return n->global->name ? n->global++->name : NULL;
}

/* The command of this name in a group; NULL: none has one. */
static const struct command *in_a_group(const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if ((*c)->group && strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static enum tide_code unknown_command(const struct args *args, const char *word, struct tide_err *err)
{
    const struct command *grouped = args->group ? NULL : in_a_group(word);
    struct names n = {.group = args->group, .command = commands, .next_group = args->group ? NULL : command_groups};
    const char *near = nearest(word, next_command, &n);
    const char *space = args->group ? " " : "", *group = args->group ? args->group->name : "";

    if (grouped)
        return tide_fail(err, TIDE_INVALID, "unknown command '%.40s': did you mean '%s %s'?", word, grouped->group,
                         grouped->name);
    if (near)
        return tide_fail(err, TIDE_INVALID, "unknown command '%s%s%.40s': did you mean '%s%s%s'?", group, space, word,
                         group, space, near);
    return tide_fail(err, TIDE_INVALID, "unknown command '%s%s%.40s': `tidemark help%s%s` shows what there is", group,
                     space, word, space, group);
}

static enum tide_code unknown_option(struct args *args, const char *word, size_t len, struct tide_err *err)
{
    struct names n = {.option = args->command ? args->command->options : NULL, .global = global_options};
    AUTO(mem_freep) char *typed = mem_dup((struct str){word, len});
    const char *near = len > 2 && typed[1] == '-' ? nearest(typed + 2, next_option, &n) : NULL;
    char name[64];

    note_wrong(args, typed + strspn(typed, "-"));
    command_name(args, name);
    if (near)
        tide_fail(err, TIDE_INVALID, "unknown option '%.60s': did you mean '--%s'?", typed, near);
    else
        tide_fail(err, TIDE_INVALID, "unknown option '%.60s': `tidemark %s%s--help` shows what there is", typed, name,
                  *name ? " " : "");
    return in_command(args, err);
}

/* ---- options ---- */

static const struct opt *find_in(const struct opt *table, const char *name, size_t len, char letter, size_t *ret_index)
{
    for (size_t i = 0; table && table[i].name; i++) {
        bool hit =
            letter ? table[i].letter == letter : strlen(table[i].name) == len && !memcmp(table[i].name, name, len);

        if (hit) {
            *ret_index = i;
            return &table[i];
        }
    }
    return NULL;
}

/* The row of an option as typed ("--store", "-h") and where its value goes. */
static const struct opt *find_option(struct args *args, const char *word, size_t len, struct arg_value **ret_slot)
{
    bool is_long = word[1] == '-';
    const char *name = is_long ? word + 2 : "";
    size_t name_len = is_long ? len - 2 : 0, i = 0;
    char letter = !is_long && len == 2 ? word[1] : '\0';
    const struct opt *opt = NULL;

    if (!is_long && !letter)
        return NULL;
    if (args->command && (opt = find_in(args->command->options, name, name_len, letter, &i))) {
        assert(i < COMMAND_OPTIONS);
        *ret_slot = &args->options[i];
    } else if ((opt = find_in(global_options, name, name_len, letter, &i))) {
        assert(i < ARGS_GLOBALS);
        *ret_slot = &args->globals[i];
    }
    return opt;
}

static enum tide_code take_option(struct parser *p, const char *word, struct tide_err *err)
{
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    struct arg_value *slot = NULL;
    const struct opt *opt = find_option(p->args, word, len, &slot);
    char what[64];

    if (!opt)
        return unknown_option(p->args, word, len, err);
    note_wrong(p->args, opt->name); /* unless it is right */
    snprintf(what, sizeof(what), "--%s", opt->name);
    if (opt->type == VALUE_NONE) {
        *slot = (struct arg_value){.given = true};
        p->satisfied = p->satisfied || strcmp(opt->name, "help") == 0 || strcmp(opt->name, "version") == 0;
        if (equals)
            tide_fail(err, TIDE_INVALID, "%s takes no value", what);
        else
            p->args->wrong[0] = '\0';
        return equals ? in_command(p->args, err) : TIDE_OK;
    }
    if (slot->given && !opt->many) {
        tide_fail(err, TIDE_INVALID, "%s is given twice: give it once", what);
        return in_command(p->args, err);
    }
    if (opt->optional && !equals && (p->at == p->argc || p->argv[p->at][0] == '-')) {
        *slot = (struct arg_value){.given = true};
        return TIDE_OK;
    }
    if (!equals && p->at == p->argc) {
        tide_fail(err, TIDE_INVALID, "%s needs a value: %s %s", what, what, opt->value);
        return in_command(p->args, err);
    }
    if (args_check(what, opt->type, opt, equals ? equals + 1 : p->argv[p->at++], slot, err))
        return in_command(p->args, err);
    if (opt->many)
        p->args->more[p->args->n_more++] = (struct arg_more){opt, slot->text};
    p->args->wrong[0] = '\0';
    return TIDE_OK;
}

/* ---- words ---- */

static const struct operand *operand_row(const struct command *c, size_t i)
{
    const struct operand *row = c->operands;

    for (size_t k = 0; row->name && k < i && !(row->flags & OPERAND_MANY); k++)
        row++;
    return row->name ? row : NULL;
}

static enum tide_code take_operand(struct args *args, const char *word, struct tide_err *err)
{
    const struct operand *row = operand_row(args->command, args->n_operands);
    struct arg_value value;

    if (!row) {
        char name[64];

        tide_fail(err, TIDE_INVALID, "unexpected '%.60s': `tidemark %s --help` shows what it takes", word,
                  command_name(args, name));
        return in_command(args, err);
    }
    if (args_check(row->name, row->type, NULL, word, &value, err)) {
        note_wrong(args, row->name);
        return in_command(args, err);
    }
    args->operands[args->n_operands++] = word;
    return TIDE_OK;
}

/* "checkpoint", then "delete": right behind each other they may be the name of one. */
static const struct command *longer_name(const struct args *args, const char *word)
{
    char name[64];

    for (size_t i = 0; args->command->options && args->command->options[i].name; i++)
        if (args->options[i].given)
            return NULL;
    snprintf(name, sizeof(name), "%s %.40s", args->command->name, word);
    return args->n_operands ? NULL : command_find(args->command->group, name);
}

static enum tide_code take_word(struct args *args, const char *word, struct tide_err *err)
{
    const struct command *longer = args->command ? longer_name(args, word) : NULL;

    if (longer) {
        args->command = longer;
        return TIDE_OK;
    }
    if (args->command)
        return take_operand(args, word, err);
    if (!args->group)
        args->group = command_group_find(word);
    else
        args->command = command_find(args->group->name, word);
    if (!args->group && !args->command)
        args->command = command_find(NULL, word);
    if (args->command || (args->group && strcmp(word, args->group->name) == 0))
        return TIDE_OK;
    return unknown_command(args, word, err);
}

/* What was taken last belongs to a program that is to be run: its options are not ours. */
static bool is_in_program(const struct args *args)
{
    const struct operand *row =
        args->command && args->n_operands > 0 ? operand_row(args->command, args->n_operands - 1) : NULL;

    return row && row->type == VALUE_PROGRAM;
}

/* ---- the whole ---- */

static enum tide_code check_options_given(struct args *args, struct tide_err *err)
{
    const struct opt *table = args->command->options;

    for (size_t i = 0; table && table[i].name; i++) {
        if (!table[i].required || args->options[i].given)
            continue;
        note_wrong(args, table[i].name);
        tide_fail(err, TIDE_INVALID, "--%s %s is missing", table[i].name, table[i].value);
        return in_command(args, err);
    }
    return TIDE_OK;
}

/* How an error is to be shown counts also when it stands behind what is wrong. */
static void take_json(struct parser *p)
{
    struct arg_value *slot = NULL;

    for (; p->at < p->argc && !p->options_ended; p->at++) {
        p->options_ended = strcmp(p->argv[p->at], "--") == 0;
        if (strcmp(p->argv[p->at], "--json") == 0 && find_option(p->args, "--json", strlen("--json"), &slot))
            slot->given = true;
    }
}

enum tide_code args_parse(int argc, char **argv, struct args *ret_args, struct tide_err *err)
{
    const struct operand *missing;
    char name[64];
    struct parser p = {.argc = argc, .at = 1, .argv = argv, .args = ret_args};
    enum tide_code code = TIDE_OK;

    *ret_args = (struct args){.operands = mem_array((size_t)argc + 1, sizeof(char *)),
                              .more = mem_array((size_t)argc + 1, sizeof(struct arg_more))};
    while (!code && !(p.satisfied && ret_args->command) && p.at < argc) {
        const char *word = argv[p.at++];

        if (p.options_ended || word[0] != '-' || !word[1] || isdigit((unsigned char)word[1])) { /* -3 is a value */
            code = take_word(ret_args, word, err);
            p.options_ended = p.options_ended || is_in_program(ret_args);
        } else if (strcmp(word, "--") == 0) {
            p.options_ended = true;
        } else if (strcmp(word, "--resume") == 0 && !ret_args->command && !ret_args->group) {
            code = take_word(ret_args, "resume", err); /* the short form */
        } else {
            code = take_option(&p, word, err);
        }
    }
    if (code)
        take_json(&p);
    if (code || p.satisfied || !ret_args->command)
        return code;
    missing = operand_row(ret_args->command, ret_args->n_operands);
    if (!missing || (missing->flags & OPERAND_OPTIONAL))
        return check_options_given(ret_args, err);
    note_wrong(ret_args, missing->name);
    tide_fail(err, TIDE_INVALID, "%s is missing: `tidemark %s --help` shows what it takes", missing->name,
              command_name(ret_args, name));
    return in_command(ret_args, err);
}

void args_done(struct args *args)
{
    free(args->operands);
    free(args->more);
    *args = (struct args){0};
}

static const struct arg_value *value_of(const struct args *args, const char *name)
{
    size_t i = 0;

    if (args->command && find_in(args->command->options, name, strlen(name), 0, &i))
        return &args->options[i];
    if (find_in(global_options, name, strlen(name), 0, &i))
        return &args->globals[i];
    assert(!"an option that is in no table");
    abort();
}

bool args_on(const struct args *args, const char *name)
{
    return value_of(args, name)->given;
}

const char *args_text(const struct args *args, const char *name)
{
    return value_of(args, name)->text;
}

int64_t args_int(const struct args *args, const char *name, int64_t otherwise)
{
    const struct arg_value *v = value_of(args, name);

    return v->given ? v->number : otherwise;
}

const char *args_nth(const struct args *args, const char *name, size_t i)
{
    for (size_t k = 0; k < args->n_more; k++)
        if (strcmp(args->more[k].opt->name, name) == 0 && i-- == 0)
            return args->more[k].text;
    return NULL;
}

const char **args_all(const struct args *args, const char *name)
{
    const char **list = mem_array(args->n_more + 1, sizeof(*list));

    for (size_t i = 0; (list[i] = args_nth(args, name, i)); i++)
        ;
    return list;
}

const char *args_operand(const struct args *args, size_t i)
{
    return i < args->n_operands ? args->operands[i] : NULL;
}
