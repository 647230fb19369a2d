/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as a user of the library has them: appending, inputs, checkpoints, rollback, forks, lists. */
#include "store_tamper.h"

#include "session/session.h"

struct fixture {
    char dir[256], url[300];
    tide_store *store;
};

static void open_store(struct fixture *f)
{
    OK(tide_store_open(
        f->url, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &f->store, &err));
}

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->url, sizeof f->url, f->dir, "deep/er/s");
    open_store(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->store);
    dir_remove(f->dir);
    free(f);
    return 0;
}

static tide_session *make(struct fixture *f, const char *id)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, id, "{\"agent\":\"tester\",\"title\":\"T\"}", &s, &err));
    return s;
}

static tide_session *reopen(struct fixture *f, const char *id)
{
    tide_session *s = NULL;

    OK(tide_session_open(f->store, id, TIDE_SESSION_APPEND, &s, &err));
    return s;
}

static int64_t queue_input(struct fixture *f, const char *id, int64_t expect)
{
    struct tide_new_event ev = {"queue.added", "{\"queue_id\":\"q\",\"content\":\"hello\"}", 0};
    int64_t seq = 0;

    OK(tide_session_input(f->store, id, expect, &ev, 1, &seq, &err));
    return seq;
}

/* ---- Appending ----------------------------------------------------------------------------------------------- */

static void ids_are_checked(void **state)
{
    static const char *const bad[] = {"../x",
                                      "a/b",
                                      "-a",
                                      "a b",
                                      "a.b",
                                      "\xc3\xa4",
                                      "a2345678901234567890123456789012345678901234567890123456789012345"};
    struct fixture *f = *state;
    tide_session *s;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        GIVES(TIDE_INVALID, tide_session_create(f->store, bad[i], NULL, &s, &err));
        GIVES(TIDE_INVALID, tide_session_open(f->store, bad[i], 0, &s, &err));
        GIVES(TIDE_INVALID, tide_session_delete(f->store, bad[i], &err));
    }
    GIVES(TIDE_INVALID, tide_session_open(f->store, "", 0, &s, &err));
    s = make(f, "a234567890123456789012345678901234567890123456789012345678901234");
    tide_session_close(s);
    s = make(f, NULL);
    assert_memory_equal(tide_session_id(s), "sess_", 5);
    GIVES(TIDE_EXISTS, tide_session_create(f->store, tide_session_id(s), NULL, &(tide_session *){NULL}, &err));
    tide_session_close(s);
}

static void a_bad_event_stores_nothing_of_its_batch(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    const struct tide_new_event batch[] = {{"message.user", SAID, 0}, {"message.user", "{\"turn\":\"x\"}", 0}};

    GIVES(TIDE_INVALID, tide_session_append(s, 0, batch, 2, NULL, &err));
    GIVES(TIDE_INVALID, append_one(s, "message.user", "{\"a\":1,\"a\":2}", &err));
    GIVES(TIDE_INVALID, append_one(s, "message.user", "{\"a\":\"\\ud800\"}", &err));
    GIVES(TIDE_INVALID, append_one(s, "message.user", "{\"a\":\"\xff\"}", &err));
    GIVES(TIDE_INVALID, append_one(s, "message.user", "{", &err));
    GIVES(TIDE_INVALID, append_one(s, "Bad Kind", "{}", &err));
    ABOUT_SESSION(TIDE_INVALID, "a", append_one(s, "session.rolled_back", "{\"to_seq\":1}", &err));
    ABOUT_SESSION(TIDE_INVALID, "a", append_one(s, "session.created", "{}", &err));
    assert_int_equal(tide_session_last_seq(s), 1);
    assert_int_equal(put(s, "message.user", SAID), 2);
    tide_session_close(s);
}

static int keep_body(void *arg, const struct tide_event *ev)
{
    snprintf(arg, 200, "%s %s", ev->kind, ev->body);
    assert_int_equal(strlen(ev->body), ev->body_len);
    return 0;
}

static void key_order_and_numbers_are_kept_exactly(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char got[200];

    put(s, "any.kind", "{ \"z\" : 1.0e+05 , \"a\":[ 1.10, -0, 123456789012345678901234567890 ],\"\\u0041\":\"\\/\" }");
    OK(tide_session_read(s, 0, 2, 2, keep_body, got, &err));
    assert_string_equal(got,
                        "any.kind {\"z\":1.0e+05,\"a\":[1.10,-0,123456789012345678901234567890],\"\\u0041\":\"\\/\"}");
    tide_session_close(s);
}

/* What a handle knows by folding its own appends is what another one reads. */
static void the_state_in_hand_is_the_state_on_disk(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a"), *r = NULL;
    char *mine, *theirs;

    put(s, "memory.set", "{ \"values\" : { \"a\" : { \"x\" : [ 1 , 2 ] } , \"b\" : \"c d\" } }");
    put(s, "output.set", "{ \"node\" : \"n\" , \"values\" : { \"a\" : { \"x\" : [ 1 , 2 ] } } }");
    put(s, "session.updated", "{ \"metadata\" : { \"k\" : 1 } }");
    mine = state_text(s, 0);
    OK(tide_session_open(f->store, "a", TIDE_SESSION_READ, &r, &err));
    theirs = state_text(r, 0);
    assert_string_equal(mine, theirs);
    free(mine);
    free(theirs);
    tide_session_close(r);
    tide_session_close(s);
}

static void a_state_of_the_past_is_right_after_own_appends(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char *then = state_text(s, 0), *now;

    for (int i = 0; i < 5; i++)
        put(s, "memory.set", "{\"values\":{\"a\":%d}}", i);
    now = state_text(s, 4);
    assert_non_null(strstr(now, "\"seq\":4,"));
    assert_non_null(strstr(now, "\"memory\":{\"a\":2}"));
    free(now);
    now = state_text(s, 1);
    then[strlen(then) - 1] = 0;
    *strstr(then, ",\"status\"") = 0;
    assert_memory_equal(now, then, strlen(then));
    free(then);
    free(now);
    tide_session_close(s);
}

static void an_input_in_between_is_a_conflict_until_it_was_read(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");

    put(s, "message.user", SAID);
    assert_int_equal(queue_input(f, "a", 2), 3);
    GIVES(TIDE_CONFLICT, append_one(s, "message.user", SAID, &err));
    OK(tide_session_refresh(s, &err));
    assert_int_equal(tide_session_last_seq(s), 3);
    assert_int_equal(put(s, "queue.taken", "{\"queue_id\":\"q\"}"), 4);
    queue_input(f, "a", -1);
    OK(tide_session_append(s, TIDE_APPEND_ANY, &(struct tide_new_event){"message.user", SAID, 0}, 1, NULL, &err));
    assert_int_equal(tide_session_last_seq(s), 6);
    GIVES(TIDE_CONFLICT,
          tide_session_input(f->store, "a", 2, &(struct tide_new_event){"cancel.requested", "{}", 0}, 1, NULL, &err));
    SAYS(TIDE_INVALID, "not an input",
         tide_session_input(f->store, "a", -1, &(struct tide_new_event){"message.user", SAID, 0}, 1, NULL, &err));
    SAYS(TIDE_INVALID, "not an input",
         tide_session_input(f->store, "a", -1, &(struct tide_new_event){"weather", "{}", 0}, 1, NULL, &err));
    tide_session_close(s);
}

static void snapshots_taken_around_inputs_are_right(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a"), *r;
    char *pad = mem_zero(9001), *mine, *theirs;

    memset(pad, 'p', 9000);
    for (int i = 0; i < 40; i++) { /* a snapshot every few events, an input before some of them */
        char body[10000];
        struct tide_new_event ev = {"message.user", body, 0};

        snprintf(body, sizeof body, "{\"turn\":%d,\"content\":\"%s\"}", i, pad);
        if (i % 3 == 0)
            queue_input(f, "a", -1);
        OK(tide_session_append(s, TIDE_APPEND_ANY, &ev, 1, NULL, &err));
    }
    OK(tide_session_refresh(s, &err));
    mine = state_text(s, 0);
    OK(tide_session_open(f->store, "a", TIDE_SESSION_READ, &r, &err));
    theirs = state_text(r, 0);
    assert_string_equal(mine, theirs);
    assert_non_null(strstr(theirs, "\"messages\":40"));
    free(mine);
    free(theirs);
    free(pad);
    tide_session_close(r);
    tide_session_close(s);
}

static void a_handle_that_was_refused_the_lease_gets_it_later(void **state)
{
    struct fixture *f = *state;
    tide_session *holder = make(f, "a"), *s = reopen(f, "a"), *claim = NULL;
    struct tide_new_event ev = {"message.user", SAID, 0};
    char got[200];

    ABOUT_SESSION(TIDE_HELD, tide_session_id(s), append_one(s, "message.user", SAID, &err));
    GIVES(TIDE_HELD, tide_session_open(f->store, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &claim, &err));
    for (int settled = 0; settled < 2; settled++) { /* the failure of what was queued is told once, however late */
        OK(tide_session_append_async(s, 0, &ev, 1, NULL, &err));
        for (int i = 0; settled && tide_session_last_seq(s) != 1; i++)
            assert_true(i < 10000 && usleep(1000) == 0);
        GIVES(TIDE_HELD, tide_session_read(s, 0, 1, 1, keep_body, got, &err));
        OK(tide_session_read(s, 0, 1, 1, keep_body, got, &err));
    }
    tide_session_close(holder);
    assert_int_equal(put(s, "message.user", SAID), 2);
    tide_session_close(s);
}

static void a_fenced_handle_never_appends_again(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a"), *other = NULL;
    tide_store *second = NULL;

    put(s, "message.user", SAID);
    boots_set(f->url, "pid", 999999999); /* as if the holder had died */
    OK(tide_store_open(f->url, NULL, &second, &err));
    OK(tide_session_open(second, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &other, &err));
    GIVES(TIDE_FENCED, append_one(s, "message.user", SAID, &err));
    GIVES(TIDE_FENCED, append_one(s, "message.user", SAID, &err));
    put(other, "message.user", SAID);
    tide_session_close(s); /* must not give back a lease that is no longer its own */
    put(other, "message.user", SAID);
    tide_session_close(other);
    tide_store_close(second);
}

static void what_may_only_be_data_says_nothing_of_runs(void **state)
{
    static const struct tide_new_event data[] = {{"message.user", SAID, 0}, {"run.paused", NULL, 0}};
    static const struct tide_new_event moves[] = {
        {"run.started", "{\"run_id\":\"r\",\"argv\":[\"sh\"]}", 0},
        {"approval.given", "{\"approval_id\":\"a\",\"decision\":\"approved\"}", 0},
        {"session.updated", "{\"provider\":{\"base_url\":\"http://example.org\"}}", 0},
        {"tool.completed", "{\"call_id\":\"c\"}", 0},
    };
    const unsigned flags = TIDE_APPEND_DATA | TIDE_APPEND_ANY | TIDE_APPEND_RELEASE;
    struct fixture *f = *state;
    tide_session *s = make(f, "a"), *behind = reopen(f, "a");

    OK(tide_session_append(s, flags, data, 2, NULL, &err));
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        struct tide_new_event both[] = {data[1], moves[i]};

        GIVES(TIDE_DENIED, tide_session_append(s, flags, both, 2, NULL, &err));
        GIVES(TIDE_DENIED, tide_session_append_async(s, flags, &moves[i], 1, NULL, &err));
    }
    assert_int_equal(tide_session_last_seq(s), 3);
    OK(tide_session_append(s, TIDE_APPEND_RELEASE, moves, 1, NULL, &err));
    GIVES(TIDE_DENIED, tide_session_append(s, flags, data, 1, NULL, &err));
    OK(tide_session_append(s, flags, data + 1, 1, NULL, &err));
    GIVES(TIDE_CONFLICT, tide_session_append(behind, flags, data, 1, NULL, &err)); /* it has not heard of the run */
    OK(tide_session_refresh(behind, &err));
    GIVES(TIDE_DENIED, tide_session_append(behind, flags, data, 1, NULL, &err));
    tide_session_close(behind);
    tide_session_close(s);
}

static void async_appends_are_there_after_flush(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    struct tide_completion done[100];
    struct tide_new_event ev = {"message.user", SAID, 0};
    int tags[50];
    size_t got = 0;

    for (int i = 0; i < 50; i++)
        OK(tide_session_append_async(s, 0, &ev, 1, &tags[i], &err));
    assert_int_equal(tide_session_last_seq(s), 51);
    OK(tide_session_flush(s, &err));
    while (got < 50)
        got += tide_store_reap(f->store, done + got, 100 - got, -1);
    for (int i = 0; i < 50; i++) {
        assert_ptr_equal(done[i].user, &tags[i]);
        assert_int_equal(done[i].seq, 2 + i);
    }
    assert_int_equal(tide_store_reap(f->store, done, 100, 0), 0);
    OK(tide_session_append_async(s, 0, &ev, 1, NULL, &err));
    queue_input(f, "a", -1);
    OK(tide_session_flush(s, &err));
    OK(tide_session_append_async(s, 0, &ev, 1, NULL, &err));
    GIVES(TIDE_CONFLICT, tide_session_flush(s, &err));
    OK(tide_session_flush(s, &err));
    OK(tide_session_refresh(s, &err));
    assert_int_equal(tide_session_last_seq(s), 53);
    put(s, "message.user", SAID);
    tide_session_close(s);
}

static void over_the_limit_is_refused_before_anything_is_written(void **state)
{
    struct fixture *f = *state;
    struct tide_store_options opt = {.size = sizeof opt, .max_record_bytes = 100000};
    tide_store *small = NULL;
    tide_session *s = NULL;
    char *body = mem_zero(100100), *state_before;

    tide_session_close(make(f, "a"));
    OK(tide_store_open(f->url, &opt, &small, &err));
    OK(tide_session_open(small, "a", TIDE_SESSION_APPEND, &s, &err));
    state_before = state_text(s, 0);
    memset(body, 'x', 100001);
    memcpy(body, "{\"content\":\"", 12);
    memcpy(body + 99999, "\"}", 3);
    const struct tide_new_event batch[] = {{"message.user", SAID, 0}, {"message.user", body, 0}};
    ABOUT_SESSION(TIDE_TOO_BIG, "a", tide_session_append(s, 0, batch, 2, NULL, &err));
    assert_int_equal(tide_session_last_seq(s), 1);
    char *after = state_text(s, 0);
    assert_string_equal(state_before, after);
    memcpy(body + 99998, "\"}", 3);
    OK(tide_session_append(s, 0, batch, 2, NULL, &err)); /* exactly the limit */
    free(state_before);
    free(after);
    free(body);
    tide_session_close(s);
    tide_store_close(small);
}

/* ---- Checkpoints --------------------------------------------------------------------------------------------- */

static void save(tide_session *s, const char *type, char id[TIDE_ID_SIZE])
{
    struct tide_new_checkpoint in = {
        .size = sizeof in, .type = (enum tide_checkpoint_type)tide_checkpoint_type_from(type), .description = "d"};

    OK(tide_checkpoint_save(s, &in, id, &err));
}

struct ids {
    int n;
    char list[40][TIDE_ID_SIZE];
    int64_t seq[40];
    bool rolled_back[40], clean[40];
};

static int collect(void *arg, const struct tide_checkpoint *c)
{
    struct ids *ids = arg;

    assert_true(ids->n < 40);
    snprintf(ids->list[ids->n], TIDE_ID_SIZE, "%s", c->id);
    ids->rolled_back[ids->n] = c->rolled_back;
    ids->clean[ids->n] = c->is_clean;
    ids->seq[ids->n++] = c->seq;
    return 0;
}

static struct ids list_of(tide_session *s, const struct tide_checkpoint_filter *filter)
{
    struct ids ids = {0};

    OK(tide_checkpoint_list(s, filter, collect, &ids, &err));
    return ids;
}

static int latest_is(void *arg, const struct tide_checkpoint *c)
{
    assert_string_equal(c->id, arg);
    return 0;
}

static void checkpoints_are_listed_filtered_and_found(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char ids[6][TIDE_ID_SIZE];
    const struct tide_checkpoint *c;
    struct ids got;

    GIVES(TIDE_NOT_FOUND, checkpoint_shown(s, NULL, collect, &got, &err));
    GIVES(TIDE_INVALID, tide_checkpoint_save(s,
                                             &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint),
                                                                           .type = (enum tide_checkpoint_type)99},
                                             ids[0], &err));
    for (int i = 0; i < 6; i++) {
        if (i == 4)
            put(s, "llm.error", "{}");
        save(s, i % 2 ? "turn" : "safe_point", ids[i]);
    }
    assert_int_equal(list_of(s, NULL).n, 6);
    got = list_of(s, &(struct tide_checkpoint_filter){.size = sizeof(struct tide_checkpoint_filter),
                                                      .type = TIDE_CHECKPOINT_TURN});
    assert_int_equal(got.n, 3);
    assert_string_equal(got.list[0], ids[1]);
    got = list_of(s, &(struct tide_checkpoint_filter){.size = sizeof(struct tide_checkpoint_filter), .clean_only = 1});
    assert_int_equal(got.n, 4);
    got = list_of(s, &(struct tide_checkpoint_filter){.size = sizeof(struct tide_checkpoint_filter), .limit = 2});
    assert_string_equal(got.list[0], ids[4]);
    assert_string_equal(got.list[1], ids[5]);
    OK(tide_checkpoint_load(s, ids[4], &c, &err)); /* the page before that */
    got = list_of(s, &(struct tide_checkpoint_filter){
                         .size = sizeof(struct tide_checkpoint_filter), .limit = 2, .before_seq = c->seq});
    assert_int_equal(got.n, 2);
    assert_string_equal(got.list[0], ids[2]);
    assert_string_equal(got.list[1], ids[3]);
    GIVES(TIDE_INVALID,
          tide_checkpoint_list(s,
                               &(struct tide_checkpoint_filter){.size = sizeof(struct tide_checkpoint_filter),
                                                                .type = (enum tide_checkpoint_type)99},
                               collect, &got, &err));
    OK(checkpoint_shown(s, NULL, latest_is, ids[5], &err));
    OK(checkpoint_shown(s, ids[2], latest_is, ids[2], &err));
    GIVES(TIDE_AMBIGUOUS, checkpoint_shown(s, "ckpt_", latest_is, ids[2], &err));
    GIVES(TIDE_NOT_FOUND, checkpoint_shown(s, "ckpt_zzzz", latest_is, ids[2], &err));
    GIVES(TIDE_INVALID, checkpoint_shown(s, "../x", latest_is, ids[2], &err));
    GIVES(TIDE_NOT_FOUND, tide_checkpoint_delete(s, (const char *[]){ids[0], "ckpt_zzzz"}, 2, &err));
    assert_int_equal(list_of(s, NULL).n, 6);
    OK(tide_checkpoint_delete(s, (const char *[]){ids[0], ids[5]}, 2, &err));
    assert_int_equal(list_of(s, NULL).n, 4);
    OK(checkpoint_shown(s, NULL, latest_is, ids[4], &err));
    GIVES(TIDE_NOT_FOUND, checkpoint_shown(s, ids[0], latest_is, ids[2], &err));
    GIVES(TIDE_NOT_FOUND, tide_checkpoint_delete(s, (const char *[]){ids[0]}, 1, &err));
    tide_session_close(s);
}

static int resume_is(void *arg, const struct tide_session_info *info)
{
    assert_string_equal(info->resume_from_checkpoint_id, arg);
    return 0;
}

static void after_pruning_lists_latest_and_resume_are_right(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char ids[30][TIDE_ID_SIZE];
    int64_t gone = -1;
    struct ids got;

    for (int i = 0; i < 30; i++) {
        put(s, "message.user", "{\"turn\":%d,\"content\":\"hi\"}", i + 1);
        if (i == 27)
            put(s, "llm.error", "{}");
        save(s, "turn", ids[i]);
    }
    OK(tide_checkpoint_prune(s, 10, 0, &gone, &err));
    assert_int_equal(gone, 20);
    tide_session_close(s);
    s = reopen(f, "a");
    got = list_of(s, NULL);
    assert_int_equal(got.n, 10);
    assert_string_equal(got.list[0], ids[20]);
    OK(checkpoint_shown(s, NULL, latest_is, ids[29], &err));
    OK(session_shown(s, resume_is, ids[29], &err));
    OK(tide_checkpoint_prune(s, 10, TIDE_PRUNE_KEEP_CLEAN_ONLY, &gone, &err));
    assert_int_equal(gone, 3);
    OK(checkpoint_shown(s, NULL, latest_is, ids[26], &err));
    OK(session_shown(s, resume_is, ids[26], &err));
    OK(tide_session_list(f->store, NULL, resume_is, ids[26], &err));
    OK(tide_checkpoint_prune(s, 10, 0, &gone, &err));
    assert_int_equal(gone, 0);
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    OK(tide_checkpoint_prune(s, 0, 0, &gone, &err));
    assert_int_equal(gone, 7);
    GIVES(TIDE_NOT_FOUND, checkpoint_shown(s, NULL, latest_is, ids[29], &err));
    GIVES(TIDE_INVALID, tide_checkpoint_prune(s, -1, 0, &gone, &err));
    tide_session_close(s);
    OK(tide_store_check(f->store, 0, NULL, NULL, NULL, &err));
}

/* ---- Rollback ------------------------------------------------------------------------------------------------ */

static void rollback_past_a_finished_once_effect_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");

    put(s, "tool.started", "{\"call_id\":\"c1\",\"tool\":\"mail\"}"); /* 2: once is the default */
    put(s, "tool.completed", "{\"call_id\":\"c1\"}");
    put(s, "tool.started", "{\"call_id\":\"c2\",\"tool\":\"look\",\"effect\":\"pure\"}"); /* 4 */
    put(s, "tool.completed", "{\"call_id\":\"c2\"}");
    put(s, "tool.started", "{\"call_id\":\"c3\",\"tool\":\"pay\",\"effect\":\"once\"}"); /* 6 */
    put(s, "tool.failed", "{\"call_id\":\"c3\"}");
    OK(tide_session_rollback(s, 3, 0, NULL, &err)); /* pure and failed ones may go */
    HINTS(TIDE_EFFECTS, TIDE_ACTION_REPEAT, tide_session_rollback(s, 1, 0, NULL, &err));
    HINTS(TIDE_EFFECTS, TIDE_ACTION_REPEAT,
          tide_session_rollback(s, 2, 0, NULL, &err)); /* begun before, finished after */
    GIVES(TIDE_INVALID,
          tide_session_rollback(s, 1, TIDE_ROLLBACK_REUSE_EFFECTS | TIDE_ROLLBACK_REDO_EFFECTS, NULL, &err));
    OK(tide_session_rollback(s, 1, TIDE_ROLLBACK_REUSE_EFFECTS, "why not", &err));
    OK(tide_session_rollback(s, 3, 0, NULL, &err)); /* forward again */
    OK(tide_session_rollback(s, 1, TIDE_ROLLBACK_REDO_EFFECTS, NULL, &err));
    GIVES(TIDE_INVALID, tide_session_rollback(s, 0, 0, NULL, &err));
    GIVES(TIDE_INVALID, tide_session_rollback(s, 999, 0, NULL, &err));
    GIVES(TIDE_INVALID, tide_session_rollback(s, -1, 0, NULL, &err));
    tide_session_close(s);
}

static void a_fork_rolled_back_past_its_parents_once_effect_is_refused(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char fork[TIDE_ID_SIZE];

    put(s, "tool.started", "{\"call_id\":\"c1\",\"tool\":\"mail\",\"effect\":\"once\"}");
    put(s, "tool.completed", "{\"call_id\":\"c1\"}");
    put(s, "message.user", SAID);
    tide_session_close(s);
    OK(tide_session_fork(f->store, "a", 4, "f", NULL, fork, &err));
    s = reopen(f, "f");
    put(s, "message.user", SAID);
    OK(tide_session_rollback(s, 3, 0, NULL, &err));
    HINTS(TIDE_EFFECTS, TIDE_ACTION_REPEAT, tide_session_rollback(s, 1, 0, NULL, &err));
    OK(tide_session_rollback(s, 1, TIDE_ROLLBACK_REDO_EFFECTS, NULL, &err));
    tide_session_close(s);
}

static int roll_back_once(void *arg, const struct tide_event *ev)
{
    tide_session *s = arg;

    if (ev->seq == 2)
        OK(tide_session_rollback(s, 2, 0, NULL, &err));
    return 0;
}

static void messages_may_be_rolled_back_while_they_are_read(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");

    for (int i = 0; i < 6; i++)
        put(s, "message.user", SAID);
    OK(tide_session_rollback(s, 3, 0, NULL, &err));
    put(s, "message.user", SAID);
    OK(tide_session_read_messages(s, 0, roll_back_once, s, &err));
    tide_session_close(s);
}

/* ---- Forks --------------------------------------------------------------------------------------------------- */

static int count_messages(void *arg, const struct tide_event *ev)
{
    (void)ev;
    ++*(int64_t *)arg;
    return 0;
}

static int64_t messages_of(tide_session *s, int64_t seq)
{
    int64_t n = 0;

    OK(tide_session_read_messages(s, seq, count_messages, &n, &err));
    return n;
}

static void a_fork_of_a_long_session_sees_only_its_past(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "long"), *fork = NULL;
    struct tide_new_event batch[500];
    enum { TOTAL = SLOW_BUILD ? 20000 : 100000 };
    char id[TIDE_ID_SIZE];

    for (int i = 0; i < 500; i++)
        batch[i] = (struct tide_new_event){"message.user",
                                           "{\"turn\":1,\"content\":\"a message of some length, as they are\"}", 0};
    OK(tide_session_append(s, 0, batch, 499, NULL, &err));
    while (tide_session_last_seq(s) < TOTAL)
        OK(tide_session_append_async(s, 0, batch, 500, NULL, &err));
    OK(tide_session_flush(s, &err));
    OK(tide_session_fork(f->store, "long", 500, "fork", NULL, id, &err));
    OK(tide_session_open(f->store, "fork", TIDE_SESSION_APPEND, &fork, &err));
    assert_int_equal(tide_session_first_seq(fork), 501);
    assert_int_equal(messages_of(fork, 0), 499);
    put(fork, "memory.set", "{\"values\":{\"who\":\"fork\"}}");
    put(fork, "message.user", SAID);
    put(s, "memory.set", "{\"values\":{\"who\":\"parent\"}}");
    assert_int_equal(messages_of(fork, 0), 500);
    assert_int_equal(messages_of(s, 0), tide_session_last_seq(s) - 2);
    char *a = state_text(fork, 0), *b = state_text(s, 0);
    assert_non_null(strstr(a, "\"memory\":{\"who\":\"fork\"}"));
    assert_non_null(strstr(b, "\"memory\":{\"who\":\"parent\"}"));
    free(a);
    free(b);
    tide_session_close(fork);
    tide_session_close(s);
    ABOUT_SESSION(TIDE_HAS_FORKS, "long", tide_session_delete(f->store, "long", &err));
    OK(tide_session_delete(f->store, "fork", &err));
    OK(tide_session_delete(f->store, "long", &err));
    GIVES(TIDE_NOT_FOUND, tide_session_delete(f->store, "long", &err));
}

static void a_fork_inherits_content_and_open_effects_as_unknown(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    char id[TIDE_ID_SIZE];
    struct tide_usage usage;

    put(s, "memory.set", "{\"values\":{\"k\":1}}");
    put(s, "llm.usage", "{\"input_tokens\":7,\"cost\":1.5}");
    put(s, "run.started", "{\"run_id\":\"r\"}");
    put(s, "tool.started", "{\"call_id\":\"open\",\"tool\":\"mail\"}");
    put(s, "tool.started", "{\"call_id\":\"done\",\"tool\":\"mail\"}");
    put(s, "tool.completed", "{\"call_id\":\"done\"}");
    put(s, "queue.added", "{\"queue_id\":\"q\"}");
    OK(tide_session_fork(f->store, "a", 0, NULL, "{\"title\":\"F\"}", id, &err));
    put(s, "tool.completed", "{\"call_id\":\"open\"}");
    tide_session_close(s);
    s = reopen(f, id);
    char *text = state_text(s, 0);
    assert_non_null(strstr(text, "\"memory\":{\"k\":1}"));
    assert_non_null(strstr(
        text, "\"effects\":{\"open\":{\"tool\":\"mail\",\"effect\":\"once\",\"seq\":5,\"turn\":0,\"unknown\":true}}"));
    assert_non_null(strstr(text, "\"queue\":{}"));
    assert_non_null(strstr(text, "\"status\":\"idle\""));
    assert_non_null(strstr(text, "\"title\":\"F\""));
    free(text);
    OK(tide_session_get_usage(s, 0, &usage, &err));
    assert_int_equal(usage.input_tokens, 0);
    assert_int_equal(usage.cost_nano, 0);
    tide_session_close(s);
}

/* Never as another session: what it appends then would go there. */
static void a_handle_of_a_deleted_session_says_that_it_is_gone(void **state)
{
    struct fixture *f = *state;
    tide_session *s, *others[2] = {make(f, "a"), make(f, "z")};

    tide_session_close(make(f, "s"));
    s = reopen(f, "s");
    OK(tide_session_delete(f->store, "s", &err));
    GIVES(TIDE_NOT_FOUND, tide_session_refresh(s, &err));
    assert_string_equal(tide_session_id(s), "s");
    GIVES(TIDE_NOT_FOUND,
          tide_session_append(s, TIDE_APPEND_ANY, &(struct tide_new_event){"a.b", NULL, 0}, 1, NULL, &err));
    tide_session_close(s);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tide_session_last_seq(others[i]), 1);
        tide_session_close(others[i]);
    }
}

static void forks_can_be_stacked_a_thousand_deep(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "f0");
    enum { DEPTH = SLOW_BUILD ? 100 : FORKS_DEEP };
    char id[TIDE_ID_SIZE], from[TIDE_ID_SIZE] = "f0";

    put(s, "memory.set", "{\"values\":{\"deep\":\"down\"}}");
    tide_session_close(s);
    for (int i = 1; i <= DEPTH; i++) {
        snprintf(id, sizeof id, "f%d", i);
        OK(tide_session_fork(f->store, from, 0, id, NULL, id, &err));
        memcpy(from, id, sizeof from);
    }
    if (DEPTH == FORKS_DEEP)
        ABOUT_SESSION(TIDE_INVALID, from, tide_session_fork(f->store, from, 0, "toodeep", NULL, id, &err));
    OK(tide_session_fork(f->store, from, 2, "beside", NULL, id,
                         &err)); /* of the same past, but standing on its first session */
    s = reopen(f, from);
    assert_int_equal(tide_session_first_seq(s), DEPTH + 2);
    char *text = state_text(s, 0);
    assert_non_null(strstr(text, "\"deep\":\"down\""));
    free(text);
    int64_t n = 0;
    OK(tide_session_read(s, TIDE_READ_INHERITED, 0, 0, count_messages, &n, &err));
    assert_int_equal(n, DEPTH + 2);
    tide_session_close(s);
}

/* ---- Reading ------------------------------------------------------------------------------------------------- */

static void prefixes_find_one_session_or_say_why_not(void **state)
{
    struct fixture *f = *state;
    char id[TIDE_ID_SIZE];

    tide_session_close(make(f, "alpha"));
    tide_session_close(make(f, "alphabet"));
    tide_session_close(make(f, "beta"));
    OK(tide_session_resolve(f->store, "b", id, &err));
    assert_string_equal(id, "beta");
    OK(tide_session_resolve(f->store, "alpha", id, &err));
    assert_string_equal(id, "alpha");
    GIVES(TIDE_AMBIGUOUS, tide_session_resolve(f->store, "alp", id, &err));
    ABOUT_SESSION(TIDE_NOT_FOUND, "gamma", tide_session_resolve(f->store, "gamma", id, &err));
    GIVES(TIDE_INVALID, tide_session_resolve(f->store, "../", id, &err));
}

struct names {
    char text[200];
};

static int collect_name(void *arg, const struct tide_session_info *info)
{
    struct names *names = arg;
    size_t n = strlen(names->text);

    snprintf(names->text + n, sizeof names->text - n, "%s:%s ", info->id, tide_status_name(info->status));
    return 0;
}

static void lists_show_status_and_take_filters(void **state)
{
    struct fixture *f = *state;
    tide_session *s;
    static const struct {
        struct tide_list_filter filter;
        const char *want;
    } rows[] = {
        {{.size = sizeof rows[0].filter}, "d:idle c:running b:idle a:idle "},
        {{.size = sizeof rows[0].filter, .status = "failed"}, "b:idle "},
        {{.size = sizeof rows[0].filter, .status = "active"}, "c:running "},
        {{.size = sizeof rows[0].filter, .status = "idle", .limit = 1}, "d:idle "},
        {{.size = sizeof rows[0].filter, .agent = "tester"}, "d:idle c:running b:idle a:idle "},
        {{.size = sizeof rows[0].filter, .agent = "nobody"}, ""},
        {{.size = sizeof rows[0].filter, .task_id = "t1"}, "d:idle "},
    };

    tide_session_close(make(f, "a"));
    s = make(f, "b");
    put(s, "run.started", "{\"run_id\":\"r\"}");
    put(s, "run.failed", "{\"run_id\":\"r\",\"error\":{\"message\":\"m\"}}");
    tide_session_close(s);
    s = make(f, "c");
    put(s, "run.started", "{\"run_id\":\"r\"}");
    tide_session *d = NULL;
    OK(tide_session_create(f->store, "d", "{\"agent_id\":\"tester\",\"task_id\":\"t1\"}", &d, &err));
    tide_session_close(d);
    for (int round = 0; round < 2; round++) { /* with summaries, and without */
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct names got = {""};

            OK(tide_session_list(f->store, &rows[i].filter, collect_name, &got, &err));
            assert_string_equal(got.text, rows[i].want);
        }
        if (round == 0)
            drop_caches_of(f->url, env_real());
    }
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "status",
          tide_session_list(f->store,
                            &(struct tide_list_filter){.size = sizeof(struct tide_list_filter), .status = "asleep"},
                            collect_name, &(struct names){""}, &err));
    tide_session_close(s);
}

/* What was handed out stays as it is while the session goes on. */
static void what_is_known_of_one_needs_no_callback(void **state)
{
    struct fixture *f = *state;
    const struct tide_session_info *info;
    const struct tide_checkpoint *c;
    tide_session *s = NULL;
    char id[TIDE_ID_SIZE];

    OK(tide_session_create(f->store, "a",
                           "{\"title\":\"t\",\"working_dir\":\"/srv\",\"provider\":{\"type\":\"openai\"}}", &s, &err));
    put(s, "run.started", "{\"run_id\":\"r1\"}");
    OK(tide_session_get_info(s, &info, &err));
    OK(tide_checkpoint_save(s,
                            &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint),
                                                          .type = TIDE_CHECKPOINT_USER,
                                                          .description = "here"},
                            id, &err));
    OK(tide_checkpoint_load_latest(s, &c, &err));
    put(s, "run.completed", "{\"run_id\":\"r1\"}");
    put(s, "run.started", "{\"run_id\":\"r2\"}");
    put(s, "session.updated", "{\"title\":\"another\"}");
    assert_string_equal(info->run_id, "r1");
    assert_string_equal(info->title, "t");
    assert_string_equal(info->working_dir, "/srv");
    assert_string_equal(info->provider, "{\"type\":\"openai\"}");
    assert_int_equal(info->status, TIDE_STATUS_RUNNING);
    assert_string_equal(c->description, "here");
    assert_int_equal(c->type, TIDE_CHECKPOINT_USER);
    OK(tide_session_get_info(s, &info, &err));
    assert_string_equal(info->run_id, "r2");
    assert_string_equal(info->title, "another");
    tide_session_close(s);
}

/* It is a copy: it stays while the session goes on, and is replaced by the next. */
static void one_event_needs_no_callback(void **state)
{
    struct fixture *f = *state;
    const struct tide_event *ev = NULL, *none = NULL;
    tide_session *s = make(f, "a"), *fork = NULL;
    char fork_id[TIDE_ID_SIZE];
    struct tide_err why;

    put(s, "memory.set", "{\"values\":{\"k\":1}}");
    OK(tide_session_get_event(s, 2, &ev, &err));
    put(s, "memory.set", "{\"values\":{\"k\":2}}");
    OK(tide_session_refresh(s, &err));
    assert_int_equal(ev->seq, 2);
    assert_string_equal(ev->session_id, "a");
    assert_string_equal(ev->kind, "memory.set");
    assert_string_equal(ev->body, "{\"values\":{\"k\":1}}");
    assert_int_equal(ev->body_len, strlen(ev->body));
    assert_true(ev->ts_ms > 0);
    OK(tide_session_get_event(s, 3, &ev, &err));
    assert_string_equal(ev->body, "{\"values\":{\"k\":2}}");

    assert_int_equal(tide_session_get_event(s, 4, &none, &why), TIDE_NOT_FOUND);
    assert_int_equal(why.detail.subject, TIDE_SUBJECT_EVENT);
    assert_int_equal(why.detail.position, 4);
    assert_string_equal(why.detail.session_id, "a");
    assert_int_equal(tide_session_get_event(s, 0, &none, NULL), TIDE_INVALID);
    assert_int_equal(tide_session_get_event(s, -1, &none, NULL), TIDE_INVALID);
    assert_null(none);

    OK(tide_session_fork(f->store, "a", 2, "b", NULL, fork_id, &err));
    OK(tide_session_open(f->store, "b", TIDE_SESSION_READ, &fork, &err));
    OK(tide_session_get_event(fork, 2, &ev, &err));
    assert_string_equal(ev->body, "{\"values\":{\"k\":1}}");
    OK(tide_session_get_event(fork, 3, &ev, &err));
    assert_string_equal(ev->session_id, "b");
    assert_string_equal(ev->kind, "session.created");
    tide_session_close(fork);
    tide_session_close(s);
}

static void errors_and_usage_survive_rollback(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f, "a");
    struct tide_usage usage;
    int64_t n = 0;

    put(s, "llm.usage", "{\"input_tokens\":10,\"output_tokens\":20,\"cached_tokens\":5,\"cost\":0.000000001}");
    put(s, "llm.error", "{\"message\":\"429\"}");
    put(s, "tool.failed", "{\"call_id\":\"x\"}");
    put(s, "node.failed", "{\"node\":\"x\"}");
    put(s, "run.failed", "{}");
    put(s, "message.user", SAID);
    OK(tide_session_rollback(s, 1, 0, NULL, &err));
    put(s, "llm.usage", "{\"input_tokens\":1,\"cost\":2}");
    OK(tide_session_read_errors(s, count_messages, &n, &err));
    assert_int_equal(n, 4);
    OK(tide_session_get_usage(s, 0, &usage, &err));
    assert_int_equal(usage.input_tokens, 11);
    assert_int_equal(usage.calls, 2);
    assert_int_equal(usage.cost_nano, 2000000001);
    OK(tide_session_get_usage(s, 3, &usage, &err));
    assert_int_equal(usage.cost_nano, 1);
    GIVES(TIDE_INVALID, tide_session_get_usage(s, 99, &usage, &err));
    tide_session_close(s);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ids_are_checked),
        CASE(a_bad_event_stores_nothing_of_its_batch),
        CASE(key_order_and_numbers_are_kept_exactly),
        CASE(the_state_in_hand_is_the_state_on_disk),
        CASE(a_state_of_the_past_is_right_after_own_appends),
        CASE(an_input_in_between_is_a_conflict_until_it_was_read),
        CASE(snapshots_taken_around_inputs_are_right),
        CASE(a_handle_that_was_refused_the_lease_gets_it_later),
        CASE(a_fenced_handle_never_appends_again),
        CASE(what_may_only_be_data_says_nothing_of_runs),
        CASE(async_appends_are_there_after_flush),
        CASE(over_the_limit_is_refused_before_anything_is_written),
        CASE(checkpoints_are_listed_filtered_and_found),
        CASE(what_is_known_of_one_needs_no_callback),
        CASE(one_event_needs_no_callback),
        CASE(after_pruning_lists_latest_and_resume_are_right),
        CASE(rollback_past_a_finished_once_effect_is_refused_by_name),
        CASE(a_fork_rolled_back_past_its_parents_once_effect_is_refused),
        CASE(messages_may_be_rolled_back_while_they_are_read),
        CASE(a_fork_of_a_long_session_sees_only_its_past),
        CASE(a_fork_inherits_content_and_open_effects_as_unknown),
        CASE(a_handle_of_a_deleted_session_says_that_it_is_gone),
        CASE(forks_can_be_stacked_a_thousand_deep),
        CASE(prefixes_find_one_session_or_say_why_not),
        CASE(lists_show_status_and_take_filters),
        CASE(errors_and_usage_survive_rollback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
