/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_set.h"
#include "cli/report.h"
#include "engine/shapes.h"

#define ASKED_MAX ((size_t)32 << 20)

/* ---- meanwhile ---- */

static enum tide_code open_setup(void *arg, struct agent_setup *setup, struct tide_err *err)
{
    const struct resuming *r = arg;

    return cli_setup_open(r->cli, setup, err);
}

static void on_running(void *arg, bool runs)
{
    struct resuming *r = arg;

    if (r->core.kind == TIDE_KIND_CHAT)
        chat_print_running(&r->chat, runs);
    else
        report_running(&r->core.program, runs);
}

static enum tide_code expand_prompt(void *arg, const char *text, const char **ret_prompt, struct tide_err *err)
{
    struct resuming *r = arg;

    return chat_expand(&r->core.chat, text, ret_prompt, err);
}

static bool ask_answer(void *arg, tide_session *session, struct buf *ret_json)
{
    const struct resuming *r = arg;

    return graph_ask(r->cli, session, ret_json);
}

static enum tide_code ask_missing(void *arg, const struct graph_missing *list, struct buf *memory, bool *ret_asked,
                                  struct tide_err *err)
{
    (void)arg;
    return graph_ask_missing(list, memory, ret_asked, err);
}

static void tell_line(void *arg, const char *line)
{
    (void)arg;
    say("%s", line);
}

static void begin_resume(struct cli *cli, struct resuming *r)
{
    struct resume *core = &r->core;
    bool ask = graph_may_ask(&r->face);

    r->cli = cli;
    r->face.token_fd = r->token_fd > 0 ? r->token_fd : 0;
    r->chat.input = core->ask.input;
    r->chat.token_fd = r->face.token_fd;
    core->store = cli->store;
    core->config = args_text(&cli->args, "config");
    core->quiet = r->face.quiet;
    core->face = (struct resume_face){.arg = r,
                                      .held = cli_hold,
                                      .tell = tell_line,
                                      .open_setup = open_setup,
                                      .running = on_running,
                                      .expand_prompt = expand_prompt,
                                      .answer = ask ? ask_answer : NULL,
                                      .ask_missing = ask ? ask_missing : NULL,
                                      .unread = r->face.quiet ? NULL : graph_say_unread};
    report_init(&core->program);
    chat_print_begin(&r->chat, cli, r->face.output, core->ask.who.yes, &core->chat);
    graph_drive(&r->graph, cli, &r->face, &core->want, &core->run);
}

/* ---- what came of it ---- */

static enum tide_code print_question(struct resuming *r, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct program_end end = {.waits = true};

    if (tide_session_get_info(r->core.session, &info, err))
        return err->code;
    memcpy(end.wait.token, r->core.token, sizeof end.wait.token);
    snprintf(end.run_id, sizeof(end.run_id), "%s", info->run_id);
    snprintf(end.wait.name, sizeof(end.wait.name), "%s", info->wait_name);
    snprintf(end.wait.kind, sizeof(end.wait.kind), "%s", info->wait_word);
    snprintf(end.wait.question, sizeof(end.wait.question), "%s", info->question ? info->question : "");
    return report_wait(r->cli, tide_session_id(r->core.session), &end, r->token_fd > 0 ? r->token_fd : -1, err);
}

static enum tide_code print_program(struct resuming *r, enum tide_code code, struct tide_err *err)
{
    const struct resume *core = &r->core;
    const char *id = tide_session_id(core->session);
    struct out *out = &r->cli->out;

    code = report_end(r->cli, &core->program, core->session, code, r->token_fd, err);
    if (code || !core->resumed.repeated)
        return code;
    if (out->json)
        out_shape(out, &shape_resumed,
                  &(struct command_result){
                      .session_id = id, .run_id = core->resumed.run_id, .seq = core->resumed.seq, .yes = true});
    else
        outf(out, "session %s was resumed by this request before: run %s, seq %" PRId64 "\n", id, core->resumed.run_id,
             core->resumed.seq);
    return TIDE_OK;
}

static void print_queued(struct out *out, const struct resume *core)
{
    const char *id = tide_session_id(core->session);

    if (out->json)
        out_shape(out, &shape_queued,
                  &(struct command_result){.session_id = id, .queue_id = core->queue_id, .seq = core->seq});
    else
        outf(out, "queued for session %s: seq %" PRId64 "\n", id, core->seq);
}

static enum tide_code print_result(struct resuming *r, enum tide_code code, struct tide_err *err)
{
    struct resume *core = &r->core;
    char all[256];

    switch (core->result) {
    case RESUME_NOTHING:
        snprintf(all, sizeof(all), "`tidemark graph check %.150s` shows all",
                 core->ask.graph_file ? core->ask.graph_file : "");
        if (core->graph_refused)
            return advise(code, all, err);
        return report_not_run(r->cli, &core->program, err);
    case RESUME_PLANNED:
        return plan_print(r->cli, core, err);
    case RESUME_ASKED:
        return print_question(r, err);
    case RESUME_QUEUED:
        print_queued(&r->cli->out, core);
        return TIDE_OK;
    case RESUME_RAN:
        break;
    }
    if (core->kind == TIDE_KIND_GRAPH)
        return graph_end(&r->graph, code, &core->graph_result, err);
    if (core->kind == TIDE_KIND_CHAT)
        return chat_print_end(&r->chat, code, core->prompt_refused, &core->chat_answer, err);
    return print_program(r, code, err);
}

static void hide_given(struct cli *cli, const struct resuming *r)
{
    AUTO(mem_freep) const char **sets = r->core.memory.len ? args_all(&cli->args, "set") : NULL;

    graph_set_hide(sets, cli->store);
}

enum tide_code resume_and_print(struct cli *cli, struct resuming *r, struct tide_err *err)
{
    if (r->token_fd >= 0 && check_fd(r->token_fd, "--token-fd", err))
        return err->code;
    if (r->core.ask.dry_run ? cli_store_open(cli, NEED_READ, 0, err) : cli_store_open_held(cli, NEED_WRITE, err))
        return err->code;
    hide_given(cli, r);
    begin_resume(cli, r);
    return print_result(r, resume_session(&r->core, err), err);
}

enum tide_code send_and_print(struct cli *cli, struct resuming *r, const char *text, bool only_queue,
                              struct tide_err *err)
{
    if (cli_store_open_held(cli, NEED_WRITE, err))
        return err->code;
    begin_resume(cli, r);
    return print_result(r, send_message(&r->core, text, only_queue, err), err);
}

void resuming_done(struct resuming *r)
{
    resume_done(&r->core);
    free(r->core.ask.retry);
    free(r->core.ask.happened);
    free(r->given);
    free(r->renames);
    buf_done(&r->token_text);
    buf_done(&r->input_text);
    buf_done(&r->checkpoints);
    arena_done(&r->arena);
}

/* ---- what a server asks ---- */

enum tide_code read_asked(int fd, struct arena *a, const struct json **ret, struct cause *ret_cause,
                          struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(ASKED_MAX);
    struct cause *q = ret_cause;
    struct json *v = NULL;
    int failed = buf_read_fd(&text, fd);

    if (failed || text.failed)
        return tide_fail_errno(err, failed ? failed : EFBIG, "read the request");
    if (json_parse(a, arena_dup(a, buf_view(&text)), NULL, &v, NULL, err))
        return tide_wrap(err, "the request");
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    snprintf(q->by, sizeof q->by, "%.*s", STR_ARG(json_get_text(a, v, STR("by"))));
    snprintf(q->id, sizeof q->id, "%.*s", STR_ARG(json_get_text(a, v, STR("request_id"))));
    snprintf(q->digest, sizeof q->digest, "%.*s", STR_ARG(json_get_text(a, v, STR("request_digest"))));
    *ret = v;
    return TIDE_OK;
}
