/* SPDX-License-Identifier: Apache-2.0 */
/* A node of Hive as one of ours: old types by their new names, routes and tools as we have them. */
#include "hive/hive_internal.h"

struct type_row {
    const char *theirs;
    enum spec_node_type ours;
    const char *note;
};

static const struct type_row *type_of(struct hive *h, const struct json *node, const char *path)
{
    static const struct type_row rows[] = {
        {"event_loop", SPEC_EVENT_LOOP, NULL},
        {"function", SPEC_FUNCTION, NULL},
        {"router", SPEC_ROUTER, NULL},
        {"human_input", SPEC_HUMAN_INPUT, NULL},
        {"llm_tool_use", SPEC_EVENT_LOOP, "an old type: now event_loop"},
        {"llm_generate", SPEC_EVENT_LOOP, "an old type: now event_loop without tools"},
        {"", SPEC_EVENT_LOOP, NULL},
    };
    struct str word = hive_text(h, node, "node_type");
    size_t i = 0;

    while (rows[i].theirs[0] && !str_eq(word, str_from(rows[i].theirs)))
        i++;
    if (!rows[i].theirs[0] && word.len)
        hive_warn(h, path, "it becomes event_loop", "the type '%.*s' is not known",
                  (int)(word.len < 64 ? word.len : 64), word.ptr);
    else if (rows[i].note)
        hive_warn(h, path, "", "%s", rows[i].note);
    return &rows[i];
}

struct str hive_said(struct hive *h, const struct json *node)
{
    struct str s = hive_text(h, node, "description");

    s = s.len ? s : hive_text(h, node, "name");
    return s.len ? s : hive_text(h, node, "id");
}

static void put_event_loop(struct hive *h, const struct json *node, const struct type_row *type)
{
    struct str identity = hive_text(h, h->graph, "identity_prompt"), system = hive_text(h, node, "system_prompt");
    struct str policy = hive_text(h, node, "tool_access_policy");
    const struct json *loop = json_get(h->graph, STR("loop_config"));

    json_out_kstr(&h->out, STR("prompt"), hive_said(h, node));
    if (identity.len)
        system = str_from(
            arena_printf(&h->arena, "%.*s%s%.*s", STR_ARG(identity), system.len ? "\n\n" : "", STR_ARG(system)));
    json_out_kstr_opt(&h->out, STR("system_prompt"), system);
    json_out_kstr_opt(&h->out, STR("model"), hive_text(h, node, "model"));
    json_out_key(&h->out, STR("tools"));
    if (str_eq(policy, STR("all")))
        json_out_str(&h->out, STR("all"));
    else if (str_eq(policy, STR("none")) || strcmp(type->theirs, "llm_generate") == 0 || !hive_items(node, "tools"))
        json_out_str(&h->out, STR("none"));
    else
        json_out_raw(&h->out, json_source(json_get(node, STR("tools"))));
    if (loop)
        hive_put_int(h, "max_turns", loop, "max_iterations", -1);
}

static bool is_otherwise(struct str cond)
{
    return str_eq(cond, STR("default")) || str_eq(cond, STR("otherwise")) || str_eq(cond, STR("else")) ||
           str_eq(cond, STR("*"));
}

/* A plain word is what the router answers; anything else is a condition. */
static void put_routes(struct hive *h, const struct json *node, const char *path)
{
    struct str otherwise = STR("");

    json_out_key(&h->out, STR("routes"));
    json_out_begin(&h->out, '[');
    for (const struct json *r = hive_items(node, "routes"); r; r = r->next) {
        struct str cond = json_key_text(&h->arena, r), to = r->type == JSON_STRING ? json_text(&h->arena, r) : STR("");
        const char *at =
            arena_printf(&h->arena, "%s.routes[\"%.*s\"]", path, (int)(cond.len < 100 ? cond.len : 100), cond.ptr);

        if (is_otherwise(cond)) {
            otherwise = to;
            continue;
        }
        if (spec_is_name(cond))
            hive_warn(h, at, "check whether this is intended", "a word: taken if the result equals it");
        json_out_begin(&h->out, '{');
        json_out_kstr(&h->out, STR("when"),
                      str_from(spec_is_name(cond) ? arena_printf(&h->arena, "result == \"%.*s\"", STR_ARG(cond))
                                                  : hive_lua(h, cond, at)));
        json_out_kstr(&h->out, STR("to"), hive_id(h, to));
        json_out_end(&h->out, '}');
    }
    json_out_end(&h->out, ']');
    if (otherwise.len)
        json_out_kstr(&h->out, STR("otherwise"), hive_id(h, otherwise));
}

void hive_put_node(struct hive *h, const struct json *node, const char *path)
{
    static const struct left_out rows[] = {{"success_criteria", "a node is complete when its outputs are set"},
                                           {"client_facing", "put a human_input node where a person is asked"},
                                           {"output_schema", ""},
                                           {"input_schema", ""},
                                           {"max_validation_retries", ""},
                                           {NULL, NULL}};
    const struct type_row *type = type_of(h, node, path);
    struct str function = hive_text(h, node, "function");

    json_out_begin(&h->out, '{');
    hive_put_id(h, "id", hive_text(h, node, "id"), path);
    json_out_kstr_opt(&h->out, STR("name"), hive_text(h, node, "name"));
    json_out_kstr_opt(&h->out, STR("description"), hive_text(h, node, "description"));
    json_out_kstr(&h->out, STR("type"), str_from(spec_node_words[type->ours]));
    hive_put_list(h, "inputs", node, "input_keys");
    hive_put_list(h, "outputs", node, "output_keys");
    if (hive_items(node, "nullable_output_keys")) { /* only those that are outputs: ours are strict about it */
        json_out_key(&h->out, STR("nullable_outputs"));
        json_out_begin(&h->out, '[');
        for (const struct json *k = hive_items(node, "nullable_output_keys"); k; k = k->next)
            if (k->type == JSON_STRING && hive_lists(h, node, "output_keys", json_text(&h->arena, k)))
                json_out_str(&h->out, json_text(&h->arena, k));
        json_out_end(&h->out, ']');
    }
    hive_put_int(h, "retries", node, "max_retries", -1);
    hive_put_list(h, "retry_on", node, "retry_on");
    hive_put_int(h, "max_visits", node, "max_node_visits", -1);
    if (type->ours == SPEC_EVENT_LOOP)
        put_event_loop(h, node, type);
    else if (type->ours == SPEC_FUNCTION) {
        if (function.len == 0)
            hive_warn(h, path, "register a callback of its name, or give it a program", "a function without a name");
        json_out_kstr(&h->out, STR("callback"), function.len ? function : hive_text(h, node, "id"));
    } else if (type->ours == SPEC_ROUTER)
        put_routes(h, node, path);
    else
        json_out_kstr(&h->out, STR("question"), hive_said(h, node));
    json_out_end(&h->out, '}');
    hive_name_left_out(h, node, path, rows);
}
