/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value of a graph's JSON by its row in the table: checked, and put where the row says. A wrong value is reported
 * and leaves its default, so that the checks behind can still look at everything else.
 */
#include <inttypes.h>
#include <stdio.h>

#include "graph/spec_internal.h"

#define KEY_MAX 128

static const char *const json_words[] = {"null", "false", "true", "a number", "text", "a list", "an object"};

static void want_type(struct spec_parser *p, const struct spec_place *at, const char *what, const struct json *v)
{
    spec_say_at(p, at, "", "must be %s, not %s", what, json_words[v->type]);
}

/* Its text, ended by a NUL; a NUL inside would cut it for everybody who takes it as a C string. */
static bool text_of(struct spec_parser *p, const struct json *v, const struct spec_place *at, struct str *ret_text)
{
    if (v->type != JSON_STRING) {
        want_type(p, at, "text", v);
        return false;
    }
    *ret_text = arena_dup(&p->spec->arena, json_text(&p->spec->arena, v));
    if (memchr(ret_text->ptr, 0, ret_text->len)) {
        spec_say_at(p, at, "", "must not contain \\u0000");
        return false;
    }
    return true;
}

static bool key_of(struct spec_parser *p, struct str key, const struct spec_place *at)
{
    if (key.len > 0 && key.len <= KEY_MAX && !memchr(key.ptr, 0, key.len))
        return true;
    spec_say_at(p, at, "", "a key of the memory has 1 to %d bytes", KEY_MAX);
    return false;
}

/* ---- plain ones ---- */

#define SETTER(name)                                                                                                   \
    static void name(struct spec_parser *p, const struct spec_field *f, const struct json *v,                          \
                     const struct spec_place *at, void *into)

SETTER(set_one)
{
    int64_t n = 0;

    (void)f;
    if (!json_int(v, &n) || n != 1)
        spec_say_at(p, at, "write 1", "this version reads only format 1");
    else
        *(int64_t *)into = n;
}

SETTER(set_text)
{
    struct str text;

    (void)f;
    if (text_of(p, v, at, &text))
        *(struct str *)into = text;
}

SETTER(set_id)
{
    struct str text;

    (void)f;
    if (!text_of(p, v, at, &text))
        return;
    if (!str_is_id(text))
        spec_say_at(p, at, "1 to 64 of A-Z a-z 0-9 _ and -, not beginning with -", "'%.*s' is not an id",
                    (int)(text.len < 80 ? text.len : 80), text.ptr);
    *(struct str *)into = text;
}

SETTER(set_int)
{
    int64_t n;

    if (!json_int(v, &n) || n < f->min || n > f->max)
        spec_say_at(p, at, "", "must be a whole number from %" PRId64 " to %" PRId64, f->min, f->max);
    else
        *(int64_t *)into = n;
}

SETTER(set_number)
{
    double n = -1;

    (void)f;
    if (v->type == JSON_NUMBER)
        n = strtod(arena_dup(&p->spec->arena, v->raw).ptr, NULL);
    if (n < 0 || n > 1e15)
        spec_say_at(p, at, "", "must be a number that is not negative");
    else
        *(double *)into = n;
}

SETTER(set_bool)
{
    (void)f;
    if (v->type != JSON_TRUE && v->type != JSON_FALSE)
        want_type(p, at, "true or false", v);
    else
        *(bool *)into = v->type == JSON_TRUE;
}

static struct str same_as(struct str text)
{
    for (const struct spec_synonym *s = spec_synonyms; s->also; s++)
        if (str_eq(text, str_from(s->also)))
            return str_from(s->word);
    return STR("");
}

static bool word_of(struct spec_parser *p, const char *const *words, const struct json *v, const struct spec_place *at,
                    int *ret_which)
{
    struct str text;

    if (!text_of(p, v, at, &text))
        return false;
    for (int i = 0; words[i]; i++)
        if (str_eq(text, str_from(words[i])) || str_eq(str_from(words[i]), same_as(text))) {
            *ret_which = i;
            return true;
        }
    spec_say_at(p, at, spec_hint_of(p, text, words), "'%.*s' is not known here", (int)(text.len < 64 ? text.len : 64),
                text.ptr);
    return false;
}

SETTER(set_word)
{
    int which;

    if (word_of(p, f->words, v, at, &which))
        *(int *)into = which;
}

/* 500ms, 90s, 15m, 3h, 2d */
static bool duration_of(struct str text, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t digits = 0;
    int64_t n;

    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
        digits++;
    if (digits == 0 || digits > 9 || !str_to_int64((struct str){text.ptr, digits}, &n) || n == 0)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (str_eq((struct str){text.ptr + digits, text.len - digits}, str_from(units[i].unit))) {
            *ret_ms = n * units[i].ms;
            return true;
        }
    return false;
}

SETTER(set_duration)
{
    struct str text;

    (void)f;
    if (text_of(p, v, at, &text) && !duration_of(text, into))
        spec_say_at(p, at, "500ms, 90s, 15m, 3h or 2d", "'%.*s' is not a length of time",
                    (int)(text.len < 32 ? text.len : 32), text.ptr);
}

/* ---- expressions ---- */

static void compile_source(struct spec_parser *p, struct str source, bool body, const struct spec_place *at,
                           struct spec_expr *ret)
{
    struct tide_err err = {0};
    struct spec *s = p->spec;
    struct expr *e = NULL;

    *ret = (struct spec_expr){source, NULL}; /* given, also when it is wrong */
    if ((body ? expr_compile_body : expr_compile)(source, &e, &err)) {
        spec_say_at(p, at, body ? "" : spec_lua_hint(p, source), "%.400s", err.msg);
        return;
    }
    MEM_ROOM(s->exprs, s->n_exprs, s->cap_exprs);
    ret->expr = s->exprs[s->n_exprs++] = e;
}

SETTER(set_expr)
{
    struct str text;

    ((struct spec_expr *)into)->source = json_source(v);
    if (text_of(p, v, at, &text))
        compile_source(p, text, f->type == FIELD_BODY, at, into);
}

/* ---- lists of text ---- */

static bool list_of(struct spec_parser *p, const struct json *v, const struct spec_place *at, size_t max)
{
    if (v->type != JSON_ARRAY)
        want_type(p, at, "a list", v);
    else if (v->count > max)
        spec_say_at(p, at, "", "%" PRIu32 " are too many: at most %zu", v->count, max);
    else
        return true;
    return false;
}

SETTER(set_texts)
{
    struct spec_place here = {.up = at};
    struct str *list;
    size_t n = 0;

    if (!list_of(p, v, at, f->type == FIELD_KEYS ? SPEC_MAX_LIST / 8 : SPEC_MAX_LIST))
        return;
    list = arena_zero(&p->spec->arena, (v->count + 1) * sizeof(*list));
    for (const struct json *item = v->first; item; item = item->next, here.index++) {
        struct str text;

        if (!text_of(p, item, &here, &text) || (f->type == FIELD_KEYS && !key_of(p, text, &here)))
            continue;
        if (f->type == FIELD_KEYS && texts_have(&(struct spec_texts){list, n}, text))
            spec_say_at(p, &here, "remove one", "'%.*s' is listed twice", STR_ARG(text));
        list[n++] = text;
    }
    *(struct spec_texts *)into = (struct spec_texts){list, n};
}

SETTER(set_tools)
{
    static const char *const modes[] = {"all", "none", NULL};
    struct spec_tools *tools = into;
    int mode;

    if (v->type == JSON_STRING) {
        if (word_of(p, modes, v, at, &mode))
            *tools = (struct spec_tools){mode ? SPEC_TOOLS_NONE : SPEC_TOOLS_ALL, {NULL, 0}};
        return;
    }
    tools->mode = SPEC_TOOLS_NAMED;
    set_texts(p, f, v, at, &tools->names);
}

/* ---- objects with keys of the memory ---- */

static bool object_of(struct spec_parser *p, const struct json *v, const struct spec_place *at)
{
    struct spec_place here = {.up = at};

    if (v->type != JSON_OBJECT) {
        want_type(p, at, "an object", v);
        return false;
    }
    if (v->count > SPEC_MAX_LIST) {
        spec_say_at(p, at, "", "%" PRIu32 " keys are too many: at most %d", v->count, SPEC_MAX_LIST);
        return false;
    }
    for (const struct json *m = v->first; m; m = m->next) {
        here.key = json_key_text(&p->spec->arena, m);
        if (!key_of(p, here.key, &here))
            return false;
    }
    return true;
}

SETTER(set_exprs)
{
    struct spec_mappings *map = into;
    struct spec_place here = {.up = at};

    if (!object_of(p, v, at))
        return;
    map->at = arena_zero(&p->spec->arena, (v->count + 1) * sizeof(*map->at));
    for (const struct json *m = v->first; m; m = m->next) {
        struct spec_mapping *to = &map->at[map->n++];

        here.key = to->key = arena_dup(&p->spec->arena, json_key_text(&p->spec->arena, m));
        set_expr(p, f, m, &here, &to->value);
    }
}

SETTER(set_rules)
{
    struct spec_rules *rules = into;
    struct spec_place here = {.up = at};

    if (!object_of(p, v, at))
        return;
    rules->at = arena_zero(&p->spec->arena, (v->count + 1) * sizeof(*rules->at));
    for (const struct json *m = v->first; m; m = m->next) {
        struct spec_rule *to = &rules->at[rules->n++];

        here.key = to->key = arena_dup(&p->spec->arena, json_key_text(&p->spec->arena, m));
        word_of(p, f->words, m, &here, &to->rule);
    }
}

SETTER(set_entries)
{
    struct spec_entries *entries = into;
    struct spec_place here = {.up = at};

    if (!object_of(p, v, at))
        return;
    entries->at = arena_zero(&p->spec->arena, (v->count + 1) * sizeof(*entries->at));
    for (const struct json *m = v->first; m; m = m->next) {
        struct spec_entry *to = &entries->at[entries->n++];

        here.key = to->name = arena_dup(&p->spec->arena, json_key_text(&p->spec->arena, m));
        to->to_index = SPEC_NONE;
        set_text(p, f, m, &here, &to->to);
    }
}

SETTER(set_values)
{
    (void)f;
    if (object_of(p, v, at))
        *(const struct json **)into = v;
}

SETTER(set_json)
{
    (void)p;
    (void)f;
    (void)at;
    *(const struct json **)into = v;
}

/* ---- objects of the table ---- */

SETTER(set_object)
{
    spec_read_object(p, f->object, v, at, into);
}

struct list {
    char *at;
    size_t n;
};

SETTER(set_list)
{
    size_t max = f->max ? (size_t)f->max : SPEC_MAX_LIST, size = f->object->size;
    struct spec_place here = {.up = at};
    struct list *list = into;

    if (!list_of(p, v, at, max))
        return;
    list->at = arena_zero(&p->spec->arena, (v->count + 1) * size);
    for (const struct json *item = v->first; item; item = item->next, here.index++) {
        void *to = list->at + list->n++ * size;

        spec_read_object(p, f->object, item, &here, to);
        if (f->object == &spec_node_object)
            spec_finish_node(p, to, item, &here);
        else if (f->object == &spec_edge_object)
            spec_finish_edge(to, item);
    }
}

SETTER(set_node)
{
    struct spec_node *n = arena_zero(&p->spec->arena, sizeof(*n));

    (void)f;
    if (p->maps >= SPEC_MAX_MAPS) {
        spec_say_at(p, at, "put the inner one into a subgraph", "more than %d maps inside each other", SPEC_MAX_MAPS);
        return;
    }
    p->maps++;
    spec_read_object(p, &spec_node_object, v, at, n);
    spec_finish_node(p, n, v, at);
    p->maps--;
    if (n->id.len > 0)
        spec_say_at(p, &(struct spec_place){.up = at, .key = STR("id")}, "remove it", "a node inside a map has no id");
    *(struct spec_node **)into = n;
}

SETTER(set_graph)
{
    (void)f;
    *(struct spec_graph **)into = spec_read_graph(p, v, at);
}

void spec_set(struct spec_parser *p, const struct spec_field *f, const struct json *v, const struct spec_place *at,
              void *into)
{
    static void (*const setters[])(struct spec_parser *, const struct spec_field *, const struct json *,
                                   const struct spec_place *, void *) = {
        [FIELD_ONE] = set_one,     [FIELD_TEXT] = set_text,         [FIELD_ID] = set_id,
        [FIELD_INT] = set_int,     [FIELD_NUMBER] = set_number,     [FIELD_BOOL] = set_bool,
        [FIELD_WORD] = set_word,   [FIELD_DURATION] = set_duration, [FIELD_EXPR] = set_expr,
        [FIELD_OVER] = set_expr,   [FIELD_BODY] = set_expr,         [FIELD_KEYS] = set_texts,
        [FIELD_TEXTS] = set_texts, [FIELD_TOOLS] = set_tools,       [FIELD_EXPRS] = set_exprs,
        [FIELD_RULES] = set_rules, [FIELD_ENTRIES] = set_entries,   [FIELD_VALUES] = set_values,
        [FIELD_JSON] = set_json,   [FIELD_OBJECT] = set_object,     [FIELD_LIST] = set_list,
        [FIELD_NODE] = set_node,   [FIELD_GRAPH] = set_graph,
    };

    setters[f->type](p, f, v, at, into);
}
