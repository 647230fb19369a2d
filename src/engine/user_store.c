/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/user_store.h"

#include <stdio.h>
#include <sys/stat.h>

#include "engine/settings.h"
#include "engine/store_url.h"
#include "env/env.h"
#include "env/user_key.h"
#include "session/redact.h"
#include "session/session_handle.h"

#define FIRST_WITH_ORIGINS 5 /* version of the schema */

/* A database that is older than proofs of origin: by its header, as docs/FORMAT.md has it. */
static bool is_older(const char *url)
{
    FILE *f = store_url_is_files(url) ? NULL : fopen(store_url_path(url), "rb");
    unsigned char head[100] = {0};
    size_t n = f ? fread(head, 1, sizeof(head), f) : 0;

    if (f)
        fclose(f);
    return n == sizeof(head) && memcmp(head + 68, "TIDE", 4) == 0 && head[63] < FIRST_WITH_ORIGINS;
}

/* The configured key is a secret, whichever provider answers and whatever is run. */
static void hide_key(tide_store *store, const char *config)
{
    AUTO(buf_done) struct buf key = BUF_INIT(SECRET_MAX);

    settings_key(config, &key);
    if (key.len)
        (void)!tide_store_add_secret(store, "api_key", key.ptr, key.len, NULL);
    if (key.ptr)
        explicit_bzero(key.ptr, key.cap);
}

/* One kind of store was named where the other is; or none is there, said alike of every kind. */
static enum tide_code name_reason(enum tide_code code, const char *url, struct tide_err *err)
{
    const char *path = store_url_path(url);
    bool files = store_url_is_files(url);
    struct stat st;

    if ((code != TIDE_NOT_A_STORE && code != TIDE_INVALID) || stat(path, &st) != 0)
        return code;
    if (files && S_ISREG(st.st_mode))
        return tide_fail(err, code, "open store: '%.400s' is a file, not a file store (sqlite:PATH)", path);
    if (!files && S_ISDIR(st.st_mode))
        return tide_fail(err, code, "open store: '%.400s' is a directory (a file store is files:DIR)", path);
    return code;
}

/* A disk that is mounted for reading only, and a store that has to be upgraded, stay as they are. */
static bool open_may_pass(enum tide_code code)
{
    return session_is_trouble(code) && code != TIDE_READ_ONLY;
}

struct opening {
    const char *url;
    const struct tide_store_options *opt;
    tide_store **ret_store;
};

static enum tide_code try_open(void *arg, struct tide_err *err)
{
    const struct opening *o = arg;

    return tide_store_open(o->url, o->opt, o->ret_store, err);
}

static enum tide_code unless_stopped(const struct held *h, enum tide_code code, struct tide_err *err)
{
    if (session_is_trouble(code) && h->stopped && h->stopped(h->arg))
        return tide_fail(err, TIDE_CANCELLED, "stopped before the run began");
    return code;
}

static enum tide_code open_held(const struct held *h, struct opening *o, struct tide_err *err)
{
    const struct store_pause t = {env_real(), o->url, NULL, open_may_pass, h ? h->told : NULL, h ? h->arg : NULL};

    return h ? unless_stopped(h, trouble_hold(&t, try_open, o, err), err) : try_open(o, err);
}

enum tide_code user_store_open(const char *url, const struct tide_store_options *opt, const char *config,
                               user_store_own_fn *own, void *arg, const struct held *held, tide_store **ret_store,
                               struct tide_err *err)
{
    struct tide_store_options with = *opt;
    bool writes = !(opt->flags & TIDE_OPEN_READ_ONLY);
    struct user_key key;

    if (user_key(writes, &key, err)) /* here, because what is wrong with it is not wrong with the store */
        return err->code;
    explicit_bzero(&key, sizeof(key));
    /*
     * The one that is found in the default place by the first command of a version that proves origins is the user's own. One
     * that comes later, or is elsewhere: somebody has to say so.
     */
    if (writes && ((store_url_is_default(url) && !user_place_is_known(url)) ||
                   (own && is_older(url) && own(arg, store_url_path(url)))))
        with.flags |= TIDE_OPEN_ADOPT;
    if (open_held(held, &(struct opening){url, &with, ret_store}, err))
        return name_reason(err->code, url, err);
    if (writes && store_url_is_default(url))
        user_place_note(url);
    if (writes)
        hide_key(*ret_store, config);
    return TIDE_OK;
}

void user_store_hide_variable(tide_store *store, struct str name, const char *variable, bool json)
{
    redact_add_variable(store_of(store), name, variable, json);
}

/* ---- held ---- */

/* Also what is looked at from here on: until its run begins, which has a patience of its own. */
static enum tide_code stay_patient(const struct held *h, tide_session *const *session, enum tide_code code,
                                   struct tide_err *err)
{
    if (!code)
        session_be_patient(*session, h->told, h->arg);
    return unless_stopped(h, code, err);
}

enum tide_code held_create(const struct held *h, tide_store *store, const char *id, const char *fields,
                           tide_session **ret_session, struct tide_err *err)
{
    return stay_patient(h, ret_session, session_create_held(store, id, fields, h->told, h->arg, ret_session, err), err);
}

enum tide_code held_open(const struct held *h, tide_store *store, const char *id, tide_session **ret_session,
                         struct tide_err *err)
{
    return stay_patient(h, ret_session, session_open_held(store, id, h->told, h->arg, ret_session, err), err);
}

enum tide_code held_append(const struct held *h, tide_session *session, const struct tide_new_event *event,
                           struct tide_err *err)
{
    return stay_patient(h, &session, session_append_held(session, event, h->told, h->arg, err), err);
}
