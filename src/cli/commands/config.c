/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark config list, get, set, check: the settings, where each comes from, and whether they are right. */
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "terminal/table.h"
#include "engine/settings.h"
#include "engine/shapes.h"

#define VALUE_SHOWN 24 /* bytes of a value in a list on a terminal */

/* ---- list ---- */

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
    static const struct table_column columns[] = {{.head = "KEY"},
                                                  {.head = "VALUE", .gives = true},
                                                  {.head = "FROM", .drop = 1},
                                                  {.head = "WHAT IT IS", .gives = true, .least = 24, .drop = 2}};
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

    if (args_on(&cli->args, "names")) {
        for (const struct config_key *k = config_keys; k->name; k++)
            outf(&cli->out, "%s\n", k->name);
        return TIDE_OK;
    }
    if (cli_settings_open(cli, &s, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_settings, &s);
    else
        list_text(&cli->out, &s);
    return TIDE_OK;
}

const struct command cmd_config_list = {
    .group = "config",
    .name = "list",
    .run = run_list,
    .options =
        (const struct opt[]){{.name = "names", .help = "only the names of the keys, one per line"}, {.name = NULL}},
    .help = "show every key, its value and the source of the value",
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
    if (value.len == 0) {
        tide_fail(err, TIDE_NOT_FOUND, "%s is not set", key);
        tide_about(err, TIDE_SUBJECT_KEY, key);
        return tide_hint_with(err, TIDE_ACTION_SET_SETTING, "", "\"key\":\"%s\",\"value\":null", key);
    }
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
    .operands = {{"KEY", VALUE_SETTING, 0}},
    .help = "print the effective value of a key: default, file or environment",
};

/* ---- set ---- */

static enum tide_code run_set(struct cli *cli, struct tide_err *err)
{
    const char *key = args_operand(&cli->args, 0), *value = args_operand(&cli->args, 1);
    bool unset = args_on(&cli->args, "unset");
    char variable[CONFIG_VARIABLE_SIZE];
    const struct config_key *row;
    const char *wins;

    if (!value == !unset)
        return args_refuse(err, "value", "config set: give either VALUE or --unset");
    if (settings_set(args_text(&cli->args, "config"), key, unset ? NULL : value, err))
        return err->code;
    /* What was written counts for nothing while a variable says otherwise. */
    row = config_key_find(key);
    wins = row && config_variable(row, variable) ? getenv(variable) : NULL;
    if (wins && *wins)
        say("%s is set and overrides the file: unset it", variable);
    return TIDE_OK;
}

const struct command cmd_config_set = {
    .group = "config",
    .name = "set",
    .run = run_set,
    .operands = {{"KEY", VALUE_SETTING, 0}, {"VALUE", VALUE_TEXT, OPERAND_OPTIONAL}},
    .options = (const struct opt[]){{.name = "unset",
                                     .help = "remove the key from the file, so that its default "
                                             "applies"},
                                    {.name = NULL}},
    .help = "check a value and write it to the file, atomically",
};

/* ---- check ---- */

static enum tide_code run_check(struct cli *cli, struct tide_err *err)
{
    AUTO(check_report_done) struct check_report r = {.ok = false};
    AUTO(settings_done) struct settings s = {0};
    const struct args *a = &cli->args;

    if (settings_check(args_text(a, "config"), args_on(a, "verbose"), args_text(a, "log-format"), &s, &r, err))
        return err->code;
    log_write(TIDE_LOG_DEBUG, "settings checked", log_text("file", s.path),
              log_text("provider", config_text(s.config, "provider")));
    cli->exit_status = !r.ok;
    if (cli->out.json) {
        out_shape(&cli->out, &shape_settings_check, &r);
        return TIDE_OK;
    }
    out_findings(&cli->out, &r.found, COLOR_NONE);
    if (r.ok) {
        out_colored(&cli->out, COLOR_GREEN, "ok");
        outf(&cli->out, "%s\n", access(s.path, F_OK) == 0 ? "" : " (there is no file: defaults)");
    }
    return TIDE_OK;
}

const struct command cmd_config_check = {
    .group = "config",
    .name = "check",
    .run = run_check,
    .help = "report every problem of the configuration; exit status 1 if there is one",
};
