/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two branches have set the same key. Whether they agree does not matter under the rule `error`: a graph must not fail on
 * one day and run on another for what happened to be in a value.
 *
 * merge: lists one behind the other; objects member by member, the later branch wins where both have one that is no object
 * in both; other values only when they are equal.
 */
#include "base/map.h"
#include "graph/edge_choice.h"

static const char *const type_words[] = {"null",   "a truth value", "a truth value", "a number",
                                         "a text", "a list",        "an object"};

static bool same_value(struct arena *a, const struct json *x, const struct json *y)
{
    int64_t left, right;

    if (x->type != y->type)
        return false;
    if (x->type == JSON_STRING)
        return str_eq(json_text(a, x), json_text(a, y));
    if (x->type == JSON_NUMBER)
        return str_eq(x->raw, y->raw) || (json_int(x, &left) && json_int(y, &right) && left == right);
    return true;
}

static void put_key(struct arena *a, struct buf *out, const struct json *member)
{
    if (out->ptr[out->len - 1] != '{')
        buf_add_char(out, ',');
    json_quote(out, json_key_text(a, member));
    buf_add_char(out, ':');
}

/* Members keep their places; new ones follow. Depth is bounded by that of the JSON. */
static void put_objects(struct arena *a, struct buf *out, const struct json *before, const struct json *now)
{
    struct map later = {0};

    for (const struct json *m = now->first; m; m = m->next)
        map_put(&later, json_key_text(a, m), (void *)(uintptr_t)m);
    buf_add_char(out, '{');
    for (const struct json *m = before->first; m; m = m->next) {
        const struct json *other = map_remove(&later, json_key_text(a, m));

        put_key(a, out, m);
        if (other && other->type == JSON_OBJECT && m->type == JSON_OBJECT)
            put_objects(a, out, m, other);
        else
            json_write(out, other ? other : m);
    }
    for (struct map_entry *e = NULL; (e = map_next(&later, e));) {
        put_key(a, out, e->value);
        json_write(out, e->value);
    }
    buf_add_char(out, '}');
    map_done(&later, NULL);
}

static void put_lists(struct buf *out, const struct json *before, const struct json *now)
{
    const struct json *lists[] = {before, now};

    buf_add_char(out, '[');
    for (size_t i = 0; i < 2; i++)
        for (const struct json *item = lists[i]->first; item; item = item->next) {
            if (out->len > 1)
                buf_add_char(out, ',');
            json_write(out, item);
        }
    buf_add_char(out, ']');
}

static enum tide_code merge_values(struct str key, struct str before, struct str now, struct arena *a,
                                   struct str *ret_value, struct tide_err *err)
{
    AUTO(arena_done) struct arena own = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT((before.len + now.len) * 6 + 16);
    struct json *x = NULL, *y = NULL;

    if (json_parse(&own, before, NULL, &x, NULL, err) || json_parse(&own, now, NULL, &y, NULL, err))
        return tide_wrap(err, "merge '%.*s'", (int)(key.len < 64 ? key.len : 64), key.ptr);
    if (x->type == JSON_OBJECT && y->type == JSON_OBJECT)
        put_objects(&own, &out, x, y);
    else if (x->type == JSON_ARRAY && y->type == JSON_ARRAY)
        put_lists(&out, x, y);
    else if (same_value(&own, x, y))
        json_write(&out, x);
    else
        return tide_fail(err, TIDE_INVALID,
                         "'%.*s': one branch set %s, another %s: only lists, objects and equal values can be "
                         "merged; use last or first",
                         (int)(key.len < 64 ? key.len : 64), key.ptr, type_words[x->type],
                         x->type == y->type ? "a different one" : type_words[y->type]);
    *ret_value = arena_dup(a, buf_view(&out));
    return TIDE_OK;
}

enum tide_code memory_merge_value(enum spec_conflict rule, struct str key, struct str before, struct str now,
                                  struct arena *a, struct str *ret_value, struct tide_err *err)
{
    ERR_LOCAL(err);
    switch (rule) {
    case SPEC_CONFLICT_LAST:
        *ret_value = now;
        return TIDE_OK;
    case SPEC_CONFLICT_FIRST:
        *ret_value = before;
        return TIDE_OK;
    case SPEC_CONFLICT_MERGE:
        return merge_values(key, before, now, a, ret_value, err);
    case SPEC_CONFLICT_ERROR:
        break;
    }
    return tide_fail(err, TIDE_CONFLICT,
                     "two branches set '%.*s' at the same time: give it a rule, \"conflict\": {\"%.*s\": \"last\"}, or "
                     "another name",
                     (int)(key.len < 64 ? key.len : 64), key.ptr, (int)(key.len < 64 ? key.len : 64), key.ptr);
}
