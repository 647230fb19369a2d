/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records for the operator of the process (tide_log_set() of tidemark.h). Every part writes here, an error once, where it stops
 * being one: a failure that is returned is reported by its caller. Never payloads. What the open stores hide is in no record.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdatomic.h>

#include "base/secrets.h"
#include "tidemark.h"

extern atomic_int log_level; /* of log.c */

/* What a record costs that nobody wants. */
static inline bool log_enabled(enum tide_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

#define LOG_FIELDS_MAX 12

/* One without a key is left out. */
struct log_field {
    const char *key, *text; /* text NULL: the number */
    int64_t number;
};

/* A text that is NULL is left out. */
static inline struct log_field log_text(const char *key, const char *text)
{
    return (struct log_field){text ? key : NULL, text, 0};
}

static inline struct log_field log_number(const char *key, int64_t number)
{
    return (struct log_field){key, NULL, number};
}

/* log_write(TIDE_LOG_WARN, "full disk", log_text("store", path), log_number("bytes", n)); fields of a record that nobody wants are
 * not computed. */
#define log_write(level, message, ...)                                                                                 \
    do {                                                                                                               \
        enum tide_log_level log_level_ = (level);                                                                      \
        if (log_enabled(log_level_)) {                                                                                 \
            const struct log_field log_fields_[] = {{0}, ##__VA_ARGS__};                                               \
            _Static_assert(sizeof log_fields_ / sizeof log_fields_[0] <= LOG_FIELDS_MAX + 1, "too many fields");       \
            log_record(log_level_, (message), log_fields_, sizeof log_fields_ / sizeof log_fields_[0]);                \
        }                                                                                                              \
    } while (0)
void log_record(enum tide_log_level level, const char *message, const struct log_field *fields, size_t len);

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
