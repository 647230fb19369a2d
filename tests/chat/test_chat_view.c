/* SPDX-License-Identifier: Apache-2.0 */
/* What a chat draws: answers that are asked for again, tools, notes; on a terminal of 80 columns, and without one. */
#include <sys/mman.h>

#include "cli/chat/chat_detail.h"
#include "cli/chat/chat_view.h"
#include "kit.h"

#define E "\033["

struct sheet {
    int out, err;
    struct view *view;
    char text[8192];
};

static void sheet_open(struct sheet *s, bool tty, bool color)
{
    s->out = memfd_create("out", MFD_CLOEXEC);
    s->err = memfd_create("err", MFD_CLOEXEC);
    assert_true(s->out >= 0 && s->err >= 0);
    s->view = view_new(&(struct view_config){.out = s->out, .err = s->err, .tty = tty, .color = color, .dumb = !color});
}

static const char *sheet_text(struct sheet *s, int fd)
{
    ssize_t n = pread(fd, s->text, sizeof(s->text) - 1, 0);

    assert_true(n >= 0);
    s->text[n] = '\0';
    return s->text;
}

static void sheet_close(struct sheet *s)
{
    view_free(s->view);
    close(s->out);
    close(s->err);
}

/* "text|text~text." : pieces; ~ is an attempt that failed, . the end of the answer. */
static void play(struct view *v, const char *script)
{
    for (const char *p = script; *p;) {
        size_t n = strcspn(p, "|~.");

        view_text(v, (struct str){p, n});
        if (p[n] == '~')
            view_text_discard(v);
        if (p[n] == '.')
            view_text_end(v);
        p += n + (p[n] != '\0');
    }
}

#define CUT "\n(interrupted; retrying)\n"
#define OTHER "(the new answer differs)\n"

static void a_text_is_never_shown_twice(void **state)
{
    static const struct {
        const char *name, *script, *want;
    } rows[] = {
        {"no failure", "one |two.", "one two\n"},
        {"failure before any text", "~one.", "one\n"},
        {"same again, and on", "one two~one |two three.", "one two\n" CUT "\n three\n"},
        {"same again in small pieces", "one two~o|n|e| |t|w|o| |x.", "one two\n" CUT "\n x\n"},
        {"same again, nothing more", "one two~one two.", "one two\n" CUT},
        {"cut twice, the second sooner", "one two~on~one two x.", "one two\n" CUT "(interrupted; retrying)\n\n x\n"},
        {"cut twice, the second with nothing", "one two~~one two x.", "one two\n" CUT "\n x\n"},
        {"cut twice, the second later", "one~one two~one two x.", "one\n" CUT "\n two\n" CUT "\n x\n"},
        {"another text", "one two~one 2.", "one two\n" CUT OTHER "\none 2\n"},
        {"another text, piece by piece", "one two~one| |2.", "one two\n" CUT OTHER "\none 2\n"},
        {"a shorter text", "one two~one.", "one two\n" CUT OTHER "\none\n"},
        {"the next answer is its own", "one~one.one.", "one\n" CUT "\none\n"},
        {"given up", "one~.", "one\n" CUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sheet s;

        sheet_open(&s, true, false);
        play(s.view, rows[i].script);
        if (strcmp(sheet_text(&s, s.out), rows[i].want) != 0)
            fail_msg("%s:\n%s\nwant\n%s", rows[i].name, s.text, rows[i].want);
        sheet_close(&s);
    }
}

static void a_code_block_goes_on_where_it_was_cut(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, true, true);
    play(s.view, "```\na\nb~```\na\nb\nc\n```\nd.");
    assert_string_equal(sheet_text(&s, s.out), "  " E "36ma" E "0m\n  " E "36mb" E "0m\n\n" E
                                               "2m(interrupted; retrying)" E "0m\n\n\n  " E "36mc" E "0m\nd\n");
    sheet_close(&s);
}

static void a_note_below_a_blank_line_adds_none(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, true, true);
    play(s.view, "a\n\n- o~a\n\n- one.");
    assert_string_equal(sheet_text(&s, s.out), "a\n\n" E "2m(interrupted; retrying)" E "0m\n\n• one\n");
    sheet_close(&s);
}

static void without_a_terminal_only_answers_go_to_standard_output(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, false, false);
    view_user(s.view, STR("hello"));
    play(s.view, "**a** \033[1m\n.");
    view_tool_end(s.view, "bash ls", VIEW_DONE, 5, STR("x\ny\n"));
    view_retry(s.view, "attempt 2 of 4 in 1.0 s: rate limited");
    view_error(s.view, "no\033[31m");
    assert_string_equal(sheet_text(&s, s.out), "**a** \033[1m\n");
    assert_string_equal(sheet_text(&s, s.err), "› hello\n✓ bash ls  5 ms\n  └ x (+1 line)\n"
                                               "↻ attempt 2 of 4 in 1.0 s: rate limited\nerror: no␛[31m\n");
    sheet_close(&s);
}

static void tools_take_two_lines_at_most(void **state)
{
    static const struct {
        enum view_outcome outcome;
        int64_t ms;
        const char *summary, *result, *want;
    } rows[] = {
        {VIEW_DONE, 5, "bash ls", "", "✓ bash ls  5 ms\n"},
        {VIEW_DONE, 1200, "bash ls", "a\nb\nc", "✓ bash ls  1.2 s\n  └ a (+2 lines)\n"},
        {VIEW_FAILED, 5, "edit a.c", "\n\nno such file\n", "✗ edit a.c  failed  5 ms\n  └ no such file\n"},
        {VIEW_REFUSED, -1, "bash rm", "", "⊘ bash rm  refused\n"},
        {VIEW_STOPPED, 1500, "bash x", "", "■ bash x  stopped  1.5 s\n"},
        {VIEW_UNKNOWN, -1, "bash x\ny\033[2J", "\033[H\r\n", "? bash x y␛[2J  outcome unknown\n  └ ␛[H\n"},
        {VIEW_DONE, 5, "bash 67890123456789012345678901234567890123456789012345678901234567890123456789012345",
         "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語\nx",
         "✓ bash 678901234567890123456789012345678901234567890123456789012345678901…  5 ms\n"
         "  └ 日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本… (+1 line)\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sheet s;

        sheet_open(&s, true, false);
        view_tool_start(s.view, rows[i].summary);
        view_tick(s.view);
        view_tool_end(s.view, rows[i].summary, rows[i].outcome, rows[i].ms, str_from(rows[i].result));
        assert_string_equal(sheet_text(&s, s.out), rows[i].want);
        sheet_close(&s);
    }
}

static void parts_stand_apart_and_like_parts_together(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, true, false);
    view_user(s.view, STR("do it\nnow"));
    play(s.view, "\n\nYes\n\n.");
    view_tool_end(s.view, "read a", VIEW_DONE, 1, STR(""));
    view_tool_end(s.view, "read b", VIEW_DONE, 1, STR(""));
    view_approval(s.view, "allow bash?", STR("git push\n\nx"));
    view_usage(s.view, &(struct view_usage){1234567, 1000, 42, 0.5, 50, 200, -1});
    assert_string_equal(sheet_text(&s, s.out),
                        "› do it\n  now\n\n\n\nYes\n\n\n✓ read a  1 ms\n✓ read b  1 ms\n\n? allow bash?\n"
                        "  git push\n\n  x\n1,234,567 in (1,000 cached) · 42 out · $0.50 · "
                        "context 25 %\n");
    sheet_close(&s);
}

static void colours_end_with_their_line(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, true, true);
    view_error(s.view, "it is not");
    play(s.view, "\n\n**Yes**\n\n\n.");
    view_notice(s.view, "n");
    assert_string_equal(sheet_text(&s, s.out),
                        E "31merror: it is not" E "0m\n\n" E "1mYes" E "0m\n\n" E "2mn" E "0m\n");
    sheet_close(&s);
}

/* ---- what is asked about ---- */

#define LOST "\xef\xbf\xbd"

static void a_call_is_shown_as_people_read_it(void **state)
{
    static const struct {
        const char *name, *tool, *args, *want;
    } rows[] = {
        {"a command", "bash", "{\"command\":\"ls\"}", "$ ls\n"},
        {"of many lines", "bash", "{\"command\":\"a\\n\\n  b\",\"timeout_ms\":5}", "$ a\n> \n>   b\ntimeout_ms: 5\n"},
        {"a file", "write", "{\"content\":\"x\\n y\\n\",\"path\":\"a b\"}", "path: a b\n+ x\n+  y\n"},
        {"an empty file", "write", "{\"path\":\"a\",\"content\":\"\"}", "path: a\ncontent: \"\"\n"},
        {"a change", "edit", "{\"path\":\"a\",\"old\":\"x\",\"new\":\"y\\nz\",\"replace_all\":true}",
         "path: a\n- x\n+ y\n+ z\nreplace_all: true\n"},
        {"another tool", "mail", "{\"to\":\"a@b\",\"text\":\"1\\n2\",\"n\":[1, 2]}",
         "to: a@b\ntext: 1\n| 2\nn: [1, 2]\n"},
        {"a member twice", "bash", "{\"command\":\"a\",\"command\":\"b\"}", "{\"command\":\"a\",\"command\":\"b\"}\n"},
        {"a path of two lines", "write", "{\"path\":\"a\\n+ b\",\"content\":\"c\"}", "path: a\n| + b\n+ c\n"},
        {"what a terminal would act upon", "bash", "{\"command\":\"\\u001b[2Jls\\rrm\\t\\u0000\"}", "$ ␛[2Jls␍rm␉␀\n"},
        {"what is not seen", "bash", "{\"command\":\"l\\u200bs\\u202e\\u200d\"}", "$ l" LOST "s" LOST LOST "\n"},
        {"in a name", "x", "{\"a\\u001b\\nb\":1}", "a␛␊b: 1\n"},
        {"no object", "bash", "[\"ls\"]", "[\"ls\"]\n"},
        {"no JSON", "bash", "ls\033", "ls␛\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(buf_done) struct buf out = BUF_INIT(1 << 16);

        chat_detail(&out, rows[i].tool, rows[i].args, STR(""));
        if (strcmp(buf_cstr(&out), rows[i].want) != 0)
            fail_msg("%s:\n%s\nwant\n%s", rows[i].name, buf_cstr(&out), rows[i].want);
    }
}

static void the_diff_stands_for_the_texts_of_an_edit(void **state)
{
    AUTO(buf_done) struct buf out = BUF_INIT(1 << 16);

    (void)state;
    chat_detail(&out, "edit", "{\"path\":\"a\",\"old\":\"x\",\"new\":\"y\",\"replace_all\":true}",
                STR("@@ -1,2 +1,2 @@\n a\033\n-x\n+y\n"));
    assert_string_equal(buf_cstr(&out), "path: a\n@@ -1,2 +1,2 @@\n a␛\n-x\n+y\nreplace_all: true\n");
}

static void nothing_of_it_is_cut_off(void **state)
{
    AUTO(buf_done) struct buf detail = BUF_INIT(1 << 20);
    struct sheet s;

    (void)state;
    sheet_open(&s, true, false);
    buf_add_str(&detail, STR("$ x"));
    for (int i = 0; i < 80; i++)
        buf_add_char(&detail, ' ');
    buf_add_str(&detail, STR("end\n"));
    for (int i = 0; i < 100; i++)
        buf_addf(&detail, "> %d\n", i);
    view_approval(s.view, "allow bash?", buf_view(&detail));
    sheet_text(&s, s.out);
    assert_non_null(strstr(s.text, "  $ x   "));
    assert_non_null(strstr(s.text, "\n         end\n"));
    assert_non_null(strstr(s.text, "\n  > 0\n"));
    assert_non_null(strstr(s.text, "\n  > 99\n"));
    sheet_close(&s);
}

static void an_item_keeps_its_text_in_its_column(void **state)
{
    struct sheet s;

    (void)state;
    sheet_open(&s, true, false);
    view_item(s.view, "bash   ask    ",
              "a text that is longer than what stands in one line of such a window as this is");
    view_item(s.view, "a head that takes nearly all of the line, so that there is no room  ", "below");
    assert_string_equal(sheet_text(&s, s.out),
                        "bash   ask    a text that is longer than what stands in one line of such a\n"
                        "              window as this is\n"
                        "a head that takes nearly all of the line, so that there is no room\n    below\n");
    sheet_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_never_shown_twice),
        cmocka_unit_test(a_code_block_goes_on_where_it_was_cut),
        cmocka_unit_test(a_note_below_a_blank_line_adds_none),
        cmocka_unit_test(without_a_terminal_only_answers_go_to_standard_output),
        cmocka_unit_test(tools_take_two_lines_at_most),
        cmocka_unit_test(parts_stand_apart_and_like_parts_together),
        cmocka_unit_test(colours_end_with_their_line),
        cmocka_unit_test(a_call_is_shown_as_people_read_it),
        cmocka_unit_test(the_diff_stands_for_the_texts_of_an_edit),
        cmocka_unit_test(nothing_of_it_is_cut_off),
        cmocka_unit_test(an_item_keeps_its_text_in_its_column),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
