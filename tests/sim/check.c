/* SPDX-License-Identifier: Apache-2.0 */
/* One session in the store against the oracle: its events, and what became of those in doubt. */
#include <inttypes.h>

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

bool same_event(const struct o_event *want, const char *kind, struct str body)
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
    if (store_kind()->positions && e->pos && e->pos != ev->pos)
        wrong(w, "%s seq %" PRId64 " moved from position %" PRId64 " to %" PRId64, id, ev->seq, e->pos, ev->pos);
    if (store_kind()->positions && !e->pos && ev->pos <= e->floor)
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

    MEM_ROOM(l->extra, l->extra_n, l->extra_cap);
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
    if (ev->epoch < l->last_epoch || (store_kind()->positions && ev->pos <= l->last_pos))
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
            struct tide_event ev = {
                .seq = o_last(s), .pos = x->pos, .epoch = x->epoch, .body = x->body.ptr, .body_len = x->body.len};

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
    wrong(l->w, "%s: %zu events past seq %" PRId64 " that nobody was promised (%s %.60s)%s", s->id, l->extra_n,
          o_last(s), l->extra[0].kind, l->extra[0].body.ptr, n ? ", or a torn batch" : "");
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

/* What began here is proved at every moment, and what did not never is, whoever appended to it. */
static void check_trust(struct world *w, const struct o_session *s, enum tide_code code, const struct tide_err *err)
{
    if ((code == TIDE_OK && s->foreign) || (code == TIDE_UNTRUSTED && !s->foreign))
        wrong(w, "%s %s, and it is said that it %s", s->id, s->foreign ? "came from elsewhere" : "began here",
              code ? "did not" : "did");
    else if (code && code != TIDE_UNTRUSTED && !call_excused(w))
        wrong(w, "whether %s may run cannot be told: %s: %s", s->id, tide_code_name(code), err->msg);
}

bool look(struct world *w, tide_store *store, struct o_session *s, bool final)
{
    struct looking l = {.w = w, .s = s, .last_epoch = -1};
    struct tide_err err = {0};
    tide_session *h = NULL;
    enum tide_code code;

    call_begin(w);
    code = tide_session_open(store, s->id, TIDE_SESSION_READ, &h, &err);
    if (!code) {
        if (tide_session_first_seq(h) != s->first_seq)
            wrong(w, "%s begins at seq %" PRId64 ", not at %" PRId64, s->id, tide_session_first_seq(h), s->first_seq);
        code = tide_session_read(h, 0, 0, 0, on_event, &l, &err);
        if (!code)
            check_trust(w, s, tide_session_check_trust(h, &err), &err);
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
