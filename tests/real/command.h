/* SPDX-License-Identifier: Apache-2.0 */
/* The command itself as a child of a test, and a mark in the environment by which everything it started can be found. */
#ifndef TESTS_REAL_COMMAND_H
#define TESTS_REAL_COMMAND_H

#include <ctype.h>
#include <dirent.h>

#include "proc.h"

#define MARK "TIDE_TEST_MARK" /* in the environment of the command, hence of everything below it */
#define PATIENCE_MS 60000
#define ARGV_MAX 24

/* Puts the directory of $TIDE_BIN at the front of $PATH, so that programs find `tidemark`; false when it is not set. */
UNUSED static bool command_init(void)
{
    const char *binary = getenv("TIDE_BIN"), *path = getenv("PATH");
    const char *slash = binary ? strrchr(binary, '/') : NULL;
    char *all = NULL;

    if (!slash || access(binary, X_OK) != 0)
        return false;
    if (asprintf(&all, "%.*s:%s", (int)(slash - binary), binary, path ? path : "/usr/bin:/bin") < 0)
        return false;
    setenv("PATH", all, 1);
    free(all);
    return true;
}

/* `words` ends with NULL. Output and errors go into the files, made anew. */
UNUSED static pid_t command_start(const char *const *words, const char *out_path, const char *err_path)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nothing stays behind when the test dies */
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        dup2(open(out_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 1);
        dup2(open(err_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 2);
        execv(getenv("TIDE_BIN"), (char *const *)(uintptr_t)words);
        _exit(CHILD_FAILED);
    }
    return pid;
}

UNUSED static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

UNUSED static void short_pause(void)
{
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* Its status as waitpid has it; -1 when it did not end in time, and then it is killed. */
UNUSED static int command_wait(pid_t pid)
{
    int status = -1;
    int64_t end = mono_ms() + PATIENCE_MS;

    while (!has_ended(pid) && mono_ms() < end)
        short_pause();
    if (has_ended(pid))
        return waitpid(pid, &status, 0) == pid ? status : -1;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

/* ---- what lives ---- */

/* Whether NAME=value is in the environment that the process was started with. A zombie has none. */
UNUSED static bool is_marked(pid_t pid, const char *value)
{
    static char text[1 << 17];
    char path[40], want[100];
    size_t len = 0, want_len = (size_t)snprintf(want, sizeof want, MARK "=%s", value) + 1;
    ssize_t n = 1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (n > 0 && len < sizeof text) {
        n = read(fd, text + len, sizeof text - len);
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return memmem(text, len, want, want_len) != NULL;
}

/* A process that has the mark; 0 when there is none. */
UNUSED static pid_t find_marked(const char *value)
{
    DIR *d = opendir("/proc");
    pid_t found = 0;

    for (struct dirent *e; !found && (e = readdir(d));) {
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)strtol(e->d_name, NULL, 10) : 0;

        found = pid && is_marked(pid, value) ? pid : 0;
    }
    closedir(d);
    return found;
}

/* Until nothing with the mark lives; the one that still does after a while, else 0. */
UNUSED static pid_t outlives(const char *value)
{
    int64_t end = mono_ms() + PATIENCE_MS / 2;
    pid_t pid;

    while ((pid = find_marked(value)) && mono_ms() < end)
        short_pause();
    return pid;
}

#endif
