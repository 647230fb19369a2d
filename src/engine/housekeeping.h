/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting sessions by what they are: what a person asks for, and what has been kept long enough (the setting `retention`).
 * A session is deleted as it was judged, or not at all: whatever is appended meanwhile keeps it.
 */
#ifndef ENGINE_HOUSEKEEPING_H
#define ENGINE_HOUSEKEEPING_H

#include <stdbool.h>

#include "base/err.h"

struct housekeeping_filter {
    const char *status, *agent,
        *task_id;                /* as in struct tide_list_filter; status NULL: only what nobody needs any more */
    enum tide_session_kind kind; /* 0: any */
    int64_t until_ms;            /* changed before; 0: whenever */
    bool keep_parents;           /* never one that another is forked from */
};

struct housekeeping_found {
    char id[TIDE_ID_SIZE], title[80], status[80]; /* title: the agent of one without */
    int64_t seq, updated_ms;
    bool deleted;
    struct tide_err kept; /* why it was not; code 0 when it was, or was not tried */
};

struct housekeeping {
    struct housekeeping_found *at; /* newest first, so that forks come before what they stand on */
    size_t n, cap;
};
void housekeeping_done(struct housekeeping *h);

/* Which ones the filter means. Without a status: never one that runs, waits, is interrupted or damaged, or has a queue. */
enum tide_code housekeeping_find(tide_store *store, const struct housekeeping_filter *filter, struct housekeeping *ret,
                                 struct tide_err *err) MUST_CHECK;

/* Deletes them. One that cannot be is kept, and says why; trouble of the store ends it. */
enum tide_code housekeeping_delete(tide_store *store, struct housekeeping *h, struct tide_err *err) MUST_CHECK;

/* The setting `retention` (or TIDEMARK_RETENTION): how long sessions are kept after their last change; 0: for ever. */
enum tide_code housekeeping_retention(const char *config, int64_t *ret_ms, struct tide_err *err) MUST_CHECK;

/* What has been kept long enough goes: *ret_n sessions, or would. */
enum tide_code housekeeping_expire(tide_store *store, int64_t retention_ms, bool dry_run, int64_t *ret_n,
                                   struct tide_err *err) MUST_CHECK;

/* Deletes one, unless anything was appended behind `seq`: TIDE_CONFLICT. */
enum tide_code housekeeping_delete_at(tide_store *store, const char *id, int64_t seq, struct tide_err *err)
    TIDE_MUST_CHECK;

#endif
