/* SPDX-License-Identifier: Apache-2.0 */
/* Actions into JSON: the one place that knows what their arguments are called. */
#include "session/action.h"

static void put_retry(struct json_out *o, const struct action *a)
{
    json_out_key(o, STR("retry"));
    json_out_begin(o, '[');
    if (a->retry[0])
        json_out_str(o, str_from(a->retry));
    for (size_t i = 0; a->names_are == ACTION_RETRY_NAMES && a->names[i]; i++)
        json_out_str(o, str_from(a->names[i]));
    json_out_end(o, ']');
}

static void put_happened_one(struct json_out *o, const char *name, bool needs_output)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), str_from(name));
    if (needs_output) {
        json_out_key(o, STR("output"));
        json_out_null(o);
    }
    json_out_end(o, '}');
}

static void put_happened(struct json_out *o, const struct action *a)
{
    json_out_key(o, STR("happened"));
    json_out_begin(o, '[');
    if (a->happened[0])
        put_happened_one(o, a->happened, a->needs_output);
    for (size_t i = 0; a->names_are == ACTION_HAPPENED_NAMES && a->names[i];
         i++) /* inside of a node: no key of the memory */
        put_happened_one(o, a->names[i], a->needs_output && strchr(a->names[i], '#'));
    json_out_end(o, ']');
}

static void put_set(struct json_out *o, const struct action *a)
{
    json_out_key(o, STR("set"));
    if (!a->set_keys) {
        json_out_null(o);
        return;
    }
    json_out_begin(o, '{');
    for (size_t i = 0; a->set_keys[i]; i++) {
        json_out_key(o, str_from(a->set_keys[i]));
        json_out_null(o);
    }
    json_out_end(o, '}');
}

static void put_unknown(struct json_out *o, const char *key)
{
    json_out_key(o, str_from(key));
    json_out_null(o);
}

void action_write_arguments(struct json_out *o, const struct action *a)
{
    json_out_begin(o, '{');
    if (a->wants & ACTION_NOW)
        json_out_kbool(o, STR("now"), true);
    if (a->wants & ACTION_RUN_DUE)
        json_out_kbool(o, STR("run_due"), true);
    if (a->wants & ACTION_ENSURE)
        json_out_kbool(o, STR("ensure"), true);
    if (a->wants & ACTION_NEW_RUN)
        json_out_kbool(o, STR("new_run"), true);
    if (a->wants & ACTION_ACCEPT_CHANGE)
        json_out_kbool(o, STR("accept_change"), true);
    if (a->action == TIDE_ACTION_ANSWER) {
        json_out_kstr(o, STR("kind"), str_from(a->wait_kind));
        put_unknown(o, "input");
    }
    if (a->pid)
        json_out_kint(o, STR("pid"), a->pid);
    if (a->happened[0] || a->names_are == ACTION_HAPPENED_NAMES)
        put_happened(o, a);
    if (a->retry[0] || a->names_are == ACTION_RETRY_NAMES)
        put_retry(o, a);
    if (a->ask_again[0])
        json_out_kstr(o, STR("ask_again"), str_from(a->ask_again));
    if (a->wants & ACTION_CHECKPOINT)
        put_unknown(o, "checkpoint");
    if (a->wants & ACTION_GRAPH)
        put_unknown(o, "graph");
    if (a->wants & ACTION_SET || a->set_keys)
        put_set(o, a);
    json_out_end(o, '}');
}

enum tide_code action_hint(struct tide_err *err, const char *session, const struct action *a)
{
    struct buf text = BUF_INIT(sizeof err->hints[0].arguments);
    struct json_out o = json_out_to(&text);
    size_t i = err && err->hints[0].action ? 1 : 0;

    if (!err)
        return tide_hint(err, a->action, session);
    action_write_arguments(&o, a);
    if (!text.failed && text.len > 1)
        tide_hint_with(err, a->action, session, "%.*s", (int)text.len - 2, text.ptr + 1);
    err->hints[i].kind = a->kind;
    buf_done(&text);
    return err->code;
}

void action_write(struct json_out *o, const char *session, const struct action *a)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("action"), str_from(tide_action_name(a->action)));
    json_out_kstr(o, STR("session_id"), str_from(session));
    json_out_key(o, STR("arguments"));
    action_write_arguments(o, a);
    json_out_end(o, '}');
}

struct tide_next *actions_publish(struct arena *arena, const char *session, const struct action *list, size_t n)
{
    struct tide_next *all = arena_zero(arena, (n + 1) * sizeof *all);

    for (size_t i = 0; i < n; i++) {
        struct buf text = BUF_INIT(1 << 20);
        struct json_out o = json_out_to(&text);

        action_write_arguments(&o, &list[i]);
        all[i] = (struct tide_next){list[i].action, list[i].kind, session, arena_dup(arena, buf_view(&text)).ptr};
        buf_done(&text);
    }
    return all;
}
