/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One group, one transaction. Order inside it: lock the side file, BEGIN IMMEDIATE, find out whether anyone else has
 * committed since (data_version; if so, what we remember of heads is dropped), then for each batch: check lease and
 * expected seq, insert its events; last, write the heads that moved and COMMIT, which syncs. Only then acknowledge.
 * A refusal is decided before the batch's first write, so one refusal leaves no trace and the others continue.
 */
#include <inttypes.h>

#include "base/invariant.h"
#include "base/json.h"
#include "store/origin.h"
#include "store/sqlite_db.h"
#include "store/batch_rules.h"

struct txn {
    struct sqlite_store *s;
    struct arena arena;
    int64_t now_ms, before_pos; /* last position before it */
    int64_t boot;               /* of the process whose batch it is; 0: of this one */
    int rc;                     /* the first SQLite failure: the whole transaction is lost */
    struct whead **touched;
    size_t touched_n, touched_cap, deleted;
};

static void touch_head(struct txn *t, struct whead *w)
{
    if (!w->touched) {
        w->touched = true;
        MEM_ROOM(t->touched, t->touched_n, t->touched_cap);
        t->touched[t->touched_n++] = w;
    }
}

static struct holding holding_of(const struct txn *t, const struct whead *w)
{
    return (struct holding){w->boot != 0, w->boot && w->boot == (t->boot ? t->boot : t->s->boot), w->h.epoch};
}

/* Another process has it: does that one live? */
static void name_holder(struct txn *t, struct batch *b, const struct whead *w)
{
    bool alive;
    char who[160];

    t->rc = lease_holder(t->s, &t->s->w, w->boot, &alive, who);
    if (!t->rc && alive)
        batch_refuse_held(b, who);
}

static void check_batch(struct txn *t, struct batch *b, struct whead *w)
{
    struct holding h = holding_of(t, w);

    if (batch_is_behind(b))
        return;
    if (!w->exists || (w->hidden && (b->flags & (BATCH_ACQUIRE | BATCH_INPUT))))
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
    else if (batch_check_lease(b, &h, &t->s->orphans))
        name_holder(t, b, w);
    if (!t->rc)
        batch_check_seq(b, w->h.last_seq);
}

/* Remembers where the event went and what it is; every BLOCK_EVENTS of them make a row. */
static int note_position(struct txn *t, struct whead *w, const struct event *ev)
{
    int64_t first = (ev->seq - 1) / BLOCK_EVENTS * BLOCK_EVENTS + 1;
    bool full = ev->seq % BLOCK_EVENTS == 0;
    unsigned n;
    int rc;

    if (first < w->h.first_seq)
        first = w->h.first_seq;
    n = (unsigned)(ev->seq - first);
    INVARIANT(n < BLOCK_EVENTS && w->recent_n <= BLOCK_EVENTS);
    if (n == 0)
        memset(w->marks, 0, sizeof w->marks);
    if (n == 0 || w->recent_n == n) {
        if (n >= w->recent_cap) { /* most sessions are short */
            w->recent_cap = n < FEW_EVENTS ? FEW_EVENTS : BLOCK_EVENTS;
            w->recent = mem_grow(w->recent, w->recent_cap * sizeof *w->recent);
        }
        w->recent[n] = ev->pos;
        w->recent_n = n + 1;
        checkpoint_bits_note(w->marks, ev->seq, ev->kind);
        return full ? block_write(&t->s->w, w->sid, ev->seq, w->recent, n + 1, w->marks) : SQLITE_OK;
    }
    rc = full ? pending_flush(t->s) : SQLITE_OK; /* we came in the middle: look the others up */
    return full && !rc ? block_make(&t->s->w, w, ev->seq) : rc;
}

/* What a checkpoint can be found by. */
static struct str tag_of(struct txn *t, const struct event *ev)
{
    const struct str usual = STR("{\"checkpoint_id\":\"");
    const char *id = ev->body.ptr + usual.len, *end;
    struct json *body;

    if (!str_eq(ev->kind, STR("checkpoint")))
        return STR("");
    if (str_starts(ev->body, usual)) { /* as we write it: a plain id needs no parser */
        end = memchr(id, '"', ev->body.len - usual.len);
        if (end && str_is_id((struct str){id, (size_t)(end - id)}))
            return (struct str){id, (size_t)(end - id)};
    }
    if (json_parse(&t->arena, ev->body, NULL, &body, NULL, NULL))
        return STR("");
    return json_get_text(&t->arena, body, STR("checkpoint_id"));
}

static int insert_event(struct txn *t, struct batch *b, struct whead *w, struct event *ev, bool prove)
{
    struct sqlite_store *s = t->s;
    struct pending_event row = {ev, w->sid, w->last_pos, ev->body, {NULL, 0}, tag_of(t, ev)};
    unsigned char before[DIGEST_SIZE];
    int rc = SQLITE_OK;

    ev->seq = w->h.last_seq + 1;
    ev->pos = ++s->last_pos;
    INVARIANT(ev->pos > w->last_pos && w->touched); /* positions rise in a session, too */
    if (!(b->flags & BATCH_KEEP)) {
        ev->ts_ms = ev->ts_ms ? ev->ts_ms : t->now_ms;
        ev->epoch = w->h.epoch;
    }
    memcpy(before, w->h.digest, DIGEST_SIZE);
    if (ev->body.len > STORE_BIG_VALUE)
        rc = big_store(s, &t->arena, str_from(w->h.id), ev, before, &row.body, &row.refs);
    else
        event_digest(ev->digest, &s->base.key, before, str_from(w->h.id), ev);
    if (rc)
        return rc;
    if (prove)
        origin_prove(&ev->proof, &s->base.origin, str_from(w->h.id), ev);
    pending_event_add(s, &row);
    memcpy(w->h.digest, ev->digest, DIGEST_SIZE);
    w->h.last_seq = ev->seq;
    w->last_pos = ev->pos;
    w->h.updated_ms = ev->ts_ms;
    if (ev->epoch > w->h.epoch)
        w->h.epoch = ev->epoch; /* imported: epochs only grow */
    return note_position(t, w, ev);
}

static int insert_snapshot(struct txn *t, struct batch *b, struct whead *w)
{
    sqlite3_stmt *st = db_stmt(&t->s->w, ST_SNAP_INSERT);
    unsigned char check[DIGEST_SIZE];

    snapshot_digest(check, &t->s->base, str_from(w->h.id), w->h.last_seq, w->h.digest, b->snapshot);
    sqlite3_bind_int64(st, 1, w->sid);
    sqlite3_bind_int64(st, 2, w->h.last_seq);
    sqlite3_bind_blob(st, 3, w->h.digest, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(st, 4, check, DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_blob(st, 5, b->snapshot.ptr, (int)b->snapshot.len, SQLITE_STATIC);
    return db_run(&t->s->w, ST_SNAP_INSERT);
}

static int insert_session(struct txn *t, struct batch *b, struct whead *w, struct whead *parent)
{
    struct sqlite_store *s = t->s;
    sqlite3_stmt *st = db_stmt(&s->w, ST_SESSION_INSERT);
    int rc;

    w->h.first_seq = b->parent_seq + 1;
    w->h.last_seq = b->parent_seq;
    w->h.parent_seq = b->parent_seq;
    w->h.created_ms = b->flags & BATCH_KEEP && b->n ? b->events[0].ts_ms : t->now_ms;
    if (parent) {
        w->parent_sid = parent->sid;
        memcpy(w->h.parent_id, parent->h.id, sizeof w->h.parent_id);
    }
    memcpy(w->h.first_before, w->h.digest, DIGEST_SIZE);
    sqlite3_bind_text(st, 1, b->session, -1, SQLITE_STATIC);
    sqlite3_bind_int64(st, 2, w->h.created_ms);
    sqlite3_bind_null(st, 3);
    sqlite3_bind_null(st, 4);
    sqlite3_bind_null(st, 5);
    if (parent) {
        sqlite3_bind_int64(st, 3, parent->sid);
        sqlite3_bind_int64(st, 4, b->parent_seq);
        sqlite3_bind_blob(st, 5, w->h.first_before, DIGEST_SIZE, SQLITE_STATIC);
    }
    sqlite3_bind_int64(st, 6, (b->flags & BATCH_HIDDEN) != 0);
    sqlite3_bind_int64(st, 7, w->h.last_seq);
    sqlite3_bind_blob(st, 8, w->h.digest, DIGEST_SIZE, SQLITE_STATIC);
    rc = db_run(&s->w, ST_SESSION_INSERT);
    w->sid = sqlite3_last_insert_rowid(s->w.db);
    w->exists = true;
    w->hidden = (b->flags & BATCH_HIDDEN) != 0;
    return rc;
}

static struct whead *find_parent(struct txn *t, struct batch *b, struct whead *w)
{
    struct whead *parent = whead_load(t->s, str_from(b->parent), &t->rc);

    if (t->rc)
        return NULL;
    if (parent->damaged)
        batch_refuse_record(b, b->parent);
    else if (!parent->exists || parent->hidden)
        batch_refuse(b, TIDE_NOT_FOUND, "no session '%s' to fork from", b->parent);
    else if (b->parent_seq < parent->h.first_seq || b->parent_seq > parent->h.last_seq)
        batch_refuse(b, TIDE_INVALID, "cannot fork '%s' at seq %" PRId64 ": its own events are %" PRId64 " to %" PRId64,
                     b->parent, b->parent_seq, parent->h.first_seq, parent->h.last_seq);
    else if ((t->rc = pending_flush(t->s)) == SQLITE_OK)
        t->rc = event_locate(&t->s->w, parent, b->parent_seq, &(int64_t){0}, w->h.digest);
    return parent;
}

/* A half-done import whose process died is in nobody's way. */
static void sweep_hidden(struct txn *t, struct whead *w)
{
    bool alive = false;
    char who[160];

    if (w->boot)
        t->rc = lease_holder(t->s, &t->s->w, w->boot, &alive, who);
    if (t->rc || ((alive || (w->boot && w->boot == t->s->boot)) && !orphan_is(&t->s->orphans, w->h.id, w->h.epoch)))
        return;
    t->deleted++;
    t->rc = pending_flush(t->s);
    t->rc = t->rc ? t->rc : session_erase(t->s, w);
    whead_clear(w);
}

/* Every import that begins sweeps those that were cut off; a handful at a time. */
static void sweep_abandoned(struct txn *t)
{
    sqlite3_stmt *st = db_stmt(&t->s->w, ST_HIDDEN);
    char ids[8][TIDE_ID_SIZE];
    int n = 0;

    sqlite3_bind_int64(st, 1, 8);
    for (; n < 8 && db_step(&t->s->w, st) == SQLITE_ROW; n++)
        snprintf(ids[n], TIDE_ID_SIZE, "%.*s", STR_ARG(db_text(st, 0)));
    sqlite3_reset(st);
    while (n-- > 0 && !t->rc) {
        struct whead *w = whead_load(t->s, str_from(ids[n]), &t->rc);

        if (!t->rc && w->exists && w->hidden && !w->damaged)
            sweep_hidden(t, w);
    }
}

static void create_session(struct txn *t, struct batch *b, struct whead *w)
{
    struct whead *parent = NULL;

    if (b->flags & BATCH_HIDDEN)
        sweep_abandoned(t);
    if (!t->rc && w->exists && w->hidden)
        sweep_hidden(t, w);
    if (!t->rc && w->exists)
        batch_refuse(b, TIDE_EXISTS, "a session '%s' exists already%s", b->session,
                     w->hidden                 ? " (it is being imported)"
                     : b->flags & BATCH_HIDDEN ? ": delete it first, or import into another store"
                                               : ": choose another id");
    if (!t->rc && !b->code && b->parent[0])
        parent = find_parent(t, b, w);
    if (t->rc || b->code)
        return;
    t->rc = insert_session(t, b, w, parent);
    touch_head(t, w);
    w->dirty = true;
}

static void delete_session(struct txn *t, struct batch *b, struct whead *w)
{
    struct holding h = holding_of(t, w);
    sqlite3_stmt *st = db_stmt(&t->s->w, ST_FORKS);
    struct buf names = BUF_INIT(256);
    int rc;

    if (!(b->flags & BATCH_HIDDEN && h.ours) && batch_check_free(b, &h, &t->s->orphans))
        name_holder(t, b, w);
    if (b->expect_seq)
        batch_check_seq(b, w->h.last_seq);
    sqlite3_bind_int64(st, 1, w->sid);
    for (int n = 0; (rc = db_step(&t->s->w, st)) == SQLITE_ROW; n++)
        buf_addf(&names, "%s%.*s", n ? ", " : "", n < 3 ? (int)db_text(st, 0).len : 3,
                 n < 3 ? db_text(st, 0).ptr : "…");
    sqlite3_reset(st);
    t->rc = t->rc ? t->rc : rc == SQLITE_DONE ? SQLITE_OK : rc; /* one that has forks must not seem to have none */
    if (!b->code && !t->rc && names.len)
        batch_refuse(b, TIDE_HAS_FORKS, "session '%s' has forks: delete %s first", b->session, buf_cstr(&names));
    buf_done(&names);
    if (b->code || t->rc)
        return;
    t->rc = pending_flush(t->s);
    t->s->last_pos++; /* a deletion has a position too: the mark shows whether its commit was lost */
    t->rc = t->rc ? t->rc : session_erase(t->s, w);
    whead_clear(w);
    t->deleted++;
}

/* The lease moves in memory here; whead_write() makes it so on disk. */
static void move_lease(struct txn *t, struct batch *b, struct whead *w)
{
    struct sqlite_store *s = t->s;

    if (b->flags & BATCH_ACQUIRE) {
        w->h.epoch++;
        w->stay = false;
        w->wake = 0;
        if (!(b->flags & BATCH_RELEASE)) {
            t->rc = lease_ready(s);
            w->boot = s->boot;
        }
    }
    b->epoch = w->h.epoch;
    if (b->owner && !(b->flags & BATCH_INPUT))
        b->owner->epoch = b->flags & BATCH_RELEASE ? 0 : b->epoch;
}

/* After the events: a lease given back, and whether recovery has to look at the session. */
static void leave_lease(struct batch *b, struct whead *w)
{
    if (b->flags & BATCH_RELEASE) {
        w->boot = 0;
        w->stay = (b->flags & BATCH_LIVE) != 0;
        w->wake = w->stay && b->caches_seq == b->last_seq ? b->wake_ms : 0; /* something came between: look at once */
    } else if (b->flags & BATCH_INPUT) {
        w->wake = 0;
    }
}

static void reveal_session(struct txn *t, struct whead *w)
{
    sqlite3_bind_int64(db_stmt(&t->s->w, ST_SESSION_REVEAL), 1, w->sid);
    t->rc = db_run(&t->s->w, ST_SESSION_REVEAL);
    w->hidden = false;
    if (whead_live(w))
        w->in_live = false; /* its row of `sessions` has changed: whead_write() must renew the check */
}

static void apply_batch(struct txn *t, struct batch *b)
{
    struct whead *w = whead_load(t->s, str_from(b->session), &t->rc);

    if (!t->rc && w->damaged) /* in nobody else's way */
        batch_refuse_record(b, b->session);
    if (t->rc || b->code)
        return;
    if (b->flags & BATCH_CREATE)
        create_session(t, b, w);
    if (!t->rc && !b->code && !(b->flags & BATCH_CREATE) && !(b->flags & BATCH_DELETE))
        check_batch(t, b, w);
    if (!t->rc && !b->code && (b->flags & BATCH_DELETE)) {
        if (w->exists && w->hidden == ((b->flags & BATCH_HIDDEN) != 0))
            delete_session(t, b, w);
        else
            batch_refuse(b, TIDE_NOT_FOUND, "no session '%s'", b->session);
        return;
    }
    if (t->rc || b->code)
        return;
    touch_head(t, w);
    w->dirty = true;
    move_lease(t, b, w);
    b->first_seq = w->h.last_seq + 1;
    w->proven = b->flags & BATCH_VOUCH || (w->proven && !(b->flags & BATCH_KEEP));
    for (size_t i = 0; i < b->n && !t->rc; i++)
        t->rc = insert_event(t, b, w, &b->events[i], w->proven && origin_wants(b, i));
    if (b->flags & BATCH_KEEP && b->n) /* they may have brought their own */
        w->proven =
            origin_holds(&b->events[b->n - 1].proof, &t->s->base.origin, str_from(w->h.id), w->h.last_seq, w->h.digest);
    b->last_seq = w->h.last_seq;
    b->epoch = w->h.epoch;
    if (!t->rc && b->snapshot.len && b->caches_seq == b->last_seq)
        t->rc = insert_snapshot(t, b, w);
    w->summary_set = b->summary.len > 0 && b->caches_seq == b->last_seq;
    w->summary = b->summary;
    leave_lease(b, w);
    if (!t->rc && b->flags & BATCH_REVEAL)
        reveal_session(t, w);
}

static int run_batches(struct txn *t, struct batch *list)
{
    t->rc = heads_freshen(t->s);
    t->before_pos = t->s->last_pos;
    for (struct batch *b = list; b && !t->rc; b = b->next)
        if (!b->answered)
            apply_batch(t, b);
    for (const struct request *r = t->s->queue.taken; r && !t->rc; r = r->next) {
        t->boot = r->boot;
        for (struct batch *b = r->list; b && !t->rc; b = b->next)
            apply_batch(t, b);
    }
    for (size_t i = 0; i < t->touched_n && !t->rc; i++)
        t->rc = whead_write(t->s, t->touched[i]);
    t->rc = t->rc ? t->rc : pending_flush(t->s);
    if (!t->rc && sqlite3_get_autocommit(t->s->w.db))
        t->rc = SQLITE_IOERR; /* a read failed on the way, and with it all of this */
    for (size_t i = 0; i < t->touched_n; i++)
        t->touched[i]->touched = false;
    INVARIANT(t->rc || (t->s->last_pos >= t->before_pos && !t->s->pending.event_count && !t->s->pending.head_count));
    return t->rc;
}

/* The transaction is lost: nobody gets an ok. */
static void fail_all(struct sqlite_store *s, struct batch *list, const struct tide_err *err)
{
    for (struct batch *b = list; b; b = b->next) {
        if (!b->code && !b->answered) /* else it was refused anyway, and says why */
            batch_fail(b, err, &s->orphans, &s->base);
    }
}

/* Committed: their leases are known. */
static void adopt_group(struct sqlite_store *s, const struct batch *list)
{
    for (const struct batch *b = list; b; b = b->next) {
        if (!b->code && !b->answered && !(b->flags & BATCH_INPUT))
            orphan_drop(&s->orphans, b->session);
    }
}

/* What a failed COMMIT means: without space nothing was stored; anything else is not known here. */
static void commit_failed(struct sqlite_store *s, int rc, struct tide_err *err)
{
    if (db_fail(s, &s->w, rc, err, "append") == TIDE_FULL && (rc & 0xff) == SQLITE_FULL)
        return; /* a write found no space; a sync that finds none says SQLITE_IOERR */
    s->broken = true;
    s->base.unsettled = true;
    err->code = TIDE_UNKNOWN;
    tide_wrap(err, "the disk failed while the events were being stored; it is unknown whether they are stored");
}

/* Own batches, and what other processes have handed over. */
static void commit_locked(struct sqlite_store *s, struct batch *list, struct tide_err *err)
{
    struct txn t = {.s = s, .arena = ARENA_INIT, .now_ms = env_now_ms(s->base.env)};
    int64_t boot = s->boot, due = s->beat_due_ms;
    bool stored;
    int rc = db_run(&s->w, ST_BEGIN_WRITE);

    if (!rc) {
        rc = run_batches(&t, list);
        if (rc)
            db_fail(s, &s->w, rc, err, "append");
    } else {
        db_fail(s, &s->w, rc, err, "begin");
    }
    if (!rc && t.touched_n + t.deleted == 0) {
        db_run(&s->w, ST_ROLLBACK); /* all refused: nothing to sync */
    } else if (!rc && mark_begin(s, t.before_pos, err)) {
        rc = SQLITE_IOERR; /* not even tried */
    } else if (!rc) {
        queue_storing(s);
        rc = db_run(&s->w, ST_COMMIT);
        if (!rc)
            mark_end(s, s->last_pos);
        rc = rc || !s->broken ? rc : SQLITE_IOERR;
        if (rc)
            commit_failed(s, rc, err);
        if (rc && err->code == TIDE_FULL)
            mark_back(s, t.before_pos); /* nothing was stored, nothing is in doubt: others may open on the full disk */
    }
    if (rc) {
        db_run(&s->w, ST_ROLLBACK);
        heads_forget(s);
        s->boot = boot; /* a row made in this transaction is gone with it */
        s->beat_due_ms = due;
        fail_all(s, list, err);
    } else if (t.touched_n + t.deleted) {
        adopt_group(s, list);
    }
    stored = !rc && t.touched_n + t.deleted;
    queue_answer(s, stored ? QUEUE_STORED : rc && err->code == TIDE_UNKNOWN ? QUEUE_UNKNOWN : QUEUE_NOT_STORED);
    s->queue.alone = rc != SQLITE_OK;
    pending_clear(s);
    free(t.touched);
    arena_done(&t.arena);
}

void sqlite_commit(struct store *store, struct batch *list)
{
    struct sqlite_store *s = sqlite_of(store);
    struct tide_err err = {0};
    bool answered = false;

    store->serve = false;
    if (db_ready(s, &err)) {
        fail_all(s, list, &err);
        return;
    }
    if ((list ? queue_lock(s, list, &answered, &err) != TIDE_OK : !queue_try(s))) {
        fail_all(s, list, &err);
    } else if (!answered) {
        queue_take(s);
        if (list || s->queue.taken)
            commit_locked(s, list, &err);
        queue_unlock(s);
    }
    if (s->broken)
        (void)!db_ready(s, &err); /* now, so that the process that reads next sees what is on disk */
}

static bool is_long(const struct sqlite_store *s)
{
    return s->wal_pages > WAL_LIMIT_PAGES && s->wal_pages > s->move_at_pages;
}

bool sqlite_is_due(struct store *store)
{
    struct sqlite_store *s = sqlite_of(store);

    return is_long(s) || lease_beat_due(s) || orphans_due(&s->orphans, store);
}

void sqlite_maintain(struct store *store)
{
    struct sqlite_store *s = sqlite_of(store);
    bool move = is_long(s);
    bool beat = lease_beat_due(s);
    struct tide_err err;

    orphans_give_back(&s->orphans, store);
    if (beat && s->broken)
        (void)!db_ready(s, &err); /* or the leases would run out because of one failure */
    if (s->broken || !s->w.db || (!move && !beat) || db_lock(s, NULL))
        return;
    if (beat && lease_beat(s) != SQLITE_OK)
        s->broken = true;
    if (move && !s->broken)
        db_checkpoint(s);
    queue_unlock(s);
}
