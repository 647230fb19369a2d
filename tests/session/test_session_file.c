/* SPDX-License-Identifier: Apache-2.0 */
/* The session file of a session and the index of its tokens: what they say of every standing, and which appends carry them. */
#include "runs.h"

#include "session/session_file.h"
#include "session/session.h"

#define CREATED 1767225600000 /* 2026-01-01T00:00:00.000Z; event n comes n seconds later */

/* ---- From logs written by hand ------------------------------------------------------------------------------- */

struct line {
    const char *kind, *body;
};

static struct state *state_of(const struct line *lines)
{
    struct state *s = state_new(STR("s1"));
    struct arena scratch = ARENA_INIT;

    for (int64_t seq = 1; lines[seq - 1].kind; seq++) {
        struct event ev = {.seq = seq, .ts_ms = CREATED + 1000 * seq};

        ev.kind = str_from(lines[seq - 1].kind);
        ev.body = str_from(lines[seq - 1].body);
        state_apply(s, &ev, &scratch);
    }
    arena_done(&scratch);
    return s;
}

static char *session_file_of(const struct state *s)
{
    struct buf out = BUF_INIT(1 << 20);
    struct head h = {.created_ms = CREATED};

    session_file_write(&out, s, &h);
    return buf_take(&out);
}

static char *tokens_of(const struct state *s)
{
    struct buf out = BUF_INIT(1 << 20);

    session_file_tokens(&out, s);
    return buf_take(&out);
}

static void a_session_file_has_these_members_in_this_order(void **state)
{
    static const struct line log[] = {
        {"session.created",
         "{\"agent\":\"a\",\"provider\":{\"type\":\"anthropic\",\"model\":\"m-1\"},\"working_dir\":\"/srv/\\\"x\\\"\"}"},
        {"session.updated", "{\"title\":\"Caf\\u00e9\"}"},
        {"run.started", "{\"run_id\":\"r1\",\"boot_id\":\"b1\"}"},
        {"token.minted", "{\"token_id\":\"t1\",\"run_id\":\"r1\",\"secret_hash\":\"00ff\"}"},
        {"run.waiting", "{\"run_id\":\"r1\",\"wait_name\":\"ok\",\"wait_kind\":\"approval\",\"resume_token_id\":\"t1\","
                        "\"question\":\"Ship it?\",\"deadline_at\":\"2026-02-01T00:00:00.000Z\"}"},
        {NULL, NULL},
    };
    AUTO(state_freep) struct state *s = state_of(log);
    char *session_file = session_file_of(s);

    (void)state;
    assert_string_equal(session_file, "{\n"
                                      "  \"id\": \"s1\",\n"
                                      "  \"title\": \"Café\",\n"
                                      "  \"working_dir\": \"/srv/\\\"x\\\"\",\n"
                                      "  \"provider\": {\n"
                                      "    \"type\": \"anthropic\",\n"
                                      "    \"model\": \"m-1\"\n"
                                      "  },\n"
                                      "  \"created_at\": \"2026-01-01T00:00:00.000Z\",\n"
                                      "  \"updated_at\": \"2026-01-01T00:00:05.000Z\",\n"
                                      "  \"last_seq\": 5,\n"
                                      "  \"run\": {\n"
                                      "    \"run_id\": \"r1\",\n"
                                      "    \"boot_id\": \"b1\",\n"
                                      "    \"started_at\": \"2026-01-01T00:00:03.000Z\",\n"
                                      "    \"ended_at\": null,\n"
                                      "    \"wait\": {\n"
                                      "      \"kind\": \"approval\",\n"
                                      "      \"since_seq\": 5,\n"
                                      "      \"resume_token_id\": \"t1\",\n"
                                      "      \"deadline_at\": \"2026-02-01T00:00:00.000Z\"\n"
                                      "    }\n"
                                      "  },\n"
                                      "  \"recovery\": {\n"
                                      "    \"last_boot_seen\": \"b1\",\n"
                                      "    \"interruption\": null\n"
                                      "  }\n"
                                      "}\n");
    free(session_file);
}

#define STARTED                                                                                                        \
    {                                                                                                                  \
        "run.started", "{\"run_id\":\"r1\",\"boot_id\":\"b1\"}"                                                        \
    }
#define MINTED                                                                                                         \
    {                                                                                                                  \
        "token.minted", "{\"token_id\":\"t1\",\"run_id\":\"r1\",\"wait_kind\":\"input\",\"secret_hash\":\"00ff\","     \
                        "\"expires_at\":\"2026-02-01T00:00:00.000Z\"}"                                                 \
    }
#define WAITS                                                                                                          \
    {                                                                                                                  \
        "run.waiting", "{\"run_id\":\"r1\",\"wait_kind\":\"input\",\"resume_token_id\":\"t1\"}"                        \
    }
#define WAIT "{\"kind\":\"input\",\"since_seq\":3,\"resume_token_id\":\"t1\",\"deadline_at\":null}"
#define RUN(ended, wait)                                                                                               \
    "{\"run_id\":\"r1\",\"boot_id\":\"b1\",\"started_at\":\"2026-01-01T00:00:01.000Z\",\"ended_at\":" ended            \
    ",\"wait\":" wait "}"
#define RECOVERY(boot, why) "{\"last_boot_seen\":" boot ",\"interruption\":" why "}"
#define TOKEN(status, wait)                                                                                            \
    "[{\"token_id\":\"t1\",\"run_id\":\"r1\",\"wait_kind\":" wait ",\"status\":\"" status                              \
    "\",\"expires_at\":\"2026-02-01T00:00:00.000Z\",\"secret_hash\":\"00ff\"}]"
#define AT(s) "\"2026-01-01T00:00:0" #s ".000Z\""

static const struct standing {
    const char *name;
    struct line log[8];
    const char *run, *recovery, *tokens;
} standings[] = {
    {"nothing but a message", {{"message.user", SAID}}, "null", RECOVERY("null", "null"), "[]"},
    {"runs", {STARTED}, RUN("null", "null"), RECOVERY("\"b1\"", "null"), "[]"},
    {"completed", {STARTED, {"run.completed", "{}"}}, RUN(AT(2), "null"), RECOVERY("\"b1\"", "null"), "[]"},
    {"failed",
     {STARTED, {"run.failed", "{\"reason\":\"exit\"}"}},
     RUN(AT(2), "null"),
     RECOVERY("\"b1\"", "null"),
     "[]"},
    {"cancelled",
     {STARTED, {"run.cancelled", "{\"reason\":\"user\"}"}},
     RUN(AT(2), "null"),
     RECOVERY("\"b1\"", "null"),
     "[]"},
    {"interrupted",
     {STARTED, {"run.interrupted", "{\"reason\":\"process_restart\"}"}},
     RUN(AT(2), "null"),
     RECOVERY("\"b1\"", "\"process_restart\""),
     "[]"},
    {"interrupted, nobody knows why",
     {STARTED, {"run.interrupted", "{}"}},
     RUN(AT(2), "null"),
     RECOVERY("\"b1\"", "\"interrupted\""),
     "[]"},
    {"waits", {STARTED, MINTED, WAITS}, RUN("null", WAIT), RECOVERY("\"b1\"", "null"), TOKEN("active", "\"input\"")},
    {"sleeps",
     {STARTED, {"run.waiting", "{\"wait_kind\":\"timer\",\"due_at\":\"2026-02-01T00:00:00.000Z\"}"}},
     RUN("null", "{\"kind\":\"timer\",\"since_seq\":2,\"resume_token_id\":null,\"deadline_at\":null}"),
     RECOVERY("\"b1\"", "null"),
     "[]"},
    {"waits since an earlier event",
     {STARTED, {"run.waiting", "{\"wait_kind\":\"input\",\"since_seq\":1}"}},
     RUN("null", "{\"kind\":\"input\",\"since_seq\":1,\"resume_token_id\":null,\"deadline_at\":null}"),
     RECOVERY("\"b1\"", "null"),
     "[]"},
    {"interrupted while it waited",
     {STARTED,
      MINTED,
      WAITS,
      {"token.revoked", "{\"token_id\":\"t1\"}"},
      {"run.interrupted", "{\"reason\":\"wait_timeout\"}"}},
     RUN(AT(5), WAIT),
     RECOVERY("\"b1\"", "\"wait_timeout\""),
     TOKEN("revoked", "\"input\"")},
    {"cancelled while it waited",
     {STARTED, MINTED, WAITS, {"token.revoked", "{\"token_id\":\"t1\"}"}, {"run.cancelled", "{}"}},
     RUN(AT(5), "null"),
     RECOVERY("\"b1\"", "null"),
     TOKEN("revoked", "\"input\"")},
    {"its token has expired",
     {STARTED, MINTED, WAITS, {"token.expired", "{\"token_id\":\"t1\"}"}},
     RUN("null", WAIT),
     RECOVERY("\"b1\"", "null"),
     TOKEN("expired", "\"input\"")},
    {"answered, by another process",
     {STARTED,
      MINTED,
      WAITS,
      {"token.consumed", "{\"token_id\":\"t1\"}"},
      {"run.resumed", "{\"run_id\":\"r1\",\"boot_id\":\"b2\"}"}},
     "{\"run_id\":\"r1\",\"boot_id\":\"b2\",\"started_at\":\"2026-01-01T00:00:01.000Z\",\"ended_at\":null,\"wait\":null}",
     RECOVERY("\"b2\"", "null"),
     TOKEN("consumed", "\"input\"")},
    {"opened again after its end",
     {STARTED, {"run.interrupted", "{}"}, {"run.resumed", "{\"run_id\":\"r1\"}"}},
     RUN("null", "null"),
     RECOVERY("\"b1\"", "null"),
     "[]"},
    {"a new run",
     {STARTED, MINTED, WAITS, {"run.interrupted", "{}"}, {"run.started", "{\"run_id\":\"r2\",\"boot_id\":\"b2\"}"}},
     "{\"run_id\":\"r2\",\"boot_id\":\"b2\",\"started_at\":" AT(5) ",\"ended_at\":null,\"wait\":null}",
     RECOVERY("\"b2\"", "null"),
     TOKEN("active", "\"input\"")},
    {"a run by somebody else, without ids",
     {{"run.waiting", "{\"wait_kind\":\"input\"}"}},
     "{\"run_id\":null,\"boot_id\":null,\"started_at\":null,\"ended_at\":null,\"wait\":"
     "{\"kind\":\"input\",\"since_seq\":1,\"resume_token_id\":null,\"deadline_at\":null}}",
     RECOVERY("null", "null"),
     "[]"},
    {"a token without a run", {MINTED}, "null", RECOVERY("null", "null"), TOKEN("active", "\"input\"")},
};
#define STANDINGS (sizeof standings / sizeof standings[0])

static void expect_member(const char *name, const char *text, const char *member, const char *want)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf got = BUF_INIT(1 << 20);
    struct json *v = NULL;

    OK(json_parse(&a, str_from(text), NULL, &v, NULL, &err));
    assert_non_null(json_get(v, str_from(member)));
    json_write(&got, json_get(v, str_from(member)));
    if (strcmp(buf_cstr(&got), want) != 0)
        fail_msg("%s: %s is %s, not %s", name, member, buf_cstr(&got), want);
}

static void a_session_file_says_where_a_session_stands(void **state)
{
    (void)state;
    for (size_t i = 0; i < STANDINGS; i++) {
        AUTO(state_freep) struct state *s = state_of(standings[i].log);
        char *session_file = session_file_of(s), *tokens = tokens_of(s);

        expect_member(standings[i].name, session_file, "run", standings[i].run);
        expect_member(standings[i].name, session_file, "recovery", standings[i].recovery);
        expect_member(standings[i].name, tokens, "tokens", standings[i].tokens);
        free(session_file);
        free(tokens);
    }
}

/* A state that was loaded, from a snapshot or from what lists know, gives what the writer's own gave. */
static void the_same_state_gives_the_same_bytes(void **state)
{
    static const enum state_part parts[] = {STATE_ALL, STATE_SNAPSHOT, STATE_SUMMARY};

    (void)state;
    for (size_t i = 0; i < STANDINGS * 3; i++) {
        AUTO(state_freep) struct state *s = state_of(standings[i / 3].log);
        AUTO(state_freep) struct state *loaded = NULL;
        AUTO(buf_done) struct buf text = BUF_INIT(1 << 20);
        char *session_file = session_file_of(s), *tokens = tokens_of(s), *card_again, *tokens_again;

        state_encode(&text, s, parts[i % 3]);
        OK(state_decode(buf_view(&text), &loaded, &err));
        card_again = session_file_of(loaded);
        tokens_again = tokens_of(loaded);
        assert_string_equal(session_file, card_again);
        if (parts[i % 3] != STATE_SUMMARY) /* lists do not know them */
            assert_string_equal(tokens, tokens_again);
        free(session_file);
        free(tokens);
        free(card_again);
        free(tokens_again);
    }
}

static void what_is_not_known_is_null(void **state)
{
    static const struct line log[] = {{"session.created", "{\"title\":null}"}, {NULL, NULL}};
    static const char *const members[] = {"title", "working_dir", "provider", "run"};
    AUTO(state_freep) struct state *s = state_of(log);
    char *session_file = session_file_of(s), *tokens = tokens_of(s);

    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        expect_member("bare", session_file, members[i], "null");
    assert_string_equal(tokens, "{\n  \"tokens\": []\n}\n");
    free(session_file);
    free(tokens);
}

static void a_provider_is_whatever_the_session_has(void **state)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"{\"provider\":{}}", "{}"},
        {"{\"provider\":{\"a\":[1,2.50,{\"b\":null}],\"c\":[]}}", "{\"a\":[1,2.50,{\"b\":null}],\"c\":[]}"},
        {"{\"provider\":\"openai\"}", "\"openai\""}, /* by others */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct line log[] = {{"session.created", rows[i].body}, {NULL, NULL}};
        AUTO(state_freep) struct state *s = state_of(log);
        char *session_file = session_file_of(s);

        expect_member(rows[i].body, session_file, "provider", rows[i].want);
        free(session_file);
    }
}

static void a_provider_nested_as_deep_as_bodies_may_be_has_a_session_file(void **state)
{
    AUTO(buf_done) struct buf body = BUF_INIT(1 << 20);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(state_freep) struct state *s = NULL;
    struct json *v;
    char *session_file;

    (void)state;
    buf_add_str(&body, STR("{\"provider\":"));
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_add_char(&body, '[');
    for (int i = 0; i < JSON_MAX_DEPTH - 1; i++)
        buf_add_char(&body, ']');
    buf_add_char(&body, '}');
    OK(json_parse(&a, buf_view(&body), NULL, &v, NULL, &err));
    s = state_of((const struct line[]){{"session.created", buf_cstr(&body)}, {NULL, NULL}});
    session_file = session_file_of(s);
    assert_non_null(strstr(session_file, "\"last_seq\": 1"));
    free(session_file);
}

/* ---- What appends hand to the store -------------------------------------------------------------------------- */

static struct witness {
    const struct store_ops *real;
    struct store_ops ops;
    struct batch last; /* texts are in the buffers below */
    char session_file[4096], tokens[4096], kinds[512];
} seen;

static void commit(struct store *store, struct batch *list)
{
    for (const struct batch *b = list; b; b = b->next) {
        size_t at = 0;

        seen.last = *b;
        snprintf(seen.session_file, sizeof seen.session_file, "%.*s", STR_ARG(b->session_file));
        snprintf(seen.tokens, sizeof seen.tokens, "%.*s", STR_ARG(b->tokens));
        seen.kinds[0] = 0;
        for (size_t i = 0; i < b->n && at < sizeof seen.kinds; i++)
            at += (size_t)snprintf(seen.kinds + at, sizeof seen.kinds - at, "%.*s ", STR_ARG(b->events[i].kind));
    }
    seen.real->commit(store, list);
}

static void watch(struct fixture *f, bool session_files)
{
    struct store *s = store_of(f->store);

    seen.real = s->ops;
    seen.ops = *s->ops;
    seen.ops.commit = commit;
    seen.ops.can = session_files ? s->ops->can | STORE_SESSION_FILES : s->ops->can & ~(unsigned)STORE_SESSION_FILES;
    s->ops = &seen.ops;
}

static int64_t seq_of_session_file(void)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    OK(json_parse(&a, str_from(seen.session_file), NULL, &v, NULL, &err));
    return json_get_int(v, STR("last_seq"), 0);
}

/* The last batch brought a session file, of its own last event, as a state loaded from the store would give it. */
static void expect_session_file(tide_store *store)
{
    AUTO(buf_done) struct buf want = BUF_INIT(1 << 20);
    AUTO(buf_done) struct buf tokens = BUF_INIT(1 << 20);
    AUTO(state_freep) struct state *s = NULL;
    struct head h;

    if (!seen.session_file[0])
        fail_msg("no session_file came with: %s", seen.kinds);
    assert_int_equal(seq_of_session_file(), seen.last.caches_seq);
    OK(store_head(store_of(store), STR("s"), &h, &err));
    OK(state_load(store_of(store), &h, h.last_seq, &s, NULL, &err));
    assert_int_equal(seq_of_session_file(), h.last_seq);
    session_file_write(&want, s, &h);
    session_file_tokens(&tokens, s);
    assert_string_equal(strstr(seen.session_file, "\"updated_at\""), strstr(buf_cstr(&want), "\"updated_at\""));
    assert_null(
        strstr(seen.session_file, "\"created_at\": null")); /* the same but for the time between append and commit */
    assert_string_equal(seen.tokens, buf_cstr(&tokens));
}

static void expect_none(void)
{
    if (seen.session_file[0] || seen.tokens[0])
        fail_msg("a session_file came with: %s", seen.kinds);
}

static tide_session *create_titled(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "s", "{\"title\":\"first\"}", &s, &err));
    return s;
}

static void appends_that_change_a_session_file_carry_it(void **state)
{
    struct fixture *f = *state;
    tide_session *s;
    tide_run *r;

    watch(f, true);
    s = create_titled(f);
    expect_session_file(f->store);
    assert_non_null(strstr(seen.session_file, "\"title\": \"first\""));
    put(s, "message.user", SAID);
    expect_none();
    put(s, "session.updated", "{\"title\":\"second\"}");
    expect_session_file(f->store);
    assert_non_null(strstr(seen.session_file, "\"title\": \"second\""));
    r = start(s);
    assert_non_null(strstr(seen.kinds, "run.started"));
    expect_session_file(f->store);
    finish(r);
    assert_non_null(strstr(seen.session_file, "\"ended_at\": \"2"));
    expect_session_file(f->store);
    tide_session_close(s);
}

static void who_releases_a_session_leaves_its_session_file(void **state)
{
    struct fixture *f = *state;
    tide_session *s;

    watch(f, true);
    s = create_titled(f);
    put(s, "message.user", SAID);
    expect_none();
    tide_session_close(s);
    assert_true(seen.last.flags & BATCH_RELEASE);
    assert_int_equal(seen.last.n, 0);
    expect_session_file(f->store);
    assert_int_equal(seq_of_session_file(), 2);
}

static void a_queued_append_carries_the_session_file_of_its_own_end(void **state)
{
    const struct tide_new_event title = {"session.updated", "{\"title\":\"queued\"}", 0},
                                said = {"message.user", SAID, 0};
    struct fixture *f = *state;
    tide_session *s;

    watch(f, true);
    s = create_titled(f);
    OK(tide_session_append_async(s, 0, &said, 1, NULL, &err));
    OK(tide_session_append_async(s, 0, &title, 1, NULL, &err));
    OK(tide_session_flush(s, &err));
    expect_session_file(f->store);
    assert_int_equal(seq_of_session_file(), 3);
    tide_session_close(s);
}

static void a_session_file_has_no_secret(void **state)
{
    struct fixture *f = *state;
    const struct tide_wait_options opt = {.size = sizeof opt, "ok", TIDE_WAIT_APPROVAL, "?", 0, now() + 3600000};
    char token[TIDE_TOKEN_SIZE], *secret;
    struct tide_text answer;
    tide_session *s;
    tide_run *r;

    watch(f, true);
    s = create_titled(f);
    r = start(s);
    GIVES(TIDE_WAITING, tide_run_wait(r, &opt, &answer, token, &err));
    assert_true(seen.last.flags & BATCH_RELEASE);
    expect_session_file(f->store);
    secret = strchr(token, '.');
    assert_non_null(secret);
    assert_null(strstr(seen.session_file, secret + 1));
    assert_null(strstr(seen.tokens, secret + 1));
    *secret = 0;
    assert_non_null(strstr(seen.session_file, token));
    assert_non_null(strstr(seen.tokens, token));
    assert_non_null(strstr(seen.tokens, "\"wait_kind\": \"approval\""));
    assert_non_null(strstr(seen.tokens, "\"status\": \"active\""));
    assert_null(strstr(seen.tokens, "\"secret_hash\": null"));
    tide_run_close(r);
    tide_session_close(s);
}

static void recovery_leaves_a_session_file(void **state)
{
    struct fixture *f = *state;
    struct tide_recovery did;
    tide_session *s;

    watch(f, true);
    s = create_titled(f);
    put(s, "run.started", "{\"run_id\":\"r1\"}");
    put(s, "token.minted", "{\"token_id\":\"t1\"}");
    put(s, "run.waiting",
        "{\"wait_kind\":\"input\",\"resume_token_id\":\"t1\",\"deadline_at\":\"2001-01-01T00:00:00.000Z\"}");
    tide_session_close(s);
    assert_non_null(strstr(seen.tokens, "\"active\""));
    OK(tide_store_recover(f->store, 0, NULL, NULL, &did, &err));
    assert_int_equal(did.timed_out, 1);
    expect_session_file(f->store);
    assert_non_null(strstr(seen.session_file, "\"interruption\": \"wait_timeout\""));
    assert_null(strstr(seen.tokens, "\"active\""));
}

/* What the state holds after it is not loaded yet. */
static void a_rollback_brings_no_session_file(void **state)
{
    const struct tide_new_event back = {"session.rolled_back", "{\"to_seq\":1}", 0};
    struct fixture *f = *state;
    tide_session *s;

    watch(f, true);
    s = create_titled(f);
    put(s, "message.user", SAID);
    OK(session_append(s, TIDE_APPEND_RELEASE, &back, 1, NULL, &err));
    assert_non_null(strstr(seen.kinds, "session.rolled_back"));
    expect_none();
    put(s, "session.updated", "{\"title\":\"after\"}");
    expect_session_file(f->store);
    tide_session_close(s);
}

static void a_store_without_session_files_is_handed_none(void **state)
{
    AUTO(batch_freep) struct batch *b = batch_new(STR("s"), 0, NULL, 0, STR(""), STR(""));
    struct fixture *f = *state;
    tide_session *s;

    SQLITE_ONLY("it keeps session_files");
    assert_false(store_can(store_of(f->store), STORE_SESSION_FILES));
    watch(f, false);
    s = create_titled(f);
    expect_none();
    finish(start(s));
    expect_none();
    session_file_attach(b, store_of(f->store), s->state, &s->head);
    assert_int_equal(b->session_file.len + b->tokens.len, 0);
    tide_session_close(s);
    assert_true(seen.last.flags & BATCH_RELEASE);
    expect_none();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_file_has_these_members_in_this_order),
        cmocka_unit_test(a_session_file_says_where_a_session_stands),
        cmocka_unit_test(the_same_state_gives_the_same_bytes),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(a_provider_is_whatever_the_session_has),
        cmocka_unit_test(a_provider_nested_as_deep_as_bodies_may_be_has_a_session_file),
        cmocka_unit_test_setup_teardown(appends_that_change_a_session_file_carry_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_releases_a_session_leaves_its_session_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_queued_append_carries_the_session_file_of_its_own_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_file_has_no_secret, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recovery_leaves_a_session_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rollback_brings_no_session_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_without_session_files_is_handed_none, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
