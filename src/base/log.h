/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured logging for the engine and the command line: one line per record, text or JSON, to one descriptor.
 * Libraries do not log; an error is logged once, where it stops. Never payloads or secrets. Nobody waits for the descriptor:
 * while a pipe or a terminal takes no more, records are lost, and the next one says how many.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/secrets.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* now_ms gives the time of a record; NULL leaves it out. Default: warn, text, standard error, no time. */
void log_setup(enum log_level level, enum log_format format, int fd, int64_t (*now_ms)(void));
bool log_enabled(enum log_level level);

/* What is known to be secret is in no record. The set is borrowed until another, or NULL, is given. */
void log_hide(struct secrets *secrets);
void log_clean(char *line, size_t size); /* the same for a line that goes elsewhere, in place */

/* Fields follow as key, value pairs of C strings, ended by NULL: log_write(LOG_WARN, "full disk", "store", path, NULL) */
void log_write(enum log_level level, const char *message, ...) __attribute__((sentinel));

#endif
