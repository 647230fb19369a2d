/* SPDX-License-Identifier: Apache-2.0 */
/* What shape_put() wrote, back into its struct: by the same table, so that who reads an object and who writes it cannot differ. */
#include "base/shape.h"

#include <stdio.h>

#include "base/timefmt.h"

static bool take_int(void *at, size_t size, int64_t n)
{
    if (size == sizeof(int64_t))
        *(int64_t *)at = n;
    else if (size == sizeof(int))
        *(int *)at = (int)n;
    else
        *(bool *)at = n != 0;
    return size == sizeof(int64_t) || (n >= INT32_MIN && n <= INT32_MAX);
}

static bool take_time(void *at, struct arena *a, const struct json *v)
{
    return v->type == JSON_STRING && time_parse(json_text(a, v), at);
}

static bool take_texts(struct arena *a, const struct json *v, const char *const **ret)
{
    const char **list = arena_zero(a, ((size_t)v->count + 1) * sizeof *list);
    size_t n = 0;

    if (v->type != JSON_ARRAY)
        return false;
    for (const struct json *t = v->first; t; t = t->next) {
        if (t->type != JSON_STRING)
            return false;
        list[n++] = arena_dup(a, json_text(a, t)).ptr;
    }
    *ret = list;
    return true;
}

static bool take_rows(struct arena *a, const struct shape_member *m, const struct json *v, char *data)
{
    char *rows = arena_zero(a, ((size_t)v->count + 1) * m->size);
    struct tide_err ignored;
    size_t n = 0;

    if (v->type != JSON_ARRAY)
        return false;
    for (const struct json *row = v->first; row; row = row->next, n++)
        if (shape_read(a, m->of, row, rows + n * m->size, &ignored))
            return false;
    *(char **)(void *)(data + m->offset) = rows;
    *(size_t *)(void *)(data + m->count) = n;
    return true;
}

static bool take_value(struct arena *a, const struct shape_member *m, const struct json *v, char *data)
{
    void *at = data + m->offset;
    struct tide_err ignored;
    int64_t n;

    if (m->take)
        return m->take(a, v, data);
    if (m->put)
        return true;
    switch (m->type) {
    case SHAPE_TEXT:
        *(const char **)at = arena_dup(a, json_text(a, v)).ptr;
        return v->type == JSON_STRING;
    case SHAPE_STR:
        *(struct str *)at = arena_dup(a, json_text(a, v));
        return v->type == JSON_STRING;
    case SHAPE_CHARS:
        snprintf(at, m->size, "%.*s", STR_ARG(json_text(a, v)));
        return v->type == JSON_STRING;
    case SHAPE_ANY:
        *(struct str *)at = json_source(v);
        return true;
    case SHAPE_INT:
        return json_int(v, &n) && take_int(at, m->size, n);
    case SHAPE_BOOL:
        return take_int(at, m->size, v->type == JSON_TRUE) && (v->type == JSON_TRUE || v->type == JSON_FALSE);
    case SHAPE_TIME:
        return take_time(at, a, v);
    case SHAPE_OBJECT:
        return !shape_read(a, m->of, v, at, &ignored);
    case SHAPE_LIST:
        return take_texts(a, v, at);
    case SHAPE_ROWS:
        return take_rows(a, m, v, data);
    default:
        return true;
    }
}

/* json_text() is of strings alone. */
static bool has_text(const struct shape_member *m, const struct json *v)
{
    bool wants = !m->take && !m->put && (m->type == SHAPE_TEXT || m->type == SHAPE_STR || m->type == SHAPE_CHARS);

    return !wants || v->type == JSON_STRING;
}

/* `v` NULL: absent. */
static bool has_id(struct arena *a, const struct shape_member *m, const struct json *v)
{
    if (!(m->flags & SHAPE_ID))
        return true;
    return v && v->type != JSON_NULL ? v->type == JSON_STRING && str_is_id(json_text(a, v))
                                     : (m->flags & (SHAPE_NULLABLE | SHAPE_OPTIONAL)) != 0;
}

enum tide_code shape_read(struct arena *a, const struct shape *shape, const struct json *v, void *data,
                          struct tide_err *err)
{
    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "it is not an object");
    for (const struct shape_member *m = shape->members; m->name; m++) {
        const struct json *value = json_get(v, str_from(m->name));

        if (m->type == SHAPE_MEMBERS) {
            if (shape_read(a, m->of, v, (char *)data + m->offset, err))
                return err->code;
        } else if (!has_id(a, m, value)) {
            return tide_fail(err, TIDE_INVALID, "its member '%s' is not an id", m->name);
        } else if (value && value->type != JSON_NULL && (!has_text(m, value) || !take_value(a, m, value, data))) {
            return tide_fail(err, TIDE_INVALID, "its member '%s' is of another type", m->name);
        }
    }
    return TIDE_OK;
}
