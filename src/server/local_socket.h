/* SPDX-License-Identifier: Apache-2.0 */
/* Where the server of a store has its unix socket, unless it is named: what a command of the same user looks for. */
#ifndef SERVER_LOCAL_SOCKET_H
#define SERVER_LOCAL_SOCKET_H

#include "base/err.h"

/* In the user's runtime directory, else in the state directory. `url` as of store_url(). TIDE_DENIED: neither can be had. */
enum tide_code local_socket_path(const char *url, char *ret, size_t size, struct tide_err *err) MUST_CHECK;

#endif
