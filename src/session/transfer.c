/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session as a file and back. The first line states what it is; then one line per event, flat as `log show` prints
 * them, with the epoch and digest at the end, under a name that no event may use:
 *
 *   {"tidemark":"export","version":1,"session_id":"sess_…","first_seq":1,"last_seq":N,"keyed":false,"head_digest":"…"}
 *   {"seq":1,"ts":"…","kind":"session.created",…,"tidemark":{"epoch":1,"digest":"…"}}
 *
 * Import checks each line against the chain as it stores it, in pieces that nobody sees until the last is in.
 *
 * A log that another program wrote has no digests. Its export does: they are computed on the way out, as the first write
 * through Tidemark would, and because the first line names the last one, the log is read twice.
 */
#include <inttypes.h>

#include "base/timefmt.h"
#include "session/session_file.h"
#include "session/session.h"
#include "session/settle.h"
#include "session/trust.h"

#define PIECE_BYTES (1 << 20) /* stored at once by import */
#define PIECE_EVENTS 1024

struct exporting {
    tide_write_fn *write;
    tide_progress_fn *progress;
    void *arg;
    struct buf line;
    uint64_t done, total;
    enum tide_code code;

    struct tide_session *s;
    bool unverified;                   /* digests are computed here */
    unsigned char digest[DIGEST_SIZE]; /* then: of the event before */
};

/* The event as an import takes it. */
static struct event with_digest(struct exporting *x, const struct event *ev)
{
    struct event own = *ev;

    if (!x->unverified)
        return own;
    own.epoch = 0;
    event_digest(own.digest, &x->s->store->key, x->digest, str_from(x->s->head.id), &own);
    memcpy(x->digest, own.digest, DIGEST_SIZE);
    return own;
}

static int chain_event(void *arg, const struct event *ev)
{
    struct exporting *x = arg;

    with_digest(x, ev);
    if (x->progress && ev->seq % 1024 == 0 && x->progress(x->arg, 0, x->total))
        x->code = TIDE_CANCELLED;
    return x->code != TIDE_OK;
}

/* The digest of the last event. */
static enum tide_code find_end(struct exporting *x, unsigned char ret[DIGEST_SIZE], struct tide_err *err)
{
    enum tide_code code = TIDE_OK;
    struct head now = x->s->head;

    if (now.unverified) /* unless it has been written to since it was opened */
        code = store_head(x->s->store, str_from(now.id), &now, err);
    x->unverified = now.unverified;
    memcpy(ret, x->s->head.digest, DIGEST_SIZE);
    if (code || !x->unverified)
        return code;
    memcpy(x->digest, x->s->head.first_before, DIGEST_SIZE);
    code = store_read(x->s->store, &x->s->head, 0, 0, chain_event, x, err);
    memcpy(ret, x->digest, DIGEST_SIZE);
    memcpy(x->digest, x->s->head.first_before, DIGEST_SIZE);
    return code;
}

static int put_line(struct exporting *x)
{
    buf_add_char(&x->line, '\n');
    if (x->write(x->arg, x->line.ptr, x->line.len))
        x->code = TIDE_IO;
    buf_clear(&x->line);
    return x->code != TIDE_OK;
}

static int export_event(void *arg, const struct event *ev)
{
    struct exporting *x = arg;
    struct event own = with_digest(x, ev);
    char extra[80 + 2 * DIGEST_SIZE], hex[2 * DIGEST_SIZE + 1];

    hex_encode(hex, own.digest, DIGEST_SIZE);
    snprintf(extra, sizeof extra, "\"tidemark\":{\"epoch\":%" PRId64 ",\"digest\":\"%s\"}", own.epoch, hex);
    event_write_json(&x->line, &own, str_from(extra));
    x->done++;
    if (x->progress && x->done % 1024 == 0 && x->progress(x->arg, x->done, x->total))
        x->code = TIDE_CANCELLED;
    return x->code || put_line(x);
}

static void export_head(struct exporting *x, const unsigned char end[DIGEST_SIZE])
{
    const struct tide_session *s = x->s;
    struct json_out o = json_out_to(&x->line);
    char hex[2 * DIGEST_SIZE + 1];

    hex_encode(hex, end, DIGEST_SIZE);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("tidemark"), STR("export"));
    json_out_kint(&o, STR("version"), 1);
    json_out_kstr(&o, STR("session_id"), str_from(s->head.id));
    json_out_kint(&o, STR("first_seq"), s->head.first_seq);
    json_out_kint(&o, STR("last_seq"), s->head.last_seq);
    if (s->head.parent_id[0]) {
        json_out_key(&o, STR("parent"));
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("session_id"), str_from(s->head.parent_id));
        json_out_kint(&o, STR("seq"), s->head.parent_seq);
        json_out_end(&o, '}');
    }
    json_out_kbool(&o, STR("keyed"), s->store->key.len > 0);
    json_out_kstr(&o, STR("head_digest"), str_from(hex));
    json_out_end(&o, '}');
}

enum tide_code tide_session_export(tide_session *s, tide_write_fn *write, tide_progress_fn *progress, void *arg,
                                   struct tide_err *err)
{
    struct exporting x = {.write = write, .progress = progress, .arg = arg, .line = BUF_INIT(SIZE_MAX / 4), .s = s};
    unsigned char end[DIGEST_SIZE];
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_sync(s, err);
    x.total = (uint64_t)(s->head.last_seq - s->head.first_seq + 1);
    code = code ? code : find_end(&x, end, err);
    if (!code && !x.code) {
        export_head(&x, end);
        if (!put_line(&x))
            code = store_read(s->store, &s->head, 0, 0, export_event, &x, err);
    }
    if (!code && x.code)
        code = tide_fail(err, x.code, x.code == TIDE_IO ? "the export could not be written" : "stopped");
    if (!code && progress)
        progress(arg, x.done, x.total);
    buf_done(&x.line);
    return code;
}

struct importing {
    struct store *store;
    tide_source_fn *source;
    tide_progress_fn *progress;
    void *arg;
    struct buf in; /* bytes not yet taken as lines */
    size_t taken;
    bool ended;
    int64_t line_no;

    char id[TIDE_ID_SIZE], parent[TIDE_ID_SIZE];
    int64_t parent_seq, first_seq, last_seq;
    unsigned char head_digest[DIGEST_SIZE], before[DIGEST_SIZE];
    bool created, digests;
    struct group_owner owner;

    struct arena arena; /* of the piece being gathered */
    struct event *events;
    size_t n, bytes;
    int64_t next_seq;
    struct state *runs; /* folds its runs, to know whether one is open at the end */
    struct arena scratch;
};

/* Makes the next line available; *ret_line has no newline. False at the end. */
static enum tide_code next_line(struct importing *m, struct str *ret_line, bool *ret_any, struct tide_err *err)
{
    for (;;) {
        char *start = m->in.ptr ? m->in.ptr + m->taken : NULL;
        char *end = start ? memchr(start, '\n', m->in.len - m->taken) : NULL;
        long got;

        if (end || (m->ended && m->in.len > m->taken)) {
            *ret_line = (struct str){start, end ? (size_t)(end - start) : m->in.len - m->taken};
            m->taken += ret_line->len + (end != NULL);
            m->line_no++;
            *ret_any = true;
            return TIDE_OK;
        }
        if (m->ended) {
            *ret_any = false;
            return TIDE_OK;
        }
        if (start)
            memmove(m->in.ptr, start, m->in.len - m->taken);
        m->in.len -= m->taken;
        m->taken = 0;
        if (!buf_reserve(&m->in, 65536))
            return tide_fail(err, TIDE_TOO_BIG,
                             "line %" PRId64
                             " is longer than an event may be (TIDEMARK_MAX_RECORD_BYTES raises the limit)",
                             m->line_no + 1);
        got = m->source(m->arg, m->in.ptr + m->in.len, 65536);
        if (got < 0)
            return tide_fail(err, TIDE_IO, "the export could not be read");
        m->ended = got == 0;
        m->in.len += (size_t)got;
    }
}

static bool get_digest(struct arena *a, const struct json *v, const char *key, unsigned char out[DIGEST_SIZE])
{
    return hex_decode(out, DIGEST_SIZE, json_get_text(a, v, str_from(key)));
}

static enum tide_code bad_line(struct importing *m, struct tide_err *err, const char *what)
{
    return tide_fail(err, TIDE_INVALID, "line %" PRId64 ": %s", m->line_no, what);
}

static enum tide_code read_head(struct importing *m, struct str line, struct tide_err *err)
{
    const struct json *parent;
    struct json *v;
    struct str id;

    if (json_parse(&m->arena, line, NULL, &v, NULL, err))
        return tide_wrap(err, "line 1 is not an export's first line");
    if (!str_eq(json_get_text(&m->arena, v, STR("tidemark")), STR("export")))
        return bad_line(m, err, "not a Tidemark export: it should begin with {\"tidemark\":\"export\",…}");
    if (json_get_int(v, STR("version"), 0) != 1)
        return tide_fail(err, TIDE_TOO_NEW, "line 1: the export has version %" PRId64 ", this program reads version 1",
                         json_get_int(v, STR("version"), 0));
    id = json_get_text(&m->arena, v, STR("session_id"));
    parent = json_get(v, STR("parent"));
    m->first_seq = json_get_int(v, STR("first_seq"), 0);
    m->last_seq = json_get_int(v, STR("last_seq"), 0);
    if (!str_is_id(id) || m->first_seq < 1 || m->last_seq < m->first_seq ||
        !get_digest(&m->arena, v, "head_digest", m->head_digest))
        return bad_line(m, err, "session_id, first_seq, last_seq or head_digest is missing or wrong");
    if (json_get_bool(v, STR("keyed"), false) != (m->store->key.len > 0))
        return tide_fail(err, TIDE_WRONG_KEY,
                         "line 1: the export's digests are %s a key and this store's are not the same",
                         m->store->key.len ? "made without" : "made with");
    snprintf(m->id, sizeof m->id, "%.*s", STR_ARG(id));
    if (parent) {
        snprintf(m->parent, sizeof m->parent, "%.*s", STR_ARG(json_get_text(&m->arena, parent, STR("session_id"))));
        m->parent_seq = json_get_int(parent, STR("seq"), 0);
    }
    if (m->first_seq != m->parent_seq + 1 || (parent && !str_is_id(str_from(m->parent))))
        return bad_line(m, err, "first_seq does not follow from its parent");
    m->next_seq = m->first_seq;
    return TIDE_OK;
}

/* The digest a fork's first event stands on is its parent's, which must be here already. */
static int take_digest(void *arg, const struct event *ev)
{
    memcpy(arg, ev->digest, DIGEST_SIZE);
    return 0;
}

static enum tide_code find_parent(struct importing *m, struct tide_err *err)
{
    struct head h;

    if (!m->parent[0])
        return TIDE_OK;
    if (store_head(m->store, str_from(m->parent), &h, err))
        return tide_wrap(err, "session '%s' is a fork: import its parent first", m->id);
    if (m->parent_seq < h.first_seq || m->parent_seq > h.last_seq)
        return tide_fail_session(err, TIDE_INVALID, m->id, "is a fork at seq %" PRId64 ", which '%s' does not have",
                                 m->parent_seq, m->parent);
    if (fork_depth_check(m->store, &h, err))
        return err->code;
    return store_read(m->store, &h, m->parent_seq, m->parent_seq, take_digest, m->before, err);
}

/* The body again: the line without what the export put around it. */
static struct str body_of(struct arena *a, const struct json *line, size_t max)
{
    static const char *const around[] = {"seq", "ts", "kind", "tidemark"};
    struct buf out = BUF_INIT(max + 2);
    struct str body;

    buf_add_char(&out, '{');
    for (const struct json *m = line->first; m; m = m->next) {
        bool skip = false;

        for (size_t i = 0; i < sizeof around / sizeof around[0]; i++)
            skip |= json_key_eq(m, str_from(around[i]));
        if (skip)
            continue;
        if (out.len > 1)
            buf_add_char(&out, ',');
        buf_add_char(&out, '"');
        buf_add_str(&out, m->key);
        buf_add_str(&out, STR("\":"));
        json_write(&out, m);
    }
    buf_add_char(&out, '}');
    body = arena_dup(a, buf_view(&out));
    buf_done(&out);
    return body;
}

static enum tide_code read_event(struct importing *m, struct str line, struct event *ret, struct tide_err *err)
{
    const struct json_limits limits = {m->store->max_record_bytes + 4096, 0};
    unsigned char want[DIGEST_SIZE], given[DIGEST_SIZE];
    const struct json *proof;
    struct json *v;

    if (json_parse(&m->arena, line, &limits, &v, NULL, err))
        return tide_wrap(err, "line %" PRId64, m->line_no);
    proof = json_get(v, STR("tidemark"));
    ret->seq = json_get_int(v, STR("seq"), 0);
    ret->epoch = json_get_int(proof, STR("epoch"), 0);
    ret->kind = arena_dup(&m->arena, json_get_text(&m->arena, v, STR("kind")));
    if (ret->seq != m->next_seq || ret->seq > m->last_seq)
        return tide_fail(err, TIDE_INVALID, "line %" PRId64 ": seq %" PRId64 " where %" PRId64 " should follow",
                         m->line_no, ret->seq, m->next_seq);
    if (!time_parse(json_get_text(&m->arena, v, STR("ts")), &ret->ts_ms) || !kind_is_valid(ret->kind) ||
        !get_digest(&m->arena, proof, "digest", given))
        return bad_line(m, err, "ts, kind or digest is missing or wrong");
    ret->body = body_of(&m->arena, v, line.len);
    ret->proof.set = false; /* what was imported began elsewhere */
    event_digest(want, &m->store->key, m->before, str_from(m->id), ret);
    if (memcmp(want, given, DIGEST_SIZE) != 0)
        return tide_fail(err, TIDE_CORRUPT,
                         "line %" PRId64 ": event %" PRId64 " does not fit its digest: the export was changed or cut",
                         m->line_no, ret->seq);
    memcpy(m->before, want, DIGEST_SIZE);
    return TIDE_OK;
}

/* Stores what was gathered; the first piece makes the session, the last shows it. */
static enum tide_code store_piece(struct importing *m, bool last, struct tide_err *err)
{
    struct batch *b = batch_new(str_from(m->id), BATCH_KEEP, m->events, m->n, STR(""), STR(""));
    struct batch_result result;
    enum tide_code code;

    b->expect_seq = m->created ? m->next_seq - 1 - (int64_t)m->n : STORE_ANY_SEQ;
    b->epoch = m->owner.epoch;
    if (!m->created) {
        b->flags |= BATCH_CREATE | BATCH_HIDDEN | BATCH_ACQUIRE;
        memcpy(b->parent, m->parent, sizeof b->parent);
        b->parent_seq = m->parent_seq;
    }
    if (last)
        b->flags |= BATCH_REVEAL | BATCH_RELEASE;
    if (last && settle_is_live(m->runs)) {
        b->flags |= BATCH_LIVE;
        b->wake_ms = settle_wake_ms(m->runs);
        b->caches_seq = m->last_seq;
    }
    code = store_write(m->store, b, &result, err);
    if (code)
        return code;
    m->owner.epoch = result.epoch;
    m->created = true;
    m->n = m->bytes = 0;
    arena_reset(&m->arena);
    return TIDE_OK;
}

static enum tide_code import_lines(struct importing *m, struct tide_err *err)
{
    struct str line;
    bool any;
    enum tide_code code;

    while ((code = next_line(m, &line, &any, err)) == TIDE_OK && any) {
        if (m->next_seq > m->last_seq)
            return bad_line(m, err, "there is more than the first line announced");
        if ((m->n == PIECE_EVENTS || m->bytes >= PIECE_BYTES) && (code = store_piece(m, false, err)) != TIDE_OK)
            return code; /* here, so that the last piece, which reveals the session, is never empty */
        code = read_event(m, line, &m->events[m->n], err);
        if (code)
            return code;
        if (str_starts(m->events[m->n].kind, STR("run.")) || str_starts(m->events[m->n].kind, STR("token.")))
            state_apply_ledger(m->runs, &m->events[m->n], &m->scratch);
        m->next_seq++;
        m->n++;
        m->bytes += line.len;
        if (m->progress && m->next_seq % 1024 == 0 &&
            m->progress(m->arg, (uint64_t)(m->next_seq - m->first_seq), (uint64_t)(m->last_seq - m->first_seq + 1)))
            return tide_fail(err, TIDE_CANCELLED, "stopped");
    }
    if (code)
        return code;
    if (m->next_seq <= m->last_seq)
        return tide_fail(err, TIDE_INVALID, "the export is cut: it ends before event %" PRId64 " of %" PRId64,
                         m->next_seq, m->last_seq);
    if (memcmp(m->before, m->head_digest, DIGEST_SIZE) != 0)
        return tide_fail(err, TIDE_CORRUPT, "the last event does not fit the digest in line 1");
    return store_piece(m, true, err);
}

static enum tide_code import_all(struct importing *m, struct tide_err *err)
{
    struct str line;
    bool any;
    enum tide_code code = next_line(m, &line, &any, err);

    if (!code && !any)
        code = tide_fail(err, TIDE_INVALID, "the export is empty");
    code = code ? code : read_head(m, line, err);
    code = code ? code : find_parent(m, err);
    return code ? code : import_lines(m, err);
}

enum tide_code tide_session_import(tide_store *store, tide_source_fn *source, tide_progress_fn *progress, void *arg,
                                   char ret_id[TIDE_ID_SIZE], struct tide_err *err)
{
    struct importing m = {.store = store_of(store), .source = source, .progress = progress, .arg = arg};
    enum tide_code code;

    ERR_LOCAL(err);
    m.in = (struct buf)BUF_INIT(m.store->max_record_bytes + (1 << 20));
    m.events = mem_array(PIECE_EVENTS, sizeof *m.events);
    m.runs = state_new(STR(""));
    code = import_all(&m, err);
    if (!code)
        code = trust_revoke_imported(m.store, m.id, m.runs, err);
    if (code && m.created) /* nobody has seen it: take it away again */
        (void)!store_write(m.store, batch_new(str_from(m.id), BATCH_DELETE | BATCH_HIDDEN, NULL, 0, STR(""), STR("")),
                           NULL, NULL);
    free(m.events);
    state_free(m.runs);
    arena_done(&m.scratch);
    buf_done(&m.in);
    arena_done(&m.arena);
    if (code && (!err->detail.subject || err->detail.position)) /* the parser counts within the line */
        err->detail = (struct tide_detail){.subject = TIDE_SUBJECT_FILE, .position = m.line_no};
    if (code)
        return tide_wrap(err, "import");
    session_file_renew(m.store, m.id);
    memcpy(ret_id, m.id, TIDE_ID_SIZE);
    return TIDE_OK;
}
