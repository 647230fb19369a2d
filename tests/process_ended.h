/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a process that was to end has ended. */
#ifndef TESTS_PROCESS_ENDED_H
#define TESTS_PROCESS_ENDED_H

#include <fcntl.h>
#include <poll.h>

#include "kit.h"

/* Its state as /proc has it, 'Z' for one that is dead and not yet waited for; 0: there is none. */
UNUSED static char state_of(pid_t pid)
{
    char path[40], text[256] = "";
    const char *at;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0) /* it ended in between */
        text[0] = '\0';
    close(fd);
    at = strrchr(text, ')');
    return at ? at[2] : 0;
}

/* True when no live process has the pid, at the latest after ten seconds. */
UNUSED static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 10000; i++) {
        char state = state_of(pid);

        if (state == 0 || state == 'Z')
            return true;
        poll(NULL, 0, 1);
    }
    return false;
}

#endif
