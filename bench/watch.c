/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching: how long after an append has returned in one process a watcher in another is woken. With one watcher, and with a
 * thousand in one process, until the last of them is.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MANY 1000
#define ROUNDS 400
#define LIMIT_MS 5.0

/* Appends once for every byte that comes, and answers with the time at which that had returned. */
static void commit_for(const char *url, int in, int out)
{
    tide_store *store = NULL;
    tide_session *s = NULL;
    struct tide_err err;
    char c;

    must(tide_store_open(url, NULL, &store, &err), &err, "open");
    must(tide_session_create(store, "committer", NULL, &s, &err), &err, "create");
    must_sys(write(out, "r", 1) == 1, "write");
    while (read(in, &c, 1) == 1) {
        const struct tide_new_event event = {"message.user", "{\"content\":\"x\"}", 0};
        double done;

        must(tide_session_append(s, 0, &event, 1, NULL, &err), &err, "append");
        done = now_s();
        must_sys(write(out, &done, sizeof done) == sizeof done, "write");
    }
    _exit(0);
}

static int watch_all(tide_store *store, tide_watch **list, int n)
{
    int group = epoll_create1(EPOLL_CLOEXEC);
    struct tide_err err;

    must_sys(group >= 0, "epoll");
    for (int i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

        must(tide_watch_open(store, &list[i], &err), &err, "watch");
        must_sys(epoll_ctl(group, EPOLL_CTL_ADD, tide_watch_fd(list[i]), &e) == 0, "epoll");
    }
    return group;
}

/* How many were woken meanwhile; none: the time is over. */
static int take_woken(int group, tide_watch **list, int timeout_ms)
{
    struct epoll_event events[MANY];
    int n = epoll_wait(group, events, MANY, timeout_ms), changed;
    struct tide_err err;

    for (int i = 0; i < n; i++)
        must(tide_watch_wait(list[events[i].data.u32], 0, &changed, &err), &err, "wait");
    return n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The 99th percentile in milliseconds. */
static double measure(const char *url, int watchers, int rounds)
{
    static tide_watch *list[MANY];
    static double took[ROUNDS];
    tide_store *store = NULL;
    struct tide_err err;
    int to[2], from[2], group;
    char c;
    pid_t pid = -1;

    must(tide_store_open(
             url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
             &store, &err),
         &err, "open");
    tide_store_close(store);
    must_sys(pipe(to) == 0 && pipe(from) == 0 && (pid = fork()) >= 0, "fork");
    if (pid == 0) {
        close(to[1]);
        commit_for(url, to[0], from[1]);
    }
    must_sys(read(from[0], &c, 1) == 1, "child");
    must(tide_store_open(
             url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_READ_ONLY},
             &store, &err),
         &err, "open");
    group = watch_all(store, list, watchers);
    for (int i = 0; i < rounds; i++) {
        double done, woken;
        int left = watchers;

        while (take_woken(group, list, 1) > 0)
            ;
        must_sys(write(to[1], "x", 1) == 1, "child");
        while (left > 0) {
            int n = take_woken(group, list, 2000);

            must_sys(n > 0, "a watcher was not woken");
            left -= n;
        }
        woken = now_s();
        must_sys(read(from[0], &done, sizeof done) == sizeof done, "child");
        took[i] = woken > done ? (woken - done) * 1000 : 0;
    }
    close(to[1]);
    for (int i = 0; i < watchers; i++)
        tide_watch_close(list[i]);
    close(group);
    tide_store_close(store);
    waitpid(pid, NULL, 0);
    qsort(took, (size_t)rounds, sizeof took[0], compare);
    return took[rounds * 99 / 100];
}

void bench_watch(const struct bench *b)
{
    static const char *const kinds[] = {"sqlite", "files"};
    const struct rlimit files = {4096, 4096};
    int rounds = b->quick ? 50 : ROUNDS;

    (void)!setrlimit(RLIMIT_NOFILE, &files);
    for (int i = 0; i < 4; i++) {
        const char *kind = kinds[i / 2];
        char url[400], what[120], measured[60];
        double p99;

        snprintf(url, sizeof url, "%s:%s/watch%d", kind, b->dir, i);
        p99 = measure(url, i % 2 ? MANY : 1, rounds);
        snprintf(what, sizeof what, "%s: append returned in one process to %s woken in another, p99", kind,
                 i % 2 ? "the last of 1,000 watchers" : "a watcher");
        snprintf(measured, sizeof measured, "%.2f ms", p99);
        row(what, measured, "5 ms", p99 / LIMIT_MS, "<=", 1);
    }
}
