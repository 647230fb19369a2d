/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated machine: a clock that moves only when it is moved, a disk that loses what was not synced, processes that are
 * killed between any two operations, and a SQLite VFS on top with locks and shared memory of its own. Everything follows
 * from the seed. Single-threaded.
 *
 *   write      goes to the page cache of the file; every process sees it at once
 *   sync       what the cache holds of that file becomes durable
 *   rename     seen at once, durable with its directory; a power cut before leaves it done or not done, never half
 *              (what else may survive of unsynced names: sim_disk.c)
 *   mkdirs     directory by directory, each followed by a sync of its parent: a process may be killed in between, and a
 *              power cut then may take the directory with all that others have put there
 *   kill       a process stops: its open files close, its locks go, the cache stays
 *   power cut  every process stops; of each unsynced write any subset of its 512-byte sectors survives, a file's
 *              size and its directory entry may go back to what was synced; shared memory is gone
 *   failed sync  the unsynced data is no longer dirty: reads still see it, later syncs say ok, a power cut may lose it. So may be
 *              that of any other file, which nobody gets as an error
 *   shared memory of a file: all processes see a store at once; a process that is dead stores into nothing
 */
#ifndef ENV_SIM_H
#define ENV_SIM_H

#include "env/env.h"

struct sim;      /* one machine */
struct sim_proc; /* one process on it */

struct sim *sim_new(uint64_t seed);
void sim_free(struct sim *sim);
uint64_t sim_random(struct sim *sim);          /* the harness's own choices, from the same seed */
void sim_advance(struct sim *sim, int64_t ms); /* moves the clock (may be negative for a clock that jumps back) */

void sim_set_clock(struct sim *sim, int64_t by_ms); /* somebody sets the clock: no time passes */

/*
 * `fn` is called where a process lets others go first: when it is about to take a file's lock, and while it sleeps. What other
 * processes do in there happens in the middle of its call. NULL: none.
 */
typedef void sim_pause_fn(void *arg, struct sim_proc *p);
void sim_on_pause(struct sim *sim, sim_pause_fn *fn, void *arg);

/* A copy of the durable and cached contents of all files, to start many runs from one prepared disk. */
struct sim_image;
struct sim_image *sim_image_take(struct sim *sim);
void sim_image_free(struct sim_image *image);
struct sim *sim_new_from(uint64_t seed, const struct sim_image *image);

struct sim_proc *sim_proc_start(struct sim *sim);
void sim_disk_is_remote(struct sim *sim); /* others may use it, too */
/* A process of another container (`machine` 0), or of another machine with a clock of its own, on the same disk. */
struct sim_proc *sim_proc_start_elsewhere(struct sim *sim, unsigned machine);
struct env *sim_proc_env(struct sim_proc *p); /* valid until sim_free */
void sim_proc_kill(struct sim_proc *p);       /* every later call of it fails without effect */
bool sim_proc_dead(const struct sim_proc *p);
void sim_power_cut(struct sim *sim); /* kills all processes, then loses what was not synced */

/* What happens to the n-th operation from now (1 is the next one) that reaches the disk. */
enum sim_fault {
    SIM_NO_FAULT,
    SIM_KILL,        /* the process is killed before the operation */
    SIM_POWER_CUT,   /* power is cut before the operation; a write in progress may be torn */
    SIM_EIO,         /* the operation fails with an I/O error */
    SIM_ENOSPC,      /* what takes more space fails: writes that grow a file, unless it was reserved; reserving; new
                        names, of files, of directories, by rename */
    SIM_SHORT_WRITE, /* half of the write happens, then no space; not in space that was reserved */
    SIM_SYNC_FAILS,  /* counts syncs only */
    SIM_READ_FAILS,  /* counts reads only: the read fails with an I/O error */
};
void sim_fault_at(struct sim *sim, enum sim_fault fault, uint64_t n, bool sticky); /* sticky: all later ones too */
uint64_t sim_op_count(const struct sim *sim); /* operations that reached the disk so far */
bool sim_fault_fired(const struct sim *sim);

/* Direct access to a file's bytes, to damage it or to look at it. */
bool sim_file_bytes(struct sim *sim, const char *path, unsigned char **ret_bytes, size_t *ret_len);
void sim_file_set_size(struct sim *sim, const char *path, size_t len);

/* Ways in which a disk may misbehave, to prove that the tests notice. */
enum sim_lie { SIM_LIE_NO_SYNC = 1 /* sync does nothing */, SIM_LIE_NO_DIR_SYNC = 2 };
void sim_lie(struct sim *sim, unsigned lies);

#endif
