/* SPDX-License-Identifier: Apache-2.0 */
/* What all backends share: opening by URL, building batches, waiting for them. Checks callers' arguments once. */
#include "store/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/invariant.h"
#include "base/id.h"
#include "base/log.h"
#include "store/files.h"
#include "store/group.h"
#include "store/hub.h"
#include "store/origin.h"
#include "store/sqlite.h"

#define LOCK_AGAIN_MS 200

static const struct backend {
    const char *scheme, *form;
    enum tide_code (*open)(const char *path, const struct tide_store_options *opt, struct env *env,
                           struct store **ret_store, struct tide_err *err);
} backends[] = {
    {"sqlite", "sqlite:PATH", sqlite_open},
    {"files", "files:DIR", files_open},
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* Words that are nearly those of a kind of store, or those of another program's: a database of such a name was not meant. */
static enum tide_code find_backend(const char *url, const struct backend **ret, const char **ret_path,
                                   struct tide_err *err)
{
    size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+");
    const struct backend *b = NULL;

    n = n > 1 && (url[n] == ':' || !url[n]) ? n : 0;
    for (size_t i = 0; n && i < BACKENDS; i++)
        if (strlen(backends[i].scheme) == n && strncasecmp(url, backends[i].scheme, n) == 0)
            b = &backends[i];
    if (b && !url[n])
        return tide_fail(err, TIDE_INVALID, "'%s' is a kind of store: give %s, or ./%s for a database there", url,
                         b->form, url);
    if (b && strncmp(url, b->scheme, n) != 0)
        return tide_fail(err, TIDE_INVALID, "unknown kind of store '%.*s:': did you mean %s:? " STORE_KINDS, (int)n,
                         url, b->scheme);
    if (!b && n && url[n])
        return tide_fail(err, TIDE_INVALID, "unknown kind of store '%.*s': " STORE_KINDS, n < 40 ? (int)n + 1 : 40,
                         url);
    *ret = b ? b : &backends[0];
    *ret_path = b ? url + n + 1 : url;
    return TIDE_OK;
}

enum tide_code store_check_url(const char *url, struct tide_err *err)
{
    const struct backend *b;
    const char *path;

    return find_backend(url, &b, &path, err);
}

static enum tide_code check_options(const struct tide_store_options *opt, const char *path, struct tide_err *err)
{
    if (!path[0])
        return tide_fail(err, TIDE_INVALID, "the path is empty: give sqlite:PATH or files:DIR");
    if (strlen(path) > 900)
        return tide_fail(err, TIDE_INVALID, "the path is longer than 900 bytes");
    if (opt->key && (opt->key_len < 16 || opt->key_len > 64))
        return tide_fail(err, TIDE_INVALID, "a key has 16 to 64 bytes, this one %zu", opt->key_len);
    if (opt->origin_key && (opt->origin_key_len < 16 || opt->origin_key_len > 64))
        return tide_fail(err, TIDE_INVALID, "a key of origin has 16 to 64 bytes, this one %zu", opt->origin_key_len);
    return TIDE_OK;
}

/* Every slot is there, but for those of a capability that is not declared. */
static bool is_complete(const struct store_ops *o)
{
    return o->scheme && o->close && o->commit && o->is_due && o->maintain && o->head && o->read && o->checkpoints &&
           o->checkpoint_seq && o->snapshot && o->list && o->live && o->resolve && o->info && o->check && o->rebuild &&
           o->settle && o->change && !o->prove == !(o->can & STORE_PROVES) &&
           !o->foreign_rest == !(o->can & STORE_FOREIGN) && !o->read_all == !(o->can & STORE_POSITIONS) &&
           !o->last_position == !(o->can & STORE_POSITIONS) && !o->compact == !(o->can & STORE_COMPACTS);
}

enum tide_code store_open(const char *url, const struct tide_store_options *opt, struct env *env,
                          struct store **ret_store, struct tide_err *err)
{
    static const struct tide_store_options none;
    const struct backend *b = NULL;
    const char *path = NULL;
    enum tide_code code = find_backend(url, &b, &path, err);
    int tries = 0;

    opt = opt ? opt : &none;
    code = code ? code : check_options(opt, path, err);
    if (code)
        return tide_wrap(err, "open store");
    do
        code = b->open(path, opt, env, ret_store, err);
    while (store_retry(env, code, &tries));
    if (code == TIDE_NOT_A_STORE || code == TIDE_TOO_NEW || code == TIDE_WRONG_KEY)
        tide_about(err, TIDE_SUBJECT_FILE, path);
    if (code)
        return code;
    INVARIANT(is_complete((*ret_store)->ops));
    (*ret_store)->group = group_new(*ret_store, opt->queue_max ? opt->queue_max : 4096);
    (*ret_store)->hub = hub_new(*ret_store);
    return TIDE_OK;
}

void store_init(struct store *s, const struct store_ops *ops, const char *path, const struct tide_store_options *opt,
                struct env *env)
{
    unsigned char random[ID_RANDOM_BYTES];

    s->ops = ops;
    s->env = env;
    s->max_record_bytes = opt->max_record_bytes ? opt->max_record_bytes : TIDE_MAX_RECORD_BYTES;
    s->lease_ms = opt->lease_ms ? opt->lease_ms : 30000;
    s->read_only = opt->flags & TIDE_OPEN_READ_ONLY;
    if (opt->origin_key)
        origin_key_set(&s->origin, opt->origin_key, opt->origin_key_len);
    if (opt->key)
        memcpy(s->key.bytes, opt->key, opt->key_len);
    s->key.len = opt->key ? opt->key_len : 0;
    snprintf(s->url, sizeof s->url, "%s:%.900s", ops->scheme, path);
    pthread_mutex_init(&s->notices_mu, NULL);
    s->notices = (struct buf)BUF_INIT(65536);
    s->secrets = secrets_new();
    log_hide(s->secrets);
    if (s->read_only)
        return;
    env->ops->random(env, random,
                     sizeof random); /* known before the first lease: what is appended with it names the boot */
    id_make(s->boot_id, "boot", env_now_ms(env), random);
}

void store_done(struct store *s)
{
    buf_done(&s->notices);
    pthread_mutex_destroy(&s->notices_mu);
    log_unhide(s->secrets);
    secrets_free(TAKE(s->secrets));
    sodium_memzero(&s->key, sizeof s->key);
    sodium_memzero(&s->origin, sizeof s->origin);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    group_free(TAKE(store->group));
    hub_free(TAKE(store->hub));
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

void batch_set_session_files(struct batch *b, struct str session_file, struct str tokens)
{
    char *at = b->session_files = mem_alloc(session_file.len + tokens.len + 2);

    b->session_file = copy_in(&at, session_file);
    b->tokens = copy_in(&at, tokens);
}

void batch_free(struct batch *b)
{
    if (b)
        free(b->session_files);
    free(b);
}

static enum tide_code refuse_reader(struct tide_err *err)
{
    return tide_fail(err, TIDE_READ_ONLY, "the store was opened for reading only");
}

enum tide_code store_write(struct store *store, struct batch *take, struct batch_result *ret, struct tide_err *err)
{
    AUTO(batch_freep) struct batch *b = take;

    if (store->read_only)
        return refuse_reader(err);
    group_submit(store->group, b, GROUP_AWAITED);
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

void store_notice(struct store *s, const char *fmt, ...)
{
    char line[1400]; /* with a path */
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    pthread_mutex_lock(&s->notices_mu);
    buf_addf(&s->notices, "%s\n", line);
    pthread_mutex_unlock(&s->notices_mu);
}

void store_take_notices(struct store *s, struct buf *out)
{
    pthread_mutex_lock(&s->notices_mu);
    buf_add_str(out, buf_view(&s->notices));
    buf_clear(&s->notices);
    pthread_mutex_unlock(&s->notices_mu);
}

/* ---- slots that do not only read ------------------------------------------------------------------------------------- */

void store_commit(struct store *store, struct batch *list)
{
    INVARIANT(list || store->serve);
    store->ops->commit(store, list);
    hub_committed(store->hub);
}

enum tide_code store_settle(struct store *store, struct tide_err *err)
{
    return group_alone(store->group, store->ops->settle, err);
}

enum tide_code store_rebuild(struct store *store, struct tide_err *err)
{
    return store->read_only ? refuse_reader(err) : group_alone(store->group, store->ops->rebuild, err);
}

enum tide_code store_compact(struct store *store, struct tide_err *err)
{
    enum tide_code code = store->read_only ? refuse_reader(err) : store_settle(store, err);

    return code || !store_can(store, STORE_COMPACTS) ? code : group_alone(store->group, store->ops->compact, err);
}

enum tide_code store_check(struct store *store, struct store_check *check, struct tide_err *err)
{
    return store->ops->check(store, check, err);
}

enum tide_code store_change(struct store *store, int64_t *ret_version, struct tide_err *err)
{
    return store->ops->change(store, ret_version, err);
}
