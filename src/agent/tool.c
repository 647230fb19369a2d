/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of tools and what is the same for all of them: arguments are checked against the schema that the model was
 * given, so that no tool meets a type it did not ask for; results leave as valid Unicode and within the bound.
 *
 * Messages are written for a model: they name the argument, what it must be and what came.
 */
#include "agent/tool_list.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/tool_text.h"
#include "base/mem.h"

#define SUMMARY_CHARS 120
#define NAME_SHOWN 60

const struct tool *const tools[] = {&tool_bash, &tool_read, &tool_write, &tool_edit, &tool_glob, &tool_grep, NULL};

const struct tool *tool_find(struct str name)
{
    for (size_t i = 0; tools[i]; i++)
        if (str_eq(name, str_from(tools[i]->name)))
            return tools[i];
    return NULL;
}

void tool_render(struct json_out *o, const struct tool *t)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(t->name));
    json_out_kstr(o, STR("description"), str_from(t->description));
    json_out_kraw(o, STR("input_schema"), str_from(t->schema));
    json_out_end(o, '}');
}

void tools_render(struct buf *out, bool (*allowed)(void *arg, const struct tool *t), void *arg)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '[');
    for (size_t i = 0; tools[i]; i++)
        if (!allowed || allowed(arg, tools[i]))
            tool_render(&o, tools[i]);
    json_out_end(&o, ']');
}

/* ---- arguments ---- */

static const char *type_name(const struct json *v)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",       [JSON_FALSE] = "a boolean", [JSON_TRUE] = "a boolean",  [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",  [JSON_OBJECT] = "an object"};

    return names[v->type];
}

static bool is_text(const struct json *v)
{
    return v->type == JSON_STRING;
}

static bool is_whole(const struct json *v)
{
    int64_t n;

    return json_int(v, &n);
}

static bool is_bool(const struct json *v)
{
    return v->type == JSON_TRUE || v->type == JSON_FALSE;
}

static const struct {
    const char *type, *name;
    bool (*fits)(const struct json *v);
} types[] = {
    {"string", "a string", is_text}, {"integer", "a whole number", is_whole}, {"boolean", "true or false", is_bool}};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

/* N_TYPES: one that only the schema of an embedder's tool has; it looks itself. */
static size_t type_of(const struct json *property)
{
    const struct json *type = json_get(property, STR("type"));
    size_t i = 0;

    while (i < N_TYPES && !(type && str_eq(type->raw, str_from(types[i].type))))
        i++;
    return i;
}

static enum tide_code check_one(const struct tool *t, const struct json *property, const struct json *value,
                                struct tide_err *err)
{
    int64_t n = 0, min = json_get_int(property, STR("minimum"), INT64_MIN);
    size_t type = type_of(property);

    if (type < N_TYPES && !types[type].fits(value))
        return tide_fail(err, TIDE_INVALID, "%s: '%.*s' must be %s, not %s", t->name, STR_ARG(property->key),
                         types[type].name, type_name(value));
    if (json_int(value, &n) && n < min)
        return tide_fail(err, TIDE_INVALID, "%s: '%.*s' must be at least %lld", t->name, STR_ARG(property->key),
                         (long long)min);
    return TIDE_OK;
}

static enum tide_code unknown(const struct tool *t, const struct json *properties, const struct json *member,
                              struct tide_err *err)
{
    struct buf names = BUF_INIT(200);
    struct str key = member->key;
    enum tide_code code;

    for (const struct json *p = properties->first; p; p = p->next) {
        buf_add_str(&names, p == properties->first ? STR("") : STR(", "));
        buf_add_str(&names, p->key);
    }
    code = tide_fail(err, TIDE_INVALID, "%s has no argument '%.*s'; it has: %s", t->name,
                     (int)(key.len < NAME_SHOWN ? key.len : NAME_SHOWN), key.ptr, buf_cstr(&names));
    buf_done(&names);
    return code;
}

static enum tide_code check_required(const struct tool *t, const struct json *schema, const struct json *args,
                                     struct tide_err *err)
{
    const struct json *required = json_get(schema, STR("required"));
    const struct json *properties = json_get(schema, STR("properties"));

    for (const struct json *r = required ? required->first : NULL; r; r = r->next) {
        const struct json *v = json_get(args, r->raw);
        size_t type = type_of(json_get(properties, r->raw));

        if (!v || v->type == JSON_NULL)
            return tide_fail(err, TIDE_INVALID, "%s: the argument '%.*s' is missing%s%s", t->name, STR_ARG(r->raw),
                             type < N_TYPES ? ": it must be " : "", type < N_TYPES ? types[type].name : "");
    }
    return TIDE_OK;
}

static enum tide_code check_args(const struct tool *t, const struct json *schema, const struct json *args,
                                 struct tide_err *err)
{
    const struct json *properties = json_get(schema, STR("properties"));
    bool closed = properties && !json_get_bool(schema, STR("additionalProperties"), true);

    if (args->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "%s: the arguments must be an object, not %s", t->name, type_name(args));
    if (json_get(args, STR("_malformed")))
        return tide_fail(err, TIDE_INVALID, "%s: the arguments were no valid JSON object: send them again", t->name);
    for (const struct json *m = args->first; m; m = m->next) {
        const struct json *property = properties ? properties->first : NULL;

        while (property && !json_key_eq(m, property->key))
            property = property->next;
        if (!property && closed)
            return unknown(t, properties, m, err);
        if (property && m->type != JSON_NULL &&
            check_one(t, property, m, err)) /* null is what some say for "not given" */
            return err->code;
    }
    return check_required(t, schema, args, err);
}

/* ---- one call ---- */

enum tide_code tool_prepare(struct tool_work *w, struct tide_err *err)
{
    struct arena a = ARENA_INIT;
    struct json *schema = NULL;
    enum tide_code code;

    ERR_LOCAL(err);
    w->proc = (struct proc)PROC_INIT;
    w->out = -1;
    code = json_parse(&a, str_from(w->tool->schema), NULL, &schema, NULL, err);
    if (!code)
        code = check_args(w->tool, schema, w->args, err);
    if (!code && w->tool->prepare)
        code = w->tool->prepare(w, err);
    arena_done(&a);
    return code;
}

void tool_run(struct tool_work *w, struct tool_result *ret)
{
    *ret = (struct tool_result){.text = BUF_INIT(TOOL_RESULT_MAX)};
    w->tool->run(w, ret);
    if (text_clean(&ret->text))
        ret->replaced = true;
    ret->redacted |= tool_hide(w->place->secrets, &ret->text);
    tool_cut(&ret->text, tool_room(w));
}

void tool_drop(struct tool_work *w)
{
    if (w->proc.pid > 0) /* one that was never made ready holds zeros, which are descriptors of others */
        proc_drop(&w->proc);
    if (w->out > 0)
        close(w->out);
    w->out = -1;
    if (w->tool->drop)
        w->tool->drop(w);
}

enum tool_fate tool_fate(struct tool_work *w)
{
    return w->tool->fate ? w->tool->fate(w) : FATE_UNKNOWN;
}

void tool_result_done(struct tool_result *r)
{
    buf_done(&r->text);
}

void tool_fail(struct tool_result *ret, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) >= 0)
        buf_add_str(&ret->text, str_from(text));
    va_end(ap);
    free(text);
    ret->failed = true;
}

void tool_summary(struct buf *out, struct str name, const struct json *args)
{
    const struct tool *t = tool_find(name);
    const struct json *subject = t && args ? json_get(args, str_from(t->subject)) : NULL;
    struct arena a = ARENA_INIT;

    text_line(out, name, NAME_SHOWN);
    if (subject && subject->type == JSON_STRING) {
        buf_add_char(out, ' ');
        text_line(out, json_text(&a, subject), SUMMARY_CHARS);
    }
    arena_done(&a);
}
