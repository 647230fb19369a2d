/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine we run on. Thin over the system calls, with the care they need in one place: EINTR, short writes,
 * symbolic links, directories whose entries must be on disk, processes that only look alive.
 *
 * A failed fdatasync is reported once and never tried again: the kernel has dropped the dirty pages by then.
 */
#include "env/env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { NS_PER_MS = 1000000, POLL_FIRST_NS = 50000, POLL_MAX_NS = 5 * NS_PER_MS };

struct env_file {
    int fd;
    bool locked;
    char *path; /* for messages */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t real_now_ms(struct env *e)
{
    (void)e;
    return clock_ns(CLOCK_REALTIME) / NS_PER_MS;
}

static int64_t real_mono_ns(struct env *e)
{
    (void)e;
    return clock_ns(CLOCK_MONOTONIC);
}

static void real_sleep_ms(struct env *e, int ms)
{
    (void)e;
    poll(NULL, 0, ms);
}

static void real_random(struct env *e, void *out, size_t n)
{
    unsigned char *at = out;

    (void)e;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno != EINTR)
            abort(); /* ids and tokens must never be made without randomness */
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

/* O_NONBLOCK: a FIFO in the place of a file must not hang us before fstat tells; it means nothing to a regular file. */
static int open_flags(unsigned flags)
{
    return O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (flags & ENV_WRITE ? O_RDWR : O_RDONLY) |
           (flags & ENV_CREATE ? O_CREAT : 0) | (flags & ENV_EXCLUSIVE ? O_EXCL : 0);
}

static enum tide_code check_regular(int fd, const char *path, struct tide_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return tide_fail_errno(err, errno, "stat '%s'", path);
    if (!S_ISREG(st.st_mode))
        return tide_fail(err, TIDE_DENIED, "open '%s': not a regular file", path);
    return TIDE_OK;
}

static enum tide_code open_failed(int errnum, const char *path, struct tide_err *err)
{
    struct stat st;

    if (errnum == ELOOP && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return tide_fail(err, TIDE_DENIED, "open '%s': is a symbolic link, which is not followed", path);
    if (errnum == ENOENT)
        return tide_fail(err, TIDE_NOT_FOUND, "open '%s': no such file", path);
    if (errnum == EEXIST)
        return tide_fail(err, TIDE_EXISTS, "create '%s': exists already", path);
    return tide_fail_errno(err, errnum, "open '%s'", path);
}

static enum tide_code real_open(struct env *e, const char *path, unsigned flags, struct env_file **ret_file,
                                struct tide_err *err)
{
    int fd;

    (void)e;
    do {
        fd = open(path, open_flags(flags), 0600);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return open_failed(errno, path, err);
    enum tide_code code = check_regular(fd, path, err);
    if (code) {
        close(fd);
        return code;
    }
    struct env_file *f = mem_zero(sizeof *f);
    f->fd = fd;
    f->path = mem_dup(str_from(path));
    *ret_file = f;
    return TIDE_OK;
}

static void real_unlock(struct env_file *f)
{
    if (f->locked)
        flock(f->fd, LOCK_UN);
    f->locked = false;
}

static void real_close(struct env_file *f)
{
    if (!f)
        return;
    real_unlock(f); /* a child between fork and exec shares the lock, and would keep it alive past close() */
    close(f->fd);
    free(f->path);
    free(f);
}

static enum tide_code real_pread(struct env_file *f, void *out, size_t n, int64_t at, size_t *ret_n,
                                 struct tide_err *err)
{
    size_t done = 0;

    while (done < n) {
        ssize_t got = pread(f->fd, (char *)out + done, n - done, at + (int64_t)done);
        if (got == 0)
            break;
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return tide_fail_errno(err, errno, "read '%s'", f->path);
    }
    *ret_n = done;
    return TIDE_OK;
}

static enum tide_code real_pwrite(struct env_file *f, const void *bytes, size_t n, int64_t at, struct tide_err *err)
{
    size_t done = 0;

    while (done < n) {
        ssize_t put = pwrite(f->fd, (const char *)bytes + done, n - done, at + (int64_t)done);
        if (put > 0)
            done += (size_t)put;
        else if (put == 0)
            return tide_fail(err, TIDE_FULL, "write '%s': no progress", f->path);
        else if (errno != EINTR)
            return tide_fail_errno(err, errno, "write '%s'", f->path);
    }
    return TIDE_OK;
}

static enum tide_code real_truncate(struct env_file *f, int64_t size, struct tide_err *err)
{
    int rc;

    do {
        rc = ftruncate(f->fd, size);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? TIDE_OK : tide_fail_errno(err, errno, "truncate '%s'", f->path);
}

static enum tide_code real_sync(struct env_file *f, struct tide_err *err)
{
    if (fdatasync(f->fd) != 0)
        return tide_fail_errno(err, errno, "sync '%s'", f->path);
    return TIDE_OK;
}

/* ---- The whole-file lock ------------------------------------------------------------------------------------ */

static int try_flock(int fd, int how)
{
    int rc;

    do {
        rc = flock(fd, how);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

static enum tide_code real_lock(struct env_file *f, int timeout_ms, struct tide_err *err)
{
    int64_t deadline = clock_ns(CLOCK_MONOTONIC) + (int64_t)timeout_ms * NS_PER_MS;
    int64_t pause = POLL_FIRST_NS;

    while (try_flock(f->fd, timeout_ms < 0 ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return tide_fail_errno(err, errno, "lock '%s'", f->path);
        int64_t left = deadline - clock_ns(CLOCK_MONOTONIC);
        if (left <= 0)
            return tide_fail(err, TIDE_BUSY, "lock '%s': held by another for %d ms", f->path, timeout_ms);
        nanosleep(&(struct timespec){0, pause < left ? pause : left}, NULL);
        pause = pause * 2 < POLL_MAX_NS ? pause * 2 : POLL_MAX_NS;
    }
    f->locked = true;
    return TIDE_OK;
}

/* ---- Names -------------------------------------------------------------------------------------------------- */

static enum env_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? ENV_FILE : S_ISDIR(mode) ? ENV_DIR : S_ISLNK(mode) ? ENV_LINK : ENV_OTHER;
}

static enum tide_code real_stat(struct env *e, const char *path, struct env_stat *ret, struct tide_err *err)
{
    struct stat st;

    (void)e;
    if (lstat(path, &st) == 0)
        *ret = (struct env_stat){kind_of(st.st_mode), st.st_size, st.st_mode & 07777};
    else if (errno == ENOENT || errno == ENOTDIR)
        *ret = (struct env_stat){ENV_ABSENT, 0, 0};
    else
        return tide_fail_errno(err, errno, "stat '%s'", path);
    return TIDE_OK;
}

static enum tide_code real_sync_dir(struct env *e, const char *path, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)e;
    if (fd < 0)
        return tide_fail_errno(err, errno, "open directory '%s'", path);
    int errnum = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (errnum && errnum != EINVAL) /* EINVAL: a file system whose directories need no sync */
        return tide_fail_errno(err, errnum, "sync directory '%s'", path);
    return TIDE_OK;
}

/* Ends *path at the slash before its last component and gives what to open: "/a/b" -> "/a", "/a" -> "/", "a" -> ".". */
static const char *cut_to_parent(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash)
        return ".";
    if (slash == path)
        return "/";
    *slash = '\0';
    return path;
}

static enum tide_code make_one_dir(struct env *e, const char *path, struct tide_err *err)
{
    struct stat st;

    if (mkdir(path, 0700) == 0) {
        AUTO(mem_freep) char *copy = mem_dup(str_from(path));
        return real_sync_dir(e, cut_to_parent(copy), err);
    }
    int errnum = errno;
    if (stat(path, &st) != 0) /* mkdir on a path that is there may say EACCES or EROFS before EEXIST */
        return tide_fail_errno(err, errnum, "make directory '%s'", path);
    if (!S_ISDIR(st.st_mode))
        return tide_fail_errno(err, ENOTDIR, "make directory '%s'", path);
    return TIDE_OK;
}

static enum tide_code real_mkdirs(struct env *e, const char *path, struct tide_err *err)
{
    AUTO(mem_freep) char *part = mem_dup(str_from(path));

    for (char *p = part; *p; p++) {
        bool ends = p[1] == '\0' || p[1] == '/';
        if (*p == '/' || !ends)
            continue;
        char next = p[1];
        p[1] = '\0';
        enum tide_code code = make_one_dir(e, part, err);
        if (code)
            return code;
        p[1] = next;
    }
    return TIDE_OK;
}

static enum tide_code real_unlink(struct env *e, const char *path, struct tide_err *err)
{
    (void)e;
    if (unlink(path) != 0 && errno != ENOENT)
        return tide_fail_errno(err, errno, "remove '%s'", path);
    return TIDE_OK;
}

/* ---- Processes ---------------------------------------------------------------------------------------------- */

struct proc_stat {
    char state;
    int64_t threads;
    uint64_t start_time;
};

/* The file's text without its last newline; false when it cannot be read. */
static bool read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return false;
    do {
        n = read(fd, out, size - 1);
    } while (n < 0 && errno == EINTR);
    close(fd);
    if (n <= 0)
        return false;
    out[n - (out[n - 1] == '\n')] = '\0';
    return true;
}

/* Fields 3 (state), 20 (threads) and 22 (start time). The name, field 2, may hold spaces and parentheses. */
static bool read_proc_stat(const char *path, struct proc_stat *ret)
{
    char text[1024];

    if (!read_small(path, text, sizeof text))
        return false;
    const char *after_name = strrchr(text, ')');
    return after_name && sscanf(after_name,
                                ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%" SCNd64 " %*s %" SCNu64,
                                &ret->state, &ret->threads, &ret->start_time) == 3;
}

static void look_at_self(struct env_proc *ret)
{
    struct proc_stat ps = {0};
    struct stat ns;

    *ret = (struct env_proc){.pid = getpid()};
    if (!read_small("/proc/sys/kernel/random/boot_id", ret->kernel_boot, sizeof ret->kernel_boot))
        ret->kernel_boot[0] = '\0';
    if (stat("/proc/self/ns/pid", &ns) == 0)
        ret->pid_ns = ns.st_ino;
    if (read_proc_stat("/proc/self/stat", &ps))
        ret->start_time = ps.start_time;
}

/* What does not change is read once; a child of ours reads it anew. */
static _Thread_local struct env_proc self_known;

static void forget_self(void)
{
    self_known.pid = 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_self);
}

static void real_self(struct env *e, struct env_proc *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)e;
    pthread_once(&once, watch_forks);
    if (self_known.pid != getpid() || !self_known.kernel_boot[0] || !self_known.pid_ns || !self_known.start_time)
        look_at_self(&self_known);
    *ret = self_known;
}

/* /proc does not show the process: gone, or hidden from us (hidepid), when nothing more can be told. */
static enum env_life life_unseen(int64_t pid)
{
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? ENV_DEAD : ENV_ELSEWHERE;
}

/*
 * An earlier boot of this machine looks like another machine: expiry decides. A first thread that has ended while
 * others run shows as a zombie, but the process lives.
 */
static enum env_life real_life(struct env *e, const struct env_proc *who)
{
    struct env_proc self;
    struct proc_stat ps;
    char path[64];

    real_self(e, &self);
    if (!self.kernel_boot[0] || !self.pid_ns || strcmp(self.kernel_boot, who->kernel_boot) != 0 ||
        self.pid_ns != who->pid_ns)
        return ENV_ELSEWHERE;
    if (who->pid == self.pid && who->start_time == self.start_time)
        return ENV_ALIVE;
    if (who->pid <= 0 || who->pid > INT_MAX)
        return ENV_DEAD;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", who->pid);
    if (!read_proc_stat(path, &ps))
        return life_unseen(who->pid);
    if (ps.start_time != who->start_time || ps.state == 'X' || ps.state == 'x')
        return ENV_DEAD;
    if (ps.state == 'T' || ps.state == 't')
        return ENV_STOPPED;
    return ps.state == 'Z' && ps.threads <= 1 ? ENV_DEAD : ENV_ALIVE;
}

struct env *env_real(void)
{
    static const struct env_ops ops = {
        .now_ms = real_now_ms,
        .mono_ns = real_mono_ns,
        .random = real_random,
        .sleep_ms = real_sleep_ms,
        .open = real_open,
        .close = real_close,
        .pread = real_pread,
        .pwrite = real_pwrite,
        .truncate = real_truncate,
        .sync = real_sync,
        .lock = real_lock,
        .unlock = real_unlock,
        .stat = real_stat,
        .mkdirs = real_mkdirs,
        .unlink = real_unlink,
        .sync_dir = real_sync_dir,
        .self = real_self,
        .life = real_life,
    };
    static struct env real = {&ops, NULL, true};

    return &real;
}
