/* SPDX-License-Identifier: Apache-2.0 */
/* Markdown on a terminal: what it looks like, that pieces do not matter, and that nothing bad gets through. */
#include <ctype.h>

#include "terminal/markdown.h"
#include "kit.h"

#define E "\033["

static void draw(enum markdown_mode mode, int columns, struct str text, size_t piece, struct buf *out)
{
    struct markdown *md = markdown_new(mode, columns);

    while (text.len > 0) {
        size_t n = text.len < piece ? text.len : piece;
        char *copy = mem_dup((struct str){text.ptr, n}); /* so that a look behind the piece is seen */

        markdown_add(md, (struct str){copy, n}, out);
        free(copy);
        text = (struct str){text.ptr + n, text.len - n};
    }
    markdown_end(md, out);
    markdown_free(md);
}

struct row {
    const char *name, *text, *want;
};

static void check_rows(const struct row *rows, size_t n, enum markdown_mode mode, int columns)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t piece = 1; piece < 40; piece += piece < 4 ? 1 : 12) {
            AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);

            draw(mode, columns, str_from(rows[i].text), piece, &out);
            if (strcmp(buf_cstr(&out), rows[i].want) != 0)
                fail_msg("%s, in pieces of %zu:\n%s\nwant\n%s", rows[i].name, piece, buf_cstr(&out), rows[i].want);
        }
    }
}
#define ROWS(rows, mode, columns) check_rows(rows, sizeof(rows) / sizeof((rows)[0]), mode, columns)

static void marks_become_styles(void **state)
{
    static const struct row rows[] = {
        {"bold", "a **b c** d", "a " E "1mb c" E "0m d\n"},
        {"italic", "*x*, _y_", E "3mx" E "0m, " E "3my" E "0m\n"},
        {"both", "***x***", E "1m" E "3mx" E "0m\n"},
        {"italic in bold", "**a *b***", E "1ma " E "0m" E "1m" E "3mb" E "0m\n"},
        {"strike", "~~x~~", E "9mx" E "0m\n"},
        {"code", "`a*b*`", E "36ma*b*" E "0m\n"},
        {"code with a backquote", "`` a`b ``", E "36ma`b" E "0m\n"},
        {"mark in code closes nothing", "**a `**` b**", E "1ma " E "0m" E "1m" E "36m**" E "0m" E "1m b" E "0m\n"},
        {"link", "[t](http://u)", E "4mt" E "0m " E "2m(http://u)" E "0m\n"},
        {"link with a title", "[t](u \"x\")", E "4mt" E "0m " E "2m(u)" E "0m\n"},
        {"link that is its text", "[http://u](http://u)", E "4mhttp://u" E "0m\n"},
        {"heading", "## H *i*", E "1mH " E "0m" E "1m" E "3mi" E "0m\n"},
        {"escape", "\\*x\\*", "*x*\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 80);
}

static void text_that_only_looks_like_marks_stays(void **state)
{
    static const struct row rows[] = {
        {"arguments", "*args and **kwargs", "*args and **kwargs\n"},
        {"product", "2 * 3 * 4 and 2*3*4", "2 * 3 * 4 and 2*3*4\n"},
        {"globs", "*.c and *.h", "*.c and *.h\n"},
        {"snake", "a_b_c __init__ _x", "a_b_c __init__ _x\n"},
        {"open code", "a ` b", "a ` b\n"},
        {"open bold", "a **b\nc", "a **b\nc\n"},
        {"brackets", "a[1](x [2, 3] [", "a[1](x [2, 3] [\n"},
        {"hash", "#tag\n#", "#tag\n#\n"},
        {"backslash", "C:\\dir \\", "C:\\dir \\\n"},
        {"number", "3.14 is\n2024", "3.14 is\n2024\n"},
        {"code closed by none, bold behind", "**a ` b** c", E "1ma ` b" E "0m c\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 80);
}

static void blocks_are_laid_out(void **state)
{
    static const struct row rows[] = {
        {"list", "- a\n  * b\n1. c\n", "• a\n  • b\n1. c\n"},
        {"list wraps under its text", "- aaaa bbbb cccc dddd eeee", "• aaaa bbbb cccc\n  dddd eeee\n"},
        {"quote wraps behind its bar", "> aaaa bbbb cccc dddd e",
         E "2m│ " E "0maaaa bbbb cccc\n" E "2m│ " E "0mdddd e\n"},
        {"code is not wrapped", "```sh\na b c d e f g h i j k l m n\n\n\tx **y**\n```\nz",
         "  " E "2m── sh" E "0m\n  " E "36ma b c d e f g h i j k l m n" E "0m\n\n  " E "36m    x **y**" E "0m\nz\n"},
        {"shorter fence ends nothing", "````\n```\n````\nz", "  " E "36m```" E "0m\nz\n"},
        {"code that never ends", "~~~\nx", "  " E "36mx" E "0m\n"},
        {"code in a list", "- a\n  ```\n  x\n  ```\n", "• a\n    " E "36mx" E "0m\n"},
        {"no table: no dashes", "| a | **b** |\n| c | d |\n", "| a | **b** |\n| c | d |\n"},
        {"no table: too wide", "|aaaaaaaaa|bbbbbbbbb|\n|-|-|\n", "|aaaaaaaaa|bbbbbbbbb|\n|-|-|\n"},
        {"rule", "a\n---\nb", "a\n" E "2m──────────────────" E "0m\nb\n"},
        {"blank lines", "a\n\nb\n", "a\n\nb\n"},
        {"carriage returns", "a\r\nb\r\n", "a\nb\n"},
        {"nothing", "", ""},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 18);
}

#define BAR_LAST " " E "2m│" E "0m"
#define BAR BAR_LAST " "
#define BOLD(text) E "1m" text E "0m"

static void tables_have_columns(void **state)
{
    static const struct row rows[] = {
        {"aligned", "| a | **bb** | c |\n|---|--:|:-:|\n| long | 1 | x |\n|2|3|yyy|\nz",
         BOLD("a") "   " BAR BOLD("bb") BAR " " BOLD("c") "\n" E "2m─────┼────┼────" E "0m\n"
                                                          "long" BAR " 1" BAR " x\n2   " BAR " 3" BAR "yyy\nz\n"},
        {"wrapped where there is no room", "a\n\n| k | v |\n|-|-|\n| x | one two three four |",
         "a\n\n" BOLD("k") BAR BOLD("v") "\n" E "2m──┼─────────────────" E "0m\nx" BAR "one two three\n " BAR "four\n"},
        {"marks in cells", "|a|b|\n|-|-|\n|`x`|p\\|q|",
         BOLD("a") BAR BOLD("b") "\n" E "2m──┼────" E "0m\n" E "36mx" E "0m" BAR "p|q\n"},
        {"a row with fewer cells, and with more", "|a|\n|-|\n|b|c|\n|d|\n",
         BOLD("a") BAR_LAST "\n" E "2m──┼──" E "0m\nb" BAR "c\nd" BAR_LAST "\n"},
        {"only a head", "|a|\n|---|", BOLD("a") "\n" E "2m─" E "0m\n"},
        {"controls", "|a|\n|-|\n|\033[2J|\n", BOLD("a") "\n" E "2m────" E "0m\n␛[2J\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 20);
}

/* Held back it would be never seen: too long for that, it is drawn as it comes. */
static void a_table_without_end_is_shown(void **state)
{
    struct markdown *md = markdown_new(MARKDOWN_STYLED, 80);
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 20);

    (void)state;
    markdown_add(md, STR("|a|\n|-|\n"), &out);
    assert_int_equal(out.len, 0);
    for (int i = 0; i < 20000 && out.len == 0; i++)
        markdown_add(md, STR("|row|\n"), &out);
    assert_true(out.len > 0);
    assert_memory_equal(out.ptr, "|a|\n|-|\n|row|\n", 14);
    markdown_free(md);
}

static void words_are_wrapped_by_columns(void **state)
{
    static const struct row rows[] = {
        {"words", "aaa bbb ccc ddd", "aaa bbb\nccc ddd\n"},
        {"exactly full", "aaaa bbbbb c", "aaaa bbbbb\nc\n"},
        {"a long word", "abcdefghijklmno p", "abcdefghij\nklmno p\n"},
        {"wide", "日本語日本語日本", "日本語日本\n語日本\n"},
        {"wide signs", "✅✅✅✅✅✅", "✅✅✅✅✅\n✅\n"},
        {"marks of no width", "e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301 a b",
         "e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301 a\nb\n"},
        {"blanks at the end", "aaa   \nb", "aaa\nb\n"},
        {"style over a line end", "**aaaa bbbb cccc**", E "1maaaa bbbb" E "0m\n" E "1mcccc" E "0m\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 10);
}

static void controls_never_reach_the_terminal(void **state)
{
    static const struct row rows[] = {
        {"escape", "a\033[31mb\033]52;c;x\ab", "a␛[31mb␛]52;c;x␇b\n"},
        {"in code", "```\n\033[2J\n```", "  " E "36m␛[2J" E "0m\n"},
        {"in a table", "|\033[2J|", "|␛[2J|\n"},
        {"C1",
         "a\xc2\x9b"
         "31m",
         "a\xef\xbf\xbd"
         "31m\n"},
        {"raw C1 byte",
         "a\x9b"
         "31m",
         "a\xef\xbf\xbd"
         "31m\n"},
        {"direction", "a\u202eb\u2066c",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"
         "c\n"},
        {"hidden tags", "a\U000e0041b",
         "a\xef\xbf\xbd"
         "b\n"},
        {"overwriting", "good\rbad", "goodbad\n"},
        {"no character", "a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd\n"},
        {"cut character before a line end", "a\xe2\x82\nb", "a\xef\xbf\xbd\xef\xbf\xbd\nb\n"},
        {"cut character in bold", "**a\xe2**", E "1ma\xef\xbf\xbd" E "0m\n"},
        {"in an address", "[a](b\033c)", E "4ma" E "0m " E "2m(b␛c)" E "0m\n"},
    };
    static const struct row plain[] = {
        {"escape", "**a**\033[31m\n\tb\n", "**a**␛[31m\n\tb\n"},
        {"no end", "a", "a\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_STYLED, 80);
    ROWS(plain, MARKDOWN_PLAIN, 80);
}

static void without_colours_the_layout_stays(void **state)
{
    static const struct row rows[] = {
        {"heading", "## H\n", E "1mH" E "0m\n"},
        {"code has no colour", "a `b` c", "a " E "1mb" E "0m c\n"},
        {"list", "- **x**", "• " E "1mx" E "0m\n"},
        {"table", "| a | `b` |\n|---|---|\n| 1 | `2` |\n",
         E "1ma" E "0m " E "2m│" E "0m " E "1m" E "1mb" E "0m\n" E "2m──┼──" E "0m\n1 " E "2m│" E "0m " E "1m2" E
           "0m\n"},
        {"wrapped", "aaa bbb ccc", "aaa bbb\nccc\n"},
    };

    (void)state;
    ROWS(rows, MARKDOWN_MONOCHROME, 10);
}

static void without_a_terminal_bytes_pass_unchanged(void **state)
{
    static const struct row rows[] = {{"all", "# a\n**b** \033[1m\xff\r\n", "# a\n**b** \033[1m\xff\r\n"}};

    (void)state;
    ROWS(rows, MARKDOWN_RAW, 10);
}

static void a_word_is_drawn_as_soon_as_it_is_whole(void **state)
{
    struct markdown *md = markdown_new(MARKDOWN_STYLED, 80);
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    (void)state;
    markdown_add(md, STR("Hello wor"), &out);
    assert_string_equal(buf_cstr(&out), "Hello");
    markdown_add(md, STR("ld **a"), &out);
    assert_string_equal(buf_cstr(&out), "Hello world");
    markdown_break(md, &out);
    buf_add_str(&out, STR("(note)\n"));
    markdown_add(md, STR(" b** c "), &out);
    assert_string_equal(buf_cstr(&out), "Hello world\n(note)\n" E "1ma b" E "0m c");
    assert_true(markdown_in_line(md));
    markdown_end(md, &out);
    assert_false(markdown_in_line(md));
    markdown_free(md);
}

/* ---- any split gives the same ---- */

static void make_text(struct rng *rng, struct buf *text)
{
    static const char *const bits[] = {
        "*",
        "**",
        "***",
        "`",
        "``",
        "```",
        "```c\n",
        "\n",
        "\n\n",
        "_",
        "~~",
        "[",
        "](",
        ")",
        "](u) ",
        "- ",
        "1. ",
        "> ",
        "# ",
        "|",
        "---",
        "\\",
        "  ",
        "    ",
        "word",
        "a b",
        "日本",
        "é",
        "\t",
        "\r",
        "12",
        ".",
        "\033[1m",
        "\xff",
        "\xe2\x82",
        "\xf0\x9f",
        "✅",
        "(x) ",
        "~~~\n",
        "+ ",
        "!",
        "#",
        "very long words here ",
        "\n|a|\n|-|\n|",
        "|--|:-:|\n",
        "| word |\n",
    };
    int64_t n = rng_between(rng, 1, rng_below(rng, 8) == 0 ? 900 : 40);

    for (int64_t i = 0; i < n; i++)
        buf_add_str(text, str_from(bits[rng_below(rng, (int64_t)(sizeof(bits) / sizeof(bits[0])))]));
}

static void add_in_pieces(struct rng *rng, struct markdown *md, struct str s, struct buf *out)
{
    while (s.len > 0) {
        size_t n = (size_t)rng_between(rng, 1, rng_below(rng, 3) ? 4 : 200);

        n = n < s.len ? n : s.len;
        markdown_add(md, (struct str){s.ptr, n}, out);
        s = (struct str){s.ptr + n, s.len - n};
    }
    markdown_end(md, out);
}

/* Escapes that are not ours, or an ESC that is no escape of ours at all. */
static bool has_foreign_escape(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c == 033) {
            size_t n = 2;

            while (i + n < s.len && isdigit((unsigned char)s.ptr[i + n]))
                n++;
            if (i + n >= s.len || s.ptr[i + 1] != '[' || s.ptr[i + n] != 'm' || n == 2)
                return true;
        } else if ((c < 0x20 && c != '\n') || c == 0x7f) {
            return true;
        }
    }
    return !str_is_utf8(s, NULL);
}

static void any_split_of_a_text_gives_the_same_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (SLOW_BUILD ? 1500 : 6000); seed++) {
        struct rng rng = {seed};
        AUTO(buf_done) struct buf text = BUF_INIT(1 << 20), whole = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
        int columns = (int)rng_between(&rng, 1, 100);
        enum markdown_mode mode = rng_below(&rng, 5) ? MARKDOWN_STYLED : MARKDOWN_PLAIN;
        struct markdown *md = markdown_new(mode, columns);

        make_text(&rng, &text);
        markdown_add(md, buf_view(&text), &whole);
        markdown_end(md, &whole);
        add_in_pieces(&rng, md, buf_view(&text), &cut);
        markdown_free(md);
        if (!str_eq(buf_view(&whole), buf_view(&cut)))
            fail_msg("seed %d:\n%s\nwhole:\n%s\nin pieces:\n%s", (int)seed, buf_cstr(&text), buf_cstr(&whole),
                     buf_cstr(&cut));
        if (mode == MARKDOWN_STYLED && has_foreign_escape(buf_view(&whole)))
            fail_msg("seed %d: a control got through", (int)seed);
    }
}

/* Marks go, styles and layout are added; text stays. */
static void letters_are_never_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (SLOW_BUILD ? 500 : 2000); seed++) {
        struct rng rng = {seed};
        AUTO(buf_done) struct buf text = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
        size_t in_text = 0, in_out = 0;

        make_text(&rng, &text);
        for (size_t i = 0; i + 1 < text.len; i++) /* a link may well leave something out: its title */
            text.ptr[i] = memcmp(text.ptr + i, "](", 2) == 0 ? '.' : text.ptr[i];
        draw(MARKDOWN_STYLED, 30, buf_view(&text), 7, &out);
        for (size_t i = 0; i + 3 < text.len; i++)
            in_text += memcmp(text.ptr + i, "word", 4) == 0;
        for (size_t i = 0; i < out.len; i++)
            in_out += out.ptr[i] == 'w';
        if (in_out < in_text)
            fail_msg("seed %d: %zu words became %zu", (int)seed, in_text, in_out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_become_styles),
        cmocka_unit_test(text_that_only_looks_like_marks_stays),
        cmocka_unit_test(blocks_are_laid_out),
        cmocka_unit_test(tables_have_columns),
        cmocka_unit_test(a_table_without_end_is_shown),
        cmocka_unit_test(words_are_wrapped_by_columns),
        cmocka_unit_test(controls_never_reach_the_terminal),
        cmocka_unit_test(without_colours_the_layout_stays),
        cmocka_unit_test(without_a_terminal_bytes_pass_unchanged),
        cmocka_unit_test(a_word_is_drawn_as_soon_as_it_is_whole),
        cmocka_unit_test(any_split_of_a_text_gives_the_same_bytes),
        cmocka_unit_test(letters_are_never_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
