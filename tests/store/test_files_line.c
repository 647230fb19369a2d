/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of a log holds its event byte for byte. Cut anywhere it is none; changed anywhere it is none, or its digest no
 * longer fits. Lines of others give what they say.
 */
#include "kit.h"

#include <time.h>

#include "base/timefmt.h"
#include "store/files_line.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define SESSION STR("sess_lines")

static const unsigned char no_digest[DIGEST_SIZE];

/* ---- making lines ---- */

static const unsigned char *before_of(const struct line_fields *fields)
{
    return fields->parent[0] ? fields->before : no_digest;
}

static struct event make_event(int64_t seq, int64_t ts_ms, struct str kind, struct str body, struct line_fields *fields)
{
    struct event ev = {.seq = seq, .ts_ms = ts_ms, .epoch = fields->epoch, .kind = kind, .body = body};

    event_digest(ev.digest, NULL, before_of(fields), SESSION, &ev);
    memcpy(fields->digest, ev.digest, DIGEST_SIZE);
    fields->verified = true;
    return ev;
}

static struct line_fields fork_mark(int64_t seq)
{
    struct line_fields fields = {.epoch = 1, .parent = "sess_parent-1", .parent_seq = seq - 1};

    digest_of(fields.before, STR("the event before"));
    return fields;
}

/* The line without its newline, in the buffer. */
static struct str write_line(struct buf *out, const struct event *ev, const struct line_fields *fields)
{
    buf_clear(out);
    line_write(out, ev, fields);
    assert_false(out->failed);
    assert_int_equal(out->ptr[out->len - 1], '\n');
    assert_null(memchr(out->ptr, '\n', out->len - 1));
    return (struct str){out->ptr, out->len - 1};
}

static bool same_event(const struct event *a, const struct event *b)
{
    return a->seq == b->seq && a->ts_ms == b->ts_ms && a->epoch == b->epoch && str_eq(a->kind, b->kind) &&
           str_eq(a->body, b->body) && memcmp(a->digest, b->digest, DIGEST_SIZE) == 0;
}

static bool same_fields(const struct line_fields *a, const struct line_fields *b)
{
    return a->epoch == b->epoch && a->more == b->more && a->at == b->at && a->parent_seq == b->parent_seq &&
           a->verified == b->verified && strcmp(a->parent, b->parent) == 0 &&
           memcmp(a->digest, b->digest, DIGEST_SIZE) == 0 && memcmp(a->before, b->before, DIGEST_SIZE) == 0;
}

static bool digest_fits(const struct event *ev, const struct line_fields *fields)
{
    unsigned char want[DIGEST_SIZE];

    event_digest(want, NULL, before_of(fields), SESSION, ev);
    return memcmp(want, fields->digest, DIGEST_SIZE) == 0;
}

/* ---- what holds for every line that was written ---- */

static void check_members(struct arena *a, struct str line, const struct event *ev)
{
    static const struct str first[] = {{"seq", 3}, {"ts", 2}, {"kind", 4}};
    struct json *v, *body;
    struct json *at, *want;

    OK(json_parse(a, line, NULL, &v, NULL, &err));
    OK(json_parse(a, ev->body, NULL, &body, NULL, &err));
    at = v->first;
    for (size_t i = 0; i < COUNT(first); i++, at = at->next)
        assert_true(str_eq(at->key, first[i]));
    for (want = body->first; want; want = want->next, at = at->next) {
        assert_true(str_eq(at->key, want->key));
        assert_true(str_eq(json_source(at), json_source(want)));
    }
    assert_true(str_eq(at->key, STR("tidemark")));
    assert_null(at->next);
}

/* A space in front makes it a line that is not ours to the byte: the parser has to give the same event. */
static void check_parsed(struct arena *a, struct str line, const struct event *ev, const struct line_fields *fields)
{
    struct event got;
    struct line_fields got_fields;
    char *spaced = arena_alloc(a, line.len + 1);

    spaced[0] = ' ';
    memcpy(spaced + 1, line.ptr, line.len);
    assert_int_equal(line_read(a, (struct str){spaced, line.len + 1}, &got, &got_fields), LINE_EVENT);
    assert_true(same_event(&got, ev) && same_fields(&got_fields, fields));
    assert_false(line_peek((struct str){spaced, line.len + 1}, &got.seq, &got_fields));
}

static void check_round_trip(struct buf *out, const struct event *ev, const struct line_fields *fields)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str line = write_line(out, ev, fields);
    struct event got;
    struct line_fields got_fields;
    int64_t seq = 0;

    assert_int_equal(line_read(&a, line, &got, &got_fields), LINE_EVENT);
    assert_true(same_event(&got, ev));
    assert_true(same_fields(&got_fields, fields));
    assert_int_equal(got.body.ptr[got.body.len], 0);
    assert_true(digest_fits(&got, &got_fields));
    assert_true(line_peek(line, &seq, &got_fields));
    assert_true(seq == ev->seq && same_fields(&got_fields, fields));
    assert_true(str_eq(line_kind(line), ev->kind));
    check_members(&a, line, ev);
    check_parsed(&a, line, ev, fields);
}

/* ---- round trips ---- */

static const char digest_text[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* Bodies that look like other parts of a line. */
static const char *const tricky[] = {
    "{}",
    "{\"a\":1}",
    "{\"\":\"\"}",
    "{\"a\":\",\\\"tidemark\\\":{\\\"epoch\\\":1,\\\"more\\\":0,\\\"digest\\\":\\\"\"}",
    "{\"a\":\",\\\"tidemark\\\":{\\\"epoch\\\":\",\"b\":\"}}\"}",
    "{\"a\":{\"x\":1,\"tidemark\":{\"epoch\":1,\"more\":0,\"digest\":"
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}}}",
    "{\"a\":{\"x\":1,\"tidemark\":{\"epoch\":1,\"more\":0,\"digest\":"
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}},\"b\":2}",
    "{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\",\"c\":\"\\\\\\\\\"}",
    "{\"a\":\"]}{[\",\"b\":[[],{},[{}]]}",
    "{\"\\u0073eq2\":\"\\ud83d\\ude00\\u0000\",\"é\":\"日本\",\"n\":-1.50e+10}",
    "{\"seq_\":1,\"x\":{\"seq\":9,\"ts\":0,\"kind\":\"z\"}}",
    "{\"a\":true,\"b\":false,\"c\":null,\"d\":[1,2,[3]]}",
};

static void bodies_that_look_like_marks_come_back(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT(tricky); i++) {
        struct line_fields fields = {.epoch = 2, .at = (int64_t)i % 3, .more = (int64_t)i}, fork = fork_mark(501);
        struct event ev = make_event(7, 1795537206978, STR("memory.set"), str_from(tricky[i]), &fields);

        check_round_trip(&out, &ev, &fields);
        ev = make_event(501, 1795537206978, STR("memory.set"), str_from(tricky[i]), &fork);
        check_round_trip(&out, &ev, &fork);
    }
}

static void random_text(struct rng *r, struct buf *out)
{
    static const char *const words[] = {",\"tidemark\":{\"epoch\":",
                                        "\"}}",
                                        "\\",
                                        "\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        "\n",
                                        "\t",
                                        "\x01",
                                        "ü",
                                        "日本",
                                        "😀",
                                        "plain words",
                                        ",\"digest\":\"",
                                        digest_text};
    struct buf raw = BUF_INIT(1 << 16);

    for (int64_t n = rng_below(r, 6); n > 0; n--)
        buf_add_str(&raw, str_from(words[rng_below(r, COUNT(words))]));
    json_quote(out, buf_view(&raw));
    buf_done(&raw);
}

static void random_value(struct rng *r, struct buf *out, int depth);

static void random_members(struct rng *r, struct buf *out, int depth, bool keys)
{
    buf_add_char(out, keys ? '{' : '[');
    for (int64_t i = 0, n = rng_below(r, 5); i < n; i++) {
        if (i)
            buf_add_char(out, ',');
        if (keys && depth && rng_below(r, 8) == 0 && i == 0)
            buf_add_str(out, STR("\"tidemark\":"));
        else if (keys)
            buf_addf(out, "\"k%d%s\":", (int)i, rng_below(r, 2) ? "\\n" : "");
        random_value(r, out, depth + 1);
    }
    buf_add_char(out, keys ? '}' : ']');
}

static void random_value(struct rng *r, struct buf *out, int depth)
{
    static const char *const scalars[] = {"0", "-1", "1.0", "1e400", "true", "false", "null", "123456789012345678901"};
    int64_t choice = rng_below(r, depth < 6 ? 6 : 4);

    if (choice < 2)
        random_text(r, out);
    else if (choice < 4)
        buf_add_str(out, str_from(scalars[rng_below(r, COUNT(scalars))]));
    else
        random_members(r, out, depth, choice == 4);
}

static struct event random_event(struct rng *r, struct buf *body, char kind[65], struct line_fields *fields)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    size_t n = (size_t)rng_between(r, 1, 64);
    int64_t seq = rng_below(r, 4) ? rng_between(r, 2, 2000000) : INT64_MAX - rng_below(r, 3);

    *fields = rng_below(r, 4) ? (struct line_fields){.more = rng_below(r, 300)} : fork_mark(seq);
    if (!fields->parent[0] && rng_below(r, 2))
        fields->at = rng_between(r, 1, rng_below(r, 4) && seq > 300 ? 300 : seq - 1);
    fields->epoch = rng_below(r, 100);
    kind[0] = (char)('a' + rng_below(r, 26));
    for (size_t i = 1; i < n; i++)
        kind[i] = letters[rng_below(r, sizeof letters - 1)];
    buf_clear(body);
    random_members(r, body, 0, true);
    return make_event(seq, rng_between(r, -62167219200000, 253402300799999), (struct str){kind, n}, buf_view(body),
                      fields);
}

static void random_events_come_back(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(16 << 20), body = BUF_INIT(16 << 20);
    struct rng r = {20261115};

    (void)state;
    for (int i = 0; i < (SLOW_BUILD ? 3000 : 30000); i++) {
        char kind[65];
        struct line_fields fields;
        struct event ev = random_event(&r, &body, kind, &fields);

        check_round_trip(&out, &ev, &fields);
    }
}

static void kinds_of_all_lengths_come_back(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct line_fields fields = {.epoch = 1}, got_fields;
    struct event ev, got;
    char kind[65];

    (void)state;
    memset(kind, 'k', sizeof kind);
    for (size_t n = 1; n <= 64; n++) {
        ev = make_event((int64_t)n, 1, (struct str){kind, n}, STR("{}"), &fields);
        check_round_trip(&out, &ev, &fields);
    }
    ev = make_event(1, 1, (struct str){kind, 65}, STR("{}"), &fields);
    assert_int_equal(line_read(&a, write_line(&out, &ev, &fields), &got, &got_fields), LINE_NOT);
}

static void a_body_of_five_mib_comes_back(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(16 << 20), body = BUF_INIT(16 << 20);
    struct line_fields fields = {.epoch = 1};
    struct event ev;

    (void)state;
    buf_add_str(&body, STR("{\"text\":\""));
    while (body.len < 5 << 20)
        buf_add_str(&body, STR("all of it \\\"quoted\\\" and \\\\ ends ,"));
    buf_add_str(&body, STR("\"}"));
    ev = make_event(1, 1795537206978, STR("message"), buf_view(&body), &fields);
    check_round_trip(&out, &ev, &fields);
}

static void numbers_at_their_limits_come_back(void **state)
{
    static const int64_t times[] = {0,
                                    1,
                                    -1,
                                    -62167219200000,
                                    -62167219200001,
                                    253402300799999,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MIN + 1,
                                    253402300800000};
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        struct line_fields fields = {
            .epoch = i % 2 ? INT64_MAX : INT64_MIN, .at = i % 3 ? INT64_MAX - 1 : 0, .more = INT64_MAX};
        struct event ev = make_event(INT64_MAX, times[i], STR("a"), STR("{\"b\":1}"), &fields);

        check_round_trip(&out, &ev, &fields);
    }
}

/* ---- damage ---- */

/* Calls `check` with a line of each sort. */
static void each_sample(void (*check)(struct str line, const struct event *ev, const struct line_fields *fields))
{
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);

    for (size_t i = 0; i < COUNT(tricky); i++) {
        struct line_fields fields = {.epoch = 12, .at = (int64_t)i % 3, .more = 10 * (int64_t)i},
                           fork = fork_mark(1000);
        struct event ev = make_event(17, 1795537206978, STR("memory.set"), str_from(tricky[i]), &fields);

        check(write_line(&out, &ev, &fields), &ev, &fields);
        ev = make_event(1000, 253402300800000, STR("x"), str_from(tricky[i]), &fork);
        check(write_line(&out, &ev, &fork), &ev, &fork);
    }
}

static void check_cuts(struct str line, const struct event *ev, const struct line_fields *fields)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)ev;
    (void)fields;
    for (size_t n = 0; n < line.len; n++) {
        AUTO(mem_freep) char *cut = mem_dup((struct str){line.ptr, n}); /* so that a look behind it is seen */
        struct event got;
        struct line_fields got_fields;

        if (line_read(&a, (struct str){cut, n}, &got, &got_fields) != LINE_NOT)
            fail_msg("an event: %.*s", (int)n, line.ptr);
    }
}

static void a_line_that_was_cut_is_no_event(void **state)
{
    (void)state;
    each_sample(check_cuts);
}

/* The digest covers neither the place in its unit nor the parent's name: there, and nowhere else, it still fits. */
static void check_change(struct str changed, const struct event *ev, const struct line_fields *fields)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct event got;
    struct line_fields got_fields;

    if (line_read(&a, changed, &got, &got_fields) == LINE_NOT)
        return;
    if (!got_fields.verified)
        fail_msg("a line of somebody else's: %.*s", STR_ARG(changed));
    if (!digest_fits(&got, &got_fields))
        return;
    if (!same_event(&got, ev) || same_fields(&got_fields, fields))
        fail_msg("nobody would notice: %.*s", STR_ARG(changed));
    got_fields.more = fields->more;
    got_fields.at = fields->at;
    memcpy(got_fields.parent, fields->parent, sizeof got_fields.parent);
    assert_true(same_fields(&got_fields, fields));
}

static void check_changes(struct str line, const struct event *ev, const struct line_fields *fields)
{
    AUTO(mem_freep) char *changed = mem_dup(line);

    for (size_t i = 0; i < line.len; i++) {
        for (int c = 0; c < 256; c += SLOW_BUILD ? 5 : 1) {
            changed[i] = (char)c;
            if (changed[i] != line.ptr[i])
                check_change((struct str){changed, line.len}, ev, fields);
        }
        changed[i] = line.ptr[i];
    }
}

static void a_changed_byte_shows(void **state)
{
    (void)state;
    each_sample(check_changes);
}

static void check_without_mark(struct str line, const struct event *ev, const struct line_fields *fields)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT(line.len);
    const char *at = line.ptr + line.len - 1;
    struct event got;
    struct line_fields got_fields;

    (void)fields;
    while (memcmp(at, ",\"tidemark\":", 12) != 0)
        at--;
    buf_add(&out, line.ptr, (size_t)(at - line.ptr));
    buf_add_char(&out, '}');
    assert_int_equal(line_read(&a, buf_view(&out), &got, &got_fields), LINE_EVENT);
    assert_false(got_fields.verified);
    assert_true(str_eq(got.body, ev->body) && str_eq(got.kind, ev->kind) && got.ts_ms == ev->ts_ms);
}

static void a_line_without_its_mark_is_unverified(void **state)
{
    (void)state;
    each_sample(check_without_mark);
}

static void a_mark_that_is_not_whole_is_no_event(void **state)
{
    static const char *const marks[] = {
        "{}",
        "null",
        "1",
        "{\"epoch\":1}",
        "{\"epoch\":1,\"more\":0}",
        "{\"epoch\":1,\"more\":0,\"digest\":\"00\"}",
        "{\"epoch\":1,\"more\":-1,\"digest\":\"%s\"}",
        "{\"epoch\":1.0,\"more\":0,\"digest\":\"%s\"}",
        "{\"epoch\":\"1\",\"more\":0,\"digest\":\"%s\"}",
        "{\"epoch\":01,\"more\":0,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"digest\":\"%s\",\"else\":1}",
        "{\"epoch\":1,\"more\":0,\"at\":0,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":-1,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":7,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":01,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":\"1\",\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":1,\"at\":1,\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"at\":1,\"parent\":\"p\",\"parent_seq\":6,\"before\":\"%s\",\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"parent\":\"p\",\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"parent\":\"p\",\"parent_seq\":7,\"before\":\"%s\",\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"parent\":\"../p\",\"parent_seq\":6,\"before\":\"%s\",\"digest\":\"%s\"}",
        "{\"epoch\":1,\"more\":0,\"parent\":\"\",\"parent_seq\":6,\"before\":\"%s\",\"digest\":\"%s\"}",
        "{\"epoch\":99999999999999999999,\"more\":0,\"digest\":\"%s\"}",
    };
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf line = BUF_INIT(4096);

    (void)state;
    for (size_t i = 0; i < COUNT(marks); i++) {
        struct event ev;
        struct line_fields fields;

        buf_clear(&line);
        buf_add_str(&line, STR("{\"seq\":7,\"ts\":\"2026-11-15T16:20:06.978Z\",\"kind\":\"a\",\"tidemark\":"));
        for (const char *p = marks[i]; *p; p++) {
            if (*p == '%')
                buf_add_str(&line, (p++, str_from(digest_text)));
            else
                buf_add_char(&line, *p);
        }
        buf_add_char(&line, '}');
        if (line_read(&a, buf_view(&line), &ev, &fields) != LINE_NOT || line_peek(buf_view(&line), &ev.seq, &fields))
            fail_msg("an event: %.*s", STR_ARG(buf_view(&line)));
    }
}

/* ---- lines of others ---- */

static const struct {
    const char *line;
    int64_t seq, ts_ms;
    const char *kind, *body; /* kind NULL: no event */
} foreign[] = {
    {"{\"seq\":1}", 1, 0, "foreign.line", "{}"},
    {" { \"kind\" : \"message\" , \"text\" : \"a b\", \"n\": [ 1, 2 ], \"seq\": 3 }\r", 3, 0, "message",
     "{\"text\":\"a b\",\"n\":[1,2]}"},
    {"{\"b\":1,\"seq\":2,\"a\":1.50}", 2, 0, "foreign.line", "{\"b\":1,\"a\":1.50}"},
    {"{\"s\\u0065q\":2,\"kin\\u0064\":\"\\u0061.b\"}", 2, 0, "a.b", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10.123Z\"}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10Z\"}", 1, 1771668070000, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21t10:01:10.1z\"}", 1, 1771668070100, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21 10:01:10.123999999+00:00\"}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10.123456\"}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21T12:01:10.123+02:00\"}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":\"2026-02-21T04:31:10.123-05:30\"}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":1771668070123}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":1771668070}", 1, 1771668070000, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":1771668070.1239}", 1, 1771668070123, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":-1.5}", 1, -1500, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":-9223372036854775808}", 1, INT64_MIN, "foreign.line", "{}"},
    {"{\"seq\":1,\"ts\":1e9}", .kind = NULL},
    {"{\"seq\":1,\"ts\":9223372036854775808}", .kind = NULL},
    {"{\"seq\":1,\"ts\":null}", .kind = NULL},
    {"{\"seq\":1,\"ts\":\"yesterday\"}", .kind = NULL},
    {"{\"seq\":1,\"ts\":\"2026-02-30T10:01:10Z\"}", .kind = NULL},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10.Z\"}", .kind = NULL},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10+24:00\"}", .kind = NULL},
    {"{\"seq\":1,\"ts\":\"2026-02-21T10:01:10+1:00\"}", .kind = NULL},
    {"{\"seq\":1,\"kind\":\"Upper\"}", .kind = NULL},
    {"{\"seq\":1,\"kind\":\"\"}", .kind = NULL},
    {"{\"seq\":1,\"kind\":7}", .kind = NULL},
    {"{\"seq\":0}", .kind = NULL},
    {"{\"seq\":-1}", .kind = NULL},
    {"{\"seq\":1.0}", .kind = NULL},
    {"{\"seq\":\"1\"}", .kind = NULL},
    {"{\"seq\":9223372036854775808}", .kind = NULL},
    {"{\"kind\":\"a\"}", .kind = NULL},
    {"{\"seq\":1,\"seq\":1}", .kind = NULL},
    {"{\"seq\":1,\"a\":1,\"\\u0061\":2}", .kind = NULL},
    {"{\"seq\":1} x", .kind = NULL},
    {"{\"seq\":1,}", .kind = NULL},
    {"[{\"seq\":1}]", .kind = NULL},
    {"{\"seq\":1,\"a\":\"\xff\"}", .kind = NULL},
    {"7", .kind = NULL},
    {"", .kind = NULL},
    {" ", .kind = NULL},
    {"{", .kind = NULL},
    {"\"", .kind = NULL},
    {"}{", .kind = NULL},
};

static void lines_of_others_give_what_they_say(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(foreign); i++) {
        struct str line = str_from(foreign[i].line);
        enum line_read want = foreign[i].kind ? LINE_EVENT : LINE_NOT;
        struct line_fields fields;
        struct event ev;

        if (line_read(&a, line, &ev, &fields) != want)
            fail_msg("%s: %s", want == LINE_NOT ? "an event" : "no event", foreign[i].line);
        assert_false(line_peek(line, &ev.seq, &fields));
        if (want == LINE_NOT)
            continue;
        assert_false(fields.verified);
        assert_true(ev.seq == foreign[i].seq && ev.epoch == 0);
        assert_true(ev.ts_ms == foreign[i].ts_ms);
        assert_true(str_eq(ev.kind, str_from(foreign[i].kind)));
        assert_true(str_eq(ev.body, str_from(foreign[i].body)));
    }
}

/* Members in another order and spaces are still ours when nothing is missing. */
static void a_mark_may_be_laid_out_by_another_program(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    struct line_fields fields = {.epoch = 3, .at = 2, .more = 4}, got_fields;
    struct event ev = make_event(5, 1771668070123, STR("a"), STR("{\"x\":[1,2]}"), &fields), got;
    char hex[2 * DIGEST_SIZE + 1];

    (void)state;
    hex_encode(hex, ev.digest, DIGEST_SIZE);
    buf_addf(
        &line,
        "{ \"tidemark\": {\"digest\": \"%s\", \"at\": 2, \"more\": 4, \"epoch\": 3}, \"x\": [1, 2], \"kind\": \"a\", "
        "\"ts\": \"2026-02-21T10:01:10.123Z\", \"seq\": 5 }",
        hex);
    assert_int_equal(line_read(&a, buf_view(&line), &got, &got_fields), LINE_EVENT);
    assert_true(same_event(&got, &ev) && same_fields(&got_fields, &fields) && digest_fits(&got, &got_fields));
}

/* ---- hostile ones ---- */

static struct buf filled(size_t n, struct str head, char fill, struct str tail)
{
    struct buf b = BUF_INIT(n + head.len + tail.len);
    char *at;

    buf_add_str(&b, head);
    at = buf_reserve(&b, n);
    memset(at, fill, n);
    b.len += n;
    buf_add_str(&b, tail);
    assert_false(b.failed);
    return b;
}

static void huge_and_deep_lines_are_no_events(void **state)
{
    static const struct {
        const char *head, *tail;
        char fill;
    } rows[] = {
        {"", "", '\0'},
        {"", "", ' '},
        {"", "", '{'},
        {"{\"seq\":1,\"a\":", "}", '['},
        {"{\"seq\":1,\"a\":\"", "\"}", '\\'},
        {"{\"seq\":1,\"a\":\"", "\"}", 'x'}, /* an event, but for its size */
        {"{\"seq\":1,\"a\":\"", "\"", 'x'},
        {"{\"seq\":", "}", '1'},
        {"{\"seq\":1,\"ts\":\"", "", '"'},
    };
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done)
        struct buf b = filled((size_t)100 << 20, str_from(rows[i].head), rows[i].fill, str_from(rows[i].tail));
        struct line_fields fields;
        struct event ev;

        assert_int_equal(line_read(&a, buf_view(&b), &ev, &fields), LINE_NOT);
        assert_false(line_peek(buf_view(&b), &ev.seq, &fields));
        assert_int_equal(line_kind(buf_view(&b)).len, 0);
        assert_int_equal(a.used, 0);
    }
}

static void nesting_ends_where_the_parser_s_does(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t depth = JSON_MAX_DEPTH - 2; depth < JSON_MAX_DEPTH + 2; depth++) {
        AUTO(buf_done) struct buf b = filled(depth, STR("{\"seq\":1,\"a\":"), '[', STR(""));
        struct line_fields fields;
        struct event ev;

        b.max += depth + 1;
        for (size_t i = 0; i < depth; i++)
            buf_add_char(&b, ']');
        buf_add_char(&b, '}');
        assert_int_equal(line_read(&a, buf_view(&b), &ev, &fields), depth < JSON_MAX_DEPTH ? LINE_EVENT : LINE_NOT);
    }
}

static void a_nul_byte_is_no_event(void **state)
{
    static const char line[] = "{\"seq\":1,\"a\":\"b\"}";
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof line; i++) {
        char copy[sizeof line];
        struct line_fields fields;
        struct event ev;

        memcpy(copy, line, sizeof line);
        copy[i] = 0;
        assert_int_equal(line_read(&a, (struct str){copy, sizeof line}, &ev, &fields), LINE_NOT);
    }
}

/* ---- speed: shown, not judged ---- */

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void how_fast_lines_are_read(void **state)
{
    static const char text[] =
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"What is the weather like?\"}],"
        "\"id\":\"msg_01hq8z0v3k2n5p7r9t\",\"usage\":{\"in\":120,\"out\":33}}";
    const int rounds = SLOW_BUILD ? 20000 : 400000;
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);
    struct line_fields fields = {.epoch = 2}, got_fields;
    struct event ev = make_event(123456, 1795537206978, STR("message.user"), str_from(text), &fields), got;
    struct str line = write_line(&out, &ev, &fields);
    double t[4];
    int64_t seq;

    (void)state;
    t[0] = cpu_seconds();
    for (int i = 0; i < rounds; i++) {
        assert_true(line_read(&a, line, &got, &got_fields) == LINE_EVENT);
        arena_reset(&a);
    }
    t[1] = cpu_seconds();
    for (int i = 0; i < rounds; i++)
        assert_true(line_peek(line, &seq, &got_fields));
    t[2] = cpu_seconds();
    for (int i = 0; i < rounds; i++)
        event_digest(got.digest, NULL, no_digest, SESSION, &ev);
    t[3] = cpu_seconds();
    print_message("lines of %zu bytes a second of CPU: read %.0f, peek %.0f (digests: %.0f)\n", line.len,
                  rounds / (t[1] - t[0]), rounds / (t[2] - t[1]), rounds / (t[3] - t[2]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_that_look_like_marks_come_back),
        cmocka_unit_test(random_events_come_back),
        cmocka_unit_test(kinds_of_all_lengths_come_back),
        cmocka_unit_test(a_body_of_five_mib_comes_back),
        cmocka_unit_test(numbers_at_their_limits_come_back),
        cmocka_unit_test(a_line_that_was_cut_is_no_event),
        cmocka_unit_test(a_changed_byte_shows),
        cmocka_unit_test(a_line_without_its_mark_is_unverified),
        cmocka_unit_test(a_mark_that_is_not_whole_is_no_event),
        cmocka_unit_test(lines_of_others_give_what_they_say),
        cmocka_unit_test(a_mark_may_be_laid_out_by_another_program),
        cmocka_unit_test(huge_and_deep_lines_are_no_events),
        cmocka_unit_test(nesting_ends_where_the_parser_s_does),
        cmocka_unit_test(a_nul_byte_is_no_event),
        cmocka_unit_test(how_fast_lines_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
