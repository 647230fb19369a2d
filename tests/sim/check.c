/* SPDX-License-Identifier: Apache-2.0 */
/* The store against the oracle. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "world.h"

/* ---- Events --------------------------------------------------------------------------------------------------- */

struct looking {
    struct world *w;
    struct o_session *s;
    size_t at;
    int64_t last_epoch, last_pos;
    struct o_event *extra; /* past what was acknowledged */
    size_t extra_n, extra_cap;
};

static bool same_event(const struct o_event *want, const char *kind, struct str body)
{
    return strcmp(want->kind, kind) == 0 && (want->prefix ? str_starts(body, want->body) : str_eq(body, want->body));
}

/* Remembers what only the store could tell; from then on it may not change. */
static void pin(struct looking *l, struct o_event *e, const struct tide_event *ev)
{
    struct world *w = l->w;
    const char *id = l->s->id;

    if (e->prefix) {
        e->body = arena_dup(&w->arena, (struct str){ev->body, ev->body_len});
        e->prefix = false;
    }
    if (e->seen && (e->epoch != ev->epoch || memcmp(e->digest, ev->digest, sizeof e->digest) != 0))
        wrong(w, "%s seq %" PRId64 " has another epoch or digest than before", id, ev->seq);
    if (e->pos && e->pos != ev->pos)
        wrong(w, "%s seq %" PRId64 " moved from position %" PRId64 " to %" PRId64, id, ev->seq, e->pos, ev->pos);
    if (!e->pos && ev->pos <= e->floor)
        wrong(w, "%s seq %" PRId64 " has position %" PRId64 ", which was used before", id, ev->seq, ev->pos);
    e->seen = true;
    e->epoch = ev->epoch;
    e->pos = ev->pos;
    memcpy(e->digest, ev->digest, sizeof e->digest);
    if (ev->pos > w->max_pos)
        w->max_pos = ev->pos;
}

static void add_extra(struct looking *l, const struct tide_event *ev)
{
    struct o_event *e;

    if (l->extra_n == l->extra_cap) {
        l->extra_cap = l->extra_cap ? l->extra_cap * 2 : 16;
        l->extra = mem_grow(l->extra, l->extra_cap * sizeof *l->extra);
    }
    e = &l->extra[l->extra_n++];
    *e = (struct o_event){.kind = arena_dup(&l->w->arena, str_from(ev->kind)).ptr,
                          .body = arena_dup(&l->w->arena, (struct str){ev->body, ev->body_len}),
                          .epoch = ev->epoch,
                          .pos = ev->pos};
    memcpy(e->digest, ev->digest, sizeof e->digest);
}

static int on_event(void *arg, const struct tide_event *ev)
{
    struct looking *l = arg;
    struct o_session *s = l->s;
    struct o_event *want = l->at < s->n ? s->events[l->at] : NULL;

    if (ev->seq != s->first_seq + (int64_t)l->at)
        wrong(l->w, "%s: seq %" PRId64 " where %" PRId64 " should be", s->id, ev->seq, s->first_seq + (int64_t)l->at);
    if (ev->epoch < l->last_epoch || ev->pos <= l->last_pos)
        wrong(l->w, "%s seq %" PRId64 ": epoch or position went back", s->id, ev->seq);
    l->last_epoch = ev->epoch;
    l->last_pos = ev->pos;
    l->at++;
    if (!want) {
        add_extra(l, ev);
    } else if (!same_event(want, ev->kind, (struct str){ev->body, ev->body_len})) {
        wrong(l->w, "%s seq %" PRId64 " is %s %.60s, acknowledged was %s %.60s", s->id, ev->seq, ev->kind, ev->body,
              want->kind, want->body.ptr);
    } else {
        pin(l, want, ev);
    }
    return l->w->failed;
}

static bool in_trouble(struct world *w)
{
    return w->armed && w->sticky && sim_fault_fired(w->sim);
}

/* How many batches of the chain the extra events are, all of them used up; -1: they are not of this chain. */
static long chain_fits(const struct o_chain *c, const struct looking *l)
{
    size_t used = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (used == l->extra_n)
            return (long)i;
        for (size_t j = 0; j < c->batches[i].n; j++, used++) {
            if (used == l->extra_n || !same_event(&c->batches[i].events[j], l->extra[used].kind, l->extra[used].body))
                return -1;
        }
    }
    return used == l->extra_n ? (long)c->n : -1;
}

static void take_extra(struct looking *l, const struct o_chain *c, size_t batches)
{
    struct o_session *s = l->s;
    size_t used = 0;

    for (size_t i = 0; i < batches; i++) {
        o_acked(l->w, s, &c->batches[i], NULL);
        for (size_t j = 0; j < c->batches[i].n; j++, used++) {
            struct o_event *e = &c->batches[i].events[j];
            const struct o_event *x = &l->extra[used];
            struct tide_event ev = {.seq = o_last(s), .pos = x->pos, .epoch = x->epoch, .body = x->body.ptr,
                                    .body_len = x->body.len};

            memcpy(ev.digest, x->digest, sizeof ev.digest);
            pin(l, e, &ev);
        }
    }
}

/* What is past the acknowledged events must be a doubt that came true, whole batches of it. */
static void settle_extra(struct looking *l, bool final)
{
    struct o_session *s = l->s;
    struct o_chain alts[MAX_ALTS];
    size_t n = s->alt_count;

    if (l->extra_n == 0) {
        if (s->alt_count && final && !in_trouble(l->w)) {
            say(l->w, "%s: what was in doubt is not there", s->id);
            o_drop_doubt(s);
        }
        return;
    }
    memcpy(alts, s->alts, sizeof alts);
    for (size_t i = 0; i < n; i++) {
        long batches = chain_fits(&alts[i], l);

        if (batches > 0 && in_trouble(l->w)) {
            return; /* nobody can tell before the disk works again */
        } else if (batches > 0) {
            say(l->w, "%s: of what was in doubt %ld batches are there", s->id, batches);
            take_extra(l, &alts[i], (size_t)batches);
            s->presence = PRESENT;
            return;
        }
    }
    wrong(l->w, "%s: %zu events past seq %" PRId64 " that nobody was promised (%s %.60s)%s", s->id, l->extra_n, o_last(s),
          l->extra[0].kind, l->extra[0].body.ptr, n ? ", or a torn batch" : "");
}

/* At most one process appends under one epoch. */
static void check_epochs(struct world *w, const struct o_session *s)
{
    int64_t epoch = -1;
    int owner = -1;

    for (size_t i = 0; i < s->n; i++) {
        const struct o_event *e = s->events[i];

        if (e->input || e->owner < 0)
            continue;
        if (e->epoch == epoch && e->owner != owner)
            wrong(w, "%s seq %" PRId64 ": processes %d and %d both appended under epoch %" PRId64, s->id,
                  s->first_seq + (int64_t)i, owner, e->owner, epoch);
        epoch = e->epoch;
        owner = e->owner;
    }
}

static void not_there(struct world *w, struct o_session *s, bool final)
{
    if (s->presence == PRESENT)
        wrong(w, "session %s was acknowledged and is not there", s->id);
    else if ((final || s->presence == MAYBE_GONE) && !in_trouble(w))
        o_gone(w, s);
}

bool look(struct world *w, tide_store *store, struct o_session *s, bool final)
{
    struct looking l = {.w = w, .s = s, .last_epoch = -1};
    struct tide_err err = {TIDE_OK, ""};
    tide_session *h = NULL;
    enum tide_code code;

    call_begin(w);
    code = tide_session_open(store, s->id, TIDE_SESSION_READ, &h, &err);
    if (!code) {
        if (tide_session_first_seq(h) != s->first_seq)
            wrong(w, "%s begins at seq %" PRId64 ", not at %" PRId64, s->id, tide_session_first_seq(h), s->first_seq);
        code = tide_read(h, 0, 0, 0, on_event, &l, &err);
        tide_session_close(h);
    }
    if (code == TIDE_NOT_FOUND) {
        not_there(w, s, final || w->commits > s->doubt_at);
    } else if (code && !call_excused(w)) {
        wrong(w, "%s cannot be read: %s: %s", s->id, tide_code_name(code), err.msg);
    } else if (!code && !w->failed) {
        if (l.at < s->n)
            wrong(w, "%s has %zu events, %zu were acknowledged", s->id, l.at, s->n);
        final |= w->commits > s->doubt_at;
        if (s->presence == MAYBE_GONE && final && !in_trouble(w))
            s->presence = PRESENT;
        settle_extra(&l, final);
        check_epochs(w, s);
    }
    free(l.extra);
    return !code || code == TIDE_NOT_FOUND;
}

/* ---- States --------------------------------------------------------------------------------------------------- */

/* The state without its status, which is of now. */
static struct str without_status(struct world *w, struct tide_text t)
{
    static const char mark[] = ",\"status\":{\"status\":";
    char *copy = (char *)arena_dup(&w->arena, (struct str){t.ptr, t.len}).ptr;
    char *at = t.len > 400 ? memmem(copy + t.len - 400, 400, mark, sizeof mark - 1)
                           : memmem(copy, t.len, mark, sizeof mark - 1);

    if (!at)
        return (struct str){copy, t.len};
    *at = '}';
    return (struct str){copy, (size_t)(at - copy) + 1};
}

static void check_number(struct world *w, const struct o_session *s, int64_t seq, const struct json *of, const char *key,
                         int64_t want)
{
    int64_t got = json_get_int(of, str_from(key), -1);

    if (got != want)
        wrong(w, "%s as of %" PRId64 ": %s is %" PRId64 ", the model says %" PRId64, s->id, seq, key, got, want);
}

static void compare(struct world *w, const struct o_session *s, int64_t seq, struct str state)
{
    struct model m;
    struct json *v;
    const struct json *content, *ledger, *memory;
    uint32_t set = 0;

    if (json_parse(&w->arena, state, NULL, &v, NULL, NULL)) {
        wrong(w, "%s as of %" PRId64 ": the state is not JSON", s->id, seq);
        return;
    }
    model_at(w, s, seq, &m);
    content = json_get(v, STR("content"));
    ledger = json_get(v, STR("ledger"));
    memory = json_get(content, STR("memory"));
    for (int k = 0; k < KEYS; k++) {
        char key[3] = {'k', (char)('0' + k), 0};
        const struct json *got = json_get(memory, str_from(key));

        set += m.memory[k].ptr != NULL;
        if (!m.memory[k].ptr != !got || (got && !str_eq(json_source(got), m.memory[k])))
            wrong(w, "%s as of %" PRId64 ": %s is %.*s, the model says %.40s", s->id, seq, key,
                  got ? (int)(json_source(got).len < 40 ? json_source(got).len : 40) : 4,
                  got ? json_source(got).ptr : "none", m.memory[k].ptr ? m.memory[k].ptr : "none");
    }
    if (!memory || memory->count != set)
        wrong(w, "%s as of %" PRId64 ": memory has strange keys", s->id, seq);
    check_number(w, s, seq, v, "seq", seq);
    check_number(w, s, seq, content, "messages", m.messages);
    check_number(w, s, seq, ledger, "events", m.events);
    check_number(w, s, seq, ledger, "rollbacks", m.rollbacks);
    check_number(w, s, seq, ledger, "input_tokens", m.input_tokens);
    check_number(w, s, seq, ledger, "calls", m.calls);
    check_number(w, s, seq, ledger, "checkpoint_events", m.mark_events);
}

static void check_kept(struct world *w, struct o_session *s, int64_t seq, uint64_t hash, bool keep)
{
    for (size_t i = 0; i < s->kept_n; i++) {
        if (s->kept[i].seq == seq) {
            if (s->kept[i].hash != hash)
                wrong(w, "%s: the state as of %" PRId64 " is not what it was", s->id, seq);
            return;
        }
    }
    if (!keep)
        return;
    size_t i = s->kept_n < MAX_KEPT ? s->kept_n++ : rnd(w, MAX_KEPT);
    s->kept[i].seq = seq;
    s->kept[i].hash = hash;
}

void check_state(struct world *w, tide_session *h, struct o_session *s, int64_t seq, bool keep)
{
    struct tide_err err = {TIDE_OK, ""};
    struct tide_text t = {NULL, 0};
    struct str state;

    call_begin(w);
    if (tide_state(h, seq, &t, &err)) {
        if (!call_excused(w))
            wrong(w, "%s: no state as of %" PRId64 ": %s", s->id, seq, err.msg);
        return;
    }
    state = without_status(w, t);
    tide_text_done(&t);
    if (seq == 0)
        seq = tide_session_last_seq(h);
    if (seq > o_last(s)) {
        wrong(w, "%s: a state as of %" PRId64 ", past the end", s->id, seq);
        return;
    }
    compare(w, s, seq, state);
    check_kept(w, s, seq, str_hash(state), keep);
}

/* ---- The whole store ------------------------------------------------------------------------------------------ */

struct listing {
    struct world *w;
    bool listed[MAX_SESSIONS];
};

static int on_listed(void *arg, const struct tide_session_info *info)
{
    struct listing *l = arg;

    for (size_t i = 0; i < l->w->session_count; i++) {
        if (strcmp(l->w->sessions[i].id, info->id) == 0 && l->w->sessions[i].presence != ABSENT) {
            l->listed[i] = true;
            return 0;
        }
    }
    wrong(l->w, "the list has session %s, which should not be there", info->id);
    return 1;
}

struct all {
    struct world *w;
    int64_t last;
    size_t count;
};

static int on_any(void *arg, const struct tide_event *ev)
{
    struct all *a = arg;

    if (ev->pos <= a->last)
        wrong(a->w, "position %" PRId64 " comes after %" PRId64, ev->pos, a->last);
    a->last = ev->pos;
    a->count++;
    for (size_t i = 0; i < a->w->session_count; i++) {
        struct o_session *s = &a->w->sessions[i];

        if (strcmp(s->id, ev->session_id) == 0 && s->presence != ABSENT) {
            if (ev->seq < s->first_seq || ev->seq > o_last(s) || o_at(s, ev->seq)->pos != ev->pos)
                wrong(a->w, "position %" PRId64 " is %s seq %" PRId64 ", which is elsewhere", ev->pos, s->id, ev->seq);
            return a->w->failed;
        }
    }
    wrong(a->w, "position %" PRId64 " is an event of '%s', which is not there", ev->pos, ev->session_id);
    return 1;
}

static void check_order(struct world *w, tide_store *store)
{
    struct all a = {.w = w};
    struct tide_err err;
    size_t total = 0;

    for (size_t i = 0; i < w->session_count; i++)
        total += w->sessions[i].n;
    if (tide_read_all(store, 0, 0, on_any, &a, &err))
        wrong(w, "events of all sessions cannot be read: %s", err.msg);
    else if (a.count != total)
        wrong(w, "all sessions have %zu events, reading by position gives %zu", total, a.count);
}

struct inherited {
    struct world *w;
    const struct o_session *s;
    int64_t next;
};

static int on_inherited(void *arg, const struct tide_event *ev)
{
    struct inherited *in = arg;
    const struct o_session *of = in->s;

    while (ev->seq < of->first_seq && of->parent)
        of = of->parent;
    if (ev->seq != in->next++ || !same_event(o_at(of, ev->seq), ev->kind, (struct str){ev->body, ev->body_len}))
        wrong(in->w, "%s: what it inherits is wrong at seq %" PRId64, in->s->id, ev->seq);
    return in->w->failed;
}

static void check_one(struct world *w, tide_store *store, struct o_session *s, bool thorough)
{
    struct inherited in = {w, s, 1};
    struct tide_err err;
    tide_session *h;
    uint64_t n = 0;

    if (tide_session_open(store, s->id, TIDE_SESSION_READ, &h, &err)) {
        wrong(w, "%s cannot be opened: %s", s->id, err.msg);
        return;
    }
    check_state(w, h, s, 0, false);
    for (size_t i = 0; i < s->kept_n; i++)
        check_state(w, h, s, s->kept[i].seq, false);
    check_state(w, h, s, 1 + (int64_t)rnd(w, (uint64_t)o_last(s)), true);
    if (s->parent && tide_read(h, TIDE_READ_INHERITED, 0, 0, on_inherited, &in, &err))
        wrong(w, "%s: what it inherits cannot be read: %s", s->id, err.msg);
    if (s->parent && !w->failed && in.next != o_last(s) + 1)
        wrong(w, "%s: reading from its past ends at %" PRId64, s->id, in.next - 1);
    if (thorough && (tide_verify(h, NULL, NULL, &n, &err) || n != s->n))
        wrong(w, "%s does not verify: %s", s->id, n != s->n ? "wrong count" : err.msg);
    tide_session_close(h);
}

void check_all(struct world *w, tide_store *store, bool thorough)
{
    struct listing l = {.w = w};
    struct tide_err err;

    if (tide_session_list(store, NULL, on_listed, &l, &err) && !w->failed)
        wrong(w, "sessions cannot be listed: %s", err.msg);
    for (size_t i = 0; i < w->session_count && !w->failed; i++) {
        struct o_session *s = &w->sessions[i];

        if (s->presence != ABSENT)
            look(w, store, s, true);
        if (!w->failed && l.listed[i] != (s->presence == PRESENT))
            wrong(w, "%s is %slisted", s->id, l.listed[i] ? "" : "not ");
    }
    for (size_t i = 0; i < w->session_count && !w->failed; i++) {
        if (w->sessions[i].presence == PRESENT)
            check_one(w, store, &w->sessions[i], thorough);
    }
    if (!w->failed)
        check_order(w, store);
}

static void on_problem(void *arg, const char *where, const char *what)
{
    wrong(arg, "store check: %s: %s", where, what);
}

void check_rebuilt(struct world *w, tide_store *store)
{
    struct tide_err err;
    uint64_t before[MAX_SESSIONS] = {0};

    for (int pass = 0; pass < 2 && !w->failed; pass++) {
        for (size_t i = 0; i < w->session_count; i++) {
            struct tide_text t;
            tide_session *h;
            uint64_t hash;

            if (w->sessions[i].presence != PRESENT)
                continue;
            if (tide_session_open(store, w->sessions[i].id, TIDE_SESSION_READ, &h, &err)) {
                wrong(w, "%s cannot be opened: %s", w->sessions[i].id, err.msg);
                return;
            }
            if (tide_state(h, 0, &t, &err)) {
                wrong(w, "%s has no state: %s", w->sessions[i].id, err.msg);
                tide_session_close(h);
                return;
            }
            hash = str_hash(without_status(w, t));
            tide_text_done(&t);
            tide_session_close(h);
            if (pass && hash != before[i])
                wrong(w, "%s: the state without caches is another", w->sessions[i].id);
            before[i] = hash;
        }
        if (pass == 0 && tide_store_check(store, TIDE_CHECK_REBUILD, NULL, on_problem, w, &err))
            wrong(w, "the store does not pass its check: %s", err.msg);
    }
    if (!w->failed)
        check_all(w, store, false);
}
