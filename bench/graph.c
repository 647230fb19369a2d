/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a graph costs beside its nodes' work: how many syncs a node of a chain waits for, what pure nodes save, many graphs at
 * once, what a checkpoint writes when the memory is big, what an item of a long map costs, and how soon a graph that failed
 * late goes on.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define CHAIN 1000
#define GRAPHS 64
#define GRAPH_NODES 100
#define ROUNDS 5
#define ITEMS 40000
#define ITEMS_FEW 1000
#define ITEMS_MOST 100000
#define BRANCHES 4000
#define BRANCHES_FEW 1000
#define SYNC "{\"async_checkpoint\":false}"

/* ---- graphs ------------------------------------------------------------------------------------------------------- */

struct outside {
    double called; /* when the watched node was */
    long watched;
    bool fails; /* it does, the first time */
};

static enum tide_code trivial(void *arg, const struct tide_node_call *call, struct tide_text *ret, struct tide_err *err)
{
    struct outside *o = arg;

    if (!o || strtol(call->node + 1, NULL, 10) != o->watched) {
        ret->ptr = strdup("{\"k\":1}");
        ret->len = 7;
        return TIDE_OK;
    }
    o->called = now_s();
    if (!o->fails)
        return TIDE_OK;
    err->code = TIDE_FAILED;
    snprintf(err->msg, sizeof err->msg, "it fails");
    return TIDE_FAILED;
}

static tide_graph *chain(int n, const char *effect, struct outside *o)
{
    char *json = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&json, &len);
    struct tide_err err;
    tide_graph *g;

    must_sys(f != NULL, "memory");
    fprintf(f, "{\"tidemark_graph\":1,\"id\":\"chain\",\"entry\":\"n0\",\"max_steps\":0,\"max_retries\":0,\"nodes\":[");
    for (int i = 0; i < n; i++)
        fprintf(
            f,
            "%s{\"id\":\"n%d\",\"type\":\"function\",\"callback\":\"trivial\",\"effect\":\"%s\",\"nullable_outputs\":[\"k\"],\"outputs\":[\"k\"]}",
            i ? "," : "", i, effect);
    fprintf(f, "],\"edges\":[");
    for (int i = 1; i < n; i++)
        fprintf(f, "%s{\"from\":\"n%d\",\"to\":\"n%d\"}", i > 1 ? "," : "", i - 1, i);
    fprintf(f, "]}");
    must_sys(fclose(f) == 0, "memory");
    must(tide_graph_parse(json, len, NULL, NULL, NULL, &g, &err), &err, "graph");
    must(tide_graph_add_callback(g, "trivial", trivial, o, &err), &err, "callback");
    free(json);
    return g;
}

static double execute(tide_store *store, tide_graph *g, const char *checkpoints, const char *memory,
                      enum tide_code want)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .checkpoints = checkpoints, .memory = memory};
    struct tide_err err;
    tide_session *s;
    enum tide_code code;
    double start;

    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    start = now_s();
    code = tide_graph_run(s, g, &opt, NULL, &err);
    must(code == want ? TIDE_OK : code, &err, "execute");
    start = now_s() - start;
    tide_session_close(s);
    return start;
}

/* ---- a chain ------------------------------------------------------------------------------------------------------- */

static void bench_chain(const struct bench *b)
{
    int n = b->quick ? 100 : CHAIN;
    double took[ROUNDS], syncs[ROUNDS], pure[ROUNDS], count[ROUNDS];
    tide_store *store = store_new(b, "chain");
    tide_graph *g = chain(n, "idempotent", NULL), *p = chain(n, "pure", NULL);
    char measured[80], beside[80];
    double each, raw, fast;

    for (int i = 0; i < ROUNDS; i++) {
        long before;

        syncs[i] = 1 / raw_sync_rate(b, false, b->quick ? 0.05 : 0.3);
        before = syncs_so_far();
        took[i] = execute(store, g, SYNC, NULL, TIDE_OK) / n;
        count[i] = (double)(syncs_so_far() - before) / n;
        pure[i] = execute(store, p, NULL, NULL, TIDE_OK) / n;
    }
    tide_graph_free(g);
    tide_graph_free(p);
    tide_store_close(store);
    each = median(took, ROUNDS);
    raw = median(syncs, ROUNDS);
    fast = median(pure, ROUNDS);
    snprintf(measured, sizeof measured, "%.0f us a node, two checkpoints each", each * 1e6);
    snprintf(beside, sizeof beside, "%.0f us a raw sync: %.2f times", raw * 1e6, each / raw);
    row("chain of 1,000 callbacks, synchronous: syncs a node", measured, beside, median(count, ROUNDS), "<=", 1.3);
    snprintf(measured, sizeof measured, "%.0f us a node", fast * 1e6);
    snprintf(beside, sizeof beside, "%.0f us synchronous", each * 1e6);
    row("the same, pure and asynchronous: times faster", measured, beside, each / fast, ">=", 10);
}

/* ---- many at once ---------------------------------------------------------------------------------------------------- */

struct runner {
    tide_store *store;
    tide_graph *graph;
    pthread_t thread;
};

static void *run_one(void *arg)
{
    struct runner *r = arg;

    execute(r->store, r->graph, NULL, NULL, TIDE_OK);
    return NULL;
}

static void bench_graphs(const struct bench *b)
{
    int nodes = b->quick ? 10 : GRAPH_NODES;
    double rate[ROUNDS], raw[ROUNDS];
    tide_store *store = store_new(b, "graphs");
    char measured[80], beside[80];

    for (int i = 0; i < ROUNDS; i++) {
        struct runner runners[GRAPHS];
        double start;

        for (int k = 0; k < GRAPHS; k++)
            runners[k] = (struct runner){.store = store, .graph = chain(nodes, "idempotent", NULL)};
        raw[i] = raw_sync_rate(b, false, b->quick ? 0.05 : 0.3);
        start = now_s();
        for (int k = 0; k < GRAPHS; k++)
            must_sys(pthread_create(&runners[k].thread, NULL, run_one, &runners[k]) == 0, "thread");
        for (int k = 0; k < GRAPHS; k++)
            pthread_join(runners[k].thread, NULL);
        rate[i] = GRAPHS * nodes / (now_s() - start);
        for (int k = 0; k < GRAPHS; k++)
            tide_graph_free(runners[k].graph);
    }
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.0f nodes/s", median(rate, ROUNDS));
    snprintf(beside, sizeof beside, "%.0f raw syncs/s one by one", median(raw, ROUNDS));
    row("64 graphs at once, 100 nodes each", measured, beside, median(rate, ROUNDS) / median(raw, ROUNDS), ">=", 5);
}

/* ---- big memory ------------------------------------------------------------------------------------------------------ */

/* Bytes that ten nodes add to the store beyond what one node does, a checkpoint. */
static double bytes_a_checkpoint(const struct bench *b, size_t memory_bytes)
{
    char *memory = malloc(memory_bytes + 40), *text;
    unsigned seed = b->seed + 1;
    int64_t bytes[2];

    must_sys(memory != NULL, "memory");
    text = memory + snprintf(memory, 40, "{\"big\":\"");
    random_text(text, memory_bytes, &seed);
    snprintf(text + memory_bytes, 3, "\"}");
    for (int i = 0; i < 2; i++) {
        tide_store *store = store_new(b, "memory");
        tide_graph *g = chain(i ? 10 : 1, "idempotent", NULL);

        execute(store, g, SYNC, memory, TIDE_OK);
        tide_graph_free(g);
        tide_store_close(store);
        bytes[i] = store_bytes(b, "memory");
    }
    free(memory);
    return (double)(bytes[1] - bytes[0]) / 18; /* nine nodes more, two checkpoints each */
}

static void bench_memory(const struct bench *b)
{
    double small = bytes_a_checkpoint(b, (size_t)10 << 10), big = bytes_a_checkpoint(b, (size_t)1 << 20);
    char measured[80], beside[80];

    snprintf(measured, sizeof measured, "%.0f B with 1 MiB of memory", big);
    snprintf(beside, sizeof beside, "%.0f B with 10 KiB", small);
    row("written a checkpoint, ten nodes that change one key each", measured, beside, big / small, "<=", 1.5);
}

/* ---- maps ------------------------------------------------------------------------------------------------------------ */

/* Seconds for a map over so many items of a list in the memory. */
static double map_over(tide_store *store, tide_graph *g, int items, enum tide_code want)
{
    char *memory = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&memory, &len);
    double took;

    must_sys(f != NULL, "memory");
    for (int i = 0; i < items; i++)
        fprintf(f, i ? ",%d" : "{\"list\":[%d", i);
    fprintf(f, "]}");
    must_sys(fclose(f) == 0, "memory");
    took = execute(store, g, NULL, memory, want);
    free(memory);
    return took;
}

struct longest {
    double seconds, bytes; /* an item: its time, and of the most memory that was held at once */
};

/* In a process of its own, so that the memory is its. */
static struct longest longest_map(const struct bench *b, tide_graph *g, int items, enum tide_code want)
{
    struct longest l = {0, 0};
    int pair[2], status;
    pid_t pid;

    must_sys(pipe(pair) == 0, "pipe");
    pid = fork();
    must_sys(pid >= 0, "fork");
    if (pid == 0) {
        tide_store *store = store_new(b, "longest");
        double before = peak_bytes();

        l.seconds = map_over(store, g, items, want) / items;
        l.bytes = (peak_bytes() - before) / items;
        must_sys(write(pair[1], &l, sizeof l) == (ssize_t)sizeof l, "pipe");
        _exit(0);
    }
    must_sys(waitpid(pid, &status, 0) == pid && status == 0, "child");
    must_sys(read(pair[0], &l, sizeof l) == (ssize_t)sizeof l, "pipe");
    close(pair[0]);
    close(pair[1]);
    return l;
}

/* A map, whose items are Lua or callbacks, pure; `rest` of the graph. */
static void bench_map(const struct bench *b, const char *kind, const char *node, const char *rest, enum tide_code want)
{
    int n = b->quick ? 2000 : ITEMS;
    int most = b->quick ? 4000 : ITEMS_MOST;
    double many[ROUNDS], few[ROUNDS], each;
    struct longest l;
    tide_store *store = store_new(b, "map");
    char json[512], what[80], measured[80], beside[80];
    struct tide_err err;
    tide_graph *g;

    snprintf(json, sizeof json,
             "{\"tidemark_graph\":1,\"id\":\"map\",\"entry\":\"m\",\"max_steps\":0,\"nodes\":[{\"id\":\"m\",\"type\":"
             "\"map\",\"over\":\"list\",\"node\":{%s,\"outputs\":[\"k\"]},\"outputs\":[\"k\"]}]%s}",
             node, rest);
    must(tide_graph_parse(json, strlen(json), NULL, NULL, NULL, &g, &err), &err, "graph");
    must(tide_graph_add_callback(g, "trivial", trivial, NULL, &err), &err, "callback");
    for (int i = 0; i < ROUNDS; i++) {
        few[i] = map_over(store, g, ITEMS_FEW, want) / ITEMS_FEW;
        many[i] = map_over(store, g, n, want);
    }
    tide_store_close(store);
    l = longest_map(b, g, most, want);
    tide_graph_free(g);
    each = median(many, ROUNDS) / n;
    snprintf(what, sizeof what, "map of 40,000 items, %s", kind);
    snprintf(measured, sizeof measured, "%.2f s", median(many, ROUNDS));
    row(what, measured, "4 s", median(many, ROUNDS) / 4, "<=", 1);
    snprintf(measured, sizeof measured, "%.0f us an item", each * 1e6);
    snprintf(beside, sizeof beside, "%.0f us an item of 1,000", median(few, ROUNDS) * 1e6);
    row("the same, an item", measured, beside, each / median(few, ROUNDS), "<=", 3);
    snprintf(measured, sizeof measured, "%.0f us an item", l.seconds * 1e6);
    row("the same of 100,000 items", measured, beside, l.seconds / median(few, ROUNDS), "<=", 3);
    snprintf(measured, sizeof measured, "%.0f MiB: %.0f B an item", l.bytes * most / 1048576, l.bytes);
    row("the same, peak memory more", measured, "2048 B an item", l.bytes / 2048, "<=", 1);
}

/* ---- wide graphs ----------------------------------------------------------------------------------------------------- */

/* One node, then n at once, then one that all of them lead to. Seconds for it. */
static double run_wide(tide_store *store, int n)
{
    static const char node[] = "{\"id\":\"%s%d\",\"type\":\"function\",\"callback\":\"trivial\",\"effect\":"
                               "\"pure\",\"nullable_outputs\":[\"k%d\"],\"outputs\":[\"k%d\"]}";
    char *json = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&json, &len);
    struct tide_err err;
    tide_graph *g;
    double took;

    must_sys(f != NULL, "memory");
    fprintf(f, "{\"tidemark_graph\":1,\"id\":\"wide\",\"entry\":\"n0\",\"max_steps\":0,\"nodes\":[");
    for (int i = 0; i < n + 2; i++) {
        fprintf(f, i ? "," : "");
        fprintf(f, node, "n", i, i, i);
    }
    fprintf(f, "],\"edges\":[");
    for (int i = 1; i <= n; i++)
        fprintf(f, "%s{\"from\":\"n0\",\"to\":\"n%d\"},{\"from\":\"n%d\",\"to\":\"n%d\"}", i > 1 ? "," : "", i, i,
                n + 1);
    fprintf(f, "]}");
    must_sys(fclose(f) == 0, "memory");
    must(tide_graph_parse(json, len, NULL, NULL, NULL, &g, &err), &err, "graph");
    must(tide_graph_add_callback(g, "trivial", trivial, NULL, &err), &err, "callback");
    took = execute(store, g, NULL, NULL, TIDE_OK);
    tide_graph_free(g);
    free(json);
    return took;
}

static void bench_wide(const struct bench *b)
{
    int n = b->quick ? 400 : BRANCHES, fewer = b->quick ? 100 : BRANCHES_FEW;
    double many[ROUNDS], few[ROUNDS], ratio[ROUNDS];
    tide_store *store = store_new(b, "wide");
    char measured[64], beside[64];

    for (int i = 0; i < ROUNDS; i++) {
        few[i] = run_wide(store, fewer) / fewer;
        many[i] = run_wide(store, n) / n;
        ratio[i] = many[i] / few[i];
    }
    tide_store_close(store);
    snprintf(measured, sizeof measured, "%.0f us a branch", median(many, ROUNDS) * 1e6);
    snprintf(beside, sizeof beside, "%.0f us a branch of 1,000", median(few, ROUNDS) * 1e6);
    row("graph of 4,000 branches at once, pure callbacks", measured, beside, median(ratio, ROUNDS), "<=", 3);
}

/* ---- going on -------------------------------------------------------------------------------------------------------- */

static void bench_late(const struct bench *b)
{
    int n = b->quick ? 100 : CHAIN;
    struct outside o = {.watched = n * 9 / 10, .fails = true};
    tide_graph *g = chain(n, "pure", &o);
    double took[ROUNDS];
    char measured[80];

    for (int i = 0; i < ROUNDS; i++) {
        tide_store *store = store_new(b, "late");
        struct tide_err err;
        tide_session *s;
        tide_graph *again;
        double start;

        o.fails = true;
        must(tide_session_create(store, "late", NULL, &s, &err), &err, "create");
        must_sys(tide_graph_run(s, g, NULL, NULL, &err) == TIDE_FAILED, "a failing graph");
        tide_session_close(s);
        tide_store_close(store);
        o.fails = false;
        store = store_again(b, "late");
        start = now_s();
        must(tide_session_open(store, "late", TIDE_SESSION_APPEND, &s, &err), &err, "open");
        must(tide_graph_load(s, &again, &err), &err, "the stored graph");
        must(tide_graph_add_callback(again, "trivial", trivial, &o, &err), &err, "callback");
        must(tide_graph_resume(s, again, NULL, NULL, &err), &err, "resume");
        took[i] = o.called - start;
        tide_graph_free(again);
        tide_session_close(s);
        tide_store_close(store);
    }
    tide_graph_free(g);
    snprintf(measured, sizeof measured, "%.1f ms", median(took, ROUNDS) * 1e3);
    row("resume at node 900 of 1,000: opened to that node called", measured, "20 ms", median(took, ROUNDS) / 20e-3,
        "<=", 1);
}

void bench_graph(const struct bench *b)
{
    bench_chain(b);
    bench_graphs(b);
    bench_memory(b);
    bench_map(b, "pure, Lua", "\"type\":\"lua\",\"code\":\"return {k = inputs.item * 2}\"", "", TIDE_OK);
    bench_map(b, "pure, callbacks", "\"type\":\"function\",\"callback\":\"trivial\",\"effect\":\"pure\"", "", TIDE_OK);
    bench_map(b, "all fail, wait_all", "\"type\":\"lua\",\"retries\":0,\"code\":\"error('no')\"",
              ",\"branch_failure\":\"wait_all\"", TIDE_FAILED);
    bench_wide(b);
    bench_late(b);
}
