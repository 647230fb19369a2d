/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end at a terminal: the server on the store of what was played, and lines that the user can paste into another one.
 * Enter stops it. Its state is in the place, so that the server of this user, if there is one, is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define LINE_MAX_BYTES 2048
#define SAYS_TOKEN "; the token is in "
#define SAYS_CONSOLE "console: "

struct address {
    char url[100], token_file[LINE_MAX_BYTES];
    char console[200]; /* signs in, once; "": this build has none */
};

/* "tidemark: http://127.0.0.1:4711; the token is in /…/server.token" */
static bool take_line(struct address *a, char *line)
{
    char *url = strstr(line, "http://"), *end = url ? strstr(url, SAYS_TOKEN) : NULL;

    if (!end)
        return false;
    *end = '\0';
    snprintf(a->url, sizeof(a->url), "%s", url);
    snprintf(a->token_file, sizeof(a->token_file), "%s", end + strlen(SAYS_TOKEN));
    return true;
}

/* "tidemark: console: http://127.0.0.1:4711/#code=… (once, …)", or that there is none: the last of what it says. */
static bool take_console(struct address *a, const char *line)
{
    const char *url = strstr(line, SAYS_CONSOLE);

    if (url && strstr(url, "#code=")) {
        url += strlen(SAYS_CONSOLE);
        snprintf(a->console, sizeof(a->console), "%.*s", (int)strcspn(url, " "), url);
    }
    return strstr(line, "console") != NULL;
}

/* It says where it is when everybody may ask. */
static void read_address(struct address *a, FILE *said)
{
    char line[LINE_MAX_BYTES];

    while (fgets(line, sizeof(line), said)) {
        line[strcspn(line, "\n")] = '\0';
        if (!take_line(a, line) && a->url[0] && take_console(a, line))
            return;
        leave_if_stopped();
    }
    leave_if_stopped();
    fail("the server did not start");
}

/* On one line each, however wide the terminal is: a line that is broken cannot be pasted. */
static void offer(const struct address *a, const char *options, const char *path)
{
    printf("    curl %s-H \"Authorization: Bearer $(cat '%s')\" '%s%s'\n", options, a->token_file, a->url, path);
}

void play_server(void)
{
    struct address a = {.url = ""};
    int pipe_fds[2], status;
    char line[16];
    FILE *said;
    pid_t pid;

    if (pipe2(pipe_fds, O_CLOEXEC) != 0 || !(said = fdopen(pipe_fds[0], "r")))
        fail("make a pipe: %s", strerror(errno));
    pid = child_start("exec tidemark serve --listen 127.0.0.1:0 --unix off", pipe_fds[1]);
    close(pipe_fds[1]);
    read_address(&a, said);
    say(BOLD, "\n  $ tidemark serve\n");
    say(PLAIN,
        "  The server runs on this store: %s. In another terminal, ask what there is,\n"
        "  and follow everything that has happened and will happen:\n\n",
        a.url);
    offer(&a, "", "/api/v1/sessions");
    offer(&a, "-N ", "/api/v1/events?after=0");
    if (a.console[0]) {
        say(PLAIN, "\n  Or open its console in a browser, within a minute:\n\n");
        printf("    %s\n", a.console);
    }
    say(PLAIN, "\n  docs/SERVER.md has every route by example. Enter stops the server, and removes\n  this store. ");
    (void)!read(STDIN_FILENO, line, sizeof(line));
    leave_if_stopped();
    kill(pid, SIGTERM);
    status = child_wait(pid);
    fclose(said);
    if (status != 0)
        fail("the server ended with status %d", status);
}
