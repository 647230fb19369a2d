/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the demo plays: a temporary directory with the files of an example, a store, and `tidemark` in $PATH. What happens
 * outside the store leaves a line in world.log. The commands that are run there are those that are shown.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tidemark.h>
#include <unistd.h>

#include "demo.h"

static char dir[512], store[600];
static pid_t child; /* 0: none */

/* ---- the place ------------------------------------------------------------------------------------------------------ */

/* $TIDEMARK as a name that every directory can use; NULL: it is not set. */
static char *named_tidemark(void)
{
    const char *name = getenv("TIDEMARK");
    char *path = name && *name ? realpath(name, NULL) : NULL;

    if (name && *name && !path)
        fail("find '%s', which TIDEMARK names: %s", name, strerror(errno));
    return path;
}

void place_make(const char *files)
{
    static const char *path; /* before a place was in it */
    const char *tmp = getenv("TMPDIR");
    char text[4096], state[600], *tidemark = named_tidemark();

    place_remove();
    if (!path)
        path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");

    snprintf(dir, sizeof(dir), "%.400s/tidemark-demo.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        dir[0] = '\0';
        fail("make a directory in '%s': %s", tmp && *tmp ? tmp : "/tmp", strerror(errno));
    }
    snprintf(store, sizeof(store), "%s/demo.db", dir);
    snprintf(text, sizeof(text), "%s/tidemark", dir);
    if (tidemark && symlink(tidemark, text) != 0)
        fail("make '%s': %s", text, strerror(errno));
    if (tidemark)
        snprintf(text, sizeof(text), "%s:%s", dir, path);
    snprintf(state, sizeof(state), "%s/state", dir);
    if ((tidemark && setenv("PATH", text, 1) != 0) || setenv("XDG_STATE_HOME", state, 1) != 0 ||
        setenv("TIDEMARK_STORE", store, 1) != 0 || setenv("TIDEMARK_CONFIG", "/dev/null", 1) != 0 ||
        unsetenv("TIDEMARK_RUN") != 0)
        fail("set the environment: %s", strerror(errno));
    free(tidemark);
    if (child_wait(child_start("command -v tidemark >/dev/null", -1)) != 0)
        fail("there is no tidemark in $PATH; name it: TIDEMARK=build/tidemark");
    snprintf(text, sizeof(text), "cp -R '%s/%s/.' .", EXAMPLES, files);
    if (child_wait(child_start(text, -1)) != 0)
        fail("copy the files of '%s/%s'", EXAMPLES, files);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)!remove(path);
    return 0;
}

void place_remove(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        child_wait(child);
    }
    if (dir[0])
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    dir[0] = '\0';
}

static FILE *open_file(const char *name)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return fopen(path, "re");
}

int place_count(const char *line)
{
    char text[100];
    FILE *f = open_file("world.log");
    int n = 0;

    while (f && fgets(text, sizeof(text), f)) {
        text[strcspn(text, "\n")] = '\0';
        n += strcmp(text, line) == 0;
    }
    if (f)
        fclose(f);
    return n;
}

void place_show(const char *file)
{
    char line[200];
    FILE *f = open_file(file);

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "# ", 2) != 0)
            say(PLAIN, "    %s%.*s%s\n", paint(DIM), (int)strcspn(line, "\n"), line, paint(PLAIN));
    if (f)
        fclose(f);
}

/* ---- a command in it ------------------------------------------------------------------------------------------------ */

pid_t child_start(const char *command, int out_fd)
{
    pid_t parent = getpid();
    int null;

    child = fork();
    if (child < 0)
        fail("start a process: %s", strerror(errno));
    if (child > 0)
        return child;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    out_fd = out_fd < 0 && demo.json ? null : out_fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    if (getppid() == parent && chdir(dir) == 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO &&
        (out_fd < 0 || (dup2(out_fd, STDOUT_FILENO) >= 0 && dup2(out_fd, STDERR_FILENO) >= 0)))
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

int child_wait(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        if (stop_signal)
            kill(pid, SIGTERM);
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int see_running(void *arg, const struct tide_session_info *info)
{
    *(bool *)arg |= info->status == TIDE_STATUS_RUNNING;
    return 0;
}

/* Stopped first: it must not get any further between the look and the kill. */
bool child_kill(pid_t pid)
{
    const struct tide_store_options opt = {.size = sizeof opt, .flags = TIDE_OPEN_READ_ONLY};
    tide_store *s = NULL;
    siginfo_t info = {0};
    bool running = false;

    kill(pid, SIGSTOP);
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0 && errno == EINTR)
        continue;
    if (tide_store_open(store, &opt, &s, NULL) == TIDE_OK &&
        tide_session_list(s, NULL, see_running, &running, NULL) != TIDE_OK)
        running = false;
    tide_store_close(s);
    kill(pid, running ? SIGKILL : SIGCONT);
    return running;
}
