/* SPDX-License-Identifier: Apache-2.0 */
/* Real processes for tests: children that run a function, pipes to hear from them, waiting with a bound and without sleeps. */
#ifndef TESTS_REAL_PROC_H
#define TESTS_REAL_PROC_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "kit.h"

struct child {
    pid_t pid;
    int in, out; /* the parent's ends: in writes to it, out reads from it */
};

/* What a child uses. */
struct self {
    int in, out;
    void *arg;
    struct rng rng;
};

typedef void child_fn(struct self *);

/* Inside a child nothing may return into cmocka: a failure ends it with this status. */
#define CHILD_FAILED 66
#define CHILD_MUST(call)                                                                                               \
    do {                                                                                                               \
        struct tide_err err UNUSED = {0};                                                                              \
        if ((call) != TIDE_OK) {                                                                                       \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, err.msg);                                    \
            _exit(CHILD_FAILED);                                                                                       \
        }                                                                                                              \
    } while (0)

UNUSED static struct child child_start(child_fn *fn, void *arg, uint64_t seed)
{
    struct child c;
    int to[2], from[2];

    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        fail_msg("pipe");
    c.pid = fork();
    if (c.pid == 0) {
        struct self self = {to[0], from[1], arg, {seed}};

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays behind when the test dies */
        close(to[1]);
        close(from[0]);
        fn(&self);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    c.in = to[1];
    c.out = from[0];
    return c;
}

/* Waits for its end; its status as waitpid has it. */
UNUSED static int child_wait(struct child *c)
{
    int status = -1;

    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(c->in);
    close(c->out);
    return status;
}

UNUSED static int child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    return child_wait(c);
}

/* Reads exactly n bytes within the time; false at the end of the pipe or when it takes too long. */
UNUSED static bool hear(int fd, void *out, size_t n, int timeout_ms)
{
    for (size_t got = 0; got < n;) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t r;

        if (poll(&p, 1, timeout_ms) <= 0)
            return false;
        r = read(fd, (char *)out + got, n - got);
        if (r <= 0)
            return false;
        got += (size_t)r;
    }
    return true;
}

UNUSED static void tell(int fd, const void *bytes, size_t n)
{
    if (write(fd, bytes, n) != (ssize_t)n)
        _exit(CHILD_FAILED);
}

UNUSED static void tell_char(int fd, char c)
{
    tell(fd, &c, 1);
}

/* One character from the other side, or '?' when none comes in time. */
UNUSED static char hear_char(int fd)
{
    char c;

    return hear(fd, &c, 1, 60000) ? c : '?';
}

UNUSED static int64_t mono_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

UNUSED static void spin_ns(int64_t ns)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    do {
        clock_gettime(CLOCK_MONOTONIC, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec) < ns);
}

/* A process may follow its children: not everywhere. */
UNUSED static bool may_trace(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : CHILD_FAILED);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

#endif
