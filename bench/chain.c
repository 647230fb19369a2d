/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resuming a program that has done many steps: from the opened store to its first step answered from the log, beside one that
 * has done few; and what the answers to all of them cost. On both stores.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROUNDS 15
#define FEW 10
#define MANY 10000

static tide_store *open_url(const char *url)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct tide_err err;
    tide_store *store = NULL;

    must(tide_store_open(url, &opt, &store, &err), &err, "open a store");
    return store;
}

static void count_step(tide_run *r)
{
    const struct tide_step_spec spec = {
        .size = sizeof spec, .name = "count", .effect = TIDE_EFFECT_PURE, .args = "args", .args_len = 4};
    struct tide_err err;

    must(tide_run_step(r, &spec, step_nothing, NULL, NULL, &err), &err, "step");
}

static void make_chain(const char *url, const char *id, int steps)
{
    tide_store *store = open_url(url);
    struct tide_err err;
    tide_session *s;
    tide_run *r;

    must(tide_session_create(store, id, NULL, &s, &err), &err, "create");
    must(tide_run_start(s, NULL, &r, &err), &err, "start");
    for (int i = 0; i < steps; i++)
        count_step(r);
    tide_run_close(r);
    tide_session_close(s);
    tide_store_close(store);
}

/* Seconds to the first answer, and from there to the last of all. */
static double resume_chain(const char *url, const char *id, int steps, double *ret_rest)
{
    tide_store *store = open_url(url);
    struct tide_err err;
    double start = now_s(), first;
    tide_session *s;
    tide_run *r;

    must(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err), &err, "open");
    must(tide_run_resume(s, NULL, NULL, &r, &err), &err, "resume");
    count_step(r);
    first = now_s();
    for (int i = 1; i < steps; i++)
        count_step(r);
    *ret_rest = now_s() - first;
    tide_run_close(r);
    tide_session_close(s);
    tide_store_close(store);
    return first - start;
}

static void bench_on(const struct bench *b, const char *scheme, const char *what)
{
    double few[ROUNDS], many[ROUNDS], ratio[ROUNDS], rest[ROUNDS], ignored;
    int n = b->quick ? 500 : MANY;
    char url[400], measured[96], beside[64];

    snprintf(url, sizeof url, "%s:%s/%s-chain", scheme, b->dir, scheme);
    make_chain(url, "few", FEW);
    make_chain(url, "many", n);
    for (int i = 0; i < ROUNDS; i++) {
        few[i] = resume_chain(url, "few", FEW, &ignored);
        many[i] = resume_chain(url, "many", n, &rest[i]);
        ratio[i] = many[i] / few[i];
    }
    snprintf(measured, sizeof measured, "%.2f ms; all 10,000 answers: %.0f ms", median(many, ROUNDS) * 1e3,
             median(rest, ROUNDS) * 1e3);
    snprintf(beside, sizeof beside, "10 steps: %.2f ms", median(few, ROUNDS) * 1e3);
    row(what, measured, beside, median(ratio, ROUNDS), "<=", 2);
}

void bench_resumes(const struct bench *b)
{
    bench_on(b, "sqlite", "resume of 10,000 recorded steps: opened to the first answered");
    bench_on(b, "files", "files: the same");
}
