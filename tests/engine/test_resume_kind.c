/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one resume and the one send: what each kind of session is taken for, what may not be asked of it, and who gets a message.
 */
#include "engine/resume.h"
#include "session/runs.h"

#define GRAPH                                                                                                          \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":["                                                   \
    "{\"id\":\"a\",\"type\":\"function\",\"program\":[\"false\"]}]}"

/* ---- sessions of each kind, by a name ---- */

static tide_session *make_program(struct fixture *f)
{
    const struct tide_run_options opt = {.size = sizeof opt, .fields = "{\"argv\":[\"sh\"],\"cwd\":\"/\"}"};
    const struct tide_run_result failed = {.size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED};
    tide_session *s = NULL;
    tide_run *r = NULL;

    OK(tide_session_create(f->store, "program", NULL, &s, &err));
    OK(tide_run_start(s, &opt, &r, &err));
    OK(tide_run_end(r, &failed, &err));
    tide_run_close(r);
    return s;
}

static tide_session *make_chat(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "chat", "{\"agent\":\"chat\",\"provider\":{\"type\":\"script\"}}", &s, &err));
    return s;
}

static tide_session *make_graph(struct fixture *f)
{
    const struct tide_graph_options opt = {.size = sizeof opt};
    tide_session *s = NULL;
    tide_graph *g = NULL;

    OK(tide_session_create(f->store, "graph", NULL, &s, &err));
    OK(tide_graph_parse(GRAPH, sizeof GRAPH - 1, NULL, NULL, NULL, &g, &err));
    GIVES(TIDE_FAILED, tide_graph_run(s, g, &opt, NULL, &err));
    tide_graph_free(g);
    return s;
}

static tide_session *make_log(struct fixture *f)
{
    tide_session *s = NULL;

    OK(tide_session_create(f->store, "log", NULL, &s, &err));
    return s;
}

static tide_session *(*const makers[])(struct fixture *) = {[TIDE_KIND_LOG] = make_log,
                                                            [TIDE_KIND_PROGRAM] = make_program,
                                                            [TIDE_KIND_CHAT] = make_chat,
                                                            [TIDE_KIND_GRAPH] = make_graph};

static enum tide_session_kind kind_of(tide_session *s, const struct resume_request *ask, enum tide_code want)
{
    enum tide_session_kind kind = 0;

    GIVES(want, resume_kind(s, ask, &kind, &err));
    return kind;
}

/* ---- tests ---- */

static void each_kind_is_resumed_as_what_it_is(void **state)
{
    for (enum tide_session_kind kind = TIDE_KIND_LOG; kind <= TIDE_KIND_GRAPH; kind++) {
        tide_session *s = makers[kind](*state);
        const struct resume_request ask = {.id = tide_session_id(s)};

        assert_int_equal(kind_of(s, &ask, TIDE_OK), kind);
        tide_session_close(s);
    }
}

static void what_means_nothing_to_a_kind_is_refused(void **state)
{
    static const struct {
        const char *given[2];
        enum tide_code program, chat, graph;
    } rows[] = {
        {{"now"}, TIDE_OK, TIDE_INVALID, TIDE_INVALID},
        {{"accept-change"}, TIDE_OK, TIDE_INVALID, TIDE_INVALID},
        {{"request-id"}, TIDE_OK, TIDE_INVALID, TIDE_INVALID},
        {{"retry"}, TIDE_OK, TIDE_INVALID, TIDE_OK},
        {{"happened"}, TIDE_OK, TIDE_INVALID, TIDE_OK},
        {{"set"}, TIDE_INVALID, TIDE_INVALID, TIDE_OK},
        {{"no-input"}, TIDE_INVALID, TIDE_INVALID, TIDE_OK},
        {{"keep-pause"}, TIDE_INVALID, TIDE_OK, TIDE_OK},
        {{"checkpoint"}, TIDE_INVALID, TIDE_INVALID, TIDE_OK},
        {{"script"}, TIDE_INVALID, TIDE_OK, TIDE_OK},
        {{"dry-run"}, TIDE_OK, TIDE_OK, TIDE_OK},
    };
    tide_session *program = make_program(*state), *chat = make_chat(*state), *graph = make_graph(*state);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resume_request ask = {.given = rows[i].given};

        print_message("# %s\n", rows[i].given[0]);
        ask.id = "program";
        kind_of(program, &ask, rows[i].program);
        ask.id = "chat";
        kind_of(chat, &ask, rows[i].chat);
        ask.id = "graph";
        kind_of(graph, &ask, rows[i].graph);
    }
    tide_session_close(program);
    tide_session_close(chat);
    tide_session_close(graph);
}

/* Only a graph goes on before its damage; what is for programs alone is answered with the damage itself. */
static void one_that_cannot_be_read_may_be_a_graph(void **state)
{
    static const char *const now[] = {"now", NULL};
    const struct resume_request plain = {.id = "x"}, of_program = {.id = "x", .given = now};
    struct tide_err err = {.code = TIDE_CORRUPT};
    enum tide_session_kind kind = 0;

    (void)state;
    assert_int_equal(resume_kind(NULL, &plain, &kind, &err), TIDE_OK);
    assert_int_equal(kind, TIDE_KIND_GRAPH);
    assert_int_equal(resume_kind(NULL, &of_program, &kind, &err), TIDE_CORRUPT);
}

static void an_option_of_graphs_is_refused_by_its_name(void **state)
{
    static const char *const graph[] = {"graph", NULL};
    tide_session *s = make_program(*state);
    enum tide_session_kind kind;

    ABOUT(TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "graph",
          resume_kind(s, &(struct resume_request){.id = "x", .given = graph}, &kind, &err));
    tide_session_close(s);
}

static void a_message_goes_to_whoever_takes_it(void **state)
{
    struct fixture *f = *state;
    tide_session *program = make_program(f), *chat = make_chat(f), *reader = NULL;
    enum tide_session_kind kind = 0;

    OK(send_kind(program, &kind, &err));
    assert_int_equal(kind, TIDE_KIND_PROGRAM);
    tide_session_close(program);
    tide_session_close(chat);

    OK(tide_session_open(f->store, "chat", TIDE_SESSION_READ, &reader, &err));
    OK(send_kind(reader, &kind, &err));
    assert_int_equal(kind, TIDE_KIND_CHAT); /* nobody runs it: it answers */
    OK(tide_session_open(f->other, "chat", TIDE_SESSION_APPEND | TIDE_SESSION_CLAIM, &chat, &err));
    OK(tide_session_refresh(reader, &err));
    OK(send_kind(reader, &kind, &err));
    assert_int_equal(kind, TIDE_KIND_LOG); /* somebody does, and finds it in the queue */
    tide_session_close(chat);
    tide_session_close(reader);
}

static int take_queued(void *arg, const struct tide_event *ev)
{
    if (strcmp(ev->kind, "queue.added") != 0)
        return 0;
    snprintf(arg, 200, "%lld %s", (long long)ev->seq, ev->body);
    return 1;
}

static void what_is_sent_is_queued_as_it_is(void **state)
{
    struct fixture *f = *state;
    char id[QUEUE_ID_SIZE], got[200] = "", want[200];
    tide_session *s = create(f);
    int64_t seq = 0;

    tide_session_close(s);
    OK(send_queue(f->store, "s", STR("{\"a\":[1,\"\\u00e9\"]}"), NULL, &(struct queue_limits){0}, id, &seq, &err));
    OK(tide_session_open(f->store, "s", TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, take_queued, got, &err));
    snprintf(want, sizeof want, "%lld {\"queue_id\":\"%s\",\"content\":{\"a\":[1,\"\\u00e9\"]}}", (long long)seq, id);
    assert_string_equal(got, want);
    tide_session_close(s);
}

/* A graph that fails pauses before it tries again. */
static int set_up_moving(void **state)
{
    int failed = set_up(state);
    struct fixture *f = *state;

    f->ops.now_ms = env_real()->ops->now_ms;
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up_moving, tear_down)
        TEST(each_kind_is_resumed_as_what_it_is),     TEST(what_means_nothing_to_a_kind_is_refused),
        TEST(one_that_cannot_be_read_may_be_a_graph), TEST(an_option_of_graphs_is_refused_by_its_name),
        TEST(a_message_goes_to_whoever_takes_it),     TEST(what_is_sent_is_queued_as_it_is),
    };

    return cmocka_run_group_tests_name("engine/resume", tests, NULL, NULL);
}
