/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark: finds the command, opens what its row asks for, runs it, prints what it gathered or its one line of error.
 *
 * Order at the end: the store is closed before the answer is printed, so that what is printed has happened; a reader of
 * standard output that has gone away ends the process as SIGPIPE would, but only after the store was closed properly.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timefmt.h"
#include "cli/error_hints.h"
#include "cli/cli.h"
#include "cli/next_command.h"
#include "cli/remote.h"
#include "cli/signals.h"
#include "terminal/progress.h"
#include "terminal/wrap.h"

#define EXIT_USAGE 2

/* A descriptor 0, 1 or 2 that is closed would be given to the next file opened, and a message written into the store. */
static void keep_standard_descriptors(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY /* writing fails, and is reported */, O_WRONLY};

    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", modes[fd]) != fd)
            _exit(1);
}

/* The first signal asks the command to stop; a second one ends it as usual. Reads are interrupted, not restarted. */
static void set_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};

    signals_note((int)SA_RESETHAND);
    sigaction(SIGCHLD, &usual, NULL); /* ignored, as some start us, it would take the exit statuses of programs away */
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL); /* a file that may not grow is an error like a full disk */
}

static enum tide_code run_command(struct cli *cli, struct tide_err *err)
{
    const struct command *c = cli->args.command;
    enum tide_code code = TIDE_OK;

    if (remote_named(&cli->args))
        code = remote_run(cli, err);
    else if (c->need != NEED_NOTHING)
        code = cli_store_open(cli, c->need, 0, err) ? err->code : c->run(cli, err);
    else
        code = c->run(cli, err);
    if (code) { /* while it is known what is secret */
        log_clean(err->msg, sizeof(err->msg));
        log_clean(err->detail.name, sizeof(err->detail.name));
    }
    cli_store_close(cli);
    remote_close(TAKE(cli->remote));
    return code;
}

static enum tide_code dispatch_command(struct cli *cli, struct tide_err *err)
{
    const struct command *version = command_find(NULL, "version");

    out_set_color(&cli->out, args_text(&cli->args, "color"));
    time_people_local(!cli->out.json && !args_on(&cli->args, "utc"));
    if (args_on(&cli->args, "version"))
        return version->run(cli, err);
    if (args_on(&cli->args, "help") || !cli->args.command) {
        cli->exit_status = args_on(&cli->args, "help") ? 0 : EXIT_USAGE;
        help_print(cli);
        return TIDE_OK;
    }
    return run_command(cli, err);
}

static int finish_command(struct cli *cli, enum tide_code code, struct tide_err *err)
{
    if (!code && cli->exit_status == EXIT_USAGE && !cli->args.command) { /* not when a program that was run ended so */
        /* Help that nobody asked for goes where errors go. */
        say_lines(buf_view(&cli->out.text));
        buf_clear(&cli->out.text);
    }
    out_wrap(&cli->out, 0);
    if (!code)
        code = out_flush(&cli->out, err);
    if (cli->out.closed) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    if (code == TIDE_CANCELLED && stop_signal)
        return 128 + stop_signal;
    if (code && cli->out.json) {
        if (cli->args.wrong[0])
            tide_about(err, TIDE_SUBJECT_ARGUMENT, cli->args.wrong);
        err_say_json(err);
    } else if (code) {
        struct arena a = ARENA_INIT;

        say_clean(err_line(&a, err, cli->no_store));
        arena_done(&a);
    }
    return code ? tide_code_exit(code) : cli->exit_status;
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    struct tide_err err = {0};
    enum tide_code code;
    int status;

    keep_standard_descriptors();
    set_signals();
    out_init(&cli.out);
    code = args_parse(argc, argv, &cli.args, &err);
    cli.out.json = args_on(&cli.args, "json");
    say_as_json(cli.out.json);
    own_command_init(&cli.args);
    if (!code)
        code = dispatch_command(&cli, &err);
    status = finish_command(&cli, code, &err);
    out_done(&cli.out);
    args_done(&cli.args);
    return status;
}
