/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: what their sessions are, and what a person says of them. A task is there as long as a session has its task_id. Its state
 * follows from its sessions; what a person sets is in a session of kind `task`, one for each task, and counts until it is taken
 * back. No session ever stands in for another.
 */
#ifndef ENGINE_TASKS_H
#define ENGINE_TASKS_H

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "tidemark.h"

#define TASK_ID_MAX ((size_t)512) /* bytes */
#define TASK_STATE_MAX ((size_t)32)

struct task_row {
    const char *task_id, *title; /* title NULL: nobody gave it one */
    const char *state;           /* what a person set, else derived */
    const char
        *derived; /* from the sessions: RUNNING, WAITING_FOR_INPUT, ERROR, or that of the one that changed last */
    bool is_set;
    int64_t sessions, running, waiting; /* without the one that holds what was set */
    int64_t created_ms, updated_ms;
    const char *session_id; /* that holds what was set; NULL: nothing was */
    int64_t seq;            /* of it; 0 */
    int64_t changed_ms;     /* of the session that `derived` is of */
};

struct task_list {
    struct task_row *at; /* the one that changed last first */
    size_t n, cap;
    struct arena arena;
    struct map by_id;
};

/* All of them, or only this one (NULL: any). task_list_done() in every case. */
enum tide_code task_list_read(tide_store *store, const char *task_id, struct task_list *ret, struct tide_err *err)
    MUST_CHECK;
void task_list_done(struct task_list *l);

/* TIDE_NOT_FOUND: no session is of this task. The row lives as long as the list. */
enum tide_code task_find(tide_store *store, const char *task_id, struct task_list *ret,
                         const struct task_row **ret_task, struct tide_err *err) MUST_CHECK;

/* Whether a session is one of this task: TIDE_NOT_FOUND when it is of another one, or holds what was set. */
enum tide_code task_check_session(tide_session *session, const char *task_id, struct tide_err *err) MUST_CHECK;

struct task_change {
    const char *state;  /* of [A-Z_]; "" takes it back; NULL: it stays */
    const char *title;  /* NULL: it stays */
    const char *by;     /* who changes it */
    int64_t expect_seq; /* of the session that holds it, or TIDE_CONFLICT; -1: whatever it is */
};
/* On disk on return. The first change makes the task. */
enum tide_code task_set(tide_store *store, const char *task_id, const struct task_change *change, struct tide_err *err)
    MUST_CHECK;

#endif
