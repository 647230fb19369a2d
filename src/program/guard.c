/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a process: the kernel says "no child is left" (ECHILD) and gives orphans to a subreaper per process, not per run. With
 * the run's own process in that place, two runs of one process could not be told apart, and a run that is killed could not
 * end what its programs had started. The guard can do both, because it is nothing but a parent.
 *
 *   run                                       guard                                   program
 *   guard_start ── request, descriptors ────► fork ─────────────────────────────────► at its gate
 *        ◄──────── started: pid, pidfd ─────┘
 *        ◄──────── stopped, ended ──────────── SIGCHLD                                (a zombie until the run closes `report`)
 *   guard_is_empty ── question, answer ─────► reaps, asks the kernel
 *   guard_end, or the run's process dies ───► kills all, until the kernel says ECHILD, and leaves
 *   guard_leave ────────────────────────────► leaves
 *
 * It is a fork of a process that may have threads, and never executes anything itself: so it makes system calls on memory of
 * its own and no more. It has three descriptors and those of the programs; a process group of its own, so that what is
 * typed at the terminal does not reach it, in the session of the run, so that its programs keep the terminal; and every
 * signal blocked. A request is a file in memory that it maps, with the places of the texts in it.
 */
#include "program/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/buf.h"
#include "program/proc.h"
#include "program/tree.h"

#define PROGRAMS_MAX 1024              /* at once; the start of one more fails with EAGAIN */
#define REQUEST_MAX ((size_t)64 << 20) /* more than the kernel takes as arguments and environment */
#define ANSWER_MS 1000                 /* no answer meanwhile counts as: not empty */
#define END_MS 5000                    /* a process that the kernel does not let go of is left to the guard */
#define END_PAUSE_MS 10                /* between two rounds of killing, at most */

/* What goes over the socket; a start has the descriptors below with it. */
struct question {
    enum { ASK_START, ASK_EMPTY, ASK_LEAVE } what;
    uint32_t number; /* of ASK_EMPTY: the answer has it */
    size_t size;     /* of ASK_START: of the request */
};

struct answer {
    uint32_t number;
    bool empty;
};

enum { FD_REQUEST, FD_REPORT, FD_GATE, FD_FAULT, FD_DIR, FD_IN, FD_OUT, FD_ERR, N_FDS };

struct report {
    enum guard_word word;
    int value;
};

/* At the beginning of a request. Places count from there; 0 is none. Behind it is the table: argv, envp, shell_argv. */
struct request {
    size_t n_table, envp, shell_argv; /* of the last two: where in the table */
    size_t path, cwd, slots[PROC_SLOTS];
    sigset_t mask;
    bool detach;
};

/* One message with its descriptors. False: errno says why. */
static bool send_fds(int socket, const void *bytes, size_t len, const int *fds, size_t n, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
    } control = {.bytes = ""};
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (n) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.align = (struct cmsghdr){CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &m, MSG_NOSIGNAL | flags);

        if (sent >= 0 || errno != EINTR)
            return sent == (ssize_t)len;
    }
}

/* Its length; 0: the other side is gone, negative: errno. *ret_n descriptors are the caller's. */
static ssize_t receive_fds(int socket, void *bytes, size_t len, int fds[N_FDS], size_t *ret_n, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
    } control;
    struct iovec part = {bytes, len};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    const struct cmsghdr *c;
    ssize_t n;

    do {
        n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && errno == EINTR);
    c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    *ret_n = c && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    if (*ret_n)
        memcpy(fds, CMSG_DATA(c), *ret_n * sizeof(int));
    return n;
}

/* ---- in the guard ---- */

enum { AT_SOCKET, AT_OWNER, AT_SIGNALS, N_OWN }; /* its descriptors, and where they are waited for */

struct program {
    pid_t pid;
    int report;
    bool detached; /* it has no terminal: that it stops is nobody's matter */
    bool ended;    /* and said so */
};

/* Of the guard alone: its copy is nobody else's. Memory of its own stays untouched in the run. */
static struct program programs[PROGRAMS_MAX];
static size_t n_programs;

/* A run that does not listen must not hold us: it hears no more of this program then, and takes it for lost. */
static void tell_run(int report, enum guard_word word, int value, int pidfd)
{
    const struct report r = {word, value};

    if (!send_fds(report, &r, sizeof(r), &pidfd, pidfd >= 0, MSG_DONTWAIT))
        shutdown(report, SHUT_RDWR);
}

/* The texts of a request, mapped: places become pointers. */
static void find_texts(struct request *r)
{
    char *base = (char *)r, **table = (char **)(r + 1);

    for (size_t i = 0; i < r->n_table; i++)
        table[i] = table[i] ? base + (uintptr_t)table[i] : NULL;
}

_Noreturn static void be_program(struct request *r, const int *fds, pid_t guard)
{
    char *base = (char *)r, **table = (char **)(r + 1);
    struct proc_spec spec = {.path = base + r->path,
                             .argv = table,
                             .envp = table + r->envp,
                             .cwd = r->cwd ? base + r->cwd : NULL,
                             .out = fds[FD_OUT],
                             .err = fds[FD_ERR],
                             .in = fds[FD_IN]};
    struct proc_birth b = {.spec = &spec,
                           .shell_argv = table + r->shell_argv,
                           .parent = guard,
                           .gate = fds[FD_GATE],
                           .gate_write = -1,
                           .fault = fds[FD_FAULT],
                           .dir = fds[FD_DIR],
                           .detach = r->detach,
                           .mask = r->mask};

    for (size_t i = 0; i < PROC_SLOTS; i++)
        spec.slots[i] = r->slots[i] ? base + r->slots[i] : NULL;
    proc_become(&b);
}

static void start_program(size_t size, const int *fds)
{
    struct request *r = n_programs < PROGRAMS_MAX
                            ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[FD_REQUEST], 0)
                            : MAP_FAILED;
    pid_t guard = getpid(), pid = -1;
    int pidfd;

    if (r != MAP_FAILED) {
        find_texts(r);
        pid = fork();
    }
    if (pid == 0)
        be_program(r, fds, guard);
    if (pid < 0) {
        tell_run(fds[FD_REPORT], GUARD_FAILED, n_programs < PROGRAMS_MAX ? errno : EAGAIN, -1);
        close(fds[FD_REPORT]);
    } else {
        setpgid(pid, pid);
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        tell_run(fds[FD_REPORT], GUARD_STARTED, pid, pidfd);
        if (pidfd >= 0)
            close(pidfd);
        programs[n_programs++] = (struct program){.pid = pid, .report = fds[FD_REPORT], .detached = r->detach};
    }
    if (r != MAP_FAILED)
        munmap(r, size);
    for (int i = 0; i < N_FDS; i++)
        if (i != FD_REPORT)
            close(fds[i]);
}

/* Looks at one program, says how it ended or that it stopped. It is not reaped: the run may still signal its group. */
static void look_at(struct program *p)
{
    int which = WEXITED | WNOHANG | WNOWAIT | (p->detached ? 0 : WSTOPPED);
    siginfo_t info = {0};

    if (p->ended || waitid(P_PID, (id_t)p->pid, &info, which) != 0 || !info.si_pid)
        return;
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
        waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WNOHANG);
        tell_run(p->report, GUARD_STOPPED, 0, -1);
    } else {
        p->ended = true;
        tell_run(p->report, GUARD_ENDED,
                 info.si_code == CLD_EXITED ? info.si_status << 8
                                            : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0),
                 -1);
    }
}

static bool is_program(pid_t pid)
{
    for (size_t i = 0; i < n_programs; i++)
        if (programs[i].pid == pid)
            return true;
    return false;
}

/* Orphans. One that waits behind the zombie of a program waits until the run lets that go: the kernel shows the first. */
static void reap_others(void)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 && !is_program(info.si_pid)) {
        waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}

static void answer_question(uint32_t number)
{
    siginfo_t info;
    struct answer a = {.number = number};

    a.empty = n_programs == 0 && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    (void)send_fds(AT_SOCKET, &a, sizeof(a), NULL, 0, MSG_DONTWAIT);
}

/* False: the run has closed its end. */
static bool take_request(void)
{
    int fds[N_FDS];
    struct question q;
    size_t n;
    ssize_t got = receive_fds(AT_SOCKET, &q, sizeof(q), fds, &n, MSG_DONTWAIT);

    if (got != (ssize_t)sizeof(q))
        return got < 0 && errno == EAGAIN;
    if (q.what == ASK_EMPTY)
        answer_question(q.number);
    else if (q.what == ASK_LEAVE)
        _exit(0);
    else if (n == N_FDS)
        start_program(q.size, fds);
    else /* the limit of descriptors cut them: the run sees its report end */
        for (size_t i = 0; i < n; i++)
            close(fds[i]);
    return true;
}

static void drain_signals(void)
{
    struct signalfd_siginfo info;

    while (read(AT_SIGNALS, &info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
}

/* The direct ones: what these leave behind is direct then. Also where the kernel shows no children: the programs' groups. */
static void kill_children(void)
{
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char bytes[4096];
    pid_t pid = 0;
    ssize_t n;

    for (size_t i = 0; i < n_programs; i++)
        kill(-programs[i].pid, SIGKILL);
    n_programs = 0;
    while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                pid = pid * 10 + (bytes[i] - '0');
            } else if (pid > 0) {
                kill(pid, SIGKILL);
                pid = 0;
            }
        }
    if (fd >= 0)
        close(fd);
}

_Noreturn static void end_all(void)
{
    for (;;) {
        struct pollfd p = {.fd = AT_SIGNALS, .events = POLLIN};
        pid_t got;

        kill_children();
        while ((got = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (got < 0 && errno == ECHILD)
            _exit(0);
        poll(&p, 1, END_PAUSE_MS);
        drain_signals();
    }
}

/* Those whose report the run has closed are like any other child from now on. */
static void let_go(const struct pollfd *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < n_programs; i++) {
        if (p[i].revents)
            close(programs[i].report);
        else
            programs[kept++] = programs[i];
    }
    n_programs = kept;
}

/* The socket is looked at before the reports and served after them: what was closed before a question is seen with it. */
_Noreturn static void watch(void)
{
    static struct pollfd p[N_OWN + PROGRAMS_MAX];

    for (;;) {
        for (size_t i = 0; i < N_OWN; i++)
            p[i] = (struct pollfd){.fd = (int)i, .events = POLLIN};
        for (size_t i = 0; i < n_programs; i++)
            p[N_OWN + i] = (struct pollfd){.fd = programs[i].report};
        if (poll(p, N_OWN + n_programs, -1) < 0)
            continue;
        if (p[AT_OWNER].revents)
            end_all();
        drain_signals();
        let_go(p + N_OWN);
        for (size_t i = 0; i < n_programs; i++)
            look_at(&programs[i]);
        reap_others();
        if (p[AT_SOCKET].revents && !take_request())
            end_all();
    }
}

/* Out of the way of 0 to 2, to which they are moved then. */
static int lift_fd(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 2 * N_OWN);
}

_Noreturn static void guard_main(int socket, int owner)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t child;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &usual, NULL); /* ignored, it would take the exit statuses away */
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "tidemark-guard");
    socket = lift_fd(socket);
    owner = lift_fd(owner);
    if (dup2(socket, AT_SOCKET) < 0 || dup2(owner, AT_OWNER) < 0)
        _exit(1);
    close(AT_SIGNALS);
    if (signalfd(-1, &child, SFD_NONBLOCK) != AT_SIGNALS)
        _exit(1);
    if (syscall(SYS_close_range, N_OWN, ~0u, 0) != 0)
        for (int fd = N_OWN; fd < sysconf(_SC_OPEN_MAX); fd++)
            close(fd);
    watch();
}

/* ---- in the run ---- */

/* Signals are blocked, by whoever holds the lock of births. 0, or an errno. */
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
    for (size_t at = 0; fd >= 0 && at < out.len;) {
        ssize_t n = write(fd, out.ptr + at, out.len - at);

        at += n > 0 ? (size_t)n : 0;
        if (n < 0 && errno != EINTR)
            shut_fd(&fd);
    }
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

    if (request < 0 || !send_fds(g->socket, &q, sizeof(q), fds, N_FDS, 0))
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
    ssize_t got = receive_fds(report, &r, sizeof(r), fds, &n, wait ? 0 : MSG_DONTWAIT);

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
        a.empty = send_fds(g->socket, &q, sizeof(q), NULL, 0, 0) && hear_answer(g, &a) && a.empty;
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
        (void)send_fds(g->socket, &leave, sizeof(leave), NULL, 0, 0);
        wait_for_end(g);
    }
    pthread_mutex_unlock(&g->lock);
}
