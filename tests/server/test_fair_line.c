/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks take turns, whatever one of them has waiting. */
#include "base/mem.h"
#include "kit.h"
#include "server/fair_line.h"

static struct fair_turn *arrive(struct fair_line *l, const char *task, const char *id, int64_t until_ms)
{
    struct fair_turn *turn = mem_zero(sizeof *turn);

    snprintf(turn->id, sizeof turn->id, "%s", id);
    turn->until_ms = until_ms;
    fair_put(l, task, turn);
    return turn;
}

/* The id whose turn it is; its task runs one more. */
static void want_next(struct fair_line *l, const char *id, struct fair_task **ret_task)
{
    struct fair_turn *turn = fair_take(l);

    assert_non_null(turn);
    assert_string_equal(turn->id, id);
    if (ret_task)
        *ret_task = turn->task;
    free(turn);
}

static void drop(struct fair_turn *turn)
{
    free(turn);
}

static void the_task_with_fewest_active_runs_is_next(void **state)
{
    struct fair_line l = {.turns = 0};
    struct fair_task *a = NULL;

    (void)state;
    for (int i = 0; i < 1000; i++)
        arrive(&l, "a", "a", 0);
    want_next(&l, "a", &a);
    want_next(&l, "a", NULL);
    arrive(&l, "b", "b1", 0);
    arrive(&l, "b", "b2", 0);
    want_next(&l, "b1", NULL);
    want_next(&l, "b2", NULL);
    fair_ended(&l, a);
    want_next(&l, "a", NULL); /* one runs, of b two would */
    assert_int_equal(l.due, 997);
    fair_done(&l, drop);
}

static void equal_tasks_take_turns(void **state)
{
    struct fair_line l = {.turns = 0};
    struct fair_task *task = NULL;

    (void)state;
    for (int i = 0; i < 3; i++) {
        arrive(&l, "a", "a", 0);
        arrive(&l, "b", "b", 0);
        arrive(&l, "", "none", 0);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const order[] = {"a", "b", "none"};

        for (int k = 0; k < 3; k++) {
            want_next(&l, order[k], &task);
            fair_ended(&l, task);
        }
    }
    assert_null(fair_take(&l));
    assert_int_equal(l.tasks.live, 0);
    fair_done(&l, drop);
}

static void what_was_asked_for_comes_before_what_is_due(void **state)
{
    struct fair_line l = {.turns = 0};

    (void)state;
    arrive(&l, "a", "due", 0);
    arrive(&l, "a", "asked", 50);
    assert_true(fair_waits(&l, "asked"));
    assert_false(fair_waits(&l, "due"));
    want_next(&l, "asked", NULL);
    want_next(&l, "due", NULL);
    fair_done(&l, drop);
}

static void who_waited_too_long_leaves_the_line(void **state)
{
    struct fair_line l = {.turns = 0};
    struct fair_turn *first = arrive(&l, "a", "first", 50), *late;

    (void)state;
    arrive(&l, "a", "second", 60);
    arrive(&l, "b", "due", 0);
    assert_int_equal(fair_next_late(&l), 50);
    assert_null(fair_take_late(&l, 49));
    late = fair_take_late(&l, 55);
    assert_ptr_equal(late, first);
    free(late);
    assert_int_equal(fair_next_late(&l), 60);
    free(fair_take_late(&l, 60));
    assert_int_equal(fair_next_late(&l), 0);
    arrive(&l, "a", "third", 70);
    want_next(&l, "due", NULL);
    want_next(&l, "third", NULL);
    fair_done(&l, drop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_task_with_fewest_active_runs_is_next),
        cmocka_unit_test(equal_tasks_take_turns),
        cmocka_unit_test(what_was_asked_for_comes_before_what_is_due),
        cmocka_unit_test(who_waited_too_long_leaves_the_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
