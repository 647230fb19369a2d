/* SPDX-License-Identifier: Apache-2.0 */
/* What the log tells, read by a fold of our own: the one under test is not asked. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "graph.h"

struct fact {
    struct log_fold *t;
    const struct json *body;
    struct str node, visit; /* visit: "node#2" */
};

static void wrong(struct log_fold *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct log_fold *t, const char *fmt, ...)
{
    va_list ap;

    if (t->wrong[0])
        return;
    va_start(ap, fmt);
    vsnprintf(t->wrong, sizeof t->wrong, fmt, ap);
    va_end(ap);
}

static struct str text(const struct fact *f, const char *key)
{
    return json_get_text(&f->t->arena, f->body, str_from(key));
}

static bool flag(const struct fact *f, const char *key)
{
    return json_get_bool(f->body, str_from(key), false);
}

/* ---- nodes ---- */

static struct str failed_key(const struct fact *f)
{
    return str_from(arena_printf(&f->t->arena, "failed %.*s", STR_ARG(f->visit)));
}

/* What failed for good and is begun again has all its attempts. */
static void check_attempt(struct fact *f)
{
    struct record told = {f->t->told};
    int64_t attempt = json_get_int(f->body, STR("attempt"), 0);

    if (!record_get(&told, failed_key(f)))
        return;
    if (attempt)
        wrong(f->t, "%.*s failed for good and is begun again with attempt %" PRId64, STR_ARG(f->visit), attempt);
    record_set(&told, failed_key(f), 0);
    f->t->told = told.at;
}

static void node_started(struct fact *f)
{
    struct str begun = str_from(arena_printf(&f->t->arena, "begun %.*s", STR_ARG(f->visit)));
    struct record told = {f->t->told};

    f->t->end.steps += !record_get(&told, begun);
    record_set(&told, begun, 1);
    f->t->told = told.at;
    if (record_get(&f->t->end.record, f->visit) && record_get(&f->t->end.record, f->visit) != 'f')
        wrong(f->t, "%.*s was over and is begun again", STR_ARG(f->visit));
    check_attempt(f);
}

/* Of it, and of what was inside it: nobody is asked any more. */
static void effects_over(struct fact *f)
{
    struct map *effects = &f->t->effects;

    free(map_remove(effects, f->node));
    for (struct map_entry *e = map_next(effects, NULL); e; e = map_next(effects, e))
        if (is_inside(map_key(e), f->visit))
            free(map_remove(effects, map_key(e)));
}

static void node_completed(struct fact *f)
{
    struct record told = {f->t->told};

    record_add(&told, f->visit, 1);
    f->t->told = told.at;
    if (record_get(&f->t->end.record, f->visit) == 'c')
        wrong(f->t, "%.*s is complete twice", STR_ARG(f->visit));
    record_set(&f->t->end.record, f->visit, 'c');
    effects_over(f);
}

static void node_failed(struct fact *f)
{
    bool again = text(f, "retry_at").len > 0;
    struct record told = {f->t->told};

    record_set(&told, failed_key(f), !again);
    f->t->told = told.at;
    f->t->end.failures++;
    if (flag(f, "handled") || flag(f, "dropped"))
        effects_over(f);
    if (!again)
        record_set(&f->t->end.record, f->visit, flag(f, "handled") ? 'h' : flag(f, "dropped") ? 'd' : 'f');
}

static void edge_taken(struct fact *f)
{
    struct str from = text(f, "from"), to = text(f, "to");

    record_add(&f->t->end.record, str_from(arena_printf(&f->t->arena, "%.*s>%.*s", STR_ARG(from), STR_ARG(to))), 1);
}

static void memory_set(struct fact *f)
{
    const struct json *values = json_get(f->body, STR("values"));

    for (const struct json *m = values->first; m && !text(f, "frame").len; m = m->next)
        free(map_put(&f->t->end.memory, json_key_text(&f->t->arena, m), mem_dup(json_source(m))));
}

/* ---- effects and runs ---- */

static void tool_started(struct fact *f)
{
    free(map_put(&f->t->effects, f->node, mem_dup(f->visit)));
    free(map_remove(&f->t->withdrawn, f->visit));
}

/* What it gave is there, also where the node could not take it. */
static void tool_completed(struct fact *f)
{
    free(map_remove(&f->t->effects, f->node));
}

static void tool_withdrawn(struct fact *f)
{
    tool_completed(f);
    free(map_put(&f->t->withdrawn, f->visit, mem_dup(f->visit)));
}

static void run_started(struct fact *f)
{
    f->t->started = true;
    f->t->over = f->t->completed = f->t->waiting = f->t->failed = false;
}

static void run_completed(struct fact *f)
{
    f->t->over = f->t->completed = true;
    f->t->waiting = false;
}

static void run_failed(struct fact *f)
{
    f->t->over = f->t->failed = true;
    f->t->waiting = false;
}

static void run_ended(struct fact *f)
{
    f->t->over = true;
    f->t->waiting = false;
}

static void run_waiting(struct fact *f)
{
    f->t->waiting = true;
    f->t->wait_name = arena_dup(&f->t->arena, text(f, "wait_name"));
}

static const struct {
    const char *kind;
    void (*take)(struct fact *f);
} kinds[] = {
    {"node.started", node_started}, {"node.completed", node_completed}, {"node.failed", node_failed},
    {"edge.taken", edge_taken},     {"memory.set", memory_set},         {"tool.started", tool_started},
    {"run.started", run_started},   {"run.resumed", run_started},       {"run.completed", run_completed},
    {"run.failed", run_failed},     {"run.cancelled", run_ended},       {"run.interrupted", run_ended},
    {"run.waiting", run_waiting},   {"tool.completed", tool_completed}, {"tool.withdrawn", tool_withdrawn},
};

static int take(void *arg, const struct tide_event *ev)
{
    struct log_fold *t = arg;
    struct fact f = {.t = t};
    struct json *body;

    t->events++;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind, ev->kind) != 0)
            continue;
        if (json_parse(&t->arena, arena_dup(&t->arena, (struct str){ev->body, ev->body_len}), NULL, &body, NULL,
                       NULL)) {
            wrong(t, "event %" PRId64 " is no JSON", ev->seq);
            return 1;
        }
        f.body = body;
        f.node = text(&f, "node");
        f.visit =
            str_from(arena_printf(&t->arena, "%.*s#%" PRId64, STR_ARG(f.node), json_get_int(f.body, STR("visit"), 0)));
        kinds[i].take(&f);
    }
    return 0;
}

enum tide_code log_fold_read(tide_session *s, struct log_fold *ret, struct tide_err *err)
{
    *ret = (struct log_fold){.arena = ARENA_INIT};
    return tide_session_read(s, 0, 1, 0, take, ret, err);
}

void log_fold_done(struct log_fold *t)
{
    end_done(&t->end);
    map_done(&t->told, free);
    map_done(&t->effects, free);
    map_done(&t->withdrawn, free);
    arena_done(&t->arena);
}
