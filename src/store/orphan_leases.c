/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lease that nobody knows of is given back like any other, by a batch of its own: the store compares boot and epoch, so that one
 * that is somebody else's by now, or was adopted by a handle, is left alone.
 */
#include "store/orphan_leases.h"

#define AGAIN_MS 1000 /* commits try no more often than this; a heartbeat always tries */
#define AT_ONCE 64    /* the rest at the next heartbeat */

struct orphan {
    int64_t epoch, from_ms, tried_ms;
};

void orphans_init(struct orphans *o)
{
    *o = (struct orphans){0};
    pthread_mutex_init(&o->mu, NULL);
}

void orphans_done(struct orphans *o)
{
    map_done(&o->at, free);
    pthread_mutex_destroy(&o->mu);
}

void orphan_note(struct orphans *o, const char *id, int64_t epoch, int64_t from_ms)
{
    struct orphan *kept = epoch ? mem_zero(sizeof *kept) : NULL;

    if (!kept)
        return; /* it never came to that */
    kept->epoch = epoch;
    kept->from_ms = from_ms;
    pthread_mutex_lock(&o->mu);
    free(map_put(&o->at, str_from(id), kept));
    pthread_mutex_unlock(&o->mu);
}

void orphan_drop(struct orphans *o, const char *id)
{
    pthread_mutex_lock(&o->mu);
    if (o->at.live)
        free(map_remove(&o->at, str_from(id)));
    pthread_mutex_unlock(&o->mu);
}

bool orphan_is(struct orphans *o, const char *id, int64_t epoch)
{
    const struct orphan *known;
    bool is;

    pthread_mutex_lock(&o->mu);
    known = o->at.live ? map_get(&o->at, str_from(id)) : NULL;
    is = known && known->epoch == epoch;
    pthread_mutex_unlock(&o->mu);
    return is;
}

static bool may_be_tried(const struct orphan *one, const struct store *store, int64_t now)
{
    return now >= one->from_ms || now < one->from_ms - store->lease_ms; /* clocks go back */
}

bool orphans_due(struct orphans *o, struct store *store)
{
    int64_t now = o->at.live ? env_now_ms(store->env) : 0;

    for (struct map_entry *e = o->at.live ? map_next(&o->at, NULL) : NULL; e; e = map_next(&o->at, e)) {
        const struct orphan *one = e->value;

        if (may_be_tried(one, store, now) && (now >= one->tried_ms + AGAIN_MS || now < one->tried_ms))
            return true;
    }
    return false;
}

/* Recovery looks at the session then: a run may have been begun with it. */
static void give_back(struct orphans *o, struct store *store, const char *id, int64_t epoch)
{
    AUTO(batch_freep)
    struct batch *b = batch_new(str_from(id), BATCH_RELEASE | BATCH_LIVE, NULL, 0, STR(""), STR(""));

    b->expect_seq = STORE_ANY_SEQ;
    b->epoch = epoch;
    store_commit(store, b); /* drops it, or notes it once more */
    if (b->code == TIDE_FENCED || b->code == TIDE_NOT_FOUND)
        orphan_drop(o, id);
}

void orphans_give_back(struct orphans *o, struct store *store)
{
    int64_t now = o->at.live ? env_now_ms(store->env) : 0;
    struct {
        char id[TIDE_ID_SIZE];
        int64_t epoch;
    } list[AT_ONCE] = {0};
    size_t n = 0;

    for (struct map_entry *e = o->at.live ? map_next(&o->at, NULL) : NULL; e && n < AT_ONCE; e = map_next(&o->at, e)) {
        struct orphan *one = e->value;
        struct str id = map_key(e);

        if (!may_be_tried(one, store, now))
            continue;
        snprintf(list[n].id, sizeof list[n].id, "%.*s", STR_ARG(id));
        list[n++].epoch = one->epoch;
    }
    for (size_t i = 0; i < n; i++) {
        struct orphan *one;

        give_back(o, store, list[i].id, list[i].epoch);
        one = map_get(&o->at, str_from(list[i].id));
        if (one)
            one->tried_ms = now;
    }
}
