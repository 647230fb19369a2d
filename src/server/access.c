/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of tokens: {"version":1,"tokens":[{"name":…,"id":…,"hash":…,"scopes":[…],"created_ms":…,"expires_ms":…}]}. The hash is
 * BLAKE2b-256 of the secret, which has 256 random bits: nothing slower is needed, and nothing that was stored gives it back. One of a
 * sign-in has "signed_in":true, and "parent", the id of the token that allowed it: where that is gone, it is no token either.
 */
#include "server/access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "engine/replace_file.h"
#include "env/user_key.h"

#define FILE_NAME "access.json"
#define OWN_NAME "server.token"
#define FILE_MAX ((size_t)1 << 20)
#define PREFIX "tide_"
#define LOOK_MS 100 /* thousands of streams ask at once whether their tokens hold */
#define SIGNED_IN_MAX 256

struct token {
    struct caller caller;
    unsigned char hash[DIGEST_SIZE];
};

struct token_list {
    struct token *at;
    size_t n, cap;
};

struct access {
    char path[PATH_MAX];
    pthread_mutex_t mu;
    struct token_list list;
    struct stat seen;  /* the file that the list was read from */
    int64_t looked_ms; /* at it, by the monotonic clock */
};

/* ---- scopes ---- */

static const struct {
    const char *word;
    enum scope scope;
    unsigned includes;
} scope_rows[] = {
    {"read", SCOPE_READ, SCOPE_READ},
    {"answer", SCOPE_ANSWER, SCOPE_READ | SCOPE_ANSWER},
    {"write", SCOPE_WRITE, SCOPE_READ | SCOPE_WRITE},
    {"run", SCOPE_RUN, SCOPE_READ | SCOPE_WRITE | SCOPE_RUN},
    {"admin", SCOPE_ADMIN, SCOPE_ALL},
};
#define SCOPES (sizeof scope_rows / sizeof scope_rows[0])

const char *scope_word(enum scope scope)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (scope_rows[i].scope == scope)
            return scope_rows[i].word;
    return "none";
}

static unsigned scope_from(struct str word)
{
    for (size_t i = 0; i < SCOPES; i++)
        if (str_eq(word, str_from(scope_rows[i].word)))
            return scope_rows[i].includes;
    return 0;
}

unsigned scopes_from(struct str words)
{
    unsigned all = 0, one;

    for (size_t i = 0, begin = 0; i <= words.len; i++) {
        if (i < words.len && words.ptr[i] != ',' && words.ptr[i] != ' ')
            continue;
        one = i > begin ? scope_from((struct str){words.ptr + begin, i - begin}) : 0;
        if (i > begin && !one)
            return 0;
        all |= one;
        begin = i + 1;
    }
    return all;
}

void scopes_write(unsigned scopes, struct buf *out)
{
    const char *between = "";

    for (size_t i = 0; i < SCOPES; i++)
        if (scopes & scope_rows[i].scope) {
            buf_addf(out, "%s%s", between, scope_rows[i].word);
            between = ",";
        }
}

void scopes_list(unsigned scopes, const char *ret_words[6])
{
    size_t n = 0;

    for (size_t i = 0; i < SCOPES; i++)
        if (scopes & scope_rows[i].scope)
            ret_words[n++] = scope_rows[i].word;
    ret_words[n] = NULL;
}

/* ---- the file ---- */

static enum tide_code state_path(const char *name, char path[PATH_MAX], struct tide_err *err)
{
    return user_state_path(name, true, path, PATH_MAX)
               ? TIDE_OK
               : tide_fail(
                     err, TIDE_DENIED,
                     "the state directory cannot be written, and '%s' belongs there: set XDG_STATE_HOME to a directory of yours",
                     name);
}

/* What others could read or write is no secret and no list. */
static enum tide_code check_file(int fd, const char *path, struct stat *ret, struct tide_err *err)
{
    if (fstat(fd, ret))
        return tide_fail_file(err, errno, "look at", path);
    if (!S_ISREG(ret->st_mode) || ret->st_uid != geteuid())
        return tide_fail(err, TIDE_DENIED, "'%s' is not a regular file of this user: remove it, and make tokens anew",
                         path);
    if (ret->st_mode & 077)
        return tide_fail(err, TIDE_DENIED,
                         "'%s' can be read or written by others: `chmod 600` it, and revoke what they may have read",
                         path);
    return TIDE_OK;
}

static enum tide_code read_file(const char *path, struct buf *ret_text, struct stat *ret_seen, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
    enum tide_code code;
    int failed;

    memset(ret_seen, 0, sizeof *ret_seen);
    if (fd < 0 && errno == ENOENT)
        return TIDE_OK;
    if (fd < 0)
        return tide_fail_file(err, errno, "open", path);
    code = check_file(fd, path, ret_seen, err);
    failed = code ? 0 : buf_read_fd(ret_text, fd);
    close(fd);
    return code               ? code
           : failed           ? tide_fail_file(err, failed, "read", path)
           : ret_text->failed ? tide_fail(err, TIDE_TOO_BIG, "'%s' has more than a MiB", path)
                              : TIDE_OK;
}

static bool read_token(struct arena *a, const struct json *v, struct token *ret)
{
    struct str name = json_get_text(a, v, STR("name")), id = json_get_text(a, v, STR("id"));
    const struct json *scopes = json_get(v, STR("scopes"));

    *ret = (struct token){.caller = {.created_ms = json_get_int(v, STR("created_ms"), 0),
                                     .expires_ms = json_get_int(v, STR("expires_ms"), 0)}};
    snprintf(ret->caller.name, sizeof ret->caller.name, "%.*s", STR_ARG(name));
    snprintf(ret->caller.id, sizeof ret->caller.id, "%.*s", STR_ARG(id));
    snprintf(ret->caller.parent, sizeof ret->caller.parent, "%.*s", STR_ARG(json_get_text(a, v, STR("parent"))));
    ret->caller.signed_in = json_get_bool(v, STR("signed_in"), false);
    for (const struct json *s = scopes ? scopes->first : NULL; s; s = s->next)
        ret->caller.scopes |= scope_from(json_text(a, s));
    return name.len && id.len && ret->caller.scopes &&
           hex_decode(ret->hash, DIGEST_SIZE, json_get_text(a, v, STR("hash")));
}

static enum tide_code parse_list(struct str text, const char *path, struct token_list *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    const struct json *list;

    if (!text.len)
        return TIDE_OK;
    if (json_parse(&a, text, NULL, &v, NULL, err))
        return tide_wrap(err, "read the tokens of '%s'", path);
    list = json_get(v, STR("tokens"));
    for (const struct json *t = list ? list->first : NULL; t; t = t->next) {
        MEM_ROOM(ret->at, ret->n, ret->cap);
        if (!read_token(&a, t, &ret->at[ret->n]))
            return tide_fail(err, TIDE_INVALID,
                             "'%s' holds a token that is none: remove the file, and make tokens anew", path);
        ret->n++;
    }
    return TIDE_OK;
}

static void list_done(struct token_list *list)
{
    if (list->at)
        sodium_memzero(list->at, list->cap * sizeof *list->at);
    free(list->at);
    *list = (struct token_list){NULL, 0, 0};
}

static struct token *find_id(const struct token_list *list, const char *id)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].caller.id, id) == 0)
            return &list->at[i];
    return NULL;
}

/* Whatever ended a token ended what was signed in by it, and by that. */
static void drop_orphans(struct token_list *list)
{
    for (size_t i = 0; i < list->n;) {
        const char *parent = list->at[i].caller.parent;

        if (!parent[0] || find_id(list, parent)) {
            i++;
            continue;
        }
        list->at[i] = list->at[--list->n];
        i = 0; /* it may have been a parent */
    }
}

static enum tide_code load_list(const char *path, struct token_list *ret, struct stat *ret_seen, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(FILE_MAX);
    struct token_list list = {NULL, 0, 0};
    enum tide_code code = read_file(path, &text, ret_seen, err);

    code = code ? code : parse_list(buf_view(&text), path, &list, err);
    drop_orphans(&list);
    if (code)
        list_done(&list);
    else
        *ret = list;
    return code;
}

static void write_list(const struct token_list *list, struct buf *out)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("version"), 1);
    json_out_key(&o, STR("tokens"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < list->n; i++) {
        const struct token *t = &list->at[i];
        char hash[2 * DIGEST_SIZE + 1];

        hex_encode(hash, t->hash, DIGEST_SIZE);
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("name"), str_from(t->caller.name));
        json_out_kstr(&o, STR("id"), str_from(t->caller.id));
        json_out_kstr(&o, STR("hash"), str_from(hash));
        json_out_key(&o, STR("scopes"));
        json_out_begin(&o, '[');
        for (size_t k = 0; k < SCOPES; k++)
            if (t->caller.scopes & scope_rows[k].scope)
                json_out_str(&o, str_from(scope_rows[k].word));
        json_out_end(&o, ']');
        json_out_kint(&o, STR("created_ms"), t->caller.created_ms);
        json_out_kint(&o, STR("expires_ms"), t->caller.expires_ms);
        if (t->caller.signed_in)
            json_out_kbool(&o, STR("signed_in"), true);
        if (t->caller.parent[0])
            json_out_kstr(&o, STR("parent"), str_from(t->caller.parent));
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}

/* ---- asking ---- */

enum tide_code access_open(struct access **ret, struct tide_err *err)
{
    struct access *a = mem_zero(sizeof *a);
    enum tide_code code = state_path(FILE_NAME, a->path, err);

    pthread_mutex_init(&a->mu, NULL);
    code = code ? code : load_list(a->path, &a->list, &a->seen, err);
    if (code)
        access_close(a);
    else
        *ret = a;
    return code;
}

void access_close(struct access *a)
{
    if (!a)
        return;
    list_done(&a->list);
    pthread_mutex_destroy(&a->mu);
    free(a);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* With mu held. A file that cannot be read gives nobody access. */
static void refresh(struct access *a)
{
    struct stat now = {0};
    struct tide_err err;

    a->looked_ms = monotonic_ms();
    if (stat(a->path, &now))
        memset(&now, 0, sizeof now);
    if (is_same_file(&now, &a->seen))
        return;
    list_done(&a->list);
    if (load_list(a->path, &a->list, &a->seen, &err))
        a->seen = now;
}

bool caller_is_valid(const struct caller *c)
{
    return !c->expires_ms || c->expires_ms > wall_ms();
}

bool access_check(struct access *a, struct str secret, struct caller *ret)
{
    unsigned char hash[DIGEST_SIZE];
    bool found = false;

    digest_of(hash, secret);
    pthread_mutex_lock(&a->mu);
    refresh(a);
    for (size_t i = 0; i < a->list.n; i++)
        if (sodium_memcmp(hash, a->list.at[i].hash, DIGEST_SIZE) == 0 && caller_is_valid(&a->list.at[i].caller)) {
            *ret = a->list.at[i].caller;
            found = true;
        }
    pthread_mutex_unlock(&a->mu);
    return found;
}

bool access_holds(struct access *a, const struct caller *caller)
{
    bool holds = false;

    if (!caller->id[0])
        return true; /* nobody's token */
    pthread_mutex_lock(&a->mu);
    if (monotonic_ms() >= a->looked_ms + LOOK_MS)
        refresh(a);
    for (size_t i = 0; i < a->list.n; i++)
        holds |= strcmp(a->list.at[i].caller.id, caller->id) == 0 && caller_is_valid(&a->list.at[i].caller);
    pthread_mutex_unlock(&a->mu);
    return holds;
}

/* ---- changing ---- */

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

static struct token *find_name(const struct token_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].caller.name, name) == 0)
            return &list->at[i];
    return NULL;
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
    AUTO(buf_done) struct buf text = BUF_INIT(FILE_MAX);
    struct token_list list = {NULL, 0, 0};
    char path[PATH_MAX];
    struct stat seen;
    enum tide_code code = state_path(FILE_NAME, path, err);
    int dir = -1;

    code = code ? code : file_lock_dir(path, &dir, err);
    code = code ? code : load_list(path, &list, &seen, err);
    code = code ? code : fn(&list, arg, err);
    if (!code) {
        drop_orphans(&list);
        write_list(&list, &text);
        code = text.failed ? tide_fail(err, TIDE_TOO_BIG, "'%s' would have more than a MiB: revoke tokens", path)
                           : file_replace(path, dir, buf_view(&text), err);
    }
    if (dir >= 0)
        close(dir);
    list_done(&list);
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
    if (find_name(list, c->name))
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
                  "'%.80s' is no name of a token: it has 1 to 64 letters, digits, dots, dashes and underscores, and "
                  "is not local, token, deadline, person, node or override",
                  name));
}

enum tide_code access_create(const char *name, unsigned scopes, int64_t expires_ms, char ret_secret[ACCESS_SECRET_SIZE],
                             struct caller *ret, struct tide_err *err)
{
    struct creating c = {name, scopes, expires_ms, ret_secret, ret, NULL};

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
            list->at[i] = list->at[--list->n];
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
    } while (find_name(list, ret));
}

static enum tide_code add_signed_in(struct token_list *list, void *arg, struct tide_err *err)
{
    struct creating *c = arg;
    const struct token *above = c->by->id[0] ? find_id(list, c->by->id) : NULL;
    char name[ACCESS_NAME_SIZE];

    if (c->by->id[0] && (!above || !caller_is_valid(&above->caller)))
        return tide_fail(err, TIDE_DENIED, "the token that allowed this is revoked or has expired");
    remove_expired(list);
    if (count_signed_in(list) >= SIGNED_IN_MAX)
        return tide_fail(err, TIDE_BUSY, "%d are signed in already: revoke some of their tokens", SIGNED_IN_MAX);
    if (!c->name)
        choose_name(list, name);
    c->name = c->name ? c->name : name;
    return add_token(list, c, err);
}

enum tide_code access_sign_in(const struct caller *by, const char *name, unsigned scopes, int64_t expires_ms,
                              char ret_secret[ACCESS_SECRET_SIZE], struct caller *ret, struct tide_err *err)
{
    struct creating c = {name, scopes & by->scopes, expires_ms, ret_secret, ret, by};

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
    struct token *t = find_name(list, c->name);

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
    *t = list->at[--list->n];
    return TIDE_OK;
}

static enum tide_code remove_token(struct token_list *list, void *arg, struct tide_err *err)
{
    return end_token(list, find_name(list, arg), arg, err);
}

static enum tide_code remove_id(struct token_list *list, void *arg, struct tide_err *err)
{
    return end_token(list, find_id(list, arg), arg, err);
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
    enum tide_code code = state_path(FILE_NAME, path, err);

    code = code ? code : load_list(path, &list, &seen, err);
    for (size_t i = 0; !code && i < list.n; i++)
        fn(arg, &list.at[i].caller);
    list_done(&list);
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
    enum tide_code code = read_file(path, &b, &seen, err);

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
    enum tide_code code = state_path(OWN_NAME, path, err);
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
    code = read_file(path, &b, &seen, err);
    if (!code)
        snprintf(ret_secret, ACCESS_SECRET_SIZE, "%.*s", STR_ARG(str_trim(buf_view(&b))));
    if (b.ptr)
        sodium_memzero(b.ptr, b.cap);
    buf_done(&b);
    return code;
}
