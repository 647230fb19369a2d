/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of nodes as the log has them, and what a node gets to see. A name says where the node stands: "write" in the graph
 * itself, "review#2/ask" in the graph that review runs in its second visit, "pages#1[3]" for the fourth item of a map.
 */
#include <inttypes.h>

#include "graph/exec.h"

#define ROOM_BESIDE 512 /* bytes: for an item and its index */

static struct str id_at(struct str name, size_t at)
{
    size_t end = at;

    while (end < name.len && !strchr("/#[", name.ptr[end]))
        end++;
    return (struct str){name.ptr + at, end - at};
}

static bool number_at(struct str name, size_t *at, int64_t *ret)
{
    size_t from = *at;

    while (*at < name.len && name.ptr[*at] >= '0' && name.ptr[*at] <= '9')
        ++*at;
    return *at > from && str_to_int64((struct str){name.ptr + from, *at - from}, ret);
}

/* Behind "#visit": into the graph of the node, or to an item of the map. */
static bool step_in(struct str name, size_t *at, struct place *p)
{
    struct str id;

    p->frame = (struct str){name.ptr, *at};
    if (*at < name.len && name.ptr[*at] == '/' && p->node->type == SPEC_SUBGRAPH) {
        id = id_at(name, ++*at);
        p->graph = p->node->graph;
        p->node = spec_find(p->graph, id);
        p->map = NULL;
        *at += id.len;
        return p->node != NULL;
    }
    if (*at >= name.len || name.ptr[*at] != '[' || p->node->type != SPEC_MAP)
        return false;
    ++*at;
    p->map = p->node;
    p->node = p->map->node;
    return number_at(name, at, &p->item) && *at < name.len && name.ptr[(*at)++] == ']';
}

bool place_find(const struct spec_graph *g, struct str name, struct place *ret)
{
    struct str id = id_at(name, 0);
    struct place p = {.graph = g, .node = spec_find(g, id), .frame = STR("")};
    size_t at = id.len;
    int64_t visit;

    while (p.node && at < name.len) {
        if (name.ptr[at++] != '#' || !number_at(name, &at, &visit) || !step_in(name, &at, &p))
            return false;
    }
    INVARIANT(!p.node || ((p.frame.len == 0) == (p.graph == g && !p.map) && p.item >= 0));
    *ret = p;
    return p.node != NULL;
}

struct str place_local(struct str name)
{
    size_t at = name.len;

    while (at > 0 && name.ptr[at - 1] != '/')
        at--;
    return (struct str){name.ptr + at, name.len - at};
}

const char *place_beside(struct arena *a, struct str frame, struct str id)
{
    if (!frame.len)
        return arena_dup(a, id).ptr;
    return arena_printf(a, "%.*s/%.*s", STR_ARG(frame), STR_ARG(id));
}

const char *place_frame(struct arena *a, const char *name, int64_t visit)
{
    return arena_printf(a, "%s#%" PRId64, name, visit);
}

struct str place_owner(struct str frame)
{
    while (frame.len && frame.ptr[frame.len - 1] != '#')
        frame.len--;
    frame.len -= frame.len > 0;
    return frame;
}

/* ---- what it sees ---- */

struct str place_around(const struct exec *x, struct str frame, struct str *ret_map)
{
    struct place p;

    while (frame.len && !map_get(&x->view->content.position.scopes, frame))
        frame.len--;
    for (;; *ret_map = frame, frame = p.frame) {
        if (!place_find(x->graph, place_owner(frame), &p) || p.node->type != SPEC_MAP)
            return frame;
    }
}

static bool sees_key(const struct sight *s, struct str key)
{
    if (s->key.len)
        return str_eq(s->key, key);
    return s->ways ? ways_use(s->ways, key) : !s->code || expr_uses(s->code, s->name, key);
}

void place_memory(struct exec *x, struct str frame, const struct json *more, struct sight sight, struct buf *out)
{
    struct content *c = &x->view->content;
    struct str ignored, at = frame = place_around(x, frame, &ignored);
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    do {
        const struct map *scope = position_scope(c, at, false);

        for (struct map_entry *e = scope ? map_next(scope, NULL) : NULL; e; e = map_next(scope, e))
            if (!json_get(more, map_key(e)) && sees_key(&sight, map_key(e)) &&
                position_value(c, frame, map_key(e)) == e->value) { /* no frame above has another */
                struct str value = str_from(e->value);

                buf_reserve(out, value.len + ROOM_BESIDE); /* what follows a big one does not move it again */
                json_out_kraw(&o, map_key(e), value);
            }
        at = sight.own ? STR("") : str_from(map_get(&c->position.beneath, at));
    } while (at.len);
    for (const struct json *m = more ? more->first : NULL; m; m = m->next)
        json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    for (struct map_entry *e = sight.secrets ? map_next(&x->secrets, NULL) : NULL; e; e = map_next(&x->secrets, e))
        if (!position_value(c, frame, map_key(e)) && !json_get(more, map_key(e)))
            json_out_kraw(&o, map_key(e), str_from(e->value));
    json_out_end(&o, '}');
}

static const struct json *parse_kept(struct exec *x, struct str text)
{
    struct json *v = NULL;

    return json_parse(&x->scratch, arena_dup(&x->scratch, text), NULL, &v, NULL, NULL) ? NULL : v;
}

const struct json *place_given(struct exec *x, const struct place *p, const struct task *t)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&text);
    const struct json *to_map;

    if (!p->map)
        return t && t->inputs ? parse_kept(x, str_from(t->inputs)) : NULL;
    t = map_get(&x->view->content.position.active, place_owner(p->frame));
    to_map = t && t->inputs ? parse_kept(x, str_from(t->inputs)) : NULL;
    json_out_begin(&o, '{');
    for (const struct json *m = to_map ? to_map->first : NULL; m; m = m->next)
        if (!json_key_eq(m, p->map->as) && !json_key_eq(m, STR("index")))
            json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    json_out_kraw(&o, p->map->as, inner_item(x, p->frame, p->item));
    if (!str_eq(p->map->as, STR("index")))
        json_out_kint(&o, STR("index"), p->item);
    json_out_end(&o, '}');
    return parse_kept(x, buf_view(&text));
}

const struct spec_texts *place_input_keys(const struct place *p)
{
    return p->map && !p->node->inputs.n ? &p->map->inputs : &p->node->inputs;
}

bool place_inputs(struct exec *x, const struct place *p, const struct task *t, struct sight sight, struct buf *out,
                  struct str *ret_missing)
{
    const struct json *more = place_given(x, p, t);
    const struct spec_texts *inputs = place_input_keys(p);
    struct str ignored, around = place_around(x, p->frame, &ignored);
    struct json_out o = json_out_to(out);

    if (!inputs->n) {
        place_memory(x, p->frame, more, sight, out);
        return true;
    }
    json_out_begin(&o, '{');
    for (size_t i = 0; i < inputs->n; i++) {
        const char *v = position_value(&x->view->content, around, inputs->at[i]);

        if (!v && sight.secrets)
            v = map_get(&x->secrets, inputs->at[i]);
        if (json_get(more, inputs->at[i]))
            continue;
        if (!v && (sight.secrets || !exec_is_excluded(x, inputs->at[i]))) {
            *ret_missing = inputs->at[i];
            return false;
        }
        if (v && sees_key(&sight, inputs->at[i]))
            json_out_kraw(&o, inputs->at[i], str_from(v));
    }
    for (const struct json *m = more ? more->first : NULL; m; m = m->next)
        if (!p->map || !json_key_eq(m, STR("index")) || texts_have(inputs, STR("index")))
            json_out_kraw(&o, json_key_text(&x->scratch, m), json_source(m));
    json_out_end(&o, '}');
    return true;
}

/* Empty: none. */
static struct str place_goal(const struct exec *x, const struct place *p)
{
    return x->goal ? str_from(x->goal) : p->graph->goal.len ? p->graph->goal : x->graph->goal;
}

enum tide_code place_text_values(const struct exec *x, const struct place *p, struct arena *a, struct str inputs,
                                 struct json **ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf all = BUF_INIT(SIZE_MAX / 4);
    struct str goal = place_goal(x, p);
    struct json_out o = json_out_to(&all);
    enum tide_code code = json_parse(a, inputs, NULL, ret, NULL, err);

    if (code || !goal.len || json_get(*ret, STR("goal")))
        return code;
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("goal"), goal);
    for (const struct json *m = (*ret)->first; m; m = m->next)
        json_out_kraw(&o, json_key_text(a, m), json_source(m));
    json_out_end(&o, '}');
    return json_parse(a, arena_dup(a, buf_view(&all)), NULL, ret, NULL, err);
}
