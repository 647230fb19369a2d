/* SPDX-License-Identifier: Apache-2.0 */
/* The limits: what the disk itself gives, measured beside each row in the same run. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define PREALLOCATED (64 << 20)

static int raw_open(const struct bench *b, bool preallocated)
{
    static char zeros[1 << 20];
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/raw", b->dir);
    unlink(path);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must_sys(fd >= 0, path);
    for (int i = 0; preallocated && i < PREALLOCATED >> 20; i++)
        must_sys(pwrite(fd, zeros, sizeof zeros, (off_t)i << 20) == (ssize_t)sizeof zeros, "preallocate");
    must_sys(fsync(fd) == 0, "sync");
    return fd;
}

static double rate(const struct bench *b, bool preallocated, size_t events, size_t bytes, double seconds)
{
    int fd = raw_open(b, preallocated);
    char *data = malloc(events * bytes);
    double start = now_s(), took;
    off_t at = 0;
    size_t n = 0;

    must_sys(data != NULL, "memory");
    memset(data, 'x', events * bytes);
    do {
        must_sys(pwrite(fd, data, events * bytes, at) == (ssize_t)(events * bytes), "write");
        must_sys(fdatasync(fd) == 0, "fdatasync");
        at += (off_t)(events * bytes);
        if (preallocated && at + (off_t)(events * bytes) > PREALLOCATED)
            at = 0;
        n += events;
        took = now_s() - start;
    } while (took < seconds);
    close(fd);
    free(data);
    return (double)n / took;
}

double raw_sync_rate(const struct bench *b, bool preallocated, double seconds)
{
    return rate(b, preallocated, 1, 256, seconds);
}

double raw_group_rate(const struct bench *b, size_t events, size_t bytes, double seconds)
{
    return rate(b, false, events, bytes, seconds);
}
