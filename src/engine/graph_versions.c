/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's summary says which version of its graph it runs and where it stands in it; that is all that is needed. Versions
 * are few and sessions are many: each version is read from the log of the session that brought it and compared once, and
 * the answer for a node is looked up for all who stand there.
 */
#include "engine/graph_versions.h"

#include <stdio.h>

#include "graph/resume.h"
#include "session/status.h"

const char *const live_words[] = {"same", "compatible", "mapping", "stuck", NULL};

_Static_assert((int)GRAPH_SAME == (int)SPEC_SAME && (int)GRAPH_ADDED == (int)SPEC_ADDED, "the same");

void graph_diff(struct graph_diff *ret, const tide_graph *before, const tide_graph *after)
{
    struct graph_change *list;
    struct spec_diff diff;

    *ret = (struct graph_diff){.arena = ARENA_INIT};
    spec_compare(&ret->arena, before->spec->graph, after->spec->graph, &diff);
    list = arena_zero(&ret->arena, (diff.n + 1) * sizeof *list);
    for (size_t i = 0; i < diff.n; i++) {
        const struct spec_diff_node *d = &diff.nodes[i];
        bool renamed = d->change == SPEC_REMOVED && d->rename != SPEC_NONE;

        list[i] = (struct graph_change){.kind = (enum graph_change_kind)d->change,
                                        .word = spec_change_words[d->change],
                                        .node = (d->before ? d->before : d->after)->id.ptr,
                                        .why = d->why,
                                        .rename = renamed ? after->spec->graph->nodes.at[d->rename].id.ptr : NULL,
                                        .needs = d->needs.at,
                                        .n_needs = d->needs.n};
    }
    ret->same = diff.same;
    ret->changes = list;
    ret->n_changes = diff.n;
}

void graph_diff_done(struct graph_diff *d)
{
    free(d->sessions);
    arena_done(&d->arena);
}

/* A version of the graph that somebody runs. */
struct version {
    tide_graph *graph; /* NULL: `trouble` */
    bool ours;
    struct spec_diff diff;
    struct map nodes; /* id -> const struct spec_diff_node * */
    char trouble[512];
};

struct looking {
    struct store *store;
    const tide_graph *graph, *also;
    struct graph_diff *ret;
    struct map versions;         /* digest -> struct version * */
    struct map mapped;           /* nodes of this session whose new names are in `names` */
    struct buf names, keys;      /* members of `map` and `set` */
    struct arena arena, scratch; /* of the comparisons; of one session */
};

static void version_free(void *p)
{
    struct version *v = p;

    tide_graph_free(v->graph);
    map_done(&v->nodes, NULL);
    free(v);
}

static bool is_ours(const struct looking *l, struct str id)
{
    return str_eq(id, l->graph->spec->graph->id) || str_eq(id, l->also->spec->graph->id);
}

static struct version *version_of(struct looking *l, const struct state *s)
{
    struct str digest = str_from(s->content.position.graph_digest);
    struct version *v = map_get(&l->versions, digest);
    struct tide_err err;

    if (v)
        return v;
    v = mem_zero(sizeof *v);
    map_put(&l->versions, digest, v);
    if (graph_read(l->store, s, &v->graph, &err))
        snprintf(v->trouble, sizeof v->trouble, "%s", err.msg);
    else
        v->ours = is_ours(l, v->graph->spec->graph->id);
    if (v->ours) {
        const struct spec_graph *g = v->graph->spec->graph;

        spec_compare(&l->arena, g, l->graph->spec->graph, &v->diff);
        for (size_t i = 0; i < g->nodes.n; i++)
            map_put(&v->nodes, g->nodes.at[i].id, &v->diff.nodes[i]);
    }
    return v;
}

/* ---- one place in it ---- */

static void decide_fit(struct running_session *ret, enum running_fit fit, const char *node, const char *why)
{
    if (fit <= ret->fit)
        return;
    ret->fit = fit;
    ret->node = node;
    ret->why = why;
}

/* What the memory has is not in a summary: a new input that nobody has set yet is asked for as well. */
static void add_mapping(struct looking *l, struct running_session *ret, const char *node,
                        const struct spec_diff_node *d)
{
    if (map_get(&l->mapped, d->before->id))
        return;
    map_put(&l->mapped, d->before->id, l);
    buf_add_str(&l->names, l->names.len ? STR(",") : STR(""));
    json_quote(&l->names, d->before->id);
    buf_add_char(&l->names, ':');
    json_quote(&l->names, l->graph->spec->graph->nodes.at[d->rename].id);
    for (size_t i = 0; i < d->needs.n; i++) {
        buf_add_str(&l->keys, l->keys.len ? STR(",") : STR(""));
        json_quote(&l->keys, d->needs.at[i]);
        buf_add_str(&l->keys, STR(":null"));
    }
    decide_fit(ret, LIVE_MAPPING, node, "");
}

/* What stands in a graph inside a node must be there as well. */
static void judge_inside(struct looking *l, const struct version *v, const char *name, struct running_session *ret)
{
    struct place before, after;

    if (!place_find(v->graph->spec->graph, str_from(name), &before))
        return;
    if (!place_find(l->graph->spec->graph, str_from(name), &after))
        decide_fit(ret, LIVE_STUCK, name, arena_printf(&l->scratch, "node '%s' is gone", name));
    else if (before.node->type != after.node->type)
        decide_fit(ret, LIVE_STUCK, name,
                   arena_printf(&l->scratch, "node '%s' was %s, is %s", name, spec_node_words[before.node->type],
                                spec_node_words[after.node->type]));
}

static void judge_version(struct looking *l, const struct version *v, const char *name, const struct task *t,
                          struct running_session *ret)
{
    const struct spec_diff_node *d = map_get(&v->nodes, (struct str){name, strcspn(name, "#")});
    bool inside = strchr(name, '#') != NULL;
    /* One that begins anew may have become another; what it needs now may be nowhere. */
    bool anew = t->state == TASK_READY || t->state == TASK_FAILED;

    if (!d || d->change == SPEC_SAME)
        return;
    if (d->change == SPEC_REMOVED && d->rename != SPEC_NONE && !inside)
        add_mapping(l, ret, name, d);
    else if (inside && d->change != SPEC_REMOVED)
        judge_inside(l, v, name, ret);
    else if (d->change != SPEC_COMPATIBLE && !(d->change == SPEC_BROKEN && !d->needs.n && anew))
        decide_fit(ret, LIVE_STUCK, name, arena_printf(&l->scratch, "node '%s': %s", d->before->id.ptr, d->why));
}

static void judge_all(struct looking *l, const struct version *v, const struct map *tasks, struct running_session *ret)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e))
        judge_version(l, v, arena_dup(&l->scratch, map_key(e)).ptr, e->value, ret);
}

/* ---- one session ---- */

static void look_at(struct looking *l, const struct version *v, const struct state *s, struct running_session *ret)
{
    const struct position *p = &s->content.position;

    if (strcmp(p->graph_digest, l->graph->digest) == 0)
        return;
    ret->fit = LIVE_COMPATIBLE;
    if (!v->graph) {
        decide_fit(ret, LIVE_STUCK, NULL, v->trouble);
        return;
    }
    judge_all(l, v, &p->active, ret);
    judge_all(l, v, &p->ready, ret);
    if (ret->fit == LIVE_MAPPING)
        ret->arguments = arena_printf(&l->scratch, l->keys.len ? "{\"map\":{%s},\"set\":{%s}}" : "{\"map\":{%s}}",
                                      buf_cstr(&l->names), buf_cstr(&l->keys));
}

static void keep_session(struct graph_diff *d, const struct running_session *s)
{
    struct running_session *kept;

    MEM_ROOM(d->sessions, d->n_sessions, d->cap_sessions);
    kept = &d->sessions[d->n_sessions++];
    *kept = *s;
    d->fits[s->fit]++;
    const char **texts[] = {&kept->id, &kept->title, &kept->digest, &kept->node, &kept->why, &kept->arguments};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = arena_text(&d->arena, *texts[i]);
}

static int on_state(void *arg, const struct head *head, const struct state *s)
{
    struct looking *l = arg;
    struct running_session found = {.id = head->id, .why = ""};
    const struct version *v;
    struct status st;
    struct str title;

    if (!s || !s->content.position.graph_digest || s->ledger.run.end == RUN_COMPLETED)
        return 0;
    v = version_of(l, s);
    /* Whose graph cannot be read: sessions are named after their graphs. */
    if (v->graph ? !v->ours : !is_ours(l, info_text(&l->scratch, &s->info, STR("agent"))))
        return 0;
    status_derive(&st, s, head->holder_alive, env_now_ms(l->store->env));
    if (st.status == TIDE_STATUS_IDLE && !st.is_resumable)
        return 0;
    arena_reset(&l->scratch);
    map_done(&l->mapped, NULL);
    buf_clear(&l->names);
    buf_clear(&l->keys);
    title = info_text(&l->scratch, &s->info, STR("title"));
    found.title = title.len ? arena_dup(&l->scratch, title).ptr : NULL;
    found.status = st.status;
    found.digest = s->content.position.graph_digest;
    look_at(l, v, s, &found);
    keep_session(l->ret, &found);
    return 0;
}

enum tide_code graph_diff_sessions(struct graph_diff *d, tide_store *store, const tide_graph *before,
                                   const tide_graph *after, struct tide_err *err)
{
    struct looking l = {.store = store_of(store),
                        .graph = after,
                        .also = before,
                        .ret = d,
                        .names = BUF_INIT((size_t)1 << 20),
                        .keys = BUF_INIT((size_t)1 << 20),
                        .arena = ARENA_INIT,
                        .scratch = ARENA_INIT};
    enum tide_code code;

    d->live = true;
    code = session_each(l.store, on_state, &l, err);
    map_done(&l.versions, version_free);
    map_done(&l.mapped, NULL);
    buf_done(&l.names);
    buf_done(&l.keys);
    arena_done(&l.arena);
    arena_done(&l.scratch);
    return code;
}
