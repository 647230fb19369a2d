/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outside world behind one table: clock, randomness, files, processes. env_real() is this machine; the simulator
 * (env/sim.h) gives one per simulated process. Nothing above this folder calls the operating system by itself; SQLite
 * reaches the disk through the VFS named here.
 */
#ifndef ENV_ENV_H
#define ENV_ENV_H

#include "base/err.h"
#include "base/str.h"

struct env;
struct env_file;

/* Who a process is, so that another one can tell whether it still lives. */
struct env_proc {
    char kernel_boot[40]; /* changes when the kernel boots */
    uint64_t pid_ns;      /* pids mean something only within one */
    int64_t pid;
    uint64_t start_time; /* of the process, in kernel ticks: tells a reused pid apart */
};

enum env_life {
    ENV_ALIVE,
    ENV_STOPPED, /* lives, and does nothing: its lease counts */
    ENV_DEAD,
    ENV_ELSEWHERE, /* cannot be told from here */
};

enum env_open { ENV_READ = 0, ENV_WRITE = 1, ENV_CREATE = 2 /* mode 0600 */, ENV_EXCLUSIVE = 4 };

enum env_kind { ENV_ABSENT, ENV_FILE, ENV_DIR, ENV_LINK, ENV_OTHER };

struct env_stat {
    enum env_kind kind;
    int64_t size;
    unsigned mode;
};

struct env_ops {
    int64_t (*now_ms)(struct env *);  /* Unix time */
    int64_t (*mono_ns)(struct env *); /* never goes back */
    void (*random)(struct env *, void *out, size_t n);
    void (*sleep_ms)(struct env *, int ms);

    /* A path that is a symbolic link is refused (TIDE_DENIED). TIDE_NOT_FOUND when absent and not created. */
    enum tide_code (*open)(struct env *, const char *path, unsigned flags, struct env_file **ret_file,
                           struct tide_err *);
    void (*close)(struct env_file *); /* drops its lock */
    /* Reads up to n bytes; *ret_n is less only at the end of the file. */
    enum tide_code (*pread)(struct env_file *, void *out, size_t n, int64_t at, size_t *ret_n, struct tide_err *);
    enum tide_code (*pwrite)(struct env_file *, const void *bytes, size_t n, int64_t at, struct tide_err *);
    enum tide_code (*truncate)(struct env_file *, int64_t size, struct tide_err *);
    enum tide_code (*sync)(struct env_file *, struct tide_err *); /* data on disk; never called again after a failure */
    /* Takes the whole-file lock among processes and handles; waits up to timeout_ms (-1: for ever), then TIDE_BUSY. */
    enum tide_code (*lock)(struct env_file *, int timeout_ms, struct tide_err *);
    void (*unlock)(struct env_file *);

    /* Absent is no error. */
    enum tide_code (*stat)(struct env *, const char *path, struct env_stat *ret, struct tide_err *);
    enum tide_code (*mkdirs)(struct env *, const char *path, struct tide_err *); /* parents too, 0700, entries synced */
    enum tide_code (*unlink)(struct env *, const char *path, struct tide_err *); /* absent is no error */
    enum tide_code (*sync_dir)(struct env *, const char *path, struct tide_err *); /* its entries on disk */

    void (*self)(struct env *, struct env_proc *ret);
    enum env_life (*life)(struct env *, const struct env_proc *);
};

struct env {
    const struct env_ops *ops;
    const char *sqlite_vfs; /* name of a registered VFS; NULL: SQLite's own */
    bool threads;           /* false: nothing may start a thread; work is driven step by step */
};

struct env *env_real(void);

static inline int64_t env_now_ms(struct env *e)
{
    return e->ops->now_ms(e);
}

#endif
