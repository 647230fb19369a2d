/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are stored nowhere: found in what a node gives, masked in what is said about it. What counts is every text of
 * four bytes and more inside a secret (credentials may be an object), and a number that is the secret itself. Words about
 * a failure may show it as JSON writes it, or one line of it: masking knows these too, finding does not need them.
 */
#include "graph/node_work_internal.h"

#define SHORTEST 4 /* bytes: shorter ones would be found everywhere */

struct needle {
    struct str text;
    const char *key; /* whose */
};
struct needles {
    struct needle *at;
    size_t n, cap;
};
enum forms { AS_IT_IS, ALL_FORMS };

/* ---- what to look for ---- */

static void add_needle(struct arena *a, struct needles *n, struct str text, const char *key)
{
    if (text.len < SHORTEST)
        return;
    if (n->n == n->cap) {
        struct needle *more = arena_alloc(a, (n->cap * 2 + 8) * sizeof(*more));

        if (n->n > 0)
            memcpy(more, n->at, n->n * sizeof(*more));
        n->at = more;
        n->cap = n->cap * 2 + 8;
    }
    n->at[n->n++] = (struct needle){text, key};
}

static void add_forms(struct arena *a, struct needles *n, struct str text, const char *key)
{
    AUTO(buf_done) struct buf quoted = BUF_INIT(text.len * 6 + 2);
    struct str line = text;

    json_quote(&quoted, text);
    if (quoted.len > text.len + 2)
        add_needle(a, n, arena_dup(a, (struct str){quoted.ptr + 1, quoted.len - 2}), key);
    for (const char *end; (end = memchr(line.ptr, '\n', line.len));) {
        size_t len = (size_t)(end - line.ptr);

        add_needle(a, n, (struct str){line.ptr, len > 0 && line.ptr[len - 1] == '\r' ? len - 1 : len}, key);
        line = (struct str){end + 1, line.len - len - 1};
    }
    if (line.len < text.len)
        add_needle(a, n, line, key);
}

static void add_texts(struct arena *a, struct needles *n, const struct json *v, const char *key, enum forms forms)
{
    if (v->type == JSON_STRING) {
        struct str text = json_text(a, v);

        add_needle(a, n, text, key);
        if (forms == ALL_FORMS)
            add_forms(a, n, text, key);
    }
    for (const struct json *item = v->first; item; item = item->next)
        add_texts(a, n, item, key, forms);
}

static void add_secret(struct arena *a, struct needles *n, const struct json *v, struct str key, enum forms forms)
{
    const char *name = arena_dup(a, key).ptr;

    if (v->type == JSON_NUMBER)
        add_needle(a, n, v->raw, name);
    else
        add_texts(a, n, v, name, forms);
}

/* A value that is no JSON is taken as the text it is. */
static struct needles needles_of(struct arena *a, const struct node_work_secret *secrets, size_t n, enum forms forms)
{
    struct needles all = {NULL, 0, 0};

    for (size_t i = 0; i < n; i++) {
        struct json *v = NULL;

        if (secrets[i].json.len == 0)
            continue;
        if (json_parse(a, secrets[i].json, NULL, &v, NULL, NULL))
            add_needle(a, &all, secrets[i].json, arena_dup(a, secrets[i].key).ptr);
        else
            add_secret(a, &all, v, secrets[i].key, forms);
    }
    return all;
}

/* ---- masking ---- */

/* Marks first, changes afterwards: one secret may be part of another, or overlap it. */
static void mark_all(const char *text, size_t len, const struct needles *n, char *marks)
{
    for (size_t i = 0; i < n->n; i++) {
        struct str word = n->at[i].text;
        const char *at = text;

        while ((at = memmem(at, len - (size_t)(at - text), word.ptr, word.len))) {
            memset(marks + (at - text), 1, word.len);
            at++;
        }
    }
}

/* The end of a secret at the beginning of the text, the beginning of one at its end. */
static void mark_halves(const char *text, size_t len, const struct needles *n, char *marks)
{
    for (size_t i = 0; i < n->n; i++) {
        struct str word = n->at[i].text;
        bool front = false, back = false;

        for (size_t k = word.len - 1 < len ? word.len - 1 : len; k >= SHORTEST; k--) {
            if (!front && memcmp(text, word.ptr + word.len - k, k) == 0) {
                front = true;
                memset(marks, 1, k);
            }
            if (!back && memcmp(text + len - k, word.ptr, k) == 0) {
                back = true;
                memset(marks + len - k, 1, k);
            }
        }
    }
}

static void apply_marks(char *text, size_t len, const char *marks)
{
    for (size_t i = 0; i < len; i++)
        if (marks[i])
            text[i] = '*';
}

void node_work_mask(char *text, size_t len, const struct node_work_secret *secrets, size_t n)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct needles all;
    char *marks;

    if (n == 0 || len < SHORTEST)
        return;
    all = needles_of(&a, secrets, n, ALL_FORMS);
    marks = arena_zero(&a, len);
    mark_all(text, len, &all, marks);
    apply_marks(text, len, marks);
}

const char *node_work_piece(struct arena *a, const struct node_work *b, struct str piece)
{
    char *copy = (char *)(uintptr_t)arena_dup(a, piece).ptr, *marks = arena_zero(a, piece.len + 1);
    struct needles all = needles_of(a, b->secrets, b->n_secrets, ALL_FORMS);

    mark_all(copy, piece.len, &all, marks);
    mark_halves(copy, piece.len, &all, marks);
    apply_marks(copy, piece.len, marks);
    for (size_t i = 0; i < piece.len; i++) /* a NUL would end what is said */
        copy[i] = copy[i] ? copy[i] : '?';
    return copy;
}

/* ---- finding ---- */

static const struct needle *find_in(const struct needles *n, struct str text)
{
    for (size_t i = 0; i < n->n; i++)
        if (text.len >= n->at[i].text.len && memmem(text.ptr, text.len, n->at[i].text.ptr, n->at[i].text.len))
            return &n->at[i];
    return NULL;
}

static const struct needle *find_secrets(struct arena *a, const struct needles *n, const struct json *v)
{
    const struct needle *found = NULL;

    if (v->key.len > 0)
        found = find_in(n, json_key_text(a, v));
    if (!found && v->type == JSON_STRING)
        found = find_in(n, json_text(a, v));
    if (!found && v->type == JSON_NUMBER)
        found = find_in(n, v->raw);
    for (const struct json *item = v->first; item && !found; item = item->next)
        found = find_secrets(a, n, item);
    return found;
}

static bool is_secret_key(struct arena *a, const struct node_work *b, const struct json *member)
{
    struct str key = json_key_text(a, member);

    for (size_t i = 0; i < b->n_secrets; i++)
        if (str_eq(key, b->secrets[i].key))
            return true;
    return false;
}

bool node_work_leaks(struct arena *a, const struct node_work *b, const struct json *object, const char **ret_secret,
                     const char **ret_where)
{
    struct needles all = needles_of(a, b->secrets, b->n_secrets, AS_IT_IS);
    const struct needle *found = NULL;

    if (b->n_secrets == 0)
        return false;
    for (const struct json *m = object->first; m; m = m->next)
        if (is_secret_key(a, b, m))
            add_secret(a, &all, m, json_key_text(a, m), AS_IT_IS);
    for (const struct json *m = object->first; m && !found; m = m->next) {
        found = is_secret_key(a, b, m) ? NULL : find_secrets(a, &all, m);
        *ret_where = found ? arena_dup(a, json_key_text(a, m)).ptr : "";
    }
    *ret_secret = found ? found->key : "";
    return found != NULL;
}
