/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/replace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

enum tide_code file_make_dirs(char *path, struct tide_err *err)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int bad;

        *slash = '\0';
        bad = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        if (bad)
            tide_fail_errno(err, bad, "%.150s: make the directory", path);
        *slash = '/';
        if (bad)
            return err->code;
    }
    return TIDE_OK;
}

enum tide_code file_lock_dir(const char *path, int *ret_dir, struct tide_err *err)
{
    const char *slash = strrchr(path, '/');
    AUTO(mem_freep) char *dir = mem_dup(slash ? (struct str){path, (size_t)(slash - path) + 1} : STR("."));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), bad = fd < 0 ? errno : 0;

    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR) /* a file system without locks: then without */
        ;
    if (fd < 0)
        return tide_fail_errno(err, bad, "%.150s: open it", dir);
    *ret_dir = fd;
    return TIDE_OK;
}

enum tide_code file_replace(const char *path, int dir, struct str text, struct tide_err *err)
{
    AUTO(buf_done) struct buf temp = BUF_INIT(8192);
    int fd, bad;

    buf_addf(&temp, "%s.XXXXXX", path);
    if (temp.failed)
        return tide_fail(err, TIDE_INVALID, "%.150s: the path is too long", path);
    (void)buf_cstr(&temp);
    fd = mkostemp(temp.ptr, O_CLOEXEC);
    if (fd < 0)
        return tide_fail_errno(err, errno, "%.150s: write it", path);
    bad = fd_write(fd, text);
    if (!bad && fsync(fd) != 0)
        bad = errno;
    close(fd);
    if (!bad && rename(temp.ptr, path) != 0)
        bad = errno;
    if (bad) {
        unlink(temp.ptr);
        return tide_fail_errno(err, bad, "%.150s: write it", path);
    }
    fsync(dir);
    return TIDE_OK;
}
