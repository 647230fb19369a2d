/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing one key of the file. Everything else in it is kept as it stands, what we do not know included; only the space
 * between members becomes one line each.
 *
 * Order: the directory is locked (two that change at once would lose one change), the file read, a new one written beside
 * it and synced, then put in its place, then the directory synced. A symbolic link is followed: what it points to is
 * replaced, the link stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/config_value.h"

/* ---- the new text ---- */

static void put_member(struct buf *out, struct str key_raw, struct str value)
{
    buf_add_str(out, out->len > 1 ? STR(",\n  \"") : STR("\n  \""));
    buf_add_str(out, key_raw);
    buf_add_str(out, STR("\": "));
    buf_add_str(out, value);
}

/* `value` empty: without the key. False when nothing changes. */
static bool render_object(struct arena *a, const struct json *object, const char *name, struct str value,
                          struct buf *out)
{
    const struct config_key *key = config_key_find(name);
    bool found = false;

    buf_add_char(out, '{');
    for (const struct json *m = object->first; m; m = m->next) {
        const char *had = arena_dup(a, json_key_text(a, m)).ptr;

        if (strcmp(had, name) != 0 && (!key || config_key_find(had) != key)) {
            put_member(out, m->key, json_source(m));
            continue;
        }
        if (value.len > 0 && !found)
            put_member(out, m->key, value);
        found = true;
    }
    if (!found && value.len > 0)
        put_member(out, str_from(name), value);
    buf_add_str(out, out->len > 1 ? STR("\n}\n") : STR("}\n"));
    return found || value.len > 0;
}

/* ---- the file ---- */

static enum tide_code make_dirs(char *path, struct tide_err *err)
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

/* Descriptor of the file's directory, locked. */
static enum tide_code lock_dir(const char *path, int *ret_dir, struct tide_err *err)
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

static bool write_whole(int fd, struct str text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.ptr, text.len);

        if (n < 0 && errno != EINTR)
            return false;
        text.ptr += n > 0 ? n : 0;
        text.len -= n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) == 0;
}

/* mkostemp makes it 0600. */
static enum tide_code replace_file(const char *path, int dir, struct str text, struct tide_err *err)
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
    bad = write_whole(fd, text) ? 0 : errno;
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

static enum tide_code check_target(const char *path, struct tide_err *err)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && stat(path, &st) != 0)
        tide_fail(err, TIDE_NOT_FOUND, "%.150s: a link to a file that is not there: remove it", path);
    else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        tide_fail(err, TIDE_INVALID, "%.150s: not a file", path);
        tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"config\":null");
    } else
        return TIDE_OK;
    return tide_about(err, TIDE_SUBJECT_FILE, path);
}

static enum tide_code change_value(const char *path, const char *name, struct str value, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX);
    struct json *object = NULL;
    int dir = -1;
    enum tide_code code = lock_dir(path, &dir, err);

    if (!code)
        code = check_target(path, err);
    if (!code)
        code = config_file_read(&a, path, &object, err);
    if (!code && render_object(&a, object, name, value, &text))
        code = text.failed ? tide_fail(err, TIDE_TOO_BIG, "%.150s: would have more than %zu bytes", path, text.max)
                           : replace_file(path, dir, buf_view(&text), err);
    if (dir >= 0)
        close(dir);
    return code;
}

enum tide_code config_set(const char *path, const char *key, const char *value, struct tide_err *err)
{
    const struct config_key *k = config_key_find(key);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(mem_freep) char *real = realpath(path, NULL); /* so that a link is not replaced by a file */
    struct str json = STR("");
    struct json *v = NULL;

    ERR_LOCAL(err);
    if (!k && value)
        return config_key_unknown(key, err);
    if (value && config_value_parse(&a, k, value, &v, err)) {
        tide_wrap(err, "%s", key);
        return tide_about(err, TIDE_SUBJECT_KEY, key);
    }
    if (v)
        json = json_source(v);
    if (!real)
        real = mem_dup(str_from(path));
    if (value && make_dirs(real, err))
        return err->code;
    return change_value(real, key, json, err);
}
