/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one node does by itself: JSON in, JSON out. Programs, registered callbacks, Lua; the texts of prompts and questions;
 * whether what came out is what the node promised. Knows nothing of logs, threads and what comes next.
 *
 *   node_work.c          runs a function or a lua node        node_work_program.c  a program: JSON in, JSON out, ended whole
 *   node_work_output.c   is the output what was promised      placeholders.c     {placeholders} of prompts and questions
 *   node_work_secrets.c   values that are stored nowhere
 */
#ifndef GRAPH_NODE_WORK_H
#define GRAPH_NODE_WORK_H

#include "graph/spec.h"

#define NODE_WORK_OUTPUT_MAX ((size_t)16 << 20) /* bytes that a node may give */
#define NODE_WORK_MESSAGE_MAX 400               /* bytes of an error's text that are kept */

/* A value that is stored nowhere: the code that stores something takes it out first. json empty: it has no value yet. */
struct node_work_secret {
    struct str key, json;
};

struct guard;

struct node_work {
    const struct spec_node *node; /* function or lua; in a map the node inside it */
    const char *name;             /* of the node in the log: "fetch", "review#1/ask", "pages#1[3]" */
    struct str inputs;            /* JSON object; NUL-terminated */
    struct str memory;            /* JSON object, for lua: without the keys that are stored nowhere */
    const char *session_id, *run_id;
    struct guard *guard;     /* of the run: starts programs; NULL: they are our children */
    const char *key;         /* the same in every attempt: with it the outside recognises a repetition */
    const char *dir;         /* where programs run */
    const char *program_dir; /* where one with a relative path is looked for; NULL: in dir */
    int64_t visit, attempt;
    const struct node_work_secret *secrets;
    size_t n_secrets;
    tide_node_fn *fn; /* of a callback; NULL: none is registered */
    void *fn_arg;
    bool (*stopped)(void *arg); /* asked at least ten times a second while it runs; NULL: never */
    void *arg;
};

struct node_work_result {
    struct buf output; /* JSON object; of a failure empty */
    char code
        [32]; /* of a failure: exit, timeout, bad_output, missing_output, too_big, lua, callback, not_found, secret, stopped, … */
    char message[NODE_WORK_MESSAGE_MAX + 1]; /* one line, control characters made visible, secrets masked */
    bool unbegun;                            /* it failed, or was to end, before any of its work began */
    bool unknown;                            /* it was ended half-way: what it did of its work is not known */
};
#define NODE_WORK_RESULT_INIT                                                                                          \
    {                                                                                                                  \
        .output = BUF_INIT(NODE_WORK_OUTPUT_MAX)                                                                       \
    }

/* True: it gave what it promised. False: code and message say what is wrong. */
bool node_work_run(const struct node_work *b, struct node_work_result *ret);
void node_work_result_done(struct node_work_result *r);
bool node_work_fail(struct node_work_result *r, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Makes of what came out (any JSON value) the object that is stored: only declared outputs when there are any, a lone value
 * under the only one that is declared, else under "result"; a missing or null one that is not nullable, or a secret's value
 * anywhere but under a secret's key, is a failure.
 */
bool node_work_output(const struct node_work *b, struct str json, struct node_work_result *ret);

/* Takes the values of secrets (texts of four bytes and more) out of a text in place. */
void node_work_mask(char *text, size_t len, const struct node_work_secret *secrets, size_t n);

/*
 * A text with {key} and {key.member} replaced by values of a JSON object: texts as they are, others as JSON. {{ and the }}
 * that closes it are braces; other braces, as those of JSON and code, are themselves. TIDE_INVALID names a placeholder that has no value, and the keys that there are.
 */
enum tide_code placeholders_fill(struct str text, const struct json *values, struct buf *ret, struct tide_err *err)
    MUST_CHECK;

/* Which keys a text asks for, {key.member} as "key.member"; each is reported once. */
void placeholders_keys(struct str text, void (*fn)(void *arg, struct str key), void *arg);

#endif
