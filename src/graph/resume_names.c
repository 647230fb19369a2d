/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of nodes that have changed. A session knows what its nodes were called, the graph what they are called now, and
 * people may say either: so everything is reported by the names of the graph, whichever name was given.
 */
#include "base/nearest.h"
#include "graph/resume.h"

struct names {
    struct outlook *o;
    const char **at; /* pairs, ended by NULL */
    size_t n;
};

static const char *given_for(const struct names *l, const char *name)
{
    for (size_t i = 0; i < l->n; i += 2)
        if (strcmp(l->at[i], name) == 0)
            return l->at[i + 1];
    return NULL;
}

static void add_name(struct names *l, const char *from, const char *to)
{
    l->at = mem_grow(l->at, (l->n + 3) * sizeof *l->at);
    l->at[l->n++] = from;
    l->at[l->n++] = to;
    l->at[l->n] = NULL;
}

/* Nodes of what it starts from that the graph does not know, and the log knows what they are called since. */
static void add_recorded(struct names *l, const struct map *known)
{
    struct outlook *o = l->o;

    for (struct map_entry *e = map_next(known, NULL); e; e = map_next(known, e)) {
        struct place p;
        const char *now;

        if (strchr(e->key, '#') || given_for(l, e->key) || place_find(o->x->graph, map_key(e), &p))
            continue;
        now = kept_name_now(o->kept, o->x->graph, NULL, e->key, o->seq);
        if (now)
            add_name(l, arena_dup(&o->arena, map_key(e)).ptr, arena_dup(&o->arena, str_from(now)).ptr);
    }
}

static const char *const *named_now(const struct names *l, const char *const *names)
{
    size_t n = 0;
    const char **at;

    while (names && names[n])
        n++;
    if (!n || !l->n)
        return names;
    at = arena_zero(&l->o->arena, (n + 1) * sizeof *at);
    for (size_t i = 0; i < n; i++) {
        const char *now = given_for(l, names[i]);

        at[i] = now ? now : names[i];
    }
    return at;
}

/* A key that is mistyped would be dropped, or taken as the value of another. False: there is none. */
static bool refuse_unknown(struct outlook *o, const char *name, const struct spec_texts *outputs, const struct json *v)
{
    AUTO(buf_done) struct buf known = BUF_INIT((size_t)1 << 20);
    const struct json *m = v->first;

    while (m && texts_have(outputs, json_key_text(&o->arena, m)))
        m = m->next;
    if (!m)
        return false;
    for (size_t i = 0; i < outputs->n; i++)
        buf_addf(&known, "%s%.*s", i ? ", " : "", STR_ARG(outputs->at[i]));
    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                   WORDS(o, "node '%s' has no output '%.*s'%s%s", name, STR_ARG(json_key_text(&o->arena, m)),
                         outputs->n ? ": its outputs are: " : "", buf_cstr(&known)));
    if (!outputs->n)
        outlook_repeat(o, WORDS(o, "\"happened\":[{\"name\":%s}]", outlook_quote(o, name)));
    return true;
}

/* Notes what it gave, as an object: a lone value is its only output, as of a program. */
static void take_output(struct outlook *o, const char *name, const char *json)
{
    struct json *v = NULL;
    struct place p;

    if (!place_find(o->x->graph, str_from(name), &p))
        return; /* no node of this name: that is refused with those that are open */
    if (!json_parse(&o->arena, str_from(json), NULL, &v, NULL, NULL) && v->type != JSON_OBJECT &&
        p.node->outputs.n == 1)
        json = arena_printf(&o->arena, "{\"%.*s\":%s}", STR_ARG(p.node->outputs.at[0]), json);
    else if (!v || v->type != JSON_OBJECT) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                       WORDS(o, "the result of node '%s' is not a JSON object of its outputs", name));
        outlook_repeat(o, WORDS(o, "\"happened\":[{\"name\":%s,\"output\":null}]", outlook_quote(o, name)));
        return;
    } else if (refuse_unknown(o, name, &p.node->outputs, v)) {
        return;
    }
    map_put(&o->gave, str_from(name), (void *)(uintptr_t)json);
}

/* "node=JSON" is the node, and what it gave. */
static const char *const *take_given(const struct names *l, const char *const *happened)
{
    struct outlook *o = l->o;
    size_t n = 0;
    const char **at;

    while (happened && happened[n])
        n++;
    at = arena_zero(&o->arena, (n + 1) * sizeof *at);
    map_done(&o->gave, NULL);
    for (size_t i = 0; i < n; i++) {
        const char *eq = strchr(happened[i], '='), *now;

        at[i] = happened[i];
        if (!eq)
            continue;
        at[i] = arena_dup(&o->arena, (struct str){happened[i], (size_t)(eq - happened[i])}).ptr;
        now = given_for(l, at[i]);
        take_output(o, now ? now : at[i], eq + 1);
    }
    return n ? at : NULL;
}

void outlook_names(struct outlook *o)
{
    const struct content *c = &o->then->content;
    struct names l = {o, NULL, 0};
    const char **kept;

    for (const char *const *r = o->given->renames; r && r[0] && r[1]; r += 2)
        add_name(&l, r[0], r[1]);
    if (o->kept && o->checkpoint[0]) {
        add_recorded(&l, &c->position.active);
        add_recorded(&l, &c->position.ready);
        add_recorded(&l, &c->visits);
    }
    o->named.renames = NULL;
    if (l.n) {
        kept = arena_zero(&o->arena, (l.n + 1) * sizeof *kept);
        memcpy(kept, l.at, l.n * sizeof *kept);
        o->named.renames = kept;
    }
    o->named.retry = named_now(&l, o->given->retry);
    o->named.happened = named_now(&l, take_given(&l, o->given->happened));
    free(l.at);
}

/* ---- a name that is not there ---- */

struct ids {
    const struct spec_graph *g;
    size_t i;
};

static const char *next_id(void *arg)
{
    struct ids *ids = arg;

    return ids->i < ids->g->nodes.n ? ids->g->nodes.at[ids->i++].id.ptr : NULL;
}

const char *outlook_likely(struct outlook *o, const char *from, const char *to)
{
    const char *near = to ? nearest(to, next_id, &(struct ids){o->x->graph, 0}) : NULL;
    const struct spec_node *old = o->before ? spec_find(o->before->spec->graph, str_from(from)) : NULL;
    struct spec_diff diff;

    if (near || !old)
        return near;
    spec_compare(&o->arena, o->before->spec->graph, o->x->graph, &diff);
    if (diff.nodes[old->index].rename == SPEC_NONE)
        return NULL;
    return o->x->graph->nodes.at[diff.nodes[old->index].rename].id.ptr;
}
