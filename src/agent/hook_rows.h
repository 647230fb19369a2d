/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the hooks share: one hook as it is kept, and the words of their JSON. */
#ifndef AGENT_HOOK_ROWS_H
#define AGENT_HOOK_ROWS_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "agent/hook.h"

/* Exactly one of argv, fn and a fixed answer. */
struct hook {
    char *name, *matcher; /* matcher NULL: every tool */
    enum hook_event event;
    pcre2_code *pattern;
    char **argv;   /* of a program; ends with NULL */
    bool of_shell; /* argv is /bin/sh -c LINE */
    int64_t timeout_ms;
    hook_fn *fn;
    void *arg;
    enum hook_action action; /* fixed */
    bool record;             /* fixed "log": continues, but by name, so that it is written down */
    char *text;
    bool fails_closed; /* "on_failure": "deny": when it cannot be asked, or answers nonsense, the call is denied */
    bool missing;      /* its program is not there, which has been reported */
};

struct hooks {
    struct hook *list;
    size_t len, cap;
    int64_t timeout_ms;
    hook_report_fn *report;
    void *arg;
    const char *secret;
    struct guard *guard;
};

__attribute__((format(printf, 3, 4))) void hooks_report(const struct hooks *h, const char *name, const char *fmt, ...);

/* Takes the hook over and compiles its matcher; one with a bad pattern is reported and gone. */
void hooks_take(struct hooks *h, struct hook *hook);

/* One that cannot be used, for this reason, is reported and gone; one that fails closed denies every call from now on. */
void hooks_reject(struct hooks *h, struct hook *hook, const char *why);

bool hook_event_parse(struct str name, enum hook_event *ret_event); /* "pre_tool_use" and "PreToolUse" */
bool hook_action_parse(struct str name, enum hook_action *ret_action, bool *ret_log);
bool hook_event_has_tool(enum hook_event event);
bool hook_action_fits(enum hook_action action, enum hook_event event);
const char *hook_actions_at(enum hook_event event); /* for messages */

/* The text that belongs to an action, of a hook's row or of an answer; TIDE_INVALID when it is missing or mistyped. */
enum tide_code hook_action_text(struct arena *a, enum hook_action action, const char *hook, const struct json *object,
                                struct str *ret_text, struct tide_err *err) MUST_CHECK;

/* What a program is given, and what it answers. No output at all is `continue`. */
void hook_input_render(struct buf *out, const struct hook_input *input);
enum tide_code hook_answer_parse(struct arena *a, const struct hook *hook, struct str output, struct hook_verdict *ret,
                                 struct tide_err *err) MUST_CHECK;

#endif
