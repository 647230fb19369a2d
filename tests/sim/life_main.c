/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark-sim-life: runs, waits, tokens and recovery on a simulated machine, against the world outside.
 *
 *   tidemark-sim-life --seeds A..B [--seconds N]   seeds in order, until the time is up
 *   tidemark-sim-life --seed X [--verbose]         one seed, step by step
 *
 * A seed that fails is printed with what to do to see it again; the exit status is then 1.
 */
#include "life.h"
#include "sim_seeds.h"

/* ---- One seed --------------------------------------------------------------------------------------------------- */

static void turn(struct world *w)
{
    struct proc *p = any_proc(w);
    uint64_t x = rnd(w, 100);
    int slot = (int)rnd(w, PROCS);

    if (!w->procs[slot].store && (x < 15 || !p)) {
        proc_start(w, slot);
        return;
    }
    if (w->procs[slot].store && w->procs[slot].paused && x < 20) {
        w->procs[slot].paused = false;
        say(w, "process %d wakes", w->procs[slot].number);
        return;
    }
    if (!p)
        return;
    if (x >= 96)
        arm(w);
    if (x == 0) {
        proc_kill(w, p);
    } else if (x == 1) {
        proc_exit(w, p);
    } else if (x < 4) {
        p->paused = true;
        say(w, "process %d is stopped", p->number);
        if (chance(w, 60))
            clock_move(w, LEASE_MS + 1000);
    } else {
        act_any(w, p);
    }
}

static void live(struct world *w, uint64_t turns)
{
    for (uint64_t i = 0; i < turns && !w->failed; i++) {
        turn(w);
        bury_the_dead(w);
        if (w->armed && sim_fault_fired(w->sim) && (!w->sticky || chance(w, 20)))
            disarm(w);
    }
}

/* Everything stops: in order, by kill, or by a power cut. */
static void stop_all(struct world *w)
{
    uint64_t how = rnd(w, 3);

    disarm(w);
    bury_the_dead(w);
    w->calm = true;
    for (int i = 0; i < PROCS; i++) {
        if (!w->procs[i].store)
            continue;
        if (how == 0)
            proc_exit(w, &w->procs[i]);
        else
            sim_proc_kill(w->procs[i].sim);
    }
    if (how == 2) {
        say(w, "power cut");
        sim_power_cut(w->sim);
    }
    bury_the_dead(w);
    if (now(w) <= w->max_wall_ms + LEASE_MS)
        clock_move(w, w->max_wall_ms + LEASE_MS + 1000 - now(w)); /* whoever died is silent long enough for all */
}

/* ---- Nothing is in the way any more: everything comes to its end -------------------------------------------------- */

/* Whether the token handed out last is the one of the wait: another may have been minted and lost in a crash. */
static bool has_token(struct world *w, struct proc *p, int s)
{
    const struct token_out *last = NULL;
    bool good = false;
    struct log_fold t;

    for (size_t i = 0; i < w->tokens.n; i++) {
        if (w->tokens.all[i]->session == s)
            last = w->tokens.all[i];
    }
    if (!last || !log_fold_read(w, p, s, &t))
        return false;
    if (log_fold_run(&t) && log_fold_run(&t)->token)
        good = str_eq(log_fold_run(&t)->token->id, str_from(last->id));
    log_fold_done(&t);
    return good;
}

static void go_on(struct world *w, struct proc *p, int s, const struct view *v)
{
    struct resume_plan plan = {.right = BY_OWNER, .retry = true};

    if (v->status == TIDE_STATUS_WAITING && v->due_ms && v->due_ms > now(w))
        clock_move(w, v->due_ms - now(w));
    if (v->status == TIDE_STATUS_WAITING && !v->due_ms &&
        strcmp(v->reason, "due") != 0) { /* else its default answers */
        plan.answer = true;
        if (chance(w, 50))
            act_rotate(w, p, s);
        plan.right = has_token(w, p, s) ? BY_TOKEN : BY_OWNER;
    }
    if (v->status != TIDE_STATUS_RUNNING && chance(w, 20))
        act_ask_again(w, p, s);
    else if (v->status == TIDE_STATUS_IDLE && !v->resumable)
        act_start(w, p, s);
    else
        act_resume(w, p, s, &plan);
}

static void drive(struct world *w, struct proc *p, int s)
{
    struct view v = {.status = 0};
    int calls = 0;

    for (int rounds = 0; rounds < 60 && !w->failed; rounds++) {
        if (!show(w, p, s, &v) || v.outcome == TIDE_OUTCOME_COMPLETED)
            return;
        go_on(w, p, s, &v);
        while (p->doing[s].r && !w->failed && calls++ < 2000)
            program_step(w, p, s);
    }
    wrong(w, "%s does not come to its end: %s (%s)", w->sessions[s].id, tide_status_name(v.status), v.reason);
}

static void settle(struct world *w)
{
    struct proc *p;

    stop_all(w);
    p = proc_start(w, 0);
    if (!p)
        return;
    if (chance(w, 50))
        check_all(w, p);
    act_recover(w, p, 0);
    if (!w->failed)
        check_recovered(w, p);
    if (!w->failed)
        check_all(w, p);
    for (int s = 0; s < w->session_count && !w->failed; s++)
        drive(w, p, s);
    if (!w->failed)
        check_all(w, p);
    if (!w->failed)
        check_recovered(w, p);
}

static bool run_seed(uint64_t seed, const struct sim_image *image, bool verbose)
{
    static struct world w;
    bool ok;

    world_init(&w, seed, image);
    w.verbose = verbose;
    w.session_count = 1 + (int)rnd(&w, SESSIONS);
    for (int s = 0; s < w.session_count; s++) {
        snprintf(w.sessions[s].id, sizeof w.sessions[s].id, "s%d", s + 1);
        program_make(&w, &w.sessions[s]);
    }
    for (int i = 0; i < 1 + (int)rnd(&w, PROCS); i++)
        proc_start(&w, i);
    live(&w, 20 + rnd(&w, chance(&w, 80) ? 60 : 200));
    if (!w.failed)
        settle(&w);
    ok = !w.failed;
    world_done(&w);
    return ok;
}

int main(int argc, char **argv)
{
    struct sim_options o = {.program = "tidemark-sim-life"};
    int status = sim_begin(argc, argv, &o);

    return status ? status
                  : sim_run_seeds(&o, prepared_image(), run_seed, (const char *const[]){"lives", "keep every promise"});
}
