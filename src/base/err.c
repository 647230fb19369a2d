/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error type and its table. A message is always one line of whole characters that is safe on a terminal,
 * whatever came in from files and peers: what goes in is cut and cleaned here, so that nobody else has to.
 */
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/scan.h"

#define DRAFT_SIZE (sizeof(((struct tide_err *)NULL)->msg) + 4) /* shows whether the cut falls inside a character */

static const struct code_row {
    const char *name, *text;
    int exit, http, retry;
} code_rows[] = {
#define CODE_ROW(name, number, exit, http, retry, text) [number] = {#name, text, exit, http, retry},
    TIDE_CODES(CODE_ROW)
#undef CODE_ROW
};

static const struct {
    int errnum;
    enum tide_code code;
} errno_rows[] = {
    {ENOSPC, TIDE_FULL},       {EDQUOT, TIDE_FULL},          {EFBIG, TIDE_FULL},    {EACCES, TIDE_DENIED},
    {EPERM, TIDE_DENIED},      {EROFS, TIDE_READ_ONLY},      {EEXIST, TIDE_EXISTS}, {ENOENT, TIDE_NOT_FOUND},
    {ENOTDIR, TIDE_NOT_FOUND}, {EBUSY, TIDE_BUSY},           {EAGAIN, TIDE_BUSY},   {EMFILE, TIDE_BUSY},
    {ENFILE, TIDE_BUSY},       {ENAMETOOLONG, TIDE_INVALID}, {EISDIR, TIDE_DENIED},
};

static const struct code_row *row_of(enum tide_code code)
{
    size_t n = sizeof(code_rows) / sizeof(code_rows[0]);

    return &code_rows[(size_t)code < n ? code : TIDE_FAILED];
}

const char *tide_code_name(enum tide_code code)
{
    return row_of(code)->name;
}

const char *tide_code_text(enum tide_code code)
{
    return row_of(code)->text;
}

int tide_code_exit(enum tide_code code)
{
    return row_of(code)->exit;
}

int tide_code_http(enum tide_code code)
{
    return row_of(code)->http;
}

int tide_code_retry(enum tide_code code)
{
    return row_of(code)->retry;
}

const char *tide_version(void)
{
    return TIDE_VERSION;
}

void tide_text_done(struct tide_text *text)
{
    if (!text)
        return;
    free(text->ptr);
    *text = (struct tide_text){NULL, 0};
}

static void set_message(struct tide_err *err, const char *draft)
{
    struct str msg = utf8_clip(str_from(draft), sizeof(err->msg) - 1);

    memcpy(err->msg, msg.ptr, msg.len);
    err->msg[msg.len] = '\0';
    clean_line(err->msg, msg.len);
}

/* first + ": " + second, as far as it fits. */
static void set_joined(struct tide_err *err, const char *first, const char *second)
{
    char draft[2 * DRAFT_SIZE + 2];

    snprintf(draft, sizeof(draft), "%s: %s", first, second);
    set_message(err, draft);
}

/* Of a failure for which nobody wants an error: what is hinted at right behind it still fails with its code. */
static _Thread_local enum tide_code last_untold;

static enum tide_code begin_anew(struct tide_err *err, enum tide_code code)
{
    err->detail.subject = 0;
    err->detail.position = 0;
    err->detail.session_id[0] = err->detail.name[0] = '\0';
    for (size_t i = 0; i < sizeof(err->hints) / sizeof(err->hints[0]); i++)
        err->hints[i].action = 0;
    return err->code = code;
}

enum tide_code tide_fail(struct tide_err *err, enum tide_code code, const char *fmt, ...)
{
    char draft[DRAFT_SIZE]; /* the arguments may point into *err */
    va_list args;

    assert(code != TIDE_OK);
    if (!err)
        return last_untold = code;
    va_start(args, fmt);
    vsnprintf(draft, sizeof(draft), fmt, args);
    va_end(args);
    set_message(err, draft);
    return begin_anew(err, code);
}

/* A name is whole or left out: half of one is another thing's. */
static void set_name(char *field, size_t size, const char *name)
{
    size_t len = name && !field[0] ? strlen(name) : size;

    if (len < size)
        memcpy(field, name, len + 1);
}

enum tide_code tide_about_session(struct tide_err *err, const char *session)
{
    if (!err)
        return last_untold;
    if (!err->detail.subject)
        err->detail.subject = TIDE_SUBJECT_SESSION;
    set_name(err->detail.session_id, sizeof err->detail.session_id, session);
    return err->code;
}

enum tide_code tide_about(struct tide_err *err, enum tide_subject subject, const char *name)
{
    if (!err)
        return last_untold;
    if (subject == TIDE_SUBJECT_SESSION)
        return tide_about_session(err, name);
    if (!err->detail.subject || err->detail.subject == TIDE_SUBJECT_SESSION)
        err->detail.subject = subject;
    if (err->detail.subject == subject)
        set_name(err->detail.name, sizeof err->detail.name, name);
    return err->code;
}

enum tide_code tide_about_position(struct tide_err *err, enum tide_subject subject, int64_t position)
{
    enum tide_code code = tide_about(err, subject, NULL);

    if (err && err->detail.subject == subject && !err->detail.position)
        err->detail.position = position;
    return code;
}

enum tide_code tide_fail_of(struct tide_err *err, enum tide_code code, enum tide_subject subject, const char *name,
                            const char *fmt, ...)
{
    char rest[DRAFT_SIZE];
    va_list args;

    va_start(args, fmt);
    vsnprintf(rest, sizeof rest, fmt, args);
    va_end(args);
    tide_fail(err, code, "%s '%s'%s%s", tide_subject_name(subject), name, rest[0] == ':' ? "" : " ", rest);
    return tide_about(err, subject, name);
}

enum tide_code tide_hint_with(struct tide_err *err, enum tide_action action, const char *session, const char *members,
                              ...)
{
    struct tide_hint *h;
    char text[sizeof h->arguments];
    va_list args;

    if (!err)
        return last_untold;
    h = err->hints[0].action ? &err->hints[1] : &err->hints[0];
    va_start(args, members);
    vsnprintf(text, sizeof text, members, args);
    va_end(args);
    *h = (struct tide_hint){.action = action};
    snprintf(h->session_id, sizeof h->session_id, "%s", session);
    if (session[0])
        tide_about_session(err, session);
    if ((size_t)snprintf(h->arguments, sizeof h->arguments, "{%s}", text) >= sizeof h->arguments)
        h->action = 0; /* a name too long to be offered */
    return err->code;
}

enum tide_code tide_hint(struct tide_err *err, enum tide_action action, const char *session)
{
    return tide_hint_with(err, action, session, "%s", "");
}

enum tide_code tide_wrap(struct tide_err *err, const char *fmt, ...)
{
    char context[DRAFT_SIZE], inner[sizeof(err->msg)];
    va_list args;

    assert(err && err->code != TIDE_OK);
    va_start(args, fmt);
    vsnprintf(context, sizeof(context), fmt, args);
    va_end(args);
    memcpy(inner, err->msg, sizeof(inner));
    set_joined(err, context, inner);
    return err->code;
}

enum tide_code tide_wrap_after(struct tide_err *err, const char *fmt, ...)
{
    char more[sizeof(err->msg) / 2], first[sizeof(err->msg)];
    va_list args;

    assert(err && err->code != TIDE_OK);
    va_start(args, fmt);
    vsnprintf(more, sizeof(more), fmt, args);
    va_end(args);
    if (!more[0])
        return err->code;
    snprintf(first, sizeof(first), "%.*s", (int)(sizeof(err->msg) - sizeof(": ") - strlen(more)), err->msg);
    set_joined(err, first, more);
    return err->code;
}

enum tide_code tide_fail_errno(struct tide_err *err, int errnum, const char *fmt, ...)
{
    const char *why = strerrordesc_np(errnum);
    enum tide_code code = TIDE_IO;
    char what[DRAFT_SIZE];
    va_list args;

    for (size_t i = 0; i < sizeof(errno_rows) / sizeof(errno_rows[0]); i++)
        if (errno_rows[i].errnum == errnum)
            code = errno_rows[i].code;
    if (!err)
        return last_untold = code;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    set_joined(err, what, why ? why : "unknown system error");
    return begin_anew(err, code);
}

enum tide_code tide_fail_file(struct tide_err *err, int errnum, const char *verb, const char *path)
{
    tide_fail_errno(err, errnum, "%s '%s'", verb, path);
    if (errnum == EISDIR)
        tide_hint(err, TIDE_ACTION_REPLACE_FILE, "");
    return tide_about(err, TIDE_SUBJECT_FILE, path);
}

enum tide_code tide_err_copy(struct tide_err *err, const struct tide_err *from)
{
    if (err && err != from)
        *err = *from;
    return from->code;
}
