/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last word of exec and resume. Standard output is the program's, so people are spoken to on standard error; the
 * one exception is the JSON about a wait, which the caller asked for.
 */
#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "engine/shapes.h"
#include "cli/error_hints.h"
#include "cli/next_command.h"
#include "cli/signals.h"
#include "terminal/glyph.h"
#include "terminal/progress.h"
#include "engine/settings.h"

enum tide_code check_fd(int fd, const char *option, struct tide_err *err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return args_refuse(err, option + strspn(option, "-"), "%s %d: not an open descriptor", option, fd);
    if (fd > STDERR_FILENO)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return TIDE_OK;
}

enum tide_code write_fd(int fd, const char *option, const char *text, struct tide_err *err)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    int bad;

    buf_addf(&line, "%s\n", text);
    bad = fd_write(fd, buf_view(&line));
    return bad ? tide_fail_errno(err, bad, "%s %d: write the token", option, fd) : TIDE_OK;
}

/* ---- a run that waits ---- */

static void print_json(struct out *out, const char *session, const struct program_end *e, bool show_token)
{
    const struct parked_report parked = {
        .session_id = session,
        .run_id = e->run_id,
        .status = "waiting",
        .wait = {.name = e->wait.name,
                 .kind = e->wait.is_sleep ? "timer" : e->wait.kind,
                 .question = e->wait.question,
                 .deadline_ms = e->wait.deadline_ms,
                 .due_ms = e->wait.due_ms},
        .token = show_token ? e->wait.token : NULL,
    };

    out_shape(out, &shape_parked, &parked);
}

static void print_hidden(struct out *out, struct arena *a, const char *session)
{
    outf(out,
         "  its command line contained a secret, which is not stored: `resume` cannot run it;\n"
         "  `%s exec --new-run --session %s -- PROGRAM` starts a new run; pass secrets in the environment\n",
         own_command(a), session);
}

/* Values that came from the program must not move the terminal: they go through out_value. */
static void say_gathered(struct out *out)
{
    say_lines(buf_view(&out->text));
    buf_clear(&out->text);
}

/* A line each, below each other. */
static void put_lines(struct out *out, struct arena *a, const char *name, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");

        outf(out, "  %-8s  ", name);
        out_value(out, arena_dup(a, (struct str){text, n}).ptr);
        outf(out, "\n");
        name = "";
        text += n + (text[n] != '\0');
    }
}

static void print_wait(struct out *out, const char *session, const struct program_end *e, bool show_token)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char when[TIME_PEOPLE_SIZE];

    outf(out, "session %s waits for %s: ", session, e->wait.kind);
    out_value(out, e->wait.name);
    outf(out, "\n");
    put_lines(out, &a, "question", e->wait.question);
    if (e->wait.deadline_ms)
        outf(out, "  deadline  %s\n", time_people(when, e->wait.deadline_ms));
    say_gathered(out); /* the command stays in one piece: it is there to be pasted */
    if (e->hidden)
        print_hidden(out, &a, session);
    else
        outf(out, "  answer    %s resume %s%s%s --input %s\n", own_command(&a), session, show_token ? " --token " : "",
             show_token ? e->wait.token : "", strcmp(e->wait.kind, "approval") == 0 ? "yes" : "TEXT");
}

static void print_sleep(struct out *out, const char *session, const struct program_end *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char when[TIME_PEOPLE_SIZE];

    outf(out, "session %s sleeps until %s: ", session, time_people(when, e->wait.due_ms));
    out_value(out, e->wait.name);
    outf(out, "\n");
    if (e->hidden)
        print_hidden(out, &a, session);
    else
        outf(out, "  `%s recover --run-due` or `%s resume %s` continues it then\n", own_command(&a), own_command(&a),
             session);
}

enum tide_code report_wait(struct cli *cli, const char *session, const struct program_end *e, int token_fd,
                           struct tide_err *err)
{
    bool has_token = !e->wait.is_sleep && e->wait.token[0], show = has_token && token_fd < 0;
    enum tide_code code = TIDE_OK;
    struct out people;

    cli->exit_status = tide_code_exit(TIDE_WAITING);
    if (has_token && token_fd >= 0 && write_fd(token_fd, "--token-fd", e->wait.token, err))
        code = tide_hint(err, TIDE_ACTION_ROTATE_TOKEN, session);
    if (cli->out.json) {
        print_json(&cli->out, session, e, show);
        return code;
    }
    out_init(&people);
    if (e->wait.is_sleep)
        print_sleep(&people, session, e);
    else
        print_wait(&people, session, e, show);
    fwrite(people.text.ptr, 1, people.text.len, stderr);
    out_done(&people);
    return code;
}

/* ---- while it runs ---- */

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

static void on_notice(void *arg, enum program_notice what, size_t n, const char *text)
{
    (void)arg;
    switch (what) {
    case PROGRAM_CHANGED:
        say("%s has changed since it ran last: recorded steps return their results from the log", text);
        break;
    case PROGRAM_LEFTOVERS:
        say("the last run had left %zu process%s running: ended %s", n, n == 1 ? "" : "es", n == 1 ? "it" : "them");
        break;
    case PROGRAM_SUPERSEDED:
        say("the run that waited is superseded%s", n ? ": its token is revoked" : "");
        break;
    case PROGRAM_AGAIN:
        say("a new run begins; the last run of this session %s %s", strcmp(text, "waiting") == 0 ? "is" : "was", text);
        break;
    case PROGRAM_REPEATS:
        say("it repeats %zu finished step%s: %s", n, n == 1 ? "" : "s", text);
        break;
    case PROGRAM_DOUBTS:
        say("it repeats %zu step%s that must happen once and may have happened: %s", n, n == 1 ? "" : "s", text);
        break;
    }
}

static void on_trouble(void *arg, const struct tide_err *why)
{
    if (why)
        say_store_trouble(why,
                          ((const struct program_run *)arg)->degrade
                              ? "pure work continues in memory until the store can be written (durability: degraded)"
                              : "the run pauses and continues by itself when the store can be written");
    else
        say("the store can be written again: the run continues");
}

/* Where this command is; a file that was replaced meanwhile is there all the same. */
static const char *own_binary(void)
{
    static const char gone[] = " (deleted)";
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (n <= 0)
        return NULL;
    path[n] = '\0';
    if ((size_t)n > strlen(gone) && strcmp(path + n - strlen(gone), gone) == 0)
        path[(size_t)n - strlen(gone)] = '\0';
    return path;
}

void report_init(struct program_run *r)
{
    r->binary = own_binary();
    r->signals = -1;
    r->stopped = is_stopped;
    r->notice = on_notice;
    r->trouble = on_trouble;
    r->arg = r;
}

void report_running(struct program_run *r, bool runs)
{
    if (!runs)
        signal_pipe_close(r->signals);
    r->signals = runs ? signal_pipe_open() : -1;
}

enum tide_code report_not_run(struct cli *cli, const struct program_run *r, struct tide_err *err)
{
    if (!r->end.not_run)
        return err->code;
    cli->exit_status = r->end.exit_status; /* as a shell has it, not that of the code */
    if (cli->out.json)
        err_say_json(err);
    else
        say_err(err);
    return TIDE_OK;
}

/* ---- one that has ended ---- */

void report_durability(int64_t degraded_events)
{
    if (degraded_events)
        say("durability: degraded: %" PRId64 " event%s waited in memory while the store could not be written, and %s "
            "stored later",
            degraded_events, degraded_events == 1 ? "" : "s", degraded_events == 1 ? "was" : "were");
}

static void tell_cut(const char *what, const struct buf *kept, int64_t bytes)
{
    if (bytes > (int64_t)kept->len)
        say("of its standard %s only the last %zu of %" PRId64 " bytes are recorded", what, kept->len, bytes);
}

/* What it printed then, and its exit status. */
static enum tide_code report_record(struct cli *cli, const struct program_run *r, const char *id)
{
    const struct program_record *p = &r->record;

    if (isatty(STDERR_FILENO))
        say("session %s has completed: this is its recorded result", id);
    tell_cut("output", &p->out, p->out_bytes);
    tell_cut("error", &p->err, p->err_bytes);
    fwrite(p->err.ptr, 1, p->err.len, stderr);
    if (cli->out.tty)
        glyph_clean(&cli->out.text, buf_view(&p->out));
    else
        buf_add_str(&cli->out.text, buf_view(&p->out));
    cli->exit_status = r->end.exit_status;
    return TIDE_OK;
}

/* For programs: what `why` says and offers, as an error. */
static void say_end_json(tide_session *session, const struct program_end *e)
{
    struct tide_err end = {.code = TIDE_OK}, ignored;
    const struct tide_session_info *info;
    bool unsettled = e->exit_status == tide_code_exit(TIDE_UNSETTLED);

    tide_fail(&end,
              e->cancelled ? TIDE_CANCELLED
              : unsettled  ? TIDE_UNSETTLED
                           : TIDE_FAILED,
              "%s", e->cancelled ? "the session was cancelled" : e->message);
    tide_about_session(&end, tide_session_id(session));
    if (!tide_session_get_info(session, &info, &ignored))
        err_hint_next(&end, info->next);
    err_say_json(&end);
}

static void say_how_on(tide_session *session, const char *message)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct tide_session_info *info;
    struct tide_err ignored;
    const char *how = tide_session_get_info(session, &info, &ignored) ? NULL : how_on(&a, info->id, info->next);

    say("%s%s%s", message, how ? ": " : "", how ? how : "");
}

enum tide_code report_end(struct cli *cli, const struct program_run *r, tide_session *session, enum tide_code code,
                          int token_fd, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct program_end *e = &r->end;
    const char *id = tide_session_id(session);

    report_durability(e->degraded_events);
    if (code || !e->run_id[0])
        return code ? report_not_run(cli, r, err) : e->recorded ? report_record(cli, r, id) : TIDE_OK;
    if (e->left_behind)
        say("%s left %zu process%s running: ended %s", program_run_name(r), e->left_behind,
            e->left_behind == 1 ? "" : "es", e->left_behind == 1 ? "it" : "them");
    if (e->waits)
        return report_wait(cli, id, e, token_fd, err);
    cli->exit_status = e->exit_status;
    if (cli->out.json && (e->cancelled || e->message[0]))
        say_end_json(session, e);
    else if (e->cancelled)
        say("session %s was cancelled", id);
    else if (e->message[0] && e->exit_status == tide_code_exit(TIDE_UNSETTLED))
        say("%s: find out whether the step happened: `%s why %s` shows how to continue", e->message, own_command(&a),
            id);
    else if (e->message[0] && e->hidden)
        say("%s: its command line contained a secret, which is not stored: `%s exec --ensure --session %s -- PROGRAM` "
            "continues it; pass secrets in the environment",
            e->message, own_command(&a), id);
    else if (e->message[0])
        say_how_on(session, e->message);
    return TIDE_OK;
}

void report_refusal(int fd, const struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 16);
    struct json_out o = json_out_to(&text);

    shape_put(&o, &shape_error, &(struct error_shown){.err = *err});
    (void)!send(fd, text.ptr, text.len, MSG_NOSIGNAL);
}
