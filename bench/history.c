/* SPDX-License-Identifier: Apache-2.0 */
/* Long pasts: opening, the state at a random checkpoint, memory, forks. Times are medians over fresh handles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define TRIES 41

static double open_time(tide_store *store, const char *id)
{
    struct tide_err err;
    tide_session *s;
    double start = now_s(), took;

    must(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err), &err, "open");
    took = now_s() - start;
    tide_session_close(s);
    return took;
}

struct marks {
    char (*ids)[TIDE_ID_SIZE];
    size_t n;
};

static int keep_mark(void *arg, const struct tide_checkpoint *c)
{
    struct marks *m = arg;

    m->ids = realloc(m->ids, (m->n + 1) * sizeof *m->ids);
    must_sys(m->ids != NULL, "memory");
    snprintf(m->ids[m->n++], TIDE_ID_SIZE, "%s", c->id);
    return 0;
}

/* From the checkpoint's id to its state, on a handle that was just opened; opening is not counted. */
static double state_time(tide_store *store, const char *id, const char *checkpoint)
{
    struct tide_text json;
    struct tide_err err;
    tide_session *s;
    const struct tide_checkpoint *c;
    double start, took;

    must(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err), &err, "open");
    start = now_s();
    must(tide_checkpoint_load(s, checkpoint, &c, &err), &err, "load checkpoint");
    must(tide_session_get_state(s, c->seq, &json, &err), &err, "state");
    took = now_s() - start;
    tide_text_done(&json);
    tide_session_close(s);
    return took;
}

static void random_checkpoints(const struct bench *b, tide_store *store, const char *id)
{
    double opening[TRIES], state[TRIES];
    struct marks marks = {NULL, 0};
    unsigned seed = b->seed;
    struct tide_err err;
    tide_session *s;
    char measured[64], beside[64];

    must(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err), &err, "open");
    must(tide_checkpoint_list(s, NULL, keep_mark, &marks, &err), &err, "list checkpoints");
    tide_session_close(s);
    for (int i = 0; i < TRIES; i++) {
        opening[i] = open_time(store, id);
        state[i] = state_time(store, id, marks.ids[(size_t)rand_r(&seed) % marks.n]);
    }
    free(marks.ids);
    snprintf(measured, sizeof measured, "%.2f ms", median(state, TRIES) * 1e3);
    snprintf(beside, sizeof beside, "opening it at its head: %.2f ms", median(opening, TRIES) * 1e3);
    row("state at a random checkpoint, 1,000,000 events", measured, beside,
        median(state, TRIES) / median(opening, TRIES), "<=", 5);
}

/* Seconds of one append, at the end of a session of any length. */
static double append_time(const struct bench *b, const char *name, const char *id)
{
    tide_store *store = store_again(b, name);
    char body[257];
    const struct tide_new_event ev = {"message.user", body, 256};
    struct tide_err err;
    tide_session *s;
    double start;

    body_of(body, 256, 1);
    must(tide_session_open(store, id, TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, &err), &err, "open");
    start = now_s();
    for (int i = 0; i < 100; i++)
        must(tide_session_append(s, 0, &ev, 1, NULL, &err), &err, "append");
    start = (now_s() - start) / 100;
    tide_session_close(s);
    tide_store_close(store);
    return start;
}

static void one_more(const struct bench *b)
{
    double small[TRIES], large[TRIES];
    char measured[64], beside[64];

    for (int i = 0; i < TRIES; i++) {
        small[i] = append_time(b, "short", "s1k");
        large[i] = append_time(b, "long", "s1m");
    }
    snprintf(measured, sizeof measured, "%.3f ms", median(large, TRIES) * 1e3);
    snprintf(beside, sizeof beside, "1,000 events: %.3f ms", median(small, TRIES) * 1e3);
    row("one more append to 1,000,000 events", measured, beside, median(large, TRIES) / median(small, TRIES),
        "<=", 1.5);
}

static int print_event(void *arg, const struct tide_event *ev)
{
    struct tide_text json;

    if (tide_event_write_json(ev, &json, NULL))
        return 1;
    fputs(json.ptr, arg);
    tide_text_done(&json);
    return 0;
}

/* Of this program alone: what wait4 tells counts the parent's memory before exec. */
static long peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long kib = -1;

    must_sys(f != NULL, "/proc/self/status");
    while (fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %ld", &kib) != 1)
        ;
    fclose(f);
    return kib;
}

int child_open_tail(const char *path, const char *id)
{
    FILE *null = fopen("/dev/null", "we");
    struct tide_text json;
    struct tide_err err;
    tide_store *store;
    tide_session *s;

    must_sys(null != NULL, "/dev/null");
    must(tide_store_open(path, NULL, &store, &err), &err, "open store");
    must(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err), &err, "open");
    must(tide_session_get_state(s, 0, &json, &err), &err, "state");
    tide_text_done(&json);
    must(tide_session_read(s, 0, tide_session_last_seq(s) - 19, 0, print_event, null, &err), &err, "read");
    tide_session_close(s);
    tide_store_close(store);
    fclose(null);
    printf("%ld\n", peak_kib());
    return 0;
}

/* Runs the child and tells wall time and peak memory. */
static double run_child(const struct bench *b, const char *name, const char *id, long *ret_kib)
{
    char path[512], said[32] = "";
    double start = now_s(), took;
    int status, out[2];
    pid_t pid;

    snprintf(path, sizeof path, "%s/%s.db", b->dir, name);
    must_sys(pipe(out) == 0, "pipe");
    pid = fork();
    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        dup2(out[1], 1);
        execl("/proc/self/exe", "tidemark-bench", "--child-open-tail", path, id, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    must_sys(read(out[0], said, sizeof said - 1) > 0, "child");
    close(out[0]);
    must_sys(waitpid(pid, &status, 0) == pid && status == 0, "child");
    took = now_s() - start;
    *ret_kib = strtol(said, NULL, 10);
    return took;
}

static void open_and_print(const struct bench *b)
{
    double small[TRIES], large[TRIES];
    long kib_small = 0, kib_large = 0;
    char measured[64], beside[64];

    for (int i = 0; i < TRIES; i++) {
        small[i] = run_child(b, "short", "s1k", &kib_small);
        large[i] = run_child(b, "long", "s1m", &kib_large);
    }
    snprintf(measured, sizeof measured, "%.2f ms", median(large, TRIES) * 1e3);
    snprintf(beside, sizeof beside, "1,000 events: %.2f ms", median(small, TRIES) * 1e3);
    row("open, fold, print the last 20 of 1,000,000 (whole process)", measured, beside,
        median(large, TRIES) / median(small, TRIES), "<=", 1.5);
    snprintf(measured, sizeof measured, "%.1f MiB", (double)kib_large / 1024);
    snprintf(beside, sizeof beside, "1,000 events: %.1f MiB", (double)kib_small / 1024);
    row("the same, peak memory more, MiB", measured, beside, (double)(kib_large - kib_small) / 1024, "<=", 8);
}

static void forks(const struct bench *b)
{
    enum { FORKS = 1000 };
    tide_store *store = store_new(b, "forks");
    double *took = calloc(FORKS, sizeof *took), raw[5], sync_ms;
    char fork_id[TIDE_ID_SIZE], measured[64], beside[64];
    struct tide_err err;
    int64_t before;

    must_sys(took != NULL, "memory");
    make_session(store, "base", b->quick ? 1000 : 100000, 100);
    tide_store_close(store);
    before = store_bytes(b, "forks");
    for (int i = 0; i < 5; i++)
        raw[i] = 1e3 / raw_sync_rate(b, false, 0.2);
    store = store_again(b, "forks");
    for (int i = 0; i < FORKS; i++) {
        double start = now_s();

        must(tide_session_fork(store, "base", b->quick ? 500 : 50000 + i, NULL, NULL, fork_id, &err), &err, "fork");
        took[i] = (now_s() - start) * 1e3;
    }
    tide_store_close(store);
    sync_ms = median(raw, 5);
    snprintf(measured, sizeof measured, "%.0f B a fork", (double)(store_bytes(b, "forks") - before) / FORKS);
    row("fork of a 100,000-event session, growth", measured, "2 KiB",
        (double)(store_bytes(b, "forks") - before) / FORKS / 2048, "<=", 1);
    snprintf(measured, sizeof measured, "%.2f ms", median(took, FORKS));
    snprintf(beside, sizeof beside, "2 ms + one sync (%.2f ms)", sync_ms);
    row("the same, time", measured, beside, median(took, FORKS) / (2 + sync_ms), "<=", 1);
    free(took);
}

void bench_history(const struct bench *b)
{
    tide_store *store = store_new(b, "short");

    make_session(store, "s1k", 1000, 100);
    tide_store_close(store);
    store = store_new(b, "long");
    make_session(store, "s1m", b->quick ? 20000 : 1000000, 100);
    tide_store_close(store);
    store = store_again(b, "long");
    random_checkpoints(b, store, "s1m");
    tide_store_close(store);
    open_and_print(b);
    one_more(b);
    forks(b);
}
