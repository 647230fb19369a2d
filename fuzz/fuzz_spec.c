/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a graph: it is refused with a place and a reason, or what is written of it reads as the same graph, draws, and differs
 * in nothing from itself. The same text as a graph of Hive: what comes out is JSON.
 */
#include "fuzz.h"
#include "hive/hive.h"

#define OUT_MAX ((size_t)64 << 20)

struct heard {
    size_t problems, warnings;
};

static void hear(void *arg, const struct problem *p)
{
    struct heard *h = arg;

    MUST(p->path[0] && p->what[0] && !strchr(p->what, '\n') && !strchr(p->path, '\n'));
    *(p->warning ? &h->warnings : &h->problems) += 1;
}

static void check_same(const struct spec *s)
{
    struct spec *again = NULL;
    struct tide_err err;

    MUST(!spec_parse(s->json, NULL, &again, &err));
    MUST(str_eq(s->json, again->json) && memcmp(s->digest, again->digest, DIGEST_SIZE) == 0);
    MUST(s->graph->n_arcs == again->graph->n_arcs && s->warnings == again->warnings);
    spec_free(again);
}

static void check_indexes(const struct spec_graph *g)
{
    MUST(g->nodes.n > 0 && g->entry_index < g->nodes.n);
    for (size_t i = 0; i < g->n_arcs; i++)
        MUST(g->arcs[i].from < g->nodes.n && g->arcs[i].to < g->nodes.n);
    for (size_t i = 0; i < g->edges.n; i++)
        MUST(g->edges.at[i].from_index < g->nodes.n && g->edges.at[i].to_index < g->nodes.n);
}

static void check_graph(const struct spec *s)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf picture = BUF_INIT(OUT_MAX);
    struct spec_diff d;

    check_indexes(s->graph);
    check_same(s);
    spec_dot(&picture, s->graph);
    spec_mermaid(&picture, s->graph);
    MUST(!picture.failed);
    spec_compare(&a, s->graph, s->graph, &d);
    MUST(d.same && d.n == s->graph->nodes.n);
    for (size_t i = 0; i < d.n; i++)
        MUST(d.nodes[i].change == SPEC_SAME);
}

static void check_hive(struct str text)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf json = BUF_INIT(OUT_MAX);
    struct heard h = {0, 0};
    struct json *v = NULL;
    struct spec *s = NULL;
    struct tide_err err;

    if (hive_to_graph(text, hear, &h, &json, &err))
        return;
    MUST(!json_parse(&a, buf_view(&json), NULL, &v, NULL, &err));
    if (!spec_parse(buf_view(&json), NULL, &s, &err))
        check_graph(s);
    spec_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct heard h = {0, 0};
    struct spec_options opt = {.problem = hear, .arg = &h};
    struct spec *s = NULL;
    struct tide_err err = {0};
    enum tide_code code = spec_parse(text, &opt, &s, &err);

    MUST(code ? code == TIDE_INVALID && h.problems > 0 && err.msg[0] : h.problems == 0);
    if (!code)
        check_graph(s);
    spec_free(s);
    check_hive(text);
    return 0;
}
