/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session: what it is and why it stands as it stands, what it asks, and below that one of its views. All views are lines with a cursor; a
 * line knows the event that it shows, so that on each of them the state as of that moment is one key away.
 */
#include <stdio.h>

#include "engine/session_words.h"
#include "tui/app.h"
#include "tui/look.h"

static const struct {
    const char *label;
    enum ask_what ask;
    void (*lines)(struct app *app, struct sheet *s, int columns);
    bool (*key)(struct app *app, const struct key *k);
} tabs[TABS] = {
    [TAB_TALK] = {"Conversation", ASK_PAGE, talk_lines, talk_key},
    [TAB_TIMELINE] = {"Timeline", ASK_TIMELINE, timeline_lines, NULL},
    [TAB_LOG] = {"Log", ASK_LOG, log_lines, log_key},
    [TAB_CHECKPOINTS] = {"Checkpoints", ASK_CHECKPOINTS, checkpoints_lines, checkpoints_key},
    [TAB_STATE] = {"State", ASK_STATE, state_lines, state_key},
    [TAB_GRAPH] = {"Graph", ASK_GRAPH, graph_lines, NULL},
};

void sheet_done(struct sheet *s)
{
    answer_free(TAKE(s->answer));
    lines_done(&s->lines);
    *s = (struct sheet){.columns = 0};
}

const struct page_view *session_view(const struct app *app)
{
    return app->session.page ? app->session.page->view : NULL;
}

static const struct tide_session_info *info_of(const struct app *app)
{
    const struct page_view *page = session_view(app);

    return page ? &page->detail.row.info : NULL;
}

static bool has_graph(const struct app *app)
{
    return info_of(app) && info_of(app)->kind == TIDE_KIND_GRAPH;
}

void session_close(struct app *app)
{
    struct session_tab *s = &app->session;

    for (int i = 0; i < s->n_parts; i++) /* the page is one of them */
        answer_free(s->parts[i]);
    s->page = NULL;
    s->n_parts = 0;
    for (int i = 0; i < TABS; i++)
        sheet_done(&s->sheets[i]);
    s->n_open = 0;
    s->gone = s->filtering = false;
    s->err = (struct tide_err){0};
    s->state_seq = s->log_seq = 0;
    s->log_after = -1;
    s->tab = TAB_TALK;
    buf_clear(&s->streamed);
    field_set(&s->log_kinds, "");
    for (int i = ASK_PAGE; i < ASK_KINDS; i++)
        app->slots[i] = (struct slot){.wanted = false}; /* what is under way is for another session */
}

void session_open(struct app *app, const char *id)
{
    enum place from = app->place == PLACE_SESSION ? app->session.from : app->place;

    session_close(app);
    snprintf(app->session.id, sizeof app->session.id, "%s", id);
    app->session.from = from;
    app->session.sheets[TAB_TALK].scroll.follow = true;
    app->session.sheets[TAB_LOG].scroll.follow = true;
    app->place = PLACE_SESSION;
    app->reader.open = false;
    app_want(app, ASK_PAGE);
}

void session_ask(struct app *app, struct ask *ask)
{
    struct session_tab *s = &app->session;

    snprintf(ask->id, sizeof ask->id, "%s", s->id);
    ask->limit = ask->what == ASK_PAGE ? 60 : 200;
    if (ask->what == ASK_TALK) {
        ask->seq = talk_before(app);
    } else if (ask->what == ASK_LOG) {
        ask->limit = 500;
        ask->seq = s->log_seq;
        ask->after = s->log_after;
        snprintf(ask->text, sizeof ask->text, "%.*s", STR_ARG(str_trim(buf_view(&s->log_kinds.text.text))));
    } else if (ask->what == ASK_STATE || ask->what == ASK_GRAPH) {
        ask->seq = s->state_seq;
    } else if (ask->what == ASK_PLAN || ask->what == ASK_UNDONE) {
        app_plan_ask(app, ask);
    }
}

/* ---- what comes ---- */

static void take_page(struct app *app, struct answer *answer)
{
    struct session_tab *s = &app->session;

    s->gone = answer->err.code == TIDE_NOT_FOUND;
    s->err = answer->err;
    if (answer->err.code) {
        answer_free(answer);
        return;
    }
    talk_take(app, answer);
    app_seen(app, info_of(app));
}

static void take_sheet(struct app *app, enum tab tab, struct answer *answer)
{
    struct sheet *s = &app->session.sheets[tab];

    s->err = answer->err;
    if (answer->err.code) {
        answer_free(answer);
        return;
    }
    answer_free(s->answer);
    s->answer = answer;
    s->columns = 0;
}

void session_take(struct app *app, struct answer *answer)
{
    if (answer->ask.what == ASK_PLAN || answer->ask.what == ASK_UNDONE) {
        app_plan(app, answer);
        return;
    }
    if (strcmp(answer->ask.id, app->session.id) != 0 || answer->ask.number != app->slots[answer->ask.what].number ||
        (answer->lost && app->session.page)) {
        answer_free(answer);
        return;
    }
    if (answer->ask.what == ASK_PAGE || answer->ask.what == ASK_TALK) {
        take_page(app, answer);
        return;
    }
    for (int i = 0; i < TABS; i++)
        if (tabs[i].ask == answer->ask.what) {
            take_sheet(app, (enum tab)i, answer);
            return;
        }
    answer_free(answer);
}

void session_changed(struct app *app)
{
    struct session_tab *s = &app->session;
    bool at_end = s->tab != TAB_LOG || (s->log_after < 0 && !s->log_seq && s->sheets[TAB_LOG].scroll.follow);

    app_want_soon(app, ASK_PAGE);
    if (s->tab != TAB_TALK && at_end && !(s->state_seq && (s->tab == TAB_STATE || s->tab == TAB_GRAPH)))
        app_want_soon(app, tabs[s->tab].ask);
}

void session_text(struct app *app, struct str text)
{
    struct session_tab *s = &app->session;

    if (!s->streamed.len && info_of(app))
        s->streamed_after = info_of(app)->last_seq;
    buf_add_str(&s->streamed, text);
    s->sheets[TAB_TALK].columns = 0;
}

/* ---- keys ---- */

static void show_tab(struct app *app, int tab)
{
    struct session_tab *s = &app->session;

    tab = (tab + TABS) % TABS;
    if (tab == TAB_GRAPH && !has_graph(app))
        tab = s->tab == TAB_TALK ? TAB_STATE : TAB_TALK;
    s->tab = (enum tab)tab;
    app_want(app, tabs[tab].ask);
}

static int64_t seq_here(const struct app *app)
{
    const struct sheet *s = &app->session.sheets[app->session.tab];

    return s->scroll.at >= 0 && (size_t)s->scroll.at < s->lines.n ? s->lines.at[s->scroll.at].seq : 0;
}

/* The state as of the line where the cursor is. */
static void show_state(struct app *app)
{
    app->session.state_seq = seq_here(app);
    show_tab(app, TAB_STATE);
}

static void leave_session(struct app *app)
{
    app->place = app->session.from;
    app_want(app, app->place == PLACE_INBOX ? ASK_INBOX : ASK_SESSIONS);
}

static void click_session(struct app *app, const struct key *k)
{
    struct session_tab *s = &app->session;
    struct sheet *sheet = &s->sheets[s->tab];
    int line = scroll_line_at(&sheet->scroll, k->row - s->first_row);

    if (k->row == s->tabs_row)
        for (int i = 0; i < TABS; i++)
            if (k->col >= s->tab_at[i] && k->col < s->tab_at[i + 1]) {
                show_tab(app, i);
                return;
            }
    if (line < 0)
        return;
    scroll_to(&sheet->scroll, line);
    if (k->what == KEY_IS_DOUBLE_CLICK && tabs[s->tab].key)
        tabs[s->tab].key(app, &(struct key){.what = KEY_IS_ENTER});
}

static bool moment_key(struct app *app, const struct key *k)
{
    int64_t seq = seq_here(app);

    if (key_is(k, 'i') && seq)
        show_state(app);
    else if (key_is(k, 'F'))
        app_fork(app, app->session.id, seq ? seq : info_of(app)->last_seq);
    else if (key_is(k, 'B') && seq)
        app_roll_back(app, app->session.id, seq);
    else
        return false;
    return true;
}

void session_key(struct app *app, const struct key *k)
{
    struct session_tab *s = &app->session;
    struct sheet *sheet = &s->sheets[s->tab];
    const struct page_view *page = session_view(app);

    if (s->filtering && log_key(app, k))
        return;
    if (k->what == KEY_IS_ESCAPE || key_is(k, 'q') || k->what == KEY_IS_ERASE)
        leave_session(app);
    else if (k->what == KEY_IS_TAB || k->what == KEY_IS_BACK_TAB)
        show_tab(app, (int)s->tab + (k->what == KEY_IS_TAB ? 1 : -1));
    else if (k->what == KEY_IS_TEXT && k->text[0] >= '1' && k->text[0] < '1' + TABS && !k->text[1])
        show_tab(app, k->text[0] - '1');
    else if (k->what == KEY_IS_CLICK || k->what == KEY_IS_DOUBLE_CLICK)
        click_session(app, k);
    else if (!page)
        return;
    else if (tabs[s->tab].key && tabs[s->tab].key(app, k))
        return;
    else if (scroll_key(&sheet->scroll, k))
        sheet->scroll.follow = (s->tab == TAB_TALK || s->tab == TAB_LOG) && sheet->scroll.at >= sheet->scroll.n - 1;
    else if (!moment_key(app, k))
        app_act_key(app, k, &page->detail.row.info, page->question);
}

/* ---- drawing ---- */

static int draw_head(struct app *app, struct canvas *c, int row, int rows)
{
    const struct page_view *page = session_view(app);
    const struct tide_session_info *info = &page->detail.row.info;
    struct look look = look_of_session(info);
    AUTO(lines_done) struct lines l = {.n = 0};
    char status[STATUS_SIZE], right[160] = "";
    int used, most = rows >= 16 ? 3 : 1;

    snprintf(right, sizeof right, "%s  %lld events%s", info->kind ? tide_session_kind_name(info->kind) : "",
             (long long)info->last_seq, info->trusted ? "" : "  not trusted");
    if (info->usage.calls && c->cols >= 100)
        snprintf(right + strlen(right), sizeof right - strlen(right), "  %lld tokens",
                 (long long)(info->usage.input_tokens + info->usage.output_tokens));
    if (info->usage.cost_nano && c->cols >= 100)
        snprintf(right + strlen(right), sizeof right - strlen(right), "  cost %.4f",
                 (double)info->usage.cost_nano / 1e9);
    canvas_text(c, row, 1, 1, look.shape, look.ink);
    used =
        3 + canvas_text(c, row, 3, c->cols / 2, info->title && info->title[0] ? info->title : info->id, INK_BOLD) + 2;
    used += canvas_text(c, row, used, c->cols - used - 1, session_status(status, info), look.ink) + 2;
    if (c->cols - 1 - used >= canvas_width(c, str_from(right)))
        canvas_right(c, row, c->cols - 1, right, INK_DIM);
    lines_add(&l,
              str_from(app->session.gone ? "It was deleted: what is seen here is what was known of it."
                       : info->why       ? info->why
                                         : ""),
              c->cols - 4, most, &(struct line){.ink = app->session.gone ? INK_BAD : INK_DIM});
    lines_draw(&l, 0, c, row + 1, 3, most, c->cols - 4);
    return 1 + ((int)l.n < most ? (int)l.n : most);
}

/* What it asks, with the key that answers. */
static int draw_question(struct app *app, struct canvas *c, int row, int rows)
{
    const struct page_view *page = session_view(app);
    const struct question_view *q = page->question;
    AUTO(lines_done) struct lines l = {.n = 0};
    int most = rows >= 24 ? 8 : rows >= 14 ? 4 : 1, n;

    if (!q || !app_asks_person(&page->detail.row.info) || rows < 8)
        return 0;
    app_question_lines(&l, q, c->cols - 8, app->now_ms);
    n = (int)l.n < most ? (int)l.n : most;
    for (int i = 0; i < n; i++)
        canvas_text(c, row + i, 1, 1, "┃", INK_WAITING);
    lines_draw(&l, 0, c, row, 3, n, c->cols - 16);
    canvas_right(c, row, c->cols - 1, "a answer", INK_ACCENT);
    return n;
}

static int draw_tabs(struct app *app, struct canvas *c, int row)
{
    struct session_tab *s = &app->session;
    int col = 1;

    canvas_rule(c, row, 0, c->cols, INK_DIM);
    s->tabs_row = row;
    for (int i = 0; i < TABS; i++) {
        bool chosen = i == (int)s->tab;
        char label[40];

        s->tab_at[i] = s->tab_at[i + 1] = col;
        if ((i == TAB_GRAPH && !has_graph(app)) || (c->cols < 76 && !chosen && c->cols < 12 * TABS + 4))
            continue;
        snprintf(label, sizeof label, " %d %s ", i + 1, tabs[i].label);
        col += canvas_text(c, row, col, c->cols - col, label, chosen ? INK_BOLD : INK_DIM);
        if (chosen)
            canvas_choose(c, row, s->tab_at[i], col - s->tab_at[i]);
        s->tab_at[i + 1] = col;
        col++;
    }
    return 1;
}

static void draw_sheet(struct app *app, struct canvas *c, int row, int rows)
{
    struct session_tab *s = &app->session;
    struct sheet *sheet = &s->sheets[s->tab];
    bool ready = s->tab == TAB_TALK || sheet->answer;

    s->first_row = row;
    if (sheet->err.code && !ready) {
        canvas_text(c, row + 1, 2, c->cols - 4, sheet->err.msg, INK_WARN);
        return;
    }
    if (!ready) {
        canvas_text(c, row + 1, 2, c->cols - 4, "reading…", INK_DIM);
        return;
    }
    if (sheet->columns != c->cols) {
        lines_clear(&sheet->lines);
        tabs[s->tab].lines(app, sheet, c->cols - 2);
        sheet->columns = c->cols;
    }
    scroll_fit(&sheet->scroll, (int)sheet->lines.n, rows);
    lines_draw(&sheet->lines, sheet->scroll.top, c, row, 1, rows, c->cols - 2);
    if (!sheet->lines.n)
        return;
    if (s->tab == TAB_TALK || s->tab == TAB_STATE) /* a text that is read: a mark beside it is enough */
        canvas_text(c, row + sheet->scroll.at - sheet->scroll.top, 0, 1, "▌", INK_ACCENT);
    else
        canvas_choose(c, row + sheet->scroll.at - sheet->scroll.top, 0, c->cols);
}

void session_draw(struct app *app, struct canvas *c, int row, int rows)
{
    struct session_tab *s = &app->session;
    int used;

    if (!session_view(app)) {
        canvas_text(c, row + 1, 2, c->cols - 4, s->err.code ? s->err.msg : "reading…", s->err.code ? INK_BAD : INK_DIM);
        return;
    }
    used = draw_head(app, c, row, rows);
    used += draw_question(app, c, row + used, rows);
    used += draw_tabs(app, c, row + used);
    if (s->filtering || s->log_kinds.text.text.len) {
        canvas_text(c, row + used, 1, 6, "kinds", INK_ACCENT);
        field_draw(&s->log_kinds, c, row + used, 8, c->cols - 10, s->filtering);
        used += s->tab == TAB_LOG;
    }
    draw_sheet(app, c, row + used, rows - used);
}
