/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent that the user may kill. It answers from a script (agent/script.json), works with real tools, and leaves a
 * line in world.log each time one really runs. `k` kills it with SIGKILL, wherever it is; any key brings it back; at the end
 * that file is counted. Without a terminal it is killed at random moments.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "demo.h"

#define PROMPT "Prepare release 2.4: count the files, write the notes, tag it, and tell the team."
#define LIVES_MAX 60
#define RANDOM_KILLS 2
#define DEEDS 3

static const char *const deeds[DEEDS] = {"counted", "tagged", "told the team"};
static struct termios before;

static void restore_terminal(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* Keys come one by one and are not shown. */
static void take_terminal(void)
{
    struct termios raw;

    demo.terminal = demo.terminal && tcgetattr(STDIN_FILENO, &before) == 0;
    if (!demo.terminal)
        return;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    atexit(restore_terminal);
}

static bool key_pressed(int wait_ms, char *ret_key)
{
    struct pollfd p = {demo.terminal ? STDIN_FILENO : -1, POLLIN, 0};

    return poll(&p, 1, wait_ms) == 1 && read(STDIN_FILENO, ret_key, 1) == 1;
}

/* One life of it. True: it was killed. */
static bool live(bool first, int kills)
{
    const char *errors = demo.terminal ? "" : " 2>/dev/null",
               *command = first ? "exec tidemark chat --script script.json --yes --watch --max-turns 50 -p '" PROMPT "'"
                                : "exec tidemark chat --continue --yes --watch";
    int64_t kill_ms = !demo.terminal && kills < RANDOM_KILLS ? clock_ms() + 30 + random_below(600) : 0;
    char text[300], key = 0;
    siginfo_t info = {0};
    bool killed = false;
    int status;
    pid_t pid;

    snprintf(text, sizeof(text), "%s%s", command, errors);
    pid = child_start(text, -1);
    while (!killed && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        leave_if_stopped();
        if (key_pressed(20, &key) && (key == 'k' || key == 'K'))
            kill_ms = clock_ms();
        killed = kill_ms && clock_ms() >= kill_ms && child_kill(pid);
    }
    status = child_wait(pid);
    leave_if_stopped();
    if (!killed && status != 0)
        fail("the chat ended with status %d", status);
    return killed;
}

static bool show_world(int kills)
{
    int ran[DEEDS];
    bool right = true;

    for (int i = 0; i < DEEDS; i++) {
        ran[i] = place_count(deeds[i]);
        right &= ran[i] <= 1;
    }
    if (demo.json) {
        printf("{\"right\":%s,\"kills\":%d,\"happened\":{", right ? "true" : "false", kills);
        for (int i = 0; i < DEEDS; i++)
            printf("%s\"%s\":%d", i ? "," : "", deeds[i], ran[i]);
        puts("}}");
        return right;
    }
    say(BOLD, "\nKilled %d time%s. What really happened, by a file outside the store:\n", kills, kills == 1 ? "" : "s");
    for (int i = 0; i < DEEDS; i++)
        say(ran[i] > 1 ? RED : PLAIN, "  %-14s %s\n", deeds[i],
            ran[i] == 1   ? "once"
            : ran[i] == 0 ? "not at all: it was interrupted, its outcome was unknown, and it was not repeated"
                          : "MORE THAN ONCE");
    say(right ? GREEN : RED, right ? "Nothing happened twice.\n" : "This is wrong.\n");
    say(PLAIN, "\nYours: `tidemark chat`, with a key in ANTHROPIC_API_KEY or OPENAI_API_KEY.\n");
    return right;
}

bool play_agent(void)
{
    int kills = 0;
    char key;

    take_terminal();
    setenv("DEMO_PAUSE", demo.terminal ? "1.5" : "0.15", 1);
    place_make("demo/agent");
    if (!demo.terminal && child_wait(child_start("sed -i 's/\"chunk_ms\": 60/\"chunk_ms\": 5/' script.json", -1)) != 0)
        fail("write the script");
    say(BOLD, demo.terminal ? "An agent at work. Press k to kill it, wherever it is; as often as you like.\n"
                            : "An agent at work, killed at random moments.\n");
    while (live(kills == 0, kills)) {
        if (++kills == LIVES_MAX)
            fail("it was killed %d times", kills);
        if (demo.terminal)
            say(PLAIN, "\r\033[K\n");
        say(RED, demo.terminal
                     ? "✗ kill -9. It is gone: no process, no memory. Press any key: `tidemark chat --continue`.\n"
                     : "✗ kill -9. It is gone: no process, no memory.\n");
        while (demo.terminal && !stop_signal && !key_pressed(100, &key))
            continue;
        leave_if_stopped();
    }
    if (demo.terminal)
        restore_terminal();
    return show_world(kills);
}
