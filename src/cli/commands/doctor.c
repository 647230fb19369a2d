/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark doctor: what engine/doctor.c finds, with the commands that help. */
#include "cli/cli.h"
#include "cli/commands/doctor_print.h"
#include "cli/error_hints.h"
#include "cli/next_command.h"
#include "engine/doctor.h"
#include "engine/forgotten.h"
#include "engine/shapes.h"

/* What to do about a finding, with the command or the options that do it. */
static const char *advice_of(struct arena *a, const struct finding *f)
{
    const char *advice = f->error ? err_advice(a, f->error, f->of_store) : NULL;
    const char *command = *next_commands(a, f->next);

    if (advice)
        return advice;
    if (!command && f->next->action)
        command = next_options(a, f->next);
    return command && f->todo ? arena_printf(a, "`%s` %s", command, f->todo) : command ? command : f->todo;
}

static void list_report(struct cli *cli, struct check_report *r)
{
    bool all = args_on(&cli->args, "all");

    doctor_mark_forgotten(r);
    if (!all)
        forgotten_hide(r);
    if (cli->out.json)
        out_shape(&cli->out, &shape_doctor, r);
    else
        doctor_print(&cli->out, r, all);
    cli->exit_status = r->ok ? 0 : 1;
}

static enum tide_code change_report(struct cli *cli, struct check_report *r, bool forget, struct tide_err *err)
{
    AUTO(mem_freep) const char **names = args_all(&cli->args, forget ? "forget" : "remember");
    const struct forgotten_change change = {.names = names, .forget = forget, .whole = r->whole};

    if (forgotten_change(r->store, &change, r, err))
        return err->code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_doctor, r);
    for (size_t i = 0; names[i] && !cli->out.json; i++) {
        size_t n = forgotten_count(&r->found, names[i]);

        outf(&cli->out, forget ? "forgot " : "");
        if (n > 1)
            outf(&cli->out, "%zu findings of ", n);
        out_value(&cli->out, names[i]);
        outf(&cli->out, forget && n > 1 ? ", until they change\n"
                        : forget        ? ", until it changes\n"
                        : n == 1        ? " is shown again\n"
                                        : " are shown again\n");
    }
    return TIDE_OK;
}

static enum tide_code open_store(void *cli, tide_store **ret_store, struct tide_err *err)
{
    if (cli_store_open(cli, NEED_READ, 0, err))
        return err->code;
    *ret_store = ((struct cli *)cli)->store;
    return TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const struct args *a = &cli->args;
    const struct doctor_options opt = {.store = args_text(a, "store"),
                                       .config = args_text(a, "config"),
                                       .key_file = args_text(a, "key-file"),
                                       .key_fd = (int)args_int(a, "key-fd", -1),
                                       .verbose = args_on(a, "verbose"),
                                       .log_format = args_text(a, "log-format"),
                                       .online = args_on(a, "online"),
                                       .open = open_store,
                                       .arg = cli,
                                       .command = next_command};
    bool forget = args_on(a, "forget"), remember = args_on(a, "remember");
    AUTO(check_report_done) struct check_report report = {.ok = true};

    if (forget && remember)
        return args_refuse(err, "forget", "--forget and --remember exclude each other: give one of them");
    doctor_examine(&opt, &report);
    for (size_t i = 0; i < report.found.n; i++)
        report.found.at[i].todo = advice_of(&report.found.arena, &report.found.at[i]);
    if (forget || remember)
        return change_report(cli, &report, forget, err);
    list_report(cli, &report);
    return TIDE_OK;
}

/* Checks that warn, or fail about one session. */
#define CAN_FORGET "settings provider store space modes key watch torn reserve sessions recovery events"

const struct command cmd_doctor = {
    .name = "doctor",
    .run = run,
    .opens_store = true,
    .options = (const struct opt[]){{.name = "online", .help = "also send the provider one short request"},
                                    {.name = "all", .help = "list every finding, also those that are forgotten"},
                                    {.name = "forget",
                                     .type = VALUE_TEXT,
                                     .value = "WHAT",
                                     .words = CAN_FORGET,
                                     .many = true,
                                     .help = "accept what a check finds now, or of one session: sessions, sessions:ID"},
                                    {.name = "remember",
                                     .type = VALUE_TEXT,
                                     .value = "WHAT",
                                     .words = CAN_FORGET,
                                     .many = true,
                                     .help = "show again what is forgotten"},
                                    {.name = NULL}},
    .help = "check that everything works, and report how to fix what does not",
    .more =
        "What is forgotten comes back when it changes. Exit status: 1 if a check fails; 0 if there are only warnings.",
};
