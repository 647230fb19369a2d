/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a process in /proc/PID/stat. */
#ifndef ENV_PROC_STAT_H
#define ENV_PROC_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_stat {
    char state;
    pid_t parent, group;
    int64_t threads;
    uint64_t start_time; /* in ticks since the kernel booted: with the pid it names the process */
};

/* `pid` 0: our own. False: it is gone, or hidden from us. */
bool proc_stat_read(pid_t pid, struct proc_stat *ret);

/* One whose first thread has ended while others run shows as a zombie, but lives. */
bool proc_stat_lives(const struct proc_stat *p);

/* A file of /proc, without its last newline. In one read and without the heap: the kernel writes it as it is read. */
bool proc_read(const char *path, char *out, size_t size);

#endif
