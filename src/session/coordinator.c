/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginning and resuming runs. Each looks at the state as the store has it, refuses what is to be refused, and then makes
 * one append guarded by the seq it looked at: the caller that comes between makes it look again, so that among parallel callers
 * exactly one gets through. What the latest run left open is closed in that same append.
 */
#include "base/log.h"
#include "base/invariant.h"
#include "base/timefmt.h"
#include "base/yes_no.h"
#include "session/redact.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/status.h"
#include "session/token.h"
#include "session/trust.h"

/* ---- run.started, run.resumed -------------------------------------------------------------------------------------- */

static void draft_process(struct draft *d, struct store *store)
{
    struct env_proc self;

    memset(&self, 0, sizeof self);
    store->env->ops->self(store->env, &self);
    draft_text(d, "boot_id", store->boot_id);
    draft_text(d, "kernel_boot", self.kernel_boot);
    json_out_kint(&d->out, STR("pid_ns"), (int64_t)self.pid_ns);
}

static void draft_names(struct draft *d, const char *key, const char *const *names)
{
    if (!names || !names[0])
        return;
    json_out_key(&d->out, str_from(key));
    json_out_begin(&d->out, '[');
    for (; *names; names++)
        json_out_str(&d->out, str_from(*names));
    json_out_end(&d->out, ']');
}

static void draft_permissions(struct draft *d, const struct tide_run_options *opt)
{
    if (opt->flags & TIDE_RUN_ACCEPT_CHANGE)
        json_out_kbool(&d->out, STR("accept_change"), true);
    draft_names(d, "retry", opt->retry);
    draft_names(d, "happened", opt->happened);
}

/* `from` NULL: a new chain. */
enum tide_code run_draft_started(struct draft *d, struct tide_session *s, const char *run_id, const struct run *from,
                                 const struct tide_run_options *opt, struct tide_err *err)
{
    const char *checkpoint = s->state->content.resume_checkpoint;
    enum tide_code code;

    draft_open(d, "run.started");
    draft_text(d, "run_id", run_id);
    draft_process(d, s->store);
    if (from) {
        json_out_key(&d->out, STR("resumed_from"));
        json_out_begin(&d->out, '{');
        draft_text(d, "run_id", from->run_id);
        json_out_kint(&d->out, STR("seq"), s->state->seq);
        draft_text(d, "checkpoint_id", checkpoint);
        json_out_end(&d->out, '}');
        draft_text(d, "by", opt->by ? opt->by : "local");
        draft_text(d, "request_id", opt->request_id);
    }
    draft_permissions(d, opt);
    code = draft_members(d, opt->fields, NULL, err);
    draft_close(d);
    return code;
}

/* It is the same run: of the fields only those that say which process runs it now. `by_default`: nobody answered in time. */
static enum tide_code draft_resumed(struct draft *d, struct tide_session *s, const struct tide_run_options *opt,
                                    bool by_default, struct tide_err *err)
{
    static const char *const known[] = {"argv",           "cwd",          "env", "path", "program",
                                        "program_digest", "program_stat", NULL};
    const struct run *r = &s->state->ledger.run;
    enum tide_code code;

    draft_open(d, "run.resumed");
    draft_text(d, "run_id", r->run_id);
    draft_text(d, "by", by_default ? SETTLED_BY : opt->by ? opt->by : opt->token ? "token" : "local");
    draft_text(d, "request_id", opt->request_id);
    draft_process(d, s->store);
    draft_permissions(d, opt);
    code = draft_members(d, opt->fields, known, err);
    code = code ? code : draft_value(d, "input", by_default ? r->default_answer : opt->input, err);
    draft_close(d);
    return code;
}

/* What is compared later must be stored as it came. */
static enum tide_code check_texts(const struct tide_run_options *opt, struct tide_err *err)
{
    if (!str_is_utf8(str_from(opt->request_id), NULL) || !str_is_utf8(str_from(opt->by), NULL))
        return tide_fail(err, TIDE_INVALID, "a request id, and who asks, must be valid UTF-8");
    if (opt->by && strcmp(opt->by, SETTLED_BY) == 0)
        return tide_fail(err, TIDE_INVALID, "'%s' is who answers by default: give another name", SETTLED_BY);
    return TIDE_OK;
}

/* ---- starting -------------------------------------------------------------------------------------------------------- */

static void be_patient(struct tide_session *s, const struct tide_run_options *opt)
{
    if (opt->trouble) /* nobody would be notified: refuse it rather than wait silently */
        session_be_patient(s, opt->trouble, opt->trouble_arg);
}

/* The event that names the run, and which nobody else can have appended. */
static size_t names_run(const struct draft *d)
{
    size_t i = d->n - 1;

    INVARIANT(d->n > 0);
    while (i > 0 && strcmp(d->events[i].kind, "run.started") != 0 && strcmp(d->events[i].kind, "run.resumed") != 0)
        i--;
    return i;
}

/*
 * Appends what begins or resumes a run, guarded by the seq that was looked at, and gives its handle. A store in trouble is
 * waited for as in the rest of the run. `queued`: without waiting; takes the draft's events then.
 */
static enum tide_code begin_run(struct tide_session *s, const struct tide_run_options *opt, struct draft *d,
                                bool queued, tide_run **ret_run, struct tide_err *err)
{
    struct trying t = {
        .events = d->events, .n = d->n, .ours = names_run(d), .before = tide_session_last_seq(s), .unknown = false};
    bool started = strcmp(d->events[t.ours].kind, "run.started") == 0; /* what is queued takes the draft away */
    struct tide_run *r = run_new(s, opt);
    enum tide_code code;

    if (!opt->trouble)
        session_be_quick(s);
    r->starting = true;
    redact_draft(s->store, d);
    code = queued ? run_put_start(r, d, t.ours, err) : run_try_held(r, &t, err);
    if (code) {
        run_free(r);
        return code;
    }
    INVARIANT(r->queue.n == queued && !r->over);
    session_be_patient(s, opt->trouble, opt->trouble_arg);
    r->starting = queued;
    snprintf(r->id, sizeof r->id, "%s", s->state->ledger.run.run_id);
    snprintf(r->chain_id, sizeof r->chain_id, "%s", s->state->ledger.chain_id);
    log_write(TIDE_LOG_INFO, started ? "run started" : "run resumed", RUN_FIELDS(r),
              log_text("continues", strcmp(r->id, r->chain_id) != 0 ? r->chain_id : NULL));
    *ret_run = r;
    return TIDE_OK;
}

static enum tide_code draft_message(struct draft *d, struct store *store, const char *message, struct tide_err *err)
{
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    if (!message)
        return TIDE_OK;
    session_make_id(store, "msg", id);
    draft_open(d, "queue.added");
    draft_text(d, "queue_id", id);
    code = draft_value(d, "content", message, err);
    draft_close(d);
    return code;
}

/* What was decided was decided about the log up to here. */
static enum tide_code check_unmoved(const struct tide_session *s, int64_t at, struct tide_err *err)
{
    return at && s->state->seq != at
               ? tide_fail_session(err, TIDE_CONFLICT, s->head.id, "has changed meanwhile: try again")
               : TIDE_OK;
}

bool run_is_over(const struct run *r)
{
    return r->end == RUN_NONE || r->end == RUN_COMPLETED || r->end == RUN_CANCELLED;
}

/* A new run would do again what the last one has done: it names what continues that, and how a new one begins all the same. */
static enum tide_code refuse_unfinished(const struct tide_session *s, struct tide_err *err)
{
    const char *id = s->head.id;
    struct status st;
    size_t i = 0;

    status_derive(&st, s->state, false, env_now_ms(s->store->env));
    while (i < st.next_count && st.next[i].action != TIDE_ACTION_RESUME && st.next[i].action != TIDE_ACTION_ANSWER)
        i++;
    tide_fail_session(err, TIDE_UNFINISHED, id, "has an unfinished run (%s%s)",
                      st.outcome == TIDE_OUTCOME_NONE ? "it waits for " : "",
                      st.outcome == TIDE_OUTCOME_NONE ? st.reason : tide_outcome_name(st.outcome));
    if (i < st.next_count)
        action_hint(err, id, &st.next[i]);
    else if (st.is_resumable)
        tide_hint_with(err, TIDE_ACTION_START, id, "\"ensure\":true");
    return tide_hint_with(err, TIDE_ACTION_START, id, "\"new_run\":true");
}

struct starting {
    struct tide_session *s;
    const struct tide_run_options *opt;
    int64_t at; /* decided about the log up to here; 0: about none */
};

/* Everything that is looked at before a start; nothing is written, so a store that fails meanwhile is looked at again. */
static enum tide_code look_before_start(void *starting, struct tide_err *err)
{
    struct starting *m = starting;
    struct tide_session *s = m->s;
    enum tide_code code = session_sync(s, err);

    if (!code) /* what a new run continues with is read to the end of the log, but for what a rollback or a fork left */
        code = s->state->content.span_count > 1 ? trust_prove(s, err) : trust_check(s->store, &s->head, err);
    code = code ? code : check_unmoved(s, m->at, err);
    code = code ? code : session_refuse_held(s, err);
    code = code ? code : session_refuse_living(s, err);
    if (!code && m->opt->flags & TIDE_RUN_IF_OVER && !run_is_over(&s->state->ledger.run))
        code = refuse_unfinished(s, err);
    return code;
}

static enum tide_code start_once(struct starting *m, const struct draft *more, bool queued, tide_run **ret_run,
                                 struct tide_err *err)
{
    const struct tide_run_options *opt = m->opt;
    struct tide_session *s = m->s;
    struct draft d = DRAFT_INIT;
    char run_id[TIDE_ID_SIZE];
    bool continues = false;
    enum tide_code code = session_hold(s, look_before_start, m, err);

    if (!code) {
        const struct run *before = &s->state->ledger.run;

        continues = opt->flags & RUN_CONTINUES && before->end == RUN_OPEN && before->waiting;
        session_make_id(s->store, "run", run_id);
        if (continues)
            settle_for_resume(&d, s->state, "superseded", env_now_ms(s->store->env));
        else
            settle_for_new_run(&d, s->state);
        code = draft_message(&d, s->store, opt->message, err);
        code = code ? code : run_draft_started(&d, s, run_id, continues ? before : NULL, opt, err);
        for (size_t i = 0; !code && more && i < more->n; i++)
            draft_add(&d, more->events[i].kind, (struct str){more->events[i].body, more->events[i].body_len});
    }
    code = code ? code : begin_run(s, opt, &d, queued, ret_run, err);
    draft_done(&d);
    if (!code)
        (*ret_run)->unsure = continues; /* what the chain has done is read when it is first asked for */
    return code;
}

enum tide_code run_start_with(struct tide_session *s, const struct tide_run_options *opt, const struct draft *more,
                              bool queued, struct tide_run **ret_run, struct tide_err *err)
{
    struct starting m = {.s = s, .opt = opt};
    enum tide_code code;

    do {
        be_patient(s, opt);
        code = check_texts(opt, err) ? err->code : start_once(&m, more, queued, ret_run, err);
    } while (code == TIDE_CONFLICT);
    if (!code)
        return TIDE_OK;
    session_be_quick(s);
    return tide_wrap(err, "start a run");
}

enum tide_code tide_run_start(tide_session *s, const struct tide_run_options *opt, tide_run **ret_run,
                              struct tide_err *err)
{
    struct tide_run_options own;
    enum tide_code code;

    ERR_LOCAL(err);
    code = SIZED_READ(&own, tide_run_options, opt, err);
    return code ? code : run_start_with(s, &own, NULL, false, ret_run, err);
}

/* ---- resuming -------------------------------------------------------------------------------------------------------- */

struct resuming {
    struct tide_session *s;
    const struct tide_run_options *opt;
    struct status status;
    int64_t now_ms, answered_seq; /* not 0: this request was answered there */
    bool by_default;              /* the deadline of the wait has passed, and it answers itself */
    int64_t at;                   /* as in struct starting */
};

struct request {
    struct str id;
    int64_t seq;
    struct arena arena;
};

static int is_request(void *arg, const struct event *ev)
{
    struct request *q = arg;
    struct json *body;

    if (!str_eq(ev->kind, STR("run.resumed")) && !str_eq(ev->kind, STR("run.started")))
        return 0;
    arena_reset(&q->arena);
    if (!json_parse(&q->arena, ev->body, NULL, &body, NULL, NULL) &&
        str_eq(json_get_text(&q->arena, body, STR("request_id")), q->id))
        q->seq = ev->seq;
    return q->seq != 0;
}

/* The caller that needs no token may ask again as well. */
static enum tide_code find_request(struct resuming *m, struct tide_err *err)
{
    struct request q = {str_from(m->opt->request_id), 0, ARENA_INIT};
    enum tide_code code;

    if (!m->opt->request_id || m->opt->token)
        return TIDE_OK;
    code = store_read(m->s->store, &m->s->head, m->s->head.first_seq, 0, is_request, &q, err);
    arena_done(&q.arena);
    m->answered_seq = q.seq;
    return code;
}

/* An answer that is neither yes nor no decides nothing: it is refused, and the wait stays as it is. */
static enum tide_code check_word(struct resuming *m, const struct action *answer, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    if (strcmp(answer->wait_kind, tide_wait_kind_name(TIDE_WAIT_APPROVAL)) != 0)
        return TIDE_OK;
    if (m->opt->input && json_parse(&a, str_from(m->opt->input), NULL, &v, NULL, err))
        return tide_wrap(err, "the answer");
    if (!yes_no_check(&a, v, err))
        return TIDE_OK;
    tide_about_session(err, m->s->head.id);
    return action_hint(err, m->s->head.id, answer);
}

/* A message came instead of an answer: the wait is over, and a new run continues the chain. */
static bool is_superseded(const struct resuming *m)
{
    bool message = m->opt->message || (m->s->state->ledger.queue.live && settle_takes_queue(&m->s->state->ledger.run));

    return m->status.status == TIDE_STATUS_WAITING && message && !m->opt->input && !m->opt->token && !m->by_default;
}

static enum tide_code check_wait(struct resuming *m, struct tide_err *err)
{
    const struct run *r = &m->s->state->ledger.run;
    const struct action answer = {.action = TIDE_ACTION_ANSWER, .wait_kind = r->wait_kind ? r->wait_kind : "input"};
    char when[TIME_PEOPLE_SIZE];

    m->by_default = settle_deadline(r, m->now_ms) == TIDE_ON_DEADLINE_DEFAULT;
    if (m->opt->input && (m->by_default || (r->due_ms && !r->wait_key))) {
        tide_fail_session(err, TIDE_WRONG_STATE, m->s->head.id, "takes no answer any more: the deadline has passed");
        return tide_hint_with(err, TIDE_ACTION_RESUME, m->s->head.id, "\"without_answer\":true");
    }
    if (m->by_default)
        return TIDE_OK;
    if (is_superseded(m))
        return TIDE_OK;
    if (r->due_ms && r->due_ms > m->now_ms && !(m->opt->flags & TIDE_RUN_NOW)) {
        tide_fail_session(err, TIDE_WRONG_STATE, m->s->head.id, "sleeps until %s", time_people(when, r->due_ms));
        return tide_hint_with(err, TIDE_ACTION_RESUME, m->s->head.id, "\"now\":true");
    }
    if (!r->due_ms && !m->opt->token && !m->opt->input) { /* continuing is not answering */
        tide_fail_session(err, TIDE_WRONG_STATE, m->s->head.id, "waits for %s%s%.200s", answer.wait_kind,
                          r->question ? ": " : "", r->question ? r->question : "");
        return action_hint(err, m->s->head.id, &answer);
    }
    return r->due_ms ? TIDE_OK : check_word(m, &answer, err);
}

static enum tide_code check_answerless(struct resuming *m, struct tide_err *err)
{
    bool waits = m->status.status == TIDE_STATUS_INTERRUPTED_WAITING;

    if (!m->status.is_resumable)
        return tide_fail_session(err, TIDE_WRONG_STATE, m->s->head.id, "cannot be resumed: %s", m->status.why);
    if (m->opt->input) {
        tide_fail_session(err, TIDE_WRONG_STATE, m->s->head.id, "does not wait %s: %s",
                          waits ? "any more" : "for an answer", status_in_short(&m->status));
        if (waits)
            tide_hint(err, TIDE_ACTION_ROTATE_TOKEN, m->s->head.id);
        return tide_hint_with(err, TIDE_ACTION_RESUME, m->s->head.id, "\"without_answer\":true");
    }
    return TIDE_OK;
}

/* Everything that can be refused, before anything is written. */
static enum tide_code check_resume(struct resuming *m, struct tide_err *err)
{
    struct tide_session *s = m->s;
    bool waiting;
    enum tide_code code = trust_prove(s, err);

    code = code ? code : find_request(m, err);
    if (!code && m->opt->token)
        code = token_validate(s, str_from(m->opt->token), m->opt->request_id, m->now_ms, &m->answered_seq, err);
    if (code || m->answered_seq)
        return code;
    code = session_refuse_held(s, err);
    code = code ? code : session_refuse_living(s, err);
    if (code)
        return code;
    status_derive(&m->status, s->state, false, m->now_ms);
    waiting = m->status.status == TIDE_STATUS_WAITING;
    return waiting ? check_wait(m, err) : check_answerless(m, err);
}

static enum tide_code look_before_resume(void *resuming, struct tide_err *err)
{
    struct resuming *m = resuming;
    enum tide_code code = session_sync(m->s, err);

    m->now_ms = env_now_ms(m->s->store->env);
    m->answered_seq = 0;
    m->by_default = false;
    code = code ? code : check_unmoved(m->s, m->at, err);
    return code ? code : check_resume(m, err);
}

static enum tide_code resume_once(struct resuming *m, tide_run **ret_run, struct tide_err *err)
{
    struct tide_session *s = m->s;
    struct draft d = DRAFT_INIT;
    char run_id[TIDE_ID_SIZE];
    enum tide_code code = session_hold(s, look_before_resume, m, err);

    if (code || m->answered_seq)
        return code;
    if (m->status.status == TIDE_STATUS_WAITING && !is_superseded(m)) {
        token_moved(&d, m->opt->token ? "token.consumed" : "token.revoked", &s->state->ledger.run,
                    m->opt->token   ? NULL
                    : m->by_default ? "wait_timeout"
                                    : "resumed_locally",
                    m->opt->request_id);
        code = draft_message(&d, s->store, m->opt->message, err);
        code = code ? code : draft_resumed(&d, s, m->opt, m->by_default, err);
    } else {
        session_make_id(s->store, "run", run_id);
        settle_for_resume(&d, s->state, is_superseded(m) ? "superseded" : m->status.reason, m->now_ms);
        code = draft_message(&d, s->store, m->opt->message, err);
        code = code ? code : run_draft_started(&d, s, run_id, &s->state->ledger.run, m->opt, err);
    }
    draft_open(&d, "status.derived");
    draft_text(&d, "status", "running");
    draft_text(&d, "reason", "resumed");
    draft_close(&d);
    code = code ? code : begin_run(s, m->opt, &d, false, ret_run, err);
    draft_done(&d);
    if (code)
        return code;
    (*ret_run)->unsure = true;
    if (!(m->opt->flags & RUN_READ_LATER))
        code = chain_open(s, &(*ret_run)->done, err);
    (*ret_run)->unsure = code || m->opt->flags & RUN_READ_LATER;
    if (code) /* begun, and cannot continue: say so rather than leave it open */
        tide_run_close(TAKE(*ret_run));
    return code;
}

void run_look_resume(struct tide_session *s, const struct tide_run_options *opt, struct tide_err *ret_refused)
{
    struct resuming m = {.s = s, .opt = opt};

    (void)!look_before_resume(&m, ret_refused);
}

struct first_answer {
    struct tide_resumed *ret;
    const char *input; /* of this request; NULL: none */
    bool differs;
    struct arena arena;
};

static bool same_input(struct arena *a, const char *given, const struct json *recorded)
{
    struct buf one = BUF_INIT(SIZE_MAX / 4), two = BUF_INIT(SIZE_MAX / 4);
    struct json *v;
    bool same = !given || !recorded;

    if (!same && !json_parse(a, str_from(given), NULL, &v, NULL, NULL)) {
        json_write(&one, v);
        json_write(&two, recorded);
        same = str_eq(buf_view(&one), buf_view(&two));
    }
    buf_done(&one);
    buf_done(&two);
    return same;
}

static int take_first_answer(void *arg, const struct event *ev)
{
    struct first_answer *f = arg;
    struct json *body;

    if (json_parse(&f->arena, ev->body, NULL, &body, NULL, NULL))
        return 1;
    f->differs = !same_input(&f->arena, f->input, json_get(body, STR("input")));
    snprintf(f->ret->run_id, sizeof f->ret->run_id, "%.*s", STR_ARG(json_get_text(&f->arena, body, STR("run_id"))));
    return 1;
}

static enum tide_code answer_again(struct resuming *m, struct tide_resumed *ret, tide_run **ret_run,
                                   struct tide_err *err)
{
    struct tide_resumed ignored;
    struct first_answer f = {ret ? ret : &ignored, m->opt->input, false, ARENA_INIT};
    struct str given = str_from(m->opt->input);
    enum tide_code code;

    memset(f.ret, 0, sizeof *f.ret);
    f.ret->seq = m->answered_seq;
    f.ret->repeated = 1;
    if (redact_json(m->s->store, &f.arena, &given)) /* as it was stored */
        f.input = given.ptr;
    code = store_read(m->s->store, &m->s->head, m->answered_seq, m->answered_seq, take_first_answer, &f, err);
    arena_done(&f.arena);
    if (!code && f.differs) {
        tide_fail(err, TIDE_CONFLICT, "request id '%.100s' was used for another answer: give each answer its own",
                  m->opt->request_id);
        code = tide_about(err, TIDE_SUBJECT_ARGUMENT, "request_id");
    }
    *ret_run = NULL;
    return code;
}

enum tide_code tide_run_resume(tide_session *s, const struct tide_run_options *opt, struct tide_resumed *ret,
                               tide_run **ret_run, struct tide_err *err)
{
    struct tide_run_options own;
    struct resuming m = {.s = s, .opt = &own};
    enum tide_code code;

    ERR_LOCAL(err);
    if (SIZED_READ(&own, tide_run_options, opt, err))
        return err->code;
    do {
        be_patient(s, m.opt);
        code = check_texts(m.opt, err) ? err->code : resume_once(&m, ret_run, err);
    } while (code == TIDE_CONFLICT);
    if (!code && m.answered_seq)
        code = answer_again(&m, ret, ret_run, err);
    if (code || m.answered_seq)
        session_be_quick(s);
    if (code)
        return tide_wrap(err, "resume");
    if (ret && !m.answered_seq) {
        memset(ret, 0, sizeof *ret);
        snprintf(ret->run_id, sizeof ret->run_id, "%s", (*ret_run)->id);
        ret->seq = s->state->ledger.run.active_seq;
    }
    return TIDE_OK;
}

/* ---- whichever is due ------------------------------------------------------------------------------------------------ */

enum due { DUE_START, DUE_RESUME, DUE_NOTHING, DUE_ANSWER, DUE_PERSON };

/* The one rule for a program that is simply started again. */
static enum due what_is_due(const struct tide_session *s, const struct tide_run_options *opt, const struct status *st)
{
    const struct run *r = &s->state->ledger.run;
    bool delivers = opt->flags & TIDE_RUN_DELIVER && settle_delivers(s->state);
    bool answered = opt->input || opt->token || opt->message || delivers;

    if (!s->state->ledger.runs)
        return DUE_START;
    if (run_is_over(r) && (opt->message || delivers))
        return DUE_START;
    if (r->end == RUN_COMPLETED && !opt->token) /* a token is judged */
        return DUE_NOTHING;
    if (r->end == RUN_CANCELLED && !opt->token)
        return DUE_PERSON;
    if (st->status == TIDE_STATUS_WAITING && !answered && strcmp(st->reason, "due") != 0 &&
        !(r->due_ms && opt->flags & TIDE_RUN_NOW))
        return DUE_ANSWER;
    return DUE_RESUME;
}

static enum tide_code refuse_waiting(const struct tide_session *s, const struct status *st, struct tide_err *err)
{
    tide_fail(err, TIDE_WAITING, "session '%s': %s", s->head.id, st->why);
    tide_about_session(err, s->head.id);
    return st->next_count ? action_hint(err, s->head.id, &st->next[0]) : err->code;
}

static enum tide_code refuse_cancelled(const struct tide_session *s, const struct status *st, struct tide_err *err)
{
    tide_fail_session(err, TIDE_CANCELLED, s->head.id, "was cancelled: it is not resumed automatically");
    if (st->is_resumable && st->next_count) /* past a step that may have happened, if it was stopped inside one */
        action_hint(err, s->head.id, &st->next[0]);
    return tide_hint_with(err, TIDE_ACTION_START, s->head.id, "\"new_run\":true");
}

/* Decides about the log up to `seq`; TIDE_CONFLICT when there is more of it by the time that it begins. */
enum tide_code run_ensure_at(struct tide_session *s, const struct tide_run_options *opt, int64_t seq,
                             enum tide_ensured *ret_how, struct tide_run **ret_run, struct tide_err *err)
{
    struct starting start = {.s = s, .opt = opt, .at = seq};
    struct resuming resume = {.s = s, .opt = opt, .at = seq};
    struct status st;
    enum tide_code code = session_derive_status(s, &st, err);

    code = code ? code : check_texts(opt, err);
    code = code ? code : check_unmoved(s, seq, err);
    if (code)
        return code;
    *ret_how = TIDE_ENSURED_DONE;
    be_patient(s, opt);
    switch (what_is_due(s, opt, &st)) {
    case DUE_NOTHING:
        *ret_run = NULL;
        break;
    case DUE_ANSWER:
        code = refuse_waiting(s, &st, err);
        break;
    case DUE_PERSON:
        code = refuse_cancelled(s, &st, err);
        break;
    case DUE_START:
        *ret_how = TIDE_ENSURED_STARTED;
        code = start_once(&start, NULL, false, ret_run, err);
        break;
    case DUE_RESUME:
        *ret_how = TIDE_ENSURED_RESUMED;
        code = resume_once(&resume, ret_run, err);
        if (!code && resume.answered_seq) {
            *ret_how = TIDE_ENSURED_DONE;
            code = answer_again(&resume, NULL, ret_run, err);
        }
        break;
    }
    if (code || !*ret_run)
        session_be_quick(s);
    return code;
}

bool run_has_moved(struct tide_session *s, int64_t seq)
{
    struct tide_err ignored; /* the next attempt meets it again */

    return session_sync(s, &ignored) || s->state->seq != seq;
}

enum tide_code tide_run_ensure(tide_session *s, const struct tide_run_options *opt, enum tide_ensured *ret_how,
                               tide_run **ret_run, struct tide_err *err)
{
    struct tide_run_options own;
    int64_t seq;
    enum tide_code code;

    ERR_LOCAL(err);
    if (SIZED_READ(&own, tide_run_options, opt, err))
        return err->code;
    do {
        code = tide_session_refresh(s, err);
        seq = s->state->seq;
        code = code ? code : run_ensure_at(s, &own, seq, ret_how, ret_run, err);
    } while (code == TIDE_CONFLICT && run_has_moved(s, seq));
    return code;
}
