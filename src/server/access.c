/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask for what: scopes by their words, and tokens by their secrets, as the file has them now. */
#include "server/access.h"

#include <pthread.h>
#include <sodium.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/access_file.h"

#define LOOK_MS 100 /* thousands of streams ask at once whether their tokens hold */

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

/* ---- asking ---- */

enum tide_code access_open(struct access **ret, struct tide_err *err)
{
    struct access *a = mem_zero(sizeof *a);
    enum tide_code code = access_path(ACCESS_FILE_NAME, a->path, err);

    pthread_mutex_init(&a->mu, NULL);
    code = code ? code : token_list_read(a->path, &a->list, &a->seen, err);
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
    token_list_done(&a->list);
    pthread_mutex_destroy(&a->mu);
    free(a);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* With mu held. A file that cannot be read gives nobody access. */
static void refresh_tokens(struct access *a)
{
    struct stat now = {0};
    struct tide_err err;

    a->looked_ms = monotonic_ms();
    if (stat(a->path, &now))
        memset(&now, 0, sizeof now);
    if (is_same_file(&now, &a->seen))
        return;
    token_list_done(&a->list);
    if (token_list_read(a->path, &a->list, &a->seen, &err))
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
    refresh_tokens(a);
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
        refresh_tokens(a);
    for (size_t i = 0; i < a->list.n; i++)
        holds |= strcmp(a->list.at[i].caller.id, caller->id) == 0 && caller_is_valid(&a->list.at[i].caller);
    pthread_mutex_unlock(&a->mu);
    return holds;
}
