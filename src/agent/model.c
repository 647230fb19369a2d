/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers, built from the pieces that a stream brings. An answer is whole or there is none: nothing leaves here before the
 * stream has said that it is complete.
 *
 * What models send need not be Unicode. Two things are mended before the strict reader sees an event: bytes that are no
 * UTF-8 become U+FFFD, and escapes of lone surrogates become the escape of U+FFFD, which is as long, so that a place in the
 * mended text is the same place in the original. That is how two halves of a character that came in two events are found
 * and put together again; only a half that stays alone is replaced.
 */
#include "agent/model.h"

#include <stdio.h>

#include "agent/provider_internal.h"
#include "base/utf8.h"

#define REPLACEMENT STR("\xef\xbf\xbd") /* U+FFFD */
#define UNIT_LEN ((size_t)6)            /* of an escape: \uXXXX */

void model_answer_done(struct model_answer *a)
{
    if (!a)
        return;
    arena_done(&a->arena);
    *a = (struct model_answer){.arena = ARENA_INIT};
}

/* ---- Unicode ------------------------------------------------------------------------------------------------------- */

static struct str clean_bytes(struct buf *copy, struct str text, bool *replaced)
{
    size_t at;

    if (str_is_utf8(text, &at))
        return text;
    buf_clear(copy);
    do {
        buf_add(copy, text.ptr, at);
        buf_add_str(copy, REPLACEMENT);
        text = (struct str){text.ptr + at + 1, text.len - at - 1};
    } while (!str_is_utf8(text, &at));
    buf_add_str(copy, text);
    *replaced = true;
    return buf_view(copy);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The UTF-16 unit that is escaped at the start of `s`; -1 when none is. */
static int32_t escaped_unit(struct str s)
{
    int32_t unit = 0;

    if (s.len < UNIT_LEN || s.ptr[0] != '\\' || s.ptr[1] != 'u')
        return -1;
    for (size_t i = 2; i < UNIT_LEN; i++) {
        int digit = hex_digit(s.ptr[i]);

        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static bool is_high(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

static struct str skip_bytes(struct str s, size_t n)
{
    return (struct str){s.ptr + n, s.len - n};
}

/* The first lone half at or behind `from`, which must not be inside an escape; NULL: none. */
static const char *lone_half(struct str from)
{
    const char *p;

    while ((p = from.len ? memchr(from.ptr, '\\', from.len) : NULL)) {
        struct str here = skip_bytes(from, (size_t)(p - from.ptr));
        int32_t unit = escaped_unit(here);
        bool pair = is_high(unit) && is_low(escaped_unit(skip_bytes(here, UNIT_LEN)));

        if (!pair && (is_high(unit) || is_low(unit)))
            return p;
        from = skip_bytes(here, pair ? 2 * UNIT_LEN : here.len < 2 ? here.len : 2);
    }
    return NULL;
}

static struct str clean_halves(struct buf *copy, struct str text)
{
    const char *at = lone_half(text);

    if (!at)
        return text;
    buf_clear(copy);
    for (; at; at = lone_half(text)) {
        buf_add(copy, text.ptr, (size_t)(at - text.ptr));
        buf_add_str(copy, STR("\\ufffd"));
        text = skip_bytes(text, (size_t)(at - text.ptr) + UNIT_LEN);
    }
    buf_add_str(copy, text);
    return buf_view(copy);
}

/* A first half that waited, and what follows it. Returns how many bytes of the decoded text were used up. */
static size_t join_surrogates(struct reply *r, struct pieces *p, int32_t low)
{
    int32_t high = p->high;
    uint32_t pair;
    char bytes[4];

    p->high = 0;
    if (high && is_low(low)) {
        pair = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
        buf_add(&p->buf, bytes, utf8_put(bytes, pair));
        return REPLACEMENT.len;
    }
    if (high) {
        buf_add_str(&p->buf, REPLACEMENT);
        r->replaced = true;
    }
    return 0;
}

/* The half that the source ends with where the text that is read has U+FFFD; 0: none. */
static int32_t open_half(struct str source, struct str read)
{
    size_t at = source.len - UNIT_LEN;
    int32_t unit;

    if (source.len < UNIT_LEN || memcmp(source.ptr + at, read.ptr + at, UNIT_LEN) == 0)
        return 0;
    unit = escaped_unit(skip_bytes(source, at));
    return is_high(unit) ? unit : 0;
}

void pieces_add(struct reply *r, struct pieces *p, const struct json *string)
{
    struct str read, source, text;
    size_t used, held;
    int32_t high;

    if (!string || string->type != JSON_STRING || string->raw.len == 0)
        return;
    r->progress++;
    read = string->raw;
    source = (struct str){r->source.ptr + (read.ptr - r->read.ptr), read.len};
    text = json_text(&r->scratch, string);
    used = join_surrogates(r, p, escaped_unit(source));
    high = used < text.len ? open_half(source, read) : 0;
    held = high ? REPLACEMENT.len : 0;
    if (memcmp(source.ptr + (used ? UNIT_LEN : 0), read.ptr + (used ? UNIT_LEN : 0),
               source.len - (used ? UNIT_LEN : 0) - (held ? UNIT_LEN : 0)) != 0)
        r->replaced = true;
    buf_add(&p->buf, text.ptr + used, text.len - used - held);
    p->high = high;
}

static struct str pieces_end(struct reply *r, struct pieces *p)
{
    join_surrogates(r, p, 0);
    return buf_view(&p->buf);
}

/* ---- pieces -------------------------------------------------------------------------------------------------------- */

void reply_init(struct reply *r, const struct model_listener *listener)
{
    static const struct model_listener nobody;

    *r = (struct reply){.listener = listener ? listener : &nobody,
                        .text.buf = BUF_INIT(REPLY_MAX_BYTES),
                        .bytes = BUF_INIT(4 * SSE_MAX_EVENT),
                        .halves = BUF_INIT(4 * SSE_MAX_EVENT),
                        .fault.retry_after_ms = -1};
}

void reply_done(struct reply *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_calls; i++) {
        buf_done(&r->calls[i].id.buf);
        buf_done(&r->calls[i].name.buf);
        buf_done(&r->calls[i].args.buf);
    }
    free(r->calls);
    buf_done(&r->text.buf);
    buf_done(&r->bytes);
    buf_done(&r->halves);
    arena_done(&r->scratch);
}

const struct json *reply_read(struct reply *r, struct str data)
{
    struct tide_err err = {0};
    struct json *json = NULL;

    arena_reset(&r->scratch);
    r->source = clean_bytes(&r->bytes, data, &r->replaced);
    r->read = clean_halves(&r->halves, r->source);
    r->n_events++;
    if (!json_parse(&r->scratch, r->read, NULL, &json, NULL, &err) && json->type == JSON_OBJECT)
        return json;
    fault_set(&r->fault, "malformed", 0, "an event of the answer is not a JSON object%s%s", err.code ? ": " : "",
              err.msg);
    return NULL;
}

void reply_text(struct reply *r, const struct json *string)
{
    size_t before = r->text.buf.len;

    pieces_add(r, &r->text, string);
    if (r->text.buf.len > before && r->listener->text)
        r->listener->text(r->listener->arg, (struct str){r->text.buf.ptr + before, r->text.buf.len - before});
}

void reply_thinking(struct reply *r)
{
    r->progress++;
    if (r->listener->thinking)
        r->listener->thinking(r->listener->arg);
}

struct reply_call *reply_call_new(struct reply *r, int64_t index)
{
    struct reply_call *c;

    if (r->n_calls == REPLY_MAX_CALLS) {
        fault_set(&r->fault, "malformed", 0, "the answer has more than %d tool calls", REPLY_MAX_CALLS);
        return NULL;
    }
    MEM_ROOM(r->calls, r->n_calls, r->cap_calls);
    r->progress++;
    c = &r->calls[r->n_calls++];
    *c = (struct reply_call){.id.buf = BUF_INIT(4096), .name.buf = BUF_INIT(4096), .index = index};
    c->args.buf = (struct buf)BUF_INIT(REPLY_MAX_BYTES);
    return c;
}

struct reply_call *reply_call_at(struct reply *r, int64_t index)
{
    for (size_t i = r->n_calls; i > 0; i--) {
        if (r->calls[i - 1].index == index)
            return &r->calls[i - 1];
    }
    return NULL;
}

void reply_stop(struct reply *r, struct str reason, const struct stop_row *rows, enum model_stop otherwise)
{
    if (reason.len == 0)
        return;
    while (rows->reason && !str_eq(reason, str_from(rows->reason)))
        rows++;
    r->progress++;
    r->stop = rows->reason ? rows->stop : otherwise;
    r->stopped = true;
}

void reply_count(int64_t *count, const struct json *usage, struct str key)
{
    int64_t n = json_get_int(usage, key, -1);

    if (n >= 0 && n <= INT64_C(1) << 48) /* so that sums of them stay right */
        *count = n;
}

/* ---- the answer ---------------------------------------------------------------------------------------------------- */

static struct str in_arena(struct arena *a, struct buf *b)
{
    struct str s = arena_dup(a, buf_view(b));

    buf_done(b);
    return s;
}

static struct str malformed_args(struct arena *a, struct str text)
{
    struct buf out = BUF_INIT(SIZE_MAX / 2);
    struct json_out o = json_out_to(&out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("_malformed"), text);
    json_out_end(&o, '}');
    return in_arena(a, &out);
}

struct str model_args(struct arena *a, struct str args, bool *replaced)
{
    static const struct json_limits limits = {.max_depth = ARGS_MAX_DEPTH};
    struct buf halves = BUF_INIT(SIZE_MAX / 2), compact = BUF_INIT(SIZE_MAX / 2);
    struct str text = str_trim(args), read = clean_halves(&halves, text), out;
    struct arena scratch = ARENA_INIT;
    struct json *json = NULL;
    bool is_compact = false;

    if (text.len == 0)
        return STR("{}");
    if (json_parse(&scratch, read, &limits, &json, &is_compact, NULL) || json->type != JSON_OBJECT) {
        out = malformed_args(a, args);
    } else {
        *replaced |= read.ptr != text.ptr;
        if (!is_compact)
            json_write(&compact, json);
        out = is_compact ? arena_dup(a, read) : in_arena(a, &compact);
    }
    buf_done(&compact);
    buf_done(&halves);
    arena_done(&scratch);
    return out;
}

static bool id_taken(const struct model_answer *a, size_t n, struct str id)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(a->calls[i].id, id))
            return true;
    }
    return false;
}

/* Results are matched to calls by id: one that is missing or came twice gets a name of its own. */
static struct str own_id(struct model_answer *a, size_t n, struct str id)
{
    struct str base = id.len ? id : STR("call"), own = id.len ? arena_dup(&a->arena, id) : STR("call_1");

    for (size_t i = 2; id_taken(a, n, own); i++)
        own = str_from(arena_printf(&a->arena, "%.*s_%zu", STR_ARG(base), i));
    return own;
}

static bool take_calls(struct reply *r, struct model_answer *a)
{
    a->calls = arena_zero(&a->arena, (r->n_calls + 1) * sizeof *a->calls);
    for (size_t i = 0; i < r->n_calls; i++) {
        struct reply_call *c = &r->calls[i];
        struct str name = pieces_end(r, &c->name);

        if (name.len == 0 || c->name.buf.failed || c->id.buf.failed || c->args.buf.failed) {
            fault_set(&r->fault, "malformed", 0, "tool call %zu of the answer has no usable name or id", i + 1);
            return false;
        }
        a->calls[i].id = own_id(a, i, pieces_end(r, &c->id));
        a->calls[i].name = arena_dup(&a->arena, name);
        a->calls[i].args = model_args(&a->arena, pieces_end(r, &c->args), &r->replaced);
    }
    a->n_calls = r->n_calls;
    return true;
}

enum tide_code reply_finish(struct reply *r, bool clean, struct model_answer *ret)
{
    struct model_answer a = {.arena = ARENA_INIT};

    if (r->fault.code[0])
        return fault_tide_code(&r->fault);
    if (!r->whole && !(r->lenient && clean && r->stopped)) {
        fault_set(&r->fault, "connection", 0, "the answer ended early");
        return fault_tide_code(&r->fault);
    }
    if (!take_calls(r, &a)) {
        arena_done(&a.arena);
        return fault_tide_code(&r->fault);
    }
    pieces_end(r, &r->text);
    a.text = arena_dup(&a.arena, buf_view(&r->text.buf));
    a.stop = r->stop;
    if (r->stop == STOP_END || r->stop == STOP_TOOLS) /* some servers say the one for the other: what is there counts */
        a.stop = r->n_calls ? STOP_TOOLS : STOP_END;
    a.usage =
        (struct model_usage){r->fresh_tokens + r->stored_tokens + r->cached_tokens, r->output_tokens, r->cached_tokens};
    a.replaced = r->replaced;
    *ret = a;
    return TIDE_OK;
}
