/* SPDX-License-Identifier: Apache-2.0 */
#include "program/guard_protocol.h"

#include <errno.h>
#include <sys/socket.h>

bool guard_send(int socket, const void *bytes, size_t len, const int *fds, size_t n, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
    } control = {.bytes = ""};
    struct iovec part = {(void *)(uintptr_t)bytes, len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

    if (n) {
        m.msg_control = control.bytes;
        m.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.align = (struct cmsghdr){CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
    }
    for (;;) {
        ssize_t sent = sendmsg(socket, &m, MSG_NOSIGNAL | flags);

        if (sent >= 0 || errno != EINTR)
            return sent == (ssize_t)len;
    }
}

ssize_t guard_receive(int socket, void *bytes, size_t len, int fds[N_FDS], size_t *ret_n, int flags)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
    } control;
    struct iovec part = {bytes, len};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    const struct cmsghdr *c;
    ssize_t n;

    do {
        n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
    } while (n < 0 && errno == EINTR);
    c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    *ret_n = c && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    if (*ret_n)
        memcpy(fds, CMSG_DATA(c), *ret_n * sizeof(int));
    return n;
}
