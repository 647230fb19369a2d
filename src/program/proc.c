/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes at a gate. The child does only what is safe between fork and exec: system calls on memory that was made ready
 * before. It is put into its own group from both sides, so that neither can be ahead of the other.
 *
 * The gate is a socket, because nobody dies of a signal when it writes to one whose other end is gone: one write of messages
 * lets the child run, its end without one makes it leave. The fault pipe is closed by a successful exec, else it holds the errno.
 */
#include "program/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/invariant.h"
#include "env/proc_stat.h"
#include "program/guard.h"

#define STATUS_LOST (255 << 8) /* somebody else in our process has taken it: nobody knows, so it counts as failed */
#define SHELL "/bin/sh"        /* runs files that are executable and name no interpreter, as execvp does */

/* ---- in the child ---- */

_Noreturn static void fault(const struct proc_birth *b, int errnum)
{
    ssize_t n = write(b->fault, &errnum, sizeof(errnum));

    _exit(n == (ssize_t)sizeof(errnum) ? 127 : 126);
}

/* One text for each slot, each with its NUL. */
#define GATE_BYTES ((size_t)PROC_SLOTS * PROC_MESSAGE_MAX)

/* Waits for the messages; leaves when none come. */
static void wait_at_gate(const struct proc_birth *b)
{
    char bytes[GATE_BYTES];
    const char *text = bytes;
    ssize_t n;

    do {
        n = read(b->gate, bytes, sizeof(bytes));
    } while (n < 0 && errno == EINTR);
    if (n < 1)
        _exit(0);
    for (size_t i = 0; i < PROC_SLOTS; i++) {
        if (b->spec->slots[i])
            memcpy(b->spec->slots[i], text, strlen(text) + 1);
        text += strlen(text) + 1;
    }
}

/*
 * What we ignore for ourselves it must not: a pipeline depends on being ended by SIGPIPE. What we catch it must not either,
 * while it waits at the gate: our handlers speak to us. What was ignored before us stays so.
 */
static void set_child_signals(const struct proc_birth *b)
{
    static const int ignored[] = {SIGPIPE, SIGXFSZ, SIGTTOU},
                     caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    struct sigaction now;

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_DFL);
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        if (sigaction(caught[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            signal(caught[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &b->mask, NULL);
}

/* Without its terminal a program that wants to ask there fails at once; with it, it would be stopped for ever. */
static void leave_terminal(void)
{
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

    if (terminal >= 0) {
        ioctl(terminal, TIOCNOTTY);
        close(terminal);
    }
}

_Noreturn void proc_become(const struct proc_birth *b)
{
    const struct proc_spec *s = b->spec;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != b->parent)
        _exit(126);
    set_child_signals(b);
    if (b->gate_write >= 0)
        close(b->gate_write); /* else it would hold its own gate open */
    wait_at_gate(b);
    if (b->detach)
        leave_terminal();
    if ((s->out >= 0 && dup2(s->out, STDOUT_FILENO) < 0) || (s->err >= 0 && dup2(s->err, STDERR_FILENO) < 0) ||
        (s->in > 0 && dup2(s->in, STDIN_FILENO) < 0) || (b->dir >= 0 && fchdir(b->dir) != 0) ||
        (s->cwd && chdir(s->cwd) != 0))
        fault(b, errno);
    execve(s->path, s->argv, s->envp);
    if (errno == ENOEXEC)
        execve(SHELL, b->shell_argv, s->envp);
    fault(b, errno);
}

/* ---- starting ---- */

static char **shell_argv(const struct proc_spec *spec)
{
    size_t n = 0;
    char **argv;

    while (spec->argv[n])
        n++;
    argv = mem_array(n + 3, sizeof(char *));
    argv[0] = (char *)(uintptr_t)SHELL;
    argv[1] = (char *)(uintptr_t)spec->path;
    for (size_t i = 1; i < n; i++)
        argv[i + 1] = spec->argv[i];
    return argv;
}

/* Our child is put into its group, and watched; of a guard's child it has done both. */
static enum tide_code watch_birth(struct proc *p, struct tide_err *err)
{
    if (p->report < 0) {
        setpgid(p->pid, p->pid);
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    } else {
        switch (guard_hear(p->report, true, &p->pid, &p->pidfd)) {
        case GUARD_STARTED:
            break;
        case GUARD_FAILED:
            tide_fail_errno(err, p->pid, "start a process"); /* it stands where the pid would */
            p->pid = 0;
            proc_drop(p);
            return err->code;
        default:
            p->pid = 0;
            proc_drop(p);
            return tide_fail(err, TIDE_FAILED, "start a process: the guard of the run is gone");
        }
    }
    p->start = proc_start_time(p->pid);
    if (p->pidfd >= 0)
        return TIDE_OK;
    tide_fail_errno(err, errno, "watch process %d", (int)p->pid);
    proc_drop(p);
    return err->code;
}

/* Around a birth: a child of another thread, held at its gate, would have the fault pipe open, and we wait for its end. */
static pthread_mutex_t births = PTHREAD_MUTEX_INITIALIZER;

enum tide_code proc_hold(const struct proc_spec *spec, struct proc *ret_proc, struct tide_err *err)
{
    AUTO(mem_freep) char **argv = shell_argv(spec);
    struct proc_birth b = {.spec = spec, .shell_argv = argv, .parent = getpid(), .dir = -1, .detach = spec->in > 0};
    struct proc p = PROC_INIT;
    int gate[2] = {-1, -1}, fault_pipe[2] = {-1, -1}, errnum;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &b.mask); /* none of our handlers may run in the child */
    pthread_mutex_lock(&births);
    errnum =
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) == 0 && pipe2(fault_pipe, O_CLOEXEC) == 0 ? 0 : errno;
    b.gate = gate[0];
    b.gate_write = gate[1];
    b.fault = fault_pipe[1];
    if (!errnum && spec->guard) {
        errnum = guard_start(spec->guard, &b, &p.report);
    } else if (!errnum) {
        p.pid = fork();
        if (p.pid == 0)
            proc_become(&b);
        errnum = p.pid < 0 ? errno : 0;
    }
    shut_fd(&gate[0]);
    shut_fd(&fault_pipe[1]);
    pthread_mutex_unlock(&births);
    pthread_sigmask(SIG_SETMASK, &b.mask, NULL);
    p.gate = gate[1];
    p.fault = fault_pipe[0];
    if (errnum) {
        p.pid = 0;
        proc_drop(&p);
        return tide_fail_errno(err, errnum, "start a process");
    }
    if (watch_birth(&p, err))
        return err->code;
    *ret_proc = p;
    return TIDE_OK;
}

enum tide_code proc_hold_piped(struct proc_spec *spec, struct proc *ret_proc, int *ret_out, int *ret_err,
                               struct tide_err *err)
{
    int out[2] = {-1, -1}, complaints[2] = {-1, -1};
    enum tide_code code = TIDE_OK;

    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(complaints, O_CLOEXEC) != 0)
        code = tide_fail_errno(err, errno, "make a pipe");
    spec->out = out[1];
    spec->err = complaints[1];
    code = code ? code : proc_hold(spec, ret_proc, err);
    *ret_out = out[0];
    *ret_err = complaints[0];
    shut_fd(&out[1]);
    shut_fd(&complaints[1]);
    return code;
}

enum tide_code proc_input(struct str bytes, struct str end, int *ret_fd, struct tide_err *err)
{
    int fd = *ret_fd = memfd_create("input", MFD_CLOEXEC), bad = fd < 0 ? errno : fd_write(fd, bytes);

    bad = bad ? bad : fd_write(fd, end);
    if (!bad && lseek(fd, 0, SEEK_SET) != 0)
        bad = errno;
    return bad ? tide_fail_errno(err, bad, "make its input ready") : TIDE_OK;
}

/* Nobody can signal it any more: its number may be another's. */
static void forget_proc(struct proc *p)
{
    p->pid = 0;
    p->stopped = false;
    shut_fd(&p->pidfd);
    if (p->report >= 0)
        shutdown(p->report, SHUT_RDWR); /* a fork of ours may have a copy of it */
    shut_fd(&p->report);
}

/* What its guard has to say. True: it has ended. A guard that is gone took it along. */
static bool hear_end(struct proc *p, bool wait, int *ret_status)
{
    int none;

    for (;;)
        switch (guard_hear(p->report, wait, ret_status, &none)) {
        case GUARD_SILENT:
            return false;
        case GUARD_STOPPED:
            p->stopped = true;
            break;
        case GUARD_GONE:
            *ret_status = SIGKILL;
            return true;
        default:
            return true;
        }
}

static int wait_for(struct proc *p)
{
    int status = 0;

    if (p->pid > 0 && p->report >= 0)
        (void)hear_end(p, true, &status);
    else
        while (p->pid > 0 && waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
            ;
    forget_proc(p);
    return status;
}

enum tide_code proc_open(struct proc *p, const char *const *messages, struct tide_err *err)
{
    char bytes[GATE_BYTES];
    size_t len = 0;

    INVARIANT(p->pid > 1 && p->gate >= 0); /* it is held, and released once */
    for (size_t i = 0; i < PROC_SLOTS; i++) {
        const char *text = messages && messages[i] ? messages[i] : "";

        if (strlen(text) >= PROC_MESSAGE_MAX)
            return tide_fail(err, TIDE_INVALID, "a message of %zu bytes does not fit the gate", strlen(text));
        memcpy(bytes + len, text, strlen(text) + 1);
        len += strlen(text) + 1;
    }
    if (send(p->gate, bytes, len, MSG_NOSIGNAL) == (ssize_t)len) {
        shut_fd(&p->gate);
        return TIDE_OK;
    }
    tide_fail_errno(err, errno, "cannot be started"); /* it was killed while it waited */
    proc_drop(p);
    return err->code;
}

enum tide_code proc_started(struct proc *p, struct tide_err *err)
{
    int errnum = 0;
    ssize_t n;

    INVARIANT(p->fault >= 0 && p->gate < 0); /* behind a gate that is closed nobody would ever answer */
    do {
        n = read(p->fault, &errnum, sizeof(errnum));
    } while (n < 0 && errno == EINTR);
    shut_fd(&p->fault);
    if (n == 0)
        return TIDE_OK;
    proc_terminal_back(p);
    wait_for(p);
    return tide_fail_errno(err, n == (ssize_t)sizeof(errnum) ? errnum : EPIPE, "cannot be started");
}

enum tide_code proc_go(struct proc *p, const char *const *messages, struct tide_err *err)
{
    enum tide_code code = proc_open(p, messages, err);

    return code ? code : proc_started(p, err);
}

void proc_drop(struct proc *p)
{
    shut_fd(&p->gate);
    shut_fd(&p->fault);
    if (p->pid > 0) {
        proc_signal(p, SIGKILL);
        wait_for(p);
    }
    forget_proc(p);
    proc_terminal_back(p);
}

void proc_signal(const struct proc *p, int number)
{
    struct pollfd report = {.fd = p->report};

    INVARIANT(p->pid != 1); /* kill(-1) is a signal to everybody */
    if (p->pid <= 0 || (poll(&report, 1, 0) > 0 && (report.revents & POLLHUP)))
        return; /* its guard is gone: then it is dead, reaped, and its number may be another's */
    kill(-p->pid, number);
}

int proc_wait_fd(const struct proc *p)
{
    return p->report >= 0 ? p->report : p->pidfd;
}

bool proc_reap(struct proc *p, int *ret_status)
{
    int status = STATUS_LOST;
    pid_t got;

    if (p->pid <= 0)
        return false;
    if (p->report >= 0) {
        if (!hear_end(p, false, &status))
            return false;
    } else {
        got = waitpid(p->pid, &status, WNOHANG);
        if (got == 0 || (got < 0 && errno != ECHILD))
            return false;
    }
    forget_proc(p);
    *ret_status = status;
    return true;
}

/* ---- the terminal ---- */

/* From the background, moving a terminal would stop us. It may have gone away: then nobody needs it. */
static void set_foreground(int terminal, pid_t group)
{
    sigset_t stop, before;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stop, &before);
    (void)!tcsetpgrp(terminal, group);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void proc_terminal_give(struct proc *p)
{
    if (p->pid <= 0 || !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp())
        return;
    p->terminal = STDIN_FILENO;
    set_foreground(p->terminal, p->pid);
}

void proc_terminal_back(struct proc *p)
{
    if (p->terminal >= 0)
        set_foreground(p->terminal, getpgrp());
    p->terminal = -1;
}

void proc_follow_stop(struct proc *p)
{
    siginfo_t info = {0};

    if (p->pid > 0 && p->report < 0 && waitid(P_PID, (id_t)p->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid)
        p->stopped = true;
    if (p->pid <= 0 || p->terminal < 0 || !p->stopped)
        return;
    p->stopped = false;
    proc_terminal_back(p);
    kill(0, SIGTSTP); /* all of our job; where there is no job control it does nothing */
    proc_terminal_give(p);
    proc_signal(p, SIGCONT);
}

/* ---- what is known of a process ---- */

uint64_t proc_start_time(pid_t pid)
{
    struct proc_stat p;

    return proc_stat_read(pid, &p) ? p.start_time : 0;
}

static bool replaced(const char *entry, char *const *sets)
{
    for (; *sets; sets++) {
        size_t n = strcspn(*sets, "=");

        if (strncmp(*sets, entry, n) == 0 && entry[n] == '=')
            return true;
    }
    return false;
}

char **proc_env(struct arena *a, char *const *base, char *const *sets)
{
    size_t n = 0, n_sets = 0, at = 0;
    char **envp;

    while (base[n])
        n++;
    while (sets[n_sets])
        n_sets++;
    envp = arena_alloc(a, (n + n_sets + 1) * sizeof(*envp));
    for (size_t i = 0; i < n; i++)
        if (!replaced(base[i], sets))
            envp[at++] = base[i];
    for (size_t i = 0; i < n_sets; i++)
        envp[at++] = sets[i];
    envp[at] = NULL;
    return envp;
}
