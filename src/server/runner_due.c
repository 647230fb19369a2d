/* SPDX-License-Identifier: Apache-2.0 */
/* What is due, and what was cut, continues by itself: the scheduler's jobs are runs that wait for their turn like all others. */
#include <limits.h>
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "env/file_watch.h"
#include "server/runner_internal.h"

#define MAX_RESUMES 3
#define CHANGE_MS 1000

static bool scheduler_stopped(void *arg)
{
    const struct runner *r = arg;

    return r->stopping;
}

void runner_count_interruption(struct runner *r, const struct tide_recovered *what)
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
    runner_count_interruption(arg, what);
    log_write(TIDE_LOG_INFO, resumes ? "session is due" : "session was looked at",
              log_text("session", what->session_id), log_text("action", tide_recovered_action_name(what->action)));
}

/* It waits for its turn here, not with the scheduler, which knows no tasks. */
static bool start_job(void *arg, struct scheduler_job *job)
{
    job->handle = runner_put_due(arg, job->id);
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
    left = next_ms ? next_ms - monotonic_ms() : 1000000;
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

    while (!r->stopping && (left = scheduler_time_left(&r->scheduler, began_ms, r->opt.interval_ms, wall_ms())) > 0) {
        int64_t soonest = began_ms + CHANGE_MS - monotonic_ms(); /* it may be changing all the time */

        if (changed && soonest <= 0)
            return;
        left = min_ms(left, patience_left(r));
        p[0].fd = changed ? -1 : tide_watch_fd(watch);
        p[0].revents = p[1].revents = 0;
        (void)!poll(p, 2, (int)(changed ? min_ms(left, soonest) : left));
        if (p[1].revents)
            (void)wake_fd_wait(r->wake, 0);
        runner_refuse_late(r);
        scheduler_step(&r->scheduler);
        changed |= p[0].revents && (tide_watch_wait(watch, 0, &is, &err) || is);
    }
}

struct scheduler runner_scheduler(struct runner *r)
{
    return (struct scheduler){.store = r->store,
                              .run_due = true,
                              .automatic = r->opt.automatic,
                              .max_at_once = INT_MAX, /* they wait for their turn here */
                              .max_resumes = MAX_RESUMES,
                              .stopped = scheduler_stopped,
                              .found = scheduler_found,
                              .start = start_job,
                              .look = look_at_job,
                              .ended = job_ended,
                              .stop = stop_job,
                              .arg = r};
}

void *runner_run_due(void *arg)
{
    struct runner *r = arg;
    tide_watch *watch = NULL;
    struct tide_err err;

    if (tide_watch_open(r->store, &watch, &err)) {
        log_write(TIDE_LOG_ERROR, "the store cannot be watched", log_text("error", err.msg));
        return NULL;
    }
    while (!r->stopping) {
        int64_t began_ms = monotonic_ms();
        enum tide_code code = scheduler_pass(&r->scheduler, &err);

        if (code && code != TIDE_CORRUPT)
            log_write(TIDE_LOG_WARN, "the store cannot be looked at", log_text("error", err.msg));
        scheduler_step(&r->scheduler);
        wait_for_work(r, watch, began_ms);
    }
    tide_watch_close(watch);
    return NULL;
}
