/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent in a process of its own, killed with SIGKILL: at each thing it tells, from inside the tools it runs, and at random
 * moments; then another goes on until the conversation is over. Its tools append to a file outside the store: each command
 * is there at most once, and it is there unless the model was told that nobody knows. A prompt of whose answer anything was
 * shown is in the log. Nothing is left running.
 */
#include "conversation.h"

enum { CALLBACKS_MAX = 80, ROUNDS_MAX = 40, RANDOM_TALKS = SLOW_BUILD ? 1 : 3 };

static const struct words words = {{"first do this", "then do that"}, {"a1", "a2", "a3", "b1"}};

/* `more` is what the second command does behind its line in the ledger. */
#define WRITE "{\"id\":\"w\",\"name\":\"write\",\"args\":{\"path\":\"out.txt\",\"content\":\"x\"}}"
#define A1 BASH("a1", "echo a1 >> ledger")
#define A2(more) BASH("a2", "echo a2 >> ledger" more)
#define A3 BASH("a3", "sleep 0.01; echo a3 >> ledger; sleep 0.01")
#define B1 BASH("b1", "echo b1 >> ledger")
#define SCRIPT(more)                                                                                                   \
    "{\"turns\":[{\"text\":\"I will do it.\",\"chunk_ms\":1,\"calls\":[" A1                                            \
    "," A2(more) "," WRITE "]},"                                                                                       \
                 "{\"text\":\"One more.\",\"fail\":[{\"status\":503}],\"calls\":[" A3                                  \
                 "]},{\"text\":\"That was the first.\"},"                                                              \
                 "{\"calls\":[" B1 "]},{\"text\":\"And that was all.\"}]}"

/* ---- the tests ------------------------------------------------------------------------------------------------------------- */

static void kill_itself(struct driver *d, const struct tide_agent_event *e)
{
    if (e->what != TIDE_AGENT_WAIT && ++d->callbacks == d->p->kill_at) /* that one comes by the clock */
        kill(getpid(), SIGKILL);
}

static void killed_at_each_thing_it_tells_it_goes_on(void **state)
{
    int n = 0;
    bool killed = true;

    (void)state;
    while (killed && ++n < CALLBACKS_MAX) {
        struct place p;

        place_init(&p, &words, SCRIPT(""));
        p.on_event = kill_itself;
        p.kill_at = n;
        killed = one_process(&p);
        p.kill_at = 0;
        assert_false(killed && one_process(&p));
        check_end(&p);
        dir_remove(p.dir);
    }
    assert_in_range(n, 10, CALLBACKS_MAX - 1);
    print_message("%d kills\n", n - 1);
}

static void killed_again_while_it_goes_on_it_still_ends(void **state)
{
    struct place p;
    int n = 0;

    (void)state;
    place_init(&p, &words, SCRIPT(""));
    p.on_event = kill_itself;
    for (p.kill_at = 3; n < ROUNDS_MAX && one_process(&p); n++) /* each gets a little further than the one before */
        p.kill_at += n % 2;
    assert_in_range(n, 2, ROUNDS_MAX - 1);
    check_end(&p);
    dir_remove(p.dir);
    print_message("%d kills\n", n);
}

/* In the shell of a tool: above the guard. */
#define AGENT "$(cut -d' ' -f4 /proc/$PPID/stat)"

static void a_tool_that_kills_its_agent_runs_once(void **state)
{
    static const char *const scripts[] = {
        SCRIPT("; kill -9 " AGENT),
        /* The guard as well: a child lives on, and is ended by who goes on. */
        SCRIPT("; (sleep 30; echo late >> ledger) & (kill -STOP " AGENT "; kill -9 $PPID " AGENT ") & wait"),
        /* Nobody's child, in a session of its own: ended by the guard. */
        SCRIPT("; (setsid sh -c 'sleep 30; echo late >> ledger' &); kill -9 " AGENT "; wait"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct place p;
        struct findings f;

        place_init(&p, &words, scripts[i]);
        assert_true(one_process(&p));
        if (i == 1)
            assert_int_not_equal(find_marked(p.mark), 0);
        for (int k = 0; i == 2 && k < 10000 && find_marked(p.mark); k++)
            poll(NULL, 0, 1);
        if (i == 2)
            assert_int_equal(find_marked(p.mark), 0);
        assert_false(one_process(&p));
        assert_int_equal(find_marked(p.mark), 0);
        f = look(&p);
        assert_int_equal(f.unknown[1], 1); /* a2 */
        assert_int_equal(in_ledger(&p, "a2"), 1);
        check_end(&p);
        dir_remove(p.dir);
    }
}

static void killed_at_random_moments_it_comes_to_its_end(void **state)
{
    struct rng rng = {20261115};
    int kills = 0;

    (void)state;
    for (int talk = 0; talk < RANDOM_TALKS; talk++) {
        struct place p;
        bool killed = true;

        place_init(&p, &words, SCRIPT("; sleep 0.005"));
        for (int i = 0; i < ROUNDS_MAX && killed; i++) {
            struct child c = child_start(drive, &p, 1);

            spin_ns(rng_between(&rng, 1000000, 8000000 + 4000000 * (int64_t)i));
            kill(c.pid, SIGKILL);
            killed = was_killed(finish_child(&p, &c));
            check_shown(&p);
            kills += killed;
        }
        if (killed)
            assert_false(one_process(&p));
        check_end(&p);
        dir_remove(p.dir);
    }
    print_message("%d kills\n", kills);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_thing_it_tells_it_goes_on),
        cmocka_unit_test(killed_again_while_it_goes_on_it_still_ends),
        cmocka_unit_test(a_tool_that_kills_its_agent_runs_once),
        cmocka_unit_test(killed_at_random_moments_it_comes_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
