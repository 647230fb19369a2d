/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify and eventfd. A process that dies closes its files, and the kernel tells of that as of any other close: so a writer
 * that is killed between a write to shared memory, which inotify does not see, and the next write to a file is noticed, too.
 */
#include "env/file_watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"

struct file_watch {
    int inotify; /* -1: the kernel tells nothing */
    int poke;
};

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

enum tide_code file_watch_open(struct file_watch **ret, char *why, size_t why_size, struct tide_err *err)
{
    struct file_watch *w;
    int poke = -1;
    enum tide_code code = wake_fd_open(&poke, err);

    if (code)
        return code;
    w = mem_zero(sizeof *w);
    w->poke = poke;
    w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->inotify < 0)
        snprintf(why, why_size, "%s",
                 errno == EMFILE ? "the inotify instances of this user are used up (fs.inotify.max_user_instances)"
                                 : strerrordesc_np(errno));
    *ret = w;
    return TIDE_OK;
}

void file_watch_close(struct file_watch *w)
{
    if (!w)
        return;
    if (w->inotify >= 0)
        close(w->inotify);
    close(w->poke);
    free(w);
}

enum tide_code file_watch_add(struct file_watch *w, const char *path, enum file_watch_what what, struct tide_err *err)
{
    static const uint32_t masks[] = {
        [FILE_WATCH_WRITES] = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF,
        [FILE_WATCH_NAME] = IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF,
        [FILE_WATCH_DIR] = IN_CREATE | IN_MOVED_TO | IN_ONLYDIR,
    };

    if (inotify_add_watch(w->inotify, path, masks[what] | IN_MASK_ADD) >= 0)
        return TIDE_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return tide_fail(err, TIDE_NOT_FOUND, "watch '%s': no such file", path);
    if (errno == ENOSPC) /* its meaning here is another than on a disk */
        return tide_fail(err, TIDE_FAILED,
                         "the inotify watches of this user are used up (fs.inotify.max_user_watches)");
    return tide_fail_file(err, errno, "watch", path);
}

void file_watch_poke(struct file_watch *w)
{
    wake_fd_signal(w->poke);
}

/* All that is there: a burst is one piece of news. */
static enum file_news read_events(int fd)
{
    char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    enum file_news news = FILE_NEWS_NONE;
    ssize_t n;

    while ((n = read(fd, bytes, sizeof bytes)) > 0) {
        for (const char *at = bytes; at < bytes + n;) {
            const struct inotify_event *e = (const void *)at;

            if (e->mask & (IN_CLOSE_WRITE | IN_Q_OVERFLOW))
                news = FILE_NEWS_LEFT;
            else if (news == FILE_NEWS_NONE)
                news = FILE_NEWS_SOME;
            at += sizeof *e + e->len;
        }
    }
    return news;
}

enum file_news file_watch_wait(struct file_watch *w, int timeout_ms)
{
    struct pollfd p[] = {{.fd = w->poke, .events = POLLIN}, {.fd = w->inotify, .events = POLLIN}};
    enum file_news news = FILE_NEWS_NONE;
    uint64_t count;

    if (poll(p, 2, timeout_ms) <= 0) /* without inotify its descriptor is negative, and passed over */
        return FILE_NEWS_NONE;
    if (p[1].revents)
        news = read_events(w->inotify);
    if (p[0].revents && read(w->poke, &count, sizeof count) > 0 && news == FILE_NEWS_NONE)
        news = FILE_NEWS_SOME;
    return news;
}
