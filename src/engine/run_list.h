/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a session, from its log. */
#ifndef ENGINE_RUN_LIST_H
#define ENGINE_RUN_LIST_H

#include "base/err.h"
#include "base/mem.h"
#include "tidemark.h"

struct run_row {
    const char *run_id, *resumed_from; /* resumed_from: the run that it continues; NULL: none */
    const char *status;                /* running waiting interrupted completed failed cancelled */
    const char *reason, *error;        /* NULL: none */
    int64_t first_seq, last_seq;       /* of its own events; last_seq 0: it has not ended */
    int64_t started_ms, ended_ms;      /* 0: it has not */
};

struct run_list {
    struct run_row *at; /* oldest first */
    size_t n, cap;
    struct arena arena;
};

/* The newest `limit` of them (0: all), or the one of this id (NULL: any). run_list_done() in every case. */
enum tide_code run_list_read(tide_session *session, const char *run_id, size_t limit, struct run_list *ret,
                             struct tide_err *err) MUST_CHECK;
void run_list_done(struct run_list *l);

#endif
