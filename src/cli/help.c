/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help, printed from the tables. `tidemark help --table` prints every row for the tests: one that lacks its help, or that
 * no manual page names, fails them.
 */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/examples.h"
#include "cli/cli.h"
#include "engine/shapes.h"
#include "terminal/glyph.h"
#include "terminal/wrap.h"

/* Those that are a program with its arguments, or the others. */
static void print_operands(struct out *out, const struct command *c, bool program)
{
    const char *before = program ? " --" : "";

    for (const struct operand *o = c->operands; o->name; o++) {
        const char *dots = o->flags & OPERAND_MANY ? "..." : "";

        if ((o->type == VALUE_PROGRAM) != program)
            continue;
        if (o->flags & OPERAND_OPTIONAL)
            outf(out, "%s [%s%s]", before, o->name, dots);
        else
            outf(out, "%s %s%s", before, o->name, dots);
        before = "";
    }
}

static void print_usage(struct out *out, const struct command *c)
{
    outf(out, "usage: tidemark %s%s%s", c->group ? c->group : "", c->group ? " " : "", c->name);
    print_operands(out, c, false);
    for (const struct opt *o = c->options; o && o->name; o++)
        if (o->required)
            outf(out, " --%s %s", o->name, o->value);
    if (c->options)
        outf(out, " [options]");
    print_operands(out, c, true);
    outf(out, "\n");
}

#define NARROW 24 /* columns that a text beside a name needs; with fewer it stands below, indented by BELOW */
#define BELOW 8

static void print_row(struct out *out, enum color color, const char *name, int width, const char *text)
{
    int columns = out->tty ? terminal_columns(STDOUT_FILENO) : INT_MAX, used = text_columns(str_from(name)),
        at = width + 3;
    bool narrow = columns < at + NARROW;

    at = narrow ? BELOW : at;
    outf(out, "  ");
    out_colored(out, color, name);
    if (narrow || used > width)
        outf(out, "\n%*s", at, "");
    else
        outf(out, "%*s", at - used - 2, "");
    wrap_beside(&out->text, str_from(text), at, at, columns);
    outf(out, "\n");
}

static void print_option(struct out *out, const struct opt *o)
{
    char left[64], help[512] = "";

    if (o->hidden)
        return;
    snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : ' ',
             o->letter ? ", " : "   ", o->name, o->value ? " " : "", o->value ? o->value : "");
    if (o->type == VALUE_WORD && !strstr(o->help, "never"))
        snprintf(help, sizeof(help), "%s (%s)", o->help, o->words);
    print_row(out, COLOR_NONE, left, 30, *help ? help : o->help);
}

static void print_options(struct out *out, const char *title, const struct opt *table)
{
    const struct opt *first = table;

    while (first && first->name && first->hidden)
        first++;
    if (!first || !first->name)
        return;
    outf(out, "\n%s%s%s\n", color_code(out, COLOR_BOLD), title, color_code(out, COLOR_NONE));
    for (const struct opt *o = table; o->name; o++)
        print_option(out, o);
}

static void print_command(struct out *out, const struct command *c)
{
    char left[64];

    snprintf(left, sizeof(left), "%s%s%s", c->group ? c->group : "", c->group ? " " : "", c->name);
    print_row(out, COLOR_BOLD, left, 28, c->help);
}

static void print_group_rows(struct out *out, const char *group)
{
    for (const struct command *const *c = commands; *c; c++)
        if ((*c)->group && strcmp((*c)->group, group) == 0)
            print_command(out, *c);
}

/* First what a program and those who run it use: the commands that the table has before the first group. */
static void print_overview(struct out *out)
{
    const struct command *const *c = commands;

    outf(out, "usage: tidemark COMMAND [operands] [options]\n\n"
              "Sessions that cannot be lost: append-only logs with checkpoints, forks and rollback.\n\n");
    for (; *c && !(*c)->group; c++)
        print_command(out, *c);
    for (const struct command_group *g = command_groups; g->name; g++) {
        outf(out, "\n");
        print_group_rows(out, g->name);
    }
    outf(out, "\n");
    for (; *c; c++)
        if (!(*c)->group)
            print_command(out, *c);
    print_options(out, "Everywhere", global_options);
    outf(out,
         "\n`tidemark COMMAND --help` shows more. Ids may be shortened to a unique prefix.\n"
         "Exit status: 0 ok, 1 failed, 2 usage or bad input, 3 not found, 4 conflict, 5 damaged or wrong store,\n"
         "6 disk or access, 7 waiting, 8 token refused, 9 changed arguments, 10 outcome unknown, 11 not trusted.\n");
}

static void print_examples(struct out *out, const struct command *c)
{
    outf(out, "\n%sExamples%s\n", color_code(out, COLOR_BOLD), color_code(out, COLOR_NONE));
    for (int i = 0; i < EXAMPLES; i++) {
        const char *example = command_example(c, i);

        if (!example)
            continue;
        outf(out, "  ");
        out_command(out, example);
        outf(out, "\n");
    }
}

/* Paragraphs: on a terminal their lines are filled. One that is indented, or follows the end of a sentence, begins anew. */
static void print_more(struct out *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        bool fills = *c == '\n' && c > text && !strchr(".:\n", c[-1]) && c[1] != '\n' && c[1] != ' ';

        buf_add_char(&out->text, out->tty && fills ? ' ' : *c);
    }
}

void help_print(struct cli *cli)
{
    const struct command *c = cli->args.command;
    const struct command_group *g = cli->args.group;
    struct out *out = &cli->out;

    if (c) {
        print_usage(out, c);
        outf(out, "\n%s\n", c->help);
        if (c->more) {
            outf(out, "\n");
            print_more(out, c->more);
            outf(out, "\n");
        }
        print_options(out, "Options", c->options);
        print_options(out, "Everywhere", global_options);
        print_examples(out, c);
    } else if (g) {
        outf(out, "usage: tidemark %s COMMAND [operands] [options]\n\n%s\n\n", g->name, g->help);
        print_group_rows(out, g->name);
        outf(out, "\n`tidemark %s COMMAND --help` shows more.\n", g->name);
    } else {
        print_overview(out);
    }
}

/* command TAB option TAB help, one row per line. */
static void print_table(struct out *out)
{
    char name[64];

    for (const struct opt *o = global_options; o->name; o++)
        outf(out, "\t--%s\t%s\n", o->name, o->help ? o->help : "");
    for (const struct command *const *c = commands; *c; c++) {
        snprintf(name, sizeof(name), "%s%s%s", (*c)->group ? (*c)->group : "", (*c)->group ? " " : "", (*c)->name);
        outf(out, "%s\t\t%s\n", name, (*c)->help ? (*c)->help : "");
        for (const struct opt *o = (*c)->options; o && o->name; o++)
            if (!o->hidden)
                outf(out, "%s\t--%s\t%s\n", name, o->name, o->help ? o->help : "");
    }
}

static enum tide_code run_help(struct cli *cli, struct tide_err *err)
{
    char *argv[5] = {NULL};
    int argc = 1;
    struct args about;
    enum tide_code code;

    if (args_on(&cli->args, "table")) {
        print_table(&cli->out);
        return TIDE_OK;
    }
    for (size_t i = 0; i < cli->args.n_operands && argc < 4; i++)
        argv[argc++] = (char *)(uintptr_t)args_operand(&cli->args, i);
    argv[argc++] = (char *)(uintptr_t) "--help";
    code = args_parse(argc, argv, &about, err);
    if (!code) {
        struct args asked = cli->args;

        cli->args = about;
        help_print(cli);
        cli->args = asked;
    }
    args_done(&about);
    return code;
}

const struct command cmd_help = {
    .name = "help",
    .run = run_help,
    .operands = {{"COMMAND", VALUE_COMMAND, OPERAND_OPTIONAL | OPERAND_MANY}},
    .options = (const struct opt[]){{.name = "table", .hidden = true, .help = "every row, for tests"}, {.name = NULL}},
    .help = "list the commands, or show how to use one",
};

static enum tide_code run_version(struct cli *cli, struct tide_err *err)
{
    (void)err;
    if (cli->out.json)
        out_shape(&cli->out, &shape_version, &(struct command_result){.word = tide_version()});
    else
        outf(&cli->out, "tidemark %s\n", tide_version());
    return TIDE_OK;
}

const struct command cmd_version = {
    .name = "version",
    .run = run_version,
    .help = "show the version",
};
