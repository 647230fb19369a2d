/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API as an OpenAPI 3.1 document, printed from the route tables and the shapes: what is checked, what is answered and what is
 * promised are the same rows.
 */
#include "server/openapi.h"

#include <stdio.h>

#include "engine/shapes.h"
#include "server/route.h"

#define NAME_SIZE 64

typedef void route_fn(void *arg, const struct route *r);

static void each_route(route_fn *fn, void *arg)
{
    for (size_t i = 0; route_tables[i]; i++)
        for (const struct route *r = route_tables[i]; r->method; r++)
            fn(arg, r);
}

static const char *method_name(enum http_method method)
{
    switch (method) {
    case HTTP_POST:
        return "post";
    case HTTP_PUT:
        return "put";
    case HTTP_PATCH:
        return "patch";
    case HTTP_DELETE:
        return "delete";
    default:
        return "get";
    }
}

/* ---- what is given ---- */

static void put_field_schema(struct json_out *o, const struct field *f)
{
    static const char *const types[] = {
        [FIELD_TEXT] = "string", [FIELD_ID] = "string",     [FIELD_INT] = "integer", [FIELD_BOOL] = "boolean",
        [FIELD_WORD] = "string", [FIELD_OBJECT] = "object", [FIELD_TEXTS] = "array", [FIELD_ANY] = NULL,
        [FIELD_POSITION] = NULL, [FIELD_SETTLED] = "array",
    };

    json_out_begin(o, '{');
    if (types[f->type])
        json_out_kstr(o, STR("type"), str_from(types[f->type]));
    if (f->type == FIELD_POSITION)
        json_out_kraw(o, STR("type"), STR("[\"string\",\"integer\"]"));
    if (f->type == FIELD_ID)
        json_out_kstr(o, STR("pattern"), STR("^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"));
    if (f->type == FIELD_INT)
        json_out_kint(o, STR("minimum"), f->min);
    if (f->type == FIELD_INT && f->max)
        json_out_kint(o, STR("maximum"), f->max);
    if (f->type == FIELD_WORD)
        shape_schema_words(o, f->words, false);
    if (f->type == FIELD_TEXTS)
        json_out_kraw(o, STR("items"), STR("{\"type\":\"string\"}"));
    if (f->type == FIELD_SETTLED)
        json_out_kraw(
            o, STR("items"),
            STR("{\"type\":[\"string\",\"object\"],\"properties\":{\"name\":{\"type\":\"string\"},\"output\":{}},"
                "\"required\":[\"name\"],\"additionalProperties\":false}"));
    json_out_end(o, '}');
}

static void put_parameter(struct json_out *o, const char *in, struct str name, const char *help, bool required,
                          const struct field *f)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), name);
    json_out_kstr(o, STR("in"), str_from(in));
    json_out_kstr(o, STR("description"), str_from(help));
    json_out_kbool(o, STR("required"), required);
    json_out_key(o, STR("schema"));
    if (f)
        put_field_schema(o, f);
    else
        json_out_raw(o, STR("{\"type\":\"string\"}"));
    json_out_end(o, '}');
}

static void put_parameters(struct json_out *o, const struct route *r)
{
    json_out_key(o, STR("parameters"));
    json_out_begin(o, '[');
    for (const char *p = strchr(r->path, '{'); p; p = strchr(p + 1, '{'))
        put_parameter(o, "path", (struct str){p + 1, strcspn(p + 1, "}")}, "of the address", true, NULL);
    for (const struct field *f = r->query; f && f->name; f++)
        put_parameter(o, "query", str_from(f->name), f->help, f->required, f);
    json_out_end(o, ']');
}

static bool is_any_required(const struct field *table)
{
    bool any = false;

    for (const struct field *f = table; f && f->name; f++)
        any |= f->required;
    return any;
}

static void put_body_schema(struct json_out *o, const struct field *table)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("type"), STR("object"));
    json_out_kbool(o, STR("additionalProperties"), false);
    json_out_key(o, STR("properties"));
    json_out_begin(o, '{');
    for (const struct field *f = table; f->name; f++) {
        json_out_key(o, str_from(f->name));
        json_out_begin(o, '{');
        json_out_kstr(o, STR("description"), str_from(f->help));
        json_out_key(o, STR("anyOf"));
        json_out_begin(o, '[');
        put_field_schema(o, f);
        if (!f->required)
            json_out_raw(o, STR("{\"type\":\"null\"}"));
        json_out_end(o, ']');
        json_out_end(o, '}');
    }
    json_out_end(o, '}');
    if (is_any_required(table)) {
        json_out_key(o, STR("required"));
        json_out_begin(o, '[');
        for (const struct field *f = table; f->name; f++)
            if (f->required)
                json_out_str(o, str_from(f->name));
        json_out_end(o, ']');
    }
    json_out_end(o, '}');
}

static void put_body(struct json_out *o, const struct route *r)
{
    if (!r->body && !(r->flags & ROUTE_BYTES_IN))
        return;
    json_out_key(o, STR("requestBody"));
    json_out_begin(o, '{');
    json_out_kbool(o, STR("required"), is_any_required(r->body) || (r->flags & ROUTE_BYTES_IN));
    json_out_key(o, STR("content"));
    json_out_begin(o, '{');
    json_out_key(o, r->flags & ROUTE_BYTES_IN ? STR("application/x-ndjson") : STR("application/json"));
    json_out_begin(o, '{');
    json_out_key(o, STR("schema"));
    if (r->flags & ROUTE_BYTES_IN)
        json_out_raw(o, STR("{\"type\":\"string\"}"));
    else
        put_body_schema(o, r->body);
    json_out_end(o, '}');
    json_out_end(o, '}');
    json_out_end(o, '}');
}

/* ---- what is answered ---- */

static void put_ref(struct json_out *o, const struct shape *shape)
{
    char ref[NAME_SIZE + 32];

    snprintf(ref, sizeof ref, "#/components/schemas/%s", shape->name);
    json_out_begin(o, '{');
    json_out_kstr(o, STR("$ref"), str_from(ref));
    json_out_end(o, '}');
}

static void put_content(struct json_out *o, const char *type, const struct shape *shape)
{
    json_out_key(o, STR("content"));
    json_out_begin(o, '{');
    json_out_key(o, str_from(type));
    json_out_begin(o, '{');
    json_out_key(o, STR("schema"));
    if (shape)
        put_ref(o, shape);
    else
        json_out_raw(o, strcmp(type, "application/json") == 0 ? STR("{\"type\":\"object\"}")
                                                              : STR("{\"type\":\"string\"}"));
    json_out_end(o, '}');
    json_out_end(o, '}');
}

static void put_answers(struct json_out *o, const struct route *r)
{
    char status[8];

    snprintf(status, sizeof status, "%d", r->status ? r->status : 200);
    json_out_key(o, STR("responses"));
    json_out_begin(o, '{');
    json_out_key(o, str_from(status));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("description"), str_from(r->answer ? r->answer->help : r->help));
    if (r->answer || r->type)
        put_content(o, r->answer ? "application/json" : r->type, r->answer);
    json_out_end(o, '}');
    if (r->dry_run) {
        json_out_key(o, STR("200"));
        json_out_begin(o, '{');
        json_out_kstr(o, STR("description"), str_from(r->dry_run->help));
        put_content(o, "application/json", r->dry_run);
        json_out_end(o, '}');
    }
    json_out_key(o, STR("default"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("description"), str_from(shape_problem.help));
    put_content(o, "application/problem+json", &shape_problem);
    json_out_end(o, '}');
    json_out_end(o, '}');
}

/* ---- paths ---- */

static void put_operation(struct json_out *o, const struct route *r)
{
    json_out_key(o, str_from(method_name(r->method)));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("operationId"), str_from(r->action));
    json_out_kstr(o, STR("summary"), str_from(r->help));
    json_out_key(o, STR("tags"));
    json_out_begin(o, '[');
    json_out_str(o, (struct str){r->action, strcspn(r->action, ".")});
    json_out_end(o, ']');
    if (r->flags & ROUTE_OPEN)
        json_out_kraw(o, STR("security"), STR("[]"));
    else
        json_out_kstr(o, STR("x-scope"), str_from(scope_word(r->scope)));
    put_parameters(o, r);
    put_body(o, r);
    put_answers(o, r);
    json_out_end(o, '}');
}

struct paths {
    struct json_out *o;
    const struct route *of;   /* whose path it is */
    const struct route *seen; /* the first of that path */
};

static void put_if_same(void *arg, const struct route *r)
{
    struct paths *p = arg;

    if (strcmp(r->path, p->of->path) == 0)
        put_operation(p->o, r);
}

static void find_first(void *arg, const struct route *r)
{
    struct paths *p = arg;

    if (!p->seen && strcmp(r->path, p->of->path) == 0)
        p->seen = r;
}

/* The first route of a path writes all of them. */
static void put_path(void *arg, const struct route *r)
{
    struct paths p = {.o = arg, .of = r};
    char path[256];

    each_route(find_first, &p);
    if (p.seen != r)
        return;
    snprintf(path, sizeof path, "%s%s", r->flags & ROUTE_AT_ROOT ? "" : API_ROOT, r->path);
    json_out_key(p.o, str_from(path));
    json_out_begin(p.o, '{');
    each_route(put_if_same, &p);
    json_out_end(p.o, '}');
}

/* ---- shapes ---- */

struct schemas {
    struct json_out *o;
    const struct shape *shape;
    const struct route *first;
};

static void find_shape(void *arg, const struct route *r)
{
    struct schemas *s = arg;

    if (!s->first && (r->answer == s->shape || r->dry_run == s->shape))
        s->first = r;
}

/* By the first route that has it. */
static void put_schema(struct json_out *o, const struct route *r, const struct shape *shape)
{
    struct schemas s = {o, shape, NULL};

    if (!shape)
        return;
    each_route(find_shape, &s);
    if (s.first != r)
        return;
    json_out_key(o, str_from(shape->name));
    shape_schema(o, shape);
}

static void put_shapes(void *arg, const struct route *r)
{
    put_schema(arg, r, r->answer);
    put_schema(arg, r, r->dry_run);
}

static void put_components(struct json_out *o)
{
    json_out_key(o, STR("components"));
    json_out_begin(o, '{');
    json_out_kraw(
        o, STR("securitySchemes"),
        STR("{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"Tokens with scopes; a scope "
            "that an operation needs is its x-scope.\"}}"));
    json_out_key(o, STR("schemas"));
    json_out_begin(o, '{');
    json_out_key(o, str_from(shape_problem.name));
    shape_schema(o, &shape_problem);
    each_route(put_shapes, o);
    json_out_end(o, '}');
    json_out_end(o, '}');
}

void openapi_write(struct buf *out)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("openapi"), STR("3.1.0"));
    json_out_key(&o, STR("info"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("title"), STR("Tidemark"));
    json_out_kstr(&o, STR("version"), STR("1"));
    json_out_kstr(&o, STR("description"), STR("Sessions of agents that cannot be lost."));
    json_out_kraw(&o, STR("license"), STR("{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}"));
    json_out_end(&o, '}');
    json_out_kraw(&o, STR("servers"), STR("[{\"url\":\"/\"}]"));
    json_out_kraw(&o, STR("security"), STR("[{\"token\":[]}]"));
    json_out_key(&o, STR("paths"));
    json_out_begin(&o, '{');
    each_route(put_path, &o);
    json_out_end(&o, '}');
    put_components(&o);
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}
