/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of plain files: one session one by one, many at once beside what the disk does with as many files, sessions that start
 * and end, opening a long session beside a short one, and moving a million events from SQLite to files and back.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 7
#define SESSIONS 64

static void url_of(const struct bench *b, const char *name, char out[512])
{
    snprintf(out, 512, "files:%s/%s", b->dir, name);
}

static tide_store *open_files(const struct bench *b, const char *name)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct tide_err err;
    tide_store *store = NULL;
    char url[512];

    url_of(b, name, url);
    must(tide_store_open(url, &opt, &store, &err), &err, "open a store of files");
    return store;
}

/* ---- one by one ---- */

static double one_by_one(tide_session *s, double seconds)
{
    struct tide_err err;
    char body[257];
    double start = now_s(), took;
    int64_t n = 0;

    do {
        struct tide_new_event ev = {"message.user", body, 256};

        body_of(body, 256, n++);
        must(tide_session_append(s, 0, &ev, 1, NULL, &err), &err, "append");
        took = now_s() - start;
    } while (took < seconds);
    return (double)n / took;
}

static double bench_one(const struct bench *b, tide_store *store)
{
    double seconds = b->quick ? 0.1 : 1, ours[ROUNDS], growing[ROUNDS], preallocated[ROUNDS], raw[ROUNDS], pre[ROUNDS];
    char measured[64], beside[64];
    struct tide_err err;
    tide_session *s;

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    for (int i = 0; i < ROUNDS; i++) { /* interleaved: the disk's mood changes between rounds */
        raw[i] = raw_sync_rate(b, false, seconds);
        ours[i] = one_by_one(s, seconds);
        pre[i] = raw_sync_rate(b, true, seconds);
        growing[i] = ours[i] / raw[i];
        preallocated[i] = ours[i] / pre[i];
    }
    tide_session_close(s);
    snprintf(measured, sizeof measured, "%.0f events/s", median(ours, ROUNDS));
    snprintf(beside, sizeof beside, "raw write+fdatasync, growing: %.0f/s", median(raw, ROUNDS));
    row("files: append, one session, 256 B, one by one", measured, beside, median(growing, ROUNDS), ">=", 0.90);
    snprintf(beside, sizeof beside, "raw, preallocated: %.0f/s", median(pre, ROUNDS));
    row("files: the same", measured, beside, median(preallocated, ROUNDS), ">=", 0.65);
    return median(ours, ROUNDS);
}

/* ---- many at once ---- */

struct appender {
    tide_session *session;
    int fd; /* raw: a file instead of a session */
    double seconds;
    int64_t n;
    pthread_t thread;
};

static void *append_on(void *arg)
{
    struct appender *a = arg;
    double start = now_s();
    struct tide_err err;
    char body[257];

    while (now_s() - start < a->seconds) {
        struct tide_new_event ev = {"message.user", body, 256};

        body_of(body, 256, a->n);
        if (a->session)
            must(tide_session_append(a->session, 0, &ev, 1, NULL, &err), &err, "append");
        else
            must_sys(pwrite(a->fd, body, 256, a->n * 256) == 256 && fdatasync(a->fd) == 0, "raw files");
        a->n++;
    }
    return NULL;
}

static double run_all(struct appender *all, double seconds)
{
    int64_t n = 0;

    for (int i = 0; i < SESSIONS; i++) {
        all[i].seconds = seconds;
        all[i].n = 0;
        must_sys(pthread_create(&all[i].thread, NULL, append_on, &all[i]) == 0, "thread");
    }
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(all[i].thread, NULL);
        n += all[i].n;
    }
    return (double)n / seconds;
}

static double raw_files(const struct bench *b, double seconds)
{
    struct appender all[SESSIONS];
    char path[512];
    double rate;

    for (int i = 0; i < SESSIONS; i++) {
        snprintf(path, sizeof path, "%s/raw-%d", b->dir, i);
        all[i] = (struct appender){.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600)};
        must_sys(all[i].fd >= 0, path);
    }
    rate = run_all(all, seconds);
    for (int i = 0; i < SESSIONS; i++)
        close(all[i].fd);
    return rate;
}

static void bench_many(const struct bench *b, tide_store *store, double one)
{
    double seconds = b->quick ? 0.1 : 1, ours[5], raw[5];
    struct appender all[SESSIONS];
    char measured[64], beside[80];
    struct tide_err err;

    for (int i = 0; i < SESSIONS; i++) {
        all[i] = (struct appender){.fd = -1};
        must(tide_session_create(store, NULL, NULL, &all[i].session, &err), &err, "create");
    }
    for (int i = 0; i < 5; i++) {
        raw[i] = raw_files(b, seconds);
        ours[i] = run_all(all, seconds);
    }
    for (int i = 0; i < SESSIONS; i++)
        tide_session_close(all[i].session);
    snprintf(measured, sizeof measured, "%.0f events/s", median(ours, 5));
    snprintf(beside, sizeof beside, "one session: %.0f/s; 64 raw files: %.0f/s", one, median(raw, 5));
    row("files: 64 sessions at once, times one session", measured, beside, median(ours, 5) / one, ">=", 3);
}

/* ---- starts and ends ---- */

#define LIVES_MAX 100

struct life {
    tide_store *store;
    double until;
    int64_t n;
    pthread_t thread;
};

static void *live_on(void *arg)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "step", .effect = TIDE_EFFECT_ONCE};
    const struct tide_run_result end = {.size = sizeof end, .outcome = TIDE_OUTCOME_COMPLETED};
    struct life *l = arg;
    struct tide_err err;

    for (; now_s() < l->until; l->n++) {
        tide_session *s;
        tide_run *run;

        must(tide_session_create(l->store, NULL, NULL, &s, &err), &err, "create");
        must(tide_run_start(s, NULL, &run, &err), &err, "start");
        must(tide_run_step(run, &spec, step_nothing, NULL, NULL, &err), &err, "step");
        must(tide_run_end(run, &end, &err), &err, "end");
        tide_run_close(run);
        tide_session_close(s);
    }
    return NULL;
}

/* Sessions a second that are made, do one step, and end. */
static double life_rate(tide_store *store, int threads, double seconds)
{
    struct life all[LIVES_MAX];
    double start = now_s();
    int64_t n = 0;

    for (int i = 0; i < threads; i++) {
        all[i] = (struct life){.store = store, .until = start + seconds};
        must_sys(pthread_create(&all[i].thread, NULL, live_on, &all[i]) == 0, "thread");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i].thread, NULL);
        n += all[i].n;
    }
    return (double)n / (now_s() - start);
}

void bench_lives(const struct bench *b)
{
    static const struct {
        int threads;
        double times;
    } rows[] = {{10, 2}, {LIVES_MAX, 4}};
    double seconds = b->quick ? 0.1 : 1.5;
    tide_store *store = open_files(b, "lives");

    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        double one[5], many[5], ratio[5];
        char what[96], measured[64], beside[64];

        for (int i = 0; i < 5; i++) {
            one[i] = life_rate(store, 1, seconds);
            many[i] = life_rate(store, rows[k].threads, seconds);
            ratio[i] = many[i] / one[i];
        }
        snprintf(what, sizeof what, "files: %d sessions at once, with their starts and ends", rows[k].threads);
        snprintf(measured, sizeof measured, "%.0f sessions/s", median(many, 5));
        snprintf(beside, sizeof beside, "one at a time: %.0f/s", median(one, 5));
        row(what, measured, beside, median(ratio, 5), ">=", rows[k].times);
    }
    tide_store_close(store);
}

/* ---- opening ---- */

static double open_time(const struct bench *b, const char *id)
{
    double took[ROUNDS];
    struct tide_err err;

    for (int i = 0; i < ROUNDS; i++) {
        tide_store *store = open_files(b, "long");
        tide_session *s;
        double start = now_s();

        must(tide_session_open(store, id, TIDE_SESSION_APPEND, &s, &err), &err, "open");
        took[i] = now_s() - start;
        tide_session_close(s);
        tide_store_close(store);
    }
    return median(took, ROUNDS);
}

static void bench_open(const struct bench *b)
{
    int64_t n = b->quick ? 20000 : 1000000;
    tide_store *store = open_files(b, "long");
    char measured[64], beside[64];
    double big, small;

    make_session(store, "small", 1000, 0);
    make_session(store, "big", n, 0);
    tide_store_close(store);
    small = open_time(b, "small");
    big = open_time(b, "big");
    snprintf(measured, sizeof measured, "%.2f ms of 1,000,000 events", big * 1e3);
    snprintf(beside, sizeof beside, "%.2f ms of 1,000", small * 1e3);
    row("files: opening a session", measured, beside, big / small, "<=", 2);
}

/* ---- moving ---- */

struct moved {
    double seconds;
    uint64_t bytes;
    long peak_kib; /* more than before it began */
};

static long peak(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* In a process of its own, for its memory. */
static struct moved move(const char *from, const char *to)
{
    struct moved m = {0};
    int fds[2], status = 0;
    pid_t pid;

    must_sys(pipe(fds) == 0, "pipe");
    pid = fork();
    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
        struct tide_copy_result got = {0};
        tide_store *src, *dst;
        struct tide_err err;
        long before = peak();

        m.seconds = now_s();
        must(tide_store_open(from, &opt, &src, &err), &err, from);
        must(tide_store_open(to, &opt, &dst, &err), &err, to);
        must(tide_store_copy(src, dst, NULL, &got, &err), &err, "copy");
        tide_store_close(dst);
        tide_store_close(src);
        m.seconds = now_s() - m.seconds;
        m.bytes = got.bytes;
        m.peak_kib = peak() - before;
        must_sys(write(fds[1], &m, sizeof m) == sizeof m, "pipe");
        _exit(0);
    }
    close(fds[1]);
    must_sys(read(fds[0], &m, sizeof m) == sizeof m && waitpid(pid, &status, 0) == pid && status == 0, "copying");
    close(fds[0]);
    return m;
}

static void bench_move(const struct bench *b)
{
    tide_store *store = store_new(b, "from");
    char from[512], files[512], back[512], measured[80];
    struct moved out, in;
    double slower;
    long most;

    make_session(store, "big", b->quick ? 20000 : 1000000, 0);
    tide_store_close(store);
    snprintf(from, sizeof from, "sqlite:%s/from.db", b->dir);
    url_of(b, "moved", files);
    snprintf(back, sizeof back, "sqlite:%s/back.db", b->dir);
    out = move(from, files);
    in = move(files, back);
    slower = (double)out.bytes / out.seconds < (double)in.bytes / in.seconds ? (double)out.bytes / out.seconds
                                                                             : (double)in.bytes / in.seconds;
    snprintf(measured, sizeof measured, "to files %.0f MiB/s, back %.0f MiB/s",
             (double)out.bytes / out.seconds / 1048576, (double)in.bytes / in.seconds / 1048576);
    row("files: a million events there and back, the slower way", measured, "50 MiB/s", slower / 1048576 / 50, ">=", 1);
    most = out.peak_kib > in.peak_kib ? out.peak_kib : in.peak_kib;
    snprintf(measured, sizeof measured, "%.1f MiB", (double)most / 1024);
    row("files: memory that takes", measured, "64 MiB", (double)most / 1024 / 64, "<=", 1);
}

void bench_files(const struct bench *b)
{
    tide_store *store = open_files(b, "files");
    double one = bench_one(b, store);

    bench_many(b, store, one);
    tide_store_close(store);
    bench_open(b);
    bench_move(b);
}
