/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the lock of a file, as far as the kernel reports it (/proc/locks), for a caller that waited in vain. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/timefmt.h"
#include "env/env_real.h"

struct holder {
    int64_t pid; /* 0: it cannot be seen from here */
    char name[32];
    char state; /* as ps shows it; T: stopped */
};

/* "12: FLOCK  ADVISORY  WRITE 4711 fe:01:1234567 0 EOF"; one that waits has "->" behind the colon. */
static int64_t holder_in(const char *line, const struct stat *st, bool *ret_same_disk)
{
    unsigned major, minor;
    long long pid;
    uint64_t ino;

    if (sscanf(line, "%*d: FLOCK %*s %*s %lld %x:%x:%" SCNu64, &pid, &major, &minor, &ino) != 4 || ino != st->st_ino)
        return 0;
    *ret_same_disk = major == major(st->st_dev) && minor == minor(st->st_dev);
    return pid > 0 ? pid : 0;
}

/* On file systems whose files have a device of their own (btrfs) only the inode fits. */
static int64_t find_pid(int fd)
{
    FILE *locks = fopen("/proc/locks", "re");
    int64_t pid = 0, found;
    struct stat st;
    char line[256];
    bool same = false;

    if (locks && fstat(fd, &st) == 0)
        while (!same && fgets(line, sizeof line, locks))
            if ((found = holder_in(line, &st, &same)) != 0)
                pid = found;
    if (locks)
        fclose(locks);
    return pid;
}

static void look_at(struct holder *h)
{
    char path[64], line[256];
    const char *open, *close;
    FILE *stat;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", h->pid);
    stat = fopen(path, "re");
    if (!stat)
        return;
    if (fgets(line, sizeof line, stat) && (open = strchr(line, '(')) && (close = strrchr(line, ')')) && close[1]) {
        snprintf(h->name, sizeof h->name, "%.*s", (int)(close - open - 1), open + 1);
        h->state = close[2];
    }
    fclose(stat);
}

enum tide_code holder_fail(int fd, const char *path, int64_t since_ms, struct tide_err *err)
{
    struct holder h = {.pid = find_pid(fd)};
    char since[TIME_PEOPLE_SIZE];
    bool stopped;

    time_people(since, since_ms);
    if (!h.pid)
        return tide_fail(
            err, TIDE_BUSY,
            "a process that cannot be seen from here (in another container or on another machine) has blocked other "
            "writers since %s or longer; reading is not affected (lock of '%s')",
            since, path);
    look_at(&h);
    stopped = h.state == 'T' || h.state == 't';
    tide_fail(err, TIDE_BUSY,
              "process %" PRId64 " (%s)%s has blocked other writers since %s or longer; reading is not affected "
              "(lock of '%s')",
              h.pid, h.name[0] ? h.name : "?", stopped ? " is stopped and" : "", since, path);
    if (!stopped)
        return tide_hint_with(err, TIDE_ACTION_END_PROCESS, "", "\"pid\":%" PRId64, h.pid);
    tide_hint_with(err, TIDE_ACTION_END_PROCESS, "", "\"continue\":true,\"pid\":%" PRId64, h.pid);
    return tide_hint_with(err, TIDE_ACTION_END_PROCESS, "", "\"kill\":true,\"pid\":%" PRId64, h.pid);
}
