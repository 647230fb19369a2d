/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the user's key comes from, in this order: the descriptor $TIDEMARK_ORIGIN_KEY_FD, the file $TIDEMARK_ORIGIN_KEY_FILE,
 * $TIDEMARK_ORIGIN_KEY itself, and else tidemark/origin.key in the state directory ($XDG_STATE_HOME, ~/.local/state), which
 * is made at first use: 0600, 64 hexadecimal digits of 256 random bits. One newline at its end is not part of a key.
 *
 * Several processes may be first at once: each writes a file of its own, and the first to link it under the name wins.
 */
#include "env/user_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define KEY_MIN 16
#define KEY_MAX 64
#define NAME "origin.key"
#define PLACES "origin.places"       /* a line for each */
#define PLACES_MAX ((size_t)1 << 20) /* bytes that are read of it */

static enum tide_code take_key(struct user_key *k, const char *from, const unsigned char *bytes, size_t len,
                               struct tide_err *err)
{
    if (len > 0 && bytes[len - 1] == '\n')
        len--;
    if (len < KEY_MIN || len > KEY_MAX)
        return tide_fail(err, TIDE_INVALID, "%s: a key of origin has 16 to 64 bytes, this one has %s", from,
                         len < KEY_MIN ? "fewer" : "more");
    memcpy(k->key.bytes, bytes, len);
    k->key.len = len;
    snprintf(k->from, sizeof k->from, "%s", from);
    return TIDE_OK;
}

/* What came through a pipe is gone with the first look: the same descriptor gives it again to processes that we start. */
static void keep_for_children(int fd, const void *bytes, size_t len)
{
    int copy = memfd_create("tidemark origin key", 0);

    if (copy < 0)
        return;
    if (write(copy, bytes, len) == (ssize_t)len)
        (void)dup2(copy, fd);
    close(copy);
}

static enum tide_code read_fd(struct user_key *k, int fd, const char *from, struct tide_err *err)
{
    unsigned char bytes[KEY_MAX + 2]; /* one more than a key and its newline shows that it is too long */
    bool seekable = lseek(fd, 0, SEEK_CUR) >= 0;
    enum tide_code code;
    size_t len = 0;
    ssize_t n;

    /*
     * From its beginning, where it has one: a process that was started by another finds it read. Not by buf_read_fd(): a key
     * stays on the stack, which is wiped.
     */
    do {
        n = seekable ? pread(fd, bytes + len, sizeof bytes - len, (off_t)len)
                     : read(fd, bytes + len, sizeof bytes - len);
        len += n > 0 ? (size_t)n : 0;
    } while (len < sizeof bytes && (n > 0 || (n < 0 && errno == EINTR)));
    code = n < 0 ? tide_fail_errno(err, errno, "%s: read the key of origin", from) : take_key(k, from, bytes, len, err);
    if (!code && !seekable)
        keep_for_children(fd, bytes, len);
    explicit_bzero(bytes, sizeof bytes);
    return code;
}

static enum tide_code read_file(struct user_key *k, const char *path, bool own, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    enum tide_code code = TIDE_OK;
    struct stat st;

    if (fd < 0 && errno == ENOENT && own && lstat(path, &st) == 0)
        return tide_fail(err, TIDE_DENIED,
                         "the key of origin '%.200s' is a link to a file that is not there: put the file itself there",
                         path);
    if (fd < 0)
        return tide_fail_file(err, errno, "open the key of origin", path);
    if (own && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        code = tide_fail(err, TIDE_DENIED,
                         "the key of origin '%.200s' is not a regular file: put the file itself there", path);
    else if (own && st.st_mode & 077)
        code =
            tide_fail(err, TIDE_DENIED,
                      "the key of origin '%.200s' can be read by others: `chmod 600` it, or remove it and trust your "
                      "sessions again",
                      path);
    code = code ? code : read_fd(k, fd, path, err);
    close(fd);
    return code;
}

/* ---- the one in the state directory ---- */

static enum tide_code state_dir(char out[PATH_MAX], struct tide_err *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = -1;

    if (state && state[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/tidemark", state);
    else if (home && home[0] == '/')
        n = snprintf(out, PATH_MAX, "%s/.local/state/tidemark", home);
    return n > 0 && n < PATH_MAX - 64
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "no state directory for the key of origin: neither HOME nor XDG_STATE_HOME is set");
}

static int make_dirs(char *path)
{
    for (char *p = path + 1;; p++) {
        char kept = *p;

        if (kept && kept != '/')
            continue;
        *p = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            *p = kept;
            return -1;
        }
        *p = kept;
        if (!kept)
            return 0;
    }
}

static int write_all(int fd, const char *text, size_t len)
{
    return write(fd, text, len) == (ssize_t)len && fsync(fd) == 0 ? 0 : -1;
}

static int sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (fd < 0)
        return -1;
    rc = fsync(fd);
    close(fd);
    return rc;
}

/* On disk before anything is proved by it. Somebody else's that was faster stays. */
static enum tide_code make_file(const char *dir, const char *path, struct tide_err *err)
{
    unsigned char random[32];
    char hex[66], fresh[PATH_MAX + 64];
    int fd, rc;

    randombytes_buf(random, sizeof random);
    sodium_bin2hex(hex, sizeof hex, random, sizeof random);
    hex[64] = '\n';
    explicit_bzero(random, sizeof random);
    snprintf(fresh, sizeof fresh, "%s/.%s.%ld", dir, NAME, (long)getpid());
    (void)unlink(fresh); /* of a process of this number that was killed here */
    fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tide_fail_file(err, errno, "make the key of origin in", dir);
    rc = write_all(fd, hex, 65);
    explicit_bzero(hex, sizeof hex);
    if (rc == 0 && link(fresh, path) != 0 && errno != EEXIST)
        rc = -1;
    if (rc != 0)
        tide_fail_file(err, errno, "make the key of origin", path);
    close(fd);
    (void)unlink(fresh);
    return rc || sync_dir(dir) ? (rc ? err->code : tide_fail_file(err, errno, "sync", dir)) : TIDE_OK;
}

static enum tide_code own_key(struct user_key *k, bool make, struct tide_err *err)
{
    char dir[PATH_MAX], path[PATH_MAX + 16];
    enum tide_code code = state_dir(dir, err);

    if (code)
        return code;
    snprintf(path, sizeof path, "%s/%s", dir, NAME);
    code = read_file(k, path, true, err);
    if (code != TIDE_NOT_FOUND || !make)
        return code;
    if (make_dirs(dir))
        return tide_fail_errno(err, errno, "make the directory '%.200s' for the key of origin", dir);
    code = make_file(dir, path, err);
    code = code ? code : read_file(k, path, true, err);
    k->made = !code;
    return code;
}

static enum tide_code find_key(struct user_key *k, bool make, struct tide_err *err)
{
    const char *fd = getenv("TIDEMARK_ORIGIN_KEY_FD"), *file = getenv("TIDEMARK_ORIGIN_KEY_FILE"),
               *key = getenv("TIDEMARK_ORIGIN_KEY");
    int64_t number = -1;
    struct tide_err why = {.msg = ""};

    if (fd && *fd) {
        if (!str_to_int64(str_from(fd), &number) || number < 0 || number > INT_MAX)
            return tide_fail(err, TIDE_INVALID, "TIDEMARK_ORIGIN_KEY_FD: '%.20s' is not a descriptor", fd);
        return read_fd(k, (int)number, "TIDEMARK_ORIGIN_KEY_FD", err);
    }
    if (file && *file)
        return read_file(k, file, false, err) ? tide_wrap(err, "TIDEMARK_ORIGIN_KEY_FILE") : TIDE_OK;
    if (key && *key)
        return take_key(k, "TIDEMARK_ORIGIN_KEY", (const unsigned char *)key, strlen(key), err);
    if (!own_key(k, make, &why) || (!make && why.code == TIDE_NOT_FOUND))
        return TIDE_OK;
    snprintf(k->why, sizeof k->why, "%s", why.msg);
    if (!make)
        return TIDE_OK;
    /* Better than not to begin at all: what is made now can be continued once somebody has looked at it. */
    randombytes_buf(k->key.bytes, 32);
    k->key.len = 32;
    return TIDE_OK;
}

enum tide_code user_key(bool make, struct user_key *ret, struct tide_err *err)
{
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
    static struct user_key kept;
    enum tide_code code = TIDE_OK;

    pthread_mutex_lock(&mu);
    if (!kept.key.len)
        code = find_key(&kept, make, err);
    *ret = kept;
    pthread_mutex_unlock(&mu);
    return code;
}

bool user_state_path(const char *name, bool make, char *out, size_t size)
{
    struct tide_err ignored;
    char dir[PATH_MAX];

    if (state_dir(dir, &ignored) || (make && make_dirs(dir)) || (make && access(dir, W_OK) != 0))
        return false;
    return (size_t)snprintf(out, size, "%s/%s", dir, name) < size;
}

/* ---- places that were opened ---- */

static bool places_path(bool make, char out[PATH_MAX])
{
    return user_state_path(PLACES, make, out, PATH_MAX);
}

static bool has_line(struct str text, struct str line)
{
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len;

        if (str_eq((struct str){text.ptr, n}, line))
            return true;
        n += end != NULL;
        text = (struct str){text.ptr + n, text.len - n};
    }
    return false;
}

bool user_place_is_known(const char *url)
{
    AUTO(buf_done) struct buf text = BUF_INIT(PLACES_MAX);
    char path[PATH_MAX];
    int bad;

    if (strchr(url, '\n') || !places_path(true, path))
        return true;
    bad = buf_read_file(&text, path);
    if (bad == ENOENT)
        return false;
    return bad || text.failed || has_line(buf_view(&text), str_from(url));
}

void user_place_note(const char *url)
{
    AUTO(buf_done) struct buf line = BUF_INIT(PATH_MAX + 64);
    char path[PATH_MAX];
    int fd;

    if (user_place_is_known(url) || !places_path(false, path))
        return;
    buf_addf(&line, "%s\n", url);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    (void)!write_all(fd, line.ptr, line.len);
    close(fd);
}
