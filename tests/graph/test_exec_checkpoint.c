/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints that eight branches make at the same time, on real threads, while old ones are pruned: none is lost or made
 * twice, each can be loaded, and whatever says that a graph can go on from it can.
 */
#include <sched.h>

#include "graphs.h"

enum { BRANCHES = 8, STAGES = 3, LENGTH = SLOW_BUILD ? 3 : 6, MARKS_MAX = 4096 };

/* ---- a graph of stages: each fans out, and all of it comes together before the next ---- */

static void put_node(struct buf *b, const char *id, const char *effect)
{
    buf_addf(b, "%s{\"id\":\"%s\",\"type\":\"function\",\"callback\":\"busy\",\"effect\":\"%s\",\"outputs\":[\"%s\"]}",
             b->ptr[b->len - 1] == '[' ? "" : ",", id, effect, id);
}

static void put_edge(struct buf *b, const char *from, const char *to)
{
    buf_addf(b, "%s{\"from\":\"%s\",\"to\":\"%s\"}", b->ptr[b->len - 1] == '[' ? "" : ",", from, to);
}

static const char *id_of(char out[32], int stage, int branch, int at)
{
    snprintf(out, 32, "s%db%dn%d", stage, branch, at);
    return out;
}

static const char *gate_of(char out[32], int stage)
{
    snprintf(out, 32, "gate%d", stage);
    return out;
}

static void put_branch(struct buf *nodes, struct buf *edges, int stage, int branch)
{
    char id[32], next[32];

    put_edge(edges, gate_of(id, stage), id_of(next, stage, branch, 0));
    for (int i = 0; i < LENGTH; i++) {
        put_node(nodes, id_of(id, stage, branch, i), (branch + i) % 3 ? "idempotent" : "pure");
        put_edge(edges, id, i + 1 < LENGTH ? id_of(next, stage, branch, i + 1) : gate_of(next, stage + 1));
    }
}

static void put_graph(struct buf *out)
{
    AUTO(buf_done) struct buf nodes = BUF_INIT(1 << 20), edges = BUF_INIT(1 << 20);
    char id[32];

    buf_add_char(&nodes, '[');
    buf_add_char(&edges, '[');
    for (int s = 0; s <= STAGES; s++) {
        put_node(&nodes, gate_of(id, s), "idempotent");
        for (int b = 0; b < BRANCHES && s < STAGES; b++)
            put_branch(&nodes, &edges, s, b);
    }
    buf_addf(out,
             "{\"tidemark_graph\":1,\"id\":\"wide\",\"entry\":\"gate0\",\"parallel\":%d,\"nodes\":%s],\"edges\":%s]}",
             BRANCHES, buf_cstr(&nodes), buf_cstr(&edges));
    buf_cstr(out);
}

/* ---- running it ---- */

struct wide {
    struct world w;
    tide_graph *g;
    char session[TIDE_ID_SIZE];
    char *made[MARKS_MAX]; /* ids as they were told; events never come two at a time */
    size_t n;
    char *memory;
};

/* Others get a chance in the middle of it. */
static enum tide_code busy(void *arg, const struct tide_node_call *call, struct tide_text *ret, struct tide_err *err)
{
    for (size_t i = 0; i < strlen(call->node) % 5; i++)
        sched_yield();
    return world_work(arg, call, ret, err);
}

static void hear(void *arg, const struct tide_graph_event *ev)
{
    struct wide *r = arg;

    if (ev->what != TIDE_GRAPH_CHECKPOINT)
        return;
    assert_true(r->n < MARKS_MAX);
    r->made[r->n++] = mem_dup(str_from(ev->checkpoint_id));
}

static void begin(struct wide *r)
{
    AUTO(buf_done) struct buf json = BUF_INIT(1 << 20);

    memset(r, 0, sizeof *r);
    world_open(&r->w);
    put_graph(&json);
    OK(tide_graph_parse(json.ptr, json.len, NULL, NULL, NULL, &r->g, &err));
    OK(tide_graph_add_callback(r->g, "busy", busy, &r->w, &err));
}

static void end(struct wide *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->made[i]);
    free(r->memory);
    tide_graph_free(r->g);
    world_close(&r->w);
}

static void execute(struct wide *r, const char *checkpoints)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .checkpoints = checkpoints, .event = hear, .arg = r};
    struct tide_graph_result result = {0};
    tide_session *s = NULL;

    OK(tide_session_create(r->w.store, NULL, NULL, &s, &err));
    snprintf(r->session, sizeof r->session, "%s", tide_session_id(s));
    OK(tide_graph_run(s, r->g, &opt, &result, &err));
    tide_session_close(s);
    r->memory = result.memory.ptr;
    assert_int_equal(r->w.n, STAGES * BRANCHES * LENGTH + STAGES + 1);
}

/* ---- what the log tells ---- */

struct made {
    char id[TIDE_ID_SIZE];
    bool resumable, quiet; /* quiet: nothing was under way there */
};

struct told {
    struct arena arena;
    struct map active;
    struct made at[MARKS_MAX];
    size_t n;
};

static int take(void *arg, const struct tide_event *ev)
{
    struct told *t = arg;
    struct json *body;
    struct str node;

    OK(json_parse(&t->arena, arena_dup(&t->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL, &err));
    node = json_get_text(&t->arena, body, STR("node"));
    if (strcmp(ev->kind, "node.started") == 0)
        map_put(&t->active, node, t);
    else if (strcmp(ev->kind, "node.completed") == 0)
        assert_non_null(map_remove(&t->active, node));
    if (strcmp(ev->kind, "checkpoint") != 0)
        return 0;
    assert_true(t->n < MARKS_MAX);
    snprintf(t->at[t->n].id, TIDE_ID_SIZE, "%.*s", STR_ARG(json_get_text(&t->arena, body, STR("checkpoint_id"))));
    t->at[t->n].resumable = json_get_bool(body, STR("can_resume_from"), false);
    t->at[t->n++].quiet = t->active.live == 0;
    return 0;
}

static struct told *read_log(struct wide *r)
{
    struct told *t = mem_zero(sizeof *t);
    tide_session *s;

    t->arena = (struct arena)ARENA_INIT;
    OK(tide_session_open(r->w.store, r->session, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, take, t, &err));
    tide_session_close(s);
    assert_int_equal(t->active.live, 0);
    return t;
}

static void told_free(struct told *t)
{
    map_done(&t->active, NULL);
    arena_done(&t->arena);
    free(t);
}

/* ---- what must hold ---- */

static void check_ids(struct wide *r, const struct told *t)
{
    struct map seen = {0};

    assert_int_equal(r->n, t->n);
    for (size_t i = 0; i < t->n; i++) {
        if (map_put(&seen, str_from(t->at[i].id), r))
            fail_msg("two checkpoints have the id %s", t->at[i].id);
        if (t->at[i].resumable && !t->at[i].quiet)
            fail_msg("%s says that it can be gone on from, and other nodes were under way", t->at[i].id);
    }
    for (size_t i = 0; i < r->n; i++)
        if (!map_get(&seen, str_from(r->made[i])))
            fail_msg("%s was told and is not in the log", r->made[i]);
    map_done(&seen, NULL);
}

struct list {
    char ids[MARKS_MAX][TIDE_ID_SIZE];
    bool resumable[MARKS_MAX];
    size_t n;
};

static int take_mark(void *arg, const struct tide_checkpoint *c)
{
    struct list *l = arg;

    assert_true(l->n < MARKS_MAX);
    snprintf(l->ids[l->n], TIDE_ID_SIZE, "%s", c->id);
    l->resumable[l->n++] = c->can_resume_from;
    return 0;
}

static int same_id(void *arg, const struct tide_checkpoint *c)
{
    assert_string_equal(arg, c->id);
    return 0;
}

static struct list *read_list(struct wide *r)
{
    struct list *l = mem_zero(sizeof *l);
    tide_session *s;

    OK(tide_session_open(r->w.store, r->session, TIDE_SESSION_READ, &s, &err));
    OK(tide_checkpoint_list(s, NULL, take_mark, l, &err));
    for (size_t i = 0; i < l->n; i++)
        OK(checkpoint_shown(s, l->ids[i], same_id, l->ids[i], &err));
    tide_session_close(s);
    return l;
}

/* Members in any order: it is that of the branches. */
static void check_memory(const char *got, const char *want)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *left, *right;

    OK(json_parse(&a, str_from(got), NULL, &left, NULL, &err));
    OK(json_parse(&a, str_from(want), NULL, &right, NULL, &err));
    assert_int_equal(left->count, right->count);
    for (const struct json *m = left->first; m; m = m->next) {
        const struct json *other = json_get(right, json_key_text(&a, m));

        if (!other || !str_eq(json_source(m), json_source(other)))
            fail_msg("%.*s is %.*s in the fork", STR_ARG(m->key), STR_ARG(json_source(m)));
    }
}

static void check_fork(struct wide *r, const char *checkpoint)
{
    const struct tide_graph_options opt = {.size = sizeof opt, .checkpoint = checkpoint};
    struct tide_graph_result result = {0};
    tide_session *s = NULL;

    world_forget(&r->w);
    OK(tide_session_open(r->w.store, r->session, TIDE_SESSION_APPEND, &s, &err));
    OK(tide_graph_resume(s, r->g, &opt, &result, &err));
    tide_session_close(s);
    assert_string_not_equal(result.session_id, r->session);
    check_memory(result.memory.ptr, r->memory);
    tide_text_done(&result.memory);
}

static size_t check_forks(struct wide *r, const struct list *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++)
        if (l->resumable[i]) {
            check_fork(r, l->ids[i]);
            n++;
        }
    return n;
}

/* ---- the cases ---- */

static void checkpoints_of_parallel_branches(void **state)
{
    static const struct {
        const char *config;
        size_t most; /* that are left; 0: all are */
    } ways[] = {
        {"{\"async_checkpoint\":true,\"max_checkpoints_per_session\":0}", 0},
        {"{\"async_checkpoint\":false,\"max_checkpoints_per_session\":0,\"checkpoint_on_edge\":true}", 0},
        {"{\"async_checkpoint\":true,\"max_checkpoints_per_session\":5,\"prune_after_node_count\":2}", 5},
        {"{\"async_checkpoint\":false,\"max_checkpoints_per_session\":9,\"prune_after_node_count\":1}", 9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct wide r;
        struct told *t;
        struct list *l;

        begin(&r);
        execute(&r, ways[i].config);
        t = read_log(&r);
        check_ids(&r, t);
        l = read_list(&r);
        assert_true(l->n > 0);
        if (ways[i].most ? l->n > ways[i].most + 4 : l->n != t->n) /* a few more come after the last pruning */
            fail_msg("%s: %zu of %zu checkpoints are left", ways[i].config, l->n, t->n);
        assert_true(check_forks(&r, l) > 0);
        told_free(t);
        free(l);
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints_of_parallel_branches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
