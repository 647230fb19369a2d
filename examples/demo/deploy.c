/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of five steps with an approval in the middle (deploy/deploy.sh) runs as a durable session; its supervisor is
 * killed with SIGKILL at random moments and the session resumed, until it is done. Each step leaves a line in world.log
 * when it really happens: at the end that file is compared with what was promised. The timeline is drawn from the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>
#include <unistd.h>

#include "demo.h"

#define STEP_TERMINAL_MS 700
#define STEP_PLAIN_MS 160
#define ROUNDS_MAX 40
#define EXIT_WAITING 7
#define EXIT_KILLED (128 + SIGKILL)
#define EARLY_MS 80 /* a kill comes so long before the end at the latest: to look first takes a moment */
#define LOOK_MS 10  /* a kill that comes too early is tried again so often */

static const struct {
    const char *name, *effect;
} steps[] = {{"build", "pure"}, {"test", "pure"}, {"migrate", "once"}, {"release", "idempotent"}, {"announce", "once"}};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct deploy {
    int step_ms, kills;
    bool drawing; /* what is printed now is as wide as it may be */
    char token[TIDE_TOKEN_SIZE];
};

/* ---- one process of it ---------------------------------------------------------------------------------------------- */

static void take_line(struct deploy *d, const char *line)
{
    const char *token = strstr(line, "rt_");
    size_t n = token ? strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") : 0;

    if (n > 0 && memchr(token, '.', n))
        snprintf(d->token, sizeof(d->token), "%.*s", (int)n, token);
    if (!d->drawing) {
        say(PLAIN, "    %s\n", line);
    } else if (!demo.json) {
        puts(line);
        fflush(stdout);
    }
}

/* What it prints, line by line, until it and all its children have ended; killed when its time has come. */
static void watch(struct deploy *d, pid_t pid, int fd, int64_t kill_ms)
{
    char text[1 << 16], *end;
    size_t len = 0;

    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;

        if (kill_ms && kill_ms <= clock_ms())
            kill_ms = child_kill(pid) ? 0 : clock_ms() + LOOK_MS;
        leave_if_stopped();
        if (poll(&p, 1, kill_ms ? (int)(kill_ms - clock_ms()) : -1) <= 0)
            continue;
        n = read(fd, text + len, sizeof(text) - 1 - len);
        if (n == 0 || (n < 0 && errno != EINTR))
            return;
        len += n > 0 ? (size_t)n : 0;
        text[len] = '\0';
        while ((end = strchr(text, '\n')) || len == sizeof(text) - 1) {
            size_t used = end ? (size_t)(end + 1 - text) : len;

            if (end)
                *end = '\0';
            take_line(d, text);
            len -= used;
            memmove(text, text + used, len + 1);
        }
    }
}

/* Runs one command, killed after within_ms at the latest (0: not). Its exit status. */
static int play(struct deploy *d, const char *said, const char *command, int within_ms)
{
    int64_t began = clock_ms(), kill_ms = within_ms ? began + 20 + random_below(within_ms - EARLY_MS) : 0;
    int pipe_fds[2], status;
    pid_t pid;

    say(BOLD, "\n  $ %s", said);
    say(PLAIN, "\n");
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        fail("make a pipe: %s", strerror(errno));
    pid = child_start(command, pipe_fds[1]);
    close(pipe_fds[1]);
    watch(d, pid, pipe_fds[0], kill_ms);
    close(pipe_fds[0]);
    status = child_wait(pid);
    leave_if_stopped();
    if (status == EXIT_KILLED) {
        d->kills++;
        say(PLAIN, "  %s✗ kill -9%s, %.1f s in, at a random moment: the supervisor and its program are gone.\n",
            paint(RED), paint(PLAIN), (double)(clock_ms() - began) / 1000);
    }
    return status;
}

static void say_why(struct deploy *d)
{
    if (!demo.json)
        play(d, "tidemark why deploy", "exec tidemark why deploy", 0);
}

/* From here until it waits or ends, resumed as often as it is killed; killed at least once. */
static int play_part(struct deploy *d, const char *said, const char *first, int n_steps)
{
    int kills = d->kills, status = play(d, said, first, n_steps * d->step_ms);

    for (int i = 0; i < ROUNDS_MAX && status == EXIT_KILLED; i++) {
        bool again = d->kills == kills || random_below(3) == 0;

        say_why(d);
        status = play(d, "tidemark resume deploy", "exec tidemark resume deploy", again ? n_steps * d->step_ms : 0);
    }
    return status;
}

/* ---- the story ------------------------------------------------------------------------------------------------------ */

static bool show_world(const struct deploy *d, int64_t began_ms)
{
    int ran[STEPS];
    bool right = true;

    for (size_t i = 0; i < STEPS; i++) {
        ran[i] = place_count(steps[i].name);
        right &= strcmp(steps[i].effect, "once") == 0 ? ran[i] == 1 : ran[i] >= 1;
    }
    if (demo.json) {
        printf("{\"right\":%s,\"kills\":%d,\"happened\":{", right ? "true" : "false", d->kills);
        for (size_t i = 0; i < STEPS; i++)
            printf("%s\"%s\":%d", i ? "," : "", steps[i].name, ran[i]);
        puts("}}");
        return right;
    }
    say(PLAIN, "\n  Killed %d time%s in %.1f s. What happened in the world:\n", d->kills, d->kills == 1 ? "" : "s",
        (double)(clock_ms() - began_ms) / 1000);
    for (size_t i = 0; i < STEPS; i++)
        say(PLAIN, "    %-9s %-10s %d time%s%s\n", steps[i].name, steps[i].effect, ran[i], ran[i] == 1 ? "" : "s",
            ran[i] > 1 ? ": cut before it was recorded, so done again" : "");
    say(right ? GREEN : RED,
        right ? "  Nothing was lost, no finished step ran again, what must happen once happened once."
              : "  This is wrong: a step that must happen once did not happen exactly once.");
    say(PLAIN, right ? "\n\n  Yours: tidemark exec -- ./your-program, with `tidemark step` and `tidemark wait` inside; "
                       "examples/ has some.\n"
                     : "\n");
    return right;
}

bool play_deploy(void)
{
    struct deploy d = {.step_ms = !demo.json && isatty(STDOUT_FILENO) ? STEP_TERMINAL_MS : STEP_PLAIN_MS};
    int64_t began_ms = clock_ms();
    char text[300];
    int status;

    snprintf(text, sizeof(text), "%d.%03d", d.step_ms / 2000, d.step_ms / 2 % 1000);
    setenv("DEMO_PAUSE", text, 1);
    place_make("demo/deploy");
    say(PLAIN, "A deploy that cannot be lost: five steps and an approval, killed at random moments.\n\n");
    place_show("deploy.sh");
    status =
        play(&d, "tidemark sessions new --id deploy", "exec tidemark sessions new --id deploy --title 'Deploy 2.4'", 0);
    if (status == 0)
        status = play_part(&d, "tidemark exec --session deploy -- ./deploy.sh",
                           "exec tidemark exec --session deploy -- ./deploy.sh", 2);
    if (status != EXIT_WAITING || !d.token[0])
        fail("the program should wait for approval, and ended with status %d", status);
    say_why(&d);
    snprintf(text, sizeof(text), "exec tidemark resume deploy --token %s --input yes", d.token);
    status = play_part(&d, "tidemark resume deploy --token rt_… --input yes", text, 3);
    if (status != 0)
        fail("the program should be done, and ended with status %d", status);
    d.drawing = true;
    snprintf(text, sizeof(text), "exec tidemark --color %s sessions timeline deploy",
             demo.colored ? "always" : "never");
    if (!demo.json)
        play(&d, "tidemark sessions timeline deploy", text, 0);
    return show_world(&d, began_ms);
}
