/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and resuming runs, with every kind of right and without; messages; new tokens. */
#include <stdio.h>

#include "life.h"

static const char *const once_names[] = {"a", "b", "c", NULL};

static bool open_for(struct world *w, struct proc *p, int s, tide_session **ret)
{
    struct tide_err err = {0};
    struct call c = call_begin(w, p);
    enum tide_code code = tide_session_open(p->store, w->sessions[s].id, TIDE_SESSION_APPEND, ret, &err);
    enum verdict v = call_end(w, p, &c, "open a session", code, &err);

    if (v == V_OTHER)
        wrong(w, "%s cannot be opened: %s", w->sessions[s].id, err.msg);
    if (v != V_OK && !code)
        tide_session_close(*ret); /* it died */
    return v == V_OK;
}

static void close_it(struct proc *p, tide_session *h)
{
    p->busy = true;
    tide_session_close(h);
    p->busy = false;
}

/* A run of this process begins. */
static void run_takes(struct world *w, struct proc *p, int s, tide_session *h, tide_run *r, bool retry)
{
    struct doing *d = &p->doing[s];
    struct log_fold t;

    took_over(w, p, s, false);
    *d = (struct doing){.h = h, .r = r, .retry = retry, .generation = w->sessions[s].generation};
    if (!call_faulty(w, &p->call) || !p->beat_ms)
        beat(w, p);
    note_clock(w);
    snprintf(d->run_id, sizeof d->run_id, "%s", tide_run_id(r));
    if (!log_fold_read(w, p, s, &t))
        return;
    if (log_fold_run(&t))
        snprintf(d->chain, sizeof d->chain, "%.*s", STR_ARG(log_fold_run(&t)->chain));
    if (log_fold_run(&t) && log_fold_run(&t)->end)
        d->may_lose = true; /* cancelled right after */
    if (!log_fold_run(&t) || !str_eq(log_fold_run(&t)->id, str_from(d->run_id)))
        wrong(w, "the run that was begun is not the latest of %s", w->sessions[s].id);
    log_fold_done(&t);
}

/* Nobody who lives and is not silent runs it: then "held" is wrong once dead processes have been silent long enough. */
static void judge_held(struct world *w, struct proc *p, int s)
{
    if (w->calm)
        wrong(w, "process %d is told that %s is held, and nobody is there", p->number, w->sessions[s].id);
}

static struct message *new_message(struct world *w, int s)
{
    struct message *m = ADD(w, messages);

    m->session = s;
    snprintf(m->text, sizeof m->text, "\"msg-%llu\"", (unsigned long long)++w->unique);
    return m;
}

void act_start(struct world *w, struct proc *p, int s)
{
    struct message *m = chance(w, 25) ? new_message(w, s) : NULL;
    struct tide_run_options opt = {.size = sizeof opt,
                                   .flags = chance(w, 40) ? TIDE_RUN_CONTINUE : 0,
                                   .message = m ? m->text : NULL,
                                   .trouble = life_trouble,
                                   .trouble_arg = p->self};
    tide_session *h = NULL;
    tide_run *r = NULL;
    struct tide_err err = {0};
    struct call c;
    enum tide_code code;
    enum verdict v;

    if (!open_for(w, p, s, &h))
        return;
    c = call_begin(w, p);
    code = tide_run_start(h, &opt, &r, &err);
    v = call_end(w, p, &c, "start", code, &err);
    if (v == V_OK) {
        if (m)
            m->acked = true;
        run_takes(w, p, s, h, r, false);
        return;
    }
    if (code == TIDE_HELD)
        judge_held(w, p, s);
    else if (v == V_OTHER)
        wrong(w, "a run cannot be started: %s: %s", tide_code_name(code), err.msg);
    tide_run_close(r);
    close_it(p, h);
}

/* ---- Resuming --------------------------------------------------------------------------------------------------- */

/* A token of this session (the latest, or an older one), or of another; NULL: none there. */
static const char *pick_token(struct world *w, int s, bool foreign, bool old)
{
    const char *found = NULL;
    size_t skip = old ? 1 + rnd(w, 3) : 0;

    for (size_t i = w->tokens.n; i-- > 0;) {
        const struct token_out *t = w->tokens.all[i];

        if ((t->session == s) == foreign)
            continue;
        found = t->text;
        if (skip-- == 0)
            break;
    }
    return found;
}

static void make_garbage(struct world *w, char text[TIDE_TOKEN_SIZE])
{
    static const char *const garbage[] = {"", "rt_", "hello", "rt_x.y",
                                          "rt_.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    const char *real = w->tokens.n ? w->tokens.all[rnd(w, w->tokens.n)]->text : "";

    if (strlen(real) > 10 && chance(w, 50))
        snprintf(text, TIDE_TOKEN_SIZE, "%.*s", (int)(strlen(real) - 1), real);
    else
        snprintf(text, TIDE_TOKEN_SIZE, "%s", garbage[rnd(w, 5)]);
}

/* A good secret with one letter changed: no token of anything. */
static void make_forged(struct world *w, int s, char text[TIDE_TOKEN_SIZE])
{
    const char *real = pick_token(w, s, false, false);
    char *at;

    snprintf(text, TIDE_TOKEN_SIZE, "%s", real ? real : "rt_zz.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    at = strchr(text, '.') + 1 + rnd(w, 20);
    *at = *at == 'A' ? 'B' : 'A';
}

struct resuming {
    const struct resume_plan *plan;
    struct request *q;
    bool repeated; /* q was asked before */
    struct tide_resumed out;
};

static const struct request *earlier_request(struct world *w, int s)
{
    for (size_t i = w->requests.n; i-- > 0;) {
        if (w->requests.all[i]->session == s && w->requests.all[i]->id[0] && chance(w, 60))
            return w->requests.all[i];
    }
    return NULL;
}

static void plan_request(struct world *w, int s, struct resuming *m)
{
    const struct resume_plan *plan = m->plan;
    const struct request *before = plan->repeat ? earlier_request(w, s) : NULL;
    struct request *q = m->q = ADD(w, requests);
    const char *token = NULL;

    if (before) {
        *q = *before;
        q->acked = false;
        m->repeated = true;
        return;
    }
    q->session = s;
    if (plan->answer)
        snprintf(q->input, sizeof q->input,
                 chance(w, 70)   ? "{\"decision\":true,\"reason\":\"ans-%llu\"}"
                 : chance(w, 70) ? "{\"decision\":false,\"reason\":\"ans-%llu\"}"
                                 : "\"ys-%llu\"",
                 (unsigned long long)++w->unique);
    if (chance(w, 50))
        snprintf(q->id, sizeof q->id, "req-%llu", (unsigned long long)++w->unique);
    if (plan->right == BY_TOKEN || plan->right == BY_OLD)
        token = pick_token(w, s, false, plan->right == BY_OLD);
    else if (plan->right == BY_FOREIGN && chance(w, 60))
        token = pick_token(w, s, true, false);
    if (token)
        snprintf(q->token, sizeof q->token, "%s", token);
    else if (plan->right == BY_FOREIGN)
        make_forged(w, s, q->token);
    else if (plan->right == BY_GARBAGE)
        make_garbage(w, q->token);
}

/* The token of ours that has this text; NULL: none has. */
static const struct token_out *token_known(struct world *w, const char *text)
{
    for (size_t i = 0; i < w->tokens.n; i++) {
        if (strcmp(w->tokens.all[i]->text, text) == 0)
            return w->tokens.all[i];
    }
    return NULL;
}

/* Whether the log and the clock bear out what was said of a token. */
static bool token_verdict_right(struct world *w, struct log_fold *t, const struct token_out *known, int s,
                                enum tide_code code)
{
    const struct t_token *token = known ? log_fold_token(t, str_from(known->id)) : NULL;
    const struct t_run *run = log_fold_run(t);
    bool ours = known && known->session == s, current = token && run && run->token == token;
    bool late = token && token->expires_ms && token->expires_ms <= w->max_wall_ms,
         over = current && run->deadline_ms && run->deadline_ms <= w->max_wall_ms;

    switch (code) {
    case TIDE_TOKEN_MALFORMED:
        return !known;
    case TIDE_TOKEN_FOREIGN:
        return !ours;
    case TIDE_TOKEN_CONSUMED:
        return ours && token && token->fate == FATE_CONSUMED;
    case TIDE_TOKEN_REVOKED:
        return ours && token && (token->fate == FATE_REVOKED || !current || run->end || !run->waiting);
    case TIDE_TOKEN_EXPIRED:
        return ours && token && (token->fate == FATE_EXPIRED || late || over);
    default:
        return false;
    }
}

static bool is_token_code(enum tide_code code)
{
    return code >= TIDE_TOKEN_MALFORMED && code <= TIDE_TOKEN_CONSUMED;
}

static void judge_refused(struct world *w, struct proc *p, int s, struct resuming *m, const struct call *c,
                          enum tide_code code, const struct tide_err *err)
{
    const struct token_out *known = token_known(w, m->q->token);
    struct log_fold t;

    (void)c;
    if (code == TIDE_HELD) {
        judge_held(w, p, s);
        return;
    }
    if (!is_token_code(code) && code != TIDE_INVALID && code != TIDE_WRONG_STATE)
        wrong(w, "a resume is refused: %s: %s", tide_code_name(code), err->msg);
    if (is_token_code(code) && !m->q->token[0] && m->plan->right != BY_GARBAGE)
        wrong(w, "the owner of the store needs no token, and is told: %s", err->msg);
    if (!log_fold_read(w, p, s, &t))
        return;
    if (is_token_code(code) && !token_verdict_right(w, &t, known, s, code))
        wrong(w, "a token of %s is refused as %s, and the log knows better", w->sessions[s].id, tide_code_name(code));
    log_fold_done(&t);
}

static const struct t_resume *resume_at(struct log_fold *t, int64_t seq)
{
    for (size_t i = 0; i < t->resumes.n; i++) {
        if (t->resumes.all[i]->seq == seq)
            return t->resumes.all[i];
    }
    return NULL;
}

/* The same request was answered before: with that very answer. */
static void judge_repeated(struct world *w, struct proc *p, int s, struct resuming *m)
{
    const struct request *q = m->q;
    const struct t_resume *at;
    struct log_fold t;

    for (size_t i = 0; i < w->requests.n; i++) {
        const struct request *o = w->requests.all[i];

        m->repeated |= o != q && o->session == s && strcmp(o->id, q->id) == 0; /* by another, meanwhile */
        if (o != q && o->session == s && o->acked && strcmp(o->id, q->id) == 0 && o->seq != m->out.seq)
            wrong(w, "request %s got seq %lld, and now %lld", q->id, (long long)o->seq, (long long)m->out.seq);
    }
    if (!m->repeated || !log_fold_read(w, p, s, &t)) {
        if (!m->repeated)
            wrong(w, "a request that was never made is said to be answered already");
        return;
    }
    at = resume_at(&t, m->out.seq);
    if (!at || !str_eq(at->request_id, str_from(q->id)))
        wrong(w, "request %s is answered with a seq that is not its own", q->id);
    log_fold_done(&t);
}

static void judge_resumed(struct world *w, struct proc *p, int s, struct resuming *m)
{
    const struct token_out *known = token_known(w, m->q->token);

    if (m->plan->right == BY_GARBAGE && !m->repeated)
        wrong(w, "process %d resumes %s with garbage", p->number, w->sessions[s].id);
    if (m->q->token[0] && (!known || known->session != s))
        wrong(w, "process %d resumes %s with a token of something else", p->number, w->sessions[s].id);
    for (size_t i = 0; i < w->requests.n; i++) {
        const struct request *o = w->requests.all[i];

        if (o != m->q && o->session == s && o->acked && m->q->token[0] && strcmp(o->token, m->q->token) == 0)
            wrong(w, "a token works twice");
        if (o != m->q && o->session == s && o->acked && m->q->id[0] && strcmp(o->id, m->q->id) == 0)
            wrong(w, "a request is carried out twice");
    }
    m->q->acked = true;
    m->q->seq = m->out.seq;
    snprintf(m->q->run_id, sizeof m->q->run_id, "%s", m->out.run_id);
}

void act_resume(struct world *w, struct proc *p, int s, const struct resume_plan *plan)
{
    struct resuming m = {.plan = plan};
    struct tide_run_options opt = {.size = sizeof opt,
                                   .flags = (chance(w, 40) ? TIDE_RUN_CONTINUE : 0u) | (plan->now ? TIDE_RUN_NOW : 0u),
                                   .by = plan->now ? "now" : NULL,
                                   .retry = plan->retry ? once_names : NULL,
                                   .trouble = life_trouble,
                                   .trouble_arg = p->self};
    tide_session *h = NULL;
    tide_run *r = NULL;
    struct tide_err err = {0};
    struct call c;
    enum tide_code code;
    enum verdict v;

    if (!open_for(w, p, s, &h))
        return;
    plan_request(w, s, &m);
    opt.token = m.q->token[0] || (plan->right == BY_GARBAGE && !m.repeated) ? m.q->token : NULL;
    opt.request_id = m.q->id[0] ? m.q->id : NULL;
    opt.input = m.q->input[0] ? m.q->input : NULL;
    c = call_begin(w, p);
    code = tide_run_resume(h, &opt, &m.out, &r, &err);
    v = call_end(w, p, &c, opt.token ? "resume with a token" : "resume", code, &err);
    if (v == V_OK && r) {
        judge_resumed(w, p, s, &m);
        run_takes(w, p, s, h, r, plan->retry);
        return;
    }
    if (v == V_OK)
        judge_repeated(w, p, s, &m);
    else if (v == V_OTHER)
        judge_refused(w, p, s, &m, &c, code, &err);
    if (v != V_OK)
        tide_run_close(r);
    close_it(p, h);
}

/* ---- Messages and tokens ---------------------------------------------------------------------------------------- */

void act_message(struct world *w, struct proc *p, int s)
{
    struct message *m = new_message(w, s);
    char body[128];
    struct tide_new_event ev = {"queue.added", body, 0};
    struct tide_err err = {0};
    struct call c;
    enum tide_code code;

    snprintf(body, sizeof body, "{\"queue_id\":\"q%llu\",\"content\":%s}", (unsigned long long)++w->unique, m->text);
    c = call_begin(w, p);
    code = tide_session_input(p->store, w->sessions[s].id, -1, &ev, 1, NULL, &err);
    switch (call_end(w, p, &c, "message", code, &err)) {
    case V_OK:
        m->acked = true;
        break;
    case V_OTHER:
        wrong(w, "a message is refused: %s: %s", tide_code_name(code), err.msg);
        break;
    default:
        break;
    }
}

void act_rotate(struct world *w, struct proc *p, int s)
{
    char text[TIDE_TOKEN_SIZE] = "";
    tide_session *h = NULL;
    struct tide_err err = {0};
    int64_t deadline = chance(w, 60) ? 0 : now(w) + 3000 + (int64_t)rnd(w, 40000);
    struct call c;
    enum tide_code code;
    enum verdict v;

    if (!open_for(w, p, s, &h))
        return;
    c = call_begin(w, p);
    code = tide_token_rotate(h, deadline, 0, text, &err);
    v = call_end(w, p, &c, "rotate", code, &err);
    if (v == V_OK) {
        took_over(w, p, s, false);
        keep_token(w, s, text);
    } else if (code == TIDE_HELD) {
        judge_held(w, p, s);
    } else if (v == V_OTHER && code != TIDE_WRONG_STATE) {
        wrong(w, "a token cannot be rotated: %s: %s", tide_code_name(code), err.msg);
    }
    close_it(p, h);
}

/* The question that the log has as answered with no, or any: what cannot be asked again is refused. */
static void pick_question(struct world *w, struct proc *p, int s, char name[8], bool *ret_can)
{
    struct log_fold t;

    *ret_can = false;
    snprintf(name, 8, "%c", (char)('a' + (int)rnd(w, NAMES)));
    if (!log_fold_read(w, p, s, &t))
        return;
    if (t.no && chance(w, 90)) { /* of a key "chain/name/use" */
        name[0] = t.no->key.ptr[log_fold_run(&t)->chain.len + 1];
        *ret_can = !t.then;
    }
    log_fold_done(&t);
}

void act_ask_again(struct world *w, struct proc *p, int s)
{
    char text[TIDE_TOKEN_SIZE] = "", name[8];
    tide_session *h = NULL;
    struct tide_err err = {0};
    bool can, run_here = p->doing[s].r != NULL;
    struct call c;
    enum tide_code code;
    enum verdict v;

    if (run_here)
        return;
    pick_question(w, p, s, name, &can);
    if (!proc_alive(p) || !open_for(w, p, s, &h))
        return;
    w->sessions[s].asked_again = true;
    c = call_begin(w, p);
    code = tide_session_ask_again(h, name, text, &err);
    v = call_end(w, p, &c, "ask again", code, &err);
    if (v == V_OK) {
        took_over(w, p, s, false);
        keep_token(w, s, text);
    } else if (code == TIDE_HELD) {
        judge_held(w, p, s);
    } else if (v == V_OTHER && ((code != TIDE_INVALID && code != TIDE_NOT_FOUND) || (can && w->calm))) {
        wrong(w, "question '%s' cannot be asked again: %s: %s", name, tide_code_name(code), err.msg);
    }
    close_it(p, h);
}

/* ---- What a status calls for ------------------------------------------------------------------------------------ */

static void begin_waiting(struct world *w, struct proc *p, int s, bool sleeps)
{
    uint64_t x = rnd(w, 100);
    struct resume_plan plan = {.right = BY_OWNER, .retry = chance(w, 30), .repeat = chance(w, 8)};

    if (sleeps) {
        plan.now = chance(w, 20);
        act_resume(w, p, s, &plan);
        return;
    }
    plan.answer = true;
    plan.right = x < 55 ? BY_TOKEN : x < 65 ? BY_OLD : x < 70 ? BY_FOREIGN : x < 75 ? BY_GARBAGE : BY_OWNER;
    if (x < 92)
        act_resume(w, p, s, &plan);
    else
        act_start(w, p, s);
}

static void begin_interrupted(struct world *w, struct proc *p, int s, bool waited)
{
    struct resume_plan plan = {
        .right = waited && chance(w, 20) ? BY_TOKEN : BY_OWNER, .retry = chance(w, 30), .repeat = chance(w, 8)};

    if (waited && chance(w, 35))
        act_rotate(w, p, s);
    else if (chance(w, 90))
        act_resume(w, p, s, &plan);
    else
        act_start(w, p, s);
}

/* Somebody lives who believes that the latest run is his. */
static bool is_run(const struct world *w, int s)
{
    for (int i = 0; i < PROCS; i++) {
        if (proc_alive(&w->procs[i]) && w->procs[i].doing[s].r && !w->procs[i].doing[s].may_lose)
            return true;
    }
    return false;
}

void act_begin(struct world *w, struct proc *p, int s)
{
    struct resume_plan plan = {.right = BY_OWNER, .retry = chance(w, 30), .repeat = chance(w, 10)};
    struct told told;
    bool sleeps;
    struct log_fold t;

    if (p->doing[s].r || !log_fold_read(w, p, s, &t))
        return;
    told = told_status(&t, is_run(w, s), now(w));
    sleeps =
        log_fold_run(&t) && (log_fold_run(&t)->due_ms || (told_defaulted(log_fold_run(&t), now(w)) && chance(w, 60)));
    log_fold_done(&t);
    if (told.status == TIDE_STATUS_WAITING)
        begin_waiting(w, p, s, sleeps);
    else if (told.outcome == TIDE_OUTCOME_INTERRUPTED)
        begin_interrupted(w, p, s, told.status == TIDE_STATUS_INTERRUPTED_WAITING);
    else if (told.status == TIDE_STATUS_IDLE && told.resumable && chance(w, 80))
        act_resume(w, p, s, &plan);
    else if (told.status == TIDE_STATUS_IDLE || chance(w, 10))
        act_start(w, p, s);
    else if (chance(w, 10))
        act_resume(w, p, s, &plan);
}
