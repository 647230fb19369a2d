/* SPDX-License-Identifier: Apache-2.0 */
/* A small disk of the test's own that can really be full: a tmpfs in a mount namespace. */
#ifndef TESTS_REAL_DISK_H
#define TESTS_REAL_DISK_H

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "kit.h"

/* A mount namespace, as root or as somebody who may have a user namespace; false when neither is possible. */
UNUSED static bool disk_make(const char *dir)
{
    char map[64];
    uid_t uid = getuid();
    gid_t gid = getgid();
    int fd;

    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return false;
        fd = open("/proc/self/setgroups", O_WRONLY);
        if (fd >= 0 && write(fd, "deny", 4) != 4)
            print_message("setgroups\n");
        close(fd);
        snprintf(map, sizeof map, "0 %d 1", (int)uid);
        fd = open("/proc/self/uid_map", O_WRONLY);
        if (fd < 0 || write(fd, map, strlen(map)) < 0)
            return false;
        close(fd);
        snprintf(map, sizeof map, "0 %d 1", (int)gid);
        fd = open("/proc/self/gid_map", O_WRONLY);
        if (fd < 0 || write(fd, map, strlen(map)) < 0)
            return false;
        close(fd);
    }
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=700") == 0;
}

/* Takes every block that is left. */
UNUSED static void disk_fill(const char *fill_path)
{
    static char block[65536];
    int fd = open(fill_path, O_WRONLY | O_CREAT | O_APPEND, 0600);

    for (size_t n = sizeof block; n > 0;) {
        if (write(fd, block, n) <= 0)
            n /= 2;
    }
    close(fd);
}

#endif
