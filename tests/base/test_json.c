/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader: what it takes, what it refuses and in which words, and what the tree then says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "base/json.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct json *parsed(struct arena *a, struct str text)
{
    struct tide_err err;
    struct json *v = NULL;

    if (json_parse(a, text, NULL, &v, NULL, &err))
        fail_msg("'%.*s': %s", STR_ARG(text), err.msg);
    return v;
}

static void valid_documents_are_taken(void **state)
{
    static const struct {
        struct str text;
        enum json_type type;
        uint32_t count;
        bool compact;
    } rows[] = {
        {STR("null"), JSON_NULL, 0, true},
        {STR("true"), JSON_TRUE, 0, true},
        {STR("false"), JSON_FALSE, 0, true},
        {STR("0"), JSON_NUMBER, 0, true},
        {STR("-0"), JSON_NUMBER, 0, true},
        {STR("-12.50e+10"), JSON_NUMBER, 0, true},
        {STR("1E5"), JSON_NUMBER, 0, true},
        {STR("0.1e-7"), JSON_NUMBER, 0, true},
        {STR("123456789012345678901234567890.5e999"), JSON_NUMBER, 0, true},
        {STR("\"\""), JSON_STRING, 0, true},
        {STR("\"a b\""), JSON_STRING, 0, true},
        {STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD83d\\uDe00\""), JSON_STRING, 0, true},
        {STR("\"\x7f caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""), JSON_STRING, 0, true},
        {STR("[]"), JSON_ARRAY, 0, true},
        {STR("{}"), JSON_OBJECT, 0, true},
        {STR("[1,2,[3]]"), JSON_ARRAY, 3, true},
        {STR("{\"\":0,\" \":1}"), JSON_OBJECT, 2, true},
        {STR("{\"a\":{\"a\":{}},\"b\":[{\"a\":1},{\"a\":1}]}"), JSON_OBJECT, 2, true},
        {STR(" 1"), JSON_NUMBER, 0, false},
        {STR("1\n"), JSON_NUMBER, 0, false},
        {STR("[ ]"), JSON_ARRAY, 0, false},
        {STR("{ }"), JSON_OBJECT, 0, false},
        {STR("[1 ,2]"), JSON_ARRAY, 2, false},
        {STR("[1,\r2]"), JSON_ARRAY, 2, false},
        {STR("{\"a\" :1}"), JSON_OBJECT, 1, false},
        {STR("{\"a\":\t1}"), JSON_OBJECT, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        struct tide_err err;
        struct json *v;
        bool compact;

        if (json_parse(&a, rows[i].text, NULL, &v, &compact, &err))
            fail_msg("'%.*s': %s", STR_ARG(rows[i].text), err.msg);
        assert_int_equal(v->type, rows[i].type);
        assert_int_equal(v->count, rows[i].count);
        assert_int_equal(compact, rows[i].compact);
    }
}

static const struct {
    struct str text;
    const char *want;
} refused[] = {
    {STR(""), "line 1, column 1: expected a value, found the end"},
    {{NULL, 0}, "line 1, column 1: expected a value, found the end"},
    {STR(" \n "), "line 2, column 2: expected a value, found the end"},
    {STR("nul"), "line 1, column 1: expected a value, found 'n'"},
    {STR("True"), "line 1, column 1: expected a value, found 'T'"},
    {STR("NaN"), "line 1, column 1: expected a value, found 'N'"},
    {STR("nullx"), "line 1, column 5: expected the end, found 'x'"},
    {STR("1 2"), "line 1, column 3: expected the end, found '2'"},
    {STR("{}\n\n {}"), "line 3, column 2: expected the end, found '{'"},
    {STR("\xef\xbb\xbf{}"), "line 1, column 1: expected a value, found byte 0xef"},
    {STR("\0"), "line 1, column 1: expected a value, found a NUL byte"},
    {STR("1\0"), "line 1, column 2: expected the end, found a NUL byte"},
    {STR("[\x1b]"), "line 1, column 2: expected a value, found byte 0x1b"},
    {STR("[1,\f2]"), "line 1, column 4: expected a value, found byte 0x0c"},
    {STR("[1,\xc2\xa0"
         "2]"),
     "line 1, column 4: expected a value, found byte 0xc2"},
    {STR("01"), "line 1, column 2: expected the end, found '1'"},
    {STR("-"), "line 1, column 2: expected a digit, found the end"},
    {STR("-x"), "line 1, column 2: expected a digit, found 'x'"},
    {STR("+1"), "line 1, column 1: expected a value, found '+'"},
    {STR(".5"), "line 1, column 1: expected a value, found '.'"},
    {STR("1."), "line 1, column 3: expected a digit, found the end"},
    {STR("1.e5"), "line 1, column 3: expected a digit, found 'e'"},
    {STR("1e"), "line 1, column 3: expected a digit, found the end"},
    {STR("1e+-1"), "line 1, column 4: expected a digit, found '-'"},
    {STR("0x10"), "line 1, column 2: expected the end, found 'x'"},
    {STR("[1,]"), "line 1, column 4: expected a value, found ']'"},
    {STR("[,1]"), "line 1, column 2: expected a value, found ','"},
    {STR("[1 2]"), "line 1, column 4: expected ',' or ']', found '2'"},
    {STR("[1"), "line 1, column 3: expected ',' or ']', found the end"},
    {STR("[1}"), "line 1, column 3: expected ',' or ']', found '}'"},
    {STR("]"), "line 1, column 1: expected a value, found ']'"},
    {STR("{a:1}"), "line 1, column 2: expected a key in quotes, found 'a'"},
    {STR("{'a':1}"), "line 1, column 2: expected a key in quotes, found '''"},
    {STR("{1:1}"), "line 1, column 2: expected a key in quotes, found '1'"},
    {STR("{\"a\"}"), "line 1, column 5: expected ':', found '}'"},
    {STR("{\"a\":}"), "line 1, column 6: expected a value, found '}'"},
    {STR("{\"a\":1,}"), "line 1, column 8: expected a key in quotes, found '}'"},
    {STR("{\"a\":1"), "line 1, column 7: expected ',' or '}', found the end"},
    {STR("{\"a\":1]"), "line 1, column 7: expected ',' or '}', found ']'"},
    {STR("[1] // c"), "line 1, column 5: expected the end, found '/'"},
    {STR("\"abc"), "line 1, column 1: string without an end"},
    {STR("\"abc\\"), "line 1, column 5: string without an end"},
    {STR("\"abc\\\""), "line 1, column 1: string without an end"},
    {STR("\"a\nb\""), "line 1, column 3: raw control character 0x0a in a string"},
    {STR("\"1234567\x1f\""), "line 1, column 9: raw control character 0x1f in a string"},
    {STR("\"a\0b\""), "line 1, column 3: NUL byte in a string"},
    {STR("\"\\x41\""), "line 1, column 2: unknown escape \\x"},
    {STR("\"\\\x1b\""), "line 1, column 2: unknown escape \\?"},
    {STR("\"\\\0\""), "line 1, column 2: unknown escape \\?"},
    {STR("\"\\\xc3\xa9\""), "line 1, column 2: unknown escape \\?"},
    {STR("\"\\U0041\""), "line 1, column 2: unknown escape \\U"},
    {STR("\"\\u12\""), "line 1, column 2: \\u without four hex digits"},
    {STR("\"\\u12g4\""), "line 1, column 2: \\u without four hex digits"},
    {STR("\"\\u+123\""), "line 1, column 2: \\u without four hex digits"},
    {STR("\"\\u"), "line 1, column 2: \\u without four hex digits"},
    {STR("{\"message\":\"abc\\ud800\"}"), "line 1, column 16: lone surrogate \\ud800"},
    {STR("\"\\uDC00\""), "line 1, column 2: lone surrogate \\uDC00"},
    {STR("\"\\ud800\\ud800\""), "line 1, column 2: lone surrogate \\ud800"},
    {STR("\"\\ud800\\u0041\""), "line 1, column 2: lone surrogate \\ud800"},
    {STR("\"\\ud800\\n0041\""), "line 1, column 2: lone surrogate \\ud800"},
    {STR("\"\\ud800\\udc0\""), "line 1, column 2: lone surrogate \\ud800"},
    {STR("\"\\ud83d\\ude00\\ude00\""), "line 1, column 14: lone surrogate \\ude00"},
    {STR("{\"\\udfff\":1}"), "line 1, column 3: lone surrogate \\udfff"},
    {STR("\"a\xff\""), "line 1, column 3: invalid UTF-8, byte 0xff"},
    {STR("\"\xc3\""), "line 1, column 2: invalid UTF-8, byte 0xc3"},
    {STR("\"caf\xc3\xa9 \xed\xa0\x80\""), "line 1, column 7: invalid UTF-8, byte 0xed"},
    {STR("\"\xe2\x82\xac\xe2\x82\""), "line 1, column 3: invalid UTF-8, byte 0xe2"},
    {STR("\"\xe2\x82"), "line 1, column 2: invalid UTF-8, byte 0xe2"},
    {STR("{\"\xc0\xaf\":1}"), "line 1, column 3: invalid UTF-8, byte 0xc0"},
    {STR("{\"a\":1,\"b\":2,\"a\":3}"), "line 1, column 14: duplicate key \"a\""},
    {STR("{\"\":1,\n \"\":2}"), "line 2, column 2: duplicate key \"\""},
    {STR("{\"a\":1,\"\\u0061\":2}"), "line 1, column 8: duplicate key \"\\u0061\""},
    {STR("{\"\\u0061\":1,\"a\":2}"), "line 1, column 13: duplicate key \"a\""},
    {STR("{\"\\/\":1,\"\\u002f\":2}"), "line 1, column 9: duplicate key \"\\u002f\""},
    {STR("{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}"), "line 1, column 19: duplicate key \"\xf0\x9f\x98\x80\""},
    {STR("{\"\x7f\":1,\"\x7f\":2}"), "line 1, column 8: duplicate key \"?\""},
    {STR("[{\"k\":{\"x\":1,\"x\":1}}]"), "line 1, column 14: duplicate key \"x\""},
};

static void bad_documents_are_refused_by_place_and_fault(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        struct json *v = NULL;
        struct tide_err err;

        if (json_parse(&a, refused[i].text, NULL, &v, NULL, &err) != TIDE_INVALID)
            fail_msg("'%.*s' was taken", STR_ARG(refused[i].text));
        assert_string_equal(err.msg, refused[i].want);
        assert_null(v);
        assert_int_equal(json_parse(&a, refused[i].text, NULL, &v, NULL, NULL), TIDE_INVALID);
    }
}

/* A copy of exactly the bytes, so that a sanitizer sees any look behind the end. */
static void every_prefix_of_a_document_is_refused_without_reading_past_it(void **state)
{
    struct str text =
        STR("{\"a\\u00e9\\ud83d\\ude00\":[1.5e+3,true,false,null,\"caf\xc3\xa9 \\n 0123456789\"],\"b\":{}}");

    (void)state;
    for (size_t n = 0; n <= text.len; n++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        AUTO(mem_freep) char *copy = mem_alloc(n);
        struct json *v;

        memcpy(copy, text.ptr, n);
        assert_int_equal(json_parse(&a, (struct str){copy, n}, NULL, &v, NULL, NULL),
                         n == text.len ? TIDE_OK : TIDE_INVALID);
    }
}

/* Each position within an eight-byte step has its own lane: a special byte must stop the scan in every one. */
static void special_bytes_are_seen_in_every_lane(void **state)
{
    (void)state;
    for (size_t at = 1; at < 40; at++)
        for (int c = 0; c < 256; c++) {
            AUTO(arena_done) struct arena a = ARENA_INIT;
            char text[41];
            struct json *v;
            bool want = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';

            memset(text, '~', sizeof(text));
            text[0] = text[40] = '"';
            text[at] = (char)c;
            if ((json_parse(&a, (struct str){text, sizeof(text)}, NULL, &v, NULL, NULL) == TIDE_OK) != want)
                fail_msg("byte 0x%02x at %zu", c, at);
        }
}

static void nesting_stops_at_the_limit(void **state)
{
    static const struct {
        unsigned depth, limit;
        const char *want; /* NULL: taken */
    } rows[] = {
        {128, 0, NULL},     {129, 0, "line 1, column 129: nesting deeper than 128"},
        {1, 1, NULL},       {2, 1, "line 1, column 2: nesting deeper than 1"},
        {1000, 1000, NULL}, {100000, 0, "line 1, column 129: nesting deeper than 128"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        AUTO(mem_freep) char *text = mem_alloc(2 * (size_t)rows[i].depth);
        struct json_limits limits = {0, rows[i].limit};
        struct tide_err err = {0};
        struct json *v;

        memset(text, '[', rows[i].depth);
        memset(text + rows[i].depth, ']', rows[i].depth);
        assert_int_equal(json_parse(&a, (struct str){text, 2 * (size_t)rows[i].depth}, &limits, &v, NULL, &err),
                         rows[i].want ? TIDE_INVALID : TIDE_OK);
        assert_string_equal(err.msg, rows[i].want ? rows[i].want : "");
    }
}

static void siblings_do_not_count_as_depth(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_limits limits = {0, 2};
    struct json *v;

    (void)state;
    assert_int_equal(json_parse(&a, STR("[[],[],{},{\"a\":1},[]]"), &limits, &v, NULL, NULL), TIDE_OK);
}

static void a_text_over_the_byte_limit_is_too_big(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json_limits limits = {.max_bytes = 4};
    struct tide_err err;
    struct json *v;

    (void)state;
    assert_int_equal(json_parse(&a, STR("null"), &limits, &v, NULL, &err), TIDE_OK);
    assert_int_equal(json_parse(&a, STR("null "), &limits, &v, NULL, &err), TIDE_TOO_BIG);
    assert_string_equal(err.msg, "JSON of 5 bytes, at most 4 are allowed");
}

/* {"k0":0,…} with n members; one more that repeats `again` (-1: none), spelled with an escape. */
static void many_members(struct buf *b, int n, int again)
{
    buf_add_char(b, '{');
    for (int i = 0; i < n; i++)
        buf_addf(b, "%s\"%s%d\":0", i ? "," : "", i % 3 == 1 ? "\\u006b" : "k", i);
    if (again >= 0)
        buf_addf(b, ",\"\\u006B%d\":1", again);
    buf_add_char(b, '}');
}

static void a_repeated_key_is_found_among_few_and_many(void **state)
{
    static const int counts[] = {1, 2, 15, 16, 17, 18, 31, 32, 33, 64, 65, 100, 1000, 5000};

    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++) {
        int n = counts[i], places[] = {-1, 0, n / 2, n - 1};

        for (size_t k = 0; k < COUNT(places); k++) {
            AUTO(arena_done) struct arena a = ARENA_INIT;
            AUTO(buf_done) struct buf b = BUF_INIT(1 << 20);
            struct tide_err err = {0};
            struct json *v;

            many_members(&b, n, places[k]);
            assert_int_equal(json_parse(&a, buf_view(&b), NULL, &v, NULL, &err),
                             places[k] < 0 ? TIDE_OK : TIDE_INVALID);
            assert_true(places[k] < 0 || strstr(err.msg, "duplicate key \"\\u006B"));
        }
    }
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double parse_ms(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    double begin = cpu_ms();
    struct json *v;

    assert_int_equal(json_parse(&a, text, NULL, &v, NULL, NULL), TIDE_OK);
    return cpu_ms() - begin;
}

/* The same number of members in small objects is the measure; comparing each with each would take 10000 times that. */
static void a_hundred_thousand_members_cost_no_square(void **state)
{
    AUTO(buf_done) struct buf one = BUF_INIT(8 << 20), small = BUF_INIT(8 << 20);
    double one_ms, small_ms;

    (void)state;
    many_members(&one, 100000, -1);
    for (int i = 0; i < 10000; i++) {
        buf_add_char(&small, i ? ',' : '[');
        many_members(&small, 10, -1);
    }
    buf_add_char(&small, ']');
    one_ms = parse_ms(buf_view(&one));
    small_ms = parse_ms(buf_view(&small));
    if (one_ms > 100 * small_ms)
        fail_msg("in one object: %.1f ms, in small ones: %.1f ms", one_ms, small_ms);
}

static void a_long_key_is_shown_cut(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf b = BUF_INIT(10000);
    struct tide_err err;
    struct json *v;

    (void)state;
    for (int i = 0; i < 2; i++)
        buf_addf(&b, "%s\"%0300d\":0", i ? "," : "{", 7);
    buf_add_char(&b, '}');
    assert_int_equal(json_parse(&a, buf_view(&b), NULL, &v, NULL, &err), TIDE_INVALID);
    assert_true(strlen(err.msg) < 120);
    assert_non_null(strstr(err.msg, "000…"));
}

static void strings_decode_to_their_text(void **state)
{
    static const struct {
        struct str source, want;
    } rows[] = {
        {STR("\"\""), STR("")},
        {STR("\"plain\""), STR("plain")},
        {STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), STR("\"\\/\b\f\n\r\t")},
        {STR("\"a\\u0000b\""), STR("a\0b")},
        {STR("\"\\u007f\\u0080\\u07ff\""), STR("\x7f\xc2\x80\xdf\xbf")},
        {STR("\"\\u0800\\uFFFF\\ud7ff\\ue000\""), STR("\xe0\xa0\x80\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80")},
        {STR("\"\\ud800\\udc00\\uDBFF\\uDFFF\""), STR("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
        {STR("\"x\xe2\x82\xac\\u20AC y\""), STR("x\xe2\x82\xac\xe2\x82\xac y")},
        {STR("\"\\\\u0041\""), STR("\\u0041")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        AUTO(buf_done) struct buf b = BUF_INIT(1000);
        struct json *v = parsed(&a, rows[i].source);

        assert_true(str_eq(json_text(&a, v), rows[i].want));
        assert_true(str_eq(json_source(v), rows[i].source));
        buf_addf(&b, "{%.*s:1}", STR_ARG(rows[i].source));
        v = parsed(&a, buf_view(&b));
        assert_true(str_eq(json_key_text(&a, v->first), rows[i].want));
        assert_true(json_key_eq(v->first, rows[i].want));
        assert_false(json_key_eq(v->first, STR("other")));
        assert_ptr_equal(json_get(v, rows[i].want), v->first);
    }
}

static void text_without_escapes_is_a_view_of_the_source(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct str text = STR("\"view\"");
    struct json *v = parsed(&a, text);

    (void)state;
    assert_ptr_equal(json_text(&a, v).ptr, text.ptr + 1);
}

static void a_key_is_equal_only_as_a_whole(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = parsed(&a, STR("{\"\\u0061bc\":1}"));

    (void)state;
    assert_true(json_key_eq(v->first, STR("abc")));
    assert_false(json_key_eq(v->first, STR("ab")));
    assert_false(json_key_eq(v->first, STR("abcd")));
    assert_false(json_key_eq(v->first, STR("")));
    assert_false(json_key_eq(v->first, STR("\\u0061bc")));
}

static void integers_count_only_when_they_fit_exactly(void **state)
{
    static const struct {
        struct str text;
        bool ok;
        int64_t want;
    } rows[] = {
        {STR("0"), true, 0},
        {STR("-7"), true, -7},
        {STR("9223372036854775807"), true, INT64_MAX},
        {STR("-9223372036854775808"), true, INT64_MIN},
        {STR("9007199254740993"), true, 9007199254740993},
        {STR("9223372036854775808"), false, 0},
        {STR("1e2"), false, 0},
        {STR("1.0"), false, 0},
        {STR("\"1\""), false, 0},
        {STR("true"), false, 0},
        {STR("null"), false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        int64_t value = 99;

        assert_int_equal(json_int(parsed(&a, rows[i].text), &value), rows[i].ok);
        assert_true(value == (rows[i].ok ? rows[i].want : 99));
    }
}

static void typed_access_falls_back_when_absent_or_of_another_type(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = parsed(&a, STR("{\"s\":\"t\\n\",\"i\":5,\"t\":true,\"f\":false,\"n\":null}"));
    const struct json *nothing[] = {NULL, parsed(&a, STR("[1]")), v->first};

    (void)state;
    assert_true(str_eq(json_get_text(&a, v, STR("s")), STR("t\n")));
    assert_true(str_eq(json_get_text(&a, v, STR("i")), STR("")));
    assert_int_equal(json_get_int(v, STR("i"), 9), 5);
    assert_int_equal(json_get_int(v, STR("s"), 9), 9);
    assert_true(json_get_bool(v, STR("t"), false));
    assert_false(json_get_bool(v, STR("f"), true));
    assert_true(json_get_bool(v, STR("n"), true));
    for (size_t i = 0; i < COUNT(nothing); i++) {
        assert_null(json_get(nothing[i], STR("s")));
        assert_int_equal(json_get_text(&a, nothing[i], STR("s")).len, 0);
        assert_int_equal(json_get_int(nothing[i], STR("i"), -1), -1);
        assert_true(json_get_bool(nothing[i], STR("t"), true));
    }
}

static void the_source_of_every_value_is_its_own_text(void **state)
{
    static const struct str want[] = {STR("\"s\\n\""), STR("-1.50"), STR("[ 1 , {} ]"), STR("{\"k\": null}"),
                                      STR("true")};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = parsed(&a, STR(" [\"s\\n\", -1.50 ,[ 1 , {} ],{\"k\": null} , true] "));
    const struct json *item = v->first;

    (void)state;
    assert_int_equal(v->count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++, item = item->next)
        assert_true(str_eq(json_source(item), want[i]));
    assert_null(item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_documents_are_taken),
        cmocka_unit_test(bad_documents_are_refused_by_place_and_fault),
        cmocka_unit_test(every_prefix_of_a_document_is_refused_without_reading_past_it),
        cmocka_unit_test(special_bytes_are_seen_in_every_lane),
        cmocka_unit_test(nesting_stops_at_the_limit),
        cmocka_unit_test(siblings_do_not_count_as_depth),
        cmocka_unit_test(a_text_over_the_byte_limit_is_too_big),
        cmocka_unit_test(a_repeated_key_is_found_among_few_and_many),
        cmocka_unit_test(a_hundred_thousand_members_cost_no_square),
        cmocka_unit_test(a_long_key_is_shown_cut),
        cmocka_unit_test(strings_decode_to_their_text),
        cmocka_unit_test(text_without_escapes_is_a_view_of_the_source),
        cmocka_unit_test(a_key_is_equal_only_as_a_whole),
        cmocka_unit_test(integers_count_only_when_they_fit_exactly),
        cmocka_unit_test(typed_access_falls_back_when_absent_or_of_another_type),
        cmocka_unit_test(the_source_of_every_value_is_its_own_text),
    };

    return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
