/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that may be done again (pure): one sync each. One by one, by many threads of one process, and by many processes on
 * one store, which is what a machine with ten chats and a build has. Each thread and each process has a session of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 5
#define THREADS 100
#define LATENCIES 65536 /* of one process; later ones are not kept */

struct stepper {
    tide_session *s;
    tide_run *run;
};

static struct stepper stepper_open(tide_store *store)
{
    struct stepper p;
    struct tide_err err;

    must(tide_session_create(store, NULL, NULL, &p.s, &err), &err, "create");
    must(tide_run_start(p.s, NULL, &p.run, &err), &err, "start");
    return p;
}

static void stepper_close(struct stepper *p)
{
    tide_run_close(p->run);
    tide_session_close(p->s);
}

static void one_step(struct stepper *p)
{
    const struct tide_step_spec spec = {
        .size = sizeof spec, .name = "step", .effect = TIDE_EFFECT_PURE, .args = "args", .args_len = 4};
    struct tide_err err;

    must(tide_run_step(p->run, &spec, step_nothing, NULL, NULL, &err), &err, "step");
}

/* Steps a second: so many, and what is queued of the last is on disk. */
static double step_rate(struct stepper *p, int n)
{
    double start = now_s();
    struct tide_err err;

    for (int i = 0; i < n; i++)
        one_step(p);
    must(tide_session_flush(p->s, &err), &err, "flush");
    return n / (now_s() - start);
}

static void bench_one_by_one(const struct bench *b)
{
    double ours[ROUNDS], raw[ROUNDS], ratio[ROUNDS];
    tide_store *store = store_new(b, "pure");
    struct stepper p = stepper_open(store);
    char measured[64], beside[64];
    int n = b->quick ? 100 : 2000;

    step_rate(&p, n / 4);
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_sync_rate(b, false, b->quick ? 0.1 : 0.5);
        ours[i] = step_rate(&p, n);
        ratio[i] = ours[i] / raw[i];
    }
    stepper_close(&p);
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.0f steps/s", median(ours, ROUNDS));
    snprintf(beside, sizeof beside, "raw write+fdatasync, growing: %.0f/s", median(raw, ROUNDS));
    row("pure steps through the C call, one by one", measured, beside, median(ratio, ROUNDS), ">=", 0.85);
}

/* ---- threads ---- */

struct team {
    tide_store *store;
    pthread_barrier_t ready;
    int steps;
};

static void *work(void *arg)
{
    struct team *t = arg;
    struct stepper p = stepper_open(t->store);

    pthread_barrier_wait(&t->ready);
    for (int i = 0; i < t->steps; i++)
        one_step(&p);
    pthread_barrier_wait(&t->ready);
    stepper_close(&p);
    return NULL;
}

static double team_rate(tide_store *store, int steps)
{
    struct team t = {.store = store, .steps = steps};
    pthread_t threads[THREADS];
    double start;

    pthread_barrier_init(&t.ready, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        must_sys(pthread_create(&threads[i], NULL, work, &t) == 0, "thread");
    pthread_barrier_wait(&t.ready);
    start = now_s();
    pthread_barrier_wait(&t.ready);
    start = now_s() - start;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&t.ready);
    return THREADS * steps / start;
}

static void bench_threads(const struct bench *b)
{
    double ours[ROUNDS], raw[ROUNDS], ratio[ROUNDS];
    tide_store *store = store_new(b, "team");
    char measured[64], beside[64];

    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_sync_rate(b, false, b->quick ? 0.1 : 0.5);
        ours[i] = team_rate(store, b->quick ? 5 : 200);
        ratio[i] = ours[i] / raw[i];
    }
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.0f steps/s", median(ours, ROUNDS));
    snprintf(beside, sizeof beside, "raw write+fdatasync, growing: %.0f/s", median(raw, ROUNDS));
    row("pure steps, 100 threads", measured, beside, median(ratio, ROUNDS), ">=", 8);
}

/* ---- processes ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Steps for some time, from when standard input ends; prints how many, the seconds, and the p99 of one. */
int child_pure_steps(const char *url, double seconds)
{
    const struct tide_store_options opt = {.size = sizeof opt};
    double *took = calloc(LATENCIES, sizeof *took), start, last;
    struct tide_err err;
    struct stepper p;
    tide_store *store;
    size_t n = 0;
    char c;

    must(tide_store_open(url, &opt, &store, &err), &err, "open");
    p = stepper_open(store);
    one_step(&p);
    printf("ready\n");
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    start = last = now_s();
    while (last - start < seconds) {
        double now;

        one_step(&p);
        now = now_s();
        if (n < LATENCIES)
            took[n] = now - last;
        last = now;
        n++;
    }
    qsort(took, n < LATENCIES ? n : LATENCIES, sizeof *took, by_size);
    printf("%zu %.9f %.9f\n", n, last - start, took[(n < LATENCIES ? n : LATENCIES) * 99 / 100]);
    fflush(stdout);
    stepper_close(&p);
    tide_store_close(store);
    free(took);
    return 0;
}

struct crowd {
    double rate, p99; /* steps a second of all together; the median of their p99, in seconds */
};

static struct crowd crowd_rate(const struct bench *b, const char *url, int processes, double seconds)
{
    FILE **out = calloc((size_t)processes, sizeof *out);
    double *late = calloc((size_t)processes, sizeof *late);
    char self[300], line[128], secs[32];
    struct crowd c = {0, 0};
    int go[2];

    (void)b;
    must_sys(readlink("/proc/self/exe", memset(self, 0, sizeof self), sizeof self - 1) > 0, "readlink");
    must_sys(pipe(go) == 0, "pipe");
    snprintf(secs, sizeof secs, "%g", seconds);
    for (int i = 0; i < processes; i++) {
        int told[2];
        pid_t pid;

        must_sys(pipe(told) == 0, "pipe");
        pid = fork();
        must_sys(pid >= 0, "fork");
        if (pid == 0) {
            dup2(go[0], 0);
            dup2(told[1], 1);
            close(go[0]);
            close(go[1]);
            close(told[0]);
            close(told[1]);
            execl(self, self, "--child-pure-steps", url, secs, (char *)NULL);
            _exit(127);
        }
        close(told[1]);
        out[i] = fdopen(told[0], "r");
        for (int k = 0; k <= i && i == processes - 1; k++)
            must_sys(fgets(line, sizeof line, out[k]) != NULL, "a process that steps");
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < processes; i++) {
        double n = 0, took = 1;

        must_sys(fscanf(out[i], "%lf %lf %lf", &n, &took, &late[i]) == 3, "a process that stepped");
        c.rate += n / took;
    }
    for (int i = 0; i < processes; i++) {
        fclose(out[i]);
        must_sys(wait(NULL) > 0, "wait");
    }
    c.p99 = median(late, (size_t)processes);
    free(out);
    free(late);
    return c;
}

static void bench_processes(const struct bench *b)
{
    static const struct {
        int processes;
        double times, late;
    } crowds[] = {{10, 2, 20}, {100, 4, 100}};
    double seconds = b->quick ? 0.2 : 2;

    for (size_t k = 0; k < sizeof crowds / sizeof crowds[0]; k++) {
        double one[3], many[3], ratio[3], late[3], sync[3];
        char url[400], what[128], measured[64], beside[96];

        tide_store_close(store_new(b, "crowd"));
        snprintf(url, sizeof url, "sqlite:%s/crowd.db", b->dir);
        for (int i = 0; i < 3; i++) {
            struct crowd c;

            sync[i] = 1 / raw_sync_rate(b, false, b->quick ? 0.1 : 0.5);
            one[i] = crowd_rate(b, url, 1, seconds).rate;
            c = crowd_rate(b, url, crowds[k].processes, seconds);
            many[i] = c.rate;
            ratio[i] = c.rate / one[i];
            late[i] = c.p99 / sync[i];
        }
        snprintf(what, sizeof what, "pure steps, %d processes on one store", crowds[k].processes);
        snprintf(measured, sizeof measured, "%.0f steps/s", median(many, 3));
        snprintf(beside, sizeof beside, "one process: %.0f/s", median(one, 3));
        row(what, measured, beside, median(ratio, 3), ">=", crowds[k].times);
        snprintf(measured, sizeof measured, "p99 %.1f ms", median(late, 3) * median(sync, 3) * 1000);
        snprintf(beside, sizeof beside, "a raw sync: %.2f ms", median(sync, 3) * 1000);
        row("the same, the slowest of a hundred", measured, beside, median(late, 3), "<=", crowds[k].late);
    }
}

void bench_steps(const struct bench *b)
{
    bench_one_by_one(b);
    bench_threads(b);
    bench_processes(b);
}
