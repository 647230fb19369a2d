/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process inside a run asks of it, over the run's socket: a step, a wait, a value of the memory, a checkpoint.
 * TIDE_INVALID: it is inside no run.
 */
#ifndef ENGINE_RUN_INSIDE_H
#define ENGINE_RUN_INSIDE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* The memory of the session; values are JSON. TIDE_NOT_FOUND: it is not set. */
enum tide_code inside_set(struct str key, struct str value, struct tide_err *err) MUST_CHECK;
enum tide_code inside_get(const char *key, struct buf *ret_value, struct tide_err *err) MUST_CHECK;

/* `description` NULL: none. */
enum tide_code inside_checkpoint(const char *type, const char *description, char ret_id[TIDE_ID_SIZE],
                                 struct tide_err *err) MUST_CHECK;

struct inside_wait {
    const char *name, *kind, *question; /* question NULL: none */
    int64_t deadline_ms, expires_ms;    /* 0: none */
    const char *on_deadline;            /* a word of enum tide_on_deadline; NULL: none */
    const char *default_answer;         /* JSON; NULL: none */
};

/* Both return only when the answer is in the log, or the time has come; else the run is parked and this process ended. */
enum tide_code inside_wait(const struct inside_wait *wait, struct buf *ret_answer, struct tide_err *err) MUST_CHECK;
enum tide_code inside_sleep(const char *name, int64_t due_ms, struct tide_err *err) MUST_CHECK;

#define STEP_OUTPUT_DEFAULT ((int64_t)16 << 20)
#define STEP_OUTPUT_MAX ((int64_t)48 << 20)

struct inside_step {
    const char *name, *effect;
    const char *probe; /* shell command; NULL: none */
    char **argv;
    int64_t retries;
    int64_t timeout_ms;  /* 0: none */
    const char *timeout; /* as it was said */
    size_t max_output;
    int echo;                  /* where output goes as it comes; -1: nowhere */
    int (*signals)(void *arg); /* a descriptor as of capture_next_signal(), when it has been asked; -1: none */
    void (*tell)(void *arg, const char *line);   /* for people */
    void (*print)(void *arg, struct str output); /* it is on disk */
    void (*kept)(void *arg, int64_t run);        /* an earlier run of the session did it: which, from 1 */
    void *arg;

    int exit_status;    /* that of the program, as shells have it */
    bool failed_before; /* and must happen once: it is not run again */
    bool interrupted;   /* by Ctrl-C, in the terminal that it had */
};

/* Runs it, unless its result is recorded. */
enum tide_code inside_step(struct inside_step *step, struct tide_err *err) MUST_CHECK;

#endif
