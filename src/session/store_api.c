/* SPDX-License-Identifier: Apache-2.0 */
/* The public store calls: opening, figures, checking, inputs. */
#include <inttypes.h>
#include <unistd.h>

#include "base/log.h"
#include "env/user_key.h"
#include "session/session_file.h"
#include "session/redact.h"
#include "session/trust.h"
#include "store/group.h"
#include "store/hub.h"

static int has_session(void *arg, const struct store_entry *entry)
{
    (void)entry;
    *(bool *)arg = true;
    return 1;
}

/* A key that is new where sessions are, or that nobody will have again, makes them foreign. */
static void tell_key(struct store *s, const struct user_key *own)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool any = false, made = own->made && !atomic_flag_test_and_set(&told);

    if (s->origins == ORIGIN_ADOPTED && !store_list(s, NULL, has_session, &any, NULL) && any)
        snprintf(s->origin_notice, sizeof s->origin_notice,
                 "the store was made by an earlier version: its sessions are taken as yours, and may run");
    else if (s->origins == ORIGIN_OLDER)
        snprintf(s->origin_notice, sizeof s->origin_notice,
                 "the store was made by an earlier version: its sessions count as foreign until you trust "
                 "them");
    else if (s->origins != ORIGIN_ADOPTED && made && !store_list(s, NULL, has_session, &any, NULL) && any)
        snprintf(s->origin_notice, sizeof s->origin_notice,
                 "a new key of origin was made, '%.200s': sessions from before it count as foreign "
                 "until you trust them",
                 own->from);
    else if (own->key.len && !own->from[0])
        snprintf(s->origin_notice, sizeof s->origin_notice,
                 "no key of origin (%.200s): what runs now has to be trusted before it can be resumed; set "
                 "TIDEMARK_ORIGIN_KEY_FILE",
                 own->why);
    else if (own->why[0] && !store_list(s, NULL, has_session, &any, NULL) && any)
        snprintf(s->origin_notice, sizeof s->origin_notice,
                 "%.250s; it is not used, and your own sessions count as foreign meanwhile", own->why);
}

enum tide_code tide_store_open(const char *url, const struct tide_store_options *opt, tide_store **ret_store,
                               struct tide_err *err)
{
    struct tide_store_options with_key;
    struct user_key own = {.made = false};
    struct store *s;
    enum tide_code code;

    ERR_LOCAL(err);
    if (SIZED_READ(&with_key, tide_store_options, opt, err))
        return err->code;
    if (!with_key.origin_key) {
        code = user_key(!(with_key.flags & TIDE_OPEN_READ_ONLY), &own, err);
        if (code)
            return code;
        with_key.origin_key = own.key.len ? own.key.bytes : NULL;
        with_key.origin_key_len = own.key.len;
    }
    code = store_open(url ? url : "", &with_key, env_real(), &s, err);
    if (!code) {
        redact_add_environment(s, environ);
        /* Who has the keys can forge what they prove: a tool that prints them must not leave them in a log that is sent
         * around. */
        (void)!redact_add(s, STR("TIDEMARK_ORIGIN_KEY"),
                          (struct str){(const char *)s->origin.user.bytes, s->origin.user.len}, NULL);
        if (s->key.len)
            (void)!redact_add(s, STR("TIDEMARK_KEY"), (struct str){(const char *)s->key.bytes, s->key.len}, NULL);
        tell_key(s, &own);
        *ret_store = (tide_store *)(void *)s;
    }
    explicit_bzero(&own, sizeof own);
    return code;
}

static void pass_over(void *arg, const char *line)
{
    (void)arg;
    (void)line;
}

void tide_store_close(tide_store *store)
{
    if (store && log_enabled(TIDE_LOG_WARN)) /* what nobody asked for is logged at least */
        tide_store_read_notices(store, pass_over, NULL);
    store_close(store_of(store));
}

enum tide_code tide_store_get_info(tide_store *store, struct tide_text *ret_json, struct tide_err *err)
{
    struct store *s = store_of(store);
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code;

    ERR_LOCAL(err);
    code = store_info(s, &out, err);
    if (code) {
        buf_done(&out);
        return code;
    }
    ret_json->len = out.len;
    ret_json->ptr = buf_take(&out);
    return TIDE_OK;
}

void tide_store_get_counts(tide_store *store, struct tide_store_counts *ret_counts, size_t size)
{
    struct tide_store_counts counts = {0};

    group_count(store_of(store)->group, &counts);
    counts.watchers = hub_count(store_of(store)->hub);
    memset(ret_counts, 0, size);
    memcpy(ret_counts, &counts, size < sizeof counts ? size : sizeof counts);
}

enum tide_code tide_store_compact(tide_store *store, struct tide_err *err)
{
    ERR_LOCAL(err);
    return store_compact(store_of(store), err);
}

size_t tide_store_read_notices(tide_store *store, tide_notice_fn *fn, void *arg)
{
    struct store *s = store_of(store);
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    size_t n = 0;

    if (s->origin_notice[0] && !atomic_flag_test_and_set(&s->origin_told))
        buf_addf(&lines, "%s\n", s->origin_notice);
    store_take_notices(s, &lines);
    for (char *at = lines.ptr, *end; at && (end = memchr(at, '\n', lines.len - (size_t)(at - lines.ptr)));
         at = end + 1) {
        *end = 0;
        log_write(TIDE_LOG_WARN, "notice of the store", log_text("store", s->url), log_text("notice", at));
        fn(arg, at);
        n++;
    }
    return n;
}

size_t tide_store_reap(tide_store *store, struct tide_completion *ret_done, size_t max, int timeout_ms)
{
    return group_reap(store_of(store)->group, ret_done, max, timeout_ms);
}

enum tide_code tide_session_input(tide_store *store, const char *id, int64_t expect_seq,
                                  const struct tide_new_event *events, size_t n, int64_t *ret_seq, struct tide_err *err)
{
    struct store *s = store_of(store);
    struct arena a = ARENA_INIT;
    struct event *list;
    struct batch_result result;
    char whole[TIDE_ID_SIZE];
    struct head h;
    struct batch *b;
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_resolve(s, str_from(id), whole, err);
    code = code ? code : history_prove_now(s, whole, err);
    list = arena_alloc(&a, (n ? n : 1) * sizeof *list);
    for (size_t i = 0; i < n && !code; i++) {
        const struct kind *k = kind_find(str_from(events[i].kind));

        code = event_check(s, &a, &events[i], false, &list[i], NULL, err);
        if (!code && (!k || !(k->flags & KIND_INPUT))) {
            tide_fail(err, TIDE_INVALID, "%s is not an input: only the holder of the lease may append it",
                      events[i].kind);
            code = tide_about_session(err, whole);
        }
        if (!code && k->flags & KIND_MOVES) { /* what would make a run continue is not taken for one that must not */
            code = store_head(s, str_from(whole), &h, err);
            code = code ? code : trust_check(s, &h, err);
        }
    }
    if (!code) {
        b = batch_new(str_from(whole), BATCH_INPUT, list, n, STR(""), STR(""));
        b->expect_seq = expect_seq;
        code = store_write(s, b, &result, err);
    }
    for (size_t i = 0; i < n && !code; i++) {
        if (!session_file_changes(&list[i]))
            continue;
        session_file_renew(s, whole);
        break;
    }
    if (!code && ret_seq)
        *ret_seq = result.last_seq;
    arena_done(&a);
    return code;
}
