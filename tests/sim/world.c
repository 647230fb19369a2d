/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and its processes: starting, dying, faults, reboots. */
#include "../seeded.h"
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

void world_init(struct world *w, uint64_t seed, const struct sim_image *image)
{
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->rng = seed * 0x9e3779b97f4a7c15 + 1;
    w->sim = image ? sim_new_from(seed, image) : sim_new(seed);
    w->clock = sim_proc_env(sim_proc_start(w->sim));
}

void world_done(struct world *w)
{
    w->quiet = true;
    for (int i = 0; i < w->proc_count; i++) {
        if (w->procs[i].store) {
            sim_proc_kill(w->procs[i].sim);
            proc_bury(w, &w->procs[i]);
        }
    }
    for (size_t i = 0; i < w->session_count; i++)
        free(w->sessions[i].events);
    arena_done(&w->arena);
    sim_free(w->sim);
}

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
    printf("# %6llu ", (unsigned long long)sim_op_count(w->sim));
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

void wrong(struct world *w, const char *fmt, ...)
{
    va_list ap;

    if (w->failed || w->quiet || (w->looker && !proc_alive(w->looker)))
        return;
    w->failed = true;
    va_start(ap, fmt);
    printf("# WRONG: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

int64_t now(struct world *w)
{
    return env_now_ms(w->clock);
}

/* ---- Faults --------------------------------------------------------------------------------------------------- */

void arm(struct world *w, enum sim_fault fault, uint64_t n, bool sticky)
{
    w->fault = fault;
    w->sticky = sticky;
    w->armed = fault != SIM_NO_FAULT;
    sim_fault_at(w->sim, fault, n, sticky);
    if (w->armed)
        say(w, "fault %d armed at %llu%s", (int)fault, (unsigned long long)n, sticky ? ", sticky" : "");
}

/* The threads that processes have beside their calls come by: there are none on this machine. */
static void hearts_beat(struct world *w)
{
    for (int i = 0; i < w->proc_count; i++) {
        struct store *store = proc_alive(&w->procs[i]) ? store_of(w->procs[i].store) : NULL;

        if (!store)
            continue;
        store_maintain(store);
        w->touch_ms[w->procs[i].number] = now(w);
    }
}

void disarm(struct world *w)
{
    if (w->armed)
        say(w, "fault lifted");
    w->armed = w->sticky = false;
    sim_fault_at(w->sim, SIM_NO_FAULT, 0, false);
    hearts_beat(w);
}

void call_begin(struct world *w)
{
    w->fired_before = sim_fault_fired(w->sim);
}

bool call_excused(struct world *w)
{
    return w->armed && sim_fault_fired(w->sim) && (w->sticky || !w->fired_before);
}

/* ---- Processes ------------------------------------------------------------------------------------------------ */

tide_store *open_store(struct world *w, struct sim_proc *p, struct tide_err *err)
{
    (void)w;
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

    memset(p, 0, sizeof *p);
    if (slot >= w->proc_count)
        w->proc_count = slot + 1;
    if (w->next_number == 256) {
        wrong(w, "the harness started too many processes");
        return NULL;
    }
    p->number = w->next_number++;
    p->sim = sim_proc_start(w->sim);
    call_begin(w);
    p->store = open_store(w, p->sim, &err);
    say(w, "process %d starts: %s%s", p->number, tide_code_name(err.code), p->store ? "" : err.msg);
    if (proc_alive(p))
        return p;
    if (!call_excused(w))
        wrong(w, "the store cannot be opened: %s: %s", tide_code_name(err.code), err.msg);
    if (err.code == TIDE_CORRUPT || err.code == TIDE_NOT_A_STORE) {
        if (!sim_proc_dead(p->sim))
            wrong(w, "a failing disk is taken for a damaged store: %s", err.msg);
    }
    sim_proc_kill(p->sim);
    bury_the_dead(w); /* the power may be gone for all */
    return NULL;
}

static void queue_to_doubt(struct world *w, struct proc *p)
{
    for (size_t i = 0; i < w->session_count; i++) {
        struct handle *h = &p->handles[i];
        struct o_batch list[QUEUE_MAX];

        for (size_t j = 0; j < h->queue_n; j++)
            list[j] = h->queue[j]->batch;
        if (h->queue_n && w->sessions[i].presence == PRESENT)
            o_doubt(w, &w->sessions[i], list, h->queue_n, NULL);
        h->queue_n = 0;
    }
}

static void close_all(struct world *w, struct proc *p)
{
    for (size_t i = 0; i < MAX_SESSIONS; i++)
        tide_session_close(p->handles[i].h);
    tide_store_close(p->store);
    p->store = NULL;
    (void)w;
}

void proc_bury(struct world *w, struct proc *p)
{
    drain(w, p);
    queue_to_doubt(w, p);
    close_all(w, p);
    say(w, "process %d is dead", p->number);
    memset(p->handles, 0, sizeof p->handles);
}

bool bury_the_dead(struct world *w)
{
    bool all = true;

    for (int i = 0; i < w->proc_count; i++) {
        if (w->procs[i].store && sim_proc_dead(w->procs[i].sim))
            proc_bury(w, &w->procs[i]);
        all &= !w->procs[i].store;
    }
    return all;
}

void proc_exit(struct world *w, struct proc *p)
{
    say(w, "process %d ends in order", p->number);
    for (size_t i = 0; i < w->session_count; i++) {
        if (p->handles[i].h && w->sessions[i].presence == PRESENT)
            do_close(w, p, &w->sessions[i]);
        if (!p->store)
            return;
    }
    if (sim_proc_dead(p->sim)) {
        proc_bury(w, p);
        return;
    }
    close_all(w, p);
    sim_proc_kill(p->sim);
    memset(p->handles, 0, sizeof p->handles);
}

struct proc *any_proc(struct world *w)
{
    uint64_t start = w->proc_count ? rnd(w, (uint64_t)w->proc_count) : 0;

    for (int i = 0; i < w->proc_count; i++) {
        struct proc *p = &w->procs[((int)start + i) % w->proc_count];

        if (proc_alive(p))
            return p;
    }
    return NULL;
}

bool reboot(struct world *w, bool faults)
{
    struct proc *p = NULL;

    bury_the_dead(w);
    for (int tries = 0; faults && !p && tries < 3; tries++) {
        arm(w, chance(w, 60) ? SIM_POWER_CUT : SIM_KILL, 1 + rnd(w, chance(w, 50) ? 4 : 40), false);
        p = proc_start(w, 0);
    }
    disarm(w);
    if (!p && !w->failed)
        p = proc_start(w, 0);
    return p != NULL;
}
