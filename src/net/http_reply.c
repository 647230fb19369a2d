/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   head ─► length ─────────────────────────► over
 *        ─► chunk size ─► chunk ─► chunk end ─┐
 *               ▲  └─(0)─► trailer ─► over    │
 *               └─────────────────────────────┘
 *        ─► rest (until the connection ends) ─► over
 *
 * An answer of status 1xx is passed over. Of a line only its end of line is taken away: CR LF, or LF alone.
 */
#include "net/http_reply.h"

#include <strings.h>

#define LINE_MAX_BYTES 256 /* of a chunk's size and what stands behind it */
#define PASSED_MAX 8       /* answers of status 1xx */
#define TRAILER_MAX 8192
#define CHUNK_MAX ((uint64_t)1 << 40)

void http_reply_init(struct http_reply *r, size_t head_max, size_t body_max)
{
    *r = (struct http_reply){.head = BUF_INIT(head_max), .body = BUF_INIT(body_max), .line = BUF_INIT(LINE_MAX_BYTES)};
}

void http_reply_done(struct http_reply *r)
{
    buf_done(&r->head);
    buf_done(&r->body);
    buf_done(&r->line);
}

static enum tide_code refuse_reply(struct tide_err *err, const char *why)
{
    return tide_fail(err, TIDE_INVALID, "what answers there speaks no HTTP/1.1 that can be trusted: %s", why);
}

/* ---- fields ---- */

static struct str next_line(struct str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    struct str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t used = line.len + (end != NULL);

    *rest = (struct str){rest->ptr + used, rest->len - used};
    if (line.len && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* The `nth` field of this name, from 0. */
static struct str nth_field(const struct http_reply *r, const char *name, size_t nth)
{
    struct str rest = buf_view(&r->head);

    (void)next_line(&rest);
    while (rest.len) {
        struct str line = next_line(&rest);
        const char *colon = memchr(line.ptr, ':', line.len);
        size_t n = colon ? (size_t)(colon - line.ptr) : 0;

        if (n == strlen(name) && strncasecmp(line.ptr, name, n) == 0 && nth-- == 0)
            return str_trim((struct str){colon + 1, line.len - n - 1});
    }
    return (struct str){NULL, 0};
}

struct str http_reply_field(const struct http_reply *r, const char *name)
{
    return nth_field(r, name, 0);
}

static bool value_says(struct str value, const char *word)
{
    return value.ptr && value.len == strlen(word) && strncasecmp(value.ptr, word, value.len) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK" */
static bool read_status(struct str line, int *ret_status, bool *ret_stays)
{
    if (line.len < 12 || !str_starts(line, STR("HTTP/1.")) || (line.ptr[7] != '0' && line.ptr[7] != '1') ||
        line.ptr[8] != ' ' || (line.len > 12 && line.ptr[12] != ' '))
        return false;
    for (size_t i = 9; i < 12; i++)
        if (!is_digit(line.ptr[i]))
            return false;
    *ret_status = (line.ptr[9] - '0') * 100 + (line.ptr[10] - '0') * 10 + (line.ptr[11] - '0');
    *ret_stays = line.ptr[7] == '1';
    return *ret_status >= 100 && *ret_status < 600;
}

static bool is_field(struct str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    if (!colon || colon == line.ptr || memchr(line.ptr, '\0', line.len) || memchr(line.ptr, '\r', line.len))
        return false;
    for (const char *c = line.ptr; c < colon; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            return false;
    return true;
}

static bool read_length(struct str text, uint64_t *ret)
{
    int64_t n;

    if (!text.len || !is_digit(text.ptr[0]) || !str_to_int64(text, &n))
        return false;
    *ret = (uint64_t)n;
    return true;
}

static bool is_taken(const struct http_reply *r)
{
    return r->take && r->status == 200;
}

/* How long the body is, from the fields. */
static enum tide_code choose_body(struct http_reply *r, struct tide_err *err)
{
    struct str length = nth_field(r, "Content-Length", 0), coding = nth_field(r, "Transfer-Encoding", 0);

    r->stays = r->stays && !value_says(nth_field(r, "Connection", 0), "close");
    if (coding.ptr && (length.ptr || !value_says(coding, "chunked") || nth_field(r, "Transfer-Encoding", 1).ptr))
        return refuse_reply(err, "its Transfer-Encoding is none that is understood");
    if (nth_field(r, "Content-Length", 1).ptr || (length.ptr && !read_length(length, &r->left)))
        return refuse_reply(err, "its Content-Length is not a length");
    if (r->status == 204 || r->status == 304 || (length.ptr && !r->left))
        r->state = REPLY_OVER;
    else if (coding.ptr)
        r->state = REPLY_CHUNK_SIZE;
    else
        r->state = length.ptr ? REPLY_LENGTH : REPLY_REST;
    r->stays = r->stays && r->state != REPLY_REST;
    if (r->state == REPLY_LENGTH && !is_taken(r) && r->left > r->body.max)
        return tide_fail(err, TIDE_TOO_BIG, "the answer has more than the %zu bytes that are taken", r->body.max);
    return TIDE_OK;
}

static enum tide_code end_head(struct http_reply *r, struct tide_err *err)
{
    struct str rest = buf_view(&r->head), line = next_line(&rest);

    if (!read_status(line, &r->status, &r->stays))
        return refuse_reply(err, "its first line is not a status line");
    while (rest.len) {
        line = next_line(&rest);
        if (!is_field(line))
            return refuse_reply(err, "one of its fields is none");
    }
    if (r->status == 101)
        return refuse_reply(err, "it changes to another protocol");
    if (r->status < 200 && ++r->passed > PASSED_MAX)
        return refuse_reply(err, "it only announces an answer");
    if (r->status < 200) { /* the answer itself is still to come */
        buf_clear(&r->head);
        return TIDE_OK;
    }
    return choose_body(r, err);
}

/* ---- bytes ---- */

/* The first line must begin as one of HTTP does, at once: a server that answers something else may never end it. */
static bool may_be_http(const struct buf *head)
{
    static const char begin[] = "HTTP/1.";
    size_t n = head->len < sizeof begin - 1 ? head->len : sizeof begin - 1;

    return memcmp(head->ptr, begin, n) == 0;
}

/* Of the empty line that the text ends with, how many bytes it has; 0: it ends with none. */
static size_t blank_line(struct str text)
{
    const char *end = text.ptr + text.len;

    if (text.len > 2 && memcmp(end - 3, "\n\r\n", 3) == 0)
        return 2;
    return text.len > 1 && memcmp(end - 2, "\n\n", 2) == 0;
}

static enum tide_code feed_head(struct http_reply *r, struct str bytes, size_t *ret_used, struct tide_err *err)
{
    size_t i = 0;

    while (i < bytes.len && r->state == REPLY_HEAD) {
        const char *end = memchr(bytes.ptr + i, '\n', bytes.len - i);
        size_t n = end ? (size_t)(end - bytes.ptr) - i + 1 : bytes.len - i;
        size_t blank, room = r->head.max - r->head.len;

        buf_add(&r->head, bytes.ptr + i, n < room ? n : room);
        i += n;
        if (!may_be_http(&r->head))
            return refuse_reply(err, "its first line is not a status line");
        if (n > room)
            return tide_fail(err, TIDE_TOO_BIG, "the head of the answer has more than %zu bytes", r->head.max);
        blank = end ? blank_line(buf_view(&r->head)) : 0;
        if (!blank)
            continue;
        r->head.len -= blank;
        if (end_head(r, err))
            return err->code;
    }
    *ret_used = i;
    return TIDE_OK;
}

static enum tide_code take_body(struct http_reply *r, struct str bytes, struct tide_err *err)
{
    if (is_taken(r)) {
        r->stopped = r->stopped || !r->take(r->arg, bytes);
        if (r->stopped) {
            r->state = REPLY_OVER;
            r->stays = false;
        }
        return TIDE_OK;
    }
    buf_add_str(&r->body, bytes);
    return r->body.failed
               ? tide_fail(err, TIDE_TOO_BIG, "the answer has more than the %zu bytes that are taken", r->body.max)
               : TIDE_OK;
}

/* A line up to its end, kept in r->line; false: it continues. */
static bool take_line(struct http_reply *r, struct str bytes, size_t *ret_used)
{
    const char *end = memchr(bytes.ptr, '\n', bytes.len);
    size_t n = end ? (size_t)(end - bytes.ptr) : bytes.len;

    buf_add(&r->line, bytes.ptr, n);
    *ret_used = n + (end != NULL);
    if (end && r->line.len && r->line.ptr[r->line.len - 1] == '\r')
        r->line.len--;
    return end != NULL;
}

static int hex_value(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "1a3f;extension" */
static bool read_size(struct str line, uint64_t *ret)
{
    uint64_t n = 0;
    size_t i = 0;

    for (; i < line.len && hex_value(line.ptr[i]) >= 0; i++) {
        n = n * 16 + (uint64_t)hex_value(line.ptr[i]);
        if (n > CHUNK_MAX)
            return false;
    }
    *ret = n;
    return i > 0 && (i == line.len || line.ptr[i] == ';' || line.ptr[i] == ' ' || line.ptr[i] == '\t');
}

static enum tide_code feed_line(struct http_reply *r, struct str bytes, size_t *ret_used, struct tide_err *err)
{
    struct str line;

    if (!take_line(r, bytes, ret_used))
        return r->line.failed ? refuse_reply(err, "a chunk begins with a line that has no end") : TIDE_OK;
    line = buf_view(&r->line);
    if (r->line.failed)
        return refuse_reply(err, "a line among its chunks is too long");
    if (r->state == REPLY_CHUNK_END) {
        if (line.len)
            return refuse_reply(err, "a chunk is longer than it says");
        r->state = REPLY_CHUNK_SIZE;
    } else if (r->state == REPLY_TRAILER) {
        if (line.len >= r->left)
            return refuse_reply(err, "what stands behind its last chunk has no end");
        r->left -= line.len;
        r->state = line.len ? REPLY_TRAILER : REPLY_OVER;
    } else {
        if (!read_size(line, &r->left))
            return refuse_reply(err, "a chunk has no size");
        r->state = r->left ? REPLY_CHUNK : REPLY_TRAILER;
        r->left = r->left ? r->left : TRAILER_MAX;
    }
    buf_clear(&r->line);
    return TIDE_OK;
}

static enum tide_code feed_body(struct http_reply *r, struct str bytes, size_t *ret_used, struct tide_err *err)
{
    size_t n = r->state != REPLY_REST && bytes.len > r->left ? (size_t)r->left : bytes.len;

    *ret_used = n;
    if (r->state != REPLY_REST)
        r->left -= n;
    if (take_body(r, (struct str){bytes.ptr, n}, err))
        return err->code;
    if (r->state == REPLY_LENGTH && !r->left)
        r->state = REPLY_OVER;
    else if (r->state == REPLY_CHUNK && !r->left)
        r->state = REPLY_CHUNK_END;
    return TIDE_OK;
}

enum tide_code http_reply_feed(struct http_reply *r, struct str bytes, size_t *ret_used, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    size_t at = 0;

    while (!code && at < bytes.len && r->state != REPLY_OVER) {
        struct str rest = {bytes.ptr + at, bytes.len - at};
        size_t used = 0;

        if (r->state == REPLY_HEAD)
            code = feed_head(r, rest, &used, err);
        else if (r->state == REPLY_LENGTH || r->state == REPLY_CHUNK || r->state == REPLY_REST)
            code = feed_body(r, rest, &used, err);
        else
            code = feed_line(r, rest, &used, err);
        at += used;
    }
    *ret_used = at;
    return code;
}

enum tide_code http_reply_end(struct http_reply *r, struct tide_err *err)
{
    if (r->state == REPLY_REST)
        r->state = REPLY_OVER;
    r->stays = false;
    return r->state == REPLY_OVER ? TIDE_OK
                                  : tide_fail(err, TIDE_IO, "the connection ended in the middle of the answer");
}
