/* SPDX-License-Identifier: Apache-2.0 */
/* Who this process is, and whether another one still lives: what /proc says, and what only looks alive. */
#include "env/env_real.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "env/proc_stat.h"

static void look_at_self(struct env_proc *ret)
{
    struct proc_stat ps = {0};
    struct stat ns;

    *ret = (struct env_proc){.pid = getpid()};
    if (!proc_read("/proc/sys/kernel/random/boot_id", ret->kernel_boot, sizeof ret->kernel_boot))
        ret->kernel_boot[0] = '\0';
    if (stat("/proc/self/ns/pid", &ns) == 0)
        ret->pid_ns = ns.st_ino;
    if (proc_stat_read(0, &ps))
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

void env_real_self(struct env *e, struct env_proc *ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)e;
    pthread_once(&once, watch_forks);
    if (self_known.pid != getpid() || !self_known.kernel_boot[0] || !self_known.pid_ns || !self_known.start_time)
        look_at_self(&self_known);
    *ret = self_known;
}

/* An earlier boot of this machine looks like another machine here. */
enum env_life env_real_life(struct env *e, const struct env_proc *who)
{
    struct env_proc self;
    struct proc_stat ps;

    env_real_self(e, &self);
    if (!self.kernel_boot[0] || !self.pid_ns || strcmp(self.kernel_boot, who->kernel_boot) != 0 ||
        self.pid_ns != who->pid_ns)
        return ENV_ELSEWHERE;
    if (who->pid == self.pid && who->start_time == self.start_time)
        return ENV_ALIVE;
    if (who->pid <= 0 || who->pid > INT_MAX)
        return ENV_DEAD;
    if (!proc_stat_read((pid_t)who->pid, &ps)) /* gone, or hidden from us (hidepid), when nothing more is known */
        return kill((pid_t)who->pid, 0) != 0 && errno == ESRCH ? ENV_DEAD : ENV_ELSEWHERE;
    if (ps.start_time != who->start_time || !proc_stat_lives(&ps))
        return ENV_DEAD;
    return ps.state == 'T' || ps.state == 't' ? ENV_STOPPED : ENV_ALIVE;
}

/*
 * File systems of disks and memory of this machine. Those of a network, of a host that we are a guest of (9p, virtiofs, shared
 * folders), of FUSE, and those that several machines mount from one disk are not among them; nor is what nobody knows.
 */
bool env_real_is_local(struct env *e, const char *path)
{
    static const uint32_t local[] = {
        0xEF53 /* ext2 to ext4 */, 0x58465342 /* xfs */,   0x9123683E /* btrfs */,     0x01021994 /* tmpfs */,
        0x858458F6 /* ramfs */,    0xF2F52010 /* f2fs */,  0x794C7630 /* overlayfs */, 0x2FC12FC1 /* zfs */,
        0xCA451A4E /* bcachefs */, 0x3153464A /* jfs */,   0x52654973 /* reiserfs */,  0x3434 /* nilfs2 */,
        0x4D44 /* vfat */,         0x2011BAB0 /* exfat */, 0x7366746E /* ntfs3 */,
    };
    struct statfs fs;

    (void)e;
    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if ((uint32_t)fs.f_type == local[i])
            return true;
    }
    return false;
}
