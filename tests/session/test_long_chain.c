/* SPDX-License-Identifier: Apache-2.0 */
/* A run that continues a long chain: it reads the log as it is asked, in whatever order, and what is not final to the end. */
#include "runs.h"
#include "session/run.h"

#define STEPS 400

static void step_name(char name[16], int i)
{
    snprintf(name, 16, "step %d", i);
}

static enum tide_code give_number(void *arg, const char *key, struct tide_text *ret, struct tide_err *why)
{
    char text[16];

    (void)key;
    (void)why;
    snprintf(text, sizeof text, "%d", *(int *)arg);
    *ret = (struct tide_text){strdup(text), strlen(text)};
    return TIDE_OK;
}

static enum tide_code run_nth(tide_run *r, int i, int gives, int *ret_gave, struct tide_err *why)
{
    char name[16];
    const struct tide_step_spec spec = {
        .size = sizeof spec, .name = name, .effect = i % 3 ? TIDE_EFFECT_PURE : TIDE_EFFECT_ONCE};
    struct tide_text text = {NULL, 0};
    enum tide_code code;

    step_name(name, i);
    code = tide_run_step(r, &spec, give_number, &gives, &text, why);
    *ret_gave = text.ptr ? (int)strtol(text.ptr, NULL, 10) : -1;
    tide_text_done(&text);
    return code;
}

static void expect(tide_run *r, int i, int gives, int want)
{
    int gave;

    OK(run_nth(r, i, gives, &gave, &err));
    assert_int_equal(gave, want);
}

/*
 * Step i gives i. In the middle: a sleep, a checkpoint (its id), a step that must happen once and was cut, and one that is done
 * by the second run of the chain.
 */
static void make_chain(struct fixture *f, char checkpoint[TIDE_ID_SIZE])
{
    struct tide_step_answer a;
    tide_session *s = create(f);
    tide_run *r = start(s);
    int64_t due;

    for (int i = 0; i < STEPS / 2; i++)
        expect(r, i, i, i);
    OK(tide_run_sleep(r, "a moment", now() - 1, &due, &err));
    OK(tide_run_checkpoint(r, TIDE_CHECKPOINT_SAFE_POINT, NULL, checkpoint, &err));
    ask(r, "cut", TIDE_EFFECT_ONCE, 0, TIDE_STEP_RUN, &a);
    OK(tide_step_begin(r, "cut", 0, 0, &err));
    tide_run_close(r);
    r = resume(s, NULL);
    for (int i = STEPS / 2; i < STEPS; i++)
        expect(r, i, i, i);
    tide_run_close(r);
    tide_session_close(s);
}

static void it_is_read_as_it_is_asked(void **state)
{
    struct fixture *f = *state;
    char checkpoint[TIDE_ID_SIZE], again[TIDE_ID_SIZE];
    tide_session *s;
    tide_run *r;
    int64_t due, before;

    make_chain(f, checkpoint);
    s = open_for(f->other);
    r = resume(s, NULL);
    for (int i = 0; i < STEPS; i++) {
        expect(r, i, -1, i);
        if (i == 0)
            assert_true(r->done.next < 40);
        if (i == STEPS / 2) {
            before = tide_session_last_seq(s);
            OK(tide_run_sleep(r, "a moment", now() + 60000, &due, &err));
            OK(tide_run_checkpoint(r, TIDE_CHECKPOINT_SAFE_POINT, NULL, again, &err));
            assert_string_equal(again, checkpoint);
            assert_int_equal(tide_session_last_seq(s), before);
        }
    }
    expect(r, STEPS, 7, 7); /* the first that is new */
    finish(r);
    tide_session_close(s);
}

static void the_order_of_asking_does_not_matter(void **state)
{
    struct fixture *f = *state;
    char checkpoint[TIDE_ID_SIZE];
    tide_session *s;
    tide_run *r;

    make_chain(f, checkpoint);
    s = open_for(f->other);
    for (int k = 0; k < 20; k++) {
        r = resume(s, NULL);
        for (int i = 0, at = k * 37; i < 10; i++, at += 123) /* none twice */
            expect(r, at % STEPS, -1, at % STEPS);
        tide_run_close(r);
    }
    r = resume(s, NULL);
    expect(r, STEPS + 1, 5, 5); /* a new one first */
    for (int i = STEPS - 1; i >= 0; i--)
        expect(r, i, -1, i);
    finish(r);
    tide_session_close(s);
}

static void what_was_cut_far_back_is_known_to_be_open(void **state)
{
    const struct tide_step_spec spec = {.size = sizeof spec, .name = "cut", .args = "a", .args_len = 1};
    struct fixture *f = *state;
    char checkpoint[TIDE_ID_SIZE];
    struct doing d = {0};
    tide_session *s;
    tide_run *r;

    make_chain(f, checkpoint);
    s = open_for(f->other);
    r = resume(s, NULL);
    expect(r, 1, -1, 1);
    ABOUT(TIDE_UNSETTLED, TIDE_SUBJECT_STEP, spec.name, tide_run_step(r, &spec, do_it, &d, NULL, &err));
    assert_int_equal(d.times, 0);
    expect(r, 2, -1, 2);
    finish(r);
    tide_session_close(s);
}

static void what_a_rollback_cut_is_done_again(void **state)
{
    struct fixture *f = *state;
    char checkpoint[TIDE_ID_SIZE];
    tide_session *s;
    tide_run *r;

    make_chain(f, checkpoint);
    s = open_for(f->other);
    OK(tide_session_rollback(s, s->state->content.checkpoint_seq, TIDE_ROLLBACK_REUSE_EFFECTS, "test", &err));
    r = resume(s, NULL);
    for (int i = 0; i < STEPS; i++) /* those that must happen once answer, the others are done again */
        expect(r, i, i + 1000, i < STEPS / 2 || i % 3 == 0 ? i : i + 1000);
    finish(r);
    tide_session_close(s);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(it_is_read_as_it_is_asked),
        T(the_order_of_asking_does_not_matter),
        T(what_was_cut_far_back_is_known_to_be_open),
        T(what_a_rollback_cut_is_done_again),
    };

    return cmocka_run_group_tests_name("long chain", tests, NULL, NULL);
}
