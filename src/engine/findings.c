/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/findings.h"

#include <stdlib.h>

const char *findings_keep(struct findings *f, const char *text)
{
    return text ? arena_dup(&f->arena, str_from(text)).ptr : NULL;
}

struct finding *findings_add(struct findings *f, const char *where, const char *severity, const char *what,
                             const char *todo)
{
    MEM_ROOM(f->at, f->n, f->cap);
    f->at[f->n] = (struct finding){.where = findings_keep(f, where),
                                   .severity = findings_keep(f, severity),
                                   .what = findings_keep(f, what),
                                   .todo = findings_keep(f, todo)};
    return &f->at[f->n++];
}

void findings_problem(void *findings, const char *where, const char *what)
{
    findings_add(findings, where, NULL, what, NULL);
}

void findings_done(struct findings *f)
{
    free(f->at);
    arena_done(&f->arena);
}
