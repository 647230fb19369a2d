/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/findings.h"

#include <stdlib.h>

struct finding *findings_add(struct findings *f, const char *where, const char *severity, const char *what,
                             const char *todo)
{
    MEM_ROOM(f->at, f->n, f->cap);
    f->at[f->n] = (struct finding){.where = arena_text(&f->arena, where),
                                   .severity = arena_text(&f->arena, severity),
                                   .what = arena_text(&f->arena, what),
                                   .todo = arena_text(&f->arena, todo)};
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
