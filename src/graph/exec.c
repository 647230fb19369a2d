/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of one execution, its batches and its end. The caller is a worker too, and the only one as long as no two
 * nodes run beside each other. What is pure is gathered and appended in big pieces; what touches the world begins only
 * when its start is on disk. Nothing is reported before it is.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "graph/resume.h"
#include "session/redact.h"

#define LOOK_NS 200000000 /* between looks at what others want */
#define TICK_NS 100000000
#define TELL_NS 500000000
#define NOTES_MAX 16384

void exec_init(struct exec *x)
{
    x->scratch = x->fold = (struct arena)ARENA_INIT;
    x->guard = (struct guard)GUARD_INIT;
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_init(&x->done_lock, NULL);
    cond_init_monotonic(&x->change);
}

int64_t exec_now_ns(const struct exec *x)
{
    return x->s->store->env->ops->mono_ns(x->s->store->env);
}

/* ---- recording ---- */

struct json_out *exec_open(struct exec *x, const char *kind)
{
    if (!x->draft.n)
        x->draft_since_ns = exec_now_ns(x);
    return draft_open(&x->draft, kind);
}

void exec_close(struct exec *x)
{
    struct event ev = {.seq = x->view->seq + 1, .ts_ms = env_now_ms(x->s->store->env)};
    const struct tide_new_event *in;

    draft_close(&x->draft);
    INVARIANT(x->draft.n > 0);
    redact_latest(x->s->store, &x->draft); /* what the nodes after it are given is what is stored */
    in = &x->draft.events[x->draft.n - 1];
    ev.kind = str_from(in->kind);
    ev.body = (struct str){in->body, in->body_len};
    state_apply(x->view, &ev, &x->fold);
}

/* Of events that change nothing of what is looked at here. */
void exec_close_mark(struct exec *x)
{
    draft_close(&x->draft);
}

struct json_out *exec_open_node(struct exec *x, const char *kind, const char *name, int64_t visit)
{
    struct json_out *o = exec_open(x, kind);

    json_out_kstr(o, STR("node"), str_from(name));
    json_out_kint(o, STR("visit"), visit);
    if (strcmp(kind, "node.started") == 0)
        tasks_begun(x, name);
    return o;
}

/* ---- reporting ---- */

static char *kept(const char *text)
{
    return text ? mem_dup(str_from(text)) : NULL;
}

/* A failing store was reported at once, and the session logs it. */
static void exec_log(const struct exec *x, const struct tide_graph_event *ev)
{
    static const char *const messages[] = {
        [TIDE_GRAPH_NODE_START] = "node started", [TIDE_GRAPH_NODE_END] = "node complete",
        [TIDE_GRAPH_NODE_FAILED] = "node failed", [TIDE_GRAPH_EDGE] = "edge taken",
        [TIDE_GRAPH_CHECKPOINT] = "checkpoint",   [TIDE_GRAPH_NOTICE] = "notice of the graph",
    };
    bool warns = ev->what == TIDE_GRAPH_NODE_FAILED || ev->what == TIDE_GRAPH_NOTICE;

    log_write(warns ? TIDE_LOG_WARN : TIDE_LOG_DEBUG, messages[ev->what], log_text("session", x->s->head.id),
              log_text("node", ev->node), log_text("to", ev->to),
              log_text("type", ev->checkpoint_type ? tide_checkpoint_type_name(ev->checkpoint_type) : NULL),
              log_text(ev->what == TIDE_GRAPH_CHECKPOINT ? "id" : "why", ev->text));
}

void exec_note(struct exec *x, const struct tide_graph_event *ev)
{
    struct note *n;

    exec_log(x, ev);
    if (!x->opt->event)
        return;
    MEM_ROOM(x->notes, x->n_notes, x->cap_notes);
    n = &x->notes[x->n_notes++];
    *n = (struct note){*ev, kept(ev->node), kept(ev->to), kept(ev->text)};
    n->ev.node = n->node;
    n->ev.to = n->to;
    n->ev.text = n->text;
    if (ev->what == TIDE_GRAPH_CHECKPOINT)
        n->ev.checkpoint_id = n->text;
}

void exec_notice(struct exec *x, const char *node, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NOTICE, .node = node, .text = text});
}

void exec_notice_edge(struct exec *x, const char *from, const char *to, const char *what, const char *path)
{
    char text[512];

    snprintf(text, sizeof text, "edge %s → %s not taken: %s (%s)", from, to, what, path);
    exec_note(x, &(struct tide_graph_event){.what = TIDE_GRAPH_NOTICE, .node = from, .to = to, .text = text});
}

static void tell_all(struct exec *x)
{
    INVARIANT(!x->draft.n && !x->run->queue.n); /* what is reported is on disk */
    for (size_t i = 0; i < x->n_notes; i++) {
        struct note *n = &x->notes[i];

        x->opt->event(x->opt->arg, &n->ev);
        free(n->node);
        free(n->to);
        free(n->text);
    }
    x->n_notes = 0;
    x->told_ns = exec_now_ns(x);
}

void exec_tell_now(struct exec *x, const char *text, bool held, const struct tide_err *why)
{
    if (x->opt->event)
        x->opt->event(x->opt->arg, &(struct tide_graph_event){
                                       .what = TIDE_GRAPH_NOTICE, .text = text, .delay_ms = held ? -1 : 0, .why = why});
}

static void tick_clock(struct exec *x)
{
    int64_t now = exec_now_ns(x);

    if (!x->opt->event || now - x->ticked_ns < TICK_NS)
        return;
    x->ticked_ns = now;
    x->opt->event(x->opt->arg, &(struct tide_graph_event){.what = TIDE_GRAPH_TICK});
}

/* ---- stopping ---- */

void exec_break(struct exec *x, const struct tide_err *why)
{
    if (!x->broken) {
        x->broken = true;
        x->code = why->code;
        x->err = *why;
    }
    x->halting = true;
}

static void look_for_stop(struct exec *x)
{
    struct tide_err err;
    unsigned signs = 0;
    enum tide_code code;

    if (exec_now_ns(x) - x->looked_ns < LOOK_NS)
        return;
    x->looked_ns = exec_now_ns(x);
    code = tide_run_look(x->run, &signs, &err);
    if (code && !session_is_trouble(code))
        exec_break(x, &err);
    if (!code && signs & TIDE_SIGN_CANCEL)
        x->cancelled = x->halting = true;
}

/* With the lock. */
static void look_around(struct exec *x)
{
    if (atomic_load(&x->g->stop) != GRAPH_GO_ON)
        x->halting = true;
    if (!x->halting)
        look_for_stop(x);
    if (!x->halting)
        return;
    for (int i = 0; i < x->capacity; i++)
        if (x->jobs[i])
            atomic_store(&x->jobs[i]->halt, true);
}

/* Asked by the thread that does a node's work, with the lock or without. */
bool exec_stopped(void *job)
{
    struct job *j = job;
    const struct spec_node *n = j->place.node;

    if (atomic_load(&j->x->g->stop) != GRAPH_GO_ON)
        atomic_store(&j->halt, true);
    if (n->type == SPEC_EVENT_LOOP && !j->deciding && n->timeout_ms && !atomic_load(&j->halt) &&
        exec_now_ns(j->x) - j->began_ns > n->timeout_ms * 1000000)
        j->timed_out = true;
    if (j->timed_out)
        return true;
    if (!atomic_load(&j->halt) && pthread_mutex_trylock(&j->x->lock) == 0) {
        look_around(j->x);
        tick_clock(j->x);
        pthread_mutex_unlock(&j->x->lock);
    }
    return atomic_load(&j->halt);
}

/* ---- appending ---- */

/* An agent's tools are looked at one by one; graphs inside nodes, node by node. */
bool exec_touches(const struct spec_node *n)
{
    return n->effect == SPEC_ONCE || (n->type == SPEC_FUNCTION && n->effect != SPEC_PURE);
}

/* What cost something goes to disk at once: the next node may take long, and be cut. */
void exec_keep(struct exec *x, const struct spec_node *n, int64_t ms)
{
    x->must_put |= n->effect != SPEC_PURE || ms >= EXEC_CHEAP_MS;
    x->must_sync |= n->effect == SPEC_ONCE;
    x->must_hold |= exec_touches(n);
}

static bool is_gathering(const struct exec *x)
{
    return x->checkpoints.async && !x->must_sync && !x->must_put && x->draft.n < EXEC_DRAFT_MAX &&
           exec_now_ns(x) - x->draft_since_ns < EXEC_GATHER_MS * INT64_C(1000000);
}

/* `now`: all of it is on disk on return. */
void exec_commit(struct exec *x, bool now)
{
    struct tide_err err;
    enum tide_code code = TIDE_OK;

    if (x->broken || (!now && (!x->draft.n || is_gathering(x)))) {
        return;
    }
    if (x->draft.n)
        code = x->must_sync || now || !x->checkpoints.async
                   ? run_append(x->run, TIDE_APPEND_ANY, &x->draft, !x->must_hold, &err)
                   : run_put(x->run, &x->draft, PUT_PURE, &err);
    else
        code = run_flush(x->run, &err);
    draft_reset(&x->draft);
    x->must_sync = x->must_put = x->must_hold = false;
    /* Collected notices are reported only after a flush: an observer waits for them, and they take memory. */
    if (!code && x->run->queue.n && (x->n_notes > NOTES_MAX || (x->n_notes && exec_now_ns(x) - x->told_ns > TELL_NS)))
        code = run_flush(x->run, &err);
    if (code)
        exec_break(x, &err);
    else if (!x->run->queue.n)
        tell_all(x);
}

/* ---- working ---- */

static void push_done(struct job *j)
{
    struct exec *x = j->x;
    struct job **at;

    pthread_mutex_lock(&x->done_lock);
    for (at = &x->done; *at; at = &(*at)->next) /* in the order in which they ended */
        ;
    *at = j;
    pthread_mutex_unlock(&x->done_lock);
}

/* All that is over, of every worker: one batch. */
static void absorb_results(struct exec *x)
{
    struct job *j, *next;

    pthread_mutex_lock(&x->done_lock);
    j = TAKE(x->done);
    pthread_mutex_unlock(&x->done_lock);
    for (; j; j = next) {
        int i = 0;

        next = j->next;
        while (i < x->capacity && x->jobs[i] != j)
            i++;
        INVARIANT(i < x->capacity && x->running > 0); /* a job that is done was being done */
        x->jobs[i] = NULL;
        x->running--;
        if (!x->broken)
            end_job(x, j);
        job_free(j);
    }
}

static struct job *take_job(struct exec *x)
{
    struct job *j = x->todo;
    int i = 0;

    if (!j || x->halting)
        return NULL;
    INVARIANT(!x->draft.n || (!x->must_sync && !x->must_hold)); /* what touches the world has its start on disk */
    x->todo = j->next;
    j->next = NULL;
    while (i < x->capacity && x->jobs[i])
        i++;
    INVARIANT(i < x->capacity); /* each worker does one, and there are no more workers than places */
    x->jobs[i] = j;
    x->running++;
    j->began_ns = exec_now_ns(x);
    return j;
}

static void *work_jobs(void *exec);

/* As many as there is work for; the one who calls does some of it. */
static void hire_worker(struct exec *x)
{
    int wanted = x->running + plan_waiting(x);

    while (x->threads < wanted && x->threads < x->capacity && x->s->store->env->threads) {
        if (pthread_create(&x->workers[x->threads], NULL, work_jobs, x) != 0)
            return; /* fewer do it too */
        x->threads++;
    }
    if (wanted > x->running)
        pthread_cond_broadcast(&x->change);
}

static void wait_for_change(struct exec *x, int64_t until_ms)
{
    struct env *env = x->s->store->env;
    int64_t left = until_ms - env_now_ms(env);
    int ms = left < 100 ? (int)(left > 0 ? left : 1) : 100;
    struct timespec at;

    if (!x->running || !env->threads) {
        pthread_mutex_unlock(&x->lock);
        env->ops->sleep_ms(env, ms);
        pthread_mutex_lock(&x->lock);
        return;
    }
    at = monotonic_after(ms);
    pthread_cond_timedwait(&x->change, &x->lock, &at);
}

static void *work_jobs(void *exec)
{
    struct exec *x = exec;
    struct job *j;

    pthread_mutex_lock(&x->lock);
    while (!x->over) {
        absorb_results(x);
        arena_reset(&x->scratch);
        look_around(x);
        if (!x->halting)
            plan_all(x);
        exec_commit(x, false);
        tick_clock(x);
        j = take_job(x);
        if (j) {
            hire_worker(x);
            pthread_mutex_unlock(&x->lock);
            j->unbegun = atomic_load(&j->halt); /* what it is part of has failed meanwhile */
            if (j->unbegun)
                j->code = TIDE_CANCELLED;
            else
                job_run(j);
            push_done(j);
            pthread_mutex_lock(&x->lock);
            continue;
        }
        if (!x->running && (x->halting || (!x->todo && plan_next_ms(x) == INT64_MAX))) {
            x->over = true;
            pthread_cond_broadcast(&x->change);
            break;
        }
        exec_commit(x, true);
        if (!x->over)
            wait_for_change(x, plan_next_ms(x));
    }
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

static void drop_todo(struct exec *x)
{
    for (struct job *j; (j = x->todo);) {
        x->todo = j->next;
        job_free(j);
    }
}

static void work_until_quiet(struct exec *x)
{
    x->over = false;
    x->threads = 1;
    work_jobs(x);
    for (int i = 1; i < x->threads; i++)
        pthread_join(x->workers[i], NULL);
    x->threads = 1;
    absorb_results(x);
    INVARIANT(!x->running && !x->done);
    INVARIANT_COSTLY(tasks_are_open(x));
    for (struct job *j = x->broken ? NULL : x->todo; j; j = j->next)
        end_unbegun(x, j);
    drop_todo(x);
}

/* ---- the end ---- */

static enum tide_code end_run(struct exec *x, struct tide_run_result *result, struct tide_err *err)
{
    enum tide_code code = run_end_with(x->run, &x->draft, result, err);

    draft_reset(&x->draft);
    if (!code)
        tell_all(x);
    return code;
}

static enum tide_code end_failed_run(struct exec *x, struct tide_err *err)
{
    AUTO(buf_done) struct buf fields = BUF_INIT(1 << 16);
    struct json_out o = json_out_to(&fields);
    char message[sizeof x->err.msg];
    struct tide_run_result result = {.size = sizeof result,
                                     .outcome = TIDE_OUTCOME_FAILED,
                                     .reason = x->failed_code,
                                     .error_code = x->failed_code,
                                     .error_message = message};

    snprintf(message, sizeof message, "%s", x->err.msg);
    json_out_begin(&o, '{');
    json_out_kstr_opt(&o, STR("failed_at_node"), str_from(x->failed_node));
    json_out_kstr_opt(&o, STR("resume_from_checkpoint_id"), str_from(x->view->content.resume_checkpoint));
    json_out_kstr(&o, STR("recorded"), STR("node.failed"));
    json_out_end(&o, '}');
    result.fields = buf_cstr(&fields);
    if (end_run(x, &result, err))
        return err->code;
    tide_about_session(&x->err, x->s->head.id);
    return tide_err_copy(err, &x->err);
}

/* It must not happen: nodes are left and none of them can begin. Never to be reported as complete. */
static enum tide_code end_stuck(struct exec *x, struct tide_err *err)
{
    const struct position *p = &x->view->content.position;
    struct map_entry *e = map_next(&p->active, NULL);

    e = e ? e : map_next(&p->ready, NULL);
    INVARIANT(e);
    x->failed_node = mem_dup(map_key(e));
    snprintf(x->failed_code, sizeof x->failed_code, "stuck");
    tide_fail_node(&x->err, TIDE_FAILED, x->failed_node, "is left and cannot continue");
    tide_hint(&x->err, TIDE_ACTION_WHY, x->s->head.id);
    return end_failed_run(x, err);
}

static enum tide_code end_stopped(struct exec *x, struct tide_err *err)
{
    static struct tide_run_result ends[] = {
        {.size = sizeof ends[0], .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown"},
        {.size = sizeof ends[0],
         .outcome = TIDE_OUTCOME_INTERRUPTED,
         .reason = "shutdown",
         .fields = "{\"by\":\"person\"}"},
        {.size = sizeof ends[0], .outcome = TIDE_OUTCOME_INTERRUPTED, .reason = "shutdown"},
    };
    struct tide_run_result cancelled = {
        .size = sizeof cancelled, .outcome = TIDE_OUTCOME_CANCELLED, .reason = "requested"};

    if (end_run(x, x->cancelled ? &cancelled : &ends[atomic_load(&x->g->stop)], err))
        return err->code;
    return tide_fail(err, TIDE_CANCELLED, "stopped");
}

static enum tide_code conclude_graph(struct exec *x, struct tide_err *err)
{
    static struct tide_run_result completed = {.size = sizeof completed, .outcome = TIDE_OUTCOME_COMPLETED};
    struct tide_err ignored;

    if (x->broken) {
        draft_reset(&x->draft);
        return tide_err_copy(err, &x->err);
    }
    if (x->code == TIDE_FAILED || x->code == TIDE_UNSETTLED)
        return end_failed_run(x, err);
    if (x->cancelled || atomic_load(&x->g->stop) != GRAPH_GO_ON)
        return end_stopped(x, err);
    if (x->view->content.position.ready.live || x->view->content.position.active.live)
        return end_stuck(x, err);
    if (end_run(x, &completed, &ignored))
        return tide_err_copy(err, &ignored);
    return TIDE_OK;
}

enum tide_code exec_run(struct exec *x, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    INVARIANT(x->run && !x->run->over && x->view != x->s->state);
    INVARIANT(x->capacity > 0 && x->capacity <= (int)(sizeof x->jobs / sizeof x->jobs[0]));
    for (;;) {
        work_until_quiet(x);
        if (x->halting || x->code)
            break;
        if (wait_drop_stale(x))
            continue;
        if (!x->blocked)
            break;
        wait_take_answer(x);
        code = wait_ask(x, err);
        if (code)
            break;
    }
    if (code == TIDE_WAITING) {
        tell_all(x);
        return code;
    }
    if (code)
        exec_break(x, err);
    return conclude_graph(x, err);
}

void exec_done(struct exec *x)
{
    guard_leave(&x->guard);
    drop_todo(x);
    while (x->blocked)
        wait_drop(x);
    for (size_t i = 0; i < x->n_notes; i++) {
        free(x->notes[i].node);
        free(x->notes[i].to);
        free(x->notes[i].text);
    }
    free(x->notes);
    free(x->checkpoints_kept.at);
    free(x->workers);
    free(x->crowd);
    free(x->failed_node);
    kept_free(x->kept);
    state_free(x->view);
    draft_done(&x->draft);
    map_done(&x->secrets, free);
    tasks_done(x);
    map_done(&x->cursors, free);
    map_done(&x->reasons, free);
    arena_done(&x->scratch);
    arena_done(&x->fold);
    pthread_mutex_destroy(&x->lock);
    pthread_mutex_destroy(&x->done_lock);
    pthread_cond_destroy(&x->change);
}
