/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard. It is a fork of a process that may have threads, and never executes anything itself: so it makes system calls on
 * memory of its own and no more. It has three descriptors and those of the programs; a process group of its own, so that what
 * is typed at the terminal does not reach it, in the session of the run, so that its programs keep the terminal; and every
 * signal blocked. A request is a file in memory that it maps, with the places of the texts in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/invariant.h"
#include "program/guard_protocol.h"

#define PROGRAMS_MAX 1024 /* at once; the start of one more fails with EAGAIN */
#define END_PAUSE_MS 10   /* between two rounds of killing, at most */

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

/* A run that does not read must not block us: it gets no more of this program then, and takes it for lost. */
static void tell_run(int report, enum guard_word word, int value, int pidfd)
{
    const struct report r = {word, value};

    if (!guard_send(report, &r, sizeof(r), &pidfd, pidfd >= 0, MSG_DONTWAIT))
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
    (void)guard_send(AT_SOCKET, &a, sizeof(a), NULL, 0, MSG_DONTWAIT);
}

/* False: the run has closed its end. */
static bool take_request(void)
{
    int fds[N_FDS];
    struct question q;
    size_t n;
    ssize_t got = guard_receive(AT_SOCKET, &q, sizeof(q), fds, &n, MSG_DONTWAIT);

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

_Noreturn void guard_main(int socket, int owner)
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
