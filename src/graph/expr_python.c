/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions in Python, said in Lua. Where both languages mean the same the words stay (`output.confidence > 0.8`); where they do
 * not, a helper is called (expr_helpers.c). A place that asks for true or false gets Python's truth (an empty list is
 * false), and so does the condition as a whole.
 *
 * Differences that are meant: output.x works, and is None when there is no x; a tuple is a list; true or false against a
 * number constant by < or > is an error; whole numbers have 64 bits; upper() and lower() know ASCII.
 */
#include <stdio.h>

#include "graph/expr.h"
#include "graph/expr_python.h"

#define LUA_MAX ((size_t)1 << 20)

static void value(struct buf *out, const struct py_node *n);
static void truth(struct buf *out, const struct py_node *n);

/* ---- names and constants ---- */

/* What Lua, or the sandbox, means something by. */
static bool is_taken(struct str name)
{
    static const char *const taken[] = {
        "break",    "do",     "else",   "elseif", "end",   "for",    "function", "goto", "if",   "local",
        "nil",      "repeat", "then",   "until",  "while", "and",    "or",       "not",  "in",   "return",
        "false",    "true",   "_ENV",   "assert", "error", "ipairs", "select",   "type", "next", "tonumber",
        "tostring", "pairs",  "string", "table",  "math",  "utf8",   "json",
    };

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (str_eq(name, str_from(taken[i])))
            return true;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] >= 0x80)
            return true;
    return false;
}

static void quoted(struct buf *out, struct str s)
{
    buf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            buf_addf(out, "\\%03d", c);
        else
            buf_add_char(out, (char)c);
    }
    buf_add_char(out, '"');
}

static void name(struct buf *out, const struct py_node *n)
{
    if (!is_taken(n->text)) {
        buf_add_str(out, n->text);
        return;
    }
    buf_add_str(out, STR("__py.name("));
    quoted(out, n->text);
    buf_add_char(out, ')');
}

/* A number, with its sign if it has one. */
static const struct py_node *number_of(const struct py_node *n)
{
    if (n->kind == PY_UNARY && n->first->kind == PY_NUMBER_NODE)
        n = n->first;
    return n->kind == PY_NUMBER_NODE ? n : NULL;
}

/* True for what is no number, or one that true and false are not equal to. */
static bool is_no_truth(const struct py_node *number)
{
    double x = strtod(number->text.ptr, NULL);

    return x != 0 && x != 1;
}

/* ---- what kind of value comes out ---- */

static bool is_boolean(const struct py_node *n)
{
    switch (n->kind) {
    case PY_TRUE:
    case PY_FALSE:
    case PY_NOT:
    case PY_COMPARE:
        return true;
    case PY_CALL:
        return n->call->boolean;
    case PY_AND:
    case PY_OR:
        for (const struct py_node *i = n->first; i; i = i->next)
            if (!is_boolean(i))
                return false;
        return true;
    default:
        return false;
    }
}

/* ---- calls and containers ---- */

static void items(struct buf *out, const struct py_node *n)
{
    for (const struct py_node *i = n->first; i; i = i->next) {
        value(out, i);
        if (i->next)
            buf_add_str(out, STR(", "));
    }
}

static void packed(struct buf *out, const char *helper, const struct py_node *n)
{
    buf_addf(out, "__py.%s(%u, {", helper, n->count);
    items(out, n);
    buf_add_str(out, STR("})"));
}

static void put_call(struct buf *out, const struct py_node *n)
{
    if (n->call->packed) {
        packed(out, n->call->helper, n);
        return;
    }
    buf_addf(out, "__py.%s(", n->call->helper);
    items(out, n);
    buf_add_char(out, ')');
}

static void member(struct buf *out, const struct py_node *n)
{
    bool plain = n->first->kind == PY_NAME_NODE || n->first->kind == PY_MEMBER || n->first->kind == PY_INDEX ||
                 (n->first->kind == PY_CALL && !n->first->call->boolean);

    buf_add_str(out, plain ? STR("") : STR("("));
    value(out, n->first);
    buf_add_str(out, plain ? STR("") : STR(")"));
    if (is_taken(n->text)) {
        buf_add_char(out, '[');
        quoted(out, n->text);
        buf_add_char(out, ']');
    } else {
        buf_add_char(out, '.');
        buf_add_str(out, n->text);
    }
}

/* ---- comparisons ---- */

/* One side of a comparison: the node, or the local that holds its value already. */
struct side {
    const struct py_node *node;
    unsigned local; /* 0: none */
};

static void side(struct buf *out, struct side s)
{
    bool composite =
        s.node->kind == PY_COMPARE || s.node->kind == PY_AND || s.node->kind == PY_OR || s.node->kind == PY_NOT;

    if (s.local > 0 && (s.node->kind > PY_NONE || s.node->kind == PY_NAME_NODE)) { /* constants stand as they are */
        buf_addf(out, "__%u", s.local);
        return;
    }
    buf_add_str(out, composite ? STR("(") : STR(""));
    value(out, s.node);
    buf_add_str(out, composite ? STR(")") : STR(""));
}

/* Whether Lua's own sign gives Python's answer, or an error: because of what one side is. */
static bool settles_equality(const struct py_node *n)
{
    const struct py_node *number = number_of(n);

    return n->kind == PY_STRING_NODE || n->kind == PY_NONE || (number && is_no_truth(number));
}

static bool settles_order(const struct py_node *n)
{
    return n->kind == PY_STRING_NODE || number_of(n);
}

static const struct compared {
    const char *sign, *lua, *helper;
    bool (*settles)(const struct py_node *);
    bool negated;
} comparisons[] = {
    {"==", "==", "eq", settles_equality, false},
    {"!=", "~=", "ne", settles_equality, false},
    {"<", "<", "lt", settles_order, false},
    {"<=", "<=", "le", settles_order, false},
    {">", ">", "gt", settles_order, false},
    {">=", ">=", "ge", settles_order, false},
    {"is", "==", NULL, NULL, false},
    {"is not", "~=", NULL, NULL, false},
    {"in", NULL, "[\"in\"]", NULL, false},
    {"not in", NULL, "[\"in\"]", NULL, true},
};

static void pair(struct buf *out, struct side left, struct side right)
{
    const struct compared *c = comparisons;

    while (!str_eq(right.node->sign, str_from(c->sign))) /* the parser knows no others */
        c++;
    if (!c->helper || (c->settles && (c->settles(left.node) || c->settles(right.node)))) {
        side(out, left);
        buf_addf(out, " %s ", c->lua);
        side(out, right);
        return;
    }
    buf_addf(out, "%s__py%s%s(", c->negated ? "not " : "", c->helper[0] == '[' ? "" : ".", c->helper);
    side(out, left);
    buf_add_str(out, STR(", "));
    side(out, right);
    buf_add_char(out, ')');
}

/* a < b < c: each value is worked out once, and only when those before it held. */
static void chain(struct buf *out, const struct py_node *n)
{
    unsigned at = 1;

    buf_add_str(out, STR("(function() local __1 = "));
    value(out, n->first);
    for (const struct py_node *left = n->first, *right = left->next; right; left = right, right = right->next, at++) {
        buf_addf(out, " local __%u = ", at + 1);
        value(out, right);
        buf_add_str(out, right->next ? STR(" if not (") : STR(" return "));
        pair(out, (struct side){left, at}, (struct side){right, at + 1});
        buf_add_str(out, right->next ? STR(") then return false end") : STR(""));
    }
    buf_add_str(out, STR(" end)()"));
}

/* ---- and, or, not, if ---- */

static void junction(struct buf *out, const struct py_node *n)
{
    for (const struct py_node *i = n->first; i; i = i->next) {
        bool brackets = i->kind == PY_AND || i->kind == PY_OR;

        buf_add_str(out, brackets ? STR("(") : STR(""));
        truth(out, i);
        buf_add_str(out, brackets ? STR(")") : STR(""));
        if (i->next)
            buf_add_str(out, n->kind == PY_AND ? STR(" and ") : STR(" or "));
    }
}

/* Python gives the operand that decided. */
static void junction_value(struct buf *out, const struct py_node *n)
{
    if (is_boolean(n)) {
        buf_add_char(out, '(');
        junction(out, n);
        buf_add_char(out, ')');
        return;
    }
    buf_add_str(out, STR("(function() local __1 = "));
    for (const struct py_node *i = n->first; i; i = i->next) {
        value(out, i);
        if (i->next)
            buf_addf(out, " if %s__py.truth(__1) then return __1 end __1 = ", n->kind == PY_AND ? "not " : "");
    }
    buf_add_str(out, STR(" return __1 end)()"));
}

static void negation(struct buf *out, const struct py_node *n)
{
    bool brackets = n->first->kind == PY_COMPARE || n->first->kind == PY_AND || n->first->kind == PY_OR;

    buf_add_str(out, brackets ? STR("not (") : STR("not "));
    truth(out, n->first);
    buf_add_str(out, brackets ? STR(")") : STR(""));
}

static void choice(struct buf *out, const struct py_node *n, void (*part)(struct buf *, const struct py_node *))
{
    buf_add_str(out, STR("(function() if "));
    truth(out, n->first);
    buf_add_str(out, STR(" then return "));
    part(out, n->first->next);
    buf_add_str(out, STR(" end return "));
    part(out, n->last);
    buf_add_str(out, STR(" end)()"));
}

/* ---- any node ---- */

static void constant(struct buf *out, const struct py_node *n)
{
    if (n->kind == PY_NUMBER_NODE)
        buf_add_str(out, n->text);
    else if (n->kind == PY_STRING_NODE)
        quoted(out, n->text);
    else
        buf_add_str(out, n->kind == PY_NONE ? STR("nil") : n->kind == PY_TRUE ? STR("true") : STR("false"));
}

static void value(struct buf *out, const struct py_node *n)
{
    switch (n->kind) {
    case PY_NUMBER_NODE:
    case PY_STRING_NODE:
    case PY_TRUE:
    case PY_FALSE:
    case PY_NONE:
        return constant(out, n);
    case PY_NAME_NODE:
        return name(out, n);
    case PY_LIST:
        return packed(out, "list", n);
    case PY_DICT:
        return packed(out, "dict", n);
    case PY_MEMBER:
        return member(out, n);
    case PY_INDEX:
        buf_add_str(out, STR("__py.at("));
        items(out, n);
        return buf_add_char(out, ')');
    case PY_CALL:
    case PY_BINARY:
        return put_call(out, n);
    case PY_UNARY:
        if (n->first->kind != PY_NUMBER_NODE)
            return put_call(out, n);
        return buf_addf(out, "%s%.*s", n->call->name[0] == '-' ? "-" : "", STR_ARG(n->first->text));
    case PY_COMPARE:
        if (n->count > 2)
            return chain(out, n);
        return pair(out, (struct side){n->first, 0}, (struct side){n->first->next, 0});
    case PY_AND:
    case PY_OR:
        return junction_value(out, n);
    case PY_NOT:
        return negation(out, n);
    case PY_IF:
        return choice(out, n, value);
    }
}

static void truth(struct buf *out, const struct py_node *n)
{
    if (n->kind == PY_AND || n->kind == PY_OR)
        return junction(out, n);
    if (n->kind == PY_IF)
        return choice(out, n, truth);
    if (is_boolean(n))
        return value(out, n);
    buf_add_str(out, STR("__py.truth("));
    value(out, n);
    buf_add_char(out, ')');
}

/* There every key of the memory is a name, and all of them together are `buffer`. */
static void name_memory(struct arena *a, struct py_node *n)
{
    static const char *const known[] = {"output", "result", "memory"};

    for (struct py_node *item = n->first; item; item = item->next)
        name_memory(a, item);
    if (n->kind != PY_NAME_NODE)
        return;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_eq(n->text, str_from(known[i])))
            return;
    if (str_eq(n->text, STR("buffer"))) {
        n->text = STR("memory");
        return;
    }
    n->first = n->last = arena_zero(a, sizeof *n);
    *n->first = (struct py_node){.kind = PY_NAME_NODE, .text = STR("memory"), .depth = 1, .at = n->at};
    n->kind = PY_MEMBER;
    n->count = 1;
}

enum tide_code expr_from_python(struct str source, bool keys_are_names, struct buf *ret_lua, struct tide_err *err)
{
    struct arena arena = ARENA_INIT;
    struct buf lua = BUF_INIT(LUA_MAX);
    enum tide_code code = TIDE_OK;
    struct py_reader r = {.arena = &arena, .source = source};
    struct py_node *n;

    ERR_LOCAL(err);
    r.err = err;
    n = source.len <= LUA_MAX ? py_parse(&r) : NULL;
    if (n && keys_are_names)
        name_memory(&arena, n);
    if (n)
        truth(&lua, n);
    if (!n)
        code =
            r.failed ? TIDE_INVALID : tide_fail(err, TIDE_INVALID, "the condition is longer than %zu bytes", LUA_MAX);
    else if (lua.failed)
        code = tide_fail(err, TIDE_INVALID, "the condition is too long when it is written in Lua");
    else
        buf_add_str(ret_lua, buf_view(&lua));
    if (n && !code && ret_lua->failed)
        code = tide_fail(err, TIDE_TOO_BIG, "the condition does not fit where it should go");
    buf_done(&lua);
    arena_done(&arena);
    return code;
}
