/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor: is everything in order, and if not, what can be done? Each check answers by itself; the first ones need no store, so
 * that it has something to say on a full disk and before a store that cannot be opened. What can be done is data: each face says it
 * with its own commands or links.
 */
#ifndef ENGINE_DOCTOR_H
#define ENGINE_DOCTOR_H

#include "engine/findings.h"

struct doctor_options {
    const char *store, *config, *key_file; /* as the face was given them; NULL: not given */
    int key_fd;                            /* -1: not given */
    bool verbose;                          /* as of settings_check(), */
    const char *log_format;                /* as is this */
    bool online;                           /* the provider is asked, which costs some tokens */
    /* Opens the store, if there is one, for reading; it stays the face's. */
    enum tide_code (*open)(void *arg, tide_store **ret_store, struct tide_err *err);
    void *arg;
    /* As of next_command_fn: how the face says what can be done; NULL: actions alone. */
    const char *(*command)(struct arena *a, const struct tide_next *next);
};

/* Makes every check, into a report that is still empty. */
void doctor_examine(const struct doctor_options *opt, struct check_report *ret);

/* Marks what a person has accepted (forgotten.h). */
void doctor_mark_forgotten(struct check_report *r);

#endif
