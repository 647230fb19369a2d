/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code in graphs may call: the harmless part of Lua's libraries. Left out is what loads code, catches errors (a limit
 * must not be caught), sets metatables, or answers differently each time. Replaced is what would show an address or the
 * order of a hash table, and what works in C for longer than its arguments let one think.
 */
#include <lualib.h>
#include <stdio.h>

#include "graph/expr_internal.h"
#include "graph/expr_pattern.h"

/* ---- base ---- */

/* (list of keys, table, place): the next key that still has a value. */
static int pairs_next(lua_State *l)
{
    lua_Integer at = lua_tointeger(l, lua_upvalueindex(3));

    while (lua_rawgeti(l, lua_upvalueindex(1), ++at) != LUA_TNIL) {
        lua_pushvalue(l, -1);
        if (lua_rawget(l, lua_upvalueindex(2)) != LUA_TNIL) {
            lua_pushinteger(l, at);
            lua_replace(l, lua_upvalueindex(3));
            return 2;
        }
        lua_pop(l, 2);
    }
    return 1;
}

static int base_pairs(lua_State *l)
{
    luaL_checktype(l, 1, LUA_TTABLE);
    expr_keys_push(l, 1, false);
    lua_pushvalue(l, 1);
    lua_pushinteger(l, 0);
    lua_pushcclosure(l, pairs_next, 3);
    return 1;
}

/* The first key, or the one behind a key: as pairs() has them. */
static int base_next(lua_State *l)
{
    lua_Integer at = 0;

    luaL_checktype(l, 1, LUA_TTABLE);
    lua_settop(l, 2);
    expr_keys_push(l, 1, false);
    while (!lua_isnil(l, 2)) {
        if (lua_rawgeti(l, 3, ++at) == LUA_TNIL)
            return luaL_error(l, "next: the table has no such key");
        if (lua_rawequal(l, -1, 2))
            break;
        lua_pop(l, 1);
        expr_charge(l, 1);
    }
    lua_settop(l, 3);
    if (lua_rawgeti(l, 3, at + 1) == LUA_TNIL)
        return 1;
    lua_pushvalue(l, -1);
    lua_rawget(l, 1);
    return 2;
}

static int base_tostring(lua_State *l)
{
    luaL_checkany(l, 1);
    if (lua_istable(l, 1) || lua_isfunction(l, 1) || lua_isuserdata(l, 1))
        lua_pushstring(l, lua_isuserdata(l, 1) ? "null" : luaL_typename(l, 1)); /* no address */
    else
        luaL_tolstring(l, 1, NULL);
    return 1;
}

/* ---- string ---- */

static int string_rep(lua_State *l)
{
    size_t len, sep_len = 0;
    const char *s = luaL_checklstring(l, 1, &len);
    lua_Integer n = luaL_checkinteger(l, 2);
    const char *sep = luaL_optlstring(l, 3, "", &sep_len);
    luaL_Buffer b;

    if (n <= 0) {
        lua_pushliteral(l, "");
        return 1;
    }
    if (len + sep_len > 0 && (uint64_t)n > expr_machine(l)->limit / (len + sep_len))
        return expr_too_big(l, "stopped: string.rep would need more than the memory limit");
    expr_charge(l, (uint64_t)n);
    luaL_buffinit(l, &b);
    while (n-- > 0) {
        luaL_addlstring(&b, s, len);
        if (n > 0)
            luaL_addlstring(&b, sep, sep_len);
    }
    luaL_pushresult(&b);
    return 1;
}

/* Calls the function that was replaced, kept as the first upvalue. */
static int call_original(lua_State *l)
{
    int n = lua_gettop(l);

    lua_pushvalue(l, lua_upvalueindex(1));
    lua_insert(l, 1);
    lua_call(l, n, LUA_MULTRET);
    return lua_gettop(l);
}

static int string_format(lua_State *l)
{
    size_t len;
    const char *format = luaL_checklstring(l, 1, &len);

    for (const char *p = format; (p = memchr(p, '%', len - (size_t)(p - format))); p += p[1] ? 2 : 1) {
        p += strspn(p + 1, "-+ #0123456789.");
        if (p[1] == 'p')
            return luaL_error(l, "string.format has no %%p here");
    }
    for (int i = 2; i <= lua_gettop(l); i++)
        if (lua_istable(l, i) || lua_isfunction(l, i))
            return luaL_error(l, "string.format cannot write a %s", luaL_typename(l, i));
    return call_original(l);
}

static int table_move(lua_State *l)
{
    lua_Integer from = luaL_checkinteger(l, 2), to = luaL_checkinteger(l, 3);

    if (to >= from)
        expr_charge(l, (uint64_t)to - (uint64_t)from);
    return call_original(l);
}

/* insert and remove at a place move all items behind it. */
static int table_shift(lua_State *l)
{
    luaL_checktype(l, 1, LUA_TTABLE);
    if (lua_gettop(l) > 1 && lua_isinteger(l, 2) && (lua_gettop(l) > 2 || lua_tointeger(l, 2) < luaL_len(l, 1)))
        expr_charge(l, (uint64_t)luaL_len(l, 1) / 8);
    return call_original(l);
}

static int table_sort(lua_State *l)
{
    luaL_checktype(l, 1, LUA_TTABLE);
    expr_charge(l, (uint64_t)luaL_len(l, 1) * 16);
    return call_original(l);
}

/* What goes through a text from end to end. */
static int text_bounded(lua_State *l)
{
    if (lua_type(l, 1) == LUA_TSTRING)
        expr_charge(l, lua_rawlen(l, 1) / 64);
    return call_original(l);
}

/* ---- json ---- */

/* json.array(t): t is a list, although it is empty. */
static int json_array(lua_State *l)
{
    luaL_checktype(l, 1, LUA_TTABLE);
    expr_slot_push(l, EXPR_ORIGIN);
    lua_pushvalue(l, 1);
    lua_pushinteger(l, 0);
    lua_rawset(l, -3);
    lua_settop(l, 1);
    return 1;
}

/* ---- what there is ---- */

struct replaced {
    const char *name;
    lua_CFunction fn;
};

struct library {
    const char *name;
    lua_CFunction open;
    const char *without[6];
    struct replaced with[8];
};

static const struct library libraries[] = {
    {"string",
     luaopen_string,
     {"dump", "pack", "packsize", "unpack"},
     {{"rep", string_rep},
      {"format", string_format},
      {"find", expr_pattern_find},
      {"match", expr_pattern_match},
      {"gmatch", expr_pattern_gmatch},
      {"gsub", expr_pattern_gsub}}},
    {"table",
     luaopen_table,
     {NULL},
     {{"move", table_move}, {"insert", table_shift}, {"remove", table_shift}, {"sort", table_sort}}},
    {"math", luaopen_math, {"random", "randomseed"}, {{NULL, NULL}}},
    {"utf8", luaopen_utf8, {NULL}, {{"len", text_bounded}, {"offset", text_bounded}, {"codepoint", text_bounded}}},
};

static const char *const base_names[] = {"assert", "error", "ipairs", "select", "tonumber", "type"};

static int is_read_only(lua_State *l)
{
    return luaL_error(l, "'%s' is read-only", lua_tostring(l, lua_upvalueindex(1)));
}

/* The table on top of the stack as base[name], behind one that cannot be written to. Pops it. */
void expr_publish(lua_State *l, int base, const char *name)
{
    lua_newtable(l);
    lua_newtable(l);
    lua_pushvalue(l, -3);
    lua_setfield(l, -2, "__index");
    lua_pushstring(l, name);
    lua_pushcclosure(l, is_read_only, 1);
    lua_setfield(l, -2, "__newindex");
    lua_setmetatable(l, -2);
    lua_setfield(l, base, name);
    lua_pop(l, 1);
}

static void library_open(lua_State *l, int base, const struct library *lib)
{
    lua_pushcfunction(l, lib->open);
    lua_call(l, 0, 1);
    for (const char *const *name = lib->without; *name; name++) {
        lua_pushnil(l);
        lua_setfield(l, -2, *name);
    }
    for (const struct replaced *r = lib->with; r->name; r++) {
        lua_getfield(l, -1, r->name);
        lua_pushcclosure(l, r->fn, 1);
        lua_setfield(l, -2, r->name);
    }
    expr_publish(l, base, lib->name);
}

static void base_open(lua_State *l, int base)
{
    static const luaL_Reg ours[] = {
        {"pairs", base_pairs}, {"next", base_next}, {"tostring", base_tostring}, {NULL, NULL}};

    lua_pushcfunction(l, luaopen_base); /* into the globals of the interpreter, which no code sees */
    lua_call(l, 0, 1);
    for (size_t i = 0; i < sizeof base_names / sizeof base_names[0]; i++) {
        lua_getfield(l, -1, base_names[i]);
        if (strcmp(base_names[i], "tonumber") == 0)
            lua_pushcclosure(l, text_bounded, 1);
        lua_setfield(l, base, base_names[i]);
    }
    lua_pop(l, 1);
    luaL_setfuncs(l, ours, 0);
}

static void json_open(lua_State *l, int base)
{
    lua_newtable(l);
    lua_pushlightuserdata(l, NULL);
    lua_setfield(l, -2, "null");
    lua_pushcfunction(l, json_array);
    lua_setfield(l, -2, "array");
    expr_publish(l, base, "json");
}

void expr_lib_open(lua_State *l)
{
    int base;

    lua_newtable(l);
    base = lua_gettop(l);
    base_open(l, base);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        library_open(l, base, &libraries[i]);
    json_open(l, base);
    expr_slot_set(l, EXPR_BASE);
}
