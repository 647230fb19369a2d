/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of nodes that must happen once and that a rollback cut off, read from the log: what of them is not to happen
 * again (session/past_effects.h). Those that ended answer from the log, unless the person who rolled back chose otherwise. Of one that
 * failed or whose end nobody saw there is nothing to answer with, and it may have happened: only who knows more continues.
 * A node that was called otherwise is found by all names that it ever had.
 */
#include <inttypes.h>

#include "graph/resume.h"
#include "session/load.h"

/* ---- reading ---- */

/* "node:NAME#VISIT". */
static bool split_call(struct str call, struct str *ret_name, int64_t *ret_visit)
{
    size_t at = call.len;

    if (!str_starts(call, STR("node:")))
        return false;
    while (at > 5 && call.ptr[at - 1] != '#')
        at--;
    *ret_name = (struct str){call.ptr + 5, at > 5 ? at - 6 : 0};
    return ret_name->len && str_to_int64((struct str){call.ptr + at, call.len - at}, ret_visit);
}

static bool begins_effect(struct past_reader *r, struct str call_id, const struct json *body, void *effect)
{
    struct kept_effect *e = effect;
    struct str name;

    (void)body;
    if (!split_call(call_id, &name, &e->visit))
        return false;
    e->name = arena_dup(&r->past->arena, name).ptr;
    return true;
}

static void read_renamed(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct kept *k = r->arg;

    MEM_ROOM(k->renamed, k->n_renamed, k->cap_renamed);
    k->renamed[k->n_renamed++] =
        (struct kept_rename){arena_dup(&k->past.arena, json_get_text(&r->scratch, body, STR("from"))).ptr,
                             arena_dup(&k->past.arena, json_get_text(&r->scratch, body, STR("to"))).ptr, ev->seq};
}

/* What runs inside a node is named after it. NULL: it is not about this one. */
static const char *renamed(struct arena *a, const char *name, const char *from, const char *to)
{
    size_t len = strlen(from);

    if (strncmp(name, from, len) != 0 || (name[len] && name[len] != '#'))
        return NULL;
    return arena_printf(a, "%s%s", to, name + len);
}

/* What it is called at the end of what was read so far. */
static const char *name_then(struct kept *k, const struct kept_effect *e)
{
    const char *name = e->name, *next;

    for (size_t i = 0; i < k->n_renamed; i++)
        if (k->renamed[i].seq > e->past.from &&
            (next = renamed(&k->past.arena, name, k->renamed[i].from, k->renamed[i].to)))
            name = next;
    return name;
}

/* It began again as one that may be repeated: a graph said so, and a person. */
static void read_node_started(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct str effect = json_get_text(&r->scratch, body, STR("effect")),
               name = json_get_text(&r->scratch, body, STR("node"));
    int64_t visit = json_get_int(body, STR("visit"), 1);

    (void)ev;
    if (!effect.len || str_eq(effect, STR("once")))
        return;
    for (struct map_entry *e = map_next(&r->past->effects, NULL); e; e = map_next(&r->past->effects, e)) {
        const struct kept_effect *f = e->value;

        if (f->past.state != PAST_DONE && f->visit == visit && str_eq(str_from(name_then(r->arg, f)), name))
            map_remove(&r->past->effects, map_key(e));
    }
}

/* Of items of maps older logs have no tool.completed: what they gave stands in the memory.set right before. */
static void read_node_completed(struct past_reader *r, const struct event *ev, const struct json *body)
{
    struct str name = json_get_text(&r->scratch, body, STR("node"));
    const char *call =
        arena_printf(&r->scratch, "node:%.*s#%" PRId64, STR_ARG(name), json_get_int(body, STR("visit"), 1));
    struct past_effect *e = map_get(&r->past->effects, str_from(call));
    int64_t set = ((struct kept *)r->arg)->set;

    if (!e || e->state != PAST_CUT || name.ptr[name.len - 1] != ']' || set != ev->seq - 1)
        return;
    e->seq = set;
    e->state = PAST_DONE;
}

static void read_memory_set(struct past_reader *r, const struct event *ev, const struct json *body)
{
    (void)body;
    ((struct kept *)r->arg)->set = ev->seq;
}

enum tide_code kept_load(struct store *store, const struct head *head, struct kept **ret, struct tide_err *err)
{
    static const struct past_row rows[] = {{"node.renamed", read_renamed},
                                           {"node.started", read_node_started},
                                           {"node.completed", read_node_completed},
                                           {"memory.set", read_memory_set},
                                           {NULL, NULL}};
    struct kept *k = mem_zero(sizeof *k);
    struct past_reader r = {&k->past, sizeof(struct kept_effect), begins_effect, rows, k, ARENA_INIT};
    enum tide_code code;

    k->past = (struct past_effects)PAST_EFFECTS_INIT;
    code = read_through(store, head, 1, head->last_seq, past_effects_event, &r, err);
    arena_done(&r.scratch);
    kept_free(*ret);
    *ret = k;
    return code;
}

void kept_free(struct kept *k)
{
    if (!k)
        return;
    past_effects_done(&k->past);
    map_done(&k->named, NULL);
    free(k->renamed);
    free(k);
}

/* ---- names ---- */

/* The latest of its names that this graph knows. */
static void follow_names(struct arena *a, const struct spec_graph *g, const char *from, const char *to,
                         const char **name, const char **best)
{
    const char *next = renamed(a, *name, from, to);
    struct place p;

    if (!next)
        return;
    *name = next;
    if (place_find(g, str_from(next), &p))
        *best = next;
}

const char *kept_name_now(struct kept *k, const struct spec_graph *g, const char *const *renames, const char *name,
                          int64_t since)
{
    struct place p;
    const char *best = place_find(g, str_from(name), &p) ? name : NULL;

    for (size_t i = 0; i < k->n_renamed; i++)
        if (k->renamed[i].seq > since)
            follow_names(&k->past.arena, g, k->renamed[i].from, k->renamed[i].to, &name, &best);
    for (; renames && renames[0] && renames[1]; renames += 2)
        follow_names(&k->past.arena, g, renames[0], renames[1], &name, &best);
    return best;
}

void kept_resolve(struct kept *k, const struct spec_graph *g, const char *const *renames)
{
    map_done(&k->named, NULL);
    for (struct map_entry *e = map_next(&k->past.effects, NULL); e; e = map_next(&k->past.effects, e)) {
        struct kept_effect *f = e->value;

        f->now = kept_name_now(k, g, renames, f->name, f->past.from);
        if (!f->now)
            continue;
        f->other = map_get(&k->named, str_from(f->now));
        map_put(&k->named, str_from(f->now), f);
    }
}

/* The latest, where two nodes became one. */
static const struct kept_effect *kept_find(const struct kept *k, const char *name, int64_t visit)
{
    const struct kept_effect *found = NULL;

    for (const struct kept_effect *f = map_get(&k->named, str_from(name)); f; f = f->other)
        if (f->visit == visit && (!found || f->past.from > found->past.from))
            found = f;
    return found;
}

bool kept_done(const struct kept *k, const char *name, int64_t visit)
{
    const struct kept_effect *f = k ? kept_find(k, name, visit) : NULL;

    return f && f->past.state == PAST_DONE;
}

bool kept_has(const struct kept *k, const char *name, int64_t visit)
{
    return k && kept_find(k, name, visit);
}

bool effect_is_once(const struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    return node_is_once(p->node) || (kept_has(x->kept, name, visit) && !map_get(&x->run->retry, str_from(name)));
}

/* ---- using it ---- */

struct result {
    struct arena *arena;
    struct str json;
};

static int take_result(void *arg, const struct event *ev)
{
    struct result *r = arg;
    struct json *body;
    const struct json *v;

    if (json_parse(r->arena, arena_dup(r->arena, ev->body), NULL, &body, NULL, NULL))
        return 1;
    if ((v = json_get(body, STR("result"))) || ((v = json_get(body, STR("values"))) && (v = v->first)))
        r->json = json_source(v);
    return 1;
}

struct reading_one {
    struct exec *x;
    int64_t seq;
    struct result *r;
};

static enum tide_code try_read(void *arg, struct tide_err *err)
{
    struct reading_one *o = arg;

    return read_through(o->x->s->store, &o->x->s->head, o->seq, o->seq, take_result, o->r, err);
}

static void use_result(struct exec *x, const struct place *p, const char *name, int64_t seq, const char *when)
{
    struct result r = {&x->scratch, STR("{}")};
    struct reading_one one = {x, seq, &r};
    struct tide_err err;

    if (session_hold(x->s, try_read, &one, &err)) { /* rather than do it twice */
        exec_break(x, &err);
        return;
    }
    exec_notice(x, name, "node '%s' happened before %s: its result is used", name, when);
    end_complete(x, p, name, r.json, 0);
}

bool reuse_result(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *when)
{
    const char *call = arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit);
    struct tide_err err;
    enum tide_code code = run_sure(x->run, &err); /* it may not have read the chain yet */
    const struct recorded *m = code ? NULL : map_get(&x->run->done.steps, str_from(call));

    if (m && m->state == RECORDED_COMPLETED)
        use_result(x, p, name, m->seq, when);
    if (code)
        exec_break(x, &err);
    return code || (m && m->state == RECORDED_COMPLETED);
}

bool reuse_effect(struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    const struct kept_effect *f = x->kept ? kept_find(x->kept, name, visit) : NULL;

    if (!f || (f->past.state != PAST_DONE && map_get(&x->run->retry, str_from(name))))
        return false;
    if (f->past.state == PAST_DONE)
        use_result(x, p, name, f->past.seq, "the rollback");
    else if (map_get(&x->run->happened, str_from(name)))
        end_complete(x, p, name, plan_known_output(x, p, name), 0);
    else
        end_unsettled(x, name, "before the rollback");
    return true;
}
