/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of nodes that must happen once and that a rollback cut off, read from the log: what of them is not to happen
 * again. Whoever rolls back chooses: those that ended answer from the log, or all of them may happen again. Of one that
 * failed or whose end nobody saw there is nothing to answer with, and it may have happened: only who knows more goes on.
 * A node that was called otherwise is found by all names that it ever had.
 */
#include <inttypes.h>

#include "graph/resume.h"
#include "session/load.h"

/* ---- reading ---- */

struct reading {
    struct kept *kept;
    int64_t set; /* seq of the last memory.set */
    struct arena scratch;
};

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

static void read_started(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str call = json_get_text(&r->scratch, body, STR("call_id")),
               effect = json_get_text(&r->scratch, body, STR("effect")), name;
    struct kept_effect *e;
    int64_t visit;

    if (!split_call(call, &name, &visit) || (effect.len && !str_eq(effect, STR("once"))))
        return;
    e = map_get(&r->kept->effects, call);
    if (!e) {
        e = arena_zero(&r->kept->arena, sizeof *e);
        e->name = arena_dup(&r->kept->arena, name).ptr;
        map_put(&r->kept->effects, call, e);
    }
    e->visit = visit;
    e->from = e->seq = ev->seq;
    e->state = KEPT_CUT;
}

static void read_ended(struct reading *r, const struct event *ev, const struct json *body)
{
    struct kept_effect *e = map_get(&r->kept->effects, json_get_text(&r->scratch, body, STR("call_id")));

    if (!e)
        return;
    e->seq = ev->seq;
    e->state = str_eq(ev->kind, STR("tool.completed")) ? KEPT_DONE
               : str_eq(ev->kind, STR("tool.failed"))  ? KEPT_FAILED
                                                       : KEPT_CUT;
}

static void read_renamed(struct reading *r, const struct event *ev, const struct json *body)
{
    struct kept *k = r->kept;

    if (k->n_renamed == k->cap_renamed) {
        k->cap_renamed = k->cap_renamed ? k->cap_renamed * 2 : 8;
        k->renamed = mem_grow(k->renamed, k->cap_renamed * sizeof *k->renamed);
    }
    k->renamed[k->n_renamed++] =
        (struct kept_rename){arena_dup(&k->arena, json_get_text(&r->scratch, body, STR("from"))).ptr,
                             arena_dup(&k->arena, json_get_text(&r->scratch, body, STR("to"))).ptr, ev->seq};
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
        if (k->renamed[i].seq > e->from && (next = renamed(&k->arena, name, k->renamed[i].from, k->renamed[i].to)))
            name = next;
    return name;
}

/* It began again as one that may be repeated: a graph said so, and a person. */
static void read_node_started(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str effect = json_get_text(&r->scratch, body, STR("effect")),
               name = json_get_text(&r->scratch, body, STR("node"));
    int64_t visit = json_get_int(body, STR("visit"), 1);

    (void)ev;
    if (!effect.len || str_eq(effect, STR("once")))
        return;
    for (struct map_entry *e = map_next(&r->kept->effects, NULL); e; e = map_next(&r->kept->effects, e)) {
        const struct kept_effect *f = e->value;

        if (f->state != KEPT_DONE && f->visit == visit && str_eq(str_from(name_then(r->kept, f)), name))
            map_remove(&r->kept->effects, map_key(e));
    }
}

/* Of items of maps older logs have no tool.completed: what they gave stands in the memory.set right before. */
static void read_node_completed(struct reading *r, const struct event *ev, const struct json *body)
{
    struct str name = json_get_text(&r->scratch, body, STR("node"));
    const char *call =
        arena_printf(&r->scratch, "node:%.*s#%" PRId64, STR_ARG(name), json_get_int(body, STR("visit"), 1));
    struct kept_effect *e = map_get(&r->kept->effects, str_from(call));

    if (!e || e->state != KEPT_CUT || name.ptr[name.len - 1] != ']' || r->set != ev->seq - 1)
        return;
    e->seq = r->set;
    e->state = KEPT_DONE;
}

/* One that says nothing of effects cuts none but those that failed. */
static void read_rollback(struct reading *r, const struct event *ev, const struct json *body)
{
    (void)ev;
    if (str_eq(json_get_text(&r->scratch, body, STR("effects")), STR("redo")))
        kept_forget(r->kept, json_get_int(body, STR("to_seq"), 0));
}

static int read_event(void *arg, const struct event *ev)
{
    static const struct {
        const char *kind;
        void (*read)(struct reading *, const struct event *, const struct json *);
    } rows[] = {
        {"tool.started", read_started},      {"tool.completed", read_ended},         {"tool.failed", read_ended},
        {"tool.unknown", read_ended},        {"session.rolled_back", read_rollback}, {"node.renamed", read_renamed},
        {"node.started", read_node_started}, {"node.completed", read_node_completed}};
    struct reading *r = arg;
    struct json *body;

    if (str_eq(ev->kind, STR("memory.set")))
        r->set = ev->seq;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!str_eq(ev->kind, str_from(rows[i].kind)))
            continue;
        arena_reset(&r->scratch);
        if (!json_parse(&r->scratch, ev->body, NULL, &body, NULL, NULL))
            rows[i].read(r, ev, body);
        break;
    }
    return 0;
}

enum tide_code kept_load(struct store *store, const struct head *head, struct kept **ret, struct tide_err *err)
{
    struct reading r = {mem_zero(sizeof *r.kept), 0, ARENA_INIT};
    enum tide_code code;

    r.kept->arena = (struct arena)ARENA_INIT;
    code = read_through(store, head, 1, head->last_seq, read_event, &r, err);
    arena_done(&r.scratch);
    kept_free(*ret);
    *ret = r.kept;
    return code;
}

void kept_free(struct kept *k)
{
    if (!k)
        return;
    map_done(&k->effects, NULL);
    map_done(&k->named, NULL);
    free(k->renamed);
    arena_done(&k->arena);
    free(k);
}

void kept_forget(struct kept *k, int64_t after)
{
    for (struct map_entry *e = map_next(&k->effects, NULL); e; e = map_next(&k->effects, e)) {
        const struct kept_effect *f = e->value;

        if (f->seq > after) /* also when it only answered there */
            map_remove(&k->effects, map_key(e));
    }
}

/* ---- names ---- */

/* The latest of its names that this graph knows. */
static void follow(struct arena *a, const struct spec_graph *g, const char *from, const char *to, const char **name,
                   const char **best)
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
            follow(&k->arena, g, k->renamed[i].from, k->renamed[i].to, &name, &best);
    for (; renames && renames[0] && renames[1]; renames += 2)
        follow(&k->arena, g, renames[0], renames[1], &name, &best);
    return best;
}

void kept_resolve(struct kept *k, const struct spec_graph *g, const char *const *renames)
{
    map_done(&k->named, NULL);
    for (struct map_entry *e = map_next(&k->effects, NULL); e; e = map_next(&k->effects, e)) {
        struct kept_effect *f = e->value;

        f->now = kept_name_now(k, g, renames, f->name, f->from);
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
        if (f->visit == visit && (!found || f->from > found->from))
            found = f;
    return found;
}

bool kept_done(const struct kept *k, const char *name, int64_t visit)
{
    const struct kept_effect *f = k ? kept_find(k, name, visit) : NULL;

    return f && f->state == KEPT_DONE;
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
    exec_notice(x, name, "node '%s' happened before %s: what it gave then is used", name, when);
    end_complete(x, p, name, r.json, 0);
}

bool reuse_result(struct exec *x, const struct place *p, const char *name, int64_t visit, const char *when)
{
    const char *call = arena_printf(&x->scratch, "node:%s#%" PRId64, name, visit);
    struct tide_err err;
    enum tide_code code = run_sure(x->run, &err); /* it may not have read the chain yet */
    const struct mark *m = code ? NULL : map_get(&x->run->done.steps, str_from(call));

    if (m && m->state == MARK_COMPLETED)
        use_result(x, p, name, m->seq, when);
    if (code)
        exec_break(x, &err);
    return code || (m && m->state == MARK_COMPLETED);
}

bool reuse_effect(struct exec *x, const struct place *p, const char *name, int64_t visit)
{
    const struct kept_effect *f = x->kept ? kept_find(x->kept, name, visit) : NULL;

    if (!f || (f->state != KEPT_DONE && map_get(&x->run->retry, str_from(name))))
        return false;
    if (f->state == KEPT_DONE)
        use_result(x, p, name, f->seq, "the rollback");
    else if (map_get(&x->run->happened, str_from(name)))
        end_complete(x, p, name, plan_known_output(x, p, name), 0);
    else
        end_unsettled(x, name, "before the rollback");
    return true;
}
