/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's log tells, folded here once more and independently of the library; and what it may never tell, whatever
 * happened: two runs at once, an end after the end, a step of a run that is over, a token used twice, a wait answered twice.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "life.h"

struct telling {
    struct log_fold *t;
    const struct tide_event *ev;
    const struct json *body;
};

static void *add(struct log_fold *t, void *list, size_t size)
{
    LIST(effect) *l = list;
    void *one = arena_zero(&t->arena, size);

    MEM_ROOM(l->all, l->n, l->cap);
    l->all[l->n++] = one;
    return one;
}
#define TELL(t, list) add(t, &(t)->list, sizeof **(t)->list.all)

static struct str text(struct telling *x, const char *key)
{
    return arena_dup(&x->t->arena, json_get_text(&x->t->arena, x->body, str_from(key)));
}

static struct str value(struct telling *x, const char *key)
{
    const struct json *v = json_get(x->body, str_from(key));

    return v ? arena_dup(&x->t->arena, json_source(v)) : STR("");
}

static int64_t when(struct telling *x, const char *key)
{
    int64_t ms = 0;

    return time_parse(text(x, key), &ms) ? ms : 0;
}

static void never(struct telling *x, const char *what)
{
    wrong(x->t->w, "%s seq %lld (%s): %s", x->t->w->sessions[x->t->session].id, (long long)x->ev->seq, x->ev->kind,
          what);
}

struct t_run *log_fold_run(struct log_fold *t)
{
    return t->runs.n ? t->runs.all[t->runs.n - 1] : NULL;
}

struct t_token *log_fold_token(struct log_fold *t, struct str id)
{
    for (size_t i = 0; i < t->tokens.n; i++) {
        if (str_eq(t->tokens.all[i]->id, id))
            return t->tokens.all[i];
    }
    return NULL;
}

struct t_wait *log_fold_wait(struct log_fold *t, struct str key)
{
    for (size_t i = 0; i < t->waits.n; i++) {
        if (str_eq(t->waits.all[i]->key, key))
            return t->waits.all[i];
    }
    return NULL;
}

struct t_step *log_fold_step(struct log_fold *t, struct str key)
{
    for (size_t i = 0; i < t->steps.n; i++) {
        if (str_eq(t->steps.all[i]->key, key))
            return t->steps.all[i];
    }
    return NULL;
}

/* The latest run, which the event must be about and which must be open; NULL: it is not. */
static struct t_run *open_run(struct telling *x)
{
    struct t_run *r = log_fold_run(x->t);

    if (!r || r->end) {
        never(x, "no run is open");
        return NULL;
    }
    if (json_get(x->body, STR("run_id")) && !str_eq(text(x, "run_id"), r->id)) {
        never(x, "it is about a run that is over");
        return NULL;
    }
    return r;
}

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

static void tell_resume(struct telling *x)
{
    struct t_resume *m = TELL(x->t, resumes);

    *m = (struct t_resume){x->ev->seq, arena_dup(&x->t->arena, str_from(x->ev->kind)), text(x, "run_id"),
                           text(x, "request_id"), value(x, "input")};
    for (size_t i = 0; i + 1 < x->t->resumes.n; i++) {
        if (m->request_id.len && str_eq(x->t->resumes.all[i]->request_id, m->request_id))
            never(x, "this request was carried out before");
    }
}

static void tell_started(struct telling *x)
{
    struct log_fold *t = x->t;
    struct t_run *before = log_fold_run(t), *r;
    struct str from = json_get_text(&t->arena, json_get(x->body, STR("resumed_from")), STR("run_id"));

    if (before && !before->end)
        never(x, "the run before has not ended");
    if (from.len && (!before || !str_eq(from, before->id)))
        never(x, "it continues a run that is not the latest");
    if (!from.len) /* another chain: what was denied in the one before stays so */
        t->no = NULL;
    r = TELL(t, runs);
    r->id = text(x, "run_id");
    r->chain = from.len && before ? before->chain : r->id;
    r->seq = x->ev->seq;
    r->resumable = -1;
    tell_resume(x);
}

/* Nobody answered, and it was told to fail then. */
static bool fails_in_time(struct telling *x, const struct t_run *r)
{
    return strcmp(x->ev->kind, "run.failed") == 0 && str_eq(r->on_deadline, STR("fail")) && r->deadline_ms &&
           r->deadline_ms <= x->ev->ts_ms && str_eq(text(x, "reason"), STR("wait_timeout"));
}

static void tell_ended(struct telling *x)
{
    struct t_run *r = log_fold_run(x->t);
    bool cancels = strcmp(x->ev->kind, "run.cancelled") == 0, cuts = strcmp(x->ev->kind, "run.interrupted") == 0;

    if (!r || !str_eq(text(x, "run_id"), r->id)) {
        never(x, "it ends a run that is not the latest");
        return;
    }
    if (r->end && !(cancels && strcmp(r->end, "run.interrupted") == 0))
        never(x, "the run had ended already");
    if (r->waiting && !cancels && !cuts && !fails_in_time(x, r))
        never(x, "a run that waits ends by itself");
    if (r->waiting && cuts && str_eq(text(x, "reason"), STR("wait_timeout")) && r->on_deadline.len &&
        !str_eq(r->on_deadline, STR("interrupt")))
        never(x, "its deadline was to do something else");
    if (r->token && r->token->fate == FATE_ACTIVE)
        never(x, "the run ends and its token stays good");
    r->end = arena_printf(&x->t->arena, "%s", x->ev->kind);
    r->reason = text(x, "reason");
    if (json_get(x->body, STR("resumable")))
        r->resumable = json_get_bool(x->body, STR("resumable"), true);
}

static void tell_waiting(struct telling *x)
{
    struct t_run *r = open_run(x);
    struct str token = text(x, "resume_token_id"), key = text(x, "wait_key");
    struct t_wait *wait = log_fold_wait(x->t, key);

    if (!r)
        return;
    if (!key.len && (!r->defaulted || !when(x, "due_at")))
        never(x, "it waits for nothing that has a name");
    r->waiting = true;
    r->defaulted = false;
    r->on_deadline = text(x, "on_deadline");
    r->value = value(x, "default");
    r->wait_key = key;
    r->wait_kind = text(x, "wait_kind");
    r->deadline_ms = when(x, "deadline_at");
    r->due_ms = when(x, "due_at");
    r->token = token.len ? log_fold_token(x->t, token) : NULL;
    if (token.len && (!r->token || r->token->fate != FATE_ACTIVE))
        never(x, "its token is not good");
    if (wait && wait->answer_seq)
        never(x, "this wait was answered before");
    if (wait && wait == x->t->no) /* asked again, it is open */
        x->t->no = NULL;
    if (wait && wait->due_ms != r->due_ms)
        never(x, "this sleep was to be over at another time");
    if (!wait && key.len) {
        wait = TELL(x->t, waits);
        wait->key = key;
        wait->seq = x->ev->seq;
        wait->due_ms = r->due_ms;
    }
}

/* Of one that is about to be answered: a default counts from the deadline on and not before, an answer only before. */
static void check_in_time(struct telling *x, const struct t_run *r)
{
    bool over = r->deadline_ms && r->deadline_ms <= x->ev->ts_ms;
    struct str said = value(x, "input");

    if (!str_eq(text(x, "by"), STR("deadline"))) {
        if (over)
            never(x, "the deadline had passed");
        if (str_eq(r->wait_kind, STR("approval")) && !str_starts(said, STR("{\"decision\":")))
            never(x, "an answer that is neither yes nor no was taken");
    } else if (!over || !str_eq(r->on_deadline, STR("default")) || !str_eq(said, r->value)) {
        never(x, "its default answers, and must not");
    }
}

static void tell_resumed(struct telling *x)
{
    struct t_run *r = open_run(x);
    struct str by = text(x, "by");
    struct t_wait *wait = r ? log_fold_wait(x->t, r->wait_key) : NULL;
    bool consumed = str_eq(x->t->last_kind, STR("token.consumed"));

    if (!r)
        return;
    if (!r->waiting)
        never(x, "it does not wait");
    if (r->token && r->token->fate == FATE_ACTIVE)
        never(x, "it goes on and its token stays good");
    if (str_eq(by, STR("token")) != consumed || (consumed && r->token && !str_eq(x->t->last_token, r->token->id)))
        never(x, "it and the token's use are not one");
    if (consumed && r->token && r->token->expires_ms && r->token->expires_ms <= x->ev->ts_ms)
        never(x, "its token had expired");
    check_in_time(x, r);
    if (r->due_ms > x->ev->ts_ms && !str_eq(by, STR("now")))
        never(x, "the sleep is not over yet");
    r->waiting = false;
    r->deadline_ms = 0;
    r->defaulted = str_eq(by, STR("deadline"));
    if (wait && wait->answer_seq)
        never(x, "this wait was answered before");
    if (wait) {
        wait->answer_seq = x->ev->seq;
        wait->answer = value(x, "input");
        if (str_eq(r->wait_kind, STR("approval")) && str_starts(wait->answer, STR("{\"decision\":false"))) {
            x->t->no = wait;
            x->t->no_seq = x->ev->seq;
            x->t->then = NULL;
        } else {
            x->t->then = x->t->then ? x->t->then : "an answer";
        }
    }
    r->wait_key = STR("");
    tell_resume(x);
}

/* A no is taken back: while nothing came after it that may depend on it, and with nobody at work. */
static void tell_rolled_back(struct telling *x)
{
    struct log_fold *t = x->t;
    struct t_run *r = log_fold_run(t);
    struct t_wait *wait = t->no;

    if (!wait || json_get_int(x->body, STR("to_seq"), 0) != t->no_seq - 1) {
        never(x, "nothing was answered with no there");
        return;
    }
    if (t->then)
        never(x, arena_printf(&t->arena, "%s came after the answer", t->then));
    if (r && !r->end)
        never(x, "a run is open");
    if (wait->answer_seq && wait->again < (int)(sizeof wait->before / sizeof wait->before[0]))
        wait->before[wait->again++] = wait->answer;
    for (size_t i = 0; i < t->marks.n; i++) { /* what came behind it is made anew */
        if (t->marks.all[i]->seq > t->no_seq)
            t->marks.all[i]->seq = 0;
    }
    for (size_t i = 0; i < t->waits.n; i++) {
        if (t->waits.all[i]->seq > t->no_seq)
            t->waits.all[i]->key = STR("");
    }
    wait->again_seq = x->ev->seq;
    wait->answer_seq = 0;
    wait->answer = STR("");
}

/* ---- Tokens, messages, steps -------------------------------------------------------------------------------------- */

static void tell_minted(struct telling *x)
{
    struct t_token *token;

    if (log_fold_token(x->t, text(x, "token_id")))
        never(x, "minted twice");
    token = TELL(x->t, tokens);
    token->id = text(x, "token_id");
    token->expires_ms = when(x, "expires_at");
}

static void tell_token(struct telling *x)
{
    static const struct {
        const char *kind;
        enum token_fate fate;
    } moves[] = {{"token.consumed", FATE_CONSUMED}, {"token.revoked", FATE_REVOKED}, {"token.expired", FATE_EXPIRED}};
    struct t_token *token = log_fold_token(x->t, text(x, "token_id"));

    if (!token || token->fate != FATE_ACTIVE)
        never(x, "the token was not good any more");
    for (size_t i = 0; i < 3 && token; i++) {
        if (strcmp(moves[i].kind, x->ev->kind) == 0)
            token->fate = moves[i].fate;
    }
    if (token && token->fate == FATE_CONSUMED)
        token->consumed_seq = x->ev->seq;
}

static void tell_added(struct telling *x)
{
    struct t_message *m;
    struct str id = text(x, "queue_id"), content = value(x, "content");

    for (size_t i = 0; i < x->t->messages.n; i++) {
        if (str_eq(x->t->messages.all[i]->id, id) || str_eq(x->t->messages.all[i]->content, content))
            never(x, "this message is there already");
    }
    m = TELL(x->t, messages);
    m->id = id;
    m->content = content;
    m->seq = x->ev->seq;
}

static void tell_taken(struct telling *x)
{
    struct str id = text(x, "queue_id");

    for (size_t i = 0; i < x->t->messages.n; i++) {
        struct t_message *m = x->t->messages.all[i];

        if (str_eq(m->id, id) && m->taken++)
            never(x, "this message was taken before");
    }
}

static void tell_running(struct telling *x)
{
    struct t_run *r = open_run(x);

    if (r && r->waiting)
        never(x, "the run waits");
}

static void tell_set(struct telling *x)
{
    tell_running(x);
    x->t->then = x->t->then ? x->t->then : "memory";
}

static void tell_mark(struct telling *x)
{
    struct t_mark *mark;
    struct str key = text(x, "key");

    tell_running(x);
    for (size_t i = 0; i < x->t->marks.n; i++) {
        if (x->t->marks.all[i]->seq && str_eq(x->t->marks.all[i]->key, key))
            never(x, "the program made this checkpoint before");
    }
    mark = TELL(x->t, marks);
    mark->key = key;
    mark->seq = x->ev->seq;
}

static struct t_step *step_at(struct telling *x)
{
    struct str call = text(x, "call_id");
    struct t_run *r = log_fold_run(x->t);

    tell_running(x);
    if (r && (call.len <= r->chain.len || memcmp(call.ptr, r->chain.ptr, r->chain.len) != 0))
        never(x, "a step of another chain");
    for (size_t i = 0; i < x->t->steps.n; i++) {
        if (str_eq(x->t->steps.all[i]->call_id, call))
            return x->t->steps.all[i];
    }
    return NULL;
}

static void tell_step_started(struct telling *x)
{
    struct t_step *step = step_at(x);

    if (step && step->over)
        never(x, "the step was completed before");
    if (!step) {
        step = TELL(x->t, steps);
        step->call_id = text(x, "call_id");
        step->key = text(x, "key");
    }
    x->t->then = x->t->then ? x->t->then : "a step";
    step->started++;
}

static void tell_step_ended(struct telling *x)
{
    struct t_step *step = step_at(x);
    struct str result = value(x, "result");

    if (!step) {
        never(x, "the step never began");
        return;
    }
    if (strcmp(x->ev->kind, "tool.completed") == 0) {
        if (step->over && !str_eq(step->result, result))
            never(x, "the step had another result");
        step->over = true;
        step->completed++;
        step->result = result;
    } else if (strcmp(x->ev->kind, "tool.failed") == 0) {
        step->failed++;
        if (step->over)
            never(x, "the step was completed before");
    }
}

/* ---- The log ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *kind;
    void (*tell)(struct telling *);
} tellers[] = {
    {"run.started", tell_started},
    {"run.completed", tell_ended},
    {"run.failed", tell_ended},
    {"run.cancelled", tell_ended},
    {"run.interrupted", tell_ended},
    {"run.waiting", tell_waiting},
    {"run.resumed", tell_resumed},
    {"token.minted", tell_minted},
    {"token.consumed", tell_token},
    {"token.revoked", tell_token},
    {"token.expired", tell_token},
    {"queue.added", tell_added},
    {"queue.taken", tell_taken},
    {"tool.started", tell_step_started},
    {"tool.completed", tell_step_ended},
    {"tool.failed", tell_step_ended},
    {"tool.unknown", tell_step_ended},
    {"memory.set", tell_set},
    {"checkpoint", tell_mark},
    {"cancel.requested", NULL},
    {"status.derived", NULL},
    {"session.created", NULL},
    {"session.rolled_back", tell_rolled_back},
};

static void note_epoch(struct log_fold *t, const struct tide_event *ev)
{
    if ((size_t)ev->seq >= t->epochs_cap) {
        t->epochs_cap = t->epochs_cap ? t->epochs_cap * 2 : 128;
        t->epochs = mem_grow(t->epochs, t->epochs_cap * sizeof *t->epochs);
    }
    t->epochs[ev->seq] = ev->epoch;
}

static int tell(void *arg, const struct event *in)
{
    struct log_fold *t = arg;
    struct str text_kept = arena_dup(&t->arena, in->body), kind = arena_dup(&t->arena, in->kind);
    const struct tide_event one = {.seq = in->seq, .ts_ms = in->ts_ms, .epoch = in->epoch, .kind = kind.ptr},
                            *ev = &one;
    struct json *body = NULL;
    struct telling x = {t, ev, NULL};

    if (ev->seq != t->seq + 1)
        never(&x, "a gap before it");
    if (ev->epoch < t->epoch)
        never(&x, "the epoch goes back");
    if (json_parse(&t->arena, text_kept, NULL, &body, NULL, NULL))
        never(&x, "not JSON");
    x.body = body;
    t->seq = ev->seq;
    t->epoch = ev->epoch;
    note_epoch(t, ev);
    for (size_t i = 0; i < sizeof tellers / sizeof tellers[0]; i++) {
        if (strcmp(tellers[i].kind, ev->kind) == 0 && tellers[i].tell)
            tellers[i].tell(&x);
    }
    t->last_kind = kind;
    t->last_token = text(&x, "token_id");
    return 0;
}

static int print_one(void *arg, const struct event *ev)
{
    (void)arg;
    printf("#   %lld epoch %lld at %lld %.*s %.*s\n", (long long)ev->seq, (long long)ev->epoch,
           (long long)(ev->ts_ms % 100000000), STR_ARG(ev->kind), STR_ARG(ev->body));
    return 0;
}

static enum tide_code fold_log(struct world *w, struct proc *p, int s, struct log_fold *t, struct tide_err *err)
{
    struct store *store = store_of(p->store);
    bool failed = w->failed;
    struct head h;
    enum tide_code code;

    memset(t, 0, sizeof *t);
    t->w = w;
    t->session = s;
    p->busy = true;
    w->depth++; /* nobody acts while it is looked */
    code = store_head(store, str_from(w->sessions[s].id), &h, err);
    code = code ? code : store_read(store, &h, 1, 0, tell, t, err);
    if (!code && w->failed && !failed && w->verbose)
        (void)!store_read(store, &h, 1, 0, print_one, NULL, err);
    w->depth--;
    p->busy = false;
    return code;
}

/* What is outside must know what the log says: a disk that cannot be read is lifted from its trouble, once. */
bool log_fold_read(struct world *w, struct proc *p, int s, struct log_fold *t)
{
    struct tide_err err = {0};
    enum tide_code code = fold_log(w, p, s, t, &err);

    if (code && proc_alive(p) && w->armed) {
        disarm(w);
        log_fold_done(t);
        code = fold_log(w, p, s, t, &err);
    }
    if (code && proc_alive(p))
        wrong(w, "%s cannot be read: %s", w->sessions[s].id, err.msg);
    if (!code && proc_alive(p))
        return true;
    log_fold_done(t);
    return false;
}

void log_fold_done(struct log_fold *t)
{
    free(t->runs.all);
    free(t->tokens.all);
    free(t->waits.all);
    free(t->steps.all);
    free(t->messages.all);
    free(t->resumes.all);
    free(t->marks.all);
    free(t->epochs);
    arena_done(&t->arena);
    memset(t, 0, sizeof *t);
}
