/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store, key and limits from options, environment and, where these are not set, config.json: a command that is given
 * store does not read it.
 *
 * A key never stands in an argument: those are seen by every user of the machine. It comes from a file, a descriptor or
 * the environment, in this order: --key-fd, --key-file, TIDEMARK_KEY_FILE, TIDEMARK_KEY. One newline at its end is not
 * part of it.
 */
#include "engine/store_url.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/number.h"
#include "engine/settings.h"
#include "store/store.h"

#define DEFAULT_SCHEME "sqlite:"
#define FILES_SCHEME "files:"
#define KNOWN_STORES "sqlite:PATH or files:DIR"

size_t store_url_scheme(const char *url)
{
    size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+");

    return n > 1 && url[n] == ':' ? n + 1 : 0;
}

const char *store_url_path(const char *url)
{
    return url + store_url_scheme(url);
}

/* A home of "/" must not make "//…" of it, which a child of ours would refuse. */
static void add_under(struct buf *url, const char *dir, struct str rest)
{
    size_t len;

    while (dir[0] == '/' && dir[1] == '/')
        dir++;
    len = strlen(dir);
    while (len > 0 && dir[len - 1] == '/')
        len--;
    buf_add(url, dir, len);
    buf_add_str(url, rest);
}

static enum tide_code from_xdg(struct buf *url, struct tide_err *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    buf_add_str(url, STR(DEFAULT_SCHEME));
    if (data && data[0] == '/') /* the specification: a relative one is to be ignored */
        add_under(url, data, STR("/tidemark/tidemark.db"));
    else if (home && home[0] == '/')
        add_under(url, home, STR("/.local/share/tidemark/tidemark.db"));
    else {
        tide_fail(err, TIDE_INVALID, "find the store: neither HOME nor XDG_DATA_HOME is set");
        return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"store\":null");
    }
    return TIDE_OK;
}

bool store_url_is_default(const char *url)
{
    AUTO(buf_done) struct buf own = BUF_INIT(4096);
    struct tide_err ignored;

    return !from_xdg(&own, &ignored) && !own.failed && strcmp(buf_cstr(&own), url) == 0;
}

bool store_url_is_files(const char *url)
{
    return strncmp(url, FILES_SCHEME, strlen(FILES_SCHEME)) == 0;
}

/* Where no shell puts the home directory for a '~' we do. A directory is the same one with slashes at its end. */
static enum tide_code put_path(const char *path, bool is_dir, struct buf *url, struct tide_err *err)
{
    const char *home = getenv("HOME");
    size_t len = strlen(path);

    while (is_dir && len > 1 && path[len - 1] == '/')
        len--;
    if (path[0] == '~' && (len == 1 || path[1] == '/')) {
        if (!home || home[0] != '/')
            return tide_fail(err, TIDE_INVALID, "HOME is not set, which '~' needs: give the whole path");
        add_under(url, home, (struct str){path + 1, len - 1});
        return TIDE_OK;
    }
    while (path[0] == '/' && path[1] == '/' && len > 1) {
        path++;
        len--;
    }
    buf_add(url, path, len);
    return TIDE_OK;
}

/* files:///DIR is files:/DIR; with two slashes it is a host in other programs, and here it would be /DIR silently. */
static enum tide_code check_path(const char *given, size_t scheme, struct tide_err *err)
{
    const char *path = given + scheme;

    if (str_is_blank(str_from(path)))
        return tide_fail(err, TIDE_INVALID, "the path is empty: give " KNOWN_STORES ", or the path of a database");
    if (scheme && path[0] == '/' && path[1] == '/' && path[2] != '/')
        return tide_fail(err, TIDE_INVALID, "'%.60s': no store is on another machine: give %.*s/DIR or %.*sDIR", given,
                         (int)scheme, given, (int)scheme, given);
    if (path[0] == '~' && path[1] && path[1] != '/')
        return tide_fail(err, TIDE_INVALID,
                         "'%.60s': '~/' is only your own home directory: give the whole path, or put ./ before a "
                         "name that begins so",
                         path);
    return TIDE_OK;
}

/* `from` NULL: the argument of the call. */
static enum tide_code say_from(const char *from, struct tide_err *err)
{
    return from ? tide_wrap(err, "%s", from) : tide_about(err, TIDE_SUBJECT_ARGUMENT, "store");
}

enum tide_code store_url_check(const char *given, const char *from, struct tide_err *err)
{
    enum tide_code code = store_check_url(given, err);

    code = code ? code : check_path(given, store_url_scheme(given), err);
    return code ? say_from(from, err) : TIDE_OK;
}

enum tide_code store_url_given(const char *given, const char *from, struct buf *ret_url, struct tide_err *err)
{
    size_t scheme = store_url_scheme(given);

    if (store_url_check(given, from, err))
        return err->code;
    if (scheme)
        buf_add(ret_url, given, scheme);
    else
        buf_add_str(ret_url, STR(DEFAULT_SCHEME));
    return put_path(given + scheme, store_url_is_files(given), ret_url, err) ? say_from(from, err) : TIDE_OK;
}

enum tide_code store_url(const char *given, const char *config, struct buf *ret_url, struct tide_err *err)
{
    const char *variable = getenv("TIDEMARK_STORE");
    AUTO(mem_freep) char *set = NULL;

    if (given)
        return store_url_given(given, NULL, ret_url, err);
    if (variable && *variable)
        return store_url_given(variable, "TIDEMARK_STORE", ret_url, err);
    if (settings_one_path(config, "store", &set, err))
        return err->code;
    return set ? store_url_given(set, "store of config.json", ret_url, err) : from_xdg(ret_url, err);
}

static enum tide_code check_key_len(size_t len, struct tide_err *err)
{
    if (len >= 16 && len <= STORE_KEY_MAX)
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "a key has 16 to 64 bytes, this one has %s%zu",
                     len > STORE_KEY_MAX ? "more than " : "", len > STORE_KEY_MAX ? (size_t)STORE_KEY_MAX : len);
}

/*
 * Reads the key from a descriptor; one byte more than a key and its newline shows that it is too long. Not by buf_read_fd(): a
 * key stays on the stack, which is wiped.
 */
static enum tide_code key_from_fd(int fd, unsigned char key[STORE_KEY_MAX], size_t *ret_len, struct tide_err *err)
{
    unsigned char bytes[STORE_KEY_MAX + 2];
    enum tide_code code;
    size_t len = 0;
    ssize_t n;

    do {
        n = read(fd, bytes + len, sizeof(bytes) - len);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (len > 0 && len <= STORE_KEY_MAX + 1 && bytes[len - 1] == '\n')
        len--;
    code = n < 0 ? tide_fail_errno(err, errno, "read the key") : check_key_len(len, err);
    if (!code)
        memcpy(key, bytes, *ret_len = len);
    explicit_bzero(bytes, sizeof(bytes));
    return code;
}

enum tide_code store_key_file(const char *path, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                              struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum tide_code code;

    if (fd < 0)
        return tide_fail_errno(err, errno, "open '%.200s'", path);
    code = key_from_fd(fd, ret_key, ret_len, err);
    close(fd);
    return code;
}

enum tide_code store_key(const char *key_file, int key_fd, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                         struct tide_err *err)
{
    const char *file = getenv("TIDEMARK_KEY_FILE"), *key = getenv("TIDEMARK_KEY");

    *ret_len = 0;
    if (key_fd >= 0)
        return key_from_fd(key_fd, ret_key, ret_len, err) ? tide_about(err, TIDE_SUBJECT_ARGUMENT, "key_fd") : TIDE_OK;
    if (key_file)
        return store_key_file(key_file, ret_key, ret_len, err) ? tide_about(err, TIDE_SUBJECT_ARGUMENT, "key_file")
                                                               : TIDE_OK;
    if (file && *file)
        return store_key_file(file, ret_key, ret_len, err) ? tide_wrap(err, "TIDEMARK_KEY_FILE") : TIDE_OK;
    if (!key || !*key)
        return TIDE_OK;
    if (check_key_len(strlen(key), err))
        return tide_wrap(err, "TIDEMARK_KEY");
    *ret_len = strlen(key);
    memcpy(ret_key, key, *ret_len);
    return TIDE_OK;
}

enum tide_code store_max_record(size_t *ret_bytes, struct tide_err *err)
{
    const char *text = getenv("TIDEMARK_MAX_RECORD_BYTES");
    int64_t bytes = TIDE_MAX_RECORD_BYTES;

    if (text && *text && number_check("TIDEMARK_MAX_RECORD_BYTES", text, 1024, 1 << 30, &bytes, err))
        return tide_about(err, TIDE_SUBJECT_KEY, "TIDEMARK_MAX_RECORD_BYTES");
    *ret_bytes = (size_t)bytes;
    return TIDE_OK;
}
