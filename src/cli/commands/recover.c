/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark recover: writes down what has happened to sessions while nobody was there (tide_store_recover), and with --run-due lets
 * those continue that are due, or, when asked, were interrupted. What a person stopped is never resumed here. Once, or with
 * --watch for as long as it is let: then trouble with the store is said, and waited for.
 */
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/error_hints.h"
#include "cli/cli.h"
#include "cli/commands/notify.h"
#include "cli/signals.h"
#include "cli/next_command.h"
#include "engine/session_next.h"
#include "terminal/progress.h"
#include "engine/housekeeping.h"
#include "engine/settings.h"
#include "engine/store_url.h"
#include "engine/scheduler.h"
#include "engine/session_words.h"
#include "engine/shapes.h"

#define INTERVAL_MS 30000 /* a silent store is looked at so often at least */
#define MAX_RESUMES 3
#define MAX_JOBS 2
#define TOKEN_SINK 3
#define EXIT_NOT_STARTED 127

static const struct opt options[] = {
    {.name = "dry-run", .help = "show what would be done, and why; write nothing"},
    {.name = "run-due", .help = "then resume what is due, and what --auto-resume selects"},
    {.name = "watch", .help = "keep running, and repeat whenever there is something to do"},
    {.name = "auto-resume",
     .type = VALUE_WORD,
     .value = "WHAT",
     .words = "off live all",
     .help = "with --run-due, which interrupted sessions to resume: off (none), live (those that ran when their "
             "process died) or all (default: $TIDEMARK_AUTO_RESUME, else off); never those that a person stopped"},
    {.name = "max-resumes",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 1000,
     .help = "resume a session at most N times without progress (default: 3)"},
    {.name = "jobs",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 256,
     .help = "run at most N sessions at once (default: 2)"},
    {.name = "interval",
     .type = VALUE_DURATION,
     .value = "D",
     .help = "with --watch: check at least this often (default: 30s)"},
    {.name = NULL},
};

struct recovering {
    struct cli *cli;
    struct scheduler s;
    struct buf url;
    struct tide_err trouble; /* of a watch: the same trouble is said once */
};

/* ---- saying -------------------------------------------------------------------------------------------------------- */

static void say_json(struct recovering *r, const struct tide_recovered *what, bool resumes)
{
    out_shape(
        &r->cli->out, &shape_recovery,
        &(struct recovery_line){.type = RECOVERY_FOUND, .found = *what, .goes_on = resumes, .dry_run = r->s.dry_run});
}

struct offer {
    struct arena *arena;
    const char *text;
};

static int take_offer(void *arg, const struct tide_session_info *info)
{
    struct offer *o = arg;

    o->text = how_on(o->arena, info->id, info->next);
    return 0;
}

/* NULL: nothing is offered. */
static const char *how_on_with(struct recovering *r, struct arena *a, const char *id)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct offer o = {.arena = a};
    struct tide_err ignored;

    if (!tide_session_open(r->cli->store, id, TIDE_SESSION_READ, &session, &ignored))
        (void)!session_show_next(session, take_offer, &o, &ignored);
    return o.text;
}

static void say_text(struct recovering *r, const struct tide_recovered *what, bool resumes)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct out *out = &r->cli->out;
    bool due = what->action == TIDE_RECOVERED_DUE || what->action == TIDE_RECOVERED_ANSWERED;
    const char *action = reason_words(tide_recovered_action_name(what->action)), *how;

    out_colored(out, due ? COLOR_CYAN : COLOR_YELLOW, action);
    outf(out, "%*s %s: ", (int)(13 - strlen(action)), "", what->session_id);
    out_value(out, what->why);
    if (resumes && r->s.dry_run)
        outf(out, "; it would be resumed");
    else if (!what->trusted)
        outf(out, ": `%s sessions trust %s` shows what would run", own_command(&a), what->session_id);
    else if (r->s.run_due && !what->has_program)
        outf(out, "; it has no program to run here");
    else if (r->s.run_due && what->resumes >= r->s.max_resumes && !due)
        outf(out, "; it was resumed %d times without progress: it needs a person", what->resumes);
    else if (what->action == TIDE_RECOVERED_INTERRUPTED && what->has_program && !resumes &&
             (how = how_on_with(r, &a, what->session_id)))
        outf(out, "; %s, or %s--auto-resume live", how, r->s.run_due ? "" : "--run-due ");
    outf(out, "\n");
}

static void say_summary(struct recovering *r)
{
    struct out *out = &r->cli->out;
    const struct tide_recovery *f = &r->s.recovery;
    const struct {
        const char *words;
        int64_t n;
    } counts[] = {{"checked", f->looked_at},
                  {"interrupted", f->interrupted},
                  {"timed out", f->timed_out},
                  {"with an expired token", f->tokens_expired},
                  {"due", f->due}};
    char when[TIME_PEOPLE_SIZE];

    if (out->json) {
        out_shape(out, &shape_recovery,
                  &(struct recovery_line){.type = RECOVERY_SUMMARY,
                                          .recovery = *f,
                                          .resumed = r->s.started,
                                          .failed = r->s.ended_badly,
                                          .expired = r->s.expired,
                                          .dry_run = r->s.dry_run});
        return;
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        outf(out, "%s%" PRId64 " %s", i ? ", " : "", counts[i].n, counts[i].words);
    if (r->s.run_due)
        outf(out, ", %" PRId64 " %s", r->s.dry_run ? r->s.would_resume : r->s.started,
             r->s.dry_run ? "would be resumed" : "resumed");
    if (r->s.ended_badly)
        outf(out, ", %" PRId64 " of them failed", r->s.ended_badly);
    if (r->s.expired)
        outf(out, ", %" PRId64 " older than `retention` %s", r->s.expired,
             r->s.dry_run ? "would be deleted" : "deleted");
    if (f->due == 0 && f->next_ms > 0 && f->next_ms < INT64_MAX)
        outf(out, "; the next is due at %s", time_people(when, f->next_ms));
    outf(out, "\n");
}

/* ---- each in a process of its own: this same program as `tidemark resume ID` ----------------------------------------- */

/* What it prints goes to standard error: standard output is this command's own report. */
static void say_job(struct recovering *r, const char *action, const struct scheduler_job *job, const char *how,
                    int exit_status)
{
    struct out *out = &r->cli->out;
    struct tide_err err;

    if (out->json) {
        out_shape(out, &shape_recovery,
                  &(struct recovery_line){.type = RECOVERY_JOB,
                                          .action = action,
                                          .session_id = job->id,
                                          .pid = job->handle,
                                          .exit_status = exit_status,
                                          .how = how});
    } else {
        outf(out, "%-13s %s: %s", action, job->id, how);
        if (exit_status < 0)
            outf(out, " (pid %d)", (int)job->handle);
        outf(out, "\n");
    }
    if (out_flush(out, &err))
        r->cli->exit_status = 1; /* nobody reads: what was begun is still brought to its end */
}

/* ---- starting ------------------------------------------------------------------------------------------------------ */

/* Only async-signal-safe calls between fork and exec. */
static void become_command(const char *const *argv, const sigset_t *mask)
{
    int null = open("/dev/null", O_RDWR);

    signals_end_us(); /* one that comes before the exec is not for our handlers: what they note there is gone with it */
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (dup2(null, TOKEN_SINK) !=
        TOKEN_SINK) /* what it prints may be logged: the token of its next wait is minted anew */
        _exit(EXIT_NOT_STARTED);
    setpgid(0, 0); /* a signal from the terminal reaches it through us, once */
    if (null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO && dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO)
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(EXIT_NOT_STARTED);
}

static bool start_job(void *arg, struct scheduler_job *job)
{
    struct recovering *r = arg;
    const char *key_file = args_text(&r->cli->args, "key-file");
    const char *argv[12] = {"tidemark",   "--store", buf_cstr(&r->url), "resume", job->id,
                            "--token-fd", "3",       "--unattended",    NULL};
    sigset_t all, before, usual;
    pid_t pid;

    if (key_file) {
        argv[8] = "--key-file";
        argv[9] = key_file;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    usual = before;
    sigdelset(&usual, SIGCHLD);
    pid = fork();
    if (pid == 0)
        become_command(argv, &usual);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return false; /* no room for a process now: it stays in line */
    setpgid(pid, pid);
    job->handle = pid;
    say_job(r, "resumed", job, "runs", -1);
    return true;
}

static enum job_state look_at_job(void *arg, const struct scheduler_job *job, int *ret_status)
{
    pid_t got = waitpid((pid_t)job->handle, ret_status, WNOHANG);

    (void)arg;
    if (got == 0 || (got < 0 && errno == EINTR))
        return JOB_RUNS;
    return WIFEXITED(*ret_status) &&
                   (WEXITSTATUS(*ret_status) == 0 || WEXITSTATUS(*ret_status) == tide_code_exit(TIDE_WAITING))
               ? JOB_ENDED
               : JOB_FAILED;
}

static void job_ended(void *arg, const struct scheduler_job *job, int status, bool last)
{
    bool exited = WIFEXITED(status);
    int code = exited ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    char how[96];

    if (exited && (code == 0 || code == tide_code_exit(TIDE_WAITING)))
        snprintf(how, sizeof(how), "%s", code ? "waits again" : "finished");
    else
        snprintf(how, sizeof(how), "%s %d%s", exited ? "failed with exit status" : "was ended by signal",
                 exited ? code : WTERMSIG(status), last ? ", and is not retried here" : "");
    say_job(arg, "ended", job, how, code);
}

static void stop_job(void *arg, const struct scheduler_job *job)
{
    (void)arg;
    kill((pid_t)job->handle, SIGTERM);
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

static void job_found(void *arg, const struct tide_recovered *what, bool resumes)
{
    struct recovering *r = arg;

    (r->cli->out.json ? say_json : say_text)(r, what, resumes);
}

/* ---- once, and for ever -------------------------------------------------------------------------------------------- */

/* Here, and not by a process that outlives this one: a service manager would end it. */
static void send_notifications(struct recovering *r)
{
    struct tide_err err;

    if (!r->s.dry_run && !stop_signal && notify_all(r->cli, notify_ignore, &err))
        say_err(&err);
}

static enum tide_code recover_once(struct recovering *r, struct tide_err *err)
{
    struct tide_err later;
    enum tide_code code, flushed;

    notifier_hold(r->cli->notifier);
    code = scheduler_pass(&r->s, err);
    flushed = out_flush(&r->cli->out, code ? &later : err);
    if (flushed)
        return code ? code : flushed;
    scheduler_finish(&r->s);
    send_notifications(r);
    if (!code && stop_signal)
        code = tide_fail(err, TIDE_CANCELLED, "stopped");
    if (code && code != TIDE_CORRUPT) /* a damaged one is reported last, after the others were read */
        return code;
    say_summary(r);
    flushed = out_flush(&r->cli->out, code ? &later : err);
    return code ? code : flushed;
}

/* Trouble passes: it is said when it begins and when it changes, and the watch continues. */
static void say_trouble(struct recovering *r, enum tide_code code, struct tide_err *err)
{
    const struct tide_detail *now = &err->detail, *before = &r->trouble.detail;
    bool same = code && code == r->trouble.code && now->subject == before->subject &&
                strcmp(now->name, before->name) == 0 && strcmp(now->session_id, before->session_id) == 0;

    if (!code && r->trouble.code)
        say("recover: continues");
    r->trouble = code ? *err : (struct tide_err){.code = TIDE_OK};
    if (code && !same)
        say_err(err);
}

/* Sleeps until the next pass. */
static void wait_for_work(struct recovering *r, tide_watch *watch, struct scheduler_wait *w)
{
    struct pollfd p = {.fd = tide_watch_fd(watch), .events = POLLIN};
    int64_t left;

    while (!stop_signal && (left = scheduler_wait_left(&r->s, w, wall_ms())) > 0) {
        (void)!await_any(&p, w->changed ? 0 : 1, left);
        scheduler_woken(&r->s, w, p.revents != 0);
    }
}

static void on_child(int number)
{
    (void)number; /* it has ended the wait */
}

static enum tide_code watch_store(struct recovering *r, int64_t interval_ms, struct tide_err *err)
{
    AUTO(watch_closep) tide_watch *changes = NULL;
    struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    enum tide_code code = tide_watch_open(r->cli->store, &changes, err);
    sigset_t child_only;

    sigemptyset(&child_only);
    sigaddset(&child_only, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_only, NULL); /* it comes while we wait, or ends the next wait at once */
    sigaction(SIGCHLD, &child, NULL);
    if (!code && isatty(STDERR_FILENO) && !r->cli->out.json)
        fprintf(stderr, "tidemark: watching %s; Ctrl-C ends it\n", store_url_path(buf_cstr(&r->url)));
    while (!stop_signal && !code) {
        struct scheduler_wait wait;
        struct tide_err trouble;
        enum tide_code passed;
        int seen;

        scheduler_wait_begin(&r->s, &wait, interval_ms);
        (void)!tide_watch_wait(changes, 0, &seen, NULL); /* what changes from here on wakes the wait */
        passed = scheduler_pass(&r->s, &trouble);
        if (!(passed == TIDE_CANCELLED && stop_signal))
            say_trouble(r, passed, &trouble);
        code = out_flush(&r->cli->out, err);
        scheduler_step(&r->s);
        if (!code)
            wait_for_work(r, changes, &wait);
    }
    scheduler_finish(&r->s);
    return code;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static enum tide_code check_options(const struct args *args, struct tide_err *err)
{
    static const char *const of_run_due[] = {"auto-resume", "max-resumes", "jobs"};

    for (size_t i = 0; i < sizeof(of_run_due) / sizeof(of_run_due[0]); i++)
        if (args_on(args, of_run_due[i]) && !args_on(args, "run-due"))
            return args_refuse(err, of_run_due[i], "recover: --%s goes with --run-due", of_run_due[i]);
    if (args_on(args, "interval") && !args_on(args, "watch"))
        return args_refuse(err, "interval", "recover: --interval goes with --watch");
    if (args_on(args, "watch") && args_on(args, "dry-run"))
        return args_refuse(err, "watch", "recover: --watch and --dry-run: give one of them");
    if (args_on(args, "run-due") && args_on(args, "key-fd"))
        return args_refuse(err, "run-due",
                           "recover: --run-due starts further processes, which cannot read --key-fd "
                           "again: give --key-file");
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const struct args *args = &cli->args;
    struct recovering r = {.cli = cli,
                           .url = BUF_INIT(4096),
                           .s = {.dry_run = args_on(args, "dry-run"),
                                 .run_due = args_on(args, "run-due"),
                                 .max_resumes = (int)args_int(args, "max-resumes", MAX_RESUMES),
                                 .max_at_once = (int)args_int(args, "jobs", MAX_JOBS),
                                 .stopped = is_stopped,
                                 .found = job_found,
                                 .start = start_job,
                                 .look = look_at_job,
                                 .ended = job_ended,
                                 .stop = stop_job}};
    int64_t interval = args_int(args, "interval", INTERVAL_MS);
    enum tide_code code = check_options(args, err);

    r.s.arg = &r;
    code = code ? code
                : scheduler_automatic(args_text(args, "auto-resume"), args_text(args, "config"), r.s.run_due, AUTO_OFF,
                                      &r.s.automatic, err);
    code = code ? code : housekeeping_retention(args_text(args, "config"), &r.s.retention_ms, err);
    code = code ? code : cli_store_open(cli, r.s.dry_run ? NEED_READ : NEED_WRITE, 0, err);
    code = code ? code : cli_store_url(cli, &r.url, err);
    r.s.store = cli->store;
    if (!code)
        code = args_on(args, "watch") ? watch_store(&r, interval, err) : recover_once(&r, err);
    scheduler_done(&r.s);
    buf_done(&r.url);
    return code;
}

const struct command cmd_recover = {
    .name = "recover",
    .run = run,
    .opens_store = true,
    .options = options,
    .help = "record interrupted runs, missed deadlines and expired tokens; with --run-due, resume what is due",
    .more = "Runs whose process is gone are interrupted, waits past their deadline end, old tokens expire. Each is "
            "recorded\n"
            "once, even if several processes do this at the same time. Only sessions that run or wait are checked. "
            "With\n"
            "--run-due each session resumes in its own process, as with `tidemark resume ID`; its output goes to "
            "standard\n"
            "error. A session from elsewhere that nobody has trusted does not run; its line names `tidemark sessions "
            "trust\n"
            "ID`. A service needs your key of origin: see TRUST in tidemark-recover(1).",
};
