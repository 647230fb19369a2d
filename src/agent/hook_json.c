/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of hooks: names of events and actions, what a program is given, what it may answer.
 *
 *   in    {"pre_tool_use":{"tool_name":"bash","args":{…},"tool_use_id":"c1"},"session_id":"s1","turn":3}
 *   out   {"action":"deny","reason":"…"}   {"action":"modify_args","args":{…}}   {"action":"stop","reason":"…"}
 *         {"action":"system_message","message":"…"}   {"action":"append_context","context":"…"}
 *         {"action":"allow"}   {"action":"continue"}   or nothing at all
 *
 * The tag stays the first member: programs that know this shape from elsewhere look no further.
 */
#include <ctype.h>

#include "agent/hook_rows.h"

static const char *const event_names[] = {
    [HOOK_AGENT_START] = "agent_start",     [HOOK_TURN_START] = "turn_start",
    [HOOK_TURN_END] = "turn_end",           [HOOK_PRE_TOOL_USE] = "pre_tool_use",
    [HOOK_POST_TOOL_USE] = "post_tool_use", [HOOK_POST_TOOL_USE_FAILURE] = "post_tool_use_failure",
    [HOOK_AGENT_STOP] = "agent_stop",
};
#define N_EVENTS (sizeof(event_names) / sizeof(event_names[0]))

/* `member` holds the text; "text" is taken in its place. `otherwise` stands for a text that is not given; NULL: it must be. */
static const struct {
    const char *name, *member, *otherwise;
} actions[] = {
    [HOOK_CONTINUE] = {"continue", "reason", ""},
    [HOOK_APPEND_CONTEXT] = {"append_context", "context", NULL},
    [HOOK_SYSTEM_MESSAGE] = {"system_message", "message", NULL},
    [HOOK_STOP] = {"stop", "reason", "stopped"},
    [HOOK_ALLOW] = {"allow", "reason", ""},
    [HOOK_MODIFY_ARGS] = {"modify_args", "args", NULL},
    [HOOK_DENY] = {"deny", "reason", "denied"},
};
#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

const char *hook_event_name(enum hook_event event)
{
    return (size_t)event < N_EVENTS ? event_names[event] : "?";
}

const char *hook_action_name(enum hook_action action)
{
    return (size_t)action < N_ACTIONS ? actions[action].name : "?";
}

/* As it is, or in camel case: "pre_tool_use", "PreToolUse". */
static bool is_named(struct str given, const char *snake)
{
    bool up = true;
    size_t i = 0;

    if (str_eq(given, str_from(snake)))
        return true;
    for (; *snake; snake++) {
        char want = up ? (char)toupper((unsigned char)*snake) : *snake;

        up = *snake == '_';
        if (!up && (i == given.len || given.ptr[i++] != want))
            return false;
    }
    return i == given.len;
}

bool hook_event_parse(struct str name, enum hook_event *ret_event)
{
    for (size_t i = 0; i < N_EVENTS; i++) {
        if (is_named(name, event_names[i])) {
            *ret_event = (enum hook_event)i;
            return true;
        }
    }
    return false;
}

bool hook_action_parse(struct str name, enum hook_action *ret_action, bool *ret_log)
{
    *ret_log = is_named(name, "log");
    *ret_action = HOOK_CONTINUE;
    for (size_t i = 0; i < N_ACTIONS && !*ret_log; i++) {
        if (is_named(name, actions[i].name)) {
            *ret_action = (enum hook_action)i;
            return true;
        }
    }
    return *ret_log;
}

bool hook_event_has_tool(enum hook_event event)
{
    return event == HOOK_PRE_TOOL_USE || event == HOOK_POST_TOOL_USE || event == HOOK_POST_TOOL_USE_FAILURE;
}

bool hook_action_fits(enum hook_action action, enum hook_event event)
{
    return action == HOOK_CONTINUE || (action >= HOOK_ALLOW) == (event == HOOK_PRE_TOOL_USE);
}

const char *hook_actions_at(enum hook_event event)
{
    return event == HOOK_PRE_TOOL_USE ? "deny, modify_args, allow or continue"
                                      : "stop, system_message, append_context or continue";
}

/* ---- in ---- */

void hook_input_render(struct buf *out, const struct hook_input *input)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_key(&o, str_from(hook_event_name(input->event)));
    json_out_begin(&o, '{');
    if (hook_event_has_tool(input->event)) {
        json_out_kstr(&o, STR("tool_name"), input->tool);
        json_out_kraw(&o, STR("args"), input->args.len ? input->args : STR("{}"));
        json_out_kstr(&o, STR("tool_use_id"), input->call_id);
        if (input->event == HOOK_POST_TOOL_USE)
            json_out_kstr(&o, STR("result"), input->result);
        if (input->event == HOOK_POST_TOOL_USE_FAILURE)
            json_out_kstr(&o, STR("error"), input->error);
    } else if (input->event == HOOK_AGENT_START) {
        json_out_kstr(&o, STR("task"), input->task);
    } else if (input->event == HOOK_AGENT_STOP) {
        json_out_kstr(&o, STR("result"), input->result);
    } else {
        json_out_kint(&o, STR("turn"), input->turn);
    }
    json_out_end(&o, '}');
    json_out_kstr(&o, STR("session_id"), str_from(input->session_id));
    json_out_kint(&o, STR("turn"), input->turn);
    json_out_end(&o, '}');
    buf_add_char(out, '\n');
}

/* ---- out ---- */

static enum tide_code new_args(struct arena *a, const struct json *args, struct str *ret_text, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 2);

    if (!args || args->type != JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "modify_args needs \"args\", an object");
    json_write(&text, args);
    *ret_text = arena_dup(a, buf_view(&text));
    return TIDE_OK;
}

enum tide_code hook_action_text(struct arena *a, enum hook_action action, const char *hook, const struct json *object,
                                struct str *ret_text, struct tide_err *err)
{
    const char *member = actions[action].member, *otherwise = actions[action].otherwise;
    const struct json *v = json_get(object, str_from(member));

    if (action == HOOK_MODIFY_ARGS)
        return new_args(a, v, ret_text, err);
    v = v ? v : json_get(object, STR("text"));
    if (v && v->type != JSON_STRING)
        return tide_fail(err, TIDE_INVALID, "\"%s\" must be a string", member);
    if (!v && !otherwise)
        return tide_fail(err, TIDE_INVALID, "%s needs \"%s\" (or \"text\"), a string", actions[action].name, member);
    if (v)
        *ret_text = arena_dup(a, json_text(a, v));
    else
        *ret_text = str_from(*otherwise ? arena_printf(a, "%s by the hook '%s'", otherwise, hook) : "");
    return TIDE_OK;
}

enum tide_code hook_answer_parse(struct arena *a, const struct hook *hook, struct str output, struct hook_verdict *ret,
                                 struct tide_err *err)
{
    const struct json *action;
    struct json *json = NULL;
    bool log = false;

    *ret = (struct hook_verdict){.action = HOOK_CONTINUE};
    if (str_is_blank(output))
        return TIDE_OK;
    if (json_parse(a, output, NULL, &json, NULL, err))
        return tide_wrap(err, "its answer is not JSON");
    action = json_get(json, STR("action"));
    if (!action || action->type != JSON_STRING)
        return tide_fail(err, TIDE_INVALID, "its answer must be an object with \"action\", a string");
    if (!hook_action_parse(json_text(a, action), &ret->action, &log))
        return tide_fail(err, TIDE_INVALID, "it answers '%.40s': %s may be answered",
                         arena_dup(a, json_text(a, action)).ptr, hook_actions_at(hook->event));
    if (!hook_action_fits(ret->action, hook->event))
        return tide_fail(err, TIDE_INVALID, "it answers '%s' to %s: %s may be answered", hook_action_name(ret->action),
                         hook_event_name(hook->event), hook_actions_at(hook->event));
    return hook_action_text(a, ret->action, hook->name, json, &ret->text, err);
}
