/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading a state. The ledger is easy: newest snapshot, then every event after it. The content follows the spans: after a
 * rollback at R to N it is what it was at N, then what came after R. So the pieces are found from the end:
 *
 *   cur = seq; while the newest rollback R <= cur (after the base) exists: keep piece (R, cur], cur = its to_seq
 *
 * until no rollback lies between a snapshot (or the beginning) and cur; then they are folded from the oldest on. A rollback
 * to before the snapshot takes an older snapshot as base. Nothing is read twice but the pieces of a session that was
 * rolled back.
 */
#include "session/load.h"
#include "session/value_places.h"

#include "base/invariant.h"

#include <inttypes.h>

struct rollback {
    int64_t seq, to;
};

struct loading {
    struct store *store;
    const struct head *head;
    struct state *state;
    struct arena scratch;
    struct rollback *rollbacks; /* in the range that was scanned, in order */
    size_t n;
    size_t bytes;
    int depth; /* forks that it was reached through */
};

struct piece {
    int64_t from, to;
};

static void note_rollback(struct loading *l, const struct event *ev)
{
    struct json *body;
    int64_t to;

    arena_reset(&l->scratch);
    if (json_parse(&l->scratch, ev->body, NULL, &body, NULL, NULL))
        return;
    to = json_get_int(body, STR("to_seq"), 0);
    if (to < 0 || to >= ev->seq) /* no rollback of ours, but an import may bring it: it changes nothing */
        to = ev->seq - 1;
    INVARIANT(!l->n || l->rollbacks[l->n - 1].seq < ev->seq); /* last_rollback() looks for the newest from the end */
    l->rollbacks = mem_grow(l->rollbacks, (l->n + 1) * sizeof *l->rollbacks);
    l->rollbacks[l->n++] = (struct rollback){ev->seq, to};
}

static bool is_rollback(const struct event *ev)
{
    return str_eq(ev->kind, STR("session.rolled_back"));
}

/* Ledger and content together for as long as no rollback has come. */
static int on_event(void *arg, const struct event *ev)
{
    struct loading *l = arg;

    l->bytes += ev->body.len + EVENT_OVERHEAD;
    if (is_rollback(ev))
        note_rollback(l, ev);
    if (l->n)
        state_apply_ledger(l->state, ev, &l->scratch);
    else
        state_apply(l->state, ev, &l->scratch);
    return 0;
}

static int on_content(void *arg, const struct event *ev)
{
    struct loading *l = arg;

    state_apply_content(l->state, ev, &l->scratch);
    return 0;
}

static int on_scan(void *arg, const struct event *ev)
{
    if (is_rollback(ev))
        note_rollback(arg, ev);
    return 0;
}

struct stood_on {
    unsigned char digest[DIGEST_SIZE];
    bool found;
};

static int take_digest(void *arg, const struct event *ev)
{
    struct stood_on *s = arg;

    memcpy(s->digest, ev->digest, DIGEST_SIZE);
    s->found = true;
    return 0;
}

/* The parent as it is there; one that is gone is damage of the fork, which is listed beside others. */
static enum tide_code find_parent(struct store *store, const struct head *head, struct head *ret, struct tide_err *err)
{
    enum tide_code code = store_head(store, str_from(head->parent_id), ret, err);

    if (code == TIDE_NOT_FOUND && store_head(store, str_from(head->id), ret, err) == TIDE_NOT_FOUND)
        return err->code; /* somebody has deleted it meanwhile, and its parent then */
    if (code == TIDE_NOT_FOUND)
        return tide_fail_session(err, TIDE_CORRUPT, head->id,
                                 "continues from event %" PRId64 " of session '%s', which is gone: restore it",
                                 head->parent_seq, head->parent_id);
    return code ? tide_wrap(err, "read the parent of '%s'", head->id) : TIDE_OK;
}

/*
 * The digest of the event that a fork stands on covers that event's session and all before it, and the fork's own digests cover
 * that digest. An event of the parent's own has a lower seq than any of the fork's: so nobody is his own ancestor.
 */
enum tide_code history_parent(struct store *store, const struct head *head, struct head *ret, struct tide_err *err)
{
    struct stood_on at = {.found = false};
    enum tide_code code = find_parent(store, head, ret, err);

    if (code)
        return code;
    if (head->parent_seq != head->first_seq - 1 || ret->first_seq > head->parent_seq)
        return tide_fail_session(err, TIDE_CORRUPT, head->id,
                                 "names session '%s' as its parent, which has no event %" PRId64 " of its own: the "
                                 "name is damaged, or parents form a cycle",
                                 head->parent_id, head->parent_seq);
    code = store_read(store, ret, head->parent_seq, head->parent_seq, take_digest, &at, err);
    if (code)
        return tide_wrap(err, "session '%s' is a fork of '%s'", head->id, head->parent_id);
    if (!at.found || memcmp(at.digest, head->first_before, DIGEST_SIZE) != 0)
        return tide_fail_session(err, TIDE_CORRUPT, head->id,
                                 "does not continue '%s' at seq %" PRId64 ": that session was cut or replaced; "
                                 "restore its log",
                                 head->parent_id, head->parent_seq);
    return TIDE_OK;
}

enum tide_code history_writer(struct store *store, const struct head *head, const char *id, struct head *ret,
                              struct tide_err *err)
{
    struct head at = *head;
    enum tide_code code = TIDE_OK;

    if (strcmp(at.id, id) == 0)
        return store_head(store, str_from(id), ret, err); /* it may have continued since */
    while (!code && strcmp(at.id, id) != 0) {
        if (!at.parent_id[0])
            return tide_fail_session(err, TIDE_CORRUPT, head->id, "does not begin with session '%s'", id);
        code = history_parent(store, &at, ret, err);
        at = code ? at : *ret;
    }
    *ret = at;
    return code;
}

static enum tide_code too_deep(const struct head *head, struct tide_err *err)
{
    return tide_fail_session(err, TIDE_CORRUPT, head->id, "has more than %d ancestors", FORKS_DEEP);
}

enum tide_code history_prove_own(struct store *store, const struct head *h, int64_t to, struct tide_err *err)
{
    return h->held && h->holder_alive ? TIDE_OK : store_prove(store, h, to, err); /* who holds it has done so */
}

enum tide_code history_prove(struct store *store, const struct head *head, int64_t to, struct tide_err *err)
{
    struct head at = *head, parent;
    enum tide_code code = TIDE_OK;
    bool on = store_can(store, STORE_PROVES);

    while (on && !code) {
        code = history_prove_own(store, &at, to, err);
        on = at.parent_id[0] != 0;
        to = at.parent_seq;
        if (on && !code)
            code = history_parent(store, &at, &parent, err);
        if (on && !code)
            at = parent;
    }
    return code;
}

enum tide_code history_prove_now(struct store *store, const char *id, struct tide_err *err)
{
    struct head h;

    if (!store_can(store, STORE_PROVES))
        return TIDE_OK;
    return store_head(store, str_from(id), &h, err) ? err->code : history_prove(store, &h, h.last_seq, err);
}

enum tide_code fork_depth_check(struct store *store, const struct head *parent, struct tide_err *err)
{
    struct head at = *parent, next;
    enum tide_code code = TIDE_OK;

    for (int depth = 1; at.parent_id[0] && !code; depth++) {
        if (depth >= FORKS_DEEP)
            return tide_fail_session(err, TIDE_INVALID, parent->id,
                                     "is a fork of a fork, %d levels deep: it cannot be forked again", FORKS_DEEP);
        code = history_parent(store, &at, &next, err);
        at = next;
    }
    return code;
}

static enum tide_code load_at(struct store *store, const struct head *head, int64_t seq, int depth,
                              struct state **ret_state, struct load_cost *ret_cost, struct tide_err *err);

/* The state before a session's first own event. */
static enum tide_code beginning(struct store *store, const struct head *head, int depth, struct state **ret,
                                struct tide_err *err)
{
    struct head parent;
    enum tide_code code;

    if (!head->parent_id[0]) {
        *ret = state_new(str_from(head->id));
        return TIDE_OK;
    }
    code = history_parent(store, head, &parent, err);
    if (!code)
        code = load_at(store, &parent, head->parent_seq, depth + 1, ret, NULL, err);
    if (!code)
        state_become_fork(*ret, str_from(head->id));
    return code;
}

struct filling {
    struct state *state;
    struct arena arena;
    bool whole;
};

static int fill_from(void *arg, const struct event *ev)
{
    struct filling *f = arg;

    f->whole = places_fill(&f->state->content, ev, &f->arena);
    return 1;
}

/* Reads the values that the snapshot only names. One that names what is not there is no snapshot of this log: it is dropped. */
static enum tide_code fill_places(struct store *store, const struct head *head, struct state **state,
                                  struct tide_err *err)
{
    struct filling f = {*state, ARENA_INIT, true};
    enum tide_code code = TIDE_OK;
    int64_t seq;

    while (!code && f.whole && (seq = places_next_absent(&f.state->content)) != 0) {
        f.whole = false;
        code = read_through(store, head, seq, seq, fill_from, &f, err);
    }
    arena_done(&f.arena);
    if (code || !f.whole)
        state_free(TAKE(*state));
    return code;
}

/* The newest state that is stored at or before seq; a snapshot that cannot be read is passed over. */
static enum tide_code base_state(struct store *store, const struct head *head, int64_t seq, int depth,
                                 struct state **ret, struct load_cost *cost, struct tide_err *err)
{
    AUTO(state_freep) struct state *s = NULL;
    struct buf data = BUF_INIT(SIZE_MAX / 4);
    int64_t at = 0;
    enum tide_code code = store_snapshot(store, head, seq, &data, &at, err);

    if (!code && at && !state_decode(buf_view(&data), &s, NULL))
        code = fill_places(store, head, &s, err);
    if (!code && s) {
        *cost = (struct load_cost){at, data.len, 0};
        *ret = TAKE(s);
    } else if (!code) {
        *cost = (struct load_cost){0, 0, 0};
        code = beginning(store, head, depth, ret, err);
    }
    buf_done(&data);
    return code;
}

/* The newest rollback with seq <= at among those noted. */
static const struct rollback *last_rollback(const struct loading *l, int64_t at)
{
    for (size_t i = l->n; i > 0; i--) {
        if (l->rollbacks[i - 1].seq <= at)
            return &l->rollbacks[i - 1];
    }
    return NULL;
}

/* Content of before the session's own events: nothing, or the parent's. */
static enum tide_code content_before(struct loading *l, int64_t seq, struct tide_err *err)
{
    struct head parent;
    struct state *s = NULL;
    enum tide_code code = TIDE_OK;

    if (l->head->parent_id[0] && seq > 0) {
        code = history_parent(l->store, l->head, &parent, err);
        code = code ? code : load_at(l->store, &parent, seq, l->depth + 1, &s, NULL, err);
    } else {
        s = state_new(str_from(l->head->id));
    }
    if (code)
        return code;
    state_become_fork(s, str_from(l->head->id));
    state_take_content(l->state, s);
    state_free(s);
    return TIDE_OK;
}

struct pieces {
    struct piece *list; /* newest first */
    size_t n;
};

static void keep_piece(struct pieces *p, int64_t from, int64_t to)
{
    if (from > to)
        return;
    INVARIANT(!p->n || to < p->list[p->n - 1].from);
    p->list = mem_grow(p->list, (p->n + 1) * sizeof *p->list);
    p->list[p->n++] = (struct piece){from, to};
}

/* Collects pieces back to `base`; returns the seq that lies before it, or base when they reach it. */
static int64_t collect_pieces(struct loading *l, struct pieces *p, int64_t cur, int64_t base)
{
    const struct rollback *r;

    while (cur > base && (r = last_rollback(l, cur)) != NULL) {
        keep_piece(p, r->seq + 1, cur);
        cur = r->to;
    }
    if (cur > base) {
        keep_piece(p, base + 1, cur);
        cur = base;
    }
    return cur;
}

/*
 * The content as of seq, where rollbacks after `base` are noted in l. Each round goes back to an older snapshot, until the
 * pieces reach one exactly.
 */
static enum tide_code load_content(struct loading *l, int64_t seq, int64_t base, struct tide_err *err)
{
    struct pieces p = {NULL, 0};
    struct load_cost cost = {base, 0, 0};
    enum tide_code code = TIDE_OK;
    int64_t cur = collect_pieces(l, &p, seq, base), first = l->head->first_seq - 1;
    struct state *s = NULL;

    /* also for the one that was there a moment ago: it may be gone by now, and what comes instead is an older one */
    while (!code && cur > first && (!s || cur < base)) {
        state_free(TAKE(s));
        code = base_state(l->store, l->head, cur, l->depth, &s, &cost, err);
        if (code)
            break;
        base = cost.snapshot_seq ? cost.snapshot_seq : first;
        l->n = 0;
        if (base < cur)
            code = store_read(l->store, l->head, base + 1, cur, on_scan, l, err);
        if (!code)
            cur = collect_pieces(l, &p, cur, base);
    }
    if (!code && cur <= first) {
        code = content_before(l, cur, err);
    } else if (!code) {
        INVARIANT(s && cur == base);
        state_take_content(l->state, s);
    }
    for (size_t i = p.n; i > 0 && !code; i--)
        code = store_read(l->store, l->head, p.list[i - 1].from, p.list[i - 1].to, on_content, l, err);
    state_free(s);
    free(p.list);
    return code;
}

/* Folds what came after the state up to seq; rollbacks are noted and leave the content behind. */
static enum tide_code fold_tail(struct loading *l, int64_t seq, struct tide_err *err)
{
    return store_read(l->store, l->head, l->state->seq + 1, seq, on_event, l, err);
}

static enum tide_code load_at(struct store *store, const struct head *head, int64_t seq, int depth,
                              struct state **ret_state, struct load_cost *ret_cost, struct tide_err *err)
{
    struct loading l = {.store = store, .head = head, .scratch = ARENA_INIT, .depth = depth};
    struct load_cost cost = {0, 0, 0};
    struct head parent;
    enum tide_code code;

    if (depth > FORKS_DEEP)
        return too_deep(head, err);
    if (seq < head->first_seq && head->parent_id[0]) { /* of the past it shares */
        code = history_parent(store, head, &parent, err);
        return code ? code : load_at(store, &parent, seq, depth + 1, ret_state, ret_cost, err);
    }
    code = base_state(store, head, seq, depth, &l.state, &cost, err);
    if (!code)
        code = fold_tail(&l, seq, err);
    if (!code && l.n)
        code = load_content(&l, seq, cost.snapshot_seq ? cost.snapshot_seq : head->first_seq - 1, err);
    arena_done(&l.scratch);
    free(l.rollbacks);
    if (code) {
        state_free(l.state);
        return code;
    }
    cost.tail_bytes = l.bytes;
    if (ret_cost)
        *ret_cost = cost;
    *ret_state = l.state;
    return TIDE_OK;
}

enum tide_code state_load(struct store *store, const struct head *head, int64_t seq, struct state **ret_state,
                          struct load_cost *ret_cost, struct tide_err *err)
{
    return load_at(store, head, seq, 0, ret_state, ret_cost, err);
}

enum tide_code state_catch_up(struct store *store, const struct head *head, struct state **state,
                              struct load_cost *cost, struct tide_err *err)
{
    struct loading l = {.store = store, .head = head, .scratch = ARENA_INIT, .state = *state};
    enum tide_code code;
    struct state *anew;

    INVARIANT((*state)->seq <= head->last_seq);
    code = fold_tail(&l, head->last_seq, err);
    arena_done(&l.scratch);
    free(l.rollbacks);
    cost->tail_bytes += l.bytes;
    if (code || !l.n)
        return code;
    code = state_load(store, head, head->last_seq, &anew, cost, err);
    if (!code) {
        state_free(*state);
        *state = anew;
    }
    return code;
}

struct through {
    store_event_fn *fn;
    void *arg;
    bool stopped;
};

static int pass_on(void *arg, const struct event *ev)
{
    struct through *t = arg;

    t->stopped = t->fn(t->arg, ev) != 0;
    return t->stopped;
}

static enum tide_code read_back(struct store *store, const struct head *head, int64_t from, int64_t to, int depth,
                                struct through *t, struct tide_err *err)
{
    struct head parent;
    enum tide_code code = depth > FORKS_DEEP ? too_deep(head, err) : TIDE_OK;

    if (!code && from < head->first_seq && head->parent_id[0]) {
        code = history_parent(store, head, &parent, err);
        code = code ? code
                    : read_back(store, &parent, from, to < head->parent_seq ? to : head->parent_seq, depth + 1, t, err);
    }
    if (code || t->stopped || to < head->first_seq)
        return code;
    return store_read(store, head, from, to, pass_on, t, err);
}

enum tide_code read_through(struct store *store, const struct head *head, int64_t from, int64_t to, store_event_fn *fn,
                            void *arg, struct tide_err *err)
{
    struct through t = {fn, arg, false};

    return read_back(store, head, from, to ? to : head->last_seq, 0, &t, err);
}
