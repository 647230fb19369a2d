/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cut leaves of a log of the files store: cut at every byte of the last write, filled with zeros, mixed by sector. The
 * write is cut off as a whole, kept aside and told once, and the next append is whole; damage before it is named.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "kit.h"

#include "store/group.h"

#define UNITS 4 /* of three events each, behind the one that makes the session */

struct torn {
    char dir[256], url[300], log[400];
    char *bytes;      /* of the whole log */
    size_t len, last; /* last: where the last unit begins */
};

static char *read_whole(const char *path, size_t *ret_len)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    char *bytes;

    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    bytes = mem_alloc((size_t)st.st_size + 1);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    close(fd);
    *ret_len = (size_t)st.st_size;
    return bytes;
}

static void write_whole(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static struct store *open_store(const char *url)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE};
    struct store *s = NULL;

    OK(store_open(url, &opt, env_real(), &s, &err));
    return s;
}

static void add_unit(struct store *s, unsigned flags, int64_t expect, int64_t *epoch, size_t n)
{
    struct event events[3];
    struct batch_result r = {0};
    struct batch *b;
    char body[900] = "{\"content\":\"";

    memset(body + 12, 'a', 700); /* longer than a sector */
    memcpy(body + 712, "\"}", 3);
    for (size_t i = 0; i < n; i++)
        events[i] = (struct event){.kind = STR("test.event"), .body = str_from(body)};
    b = batch_new(STR("s"), flags, events, n, STR(""), STR(""));
    b->expect_seq = expect;
    b->epoch = *epoch;
    OK(store_write(s, b, &r, &err));
    *epoch = r.epoch;
}

static void make_log(struct torn *t)
{
    int64_t epoch = 0, seq = 1;
    struct store *s;

    dir_make(t->dir);
    snprintf(t->url, sizeof t->url, "files:%s/made", t->dir);
    s = open_store(t->url);
    add_unit(s, BATCH_CREATE | BATCH_ACQUIRE, STORE_ANY_SEQ, &epoch, 1);
    snprintf(t->log, sizeof t->log, "%s/made/sessions/s.messages.jsonl", t->dir);
    for (int i = 0; i < UNITS; i++, seq += 3) {
        struct stat st;

        assert_int_equal(stat(t->log, &st), 0);
        t->last = (size_t)st.st_size;
        add_unit(s, 0, seq, &epoch, 3);
    }
    store_close(s);
    t->bytes = read_whole(t->log, &t->len);
}

static void drop(struct torn *t)
{
    free(t->bytes);
    dir_remove(t->dir);
}

/* A store with nothing but this log: caches and leases went with the power. */
static void begin_with(struct torn *t, const char *bytes, size_t len, char url[300], char dir[300])
{
    char path[400];

    snprintf(dir, 300, "%s/cut", t->dir);
    dir_remove(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/sessions", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/sessions/s.messages.jsonl", dir);
    write_whole(path, bytes, len);
    snprintf(url, 300, "files:%s", dir);
}

static int count(void *arg, const struct event *ev)
{
    (void)ev;
    ++*(int64_t *)arg;
    return 0;
}

struct told {
    int n;
};

static void hear(void *arg, const char *line)
{
    ((struct told *)arg)->n += strstr(line, "kept as sessions/s.torn-1") != NULL;
}

/* Opened, read, written to: all but the last unit is there, and what was left of that stands beside. */
static void check_cut(struct torn *t, const char *bytes, size_t len)
{
    int64_t epoch = 0, n = 0, want = 1 + 3 * (UNITS - 1);
    char url[300], dir[300], path[400], *aside;
    struct told told = {0};
    struct store *s;
    struct head h;
    size_t got;

    begin_with(t, bytes, len, url, dir);
    s = open_store(url);
    OK(store_head(s, STR("s"), &h, &err));
    assert_int_equal(h.last_seq, want);
    OK(store_read(s, &h, 0, 0, count, &n, &err));
    assert_int_equal(n, want);
    add_unit(s, BATCH_ACQUIRE | BATCH_RELEASE, want, &epoch, 2);
    OK(store_head(s, STR("s"), &h, &err));
    assert_int_equal(h.last_seq, want + 2);
    tide_store_read_notices((tide_store *)(void *)s, hear, &told);
    assert_int_equal(told.n, len > t->last);
    tide_store_read_notices((tide_store *)(void *)s, hear, &told);
    assert_int_equal(told.n, len > t->last); /* once */
    store_close(s);
    snprintf(path, sizeof path, "%s/sessions/s.torn-1", dir);
    if (len == t->last) {
        assert_int_not_equal(access(path, F_OK), 0);
        return;
    }
    aside = read_whole(path, &got);
    assert_int_equal(got, len - t->last);
    assert_memory_equal(aside, bytes + t->last, got);
    free(aside);
}

static void a_write_that_was_cut_anywhere_is_cut_off_whole(void **state)
{
    struct torn t;

    (void)state;
    make_log(&t);
    for (size_t len = t.last; len < t.len; len += len < t.last + 200 || len > t.len - 200 ? 1 : 13)
        check_cut(&t, t.bytes, len);
    drop(&t);
}

static void zeros_at_its_end_are_no_events(void **state)
{
    struct torn t;

    (void)state;
    make_log(&t);
    for (size_t from = t.last; from < t.len; from += 97) {
        char *bytes = mem_dup((struct str){t.bytes, t.len});

        memset(bytes + from, 0, t.len - from);
        check_cut(&t, bytes, t.len);
        free(bytes);
    }
    drop(&t);
}

/* Sectors reach the disk in any order: some of the last write's are there, others are as they were, zeros. */
static void sectors_in_any_mixture_are_cut_off_whole(void **state)
{
    struct rng r = {4711};
    struct torn t;

    (void)state;
    make_log(&t);
    for (int round = 0; round < 60; round++) {
        char *bytes = mem_dup((struct str){t.bytes, t.len});
        bool any = false;

        for (size_t at = t.last / 512 * 512; at < t.len; at += 512) {
            size_t from = at < t.last ? t.last : at, to = at + 512 < t.len ? at + 512 : t.len;

            if (!rng_below(&r, 2))
                continue;
            memset(bytes + from, 0, to - from);
            any = true;
        }
        if (any)
            check_cut(&t, bytes, t.len);
        free(bytes);
    }
    drop(&t);
}

/* Behind it stands something that was written later: it was whole once. */
static void damage_in_the_middle_is_named_and_what_stands_before_it_can_be_read(void **state)
{
    struct torn t;

    (void)state;
    make_log(&t);
    for (size_t at = 1200; at < t.last - 1; at += 331) {
        char *bytes = mem_dup((struct str){t.bytes, t.len}), url[300], dir[300];
        struct tide_err err = {0};
        int64_t n = 0;
        struct store *s;
        struct head h;
        enum tide_code code;

        bytes[at] ^= 1;
        begin_with(&t, bytes, t.len, url, dir);
        s = open_store(url);
        code = store_head(s, STR("s"), &h, &err);
        if (!code)
            code = store_read(s, &h, 0, 0, count, &n, &err);
        assert_int_equal(code, TIDE_CORRUPT);
        assert_non_null(strstr(err.msg, "is damaged"));
        assert_in_range(n, 1, 3 * UNITS);
        store_close(s);
        free(bytes);
    }
    drop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_was_cut_anywhere_is_cut_off_whole),
        cmocka_unit_test(zeros_at_its_end_are_no_events),
        cmocka_unit_test(sectors_in_any_mixture_are_cut_off_whole),
        cmocka_unit_test(damage_in_the_middle_is_named_and_what_stands_before_it_can_be_read),
    };

    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
