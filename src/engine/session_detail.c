/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session_detail.h"

#include "base/json.h"
#include "engine/session_next.h"

struct showing {
    struct session_detail detail; /* without its row */
    next_command_fn *command;
    session_detail_fn *fn;
    void *arg;
};

static int show_row(void *arg, const struct tide_session_info *info)
{
    struct showing *s = arg;

    s->detail.row = (struct session_row){*info, s->command};
    s->fn(s->arg, &s->detail);
    return 0;
}

/* A field of the session as it stands in its state: JSON. */
static struct str field_of(const struct json *state, const char *name)
{
    const struct json *field = json_get(json_get(state, STR("session")), str_from(name));

    return field ? json_source(field) : STR("");
}

enum tide_code session_show_detail(tide_session *session, next_command_fn *command, session_detail_fn *fn, void *arg,
                                   struct tide_err *err)
{
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct showing s = {.command = command, .fn = fn, .arg = arg};
    struct json *state = NULL;

    if (tide_session_get_state(session, 0, &text, err) || tide_session_get_usage(session, 0, &s.detail.usage, err) ||
        json_parse(&arena, (struct str){text.ptr, text.len}, &limits, &state, NULL, err))
        return err->code;
    s.detail.working_dir = field_of(state, "working_dir");
    s.detail.provider = field_of(state, "provider");
    s.detail.metadata = field_of(state, "metadata");
    s.detail.checkpoints_enabled = true;
    s.detail.total_checkpoints = json_get_int(json_get(state, STR("ledger")), STR("checkpoints"), 0);
    return session_show_next(session, show_row, &s, err);
}
