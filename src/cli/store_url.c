/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Store, key and limits from options, environment and, where these say nothing, config.json: a command that is told which
 * store does not read it.
 *
 * A key never stands in an argument: those are seen by every user of the machine. It comes from a file, a descriptor or
 * the environment, in this order: --key-fd, --key-file, TIDEMARK_KEY_FILE, TIDEMARK_KEY. One newline at its end is not
 * part of it.
 */
#include "cli/store_url.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/advice.h"
#include "cli/args_check.h"
#include "cli/settings.h"

#define DEFAULT_SCHEME "sqlite:"
#define FILES_SCHEME "files:"
#define KNOWN_STORES "sqlite:PATH or files:DIR"
#define SWEEP_INTERVAL_MS 30000

size_t store_url_scheme(const char *url)
{
    size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789+");

    return n > 1 && url[n] == ':' ? n + 1 : 0;
}

const char *store_url_path(const char *url)
{
    return url + store_url_scheme(url);
}

static enum tide_code from_xdg(struct buf *url, struct tide_err *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

    if (data && data[0] == '/') /* the specification: a relative one is to be ignored */
        buf_addf(url, DEFAULT_SCHEME "%s/tidemark/tidemark.db", data);
    else if (home && home[0] == '/')
        buf_addf(url, DEFAULT_SCHEME "%s/.local/share/tidemark/tidemark.db", home);
    else
        return tide_fail(err, TIDE_INVALID, "find the store: neither HOME nor XDG_DATA_HOME is set: give --store PATH");
    return TIDE_OK;
}

bool store_url_is_files(const char *url)
{
    return strncmp(url, FILES_SCHEME, strlen(FILES_SCHEME)) == 0;
}

/* Behind "files:" no shell puts the home directory for a '~'. A directory is the same one with slashes at its end. */
static enum tide_code put_path(const char *path, const char *from, bool is_dir, struct buf *url, struct tide_err *err)
{
    const char *home = getenv("HOME");
    size_t len = strlen(path);

    while (is_dir && len > 1 && path[len - 1] == '/')
        len--;
    if (path[0] == '~' && (len == 1 || path[1] == '/')) {
        if (!home || home[0] != '/')
            return tide_fail(err, TIDE_INVALID, "%s: HOME is not set, which '~' stands for: give the whole path", from);
        buf_addf(url, "%s", home);
        path++;
        len--;
    }
    buf_add(url, path, len);
    return TIDE_OK;
}

enum tide_code store_url_given(const char *given, const char *from, struct buf *ret_url, struct tide_err *err)
{
    size_t scheme = store_url_scheme(given);

    if (scheme && !store_url_is_files(given) && strncmp(given, DEFAULT_SCHEME, scheme) != 0)
        return tide_fail(err, TIDE_INVALID, "%s: unknown kind of store '%.*s': this version knows " KNOWN_STORES, from,
                         (int)(scheme < 40 ? scheme : 40), given);
    if (!given[scheme])
        return tide_fail(err, TIDE_INVALID, "%s: the path is empty: give " KNOWN_STORES ", or the path of a database",
                         from);
    if (!scheme) {
        buf_addf(ret_url, DEFAULT_SCHEME "%s", given);
        return TIDE_OK;
    }
    buf_add(ret_url, given, scheme);
    return put_path(given + scheme, from, store_url_is_files(given), ret_url, err);
}

enum tide_code store_url(const struct cli *cli, struct buf *ret_url, struct tide_err *err)
{
    const char *given = args_text(&cli->args, "store"), *variable = getenv("TIDEMARK_STORE");
    AUTO(mem_freep) char *set = NULL;

    if (given)
        return store_url_given(given, "--store", ret_url, err);
    if (variable && *variable)
        return store_url_given(variable, "TIDEMARK_STORE", ret_url, err);
    if (settings_one_path(cli, "store", &set, err))
        return err->code;
    return set ? store_url_given(set, "store of config.json", ret_url, err) : from_xdg(ret_url, err);
}

static enum tide_code check_key_len(const char *from, size_t len, struct tide_err *err)
{
    if (len >= 16 && len <= STORE_KEY_MAX)
        return TIDE_OK;
    return tide_fail(err, TIDE_INVALID, "%s: a key has 16 to 64 bytes, this one has %s%zu", from,
                     len > STORE_KEY_MAX ? "more than " : "", len > STORE_KEY_MAX ? (size_t)STORE_KEY_MAX : len);
}

/* Reads the key from a descriptor; one byte more than a key and its newline shows that it is too long. */
static enum tide_code key_from_fd(int fd, const char *from, unsigned char key[STORE_KEY_MAX], size_t *ret_len,
                                  struct tide_err *err)
{
    unsigned char bytes[STORE_KEY_MAX + 2];
    size_t len = 0;
    ssize_t n;

    do {
        n = read(fd, bytes + len, sizeof(bytes) - len);
        len += n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    if (n < 0)
        return tide_fail_errno(err, errno, "%s: read the key", from);
    if (len > 0 && len <= STORE_KEY_MAX + 1 && bytes[len - 1] == '\n')
        len--;
    if (check_key_len(from, len, err))
        return err->code;
    memcpy(key, bytes, len);
    explicit_bzero(bytes, sizeof(bytes));
    *ret_len = len;
    return TIDE_OK;
}

static enum tide_code key_from_file(const char *path, const char *from, unsigned char key[STORE_KEY_MAX],
                                    size_t *ret_len, struct tide_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum tide_code code;

    if (fd < 0)
        return tide_fail_errno(err, errno, "%s: open '%.200s'", from, path);
    code = key_from_fd(fd, from, key, ret_len, err);
    close(fd);
    return code;
}

enum tide_code store_key_file(const char *path, const char *from, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                              struct tide_err *err)
{
    return advise(key_from_file(path, from, ret_key, ret_len, err), "give a file that holds the key", err);
}

static enum tide_code find_key(const struct args *args, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                               struct tide_err *err)
{
    const char *option_file = args_text(args, "key-file"), *file = getenv("TIDEMARK_KEY_FILE");
    const char *key = getenv("TIDEMARK_KEY");

    *ret_len = 0;
    if (args_on(args, "key-fd"))
        return key_from_fd((int)args_int(args, "key-fd", -1), "--key-fd", ret_key, ret_len, err);
    if (option_file)
        return key_from_file(option_file, "--key-file", ret_key, ret_len, err);
    if (file && *file)
        return key_from_file(file, "TIDEMARK_KEY_FILE", ret_key, ret_len, err);
    if (!key || !*key)
        return TIDE_OK;
    if (check_key_len("TIDEMARK_KEY", strlen(key), err))
        return err->code;
    *ret_len = strlen(key);
    memcpy(ret_key, key, *ret_len);
    return TIDE_OK;
}

enum tide_code store_key(const struct args *args, unsigned char ret_key[STORE_KEY_MAX], size_t *ret_len,
                         struct tide_err *err)
{
    return advise(find_key(args, ret_key, ret_len, err), "give a file that holds the key: --key-file FILE", err);
}

enum tide_code store_max_record(size_t *ret_bytes, struct tide_err *err)
{
    static const struct opt limit = {.min = 1024, .max = 1 << 30};
    const char *text = getenv("TIDEMARK_MAX_RECORD_BYTES");
    struct arg_value value = {.number = TIDE_MAX_RECORD_BYTES};

    if (text && *text && args_check("TIDEMARK_MAX_RECORD_BYTES", VALUE_INT, &limit, text, &value, err))
        return err->code;
    *ret_bytes = (size_t)value.number;
    return TIDE_OK;
}

enum tide_code store_sweep_interval(const struct cli *cli, int64_t *ret_ms, struct tide_err *err)
{
    static const struct opt any = {.max = 0};
    const char *variable = getenv("TIDEMARK_SWEEP_INTERVAL"), *from = "TIDEMARK_SWEEP_INTERVAL";
    struct arg_value value = {.number = SWEEP_INTERVAL_MS};
    AUTO(mem_freep) char *set = NULL;

    if (!variable || !*variable) {
        if (settings_one(cli, "sweep_interval", &set, err))
            return err->code;
        variable = set;
        from = "sweep_interval of config.json";
    }
    if (variable && args_check(from, VALUE_DURATION, &any, variable, &value, err))
        return err->code;
    *ret_ms = value.number;
    return TIDE_OK;
}
