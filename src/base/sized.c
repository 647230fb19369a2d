/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sized.h"

#include <string.h>

enum tide_code sized_read(void *ret, size_t size, const void *given, const char *name, struct tide_err *err)
{
    size_t theirs = size;

    if (given)
        memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs)
        return tide_fail(err, TIDE_INVALID, "%s has no size: begin it with .size = sizeof(%s)", name, name);
    for (size_t i = size; i < theirs; i++) {
        if (((const char *)given)[i])
            return tide_fail(err, TIDE_INVALID,
                             "%s sets a member that libtidemark " TIDE_VERSION
                             " does not know: the program was built for a newer one",
                             name);
    }
    memset(ret, 0, size);
    if (given)
        memcpy(ret, given, theirs < size ? theirs : size);
    memcpy(ret, &size, sizeof size);
    return TIDE_OK;
}
