/* SPDX-License-Identifier: Apache-2.0 */
/* The line is redrawn ten times a second at most, and never before the work has lasted half a second. */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 500
#define EVERY_MS 100
#define BAR 24

volatile int stop_signal;

static int64_t monotonic_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void progress_init(struct progress *p, const char *what, const char *of)
{
    *p = (struct progress){.what = what, .of = of};
    p->next_ms = isatty(STDERR_FILENO) ? monotonic_ms() + FIRST_MS : INT64_MAX;
}

static void draw(const struct progress *p, uint64_t done, uint64_t total)
{
    int full = total ? (int)((double)done / (double)total * BAR) : 0;
    char bar[BAR * 3 + 1];
    size_t n = 0;

    full = full > BAR ? BAR : full;
    for (int i = 0; i < BAR; i++)
        n += (size_t)snprintf(bar + n, sizeof(bar) - n, "%s", i < full ? "█" : "░");
    if (total)
        fprintf(stderr, "\r%s %s %3d%%  %" PRIu64 " of %" PRIu64 " %s\033[K", p->what, bar,
                (int)((double)done / (double)total * 100), done, total, p->of);
    else
        fprintf(stderr, "\r%s  %" PRIu64 " %s\033[K", p->what, done, p->of);
    fflush(stderr);
}

int progress_step(struct progress *p, uint64_t done, uint64_t total)
{
    int64_t now;

    if (p->next_ms != INT64_MAX && (now = monotonic_ms()) >= p->next_ms) {
        draw(p, done, total);
        p->shown = true;
        p->next_ms = now + EVERY_MS;
    }
    return stop_signal != 0;
}

void progress_done(struct progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
