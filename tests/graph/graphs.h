/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of running graphs share: a store in a directory of its own, and callbacks that count who was called. */
#ifndef TESTS_GRAPHS_H
#define TESTS_GRAPHS_H

#include <pthread.h>

#include "graph/exec.h"
#include "kit.h"

#define CALLS_MAX 4096

/* The outside world: what really happened, whatever the log says. */
struct world {
    char dir[256], url[300];
    tide_store *store;
    pthread_mutex_t lock;
    char *calls[CALLS_MAX]; /* "node#visit", in order */
    size_t n;
    char fail[64];      /* this node fails … */
    int fail_times;     /* … so often; negative: always */
    char notices[8192]; /* what was told */
    int concurrent, most_concurrent;
};

UNUSED static void world_open(struct world *w)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};

    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    dir_make(w->dir);
    store_url_in(w->url, sizeof w->url, w->dir, "s");
    OK(tide_store_open(w->url, &opt, &w->store, &err));
}

UNUSED static void world_forget(struct world *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->calls[i]);
    w->n = 0;
    w->notices[0] = 0;
}

UNUSED static void world_close(struct world *w)
{
    world_forget(w);
    tide_store_close(w->store);
    pthread_mutex_destroy(&w->lock);
    dir_remove(w->dir);
}

UNUSED static size_t world_count(const struct world *w, const char *node)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += strncmp(w->calls[i], node, strlen(node)) == 0 && w->calls[i][strlen(node)] == '#';
    return n;
}

/* "a#1 b#1 c#1" */
UNUSED static const char *world_calls(const struct world *w, struct buf *b)
{
    buf_clear(b);
    for (size_t i = 0; i < w->n; i++)
        buf_addf(b, "%s%s", i ? " " : "", w->calls[i]);
    return buf_cstr(b);
}

/* Gives {"<node>": visit, "seen": <inputs>}; of a name with a frame only its last part. */
UNUSED static enum tide_code world_work(void *arg, const struct tide_node_call *call, struct tide_text *ret,
                                        struct tide_err *err)
{
    struct world *w = arg;
    const char *local = strrchr(call->node, '/');
    struct buf b = BUF_INIT(1 << 20);
    bool fails;

    local = local ? local + 1 : call->node;
    pthread_mutex_lock(&w->lock);
    buf_addf(&b, "%s#%lld", call->node, (long long)call->visit);
    assert_true(w->n < CALLS_MAX);
    w->calls[w->n++] = buf_take(&b);
    fails = strcmp(w->fail, call->node) == 0 && w->fail_times != 0;
    w->fail_times -= fails && w->fail_times > 0;
    w->concurrent++;
    if (w->concurrent > w->most_concurrent)
        w->most_concurrent = w->concurrent;
    pthread_mutex_unlock(&w->lock);
    b = (struct buf)BUF_INIT(1 << 20);
    buf_addf(&b, "{\"%.*s\":%lld,\"seen\":%s}", (int)strcspn(local, "#["), local, (long long)call->visit, call->inputs);
    pthread_mutex_lock(&w->lock);
    w->concurrent--;
    pthread_mutex_unlock(&w->lock);
    if (fails) {
        buf_done(&b);
        return tide_fail(err, TIDE_FAILED, "it was told to fail");
    }
    ret->len = b.len;
    ret->ptr = buf_take(&b);
    return TIDE_OK;
}

/* Ends when six of them are there, or after ten seconds. */
UNUSED static enum tide_code world_meet(void *arg, const struct tide_node_call *call, struct tide_text *ret,
                                        struct tide_err *err)
{
    struct world *w = arg;
    bool met = false;

    (void)call;
    (void)err;
    pthread_mutex_lock(&w->lock);
    w->concurrent++;
    w->most_concurrent = w->concurrent > w->most_concurrent ? w->concurrent : w->most_concurrent;
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < 2000 && !met; i++) {
        pthread_mutex_lock(&w->lock);
        met = w->most_concurrent >= 6;
        pthread_mutex_unlock(&w->lock);
        if (!met)
            usleep(5000);
    }
    ret->ptr = mem_dup(STR("{\"m\":1}"));
    ret->len = 7;
    return TIDE_OK;
}

UNUSED static void world_hear(void *arg, const struct tide_graph_event *ev)
{
    struct world *w = arg;
    size_t at = strlen(w->notices);

    if (ev->what == TIDE_GRAPH_NOTICE)
        snprintf(w->notices + at, sizeof w->notices - at, "%s\n", ev->text);
}

UNUSED static tide_graph *world_graph(struct world *w, const char *json)
{
    tide_graph *g = NULL;

    OK(tide_graph_parse(json, strlen(json), NULL, NULL, NULL, &g, &err));
    OK(tide_graph_add_callback(g, "work", world_work, w, &err));
    return g;
}

#endif
