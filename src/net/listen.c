/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

/* ---- TCP ---- */

static enum tide_code refuse_tcp(const char *address, const char *port, int failed, struct tide_err *err)
{
    if (failed == EADDRINUSE)
        return tide_fail(err, TIDE_EXISTS,
                         "port %s of %s is in use: stop what listens there, or take another port (0: any that is free)",
                         port, address);
    return tide_fail(err,
                     failed == EACCES          ? TIDE_DENIED
                     : failed == EADDRNOTAVAIL ? TIDE_INVALID
                                               : TIDE_IO,
                     "listen on %s port %s: %s", address, port, strerror(failed));
}

enum tide_code listen_bind_tcp(const char *address, const char *port, int *ret_fd, struct tide_err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    int fd, yes = 1, failed = getaddrinfo(address, port, &hints, &list);

    if (failed)
        return tide_fail(err, TIDE_INVALID, "'%s' port '%s' is not an address: %s", address, port,
                         gai_strerror(failed));
    fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ||
        bind(fd, list->ai_addr, list->ai_addrlen)) {
        failed = errno;
        if (fd >= 0)
            close(fd);
    }
    freeaddrinfo(list);
    if (failed)
        return refuse_tcp(address, port, failed, err);
    *ret_fd = fd;
    return TIDE_OK;
}

/* ---- unix ---- */

size_t listen_unix_path_max(void)
{
    return sizeof((struct sockaddr_un *)0)->sun_path - 1;
}

/* Only its owner may go through it: else others could put a socket of theirs in its place. */
static enum tide_code check_directory(const char *path, struct tide_err *err)
{
    const char *slash = strrchr(path, '/');
    AUTO(mem_freep)
    char *dir = mem_dup(slash == path ? STR("/") : slash ? (struct str){path, (size_t)(slash - path)} : STR("."));
    struct stat st;

    if (mkdir(dir, 0700) && errno != EEXIST)
        return tide_fail_file(err, errno, "make the directory", dir);
    if (stat(dir, &st))
        return tide_fail_file(err, errno, "look at", dir);
    if (st.st_uid != geteuid() || st.st_mode & 077)
        return tide_fail(
            err, TIDE_DENIED,
            "'%s' is not a directory that only this user can enter: the socket belongs in one of mode 0700", dir);
    return TIDE_OK;
}

/* Whether somebody listens there: only then is what is found there in the way. */
static enum tide_code clear_place(const struct sockaddr_un *at, struct tide_err *err)
{
    struct stat st;
    int fd, failed;

    if (lstat(at->sun_path, &st))
        return errno == ENOENT ? TIDE_OK : tide_fail_file(err, errno, "look at", at->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return tide_fail(err, TIDE_EXISTS, "'%s' is there, and is not a socket: name another path", at->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (failed != ECONNREFUSED)
        return tide_fail(err, TIDE_EXISTS, "somebody listens on '%s' already: stop that server, or name another path",
                         at->sun_path);
    return unlink(at->sun_path) && errno != ENOENT ? tide_fail_file(err, errno, "remove", at->sun_path) : TIDE_OK;
}

enum tide_code listen_bind_unix(const char *path, int *ret_fd, struct tide_err *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd, failed;

    if (strlen(path) > listen_unix_path_max())
        return tide_fail(err, TIDE_INVALID, "a socket's path has at most %zu bytes: name a shorter one than '%s'",
                         listen_unix_path_max(), path);
    memcpy(at.sun_path, path, strlen(path));
    if (check_directory(path, err) || clear_place(&at, err))
        return err->code;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    failed = fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) || chmod(path, 0600) ? errno : 0;
    if (failed) {
        if (fd >= 0)
            close(fd);
        return tide_fail_file(err, failed, "listen on", path);
    }
    *ret_fd = fd;
    return TIDE_OK;
}

/* ---- what it is ---- */

static void place_v4(const struct sockaddr_in *in, struct listen_place *ret)
{
    inet_ntop(AF_INET, &in->sin_addr, ret->address, sizeof ret->address);
    ret->is_loopback = ntohl(in->sin_addr.s_addr) >> 24 == 127;
    ret->is_any = in->sin_addr.s_addr == INADDR_ANY;
    ret->port = ntohs(in->sin_port);
}

static void place_v6(const struct sockaddr_in6 *in, struct listen_place *ret)
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    snprintf(ret->address, sizeof ret->address, "[%s]", text);
    ret->is_loopback = IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) ||
                       (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) && in->sin6_addr.s6_addr[12] == 127);
    ret->is_any = IN6_IS_ADDR_UNSPECIFIED(&in->sin6_addr);
    ret->port = ntohs(in->sin6_port);
}

enum tide_code listen_place_of(int fd, struct listen_place *ret, struct tide_err *err)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof at, type_len = sizeof(int);
    int type = 0;

    *ret = (struct listen_place){0};
    if (getsockname(fd, (struct sockaddr *)&at, &len) || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) ||
        type != SOCK_STREAM || (at.ss_family != AF_UNIX && at.ss_family != AF_INET && at.ss_family != AF_INET6))
        return tide_fail(err, TIDE_INVALID, "descriptor %d is not a stream socket of TCP or unix", fd);
    if (at.ss_family == AF_INET)
        place_v4((const struct sockaddr_in *)&at, ret);
    else if (at.ss_family == AF_INET6)
        place_v6((const struct sockaddr_in6 *)&at, ret);
    else {
        ret->is_unix = true;
        snprintf(ret->address, sizeof ret->address, "%.108s", ((const struct sockaddr_un *)&at)->sun_path);
    }
    return TIDE_OK;
}

/* ---- who listens ---- */

#define LISTENS "0A" /* of the states in /proc/net/tcp */

/* Looks through one of the tables: local address in the second column, state in the fourth, user in the eighth. */
static void look_through(const char *table, int port, bool *ret_any, bool *ret_other)
{
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)64 << 20);
    unsigned at, uid;
    char state[3];

    if (buf_read_file(&text, table))
        return;
    for (const char *line = strchr(buf_cstr(&text), '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        if (sscanf(line + 1, " %*[0-9]: %*[0-9A-F]:%x %*s %2s %*s %*s %*s %u", &at, state, &uid) != 3 ||
            strcmp(state, LISTENS) != 0 || at != (unsigned)port)
            continue;
        *ret_any = true;
        *ret_other |= uid != geteuid() && uid != 0;
    }
}

bool listen_port_is_own(int port)
{
    bool any = false, other = false;

    look_through("/proc/net/tcp", port, &any, &other);
    look_through("/proc/net/tcp6", port, &any, &other);
    return any && !other;
}
