/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent where things come together badly: many calls left open, a stop inside a hook, two people who answer one
 * question, a store that fails and comes back, somebody else in the same session.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/agents.h"
#include "agent/provider.h"
#include "agent/conversation.h"
#include "session/run.h"

static bool is_there(const struct fixture *f, const char *name)
{
    char path[400];

    snprintf(path, sizeof path, "%s/%s", f->work, name);
    return access(path, F_OK) == 0;
}

/* ---- many calls ---------------------------------------------------------------------------------------------------- */

#define MANY 60

static tide_agent *stoppable;

static void stop_at_first_tool(void *arg, const struct tide_agent_event *e)
{
    (void)arg;
    if (e->what == TIDE_AGENT_TOOL)
        tide_agent_stop(stoppable);
}

static void write_many_calls(struct fixture *f)
{
    struct buf text = BUF_INIT(1 << 20);

    buf_add_str(&text, STR("{\"turns\":[{\"calls\":["));
    for (int i = 0; i < MANY; i++)
        buf_addf(&text, "%s{\"name\":\"glob\",\"args\":{\"pattern\":\"%d\"}}", i ? "," : "", i);
    buf_add_str(&text, STR("]},{\"text\":\"Done.\"}]}"));
    write_file(f->script, buf_cstr(&text));
    buf_done(&text);
}

static void many_calls_that_were_left_open_are_closed_by_the_next_prompt(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};

    write_many_calls(f);
    opt.event = stop_at_first_tool;
    stoppable = new_agent(s, &opt);
    GIVES(TIDE_CANCELLED, tide_agent_run(stoppable, "first", NULL, &err));
    tide_agent_free(stoppable);
    opt.event = hear;
    stoppable = new_agent(s, &opt);
    OK(tide_agent_run(stoppable, "second", &answer, &err));
    assert_string_equal(answer.ptr, "Done.");
    tide_text_done(&answer);
    assert_int_equal(count_kind(s, "message.tool"), MANY);
    assert_int_equal(count_kind(s, "llm.request"), 2);
    BODY_HAS(s, "message.user", 1, "second");
    tide_agent_free(stoppable);
    tide_session_close(s);
}

/* ---- stopped inside a hook ----------------------------------------------------------------------------------------- */

static enum tide_code stop_and_say_nothing(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)input;
    (void)ret;
    (void)err;
    tide_agent_stop(stoppable);
    return TIDE_OK;
}

static void a_call_does_not_begin_when_it_was_stopped_before(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);

    write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"write\",\"args\":{\"path\":\"a\",\"content\":\"x\"}}]},"
                          "{\"text\":\"Done.\"}]}");
    stoppable = new_agent(s, &opt);
    OK(tide_agent_add_hook(stoppable, "h", "pre_tool_use", NULL, stop_and_say_nothing, NULL, &err));
    GIVES(TIDE_CANCELLED, tide_agent_run(stoppable, "go", NULL, &err));
    assert_false(is_there(f, "a"));
    assert_int_equal(count_kind(s, "tool.started"), 0);
    tide_agent_free(stoppable);
    stoppable = new_agent(s, &opt);
    OK(tide_agent_resume(stoppable, NULL, NULL, NULL, &err));
    assert_true(is_there(f, "a"));
    tide_agent_free(stoppable);
    tide_session_close(s);
}

/* ---- two people, one question -------------------------------------------------------------------------------------- */

#define TWO_CALLS                                                                                                      \
    "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"touch one\"}},"                                \
    "{\"name\":\"bash\",\"args\":{\"command\":\"touch two\"}}]},{\"text\":\"Done.\"}]}"

/* While we are asked about the first, another allows it; then the second is asked about. */
static enum tide_decision allow_too_late(void *arg, const struct tide_approval *ask)
{
    struct fixture *f = arg;
    struct tide_agent_options opt = options(f);
    tide_store *store = NULL;
    tide_session *t = NULL;
    tide_agent *b;

    assert_non_null(strstr(ask->args, "touch one"));
    f->asked++;
    opt.permissions = NULL;
    OK(tide_store_open(f->path, NULL, &store, &err));
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &t, &err));
    b = new_agent(t, &opt);
    SAYS(TIDE_WAITING, "touch two", tide_agent_resume(b, "\"allow\"", NULL, NULL, &err));
    tide_agent_free(b);
    tide_session_close(t);
    tide_store_close(store);
    return TIDE_DECIDE_ALLOW;
}

static void an_answer_that_comes_late_does_not_allow_another_call(void **state)
{
    for (int at_once = 0; at_once < 2; at_once++) {
        struct fixture *f = *state;
        struct tide_agent_options opt = options(f);
        tide_session *s = new_session(f);
        enum tide_code code;
        struct tide_err why;
        tide_agent *a;

        opt.permissions = NULL;
        opt.approve = at_once ? allow_too_late : NULL;
        write_file(f->script, TWO_CALLS);
        a = new_agent(s, &opt);
        code = tide_agent_run(a, "go", NULL, &why);
        if (!at_once) {
            assert_int_equal(code, TIDE_WAITING);
            tide_agent_free(a);
            opt.approve = allow_too_late;
            a = new_agent(s, &opt);
            code = tide_agent_resume(a, NULL, NULL, NULL, &why);
        }
        assert_int_not_equal(code, TIDE_OK);
        assert_true(is_there(f, "one"));
        assert_false(is_there(f, "two"));
        tide_agent_free(a);
        tide_session_close(s);
        OK(tide_session_delete(f->store, "s", &err));
    }
}

static void a_token_that_was_used_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    char token[TIDE_TOKEN_SIZE];
    tide_agent *a;

    opt.permissions = NULL;
    write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"true\"}}]},{\"text\":"
                          "\"Done.\"}]}");
    a = new_agent(s, &opt);
    GIVES(TIDE_WAITING, tide_agent_run(a, "go", NULL, &err));
    snprintf(token, sizeof token, "%s", tide_agent_token(a));
    OK(tide_agent_resume(a, "\"Yes\"", token, NULL, &err));
    assert_int_equal(count_kind(s, "tool.started"), 1);
    GIVES(TIDE_TOKEN_CONSUMED, tide_agent_resume(a, "\"allow\"", token, NULL, &err));
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- a store that fails for a while -------------------------------------------------------------------------------- */

static const struct store_ops *good_ops;
static _Atomic int failing;

static void failing_commit(struct store *store, struct batch *list)
{
    if (!failing) {
        good_ops->commit(store, list);
        return;
    }
    for (struct batch *b = list; b; b = b->next) {
        b->code = tide_fail(&b->err, TIDE_FULL, "no space");
        if (b->owner && !b->owner->failed.code)
            b->owner->failed = b->err;
    }
}

static void let_fail(tide_store *store)
{
    static struct store_ops ops;

    good_ops = store_of(store)->ops;
    ops = *good_ops;
    ops.commit = failing_commit;
    failing = 0;
    store_of(store)->ops = &ops;
}

static void fail_from_first_usage_to_second(void *arg, const struct tide_agent_event *e)
{
    (void)arg;
    if (e->what == TIDE_AGENT_USAGE)
        failing = e->turn == 1;
}

static void what_waited_in_memory_is_stored_once(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    let_fail(f->store);
    opt.on_store_error_continue = 1;
    opt.event = fail_from_first_usage_to_second;
    write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"glob\",\"args\":{\"pattern\":\"*\"}}]},{\"text\":"
                          "\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", &answer, &err));
    tide_text_done(&answer);
    assert_int_equal(count_kind(s, "message.assistant"), 2);
    assert_int_equal(count_kind(s, "message.tool"), 1);
    assert_int_equal(count_kind(s, "llm.request"), 2);
    assert_int_equal(count_kind(s, "checkpoint"), 2);
    tide_agent_free(a);
    tide_session_close(s);
}

static int give_up(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    (void)arg;
    (void)why;
    (void)waited_ms;
    return 1;
}

static void what_was_queued_is_not_forgotten_when_one_flush_was_given_up(void **state)
{
    struct fixture *f = *state;
    tide_session *s = new_session(f);
    const struct tide_run_options opt = {.size = sizeof opt, .trouble = give_up};
    struct draft d = DRAFT_INIT;
    tide_run *r = NULL;

    let_fail(f->store);
    OK(tide_run_start(s, &opt, &r, &err));
    failing = 1;
    draft_add(&d, "note.a", STR("{\"n\":1}"));
    OK(run_put(r, &d, PUT_PURE, &err));
    draft_add(&d, "note.b", STR("{\"n\":2}"));
    OK(run_put(r, &d, PUT_PURE, &err));
    GIVES(TIDE_FULL, run_flush(r, &err));
    failing = 0;
    draft_add(&d, "note.c", STR("{\"n\":3}"));
    OK(run_append(r, TIDE_APPEND_ANY, &d, false, &err));
    draft_done(&d);
    tide_run_close(r);
    assert_int_equal(count_kind(s, "note.a"), 1);
    assert_int_equal(count_kind(s, "note.b"), 1);
    assert_int_equal(count_kind(s, "note.c"), 1);
    tide_session_close(s);
}

/* ---- trimming ------------------------------------------------------------------------------------------------------- */

static void say_to(struct conversation *t, const char *kind, const char *body)
{
    conversation_apply(t, str_from(kind), str_from(body));
}

static void no_result_is_left_without_its_call_when_old_turns_go(void **state)
{
    struct conversation t = {0};
    size_t from, to;

    (void)state;
    say_to(&t, "message.user", "{\"message_id\":\"a\",\"turn\":1,\"content\":\"go\"}");
    say_to(
        &t, "message.assistant",
        "{\"message_id\":\"b\",\"turn\":1,\"content\":\"\",\"tool_calls\":[{\"id\":\"x\",\"name\":\"glob\",\"args\":{}},"
        "{\"id\":\"y\",\"name\":\"glob\",\"args\":{}}]}");
    say_to(&t, "message.tool", "{\"message_id\":\"c\",\"turn\":1,\"tool_call_id\":\"x\",\"content\":\"0123456789\"}");
    say_to(&t, "message.user", "{\"message_id\":\"d\",\"turn\":1,\"hook\":\"h\",\"content\":\"0123456789\"}");
    say_to(&t, "message.tool", "{\"message_id\":\"e\",\"turn\":1,\"tool_call_id\":\"y\",\"content\":\"0123456789\"}");
    say_to(&t, "message.user", "{\"message_id\":\"f\",\"turn\":2,\"content\":\"0123456789\"}");
    say_to(&t, "message.assistant", "{\"message_id\":\"g\",\"turn\":2,\"content\":\"0123456789\"}");
    say_to(&t, "message.user", "{\"message_id\":\"h\",\"turn\":3,\"content\":\"0123456789\"}");
    say_to(&t, "message.assistant", "{\"message_id\":\"i\",\"turn\":3,\"content\":\"0123456789\"}");
    say_to(&t, "message.user", "{\"message_id\":\"j\",\"turn\":4,\"content\":\"more\"}");
    for (size_t keep = 0; keep < conversation_bytes(&t); keep++)
        if (conversation_trim(&t, keep, &from, &to))
            assert_true(from == 1 && to >= 4);
    conversation_done(&t);
}

/* ---- tools of an embedder ------------------------------------------------------------------------------------------- */

static enum tide_code count_it(void *arg, const char *args, const char *key, struct tide_text *ret,
                               struct tide_err *err)
{
    (void)args;
    (void)key;
    (void)err;
    (void)ret;
    ++*(int *)arg;
    return TIDE_OK;
}

static void a_rule_with_a_pattern_may_meet_a_tool_without_a_subject(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    int counted = 0;
    const struct tide_tool tool = {.size = sizeof tool, .name = "count", .fn = count_it, .arg = &counted};
    tide_agent *a;

    opt.permissions = "[{\"tool\":\"*\",\"match\":\"rm *\",\"permission\":\"deny\"}]";
    write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"count\"}]},{\"text\":\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_add_tool(a, &tool, &err));
    OK(tide_agent_run(a, "go", NULL, &err));
    assert_int_equal(counted, 1);
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */

static void no_program_finds_the_key_in_its_environment(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    char hooks[700], path[400], text[8192];
    tide_agent *a;
    FILE *file;

    setenv("REVIEW_MY_OWN_KEY", "key-0123456789", 1);
    setenv("ANTHROPIC_API_KEY", "key-of-the-usual-name", 1);
    snprintf(hooks, sizeof hooks,
             "[{\"name\":\"h\",\"event\":\"pre_tool_use\",\"command\":[\"/bin/sh\",\"-c\",\"env > %s/seen\"]}]",
             f->work);
    opt.api_key = "key-0123456789";
    opt.hooks = hooks;
    write_file(f->script, "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"env\"}}]},{\"text\":"
                          "\"Done.\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", NULL, &err));
    BODY_HAS(s, "message.tool", 0, "TIDEMARK_RUN_ID=");
    BODY_LACKS(s, "message.tool", 0, "key-");
    snprintf(path, sizeof path, "%s/seen", f->work);
    file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_non_null(strstr(text, "PATH="));
    assert_null(strstr(text, "key-"));
    unsetenv("REVIEW_MY_OWN_KEY");
    unsetenv("ANTHROPIC_API_KEY");
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- budgets --------------------------------------------------------------------------------------------------------- */

static void a_budget_that_was_refused_is_asked_about_again_at_the_next_prompt(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    opt.max_tokens = 10;
    opt.approve = decide;
    f->decision = TIDE_DECIDE_DENY;
    write_file(
        f->script,
        "{\"turns\":[{\"text\":\"one\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}},{\"text\":\"two\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", NULL, &err));
    GIVES(TIDE_CANCELLED, tide_agent_run(a, "more", NULL, &err));
    assert_int_equal(f->asked, 1);
    f->decision = TIDE_DECIDE_ALLOW;
    OK(tide_agent_run(a, "more", NULL, &err));
    assert_int_equal(f->asked, 2);
    tide_agent_free(a);
    tide_session_close(s);
}

static void a_budget_that_could_never_be_reached_is_refused(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a = NULL;

    opt.max_cost = 1;
    opt.prices = "{\"other-*\":{\"input\":1,\"output\":2}}";
    write_file(f->script, "{\"turns\":[{\"text\":\"one\"}]}");
    SAYS(TIDE_INVALID, "has no entry for model 'script'", tide_agent_new(s, &opt, &a, &err));
    tide_session_close(s);
}

/* ---- waiting --------------------------------------------------------------------------------------------------------- */

static void stop_while_it_waits(void *arg, const struct tide_agent_event *e)
{
    struct fixture *f = arg;

    f->asked += e->what == TIDE_AGENT_RETRY || (e->what == TIDE_AGENT_WAIT && f->asked);
    if (f->asked == 4)
        tide_agent_stop(stoppable);
}

static void a_provider_that_asks_for_hours_is_not_asked_again_at_once(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);

    opt.event = stop_while_it_waits;
    write_file(f->script, "{\"turns\":[{\"text\":\"x\",\"fail\":[{\"status\":429,\"retry_after\":7200}]}]}");
    stoppable = new_agent(s, &opt);
    GIVES(TIDE_CANCELLED, tide_agent_run(stoppable, "hi", NULL, &err));
    assert_int_equal(count_kind(s, "llm.error"), 1);
    assert_int_equal(count_kind(s, "message.assistant"), 0);
    tide_agent_free(stoppable);
    tide_session_close(s);
}

/* What is asked for is capped; whoever resumes it by hand does not wait, and the attempt counts. */
static void a_pause_of_a_year_is_cut_short_and_a_person_need_not_wait_for_it(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};

    opt.event = stop_while_it_waits;
    opt.max_retry_after_ms = 600000;
    write_file(f->script, "{\"turns\":[{\"text\":\"x\",\"fail\":[{\"status\":429,\"retry_after\":99999999}]}]}");
    stoppable = new_agent(s, &opt);
    GIVES(TIDE_CANCELLED, tide_agent_run(stoppable, "hi", NULL, &err));
    tide_agent_free(stoppable);
    BODY_HAS(s, "llm.error", 0, "asks for a pause of 99999999 s, capped to 600 s by max_retry_after_ms");
    assert_in_range(s->state->ledger.run.retry_ms, env_now_ms(env_real()) + 500000, env_now_ms(env_real()) + 600000);
    opt.retry_now = 1;
    f->asked = 0;
    stoppable = new_agent(s, &opt);
    OK(tide_agent_resume(stoppable, NULL, NULL, &answer, &err));
    assert_string_equal(answer.ptr, "x");
    assert_int_equal(count_kind(s, "llm.error"), 1);
    tide_text_done(&answer);
    tide_agent_free(stoppable);
    tide_session_close(s);
}

/* ---- others in the same session -------------------------------------------------------------------------------------- */

static void what_was_sent_while_nobody_ran_it_is_answered_when_it_goes_on(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    const struct tide_new_event sent = {"queue.added", "{\"queue_id\":\"q1\",\"content\":\"and this?\"}", 0};
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"one\"},{\"text\":\"two\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", NULL, &err));
    OK(tide_session_input(f->store, "s", -1, &sent, 1, NULL, &err));
    OK(tide_agent_resume(a, NULL, NULL, &answer, &err));
    assert_string_equal(answer.ptr, "two");
    tide_text_done(&answer);
    BODY_HAS(s, "message.user", 1, "and this?");
    GIVES(TIDE_NOT_FOUND, tide_agent_resume(a, NULL, NULL, NULL, &err));
    tide_agent_free(a);
    tide_session_close(s);
}

static int others;

static enum tide_code another_speaks(void *arg, const char *input, struct tide_text *ret, struct tide_err *e)
{
    struct fixture *f = arg;
    struct tide_agent_options opt = options(f);
    tide_store *store = NULL;
    tide_session *t = NULL;
    tide_agent *b;

    (void)input;
    (void)ret;
    (void)e;
    if (others++)
        return TIDE_OK;
    OK(tide_store_open(f->path, NULL, &store, &err));
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &t, &err));
    b = new_agent(t, &opt);
    OK(tide_agent_run(b, "the other", NULL, &err));
    tide_agent_free(b);
    tide_session_close(t);
    tide_store_close(store);
    return TIDE_OK;
}

static void who_comes_second_knows_what_the_first_said(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    struct tide_text answer = {NULL, 0};
    tide_agent *a;

    tide_session_close(s); /* who made it holds it at first */
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
    others = 0;
    write_file(f->script, "{\"turns\":[{\"text\":\"one\"},{\"text\":\"two\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_add_hook(a, "h", "agent_start", NULL, another_speaks, f, &err));
    OK(tide_agent_run(a, "mine", &answer, &err));
    assert_string_equal(answer.ptr, "two");
    tide_text_done(&answer);
    BODY_HAS(s, "message.assistant", 0, "\"turn\":1");
    BODY_HAS(s, "message.assistant", 1, "\"turn\":2");
    assert_int_equal(count_kind(s, "message.user"), 2);
    tide_agent_free(a);
    tide_session_close(s);
}

static tide_agent *interrupted;

/* Told while the request is made: what it says of is known to nobody else yet. */
static void stop_and_let_another_speak(void *arg, const struct tide_agent_event *e)
{
    struct fixture *f = arg;

    if (e->what != TIDE_AGENT_NOTICE || others)
        return;
    tide_agent_stop(interrupted);
    OK(another_speaks(f, NULL, NULL, &err));
}

/* The prompt is put again because another came between: that it was told to stop is not forgotten with it. */
static void a_stop_while_another_comes_between_is_not_lost(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"one\"}],\"repeat\":true}");
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "first", NULL, &err));
    tide_agent_free(a);
    tide_session_close(s);
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
    others = 0;
    opt.system_prompt = "another"; /* which is said */
    opt.event = stop_and_let_another_speak;
    a = interrupted = new_agent(s, &opt);
    GIVES(TIDE_CANCELLED, tide_agent_run(a, "mine", NULL, &err));
    BODY_HAS(s, "run.interrupted", 0, "\"by\":\"person\"");
    tide_agent_free(a);
    tide_session_close(s);
}

static enum tide_code take_a_note(void *arg, const char *input, struct tide_text *ret, struct tide_err *e)
{
    const struct tide_new_event note = {"note.hook", "{}", 0};

    (void)input;
    (void)ret;
    (void)e;
    OK(tide_session_append(arg, TIDE_APPEND_ANY, &note, 1, NULL, &err));
    return TIDE_OK;
}

static void what_a_hook_notes_in_the_log_does_not_stand_in_the_way(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"one\"}]}");
    a = new_agent(s, &opt);
    OK(tide_agent_add_hook(a, "h", "agent_start", NULL, take_a_note, s, &err));
    OK(tide_agent_run(a, "go", NULL, &err));
    assert_int_equal(count_kind(s, "note.hook"), 1);
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- what a provider would refuse ------------------------------------------------------------------------------------ */

static void names_that_no_provider_takes_back_are_cleaned(void **state)
{
    static const char *const both[] = {"anthropic", "openai"};
    const struct model_call call = {STR("c1"), STR("functions.bash run!"), STR("{}")};
    const struct model_message m[] = {{.role = TIDE_ROLE_USER, .text = STR("go")},
                                      {.role = TIDE_ROLE_ASSISTANT, .calls = &call, .n_calls = 1},
                                      {.role = TIDE_ROLE_TOOL, .text = STR("no such tool"), .call_id = STR("c1")}};
    const struct model_request req = {.model = STR("m"), .messages = m, .n_messages = 3, .max_tokens = 10};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct provider_config config = {.type = both[i], .key = "k"};
        struct buf out = BUF_INIT(1 << 20);
        struct provider *p = NULL;

        OK(provider_open(&config, &p, &err));
        provider_render(p, &req, &out);
        assert_non_null(strstr(buf_cstr(&out), "\"name\":\"functions_bash_run_\""));
        buf_done(&out);
        provider_close(p);
    }
}

static void a_prompt_of_blanks_is_no_prompt(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    write_file(f->script, "{\"turns\":[{\"text\":\"one\"}]}");
    a = new_agent(s, &opt);
    SAYS(TIDE_INVALID, "empty", tide_agent_run(a, " \n\t ", NULL, &err));
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- an edit that failed and was cut before that was recorded ---------------------------------------------------------- */

static int hooked;

static enum tide_code die_at_second(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    (void)arg;
    (void)input;
    (void)ret;
    (void)err;
    if (++hooked == 2)
        raise(SIGKILL);
    return TIDE_OK;
}

static enum tide_code add_deadly_hook(tide_agent *a, void *arg)
{
    (void)arg;
    return tide_agent_add_hook(a, "h", "pre_tool_use", NULL, die_at_second, NULL, NULL);
}

static void an_edit_that_did_nothing_is_not_taken_for_done(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = NULL;
    char path[400];
    tide_agent *a;

    snprintf(path, sizeof path, "%s/a.txt", f->work);
    write_file(path, "OLD and OLD\n");
    write_file(f->script,
               "{\"turns\":[{\"calls\":[{\"name\":\"edit\",\"args\":{\"path\":\"a.txt\",\"old\":\"OLD\",\"new\":\"\"}},"
               "{\"name\":\"glob\",\"args\":{\"pattern\":\"*\"}}]},{\"text\":\"Done.\"}]}");
    die_in_a_run(f, &opt, add_deadly_hook, NULL);
    OK(tide_session_open(f->store, "s", TIDE_SESSION_APPEND, &s, &err));
    a = new_agent(s, &opt);
    OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
    BODY_HAS(s, "message.tool", 0, "outcome unknown");
    tide_agent_free(a);
    tide_session_close(s);
}

/* ---- what was cut off or taken over -------------------------------------------------------------------------------------- */

#define ONE_CALL                                                                                                       \
    "{\"turns\":[{\"calls\":[{\"name\":\"bash\",\"args\":{\"command\":\"echo x >> ledger; echo told\"}}]},{\"text\":\"Done.\"}]}"

static int happened(const struct fixture *f)
{
    char path[400];
    struct stat st;

    snprintf(path, sizeof path, "%s/ledger", f->work);
    return stat(path, &st) == 0 ? (int)st.st_size / 2 : 0;
}

static int64_t seq_of(tide_session *s, const char *kind)
{
    char *all = kinds_of(s, 1), *at = strstr(all, kind);
    int64_t seq = 1;

    assert_non_null(at);
    for (const char *p = all; p < at; p++)
        seq += *p == ' ';
    free(all);
    return seq;
}

static void what_a_rollback_keeps_answers_from_the_log_and_else_happens_again(void **state)
{
    static const struct {
        const char *back_to;
        unsigned flags;
        int happened;
    } rows[] = {
        {"llm.request", TIDE_ROLLBACK_REUSE_EFFECTS, 1},      {"message.assistant", TIDE_ROLLBACK_REUSE_EFFECTS, 1},
        {"tool.started", TIDE_ROLLBACK_REUSE_EFFECTS, 1},     {"llm.request", TIDE_ROLLBACK_REDO_EFFECTS, 2},
        {"message.assistant", TIDE_ROLLBACK_REDO_EFFECTS, 2},
    };
    struct fixture *f = *state;

    write_file(f->script, ONE_CALL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_agent_options opt = options(f);
        tide_session *s = new_session(f);
        tide_agent *a = new_agent(s, &opt);
        char path[400];

        OK(tide_agent_run(a, "go", NULL, &err));
        OK(tide_session_rollback(s, seq_of(s, rows[i].back_to), rows[i].flags, "test", &err));
        OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
        assert_int_equal(happened(f), rows[i].happened);
        BODY_HAS(s, "message.tool", 1, "told");
        tide_agent_free(a);
        tide_session_close(s);
        OK(tide_session_delete(f->store, "s", &err));
        snprintf(path, sizeof path, "%s/ledger", f->work);
        unlink(path);
    }
}

static void a_fork_does_not_repeat_what_was_under_way_where_it_branches_off(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f), *t = NULL;
    char id[TIDE_ID_SIZE];
    tide_agent *a;

    write_file(f->script, ONE_CALL);
    a = new_agent(s, &opt);
    OK(tide_agent_run(a, "go", NULL, &err));
    tide_agent_free(a);
    OK(tide_session_fork(f->store, "s", seq_of(s, "tool.started"), NULL, NULL, id, &err));
    OK(tide_session_open(f->store, id, TIDE_SESSION_APPEND, &t, &err));
    a = new_agent(t, &opt);
    OK(tide_agent_resume(a, NULL, NULL, NULL, &err));
    assert_int_equal(happened(f), 1);
    BODY_HAS(t, "message.tool", 0, "outcome unknown");
    tide_agent_free(a);
    tide_session_close(t);
    tide_session_close(s);
}

/* ---- P8: a full disk ---------------------------------------------------------------------------------------------------- */

static void mend_when_told(void *arg, const struct tide_agent_event *e)
{
    struct fixture *f = arg;

    if (e->what == TIDE_AGENT_USAGE && e->turn == 1)
        failing = 1;
    if (e->what == TIDE_AGENT_NOTICE && strstr(e->text, "paused until")) {
        f->asked++;
        failing = 0;
    }
}

static tide_agent *impatient;

static void stop_when_told(void *arg, const struct tide_agent_event *e)
{
    (void)arg;
    if (e->what == TIDE_AGENT_NOTICE && strstr(e->text, "paused until"))
        tide_agent_stop(impatient);
}

static void a_prompt_that_a_full_disk_holds_is_not_there_when_it_was_given_up(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);

    let_fail(f->store);
    opt.event = stop_when_told;
    write_file(f->script, ONE_CALL);
    impatient = new_agent(s, &opt);
    failing = 1;
    GIVES(TIDE_FULL, tide_agent_run(impatient, "refused", NULL, &err));
    failing = 0;
    assert_int_equal(count_kind(s, "message.user"), 0);
    tide_agent_free(impatient);
    tide_session_close(s);
}

static void a_full_disk_holds_a_prompt_and_a_run_until_there_is_room(void **state)
{
    struct fixture *f = *state;
    struct tide_agent_options opt = options(f);
    tide_session *s = new_session(f);
    tide_agent *a;

    let_fail(f->store);
    opt.event = mend_when_told;
    write_file(f->script, ONE_CALL);
    a = new_agent(s, &opt);
    failing = 1;
    OK(tide_agent_run(a, "go", NULL, &err));
    assert_int_equal(f->asked, 2);
    assert_int_equal(happened(f), 1);
    assert_int_equal(count_kind(s, "message.user"), 1);
    assert_int_equal(count_kind(s, "tool.started"), 1);
    assert_int_equal(count_kind(s, "message.assistant"), 2);
    tide_agent_free(a);
    tide_session_close(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(many_calls_that_were_left_open_are_closed_by_the_next_prompt),
        T(a_call_does_not_begin_when_it_was_stopped_before),
        T(an_answer_that_comes_late_does_not_allow_another_call),
        T(a_token_that_was_used_is_refused_by_name),
        T(what_waited_in_memory_is_stored_once),
        T(what_was_queued_is_not_forgotten_when_one_flush_was_given_up),
        T(no_result_is_left_without_its_call_when_old_turns_go),
        T(a_rule_with_a_pattern_may_meet_a_tool_without_a_subject),
        T(no_program_finds_the_key_in_its_environment),
        T(a_budget_that_was_refused_is_asked_about_again_at_the_next_prompt),
        T(a_budget_that_could_never_be_reached_is_refused),
        T(a_provider_that_asks_for_hours_is_not_asked_again_at_once),
        T(a_pause_of_a_year_is_cut_short_and_a_person_need_not_wait_for_it),
        T(what_was_sent_while_nobody_ran_it_is_answered_when_it_goes_on),
        T(a_stop_while_another_comes_between_is_not_lost),
        T(who_comes_second_knows_what_the_first_said),
        T(what_a_hook_notes_in_the_log_does_not_stand_in_the_way),
        T(names_that_no_provider_takes_back_are_cleaned),
        T(a_prompt_of_blanks_is_no_prompt),
        T(an_edit_that_did_nothing_is_not_taken_for_done),
        T(what_a_rollback_keeps_answers_from_the_log_and_else_happens_again),
        T(a_fork_does_not_repeat_what_was_under_way_where_it_branches_off),
        T(a_prompt_that_a_full_disk_holds_is_not_there_when_it_was_given_up),
        T(a_full_disk_holds_a_prompt_and_a_run_until_there_is_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
