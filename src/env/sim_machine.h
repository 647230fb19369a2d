/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a simulated machine, shared by the files that make it up:
 *
 *   sim.c      the machine: processes, clock, faults, images      sim_sys.c  its system calls
 *   sim_env.c  struct env on top of them                          sim_vfs.c  a SQLite VFS on top, sim_shm.c its memory
 *   sim_disk.c names and directories, sim_list.c what is in one   sim_file.c page cache and platter of one file
 */
#ifndef ENV_SIM_MACHINE_H
#define ENV_SIM_MACHINE_H

#include "env/sim.h"
#include "env/sim_disk.h"

struct sqlite3_vfs;

/* What one handle has mapped and locked of the memory shared beside its file. */
struct sim_view {
    void **maps; /* one per region; NULL: not mapped */
    size_t len;
    size_t region_bytes;
    bool attached;              /* counts among the users of the file's sim_shm */
    unsigned shared, exclusive; /* bit per lock */
};

/* An open file. It outlives its process in memory, until it is closed or the machine is freed, but not in effect. */
struct sim_handle {
    struct sim_handle *next;
    struct sim_proc *proc;
    struct sim_file *file; /* NULL once the process is dead */
    char *path;            /* NULL: a temporary file without a name */
    bool locked;           /* env's whole-file lock */
    int db_lock;           /* SQLITE_LOCK_NONE … EXCLUSIVE */
    bool entry_sync_due;   /* its next sync also makes its directory entry durable */
    bool keep_wal;         /* SQLITE_FCNTL_PERSIST_WAL */
    struct sim_view view;
    void *scratch; /* instead of the shared memory, once the process is dead */
};

struct sim_proc {
    struct env env; /* first: an env is cast back to its process */
    struct sim *sim;
    struct env_proc self;
    bool dead;
    int64_t mono_more_ns; /* of another machine: its clock is ahead by so much */
    struct sqlite3_vfs *vfs;
};

struct sim {
    uint64_t rng;
    int64_t wall_ns, mono_ns;
    char kernel_boot[40];
    struct sim_disk disk;
    struct sim_proc **procs;
    size_t procs_len, procs_cap;
    struct sim_handle *handles;
    uint64_t ops;
    unsigned lies;
    bool remote;
    enum sim_fault fault;
    uint64_t fault_in; /* 1: the next operation */
    bool fault_sticky, fault_fired;
    sim_pause_fn *pause; /* NULL: nobody goes first */
    void *pause_arg;
};

/* ---- sim.c -------------------------------------------------------------------------------------------------- */

enum sim_op {
    SIM_OP_READ, /* does not reach the disk: only SIM_READ_FAILS counts it */
    SIM_OP_WRITE,
    SIM_OP_FILL, /* a write into space that was reserved for it */
    SIM_OP_TRUNCATE,
    SIM_OP_SYNC,
    SIM_OP_FSTAT,
    SIM_OP_ALLOCATE,
    SIM_OP_UNLINK,
    SIM_OP_RENAME,
    SIM_OP_CREATE,
    SIM_OP_SYNC_DIR,
    SIM_OP_LIST,
};

enum sim_verdict { SIM_GO, SIM_FAIL, SIM_NO_SPACE, SIM_HALF, SIM_TORN, SIM_GONE };

/* Counts an operation and says how it goes. SIM_GONE: the process is dead, possibly just now. */
enum sim_verdict sim_op_begin(struct sim_proc *p, enum sim_op op, bool grows);

/* ---- sim_env.c ------------------------------------------------------------------------------------------------ */

void sim_env_init(struct sim_proc *p);

/* ---- sim_sys.c: 0 or an errno; ESRCH for a dead process ------------------------------------------------------- */

int sim_sys_open(struct sim_proc *p, const char *path, unsigned env_flags, struct sim_handle **ret_handle);
int sim_sys_open_temp(struct sim_proc *p, struct sim_handle **ret_handle); /* no name, gone when closed */
void sim_sys_close(struct sim_handle *h);
void sim_sys_abandon(struct sim_handle *h); /* what the kernel does for a process that was killed */
int sim_sys_read(struct sim_handle *h, void *out, size_t n, int64_t at, size_t *ret_n);
int sim_sys_write(struct sim_handle *h, const void *bytes, size_t n, int64_t at);
int sim_sys_truncate(struct sim_handle *h, int64_t size);
int sim_sys_sync(struct sim_handle *h);
int sim_sys_fstat(struct sim_handle *h, struct env_stat *ret);
int sim_sys_allocate(struct sim_handle *h, int64_t size);
void sim_sys_describe(const struct sim *sim, const struct sim_file *f, struct env_stat *ret); /* no operation */
int sim_sys_unlink(struct sim_proc *p, const char *path);
int sim_sys_rename(struct sim_proc *p, const char *from, const char *to);
int sim_sys_list(struct sim_proc *p, const char *path, env_list_fn *fn, void *arg, enum tide_code *ret_code);
int sim_sys_mkdirs(struct sim_proc *p, const char *path);
int sim_sys_sync_dir(struct sim_proc *p, const char *path);
int sim_sys_sync_journals(struct sim_proc *p, const char *path); /* the directory, but only a database's journals */

/* ---- sim_shm.c: SQLite result codes --------------------------------------------------------------------------- */

int sim_shm_map(struct sim_handle *h, int region, int bytes, int extend, void volatile **ret_map);
int sim_shm_lock(struct sim_handle *h, int offset, int n, int flags);
void sim_shm_abandon(struct sim_handle *h); /* the maps stay readable, but change nothing for others */
void sim_shm_unmap(struct sim_handle *h);

/* ---- sim_vfs.c ------------------------------------------------------------------------------------------------ */

void sim_vfs_register(struct sim_proc *p); /* sets env.sqlite_vfs */
void sim_vfs_unregister(struct sim_proc *p);
void sim_vfs_seed(uint64_t seed); /* SQLite's own randomness, which is one for the whole program; 0: the system's */

#endif
