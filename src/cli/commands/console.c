/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark console: asks the server of this store, on its unix socket, for a URL that signs a browser in, once. The URL is for the process that
 * reads standard output: a browser that is opened from here finds it in a file of this user, because every user of the machine can see the arguments of its process.
 */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/remote.h"
#include "engine/replace_file.h"
#include "env/user_key.h"
#include "server/access.h"

#define OPENER "xdg-open"
#define PAGE_NAME "console.html"

extern char **environ;

static const struct opt options[] = {
    {.name = "open", .help = "also open it in the browser of the desktop (" OPENER ")"},
    {.name = "scopes",
     .type = VALUE_TEXT,
     .value = "SCOPE,…",
     .words = SCOPE_WORDS,
     .help = "the scopes of its token: read, answer, write, run or admin (default: all that you have)"},
    {.name = NULL},
};

/* ---- opening it ---- */

/* It goes into a page: nothing in it means anything there. */
static bool is_plain_url(const char *url)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/[]#=";

    return (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) && !url[strspn(url, plain)];
}

/* A page of this user's that leads there. */
static enum tide_code write_page(const char *url, char path[PATH_MAX], struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(8192);
    enum tide_code code;
    int dir = -1;

    if (!is_plain_url(url))
        return tide_fail(err, TIDE_IO, "the server's answer is not a URL of a console");
    if (!user_state_path(PAGE_NAME, true, path, PATH_MAX))
        return tide_fail(err, TIDE_DENIED,
                         "the state directory cannot be written: set XDG_STATE_HOME to a directory of yours");
    buf_addf(&text,
             "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
             "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n<title>Tidemark</title>\n"
             "<p><a href=\"%s\">Open the console</a></p>\n",
             url, url);
    code = file_lock_dir(path, &dir, err);
    code = code ? code : file_replace(path, dir, buf_view(&text), err);
    if (dir >= 0)
        close(dir);
    return code;
}

/* It may run as long as the browser does: nobody waits for it. */
static int start_opener(const char *path)
{
    char *const argv[] = {(char *)OPENER, (char *)path, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    pid_t pid;
    int failed;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
    failed = posix_spawnp(&pid, OPENER, &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

static enum tide_code open_page(const char *url, struct tide_err *err)
{
    char path[PATH_MAX];
    int failed;

    if (write_page(url, path, err))
        return err->code;
    failed = start_opener(path);
    if (failed)
        say("no browser was opened (" OPENER ": %s): open the URL yourself", strerror(failed));
    return TIDE_OK;
}

/* ---- asking for it ---- */

static enum tide_code ask_code(struct cli *cli, struct tide_err *err)
{
    const char *scopes = args_text(&cli->args, "scopes");
    struct signin_code_shown made = {.url = NULL};

    if (scopes && !scopes_from(str_from(scopes)))
        return args_refuse(err, "scopes", "--scopes takes some of: " SCOPE_WORDS);
    remote_begin(cli->remote, "POST", "signin", "codes");
    remote_body_text(cli->remote, "scopes", scopes);
    if (remote_read(cli->remote, REMOTE_SOON, &shape_signin_code, &made, err))
        return err->code;
    if (!made.url && !cli->out.json)
        return tide_fail(err, TIDE_WRONG_STATE,
                         "the server has no console that a browser can open: its build has none, or it listens on a "
                         "unix socket alone");
    if (cli->out.json) {
        out_shape(&cli->out, &shape_signin_code, &made);
    } else {
        out_value(&cli->out, made.url);
        outf(&cli->out, "\n");
    }
    return made.url && args_on(&cli->args, "open") ? open_page(made.url, err) : TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    return remote_open_local(cli, err) ? err->code : ask_code(cli, err);
}

const struct command cmd_console = {
    .name = "console",
    .run = run,
    .remote = ask_code,
    .options = options,
    .help = "print a URL that opens the console of the server and signs in, once and within a minute",
    .more = "The server of this store must run (serve); with --server, another one. See tidemark-console(1).",
};
