/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shape.h"

#include <assert.h>

#include "base/timefmt.h"

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static int64_t int_at(const void *at, size_t size)
{
    return size == sizeof(int64_t) ? *(const int64_t *)at : size == sizeof(int) ? *(const int *)at : *(const bool *)at;
}

static bool is_present(const struct shape_member *m, const char *data)
{
    const void *at = data + m->offset;

    if (m->has)
        return m->has(data);
    if (m->put)
        return true;
    switch (m->type) {
    case SHAPE_TEXT:
        return *(const char *const *)at && (!(m->flags & SHAPE_OPTIONAL) || **(const char *const *)at);
    case SHAPE_CHARS:
        return !m->flags || *(const char *)at != '\0';
    case SHAPE_STR:
        return ((const struct str *)at)->ptr != NULL;
    case SHAPE_ANY:
        return ((const struct str *)at)->len > 0;
    case SHAPE_TIME:
        return *(const int64_t *)at != 0;
    case SHAPE_INT: /* a number is always there, unless it may be left out */
        return !(m->flags & SHAPE_OPTIONAL) || int_at(at, m->size) != 0;
    default:
        return true;
    }
}

static void put_texts(struct json_out *o, const char *const *texts)
{
    json_out_begin(o, '[');
    for (; texts && *texts; texts++)
        json_out_str(o, str_from(*texts));
    json_out_end(o, ']');
}

static void put_value(struct json_out *o, const struct shape_member *m, const char *data)
{
    const void *at = data + m->offset;
    char time[TIME_TEXT_SIZE];

    if (m->put) {
        m->put(o, data);
        return;
    }
    switch (m->type) {
    case SHAPE_TEXT:
        json_out_str(o, str_from(*(const char *const *)at));
        break;
    case SHAPE_CHARS:
        json_out_str(o, str_from(at));
        break;
    case SHAPE_STR:
        json_out_str(o, *(const struct str *)at);
        break;
    case SHAPE_ANY:
        json_out_raw(o, *(const struct str *)at);
        break;
    case SHAPE_INT:
        json_out_int(o, int_at(at, m->size));
        break;
    case SHAPE_BOOL:
        json_out_bool(o, int_at(at, m->size) != 0);
        break;
    case SHAPE_TIME:
        time_format(time, *(const int64_t *)at);
        json_out_str(o, str_from(time));
        break;
    case SHAPE_OBJECT:
        shape_put(o, m->of, at);
        break;
    case SHAPE_LIST:
        put_texts(o, *(const char *const *const *)at);
        break;
    case SHAPE_ROWS:
        json_out_begin(o, '[');
        for (size_t i = 0; i < *(const size_t *)(const void *)(data + m->count); i++)
            shape_put(o, m->of, *(const char *const *)at + i * m->size);
        json_out_end(o, ']');
        break;
    case SHAPE_STREAM:
        json_out_begin(o, '[');
        ((const struct shape_stream *)at)->write(o, ((const struct shape_stream *)at)->arg);
        json_out_end(o, ']');
        break;
    default:
        assert(!"a member of this type has a put");
    }
}

static bool is_of(const struct shape_member *m, int variant)
{
    return !m->only || (m->only & 1u << variant);
}

static void put_members(struct json_out *o, const struct shape *shape, const void *data)
{
    int variant = shape->variant ? shape->variant(data) : 0;

    for (const struct shape_member *m = shape->members; m->name; m++) {
        if (!is_of(m, variant))
            continue;
        if (m->type == SHAPE_MEMBERS) {
            put_members(o, m->of, (const char *)data + m->offset);
            continue;
        }
        if (m->type == SHAPE_VARIANT) {
            json_out_kstr(o, str_from(m->name), str_from(shape->variants[variant]));
            continue;
        }
        bool present = is_present(m, data);

        if (!present && (m->flags & SHAPE_OPTIONAL))
            continue;
        json_out_key(o, str_from(m->name));
        if (present)
            put_value(o, m, data);
        else
            json_out_null(o);
    }
}

void shape_put(struct json_out *o, const struct shape *shape, const void *data)
{
    json_out_begin(o, '{');
    put_members(o, shape, data);
    json_out_end(o, '}');
}

/* ---- the schema ---------------------------------------------------------------------------------------------------- */

static void schema_object(struct json_out *o, const struct shape *shape, bool nullable);

static const char *json_type(enum shape_type type)
{
    static const char *const names[] = {
        [SHAPE_TEXT] = "string",   [SHAPE_CHARS] = "string",   [SHAPE_STR] = "string",    [SHAPE_TIME] = "string",
        [SHAPE_INT] = "integer",   [SHAPE_BOOL] = "boolean",   [SHAPE_NUMBER] = "number", [SHAPE_ANY] = NULL,
        [SHAPE_OBJECT] = "object", [SHAPE_MEMBERS] = "object", [SHAPE_LIST] = "array",    [SHAPE_STREAM] = "array",
        [SHAPE_ROWS] = "array",    [SHAPE_VARIANT] = "string", [SHAPE_MAP] = "object",
    };

    return names[type];
}

static void schema_type(struct json_out *o, enum shape_type type, bool nullable)
{
    const char *name = json_type(type);

    if (!name) /* anything */
        return;
    json_out_key(o, STR("type"));
    if (nullable)
        json_out_begin(o, '[');
    json_out_str(o, str_from(name));
    if (nullable) {
        json_out_str(o, STR("null"));
        json_out_end(o, ']');
    }
}

void shape_schema_words(struct json_out *o, const char *words, bool nullable)
{
    json_out_key(o, STR("enum"));
    json_out_begin(o, '[');
    while (*words) {
        size_t n = strcspn(words, " ");

        json_out_str(o, (struct str){words, n});
        words += n + (words[n] == ' ');
    }
    if (nullable)
        json_out_null(o);
    json_out_end(o, ']');
}

/* What the elements of a list are, or the values of a map. */
static void schema_items(struct json_out *o, const char *key, const struct shape_member *m)
{
    json_out_key(o, str_from(key));
    json_out_begin(o, '{');
    if (m->of)
        schema_object(o, m->of, false);
    else
        schema_type(o, m->items, false);
    json_out_end(o, '}');
}

static void schema_member(struct json_out *o, const struct shape *shape, const struct shape_member *m, int variant)
{
    bool nullable = m->flags & SHAPE_NULLABLE;

    json_out_key(o, str_from(m->name));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("description"), str_from(m->help));
    if (m->type == SHAPE_VARIANT)
        json_out_kstr(o, STR("const"), str_from(shape->variants[variant]));
    else if (m->type == SHAPE_OBJECT)
        schema_object(o, m->of, nullable);
    else
        schema_type(o, m->type, nullable);
    if (m->type == SHAPE_TIME)
        json_out_kstr(o, STR("format"), STR("date-time"));
    if (m->words)
        shape_schema_words(o, m->words, nullable);
    if (m->type == SHAPE_LIST || m->type == SHAPE_STREAM || m->type == SHAPE_ROWS)
        schema_items(o, "items", m);
    if (m->type == SHAPE_MAP)
        schema_items(o, "additionalProperties", m);
    json_out_end(o, '}');
}

static void schema_members(struct json_out *o, const struct shape *shape, int variant)
{
    for (const struct shape_member *m = shape->members; m->name; m++)
        if (m->type == SHAPE_MEMBERS)
            schema_members(o, m->of, 0);
        else if (is_of(m, variant))
            schema_member(o, shape, m, variant);
}

static void schema_required(struct json_out *o, const struct shape *shape, int variant)
{
    for (const struct shape_member *m = shape->members; m->name; m++)
        if (m->type == SHAPE_MEMBERS)
            schema_required(o, m->of, 0);
        else if (is_of(m, variant) && !(m->flags & SHAPE_OPTIONAL))
            json_out_str(o, str_from(m->name));
}

static void schema_variant(struct json_out *o, const struct shape *shape, int variant)
{
    json_out_key(o, STR("properties"));
    json_out_begin(o, '{');
    schema_members(o, shape, variant);
    json_out_end(o, '}');
    json_out_key(o, STR("required"));
    json_out_begin(o, '[');
    schema_required(o, shape, variant);
    json_out_end(o, ']');
    json_out_kbool(o, STR("additionalProperties"), shape->open);
}

static void schema_object(struct json_out *o, const struct shape *shape, bool nullable)
{
    schema_type(o, SHAPE_OBJECT, nullable);
    if (!shape->variants) {
        schema_variant(o, shape, 0);
        return;
    }
    json_out_key(o, STR("oneOf"));
    json_out_begin(o, '[');
    for (int i = 0; shape->variants[i]; i++) {
        json_out_begin(o, '{');
        schema_variant(o, shape, i);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

void shape_schema(struct json_out *o, const struct shape *shape)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("$schema"), STR("https://json-schema.org/draft/2020-12/schema"));
    json_out_kstr(o, STR("title"), str_from(shape->name));
    json_out_kstr(o, STR("description"), str_from(shape->help));
    schema_object(o, shape, false);
    json_out_end(o, '}');
}
