/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values over 64 KiB, stored once by content. A big member of the body (or, where that is an object, its big members) is
 * replaced by a small placeholder, so that the stored body stays valid JSON for the views; where the placeholders are is kept
 * beside it, so that nothing a user writes can look like one.
 *
 *   refs: per value  8 bytes offset of the placeholder in the stored body, 8 bytes its length, 8 bytes the value's
 *         length (all little-endian), 32 bytes its name; in order of offset
 *         at the end 16 bytes seal; older ones have none
 *
 * A value's name is a MAC of it under a key that the user's own is mixed into, and 16 zeros. What has the same name is compared
 * byte by byte before it counts as the same. A value whose name is another's, and every one of an older version, has its
 * BLAKE2b-256 as its name.
 *
 * The seal is a MAC under the same key over the event's place in the chain, both digests, the stored body and the names: who finds
 * it right, and each value as its name says, reads what was digested when it was written, and need not digest it
 * again. That takes a third of the time. Where it is not right, or the key is another user's, the event's digest decides.
 */
#include <endian.h>

#include "base/json.h"
#include "store/sqlite_db.h"

#define REF_SIZE (24 + DIGEST_SIZE)
#define REFS_MAX 1024                  /* values taken out of one body; the rest stays in it */
#define SHARED_MIN ((size_t)256 << 10) /* a body whose digest is worth waking a thread for */

struct cutting {
    struct sqlite_store *s;
    struct str body;
    struct buf out, refs;
    size_t copied; /* of body */
    size_t n;
};

static void mac_name(const struct sqlite_store *s, unsigned char name[DIGEST_SIZE], const void *value, size_t len)
{
    memset(name, 0, DIGEST_SIZE);
    digest_mac(name, s->value_key, value, len);
}

/* The row of that name; *ret_id 0: none. *ret_same: it holds this value. */
static int blob_find(struct sqlite_store *s, const unsigned char name[DIGEST_SIZE], struct str value, int64_t *ret_id,
                     bool *ret_same)
{
    sqlite3_stmt *st = db_stmt(&s->w, ST_BLOB_FIND);
    int rc;

    sqlite3_bind_blob(st, 1, name, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob64(st, 2, value.ptr, value.len, SQLITE_STATIC);
    rc = db_step(&s->w, st);
    *ret_id = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
    *ret_same = rc == SQLITE_ROW && sqlite3_column_int(st, 1);
    sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int blob_put(struct sqlite_store *s, struct str value, unsigned char ret_name[DIGEST_SIZE])
{
    sqlite3_stmt *st;
    bool same = false;
    int64_t id = 0;
    int rc;

    mac_name(s, ret_name, value.ptr, value.len);
    rc = blob_find(s, ret_name, value, &id, &same);
    if (!rc && id && !same) { /* another value's, or it was damaged */
        digest_of(ret_name, value);
        rc = blob_find(s, ret_name, value, &id, &same);
    }
    if (rc || (id && !same))
        return rc ? rc : SQLITE_CORRUPT;
    if (id) {
        sqlite3_bind_int64(db_stmt(&s->w, ST_BLOB_REF), 1, id);
        return db_run(&s->w, ST_BLOB_REF);
    }
    st = db_stmt(&s->w, ST_BLOB_ADD);
    sqlite3_bind_blob(st, 1, ret_name, DIGEST_SIZE, SQLITE_STATIC);
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
    unsigned char name[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];
    size_t at = (size_t)(value.ptr - c->body.ptr), start;
    int rc = blob_put(c->s, value, name);

    hex_encode(hex, name, DIGEST_SIZE);
    buf_add(&c->out, c->body.ptr + c->copied, at - c->copied);
    start = c->out.len;
    buf_addf(&c->out, "{\"big_value\":\"%s\",\"bytes\":%zu}", hex, value.len);
    add_le64(&c->refs, start);
    add_le64(&c->refs, c->out.len - start);
    add_le64(&c->refs, value.len);
    buf_add(&c->refs, name, DIGEST_SIZE);
    c->copied = at + value.len;
    c->n++;
    return rc;
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

static void seal_of(const struct sqlite_store *s, struct str session, const struct event *ev,
                    const unsigned char before[DIGEST_SIZE], struct str stored, struct str refs,
                    unsigned char ret[MAC_SIZE])
{
    const struct str texts[] = {session, ev->kind, stored, refs};
    const int64_t numbers[] = {ev->seq, ev->epoch, ev->ts_ms};
    struct buf all = BUF_INIT(SIZE_MAX / 4);

    buf_add(&all, before, DIGEST_SIZE);
    buf_add(&all, ev->digest, DIGEST_SIZE);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        add_le64(&all, (uint64_t)numbers[i]);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        add_le64(&all, texts[i].len);
        buf_add_str(&all, texts[i]);
    }
    digest_mac(ret, s->value_key, all.ptr, all.len);
    buf_done(&all);
}

/* Without a key of the user's anybody could make one. */
static bool can_seal(const struct sqlite_store *s)
{
    return s->base.origin.user.len > 0;
}

/* An event on its way into its row. */
struct storing {
    struct cutting cut;
    struct arena *arena;
    struct str session;
    struct event *ev;
    const unsigned char *before;
    int rc;
};

/* Whose SQLite this is waits until it is over. */
static void cut_body(struct storing *st)
{
    struct json *json;

    st->rc = json_parse(st->arena, st->cut.body, NULL, &json, NULL, NULL)
                 ? SQLITE_MISUSE /* bodies are checked before they come here */
                 : cut_members(&st->cut, json, 0);
}

static void store_share(void *arg, size_t i)
{
    struct storing *st = arg;

    if (i == 0)
        cut_body(st);
    else
        event_digest(st->ev->digest, &st->cut.s->base.key, st->before, st->session, st->ev);
}

int big_store(struct sqlite_store *s, struct arena *a, struct str session, struct event *ev,
              const unsigned char before[DIGEST_SIZE], struct str *ret_stored, struct str *ret_refs)
{
    struct str body = ev->body;
    struct storing st = {.cut = {.s = s,
                                 .body = body,
                                 .out = BUF_INIT(body.len * 2 + 4096),
                                 .refs = BUF_INIT(REFS_MAX * REF_SIZE + MAC_SIZE)},
                         .arena = a,
                         .session = session,
                         .ev = ev,
                         .before = before};
    struct cutting *c = &st.cut;
    unsigned char seal[MAC_SIZE];

    if (body.len >= SHARED_MIN)
        pool_each(s->pool, 2, store_share, &st);
    else
        for (size_t i = 0; i < 2; i++)
            store_share(&st, i);
    if (!st.rc && c->n) {
        buf_add(&c->out, body.ptr + c->copied, body.len - c->copied);
        if (can_seal(s)) {
            seal_of(s, session, ev, before, buf_view(&c->out), buf_view(&c->refs), seal);
            buf_add(&c->refs, seal, MAC_SIZE);
        }
        *ret_stored = arena_dup(a, buf_view(&c->out));
        *ret_refs = arena_dup(a, buf_view(&c->refs));
    }
    buf_done(&c->out);
    buf_done(&c->refs);
    return st.rc;
}

bool big_is_sealed(const struct sqlite_store *s, struct str session, const struct event *ev,
                   const unsigned char before[DIGEST_SIZE], struct str stored, struct str refs)
{
    unsigned char seal[MAC_SIZE];
    size_t n = refs.len / REF_SIZE * REF_SIZE;

    if (!can_seal(s) || refs.len != n + MAC_SIZE)
        return false;
    seal_of(s, session, ev, before, stored, (struct str){refs.ptr, n}, seal);
    return memcmp(refs.ptr + n, seal, MAC_SIZE) == 0;
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

/* The value itself, straight from the pages to where it is wanted. */
static int blob_get(struct conn *c, const struct ref *r, char *out)
{
    sqlite3_stmt *st = db_stmt(c, ST_BLOB_GET);
    sqlite3_blob *blob = NULL;
    int64_t id = 0;
    int rc;

    sqlite3_bind_blob(st, 1, r->digest, DIGEST_SIZE, SQLITE_STATIC);
    rc = db_step(c, st);
    if (rc == SQLITE_ROW)
        id = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
    rc = sqlite3_blob_open(c->db, "main", "blobs", "value", id, 0, &blob);
    if (!rc && (uint64_t)sqlite3_blob_bytes(blob) != r->len)
        rc = SQLITE_CORRUPT;
    if (!rc)
        rc = sqlite3_blob_read(blob, out, (int)r->len, 0);
    sqlite3_blob_close(blob);
    return rc == SQLITE_ERROR ? SQLITE_CORRUPT : rc; /* what stands there is no value */
}

/* The bytes of the whole body; SIZE_MAX: the refs are not right. */
static size_t whole_size(struct str stored, struct str refs, size_t max)
{
    size_t size = stored.len, copied = 0;

    if (refs.len % REF_SIZE && refs.len % REF_SIZE != MAC_SIZE)
        return SIZE_MAX;
    for (size_t i = 0; i < refs.len / REF_SIZE; i++) {
        struct ref r = ref_at(refs, i);

        if (r.at < copied || r.at > stored.len || r.placeholder > stored.len - r.at || r.len > max)
            return SIZE_MAX;
        copied = r.at + r.placeholder;
        size += r.len - r.placeholder;
        if (size > max)
            return SIZE_MAX;
    }
    return size;
}

static bool is_named(const struct sqlite_store *s, const struct ref *r, const char *value)
{
    unsigned char name[DIGEST_SIZE];

    mac_name(s, name, value, r->len);
    return memcmp(name, r->digest, DIGEST_SIZE) == 0;
}

int big_load(struct sqlite_store *s, struct conn *c, struct arena *a, struct str stored, struct str refs, size_t max,
             struct str *ret_body, bool *ret_named)
{
    size_t size = whole_size(stored, refs, max), copied = 0;
    bool named = can_seal(s) && refs.len % REF_SIZE == MAC_SIZE;
    int rc = size == SIZE_MAX ? SQLITE_CORRUPT : SQLITE_OK;
    char *body = rc ? NULL : arena_alloc(a, size + 1), *at = body;

    for (size_t i = 0; !rc && i < refs.len / REF_SIZE; i++) {
        struct ref r = ref_at(refs, i);

        memcpy(at, stored.ptr + copied, r.at - copied);
        at += r.at - copied;
        rc = blob_get(c, &r, at);
        named = named && !rc && is_named(s, &r, at);
        at += r.len;
        copied = r.at + r.placeholder;
    }
    if (rc)
        return rc;
    memcpy(at, stored.ptr + copied, stored.len - copied);
    body[size] = '\0';
    *ret_body = (struct str){body, size};
    *ret_named = named;
    return SQLITE_OK;
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
