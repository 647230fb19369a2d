/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of hooks and the moment they are asked. All that match are asked, in order, each about the same original input:
 * also those behind one that has decided already, because a hook may be there for what it does and not for what it says.
 * What one changes the next does not see. Of the answers the strongest counts, of equals the first.
 *
 * A hook cannot break the loop: whatever it does becomes a line of report, and it is as if it had not been there, unless it asked
 * to fail closed.
 */
#include "agent/hook.h"

#include <stdarg.h>
#include <stdio.h>

#include "agent/hook_program.h"
#include "agent/hook_rows.h"
#include "agent/tool_text.h"
#include "program/find.h"

#define TIMEOUT_MS 10000
#define MATCH_LIMIT 100000 /* steps of one match: microseconds for an honest pattern, an end for one that explodes */
#define DEPTH_LIMIT 1000
#define HEAP_LIMIT_KIB 1024
#define PATTERN_MAX 4096
#define STATUS_DENIES 2 /* exit status of a program at pre_tool_use, as the hooks that people have use it */
#define REASON_MAX ((size_t)16 << 10)

struct hooks *hooks_new(int64_t timeout_ms, hook_report_fn *report, void *arg)
{
    struct hooks *h = mem_zero(sizeof(*h));

    *h = (struct hooks){.timeout_ms = timeout_ms > 0 ? timeout_ms : TIMEOUT_MS, .report = report, .arg = arg};
    return h;
}

static void hook_done(struct hook *hook)
{
    free(hook->name);
    free(hook->matcher);
    free(hook->text);
    for (size_t i = 0; hook->argv && hook->argv[i]; i++)
        free(hook->argv[i]);
    free(hook->argv);
    pcre2_code_free(hook->pattern);
}

void hooks_free(struct hooks *h)
{
    if (!h)
        return;
    for (size_t i = 0; i < h->len; i++)
        hook_done(&h->list[i]);
    free(h->list);
    free(h);
}

void hooks_hide(struct hooks *h, const char *secret)
{
    h->secret = secret;
}

void hooks_guard(struct hooks *h, struct guard *guard)
{
    h->guard = guard;
}

size_t hooks_count(const struct hooks *h)
{
    return h->len;
}

void hooks_report(const struct hooks *h, const char *name, const char *fmt, ...)
{
    char what[512];
    va_list ap;

    if (!h->report)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    h->report(h->arg, name, what);
}

/* ---- patterns ---- */

static pcre2_code *compile_pattern(const struct hook *hook, char *why, size_t size)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    PCRE2_SIZE at = 0;
    int fault = 0;
    pcre2_code *code;

    pcre2_set_max_pattern_length(context, PATTERN_MAX);
    code = pcre2_compile((PCRE2_SPTR)hook->matcher, PCRE2_ZERO_TERMINATED,
                         PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &fault, &at, context);
    pcre2_compile_context_free(context);
    if (!code) {
        PCRE2_UCHAR fault_text[120] = "";

        pcre2_get_error_message(fault, fault_text, sizeof(fault_text));
        snprintf(why, size, "bad matcher '%.100s' at character %zu: %s", hook->matcher, at + 1,
                 (const char *)fault_text);
    }
    return code;
}

static int match_tool(const pcre2_code *pattern, struct str tool)
{
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    int n;

    pcre2_set_match_limit(context, MATCH_LIMIT);
    pcre2_set_depth_limit(context, DEPTH_LIMIT);
    pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
    n = pcre2_match(pattern, (PCRE2_SPTR)tool.ptr, tool.len, 0, 0, data, context);
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    return n;
}

/* A pattern that cannot be matched is a failure of its hook: *ret_why is filled. */
static bool hook_listens(const struct hook *hook, const struct hook_input *input, char *ret_why, size_t size)
{
    int n;

    if (hook->event != input->event || !hook->pattern || !hook_event_has_tool(input->event))
        return hook->event == input->event;
    n = match_tool(hook->pattern, input->tool.ptr ? input->tool : STR(""));
    if (n < 0 && n != PCRE2_ERROR_NOMATCH) {
        PCRE2_UCHAR why[120] = "";

        pcre2_get_error_message(n, why, sizeof(why));
        snprintf(ret_why, size, "matcher '%.100s' cannot be matched with '%.*s': %s", hook->matcher,
                 (int)(input->tool.len < 60 ? input->tool.len : 60), input->tool.ptr, (const char *)why);
        return true;
    }
    return n >= 0;
}

/* ---- the list ---- */

static void add_hook(struct hooks *h, const struct hook *hook)
{
    MEM_ROOM(h->list, h->len, h->cap);
    h->list[h->len++] = *hook;
}

void hooks_reject(struct hooks *h, struct hook *hook, const char *why)
{
    if (hook->fails_closed) {
        struct hook closed = {.name = mem_dup(str_from(hook->name)), .event = HOOK_PRE_TOOL_USE, .action = HOOK_DENY};
        AUTO(buf_done) struct buf text = BUF_INIT(1024);

        buf_addf(&text, "this hook cannot be run: %.400s", why);
        closed.text = mem_dup(buf_view(&text));
        add_hook(h, &closed);
    }
    hooks_report(h, hook->name, hook->fails_closed ? "%s: every tool call is denied" : "%s: ignored", why);
    hook_done(hook);
}

void hooks_take(struct hooks *h, struct hook *hook)
{
    char why[320];

    if (hook->matcher && !hook_event_has_tool(hook->event))
        hooks_report(h, hook->name, "a matcher has no effect at %s: the hook runs every time",
                     hook_event_name(hook->event));
    if (hook->matcher && !(hook->pattern = compile_pattern(hook, why, sizeof(why))))
        hooks_reject(h, hook, why);
    else
        add_hook(h, hook);
}

void hooks_add(struct hooks *h, const char *name, enum hook_event event, const char *matcher, hook_fn *fn, void *arg)
{
    struct hook hook = {.name = mem_dup(str_from(name)),
                        .matcher = matcher && *matcher ? mem_dup(str_from(matcher)) : NULL,
                        .event = event,
                        .fn = fn,
                        .arg = arg};

    hooks_take(h, &hook);
}

bool hooks_wants(const struct hooks *h, enum hook_event event)
{
    for (size_t i = 0; h && i < h->len; i++)
        if (h->list[i].event == event)
            return true;
    return false;
}

static const char *describe_hook(const struct hook *hook, struct buf *out)
{
    buf_clear(out);
    if (hook->fn)
        return "a function";
    if (!hook->argv) {
        buf_addf(out, "%s%s%s", hook->record ? "log" : hook_action_name(hook->action), *hook->text ? ": " : "",
                 hook->text);
        return buf_cstr(out);
    }
    buf_add_str(out, STR("runs"));
    for (size_t i = 0; hook->argv[i]; i++)
        buf_addf(out, " %s", hook->argv[i]);
    return buf_cstr(out);
}

void hooks_list(const struct hooks *h, hook_line_fn *fn, void *arg)
{
    AUTO(buf_done) struct buf what = BUF_INIT((size_t)1 << 20);

    for (size_t i = 0; i < h->len; i++) {
        const struct hook *hook = &h->list[i];

        fn(arg, hook->name, hook_event_name(hook->event), hook->matcher ? hook->matcher : "",
           describe_hook(hook, &what));
    }
}

/* Of a line for the shell only a path can be looked for: anything else may be a word of the shell. */
void hooks_check_programs(const struct hooks *h)
{
    for (size_t i = 0; i < h->len; i++) {
        AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX), word = BUF_INIT(PROGRAM_PATH_MAX);
        char *const *argv = h->list[i].argv;
        struct tide_err err;

        if (!argv)
            continue;
        buf_add_str(&word, str_from(argv[0]));
        if (h->list[i].of_shell) {
            size_t n = strspn(argv[2], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");

            buf_clear(&word);
            buf_add(&word, argv[2], n);
            if (!memchr(word.ptr, '/', n) || (argv[2][n] && argv[2][n] != ' '))
                continue;
        }
        if (program_find(buf_cstr(&word), ".", &path, &err))
            hooks_report(h, h->list[i].name, "%s", err.msg);
    }
}

/* ---- asking ---- */

struct asking {
    struct arena *arena;
    const struct hook_input *input;
    struct buf rendered; /* made for the first program */
    bool (*stop)(void *arg);
    void *arg;
    const char *secret;
    struct guard *guard;
};

static enum tide_code ask_program(struct asking *q, const struct hook *hook, struct hook_verdict *ret,
                                  struct tide_err *err)
{
    AUTO(buf_done) struct buf output = BUF_INIT(HOOK_OUTPUT_MAX), complaint = BUF_INIT(REASON_MAX);
    int exit_status = -1;
    struct hook_program p = {.guard = q->guard,
                             .argv = hook->argv,
                             .timeout_ms = hook->timeout_ms,
                             .stop = q->stop,
                             .arg = q->arg,
                             .secret = q->secret,
                             .complaint = &complaint,
                             .exit_status = &exit_status};

    if (q->rendered.len == 0)
        hook_input_render(&q->rendered, q->input);
    p.input = buf_view(&q->rendered);
    if (hook_program_run(&p, &output, err)) {
        if (exit_status != STATUS_DENIES || hook->event != HOOK_PRE_TOOL_USE)
            return err->code;
        ret->action = HOOK_DENY;
        text_clean(&complaint);
        ret->text = arena_dup(q->arena, str_trim(buf_view(&complaint)));
        return TIDE_OK;
    }
    /* the verdict's text may be a view of what was parsed: that must live as long */
    return hook_answer_parse(q->arena, hook, arena_dup(q->arena, buf_view(&output)), ret, err);
}

/* A function in C is believed no more than a program. */
static enum tide_code ask_function(struct asking *q, const struct hook *hook, struct hook_verdict *ret,
                                   struct tide_err *err)
{
    struct json *args = NULL;

    if (hook->fn(hook->arg, q->input, ret, err))
        return err->code ? err->code : tide_fail(err, TIDE_FAILED, "failed without a reason");
    if (!hook_action_fits(ret->action, hook->event))
        return tide_fail(err, TIDE_INVALID, "it answers '%s' to %s: %s may be answered", hook_action_name(ret->action),
                         hook_event_name(hook->event), hook_actions_at(hook->event));
    ret->text = arena_dup(q->arena, ret->text.ptr ? ret->text : STR(""));
    if (ret->action == HOOK_MODIFY_ARGS && (json_parse(q->arena, ret->text, NULL, &args, NULL, err)))
        return tide_wrap(err, "its arguments are not JSON");
    if (args && args->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "its arguments are not an object");
    return TIDE_OK;
}

static enum tide_code ask_hook(struct asking *q, const struct hook *hook, struct hook_verdict *ret,
                               struct tide_err *err)
{
    *ret = (struct hook_verdict){.action = HOOK_CONTINUE, .text = STR("")};
    if (hook->fn)
        return ask_function(q, hook, ret, err);
    if (hook->argv)
        return ask_program(q, hook, ret, err);
    ret->action = hook->action;
    ret->text = arena_dup(q->arena, str_from(hook->text));
    return TIDE_OK;
}

/* Actions are numbered by what they weigh. One that only continues decides nothing, but "log" is named all the same. */
static void weigh_answer(struct asking *q, const struct hook *hook, const struct hook_verdict *answer,
                         struct hook_verdict *ret)
{
    if (answer->action <= ret->action && !(hook->record && ret->hook.len == 0))
        return;
    *ret = *answer;
    ret->hook = arena_dup(q->arena, str_from(hook->name));
}

void hooks_fire(struct hooks *h, struct arena *a, const struct hook_input *input, bool (*stop)(void *arg), void *arg,
                struct hook_verdict *ret)
{
    struct asking q = {.arena = a, .input = input, .rendered = BUF_INIT(SIZE_MAX / 2), .stop = stop, .arg = arg};
    enum tide_code code = TIDE_OK;

    q.secret = h ? h->secret : NULL;
    q.guard = h ? h->guard : NULL;
    *ret = (struct hook_verdict){.action = HOOK_CONTINUE, .text = STR(""), .hook = STR("")};
    for (size_t i = 0; h && i < h->len && code != TIDE_CANCELLED; i++) {
        struct hook *hook = &h->list[i];
        struct tide_err err = {.code = TIDE_OK};
        struct hook_verdict answer;

        if (!hook_listens(hook, input, err.msg, sizeof(err.msg)))
            continue;
        code = err.msg[0] ? (err.code = TIDE_FAILED) : ask_hook(&q, hook, &answer, &err);
        if (code && code != TIDE_CANCELLED && hook->fails_closed)
            answer = (struct hook_verdict){.action = HOOK_DENY,
                                           .text = str_from(arena_printf(a, "this hook failed: %s", err.msg))};
        if (!code || (code != TIDE_CANCELLED && hook->fails_closed))
            weigh_answer(&q, hook, &answer, ret);
        if (code && (code != TIDE_NOT_FOUND || !hook->missing)) /* once is enough of a program that is not there */
            hooks_report(h, hook->name, "%s: %s", err.msg, hook->fails_closed ? "denied" : "skipped");
        hook->missing = code == TIDE_NOT_FOUND;
    }
    buf_done(&q.rendered);
}
