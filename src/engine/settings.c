/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options and environment to an open config and a log that is set up. The file that nobody named may be missing; one
 * that somebody named and that is not there would otherwise be defaults that nobody asked for.
 */
#include "engine/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/config_value.h"
#include "base/log.h"
#include "base/number.h"
#include "engine/store_url.h"

#define READ_MAX ((size_t)1 << 20)
#define SWEEP_INTERVAL_MS 30000

static const char *set_variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

static enum tide_code ask_for_file(const char *what, struct tide_err *err)
{
    tide_fail(err, TIDE_INVALID, "%s", what);
    return tide_hint_with(err, TIDE_ACTION_REPEAT, "", "\"config\":null");
}

static enum tide_code from_xdg(struct buf *path, struct tide_err *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config && config[0] == '/') /* the specification: a relative one is to be ignored */
        buf_addf(path, "%s/tidemark/config.json", config);
    else if (home && home[0] == '/')
        buf_addf(path, "%s/.config/tidemark/config.json", home);
    else
        return ask_for_file("find the settings: neither HOME nor XDG_CONFIG_HOME is set", err);
    return TIDE_OK;
}

enum tide_code settings_find(const char *file, struct settings *ret_settings, struct tide_err *err)
{
    AUTO(buf_done) struct buf path = BUF_INIT(8192);
    const char *given = file ? file : set_variable("TIDEMARK_CONFIG");

    if (given && !*given) {
        tide_fail(err, TIDE_INVALID, "the path is empty: give a file");
        return file ? tide_about(err, TIDE_SUBJECT_ARGUMENT, "config") : tide_wrap(err, "TIDEMARK_CONFIG");
    }
    if (given)
        buf_add_str(&path, str_from(given));
    else if (from_xdg(&path, err))
        return err->code;
    if (path.failed)
        return ask_for_file("find the settings: the path is too long", err);
    *ret_settings = (struct settings){.path = buf_take(&path), .named = given != NULL};
    return TIDE_OK;
}

static enum tide_code find_file(const char *file, struct settings *ret_settings, struct tide_err *err)
{
    struct settings s = {0};

    if (settings_find(file, &s, err))
        return err->code;
    if (s.named && access(s.path, F_OK) != 0) {
        tide_fail(err, TIDE_NOT_FOUND, "%.150s: there is no such config file: make it, or name another", s.path);
        tide_about(err, TIDE_SUBJECT_FILE, s.path);
        settings_done(&s);
        return err->code;
    }
    *ret_settings = s;
    return TIDE_OK;
}

enum tide_code settings_open(const char *file, config_warn_fn *warn, void *arg, struct settings *ret_settings,
                             struct tide_err *err)
{
    struct settings s = {0};
    enum tide_code code = find_file(file, &s, err);

    if (!code)
        code = config_open(s.path, warn, arg, &s.config, err);
    if (code)
        settings_done(&s);
    else
        *ret_settings = s;
    return code;
}

void settings_done(struct settings *s)
{
    free(s->path);
    config_free(s->config);
    *s = (struct settings){0};
}

/* ---- one key ---- */

static enum tide_code read_one(const struct settings *s, const struct config_key *key, char **ret_text,
                               struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *object = NULL;
    struct str text;

    if (config_file_read(&a, s->path, &object, err))
        return err->code;
    for (const struct json *m = object->first; m; m = m->next) {
        if (config_key_find(arena_dup(&a, json_key_text(&a, m)).ptr) != key || m->type == JSON_NULL)
            continue;
        if (config_value_check(&a, key, m, err)) {
            tide_about(err, TIDE_SUBJECT_KEY, key->name);
            return tide_wrap(err, "%.150s: %s", s->path, key->name);
        }
        text = m->type == JSON_STRING ? json_text(&a, m) : json_source(m);
        if (text.len)
            *ret_text = mem_dup(text);
        return TIDE_OK;
    }
    return TIDE_OK;
}

static enum tide_code take_one(const char *file, const char *key, bool path, char **ret_text, struct tide_err *err)
{
    struct settings s = {0};
    enum tide_code code = find_file(file, &s, err);
    char *text = NULL;

    if (code)
        return file || set_variable("TIDEMARK_CONFIG") ? code : TIDE_OK; /* no home, no file: others say that */
    code = read_one(&s, config_key_find(key), &text, err);
    if (text && path && store_url_check(text, "store of config.json", err))
        code = tide_about(err, TIDE_SUBJECT_KEY, key);
    if (text && path && !code) {
        size_t scheme = store_url_scheme(text);
        AUTO(mem_freep) char *whole = text, *plain = settings_path(&s, whole + scheme);
        struct buf url = BUF_INIT(SIZE_MAX / 2);

        buf_addf(&url, "%.*s%s", (int)scheme, whole, plain);
        text = buf_take(&url);
    }
    settings_done(&s);
    *ret_text = text;
    return code;
}

enum tide_code settings_one(const char *file, const char *key, char **ret_text, struct tide_err *err)
{
    *ret_text = NULL;
    return take_one(file, key, false, ret_text, err);
}

enum tide_code settings_word(const char *file, const char *key, char **ret_text, char ret_from[SETTINGS_FROM_SIZE],
                             struct tide_err *err)
{
    const char *value = set_variable(config_variable(config_key_find(key), ret_from));

    *ret_text = value ? mem_dup(str_from(value)) : NULL;
    if (value)
        return TIDE_OK;
    snprintf(ret_from, SETTINGS_FROM_SIZE, "%s of config.json", key);
    return settings_one(file, key, ret_text, err);
}

enum tide_code settings_on_store_error(const char *file, bool *ret_continue, struct tide_err *err)
{
    AUTO(mem_freep) char *word = NULL;
    char from[SETTINGS_FROM_SIZE];

    if (settings_word(file, "on_store_error", &word, from, err))
        return err->code;
    *ret_continue = word && strcmp(word, "continue") == 0;
    if (!word || *ret_continue || strcmp(word, "stop") == 0)
        return TIDE_OK;
    tide_fail(err, TIDE_INVALID, "%s: '%.60s' is not one of: stop continue", from, word);
    return tide_about(err, TIDE_SUBJECT_KEY, "on_store_error");
}

enum tide_code settings_duration(const char *file, const char *key, int64_t otherwise_ms, int64_t *ret_ms,
                                 struct tide_err *err)
{
    AUTO(mem_freep) char *text = NULL;
    char from[SETTINGS_FROM_SIZE];

    if (settings_word(file, key, &text, from, err))
        return err->code;
    *ret_ms = otherwise_ms;
    return text && duration_check(from, text, ret_ms, err) ? tide_about(err, TIDE_SUBJECT_KEY, key) : TIDE_OK;
}

enum tide_code settings_sweep_interval(const char *file, int64_t *ret_ms, struct tide_err *err)
{
    return settings_duration(file, "sweep_interval", SWEEP_INTERVAL_MS, ret_ms, err);
}

void settings_key(const char *file, struct buf *ret_key)
{
    AUTO(settings_done) struct settings s = {0};
    AUTO(mem_freep) char *ref = NULL;
    const char *slash;
    struct tide_err ignored;

    if (find_file(file, &s, &ignored) || read_one(&s, config_key_find("api_key"), &ref, &ignored) || !ref ||
        strncmp(ref, "keychain:", strlen("keychain:")) == 0)
        return;
    slash = strrchr(s.path, '/');
    s.path[slash ? slash + 1 - s.path : 0] = '\0';
    (void)!config_key_read(ref, s.path, ret_key, &ignored);
}

enum tide_code settings_one_path(const char *file, const char *key, char **ret_path, struct tide_err *err)
{
    *ret_path = NULL;
    return take_one(file, key, true, ret_path, err);
}

char *settings_path(const struct settings *s, const char *path)
{
    struct buf out = BUF_INIT(SIZE_MAX / 2);
    const char *home = getenv("HOME"), *slash = strrchr(s->path, '/');

    if (strncmp(path, "~/", 2) == 0 && home)
        buf_addf(&out, "%s%s", strcmp(home, "/") == 0 ? "" : home, path + 1);
    else if (path[0] == '/' || !slash)
        buf_add_str(&out, str_from(path));
    else
        buf_addf(&out, "%.*s%s", (int)(slash - s->path) + 1, s->path, path);
    return buf_take(&out);
}

enum tide_code settings_read(const struct settings *s, const char *key, struct buf *ret_text, struct tide_err *err)
{
    AUTO(mem_freep) char *path = settings_path(s, config_text(s->config, key));
    AUTO(buf_done) struct buf text = BUF_INIT(READ_MAX);
    int bad = buf_read_file(&text, path);

    if (bad)
        tide_fail_errno(err, bad, "%s: %.150s", key, path);
    else if (text.failed)
        tide_fail(err, TIDE_TOO_BIG, "%s: %.150s: more than %zu bytes", key, path, READ_MAX);
    if (bad || text.failed)
        return tide_about(err, TIDE_SUBJECT_KEY, key);
    buf_add_str(ret_text, buf_view(&text));
    return TIDE_OK;
}

/* ---- the log ---- */

/* A setting of the log: of the config if it is open, else this key alone is looked at. */
static enum tide_code log_setting(const struct settings *s, struct arena *a, const char *name, const char **ret_text,
                                  struct tide_err *err)
{
    const struct config_key *key = config_key_find(name);
    char variable[CONFIG_VARIABLE_SIZE];
    AUTO(mem_freep) char *text = NULL;
    const char *env = set_variable(config_variable(key, variable));
    struct json *v = NULL;

    if (s->config) {
        *ret_text = config_text(s->config, name);
        return TIDE_OK;
    }
    if (env && config_value_parse(a, key, env, &v, err))
        return tide_wrap(err, "%s", variable);
    if (!env && read_one(s, key, &text, err))
        return err->code;
    *ret_text = v ? arena_dup(a, json_text(a, v)).ptr : arena_text(a, text);
    return TIDE_OK;
}

static int word_index(const char *words, const char *word)
{
    int i = 0;

    for (size_t len = strlen(word); *words; i++) {
        size_t n = strcspn(words, " ");

        if (n == len && memcmp(words, word, n) == 0)
            return i;
        words += n + (words[n] == ' ');
    }
    return 0;
}

/* An error is said by the command itself, on the same standard error. */
static void log_but_errors(void *arg, const struct tide_log_record *record)
{
    if (record->level != TIDE_LOG_ERROR)
        log_line(arg, record);
}

enum tide_code settings_log(const struct settings *s, bool verbose, const char *format, int64_t (*now_ms)(void),
                            struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const char *word = NULL, *as = NULL, *file = NULL;
    enum tide_log_level level;
    int fd = STDERR_FILENO;
    bool beside; /* what the command itself says to people */

    if (log_setting(s, &a, "log_level", &word, err) || log_setting(s, &a, "log_format", &as, err) ||
        log_setting(s, &a, "log_file", &file, err))
        return err->code;
    if (file) {
        AUTO(mem_freep) char *path = settings_path(s, file);

        /* A pipe that nobody reads must hold up neither this nor a record. */
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        if (fd < 0 && errno == ENXIO)
            tide_fail(err, TIDE_IO, "log_file: %.150s: it has no reader: start its reader first, or name a file", path);
        else if (fd < 0)
            tide_fail_errno(err, errno, "log_file: %.150s", path);
        if (fd < 0)
            return tide_about(err, TIDE_SUBJECT_KEY, "log_file");
    }
    format = format ? format : as ? as : "text";
    beside = !file && strcmp(format, "json") != 0;
    level = verbose ? TIDE_LOG_DEBUG
            : word  ? (enum tide_log_level)(word_index("off error warn info debug", word))
                    : TIDE_LOG_WARN;
    log_line_setup(strcmp(format, "json") == 0 ? LOG_JSON : LOG_TEXT, fd, now_ms);
    tide_log_set(beside && level <= TIDE_LOG_WARN ? TIDE_LOG_OFF : level, beside ? log_but_errors : log_line, NULL);
    return TIDE_OK;
}

enum tide_code settings_log_alone(const char *file, bool verbose, const char *format, int64_t (*now_ms)(void),
                                  struct tide_err *err)
{
    AUTO(settings_done) struct settings s = {0};
    enum tide_code code = find_file(file, &s, err);

    if (code) /* no home, no file: others say that */
        return file || set_variable("TIDEMARK_CONFIG") ? code : TIDE_OK;
    return settings_log(&s, verbose, format, now_ms, err);
}
