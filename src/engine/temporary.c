/* SPDX-License-Identifier: Apache-2.0 */
/* Directories for what is not kept. */
#include "engine/temporary.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

enum tide_code temporary_make(struct arena *a, const char *what, const char **ret_dir, struct tide_err *err)
{
    const char *parent = getenv("TMPDIR");
    char *dir = (char *)(uintptr_t)arena_printf(a, "%s/tidemark-%s-XXXXXX", parent && *parent ? parent : "/tmp", what);

    if (!mkdtemp(dir))
        return tide_fail_errno(err, errno, "make a directory in TMPDIR");
    *ret_dir = dir;
    return TIDE_OK;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void temporary_remove(const char *dir)
{
    if (dir)
        nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
