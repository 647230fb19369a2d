/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What continues with a graph, made such that it works. What a session says of itself is derived from its state, which does
 * not know the graph: here each action is looked at as a resume would look at it. What it would miss is named, what would
 * be refused all the same is left out.
 */
#include "graph/resume_next.h"

#include "graph/resume.h"
#include "session/status.h"

#define NAMES_MAX 8 /* nodes of one action; more are left to a dry run */
#define NEXT_MAX (STATUS_NEXT + 5)

struct trial {
    struct arena *arena;
    tide_session *session;
    tide_graph *graph;
    bool withheld; /* it contained a secret: it runs only when it is given again */
    struct action made[NEXT_MAX];
    size_t n;
};

/* ---- one that is tried ---- */

/* What is refused of it but for values that can be given. */
static size_t count_others(const struct outlook *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_refused; i++) {
        const struct refusal *r = &o->refused[i];
        bool missing = false;

        for (size_t k = 0; r->node && r->code == TIDE_INVALID && k < o->n_missing; k++)
            missing |= strcmp(o->missing[k].node, r->node) == 0;
        n += !missing;
    }
    return n;
}

/* Keys that have no value, each once; NULL: none. */
static const char *const *missing_keys(struct arena *a, const struct outlook *o)
{
    const char **keys = arena_zero(a, (o->n_missing + 1) * sizeof *keys);
    size_t n = 0;

    for (size_t i = 0; i < o->n_missing; i++) {
        const char *key = o->missing[i].key;
        bool before = !str_is_utf8(str_from(key), NULL);

        for (size_t k = 0; k < n; k++)
            before |= strcmp(keys[k], key) == 0;
        if (!before)
            keys[n++] = arena_dup(a, str_from(key)).ptr;
    }
    return n ? keys : NULL;
}

static bool is_same(const struct action *a, const struct action *b)
{
    struct buf one = BUF_INIT(1 << 20), other = BUF_INIT(1 << 20);
    struct json_out o = json_out_to(&one), p = json_out_to(&other);
    bool same;

    action_write_arguments(&o, a);
    action_write_arguments(&p, b);
    same = a->action == b->action && str_eq(buf_view(&one), buf_view(&other));
    buf_done(&one);
    buf_done(&other);
    return same;
}

static void add_action(struct trial *t, const struct action *wanted)
{
    struct action a = *wanted;
    bool runs = a.action == TIDE_ACTION_RESUME || a.action == TIDE_ACTION_ANSWER;

    if (t->withheld && a.action == TIDE_ACTION_RECOVER) /* which has no graph to give */
        return;
    a.wants |= t->withheld && runs && !a.ask_again[0] ? ACTION_GRAPH : 0;
    for (size_t i = 0; i < t->n; i++)
        if (is_same(&t->made[i], &a))
            return;
    if (t->n < NEXT_MAX)
        t->made[t->n++] = a;
}

/* False: it would be refused whatever is given. `other`: a graph that is not known yet comes with it. */
static bool add_tried(struct trial *t, const struct action *wanted, const struct tide_graph_options *opt, bool other)
{
    struct action a = *wanted;
    struct tide_err ignored;
    struct outlook o;
    bool works = true;

    if (!outlook_take(&o, t->session, t->graph, opt, &ignored)) {
        works = other || !count_others(&o);
        if (o.n_missing)
            a.set_keys = missing_keys(t->arena, &o);
    }
    outlook_done(&o);
    if (works)
        add_action(t, &a);
    return works;
}

/* Nodes that must happen once and of which nobody knows; NULL: there are none, or too many for one action. */
static const char *const *unsettled(const struct trial *t)
{
    const char **names = arena_zero(t->arena, (NAMES_MAX + 1) * sizeof *names);
    const struct tide_graph_options none = {.size = sizeof none};
    struct tide_err ignored;
    struct outlook o;
    size_t n = 0;

    if (!outlook_take(&o, t->session, t->graph, &none, &ignored))
        for (size_t i = 0; i < o.n_refused && n <= NAMES_MAX; i++)
            if (o.refused[i].code == TIDE_UNSETTLED && o.refused[i].node && n++ < NAMES_MAX)
                names[n - 1] = arena_dup(t->arena, str_from(o.refused[i].node)).ptr;
    outlook_done(&o);
    return n > 0 && n <= NAMES_MAX ? names : NULL;
}

static void settle_all(struct trial *t)
{
    const char *const *names = unsettled(t);
    struct action a = {.action = TIDE_ACTION_RESUME, .kind = TIDE_KIND_GRAPH, .names = names};

    if (!names)
        return;
    a.names_are = ACTION_HAPPENED_NAMES;
    if (!add_tried(t, &a, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .happened = names},
                   false)) {
        a.needs_output = true; /* inside of a node nobody can set what they gave: it is said with them */
        add_action(t, &a);
    }
    a.needs_output = false;
    a.names_are = ACTION_RETRY_NAMES;
    add_tried(t, &a, &(struct tide_graph_options){.size = sizeof(struct tide_graph_options), .retry = names}, false);
}

/* ---- all of them ---- */

const struct tide_next *graph_next_of(struct arena *a, tide_session *session)
{
    const struct tide_graph_options none = {.size = sizeof none};
    struct trial t = {.arena = a, .session = session};
    struct tide_err ignored;
    struct status st;

    if (session_derive_status(session, &st, &ignored))
        st.next_count = 0;
    if (!st.next_count || st.untrusted || st.kind != TIDE_KIND_GRAPH || tide_graph_load(session, &t.graph, &ignored))
        return actions_publish(a, tide_session_id(session), st.next, st.next_count);
    t.withheld = t.graph->redacted;
    t.graph->redacted = false; /* it is only looked at */
    for (size_t i = 0; i < st.next_count; i++) {
        const struct action *next = &st.next[i];

        if (next->action != TIDE_ACTION_RESUME || next->wants & ACTION_CHECKPOINT || next->ask_again[0])
            add_action(&t, next);
        else if (next->retry[0] || next->happened[0])
            settle_all(&t);
        else if (!add_tried(&t, next, &none, next->wants & ACTION_GRAPH) && !next->wants)
            settle_all(&t); /* what was rolled back, its state does not know of */
    }
    tide_graph_free(t.graph);
    return t.n ? actions_publish(a, tide_session_id(session), t.made, t.n)
               : actions_publish(a, tide_session_id(session), st.next, st.next_count);
}

bool graph_is_withheld(tide_session *session)
{
    tide_graph *graph = NULL;
    struct tide_err ignored;
    bool withheld = !tide_graph_load(session, &graph, &ignored) && graph->redacted;

    tide_graph_free(graph);
    return withheld;
}
