/* SPDX-License-Identifier: Apache-2.0 */
/* What a check found: problems of stores, settings and graphs, and what the doctor says, in one list. */
#ifndef ENGINE_FINDINGS_H
#define ENGINE_FINDINGS_H

#include <stdbool.h>

#include "base/mem.h"
#include "tidemark.h"

/* Findings of one check and one kind are shown under one heading. */
struct finding_kind {
    const char *name;
    const char *many;             /* behind their number: "sessions whose last run failed" */
    enum tide_action action;      /* on any of them; 0: none */
    const char *arguments, *todo; /* its own, and what it does */
};

struct finding {
    const char *where, *severity, *what;
    const char *todo;             /* what to do, or what the first of `next` does; NULL: nothing, or nobody knows */
    const struct tide_next *next; /* what can be done, ended by action 0; the doctor's */
    const struct tide_err *error; /* that it is; its hints come before `next`. NULL: none */
    bool of_store;                /* it is about the store itself */
    const char *(*command)(struct arena *a, const struct tide_next *next); /* as of next_command_fn */
    const struct finding_kind *kind;
    const char *about; /* the session, the file; NULL: all of it */
    const char *state; /* that a person accepts, as it is; NULL: `what` says it */
    bool forgotten;
};

struct findings {
    struct finding *at;
    size_t n, cap;
    struct arena arena; /* of the texts */
};

/* The texts are copied; each may be NULL. The one that was added, until the next is. */
struct finding *findings_add(struct findings *f, const char *where, const char *severity, const char *what,
                             const char *todo);
void findings_done(struct findings *f);

/* As a tide_problem_fn: `findings` is one. */
void findings_problem(void *findings, const char *where, const char *what);

/* What came of a check, for shape_store_check, _settings_check, _graph_check and _doctor. */
struct check_report {
    struct findings found;
    bool ok;
    const char *file;              /* of settings, of a graph */
    const char *graph_id, *digest; /* of a graph that is right, with the next two; NULL: it is not */
    int64_t nodes, edges;
    size_t problems;   /* of a graph: those that are no warnings */
    size_t forgotten;  /* of the doctor: findings that a person accepts */
    const char *store; /* the doctor's: as what is forgotten names it */
    bool whole;        /* … it could be looked into */
};
static inline void check_report_done(struct check_report *r)
{
    findings_done(&r->found);
}

/* For shape_store_copy. */
struct copy_report {
    struct tide_copy_result result;
    struct findings problems, notices;
    bool ok;
};

#endif
