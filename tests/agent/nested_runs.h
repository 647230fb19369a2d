/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of nested loops share: a session, a run, and an agent's loop that is one part of it. */
#ifndef TESTS_AGENT_NESTED_RUNS_H
#define TESTS_AGENT_NESTED_RUNS_H

#include "agent/cuts.h"
#include "agent/nested.h"
#include "session/run.h"

struct nest {
    struct world w;
    tide_store *store;
    tide_session *s;
    tide_run *run;
    struct nested_agent nested;
    struct nested_result result;
    struct tide_err err;
    int turns_over;
};

UNUSED static void count_turn(void *arg, struct draft *d, int64_t turn)
{
    struct nest *k = arg;

    (void)d;
    assert_true(turn > 0);
    k->turns_over++;
}

UNUSED static void set_nested(struct nest *k, const char *node, int64_t visit)
{
    k->nested = (struct nested_agent){.session = k->s,
                                      .run = k->run,
                                      .node = node,
                                      .visit = visit,
                                      .branch = "",
                                      .prompt = "do it",
                                      .opt = &k->w.opt,
                                      .turn_over = count_turn,
                                      .arg = k};
}

UNUSED static void begin(struct nest *k, const char *script)
{
    world_init(&k->w);
    k->w.opt.approve = NULL;
    k->w.opt.permissions = ALLOW_ALL;
    write_file(k->w.script, script);
    k->store = store_at(&k->w, "s");
    OK(tide_session_create(k->store, "s", NULL, &k->s, &err));
    OK(tide_run_start(k->s, &(struct tide_run_options){.size = sizeof(struct tide_run_options)}, &k->run, &err));
    set_nested(k, "write", 1);
}

UNUSED static void forget_result(struct nest *k)
{
    nested_result_done(&k->result);
    k->result = (struct nested_result)NESTED_RESULT_INIT;
}

UNUSED static enum tide_code run_nested(struct nest *k)
{
    forget_result(k);
    k->err = (struct tide_err){0};
    return nested_run(&k->nested, &k->result, &k->err);
}

#define RUNS_NESTED(want, k) expect_code(want, run_nested(k), &(k)->err, "nested_run", __FILE__, __LINE__)

UNUSED static void end(struct nest *k)
{
    const struct tide_run_result completed = {.size = sizeof completed, .outcome = TIDE_OUTCOME_COMPLETED};

    if (k->run && !k->run->over)
        OK(tide_run_end(k->run, &completed, &err));
    tide_run_close(k->run);
    tide_session_close(k->s);
    tide_store_close(k->store);
    nested_result_done(&k->result);
    dir_remove(k->w.dir);
}

#define SET(key, value) CALL("same", "set_output", "{\"key\":\"" key "\",\"value\":" value "}")

UNUSED static const struct str two_keys[] = {{"title", 5}, {"body", 4}}, one_nullable[] = {{"body", 4}};

UNUSED static void want_two(struct nest *k)
{
    k->nested.outputs = two_keys;
    k->nested.n_outputs = 2;
}

/* A tool of each class, an end that comes too early, a rate limit; ids that the provider repeats. */
UNUSED static const char pages_script[] =
    "{\"nodes\":{\"write\":["
    "{\"text\":\"Look.\",\"calls\":[" BASH("same", "echo b1 >> " LEDGER) "," SET(
        "title",
        "\"T\"") "]},"
                 "{\"text\":\"That is all.\"},"
                 "{\"text\":\"Now.\",\"fail\":[{\"status\":429}],\"calls\":[" CALL(
                     "same", "write",
                     "{\"path\":\"out.txt\",\"content\":\"x\"}") "," BASH("same",
                                                                          "echo b2 >> " LEDGER) "]},"
                                                                                                "{\"calls\":[" SET("body", "{\"a\":[1,2.50]}") "," CALL(
                                                                                                    "same", "read",
                                                                                                    "{\"path\":\"" GIVEN
                                                                                                    "\"}") "]}]}}";

#endif
