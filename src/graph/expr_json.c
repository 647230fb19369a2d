/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to Lua and back. null is nil, so that `not output.error` means what it says; a table remembers the JSON that it came
 * from (its origin), and by that gets its nulls, its being a list and the order of its members back. What is new in an
 * object comes behind what came in, sorted: the same code over the same values gives the same bytes.
 *
 * An origin is one of: the parsed value; a number, for a list of that length; a list of keys, for an object in that order.
 * A list that came in with nulls never gets shorter than it was: what is taken from its end becomes null.
 */
#include <math.h>
#include <stdio.h>

#include "graph/expr_internal.h"

/* ---- in ---- */

static void origin_set(lua_State *l, const struct json *v)
{
    expr_slot_push(l, EXPR_ORIGIN);
    lua_pushvalue(l, -2);
    lua_pushlightuserdata(l, (void *)v);
    lua_rawset(l, -3);
    lua_pop(l, 1);
}

static void push_number(lua_State *l, const struct json *v)
{
    int64_t whole;

    if (json_int(v, &whole))
        lua_pushinteger(l, whole);
    else
        lua_pushnumber(l, strtod(arena_dup(&expr_machine(l)->arena, v->raw).ptr, NULL));
}

static void push_list(lua_State *l, const struct json *v)
{
    lua_Integer at = 1;
    bool holes = false;

    lua_createtable(l, (int)v->count, 0);
    for (const struct json *item = v->first; item; item = item->next, at++) {
        holes |= item->type == JSON_NULL;
        if (item->type == JSON_NULL)
            continue;
        expr_json_push(l, item);
        lua_rawseti(l, -2, at);
    }
    origin_set(l, v);
    if (holes) {
        expr_slot_push(l, EXPR_LIST_META);
        lua_setmetatable(l, -2);
    }
}

static void push_text(lua_State *l, struct str text)
{
    lua_pushlstring(l, text.ptr, text.len);
}

static void push_object(lua_State *l, const struct json *v)
{
    struct arena *a = &expr_machine(l)->arena;

    lua_createtable(l, 0, (int)v->count);
    for (const struct json *item = v->first; item; item = item->next) {
        if (item->type == JSON_NULL)
            continue;
        push_text(l, json_key_text(a, item));
        expr_json_push(l, item);
        lua_rawset(l, -3);
    }
    origin_set(l, v);
    expr_slot_push(l, EXPR_OBJECT_META);
    lua_setmetatable(l, -2);
}

void expr_json_push(lua_State *l, const struct json *v)
{
    luaL_checkstack(l, 8, "values nested too deeply");
    switch (v->type) {
    case JSON_NULL:
        lua_pushnil(l);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        lua_pushboolean(l, v->type == JSON_TRUE);
        break;
    case JSON_NUMBER:
        push_number(l, v);
        break;
    case JSON_STRING:
        push_text(l, json_text(&expr_machine(l)->arena, v));
        break;
    case JSON_ARRAY:
        push_list(l, v);
        break;
    case JSON_OBJECT:
        push_object(l, v);
        break;
    }
}

/* ---- what a table is ---- */

static int origin_push(lua_State *l, int at)
{
    expr_slot_push(l, EXPR_ORIGIN);
    lua_pushvalue(l, at);
    lua_rawget(l, -2);
    lua_remove(l, -2);
    return lua_type(l, -1);
}

static bool has_holes(const struct json *list)
{
    for (const struct json *item = list->first; item; item = item->next)
        if (item->type == JSON_NULL)
            return true;
    return false;
}

/* How long it is at least: as long as it came, when it has nulls that Lua does not see. */
static lua_Integer least_len(lua_State *l, int at)
{
    const struct json *v;
    lua_Integer n = 0;

    if (origin_push(l, at) == LUA_TNUMBER) {
        n = lua_tointeger(l, -1);
    } else if (lua_islightuserdata(l, -1)) {
        v = lua_touserdata(l, -1);
        expr_charge(l, v->count / 8);
        n = v->type == JSON_ARRAY && has_holes(v) ? v->count : 0;
    }
    lua_pop(l, 1);
    return n;
}

lua_Integer expr_list_len(lua_State *l, int at)
{
    lua_Integer n = least_len(l, at);

    at = lua_absindex(l, at);
    if (n == 0)
        return (lua_Integer)lua_rawlen(l, at);
    while (lua_rawgeti(l, at, n + 1) != LUA_TNIL) {
        lua_pop(l, 1);
        n++;
    }
    lua_pop(l, 1);
    return n;
}

enum expr_kind expr_kind_of(lua_State *l, int at)
{
    int type;
    enum expr_kind kind;
    const struct json *v;

    at = lua_absindex(l, at);
    type = origin_push(l, at);
    v = type == LUA_TLIGHTUSERDATA ? lua_touserdata(l, -1) : NULL;
    kind = type == LUA_TNUMBER || (v && v->type == JSON_ARRAY) ? EXPR_LIST : EXPR_DICT;
    if (type == LUA_TNIL)
        kind = lua_rawlen(l, at) > 0 ? EXPR_LIST : EXPR_DICT;
    lua_pop(l, 1);
    return kind;
}

/* ---- the order of keys ---- */

struct key {
    int type;
    lua_Number number;
    struct str text;
    lua_Integer at; /* in the list of keys that are sorted */
};

static int key_cmp(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    size_t n = a->text.len < b->text.len ? a->text.len : b->text.len;
    int order;

    if (a->type != b->type)
        return a->type - b->type;
    if (a->type != LUA_TSTRING)
        return (a->number > b->number) - (a->number < b->number);
    order = n > 0 ? memcmp(a->text.ptr, b->text.ptr, n) : 0;
    return order ? order : (a->text.len > b->text.len) - (a->text.len < b->text.len);
}

static struct key key_at(lua_State *l, int list, lua_Integer at)
{
    struct key k = {.at = at};

    k.type = lua_rawgeti(l, list, at);
    if (k.type == LUA_TSTRING)
        k.text.ptr = lua_tolstring(l, -1, &k.text.len);
    else if (k.type == LUA_TNUMBER)
        k.number = lua_tonumber(l, -1);
    else if (k.type == LUA_TBOOLEAN)
        k.number = lua_toboolean(l, -1);
    else
        luaL_error(l, "a table has a %s as a key: only text and numbers have an order", luaL_typename(l, -1));
    lua_pop(l, 1); /* the list still holds it */
    return k;
}

/* Behind `keys`, which has n already, those of the list on top of the stack, sorted. Pops the list. */
static void add_sorted(lua_State *l, int keys, lua_Integer n)
{
    lua_Integer more = (lua_Integer)lua_rawlen(l, -1);
    int list = lua_gettop(l);
    struct key *sorted = lua_newuserdatauv(l, (size_t)(more > 0 ? more : 1) * sizeof *sorted, 0);

    for (lua_Integer i = 0; i < more; i++)
        sorted[i] = key_at(l, list, i + 1);
    qsort(sorted, (size_t)more, sizeof *sorted, key_cmp);
    for (lua_Integer i = 0; i < more; i++) {
        lua_rawgeti(l, list, sorted[i].at);
        lua_rawseti(l, keys, n + i + 1);
    }
    lua_pop(l, 2);
}

/* A key on top of the stack joins the keys and the set of those seen, if the table has it (or a null there counts). */
static void add_known(lua_State *l, int at, int keys, int seen, lua_Integer *n, bool null_counts)
{
    bool there;

    lua_pushvalue(l, -1);
    there = lua_rawget(l, at) != LUA_TNIL;
    lua_pop(l, 1);
    if (there) {
        lua_pushvalue(l, -1);
        lua_pushboolean(l, 1);
        lua_rawset(l, seen);
    }
    if (there || null_counts)
        lua_rawseti(l, keys, ++*n);
    else
        lua_pop(l, 1);
}

static lua_Integer add_origin(lua_State *l, int at, int keys, int seen, bool with_nulls)
{
    lua_Integer n = 0;
    const struct json *v;

    if (origin_push(l, at) == LUA_TTABLE) {
        lua_Integer count = (lua_Integer)lua_rawlen(l, -1);

        for (lua_Integer i = 1; i <= count; i++) {
            lua_rawgeti(l, -1, i);
            add_known(l, at, keys, seen, &n, with_nulls);
        }
    } else if (lua_islightuserdata(l, -1)) {
        v = lua_touserdata(l, -1);
        for (const struct json *item = v->type == JSON_OBJECT ? v->first : NULL; item; item = item->next) {
            push_text(l, json_key_text(&expr_machine(l)->arena, item));
            add_known(l, at, keys, seen, &n, with_nulls && item->type == JSON_NULL);
        }
    }
    lua_pop(l, 1);
    return n;
}

static void dict_keys(lua_State *l, int at, int keys, bool with_nulls)
{
    lua_Integer n, others = 0;
    int seen, rest;

    lua_newtable(l);
    seen = lua_gettop(l);
    n = add_origin(l, at, keys, seen, with_nulls);
    lua_newtable(l);
    rest = lua_gettop(l);
    for (lua_pushnil(l); lua_next(l, at); lua_pop(l, 1)) {
        expr_charge(l, 1);
        lua_pushvalue(l, -2);
        if (lua_rawget(l, seen) == LUA_TNIL) {
            lua_pushvalue(l, -3);
            lua_rawseti(l, rest, ++others);
        }
        lua_pop(l, 1);
    }
    add_sorted(l, keys, n);
    lua_pop(l, 1);
}

void expr_keys_push(lua_State *l, int at, bool with_nulls)
{
    luaL_checkstack(l, 16, "values nested too deeply");
    at = lua_absindex(l, at);
    lua_newtable(l);
    dict_keys(l, at, lua_gettop(l), with_nulls);
}

/* ---- out ---- */

static void write_float(lua_State *l, lua_Number x, struct json_out *out)
{
    char text[40];

    if (!isfinite(x))
        luaL_error(l, "the result has %s, which JSON cannot represent",
                   isnan(x) ? "a number that is none (NaN)" : "an infinite number");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    if (!strpbrk(text, ".e")) /* stays a number with a fraction when it is read again */
        memcpy(text + strlen(text), ".0", 3);
    json_out_raw(out, str_from(text));
}

/* Every key must be a whole number from 1 to n. */
static void check_list(lua_State *l, int at, lua_Integer n)
{
    for (lua_pushnil(l); lua_next(l, at); lua_pop(l, 1)) {
        lua_Integer key = lua_isinteger(l, -2) ? lua_tointeger(l, -2) : 0;

        if (key < 1 && lua_type(l, -2) == LUA_TSTRING)
            luaL_error(l, "the result has a table with both list items and members ('%s'): JSON has one or the other",
                       lua_tostring(l, -2));
        if (key < 1 || key > n)
            luaL_error(l, "the result has a list with a gap after item %d", (int)n);
    }
}

static void write_list(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth)
{
    lua_Integer n = expr_list_len(l, at);

    check_list(l, at, n);
    json_out_begin(out, '[');
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(l, at, i);
        expr_json_write(l, lua_gettop(l), out, start, depth + 1);
        lua_pop(l, 1);
    }
    json_out_end(out, ']');
}

static void write_member(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth)
{
    struct str key;

    if (lua_type(l, -1) != LUA_TSTRING)
        luaL_error(l, "the result has a table with the key %s, which is neither text nor a place in a list",
                   luaL_tolstring(l, -1, NULL));
    key.ptr = lua_tolstring(l, -1, &key.len);
    if (!str_is_utf8(key, NULL)) /* two such names would become the same one */
        luaL_error(l, "the result has a member whose name is not UTF-8");
    json_out_key(out, key);
    lua_rawget(l, at);
    expr_json_write(l, lua_gettop(l), out, start, depth + 1);
    lua_pop(l, 1);
}

static void write_object(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth)
{
    lua_Integer n;
    int keys;

    expr_keys_push(l, at, true);
    keys = lua_gettop(l);
    n = (lua_Integer)lua_rawlen(l, keys);
    json_out_begin(out, '{');
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(l, keys, i);
        write_member(l, at, out, start, depth);
    }
    json_out_end(out, '}');
    lua_pop(l, 1);
}

static void write_table(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth)
{
    if (depth >= JSON_MAX_DEPTH)
        luaL_error(l, "the result is nested deeper than %d, or contains itself", JSON_MAX_DEPTH);
    luaL_checkstack(l, 16, "values nested too deeply");
    if (expr_kind_of(l, at) == EXPR_LIST)
        write_list(l, at, out, start, depth);
    else
        write_object(l, at, out, start, depth);
}

void expr_json_write(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth)
{
    struct str text;

    if (out->buf->failed || out->buf->len - start > expr_machine(l)->max_result)
        expr_too_big(l, "the result is too big");
    switch (lua_type(l, at)) {
    case LUA_TNIL:
    case LUA_TLIGHTUSERDATA: /* json.null */
        json_out_null(out);
        break;
    case LUA_TBOOLEAN:
        json_out_bool(out, lua_toboolean(l, at));
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(l, at))
            json_out_int(out, lua_tointeger(l, at));
        else
            write_float(l, lua_tonumber(l, at), out);
        break;
    case LUA_TSTRING:
        text.ptr = lua_tolstring(l, at, &text.len);
        json_out_str(out, text);
        break;
    case LUA_TTABLE:
        write_table(l, at, out, start, depth);
        break;
    default:
        luaL_error(l, "the result has a %s, which JSON cannot represent", luaL_typename(l, at));
    }
}

/* ---- what the tables of values answer ---- */

static int list_len(lua_State *l)
{
    lua_pushinteger(l, expr_list_len(l, 1));
    return 1;
}

static int member_missing(lua_State *l)
{
    expr_missed(l, 2);
    lua_pushnil(l);
    return 1;
}

static void meta_make(lua_State *l, const char *event, lua_CFunction fn, enum expr_slot slot)
{
    lua_newtable(l);
    lua_pushcfunction(l, fn);
    lua_setfield(l, -2, event);
    expr_slot_set(l, slot);
}

void expr_json_setup(lua_State *l)
{
    meta_make(l, "__len", list_len, EXPR_LIST_META);
    meta_make(l, "__index", member_missing, EXPR_OBJECT_META);
}
