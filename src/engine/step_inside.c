/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step: a program whose result is recorded, inside a run.
 *
 *   hold at the gate, ask ─ stored ─ print what is recorded
 *                       ├── later ── wait, ask again
 *                       ├── probe ── find out whether it happened ─ stored, or begin (on disk) and run
 *                       └── begun (on disk) ─ run, end (on disk) ─ print, or later
 *
 * It runs often, so it does nothing that it does not need: no store, no digest, and one message to ask and to begin; for
 * that the program waits at its gate before anyone knows whether it is to run. Output is printed only when the result is
 * on disk, so that nobody acts on what a crash could take back; on a terminal it is shown as it comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "engine/run_inside.h"
#include "program/capture.h"
#include "program/find.h"
#include "program/run_socket.h"
#include "program/run_client.h"

#define ONCE_MAX (STEP_OUTPUT_MAX - ((int64_t)256 << 10)) /* surely fits into one record, as text and as base64 */
#define ARGS_MAX ((size_t)4 << 20)
#define EXIT_TIMEOUT 124
#define PAUSE_MAX_MS 70000 /* between attempts */

struct step {
    struct inside_step *want;
    bool once;
    size_t max_output;
    struct run_client link;
    int signals;
    char key[40], attempt[24];
    struct proc held; /* at its gate */
    int out;          /* its output */
    struct tide_err not_held;
};

__attribute__((format(printf, 2, 3))) static void tell(const struct step *s, const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    s->want->tell(s->want->arg, line);
}

/* What the run said is to be done, or was. */
struct verdict {
    enum { DO_RUN, DO_STORED, DO_PROBE, DO_LATER } what;
    bool begun, failed;
    bool redacted; /* the output is not what the program printed: it held a secret */
    int exit_status;
    int64_t retry_at_ms;
    int64_t run;       /* stored: by this run of the session; 0: not known */
    struct str output; /* until the next request */
};

/* ---- asking ---- */

static enum tide_code ask_again(struct step *s, struct str blob, struct verdict *ret, struct tide_err *err)
{
    static const char *const words[] = {"run", "stored", "probe", "later"};
    struct reply reply;
    struct str state, key;

    if (run_client_call(&s->link, blob, &reply, err))
        return err->code;
    state = json_get_text(&s->link.arena, reply.json, STR("state"));
    key = json_get_text(&s->link.arena, reply.json, STR("key"));
    *ret = (struct verdict){.begun = json_get_bool(reply.json, STR("begun"), false),
                            .failed = json_get_bool(reply.json, STR("failed"), false),
                            .redacted = json_get_bool(reply.json, STR("redacted"), false),
                            .exit_status = (int)json_get_int(reply.json, STR("exit"), 0),
                            .retry_at_ms = json_get_int(reply.json, STR("retry_at_ms"), 0),
                            .run = json_get_int(reply.json, STR("run"), 0),
                            .output = reply.blob};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_eq(state, str_from(words[i])))
            ret->what = i;
    snprintf(s->key, sizeof(s->key), "%.*s", STR_ARG(key));
    snprintf(s->attempt, sizeof(s->attempt), "%d", (int)json_get_int(reply.json, STR("attempt"), 0));
    return TIDE_OK;
}

static void put_pid(struct step *s)
{
    json_out_kint(&s->link.o, STR("pid"), s->held.pid);
    json_out_kint(&s->link.o, STR("pid_start"), (int64_t)s->held.start);
}

/* ---- the gate ---- */

static char *variable(struct arena *a, const char *name, char **ret_slot)
{
    size_t len = strlen(name);
    char *text = arena_zero(a, len + PROC_MESSAGE_MAX);

    memcpy(text, name, len);
    *ret_slot = text + len;
    return text;
}

/* A program at its gate with its output in a pipe to us. Its key and attempt come through the gate. */
static enum tide_code hold_program(struct step *s, const char *path, char **argv, struct proc *p, int *ret_out,
                                   struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    int pair[2];
    struct proc_spec spec = {.path = path, .argv = argv, .err = -1};
    char *sets[] = {variable(&a, "TIDEMARK_IDEMPOTENCY_KEY=", &spec.slots[0]),
                    variable(&a, "TIDEMARK_ATTEMPT=", &spec.slots[1]),
                    (char *)(uintptr_t)arena_printf(&a, STEP_ENV "=%s", s->want->name), NULL};
    enum tide_code code;

    if (pipe2(pair, O_CLOEXEC) != 0)
        return tide_fail_errno(err, errno, "open a pipe");
    spec.envp = proc_env(&a, environ, sets);
    spec.out = pair[1];
    code = proc_hold(&spec, p, err);
    close(pair[1]);
    if (code)
        close(pair[0]);
    else
        *ret_out = pair[0];
    return code;
}

static enum tide_code open_gate(const struct step *s, struct proc *p, struct tide_err *err)
{
    const char *const messages[PROC_SLOTS] = {s->key, s->attempt};

    return proc_open(p, messages, err);
}

/* Why not, if not, matters only when it is to run: what is recorded needs no program. */
static void make_ready(struct step *s)
{
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);

    if (s->held.pid > 0)
        return;
    s->not_held.code = TIDE_OK;
    if (program_find(s->want->argv[0], cwd ? cwd : ".", &path, &s->not_held))
        return;
    if (hold_program(s, buf_cstr(&path), s->want->argv, &s->held, &s->out, &s->not_held))
        s->not_held.code = TIDE_FAILED; /* it is there, and no process can be made for it */
}

static void let_go(struct step *s)
{
    proc_drop(&s->held);
    if (s->out >= 0)
        close(s->out);
    s->out = -1;
}

static enum tide_code ask_run(struct step *s, struct verdict *ret, struct tide_err *err)
{
    AUTO(buf_done) struct buf args = BUF_INIT(ARGS_MAX);

    for (char *const *arg = s->want->argv; *arg; arg++) /* NULs between them: what the result depends on */
        buf_add(&args, *arg, strlen(*arg) + 1);
    if (args.failed)
        return tide_fail(err, TIDE_TOO_BIG, "the arguments of the program are longer than 4 MiB");
    run_client_begin(&s->link, "step");
    json_out_kstr(&s->link.o, STR("name"), str_from(s->want->name));
    json_out_kstr(&s->link.o, STR("effect"), str_from(s->want->effect));
    json_out_kint(&s->link.o, STR("retries"), s->want->retries);
    json_out_kbool(&s->link.o, STR("has_probe"), s->want->probe != NULL);
    json_out_kbool(&s->link.o, STR("nested"), run_client_is_nested());
    if (run_client_is_nested())
        json_out_kstr_opt(&s->link.o, STR("within"), str_from(getenv("TIDEMARK_IDEMPOTENCY_KEY")));
    make_ready(s);
    put_pid(s);
    return ask_again(s, buf_view(&args), ret, err);
}

/* ---- doing ---- */

static enum tide_code begin_step(struct step *s, struct tide_err *err)
{
    struct reply reply;

    run_client_begin(&s->link, "begin");
    json_out_kstr(&s->link.o, STR("name"), str_from(s->want->name));
    put_pid(s);
    return run_client_call(&s->link, STR(""), &reply, err);
}

/* How it ended, for the record. */
struct outcome {
    const char *word, *error_code;
    char message[256];
    bool no_retry;
    bool cut; /* ran to its end, but not all of its output is kept */
    int exit_status;
};

static void judge_status(const struct step *s, const struct capture *c, struct outcome *o)
{
    o->exit_status = capture_exit_status(c->status);
    if (o->exit_status == 0)
        return;
    o->word = s->once && WIFSIGNALED(c->status) ? "unknown" : "failed"; /* how far it had come, nobody knows */
    o->error_code = WIFSIGNALED(c->status) ? "signal" : "exit";
    if (WIFSIGNALED(c->status))
        snprintf(o->message, sizeof(o->message), "step '%s' was killed by signal %d (%s)", s->want->name,
                 WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else
        snprintf(o->message, sizeof(o->message), "step '%s' ended with exit status %d", s->want->name, o->exit_status);
}

static void judge_outcome(const struct step *s, const struct capture *c, struct outcome *o)
{
    char size[32];

    *o = (struct outcome){.word = "completed"};
    if (c->timed_out) {
        *o = (struct outcome){
            .word = s->once ? "unknown" : "failed", .error_code = "timeout", .exit_status = EXIT_TIMEOUT};
        snprintf(o->message, sizeof(o->message), "step '%s' took longer than %.60s and was ended", s->want->name,
                 s->want->timeout);
    } else if (c->bytes > c->max_output && !s->once) {
        *o = (struct outcome){.word = "failed", .error_code = "output_too_big", .no_retry = true, .exit_status = 1};
        snprintf(o->message, sizeof(o->message),
                 "step '%s' printed more than %s: redirect it into a file, or allow more (max_output)", s->want->name,
                 bytes_text(size, (int64_t)c->max_output));
    } else {
        judge_status(s, c, o);
        o->cut = c->bytes > c->max_output && WIFEXITED(c->status);
    }
}

/*
 * What is recorded of its output. Of a step that may be done again all or nothing; one that must happen once has happened,
 * and the beginning of what it said is better than nothing. A character is not cut in two.
 */
static struct str kept(const struct step *s, const struct capture *c)
{
    struct str all = buf_view(&c->output);
    size_t at = 0;

    if (c->bytes <= c->max_output)
        return all;
    if (!s->once)
        return STR("");
    if (!str_is_utf8(all, &at) && all.len - at < 4)
        all.len = at;
    return all;
}

static enum tide_code end_step(struct step *s, const struct capture *c, const struct outcome *o, struct verdict *ret,
                               struct tide_err *err)
{
    run_client_begin(&s->link, "end");
    json_out_kstr(&s->link.o, STR("name"), str_from(s->want->name));
    json_out_kstr(&s->link.o, STR("outcome"), str_from(o->word));
    json_out_kint(&s->link.o, STR("exit"), o->exit_status);
    if (o->error_code) {
        json_out_kstr(&s->link.o, STR("error_code"), str_from(o->error_code));
        json_out_kstr(&s->link.o, STR("error_message"), str_from(o->message));
    }
    json_out_kbool(&s->link.o, STR("no_retry"), o->no_retry || c->stop_signal);
    return ask_again(s, kept(s, c), ret, err);
}

static void print_output(const struct step *s, struct str output)
{
    if (output.len)
        s->want->print(s->want->arg, output);
}

static void say_end(struct step *s, const struct capture *c, const struct outcome *o, const struct verdict *v)
{
    char size[32];

    if (o->cut)
        tell(s, "step '%s' ran to its end, but printed more than %s: only that much is kept", s->want->name,
             bytes_text(size, (int64_t)c->max_output));
    if (c->left_behind)
        tell(s, "step '%s' left %zu process%s running: ended %s", s->want->name, c->left_behind,
             c->left_behind == 1 ? "" : "es", c->left_behind == 1 ? "it" : "them");
    if (v->redacted)
        tell(s, "step '%s' printed a secret, which is not stored: it is replaced by a mark", s->want->name);
    if (o->message[0] && (v->what == DO_LATER || !o->error_code || strcmp(o->error_code, "exit") != 0))
        tell(s, "%s%s", o->message, v->what == DO_LATER ? ": it is tried again" : "");
}

/* Recorded as begun, so how it ended is recorded as well. */
static enum tide_code end_unstarted(struct step *s, const struct capture *c, struct verdict *ret, struct tide_err *err)
{
    struct outcome o = {.word = "failed", .error_code = "start_failed", .no_retry = true, .exit_status = 126};
    enum tide_code code;

    snprintf(o.message, sizeof(o.message), "step '%s': %.60s: %.100s", s->want->name, s->want->argv[0], err->msg);
    tell(s, "%s", o.message);
    code = end_step(s, c, &o, ret, err);
    ret->exit_status = 126;
    return code;
}

static enum tide_code run_to_end(struct step *s, struct capture *c, struct verdict *ret, struct tide_err *err)
{
    bool had_terminal;
    struct outcome o;

    proc_terminal_give(c->proc);
    had_terminal = c->proc->terminal >= 0;
    if (open_gate(s, c->proc, err))
        return end_unstarted(s, c, ret, err);
    c->link = s->link.fd;
    c->signals = s->signals;
    c->timeout_ms = s->want->timeout_ms;
    c->echo = s->want->echo;
    capture_run(c);
    if (c->broken)
        return tide_fail(err, TIDE_FAILED, "step '%s': the run has ended: killed its program", s->want->name);
    if (proc_started(c->proc, err))
        return end_unstarted(s, c, ret, err);
    judge_outcome(s, c, &o);
    if (end_step(s, c, &o, ret, err))
        return err->code;
    say_end(s, c, &o, ret);
    if (ret->failed && strcmp(o.word, "completed") == 0) {
        tell(s, "step '%s' printed more than one record of the store may hold: redirect it into a file", s->want->name);
        ret->exit_status = 1;
        return TIDE_OK;
    }
    ret->exit_status = o.exit_status;
    if (ret->what == DO_STORED && c->echo < 0)
        print_output(s, ret->redacted ? ret->output : kept(s, c));
    if (had_terminal && WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGINT)
        s->want->interrupted = true;
    if (c->stop_signal) {
        ret->what = DO_STORED;
        ret->exit_status = 128 + c->stop_signal;
    }
    return TIDE_OK;
}

/* A program that is not there is no attempt: nothing is recorded. */
static enum tide_code try_once(struct step *s, struct verdict *ret, struct tide_err *err)
{
    struct capture c;
    enum tide_code code;

    if (s->not_held.code == TIDE_FAILED)
        return tide_err_copy(err, &s->not_held);
    if (s->not_held.code) {
        tell(s, "step '%s': %s", s->want->name, s->not_held.msg);
        *ret = (struct verdict){.what = DO_STORED, .exit_status = program_find_exit(s->not_held.code)};
        return TIDE_OK;
    }
    code = ret->begun ? TIDE_OK : begin_step(s, err);
    if (!code) {
        capture_init(&c, &s->held, s->out, s->max_output);
        s->out = -1;
        code = run_to_end(s, &c, ret, err);
        capture_done(&c);
    }
    let_go(s);
    return code;
}

/* ---- finding out ---- */

static enum tide_code settle_step(struct step *s, int happened, struct str output, struct verdict *ret,
                                  struct tide_err *err)
{
    run_client_begin(&s->link, "settle");
    json_out_kstr(&s->link.o, STR("name"), str_from(s->want->name));
    json_out_kint(&s->link.o, STR("happened"), happened);
    if (ask_again(s, output, ret, err))
        return err->code;
    if (ret->what == DO_STORED && happened == 1 && ret->output.len == 0)
        ret->output = output;
    return TIDE_OK;
}

static enum tide_code run_probe(struct step *s, struct verdict *ret, struct tide_err *err)
{
    char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)s->want->probe, NULL};
    struct proc p = PROC_INIT;
    struct capture c;
    int out = -1, status, happened;
    enum tide_code code = hold_program(s, "/bin/sh", argv, &p, &out, err);

    if (code)
        return code;
    capture_init(&c, &p, out, s->max_output);
    c.link = s->link.fd;
    c.signals = s->signals;
    c.timeout_ms = s->want->timeout_ms;
    code = open_gate(s, &p, err);
    if (!code) {
        capture_run(&c);
        status = capture_exit_status(c.status);
        happened = c.stop_signal || c.timed_out ? -1 : status == 0 ? 1 : status == 1 ? 0 : -1;
        code = c.broken ? tide_fail(err, TIDE_FAILED, "step '%s': the run has ended", s->want->name)
                        : settle_step(s, happened, buf_view(&c.output), ret, err);
        if (!code && ret->what == DO_STORED) {
            print_output(s, ret->output);
            ret->output = STR("");
        }
    }
    proc_drop(&p);
    capture_done(&c);
    return code;
}

/* ---- the whole ---- */

/* Until that time of the wall clock; false when we are to stop or the run is gone. */
static bool sleep_until(struct step *s, int64_t at_ms)
{
    for (int64_t left; (left = at_ms - wall_ms()) > 0 && left <= PAUSE_MAX_MS;) { /* longer: the clock went back */
        struct pollfd p[] = {{.fd = s->signals, .events = POLLIN}, {.fd = s->link.fd, .events = POLLRDHUP}};

        if (poll(p, 2, left > 1000 ? 1000 : (int)left) > 0 && (p[1].revents || capture_next_signal(s->signals)))
            return false;
    }
    return true;
}

static enum tide_code follow_step(struct step *s, struct tide_err *err)
{
    struct verdict v;
    enum tide_code code =
        ask_run(s, &v, err); /* held behind a wait it is ended by a signal, as the caller that only asks */

    s->signals = s->want->signals(s->want->arg);
    if (!code && v.what == DO_STORED) {
        if (v.run && !v.failed)
            s->want->kept(s->want->arg, v.run);
        print_output(s, v.output);
        s->want->failed_before = v.failed && s->once;
    }
    while (!code && v.what != DO_STORED) {
        if (v.what == DO_RUN)
            code = try_once(s, &v, err);
        else if (v.what == DO_PROBE)
            code = run_probe(s, &v, err);
        else if (sleep_until(s, v.retry_at_ms))
            code = ask_run(s, &v, err);
        else
            return tide_fail(err, TIDE_FAILED, "step '%s': stopped while waiting for its next attempt", s->want->name);
    }
    if (!code)
        s->want->exit_status = v.exit_status;
    return code;
}

enum tide_code inside_step(struct inside_step *want, struct tide_err *err)
{
    struct step s = {.want = want,
                     .once = strcmp(want->effect, "once") == 0,
                     .max_output = want->max_output,
                     .signals = -1,
                     .held = PROC_INIT,
                     .out = -1};
    enum tide_code code;

    if (s.once && s.max_output > ONCE_MAX)
        s.max_output = ONCE_MAX;
    code = run_client_open(&s.link, "step", err);
    if (!code)
        code = follow_step(&s, err);
    let_go(&s);
    run_client_close(&s.link);
    if (code == TIDE_IO) {
        tide_about(err, TIDE_SUBJECT_STEP, want->name);
        tide_wrap(err, "step '%s'", want->name);
        return err->code = TIDE_FAILED;
    }
    return code;
}
