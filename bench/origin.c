/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a proof of origin costs where a run begins. The same starts are made by two programs, in turn: by this one, and by one that is linked
 * with origin_none.c in place of the proofs (tidemark-bench-no-origin). Both read the proof's column; the other stores none.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 15

int child_run_starts(const char *path, int n)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    tide_session **sessions = calloc((size_t)n, sizeof(tide_session *));
    tide_store *store;
    struct tide_err err;
    tide_run *run;
    double start;

    must(tide_store_open(path, &opt, &store, &err), &err, "open");
    for (int i = 0; i < n; i++)
        must(tide_session_create(store, NULL, NULL, &sessions[i], &err), &err, "create");
    start = now_s();
    for (int i = 0; i < n; i++) {
        must(tide_run_start(sessions[i], NULL, &run, &err), &err, "start");
        tide_run_close(run);
    }
    printf("%.9f\n", now_s() - start);
    for (int i = 0; i < n; i++)
        tide_session_close(sessions[i]);
    tide_store_close(store);
    free(sessions);
    return 0;
}

static double starts(const char *program, const char *store, int n)
{
    char command[1200], line[64];
    FILE *out;
    double took = 0;

    snprintf(command, sizeof command, "rm -f '%s'*; '%s' --child-run-starts '%s' %d", store, program, store, n);
    out = popen(command, "r"); /* paths of our own */
    must_sys(out && fgets(line, sizeof line, out) && sscanf(line, "%lf", &took) == 1 && pclose(out) == 0, program);
    return took;
}

void bench_origin(const struct bench *b)
{
    double with[ROUNDS], without[ROUNDS], ratio[ROUNDS];
    char self[300], none[340], store[300], measured[64], beside[64];
    int n = b->quick ? 40 : 400;
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    must_sys(len > 0, "/proc/self/exe");
    self[len] = 0;
    snprintf(none, sizeof none, "%s-no-origin", self);
    snprintf(store, sizeof store, "%s/origin.db", b->dir);
    for (int i = 0; i < ROUNDS; i++) {
        bool first = i % 2 == 0;

        with[i] = first ? starts(self, store, n) : 0;
        without[i] = starts(none, store, n);
        with[i] = first ? with[i] : starts(self, store, n);
        ratio[i] = with[i] / without[i];
    }
    snprintf(measured, sizeof measured, "%.0f us", median(with, ROUNDS) / n * 1e6);
    snprintf(beside, sizeof beside, "without: %.0f us", median(without, ROUNDS) / n * 1e6);
    row("start and end of a run with its proofs of origin", measured, beside, median(ratio, ROUNDS), "<=", 1.05);
}
