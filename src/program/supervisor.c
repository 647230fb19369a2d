/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of `tidemark exec`. It wakes for requests, output, signals and ends of processes, and every TICK_MS to look
 * whether somebody cancelled the run or took the lease.
 *
 * Ending is always the same: nothing new begins, the program's group gets a signal and PROC_GRACE_MS, in which steps can
 * still record how they ended; then everything below us is killed until nothing is left. Only then is the end recorded,
 * so that a session that says it is over has no process behind it. A run that waits is recorded first, because the wait
 * must be durable before anything ends for its sake.
 */
#include "program/supervisor.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/log.h"
#include "base/utf8.h"
#include "program/capture.h"
#include "program/find.h"
#include "program/tree.h"

#define BINARY_ENV "TIDEMARK" /* the path of the command that runs it */
#define TICK_MS 50
#define CANCEL_GRACE_MS 1200 /* who cancels waits for two seconds, then takes the lease */
#define TICK_ENDING_MS 5
#define GIVE_UP_MS 5000 /* after killing: a process that the kernel does not end is left to it */
#define FIELDS_MAX ((size_t)1 << 20)

enum { AT_SIGNALS, AT_CHILD, AT_OUT, AT_ERR, AT_SERVER };

/* ---- set-up ---- */

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, two;

    return stat(a, &one) == 0 && stat(b, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/*
 * Inside, `tidemark` is the one that runs it: under a timer $PATH may not have it, and another version may not understand us.
 * What $PATH finds already keeps its order.
 */
static char *path_for(struct supervisor *s)
{
    const char *dirs = s->job->search_path ? s->job->search_path : program_path(), *binary = s->job->binary;
    const char *slash = binary ? strrchr(binary, '/') : NULL;
    AUTO(buf_done) struct buf found = BUF_INIT(PROGRAM_PATH_MAX);
    struct tide_err ignored;
    bool other;

    if (!slash)
        return (char *)(uintptr_t)arena_printf(&s->arena, "PATH=%s", dirs);
    other = !program_find_in(dirs, "tidemark", s->job->cwd ? s->job->cwd : ".", &found, &ignored);
    if (other && is_same_file(buf_cstr(&found), binary))
        return (char *)(uintptr_t)arena_printf(&s->arena, "PATH=%s", dirs);
    return (char *)(uintptr_t)(other ? arena_printf(&s->arena, "PATH=%.*s:%s", (int)(slash - binary), binary, dirs)
                                     : arena_printf(&s->arena, "PATH=%s:%.*s", dirs, (int)(slash - binary), binary));
}

static enum tide_code hold_program(struct supervisor *s, const char *name, struct tide_err *err)
{
    char *run_id = arena_zero(&s->arena, 32 + PROC_MESSAGE_MAX);
    char *socket_env = (char *)(uintptr_t)arena_printf(&s->arena, RUN_SOCKET_ENV "=%s", name);
    char *session = (char *)(uintptr_t)arena_printf(&s->arena, "TIDEMARK_SESSION_ID=%s", s->job->session_id);
    char *no_step = (char *)(uintptr_t)STEP_ENV "="; /* of a step that we may be inside of */
    char *binary = (char *)(uintptr_t)arena_printf(&s->arena, BINARY_ENV "=%s", s->job->binary ? s->job->binary : "");
    char *sets[] = {socket_env, session, run_id, no_step, path_for(s), s->job->binary ? binary : NULL, NULL};
    struct proc_spec spec = {.guard = &s->guard,
                             .path = s->job->path,
                             .argv = s->job->argv,
                             .cwd = s->job->cwd,
                             .out = s->out.child_end,
                             .err = s->err.child_end};

    spec.slots[0] = run_id + snprintf(run_id, 32, "TIDEMARK_RUN_ID=");
    spec.envp = proc_env(&s->arena, environ, sets);
    return proc_hold(&spec, &s->child, err);
}

enum tide_code supervisor_open(struct supervisor *s, const struct supervised *job, struct tide_err *err)
{
    char name[RUN_SOCKET_NAME_SIZE];

    *s = (struct supervisor){.job = job, .guard = GUARD_INIT, .child = PROC_INIT, .listener = -1};
    s->out.from = s->out.child_end = s->err.from = s->err.child_end = -1;
    if (run_socket_open(&s->listener, name, err) || relay_open(&s->out, STDOUT_FILENO, err) ||
        relay_open(&s->err, STDERR_FILENO, err) || hold_program(s, name, err)) {
        supervisor_close(s);
        return err->code;
    }
    relay_close_child_end(&s->out);
    relay_close_child_end(&s->err);
    return TIDE_OK;
}

void supervisor_close(struct supervisor *s)
{
    proc_drop(&s->child);
    guard_end(&s->guard);
    relay_done(&s->out);
    relay_done(&s->err);
    if (s->listener >= 0)
        close(s->listener);
    s->listener = -1;
    arena_done(&s->arena);
}

/* ---- ending ---- */

static void stop_program(struct supervisor *s, enum stop why, int number)
{
    if (s->stop && !(why == STOP_LOST && s->stop != STOP_LOST))
        return;
    s->stop = why;
    s->server.closing = true;
    s->kill_at = monotonic_ms() + (why == STOP_LOST ? 0 : why == STOP_CANCEL ? CANCEL_GRACE_MS : PROC_GRACE_MS);
    proc_signal(&s->child, number);
    proc_signal(&s->child, SIGCONT); /* a stopped one would not receive it */
    if (why == STOP_LEFT || why == STOP_LOST)
        guard_signal(&s->guard, number);
}

static void read_signals(struct supervisor *s)
{
    for (int number; (number = capture_next_signal(s->job->signals));) {
        if (number == SIGUSR1 || number == SIGUSR2) { /* between the person and the program */
            proc_signal(&s->child, number);
            continue;
        }
        s->stop_signal = s->stop_signal ? s->stop_signal : number;
        if (s->stop == STOP_NONE)
            stop_program(s, STOP_SIGNAL, number);
        else
            proc_signal(&s->child, number);
    }
}

static void reap_children(struct supervisor *s)
{
    if (!s->exited && proc_reap(&s->child, &s->status)) {
        s->exited = true;
        s->exited_at = monotonic_ms();
    }
    if (s->exited)
        proc_terminal_back(&s->child);
}

/* True when nothing of the program is left, or nothing more can be done about it. */
static bool is_gone(struct supervisor *s)
{
    size_t left;

    if (!s->exited)
        return false;
    if (guard_is_empty(&s->guard))
        return true;
    left = guard_signal(&s->guard,
                        0); /* 0: dead and not reaped yet, or /proc does not show it, which must not hold us for ever */
    if (s->stop == STOP_NONE && (left > 0 || monotonic_ms() > s->exited_at + PROC_GRACE_MS)) {
        s->left_behind = left;
        log_write(TIDE_LOG_WARN, "the program left processes running: they are ended",
                  log_text("session", s->job->session_id));
        stop_program(s, STOP_LEFT, SIGTERM);
    }
    return s->kill_at && monotonic_ms() > s->kill_at + GIVE_UP_MS;
}

/* ---- the store ---- */

int supervisor_trouble(void *supervisor, const struct tide_err *why, int64_t waited_ms)
{
    struct supervisor *s = supervisor;

    (void)waited_ms;
    if (s->trouble != (why != NULL))
        s->job->trouble(s->job->arg, why);
    s->trouble = why != NULL;
    read_signals(s);
    return why && s->stop_signal;
}

static void look_at_tree(struct supervisor *s)
{
    struct tide_err err = {0};
    unsigned signs = 0;
    enum tide_code code;

    if (s->server.park.parked || s->server.lost)
        return;
    code = tide_run_look(s->server.run, &signs, &err);
    if (code == TIDE_FENCED) {
        s->server.lost = true;
        s->server.err = err;
    } else if (!code && (signs & TIDE_SIGN_CANCEL)) {
        stop_program(s, STOP_CANCEL, SIGTERM);
    }
}

/* ---- the loop ---- */

static void follow_server(struct supervisor *s)
{
    if (s->server.lost)
        stop_program(s, STOP_LOST, SIGKILL);
    else if (s->server.park.parked)
        stop_program(s, STOP_PARKED, SIGTERM);
}

static void tick_timers(struct supervisor *s, int64_t *next_look)
{
    int64_t now = monotonic_ms();
    bool resized;

    if (now >= *next_look) {
        *next_look = now + TICK_MS;
        look_at_tree(s);
        resized = relay_resize(&s->out);
        resized = relay_resize(&s->err) || resized;
        if (resized)
            proc_signal(&s->child, SIGWINCH);
    }
    if (s->kill_at && monotonic_ms() >= s->kill_at) {
        proc_signal(&s->child, SIGKILL);
        guard_signal(&s->guard, SIGKILL);
    }
}

static void turn_once(struct supervisor *s)
{
    struct pollfd p[AT_SERVER + SERVER_CONNS_MAX + 1] = {
        [AT_SIGNALS] = {.fd = s->job->signals, .events = POLLIN},
        [AT_CHILD] = {.fd = proc_wait_fd(&s->child), .events = POLLIN},
        [AT_OUT] = relay_wants(&s->out),
        [AT_ERR] = relay_wants(&s->err),
    };
    size_t n = run_server_wants(&s->server, p + AT_SERVER);

    if (poll(p, AT_SERVER + n, s->stop || s->exited ? TICK_ENDING_MS : TICK_MS) < 0)
        return;
    relay_move(&s->out, p[AT_OUT].revents);
    relay_move(&s->err, p[AT_ERR].revents);
    run_server_move(&s->server, p + AT_SERVER, n);
    follow_server(s);
    if (p[AT_SIGNALS].revents)
        read_signals(s);
    if (p[AT_CHILD].revents) {
        reap_children(s);
        proc_follow_stop(&s->child);
    }
}

static void loop_until_end(struct supervisor *s)
{
    int64_t next_look = monotonic_ms() + TICK_MS;

    while (!is_gone(s)) {
        turn_once(s);
        tick_timers(s, &next_look);
        follow_server(s);
        if (s->stop || s->exited)
            reap_children(s);
    }
    if (s->guard.lost) /* somebody killed it, and the program with it */
        tree_end_run(tide_run_id(s->server.run));
    relay_drain(&s->out);
    relay_drain(&s->err);
    run_server_close(&s->server); /* steps whose process was killed are recorded here */
    INVARIANT(s->exited);         /* a session that says it is over has no process behind it */
    s->listener = -1;
}

/* ---- the record ---- */

static void put_tail(struct json_out *o, const char *name, const char *bytes_name, const struct relay *r)
{
    AUTO(buf_done) struct buf text = BUF_INIT(RELAY_TAIL);
    struct str s;

    relay_tail(r, &text);
    s = buf_view(&text);
    for (int i = 0; i < 3 && r->bytes > RELAY_TAIL && s.len > 0 && utf8_is_tail(s.ptr[0]); i++)
        s = (struct str){s.ptr + 1, s.len - 1}; /* the rest of a character that was cut */
    json_out_kstr(o, str_from(name), s);
    json_out_kint(o, str_from(bytes_name), (int64_t)r->bytes);
}

/* Ctrl-C goes to the program, which had the terminal: it died of it, or says that it ended because of it. */
static bool was_typed(const struct supervisor *s)
{
    int status = capture_exit_status(s->status);

    return status == 128 + SIGINT && (WIFSIGNALED(s->status) || s->had_terminal);
}

static void put_fields(const struct supervisor *s, struct buf *ret_fields)
{
    struct json_out o = json_out_to(ret_fields);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("exit_status"), capture_exit_status(s->status));
    if (s->stop_signal == SIGINT || was_typed(s))
        json_out_kstr(&o, STR("by"), STR("person")); /* typed: it is not resumed by itself */
    json_out_key(&o, STR("output"));
    json_out_begin(&o, '{');
    put_tail(&o, "stdout", "stdout_bytes", &s->out);
    put_tail(&o, "stderr", "stderr_bytes", &s->err);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
}

static void judge_exit(const struct supervisor *s, struct tide_run_result *r, struct ending *e)
{
    bool killed = WIFSIGNALED(s->status);

    e->exit_status = capture_exit_status(s->status);
    if (was_typed(s)) {
        r->outcome = TIDE_OUTCOME_INTERRUPTED;
        r->reason = "shutdown";
        snprintf(e->message, sizeof(e->message), "stopped by SIGINT");
    } else if (e->exit_status == 0) {
        r->outcome = TIDE_OUTCOME_COMPLETED;
        e->clean = true;
    } else {
        r->outcome = TIDE_OUTCOME_FAILED;
        r->error_code = killed ? "signal" : "exit";
        if (killed)
            snprintf(e->message, sizeof(e->message), "%.200s was killed by signal %d (%s)", s->job->argv[0],
                     WTERMSIG(s->status), strsignal(WTERMSIG(s->status)));
        else
            snprintf(e->message, sizeof(e->message), "%.200s ended with exit status %d%s%s%s", s->job->argv[0],
                     e->exit_status, s->server.failed_step[0] ? " at step '" : "", s->server.failed_step,
                     s->server.failed_step[0] ? "'" : "");
        r->error_message = e->message;
    }
}

static void judge_end(const struct supervisor *s, struct tide_run_result *r, struct ending *e)
{
    INVARIANT(s->stop != STOP_PARKED && s->stop != STOP_LOST); /* those have no end to be recorded */
    e->stop = s->stop;
    if (s->stop == STOP_CANCEL) {
        r->outcome = TIDE_OUTCOME_CANCELLED;
        r->reason = "requested";
        e->exit_status = 1;
        snprintf(e->message, sizeof(e->message), "cancelled");
    } else if (s->stop == STOP_SIGNAL) {
        r->outcome = TIDE_OUTCOME_INTERRUPTED;
        r->reason = "shutdown";
        e->exit_status = 128 + s->stop_signal;
        snprintf(e->message, sizeof(e->message), "stopped by signal %d (%s)", s->stop_signal,
                 strsignal(s->stop_signal));
    } else {
        judge_exit(s, r, e);
    }
}

/* The gate was opened and there was nothing behind it: what the session does next needs no token. */
static enum tide_code start_failed(tide_run *run, const struct supervised *job, struct ending *ret,
                                   struct tide_err *err)
{
    struct tide_run_result result = {.size = sizeof result,
                                     .outcome = TIDE_OUTCOME_INTERRUPTED,
                                     .reason = "process_exit",
                                     .error_code = "start_failed"};
    struct tide_err why = *err;

    snprintf(ret->message, sizeof(ret->message), "%.200s: %.200s", job->argv[0], why.msg);
    result.error_message = ret->message;
    ret->start_failed = true;
    ret->exit_status = why.code == TIDE_NOT_FOUND ? 127 : 126;
    return tide_run_end(run, &result, err);
}

enum tide_code supervisor_run(struct supervisor *s, tide_run *run, struct ending *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(FIELDS_MAX);
    const char *const messages[PROC_SLOTS] = {tide_run_id(run)};
    struct tide_run_result result = {.size = sizeof result};
    enum tide_code code = TIDE_OK;

    *ret = (struct ending){0};
    run_server_init(&s->server, run, s->listener);
    proc_terminal_give(&s->child);
    s->had_terminal = s->child.terminal >= 0;
    if (proc_go(&s->child, messages, err))
        return start_failed(run, s->job, ret, err);
    loop_until_end(s);
    ret->stop = s->stop;
    if (s->server.lost) {
        tide_err_copy(err, &s->server.err);
        code = err->code;
    } else if (!s->server.park.parked) {
        judge_end(s, &result, ret);
        put_fields(s, &fields);
        result.fields = buf_cstr(&fields);
        code = tide_run_end(run, &result, err);
    }
    /* Last, because a reader may take its time, and the record must not wait for it. */
    relay_flush(&s->out, s->job->signals);
    relay_flush(&s->err, s->job->signals);
    return code;
}
