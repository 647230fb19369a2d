/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is drawn: every column has one owner, nothing acts on a terminal, and where there is no UTF-8 everything is ASCII. */
#include "tui_kit.h"

#include "seeded.h"
#include "terminal/glyph.h"

static void line_is(const struct canvas *c, int row, const char *want)
{
    struct buf out = BUF_INIT(65536);

    canvas_line(c, row, &out);
    assert_string_equal(buf_cstr(&out), want);
    buf_done(&out);
}

static void a_text_is_cut_with_a_mark(void **state)
{
    static const struct {
        const char *text, *want;
        int columns;
        bool ascii;
    } rows[] = {
        {"tides", "tides", 5, false},
        {"tides!", "tide…", 5, false},
        {"tides!", "tide~", 5, true},
        {"潮汐表", "潮汐表", 6, false},
        {"潮汐表", "潮汐…", 5, false},
        {"潮汐表", "潮…", 4, false},
        {"潮汐", "????", 4, true},
        {"é", "é", 1, false},
        {"é", "?", 1, true},
        {"a\nb\tc", "a b c", 9, false},
        {"", "", 5, false},
        {"abc", "…", 1, false},
        {"e\xcc\x81t\xc3\xa9", "e\xcc\x81t\xc3\xa9", 3, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct canvas c = {.ascii = rows[i].ascii};

        canvas_size(&c, 1, 20);
        canvas_text(&c, 0, 0, rows[i].columns, rows[i].text, INK_PLAIN);
        line_is(&c, 0, rows[i].want);
        canvas_done(&c);
    }
}

static void half_a_wide_character_is_never_left(void **state)
{
    struct canvas c = {.rows = 0};

    (void)state;
    canvas_size(&c, 1, 8);
    canvas_text(&c, 0, 0, 8, "潮汐潮汐", INK_PLAIN);
    canvas_text(&c, 0, 1, 1, "x", INK_PLAIN);
    line_is(&c, 0, " x汐潮汐");
    canvas_text(&c, 0, 2, 1, "y", INK_PLAIN);
    line_is(&c, 0, " xy 潮汐");
    canvas_text(&c, 0, 5, 2, "汐", INK_PLAIN);
    line_is(&c, 0, " xy  汐");
    canvas_done(&c);
}

static void what_would_act_on_a_terminal_is_shown_as_a_mark(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"\033[31mred\033[0m", "␛[31mred␛[0m"},
        {"\033]52;c;aGk=\a", "␛]52;c;aGk=␇"},
        {"a\u202egnp.exe", "a\ufffdgnp.exe"}, /* the rest would be read from right to left */
        {"x\u200by", "xy"},
        {"\x7f\x01", "␡␁"},
        {"\xff\xfe", "\ufffd\ufffd"},
        {"\xc2\x9b"
         "31m",
         "\ufffd31m"}, /* an escape sequence of one character */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct canvas c = {.rows = 0};

        canvas_size(&c, 1, 40);
        canvas_text(&c, 0, 0, 40, rows[i].text, INK_PLAIN);
        line_is(&c, 0, rows[i].want);
        canvas_done(&c);
    }
}

/* Each column belongs to one character, and no byte of any is a control. */
static void check_cells(const struct canvas *c)
{
    for (int row = 0; row < c->rows; row++)
        for (int col = 0; col < c->cols; col++) {
            const struct cell *cell = &c->cells[row * c->cols + col];
            struct str text = {cell->text, cell->len};

            if (!cell->len) { /* the second half: the one before is wide */
                struct glyph g;

                assert_true(col > 0);
                g = glyph_next((struct str){cell[-1].text, cell[-1].len}, true);
                assert_int_equal(g.width, 2);
                continue;
            }
            for (size_t i = 0; i < text.len; i++) {
                unsigned char byte = (unsigned char)text.ptr[i];

                assert_true(byte >= ' ' && byte != 0x7f);
                assert_true(!c->ascii || byte < 0x80);
            }
            assert_true(str_is_utf8(text, NULL));
            if (glyph_next(text, true).width == 2)
                assert_true(col + 1 < c->cols && !cell[1].len);
        }
}

static void whatever_is_drawn_wherever_the_cells_are_whole(void **state)
{
    static const char *const pieces[] = {"a", "潮",     "\033[2J", "\u202e", "e\xcc\x81", "\xff", "\n",
                                         "🌊", "\u200d", "│",       "\t",     "é",         "x y"};
    uint64_t seed = 4711;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct canvas c = {.ascii = round % 3 == 0};
        char text[256] = "";

        canvas_size(&c, 1 + (int)(seeded_next(&seed) % 4), 1 + (int)(seeded_next(&seed) % 30));
        for (int i = 0; i < 12; i++) {
            text[0] = '\0';
            for (int n = (int)(seeded_next(&seed) % 8); n > 0; n--)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                         pieces[seeded_next(&seed) % (sizeof pieces / sizeof pieces[0])]);
            canvas_text(&c, (int)(seeded_next(&seed) % 5) - 1, (int)(seeded_next(&seed) % 40) - 5,
                        (int)(seeded_next(&seed) % 40), text, INK_PLAIN);
            if (i % 4 == 3)
                canvas_blank(&c, 0, (int)(seeded_next(&seed) % 20), 2, 3);
        }
        check_cells(&c);
        canvas_done(&c);
    }
}

static void a_line_of_ten_mebibytes_is_drawn_at_once(void **state)
{
    struct canvas c = {.rows = 0};
    size_t len = (size_t)10 << 20;
    char *text = mem_alloc(len + 1);

    (void)state;
    memset(text, 'x', len);
    text[len] = '\0';
    canvas_size(&c, 2, 80);
    assert_int_equal(canvas_put(&c, 0, 0, 80, (struct str){text, len}, INK_PLAIN), 80);
    free(text);
    canvas_done(&c);
}

static void lines_are_broken_at_words_and_counted_where_they_are_too_many(void **state)
{
    struct lines l = {.n = 0};

    (void)state;
    lines_add(&l, STR("the tide comes in\nand goes"), 10, 0, &(struct line){.indent = 2, .seq = 7});
    assert_int_equal(l.n, 3);
    assert_true(str_eq(l.at[0].text, STR("the tide")));
    assert_true(str_eq(l.at[1].text, STR("comes in")));
    assert_true(str_eq(l.at[2].text, STR("and goes")));
    assert_int_equal(l.at[2].seq, 7);
    lines_clear(&l);
    lines_add(&l, STR("abcdefghij"), 4, 0, &(struct line){.indent = 0});
    assert_int_equal(l.n, 3);
    lines_clear(&l);
    lines_add(&l, STR("a\nb\nc\nd"), 4, 2, &(struct line){.indent = 0});
    assert_int_equal(l.n, 3);
    assert_true(str_starts(l.at[2].text, STR("… 3 more bytes")));
    lines_clear(&l);
    lines_add(&l, STR("潮汐"), 1, 0, &(struct line){.indent = 0}); /* wider than the whole line: it is still there */
    assert_int_equal(l.n, 2);
    lines_done(&l);
}

static void the_chosen_line_is_in_the_window(void **state)
{
    struct scroll s = {.n = 0};
    uint64_t seed = 4712;
    static const enum key_what keys[] = {KEY_IS_UP,   KEY_IS_DOWN, KEY_IS_PAGE_UP,  KEY_IS_PAGE_DOWN,
                                         KEY_IS_HOME, KEY_IS_END,  KEY_IS_WHEEL_UP, KEY_IS_WHEEL_DOWN};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        if (seeded_next(&seed) % 5 == 0)
            scroll_fit(&s, (int)(seeded_next(&seed) % 40), (int)(seeded_next(&seed) % 12));
        else
            scroll_key(&s, &(struct key){.what = keys[seeded_next(&seed) % 8]});
        if (s.height && s.n) {
            assert_true(s.at >= 0 && s.at < s.n);
            assert_true(s.at >= s.top && s.at < s.top + s.height);
            assert_true(s.top == 0 || s.top + s.height <= s.n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_cut_with_a_mark),
        cmocka_unit_test(half_a_wide_character_is_never_left),
        cmocka_unit_test(what_would_act_on_a_terminal_is_shown_as_a_mark),
        cmocka_unit_test(whatever_is_drawn_wherever_the_cells_are_whole),
        cmocka_unit_test(a_line_of_ten_mebibytes_is_drawn_at_once),
        cmocka_unit_test(lines_are_broken_at_words_and_counted_where_they_are_too_many),
        cmocka_unit_test(the_chosen_line_is_in_the_window),
    };

    return cmocka_run_group_tests_name("tui canvas", tests, NULL, NULL);
}
