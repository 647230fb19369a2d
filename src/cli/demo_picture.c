/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The demo on a terminal: one line per run, each beginning where the one before was cut off, so that the runs form a
 * staircase. The line of the current run is drawn again as it grows, so it must never reach the edge: a line that wraps
 * cannot be drawn over. A narrow terminal gets no pid, a very narrow one no bar. Without a terminal: one plain line per run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/demo.h"

#define WIDE 60 /* columns from which on the pid is shown */
#define LEFT 20 /* columns before the bar with the pid, */
#define LEFT_NARROW 8
#define RIGHT 18  /* and behind it: " killed after 9999" */
#define BAR_MIN 6 /* shorter ones say nothing */
#define MARGIN 8  /* what a wide terminal leaves free at its right */

void demo_picture_begin(struct out *out, int64_t steps, const char *store)
{
    const char *gap = out->tty && terminal_columns(STDOUT_FILENO) < WIDE ? "\n" : " ";

    outf(out,
         "%sTidemark: a worker writes a session of %" PRId64 " steps.%sIt is killed with SIGKILL %d times.%s\n"
         "The store is thrown away at the end:%s%s\n\n",
         color_code(out, COLOR_BOLD), steps, gap, DEMO_KILLS, color_code(out, COLOR_NONE), gap, store);
}

static void plain(struct out *out, int number, const struct demo_run *run)
{
    outf(out, "run %d  pid %d  ", number, (int)run->pid);
    if (run->mark > 0)
        outf(out, "goes on from the mark at %" PRId64 ", ", run->mark);
    outf(out, "acknowledges up to %" PRId64 ", is %s\n", run->acked, run->killed ? "killed with SIGKILL" : "done");
}

static int column(int64_t step, int64_t steps, int width)
{
    return (int)(step * width / (steps ? steps : 1));
}

static void bar(struct out *out, int from, int to, int width, const struct demo_run *run)
{
    outf(out, "%s", color_code(out, COLOR_DIM));
    for (int i = 0; i < from; i++)
        outf(out, "·");
    outf(out, "%s%s", color_code(out, COLOR_NONE), color_code(out, run->killed ? COLOR_BLUE : COLOR_GREEN));
    for (int i = from; i < to; i++)
        outf(out, "█");
    outf(out, "%s", color_code(out, COLOR_NONE));
    if (run->killed)
        outf(out, "%s✖%s", color_code(out, COLOR_RED), color_code(out, COLOR_NONE));
    for (int i = to + run->killed; i < width + 1; i++)
        outf(out, " ");
}

/* Columns of the bar; 0: there is no room for one. */
static int bar_width(int columns)
{
    int width = columns >= WIDE ? columns - LEFT - RIGHT - MARGIN : columns - LEFT_NARROW - RIGHT - 1;

    return width < BAR_MIN ? 0 : width;
}

static void put_end(struct out *out, const struct demo_run *run, int64_t reached)
{
    if (run->killed)
        outf(out, " %skilled%s after %" PRId64, color_code(out, COLOR_RED), color_code(out, COLOR_NONE), reached);
    else
        outf(out, " %sfinished%s", color_code(out, COLOR_GREEN), color_code(out, COLOR_NONE));
}

void demo_picture_run(struct out *out, int64_t steps, int number, const struct demo_run *run, bool ended)
{
    int columns = terminal_columns(STDOUT_FILENO), width = bar_width(columns);
    int64_t reached = run->acked > run->mark ? run->acked : run->mark;

    if (!out->tty) {
        if (ended)
            plain(out, number, run);
        return;
    }
    outf(out, "\r run %d ", number);
    if (columns >= WIDE)
        outf(out, " pid %-7d ", (int)run->pid);
    if (width > 0)
        bar(out, column(run->mark, steps, width), column(reached, steps, width), width, run);
    if (ended)
        put_end(out, run, reached);
    else
        outf(out, " %" PRId64 " of %" PRId64, reached, steps);
    outf(out, "\033[K%s", ended ? "\n" : "");
}
