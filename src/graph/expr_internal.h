/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the sandbox share: one interpreter, its limits, and how tables remember where they came from. */
#ifndef GRAPH_EXPR_INTERNAL_H
#define GRAPH_EXPR_INTERNAL_H

#include <lua.h>
#include <lauxlib.h>

#include "base/mem.h"
#include "graph/expr.h"

#define EXPR_STEP 100 /* instructions between two looks at the budget */

/* One interpreter. Used for one evaluation at a time, thrown away when one reached a limit. */
struct machine {
    lua_State *lua;
    struct machine *next; /* in the pool */
    size_t used, limit;   /* bytes of the interpreter */
    uint64_t budget;      /* instructions left */
    size_t longest;       /* bytes of the longest text made in this call */
    size_t max_result;    /* bytes */
    enum tide_code code;  /* what the error that is on its way means, when Lua does not say */
    struct arena arena;   /* the parsed values: tables point into it */
    const struct expr_value *values;
    size_t n_values;
    bool *taken;     /* which values have become Lua values */
    char missed[64]; /* the last name that was looked for and not found */
    size_t cached;   /* compiled chunks it holds, big ones counted as several */
    size_t kept;     /* bytes in use when everything else was last collected */
};

static inline struct machine *expr_machine(lua_State *l)
{
    return *(struct machine **)lua_getextraspace(l);
}

/* Work done in C counts as instructions, since the hook cannot see it. Raises when the budget is used up. */
void expr_charge(lua_State *l, uint64_t work);

/* Raises an error without a place that becomes TIDE_TOO_BIG. */
int expr_too_big(lua_State *l, const char *what);

/* ---- JSON ---- */

enum expr_slot {
    EXPR_RUNNING, /* these three are of one call */
    EXPR_ORIGIN,
    EXPR_ENV,
    EXPR_ENV_META,
    EXPR_OBJECT_META,
    EXPR_LIST_META,
    EXPR_BASE,
    EXPR_CHUNKS,
    EXPR_SLOTS,
};
void expr_slot_push(lua_State *l, enum expr_slot slot); /* pushes what the registry holds there */
void expr_slot_set(lua_State *l, enum expr_slot slot);  /* pops it */

void expr_json_setup(lua_State *l);
void expr_json_push(lua_State *l, const struct json *v);
void expr_json_write(lua_State *l, int at, struct json_out *out, size_t start, unsigned depth);

enum expr_kind { EXPR_DICT, EXPR_LIST };
enum expr_kind expr_kind_of(lua_State *l, int at);
lua_Integer expr_list_len(lua_State *l, int at);            /* of a list, nulls counted */
void expr_keys_push(lua_State *l, int at, bool with_nulls); /* a list of its keys in the order in which they show */
void expr_missed(lua_State *l, int key_at);                 /* remembers the name for an error that may follow */

/* ---- what the code may call ---- */

void expr_lib_open(lua_State *l);                            /* leaves the table of safe names in EXPR_BASE */
void expr_publish(lua_State *l, int base, const char *name); /* pops a table: base[name] shows it, read-only */
void expr_helpers_open(lua_State *l, int base);              /* adds __py, which translated conditions call */

#endif
