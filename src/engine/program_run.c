/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/program_run.h"

#include <stdio.h>
#include <unistd.h>

#include "base/cause.h"
#include "base/invariant.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/recovery_thread.h"
#include "engine/settings.h"
#include "engine/user_store.h"
#include "program/session_program.h"
#include "program/supervisor.h"
#include "program/tree.h"
#include "session/run.h"
#include "session/status.h"

#define FIELDS_MAX ((size_t)16 << 20)
#define RECORD_MAX ((size_t)1 << 20)
#define NAMES_MAX 4096
#define TITLE_MAX 80
#define DYING_MS 200
#define DYING_STEP_MS 5

void program_run_done(struct program_run *r)
{
    if (r->program)
        session_program_done(r->program);
    free(TAKE(r->program));
    buf_done(&r->record.out);
    buf_done(&r->record.err);
}

static struct session_program *new_program(struct program_run *r)
{
    program_run_done(r);
    r->record = (struct program_record){.out = BUF_INIT(RECORD_MAX), .err = BUF_INIT(RECORD_MAX)};
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

enum tide_code program_run_settings(struct program_run *r, const char *config, bool said, struct tide_err *err)
{
    enum tide_code code = settings_sweep_interval(config, &r->sweep_ms, err);

    return code || said ? code : settings_on_store_error(config, &r->degrade, err);
}

enum tide_code program_run_check(struct program_run *r, struct tide_err *err)
{
    enum tide_code code = session_program_check(r->program, &r->end.exit_status, err);

    r->end.not_run = r->end.exit_status != 0;
    return code;
}

enum tide_code program_run_create(struct program_run *r, tide_store *store, const char *id, const char *title,
                                  tide_trouble_fn *held, tide_session **ret_session, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20), command = BUF_INIT((size_t)1 << 20);
    const struct session_program *p = r->program;
    const struct held h = {held, r->stopped, r->arg};
    struct json_out o = json_out_to(&fields);
    enum tide_code code;

    for (size_t i = 0; p->argv[i] && command.len <= TITLE_MAX; i++)
        buf_addf(&command, "%s%.*s", i ? " " : "", 4 * TITLE_MAX, p->argv[i]);
    for (size_t i = 0; i < command.len; i++) /* a script of many lines is one line in lists */
        command.ptr[i] = is_blank_char(command.ptr[i]) ? ' ' : command.ptr[i];
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("title"), title ? str_from(title) : utf8_clip(buf_view(&command), TITLE_MAX));
    json_out_kstr(&o, STR("working_dir"), str_from(p->cwd));
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
    int64_t seq;
    bool interrupted, waited, over;
    enum tide_outcome outcome;
    size_t tokens;                   /* that are valid */
    struct run_steps finished, open; /* that a new chain repeats */
};

static void before_done(struct before *b)
{
    buf_done(&b->finished.names);
    buf_done(&b->open.names);
}

/* A person stopped it inside a step that must happen once: a new run would do that step again. */
static enum tide_code refuse_doubtful(const tide_session *session, struct before *b, struct tide_err *err)
{
    const char *id = tide_session_id(session);

    tide_fail_session(err, TIDE_UNFINISHED, id, "was cancelled inside %s, which must happen once and may have happened",
                      buf_cstr(&b->open.names));
    tide_hint(err, TIDE_ACTION_WHY, id);
    return tide_hint_with(err, TIDE_ACTION_START, id, "\"new_run\":true");
}

static enum tide_code look_before(const struct program_run *r, tide_session *session, struct before *ret,
                                  struct tide_err *err)
{
    const struct tide_session_info *info;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    snprintf(ret->run_id, sizeof ret->run_id, "%s", info->run_id ? info->run_id : "");
    ret->seq = session->state->seq;
    ret->interrupted = info->status == TIDE_STATUS_INTERRUPTED_STARTUP;
    ret->waited = info->status == TIDE_STATUS_WAITING;
    ret->tokens = session->state->ledger.run.token == TOKEN_ACTIVE;
    ret->over = run_is_over(&session->state->ledger.run);
    ret->outcome = info->outcome;
    if ((r->begin != PROGRAM_ANEW && r->begin != PROGRAM_START) || ret->outcome == TIDE_OUTCOME_COMPLETED ||
        !ret->run_id[0])
        return TIDE_OK;
    if (run_repeated_steps(session, &ret->finished, &ret->open, err))
        return err->code;
    if (r->begin == PROGRAM_START && ret->outcome == TIDE_OUTCOME_CANCELLED && ret->open.n)
        return refuse_doubtful(session, ret, err);
    return TIDE_OK;
}

enum tide_code program_run_set(const struct program_run *r, tide_session *session, struct str values, const char *by,
                               struct tide_err *err)
{
    AUTO(before_done) struct before before = {.finished.names = BUF_INIT(NAMES_MAX), .open.names = BUF_INIT(NAMES_MAX)};
    AUTO(buf_done) struct buf body = BUF_INIT(values.len + FIELDS_MAX);
    struct json_out o = json_out_to(&body);
    struct cause cause = {.by = ""};
    struct tide_new_event event;
    struct tide_err refused;

    if (look_before(r, session, &before, &refused) || (r->begin == PROGRAM_START && !before.over))
        return TIDE_OK;
    snprintf(cause.by, sizeof cause.by, "%s", by);
    json_out_begin(&o, '{');
    json_out_kraw(&o, STR("values"), values);
    cause_put(&o, &cause);
    json_out_end(&o, '}');
    event = (struct tide_new_event){"memory.set", buf_cstr(&body), body.len};
    return tide_session_append(session, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, &event, 1, NULL, err);
}

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

/* For the log, and for the process that runs it. */
static void notify_face(const struct program_run *r, const tide_session *session, enum program_notice what, size_t n,
                        const char *text)
{
    static const struct {
        enum tide_log_level level;
        const char *message;
    } rows[] = {
        [PROGRAM_CHANGED] = {TIDE_LOG_WARN, "the program is not the one that ran last"},
        [PROGRAM_LEFTOVERS] = {TIDE_LOG_WARN, "processes of a killed run were ended"},
        [PROGRAM_SUPERSEDED] = {TIDE_LOG_WARN, "a run that waited is superseded"},
        [PROGRAM_AGAIN] = {TIDE_LOG_INFO, "a new run of a session that had one"},
        [PROGRAM_REPEATS] = {TIDE_LOG_WARN, "finished steps of the last run are repeated"},
        [PROGRAM_DOUBTS] = {TIDE_LOG_WARN, "steps that must happen once and may have happened are repeated"},
    };

    log_write(rows[what].level, rows[what].message, log_text("session", tide_session_id(session)),
              log_text("program", r->program->program));
    if (r->notice)
        r->notice(r->arg, what, n, text);
}

/* The lease is ours and our program has not begun. */
static void tell_begun(const struct program_run *r, tide_session *session, struct before *before, bool continues)
{
    /* What still has the last run's id was left by a killed one. */
    size_t left = before->interrupted ? tree_end_run(before->run_id) : 0;

    if (left > 0)
        notify_face(r, session, PROGRAM_LEFTOVERS, left, r->program->program);
    if (before->waited && r->begin != PROGRAM_RESUME && (!continues || r->begin == PROGRAM_SEND))
        notify_face(r, session, PROGRAM_SUPERSEDED, before->tokens, r->program->program);
    if (!continues && before->run_id[0])
        notify_face(r, session, PROGRAM_AGAIN, 0,
                    before->waited ? tide_status_name(TIDE_STATUS_WAITING) : tide_outcome_name(before->outcome));
    if (!continues && before->finished.n)
        notify_face(r, session, PROGRAM_REPEATS, before->finished.n, buf_cstr(&before->finished.names));
    if (!continues && before->open.n)
        notify_face(r, session, PROGRAM_DOUBTS, before->open.n, buf_cstr(&before->open.names));
}

static enum tide_code begin_run(const struct program_run *r, tide_session *session, const struct before *before,
                                struct tide_run_options *opt, struct tide_resumed *resumed, enum tide_ensured *ret_how,
                                tide_run **ret_run, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    for (int waited = 0;; waited += DYING_STEP_MS) {
        switch (r->begin) {
        case PROGRAM_START:
        case PROGRAM_ANEW:
            *ret_how = TIDE_ENSURED_STARTED;
            code = tide_run_start(session, opt, ret_run, err);
            break;
        case PROGRAM_RESUME:
            *ret_how = TIDE_ENSURED_RESUMED;
            code = tide_run_resume(session, opt, resumed, ret_run, err);
            break;
        case PROGRAM_ENSURE:
        case PROGRAM_SEND:
            code = run_ensure_at(session, opt, before->seq, ret_how, ret_run, err);
            break;
        }
        if (code != TIDE_HELD || waited >= DYING_MS)
            return code;
        usleep(DYING_STEP_MS * 1000); /* a holder that was killed just now takes a moment to die */
    }
}

static enum tide_code supervise_program(struct program_run *r, struct supervisor *s, tide_session *session,
                                        struct before *before, struct tide_run_options *opt,
                                        struct tide_resumed *resumed, struct tide_err *err)
{
    struct ending how = {.message = ""};
    struct recovery_thread *sweep;
    AUTO(buf_done) struct buf fields = BUF_INIT(FIELDS_MAX);
    AUTO(runp) tide_run *run = NULL;
    enum tide_ensured ensured = TIDE_ENSURED_DONE;
    enum tide_code code = session_program_fields(r->program, &s->child, &fields, err);

    if (code)
        return code;
    opt->fields = buf_cstr(&fields);
    opt->flags |= (r->degrade ? TIDE_RUN_CONTINUE : 0u) | (r->begin == PROGRAM_START ? TIDE_RUN_IF_OVER : 0u) |
                  (r->begin == PROGRAM_SEND ? TIDE_RUN_DELIVER : 0u);
    opt->trouble = supervisor_trouble;
    opt->trouble_arg = s;
    code = begin_run(r, session, before, opt, resumed, &ensured, &run, err);
    if (code || !run)
        return code;
    tell_begun(r, session, before, ensured == TIDE_ENSURED_RESUMED);
    snprintf(r->end.run_id, sizeof(r->end.run_id), "%s", tide_run_id(run));
    sweep = recovery_thread_start((tide_store *)(void *)session->store, r->sweep_ms);
    code = supervisor_run(s, run, &how, err);
    recovery_thread_stop(sweep);
    take_end(&r->end, s, &how);
    return code;
}

/* A name that is mistyped would change nothing, and be recorded as a permission. */
static enum tide_code check_names(tide_session *session, const char *const *names, struct tide_err *err)
{
    for (; names && *names; names++)
        if (tide_step_find_unsettled(session, *names, err)) {
            err->code = err->code == TIDE_NOT_FOUND ? TIDE_INVALID : err->code;
            return tide_about(err, TIDE_SUBJECT_STEP, *names);
        }
    return TIDE_OK;
}

enum tide_code program_run_check_steps(tide_session *session, const struct tide_run_options *opt, struct tide_err *err)
{
    if (check_names(session, opt->retry, err) || check_names(session, opt->happened, err))
        return err->code;
    for (const char *const *r = opt->retry; r && *r; r++)
        for (const char *const *h = opt->happened; h && *h; h++)
            if (strcmp(*r, *h) == 0)
                return tide_fail_step(err, TIDE_INVALID, *r, "cannot have happened and run again: give one of them");
    return TIDE_OK;
}

/* ---- what is recorded ---- */

static void take_output(struct arena *a, const struct json *output, const char *name, struct buf *ret,
                        int64_t *ret_bytes)
{
    buf_clear(ret);
    buf_add_str(ret, json_get_text(a, output, str_from(name)));
    *ret_bytes = json_get_int(output, str_from(arena_printf(a, "%s_bytes", name)), (int64_t)ret->len);
}

static enum tide_code take_record(struct program_run *r, tide_session *session, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    struct json *result = NULL;
    const struct json *output;

    if (tide_session_get_result(session, &text, err) ||
        json_parse(&a, (struct str){text.ptr, text.len}, NULL, &result, NULL, err))
        return err->code;
    output = json_get(result, STR("output"));
    r->end.recorded = true;
    r->end.exit_status = (int)json_get_int(result, STR("exit_status"), 0);
    take_output(&a, output, "stdout", &r->record.out, &r->record.out_bytes);
    take_output(&a, output, "stderr", &r->record.err, &r->record.err_bytes);
    return TIDE_OK;
}

/* A session in which nothing of another kind ran, and no other program. */
static enum tide_code match_program(struct program_run *r, tide_session *session, struct tide_err *err)
{
    const struct ledger *l = &session->state->ledger;

    if (!l->runs || (!l->program_seq && session_kind(session->state) == TIDE_KIND_LOG && !run_is_over(&l->run)))
        return tide_session_check_trust(session, err); /* a run of an embedding program continues with its program */
    return session_program_match(r->program, session, err);
}

/* ---- all of it ---- */

static enum tide_code run_once(struct program_run *r, tide_session *session, struct before *before,
                               struct tide_run_options *opt, struct tide_resumed *ret_resumed, struct tide_err *err)
{
    const struct supervised job = {.path = r->program->program,
                                   .argv = r->program->argv,
                                   .cwd = r->program->cwd,
                                   .search_path = r->program->path,
                                   .binary = r->binary,
                                   .session_id = tide_session_id(session),
                                   .signals = r->signals,
                                   .degrade = r->degrade,
                                   .trouble = r->trouble,
                                   .arg = r->arg};
    struct supervisor s;
    enum tide_code code = supervisor_open(&s, &job, err);

    if (!code && r->stopped && r->stopped(r->arg)) /* a signal that came before it listened to them */
        code = tide_fail(err, TIDE_CANCELLED, "stopped before the program was started");
    code = code ? code : supervise_program(r, &s, session, before, opt, ret_resumed, err);
    supervisor_close(&s);
    return code;
}

/* The program that continues, found and checked; or it has completed: its record. */
static enum tide_code prepare_start(struct program_run *r, tide_session *session, struct tide_err *err)
{
    enum tide_code code = tide_session_refresh(session, err);

    r->end.not_run = false;
    code = code ? code : match_program(r, session, err);
    if (!code && session->state->ledger.run.end == RUN_COMPLETED)
        return take_record(r, session, err);
    return code ? code : program_run_check(r, err);
}

/* Somebody who comes between a look at the session and what is begun because of it makes it look again. */
static enum tide_code begin_and_stay(struct program_run *r, tide_session *session, struct tide_run_options *opt,
                                     struct tide_resumed *ret_resumed, struct tide_err *err)
{
    AUTO(before_done) struct before before = {.finished.names = BUF_INIT(NAMES_MAX), .open.names = BUF_INIT(NAMES_MAX)};
    enum tide_code code;

    do {
        code = r->begin == PROGRAM_ENSURE ? prepare_start(r, session, err) : TIDE_OK;
        if (r->end.recorded)
            return TIDE_OK;
        if (!code && r->program->changed && (r->begin == PROGRAM_RESUME || r->begin == PROGRAM_ENSURE))
            notify_face(r, session, PROGRAM_CHANGED, 0, r->program->program);
        code = code ? code : look_before(r, session, &before, err);
        code = code ? code : run_once(r, session, &before, opt, ret_resumed, err);
    } while (code == TIDE_CONFLICT && !r->end.run_id[0] && (r->begin == PROGRAM_ENSURE || r->begin == PROGRAM_SEND) &&
             run_has_moved(session, before.seq));
    return code;
}

enum tide_code program_run(struct program_run *r, tide_session *session, struct tide_run_options *opt,
                           struct tide_resumed *ret_resumed, struct tide_err *err)
{
    const struct ledger *ledger;
    const struct tide_session_info *info;
    enum tide_code code;

    INVARIANT(r->program->program || r->begin == PROGRAM_ENSURE); /* it was found by program_run_check() */
    if (program_run_check_steps(session, opt, err))
        return err->code;
    code = begin_and_stay(r, session, opt, ret_resumed, err);
    if (!tide_session_get_info(session, &info, NULL))
        r->end.degraded_events = info->degraded_events;
    if (code || !r->end.run_id[0])
        return code;
    ledger = &session->state->ledger;
    r->end.hidden = ledger->program_seq && !ledger_has_program(ledger);
    return TIDE_OK;
}
