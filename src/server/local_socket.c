/* SPDX-License-Identifier: Apache-2.0 */
/* The store that is used where nothing names one has the plain name; others have a digest of where they are. */
#include "server/local_socket.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "engine/store_url.h"
#include "env/user_key.h"

static void socket_name(const char *url, char ret[64])
{
    unsigned char digest[DIGEST_SIZE];
    char real[PATH_MAX], hex[2 * 6 + 1];

    if (store_url_is_default(url)) {
        snprintf(ret, 64, "server.sock");
        return;
    }
    digest_of(digest, str_from(realpath(store_url_path(url), real) ? real : store_url_path(url)));
    hex_encode(hex, digest, 6);
    snprintf(ret, 64, "server-%s.sock", hex);
}

/* As the XDG base directories want it: of this user, and for nobody else. */
static bool is_runtime_dir(const char *dir)
{
    struct stat st;

    return dir && dir[0] == '/' && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 077);
}

enum tide_code local_socket_path(const char *url, char *ret, size_t size, struct tide_err *err)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    char name[64], below[80];

    socket_name(url, name);
    snprintf(below, sizeof below, "run/%s", name);
    if (is_runtime_dir(dir) && (size_t)snprintf(ret, size, "%s/tidemark/%s", dir, name) < size)
        return TIDE_OK;
    if (user_state_path(below, true, ret, size))
        return TIDE_OK;
    return tide_fail(err, TIDE_DENIED,
                     "the state directory cannot be written: set XDG_STATE_HOME to a directory of yours, or name a "
                     "path for the socket");
}
