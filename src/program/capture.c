/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One loop over the output, the end of the program, the run's socket and signals. The program's end is what counts, not the
 * end of its output: children that it left behind may hold the pipe for ever, and it may close its output long before.
 */
#include "program/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"
#include "program/tree.h"

#define PIECE ((size_t)64 << 10)
#define STOP_GRACE_MS 1000 /* less than what the run gives us, also when it is cancelled */
#define STOP_POLL_MS 50
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1u << 2)
#endif
#define DRAIN_MAX                                                                                                      \
    64 /* pieces: more than a pipe holds, so that one who left the group and prints for ever cannot keep us */

int capture_exit_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int capture_next_signal(int signals)
{
    unsigned char byte;

    while (signals >= 0 && read(signals, &byte, 1) == 1)
        if (byte != SIGCHLD)
            return byte;
    return 0;
}

void capture_init(struct capture *c, struct proc *proc, int out, size_t max_output)
{
    *c = (struct capture){.proc = proc,
                          .out = out,
                          .link = -1,
                          .signals = -1,
                          .echo = -1,
                          .max_output = max_output,
                          .output = BUF_INIT(max_output)};
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
}

void capture_done(struct capture *c)
{
    if (c->out >= 0)
        close(c->out);
    c->out = -1;
    buf_done(&c->output);
}

/* Shown as it comes; a reader that is gone does not stop the step. */
static void echo_bytes(struct capture *c, const char *bytes, size_t n)
{
    while (c->echo >= 0 && n > 0) {
        ssize_t sent = write(c->echo, bytes, n);

        if (sent < 0 && errno != EINTR)
            c->echo = -1;
        bytes += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
}

/* False when there is nothing to read now. */
static bool take_bytes(struct capture *c)
{
    char piece[PIECE];
    ssize_t n = c->out >= 0 ? read(c->out, piece, sizeof(piece)) : -1;
    size_t room = c->max_output - c->output.len;

    INVARIANT(c->output.len <= c->max_output);
    if (n > 0) {
        echo_bytes(c, piece, (size_t)n);
        if (c->take)
            c->take(c->arg, piece, (size_t)n);
        else
            buf_add(&c->output, piece, (size_t)n < room ? (size_t)n : room);
        c->bytes += (uint64_t)n;
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        if (c->out >= 0)
            close(c->out);
        c->out = -1;
    }
    return false;
}

struct times {
    int64_t end_at, kill_at; /* 0: not set */
};

static void ask_to_end(struct capture *c, struct times *t, int number, int64_t grace_ms)
{
    proc_signal(c->proc, number);
    proc_signal(c->proc, SIGCONT); /* a stopped one would not receive it */
    t->kill_at = t->kill_at ? t->kill_at : monotonic_ms() + grace_ms;
}

static void on_signal(struct capture *c, struct times *t)
{
    for (int number; (number = capture_next_signal(c->signals));) {
        if (number == SIGUSR1 || number == SIGUSR2) { /* between the person and the program */
            proc_signal(c->proc, number);
            continue;
        }
        c->stop_signal = c->stop_signal ? c->stop_signal : number;
        ask_to_end(c, t, number, STOP_GRACE_MS);
    }
    proc_follow_stop(c->proc);
}

static void on_clock(struct capture *c, struct times *t)
{
    int64_t now = monotonic_ms();

    if (c->stop && !c->stopped && c->stop(c->arg)) {
        c->stopped = true;
        ask_to_end(c, t, SIGTERM, STOP_GRACE_MS);
    }
    if (t->end_at && now >= t->end_at) {
        c->timed_out = true;
        t->end_at = 0;
        ask_to_end(c, t, SIGTERM, PROC_GRACE_MS);
    }
    if (t->kill_at && now >= t->kill_at)
        proc_signal(c->proc, SIGKILL);
}

static int wait_ms(const struct capture *c, const struct times *t)
{
    int64_t longest = c->stop && !c->stopped ? STOP_POLL_MS : 60000;
    int64_t at = t->kill_at && (!t->end_at || t->kill_at < t->end_at) ? t->kill_at : t->end_at;
    int64_t left = at - monotonic_ms();

    if (!at)
        return c->stop && !c->stopped ? (int)longest : -1;
    return left < 0 ? 10 : left > longest ? (int)longest : (int)left;
}

/* By the leader's descriptor: once the leader is reaped and the group empty, its number may be another's. */
static int signal_group(int leader, pid_t group, int number)
{
    int failed = (int)syscall(SYS_pidfd_send_signal, leader, number, NULL, PIDFD_SIGNAL_PROCESS_GROUP);

    return failed && errno != ESRCH ? kill(-group, number) : failed; /* before Linux 6.9 it cannot do that */
}

void capture_run(struct capture *c)
{
    pid_t group = c->proc->pid;
    int leader = fcntl(c->proc->pidfd, F_DUPFD_CLOEXEC, 0);
    struct times t = {.end_at = c->timeout_ms ? monotonic_ms() + c->timeout_ms : 0};

    INVARIANT(group != 1);
    while (c->proc->pid > 0) {
        struct pollfd p[] = {{.fd = proc_wait_fd(c->proc), .events = POLLIN},
                             {.fd = c->out, .events = POLLIN},
                             {.fd = c->link, .events = POLLRDHUP},
                             {.fd = c->signals, .events = POLLIN}};

        if (poll(p, 4, wait_ms(c, &t)) < 0 && errno != EINTR)
            proc_signal(c->proc, SIGKILL);
        if (p[1].revents)
            take_bytes(c);
        if (p[2].revents) { /* nothing comes over the link while the program runs but its end */
            c->broken = true;
            c->link = -1;
            proc_signal(c->proc, SIGKILL);
        }
        if (p[3].revents)
            on_signal(c, &t);
        on_clock(c, &t);
        if (p[0].revents)
            proc_reap(c->proc, &c->status);
    }
    if (signal_group(leader, group, 0) == 0) {
        c->left_behind = tree_group_size(group);
        signal_group(leader, group, SIGKILL);
    }
    if (leader >= 0)
        close(leader);
    for (int i = 0; i < DRAIN_MAX && take_bytes(c); i++)
        ;
    proc_terminal_back(c->proc);
}
