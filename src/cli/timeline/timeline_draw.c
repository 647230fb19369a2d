/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The picture of a session's life. Every row is: a glyph, a name, a word, the bar, how long it took, how it ended. All
 * lanes share one axis, on which a later run begins where the earlier one was cut. Without colours the
 * glyphs alone must show everything. A line never passes the width it was given.
 */
#include "cli/timeline/timeline_draw.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "cli/session_view.h"
#include "cli/timeline/timeline_axis.h"
#include "cli/timeline/timeline_text.h"

#define COLUMNS_MIN TIMELINE_COLUMNS
#define COLUMNS_MAX 132
#define NAME_MIN 10
#define NAME_MAX 24
#define LEFT 3    /* margin, glyph, blank */
#define TOOK 7    /* "2m 03s" */
#define ENDED 9   /* "ran again" */
#define NOTE_AT 5 /* where the line below a row begins */

struct drawing {
    const struct timeline *t;
    struct out *out;
    struct axis axis;
    int columns, name, word, bar;
};

/* ---- bars ---------------------------------------------------------------------------------------------------------------- */

static int column(const struct drawing *d, int64_t at)
{
    return axis_column(&d->axis, at, d->bar);
}

struct look {
    const char *glyph;
    enum color color;
};

static struct look look_of(const struct tl_item *item)
{
    static const struct look steps[TL_OUTCOMES] = {
        [TL_OPEN] = {"█", COLOR_BOLD},      [TL_RAN] = {"█", COLOR_GREEN},  [TL_FAILED] = {"▓", COLOR_RED},
        [TL_UNKNOWN] = {"▒", COLOR_YELLOW}, [TL_CUT] = {"▓", COLOR_YELLOW}, [TL_SETTLED] = {"▚", COLOR_GREEN},
    };

    if (item->type == TL_STEP || item->type == TL_NODE)
        return steps[item->outcome];
    return item->type == TL_WAIT ? (struct look){"╍", COLOR_CYAN} : (struct look){"┈", COLOR_BLUE};
}

/* One span at its place on the axis; `end` (NULL: none) is put in its last column. */
static void put_span(const struct drawing *d, int64_t from, int64_t to, struct look look, const char *end)
{
    int a = column(d, from), b = column(d, to);

    a = a >= d->bar ? d->bar - 1 : a;
    b = b <= a ? a + 1 : b;
    tl_put_repeated(d->out, " ", a);
    outf(d->out, "%s", color_code(d->out, look.color));
    tl_put_repeated(d->out, look.glyph, b - a - (end != NULL));
    outf(d->out, "%s", color_code(d->out, COLOR_NONE));
    if (end)
        outf(d->out, "%s%s%s", color_code(d->out, COLOR_RED), end, color_code(d->out, COLOR_NONE));
    tl_put_repeated(d->out, " ", d->bar - b);
}

/* Many spans or marks in one row. */
static void put_cells(const struct drawing *d, const bool *set, struct look look)
{
    outf(d->out, "%s", color_code(d->out, look.color));
    for (int i = 0; i < d->bar; i++)
        buf_add_str(&d->out->text, str_from(set[i] ? look.glyph : " "));
    outf(d->out, "%s", color_code(d->out, COLOR_NONE));
}

/* ---- rows ---------------------------------------------------------------------------------------------------------------- */

static void row_begin(const struct drawing *d, const char *glyph, enum color color, const char *name, const char *word)
{
    outf(d->out, " ");
    tl_put_colored(d->out, color, glyph, 1);
    outf(d->out, " ");
    tl_put_padded(d->out, name, d->name);
    outf(d->out, " ");
    tl_put_colored(d->out, COLOR_DIM, word, d->word);
    outf(d->out, " ");
}

static void row_end(const struct drawing *d, const char *took, const char *ended, enum color color)
{
    tl_put_repeated(d->out, " ", TOOK + 1 - text_columns(str_from(took)));
    outf(d->out, "%s  ", took);
    tl_put_colored(d->out, color, ended, ENDED);
    tl_end_line(d->out);
}

static void put_note(const struct drawing *d, const char *glyph, const char *text)
{
    if (!text[0])
        return;
    outf(d->out, " ");
    tl_put_colored(d->out, COLOR_DIM, glyph, 1);
    tl_put_repeated(d->out, " ", NOTE_AT - 2);
    tl_put_colored(d->out, COLOR_DIM, text, d->columns - NOTE_AT);
    tl_end_line(d->out);
}

static void draw_item(const struct drawing *d, const struct tl_run *run, const struct tl_item *item)
{
    static const char *const glyphs[] = {[TL_STEP] = "├", [TL_WAIT] = "◆", [TL_SLEEP] = "◌", [TL_NODE] = "▫"};
    struct look look = look_of(item);
    bool open = item->outcome == TL_OPEN, known = item->end_ms >= item->start_ms && item->end_ms;
    char took[24], tries[96] = "";

    row_begin(d, glyphs[item->type], item->type == TL_STEP || item->type == TL_NODE ? COLOR_DIM : look.color,
              item->name, item->word);
    put_span(d, item->from, open ? run->to : item->to, look, item->outcome == TL_CUT ? "✗" : NULL);
    row_end(d, known && item->outcome != TL_CUT ? tl_took(took, item->end_ms - item->start_ms) : "",
            item->again && item->outcome == TL_RAN ? "ran again" : tl_outcome_word(item), look.color);
    put_note(d, "│", item->found);
    put_note(d, "│", item->note);
    if (item->tries > 1)
        snprintf(tries, sizeof(tries), "%d attempts", item->tries);
    put_note(d, "│", tries);
    if ((item->type == TL_WAIT || item->type == TL_SLEEP) && item->outcome == TL_RAN && item->kept > 0) {
        snprintf(tries, sizeof(tries), "continued from here: %" PRId64 " finished %s%s not run again", item->kept,
                 d->t->sum.nodes ? "node" : "step", item->kept == 1 ? "" : "s");
        put_note(d, "│", tries);
    }
}

/* "⋮ 960 more: 958 ran, 2 failed" */
static void draw_omitted(const struct drawing *d, const struct tl_run *run)
{
    static const char *const words[TL_OUTCOMES] = {"open", "ran", "failed", "unknown", "interrupted", "settled"};
    char text[160];
    int64_t n = 0;
    size_t len;

    for (int i = 0; i < TL_OUTCOMES; i++)
        n += run->omitted[i];
    if (n == 0)
        return;
    len = (size_t)snprintf(text, sizeof(text), "%" PRId64 " more, not drawn", n);
    for (int i = 0; i < TL_OUTCOMES; i++)
        if (run->omitted[i] > 0 && len < sizeof(text))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %" PRId64 " %s", strchr(text, ':') ? "," : ":",
                                    run->omitted[i], words[i]);
    put_note(d, "⋮", text);
}

/* "build, test, …" */
static void put_kept_names(const struct drawing *d, const struct tl_kept *k)
{
    AUTO(buf_done) struct buf text = BUF_INIT(2 * sizeof(k->names));
    const char *name = k->names;

    for (size_t i = 0; i < k->n_names; i++, name += strlen(name) + 1)
        buf_addf(&text, "%s%s", i ? ", " : "", name);
    if ((int64_t)k->n_names < k->n)
        buf_add_str(&text, STR(", …"));
    put_note(d, "┊", buf_cstr(&text));
}

static void draw_kept(const struct drawing *d, const struct tl_kept *k)
{
    bool set[COLUMNS_MAX] = {false};
    char label[32];

    if (k->n == 0)
        return;
    for (size_t i = 0; i < k->n_places; i++) {
        int a = column(d, k->from[i]), b = column(d, k->to[i]);

        for (int c = a; c < (b > a ? b : a + 1) && c < d->bar; c++)
            set[c] = true;
    }
    snprintf(label, sizeof(label), "%" PRId64 " kept", k->n);
    row_begin(d, "┊", COLOR_DIM, label, "");
    put_cells(d, set, (struct look){"░", COLOR_DIM});
    row_end(d, "", "not rerun", COLOR_DIM);
    put_kept_names(d, k);
}

static void draw_marks(const struct drawing *d, const struct tl_run *run)
{
    static const struct look looks[TL_MARK_KINDS] = {
        [TL_CHECKPOINT] = {"◇", COLOR_CYAN}, [TL_TOKEN] = {"○", COLOR_YELLOW},    [TL_RESUME] = {"▸", COLOR_GREEN},
        [TL_MESSAGE] = {"•", COLOR_NONE},    [TL_MODEL] = {"▪", COLOR_BLUE},      [TL_ERROR] = {"✗", COLOR_RED},
        [TL_INPUT] = {"↓", COLOR_CYAN},      [TL_ROLLBACK] = {"↶", COLOR_YELLOW},
    };

    for (int k = 0; k < TL_MARK_KINDS; k++) {
        const struct tl_marks *m = &run->marks[k];
        bool set[COLUMNS_MAX] = {false};
        char n[24];

        if (m->n == 0)
            continue;
        for (size_t i = 0; i < m->n_at; i++) {
            int c = column(d, m->at[i]);

            set[c < d->bar ? c : d->bar - 1] = true;
        }
        snprintf(n, sizeof(n), "%" PRId64, m->n);
        row_begin(d, "│", COLOR_DIM, tl_mark_words[k], "");
        put_cells(d, set, looks[k]);
        row_end(d, n, "", COLOR_NONE);
    }
}

/* ---- lanes --------------------------------------------------------------------------------------------------------------- */

static void draw_head(const struct drawing *d, const struct tl_run *run, const struct tl_run *before)
{
    struct out *out = d->out;
    char clock[TIME_CLOCK_SIZE], took[24], line[256] = "";
    int64_t gap = before && before->ended_ms ? run->started_ms - before->ended_ms : 0;
    size_t len = 0;

    if (run->number == 0) {
        outf(out, "\n %s●%s before the first run\n", color_code(out, COLOR_DIM), color_code(out, COLOR_NONE));
        return;
    }
    if (gap > 0)
        len += (size_t)snprintf(line, sizeof(line), ", %s later", tl_took(took, gap));
    if (run->from_number)
        len += (size_t)snprintf(line + len, sizeof(line) - len, ", continues run %" PRId64, run->from_number);
    else if (run->from_id[0])
        len += (size_t)snprintf(line + len, sizeof(line) - len, ", continues %s", run->from_id);
    if (run->pid > 0)
        len += (size_t)snprintf(line + len, sizeof(line) - len, ", pid %" PRId64, run->pid);
    if (run->program[0] && len < sizeof(line) && !(before && strcmp(before->program, run->program) == 0))
        snprintf(line + len, sizeof(line) - len, ": %s", run->program);
    outf(out, "\n %s●%s ", color_code(out, COLOR_GREEN), color_code(out, COLOR_NONE));
    outf(out, "%srun %" PRId64 "%s  %s", color_code(out, COLOR_BOLD), run->number, color_code(out, COLOR_NONE),
         time_clock(clock, run->started_ms));
    out_fit(out, line, d->columns - 28);
    tl_end_line(out);
}

static const struct {
    const char *glyph, *word;
    enum color color;
} ends[] = {
    [TL_RUN_OPEN] = {"▸", "running", COLOR_GREEN},
    [TL_RUN_GONE] = {"✗", "its process is gone", COLOR_RED},
    [TL_RUN_WAITS] = {"◆", "waiting: nothing runs", COLOR_CYAN},
    [TL_COMPLETED] = {"✓", "completed", COLOR_GREEN},
    [TL_RUN_FAILED] = {"✗", "failed", COLOR_RED},
    [TL_CANCELLED] = {"■", "cancelled", COLOR_YELLOW},
    [TL_INTERRUPTED] = {"✗", "interrupted", COLOR_RED},
};

static void draw_end(const struct drawing *d, const struct tl_run *run)
{
    struct out *out = d->out;
    const char *reason = run->reason[0] ? reason_words(run->reason) : "";
    bool says = reason[0] && strcmp(reason, ends[run->end].word) != 0 && !(run->end == TL_RUN_FAILED && run->error[0]);
    char clock[TIME_CLOCK_SIZE], line[512];

    if (run->number == 0)
        return;
    snprintf(line, sizeof(line), "%s%s%s%s%s%s%s%s", ends[run->end].word, says ? " (" : "", says ? reason : "",
             says ? ")" : "", run->ended_ms ? run->late ? ", detected at " : " at " : "",
             run->ended_ms ? time_clock(clock, run->ended_ms) : "", run->error[0] ? ": " : "", run->error);
    outf(out, " ");
    tl_put_colored(out, ends[run->end].color, ends[run->end].glyph, 1);
    outf(out, " %s", color_code(out, ends[run->end].color));
    out_fit(out, line, d->columns - LEFT);
    outf(out, "%s\n", color_code(out, COLOR_NONE));
}

static void draw_run(const struct drawing *d, const struct tl_run *run, const struct tl_run *before)
{
    draw_head(d, run, before);
    draw_kept(d, &run->kept);
    for (size_t i = 0; i < run->n_items; i++) {
        if (i == TL_ITEMS_FIRST)
            draw_omitted(d, run);
        draw_item(d, run, &run->items[i]);
    }
    draw_marks(d, run);
    draw_end(d, run);
}

/* ---- all of it ----------------------------------------------------------------------------------------------------------- */

static void widen_column(int *width, const char *text, int max)
{
    int columns = text_columns(str_from(text));

    columns = columns > max ? max : columns;
    *width = columns > *width ? columns : *width;
}

static void measure_columns(struct drawing *d, int columns)
{
    d->columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
    d->name = NAME_MIN;
    for (size_t r = 0; r < d->t->n_runs; r++) {
        const struct tl_run *run = &d->t->runs[r];

        for (size_t i = 0; i < run->n_items; i++) {
            widen_column(&d->name, run->items[i].name, d->columns >= 100 ? NAME_MAX : NAME_MAX - 8);
            widen_column(&d->word, run->items[i].word, (int)sizeof(run->items[i].word));
        }
        for (int k = 0; k < TL_MARK_KINDS; k++)
            if (run->marks[k].n > 0)
                widen_column(&d->name, tl_mark_words[k], NAME_MAX);
    }
    d->bar = d->columns - LEFT - d->name - 1 - d->word - 1 - 1 - TOOK - 2 - ENDED;
}

static void draw_title(const struct drawing *d)
{
    struct out *out = d->out;
    const struct timeline *t = d->t;
    int status = text_columns(str_from(t->standing)), left = d->columns - status - 2;
    int id = (int)strlen(t->id);
    const struct tide_session_info info = {.status = t->status, .outcome = t->outcome};

    outf(out, "%s%s%s", color_code(out, COLOR_BOLD), t->id, color_code(out, COLOR_NONE));
    if (t->title[0] && left - id > 8) {
        outf(out, "  ");
        id += 2 + out_fit(out, t->title, left - id - 4);
    }
    tl_put_repeated(out, " ", left - id);
    outf(out, "  ");
    out_colored(out, session_color(&info), t->standing);
    tl_end_line(out);
}

/* The axis above the lanes, with a tick where each run begins. */
static void draw_axis(const struct drawing *d)
{
    struct out *out = d->out;
    const struct axis *a = &d->axis;
    bool ticks[COLUMNS_MAX] = {false};
    char day[TIME_PEOPLE_SIZE], took[24];

    for (size_t i = 0; i < d->t->n_runs; i++)
        if (column(d, d->t->runs[i].from) < d->bar)
            ticks[column(d, d->t->runs[i].from)] = true;
    outf(out, "%s%s, over %s; long pauses are drawn shorter%s\n\n", color_code(out, COLOR_DIM),
         time_people(day, a->at[0]), tl_took(took, a->at[a->n - 1] - a->at[0]), color_code(out, COLOR_NONE));
    tl_put_repeated(out, " ", LEFT + d->name + 1 + d->word + 1);
    outf(out, "%s", color_code(out, COLOR_DIM));
    for (int i = 0; i < d->bar; i++)
        outf(out, "%s", ticks[i] ? (i == 0 ? "├" : "┼") : i == d->bar - 1 ? "┤" : "─");
    outf(out, "%s\n", color_code(out, COLOR_NONE));
}

/* ---- the sum of it ------------------------------------------------------------------------------------------------------ */

/* One part of the summary: behind a semicolon, and on a line of its own when the last one is full. */
static void put_part(const struct drawing *d, int *at, enum color color, const char *text)
{
    int columns = text_columns(str_from(text));

    if (*at > 0)
        outf(d->out, ";");
    if (*at > 0 && *at + 3 + columns > d->columns) {
        outf(d->out, "\n");
        *at = 0;
    }
    outf(d->out, "%s", *at > 0 ? " " : "");
    out_colored(d->out, color, text);
    *at += 2 + columns;
}

static void put_finished(const struct drawing *d, int *at)
{
    const struct tl_summary *s = &d->t->sum;
    int64_t n = s->once + s->repeated;
    char text[128], again[64] = "";

    if (s->repeated)
        snprintf(again, sizeof(again), ", %" PRId64 " of them run again", s->repeated);
    else if (n > 0)
        snprintf(again, sizeof(again), ", %s", n == 1 ? "not run again" : "none of them run again");
    if (s->nodes) {
        snprintf(text, sizeof(text), "%" PRId64 " node%s complete", s->nodes, s->nodes == 1 ? "" : "s");
        put_part(d, at, COLOR_GREEN, text);
    }
    if (s->nodes && n == 0)
        return;
    snprintf(text, sizeof(text), "%" PRId64 " step%s finished%s", n, n == 1 ? "" : "s", again);
    put_part(d, at, s->repeated ? COLOR_RED : COLOR_GREEN, text);
}

static void draw_summary(const struct drawing *d)
{
    const struct tl_summary *s = &d->t->sum;
    const struct {
        int64_t n;
        const char *one, *many; /* many NULL: the same */
        bool always;
    } parts[] = {{s->begun_again, "interrupted and run again", NULL, false},
                 {s->settled, "interrupted and found to have happened", NULL, false},
                 {s->failed, "failed", NULL, false},
                 {s->unknown, "unknown", NULL, false},
                 {s->cut, "interrupted", NULL, false},
                 {s->open, "running", NULL, false},
                 {s->waits, "wait", "waits", true},
                 {s->sleeps, "sleep", "sleeps", false},
                 {s->interruptions, "interruption", "interruptions", true}};
    char text[96];
    int at = 0;

    put_finished(d, &at);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(text, sizeof(text), "%" PRId64 " %s", parts[i].n,
                 parts[i].many && parts[i].n != 1 ? parts[i].many : parts[i].one);
        if (parts[i].n > 0 || parts[i].always)
            put_part(d, &at, COLOR_NONE, text);
    }
    outf(d->out, "\n");
    if (s->not_compared)
        outf(d->out, "%sthe last %" PRId64 " were not checked for repetition: there are too many%s\n",
             color_code(d->out, COLOR_DIM), s->not_compared, color_code(d->out, COLOR_NONE));
}

void timeline_draw(const struct timeline *t, struct out *out, int columns)
{
    struct drawing d = {.t = t, .out = out};

    measure_columns(&d, columns);
    draw_title(&d);
    if (t->n_runs > 0) {
        axis_init(&d.axis, t);
        draw_axis(&d);
    } else {
        outf(out, "%sno run, no message, nothing to draw: %" PRId64 " event%s%s\n", color_code(out, COLOR_DIM),
             t->sum.events, t->sum.events == 1 ? "" : "s", color_code(out, COLOR_NONE));
    }
    for (size_t i = 0; i < t->n_runs; i++) {
        if (i == TL_RUNS_FIRST && t->omitted_runs > 0)
            outf(out, "\n ⋮ %" PRId64 " more runs, not drawn\n", t->omitted_runs);
        draw_run(&d, &t->runs[i], i > 0 ? &t->runs[i - 1] : NULL);
    }
    outf(out, "\n");
    draw_summary(&d);
    if (t->sum.other > 0)
        outf(out, "%s%" PRId64 " event%s of other kinds%s\n", color_code(out, COLOR_DIM), t->sum.other,
             t->sum.other == 1 ? "" : "s", color_code(out, COLOR_NONE));
    axis_done(&d.axis);
}
