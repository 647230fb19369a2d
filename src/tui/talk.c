/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conversation. What came with the page is its end; older parts are put before it as a person scrolls up. When the page comes again, what
 * the earlier one had before its first entry stays, so nothing is read twice and nothing is missing in between: a log only grows.
 */
#include <stdio.h>

#include "tui/app.h"
#include "tui/look.h"

#define RESULT_LINES 400
#define TEXT_LINES 4000
#define TIMES_FROM 72 /* columns from which on times are shown, */
#define TIME_ROOM 7   /* which take so many */

static const struct talk_view *part_view(const struct answer *answer)
{
    if (answer->ask.what == ASK_PAGE)
        return &((const struct page_view *)answer->view)->talk;
    return answer->view;
}

static void drop_parts(struct session_tab *s, int n)
{
    for (int i = 0; i < n; i++)
        if (s->parts[i] != s->page)
            answer_free(s->parts[i]);
    s->n_parts -= n;
    memmove(s->parts, s->parts + n, (size_t)s->n_parts * sizeof *s->parts);
}

static int64_t first_seq(const struct talk_view *t)
{
    return t->n ? t->at[0].seq : INT64_MAX;
}

static int64_t last_seq(const struct talk_view *t)
{
    return t->n ? t->at[t->n - 1].seq : 0;
}

static void add_older(struct session_tab *s, struct answer *answer)
{
    if (s->n_parts == TALK_PARTS || !part_view(answer)->n) {
        answer_free(answer);
        return;
    }
    memmove(s->parts + 1, s->parts, (size_t)s->n_parts * sizeof *s->parts);
    s->parts[0] = answer;
    s->n_parts++;
}

/* The page before the new one stays as a part as long as it has what the new one does not. */
static void add_newest(struct session_tab *s, struct answer *answer)
{
    const struct talk_view *now = part_view(answer), *then = s->page ? part_view(s->page) : NULL;
    bool gap = then && now->before && last_seq(then) < now->before && last_seq(then) < first_seq(now);
    bool needed = then && !gap && first_seq(then) < first_seq(now);

    if (gap)
        drop_parts(s, s->n_parts);
    if (s->page && !needed) {
        if (s->n_parts && s->parts[s->n_parts - 1] == s->page)
            s->n_parts--;
        answer_free(s->page);
    }
    s->page = answer;
    if (s->n_parts == TALK_PARTS)
        drop_parts(s, 1);
    s->parts[s->n_parts++] = answer;
}

int64_t talk_before(const struct app *app)
{
    const struct session_tab *s = &app->session;

    return s->n_parts ? part_view(s->parts[0])->before : 0;
}

void talk_take(struct app *app, struct answer *answer)
{
    struct session_tab *s = &app->session;
    struct sheet *sheet = &s->sheets[TAB_TALK];
    size_t lines = sheet->lines.n;
    bool older = answer->ask.what == ASK_TALK;

    if (older && !s->page) {
        answer_free(answer);
        return;
    }
    if (older)
        add_older(s, answer);
    else
        add_newest(s, answer);
    if (!older && session_view(app)->detail.row.info.last_seq > s->streamed_after)
        buf_clear(&s->streamed);
    sheet->columns = 0;
    if (!older)
        return;
    lines_clear(&sheet->lines); /* the same line stays where it is */
    talk_lines(app, sheet, app->cols - 2);
    sheet->columns = app->cols;
    sheet->scroll.at += (int)(sheet->lines.n - lines);
    sheet->scroll.top += (int)(sheet->lines.n - lines);
}

/* ---- folding ---- */

static bool is_open(const struct session_tab *s, int64_t seq)
{
    for (size_t i = 0; i < s->n_open; i++)
        if (s->open[i] == seq)
            return true;
    return false;
}

static void fold_entry(struct session_tab *s, int64_t seq)
{
    for (size_t i = 0; i < s->n_open; i++)
        if (s->open[i] == seq) {
            s->open[i] = s->open[--s->n_open];
            return;
        }
    MEM_ROOM(s->open, s->n_open, s->cap_open);
    s->open[s->n_open++] = seq;
}

/* ---- lines ---- */

static void add_gap(struct sheet *s)
{
    if (s->lines.n)
        lines_add(&s->lines, STR(""), 1, 0, &(struct line){.entry = -1});
}

static void add_said(struct sheet *s, const struct transcript_entry *e, int entry, int columns)
{
    bool user = e->type == TRANSCRIPT_USER;
    struct line like = {.lead = user ? "›" : "●",
                        .lead_ink = user ? INK_ACCENT : INK_GOOD,
                        .ink = e->cut ? INK_DIM
                               : user ? INK_BOLD
                                      : INK_PLAIN,
                        .indent = 2,
                        .seq = e->seq,
                        .entry = entry};

    like.ts_ms = columns >= TIMES_FROM ? e->ts_ms : 0;
    add_gap(s);
    lines_add(&s->lines, str_from(e->text), columns >= TIMES_FROM ? columns - TIME_ROOM : columns, TEXT_LINES, &like);
}

static void add_tool(struct session_tab *tab, struct sheet *s, const struct transcript_entry *e, int entry, int columns)
{
    bool runs = e->outcome == TRANSCRIPT_CUT && tab->runs_from && e->seq > tab->runs_from;
    struct look look = look_of_outcome(runs ? "running" : transcript_outcome_word(e->outcome));
    bool open = is_open(tab, e->seq), has_more = e->text[0] || strlen(e->args) > 2;
    struct buf head = BUF_INIT(8192);
    struct line like = {.lead = look.shape,
                        .lead_ink = look.ink,
                        .indent = 4,
                        .ink = e->cut ? INK_DIM : INK_PLAIN,
                        .seq = e->seq,
                        .entry = entry};
    struct line below = {.indent = 6, .ink = INK_DIM, .seq = e->seq, .entry = entry};

    buf_addf(&head, "%s %s  ", !has_more ? " " : open ? "▾" : "▸", e->name);
    transcript_args_line(&head, e->args, 300);
    lines_add_one(&s->lines, buf_view(&head), &like);
    if (open && strlen(e->args) > 2)
        lines_add_json(&s->lines, str_from(e->args), columns, &below);
    if (open)
        lines_add(&s->lines, str_from(e->text), columns, RESULT_LINES, &below);
    buf_done(&head);
}

static void add_note(struct sheet *s, const struct transcript_entry *e, int entry, int columns)
{
    static const struct {
        const char *shape;
        enum ink ink;
    } marks[TRANSCRIPT_TYPES] = {
        [TRANSCRIPT_QUESTION] = {"◆", INK_WAITING}, [TRANSCRIPT_ANSWER] = {"→", INK_ACCENT},
        [TRANSCRIPT_ROLLBACK] = {"↶", INK_WARN},    [TRANSCRIPT_FORK] = {"⑂", INK_ACCENT},
        [TRANSCRIPT_FORKED] = {"⑂", INK_ACCENT},
    };
    struct look look = look_of_outcome(transcript_outcome_word(e->outcome));
    struct buf note = BUF_INIT((size_t)1 << 20);

    transcript_note(&note, e);
    lines_add(&s->lines, buf_view(&note), columns, 40,
              &(struct line){.lead = marks[e->type].shape ? marks[e->type].shape : look.shape,
                             .lead_ink = marks[e->type].shape ? marks[e->type].ink : look.ink,
                             .ink = e->type == TRANSCRIPT_QUESTION && !e->cut ? INK_PLAIN : INK_DIM,
                             .indent = 4,
                             .seq = e->seq,
                             .entry = entry});
    buf_done(&note);
}

static void add_entry(struct session_tab *tab, struct sheet *s, const struct transcript_entry *e, int entry,
                      int columns)
{
    if (e->type == TRANSCRIPT_USER || e->type == TRANSCRIPT_ASSISTANT)
        add_said(s, e, entry, columns);
    else if (e->type == TRANSCRIPT_TOOL || e->type == TRANSCRIPT_NODE)
        add_tool(tab, s, e, entry, columns);
    else
        add_note(s, e, entry, columns);
}

static void add_queue(const struct app *app, struct sheet *s, int columns)
{
    const struct page_view *page = session_view(app);

    for (size_t i = 0; i < page->n_queue; i++)
        lines_add(&s->lines, str_from(page->queue[i]), columns, 20,
                  &(struct line){.lead = "…", .lead_ink = INK_ACCENT, .ink = INK_DIM, .indent = 2, .entry = -1});
}

/* While it runs: the event before which what has no result was cut. 0: it does not run. */
static int64_t run_began(const struct app *app)
{
    const struct session_tab *tab = &app->session;
    int64_t seq = 1;

    if (session_view(app)->detail.row.info.status != TIDE_STATUS_RUNNING)
        return 0;
    for (int i = 0; i < tab->n_parts; i++)
        for (size_t j = 0; j < part_view(tab->parts[i])->n; j++)
            if (part_view(tab->parts[i])->at[j].type == TRANSCRIPT_RUN)
                seq = part_view(tab->parts[i])->at[j].seq;
    return seq;
}

void talk_lines(struct app *app, struct sheet *s, int columns)
{
    struct session_tab *tab = &app->session;
    int entry = 0;

    tab->runs_from = run_began(app);
    if (tab->n_parts && part_view(tab->parts[0])->before)
        lines_add(&s->lines, STR("↑ earlier"), columns, 1, &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
    for (int i = 0; i < tab->n_parts; i++) {
        const struct talk_view *part = part_view(tab->parts[i]);
        int64_t until = i + 1 < tab->n_parts ? first_seq(part_view(tab->parts[i + 1])) : INT64_MAX;

        for (size_t j = 0; j < part->n && part->at[j].seq < until; j++)
            add_entry(tab, s, &part->at[j], entry++, columns);
    }
    if (tab->streamed.len) {
        add_gap(s);
        lines_add(&s->lines, buf_view(&tab->streamed), columns, TEXT_LINES,
                  &(struct line){.lead = "●", .lead_ink = INK_RUNNING, .indent = 2, .entry = -1});
    }
    add_queue(app, s, columns);
    if (!s->lines.n)
        lines_add(&s->lines, STR("Nothing was said or done yet."), columns, 1,
                  &(struct line){.ink = INK_DIM, .indent = 2, .entry = -1});
}

bool talk_key(struct app *app, const struct key *k)
{
    struct session_tab *s = &app->session;
    struct sheet *sheet = &s->sheets[TAB_TALK];
    int64_t seq = sheet->scroll.at < (int)sheet->lines.n ? sheet->lines.at[sheet->scroll.at].seq : 0;
    bool up = k->what == KEY_IS_UP || k->what == KEY_IS_PAGE_UP || k->what == KEY_IS_WHEEL_UP ||
              k->what == KEY_IS_HOME || key_is(k, 'k') || key_is(k, 'g');

    if (k->what == KEY_IS_ENTER && seq) {
        fold_entry(s, seq);
        sheet->scroll.follow = false;
        sheet->columns = 0;
        return true;
    }
    if (up && sheet->scroll.top == 0 && s->n_parts && part_view(s->parts[0])->before)
        app_want(app, ASK_TALK);
    return false;
}
