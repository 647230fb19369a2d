/* SPDX-License-Identifier: Apache-2.0 */
/* What all backends share: opening by URL, building batches, waiting for them. Checks callers' arguments once. */
#include "store/store.h"

#include "base/log.h"
#include "store/read_retry.h"
#include "store/files.h"
#include "store/group.h"
#include "store/hub.h"
#include "store/sqlite.h"

#define LOCK_AGAIN_MS 200

static const struct backend {
    const char *scheme;
    enum tide_code (*open)(const char *path, const struct tide_store_options *opt, struct env *env,
                           struct store **ret_store, struct tide_err *err);
} backends[] = {
    {"sqlite:", sqlite_open},
    {"files:", files_open},
};

enum tide_code store_open(const char *url, const struct tide_store_options *opt, struct env *env,
                          struct store **ret_store, struct tide_err *err)
{
    static const struct tide_store_options none;
    struct str u = str_from(url), path = u;
    const struct backend *b = &backends[0];
    enum tide_code code;
    int tries = 0;

    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        struct str scheme = str_from(backends[i].scheme);

        if (str_starts(u, scheme)) {
            b = &backends[i];
            path = (struct str){u.ptr + scheme.len, u.len - scheme.len};
        }
    }
    opt = opt ? opt : &none;
    if (!path.len)
        return tide_fail(err, TIDE_INVALID, "open store: the path is empty: give sqlite:PATH or files:DIR");
    if (path.len > 900)
        return tide_fail(err, TIDE_INVALID, "open store: the path is longer than 900 bytes");
    if (opt->key && (opt->key_len < 16 || opt->key_len > 64))
        return tide_fail(err, TIDE_INVALID, "open store: a key has 16 to 64 bytes, this one %zu", opt->key_len);
    if (opt->origin_key && (opt->origin_key_len < 16 || opt->origin_key_len > 64))
        return tide_fail(err, TIDE_INVALID, "open store: a key of origin has 16 to 64 bytes, this one %zu",
                         opt->origin_key_len);
    do
        code = b->open(path.ptr, opt, env, ret_store, err);
    while (read_retry_after(env, code, &tries));
    if (code)
        return code;
    (*ret_store)->secrets = secrets_new();
    log_hide((*ret_store)->secrets);
    read_retry_wrap(*ret_store);
    (*ret_store)->hub = hub_new(*ret_store);
    return TIDE_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    group_free(store->group);
    hub_free(TAKE(store->hub));
    log_unhide(store->secrets);
    secrets_free(TAKE(store->secrets));
    store->ops->close(store);
}

static struct str copy_in(char **at, struct str s)
{
    struct str copy = {*at, s.len};

    if (s.len)
        memcpy(*at, s.ptr, s.len);
    (*at)[s.len] = 0;
    *at += s.len + 1;
    return copy;
}

struct batch *batch_new(struct str session, unsigned flags, const struct event *events, size_t n, struct str snapshot,
                        struct str summary)
{
    size_t bytes = sizeof(struct batch) + n * sizeof(struct event) + snapshot.len + summary.len + 2;
    struct batch *b;
    char *at;

    for (size_t i = 0; i < n; i++)
        bytes += events[i].kind.len + events[i].body.len + 2;
    b = mem_alloc(bytes);
    memset(b, 0, sizeof *b);
    b->events = (struct event *)(b + 1);
    at = (char *)(b->events + n);
    memcpy(b->session, session.ptr, session.len < sizeof b->session ? session.len : sizeof b->session - 1);
    b->flags = flags;
    b->n = n;
    for (size_t i = 0; i < n; i++) {
        b->events[i] = events[i];
        b->events[i].kind = copy_in(&at, events[i].kind);
        b->events[i].body = copy_in(&at, events[i].body);
    }
    b->snapshot = copy_in(&at, snapshot);
    b->summary = copy_in(&at, summary);
    return b;
}

void batch_set_cards(struct batch *b, struct str card, struct str tokens)
{
    char *at = b->cards = mem_alloc(card.len + tokens.len + 2);

    b->card = copy_in(&at, card);
    b->tokens = copy_in(&at, tokens);
}

void batch_free(struct batch *b)
{
    if (b)
        free(b->cards);
    free(b);
}

enum tide_code store_write(struct store *store, struct batch *take, struct batch_result *ret, struct tide_err *err)
{
    AUTO(batch_freep) struct batch *b = take;

    if (store->read_only)
        return tide_fail(err, TIDE_READ_ONLY, "the store was opened for reading only");
    group_submit(store->group, b, false);
    group_wait(store->group, b);
    if (b->code)
        return tide_err_copy(err, &b->err);
    if (ret)
        *ret = (struct batch_result){b->first_seq, b->last_seq, b->epoch};
    return TIDE_OK;
}

enum tide_code store_lock(struct store *store, struct env_file *file, int64_t *refused_ms, struct tide_err *err)
{
    struct env *env = store->env;
    bool again = *refused_ms && env->ops->mono_ns(env) / 1000000 - *refused_ms < STORE_LOCK_MS;
    enum tide_code code = env->ops->lock(file, again ? LOCK_AGAIN_MS : STORE_LOCK_MS, err);

    *refused_ms = code == TIDE_BUSY ? env->ops->mono_ns(env) / 1000000 : 0;
    return code;
}

void store_check_name(struct store_check *check, const char *where, enum tide_code code, const char *what)
{
    *(code == TIDE_IO ? &check->unread : &check->problems) += 1;
    if (check->problem)
        check->problem(check->arg, where, what);
}

enum tide_code store_head(struct store *store, struct str id, struct head *ret_head, struct tide_err *err)
{
    struct head found; /* a backend looks at others on its way, and the id may be that of *ret_head */
    enum tide_code code;

    if (!str_is_id(id))
        return tide_fail(err, TIDE_INVALID, "not a session id: 1 to 64 letters, digits, '_' or '-'");
    code = store->ops->head(store, id, &found, err);
    if (!code)
        *ret_head = found;
    return code;
}

enum tide_code store_read(struct store *store, const struct head *head, int64_t from, int64_t to, store_event_fn *fn,
                          void *arg, struct tide_err *err)
{
    if (head->damaged && from > head->last_seq) /* what stands there cannot be told: that is not nothing */
        from = head->last_seq;
    from = from < head->first_seq ? head->first_seq : from;
    to = to == 0 || to > head->last_seq ? head->last_seq : to;
    return from > to ? TIDE_OK : store->ops->read(store, head, from, to, fn, arg, err);
}
