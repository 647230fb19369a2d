/* SPDX-License-Identifier: Apache-2.0 */
/* Durable appends: one session one by one, and 256 active sessions among 100,000 that share commits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 7

static double one_by_one(tide_session *s, double seconds)
{
    struct tide_err err;
    char body[257];
    double start = now_s(), took;
    int64_t n = 0;

    do {
        struct tide_new_event ev = {"message.user", body, 256};

        body_of(body, 256, n);
        must(tide_session_append(s, 0, &ev, 1, NULL, &err), &err, "append");
        n++;
        took = now_s() - start;
    } while (took < seconds);
    return (double)n / took;
}

void bench_append(const struct bench *b)
{
    double seconds = b->quick ? 0.1 : 1, ours[ROUNDS], to_growing[ROUNDS], to_preallocated[ROUNDS], raw[ROUNDS],
           pre[ROUNDS];
    tide_store *store = store_new(b, "single");
    char measured[64], beside[64];
    struct tide_err err;
    tide_session *s;

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    one_by_one(s, seconds);            /* a store lives long: its log has its blocks after the first few MiB */
    for (int i = 0; i < ROUNDS; i++) { /* interleaved: the disk's mood changes between rounds */
        raw[i] = raw_sync_rate(b, false, seconds);
        ours[i] = one_by_one(s, seconds);
        pre[i] = raw_sync_rate(b, true, seconds);
        to_growing[i] = ours[i] / raw[i];
        to_preallocated[i] = ours[i] / pre[i];
    }
    tide_session_close(s);
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.0f events/s", median(ours, ROUNDS));
    snprintf(beside, sizeof beside, "raw write+fdatasync, growing: %.0f/s", median(raw, ROUNDS));
    row("append, one session, 256 B, one by one", measured, beside, median(to_growing, ROUNDS), ">=", 0.90);
    snprintf(beside, sizeof beside, "raw, preallocated: %.0f/s", median(pre, ROUNDS));
    row("the same", measured, beside, median(to_preallocated, ROUNDS), ">=", 0.65);
}

/* Many sessions quickly: threads share commits. */
struct maker {
    tide_store *store;
    int from, to;
};

static void *make_many(void *arg)
{
    struct maker *m = arg;
    struct tide_err err;

    for (int i = m->from; i < m->to; i++) {
        struct tide_new_event ev = {"message.user", "{\"turn\":1,\"content\":\"hello\"}", 0};
        tide_session *s;
        char id[32];

        snprintf(id, sizeof id, "s%06d", i);
        must(tide_session_create(m->store, id, "{\"title\":\"one of many\",\"agent\":\"bench\"}", &s, &err), &err,
             "create");
        must(tide_session_append(s, TIDE_APPEND_RELEASE, &ev, 1, NULL, &err), &err, "append");
        tide_session_close(s);
    }
    return NULL;
}

void fill_store(tide_store *store, int sessions)
{
    enum { THREADS = 32 };
    pthread_t threads[THREADS];
    struct maker makers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        makers[i] =
            (struct maker){store, sessions / THREADS * i, i == THREADS - 1 ? sessions : sessions / THREADS * (i + 1)};
        must_sys(pthread_create(&threads[i], NULL, make_many, &makers[i]) == 0, "thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

#define ACTIVE 256

struct load {
    tide_store *store;
    tide_session *sessions[ACTIVE];
    int64_t events, groups;
};

static void submit(struct load *l, size_t i)
{
    struct tide_err err;
    char body[257];
    struct tide_new_event ev = {"message.user", body, 256};

    body_of(body, 256, (int64_t)i);
    must(tide_session_append_async(l->sessions[i], 0, &ev, 1, &l->sessions[i], &err), &err, "append");
}

/* Every session has one append under way all the time; completions come in batches. */
static double run_load(struct load *l, double seconds)
{
    struct tide_completion done[ACTIVE];
    double start = now_s(), took = 0;
    size_t under_way = 0;

    l->events = l->groups = 0;
    for (size_t i = 0; i < ACTIVE; i++, under_way++)
        submit(l, i);
    while (under_way) {
        size_t n = tide_store_reap(l->store, done, ACTIVE, -1);

        l->events += (int64_t)n;
        l->groups++;
        under_way -= n;
        took = now_s() - start;
        for (size_t i = 0; i < n; i++) {
            must(done[i].code, &(struct tide_err){.msg = "completion"}, "append");
            if (took < seconds) {
                submit(l, (size_t)((tide_session **)done[i].user - l->sessions));
                under_way++;
            }
        }
    }
    return (double)l->events / took;
}

static void open_active(struct load *l, int total)
{
    struct tide_err err;

    for (int i = 0; i < ACTIVE; i++) {
        char id[32];

        snprintf(id, sizeof id, "s%06d", total / ACTIVE * i);
        must(tide_session_open(l->store, id, TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &l->sessions[i], &err), &err,
             "open");
    }
}

static void close_load(struct load *l)
{
    for (int i = 0; i < ACTIVE; i++)
        tide_session_close(l->sessions[i]);
    tide_store_close(l->store);
}

void bench_group(const struct bench *b)
{
    int total = b->quick ? 2000 : 100000;
    double seconds = b->quick ? 0.2 : 1.5, ours[ROUNDS], one[ROUNDS], grouped[ROUNDS], bare[ROUNDS], to_one[ROUNDS],
           to_grouped[ROUNDS], to_bare[ROUNDS];
    struct load l = {.store = store_new(b, "many")};
    char measured[64], beside[64];
    double batch = 0;

    fill_store(l.store, total);
    tide_store_close(l.store);
    l.store = store_again(b, "many");
    open_active(&l, total);
    for (int i = 0; i < ROUNDS; i++) {
        one[i] = raw_sync_rate(b, false, seconds / 2);
        ours[i] = run_load(&l, seconds);
        batch = (double)l.events / (double)l.groups;
        grouped[i] = raw_group_rate(b, (size_t)(batch + 0.5), 256, seconds / 2);
        bare[i] = bare_group_rate(b, ACTIVE, seconds / 2);
        to_one[i] = ours[i] / one[i];
        to_bare[i] = ours[i] / bare[i];
        to_grouped[i] = ours[i] / grouped[i];
    }
    close_load(&l);
    snprintf(measured, sizeof measured, "%.0f events/s, %.0f a commit", median(ours, ROUNDS), batch);
    snprintf(beside, sizeof beside, "raw one by one: %.0f/s", median(one, ROUNDS));
    row(b->quick ? "append, 256 active of 2,000" : "append, 256 active of 100,000 sessions", measured, beside,
        median(to_one, ROUNDS), ">=", 25);
    snprintf(beside, sizeof beside, "raw grouped: %.0f/s", median(grouped, ROUNDS));
    row("the same", measured, beside, median(to_grouped, ROUNDS), ">=", 0.40);
    snprintf(beside, sizeof beside, "their rows through SQLite alone: %.0f/s", median(bare, ROUNDS));
    row("the same", measured, beside, median(to_bare, ROUNDS), ">=", 0.50);
}

/* ---- with secrets to look for ---- */

#define SECRETS 20

/* None but ours: what the machine has in its environment would be looked for as well. */
static void forget_environment(void)
{
    static const char *const parts[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};

    for (char **var = environ; *var;) {
        char name[256];
        bool found = false;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(*var, "="), *var);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !found; i++)
            found = strcasestr(name, parts[i]) && unsetenv(name) == 0;
        var = found ? environ : var + 1;
    }
}

static void add_secrets(tide_store *store)
{
    struct tide_err err;

    for (int i = 0; i < SECRETS; i++) {
        char name[16], value[64];

        snprintf(name, sizeof name, "KEY_%d", i);
        snprintf(value, sizeof value, i % 4 ? "sk-%d-Zq9xT7wLk2Vb5nRm8cYp4J%d" : "pw%d+/%%%d ab", i * 7919, i);
        must(tide_store_add_secret(store, name, value, strlen(value), &err), &err, "add a secret");
    }
}

void bench_secrets(const struct bench *b)
{
    double seconds = b->quick ? 0.2 : 1.5, plain[ROUNDS], hiding[ROUNDS], ratio[ROUNDS];
    struct load with = {0}, without = {0};
    char measured[64], beside[64];

    forget_environment();
    with.store = store_new(b, "hiding");
    without.store = store_new(b, "plain");
    fill_store(with.store, 2 * ACTIVE);
    fill_store(without.store, 2 * ACTIVE);
    add_secrets(with.store);
    open_active(&with, 2 * ACTIVE);
    open_active(&without, 2 * ACTIVE);
    run_load(&with, seconds / 4);
    run_load(&without, seconds / 4);
    for (int i = 0; i < ROUNDS; i++) {
        plain[i] = run_load(&without, seconds / 2);
        hiding[i] = run_load(&with, seconds);
        plain[i] = (plain[i] + run_load(&without, seconds / 2)) / 2;
        ratio[i] = hiding[i] / plain[i];
    }
    close_load(&with);
    close_load(&without);
    snprintf(measured, sizeof measured, "%.0f events/s", median(hiding, ROUNDS));
    snprintf(beside, sizeof beside, "with none: %.0f/s", median(plain, ROUNDS));
    row("append, 256 active, 20 secrets to look for", measured, beside, median(ratio, ROUNDS), ">=", 0.90);
}
