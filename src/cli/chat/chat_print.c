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
#include "base/yes_no.h"
#include "cli/chat/chat.h"
#include "terminal/glyph.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "terminal/progress.h"
#include "cli/next_command.h"
#include "engine/run_report.h"
#include "engine/streamed_event.h"

/* ---- as it happens ---- */

static void put_line(struct chat_printing *p, struct buf *line)
{
    int bad;

    buf_add_char(line, '\n');
    bad = fd_write(STDOUT_FILENO, buf_view(line));
    p->unwritten = bad ? bad : p->unwritten; /* it is recorded all the same: it continues */
}

static void stream_event(struct chat_printing *p, const struct tide_agent_event *e)
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
static bool is_logged(const struct chat_printing *p)
{
    const struct config *cfg = p->chat->setup.settings.config;
    const char *format = args_text(&p->cli->args, "log-format");

    return !config_text(cfg, "log_file") &&
           (log_enabled(TIDE_LOG_INFO) || strcmp(format ? format : config_text(cfg, "log_format"), "json") == 0);
}

static void tell_event(struct chat_printing *p, const struct tide_agent_event *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;

    if (is_logged(p))
        return;
    if (e->what == TIDE_AGENT_RETRY)
        say("attempt %d of %d in %.1f s: %.*s", e->attempt, e->attempts, (double)e->delay_ms / 1000, (int)e->text_len,
            e->text);
    else if (e->what == TIDE_AGENT_NOTICE)
        say("%s", trouble_text(&a, e->text, e->why));
}

/* Wherever it is, also in the middle of a tool. */
static void stop_agent(void *agent, bool person)
{
    (person ? tide_agent_stop : tide_agent_shutdown)(agent);
}

/* Shown when the answer has been accepted, not before: it may be refused. */
static void tell_answered(struct chat_printing *p)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *input = NULL;
    struct str said;

    if (!p->answered || json_parse(&a, str_from(p->input), NULL, &input, NULL, NULL))
        return;
    said = yes_no_shown(&a, input);
    say("%.400s %.*s", p->answered, (int)(said.len < 200 ? said.len : 200), said.ptr);
    p->answered = NULL;
}

static enum tide_decision on_approve(void *arg, const struct tide_approval *ask)
{
    const struct chat_printing *p = arg;

    return agent_setup_yes(&p->chat->setup, ask);
}

static void on_event(void *arg, const struct tide_agent_event *e)
{
    struct chat_printing *p = arg;

    p->began = true;
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

static void put_result(struct chat_printing *p, enum tide_code code, const struct tide_text *answer,
                       const char *message)
{
    AUTO(buf_done) struct buf line = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&line);
    struct chat_report report;

    chat_report_fill(&report, p->chat->session, code, message);
    report.type = p->how == PRINT_STREAM ? "result" : NULL;
    report.answer = (struct str){answer->ptr, answer->len};
    report.resume_token = code == TIDE_WAITING ? tide_agent_token(p->chat->agent) : NULL;
    report.turns = p->turns;
    shape_put(&o, &shape_chat, &report);
    put_line(p, &line);
}

/* Before it did anything, and not for the model's sake: an error as of any command, and no result. */
static bool is_refused(const struct chat_printing *p, enum tide_code code)
{
    return code && !p->began && code != TIDE_WAITING && code != TIDE_CANCELLED && code != TIDE_NOT_FOUND &&
           code != TIDE_FAILED;
}

/* What it waits for is no failure: it has an exit status of its own, and says what moves it. */
static enum tide_code print_report(struct chat_printing *p, enum tide_code code, const struct tide_text *answer,
                                   struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct cli *cli = p->cli;
    const char *id = tide_session_id(p->chat->session);

    if (code && p->no_store)
        chat_drop_hints(err);
    if (p->how == PRINT_TEXT)
        report_durability(degraded_events(p->chat->session));
    if (p->how != PRINT_TEXT)
        put_result(p, code, answer, err_text(&a, err));
    else if (!code) {
        if (cli->out.tty) /* a pipe gets what was answered, to the byte */
            glyph_clean(&cli->out.text, (struct str){answer->ptr, answer->len});
        else
            buf_add(&cli->out.text, answer->ptr, answer->len);
        if (answer->len && answer->ptr[answer->len - 1] != '\n')
            buf_add_char(&cli->out.text, '\n');
    }
    if (code == TIDE_WAITING && p->token_fd && tide_agent_token(p->chat->agent)[0] &&
        write_fd(p->token_fd, "--token-fd", tide_agent_token(p->chat->agent), err))
        return tide_hint(err, TIDE_ACTION_ROTATE_TOKEN, id);
    if (code == TIDE_WAITING && p->no_store)
        return tide_fail(err, TIDE_FAILED,
                         "%.300s: with --no-store it cannot be answered later: give --yes, or omit --no-store",
                         err->msg);
    if (code == TIDE_WAITING) {
        say("%s: `%s resume %s --input allow` (or deny)", err->msg, own_command(&a), id);
        cli->exit_status = tide_code_exit(TIDE_WAITING);
        return TIDE_OK;
    }
    if (code == TIDE_CANCELLED) {
        if (p->no_store)
            say("%s", err->msg);
        else
            say("%s: `%s chat --resume %s` continues", err->msg, own_command(&a), id);
        cli->exit_status = stop_signal ? 128 + stop_signal : 1;
        return TIDE_OK;
    }
    if (code && p->how != PRINT_TEXT) { /* said already */
        if (cli->out.json)
            err_say_json(err);
        else
            say_err(err);
        cli->exit_status = tide_code_exit(code);
        return TIDE_OK;
    }
    return code;
}

enum tide_code chat_print_end(struct chat_printing *p, enum tide_code code, bool prompt_refused,
                              const struct tide_text *answer, struct tide_err *err)
{
    if (is_refused(p, code))
        return code;
    if (prompt_refused)
        say("the prompt was not sent: the interrupted turn comes first, and did not complete");
    code = print_report(p, code, answer, err);
    if (!code && p->unwritten)
        code = tide_fail_errno(err, p->unwritten, "write to standard output");
    return code;
}

void chat_print_running(struct chat_printing *p, bool runs)
{
    const struct tide_session_info *info;

    if (runs && p->input && !tide_session_get_info(p->chat->session, &info, NULL) && info->question &&
        info->status == TIDE_STATUS_WAITING)
        p->answered = arena_dup(&p->chat->setup.arena, str_from(info->question)).ptr;
    signals_stop(stop_agent, runs ? p->chat->agent : NULL);
}

void chat_print_begin(struct chat_printing *p, struct cli *cli, const char *output, bool yes, struct chat_session *c)
{
    p->cli = cli;
    p->chat = c;
    p->how = output && strcmp(output, "stream-json") == 0               ? PRINT_STREAM
             : cli->out.json || (output && strcmp(output, "json") == 0) ? PRINT_JSON
                                                                        : PRINT_TEXT;
    c->stopped = chat_is_stopped;
    c->setup.opt.event = on_event;
    c->setup.opt.approve = yes ? on_approve : NULL;
    c->setup.opt.arg = p;
}

/* ---- one prompt of `tidemark chat` ---- */

/* All that is said, before there is a session: what is refused leaves none behind. */
static enum tide_code make_prompt(struct chat *c, const char **ret_prompt, struct tide_err *err)
{
    const struct chat_want *want = c->want;

    if (want->prompt && chat_expand(&c->core, want->prompt, ret_prompt, err))
        return err->code;
    if (want->piped) /* as it is: it may be anybody's text, and an @ in it is no wish of the user's */
        *ret_prompt = arena_printf(&c->core.setup.arena, "%s\n\n%s", *ret_prompt, want->piped);
    return TIDE_OK;
}

enum tide_code chat_print(struct cli *cli, const struct chat_want *want, struct tide_err *err)
{
    struct chat_printing p = {.no_store = want->no_store};
    struct tide_text answer = {NULL, 0};
    const char *prompt = NULL;
    bool refused = false;
    enum tide_code code;
    struct chat chat;

    code = chat_init(&chat, cli, want, err);
    chat_print_begin(&p, cli, want->output, want->who.yes, &chat.core);
    code = code ? code : make_prompt(&chat, &prompt, err);
    code = code ? code : chat_store(&chat, err);
    if (!code)
        code = want->resume || want->latest ? chat_resume(&chat, err) : chat_new(&chat.core, want->prompt, err);
    if (!code) {
        chat_tell_refused(&chat.core);
        chat_print_running(&p, true);
        code = chat_go(&chat.core, prompt, NULL, NULL, &refused, &answer, err);
        chat_print_running(&p, false);
        code = chat_print_end(&p, code, refused, &answer, err);
    }
    tide_text_done(&answer);
    chat_done(&chat);
    return code;
}
