/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer: trees come out as they came in, new text is always valid JSON, a full buffer is told once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void a_tree_is_written_compactly_and_otherwise_unchanged(void **state)
{
    static const struct {
        struct str text, want;
    } rows[] = {
        {STR(" null "), STR("null")},
        {STR("1.50e+007"), STR("1.50e+007")},
        {STR("123456789012345678901234567890"), STR("123456789012345678901234567890")},
        {STR("\"\\u0041\\/ \xc3\xa9\""), STR("\"\\u0041\\/ \xc3\xa9\"")},
        {STR("[ ]"), STR("[]")},
        {STR("{ }"), STR("{}")},
        {STR("{ \"b\" : [ 1 , 2 ] ,\n\t\"\\u0061 \" : { } , \"\" : false }"),
         STR("{\"b\":[1,2],\"\\u0061 \":{},\"\":false}")},
        {STR("{\"10\":1,\"9\":2}"), STR("{\"10\":1,\"9\":2}")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        AUTO(buf_done) struct buf b = BUF_INIT(1000);
        struct json *v;

        assert_int_equal(json_parse(&a, rows[i].text, NULL, &v, NULL, NULL), TIDE_OK);
        json_write(&b, v);
        assert_true(str_eq(buf_view(&b), rows[i].want));
    }
}

static void pretty_text_is_indented_by_two(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf b = BUF_INIT(1000);
    struct json *v;

    (void)state;
    assert_int_equal(json_parse(&a, STR("{\"a\":[1,{\"b\":\"x\"}],\"e\":{},\"f\":[]}"), NULL, &v, NULL, NULL), TIDE_OK);
    json_write_pretty(&b, v);
    assert_string_equal(buf_cstr(&b), "{\n"
                                      "  \"a\": [\n"
                                      "    1,\n"
                                      "    {\n"
                                      "      \"b\": \"x\"\n"
                                      "    }\n"
                                      "  ],\n"
                                      "  \"e\": {},\n"
                                      "  \"f\": []\n"
                                      "}");
}

static void quoting_escapes_what_must_be_escaped_and_nothing_else(void **state)
{
    static const struct {
        struct str text, want;
    } rows[] = {
        {STR(""), STR("\"\"")},
        {{NULL, 0}, STR("\"\"")},
        {STR("plain / text"), STR("\"plain / text\"")},
        {STR("\"\\\b\f\n\r\t"), STR("\"\\\"\\\\\\b\\f\\n\\r\\t\"")},
        {STR("a\0b\x01\x1f\x7f"), STR("\"a\\u0000b\\u0001\\u001f\x7f\"")},
        {STR("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x80\xa8"),
         STR("\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xe2\x80\xa8\"")},
        {STR("bad \xff end"), STR("\"bad \xef\xbf\xbd end\"")},
        {STR("cut \xe2\x82"), STR("\"cut \xef\xbf\xbd\xef\xbf\xbd\"")},
        {STR("\xed\xa0\x80"), STR("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")},
        {STR("\xc3\""), STR("\"\xef\xbf\xbd\\\"\"")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(buf_done) struct buf b = BUF_INIT(1000);

        json_quote(&b, rows[i].text);
        if (!str_eq(buf_view(&b), rows[i].want))
            fail_msg("row %zu: %s", i, buf_cstr(&b));
    }
}

/* All bytes, in pairs, so that each meets each neighbour. */
static void whatever_is_quoted_parses_back(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf b = BUF_INIT(1000);

    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)pair};
        struct str s = {bytes, 2};
        struct json *v;

        buf_clear(&b);
        arena_reset(&a);
        json_quote(&b, s);
        if (json_parse(&a, buf_view(&b), NULL, &v, NULL, NULL))
            fail_msg("bytes %04x", pair);
        if (str_is_utf8(s, NULL) && !str_eq(json_text(&a, v), s))
            fail_msg("bytes %04x changed", pair);
    }
}

static void commas_and_colons_come_by_themselves(void **state)
{
    AUTO(buf_done) struct buf b = BUF_INIT(1000);
    struct json_out o = json_out_to(&b);

    (void)state;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("s"), STR("a\"b"));
    json_out_kstr_opt(&o, STR("absent"), STR(""));
    json_out_kstr_opt(&o, STR("there"), STR("x"));
    json_out_kint(&o, STR("i"), INT64_MIN);
    json_out_kbool(&o, STR("t"), true);
    json_out_kraw(&o, STR("r"), STR("[1, 2]"));
    json_out_key(&o, STR("l"));
    json_out_begin(&o, '[');
    json_out_begin(&o, '[');
    json_out_end(&o, ']');
    json_out_begin(&o, '{');
    json_out_end(&o, '}');
    json_out_null(&o);
    json_out_bool(&o, false);
    json_out_int(&o, 0);
    json_out_str(&o, STR(""));
    json_out_raw(&o, STR("1e5"));
    json_out_end(&o, ']');
    json_out_key(&o, STR("\n"));
    json_out_null(&o);
    json_out_end(&o, '}');
    assert_string_equal(buf_cstr(&b),
                        "{\"s\":\"a\\\"b\",\"there\":\"x\",\"i\":-9223372036854775808,\"t\":true,\"r\":[1, 2],"
                        "\"l\":[[],{},null,false,0,\"\",1e5],\"\\n\":null}");
    assert_int_equal(o.depth, 0);
}

static void a_full_buffer_is_told_once_at_the_end(void **state)
{
    (void)state;
    for (size_t max = 0; max <= 20; max++) {
        AUTO(buf_done) struct buf b = BUF_INIT(max);
        struct json_out o = json_out_to(&b);

        json_out_begin(&o, '[');
        json_out_int(&o, 12345);
        json_out_str(&o, STR("a\x01"));
        json_out_end(&o, ']');
        assert_int_equal(b.failed, max < 17);
        assert_true(b.len <= max);
        assert_memory_equal(buf_cstr(&b), "[12345,\"a\\u0001\"]", b.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_written_compactly_and_otherwise_unchanged),
        cmocka_unit_test(pretty_text_is_indented_by_two),
        cmocka_unit_test(quoting_escapes_what_must_be_escaped_and_nothing_else),
        cmocka_unit_test(whatever_is_quoted_parses_back),
        cmocka_unit_test(commas_and_colons_come_by_themselves),
        cmocka_unit_test(a_full_buffer_is_told_once_at_the_end),
    };

    return cmocka_run_group_tests_name("base/json_write", tests, NULL, NULL);
}
