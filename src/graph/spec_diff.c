/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two versions of a graph, node by node: what a run that was begun with the old one needs to know before it continues with the new
 * one. A node is the same when its JSON is and when the ways that leave it are. A run can continue in a changed one unless it
 * became something else or asks for inputs it did not ask for before.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "graph/spec.h"

const char *const spec_change_words[] = {"same", "compatible", "broken", "removed", "added", NULL};

#define LIKE_ENOUGH 3 /* of the points below: one thing in common is chance */

/* ---- ways ---- */

/* Everything about the ways out of a node that does not depend on where they stand in the JSON. */
static void digest_ways(const struct spec_graph *g, const struct spec_node *n, unsigned char out[DIGEST_SIZE])
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct digest_state d;

    digest_begin(&d, NULL);
    for (size_t i = 0; i < n->n_arcs; i++) {
        const struct spec_arc *arc = &g->arcs[n->first_arc + i];

        digest_add_str(&d, g->nodes.at[arc->to].id);
        digest_add_str(&d, str_from(spec_arc_label(&a, g, arc)));
        digest_add_int(&d, arc->edge ? (uint64_t)arc->edge->priority : 0);
        for (size_t k = 0; arc->edge && k < arc->edge->map.n; k++) {
            digest_add_str(&d, arc->edge->map.at[k].key);
            digest_add_str(&d, arc->edge->map.at[k].value.source);
        }
    }
    digest_end(&d, out);
}

/* ---- one node ---- */

static struct spec_texts new_inputs(struct arena *a, const struct spec_node *old, const struct spec_node *new)
{
    struct str *list = arena_zero(a, (new->inputs.n + 1) * sizeof(*list));
    size_t n = 0;

    for (size_t i = 0; i < new->inputs.n; i++)
        if (!texts_have(&old->inputs, new->inputs.at[i]))
            list[n++] = new->inputs.at[i];
    return (struct spec_texts){list, n};
}

const char *spec_lost_output(const struct spec_node *old, const struct spec_node *new)
{
    for (size_t i = 0; i < old->outputs.n; i++)
        if (!texts_have(&new->outputs, old->outputs.at[i]))
            return old->outputs.at[i].ptr;
    return NULL;
}

/* It had to happen once and may be repeated now, itself or something inside it; NULL: neither. */
static const char *repeatable(const struct spec_node *old, const struct spec_node *new)
{
    size_t n = old->graph && new->graph ? old->graph->nodes.n : 0;
    const char *inside = NULL;

    if (old->effect == SPEC_ONCE && old->type == SPEC_FUNCTION && (new->effect != SPEC_ONCE || new->type != old->type))
        return old->id.len ? old->id.ptr : "its items";
    if (old->node && new->node)
        return repeatable(old->node, new->node);
    for (size_t i = 0; i < n && !inside; i++) {
        const struct spec_node *in = &old->graph->nodes.at[i], *now = spec_find(new->graph, in->id);

        inside = now ? repeatable(in, now) : NULL;
    }
    return inside;
}

static void judge_node(struct arena *a, const struct spec_graph *before, const struct spec_graph *after,
                       struct spec_diff_node *d)
{
    const struct spec_node *old = d->before, *new = d->after;
    unsigned char left[DIGEST_SIZE], leave[DIGEST_SIZE]; /* the ways, then and now */
    bool itself = memcmp(old->digest, new->digest, DIGEST_SIZE) == 0, ways;
    const char *again;

    digest_ways(before, old, left);
    digest_ways(after, new, leave);
    ways = memcmp(left, leave, DIGEST_SIZE) == 0;
    d->change = itself && ways ? SPEC_SAME : SPEC_COMPATIBLE;
    d->why = itself && ways ? ""
             : itself       ? "other ways leave it"
             : ways         ? "its own keys changed"
                            : "it and its ways changed";
    if (itself)
        return;
    again = repeatable(old, new);
    if (again)
        d->why = arena_printf(a,
                              "%s had to happen once and may be repeated now; if it has started, a person must still "
                              "decide whether it happened",
                              again);
    d->needs = new_inputs(a, old, new);
    if (old->type != new->type)
        d->why = arena_printf(a, "was %s, is %s", spec_node_words[old->type], spec_node_words[new->type]);
    else if (d->needs.n > 0)
        d->why = arena_printf(a, "needs '%s', which it did not", d->needs.at[0].ptr);
    else if (spec_lost_output(old, new))
        d->why = arena_printf(a, "no longer sets '%s'", spec_lost_output(old, new));
    else
        return;
    d->change = SPEC_BROKEN;
}

/* ---- renamed ---- */

/* How much two nodes of different names have in common. */
static int likeness(const struct spec_node *old, const struct spec_node *new)
{
    int points = 0;

    if (old->type != new->type)
        return 0;
    for (size_t i = 0; i < old->outputs.n; i++)
        points += 2 * texts_have(&new->outputs, old->outputs.at[i]);
    for (size_t i = 0; i < old->inputs.n; i++)
        points += texts_have(&new->inputs, old->inputs.at[i]);
    points += 2 * (old->name.len > 0 && str_eq(old->name, new->name));
    points += 4 * (old->prompt.len > 0 && str_eq(old->prompt, new->prompt));
    points += 4 * (old->system_prompt.len > 0 && str_eq(old->system_prompt, new->system_prompt));
    points += 4 * (old->code.source.len > 0 && str_eq(old->code.source, new->code.source));
    points += 4 * (old->question.len > 0 && str_eq(old->question, new->question));
    points += 3 * (old->callback.len > 0 && str_eq(old->callback, new->callback));
    points += 3 * (old->program.n > 0 && new->program.n > 0 && str_eq(old->program.at[0], new->program.at[0]));
    return points;
}

/* Where two removed ones are like the same new one, the one that is more like it has it: two nodes cannot become one. */
struct pair {
    size_t old, new; /* in the nodes of the diff */
    int points;
};

static int by_points(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->points != y->points)
        return y->points - x->points;
    return x->old != y->old ? x->old > y->old ? 1 : -1 : x->new > y->new ? 1 : x->new < y->new ? -1 : 0;
}

static size_t find_pairs(struct arena *a, const struct spec_diff *d, struct pair **ret)
{
    size_t n = 0, cap = 0;
    struct pair *list = NULL;

    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; d->nodes[i].change == SPEC_REMOVED && k < d->n; k++) {
            int points = d->nodes[k].change == SPEC_ADDED ? likeness(d->nodes[i].before, d->nodes[k].after) : 0;

            if (points < LIKE_ENOUGH)
                continue;
            if (n == cap) {
                struct pair *more = arena_zero(a, (cap = cap ? 2 * cap : 16) * sizeof(*more));

                if (n)
                    memcpy(more, list, n * sizeof(*more));
                list = more;
            }
            list[n++] = (struct pair){i, k, points};
        }
    *ret = list;
    return n;
}

static void find_renames(struct arena *a, struct spec_diff *d)
{
    struct pair *pairs = NULL;
    size_t n = find_pairs(a, d, &pairs);
    bool *taken = arena_zero(a, d->n + 1);

    if (n)
        qsort(pairs, n, sizeof(*pairs), by_points);
    for (size_t i = 0; i < n; i++) {
        if (taken[pairs[i].new] || d->nodes[pairs[i].old].rename != SPEC_NONE)
            continue;
        taken[pairs[i].new] = true;
        d->nodes[pairs[i].old].rename = d->nodes[pairs[i].new].after->index;
        d->nodes[pairs[i].old].needs = new_inputs(a, d->nodes[pairs[i].old].before, d->nodes[pairs[i].new].after);
    }
}

/* ---- the whole ---- */

static void index_nodes(struct map *ids, const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++)
        map_put(ids, g->nodes.at[i].id, &g->nodes.at[i]);
}

void spec_compare(struct arena *a, const struct spec_graph *before, const struct spec_graph *after,
                  struct spec_diff *ret_diff)
{
    AUTO(buf_done) struct buf was = BUF_INIT(SPEC_MAX_BYTES), is = BUF_INIT(SPEC_MAX_BYTES);
    struct spec_diff d = {arena_zero(a, (before->nodes.n + after->nodes.n + 1) * sizeof(*d.nodes)), 0, false};
    struct map old = {0}, new = {0};

    index_nodes(&old, before);
    index_nodes(&new, after);
    for (size_t i = 0; i < before->nodes.n; i++) {
        struct spec_diff_node *n = &d.nodes[d.n++];

        *n = (struct spec_diff_node){
            .change = SPEC_REMOVED, .before = &before->nodes.at[i], .rename = SPEC_NONE, .why = "it is gone"};
        n->after = map_get(&new, n->before->id);
        if (n->after)
            judge_node(a, before, after, n);
    }
    for (size_t i = 0; i < after->nodes.n; i++)
        if (!map_get(&old, after->nodes.at[i].id))
            d.nodes[d.n++] = (struct spec_diff_node){
                .change = SPEC_ADDED, .after = &after->nodes.at[i], .rename = SPEC_NONE, .why = "there was none"};
    find_renames(a, &d);
    json_write(&was, before->json);
    json_write(&is, after->json);
    d.same = str_eq(buf_view(&was), buf_view(&is));
    map_done(&old, NULL);
    map_done(&new, NULL);
    *ret_diff = d;
}
