/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "terminal/progress.h"

static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
#define N_WATCHED (sizeof(watched) / sizeof(watched[0]))
static struct sigaction before[N_WATCHED];
static int signal_pipe = -1; /* its write end */

static void on_watched(int number)
{
    unsigned char byte = (unsigned char)number;
    int errno_before = errno;
    ssize_t n = write(signal_pipe, &byte, 1);

    (void)n; /* a pipe that is full holds enough of them */
    errno = errno_before;
}

int signal_pipe_open(void)
{
    struct sigaction watch = {.sa_handler = on_watched, .sa_flags = SA_RESTART};
    int pair[2];

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    signal_pipe = pair[1];
    for (size_t i = 0; i < N_WATCHED; i++)
        if (sigaction(watched[i], NULL, &before[i]) == 0 && (before[i].sa_handler != SIG_IGN || watched[i] == SIGCHLD))
            sigaction(watched[i], &watch, NULL);
    return pair[0];
}

void signal_pipe_close(int signals)
{
    if (signals < 0)
        return;
    for (size_t i = 0; i < N_WATCHED; i++)
        sigaction(watched[i], &before[i], NULL);
    close(signals);
    close(signal_pipe);
    signal_pipe = -1;
}

/* ---- those that stop us ---- */

void signals_catch(void (*handler)(int), int flags, bool default_too)
{
    static const int stopping[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, now;

    for (size_t i = 0; i < sizeof(stopping) / sizeof(stopping[0]); i++)
        if (sigaction(stopping[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN &&
            (default_too || now.sa_handler != SIG_DFL))
            sigaction(stopping[i], &act, NULL);
}

static void on_note(int number)
{
    stop_signal = number;
}

void signals_note(int flags)
{
    signals_catch(on_note, flags, true);
}

#define SECOND_MS 700 /* one that comes sooner is the same wish: what was stopped is still to be recorded */

static struct {
    void (*stop)(void *work, bool person);
    void *volatile work;
} stopped;

static void on_stop(int number)
{
    static _Atomic int64_t first_ms;
    int64_t none = 0;

    if (!atomic_compare_exchange_strong(&first_ms, &none, monotonic_ms()) && monotonic_ms() - first_ms >= SECOND_MS) {
        signal(number, SIG_DFL);
        raise(number);
    }
    stop_signal = number;
    if (stopped.work)
        stopped.stop(stopped.work, number == SIGINT);
}

void signals_stop(void (*stop)(void *work, bool person), void *work)
{
    stopped.stop = stop;
    stopped.work = work;
    if (work)
        signals_catch(on_stop, 0, false); /* one that came before has ended its handler: the next ends the process */
}

bool signals_stopped(void)
{
    if (stop_signal && stopped.work)
        stopped.stop(stopped.work, stop_signal == SIGINT);
    return stop_signal != 0;
}

void signals_end_us(void)
{
    signals_catch(SIG_DFL, 0, true);
}
