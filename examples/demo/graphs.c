/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graphs of examples/graphs, offline, by the commands of their README. With a terminal the user chooses; without
 * one all are played, and an unexpected exit status is a failure.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define COMMANDS 4

static const struct play {
    const char *name, *says;
    struct {
        const char *line;
        int status;
    } commands[COMMANDS];
} plays[] = {
    {"research",
     "a search fails for its key; only that one runs again",
     {{"tidemark graph show research.json", 0},
      {"tidemark run research.json --session rivers --script research.script.json --set api_key=wrong", 1},
      {"tidemark sessions list --status failed", 0},
      {"tidemark sessions resume rivers --script research.script.json --set api_key=open-sesame", 0}}},
    {"review",
     "three at once set the same key; a verdict waits for all",
     {{"tidemark graph show review.json", 0}, {"tidemark run review.json --session review", 0}}},
    {"approval",
     "it waits for a person: no process, only the log",
     {{"tidemark run approval.json --session letter --script approval.script.json", 7},
      {"tidemark why letter", 0},
      {"tidemark sessions resume letter --script approval.script.json --input yes", 0}}},
    {"improve",
     "an agent writes until a judge is content",
     {{"tidemark graph show improve.json", 0},
      {"tidemark run improve.json --session improve --script improve.script.json", 0}}},
    {"files",
     "one program a file; then it is killed at every event",
     {{"tidemark run files.json --session files", 0}, {"tidemark torture files.json", 0}}},
};
#define PLAYS (sizeof(plays) / sizeof(plays[0]))

/* Each in a new place: it may be chosen again. */
static bool play(const struct play *p)
{
    bool right = true;

    place_make("graphs");
    say(PLAIN, "\n%s%s%s: %s.\n", paint(BOLD), p->name, paint(PLAIN), p->says);
    for (int i = 0; i < COMMANDS && p->commands[i].line; i++) {
        char text[200];
        int status;

        say(BOLD, "\n  $ %s", p->commands[i].line);
        say(PLAIN, "\n");
        snprintf(text, sizeof(text), "exec %s", p->commands[i].line);
        status = child_wait(child_start(text, -1));
        leave_if_stopped();
        if (status != p->commands[i].status) {
            fprintf(stderr, "tidemark-demo: `%s` ended with status %d, and %d was meant\n", p->commands[i].line, status,
                    p->commands[i].status);
            right = false;
        }
    }
    return right;
}

/* NULL: none. */
static const struct play *choose(void)
{
    char line[16] = "";

    say(PLAIN, "\nGraphs that can be killed anywhere. Each runs offline, in a place of its own.\n\n");
    for (size_t i = 0; i < PLAYS; i++)
        say(PLAIN, "  %zu  %-9s %s\n", i + 1, plays[i].name, plays[i].says);
    say(PLAIN, "\n  A number and Enter plays it; Enter alone leaves. ");
    while (read(STDIN_FILENO, line, sizeof(line) - 1) > 0 && line[strspn(line, " \t\r\n")] && !stop_signal) {
        const char *first = line + strspn(line, " \t");

        if (*first >= '1' && (size_t)(*first - '1') < PLAYS && !first[1 + strspn(first + 1, " \t\r\n")])
            return &plays[*first - '1'];
        say(PLAIN, "  There is no %.*s: a number from 1 to %zu, or Enter alone. ", (int)strcspn(first, "\r\n"), first,
            PLAYS);
        memset(line, 0, sizeof(line));
    }
    leave_if_stopped();
    return NULL;
}

bool play_graphs(void)
{
    const struct play *p;
    bool right = true;

    if (demo.terminal)
        while ((p = choose()) != NULL)
            right &= play(p);
    for (size_t i = 0; i < PLAYS && !demo.terminal; i++)
        right &= play(&plays[i]);
    if (demo.json)
        printf("{\"right\":%s,\"played\":%zu}\n", right ? "true" : "false", PLAYS);
    return right;
}
