/* SPDX-License-Identifier: Apache-2.0 */
/* Making and wrapping the one error type. The codes and their table are in tidemark.h. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "tidemark.h"

#define MUST_CHECK __attribute__((warn_unused_result))

/* Sets *err (may be NULL) and returns code. */
enum tide_code tide_fail(struct tide_err *err, enum tide_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message of *err and returns its code. err must have been set by a failed call. */
enum tide_code tide_wrap(struct tide_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Puts ": more" behind the message, which is cut to leave room for it; "": nothing. Code, detail and hints stay. Returns the code.
 */
enum tide_code tide_wrap_after(struct tide_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * What the failure that was made just before is about; returns its code. What was said nearer to it stays, and is
 * completed. err may be NULL; so may `name`.
 */
enum tide_code tide_about(struct tide_err *err, enum tide_subject subject, const char *name);
enum tide_code tide_about_session(struct tide_err *err, const char *session);
enum tide_code tide_about_position(struct tide_err *err, enum tide_subject subject, int64_t position);

/* A failure of one thing: "step 'x' has begun already"; of a text that begins with ':' "step 'x': …". */
enum tide_code tide_fail_of(struct tide_err *err, enum tide_code code, enum tide_subject subject, const char *name,
                            const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define tide_fail_session(err, code, id, ...) tide_fail_of(err, code, TIDE_SUBJECT_SESSION, id, __VA_ARGS__)
#define tide_fail_step(err, code, name, ...) tide_fail_of(err, code, TIDE_SUBJECT_STEP, name, __VA_ARGS__)
#define tide_fail_node(err, code, name, ...) tide_fail_of(err, code, TIDE_SUBJECT_NODE, name, __VA_ARGS__)

/* Adds what can be done about the failure that was made just before, and returns its code. err may be NULL. `session` "": the store. */
enum tide_code tide_hint(struct tide_err *err, enum tide_action action, const char *session);
/* The same with arguments: the members of a JSON object. */
enum tide_code tide_hint_with(struct tide_err *err, enum tide_action action, const char *session, const char *members,
                              ...) __attribute__((format(printf, 4, 5)));

/* A failed system call: the code that fits errno (ENOSPC is TIDE_FULL, EACCES TIDE_DENIED, …) and its text behind. */
enum tide_code tide_fail_errno(struct tide_err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of a file: "open '/a/b': No such file or directory". */
enum tide_code tide_fail_file(struct tide_err *err, int errnum, const char *verb, const char *path);

/* Copies an error that was kept. */
enum tide_code tide_err_copy(struct tide_err *err, const struct tide_err *from);

/* For callers that may pass err NULL but whose callees need one to wrap. */
#define ERR_LOCAL(err)                                                                                                 \
    struct tide_err err_local_ = {.code = TIDE_OK};                                                                    \
    (err) = (err) ? (err) : &err_local_

#endif
