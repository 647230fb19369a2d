/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools of the agent: one file each, one row each in the table. A call is made ready first (a program waits at its gate,
 * its pid can be written down), runs when its start is on disk, or is dropped.
 */
#ifndef AGENT_TOOL_H
#define AGENT_TOOL_H

#include "base/buf.h"
#include "base/json.h"
#include "base/secrets.h"
#include "program/proc.h"

#define TOOL_RESULT_MAX ((size_t)16 << 20) /* hard limit of what is kept; what the model sees is cut further */

/* Where tools work. Shared by all calls of an agent. */
struct tool_place {
    const char *cwd;                 /* absolute */
    int dir;                         /* descriptor of it: file tools stay below (openat2) */
    struct guard *guard;             /* of the run: what starts programs; NULL: they are our children */
    const char *session_id, *run_id; /* in the environment of programs: TIDEMARK_SESSION_ID, TIDEMARK_RUN_ID */
    int64_t timeout_ms;              /* of a program; 0: 120 s */
    size_t max_result_chars;         /* 0: no limit but TOOL_RESULT_MAX */
    const char *secret;              /* the provider's key: no program finds it in its environment. May be NULL */
    struct secrets *secrets;         /* what is not to be in a result; may be NULL */
    void *arg;
    bool (*stop)(void *arg); /* asked at least ten times a second while a tool works; true: end it. May be NULL */
};

struct tool;

/* One call. */
struct tool_work {
    const struct tool *tool;
    const struct tool_place *place;
    const struct json *args; /* an object */
    const char *key;         /* idempotency key: TIDEMARK_IDEMPOTENCY_KEY of programs */
    struct proc proc;        /* of a program at its gate; pid 0: none */
    int out;                 /* its output */
};

/* What is known of a call that was started and whose end nobody saw. */
enum tool_fate { FATE_UNKNOWN, FATE_HAPPENED, FATE_DID_NOT };

struct tool_result {
    struct buf text; /* valid UTF-8 (what was not became U+FFFD), cut between characters, with a mark that it is cut */
    bool failed;     /* the model gets it as an error */
    bool unknown;    /* it was ended half-way (time-out, stop): how far it came, nobody knows */
    bool replaced;   /* bytes that were no valid Unicode became U+FFFD */
    bool redacted;   /* it held a secret, and has a mark in its place */
};
void tool_result_done(struct tool_result *r);

struct tool {
    const char *name, *description, *schema; /* schema: JSON Schema of the arguments, compact, fixed */
    enum tide_effect effect;
    const char *subject; /* the argument that permission patterns match and that is shown: "command", "path" */
    enum tide_permission permission; /* when no rule says otherwise */
    /* TIDE_INVALID: the arguments are no good, err says what is: the model gets that. NULL: nothing to be made ready */
    enum tide_code (*prepare)(struct tool_work *w, struct tide_err *err);
    /* Always gives a result: a failure is a result for the model. */
    void (*run)(struct tool_work *w, struct tool_result *ret);
    /* The probe of a `once` call that was cut: looks, changes nothing. NULL: that cannot be known */
    enum tool_fate (*fate)(struct tool_work *w);
    void (*drop)(struct tool_work *w); /* takes back what prepare left in the world; NULL: nothing */
    /* What the file holds now and would hold then: looks, changes nothing. NULL: it changes no file */
    enum tide_code (*preview)(struct tool_work *w, struct buf *ret_before, struct buf *ret_after, struct tide_err *err);
};

extern const struct tool *const tools[]; /* ended by NULL: bash read write edit glob grep */
const struct tool *tool_find(struct str name);

/* The JSON array that providers are given; the same bytes every time. `allowed` (NULL: all) says which. */
void tools_render(struct buf *out, bool (*allowed)(void *arg, const struct tool *t), void *arg);
void tool_render(struct json_out *o, const struct tool *t); /* one of them */

/* Checks the arguments against the schema's required names and types, then makes ready. */
enum tide_code tool_prepare(struct tool_work *w, struct tide_err *err) MUST_CHECK;
void tool_run(struct tool_work *w, struct tool_result *ret);
void tool_drop(struct tool_work *w); /* one that was made ready and is not to run, or whose outcome is on disk */
enum tool_fate tool_fate(struct tool_work *w); /* of one that was started under this key in an earlier life */

/* One line for people: "bash ls -l", "edit src/a.c". */
void tool_summary(struct buf *out, struct str name, const struct json *args);

/* Cuts to max_chars on a character's border and appends a mark that says how much is missing; 0: no limit. */
void tool_cut(struct buf *text, size_t max_chars);
bool tool_hide(struct secrets *secrets, struct buf *text); /* before it is cut: half a secret would not be found */

#endif
