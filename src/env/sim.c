/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated machine itself: its processes, its clock, its faults. Every choice comes from one generator, so a seed
 * and the same calls give the same run.
 */
#include "env/sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "env/sim_machine.h"

#define FIRST_PID 1000
#define PID_NAMESPACE UINT64_C(4026531836)
#define FIRST_WALL_NS INT64_C(1700000000000000000)
#define NS_PER_MS INT64_C(1000000)

struct sim_image {
    struct sim_disk disk;
};

static void boot_machine(struct sim *sim)
{
    uint64_t a = sim_next(&sim->rng), b = sim_next(&sim->rng);

    snprintf(sim->kernel_boot, sizeof sim->kernel_boot, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff), (unsigned)(b >> 48),
             (unsigned long long)(b & 0xffffffffffff));
}

struct sim *sim_new(uint64_t seed)
{
    struct sim *sim = mem_zero(sizeof *sim);

    sim->rng = seed;
    sim->wall_ns = FIRST_WALL_NS;
    sim->mono_ns = NS_PER_MS;
    boot_machine(sim);
    sim_vfs_seed(sim_next(&sim->rng));
    return sim;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    while (sim->handles)
        sim_sys_close(sim->handles);
    for (size_t i = 0; i < sim->procs_len; i++) {
        sim_vfs_unregister(sim->procs[i]);
        free(sim->procs[i]);
    }
    free(sim->procs);
    sim_disk_done(&sim->disk);
    sim_vfs_seed(0);
    free(sim);
}

uint64_t sim_random(struct sim *sim)
{
    return sim_next(&sim->rng);
}

void sim_advance(struct sim *sim, int64_t ms)
{
    sim->wall_ns += ms * NS_PER_MS;
    if (ms > 0)
        sim->mono_ns += ms * NS_PER_MS;
}

void sim_set_clock(struct sim *sim, int64_t by_ms)
{
    sim->wall_ns += by_ms * NS_PER_MS;
}

void sim_on_pause(struct sim *sim, sim_pause_fn *fn, void *arg)
{
    sim->pause = fn;
    sim->pause_arg = arg;
}

/* ---- Images ------------------------------------------------------------------------------------------------- */

struct sim_image *sim_image_take(struct sim *sim)
{
    struct sim_image *image = mem_zero(sizeof *image);

    sim_disk_copy(&image->disk, &sim->disk);
    return image;
}

void sim_image_free(struct sim_image *image)
{
    if (image)
        sim_disk_done(&image->disk);
    free(image);
}

struct sim *sim_new_from(uint64_t seed, const struct sim_image *image)
{
    struct sim *sim = sim_new(seed);

    sim_disk_copy(&sim->disk, &image->disk);
    return sim;
}

/* ---- Processes ---------------------------------------------------------------------------------------------- */

/* Now and then the pid of a dead process is used again: only the start time distinguishes the two. */
static int64_t pick_pid(struct sim *sim)
{
    for (size_t i = 0; i < sim->procs_len; i++) {
        const struct sim_proc *old = sim->procs[i];
        bool in_use = false;
        for (size_t j = 0; j < sim->procs_len; j++)
            in_use |= !sim->procs[j]->dead && sim->procs[j]->self.pid == old->self.pid;
        if (!in_use && sim_next(&sim->rng) % 2)
            return old->self.pid;
    }
    return FIRST_PID + (int64_t)sim->procs_len;
}

struct sim_proc *sim_proc_start(struct sim *sim)
{
    struct sim_proc *p = mem_zero(sizeof *p);

    p->sim = sim;
    p->self.pid = pick_pid(sim);
    p->self.pid_ns = PID_NAMESPACE;
    p->self.start_time = 100 + sim->procs_len;
    memcpy(p->self.kernel_boot, sim->kernel_boot, sizeof sim->kernel_boot);
    MEM_ROOM(sim->procs, sim->procs_len, sim->procs_cap);
    sim->procs[sim->procs_len++] = p;
    sim_env_init(p);
    sim_vfs_register(p);
    return p;
}

void sim_disk_is_remote(struct sim *sim)
{
    sim->remote = true;
}

struct sim_proc *sim_proc_start_elsewhere(struct sim *sim, unsigned machine)
{
    struct sim_proc *p = sim_proc_start(sim);

    p->self.pid_ns++;
    if (machine) {
        p->self.kernel_boot[0] = (char)('G' + machine % 8); /* no digit of this machine's */
        p->mono_more_ns = (int64_t)machine * 1000000000 * 3600;
    }
    return p;
}

struct env *sim_proc_env(struct sim_proc *p)
{
    return &p->env;
}

bool sim_proc_dead(const struct sim_proc *p)
{
    return p->dead;
}

void sim_proc_kill(struct sim_proc *p)
{
    p->dead = true;
    for (struct sim_handle *h = p->sim->handles; h; h = h->next)
        if (h->proc == p)
            sim_sys_abandon(h);
}

void sim_power_cut(struct sim *sim)
{
    for (size_t i = 0; i < sim->procs_len; i++)
        sim_proc_kill(sim->procs[i]);
    sim_disk_power_cut(&sim->disk, &sim->rng);
    boot_machine(sim);
}

/* ---- Faults ------------------------------------------------------------------------------------------------- */

void sim_fault_at(struct sim *sim, enum sim_fault fault, uint64_t n, bool sticky)
{
    sim->fault = n ? fault : SIM_NO_FAULT;
    sim->fault_in = n;
    sim->fault_sticky = sticky;
    sim->fault_fired = false;
}

uint64_t sim_op_count(const struct sim *sim)
{
    return sim->ops;
}

bool sim_fault_fired(const struct sim *sim)
{
    return sim->fault_fired;
}

void sim_lie(struct sim *sim, unsigned lies)
{
    sim->lies = lies;
}

static bool fault_counts(enum sim_fault fault, enum sim_op op)
{
    switch (fault) {
    case SIM_NO_FAULT:
        return false;
    case SIM_SYNC_FAILS:
        return op == SIM_OP_SYNC;
    case SIM_READ_FAILS:
        return op == SIM_OP_READ;
    default:
        return op != SIM_OP_READ;
    }
}

/* A fault that does not fit the n-th operation waits for the first one after it that it fits. */
static bool fault_fits(enum sim_fault fault, enum sim_op op, bool grows)
{
    switch (fault) {
    case SIM_ENOSPC:
        return grows;
    case SIM_SHORT_WRITE:
        return op == SIM_OP_WRITE;
    default:
        return true;
    }
}

static enum sim_fault fault_now(struct sim *sim, enum sim_op op, bool grows)
{
    enum sim_fault fault = sim->fault;

    if (!fault_counts(fault, op))
        return SIM_NO_FAULT;
    if (sim->fault_in > 1) {
        sim->fault_in--;
        return SIM_NO_FAULT;
    }
    if (!fault_fits(fault, op, grows))
        return SIM_NO_FAULT;
    sim->fault_fired = true;
    if (!sim->fault_sticky)
        sim->fault = SIM_NO_FAULT;
    return fault;
}

enum sim_verdict sim_op_begin(struct sim_proc *p, enum sim_op op, bool grows)
{
    if (p->dead)
        return SIM_GONE;
    p->sim->ops += op != SIM_OP_READ;
    switch (fault_now(p->sim, op, grows)) {
    case SIM_NO_FAULT:
        return SIM_GO;
    case SIM_KILL:
        sim_proc_kill(p);
        return SIM_GONE;
    case SIM_POWER_CUT:
        if (op == SIM_OP_WRITE || op == SIM_OP_FILL)
            return SIM_TORN; /* the caller writes first, so that the cut may tear it */
        sim_power_cut(p->sim);
        return SIM_GONE;
    case SIM_ENOSPC:
        return SIM_NO_SPACE;
    case SIM_SHORT_WRITE:
        return SIM_HALF;
    default:
        return SIM_FAIL;
    }
}

/* ---- Looking from outside ----------------------------------------------------------------------------------- */

bool sim_file_bytes(struct sim *sim, const char *path, unsigned char **ret_bytes, size_t *ret_len)
{
    struct sim_file *f = sim_disk_find(&sim->disk, path);

    if (!f)
        return false;
    *ret_bytes = sim_file_cache(f);
    *ret_len = sim_file_len(f);
    return true;
}

void sim_file_set_size(struct sim *sim, const char *path, size_t len)
{
    struct sim_file *f = sim_disk_find(&sim->disk, path);

    if (!f)
        return;
    sim_file_truncate(f, len);
    sim_file_sync(f);
}
