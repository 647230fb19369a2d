/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The laws of src/store/store.h, one test each, for the backend that TIDEMARK_TEST_STORE names: a new one is a row of
 * tests/store_kind.h. Nothing here looks behind the interface. The laws of the live: test_live.c.
 */
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include "laws.h"

#include "env/sim.h"
#include "store_tamper.h"

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

static void an_unknown_session_is_not_found(void **state)
{
    struct fixture *f = *state;
    struct head h;

    GIVES(TIDE_NOT_FOUND, append(f->store, "nobody", 0, 0, 1, &err));
    ABOUT_SESSION(TIDE_NOT_FOUND, "nobody", store_head(f->store, STR("nobody"), &h, &err));
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
        OK(store_read_all(f->store, 0, 0, &h, rising, &p, &err));
    else
        SAYS(TIDE_INVALID, "all sessions", store_read_all(f->store, 0, 0, &h, rising, &p, &err));
    assert_int_equal(p.n, store_kind()->positions ? 5 : 0);
}

static void what_comes_later_is_behind_the_last_position(void **state)
{
    struct fixture *f = *state;
    struct positions p = {0, 0};
    int64_t last = -1, later = -1;
    struct head h;

    if (!store_kind()->positions) {
        SAYS(TIDE_INVALID, "all sessions", store_last_position(f->store, &last, &err));
        return;
    }
    OK(store_last_position(f->store, &last, &err));
    assert_int_equal(last, 0);
    create_free(f->store, "a", 3);
    OK(store_last_position(second(f), &last, &err));
    create_free(f->store, "b", 2);
    OK(store_read_all(f->store, last, 0, &h, rising, &p, &err));
    assert_int_equal(p.n, 2);
    OK(store_last_position(f->store, &last, &err));
    OK(write_to(f->store, &(struct write){.id = "b", .flags = BATCH_DELETE}, NULL, &err));
    OK(store_last_position(f->store, &later, &err)); /* it never falls; a deletion may have a position of its own */
    assert_true(later >= last);
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
    OK(store_list(second(f), NULL, collect, &all, &err));
    assert_string_equal(all.text, "c b a");
    h = head_of(f->store, "a");
    OK(store_list(f->store, &h, collect, &forks, &err));
    assert_string_equal(forks.text, "c");
}

static void a_list_may_begin_with_a_session(void **state)
{
    struct fixture *f = *state;
    struct ids from_b = {""}, from_none = {""}, from_x = {""};

    create_free(f->store, "a", 1);
    create_free(f->store, "b", 1);
    create_free(f->store, "c", 1);
    OK(store_list_from(second(f), STR("b"), collect, &from_b, &err));
    assert_string_equal(from_b.text, "b a");
    OK(store_list_from(f->store, STR(""), collect, &from_none, &err));
    assert_string_equal(from_none.text, "c b a");
    OK(store_list_from(f->store, STR("x"), collect, &from_x, &err));
    assert_string_equal(from_x.text, "c b a");
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
    OK(store_list(f->store, NULL, collect, &list[0], &err));
    assert_string_equal(list[0].text, "a=S");
    OK(write_to(f->store, &(struct write){.id = "a", .flags = BATCH_INPUT, .n = 1, .expect = 2}, NULL, &err));
    OK(store_list(f->store, NULL, collect, &list[1], &err));
    assert_string_equal(list[1].text, "a");
    OK(write_to(f->store, /* for another seq than where it lands: dropped */
                &(struct write){.id = "a",
                                .flags = BATCH_ACQUIRE | BATCH_RELEASE,
                                .n = 1,
                                .expect = STORE_ANY_SEQ,
                                .summary = "T",
                                .caches_seq = 3},
                NULL, &err));
    OK(store_list(f->store, NULL, collect, &list[2], &err));
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
    OK(store_resolve(f->store, STR("ab"), ids, 4, &n, &err));
    assert_int_equal(n, 3);
    assert_string_equal(ids[0], "ab");
    OK(store_resolve(f->store, STR("ab"), ids, 2, &n, &err));
    assert_int_equal(n, 2);
    OK(store_resolve(f->store, STR("z"), ids, 4, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(ids[0], "zz");
    OK(store_resolve(f->store, STR("y"), ids, 4, &n, &err));
    assert_int_equal(n, 0);
    OK(store_resolve(f->store, STR("zzz"), ids, 4, &n, &err));
    assert_int_equal(n, 0);
}

/* ---- Caches and big values ----------------------------------------------------------------------------------- */

static int64_t snapshot_of(struct store *s, const char *id, int64_t to, char text[64])
{
    struct buf data = BUF_INIT(1000);
    struct head h = head_of(s, id);
    int64_t seq = -1;

    OK(store_snapshot(s, &h, to, &data, &seq, &err));
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
    OK(store_checkpoints(f->other, &h, false, h.last_seq, note_mark, &all, NULL, &err));
    OK(store_checkpoints(f->other, &h, false, 8, note_mark, &some, NULL, &err));
    OK(store_checkpoints(f->other, &h, true, h.last_seq, note_mark, &deleted, NULL, &err));
    OK(store_checkpoints(f->other, &h, false, h.last_seq, NULL, NULL, &made, &err));
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

    OK(store_info(s, &out, &err));
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
    OK(store_rebuild(f->store, &err));
    assert_int_equal(snapshot_of(f->store, "a", 131, text), 0);
    OK(store_compact(f->store, &err));
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 131);
    OK(append(f->store, "a", 131, epoch, 100, &err));
    assert_int_equal(read_all_of(second(f), "a", 60, 140).n, 81);
    assert_int_equal(read_all_of(f->store, "a", 0, 0).n, 231);
}

static void change_changes_when_anyone_commits(void **state)
{
    struct fixture *f = *state;
    int64_t v[4];

    OK(store_change(f->store, &v[0], &err));
    OK(store_change(f->store, &v[1], &err));
    assert_int_equal(v[0], v[1]);
    create_free(second(f), "a", 1);
    OK(store_change(f->store, &v[2], &err));
    assert_int_not_equal(v[1], v[2]);
    create_free(f->store, "b", 1);
    OK(store_change(f->store, &v[3], &err));
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

/* ---- The other slots ----------------------------------------------------------------------------------------- */

static void what_was_acknowledged_is_there_after_closing(void **state)
{
    struct fixture *f = *state;

    create(f->store, "held", 2);
    create_free(f->store, "free", 3);
    store_close(f->store);
    f->store = open_one(f);
    assert_int_equal(read_all_of(f->store, "held", 0, 0).n, 2);
    assert_int_equal(read_all_of(f->store, "free", 0, 0).n, 3);
}

static enum tide_code beat_when_due(struct store *s, struct tide_err *err)
{
    (void)err;
    while (!store_is_due(s))
        ;
    store_maintain(s);
    assert_false(store_is_due(s));
    return TIDE_OK;
}

static void a_heartbeat_is_due_again_and_again_while_a_lease_is_held(void **state)
{
    struct fixture *f = *state;

    store_close(f->store);
    f->opt.lease_ms = 60;
    f->store = open_one(f);
    assert_false(store_is_due(f->store)); /* nothing is held */
    create(f->store, "a", 1);
    for (int i = 0; i < 3; i++)
        OK(group_alone(f->store->group, beat_when_due, &err));
    assert_true(head_of(second(f), "a").holder_alive);
}

static void a_checkpoint_is_found_by_its_id(void **state)
{
    struct fixture *f = *state;
    int64_t epoch = create(f->store, "a", 2), seq = -1;
    struct head h;

    OK(write_to(f->store,
                &(struct write){.id = "a",
                                .expect = 2,
                                .epoch = epoch,
                                .n = 1,
                                .kind = "checkpoint",
                                .body = "{\"checkpoint_id\":\"cp_one\"}"},
                NULL, &err));
    OK(append(f->store, "a", 3, epoch, 2, &err));
    h = head_of(second(f), "a");
    OK(store_checkpoint_seq(f->other, &h, STR("cp_one"), &seq, &err));
    assert_int_equal(seq, 3);
    OK(store_checkpoint_seq(f->other, &h, STR("cp_two"), &seq, &err));
    assert_int_equal(seq, 0);
}

static void write_beside(struct fixture *f, const char *name, const char *text)
{
    char path[400];
    FILE *file;

    snprintf(path, sizeof path, "%s/sessions/%s", store_path(f->url), name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int note_kind(void *kinds, const struct event *ev)
{
    buf_addf(kinds, "%lld %.*s\n", (long long)ev->seq, STR_ARG(ev->kind));
    return 0;
}

static void foreign_rest_is_what_a_write_would_add_where_that_is_declared(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_done) struct buf kinds = BUF_INIT(1000);
    struct head h;

    create_free(f->store, "a", 5);
    h = head_of(f->store, "a");
    OK(store_foreign_rest(f->store, &h, note_kind, &kinds, &err));
    assert_int_equal(kinds.len, 0); /* of ours: nothing */
    if (!store_can(f->store, STORE_FOREIGN))
        return;
    write_beside(f, "b.messages.jsonl",
                 "{\"seq\":1,\"ts\":\"2026-02-21T10:01:01Z\",\"kind\":\"message.user\",\"content\":\"hi\"}\n");
    write_beside(
        f, "b.json",
        "{\"id\":\"b\",\"title\":\"t\",\"run\":{\"run_id\":\"r\",\"started_at\":\"2026-02-21T10:01:03Z\",\"ended_at\":null}}");
    h = head_of(f->store, "b");
    OK(store_foreign_rest(f->store, &h, note_kind, &kinds, &err));
    assert_string_equal(buf_cstr(&kinds), "2 session.updated\n3 run.started\n");
    h = head_of(second(f), "b");
    assert_int_equal(h.last_seq, 1); /* nothing was written */
    write_beside(f, "b.json", "{\"id\":\"c\",\"title\":\"t\"}");
    buf_clear(&kinds);
    OK(store_foreign_rest(f->store, &h, note_kind, &kinds, &err));
    assert_int_equal(kinds.len, 0); /* of another session */
}

static void prove_finds_what_others_changed_where_that_is_declared(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {.ordered = true, .bodies = BUF_INIT(1000)};
    struct head h;

    create_free(f->store, "a", 5);
    h = head_of(f->store, "a");
    OK(store_prove(f->store, &h, h.last_seq, &err));
    store_close(f->store);
    damage_event(f->url, 3);
    f->store = open_one(f);
    if (store_can(f->store, STORE_PROVES))
        GIVES(TIDE_CORRUPT, store_prove(f->store, &h, h.last_seq, &err));
    else
        OK(store_prove(f->store, &h, h.last_seq, &err)); /* whoever reads it finds it */
    GIVES(TIDE_CORRUPT, store_read(f->store, &h, 0, 0, see, &seen, &err));
    buf_done(&seen.bodies);
}

static int due(void *arg, const struct store_entry *entry, int64_t wake_ms)
{
    snprintf(arg, 100, "%s@%d=%.*s", entry->head->id, (int)wake_ms, STR_ARG(entry->summary));
    return 0;
}

static void live_hands_out_what_is_due_and_says_when_to_look_again(void **state)
{
    struct fixture *f = *state;
    struct write stays = {.flags = BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE | BATCH_LIVE,
                          .n = 1,
                          .expect = STORE_ANY_SEQ,
                          .caches_seq = 1};
    char got[100] = "";
    int64_t next = -1;

    create_free(f->store, "no", 1);
    stays.id = "now";
    stays.summary = "S";
    stays.wake = 10;
    OK(write_to(f->store, &stays, NULL, &err));
    stays.id = "later";
    stays.wake = 30;
    OK(write_to(f->store, &stays, NULL, &err));
    OK(store_live(second(f), 20, due, got, &next, &err));
    assert_string_equal(got, "now@10=S");
    assert_int_equal(next, 30);
}

static void info_counts_sessions_and_events(void **state)
{
    struct fixture *f = *state;

    create_free(f->store, "a", 3);
    create(second(f), "b", 2);
    assert_int_equal(info_int(f->store, "sessions"), 2);
    assert_int_equal(info_int(f->store, "events"), 5);
    assert_int_equal(info_int(f->store, "held_sessions"), 1);
}

static void check_names_what_is_missing(void **state)
{
    struct fixture *f = *state;
    struct store_check check = {.done = 0}, again = {.done = 0};
    char log[400];
    struct stat st;

    create_free(f->store, "a", 5);
    OK(store_check(f->store, &check, &err));
    assert_int_equal(check.problems, 0);
    store_close(f->store);
    if (store_kind()->one_file) {
        sql_run(store_path(f->url), NULL, "DELETE FROM events WHERE seq = 4");
    } else {
        snprintf(log, sizeof log, "%s/sessions/a.messages.jsonl", store_path(f->url));
        assert_int_equal(stat(log, &st), 0);
        assert_int_equal(truncate(log, st.st_size - 30), 0);
    }
    f->store = open_one(f);
    OK(store_check(f->store, &again, &err));
    assert_true(again.problems > 0);
}

static struct store *open_on(struct sim *sim, const char *url)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_CREATE, .lease_ms = 30000};
    struct store *s = NULL;

    OK(store_open(url, &opt, sim_proc_env(sim_proc_start(sim)), &s, &err));
    return s;
}

/* Whatever the disk has kept of it: what is read after settling stays so, also through a power cut. */
static void what_is_settled_stays_as_it_is(void **state)
{
    char url[100];

    (void)state;
    store_url_in(url, sizeof url, "/disk", "t");
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct sim *sim = sim_new(seed);
        struct store *s = open_on(sim, url), *after;
        int64_t epoch = create(s, "a", 1);
        enum tide_code code;
        struct head told, kept;

        sim_fault_at(sim, SIM_SYNC_FAILS, 1, false);
        code = append(s, "a", 1, epoch, 2, &(struct tide_err){0});
        assert_int_equal(code, TIDE_UNKNOWN);
        OK(store_settle(s, &err));
        assert_false(s->unsettled);
        told = head_of(s, "a");
        sim_power_cut(sim);
        store_close(s);
        after = open_on(sim, url);
        kept = head_of(after, "a");
        assert_int_equal(kept.last_seq, told.last_seq);
        assert_memory_equal(kept.digest, told.digest, DIGEST_SIZE);
        store_close(after);
        sim_free(sim);
    }
}

static void compact_gives_space_back_where_that_is_declared(void **state)
{
    struct fixture *f = *state;
    bool can = store_can(f->store, STORE_COMPACTS);
    int64_t epoch = create(f->store, "a", 100);

    for (int64_t seq = 100; seq < 500; seq += 100)
        OK(append(f->store, "a", seq, epoch, 100, &err));
    if (can)
        assert_true(info_int(f->store, "wal_bytes") > 0);
    OK(store_compact(f->store, &err));
    if (can)
        assert_int_equal(info_int(f->store, "wal_bytes"), 0);
    assert_int_equal(read_all_of(second(f), "a", 0, 0).n, 500);
}

/* ---- Opening -------------------------------------------------------------------------------------------------- */

static void a_kind_of_store_that_is_not_known_is_refused(void **state)
{
    static const char *const urls[] = {
        "postgres://host/base", "Sqlite:x.db", "fyles:x", "files", "memory:", "", "files:"};
    struct fixture *f = *state;
    char path[300];
    struct stat st;
    tide_store *store = NULL;

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++)
        GIVES(TIDE_INVALID, tide_store_open(urls[i], &f->opt, &store, &err));
    snprintf(path, sizeof path, "%s/postgres:x", f->dir); /* a path is one, whatever is in it */
    OK(tide_store_open(path, &f->opt, &store, &err));
    tide_store_close(store);
    assert_int_equal(stat(path, &st), 0);
}

/* ---- Which slot each of them is about ------------------------------------------------------------------------- */

#define LAWS(X)                                                                                                        \
    X(commit, append_is_whole_or_nothing)                                                                              \
    X(head, an_unknown_session_is_not_found)                                                                           \
    X(head, held_names_the_holder)                                                                                     \
    X(read_all, positions_rise_and_are_never_used_again)                                                               \
    X(read_all, without_positions_a_stream_over_all_sessions_is_refused_by_name)                                       \
    X(last_position, what_comes_later_is_behind_the_last_position)                                                     \
    X(read, read_gives_the_range_in_order)                                                                             \
    X(list, list_is_newest_first)                                                                                      \
    X(list, a_list_may_begin_with_a_session)                                                                           \
    X(list, a_summary_is_shown_only_while_it_is_not_behind)                                                            \
    X(resolve, resolve_finds_by_prefix)                                                                                \
    X(snapshot, a_snapshot_is_never_ahead_of_the_log_or_of_another_history)                                            \
    X(checkpoints, checkpoints_come_newest_first)                                                                      \
    X(read, big_values_come_back_byte_for_byte)                                                                        \
    X(commit, equal_big_values_are_stored_once_and_swept_with_the_last_reference)                                      \
    X(read, what_was_stored_can_be_read_under_a_smaller_limit)                                                         \
    X(rebuild, rebuild_and_compact_change_no_answer)                                                                   \
    X(change, change_changes_when_anyone_commits)                                                                      \
    X(read, a_reader_may_write_while_it_reads)                                                                         \
    X(read, a_session_deleted_under_a_reader_is_gone_not_damaged)                                                      \
    X(close, what_was_acknowledged_is_there_after_closing)                                                             \
    X(is_due, a_heartbeat_is_due_again_and_again_while_a_lease_is_held)                                                \
    X(checkpoint_seq, a_checkpoint_is_found_by_its_id)                                                                 \
    X(prove, prove_finds_what_others_changed_where_that_is_declared)                                                   \
    X(foreign_rest, foreign_rest_is_what_a_write_would_add_where_that_is_declared)                                     \
    X(live, live_hands_out_what_is_due_and_says_when_to_look_again)                                                    \
    X(info, info_counts_sessions_and_events)                                                                           \
    X(check, check_names_what_is_missing)                                                                              \
    X(settle, what_is_settled_stays_as_it_is)                                                                          \
    X(compact, compact_gives_space_back_where_that_is_declared)

#define LAW_ROW(slot, name) LAW(name),
#define LAW_SLOT(slot, name) offsetof(struct store_ops, slot),

/* A slot that is added, and has none, is found here; so is one that a backend lacks without saying so. */
static void every_slot_has_a_law_and_is_there_unless_a_capability_says_otherwise(void **state)
{
    static const size_t about[] = {LAWS(LAW_SLOT) offsetof(struct store_ops, maintain) /* the law of is_due */};
    static const struct {
        size_t slot;
        enum store_capability of;
    } optional[] = {{offsetof(struct store_ops, prove), STORE_PROVES},
                    {offsetof(struct store_ops, foreign_rest), STORE_FOREIGN},
                    {offsetof(struct store_ops, read_all), STORE_POSITIONS},
                    {offsetof(struct store_ops, last_position), STORE_POSITIONS},
                    {offsetof(struct store_ops, compact), STORE_COMPACTS}};
    struct fixture *f = *state;
    const struct store_ops *ops = f->store->ops;

    for (size_t at = offsetof(struct store_ops, close); at < sizeof *ops; at += sizeof(void *)) {
        size_t laws = 0;
        bool wanted = true;
        void *slot;

        for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
            laws += about[i] == at;
        for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
            wanted &= optional[i].slot != at || store_can(f->store, optional[i].of);
        memcpy(&slot, (const char *)ops + at, sizeof slot);
        assert_true(laws > 0);
        assert_int_equal(slot != NULL, wanted);
    }
}

static int run_laws(void)
{
    const struct CMUnitTest laws[] = {
        LAWS(LAW_ROW) /* and two that are about no slot, or all */
        LAW(a_kind_of_store_that_is_not_known_is_refused),
        LAW(every_slot_has_a_law_and_is_there_unless_a_capability_says_otherwise),
    };

    return cmocka_run_group_tests_name(store_kind()->name, laws, NULL, NULL);
}

int main(void)
{
    return run_for_backend(run_laws);
}
