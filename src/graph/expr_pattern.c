/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua's patterns once more. The library's own matcher tries every way to split a text between repeats and cannot be
 * stopped: six of them over a few hundred bytes take years. This one takes each step from the same budget as the
 * instructions of the code, so that it ends when they do. What patterns mean is as in Lua's manual (6.4.1).
 */
#include <ctype.h>

#include "graph/expr_internal.h"
#include "graph/expr_pattern.h"

#define CAPTURES_MAX 32
#define DEPTH_MAX 180  /* nested calls of attempt() */
#define STEPS_PAID 256 /* steps between two looks at the budget */

enum { OPEN = -1, POSITION = -2 };

struct capture {
    const char *start;
    ptrdiff_t len; /* or OPEN, POSITION */
};

struct match {
    lua_State *l;
    struct str text;
    const char *end;  /* of the text */
    const char *stop; /* of the pattern */
    unsigned steps, depth;
    int captures;
    struct capture capture[CAPTURES_MAX];
};

static const char *match_at(struct match *m, const char *s, const char *p);

static void count_step(struct match *m)
{
    if (++m->steps % STEPS_PAID == 0)
        expr_charge(m->l, STEPS_PAID / 4);
}

/* ---- one character ---- */

static bool in_class(int c, int class)
{
    static const struct {
        char letter;
        int (*is)(int);
    } classes[] = {
        {'a', isalpha}, {'c', iscntrl}, {'d', isdigit}, {'g', isgraph}, {'l', islower},
        {'p', ispunct}, {'s', isspace}, {'u', isupper}, {'w', isalnum}, {'x', isxdigit},
    };

    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (tolower(class) == classes[i].letter)
            return !!classes[i].is(c) != !!isupper(class);
    return class == c;
}

/* Behind the one-character item that begins at p. */
static const char *item_end(struct match *m, const char *p)
{
    if (*p == '%') {
        if (p + 1 == m->stop)
            luaL_error(m->l, "malformed pattern (ends with '%%')");
        return p + 2;
    }
    if (*p != '[')
        return p + 1;
    p += p + 1 < m->stop && p[1] == '^' ? 2 : 1;
    for (bool first = true; p == m->stop || *p != ']' || first; first = false) {
        if (p == m->stop)
            luaL_error(m->l, "malformed pattern (missing ']')");
        p += *p == '%' && p + 1 < m->stop ? 2 : 1;
    }
    return p + 1;
}

/* The set from its bracket to the closing one at `last`. */
static bool in_set(int c, const char *p, const char *last)
{
    bool negated = p[1] == '^';

    for (p += negated ? 2 : 1; p < last; p++) {
        if (*p == '%' && p + 1 < last) {
            p++;
            if (in_class(c, (unsigned char)*p))
                return !negated;
        } else if (p + 2 < last && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2])
                return !negated;
            p += 2;
        } else if ((unsigned char)*p == c) {
            return !negated;
        }
    }
    return negated;
}

static bool pattern_fits(struct match *m, const char *s, const char *p, const char *p_end)
{
    int c;

    count_step(m);
    if (s >= m->end)
        return false;
    c = (unsigned char)*s;
    switch (*p) {
    case '.':
        return true;
    case '%':
        return in_class(c, (unsigned char)p[1]);
    case '[':
        return in_set(c, p, p_end - 1);
    default:
        return (unsigned char)*p == c;
    }
}

/* ---- repeats ---- */

static const char *most_first(struct match *m, const char *s, const char *p, const char *p_end)
{
    ptrdiff_t n = 0;

    while (pattern_fits(m, s + n, p, p_end))
        n++;
    for (; n >= 0; n--) {
        const char *e = match_at(m, s + n, p_end + 1);

        if (e)
            return e;
    }
    return NULL;
}

static const char *least_first(struct match *m, const char *s, const char *p, const char *p_end)
{
    for (;; s++) {
        const char *e = match_at(m, s, p_end + 1);

        if (e || !pattern_fits(m, s, p, p_end))
            return e;
    }
}

/* ---- captures, balance, frontier ---- */

static const char *capture_open(struct match *m, const char *s, const char *p, ptrdiff_t len)
{
    const char *e;

    if (m->captures >= CAPTURES_MAX)
        luaL_error(m->l, "too many captures");
    m->capture[m->captures++] = (struct capture){s, len};
    e = match_at(m, s, p);
    m->captures -= e ? 0 : 1;
    return e;
}

static const char *capture_close(struct match *m, const char *s, const char *p)
{
    int i = m->captures - 1;
    const char *e;

    while (i >= 0 && m->capture[i].len != OPEN)
        i--;
    if (i < 0)
        luaL_error(m->l, "invalid pattern capture");
    m->capture[i].len = s - m->capture[i].start;
    e = match_at(m, s, p);
    if (!e)
        m->capture[i].len = OPEN;
    return e;
}

/* %1 … %9: the same text once more. */
static const char *capture_again(struct match *m, const char *s, const char *p)
{
    int i = p[1] - '1';
    const struct capture *c = &m->capture[i < 0 ? 0 : i];

    if (i < 0 || i >= m->captures || c->len == OPEN)
        luaL_error(m->l, "invalid capture index %%%d", i + 1);
    if (c->len == POSITION || m->end - s < c->len || memcmp(c->start, s, (size_t)c->len) != 0)
        return NULL;
    return match_at(m, s + c->len, p + 2);
}

static const char *balanced(struct match *m, const char *s, const char *p)
{
    int depth = 1;

    if (m->stop - p < 4)
        luaL_error(m->l, "malformed pattern (missing arguments to '%%b')");
    if (s >= m->end || *s != p[2])
        return NULL;
    while (++s < m->end) {
        count_step(m);
        if (*s == p[3]) {
            if (--depth == 0)
                return match_at(m, s + 1, p + 4);
        } else if (*s == p[2]) {
            depth++;
        }
    }
    return NULL;
}

static const char *frontier(struct match *m, const char *s, const char *p)
{
    const char *set = p + 2, *set_end;
    int before = s == m->text.ptr ? 0 : (unsigned char)s[-1], here = s < m->end ? (unsigned char)*s : 0;

    if (set >= m->stop || *set != '[')
        luaL_error(m->l, "missing '[' after '%%f' in pattern");
    set_end = item_end(m, set);
    if (in_set(before, set, set_end - 1) || !in_set(here, set, set_end - 1))
        return NULL;
    return match_at(m, s, set_end);
}

/* ---- the whole ---- */

static const char *item(struct match *m, const char *s, const char *p)
{
    const char *p_end = item_end(m, p), *e;

    switch (p_end < m->stop ? *p_end : '\0') {
    case '*':
        return most_first(m, s, p, p_end);
    case '+':
        return pattern_fits(m, s, p, p_end) ? most_first(m, s + 1, p, p_end) : NULL;
    case '-':
        return least_first(m, s, p, p_end);
    case '?':
        e = pattern_fits(m, s, p, p_end) ? match_at(m, s + 1, p_end + 1) : NULL;
        return e ? e : match_at(m, s, p_end + 1);
    default:
        return pattern_fits(m, s, p, p_end) ? match_at(m, s + 1, p_end) : NULL;
    }
}

static const char *special(struct match *m, const char *s, const char *p)
{
    switch (p + 1 < m->stop ? p[1] : '\0') {
    case 'b':
        return balanced(m, s, p);
    case 'f':
        return frontier(m, s, p);
    default:
        return p + 1 < m->stop && isdigit((unsigned char)p[1]) ? capture_again(m, s, p) : item(m, s, p);
    }
}

static const char *here(struct match *m, const char *s, const char *p)
{
    switch (*p) {
    case '(':
        if (p + 1 < m->stop && p[1] == ')')
            return capture_open(m, s, p + 2, POSITION);
        return capture_open(m, s, p + 1, OPEN);
    case ')':
        return capture_close(m, s, p + 1);
    case '$':
        if (p + 1 == m->stop)
            return s == m->end ? s : NULL;
        return item(m, s, p);
    case '%':
        return special(m, s, p);
    default:
        return item(m, s, p);
    }
}

/* Behind the item at p, when it is one that stands for exactly one character; otherwise NULL. */
static const char *single_end(struct match *m, const char *p)
{
    const char *end;

    if (*p == '(' || *p == ')' || (*p == '$' && p + 1 == m->stop))
        return NULL;
    if (*p == '%' && p + 1 < m->stop && (p[1] == 'b' || p[1] == 'f' || isdigit((unsigned char)p[1])))
        return NULL;
    end = item_end(m, p);
    return end < m->stop && *end && strchr("*+-?", *end) ? NULL : end;
}

/* Where the match of the pattern from p ends, beginning at s; NULL when there is none. */
static const char *match_at(struct match *m, const char *s, const char *p)
{
    const char *e;

    count_step(m);
    for (const char *end; p < m->stop && (end = single_end(m, p)); p = end, s++)
        if (!pattern_fits(m, s, p, end))
            return NULL;
    if (p == m->stop)
        return s;
    if (++m->depth > DEPTH_MAX)
        luaL_error(m->l, "pattern too complex");
    e = here(m, s, p);
    m->depth--;
    return e;
}

static const char *begin_match(struct match *m, const char *s, const char *p)
{
    m->captures = 0;
    m->depth = 0;
    return match_at(m, s, p);
}

/* ---- what is given back ---- */

static void push_capture(struct match *m, int i, const char *s, const char *e)
{
    const struct capture *c = &m->capture[i];

    if (i >= m->captures && i != 0)
        luaL_error(m->l, "invalid capture index %%%d", i + 1);
    if (i >= m->captures)
        lua_pushlstring(m->l, s, (size_t)(e - s));
    else if (c->len == POSITION)
        lua_pushinteger(m->l, c->start - m->text.ptr + 1);
    else if (c->len == OPEN)
        luaL_error(m->l, "unfinished capture");
    else
        lua_pushlstring(m->l, c->start, (size_t)c->len);
}

/* All captures, or the whole match when there are none and it is wanted. */
static int push_captures(struct match *m, const char *s, const char *e, bool whole)
{
    int n = m->captures == 0 && whole ? 1 : m->captures;

    luaL_checkstack(m->l, n, "too many captures");
    for (int i = 0; i < n; i++)
        push_capture(m, i, s, e);
    return n;
}

static struct match match_init(lua_State *l, struct str text, struct str pattern)
{
    return (struct match){.l = l, .text = text, .end = text.ptr + text.len, .stop = pattern.ptr + pattern.len};
}

static struct str check_text(lua_State *l, int at)
{
    struct str s;

    s.ptr = luaL_checklstring(l, at, &s.len);
    return s;
}

/* The place that argument `at` gives, from 0; past the end if it is. */
static size_t first_place(lua_State *l, int at, size_t len)
{
    lua_Integer i = luaL_optinteger(l, at, 1);

    if (i > 0)
        return (uint64_t)i - 1 > len ? len + 1 : (size_t)i - 1;
    return i == 0 || i < -(lua_Integer)len ? 0 : len - (size_t)-i;
}

/* ---- find and match ---- */

static int find_plain(lua_State *l, struct str text, struct str what, size_t from)
{
    const char *at = what.len == 0 ? text.ptr + from : memmem(text.ptr + from, text.len - from, what.ptr, what.len);

    expr_charge(l, text.len / 64 + what.len / 64);
    if (!at) {
        lua_pushnil(l);
        return 1;
    }
    lua_pushinteger(l, at - text.ptr + 1);
    lua_pushinteger(l, at - text.ptr + (lua_Integer)what.len);
    return 2;
}

static int search_pattern(lua_State *l, bool find)
{
    struct str text = check_text(l, 1), pattern = check_text(l, 2);
    size_t from = first_place(l, 3, text.len);
    struct match m = match_init(l, text, pattern);
    bool anchored = pattern.len > 0 && *pattern.ptr == '^';

    if (from > text.len) {
        lua_pushnil(l);
        return 1;
    }
    if (find && lua_toboolean(l, 4))
        return find_plain(l, text, pattern, from);
    for (const char *s = text.ptr + from; s <= m.end; s++) {
        const char *e = begin_match(&m, s, pattern.ptr + anchored);

        if (e && find) {
            lua_pushinteger(l, s - text.ptr + 1);
            lua_pushinteger(l, e - text.ptr);
        }
        if (e)
            return push_captures(&m, s, e, !find) + (find ? 2 : 0);
        if (anchored)
            break;
    }
    lua_pushnil(l);
    return 1;
}

int expr_pattern_find(lua_State *l)
{
    return search_pattern(l, true);
}

int expr_pattern_match(lua_State *l)
{
    return search_pattern(l, false);
}

/* ---- gmatch ---- */

/* Upvalues: text, pattern, where to continue, where the last match ended (from 0; -1: none). */
static int gmatch_next(lua_State *l)
{
    struct str text = check_text(l, lua_upvalueindex(1)), pattern = check_text(l, lua_upvalueindex(2));
    lua_Integer last = lua_tointeger(l, lua_upvalueindex(4));
    struct match m = match_init(l, text, pattern);

    for (const char *s = text.ptr + lua_tointeger(l, lua_upvalueindex(3)); s <= m.end; s++) {
        const char *e = begin_match(&m, s, pattern.ptr);

        if (!e || e - text.ptr == last)
            continue;
        lua_pushinteger(l, e - text.ptr);
        lua_copy(l, -1, lua_upvalueindex(3));
        lua_replace(l, lua_upvalueindex(4));
        return push_captures(&m, s, e, true);
    }
    return 0;
}

int expr_pattern_gmatch(lua_State *l)
{
    struct str text = check_text(l, 1);
    size_t from = first_place(l, 3, text.len);

    check_text(l, 2);
    lua_settop(l, 2);
    lua_pushinteger(l, (lua_Integer)from);
    lua_pushinteger(l, -1);
    lua_pushcclosure(l, gmatch_next, 4);
    return 1;
}

/* ---- gsub ---- */

static void add_template(struct match *m, luaL_Buffer *b, const char *s, const char *e)
{
    struct str with = check_text(m->l, 3);

    for (size_t i = 0; i < with.len; i++) {
        if (with.ptr[i] != '%') {
            luaL_addchar(b, with.ptr[i]);
            continue;
        }
        i++;
        if (i < with.len && with.ptr[i] == '%') {
            luaL_addchar(b, '%');
        } else if (i < with.len && with.ptr[i] == '0') {
            luaL_addlstring(b, s, (size_t)(e - s));
        } else if (i < with.len && isdigit((unsigned char)with.ptr[i])) {
            push_capture(m, with.ptr[i] - '1', s, e);
            luaL_tolstring(m->l, -1, NULL);
            lua_remove(m->l, -2);
            luaL_addvalue(b);
        } else {
            luaL_error(m->l, "invalid use of '%%' in replacement string");
        }
    }
}

/* From a table or a function; false and nil leave the text as it is. */
static void add_looked_up(struct match *m, luaL_Buffer *b, const char *s, const char *e)
{
    lua_State *l = m->l;

    if (lua_isfunction(l, 3)) {
        lua_pushvalue(l, 3);
        lua_call(l, push_captures(m, s, e, true), 1);
    } else {
        push_capture(m, 0, s, e);
        lua_gettable(l, 3);
    }
    if (!lua_toboolean(l, -1)) {
        lua_pop(l, 1);
        luaL_addlstring(b, s, (size_t)(e - s));
    } else if (!lua_isstring(l, -1)) {
        luaL_error(l, "invalid replacement value (a %s)", luaL_typename(l, -1));
    } else {
        luaL_addvalue(b);
    }
}

static lua_Integer replace_all(struct match *m, struct str pattern, lua_Integer most, luaL_Buffer *b)
{
    bool anchored = pattern.len > 0 && *pattern.ptr == '^', text = lua_isstring(m->l, 3);
    const char *s = m->text.ptr, *last = NULL;
    lua_Integer n = 0;

    while (n < most) {
        const char *e = begin_match(m, s, pattern.ptr + anchored);

        if (e && e != last) {
            n++;
            (text ? add_template : add_looked_up)(m, b, s, e);
            s = last = e;
        } else if (s < m->end) {
            luaL_addchar(b, *s++);
        } else {
            break;
        }
        if (anchored)
            break;
    }
    luaL_addlstring(b, s, (size_t)(m->end - s));
    return n;
}

int expr_pattern_gsub(lua_State *l)
{
    struct str text = check_text(l, 1), pattern = check_text(l, 2);
    lua_Integer most = luaL_optinteger(l, 4, (lua_Integer)text.len + 1);
    struct match m = match_init(l, text, pattern);
    lua_Integer n;
    luaL_Buffer b;

    if (!lua_isstring(l, 3) && !lua_istable(l, 3) && !lua_isfunction(l, 3))
        return luaL_typeerror(l, 3, "string/function/table");
    lua_settop(l, 3);
    luaL_buffinit(l, &b);
    n = replace_all(&m, pattern, most, &b);
    luaL_pushresult(&b);
    lua_pushinteger(l, n);
    return 2;
}
