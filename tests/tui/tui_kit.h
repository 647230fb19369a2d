/* SPDX-License-Identifier: Apache-2.0 */
/* Screens without a terminal: answers from JSON, keys from text, what is drawn as text. */
#ifndef TESTS_TUI_KIT_H
#define TESTS_TUI_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tui/app.h"

#define UNUSED __attribute__((unused))
#define NOW_MS INT64_C(1795116600000) /* 2026-11-19T19:30:00Z */

/* The screen as text, a line each. */
UNUSED static char *screen_text(const struct canvas *c)
{
    struct buf out = BUF_INIT((size_t)16 << 20);

    for (int row = 0; row < c->rows; row++) {
        canvas_line(c, row, &out);
        buf_add_char(&out, '\n');
    }
    return buf_take(&out);
}

UNUSED static void expect_shows(const struct canvas *c, const char *text, bool want, const char *file, int line)
{
    char *all = screen_text(c);
    bool is = strstr(all, text) != NULL;

    if (is != want)
        print_error("%s:%d: '%s' is %son the screen:\n%s\n", file, line, text, want ? "not " : "", all);
    free(all);
    assert_int_equal(is, want);
}
#define SHOWS(c, text) expect_shows(c, text, true, __FILE__, __LINE__)
#define SHOWS_NOT(c, text) expect_shows(c, text, false, __FILE__, __LINE__)

UNUSED static void draw_at(struct app *app, struct canvas *c, int rows, int cols)
{
    canvas_size(c, rows, cols);
    app_size(app, rows, cols);
    app_draw(app, c);
}

/* "abc" types; KEY_IS_… for the others. */
UNUSED static void type(struct app *app, const char *text)
{
    for (; *text; text++) {
        struct key k = {.what = KEY_IS_TEXT, .text = {*text}};

        app_key(app, &k);
    }
}

UNUSED static void press(struct app *app, enum key_what what)
{
    app_key(app, &(struct key){.what = what});
}

/* What is asked for now, of this kind; fails when it is not. */
UNUSED static struct ask next_ask(struct app *app, enum ask_what what)
{
    struct ask ask = {.what = ASK_KINDS}, found = {.what = ASK_KINDS};
    bool others[ASK_KINDS] = {false};

    app_tick(app, app->now_ms + 1000);
    while (app_next_ask(app, &ask))
        if (ask.what == what) {
            found = ask;
        } else {
            act_done(&ask.how);
            others[ask.what] = true;
        }
    for (int i = 0; i < ASK_KINDS; i++) /* nobody answers these: they are wanted as before */
        if (others[i])
            app->slots[i] = (struct slot){.wanted = true};
    assert_int_equal(found.what, what);
    return found;
}

UNUSED static bool asks(struct app *app, enum ask_what what)
{
    return app->slots[what].wanted;
}

UNUSED static void answer_with(struct app *app, const struct ask *ask, const char *json)
{
    struct answer *answer = mem_zero(sizeof *answer);

    answer->ask = *ask;
    answer->json = arena_dup(&answer->arena, str_from(json));
    app_take(app, answer);
}

UNUSED static void answer_fails(struct app *app, const struct ask *ask, enum tide_code code, const char *why, bool lost)
{
    struct answer *answer = mem_zero(sizeof *answer);

    answer->ask = *ask;
    answer->lost = lost;
    (void)!tide_fail(&answer->err, code, "%s", why);
    app_take(app, answer);
}

/* Asks, and answers at once. */
UNUSED static void give(struct app *app, enum ask_what what, const char *json)
{
    struct ask ask = next_ask(app, what);

    answer_with(app, &ask, json);
}

#define ROW(id, title, status, outcome, why, last, next, more)                                                         \
    "{\"session_id\":\"" id "\",\"kind\":\"program\",\"title\":\"" title "\",\"status\":\"" status                     \
    "\",\"outcome\":\"" outcome "\",\"why\":\"" why "\",\"next\":[" next                                               \
    "],\"is_resumable\":true,\"trusted\":true,\"updated_at\":\"2026-11-19T19:25:00.000Z\",\"created_at\":"             \
    "\"2026-11-19T19:20:00.000Z\",\"first_seq\":1,\"last_seq\":" last more "}"
#define ANSWER_NEXT(id)                                                                                                \
    "{\"action\":\"answer\",\"session_id\":\"" id "\",\"arguments\":{\"kind\":\"approval\",\"input\":null}}"
#define RESUME_NEXT(id, arguments) "{\"action\":\"resume\",\"session_id\":\"" id "\",\"arguments\":" arguments "}"
#define WAITS(id, title) ROW(id, title, "waiting", "none", "it waits for approval", "8", ANSWER_NEXT(id), "")
#define DONE(id, title) ROW(id, title, "idle", "completed", "it was completed", "3", "", "")

#endif
