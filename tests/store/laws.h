/* SPDX-License-Identifier: Apache-2.0 */
/* For the suite of laws: a fresh store, writing to it and reading it with few words. */
#ifndef TESTS_STORE_LAWS_H
#define TESTS_STORE_LAWS_H

#include "kit.h"

#include "store/group.h"

/* ---- A store ------------------------------------------------------------------------------------------------- */

struct fixture {
    char dir[256], url[300];
    struct store *store, *other; /* two handles on the same place, as two processes would have */
    struct tide_store_options opt;
};

UNUSED static struct store *open_one(struct fixture *f)
{
    struct store *s = NULL;

    OK(store_open(f->url, &f->opt, env_real(), &s, &err));
    return s;
}

UNUSED static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->url, sizeof f->url, f->dir, "laws");
    f->opt.size = sizeof f->opt;
    f->opt.flags = TIDE_OPEN_CREATE;
    f->opt.origin_key = TEST_KEY;
    f->opt.origin_key_len = sizeof TEST_KEY;
    f->store = open_one(f);
    *state = f;
    return 0;
}

UNUSED static int tear_down(void **state)
{
    struct fixture *f = *state;

    store_close(f->other);
    store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

UNUSED static struct store *second(struct fixture *f)
{
    if (!f->other)
        f->other = open_one(f);
    return f->other;
}

/* ---- Writing ------------------------------------------------------------------------------------------------- */

struct write {
    const char *id;
    unsigned flags;
    int64_t expect, epoch;
    size_t n;
    const char *body; /* of each event; NULL: {} */
    const char *parent, *snapshot, *summary, *kind;
    int64_t parent_seq, caches_seq, wake;
};

UNUSED static struct batch *batch_of(const struct write *w)
{
    struct event events[200];
    struct batch *b;

    assert_true(w->n <= 200);
    for (size_t i = 0; i < w->n; i++)
        events[i] = (struct event){.kind = str_from(w->kind ? w->kind : "test.event"),
                                   .body = str_from(w->body ? w->body : "{}")};
    b = batch_new(str_from(w->id), w->flags, events, w->n, str_from(w->snapshot), str_from(w->summary));
    b->expect_seq = w->expect;
    b->epoch = w->epoch;
    b->caches_seq = w->caches_seq;
    b->wake_ms = w->wake;
    if (w->parent)
        snprintf(b->parent, sizeof b->parent, "%s", w->parent);
    b->parent_seq = w->parent_seq;
    return b;
}

UNUSED static enum tide_code write_to(struct store *s, const struct write *w, struct batch_result *ret,
                                      struct tide_err *err)
{
    return store_write(s, batch_of(w), ret, err);
}

/* A new session with n events, its lease kept; the epoch. */
UNUSED static int64_t create(struct store *s, const char *id, size_t n)
{
    struct batch_result r = {0};

    OK(write_to(s, &(struct write){.id = id, .flags = BATCH_CREATE | BATCH_ACQUIRE, .n = n, .expect = STORE_ANY_SEQ},
                &r, &err));
    return r.epoch;
}

UNUSED static void create_free(struct store *s, const char *id, size_t n)
{
    OK(write_to(s,
                &(struct write){
                    .id = id, .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE, .n = n, .expect = STORE_ANY_SEQ},
                NULL, &err));
}

UNUSED static enum tide_code append(struct store *s, const char *id, int64_t expect, int64_t epoch, size_t n,
                                    struct tide_err *err)
{
    return write_to(s, &(struct write){.id = id, .expect = expect, .epoch = epoch, .n = n}, NULL, err);
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

UNUSED static struct head head_of(struct store *s, const char *id)
{
    struct head h;

    OK(store_head(s, str_from(id), &h, &err));
    return h;
}

struct seen {
    int64_t n, first, last, last_pos;
    bool ordered;
    struct buf bodies;
};

UNUSED static int see(void *arg, const struct event *ev)
{
    struct seen *seen = arg;

    if (seen->n++ == 0)
        seen->first = ev->seq;
    else
        seen->ordered &= ev->seq == seen->last + 1 && (!store_kind()->positions || ev->pos > seen->last_pos);
    seen->last = ev->seq;
    seen->last_pos = ev->pos;
    buf_add_str(&seen->bodies, ev->body);
    return 0;
}

UNUSED static struct seen read_all_of(struct store *s, const char *id, int64_t from, int64_t to)
{
    struct seen seen = {.ordered = true, .bodies = BUF_INIT(SIZE_MAX / 4)};
    struct head h = head_of(s, id);

    OK(store_read(s, &h, from, to, see, &seen, &err));
    buf_done(&seen.bodies);
    assert_true(seen.ordered);
    return seen;
}

struct ids {
    char text[300];
};

UNUSED static int collect(void *arg, const struct store_entry *entry)
{
    struct ids *ids = arg;
    size_t n = strlen(ids->text);

    snprintf(ids->text + n, sizeof ids->text - n, "%s%s%s%.*s", n ? " " : "", entry->head->id,
             entry->summary.len ? "=" : "", STR_ARG(entry->summary));
    return 0;
}

struct positions {
    int64_t last, n;
};

UNUSED static int rising(void *arg, const struct event *ev)
{
    struct positions *p = arg;

    assert_true(ev->pos > p->last);
    p->last = ev->pos;
    p->n++;
    return 0;
}

UNUSED static int64_t last_position(struct store *s, int64_t *ret_n)
{
    struct positions p = {0, 0};
    struct head h;

    OK(store_read_all(s, 0, 0, &h, rising, &p, &err));
    if (ret_n)
        *ret_n = p.n;
    return p.last;
}

/* ---- Running ------------------------------------------------------------------------------------------------- */

#define LAW(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* For the backend that TIDEMARK_TEST_STORE names; the exit status. */
UNUSED static int run_for_backend(int (*run)(void))
{
    return sodium_init() < 0 || run() != 0;
}

#endif
