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

/* Who a process is, so that another one can find out whether it still lives. */
struct env_proc {
    char kernel_boot[40]; /* changes when the kernel boots */
    uint64_t pid_ns;      /* pids mean something only within one */
    int64_t pid;
    uint64_t start_time; /* of the process, in kernel ticks: detects a reused pid */
};

enum env_life {
    ENV_ALIVE,
    ENV_STOPPED, /* lives, and does nothing: its lease counts */
    ENV_DEAD,
    ENV_ELSEWHERE, /* not known from here */
};

enum env_open { ENV_READ = 0, ENV_WRITE = 1, ENV_CREATE = 2 /* mode 0600 */, ENV_EXCLUSIVE = 4 };

enum env_kind { ENV_ABSENT, ENV_FILE, ENV_DIR, ENV_LINK, ENV_OTHER };

/*
 * `dev` and `ino` say which file it is; both the same: the same file. The number of a file that is gone may be given to
 * another, but not while somebody has it open. So: a path names another file than the one that is open when stat() and
 * fstat() differ in one of the two; the open one was removed, or another took its place, when its `links` are 0.
 * `mtime_ns` is a hint: two changes may share one, and a power cut may leave new contents with an old one.
 * In the simulator a directory has neither number nor time.
 */
struct env_stat {
    enum env_kind kind;
    int64_t size;
    unsigned mode;
    uint64_t dev, ino;
    int64_t mtime_ns; /* of the last write or truncate; Unix time */
    unsigned links;   /* names that the file has */
};

/* A code other than TIDE_OK ends the listing. `name` is valid during the call. */
typedef enum tide_code env_list_fn(void *arg, const char *name, enum env_kind kind);

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
    /*
     * Eight bytes of a file that has them, at a multiple of eight: the process that reads them, and the process that finds them when this process was
     * killed, has all of them or none. By system calls at first, then through memory, which costs next to nothing: there it takes
     * no room, and its time may stay as it was.
     */
    enum tide_code (*put_word)(struct env_file *, const char word[8], int64_t at, struct tide_err *);
    enum tide_code (*truncate)(struct env_file *, int64_t size, struct tide_err *);
    enum tide_code (*sync)(struct env_file *, struct tide_err *); /* data on disk; never called again after a failure */
    /* Takes the whole-file lock among processes and handles; waits up to timeout_ms (-1: for ever), then TIDE_BUSY. */
    enum tide_code (*lock)(struct env_file *, int timeout_ms, struct tide_err *);
    void (*unlock)(struct env_file *);

    void (*renamed)(struct env_file *, const char *path); /* what messages call it from now on */
    enum tide_code (*fstat)(struct env_file *, struct env_stat *ret, struct tide_err *);
    /*
     * Reserves space: until the next truncate or power cut, no write that ends at or below `size` fails for lack of it.
     * The size of the file stays. TIDE_FULL when there is not enough. Where the file system cannot do this: TIDE_OK, and
     * nothing is reserved.
     */
    enum tide_code (*allocate)(struct env_file *, int64_t size, struct tide_err *);

    /*
     * Memory that all processes share which have this file open: its first `bytes` bytes, zeros where it was shorter. The same
     * address every time, until it is closed. Space is taken for it at once. It is never synced, and a power cut leaves anything.
     * NULL: the file system cannot, there is no room, or the file was opened for reading and is shorter.
     */
    void *(*share)(struct env_file *, size_t bytes, struct tide_err *);
    /*
     * Waits until a word of such memory is another than `value`, or somebody wakes those who wait for it; for so long at most. May
     * return without a reason. In simulation others act meanwhile.
     */
    void (*wait_word)(struct env *, const uint32_t *word, uint32_t value, int timeout_ms);
    void (*wake_word)(struct env *, const uint32_t *word);

    /* Absent is no error. */
    enum tide_code (*stat)(struct env *, const char *path, struct env_stat *ret, struct tide_err *);
    enum tide_code (*mkdirs)(struct env *, const char *path, struct tide_err *); /* parents too, 0700, entries synced */
    /* Absent is no error. An empty directory goes as well, on this machine; the caller that asks for that can do without. */
    enum tide_code (*unlink)(struct env *, const char *path, struct tide_err *);
    /*
     * Gives the file `from` the name `to`. A file that is there loses that name in the same moment: nobody finds `to`
     * absent or half. The process that has either file open keeps it. TIDE_NOT_FOUND when `from` is absent; a directory in the
     * place of `to` is refused. Durable after sync_dir of its directory (of both, when they differ). Until then a power
     * cut leaves it done or not done as a whole; the contents of the file only as far as it was synced itself.
     */
    enum tide_code (*rename)(struct env *, const char *from, const char *to, struct tide_err *);
    enum tide_code (*sync_dir)(struct env *, const char *path, struct tide_err *); /* its entries on disk */
    /*
     * Calls fn for every entry but "." and "..", in no order; a code of fn other than TIDE_OK ends it and is returned as
     * it is, without a message. fn may remove, rename and create entries; one that comes or goes meanwhile is reported or
     * not. TIDE_NOT_FOUND when there is no such directory. Memory does not grow with the number of entries.
     */
    enum tide_code (*list)(struct env *, const char *dir, env_list_fn *fn, void *arg, struct tide_err *);

    void (*self)(struct env *, struct env_proc *ret);
    enum env_life (*life)(struct env *, const struct env_proc *);
    /* No other machine can write to the file system of this path. False when that is not known. */
    bool (*is_local)(struct env *, const char *path);
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
