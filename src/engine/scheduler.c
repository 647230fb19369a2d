/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/scheduler.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/housekeeping.h"
#include "engine/settings.h"
#include "session/session.h"
#include "store/store.h"

#define LOOK_MS 20        /* between two looks at what runs, while there is nothing else to do */
#define PAUSE_MS 30000    /* before one that failed is tried again; doubled each time, */
#define EXPIRY_MS 3600000 /* between two looks for sessions that were kept long enough */
#define PAUSE_DOUBLINGS 6 /* so often at most */

struct job_failures {
    int n;
    int64_t not_before_ms; /* by clock_ms(): the other may be set back */
};

static int64_t clock_ms(const struct scheduler *s)
{
    struct env *env = store_of(s->store)->env;

    return env->ops->mono_ns(env) / 1000000;
}

void scheduler_done(struct scheduler *s)
{
    free(TAKE(s->list));
    free(TAKE(s->candidates));
    map_done(&s->failed, free);
    map_done(&s->told, free);
}

enum tide_code scheduler_automatic(const char *word, const char *config, bool reads, enum auto_resume otherwise,
                                   enum auto_resume *ret, struct tide_err *err)
{
    static const char *const words[] = {[AUTO_OFF] = "off", [AUTO_LIVE] = "live", [AUTO_ALL] = "all"};
    const char *env = getenv("TIDEMARK_AUTO_RESUME");
    AUTO(mem_freep) char *set = NULL;

    word = word ? word : env && *env ? env : NULL;
    if (!word && reads && settings_one(config, "auto_resume", &set, err))
        return err->code;
    word = word ? word : set ? set : words[otherwise];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) == 0) {
            *ret = (enum auto_resume)i;
            return TIDE_OK;
        }
    }
    return tide_fail(err, TIDE_INVALID, "$TIDEMARK_AUTO_RESUME: '%.60s' is not one of: off live all", word);
}

/* ---- the line ---- */

/* True when it was the last time. */
static bool note_failure(struct scheduler *s, const char *id)
{
    struct job_failures *f = map_get(&s->failed, str_from(id));
    int64_t pause_ms;
    bool last;

    if (!f) {
        f = mem_zero(sizeof(*f));
        map_put(&s->failed, str_from(id), f);
    }
    pause_ms = (int64_t)PAUSE_MS << (f->n < PAUSE_DOUBLINGS ? f->n : PAUSE_DOUBLINGS);
    f->n++;
    f->not_before_ms = clock_ms(s) + pause_ms;
    last = f->n >= s->max_resumes;
    log_write(last ? TIDE_LOG_ERROR : TIDE_LOG_WARN, last ? "resume failed: given up" : "resume failed: tried again",
              log_text("session", id), log_number(last ? NULL : "pause_ms", pause_ms));
    return last;
}

static void drop_job(struct scheduler *s, size_t i)
{
    memmove(&s->list[i], &s->list[i + 1], (s->n - i - 1) * sizeof(*s->list));
    s->n--;
}

static void reap_jobs(struct scheduler *s)
{
    for (size_t i = 0; i < s->n;) {
        const struct scheduler_job *job = &s->list[i];
        int status = 0;
        enum job_state state = job->handle ? s->look(s->arg, job, &status) : JOB_RUNS;

        if (state == JOB_RUNS) {
            i++;
            continue;
        }
        s->running--;
        s->ended_badly += state == JOB_FAILED;
        s->ended(s->arg, job, status, state == JOB_FAILED && note_failure(s, job->id));
        if (state == JOB_ENDED)
            free(map_remove(&s->failed, str_from(job->id)));
        drop_job(s, i);
    }
}

static bool is_in_line(const struct scheduler *s, const char *id)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].id, id) == 0)
            return true;
    return false;
}

/* One that is there already, or that failed a moment ago, is left alone. */
static void put_in_line(struct scheduler *s, const char *id)
{
    const struct job_failures *f = map_get(&s->failed, str_from(id));

    if (f && (f->n >= s->max_resumes || f->not_before_ms > clock_ms(s)))
        return;
    if (is_in_line(s, id))
        return;
    MEM_ROOM(s->list, s->n, s->cap);
    s->list[s->n] = (struct scheduler_job){.handle = 0};
    snprintf(s->list[s->n++].id, TIDE_ID_SIZE, "%s", id);
}

/*
 * The candidates are all that are to continue now: of others that failed here it is forgotten. Somebody else was faster, as a rule,
 * and may be gone when they are due once more.
 */
static void forget_failed(struct scheduler *s)
{
    for (struct map_entry *e = map_next(&s->failed, NULL); e; e = map_next(&s->failed, e)) {
        bool kept = is_in_line(s, e->key);

        for (size_t i = 0; i < s->n_candidates && !kept; i++)
            kept = strcmp(s->candidates[i], e->key) == 0;
        if (!kept)
            free(map_remove(&s->failed, map_key(e)));
    }
}

void scheduler_step(struct scheduler *s)
{
    reap_jobs(s);
    for (size_t i = 0; i < s->n && s->running < (size_t)s->max_at_once && !s->stopped(s->arg); i++) {
        if (s->list[i].handle)
            continue;
        if (!s->start(s->arg, &s->list[i])) /* it stays in line */
            break;
        s->running++;
        s->started++;
        log_write(TIDE_LOG_INFO, "session is resumed", log_text("session", s->list[i].id));
    }
}

void scheduler_finish(struct scheduler *s)
{
    bool told = false;

    while (s->n > 0) {
        scheduler_step(s);
        if (s->stopped(s->arg) && !told) {
            for (size_t i = 0; i < s->n;) {
                if (s->list[i].handle)
                    s->stop(s->arg, &s->list[i++]);
                else
                    drop_job(s, i);
            }
            told = true;
        }
        if (s->n > 0)
            poll(NULL, 0, LOOK_MS);
    }
}

/* ---- what continues ---- */

static bool is_word(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

/* One that was parked when it was interrupted has to be asked again by a person. */
static bool goes_on(const struct scheduler *s, const struct tide_recovered *what)
{
    if (!s->run_due || !what->has_program || what->by_person || !what->trusted)
        return false;
    if (what->action == TIDE_RECOVERED_DUE || what->action == TIDE_RECOVERED_ANSWERED)
        return true;
    if (what->status != TIDE_STATUS_INTERRUPTED_STARTUP)
        return false;
    if (what->resumes >= s->max_resumes)
        return false;
    return s->automatic == AUTO_ALL || (s->automatic == AUTO_LIVE && is_word(what->reason, "process_restart"));
}

static void add_candidate(struct scheduler *s, const char *id)
{
    for (size_t i = 0; i < s->n_candidates; i++)
        if (strcmp(s->candidates[i], id) == 0)
            return;
    MEM_ROOM(s->candidates, s->n_candidates, s->cap_candidates);
    snprintf(s->candidates[s->n_candidates++], TIDE_ID_SIZE, "%s", id);
}

/* The same about the same run or wait is reported once. */
struct told {
    enum tide_recovered_action action;
    char reason[64];
    int64_t seq;
};

static bool was_told(struct scheduler *s, const struct tide_recovered *what)
{
    struct told *told = map_get(&s->told, str_from(what->session_id)), now = {.action = what->action, .seq = what->seq};

    snprintf(now.reason, sizeof now.reason, "%s", what->reason ? what->reason : "");
    if (told && told->seq == now.seq && told->action == now.action && strcmp(told->reason, now.reason) == 0)
        return true;
    if (!told) {
        told = mem_zero(sizeof(*told));
        map_put(&s->told, str_from(what->session_id), told);
    }
    *told = now;
    return false;
}

static int on_recovered(void *arg, const struct tide_recovered *what)
{
    struct scheduler *s = arg;
    bool resumes = goes_on(s, what), news = what->action != TIDE_RECOVERED_RESUMABLE;

    if (resumes)
        add_candidate(s, what->session_id);
    if ((news || resumes) && !was_told(s, what))
        s->found(s->arg, what, resumes);
    return s->stopped(s->arg);
}

/* Those that were interrupted before; the previous pass has reported the others. */
static int on_resumable(void *arg, const struct tide_recovered *what)
{
    return what->action == TIDE_RECOVERED_RESUMABLE ? on_recovered(arg, what) : 0;
}

enum tide_code scheduler_pass(struct scheduler *s, struct tide_err *err)
{
    unsigned flags = s->dry_run ? TIDE_RECOVER_DRY_RUN : 0u;
    enum tide_code code = tide_store_recover(s->store, flags, on_recovered, s, &s->recovery, err), more;
    struct tide_err later;

    if (s->run_due && s->automatic != AUTO_OFF &&
        (!code || code == TIDE_CORRUPT)) { /* one damaged is in nobody's way */
        more = tide_store_recover(s->store, flags | TIDE_RECOVER_ALL, on_resumable, s, NULL, code ? &later : err);
        code = code ? code : more;
    }
    if (!code || code == TIDE_CORRUPT)
        forget_failed(s);
    for (size_t i = 0; i < s->n_candidates && !s->stopped(s->arg); i++) {
        s->would_resume++;
        if (!s->dry_run)
            put_in_line(s, s->candidates[i]);
    }
    s->n_candidates = 0;
    if ((!code || code == TIDE_CORRUPT) && s->retention_ms && clock_ms(s) >= s->next_expiry_ms) {
        s->next_expiry_ms = clock_ms(s) + EXPIRY_MS;
        more = housekeeping_expire(s->store, s->retention_ms, s->dry_run, &s->expired, code ? &later : err);
        code = code ? code : more;
    }
    s->troubled = session_is_trouble(code);
    return code;
}

/* When the next is due goes by the clock of the wall, which may be set. */
int64_t scheduler_time_left(const struct scheduler *s, int64_t began_ms, int64_t interval_ms, int64_t now_ms)
{
    int64_t pause = s->troubled && interval_ms > SCHEDULER_CHANGE_MS ? SCHEDULER_CHANGE_MS : interval_ms;
    int64_t left = began_ms + pause - clock_ms(s), due = s->recovery.next_ms - now_ms;

    return s->recovery.next_ms > 0 && due < left ? due : left;
}

void scheduler_wait_begin(const struct scheduler *s, struct scheduler_wait *w, int64_t interval_ms)
{
    *w = (struct scheduler_wait){
        .began_ms = clock_ms(s),
        .interval_ms = interval_ms > SCHEDULER_CHANGE_MS ? interval_ms : SCHEDULER_CHANGE_MS,
        .ended_badly = s->ended_badly,
    };
}

int64_t scheduler_wait_left(const struct scheduler *s, const struct scheduler_wait *w, int64_t now_ms)
{
    int64_t left = scheduler_time_left(s, w->began_ms, w->interval_ms, now_ms);
    int64_t soonest = w->began_ms + SCHEDULER_CHANGE_MS - clock_ms(s);
    bool in_line = s->n > s->running && s->running < (size_t)s->max_at_once; /* there was no room for a process */

    if (w->changed && soonest < left)
        left = soonest;
    else if (in_line && SCHEDULER_CHANGE_MS < left)
        left = SCHEDULER_CHANGE_MS;
    return left > 0 ? left : 0;
}

void scheduler_woken(struct scheduler *s, struct scheduler_wait *w, bool changed)
{
    scheduler_step(s);
    w->changed |=
        changed || s->ended_badly != w->ended_badly; /* is it still to continue, or was somebody else faster? */
}
