/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/app.h"

#include <stdarg.h>
#include <stdio.h>

#include "terminal/glyph.h"
#include "tui/look.h"

#define NOTICE_MS 6000
#define SOON_MS 120 /* between two looks at the same thing while everything changes */
#define AGES_MS 1000

void app_init(struct app *app, const char *source_name, bool is_server)
{
    *app = (struct app){.source_name = source_name, .is_server = is_server, .rows = 24, .cols = 80};
    field_init(&app->list.search);
    field_init(&app->session.log_kinds);
    app->session.streamed = (struct buf)BUF_INIT((size_t)1 << 20);
    app->list.limit = 200;
    app_want(app, ASK_SESSIONS);
    app_want(app, ASK_INBOX);
}

void app_done(struct app *app)
{
    answer_free(app->list.answer);
    answer_free(app->inbox.answer);
    session_close(app);
    field_done(&app->list.search);
    field_done(&app->session.log_kinds);
    buf_done(&app->session.streamed);
    free(app->session.open);
    dialog_close(&app->dialog);
    sheet_done(&app->reader.sheet);
    arena_done(&app->reader.arena);
    act_done(&app->act);
}

void app_size(struct app *app, int rows, int cols)
{
    app->rows = rows;
    app->cols = cols;
}

void app_say(struct app *app, enum ink ink, const char *fmt, ...)
{
    va_list list;

    va_start(list, fmt);
    vsnprintf(app->notice, sizeof app->notice, fmt, list);
    va_end(list);
    app->notice_ink = ink;
    app->notice_until_ms = app->now_ms + NOTICE_MS;
}

void app_tick(struct app *app, int64_t now_ms)
{
    app->now_ms = now_ms;
    if (app->notice[0] && now_ms >= app->notice_until_ms)
        app->notice[0] = '\0';
}

int64_t app_wakes_ms(const struct app *app)
{
    int64_t next = app->now_ms + AGES_MS;

    for (int i = 0; i < ASK_KINDS; i++) {
        const struct slot *s = &app->slots[i];

        if (s->wanted && !s->busy && s->next_ms < next)
            next = s->next_ms;
    }
    return next;
}

/* ---- what is wanted ---- */

void app_want(struct app *app, enum ask_what what)
{
    app->slots[what].wanted = true;
    app->slots[what].next_ms = 0;
}

void app_want_soon(struct app *app, enum ask_what what)
{
    app->slots[what].wanted = true;
}

bool app_next_ask(struct app *app, struct ask *ret)
{
    for (int i = 0; i < ASK_KINDS; i++) {
        struct slot *s = &app->slots[i];

        if (!s->wanted || s->busy || s->next_ms > app->now_ms)
            continue;
        *ret = (struct ask){.what = (enum ask_what)i, .number = ++app->numbers, .after = -1};
        *s = (struct slot){.busy = true, .number = ret->number, .next_ms = app->now_ms + SOON_MS};
        if (i == ASK_SESSIONS)
            list_ask(app, ret);
        else if (i == ASK_INBOX)
            ret->limit = 100;
        else
            session_ask(app, ret);
        return true;
    }
    return false;
}

const char *app_viewed(const struct app *app)
{
    return app->place == PLACE_SESSION ? app->session.id : "";
}

bool app_next_act(struct app *app, struct act *ret)
{
    if (app->act.what == ACT_NOTHING)
        return false;
    *ret = app->act;
    app->act = (struct act){.what = ACT_NOTHING};
    app->acting++;
    return true;
}

/* ---- what comes ---- */

void app_take(struct app *app, struct answer *answer)
{
    struct slot *s = &app->slots[answer->ask.what];

    if (answer->ask.number == s->number)
        s->busy = false;
    if (answer->lost)
        s->wanted = true;
    if (!answer->err.code && view_make(answer, &answer->err))
        answer->view = NULL;
    if (answer->ask.what == ASK_SESSIONS)
        list_take(app, answer);
    else if (answer->ask.what == ASK_INBOX)
        inbox_take(app, answer);
    else
        session_take(app, answer);
}

void app_news(struct app *app, const struct news *news)
{
    switch (news->what) {
    case NEWS_LOST:
        if (!app->lost[0])
            app->lost_ms = app->now_ms;
        snprintf(app->lost, sizeof app->lost, "%s", news->err->msg);
        return;
    case NEWS_TEXT:
        if (app->place == PLACE_SESSION && strcmp(app->session.id, news->id) == 0)
            session_text(app, news->text);
        return;
    case NEWS_BACK:
        if (app->lost[0])
            app_say(app, INK_GOOD, "connected again: nothing was missed");
        app->lost[0] = '\0';
        break;
    case NEWS_CHANGED:
        break;
    }
    app_want_soon(app, ASK_INBOX);
    if (app->place == PLACE_SESSION)
        session_changed(app);
    if (app->place != PLACE_SESSION || app->dialog.busy)
        app_want_soon(app, ASK_SESSIONS);
}

void app_seen(struct app *app, const struct tide_session_info *info)
{
    if (!app->dialog.what || !app->dialog.busy || strcmp(app->dialog_id, info->id) != 0 ||
        info->last_seq <= app->dialog_last_seq)
        return;
    dialog_close(&app->dialog);
    app_say(app, INK_GOOD, "%s continues", info->id);
}

void app_acted(struct app *app, const struct acted *acted)
{
    bool is_open = app->dialog.what && app->dialog.busy && app->dialog_act == acted->number;

    app->acting--;
    if (acted->err.code && acted->err.code != TIDE_WAITING) {
        if (is_open) {
            app->dialog.busy = false;
            snprintf(app->dialog.error, sizeof app->dialog.error, "%s", acted->err.msg);
        } else { /* it had begun: how it ended is seen where it is looked at */
            app_say(app, INK_WARN, "%s", acted->err.msg);
        }
    } else {
        if (is_open)
            dialog_close(&app->dialog);
        app_say(app, INK_GOOD, "%s", acted->said);
        if (acted->new_id[0])
            session_open(app, acted->new_id);
    }
    app_want(app, ASK_INBOX);
    app_want(app, ASK_SESSIONS);
    if (app->place == PLACE_SESSION)
        session_changed(app);
}

/* ---- keys ---- */

static void go_to(struct app *app, enum place place)
{
    if (app->place == place)
        return;
    app->place = place;
    app_want(app, ASK_INBOX);
    if (place == PLACE_SESSIONS)
        app_want(app, ASK_SESSIONS);
}

static bool is_typing(const struct app *app)
{
    return (app->place == PLACE_SESSIONS && app->list.searching) ||
           (app->place == PLACE_SESSION && app->session.filtering);
}

static void page_key(struct app *app, const struct key *k)
{
    if (app->place == PLACE_SESSIONS)
        list_key(app, k);
    else if (app->place == PLACE_INBOX)
        inbox_key(app, k);
    else
        session_key(app, k);
}

static bool reader_key(struct app *app, const struct key *k)
{
    if (!app->reader.open)
        return false;
    if (k->what == KEY_IS_ESCAPE || key_is(k, 'q') || k->what == KEY_IS_ENTER || k->what == KEY_IS_LEFT)
        app->reader.open = false;
    else
        scroll_read_key(&app->reader.sheet.scroll, k);
    return true;
}

static void plain_key(struct app *app, const struct key *k)
{
    if (key_is(k, '?') || key_is(k, 'h')) {
        app->help = true;
        app->help_scroll = (struct scroll){.n = 0};
    } else if (key_is(k, 'Q') || (key_is(k, 'q') && app->place != PLACE_SESSION)) {
        app->quit = true;
    } else if (k->what == KEY_IS_TAB && app->place != PLACE_SESSION) {
        go_to(app, app->place == PLACE_INBOX ? PLACE_SESSIONS : PLACE_INBOX);
    } else if (k->what == KEY_IS_CLICK && k->row == 0) {
        go_to(app, k->col < 26 ? PLACE_SESSIONS : PLACE_INBOX);
    } else {
        page_key(app, k);
    }
}

void app_key(struct app *app, const struct key *k)
{
    if (k->what == KEY_IS_PASTE_BEGIN || k->what == KEY_IS_PASTE_END) {
        app->pasting = k->what == KEY_IS_PASTE_BEGIN;
        return;
    }
    /* What is pasted is text for a field, and never a command. */
    if (app->pasting && (app->dialog.what ? app->dialog.focus >= app->dialog.n_fields : !is_typing(app)))
        return;
    if (app->pasting && k->what == KEY_IS_ENTER) {
        app_key(app, &(struct key){.what = KEY_IS_TEXT, .text = " "});
        return;
    }
    if (key_is_control(k, 'c') && !app->dialog.what)
        app->quit = true;
    else if (app->dialog.what)
        app_dialog_key(app, k);
    else if (app->help)
        help_key(app, k);
    else if (reader_key(app, k))
        return;
    else if (is_typing(app))
        page_key(app, k);
    else
        plain_key(app, k);
}

void app_open_session(struct app *app, const char *id)
{
    session_open(app, id);
}

void app_read(struct app *app, const char *title, struct str json)
{
    struct reader *r = &app->reader;

    arena_reset(&r->arena);
    r->json = arena_dup(&r->arena, json);
    r->open = true;
    r->sheet.columns = 0;
    r->sheet.scroll = (struct scroll){.n = 0};
    snprintf(r->title, sizeof r->title, "%s", title);
}

/* ---- drawing ---- */

static void draw_tab_title(struct canvas *c, int *col, const char *text, bool chosen)
{
    int width = canvas_text(c, 0, *col, c->cols - *col, text, chosen ? INK_BOLD : INK_DIM);

    if (chosen)
        canvas_choose(c, 0, *col - 1, width + 2);
    *col += width + 2;
}

/* Where it is, and whether what is seen is how it is now. */
static void draw_top(struct app *app, struct canvas *c)
{
    char sessions[48] = "Sessions", inbox[48] = "Inbox";
    int64_t total = inbox_total(app);
    const char *state = app->lost[0] ? "○ lost" : "● live";
    int col = 1, end = c->cols - 1;

    if (total > 0)
        snprintf(inbox, sizeof inbox, "Inbox %lld", (long long)total);
    draw_tab_title(c, &col, sessions, app->place == PLACE_SESSIONS);
    draw_tab_title(c, &col, inbox, app->place == PLACE_INBOX);
    if (app->place == PLACE_SESSION)
        draw_tab_title(c, &col, app->session.id, true);
    end -= canvas_right(c, 0, end, state, app->lost[0] ? INK_BAD : INK_GOOD) + 2;
    if (end - col > 10) {
        int width = canvas_width(c, str_from(app->source_name)), room = end - col - 1;

        canvas_text(c, 0, width < room ? end - width : col + 1, room, app->source_name, INK_DIM);
    }
}

static int draw_banner(struct app *app, struct canvas *c)
{
    AUTO(lines_done) struct lines l = {.n = 0};
    char age[AGE_SIZE];
    int most = c->rows >= 16 ? 2 : 1;

    if (!app->lost[0] || c->rows < 6)
        return 0;
    lines_add(&l,
              str_from(arena_printf(&l.arena, "No news for %s, trying again: %s",
                                    look_age(age, app->lost_ms, app->now_ms), app->lost)),
              c->cols - 2, 0, &(struct line){.ink = INK_BAD});
    most = (int)l.n < most ? (int)l.n : most;
    lines_draw(&l, 0, c, 1, 1, most, c->cols - 2);
    return most;
}

/* What can be done about this session now. */
static void put_acts(struct buf *out, const struct tide_session_info *info)
{
    if (!info)
        return;
    if (app_asks_person(info))
        buf_add_str(out, STR("a answer  "));
    else if (act_of(info) == ACT_RESUME)
        buf_add_str(out, STR("r resume  "));
    buf_add_str(out, STR("s send  "));
    if (info->status != TIDE_STATUS_IDLE && info->status != TIDE_STATUS_DAMAGED)
        buf_add_str(out, STR("x cancel  "));
}

static const char *tab_keys(enum tab tab)
{
    static const char *const keys[TABS] = {
        [TAB_TALK] = "enter unfold  i state here  ",
        [TAB_TIMELINE] = "i state here  ",
        [TAB_LOG] = "enter read  / kinds  i state here  ",
        [TAB_CHECKPOINTS] = "enter state  R resume  B roll back  F fork  ",
        [TAB_STATE] = "← → one event  g now  ",
        [TAB_GRAPH] = "i state here  ",
    };

    return keys[tab];
}

static void put_keys(const struct app *app, struct buf *out)
{
    const struct page_view *page = session_view(app);

    if (app->dialog.what)
        buf_add_str(out, STR("tab next  enter press  esc close"));
    else if (app->help || app->reader.open)
        buf_add_str(out, STR("↑↓ scroll  esc close"));
    else if (app->place == PLACE_SESSIONS && app->list.searching)
        buf_add_str(out, STR("type to find  enter keep  esc clear"));
    else if (app->place == PLACE_SESSIONS) {
        buf_add_str(out, STR("enter open  "));
        put_acts(out, list_chosen(app));
        buf_add_str(out, STR("/ find  f filter  tab inbox  ? help  q quit"));
    } else if (app->place == PLACE_INBOX) {
        buf_add_str(out, STR("enter answer  o open  x cancel  tab sessions  ? help  q quit"));
    } else {
        put_acts(out, page ? &page->detail.row.info : NULL);
        buf_addf(out, "%stab next  ? help  esc back", tab_keys(app->session.tab));
    }
}

/* Keys stand out, what they do does not. Whole pairs alone. */
static void draw_keys(const struct app *app, struct canvas *c)
{
    AUTO(buf_done) struct buf all = BUF_INIT(1024);
    int col = 1, row = c->rows - 1;
    const char *keys;

    if (app->notice[0]) {
        canvas_text(c, row, 1, c->cols - 2, app->notice, app->notice_ink);
        return;
    }
    put_keys(app, &all);
    for (keys = buf_cstr(&all); *keys;) {
        const char *end = strstr(keys, "  "), *blank = strchr(keys, ' ');
        size_t len = end ? (size_t)(end - keys) : strlen(keys), key = blank ? (size_t)(blank - keys) : len;

        if (col + canvas_width(c, (struct str){keys, len}) > c->cols - 1)
            return;
        col += canvas_put(c, row, col, c->cols - col, (struct str){keys, key}, INK_ACCENT);
        col += canvas_put(c, row, col, c->cols - col, (struct str){keys + key, len - key}, INK_DIM) + 2;
        keys += len + (end ? 2 : 0);
    }
}

static void draw_reader(struct app *app, struct canvas *c, int row, int rows)
{
    struct reader *r = &app->reader;
    struct sheet *s = &r->sheet;

    if (s->columns != c->cols) {
        lines_clear(&s->lines);
        lines_add_json(&s->lines, r->json, c->cols - 2, &(struct line){.entry = -1});
        s->columns = c->cols;
    }
    canvas_text(c, row, 1, c->cols - 2, r->title, INK_BOLD);
    canvas_rule(c, row + 1, 0, c->cols, INK_DIM);
    scroll_fit(&s->scroll, (int)s->lines.n, rows - 2);
    lines_draw(&s->lines, s->scroll.top, c, row + 2, 1, rows - 2, c->cols - 2);
}

void app_draw(struct app *app, struct canvas *c)
{
    int row = 1, rows;

    canvas_clear(c);
    c->ascii = app->ascii;
    draw_top(app, c);
    row += draw_banner(app, c);
    rows = c->rows - row - 1;
    if (rows < 1)
        return;
    if (app->help)
        help_draw(app, c, row, rows);
    else if (app->reader.open)
        draw_reader(app, c, row, rows);
    else if (app->place == PLACE_SESSIONS)
        list_draw(app, c, row, rows);
    else if (app->place == PLACE_INBOX)
        inbox_draw(app, c, row, rows);
    else
        session_draw(app, c, row, rows);
    if (app->dialog.what)
        dialog_draw(&app->dialog, c);
    draw_keys(app, c);
}
