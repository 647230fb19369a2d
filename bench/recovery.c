/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery of runs whose process was killed, in stores that hold 100,000 and 1,000,000 sessions: from the start of the
 * command to its end. What it needs beyond its own work is the syncs of its commits.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 5
#define INTERRUPTED 1000

void interrupt_runs(const struct bench *b, const char *name, int round, int n)
{
    int status;
    pid_t pid = fork();

    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        tide_store *store = store_again(b, name);
        struct tide_err err;

        for (int i = 0; i < n; i++) {
            char id[32];
            tide_session *s;
            tide_run *run;

            snprintf(id, sizeof id, "r%d_%05d", round, i);
            must(tide_session_create(store, id, NULL, &s, &err), &err, "create");
            must(tide_run_start(s, NULL, &run, &err), &err, "start");
            must(tide_run_set(run, "k", "1", &err), &err, "set");
        }
        raise(SIGKILL);
    }
    must_sys(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "child");
}

/* Seconds of `tidemark recover`; it must say that it found them all. */
static double recover_once(const struct bench *b, const char *name, int n)
{
    char command[900], line[4096] = "", want[64];
    double start;
    FILE *out;

    snprintf(command, sizeof command, "'%s' --store '%s/%s.db' --json recover | tail -n 1", b->tidemark, b->dir, name);
    start = now_s();
    out = popen(command, "r"); /* NOLINT(cert-env33-c): our own paths */
    must_sys(out != NULL, "popen");
    if (!fgets(line, sizeof line, out))
        line[0] = 0;
    must_sys(pclose(out) == 0, "tidemark recover");
    start = now_s() - start;
    snprintf(want, sizeof want, "\"interrupted\":%d", n);
    if (!strstr(line, want))
        fprintf(stderr, "bench: tidemark recover said %s", line);
    must_sys(strstr(line, want) != NULL, "tidemark recover");
    return start;
}

static double recover_among(const struct bench *b, const char *name, int sessions)
{
    int n = b->quick ? 50 : INTERRUPTED, rounds = b->quick ? 1 : ROUNDS;
    tide_store *store = store_new(b, name);
    double took[ROUNDS];

    fill_store(store, sessions);
    tide_store_close(store);
    for (int i = 0; i < rounds; i++) {
        interrupt_runs(b, name, i, n);
        took[i] = recover_once(b, name, n);
    }
    return median(took, (size_t)rounds);
}

void bench_recovery(const struct bench *b)
{
    double sync = 1 / raw_sync_rate(b, false, 0.3), few, many;
    char measured[64], beside[64];

    few = recover_among(b, "among_few", b->quick ? 1000 : 100000);
    many = recover_among(b, "among_many", b->quick ? 10000 : 1000000);
    snprintf(measured, sizeof measured, "%.3f s", many);
    snprintf(beside, sizeof beside, "1 s and 8 syncs: %.3f s", 1 + 8 * sync);
    row("recovery of 1,000 interrupted runs among 1,000,000 sessions", measured, beside, many / (1 + 8 * sync),
        "<=", 1);
    snprintf(beside, sizeof beside, "among 100,000: %.3f s", few);
    row("the same", measured, beside, many / few, "<=", 1.5);
}
