/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions as tide_session_list() and tide_session_get_info() give them, with what moves them as it can work: of one that runs a
 * graph the graph is looked at (graph/resume_next.h). Every face shows what moves a session from here, so no two disagree.
 */
#ifndef ENGINE_SESSION_NEXT_H
#define ENGINE_SESSION_NEXT_H

#include <stdbool.h>

#include "base/err.h"
#include "tidemark.h"

enum tide_code session_list_next(tide_store *store, const struct tide_list_filter *filter, tide_session_info_fn *fn,
                                 void *arg, struct tide_err *err) MUST_CHECK;
/* Looks at so many sessions at most: as of session_list_part(). */
#define NEXT_CURSOR_SIZE sizeof(((struct tide_session_info *)0)->cursor)
enum tide_code session_list_next_part(tide_store *store, const struct tide_list_filter *filter, int64_t look,
                                      tide_session_info_fn *fn, void *arg, char ret_looked[NEXT_CURSOR_SIZE],
                                      struct tide_err *err) MUST_CHECK;
enum tide_code session_show_next(tide_session *session, tide_session_info_fn *fn, void *arg, struct tide_err *err)
    MUST_CHECK;

/* A resume needs the graph file again, because it is not stored as it was; see `why`. */
bool session_withholds_graph(tide_session *session);

/* The time since which its state has been this one, as far as the log shows. */
enum tide_code session_since(tide_session *session, int64_t *ret_ms, struct tide_err *err) MUST_CHECK;

#endif
