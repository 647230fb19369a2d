/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event stream format of the HTML standard, as far as model providers use it: the fields `event` and `data`, comments,
 * and lines that end in CR, LF or CRLF. What is kept between two pieces is one unfinished line and one unfinished event,
 * both bounded, because the other side decides how long they are.
 */
#include "agent/sse.h"

static enum tide_code dispatch_event(struct sse *s, sse_fn *fn, void *arg)
{
    enum tide_code code = TIDE_OK;

    if (s->has_data)
        code = fn(arg, buf_view(&s->name), buf_view(&s->data));
    buf_clear(&s->name);
    buf_clear(&s->data);
    s->has_data = false;
    return code;
}

static enum tide_code take_line(struct sse *s, struct str line, sse_fn *fn, void *arg)
{
    const char *colon;
    struct str field = line, value = {"", 0};

    if (line.len == 0)
        return dispatch_event(s, fn, arg);
    colon = memchr(line.ptr, ':', line.len);
    if (colon) {
        field.len = (size_t)(colon - line.ptr);
        value = (struct str){colon + 1, line.len - field.len - 1};
    }
    if (value.len > 0 && value.ptr[0] == ' ')
        value = (struct str){value.ptr + 1, value.len - 1};
    if (str_eq(field, STR("data"))) {
        if (s->has_data)
            buf_add_char(&s->data, '\n');
        s->has_data = true;
        buf_add_str(&s->data, value);
        return s->data.failed ? TIDE_TOO_BIG : TIDE_OK;
    }
    if (str_eq(field, STR("event")) && value.len <= s->name.max) {
        buf_clear(&s->name);
        buf_add_str(&s->name, value);
    }
    return TIDE_OK; /* comments, ids and fields of later versions say nothing to us */
}

/* The line is the kept beginning and `rest`; without a beginning nothing is copied. */
static enum tide_code finish_line(struct sse *s, struct str rest, sse_fn *fn, void *arg)
{
    struct str line = rest;
    enum tide_code code;

    if (s->line.len > 0) {
        buf_add_str(&s->line, rest);
        line = buf_view(&s->line);
    }
    if (s->line.failed || line.len > SSE_MAX_EVENT)
        return TIDE_TOO_BIG;
    if (!s->begun && str_starts(line, STR("\xef\xbb\xbf")))
        line = (struct str){line.ptr + 3, line.len - 3};
    s->begun = true;
    code = take_line(s, line, fn, arg);
    buf_clear(&s->line);
    return code;
}

enum tide_code sse_feed(struct sse *s, struct str bytes, sse_fn *fn, void *arg)
{
    enum tide_code code = TIDE_OK;

    while (bytes.len > 0 && !code) {
        const char *end, *cr;

        if (s->after_cr && bytes.ptr[0] == '\n')
            bytes = (struct str){bytes.ptr + 1, bytes.len - 1};
        s->after_cr = false;
        end = memchr(bytes.ptr, '\n', bytes.len);
        cr = memchr(bytes.ptr, '\r', end ? (size_t)(end - bytes.ptr) : bytes.len);
        end = cr ? cr : end;
        if (!end)
            break;
        s->after_cr = *end == '\r';
        code = finish_line(s, (struct str){bytes.ptr, (size_t)(end - bytes.ptr)}, fn, arg);
        bytes = (struct str){end + 1, bytes.len - (size_t)(end - bytes.ptr) - 1};
    }
    if (code)
        return code;
    buf_add_str(&s->line, bytes);
    return s->line.failed ? TIDE_TOO_BIG : TIDE_OK;
}

void sse_done(struct sse *s)
{
    if (!s)
        return;
    buf_done(&s->line);
    buf_done(&s->name);
    buf_done(&s->data);
}
