/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine we run on. Thin over the system calls, with the care they need in one place: EINTR, short writes,
 * symbolic links, directories whose entries must be on disk. Processes: env_real_proc.c.
 *
 * A failed fdatasync is reported once and never tried again: the kernel has dropped the dirty pages by then.
 */
#include "env/env_real.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

enum { NS_PER_MS = 1000000, POLL_FIRST_NS = 50000, POLL_MAX_NS = 5 * NS_PER_MS };
enum { MAPPED_AFTER = 8 }; /* words that are put into a file by pwrite: to map it costs as much */
enum { PATIENCE_NS = 250 * NS_PER_MS, POLL_HURRY_NS = 500000 };

struct env_file {
    int fd;
    bool locked;
    int64_t refused_ms; /* since when its lock was asked for in vain, Unix time; 0: not */
    char *path;         /* for messages */
    void *shared;
    size_t shared_bytes;
    int words; /* that were put into it, up to MAPPED_AFTER, and one more when it was tried to map it */
};

static int64_t ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return ns_of(&t);
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

/* ---- What a file is ----------------------------------------------------------------------------------------- */

static enum env_kind kind_of(mode_t mode)
{
    return S_ISREG(mode) ? ENV_FILE : S_ISDIR(mode) ? ENV_DIR : S_ISLNK(mode) ? ENV_LINK : ENV_OTHER;
}

static struct env_stat stat_of(const struct stat *st)
{
    return (struct env_stat){
        .kind = kind_of(st->st_mode),
        .size = st->st_size,
        .mode = st->st_mode & 07777,
        .dev = st->st_dev,
        .ino = st->st_ino,
        .mtime_ns = ns_of(&st->st_mtim),
        .links = (unsigned)st->st_nlink,
    };
}

/* ---- Files -------------------------------------------------------------------------------------------------- */

static enum tide_code refuse_irregular(const char *path, const char *what, struct tide_err *err)
{
    tide_fail(err, TIDE_DENIED, "open '%s': %s", path, what);
    tide_about(err, TIDE_SUBJECT_FILE, path);
    return tide_hint(err, TIDE_ACTION_REPLACE_FILE, "");
}

static enum tide_code real_open(struct env *e, const char *path, unsigned flags, struct env_file **ret_file,
                                struct tide_err *err)
{
    /* O_NONBLOCK: a FIFO in the place of a file must not block us before fstat(); it means nothing to a regular
     * file. */
    int fd, how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (flags & ENV_WRITE ? O_RDWR : O_RDONLY) |
                  (flags & ENV_CREATE ? O_CREAT : 0) | (flags & ENV_EXCLUSIVE ? O_EXCL : 0);
    enum tide_code code = TIDE_OK;
    struct stat st;

    (void)e;
    do {
        fd = open(path, how, 0600);
    } while (fd < 0 && errno == EINTR);
    int errnum = fd < 0 ? errno : 0;
    if (errnum == ELOOP && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return refuse_irregular(path, "is a symbolic link, which is not followed", err);
    if (errnum)
        return tide_fail_file(err, errnum, errnum == EEXIST ? "create" : "open", path);
    if (fstat(fd, &st) != 0)
        code = tide_fail_file(err, errno, "stat", path);
    else if (!S_ISREG(st.st_mode))
        code = refuse_irregular(path, "not a regular file", err);
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
    if (f->shared)
        munmap(f->shared, f->shared_bytes);
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
            return tide_fail_file(err, errno, "read", f->path);
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
            return tide_fail_file(err, errno, "write", f->path);
    }
    return TIDE_OK;
}

static enum tide_code real_truncate(struct env_file *f, int64_t size, struct tide_err *err)
{
    int rc;

    do {
        rc = ftruncate(f->fd, size);
    } while (rc != 0 && errno == EINTR);
    return rc == 0 ? TIDE_OK : tide_fail_file(err, errno, "truncate", f->path);
}

static enum tide_code real_sync(struct env_file *f, struct tide_err *err)
{
    if (fdatasync(f->fd) != 0)
        return tide_fail_file(err, errno, "sync", f->path);
    return TIDE_OK;
}

static enum tide_code real_fstat(struct env_file *f, struct env_stat *ret, struct tide_err *err)
{
    struct stat st;

    if (fstat(f->fd, &st) != 0)
        return tide_fail_file(err, errno, "stat", f->path);
    *ret = stat_of(&st);
    return TIDE_OK;
}

static void real_renamed(struct env_file *f, const char *path)
{
    free(f->path);
    f->path = mem_dup(str_from(path));
}

/* Not posix_fallocate: where the file system cannot, that writes zeros and makes the file longer. */
static enum tide_code real_allocate(struct env_file *f, int64_t size, struct tide_err *err)
{
    int rc;

    if (size <= 0)
        return TIDE_OK;
    do {
        rc = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, size);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS)
        return TIDE_OK;
    return tide_fail_file(err, errno, "reserve space for", f->path);
}

/* Its space is taken first: a store to memory that finds no room on the disk would be the end of the process. */
static enum tide_code prepare_to_share(struct env_file *f, size_t bytes, struct tide_err *err)
{
    enum tide_code code = real_allocate(f, (int64_t)bytes, err);
    struct stat st;

    if (!code && fstat(f->fd, &st) != 0)
        code = tide_fail_file(err, errno, "stat", f->path);
    for (off_t at = code ? (off_t)bytes : st.st_size;
         at < (off_t)bytes && !code;) { /* written, where it cannot be reserved */
        static const char zeros[4096];
        off_t left = (off_t)bytes - at, n = left < (off_t)sizeof zeros ? left : (off_t)sizeof zeros;

        code = real_pwrite(f, zeros, (size_t)n, at, err);
        at += n;
    }
    return code;
}

static void *map_shared(struct env_file *f, size_t bytes, struct tide_err *err)
{
    bool writes = (fcntl(f->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
    struct stat st;
    void *at;

    if (writes && prepare_to_share(f, bytes, err))
        return NULL;
    if (fstat(f->fd, &st) != 0 || st.st_size < (off_t)bytes) {
        tide_fail(err, TIDE_IO, "share '%s': it is shorter than that", f->path);
        return NULL;
    }
    at = mmap(NULL, bytes, PROT_READ | (writes ? PROT_WRITE : 0), MAP_SHARED, f->fd, 0);
    if (at != MAP_FAILED)
        return at;
    tide_fail_file(err, errno, "share", f->path);
    return NULL;
}

static void *shared_of(const struct env_file *f)
{
    return __atomic_load_n(&f->shared, __ATOMIC_ACQUIRE);
}

/* Threads that have no lock in common may come for the same file: one of them maps it. */
static void *real_share(struct env_file *f, size_t bytes, struct tide_err *err)
{
    static pthread_mutex_t mapping = PTHREAD_MUTEX_INITIALIZER;
    void *at = shared_of(f);

    if (at)
        return at;
    pthread_mutex_lock(&mapping);
    at = shared_of(f);
    if (!at && (at = map_shared(f, bytes, err)) != NULL) {
        f->shared_bytes = bytes;
        __atomic_store_n(&f->shared, at, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mapping);
    return at;
}

static enum tide_code real_put_word(struct env_file *f, const char word[8], int64_t at, struct tide_err *err)
{
    uint64_t value;
    char *shared;

    if (f->words <= MAPPED_AFTER && f->words++ == MAPPED_AFTER)
        (void)!real_share(f, (size_t)at + sizeof value, NULL);
    shared = shared_of(f);
    if (!shared || f->shared_bytes < (size_t)at + sizeof value)
        return real_pwrite(f, word, sizeof value, at, err);
    memcpy(&value, word, sizeof value);
    __atomic_store_n((uint64_t *)(void *)(shared + at), value, __ATOMIC_SEQ_CST);
    return TIDE_OK;
}

/* Not the private kind: the word is found by the file that it is in, whichever process has mapped it where. */
static void real_wait_word(struct env *e, const uint32_t *word, uint32_t value, int timeout_ms)
{
    struct timespec t = {timeout_ms / 1000, (long)(timeout_ms % 1000) * NS_PER_MS};

    (void)e;
    syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static void real_wake_word(struct env *e, const uint32_t *word)
{
    (void)e;
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
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

/*
 * One that commits without a pause gives the lock up for less than a tenth of a millisecond at a time: the process that looks every few
 * milliseconds may miss that until its time is over. Who has waited for long looks often.
 */
static enum tide_code real_lock(struct env_file *f, int timeout_ms, struct tide_err *err)
{
    int64_t began = clock_ns(CLOCK_MONOTONIC), deadline = began + (int64_t)timeout_ms * NS_PER_MS;
    int64_t pause = POLL_FIRST_NS;

    while (try_flock(f->fd, timeout_ms < 0 ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return tide_fail_file(err, errno, "lock", f->path);
        int64_t now = clock_ns(CLOCK_MONOTONIC), left = deadline - now;
        if (left <= 0 && (!timeout_ms || !err)) /* names the holder only after a wait, if err is given */
            return tide_fail(err, TIDE_BUSY, "lock '%s': held by another", f->path);
        if (left <= 0) {
            if (!f->refused_ms)
                f->refused_ms = clock_ns(CLOCK_REALTIME) / NS_PER_MS - timeout_ms;
            return holder_fail(f->fd, f->path, f->refused_ms, err);
        }
        nanosleep(&(struct timespec){0, pause < left ? pause : left}, NULL);
        pause = now - began > PATIENCE_NS ? POLL_HURRY_NS : pause * 2 < POLL_MAX_NS ? pause * 2 : POLL_MAX_NS;
    }
    f->locked = true;
    f->refused_ms = 0;
    return TIDE_OK;
}

/* ---- Names -------------------------------------------------------------------------------------------------- */

static enum tide_code real_stat(struct env *e, const char *path, struct env_stat *ret, struct tide_err *err)
{
    struct stat st;

    (void)e;
    if (lstat(path, &st) == 0)
        *ret = stat_of(&st);
    else if (errno == ENOENT || errno == ENOTDIR)
        *ret = (struct env_stat){.kind = ENV_ABSENT};
    else
        return tide_fail_file(err, errno, "stat", path);
    return TIDE_OK;
}

static enum tide_code real_sync_dir(struct env *e, const char *path, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)e;
    if (fd < 0)
        return tide_fail_file(err, errno, "open directory", path);
    int errnum = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (errnum && errnum != EINVAL) /* EINVAL: a file system whose directories need no sync */
        return tide_fail_file(err, errnum, "sync directory", path);
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

/*
 * A directory is made with the sticky bit, which means nothing where nobody else may write, and loses it once its entry
 * is on disk. The process that finds it with the bit syncs its parent first: its maker is not done yet, or was killed before it
 * was, and what is put there would go with the directory in a power cut. So what is found without it costs no sync.
 */
enum { DIR_NOT_SYNCED = S_ISVTX | 0700 };

static enum tide_code sync_new_dir(struct env *e, const char *path, mode_t mode, struct tide_err *err)
{
    AUTO(mem_freep) char *copy = mem_dup(str_from(path));
    enum tide_code code = real_sync_dir(e, cut_to_parent(copy), err);

    if (!code)
        (void)!chmod(path, mode & 07777 & ~S_ISVTX); /* or the next one syncs again */
    return code;
}

static enum tide_code make_one_dir(struct env *e, const char *path, struct tide_err *err)
{
    int errnum = mkdir(path, DIR_NOT_SYNCED) == 0 ? 0 : errno;
    struct stat st;

    if (stat(path, &st) != 0) /* mkdir on a path that is there may say EACCES or EROFS before EEXIST */
        return tide_fail_file(err, errnum ? errnum : errno, "make directory", path);
    if (!S_ISDIR(st.st_mode))
        return tide_fail_file(err, ENOTDIR, "make directory", path);
    if (errnum && (st.st_mode & 01777) != DIR_NOT_SYNCED)
        return TIDE_OK;
    return sync_new_dir(e, path, st.st_mode, err);
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
    if (unlink(path) != 0 && errno != ENOENT && (errno != EISDIR || rmdir(path) != 0))
        return tide_fail_file(err, errno, "remove", path);
    return TIDE_OK;
}

static enum tide_code real_rename(struct env *e, const char *from, const char *to, struct tide_err *err)
{
    (void)e;
    if (rename(from, to) != 0)
        return tide_fail_errno(err, errno, "rename '%s' to '%s'", from, to);
    return TIDE_OK;
}

/* ---- Listing ------------------------------------------------------------------------------------------------ */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Some file systems do not report the type with the name. ENV_ABSENT: it went meanwhile. */
static enum tide_code kind_of_entry(DIR *dir, const struct dirent *entry, enum env_kind *ret, struct tide_err *err)
{
    struct stat st;

    if (entry->d_type != DT_UNKNOWN)
        *ret = kind_of(DTTOIF(entry->d_type));
    else if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        *ret = kind_of(st.st_mode);
    else if (errno == ENOENT)
        *ret = ENV_ABSENT;
    else
        return tide_fail_file(err, errno, "stat", entry->d_name);
    return TIDE_OK;
}

static enum tide_code tell_entries(DIR *dir, const char *path, env_list_fn *fn, void *arg, struct tide_err *err)
{
    const struct dirent *entry;

    while (errno = 0, (entry = readdir(dir)) != NULL) {
        enum env_kind kind = ENV_ABSENT;
        enum tide_code code = is_dots(entry->d_name) ? TIDE_OK : kind_of_entry(dir, entry, &kind, err);
        if (!code && kind != ENV_ABSENT)
            code = fn(arg, entry->d_name, kind);
        if (code)
            return code;
    }
    return errno ? tide_fail_file(err, errno, "list directory", path) : TIDE_OK;
}

static enum tide_code real_list(struct env *e, const char *path, env_list_fn *fn, void *arg, struct tide_err *err)
{
    DIR *dir = opendir(path);

    (void)e;
    if (!dir)
        return tide_fail_file(err, errno, "list directory", path);
    enum tide_code code = tell_entries(dir, path, fn, arg, err);
    closedir(dir);
    return code;
}

/* ---- The table ------------------------------------------------------------------------------------------------- */

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
        .renamed = real_renamed,
        .fstat = real_fstat,
        .allocate = real_allocate,
        .share = real_share,
        .put_word = real_put_word,
        .wait_word = real_wait_word,
        .wake_word = real_wake_word,
        .stat = real_stat,
        .mkdirs = real_mkdirs,
        .unlink = real_unlink,
        .rename = real_rename,
        .sync_dir = real_sync_dir,
        .list = real_list,
        .self = env_real_self,
        .life = env_real_life,
        .is_local = env_real_is_local,
    };
    static struct env real = {&ops, NULL, true};

    return &real;
}
