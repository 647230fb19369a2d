/* SPDX-License-Identifier: Apache-2.0 */
/* What came of it against what should have: the log against the books, the end against the oracle. */
#include <inttypes.h>

#include "graph.h"

void judge_acks(struct world *w, const struct log_fold *t)
{
    const struct record told = {t->told};

    for (struct map_entry *e = map_next(&w->acks, NULL); e; e = map_next(&w->acks, e))
        if (record_get(&told, map_key(e)) < *(int64_t *)e->value)
            world_wrong(w, "%s was told to be complete, and is not in the log", e->key);
}

static const struct effect *booked(const struct world *w, const char *visit)
{
    static const struct effect none = {0};
    const struct effect *d = map_get(&w->effects, str_from(visit));

    return d ? d : &none;
}

/* A run that ended by itself knows of each whether it began, and what it gave; one that says it did not begin is run. */
void judge_effects(struct world *w, const struct log_fold *t)
{
    for (struct map_entry *e = map_next(&t->effects, NULL); e && t->over; e = map_next(&t->effects, e)) {
        const struct effect *d = booked(w, e->value);

        if (!d->calls)
            world_wrong(w, "%s never began, and is left as if it had been cut", (const char *)e->value);
        if (d->done && d->life == w->life - 1 && d->life != w->given_up)
            world_wrong(w, "%s happened, and what it gave is not kept", (const char *)e->value);
    }
    for (struct map_entry *e = map_next(&t->withdrawn, NULL); e; e = map_next(&t->withdrawn, e))
        if (booked(w, e->value)->done)
            world_wrong(w, "%s happened, and is said never to have begun", (const char *)e->value);
}

/* What the caller gets is what the log has. */
void judge_result(struct world *w, const struct tide_graph_result *r)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    size_t n = 0;

    if (json_parse(&a, (struct str){r->memory.ptr, r->memory.len}, NULL, &v, NULL, NULL)) {
        world_wrong(w, "the result is no JSON");
        return;
    }
    for (const struct json *m = v->first; m; m = m->next, n++) {
        const char *want = map_get(&w->want->memory, json_key_text(&a, m));

        if (!want || !str_eq(str_from(want), json_source(m)))
            world_wrong(w, "result: %.*s is %.*s, and not %s", STR_ARG(m->key), STR_ARG(json_source(m)),
                        want ? want : "nothing");
    }
    if (n != w->want->memory.live)
        world_wrong(w, "the result has %zu keys, and not %zu", n, w->want->memory.live);
}

/* ---- the end ---- */

static void compare_records(struct world *w, const struct record *got, const struct record *want)
{
    for (struct map_entry *e = map_next(&want->at, NULL); e; e = map_next(&want->at, e))
        if (record_get(got, map_key(e)) != *(int64_t *)e->value)
            world_wrong(w, "%s: %" PRId64 ", and not %" PRId64, e->key, record_get(got, map_key(e)),
                        *(int64_t *)e->value);
    for (struct map_entry *e = map_next(&got->at, NULL); e; e = map_next(&got->at, e))
        if (!map_get(&want->at, map_key(e)))
            world_wrong(w, "%s: %" PRId64 ", and it should not be", e->key, *(int64_t *)e->value);
}

static void compare_memory(struct world *w, const struct map *got, const struct map *want)
{
    for (struct map_entry *e = map_next(want, NULL); e; e = map_next(want, e)) {
        const char *value = map_get(got, map_key(e));

        if (strcmp(value ? value : "nothing", e->value) != 0)
            world_wrong(w, "memory: %s is %s, and not %s", e->key, value ? value : "nothing", (char *)e->value);
    }
    for (struct map_entry *e = map_next(got, NULL); e; e = map_next(got, e))
        if (!map_get(want, map_key(e)))
            world_wrong(w, "memory: %s is %s, and should not be", e->key, (char *)e->value);
}

void judge_end(struct world *w, const struct end *want)
{
    if (w->end.failed != want->failed)
        world_wrong(w, "it %s", w->end.failed ? "failed" : "is complete, and should have failed");
    compare_records(w, &w->end.record, &want->record);
    compare_memory(w, &w->end.memory, &want->memory);
    if (w->end.steps != want->steps)
        world_wrong(w, "%" PRId64 " nodes were begun, and not %" PRId64, w->end.steps, want->steps);
    /* what failed for good is tried again by whoever goes on, mended or not: more only where somebody had to */
    if (w->end.failures < want->failures || (w->end.failures > want->failures && !w->disturbed))
        world_wrong(w, "%" PRId64 " attempts failed, and not %" PRId64, w->end.failures, want->failures);
}
