/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that one process hands over to another, on a simulated machine: three processes, one after the other. The lock is held
 * from outside while the first ones ask; then the last one gets it, and commits for all. A fault comes at the 1st, 2nd, 3rd…
 * operation of that, until it comes too late. Beside it stands what each process was told.
 *
 *   tidemark-sim-queue [SCENE FAULT N END]        (all: without)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_store.h"

enum { PROCS = 3, TEXTS = 48, LEASE = 30000, AT_MOST = 200 };

/* Who asks, what comes then. */
enum scene {
    NOBODY_ASKS,    /* 2 commits, and others have the store open */
    ONE_ASKS,       /* 0 asks, 2 commits */
    TWO_ASK,        /* 0 and 1 ask, 2 commits */
    NEXT_AFTER,     /* 0 asks, 2 commits; then 1 commits, before 0 looks again */
    ASKER_DIES,     /* 0 and 1 ask, 0 is killed, 2 commits */
    NOBODY_COMMITS, /* 0 asks, and nobody else comes */
    NEVER_FREE,     /* 0 asks, and the lock stays with a process that was stopped */
    TWO_QUEUED,     /* 0 asks with two batches at once, 1 with a release; 2 commits */
    SCENES
};

static const struct {
    enum sim_fault fault;
    const char *name;
} faults[] = {
    {SIM_NO_FAULT, "none"},         {SIM_KILL, "kill"},
    {SIM_POWER_CUT, "power_cut"},   {SIM_EIO, "io_error"},
    {SIM_ENOSPC, "no_space"},       {SIM_SHORT_WRITE, "short"},
    {SIM_SYNC_FAILS, "sync_fails"}, {SIM_READ_FAILS, "read_fails"},
};
enum { FAULTS = sizeof faults / sizeof faults[0], ENDS = 3 };

struct text {
    int number;
    enum { STORED, MAYBE, NOT_STORED } is;
};

struct proc {
    struct sim_proc *sim;
    tide_store *store;
    tide_session *s;
    char id[16];
    struct text texts[TEXTS];
    int n;
    bool asking, acted;
    int64_t asked_ns;
};

struct world {
    struct sim *sim;
    struct proc procs[PROCS];
    struct sim_proc *outside;
    struct env_file *mark;
    enum scene scene;
    int fault, at, end, next_number;
    bool failed, handing_over, fired;
    int counted; /* of those that were told that theirs is stored while they asked */
};

static void wrong(struct world *w, const char *what, const struct proc *p, int number)
{
    if (!w->failed)
        printf("# WRONG: %s (session %s, text %d)\n# again with: tidemark-sim-queue %d %d %d %d\n", what, p->id, number,
               w->scene, w->fault, w->at, w->end);
    w->failed = true;
}

static bool alive(const struct proc *p)
{
    return p->store && !sim_proc_dead(p->sim);
}

/* ---- appending ---- */

static struct tide_new_event event_of(char body[40], int number)
{
    snprintf(body, 40, "{\"content\":\"text %d\"}", number);
    return (struct tide_new_event){.kind = "message.user", .body = body, .body_len = strlen(body)};
}

static struct text *note(struct world *w, struct proc *p)
{
    struct text *t = &p->texts[p->n++];

    if (p->n > TEXTS)
        abort();
    *t = (struct text){++w->next_number, MAYBE};
    return t;
}

static void judge(struct world *w, struct proc *p, struct text *t, enum tide_code code)
{
    bool trouble = code == TIDE_FULL || code == TIDE_IO || code == TIDE_BUSY || code == TIDE_UNKNOWN;

    t->is = code == TIDE_OK ? STORED : code == TIDE_UNKNOWN || sim_proc_dead(p->sim) ? MAYBE : NOT_STORED;
    if (code && !trouble && alive(p))
        wrong(w, tide_code_name(code), p, t->number);
    if (code && alive(p) && !w->fired && !sim_fault_fired(w->sim) && w->scene != NEVER_FREE)
        wrong(w, "refused without a reason", p, t->number);
}

static enum tide_code append(struct world *w, struct proc *p, unsigned flags)
{
    struct text *t = note(w, p);
    struct tide_err err = {0};
    char body[40];
    struct tide_new_event ev = event_of(body, t->number);
    enum tide_code code = tide_session_append(p->s, TIDE_APPEND_ANY | flags, &ev, 1, NULL, &err);

    judge(w, p, t, code);
    return code;
}

/* Two batches of one handle in one request: both are there, or none, or nobody knows. */
static enum tide_code append_two(struct world *w, struct proc *p)
{
    struct text *t[2];
    struct tide_err err = {0};
    enum tide_code code = TIDE_OK;

    for (int i = 0; i < 2; i++) {
        char body[40];
        struct tide_new_event ev;

        t[i] = note(w, p);
        ev = event_of(body, t[i]->number);
        if (tide_session_append_async(p->s, TIDE_APPEND_ANY, &ev, 1, NULL, &err))
            return TIDE_IO;
    }
    code = tide_session_flush(p->s, &err);
    for (int i = 0; i < 2; i++)
        judge(w, p, t[i], code);
    return code;
}

static void ask(struct world *w, struct proc *p)
{
    enum tide_code code;

    if (!alive(p))
        return;
    p->asking = true;
    p->asked_ns = sim_proc_env(p->sim)->ops->mono_ns(sim_proc_env(p->sim));
    if (w->scene == TWO_QUEUED && p == &w->procs[0])
        code = append_two(w, p);
    else
        code = append(w, p, w->scene == TWO_QUEUED && p == &w->procs[1] ? TIDE_APPEND_RELEASE : 0);
    p->asking = false;
    w->counted += code == TIDE_OK;
}

/* ---- who acts while another waits ---- */

static void free_the_lock(struct world *w)
{
    if (w->mark)
        sim_proc_env(w->outside)->ops->unlock(w->mark);
}

/* The one that gets the lock; the fault is for it. */
static void lead(struct world *w, struct proc *p)
{
    free_the_lock(w);
    if (!alive(p))
        return;
    sim_fault_at(w->sim, faults[w->fault].fault, (uint64_t)w->at, false);
    append(w, p, 0);
    w->fired = sim_fault_fired(w->sim);
    if (faults[w->fault].fault != SIM_SYNC_FAILS)
        sim_fault_at(w->sim, SIM_NO_FAULT, 0, false);
}

static void others_act(struct world *w, struct proc *p)
{
    struct proc *all = w->procs;
    bool two = w->scene == TWO_ASK || w->scene == ASKER_DIES || w->scene == TWO_QUEUED;

    if (w->scene == NEVER_FREE)
        return;
    if (p == &all[0] && two && alive(&all[1])) {
        ask(w, &all[1]);
        return;
    }
    if (w->scene == ASKER_DIES)
        sim_proc_kill(all[0].sim);
    if (w->scene == NOBODY_COMMITS) {
        free_the_lock(w);
        return;
    }
    lead(w, &all[2]);
    if (w->scene == NEXT_AFTER && alive(&all[1]))
        append(w, &all[1], 0);
}

/* A process sleeps when its clock has moved since it asked: before, it only tries the lock. */
static void on_pause(void *arg, struct sim_proc *sim)
{
    struct world *w = arg;

    for (int i = 0; i < PROCS; i++) {
        struct proc *p = &w->procs[i];
        struct env *env = sim_proc_env(p->sim);

        if (p->sim != sim || !w->handing_over || !p->asking || p->acted || env->ops->mono_ns(env) == p->asked_ns)
            continue;
        p->acted = true;
        others_act(w, p);
    }
}

/* ---- one trial ---- */

static void start(struct world *w, struct proc *p, int i)
{
    struct tide_err err = {0};

    p->sim = sim_proc_start(w->sim);
    p->store = sim_store_open(p->sim, LEASE, &err);
    snprintf(p->id, sizeof p->id, "session-%d", i);
    if (!p->store || tide_session_create(p->store, p->id, NULL, &p->s, &err))
        wrong(w, err.msg, p, 0);
    else
        append(w, p, 0);
}

/* The first time the lock is found taken makes the queue; those who commit find it then. */
static void hand_over(struct world *w)
{
    struct tide_err err;

    for (int i = 0; i < PROCS; i++)
        w->procs[i].acted = false;
    sim_advance(w->sim, 1000);
    if (sim_proc_env(w->outside)->ops->lock(w->mark, 0, &err))
        wrong(w, "the lock is not free", &w->procs[0], 0);
    w->handing_over = true;
    if (w->scene == NOBODY_ASKS)
        lead(w, &w->procs[2]);
    else
        ask(w, &w->procs[0]);
    w->handing_over = false;
    free_the_lock(w);
}

/* Without a fault all who live can append, one way and the other. */
static void must_work_again(struct world *w)
{
    struct tide_err err;

    sim_fault_at(w->sim, SIM_NO_FAULT, 0, false);
    for (int i = 0; i < PROCS; i++) {
        struct proc *p = &w->procs[i];
        enum tide_code code = TIDE_IO;

        for (int tries = 0; alive(p) && code && tries < 3; tries++) {
            sim_advance(w->sim, 11000);
            (void)!tide_session_refresh(p->s, &err);
            code = append(w, p, 0);
        }
        if (alive(p) && code)
            wrong(w, "it cannot append any more", p, 0);
    }
}

static void all_end(struct world *w)
{
    for (int i = 0; i < PROCS; i++) {
        struct proc *p = &w->procs[i];

        if (w->end > 0 && p->store)
            sim_proc_kill(p->sim);
        tide_session_close(p->s);
        tide_store_close(p->store);
        p->store = NULL;
    }
    if (w->end == 2)
        sim_power_cut(w->sim);
}

struct look {
    struct world *w;
    struct proc *p;
    int at;
};

static int on_event(void *arg, const struct tide_event *ev)
{
    struct look *l = arg;
    int number = 0;

    if (strcmp(ev->kind, "message.user") != 0 || sscanf(ev->body, "{\"content\":\"text %d\"}", &number) != 1)
        return 0;
    while (l->at < l->p->n && l->p->texts[l->at].number != number) {
        if (l->p->texts[l->at].is == STORED)
            wrong(l->w, "what was acknowledged is gone", l->p, l->p->texts[l->at].number);
        l->at++;
    }
    if (l->at == l->p->n)
        wrong(l->w, "it is there twice, or in another order", l->p, number);
    else if (l->p->texts[l->at++].is == NOT_STORED)
        wrong(l->w, "it is there although it was refused", l->p, number);
    return l->w->failed;
}

static void check(struct world *w)
{
    struct tide_err err = {0};
    tide_store *store = sim_store_open(sim_proc_start(w->sim), LEASE, &err);

    if (!store)
        wrong(w, err.msg, &w->procs[0], 0);
    for (int i = 0; store && i < PROCS && !w->failed; i++) {
        struct look l = {w, &w->procs[i], 0};
        tide_session *s = NULL;

        if (tide_session_open(store, l.p->id, TIDE_SESSION_READ, &s, &err) ||
            tide_session_read(s, 0, 0, 0, on_event, &l, &err))
            wrong(w, err.msg, l.p, 0);
        for (; l.at < l.p->n; l.at++)
            if (l.p->texts[l.at].is == STORED)
                wrong(w, "what was acknowledged is gone", l.p, l.p->texts[l.at].number);
        tide_session_close(s);
    }
    tide_store_close(store);
}

/* Without a fault nobody needs a second sync: it would fail here. */
static void check_shared(struct world *w, int before)
{
    static const int asked[SCENES] = {0, 1, 2, 1, 1, 1, 0, 2};

    if (w->fault == 0 && w->counted - before != asked[w->scene])
        wrong(w, "those who asked were not answered", &w->procs[0], w->counted - before);
}

/* False: the fault came too late. */
static bool trial(const struct sim_image *image, enum scene scene, int fault, int at, int end, bool *ret_failed)
{
    struct world w = {.scene = scene, .fault = fault, .at = at, .end = end};
    struct tide_err err;
    int before;

    w.sim = sim_new_from(1, image);
    for (int i = 0; i < PROCS; i++)
        start(&w, &w.procs[i], i);
    w.outside = sim_proc_start(w.sim);
    sim_on_pause(w.sim, on_pause, &w);
    if (sim_proc_env(w.outside)->ops->open(sim_proc_env(w.outside), STORE_PATH "-mark", ENV_WRITE, &w.mark, &err))
        abort();
    w.fault = 0;
    w.scene = ONE_ASKS; /* all know of the queue then */
    hand_over(&w);
    for (int i = 0; i < PROCS; i++)
        append(&w, &w.procs[i], 0);
    w.fault = fault;
    w.scene = scene;
    before = w.counted;
    if (!w.failed)
        hand_over(&w);
    check_shared(&w, before);
    sim_proc_env(w.outside)->ops->close(w.mark);
    if (!w.failed && end != 2) /* else what was acknowledged is to be on disk by itself */
        must_work_again(&w);
    sim_fault_at(w.sim, SIM_NO_FAULT, 0, false);
    all_end(&w);
    if (!w.failed)
        check(&w);
    *ret_failed |= w.failed;
    sim_free(w.sim);
    return w.fired;
}

static struct sim_image *prepared_image(void)
{
    struct sim *sim = sim_new(1);
    struct tide_err err;
    struct sim_image *image;
    tide_store *store = sim_store_open(sim_proc_start(sim), LEASE, &err);

    if (!store)
        abort();
    tide_store_close(store);
    sim_store_trim(sim);
    image = sim_image_take(sim);
    sim_free(sim);
    return image;
}

static bool has_fault(int scene, int fault)
{
    return fault == 0 || (scene != NOBODY_COMMITS && scene != NEVER_FREE);
}

static int number(const char *word)
{
    return (int)strtol(word, NULL, 10);
}

int main(int argc, char **argv)
{
    struct sim_image *image = prepared_image();
    bool failed = false;
    int trials = 0;

    if (argc == 5) {
        trial(image, (enum scene)number(argv[1]), number(argv[2]), number(argv[3]), number(argv[4]), &failed);
        sim_image_free(image);
        return failed;
    }
    for (int scene = 0; scene < SCENES && !failed; scene++)
        for (int fault = 0; fault < FAULTS && !failed; fault++)
            for (int end = 0; end < ENDS && !failed && has_fault(scene, fault); end++)
                for (int at = 1; at < AT_MOST && !failed; at++, trials++)
                    if (!trial(image, (enum scene)scene, fault, at, end, &failed))
                        break;
    sim_image_free(image);
    printf("%s - what is handed over is stored once, or its owner knows (%d trials)\n", failed ? "not ok" : "ok",
           trials);
    return failed;
}
