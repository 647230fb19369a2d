/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a condition in Python: names, numbers, texts with their escapes, and signs. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"
#include "graph/expr_python.h"

void py_fail(struct py_reader *r, size_t at, const char *fmt, ...)
{
    char what[200];
    size_t line = 1, column = 1;
    va_list ap;

    if (r->failed)
        return;
    for (size_t i = 0; i < at && i < r->source.len; i++) {
        bool end = r->source.ptr[i] == '\n';

        line += end;
        column = end ? 1 : column + !utf8_is_tail(r->source.ptr[i]);
    }
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    tide_fail(r->err, TIDE_INVALID, "line %zu, column %zu: %s", line, column, what);
    r->failed = true;
    r->now.word = PY_BAD;
}

static int peek_char(const struct py_reader *r, size_t ahead)
{
    return ahead < r->source.len - r->at ? (unsigned char)r->source.ptr[r->at + ahead] : -1;
}

static bool is_name(int c)
{
    return c == '_' || c >= 0x80 || (c > 0 && isalnum(c));
}

static void skip_blanks(struct py_reader *r)
{
    for (int c; (c = peek_char(r, 0)) >= 0; r->at++) {
        if (c == '#')
            while (peek_char(r, 1) >= 0 && peek_char(r, 1) != '\n')
                r->at++;
        else if (c == '\\' && peek_char(r, 1) == '\n')
            r->at++;
        else if (!strchr(" \t\r\n\f", c) || c == '\0')
            break;
        else if (c == '\n' && r->brackets == 0 && r->now.word != PY_END)
            break;
    }
}

/* A line end outside of brackets: only blanks may follow. */
static bool at_last_line_end(struct py_reader *r)
{
    while (peek_char(r, 0) >= 0 && is_blank_char((char)peek_char(r, 0)))
        r->at++;
    return peek_char(r, 0) < 0;
}

/* ---- numbers ---- */

static size_t digits(struct py_reader *r, struct buf *out, int (*is)(int))
{
    size_t n = 0;

    for (int c; (c = peek_char(r, 0)) >= 0; r->at++) {
        if (c == '_' && n > 0 && peek_char(r, 1) >= 0 && is(peek_char(r, 1)))
            continue;
        if (!is(c))
            break;
        buf_add_char(out, (char)c);
        n++;
    }
    return n;
}

static int is_octal(int c)
{
    return c >= '0' && c <= '7';
}

static int is_binary(int c)
{
    return c == '0' || c == '1';
}

/* 0x, 0o and 0b: by their value, since Lua has only the first. */
static void radix(struct py_reader *r, struct buf *out, int base, int (*is)(int))
{
    uint64_t value = 0;
    size_t start = r->at;

    r->at += 2;
    if (digits(r, out, is) == 0)
        py_fail(r, start, "a number without digits");
    for (size_t i = 0; i < out->len; i++) {
        char c = out->ptr[i];
        uint64_t digit = isdigit((unsigned char)c) ? (uint64_t)(c - '0') : (uint64_t)(tolower(c) - 'a' + 10);

        if (value > ((uint64_t)INT64_MAX - digit) / (uint64_t)base)
            return py_fail(r, start, "a whole number that does not fit in 64 bits");
        value = value * (uint64_t)base + digit;
    }
    buf_clear(out);
    buf_add_int(out, (int64_t)value);
}

static void exponent(struct py_reader *r, struct buf *out)
{
    size_t sign = peek_char(r, 1) == '+' || peek_char(r, 1) == '-' ? 1 : 0;

    if (tolower(peek_char(r, 0)) != 'e' || peek_char(r, 1 + sign) < 0 || !isdigit(peek_char(r, 1 + sign)))
        return;
    buf_add(out, r->source.ptr + r->at, 1 + sign);
    r->at += 1 + sign;
    digits(r, out, isdigit);
}

static void decimal(struct py_reader *r, struct buf *out)
{
    size_t start = r->at;
    int64_t whole;
    struct str text;

    digits(r, out, isdigit);
    if (peek_char(r, 0) == '.') {
        buf_add_char(out, '.');
        r->at++;
        digits(r, out, isdigit);
    }
    exponent(r, out);
    text = buf_view(out);
    if (memchr(text.ptr, '.', text.len) || memchr(text.ptr, 'e', text.len) || memchr(text.ptr, 'E', text.len))
        return;
    if (!str_to_int64(text, &whole))
        py_fail(r, start, "a whole number that does not fit in 64 bits, or begins with 0");
}

static void number(struct py_reader *r)
{
    struct buf out = BUF_INIT(4096);
    size_t start = r->at;
    int base = peek_char(r, 0) == '0' ? tolower(peek_char(r, 1)) : 0;

    if (base == 'x')
        radix(r, &out, 16, isxdigit);
    else if (base == 'o')
        radix(r, &out, 8, is_octal);
    else if (base == 'b')
        radix(r, &out, 2, is_binary);
    else
        decimal(r, &out);
    if (!r->failed && out.failed)
        py_fail(r, start, "a number with too many digits");
    else if (!r->failed && (peek_char(r, 0) == 'j' || peek_char(r, 0) == 'J'))
        py_fail(r, start, "complex numbers have no counterpart");
    else if (!r->failed && is_name(peek_char(r, 0)))
        py_fail(r, r->at, "a number followed by letters");
    if (!r->failed)
        r->now = (struct py_token){PY_NUMBER, arena_dup(r->arena, buf_view(&out)), start};
    buf_done(&out);
}

/* ---- texts ---- */

/* The character that so many digits behind the escape say. */
static void by_code(struct py_reader *r, struct buf *out, unsigned most, unsigned least, int base)
{
    char bytes[4];
    uint32_t c = 0;
    unsigned n = 0;
    size_t len;

    for (int d; n < most && (d = peek_char(r, 0)) >= 0 && (base == 8 ? is_octal(d) : isxdigit(d)); n++, r->at++)
        c = c * (uint32_t)base + (uint32_t)(isdigit(d) ? d - '0' : tolower(d) - 'a' + 10);
    if (n < least || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
        py_fail(r, r->at, "an escape that is not a character");
        return;
    }
    len = utf8_put(bytes, c);
    buf_add(out, bytes, len);
}

/* Behind a backslash. */
static void read_escape(struct py_reader *r, struct buf *out)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    int c = peek_char(r, 0);
    const char *simple = c > 0 ? strchr(from, c) : NULL;

    if (c < 0)
        return;
    if (is_octal(c)) {
        by_code(r, out, 3, 1, 8);
        return;
    }
    r->at++;
    if (simple)
        buf_add_char(out, to[simple - from]);
    else if (c == 'x')
        by_code(r, out, 2, 2, 16);
    else if (c == 'u')
        by_code(r, out, 4, 4, 16);
    else if (c == 'U')
        by_code(r, out, 8, 8, 16);
    else if (c == 'N')
        py_fail(r, r->at - 2, "\\N{…} has no counterpart: write the character");
    else if (c != '\n') {
        buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
    }
}

static bool at_quotes(const struct py_reader *r, int quote, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (peek_char(r, i) != quote)
            return false;
    return true;
}

static void text_body(struct py_reader *r, struct buf *out, bool raw, size_t start)
{
    int quote = peek_char(r, 0);
    size_t n = at_quotes(r, quote, 3) ? 3 : 1;

    r->at += n;
    while (!r->failed && !at_quotes(r, quote, n)) {
        int c = peek_char(r, 0);

        if (c < 0 || (c == '\n' && n == 1))
            return py_fail(r, start, "a text that does not end");
        r->at++;
        if (c == '\\' && !raw) {
            read_escape(r, out);
            continue;
        }
        buf_add_char(out, (char)c);
        if (c == '\\' && peek_char(r, 0) >= 0) /* a raw text keeps both */
            buf_add_char(out, r->source.ptr[r->at++]);
    }
    r->at += r->failed ? 0 : n;
}

/* The length of what stands before a quote and says how to read it; -1 when no text begins here. */
static int prefix_len(const struct py_reader *r)
{
    int n = 0;

    while (n < 2 && peek_char(r, (size_t)n) > 0 && strchr("rRbBuUfF", peek_char(r, (size_t)n)))
        n++;
    return peek_char(r, (size_t)n) == '\'' || peek_char(r, (size_t)n) == '"' ? n : -1;
}

/* Texts that stand side by side are one. */
static void text(struct py_reader *r)
{
    struct buf out = BUF_INIT((size_t)1 << 20);
    size_t start = r->at;

    for (int n; !r->failed && (n = prefix_len(r)) >= 0; skip_blanks(r)) {
        bool raw = false;

        for (; n > 0; n--, r->at++) {
            int c = tolower(peek_char(r, 0));

            raw |= c == 'r';
            if (c == 'f' || c == 'b')
                py_fail(r, start, c == 'f' ? "f-strings have no counterpart" : "bytes (b'…') have no counterpart");
        }
        if (!r->failed)
            text_body(r, &out, raw, r->at);
    }
    if (!r->failed && (out.failed || !str_is_utf8(buf_view(&out), NULL)))
        py_fail(r, start, out.failed ? "a text that is too long" : "a text that is not UTF-8");
    if (!r->failed)
        r->now = (struct py_token){PY_STRING, arena_dup(r->arena, buf_view(&out)), start};
    buf_done(&out);
}

/* ---- names and signs ---- */

static void name(struct py_reader *r)
{
    size_t start = r->at;

    while (is_name(peek_char(r, 0)))
        r->at++;
    r->now = (struct py_token){PY_NAME, {r->source.ptr + start, r->at - start}, start};
    if (!str_is_utf8(r->now.text, NULL))
        py_fail(r, start, "a name that is not UTF-8");
    else if (str_starts(r->now.text, STR("__")))
        py_fail(r, start, "names that begin with __ are not for conditions");
}

static void sign(struct py_reader *r)
{
    static const char *const signs[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", "==", "!=", "<=", ">=", "<<",
                                        ">>",  ":=",  "->",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@="};
    struct str rest = {r->source.ptr + r->at, r->source.len - r->at};
    size_t n = 1;

    for (size_t i = 0; n == 1 && i < sizeof signs / sizeof signs[0]; i++)
        if (str_starts(rest, str_from(signs[i])))
            n = strlen(signs[i]);
    r->now = (struct py_token){PY_SIGN, {rest.ptr, n}, r->at};
    if (!strchr("+-*/%()[]{}<>=!.,:&|^~@", *rest.ptr) || !*rest.ptr) {
        if (isprint((unsigned char)*rest.ptr))
            py_fail(r, r->at, "'%c' has no place in a condition", *rest.ptr);
        else
            py_fail(r, r->at, "a character that has no place in a condition");
    }
    r->brackets += strchr("([{", *rest.ptr) ? 1 : 0;
    r->brackets -= strchr(")]}", *rest.ptr) && r->brackets > 0 ? 1 : 0;
    r->at += n;
}

void py_next(struct py_reader *r)
{
    int c;

    if (r->failed)
        return;
    skip_blanks(r);
    c = peek_char(r, 0);
    if (c == '\n' && !at_last_line_end(r))
        return py_fail(r, r->at, "a second line: a condition is one expression");
    c = peek_char(r, 0);
    if (c < 0)
        r->now = (struct py_token){PY_END, STR("the end"), r->source.len};
    else if (prefix_len(r) >= 0)
        text(r);
    else if (isdigit(c) || (c == '.' && peek_char(r, 1) >= 0 && isdigit(peek_char(r, 1))))
        number(r);
    else if (is_name(c))
        name(r);
    else
        sign(r);
}
