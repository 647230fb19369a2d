/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the graph that is given fits where it would start: every node that is open is there, has what it needs, and may
 * run. What its nodes would miss only later is a warning.
 */
#include <inttypes.h>

#include "graph/resume.h"

#define OPEN_TOLD 5 /* names in one line */

/* ---- a node that is open ---- */

bool outlook_is_named(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* One that was begun cannot become another; one that begins anew can. */
static void check_changed(struct outlook *o, const char *name, const struct task *t, const struct spec_node *new)
{
    const char *const *r = o->opt->renames;
    const char *lost, *what = NULL;
    struct place p;

    while (r && r[0] && r[1] && strcmp(r[1], name) != 0)
        r += 2;
    if (!o->before || !place_find(o->before->spec->graph, str_from(r && r[0] && r[1] ? r[0] : name), &p))
        return;
    lost = spec_lost_output(p.node, new);
    if (p.node->type != new->type)
        what =
            WORDS(o, "node '%s' was %s and is %s now", name, spec_node_words[p.node->type], spec_node_words[new->type]);
    else if (lost)
        what = WORDS(o, "node '%s' no longer sets '%s'", name, lost);
    if (what && (t->state == TASK_READY || t->state == TASK_FAILED || t->state == TASK_WITHDRAWN))
        outlook_warn(o, what);
    else if (what) {
        outlook_refuse(
            o, REFUSED_HERE, TIDE_INVALID, name,
            WORDS(o, "%s, and it was interrupted half-way: continue with the graph it ran, or start before it", what));
        outlook_repeat(o, "\"fallback\":true");
        outlook_hint(o, TIDE_ACTION_LIST_CHECKPOINTS, "");
    }
}

/* False: it is there already. */
static bool note_missing(struct outlook *o, const char *node, struct str key, bool secret, bool later)
{
    for (size_t i = 0; i < o->n_missing; i++)
        if (strcmp(o->missing[i].node, node) == 0 && str_eq(str_from(o->missing[i].key), key))
            return false;
    MEM_ROOM(o->missing, o->n_missing, o->cap_missing);
    o->missing[o->n_missing++] =
        (struct missing){arena_dup(&o->arena, str_from(node)).ptr, arena_dup(&o->arena, key).ptr, secret, later};
    return true;
}

static void add_missing(struct outlook *o, const char *node, struct str key, bool later)
{
    bool secret = exec_is_excluded(o->x, key);

    if (!note_missing(o, node, key, secret, later))
        return;
    if (later) {
        outlook_warn(o, WORDS(o, "node '%s', which may come later, needs '%.*s', which is never stored: give it again",
                              node, STR_ARG(key)));
        return;
    }
    outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, node,
                   WORDS(o, "node '%s' needs '%.*s', which %s", node, STR_ARG(key),
                         secret ? "is never stored and was not given again" : "is not set"));
    outlook_repeat(o, WORDS(o, "\"set\":{%s:null}", outlook_quote(o, o->missing[o->n_missing - 1].key)));
}

/* Those that are still to come from others that are open are not missed yet. */
static void check_inputs(struct outlook *o, const char *name, const struct task *t, const struct place *p)
{
    const struct position *pos = &o->x->view->content.position;
    bool alone = pos->ready.live + pos->active.live == 1;
    struct map *given = &o->x->secrets;
    struct str missing[64];
    size_t n = 0;

    if (t->state == TASK_DECIDING || (t->state == TASK_READY && !alone) || outlook_is_named(o->opt->happened, name) ||
        map_get(&pos->scopes, str_from(place_frame(&o->arena, name, t->visit))))
        return;
    while (n < sizeof missing / sizeof missing[0]) {
        AUTO(buf_done) struct buf ignored = BUF_INIT(SIZE_MAX / 4);

        if (place_inputs(o->x, p, t, (struct sight){.secrets = true}, &ignored, &missing[n]))
            break;
        map_set_text(given, missing[n++], STR("null")); /* so that the next one is reported */
    }
    for (size_t i = 0; i < n; i++) {
        map_drop(given, missing[i]);
        add_missing(o, name, missing[i], false);
    }
}

/* What it was when it began counts, whatever the graph says of it now. */
static bool is_stuck(const struct outlook *o, const char *name, const struct task *t, const struct place *p)
{
    bool once = node_is_once(p->node) || kept_has(o->kept, name, t->visit);

    return once && !t->unbegun && (t->state == TASK_RUNNING || t->state == TASK_FAILED);
}

#define HINT_OUTPUTS 100 /* bytes: longer ones have no room in a hint, and are asked for when the name was given */

/* Its outputs that only a person can know: [,"set":{"x":null}]. Inside another node they are said with the name. */
static void unknown_outputs(const struct outlook *o, const struct place *p, struct buf *out)
{
    const char *before = ",\"set\":{";

    for (size_t i = 0; i < p->node->outputs.n && !p->frame.len; i++) {
        struct str key = p->node->outputs.at[i];

        if (texts_have(&p->node->nullable_outputs, key) || exec_is_excluded(o->x, key) ||
            position_value(&o->x->view->content, p->frame, key))
            continue;
        buf_add_str(out, str_from(before));
        json_quote(out, key);
        buf_add_str(out, STR(":null"));
        before = ",";
    }
    if (out->len > HINT_OUTPUTS)
        out->len = 0;
    else if (out->len)
        buf_add_char(out, '}');
}

void outlook_ask(struct outlook *o, const char *name, const char *how)
{
    AUTO(buf_done) struct buf set = BUF_INIT((size_t)1 << 20);
    bool inside = false;
    struct place p;

    if (place_find(o->x->graph, str_from(name), &p)) {
        inside = p.frame.len && p.node->outputs.n;
        unknown_outputs(o, &p, &set);
    }

    if (outlook_is_named(o->opt->retry, name) || outlook_is_named(o->opt->happened, name))
        return;
    outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_UNSETTLED, name,
                   WORDS(o, "node '%s' must happen once and %s: find out whether it happened", name, how));
    outlook_repeat(o, WORDS(o, "\"happened\":[{\"name\":%s%s}]%s", outlook_quote(o, name),
                            inside ? ",\"output\":null" : "", buf_cstr(&set)));
    outlook_repeat(o, WORDS(o, "\"retry\":[%s]", outlook_quote(o, name)));
}

/* ---- what a rollback cut off ---- */

bool outlook_is_unsettled(const struct outlook *o, const struct kept_effect *f)
{
    bool cut = (o->rollback || o->fork) && f->past.from > o->seq;

    return f->now && f->past.state != PAST_DONE && (cut || !session_in_content(o->s, f->past.from));
}

static bool was_unsettled(const struct outlook *o, const char *name)
{
    for (struct map_entry *e = o->kept ? map_next(&o->kept->past.effects, NULL) : NULL; e;
         e = map_next(&o->kept->past.effects, e)) {
        const struct kept_effect *f = e->value;

        if (outlook_is_unsettled(o, f) && strcmp(f->now, name) == 0)
            return true;
    }
    return false;
}

/* ---- what was allowed by name ---- */

static void add_open(struct buf *out, const char *name, size_t *n)
{
    if (++*n <= OPEN_TOLD)
        buf_addf(out, "%s%s", *n > 1 ? ", " : "", name);
}

/* What could have been meant. */
static const char *open_ones(struct outlook *o)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);
    const struct map *active = &o->x->view->content.position.active;
    size_t n = 0;

    for (struct map_entry *e = map_next(active, NULL); e; e = map_next(active, e)) {
        struct place p;

        if (place_find(o->x->graph, map_key(e), &p) && is_stuck(o, e->key, e->value, &p))
            add_open(&out, e->key, &n);
    }
    for (struct map_entry *e = o->kept ? map_next(&o->kept->past.effects, NULL) : NULL; e;
         e = map_next(&o->kept->past.effects, e)) {
        const struct kept_effect *f = e->value;

        if (outlook_is_unsettled(o, f) && !map_get(active, str_from(f->now)))
            add_open(&out, f->now, &n);
    }
    if (n > OPEN_TOLD)
        buf_addf(&out, " and %zu more", n - OPEN_TOLD);
    return n ? WORDS(o, ": these are open: %s", buf_cstr(&out)) : NULL;
}

/* `argument` is how they were given. */
static void check_named(struct outlook *o, const char *argument, const char *const *names)
{
    for (; names && *names; names++) {
        const struct task *t = map_get(&o->x->view->content.position.active, str_from(*names));
        struct place p;

        if (!(t && place_find(o->x->graph, str_from(*names), &p) && is_stuck(o, *names, t, &p)) &&
            !was_unsettled(o, *names)) {
            const char *open = open_ones(o);

            outlook_refuse(
                o, REFUSED_FOR_GOOD, TIDE_INVALID, *names,
                WORDS(o, "no node '%s' that must happen once failed or was interrupted%s", *names, open ? open : ""));
            if (!open)
                outlook_repeat(o, WORDS(o, "\"%s\":false", argument));
        }
    }
}

/* What it gave is known from what was said, or from the memory: nodes behind it must not find nothing where it has
 * promised something. */
static void check_happened(struct outlook *o, const char *name)
{
    AUTO(buf_done) struct buf keys = BUF_INIT((size_t)1 << 20), nulls = BUF_INIT((size_t)1 << 20);
    struct json *gave = NULL;
    struct place p;

    if (!map_get(&o->x->view->content.position.active, str_from(name)) && !was_unsettled(o, name))
        return;
    if (map_get(&o->gave, str_from(name)) &&
        json_parse(&o->arena, str_from(map_get(&o->gave, str_from(name))), NULL, &gave, NULL, NULL))
        return; /* refused */
    if (!place_find(o->x->graph, str_from(name), &p))
        return;
    for (size_t i = 0; i < p.node->outputs.n; i++) {
        struct str key = p.node->outputs.at[i];
        const struct json *v = json_get(gave, key);

        if (texts_have(&p.node->nullable_outputs, key) || exec_is_excluded(o->x, key) || (v && v->type != JSON_NULL) ||
            (!p.map && !gave && position_value(&o->x->view->content, p.frame, key)))
            continue;
        buf_addf(&keys, "%s%.*s", keys.len ? ", " : "", STR_ARG(key));
        buf_add_str(&nulls, nulls.len ? STR(",") : STR(""));
        json_quote(&nulls, key);
        buf_add_str(&nulls, STR(":null"));
        if (!p.frame.len && !gave)
            note_missing(o, name, key, false, false);
    }
    if (keys.len && (p.frame.len || gave)) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                       WORDS(o, "node '%s' happened, and its result (%s) is not known", name, buf_cstr(&keys)));
        outlook_repeat(
            o, WORDS(o, "\"happened\":[{\"name\":%s,\"output\":{%s}}]", outlook_quote(o, name), buf_cstr(&nulls)));
        outlook_repeat(o, WORDS(o, "\"retry\":[%s]", outlook_quote(o, name)));
    } else if (keys.len) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, name,
                       WORDS(o, "node '%s' happened, and its outputs stay unset (%s)", name, buf_cstr(&keys)));
        outlook_repeat(o, WORDS(o, "\"set\":{%s}", buf_cstr(&nulls)));
    }
}

/* ---- secrets that are needed later ---- */

static void mark_open(const struct spec_graph *g, const struct map *tasks, unsigned char *reach)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct spec_node *n = spec_find(g, (struct str){e->key, strcspn(e->key, "#/[")});

        if (n)
            reach[n->index] = 1;
    }
}

static void check_later(struct outlook *o)
{
    const struct spec_graph *g = o->x->graph;
    const struct content *c = &o->x->view->content;
    unsigned char *reach = arena_zero(&o->arena, g->nodes.n + 1);

    mark_open(g, &c->position.ready, reach);
    mark_open(g, &c->position.active, reach);
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < g->n_arcs; i++)
            if (reach[g->arcs[i].from] && !reach[g->arcs[i].to])
                reach[g->arcs[i].to] = grown = true;
    }
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_texts *in = &g->nodes.at[i].inputs;

        for (size_t k = 0; reach[i] && k < in->n; k++)
            if (exec_is_excluded(o->x, in->at[k]) && !map_get(&o->x->secrets, in->at[k]) &&
                !map_get(&c->memory, in->at[k]))
                add_missing(o, g->nodes.at[i].id.ptr, in->at[k], true);
    }
}

/* ---- all of it ---- */

static void check_tasks(struct outlook *o, const struct map *tasks)
{
    for (struct map_entry *e = map_next(tasks, NULL); e; e = map_next(tasks, e)) {
        const struct task *t = e->value;
        struct place p;

        if (!place_find(o->x->graph, map_key(e), &p)) {
            const char *likely = outlook_likely(o, e->key, NULL);

            outlook_refuse(o, REFUSED_HERE, TIDE_INVALID, e->key,
                           WORDS(o, "node '%s', which is to run next, is not in this graph", e->key));
            outlook_repeat(
                o, WORDS(o, "\"map\":{%s:%s}", outlook_quote(o, e->key), likely ? outlook_quote(o, likely) : "null"));
            outlook_repeat(o, "\"fallback\":true");
            continue;
        }
        check_changed(o, e->key, t, p.node);
        check_inputs(o, e->key, t, &p);
        if (is_stuck(o, e->key, t, &p) && !t->happened) /* else what it gave is taken from the log */
            outlook_ask(o, e->key, t->state == TASK_FAILED ? "failed" : "was interrupted");
    }
}

void outlook_nodes(struct outlook *o)
{
    const struct position *pos = &o->x->view->content.position;
    int64_t most = o->x->graph->max_steps;

    for (const char *const *name = o->opt->retry; name && *name; name++)
        if (outlook_is_named(o->opt->happened, *name))
            outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, *name,
                           WORDS(o, "node '%s' cannot have happened and run again: give one of them", *name));
    check_named(o, "retry", o->opt->retry); /* first: a mistyped name is reported, not what is open */
    check_named(o, "happened", o->opt->happened);
    check_tasks(o, &pos->active);
    check_tasks(o, &pos->ready);
    for (const char *const *name = o->opt->happened; name && *name; name++)
        check_happened(o, *name);
    if (most && pos->ready.live && pos->steps >= most) {
        outlook_refuse(o, REFUSED_FOR_GOOD, TIDE_INVALID, NULL,
                       WORDS(o,
                             "max_steps: %" PRId64 " nodes have run, and the graph allows %" PRId64
                             ": give a graph that allows more",
                             pos->steps, most));
        outlook_repeat(o, "\"graph\":null");
    }
    check_later(o);
}
