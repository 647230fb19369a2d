/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run has begun when its event is on disk, not when a thread was started for it: whoever asked is answered by that event, which a
 * follower of the feed sees, or by the failure that came before it. An active run is freed by its own thread, when neither the
 * follower nor the scheduler looks at it any more.
 */
#include "server/runner.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/log.h"
#include "base/thread.h"
#include "engine/resume.h"
#include "engine/settings.h"
#include "engine/shapes.h"
#include "engine/streamed_event.h"
#include "env/file_watch.h"
#include "server/fair_line.h"
#include "server/program_process.h"

#define MAX_RESUMES 3
#define CHANGE_MS 1000
#define LEAVING_S 2       /* at most, between the end of a run on disk and that of what ran it */
#define ASKED_MAX 256     /* that wait for a place at once */
#define PATIENCE_MS 20000 /* … each of them so long */

struct active {
    struct active *next, **before;
    struct runner *runner;
    int64_t handle;   /* of the scheduler; 0: somebody asked */
    int64_t last_seq; /* of the session, before it begins */
    char id[TIDE_ID_SIZE];
    enum tide_session_kind kind;
    struct resume core;
    struct arena arena;
    const char *message;
    struct cause request; /* with an id, by which its events are known */
    bool until_parked;
    char token[TIDE_TOKEN_SIZE]; /* of the wait where it is parked */
    const struct program_order *program;
    const struct graph_order *graph;
    struct fair_task *task;
    pthread_t thread;

    pthread_mutex_t mu; /* of what follows */
    int holders;        /* the thread, the follower */
    begun_fn *fn;       /* NULL: it was called, or nobody asked */
    void *arg;
    void *work; /* of a chat or a graph: what can be stopped now */
    bool stopping;
    int64_t follower; /* its number */
};

struct runner {
    tide_store *store;
    struct feed *feed;
    struct runner_options opt;
    struct arena arena;

    pthread_mutex_t mu; /* of the list, and of what came of the scheduler's jobs */
    pthread_cond_t less;
    struct active *list;
    struct fair_line line; /* those that wait for a place */
    size_t places;         /* that are taken */
    size_t threads;        /* that may still look at this */
    int64_t last_handle;
    struct ended {
        int64_t handle;
        bool failed;
    } * ended;
    size_t n_ended, cap_ended;
    atomic_uint_fast64_t started, failed;
    atomic_uint_fast64_t interrupted[5]; /* by reason */

    pthread_t thread;
    bool running;
    atomic_bool stopping;
    int wake, stop; /* stop: readable once it stops */
    struct scheduler scheduler;
};

/* ---- whoever asked -------------------------------------------------------------------------------------------------- */

static void let_go(struct active *a)
{
    int left;

    pthread_mutex_lock(&a->mu);
    left = --a->holders;
    pthread_mutex_unlock(&a->mu);
    if (left)
        return;
    resume_done(&a->core);
    arena_done(&a->arena);
    explicit_bzero(a->token, sizeof a->token);
    pthread_mutex_destroy(&a->mu);
    free(a);
}

static void tell(struct active *a, const struct begun *begun, const struct tide_err *err)
{
    begun_fn *fn;

    pthread_mutex_lock(&a->mu);
    fn = a->fn;
    a->fn = NULL;
    pthread_mutex_unlock(&a->mu);
    if (fn)
        fn(a->arg, begun, err);
}

static bool is_awaited(struct active *a)
{
    bool is;

    pthread_mutex_lock(&a->mu);
    is = a->fn != NULL;
    pthread_mutex_unlock(&a->mu);
    return is;
}

/* What a run begins with. */
static const char *const begin_kinds[] = {"run.started", "run.resumed", "queue.added", NULL};

/* Others may queue messages and answer meanwhile. What is started here is nobody else's; what goes back first is known by that alone. */
static bool is_of_order(const struct active *a, const char *kind, struct str event)
{
    bool starts = a->program || a->graph || a->core.ask.graph.checkpoint;

    return (starts && strcmp(kind, "queue.added") != 0) || cause_is_of(&a->request, event);
}

/* The first event of the run. False: nothing more is wanted. */
static bool on_item(void *arg, const struct feed_item *item)
{
    struct active *a = arg;

    if (item->what != FEED_EVENT || !is_of_order(a, item->kind, item->json))
        return true;
    tell(a, &(struct begun){item->kind, item->seq, item->json, NULL}, NULL);
    return false;
}

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

static void on_dropped(void *arg, enum feed_end why)
{
    (void)why;
    let_go(arg);
}

/* From here on the run's events are seen. */
static enum tide_code watch_begin(struct active *a, struct tide_err *err)
{
    const struct follow what = {.session_id = a->id, .after = a->last_seq, .kinds = begin_kinds};
    const struct follower_face face = {.arg = a, .send = on_item, .has_room = has_room, .dropped = on_dropped};
    struct follower *one;

    if (follower_new(a->runner->feed, &what, &face, &one, &a->follower, err))
        return err->code;
    a->holders++;
    follower_join(a->runner->feed, one);
    return TIDE_OK;
}

/* ---- chats and graphs: on the run's thread ---- */

static void publish(struct active *a, const struct streamed_event *event)
{
    AUTO(buf_done) struct buf json = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&json);

    shape_put(&o, &shape_event, event);
    feed_publish(a->runner->feed, FEED_TEXT, a->id, buf_view(&json));
}

static bool is_asked(struct active *a)
{
    bool asked;

    pthread_mutex_lock(&a->mu);
    asked = a->fn != NULL;
    pthread_mutex_unlock(&a->mu);
    return asked;
}

static void shut_down(struct active *a);

/* The store cannot be written. What runs pauses until it can; what has not begun is refused: whoever asked is told, and asks again. */
static void on_held(struct active *a)
{
    struct tide_err err = {0};

    if (!is_asked(a))
        return;
    (void)!tide_fail_session(&err, TIDE_BUSY, a->id,
                             "cannot be run: the store cannot be written, and nothing was begun; try again later");
    tell(a, NULL, &err);
    pthread_mutex_lock(&a->mu);
    shut_down(a);
    pthread_mutex_unlock(&a->mu);
}

static void on_agent_event(void *arg, const struct tide_agent_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_AGENT_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_agent(&event, e))
        publish(arg, &event);
}

static void on_graph_event(void *arg, const struct tide_graph_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_GRAPH_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_graph(&event, e))
        publish(arg, &event);
}

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct active *a = arg;

    if (why && is_asked(a)) {
        tell(a, NULL, why);
        return 1;
    }
    if (why && !waited_ms)
        log_write(TIDE_LOG_WARN, "the store cannot be written: the run pauses", log_text("session", a->id));
    return a->runner->stopping;
}

static bool is_stopped(void *arg)
{
    const struct active *a = arg;

    return a->runner->stopping;
}

static void on_tell(void *arg, const char *line, const char *change)
{
    const struct active *a = arg;

    (void)change;
    log_write(TIDE_LOG_INFO, line, log_text("session", a->id));
}

static enum tide_code open_setup(void *arg, struct agent_setup *setup, struct tide_err *err)
{
    struct active *a = arg;

    setup->tell = on_tell;
    setup->store = a->runner->store;
    setup->opt.arg = a;
    setup->opt.event = on_agent_event;
    return settings_open(a->runner->opt.config, NULL, NULL, &setup->settings, err);
}

/* With mu held. */
static void shut_down(struct active *a)
{
    a->stopping = true;
    if (a->work && a->kind == TIDE_KIND_GRAPH)
        tide_graph_shutdown(a->work);
    else if (a->work)
        tide_agent_shutdown(a->work);
}

static void set_work(struct active *a, void *work)
{
    pthread_mutex_lock(&a->mu);
    a->work = work;
    if (a->stopping && work)
        shut_down(a);
    pthread_mutex_unlock(&a->mu);
}

static void on_running(void *arg, bool runs)
{
    struct active *a = arg;

    if (a->core.kind == TIDE_KIND_CHAT)
        set_work(a, runs ? a->core.chat.agent : NULL);
}

static void on_graph_running(void *arg, bool runs)
{
    struct active *a = arg;

    set_work(a, runs ? a->core.run.graph : NULL);
}

static enum tide_code run_here(struct active *a, struct tide_err *err)
{
    struct resume *r = &a->core;

    r->face = (struct resume_face){.arg = a,
                                   .held = {.told = on_trouble, .stopped = is_stopped, .arg = a},
                                   .open_setup = open_setup,
                                   .running = on_running};
    r->chat.stopped = is_stopped;
    r->chat.setup.opt.arg = a;
    r->run.running = on_graph_running;
    r->run.arg = a;
    r->want.opt.event = on_graph_event;
    r->want.opt.arg = a;
    if (a->graph)
        return start_graph(r, a->graph->json, a->graph->dir, err);
    return a->message ? send_message(r, a->message, false, err) : resume_session(r, err);
}

static enum tide_code run_process(struct active *a, struct tide_err *err)
{
    const struct program_process p = {.session_id = a->id,
                                      .runner = &a->runner->opt,
                                      .program = a->program,
                                      .ask = &a->core.ask,
                                      .message = a->message,
                                      .token = a->token,
                                      .stop = a->runner->stop};

    return program_process_run(&p, err);
}

/* ---- the run's thread ---- */

static void give_places(struct runner *r);

static int tell_if_begin(void *arg, const struct tide_event *e)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    const struct active *a = arg;
    struct tide_err ignored;
    size_t i = 0;

    while (begin_kinds[i] && strcmp(begin_kinds[i], e->kind) != 0)
        i++;
    if (!begin_kinds[i] || tide_event_write_json(e, &text, &ignored) ||
        !is_of_order(a, e->kind, (struct str){text.ptr, text.len}))
        return 0;
    tell(arg, &(struct begun){e->kind, e->seq, {text.ptr, text.len}, a->token[0] ? a->token : NULL}, NULL);
    return 1;
}

/* It is over before the follower saw its first event: whether it began is in the log. `err` NULL: it did nothing wrong. */
static void tell_from_log(struct active *a, const struct tide_err *err)
{
    tide_session *session = NULL;
    struct tide_err ignored;

    if (!is_awaited(a))
        return;
    if (!tide_session_open(a->runner->store, a->id, TIDE_SESSION_READ, &session, &ignored))
        (void)!tide_session_read(session, 0, a->last_seq + 1, 0, tell_if_begin, a, &ignored);
    tide_session_close(session);
    tell(a, err ? NULL : &(struct begun){"", 0, STR("{}"), a->token[0] ? a->token : NULL}, err);
}

static void note_end(struct runner *r, int64_t handle, bool failed)
{
    if (!handle)
        return;
    MEM_ROOM(r->ended, r->n_ended, r->cap_ended);
    r->ended[r->n_ended++] = (struct ended){handle, failed};
    wake_fd_signal(r->wake);
}

/* With mu held. */
static void leave_place(struct runner *r, struct active *a, bool failed)
{
    *a->before = a->next;
    if (a->next)
        a->next->before = a->before;
    r->places--;
    fair_ended(&r->line, a->task);
    note_end(r, a->handle, failed);
    pthread_cond_broadcast(&r->less);
}

static void *run_active(void *arg)
{
    struct active *a = arg;
    struct runner *r = a->runner;
    struct tide_err err = {0};
    bool apart = a->program || (!a->graph && a->kind == TIDE_KIND_PROGRAM);
    enum tide_code code = apart ? run_process(a, &err) : run_here(a, &err);
    bool failed = code && code != TIDE_WAITING && code != TIDE_CANCELLED && code != TIDE_NOT_FOUND;

    if (failed)
        log_write(TIDE_LOG_WARN, "a run ended badly", log_text("session", a->id), log_text("error", err.msg));
    if (!apart)
        snprintf(a->token, sizeof a->token, "%s", resume_token(&a->core));
    tell_from_log(a, code ? &err : NULL);
    if (a->follower)
        follower_leave(r->feed, a->id, a->follower);
    pthread_mutex_lock(&r->mu);
    leave_place(r, a, failed);
    r->failed += failed;
    pthread_mutex_unlock(&r->mu);
    let_go(a);
    give_places(r);
    pthread_detach(pthread_self());
    pthread_mutex_lock(&r->mu); /* the last look at the runner */
    r->threads--;
    pthread_cond_broadcast(&r->less);
    pthread_mutex_unlock(&r->mu);
    return NULL;
}

/* ---- beginning ---- */

static const char *dup_text(struct arena *a, const char *text)
{
    return text ? arena_dup(a, str_from(text)).ptr : NULL;
}

static const char **dup_list(struct arena *a, const char *const *list)
{
    const char **copy;
    size_t n = 0;

    if (!list)
        return NULL;
    while (list[n])
        n++;
    copy = arena_zero(a, (n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        copy[i] = dup_text(a, list[i]);
    return copy;
}

static void take_order(struct active *a, const struct order *o)
{
    struct resume_request *ask = &a->core.ask;
    struct arena *m = &a->arena;

    *ask = (struct resume_request){.id = a->id,
                                   .token = dup_text(m, o->token),
                                   .input = dup_text(m, o->input),
                                   .has_reason = o->has_reason,
                                   .ask_again = dup_text(m, o->ask_again),
                                   .request_id = dup_text(m, o->request_id),
                                   .retry = dup_list(m, o->retry),
                                   .happened = dup_list(m, o->happened),
                                   .now = o->now,
                                   .accept_change = o->accept_change,
                                   .graph = {.checkpoint = dup_text(m, o->checkpoint),
                                             .fallback = o->fallback,
                                             .rollback = (o->reuse_effects ? TIDE_ROLLBACK_REUSE_EFFECTS : 0u) |
                                                         (o->redo_effects ? TIDE_ROLLBACK_REDO_EFFECTS : 0u)}};
    if (o->request)
        a->request = *o->request;
    if (!a->request.id[0])
        cause_make_id(&a->request);
    ask->request = &a->request;
    ask->queue_max = o->queue_max;
    a->until_parked = o->until_parked;
    a->message = dup_text(m, o->message);
    buf_add_str(&a->core.memory, o->memory);
}

static void take_start(struct active *a, const struct order *o)
{
    struct arena *m = &a->arena;
    struct program_order *program = arena_zero(m, sizeof *program);
    struct graph_order *graph = arena_zero(m, sizeof *graph);

    if (o->program) {
        *program = *o->program;
        program->argv = dup_list(m, program->argv);
        program->cwd = dup_text(m, program->cwd);
        program->env = dup_text(m, program->env);
        a->program = program;
    }
    if (o->graph) {
        graph->json = arena_dup(m, o->graph->json);
        graph->dir = dup_text(m, o->graph->dir);
        a->graph = graph;
    }
}

static struct active *active_new(struct runner *r, const char *id)
{
    struct active *a = mem_zero(sizeof *a);

    a->core = (struct resume)RESUME_INIT;
    a->runner = r;
    a->holders = 1;
    a->core.store = r->store;
    a->core.config = r->opt.config;
    snprintf(a->id, sizeof a->id, "%s", id);
    pthread_mutex_init(&a->mu, NULL);
    return a;
}

/* ---- places ---- */

static int64_t wall_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

static int64_t monotonic_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

struct look {
    enum tide_session_kind kind;
    int64_t last_seq;
    bool resumable, held; /* held: by whoever runs it */
    char *task;           /* "": none */
};

static enum tide_code look_at(struct runner *r, const char *id, struct look *ret, struct tide_err *err)
{
    const struct tide_session_info *info;
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(r->store, id, TIDE_SESSION_READ, &session, err);

    code = code ? code : tide_session_get_info(session, &info, err);
    if (!code)
        *ret = (struct look){info->kind, info->last_seq, info->is_resumable, info->holder != NULL,
                             mem_dup(str_from(info->task_id ? info->task_id : ""))};
    tide_session_close(session);
    return code;
}

/* With mu held. */
static bool is_run(const struct runner *r, const char *id)
{
    for (const struct active *a = r->list; a; a = a->next)
        if (strcmp(a->id, id) == 0)
            return true;
    return false;
}

/* One that is due is made ready when it is its turn, not before. NULL: it needs none any more, or cannot be read. */
static struct active *active_of_turn(struct runner *r, const struct fair_turn *turn, struct tide_err *err)
{
    struct active *a = turn->what;
    struct look look = {.task = NULL};
    enum tide_code code = look_at(r, turn->id, &look, err);

    free(look.task);
    if (!a && !code && look.resumable) {
        a = active_new(r, turn->id);
        a->core.ask = (struct resume_request){.id = a->id, .unattended = true};
        a->handle = turn->handle;
    }
    if (a) {
        a->kind = look.kind;
        a->last_seq = look.last_seq;
        a->task = turn->task;
    }
    return a;
}

static enum tide_code refuse_stopping(struct tide_err *err)
{
    return tide_fail(err, TIDE_BUSY, "the server stops: ask again when it is back");
}

/* It has its place. With mu held. */
static enum tide_code enter(struct runner *r, struct active *a, struct tide_err *err)
{
    if (r->stopping)
        return refuse_stopping(err);
    if (is_run(r, a->id))
        return tide_fail_session(err, TIDE_HELD, a->id, "is run by this server already");
    a->next = r->list;
    a->before = &r->list;
    if (a->next)
        a->next->before = &a->next;
    r->list = a;
    r->threads++;
    if (thread_start(&a->thread, run_active, a)) {
        r->started++;
        return TIDE_OK;
    }
    r->threads--;
    r->list = a->next;
    if (a->next)
        a->next->before = &r->list;
    return tide_fail(err, TIDE_BUSY, "no thread could be started: try again later");
}

/* Of a turn that came to nothing, whose place is free again. */
static void end_turn(struct runner *r, struct fair_turn *turn, struct active *a, const struct tide_err *err)
{
    bool failed = err->code && err->code != TIDE_HELD && err->code != TIDE_NOT_FOUND;

    pthread_mutex_lock(&r->mu);
    r->places--;
    fair_ended(&r->line, turn->task);
    note_end(r, turn->handle, failed);
    pthread_mutex_unlock(&r->mu);
    if (!a)
        return;
    tell(a, NULL, err);
    if (a->follower) /* it is told to go, and must not answer */
        follower_leave(r->feed, a->id, a->follower);
    let_go(a);
}

static void begin_turn(struct runner *r, struct fair_turn *turn)
{
    struct tide_err err = {0};
    struct active *a = active_of_turn(r, turn, &err);

    if (a && !err.code && is_awaited(a) && !a->until_parked) /* else the log tells it in the end */
        (void)!watch_begin(a, &err);
    pthread_mutex_lock(&r->mu);
    if (a && !err.code)
        (void)!enter(r, a, &err);
    pthread_mutex_unlock(&r->mu);
    if (!a || err.code)
        end_turn(r, turn, a, &err);
    free(turn);
}

static struct fair_turn *next_turn(struct runner *r)
{
    struct fair_turn *turn = NULL;

    pthread_mutex_lock(&r->mu);
    if (!r->stopping && r->places < (size_t)r->opt.max_active)
        turn = fair_take(&r->line);
    r->places += turn != NULL;
    pthread_mutex_unlock(&r->mu);
    return turn;
}

static void give_places(struct runner *r)
{
    struct fair_turn *turn;

    while ((turn = next_turn(r)))
        begin_turn(r, turn);
}

static struct fair_turn *turn_new(const char *id)
{
    struct fair_turn *turn = mem_zero(sizeof *turn);

    snprintf(turn->id, sizeof turn->id, "%s", id);
    return turn;
}

static enum tide_code refuse_full(const struct runner *r, struct tide_err *err)
{
    return tide_fail(err, TIDE_BUSY, "%d sessions run already, as many as may: try again later", r->opt.max_active);
}

/* With mu held: whether it may wait for its turn. A message need not: it is queued, and then it is due. */
static enum tide_code may_wait(struct runner *r, const struct active *a, struct tide_err *err)
{
    bool full = r->places >= (size_t)r->opt.max_active || r->line.asked || r->line.due;

    if (r->stopping)
        return refuse_stopping(err);
    if (is_run(r, a->id) || fair_waits(&r->line, a->id))
        return tide_fail_session(err, TIDE_HELD, a->id, "is run by this server already");
    if (full && (a->message || r->line.asked >= ASKED_MAX))
        return refuse_full(r, err);
    return TIDE_OK;
}

/* Its run has ended on disk, and what ran it is about to leave: whoever saw that end may go on at once. With mu held. */
static void await_leaving(struct runner *r, const char *id)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LEAVING_S;
    while (is_run(r, id) && pthread_cond_timedwait(&r->less, &r->mu, &until) != ETIMEDOUT)
        ;
}

/* Until what is asked for has waited too long there may be nothing else to do. */
static enum tide_code put_asked(struct runner *r, struct active *a, const struct look *look, struct tide_err *err)
{
    struct fair_turn *turn;
    enum tide_code code;

    pthread_mutex_lock(&r->mu);
    if (!look->held)
        await_leaving(r, a->id);
    code = may_wait(r, a, err);
    if (!code) {
        turn = turn_new(a->id);
        turn->what = a;
        turn->until_ms = monotonic_now_ms() + PATIENCE_MS;
        fair_put(&r->line, look->task, turn);
    }
    pthread_mutex_unlock(&r->mu);
    return code;
}

enum tide_code runner_run(struct runner *r, const struct order *order, begun_fn *fn, void *arg, struct tide_err *err)
{
    struct look look = {.task = NULL};
    struct active *a = active_new(r, order->session_id);
    enum tide_code code;

    take_order(a, order);
    take_start(a, order);
    a->fn = fn;
    a->arg = arg;
    code = look_at(r, a->id, &look, err);
    code = code ? code : put_asked(r, a, &look, err);
    free(look.task);
    if (code) {
        let_go(a);
        return code;
    }
    give_places(r); /* whoever asked may have been answered by now */
    wake_fd_signal(r->wake);
    return TIDE_OK;
}

/* Those that have waited too long; all of them once it stops. */
static void refuse_late(struct runner *r)
{
    const int64_t now_ms = r->stopping ? INT64_MAX : monotonic_now_ms();
    struct fair_turn *late;
    struct tide_err err;

    for (;;) {
        pthread_mutex_lock(&r->mu);
        late = fair_take_late(&r->line, now_ms);
        pthread_mutex_unlock(&r->mu);
        if (!late)
            return;
        (void)!(r->stopping ? refuse_stopping(&err) : refuse_full(r, &err));
        tell(late->what, NULL, &err);
        let_go(late->what);
        free(late);
    }
}

bool runner_runs(struct runner *r, const char *session_id)
{
    bool runs;

    pthread_mutex_lock(&r->mu);
    runs = is_run(r, session_id);
    pthread_mutex_unlock(&r->mu);
    return runs;
}

/* ---- what is due ---- */

static bool scheduler_stopped(void *arg)
{
    const struct runner *r = arg;

    return r->stopping;
}

static void count_interruption(struct runner *r, const struct tide_recovered *what)
{
    static const char *const reasons[] = {INTERRUPTION_REASONS};
    size_t i = 0, last = sizeof reasons / sizeof reasons[0] - 1;

    if (what->action != TIDE_RECOVERED_INTERRUPTED && what->action != TIDE_RECOVERED_TIMED_OUT)
        return;
    while (i < last && strcmp(reasons[i], what->reason) != 0)
        i++;
    r->interrupted[i]++;
}

static void scheduler_found(void *arg, const struct tide_recovered *what, bool resumes)
{
    count_interruption(arg, what);
    log_write(TIDE_LOG_INFO, resumes ? "session is due" : "session was looked at",
              log_text("session", what->session_id), log_text("action", tide_recovered_action_name(what->action)));
}

/* It waits for its turn here, not with the scheduler, which knows no tasks. */
static bool start_job(void *arg, struct scheduler_job *job)
{
    struct runner *r = arg;
    struct look look = {.task = NULL};
    struct fair_turn *turn;
    struct tide_err err;
    enum tide_code code = look_at(r, job->id, &look, &err);

    pthread_mutex_lock(&r->mu);
    job->handle = ++r->last_handle;
    if (code) {
        note_end(r, job->handle, code != TIDE_NOT_FOUND);
    } else {
        turn = turn_new(job->id);
        turn->handle = job->handle;
        fair_put(&r->line, look.task, turn);
    }
    pthread_mutex_unlock(&r->mu);
    free(look.task);
    give_places(r);
    return true;
}

static enum job_state look_at_job(void *arg, const struct scheduler_job *job, int *ret_status)
{
    struct runner *r = arg;
    enum job_state state = JOB_RUNS;

    *ret_status = 0;
    pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < r->n_ended && state == JOB_RUNS; i++)
        if (r->ended[i].handle == job->handle) {
            state = r->ended[i].failed ? JOB_FAILED : JOB_ENDED;
            r->ended[i] = r->ended[--r->n_ended];
        }
    pthread_mutex_unlock(&r->mu);
    return state;
}

static void job_ended(void *arg, const struct scheduler_job *job, int status, bool last)
{
    (void)arg;
    (void)status;
    if (last)
        log_write(TIDE_LOG_ERROR, "session is not resumed again here", log_text("session", job->id));
}

static void stop_job(void *arg, const struct scheduler_job *job)
{
    (void)arg;
    (void)job; /* runner_stop() asks all */
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Until the first of those who asked has waited too long; at most a while. */
static int64_t patience_left(struct runner *r)
{
    int64_t next_ms, left;

    pthread_mutex_lock(&r->mu);
    next_ms = fair_next_late(&r->line);
    pthread_mutex_unlock(&r->mu);
    left = next_ms ? next_ms - monotonic_now_ms() : 1000000;
    return left < 0 ? 0 : min_ms(left, 1000000);
}

/* Until the next pass: by the clock, or because the store has changed and the last pass was a while ago. */
static void wait_for_work(struct runner *r, tide_watch *watch, int64_t began_ms)
{
    struct pollfd p[2] = {{.fd = tide_watch_fd(watch), .events = POLLIN}, {.fd = r->wake, .events = POLLIN}};
    bool changed = false;
    struct tide_err err;
    int64_t left;
    int is;

    while (!r->stopping &&
           (left = scheduler_time_left(&r->scheduler, began_ms, r->opt.interval_ms, wall_now_ms())) > 0) {
        int64_t soonest = began_ms + CHANGE_MS - monotonic_now_ms(); /* it may be changing all the time */

        if (changed && soonest <= 0)
            return;
        left = min_ms(left, patience_left(r));
        p[0].fd = changed ? -1 : tide_watch_fd(watch);
        p[0].revents = p[1].revents = 0;
        (void)!poll(p, 2, (int)(changed ? min_ms(left, soonest) : left));
        if (p[1].revents)
            (void)wake_fd_wait(r->wake, 0);
        refuse_late(r);
        scheduler_step(&r->scheduler);
        changed |= p[0].revents && (tide_watch_wait(watch, 0, &is, &err) || is);
    }
}

static void *run_scheduler(void *arg)
{
    struct runner *r = arg;
    tide_watch *watch = NULL;
    struct tide_err err;

    if (tide_watch_open(r->store, &watch, &err)) {
        log_write(TIDE_LOG_ERROR, "the store cannot be watched", log_text("error", err.msg));
        return NULL;
    }
    while (!r->stopping) {
        int64_t began_ms = monotonic_now_ms();
        enum tide_code code = scheduler_pass(&r->scheduler, &err);

        if (code && code != TIDE_CORRUPT)
            log_write(TIDE_LOG_WARN, "the store cannot be looked at", log_text("error", err.msg));
        scheduler_step(&r->scheduler);
        wait_for_work(r, watch, began_ms);
    }
    tide_watch_close(watch);
    return NULL;
}

/* ---- the runner ---- */

struct runner *runner_new(tide_store *store, struct feed *feed, const struct runner_options *opt)
{
    struct runner *r = mem_zero(sizeof *r);
    pthread_condattr_t attr;

    r->store = store;
    r->feed = feed;
    r->opt = *opt;
    r->opt.url = dup_text(&r->arena, opt->url);
    r->opt.config = dup_text(&r->arena, opt->config);
    r->opt.key_file = dup_text(&r->arena, opt->key_file);
    r->wake = r->stop = -1;
    pthread_mutex_init(&r->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->less, &attr);
    pthread_condattr_destroy(&attr);
    r->scheduler = (struct scheduler){.store = store,
                                      .run_due = true,
                                      .automatic = opt->automatic,
                                      .max_at_once = INT_MAX, /* they wait for their turn here */
                                      .max_resumes = MAX_RESUMES,
                                      .stopped = scheduler_stopped,
                                      .found = scheduler_found,
                                      .start = start_job,
                                      .look = look_at_job,
                                      .ended = job_ended,
                                      .stop = stop_job,
                                      .arg = r};
    return r;
}

static int count_found(void *arg, const struct tide_recovered *what)
{
    count_interruption(arg, what);
    return 0;
}

enum tide_code runner_sweep(struct runner *r, struct tide_err *err)
{
    enum tide_code code = tide_store_recover(r->store, 0, count_found, r, NULL, err);

    return code == TIDE_CORRUPT ? TIDE_OK : code; /* one damaged is in nobody's way */
}

enum tide_code runner_start(struct runner *r, struct tide_err *err)
{
    if (wake_fd_open(&r->wake, err) || wake_fd_open(&r->stop, err))
        return err->code;
    r->running = thread_start(&r->thread, run_scheduler, r);
    return r->running ? TIDE_OK : tide_fail(err, TIDE_BUSY, "no thread could be started");
}

/* Programs go on by themselves: only chats and graphs are asked. */
static void ask_to_park(struct runner *r)
{
    for (struct active *a = r->list; a; a = a->next) {
        pthread_mutex_lock(&a->mu);
        shut_down(a);
        pthread_mutex_unlock(&a->mu);
    }
}

void runner_stop(struct runner *r, int64_t deadline_ms)
{
    struct timespec until;

    r->stopping = true;
    if (r->running) {
        wake_fd_signal(r->wake);
        wake_fd_signal(r->stop);
    }
    if (r->running)
        pthread_join(r->thread, NULL);
    r->running = false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += deadline_ms % 1000 * 1000000;
    until.tv_sec += deadline_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    refuse_late(r);
    pthread_mutex_lock(&r->mu);
    ask_to_park(r);
    while (r->threads && pthread_cond_timedwait(&r->less, &r->mu, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&r->mu);
}

void runner_count(struct runner *r, struct runner_counts *ret)
{
    pthread_mutex_lock(&r->mu);
    *ret = (struct runner_counts){r->places, r->line.due, r->line.asked, r->started, r->failed, {0}};
    for (size_t i = 0; i < sizeof r->interrupted / sizeof r->interrupted[0]; i++)
        ret->interrupted[i] = r->interrupted[i];
    pthread_mutex_unlock(&r->mu);
}

static void drop_turn(struct fair_turn *turn)
{
    if (turn->what)
        let_go(turn->what);
    free(turn);
}

void runner_free(struct runner *r)
{
    if (!r || r->threads) /* what did not park in time is ended with the process */
        return;
    scheduler_done(&r->scheduler);
    fair_done(&r->line, drop_turn);
    if (r->wake >= 0)
        close(r->wake);
    if (r->stop >= 0)
        close(r->stop);
    free(r->ended);
    pthread_cond_destroy(&r->less);
    pthread_mutex_destroy(&r->mu);
    arena_done(&r->arena);
    free(r);
}
