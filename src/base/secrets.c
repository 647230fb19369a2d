/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two halves. What is looked for: each value in the few forms that no decoding undoes (plain, base64). Where: the text as it
 * is, then with its backslash escapes undone, then with those and its percent escapes undone again and again, while that
 * changes anything. So whichever characters were escaped, however often, the plain value comes to light. A value that holds
 * such escapes itself is changed by that as well: it is looked for in the forms that decoding makes of it, too.
 *
 * base64 of a value that begins at byte k of a group of three (k = 0, 1, 2): the characters that depend on nothing else
 *
 *      bits     |8k .............. 8(k+n)|             first: 8k/6 rounded up, end: 8(k+n)/6 rounded down
 *      chars  . |.  [####################]  .|         one beside them may hold a few bits of it, and goes with them
 */
#include "base/secrets.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/invariant.h"
#include "base/mem.h"
#include "base/needles.h"
#include "base/undo_escapes.h"
#include "base/utf8.h"

#define LINE_MIN 16 /* bytes of a line of a value that is looked for by itself */
#define ROUNDS 4    /* of undoing escapes */
#define NAME_MAX_BYTES 40
#define HALF_MIN 4       /* bytes of a secret that was cut */
#define STARS "********" /* not longer than anything that is found */

struct secret {
    char *mark;
    struct str value; /* malloc */
    size_t holders;
    bool stays; /* also without one */
};

/* How a found text is to be widened: one character of base64 beside it that holds bits of the secret. */
struct form {
    size_t secret;
    bool before, behind;
};

struct secrets {
    pthread_rwlock_t lock;
    atomic_bool any;
    struct secret *list;
    size_t n, cap;
    /* Made of them when first needed. */
    struct needles *needles;
    struct str *texts;
    struct form *forms;
    size_t n_forms, cap_forms, longest;
};

struct range {
    size_t from, to, secret;
};
struct ranges {
    struct range *at;
    size_t n, cap;
};

/* ---- what is looked for ---- */

static void add_form(struct secrets *s, struct str text, struct form form)
{
    if (text.len < NEEDLE_MIN)
        return;
    for (size_t i = s->n_forms; i > 0 && s->forms[i - 1].secret == form.secret; i--)
        if (str_eq(s->texts[i - 1], text))
            return;
    if (s->n_forms == s->cap_forms) {
        s->cap_forms = s->cap_forms * 2 + 64;
        s->texts = mem_grow(s->texts, s->cap_forms * sizeof(*s->texts));
        s->forms = mem_grow(s->forms, s->cap_forms * sizeof(*s->forms));
    }
    s->texts[s->n_forms] = (struct str){mem_dup(text), text.len};
    s->forms[s->n_forms++] = form;
    s->longest = text.len > s->longest ? text.len : s->longest;
}

static void add_base64(struct secrets *s, struct str value, size_t secret, size_t shift, const char *digits)
{
    size_t first = (8 * shift + 5) / 6, end = 8 * (shift + value.len) / 6;
    struct buf text = BUF_INIT(SIZE_MAX / 4);

    for (size_t c = first; c < end; c++) {
        size_t bit = 6 * c - 8 * shift;
        unsigned high = (unsigned char)value.ptr[bit / 8],
                 low = bit / 8 + 1 < value.len ? (unsigned char)value.ptr[bit / 8 + 1] : 0;

        buf_add_char(&text, digits[(high << 8 | low) >> (10 - bit % 8) & 63]);
    }
    add_form(s, buf_view(&text), (struct form){secret, shift > 0, 8 * (shift + value.len) % 6 != 0});
    if (text.ptr)
        explicit_bzero(text.ptr, text.cap);
    buf_done(&text);
}

static void add_base64_forms(struct secrets *s, struct str value, size_t secret)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                      url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t shift = 0; shift < 3; shift++) {
        add_base64(s, value, secret, shift, digits);
        add_base64(s, value, secret, shift, url_digits);
    }
}

/* Which characters writers of JSON escape beside those that must be. */
enum escapes { ESCAPE_SLASH = 1, ESCAPE_HTML = 2, ESCAPE_ALL = 4 };

static void add_unit(struct buf *out, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";

    buf_add_str(out, STR("\\u"));
    for (int shift = 12; shift >= 0; shift -= 4)
        buf_add_char(out, hex[unit >> shift & 15]);
}

/* One character of n bytes (0: it is none, but a byte). */
static void add_escaped(struct buf *out, const char *p, size_t n, unsigned escapes)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *letter = *p ? strchr(from, *p) : NULL;
    uint32_t c = n ? utf8_get(p, n) : 0x20;

    if (letter || (*p == '/' && escapes & ESCAPE_SLASH)) {
        buf_add_char(out, '\\');
        buf_add_char(out, letter ? to[letter - from] : '/');
    } else if (c >= 0x10000 && escapes & ESCAPE_ALL) {
        add_unit(out, 0xd800 + ((c - 0x10000) >> 10));
        add_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
    } else if (c < 0x20 || (c > 0x7f && escapes & ESCAPE_ALL) || (escapes & ESCAPE_HTML && strchr("<>&", *p))) {
        add_unit(out, c);
    } else {
        buf_add(out, p, n ? n : 1);
    }
}

/* What hides in base64 hides from undoing escapes, so the ways in which JSON is commonly written are looked for there. */
static void add_base64_of_json(struct secrets *s, struct str value, size_t secret)
{
    static const unsigned ways[] = {0, ESCAPE_ALL, ESCAPE_SLASH, ESCAPE_SLASH | ESCAPE_ALL, ESCAPE_HTML};

    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        struct buf text = BUF_INIT(SIZE_MAX / 4);

        for (size_t i = 0, n; i < value.len; i += n ? n : 1) {
            n = utf8_len(value.ptr + i, value.len - i);
            add_escaped(&text, value.ptr + i, n, ways[way]);
        }
        if (text.len != value.len)
            add_base64_forms(s, buf_view(&text), secret);
        explicit_bzero(text.ptr, text.cap);
        buf_done(&text);
    }
}

/* The forms that a search in decoded text meets. */
static void add_plain(struct secrets *s, struct str value, size_t secret)
{
    const struct decoded none = {NULL, 0, NULL};
    struct decoded d = {NULL, 0, NULL}, more;

    add_form(s, value, (struct form){secret, false, false});
    if (undo_encoding(value, &none, UNDO_BACKSLASHES, false, &d))
        add_form(s, (struct str){d.text, d.len}, (struct form){secret, false, false});
    for (int i = 0; i < ROUNDS; i++) {
        if (!undo_encoding(d.text ? (struct str){d.text, d.len} : value, &none, UNDO_ALL, false, &more))
            break;
        decoded_done(&d);
        d = more;
        add_form(s, (struct str){d.text, d.len}, (struct form){secret, false, false});
    }
    decoded_done(&d);
}

/* A form's blank is a plus. */
static void add_pluses(struct secrets *s, struct str value, size_t secret)
{
    char *text = mem_dup(value);

    for (size_t i = 0; i < value.len; i++)
        text[i] = text[i] == ' ' ? '+' : text[i];
    add_plain(s, (struct str){text, value.len}, secret);
    explicit_bzero(text, value.len);
    free(text);
}

static void add_lines(struct secrets *s, struct str value, size_t secret)
{
    while (value.len) {
        const char *end = memchr(value.ptr, '\n', value.len);
        size_t n = end ? (size_t)(end - value.ptr) : value.len, len = n && value.ptr[n - 1] == '\r' ? n - 1 : n;
        struct str line = {value.ptr, len};

        if (len >= LINE_MIN && !str_starts(line, STR("-----")))
            add_plain(s, line, secret);
        n += end != NULL;
        value = (struct str){value.ptr + n, value.len - n};
    }
}

static void forget_forms(struct secrets *s)
{
    for (size_t i = 0; i < s->n_forms; i++) {
        explicit_bzero((char *)(uintptr_t)s->texts[i].ptr, s->texts[i].len);
        free((char *)(uintptr_t)s->texts[i].ptr);
    }
    needles_free(TAKE(s->needles));
    free(TAKE(s->texts));
    free(TAKE(s->forms));
    s->n_forms = s->cap_forms = s->longest = 0;
}

static void build_needles(struct secrets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct str value = s->list[i].value;

        add_plain(s, value, i);
        if (memchr(value.ptr, ' ', value.len))
            add_pluses(s, value, i);
        if (memchr(value.ptr, '\n', value.len))
            add_lines(s, value, i);
        add_base64_forms(s, value, i);
        add_base64_of_json(s, value, i);
    }
    s->needles = needles_new(s->texts, s->n_forms);
}

/* Holds the lock for reading, with everything made. */
static void hold_needles(struct secrets *s)
{
    pthread_rwlock_rdlock(&s->lock);
    while (!s->needles) {
        pthread_rwlock_unlock(&s->lock);
        pthread_rwlock_wrlock(&s->lock);
        if (!s->needles)
            build_needles(s);
        pthread_rwlock_unlock(&s->lock);
        pthread_rwlock_rdlock(&s->lock);
    }
}

/* ---- the set ---- */

struct secrets *secrets_new(void)
{
    struct secrets *s = mem_zero(sizeof(*s));

    pthread_rwlock_init(&s->lock, NULL);
    return s;
}

static void wipe_secret(struct secret *one)
{
    explicit_bzero((char *)(uintptr_t)one->value.ptr, one->value.len);
    free((char *)(uintptr_t)one->value.ptr);
    free(one->mark);
}

void secrets_free(struct secrets *s)
{
    if (!s)
        return;
    forget_forms(s);
    for (size_t i = 0; i < s->n; i++)
        wipe_secret(&s->list[i]);
    free(s->list);
    pthread_rwlock_destroy(&s->lock);
    free(s);
}

/* A name that holds the value would show it. */
static char *make_mark(struct str name, struct str value)
{
    struct buf mark = BUF_INIT(256);
    bool named = name.len && !memmem(name.ptr, name.len, value.ptr, value.len);

    name.len = name.len < NAME_MAX_BYTES ? name.len : NAME_MAX_BYTES;
    buf_add_str(&mark, STR(SECRET_MARK));
    if (named)
        buf_add_char(&mark, ':');
    for (size_t i = 0; i < name.len && named; i++) {
        char c = name.ptr[i];

        buf_add_char(&mark, (is_base64(c) && c != '+' && c != '/') || c == '.' ? c : '_');
    }
    buf_add_char(&mark, ']');
    return buf_take(&mark);
}

/* Where no mark can stand in its place, it is no secret. */
static bool can_be_secret(struct str value)
{
    return value.len >= SECRET_MIN && value.len <= SECRET_MAX &&
           !memmem(SECRET_MARK ":]", strlen(SECRET_MARK ":]"), value.ptr, value.len);
}

/* With the lock. */
static struct secret *find_secret(struct secrets *s, struct str value)
{
    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->list[i].value, value))
            return &s->list[i];
    return NULL;
}

/* With the lock. NULL: there are too many. */
static struct secret *put_secret(struct secrets *s, struct str name, struct str value)
{
    struct secret *one = find_secret(s, value);

    if (one || s->n >= SECRETS_MAX)
        return one;
    MEM_ROOM(s->list, s->n, s->cap);
    s->list[s->n] = (struct secret){make_mark(name, value), {mem_dup(value), value.len}, 0, false};
    forget_forms(s);
    atomic_store(&s->any, true);
    return &s->list[s->n++];
}

bool secrets_add(struct secrets *s, struct str name, struct str value)
{
    struct secret *one = NULL;

    value = str_trim(value);
    if (!can_be_secret(value))
        return false;
    pthread_rwlock_wrlock(&s->lock);
    one = put_secret(s, name, value);
    if (one)
        one->stays = true;
    pthread_rwlock_unlock(&s->lock);
    return one != NULL;
}

bool secrets_hold(struct secrets *s, struct str name, struct str value)
{
    struct secret *one = NULL;

    value = str_trim(value);
    if (!can_be_secret(value))
        return false;
    pthread_rwlock_wrlock(&s->lock);
    one = put_secret(s, name, value);
    if (one)
        one->holders++;
    pthread_rwlock_unlock(&s->lock);
    return one != NULL;
}

void secrets_release(struct secrets *s, struct str value)
{
    struct secret *one;

    value = str_trim(value);
    pthread_rwlock_wrlock(&s->lock);
    one = find_secret(s, value);
    INVARIANT(one && one->holders > 0);
    if (--one->holders == 0 && !one->stays) {
        wipe_secret(one);
        *one = s->list[--s->n];
        forget_forms(s);
        atomic_store(&s->any, s->n > 0);
    }
    pthread_rwlock_unlock(&s->lock);
}

/* ---- finding ---- */

/* True: something is there; with `ranges` all of it is taken down, in places of the first text. */
static bool look_for_secrets(const struct secrets *s, struct str text, const struct decoded *of, struct ranges *ranges)
{
    size_t at = 0, which, n = 0;

    for (; needles_find(s->needles, text, at, &at, &which); at++, n++) {
        const struct form *f = &s->forms[which];
        size_t from = at, to = at + s->texts[which].len;

        if (!ranges)
            return true;
        from -= f->before && from > 0 && is_base64(text.ptr[from - 1]);
        to += f->behind && to < text.len && is_base64(text.ptr[to]);
        MEM_ROOM(ranges->at, ranges->n, ranges->cap);
        ranges->at[ranges->n++] = (struct range){place_of(of, from).from, place_of(of, to - 1).to, f->secret};
    }
    return n > 0;
}

/* The text, and what undoing its escapes makes of it. */
static bool look_through(const struct secrets *s, struct str text, struct ranges *ranges)
{
    const struct decoded none = {NULL, 0, NULL};
    struct decoded d = none, more;
    bool found = look_for_secrets(s, text, &none, ranges);

    if ((!found || ranges) && undo_encoding(text, &none, UNDO_BACKSLASHES, ranges, &d))
        found |= look_for_secrets(s, (struct str){d.text, d.len}, &d, ranges);
    for (int i = 0; i < ROUNDS && (!found || ranges); i++) {
        if (!undo_encoding(d.text ? (struct str){d.text, d.len} : text, &d, UNDO_ALL, ranges, &more))
            break;
        decoded_done(&d);
        d = more;
        found |= look_for_secrets(s, (struct str){d.text, d.len}, &d, ranges);
    }
    decoded_done(&d);
    return found;
}

bool secrets_find(struct secrets *s, struct str text)
{
    bool found;

    if (!s || !atomic_load_explicit(&s->any, memory_order_relaxed) || text.len < SECRET_MIN)
        return false;
    hold_needles(s);
    found = look_through(s, text, NULL);
    pthread_rwlock_unlock(&s->lock);
    return found;
}

/* ---- cleaning ---- */

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to != y->to ? (x->to > y->to ? -1 : 1) : 0;
}

/* What overlaps becomes one. */
static void merge_ranges(struct ranges *r)
{
    size_t n = 0;

    if (!r->n)
        return;
    qsort(r->at, r->n, sizeof(*r->at), by_place);
    for (size_t i = 0; i < r->n; i++) {
        if (n && r->at[i].from < r->at[n - 1].to)
            r->at[n - 1].to = r->at[i].to > r->at[n - 1].to ? r->at[i].to : r->at[n - 1].to;
        else
            r->at[n++] = r->at[i];
    }
    r->n = n;
}

static void write_clean(const struct secrets *s, struct str text, const struct ranges *r, bool marks, struct buf *ret)
{
    size_t at = 0;

    for (size_t i = 0; i < r->n; i++) {
        buf_add(ret, text.ptr + at, r->at[i].from - at);
        buf_add_str(ret, marks ? str_from(s->list[r->at[i].secret].mark) : STR(STARS));
        at = r->at[i].to;
    }
    buf_add(ret, text.ptr + at, text.len - at);
}

bool secrets_clean(struct secrets *s, struct str text, struct buf *ret)
{
    struct ranges r = {NULL, 0, 0};
    size_t before = ret->len;
    bool found = false;

    if (!s || !atomic_load_explicit(&s->any, memory_order_relaxed) || text.len < SECRET_MIN)
        return false;
    hold_needles(s);
    if (look_through(s, text, NULL)) {
        found = look_through(s, text, &r);
        merge_ranges(&r);
        write_clean(s, text, &r, true, ret);
        if (ret->failed) {
            ret->failed = false;
            ret->len = before;
            write_clean(s, text, &r, false, ret);
        }
    }
    pthread_rwlock_unlock(&s->lock);
    free(r.at);
    return found;
}

/* ---- pieces ---- */

/* Whether the text, or what undoing its escapes makes of it, is the beginning of something that is looked for. */
static bool may_begin(const struct secrets *s, struct str text)
{
    for (size_t i = 0; i < s->n_forms; i++)
        if (text.len < s->texts[i].len && s->texts[i].ptr[0] == text.ptr[0] && str_starts(s->texts[i], text))
            return true;
    return false;
}

/* Without the escape at its end that is not whole yet. */
static struct str without_half(struct str text)
{
    size_t from = text.len > 11 ? text.len - 11 : 0; /* \uXXXX\uXXX */
    char out[4];

    for (size_t i = from, used; i < text.len; i++) {
        const char *p = text.ptr + i, *end = text.ptr + text.len;

        if ((*p == '%' && end - p < 3) || (*p == '\\' && !undo_backslash(p, end, out, &used)))
            return (struct str){text.ptr, i};
    }
    return text;
}

static bool may_begin_escaped(const struct secrets *s, struct str text)
{
    const struct decoded none = {NULL, 0, NULL};
    struct str whole = without_half(text);
    struct decoded d;
    bool may;

    if (!whole.len || may_begin(s, text) || may_begin(s, whole))
        return true;
    if (!undo_encoding(whole, &none, UNDO_ALL, false, &d))
        return false;
    may = d.len > 0 && may_begin_escaped(s, (struct str){d.text, d.len});
    decoded_done(&d);
    return may;
}

/* How much of the text can be shown: up to where something may begin that has not come to its end. */
static size_t settled(const struct secrets *s, struct str text)
{
    size_t most = s->longest * 6, from = text.len > most ? text.len - most : 0; /* each character as \uXXXX */
    struct ranges r = {NULL, 0, 0};

    while (from < text.len && !may_begin_escaped(s, (struct str){text.ptr + from, text.len - from}))
        from++;
    look_through(s, text, &r);
    merge_ranges(&r);
    for (size_t i = r.n; i-- > 0;)
        if (r.at[i].from < from && (r.at[i].to > from || r.at[i].to == text.len))
            from = r.at[i].from;
    free(r.at);
    return from;
}

void secret_stream_put(struct secrets *s, struct secret_stream *stream, struct str piece, bool last, struct buf *ret)
{
    struct buf *held = &stream->held;
    size_t n;

    if (!s || !atomic_load_explicit(&s->any, memory_order_relaxed)) {
        buf_add_str(ret, buf_view(held));
        buf_add_str(ret, piece);
        buf_clear(held);
        return;
    }
    buf_add_str(held, piece);
    hold_needles(s);
    n = last ? held->len : settled(s, buf_view(held));
    pthread_rwlock_unlock(&s->lock);
    if (!secrets_clean(s, (struct str){held->ptr, n}, ret))
        buf_add(ret, held->ptr, n);
    if (n)
        memmove(held->ptr, held->ptr + n, held->len - n);
    held->len -= n;
}

/* ---- texts that were cut ---- */

size_t secrets_cut_end(struct secrets *s, struct str text)
{
    size_t n;

    if (!s || !atomic_load_explicit(&s->any, memory_order_relaxed))
        return 0;
    hold_needles(s);
    n = text.len - settled(s, text);
    pthread_rwlock_unlock(&s->lock);
    return n < HALF_MIN ? 0 : n;
}

static bool ends_form(const struct secrets *s, struct str text)
{
    for (size_t i = 0; i < s->n_forms; i++)
        if (text.len < s->texts[i].len && memcmp(s->texts[i].ptr + s->texts[i].len - text.len, text.ptr, text.len) == 0)
            return true;
    return false;
}

size_t secrets_cut_begin(struct secrets *s, struct str text)
{
    size_t n;

    if (!s || !atomic_load_explicit(&s->any, memory_order_relaxed))
        return 0;
    hold_needles(s);
    n = s->longest < text.len ? s->longest : text.len;
    while (n >= HALF_MIN && !ends_form(s, (struct str){text.ptr, n}))
        n--;
    pthread_rwlock_unlock(&s->lock);
    return n < HALF_MIN ? 0 : n;
}

void secrets_clean_line(struct secrets *s, char *text, size_t size)
{
    AUTO(buf_done) struct buf clean = BUF_INIT(SIZE_MAX / 4);
    struct str cut = str_from(text);

    if (cut.len + 1 == size)
        text[cut.len -= secrets_cut_end(s, cut)] = '\0';
    if (!secrets_clean(s, cut, &clean))
        return;
    cut = utf8_clip(buf_view(&clean), size - 1);
    memcpy(text, cut.ptr, cut.len);
    text[cut.len] = '\0';
}
