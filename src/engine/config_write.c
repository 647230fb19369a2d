/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing one key of the file. Everything else in it is kept as it stands, what we do not know included; only the space
 * between members becomes one line each.
 *
 * Order: the directory is locked (two that change at once would lose one change), the file read, a new one written beside
 * it and synced, then put in its place, then the directory synced. A symbolic link is followed: what it points to is
 * replaced, the link stays.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "engine/config_value.h"
#include "engine/replace_file.h"

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
    enum tide_code code = file_lock_dir(path, &dir, err);

    if (!code)
        code = check_target(path, err);
    if (!code)
        code = config_file_read(&a, path, &object, err);
    if (!code && render_object(&a, object, name, value, &text))
        code = text.failed ? tide_fail(err, TIDE_TOO_BIG, "%.150s: would have more than %zu bytes", path, text.max)
                           : file_replace(path, dir, buf_view(&text), err);
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
    if (value && file_make_dirs(real, err))
        return err->code;
    return change_value(real, key, json, err);
}
