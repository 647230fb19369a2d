/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify and eventfd. A process that dies closes its files, and the kernel reports that as any other close: so a
 * writer that is killed between a write to shared memory, which inotify does not see, and the next write to a file is
 * noticed, too.
 *
 * Instances are few (128 a user): a process has one, however many watch, and a thread that reads it and does nothing else. The caller that
 * watches waits by itself, so that one that hangs, on a disk that does not answer, holds up no other.
 */
#include "env/file_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/mem.h"
#include "base/thread.h"

enum { FILES = 4 }; /* of one watch */

struct file_watch {
    int wake;         /* an eventfd: news, or a poke */
    atomic_uint news; /* FILE_NEWS_… since it was asked last */
    int files[FILES]; /* the kernel's numbers for them */
    size_t n;
    struct file_watch *next, **before;
};

/* The process's inotify instance, and the thread that reads it: there while anybody watches. */
struct reader {
    int inotify, stop;
    pthread_t thread;
};

static struct {
    pthread_mutex_t mu;
    struct reader *reader; /* NULL: nobody watches, or the kernel reports nothing */
    struct file_watch *first;
} all = {.mu = PTHREAD_MUTEX_INITIALIZER};

enum tide_code wake_fd_open(int *ret_fd, struct tide_err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return tide_fail_errno(err, errno, "make a descriptor to wait with");
    *ret_fd = fd;
    return TIDE_OK;
}

void wake_fd_signal(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one); /* a counter that is full says as much */
}

bool wake_fd_wait(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t count;

    if (timeout_ms && poll(&p, 1, timeout_ms) <= 0)
        return false;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count;
}

void path_from_root(char *path, size_t size)
{
    AUTO(mem_freep) char *dir = path[0] == '/' ? NULL : getcwd(NULL, 0);
    AUTO(mem_freep) char *rest = mem_dup(str_from(path));

    if (dir && snprintf(path, size, "%s/%s", dir, rest) >= (int)size)
        snprintf(path, size, "%s", rest);
}

/* ---- The process's instance ------------------------------------------------------------------------------------------ */

static bool has_file(const struct file_watch *w, int file)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->files[i] == file)
            return true;
    return false;
}

static void tell_watch(struct file_watch *w, enum file_news news)
{
    atomic_fetch_or(&w->news, (unsigned)news);
    wake_fd_signal(w->wake);
}

static void *read_all(void *arg)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    const struct reader *r = arg;
    struct pollfd p[] = {{.fd = r->stop, .events = POLLIN}, {.fd = r->inotify, .events = POLLIN}};

    while (poll(p, 2, -1) < 0 || !p[0].revents) {
        ssize_t n = read(r->inotify, bytes, sizeof bytes);

        pthread_mutex_lock(&all.mu);
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *e = (const void *)at;
            bool over = e->mask & IN_Q_OVERFLOW; /* then all are woken */

            for (struct file_watch *w = all.first; w; w = w->next)
                if (over || has_file(w, e->wd))
                    tell_watch(w, over || e->mask & IN_CLOSE_WRITE ? FILE_NEWS_LEFT : FILE_NEWS_SOME);
            at += sizeof *e + e->len;
        }
        pthread_mutex_unlock(&all.mu);
    }
    return NULL;
}

static void reader_free(struct reader *r)
{
    if (r->stop >= 0)
        close(r->stop);
    close(r->inotify);
    free(r);
}

/* With mu. */
static enum tide_code begin_reading(char *why, size_t why_size, struct tide_err *err)
{
    struct reader *r;
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    enum tide_code code;

    if (fd < 0) {
        snprintf(why, why_size, "%s",
                 errno == EMFILE ? "the inotify instances of this user are used up (fs.inotify.max_user_instances)"
                                 : strerrordesc_np(errno));
        return TIDE_OK;
    }
    r = mem_zero(sizeof *r);
    r->inotify = fd;
    r->stop = -1;
    code = wake_fd_open(&r->stop, err);
    if (!code && !thread_start(&r->thread, read_all, r))
        code = tide_fail(err, TIDE_FAILED, "no thread could be started");
    if (code)
        reader_free(r);
    else
        all.reader = r;
    return code;
}

/* ---- One watch ------------------------------------------------------------------------------------------------------- */

enum tide_code file_watch_open(struct file_watch **ret, char *why, size_t why_size, struct tide_err *err)
{
    struct file_watch *w;
    int wake = -1;
    enum tide_code code = wake_fd_open(&wake, err);

    if (code)
        return code;
    pthread_mutex_lock(&all.mu);
    if (!all.reader)
        code = begin_reading(why, why_size, err);
    if (code) {
        close(wake);
    } else {
        *ret = w = mem_zero(sizeof *w);
        w->wake = wake;
        w->next = all.first;
        w->before = &all.first;
        if (w->next)
            w->next->before = &w->next;
        all.first = w;
    }
    pthread_mutex_unlock(&all.mu);
    return code;
}

/* With mu. A file that two watch has one number. */
static void leave_file(int file)
{
    for (const struct file_watch *w = all.first; w; w = w->next)
        if (has_file(w, file))
            return;
    inotify_rm_watch(all.reader->inotify, file);
}

void file_watch_close(struct file_watch *w)
{
    struct reader *last = NULL;

    if (!w)
        return;
    pthread_mutex_lock(&all.mu);
    *w->before = w->next;
    if (w->next)
        w->next->before = w->before;
    for (size_t i = 0; i < w->n; i++)
        leave_file(w->files[i]);
    if (!all.first)
        last = TAKE(all.reader);
    pthread_mutex_unlock(&all.mu);
    if (last) {
        wake_fd_signal(last->stop);
        pthread_join(last->thread, NULL);
        reader_free(last);
    }
    close(w->wake);
    free(w);
}

enum tide_code file_watch_add(struct file_watch *w, const char *path, enum file_watch_what what, struct tide_err *err)
{
    static const uint32_t masks[] = {
        [FILE_WATCH_WRITES] = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF,
        [FILE_WATCH_NAME] = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF,
        [FILE_WATCH_DIR] = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR,
    };
    int file, why;

    pthread_mutex_lock(&all.mu);
    INVARIANT(all.reader); /* adds nothing if the kernel reports nothing, which it has returned */
    file = inotify_add_watch(all.reader->inotify, path, masks[what] | IN_MASK_ADD);
    why = errno;
    INVARIANT(w->n < FILES);
    if (file >= 0 && !has_file(w, file))
        w->files[w->n++] = file;
    pthread_mutex_unlock(&all.mu);
    if (file >= 0)
        return TIDE_OK;
    if (why == ENOENT || why == ENOTDIR)
        return tide_fail(err, TIDE_NOT_FOUND, "watch '%s': no such file", path);
    if (why == ENOSPC) /* its meaning here is another than on a disk */
        return tide_fail(err, TIDE_FAILED,
                         "the inotify watches of this user are used up (fs.inotify.max_user_watches)");
    return tide_fail_file(err, why, "watch", path);
}

void file_watch_poke(struct file_watch *w)
{
    tell_watch(w, FILE_NEWS_SOME);
}

enum file_news file_watch_wait(struct file_watch *w, int timeout_ms)
{
    unsigned news;

    if (!wake_fd_wait(w->wake, timeout_ms))
        return FILE_NEWS_NONE;
    news = atomic_exchange(&w->news, 0u); /* 0: it came between the two, and was reported already */
    return news & FILE_NEWS_LEFT ? FILE_NEWS_LEFT : FILE_NEWS_SOME;
}
