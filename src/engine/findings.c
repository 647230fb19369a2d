/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/findings.h"

#include <stdlib.h>

static const char *copy_of(struct arena *a, const char *text)
{
    return text ? arena_dup(a, str_from(text)).ptr : NULL;
}

void findings_add(struct findings *f, const char *where, const char *severity, const char *what, const char *todo)
{
    MEM_ROOM(f->at, f->n, f->cap);
    f->at[f->n++] = (struct finding){copy_of(&f->arena, where), copy_of(&f->arena, severity), copy_of(&f->arena, what),
                                     copy_of(&f->arena, todo)};
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
