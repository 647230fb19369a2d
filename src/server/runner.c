/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places and turns: who may run now, who waits, and who has waited too long. What runs then is in active_run.c.
 */
#include "server/runner_internal.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/thread.h"
#include "env/file_watch.h"

#define LEAVING_MS 2000   /* at most, between the end of a run on disk and that of what ran it */
#define ASKED_MAX 256     /* that wait for a place at once */
#define PATIENCE_MS 20000 /* … each of them so long */

/* ---- places ---- */

/* For the scheduler, which asks for it later. With mu held. */
static void note_end(struct runner *r, int64_t handle, bool failed)
{
    if (!handle)
        return;
    MEM_ROOM(r->ended, r->n_ended, r->cap_ended);
    r->ended[r->n_ended++] = (struct ended){handle, failed};
    wake_fd_signal(r->wake);
}

/* With mu held. */
void runner_leave_place(struct runner *r, struct active *a, bool failed)
{
    INVARIANT(*a->before == a && r->places > 0);
    *a->before = a->next;
    if (a->next)
        a->next->before = a->before;
    r->places--;
    fair_ended(&r->line, a->task);
    note_end(r, a->handle, failed);
    pthread_cond_broadcast(&r->less);
}

struct look {
    enum tide_session_kind kind;
    int64_t last_seq;
    bool resumable, held; /* held: by the process that runs it */
    char *task;           /* "": none */
};

static enum tide_code look_at_session(struct runner *r, const char *id, struct look *ret, struct tide_err *err)
{
    const struct tide_session_info *info;
    tide_session *session = NULL;
    enum tide_code code = tide_session_open(r->store, id, TIDE_SESSION_WHOLE, &session, err);

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
    enum tide_code code = look_at_session(r, turn->id, &look, err);

    free(look.task);
    if (!a && !code && look.resumable) {
        a = active_new(r, turn->id);
        a->core.ask = (struct resume_request){.id = a->id, .unattended = true};
        a->handle = turn->handle;
    }
    if (a) {
        if (!code && a->expect_seq && a->expect_seq != look.last_seq)
            (void)!refuse_moved(a->id, look.last_seq, a->expect_seq, err);
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
static enum tide_code enter_place(struct runner *r, struct active *a, struct tide_err *err)
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
    if (thread_start(&a->thread, active_run, a)) {
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
    active_answer(a, NULL, err);
    if (a->follower) /* it is stopped, and must not answer */
        follower_leave(r->feed, a->id, a->follower);
    active_release(a);
}

static void begin_turn(struct runner *r, struct fair_turn *turn)
{
    struct tide_err err = {0};
    struct active *a = active_of_turn(r, turn, &err);

    if (a && !err.code && active_is_awaited(a) && !a->until_parked) /* else the end is in the log */
        (void)!active_watch_begin(a, &err);
    pthread_mutex_lock(&r->mu);
    if (a && !err.code)
        (void)!enter_place(r, a, &err);
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

void runner_give_places(struct runner *r)
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

/* Its run has ended on disk, and what ran it is about to leave: the caller that saw that end may continue at once. With mu held. */
static void await_leaving(struct runner *r, const char *id)
{
    const struct timespec until = monotonic_after(LEAVING_MS);

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
        turn->until_ms = monotonic_ms() + PATIENCE_MS;
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

    active_take_order(a, order);
    a->fn = fn;
    a->arg = arg;
    code = look_at_session(r, a->id, &look, err);
    code = code ? code : put_asked(r, a, &look, err);
    free(look.task);
    if (code) {
        active_release(a);
        return code;
    }
    runner_give_places(r); /* the caller that asked may have been answered by now */
    wake_fd_signal(r->wake);
    return TIDE_OK;
}

int64_t runner_put_due(struct runner *r, const char *id)
{
    struct look look = {.task = NULL};
    struct fair_turn *turn;
    struct tide_err err;
    enum tide_code code = look_at_session(r, id, &look, &err);
    int64_t handle;

    pthread_mutex_lock(&r->mu);
    handle = ++r->last_handle;
    if (code) {
        note_end(r, handle, code != TIDE_NOT_FOUND);
    } else {
        turn = turn_new(id);
        turn->handle = handle;
        fair_put(&r->line, look.task, turn);
    }
    pthread_mutex_unlock(&r->mu);
    free(look.task);
    runner_give_places(r);
    return handle;
}

/* Those that have waited too long; all of them once it stops. */
void runner_refuse_late(struct runner *r)
{
    const int64_t now_ms = r->stopping ? INT64_MAX : monotonic_ms();
    struct fair_turn *late;
    struct tide_err err;

    for (;;) {
        pthread_mutex_lock(&r->mu);
        late = fair_take_late(&r->line, now_ms);
        pthread_mutex_unlock(&r->mu);
        if (!late)
            return;
        (void)!(r->stopping ? refuse_stopping(&err) : refuse_full(r, &err));
        active_answer(late->what, NULL, &err);
        active_release(late->what);
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

/* ---- the runner ---- */

struct runner *runner_new(tide_store *store, struct feed *feed, const struct runner_options *opt)
{
    struct runner *r = mem_zero(sizeof *r);

    r->store = store;
    r->feed = feed;
    r->opt = *opt;
    r->opt.url = arena_text(&r->arena, opt->url);
    r->opt.config = arena_text(&r->arena, opt->config);
    r->opt.key_file = arena_text(&r->arena, opt->key_file);
    r->wake = r->stop = -1;
    pthread_mutex_init(&r->mu, NULL);
    cond_init_monotonic(&r->less);
    r->scheduler = runner_scheduler(r);
    return r;
}

static int count_found(void *arg, const struct tide_recovered *what)
{
    runner_count_interruption(arg, what);
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
    r->running = thread_start(&r->thread, runner_run_due, r);
    return r->running ? TIDE_OK : tide_fail(err, TIDE_BUSY, "no thread could be started");
}

/* Programs continue by themselves: only chats and graphs are asked. */
static void ask_to_park(struct runner *r)
{
    for (struct active *a = r->list; a; a = a->next) {
        pthread_mutex_lock(&a->mu);
        active_shut_down(a);
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
    until = monotonic_after(deadline_ms);
    runner_refuse_late(r);
    pthread_mutex_lock(&r->mu);
    ask_to_park(r);
    while (r->threads && pthread_cond_timedwait(&r->less, &r->mu, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&r->mu);
}

void runner_count(struct runner *r, struct runner_counts *ret)
{
    pthread_mutex_lock(&r->mu);
    *ret = (struct runner_counts){r->places, r->line.due, r->line.asked, r->started, r->failed, r->degraded, {0}};
    for (size_t i = 0; i < sizeof r->interrupted / sizeof r->interrupted[0]; i++)
        ret->interrupted[i] = r->interrupted[i];
    pthread_mutex_unlock(&r->mu);
}

static void drop_turn(struct fair_turn *turn)
{
    if (turn->what)
        active_release(turn->what);
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
