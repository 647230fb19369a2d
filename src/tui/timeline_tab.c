/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a session: a line for each run and for all that it did, with a bar where there is room for one. All share one axis, on which
 * the time in which nothing was done is cut short.
 */
#include <stdio.h>

#include "base/timefmt.h"
#include "terminal/glyph.h"
#include "tui/app.h"
#include "tui/look.h"

#define BAR_MIN 12

#define REST_SHARE 6 /* a time in which nothing was done takes at most this part of the time in which something was */

/* A moment at which something began or ended, and how far it lies on the axis. */
struct moment {
    int64_t ms, at;
    int busy; /* how many more are under way from here on */
};

struct axis {
    const struct timeline_view *t;
    struct moment *moments; /* rising */
    size_t n;
    int64_t whole;
    int width;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return (x->ms > y->ms) - (x->ms < y->ms);
}

static bool is_work(const struct item_view *item)
{
    return !item->is_run && strcmp(item->type, "wait") != 0 && strcmp(item->type, "sleep") != 0;
}

/* Waiting for a person takes hours, and what is done seconds: both are to be seen. */
static void axis_init(struct axis *x, const struct timeline_view *t, int width)
{
    int64_t work = 0, most;
    int busy = 0;

    *x = (struct axis){.t = t, .width = width, .moments = mem_array(2 * t->n + 1, sizeof *x->moments)};
    for (size_t i = 0; i < t->n; i++) {
        const struct item_view *item = &t->at[i];

        if (!item->start_ms)
            continue;
        x->moments[x->n++] = (struct moment){.ms = item->start_ms, .busy = is_work(item)};
        x->moments[x->n++] = (struct moment){.ms = item->end_ms ? item->end_ms : t->to_ms, .busy = -is_work(item)};
    }
    qsort(x->moments, x->n, sizeof *x->moments, by_time);
    for (size_t i = 0; i + 1 < x->n; i++) {
        busy += x->moments[i].busy;
        work += busy ? x->moments[i + 1].ms - x->moments[i].ms : 0;
    }
    most = work / REST_SHARE + 1;
    busy = 0;
    for (size_t i = 0; i + 1 < x->n; i++) {
        int64_t took = x->moments[i + 1].ms - x->moments[i].ms;

        busy += x->moments[i].busy;
        x->moments[i + 1].at = x->moments[i].at + (busy || !work || took < most ? took : most);
    }
    x->whole = x->n ? x->moments[x->n - 1].at : 0;
}

static void axis_done(struct axis *x)
{
    free(x->moments);
}

static int column(const struct axis *x, int64_t ms)
{
    size_t low = 0, high = x->n;
    int64_t at;
    int col;

    while (low < high) { /* the last moment that is not behind it */
        size_t middle = (low + high) / 2;

        if (x->moments[middle].ms <= ms)
            low = middle + 1;
        else
            high = middle;
    }
    at = low ? x->moments[low - 1].at : 0;
    if (low && low < x->n && x->moments[low].ms > x->moments[low - 1].ms)
        at += (x->moments[low].at - at) * (ms - x->moments[low - 1].ms) / (x->moments[low].ms - x->moments[low - 1].ms);
    col = x->whole > 0 ? (int)(at * x->width / x->whole) : 0;
    return col < x->width ? col : x->width - 1;
}

static void put_bar(struct buf *out, const struct axis *x, const struct item_view *item)
{
    int from = column(x, item->start_ms), to = column(x, item->end_ms ? item->end_ms : x->t->to_ms);
    const char *fill = strcmp(item->type, "wait") == 0    ? "╍"
                       : strcmp(item->type, "sleep") == 0 ? "┈"
                       : item->is_run                     ? "─"
                                                          : "█";

    for (int i = 0; i < x->width; i++)
        buf_add_str(out, str_from(item->start_ms && i >= from && i <= to ? fill : " "));
}

static void put_padded(struct buf *out, const char *text, int columns)
{
    AUTO(buf_done) struct buf fit = BUF_INIT(4096);
    int used = name_fit(&fit, str_from(text), columns);

    buf_add_str(out, buf_view(&fit));
    for (; used < columns; used++)
        buf_add_char(out, ' ');
}

static void add_item(struct lines *l, const struct axis *x, const struct item_view *item, int name)
{
    struct look look = look_of_outcome(item->outcome);
    AUTO(buf_done) struct buf text = BUF_INIT(65536);
    char took[TIME_TAKEN_SIZE];

    put_padded(&text, item->name, name - (item->is_run ? 0 : 2));
    buf_add_char(&text, ' ');
    if (x->width >= BAR_MIN)
        put_bar(&text, x, item);
    buf_addf(&text, " %7s  %s",
             item->end_ms && item->end_ms >= item->start_ms ? time_taken(took, item->end_ms - item->start_ms) : "",
             item->outcome);
    if (item->attempts > 1)
        buf_addf(&text, ", %lld attempts", (long long)item->attempts);
    if (*item->note)
        buf_addf(&text, "  %s", item->note);
    lines_add_one(l, buf_view(&text),
                  &(struct line){.lead = look.shape,
                                 .lead_ink = look.ink,
                                 .indent = item->is_run ? 2 : 4,
                                 .seq = item->seq,
                                 .ink = item->is_run ? INK_BOLD : INK_PLAIN,
                                 .entry = -1});
}

static const char *mark_of(const char *kind)
{
    static const struct {
        const char *kind, *mark;
    } marks[] = {
        {"checkpoints", "◇"}, {"tokens", "○"}, {"resumes", "▸"}, {"messages", "·"},
        {"model calls", "■"}, {"errors", "✗"}, {"inputs", "↓"},  {"rollbacks", "↶"},
    };

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strcmp(marks[i].kind, kind) == 0)
            return marks[i].mark;
    return "·";
}

/* What has no length, in one line for each kind that the run has. */
static void add_marks(struct lines *l, const struct axis *x, const struct item_view *run, int name)
{
    for (size_t i = 0; i < run->n_points && x->width >= BAR_MIN;) {
        AUTO(buf_done) struct buf text = BUF_INIT(65536);
        AUTO(mem_freep) bool *set = mem_array((size_t)x->width, sizeof *set);
        const char *kind = run->points[i].kind;
        int64_t seq = run->points[i].seq, n = 0;

        for (; i < run->n_points && strcmp(run->points[i].kind, kind) == 0; i++, n++)
            set[column(x, run->points[i].at_ms)] = true;
        put_padded(&text, kind, name - 2);
        buf_add_char(&text, ' ');
        for (int c = 0; c < x->width; c++)
            buf_add_str(&text, str_from(set[c] ? mark_of(kind) : " "));
        buf_addf(&text, " %7lld", (long long)n);
        lines_add_one(l, buf_view(&text), &(struct line){.indent = 4, .seq = seq, .ink = INK_DIM, .entry = -1});
    }
}

void timeline_lines(struct app *app, struct sheet *s, int columns)
{
    const struct timeline_view *t = s->answer->view;
    int name = columns >= 100 ? 28 : columns >= 60 ? 20 : 14;
    AUTO(axis_done) struct axis x;
    const struct item_view *run = NULL;

    (void)app;
    axis_init(&x, t, columns - name - 32);
    if (!t->n)
        lines_add_one(&s->lines, STR("Nothing ran yet."), &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
    if (t->partial)
        lines_add_one(&s->lines, STR("The newest part: the log is longer than is read for this."),
                      &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
    for (size_t i = 0; i < t->n; i++) {
        if (t->at[i].is_run && run)
            add_marks(&s->lines, &x, run, name);
        if (t->at[i].is_run && i)
            lines_add_one(&s->lines, STR(""), &(struct line){.entry = -1});
        run = t->at[i].is_run ? &t->at[i] : run;
        add_item(&s->lines, &x, &t->at[i], name);
    }
    if (run)
        add_marks(&s->lines, &x, run, name);
    if (t->omitted)
        lines_add_one(&s->lines, str_from(arena_printf(&s->lines.arena, "%lld more, not shown", (long long)t->omitted)),
                      &(struct line){.ink = INK_DIM, .indent = 4, .entry = -1});
}
