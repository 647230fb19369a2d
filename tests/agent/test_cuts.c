/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation that is cut behind each event of its log and goes on from there in a store of its own. It must come to the
 * same end as the one that was never cut, but for effects that must happen once and were under way: of those the model is
 * told that nobody knows. What happened outside is counted outside.
 */
#include "agent/cuts.h"

/* ---- the conversation as text -------------------------------------------------------------------------------------- */

struct told {
    struct arena arena;
    struct message {
        char *text; /* everything of it but the result of a tool */
        char *result;
        char *call_id;
        int64_t turn;
    } m[MESSAGES_MAX];
    size_t n;
    int64_t input_tokens, output_tokens;
};

static int take_message(void *arg, const struct tide_message *m)
{
    struct told *t = arg;
    struct message *to = &t->m[t->n++];
    bool tool = m->role == TIDE_ROLE_TOOL;

    assert_true(t->n < MESSAGES_MAX);
    to->text = (char *)(uintptr_t)arena_printf(
        &t->arena, "%s %lld %s %s %s%s", tide_role_name(m->role), (long long)m->turn, m->call_id ? m->call_id : "-",
        m->calls ? m->calls : "", m->from_hook ? "(hook) " : "", tool ? "" : m->text);
    to->result = (char *)(uintptr_t)(tool ? arena_printf(&t->arena, "%d %s", m->failed, m->text) : "");
    to->call_id = (char *)(uintptr_t)(tool ? arena_printf(&t->arena, "%s", m->call_id) : "");
    to->turn = m->turn;
    return 0;
}

static void read_told(struct world *w, tide_session *s, struct told *t)
{
    struct tide_text info = {NULL, 0};
    tide_agent *a = world_agent(w, s);
    struct json *json = NULL;

    OK(tide_agent_read_history(a, take_message, t, &err));
    OK(tide_agent_get_info(a, &info, &err));
    OK(json_parse(&t->arena, (struct str){info.ptr, info.len}, NULL, &json, NULL, &err));
    t->input_tokens = json_get_int(json, STR("input_tokens"), -1);
    t->output_tokens = json_get_int(json, STR("output_tokens"), -1);
    tide_text_done(&info);
    tide_agent_free(a);
}

/* ---- what must hold after a cut behind event n --------------------------------------------------------------------- */

struct cut {
    struct world *w;
    const struct log *golden;
    const struct told *want;
    struct log *got; /* the whole log after it went on */
    struct told told;
    size_t n;
};

#define FAIL(c, ...)                                                                                                   \
    do {                                                                                                               \
        print_error("cut behind event %zu (%.*s): ", (c)->n, STR_ARG((c)->golden->lines[(c)->n - 1].kind));            \
        fail_msg(__VA_ARGS__);                                                                                         \
    } while (0)

static bool in_prefix(const struct cut *c, const char *kind, const char *call_id)
{
    return log_count(c->golden, 0, c->n, kind, call_id) > 0;
}

/* Its start is in the log, its result is not. */
static bool was_cut(const struct cut *c, const struct call_case *d)
{
    return strcmp(d->effect, "once") == 0 && in_prefix(c, "tool.started", d->id) &&
           !in_prefix(c, "message.tool", d->id);
}

static const struct call_case *case_of(const char *call_id)
{
    for (size_t i = 0; i < CALL_CASES; i++)
        if (strcmp(call_cases[i].id, call_id) == 0)
            return &call_cases[i];
    return NULL;
}

static void check_messages(struct cut *c)
{
    if (c->told.n != c->want->n)
        FAIL(c, "%zu messages, not %zu", c->told.n, c->want->n);
    for (size_t i = 0; i < c->told.n; i++) {
        const struct message *got = &c->told.m[i], *want = &c->want->m[i];
        const struct call_case *d = case_of(got->call_id);

        if (strcmp(got->text, want->text) != 0)
            FAIL(c, "message %zu is '%s', not '%s'", i, got->text, want->text);
        if (d && was_cut(c, d)) {
            if (strncmp(got->result, "1 outcome unknown", 17) != 0)
                FAIL(c, "the result of %s is '%s'", d->id, got->result);
        } else if (strcmp(got->result, want->result) != 0) {
            FAIL(c, "result %zu is '%s', not '%s'", i, got->result, want->result);
        }
    }
}

/* How often it may have been started after the cut. */
static int starts_due(const struct cut *c, const struct call_case *d)
{
    if (d->denied || in_prefix(c, "message.tool", d->id))
        return 0;
    return strcmp(d->effect, "once") == 0 ? !in_prefix(c, "tool.started", d->id) : 1;
}

static void check_effects(struct cut *c)
{
    for (size_t i = 0; i < CALL_CASES; i++) {
        const struct call_case *d = &call_cases[i];
        int due = starts_due(c, d), got = log_count(c->got, c->n, c->got->n, "tool.started", d->id),
            done = d->word ? ledger_count(c->w, d->word) : due;

        if (got != due)
            FAIL(c, "%s was started %d times after it, not %d", d->id, got, due);
        if (done != due)
            FAIL(c, "%s was done %d times after it, not %d", d->id, done, due);
        if (log_count(c->got, 0, c->got->n, "message.tool", d->id) != 1)
            FAIL(c, "%s has not one result", d->id);
    }
}

/* The same key in every attempt, or it is no key. */
static void check_keys(struct cut *c)
{
    struct arena a = ARENA_INIT;

    for (size_t i = 0; i < c->got->n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct line *one = &c->got->lines[i], *two = &c->got->lines[k];

            if (!str_eq(one->kind, STR("tool.started")) || !str_eq(two->kind, one->kind) ||
                !str_eq(one->call_id, two->call_id))
                continue;
            if (!str_eq(json_get_text(&a, one->json, STR("key")), json_get_text(&a, two->json, STR("key"))) ||
                !str_eq(json_get_text(&a, one->json, STR("args_digest")),
                        json_get_text(&a, two->json, STR("args_digest"))))
                FAIL(c, "%.*s ran again with another key or other arguments", STR_ARG(one->call_id));
        }
    arena_done(&a);
}

static void check_file(struct cut *c, const char *name, const char *call_id, const char *want)
{
    char path[400], *text;

    if (in_prefix(c, "message.tool", call_id)) /* it was written before the cut, in another directory so to speak */
        return;
    path_in(c->w, name, path);
    text = file_text(path);
    if (strcmp(text, want) != 0)
        FAIL(c, "%s holds '%s'", name, text);
    free(text);
}

static void check_calls_of_the_model(struct cut *c)
{
    int had = log_count(c->golden, 0, c->n, "message.assistant", NULL),
        failed = log_count(c->golden, 0, c->n, "llm.error", NULL);
    int64_t turn = 0, input = 0, output = 0;

    if (c->w->answers != TURNS - had)
        FAIL(c, "%d answers were asked for, not %d", c->w->answers, TURNS - had);
    if (c->w->retries != !failed)
        FAIL(c, "%d retries, not %d", c->w->retries, !failed);
    for (size_t i = 0; i < c->got->n; i++) {
        const struct line *l = &c->got->lines[i];

        if (str_eq(l->kind, STR("message.assistant"))) {
            if (json_get_int(l->json, STR("turn"), 0) <= turn)
                FAIL(c, "turn %lld does not rise", (long long)turn);
            turn = json_get_int(l->json, STR("turn"), 0);
        } else if (str_eq(l->kind, STR("llm.usage"))) {
            input += json_get_int(l->json, STR("input_tokens"), 0);
            output += json_get_int(l->json, STR("output_tokens"), 0);
        }
    }
    if (c->told.input_tokens != input || c->told.output_tokens != output)
        FAIL(c, "the totals are not those of the log");
    if (str_eq(c->golden->lines[c->n - 1].kind, STR("message.assistant")))
        input += 11 * had, output += had; /* its usage comes behind it in one append: only here is it cut off */
    if (input != c->want->input_tokens || output != c->want->output_tokens)
        FAIL(c, "%lld and %lld tokens in all, not %lld and %lld", (long long)input, (long long)output,
             (long long)c->want->input_tokens, (long long)c->want->output_tokens);
}

static void check_approvals(struct cut *c)
{
    int answered = log_count(c->golden, 0, c->n, "run.resumed", NULL);

    if (c->w->asked != 2 - answered)
        FAIL(c, "%d questions, not %d", c->w->asked, 2 - answered);
    if (log_count(c->got, 0, c->got->n, "approval.requested", NULL) != 2 ||
        log_count(c->got, 0, c->got->n, "approval.given", NULL) != 2)
        FAIL(c, "an approval was written down twice or not at all");
}

static void check_cut(struct cut *c)
{
    for (int i = 0; i < PROMPTS; i++) {
        int n = 0;

        for (size_t k = 0; k < c->got->n; k++)
            n += str_eq(c->got->lines[k].kind, STR("message.user")) &&
                 str_eq(json_get_text(&c->got->arena, c->got->lines[k].json, STR("content")), str_from(prompts[i]));
        if (n != 1)
            FAIL(c, "prompt '%s' is there %d times", prompts[i], n);
    }
    check_messages(c);
    check_effects(c);
    check_keys(c);
    check_file(c, "out.txt", "c_write", "plain");
    check_file(c, "out2.txt", "c_write2", "changed");
    check_calls_of_the_model(c);
    check_approvals(c);
}

/* Cuts, goes on, checks. The log that came of it is handed back when `ret_log` is given, and what was said. */
static void try_cut(struct world *w, const struct log *golden, const struct told *want, size_t n, struct log **ret_log,
                    struct told *ret_told)
{
    struct cut c = {w, golden, want, mem_zero(sizeof(struct log)), {.arena = ARENA_INIT}, n};
    tide_store *store = fresh_store(w);
    tide_session *s = NULL;

    keep_prefix(store, golden, n);
    world_reset(w);
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    go_on(w, s, golden, n, NULL);
    read_told(w, s, &c.told);
    log_read(c.got, s);
    check_cut(&c);
    OK(tide_session_verify(s, NULL, NULL, NULL, &err));
    tide_session_close(s);
    tide_store_close(store);
    if (ret_log) {
        *ret_log = c.got;
        *ret_told = c.told;
        return;
    }
    arena_done(&c.told.arena);
    log_done(c.got);
}

/* The conversation without a cut, and what was said in it. */
static struct log *golden_run(struct world *w, void (*extra)(tide_agent *), struct told *ret)
{
    struct log *golden;
    tide_store *store;
    tide_session *s = NULL;

    world_init(w);
    golden = uninterrupted(w, extra);
    store = store_at(w, "golden");
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    read_told(w, s, ret);
    tide_session_close(s);
    tide_store_close(store);
    return golden;
}

static void cut_behind_any_event_it_comes_to_the_same_end(void **state)
{
    struct world w = {0};
    struct told want = {.arena = ARENA_INIT};
    struct log *golden = golden_run(&w, NULL, &want);
    size_t ends = 0;

    (void)state;
    assert_int_equal(w.answers, TURNS);
    for (size_t i = 0; i < CALL_CASES; i++)
        if (call_cases[i].word)
            assert_int_equal(ledger_count(&w, call_cases[i].word), !call_cases[i].denied);
    for (size_t n = 1; n <= golden->n; n++) {
        ends += golden->is_end[n];
        try_cut(&w, golden, &want, n, NULL, NULL);
    }
    print_message("%zu cuts, %zu of them where an append ended\n", golden->n, ends);
    arena_done(&want.arena);
    log_done(golden);
    dir_remove(w.dir);
}

/* The first line of this kind about this call; its number from 1. */
static size_t place_of(const struct log *log, const char *kind, const char *call_id)
{
    for (size_t i = 0; i < log->n; i++)
        if (log_count(log, i, i + 1, kind, call_id))
            return i + 1;
    fail_msg("no %s in the log", kind);
    return 0;
}

static void cut_again_while_it_goes_on_it_still_comes_to_the_same_end(void **state)
{
    static const struct {
        const char *kind, *call_id;
    } first[] = {{"tool.started", "c_bash"}, {"tool.started", "c_write2"}, {"llm.error", NULL}, {"run.waiting", NULL}};
    struct world w = {0};
    struct told want = {.arena = ARENA_INIT};
    struct log *golden = golden_run(&w, NULL, &want);

    (void)state;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        size_t n = place_of(golden, first[i].kind, first[i].call_id);
        struct told told;
        struct log *log;

        try_cut(&w, golden, &want, n, &log, &told);
        for (size_t k = n; k <= log->n && k < n + (SLOW_BUILD ? 8 : 25); k++)
            try_cut(&w, log, &told, k, NULL, NULL);
        arena_done(&told.arena);
        log_done(log);
    }
    arena_done(&want.arena);
    log_done(golden);
    dir_remove(w.dir);
}

/* ---- nobody here, somebody else ------------------------------------------------------------------------------------- */

/* Whoever is asked answers later and elsewhere: each time another process goes on with the answer. */
static enum tide_code answer_later(struct world *w, tide_store *store)
{
    struct tide_err why = {0};
    enum tide_code code = TIDE_WAITING;
    const char *answer = NULL;

    for (int i = 0; i < 6 && code == TIDE_WAITING; i++) {
        tide_session *s = NULL;
        tide_agent *a;

        OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
        a = world_agent(w, s);
        code = tide_agent_resume(a, answer, NULL, NULL, &why);
        answer = strstr(why.msg, "echo yes") ? "\"allow\"" : "\"no\"";
        tide_agent_free(a);
        tide_session_close(s);
    }
    if (code)
        print_error("%s\n", why.msg);
    return code;
}

static void an_approval_may_be_given_later_after_any_crash(void **state)
{
    struct world w = {0};
    struct told want = {.arena = ARENA_INIT};
    struct log *golden = golden_run(&w, NULL, &want);
    size_t from = place_of(golden, "approval.requested", NULL), to = place_of(golden, "message.tool", "c_no");

    (void)state;
    w.opt.approve = NULL;
    for (size_t n = from; n < to; n++) {
        tide_store *store;
        tide_session *s = NULL;

        if (!golden->is_end[n])
            continue;
        store = fresh_store(&w);
        keep_prefix(store, golden, n);
        world_reset(&w);
        OK(answer_later(&w, store));
        OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
        assert_int_equal(count_kind(s, "approval.requested"), 2);
        assert_int_equal(count_kind(s, "approval.given"), 2);
        assert_int_equal(ledger_count(&w, "yes"), !log_count(golden, 0, n, "tool.started", "c_yes"));
        assert_int_equal(ledger_count(&w, "no"), 0);
        tide_session_close(s);
        tide_store_close(store);
    }
    arena_done(&want.arena);
    log_done(golden);
    dir_remove(w.dir);
}

/* Every call has one result, and it stands behind it before the next answer. */
static void check_no_call_dangles(const struct cut *c)
{
    for (size_t i = 0; i < c->told.n; i++)
        for (size_t d = 0; d < CALL_CASES; d++) {
            char id[60];
            int results = 0;

            snprintf(id, sizeof id, "\"id\":\"%s\"", call_cases[d].id);
            if (strncmp(c->told.m[i].text, "assistant", 9) != 0 || !strstr(c->told.m[i].text, id))
                continue;
            for (size_t k = i + 1; k < c->told.n && strncmp(c->told.m[k].text, "assistant", 9) != 0; k++)
                results += strcmp(c->told.m[k].call_id, call_cases[d].id) == 0;
            if (results != 1)
                FAIL(c, "%s has %d results", call_cases[d].id, results);
        }
}

static void say_something_else(struct world *w, const struct log *golden, const struct told *want, size_t n)
{
    struct cut c = {w, golden, want, mem_zero(sizeof(struct log)), {.arena = ARENA_INIT}, n};
    tide_store *store = fresh_store(w);
    struct tide_err why = {0};
    tide_session *s = NULL;
    tide_agent *a;

    keep_prefix(store, golden, n);
    world_reset(w);
    OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
    a = world_agent(w, s);
    if (tide_agent_run(a, "something else", NULL, &why) != TIDE_OK && !strstr(why.msg, "has 7 turns"))
        FAIL(&c, "%s", why.msg);
    tide_agent_free(a);
    read_told(w, s, &c.told);
    log_read(c.got, s);
    check_no_call_dangles(&c);
    for (size_t i = 0; i < CALL_CASES; i++) {
        int before = log_count(golden, 0, n, "tool.started", call_cases[i].id),
            after = log_count(c.got, n, c.got->n, "tool.started", call_cases[i].id);

        if (strcmp(call_cases[i].effect, "once") == 0 && before + after > 1)
            FAIL(&c, "%s was started again", call_cases[i].id);
        if (call_cases[i].word && ledger_count(w, call_cases[i].word) != after)
            FAIL(&c, "%s was done %d times, started %d times", call_cases[i].id, ledger_count(w, call_cases[i].word),
                 after);
    }
    tide_session_close(s);
    tide_store_close(store);
    arena_done(&c.told.arena);
    log_done(c.got);
}

static void another_prompt_instead_of_going_on_leaves_no_call_without_a_result(void **state)
{
    struct world w = {0};
    struct told want = {.arena = ARENA_INIT};
    struct log *golden = golden_run(&w, NULL, &want);

    (void)state;
    for (size_t n = 1; n <= golden->n; n++)
        if (golden->is_end[n])
            say_something_else(&w, golden, &want, n);
    arena_done(&want.arena);
    log_done(golden);
    dir_remove(w.dir);
}

/* ---- hooks that speak ------------------------------------------------------------------------------------------------ */

static enum tide_code say_once_a_turn(void *arg, const char *input, struct tide_text *ret, struct tide_err *err)
{
    struct buf out = BUF_INIT(200);
    const char *turn = strstr(input, "\"turn\":");

    (void)err;
    buf_addf(&out, "{\"action\":\"append_context\",\"context\":\"%s %.*s\"}", (const char *)arg,
             turn ? (int)strcspn(turn + 7, ",}") : 0, turn ? turn + 7 : "");
    ret->len = out.len;
    ret->ptr = buf_take(&out);
    return TIDE_OK;
}

static void add_speakers(tide_agent *a)
{
    static char *const events[] = {"turn_start", "turn_end", "post_tool_use"};

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        OK(tide_agent_add_hook(a, events[i], events[i], NULL, say_once_a_turn, events[i], &err));
}

/* What a hook said stays as it is when it is in the log, and is said once when it is not: whatever a crash can leave. */
static void what_hooks_say_is_said_once_over_every_crash(void **state)
{
    struct world w = {0};
    struct told want = {.arena = ARENA_INIT};
    struct log *golden = golden_run(&w, add_speakers, &want);

    (void)state;
    for (size_t n = 1; n <= golden->n; n++) {
        struct cut c = {&w, golden, &want, NULL, {.arena = ARENA_INIT}, n};
        tide_store *store;
        tide_session *s = NULL;

        if (!golden->is_end[n])
            continue;
        store = fresh_store(&w);
        keep_prefix(store, golden, n);
        world_reset(&w);
        OK(tide_session_open(store, "s", TIDE_SESSION_APPEND, &s, &err));
        go_on(&w, s, golden, n, add_speakers);
        read_told(&w, s, &c.told);
        for (size_t i = 0; i < CALL_CASES; i++)
            if (was_cut(&c, &call_cases[i])) /* then it is another conversation from there on */
                goto next;
        check_messages(&c);
    next:
        tide_session_close(s);
        tide_store_close(store);
        arena_done(&c.told.arena);
    }
    arena_done(&want.arena);
    log_done(golden);
    dir_remove(w.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_behind_any_event_it_comes_to_the_same_end),
        cmocka_unit_test(cut_again_while_it_goes_on_it_still_comes_to_the_same_end),
        cmocka_unit_test(an_approval_may_be_given_later_after_any_crash),
        cmocka_unit_test(another_prompt_instead_of_going_on_leaves_no_call_without_a_result),
        cmocka_unit_test(what_hooks_say_is_said_once_over_every_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
