/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark config list, get, set, check: the settings, where each comes from, and whether they are right. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/hook.h"
#include "agent/permit.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/terminal/table.h"
#include "engine/settings.h"
#include "engine/store_url.h"

#define VALUE_SHOWN 24 /* bytes of a value in a list on a terminal */

/* ---- list ---- */

static void list_json(struct out *out, const struct settings *s)
{
    static const char *const types[] = {"text", "int", "number", "bool", "word", "json"};
    struct json_out o = out_json(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("file"), str_from(s->path));
    json_out_key(&o, STR("keys"));
    json_out_begin(&o, '[');
    for (const struct config_key *k = config_keys; k->name; k++) {
        struct str value = config_json(s->config, k->name);

        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("key"), str_from(k->name));
        json_out_kraw(&o, STR("value"), value.len ? value : STR("null"));
        json_out_kstr(&o, STR("origin"), str_from(config_origin(s->config, k->name)));
        json_out_kraw(&o, STR("default"), k->fallback ? str_from(k->fallback) : STR("null"));
        json_out_kstr(&o, STR("type"), str_from(types[k->type]));
        json_out_kstr(&o, STR("help"), str_from(k->help));
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    out_json_end(out);
}

/* A list of hooks is long: people get its beginning, pipes get all. */
static void put_value(struct table *t, const struct out *out, const char *value)
{
    struct str text = str_from(value ? value : "-");
    struct str begin = out->tty ? utf8_clip(text, VALUE_SHOWN) : text;

    if (begin.len < text.len)
        text = str_from(arena_printf(&t->arena, "%.*s…", STR_ARG(begin)));
    table_cell(t, text.ptr, value ? COLOR_NONE : COLOR_DIM);
}

static void list_text(struct out *out, const struct settings *s)
{
    static const struct table_column columns[] = {
        {.head = "KEY"}, {.head = "VALUE"}, {.head = "FROM"}, {.head = "WHAT IT IS", .gives = true}};
    struct table t;

    table_init(&t, columns, 4);
    for (const struct config_key *k = config_keys; k->name; k++) {
        const char *value = config_text(s->config, k->name), *origin = config_origin(s->config, k->name);
        bool changed = strcmp(origin, "default") != 0;

        table_cell(&t, k->name, COLOR_BOLD);
        put_value(&t, out, value);
        table_cell(&t, origin, changed ? COLOR_CYAN : COLOR_DIM);
        table_cell(&t, k->help, COLOR_DIM);
    }
    table_print(&t, out);
    table_done(&t);
}

static enum tide_code run_list(struct cli *cli, struct tide_err *err)
{
    AUTO(settings_done) struct settings s = {0};

    if (cli_settings_open(cli, &s, err))
        return err->code;
    (cli->out.json ? list_json : list_text)(&cli->out, &s);
    return TIDE_OK;
}

const struct command cmd_config_list = {
    .group = "config",
    .name = "list",
    .run = run_list,
    .help = "show every key, its value and where that comes from",
};

/* ---- get ---- */

static enum tide_code run_get(struct cli *cli, struct tide_err *err)
{
    const char *key = args_operand(&cli->args, 0);
    AUTO(settings_done) struct settings s = {0};
    struct str value;

    if (!config_key_find(key))
        return config_key_unknown(key, err);
    if (cli_settings_open(cli, &s, err))
        return err->code;
    value = config_json(s.config, key);
    if (value.len == 0)
        return tide_fail(err, TIDE_NOT_FOUND, "%s is not set: `tidemark config set %s VALUE` sets it", key, key);
    if (cli->out.json) {
        buf_add_str(&cli->out.text, value);
        out_json_end(&cli->out);
        return TIDE_OK;
    }
    buf_add_str(&cli->out.text, str_from(config_text(s.config, key)));
    outf(&cli->out, "\n");
    return TIDE_OK;
}

const struct command cmd_config_get = {
    .group = "config",
    .name = "get",
    .run = run_get,
    .operands = {{"KEY", VALUE_TEXT, 0}},
    .help = "print what counts for a key: default, file or environment",
};

/* ---- set ---- */

/* What was written counts for nothing while a variable says otherwise. */
static void warn_of_variable(const char *name)
{
    const struct config_key *key = config_key_find(name);
    char variable[CONFIG_VARIABLE_SIZE];
    const char *value = key && config_variable(key, variable) ? getenv(variable) : NULL;

    if (value && *value)
        fprintf(stderr, "tidemark: %s is set and wins over the file: unset it\n", variable);
}

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

static enum tide_code run_set(struct cli *cli, struct tide_err *err)
{
    const char *key = args_operand(&cli->args, 0), *value = args_operand(&cli->args, 1);
    AUTO(settings_done) struct settings s = {0};
    bool unset = args_on(&cli->args, "unset");

    if (!value == !unset)
        return tide_fail(err, TIDE_INVALID, "config set: give either VALUE or --unset");
    if (check_value(key, unset ? NULL : value, err) || settings_find(args_text(&cli->args, "config"), &s, err) ||
        config_set(s.path, key, unset ? NULL : value, err))
        return err->code;
    warn_of_variable(key);
    return TIDE_OK;
}

const struct command cmd_config_set = {
    .group = "config",
    .name = "set",
    .run = run_set,
    .operands = {{"KEY", VALUE_TEXT, 0}, {"VALUE", VALUE_TEXT, OPERAND_OPTIONAL}},
    .options = (const struct opt[]){{.name = "unset", .help = "remove the key from the file: its default counts"},
                                    {.name = NULL}},
    .help = "write a key into the file, checked, whole or not at all",
};

/* ---- check ---- */

struct checking {
    struct cli *cli;
    struct json_out json;
    size_t problems;
};

static void problem(void *arg, const char *line)
{
    struct checking *c = arg;
    struct out *out = &c->cli->out;

    c->problems++;
    if (out->json) {
        json_out_str(&c->json, str_from(line));
        return;
    }
    out_value(out, line);
    outf(out, "\n");
}

static void hook_problem(void *arg, const char *hook, const char *what)
{
    AUTO(buf_done) struct buf line = BUF_INIT(2048);

    buf_addf(&line, "hook '%.100s': %s", hook, what);
    problem(arg, buf_cstr(&line));
}

static void check_hooks(struct checking *c, const struct settings *s, struct tide_err *err)
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
    hooks_free(h);
}

static void check_permissions(struct checking *c, const struct settings *s, struct tide_err *err)
{
    struct permits *p = NULL;

    if (permits_parse(config_json(s->config, "permissions"), &p, err) || permits_check_tools(p, err))
        problem(c, err->msg);
    permits_free(p);
}

/* Not the keychain: looking there may ask somebody to unlock it. */
static void check_key(struct checking *c, const struct settings *s, struct tide_err *err)
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

static void check_store(struct checking *c, const struct settings *s, struct tide_err *err)
{
    const char *store = config_text(s->config, "store");

    if (store && store_url_check(store, "store", err))
        problem(c, err->msg);
}

/* What is right by its type may still mean nothing. */
static void check_meaning(struct checking *c, const struct settings *s)
{
    struct tide_err err;

    check_permissions(c, s, &err);
    check_hooks(c, s, &err);
    check_key(c, s, &err);
    check_store(c, s, &err);
    if (cli_settings_log(c->cli, s, &err))
        problem(c, err.msg);
}

static void conclude(struct checking *c, const struct settings *s)
{
    struct out *out = &c->cli->out;

    c->cli->exit_status = c->problems > 0;
    if (out->json) {
        json_out_end(&c->json, ']');
        json_out_kbool(&c->json, STR("ok"), c->problems == 0);
        json_out_end(&c->json, '}');
        out_json_end(out);
    } else if (c->problems == 0) {
        out_colored(out, COLOR_GREEN, "ok");
        outf(out, "%s\n", access(s->path, F_OK) == 0 ? "" : " (there is no file: defaults)");
    }
}

static enum tide_code run_check(struct cli *cli, struct tide_err *err)
{
    struct checking c = {.cli = cli, .json = out_json(&cli->out)};
    AUTO(settings_done) struct settings s = {0};

    if (settings_find(args_text(&cli->args, "config"), &s, err))
        return err->code;
    if (s.named && access(s.path, F_OK) != 0)
        return tide_fail_errno(err, errno, "config check: %.150s", s.path);
    if (cli->out.json) {
        json_out_begin(&c.json, '{');
        json_out_kstr(&c.json, STR("file"), str_from(s.path));
        json_out_key(&c.json, STR("problems"));
        json_out_begin(&c.json, '[');
    }
    s.config = config_check(s.path, problem, &c);
    check_meaning(&c, &s);
    log_write(LOG_DEBUG, "settings checked", "file", s.path, "provider", config_text(s.config, "provider"),
              (char *)NULL);
    conclude(&c, &s);
    return TIDE_OK;
}

const struct command cmd_config_check = {
    .group = "config",
    .name = "check",
    .run = run_check,
    .help = "print everything that is wrong with the settings; exit status 1 when something is",
};
