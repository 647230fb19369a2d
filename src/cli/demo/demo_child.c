/* SPDX-License-Identifier: Apache-2.0 */
/* Starting this same program again in the demo's place, its output on a pipe. It dies with its parent. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/demo.h"

#define CHILD_ARGS 16

static void become(const struct demo_place *place, const char *const *args, int write_fd, pid_t parent)
{
    const char *argv[CHILD_ARGS + 4] = {"tidemark", "--store", place->store};
    int null = open("/dev/null", O_RDONLY);

    for (size_t i = 0; i < CHILD_ARGS && args[i]; i++)
        argv[i + 3] = args[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && chdir(place->dir) == 0 && setenv("PATH", place->path, 1) == 0 &&
        unsetenv("TIDEMARK_RUN") == 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO &&
        dup2(write_fd, STDOUT_FILENO) == STDOUT_FILENO && dup2(write_fd, STDERR_FILENO) == STDERR_FILENO)
        execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

enum tide_code demo_spawn(const struct demo_place *place, const char *const *args, struct demo_child *ret_child,
                          struct tide_err *err)
{
    int pipe_fds[2];
    pid_t parent = getpid(), pid;

    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return tide_fail_errno(err, errno, "make a pipe");
    pid = fork();
    if (pid == 0)
        become(place, args, pipe_fds[1], parent);
    close(pipe_fds[1]);
    if (pid < 0) {
        close(pipe_fds[0]);
        return tide_fail_errno(err, errno, "start a process");
    }
    *ret_child = (struct demo_child){.pid = pid, .fd = pipe_fds[0]};
    return TIDE_OK;
}

static int see_running(void *arg, const struct tide_session_info *info)
{
    *(bool *)arg |= strcmp(info->status, "running") == 0;
    return 0;
}

static bool is_running(const struct demo_place *place)
{
    const struct tide_store_options opt = {.flags = TIDE_OPEN_READ_ONLY};
    tide_store *store = NULL;
    bool running = false;

    if (tide_store_open(place->store, &opt, &store, NULL) == TIDE_OK &&
        tide_session_list(store, NULL, see_running, &running, NULL) != TIDE_OK)
        running = false;
    tide_store_close(store);
    return running;
}

/* Stopped first: it must not get any further between the look and the kill. */
bool demo_kill(const struct demo_place *place, pid_t pid)
{
    siginfo_t info = {0};
    bool running;

    kill(pid, SIGSTOP);
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR)
        continue;
    running = is_running(place);
    kill(pid, running ? SIGKILL : SIGCONT);
    return running;
}

int demo_reap(struct demo_child *child)
{
    char rest[4096];
    ssize_t n = 1;
    int status = 0;

    if (child->pid <= 0)
        return 0;
    while (n > 0 || (n < 0 && errno == EINTR)) /* until everything that it started has ended as well */
        n = read(child->fd, rest, sizeof(rest));
    close(child->fd);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    return status;
}
