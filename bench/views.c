/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a page of sessions is drawn from, asked of the server: lists and the inbox of very many sessions, and parts of very long ones. Each
 * request is timed from its first byte to the last of its answer, on one connection.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define TRIES 15
#define BOUND_MS 60.0

static int connect_to(const struct serving *s)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must_sys(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    return fd;
}

/* Milliseconds; *ret_bytes is the length of its body. */
static double ask(int fd, const struct serving *s, const char *path, size_t *ret_bytes)
{
    static char answer[1 << 26];
    size_t n = 0, want = 0;
    char request[700], *body = NULL, *length;
    double began = now_s();
    int len = snprintf(request, sizeof request,
                       "GET /api/v1%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n", path,
                       s->port, s->token);

    must_sys(write(fd, request, (size_t)len) == len, "write");
    while (!body || n < want) {
        ssize_t got = read(fd, answer + n, sizeof answer - 1 - n);

        must_sys(got > 0, "read");
        n += (size_t)got;
        answer[n] = 0;
        if (!body && (body = strstr(answer, "\r\n\r\n"))) {
            body += 4;
            length = strcasestr(answer, "content-length:");
            must_sys(length != NULL, "the length of an answer");
            want = (size_t)(body - answer) + (size_t)strtol(length + 15, NULL, 10);
        }
    }
    must_sys(memcmp(answer, "HTTP/1.1 200", 12) == 0, path);
    *ret_bytes = want - (size_t)(body - answer);
    return (now_s() - began) * 1000;
}

static void time_route(const struct serving *s, int fd, const char *what, const char *path)
{
    double took[TRIES];
    char measured[64], line[200];
    size_t bytes = 0;

    (void)ask(fd, s, path, &bytes);
    for (int i = 0; i < TRIES; i++)
        took[i] = ask(fd, s, path, &bytes);
    snprintf(measured, sizeof measured, "%.1f ms, %zu KiB", median(took, TRIES), bytes / 1024);
    snprintf(line, sizeof line, "views: %s", what);
    row(line, measured, "60 ms", median(took, TRIES) / BOUND_MS, "<=", 1);
}

/* Much happens and little is said. */
static void make_silent(tide_store *store, const char *id, int64_t n)
{
    struct tide_new_event events[64];
    char bodies[64][64];
    struct tide_err err;
    tide_session *s;

    must(tide_session_create(store, id, "{\"title\":\"silent\"}", &s, &err), &err, "create");
    for (int64_t made = 1; made < n;) {
        size_t k = 0;

        for (; k < 64 && made < n; k++, made++) {
            snprintf(bodies[k], sizeof bodies[k], "{\"values\":{\"n\":%lld}}", (long long)made);
            events[k] = (struct tide_new_event){"memory.set", bodies[k], 0};
        }
        must(tide_session_append_async(s, 0, events, k, NULL, &err), &err, "append");
    }
    must(tide_session_flush(s, &err), &err, "flush");
    tide_session_close(s);
}

static void bench_long(const struct bench *b)
{
    int64_t n = b->quick ? 30000 : 1000000;
    tide_store *store = store_new(b, "long_views");
    struct serving s;
    char path[200];
    int fd;

    make_session(store, "talk", n, 100);
    make_silent(store, "silent", n);
    tide_store_close(store);
    serving_start(b, "long_views", &s);
    fd = connect_to(&s);
    time_route(&s, fd, "page of a session, 1,000,000 events", "/sessions/talk/page");
    time_route(&s, fd, "the same, little is said in it", "/sessions/silent/page");
    snprintf(path, sizeof path, "/sessions/talk/transcript?before=%lld&limit=50", (long long)n / 2);
    time_route(&s, fd, "50 entries of a transcript in the middle", path);
    snprintf(path, sizeof path, "/sessions/silent/transcript?before=%lld&limit=50", (long long)n / 2);
    time_route(&s, fd, "the same, little is said in it", path);
    time_route(&s, fd, "timeline, its newest 20,000 events", "/sessions/talk/timeline");
    snprintf(path, sizeof path, "/sessions/talk/timeline?from=%lld&to=%lld", (long long)n / 2, (long long)n / 2 + 1000);
    time_route(&s, fd, "timeline, 1,000 events in the middle", path);
    snprintf(path, sizeof path, "/sessions/talk/log?before=%lld&limit=200", (long long)n / 2);
    time_route(&s, fd, "log, 200 events in the middle", path);
    time_route(&s, fd, "log, 20,000 events searched for a word", "/sessions/talk/log?text=nowhere");
    snprintf(path, sizeof path, "/sessions/talk/log?text=nowhere&before=%lld", (long long)n);
    time_route(&s, fd, "the same, back from the end", path);
    snprintf(path, sizeof path, "/sessions/talk/state?at=%lld", (long long)n / 2);
    time_route(&s, fd, "state in the middle", path);
    close(fd);
    serving_stop(&s);
}

static void bench_many(const struct bench *b)
{
    tide_store *store = store_new(b, "many_views");
    struct serving s;
    int fd;

    make_waiting(store, b->quick ? 50 : 1000);
    fill_store(store, b->quick ? 2000 : 100000);
    tide_store_close(store);
    serving_start(b, "many_views", &s);
    fd = connect_to(&s);
    time_route(&s, fd, "first page of 100,000 sessions", "/sessions?limit=50");
    time_route(&s, fd, "inbox of 100,000 sessions, 1,000 wait", "/inbox?limit=50");
    time_route(&s, fd, "the waiting ones of 100,000 sessions, 5,000 at a time", "/sessions?status=waiting&look=5000");
    time_route(&s, fd, "100,000 sessions searched for a word, 5,000 at a time", "/sessions?text=nowhere&look=5000");
    close(fd);
    serving_stop(&s);
}

int fill_views(const char *url, int sessions, int64_t events)
{
    struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct tide_new_event task = {"session.updated", "{\"task_id\":\"release\"}", 0};
    tide_store *store = NULL;
    tide_session *talk = NULL;
    struct tide_err err;

    must(tide_store_open(url, &opt, &store, &err), &err, "open a store");
    make_session(store, "talk", events, 100);
    must(tide_session_open(store, "talk", TIDE_SESSION_APPEND, &talk, &err), &err, "open a session");
    must(tide_session_append(talk, TIDE_APPEND_RELEASE, &task, 1, NULL, &err), &err, "append");
    tide_session_close(talk);
    make_waiting(store, sessions / 100);
    fill_store(store, sessions - sessions / 100);
    tide_store_close(store);
    return 0;
}

void bench_views(const struct bench *b)
{
    /* The server has a state directory of its own: without a common key these sessions would have come from elsewhere. */
    setenv("TIDEMARK_ORIGIN_KEY", "a key for benchmarks alone", 1);
    bench_long(b);
    bench_many(b);
}
