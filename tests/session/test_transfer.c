/* SPDX-License-Identifier: Apache-2.0 */
/* Export and import: byte for byte there and back, and whatever is wrong with the file, nothing is left behind. */
#include <sys/wait.h>

#include "store_tamper.h"

#include "session/session.h"

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

static int set_up(void **state)
{
    struct fixture *f = mem_zero(sizeof *f);

    dir_make(f->dir);
    store_url_in(f->a, sizeof f->a, f->dir, "a");
    store_url_in(f->b, sizeof f->b, f->dir, "b");
    f->from = open_at(f->a, NULL);
    f->to = open_at(f->b, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    tide_store_close(f->from);
    tide_store_close(f->to);
    dir_remove(f->dir);
    free(f);
    return 0;
}

/* ---- Files in memory ------------------------------------------------------------------------------------------ */

struct source {
    struct str left;
    size_t piece;
    int fail_after; /* reads; 0: never */
};

static long give(void *arg, char *out, size_t max)
{
    struct source *s = arg;
    size_t n = s->left.len < max ? s->left.len : max;

    if (s->fail_after && --s->fail_after == 0)
        return -1;
    n = s->piece && n > s->piece ? s->piece : n;
    memcpy(out, s->left.ptr, n);
    s->left.ptr += n;
    s->left.len -= n;
    return (long)n;
}

static enum tide_code import_bytes(tide_store *store, struct str bytes, struct tide_err *err)
{
    struct source s = {bytes, 0, 0};
    char id[TIDE_ID_SIZE];

    return tide_session_import(store, give, NULL, &s, id, err);
}

static int count(void *arg, const struct tide_session_info *info)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static int sessions_in(tide_store *store)
{
    int n = 0;

    OK(tide_session_list(store, NULL, count, &n, &err));
    return n;
}

static void same_export(tide_store *store, const char *id, const struct buf *want)
{
    struct buf got = export_of(store, id);

    assert_int_equal(got.len, want->len);
    assert_memory_equal(got.ptr, want->ptr, want->len);
    buf_done(&got);
}

static tide_session *make(tide_store *store, const char *id, int events)
{
    tide_session *s = NULL;

    OK(tide_session_create(store, id, "{\"title\":\"\\u00e4 \\\"x\\\"\"}", &s, &err));
    for (int i = 0; i < events; i++)
        put(s, i % 7 ? "message.user" : "odd.kind", "{\"turn\":%d,\"content\":[1.50,\"\\u0000\",{\"seq\":1}],\"z\":-0}",
            i + 1);
    return s;
}

/* ---- There and back ------------------------------------------------------------------------------------------- */

static void a_session_comes_back_byte_for_byte(void **state)
{
    struct fixture *f = *state;
    tide_session *s = make(f->from, "a", 3000);
    char id[TIDE_ID_SIZE], *big = mem_zero(3000001);
    struct buf out;

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
    char *before = state_text(s, 7), *after;
    tide_session_close(s);
    out = export_of(f->from, "a");
    OK(import_bytes(f->to, buf_view(&out), &err));
    same_export(f->to, "a", &out);
    OK(tide_session_open(f->to, "a", TIDE_SESSION_APPEND, &s, &err));
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    after = state_text(s, 7);
    assert_string_equal(before, after);
    assert_int_equal(put(s, "message.user", SAID), 3006); /* and it goes on */
    tide_session_close(s);
    ABOUT_SESSION(TIDE_EXISTS, "a", import_bytes(f->to, buf_view(&out), &err));
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
    free(before);
    free(after);
    buf_done(&out);
}

static void forks_come_after_their_parents(void **state)
{
    struct fixture *f = *state;
    char id[TIDE_ID_SIZE];
    struct buf parent, fork, grandchild;

    tide_session_close(make(f->from, "p", 50));
    OK(tide_session_fork(f->from, "p", 20, "f", "{\"title\":\"F\"}", id, &err));
    OK(tide_session_fork(f->from, "f", 0, "g", NULL, id, &err));
    parent = export_of(f->from, "p");
    fork = export_of(f->from, "f");
    grandchild = export_of(f->from, "g");
    ABOUT_SESSION(TIDE_NOT_FOUND, "p", import_bytes(f->to, buf_view(&fork), &err));
    OK(import_bytes(f->to, buf_view(&parent), &err));
    OK(import_bytes(f->to, buf_view(&fork), &err));
    OK(import_bytes(f->to, buf_view(&grandchild), &err));
    same_export(f->to, "p", &parent);
    same_export(f->to, "f", &fork);
    same_export(f->to, "g", &grandchild);
    buf_done(&parent);
    buf_done(&fork);
    buf_done(&grandchild);
}

static void a_fork_of_another_history_is_refused(void **state)
{
    struct fixture *f = *state;
    char id[TIDE_ID_SIZE];
    struct buf fork;

    tide_session_close(make(f->from, "p", 5));
    OK(tide_session_fork(f->from, "p", 3, "f", NULL, id, &err));
    fork = export_of(f->from, "f");
    for (int64_t made_ms = env_now_ms(env_real()); env_now_ms(env_real()) == made_ms;)
        ;
    tide_session_close(make(f->to, "p", 5)); /* the same id, other times: another chain */
    GIVES(TIDE_CORRUPT, import_bytes(f->to, buf_view(&fork), &err));
    assert_int_equal(sessions_in(f->to), 1);
    buf_done(&fork);
}

static void keyed_exports_need_the_same_key(void **state)
{
    struct fixture *f = *state;
    static const char one[] = "0123456789abcdef", two[] = "fedcba9876543210";
    char path[300];
    tide_store *keyed, *same, *other;
    struct buf out, plain;

    store_url_in(path, sizeof path, f->dir, "k1");
    keyed = open_at(path, one);
    store_url_in(path, sizeof path, f->dir, "k2");
    same = open_at(path, one);
    store_url_in(path, sizeof path, f->dir, "k3");
    other = open_at(path, two);
    tide_session_close(make(keyed, "k", 30));
    tide_session_close(make(f->from, "plain", 3));
    out = export_of(keyed, "k");
    plain = export_of(f->from, "plain");
    OK(import_bytes(same, buf_view(&out), &err));
    same_export(same, "k", &out);
    GIVES(TIDE_WRONG_KEY, import_bytes(f->to, buf_view(&out), &err));
    GIVES(TIDE_WRONG_KEY, import_bytes(same, buf_view(&plain), &err));
    GIVES(TIDE_CORRUPT, import_bytes(other, buf_view(&out), &err));
    assert_int_equal(sessions_in(other), 0);
    tide_store_close(keyed);
    tide_store_close(same);
    tide_store_close(other);
    buf_done(&out);
    buf_done(&plain);
}

/* ---- Files that are not right --------------------------------------------------------------------------------- */

static void nothing_left(struct fixture *f)
{
    assert_int_equal(sessions_in(f->to), 0);
    assert_nothing_stored(f->b);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    struct fixture *f = *state;
    struct buf out;

    tide_session_close(make(f->from, "a", 12));
    out = export_of(f->from, "a");
    for (size_t len = 0; len < out.len - 1; len += 1 + len % 5) { /* all but the last newline */
        struct tide_err err = {0};
        enum tide_code code = import_bytes(f->to, (struct str){out.ptr, len}, &err);

        if (code != TIDE_INVALID && code != TIDE_CORRUPT)
            fail_msg("cut at %zu of %zu: %s %s", len, out.len, tide_code_name(code), err.msg);
    }
    nothing_left(f);
    OK(import_bytes(f->to, (struct str){out.ptr, out.len - 1}, &err)); /* without it the file is whole */
    buf_done(&out);
}

static void any_changed_byte_is_refused_or_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct rng r = {99};
    struct buf out;
    int taken = 0;

    tide_session_close(make(f->from, "a", 6));
    out = export_of(f->from, "a");
    for (size_t at = 0; at < out.len; at++) {
        char keep = out.ptr[at];

        out.ptr[at] = (char)(keep ^ (1 << rng_below(&r, 8)));
        if (import_bytes(f->to, buf_view(&out), NULL) == TIDE_OK) { /* then what it has must be the same session */
            out.ptr[at] = keep;
            same_export(f->to, "a", &out);
            OK(tide_session_delete(f->to, "a", &err));
            taken++;
        }
        out.ptr[at] = keep;
    }
    nothing_left(f);
    assert_true(taken < 30);
    buf_done(&out);
}

static void lines_added_doubled_dropped_or_swapped_are_refused(void **state)
{
    struct fixture *f = *state;
    struct buf out, bad = BUF_INIT(SIZE_MAX / 4);
    size_t starts[40], n = 0;

    tide_session_close(make(f->from, "a", 20));
    out = export_of(f->from, "a");
    starts[n++] = 0;
    for (size_t i = 0; i < out.len; i++) {
        if (out.ptr[i] == '\n')
            starts[n++] = i + 1;
    }
    n--; /* lines */
    for (int how = 0; how < 3; how++) {
        for (size_t line = 0; line < n; line++) {
            size_t next = line + 1 < n ? line + 1 : 0;

            buf_clear(&bad);
            buf_add(&bad, out.ptr, starts[line]);
            if (how == 0) /* doubled */
                buf_add(&bad, out.ptr + starts[line], starts[line + 1] - starts[line]);
            if (how == 2) /* swapped with the next */
                buf_add(&bad, out.ptr + starts[next], starts[next + 1] - starts[next]);
            if (how != 1)
                buf_add(&bad, out.ptr + starts[line], starts[line + 1] - starts[line]);
            if (how != 2)
                buf_add(&bad, out.ptr + starts[line + 1], out.len - starts[line + 1]);
            else if (next > line)
                buf_add(&bad, out.ptr + starts[next + 1], out.len - starts[next + 1]);
            if (import_bytes(f->to, buf_view(&bad), NULL) == TIDE_OK)
                fail_msg("how %d, line %zu was taken", how, line);
        }
    }
    buf_clear(&bad);
    buf_add(&bad, out.ptr, out.len);
    buf_add_str(&bad, STR("{\"tidemark\":\"export\"}\n"));
    SAYS(TIDE_INVALID, "more", import_bytes(f->to, buf_view(&bad), &err));
    GIVES(TIDE_INVALID, import_bytes(f->to, STR(""), &err));
    GIVES(TIDE_INVALID, import_bytes(f->to, STR("\n\n"), &err));
    GIVES(TIDE_INVALID, import_bytes(f->to, STR("hello"), &err));
    GIVES(TIDE_TOO_NEW, import_bytes(f->to, STR("{\"tidemark\":\"export\",\"version\":9}"), &err));
    nothing_left(f);
    buf_done(&bad);
    buf_done(&out);
}

static int stop_early(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    assert_true(done <= total);
    return 1;
}

static void a_stopped_or_failing_import_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct source s = {.fail_after = 30, .piece = 20000};
    char id[TIDE_ID_SIZE];
    struct buf out;

    tide_session_close(make(f->from, "a", 5000));
    out = export_of(f->from, "a");
    s.left = buf_view(&out);
    GIVES(TIDE_IO, tide_session_import(f->to, give, NULL, &s, id, &err));
    nothing_left(f);
    s = (struct source){.left = buf_view(&out)};
    GIVES(TIDE_CANCELLED, tide_session_import(f->to, give, stop_early, &s, id, &err));
    nothing_left(f);
    s = (struct source){.left = buf_view(&out), .piece = 7};
    OK(tide_session_import(f->to, give, NULL, &s, id, &err));
    same_export(f->to, "a", &out);
    buf_done(&out);
}

/* ---- A log made to hurt ----------------------------------------------------------------------------------------- */

/* Digests without a key can be made by anyone: what they prove is that nothing changed, not that it makes sense. */
static struct buf forged(const char *const (*events)[2], int n)
{
    struct buf lines = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
    unsigned char before[DIGEST_SIZE] = {0};
    struct digest_key none = {.len = 0};
    char hex[2 * DIGEST_SIZE + 1], extra[200];

    for (int i = 0; i < n; i++) {
        struct event ev = {.seq = i + 1,
                           .ts_ms = 1700000000000,
                           .epoch = 1,
                           .kind = str_from(events[i][0]),
                           .body = str_from(events[i][1])};

        event_digest(ev.digest, &none, before, STR("evil"), &ev);
        memcpy(before, ev.digest, DIGEST_SIZE);
        hex_encode(hex, ev.digest, DIGEST_SIZE);
        snprintf(extra, sizeof extra, "\"tidemark\":{\"epoch\":1,\"digest\":\"%s\"}", hex);
        event_write_json(&lines, &ev, str_from(extra));
        buf_add_char(&lines, '\n');
    }
    buf_addf(
        &out,
        "{\"tidemark\":\"export\",\"version\":1,\"session_id\":\"evil\",\"first_seq\":1,\"last_seq\":%d,\"keyed\":false,"
        "\"head_digest\":\"%s\"}\n",
        n, hex);
    buf_add_str(&out, buf_view(&lines));
    buf_done(&lines);
    return out;
}

static void a_forged_log_is_refused_or_harmless(void **state)
{
    static const char *const logs[][4][2] = {
        {{"session.created", "{}"}, {"session.rolled_back", "{\"to_seq\":2}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"}, {"session.rolled_back", "{\"to_seq\":99}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"}, {"session.rolled_back", "{\"to_seq\":-5}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"}, {"session.rolled_back", "{\"to_seq\":0}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"}, {"session.rolled_back", "{}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"}, {"session.rolled_back", "{\"to_seq\":\"x\"}"}, {"message.user", "{}"}, {"a", "{}"}},
        {{"session.created", "{}"},
         {"session.rolled_back", "{\"to_seq\":3}"},
         {"session.rolled_back", "{\"to_seq\":2}"},
         {"a", "{}"}},
        {{"memory.set", "{\"values\":7}"},
         {"checkpoint", "{\"checkpoint_id\":1}"},
         {"checkpoint.deleted", "{\"checkpoint_ids\":5}"},
         {"a", "{}"}},
        {{"checkpoint.deleted", "{\"checkpoint_ids\":[1,{},null,\"x\"]}"},
         {"tool.completed", "{}"},
         {"run.waiting", "{\"deadline_at\":7}"},
         {"llm.usage", "{\"cost\":\"x\",\"input_tokens\":9223372036854775807}"}},
        {{"session.created", "{\"title\":5,\"parent\":7}"},
         {"llm.usage", "{\"input_tokens\":9223372036854775807}"},
         {"llm.usage", "{\"input_tokens\":9223372036854775807}"},
         {"a", "{}"}},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        struct buf out = forged(logs[i], 4);
        tide_session *s = NULL;

        alarm(20); /* a loop without end is a failure, not a test that never ends */
        if (import_bytes(f->to, buf_view(&out), NULL) == TIDE_OK) {
            OK(tide_session_open(f->to, "evil", TIDE_SESSION_APPEND, &s, &err));
            for (int64_t seq = 0; seq <= 4; seq++)
                free(state_text(s, seq));
            put(s, "message.user", SAID);
            tide_session_close(s);
            assert_int_equal(sessions_in(f->to), 1);
            OK(tide_session_delete(f->to, "evil", &err));
        }
        alarm(0);
        buf_done(&out);
    }
    nothing_left(f);
}

/* ---- Killed --------------------------------------------------------------------------------------------------- */

struct dying {
    struct source s;
    int reads;
};

static long give_and_die(void *arg, char *out, size_t max)
{
    struct dying *d = arg;

    if (--d->reads == 0)
        kill(getpid(), SIGKILL);
    return give(&d->s, out, max);
}

/* An import of `out` into f->b by a process that is killed at its n-th read. */
static void import_and_die(struct fixture *f, const struct buf *out, int reads)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct dying d = {{.left = buf_view(out), .piece = 30000}, reads};
        tide_store *store = open_at(f->b, NULL);
        char id[TIDE_ID_SIZE];

        _exit(tide_session_import(store, give_and_die, NULL, &d, id, NULL) == TIDE_OK ? 3 : 4);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static void an_import_sweeps_what_others_left_when_they_died(void **state)
{
    struct fixture *f = *state;
    struct buf cut, whole;

    tide_session_close(make(f->from, "cut", 3000));
    tide_session_close(make(f->from, "whole", 5));
    cut = export_of(f->from, "cut");
    whole = export_of(f->from, "whole");
    tide_store_close(TAKE(f->from));
    tide_store_close(TAKE(f->to));
    import_and_die(f, &cut, 12);
    assert_true(stored_events(f->b) > 0);
    f->to = open_at(f->b, NULL);
    OK(import_bytes(f->to, buf_view(&whole), &err));
    assert_int_equal(stored_events(f->b), 6);
    OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
    buf_done(&cut);
    buf_done(&whole);
}

static void a_killed_import_leaves_nothing_and_can_be_repeated(void **state)
{
    struct fixture *f = *state;
    struct buf out;

    tide_session_close(make(f->from, "a", 3000));
    out = export_of(f->from, "a");
    tide_store_close(TAKE(f->from)); /* no store is open, and no thread runs, where children are made */
    tide_store_close(TAKE(f->to));
    for (int round = 1; round <= 4; round++) {
        import_and_die(f, &out, 3 * round);
        f->to = open_at(f->b, NULL);
        assert_int_equal(sessions_in(f->to), 0);
        GIVES(TIDE_NOT_FOUND, tide_session_resolve(f->to, "a", (char[TIDE_ID_SIZE]){0}, &err));
        OK(tide_store_check(f->to, 0, NULL, NULL, NULL, &err));
        if (round < 4)
            tide_store_close(TAKE(f->to));
    }
    OK(import_bytes(f->to, buf_view(&out), &err));
    same_export(f->to, "a", &out);
    assert_int_equal(stored_events(f->b), 3001);
    buf_done(&out);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_session_comes_back_byte_for_byte),
        CASE(forks_come_after_their_parents),
        CASE(a_fork_of_another_history_is_refused),
        CASE(keyed_exports_need_the_same_key),
        CASE(a_file_cut_anywhere_is_refused),
        CASE(any_changed_byte_is_refused_or_changes_nothing),
        CASE(lines_added_doubled_dropped_or_swapped_are_refused),
        CASE(a_stopped_or_failing_import_leaves_nothing),
        CASE(a_forged_log_is_refused_or_harmless),
        CASE(a_killed_import_leaves_nothing_and_can_be_repeated),
        CASE(an_import_sweeps_what_others_left_when_they_died),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
