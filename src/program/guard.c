/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a process: the kernel says "no child is left" (ECHILD) and gives orphans to a subreaper per process, not per run. With
 * the run's own process in that place, two runs of one process could not be distinguished, and a run that is killed
 * could not end what its programs had started. The guard can do both, because it is nothing but a parent.
 *
 *   run                                       guard                                   program
 *   guard_start ── request, descriptors ────► fork ─────────────────────────────────► at its gate
 *        ◄──────── started: pid, pidfd ─────┘
 *        ◄──────── stopped, ended ──────────── SIGCHLD                                (a zombie until the run closes `report`)
 *   guard_is_empty ── question, answer ─────► reaps, asks the kernel
 *   guard_end, or the run's process dies ───► kills all, until the kernel says ECHILD, and leaves
 *   guard_leave ────────────────────────────► leaves
 */
#include "program/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/invariant.h"
#include "program/guard_protocol.h"
#include "program/tree.h"

#define ANSWER_MS 1000 /* no answer meanwhile counts as: not empty */
#define END_MS 5000    /* a process that the kernel does not end is left to the guard */

/* Signals are blocked, by the thread that holds the lock of births. 0, or an errno. */
static int make_guard(struct guard *g)
{
    int pair[2], owner = (int)syscall(SYS_pidfd_open, getpid(), 0), errnum = errno;

    INVARIANT(!g->pid && g->socket < 0 && g->pidfd < 0);
    if (owner < 0)
        return errnum;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        errnum = errno;
        close(owner);
        return errnum;
    }
    g->pid = fork();
    if (g->pid == 0)
        guard_main(pair[1], owner);
    errnum = errno;
    close(pair[1]);
    close(owner);
    g->pidfd = g->pid > 0 ? (int)syscall(SYS_pidfd_open, g->pid, 0) : -1;
    if (g->pid > 0) {
        g->socket = pair[0];
        return 0;
    }
    g->pid = 0;
    close(pair[0]);
    return errnum;
}

static size_t add_text(struct buf *out, const char *text)
{
    size_t at = out->len;

    buf_add(out, text, strlen(text) + 1);
    return at;
}

static size_t count_texts(char *const *texts)
{
    size_t n = 0;

    while (texts[n])
        n++;
    return n;
}

/* Their places into the table, from `at`; where the list behind them begins. */
static size_t add_texts(struct buf *out, uintptr_t *table, size_t at, char *const *texts, const struct proc_spec *spec,
                        struct request *r)
{
    static const char room[PROC_MESSAGE_MAX];

    for (; *texts; texts++, at++) {
        const char *end = *texts + strlen(*texts);

        table[at] = add_text(out, *texts);
        for (size_t i = 0; i < PROC_SLOTS; i++)
            if (spec->slots[i] == end) { /* the gate's message goes there */
                r->slots[i] = out->len - 1;
                buf_add(out, room, sizeof(room));
            }
    }
    return at + 1;
}

/* A file in memory with the request; its size. Negative: errno. */
static int write_request(const struct proc_birth *b, size_t *ret_size)
{
    const struct proc_spec *s = b->spec;
    struct request r = {.mask = b->mask, .detach = b->detach};
    AUTO(buf_done) struct buf out = BUF_INIT(REQUEST_MAX);
    AUTO(mem_freep) uintptr_t *table = NULL;
    size_t end;
    int fd;

    r.n_table = count_texts(s->argv) + count_texts(s->envp) + count_texts(b->shell_argv) + 3;
    table = mem_array(r.n_table, sizeof(*table));
    memset(table, 0, r.n_table * sizeof(*table));
    buf_add(&out, &r, sizeof(r));
    buf_add(&out, table, r.n_table * sizeof(*table));
    r.path = add_text(&out, s->path);
    r.cwd = s->cwd ? add_text(&out, s->cwd) : 0;
    r.envp = add_texts(&out, table, 0, s->argv, s, &r);
    r.shell_argv = add_texts(&out, table, r.envp, s->envp, s, &r);
    end = add_texts(&out, table, r.shell_argv, b->shell_argv, s, &r);
    INVARIANT(end == r.n_table);
    for (size_t i = 0; i < PROC_SLOTS; i++)
        INVARIANT(!s->slots[i] == !r.slots[i]); /* each is the end of one of the texts */
    if (out.failed) {
        errno = E2BIG;
        return -1;
    }
    memcpy(out.ptr, &r, sizeof(r));
    memcpy(out.ptr + sizeof(r), table, r.n_table * sizeof(*table));
    fd = memfd_create("program", MFD_CLOEXEC);
    if (fd >= 0 && fd_write(fd, buf_view(&out)))
        shut_fd(&fd);
    *ret_size = out.len;
    return fd;
}

/* What becomes its standard input, output and error: those that are given, else ours, and what we have not is empty. */
static int standard_fd(int given, int ours, int null)
{
    int fd = given >= 0 ? given : ours;

    return fcntl(fd, F_GETFD) >= 0 ? fd : null;
}

/* 0, or an errno; EPIPE: there is no guard behind the socket. */
static int send_request(const struct guard *g, const struct proc_birth *b, int report)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), errnum = 0;
    struct question q = {0};
    int request = write_request(b, &q.size);
    int fds[N_FDS] = {
        [FD_REQUEST] = request,
        [FD_REPORT] = report,
        [FD_GATE] = b->gate,
        [FD_FAULT] = b->fault,
        [FD_DIR] = dir,
        [FD_IN] = standard_fd(b->spec->in > 0 ? b->spec->in : -1, STDIN_FILENO, null),
        [FD_OUT] = standard_fd(b->spec->out, STDOUT_FILENO, null),
        [FD_ERR] = standard_fd(b->spec->err, STDERR_FILENO, null),
    };

    if (request < 0 || !guard_send(g->socket, &q, sizeof(q), fds, N_FDS, 0))
        errnum = errno;
    shut_fd(&request);
    shut_fd(&dir);
    shut_fd(&null);
    return errnum;
}

/* Somebody killed it. What it had below it can be anywhere now. */
static void forget_guard(struct guard *g)
{
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    shut_fd(&g->socket);
    shut_fd(&g->pidfd);
    g->pid = 0;
    g->lost = true;
}

int guard_start(struct guard *g, const struct proc_birth *b, int *ret_report)
{
    int pair[2], errnum;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return errno;
    pthread_mutex_lock(&g->lock);
    errnum = g->pid ? 0 : make_guard(g);
    errnum = errnum ? errnum : send_request(g, b, pair[1]);
    if (errnum == EPIPE || errnum == ECONNRESET) {
        forget_guard(g);
        errnum = make_guard(g);
        errnum = errnum ? errnum : send_request(g, b, pair[1]);
    }
    pthread_mutex_unlock(&g->lock);
    close(pair[1]);
    if (errnum)
        close(pair[0]);
    else
        *ret_report = pair[0];
    return errnum;
}

enum guard_word guard_hear(int report, bool wait, int *ret_value, int *ret_pidfd)
{
    int fds[N_FDS];
    struct report r;
    size_t n;
    ssize_t got = guard_receive(report, &r, sizeof(r), fds, &n, wait ? 0 : MSG_DONTWAIT);

    if (got < 0 && errno == EAGAIN)
        return GUARD_SILENT;
    if (got != (ssize_t)sizeof(r))
        return GUARD_GONE;
    *ret_value = r.value;
    *ret_pidfd = n ? fds[0] : -1;
    return r.word;
}

/* The answer to this question: older ones came too late. False: none in time, or nobody to give it. */
static bool hear_answer(const struct guard *g, struct answer *ret)
{
    for (struct pollfd p = {.fd = g->socket, .events = POLLIN}; poll(&p, 1, ANSWER_MS) > 0;) {
        if (recv(g->socket, ret, sizeof(*ret), MSG_DONTWAIT) != (ssize_t)sizeof(*ret))
            return false;
        if (ret->number == g->asked)
            return true;
    }
    return false;
}

bool guard_is_empty(struct guard *g)
{
    struct question q = {.what = ASK_EMPTY};
    struct answer a = {.empty = true};
    struct pollfd p;

    pthread_mutex_lock(&g->lock);
    if (g->pid) {
        q.number = g->asked = g->asked + 1 ? g->asked + 1 : 1;
        a.empty = guard_send(g->socket, &q, sizeof(q), NULL, 0, 0) && hear_answer(g, &a) && a.empty;
        p = (struct pollfd){.fd = g->socket};
        if (!a.empty && poll(&p, 1, 0) > 0 && (p.revents & POLLHUP)) {
            forget_guard(g);
            a.empty = true;
        }
    }
    pthread_mutex_unlock(&g->lock);
    return a.empty;
}

size_t guard_signal(struct guard *g, int number)
{
    size_t n;

    pthread_mutex_lock(&g->lock);
    n = g->pid ? tree_signal(g->pid, number) : 0;
    pthread_mutex_unlock(&g->lock);
    return n;
}

static void wait_for_end(struct guard *g)
{
    struct pollfd p = {.fd = g->pidfd, .events = POLLIN};

    INVARIANT(g->pid > 1 && g->socket >= 0);
    shutdown(g->socket, SHUT_RDWR); /* a fork of ours may have a copy of it */
    shut_fd(&g->socket);
    kill(g->pid, SIGCONT); /* stopped, it would not see that */
    if (g->pidfd < 0 || poll(&p, 1, END_MS) > 0)
        while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    shut_fd(&g->pidfd);
    g->pid = 0;
}

void guard_end(struct guard *g)
{
    pthread_mutex_lock(&g->lock);
    if (g->pid)
        wait_for_end(g);
    pthread_mutex_unlock(&g->lock);
}

void guard_leave(struct guard *g)
{
    static const struct question leave = {.what = ASK_LEAVE};

    pthread_mutex_lock(&g->lock);
    if (g->pid) {
        (void)guard_send(g->socket, &leave, sizeof(leave), NULL, 0, 0);
        wait_for_end(g);
    }
    pthread_mutex_unlock(&g->lock);
}
