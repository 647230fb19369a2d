/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions, mappings and glue of graphs: Lua in a sandbox. No files, no processes, no time, no randomness, no loading of
 * code; a bound on instructions and on memory. Values go in and come out as JSON: whole numbers stay whole (64 bits), an
 * empty table is {} unless it came in as [].
 *
 * JSON's null is nil, so that `not output.error` and `output.x == null` say what they mean; what came in as null and was left
 * alone goes out as null. Code that makes a new one writes json.null, and json.array(t) for a list that may be empty.
 * Members keep the order in which they came; new ones follow, sorted. pairs() goes in that order too.
 */
#ifndef GRAPH_EXPR_H
#define GRAPH_EXPR_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct expr_limits {
    uint64_t instructions; /* 0: 10 million */
    size_t memory_bytes;   /* 0: 16 MiB */
};

/* A name that the code sees, and its value. */
struct expr_value {
    const char *name;
    struct str json;
};

struct expr;

/* One expression: `output.confidence > 0.8 and not memory.done`. TIDE_INVALID: one line with the place and what is wrong. */
enum tide_code expr_compile(struct str source, struct expr **ret_expr, struct tide_err *err) MUST_CHECK;

/* A body of statements that returns a value: the code of a `lua` node. */
enum tide_code expr_compile_body(struct str source, struct expr **ret_expr, struct tide_err *err) MUST_CHECK;

/*
 * Whether the code may look at this member of `inputs` or `memory`. True as well where that is not known: `local m = memory`,
 * `pairs(inputs)`. So the caller that makes these values leaves out what nobody sees, however large.
 */
bool expr_uses(const struct expr *e, const char *name, struct str member);

void expr_free(struct expr *e);
static inline void expr_freep(struct expr **e)
{
    expr_free(*e);
}

/*
 * Its value as JSON. A name that is not given is nil; a member of nil is an error that names it. TIDE_FAILED: what went
 * wrong, in one line; TIDE_TOO_BIG: a limit was reached. Each call starts afresh: nothing is kept between calls. A value that the code
 * does not use is not even parsed. Threads may share an expression. The JSON is added to *ret_json.
 */
enum tide_code expr_eval(const struct expr *e, const struct expr_value *values, size_t n,
                         const struct expr_limits *limits, struct buf *ret_json, struct tide_err *err) MUST_CHECK;

/* The same for a condition: nil, false, null, as Lua has them: only nil, null and false are false. */
enum tide_code expr_test(const struct expr *e, const struct expr_value *values, size_t n, bool *ret_true,
                         struct tide_err *err) MUST_CHECK;

/*
 * A condition as people of another system wrote it, in a subset of Python: translated where Lua says
 * it otherwise (`!=`, `None`, `True`, `in`, `not in`, `is`, chained comparisons, `a if c else b`, lists, dicts, len(), the
 * methods), left as it is where both agree; TIDE_INVALID names what has no counterpart. `keys_are_names`: as there, where
 * `buffer` is the memory and every key of it a name.
 */
enum tide_code expr_from_python(struct str source, bool keys_are_names, struct buf *ret_lua, struct tide_err *err)
    MUST_CHECK;

#endif
