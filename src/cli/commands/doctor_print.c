/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's report as people read it: one heading for each kind of finding, and the first few of them. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands/doctor_print.h"
#include "cli/next_command.h"

#define NAMED 3 /* of one kind, unless all are asked for */

/* Of those below a heading. */
static int indent_of(const struct out *out)
{
    return out->tty && terminal_columns(STDOUT_FILENO) < 60 ? 4 : 19;
}

static void print_begin(struct out *out, const struct finding *f)
{
    out_colored(out,
                strcmp(f->severity, "ok") == 0     ? COLOR_GREEN
                : strcmp(f->severity, "warn") == 0 ? COLOR_YELLOW
                                                   : COLOR_RED,
                f->severity);
    outf(out, "%*s%-10s ", (int)(6 - strlen(f->severity)), "", f->where);
}

static void print_finding(struct out *out, const struct finding *f)
{
    out_value(out, f->what);
    if (f->todo) {
        outf(out, ": ");
        out_value(out, f->todo);
    }
    outf(out, f->forgotten ? " (forgotten)\n" : "\n");
}

static bool is_same_kind(const struct finding *a, const struct finding *b)
{
    return a->kind && a->kind == b->kind && strcmp(a->where, b->where) == 0 && strcmp(a->severity, b->severity) == 0;
}

/* The findings of the same kind as the i-th, which is the first of them. */
static void print_kind(struct out *out, struct findings *f, size_t i, size_t n, bool all)
{
    const struct finding_kind *kind = f->at[i].kind;
    size_t named = all || n <= NAMED + 1 ? n : NAMED;

    print_begin(out, &f->at[i]);
    outf(out, "%zu %s", n, kind->many);
    if (kind->action)
        outf(out, ": `%s` %s", next_command(&f->arena, &(struct tide_next){kind->action, 0, "ID", kind->arguments}),
             kind->todo);
    outf(out, "\n");
    for (size_t k = i, shown = 0; k < f->n && shown < named; k++) {
        if (!is_same_kind(&f->at[i], &f->at[k]))
            continue;
        outf(out, "%*s", indent_of(out), "");
        print_finding(out, &f->at[k]);
        shown++;
    }
    if (named < n)
        outf(out, "%*s%zu more: `%s doctor --all` lists them\n", indent_of(out), "", n - named, own_command(&f->arena));
}

static bool is_first_of_kind(const struct findings *f, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (is_same_kind(&f->at[k], &f->at[i]))
            return false;
    return true;
}

void doctor_print(struct out *out, struct check_report *r, bool all)
{
    struct findings *f = &r->found;

    for (size_t i = 0; i < f->n; i++) {
        size_t n = 0;

        if (!is_first_of_kind(f, i))
            continue;
        for (size_t k = i; k < f->n; k++)
            n += is_same_kind(&f->at[i], &f->at[k]);
        if (n > 1) {
            print_kind(out, f, i, n, all);
        } else {
            print_begin(out, &f->at[i]);
            print_finding(out, &f->at[i]);
        }
    }
    if (r->forgotten && !all)
        outf(out, "%zu forgotten, `%s doctor --all` shows them\n", r->forgotten, own_command(&f->arena));
}
