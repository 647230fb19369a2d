/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark sessions fork and rollback: another future from a point of the past, in a new session or in the same one. */
#include <inttypes.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "engine/rollback.h"
#include "engine/shapes.h"

static const struct opt fork_options[] = {
    {.name = "at",
     .type = VALUE_POSITION,
     .value = "SEQ|CHECKPOINT",
     .help = "the position of the fork (default: the end)"},
    {.name = "id", .type = VALUE_ID, .value = "ID", .help = "id of the fork (default: a new one)"},
    {.name = "title", .type = VALUE_TEXT, .value = "TEXT", .help = "title of the fork (default: that of its parent)"},
    {.name = NULL},
};

static enum tide_code make_fork(struct cli *cli, tide_session *session, int64_t seq, char ret_id[TIDE_ID_SIZE],
                                struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&fields);
    const char *title = args_text(&cli->args, "title");

    json_out_begin(&o, '{');
    if (title)
        json_out_kstr(&o, STR("title"), str_from(title));
    json_out_end(&o, '}');
    return tide_session_fork(cli->store, tide_session_id(session), seq, args_text(&cli->args, "id"),
                             title ? buf_cstr(&fields) : NULL, ret_id, err);
}

static void say_forked(struct out *out, const struct command_result *r)
{
    if (out->json)
        out_shape(out, &shape_forked, r);
    else
        outf(out, "%s\n", r->session_id);
}

static enum tide_code run_fork(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    const char *at = args_text(&cli->args, "at");
    unsigned flags = TIDE_SESSION_READ;
    int64_t seq = 0;
    char id[TIDE_ID_SIZE];

    if (at && str_to_int64(str_from(at), &seq))
        flags |= TIDE_SESSION_LOG; /* what is damaged later is in nobody's way */
    if (cli_session_open(cli, 0, flags, &session, err) || (at && session_position(session, at, &seq, err)))
        return err->code;
    seq = at ? seq : tide_session_last_seq(session);
    if (make_fork(cli, session, seq, id, err))
        return err->code;
    say_forked(&cli->out,
               &(struct command_result){.session_id = id, .parent_id = tide_session_id(session), .seq = seq});
    return TIDE_OK;
}

static enum tide_code fork_remote(struct cli *cli, struct tide_err *err)
{
    struct command_result r = {0};
    struct session_why why;

    if (remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "fork");
    remote_body_text(cli->remote, "at", args_text(&cli->args, "at"));
    remote_body_text(cli->remote, "session_id", args_text(&cli->args, "id"));
    remote_body_text(cli->remote, "title", args_text(&cli->args, "title"));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_forked, &r, err))
        return err->code;
    say_forked(&cli->out, &r);
    return TIDE_OK;
}

const struct command cmd_sessions_fork = {
    .group = "sessions",
    .name = "fork",
    .run = run_fork,
    .remote = fork_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = fork_options,
    .help = "create a session that shares the history of this one up to a position, and print its id",
};

static const struct opt rollback_options[] = {
    {.name = "to",
     .type = VALUE_POSITION,
     .value = "SEQ|CHECKPOINT",
     .required = true,
     .help = "the position to return to"},
    {.name = "reason", .type = VALUE_TEXT, .value = "TEXT", .help = "the reason, for the log"},
    {.name = "reuse-effects", .help = "reuse the recorded results of finished once-effects after that position"},
    {.name = "redo-effects", .help = "finished once-effects after that position may run again"},
    {.name = NULL},
};

static enum tide_code check_together(const struct args *args, struct tide_err *err)
{
    if (args_on(args, "reuse-effects") && args_on(args, "redo-effects"))
        return args_refuse(err, "reuse-effects",
                           "sessions rollback: --reuse-effects and --redo-effects: give one of them");
    return TIDE_OK;
}

static void say_rolled_back(struct out *out, const struct command_result *r)
{
    if (out->json)
        out_shape(out, &shape_rolled_back, r);
    else
        outf(out, "rolled back to %" PRId64 "; the log is now at %" PRId64 "\n", r->to_seq, r->seq);
}

static enum tide_code run_rollback(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    unsigned flags = args_on(&cli->args, "reuse-effects")  ? TIDE_ROLLBACK_REUSE_EFFECTS
                     : args_on(&cli->args, "redo-effects") ? TIDE_ROLLBACK_REDO_EFFECTS
                                                           : 0;
    int64_t to = 0;

    if (check_together(&cli->args, err) || cli_session_open(cli, 0, TIDE_SESSION_APPEND, &session, err) ||
        session_position(session, args_text(&cli->args, "to"), &to, err) ||
        tide_session_rollback(session, to, flags, args_text(&cli->args, "reason"), err))
        return err->code;
    say_rolled_back(&cli->out, &(struct command_result){.session_id = tide_session_id(session),
                                                        .to_seq = to,
                                                        .seq = tide_session_last_seq(session)});
    return TIDE_OK;
}

static enum tide_code rollback_remote(struct cli *cli, struct tide_err *err)
{
    struct command_result r = {0};
    struct session_why why;

    if (check_together(&cli->args, err) || remote_why(cli, &why, err))
        return err->code;
    remote_begin(cli->remote, "POST", "sessions", why.row.info.id, "rollback");
    remote_body_text(cli->remote, "to", args_text(&cli->args, "to"));
    remote_body_text(cli->remote, "reason", args_text(&cli->args, "reason"));
    remote_body_flag(cli->remote, "reuse_effects", args_on(&cli->args, "reuse-effects"));
    remote_body_flag(cli->remote, "redo_effects", args_on(&cli->args, "redo-effects"));
    if (remote_read(cli->remote, REMOTE_SOON, &shape_rolled_back, &r, err))
        return err->code;
    say_rolled_back(&cli->out, &r);
    return TIDE_OK;
}

const struct command cmd_sessions_rollback = {
    .group = "sessions",
    .name = "rollback",
    .run = run_rollback,
    .remote = rollback_remote,
    .need = NEED_WRITE,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = rollback_options,
    .help = "return to the state at an earlier position; nothing is deleted",
    .more = "Exit status 11 if the position is before the one at which the session was trusted: fork it there instead.",
};
