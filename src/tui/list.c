/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of sessions. What was chosen stays chosen while rows move around it: by its id, not by its place. A row says what it is, and
 * below the list stands why the chosen one does not move.
 */
#include <stdio.h>

#include "engine/session_words.h"
#include "tui/app.h"
#include "tui/look.h"

static const struct {
    const char *label, *status;
} filters[] = {
    {"all", ""},          {"running", "running"}, {"waiting", "waiting"},     {"interrupted", "interrupted"},
    {"failed", "failed"}, {"idle", "idle"},       {"completed", "completed"}, {"cancelled", "cancelled"},
};
#define N_FILTERS ((int)(sizeof filters / sizeof filters[0]))

static const char *const kinds[] = {"", "chat", "program", "graph", "log", "task"};
#define N_KINDS ((int)(sizeof kinds / sizeof kinds[0]))

void list_ask(struct app *app, struct ask *ask)
{
    struct list_page *l = &app->list;

    snprintf(ask->status, sizeof ask->status, "%s", filters[l->status].status);
    snprintf(ask->kind, sizeof ask->kind, "%s", kinds[l->kind]);
    snprintf(ask->task_id, sizeof ask->task_id, "%s", l->task_id);
    snprintf(ask->text, sizeof ask->text, "%.*s", STR_ARG(str_trim(buf_view(&l->search.text.text))));
    ask->limit = l->limit;
}

static const struct rows_view *rows_of(const struct app *app)
{
    return app->list.answer ? app->list.answer->view : NULL;
}

static const struct row_view *chosen_row(const struct app *app)
{
    const struct rows_view *rows = rows_of(app);
    int at = app->list.scroll.at;

    return rows && at >= 0 && (size_t)at < rows->n ? &rows->at[at] : NULL;
}

const struct tide_session_info *list_chosen(const struct app *app)
{
    return chosen_row(app) ? &chosen_row(app)->row.info : NULL;
}

static void remember_choice(struct app *app)
{
    const struct row_view *row = chosen_row(app);

    if (row)
        snprintf(app->list.chosen, sizeof app->list.chosen, "%s", row->row.info.id);
}

void list_take(struct app *app, struct answer *answer)
{
    struct list_page *l = &app->list;
    const struct rows_view *rows = answer->view;

    if (answer->err.code) {
        if (!answer->lost)
            app_say(app, INK_BAD, "%s", answer->err.msg);
        answer_free(answer);
        return;
    }
    answer_free(l->answer);
    l->answer = answer;
    for (size_t i = 0; l->scroll.at > 0 && i < rows->n; i++) /* at the top it stays at the top */
        if (strcmp(rows->at[i].row.info.id, l->chosen) == 0)
            l->scroll.at = (int)i;
    scroll_fit(&l->scroll, (int)rows->n, l->scroll.height);
    for (size_t i = 0; i < rows->n; i++)
        app_seen(app, &rows->at[i].row.info);
    remember_choice(app);
}

/* ---- keys ---- */

static void filter_changed(struct app *app)
{
    app->list.limit = 200;
    app->list.scroll = (struct scroll){.n = 0};
    app_want(app, ASK_SESSIONS);
}

static void search_key(struct app *app, const struct key *k)
{
    struct list_page *l = &app->list;

    if (k->what == KEY_IS_ENTER || k->what == KEY_IS_ESCAPE || key_is_control(k, 'c')) {
        l->searching = false;
        if (k->what != KEY_IS_ENTER)
            field_set(&l->search, "");
        filter_changed(app);
    } else if (k->what == KEY_IS_UP || k->what == KEY_IS_DOWN) {
        scroll_key(&l->scroll, k);
        remember_choice(app);
    } else if (field_key(&l->search, k)) {
        filter_changed(app);
    }
}

static void click_list(struct app *app, const struct key *k)
{
    struct list_page *l = &app->list;
    int line = scroll_line_at(&l->scroll, k->row - l->first_row);

    if (k->row == l->filter_row)
        for (int i = 0; i < N_FILTERS; i++)
            if (k->col >= l->filter_at[i] && k->col < l->filter_at[i + 1]) {
                l->status = i;
                filter_changed(app);
                return;
            }
    if (line < 0)
        return;
    scroll_to(&l->scroll, line);
    remember_choice(app);
    if (k->what == KEY_IS_DOUBLE_CLICK)
        session_open(app, l->chosen);
}

static void scrolled(struct app *app)
{
    struct list_page *l = &app->list;
    const struct rows_view *rows = rows_of(app);

    remember_choice(app);
    if (rows && rows->more && l->scroll.at >= l->scroll.n - 1) {
        l->limit += l->limit;
        app_want(app, ASK_SESSIONS);
    }
}

void list_key(struct app *app, const struct key *k)
{
    struct list_page *l = &app->list;
    const struct row_view *row = chosen_row(app);

    if (l->searching) {
        search_key(app, k);
    } else if (key_is(k, '/')) {
        l->searching = true;
    } else if (key_is(k, 'f') || key_is(k, 'F')) {
        l->status = (l->status + (key_is(k, 'f') ? 1 : N_FILTERS - 1)) % N_FILTERS;
        filter_changed(app);
    } else if (key_is(k, 'K')) {
        l->kind = (l->kind + 1) % N_KINDS;
        filter_changed(app);
    } else if (key_is(k, 't') && row) {
        bool same = row->row.info.task_id && strcmp(l->task_id, row->row.info.task_id) != 0;

        snprintf(l->task_id, sizeof l->task_id, "%s", same ? row->row.info.task_id : "");
        filter_changed(app);
    } else if (k->what == KEY_IS_ESCAPE) {
        l->status = l->kind = 0;
        l->task_id[0] = '\0';
        field_set(&l->search, "");
        filter_changed(app);
    } else if (k->what == KEY_IS_CLICK || k->what == KEY_IS_DOUBLE_CLICK) {
        click_list(app, k);
    } else if ((k->what == KEY_IS_ENTER || k->what == KEY_IS_RIGHT) && row) {
        session_open(app, row->row.info.id);
    } else if (scroll_key(&l->scroll, k)) {
        scrolled(app);
    } else if (row) {
        app_act_key(app, k, &row->row.info, row->question);
    }
}

/* ---- drawing ---- */

static void draw_filters(struct app *app, struct canvas *c, int row)
{
    struct list_page *l = &app->list;
    int col = 1;

    l->filter_row = row;
    for (int i = 0; i < N_FILTERS; i++) {
        bool chosen = i == l->status;
        int width = canvas_width(c, str_from(filters[i].label));

        l->filter_at[i] = l->filter_at[i + 1] = col;
        if (col + width > c->cols - 1 || (c->cols < 60 && !chosen))
            continue;
        canvas_text(c, row, col, width, filters[i].label, chosen ? INK_ACCENT : INK_DIM);
        col += width + 2;
        l->filter_at[i + 1] = col;
    }
    if (l->kind)
        col += canvas_printf(c, row, col, c->cols - col - 1, INK_ACCENT, "kind %s", kinds[l->kind]) + 2;
    if (l->task_id[0])
        col += canvas_printf(c, row, col, c->cols - col - 1, INK_ACCENT, "task %s", l->task_id) + 2;
    if ((l->searching || l->search.text.text.len) && c->cols - col > 6) {
        canvas_text(c, row, col, 1, "/", INK_ACCENT);
        field_draw(&l->search, c, row, col + 1, c->cols - col - 2, l->searching);
    }
}

struct widths {
    int status, title, kind, age, why, tokens;
};

static struct widths widths_of(int cols)
{
    struct widths w = {.status = cols >= 60 ? 14 : 2, .age = 4, .kind = cols >= 72 ? 8 : 0};
    int left;

    w.tokens = cols >= 130 ? 8 : 0;
    left = cols - 2 - w.status - w.age - 1 - (w.kind ? w.kind + 1 : 0) - (w.tokens ? w.tokens + 1 : 0);
    w.title = cols >= 100 ? (left * 2 / 5 > 60 ? 60 : left * 2 / 5) : left - (cols >= 60 ? 9 : 0);
    w.why = left - w.title - 1;
    return w;
}

static void draw_head(struct canvas *c, int row, const struct widths *w)
{
    int col = 1;

    canvas_text(c, row, col, w->status, w->status > 2 ? "STATUS" : "", INK_DIM);
    col += w->status;
    canvas_text(c, row, col, w->title, "TITLE", INK_DIM);
    col += w->title + 1;
    if (w->kind)
        col += canvas_text(c, row, col, w->kind, "KIND", INK_DIM) + w->kind - 3;
    canvas_right(c, row, col + w->age, "AGE", INK_DIM);
    col += w->age + 1;
    if (w->tokens) {
        canvas_right(c, row, col + w->tokens, "TOKENS", INK_DIM);
        col += w->tokens + 1;
    }
    if (w->why > 6)
        canvas_text(c, row, col, w->why, c->cols >= 100 ? "WHY" : "", INK_DIM);
}

static const char *tokens_text(char buf[16], int64_t n)
{
    if (n <= 0)
        return "";
    if (n < 10000)
        snprintf(buf, 16, "%lld", (long long)n);
    else if (n < 10000000)
        snprintf(buf, 16, "%lldk", (long long)(n / 1000));
    else
        snprintf(buf, 16, "%lldM", (long long)(n / 1000000));
    return buf;
}

/* The button that moves it, at the end of the row. */
static int draw_move(struct canvas *c, int row, int end, const struct tide_session_info *info)
{
    const char *move =
        app_asks_person(info) || info->needs_resume || info->outcome == TIDE_OUTCOME_FAILED ? look_move(info) : NULL;
    char text[24];

    if (!move || c->cols < 60)
        return 0;
    snprintf(text, sizeof text, "▸ %s", move);
    return canvas_right(c, row, end, text, INK_ACCENT) + 1;
}

static const char *title_of(const struct tide_session_info *info)
{
    return info->title && info->title[0] ? info->title : info->agent && info->agent[0] ? info->agent : info->id;
}

static void draw_row(struct app *app, struct canvas *c, int row, const struct widths *w, const struct row_view *one)
{
    const struct tide_session_info *info = &one->row.info;
    struct look look = look_of_session(info);
    bool ended = info->status == TIDE_STATUS_IDLE && info->outcome != TIDE_OUTCOME_NONE;
    int col = 1, end = c->cols - 1 - draw_move(c, row, c->cols - 1, info), used;
    char age[AGE_SIZE], tokens[16];

    canvas_text(c, row, col, 1, look.shape, look.ink);
    if (w->status > 2)
        canvas_text(c, row, col + 2, w->status - 3,
                    ended ? tide_outcome_name(info->outcome) : status_word(info->status), look.ink);
    col += w->status;
    used = canvas_text(c, row, col, w->title, title_of(info), INK_BOLD);
    if (w->title - used > 12 && strcmp(title_of(info), info->id) != 0)
        canvas_text(c, row, col + used + 2, w->title - used - 2, info->id, INK_DIM);
    col += w->title + 1;
    if (w->kind) {
        canvas_text(c, row, col, w->kind, info->kind ? tide_session_kind_name(info->kind) : "", INK_DIM);
        col += w->kind + 1;
    }
    canvas_right(c, row, col + w->age, look_age(age, info->updated_ms, app->now_ms), INK_DIM);
    col += w->age + 1;
    if (w->tokens) {
        canvas_right(c, row, col + w->tokens, tokens_text(tokens, info->usage.input_tokens + info->usage.output_tokens),
                     INK_DIM);
        col += w->tokens + 1;
    }
    if (c->cols >= 100)
        canvas_text(c, row, col, end - col, info->why ? info->why : "", INK_DIM);
}

static void draw_empty(const struct app *app, struct canvas *c, int row)
{
    const struct list_page *l = &app->list;
    bool filtered = l->status || l->kind || l->task_id[0] || l->search.text.text.len;

    if (!l->answer) {
        canvas_text(c, row, 2, c->cols - 3, "reading…", INK_DIM);
        return;
    }
    canvas_text(c, row, 2, c->cols - 3, filtered ? "No session is like that." : "There are no sessions yet.", INK_BOLD);
    canvas_text(c, row + 1, 2, c->cols - 3,
                filtered      ? "esc shows all of them."
                : app->starts ? "In another terminal, start one; it shows up here at once:"
                              : "What is started there shows up here at once.",
                INK_DIM);
    for (int i = 0; !filtered && app->starts && app->starts[i]; i++)
        canvas_text(c, row + 3 + i, 4, c->cols - 5, app->starts[i], INK_PLAIN);
}

/* Why the chosen one does not move, in full. */
static void draw_why(struct app *app, struct canvas *c, int row, int rows, const struct row_view *one)
{
    AUTO(lines_done) struct lines l = {.n = 0};
    const struct tide_session_info *info = &one->row.info;
    struct look look = look_of_session(info);
    const char *move = look_move(info);

    canvas_rule(c, row, 0, c->cols, INK_DIM);
    lines_add(&l, str_from(info->why ? info->why : ""), c->cols - 4, rows - 1, &(struct line){.indent = 0});
    canvas_text(c, row + 1, 1, 1, look.shape, look.ink);
    lines_draw(&l, 0, c, row + 1, 3, rows - 1, c->cols - 4);
    if ((int)l.n < rows - 1)
        canvas_printf(c, row + 1 + (int)l.n, 3, c->cols - 4, INK_DIM, "%s%s%s%s%s", info->id,
                      info->task_id ? "  task " : "", info->task_id ? info->task_id : "", move ? "  ▸ " : "",
                      move ? move : "");
    (void)app;
}

void list_draw(struct app *app, struct canvas *c, int row, int rows)
{
    struct list_page *l = &app->list;
    const struct rows_view *view = rows_of(app);
    const struct widths w = widths_of(c->cols);
    int below = rows >= 18 ? 4 : rows >= 9 ? 2 : 0;
    const struct row_view *chosen;

    draw_filters(app, c, row);
    row += 1;
    if (rows >= 12) {
        draw_head(c, row++, &w);
        rows--;
    }
    rows -= 1 + below;
    scroll_fit(&l->scroll, view ? (int)view->n : 0, rows);
    l->first_row = row;
    if (!view || !view->n) {
        draw_empty(app, c, row + 1);
        return;
    }
    for (int i = 0; i < rows && l->scroll.top + i < (int)view->n; i++) {
        draw_row(app, c, row + i, &w, &view->at[l->scroll.top + i]);
        if (l->scroll.top + i == l->scroll.at)
            canvas_choose(c, row + i, 0, c->cols);
    }
    chosen = chosen_row(app);
    if (below && chosen)
        draw_why(app, c, row + rows, below, chosen);
}
