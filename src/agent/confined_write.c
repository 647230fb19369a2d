/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing a file whole. Order, each step on disk before the next: content beside the file, mode and owner, the rename,
 * the directory. The rename consumes the file beside it: that is what confined_marked() reads off.
 *
 * A replaced file is a new one: other hard links keep the old content, and extended attributes are not carried over.
 */
#include "agent/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"

#define SHOW(path) (int)((path).len < 120 ? (path).len : 120), (path).ptr

/* Where a file is, and the name of the one beside it. */
struct spot {
    int dir;
    struct buf name;
    char beside[40];
    struct stat st;
    bool exists;
};

static void spot_done(struct spot *s)
{
    if (s->dir >= 0)
        close(s->dir);
    buf_done(&s->name);
}

static enum tide_code spot_find(struct spot *s, const struct confined *b, struct str path,
                                enum confined_missing missing, const char *key, struct tide_err *err)
{
    struct buf both = BUF_INIT(8192);
    enum tide_code code;

    *s = (struct spot){.dir = -1, .name = BUF_INIT(512)};
    code = confined_parent(b, path, missing, &s->dir, &s->name, err);
    if (code)
        return code;
    buf_addf(&both, "%s/%s", key ? key : "", buf_cstr(&s->name));
    snprintf(s->beside, sizeof(s->beside), ".tidemark-%016llx", (unsigned long long)str_hash(buf_view(&both)));
    buf_done(&both);
    s->exists = fstatat(s->dir, s->name.ptr, &s->st, AT_SYMLINK_NOFOLLOW) == 0;
    return TIDE_OK;
}

/* By a rename one could replace what one may not write: that would surprise. */
static enum tide_code check_target(const struct spot *s, struct str path, struct tide_err *err)
{
    if (!s->exists)
        return TIDE_OK;
    if (!S_ISREG(s->st.st_mode))
        return tide_fail(err, TIDE_INVALID, "'%.*s' is %s, not a file", SHOW(path),
                         S_ISDIR(s->st.st_mode) ? "a directory" : "a link, a FIFO, a socket or a device");
    if (faccessat(s->dir, s->name.ptr, W_OK, AT_EACCESS) != 0)
        return tide_fail(err, TIDE_DENIED, "'%.*s' is read-only", SHOW(path));
    return TIDE_OK;
}

/* A new one takes its mode from the umask; an existing one keeps what it had, without setuid, as after any write. */
static bool keep_mode(int fd, const struct spot *s)
{
    struct stat now;

    if (!s->exists)
        return true;
    if (fstat(fd, &now) == 0 && (now.st_uid != s->st.st_uid || now.st_gid != s->st.st_gid) &&
        fchown(fd, s->st.st_uid, s->st.st_gid) != 0 && errno != EPERM)
        return false;
    return fchmod(fd, s->st.st_mode & 0777) == 0;
}

static int create_beside(const struct spot *s)
{
    int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(s->dir, s->beside, flags);
    struct stat st;

    /* What an earlier try left, or the mark, is used again: it must not be gone for a moment. Anything else is not ours. */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid() &&
        ftruncate(fd, 0) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    if (unlinkat(s->dir, s->beside, 0) != 0 && errno != ENOENT)
        return -1;
    return openat(s->dir, s->beside, flags | O_CREAT | O_EXCL, s->exists ? 0600 : 0666);
}

static bool put_content(const struct spot *s, struct str content)
{
    int fd = create_beside(s), errnum;
    bool ok = fd >= 0 && !fd_write(fd, content) && keep_mode(fd, s) && fsync(fd) == 0;

    errnum = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        errnum = errno;
        ok = false;
    }
    errno = errnum;
    return ok && renameat(s->dir, s->beside, s->dir, s->name.ptr) == 0 && fsync(s->dir) == 0;
}

enum tide_code confined_replace(const struct confined *b, struct str path, enum confined_missing missing,
                                const char *key, struct str content, struct tide_err *err)
{
    AUTO(spot_done) struct spot s;
    enum tide_code code = spot_find(&s, b, path, missing, key, err);

    if (!code)
        code = check_target(&s, path, err);
    if (!code && !put_content(&s, content))
        code = tide_fail_errno(err, errno, "write '%.*s'", SHOW(path));
    return code;
}

enum tide_code confined_mark(const struct confined *b, struct str path, const char *key, struct tide_err *err)
{
    AUTO(spot_done) struct spot s;
    enum tide_code code = spot_find(&s, b, path, CONFINED_KEEP, key, err);
    int fd;

    if (!code)
        code = check_target(&s, path, err);
    if (code)
        return code;
    if (!s.exists)
        return tide_fail(err, TIDE_NOT_FOUND, "'%.*s' does not exist", SHOW(path));
    fd = create_beside(&s);
    if (fd < 0 || fsync(s.dir) != 0)
        code = tide_fail_errno(err, errno, "write beside '%.*s'", SHOW(path));
    if (fd >= 0)
        close(fd);
    return code;
}

enum tide_code confined_marked(const struct confined *b, struct str path, const char *key, bool *ret_there,
                               struct tide_err *err)
{
    AUTO(spot_done) struct spot s;
    enum tide_code code = spot_find(&s, b, path, CONFINED_KEEP, key, err);
    struct stat st;

    if (code)
        return code;
    *ret_there = fstatat(s.dir, s.beside, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return *ret_there || errno == ENOENT ? TIDE_OK : tide_fail_errno(err, errno, "look beside '%.*s'", SHOW(path));
}

void confined_unmark(const struct confined *b, struct str path, const char *key)
{
    AUTO(spot_done) struct spot s;
    struct tide_err err;

    if (!spot_find(&s, b, path, CONFINED_KEEP, key, &err))
        unlinkat(s.dir, s.beside, 0);
}
