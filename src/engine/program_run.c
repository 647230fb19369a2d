/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/program_run.h"

#include <stdio.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/recovery_thread.h"
#include "engine/user_store.h"
#include "program/session_program.h"
#include "program/supervisor.h"
#include "program/tree.h"
#include "session/session.h"

#define FIELDS_MAX ((size_t)16 << 20)
#define TITLE_MAX 80
#define DYING_MS 200
#define DYING_STEP_MS 5

void program_run_done(struct program_run *r)
{
    if (r->program)
        session_program_done(r->program);
    free(TAKE(r->program));
}

static struct session_program *new_program(struct program_run *r)
{
    program_run_done(r);
    r->program = mem_zero(sizeof(*r->program));
    *r->program = (struct session_program)SESSION_PROGRAM_INIT;
    return r->program;
}

const char *program_run_name(const struct program_run *r)
{
    return r->program->argv[0];
}

/* ---- which program, in which session ---- */

enum tide_code program_run_from_argv(struct program_run *r, const char *const *argv, size_t n, const char *env,
                                     struct tide_err *err)
{
    return session_program_from_argv(new_program(r), argv, n, env, err);
}

enum tide_code program_run_from_log(struct program_run *r, tide_session *session, struct tide_err *err)
{
    return session_program_from_log(new_program(r), session, err);
}

enum tide_code program_run_check(struct program_run *r, struct tide_err *err)
{
    enum tide_code code = session_program_check(r->program, &r->end.exit_status, err);

    r->end.not_run = r->end.exit_status != 0;
    return code;
}

static void put_title(const struct session_program *p, const char *given, struct json_out *o)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)1 << 20);

    for (size_t i = 0; p->argv[i] && text.len <= TITLE_MAX; i++)
        buf_addf(&text, "%s%.*s", i ? " " : "", 4 * TITLE_MAX, p->argv[i]);
    json_out_kstr(o, STR("title"), given ? str_from(given) : utf8_clip(buf_view(&text), TITLE_MAX));
}

enum tide_code program_run_create(struct program_run *r, tide_store *store, const char *id, const char *title,
                                  tide_trouble_fn *held, tide_session **ret_session, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    const struct held h = {held, r->stopped, r->arg};
    struct json_out o = json_out_to(&fields);
    enum tide_code code;

    json_out_begin(&o, '{');
    put_title(r->program, title, &o);
    json_out_kstr(&o, STR("working_dir"), str_from(r->program->cwd));
    json_out_end(&o, '}');
    code = held_create(&h, store, id, buf_cstr(&fields), ret_session, err);
    return code == TIDE_EXISTS ? held_open(&h, store, id, ret_session, err) : code;
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

static void take_end(struct program_end *end, const struct supervisor *s, const struct ending *how)
{
    const struct park *p = &s->server.park;

    end->exit_status = how->exit_status;
    end->cancelled = how->stop == STOP_CANCEL;
    end->left_behind = s->left_behind;
    snprintf(end->message, sizeof(end->message), "%s", how->message);
    end->waits = p->parked;
    end->wait = (struct program_wait){.is_sleep = p->is_sleep, .deadline_ms = p->deadline_ms, .due_ms = p->due_ms};
    memcpy(end->wait.token, p->token, sizeof(p->token));
    snprintf(end->wait.name, sizeof(end->wait.name), "%s", p->name);
    snprintf(end->wait.kind, sizeof(end->wait.kind), "%s", p->kind);
    snprintf(end->wait.question, sizeof(end->wait.question), "%s", p->question);
}

/* For the log, and for whoever runs it. */
static void notify(const struct program_run *r, const tide_session *session, enum program_notice what, size_t n)
{
    static const char *const texts[] = {
        [PROGRAM_CHANGED] = "the program is not the one that ran last",
        [PROGRAM_LEFTOVERS] = "processes of a killed run were ended",
        [PROGRAM_SUPERSEDED] = "a run that waited is superseded",
    };

    log_write(TIDE_LOG_WARN, texts[what], log_text("session", tide_session_id(session)),
              log_text("program", r->program->program));
    r->notice(r->arg, what, n, r->program->program);
}

static enum tide_code supervise(struct program_run *r, struct supervisor *s, tide_session *session,
                                struct tide_run_options *opt, struct tide_resumed *resume, struct tide_err *err)
{
    const struct tide_session_info *info;
    struct before before = {.run_id = ""};
    struct ending how = {.message = ""};
    struct recovery_thread *sweep;
    AUTO(buf_done) struct buf fields = BUF_INIT(FIELDS_MAX);
    AUTO(runp) tide_run *run = NULL;
    enum tide_code code = session_program_fields(r->program, &s->child, &fields, err);
    size_t n;

    if (code)
        return code;
    opt->fields = buf_cstr(&fields);
    opt->flags |= r->degrade ? TIDE_RUN_CONTINUE : 0u;
    opt->trouble = supervisor_trouble;
    opt->trouble_arg = s;
    code = tide_session_get_info(session, &info, err);
    if (code)
        return code;
    snprintf(before.run_id, sizeof before.run_id, "%s", info->run_id ? info->run_id : "");
    before.interrupted = info->status == TIDE_STATUS_INTERRUPTED_STARTUP;
    before.waited = info->status == TIDE_STATUS_WAITING;
    for (int waited = 0;; waited += DYING_STEP_MS) {
        code = resume ? tide_run_resume(session, opt, resume, &run, err) : tide_run_start(session, opt, &run, err);
        if (code != TIDE_HELD || waited >= DYING_MS)
            break;
        usleep(DYING_STEP_MS * 1000); /* a holder that was killed just now takes a moment to die */
    }
    if (code || !run)
        return code;
    /* The lease is ours and our program has not begun: what still has the last run's id was left by a killed one. */
    n = before.interrupted ? tree_end_run(before.run_id) : 0;
    if (n > 0)
        notify(r, session, PROGRAM_LEFTOVERS, n);
    if (!resume && before.waited)
        notify(r, session, PROGRAM_SUPERSEDED, 0);
    snprintf(r->end.run_id, sizeof(r->end.run_id), "%s", tide_run_id(run));
    sweep = recovery_thread_start((tide_store *)(void *)session->store, r->sweep_ms);
    code = supervisor_run(s, run, &how, err);
    recovery_thread_stop(sweep);
    take_end(&r->end, s, &how);
    return code;
}

/* A name that is mistyped would change nothing, and be recorded as a permission. */
static enum tide_code check_names(tide_session *session, const char *option, const char *const *names,
                                  struct tide_err *err)
{
    for (; names && *names; names++)
        if (tide_step_find_unsettled(session, *names, err))
            return tide_fail(err, err->code == TIDE_NOT_FOUND ? TIDE_INVALID : err->code, "%s: %s", option, err->msg);
    return TIDE_OK;
}

enum tide_code program_run(struct program_run *r, tide_session *session, struct tide_run_options *opt,
                           struct tide_resumed *ret_resumed, struct tide_err *err)
{
    const struct job job = {.path = r->program->program,
                            .argv = r->program->argv,
                            .cwd = r->program->cwd,
                            .session_id = tide_session_id(session),
                            .signals = r->signals,
                            .degrade = r->degrade,
                            .trouble = r->trouble,
                            .arg = r->arg};
    const struct ledger *ledger;
    struct supervisor s;
    const struct tide_session_info *info;
    enum tide_code code;

    INVARIANT(r->program->program); /* it was found by program_run_check() */
    if (check_names(session, "--retry", opt->retry, err) || check_names(session, "--happened", opt->happened, err))
        return err->code;
    if (ret_resumed && r->program->changed)
        notify(r, session, PROGRAM_CHANGED, 0);
    code = supervisor_open(&s, &job, err);
    if (!code && r->stopped && r->stopped(r->arg)) /* a signal that came before it listened to them */
        code = tide_fail(err, TIDE_CANCELLED, "stopped before the program was started");
    if (code) {
        supervisor_close(&s);
        return code;
    }
    code = supervise(r, &s, session, opt, ret_resumed, err);
    supervisor_close(&s);
    if (!tide_session_get_info(session, &info, NULL))
        r->end.degraded_events = info->degraded_events;
    if (code || !r->end.run_id[0])
        return code;
    ledger = &session->state->ledger;
    r->end.hidden = ledger->program_seq && !ledger_has_program(ledger);
    return TIDE_OK;
}
