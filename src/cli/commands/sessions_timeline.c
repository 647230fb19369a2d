/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark sessions timeline: the life of a session, drawn for people or as data for programs; with --follow again after
 * every commit to it. On a terminal that is in a screen of its own, and the last drawing stays.
 */
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "remote/remote_log.h"
#include "terminal/progress.h"
#include "cli/timeline/timeline_draw.h"
#include "engine/shapes.h"

#define AGAIN_MS 100
#define SCREEN_OPEN "\033[?1049h\033[?25l"
#define SCREEN_CLOSE "\033[?25h\033[?1049l"
#define SCREEN_CLEAR "\033[H\033[2J"

static const struct opt options[] = {
    {.name = "width",
     .type = VALUE_INT,
     .value = "N",
     .min = TIMELINE_COLUMNS,
     .max = 132,
     .help = "draw in N columns, 80 to 132 (default: the width of the terminal, else 80)"},
    {.name = "follow", .letter = 'f', .help = "redraw it at every change, until the session has ended"},
    {.name = NULL},
};

static enum tide_code take_width(struct cli *cli, int *ret, struct tide_err *err)
{
    int64_t width = args_int(&cli->args, "width", cli->out.tty ? terminal_columns(STDOUT_FILENO) : TIMELINE_COLUMNS);

    *ret = (int)width;
    if (!cli->out.json && width < TIMELINE_COLUMNS)
        return args_refuse(err, "width",
                           "the timeline needs %d columns, and this terminal has %d: widen it, or give --width %d",
                           TIMELINE_COLUMNS, (int)width, TIMELINE_COLUMNS);
    return TIDE_OK;
}

static enum tide_code draw_timeline(struct cli *cli, tide_session *session, const atomic_int *stop, bool *ret_ended,
                                    struct tide_err *err)
{
    AUTO(timeline_done) struct timeline t = {.n_runs = 0};
    int width;

    if (take_width(cli, &width, err) || timeline_read(session, stop, &t, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_timeline, &t);
    else
        timeline_draw(&t, &cli->out, width);
    *ret_ended = t.status == TIDE_STATUS_IDLE && t.outcome != TIDE_OUTCOME_NONE;
    return TIDE_OK;
}

/* Of what is drawn from `from` on: the first line, and as many of the last as there is room for. */
static void fit_to_screen(struct buf *text, size_t from)
{
    struct winsize size;
    size_t room = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 3 ? size.ws_row - 2u : 22;
    char *begin = memchr(text->ptr + from, '\n', text->len - from), *end = text->ptr + text->len, *at = end;

    for (size_t lines = 0; begin && at > begin + 1; at--)
        if (at[-1] == '\n' && lines++ == room)
            break;
    if (!begin || at <= begin + 1)
        return;
    memmove(begin + 1, at, (size_t)(end - at));
    text->len -= (size_t)(at - begin - 1);
}

/* What is followed: on a store, or at a server. */
struct followed {
    struct cli *cli;
    enum tide_code (*draw)(const struct followed *f, const atomic_int *stop, bool *ret_ended, struct tide_err *err);
    /* Until something is committed to the session. *ret_more false: nobody wants to see it any more. */
    enum tide_code (*await)(const struct followed *f, bool *ret_more, struct tide_err *err);
    tide_session *session;
    tide_watch *watch;
    struct session_detail *detail; /* of a server: as it was drawn last */
};

static enum tide_code draw_here(const struct followed *f, const atomic_int *stop, bool *ret_ended, struct tide_err *err)
{
    return draw_timeline(f->cli, f->session, stop, ret_ended, err);
}

static enum tide_code await_here(const struct followed *f, bool *ret_more, struct tide_err *err)
{
    int64_t seq = tide_session_last_seq(f->session);
    int changed = 0;

    while (tide_session_last_seq(f->session) == seq) {
        *ret_more = await_change(f->watch);
        if (!*ret_more)
            return TIDE_OK;
        if (tide_watch_wait(f->watch, 0, &changed, err) || (changed && tide_session_refresh(f->session, err)))
            return err->code;
    }
    return TIDE_OK;
}

static enum tide_code follow_session(const struct followed *f, struct tide_err *err)
{
    struct cli *cli = f->cli;
    bool screen = cli->out.tty && !cli->out.json, ended = false, more = true;
    enum tide_code code = TIDE_OK;

    if (screen)
        outf(&cli->out, SCREEN_OPEN);
    while (!code && more && !ended) {
        size_t from;

        if (screen)
            outf(&cli->out, SCREEN_CLEAR);
        from = cli->out.text.len;
        code = f->draw(f, &stop_signal, &ended, err);
        if (!code && screen)
            fit_to_screen(&cli->out.text, from);
        code = code ? code : out_flush(&cli->out, err);
        if (!code && !ended)
            code = f->await(f, &more, err);
    }
    if (code == TIDE_CANCELLED && stop_signal && !cli->out.closed)
        code = TIDE_OK;
    if (!screen)
        return code;
    buf_clear(&cli->out.text);
    outf(&cli->out, SCREEN_CLOSE);
    if (code) {
        struct tide_err ignored;

        (void)!out_flush(&cli->out, &ignored);
        return code;
    }
    return f->draw(f, NULL, &ended, err);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(watch_closep) tide_watch *watch = NULL;
    bool ended;

    if ((args_on(&cli->args, "follow") &&
         tide_watch_open(cli->store, &watch, err)) || /* changes from here on wake it */
        cli_session_open(cli, 0, TIDE_SESSION_READ, &session, err))
        return err->code;
    return watch ? follow_session(&(struct followed){cli, draw_here, await_here, session, watch, NULL}, err)
                 : draw_timeline(cli, session, &stop_signal, &ended, err);
}

/* ---- of a server ---- */

struct of_server {
    struct cli *cli;
    const struct tide_session_info *info;
};

static enum tide_code each_event(void *from, tide_event_fn *fn, void *arg, struct tide_err *err)
{
    const struct of_server *s = from;

    return remote_log_read(s->cli->remote, s->info, fn, arg, err);
}

/* For people it is drawn from the log, for programs it is as the server has it. */
static enum tide_code draw_there(const struct followed *f, const atomic_int *stop, bool *ret_ended,
                                 struct tide_err *err)
{
    AUTO(timeline_done) struct timeline t = {.n_runs = 0};
    const struct tide_session_info *info = &f->detail->row.info;
    struct of_server from = {f->cli, info};
    const char *id = args_operand(&f->cli->args, 0);
    int width;

    *f->detail = (struct session_detail){.row.command = NULL};
    remote_begin(f->cli->remote, "GET", "sessions", id);
    if (take_width(f->cli, &width, err) ||
        remote_read(f->cli->remote, REMOTE_SOON, &shape_session_detail, f->detail, err))
        return err->code;
    *ret_ended = info->status == TIDE_STATUS_IDLE && info->outcome != TIDE_OUTCOME_NONE;
    if (f->cli->out.json) {
        remote_begin(f->cli->remote, "GET", "sessions", id, "timeline");
        return remote_pass(f->cli, REMOTE_SOON, err);
    }
    if (timeline_fold(info, each_event, &from, stop, &t, err))
        return err->code;
    timeline_draw(&t, &f->cli->out, width);
    return TIDE_OK;
}

static int on_commit(void *arg, int64_t id, struct str name, struct str data)
{
    (void)id;
    *(bool *)arg = data.len && !name.len;
    return data.len && !str_eq(name, STR("status")) && !str_eq(name, STR("text"));
}

/* A stream that ends, because the session or the server is gone, shows at the next drawing. */
static enum tide_code await_there(const struct followed *f, bool *ret_more, struct tide_err *err)
{
    bool committed = false;

    *ret_more = true;
    remote_begin(f->cli->remote, "GET", "sessions", f->detail->row.info.id, "events");
    remote_param_int(f->cli->remote, "after", f->detail->row.info.last_seq);
    if (remote_follow(f->cli->remote, on_commit, &committed, err))
        return err->code;
    if (!committed)
        (void)poll(NULL, 0, AGAIN_MS);
    return TIDE_OK;
}

static enum tide_code run_remote(struct cli *cli, struct tide_err *err)
{
    struct session_detail detail;
    const struct followed f = {cli, draw_there, await_there, NULL, NULL, &detail};
    bool ended;

    return args_on(&cli->args, "follow") ? follow_session(&f, err) : draw_there(&f, &stop_signal, &ended, err);
}

const struct command cmd_sessions_timeline = {
    .group = "sessions",
    .name = "timeline",
    .run = run,
    .remote = run_remote,
    .need = NEED_READ,
    .operands = {{"ID", VALUE_SESSION, 0}},
    .options = options,
    .help = "draw the history of a session: its runs, what each run did, and what it reused from earlier runs",
    .more = "One lane per run. █ ran, ▓ failed or ✗ interrupted, ▒ outcome unknown, ▚ found to have happened, ╍ "
            "waits,\n"
            "┈ sleeps, ░ reused from an earlier run: finished there, not run again.\n"
            "--follow waits for commits of any process, without polling; Ctrl-C ends it. With --json: one object per "
            "change.",
};
