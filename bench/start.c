/* SPDX-License-Identifier: Apache-2.0 */
/* Process start to first answer: CPU of `tidemark sessions show` on the store with 100,000 sessions. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define TRIES 41

static double cpu_ms(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e3 +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e3;
}

static double show_once(const struct bench *b, const char *store)
{
    struct rusage usage;
    int status;
    pid_t pid = fork();

    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, 1);
        execl(b->tidemark, "tidemark", "--store", store, "sessions", "show", "s000500", (char *)NULL);
        _exit(127);
    }
    must_sys(wait4(pid, &status, 0, &usage) == pid && status == 0, "tidemark sessions show");
    return cpu_ms(&usage);
}

void bench_start(const struct bench *b)
{
    double took[TRIES];
    char store[512], measured[64];

    snprintf(store, sizeof store, "%s/many.db", b->dir); /* made by bench_group */
    for (int i = 0; i < TRIES; i++)
        took[i] = show_once(b, store);
    snprintf(measured, sizeof measured, "%.1f ms of CPU", median(took, TRIES));
    row("process start to first answer, 100,000 sessions", measured, "20 ms", median(took, TRIES) / 20, "<=", 1);
}
