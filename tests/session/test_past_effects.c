/* SPDX-License-Identifier: Apache-2.0 */
/* Effects that must happen once, over rollbacks: which are left, how they ended, and which answer from the log. */
#include "session/past_effects.h"
#include "kit.h"

#define START(id)                                                                                                      \
    {                                                                                                                  \
        "tool.started", "{\"call_id\":\"" id "\",\"tool\":\"t\",\"effect\":\"once\"}"                                  \
    }
#define DONE(id)                                                                                                       \
    {                                                                                                                  \
        "tool.completed", "{\"call_id\":\"" id "\"}"                                                                   \
    }
#define FAILED(id)                                                                                                     \
    {                                                                                                                  \
        "tool.failed", "{\"call_id\":\"" id "\"}"                                                                      \
    }
#define BACK(to, effects)                                                                                              \
    {                                                                                                                  \
        "session.rolled_back", "{\"to_seq\":" to effects "}"                                                           \
    }
#define REUSE ",\"effects\":\"reuse\""
#define REDO ",\"effects\":\"redo\""

static const struct {
    const char *name;
    const char *log[8][2];
    const char *want; /* id, how it ended, + when it answers from the log */
} rows[] = {
    {"one that nobody saw the end of", {START("a")}, "a cut "},
    {"ends", {START("a"), DONE("a"), START("b"), FAILED("b")}, "a done b failed "},
    {"another effect", {{"tool.started", "{\"call_id\":\"a\",\"tool\":\"t\",\"effect\":\"idempotent\"}"}}, ""},
    {"one of somebody else", {START("other"), DONE("other")}, ""},
    {"cut off, and it answers", {START("a"), DONE("a"), BACK("0", REUSE)}, "a done+ "},
    {"cut off, and it may happen again", {START("a"), DONE("a"), BACK("0", REDO)}, ""},
    {"what stands before the cut is not cut",
     {START("a"), DONE("a"), START("b"), DONE("b"), BACK("2", REDO)},
     "a done "},
    {"its end is cut, its start is not", {START("a"), DONE("a"), BACK("1", REUSE)}, "a done+ "},
    {"the second rollback is not about what the first cut off",
     {START("a"), DONE("a"), BACK("0", REUSE), START("b"), DONE("b"), BACK("3", REDO)},
     "a done+ "},
    {"it began again", {START("a"), DONE("a"), BACK("0", REUSE), START("a")}, "a cut "},
    {"a rollback that says nothing", {START("a"), FAILED("a"), BACK("0", "")}, "a failed "},
};

static bool begins(struct past_reader *r, struct str call_id, const struct json *body, void *effect)
{
    (void)r;
    (void)body;
    (void)effect;
    return !str_eq(call_id, STR("other"));
}

static void what_is_left_of_effects(void **state)
{
    static const char *const words[] = {[PAST_CUT] = "cut", [PAST_FAILED] = "failed", [PAST_DONE] = "done"};
    static const struct past_row none[] = {{NULL, NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct past_effects past = PAST_EFFECTS_INIT;
        struct past_reader r = {&past, sizeof(struct past_effect), begins, none, NULL, ARENA_INIT};
        struct buf got = BUF_INIT(1000);

        for (int n = 0; n < 8 && rows[i].log[n][0]; n++)
            past_effects_event(&r, &(struct event){.seq = n + 1,
                                                   .kind = str_from(rows[i].log[n][0]),
                                                   .body = str_from(rows[i].log[n][1])});
        for (struct map_entry *e = map_next(&past.effects, NULL); e; e = map_next(&past.effects, e)) {
            const struct past_effect *f = e->value;

            buf_addf(&got, "%s %s%s ", e->key, words[f->state], f->reuse ? "+" : "");
        }
        if (strcmp(buf_cstr(&got), rows[i].want) != 0)
            fail_msg("%s: '%s', want '%s'", rows[i].name, buf_cstr(&got), rows[i].want);
        buf_done(&got);
        past_effects_done(&past);
        arena_done(&r.scratch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_left_of_effects)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
