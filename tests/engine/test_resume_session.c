/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one resume and the one send as any face calls them, here one that prints nothing: a program, a chat and a graph go on by
 * the same call; what runs is told of while it can be stopped; a dry run writes nothing; what nobody takes now is queued.
 */
#include "engine/resume.h"
#include "session/runs.h"

#define GRAPH                                                                                                          \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"ask\",\"nodes\":[{\"id\":\"ask\",\"type\":\"human_input\","        \
    "\"question\":\"Who?\",\"outputs\":[\"who\"]}]}"

struct heard {
    struct resume *r;
    int begun, ended, asked, turns;
    bool could_stop;
};

static enum tide_code open_setup(void *arg, struct agent_setup *setup, struct tide_err *err)
{
    const struct heard *h = arg;

    return settings_open(h->r->config, NULL, NULL, &setup->settings, err);
}

static void on_running(void *arg, bool runs)
{
    struct heard *h = arg;

    h->begun += runs;
    h->ended += !runs;
    h->could_stop |= h->r->kind == TIDE_KIND_CHAT    ? h->r->chat.agent != NULL
                     : h->r->kind == TIDE_KIND_GRAPH ? h->r->run.graph != NULL
                                                     : h->r->program.program != NULL;
}

static void on_agent(void *arg, const struct tide_agent_event *e)
{
    struct heard *h = arg;

    h->turns += e->what == TIDE_AGENT_USAGE;
}

static bool on_ask(void *arg, tide_session *session, struct buf *ret_json)
{
    struct heard *h = arg;

    (void)session;
    h->asked++;
    json_quote(ret_json, STR("Bea"));
    return true;
}

static void tell_nothing(void *arg, const char *line, const char *change)
{
    (void)arg;
    (void)line;
    (void)change;
}

/* Its path, until the next one of this name. */
static const char *write_file(const struct fixture *f, const char *name, const char *text)
{
    static char paths[2][400];
    char *path = paths[name[0] == 's'];
    FILE *file;

    snprintf(path, sizeof paths[0], "%s/%s", f->dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static struct resume face(struct fixture *f, struct heard *h, struct resume *at, const char *id)
{
    struct resume r = RESUME_INIT;

    *h = (struct heard){.r = at};
    r.store = f->store;
    r.config = write_file(f, "config.json", "{}"); /* not the settings of whoever runs the tests */
    r.ask.id = id;
    r.face = (struct resume_face){.arg = h, .open_setup = open_setup, .running = on_running};
    r.chat.setup.tell = tell_nothing;
    r.chat.setup.opt.event = on_agent;
    r.chat.setup.opt.arg = h;
    r.run.setup.tell = tell_nothing;
    r.run.running = on_running;
    r.run.arg = h;
    return r;
}

/* ---- sessions ---- */

/* `sh -c script` that was killed before it began. */
static void make_program(struct fixture *f, const char *script)
{
    char fields[512];
    const struct tide_run_options opt = {.size = sizeof opt, .fields = fields};
    tide_session *s = create(f);
    tide_run *r = NULL;

    snprintf(fields, sizeof fields, "{\"argv\":[\"sh\",\"-c\",\"%s\"],\"cwd\":\"%s\",\"program\":\"/bin/sh\"}", script,
             f->dir);
    OK(tide_run_start(s, &opt, &r, &err));
    OK(tide_run_end(
        r, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_FAILED}, &err));
    tide_run_close(r);
    tide_session_close(s);
}

static void make_chat(struct fixture *f)
{
    const char *path = write_file(f, "script.json", "{\"turns\":[{\"text\":\"Hello.\"}]}");
    char fields[600];
    tide_session *s = NULL;

    snprintf(fields, sizeof fields,
             "{\"agent\":\"chat\",\"provider\":{\"type\":\"script\",\"model\":\"script\",\"script\":\"%s\"}}", path);
    OK(tide_session_create(f->store, "s", fields, &s, &err));
    tide_session_close(s);
}

static void make_graph(struct fixture *f)
{
    const struct tide_graph_options opt = {.size = sizeof opt};
    tide_session *s = create(f);
    tide_graph *g = NULL;

    OK(tide_graph_parse(GRAPH, sizeof GRAPH - 1, NULL, NULL, NULL, &g, &err));
    GIVES(TIDE_WAITING, tide_graph_run(s, g, &opt, NULL, &err));
    tide_graph_free(g);
    tide_session_close(s);
}

static void (*const makers[])(struct fixture *) = {[TIDE_KIND_CHAT] = make_chat, [TIDE_KIND_GRAPH] = make_graph};

static int64_t last_seq(struct fixture *f)
{
    tide_session *s = NULL;
    int64_t seq;

    OK(tide_session_open(f->store, "s", TIDE_SESSION_READ, &s, &err));
    seq = tide_session_last_seq(s);
    tide_session_close(s);
    return seq;
}

/* ---- tests ---- */

static void a_program_goes_on(void **state)
{
    struct heard h;
    struct resume r = face(*state, &h, &r, "s");

    make_program(*state, "exit 3");
    OK(resume_session(&r, &err));
    assert_int_equal(r.result, RESUME_RAN);
    assert_int_equal(r.kind, TIDE_KIND_PROGRAM);
    assert_int_equal(r.program.end.exit_status, 3);
    assert_int_equal(h.begun, 1);
    assert_int_equal(h.ended, 1);
    assert_true(h.could_stop);
    resume_done(&r);
}

static void a_program_that_is_gone_is_not_begun(void **state)
{
    struct fixture *f = *state;
    struct heard h;
    struct resume r = face(f, &h, &r, "s");
    const struct tide_run_options opt = {.size = sizeof opt, .fields = "{\"argv\":[\"/no/such\"],\"cwd\":\"/\"}"};
    tide_session *s = create(f);
    tide_run *run = NULL;
    int64_t seq;

    OK(tide_run_start(s, &opt, &run, &err));
    OK(tide_run_end(
        run, &(struct tide_run_result){.size = sizeof(struct tide_run_result), .outcome = TIDE_OUTCOME_FAILED}, &err));
    tide_run_close(run);
    tide_session_close(s);
    seq = last_seq(f);
    GIVES(TIDE_NOT_FOUND, resume_session(&r, &err));
    assert_int_equal(r.result, RESUME_NOTHING);
    assert_true(r.program.end.not_run);
    assert_int_equal(h.begun, 0);
    assert_int_equal(last_seq(f), seq);
    resume_done(&r);
}

static void a_chat_answers_a_message(void **state)
{
    struct heard h;
    struct resume r = face(*state, &h, &r, "s");

    make_chat(*state);
    OK(send_message(&r, "hi", false, &err));
    assert_int_equal(r.result, RESUME_RAN);
    assert_int_equal(r.kind, TIDE_KIND_CHAT);
    assert_string_equal(r.chat_answer.ptr, "Hello.");
    assert_false(r.prompt_refused);
    assert_int_equal(h.turns, 1);
    assert_true(h.could_stop);
    resume_done(&r);
}

static void a_graph_goes_on_with_an_answer(void **state)
{
    struct heard h;
    struct resume r = face(*state, &h, &r, "s");

    make_graph(*state);
    r.ask.input = "\"Ada\"";
    OK(resume_session(&r, &err));
    assert_int_equal(r.result, RESUME_RAN);
    assert_int_equal(r.kind, TIDE_KIND_GRAPH);
    assert_non_null(strstr(r.graph_result.memory.ptr, "Ada"));
    assert_int_equal(h.begun, 1);
    assert_true(h.could_stop);
    resume_done(&r);
}

static void a_face_is_asked_for_the_answer(void **state)
{
    struct heard h;
    struct resume r = face(*state, &h, &r, "s");

    make_graph(*state);
    r.face.answer = on_ask;
    OK(resume_session(&r, &err));
    assert_int_equal(h.asked, 1);
    assert_non_null(strstr(r.graph_result.memory.ptr, "Bea"));
    resume_done(&r);
}

static void a_dry_run_writes_nothing(void **state)
{
    struct fixture *f = *state;

    for (enum tide_session_kind kind = TIDE_KIND_PROGRAM; kind <= TIDE_KIND_GRAPH; kind++) {
        struct heard h;
        struct resume r = face(f, &h, &r, "s");
        int64_t seq;

        if (kind == TIDE_KIND_PROGRAM)
            make_program(f, "exit 3");
        else
            makers[kind](f);
        seq = last_seq(f);
        r.ask.dry_run = true;
        OK(resume_session(&r, &err));
        assert_int_equal(r.result, RESUME_PLANNED);
        assert_int_equal(r.kind, kind);
        assert_true(r.plan.len > 2);
        if (kind == TIDE_KIND_PROGRAM) /* the chat has nothing to do, and the graph waits for an answer */
            assert_int_equal(r.refused_code, TIDE_OK);
        else
            assert_int_not_equal(r.refused_code, TIDE_OK);
        assert_true((r.refused_code != TIDE_OK) == (r.refused && r.refused[0].what));
        assert_int_equal(h.begun, 0);
        resume_done(&r);
        assert_int_equal(last_seq(f), seq);
        OK(tide_session_delete(f->store, "s", &err));
    }
}

static void a_dry_run_asks_nothing_again(void **state)
{
    struct heard h;
    struct resume r = face(*state, &h, &r, "s");

    make_graph(*state);
    r.ask.dry_run = true;
    r.ask.ask_again = "ask";
    ABOUT(TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "dry_run", resume_session(&r, &err));
    resume_done(&r);
}

static void a_message_that_nobody_takes_now_is_queued(void **state)
{
    struct fixture *f = *state;
    struct heard h;
    struct resume r = face(f, &h, &r, "s");

    tide_session_close(create(f));
    OK(send_message(&r, "for later", false, &err));
    assert_int_equal(r.result, RESUME_QUEUED);
    assert_int_equal(r.seq, last_seq(f));
    assert_true(r.queue_id[0] != '\0');
    resume_done(&r);
    r = face(f, &h, &r, "s");
    GIVES(TIDE_INVALID, send_message(&r, " \n", false, &err));
    assert_int_equal(r.result, RESUME_NOTHING);
    resume_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
        TEST(a_program_goes_on),
        TEST(a_program_that_is_gone_is_not_begun),
        TEST(a_chat_answers_a_message),
        TEST(a_graph_goes_on_with_an_answer),
        TEST(a_face_is_asked_for_the_answer),
        TEST(a_dry_run_writes_nothing),
        TEST(a_dry_run_asks_nothing_again),
        TEST(a_message_that_nobody_takes_now_is_queued),
    };

    return cmocka_run_group_tests_name("engine/resume_session", tests, NULL, NULL);
}
