/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of src/store/store.h about the live sessions, for every backend: who stays among them, who is handed out to
 * recovery and when, and taking a lease by force.
 */
#include <sys/wait.h>

#include "laws.h"

#define NOW 1000000 /* any time: the store compares what it is given */

/* What live() hands out: "id@wake id@wake", in its order. */
struct handed {
    char text[300];
    int64_t next;
    bool held, alive; /* any of them */
    struct store *write_to;
    int n, stop_at;
};

static int hand(void *arg, const struct store_entry *e, int64_t wake_ms)
{
    struct handed *out = arg;
    size_t n = strlen(out->text);

    snprintf(out->text + n, sizeof out->text - n, "%s%s@%lld", n ? " " : "", e->head->id, (long long)wake_ms);
    out->held |= e->head->held;
    out->alive |= e->head->holder_alive;
    if (out->write_to) /* no transaction is open */
        OK(write_to(
            out->write_to,
            &(struct write){.id = e->head->id, .flags = BATCH_ACQUIRE | BATCH_RELEASE, .n = 1, .expect = STORE_ANY_SEQ},
            NULL, &err));
    return ++out->n == out->stop_at;
}

static struct handed live_by(struct store *s, int64_t until)
{
    struct handed out = {.text = ""};

    OK(store_live(s, until, hand, &out, &out.next, &err));
    return out;
}

#define LIVE_IS(store, until, want, want_next)                                                                         \
    do {                                                                                                               \
        struct handed live_ = live_by(store, until);                                                                   \
        assert_string_equal(live_.text, want);                                                                         \
        assert_int_equal(live_.next, want_next);                                                                       \
        assert_false(live_.alive);                                                                                     \
    } while (0)

/* Made and given back in one batch, staying until `wake`. */
static void create_waiting(struct store *s, const char *id, int64_t wake)
{
    OK(write_to(s,
                &(struct write){.id = id,
                                .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE,
                                .n = 2,
                                .expect = STORE_ANY_SEQ,
                                .caches_seq = 2,
                                .wake = wake},
                NULL, &err));
}

/* By a process that dies with the leases of a0, a1, … in its hands, and in the middle of an import. */
static void create_by_the_dead(struct fixture *f, int sessions)
{
    int status = -1;
    pid_t pid;

    store_close(f->store); /* no connection goes through a fork */
    f->store = NULL;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *s = open_one(f);

        for (int i = 0; i < sessions; i++) {
            char id[16];

            snprintf(id, sizeof id, "a%d", i);
            create(s, id, 1);
        }
        OK(write_to(s,
                    &(struct write){.id = "half",
                                    .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_HIDDEN | BATCH_KEEP,
                                    .n = 1,
                                    .expect = STORE_ANY_SEQ},
                    NULL, &err));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    f->store = open_one(f);
}

/* ---- Who stays ------------------------------------------------------------------------------------------------- */

static void a_session_given_back_live_stays_with_its_wake(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    struct write leave = {.id = "a",
                          .flags = BATCH_RELEASE | BATCH_LIVE,
                          .n = 2,
                          .expect = 1,
                          .epoch = epoch,
                          .caches_seq = 3,
                          .wake = NOW + 5};

    LIVE_IS(f->store, NOW + 5, "", 0); /* held by the living */
    OK(write_to(f->store, &leave, NULL, &err));
    create_waiting(f->store, "b", NOW);
    for (int i = 0; i < 3; i++) {
        struct store *s = i == 1 ? second(f) : f->store;
        struct head h = head_of(s, "a");

        LIVE_IS(s, NOW - 1, "", NOW);
        LIVE_IS(s, NOW, "b@1000000", NOW + 5);
        LIVE_IS(s, NOW + 5, "a@1000005 b@1000000", 0);
        assert_false(h.held || h.holder_alive);
        assert_int_equal(h.last_seq, 3);
        assert_int_equal(read_all_of(s, "a", 0, 0).n, 3);
        if (i == 1) {
            store_close(f->store);
            f->store = open_one(f);
        }
    }
    GIVES(TIDE_FENCED, append(f->store, "a", 3, epoch, 1, &err)); /* it has no lease */
}

static void a_session_given_back_plainly_is_not_live(void **state)
{
    struct fixture *f = *state;
    struct batch_result r;

    create_free(f->store, "a", 1);
    create_waiting(f->store, "b", 0);
    create_waiting(f->store, "c", 0);
    LIVE_IS(f->store, NOW, "b@0 c@0", 0);
    OK(write_to(f->store, &(struct write){.id = "b", .flags = BATCH_ACQUIRE, .n = 1, .expect = 2}, &r, &err));
    LIVE_IS(second(f), NOW, "c@0", 0);
    OK(append(f->store, "b", 3, r.epoch, 1, &err));
    OK(write_to(f->store, &(struct write){.id = "b", .flags = BATCH_RELEASE, .epoch = r.epoch, .expect = 4}, NULL,
                &err));
    LIVE_IS(f->store, NOW, "c@0", 0);
    OK(write_to(second(f), &(struct write){.id = "c", .flags = BATCH_ACQUIRE | BATCH_RELEASE, .n = 1, .expect = 2},
                NULL, &err));
    LIVE_IS(f->store, NOW, "", 0);
    assert_int_equal(read_all_of(f->store, "b", 0, 0).n, 4);
    assert_int_equal(read_all_of(f->store, "c", 0, 0).n, 3);
}

static void a_wake_without_a_clock_is_never_due(void **state)
{
    struct fixture *f = *state;

    create_waiting(f->store, "a", INT64_MAX);
    LIVE_IS(f->store, NOW, "", 0);
    LIVE_IS(f->store, INT64_MAX - 1, "", 0);
}

static void an_input_makes_a_waiting_session_be_looked_at(void **state)
{
    struct fixture *f = *state;
    struct write in = {.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 2};

    create_waiting(f->store, "a", NOW + 5);
    create_waiting(f->store, "b", INT64_MAX);
    create_free(f->store, "c", 2);
    OK(write_to(second(f), &in, NULL, &err));
    LIVE_IS(f->store, NOW, "a@0", 0);
    in.id = "b";
    OK(write_to(f->store, &in, NULL, &err));
    LIVE_IS(second(f), NOW, "a@0 b@0", 0);
    in.id = "c"; /* one that is finished stays so */
    OK(write_to(f->store, &in, NULL, &err));
    LIVE_IS(f->store, NOW, "a@0 b@0", 0);
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 3);
}

static void a_wake_reckoned_for_another_seq_is_at_once(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);

    OK(write_to(second(f), &(struct write){.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 1}, NULL, &err));
    OK(write_to(f->store, /* decided when it was at 1 */
                &(struct write){.id = "a",
                                .flags = BATCH_RELEASE | BATCH_LIVE,
                                .n = 1,
                                .expect = STORE_ANY_SEQ,
                                .epoch = epoch,
                                .caches_seq = 2,
                                .wake = INT64_MAX},
                NULL, &err));
    LIVE_IS(f->store, NOW, "a@0", 0);
}

static int note_entry(void *arg, const struct store_entry *entry)
{
    struct buf *out = arg;

    buf_addf(out, "%s=%.*s ", entry->head->id, STR_ARG(entry->summary));
    return 0;
}

static void a_session_that_stays_is_listed_with_its_summary(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    struct buf out = BUF_INIT(1000);

    OK(write_to(f->store,
                &(struct write){.id = "a",
                                .flags = BATCH_RELEASE | BATCH_LIVE,
                                .n = 1,
                                .expect = 1,
                                .epoch = epoch,
                                .caches_seq = 2,
                                .summary = "S"},
                NULL, &err));
    OK(store_list(second(f), NULL, note_entry, &out, &err));
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 2}, NULL, &err));
    OK(store_list(second(f), NULL, note_entry, &out, &err));
    assert_string_equal(buf_cstr(&out), "a=S a= ");
    buf_done(&out);
}

static void an_import_is_handed_out_only_when_it_is_whole(void **state)
{
    struct fixture *f = *state;
    struct batch_result r;
    struct write whole = {.id = "h",
                          .flags = BATCH_KEEP | BATCH_REVEAL | BATCH_RELEASE | BATCH_LIVE,
                          .n = 1,
                          .expect = 2,
                          .caches_seq = 3,
                          .wake = NOW};

    OK(write_to(f->store,
                &(struct write){.id = "h",
                                .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_HIDDEN | BATCH_KEEP,
                                .n = 2,
                                .expect = STORE_ANY_SEQ},
                &r, &err));
    LIVE_IS(f->store, NOW, "", 0);
    whole.epoch = r.epoch;
    OK(write_to(f->store, &whole, NULL, &err));
    LIVE_IS(second(f), NOW, "h@1000000", 0);
    assert_int_equal(read_all_of(second(f), "h", 0, 0).n, 3);
}

static void a_waiting_session_can_be_deleted_and_made_again(void **state)
{
    struct fixture *f = *state;

    create_waiting(f->store, "a", NOW);
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_DELETE}, NULL, &err));
    LIVE_IS(f->store, NOW, "", 0);
    create_free(f->store, "a", 1);
    LIVE_IS(second(f), NOW, "", 0);
    assert_int_equal(head_of(second(f), "a").last_seq, 1);
}

static void a_rebuild_keeps_who_waits(void **state)
{
    struct fixture *f = *state;
    struct store_check check = {0};

    create_waiting(f->store, "a", NOW);
    OK(store_rebuild(f->store, &err));
    OK(store_check(f->store, &check, &err));
    assert_int_equal(check.problems, 0);
    LIVE_IS(f->store, NOW, "a@1000000", 0);
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 2);
}

/* ---- Who is handed out ----------------------------------------------------------------------------------------- */

static void the_leases_of_the_dead_are_handed_out_and_those_of_the_living_not(void **state)
{
    struct fixture *f = *state;
    struct handed out;

    create_by_the_dead(f, 3);
    create(f->store, "mine", 1);
    create(second(f), "theirs", 1);
    create_waiting(f->store, "w", NOW);
    out = live_by(f->store, NOW - 1);
    assert_string_equal(out.text, "a0@0 a1@0 a2@0");
    assert_int_equal(out.next, NOW);
    assert_true(out.held);
    assert_false(out.alive);
    LIVE_IS(second(f), NOW, "a0@0 a1@0 a2@0 w@1000000", 0);
}

static void who_is_handed_out_may_be_settled_at_once(void **state)
{
    struct fixture *f = *state;
    struct handed out = {.text = ""};

    create_by_the_dead(f, 3);
    create_waiting(f->store, "w", 0);
    out.write_to = f->store;
    OK(store_live(f->store, NOW, hand, &out, &out.next, &err));
    assert_string_equal(out.text, "a0@0 a1@0 a2@0 w@0");
    LIVE_IS(second(f), NOW, "", 0);
    assert_int_equal(head_of(f->store, "a2").last_seq, 2);
}

static void a_callback_can_stop_it(void **state)
{
    struct fixture *f = *state;
    struct handed out = {.text = "", .stop_at = 2};

    for (int i = 0; i < 4; i++)
        create_waiting(f->store, (const char *[]){"a", "b", "c", "d"}[i], 0);
    OK(store_live(f->store, NOW, hand, &out, &out.next, &err));
    assert_string_equal(out.text, "a@0 b@0");
}

static int count(void *arg, const struct store_entry *e, int64_t wake_ms)
{
    (void)e, (void)wake_ms;
    ++*(int64_t *)arg;
    return 0;
}

static void finished_sessions_are_not_handed_out_however_many(void **state)
{
    struct fixture *f = *state;
    struct batch *batches[2000];
    int64_t n = 0, next = -1;
    char id[16];

    create_waiting(f->store, "w", 0);
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof id, "s%d", i);
        batches[i] = batch_of(&(struct write){
            .id = id, .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE, .n = 1, .expect = STORE_ANY_SEQ});
        group_submit(f->store->group, batches[i], GROUP_AWAITED);
    }
    for (int i = 0; i < 2000; i++) {
        group_wait(f->store->group, batches[i]);
        assert_int_equal(batches[i]->code, TIDE_OK);
        batch_free(batches[i]);
    }
    OK(store_live(f->store, NOW, count, &n, &next, &err));
    assert_int_equal(n, 1);
    assert_int_equal(next, 0);
}

static void more_than_one_piece_is_handed_out_whole(void **state)
{
    struct fixture *f = *state;
    int64_t n = 0, next = -1;
    char id[16];

    for (int i = 0; i < 700; i++) { /* every 7th later */
        snprintf(id, sizeof id, "s%d", i);
        group_submit(f->store->group,
                     batch_of(&(struct write){.id = id,
                                              .flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE,
                                              .n = 1,
                                              .expect = STORE_ANY_SEQ,
                                              .caches_seq = 1,
                                              .wake = i % 7 ? NOW - i : NOW + 700 - i}),
                     true);
    }
    create_free(f->store, "last", 1); /* behind them in the queue */
    OK(store_live(f->store, NOW, count, &n, &next, &err));
    assert_int_equal(n, 600);
    assert_int_equal(next, NOW + 700 - 693);
}

/* ---- By force -------------------------------------------------------------------------------------------------- */

static void force_takes_a_lease_from_the_living_and_fences_them(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);
    struct write take = {.id = "a", .flags = BATCH_ACQUIRE, .n = 1, .expect = STORE_ANY_SEQ};
    struct batch_result r, again;

    GIVES(TIDE_HELD, write_to(second(f), &take, NULL, &err));
    take.flags |= BATCH_FORCE;
    OK(write_to(second(f), &take, &r, &err));
    assert_int_equal(r.epoch, epoch + 1);
    ABOUT_SESSION(TIDE_FENCED, "a", append(f->store, "a", STORE_ANY_SEQ, epoch, 1, &err));
    GIVES(TIDE_FENCED,
          write_to(f->store, &(struct write){.id = "a", .flags = BATCH_RELEASE, .epoch = epoch, .expect = 2}, NULL,
                   &err));
    OK(append(second(f), "a", 2, r.epoch, 1, &err));
    OK(write_to(second(f), &take, &again, &err)); /* also from another handle of its own */
    assert_int_equal(again.epoch, epoch + 2);
    GIVES(TIDE_FENCED, append(second(f), "a", STORE_ANY_SEQ, r.epoch, 1, &err));
    OK(append(second(f), "a", 4, again.epoch, 1, &err));
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 5);
    assert_true(head_of(f->store, "a").holder_alive);
}

static void force_may_take_and_leave_in_one_batch(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 1);

    OK(write_to(second(f),
                &(struct write){.id = "a",
                                .flags = BATCH_ACQUIRE | BATCH_FORCE | BATCH_RELEASE | BATCH_LIVE,
                                .n = 1,
                                .expect = 1,
                                .caches_seq = 2,
                                .wake = NOW},
                NULL, &err));
    LIVE_IS(f->store, NOW, "a@1000000", 0);
    GIVES(TIDE_FENCED, append(f->store, "a", 2, epoch, 1, &err));
}

static void every_opening_for_writing_has_a_boot_id(void **state)
{
    struct fixture *f = *state;

    assert_true(str_starts(str_from(f->store->boot_id), STR("boot_")));
    assert_string_not_equal(f->store->boot_id, second(f)->boot_id);
}

static int run_laws(void)
{
    const struct CMUnitTest laws[] = {
        LAW(a_session_given_back_live_stays_with_its_wake),
        LAW(a_session_given_back_plainly_is_not_live),
        LAW(a_wake_without_a_clock_is_never_due),
        LAW(an_input_makes_a_waiting_session_be_looked_at),
        LAW(a_wake_reckoned_for_another_seq_is_at_once),
        LAW(a_session_that_stays_is_listed_with_its_summary),
        LAW(an_import_is_handed_out_only_when_it_is_whole),
        LAW(a_waiting_session_can_be_deleted_and_made_again),
        LAW(a_rebuild_keeps_who_waits),
        LAW(the_leases_of_the_dead_are_handed_out_and_those_of_the_living_not),
        LAW(who_is_handed_out_may_be_settled_at_once),
        LAW(a_callback_can_stop_it),
        LAW(finished_sessions_are_not_handed_out_however_many),
        LAW(more_than_one_piece_is_handed_out_whole),
        LAW(force_takes_a_lease_from_the_living_and_fences_them),
        LAW(force_may_take_and_leave_in_one_batch),
        LAW(every_opening_for_writing_has_a_boot_id),
    };

    return cmocka_run_group_tests_name(store_kind()->name, laws, NULL, NULL);
}

int main(void)
{
    return run_for_backend(run_laws);
}
