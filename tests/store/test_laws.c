/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of src/store/store.h, one test each, for the backend that TIDEMARK_TEST_STORE names: a new one is a row of
 * tests/store_kind.h. Nothing here looks behind the interface. The laws of the live: test_live.c.
 */
#include "laws.h"

/* ---- The laws ------------------------------------------------------------------------------------------------ */

static void append_is_whole_or_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 3);

    OK(append(f->store, "a", 3, epoch, 5, &err));
    GIVES(TIDE_CONFLICT, append(f->store, "a", 3, epoch, 5, &err));
    GIVES(TIDE_FENCED, append(f->store, "a", 8, epoch + 1, 5, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 8);
    assert_int_equal(head_of(second(f), "a").last_seq, 8);
}

static void conflict_names_where_the_log_is(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 2);

    SAYS(TIDE_CONFLICT, "seq 2", append(f->store, "a", 1, epoch, 1, &err));
    GIVES(TIDE_CONFLICT, append(f->store, "a", 3, epoch, 1, &err));
    OK(append(f->store, "a", STORE_ANY_SEQ, epoch, 1, &err));
    OK(append(f->store, "a", 3, epoch, 1, &err));
}

static void an_unknown_session_is_not_found(void **state)
{
    struct fixture *f = *state;
    struct head h;

    GIVES(TIDE_NOT_FOUND, append(f->store, "nobody", 0, 0, 1, &err));
    SAYS(TIDE_NOT_FOUND, "nobody", store_head(f->store, STR("nobody"), &h, &err));
    GIVES(TIDE_INVALID, store_head(f->store, STR("../x"), &h, &err));
    GIVES(TIDE_INVALID, store_head(f->store,
                                   str_from("a23456789012345678901234567890123456789012345678901234567890123"
                                            "45"),
                                   &h, &err));
}

static void held_names_the_holder(void **state)
{
    struct fixture *f = *state;
    struct write take = {.id = "a", .flags = BATCH_ACQUIRE, .n = 1, .expect = STORE_ANY_SEQ};
    char pid[32];

    snprintf(pid, sizeof pid, "process %d", (int)getpid());
    create(f->store, "a", 1);
    SAYS(TIDE_HELD, pid, write_to(second(f), &take, NULL, &err));
    SAYS(TIDE_HELD, "this process", write_to(f->store, &take, NULL, &err));
    assert_int_equal(head_of(f->store, "a").last_seq, 1);
    assert_true(head_of(second(f), "a").held);
    assert_true(head_of(second(f), "a").holder_alive);
}

static void a_lease_given_back_can_be_taken_and_fences_the_old(void **state)
{
    struct fixture *f = *state;
    struct batch_result r;
    int64_t epoch = create(f->store, "a", 1);

    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_RELEASE, .epoch = epoch, .expect = 1}, NULL, &err));
    assert_false(head_of(second(f), "a").held);
    GIVES(TIDE_FENCED, append(f->store, "a", 1, epoch, 1, &err));
    OK(write_to(second(f), &(struct write){.id = "a", .flags = BATCH_ACQUIRE, .n = 1, .expect = 1}, &r, &err));
    assert_true(r.epoch > epoch);
    SAYS(TIDE_FENCED, "epoch", append(f->store, "a", STORE_ANY_SEQ, epoch, 1, &err));
    GIVES(TIDE_FENCED,
          append(f->store, "a", STORE_ANY_SEQ, r.epoch, 1, &err)); /* the right number, the wrong process */
    OK(append(second(f), "a", 2, r.epoch, 1, &err));
    assert_int_equal(head_of(f->store, "a").last_seq, 3);
}

static void inputs_need_no_lease_but_the_right_seq(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 2);
    struct write in = {.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 2};

    OK(write_to(second(f), &in, NULL, &err));
    GIVES(TIDE_CONFLICT, write_to(second(f), &in, NULL, &err));
    in.expect = STORE_ANY_SEQ;
    OK(write_to(second(f), &in, NULL, &err));
    GIVES(TIDE_CONFLICT, append(f->store, "a", 2, epoch, 1, &err)); /* the holder hears of it, and still holds */
    OK(append(f->store, "a", 4, epoch, 1, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 5);
}

static void one_refusal_does_not_fail_its_group(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    const struct write list[] = {
        {.id = "b", .flags = BATCH_CREATE | BATCH_ACQUIRE, .n = 2, .expect = STORE_ANY_SEQ},
        {.id = "a", .expect = 7, .epoch = epoch, .n = 1},
        {.id = "a", .expect = 1, .epoch = epoch, .n = 3},
        {.id = "a", .expect = 4, .epoch = 99, .n = 1},
        {.id = "nobody", .expect = 1, .n = 1},
        {.id = "b", .flags = BATCH_CREATE | BATCH_ACQUIRE, .n = 2, .expect = STORE_ANY_SEQ},
        {.id = "c",
         .flags = BATCH_CREATE | BATCH_ACQUIRE,
         .n = 1,
         .expect = STORE_ANY_SEQ,
         .parent = "x",
         .parent_seq = 1},
        {.id = "nobody", .flags = BATCH_DELETE},
        {.id = "a", .expect = 4, .epoch = epoch, .n = 1},
    };
    const enum tide_code want[] = {TIDE_OK,     TIDE_CONFLICT,  TIDE_OK,        TIDE_FENCED, TIDE_NOT_FOUND,
                                   TIDE_EXISTS, TIDE_NOT_FOUND, TIDE_NOT_FOUND, TIDE_OK};
    struct batch *batches[9];

    for (int i = 0; i < 9; i++) {
        batches[i] = batch_of(&list[i]);
        group_submit(f->store->group, batches[i], false);
    }
    for (int i = 0; i < 9; i++) {
        group_wait(f->store->group, batches[i]);
        expect_code(want[i], batches[i]->code, &batches[i]->err, list[i].id, __FILE__, __LINE__);
        batch_free(batches[i]);
    }
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 5);
    assert_int_equal(read_all_of(second(f), "b", 0, 0).n, 2);
    GIVES(TIDE_NOT_FOUND, store_head(f->store, STR("c"), &(struct head){0}, &err));
}

static void queue(struct fixture *f, struct group_owner *o, const char *id, int64_t expect, size_t n, int *user)
{
    struct batch *b = batch_of(&(struct write){.id = id, .expect = expect, .n = n});

    b->owner = o;
    b->user = user;
    group_submit(f->store->group, b, true);
}

static void a_failed_append_fails_those_behind_it_in_its_session_only(void **state)
{
    struct fixture *f = *state;
    struct group_owner a = {.epoch = create(f->store, "a", 1)}, b = {.epoch = create(f->store, "b", 1)};
    struct tide_completion done[8];
    int tags[6] = {0};
    size_t got = 0;

    queue(f, &a, "a", 1, 1, &tags[0]);
    queue(f, &a, "a", 9, 1, &tags[1]); /* conflict */
    queue(f, &b, "b", 1, 1, &tags[2]);
    queue(f, &a, "a", 2, 1, &tags[3]); /* would fit, but stands behind it */
    queue(f, &b, "b", 2, 2, &tags[4]);
    while (got < 5)
        got += tide_store_reap((tide_store *)(void *)f->store, done + got, 8 - got, -1);
    for (size_t i = 0; i < 5; i++) {
        int which = (int)((int *)done[i].user - tags);

        expect_code(which == 1 || which == 3 ? TIDE_CONFLICT : TIDE_OK, done[i].code, NULL, "reap", __FILE__, __LINE__);
        assert_int_equal(tags[which]++, 0); /* each once */
        if (which == 4)
            assert_int_equal(done[i].seq, 4);
    }
    GIVES(TIDE_CONFLICT, group_flush(f->store->group, &a, &err));
    OK(group_flush(f->store->group, &b, &err));
    queue(f, &a, "a", 2, 1, NULL); /* after the flush it may go on */
    OK(group_flush(f->store->group, &a, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 3);
    assert_int_equal(read_all_of(f->store, "b", 0, 0).n, 4);
}

struct positions {
    int64_t last, n;
};

static int rising(void *arg, const struct event *ev)
{
    struct positions *p = arg;

    assert_true(ev->pos > p->last);
    p->last = ev->pos;
    p->n++;
    return 0;
}

static int64_t last_position(struct store *s, int64_t *ret_n)
{
    struct positions p = {0, 0};
    struct head h;

    OK(s->ops->read_all(s, 0, 0, &h, rising, &p, &err));
    if (ret_n)
        *ret_n = p.n;
    return p.last;
}

static void positions_rise_and_are_never_used_again(void **state)
{
    struct fixture *f = *state;
    int64_t before, n;

    SQLITE_ONLY("no position over all sessions: a stream over them is refused by name");
    create_free(f->store, "a", 5);
    create_free(f->store, "b", 5);
    before = last_position(f->store, &n);
    assert_int_equal(n, 10);
    OK(write_to(f->store, &(struct write){.id = "b", .flags = BATCH_DELETE}, NULL, &err));
    store_close(f->store);
    f->store = open_one(f);
    create_free(f->store, "c", 1);
    assert_true(head_of(f->store, "c").last_pos > before);
    assert_true(last_position(f->store, &n) > before);
    assert_int_equal(n, 6);
}

static void without_positions_a_stream_over_all_sessions_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct positions p = {0, 0};
    struct head h;

    create_free(f->store, "a", 5);
    if (store_kind()->positions)
        OK(f->store->ops->read_all(f->store, 0, 0, &h, rising, &p, &err));
    else
        SAYS(TIDE_INVALID, "all sessions", f->store->ops->read_all(f->store, 0, 0, &h, rising, &p, &err));
    assert_int_equal(p.n, store_kind()->positions ? 5 : 0);
}

static void seq_has_no_gap_and_no_repeat(void **state)
{
    struct fixture *f = *state;
    int64_t ea = create(f->store, "a", 1), eb = create(f->store, "b", 1), na = 1, nb = 1;
    struct rng r = {7};

    for (int i = 0; i < 60; i++) { /* interleaved, in batches, across several blocks of any index */
        size_t n = (size_t)rng_between(&r, 1, 9);

        if (rng_below(&r, 2)) {
            OK(append(f->store, "a", na, ea, n, &err));
            na += (int64_t)n;
        } else {
            OK(append(f->store, "b", nb, eb, n, &err));
            nb += (int64_t)n;
        }
    }
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, na);
    assert_int_equal(read_all_of(second(f), "b", 0, 0).n, nb);
    assert_int_equal(read_all_of(second(f), "a", 0, 0).last, na);
}

static int stop_at_5(void *arg, const struct event *ev)
{
    ++*(int64_t *)arg;
    return ev->seq == 5;
}

static void read_gives_the_range_in_order(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 150), n = 0, last = 150;
    struct head h;

    for (; last < 900; last += 150) /* across several blocks of any index */
        OK(append(f->store, "a", last, epoch, 150, &err));
    for (int64_t from = 1; from <= last; from += 97) {
        for (int64_t to = from; to <= last; to += 113) {
            struct seen seen = read_all_of(second(f), "a", from, to);

            assert_int_equal(seen.first, from);
            assert_int_equal(seen.last, to);
        }
    }
    assert_int_equal(read_all_of(f->store, "a", last, 0).n, 1);
    assert_int_equal(read_all_of(f->store, "a", last + 1, 0).n, 0);
    assert_int_equal(read_all_of(f->store, "a", 0, 10000).n, last);
    h = head_of(f->store, "a");
    OK(store_read(f->store, &h, 1, 0, stop_at_5, &n, &err));
    assert_int_equal(n, 5);
}

/* What lists show, newest first. */
struct ids {
    char text[300];
};

static int collect(void *arg, const struct store_entry *entry)
{
    struct ids *ids = arg;
    size_t n = strlen(ids->text);

    snprintf(ids->text + n, sizeof ids->text - n, "%s%s%s%.*s", n ? " " : "", entry->head->id,
             entry->summary.len ? "=" : "", STR_ARG(entry->summary));
    return 0;
}

static void list_is_newest_first(void **state)
{
    struct fixture *f = *state;
    struct ids all = {""}, forks = {""};
    struct head h;

    create_free(f->store, "a", 1);
    create(f->store, "b", 1);
    OK(write_to(f->store,
                &(struct write){.id = "c",
                                .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE,
                                .n = 1,
                                .expect = STORE_ANY_SEQ,
                                .parent = "a",
                                .parent_seq = 1},
                NULL, &err));
    OK(second(f)->ops->list(second(f), NULL, collect, &all, &err));
    assert_string_equal(all.text, "c b a");
    h = head_of(f->store, "a");
    OK(f->store->ops->list(f->store, &h, collect, &forks, &err));
    assert_string_equal(forks.text, "c");
}

static void a_summary_is_shown_only_while_it_is_not_behind(void **state)
{
    struct fixture *f = *state;
    struct ids list[3] = {{""}, {""}, {""}};
    int64_t epoch = create(f->store, "a", 1);

    OK(write_to(
        f->store,
        &(struct write){
            .id = "a", .flags = BATCH_RELEASE, .n = 1, .expect = 1, .epoch = epoch, .summary = "S", .caches_seq = 2},
        NULL, &err));
    OK(f->store->ops->list(f->store, NULL, collect, &list[0], &err));
    assert_string_equal(list[0].text, "a=S");
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 2}, NULL, &err));
    OK(f->store->ops->list(f->store, NULL, collect, &list[1], &err));
    assert_string_equal(list[1].text, "a");
    OK(write_to(f->store, /* for another seq than where it lands: dropped */
                &(struct write){.id = "a",
                                .flags = BATCH_ACQUIRE | BATCH_RELEASE,
                                .n = 1,
                                .expect = STORE_ANY_SEQ,
                                .summary = "T",
                                .caches_seq = 3},
                NULL, &err));
    OK(f->store->ops->list(f->store, NULL, collect, &list[2], &err));
    assert_string_equal(list[2].text, "a");
}

static void resolve_finds_by_prefix(void **state)
{
    struct fixture *f = *state;
    char ids[4][TIDE_ID_SIZE];
    size_t n;

    create_free(f->store, "ab", 1);
    create_free(f->store, "abc", 1);
    create_free(f->store, "abd", 1);
    create_free(f->store, "zz", 1);
    OK(f->store->ops->resolve(f->store, STR("ab"), ids, 4, &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(ids[0], "ab");
    OK(f->store->ops->resolve(f->store, STR("ab"), ids, 2, &n, &err));
    assert_int_equal(n, 2);
    OK(f->store->ops->resolve(f->store, STR("z"), ids, 4, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(ids[0], "zz");
    OK(f->store->ops->resolve(f->store, STR("y"), ids, 4, &n, &err));
    assert_int_equal(n, 0);
    OK(f->store->ops->resolve(f->store, STR("zzz"), ids, 4, &n, &err));
    assert_int_equal(n, 0);
}

static void delete_takes_the_whole_session(void **state)
{
    struct fixture *f = *state;
    struct ids list = {""};
    int64_t n;

    create_free(f->store, "a", 3);
    create_free(f->store, "b", 3);
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    GIVES(TIDE_NOT_FOUND, store_head(second(f), STR("a"), &(struct head){0}, &err));
    SAYS(TIDE_NOT_FOUND, "'a'", write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    GIVES(TIDE_NOT_FOUND, append(f->store, "a", 3, 1, 1, &err));
    OK(f->store->ops->list(f->store, NULL, collect, &list, &err));
    assert_string_equal(list.text, "b");
    if (store_kind()->positions) {
        last_position(f->store, &n);
        assert_int_equal(n, 3);
    }
}

static void an_id_can_be_used_again_after_its_session_was_deleted(void **state)
{
    struct fixture *f = *state;
    int64_t epoch;

    for (int round = 0; round < 5; round++) { /* by the same handle, which remembers, and by another */
        struct store *s = round == 2 ? second(f) : f->store;

        epoch = create(s, "a", 70);
        OK(append(s, "a", 70, epoch, 3, &err));
        assert_int_equal(read_all_of(s, "a", 0, 0).n, 73);
        assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 73);
        OK(write_to(s, &(struct write){.id = "a", .flags = BATCH_RELEASE, .epoch = epoch, .expect = 73}, NULL, &err));
        OK(write_to(s, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    }
}

static void delete_is_refused_while_held_or_with_forks_and_names_them(void **state)
{
    struct fixture *f = *state;
    struct write fork = {.flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE,
                         .n = 1,
                         .expect = STORE_ANY_SEQ,
                         .parent = "a",
                         .parent_seq = 2};
    const struct write gone = {.id = "a", .flags = BATCH_DELETE};

    create_free(f->store, "a", 3);
    fork.id = "kid1";
    OK(write_to(f->store, &fork, NULL, &err));
    fork.id = "kid2";
    OK(write_to(second(f), &fork, NULL, &err));
    SAYS(TIDE_HAS_FORKS, "kid1, kid2", write_to(f->store, &gone, NULL, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 3);
    OK(write_to(f->store, &(struct write){.id = "kid1", .flags = BATCH_DELETE}, NULL, &err));
    OK(write_to(f->store, &(struct write){.id = "kid2", .flags = BATCH_DELETE}, NULL, &err));
    OK(write_to(f->store, &gone, NULL, &err));
    create(f->store, "b", 1);
    GIVES(TIDE_HELD, write_to(second(f), &(struct write){.id = "b", .flags = BATCH_DELETE}, NULL, &err));
    GIVES(TIDE_HELD, write_to(f->store, &(struct write){.id = "b", .flags = BATCH_DELETE}, NULL, &err));
}

static void a_fork_stands_on_its_parents_event(void **state)
{
    struct fixture *f = *state;
    struct write fork = {.id = "f",
                         .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE,
                         .n = 2,
                         .expect = STORE_ANY_SEQ,
                         .parent = "a",
                         .parent_seq = 4};
    struct head h;

    create_free(f->store, "a", 3);
    SAYS(TIDE_INVALID, "1 to 3", write_to(f->store, &fork, NULL, &err));
    fork.parent_seq = 2;
    OK(write_to(f->store, &fork, NULL, &err));
    h = head_of(second(f), "f");
    assert_int_equal(h.first_seq, 3);
    assert_int_equal(h.last_seq, 4);
    assert_int_equal(h.parent_seq, 2);
    assert_string_equal(h.parent_id, "a");
    assert_int_equal(read_all_of(f->store, "f", 0, 0).first, 3);
    fork.id = "g";
    fork.parent = "f";
    GIVES(TIDE_INVALID, write_to(f->store, &fork, NULL, &err)); /* 2 is the parent's own, not f's */
}

static void a_hidden_session_is_nowhere_until_it_is_revealed(void **state)
{
    struct fixture *f = *state;
    struct ids before = {""}, after = {""};
    struct batch_result r;
    char ids[1][TIDE_ID_SIZE];
    size_t n;

    OK(write_to(f->store,
                &(struct write){.id = "h",
                                .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_HIDDEN | BATCH_KEEP,
                                .n = 2,
                                .expect = STORE_ANY_SEQ},
                &r, &err));
    GIVES(TIDE_NOT_FOUND, store_head(f->store, STR("h"), &(struct head){0}, &err));
    OK(f->store->ops->list(f->store, NULL, collect, &before, &err));
    assert_string_equal(before.text, "");
    OK(f->store->ops->resolve(f->store, STR("h"), ids, 1, &n, &err));
    assert_int_equal(n, 0);
    GIVES(TIDE_EXISTS,
          write_to(second(f),
                   &(struct write){.id = "h", .flags = BATCH_CREATE | BATCH_ACQUIRE, .n = 1, .expect = STORE_ANY_SEQ},
                   NULL, &err));
    GIVES(TIDE_NOT_FOUND, write_to(f->store, &(struct write){.id = "h", .flags = BATCH_DELETE}, NULL, &err));
    OK(write_to(
        f->store,
        &(struct write){
            .id = "h", .flags = BATCH_KEEP | BATCH_REVEAL | BATCH_RELEASE, .n = 1, .expect = 2, .epoch = r.epoch},
        NULL, &err));
    OK(second(f)->ops->list(second(f), NULL, collect, &after, &err));
    assert_string_equal(after.text, "h");
    assert_int_equal(read_all_of(second(f), "h", 0, 0).n, 3);
}

/* ---- Caches and big values ----------------------------------------------------------------------------------- */

static int64_t snapshot_of(struct store *s, const char *id, int64_t to, char text[64])
{
    struct buf data = BUF_INIT(1000);
    struct head h = head_of(s, id);
    int64_t seq = -1;

    OK(s->ops->snapshot(s, &h, to, &data, &seq, &err));
    snprintf(text, 64, "%.*s", STR_ARG(buf_view(&data)));
    buf_done(&data);
    return seq;
}

static void a_snapshot_is_never_ahead_of_the_log_or_of_another_history(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    char text[64];

    OK(write_to(f->store,
                &(struct write){.id = "a", .expect = 1, .epoch = epoch, .n = 2, .snapshot = "at 3", .caches_seq = 3},
                NULL, &err));
    OK(write_to(f->store, /* the caller thought it would land elsewhere */
                &(struct write){.id = "a", .expect = -1, .epoch = epoch, .n = 2, .snapshot = "bad", .caches_seq = 4},
                NULL, &err));
    GIVES(TIDE_CONFLICT,
          write_to(f->store,
                   &(struct write){.id = "a", .expect = 3, .epoch = epoch, .n = 3, .snapshot = "lost", .caches_seq = 6},
                   NULL, &err));
    assert_int_equal(snapshot_of(second(f), "a", 100, text), 3);
    assert_string_equal(text, "at 3");
    assert_int_equal(snapshot_of(second(f), "a", 2, text), 0);
    OK(write_to(f->store,
                &(struct write){.id = "a",
                                .expect = 5,
                                .epoch = epoch,
                                .n = 1,
                                .flags = BATCH_RELEASE,
                                .snapshot = "at 6",
                                .caches_seq = 6},
                NULL, &err));
    assert_int_equal(snapshot_of(second(f), "a", 6, text), 6);
    assert_int_equal(snapshot_of(second(f), "a", 5, text), 3);
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    create_free(f->store, "a", 9);
    assert_int_equal(snapshot_of(f->store, "a", 9, text), 0);
}

struct marks {
    char text[200];
};

static int note_mark(void *arg, const struct event *ev)
{
    struct marks *m = arg;
    size_t n = strlen(m->text);

    snprintf(m->text + n, sizeof m->text - n, "%d ", (int)ev->seq);
    return 0;
}

static void checkpoints_come_newest_first(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1), made = 0;
    struct marks all = {""}, some = {""}, deleted = {""};
    struct head h;

    for (int i = 1; i < 10; i++)
        OK(write_to(f->store,
                    &(struct write){.id = "a",
                                    .expect = i,
                                    .epoch = epoch,
                                    .n = 1,
                                    .kind = i % 3 == 0   ? "checkpoint"
                                            : i % 5 == 0 ? "checkpoint.deleted"
                                                         : "checkpoints"},
                    NULL, &err));
    h = head_of(second(f), "a");
    OK(f->other->ops->checkpoints(f->other, &h, false, h.last_seq, note_mark, &all, NULL, &err));
    OK(f->other->ops->checkpoints(f->other, &h, false, 8, note_mark, &some, NULL, &err));
    OK(f->other->ops->checkpoints(f->other, &h, true, h.last_seq, note_mark, &deleted, NULL, &err));
    OK(f->other->ops->checkpoints(f->other, &h, false, h.last_seq, NULL, NULL, &made, &err));
    assert_string_equal(all.text, "10 7 4 ");
    assert_string_equal(some.text, "7 4 ");
    assert_string_equal(deleted.text, "6 ");
    assert_int_equal(made, 3);
}

static char *big_body(size_t bytes, char fill)
{
    char *body = mem_alloc(bytes + 64);
    int n = snprintf(body, 64, "{\"small\":1,\"big\":\"");

    memset(body + n, fill, bytes);
    memcpy(body + (size_t)n + bytes, "\",\"z\":[]}", 10);
    return body;
}

struct compare {
    const char *want;
    int64_t n;
};

static int same_body(void *arg, const struct event *ev)
{
    struct compare *c = arg;

    c->n += str_eq(ev->body, str_from(c->want));
    return 0;
}

static void big_values_come_back_byte_for_byte(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    static const size_t sizes[] = {1000, 65520, 65536, 65537, 1 << 20, 12 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *body = big_body(sizes[i], (char)('a' + i));
        struct compare c = {body, 0};
        struct head h;

        OK(write_to(f->store,
                    &(struct write){.id = "a", .expect = 1 + (int64_t)i, .epoch = epoch, .n = 1, .body = body}, NULL,
                    &err));
        h = head_of(second(f), "a");
        OK(store_read(f->other, &h, h.last_seq, 0, same_body, &c, &err));
        assert_int_equal(c.n, 1);
        free(body);
    }
}

static int64_t info_int(struct store *s, const char *key)
{
    struct arena a = ARENA_INIT;
    struct buf out = BUF_INIT(10000);
    struct json *v;
    int64_t n;

    OK(s->ops->info(s, &out, &err));
    OK(json_parse(&a, buf_view(&out), NULL, &v, NULL, &err));
    n = json_get_int(v, str_from(key), -1);
    arena_done(&a);
    buf_done(&out);
    return n;
}

static void equal_big_values_are_stored_once_and_swept_with_the_last_reference(void **state)
{
    struct fixture *f = *state;
    char *one, *two;
    struct compare c = {NULL, 0};
    struct head h;

    SQLITE_ONLY("every event is whole in its line: no values by content");
    c.want = one = big_body(100000, 'x');
    two = big_body(100000, 'y');
    for (int i = 0; i < 3; i++)
        OK(write_to(f->store,
                    &(struct write){.id = i == 0   ? "a"
                                          : i == 1 ? "b"
                                                   : "c",
                                    .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE,
                                    .n = 2,
                                    .expect = STORE_ANY_SEQ,
                                    .body = i == 2 ? two : one},
                    NULL, &err));
    assert_int_equal(info_int(f->store, "big_values"), 2);
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    OK(write_to(f->store, &(struct write){.id = "c", .flags = BATCH_DELETE}, NULL, &err));
    assert_int_equal(info_int(f->store, "big_values"), 1);
    h = head_of(second(f), "b");
    OK(store_read(f->other, &h, 0, 0, same_body, &c, &err));
    assert_int_equal(c.n, 2);
    OK(write_to(f->store, &(struct write){.id = "b", .flags = BATCH_DELETE}, NULL, &err));
    assert_int_equal(info_int(f->store, "big_values"), 0);
    free(one);
    free(two);
}

static void what_was_stored_can_be_read_under_a_smaller_limit(void **state)
{
    struct fixture *f = *state;
    char *body = big_body(3 << 20, 'q');
    struct compare c = {body, 0};
    struct head h;

    OK(write_to(f->store,
                &(struct write){.id = "a",
                                .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE,
                                .n = 1,
                                .expect = STORE_ANY_SEQ,
                                .body = body},
                NULL, &err));
    f->opt.max_record_bytes = 1000;
    h = head_of(second(f), "a");
    OK(store_read(f->other, &h, 0, 0, same_body, &c, &err));
    assert_int_equal(c.n, 1);
    free(body);
}

/* ---- Looking after it ---------------------------------------------------------------------------------------- */

static void rebuild_and_compact_change_no_answer(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 130);
    char text[64];

    OK(write_to(f->store,
                &(struct write){.id = "a", .expect = 130, .epoch = epoch, .n = 1, .snapshot = "S", .caches_seq = 131},
                NULL, &err));
    OK(group_alone(f->store->group, f->store->ops->rebuild, &err));
    assert_int_equal(snapshot_of(f->store, "a", 131, text), 0);
    OK(group_alone(f->store->group, f->store->ops->compact, &err));
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 131);
    OK(append(f->store, "a", 131, epoch, 100, &err));
    assert_int_equal(read_all_of(second(f), "a", 60, 140).n, 81);
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 231);
}

static void change_changes_when_anyone_commits(void **state)
{
    struct fixture *f = *state;
    int64_t v[4];

    OK(f->store->ops->change(f->store, &v[0], &err));
    OK(f->store->ops->change(f->store, &v[1], &err));
    assert_int_equal(v[0], v[1]);
    create_free(second(f), "a", 1);
    OK(f->store->ops->change(f->store, &v[2], &err));
    assert_int_not_equal(v[1], v[2]);
    create_free(f->store, "b", 1);
    OK(f->store->ops->change(f->store, &v[3], &err));
    assert_int_not_equal(v[2], v[3]);
}

static int reject(void *arg, const struct event *ev)
{
    struct fixture *f = arg;

    if (ev->seq == 70) /* no transaction is open while the callback runs: writing from it works */
        create_free(f->store, "from-inside", 1);
    return 0;
}

static void a_reader_may_write_while_it_reads(void **state)
{
    struct fixture *f = *state;
    struct head h;

    create_free(f->store, "a", 200);
    h = head_of(f->store, "a");
    OK(store_read(f->store, &h, 0, 0, reject, f, &err));
    assert_int_equal(head_of(f->store, "from-inside").last_seq, 1);
}

/* Long enough that no backend reads it in one piece. */
static void create_long(struct store *s, const char *id)
{
    int64_t epoch = create(s, id, 200);

    for (int64_t n = 200; n < 1200; n += 200)
        OK(append(s, id, n, epoch, 200, &err));
    OK(write_to(s, &(struct write){.id = id, .flags = BATCH_RELEASE, .epoch = epoch, .expect = 1200}, NULL, &err));
}

struct deleting {
    struct fixture *f;
    bool again;
    int64_t created_ms;
};

static int delete_it(void *arg, const struct event *ev)
{
    struct deleting *d = arg;

    if (ev->seq != 1)
        return 0;
    OK(write_to(second(d->f), &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    if (d->again) {
        while (env_now_ms(env_real()) <= d->created_ms)
            ;
        create_long(second(d->f), "a");
    }
    return 0;
}

static void a_session_deleted_under_a_reader_is_gone_not_damaged(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 2; i++) {
        struct deleting d = {f, i == 1, 0};
        struct head h;

        create_long(f->store, "a");
        h = head_of(f->store, "a");
        d.created_ms = h.created_ms;
        GIVES(TIDE_NOT_FOUND, store_read(f->store, &h, 0, 0, delete_it, &d, &err));
    }
}

static void a_read_only_store_refuses_to_write(void **state)
{
    struct fixture *f = *state;

    create_free(f->store, "a", 2);
    f->opt.flags = TIDE_OPEN_READ_ONLY;
    GIVES(TIDE_READ_ONLY, write_to(second(f), &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 2);
}

static void a_full_queue_makes_callers_wait_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    struct group_owner o = {0};

    store_close(f->store);
    f->opt.queue_max = 4;
    f->store = open_one(f);
    o.epoch = create(f->store, "a", 1);
    for (int i = 0; i < 300; i++)
        queue(f, &o, "a", 1 + i, 1, NULL);
    OK(group_flush(f->store->group, &o, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 301);
}

static int run_laws(void)
{
    const struct CMUnitTest laws[] = {
        LAW(append_is_whole_or_nothing),
        LAW(conflict_names_where_the_log_is),
        LAW(an_unknown_session_is_not_found),
        LAW(held_names_the_holder),
        LAW(a_lease_given_back_can_be_taken_and_fences_the_old),
        LAW(inputs_need_no_lease_but_the_right_seq),
        LAW(one_refusal_does_not_fail_its_group),
        LAW(a_failed_append_fails_those_behind_it_in_its_session_only),
        LAW(positions_rise_and_are_never_used_again),
        LAW(without_positions_a_stream_over_all_sessions_is_refused_by_name),
        LAW(seq_has_no_gap_and_no_repeat),
        LAW(read_gives_the_range_in_order),
        LAW(list_is_newest_first),
        LAW(a_summary_is_shown_only_while_it_is_not_behind),
        LAW(resolve_finds_by_prefix),
        LAW(delete_takes_the_whole_session),
        LAW(an_id_can_be_used_again_after_its_session_was_deleted),
        LAW(delete_is_refused_while_held_or_with_forks_and_names_them),
        LAW(a_fork_stands_on_its_parents_event),
        LAW(a_hidden_session_is_nowhere_until_it_is_revealed),
        LAW(a_snapshot_is_never_ahead_of_the_log_or_of_another_history),
        LAW(checkpoints_come_newest_first),
        LAW(big_values_come_back_byte_for_byte),
        LAW(equal_big_values_are_stored_once_and_swept_with_the_last_reference),
        LAW(what_was_stored_can_be_read_under_a_smaller_limit),
        LAW(rebuild_and_compact_change_no_answer),
        LAW(change_changes_when_anyone_commits),
        LAW(a_reader_may_write_while_it_reads),
        LAW(a_session_deleted_under_a_reader_is_gone_not_damaged),
        LAW(a_read_only_store_refuses_to_write),
        LAW(a_full_queue_makes_callers_wait_and_loses_nothing),
    };

    return cmocka_run_group_tests_name(store_kind()->name, laws, NULL, NULL);
}

int main(void)
{
    return run_for_backend(run_laws);
}
