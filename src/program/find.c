/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name with a slash is a path; others are looked for in $PATH, where a file that may not be executed is passed over but
 * remembered, because "may not be executed" is the better answer than "not found".
 */
#include "program/find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/mem.h"

#define SETTLED_S 1 /* seconds after which a further change has another time */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

int program_find_exit(enum tide_code code)
{
    return code == TIDE_NOT_FOUND ? 127 : code == TIDE_DENIED ? 126 : tide_code_exit(code);
}

/* 0, or why this file cannot be run. */
static int why_not(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static void put_path(struct buf *out, const char *cwd, struct str dir, const char *name)
{
    buf_clear(out);
    if (dir.len == 0 || dir.ptr[0] != '/') { /* an empty entry of $PATH is where we are */
        buf_add_str(out, str_from(cwd));
        buf_add_char(out, '/');
    }
    buf_add_str(out, dir);
    if (dir.len > 0)
        buf_add_char(out, '/');
    buf_add_str(out, str_from(name));
}

static enum tide_code found(struct buf *path, const char *name, int errnum, struct tide_err *err)
{
    if (!path->failed && errnum == 0)
        return TIDE_OK;
    tide_fail(err, !path->failed && (errnum == EISDIR || errnum == EACCES) ? TIDE_DENIED : TIDE_NOT_FOUND, "%.200s: %s",
              name,
              path->failed       ? "the path is too long"
              : errnum == EISDIR ? "is a directory"
              : errnum == EACCES ? "may not be executed (chmod +x)"
                                 : "no such program");
    return tide_about(err, TIDE_SUBJECT_FILE, name);
}

const char *program_path(void)
{
    const char *dirs = getenv("PATH");

    return dirs ? dirs : PATH_DEFAULT;
}

static int search_path(const char *name, const char *cwd, const char *dirs, struct buf *ret_path)
{
    int worst = ENOENT;

    for (;; dirs++) {
        size_t n = strcspn(dirs, ":");
        int errnum;

        put_path(ret_path, cwd, (struct str){dirs, n}, name);
        errnum = why_not(buf_cstr(ret_path));
        if (errnum == 0)
            return 0;
        worst = errnum == EACCES ? EACCES : worst;
        dirs += n;
        if (!*dirs)
            return worst;
    }
}

enum tide_code program_find(const char *name, const char *cwd, struct buf *ret_path, struct tide_err *err)
{
    return program_find_in(program_path(), name, cwd, ret_path, err);
}

enum tide_code program_find_in(const char *dirs, const char *name, const char *cwd, struct buf *ret_path,
                               struct tide_err *err)
{
    if (!*name)
        return tide_fail(err, TIDE_NOT_FOUND, "the name of the program is empty");
    if (!strchr(name, '/'))
        return found(ret_path, name, search_path(name, cwd, dirs, ret_path), err);
    buf_clear(ret_path);
    if (name[0] == '/')
        buf_add_str(ret_path, str_from(name));
    else
        put_path(ret_path, cwd, (struct str){NULL, 0}, name);
    return found(ret_path, name, why_not(buf_cstr(ret_path)), err);
}

/* Empty of a file that was changed a moment ago: it may change once more within the same tick of the clock. */
static void stat_text(int fd, char out[PROGRAM_STAT_SIZE])
{
    struct timespec now;
    struct stat st;

    out[0] = '\0';
    if (fd >= 0 && fstat(fd, &st) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
        now.tv_sec - st.st_ctime > SETTLED_S)
        snprintf(out, PROGRAM_STAT_SIZE, "%jx %jx %jd %jd.%09ld %jd.%09ld", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
                 (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (intmax_t)st.st_ctim.tv_sec,
                 st.st_ctim.tv_nsec);
}

static enum tide_code digest_file(int fd, const char *path, char ret_hex[PROGRAM_DIGEST_SIZE], struct tide_err *err)
{
    enum { PIECE = 64 << 10 };
    AUTO(mem_freep) char *piece = mem_alloc(PIECE);
    unsigned char out[DIGEST_SIZE];
    struct digest_state d;
    ssize_t n = -1;

    digest_begin(&d, NULL);
    while (fd >= 0 && ((n = read(fd, piece, PIECE)) > 0 || (n < 0 && errno == EINTR)))
        digest_add(&d, piece, n > 0 ? (size_t)n : 0);
    if (n < 0)
        return tide_fail_file(err, errno, "read", path);
    digest_end(&d, out);
    hex_encode(ret_hex, out, sizeof(out));
    return TIDE_OK;
}

enum tide_code program_digest(const char *path, struct program_file *f, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char before[PROGRAM_STAT_SIZE];
    enum tide_code code = TIDE_OK;

    stat_text(fd, before);
    if (!before[0] || !f->digest[0] || strcmp(f->stat, before) != 0) {
        code = digest_file(fd, path, f->digest, err);
        stat_text(fd, f->stat);
        if (strcmp(f->stat, before) != 0) /* it changed under our eyes */
            f->stat[0] = '\0';
    }
    if (fd >= 0)
        close(fd);
    return code;
}
