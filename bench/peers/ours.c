/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tidemark's side of `make bench-peers`: does through the C API what the drivers of the others do through theirs. One command
 * a line on standard input, one JSON object a line on standard output; the end of the input ends it. See driver.js.
 *
 *   tidemark-bench-ours STORE pure|once
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench.h"

#define STEPS_MAX 100000
#define LOOP_STEPS 2000
#define LOOP_PAUSE_US 20000

/* ---- steps: so many sessions at once, each a chain of steps -------------------------------------------------------- */

struct team {
    tide_store *store;
    enum tide_effect effect;
    pthread_barrier_t ready;
    int steps;
    char *result; /* JSON text that each step returns; NULL: nothing */
    double *took; /* seconds of each step of the only member; NULL: there are several */
};

static enum tide_code give_result(void *arg, const char *key, struct tide_text *ret_result, struct tide_err *err)
{
    const struct team *t = arg;

    (void)key;
    (void)err;
    if (t->result) {
        ret_result->ptr = strdup(t->result);
        ret_result->len = strlen(t->result);
    }
    return TIDE_OK;
}

static void *member(void *arg)
{
    struct team *t = arg;
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "step", .effect = t->effect};
    struct tide_err err;
    tide_session *s;
    tide_run *run;

    must(tide_session_create(t->store, NULL, NULL, &s, &err), &err, "create");
    must(tide_run_start(s, NULL, &run, &err), &err, "start");
    pthread_barrier_wait(&t->ready);
    for (int i = 0; i < t->steps; i++) {
        double start = now_s();

        must(tide_run_step(run, &spec, give_result, t, NULL, &err), &err, "step");
        if (t->took)
            t->took[i] = now_s() - start;
    }
    must(tide_session_flush(s, &err), &err, "flush");
    pthread_barrier_wait(&t->ready);
    tide_run_close(run);
    tide_session_close(s);
    return NULL;
}

static char *json_text(size_t bytes)
{
    char *text = malloc(bytes + 3);
    unsigned seed = 1;

    must_sys(text != NULL, "memory");
    text[0] = '"';
    random_text(text + 1, bytes, &seed);
    memcpy(text + 1 + bytes, "\"", 2);
    return text;
}

static void steps(tide_store *store, enum tide_effect effect, int members, int n, size_t bytes)
{
    struct team t = {.store = store, .effect = effect, .steps = n};
    pthread_t *threads = calloc((size_t)members, sizeof *threads);
    double from, to;

    must_sys(threads && n > 0 && n <= STEPS_MAX, "steps");
    if (bytes)
        t.result = json_text(bytes);
    if (members == 1)
        t.took = calloc((size_t)n, sizeof *t.took);
    pthread_barrier_init(&t.ready, NULL, (unsigned)members + 1);
    for (int i = 0; i < members; i++)
        must_sys(pthread_create(&threads[i], NULL, member, &t) == 0, "thread");
    pthread_barrier_wait(&t.ready);
    from = now_s();
    pthread_barrier_wait(&t.ready);
    to = now_s();
    for (int i = 0; i < members; i++)
        pthread_join(threads[i], NULL);
    printf("{\"from\":%.6f,\"to\":%.6f,\"p50_ms\":%.4f}\n", from, to, t.took ? median(t.took, (size_t)n) * 1e3 : 0);
    pthread_barrier_destroy(&t.ready);
    free(threads);
    free(t.result);
    free(t.took);
}

/* ---- a graph: a chain of nodes over one big value of the memory ------------------------------------------------------ */

struct big {
    char *
        output; /* {"big":"…"}: digits of the count stand in its text, so that no two are the same; NULL: nothing changes */
    long count;
};

static enum tide_code node(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                           struct tide_err *err)
{
    struct big *b = arg;

    (void)call;
    (void)err;
    ret_output->ptr = strdup(b->output ? b->output : "{\"k\":1}");
    ret_output->len = strlen(ret_output->ptr);
    if (b->output)
        for (long v = ++b->count, i = 16; i > 8; i--, v /= 10)
            ret_output->ptr[i] = (char)('0' + v % 10);
    return TIDE_OK;
}

static tide_graph *chain(int n, struct big *b)
{
    char *json = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&json, &len);
    struct tide_err err;
    tide_graph *g;

    must_sys(f != NULL, "memory");
    fprintf(f, "{\"tidemark_graph\":1,\"id\":\"chain\",\"entry\":\"n0\",\"max_steps\":0,\"nodes\":[");
    for (int i = 0; i < n; i++)
        fprintf(f,
                "%s{\"id\":\"n%d\",\"type\":\"function\",\"callback\":\"node\",\"effect\":\"idempotent\","
                "\"nullable_outputs\":[\"k\",\"big\"],\"outputs\":[\"k\",\"big\"]}",
                i ? "," : "", i);
    fprintf(f, "],\"edges\":[");
    for (int i = 1; i < n; i++)
        fprintf(f, "%s{\"from\":\"n%d\",\"to\":\"n%d\"}", i > 1 ? "," : "", i - 1, i);
    fprintf(f, "]}");
    must_sys(fclose(f) == 0, "memory");
    must(tide_graph_parse(json, len, NULL, NULL, NULL, &g, &err), &err, "graph");
    must(tide_graph_add_callback(g, "node", node, b, &err), &err, "callback");
    free(json);
    return g;
}

static void graph(tide_store *store, int nodes, size_t bytes, bool changed)
{
    char *text = json_text(bytes), *memory = malloc(bytes + 16);
    struct big b = {.output = changed ? memory : NULL};
    const struct tide_graph_options opt = {
        .size = sizeof opt, .checkpoints = "{\"async_checkpoint\":false}", .memory = memory};
    tide_graph *g = chain(nodes, &b);
    struct tide_err err;
    tide_session *s;
    double from;

    must_sys(memory != NULL, "memory");
    snprintf(memory, bytes + 16, "{\"big\":%s}", text);
    must(tide_session_create(store, NULL, NULL, &s, &err), &err, "create");
    from = now_s();
    must(tide_graph_run(s, g, &opt, NULL, &err), &err, "run");
    printf("{\"from\":%.6f,\"to\":%.6f}\n", from, now_s());
    tide_graph_free(g);
    tide_session_close(s);
    free(memory);
    free(text);
}

/* ---- a run that is killed and started again -------------------------------------------------------------------------- */

static enum tide_code write_line(void *arg, const char *key, struct tide_text *ret_result, struct tide_err *err)
{
    FILE *f = fopen(arg, "a");

    (void)key;
    (void)ret_result;
    (void)err;
    must_sys(f && fputs("step\n", f) >= 0 && fclose(f) == 0, "the file of steps");
    usleep(LOOP_PAUSE_US);
    return TIDE_OK;
}

static void loop(tide_store *store, char *file)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "step", .effect = TIDE_EFFECT_PURE};
    enum tide_ensured how;
    struct tide_err err;
    enum tide_code code;
    tide_session *s;
    tide_run *run;

    code = tide_session_open(store, "loop", TIDE_SESSION_APPEND, &s, &err);
    if (code == TIDE_NOT_FOUND)
        code = tide_session_create(store, "loop", NULL, &s, &err);
    must(code, &err, "session");
    must(tide_run_ensure(s, NULL, &how, &run, &err), &err, "ensure");
    for (int i = 0; run && i < LOOP_STEPS; i++)
        must(tide_run_step(run, &spec, write_line, file, NULL, &err), &err, "step");
    tide_run_close(run);
    tide_session_close(s);
}

/* ---- commands -------------------------------------------------------------------------------------------------------- */

static void ready(tide_store *store)
{
    struct tide_text info = {0};
    struct tide_err err;

    must(tide_store_get_info(store, &info, &err), &err, "info");
    printf("{\"ready\":true,\"info\":%.*s}\n", (int)info.len, info.ptr);
    tide_text_done(&info);
}

int main(int argc, char **argv)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    char line[512], word[16], rest[480];
    struct tide_err err;
    tide_store *store;
    enum tide_effect effect;

    if (argc != 3)
        return fprintf(stderr, "usage: tidemark-bench-ours STORE pure|once\n"), 2;
    effect = strcmp(argv[2], "once") == 0 ? TIDE_EFFECT_ONCE : TIDE_EFFECT_PURE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(tide_store_open(argv[1], &opt, &store, &err), &err, "open");
    ready(store);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%15s %479[^\n]", word, rest) == 2) {
        char *at = rest;
        long a = strtol(at, &at, 10), b = strtol(at, &at, 10), c = strtol(at, &at, 10);

        if (strcmp(word, "steps") == 0)
            steps(store, effect, (int)a, (int)b, (size_t)c);
        else if (strcmp(word, "graph") == 0)
            graph(store, (int)a, (size_t)b, c != 0);
        else if (strcmp(word, "loop") == 0)
            loop(store, rest);
    }
    tide_store_close(store);
    return 0;
}
