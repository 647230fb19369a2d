/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request is answered when the run has ended or waits, however long that takes. A server that was restarted meanwhile answers a
 * repeated request at once, with what the first one began: then the session is looked at until it stands still.
 */
#include "cli/resume_remote.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/next_command.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "remote/remote_log.h"
#include "cli/report.h"
#include "cli/resume.h"
#include "engine/session_detail.h"
#include "terminal/progress.h"

#define LOOK_MS 100
#define LOOK_MAX_MS 2000

struct ending {
    struct cli *cli;
    struct remote *remote;
    struct command_result accepted;
    struct session_detail detail;
    int token_fd; /* -1: the token is shown */
};

/* ---- until it stands still ---- */

static enum tide_code look_at_run(struct ending *e, struct tide_err *err)
{
    e->detail = (struct session_detail){.row.command = next_command};
    remote_begin(e->remote, "GET", "sessions", e->accepted.session_id);
    return remote_read(e->remote, REMOTE_SOON, &shape_session_detail, &e->detail, err);
}

static enum tide_code await_end(struct ending *e, struct tide_err *err)
{
    int pause = LOOK_MS;

    while (!look_at_run(e, err) && e->detail.row.info.status == TIDE_STATUS_RUNNING) {
        if (poll(NULL, 0, pause) < 0 || stop_signal)
            return tide_fail(err, TIDE_CANCELLED, "stopped");
        pause = pause * 2 < LOOK_MAX_MS ? pause * 2 : LOOK_MAX_MS;
    }
    return err->code;
}

/* ---- what came of it ---- */

static enum tide_code print_wait(struct ending *e, struct tide_err *err)
{
    const struct tide_session_info *info = &e->detail.row.info;
    struct program_end end = {.waits = true};

    snprintf(end.run_id, sizeof end.run_id, "%s", info->run_id ? info->run_id : "");
    snprintf(end.wait.name, sizeof end.wait.name, "%s", info->wait_name ? info->wait_name : "");
    snprintf(end.wait.kind, sizeof end.wait.kind, "%s", info->wait_word ? info->wait_word : "");
    snprintf(end.wait.question, sizeof end.wait.question, "%s", info->question ? info->question : "");
    snprintf(end.wait.token, sizeof end.wait.token, "%s", e->accepted.token ? e->accepted.token : "");
    end.wait.is_sleep = info->wait_kind == TIDE_WAIT_TIMER;
    end.wait.deadline_ms = info->deadline_ms;
    end.wait.due_ms = info->due_ms;
    return report_wait(e->cli, info->id, &end, e->token_fd, err);
}

static bool is_end(const struct json *event)
{
    static const char *const kinds[] = {"run.completed", "run.failed", "run.cancelled", "run.interrupted"};
    const struct json *kind = json_get(event, STR("kind"));

    for (size_t i = 0; kind && i < sizeof kinds / sizeof kinds[0]; i++)
        if (str_eq(kind->raw, str_from(kinds[i])))
            return true;
    return false;
}

/* The event with which its run ended; *ret NULL: there is none. */
static enum tide_code find_end(struct ending *e, const struct json **ret, struct tide_err *err)
{
    struct remote_log log = {.session_id = e->accepted.session_id,
                             .after = e->accepted.seq > 0 ? e->accepted.seq - 1 : 0};
    struct arena *a = remote_arena(e->remote);
    const struct json *events;
    struct json *end = NULL;

    while (!remote_log_page(e->remote, &log, &events, err) && events)
        for (const struct json *one = events->first; one; one = one->next)
            if (is_end(one) &&
                json_parse(a, arena_dup(a, json_source(one)), NULL, &end, NULL, err)) /* the page does not stay */
                return err->code;
    *ret = end;
    return err->code;
}

static void put_bytes(struct buf *out, bool tty, struct str text)
{
    if (tty)
        glyph_clean(out, text);
    else
        buf_add_str(out, text);
}

/* What a program printed, as far as it is recorded. */
static void print_output(struct ending *e, const struct json *end)
{
    AUTO(buf_done) struct buf clean = BUF_INIT((size_t)1 << 30);
    const struct json *output = json_get(end, STR("output"));
    struct str shown = json_get_text(remote_arena(e->remote), output, STR("stdout"));
    struct str said = json_get_text(remote_arena(e->remote), output, STR("stderr"));

    put_bytes(&clean, isatty(STDERR_FILENO), said);
    if (clean.len)
        fwrite(clean.ptr, 1, clean.len, stderr);
    if (!e->cli->out.json)
        put_bytes(&e->cli->out.text, e->cli->out.tty, shown);
}

/* What a chat answered last. */
static enum tide_code print_said(struct ending *e, struct tide_err *err)
{
    struct str said = STR("");
    const struct json *v, *entries;

    remote_begin(e->remote, "GET", "sessions", e->accepted.session_id, "transcript");
    if (remote_ask(e->remote, REMOTE_SOON, &v, err))
        return err->code;
    entries = json_get(v, STR("entries"));
    for (const struct json *one = entries ? entries->first : NULL; one; one = one->next)
        if (str_eq(json_get_text(remote_arena(e->remote), one, STR("type")), STR("assistant")) &&
            json_get_int(one, STR("seq"), 0) >= e->accepted.seq)
            said = json_get_text(remote_arena(e->remote), one, STR("text"));
    put_bytes(&e->cli->out.text, e->cli->out.tty, said);
    if (said.len && said.ptr[said.len - 1] != '\n')
        buf_add_char(&e->cli->out.text, '\n');
    return TIDE_OK;
}

/* As of a run in this process: what is said goes to standard error, its exit status is the command's. */
static void say_failed(struct ending *e, const struct json *end)
{
    const struct tide_session_info *info = &e->detail.row.info;
    struct arena *a = remote_arena(e->remote);
    bool cancelled = info->outcome == TIDE_OUTCOME_CANCELLED;
    const char *how = how_on(a, info->id, info->next);
    const char *message = cancelled             ? arena_printf(a, "session %s was cancelled", info->id)
                          : info->error_message ? info->error_message
                                                : info->why;
    struct tide_err failed = {.code = TIDE_OK};

    e->cli->exit_status = (int)json_get_int(end, STR("exit_status"), tide_code_exit(TIDE_FAILED));
    if (!e->cli->out.json) {
        say("%s%s%s", message, how && !cancelled ? ": " : "", how && !cancelled ? how : "");
        return;
    }
    tide_fail(&failed, cancelled ? TIDE_CANCELLED : TIDE_FAILED, "%s", message);
    tide_about_session(&failed, info->id);
    err_hint_next(&failed, info->next);
    err_say_json(&failed);
}

static enum tide_code print_ended(struct ending *e, struct tide_err *err)
{
    const struct tide_session_info *info = &e->detail.row.info;
    bool completed = info->status == TIDE_STATUS_IDLE && info->outcome == TIDE_OUTCOME_COMPLETED;
    const struct json *end = NULL;

    if (find_end(e, &end, err))
        return err->code;
    e->accepted.word = tide_status_name(info->status);
    e->accepted.token = NULL;
    if (info->kind == TIDE_KIND_PROGRAM)
        print_output(e, end);
    if (e->cli->out.json)
        out_shape(&e->cli->out, &shape_accepted, &e->accepted);
    else if (info->kind == TIDE_KIND_CHAT && completed && print_said(e, err))
        return err->code;
    else if (info->kind == TIDE_KIND_GRAPH && completed)
        outf(&e->cli->out, "session %s has completed\n", info->id);
    if (!completed)
        say_failed(e, end);
    return TIDE_OK;
}

static void print_queued(struct out *out, const struct command_result *r)
{
    if (out->json)
        out_shape(out, &shape_queued, r);
    else
        outf(out, "queued for session %s: seq %lld\n", r->session_id, (long long)r->seq);
}

/* Ctrl-C ends this command, and not what runs elsewhere. */
static void say_it_goes_on(const struct ending *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    say("session %s continues on the server: `%s cancel %s` ends it", e->accepted.session_id, own_command(&a),
        e->accepted.session_id);
}

static enum tide_code finish_run(struct ending *e, enum tide_code code, struct tide_err *err)
{
    if (!code && e->accepted.queue_id && !e->accepted.run_id) {
        print_queued(&e->cli->out, &e->accepted);
        return TIDE_OK;
    }
    code = code ? code : await_end(e, err);
    if (code == TIDE_CANCELLED && stop_signal)
        say_it_goes_on(e);
    if (code)
        return code;
    return e->detail.row.info.status == TIDE_STATUS_WAITING ? print_wait(e, err) : print_ended(e, err);
}

/* The whole id: a request that may have to be repeated names its session as its events will. */
static enum tide_code begin_request(struct ending *e, struct cli *cli, const char *action, struct tide_err *err)
{
    struct session_why why;

    *e = (struct ending){.cli = cli, .remote = cli->remote, .token_fd = -1};
    if (remote_why(cli, &why, err))
        return err->code;
    e->accepted.session_id = why.row.info.id;
    remote_begin(e->remote, "POST", "sessions", why.row.info.id, action);
    return TIDE_OK;
}

static enum tide_code ask_server(struct ending *e, struct tide_err *err)
{
    const char *id = e->accepted.session_id;
    enum tide_code code = remote_read(e->remote, REMOTE_WHENEVER, &shape_accepted, &e->accepted, err);

    e->accepted.session_id = e->accepted.session_id ? e->accepted.session_id : id;
    return finish_run(e, code, err);
}

/* ---- sending ---- */

enum tide_code send_remote(struct cli *cli, struct tide_err *err)
{
    bool only_queue = args_on(&cli->args, "queue");
    struct ending e;

    if (begin_request(&e, cli, "messages", err))
        return err->code;
    remote_body_text(e.remote, "content", args_operand(&cli->args, 1));
    remote_body_flag(e.remote, "queue", only_queue);
    remote_body_flag(e.remote, "wait", !only_queue);
    return ask_server(&e, err);
}

/* ---- resuming ---- */

static void add_texts(struct remote *r, const char *name, const char **texts)
{
    struct json_out *o;

    if (!texts || !*texts)
        return;
    o = remote_body(r);
    json_out_key(o, str_from(name));
    json_out_begin(o, '[');
    for (; *texts; texts++)
        json_out_str(o, str_from(*texts));
    json_out_end(o, ']');
}

static void add_request(struct remote *r, struct resuming *given, const char *input, const char *reason)
{
    const struct resume_request *q = &given->core.ask;

    if (input)
        json_out_kraw(remote_body(r), STR("input"), str_from(input));
    remote_body_text(r, "reason", reason);
    remote_body_text(r, "token", q->token);
    remote_body_text(r, "ask_again", q->ask_again);
    add_texts(r, "retry", q->retry);
    add_texts(r, "happened", q->happened);
    remote_body_flag(r, "now", q->now);
    remote_body_flag(r, "accept_change", q->accept_change);
    remote_body_text(r, "checkpoint", q->graph.checkpoint);
    remote_body_flag(r, "fallback", q->graph.fallback);
    remote_body_flag(r, "reuse_effects", q->graph.rollback & TIDE_ROLLBACK_REUSE_EFFECTS);
    remote_body_flag(r, "redo_effects", q->graph.rollback & TIDE_ROLLBACK_REDO_EFFECTS);
    if (given->core.memory.len)
        json_out_kraw(remote_body(r), STR("set"), buf_view(&given->core.memory));
    remote_body_flag(r, "wait", true);
}

/* Without a token of the server the token of the wait allows one answer, and the result is not shown. */
static enum tide_code answer_alone(struct cli *cli, const struct resume_request *q, const char *input,
                                   const char *reason, struct tide_err *err)
{
    struct command_result accepted = {.session_id = q->id};

    remote_begin(cli->remote, "POST", "waits", "answer");
    remote_body_text(cli->remote, "session_id", q->id);
    remote_body_text(cli->remote, "token", q->token);
    json_out_kraw(remote_body(cli->remote), STR("input"), str_from(input));
    remote_body_text(cli->remote, "reason", reason);
    if (remote_read(cli->remote, REMOTE_SOON, &shape_accepted, &accepted, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_accepted, &accepted);
    else
        outf(&cli->out, "session %s was answered, and continues on the server\n", accepted.session_id);
    return TIDE_OK;
}

enum tide_code resume_remote(struct cli *cli, struct resuming *r, struct tide_err *err)
{
    static const char *const local[] = {
        "dry-run",  "on-store-error", "request-id", "graph",      "map",    "checkpoint-config",
        "parallel", "provider",       "model",      "base-url",   "script", "keep-pause",
        "yes",      "output",         "request-fd", "unattended", NULL};
    AUTO(buf_done) struct buf room = BUF_INIT((size_t)16 << 20);
    const char *input, *reason = args_text(&cli->args, "reason");
    struct ending e;

    if (remote_check_options(cli, local, err) || text_or_json(&cli->args, "input", &room, &input, err) ||
        (r->token_fd >= 0 && check_fd(r->token_fd, "--token-fd", err)))
        return err->code;
    if (!remote_is_known(cli->remote) && r->core.ask.token && input)
        return answer_alone(cli, &r->core.ask, input, reason, err);
    if (begin_request(&e, cli, "resume", err))
        return err->code;
    e.token_fd = r->token_fd;
    add_request(e.remote, r, input, reason);
    return ask_server(&e, err);
}
