/* SPDX-License-Identifier: Apache-2.0 */
#include "server/program_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "engine/shapes.h"

#define EXIT_NOT_STARTED 127

/* What is asked, for the process: not in its arguments, where others could read it. -1: it cannot be sent. */
static int send_request(const struct program_process *p, int *ret_theirs)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)32 << 20);
    const struct resume_request *ask = p->ask;
    struct json_out o = json_out_to(&text);
    int ends[2], room;

    json_out_begin(&o, '{');
    json_out_kstr_opt(&o, STR("message"), str_from(p->message));
    json_out_kstr_opt(&o, STR("token"), str_from(ask->token));
    if (ask->request) {
        json_out_kstr_opt(&o, STR("by"), str_from(ask->request->by));
        json_out_kstr_opt(&o, STR("request_id"), str_from(ask->request->id));
        json_out_kstr_opt(&o, STR("request_digest"), str_from(ask->request->digest));
    }
    if (ask->input)
        json_out_kraw(&o, STR("input"), str_from(ask->input));
    if (p->program && p->program->set.len)
        json_out_kraw(&o, STR("set"), p->program->set);
    if (p->memory.len)
        json_out_kraw(&o, STR("set"), p->memory);
    json_out_end(&o, '}');
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return -1;
    room = (int)text.len + 65536; /* so that nobody has to wait while nobody reads yet */
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (send(ends[0], text.ptr, text.len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text.len ||
        shutdown(ends[0], SHUT_WR)) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    *ret_theirs = ends[1];
    return ends[0];
}

/* What the process says at its end: a line with the token of its wait, and why it refused what was asked; or neither. */
static enum tide_code read_report(const struct program_process *p, int fd, struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(65536);
    enum tide_code code = TIDE_OK;
    struct str rest;
    char *room;
    ssize_t n;

    while ((room = buf_reserve(&text, 4096)) && (n = recv(fd, room, 4096, MSG_DONTWAIT)) > 0)
        text.len += (size_t)n;
    rest = buf_view(&text);
    if (str_starts(rest, STR("rt_"))) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

        snprintf(p->token, TIDE_TOKEN_SIZE, "%.*s", (int)len, rest.ptr);
        rest = end ? (struct str){end + 1, rest.len - len - 1} : STR("");
    }
    if (rest.len)
        code = error_from_json(rest, err);
    if (text.ptr)
        explicit_bzero(text.ptr, text.cap);
    return code;
}

/*
 * Two descriptors of the process's end of the socket, by which it is asked and gives a token away. They keep the numbers that they have
 * here: any fixed ones may be in use, as by the key of origin.
 */
struct passed {
    int request, token;
    char request_text[16], token_text[16];
};

static bool pass_descriptors(int request, struct passed *ret)
{
    ret->request = request;
    ret->token = fcntl(request, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    snprintf(ret->request_text, sizeof ret->request_text, "%d", ret->request);
    snprintf(ret->token_text, sizeof ret->token_text, "%d", ret->token);
    return ret->token >= 0;
}

/* Only async-signal-safe calls between fork and exec. It is in a session of its own: what ends this server does not reach it. */
static void become_command(const char *const *argv, const char *dir, const struct passed *fds, const sigset_t *mask)
{
    int null = open("/dev/null", O_RDWR);

    sigprocmask(SIG_SETMASK, mask, NULL);
    setsid();
    if (null < 0 || dup2(null, STDIN_FILENO) != STDIN_FILENO || dup2(STDERR_FILENO, STDOUT_FILENO) != STDOUT_FILENO)
        _exit(EXIT_NOT_STARTED);
    if (fcntl(fds->request, F_SETFD, 0) || fcntl(fds->token, F_SETFD, 0))
        _exit(EXIT_NOT_STARTED);
    if (dir && chdir(dir))
        _exit(EXIT_NOT_STARTED);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(EXIT_NOT_STARTED);
}

/* The arguments of a process, ended by NULL. */
struct arguments {
    const char **at;
    size_t n, cap;
};

static void add_argument(struct arguments *a, const char *text)
{
    MEM_ROOM(a->at, a->n, a->cap);
    a->at[a->n++] = text;
}

/* Nothing where there is no value. */
static void add_option(struct arguments *a, const char *option, const char *value)
{
    if (!value)
        return;
    add_argument(a, option);
    add_argument(a, value);
}

static void add_options(struct arguments *a, const char *option, const char *const *values)
{
    for (; values && *values; values++)
        add_option(a, option, *values);
}

static void put_resume(struct arguments *argv, const struct resume_request *ask, const char *id)
{
    add_option(argv, "resume", id);
    if (ask->unattended)
        add_argument(argv, "--unattended");
    if (ask->now)
        add_argument(argv, "--now");
    if (ask->accept_change)
        add_argument(argv, "--accept-change");
    add_option(argv, "--ask-again", ask->ask_again);
    add_options(argv, "--retry", ask->retry);
    add_options(argv, "--happened", ask->happened);
    add_option(argv, "--checkpoint", ask->graph.checkpoint);
}

/* Everything behind "--" is the program's. */
static void put_start(struct arguments *argv, const struct program_order *program, const char *id)
{
    add_option(argv, "exec", "--session");
    add_argument(argv, id);
    add_option(argv, "--env", program->env);
    if (program->anew)
        add_argument(argv, "--new-run");
}

static void make_arguments(const struct program_process *p, const struct passed *fds, struct arguments *ret)
{
    const struct runner_options *opt = p->runner;

    add_argument(ret, "tidemark");
    add_option(ret, "--store", opt->url);
    add_option(ret, "--config", opt->config);
    add_option(ret, "--key-file", opt->key_file);
    if (p->program)
        put_start(ret, p->program, p->session_id);
    else
        put_resume(ret, p->ask, p->session_id);
    add_option(ret, "--token-fd", fds->token_text);
    add_option(ret, "--request-fd", fds->request_text);
    if (p->program)
        add_argument(ret, "--");
    for (const char *const *arg = p->program ? p->program->argv : NULL; arg && *arg; arg++)
        add_argument(ret, *arg);
    add_argument(ret, NULL);
}

static pid_t fork_command(const struct program_process *p, const struct passed *fds)
{
    struct arguments argv = {NULL, 0, 0};
    const char *dir = p->program ? p->program->cwd : NULL;
    sigset_t all, before, none;
    pid_t pid;

    make_arguments(p, fds, &argv);
    sigfillset(&all);
    sigemptyset(&none);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid = fork();
    if (pid == 0)
        become_command(argv.at, dir, fds, &none);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(argv.at);
    return pid;
}

static pid_t start_process(const struct program_process *p, int *ret_request)
{
    struct passed fds = {.token = -1};
    int theirs = -1;
    pid_t pid = -1;

    *ret_request = send_request(p, &theirs);
    if (*ret_request >= 0 && pass_descriptors(theirs, &fds))
        pid = fork_command(p, &fds);
    if (fds.token >= 0)
        close(fds.token);
    if (theirs >= 0)
        close(theirs);
    return pid;
}

/* False: this server stops first. */
static bool await_process(int stop, pid_t pid, int *ret_status)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = stop, .events = POLLIN}};
    bool ended;

    while (!p[0].revents && !p[1].revents && poll(p, 2, fd < 0 ? 100 : -1) < 0 && errno == EINTR)
        ;
    ended = fd < 0 || p[0].revents;
    if (ended)
        while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
            ;
    if (fd >= 0)
        close(fd);
    return ended;
}

static enum tide_code check_dir(const struct program_process *p, struct tide_err *err)
{
    const char *dir = p->program ? p->program->cwd : NULL;

    if (!dir || access(dir, X_OK) == 0)
        return TIDE_OK;
    return tide_fail_file(err, errno, "run the program in", dir);
}

enum tide_code program_process_run(const struct program_process *p, struct tide_err *err)
{
    int request = -1, status = 0;
    enum tide_code code = check_dir(p, err);
    bool ended;
    pid_t pid;

    if (code)
        return code;
    pid = start_process(p, &request);
    if (pid < 0) {
        if (request >= 0)
            close(request);
        return tide_fail(err, TIDE_BUSY, "no process could be started: try again later");
    }
    ended = await_process(p->stop, pid, &status); /* else it continues without us */
    if (ended)
        code = read_report(p, request, err);
    close(request);
    if (code || !ended ||
        (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == tide_code_exit(TIDE_WAITING))))
        return code;
    return tide_fail_session(err, TIDE_FAILED, p->session_id, "its program failed: its status says why");
}
