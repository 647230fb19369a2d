/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: programs (JSON in, JSON out), fixed actions and C callbacks that are asked at seven places of the loop. Those
 * whose pattern matches the tool's name are asked in order; of their answers one counts:
 *
 *   pre_tool_use   deny > modify_args > allow            others   stop > system_message > append_context > continue
 *
 * The first of equals wins. A program of pre_tool_use that exits with status 2 denies; its standard error is the reason. A hook
 * that fails otherwise, hangs, prints nonsense or has a bad pattern is reported and skipped, or, if so configured
 * ("on_failure": "deny"), denies the call.
 */
#ifndef AGENT_HOOK_H
#define AGENT_HOOK_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

enum hook_event {
    HOOK_AGENT_START,
    HOOK_TURN_START,
    HOOK_TURN_END,
    HOOK_PRE_TOOL_USE,
    HOOK_POST_TOOL_USE,
    HOOK_POST_TOOL_USE_FAILURE,
    HOOK_AGENT_STOP,
};

enum hook_action {
    HOOK_CONTINUE,
    HOOK_APPEND_CONTEXT,
    HOOK_SYSTEM_MESSAGE,
    HOOK_STOP,
    HOOK_ALLOW,
    HOOK_MODIFY_ARGS,
    HOOK_DENY
};

struct hook_input {
    enum hook_event event;
    const char *session_id;
    int64_t turn;
    struct str task;                /* agent_start */
    struct str tool, call_id, args; /* tool events; args: JSON */
    struct str result, error;       /* post_tool_use, agent_stop; post_tool_use_failure */
};

struct hook_verdict {
    enum hook_action action;
    struct str text; /* reason, message, context; of modify_args the JSON object; in the arena */
    struct str hook; /* name of the hook that decided; empty: none did */
};

/* A hook that could not be asked, or answered nonsense: its name and one line. */
typedef void hook_report_fn(void *arg, const char *hook, const char *what);

/* A hook in C: fills *ret; the text may point anywhere that lives until the next call. TIDE_OK, or it is reported and skipped. */
typedef enum tide_code hook_fn(void *arg, const struct hook_input *input, struct hook_verdict *ret,
                               struct tide_err *err);

struct guard;
struct hooks;
struct hooks *hooks_new(int64_t timeout_ms, hook_report_fn *report, void *arg); /* timeout_ms 0: 10 s */
void hooks_free(struct hooks *h);
void hooks_hide(struct hooks *h, const char *secret);   /* from the environment of programs; must live as long */
void hooks_guard(struct hooks *h, struct guard *guard); /* of the run: starts their programs; must live as long */
size_t hooks_count(const struct hooks *h);

/* The JSON array of hooks, or the object {"hooks": [...]} of a hooks file. What is wrong with one is reported and it is left out. */
enum tide_code hooks_load(struct hooks *h, struct str json, struct tide_err *err) MUST_CHECK;
void hooks_add(struct hooks *h, const char *name, enum hook_event event, const char *matcher, hook_fn *fn, void *arg);

/* Whether any hook listens here (so that nothing is made ready for nobody). */
bool hooks_wants(const struct hooks *h, enum hook_event event);

/*
 * Asks all that match, in order, also behind one that has decided: each sees the original input, not what another made of
 * it. `stop` (may be NULL) is asked ten times a second: true ends the hook that runs, and the rest are not asked, so the caller that
 * stops must not take what comes back for leave to continue. A fixed "log" is `continue` by name, when nothing else decided.
 */
void hooks_fire(struct hooks *h, struct arena *a, const struct hook_input *input, bool (*stop)(void *arg), void *arg,
                struct hook_verdict *ret);

/* Reports the hooks whose program is not there. */
void hooks_check_programs(const struct hooks *h);

/* One line a hook, for people: name, event, matcher, what it does. */
typedef void hook_line_fn(void *arg, const char *name, const char *event, const char *matcher, const char *what);
void hooks_list(const struct hooks *h, hook_line_fn *fn, void *arg);

const char *hook_event_name(enum hook_event event);    /* "pre_tool_use" */
const char *hook_action_name(enum hook_action action); /* "modify_args" */

#endif
