/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes below another, found through /proc/PID/task/TID/children. A walk is not atomic: it misses who was forked
 * meanwhile, and who was given to another meanwhile because a process that we had already listed died. So it does for signals
 * and for counting; that nothing is left, only the kernel can say.
 */
#include "program/tree.h"

#include "base/buf.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "env/proc_stat.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 64     /* deeper ones are found when those above them are gone */
#define EXEC_LOOKS 100   /* at a process in the middle of an exec, */
#define EXEC_SURE 5      /* looks that must agree that there is none */
#define EXEC_LOOK_US 200 /* with such pauses: it takes as long as reading the program does */

/* A whole small file, NUL-terminated; the caller frees it. NULL when it cannot be read. *ret_len may be NULL. */
static char *read_whole(const char *path, size_t *ret_len)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);

    if (buf_read_file(&text, path))
        return NULL;
    if (ret_len)
        *ret_len = text.len;
    return buf_take(&text);
}

static bool is_living(pid_t pid, struct proc_stat *ret)
{
    return proc_stat_read(pid, ret) && proc_stat_lives(ret);
}

struct walk {
    pid_t root;
    int number;
};

static size_t walk_children(const struct walk *w, pid_t pid, int depth);

/* By a descriptor that was opened before the look: the process that reaps the process meanwhile makes its number another's. */
static size_t visit_process(const struct walk *w, pid_t above, pid_t pid, int depth)
{
    int fd = w->number ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct proc_stat p;
    bool living = is_living(pid, &p);
    size_t n = walk_children(w, pid, depth + 1);

    if (living && fd >= 0 && (p.parent == above || p.parent == w->root))
        syscall(SYS_pidfd_send_signal, fd, w->number, NULL, 0);
    if (fd >= 0)
        close(fd);
    return n + living;
}

static size_t walk_thread(const struct walk *w, pid_t above, const char *tid, int depth)
{
    char path[64], *text, *at, *end;
    size_t n = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%.12s/children", (int)above, tid);
    text = read_whole(path, NULL);
    for (at = text; at && *at; at = end) {
        long pid = strtol(at, &end, 10);

        if (end == at)
            break;
        n += visit_process(w, above, (pid_t)pid, depth);
        end += *end == ' ';
    }
    free(text);
    return n;
}

static size_t walk_children(const struct walk *w, pid_t pid, int depth)
{
    char dir[40];
    struct dirent *entry;
    size_t n = 0;
    DIR *d;

    snprintf(dir, sizeof(dir), "/proc/%d/task", (int)pid);
    d = depth < DEPTH_MAX ? opendir(dir) : NULL;
    while (d && (entry = readdir(d)))
        if (isdigit((unsigned char)entry->d_name[0]))
            n += walk_thread(w, pid, entry->d_name, depth);
    if (d)
        closedir(d);
    return n;
}

size_t tree_signal(pid_t root, int number)
{
    const struct walk w = {root, number};

    INVARIANT(root > 1);
    return walk_children(&w, root, 0);
}

bool tree_is_empty(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

typedef bool process_fn(void *arg, pid_t pid);

/* Hands every process that lives to `fn`; how many times that was true. */
static size_t each_process(process_fn *fn, void *arg)
{
    struct dirent *entry;
    size_t n = 0;
    DIR *d = opendir("/proc");

    while (d && (entry = readdir(d)))
        if (isdigit((unsigned char)entry->d_name[0]))
            n += fn(arg, (pid_t)strtol(entry->d_name, NULL, 10));
    if (d)
        closedir(d);
    return n;
}

static bool is_in_group(void *arg, pid_t pid)
{
    struct proc_stat p;

    return is_living(pid, &p) && p.group == *(const pid_t *)arg;
}

size_t tree_group_size(pid_t group)
{
    return each_process(is_in_group, &group);
}

struct marked {
    char mark[128]; /* an entry of the environment */
    pid_t group;    /* 0: any */
};

/* A file of a process; of one whose first thread has ended the same file of another thread, because that one's is empty. */
static char *read_of(pid_t pid, const char *name, size_t *ret_len)
{
    char path[80], dir[40], *text;
    struct dirent *entry;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    text = read_whole(path, ret_len);
    if (!text || *ret_len > 0)
        return text;
    snprintf(dir, sizeof(dir), "/proc/%d/task", (int)pid);
    d = opendir(dir);
    while (d && text && *ret_len == 0 && (entry = readdir(d)))
        if (isdigit((unsigned char)entry->d_name[0])) {
            free(text);
            snprintf(path, sizeof(path), "%s/%.12s/%s", dir, entry->d_name, name);
            text = read_whole(path, ret_len);
        }
    if (d)
        closedir(d);
    return text;
}

/* What it shows of its environment has the entry; *ret_empty: it shows none and may have one. */
static bool shows_entry(pid_t pid, const char *entry, bool *ret_empty)
{
    struct proc_stat p;
    size_t len = 0;
    char *text = read_of(pid, "environ", &len);
    bool found = false;

    *ret_empty = false;
    if (!text)
        return false;
    for (size_t at = 0; at < len && !found; at += strlen(text + at) + 1)
        found = strcmp(text + at, entry) == 0;
    *ret_empty = len == 0 && is_living(pid, &p) && p.group > 0; /* threads of the kernel have no group */
    free(text);
    return found;
}

/*
 * Between two programs, in the middle of an exec, a process shows neither environment nor arguments. Who has arguments and
 * no environment, time after time, was given none.
 */
static bool has_entry(pid_t pid, const char *entry)
{
    bool found, empty;
    int sure = 0;

    found = shows_entry(pid, entry, &empty);
    for (int i = 0; i < EXEC_LOOKS && empty && sure < EXEC_SURE; i++) {
        size_t len = 0;

        free(read_of(pid, "cmdline", &len));
        if (len > 0)
            sure++;
        else
            usleep(EXEC_LOOK_US);
        found = shows_entry(pid, entry, &empty);
    }
    return found;
}

/* Us, those above us, and our own children: they may carry the entry when we were started inside such a run. */
static bool is_ours(pid_t pid, pid_t parent)
{
    pid_t at = getpid();
    struct proc_stat p = {.parent = getppid()};

    for (int i = 0; i < DEPTH_MAX && at > 1; i++) {
        if (pid == at)
            return true;
        at = i == 0 || is_living(at, &p) ? p.parent : 0;
    }
    return parent == getpid();
}

static bool kill_marked(void *arg, pid_t pid)
{
    const struct marked *m = arg;
    struct proc_stat p;

    return has_entry(pid, m->mark) && is_living(pid, &p) && (!m->group || p.group == m->group) &&
           !is_ours(pid, p.parent) && kill(pid, SIGKILL) == 0;
}

/* Dying takes a moment, and one may have forked meanwhile. */
static size_t end_marked(const char *run_id, pid_t group)
{
    struct marked m = {.group = group};
    size_t first, left;

    snprintf(m.mark, sizeof(m.mark), "TIDEMARK_RUN_ID=%.100s", run_id);
    first = left = each_process(kill_marked, &m);
    for (int i = 0; i < 200 && left > 0; i++) {
        usleep(5000);
        left = each_process(kill_marked, &m);
    }
    return first;
}

size_t tree_end_run(const char *run_id)
{
    return *run_id ? end_marked(run_id, 0) : 0; /* a log from elsewhere may name none: that is not everybody's */
}

void tree_end_group(const char *run_id, pid_t group)
{
    if (group > 1)
        (void)end_marked(run_id, group);
}

void tree_reap(pid_t except)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 && info.si_pid != except) {
        waitpid(info.si_pid, NULL, WNOHANG);
        info.si_pid = 0;
    }
}
