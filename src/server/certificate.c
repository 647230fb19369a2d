/* SPDX-License-Identifier: Apache-2.0 */
#include "server/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/replace_file.h"
#include "env/user_key.h"

#define OWN_NAME "server-tls.pem"
#define PEM_MAX ((size_t)1 << 20)

enum pem_kind { PEM_PUBLIC, PEM_SECRET };

static enum tide_code check_secret(int fd, const char *path, struct tide_err *err)
{
    struct stat st;

    if (fstat(fd, &st))
        return tide_fail_file(err, errno, "look at", path);
    if (!S_ISREG(st.st_mode) || st.st_mode & 077)
        return tide_fail(err, TIDE_DENIED,
                         "the key in '%s' can be read by others: `chmod 600` it, or better make another", path);
    return TIDE_OK;
}

static enum tide_code read_pem(const char *path, enum pem_kind kind, struct buf *ret, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), failed;
    enum tide_code code;

    if (fd < 0)
        return tide_fail_file(err, errno, "open", path);
    code = kind == PEM_SECRET ? check_secret(fd, path, err) : TIDE_OK;
    failed = code ? 0 : buf_read_fd(ret, fd);
    close(fd);
    if (failed)
        return tide_fail_file(err, failed, "read", path);
    if (!code && (ret->failed || memchr(buf_view(ret).ptr, 0, ret->len)))
        return tide_fail(err, TIDE_INVALID, "'%s' is not a PEM file", path);
    return code;
}

/* One file holds both, so that there is never one without the other. */
static enum tide_code make_own(const char *path, const char *const *names, struct certificate *c, struct tide_err *err)
{
    struct buf both = BUF_INIT(PEM_MAX);
    int dir = -1;
    enum tide_code code = tls_make_certificate(names, &c->pem, &c->key, err);

    buf_add_str(&both, buf_view(&c->pem));
    buf_add_str(&both, buf_view(&c->key));
    code = code ? code : file_lock_dir(path, &dir, err);
    code = code ? code : file_replace(path, dir, buf_view(&both), err);
    if (dir >= 0)
        close(dir);
    if (both.ptr)
        sodium_memzero(both.ptr, both.cap);
    buf_done(&both);
    return code;
}

static enum tide_code read_own(const char *const *names, struct certificate *c, struct tide_err *err)
{
    enum tide_code code;

    if (!user_state_path(OWN_NAME, true, c->path, sizeof c->path))
        return tide_fail(err, TIDE_DENIED,
                         "the state directory cannot be written, and the server's certificate belongs there: set "
                         "XDG_STATE_HOME to a directory of yours, or name a certificate and its key");
    if (access(c->path, F_OK) && errno == ENOENT)
        return make_own(c->path, names, c, err);
    code = read_pem(c->path, PEM_SECRET, &c->pem, err);
    if (!code)
        buf_add_str(&c->key, buf_view(&c->pem));
    return code;
}

enum tide_code certificate_read(const char *file, const char *key_file, const char *const *names,
                                struct certificate *ret, struct tide_err *err)
{
    struct certificate c = {.pem = BUF_INIT(PEM_MAX), .key = BUF_INIT(PEM_MAX)};
    char fingerprint[TLS_FINGERPRINT_SIZE];
    enum tide_code code;

    if (!file)
        code = read_own(names, &c, err);
    else
        code = read_pem(file, PEM_PUBLIC, &c.pem, err) ? err->code : read_pem(key_file, PEM_SECRET, &c.key, err);
    if (!code && tls_check_certificate(buf_cstr(&c.pem), buf_cstr(&c.key), fingerprint, err))
        code = tide_wrap(err, "%s", file ? file : c.path);
    code = code ? code : tls_pin(buf_cstr(&c.pem), c.pin, err);
    if (code)
        certificate_done(&c);
    else
        *ret = c;
    return code;
}

void certificate_done(struct certificate *c)
{
    if (c->key.ptr)
        sodium_memzero(c->key.ptr, c->key.cap);
    if (c->pem.ptr)
        sodium_memzero(c->pem.ptr, c->pem.cap);
    buf_done(&c->pem);
    buf_done(&c->key);
}

bool certificate_own_pin(char ret[TLS_PIN_SIZE])
{
    struct certificate c = {.pem = BUF_INIT(PEM_MAX), .key = BUF_INIT(PEM_MAX)};
    struct tide_err ignored;
    bool found = user_state_path(OWN_NAME, false, c.path, sizeof c.path) &&
                 !read_pem(c.path, PEM_SECRET, &c.pem, &ignored) && !tls_pin(buf_cstr(&c.pem), ret, &ignored);

    certificate_done(&c);
    return found;
}
