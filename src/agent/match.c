/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCRE2 behind two calls. Text need not be valid UTF-8: what is not matches nothing. A glob becomes a regular expression:
 *
 *   *  [^/]*      ?  [^/]      **  .*      ** between slashes  (?:.* /)?      [!a-z]  [^a-z]      {a,b}  (?:a|b)
 *
 * The limits are reached only by patterns that are made to reach them.
 */
#include "agent/match.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#define PATTERN_MAX ((size_t)10000)
#define MATCH_LIMIT 1000000u
#define DEPTH_LIMIT 10000u
#define HEAP_LIMIT_KIB 16384u

struct match {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

void match_free(struct match *m)
{
    if (!m)
        return;
    pcre2_match_context_free(m->context);
    pcre2_match_data_free(m->data);
    pcre2_code_free(m->code);
    free(m);
}

static enum tide_code bad(int number, struct str pattern, size_t at, struct tide_err *err)
{
    unsigned char why[160] = "it cannot be compiled";
    size_t chars = utf8_chars((struct str){pattern.ptr, at < pattern.len ? at : pattern.len}) + 1;

    pcre2_get_error_message(number, why, sizeof(why));
    return tide_fail(err, TIDE_INVALID, "bad pattern at character %zu: %s", chars, (const char *)why);
}

static enum tide_code compile_pattern(struct str pattern, uint32_t options, struct match **ret_match,
                                      struct tide_err *err)
{
    AUTO(match_freep) struct match *m = NULL;
    PCRE2_SIZE at = 0;
    int number = 0;

    if (pattern.len > PATTERN_MAX)
        return tide_fail(err, TIDE_INVALID, "the pattern is longer than %zu bytes", PATTERN_MAX);
    m = mem_zero(sizeof(*m));
    m->code =
        pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len,
                      options | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &number, &at, NULL);
    if (!m->code)
        return bad(number, pattern, at, err);
    m->data = pcre2_match_data_create_from_pattern(m->code, NULL);
    m->context = pcre2_match_context_create(NULL);
    if (!m->data || !m->context)
        return tide_fail(err, TIDE_IO, "out of memory");
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    (void)pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE); /* without it the same, slower */
    *ret_match = TAKE(m);
    return TIDE_OK;
}

enum tide_code match_regex(struct str pattern, int flags, struct match **ret_match, struct tide_err *err)
{
    return compile_pattern(pattern, flags & MATCH_IGNORE_CASE ? PCRE2_CASELESS : 0, ret_match, err);
}

static enum match_answer answer_of(int rc)
{
    return rc >= 0                     ? MATCH_YES
           : rc == PCRE2_ERROR_NOMATCH ? MATCH_NO
           : rc == PCRE2_ERROR_PARTIAL ? MATCH_MORE
                                       : MATCH_HARD;
}

enum match_answer match_find(struct match *m, struct str text, size_t *ret_at)
{
    int rc = pcre2_match(m->code, (PCRE2_SPTR)text.ptr, text.len, 0, 0, m->data, m->context);

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(m->code, (PCRE2_SPTR)text.ptr, text.len, 0, PCRE2_NO_JIT, m->data, m->context);
    if (rc >= 0 && ret_at)
        *ret_at = pcre2_get_ovector_pointer(m->data)[0];
    return answer_of(rc);
}

enum match_answer match_could(struct match *m, struct str text)
{
    return answer_of(pcre2_match(m->code, (PCRE2_SPTR)text.ptr, text.len, 0, PCRE2_PARTIAL_HARD | PCRE2_NO_JIT, m->data,
                                 m->context));
}

/* ---- globs ---- */

struct translation {
    struct str glob;
    size_t at;
    int braces; /* that are open */
    struct buf *out;
};

static char peek_char(const struct translation *t, size_t ahead)
{
    return t->at + ahead < t->glob.len ? t->glob.ptr[t->at + ahead] : '\0';
}

static void translate_star(struct translation *t)
{
    bool begins = t->at == 0 || t->glob.ptr[t->at - 1] == '/' || t->glob.ptr[t->at - 1] == '{';

    if (peek_char(t, 1) != '*') {
        buf_add_str(t->out, STR("[^/]*"));
        t->at++;
        return;
    }
    while (peek_char(t, 0) == '*')
        t->at++;
    if (begins && peek_char(t, 0) == '/') { /* none as well: its slash goes with it */
        buf_add_str(t->out, STR("(?:.*/)?"));
        t->at++;
    } else {
        buf_add_str(t->out, STR(".*"));
    }
}

/* A set of characters up to its bracket; one without an end is a bracket. */
static void translate_set(struct translation *t)
{
    size_t end = t->at + 1 + (peek_char(t, 1) == '!' || peek_char(t, 1) == '^');
    size_t first = end;

    while (end < t->glob.len && (t->glob.ptr[end] != ']' || end == first))
        end++;
    if (end >= t->glob.len) {
        buf_add_str(t->out, STR("\\["));
        t->at++;
        return;
    }
    buf_add_str(t->out, first > t->at + 1 ? STR("(?!/)[^") : STR("(?!/)["));
    for (size_t i = first; i < end; i++) {
        if (strchr("\\[]^", t->glob.ptr[i]) || (t->glob.ptr[i] == '-' && i == first))
            buf_add_char(t->out, '\\');
        buf_add_char(t->out, t->glob.ptr[i]);
    }
    buf_add_char(t->out, ']');
    t->at = end + 1;
}

static void plain(struct translation *t)
{
    char c = peek_char(t, 0);

    if (c == '\\' && t->at + 1 < t->glob.len)
        c = t->glob.ptr[++t->at];
    if (strchr("\\^$.[|()?*+{}#-", c))
        buf_add_char(t->out, '\\');
    buf_add_char(t->out, c);
    t->at++;
}

static void piece(struct translation *t)
{
    char c = peek_char(t, 0);

    if (c == '*') {
        translate_star(t);
    } else if (c == '[') {
        translate_set(t);
    } else if (c == '?' || c == '{' || (t->braces > 0 && (c == ',' || c == '}'))) {
        buf_add_str(t->out, c == '?' ? STR("[^/]") : c == '{' ? STR("(?:") : c == ',' ? STR("|") : STR(")"));
        t->braces += (c == '{') - (c == '}');
        t->at++;
    } else {
        plain(t);
    }
}

enum tide_code match_glob(struct str pattern, struct match **ret_match, struct tide_err *err)
{
    struct buf regex = BUF_INIT(8 * PATTERN_MAX + 64);
    struct translation t = {.glob = pattern, .out = &regex};
    enum tide_code code;

    if (pattern.len == 0 || pattern.len > PATTERN_MAX / 8 || memchr(pattern.ptr, '\0', pattern.len))
        return tide_fail(err, TIDE_INVALID, "the pattern is empty, longer than %zu bytes or has a NUL in it",
                         PATTERN_MAX / 8);
    buf_add_str(&regex, STR("\\A(?:"));
    while (t.at < pattern.len)
        piece(&t);
    buf_add_str(&regex, STR(")\\z"));
    if (t.braces)
        code = tide_fail(err, TIDE_INVALID, "the pattern has a '{' without its '}'");
    else if ((code = compile_pattern(buf_view(&regex), PCRE2_DOTALL, ret_match, err)))
        code = tide_fail(err, TIDE_INVALID, "the pattern '%.*s' is not a valid glob",
                         (int)(pattern.len < 100 ? pattern.len : 100), pattern.ptr);
    buf_done(&regex);
    return code;
}
