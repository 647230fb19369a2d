/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's loop as one part of a run that somebody else begins, ends and shares between several. Everything
 * that it records carries its node, visit and branch, and its conversation is that of this node and visit alone.
 *
 * Several nested agents of one session work on threads. The caller that touches the session or the run holds the lock; one is entered
 * with the lock held, gives it back while a model answers, a tool or a hook runs or a pause passes, and has it on return.
 */
#ifndef AGENT_NESTED_H
#define AGENT_NESTED_H

#include "session/run.h"

struct guard;

struct nested_agent {
    struct tide_session *session;
    struct tide_run *run;
    struct guard *guard; /* of the run: its programs are started by it. NULL: by one of the agent's own */
    const char *node;    /* as events name it: "write", "review#1/ask" */
    int64_t visit;
    const char *branch; /* "": none */
    const char *prompt; /* said once, when this conversation is empty */
    /* system_prompt, model, provider, max_turns (of the visit), tools, hooks, event (called with the lock held), …; not approve */
    const struct tide_agent_options *opt;
    const struct str *outputs;  /* keys that it is to set with the tool set_output */
    const struct str *nullable; /* those of them that may stay unset */
    size_t n_outputs, n_nullable;
    const char *const *tools;                      /* names of the built-in ones it may use, ended by NULL; NULL: all */
    void (*lock)(void *arg), (*unlock)(void *arg); /* NULL: nobody else is there */
    bool (*stopped)(void *arg);                    /* may be asked with and without the lock; NULL: never */
    /* A turn is over: may add a checkpoint to what is appended with it. NULL: none is made. */
    void (*turn_over)(void *arg, struct draft *d, int64_t turn);
    void *arg;
};

/* What a person is to be asked before it can continue. */
struct nested_wait {
    char name[160];
    enum tide_wait_kind kind;
    char question[512];
};

struct nested_result {
    struct buf outputs; /* JSON object: the keys that were set */
    struct buf answer;  /* the last text */
    struct nested_wait wait;
    char code[32]; /* of a failure: that of llm.error (auth, rate_limit, …), max_turns, budget, hook_stop, config */
    bool retry;    /* of a failure: trying the same again later may help (its own retries are used up) */
};
#define NESTED_RESULT_INIT                                                                                             \
    {                                                                                                                  \
        .outputs = BUF_INIT(SIZE_MAX / 4), .answer = BUF_INIT(SIZE_MAX / 4)                                            \
    }

/*
 * Works until every output is set (without outputs: until it has answered). Continues exactly where it was when there is
 * something of this conversation already. Everything is queued or on disk on return; the run stays open.
 * TIDE_WAITING: nothing was parked; *ret says what is waited for (a call that needs a person's word, a budget): when the
 * wait of that name was answered (tide_run_wait on the run, its first use of the name), call again. TIDE_CANCELLED: `stopped` said
 * so, or somebody asked to cancel the run. TIDE_FAILED: code. Any other code: the run itself cannot continue.
 */
enum tide_code nested_run(const struct nested_agent *nested, struct nested_result *ret, struct tide_err *err)
    MUST_CHECK;
void nested_result_done(struct nested_result *r);

/*
 * One question to the model, yes or no, recorded under its node. *ret_yes -1: what it said could not be read.
 * `context`: what the model gets beside the question. The same question after a cut is asked again; one that was answered is not.
 * Outputs, tools, hooks and budgets have no part in it; it is a conversation apart from that of nested_run().
 */
enum tide_code nested_decide(const struct nested_agent *nested, const char *question, const char *context, int *ret_yes,
                             struct tide_err *err) MUST_CHECK;

#endif
