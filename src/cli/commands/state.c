/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark state: the fold of a session's log, as of now or of any point of its past. */
#include "base/timefmt.h"
#include "cli/remote.h"
#include "cli/trust_view.h"
#include "engine/rollback.h"

static const struct opt options[] = {
    {.name = "at",
     .type = VALUE_POSITION,
     .value = "SEQ|CHECKPOINT",
     .help = "print the state at this position "
             "(default: now)"},
    {.name = "pretty", .help = "indent the output, as on a terminal"},
    {.name = NULL},
};

/* For people: the same JSON, with what nobody would see spelled out. Line ends in it are ours. */
static enum tide_code print_pretty(struct out *out, struct str text, struct tide_err *err)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    AUTO(buf_done) struct buf lines = BUF_INIT(SIZE_MAX / 4);
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 16};
    struct json *json = NULL;

    if (json_parse(&arena, text, &limits, &json, NULL, err))
        return err->code;
    json_write_pretty(&lines, json);
    for (struct str rest = buf_view(&lines); rest.len > 0;) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.ptr) : rest.len;

        trust_escape(&out->text, (struct str){rest.ptr, n});
        buf_add_char(&out->text, '\n');
        n += end != NULL;
        rest = (struct str){rest.ptr + n, rest.len - n};
    }
    return TIDE_OK;
}

static enum tide_code print_state(struct cli *cli, struct str json, struct tide_err *err)
{
    bool pretty = args_on(&cli->args, "pretty") || (cli->out.tty && !cli->out.json);

    if (pretty && print_pretty(&cli->out, json, err))
        return err->code;
    if (!pretty)
        buf_add_str(&cli->out.text, json);
    if (cli->out.text.len && cli->out.text.ptr[cli->out.text.len - 1] != '\n')
        buf_add_char(&cli->out.text, '\n');
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const char *at = args_text(&cli->args, "at");
    int64_t seq = 0;

    time_people_local(false); /* it is JSON, no matter who reads it */
    if (cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err) ||
        (at && session_position(session, at, &seq, err)) || tide_session_get_state(session, seq, &text, err))
        return err->code;
    return print_state(cli, (struct str){text.ptr, text.len}, err);
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    const struct json *v;

    time_people_local(false);
    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0), "state");
    remote_param(cli->remote, "at", args_text(&cli->args, "at"));
    return remote_ask(cli->remote, REMOTE_SOON, &v, err) ? err->code : print_state(cli, json_source(v), err);
}

const struct command cmd_state = {
    .name = "state",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "print the state of a session as JSON, now or at any earlier position",
};
