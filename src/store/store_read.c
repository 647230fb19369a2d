/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that read. A read that fails may succeed a moment later (a cable, a path of a disk array, a server of files): it is
 * retried, a few times, before the caller gets the error. Only what is an I/O error by its name: what digests call
 * damaged stays so. What was handed out before the failure is not handed out again.
 */
#include "base/invariant.h"
#include "base/map.h"
#include "store/store.h"

static const int pauses_ms[] = {10, 40, 200};
enum { TRIES = sizeof pauses_ms / sizeof pauses_ms[0] };

bool store_retry(struct env *env, enum tide_code code, int *tries)
{
    if (code != TIDE_IO || *tries == TRIES)
        return false;
    env->ops->sleep_ms(env, pauses_ms[(*tries)++]);
    return true;
}

#define AGAIN(store, code, call)                                                                                       \
    do {                                                                                                               \
        int tries_ = 0;                                                                                                \
        do                                                                                                             \
            (code) = (call);                                                                                           \
        while (store_retry((store)->env, code, &tries_));                                                              \
    } while (0)

enum tide_code store_head(struct store *s, struct str id, struct head *ret, struct tide_err *err)
{
    struct head found; /* a backend looks at others on its way, and the id may be that of *ret */
    enum tide_code code;

    if (!str_is_id(id))
        return tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-'");
    AGAIN(s, code, s->ops->head(s, id, &found, err));
    if (!code)
        *ret = found;
    return code;
}

enum tide_code store_prove(struct store *s, const struct head *h, int64_t to, struct tide_err *err)
{
    enum tide_code code;

    if (!store_can(s, STORE_PROVES))
        return TIDE_OK;
    AGAIN(s, code, s->ops->prove(s, h, to, err));
    return code;
}

enum tide_code store_foreign_rest(struct store *s, const struct head *h, store_event_fn *fn, void *arg,
                                  struct tide_err *err)
{
    if (!store_can(s, STORE_FOREIGN) || !h->unverified)
        return TIDE_OK;
    return s->ops->foreign_rest(s, h, fn, arg, err);
}

enum tide_code store_checkpoint_seq(struct store *s, const struct head *h, struct str id, int64_t *ret,
                                    struct tide_err *err)
{
    enum tide_code code;

    AGAIN(s, code, s->ops->checkpoint_seq(s, h, id, ret, err));
    return code;
}

enum tide_code store_resolve(struct store *s, struct str prefix, char (*ret_ids)[TIDE_ID_SIZE], size_t max,
                             size_t *ret_n, struct tide_err *err)
{
    enum tide_code code;

    AGAIN(s, code, s->ops->resolve(s, prefix, ret_ids, max, ret_n, err));
    return code;
}

enum tide_code store_snapshot(struct store *s, const struct head *h, int64_t to, struct buf *ret_data, int64_t *ret_seq,
                              struct tide_err *err)
{
    size_t before = ret_data->len;
    enum tide_code code;
    int tries = 0;

    do {
        ret_data->len = before;
        code = s->ops->snapshot(s, h, to, ret_data, ret_seq, err);
    } while (store_retry(s->env, code, &tries));
    return code;
}

enum tide_code store_info(struct store *s, struct buf *out, struct tide_err *err)
{
    size_t before = out->len;
    enum tide_code code;
    int tries = 0;

    do {
        out->len = before;
        code = s->ops->info(s, out, err);
    } while (store_retry(s->env, code, &tries));
    return code;
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

struct handing {
    store_event_fn *fn;
    void *arg;
    enum { BY_SEQ, BY_SEQ_DOWN, BY_POS } order;
    int64_t seq, pos; /* of the last one; 0: none yet */
    uint64_t n;
};

static int hand_on(void *arg, const struct event *ev)
{
    struct handing *h = arg;

    INVARIANT(h->order != BY_SEQ || !h->n || ev->seq == h->seq + 1);
    INVARIANT(h->order != BY_SEQ_DOWN || !h->n || ev->seq < h->seq);
    INVARIANT(h->order != BY_POS || !h->n || ev->pos > h->pos);
    h->seq = ev->seq;
    h->pos = ev->pos;
    h->n++;
    return h->fn(h->arg, ev);
}

enum tide_code store_read(struct store *s, const struct head *head, int64_t from, int64_t to, store_event_fn *fn,
                          void *arg, struct tide_err *err)
{
    struct handing h = {.fn = fn, .arg = arg, .order = BY_SEQ};
    enum tide_code code;
    int tries = 0;

    if (head->damaged && from > head->last_seq) /* it is not known what is there: that is not the same as nothing */
        from = head->last_seq;
    from = from < head->first_seq ? head->first_seq : from;
    to = to == 0 || to > head->last_seq ? head->last_seq : to;
    if (from > to)
        return TIDE_OK;
    do
        code = h.seq == to && h.n ? TIDE_OK : s->ops->read(s, head, h.n ? h.seq + 1 : from, to, hand_on, &h, err);
    while (store_retry(s->env, code, &tries));
    return code;
}

enum tide_code store_checkpoints(struct store *s, const struct head *head, bool deleted, int64_t to, store_event_fn *fn,
                                 void *arg, int64_t *ret_total, struct tide_err *err)
{
    struct handing h = {.fn = fn, .arg = arg, .order = BY_SEQ_DOWN};
    enum tide_code code;
    int tries = 0;

    do
        code = s->ops->checkpoints(s, head, deleted, h.n ? h.seq - 1 : to, fn ? hand_on : NULL, &h, ret_total, err);
    while (store_retry(s->env, code, &tries));
    return code;
}

enum tide_code store_read_all(struct store *s, int64_t after, uint64_t max, struct head *ret_session,
                              store_event_fn *fn, void *arg, struct tide_err *err)
{
    struct handing h = {.fn = fn, .arg = arg, .order = BY_POS};
    enum tide_code code;
    int tries = 0;

    if (!store_can(s, STORE_POSITIONS))
        return tide_fail(err, TIDE_INVALID,
                         "'%s' has no order over all sessions: read one session, or use sqlite:", s->url);
    do
        code = h.n && h.n >= max ? TIDE_OK
                                 : s->ops->read_all(s, h.n ? h.pos : after, max - h.n, ret_session, hand_on, &h, err);
    while (store_retry(s->env, code, &tries));
    return code;
}

enum tide_code store_last_position(struct store *s, int64_t *ret, struct tide_err *err)
{
    enum tide_code code;

    if (!store_can(s, STORE_POSITIONS))
        return tide_fail(err, TIDE_INVALID, "'%s' has no order over all sessions", s->url);
    AGAIN(s, code, s->ops->last_position(s, ret, err));
    return code;
}

/* ---- sessions -------------------------------------------------------------------------------------------------------- */

/* Sessions come in no order that could be continued from: those that were handed out are remembered, and left out. */
struct listing {
    store_entry_fn *entry;
    store_live_fn *live;
    void *arg;
    struct map told; /* id -> itself */
    bool later;      /* not the first try */
};

static bool is_new(struct listing *l, const char *id)
{
    return !map_put(&l->told, str_from(id), l) || !l->later;
}

static int hand_entry(void *arg, const struct store_entry *e)
{
    struct listing *l = arg;

    return is_new(l, e->head->id) ? l->entry(l->arg, e) : 0;
}

static int hand_live(void *arg, const struct store_entry *e, int64_t wake_ms)
{
    struct listing *l = arg;

    return is_new(l, e->head->id) ? l->live(l->arg, e, wake_ms) : 0;
}

static enum tide_code list_all(struct store *s, const struct head *forks_of, struct str from, store_entry_fn *fn,
                               void *arg, struct tide_err *err)
{
    struct listing l = {.entry = fn, .arg = arg};
    enum tide_code code;
    int tries = 0;

    do {
        l.later = tries > 0;
        code = s->ops->list(s, forks_of, from, hand_entry, &l, err);
    } while (store_retry(s->env, code, &tries));
    map_done(&l.told, NULL);
    return code;
}

enum tide_code store_list(struct store *s, const struct head *forks_of, store_entry_fn *fn, void *arg,
                          struct tide_err *err)
{
    return list_all(s, forks_of, STR(""), fn, arg, err);
}

enum tide_code store_list_from(struct store *s, struct str from, store_entry_fn *fn, void *arg, struct tide_err *err)
{
    return list_all(s, NULL, from, fn, arg, err);
}

enum tide_code store_live(struct store *s, int64_t until_ms, store_live_fn *fn, void *arg, int64_t *ret_next_ms,
                          struct tide_err *err)
{
    struct listing l = {.live = fn, .arg = arg};
    enum tide_code code;
    int tries = 0;

    do {
        l.later = tries > 0;
        code = s->ops->live(s, until_ms, hand_live, &l, ret_next_ms, err);
    } while (store_retry(s->env, code, &tries));
    map_done(&l.told, NULL);
    return code;
}
