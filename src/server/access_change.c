/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens come and go by any process: each reads the file under the lock of its directory, and replaces it. A server sees it then. */
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "engine/replace_file.h"
#include "env/user_key.h"
#include "server/access_file.h"

#define OWN_NAME "server.token"
#define PREFIX "tide_"
#define SIGNED_IN_MAX 256

/* What `by` means something else with. */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {"local", "token", "deadline", "person", "node", "override"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return false;
}

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    return n && n < ACCESS_NAME_SIZE && !is_reserved(name) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

static void make_secret(char ret[ACCESS_SECRET_SIZE])
{
    unsigned char bytes[32];
    size_t at = (size_t)snprintf(ret, ACCESS_SECRET_SIZE, PREFIX);

    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2base64(ret + at, ACCESS_SECRET_SIZE - at, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof bytes);
}

/* Reads the list under the lock of its directory, lets `fn` change it, and replaces the file. */
static enum tide_code change_list(enum tide_code (*fn)(struct token_list *list, void *arg, struct tide_err *err),
                                  void *arg, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(ACCESS_FILE_MAX);
    struct token_list list = {NULL, 0, 0};
    char path[PATH_MAX];
    struct stat seen;
    enum tide_code code = access_path(ACCESS_FILE_NAME, path, err);
    int dir = -1;

    code = code ? code : file_lock_dir(path, &dir, err);
    code = code ? code : token_list_read(path, &list, &seen, err);
    code = code ? code : fn(&list, arg, err);
    if (!code) {
        token_list_drop_orphans(&list);
        token_list_write(&list, &text);
        code = text.failed ? tide_fail(err, TIDE_TOO_BIG, "'%s' would have more than a MiB: revoke tokens", path)
                           : file_replace(path, dir, buf_view(&text), err);
    }
    if (dir >= 0)
        close(dir);
    token_list_done(&list);
    return code;
}

/* Who it is for is the same; it is another token. */
static void renew(struct token *t, char ret_secret[ACCESS_SECRET_SIZE])
{
    unsigned char id[8];

    randombytes_buf(id, sizeof id);
    hex_encode(t->caller.id, id, sizeof id);
    t->caller.created_ms = wall_ms();
    make_secret(ret_secret);
    digest_of(t->hash, str_from(ret_secret));
}

struct creating {
    const char *name;
    unsigned scopes;
    int64_t expires_ms;
    char *secret;
    struct caller *ret;
    const struct caller *by; /* of a sign-in; NULL: it is none */
    char chosen[ACCESS_NAME_SIZE];
};

/* Of an argument whose value the message names. */
static enum tide_code about(struct tide_err *err, const char *argument, enum tide_code code)
{
    (void)!tide_about(err, TIDE_SUBJECT_ARGUMENT, argument);
    return code;
}

static enum tide_code add_token(struct token_list *list, void *arg, struct tide_err *err)
{
    struct creating *c = arg;
    struct token t = {.caller = {.scopes = c->scopes, .expires_ms = c->expires_ms, .signed_in = c->by != NULL}};

    if (c->by)
        snprintf(t.caller.parent, sizeof t.caller.parent, "%s", c->by->id);
    if (token_with_name(list, c->name))
        return about(err, "name",
                     tide_fail(err, TIDE_EXISTS,
                               "there is a token '%s' already: revoke it first, or choose another name", c->name));
    snprintf(t.caller.name, sizeof t.caller.name, "%s", c->name);
    renew(&t, c->secret);
    MEM_ROOM(list->at, list->n, list->cap);
    list->at[list->n++] = t;
    *c->ret = t.caller;
    return TIDE_OK;
}

static enum tide_code bad_name(const char *name, struct tide_err *err)
{
    return about(
        err, "name",
        tide_fail(err, TIDE_INVALID,
                  "'%.80s' is not a name of a token: it has 1 to 64 letters, digits, dots, dashes and underscores, and "
                  "is not local, token, deadline, person, node or override",
                  name));
}

enum tide_code access_create(const char *name, unsigned scopes, int64_t expires_ms, char ret_secret[ACCESS_SECRET_SIZE],
                             struct caller *ret, struct tide_err *err)
{
    struct creating c = {.name = name, .scopes = scopes, .expires_ms = expires_ms, .secret = ret_secret, .ret = ret};

    if (!is_name(name))
        return bad_name(name, err);
    if (expires_ms && expires_ms <= wall_ms())
        return about(err, "expires", tide_fail(err, TIDE_INVALID, "this time is over already"));
    return change_list(add_token, &c, err);
}

/* ---- signing in ---- */

static void remove_expired(struct token_list *list)
{
    for (size_t i = 0; i < list->n;)
        if (list->at[i].caller.signed_in && !caller_is_valid(&list->at[i].caller))
            token_remove(list, &list->at[i]);
        else
            i++;
}

static size_t count_signed_in(const struct token_list *list)
{
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++)
        n += list->at[i].caller.signed_in;
    return n;
}

/* "console-k3fq" */
static void choose_name(const struct token_list *list, char ret[ACCESS_NAME_SIZE])
{
    static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789"; /* which nobody takes for one another */

    do {
        size_t n = (size_t)snprintf(ret, ACCESS_NAME_SIZE, "console-");

        for (int i = 0; i < 4; i++)
            ret[n++] = letters[randombytes_uniform(sizeof letters - 1)];
        ret[n] = '\0';
    } while (token_with_name(list, ret));
}

static enum tide_code add_signed_in(struct token_list *list, void *arg, struct tide_err *err)
{
    struct creating *c = arg;
    const struct token *above = c->by->id[0] ? token_with_id(list, c->by->id) : NULL;

    if (c->by->id[0] && (!above || !caller_is_valid(&above->caller)))
        return tide_fail(err, TIDE_DENIED, "the token that allowed this is revoked or has expired");
    remove_expired(list);
    if (count_signed_in(list) >= SIGNED_IN_MAX)
        return tide_fail(err, TIDE_BUSY, "%d are signed in already: revoke some of their tokens", SIGNED_IN_MAX);
    if (!c->name) {
        choose_name(list, c->chosen);
        c->name = c->chosen;
    }
    return add_token(list, c, err);
}

enum tide_code access_sign_in(const struct caller *by, const char *name, unsigned scopes, int64_t expires_ms,
                              char ret_secret[ACCESS_SECRET_SIZE], struct caller *ret, struct tide_err *err)
{
    struct creating c = {.name = name,
                         .scopes = scopes & by->scopes,
                         .expires_ms = expires_ms,
                         .secret = ret_secret,
                         .ret = ret,
                         .by = by};

    if (name && !is_name(name))
        return bad_name(name, err);
    if (by->expires_ms && (!expires_ms || expires_ms > by->expires_ms))
        c.expires_ms = by->expires_ms;
    return change_list(add_signed_in, &c, err);
}

/* ---- ending ---- */

static enum tide_code no_such(const char *name, struct tide_err *err)
{
    return about(err, "name", tide_fail(err, TIDE_NOT_FOUND, "there is no token '%.80s'", name));
}

static enum tide_code rotate_token(struct token_list *list, void *arg, struct tide_err *err)
{
    const struct creating *c = arg;
    struct token *t = token_with_name(list, c->name);

    if (!t)
        return no_such(c->name, err);
    renew(t, c->secret);
    *c->ret = t->caller;
    return TIDE_OK;
}

enum tide_code access_rotate(const char *name, char ret_secret[ACCESS_SECRET_SIZE], struct caller *ret,
                             struct tide_err *err)
{
    return change_list(rotate_token, &(struct creating){.name = name, .secret = ret_secret, .ret = ret}, err);
}

static enum tide_code end_token(struct token_list *list, struct token *t, const char *name, struct tide_err *err)
{
    if (!t)
        return no_such(name, err);
    token_remove(list, t);
    return TIDE_OK;
}

static enum tide_code remove_token(struct token_list *list, void *arg, struct tide_err *err)
{
    return end_token(list, token_with_name(list, arg), arg, err);
}

static enum tide_code remove_id(struct token_list *list, void *arg, struct tide_err *err)
{
    return end_token(list, token_with_id(list, arg), arg, err);
}

enum tide_code access_revoke(const char *name, struct tide_err *err)
{
    return change_list(remove_token, (void *)name, err);
}

enum tide_code access_revoke_id(const char *id, struct tide_err *err)
{
    return change_list(remove_id, (void *)id, err);
}

enum tide_code access_list(access_fn *fn, void *arg, struct tide_err *err)
{
    struct token_list list = {NULL, 0, 0};
    char path[PATH_MAX];
    struct stat seen;
    enum tide_code code = access_path(ACCESS_FILE_NAME, path, err);

    code = code ? code : token_list_read(path, &list, &seen, err);
    for (size_t i = 0; !code && i < list.n; i++)
        fn(arg, &list.at[i].caller);
    token_list_done(&list);
    return code;
}

/* ---- this user's own ---- */

/* The file's secret may be of a token that was revoked since. */
static enum tide_code read_own(const char *path, char ret_secret[ACCESS_SECRET_SIZE], bool *ret_valid,
                               struct tide_err *err)
{
    char text[ACCESS_SECRET_SIZE + 1];
    struct buf b = BUF_INIT(sizeof text);
    struct access *a = NULL;
    struct caller who;
    struct stat seen;
    enum tide_code code = access_read_file(path, &b, &seen, err);

    *ret_valid = false;
    if (!code && b.len > 1 && b.len <= ACCESS_SECRET_SIZE) {
        snprintf(ret_secret, ACCESS_SECRET_SIZE, "%.*s", STR_ARG(str_trim(buf_view(&b))));
        code = access_open(&a, err);
        *ret_valid = !code && access_check(a, str_from(ret_secret), &who);
        access_close(a);
    }
    if (b.ptr)
        sodium_memzero(b.ptr, b.cap);
    buf_done(&b);
    return code;
}

enum tide_code access_own(char ret_secret[ACCESS_SECRET_SIZE], char *ret_path, size_t path_size, struct tide_err *err)
{
    char path[PATH_MAX], line[ACCESS_SECRET_SIZE + 1], name[ACCESS_NAME_SIZE];
    struct caller who;
    bool valid = false;
    enum tide_code code = access_path(OWN_NAME, path, err);
    int dir = -1;

    code = code ? code : read_own(path, ret_secret, &valid, err);
    if (ret_path)
        snprintf(ret_path, path_size, "%s", path);
    if (code || valid)
        return code;
    snprintf(name, sizeof name, "owner-%08x", (unsigned)randombytes_random());
    code = access_create(name, SCOPE_ALL, 0, ret_secret, &who, err);
    code = code ? code : file_lock_dir(path, &dir, err);
    snprintf(line, sizeof line, "%s\n", ret_secret);
    code = code ? code : file_replace(path, dir, str_from(line), err);
    sodium_memzero(line, sizeof line);
    if (dir >= 0)
        close(dir);
    return code;
}

enum tide_code access_read_own(char ret_secret[ACCESS_SECRET_SIZE], struct tide_err *err)
{
    char path[PATH_MAX];
    struct buf b = BUF_INIT(ACCESS_SECRET_SIZE + 1);
    struct stat seen;
    enum tide_code code;

    ret_secret[0] = '\0';
    if (!user_state_path(OWN_NAME, false, path, sizeof path))
        return TIDE_OK;
    code = access_read_file(path, &b, &seen, err);
    if (!code)
        snprintf(ret_secret, ACCESS_SECRET_SIZE, "%.*s", STR_ARG(str_trim(buf_view(&b))));
    if (b.ptr)
        sodium_memzero(b.ptr, b.cap);
    buf_done(&b);
    return code;
}
