/* SPDX-License-Identifier: Apache-2.0 */
/* What is right by its type and may still mean nothing: permissions, hooks, keys and stores, as agents will read them. */
#include "engine/settings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/hook.h"
#include "agent/permit.h"
#include "base/clock.h"
#include "engine/notify.h"
#include "engine/store_url.h"
#include "program/find.h"

/* ---- one that is to be set ---- */

static void first_report(void *arg, const char *hook, const char *what)
{
    struct tide_err *err = arg;

    if (!err->code)
        tide_fail(err, TIDE_INVALID, "hook '%s': %s", hook, what);
}

/* What only the agent understands: a file with it would break every chat. */
static enum tide_code check_value(const char *key, const char *value, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct permits *permits = NULL;
    struct tide_err reported = {0};
    struct json *json = NULL;

    if (value && strcmp(key, "store") == 0)
        return store_url_check(value, "config set store", err);
    if (!value || json_parse(&a, str_from(value), NULL, &json, NULL, NULL) || json->type != JSON_ARRAY)
        return TIDE_OK; /* config_set() says what is wrong with it */
    if (strcmp(key, "permissions") == 0 && permits_parse(str_from(value), &permits, err))
        return tide_wrap(err, "config set permissions");
    permits_free(permits);
    if (strcmp(key, "hooks") == 0) {
        struct hooks *hooks = hooks_new(0, first_report, &reported);
        enum tide_code code = hooks_load(hooks, str_from(value), err);

        hooks_free(hooks);
        if (!code && reported.code)
            code = tide_err_copy(err, &reported);
        if (code)
            return tide_wrap(err, "config set hooks");
    }
    return TIDE_OK;
}

enum tide_code settings_set(const char *file, const char *key, const char *value, struct tide_err *err)
{
    AUTO(settings_done) struct settings s = {0};

    if (check_value(key, value, err))
        return tide_about(err, TIDE_SUBJECT_KEY, key);
    return settings_find(file, &s, err) ? err->code : config_set(s.path, key, value, err);
}

/* ---- all that there are ---- */

static void problem(void *report, const char *line)
{
    findings_add(&((struct check_report *)report)->found, NULL, NULL, line, NULL);
}

static void hook_problem(void *report, const char *hook, const char *what)
{
    AUTO(buf_done) struct buf line = BUF_INIT(2048);

    buf_addf(&line, "hook '%.100s': %s", hook, what);
    problem(report, buf_cstr(&line));
}

static void check_hooks(struct check_report *c, const struct settings *s, struct tide_err *err)
{
    struct hooks *h = hooks_new(0, hook_problem, c);
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)2 << 20);

    if (hooks_load(h, config_json(s->config, "hooks"), err))
        problem(c, err->msg);
    if (config_text(s->config, "hooks_file")) {
        enum tide_code code = settings_read(s, "hooks_file", &text, err);

        if (!code && hooks_load(h, buf_view(&text), err))
            code = tide_wrap(err, "hooks_file: %.100s", config_text(s->config, "hooks_file"));
        if (code)
            problem(c, err->msg);
    }
    hooks_check_programs(h);
    hooks_free(h);
}

/* Not the keychain: looking there may ask somebody to unlock it. */
static void check_key(struct check_report *c, const struct settings *s, struct tide_err *err)
{
    const char *ref = config_text(s->config, "api_key");
    AUTO(buf_done) struct buf key = BUF_INIT((size_t)64 << 10);

    if (ref && strncmp(ref, "keychain:", strlen("keychain:")) == 0)
        return;
    if (config_api_key(s->config, config_text(s->config, "provider"), &key, err))
        problem(c, err->msg);
    if (key.ptr)
        explicit_bzero(key.ptr, key.cap);
}

static void check_notify(struct check_report *c, const char *file, struct tide_err *err)
{
    AUTO(notify_settings_done) struct notify_settings n = {.argv = NULL};
    AUTO(buf_done) struct buf path = BUF_INIT(PROGRAM_PATH_MAX);

    if (notify_settings_read(file, &n, err))
        return; /* its type was reported */
    if (n.argv && program_find(n.argv[0], ".", &path, err)) {
        tide_wrap(err, "notify");
        problem(c, err->msg);
    }
}

enum tide_code settings_check(const char *file, bool verbose, const char *format, struct settings *ret,
                              struct check_report *ret_report, struct tide_err *err)
{
    struct permits *p = NULL;
    struct tide_err why;
    const char *store;

    if (settings_find(file, ret, err))
        return err->code;
    if (ret->named && access(ret->path, F_OK) != 0)
        return tide_fail_file(err, errno, "read", ret->path);
    *ret_report = (struct check_report){.file = ret->path};
    ret->config = config_check(ret->path, problem, ret_report);
    if (permits_parse(config_json(ret->config, "permissions"), &p, &why) || permits_check_tools(p, &why))
        problem(ret_report, why.msg);
    permits_free(p);
    check_hooks(ret_report, ret, &why);
    check_key(ret_report, ret, &why);
    check_notify(ret_report, file, &why);
    store = config_text(ret->config, "store");
    if (store && store_url_check(store, "store", &why))
        problem(ret_report, why.msg);
    if (settings_log(ret, verbose, format, wall_ms, &why))
        problem(ret_report, why.msg);
    ret_report->ok = ret_report->found.n == 0;
    return TIDE_OK;
}
