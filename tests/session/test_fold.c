/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part: events to state, state to text and back, which bodies are taken, what money adds up to. */
#include "kit.h"

#include "session/kinds.h"
#include "session/state.h"

/* ---- Random events of every kind ----------------------------------------------------------------------------- */

static const char *const kinds[] = {
    "session.updated", "run.started",    "run.completed",      "run.failed",         "run.cancelled",
    "run.interrupted", "run.waiting",    "run.resumed",        "cancel.requested",   "queue.added",
    "queue.taken",     "message.user",   "message.assistant",  "message.tool",       "llm.request",
    "llm.usage",       "llm.error",      "context.trimmed",    "tool.started",       "tool.completed",
    "tool.failed",     "tool.unknown",   "approval.requested", "approval.given",     "hook.fired",
    "memory.set",      "memory.deleted", "output.set",         "node.started",       "node.completed",
    "node.failed",     "edge.taken",     "checkpoint",         "checkpoint.deleted", "token.minted",
    "token.consumed",  "token.revoked",  "token.expired",      "status.derived",     "executor.starting",
    "executor.ready",  "executor.error", "executor.stopped",   "not.known",
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* A body that has every field any kind asks for; some are wrong on purpose where the fold must pass over them. */
static void random_body(struct rng *r, struct buf *out)
{
    int id = (int)rng_below(r, 3);
    static const char *const texts[] = {"plain", "\\\"quoted\\\"", "\\u00e4\\n\\ud83d\\ude00", "", "x\\u0000y"};

    buf_addf(out,
             "{\"run_id\":\"r%d\",\"boot_id\":\"b\",\"turn\":%d,\"node\":\"n%d\",\"to\":\"n%d\",\"call_id\":\"c%d\",",
             id, (int)rng_below(r, 9), (int)rng_below(r, 3), (int)rng_below(r, 3), id);
    buf_addf(out, "\"queue_id\":\"q%d\",\"approval_id\":\"a%d\",\"token_id\":\"t%d\",\"resume_token_id\":\"t%d\",", id,
             id, id, id);
    buf_addf(out,
             "\"checkpoint_id\":\"k%d\",\"checkpoint_ids\":[\"k%d\",\"zz\"],\"type\":\"turn\",\"wait_kind\":\"input\",",
             id, (int)rng_below(r, 3));
    buf_addf(out, "\"values\":{\"m%d\":%d,\"%s\":{\"a\":[1,2.50,1e400,null]}},\"keys\":[\"m%d\"],", id,
             (int)rng_below(r, 99), texts[rng_below(r, 5)], (int)rng_below(r, 3));
    buf_addf(out, "\"input_tokens\":%d,\"output_tokens\":2,\"cost\":0.00%d,\"title\":\"%s\",\"question\":\"%s\",",
             (int)rng_below(r, 100), (int)rng_below(r, 1000), texts[rng_below(r, 5)], texts[rng_below(r, 5)]);
    buf_addf(out, "\"deadline_at\":\"2026-01-01T00:00:0%d.000Z\",\"visit\":%d,\"effect\":\"%s\",\"tool\":\"t\",",
             (int)rng_below(r, 10), (int)rng_below(r, 3), rng_below(r, 2) ? "once" : "pure");
    if (rng_below(r, 3) == 0)
        buf_addf(out, "\"due_at\":\"2026-01-01T00:00:0%d.000Z\",", (int)rng_below(r, 10));
    if (rng_below(r, 3) == 0)
        buf_addf(out, "\"resumable\":%s,", rng_below(r, 2) ? "true" : "false");
    buf_addf(out, "\"error\":%s,\"reason\":\"%s\",\"failed_at_node\":\"n\",\"can_resume_from\":%s}",
             rng_below(r, 2) ? "{\"code\":\"x\",\"message\":\"m\"}" : "\"text\"", texts[rng_below(r, 5)],
             rng_below(r, 2) ? "true" : "false");
}

struct history {
    struct event *list;
    size_t n;
    struct arena arena;
};

static struct history random_history(struct rng *r)
{
    struct history h = {.n = (size_t)rng_between(r, 1, 120), .arena = ARENA_INIT};
    struct buf body = BUF_INIT(10000);

    h.list = mem_array(h.n, sizeof *h.list);
    for (size_t i = 0; i < h.n; i++) {
        buf_clear(&body);
        random_body(r, &body);
        h.list[i] = (struct event){.seq = (int64_t)i + 1,
                                   .ts_ms = 1700000000000 + (int64_t)i,
                                   .kind = str_from(i ? kinds[rng_below(r, KINDS)] : "session.created"),
                                   .body = arena_dup(&h.arena, buf_view(&body))};
    }
    buf_done(&body);
    return h;
}

static char *encoded(const struct state *s, enum state_part part)
{
    struct buf out = BUF_INIT(SIZE_MAX / 4);

    state_encode(&out, s, part);
    assert_false(out.failed);
    return buf_take(&out);
}

static struct state *fold(const struct history *h, size_t cut)
{
    struct state *s = state_new(STR("s"));
    struct arena scratch = ARENA_INIT;

    for (size_t i = 0; i < h->n; i++) {
        state_apply(s, &h->list[i], &scratch);
        if (i + 1 == cut) { /* as a snapshot would: to text and back */
            char *text = encoded(s, STATE_ALL);

            state_free(s);
            OK(state_decode(str_from(text), &s, &err));
            free(text);
        }
    }
    arena_done(&scratch);
    return s;
}

static void fold_of_a_prefix_and_the_rest_is_the_fold_of_all(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= (SLOW_BUILD ? 60 : 600); seed++) {
        struct rng r = {seed};
        struct history h = random_history(&r);
        struct state *all = fold(&h, 0);
        char *want = encoded(all, STATE_ALL);

        for (int i = 0; i < 4; i++) {
            struct state *pieced = fold(&h, (size_t)rng_between(&r, 1, (int64_t)h.n));
            char *got = encoded(pieced, STATE_ALL);

            if (strcmp(want, got) != 0)
                fail_msg("seed %llu:\n%s\n%s", (unsigned long long)seed, want, got);
            free(got);
            state_free(pieced);
        }
        free(want);
        state_free(all);
        arena_done(&h.arena);
        free(h.list);
    }
}

static void a_state_survives_its_own_text(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rng r = {seed * 77};
        struct history h = random_history(&r);
        struct state *s = fold(&h, 0), *again;

        for (int part = STATE_ALL; part <= STATE_SUMMARY; part++) {
            char *one = encoded(s, (enum state_part)part), *two;

            OK(state_decode(str_from(one), &again, &err));
            two = encoded(again, (enum state_part)part);
            assert_string_equal(one, two);
            state_free(again);
            free(one);
            free(two);
        }
        state_free(s);
        arena_done(&h.arena);
        free(h.list);
    }
}

static void every_kind_of_the_design_is_known(void **unused)
{
    (void)unused;
    for (size_t i = 0; i + 1 < KINDS; i++)
        assert_non_null(kind_find(str_from(kinds[i])));
    assert_non_null(kind_find(STR("session.created")));
    assert_non_null(kind_find(STR("session.rolled_back")));
    assert_null(kind_find(STR("not.known")));
    assert_null(kind_find(STR("message.use")));
    assert_null(kind_find(STR("message.users")));
    assert_null(kind_find(STR("")));
}

static void an_unknown_kind_changes_nothing_but_the_place(void **unused)
{
    struct history h = {.n = 3, .arena = ARENA_INIT};
    struct event list[3] = {
        {.seq = 1, .kind = STR("session.created"), .body = STR("{\"title\":\"t\"}")},
        {.seq = 2, .kind = STR("future.kind"), .body = STR("{\"turn\":99,\"values\":{\"a\":1},\"input_tokens\":5}")},
        {.seq = 3, .kind = STR("memory.set"), .body = STR("{\"values\":{\"b\":2}}")},
    };
    struct state *s;

    (void)unused;
    h.list = list;
    s = fold(&h, 0);
    assert_int_equal(s->seq, 3);
    assert_int_equal(s->ledger.events, 3);
    assert_int_equal(s->content.turn, 0);
    assert_int_equal(s->content.memory.live, 1);
    assert_int_equal(s->content.span_count, 1);
    assert_int_equal(s->content.spans[0].to, 3);
    state_free(s);
}

/* ---- What is taken ------------------------------------------------------------------------------------------- */

static const struct {
    const char *kind, *body;
    enum tide_code want;
    const char *says;
} bodies[] = {
    {"message.user", SAID, TIDE_OK, ""},
    {"message.user", "{}", TIDE_INVALID, "'content'"},
    {"message.user", "{\"content\":null}", TIDE_INVALID, "'content'"},
    {"message.user", "{\"content\":\"\"}", TIDE_OK, ""},
    {"message.user", "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}", TIDE_OK, ""},
    {"message.user", "{\"text\":\"hi\"}", TIDE_INVALID, "'content'"},
    {"message.assistant", "{\"turn\":1}", TIDE_INVALID, "'content'"},
    {"message.assistant", SAID, TIDE_OK, ""},
    {"message.assistant", "{\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"name\":\"bash\",\"args\":{}}]}", TIDE_OK,
     ""},
    {"message.assistant", "{\"tool_calls\":[{\"id\":\"c\",\"name\":\"bash\"}]}", TIDE_OK, ""},
    {"message.assistant", "{\"tool_calls\":null}", TIDE_INVALID, "'content'"},
    {"message.assistant", "{\"tool_calls\":[{\"name\":\"bash\"}]}", TIDE_INVALID, "'tool_calls'"},
    {"message.assistant", "{\"tool_calls\":[{\"id\":\"c\",\"name\":7}]}", TIDE_INVALID, "'tool_calls'"},
    {"message.assistant", "{\"tool_calls\":[\"bash\"]}", TIDE_INVALID, "'tool_calls'"},
    {"message.tool", SAID, TIDE_INVALID, "'tool_call_id'"},
    {"message.tool", "{\"tool_call_id\":\"c\"}", TIDE_INVALID, "'content'"},
    {"message.tool", "{\"tool_call_id\":\"c\",\"content\":\"done\"}", TIDE_OK, ""},
    {"message.user", "[]", TIDE_INVALID, "object"},
    {"message.user", "null", TIDE_INVALID, "object"},
    {"message.user", "{\"turn\":\"1\"}", TIDE_INVALID, "turn"},
    {"message.user", "{\"turn\":1.5}", TIDE_INVALID, "turn"},
    {"message.user", "{\"turn\":99999999999999999999}", TIDE_INVALID, "turn"},
    {"message.user", "{\"turn\":null,\"node\":null,\"content\":7}", TIDE_OK, ""},
    {"message.user", "{\"tool_calls\":{}}", TIDE_INVALID, "tool_calls"},
    {"message.user", "{\"seq\":1}", TIDE_INVALID, "'seq'"},
    {"message.user", "{\"ts\":1}", TIDE_INVALID, "'ts'"},
    {"message.user", "{\"kind\":1}", TIDE_INVALID, "'kind'"},
    {"message.user", "{\"tidemark\":1}", TIDE_INVALID, "'tidemark'"},
    {"message.user", "{\"\\u0073eq\":1}", TIDE_INVALID, "set by Tidemark"},
    {"message.user", "{\"content\":{\"seq\":1}}", TIDE_OK, ""},
    {"not.known", "{\"seq\":1}", TIDE_INVALID, "'seq'"},
    {"not.known", "{\"turn\":\"x\"}", TIDE_OK, ""},
    {"not.known", "7", TIDE_INVALID, "object"},
    {"run.started", "{}", TIDE_INVALID, "run_id"},
    {"run.started", "{\"run_id\":null}", TIDE_INVALID, "run_id"},
    {"run.started", "{\"run_id\":5}", TIDE_INVALID, "run_id"},
    {"run.started", "{\"run_id\":\"r\",\"argv\":\"x\"}", TIDE_INVALID, "argv"},
    {"run.waiting", "{}", TIDE_INVALID, "wait_kind"},
    {"memory.set", "{\"values\":[]}", TIDE_INVALID, "values"},
    {"memory.set", "{}", TIDE_INVALID, "values"},
    {"memory.deleted", "{\"keys\":{}}", TIDE_INVALID, "keys"},
    {"llm.usage", "{\"cost\":\"1\"}", TIDE_INVALID, "cost"},
    {"llm.usage", "{\"cost\":1e-3,\"input_tokens\":1}", TIDE_OK, ""},
    {"tool.started", "{}", TIDE_INVALID, "call_id"},
    {"queue.added", "{}", TIDE_INVALID, "queue_id"},
    {"token.minted", "{}", TIDE_INVALID, "token_id"},
    {"approval.given", "{}", TIDE_INVALID, "approval_id"},
    {"edge.taken", "{}", TIDE_INVALID, "'to'"},
    {"node.started", "{\"node\":\"n\",\"visit\":true}", TIDE_INVALID, "visit"},
    {"checkpoint", "{\"checkpoint_id\":\"c\"}", TIDE_INVALID, "type"},
    {"checkpoint.deleted", "{\"checkpoint_ids\":\"c\"}", TIDE_INVALID, "checkpoint_ids"},
    {"session.rolled_back", "{\"to_seq\":\"1\"}", TIDE_INVALID, "to_seq"},
    {"run.failed", "{\"resumable\":1}", TIDE_INVALID, "resumable"},
    {"session.created", "{\"provider\":\"x\"}", TIDE_INVALID, "provider"},
};

static void bodies_are_checked_against_their_kind(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct arena a = ARENA_INIT;
        struct str kind = str_from(bodies[i].kind);
        struct tide_err err = {0};
        struct json *v;

        assert_int_equal(json_parse(&a, str_from(bodies[i].body), NULL, &v, NULL, &err), TIDE_OK);
        if (kind_check(kind_find(kind), kind, v, &err) != bodies[i].want || !strstr(err.msg, bodies[i].says))
            fail_msg("%s %s: want %s and '%s', got '%s'", bodies[i].kind, bodies[i].body,
                     tide_code_name(bodies[i].want), bodies[i].says, err.msg);
        arena_done(&a);
    }
}

static void kinds_have_plain_names(void **unused)
{
    (void)unused;
    assert_true(kind_is_valid(STR("a")));
    assert_true(kind_is_valid(STR("a.b_c9")));
    assert_false(kind_is_valid(STR("")));
    assert_false(kind_is_valid(STR("9a")));
    assert_false(kind_is_valid(STR(".a")));
    assert_false(kind_is_valid(STR("A")));
    assert_false(kind_is_valid(STR("a b")));
    assert_false(kind_is_valid(STR("a\0b")));
    assert_false(kind_is_valid(STR("\xc3\xa4")));
    assert_false(kind_is_valid(STR("a2345678901234567890123456789012345678901234567890123456789012345")));
}

/* ---- Money --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *cost;
    int64_t nano;
} costs[] = {
    {"0", 0},
    {"1", 1000000000},
    {"0.000000001", 1},
    {"0.0000000019", 1},
    {"0.1", 100000000},
    {"12.345678901", 12345678901},
    {"1e-9", 1},
    {"1E+2", 100000000000},
    {"1.5e-3", 1500000},
    {"25e-10", 2},
    {"-0.25", -250000000},
    {"0.30000000000000004", 300000000},
    {"0.123456789012345678901234567890", 123456789},
    {"12.123456789012345678", 12123456789},
    {"123456.7890123456789", 123456789012345},
    {"9.2e9", 9200000000000000000},
    {"0.000000000000000000000000000000123e30", 123000000},
    {"12345678901234567890e-15", 12345678901234},
    {"99999999999999999999", 0}, /* does not fit */
    {"null", 0},
};

static void costs_are_exact_to_the_billionth(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        struct state *s = state_new(STR("s"));
        struct arena scratch = ARENA_INIT;
        char body[100];
        struct event ev = {.seq = 1, .kind = STR("llm.usage")};

        snprintf(body, sizeof body, "{\"cost\":%s}", costs[i].cost);
        ev.body = str_from(body);
        state_apply(s, &ev, &scratch);
        if (s->ledger.cost_nano != costs[i].nano)
            fail_msg("%s is %lld", costs[i].cost, (long long)s->ledger.cost_nano);
        arena_done(&scratch);
        state_free(s);
    }
}

static void ten_thousand_small_costs_add_up(void **unused)
{
    struct state *s = state_new(STR("s"));
    struct arena scratch = ARENA_INIT;

    (void)unused;
    for (int i = 1; i <= 10000; i++) {
        struct event ev = {
            .seq = i,
            .kind = STR("llm.usage"),
            .body = STR("{\"cost\":0.000000123,\"input_tokens\":3,\"output_tokens\":5,\"cached_tokens\":7}")};

        state_apply(s, &ev, &scratch);
    }
    assert_int_equal(s->ledger.cost_nano, 1230000);
    assert_int_equal(s->ledger.input_tokens, 30000);
    assert_int_equal(s->ledger.output_tokens, 50000);
    assert_int_equal(s->ledger.cached_tokens, 70000);
    assert_int_equal(s->ledger.calls, 10000);
    arena_done(&scratch);
    state_free(s);
}

static const struct {
    const char *kind, *body, *frame, *key, *want; /* of the key in that frame, after the event */
} frames[] = {
    {"node.started", "{\"node\":\"m\",\"visit\":1}", "", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1\",\"values\":{\"items\":[1]}}", "m#1", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1[*]\",\"values\":{\"k\":1,\"l\":2}}", "m#1[*]", "k", "1"},
    {"node.started", "{\"node\":\"m#1[0]\",\"visit\":1}", "m#1[0]#1", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1[0]#1\",\"beneath\":\"m#1[*]\",\"values\":{\"l\":3}}", "m#1[0]#1", "l", "3"},
    {"node.started", "{\"node\":\"m#1[0]#1/s\",\"visit\":1}", "m#1[0]#1/s#1", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1[0]#1/s#1\",\"beneath\":\"m#1[0]#1\",\"values\":{}}", "m#1[0]#1/s#1", "k", "1"},
    {"memory.set", "{\"frame\":\"m#1[*]\",\"beneath\":\"m#1[0]#1\",\"values\":{}}", "m#1[0]#1", "none",
     NULL}, /* a ring */
    {"memory.set", "{\"frame\":\"m#1[*]\",\"beneath\":\"m#1[*]\",\"values\":{}}", "m#1[*]", "none", NULL},
    {"memory.set", "{\"frame\":\"m#1[*]\",\"values\":{\"k\":4}}", "m#1[0]#1", "k", "4"},
    {"node.started", "{\"node\":\"m#1[1]\",\"visit\":1}", "m#1[1]#1", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1[1]#1\",\"values\":{\"l\":5}}", "m#1[1]#1", "k",
     NULL}, /* as it was written before */
    {"memory.deleted", "{\"frame\":\"m#1[0]#1\",\"keys\":[\"k\"]}", "m#1[0]#1", "k", NULL},
    {"memory.set", "{\"frame\":\"m#1[*]\",\"values\":{\"o\":6}}", "m#1[0]#1", "o", NULL}, /* it has parted */
    {"node.completed", "{\"node\":\"m#1[0]\",\"visit\":1}", "m#1[0]#1", "l", NULL},
    {"memory.set", "{\"frame\":\"m#1[1]#1\",\"values\":{\"p\":7}}", "m#1[*]", "k", "4"},
    {"node.completed", "{\"node\":\"m\",\"visit\":1}", "m#1[*]", "k", NULL},
};

static void a_frame_reads_what_it_has_not_in_the_one_beneath(void **unused)
{
    struct state *s = state_new(STR("s")), *again;
    struct arena scratch = ARENA_INIT;
    (void)unused;
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        struct event ev = {.seq = (int64_t)i + 1, .kind = str_from(frames[i].kind), .body = str_from(frames[i].body)};
        const char *got;
        char *text;

        state_apply(s, &ev, &scratch);
        text = encoded(s, STATE_ALL);
        OK(state_decode(str_from(text), &again, &err));
        got = position_value(&again->content, str_from(frames[i].frame), str_from(frames[i].key));
        if (frames[i].want ? !got || strcmp(got, frames[i].want) != 0 : got != NULL)
            fail_msg("%zu: %s of %s is %s", i, frames[i].key, frames[i].frame, got ? got : "not set");
        state_free(s);
        s = again;
        free(text);
    }
    assert_int_equal(s->content.position.scopes.live + s->content.position.beneath.live, 0);
    arena_done(&scratch);
    state_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_of_a_prefix_and_the_rest_is_the_fold_of_all),
        cmocka_unit_test(a_state_survives_its_own_text),
        cmocka_unit_test(a_frame_reads_what_it_has_not_in_the_one_beneath),
        cmocka_unit_test(every_kind_of_the_design_is_known),
        cmocka_unit_test(an_unknown_kind_changes_nothing_but_the_place),
        cmocka_unit_test(bodies_are_checked_against_their_kind),
        cmocka_unit_test(kinds_have_plain_names),
        cmocka_unit_test(costs_are_exact_to_the_billionth),
        cmocka_unit_test(ten_thousand_small_costs_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
