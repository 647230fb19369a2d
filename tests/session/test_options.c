/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structs that callers fill begin with their size: a program that was built for an earlier version has fewer members, one that
 * was built for a later version has more. Every call that takes one is tried with each.
 */
#include "runs.h"

static struct tide_err why;

struct place {
    struct fixture *f;
    tide_session *s;
    tide_run *r;
};

static int no_session(void *arg, const struct tide_session_info *info)
{
    (void)arg;
    (void)info;
    return 0;
}

static int no_checkpoint(void *arg, const struct tide_checkpoint *c)
{
    (void)arg;
    (void)c;
    return 0;
}

static enum tide_code no_tool(void *arg, const char *args, const char *key, struct tide_text *ret, struct tide_err *e)
{
    (void)arg;
    (void)args;
    (void)key;
    (void)ret;
    (void)e;
    return TIDE_OK;
}

static enum tide_code try_open(struct place *p, const void *given)
{
    tide_store *store;

    return tide_store_open(p->f->path, given, &store, &why) ? why.code : (tide_store_close(store), TIDE_OK);
}

static enum tide_code try_copy(struct place *p, const void *given)
{
    return tide_store_copy(p->f->store, p->f->store, given, NULL, &why);
}

static enum tide_code try_list(struct place *p, const void *given)
{
    return tide_session_list(p->f->store, given, no_session, NULL, &why);
}

static enum tide_code try_save(struct place *p, const void *given)
{
    char id[TIDE_ID_SIZE];

    return tide_checkpoint_save(p->s, given, id, &why);
}

static enum tide_code try_checkpoints(struct place *p, const void *given)
{
    return tide_checkpoint_list(p->s, given, no_checkpoint, NULL, &why);
}

static enum tide_code try_start(struct place *p, const void *given)
{
    return tide_run_start(p->s, given, &p->r, &why);
}

static enum tide_code try_ask(struct place *p, const void *given)
{
    struct tide_step_answer answer;

    return tide_step_ask(p->r, given, &answer, &why);
}

static enum tide_code try_step_end(struct place *p, const void *given)
{
    return tide_step_end(p->r, "step", given, NULL, &why);
}

static enum tide_code try_wait(struct place *p, const void *given)
{
    char token[TIDE_TOKEN_SIZE];
    struct tide_text answer;

    return tide_run_wait(p->r, given, &answer, token, &why);
}

static enum tide_code try_resume(struct place *p, const void *given)
{
    tide_run_close(p->r);
    p->r = NULL;
    return tide_run_resume(p->s, given, NULL, &p->r, &why);
}

static enum tide_code try_end(struct place *p, const void *given)
{
    return tide_run_end(p->r, given, &why);
}

static enum tide_code try_agent(struct place *p, const void *given)
{
    tide_agent *a;

    return tide_agent_new(p->s, given, &a, &why) ? why.code : (tide_agent_free(a), TIDE_OK);
}

static enum tide_code try_tool(struct place *p, const void *given)
{
    const struct tide_agent_options opt = {.size = sizeof opt, .provider = "openai", .model = "m", .api_key = "no-key"};
    tide_agent *a;
    enum tide_code code;

    OK(tide_agent_new(p->s, &opt, &a, &err));
    code = tide_agent_add_tool(a, given, &why);
    tide_agent_free(a);
    return code;
}

static enum tide_code try_graph(struct place *p, const void *given)
{
    static const char json[] =
        "{\"tidemark_graph\":1,\"id\":\"g\",\"entry\":\"a\",\"nodes\":[{\"id\":\"a\",\"type\":\"human_input\","
        "\"question\":\"?\"}]}";
    tide_graph *g = NULL;
    enum tide_code code;

    OK(tide_graph_parse(json, sizeof json - 1, NULL, NULL, NULL, &g, &err));
    code = tide_graph_run(p->s, g, given, NULL, &why);
    tide_graph_free(g);
    return code;
}

#define ROW(type, call, first_member, want, ...)                                                                       \
    {                                                                                                                  \
#type, call, sizeof(struct type), offsetof(struct type, first_member), want, &(const struct type)              \
        {                                                                                                              \
            .size = sizeof(struct type), __VA_ARGS__                                                                   \
        }                                                                                                              \
    }

/* In an order in which each can be done. `until`: an earlier version ended here, with nothing of it set. */
static const struct row {
    const char *name;
    enum tide_code (*call)(struct place *p, const void *given);
    size_t size, until;
    enum tide_code want;
    const void *given;
} rows[] = {
    ROW(tide_store_options, try_open, queue_max, TIDE_OK, .flags = 0),
    ROW(tide_copy_options, try_copy, problem, TIDE_INVALID, .ids = NULL), /* into itself */
    ROW(tide_list_filter, try_list, limit, TIDE_OK, .status = "idle"),
    ROW(tide_checkpoint_filter, try_checkpoints, limit, TIDE_OK, .type = TIDE_CHECKPOINT_TURN),
    ROW(tide_new_checkpoint, try_save, description, TIDE_OK, .type = TIDE_CHECKPOINT_TURN),
    ROW(tide_agent_options, try_agent, max_turns, TIDE_OK, .provider = "openai", .model = "m", .api_key = "no-key"),
    ROW(tide_tool, try_tool, probe, TIDE_OK, .name = "t", .fn = no_tool),
    ROW(tide_run_options, try_start, token, TIDE_OK, .flags = 0),
    ROW(tide_step_spec, try_ask, retries, TIDE_OK, .name = "step", .effect = TIDE_EFFECT_PURE),
    ROW(tide_step_result, try_step_end, error_code, TIDE_OK, .outcome = TIDE_OUTCOME_FAILED),
    ROW(tide_wait_options, try_wait, deadline_ms, TIDE_WAITING, .name = "w", .kind = TIDE_WAIT_INPUT),
    ROW(tide_run_options, try_resume, by, TIDE_OK, .input = "1"),
    ROW(tide_run_result, try_end, error_code, TIDE_OK, .outcome = TIDE_OUTCOME_COMPLETED),
    ROW(tide_graph_options, try_graph, token, TIDE_WAITING, .memory = "{}"),
};

static void with_size(char *bytes, const struct row *row, size_t size)
{
    memset(bytes, 0, row->size + 64);
    memcpy(bytes, row->given, row->size);
    memcpy(bytes, &size, sizeof size);
}

static bool names(const struct row *row)
{
    return why.code == TIDE_INVALID && strstr(why.msg, row->name);
}

static void refused_where_it_cannot_be_read(void **state)
{
    struct place p = {*state, create(*state), NULL};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO(mem_freep) char *bytes = mem_alloc(rows[i].size + 64);

        with_size(bytes, &rows[i], 0);
        assert_int_equal(rows[i].call(&p, bytes), TIDE_INVALID);
        assert_true(names(&rows[i]));
        with_size(bytes, &rows[i], rows[i].size + 64);
        bytes[rows[i].size + 40] = 1; /* a member of a later version */
        assert_int_equal(rows[i].call(&p, bytes), TIDE_INVALID);
        assert_true(names(&rows[i]));
        with_size(bytes, &rows[i], rows[i].size); /* on to the next */
        assert_int_equal(rows[i].call(&p, bytes), rows[i].want);
        if (rows[i].call == try_end) {
            tide_run_close(p.r);
            tide_session_close(p.s);
            OK(tide_session_create(p.f->store, "graph", NULL, &p.s, &err));
        }
    }
    tide_session_close(p.s);
}

static void taken_from_an_earlier_and_a_later_version(void **state)
{
    struct fixture *f = *state;

    for (int later = 0; later < 2; later++) {
        char id[] = {'v', (char)('0' + later), 0}, graph[] = {'g', (char)('0' + later), 0};
        struct place p = {f, NULL, NULL};

        OK(tide_session_create(f->store, id, NULL, &p.s, &err));
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            AUTO(mem_freep) char *bytes = mem_alloc(rows[i].size + 64);

            with_size(bytes, &rows[i], later ? rows[i].size + 64 : rows[i].until);
            if (!later) /* what an earlier caller does not have is not looked at */
                memset(bytes + rows[i].until, 0xee, rows[i].size - rows[i].until);
            assert_int_equal(rows[i].call(&p, bytes), rows[i].want);
            if (rows[i].call == try_end) {
                tide_run_close(p.r);
                tide_session_close(p.s);
                OK(tide_session_create(f->store, graph, NULL, &p.s, &err));
            }
        }
        tide_session_close(p.s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(refused_where_it_cannot_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(taken_from_an_earlier_and_a_later_version, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
