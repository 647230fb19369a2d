/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and signs that mean nothing here. An agent whose tool is misspelt would run and be paid for without it; a name that
 * nobody gives is nil in Lua and no error, so a condition with one is never taken and nobody says why. And who writes
 * the signs of another language gets those of Lua in the error.
 */
#include "agent/tool.h"
#include "base/map.h"
#include "base/nearest.h"
#include "graph/spec_internal.h"

#define HINT_MAX 1000 /* bytes of an expression that is said again in Lua */
#define NAMES_MAX 64  /* that are listed for a hint */

/* ---- tools ---- */

static const char *next_tool(void *arg)
{
    const struct tool *const **at = arg;

    return **at ? (*(*at)++)->name : NULL;
}

/*
 * A slip keeps the graph from running. A name like none of ours is one of another system's: graphs that come from there run
 * without it.
 */
static void tell_tool(struct spec_parser *p, struct str name, const char *path)
{
    const struct tool *const *at = tools;
    const char *near = nearest(name.ptr, next_tool, &at), *words[NAMES_MAX] = {NULL};

    for (size_t i = 0; tools[i] && i + 1 < NAMES_MAX; i++)
        words[i] = tools[i]->name;
    spec_say(p, near ? SPEC_PROBLEM : SPEC_WARNING, path, spec_hint_of(p, name, words), "there is no tool '%.64s'%s",
             name.ptr, near ? "" : ": the agent does without it");
}

void spec_check_tools(struct spec_parser *p, const struct spec_node *n)
{
    for (size_t i = 0; i < n->tools.names.n; i++)
        if (!tool_find(n->tools.names.at[i]))
            tell_tool(p, n->tools.names.at[i], arena_printf(&p->spec->arena, "%s.tools[%zu]", n->path, i));
}

/* ---- the words of an expression ---- */

enum word { WORD_END, WORD_NAME, WORD_SIGN, WORD_BLANK, WORD_CONSTANT };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

static size_t quoted_len(struct str s)
{
    size_t n = 1;

    while (n < s.len && s.ptr[n] != s.ptr[0])
        n += s.ptr[n] == '\\' ? 2 : 1;
    return n < s.len ? n + 1 : s.len;
}

/* [[…]], [==[…]==]; 0: it is something else. */
static size_t long_len(struct str s)
{
    size_t level = 0, n;

    while (level + 1 < s.len && s.ptr[level + 1] == '=')
        level++;
    n = level + 2;
    if (s.len < n || s.ptr[0] != '[' || s.ptr[n - 1] != '[')
        return 0;
    for (; n + level + 1 < s.len; n++)
        if (s.ptr[n] == ']' && s.ptr[n + level + 1] == ']' && memcmp(s.ptr + n + 1, s.ptr + 1, level) == 0)
            return n + level + 2;
    return s.len;
}

static size_t comment_len(struct str s)
{
    struct str rest = {s.ptr + 2, s.len - 2};
    size_t n = long_len(rest);
    const char *end = memchr(s.ptr, '\n', s.len);

    return n ? n + 2 : end ? (size_t)(end - s.ptr) : s.len;
}

static size_t sign_len(struct str s)
{
    static const char *const signs[] = {"...", "===", "!==", "..", "==", "~=", "!=", "<=", ">=", "<>", "&&", "||"};

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (str_starts(s, str_from(signs[i])))
            return strlen(signs[i]);
    return 1;
}

static size_t span(struct str s, bool (*is)(char))
{
    size_t n = 0;

    while (n < s.len && is(s.ptr[n]))
        n++;
    return n;
}

static bool in_number(char c)
{
    return in_name(c) || c == '.';
}

static enum word next_word(struct str *left, struct str *ret)
{
    struct str s = *left;
    enum word what = WORD_SIGN;
    size_t n;

    if (s.len == 0)
        return WORD_END;
    if (is_digit(s.ptr[0]) && (n = span(s, in_number)))
        what = WORD_CONSTANT;
    else if ((n = span(s, in_name)))
        what = WORD_NAME;
    else if ((n = span(s, is_blank_char)))
        what = WORD_BLANK;
    else if (str_starts(s, STR("--")) && (n = comment_len(s)))
        what = WORD_BLANK;
    else if (s.ptr[0] == '"' || s.ptr[0] == '\'' ? (n = quoted_len(s)) : (n = long_len(s)))
        what = WORD_CONSTANT;
    else
        n = sign_len(s);
    *ret = (struct str){s.ptr, n};
    *left = (struct str){s.ptr + n, s.len - n};
    return what;
}

/* ---- said in Lua ---- */

static struct str in_lua(struct str word)
{
    static const struct {
        const char *theirs, *ours;
    } rows[] = {{"!=", "~="}, {"!==", "~="}, {"<>", "~="},    {"===", "=="},   {"=", "=="},      {"&&", "and"},
                {"||", "or"}, {"!", "not"},  {"null", "nil"}, {"None", "nil"}, {"True", "true"}, {"False", "false"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (str_eq(word, str_from(rows[i].theirs)))
            return str_from(rows[i].ours);
    return word;
}

static void rewrite_source(struct str source, struct buf *out)
{
    struct str word, before = {"", 0};

    for (enum word what; (what = next_word(&source, &word)) != WORD_END;) {
        struct str said = what == WORD_SIGN || (what == WORD_NAME && !str_eq(before, STR("."))) ? in_lua(word) : word;

        if (out->len > 0 && in_name(out->ptr[out->len - 1]) && in_name(said.ptr[0]))
            buf_add_char(out, ' ');
        buf_add_str(out, said);
        before = word;
    }
}

static bool lua_compiles(const struct buf *lua)
{
    struct tide_err err;
    struct expr *e = NULL;
    bool ok = !lua->failed && !expr_compile(buf_view(lua), &e, &err);

    expr_free(e);
    return ok;
}

/* Many come from a place where conditions are Python. What only our helpers can say is nothing to be written by hand. */
const char *spec_lua_hint(struct spec_parser *p, struct str source)
{
    AUTO(buf_done) struct buf lua = BUF_INIT(HINT_MAX);
    AUTO(buf_done) struct buf python = BUF_INIT(HINT_MAX);
    struct tide_err err;

    rewrite_source(source, &lua);
    if (lua_compiles(&lua))
        return arena_printf(&p->spec->arena, "in Lua: %s", buf_cstr(&lua));
    if (expr_from_python(source, true, &python, &err) || !lua_compiles(&python))
        return "";
    if (strstr(buf_cstr(&python), "__"))
        return "this is Python; conditions are Lua: and, or, not, ==, ~=, nil, #list";
    return arena_printf(&p->spec->arena, "in Lua: %s", buf_cstr(&python));
}

/* ---- names in expressions ---- */

/* `null` is nobody's and nil, as it should be. */
static const char *const library[] = {"string", "table", "math", "utf8",   "json",     "assert",   "error",
                                      "ipairs", "pairs", "next", "select", "tonumber", "tostring", "type",
                                      "true",   "false", "nil",  "null",   NULL};
static const char *const keywords[] = {"and", "or", "not", "_ENV", NULL};

static bool is_in(const char *const *words, struct str name)
{
    for (; *words; words++)
        if (str_eq(name, str_from(*words)))
            return true;
    return false;
}

static const char *hint_for(struct spec_parser *p, struct str name, const char *const *seen, const struct map *keys)
{
    const char *words[NAMES_MAX] = {NULL};
    size_t n = 0;

    if (map_get(keys, name))
        return arena_printf(&p->spec->arena, "%s.%.*s", seen[0], STR_ARG(name));
    for (; seen[n]; n++)
        words[n] = seen[n];
    for (size_t i = 0; library[i] && n + 1 < NAMES_MAX; i++)
        words[n++] = library[i];
    return spec_hint_of(p, name, words);
}

/* {name = value} */
static bool is_member(struct str rest)
{
    struct str word = {"", 0};

    while (next_word(&rest, &word) == WORD_BLANK)
        ;
    return str_eq(word, STR("="));
}

void spec_check_names(struct spec_parser *p, struct str source, const char *const *seen, const struct map *keys,
                      const char *path)
{
    struct str left = source, word, before = {"", 0};
    struct map told = {0};

    for (enum word what; (what = next_word(&left, &word)) != WORD_END;) {
        bool member = str_eq(before, STR(".")) || str_eq(before, STR(":"));

        if (what == WORD_NAME && str_eq(word, STR("function")))
            break; /* it has names of its own */
        before = what == WORD_BLANK ? before : word;
        if (what != WORD_NAME || member || is_member(left) || is_in(seen, word) || is_in(library, word) ||
            is_in(keywords, word) || str_eq(word, STR("__py")) || map_put(&told, word, p))
            continue;
        spec_say(p, SPEC_WARNING, path, hint_for(p, word, seen, keys), "'%.64s' is not known here: always nil",
                 arena_dup(&p->spec->arena, word).ptr);
    }
    map_done(&told, NULL);
}
