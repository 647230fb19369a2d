/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only digests of codes are kept, and compared in constant time. What was used or is over stays known for a while, so that the caller that comes
 * late learns that, and not that there never was such a code.
 */
#include "server/signin.h"

#include <pthread.h>
#include <sodium.h>

#include "base/digest.h"
#include "base/mem.h"

#define KEPT 64 /* codes, whatever became of them */

struct code {
    unsigned char digest[DIGEST_SIZE];
    struct caller by;
    unsigned scopes;
    int64_t until_ms; /* 0: there is none here */
    bool used;
};

struct signin {
    pthread_mutex_t mu;
    struct code codes[KEPT];
    size_t next; /* where the next one goes, unless a code there can be used */
};

struct signin *signin_new(void)
{
    struct signin *s = mem_zero(sizeof *s);

    pthread_mutex_init(&s->mu, NULL);
    return s;
}

void signin_free(struct signin *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->mu);
    sodium_memzero(s->codes, sizeof s->codes);
    free(s);
}

static bool is_open(const struct code *c, int64_t now_ms)
{
    return c->until_ms > now_ms && !c->used;
}

/* With mu held: the oldest that can be used, of this caller (NULL: of all), and how many there are. */
static struct code *oldest_open(struct signin *s, const struct caller *by, int64_t now_ms, size_t *ret_n)
{
    struct code *oldest = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < KEPT; i++) {
        struct code *c = &s->codes[i];

        if (!is_open(c, now_ms) || (by && strcmp(c->by.id, by->id) != 0))
            continue;
        ++*ret_n;
        if (!oldest || c->until_ms < oldest->until_ms)
            oldest = c;
    }
    return oldest;
}

/* With mu held. Nobody keeps out those who may do everything. */
static enum tide_code make_room(struct signin *s, const struct caller *by, int64_t now_ms, struct tide_err *err)
{
    size_t own, all;
    struct code *oldest_own = oldest_open(s, by, now_ms, &own), *oldest = oldest_open(s, NULL, now_ms, &all);

    if (own >= SIGNIN_CODES_EACH)
        oldest_own->used = true;
    else if (all >= SIGNIN_CODES_MAX && by->scopes & SCOPE_ADMIN)
        oldest->used = true;
    else if (all >= SIGNIN_CODES_MAX)
        return tide_fail(err, TIDE_BUSY, "%d codes can be used already: try again in a minute", SIGNIN_CODES_MAX);
    return TIDE_OK;
}

/* With mu held: the oldest place whose code is over. */
static struct code *free_place(struct signin *s, int64_t now_ms)
{
    struct code *c;

    do {
        c = &s->codes[s->next];
        s->next = (s->next + 1) % KEPT;
    } while (is_open(c, now_ms));
    return c;
}

enum tide_code signin_make(struct signin *s, const struct caller *by, unsigned scopes, int64_t now_ms,
                           char ret_code[SIGNIN_CODE_SIZE], struct tide_err *err)
{
    unsigned char bytes[16];
    enum tide_code code;
    struct code *c;

    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2base64(ret_code, SIGNIN_CODE_SIZE, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof bytes);
    pthread_mutex_lock(&s->mu);
    code = make_room(s, by, now_ms, err);
    if (!code) {
        c = free_place(s, now_ms);
        *c = (struct code){.by = *by, .scopes = scopes & by->scopes, .until_ms = now_ms + SIGNIN_CODE_MS};
        digest_of(c->digest, str_from(ret_code));
    }
    pthread_mutex_unlock(&s->mu);
    return code;
}

/* With mu held; NULL: there is none. */
static struct code *find_code(struct signin *s, struct str text)
{
    unsigned char digest[DIGEST_SIZE];
    struct code *found = NULL;

    digest_of(digest, text);
    for (size_t i = 0; i < KEPT; i++)
        if (s->codes[i].until_ms && sodium_memcmp(digest, s->codes[i].digest, DIGEST_SIZE) == 0)
            found = &s->codes[i];
    return found;
}

enum signin_verdict signin_use(struct signin *s, struct str code, int64_t now_ms, struct caller *ret_by,
                               unsigned *ret_scopes)
{
    enum signin_verdict verdict = SIGNIN_UNKNOWN;
    struct code *c;

    pthread_mutex_lock(&s->mu);
    c = find_code(s, code);
    if (c)
        verdict = is_open(c, now_ms) ? SIGNIN_OK : SIGNIN_OVER;
    if (verdict == SIGNIN_OK) {
        c->used = true;
        *ret_by = c->by;
        *ret_scopes = c->scopes;
    }
    pthread_mutex_unlock(&s->mu);
    return verdict;
}

void signin_give_back(struct signin *s, struct str code)
{
    struct code *c;

    pthread_mutex_lock(&s->mu);
    c = find_code(s, code);
    if (c)
        c->used = false;
    pthread_mutex_unlock(&s->mu);
}
