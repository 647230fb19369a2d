/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask for what. A token is random text that is shown once; its hash, a name, scopes and an end are in access.json of the
 * state directory (0600), which is replaced as a whole. A server sees a change of the file at the next request, and its streams within
 * a second.
 */
#ifndef SERVER_ACCESS_H
#define SERVER_ACCESS_H

#include "base/buf.h"
#include "base/err.h"

enum scope {
    SCOPE_NONE = 0,
    SCOPE_READ = 1,
    SCOPE_ANSWER = 2, /* waits and approvals */
    SCOPE_WRITE = 4,  /* send, resume, cancel, fork, checkpoint */
    SCOPE_RUN = 8,    /* start what the settings name */
    SCOPE_ADMIN = 16, /* and everything else */
};
#define SCOPE_ALL (SCOPE_READ | SCOPE_ANSWER | SCOPE_WRITE | SCOPE_RUN | SCOPE_ADMIN)
#define SCOPE_WORDS "read answer write run admin"

const char *scope_word(enum scope scope);
/* Words separated by commas or blanks; each scope includes those it cannot do without. 0: one of them is none. */
unsigned scopes_from(struct str words);
void scopes_write(unsigned scopes, struct buf *out);
void scopes_list(unsigned scopes, const char *ret_words[6]); /* ended by NULL */

#define ACCESS_NAME_SIZE 65
#define ACCESS_SECRET_SIZE 56 /* "tide_" and 32 random bytes as base64 */

/* The caller that asks: a token, or the server's own user on its unix socket. */
struct caller {
    char name[ACCESS_NAME_SIZE]; /* of the token: [A-Za-z0-9_.-]; "local" on the unix socket */
    char id[17];                 /* of this very token: one that is revoked and made again has another */
    unsigned scopes;
    int64_t created_ms, expires_ms; /* 0: never */
    bool signed_in;                 /* it was made by a sign-in, */
    char parent[17];                /* by the token of this id: it ends with it. "": by the server's own user */
};

bool caller_is_valid(const struct caller *token); /* it has not expired */

struct access;

/* Reads the file, and follows it. No file: there are no tokens. One that others can read or write is refused. */
enum tide_code access_open(struct access **ret, struct tide_err *err) MUST_CHECK;
void access_close(struct access *a);

/* By the secret. False: it is none, expired or revoked. From any thread. */
bool access_check(struct access *a, struct str secret, struct caller *ret);
/* Whether it still is what it was. */
bool access_holds(struct access *a, const struct caller *caller);

/* ---- changing the file: by any process ---- */

enum tide_code access_create(const char *name, unsigned scopes, int64_t expires_ms, char ret_secret[ACCESS_SECRET_SIZE],
                             struct caller *ret, struct tide_err *err) MUST_CHECK;
/* Another secret for the same name, scopes and end: the old one is of no use from now on. */
enum tide_code access_rotate(const char *name, char ret_secret[ACCESS_SECRET_SIZE], struct caller *ret,
                             struct tide_err *err) MUST_CHECK;
enum tide_code access_revoke(const char *name, struct tide_err *err) MUST_CHECK;
enum tide_code access_revoke_id(const char *id, struct tide_err *err) MUST_CHECK; /* this very token */

/*
 * A token for the caller that signs in with what `by` gave them: with no more scopes than `by` has, not longer than it, and it ends when `by` is
 * revoked or replaced. `name` NULL: one that is free. Those of sign-ins that have expired are removed. TIDE_BUSY: too many are signed in.
 */
enum tide_code access_sign_in(const struct caller *by, const char *name, unsigned scopes, int64_t expires_ms,
                              char ret_secret[ACCESS_SECRET_SIZE], struct caller *ret, struct tide_err *err) MUST_CHECK;
typedef void access_fn(void *arg, const struct caller *token);
enum tide_code access_list(access_fn *fn, void *arg, struct tide_err *err) MUST_CHECK;

/* The token of this user for commands, with all scopes, in server.token of the state directory; made when there is none. */
enum tide_code access_own(char ret_secret[ACCESS_SECRET_SIZE], char *ret_path, size_t path_size, struct tide_err *err)
    MUST_CHECK;

/* The same, where there is one; "": there is none. Makes nothing. */
enum tide_code access_read_own(char ret_secret[ACCESS_SECRET_SIZE], struct tide_err *err) MUST_CHECK;

#endif
