/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for a person, the oldest first, and below it the chosen question in full: the exact action, an edit as a diff. */
#include <stdio.h>

#include "tui/app.h"
#include "tui/look.h"

static const struct rows_view *rows_of(const struct app *app)
{
    return app->inbox.answer ? app->inbox.answer->view : NULL;
}

static const struct row_view *chosen_row(const struct app *app)
{
    const struct rows_view *rows = rows_of(app);
    int at = app->inbox.scroll.at;

    return rows && at >= 0 && (size_t)at < rows->n ? &rows->at[at] : NULL;
}

int64_t inbox_total(const struct app *app)
{
    return rows_of(app) ? rows_of(app)->total : -1;
}

const struct question_view *inbox_question(const struct app *app, const char *id)
{
    const struct rows_view *rows = rows_of(app);

    for (size_t i = 0; rows && i < rows->n; i++)
        if (strcmp(rows->at[i].row.info.id, id) == 0)
            return rows->at[i].question;
    return NULL;
}

const struct tide_session_info *inbox_chosen(const struct app *app)
{
    return chosen_row(app) ? &chosen_row(app)->row.info : NULL;
}

static void remember_choice(struct app *app)
{
    const struct row_view *row = chosen_row(app);

    if (row && strcmp(app->inbox.chosen, row->row.info.id) != 0)
        app->inbox.detail_from = 0;
    if (row)
        snprintf(app->inbox.chosen, sizeof app->inbox.chosen, "%s", row->row.info.id);
}

void inbox_take(struct app *app, struct answer *answer)
{
    struct inbox_page *p = &app->inbox;
    const struct rows_view *rows = answer->view;

    if (answer->err.code) {
        if (!answer->lost && app->place == PLACE_INBOX)
            app_say(app, INK_BAD, "%s", answer->err.msg);
        answer_free(answer);
        return;
    }
    answer_free(p->answer);
    p->answer = answer;
    for (size_t i = 0; i < rows->n; i++)
        if (strcmp(rows->at[i].row.info.id, p->chosen) == 0)
            p->scroll.at = (int)i;
    scroll_fit(&p->scroll, (int)rows->n, p->scroll.height);
    remember_choice(app);
}

void inbox_key(struct app *app, const struct key *k)
{
    struct inbox_page *p = &app->inbox;
    const struct row_view *row = chosen_row(app);
    int line = scroll_line_at(&p->scroll, k->row - p->first_row);

    if (k->what == KEY_IS_CLICK || k->what == KEY_IS_DOUBLE_CLICK) {
        if (line < 0)
            return;
        scroll_to(&p->scroll, line);
        remember_choice(app);
        row = chosen_row(app);
        if (k->what == KEY_IS_DOUBLE_CLICK && row)
            app_answer(app, &row->row.info, row->question);
    } else if (k->what == KEY_IS_ESCAPE) {
        app->place = PLACE_SESSIONS;
        app_want(app, ASK_SESSIONS);
    } else if (k->what == KEY_IS_ENTER && row) {
        app_answer(app, &row->row.info, row->question);
    } else if ((key_is(k, 'o') || k->what == KEY_IS_RIGHT) && row) {
        session_open(app, row->row.info.id);
    } else if (key_is(k, ' ') || k->what == KEY_IS_PAGE_DOWN) {
        p->detail_from += 5;
    } else if (k->what == KEY_IS_PAGE_UP) {
        p->detail_from = p->detail_from > 5 ? p->detail_from - 5 : 0;
    } else if (scroll_key(&p->scroll, k)) {
        remember_choice(app);
    } else if (row) {
        app_act_key(app, k, &row->row.info, row->question);
    }
}

/* ---- drawing ---- */

static void draw_row(struct app *app, struct canvas *c, int row, const struct row_view *one)
{
    const struct tide_session_info *info = &one->row.info;
    const struct question_view *q = one->question;
    const char *asks = q && q->text[0]   ? q->text
                       : info->question  ? info->question
                       : info->wait_name ? info->wait_name
                                         : "";
    const char *title = info->title && info->title[0] ? info->title : info->id;
    int name = c->cols >= 100 ? 32 : c->cols >= 60 ? 22 : 12;
    char age[AGE_SIZE];
    int col = 1;

    canvas_text(c, row, col, 1, "◆", INK_WAITING);
    canvas_right(c, row, col + 6, look_age(age, one->since_ms ? one->since_ms : info->updated_ms, app->now_ms),
                 INK_DIM);
    col += 8;
    canvas_text(c, row, col, name, title, INK_BOLD);
    col += name + 1;
    if (q && q->tool && c->cols >= 60)
        col += canvas_text(c, row, col, 12, q->tool, INK_ACCENT) + 1;
    canvas_text(c, row, col, c->cols - col - 1, asks, INK_PLAIN);
}

static void draw_question(struct app *app, struct canvas *c, int row, int rows, const struct row_view *one)
{
    AUTO(lines_done) struct lines l = {.n = 0};
    const struct question_view *q = one->question;
    struct inbox_page *p = &app->inbox;
    int most;

    canvas_rule(c, row, 0, c->cols, INK_DIM);
    canvas_printf(c, row, 2, c->cols - 4, INK_DIM, " %s ", one->row.info.id);
    if (q)
        app_question_lines(&l, q, c->cols - 4, app->now_ms);
    else
        lines_add(&l, str_from(one->row.info.why ? one->row.info.why : ""), c->cols - 4, 0,
                  &(struct line){.entry = -1});
    most = (int)l.n - (rows - 1);
    p->detail_from = p->detail_from > most ? (most > 0 ? most : 0) : p->detail_from;
    lines_draw(&l, p->detail_from, c, row + 1, 2, rows - 1, c->cols - 4);
    if (most - p->detail_from > 0)
        canvas_printf(c, row, c->cols - 24, 22, INK_DIM, " %d more: space ", most - p->detail_from);
}

void inbox_draw(struct app *app, struct canvas *c, int row, int rows)
{
    struct inbox_page *p = &app->inbox;
    const struct rows_view *view = rows_of(app);
    const struct row_view *chosen;
    int n = view ? (int)view->n : 0, list = rows / 2 < n ? rows / 2 : n;

    if (!n) {
        canvas_text(c, row + 1, 2, c->cols - 3, view ? "Nothing waits for you." : "reading…",
                    view ? INK_BOLD : INK_DIM);
        if (view)
            canvas_text(c, row + 2, 2, c->cols - 3,
                        "Approvals and questions of every session come here, the oldest first.", INK_DIM);
        return;
    }
    if (rows < 8)
        list = rows - 3 > 0 ? rows - 3 : rows;
    list = list > n ? n : list;
    scroll_fit(&p->scroll, n, list);
    p->first_row = row;
    for (int i = 0; i < list && p->scroll.top + i < n; i++) {
        draw_row(app, c, row + i, &view->at[p->scroll.top + i]);
        if (p->scroll.top + i == p->scroll.at)
            canvas_choose(c, row + i, 0, c->cols);
    }
    chosen = chosen_row(app);
    if (chosen && rows - list > 1)
        draw_question(app, c, row + list, rows - list, chosen);
}
