/* SPDX-License-Identifier: Apache-2.0 */
/* Making, entering and guarding the socket of a run. */
#include "program/run_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"

#define PREFIX "tidemark-"
#define NAME_BYTES 16
#define BACKLOG 128

/* sun_path of an abstract name begins with a NUL and has no end but its length. */
static socklen_t address_of(const char *name, struct sockaddr_un *ret)
{
    size_t n = strlen(name);

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path + 1, name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static bool is_friend(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && (who.uid == geteuid() || who.uid == 0);
}

enum tide_code run_socket_open(int *ret_fd, char ret_name[RUN_SOCKET_NAME_SIZE], struct tide_err *err)
{
    unsigned char random[NAME_BYTES];
    char hex[2 * NAME_BYTES + 1];
    struct sockaddr_un address;
    socklen_t len;
    int fd;

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return tide_fail_errno(err, errno, "random bytes for the name of the run's socket");
    hex_encode(hex, random, sizeof(random));
    snprintf(ret_name, RUN_SOCKET_NAME_SIZE, PREFIX "%s", hex);
    len = address_of(ret_name, &address);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return TIDE_OK;
    }
    tide_fail_errno(err, errno, "open the run's socket");
    if (fd >= 0)
        close(fd);
    return err->code;
}

int run_socket_accept(int fd)
{
    for (;;) {
        int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (got < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (got < 0 || is_friend(got))
            return got;
        close(got);
    }
}

enum tide_code run_socket_connect(const char *name, int *ret_fd, struct tide_err *err)
{
    struct sockaddr_un address;
    socklen_t len;
    int fd, failed;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || strlen(name) != strlen(PREFIX) + (size_t)2 * NAME_BYTES)
        return tide_fail(err, TIDE_INVALID, "$" RUN_SOCKET_ENV " is not the name of a run's socket");
    len = address_of(name, &address);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = fd < 0 || connect(fd, (struct sockaddr *)&address, len) != 0 ? errno : is_friend(fd) ? 0 : ECONNREFUSED;
    if (!failed) {
        *ret_fd = fd;
        return TIDE_OK;
    }
    if (fd >= 0)
        close(fd);
    if (failed == ECONNREFUSED)
        return tide_fail(err, TIDE_NOT_FOUND, "the run that this belongs to has ended");
    return tide_fail_errno(err, failed, "reach the run that this belongs to");
}
