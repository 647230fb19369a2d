/* SPDX-License-Identifier: Apache-2.0 */
#include "env/proc_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool proc_read(const char *path, char *out, size_t size)
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

bool proc_stat_read(pid_t pid, struct proc_stat *ret)
{
    char path[40] = "/proc/self/stat", text[1024];
    const char *after_name;

    if (pid)
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!proc_read(path, text, sizeof text))
        return false;
    after_name = strrchr(text, ')'); /* the name, field 2, may hold spaces and parentheses */
    return after_name && sscanf(after_name,
                                ") %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                "%" SCNd64 " %*s %" SCNu64,
                                &ret->state, &ret->parent, &ret->group, &ret->threads, &ret->start_time) == 5;
}

bool proc_stat_lives(const struct proc_stat *p)
{
    return p->state != 'X' && p->state != 'x' && !(p->state == 'Z' && p->threads <= 1);
}
