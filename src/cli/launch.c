/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a program's name to a run of a session and to what is said at its end.
 *
 * Order: what can be refused is looked at first; then the program is held at its gate, so that its pid is in the record
 * of the start; only when that is on disk does it run.
 */
#include "cli/error_hints.h"
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/terminal/progress.h"
#include "cli/report.h"
#include "cli/signal_pipe.h"
#include "engine/settings.h"
#include "program/supervisor.h"
#include "program/recovery_thread.h"
#include "program/tree.h"
#include "session/redact.h"
#include "session/session.h"

#define FIELDS_MAX ((size_t)16 << 20)
#define DYING_MS 200
#define DYING_STEP_MS 5

void say(const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    log_clean(line, sizeof(line));
    say_clean(line);
}

void launch_done(struct launch *l)
{
    arena_done(&l->arena);
}

/* ---- where it comes from ---- */

enum tide_code launch_from_args(struct launch *l, struct cli *cli, size_t first, struct tide_err *err)
{
    size_t n = cli->args.n_operands - first;
    AUTO(mem_freep) char *cwd = getcwd(NULL, 0);

    if (!cwd)
        return tide_fail_errno(err, errno, "find the current directory");
    l->cwd = arena_dup(&l->arena, str_from(cwd)).ptr;
    l->argv = arena_zero(&l->arena, (n + 1) * sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        l->argv[i] = (char *)(uintptr_t)args_operand(&cli->args, first + i);
        if (!str_is_utf8(str_from(l->argv[i]), NULL))
            return tide_fail(
                err, TIDE_INVALID,
                "argument %zu of the program is not valid UTF-8: it could not be recorded exactly: give it "
                "in a file",
                i);
    }
    if (!str_is_utf8(str_from(l->cwd), NULL))
        return tide_fail(err, TIDE_INVALID, "the name of the current directory is not valid UTF-8");
    return TIDE_OK;
}

static const char *text_of(struct launch *l, const struct json *fields, const char *key)
{
    struct str s = json_get_text(&l->arena, fields, str_from(key));

    return s.len > 0 ? arena_dup(&l->arena, s).ptr : NULL;
}

static char **texts_of(struct launch *l, const struct json *array)
{
    char **texts = arena_zero(&l->arena, ((array ? array->count : 0) + 1) * sizeof(char *));
    size_t n = 0;

    for (const struct json *v = array ? array->first : NULL; v; v = v->next)
        if (v->type == JSON_STRING)
            texts[n++] = (char *)(uintptr_t)arena_dup(&l->arena, json_text(&l->arena, v)).ptr;
    return texts;
}

static enum tide_code no_program(tide_session *session, struct tide_err *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "session '%s' was not made by `tidemark exec`: resume it with the program that made it",
                     tide_session_id(session));
}

/* "A,B" again: in the one form in which names are looked at. */
static const char *join_names(struct launch *l, char *const *names)
{
    const char *joined = NULL;

    for (; *names; names++)
        joined = joined ? arena_printf(&l->arena, "%s,%s", joined, *names) : *names;
    return joined;
}

enum tide_code launch_from_session(struct launch *l, tide_session *session, struct tide_err *err)
{
    struct tide_text text = {NULL, 0};
    struct json *fields = NULL;
    struct str kept;
    enum tide_code code = tide_session_check_trust(session, err);

    code = code ? code : tide_run_program(session, &text, err);

    if (code == TIDE_NOT_FOUND) /* the program, not the session */
        err->code = TIDE_INVALID;
    if (code)
        return err->code;
    kept = arena_dup(&l->arena, (struct str){text.ptr, text.len});
    tide_text_done(&text);
    if (json_parse(&l->arena, kept, NULL, &fields, NULL, err))
        return err->code;
    if (redact_is_marked(fields, kept))
        return tide_fail(
            err, TIDE_INVALID,
            "the command line of session '%s' held a secret, which is not stored: it is not run from the log: "
            "`tidemark exec --session %s -- PROGRAM` runs it anew; hand secrets over in the environment",
            tide_session_id(session), tide_session_id(session));
    l->argv = texts_of(l, json_get(fields, STR("argv")));
    l->cwd = text_of(l, fields, "cwd");
    l->program = text_of(l, fields, "program");
    l->digest = text_of(l, fields, "program_digest");
    l->env = join_names(l, texts_of(l, json_get(fields, STR("env"))));
    return l->argv[0] && l->cwd ? TIDE_OK : no_program(session, err);
}

/* ---- whether it can run ---- */

static enum tide_code check_name(const char *name, size_t len, struct tide_err *err)
{
    AUTO(mem_freep) char *text = mem_dup((struct str){name, len});

    if (len == 0 || strchr(text, '='))
        return tide_fail(err, TIDE_INVALID, "--env: '%.60s' is not the name of a variable: give NAME,NAME", text);
    if (!getenv(text))
        return tide_fail(err, TIDE_INVALID, "--env: $%.60s is not set: set it, then try again", text);
    return TIDE_OK;
}

static enum tide_code check_env(const char *names, struct tide_err *err)
{
    for (; names; names++) {
        size_t n = strcspn(names, ",");

        if (check_name(names, n, err))
            return err->code;
        names += n;
        if (!*names)
            break;
    }
    return TIDE_OK;
}

static enum tide_code check_cwd(const char *cwd, struct tide_err *err)
{
    struct stat st;

    if (stat(cwd, &st) == 0 && S_ISDIR(st.st_mode) && access(cwd, X_OK) == 0)
        return TIDE_OK;
    return tide_fail(err, TIDE_NOT_FOUND, "the directory '%.200s' that the program runs in is gone: make it again",
                     cwd);
}

static void check_digest(struct launch *l)
{
    char hex[PROGRAM_DIGEST_SIZE] = "";
    struct tide_err ignored = {0};

    if (program_digest(l->program, hex, &ignored)) /* executable, but not readable: it is not known then */
        return;
    l->changed = l->digest && strcmp(l->digest, hex) != 0;
    l->digest = arena_dup(&l->arena, str_from(hex)).ptr;
}

enum tide_code launch_check(struct launch *l, const struct cli *cli, int *ret_status, struct tide_err *err)
{
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);
    enum tide_code code;

    *ret_status = 0;
    if (check_cwd(l->cwd, err) || check_env(l->env, err) ||
        settings_sweep_interval(args_text(&cli->args, "config"), &l->sweep_ms, err) ||
        (!l->degrade_said && settings_on_store_error(args_text(&cli->args, "config"), &l->degrade, err)))
        return err->code;
    code = program_find(l->program ? l->program : l->argv[0], l->cwd, &path, err);
    if (code) {
        say("%s", err_text(err));
        *ret_status = program_find_exit(code);
        return TIDE_OK;
    }
    l->program = arena_dup(&l->arena, buf_view(&path)).ptr;
    check_digest(l);
    return TIDE_OK;
}

/* ---- the record ---- */

static void put_texts(struct json_out *o, const char *key, char *const *texts)
{
    json_out_key(o, str_from(key));
    json_out_begin(o, '[');
    for (; *texts; texts++)
        json_out_str(o, str_from(*texts));
    json_out_end(o, ']');
}

static void put_env(struct json_out *o, const char *names)
{
    json_out_key(o, STR("env"));
    json_out_begin(o, '[');
    while (names && *names) {
        size_t n = strcspn(names, ",");

        json_out_str(o, (struct str){names, n});
        names += n + (names[n] == ',');
    }
    json_out_end(o, ']');
}

static enum tide_code put_fields(const struct launch *l, const struct proc *p, struct buf *out, struct tide_err *err)
{
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    put_texts(&o, "argv", l->argv);
    json_out_kstr(&o, STR("cwd"), str_from(l->cwd));
    put_env(&o, l->env);
    json_out_kstr(&o, STR("program"), str_from(l->program));
    if (l->digest)
        json_out_kstr(&o, STR("program_digest"), str_from(l->digest));
    if (l->changed)
        json_out_kbool(&o, STR("program_changed"), true);
    json_out_kint(&o, STR("pid"), p->pid);
    json_out_kint(&o, STR("pid_start"), (int64_t)p->start);
    json_out_end(&o, '}');
    return out->failed ? tide_fail(err, TIDE_TOO_BIG, "the arguments of the program are longer than 16 MiB") : TIDE_OK;
}

/* ---- running ---- */

static void runp(tide_run **run)
{
    tide_run_close(*run);
}

/* How the session stood before this run. */
struct before {
    char run_id[TIDE_ID_SIZE];
    bool interrupted, waited;
};

static int take_before(void *arg, const struct tide_session_info *info)
{
    struct before *b = arg;

    snprintf(b->run_id, sizeof(b->run_id), "%s", info->run_id ? info->run_id : "");
    b->interrupted = strcmp(info->status, "interrupted_startup") == 0;
    b->waited = strcmp(info->status, "waiting") == 0;
    return 0;
}

/* The lease is ours and our program has not begun: what still has the last run's id was left behind by a killed one. */
static void end_leftovers(const struct before *b)
{
    size_t n = b->interrupted ? tree_end_run(b->run_id) : 0;

    if (n > 0)
        say("the last run had left %zu process%s behind: ended %s", n, n == 1 ? "" : "es", n == 1 ? "it" : "them");
}

static enum tide_code supervise(struct launch *l, struct cli *cli, struct supervisor *s, tide_session *session,
                                struct tide_run_options *opt, struct tide_resumed *resume, struct report *ret,
                                struct tide_err *err)
{
    struct before before = {.run_id = ""};
    struct recovery_thread *sweep;
    AUTO(buf_done) struct buf fields = BUF_INIT(FIELDS_MAX);
    AUTO(runp) tide_run *run = NULL;
    enum tide_code code = put_fields(l, &s->child, &fields, err);

    if (code)
        return code;
    opt->fields = buf_cstr(&fields);
    opt->flags |= l->degrade ? TIDE_RUN_CONTINUE : 0u;
    opt->trouble = supervisor_trouble;
    opt->trouble_arg = s;
    code = tide_session_show(session, take_before, &before, err);
    if (code)
        return code;
    for (int waited = 0;; waited += DYING_STEP_MS) {
        code = resume ? tide_run_resume(session, opt, resume, &run, err) : tide_run_start(session, opt, &run, err);
        if (code != TIDE_HELD || waited >= DYING_MS)
            break;
        usleep(DYING_STEP_MS * 1000); /* a holder that was killed just now takes a moment to die */
    }
    if (code || !run)
        return code;
    end_leftovers(&before);
    if (!resume && before.waited)
        say("the run that waited is superseded: its token is revoked");
    snprintf(ret->run_id, sizeof(ret->run_id), "%s", tide_run_id(run));
    sweep = recovery_thread_start(cli->store, l->sweep_ms);
    code = supervisor_run(s, run, &ret->ending, err);
    recovery_thread_stop(sweep);
    ret->park = s->server.park;
    ret->left_behind = s->left_behind;
    return code;
}

static int take_durability(void *degraded_events, const struct tide_session_info *info)
{
    *(int64_t *)degraded_events = info->degraded_events;
    return 0;
}

enum tide_code launch_run(struct launch *l, struct cli *cli, tide_session *session, struct tide_run_options *opt,
                          struct tide_resumed *resume, struct tide_err *err)
{
    struct job job = {.path = l->program, .argv = l->argv, .cwd = l->cwd, .session_id = tide_session_id(session)};
    struct report report = {.session_id = job.session_id, .program = l->argv[0], .token_fd = l->token_fd};
    int64_t degraded = 0;
    struct supervisor s;
    enum tide_code code;

    job.degrade = l->degrade;
    job.signals = signal_pipe_open();
    code = supervisor_open(&s, &job, err);
    if (!code && stop_signal) /* it came before the pipe was there */
        code = tide_fail(err, TIDE_CANCELLED, "stopped before the program was started");
    if (code) {
        supervisor_close(&s);
        signal_pipe_close(job.signals);
        return code;
    }
    code = supervise(l, cli, &s, session, opt, resume, &report, err);
    supervisor_close(&s);
    signal_pipe_close(job.signals);
    (void)!tide_session_show(session, take_durability, &degraded, NULL);
    report_durability(degraded);
    if (code || !report.run_id[0])
        return code;
    report.hidden = session->state->ledger.program_seq && !ledger_has_program(&session->state->ledger);
    return report_end(cli, &report, err);
}
