/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line is redrawn ten times a second at most, and never before the work has lasted half a second. It is cut to the
 * terminal's width: one that wraps cannot be drawn over.
 */
#include "terminal/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "terminal/output.h"

#define FIRST_MS 500
#define EVERY_MS 100
#define BAR 24

atomic_int stop_signal;

void progress_init(struct progress *p, const char *what, const char *of)
{
    *p = (struct progress){.what = what, .of = of};
    p->next_ms = isatty(STDERR_FILENO) ? monotonic_ms() + FIRST_MS : INT64_MAX;
}

static void draw_bar(const struct progress *p, uint64_t done, uint64_t total)
{
    int columns = terminal_columns(STDERR_FILENO) - 1, full = total ? (int)((double)done / (double)total * BAR) : 0;
    char bar[BAR * 3 + 2] = "", figures[80];
    size_t n = 0;

    if (total)
        snprintf(figures, sizeof(figures), "%3d%%  %" PRIu64 " of %" PRIu64 " %s",
                 (int)((double)done / (double)total * 100), done, total, p->of);
    else
        snprintf(figures, sizeof(figures), "%" PRIu64 " %s", done, p->of);
    for (int i = 0; i < BAR && total && columns >= (int)(strlen(p->what) + strlen(figures)) + BAR + 2; i++)
        n += (size_t)snprintf(bar + n, sizeof(bar) - n, "%s%s", i < full ? "█" : "░", i == BAR - 1 ? " " : "");
    fprintf(stderr, "\r%s %s%.*s\033[K", p->what, bar, columns > 20 ? columns - (int)strlen(p->what) - 1 : 0, figures);
    fflush(stderr);
}

int progress_step(struct progress *p, uint64_t done, uint64_t total)
{
    int64_t now;

    if (p->next_ms != INT64_MAX && (now = monotonic_ms()) >= p->next_ms) {
        draw_bar(p, done, total);
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

/* Signals are kept off between the look at what they set and the wait that they end: one that came there would end nothing. */
bool await_any(struct pollfd *p, nfds_t n, int64_t timeout_ms)
{
    const struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
    sigset_t all, before, waiting;
    bool came;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    waiting = before;
    sigdelset(&waiting, SIGCHLD); /* the process that waits for children as well keeps it off at all other times */
    came = stop_signal || (ppoll(p, n, timeout_ms < 0 ? NULL : &time, &waiting) < 0 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !came;
}

bool await_change(tide_watch *watch)
{
    struct pollfd p[] = {{.fd = tide_watch_fd(watch), .events = POLLIN}, {.fd = STDOUT_FILENO, .events = 0}};

    return await_any(p, 2, -1) ? !(p[1].revents & (POLLERR | POLLHUP)) : !stop_signal;
}
