/* SPDX-License-Identifier: Apache-2.0 */
/* Agents in graphs: outputs, iterations, approvals and decisions, cut and gone on with. The script provider answers. */
#include "graphs.h"

#define TURN(text, key, value)                                                                                         \
    "{\"text\":\"" text "\",\"calls\":[{\"name\":\"set_output\",\"args\":{\"key\":\"" key "\",\"value\":" value "}}]}"
#define WRITE(more)                                                                                                               \
    "{\"id\":\"write\",\"type\":\"event_loop\",\"prompt\":\"write about {topic}\",\"inputs\":[\"topic\"],\"tools\":\"none\"" more \
    "}"

static const char script[] =
    "{\"nodes\":{\"write\":[" TURN("first", "title", "\"T\"") "," TURN("second", "body", "\"B\"") "," TURN(
        "third", "end",
        "3") "],"
             "\"write>a?\":[{\"text\":\"{\\\"proceed\\\": false}\"}],\"write>b?\":[{\"text\":\"maybe\"}]}}";

struct desk {
    struct world w;
    tide_graph *g;
    char session[TIDE_ID_SIZE], script[400];
    struct tide_err err;
    char *memory;
    int turns, stop_at; /* stopped after so many answers; 0: never */
    bool cancel;        /* somebody asks for that when the model is first waited for */
    char notices[2000];
};

static void hear(void *arg, const struct tide_graph_event *ev)
{
    static const struct tide_new_event cancel = {"cancel.requested", "{}", 0};
    struct desk *d = arg;

    if (d->cancel && ev->agent && ev->agent->what == TIDE_AGENT_WAIT) {
        d->cancel = false;
        OK(tide_session_input(d->w.store, d->session, -1, &cancel, 1, NULL, &err));
    }
    if (ev->what == TIDE_GRAPH_NOTICE)
        snprintf(d->notices + strlen(d->notices), sizeof d->notices - strlen(d->notices), "%s\n", ev->text);
    if (ev->what != TIDE_GRAPH_AGENT || ev->agent->what != TIDE_AGENT_USAGE)
        return;
    if (++d->turns == d->stop_at)
        tide_graph_stop(d->g);
}

static void desk_open(struct desk *d, const char *graph)
{
    FILE *f;

    memset(d, 0, sizeof *d);
    world_open(&d->w);
    snprintf(d->script, sizeof d->script, "%s/script.json", d->w.dir);
    f = fopen(d->script, "w");
    assert_non_null(f);
    fputs(script, f);
    fclose(f);
    d->g = world_graph(&d->w, graph);
}

static void desk_close(struct desk *d)
{
    tide_graph_free(d->g);
    free(d->memory);
    world_close(&d->w);
}

static enum tide_code go(struct desk *d, const char *checkpoints)
{
    const struct tide_agent_options agent = {
        .size = sizeof agent, .provider = "script", .script = d->script, .retry_base_delay_ms = 1};
    const struct tide_graph_options opt = {.size = sizeof opt,
                                           .agent = &agent,
                                           .memory = "{\"topic\":\"tides\"}",
                                           .checkpoints = checkpoints,
                                           .event = hear,
                                           .arg = d};
    struct tide_graph_result result = {0};
    bool first = !d->session[0];
    tide_session *s = NULL;
    enum tide_code code;

    if (first)
        OK(tide_session_create(d->w.store, NULL, NULL, &s, &err));
    else
        OK(tide_session_open(d->w.store, d->session, TIDE_SESSION_APPEND, &s, &err));
    snprintf(d->session, sizeof d->session, "%s", tide_session_id(s));
    code = (first ? tide_graph_run : tide_graph_resume)(s, d->g, &opt, &result, &d->err);
    tide_session_close(s);
    free(d->memory);
    d->memory = result.memory.ptr;
    return code;
}

static int count(void *arg, const struct tide_event *ev)
{
    const char *const *want = arg;

    if (strcmp(ev->kind, want[0]) == 0)
        ++*(int *)(uintptr_t)want[1];
    return 0;
}

static int count_events(struct desk *d, const char *kind)
{
    int n = 0;
    const char *want[] = {kind, (const char *)&n};
    tide_session *s;

    OK(tide_session_open(d->w.store, d->session, TIDE_SESSION_READ, &s, &err));
    OK(tide_session_read(s, 0, 1, 0, count, want, &err));
    tide_session_close(s);
    return n;
}

#define LOOP                                                                                                           \
    "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"write\",\"nodes\":[" WRITE(                                        \
        ",\"outputs\":[\"title\",\"body\",\"end\"]") "]}"

static void an_agent_sets_its_outputs(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, LOOP);
    if (go(&d, NULL) != TIDE_OK)
        fail_msg("%s", d.err.msg);
    assert_string_equal(d.memory, "{\"topic\":\"tides\",\"title\":\"T\",\"body\":\"B\",\"end\":3}");
    assert_int_equal(d.turns, 3);
    desk_close(&d);
}

static void stopped_in_any_iteration_it_goes_on_there(void **state)
{
    (void)state;
    for (int at = 1; at <= 3; at++) {
        struct desk d;

        desk_open(&d, LOOP);
        d.stop_at = at;
        assert_int_equal(go(&d, "{\"checkpoint_on_loop_iteration\":true}"), TIDE_CANCELLED);
        d.stop_at = 0;
        if (go(&d, NULL) != TIDE_OK)
            fail_msg("after %d: %s", at, d.err.msg);
        assert_string_equal(d.memory, "{\"topic\":\"tides\",\"title\":\"T\",\"body\":\"B\",\"end\":3}");
        assert_int_equal(d.turns, 3); /* what was answered is not asked again */
        assert_int_equal(count_events(&d, "message.assistant"), 3);
        desk_close(&d);
    }
}

static int find_iteration(void *arg, const struct tide_checkpoint *c)
{
    if (c->type == TIDE_CHECKPOINT_LOOP_ITERATION && c->can_resume_from)
        snprintf(arg, TIDE_ID_SIZE, "%s", c->id);
    return 0;
}

/* The agent looks more often than the graph does: what it sees first is not to be told as a node that cannot go on. */
static void a_cancel_that_an_agent_sees_first_cancels_the_run(void **state)
{
    struct desk d;
    FILE *f;

    (void)state;
    desk_open(&d, LOOP);
    f = fopen(d.script, "w");
    assert_non_null(f);
    fputs("{\"turns\":[{\"text\":\"late\",\"delay_ms\":5000}]}", f);
    fclose(f);
    d.cancel = true;
    assert_int_equal(go(&d, NULL), TIDE_CANCELLED);
    assert_int_equal(count_events(&d, "run.cancelled"), 1);
    assert_int_equal(count_events(&d, "run.failed"), 0);
    desk_close(&d);
}

static void every_iteration_has_a_checkpoint(void **state)
{
    char id[TIDE_ID_SIZE] = "";
    struct desk d;
    tide_session *s;

    (void)state;
    desk_open(&d, LOOP);
    assert_int_equal(go(&d, "{\"checkpoint_on_loop_iteration\":true}"), TIDE_OK);
    OK(tide_session_open(d.w.store, d.session, TIDE_SESSION_READ, &s, &err));
    OK(tide_checkpoint_list(s,
                            &(struct tide_checkpoint_filter){.size = sizeof(struct tide_checkpoint_filter),
                                                             .type = TIDE_CHECKPOINT_LOOP_ITERATION},
                            find_iteration, id, &err));
    tide_session_close(s);
    assert_true(id[0] != 0);
    assert_int_equal(count_events(&d, "checkpoint"), 3 + 2);
    desk_close(&d);
}

static void a_model_decides_and_what_cannot_be_read_counts_as_success(void **state)
{
    struct desk d;

    (void)state;
    desk_open(
        &d,
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"write\",\"nodes\":[" WRITE(
            ",\"outputs\":[\"title\"]") ",{\"id\":\"a\",\"type\":\"function\",\"callback\":\"work\"},{\"id\":\"b\",\"type\":"
                                        "\"function\",\"callback\":\"work\"}],\"edges\":[{\"from\":\"write\",\"to\":\"a\",\"question\":\"is it about "
                                        "cats?\",\"priority\":2},{\"from\":\"write\",\"to\":\"b\",\"question\":\"is it good?\"}]}");
    if (go(&d, NULL) != TIDE_OK)
        fail_msg("%s", d.err.msg);
    assert_int_equal(world_count(&d.w, "a"), 0);
    assert_int_equal(world_count(&d.w, "b"), 1);
    assert_non_null(strstr(d.notices, "neither yes nor no"));
    assert_int_equal(count_events(&d, "edge.refused"), 1);
    desk_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_sets_its_outputs),
        cmocka_unit_test(stopped_in_any_iteration_it_goes_on_there),
        cmocka_unit_test(a_cancel_that_an_agent_sees_first_cancels_the_run),
        cmocka_unit_test(every_iteration_has_a_checkpoint),
        cmocka_unit_test(a_model_decides_and_what_cannot_be_read_counts_as_success),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
