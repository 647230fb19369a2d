/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluating conditions and glue: user code that must not reach anything, run for ever, take all memory, or leave
 * something behind for the next one.
 *
 * An expression is its source. Interpreters are expensive to make (some 20 µs, 20 KiB), so a few are kept, each with the
 * chunks that it compiled lately. Nothing passes from one evaluation to the next, because the environment of the code is a
 * new table each time, the libraries are read-only, and an interpreter that reached a limit is thrown away.
 *
 * Every call into Lua happens under lua_pcall: its allocator may say no at any point, and that must come out as an error.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/map.h"
#include "graph/expr_internal.h"

#define INSTRUCTIONS_DEFAULT 10000000
#define MEMORY_DEFAULT ((size_t)16 << 20)
#define SOURCE_MAX ((size_t)1 << 20)
#define TOO_LONG "stopped: it runs for too long"
#define BYTES_PAID 256                  /* of new memory that cost as much as an instruction */
#define LONG_TEXT 4096                  /* bytes of the longest text that make each instruction cost one more */
#define IDLE_MAX 8                      /* interpreters kept */
#define CHUNKS_MAX 256                  /* compiled chunks kept in one */
#define CHUNK_BYTES 1024                /* of source that count as one chunk more */
#define GARBAGE_MAX ((size_t)512 << 10) /* more than that is collected before it is kept */

struct expr {
    struct str source;
    lua_Integer id;
    bool body;
    struct map uses; /* "memory.key" for each that stands there; "memory" alone when it is used in another way */
};

/* ---- the registry ---- */

static char slot_keys[EXPR_SLOTS];

void expr_slot_push(lua_State *l, enum expr_slot slot)
{
    lua_rawgetp(l, LUA_REGISTRYINDEX, &slot_keys[slot]);
}

void expr_slot_set(lua_State *l, enum expr_slot slot)
{
    lua_rawsetp(l, LUA_REGISTRYINDEX, &slot_keys[slot]);
}

/* ---- limits ---- */

static void *limited_alloc(void *arg, void *ptr, size_t had, size_t wants)
{
    struct machine *m = arg;
    void *got;

    if (!ptr && had == LUA_TSTRING && wants > m->longest)
        m->longest = wants;
    had = ptr ? had : 0; /* without a block it is a kind of object, not a size */
    if (wants == 0) {
        free(ptr);
        m->used -= had;
        return NULL;
    }
    if (wants > had && (m->used > m->limit || wants - had > m->limit - m->used))
        return NULL;
    if (wants > had && (wants - had) / BYTES_PAID >= m->budget) {
        m->budget = 0; /* the error that follows reports it */
        return NULL;
    }
    m->budget -= wants > had ? (wants - had) / BYTES_PAID : 0;
    got = realloc(ptr, wants);
    if (got)
        m->used += wants - had;
    return got;
}

int expr_too_big(lua_State *l, const char *what)
{
    expr_machine(l)->code = TIDE_TOO_BIG;
    lua_pushstring(l, what);
    return lua_error(l);
}

void expr_charge(lua_State *l, uint64_t work)
{
    struct machine *m = expr_machine(l);

    if (work >= m->budget)
        expr_too_big(l, TOO_LONG);
    m->budget -= work;
}

/* An instruction that compares texts takes as long as they are: with long ones about, each counts for more. */
static void count_hook(lua_State *l, lua_Debug *unused)
{
    (void)unused;
    expr_charge(l, EXPR_STEP * (1 + expr_machine(l)->longest / LONG_TEXT));
}

/* ---- errors ---- */

/* "line:3: what" as "line 3: what", on one line. */
static void tidy_message(char *out, size_t cap, struct str what)
{
    size_t n = 0;

    if (str_starts(what, STR("line:")) && what.len > 5) {
        what = (struct str){what.ptr + 5, what.len - 5};
        n = (size_t)snprintf(out, cap, "line ");
    }
    for (size_t i = 0; i < what.len && n + 1 < cap; i++) {
        unsigned char c = (unsigned char)what.ptr[i];

        out[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    out[n] = '\0';
    for (size_t bad; !str_is_utf8(str_from(out), &bad);)
        out[bad] = '?';
}

/* The hint: what was missing just before. Lua names it by itself, but for comparisons and calls into libraries. */
static bool wants_hint(const struct machine *m, const char *text)
{
    return m->missed[0] && (strstr(text, "nil") || strstr(text, "None")) && !strstr(text, "(field '") &&
           !strstr(text, "(global '");
}

static enum tide_code fail_with(struct machine *m, enum tide_code usual, int status, struct tide_err *err)
{
    enum tide_code code = m->code ? m->code : usual;
    struct str what = {"", 0};
    char text[200];

    if (lua_type(m->lua, -1) == LUA_TSTRING)
        what.ptr = lua_tolstring(m->lua, -1, &what.len);
    tidy_message(text, sizeof text, what.len > 0 ? what : STR("the code raised an error that has no text"));
    if (status == LUA_ERRMEM)
        return tide_fail(err, TIDE_TOO_BIG, "%s",
                         m->budget == 0 ? TOO_LONG : "stopped: it needs more than its memory limit");
    if (strstr(text, "stack overflow") || strstr(text, "resulting string too large"))
        m->code = code = usual == TIDE_FAILED ? TIDE_TOO_BIG : usual;
    if (wants_hint(m, text))
        return tide_fail(err, code, "%s ('%s' is not set)", text, m->missed);
    return tide_fail(err, code, "%s", text);
}

void expr_missed(lua_State *l, int key_at)
{
    struct machine *m = expr_machine(l);

    if (lua_type(l, key_at) == LUA_TSTRING)
        snprintf(m->missed, sizeof m->missed, "%s", lua_tostring(l, key_at));
}

/* ---- interpreters ---- */

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct machine *pool;
static unsigned pool_len;

static void machine_free(struct machine *m)
{
    if (!m)
        return;
    if (m->lua)
        lua_close(m->lua);
    arena_done(&m->arena);
    free(m);
}

/* What translated conditions call: no value hides it. */
static bool is_helpers(struct str name)
{
    return name.ptr && str_eq(name, STR("__py"));
}

/* A name that the code uses and has not set: one of the values, or one of the safe functions. */
static int name_find(lua_State *l)
{
    struct machine *m = expr_machine(l);
    struct str name;
    struct json *v = NULL;
    struct tide_err err;

    name.ptr = lua_tolstring(l, 2, &name.len);
    for (size_t i = 0; name.ptr && !is_helpers(name) && i < m->n_values; i++) {
        if (m->taken[i] || !str_eq(name, str_from(m->values[i].name)))
            continue;
        m->taken[i] = true;
        if (json_parse(&m->arena, m->values[i].json, NULL, &v, NULL, &err))
            return luaL_error(l, "the value of '%s' is not JSON: %s", name.ptr, err.msg);
        expr_json_push(l, v);
        lua_pushvalue(l, 2);
        lua_pushvalue(l, -2);
        lua_rawset(l, 1);
        return 1;
    }
    expr_slot_push(l, EXPR_BASE);
    lua_pushvalue(l, 2);
    if (lua_rawget(l, -2) == LUA_TNIL && is_helpers(name)) {
        lua_pop(l, 1);
        expr_helpers_open(l, lua_gettop(l)); /* only translated conditions want them, and they take a while to make */
        lua_getfield(l, -1, "__py");
    } else if (lua_isnil(l, -1)) {
        expr_missed(l, 2);
    }
    return 1;
}

/* A name that is set before it was ever read: its value is not looked for any more, even if it is set to nil. */
static int name_set(lua_State *l)
{
    struct machine *m = expr_machine(l);
    struct str name;

    name.ptr = lua_tolstring(l, 2, &name.len);
    for (size_t i = 0; name.ptr && i < m->n_values; i++)
        m->taken[i] |= str_eq(name, str_from(m->values[i].name));
    lua_rawset(l, 1);
    return 0;
}

static int machine_setup(lua_State *l)
{
    expr_json_setup(l);
    lua_newtable(l);
    lua_pushcfunction(l, name_find);
    lua_setfield(l, -2, "__index");
    lua_pushcfunction(l, name_set);
    lua_setfield(l, -2, "__newindex");
    expr_slot_set(l, EXPR_ENV_META);
    lua_newtable(l);
    expr_slot_set(l, EXPR_CHUNKS);
    expr_lib_open(l);
    return 0;
}

static struct machine *machine_new(void)
{
    struct machine *m = mem_zero(sizeof *m);

    m->limit = SIZE_MAX;
    m->budget = UINT64_MAX;
    m->lua = lua_newstate(limited_alloc, m);
    if (!m->lua) {
        machine_free(m);
        return NULL;
    }
    *(struct machine **)lua_getextraspace(m->lua) = m;
    lua_pushcfunction(m->lua, machine_setup);
    if (lua_pcall(m->lua, 0, 0, 0) != LUA_OK) {
        machine_free(m);
        return NULL;
    }
    return m;
}

static struct machine *machine_take(void)
{
    struct machine *m;

    pthread_mutex_lock(&pool_lock);
    m = pool;
    if (m) {
        pool = m->next;
        pool_len--;
    }
    pthread_mutex_unlock(&pool_lock);
    return m ? m : machine_new();
}

static void machine_give(struct machine *m)
{
    pthread_mutex_lock(&pool_lock);
    if (pool_len < IDLE_MAX) {
        m->next = pool;
        pool = m;
        pool_len++;
        m = NULL;
    }
    pthread_mutex_unlock(&pool_lock);
    machine_free(m);
}

static void machine_begin(struct machine *m, const struct expr_limits *limits)
{
    uint64_t budget = limits && limits->instructions ? limits->instructions : INSTRUCTIONS_DEFAULT;
    size_t memory = limits && limits->memory_bytes ? limits->memory_bytes : MEMORY_DEFAULT;

    m->budget = budget;
    m->longest = 0;
    m->limit = memory < SIZE_MAX - m->used ? m->used + memory : SIZE_MAX;
    m->max_result = memory;
    m->code = TIDE_OK;
    m->missed[0] = '\0';
    lua_sethook(m->lua, count_hook, LUA_MASKCOUNT, budget < EXPR_STEP ? (int)budget : EXPR_STEP);
}

/* Drops the arguments of the call, and what the code made of them. */
static int forget_globals(lua_State *l)
{
    struct machine *m = expr_machine(l);

    expr_slot_push(l, EXPR_RUNNING);
    lua_pushnil(l);
    if (lua_isfunction(l, 1))
        lua_setupvalue(l, 1, 1);
    for (enum expr_slot slot = EXPR_RUNNING; slot <= EXPR_ENV; slot++) {
        lua_pushnil(l);
        expr_slot_set(l, slot);
    }
    if (m->used > 2 * m->kept + GARBAGE_MAX) {
        lua_gc(l, LUA_GCCOLLECT);
        m->kept = m->used;
    }
    return 0;
}

/* For the next one; not when a limit was reached, since nobody knows what is left of it then. */
static void machine_end(struct machine *m, int status)
{
    if (m->code || (status != LUA_OK && status != LUA_ERRRUN && status != LUA_ERRSYNTAX)) {
        machine_free(m);
        return;
    }
    m->limit = SIZE_MAX;
    m->budget = UINT64_MAX;
    lua_settop(m->lua, 0);
    lua_pushcfunction(m->lua, forget_globals);
    if (lua_pcall(m->lua, 0, 0, 0) != LUA_OK) {
        machine_free(m);
        return;
    }
    m->values = NULL;
    m->n_values = 0;
    arena_reset(&m->arena);
    machine_give(m);
}

/* ---- compiling ---- */

/* The text in three pieces, so that no copy of it is made. */
struct pieces {
    struct str part[3];
    unsigned at;
};

static const char *next_piece(lua_State *l, void *arg, size_t *ret_len)
{
    struct pieces *p = arg;

    (void)l;
    while (p->at < 3 && p->part[p->at].len == 0)
        p->at++;
    *ret_len = p->at < 3 ? p->part[p->at].len : 0;
    return p->at < 3 ? p->part[p->at++].ptr : NULL;
}

static int load_source(lua_State *l, struct str before, struct str source, struct str after)
{
    struct pieces p = {{before, source, after}, 0};

    return lua_load(l, next_piece, &p, "=line", "t");
}

/* Its compiled form on the stack: from the last time, or made anew. */
static void chunk_push(lua_State *l, const struct expr *e)
{
    struct machine *m = expr_machine(l);

    expr_slot_push(l, EXPR_CHUNKS);
    if (lua_rawgeti(l, -1, e->id) == LUA_TNIL) {
        lua_pop(l, 1);
        if (load_source(l, e->body ? STR("") : STR("return "), e->source, STR("")) != LUA_OK)
            lua_error(l);
        m->cached += 1 + e->source.len / CHUNK_BYTES;
        if (m->cached > CHUNKS_MAX) {
            lua_newtable(l);
            lua_pushvalue(l, -1);
            expr_slot_set(l, EXPR_CHUNKS);
            lua_replace(l, -3);
            m->cached = 1;
        }
        lua_pushvalue(l, -1);
        lua_rawseti(l, -3, e->id);
    }
    lua_remove(l, -2);
}

static int compile_run(lua_State *l)
{
    const struct expr *e = lua_touserdata(l, 1);

    chunk_push(l, e);
    if (!e->body && load_source(l, STR("return ("), e->source, STR("\n)")) != LUA_OK) /* `1, 2` and `1;` */
        return luaL_error(l, "expected one expression, found more");
    return 0;
}

static enum tide_code compile_check(const struct expr *e, struct tide_err *err)
{
    struct machine *m = machine_take();
    enum tide_code code;
    int status;

    if (!m)
        return tide_fail(err, TIDE_TOO_BIG, "no memory for an interpreter");
    machine_begin(m, NULL);
    lua_pushcfunction(m->lua, compile_run);
    lua_pushlightuserdata(m->lua, (void *)e);
    status = lua_pcall(m->lua, 1, 0, 0);
    code = status == LUA_OK ? TIDE_OK : fail_with(m, TIDE_INVALID, status, err);
    machine_end(m, status);
    return code;
}

/* ---- what it looks at ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t name_end(struct str source, size_t at)
{
    while (at < source.len && is_name_char(source.ptr[at]))
        at++;
    return at;
}

/*
 * By the text alone, strings and comments among it: that finds more than is used, never less. A value can only be reached by
 * its name, or through _ENV.
 */
static void find_uses(struct expr *e)
{
    struct str s = e->source;

    for (size_t at = 0, end; at<s.len; at = end> at ? end : at + 1) {
        struct str name = {s.ptr + at, 0};

        end = name_end(s, at);
        name.len = end - at;
        if (str_eq(name, STR("_ENV")))
            map_put(&e->uses, name, e);
        if (!str_eq(name, STR("inputs")) && !str_eq(name, STR("memory")))
            continue;
        if (end + 1 < s.len && s.ptr[end] == '.' && is_name_char(s.ptr[end + 1]))
            name.len = name_end(s, end + 1) - at;
        map_put(&e->uses, name, e);
    }
}

bool expr_uses(const struct expr *e, const char *name, struct str member)
{
    char both[256];
    int n = snprintf(both, sizeof both, "%s.%.*s", name, STR_ARG(member));

    if (map_get(&e->uses, STR("_ENV")) || map_get(&e->uses, str_from(name)) || n >= (int)sizeof both)
        return true;
    return map_get(&e->uses, (struct str){both, (size_t)n}) != NULL;
}

/* ---- making one ---- */

static enum tide_code compile_source(struct str source, bool body, struct expr **ret_expr, struct tide_err *err)
{
    static atomic_llong ids;
    AUTO(expr_freep) struct expr *e = NULL;
    enum tide_code code;

    if (source.len > SOURCE_MAX)
        return tide_fail(err, TIDE_INVALID, "the code is longer than %zu bytes", SOURCE_MAX);
    if (!body && str_is_blank(source))
        return tide_fail(err, TIDE_INVALID, "an empty expression has no value: write true or false");
    e = mem_zero(sizeof *e);
    e->source = (struct str){mem_dup(source), source.len};
    e->id = atomic_fetch_add(&ids, 1) + 1;
    e->body = body;
    code = compile_check(e, err);
    if (code)
        return code;
    find_uses(e);
    *ret_expr = TAKE(e);
    return TIDE_OK;
}

enum tide_code expr_compile(struct str source, struct expr **ret_expr, struct tide_err *err)
{
    return compile_source(source, false, ret_expr, err);
}

enum tide_code expr_compile_body(struct str source, struct expr **ret_expr, struct tide_err *err)
{
    return compile_source(source, true, ret_expr, err);
}

void expr_free(struct expr *e)
{
    if (!e)
        return;
    map_done(&e->uses, NULL);
    free((char *)e->source.ptr);
    free(e);
}

/* ---- evaluating ---- */

struct call {
    const struct expr *expr;
    struct buf *out; /* NULL: only whether it is true is wanted */
    bool truth;
};

static void env_new(lua_State *l)
{
    lua_newtable(l);
    expr_slot_set(l, EXPR_ORIGIN);
    lua_newtable(l);
    expr_slot_push(l, EXPR_ENV_META);
    lua_setmetatable(l, -2);
    lua_pushvalue(l, -1);
    expr_slot_set(l, EXPR_ENV);
}

static int call_run(lua_State *l)
{
    struct call *c = lua_touserdata(l, 1);
    struct json_out o;

    chunk_push(l, c->expr);
    lua_pushvalue(l, -1);
    expr_slot_set(l, EXPR_RUNNING);
    env_new(l);
    if (!lua_setupvalue(l, -2, 1)) /* code without any global name has no environment */
        lua_pop(l, 1);
    lua_call(l, 0, 1);
    c->truth = lua_toboolean(l, -1) && !lua_islightuserdata(l, -1);
    if (!c->out)
        return 0;
    o = json_out_to(c->out);
    expr_json_write(l, lua_gettop(l), &o, c->out->len, 0);
    if (c->out->failed)
        return expr_too_big(l, "the result is too big");
    return 0;
}

static enum tide_code run_chunk(struct call *c, const struct expr_value *values, size_t n,
                                const struct expr_limits *limits, struct tide_err *err)
{
    struct machine *m = machine_take();
    enum tide_code code;
    int status;

    if (!m)
        return tide_fail(err, TIDE_TOO_BIG, "no memory for an interpreter");
    machine_begin(m, limits);
    m->values = values;
    m->n_values = n;
    m->taken = arena_zero(&m->arena, n + 1);
    lua_pushcfunction(m->lua, call_run);
    lua_pushlightuserdata(m->lua, c);
    status = lua_pcall(m->lua, 1, 0, 0);
    code = status == LUA_OK ? TIDE_OK : fail_with(m, TIDE_FAILED, status, err);
    machine_end(m, status);
    return code;
}

enum tide_code expr_eval(const struct expr *e, const struct expr_value *values, size_t n,
                         const struct expr_limits *limits, struct buf *ret_json, struct tide_err *err)
{
    struct call c = {.expr = e, .out = ret_json};
    size_t before = ret_json->len;
    bool failed = ret_json->failed;
    enum tide_code code = run_chunk(&c, values, n, limits, err);

    if (code) {
        ret_json->len = before;
        ret_json->failed = failed;
    }
    return code;
}

enum tide_code expr_test(const struct expr *e, const struct expr_value *values, size_t n, bool *ret_true,
                         struct tide_err *err)
{
    struct call c = {.expr = e};
    enum tide_code code = run_chunk(&c, values, n, NULL, err);

    if (code == TIDE_OK)
        *ret_true = c.truth;
    return code;
}
