/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark store init, info, check, compact: the store as a whole. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/remote.h"
#include "cli/cli.h"
#include "terminal/progress.h"
#include "engine/findings.h"
#include "engine/shapes.h"

/* ---- init ---- */

static enum tide_code run_init(struct cli *cli, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *info = NULL;
    struct str url;

    if (tide_store_get_info(cli->store, &text, err) ||
        json_parse(&arena, (struct str){text.ptr, text.len}, NULL, &info, NULL, err))
        return err->code;
    url = json_get_text(&arena, info, STR("url"));
    if (!cli->out.json) {
        out_value(&cli->out, arena_dup(&arena, url).ptr);
        outf(&cli->out, "\n");
        return TIDE_OK;
    }
    out_shape(
        &cli->out, &shape_store,
        &(struct command_result){.word = arena_dup(&arena, url).ptr, .n = json_get_int(info, STR("sessions"), 0)});
    return TIDE_OK;
}

const struct command cmd_store_init = {
    .group = "store",
    .name = "init",
    .run = run_init,
    .need = NEED_CREATE,
    .help = "create the store if there is none, and print where it is",
};

/* ---- info ---- */

static void print_figure(struct out *out, struct arena *a, const struct json *m)
{
    struct str key = json_key_text(a, m), text = m->type == JSON_STRING ? json_text(a, m) : m->raw;
    char *name = mem_dup(key), human[32];
    int64_t n = 0;

    for (char *p = name; *p; p++)
        *p = *p == '_' ? ' ' : *p;
    if (key.len > 5 && strcmp(name + key.len - 5, "bytes") == 0 && json_int(m, &n))
        text = str_from(bytes_text(human, n));
    outf(out, "%s%-16s%s ", color_code(out, COLOR_DIM), name, color_code(out, COLOR_NONE));
    out_value(out, arena_dup(a, text).ptr);
    outf(out, "\n");
    free(name);
}

static enum tide_code print_info(struct cli *cli, const struct json *info)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;

    if (cli->out.json) {
        json_write(&cli->out.text, info);
        out_json_end(&cli->out);
        return TIDE_OK;
    }
    for (const struct json *m = info->first; m; m = m->next)
        print_figure(&cli->out, &arena, m);
    return TIDE_OK;
}

static enum tide_code run_info(struct cli *cli, struct tide_err *err)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *info = NULL;

    if (tide_store_get_info(cli->store, &text, err) ||
        json_parse(&arena, (struct str){text.ptr, text.len}, NULL, &info, NULL, err))
        return err->code;
    return print_info(cli, info);
}

static enum tide_code info_remote(struct cli *cli, struct tide_err *err)
{
    const struct json *v;

    remote_begin(cli->remote, "GET", "store");
    return remote_ask(cli->remote, REMOTE_SOON, &v, err) ? err->code : print_info(cli, v);
}

const struct command cmd_store_info = {
    .group = "store",
    .name = "info",
    .run = run_info,
    .remote = info_remote,
    .need = NEED_READ,
    .help = "show the location, version, size and contents of the store",
};

/* ---- check ---- */

static const struct opt check_options[] = {
    {.name = "rebuild", .help = "discard every cache and compute it again from the log"},
    {.name = "accept-loss",
     .help = "open the store although acknowledged events are missing (the write-ahead log is damaged or gone), and "
             "continue without them"},
    {.name = NULL},
};

struct checking {
    struct check_report report;
    struct progress progress;
};

static int on_progress(void *arg, uint64_t done, uint64_t total)
{
    return progress_step(&((struct checking *)arg)->progress, done, total);
}

static void on_problem(void *arg, const char *where, const char *what)
{
    findings_problem(&((struct checking *)arg)->report.found, where, what);
}

static enum tide_code run_check(struct cli *cli, struct tide_err *err)
{
    struct checking c = {.report = {.ok = true}};
    struct check_report *r = &c.report;
    bool rebuild = args_on(&cli->args, "rebuild"), accept = args_on(&cli->args, "accept-loss");
    enum tide_code code =
        cli_store_open(cli, rebuild || accept ? NEED_WRITE : NEED_READ, accept ? TIDE_OPEN_ACCEPT_LOSS : 0, err);
    struct tide_err write_err;

    if (code)
        return code;
    progress_init(&c.progress, "check", "events");
    code = tide_store_check(cli->store, rebuild ? TIDE_CHECK_REBUILD : 0, on_progress, on_problem, &c, err);
    progress_done(&c.progress);
    r->ok = !code;
    if ((!code || code == TIDE_CORRUPT) && cli->out.json)
        out_shape(&cli->out, &shape_store_check, r);
    else if (!code || code == TIDE_CORRUPT)
        out_findings(&cli->out, &r->found, COLOR_RED);
    if (!code && !cli->out.json) {
        out_colored(&cli->out, COLOR_GREEN, "ok");
        outf(&cli->out, "\n");
    }
    if (code == TIDE_CORRUPT && out_flush(&cli->out, &write_err)) /* the list stays although the command fails */
        code = tide_err_copy(err, &write_err);
    check_report_done(r);
    return code == TIDE_CORRUPT ? tide_wrap(err, "store check") : code;
}

const struct command cmd_store_check = {
    .group = "store",
    .name = "check",
    .run = run_check,
    .opens_store = true,
    .options = check_options,
    .help = "check the whole store: file, chains, references",
};

/* ---- compact ---- */

/* What there is to give back; -1: this kind of store has no write-ahead log. */
static int64_t wal_bytes(tide_store *store)
{
    AUTO(tide_text_done) struct tide_text text = {NULL, 0};
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *info = NULL;

    if (tide_store_get_info(store, &text, NULL) ||
        json_parse(&arena, (struct str){text.ptr, text.len}, NULL, &info, NULL, NULL))
        return -1;
    return json_get_int(info, STR("wal_bytes"), -1);
}

static enum tide_code run_compact(struct cli *cli, struct tide_err *err)
{
    int64_t before = wal_bytes(cli->store), after;
    char given[32], left[32];

    if (tide_store_compact(cli->store, err))
        return err->code;
    after = wal_bytes(cli->store);
    if (!cli->out.json && before < 0)
        outf(&cli->out, "nothing to do: this store has no write-ahead log\n");
    else if (!cli->out.json)
        outf(&cli->out, "write-ahead log: %s, now %s\n", bytes_text(given, before), bytes_text(left, after));
    if (!cli->out.json)
        return TIDE_OK;
    out_shape(&cli->out, &shape_compacted,
              &(struct command_result){.before = before > 0 ? before : 0, .n = after > 0 ? after : 0});
    return TIDE_OK;
}

const struct command cmd_store_compact = {
    .group = "store",
    .name = "compact",
    .run = run_compact,
    .need = NEED_WRITE,
    .help = "move the write-ahead log into the main file and free its space (SQLite)",
};
