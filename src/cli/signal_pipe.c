/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signal_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

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

void signals_end_us(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now;

        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
    }
}
