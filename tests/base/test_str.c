/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: exact integers, UTF-8, ids, hex, and a hash that depends on content alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static void integers_are_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"7", true, 7},
        {"-42", true, -42},
        {"007", true, 7},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"92233720368547758070", false, 0},
        {"99999999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1e2", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"--1", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t value = 99;

        if (str_to_int64(str_from(rows[i].text), &value) != rows[i].ok || value != (rows[i].ok ? rows[i].want : 99))
            fail_msg("'%s' gave %lld", rows[i].text, (long long)value);
    }
}

static void a_nul_inside_ends_no_integer(void **state)
{
    int64_t value;

    (void)state;
    assert_false(str_to_int64(STR("12\0"
                                  "3"),
                              &value));
}

static void utf8_is_checked_to_the_letter(void **state)
{
    static const struct {
        struct str text;
        size_t bad_at; /* SIZE_MAX: valid */
    } rows[] = {
        {STR(""), SIZE_MAX},
        {STR("plain"), SIZE_MAX},
        {STR("a\0b"), SIZE_MAX},
        {STR("\xc2\x80 \xdf\xbf"), SIZE_MAX},
        {STR("\xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf"), SIZE_MAX},
        {STR("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"), SIZE_MAX},
        {STR("ok\x80"), 2},   /* tail without a lead */
        {STR("ok\xc3"), 2},   /* cut */
        {STR("\xc3("), 0},    /* no tail behind the lead */
        {STR("\xc0\xaf"), 0}, /* overlong, 2 bytes */
        {STR("\xc1\xbf"), 0},
        {STR("\xe0\x9f\xbf"), 0},     /* overlong, 3 bytes */
        {STR("\xf0\x8f\xbf\xbf"), 0}, /* overlong, 4 bytes */
        {STR("x\xed\xa0\x80"), 1},    /* surrogates */
        {STR("x\xed\xbf\xbf"), 1},
        {STR("\xf4\x90\x80\x80"), 0}, /* above U+10FFFF */
        {STR("\xf8\x88\x80\x80\x80"), 0},
        {STR("\xff"), 0},
        {STR("\xe2\x82"), 0},
        {STR("\xf0\x9f\x98"), 0},
        {STR("\xe2(\xa1"), 0},
        {STR("\xf0\x9f(\x80"), 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t at = SIZE_MAX;

        assert_int_equal(str_is_utf8(rows[i].text, &at), rows[i].bad_at == SIZE_MAX);
        if (at != rows[i].bad_at)
            fail_msg("row %zu: bad byte at %zu, want %zu", i, at, rows[i].bad_at);
    }
    assert_false(str_is_utf8(STR("\xff"), NULL));
}

static size_t encode(char out[4], uint32_t c)
{
    if (c < 0x80)
        return out[0] = (char)c, 1;
    if (c < 0x800)
        return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)),
               3;
    out[0] = (char)(0xf0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 63));
    return out[2] = (char)(0x80 | (c >> 6 & 63)), out[3] = (char)(0x80 | (c & 63)), 4;
}

static void every_code_point_but_surrogates_is_utf8(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x120000; c++) {
        char bytes[4];
        struct str s = {bytes, encode(bytes, c)};
        bool want = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);

        if (str_is_utf8(s, NULL) != want)
            fail_msg("U+%04X", c);
    }
}

static void ids_have_1_to_64_safe_characters(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {
        {"a", true},
        {"_", true},
        {"0-", true},
        {"sess_01ABCxyz-9", true},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true},   /* 64 */
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false}, /* 65 */
        {"", false},
        {"-a", false},
        {"a b", false},
        {"a/b", false},
        {"..", false},
        {"a\n", false},
        {"caf\xc3\xa9", false},
        {"a:b", false},
        {"a@b", false},
        {"a[b", false},
        {"a`b", false},
        {"a{b", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (str_is_id(str_from(rows[i].text)) != rows[i].ok)
            fail_msg("'%s'", rows[i].text);
    assert_false(str_is_id(STR("a\0b")));
}

static void hex_goes_there_and_back(void **state)
{
    unsigned char bytes[256], back[256];
    char text[513];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    hex_encode(text, bytes, sizeof(bytes));
    assert_memory_equal(text, "000102", 6);
    assert_string_equal(text + 506, "fdfeff");
    assert_true(hex_decode(back, sizeof(back), str_from(text)));
    assert_memory_equal(back, bytes, sizeof(bytes));
}

static void hex_of_another_form_is_refused(void **state)
{
    static const char *const rows[] = {"", "0", "00", "00000", "000000", "00g0", "ABCD", "00 0", "0x00"};
    unsigned char out[2];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (hex_decode(out, sizeof(out), str_from(rows[i])))
            fail_msg("'%s'", rows[i]);
    assert_true(hex_decode(out, 0, STR("")));
}

static void hashes_depend_on_content_alone(void **state)
{
    char here[] = "some key", there[] = "xsome key";

    (void)state;
    assert_true(str_hash(str_from(here)) == str_hash(str_from(there + 1)));
    assert_true(str_hash(STR("a")) != str_hash(STR("b")));
    assert_true(str_hash(STR("a")) != str_hash(STR("a\0")));
    assert_true(str_hash((struct str){NULL, 0}) == str_hash(STR("")));
}

static void starts_and_equality_count_bytes(void **state)
{
    (void)state;
    assert_true(str_eq(STR(""), (struct str){NULL, 0}));
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_starts(STR("abc"), STR("ab")));
    assert_false(str_starts(STR("ab"), STR("abc")));
    assert_int_equal(str_from(NULL).len, 0);
}

static void blanks_are_those_of_c_and_go_from_both_ends(void **state)
{
    static const struct {
        struct str text, trimmed;
    } rows[] = {{STR(""), STR("")},
                {STR(" \t\r\n\f\v"), STR("")},
                {STR(" a b\n"), STR("a b")},
                {STR("\0 "), STR("\0")},
                {STR("\xc2\xa0"), STR("\xc2\xa0")}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(str_eq(str_trim(rows[i].text), rows[i].trimmed));
        assert_int_equal(str_is_blank(rows[i].text), rows[i].trimmed.len == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact_or_refused),
        cmocka_unit_test(a_nul_inside_ends_no_integer),
        cmocka_unit_test(utf8_is_checked_to_the_letter),
        cmocka_unit_test(every_code_point_but_surrogates_is_utf8),
        cmocka_unit_test(ids_have_1_to_64_safe_characters),
        cmocka_unit_test(hex_goes_there_and_back),
        cmocka_unit_test(hex_of_another_form_is_refused),
        cmocka_unit_test(hashes_depend_on_content_alone),
        cmocka_unit_test(starts_and_equality_count_bytes),
        cmocka_unit_test(blanks_are_those_of_c_and_go_from_both_ends),
    };

    return cmocka_run_group_tests_name("base/str", tests, NULL, NULL);
}
