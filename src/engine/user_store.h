/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store as every face opens it: with the user's key, with what must not be stored or logged hidden; and sessions of it that
 * are made, opened and appended to for a run that begins at once.
 */
#ifndef ENGINE_USER_STORE_H
#define ENGINE_USER_STORE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"

/* An earlier version made the store at this path, which proved no origins: whether all its sessions are the user's own. */
typedef bool user_store_own_fn(void *arg, const char *path);

/* What a run that begins at once does while the store fails: it waits, until `told` gives up (TIDE_CANCELLED). */
struct held {
    tide_trouble_fn *told;
    bool (*stopped)(void *arg);
    void *arg;
};

/* `config`: as of settings_find(). `own` NULL: no. `held` NULL: trouble is an error. TIDE_OPEN_ADOPT is decided here. */
enum tide_code user_store_open(const char *url, const struct tide_store_options *opt, const char *config,
                               user_store_own_fn *own, void *arg, const struct held *held, tide_store **ret_store,
                               struct tide_err *err) MUST_CHECK;

/* The value of this variable, or every text in it where it is JSON, is a secret: it was given to a run by the variable's name. */
void user_store_hide_variable(tide_store *store, struct str name, const char *variable, bool json);

/* The same as tide_session_create(), _open() and _append(), held. */
enum tide_code held_create(const struct held *h, tide_store *store, const char *id, const char *fields,
                           tide_session **ret_session, struct tide_err *err) MUST_CHECK;
enum tide_code held_open(const struct held *h, tide_store *store, const char *id, tide_session **ret_session,
                         struct tide_err *err) MUST_CHECK;
enum tide_code held_append(const struct held *h, tide_session *session, const struct tide_new_event *event,
                           struct tide_err *err) MUST_CHECK;

#endif
