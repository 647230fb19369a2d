/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree on a terminal. It is drawn over itself: up to its first row, every row to its end and the rest of it erased, all
 * in one write, so that nothing flickers. No row is as wide as the window, because one that wraps cannot be drawn over; when
 * the window has become narrower since, the terminal has broken them, and as many more are taken back. A graph that is
 * longer than the window is shown as a part of it, around what runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "terminal/glyph.h"
#include "terminal/spinner.h"
#include "cli/graph/graph_view_internal.h"

#define TIME_COLUMNS 8

struct canvas {
    struct buf out;
    int columns, lines;
    struct graph_view *v;
};

static const char *paint_code(const struct canvas *c, const char *code)
{
    return c->v->color ? code : "";
}

static void end_line(struct canvas *c, int width)
{
    buf_addf(&c->out, "%s\033[K\n", paint_code(c, "\033[0m"));
    if (c->lines < VIEW_LINES)
        c->v->widths[c->lines] = (unsigned short)width;
    c->lines++;
}

/* ---- a row ---- */

static void put_sign(struct canvas *c, const struct progress_node *r)
{
    static const struct {
        const char *sign, *color;
    } signs[] = {
        [PROGRESS_WAITING] = {"·", "\033[2m"},   [PROGRESS_RUNNING] = {NULL, "\033[36m"},
        [PROGRESS_DONE] = {"✓", "\033[32m"},     [PROGRESS_FAILED] = {"✗", "\033[31m"},
        [PROGRESS_RETRY] = {"↻", "\033[33m"},    [PROGRESS_PARKED] = {"‖", "\033[33m"},
        [PROGRESS_NOT_TAKEN] = {"-", "\033[2m"},
    };
    const char *sign = signs[r->state].sign;

    buf_addf(&c->out, "%s%s%s ", paint_code(c, signs[r->state].color), sign ? sign : spinner_frame(c->v->frame),
             paint_code(c, "\033[0m"));
}

/* In columns of the same place in every row. */
static int put_padded(struct canvas *c, const char *text, int columns, bool right)
{
    AUTO(buf_done) struct buf fit = BUF_INIT(4096);
    int used = glyph_fit(&fit, str_from(text), columns);

    if (right)
        buf_addf(&c->out, "%*s", columns - used, "");
    buf_add_str(&c->out, buf_view(&fit));
    if (!right)
        buf_addf(&c->out, "%*s", columns - used, "");
    return columns;
}

static const char *row_time(char out[TIME_TAKEN_SIZE], const struct progress_node *r)
{
    out[0] = '\0';
    if (r->state == PROGRESS_RUNNING && r->began_ms)
        time_taken(out, monotonic_ms() - r->began_ms);
    else if ((r->state == PROGRESS_DONE && r->began_ms) || r->state == PROGRESS_FAILED || r->state == PROGRESS_RETRY)
        time_taken(out, r->ms);
    return out;
}

/* How much of what is inside is done, visits, tokens, cost, and what was last said of it. */
static void put_rest(struct buf *out, const struct progress_node *r)
{
    char text[TIME_TAKEN_SIZE], tokens[VIEW_TOKENS];
    int64_t left;

    if (r->inside > 0 && r->state != PROGRESS_WAITING)
        buf_addf(out, "  %" PRId64 "/%" PRId64, r->inside_done < r->inside ? r->inside_done : r->inside, r->inside);
    if (r->visit > 1)
        buf_addf(out, "  visit %" PRId64, r->visit);
    if (r->attempt > 1 && r->state == PROGRESS_RUNNING)
        buf_addf(out, "  attempt %d of %d", r->attempt, r->attempts);
    if (r->tokens)
        buf_addf(out, "  %s tokens", view_tokens(tokens, r->tokens));
    if (r->cost > 0)
        buf_addf(out, "  %.4f", r->cost);
    left = r->retry_at_ms - monotonic_ms();
    if (r->state == PROGRESS_RETRY && left > 0)
        buf_addf(out, "  again in %s", time_taken(text, left));
    if (r->note[0])
        buf_addf(out, "  %s", r->note);
}

static int name_columns(const struct graph_view *v, int columns)
{
    int most = columns / 3, longest = 4;

    for (size_t i = 0; i < v->progress.outline->n_nodes && longest < most; i++) {
        int n = text_columns(v->progress.outline->nodes[i].id);

        longest = n > longest ? n : longest;
    }
    return longest < most ? longest : most;
}

static void put_row(struct canvas *c, const struct progress_node *r, int name, bool last)
{
    AUTO(buf_done) struct buf rest = BUF_INIT(4096);
    char time[TIME_TAKEN_SIZE];
    int used = 4;

    buf_addf(&c->out, "%s%s%s ", paint_code(c, "\033[2m"), last ? "└" : "├", paint_code(c, "\033[0m"));
    put_sign(c, r);
    used += put_padded(c, r->node->id.ptr, name, false);
    used += put_padded(c, row_time(time, r), TIME_COLUMNS, true);
    put_rest(&rest, r);
    buf_addf(&c->out, "%s", paint_code(c, r->state == PROGRESS_FAILED ? "\033[31m" : "\033[2m"));
    used += glyph_fit(&c->out, buf_view(&rest), c->columns - used > 0 ? c->columns - used : 0);
    end_line(c, used);
}

/* ---- the window ---- */

static struct progress_node *at_row(const struct graph_view *v, size_t row)
{
    return &v->progress.nodes[v->order.nodes[row]];
}

/* The first that runs, else the first that has not begun; the last when all are over. */
static size_t focus_row(const struct graph_view *v)
{
    size_t open = v->progress.outline->n_nodes - 1;

    for (size_t i = v->progress.outline->n_nodes; i-- > 0;) {
        enum progress_state state = at_row(v, i)->state;

        if (state == PROGRESS_RUNNING || state == PROGRESS_RETRY || state == PROGRESS_FAILED ||
            state == PROGRESS_PARKED)
            open = i;
    }
    return open;
}

static void put_hidden(struct canvas *c, size_t from, size_t to, const char *where)
{
    int64_t done = 0, running = 0;
    char text[96];

    for (size_t i = from; i < to; i++) {
        done += at_row(c->v, i)->state == PROGRESS_DONE;
        running += at_row(c->v, i)->state == PROGRESS_RUNNING;
    }
    snprintf(text, sizeof(text), "⋮ %zu more %s: %" PRId64 " done, %" PRId64 " running", to - from, where, done,
             running);
    buf_addf(&c->out, "%s", paint_code(c, "\033[2m"));
    end_line(c, glyph_fit(&c->out, str_from(text), c->columns));
}

static void put_head(struct canvas *c)
{
    const struct graph_view *v = c->v;
    char time[TIME_TAKEN_SIZE], rest[112];
    size_t done = 0, passed = 0, n;
    int used;

    for (size_t i = 0; i < v->progress.outline->n_nodes; i++) {
        done += v->progress.nodes[i].state == PROGRESS_DONE;
        passed += v->progress.nodes[i].state == PROGRESS_NOT_TAKEN;
    }
    n = (size_t)snprintf(rest, sizeof(rest), "  %s  %zu/%zu nodes",
                         time_taken(time, monotonic_ms() - v->progress.began_ms), done,
                         v->progress.outline->n_nodes - passed);
    if (passed)
        snprintf(rest + n, sizeof(rest) - n, ", %zu not taken", passed);
    buf_addf(&c->out, "%s", paint_code(c, "\033[1m"));
    used = glyph_fit(&c->out, v->progress.outline->id, c->columns / 2);
    buf_addf(&c->out, "%s%s", paint_code(c, "\033[0m"), paint_code(c, "\033[2m"));
    used += glyph_fit(&c->out, str_from(rest), c->columns - used);
    end_line(c, used);
}

/* ---- all of it ---- */

static void go_up(struct canvas *c)
{
    const struct graph_view *v = c->v;
    int up = v->lines, columns = terminal_columns(STDERR_FILENO);

    for (int i = 0; columns < v->columns && i < v->lines && i < VIEW_LINES; i++) /* broken into so many */
        up += v->widths[i] ? (v->widths[i] - 1) / columns : 0;
    if (up > 0)
        buf_addf(&c->out, "\033[%dA\r", up);
}

void view_erase(struct graph_view *v)
{
    struct canvas c = {.out = BUF_INIT(256), .v = v};

    if (v->lines > 0) {
        go_up(&c);
        buf_add_str(&c.out, STR("\033[J"));
        view_write(STDERR_FILENO, buf_view(&c.out));
    }
    v->lines = 0;
    buf_done(&c.out);
}

static void put_rows(struct canvas *c, size_t from, size_t to)
{
    int name = name_columns(c->v, c->columns);

    for (size_t i = from; i < to; i++)
        put_row(c, at_row(c->v, i), name, i + 1 == c->v->progress.outline->n_nodes);
}

void view_draw(struct graph_view *v, bool last)
{
    struct winsize size;
    int rows = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
    int columns = terminal_columns(STDERR_FILENO);
    struct canvas c = {.out = BUF_INIT((size_t)8 << 20), .columns = columns - 1, .v = v};
    size_t n = v->progress.outline->n_nodes, room = rows > 6 ? (size_t)rows - 5 : 1;

    v->frame++;
    go_up(&c);
    put_head(&c);
    if (n <= room + 2) {
        put_rows(&c, 0, n);
    } else {
        size_t at = focus_row(v), from, to;

        /* Moves as little as it can, so that the eye can follow. */
        if (at < v->top || at >= v->top + room)
            v->top = at > room / 2 ? at - room / 2 : 0;
        if (v->top + room > n)
            v->top = n > room ? n - room : 0;
        from = v->top;
        to = from + room;
        if (from == 0) /* as many lines in any case */
            to++;
        else if (to == n)
            from--;
        if (from > 0)
            put_hidden(&c, 0, from, "above");
        put_rows(&c, from, to);
        if (to < n)
            put_hidden(&c, to, n, "below");
    }
    buf_add_str(&c.out, STR("\033[J"));
    view_write(STDERR_FILENO, buf_view(&c.out));
    v->lines = last ? 0 : c.lines;
    v->columns = columns;
    buf_done(&c.out);
}
