/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program and kills it (SIGKILL, from outside) right behind its n-th sync, whichever of its threads makes it: so each
 * commit of a command can be its last one. What the program starts is not traced.
 *
 *   kill_at N PROGRAM [ARGUMENT…]    exit status 0: it was killed; 1: it ended before; 77: nothing can be traced here
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

enum { KILLED, ENDED, WRONG, UNTRACED = 77 };

static pid_t begin(char **argv)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(UNTRACED);
    raise(SIGSTOP);
    execvp(argv[0], argv);
    _exit(127);
}

/* A system call that is over, and was a sync. */
static int is_synced(pid_t thread)
{
    static _Thread_local struct {
        pid_t thread;
        unsigned long long nr;
    } last[64];
    struct __ptrace_syscall_info info = {0};
    size_t slot = (size_t)thread % 64;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) <= 0)
        return 0;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        last[slot].thread = thread;
        last[slot].nr = info.entry.nr;
    }
    return info.op == PTRACE_SYSCALL_INFO_EXIT && last[slot].thread == thread &&
           (last[slot].nr == SYS_fdatasync || last[slot].nr == SYS_fsync);
}

static int end_of(pid_t pid, long n)
{
    int status, signal;
    pid_t thread;

    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (thread == pid && (WIFEXITED(status) || WIFSIGNALED(status)))
            return ENDED;
        if (thread <= 0 || !WIFSTOPPED(status))
            continue;
        signal = WSTOPSIG(status);
        if (signal == (SIGTRAP | 0x80) && is_synced(thread) && --n == 0) {
            kill(pid, SIGKILL);
            while ((thread = waitpid(-1, &status, __WALL)) > 0 && !(thread == pid && WIFSIGNALED(status)))
                ; /* the first thread is reported when all the others were */
            return KILLED;
        }
        if (signal == SIGTRAP || signal == (SIGTRAP | 0x80) || signal == SIGSTOP)
            signal = 0;
        ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)signal);
    }
    return WRONG;
}

int main(int argc, char **argv)
{
    int status = 0;
    pid_t pid;

    if (argc < 3)
        return WRONG;
    pid = begin(argv + 2);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return UNTRACED;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL,
               (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)) != 0)
        return UNTRACED;
    ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    return end_of(pid, strtol(argv[1], NULL, 10));
}
