/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values over 64 KiB, stored once by the digest of their JSON text. A big member of the body (or, where that is an object,
 * its big members) is replaced by a small placeholder, so that the stored body stays valid JSON for the views; where the
 * placeholders are is kept beside it, so that nothing a user writes can look like one.
 *
 *   refs: per value  8 bytes offset of the placeholder in the stored body, 8 bytes its length, 8 bytes the value's
 *         length (all little-endian), 32 bytes digest; in order of offset
 */
#include <endian.h>

#include "base/json.h"
#include "store/sqlite_db.h"

#define REF_SIZE (24 + DIGEST_SIZE)
#define REFS_MAX 1024 /* values taken out of one body; the rest stays in it */

struct cutting {
    struct sqlite_store *s;
    struct str body;
    struct buf out, refs;
    size_t copied; /* of body */
    size_t n;
};

static int blob_put(struct sqlite_store *s, const unsigned char digest[DIGEST_SIZE], struct str value)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BLOB_FIND);
    int64_t id = 0;
    int rc;

    sqlite3_bind_blob(st, 1, digest, DIGEST_SIZE, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    if (rc == SQLITE_ROW)
        id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    if (rc == SQLITE_ROW) {
        sqlite3_bind_int64(db_stmt(&s->w, ST_BLOB_REF), 1, id);
        return db_run(&s->w, ST_BLOB_REF);
    }
    if (rc != SQLITE_DONE)
        return rc;
    st = db_stmt(&s->w, ST_BLOB_ADD);
    sqlite3_bind_blob(st, 1, digest, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob64(st, 2, value.ptr, value.len, SQLITE_STATIC);
    return db_run(&s->w, ST_BLOB_ADD);
}

static void add_le64(struct buf *b, uint64_t v)
{
    v = htole64(v);
    buf_add(b, &v, 8);
}

static int cut_values(struct cutting *c, const struct json *v)
{
    struct str value = json_source(v);
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];
    size_t at = (size_t)(value.ptr - c->body.ptr), start;

    digest_of(digest, value);
    hex_encode(hex, digest, DIGEST_SIZE);
    buf_add(&c->out, c->body.ptr + c->copied, at - c->copied);
    start = c->out.len;
    buf_addf(&c->out, "{\"big_value\":\"%s\",\"bytes\":%zu}", hex, value.len);
    add_le64(&c->refs, start);
    add_le64(&c->refs, c->out.len - start);
    add_le64(&c->refs, value.len);
    buf_add(&c->refs, digest, DIGEST_SIZE);
    c->copied = at + value.len;
    c->n++;
    return blob_put(c->s, digest, value);
}

static int cut_members(struct cutting *c, const struct json *object, int depth)
{
    int rc = SQLITE_OK;

    for (const struct json *m = object->first; m && !rc && c->n < REFS_MAX; m = m->next) {
        size_t before = c->n;

        if (json_source(m).len <= STORE_BIG_VALUE)
            continue;
        if (m->type == JSON_OBJECT && depth == 0)
            rc = cut_members(c, m, 1);
        if (!rc && c->n == before)
            rc = cut_values(c, m);
    }
    return rc;
}

int big_store(struct sqlite_store *s, struct arena *a, struct str body, struct str *ret_stored, struct str *ret_refs)
{
    struct cutting c = {
        .s = s, .body = body, .out = BUF_INIT(body.len * 2 + 4096), .refs = BUF_INIT(REFS_MAX * REF_SIZE)};
    struct json *json;
    int rc;

    if (json_parse(a, body, NULL, &json, NULL, NULL))
        return SQLITE_MISUSE; /* bodies are checked before they come here */
    rc = cut_members(&c, json, 0);
    if (!rc && c.n) {
        buf_add(&c.out, body.ptr + c.copied, body.len - c.copied);
        *ret_stored = arena_dup(a, buf_view(&c.out));
        *ret_refs = arena_dup(a, buf_view(&c.refs));
    }
    buf_done(&c.out);
    buf_done(&c.refs);
    return rc;
}

struct ref {
    uint64_t at, placeholder, len;
    unsigned char digest[DIGEST_SIZE];
};

static struct ref ref_at(struct str refs, size_t i)
{
    const char *p = refs.ptr + i * REF_SIZE;
    struct ref r;

    memcpy(&r, p, REF_SIZE);
    r.at = le64toh(r.at);
    r.placeholder = le64toh(r.placeholder);
    r.len = le64toh(r.len);
    return r;
}

static int blob_get(struct conn *c, const struct ref *r, struct buf *out)
{
    sqlite3_stmt *st = db_stmt(c, ST_BLOB_GET);
    int rc;

    sqlite3_bind_blob(st, 1, r->digest, DIGEST_SIZE, SQLITE_STATIC);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW) {
        struct str value = db_text(st, 0);

        buf_add_str(out, value);
        rc = value.len == r->len && !out->failed ? SQLITE_OK : SQLITE_CORRUPT;
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT;
    }
    sqlite3_reset(st);
    return rc;
}

int big_load(struct conn *c, struct arena *a, struct str stored, struct str refs, size_t max, struct str *ret_body)
{
    struct buf out = BUF_INIT(max);
    size_t copied = 0;
    int rc = refs.len % REF_SIZE ? SQLITE_CORRUPT : SQLITE_OK;

    for (size_t i = 0; !rc && i < refs.len / REF_SIZE; i++) {
        struct ref r = ref_at(refs, i);

        if (r.at < copied || r.at > stored.len || r.placeholder > stored.len - r.at) {
            rc = SQLITE_CORRUPT;
            break;
        }
        buf_add(&out, stored.ptr + copied, r.at - copied);
        rc = blob_get(c, &r, &out);
        copied = r.at + r.placeholder;
    }
    if (!rc) {
        buf_add(&out, stored.ptr + copied, stored.len - copied);
        *ret_body = arena_dup(a, buf_view(&out));
        rc = out.failed ? SQLITE_CORRUPT : SQLITE_OK;
    }
    buf_done(&out);
    return rc;
}

int big_release(struct sqlite_store *s, struct str refs)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; !rc && i < refs.len / REF_SIZE; i++) {
        struct ref r = ref_at(refs, i);

        sqlite3_bind_blob(db_stmt(&s->w, ST_BLOB_UNREF), 1, r.digest, DIGEST_SIZE, SQLITE_TRANSIENT);
        rc = db_run(&s->w, ST_BLOB_UNREF);
        sqlite3_bind_blob(db_stmt(&s->w, ST_BLOB_SWEEP), 1, r.digest, DIGEST_SIZE, SQLITE_TRANSIENT);
        rc = rc ? rc : db_run(&s->w, ST_BLOB_SWEEP);
    }
    return rc;
}

/* ---- whether they are counted right ---- */

static void count_refs(struct map *uses, struct str refs)
{
    for (size_t i = 0; i < refs.len / REF_SIZE; i++) {
        struct ref r = ref_at(refs, i);
        struct str key = {(const char *)r.digest, DIGEST_SIZE};
        int64_t *n = map_get(uses, key);

        if (!n) {
            n = mem_zero(sizeof *n);
            map_put(uses, key, n);
        }
        ++*n;
    }
}

static int count_uses(struct conn *c, struct map *uses)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(c->db, "SELECT refs FROM events WHERE refs IS NOT NULL", -1, &st, NULL);

    while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        count_refs(uses, db_text(st, 0));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* One that is counted less often than it is used would go with the first session that is deleted. */
int big_miscounted(struct sqlite_store *s, struct conn *c, struct buf *out)
{
    struct map uses = {0};
    sqlite3_stmt *st = NULL;
    int rc = count_uses(c, &uses);

    (void)s;
    rc = rc ? rc : sqlite3_prepare_v2(c->db, "SELECT digest, refs FROM blobs", -1, &st, NULL);
    while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct str digest = db_text(st, 0);
        const int64_t *used = map_get(&uses, digest);
        char hex[2 * DIGEST_SIZE + 1] = "";

        rc = SQLITE_OK;
        if (sqlite3_column_type(st, 1) == SQLITE_INTEGER && sqlite3_column_int64(st, 1) >= (used ? *used : 1))
            continue;
        if (digest.len == DIGEST_SIZE)
            hex_encode(hex, (const unsigned char *)digest.ptr, DIGEST_SIZE);
        buf_addf(out, "big value %s: its count is %lld, its uses are %lld", hex, (long long)sqlite3_column_int64(st, 1),
                 used ? (long long)*used : 0LL);
        buf_add_char(out, 0);
    }
    sqlite3_finalize(st);
    map_done(&uses, free);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Never down: an event that is damaged may still need it. */
int big_recount(struct conn *c)
{
    struct map uses = {0};
    sqlite3_stmt *st = NULL;
    int rc = count_uses(c, &uses);

    rc =
        rc ? rc
           : sqlite3_prepare_v2(c->db,
                                "UPDATE blobs SET refs = max(?2, CASE typeof(refs) WHEN 'integer' THEN refs ELSE 1 END)"
                                " WHERE digest = ?1",
                                -1, &st, NULL);
    for (struct map_entry *e = map_next(&uses, NULL); e && !rc; e = map_next(&uses, e)) {
        sqlite3_bind_blob(st, 1, e->key, (int)e->key_len, SQLITE_STATIC);
        sqlite3_bind_int64(st, 2, *(const int64_t *)e->value);
        rc = sqlite3_step(st) == SQLITE_DONE ? SQLITE_OK : sqlite3_extended_errcode(c->db);
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    map_done(&uses, free);
    return rc;
}
