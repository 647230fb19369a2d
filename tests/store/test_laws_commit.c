/* SPDX-License-Identifier: Apache-2.0 */
/* The laws of writing: what a batch is refused for, what one refusal does to the others, what is created, hidden and deleted. */
#include "laws.h"

static void conflict_names_where_the_log_is(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 2);

    ABOUT_SESSION(TIDE_CONFLICT, "a", append(f->store, "a", 1, epoch, 1, &err));
    GIVES(TIDE_CONFLICT, append(f->store, "a", 3, epoch, 1, &err));
    OK(append(f->store, "a", STORE_ANY_SEQ, epoch, 1, &err));
    OK(append(f->store, "a", 3, epoch, 1, &err));
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
    ABOUT_SESSION(TIDE_FENCED, "a", append(f->store, "a", STORE_ANY_SEQ, epoch, 1, &err));
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
        group_submit(f->store->group, batches[i], GROUP_AWAITED);
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
    group_submit(f->store->group, b, GROUP_SOON);
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

static void delete_takes_the_whole_session(void **state)
{
    struct fixture *f = *state;
    struct ids list = {""};
    int64_t n;

    create_free(f->store, "a", 3);
    create_free(f->store, "b", 3);
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    GIVES(TIDE_NOT_FOUND, store_head(second(f), STR("a"), &(struct head){0}, &err));
    ABOUT_SESSION(TIDE_NOT_FOUND, "a",
                  write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    GIVES(TIDE_NOT_FOUND, append(f->store, "a", 3, 1, 1, &err));
    OK(store_list(f->store, NULL, collect, &list, &err));
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
    ABOUT_SESSION(TIDE_HAS_FORKS, "a", write_to(f->store, &gone, NULL, &err));
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
    ABOUT_SESSION(TIDE_INVALID, "f", write_to(f->store, &fork, NULL, &err));
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
    OK(store_list(f->store, NULL, collect, &before, &err));
    assert_string_equal(before.text, "");
    OK(store_resolve(f->store, STR("h"), ids, 1, &n, &err));
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
    OK(store_list(second(f), NULL, collect, &after, &err));
    assert_string_equal(after.text, "h");
    assert_int_equal(read_all_of(second(f), "h", 0, 0).n, 3);
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
        LAW(conflict_names_where_the_log_is),
        LAW(a_lease_given_back_can_be_taken_and_fences_the_old),
        LAW(inputs_need_no_lease_but_the_right_seq),
        LAW(one_refusal_does_not_fail_its_group),
        LAW(a_failed_append_fails_those_behind_it_in_its_session_only),
        LAW(seq_has_no_gap_and_no_repeat),
        LAW(delete_takes_the_whole_session),
        LAW(an_id_can_be_used_again_after_its_session_was_deleted),
        LAW(delete_is_refused_while_held_or_with_forks_and_names_them),
        LAW(a_fork_stands_on_its_parents_event),
        LAW(a_hidden_session_is_nowhere_until_it_is_revealed),
        LAW(a_read_only_store_refuses_to_write),
        LAW(a_full_queue_makes_callers_wait_and_loses_nothing),
    };

    return cmocka_run_group_tests_name(store_kind()->name, laws, NULL, NULL);
}

int main(void)
{
    return run_for_backend(run_laws);
}
