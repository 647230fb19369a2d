/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between stores: the same events with the same digests, whatever is there already, and whoever is killed when;
 * what is seen at the destination is always whole.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "store_tamper.h"

#include "session/session.h"
#include "store/group.h"

#define BIG_EVENTS 40000 /* three pieces */

struct fixture {
    char dir[256], a[300], b[300];
    tide_store *from, *to;
};

static tide_store *open_at(const char *path, const char *key)
{
    struct tide_store_options opt = {
        .size = sizeof opt, .flags = TIDE_OPEN_CREATE, .key = key, .key_len = key ? strlen(key) : 0};
    tide_store *s = NULL;

    OK(tide_store_open(path, &opt, &s, &err));
    return s;
}

static void open_both(struct fixture *f)
{
    f->from = open_at(f->a, NULL);
    f->to = open_at(f->b, NULL);
}

static void close_both(struct fixture *f)
{
    tide_store_close(f->from);
    tide_store_close(f->to);
    f->from = f->to = NULL;
}

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->a, sizeof f->a, f->dir, "a");
    store_url_in(f->b, sizeof f->b, f->dir, "b");
    open_both(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    close_both(f);
    dir_remove(f->dir);
    free(f);
    return 0;
}

/* ---- What a copy says ----------------------------------------------------------------------------------------- */

struct heard {
    int problems, notices, calls;
    int stop_at, kill_at; /* call of progress; 0: never */
    tide_session *close;  /* at the first call of progress; NULL: none */
    tide_store *lose;     /* session "z" of this store is deleted then; NULL: none */
    char problem[1024], notice[1024];
};

static void on_problem(void *arg, const char *where, const char *what)
{
    struct heard *h = arg;

    h->problems++;
    snprintf(h->problem, sizeof h->problem, "%s: %s", where, what);
}

static void on_notice(void *arg, const char *where, const char *what)
{
    struct heard *h = arg;

    h->notices++;
    snprintf(h->notice, sizeof h->notice, "%s: %s", where, what);
}

static int on_progress(void *arg, const struct tide_copy_progress *at)
{
    struct heard *h = arg;

    if (at->sessions > at->sessions_total || at->events > at->events_total)
        abort();
    h->calls++;
    tide_session_close(h->close);
    h->close = NULL;
    if (h->lose && tide_session_delete(h->lose, "z", NULL))
        abort();
    h->lose = NULL;
    if (h->kill_at && h->calls == h->kill_at)
        kill(getpid(), SIGKILL);
    return h->stop_at && h->calls >= h->stop_at;
}

static enum tide_code copy_ids(tide_store *from, tide_store *to, const char *const *ids, struct heard *h,
                               struct tide_copy_result *r, struct tide_err *err)
{
    struct tide_copy_options opt = {.size = sizeof opt, ids, on_progress, on_problem, on_notice, h};

    return tide_store_copy(from, to, &opt, r, err);
}

static enum tide_code copy_all(tide_store *from, tide_store *to, struct heard *h, struct tide_copy_result *r,
                               struct tide_err *err)
{
    *h = (struct heard){.stop_at = h->stop_at, .kill_at = h->kill_at, .close = h->close, .lose = h->lose};
    return copy_ids(from, to, NULL, h, r, err);
}

/* ---- Sessions to copy, and what became of them ----------------------------------------------------------------- */

static tide_session *make(tide_store *store, const char *id, int events)
{
    tide_session *s = NULL;

    OK(tide_session_create(store, id, "{\"title\":\"\\u00e4 \\\"x\\\"\"}", &s, &err));
    for (int i = 0; i < events; i++)
        put(s, i % 7 ? "message.user" : "odd.kind", "{\"turn\":%d,\"content\":[1.50,\"\\u0000\"],\"z\":-0}", i + 1);
    return s;
}

static void fill(tide_session *s, int events, const char *body)
{
    struct tide_new_event many[500];

    for (int i = 0; i < 500; i++)
        many[i] = (struct tide_new_event){"message.user", body, 0};
    for (int left = events; left > 0; left -= 500)
        OK(tide_session_append(s, 0, many, left < 500 ? (size_t)left : 500, NULL, &err));
}

/* Every event with its seq, time, epoch, kind, body and digest. */
static void same_in(tide_store *from, tide_store *to, const char *id)
{
    struct buf want = export_of(from, id), got = export_of(to, id);

    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.ptr, want.ptr, want.len);
    buf_done(&want);
    buf_done(&got);
}

struct comparing {
    tide_store *from, *to;
    int n;
};

static int compare_one(void *arg, const struct tide_session_info *info)
{
    struct comparing *c = arg;

    same_in(c->from, c->to, info->id);
    c->n++;
    return 0;
}

/* All sessions that are seen at `to` are whole; how many there are. */
static int whole_in(struct fixture *f)
{
    struct comparing c = {f->from, f->to, 0};

    OK(tide_session_list(f->to, NULL, compare_one, &c, &err));
    return c.n;
}

static bool is_there(tide_store *store, const char *id)
{
    char whole[TIDE_ID_SIZE];

    return tide_session_resolve(store, id, whole, NULL) == TIDE_OK;
}

/* ---- There ----------------------------------------------------------------------------------------------------- */

static void every_event_keeps_its_place_and_its_digest(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f->from, "a", 300);
    char id[TIDE_ID_SIZE], *big = mem_zero(3000001), *before, *after;
    struct tide_copy_result r;
    struct heard h = {0};

    memset(big, 'B', 3000000);
    put(s, "message.tool", "{\"tool_call_id\":\"c1\",\"content\":\"%s\"}", big);
    free(big);
    OK(tide_checkpoint_save(
        s, &(struct tide_new_checkpoint){.size = sizeof(struct tide_new_checkpoint), .type = TIDE_CHECKPOINT_TURN}, id,
        &err));
    OK(tide_session_rollback(s, 5, 0, NULL, &err));
    tide_session_close(s);
    OK(tide_session_open(f->from, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, &err)); /* another epoch */
    put(s, "message.user", SAID);
    before = state_text(s, 0);
    tide_session_close(s);
    tide_session_close(make(f->from, "b", 0));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.copied, 2);
    assert_int_equal(r.events, 306);
    assert_int_equal(r.same + r.continued + r.refused + (uint64_t)h.problems, 0);
    same_in(f->from, f->to, "a");
    same_in(f->from, f->to, "b");
    OK(tide_session_open(f->to, "a", TIDE_SESSION_APPEND, &s, &err));
    after = state_text(s, 0);
    assert_string_equal(before, after);
    assert_int_equal(put(s, "message.user", SAID), 306); /* and it goes on */
    tide_session_close(s);
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
    free(before);
    free(after);
}

static void parents_come_before_their_forks_and_along_with_them(void **state)
{
    struct fixture *f = *state;
    static const char *const some[] = {"g", NULL}, *const named[] = {"f", "p", NULL};
    struct tide_copy_result r;
    struct heard h = {0};
    char id[TIDE_ID_SIZE];

    tide_session_close(make(f->from, "p", 50));
    OK(tide_session_fork(f->from, "p", 20, "f", "{\"title\":\"F\"}", id, &err));
    OK(tide_session_fork(f->from, "f", 0, "g", NULL, id, &err));
    tide_session_close(make(f->from, "other", 3));
    OK(copy_ids(f->from, f->to, named, &h, &r, &err));
    assert_int_equal(h.notices, 0); /* both are asked for */
    OK(copy_ids(f->from, f->to, some, &h, &r, &err));
    assert_int_equal(r.copied, 1);
    assert_int_equal(r.same, 2);
    assert_int_equal(h.notices, 2);
    assert_int_equal(whole_in(f), 3);
    assert_false(is_there(f->to, "other"));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.copied, 1);
    assert_int_equal(whole_in(f), 4);
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
}

static void other_kinds_of_stores_keep_the_digests_as_well(void **state)
{
    struct fixture *f = *state;
    const struct store_kind *kind = &store_kinds[on_files() ? 0 : 1];
    struct tide_copy_result r;
    struct heard h = {0};
    char path[600], id[TIDE_ID_SIZE], *big = mem_zero(200001);
    tide_session *s = make(f->from, "a", 700);
    tide_store *other;

    memset(big, 'B', 200000);
    put(s, "message.tool", "{\"tool_call_id\":\"c1\",\"content\":\"%s\"}", big);
    free(big);
    OK(tide_session_fork(f->from, "a", 300, "f", NULL, id, &err));
    snprintf(path, sizeof path, "%s%s/other%s", kind->scheme, f->dir, kind->suffix);
    other = open_at(path, NULL);
    OK(copy_all(f->from, other, &h, &r, &err));
    OK(copy_all(other, f->to, &h, &r, &err));
    same_in(f->from, other, "a");
    assert_int_equal(whole_in(f), 2);
    put(s, "message.user", SAID);
    tide_session_close(s);
    OK(copy_all(f->from, other, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    OK(copy_all(other, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    assert_int_equal(whole_in(f), 2);
    OK(tide_store_check(other, 0, NULL, NULL, NULL, &err));
    tide_store_close(other);
}

/* ---- What is there already ------------------------------------------------------------------------------------- */

static void what_is_there_is_passed_over_and_a_beginning_is_continued(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f->from, "a", 20);
    struct tide_copy_result r;
    struct heard h = {0};

    tide_session_close(make(f->from, "b", 5));
    OK(copy_all(f->from, f->to, &h, &r, &err)); /* one that is held here is copied as it stands */
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.same, 2);
    assert_int_equal(r.events, 0);
    put(s, "message.user", "{\"turn\":21,\"content\":\"hi\"}");
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    assert_int_equal(r.events, 1);
    fill(s, BIG_EVENTS, "{\"turn\":22,\"content\":\"hi\"}");
    tide_session_close(s);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    assert_int_equal(r.events, BIG_EVENTS);
    assert_int_equal(whole_in(f), 2);
    OK(tide_session_open(f->to, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &s, &err)); /* nobody holds it */
    tide_session_close(s);
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
}

static void another_one_is_refused_by_name_and_the_rest_goes_on(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    tide_session *s;

    tide_session_close(make(f->from, "a", 5));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    OK(tide_session_open(f->to, "a", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", "{\"content\":\"there 1\"}");
    tide_session_close(s);
    OK(copy_all(f->from, f->to, &h, &r, &err)); /* all of ours is there */
    assert_int_equal(r.same, 1);
    assert_int_equal(h.notices, 1);
    assert_non_null(strstr(h.notice, "a: has continued there"));
    OK(tide_session_open(f->from, "a", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", "{\"content\":\"here 1\"}");
    put(s, "message.user", "{\"content\":\"here 2\"}");
    tide_session_close(s);
    tide_session_close(make(f->from, "b", 5));
    GIVES(TIDE_EXISTS, copy_all(f->from, f->to, &h, &r, &err));
    assert_non_null(strstr(h.problem, "a: it is already there and differs from seq 7 on"));
    assert_int_equal(r.copied, 1);
    assert_int_equal(r.refused, 1);
    same_in(f->from, f->to, "b");
}

static void one_that_is_held_there_is_told(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f->from, "a", 5), *held;
    struct tide_copy_result r;
    struct heard h = {0};

    OK(copy_all(f->from, f->to, &h, &r, &err));
    put(s, "message.user", SAID);
    OK(tide_session_open(f->to, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &held, &err));
    GIVES(TIDE_HELD, copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(h.problems, 1);
    tide_session_close(held);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    same_in(f->from, f->to, "a");
    tide_session_close(s);
}

static void one_that_is_given_back_meanwhile_is_continued(void **state)
{
    struct fixture *f = *state;
    tide_store *other = open_at(f->b, NULL);
    tide_session *s = make(f->from, "a", 5);
    struct tide_copy_result r;
    struct heard h = {0};

    OK(copy_all(f->from, f->to, &h, &r, &err));
    put(s, "message.user", SAID);
    tide_session_close(s);
    tide_session_close(make(f->from, "b", 5));
    OK(tide_session_open(other, "a", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &h.close, &err)); /* until b is copied */
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    assert_int_equal(whole_in(f), 2);
    tide_store_close(other);
}

static void a_fork_of_another_history_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    char id[TIDE_ID_SIZE];

    tide_session_close(make(f->to, "p", 5));
    for (int64_t made_ms = env_now_ms(env_real()); env_now_ms(env_real()) == made_ms;)
        ; /* other times: another chain */
    tide_session_close(make(f->from, "p", 5));
    OK(tide_session_fork(f->from, "p", 3, "f", NULL, id, &err));
    GIVES(TIDE_EXISTS, copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.refused, 2);
    assert_non_null(strstr(h.problem, "f: it is a fork at seq 3 of 'p', which is another one there"));
    assert_false(is_there(f->to, "f"));
}

static void what_cannot_be_copied_is_refused_before_anything_is_done(void **state)
{
    struct fixture *f = *state;
    const struct tide_store_options read_only = {.size = sizeof read_only, .flags = TIDE_OPEN_READ_ONLY};
    static const char *const ids[] = {"a", "nobody", NULL};
    struct tide_copy_result r;
    struct heard h = {0};
    tide_store *same, *shut;

    tide_session_close(make(f->from, "a", 5));
    GIVES(TIDE_NOT_FOUND, copy_ids(f->from, f->to, ids, &h, &r, &err));
    assert_false(is_there(f->to, "a"));
    same = open_at(f->a, NULL);
    SAYS(TIDE_INVALID, "the same store", copy_all(f->from, f->from, &h, &r, &err));
    SAYS(TIDE_INVALID, "the same store", copy_all(f->from, same, &h, &r, &err));
    tide_store_close(same);
    OK(tide_store_open(f->b, &read_only, &shut, &err));
    GIVES(TIDE_READ_ONLY, copy_all(f->from, shut, &h, &r, &err));
    tide_store_close(shut);
}

/* ---- Keys ------------------------------------------------------------------------------------------------------ */

static void other_keys_keep_everything_but_the_digests(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    char path[300], id[TIDE_ID_SIZE];
    tide_session *s = make(f->from, "a", 30);
    tide_store *keyed;

    OK(tide_session_fork(f->from, "a", 20, "f", NULL, id, &err));
    store_url_in(path, sizeof path, f->dir, "k");
    keyed = open_at(path, "0123456789abcdef");
    OK(copy_all(f->from, keyed, &h, &r, &err));
    assert_int_equal(r.copied, 2);
    assert_int_equal(h.notices, 1); /* that it is so */
    OK(tide_store_check(keyed, 0, NULL, NULL, NULL, &err));
    OK(copy_all(f->from, keyed, &h, &r, &err));
    assert_int_equal(r.same, 2);
    put(s, "message.user", SAID);
    OK(copy_all(f->from, keyed, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    OK(copy_all(keyed, f->to, &h, &r, &err)); /* and back: the digests are those of the first again */
    assert_int_equal(whole_in(f), 2);
    put(s, "message.user", "{\"content\":\"here 1\"}");
    tide_session_close(s);
    OK(tide_session_open(keyed, "a", TIDE_SESSION_APPEND, &s, &err));
    put(s, "message.user", "{\"content\":\"there 1\"}");
    tide_session_close(s);
    GIVES(TIDE_EXISTS, copy_all(f->from, keyed, &h, &r, &err));
    tide_store_close(keyed);
}

/* ---- Damage ---------------------------------------------------------------------------------------------------- */

static void a_damaged_session_is_named_and_the_others_are_copied(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    char id[TIDE_ID_SIZE];

    tide_session_close(make(f->from, "ok1", 5));
    tide_session_close(make(f->from, "bad", 60));
    OK(tide_session_fork(f->from, "bad", 20, "fork", NULL, id, &err));
    tide_session_close(make(f->from, "ok2", 5));
    close_both(f);
    damage_event(f->a, 40);
    open_both(f);
    GIVES(TIDE_CORRUPT, copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.copied, 2);
    assert_int_equal(r.refused, 2); /* its fork has nothing to stand on */
    assert_int_equal(whole_in(f), 2);
    assert_false(is_there(f->to, "bad"));
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
}

/* ---- Kills, stops, others at the same time --------------------------------------------------------------------- */

static void make_many(struct fixture *f)
{
    tide_session *s = make(f->from, "big", 0);
    char id[TIDE_ID_SIZE];

    tide_session_close(make(f->from, "one", 5));
    fill(s, BIG_EVENTS, "{\"turn\":1,\"content\":\"and so on\"}");
    tide_session_close(s);
    OK(tide_session_fork(f->from, "big", 100, "fork", NULL, id, &err));
    tide_session_close(make(f->from, "two", 50));
}

#define MANY 4

/* A process of its own that copies everything; its end as waitpid() tells it. */
static int copy_in_child(const struct fixture *f, struct heard h)
{
    struct fixture own = *f;
    struct tide_copy_result r;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        open_both(&own);
        h.calls = 0;
        if (copy_ids(own.from, own.to, NULL, &h, &r, NULL))
            _exit(1);
        close_both(&own);
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void killed_anywhere_it_shows_whole_sessions_and_goes_on(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    int status = 0, n;

    make_many(f);
    for (n = 1; n < 20; n++) {
        close_both(f);
        status = copy_in_child(f, (struct heard){.kill_at = n});
        open_both(f);
        if (!WIFSIGNALED(status))
            break;
        assert_int_equal(WTERMSIG(status), SIGKILL);
        assert_in_range(whole_in(f), 0, MANY);
        OK(copy_all(f->from, f->to, &h, &r, &err));
        assert_int_equal(r.copied + r.same, MANY);
        assert_int_equal(whole_in(f), MANY);
        OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
        assert_int_equal(stored_events(f->a), stored_events(f->b)); /* nothing hidden is left */
        OK(tide_session_delete(f->to, "fork", &err));
        OK(tide_session_delete(f->to, "big", &err));
        OK(tide_session_delete(f->to, "one", &err));
        OK(tide_session_delete(f->to, "two", &err));
    }
    assert_int_equal(status, 0);
    assert_true(n > 5); /* it was killed between its pieces */
}

static void killed_again_and_again_it_arrives(void **state)
{
    struct fixture *f = *state;
    int status, n = 0;

    make_many(f);
    close_both(f);
    do
        status = copy_in_child(f, (struct heard){.kill_at = 5}); /* one session further each time */
    while (WIFSIGNALED(status) && ++n < 20);
    open_both(f);
    assert_int_equal(status, 0);
    assert_true(n > 0);
    assert_int_equal(whole_in(f), MANY);
}

static void killed_while_it_continues_it_goes_on_from_there(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    tide_session *s = make(f->from, "a", 5);

    OK(copy_all(f->from, f->to, &h, &r, &err));
    fill(s, BIG_EVENTS, "{\"turn\":1,\"content\":\"hi\"}");
    tide_session_close(s);
    close_both(f);
    assert_true(WIFSIGNALED(copy_in_child(f, (struct heard){.kill_at = 2})));
    open_both(f);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    assert_in_range(r.events, 1, BIG_EVENTS - 1); /* not all again */
    same_in(f->from, f->to, "a");
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
}

static void killed_while_it_continues_a_recovery_there_leaves_the_half_alone(void **state)
{
    struct fixture *f = *state;
    struct tide_recovery found;
    struct tide_copy_result r;
    struct heard h = {0};
    tide_session *s = make(f->from, "a", 5);
    tide_run *run = NULL;

    OK(tide_run_start(s, NULL, &run, &err));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    fill(s, BIG_EVENTS, "{\"turn\":1,\"content\":\"hi\"}");
    tide_run_close(run);
    tide_session_close(s);
    close_both(f);
    assert_true(WIFSIGNALED(copy_in_child(f, (struct heard){.kill_at = 2})));
    open_both(f);
    OK(tide_store_recover(f->to, 0, NULL, NULL, &found, &err));
    assert_int_equal(found.looked_at, 0); /* what it would write there is no part of the session */
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    same_in(f->from, f->to, "a");
}

static void a_stopped_copy_leaves_whole_sessions_only(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;

    make_many(f);
    for (int n = 1; n < 20; n++) {
        struct heard h = {.stop_at = n};
        enum tide_code code = copy_all(f->from, f->to, &h, &r, NULL);

        assert_in_range(whole_in(f), 0, MANY);
        if (code == TIDE_OK)
            break;
        assert_int_equal(code, TIDE_CANCELLED);
    }
    assert_int_equal(whole_in(f), MANY);
    assert_int_equal(stored_events(f->a), stored_events(f->b));
}

static void one_that_is_deleted_meanwhile_is_not_missed(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {.lose = f->from};
    tide_session *s = make(f->from, "big", 0);

    fill(s, BIG_EVENTS, "{\"turn\":1,\"content\":\"hi\"}");
    tide_session_close(s);
    tide_session_close(make(f->from, "z", 3));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.copied, 1);
    assert_int_equal(r.refused, 0);
    assert_int_equal(h.notices, 1);
    assert_non_null(strstr(h.notice, "z: was deleted meanwhile"));
    assert_false(is_there(f->to, "z"));
}

static void two_copies_at_once_do_no_harm(void **state)
{
    struct fixture *f = *state;
    struct tide_copy_result r;
    struct heard h = {0};
    pid_t pids[2];

    make_many(f);
    close_both(f);
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(copy_in_child(f, (struct heard){0}) ? 1 : 0);
    }
    for (int i = 0; i < 2; i++) {
        int status = 0;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status)); /* 1: told that the other was at it */
    }
    open_both(f);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(whole_in(f), MANY);
    assert_int_equal(stored_events(f->a), stored_events(f->b));
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
}

/* ---- Runs ------------------------------------------------------------------------------------------------------ */

static int take_status(void *arg, const struct tide_session_info *info)
{
    snprintf(arg, 64, "%s", tide_status_name(info->status));
    return 0;
}

static void has_status(tide_store *store, const char *id, const char *want)
{
    tide_session *s = NULL;
    char status[64] = "";

    OK(tide_session_open(store, id, TIDE_SESSION_READ, &s, &err));
    OK(session_shown(s, take_status, status, &err));
    tide_session_close(s);
    assert_string_equal(status, want);
}

static void a_wait_can_be_answered_where_it_was_copied_to(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options wait = {
        .size = sizeof wait, .name = "w", .kind = TIDE_WAIT_INPUT, .question = "well?"};
    struct tide_run_options answer = {.size = sizeof answer, .input = "\"yes\""};
    char token[TIDE_TOKEN_SIZE] = "";
    struct tide_copy_result r;
    struct heard h = {0};
    tide_session *s = make(f->from, "w", 1);
    tide_run *run = NULL;

    OK(tide_run_start(s, NULL, &run, &err));
    GIVES(TIDE_WAITING, tide_run_wait(run, &wait, NULL, token, &err));
    tide_run_close(run);
    tide_session_close(s);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    same_in(f->from, f->to, "w");
    has_status(f->to, "w", "waiting");
    answer.token = token;
    OK(tide_session_open(f->to, "w", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_run_resume(s, &answer, NULL, &run, &err));
    tide_run_close(run);
    tide_session_close(s);
}

static void a_run_under_way_does_not_go_on_in_two_places(void **state)
{
    struct fixture *f = *state;
    struct tide_recovery found;
    struct tide_copy_result r;
    struct heard h = {0};
    tide_session *s = make(f->from, "r", 1);
    tide_run *run = NULL;

    OK(tide_run_start(s, NULL, &run, &err));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    has_status(f->from, "r", "running");
    has_status(f->to, "r", "interrupted_startup");
    OK(tide_store_recover(f->to, 0, NULL, NULL, &found, &err));
    assert_int_equal(found.looked_at, 0); /* it is at work elsewhere */
    OK(tide_run_set(run, "k", "1", &err));
    OK(copy_all(f->from, f->to, &h, &r, &err));
    assert_int_equal(r.continued, 1);
    OK(tide_run_end(
        run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_COMPLETED},
        &err));
    tide_run_close(run);
    tide_session_close(s);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    has_status(f->to, "r", "idle");
    same_in(f->from, f->to, "r");
}

static void a_run_whose_process_is_gone_is_recovered_there_as_here(void **state)
{
    struct fixture *f = *state;
    struct tide_recovery found;
    struct tide_copy_result r;
    struct heard h = {0};
    int status = 0;
    pid_t pid;

    close_both(f);
    pid = fork();
    if (pid == 0) {
        tide_session *s;
        tide_run *run = NULL;

        f->from = open_at(f->a, NULL);
        s = make(f->from, "r", 1);
        OK(tide_run_start(s, NULL, &run, &err));
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    open_both(f);
    OK(copy_all(f->from, f->to, &h, &r, &err));
    same_in(f->from, f->to, "r");
    OK(tide_store_recover(f->to, 0, NULL, NULL, &found, &err));
    assert_int_equal(found.interrupted, 1);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

static void a_long_session_needs_little_memory(void **state)
{
    struct fixture *f = *state;
    struct rusage used;
    int status = 0;
    char body[400];
    pid_t pid;

    if (SLOW_BUILD)
        skip(); /* a sanitizer's own memory counts as well */
    snprintf(body, sizeof body, "{\"content\":\"%0300d\"}", 0);
    close_both(f);
    pid = fork();
    if (pid == 0) { /* so that the memory of making it is not ours */
        tide_session *s;

        f->from = open_at(f->a, NULL);
        s = make(f->from, "long", 0);
        fill(s, 250000, body);
        tide_session_close(s);
        tide_store_close(f->from);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    pid = fork();
    if (pid == 0)
        _exit(copy_in_child(f, (struct heard){0}) || getrusage(RUSAGE_CHILDREN, &used) || used.ru_maxrss > 64 * 1024);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    open_both(f);
}

#define SMALL_SESSIONS 18000

/* As one that copies makes them: many in one commit. */
static void make_small(struct store *store)
{
    const struct event ev = {.kind = STR("message.user"), .body = STR("{\"turn\":1}"), .ts_ms = 1700000000000};
    struct event events[6] = {ev, ev, ev, ev, ev, ev};
    struct batch *list[200];
    char id[32];

    for (int i = 0; i < SMALL_SESSIONS; i += 200) {
        for (int k = 0; k < 200; k++) {
            snprintf(id, sizeof id, "s%06d", i + k);
            list[k] =
                batch_new(str_from(id), BATCH_CREATE | BATCH_ACQUIRE | BATCH_RELEASE, events, 6, STR(""), STR(""));
            list[k]->expect_seq = STORE_ANY_SEQ;
            group_submit(store->group, list[k], GROUP_AWAITED);
        }
        for (int k = 0; k < 200; k++) {
            group_wait(store->group, list[k]);
            assert_int_equal(list[k]->code, TIDE_OK);
            batch_free(list[k]);
        }
    }
}

static void many_small_sessions_need_little_memory(void **state)
{
    struct fixture *f = *state;
    struct rusage used;
    int status = 0;
    pid_t pid;

    if (SLOW_BUILD || strncmp(f->a, "files:", 6) == 0)
        skip(); /* what is remembered of sessions is the concern of the other kind; files are made slowly */
    make_small(store_of(f->from));
    close_both(f);
    pid = fork();
    if (pid == 0)
        _exit(copy_in_child(f, (struct heard){0}) || getrusage(RUSAGE_CHILDREN, &used) || used.ru_maxrss > 56 * 1024);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    open_both(f);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_event_keeps_its_place_and_its_digest),
        T(parents_come_before_their_forks_and_along_with_them),
        T(other_kinds_of_stores_keep_the_digests_as_well),
        T(what_is_there_is_passed_over_and_a_beginning_is_continued),
        T(another_one_is_refused_by_name_and_the_rest_goes_on),
        T(one_that_is_held_there_is_told),
        T(one_that_is_given_back_meanwhile_is_continued),
        T(a_fork_of_another_history_is_refused),
        T(what_cannot_be_copied_is_refused_before_anything_is_done),
        T(other_keys_keep_everything_but_the_digests),
        T(a_damaged_session_is_named_and_the_others_are_copied),
        T(killed_anywhere_it_shows_whole_sessions_and_goes_on),
        T(killed_again_and_again_it_arrives),
        T(killed_while_it_continues_it_goes_on_from_there),
        T(killed_while_it_continues_a_recovery_there_leaves_the_half_alone),
        T(a_stopped_copy_leaves_whole_sessions_only),
        T(one_that_is_deleted_meanwhile_is_not_missed),
        T(two_copies_at_once_do_no_harm),
        T(a_wait_can_be_answered_where_it_was_copied_to),
        T(a_run_under_way_does_not_go_on_in_two_places),
        T(a_run_whose_process_is_gone_is_recovered_there_as_here),
        T(a_long_session_needs_little_memory),
        T(many_small_sessions_need_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
