/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process asks another to commit with its own: appends under a lease that is held, and inputs. Nothing that takes a lease,
 * or needs files or memory of the process that asks. The same area then takes the results.
 *
 *   head     lengths, numbers, a check over the request, a check over the results
 *   batches  session, flags, guards, lengths of snapshot and summary
 *   events   time, lengths of kind and body
 *   results  of every batch: whether it was taken, where; of every event: its place and digest
 *   texts    kinds, bodies, snapshots, summaries
 *
 * The checks are against damage, not against an attacker: the caller that can write here can write to the store.
 */
#include "store/sqlite_request.h"

#include "base/digest.h"
#include "base/id.h"
#include "store/store.h"

enum { BATCHES_MAX = 64, EVENTS_MAX = 256, MAY_PASS = BATCH_INPUT | BATCH_RELEASE | BATCH_LIVE | BATCH_VOUCH };

struct wire_head {
    uint32_t bytes, batches, events, number;
    int64_t check, results_check;
};

struct wire_batch {
    char session[TIDE_ID_SIZE + 7];
    int64_t expect_seq, epoch, caches_seq, wake_ms;
    uint32_t flags, owner, events, snapshot, summary, reserved; /* owner: which of them, from 1; 0: none */
};

struct wire_event {
    int64_t ts_ms;
    uint32_t kind, body;
};

struct wire_result {
    int64_t first_seq, last_seq, epoch, taken;
};

struct wire_place {
    int64_t seq, pos, ts_ms, epoch;
    unsigned char digest[DIGEST_SIZE];
};

/* Where each part begins. */
struct parts {
    struct wire_head *head;
    struct wire_batch *batches;
    struct wire_event *events;
    struct wire_result *results;
    struct wire_place *places;
    char *texts;
};

static struct parts parts_of(void *area, size_t batches, size_t events)
{
    struct parts p = {.head = area};

    p.batches = (struct wire_batch *)(p.head + 1);
    p.events = (struct wire_event *)(p.batches + batches);
    p.results = (struct wire_result *)(p.events + events);
    p.places = (struct wire_place *)(p.results + batches);
    p.texts = (char *)(p.places + events);
    return p;
}

static int64_t check_of(const void *bytes, size_t n)
{
    static const unsigned char key[SHORT_KEY_SIZE] = "request";

    return digest_short(key, bytes, n);
}

/* Over all but the results and the checks. */
static int64_t request_check(const struct parts *p)
{
    const char *asked = (const char *)p->batches, *end = (const char *)p->head + p->head->bytes;
    int64_t all[] = {p->head->bytes,
                     p->head->batches,
                     p->head->events,
                     p->head->number,
                     check_of(asked, (size_t)((const char *)p->results - asked)),
                     check_of(p->texts, (size_t)(end - p->texts))};

    return check_of(all, sizeof all);
}

/* Bound to the request that they are of. */
static int64_t results_check(const struct parts *p)
{
    return check_of(p->results, (size_t)(p->texts - (char *)p->results)) ^ p->head->check;
}

/* ---- asking ---- */

struct sizes {
    size_t owners, batches, events, texts;
    const struct group_owner *who[BATCHES_MAX];
};

static uint32_t owner_number(struct sizes *z, const struct group_owner *owner)
{
    size_t i = 0;

    while (i < z->owners && z->who[i] != owner)
        i++;
    if (i == z->owners)
        z->who[z->owners++] = owner;
    return (uint32_t)i + 1;
}

static bool may_pass(const struct batch *b, bool may_hold)
{
    return b->n > 0 && !(b->flags & ~(unsigned)MAY_PASS) && !b->session_files && (may_hold || b->flags & BATCH_INPUT) &&
           !(b->owner && b->owner->failed.code);
}

static bool measure_batches(const struct batch *list, bool may_hold, struct sizes *z)
{
    for (const struct batch *b = list; b; b = b->next) {
        if (z->batches++ == BATCHES_MAX || (z->events += b->n) > EVENTS_MAX || !may_pass(b, may_hold))
            return false;
        for (size_t i = 0; i < b->n; i++)
            z->texts += b->events[i].kind.len + b->events[i].body.len;
        z->texts += b->snapshot.len + b->summary.len;
    }
    return true;
}

static void put_text(char **at, uint32_t *ret_len, struct str s)
{
    *ret_len = (uint32_t)s.len;
    if (s.len)
        memcpy(*at, s.ptr, s.len);
    *at += s.len;
}

static void put_batch(const struct batch *b, struct sizes *z, struct wire_batch *to, struct wire_event *ev, char **at)
{
    *to = (struct wire_batch){.expect_seq = b->expect_seq,
                              .epoch = b->owner ? b->owner->epoch : b->epoch,
                              .caches_seq = b->caches_seq,
                              .wake_ms = b->wake_ms,
                              .flags = b->flags,
                              .owner = b->owner ? owner_number(z, b->owner) : 0,
                              .events = (uint32_t)b->n};
    memcpy(to->session, b->session, TIDE_ID_SIZE);
    for (size_t i = 0; i < b->n; i++) {
        ev[i].ts_ms = b->events[i].ts_ms;
        put_text(at, &ev[i].kind, b->events[i].kind);
        put_text(at, &ev[i].body, b->events[i].body);
    }
    put_text(at, &to->snapshot, b->snapshot);
    put_text(at, &to->summary, b->summary);
}

bool request_put(const struct batch *list, bool may_hold, uint32_t number, void *area, size_t room)
{
    struct sizes z = {0};
    struct wire_event *ev;
    struct wire_batch *to;
    struct parts p;
    size_t fixed;
    char *at;

    if (!measure_batches(list, may_hold, &z))
        return false;
    p = parts_of(area, z.batches, z.events);
    fixed = (size_t)(p.texts - (char *)area);
    if (fixed > room || z.texts > room - fixed)
        return false;
    at = p.texts;
    to = p.batches;
    ev = p.events;
    for (const struct batch *b = list; b; ev += b->n, b = b->next)
        put_batch(b, &z, to++, ev, &at);
    *p.head = (struct wire_head){.bytes = (uint32_t)(fixed + z.texts),
                                 .batches = (uint32_t)z.batches,
                                 .events = (uint32_t)z.events,
                                 .number = number};
    p.head->check = request_check(&p);
    return true;
}

/* ---- being asked ---- */

/* The parts of an area whose numbers fit. */
static bool parts_find(void *area, size_t bytes, struct parts *ret)
{
    const struct wire_head *h = area;

    if (bytes < sizeof *h || h->batches == 0 || h->batches > BATCHES_MAX || h->events > EVENTS_MAX || h->bytes > bytes)
        return false;
    *ret = parts_of(area, h->batches, h->events);
    return (size_t)(ret->texts - (char *)area) <= h->bytes;
}

static bool take_text(struct str *from, size_t len, struct str *ret)
{
    if (len > from->len)
        return false;
    *ret = (struct str){from->ptr, len};
    from->ptr += len;
    from->len -= len;
    return true;
}

/* Its texts stay where they are. */
static struct batch *get_batch(struct arena *a, const struct wire_batch *w, const struct wire_event *from,
                               size_t owners, struct request *r, struct str *texts)
{
    struct batch *b = arena_zero(a, sizeof *b);

    if (w->session[TIDE_ID_SIZE - 1] || !str_is_id(str_from(w->session)) || w->flags & ~(unsigned)MAY_PASS ||
        w->owner > owners)
        return NULL;
    memcpy(b->session, w->session, sizeof b->session);
    b->flags = w->flags;
    b->expect_seq = w->expect_seq;
    b->epoch = w->epoch;
    b->caches_seq = w->caches_seq;
    b->wake_ms = w->wake_ms;
    b->owner = w->owner ? &r->owners[w->owner - 1] : NULL;
    if (b->owner)
        b->owner->epoch = w->epoch;
    b->n = w->events;
    b->events = arena_zero(a, b->n * sizeof *b->events);
    for (size_t i = 0; i < b->n; i++) {
        b->events[i].ts_ms = from[i].ts_ms;
        if (!take_text(texts, from[i].kind, &b->events[i].kind) || !take_text(texts, from[i].body, &b->events[i].body))
            return NULL;
    }
    return take_text(texts, w->snapshot, &b->snapshot) && take_text(texts, w->summary, &b->summary) ? b : NULL;
}

static bool get_all(struct arena *a, struct parts *p, struct request *r)
{
    struct str texts = {p->texts, p->head->bytes - (size_t)(p->texts - (char *)p->head)};
    struct batch **tail = &r->list;
    size_t left = p->head->events;

    for (size_t i = 0; i < p->head->batches; i++) {
        const struct wire_batch *w = &p->batches[i];
        const struct wire_event *first = p->events + (p->head->events - left);

        if (w->events > left || !(*tail = get_batch(a, w, first, p->head->batches, r, &texts)))
            return false;
        tail = &(*tail)->next;
        left -= w->events;
    }
    return left == 0;
}

struct request *request_get(struct arena *a, const void *area, size_t room)
{
    uint32_t bytes = __atomic_load_n(&((const struct wire_head *)area)->bytes, __ATOMIC_RELAXED);
    struct request *r;
    struct parts p;
    void *copy;

    if (bytes > room)
        return NULL;
    copy = arena_alloc(a, bytes + sizeof(struct wire_head));
    memcpy(copy, area, bytes);
    if (!parts_find(copy, bytes, &p) || p.head->bytes != bytes || p.head->check != request_check(&p))
        return NULL;
    r = arena_zero(a, sizeof *r);
    r->owners = arena_zero(a, p.head->batches * sizeof *r->owners); /* one each at most */
    return get_all(a, &p, r) ? r : NULL;
}

/* ---- results ---- */

void request_results_put(const struct request *r, void *area, size_t room)
{
    struct wire_result *to;
    struct wire_place *place;
    struct parts p;
    size_t batches = 0, events = 0;

    for (const struct batch *b = r->list; b; b = b->next, batches++)
        events += b->n;
    p = parts_of(area, batches,
                 events); /* by what was asked: what stands there now may be anything, but has room for it */
    if ((size_t)(p.texts - (char *)area) > room)
        return;
    to = p.results;
    place = p.places;
    for (const struct batch *b = r->list; b; b = b->next) {
        *to++ = (struct wire_result){b->first_seq, b->last_seq, b->epoch, b->code == TIDE_OK};
        for (size_t i = 0; i < b->n; i++, place++) {
            const struct event *ev = &b->events[i];

            *place = (struct wire_place){.seq = ev->seq, .pos = ev->pos, .ts_ms = ev->ts_ms, .epoch = ev->epoch};
            memcpy(place->digest, ev->digest, DIGEST_SIZE);
        }
    }
    p.head->results_check = results_check(&p);
}

static void result_get(struct batch *b, const struct wire_result *from, const struct wire_place *place)
{
    b->first_seq = from->first_seq;
    b->last_seq = from->last_seq;
    b->epoch = from->epoch;
    b->answered = true;
    for (size_t i = 0; i < b->n; i++) {
        struct event *ev = &b->events[i];

        ev->seq = place[i].seq;
        ev->pos = place[i].pos;
        ev->ts_ms = place[i].ts_ms;
        ev->epoch = place[i].epoch;
        memcpy(ev->digest, place[i].digest, DIGEST_SIZE);
    }
}

bool request_results_get(struct batch *list, void *area, size_t room)
{
    const struct wire_result *from;
    const struct wire_place *place;
    size_t batches = 0, events = 0;
    struct parts p;

    for (const struct batch *b = list; b; b = b->next, batches++)
        events += b->n;
    if (!parts_find(area, room, &p) || p.head->batches != batches || p.head->events != events ||
        p.head->results_check != results_check(&p))
        return false;
    from = p.results;
    place = p.places;
    for (struct batch *b = list; b; place += b->n, b = b->next, from++)
        if (from->taken)
            result_get(b, from, place);
    return true;
}
