/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a session whose events lie among 255 others', against one stored alone. */
#include <stdio.h>

#include "bench.h"

#define OTHERS 256
#define ROUNDS 15

static int count(void *arg, const struct tide_event *ev)
{
    *(int64_t *)arg += (int64_t)ev->body_len;
    return 0;
}

/* Round robin, one event a session, as many agents at once would write. */
static void make_interleaved(tide_store *store, int64_t each)
{
    tide_session *s[OTHERS];
    struct tide_err err;
    char id[32], body[257];

    for (int i = 0; i < OTHERS; i++) {
        snprintf(id, sizeof id, "s%03d", i);
        must(tide_session_create(store, id, NULL, &s[i], &err), &err, "create");
    }
    for (int64_t n = 1; n < each; n++) {
        for (int i = 0; i < OTHERS; i++) {
            struct tide_new_event ev = {"message.user", body, 256};

            body_of(body, 256, n);
            must(tide_session_append_async(s[i], 0, &ev, 1, NULL, &err), &err, "append");
        }
    }
    for (int i = 0; i < OTHERS; i++) {
        must(tide_session_flush(s[i], &err), &err, "flush");
        tide_session_close(s[i]);
    }
}

static double read_rate(const struct bench *b, const char *name, const char *id)
{
    tide_store *store = store_again(b, name);
    struct tide_err err;
    tide_session *s;
    int64_t bytes = 0;
    double start, took;

    must(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err), &err, "open");
    start = now_s();
    must(tide_session_read(s, 0, 0, 0, count, &bytes, &err), &err, "read");
    took = now_s() - start;
    took = (double)tide_session_last_seq(s) / took;
    tide_session_close(s);
    tide_store_close(store);
    return took;
}

void bench_range(const struct bench *b)
{
    int64_t each = b->quick ? 200 : 2000;
    double alone[ROUNDS], among[ROUNDS], ratio[ROUNDS];
    char measured[64], beside[64];
    tide_store *store = store_new(b, "alone");

    make_session(store, "s100", each, 0);
    tide_store_close(store);
    store = store_new(b, "among");
    make_interleaved(store, each);
    tide_store_close(store);
    for (int i = 0; i < ROUNDS; i++) {
        alone[i] = read_rate(b, "alone", "s100");
        among[i] = read_rate(b, "among", "s100");
        ratio[i] = among[i] / alone[i];
    }
    snprintf(measured, sizeof measured, "%.0f events/s", median(among, ROUNDS));
    snprintf(beside, sizeof beside, "stored alone: %.0f/s", median(alone, ROUNDS));
    row("range read, events among 255 other sessions'", measured, beside, median(ratio, ROUNDS), ">=", 0.30);
}
