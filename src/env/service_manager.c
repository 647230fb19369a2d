/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of sd_listen_fds(3) and sd_notify(3), which is stable and needs no library: descriptors from 3 on, and datagrams to a
 * unix socket whose name begins with a slash, or with an @ for one without a file.
 */
#include "env/service_manager.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define FIRST_FD 3
#define SOCKETS_MAX 16

struct service_manager {
    struct arena arena;
    struct service_socket sockets[SOCKETS_MAX];
    size_t n;
    struct sockaddr_un where;
    socklen_t where_len; /* 0: nobody listens */
    int64_t watchdog_us;
    bool has_journal;
};

static bool int_of(const char *variable, int64_t *ret)
{
    const char *text = getenv(variable);

    return text && str_to_int64(str_from(text), ret);
}

/* "http:unix": one name for each socket. */
static const char *next_name(struct service_manager *m, const char **names)
{
    const char *begin = *names;
    size_t n = begin ? strcspn(begin, ":") : 0;

    if (!begin)
        return "";
    *names = begin[n] ? begin + n + 1 : NULL;
    return arena_dup(&m->arena, (struct str){begin, n}).ptr;
}

static enum tide_code take_sockets(struct service_manager *m, struct tide_err *err)
{
    const char *names = getenv("LISTEN_FDNAMES");
    int64_t pid = 0, n = 0;

    if (!int_of("LISTEN_PID", &pid) || pid != getpid())
        return TIDE_OK; /* meant for another process */
    if (!int_of("LISTEN_FDS", &n) || n < 0 || n > SOCKETS_MAX)
        return tide_fail(err, TIDE_INVALID,
                         "LISTEN_FDS is not a number from 0 to %d: the service manager gives no sockets", SOCKETS_MAX);
    for (int i = 0; i < (int)n; i++) {
        if (fcntl(FIRST_FD + i, F_SETFD, FD_CLOEXEC))
            return tide_fail(err, TIDE_INVALID, "LISTEN_FDS says that %lld sockets are open, and descriptor %d is not",
                             (long long)n, FIRST_FD + i);
        m->sockets[m->n++] = (struct service_socket){FIRST_FD + i, next_name(m, &names)};
    }
    return TIDE_OK;
}

static void take_place(struct service_manager *m)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;

    if (n < 2 || (path[0] != '/' && path[0] != '@') || n >= sizeof m->where.sun_path)
        return;
    m->where.sun_family = AF_UNIX;
    memcpy(m->where.sun_path, path, n);
    if (path[0] == '@')
        m->where.sun_path[0] = '\0';
    m->where_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static void take_watchdog(struct service_manager *m)
{
    int64_t pid, us;

    if (int_of("WATCHDOG_USEC", &us) && us > 0 && (!int_of("WATCHDOG_PID", &pid) || pid == getpid()))
        m->watchdog_us = us;
}

/* "8:1234567": the device and the inode of the journal's end of our standard error, as systemd.exec(5) has it. */
static bool writes_to_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    char own[64];
    struct stat st;

    if (!text || fstat(STDERR_FILENO, &st))
        return false;
    snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    return strcmp(text, own) == 0;
}

enum tide_code service_manager_open(struct service_manager **ret, struct tide_err *err)
{
    static const char *const variables[] = {"LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES",
                                            "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    struct service_manager *m = mem_zero(sizeof *m);
    enum tide_code code = take_sockets(m, err);

    take_place(m);
    take_watchdog(m);
    m->has_journal = writes_to_journal();
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    if (code)
        service_manager_close(m);
    else
        *ret = m;
    return code;
}

void service_manager_close(struct service_manager *m)
{
    if (!m)
        return;
    arena_done(&m->arena);
    free(m);
}

bool service_manager_is_there(const struct service_manager *m)
{
    return m->n || m->where_len || m->watchdog_us || m->has_journal;
}

size_t service_manager_sockets(const struct service_manager *m, const struct service_socket **ret)
{
    *ret = m->sockets;
    return m->n;
}

void service_manager_tell(const struct service_manager *m, const char *state)
{
    int fd = m->where_len ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

    if (fd < 0)
        return;
    (void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&m->where,
                  m->where_len);
    close(fd);
}

int64_t service_manager_watchdog_ms(const struct service_manager *m)
{
    return m->watchdog_us / 1000;
}
