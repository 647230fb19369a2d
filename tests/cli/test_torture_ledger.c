/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a torture: ledgers and logs that are right and wrong, and what is found in them. */
#include "torture/torture_internal.h"

#include "kit.h"

#define APPEND(seq) "{\"at\":\"append\",\"seq\":" #seq ",\"about\":\"x\"}\n"
#define BEGIN(node, attempt, once)                                                                                     \
    "{\"at\":\"begin\",\"node\":\"" node "\",\"visit\":1,\"attempt\":" #attempt ",\"once\":" #once "}\n"
#define END(node, attempt, once, ok)                                                                                   \
    "{\"at\":\"end\",\"node\":\"" node "\",\"visit\":1,\"attempt\":" #attempt ",\"once\":" #once ",\"ok\":" #ok "}\n"
#define RETRY(node) "{\"at\":\"retry\",\"node\":\"" node "\",\"visit\":1}\n"

static char found[4096];

void torture_fault(struct torture *t, const struct trial *trial, enum torture_fault_kind kind, const char *what,
                   const char *want, const char *got)
{
    static const char *const words[] = {"complete", "once", "differs", "not_ended", "unjudged"};
    size_t at = strlen(found);

    (void)t;
    (void)trial;
    snprintf(found + at, sizeof found - at, "%s%s %s%s%s%s%s", at ? "; " : "", words[kind], what, want ? " " : "",
             want ? want : "", got ? ">" : "", got ? got : "");
}

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = NULL;

    OK(json_parse(a, str_from(text), NULL, &v, NULL, &err));
    return v;
}

/* ---- who ran again ---- */

static const struct row {
    const char *name, *ledger, *completed, *found;
    int64_t ran_again;
} rows[] = {
    {"all is well", APPEND(3) BEGIN("a", 0, false) END("a", 0, false, true) APPEND(5), "[[\"a\",1,5]]", "", 0},
    {"interrupted and run again", APPEND(3) BEGIN("a", 0, false) APPEND(4) BEGIN("a", 0, false) APPEND(7),
     "[[\"a\",1,7]]", "", 1},
    {"done, not recorded, run again",
     APPEND(3) BEGIN("a", 0, false) END("a", 0, false, true) APPEND(4) BEGIN("a", 0, false) APPEND(7), "[[\"a\",1,7]]",
     "", 1},
    {"complete and run again",
     APPEND(3) BEGIN("a", 0, false) END("a", 0, false, true) APPEND(5) BEGIN("a", 0, false) APPEND(9), "[[\"a\",1,5]]",
     "complete a", 0},
    {"a second visit is another one",
     APPEND(3) BEGIN("a", 0, false) END("a", 0, false, true)
         APPEND(5) "{\"at\":\"begin\",\"node\":\"a\",\"visit\":2,\"attempt\":0}\n",
     "[[\"a\",1,5],[\"a\",2,8]]", "", 0},
    {"an attempt after a failure",
     BEGIN("a", 0, true) END("a", 0, true, false) APPEND(5) BEGIN("a", 1, true) END("a", 1, true, true), "[]", "", 0},
    {"once, cut, and run again by itself", BEGIN("a", 0, true) APPEND(5) BEGIN("a", 0, true), "[]", "once a", 0},
    {"once, done, and run again by itself", BEGIN("a", 0, true) END("a", 0, true, true) APPEND(5) BEGIN("a", 0, true),
     "[]", "once a", 0},
    {"once, and a person let it", BEGIN("a", 0, true) APPEND(5) RETRY("a") BEGIN("a", 0, true), "[]", "", 0},
    {"a line that was cut is nothing", APPEND(3) BEGIN("a", 0, false) "{\"at\":\"begin\",\"node\":\"a\"", "[]", "", 0},
};

static void write_ledger(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void the_ledger_says_who_ran_again(void **state)
{
    char dir[256], path[300];

    (void)state;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/ledger", dir);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO(arena_done) struct arena a = ARENA_INIT;
        struct trial trial = {.completed = parse(&a, rows[i].completed)};
        struct torture t = {.arena = ARENA_INIT};
        struct effects_seen effects_seen;

        write_ledger(path, rows[i].ledger);
        OK(effects_read(&a, path, &effects_seen, &err));
        found[0] = 0;
        torture_judge(&t, &trial, &effects_seen);
        if (strcmp(found, rows[i].found) != 0 || trial.ran_again != rows[i].ran_again)
            fail_msg("%s: '%s', %lld run again", rows[i].name, found, (long long)trial.ran_again);
        effects_done(&effects_seen);
    }
    dir_remove(dir);
}

static void there_may_be_no_ledger_yet(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct effects_seen effects_seen;

    (void)state;
    OK(effects_read(&a, "/nowhere/ledger", &effects_seen, &err));
    assert_int_equal(effects_seen.n, 0);
}

/* ---- what it came to ---- */

static const struct end {
    const char *name, *memory, *completed, *found;
} ends[] = {
    {"the same", "{\"a\":1,\"b\":\"x\"}", "[[\"n\",1,4]]", ""},
    {"in another order", "{\"b\":\"x\",\"a\":1}", "[[\"n\",1,9]]", ""},
    {"another value", "{\"a\":2,\"b\":\"x\"}", "[[\"n\",1,4]]", "differs a 1>2"},
    {"a key is gone", "{\"b\":\"x\"}", "[[\"n\",1,4]]", "differs a 1"},
    {"a key too many", "{\"a\":1,\"b\":\"x\",\"c\":0}", "[[\"n\",1,4]]", "differs c>0"},
    {"completed twice", "{\"a\":1,\"b\":\"x\"}", "[[\"n\",1,4],[\"n\",2,8]]", "complete n 1>2"},
    {"never completed", "{\"a\":1,\"b\":\"x\"}", "[]", "differs node n: times completed 1>0"},
    {"a node too many", "{\"a\":1,\"b\":\"x\"}", "[[\"n\",1,4],[\"m\",1,8]]", "complete m 0>1"},
};

static void the_end_is_held_against_the_unharmed_one(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct torture t = {.arena = ARENA_INIT};
        struct trial trial = {.memory = parse(&a, ends[i].memory), .completed = parse(&a, ends[i].completed)};

        t.base.memory = parse(&a, "{\"a\":1,\"b\":\"x\"}");
        t.base.completed = parse(&a, "[[\"n\",1,4]]");
        found[0] = 0;
        torture_compare(&t, &trial, false);
        if (strcmp(found, ends[i].found) != 0)
            fail_msg("%s: '%s'", ends[i].name, found);
        arena_done(&t.arena);
    }
}

static void what_differs_by_itself_is_left_out(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct torture t = {.arena = ARENA_INIT};
    struct trial second = {.memory = parse(&a, "{\"now\":2,\"b\":1}")},
                 trial = {.memory = parse(&a, "{\"now\":3,\"b\":2}")};

    (void)state;
    t.base.memory = parse(&a, "{\"now\":1,\"b\":1}");
    found[0] = 0;
    torture_compare(&t, &second, true);
    assert_string_equal(found, "");
    torture_compare(&t, &trial, false);
    assert_string_equal(found, "differs b 1>2");
    map_done(&t.unsteady, NULL);
    arena_done(&t.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledger_says_who_ran_again),
        cmocka_unit_test(there_may_be_no_ledger_yet),
        cmocka_unit_test(the_end_is_held_against_the_unharmed_one),
        cmocka_unit_test(what_differs_by_itself_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
