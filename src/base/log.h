/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records for whoever runs the process (tide_log_set() of tidemark.h). Every part writes here, an error once, where it stops
 * being one: a failure that is returned is its caller's to tell. Never payloads. What the open stores hide is in no record.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdatomic.h>

#include "base/secrets.h"
#include "tidemark.h"

#define LOG_FIELDS_MAX 12

extern atomic_int log_level; /* of log.c */

/* What a record costs that nobody wants. */
static inline bool log_enabled(enum tide_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

/*
 * Fields follow as key, value pairs of C strings, ended by NULL: log_write(TIDE_LOG_WARN, "full disk", "store", path, NULL). A
 * value that is NULL is left out.
 */
void log_write(enum tide_log_level level, const char *message, ...) __attribute__((sentinel));

/* A set of secrets that no record shows, until it is taken away: that of an open store. */
void log_hide(struct secrets *secrets);
void log_unhide(const struct secrets *secrets);
void log_clean(char *line, size_t size); /* the same for a line that goes elsewhere, in place */

/*
 * A sink of our own: one line per record, text or JSON, to one descriptor (log_line.c). Nobody waits for it: while a pipe or a
 * terminal takes no more, records are lost, and the next one says how many. now_ms gives the time of a record; NULL: none.
 */
enum log_format { LOG_TEXT, LOG_JSON };
void log_line_setup(enum log_format format, int fd, int64_t (*now_ms)(void));
tide_log_fn log_line;

#endif
