/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph of somebody's, killed everywhere: it is run to its end without harm, twice, to learn where it can be killed and what
 * it comes to; then it is killed in each of these places, with SIGKILL, in a session of its own, and resumed. What the world saw
 * of it is held against what was promised: what is complete never runs again, what must happen once never happens twice, and
 * the end is the same.
 *
 * It makes this process the subreaper of what it kills: no part of the library.
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include "engine/shapes.h"

struct torture_want {
    const char *file;
    const char *config, *log_format; /* as of the settings */
    const char *script;              /* agents answer from this file; NULL: as the graph says */
    bool yes, verbose;
    bool keep;                  /* the store, also when nothing is wrong */
    bool files;                 /* in a store of plain files, else in SQLite */
    const char *const *answers; /* texts ended by NULL, in the order of the questions; none: "yes" */
    size_t points;              /* in how many places it is killed, at most */
    int kills;                  /* of one session, at most */
    int64_t seed;               /* of what is random; -1: any */
    tide_progress_fn *progress; /* non-zero: it is to stop */
    bool (*stopped)(void *arg);
    void *arg;
};

struct torture;

/* Reads the graph. `want` must outlive it. */
enum tide_code torture_new(const struct torture_want *want, struct torture **ret, struct tide_err *err) MUST_CHECK;
tide_graph *torture_graph(struct torture *t);

/* `memory`: JSON object, with what the graph needs; NULL: none. The report lives as long as `t`. */
enum tide_code torture_run(struct torture *t, const char *memory, const struct torture_report **ret_report,
                           struct tide_err *err) MUST_CHECK;

/* The store goes with it, unless it is kept: to be, or because something is wrong. Takes NULL. */
void torture_free(struct torture *t);

#endif
