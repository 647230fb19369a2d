/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes do and what people answer: the same for the oracle and for the callbacks of the real graph. */
#include <inttypes.h>
#include <stdio.h>

#include "graph.h"

/* ---- names ---- */

/* Where the last part of the name begins: behind the last '/'. */
static struct str local_of(struct str name)
{
    size_t at = name.len;

    while (at > 0 && name.ptr[at - 1] != '/')
        at--;
    return (struct str){name.ptr + at, name.len - at};
}

int behaviour_number(struct str name)
{
    struct str local = local_of(name);
    int n = 0;

    for (size_t i = 1; i < local.len && local.ptr[i] >= '0' && local.ptr[i] <= '9'; i++)
        n = n * 10 + (local.ptr[i] - '0');
    return n < NODES ? n : 0;
}

int64_t behaviour_item(struct str name)
{
    struct str local = local_of(name);
    const char *at = memchr(local.ptr, '[', local.len);
    int64_t n = 0;

    if (!at)
        return -1;
    while (*++at != ']')
        n = n * 10 + (*at - '0');
    return n;
}

void behaviours_bind(struct plan *p, const struct spec_graph *g)
{
    for (size_t i = 0; i < g->nodes.n; i++) {
        const struct spec_node *n = &g->nodes.at[i];
        int number = behaviour_number(n->id);

        while (n->type == SPEC_MAP)
            n = n->node;
        p->behaviours[number].node = n;
        if (n->type == SPEC_SUBGRAPH)
            behaviours_bind(p, n->graph);
    }
}

bool behaviour_fails(const struct plan *p, const bool *mended, struct str name, int64_t attempt)
{
    int number = behaviour_number(name);
    const struct behaviour *h = &p->behaviours[number];

    return !mended[number] && attempt < h->fails &&
           (h->item < 0 || behaviour_item(name) < 0 || behaviour_item(name) == h->item);
}

/* ---- what they give ---- */

static uint64_t mix(uint64_t h, struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * 0x100000001b3;
    return (h ^ 0xff) * 0x100000001b3;
}

/* Of what it asked for, of what an edge brought, and of its item: nothing else may change what it gives. */
static uint64_t hash_inputs(const struct spec_node *n, struct str inputs)
{
    static const struct str more[] = {{"q", 1}, {"it", 2}, {"index", 5}};
    AUTO(arena_done) struct arena a = ARENA_INIT;
    uint64_t h = 0xcbf29ce484222325;
    struct json *v = NULL;

    if (json_parse(&a, inputs, NULL, &v, NULL, NULL))
        return 0;
    for (size_t i = 0; i < n->inputs.n + 3; i++) {
        const struct json *m = json_get(v, i < n->inputs.n ? n->inputs.at[i] : more[i - n->inputs.n]);

        h = mix(h, m ? json_source(m) : STR("-"));
    }
    return h;
}

/* Values that fit what their key is for: lists and objects can be merged. */
static void put_value(struct buf *out, struct str key, struct str name, int64_t visit, uint64_t hash)
{
    if (str_eq(key, STR("c2")))
        buf_addf(out, "[\"%.*s#%" PRId64 "\"]", STR_ARG(name), visit);
    else if (str_eq(key, STR("c3")))
        buf_addf(out, "{\"%.*s\":%" PRId64 "}", STR_ARG(name), visit);
    else
        buf_addf(out, "\"%.*s#%" PRId64 ":%04x\"", STR_ARG(name), visit, (unsigned)(hash & 0xffff));
}

void behaviour_output(const struct spec_node *n, struct str name, int64_t visit, struct str inputs, struct buf *out)
{
    uint64_t hash = hash_inputs(n, inputs);

    buf_add_char(out, '{');
    for (size_t i = 0; i < n->outputs.n; i++) {
        buf_addf(out, "%s\"%.*s\":", i ? "," : "", STR_ARG(n->outputs.at[i]));
        put_value(out, n->outputs.at[i], name, visit, hash);
    }
    buf_add_char(out, '}');
}

void behaviour_answer(const struct spec_node *n, struct str wait, struct buf *out)
{
    if (n->kind == SPEC_APPROVAL)
        buf_add_str(out, mix(7, wait) & 16 ? STR("\"yes\"") : STR("\"no\""));
    else
        buf_addf(out, "\"said of %.*s\"", STR_ARG(wait));
}

/* ---- records ---- */

bool is_inside(struct str name, struct str frame)
{
    return name.len > frame.len && str_starts(name, frame) && strchr("/[", name.ptr[frame.len]);
}

int64_t record_get(const struct record *r, struct str what)
{
    const int64_t *n = map_get(&r->at, what);

    return n ? *n : 0;
}

void record_set(struct record *r, struct str what, int64_t value)
{
    int64_t *n = map_get(&r->at, what);

    if (!n) {
        n = mem_zero(sizeof *n);
        map_put(&r->at, what, n);
    }
    *n = value;
}

void record_add(struct record *r, struct str what, int64_t by)
{
    record_set(r, what, record_get(r, what) + by);
}

void record_done(struct record *r)
{
    map_done(&r->at, free);
}

void end_done(struct end *e)
{
    map_done(&e->memory, free);
    record_done(&e->record);
}
