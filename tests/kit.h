/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store and of sessions share: a seeded choice, throw-away directories, calls that must succeed. */
#ifndef TESTS_KIT_H
#define TESTS_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "env/env.h"
#include "store/store.h"

#include "seeded.h"
#include "store_kind.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD 1 /* fewer rounds: the same code, under a sanitizer */
#else
#define SLOW_BUILD 0
#endif

#define UNUSED __attribute__((unused))

#define SAID "{\"content\":\"hi\"}" /* of a message that only has to be one */

/* ---- Choices that follow from a seed ------------------------------------------------------------------------ */

struct rng {
    uint64_t s;
};

UNUSED static uint64_t rng_next(struct rng *r)
{
    return seeded_next(&r->s);
}

UNUSED static int64_t rng_below(struct rng *r, int64_t n)
{
    return n > 0 ? (int64_t)(rng_next(r) % (uint64_t)n) : 0;
}

UNUSED static int64_t rng_between(struct rng *r, int64_t from, int64_t to)
{
    return from + rng_below(r, to - from + 1);
}

/* ---- Calls that must give this code -------------------------------------------------------------------------- */

UNUSED static void expect_code(enum tide_code want, enum tide_code got, const struct tide_err *err, const char *call,
                               const char *file, int line)
{
    if (got == want)
        return;
    print_error("%s: want %s, got %s%s%s\n", call, tide_code_name(want), tide_code_name(got), got ? ": " : "",
                got && err ? err->msg : "");
    _fail(file, line);
}

/* The call may use `&err`. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        struct tide_err err UNUSED = {0};                                                                              \
        expect_code(TIDE_OK, call, &err, #call, __FILE__, __LINE__);                                                   \
    } while (0)
#define GIVES(want, call)                                                                                              \
    do {                                                                                                               \
        struct tide_err err UNUSED = {0};                                                                              \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
    } while (0)
/* The call fails with this code, and this is what helps. */
#define HINTS(want, what, call)                                                                                        \
    do {                                                                                                               \
        struct tide_err err = {0};                                                                                     \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
        assert_int_equal(err.hints[0].action, what);                                                                   \
    } while (0)
/* … and this is what it is about; `name` "": that is the session, or has no name. */
#define ABOUT(want, what, of, call)                                                                                    \
    do {                                                                                                               \
        struct tide_err err = {0};                                                                                     \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
        assert_string_equal(tide_subject_name(err.detail.subject), tide_subject_name(what));                           \
        assert_string_equal(err.detail.name, of);                                                                      \
    } while (0)
#define ABOUT_SESSION(want, id, call)                                                                                  \
    do {                                                                                                               \
        struct tide_err err = {0};                                                                                     \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
        assert_string_equal(err.detail.session_id, id);                                                                \
    } while (0)
#define ABOUT_EVENT(want, seq, call)                                                                                   \
    do {                                                                                                               \
        struct tide_err err = {0};                                                                                     \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
        assert_string_equal(tide_subject_name(err.detail.subject), "event");                                           \
        assert_int_equal(err.detail.position, seq);                                                                    \
    } while (0)
/* … and its message has these words: where the words are what is tested. */
#define SAYS(want, words, call)                                                                                        \
    do {                                                                                                               \
        struct tide_err err = {0};                                                                                     \
        expect_code(want, call, &err, #call, __FILE__, __LINE__);                                                      \
        if (!strstr(err.msg, words)) {                                                                                 \
            print_error("'%s' is not in '%s'\n", words, err.msg);                                                      \
            _fail(__FILE__, __LINE__);                                                                                 \
        }                                                                                                              \
    } while (0)

/* ---- A directory of one's own -------------------------------------------------------------------------------- */

/* In memory where there is room in memory: the tests that use it are not about the disk. */
UNUSED static const char *dir_make(char out[256])
{
    snprintf(out, 256, "%s/tidemark-test.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(out))
        fail_msg("mkdtemp %s", out);
    return out;
}

UNUSED static void dir_remove(const char *dir)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0) /* NOLINT(cert-env33-c): our own mkdtemp name */
        print_error("cannot remove %s\n", dir);
}

/* What a test begins with, of which its directory is the first: struct fixture { char dir[256]; … } */
UNUSED static void *fixture_new(size_t size)
{
    char *f = mem_zero(size);

    dir_make(f);
    return f;
}

UNUSED static int fixture_remove(void **state)
{
    dir_remove(*state);
    free(*state);
    return 0;
}

/* ---- A store as SQLite sees it ------------------------------------------------------------------------------- */

UNUSED static void sql_run(const char *path, const char *vfs, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, vfs) != SQLITE_OK)
        fail_msg("open %s: %s", path, sqlite3_errmsg(db));
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_busy_timeout(db, 5000);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

UNUSED static int64_t sql_int(const char *path, const char *sql)
{
    sqlite3_stmt *st = NULL;
    sqlite3 *db = NULL;
    int64_t v;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        fail_msg("open %s: %s", path, sqlite3_errmsg(db));
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK || sqlite3_step(st) != SQLITE_ROW)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return v;
}

#define DROP_CACHES "DELETE FROM blocks; DELETE FROM snapshots; UPDATE sessions SET summary = NULL, summary_seq = NULL"

/* The rest of a test that is about SQLite, or about what only such a store has: the reason is shown. */
#define SQLITE_ONLY(reason)                                                                                            \
    do {                                                                                                               \
        if (on_files()) {                                                                                              \
            print_message("# not on %s: %s\n", store_kind()->name, reason);                                            \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

/* ---- Session calls with less to write ------------------------------------------------------------------------ */

/* Appends one event whose body is printed; the seq it got. */
__attribute__((format(printf, 3, 4))) UNUSED static int64_t put(tide_session *s, const char *kind, const char *fmt, ...)
{
    struct tide_new_event ev = {kind, NULL, 0};
    char *body = NULL;
    int64_t seq = 0;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&body, fmt, ap) < 0)
        fail();
    va_end(ap);
    ev.body = body;
    OK(tide_session_append(s, 0, &ev, 1, &seq, &err));
    free(body);
    return seq;
}

UNUSED static enum tide_code append_one(tide_session *s, const char *kind, const char *body, struct tide_err *err)
{
    struct tide_new_event ev = {kind, body, 0};

    return tide_session_append(s, 0, &ev, 1, NULL, err);
}

UNUSED static int add_exported(void *arg, const char *bytes, size_t len)
{
    buf_add(arg, bytes, len);
    return 0;
}

/* A session as its export has it; buf_done() it. */
UNUSED static struct buf export_of(tide_store *store, const char *id)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    tide_session *s = NULL;

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_export(s, add_exported, NULL, &out, &err));
    tide_session_close(s);
    return out;
}

/* The state as text, the caller's to free. */
UNUSED static char *state_text(tide_session *s, int64_t seq)
{
    struct tide_text text = {NULL, 0};

    OK(tide_session_get_state(s, seq, &text, &err));
    return text.ptr;
}

/* tide_session_get_info() and tide_checkpoint_load() for callbacks that lists take as well; id NULL: the latest. */
UNUSED static enum tide_code session_shown(tide_session *s, tide_session_info_fn *fn, void *arg, struct tide_err *err)
{
    const struct tide_session_info *info;
    enum tide_code code = tide_session_get_info(s, &info, err);

    if (!code)
        fn(arg, info);
    return code;
}

UNUSED static enum tide_code checkpoint_shown(tide_session *s, const char *id, tide_checkpoint_fn *fn, void *arg,
                                              struct tide_err *err)
{
    const struct tide_checkpoint *c;
    enum tide_code code = id ? tide_checkpoint_load(s, id, &c, err) : tide_checkpoint_load_latest(s, &c, err);

    if (!code)
        fn(arg, c);
    return code;
}

#endif
