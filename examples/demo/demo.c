/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark-demo [--chat | --graph] [--json]: the promise, played. Exit status 1 if anything that must happen once did not
 * happen exactly once. $TIDEMARK names the program to play with, else it is the one in $PATH.
 */
#include "demo.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define INDENT_MAX 16

struct demo demo;
volatile sig_atomic_t stop_signal;

/* ---- what is said --------------------------------------------------------------------------------------------------- */

const char *paint(enum color color)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[32m"};

    return demo.colored ? codes[color] : "";
}

/* Colours have no width, a character of several bytes has that of one. */
static int width_of(const char *word, size_t len)
{
    int width = 0;

    for (size_t i = 0; i < len; i++) {
        if (word[i] == '\033')
            i += strcspn(word + i, "m");
        else
            width += ((unsigned char)word[i] & 0xc0) != 0x80;
    }
    return width;
}

/* Lines that are too long are broken at words, with the indent that they began with. */
static void put_wrapped(const char *text, int columns)
{
    int at = 0, indent = 0;

    for (bool begins = true; *text; begins = false) {
        int gap = (int)strspn(text, " "), len = (int)strcspn(text + gap, " \n"),
            width = width_of(text + gap, (size_t)len);

        if (begins || text[-1] == '\n')
            indent = gap > INDENT_MAX ? INDENT_MAX : gap;
        if (at > indent && at + gap + width > columns) {
            printf("\n%*s", indent, "");
            at = indent;
        } else {
            printf("%*s", gap, "");
            at += gap;
        }
        printf("%.*s", len, text + gap);
        at += width;
        text += gap + len;
        if (*text == '\n') {
            putchar('\n');
            text++;
            at = 0;
        }
    }
}

void say(enum color color, const char *fmt, ...)
{
    struct winsize size;
    char *text = NULL;
    va_list args;

    if (demo.json)
        return;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        exit(1);
    va_end(args);
    fputs(color == PLAIN ? "" : paint(color), stdout);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        put_wrapped(text, size.ws_col);
    else
        fputs(text, stdout);
    fputs(color == PLAIN ? "" : paint(PLAIN), stdout);
    free(text);
    if (fflush(stdout) != 0)
        exit(1); /* its reader is gone */
}

void fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("tidemark-demo: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void leave_if_stopped(void)
{
    if (stop_signal)
        exit(128 + stop_signal);
}

int random_below(int n)
{
    uint32_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    return (int)(r % (uint32_t)n);
}

int64_t clock_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the choice ----------------------------------------------------------------------------------------------------- */

/* The user may continue with the others, and then with the server; the end of the input means no. */
static bool offer_others(void)
{
    char line[16] = "";
    bool right = true;

    say(PLAIN, "\n  Type c and Enter for an agent that you can kill yourself, g and Enter for\n"
               "  graphs that go on where they failed. Enter alone starts the server on this store. ");
    if (read(STDIN_FILENO, line, sizeof(line) - 1) <= 0) {
        leave_if_stopped();
        return true;
    }
    if (line[0] == 'c' || line[0] == 'C')
        right = play_agent();
    else if (line[0] == 'g' || line[0] == 'G')
        right = play_graphs();
    if (right)
        play_server();
    return right;
}

static void on_signal(int number)
{
    stop_signal = number;
}

/* The first signal asks to stop, a second one ends it as usual; reads are interrupted, not restarted. */
static void set_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool (*play)(void) = play_deploy, right;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            demo.json = true;
        } else if (strcmp(argv[i], "--chat") == 0) {
            play = play_agent;
        } else if (strcmp(argv[i], "--graph") == 0) {
            play = play_graphs;
        } else {
            fputs("usage: tidemark-demo [--chat | --graph] [--json]\n", stderr);
            return 2;
        }
    }
    demo.terminal = !demo.json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
    demo.colored = isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    set_signals();
    atexit(place_remove);
    right = play();
    if (right && play == play_deploy && demo.terminal)
        right = offer_others();
    return right ? 0 : 1;
}
