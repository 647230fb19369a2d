/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and its processes: starting, pausing, dying, faults, the clock. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../seeded.h"
#include "life.h"

/* ---- Choices and words ---------------------------------------------------------------------------------------- */

uint64_t rnd(struct world *w, uint64_t n)
{
    return seeded_next(&w->rng) % n;
}

bool chance(struct world *w, unsigned percent)
{
    return rnd(w, 100) < percent;
}

void say(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (!w->verbose || w->quiet)
        return;
    va_start(ap, fmt);
    printf("# %6llu %8lld %s", (unsigned long long)sim_op_count(w->sim), (long long)(now(w) % 100000000),
           w->depth ? "    " : "");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

void wrong(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->failed || w->quiet)
        return;
    w->failed = true;
    va_start(ap, fmt);
    printf("# WRONG: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

/* ---- The clock ------------------------------------------------------------------------------------------------ */

int64_t now(struct world *w)
{
    return env_now_ms(w->clock);
}

void note_clock(struct world *w)
{
    int64_t at = now(w);

    if (at > w->max_wall_ms)
        w->max_wall_ms = at;
    for (int i = 0; i < PROCS; i++) {
        if (w->procs[i].busy && at < w->procs[i].beat_ms)
            w->procs[i].beat_ms = at; /* a heartbeat now may take it back */
        for (int s = 0; s < SESSIONS; s++) {
            if (w->procs[i].doing[s].r && at - w->procs[i].beat_ms > SURE_MS)
                w->procs[i].doing[s].may_lose = true;
        }
    }
}

void clock_move(struct world *w, int64_t ms)
{
    note_clock(w);
    sim_advance(w->sim, ms);
    for (int i = 0; ms < 0 && i < PROCS; i++)
        w->procs[i].beat_ms += ms; /* leases go by the time that has passed, whatever the clock says */
    note_clock(w);
    say(w, "the clock moves by %lld ms", (long long)ms);
}

/* ---- Faults --------------------------------------------------------------------------------------------------- */

void arm(struct world *w)
{
    static const enum sim_fault faults[] = {SIM_KILL,       SIM_KILL,      SIM_POWER_CUT,   SIM_POWER_CUT,
                                            SIM_EIO,        SIM_ENOSPC,    SIM_SHORT_WRITE, SIM_SYNC_FAILS,
                                            SIM_SYNC_FAILS, SIM_SYNC_FAILS};
    enum sim_fault f = faults[rnd(w, sizeof faults / sizeof faults[0])];
    uint64_t n = 1 + rnd(w, 1u << (2 + rnd(w, 7)));

    if (w->armed || w->calm)
        return;
    if (f == SIM_SYNC_FAILS)
        n = 1 + n / 12;
    w->armed = true;
    w->sticky = f >= SIM_EIO && chance(w, 40);
    sim_fault_at(w->sim, f, n, w->sticky);
    say(w, "fault %d armed at %llu%s", (int)f, (unsigned long long)n, w->sticky ? ", sticky" : "");
}

void disarm(struct world *w)
{
    if (!w->armed)
        return;
    if (sim_fault_fired(w->sim))
        w->fired_past += 2; /* what was under way is excused, sticky or not */
    sim_fault_at(w->sim, SIM_NO_FAULT, 0, false);
    w->armed = w->sticky = false;
    say(w, "fault lifted");
}

static uint64_t fired(struct world *w)
{
    return w->fired_past + (w->armed && sim_fault_fired(w->sim));
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

struct call call_begin(struct world *w, struct proc *p)
{
    note_clock(w);
    p->busy = true;
    p->tries = 0;
    p->called_ms = now(w);
    p->call = (struct call){fired(w), w->nested};
    return p->call;
}

struct call call_release(struct world *w, struct proc *p)
{
    p->releasing = true;
    return call_begin(w, p);
}

bool call_faulty(struct world *w, const struct call *c)
{
    return fired(w) != c->fired || (w->armed && w->sticky && sim_fault_fired(w->sim));
}

bool call_disturbed(struct world *w, const struct call *c)
{
    return call_faulty(w, c) || w->nested != c->nested;
}

static bool is_trouble(enum tide_code code)
{
    return code == TIDE_IO || code == TIDE_FULL || code == TIDE_UNKNOWN || code == TIDE_BUSY;
}

/*
 * Whoever commits to several logs at once is stopped where it takes one of the locks, and has others. It cannot go on before this
 * call is over, so this call waits for as long as a lock is waited for, and is right to say so.
 */
static bool is_in_the_way(const struct world *w, enum tide_code code)
{
    return code == TIDE_BUSY && w->depth && on_files();
}

enum verdict call_end(struct world *w, struct proc *p, const struct call *c, const char *what, enum tide_code code,
                      const struct tide_err *err)
{
    note_clock(w);
    p->busy = p->releasing = false;
    say(w, "process %d: %s: %s%s%s%s", p->number, what, tide_code_name(code), code ? ": " : "", code ? err->msg : "",
        sim_proc_dead(p->sim) ? " (it died)" : "");
    if (sim_proc_dead(p->sim))
        return V_DEAD;
    if (!w->calm && chance(w, 1)) { /* nobody hears the answer */
        say(w, "process %d is killed", p->number);
        sim_proc_kill(p->sim);
        return V_DEAD;
    }
    if (code == TIDE_OK)
        return V_OK;
    if (!is_trouble(code))
        return V_OTHER;
    if (!call_faulty(w, c) && !is_in_the_way(w, code))
        wrong(w, "%s fails though nothing is in the way: %s: %s", what, tide_code_name(code), err->msg);
    return V_TROUBLE;
}

int life_trouble(void *arg, const struct tide_err *why, int64_t waited_ms)
{
    struct proc *p = ((void **)arg)[0];
    struct world *w = ((void **)arg)[1];

    (void)waited_ms;
    if (!why)
        return 0;
    if (sim_proc_dead(p->sim))
        return 1;
    if (chance(w, 40))
        disarm(w);
    return ++p->tries > 4 || chance(w, 15);
}

/* ---- Processes ------------------------------------------------------------------------------------------------ */

static tide_store *open_store(struct sim_proc *p, struct tide_err *err)
{
    return sim_store_open(p, LEASE_MS, err);
}

bool proc_alive(const struct proc *p)
{
    return p->store && !sim_proc_dead(p->sim);
}

struct proc *proc_start(struct world *w, int slot)
{
    struct proc *p = &w->procs[slot];
    struct tide_err err = {0};
    struct call c;

    memset(p, 0, sizeof *p);
    p->number = w->next_number++;
    p->self[0] = p;
    p->self[1] = w;
    p->sim = sim_proc_start(w->sim);
    c = call_begin(w, p);
    p->store = open_store(p->sim, &err);
    if (call_end(w, p, &c, "open", err.code, &err) == V_OTHER && !p->store && !call_disturbed(w, &c))
        wrong(w, "the store cannot be opened: %s", err.msg);
    if (proc_alive(p))
        return p;
    sim_proc_kill(p->sim);
    return NULL;
}

static void bury(struct world *w, struct proc *p)
{
    for (int s = 0; s < SESSIONS; s++)
        run_drop(w, p, s);
    tide_store_close(p->store);
    p->store = NULL;
    p->paused = false;
    say(w, "process %d is gone", p->number);
}

void bury_the_dead(struct world *w)
{
    for (int i = 0; i < PROCS && w->depth == 0; i++) {
        if (w->procs[i].store && sim_proc_dead(w->procs[i].sim))
            bury(w, &w->procs[i]);
    }
}

void proc_kill(struct world *w, struct proc *p)
{
    say(w, "process %d is killed", p->number);
    sim_proc_kill(p->sim);
    bury_the_dead(w);
}

void proc_exit(struct world *w, struct proc *p)
{
    say(w, "process %d ends in order", p->number);
    p->busy = true;
    bury(w, p);
    p->busy = false;
    sim_proc_kill(p->sim);
}

struct proc *any_proc(struct world *w)
{
    uint64_t start = rnd(w, PROCS);

    for (int i = 0; i < PROCS; i++) {
        struct proc *p = &w->procs[((int)start + i) % PROCS];

        if (proc_alive(p) && !p->paused && !p->busy)
            return p;
    }
    return NULL;
}

/* ---- The beginning and the end -------------------------------------------------------------------------------- */

/* In the middle of somebody's call: another may be faster. */
static void others_first(void *arg, struct sim_proc *caller)
{
    struct world *w = arg;
    struct proc *p;

    (void)caller;
    if (w->calm || w->failed || w->depth || !chance(w, 18))
        return;
    note_clock(w);
    p = any_proc(w);
    if (!p)
        return;
    w->depth++;
    w->nested++;
    act_any(w, p);
    w->depth--;
}

void world_init(struct world *w, uint64_t seed, const struct sim_image *image)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->rng = seed * 0x9e3779b97f4a7c15 + 7;
    w->sim = sim_new_from(seed, image);
    w->clock = sim_proc_env(sim_proc_start(w->sim));
    sim_on_pause(w->sim, others_first, w);
}

static void list_done(void *list)
{
    LIST(effect) *l = list;

    free(l->all);
}

void world_done(struct world *w)
{
    void *lists[] = {&w->effects,  &w->tokens, &w->passed, &w->asked, &w->messages,
                     &w->requests, &w->ended,  &w->marked, &w->acks};

    w->quiet = true;
    for (int i = 0; i < PROCS; i++) {
        if (w->procs[i].store)
            sim_proc_kill(w->procs[i].sim);
    }
    bury_the_dead(w);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        list_done(lists[i]);
    arena_done(&w->arena);
    sim_free(w->sim);
}

static void make_sessions(tide_store *store)
{
    struct tide_err err;

    for (int i = 0; i < SESSIONS; i++) {
        char id[8];
        tide_session *h = NULL;

        snprintf(id, sizeof id, "s%d", i + 1);
        if (tide_session_create(store, id, NULL, &h, &err)) {
            printf("# no session in an empty store: %s\n", err.msg);
            exit(1);
        }
        tide_session_close(h);
    }
}

struct sim_image *prepared_image(void)
{
    struct sim *sim = sim_new(1);
    struct tide_err err;
    struct sim_image *image;
    tide_store *store = open_store(sim_proc_start(sim), &err);

    if (!store) {
        printf("# no store on an empty disk: %s\n", err.msg);
        exit(1);
    }
    make_sessions(store);
    tide_store_close(store);
    sim_store_trim(sim);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}
