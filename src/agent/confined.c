/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening below a directory. A path is looked at first (O_PATH, which neither wakes the other end of a FIFO nor touches
 * a device) and opened second; the second open does not wait and is checked again, so a swap in between gains nothing.
 *
 * Absolute links are refused even when they lead inside: the kernel does not distinguish those, and neither do we.
 */
#include "agent/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#define RACES 32 /* a rename somewhere above makes the kernel ask us to try again */
#define LINKS 16
#define SHOWN 120 /* bytes of a path in a message: the rest of it must fit too */

#define SHOW(path) (int)((path).len < SHOWN ? (path).len : SHOWN), (path).ptr

static int open_beneath(int dir, const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    long fd = -1;

    for (int i = 0; i < RACES; i++) {
        fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

static enum tide_code refuse_path(int errnum, struct str path, struct tide_err *err)
{
    static const struct {
        int errnum;
        enum tide_code code;
        const char *why;
    } reasons[] = {
        {EXDEV, TIDE_DENIED, "leads out of the working directory"},
        {ELOOP, TIDE_DENIED, "goes through a symbolic link that may not be followed"},
        {ENOENT, TIDE_NOT_FOUND, "does not exist"},
        {ENOTDIR, TIDE_INVALID, "goes through a file that is not a directory"},
        {ENAMETOOLONG, TIDE_INVALID, "is too long"},
        {EACCES, TIDE_DENIED, "may not be opened (permission denied)"},
        {ENOSYS, TIDE_DENIED, "cannot be opened safely: this kernel has no openat2 (Linux 5.6)"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (errnum == reasons[i].errnum)
            return tide_fail(err, reasons[i].code, "'%.*s' %s", SHOW(path), reasons[i].why);
    return tide_fail_errno(err, errnum, "'%.*s'", SHOW(path));
}

/* ---- the path ---- */

/* What follows `root` in `path`, without slashes before it; false when it is not inside. */
static bool strip_root(struct str path, struct str root, struct str *ret_rest)
{
    while (root.len > 0 && root.ptr[root.len - 1] == '/')
        root.len--;
    if (!str_starts(path, root) || (path.len > root.len && path.ptr[root.len] != '/'))
        return false;
    *ret_rest = (struct str){path.ptr + root.len, path.len - root.len};
    while (ret_rest->len && *ret_rest->ptr == '/')
        *ret_rest = (struct str){ret_rest->ptr + 1, ret_rest->len - 1};
    return true;
}

/* An absolute path by the name that we were given for the directory, or by the one that the kernel has for it. */
static bool inside(const struct confined *b, struct str path, struct str *ret_rest)
{
    char link[40], real[CONFINED_PATH_MAX];
    ssize_t n;

    if (b->cwd && strip_root(path, str_from(b->cwd), ret_rest))
        return true;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", b->dir);
    n = readlink(link, real, sizeof(real));
    return n > 0 && (size_t)n < sizeof(real) && strip_root(path, (struct str){real, (size_t)n}, ret_rest);
}

enum tide_code confined_relative(const struct confined *b, struct str path, struct buf *ret_path, struct tide_err *err)
{
    struct str rest = path;

    if (path.len == 0)
        return tide_fail(err, TIDE_INVALID, "the path is empty");
    if (memchr(path.ptr, '\0', path.len))
        return tide_fail(err, TIDE_INVALID, "the path has a NUL character in it");
    if (path.len >= CONFINED_PATH_MAX)
        return tide_fail(err, TIDE_INVALID, "the path is longer than %d bytes", CONFINED_PATH_MAX - 1);
    if (*path.ptr == '/' && !inside(b, path, &rest))
        return tide_fail(err, TIDE_DENIED, "'%.*s' is outside of the working directory '%.80s'", SHOW(path),
                         b->cwd ? b->cwd : "");
    buf_clear(ret_path);
    buf_add_str(ret_path, rest.len ? rest : STR("."));
    (void)buf_cstr(ret_path);
    return TIDE_OK;
}

/* ---- opening ---- */

static const char *kind_name(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *name;
    } kinds[] = {{S_IFDIR, "a directory"}, {S_IFREG, "a file"},   {S_IFIFO, "a FIFO"},
                 {S_IFCHR, "a device"},    {S_IFBLK, "a device"}, {S_IFSOCK, "a socket"}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if ((mode & S_IFMT) == kinds[i].type)
            return kinds[i].name;
    return "neither file nor directory";
}

static enum tide_code check_kind(const struct stat *st, int kinds, struct str path, struct tide_err *err)
{
    if ((S_ISREG(st->st_mode) && (kinds & CONFINED_FILE)) || (S_ISDIR(st->st_mode) && (kinds & CONFINED_DIR)))
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "'%.*s' is %s, not %s", SHOW(path), kind_name(st->st_mode),
                     kinds == CONFINED_FILE  ? "a file"
                     : kinds == CONFINED_DIR ? "a directory"
                                             : "a file or directory");
}

static enum tide_code open_checked(const struct confined *b, const char *path, uint64_t flags, int kinds, int *ret_fd,
                                   struct stat *st, struct tide_err *err)
{
    int fd = open_beneath(b->dir, path, flags);
    enum tide_code code;

    if (fd < 0)
        return refuse_path(errno, str_from(path), err);
    code = fstat(fd, st) == 0 ? check_kind(st, kinds, str_from(path), err)
                              : tide_fail_errno(err, errno, "'%.*s'", SHOW(str_from(path)));
    if (code)
        close(fd);
    else
        *ret_fd = fd;
    return code;
}

enum tide_code confined_open(const struct confined *b, struct str path, int kinds, int *ret_fd, struct stat *ret_stat,
                             struct tide_err *err)
{
    struct buf relative = BUF_INIT(CONFINED_PATH_MAX + 1);
    struct stat st;
    enum tide_code code;
    int fd = -1;

    code = confined_relative(b, path, &relative, err);
    if (!code)
        code = open_checked(b, relative.ptr, O_PATH, kinds, &fd, &st, err);
    if (!code) {
        close(fd);
        code = open_checked(b, relative.ptr, O_RDONLY | O_NONBLOCK | O_NOCTTY, kinds, &fd, &st, err);
    }
    buf_done(&relative);
    if (code)
        return code;
    *ret_fd = fd;
    if (ret_stat)
        *ret_stat = st;
    return TIDE_OK;
}

/* ---- the directory that holds it ---- */

/* The one before the last slash of a relative path; "." when there is none. */
static struct str dir_part(struct str path)
{
    while (path.len > 0 && path.ptr[path.len - 1] != '/')
        path.len--;
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    return path.len ? path : STR(".");
}

static struct str name_part(struct str path)
{
    const char *slash = memrchr(path.ptr, '/', path.len);

    return slash ? (struct str){slash + 1, path.len - (size_t)(slash + 1 - path.ptr)} : path;
}

static int open_dir(const struct confined *b, struct str path)
{
    char text[CONFINED_PATH_MAX];

    snprintf(text, sizeof(text), "%.*s", STR_ARG(path));
    return open_beneath(b->dir, text, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

static enum tide_code make_one(const struct confined *b, struct str path, struct tide_err *err)
{
    int parent = open_dir(b, dir_part(path)), errnum = errno;
    struct str name = name_part(path);
    char text[256];

    if (parent < 0)
        return refuse_path(errnum, path, err);
    snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
    errnum = name.len < sizeof(text) ? 0 : ENAMETOOLONG;
    if (!errnum && mkdirat(parent, text, 0777) != 0 && errno != EEXIST)
        errnum = errno;
    if (!errnum && fsync(parent) != 0)
        errnum = errno;
    close(parent);
    return errnum ? refuse_path(errnum, path, err) : TIDE_OK;
}

/* Opens a directory, making those of its path that are missing from the top down. */
static enum tide_code make_dirs(const struct confined *b, struct str path, int *ret_dir, struct tide_err *err)
{
    for (size_t end = 0; end < path.len;) {
        struct str prefix;
        int fd, errnum;

        while (end < path.len && path.ptr[end] == '/')
            end++;
        while (end < path.len && path.ptr[end] != '/')
            end++;
        prefix = (struct str){path.ptr, end};
        fd = open_dir(b, prefix);
        errnum = errno;
        if (fd < 0 && errnum == ENOENT) {
            if (make_one(b, prefix, err))
                return err->code;
            fd = open_dir(b, prefix);
            errnum = errno;
        }
        if (fd < 0)
            return refuse_path(errnum, prefix, err);
        if (end == path.len) {
            *ret_dir = fd;
            return TIDE_OK;
        }
        close(fd);
    }
    return tide_fail(err, TIDE_INVALID, "the path is empty");
}

/* When the name is a symbolic link, *path becomes where it leads: true. */
static bool follow_link(int dir, struct buf *path, const char *name, int *ret_errnum)
{
    char target[CONFINED_PATH_MAX];
    struct str base = dir_part(buf_view(path));
    ssize_t n = readlinkat(dir, name, target, sizeof(target));

    if (n <= 0)
        return false;
    if (target[0] == '/')
        *ret_errnum = EXDEV;
    else if ((size_t)n + base.len + 2 > CONFINED_PATH_MAX)
        *ret_errnum = ENAMETOOLONG;
    if (*ret_errnum)
        return false;
    if (str_eq(base, STR(".")))
        buf_clear(path);
    else
        path->len = base.len + 1; /* with its slash */
    buf_add(path, target, (size_t)n);
    (void)buf_cstr(path);
    return true;
}

/* One round: opens the directory of *path; *ret_again when its name was a link and *path is now another. */
static enum tide_code parent_once(const struct confined *b, struct buf *path, enum confined_missing missing,
                                  int *ret_dir, struct buf *ret_name, bool *ret_again, struct tide_err *err)
{
    struct str all = buf_view(path), name = name_part(all), dir = dir_part(all);
    enum tide_code code = TIDE_OK;
    int fd = -1, errnum = 0;

    if (name.len == 0 || str_eq(name, STR(".")) || str_eq(name, STR("..")))
        return tide_fail(err, TIDE_INVALID, "'%.*s' is a directory, not a file", SHOW(all));
    if (name.len > 255)
        return refuse_path(ENAMETOOLONG, all, err);
    buf_clear(ret_name);
    buf_add_str(ret_name, name);
    if (missing == CONFINED_MAKE)
        code = make_dirs(b, dir, &fd, err);
    else if ((fd = open_dir(b, dir)) < 0)
        code = refuse_path(errno, all, err);
    if (code)
        return code;
    *ret_again = follow_link(fd, path, buf_cstr(ret_name), &errnum);
    if (errnum || *ret_again)
        close(fd);
    else
        *ret_dir = fd;
    return errnum ? refuse_path(errnum, all, err) : TIDE_OK;
}

enum tide_code confined_parent(const struct confined *b, struct str path, enum confined_missing missing, int *ret_dir,
                               struct buf *ret_name, struct tide_err *err)
{
    struct buf relative = BUF_INIT(2 * CONFINED_PATH_MAX);
    enum tide_code code = confined_relative(b, path, &relative, err);
    bool again = true;

    for (int i = 0; !code && again && i < LINKS; i++)
        code = parent_once(b, &relative, missing, ret_dir, ret_name, &again, err);
    if (!code && again)
        code = refuse_path(ELOOP, path, err);
    buf_done(&relative);
    return code;
}
