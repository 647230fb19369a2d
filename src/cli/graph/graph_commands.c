/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that go on with a graph, made such that they work. What a session says of itself is derived from its state,
 * which does not know the graph: here each is looked at as a resume would look at it. What it would miss is put in, what
 * would be refused all the same is left out.
 */
#include "cli/graph/graph_commands.h"

#include "graph/resume.h"

#define NAMES_MAX 8 /* nodes of one command; more are left to --dry-run */

struct trial {
    struct arena *arena;
    tide_session *session;
    tide_graph *graph;
};

/* ---- a command as text ---- */

static const char *quoted(struct arena *a, const char *name)
{
    return str_is_id(str_from(name)) ? name : arena_printf(a, "'%s'", name);
}

static const char *add_names(struct arena *a, const char *command, const char *option, const char *const *names)
{
    for (; names && *names; names++)
        command = arena_printf(a, "%s %s %s", command, option, quoted(a, *names));
    return command;
}

static const char *add_sets(struct arena *a, const char *command, const struct outlook *o)
{
    for (size_t i = 0; i < o->n_missing; i++) {
        const char *key = o->missing[i].key;
        bool before = false;

        for (size_t k = 0; k < i; k++)
            before |= strcmp(o->missing[k].key, key) == 0;
        if (!before && str_is_utf8(str_from(key), NULL) && !strchr(key, '\''))
            command = arena_printf(a, "%s --set %s", command, quoted(a, arena_printf(a, "%s=…", key)));
    }
    return command;
}

/* ---- one that is tried ---- */

static bool is_about_missing(const struct outlook *o, const struct refusal *r)
{
    for (size_t i = 0; i < o->n_missing; i++)
        if (r->node && strcmp(o->missing[i].node, r->node) == 0 && r->code == TIDE_INVALID)
            return true;
    return false;
}

/* What is refused of it but for values that can be given. */
static size_t count_others(const struct outlook *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_refused; i++)
        n += !is_about_missing(o, &o->refused[i]);
    return n;
}

/* NULL: it would be refused whatever is given. `other`: a graph that is not known yet comes with it. */
static const char *tried(const struct trial *t, const char *command, const struct tide_graph_options *opt, bool other)
{
    struct outlook o;
    struct tide_err ignored;
    const char *made = NULL;

    if (outlook_take(&o, t->session, t->graph, opt, &ignored))
        made = command;
    else if (other || !count_others(&o))
        made = add_sets(t->arena, command, &o);
    outlook_done(&o);
    return made;
}

/* Nodes that must happen once and of which nobody knows; false: there are none, or too many for a command. */
static bool take_unsettled(const struct trial *t, const char *names[NAMES_MAX + 1])
{
    const struct tide_graph_options none = {0};
    struct outlook o;
    struct tide_err ignored;
    size_t n = 0;

    if (!outlook_take(&o, t->session, t->graph, &none, &ignored))
        for (size_t i = 0; i < o.n_refused && n <= NAMES_MAX; i++)
            if (o.refused[i].code == TIDE_UNSETTLED && o.refused[i].node && n++ < NAMES_MAX)
                names[n - 1] = arena_dup(t->arena, str_from(o.refused[i].node)).ptr;
    outlook_done(&o);
    names[n <= NAMES_MAX ? n : 0] = NULL;
    return n > 0 && n <= NAMES_MAX;
}

static size_t add(const char **list, size_t n, const char *command)
{
    for (size_t i = 0; i < n; i++)
        if (command && strcmp(list[i], command) == 0)
            return n;
    if (command)
        list[n++] = command;
    return n;
}

/* Inside of a node nobody can set what they gave: it is said with them. */
static const char *const *with_output(struct arena *a, const char *const *names)
{
    const char **given = arena_zero(a, (NAMES_MAX + 1) * sizeof(*given));

    for (size_t i = 0; names[i]; i++)
        given[i] = strchr(names[i], '#') ? arena_printf(a, "%s=JSON", names[i]) : names[i];
    return given;
}

static size_t settle_all(const struct trial *t, const char *base, const char **list, size_t n)
{
    const char *names[NAMES_MAX + 1] = {NULL};
    const struct tide_graph_options happened = {.happened = names}, retry = {.retry = names};
    const char *made;

    if (!take_unsettled(t, names))
        return n;
    made = tried(t, add_names(t->arena, base, "--happened", names), &happened, false);
    n = add(list, n, made ? made : add_names(t->arena, base, "--happened", with_output(t->arena, names)));
    return add(list, n, tried(t, add_names(t->arena, base, "--retry", names), &retry, false));
}

/* ---- all of them ---- */

static const char **all_tried(const struct trial *t, const char *base, const char *const *next)
{
    const struct tide_graph_options none = {0};
    size_t count = 0, n = 0, len = strlen(base);
    const char **list;

    while (next[count])
        count++;
    list = arena_zero(t->arena, (count + 5) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        const char *rest = strncmp(next[i], base, len) == 0 ? next[i] + len : NULL;
        const char *made;

        if (!rest || strstr(rest, " --input") || strstr(rest, " --checkpoint"))
            n = add(list, n, next[i]);
        else if (strstr(rest, " --retry ") || strstr(rest, " --happened "))
            n = settle_all(t, base, list, n);
        else if (strstr(rest, " --set KEY"))
            n = add(list, n, tried(t, next[i], &none, false));
        else if ((made = tried(t, next[i], &none, strstr(rest, " --graph ") != NULL)))
            n = add(list, n, made);
        else if (!*rest) /* what was rolled back, its state does not know of */
            n = settle_all(t, base, list, n);
    }
    return n ? list : NULL;
}

const char *const *graph_next(struct arena *a, tide_session *session, const char *const *next)
{
    struct trial t = {a, session, NULL};
    struct tide_err ignored;
    const char **list = NULL;

    if (!next || !session || !session->state->content.position.graph_seq || session->state->ledger.loop_seq ||
        tide_graph_stored(session, &t.graph, &ignored))
        return next;
    list = all_tried(&t, arena_printf(a, "tidemark sessions resume %s", tide_session_id(session)), next);
    tide_graph_free(t.graph);
    return list ? list : next;
}

struct offered {
    struct arena *arena;
    const char **list;
};

static int take_offered(void *arg, const struct tide_session_info *info)
{
    struct offered *o = arg;
    size_t n = 0;

    while (info->next[n])
        n++;
    o->list = arena_zero(o->arena, (n + 1) * sizeof(*o->list));
    for (size_t i = 0; i < n; i++)
        o->list[i] = arena_dup(o->arena, str_from(info->next[i])).ptr;
    return 0;
}

const char *const *graph_next_of(struct arena *a, tide_session *session)
{
    static const char *const none[] = {NULL};
    struct offered o = {a, NULL};
    struct tide_err ignored;

    if (tide_session_show(session, take_offered, &o, &ignored) || !o.list)
        return none;
    return graph_next(a, session, o.list);
}
