/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/next_command.h"
#include "server/local_socket.h"
#include "terminal/progress.h"

const char *remote_named(const struct args *args)
{
    const char *given = args_text(args, "server"), *env = getenv("TIDEMARK_SERVER");

    return given ? given : env && env[0] && !args_text(args, "store") ? env : NULL;
}

/* What is wrong with its name is wrong with the option. */
static enum tide_code open_remote(const struct args *args, const char *url, struct remote **ret, struct tide_err *err)
{
    char text[sizeof err->msg];

    if (!remote_open(&(struct remote_options){.url = url, .pin = args_text(args, "pin"), .stop = &stop_signal}, ret,
                     err) ||
        err->code != TIDE_INVALID || err->detail.subject != TIDE_SUBJECT_ARGUMENT)
        return err->code;
    snprintf(text, sizeof text, "%s", err->msg);
    if (strcmp(err->detail.name, "pin") == 0)
        return args_refuse(err, "pin", "--pin: %s", text);
    return args_refuse(err, "server", "%s", text);
}

enum tide_code remote_open_local(struct cli *cli, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf url = BUF_INIT(4096);
    char path[PATH_MAX];

    if (cli_store_url(cli, &url, err) || local_socket_path(buf_cstr(&url), path, sizeof path, err))
        return err->code;
    if (access(path, F_OK))
        return tide_fail(err, TIDE_NOT_FOUND,
                         "no server serves this store (there is no '%s'): start one with: %s serve; or name one with "
                         "--server",
                         path, own_command(&a));
    return open_remote(&cli->args, arena_printf(&a, "unix:%s", path), &cli->remote, err);
}

/* What a run asks of its own process, and what needs neither, works as ever when only the environment names a server. */
static bool needs_store(const struct command *c)
{
    return c->need != NEED_NOTHING || c->opens_store;
}

enum tide_code remote_run(struct cli *cli, struct tide_err *err)
{
    const struct command *c = cli->args.command;
    bool given = args_text(&cli->args, "server") != NULL;

    if (given && args_text(&cli->args, "store"))
        return args_refuse(err, "server", "--server and --store: give one of them");
    if (!c->remote && (given || needs_store(c)))
        return args_refuse(err, "server", "`tidemark %s%s%s` does not work through a server: %s",
                           c->group ? c->group : "", c->group ? " " : "", c->name,
                           given ? "omit --server, and name the store with --store"
                                 : "unset TIDEMARK_SERVER, or name the store with --store");
    if (!c->remote)
        return c->run(cli, err);
    if (open_remote(&cli->args, remote_named(&cli->args), &cli->remote, err))
        return err->code;
    return c->remote(cli, err);
}

enum tide_code remote_check_options(const struct cli *cli, const char *const *names, struct tide_err *err)
{
    for (; *names; names++)
        if (args_on(&cli->args, *names))
            return args_refuse(err, *names, "--%s works on a store only: omit it, or name the store with --store",
                               *names);
    return TIDE_OK;
}

enum tide_code remote_pass(struct cli *cli, enum remote_patience patience, struct tide_err *err)
{
    const struct json *ignored;

    if (remote_ask_page(cli->remote, patience, &ignored, err))
        return err->code;
    buf_add_str(&cli->out.text, remote_text(cli->remote));
    out_json_end(&cli->out);
    return TIDE_OK;
}

enum tide_code remote_why(struct cli *cli, struct session_why *ret, struct tide_err *err)
{
    *ret = (struct session_why){.row.command = next_command};
    remote_begin(cli->remote, "GET", "sessions", args_operand(&cli->args, 0), "why");
    return remote_read(cli->remote, REMOTE_SOON, &shape_why, ret, err);
}
