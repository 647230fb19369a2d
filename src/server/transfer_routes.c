/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in and out, and the store looked after: what recovery records, what the doctor finds. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/shapes.h"
#include "server/server.h"
#include "server/transfer.h"

extern char **environ;

/* ---- recovery ---- */

struct recovering {
    struct call *c;
    unsigned flags;
    struct json_out *json;
    struct recovery_report report;
    enum tide_code code;
    struct tide_err *err;
};

static int put_found(void *arg, const struct tide_recovered *what)
{
    const struct recovering *r = arg;

    shape_put(r->json, &shape_recovery,
              &(struct recovery_line){
                  .type = RECOVERY_FOUND, .found = *what, .dry_run = (r->flags & TIDE_RECOVER_DRY_RUN) != 0});
    return 0;
}

static void recover_into(struct json_out *o, void *arg)
{
    struct recovering *r = arg;

    r->json = o;
    r->code = tide_store_recover(r->c->server->store, r->flags, put_found, r, &r->report.summary.recovery, r->err);
}

static enum tide_code recover(struct call *c, unsigned flags, struct tide_err *err)
{
    struct recovering r = {.c = c, .flags = flags, .err = err};
    struct buf body = BUF_INIT(ANSWER_MAX);
    struct json_out o = json_out_to(&body);

    r.report.found = (struct shape_stream){recover_into, &r};
    r.report.summary = (struct recovery_line){.type = RECOVERY_SUMMARY, .dry_run = (flags & TIDE_RECOVER_DRY_RUN) != 0};
    shape_put(&o, &shape_recovery_report, &r.report);
    if (r.code && r.code != TIDE_CORRUPT) { /* one damaged is in nobody's way */
        buf_done(&body);
        return r.code;
    }
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

static enum tide_code show_recovery(struct call *c, struct tide_err *err)
{
    return recover(c, TIDE_RECOVER_DRY_RUN | TIDE_RECOVER_ALL, err);
}

static enum tide_code sweep(struct call *c, struct tide_err *err)
{
    return recover(c, 0, err);
}

/* ---- the doctor: the command itself, so that both find the same ---- */

static pthread_mutex_t one_doctor = PTHREAD_MUTEX_INITIALIZER;

static pid_t start_doctor(const struct runner_options *opt, int out)
{
    const char *argv[12] = {"tidemark", "doctor", "--json", "--store", opt->url};
    posix_spawn_file_actions_t files;
    size_t n = 5;
    pid_t pid;
    int failed;

    if (opt->config) {
        argv[n++] = "--config";
        argv[n++] = opt->config;
    }
    if (opt->key_file) {
        argv[n++] = "--key-file";
        argv[n++] = opt->key_file;
    }
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    failed = posix_spawn(&pid, "/proc/self/exe", &files, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return failed ? -1 : pid;
}

static enum tide_code run_doctor(struct call *c, struct buf *ret, struct tide_err *err)
{
    int ends[2], failed = 0, status = 0;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return tide_fail_errno(err, errno, "start the doctor");
    pid = start_doctor(&c->server->opt.runs, ends[1]);
    close(ends[1]);
    failed = pid < 0 ? EAGAIN : buf_read_fd(ret, ends[0]);
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (failed)
        return tide_fail_errno(err, failed, "start the doctor");
    return !ret->len || ret->failed ? tide_fail(err, TIDE_FAILED, "the doctor came to no result") : TIDE_OK;
}

static enum tide_code examine(struct call *c, struct tide_err *err)
{
    struct buf body = BUF_INIT(ANSWER_MAX);
    enum tide_code code;

    if (pthread_mutex_trylock(&one_doctor))
        return tide_fail(err, TIDE_BUSY, "the doctor is at work already: try again in a moment");
    code = run_doctor(c, &body, err);
    pthread_mutex_unlock(&one_doctor);
    if (code)
        buf_done(&body);
    else
        call_reply_text(c, 200, "application/json", &body);
    return code;
}

const struct route transfer_routes[] = {
    {HTTP_GET, "/sessions/{id}/export", "session.export", SCOPE_READ, transfer_export,
     "all of a session, a line for each event, as `tidemark sessions import` takes it", .flags = ROUTE_STREAMS,
     .type = "application/x-ndjson"},
    {HTTP_POST, "/import", "session.import", SCOPE_ADMIN, transfer_import,
     "make a session of an export, all or nothing; nothing of it runs before it is trusted", .answer = &shape_created,
     .status = 201, .flags = ROUTE_BYTES_IN},
    {HTTP_GET, "/recovery", "store.recovery", SCOPE_READ, show_recovery,
     "what recovery would record now, and what could be resumed", .answer = &shape_recovery_report},
    {HTTP_POST, "/recovery", "store.recover", SCOPE_WRITE, sweep,
     "record what happened to sessions while nobody was there", .answer = &shape_recovery_report},
    {HTTP_GET, "/doctor", "store.doctor", SCOPE_ADMIN, examine, "check that everything works", .answer = &shape_doctor},
    {.method = 0},
};
