/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be done about a session, as data: enum tide_action and its arguments. Below the faces nobody writes a command:
 * the command line renders one from this, other faces a link or a button.
 */
#ifndef SESSION_ACTION_H
#define SESSION_ACTION_H

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "tidemark.h"

#define ACTION_NAME 128 /* a longer name of a step or node is left to the person */

/* Arguments that are not known yet are for a person to fill in: null in JSON. */
enum action_wants {
    ACTION_NOW = 1,        /* before it is due */
    ACTION_SET = 2,        /* another value of some key */
    ACTION_GRAPH = 4,      /* another graph */
    ACTION_CHECKPOINT = 8, /* from a checkpoint */
    ACTION_RUN_DUE = 16,
    ACTION_ENSURE = 32,         /* START: the program continues the run that it was given to */
    ACTION_NEW_RUN = 64,        /* START: a new chain, although the last run is unfinished */
    ACTION_ACCEPT_CHANGE = 128, /* recorded steps answer although they are called with other arguments now */
};

struct action {
    enum tide_action action;
    enum tide_session_kind kind;
    unsigned wants;
    const char *wait_kind;       /* of ANSWER */
    int64_t pid;                 /* of END_PROCESS */
    char retry[ACTION_NAME];     /* a step or node that may run again; "": none */
    char happened[ACTION_NAME];  /* one that did happen; "": none */
    char ask_again[ACTION_NAME]; /* a question that was answered with no; "": none */
    bool needs_output;           /* … and says what it gave */
    const char *const *names;    /* instead of those two: several, ended by NULL; NULL: none */
    const char *const *set_keys; /* keys whose values are missing, ended by NULL; NULL: none */
    enum { ACTION_NO_NAMES, ACTION_RETRY_NAMES, ACTION_HAPPENED_NAMES } names_are;
};

/* {"now":true,"retry":["a"],"happened":[{"name":"b","output":null}],"set":{"k":null},…}; of a set of any key: null. */
void action_write_arguments(struct json_out *o, const struct action *a);

/* As what can be done about an error. */
enum tide_code action_hint(struct tide_err *err, const char *session, const struct action *a);

/* {"action":…,"session_id":…,"arguments":…} */
void action_write(struct json_out *o, const char *session, const struct action *a);

/* As the public header has them, in the arena. */
struct tide_next *actions_publish(struct arena *arena, const char *session, const struct action *list, size_t n);

#endif
