/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark serve: the store over HTTP, until a signal comes. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"
#include "server/server.h"
#include "terminal/progress.h"

#define LISTEN "127.0.0.1:7007"
#define JOBS 64
#define INTERVAL_MS 30000
#define STOP_MS 10000

static const struct opt options[] = {
    {.name = "listen",
     .type = VALUE_TEXT,
     .value = "ADDRESS:PORT",
     .help = "listen there (default: " LISTEN "); port 0: any that is free"},
    {.name = "auto-resume",
     .type = VALUE_WORD,
     .value = "WHAT",
     .words = "off live all",
     .help = "which interrupted sessions to resume: off (none), live (those that ran when their process died) or all"},
    {.name = "jobs", .type = VALUE_INT, .value = "N", .min = 1, .max = 1000, .help = "run at most N sessions at once"},
    {.name = NULL},
};

/* "[::1]:80", "127.0.0.1:7007" */
static enum tide_code split_address(char *text, const char **ret_address, const char **ret_port, struct tide_err *err)
{
    char *colon = strrchr(text, ':'), *end;

    if (!colon || colon == text || !colon[1])
        return args_refuse(err, "listen", "'%s' is no ADDRESS:PORT", text);
    *colon = '\0';
    *ret_port = colon + 1;
    *ret_address = text;
    if (text[0] == '[') {
        end = strchr(text, ']');
        if (!end || end[1])
            return args_refuse(err, "listen", "'%s' is no address", text);
        *end = '\0';
        *ret_address = text + 1;
    }
    return TIDE_OK;
}

static void wait_for_signal(int signals)
{
    struct pollfd p = {.fd = signals, .events = POLLIN};
    unsigned char which = 0;

    while (poll(&p, 1, -1) <= 0 || read(signals, &which, 1) != 1 || which == SIGCHLD)
        ;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const char *given = args_text(&cli->args, "listen");
    AUTO(mem_freep) char *where = mem_dup(str_from(given ? given : LISTEN));
    char secret[ACCESS_SECRET_SIZE], path[4096];
    AUTO(buf_done) struct buf url = BUF_INIT(4096);
    const char *config = args_text(&cli->args, "config");
    struct server_options opt = {.config = config,
                                 .stop_ms = STOP_MS,
                                 .runs = {.config = config,
                                          .key_file = args_text(&cli->args, "key-file"),
                                          .max_active = (int)args_int(&cli->args, "jobs", JOBS),
                                          .interval_ms = INTERVAL_MS}};
    struct server *server = NULL;
    int signals;

    if (cli_store_url(cli, &url, err) ||
        scheduler_automatic(args_text(&cli->args, "auto-resume"), config, true, &opt.runs.automatic, err))
        return err->code;
    opt.runs.url = buf_cstr(&url);
    if (split_address(where, &opt.address, &opt.port, err) || access_own(secret, path, sizeof path, err))
        return err->code;
    explicit_bzero(secret, sizeof secret);
    signals = signal_pipe_open();
    if (server_start(cli->store, &opt, &server, err) == TIDE_OK) {
        say("http://%s:%d; the token is in %s", opt.address, server->port, path);
        wait_for_signal(signals);
        server_stop(server);
    }
    signal_pipe_close(signals);
    return err->code;
}

const struct command cmd_serve = {
    .name = "serve",
    .run = run,
    .need = NEED_CREATE,
    .options = options,
    .help = "serve the store over HTTP",
    .hidden = true,
};
