/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log, a window of some hundred events at a time: at its ends a key more brings the next one. At the end of the log it follows what comes.
 */
#include <stdio.h>

#include "base/timefmt.h"
#include "tui/app.h"

#define KIND_COLUMNS 20

static enum ink ink_of(const char *kind)
{
    static const struct {
        const char *begins;
        enum ink ink;
    } inks[] = {
        {"run.failed", INK_BAD},           {"run.interrupted", INK_WARN},
        {"run.waiting", INK_WAITING},      {"run.", INK_GOOD},
        {"tool.failed", INK_BAD},          {"tool.unknown", INK_WARN},
        {"node.failed", INK_BAD},          {"llm.error", INK_BAD},
        {"message.", INK_ACCENT},          {"checkpoint", INK_DIM},
        {"session.rolled_back", INK_WARN}, {"approval.", INK_WAITING},
    };

    for (size_t i = 0; i < sizeof inks / sizeof inks[0]; i++)
        if (strncmp(kind, inks[i].begins, strlen(inks[i].begins)) == 0)
            return inks[i].ink;
    return INK_PLAIN;
}

/* The window was asked for from one of its ends: the cursor stands where it came from. */
static void land(struct app *app, struct sheet *s)
{
    struct session_tab *tab = &app->session;

    if (tab->log_lands) {
        s->scroll.at = tab->log_lands > 0 ? (int)s->lines.n - 1 : 0;
        s->scroll.top = s->scroll.at;
    }
    tab->log_lands = 0;
}

void log_lines(struct app *app, struct sheet *s, int columns)
{
    const struct log_view *log = s->answer->view;

    (void)columns;
    for (size_t i = 0; i < log->n; i++) {
        const struct event_view *ev = &log->at[i];
        AUTO(buf_done) struct buf text = BUF_INIT(8192);
        char clock[TIME_CLOCK_SIZE];

        buf_addf(&text, "%8lld  %s  %-*s  ", (long long)ev->seq, time_clock(clock, ev->ts_ms), KIND_COLUMNS, ev->kind);
        buf_add(&text, ev->json.ptr, ev->json.len < 4096 ? ev->json.len : 4096);
        lines_add_one(&s->lines, buf_view(&text),
                      &(struct line){.seq = ev->seq, .ink = ink_of(ev->kind), .entry = (int)i});
    }
    if (!log->n)
        lines_add_one(&s->lines, STR("There are no such events here."),
                      &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
    land(app, s);
}

static void ask_window(struct app *app, int64_t seq, int64_t after, int lands)
{
    app->session.log_seq = seq;
    app->session.log_after = after;
    app->session.log_lands = lands;
    app->session.sheets[TAB_LOG].scroll.follow = false;
    app_want(app, ASK_LOG);
}

static void ask_end(struct app *app)
{
    ask_window(app, 0, -1, 1);
    app->session.sheets[TAB_LOG].scroll.follow = true;
}

static void read_event(struct app *app, const struct log_view *log, int at)
{
    char title[200];

    snprintf(title, sizeof title, "%lld  %s", (long long)log->at[at].seq, log->at[at].kind);
    app_read(app, title, log->at[at].json);
}

static bool filter_key(struct app *app, const struct key *k)
{
    struct session_tab *s = &app->session;

    if (k->what == KEY_IS_ENTER || k->what == KEY_IS_ESCAPE) {
        s->filtering = false;
        if (k->what == KEY_IS_ESCAPE)
            field_set(&s->log_kinds, "");
        ask_end(app);
        return true;
    }
    return field_key(&s->log_kinds, k);
}

bool log_key(struct app *app, const struct key *k)
{
    struct session_tab *tab = &app->session;
    struct sheet *s = &tab->sheets[TAB_LOG];
    const struct log_view *log = s->answer ? s->answer->view : NULL;
    int at = s->scroll.at;
    bool up = k->what == KEY_IS_UP || k->what == KEY_IS_PAGE_UP || k->what == KEY_IS_WHEEL_UP || key_is(k, 'k');
    bool down = k->what == KEY_IS_DOWN || k->what == KEY_IS_PAGE_DOWN || k->what == KEY_IS_WHEEL_DOWN || key_is(k, 'j');
    int64_t end = session_view(app) ? session_view(app)->detail.row.info.last_seq : 0;

    if (tab->filtering)
        return filter_key(app, k);
    if (key_is(k, '/')) {
        tab->filtering = true;
    } else if (!log || !log->n) {
        return false;
    } else if (k->what == KEY_IS_ENTER && at < (int)log->n) {
        read_event(app, log, at);
    } else if (key_is(k, 'g') || k->what == KEY_IS_HOME) {
        ask_window(app, 0, 0, -1);
    } else if (key_is(k, 'G') || k->what == KEY_IS_END) {
        ask_end(app);
    } else if (up && at == 0 && log->first_seq) {
        ask_window(app, log->first_seq, -1, 1);
    } else if (down && at >= (int)log->n - 1 && log->last_seq < end && !s->scroll.follow) {
        ask_window(app, 0, log->last_seq, -1);
    } else {
        return false;
    }
    return true;
}
