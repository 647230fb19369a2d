/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions in Python: words of the text, and the tree that is made of them. Private to expr_python*.c. */
#ifndef GRAPH_EXPR_PYTHON_H
#define GRAPH_EXPR_PYTHON_H

#include "base/err.h"
#include "base/mem.h"
#include "base/buf.h"

enum py_word { PY_END, PY_NAME, PY_NUMBER, PY_STRING, PY_SIGN, PY_BAD };

struct py_token {
    enum py_word word;
    struct str text; /* of a string: what it says; of a number: as Lua writes it */
    size_t at;       /* in the source */
};

/* Where the reading is. The first error is kept, and every word after it is PY_BAD. */
struct py_reader {
    struct arena *arena;
    struct str source;
    size_t at;
    unsigned brackets; /* open ones: within them a line end is a blank */
    struct py_token now;
    struct tide_err *err;
    bool failed;
};

void py_next(struct py_reader *r); /* r->now becomes the next word */
void py_fail(struct py_reader *r, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

enum py_kind {
    PY_NUMBER_NODE,
    PY_STRING_NODE,
    PY_NAME_NODE,
    PY_TRUE,
    PY_FALSE,
    PY_NONE,
    PY_LIST,    /* items */
    PY_DICT,    /* items: key, value, key, value … */
    PY_MEMBER,  /* items[0].text */
    PY_INDEX,   /* items[0][items[1]] */
    PY_CALL,    /* call(items…); of a method the first item is what it is called on */
    PY_UNARY,   /* call(items[0]) */
    PY_BINARY,  /* call(items[0], items[1]) */
    PY_COMPARE, /* items, each but the first with the sign before it in text */
    PY_AND,
    PY_OR,
    PY_NOT,
    PY_IF, /* condition, then, else */
};

/* A function, method or operator: what it is here, and how many operands it takes. */
struct py_call {
    const char *name, *helper;
    unsigned min, max;
    bool packed, boolean; /* the operands go as a count and a table; the answer is true or false */
};

struct py_node {
    enum py_kind kind;
    struct str text;
    const struct py_call *call;
    struct py_node *first, *last, *next;
    unsigned count, depth;
    struct str sign; /* in a comparison: what stands before this operand */
    size_t at;
};

/* The tree of the whole text, in the arena; NULL when *r->err says why not. */
struct py_node *py_parse(struct py_reader *r);

#endif
