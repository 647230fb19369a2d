/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark why: where a session stands, the sentence that says why, since when, and the commands that move it. Looks
 * twice: the first look tells where the wait began, and its time is in the log alone.
 */
#include <stdio.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/session_view.h"
#include "cli/terminal/wrap.h"
#include "graph/resume_next.h"

struct why {
    struct cli *cli;
    int64_t wait_seq, wait_ms; /* where the wait began, and when; 0: it is not parked */
    struct arena arena;
    const struct tide_next *next;
};

static int take_wait(void *arg, const struct tide_session_info *info)
{
    ((struct why *)arg)->wait_seq = info->run_ended_ms ? 0 : info->wait_since_seq;
    return 0;
}

/* The wait is said to have begun at, or right before, its own event. */
static int take_time(void *arg, const struct tide_event *ev)
{
    struct why *w = arg;

    if (strcmp(ev->kind, "run.waiting") != 0)
        return 0;
    w->wait_ms = ev->ts_ms;
    return 1;
}

/* The moment from which on it has stood as it stands, as far as the log tells. */
static int64_t since(const struct why *w, const struct tide_session_info *info)
{
    bool running = strcmp(info->status, "running") == 0;

    if (info->run_ended_ms)
        return info->run_ended_ms;
    if (info->reason && strcmp(info->reason, "wait_timeout") == 0)
        return info->deadline_ms;
    if (info->reason && strcmp(info->reason, "due") == 0)
        return info->due_ms;
    if (w->wait_ms)
        return w->wait_ms;
    if (running && info->run_started_ms)
        return info->run_started_ms;
    return info->run_started_ms ? info->updated_ms : info->created_ms;
}

static int why_json(void *arg, const struct tide_session_info *info)
{
    struct why *w = arg;
    struct json_out o = out_json(&w->cli->out);
    struct tide_session_info shown = *info;

    json_out_begin(&o, '{');
    shown.next = w->next;
    session_members(&o, &shown);
    json_ktime(&o, "since", since(w, info));
    json_out_end(&o, '}');
    out_json_end(&w->cli->out);
    return 0;
}

static int why_text(void *arg, const struct tide_session_info *info)
{
    struct why *w = arg;
    struct out *out = &w->cli->out;
    char status[STATUS_SIZE], when[TIME_TEXT_SIZE], ago[AGO_SIZE];
    int64_t since_ms = since(w, info);
    const char *const *offered;
    size_t sentence;

    outf(out, "%s%s%s  ", color_code(out, COLOR_BOLD), info->id, color_code(out, COLOR_NONE));
    out_colored(out, session_color(info), session_status(status, info));
    outf(out, "\n");
    sentence = out->text.len;
    out_value(out, info->why);
    out_wrap(out, sentence);
    time_format(when, since_ms);
    when[10] = ' ';
    outf(out, "\n%ssince %.19s UTC, %s%s\n\n", color_code(out, COLOR_DIM), when, time_ago(ago, since_ms),
         color_code(out, COLOR_NONE));
    offered = next_commands(&w->arena, w->next);
    for (size_t i = 0; offered[i]; i++)
        outf(out, "  %s%s%s\n", color_code(out, COLOR_CYAN), offered[i], color_code(out, COLOR_NONE));
    return 0;
}

static enum tide_code look(struct why *w, tide_session *session, struct tide_err *err)
{
    if (tide_session_show(session, take_wait, w, err))
        return err->code;
    if (w->wait_seq >= tide_session_first_seq(session) && tide_read(session, 0, w->wait_seq, 0, take_time, w, err))
        return err->code;
    w->next = graph_next_of(&w->arena, session);
    return tide_session_show(session, w->cli->out.json ? why_json : why_text, w, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct why w = {.cli = cli, .arena = ARENA_INIT};
    enum tide_code code = cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err);

    code = code ? code : look(&w, session, err);
    arena_done(&w.arena);
    return code;
}

const struct command cmd_why = {
    .name = "why",
    .run = run,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .help = "say in one sentence why a session is where it is, and which commands move it",
};
