/* SPDX-License-Identifier: Apache-2.0 */
/* Where characters begin and end, and how wide they are. */
#include "kit.h"

#include "base/utf8.h"

static void a_cut_is_never_inside_a_character(void **state)
{
    static const struct {
        const char *text;
        size_t max;
        const char *bytes, *chars; /* the first max bytes, the first max characters */
    } rows[] = {
        {"", 3, "", ""},      {"abc", 0, "", ""},   {"abc", 2, "ab", "ab"}, {"abc", 3, "abc", "abc"},
        {"aé", 2, "a", "aé"}, {"éé", 3, "é", "éé"}, {"€x", 1, "", "€"},     {"€x", 3, "€", "€x"},
        {"🌊🌊", 7, "🌊", "🌊🌊"}, {"🌊🌊", 1, "", "🌊"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct str s = str_from(rows[i].text);

        assert_true(str_eq(utf8_clip(s, rows[i].max), str_from(rows[i].bytes)));
        assert_true(str_eq(utf8_first(s, rows[i].max), str_from(rows[i].chars)));
    }
    assert_int_equal(utf8_chars(STR("aé€🌊")), 4);
}

static void what_is_written_is_read_again(void **state)
{
    static const uint32_t codes[] = {0, 0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000, 0x10ffff};
    uint32_t c = 1;
    char bytes[4];

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        size_t n = utf8_put(bytes, codes[i]);

        assert_int_equal(utf8_next((struct str){bytes, n}, &c), n);
        assert_int_equal(c, codes[i]);
        assert_int_equal(utf8_next((struct str){bytes, n - 1}, &c), 0);
    }
    assert_int_equal(utf8_next(STR("\xc0\x80"), &c), 0);     /* longer than it must be */
    assert_int_equal(utf8_next(STR("\xed\xa0\x80"), &c), 0); /* half a pair */
}

static void widths_are_those_of_a_terminal(void **state)
{
    static const struct {
        uint32_t c;
        int width;
    } rows[] = {{'a', 1},    {0xe9, 1},    {0x301, 0},   {0x200d, 0}, {0x4e2d, 2},
                {0x2705, 2}, {0x1f30a, 2}, {0x1f5a5, 1}, {0x94d, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(utf8_width(rows[i].c), rows[i].width);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_is_never_inside_a_character),
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(widths_are_those_of_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
