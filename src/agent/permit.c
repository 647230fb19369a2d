/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permissions. `*` stands for any text, `?` for one character; neither knows of slashes. To be denied is easier than to be
 * allowed, because what is matched is only text and the shell reads it in its own way:
 *
 *   commands   allow: `*` and `?` never stand for ; & | ` ( ) < > or a newline, so that "git *" does not allow
 *              "git x; rm -rf /". A command that has them beyond the rule's own text is not allowed by it.
 *              ask, deny: match the whole, or any part between such characters, its keywords and assignments left out.
 *   paths      allow: a path with ".." in it matches nothing.
 *              ask, deny: "./a", "b/../a", "a//b" are the path that they mean; of an absolute path any end counts.
 *   glob, grep match the pattern; ask, deny: or the path that is searched.
 *
 * A rule without `match` is for every call, of whatever form. Rules keep honest calls in order; they are no sandbox: a
 * program that is allowed may start another.
 */
#include "agent/permit.h"

#include <ctype.h>

#include "agent/tool_text.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/utf8.h"

struct rule {
    struct str tool, match, source;
    bool any; /* no match: every call */
    enum tide_permission permission;
};

struct permits {
    struct arena arena;
    struct rule *rules;
    size_t n;
};

/* ---- reading them ---- */

static enum tide_code check_keys(const struct json *v, size_t number, struct tide_err *err)
{
    static const char *const keys[] = {"tool", "match", "permission"};

    for (const struct json *m = v->first; m; m = m->next) {
        bool known = false;

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            known |= json_key_eq(m, str_from(keys[i]));
        if (!known)
            return tide_fail(err, TIDE_INVALID,
                             "permission rule %zu has no key '%.*s'; it has: tool, match, permission", number,
                             (int)(m->key.len < 60 ? m->key.len : 60), m->key.ptr);
        if (m->type != JSON_STRING)
            return tide_fail(err, TIDE_INVALID, "permission rule %zu: '%.*s' must be a string", number,
                             STR_ARG(m->key));
    }
    return TIDE_OK;
}

static enum tide_code parse_rule(struct arena *a, const struct json *v, size_t number, struct rule *ret,
                                 struct tide_err *err)
{
    const struct json *match = json_get(v, STR("match"));
    struct str word = arena_dup(a, json_get_text(a, v, STR("permission")));
    int permission = tide_permission_from(word.ptr);

    if (v->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID,
                         "permission rule %zu must be an object such as {\"tool\":\"bash\",\"permission\":\"ask\"}",
                         number);
    if (check_keys(v, number, err))
        return err->code;
    *ret = (struct rule){
        .tool = arena_dup(a, json_get_text(a, v, STR("tool"))), .any = !match, .source = arena_dup(a, json_source(v))};
    if (match)
        ret->match = arena_dup(a, json_text(a, match));
    if (ret->tool.len == 0)
        return tide_fail(err, TIDE_INVALID, "permission rule %zu names no tool", number);
    if (match && ret->match.len == 0)
        return tide_fail(err, TIDE_INVALID, "permission rule %zu: 'match' is empty: omit it for every call", number);
    if (permission < 0 || strlen(word.ptr) != word.len)
        return tide_fail(err, TIDE_INVALID, "permission rule %zu: 'permission' must be allow, ask or deny, not '%.*s'",
                         number, (int)(word.len < 60 ? word.len : 60), word.ptr);
    ret->permission = (enum tide_permission)permission;
    return TIDE_OK;
}

void permits_free(struct permits *p)
{
    if (!p)
        return;
    arena_done(&p->arena);
    free(p);
}

static void permits_freep(struct permits **p)
{
    permits_free(*p);
}

enum tide_code permits_parse(struct str json, struct permits **ret_permits, struct tide_err *err)
{
    AUTO(permits_freep) struct permits *p = mem_zero(sizeof(*p));
    struct arena scratch = ARENA_INIT;
    struct json *v = NULL;
    enum tide_code code;

    ERR_LOCAL(err);
    code = json_parse(&scratch, json, NULL, &v, NULL, err);
    if (code)
        tide_wrap(err, "permission rules");
    else if (v->type != JSON_ARRAY)
        code = tide_fail(err, TIDE_INVALID, "permission rules must be an array of objects");
    if (!code) {
        p->rules = arena_zero(&p->arena, (v->count + 1) * sizeof(*p->rules));
        for (const struct json *r = v->first; r && !code; r = r->next, p->n++)
            code = parse_rule(&p->arena, r, p->n + 1, &p->rules[p->n], err);
    }
    arena_done(&scratch);
    if (code)
        return tide_about(err, TIDE_SUBJECT_KEY, "permissions");
    *ret_permits = TAKE(p);
    return TIDE_OK;
}

/* ---- matching ---- */

#define SHELL_MARKS ";&|`()<>\n"

static size_t char_len(struct str text, size_t at)
{
    size_t n = 1;

    while (at + n < text.len && utf8_is_tail(text.ptr[at + n]))
        n++;
    return n;
}

/* `*` and `?` stand for anything but the bytes in `never`. Goes back to the last star only: no pattern takes long. */
static bool match_glob(struct str pattern, struct str text, const char *never)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;

    while (t < text.len) {
        bool wild = !text.ptr[t] || !strchr(never, text.ptr[t]);

        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            star_text = t;
        } else if (p < pattern.len && (pattern.ptr[p] == text.ptr[t] || (pattern.ptr[p] == '?' && wild))) {
            t += pattern.ptr[p++] == '?' ? char_len(text, t) : 1;
        } else if (star != SIZE_MAX && (!text.ptr[star_text] || !strchr(never, text.ptr[star_text]))) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

/* Whether the first word only leads to a command: a keyword, or a variable that is set for it. */
static bool only_leads(struct str word)
{
    static const char *const keywords[] = {"if", "then", "elif", "else", "while", "until", "do", "time", "!", "{"};
    const char *equals = memchr(word.ptr, '=', word.len);

    for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
        if (str_eq(word, str_from(keywords[i])))
            return true;
    return equals && equals > word.ptr && (isalpha((unsigned char)*word.ptr) || *word.ptr == '_');
}

static struct str first_word(struct str s)
{
    size_t n = 0;

    while (n < s.len && !is_blank_char(s.ptr[n]))
        n++;
    return (struct str){s.ptr, n};
}

/* One space for each run of blanks. */
static struct str squeeze_blanks(struct arena *a, struct str s)
{
    char *out = arena_alloc(a, s.len + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        if (!is_blank_char(s.ptr[i]))
            out[n++] = s.ptr[i];
        else if (n == 0 || out[n - 1] != ' ')
            out[n++] = ' ';
    return (struct str){out, n};
}

static bool part_matches(struct arena *a, struct str pattern, struct str part)
{
    part = squeeze_blanks(a, str_trim(part));
    if (part.len == 0)
        return false;
    if (match_glob(pattern, part, ""))
        return true;
    for (struct str word = first_word(part); part.len && only_leads(word); word = first_word(part)) {
        part = str_trim((struct str){part.ptr + word.len, part.len - word.len});
        if (part.len && match_glob(pattern, part, ""))
            return true;
    }
    return false;
}

static bool any_part_matches(struct arena *a, struct str pattern, struct str command)
{
    size_t from = 0;

    if (part_matches(a, pattern, command))
        return true;
    for (size_t i = 0; i <= command.len; i++) {
        if (i < command.len && (!command.ptr[i] || !strchr(SHELL_MARKS, command.ptr[i])))
            continue;
        if (part_matches(a, pattern, (struct str){command.ptr + from, i - from}))
            return true;
        from = i + 1;
    }
    return false;
}

/* The path without ".", empty parts and what ".." takes back. */
static struct str plain_path(struct arena *a, struct str path, bool *ret_dots)
{
    char *out = arena_alloc(a, path.len + 2);
    bool absolute = path.len && path.ptr[0] == '/';
    size_t n = 0;

    for (size_t from = 0, to; from <= path.len; from = to + 1) {
        struct str part;

        for (to = from; to < path.len && path.ptr[to] != '/';)
            to++;
        part = (struct str){path.ptr + from, to - from};
        if (str_eq(part, STR(".."))) {
            *ret_dots = true;
            while (n > 0 && out[--n] != '/')
                ;
        } else if (part.len && !str_eq(part, STR("."))) {
            if (n > 0 || absolute)
                out[n++] = '/';
            memcpy(out + n, part.ptr, part.len);
            n += part.len;
        }
    }
    return (struct str){out, n};
}

static bool path_matches(struct arena *a, const struct rule *r, struct str path)
{
    bool dots = false;
    struct str plain = plain_path(a, path, &dots);

    if (r->permission == TIDE_PERMISSION_ALLOW)
        return !dots && match_glob(r->match, plain, "");
    if (match_glob(r->match, path, "") || match_glob(r->match, plain, ""))
        return true;
    for (size_t i = 0; plain.len && plain.ptr[0] == '/' && i < plain.len; i++)
        if (plain.ptr[i] == '/' && match_glob(r->match, (struct str){plain.ptr + i + 1, plain.len - i - 1}, ""))
            return true;
    return false;
}

static bool rule_matches(struct arena *a, const struct rule *r, const struct tool *tool, const struct json *args)
{
    struct str subject = json_get_text(a, args, str_from(tool->subject));
    struct str path = json_get_text(a, args, STR("path"));

    if (!match_glob(r->tool, str_from(tool->name), ""))
        return false;
    if (r->any)
        return true;
    if (strcmp(tool->subject, "command") == 0)
        return r->permission == TIDE_PERMISSION_ALLOW ? match_glob(r->match, str_trim(subject), SHELL_MARKS)
                                                      : any_part_matches(a, r->match, subject);
    if (strcmp(tool->subject, "path") == 0)
        return path_matches(a, r, subject);
    return match_glob(r->match, subject, "") ||
           (r->permission != TIDE_PERMISSION_ALLOW && path.len && path_matches(a, r, path));
}

/* The rule that counts; NULL: none. */
static const struct rule *find_rule(const struct permits *p, const struct tool *tool, const struct json *args)
{
    struct arena a = ARENA_INIT;
    size_t i = p ? p->n : 0;

    while (i > 0 && !rule_matches(&a, &p->rules[i - 1], tool, args))
        i--;
    arena_done(&a);
    return i > 0 ? &p->rules[i - 1] : NULL;
}

enum tide_permission permits_ask(const struct permits *p, const struct tool *tool, const struct json *args)
{
    const struct rule *r = find_rule(p, tool, args);

    return r ? r->permission : tool->permission;
}

struct str permits_rule(const struct permits *p, const struct tool *tool, const struct json *args)
{
    const struct rule *r = find_rule(p, tool, args);

    return r ? r->source : STR("");
}

static const char *next_tool(void *arg)
{
    size_t *at = arg;

    return tools[*at] ? tools[(*at)++]->name : NULL;
}

enum tide_code permits_check_tools(const struct permits *p, struct tide_err *err)
{
    for (size_t i = 0; i < p->n; i++) {
        const char *typed = p->rules[i].tool.ptr, *near;
        size_t t = 0;

        while (tools[t] && !match_glob(p->rules[i].tool, str_from(tools[t]->name), ""))
            t++;
        if (tools[t])
            continue;
        t = 0;
        near = nearest(typed, next_tool, &t);
        return tide_fail(err, TIDE_INVALID, "permission rule %zu: there is no tool '%.60s'%s%s%s", i + 1, typed,
                         near ? ": did you mean '" : ": `/tools` in a chat lists them", near ? near : "",
                         near ? "'?" : "");
    }
    return TIDE_OK;
}

bool permits_some(const struct permits *p, const struct tool *tool)
{
    bool some = tool->permission != TIDE_PERMISSION_DENY;

    for (size_t i = 0; p && i < p->n; i++) {
        const struct rule *r = &p->rules[i];

        if (!match_glob(r->tool, str_from(tool->name), ""))
            continue;
        if (r->permission != TIDE_PERMISSION_DENY)
            some = true;
        else if (r->any || str_eq(r->match, STR("*")))
            some = false;
    }
    return some;
}
