/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a condition in Python, by Python's own precedence, low to high: if-else, or, and, not, comparisons, + -,
 * * / // %, signs, **, members and calls. What conditions cannot have is refused where it stands, by its name.
 */
#include <stdio.h>

#include "graph/expr_python.h"

#define DEPTH_MAX 50 /* what Lua's compiler takes of the result */

static struct py_node *parse_any(struct py_reader *r, unsigned depth);

/* ---- what is known by name ---- */

static const struct py_call functions[] = {
    {"len", "len", 1, 1, false, false},     {"int", "int", 1, 1, false, false},  {"float", "float", 1, 1, false, false},
    {"str", "str", 1, 1, false, false},     {"bool", "bool", 1, 1, false, true}, {"min", "min", 1, 200, true, false},
    {"max", "max", 1, 200, true, false},    {"sum", "sum", 1, 2, false, false},  {"abs", "abs", 1, 1, false, false},
    {"round", "round", 1, 2, false, false}, {"all", "all", 1, 1, false, true},   {"any", "any", 1, 1, false, true},
};

static const struct py_call methods[] = {
    {"get", "get", 1, 2, false, false},       {"keys", "keys", 0, 0, false, false},
    {"values", "values", 0, 0, false, false}, {"items", "items", 0, 0, false, false},
    {"lower", "lower", 0, 0, false, false},   {"upper", "upper", 0, 0, false, false},
    {"strip", "strip", 0, 1, false, false},   {"split", "split", 0, 2, false, false},
};

static const struct py_call negate = {"-", "neg", 1, 1, false, false}, keep = {"+", "pos", 1, 1, false, false},
                            power = {"**", "pow", 2, 2, false, false};

/* Operators between two values; without a helper there is no counterpart. */
static const struct binary {
    struct py_call call;
    unsigned level;
} binaries[] = {
    {{"+", "add", 2, 2, false, false}, 1},       {{"-", "sub", 2, 2, false, false}, 1},
    {{"*", "mul", 2, 2, false, false}, 2},       {{"/", "div", 2, 2, false, false}, 2},
    {{"//", "floordiv", 2, 2, false, false}, 2}, {{"%", "mod", 2, 2, false, false}, 2},
    {{"@", NULL, 2, 2, false, false}, 2},        {{"&", NULL, 2, 2, false, false}, 1},
    {{"|", NULL, 2, 2, false, false}, 1},        {{"^", NULL, 2, 2, false, false}, 1},
    {{"<<", NULL, 2, 2, false, false}, 1},       {{">>", NULL, 2, 2, false, false}, 1},
};

static const char *const keywords[] = {
    "lambda", "for",      "await", "async",  "yield",   "import", "from",     "def",  "class", "return", "with",
    "while",  "try",      "if",    "else",   "elif",    "and",    "or",       "in",   "is",    "not",    "assert",
    "break",  "continue", "del",   "except", "finally", "global", "nonlocal", "pass", "raise", "as",
};

static const struct py_call *find_call(const struct py_call *table, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(name, str_from(table[i].name)))
            return &table[i];
    return NULL;
}
#define FIND_CALL(table, name) find_call(table, sizeof(table) / sizeof((table)[0]), name)

static bool is_keyword(struct str name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (str_eq(name, str_from(keywords[i])))
            return true;
    return false;
}

/* ---- words and nodes ---- */

static bool is_token(const struct py_reader *r, const char *text)
{
    return (r->now.word == PY_SIGN || r->now.word == PY_NAME) && str_eq(r->now.text, str_from(text));
}

static bool take_token(struct py_reader *r, const char *text)
{
    if (!is_token(r, text))
        return false;
    py_next(r);
    return true;
}

static void unexpected(struct py_reader *r, const char *wanted)
{
    struct str got = r->now.word == PY_STRING ? STR("a text") : r->now.text;
    const char *quote = r->now.word == PY_STRING || r->now.word == PY_END ? "" : "'";

    if (is_token(r, "="))
        py_fail(r, r->now.at, "'=' sets nothing in a condition: to compare, write ==");
    else if (is_token(r, ":="))
        py_fail(r, r->now.at, "':=' has no counterpart");
    else if (is_token(r, "for") || is_token(r, "async"))
        py_fail(r, r->now.at, "comprehensions (… for … in …) have no counterpart");
    else
        py_fail(r, r->now.at, "%s expected, not %s%.*s%s", wanted, quote, (int)(got.len < 60 ? got.len : 60), got.ptr,
                quote);
}

static void need_token(struct py_reader *r, const char *text)
{
    char wanted[16];

    if (take_token(r, text))
        return;
    snprintf(wanted, sizeof wanted, "'%s'", text);
    unexpected(r, wanted);
}

static struct py_node *node_new(struct py_reader *r, enum py_kind kind, size_t at)
{
    struct py_node *n = arena_zero(r->arena, sizeof *n);

    n->kind = kind;
    n->at = at;
    n->depth = 1;
    return n;
}

/* NULL goes through: after an error nothing is built. */
static struct py_node *node_add(struct py_reader *r, struct py_node *n, struct py_node *item)
{
    if (!n || !item || r->failed)
        return NULL;
    if (n->last)
        n->last->next = item;
    else
        n->first = item;
    n->last = item;
    n->count++;
    if (item->depth >= n->depth)
        n->depth = item->depth + 1;
    if (n->depth > DEPTH_MAX)
        py_fail(r, n->at, "nested too deeply");
    return n->depth > DEPTH_MAX ? NULL : n;
}

static struct py_node *node_of(struct py_reader *r, enum py_kind kind, const struct py_call *call,
                               struct py_node *first)
{
    struct py_node *n = first ? node_new(r, kind, first->at) : NULL;

    if (n)
        n->call = call;
    return node_add(r, n, first);
}

/* ---- atoms ---- */

static void refuse_star(struct py_reader *r)
{
    if (is_token(r, "*") || is_token(r, "**"))
        py_fail(r, r->now.at, "'%.*s' before a value has no counterpart", STR_ARG(r->now.text));
}

/* Items up to the closing bracket, which is taken. */
static struct py_node *parse_items(struct py_reader *r, struct py_node *n, const char *close, unsigned depth)
{
    while (!r->failed && n && !is_token(r, close)) {
        refuse_star(r);
        n = node_add(r, n, parse_any(r, depth));
        if (n && n->call && is_token(r, "="))
            py_fail(r, r->now.at, "arguments by name have no counterpart");
        if (!is_token(r, close) && !take_token(r, ",")) {
            unexpected(r, "',' or a closing bracket");
            return NULL;
        }
    }
    need_token(r, close);
    return r->failed ? NULL : n;
}

static struct py_node *parse_dict(struct py_reader *r, size_t at, unsigned depth)
{
    struct py_node *n = node_new(r, PY_DICT, at);

    while (!r->failed && n && !is_token(r, "}")) {
        refuse_star(r);
        n = node_add(r, n, parse_any(r, depth));
        if (!r->failed && (is_token(r, ",") || is_token(r, "}")))
            py_fail(r, at, "sets ({a, b}) have no counterpart: write [a, b]");
        need_token(r, ":");
        n = node_add(r, n, parse_any(r, depth));
        if (!is_token(r, "}") && !take_token(r, ",")) {
            unexpected(r, "',' or '}'");
            return NULL;
        }
    }
    need_token(r, "}");
    return r->failed ? NULL : n;
}

/* (a) is a; (a, b) and () are lists here. */
static struct py_node *parse_brackets(struct py_reader *r, size_t at, unsigned depth)
{
    struct py_node *n = node_new(r, PY_LIST, at), *item;

    if (take_token(r, ")"))
        return n;
    refuse_star(r);
    item = parse_any(r, depth);
    if (take_token(r, ")"))
        return item;
    n = node_add(r, n, item);
    if (!n || !take_token(r, ",")) {
        unexpected(r, "')'");
        return NULL;
    }
    return parse_items(r, n, ")", depth);
}

static struct py_node *parse_function(struct py_reader *r, struct py_token name, unsigned depth)
{
    struct py_node *n = node_new(r, PY_CALL, name.at);

    n->call = FIND_CALL(functions, name.text);
    if (!n->call) {
        py_fail(r, name.at, "the function '%.*s' has no counterpart", STR_ARG(name.text));
        return NULL;
    }
    n = parse_items(r, n, ")", depth);
    if (n && (n->count < n->call->min || n->count > n->call->max)) {
        py_fail(r, name.at, "%s() takes %u to %u values, not %u", n->call->name, n->call->min, n->call->max, n->count);
        return NULL;
    }
    return n;
}

static struct py_node *parse_name(struct py_reader *r, unsigned depth)
{
    static const struct {
        const char *name;
        enum py_kind kind;
    } constants[] = {{"True", PY_TRUE}, {"true", PY_TRUE}, {"False", PY_FALSE}, {"false", PY_FALSE}, {"None", PY_NONE}};
    struct py_token name = r->now;
    struct py_node *n;

    if (is_keyword(name.text)) {
        py_fail(r, name.at, "'%.*s' has no place here", STR_ARG(name.text));
        return NULL;
    }
    py_next(r);
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (str_eq(name.text, str_from(constants[i].name)))
            return node_new(r, constants[i].kind, name.at);
    if (take_token(r, "("))
        return parse_function(r, name, depth);
    n = node_new(r, PY_NAME_NODE, name.at);
    n->text = name.text;
    return n;
}

static struct py_node *parse_atom(struct py_reader *r, unsigned depth)
{
    struct py_token t = r->now;
    struct py_node *n;

    if (t.word == PY_NAME)
        return parse_name(r, depth);
    if (t.word == PY_NUMBER || t.word == PY_STRING) {
        n = node_new(r, t.word == PY_NUMBER ? PY_NUMBER_NODE : PY_STRING_NODE, t.at);
        n->text = t.text;
        py_next(r);
        return n;
    }
    if (take_token(r, "("))
        return parse_brackets(r, t.at, depth);
    if (take_token(r, "["))
        return parse_items(r, node_new(r, PY_LIST, t.at), "]", depth);
    if (take_token(r, "{"))
        return parse_dict(r, t.at, depth);
    unexpected(r, "a value");
    return NULL;
}

/* ---- members and calls ---- */

static struct py_node *parse_method(struct py_reader *r, struct py_node *on, struct py_token name, unsigned depth)
{
    struct py_node *n = node_of(r, PY_CALL, FIND_CALL(methods, name.text), on);

    if (n && !n->call) {
        py_fail(r, name.at, "the method '%.*s' has no counterpart", STR_ARG(name.text));
        return NULL;
    }
    n = parse_items(r, n, ")", depth);
    if (n && (n->count - 1 < n->call->min || n->count - 1 > n->call->max)) {
        py_fail(r, name.at, "%s() takes %u to %u values, not %u", n->call->name, n->call->min, n->call->max,
                n->count - 1);
        return NULL;
    }
    return n;
}

static struct py_node *parse_member(struct py_reader *r, struct py_node *of, unsigned depth)
{
    struct py_token name = r->now;
    struct py_node *n;

    if (name.word != PY_NAME) {
        unexpected(r, "a name behind '.'");
        return NULL;
    }
    py_next(r);
    if (take_token(r, "("))
        return parse_method(r, of, name, depth);
    n = node_of(r, PY_MEMBER, NULL, of);
    if (n)
        n->text = name.text;
    return n;
}

static struct py_node *parse_index(struct py_reader *r, struct py_node *of, unsigned depth)
{
    struct py_node *n = node_of(r, PY_INDEX, NULL, of);

    if (!is_token(r, ":"))
        n = node_add(r, n, parse_any(r, depth));
    if (is_token(r, ":") || is_token(r, ",")) {
        py_fail(r, r->now.at,
                is_token(r, ":") ? "slices (a[1:2]) have no counterpart"
                                 : "an index of several values has no counterpart");
        return NULL;
    }
    need_token(r, "]");
    return r->failed ? NULL : n;
}

static struct py_node *parse_postfix(struct py_reader *r, unsigned depth)
{
    struct py_node *n = parse_atom(r, depth);

    while (n && !r->failed) {
        if (take_token(r, "."))
            n = parse_member(r, n, depth);
        else if (take_token(r, "["))
            n = parse_index(r, n, depth);
        else if (is_token(r, "("))
            py_fail(r, r->now.at, "only functions and methods can be called, by their names");
        else
            return n;
    }
    return NULL;
}

/* ---- operators ---- */

static struct py_node *parse_unary(struct py_reader *r, unsigned depth)
{
    const struct py_call *call = is_token(r, "-") ? &negate : is_token(r, "+") ? &keep : NULL;
    struct py_node *n;

    if (depth > DEPTH_MAX || is_token(r, "~")) {
        py_fail(r, r->now.at, depth > DEPTH_MAX ? "nested too deeply" : "'~' has no counterpart");
        return NULL;
    }
    if (call) {
        py_next(r);
        return node_of(r, PY_UNARY, call, parse_unary(r, depth + 1));
    }
    n = parse_postfix(r, depth);
    if (n && take_token(r, "**"))
        n = node_add(r, node_of(r, PY_BINARY, &power, n), parse_unary(r, depth + 1));
    return n;
}

static const struct binary *binary_now(struct py_reader *r, unsigned level)
{
    for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++) {
        if (!is_token(r, binaries[i].call.name) || binaries[i].level < level)
            continue;
        if (!binaries[i].call.helper)
            py_fail(r, r->now.at, "'%s' has no counterpart", binaries[i].call.name);
        return r->failed ? NULL : &binaries[i];
    }
    return NULL;
}

static struct py_node *parse_binary(struct py_reader *r, unsigned level, unsigned depth)
{
    struct py_node *n = parse_unary(r, depth);

    for (const struct binary *b; n && (b = binary_now(r, level));) {
        py_next(r);
        n = node_add(r, node_of(r, PY_BINARY, &b->call, n), parse_binary(r, b->level + 1, depth + 1));
    }
    return r->failed ? NULL : n;
}

/* The comparison that stands here, taken; empty when there is none. */
static struct str take_comparison(struct py_reader *r)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">=", "in"};

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (take_token(r, signs[i]))
            return str_from(signs[i]);
    if (take_token(r, "is"))
        return take_token(r, "not") ? STR("is not") : STR("is");
    if (!take_token(r, "not"))
        return STR("");
    need_token(r, "in");
    return STR("not in");
}

static bool is_singleton(const struct py_node *n)
{
    return n->kind == PY_NONE || n->kind == PY_TRUE || n->kind == PY_FALSE;
}

static struct py_node *parse_comparison(struct py_reader *r, unsigned depth)
{
    struct py_node *left = parse_binary(r, 1, depth), *n = NULL, *right;

    while (left && !r->failed) {
        size_t at = r->now.at;
        struct str sign = take_comparison(r);

        if (sign.len == 0)
            break;
        n = n ? n : node_of(r, PY_COMPARE, NULL, left);
        right = parse_binary(r, 1, depth);
        if (right && str_starts(sign, STR("is")) && !is_singleton(right) && !is_singleton(n ? n->last : right))
            py_fail(r, at, "'%.*s' has a counterpart only with None, True and False: write == or !=", STR_ARG(sign));
        if (right)
            right->sign = sign;
        n = node_add(r, n, right);
        left = n;
    }
    return r->failed ? NULL : left;
}

static struct py_node *parse_not(struct py_reader *r, unsigned depth)
{
    if (depth > DEPTH_MAX) {
        py_fail(r, r->now.at, "nested too deeply");
        return NULL;
    }
    if (take_token(r, "not"))
        return node_of(r, PY_NOT, NULL, parse_not(r, depth + 1));
    return parse_comparison(r, depth);
}

/* One level of `and` or `or`: all operands of it in one node. */
static struct py_node *parse_and(struct py_reader *r, unsigned depth)
{
    struct py_node *n = parse_not(r, depth);

    if (!is_token(r, "and"))
        return n;
    n = node_of(r, PY_AND, NULL, n);
    while (n && take_token(r, "and"))
        n = node_add(r, n, parse_not(r, depth));
    return n;
}

static struct py_node *parse_or(struct py_reader *r, unsigned depth)
{
    struct py_node *n = parse_and(r, depth);

    if (!is_token(r, "or"))
        return n;
    n = node_of(r, PY_OR, NULL, n);
    while (n && take_token(r, "or"))
        n = node_add(r, n, parse_and(r, depth));
    return n;
}

static struct py_node *parse_any(struct py_reader *r, unsigned depth)
{
    struct py_node *then, *n;

    if (depth >= DEPTH_MAX) {
        py_fail(r, r->now.at, "nested too deeply");
        return NULL;
    }
    then = parse_or(r, depth + 1);
    if (!then || !take_token(r, "if"))
        return r->failed ? NULL : then;
    n = node_of(r, PY_IF, NULL, parse_or(r, depth + 1));
    n = node_add(r, n, then);
    need_token(r, "else");
    return node_add(r, n, parse_any(r, depth + 1));
}

struct py_node *py_parse(struct py_reader *r)
{
    struct py_node *n;

    py_next(r);
    if (r->now.word == PY_END)
        py_fail(r, 0, "an empty condition has no value: write True or False");
    n = parse_any(r, 0);
    if (!r->failed && r->now.word != PY_END)
        unexpected(r, "the end");
    return r->failed ? NULL : n;
}
