/* SPDX-License-Identifier: Apache-2.0 */
/* What a resumed program prints goes to standard error: standard output is this command's own report. */
#include "cli/recover_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal/progress.h"
#include "engine/store_url.h"
#include "program/proc.h"

#define LOOK_MS 20        /* between two looks at what runs, while there is nothing else to do */
#define PAUSE_MS 30000    /* before one that failed is tried again; doubled each time, */
#define PAUSE_DOUBLINGS 6 /* so often at most */
#define TOKEN_SINK 3
#define EXIT_NOT_STARTED 127

struct job_failures {
    int n;
    int64_t not_before_ms; /* by proc_clock_ms(): the other may be set back */
};

enum tide_code jobs_init(struct jobs *j, struct cli *cli, int max_at_once, int max_failures, struct tide_err *err)
{
    *j = (struct jobs){.cli = cli, .url = BUF_INIT(4096), .max_at_once = max_at_once, .max_failures = max_failures};
    return cli_store_url(cli, &j->url, err);
}

void jobs_done(struct jobs *j)
{
    buf_done(&j->url);
    free(j->list);
    map_done(&j->failed, free);
    *j = (struct jobs){.list = NULL};
}

/* ---- saying -------------------------------------------------------------------------------------------------------- */

static void say_job(struct jobs *j, const char *action, const struct job *job, const char *how, int exit_status)
{
    struct out *out = &j->cli->out;
    struct json_out o = out_json(out);
    struct tide_err err;

    if (out->json) {
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("action"), str_from(action));
        json_out_kstr(&o, STR("session_id"), str_from(job->id));
        json_out_kint(&o, STR("pid"), job->pid);
        if (exit_status >= 0)
            json_out_kint(&o, STR("exit_status"), exit_status);
        json_kopt(&o, "how", how);
        json_out_end(&o, '}');
        out_json_end(out);
    } else {
        outf(out, "%-13s %s: %s", action, job->id, how);
        if (exit_status < 0)
            outf(out, " (pid %d)", (int)job->pid);
        outf(out, "\n");
    }
    if (out_flush(out, &err))
        j->cli->exit_status = 1; /* nobody reads: what was begun is still brought to its end */
}

/* ---- starting ------------------------------------------------------------------------------------------------------ */

/* A signal that comes before the exec is not for our handlers: what they note there is gone with it. */
static void set_signals(const sigset_t *mask)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct sigaction now;

        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Only async-signal-safe calls between fork and exec. */
static void become(const char *const *argv, const sigset_t *mask)
{
    int null = open("/dev/null", O_RDWR);

    set_signals(mask);
    if (dup2(null, TOKEN_SINK) !=
        TOKEN_SINK) /* what it prints may be logged: the token of its next wait is minted anew */
        _exit(EXIT_NOT_STARTED);
    setpgid(0, 0); /* a signal from the terminal reaches it through us, once */
    if (null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO && dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO)
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(EXIT_NOT_STARTED);
}

static bool start(struct jobs *j, struct job *job)
{
    const char *key_file = args_text(&j->cli->args, "key-file");
    const char *argv[12] = {"tidemark",   "--store", buf_cstr(&j->url), "resume", job->id,
                            "--token-fd", "3",       "--unattended",    NULL};
    sigset_t all, before;
    pid_t pid;

    if (key_file) {
        argv[8] = "--key-file";
        argv[9] = key_file;
    }
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid == 0)
        become(argv, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return false; /* no room for a process now: it stays in line */
    setpgid(pid, pid);
    job->pid = pid;
    j->running++;
    j->started++;
    say_job(j, "resumed", job, "goes on", -1);
    return true;
}

/* ---- ending -------------------------------------------------------------------------------------------------------- */

/* True when it was the last time. */
static bool note_failure(struct jobs *j, const char *id)
{
    struct job_failures *f = map_get(&j->failed, str_from(id));
    int doublings;

    if (!f) {
        f = mem_zero(sizeof(*f));
        map_put(&j->failed, str_from(id), f);
    }
    doublings = f->n < PAUSE_DOUBLINGS ? f->n : PAUSE_DOUBLINGS;
    f->n++;
    f->not_before_ms = proc_clock_ms() + ((int64_t)PAUSE_MS << doublings);
    return f->n >= j->max_failures;
}

static void ended(struct jobs *j, const struct job *job, int status)
{
    bool exited = WIFEXITED(status);
    int code = exited ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool parked = exited && code == tide_code_exit(TIDE_WAITING), well = parked || (exited && code == 0);
    bool last = !well && note_failure(j, job->id);
    char how[96];

    if (well)
        snprintf(how, sizeof(how), "%s", parked ? "waits again" : "finished");
    else
        snprintf(how, sizeof(how), "%s %d%s", exited ? "failed with exit status" : "was ended by signal",
                 exited ? code : WTERMSIG(status), last ? ", and is not tried again here" : "");
    say_job(j, "ended", job, how, code);
    if (well)
        free(map_remove(&j->failed, str_from(job->id)));
    j->ended_well += well;
    j->ended_badly += !well;
}

static void drop(struct jobs *j, size_t i)
{
    memmove(&j->list[i], &j->list[i + 1], (j->n - i - 1) * sizeof(*j->list));
    j->n--;
}

static void reap(struct jobs *j)
{
    for (size_t i = 0; i < j->n;) {
        int status = 0;
        pid_t got = j->list[i].pid > 0 ? waitpid(j->list[i].pid, &status, WNOHANG) : 0;

        if (got == 0 || (got < 0 && errno == EINTR)) {
            i++;
            continue;
        }
        j->running--;
        ended(j, &j->list[i], status);
        drop(j, i);
    }
}

/* ---- the line ------------------------------------------------------------------------------------------------------ */

static bool is_in_line(const struct jobs *j, const char *id)
{
    for (size_t i = 0; i < j->n; i++)
        if (strcmp(j->list[i].id, id) == 0)
            return true;
    return false;
}

void jobs_add(struct jobs *j, const char *id)
{
    const struct job_failures *f = map_get(&j->failed, str_from(id));

    if (f && (f->n >= j->max_failures || f->not_before_ms > proc_clock_ms()))
        return;
    if (is_in_line(j, id))
        return;
    if (j->n == j->cap) {
        j->cap = j->cap ? j->cap * 2 : 16;
        j->list = mem_grow(j->list, j->cap * sizeof(*j->list));
    }
    j->list[j->n] = (struct job){.pid = 0};
    snprintf(j->list[j->n++].id, TIDE_ID_SIZE, "%s", id);
}

void jobs_keep_failed(struct jobs *j, char (*ids)[TIDE_ID_SIZE], size_t n)
{
    for (struct map_entry *e = map_next(&j->failed, NULL); e; e = map_next(&j->failed, e)) {
        bool kept = is_in_line(j, e->key);

        for (size_t i = 0; i < n && !kept; i++)
            kept = strcmp(ids[i], e->key) == 0;
        if (!kept)
            free(map_remove(&j->failed, map_key(e)));
    }
}

void jobs_step(struct jobs *j)
{
    reap(j);
    for (size_t i = 0; i < j->n && j->running < (size_t)j->max_at_once && !stop_signal; i++)
        if (j->list[i].pid == 0 && !start(j, &j->list[i]))
            break;
}

static void stop_all(struct jobs *j)
{
    for (size_t i = 0; i < j->n;) {
        if (j->list[i].pid == 0) {
            drop(j, i);
            continue;
        }
        kill(j->list[i++].pid, SIGTERM);
    }
}

void jobs_finish(struct jobs *j)
{
    bool told = false;

    while (j->n > 0) {
        jobs_step(j);
        if (stop_signal && !told) {
            stop_all(j);
            told = true;
        }
        if (j->n > 0)
            poll(NULL, 0, LOOK_MS);
    }
}
