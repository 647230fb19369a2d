/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat without a terminal: one prompt, its answer on standard output when it is on disk. Text is the answer alone; json
 * is one object; stream-json is one object a line as things happen, the last of them the result. What is to be known beside
 * it (attempts, hooks that failed, what it waits for) goes to standard error.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "base/log.h"
#include "cli/chat/chat.h"
#include "cli/terminal/glyph.h"
#include "cli/report.h"
#include "cli/signal_pipe.h"
#include "cli/terminal/progress.h"
#include "cli/report.h"
#include "engine/shapes.h"
#include "engine/streamed_event.h"

struct printing {
    struct chat chat;
    enum { PRINT_TEXT, PRINT_JSON, PRINT_STREAM } how;
    int64_t turns;
    int unwritten;        /* why a line could not be written; 0: all were */
    const char *answered; /* the question that was answered, until that is told */
};

/* ---- as it happens ---- */

static void put_line(struct printing *p, struct buf *line)
{
    buf_add_char(line, '\n');
    for (size_t at = 0; at < line->len;) {
        ssize_t n = write(STDOUT_FILENO, line->ptr + at, line->len - at);

        if (n < 0 && errno != EINTR) { /* it is recorded all the same: it goes on */
            p->unwritten = errno;
            break;
        }
        at += n > 0 ? (size_t)n : 0;
    }
}

static void stream_event(struct printing *p, const struct tide_agent_event *e)
{
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);
    struct streamed_event event;

    if (!streamed_event_of_agent(&event, e))
        return;
    shape_put(&o, &shape_event, &event);
    put_line(p, &line);
}

/* On standard error as well. */
static bool is_logged(const struct printing *p)
{
    const struct config *cfg = p->chat.core.setup.settings.config;
    const char *format = args_text(&p->chat.cli->args, "log-format");

    return !config_text(cfg, "log_file") &&
           (log_enabled(TIDE_LOG_INFO) || strcmp(format ? format : config_text(cfg, "log_format"), "json") == 0);
}

static void tell_event(struct printing *p, const struct tide_agent_event *e)
{
    if (is_logged(p))
        return;
    if (e->what == TIDE_AGENT_RETRY)
        say("attempt %d of %d in %.1f s: %.*s", e->attempt, e->attempts, (double)e->delay_ms / 1000, (int)e->text_len,
            e->text);
    else if (e->what == TIDE_AGENT_NOTICE)
        say("%.*s", (int)e->text_len, e->text);
}

/* Wherever it is, also in the middle of a tool. */
static void stop_agent(void *agent, bool person)
{
    (person ? tide_agent_stop : tide_agent_shutdown)(agent);
}

/* Told when the answer has been taken, not before: it may be refused. */
static void tell_answered(struct printing *p)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *input = NULL;
    struct str said;

    if (!p->answered || json_parse(&a, str_from(p->chat.want->input), NULL, &input, NULL, NULL))
        return;
    said = input->type == JSON_STRING ? json_text(&a, input) : json_source(input);
    say("%.400s %.*s", p->answered, (int)(said.len < 200 ? said.len : 200), said.ptr);
    p->answered = NULL;
}

static enum tide_decision on_approve(void *arg, const struct tide_approval *ask)
{
    const struct printing *p = arg;

    return agent_setup_yes(&p->chat.core.setup, ask);
}

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct printing *p = arg;

    tell_answered(p);
    signals_stopped();
    p->turns += e->what == TIDE_AGENT_USAGE;
    if (p->how == PRINT_STREAM)
        stream_event(p, e);
    else
        tell_event(p, e);
}

/* ---- the result ---- */

static int64_t degraded_events(tide_session *s)
{
    const struct tide_session_info *info;

    return tide_session_get_info(s, &info, NULL) ? 0 : info->degraded_events;
}

static void put_result(struct printing *p, enum tide_code code, const struct tide_text *answer, const char *message)
{
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);
    bool waits = code == TIDE_WAITING;
    struct chat_report report = {
        .type = p->how == PRINT_STREAM ? "result" : NULL,
        .session_id = tide_session_id(p->chat.core.session),
        .status = code == TIDE_OK          ? "completed"
                  : code == TIDE_WAITING   ? "waiting"
                  : code == TIDE_CANCELLED ? "stopped"
                  : code == TIDE_NOT_FOUND ? "idle"
                                           : "failed",
        .durability = degraded_events(p->chat.core.session) ? "degraded" : "full",
        .answer = {answer->ptr, answer->len},
        .question = waits ? message : NULL,
        .message = code && !waits ? message : NULL,
        .resume_token = waits ? tide_agent_token(p->chat.core.agent) : NULL,
        .turns = p->turns,
    };

    report.has_usage = tide_session_get_usage(p->chat.core.session, 0, &report.usage, NULL) == TIDE_OK;
    shape_put(&o, &shape_chat, &report);
    put_line(p, &line);
}

/* What it waits for is no failure: it has an exit status of its own, and says what moves it. */
static enum tide_code print_report(struct printing *p, enum tide_code code, struct tide_text *answer,
                                   struct tide_err *err)
{
    struct cli *cli = p->chat.cli;
    const char *id = tide_session_id(p->chat.core.session);

    if (p->how == PRINT_TEXT)
        report_durability(degraded_events(p->chat.core.session));
    if (p->how != PRINT_TEXT)
        put_result(p, code, answer, err_text(err));
    else if (!code) {
        if (cli->out.tty) /* a pipe gets what was answered, to the byte */
            glyph_clean(&cli->out.text, (struct str){answer->ptr, answer->len});
        else
            buf_add(&cli->out.text, answer->ptr, answer->len);
        if (answer->len && answer->ptr[answer->len - 1] != '\n')
            buf_add_char(&cli->out.text, '\n');
    }
    if (code == TIDE_WAITING && p->chat.want->token_fd && tide_agent_token(p->chat.core.agent)[0] &&
        write_fd(p->chat.want->token_fd, "--token-fd", tide_agent_token(p->chat.core.agent), err))
        return tide_hint(err, TIDE_ACTION_ROTATE_TOKEN, id);
    if (code == TIDE_WAITING && p->chat.want->no_store)
        return tide_fail(err, TIDE_FAILED,
                         "%.300s: with --no-store nobody can answer later: give --yes, or leave --no-store out",
                         err->msg);
    if (code == TIDE_WAITING) {
        say("%s: `tidemark resume %s --input allow` (or deny)", err->msg, id);
        cli->exit_status = tide_code_exit(TIDE_WAITING);
        return TIDE_OK;
    }
    if (code == TIDE_CANCELLED) {
        say("%s: `tidemark chat --resume %s` goes on", err->msg, id);
        cli->exit_status = stop_signal ? 128 + stop_signal : 1;
        return TIDE_OK;
    }
    if (code && p->how != PRINT_TEXT) { /* said already */
        say("%s", err_text(err));
        cli->exit_status = tide_code_exit(code);
        return TIDE_OK;
    }
    return code;
}

/* All that is said, before there is a session: what is refused leaves none behind. */
static enum tide_code make_prompt(struct printing *p, const char **ret_prompt, struct tide_err *err)
{
    const struct chat_want *want = p->chat.want;

    if (want->prompt && chat_expand(&p->chat, want->prompt, ret_prompt, err))
        return err->code;
    if (want->piped) /* as it is: it may be anybody's text, and an @ in it is no wish of the user's */
        *ret_prompt = arena_printf(&p->chat.core.setup.arena, "%s\n\n%s", *ret_prompt, want->piped);
    return TIDE_OK;
}

static enum tide_code work_on_prompt(struct printing *p, const char *prompt, struct tide_err *err)
{
    const struct chat_want *want = p->chat.want;
    struct tide_text answer = {NULL, 0};
    const struct tide_session_info *info;
    enum tide_code code;

    if (prompt && chat_needs_resume(&p->chat.core)) { /* what was cut comes first */
        code = tide_agent_resume(p->chat.core.agent, NULL, NULL, &answer, err);
        tide_text_done(&answer);
        if (code && code != TIDE_NOT_FOUND) {
            say("the prompt was not taken: what was cut comes first, and did not come to its end");
            return print_report(p, code, &answer, err);
        }
    }
    if (want->input) {
        if (tide_session_get_info(p->chat.core.session, &info, err))
            return err->code;
        if (info->question && info->status == TIDE_STATUS_WAITING)
            p->answered = arena_dup(&p->chat.core.setup.arena, str_from(info->question)).ptr;
    }
    code = prompt ? chat_say(&p->chat, prompt, &answer, err)
                  : tide_agent_resume(p->chat.core.agent, want->input, want->token, &answer, err);
    code = print_report(p, code, &answer, err);
    tide_text_done(&answer);
    if (!code && p->unwritten)
        code = tide_fail_errno(err, p->unwritten, "write to standard output");
    return code;
}

enum tide_code chat_print(struct cli *cli, const struct chat_want *want, struct tide_err *err)
{
    struct printing p = {.how = PRINT_TEXT};
    const char *prompt = NULL;
    enum tide_code code;

    if (cli->out.json || (want->output && strcmp(want->output, "json") == 0))
        p.how = PRINT_JSON;
    if (want->output && strcmp(want->output, "stream-json") == 0)
        p.how = PRINT_STREAM;
    code = chat_init(&p.chat, cli, want, on_event, want->who.yes ? on_approve : NULL, &p, err);
    code = code ? code : make_prompt(&p, &prompt, err);
    code = code ? code : chat_store(&p.chat, err);
    if (!code)
        code = want->resume || want->latest ? chat_resume(&p.chat, err) : chat_new(&p.chat.core, want->prompt, err);
    for (size_t i = 0; !code && i < p.chat.core.project.n; i++)
        if (p.chat.core.project.files[i].refused)
            chat_tell(&p.chat, CHAT_FILE_REFUSED, p.chat.core.project.files[i].name,
                      p.chat.core.project.files[i].refused);
    if (!code) {
        signals_stop(stop_agent, p.chat.core.agent);
        code = work_on_prompt(&p, prompt, err);
        signals_stop(stop_agent, NULL);
    }
    chat_done(&p.chat);
    return code;
}
