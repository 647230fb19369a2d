/* SPDX-License-Identifier: Apache-2.0 */
/* One seed: some processes work, something happens to them, and afterwards everything must be right. */
#include <stdio.h>

#include "world.h"

struct sim_image *prepared_image(void)
{
    struct sim *sim = sim_new(1);
    struct tide_err err;
    struct sim_image *image;
    tide_store *store = open_store(NULL, sim_proc_start(sim), &err);

    if (!store) {
        printf("# no store on an empty disk: %s\n", err.msg);
        exit(1);
    }
    tide_store_close(store);
    sim_store_trim(sim);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}

/* Nothing is in the way now: each process appends to sessions of its own choice, and a new one does as well. */
void must_work_again(struct world *w)
{
    for (int i = 0; i < 2 * w->proc_count && !w->failed; i++) {
        struct proc *p = &w->procs[i / 2];
        struct o_session *s = o_pick(w);

        if (!proc_alive(p) || !s || (i % 2 && chance(w, 70)))
            continue;
        sim_advance(w->sim, chance(w, 70) ? 0 : LEASE_MS + 1000);
        if (handle_of(w, p, s)->lost)
            do_close(w, p, s);
        do_append(w, p, s, 1, 0);
    }
}

struct damage {
    struct world *w;
    const struct o_session *s;
};

static int on_damaged(void *arg, const struct tide_event *ev)
{
    struct damage *d = arg;

    if (!str_eq(o_at(d->s, ev->seq)->body, (struct str){ev->body, ev->body_len}))
        wrong(d->w, "%s seq %lld: bytes were changed on disk, and it is handed out as if it were right", d->s->id,
              (long long)ev->seq);
    return d->w->failed;
}

/* Changes one digit of a stored event behind the store's back: what is read is right or refused. */
static void damage(struct world *w)
{
    struct o_session *s = o_pick(w);
    const struct o_event *e = s ? s->events[rnd(w, s->n)] : NULL;
    struct damage d = {w, s};
    struct tide_err err;
    tide_session *h;
    unsigned char *bytes, *at;
    size_t len;
    struct proc *p = &w->procs[0];
    char path[60 + TIDE_ID_SIZE] = STORE_PATH;

    if (!e || e->body.len < 24 || e->body.len > 2000 || tide_store_compact(p->store, &err))
        return;
    proc_exit(w, p);
    if (on_files())
        snprintf(path, sizeof path, STORE_DIR "/t/sessions/%s.messages.jsonl", s->id);
    if (w->failed || !sim_file_bytes(w->sim, path, &bytes, &len))
        return;
    at = memmem(bytes, len, e->body.ptr + 1, e->body.len - 2); /* its members: a line has others before and behind */
    if (!at)
        return;
    say(w, "damage: %.40s", e->body.ptr);
    at[e->body.len - 3] ^= 1;
    p = proc_start(w, 0);
    if (!p || tide_session_open(p->store, s->id, TIDE_SESSION_READ, &h, &err))
        return;
    (void)!tide_session_read(h, 0, 0, 0, on_damaged, &d, &err);
    tide_session_close(h);
}

static void plan_fault(struct world *w)
{
    static const enum sim_fault faults[] = {SIM_KILL,        SIM_POWER_CUT,  SIM_POWER_CUT,  SIM_EIO,       SIM_ENOSPC,
                                            SIM_SHORT_WRITE, SIM_SYNC_FAILS, SIM_SYNC_FAILS, SIM_READ_FAILS};
    enum sim_fault f = faults[rnd(w, sizeof faults / sizeof faults[0])];
    uint64_t n = 1 + rnd(w, 1u << (3 + rnd(w, 7)));

    if (f == SIM_SYNC_FAILS)
        n = 1 + n / 12;
    if (chance(w, 90))
        arm(w, f, n, f >= SIM_EIO && chance(w, 30));
}

static void work(struct world *w, uint64_t steps)
{
    for (uint64_t i = 0; i < steps && !w->failed && any_proc(w); i++) {
        step(w);
        if (w->armed && sim_fault_fired(w->sim)) {
            if (w->fault == SIM_POWER_CUT)
                return;
            if (chance(w, w->sticky ? 25 : 10))
                disarm(w);
        }
    }
}

static void the_end_of_all(struct world *w)
{
    uint64_t how = rnd(w, 3);

    if (how == 0) {
        for (int i = 0; i < w->proc_count; i++) {
            if (proc_alive(&w->procs[i]))
                proc_exit(w, &w->procs[i]);
        }
    } else if (how == 1) {
        say(w, "all are killed");
        for (int i = 0; i < w->proc_count; i++) {
            if (w->procs[i].store)
                sim_proc_kill(w->procs[i].sim);
        }
    }
    if (how == 2 || chance(w, 30)) {
        say(w, "power cut");
        sim_power_cut(w->sim);
    }
    bury_the_dead(w);
}

static void life(struct world *w, int processes, uint64_t steps)
{
    for (int i = 0; i < processes && !w->failed; i++)
        proc_start(w, i);
    if (!w->failed)
        plan_fault(w);
    work(w, steps);
    disarm(w);
    bury_the_dead(w);
    if (!w->failed)
        must_work_again(w);
}

bool run_seed(uint64_t seed, const struct sim_image *image, bool verbose)
{
    struct world w;
    bool fresh, ok;

    world_init(&w, seed, image);
    w.verbose = verbose;
    fresh = rnd(&w, 40) == 0;
    if (fresh) { /* on an empty disk */
        sim_free(w.sim);
        w.sim = sim_new(seed);
        w.clock = sim_proc_env(sim_proc_start(w.sim));
    }
    for (uint64_t lives = chance(&w, 86) ? 1 : 2; lives > 0 && !w.failed; lives--) {
        life(&w, chance(&w, 60) ? 1 : chance(&w, 75) ? 2 : 3, 3 + rnd(&w, chance(&w, 85) ? 8 : 26));
        if (!w.failed)
            the_end_of_all(&w);
        if (!w.failed && reboot(&w, chance(&w, 30)))
            check_all(&w, w.procs[0].store, chance(&w, 50));
        sim_advance(w.sim, LEASE_MS + 1000);
        if (!w.failed && lives == 1)
            must_work_again(&w);
        if (!w.failed && lives == 1 && chance(&w, 12))
            check_rebuilt(&w, w.procs[0].store);
        if (!w.failed && lives == 1 && chance(&w, 8))
            damage(&w);
        if (!w.failed && lives > 1)
            proc_exit(&w, &w.procs[0]);
    }
    ok = !w.failed;
    world_done(&w);
    return ok;
}
