/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of the log of a session, without its newline:
 *
 *   {"seq":7,"ts":"2026-11-15T16:20:06.978Z","kind":"memory.set"   the beginning
 *   ,"key":"a","value":{"b":1}                                     the members of the body, as they were given
 *   ,"tidemark":{"epoch":2,"more":0,"digest":"<64 hex>"}}          the end; that of a fork's first line has
 *       ,"parent":"<id>","parent_seq":6,"before":"<64 hex>"        these after "more", a line that is not the first of
 *       ,"at":1                                                    its unit this
 *       ,"origin":"<32 hex>"                                       before "digest": the proof of origin, where there is one
 *
 * A session of a million events is opened through here, so what we wrote is read without a JSON parser: the beginning
 * from the front, the end from the back, and the body is what is left. In JSON the text of the end cannot stand inside a
 * string (its quotes would have backslashes), and because the brackets before it pair up it is no member of something
 * deeper either: a line that was cut is never taken for a whole one. Beyond that the digest proves the body. It does not
 * cover `origin`, which is a proof over the digest, nor `more` and `at` (callers see that the lines of a unit count down and up), nor the parent's id (callers see that its
 * event has the digest `before`); parent_seq has to be seq - 1.
 *
 * Every other line is parsed as JSON. A time that no text of four-digit years can hold is written as a number of ms.
 */
#include "store/files_line.h"

#include "base/json.h"
#include "base/timefmt.h"

#define FOREIGN_KIND "foreign.line"
#define PARSED_MAX                                                                                                     \
    ((size_t)TIDE_MAX_RECORD_BYTES + 4096)  /* bytes of a line that is parsed; of ours there is no limit */
#define SECONDS_BELOW INT64_C(100000000000) /* smaller times are seconds (to 5138), others ms (from 1973) */
#define HEX_SIZE ((size_t)2 * DIGEST_SIZE)
#define YEAR_10000 INT64_C(253402300800000) /* ms */
#define TIME_LEN ((size_t)TIME_TEXT_SIZE - 1)

/* ---- writing ---- */

static void add_hex(struct buf *out, const unsigned char *bytes, size_t n)
{
    char hex[HEX_SIZE + 1];

    hex_encode(hex, bytes, n);
    buf_add(out, hex, 2 * n);
}

/* Whether the time has a text; false: it would be another time's. */
static bool time_text(int64_t ms, char ret[TIME_TEXT_SIZE])
{
    int64_t back;

    time_format(ret, ms);
    if (ms >= 0 && ms < YEAR_10000)
        return true;
    return time_parse((struct str){ret, TIME_LEN}, &back) && back == ms;
}

static void add_time(struct buf *out, int64_t ms)
{
    char text[TIME_TEXT_SIZE];

    if (!time_text(ms, text)) {
        buf_add_int(out, ms);
        return;
    }
    buf_add_char(out, '"');
    buf_add(out, text, TIME_LEN);
    buf_add_char(out, '"');
}

static void add_fields(struct buf *out, const struct event *ev, const struct line_fields *fields)
{
    buf_add_str(out, STR(",\"tidemark\":{\"epoch\":"));
    buf_add_int(out, ev->epoch);
    buf_add_str(out, STR(",\"more\":"));
    buf_add_int(out, fields->more);
    if (fields->at) {
        buf_add_str(out, STR(",\"at\":"));
        buf_add_int(out, fields->at);
    }
    if (fields->parent[0]) {
        buf_add_str(out, STR(",\"parent\":\""));
        buf_add_str(out, str_from(fields->parent));
        buf_add_str(out, STR("\",\"parent_seq\":"));
        buf_add_int(out, fields->parent_seq);
        buf_add_str(out, STR(",\"before\":\""));
        add_hex(out, fields->before, DIGEST_SIZE);
        buf_add_char(out, '"');
    }
    if (ev->proof.set) {
        buf_add_str(out, STR(",\"origin\":\""));
        add_hex(out, ev->proof.mac, sizeof ev->proof.mac);
        buf_add_char(out, '"');
    }
    buf_add_str(out, STR(",\"digest\":\""));
    add_hex(out, ev->digest, DIGEST_SIZE);
    buf_add_str(out, STR("\"}"));
}

void line_write(struct buf *out, const struct event *ev, const struct line_fields *fields)
{
    buf_add_str(out, STR("{\"seq\":"));
    buf_add_int(out, ev->seq);
    buf_add_str(out, STR(",\"ts\":"));
    add_time(out, ev->ts_ms);
    buf_add_str(out, STR(",\"kind\":"));
    json_quote(out, ev->kind);
    if (ev->body.len > 2) { /* more than "{}" */
        buf_add_char(out, ',');
        buf_add(out, ev->body.ptr + 1, ev->body.len - 2);
    }
    add_fields(out, ev, fields);
    buf_add_str(out, STR("}\n"));
}

/* ---- pieces of a line, from the front and from the back ---- */

struct piece {
    const char *p, *end;
};

static struct piece piece_of(struct str s)
{
    const char *p = s.len ? s.ptr : "";

    return (struct piece){p, p + s.len};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_text(struct piece *l, struct str text)
{
    if ((size_t)(l->end - l->p) < text.len || memcmp(l->p, text.ptr, text.len) != 0)
        return false;
    l->p += text.len;
    return true;
}

static bool take_last(struct piece *l, struct str text)
{
    if ((size_t)(l->end - l->p) < text.len || memcmp(l->end - text.len, text.ptr, text.len) != 0)
        return false;
    l->end -= text.len;
    return true;
}

/* Only the form that we write: no "007", no "-0". */
static bool int_of(struct str text, int64_t *ret)
{
    size_t sign = text.len && text.ptr[0] == '-';

    if (text.len > sign && text.ptr[sign] == '0' && text.len + sign > 1)
        return false;
    return str_to_int64(text, ret);
}

static bool take_int(struct piece *l, int64_t *ret)
{
    const char *begin = l->p;

    if (l->p < l->end && *l->p == '-')
        l->p++;
    while (l->p < l->end && is_digit(*l->p))
        l->p++;
    return int_of((struct str){begin, (size_t)(l->p - begin)}, ret);
}

static bool take_last_int(struct piece *l, int64_t *ret)
{
    const char *end = l->end;

    while (l->end > l->p && is_digit(l->end[-1]))
        l->end--;
    if (l->end > l->p && l->end[-1] == '-')
        l->end--;
    return int_of((struct str){l->end, (size_t)(end - l->end)}, ret);
}

static bool take_last_hex(struct piece *l, unsigned char *ret, size_t n)
{
    if ((size_t)(l->end - l->p) < 2 * n || !hex_decode(ret, n, (struct str){l->end - 2 * n, 2 * n}))
        return false;
    l->end -= 2 * n;
    return true;
}

/* Up to the quote in front of it, which stays; of no more bytes than an id has. */
static bool take_last_id(struct piece *l, char ret[TIDE_ID_SIZE])
{
    const char *end = l->end;
    struct str id;

    while (l->end > l->p && l->end[-1] != '"' && end - l->end < TIDE_ID_SIZE)
        l->end--;
    id = (struct str){l->end, (size_t)(end - l->end)};
    if (!str_is_id(id))
        return false;
    memcpy(ret, id.ptr, id.len);
    ret[id.len] = 0;
    return true;
}

/* The same rule as for events that are appended. */
static size_t kind_len(struct str s)
{
    size_t n = 0;

    if (!s.len || s.ptr[0] < 'a' || s.ptr[0] > 'z')
        return 0;
    while (n < s.len &&
           ((s.ptr[n] >= 'a' && s.ptr[n] <= 'z') || is_digit(s.ptr[n]) || s.ptr[n] == '_' || s.ptr[n] == '.'))
        n++;
    return n <= 64 ? n : 0;
}

/* ---- a line that we wrote ---- */

static bool take_seq(struct piece *l, int64_t *ret_seq)
{
    return take_text(l, STR("{\"seq\":")) && take_int(l, ret_seq) && *ret_seq >= 1 && take_text(l, STR(",\"ts\":"));
}

/* Leaves the piece behind the quoted text or the number. */
static bool pass_time(struct piece *l, struct str *ret_source)
{
    const char *begin = l->p;
    int64_t number;

    if (l->end - l->p > (ptrdiff_t)TIME_LEN + 2 && *l->p == '"')
        l->p += TIME_LEN + 2;
    else if (!take_int(l, &number))
        return false;
    *ret_source = (struct str){begin, (size_t)(l->p - begin)};
    return true;
}

static bool take_kind(struct piece *l, struct str *ret_kind)
{
    if (!take_text(l, STR(",\"kind\":\"")))
        return false;
    *ret_kind = (struct str){l->p, kind_len((struct str){l->p, (size_t)(l->end - l->p)})};
    l->p += ret_kind->len;
    return ret_kind->len && take_text(l, STR("\""));
}

/* A time has one way to be written: a line that says the same in another way is not as it was written. */
static bool read_own_time(struct str source, int64_t *ret_ms)
{
    char text[TIME_TEXT_SIZE];

    if (source.len == TIME_LEN + 2 && source.ptr[0] == '"' && source.ptr[TIME_LEN + 1] == '"')
        return time_parse((struct str){source.ptr + 1, TIME_LEN}, ret_ms);
    return int_of(source, ret_ms) && !time_text(*ret_ms, text);
}

static bool take_last_fork(struct piece *l, struct line_fields *ret)
{
    return take_last(l, STR("\"")) && take_last_hex(l, ret->before, DIGEST_SIZE) &&
           take_last(l, STR(",\"before\":\"")) && take_last_int(l, &ret->parent_seq) &&
           take_last(l, STR("\",\"parent_seq\":")) && take_last_id(l, ret->parent) &&
           take_last(l, STR(",\"parent\":\""));
}

/* Nothing is taken where there is none. */
static void take_last_origin(struct piece *l, struct origin_proof *ret)
{
    struct piece at = *l;

    ret->set = take_last(&at, STR("\"")) && take_last_hex(&at, ret->mac, sizeof ret->mac) &&
               take_last(&at, STR(",\"origin\":\""));
    if (ret->set)
        *l = at;
}

static bool fields_fit(const struct line_fields *fields, int64_t seq)
{
    return fields->more >= 0 && fields->at >= 0 && fields->at < seq &&
           (!fields->parent[0] || (fields->parent_seq == seq - 1 && !fields->at));
}

/* Every byte of the end decides what stands before it: there is one way to read it. */
static bool take_last_fields(struct piece *l, int64_t seq, struct line_fields *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->verified = true;
    if (!take_last(l, STR("\"}}")) || !take_last_hex(l, ret->digest, DIGEST_SIZE) ||
        !take_last(l, STR(",\"digest\":\"")))
        return false;
    take_last_origin(l, &ret->proof);
    if (l->end > l->p && l->end[-1] == '"' && !take_last_fork(l, ret))
        return false;
    if (!take_last_int(l, &ret->more))
        return false;
    if (take_last(l, STR(",\"at\":"))) {
        ret->at = ret->more;
        if (!ret->at || !take_last_int(l, &ret->more))
            return false;
    }
    return take_last(l, STR(",\"more\":")) && take_last_int(l, &ret->epoch) &&
           take_last(l, STR(",\"tidemark\":{\"epoch\":")) && fields_fit(ret, seq);
}

/* Behind the quote that ends the string; NULL: it does not end. */
static const char *string_end(const char *p, const char *end)
{
    for (;;) {
        const char *quote = memchr(p, '"', (size_t)(end - p)), *slash = quote;

        if (!quote)
            return NULL;
        while (slash > p && slash[-1] == '\\')
            slash--;
        p = quote + 1;
        if ((quote - slash) % 2 == 0)
            return p;
    }
}

/* Whether all brackets outside of strings have their counterparts. Takes no memory: what was cut ends here. */
static bool is_balanced(struct piece l)
{
    const char *p = l.p, *end = l.end;
    size_t depth = 0;

    while (p < end) {
        char c = *p++;

        if (c == '"' && !(p = string_end(p, end)))
            return false;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth-- == 0)
            return false;
    }
    return depth == 0;
}

/* "{" + the members that the piece holds, which begin with a comma, + "}", with a NUL behind it. */
static bool wrap_body(struct arena *a, const struct piece *l, struct str *ret_body)
{
    size_t len = (size_t)(l->end - l->p);
    char *body;

    *ret_body = STR("{}");
    if (len == 0)
        return true;
    if (len < 2 || *l->p != ',' || !is_balanced(*l))
        return false;
    body = arena_alloc(a, len + 2);
    body[0] = '{';
    memcpy(body + 1, l->p + 1, len - 1);
    memcpy(body + len, "}", 2);
    *ret_body = (struct str){body, len + 1};
    return true;
}

static bool read_own(struct arena *a, struct str line, struct event *ret, struct line_fields *ret_fields)
{
    struct piece l = piece_of(line);
    struct event ev = {0};
    struct line_fields fields;
    struct str time;

    if (!take_seq(&l, &ev.seq) || !pass_time(&l, &time) || !take_kind(&l, &ev.kind) ||
        !read_own_time(time, &ev.ts_ms) || !take_last_fields(&l, ev.seq, &fields) || !wrap_body(a, &l, &ev.body))
        return false;
    ev.epoch = fields.epoch;
    memcpy(ev.digest, fields.digest, DIGEST_SIZE);
    ev.proof = fields.proof;
    *ret = ev;
    *ret_fields = fields;
    return true;
}

bool line_peek(struct str line, int64_t *ret_seq, struct line_fields *ret_fields)
{
    struct piece l = piece_of(line);
    struct line_fields fields;
    int64_t seq;

    if (!take_seq(&l, &seq) || !take_last_fields(&l, seq, &fields))
        return false;
    *ret_seq = seq;
    *ret_fields = fields;
    return true;
}

struct str line_kind(struct str line)
{
    struct piece l = piece_of(line);
    struct str time, kind;
    int64_t seq;

    return take_seq(&l, &seq) && pass_time(&l, &time) && take_kind(&l, &kind) ? kind : STR("");
}

/* ---- any other line ---- */

/* Seconds, with or without a fraction, or ms; an exponent is refused. */
static bool read_time_number(struct str text, int64_t *ret_ms)
{
    struct piece l = piece_of(text);
    bool negative = text.ptr[0] == '-';
    int64_t whole, fraction;

    while (l.p < l.end && (*l.p == '-' || is_digit(*l.p)))
        l.p++;
    if (!str_to_int64((struct str){text.ptr, (size_t)(l.p - text.ptr)}, &whole) ||
        !time_take_fraction(&l.p, l.end, &fraction) || l.p != l.end)
        return false;
    *ret_ms = whole;
    if (whole > -SECONDS_BELOW && whole < SECONDS_BELOW)
        *ret_ms = whole * 1000 + (negative ? -fraction : fraction);
    return true;
}

static bool read_time(struct arena *a, const struct json *ts, bool ours, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (ours)
        return ts && read_own_time(json_source(ts), ret_ms);
    if (ts && ts->type == JSON_STRING)
        return time_parse_any(json_text(a, ts), ret_ms);
    return !ts || (ts->type == JSON_NUMBER && read_time_number(ts->raw, ret_ms));
}

static bool get_int(const struct json *object, struct str key, int64_t *ret)
{
    const struct json *v = json_get(object, key);

    return v && json_int(v, ret);
}

static bool get_digest(struct arena *a, const struct json *object, struct str key, unsigned char ret[DIGEST_SIZE])
{
    return hex_decode(ret, DIGEST_SIZE, json_get_text(a, object, key));
}

/* Exactly the members that we write, in any order: more would say something that we do not understand. */
static bool read_fields(struct arena *a, const struct json *v, int64_t seq, struct line_fields *ret)
{
    bool fork = json_get(v, STR("parent")), later = json_get(v, STR("at")), proved = json_get(v, STR("origin"));
    struct str parent = json_get_text(a, v, STR("parent"));

    memset(ret, 0, sizeof *ret);
    if (!v)
        return true;
    if (v->type != JSON_OBJECT || v->count != (fork ? 6u : 3u) + later + proved ||
        !get_int(v, STR("epoch"), &ret->epoch) || !get_int(v, STR("more"), &ret->more) ||
        !get_digest(a, v, STR("digest"), ret->digest))
        return false;
    if (later && (!get_int(v, STR("at"), &ret->at) || !ret->at))
        return false;
    if (fork && (!str_is_id(parent) || !get_int(v, STR("parent_seq"), &ret->parent_seq) ||
                 !get_digest(a, v, STR("before"), ret->before)))
        return false;
    if (proved && !hex_decode(ret->proof.mac, sizeof ret->proof.mac, json_get_text(a, v, STR("origin"))))
        return false;
    ret->proof.set = proved;
    if (fork)
        memcpy(ret->parent, parent.ptr, parent.len);
    ret->verified = true;
    return fields_fit(ret, seq);
}

/* Whether the last member is our member under another name: one of ours with a damaged name, not a line of others. */
static bool lost_its_name(struct arena *a, const struct json *object, int64_t seq)
{
    const struct json *last = object->first;
    struct line_fields fields;

    while (last->next)
        last = last->next;
    return !json_get(object, STR("tidemark")) && read_fields(a, last, seq, &fields);
}

static bool read_kind(struct arena *tree, struct arena *a, const struct json *v, struct str *ret)
{
    struct str kind;

    *ret = STR(FOREIGN_KIND);
    if (!v)
        return true;
    if (v->type != JSON_STRING)
        return false;
    kind = json_text(tree, v);
    if (!kind.len || kind_len(kind) != kind.len)
        return false;
    *ret = arena_dup(a, kind);
    return true;
}

/* What is not reserved, in its order. Takes the object apart. */
static struct str rest_of(struct arena *a, struct json *object, size_t max)
{
    static const struct str reserved[] = {{"seq", 3}, {"ts", 2}, {"kind", 4}, {"tidemark", 8}};
    AUTO(buf_done) struct buf out = BUF_INIT(max + 2);

    for (struct json **link = &object->first; *link;) {
        bool ours = false;

        for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
            ours |= json_key_eq(*link, reserved[i]);
        if (ours) {
            *link = (*link)->next;
            object->count--;
        } else {
            link = &(*link)->next;
        }
    }
    json_write(&out, object);
    return arena_dup(a, buf_view(&out));
}

static bool read_json(struct arena *a, struct str line, struct event *ret, struct line_fields *ret_fields)
{
    AUTO(arena_done) struct arena tree = ARENA_INIT; /* many times as large as the line */
    const struct json_limits limits = {PARSED_MAX, 0};
    struct event ev = {0};
    struct line_fields fields;
    struct json *v;

    if (line.len > PARSED_MAX || !is_balanced(piece_of(line)) || json_parse(&tree, line, &limits, &v, NULL, NULL) ||
        !get_int(v, STR("seq"), &ev.seq) || ev.seq < 1 || lost_its_name(&tree, v, ev.seq) ||
        !read_fields(&tree, json_get(v, STR("tidemark")), ev.seq, &fields) ||
        !read_time(&tree, json_get(v, STR("ts")), fields.verified, &ev.ts_ms) ||
        !read_kind(&tree, a, json_get(v, STR("kind")), &ev.kind))
        return false;
    ev.epoch = fields.epoch;
    memcpy(ev.digest, fields.digest, DIGEST_SIZE);
    ev.proof = fields.proof;
    ev.body = rest_of(a, v, line.len);
    *ret = ev;
    *ret_fields = fields;
    return true;
}

const char *line_why_not(struct str line, int64_t seq)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json_limits limits = {PARSED_MAX, 0};
    struct json *v = NULL;
    struct str kind;
    int64_t ts, got;

    if (json_parse(&a, line, &limits, &v, NULL, NULL) || v->type != JSON_OBJECT)
        return "it is not a JSON object";
    if (!get_int(v, STR("seq"), &got) || got != seq)
        return "its seq does not follow";
    if (!read_kind(&a, &a, json_get(v, STR("kind")), &kind))
        return "its kind is not 1 to 64 lower-case letters, digits, '_' and '.'";
    if (!read_time(&a, json_get(v, STR("ts")), false, &ts))
        return "its ts is not a time";
    return "its \"tidemark\" is damaged";
}

enum line_read line_read(struct arena *a, struct str line, struct event *ret, struct line_fields *ret_fields)
{
    return read_own(a, line, ret, ret_fields) || read_json(a, line, ret, ret_fields) ? LINE_EVENT : LINE_NOT;
}
