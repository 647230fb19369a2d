/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifications: the program that the settings name is called with JSON on its standard input for each change of a run that they
 * name. It is the settings that say which program, never a session. Sending is a process of its own, `tidemark notify`: the process that
 * wrote the change starts it and does not wait; recovery starts it for what was left. One process at a time sends for a store.
 */
#ifndef ENGINE_NOTIFY_H
#define ENGINE_NOTIFY_H

#include "engine/shapes.h"

/* As the settings have it: TIDEMARK_NOTIFY…, else the file. */
struct notify_settings {
    char **argv; /* ends with NULL; NULL: nothing is sent */
    unsigned on;
    int64_t timeout_ms, retry_ms;
    struct arena arena;
};
enum tide_code notify_settings_read(const char *config, struct notify_settings *ret, struct tide_err *err) MUST_CHECK;
void notify_settings_done(struct notify_settings *s);

/* How this process's program is started again as `tidemark notify`; texts are borrowed, NULL: not given. */
struct notify_start {
    const char *url, *config, *key_file;
};

/*
 * From here on what this process writes to the store asks for notifications as the settings say, and a process that sends them
 * is started when there is something to send. NULL: they name no program. It must outlive the store.
 */
struct notifier;
enum tide_code notifier_new(tide_store *store, const struct notify_start *start, struct notifier **ret,
                            struct tide_err *err) MUST_CHECK;
void notifier_free(struct notifier *n);

/* Starts no process any more: its owner calls notify_send(). Takes NULL. */
void notifier_hold(struct notifier *n);

/* What became of one; `why` NULL: sent; retry_ms 0: given up. */
struct notify_outcome {
    const char *id, *session_id, *transition;
    int64_t seq, attempt;
    const char *why;
    int64_t retry_ms;
};

struct notify_faces {
    next_command_fn *command;
    bool (*stopped)(void *arg);
    void (*told)(void *arg, const struct notify_outcome *outcome); /* once it is on disk */
    void *arg;
};

/* Sends what is due, one after the other; nothing when another process does, or is about to, or the settings name no program. */
enum tide_code notify_send(tide_store *store, const char *url, const char *config, const struct notify_faces *faces,
                           struct tide_err *err) MUST_CHECK;

#endif
