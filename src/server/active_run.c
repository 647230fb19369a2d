/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run, from an order or from what is due to its end. It has begun when its event is on disk, not when a thread was started for it:
 * the caller that asked is answered by that event, which a follower of the feed sees, or by the failure that came before it.
 */
#include <stdio.h>

#include "base/log.h"
#include "engine/settings.h"
#include "engine/shapes.h"
#include "engine/streamed_event.h"
#include "server/program_process.h"
#include "server/runner_internal.h"

/* ---- the caller that asked -------------------------------------------------------------------------------------------------- */

void active_release(struct active *a)
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

void active_answer(struct active *a, const struct begun *begun, const struct tide_err *err)
{
    begun_fn *fn;

    pthread_mutex_lock(&a->mu);
    fn = a->fn;
    a->fn = NULL;
    pthread_mutex_unlock(&a->mu);
    if (fn)
        fn(a->arg, begun, err);
}

bool active_is_awaited(struct active *a)
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
    active_answer(a, &(struct begun){item->kind, item->seq, item->json, NULL}, NULL);
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
    active_release(arg);
}

/* From here on the run's events are seen. */
enum tide_code active_watch_begin(struct active *a, struct tide_err *err)
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

static void publish_event(struct active *a, const struct streamed_event *event)
{
    AUTO(buf_done) struct buf json = BUF_INIT((size_t)1 << 20);
    struct json_out o = json_out_to(&json);

    shape_put(&o, &shape_event, event);
    feed_publish(a->runner->feed, FEED_TEXT, a->id, buf_view(&json));
}

/* The store cannot be written. What runs pauses until it can; what has not begun is refused, and the client retries. */
static void on_held(struct active *a)
{
    struct tide_err err = {0};

    if (!active_is_awaited(a))
        return;
    (void)!tide_fail_session(&err, TIDE_BUSY, a->id,
                             "cannot be run: the store cannot be written, and nothing was begun; try again later");
    active_answer(a, NULL, &err);
    pthread_mutex_lock(&a->mu);
    active_shut_down(a);
    pthread_mutex_unlock(&a->mu);
}

static void on_agent_event(void *arg, const struct tide_agent_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_AGENT_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_agent(&event, e))
        publish_event(arg, &event);
}

static void on_graph_event(void *arg, const struct tide_graph_event *e)
{
    struct streamed_event event;

    if (e->what == TIDE_GRAPH_NOTICE && e->delay_ms < 0)
        on_held(arg);

    if (streamed_event_of_graph(&event, e))
        publish_event(arg, &event);
}

static int on_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct active *a = arg;

    if (why && active_is_awaited(a)) {
        active_answer(a, NULL, why);
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
void active_shut_down(struct active *a)
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
        active_shut_down(a);
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
    active_answer(arg, &(struct begun){e->kind, e->seq, {text.ptr, text.len}, a->token[0] ? a->token : NULL}, NULL);
    return 1;
}

/* It is over before the follower saw its first event: whether it began is in the log. `err` NULL: it did nothing wrong. */
static void tell_from_log(struct active *a, const struct tide_err *err)
{
    tide_session *session = NULL;
    struct tide_err ignored;

    if (!active_is_awaited(a))
        return;
    if (!tide_session_open(a->runner->store, a->id, TIDE_SESSION_WHOLE, &session, &ignored))
        (void)!tide_session_read(session, 0, a->last_seq + 1, 0, tell_if_begin, a, &ignored);
    tide_session_close(session);
    active_answer(a, err ? NULL : &(struct begun){"", 0, STR("{}"), a->token[0] ? a->token : NULL}, err);
}

/* Something of it waited in memory while the store could not be written. */
static bool is_degraded(const struct active *a)
{
    const struct tide_session_info *info = NULL;
    tide_session *session = NULL;
    struct tide_err ignored;
    bool is = !tide_session_open(a->runner->store, a->id, TIDE_SESSION_WHOLE, &session, &ignored) &&
              !tide_session_get_info(session, &info, &ignored) && info->degraded_events > 0;

    tide_session_close(session);
    return is;
}

void *active_run(void *arg)
{
    struct active *a = arg;
    struct runner *r = a->runner;
    struct tide_err err = {0};
    bool apart = a->program || (!a->graph && a->kind == TIDE_KIND_PROGRAM);
    enum tide_code code = apart ? run_process(a, &err) : run_here(a, &err);
    bool failed = code && code != TIDE_WAITING && code != TIDE_CANCELLED && code != TIDE_NOT_FOUND;

    r->degraded += is_degraded(a);
    if (failed)
        log_write(TIDE_LOG_WARN, "a run ended badly", log_text("session", a->id), log_text("error", err.msg));
    if (!apart)
        snprintf(a->token, sizeof a->token, "%s", resume_token(&a->core));
    tell_from_log(a, code && code != TIDE_WAITING ? &err : NULL); /* that it waits is no failure */
    if (a->follower)
        follower_leave(r->feed, a->id, a->follower);
    pthread_mutex_lock(&r->mu);
    runner_leave_place(r, a, failed);
    r->failed += failed;
    pthread_mutex_unlock(&r->mu);
    active_release(a);
    runner_give_places(r);
    pthread_detach(pthread_self());
    pthread_mutex_lock(&r->mu); /* the last look at the runner */
    r->threads--;
    pthread_cond_broadcast(&r->less);
    pthread_mutex_unlock(&r->mu);
    return NULL;
}

/* ---- beginning ---- */

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
        copy[i] = arena_text(a, list[i]);
    return copy;
}

static void take_start(struct active *a, const struct order *o)
{
    struct arena *m = &a->arena;
    struct program_order *program = arena_zero(m, sizeof *program);
    struct graph_order *graph = arena_zero(m, sizeof *graph);

    if (o->program) {
        *program = *o->program;
        program->argv = dup_list(m, program->argv);
        program->cwd = arena_text(m, program->cwd);
        program->env = arena_text(m, program->env);
        program->set = arena_dup(m, program->set);
        a->program = program;
    }
    if (o->graph) {
        graph->json = arena_dup(m, o->graph->json);
        graph->dir = arena_text(m, o->graph->dir);
        a->graph = graph;
    }
}

void active_take_order(struct active *a, const struct order *o)
{
    struct resume_request *ask = &a->core.ask;
    struct arena *m = &a->arena;

    *ask = (struct resume_request){.id = a->id,
                                   .token = arena_text(m, o->token),
                                   .input = arena_text(m, o->input),
                                   .has_reason = o->has_reason,
                                   .ask_again = arena_text(m, o->ask_again),
                                   .request_id = arena_text(m, o->request_id),
                                   .retry = dup_list(m, o->retry),
                                   .happened = dup_list(m, o->happened),
                                   .now = o->now,
                                   .accept_change = o->accept_change,
                                   .graph = {.checkpoint = arena_text(m, o->checkpoint),
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
    a->expect_seq = o->expect_seq;
    a->message = arena_text(m, o->message);
    buf_add_str(&a->core.memory, o->memory);
    take_start(a, o);
}

struct active *active_new(struct runner *r, const char *id)
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
