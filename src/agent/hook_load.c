/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks from JSON, one by one: what is wrong with one is reported and costs only that one.
 *
 *   {"name":"guard","event":"pre_tool_use","matcher":"^bash$","command":["./guard","strict"],"timeout_ms":2000}
 *   {"name":"no-writes","event":"pre_tool_use","matcher":"write|edit","action":"deny","reason":"read only today"}
 *   {"name":"audit","event":"pre_tool_use","command":"./audit.sh","on_failure":"deny"}
 *
 * One with an "on_failure" other than "skip" that is wrong denies every call: a guard that nobody can ask guards nothing else.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/hook_rows.h"
#include "base/nearest.h"

#define TIMEOUT_MAX_MS (INT64_C(3600) * 1000)

static const char *const members[] = {"name",   "event", "matcher", "action",  "command",    "timeout_ms",
                                      "reason", "text",  "message", "context", "on_failure", NULL};

static enum tide_code get_text(struct arena *a, const struct json *row, const char *name, const char **ret_text,
                               struct tide_err *err)
{
    const struct json *v = json_get(row, str_from(name));
    struct str text;

    *ret_text = NULL;
    if (!v)
        return TIDE_OK;
    text = v->type == JSON_STRING ? arena_dup(a, json_text(a, v)) : (struct str){NULL, 0};
    if (!text.ptr || memchr(text.ptr, '\0', text.len))
        return tide_fail(err, TIDE_INVALID, "\"%s\" must be a string", name);
    *ret_text = text.ptr;
    return TIDE_OK;
}

static char **new_argv(size_t n)
{
    return mem_array(n + 1, sizeof(char *));
}

static enum tide_code words_of(struct arena *a, const struct json *list, char **argv, struct tide_err *err)
{
    size_t n = 0;

    for (const struct json *v = list->first; v; v = v->next) {
        struct str word = v->type == JSON_STRING ? json_text(a, v) : (struct str){NULL, 0};

        if (!word.ptr || memchr(word.ptr, '\0', word.len))
            return tide_fail(err, TIDE_INVALID, "\"command\" must hold strings only");
        argv[n++] = mem_dup(word);
    }
    return n && *argv[0] ? TIDE_OK : tide_fail(err, TIDE_INVALID, "\"command\" names no program");
}

/* A list of words is run as it stands; a string is what /bin/sh makes of it. */
static enum tide_code get_command(struct arena *a, const struct json *command, struct hook *hook, struct tide_err *err)
{
    const char *line = NULL;

    if (command->type == JSON_ARRAY) {
        hook->argv = new_argv(command->count);
        return words_of(a, command, hook->argv, err);
    }
    if (command->type != JSON_STRING)
        return tide_fail(err, TIDE_INVALID, "\"command\" must be a list of words, or a string for /bin/sh");
    line = arena_dup(a, json_text(a, command)).ptr;
    if (!*line || strlen(line) != json_text(a, command).len)
        return tide_fail(err, TIDE_INVALID, "\"command\" names no program");
    hook->argv = new_argv(3);
    hook->of_shell = true;
    hook->argv[0] = mem_dup(STR("/bin/sh"));
    hook->argv[1] = mem_dup(STR("-c"));
    hook->argv[2] = mem_dup(str_from(line));
    return TIDE_OK;
}

static enum tide_code get_action(struct arena *a, const struct json *row, const char *word, struct hook *hook,
                                 struct tide_err *err)
{
    struct str text = {NULL, 0};

    if (!hook_action_parse(str_from(word), &hook->action, &hook->record) || hook->action == HOOK_MODIFY_ARGS)
        return tide_fail(err, TIDE_INVALID,
                         "\"action\" is '%.40s': one of deny, allow, stop, system_message, append_context, log", word);
    if (!hook_action_fits(hook->action, hook->event))
        return tide_fail(err, TIDE_INVALID, "'%s' is not possible at %s: only %s", word, hook_event_name(hook->event),
                         hook_actions_at(hook->event));
    if (hook_action_text(a, hook->action, hook->name, row, &text, err))
        return err->code;
    hook->text = mem_dup(text);
    return TIDE_OK;
}

static enum tide_code get_event(struct arena *a, const struct json *row, struct hook *hook, struct tide_err *err)
{
    const char *event = NULL;

    if (get_text(a, row, "event", &event, err))
        return err->code;
    if (!event)
        return tide_fail(err, TIDE_INVALID, "\"event\" is missing: when is it to run?");
    if (!hook_event_parse(str_from(event), &hook->event))
        return tide_fail(err, TIDE_INVALID,
                         "\"event\" is '%.40s': one of agent_start, turn_start, turn_end, pre_tool_use, post_tool_use, "
                         "post_tool_use_failure, agent_stop",
                         event);
    return TIDE_OK;
}

static enum tide_code get_on_failure(struct arena *a, const struct json *row, struct hook *hook, struct tide_err *err)
{
    const char *word = NULL;

    hook->fails_closed = json_get(row, STR("on_failure")); /* what is misspelt is not "skip" */
    if (get_text(a, row, "on_failure", &word, err))
        return err->code;
    hook->fails_closed = word && strcmp(word, "skip") != 0;
    if (hook->fails_closed && strcmp(word, "deny") != 0)
        return tide_fail(err, TIDE_INVALID, "\"on_failure\" is '%.40s': one of skip, deny", word);
    return TIDE_OK;
}

static enum tide_code parse_hook(struct arena *a, const struct json *row, struct hook *hook, struct tide_err *err)
{
    const struct json *command = json_get(row, STR("command")), *timeout = json_get(row, STR("timeout_ms"));
    const char *action = NULL, *matcher = NULL;

    if (get_on_failure(a, row, hook, err) || get_event(a, row, hook, err) || get_text(a, row, "matcher", &matcher, err))
        return err->code;
    if (hook->fails_closed && hook->event != HOOK_PRE_TOOL_USE)
        return tide_fail(err, TIDE_INVALID, "\"on_failure\": \"deny\" is possible at pre_tool_use only");
    if (timeout && (!json_int(timeout, &hook->timeout_ms) || hook->timeout_ms < 1 || hook->timeout_ms > TIMEOUT_MAX_MS))
        return tide_fail(err, TIDE_INVALID, "\"timeout_ms\" must be a whole number from 1 to %" PRId64, TIMEOUT_MAX_MS);
    if (get_text(a, row, "action", &action, err))
        return err->code;
    hook->matcher = matcher && *matcher ? mem_dup(str_from(matcher)) : NULL;
    if (!command == !action)
        return tide_fail(err, TIDE_INVALID, "give either \"command\" or \"action\"%s", command ? ", not both" : "");
    return command ? get_command(a, command, hook, err) : get_action(a, row, action, hook, err);
}

static const char *next_member(void *arg)
{
    const char *const **at = arg;

    return *(*at)++;
}

/* A matcher that is misspelt would match everything: it must not pass in silence. */
static void check_members(const struct hooks *h, struct arena *a, const struct json *row, const char *name)
{
    for (const struct json *m = row->first; m; m = m->next) {
        const char *key = arena_dup(a, json_key_text(a, m)).ptr, *near;
        const char *const *at = members;

        while (*at && strcmp(*at, key) != 0)
            at++;
        if (*at)
            continue;
        at = members;
        near = nearest(key, next_member, &at);
        hooks_report(h, name, "unknown member '%.40s'%s%s%s: ignored", key, near ? ", did you mean '" : "",
                     near ? near : "", near ? "'?" : "");
    }
}

static void load_one(struct hooks *h, struct arena *a, const struct json *row, size_t number)
{
    struct hook hook = {.timeout_ms = h->timeout_ms};
    const char *name = NULL;
    struct tide_err err;
    char nth[32];

    snprintf(nth, sizeof(nth), "#%zu", number);
    if (row->type != JSON_OBJECT) {
        hooks_report(h, nth, "not an object: ignored");
        return;
    }
    if (get_text(a, row, "name", &name, &err)) {
        hooks_report(h, nth, "%s: ignored", err.msg);
        return;
    }
    hook.name = mem_dup(str_from(name && *name ? name : nth));
    if (parse_hook(a, row, &hook, &err)) {
        hooks_reject(h, &hook, err.msg);
        return;
    }
    check_members(h, a, row, hook.name);
    hooks_take(h, &hook);
}

enum tide_code hooks_load(struct hooks *h, struct str json, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct json *list;
    struct json *root = NULL;
    size_t number = 0;

    if (json_parse(&a, json, NULL, &root, NULL, err))
        return tide_wrap(err, "hooks");
    list = root->type == JSON_OBJECT ? json_get(root, STR("hooks")) : root;
    if (!list || list->type != JSON_ARRAY)
        return tide_fail(err, TIDE_INVALID, "hooks: must be a list of hooks, or {\"hooks\": [...]}");
    for (const struct json *row = list->first; row; row = row->next)
        load_one(h, &a, row, ++number);
    return TIDE_OK;
}
