/* SPDX-License-Identifier: Apache-2.0 */
/* Options that several commands have, read in one way. */
#include "cli/options.h"

#include "base/json.h"

bool is_continue(const struct args *args)
{
    const char *how = args_text(args, "on-store-error");

    return how && strcmp(how, "continue") == 0;
}

enum tide_code text_or_json(const struct args *args, const char *name, struct buf *room, const char **ret,
                            struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *as_json = arena_printf(&a, "%s-json", name);
    const char *text = args_text(args, name), *json = args_text(args, as_json);
    struct json *value = NULL;

    if (text && json)
        return args_refuse(err, name, "--%s and --%s: give one of them", name, as_json);
    if (json && json_parse(&a, str_from(json), NULL, &value, NULL, err))
        return tide_wrap(err, "--%s", as_json);
    if (text)
        json_quote(room, str_from(text));
    *ret = text ? buf_cstr(room) : json;
    return TIDE_OK;
}

struct agent_want agent_want_from(const struct args *args)
{
    return (struct agent_want){.provider = args_text(args, "provider"),
                               .model = args_text(args, "model"),
                               .base_url = args_text(args, "base-url"),
                               .script = args_text(args, "script"),
                               .yes = args_on(args, "yes")};
}

void take_on_store_error(const struct args *args, struct agent_want *who)
{
    who->degrade = is_continue(args);
    who->degrade_said = args_text(args, "on-store-error") != NULL;
}

struct graph_face graph_face_from(const struct args *args)
{
    return (struct graph_face){
        .output = args_text(args, "output"), .quiet = args_on(args, "quiet"), .no_input = args_on(args, "no-input")};
}

const char *set_from_input(const struct args *args)
{
    const char *set;

    for (size_t i = 0; (set = args_nth(args, "set", i)); i++) {
        const char *eq = strchr(set, '=');

        if (eq && strcmp(eq + 1, "-") == 0)
            return set;
    }
    return NULL;
}
