/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resumes what is due: a limited number of sessions at once, the others are queued. A session that could not continue is
 * retried later, with growing pauses. What a person stopped is never resumed here. The caller decides how a session
 * continues (in a process, in a thread), and makes one pass or one after the other.
 */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H

#include "base/err.h"
#include "base/map.h"

enum auto_resume { AUTO_OFF, AUTO_LIVE, AUTO_ALL }; /* of interrupted ones: none; whose process died; all */

struct scheduler_job {
    char id[TIDE_ID_SIZE];
    int64_t handle; /* the caller's, of start(); 0: queued */
};

enum job_state { JOB_RUNS, JOB_ENDED, JOB_FAILED };

struct scheduler {
    tide_store *store;
    bool dry_run, run_due;
    enum auto_resume automatic;
    int max_at_once, max_resumes; /* max_resumes: without getting further */

    int64_t retention_ms; /* sessions that are over are deleted so long after their last change; 0: never */

    bool (*stopped)(void *arg);
    /* Reports what was found; what was reported before is reported again only when it `resumes`. */
    void (*found)(void *arg, const struct tide_recovered *what, bool resumes);
    bool (*start)(void *arg, struct scheduler_job *job); /* sets its handle; false: no room for it now */
    enum job_state (*look)(void *arg, const struct scheduler_job *job, int *ret_status);
    void (*ended)(void *arg, const struct scheduler_job *job, int status, bool last); /* last: not retried here */
    void (*stop)(void *arg, const struct scheduler_job *job);
    void *arg;

    struct tide_recovery recovery; /* of the last pass */
    bool troubled;                 /* the store failed, perhaps temporarily: the next pass comes soon */
    int64_t would_resume, started, ended_badly;
    int64_t expired;        /* sessions that were deleted, or would be */
    int64_t next_expiry_ms; /* by the monotonic clock; finding them reads all sessions, which takes time */
    struct scheduler_job *list;
    size_t n, cap, running;
    char (*candidates)[TIDE_ID_SIZE];
    size_t n_candidates, cap_candidates;
    struct map failed; /* id -> struct job_failures * */
    struct map told;   /* id -> struct told *: what was last reported of it */
};

void scheduler_done(struct scheduler *s);

/* `word`, else TIDEMARK_AUTO_RESUME, else auto_resume of the settings, where `reads` says that they count; else `otherwise`. */
enum tide_code scheduler_automatic(const char *word, const char *config, bool reads, enum auto_resume otherwise,
                                   enum auto_resume *ret, struct tide_err *err) MUST_CHECK;

/* Records what happened while no process was running it, and queues what is to continue. TIDE_CORRUPT: both were done all the same. */
enum tide_code scheduler_pass(struct scheduler *s, struct tide_err *err) MUST_CHECK;

/* Handles jobs that have ended, and starts as many as may run. */
void scheduler_step(struct scheduler *s);

/* Waits until all have ended; once it is stopped, running jobs are stopped and queued ones dropped. */
void scheduler_finish(struct scheduler *s);

/* Milliseconds until the interval is over or the next session is due. began_ms: of monotonic_ms(). */
int64_t scheduler_time_left(const struct scheduler *s, int64_t began_ms, int64_t interval_ms, int64_t now_ms);

/*
 * For a caller that runs it continuously: the wait between two passes. It ends after the interval, or when the store has changed, but
 * not before a second has passed: a store may change all the time.
 *
 *     scheduler_wait_begin(&s, &w, interval_ms), then scheduler_pass(); while (scheduler_wait_left() > 0) sleep at most that long, until
 *     the store changes (unless w.changed) or a job may have ended; then scheduler_woken()
 */
#define SCHEDULER_CHANGE_MS 1000
struct scheduler_wait {
    int64_t began_ms, interval_ms, ended_badly;
    bool changed; /* the store has changed since the pass: it need not be watched any more */
};
void scheduler_wait_begin(const struct scheduler *s, struct scheduler_wait *w, int64_t interval_ms);
int64_t scheduler_wait_left(const struct scheduler *s, const struct scheduler_wait *w,
                            int64_t now_ms); /* 0: no longer */
void scheduler_woken(struct scheduler *s, struct scheduler_wait *w, bool changed);

#endif
