/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark demo: the promise, played. On a store of its own in a temporary directory, a program of five steps with an
 * approval in the middle runs as a durable session; its supervisor is killed with SIGKILL at random moments and the session
 * resumed, until it is done. Each step leaves a line in a file outside the store when it really happens: at the end that
 * file is compared with what was promised. The timeline is drawn from the log.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/demo.h"
#include "cli/line_reader.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/wrap.h"
#include "program/proc.h"

#define SESSION "deploy"
#define STEP_TERMINAL_MS 700
#define STEP_PLAIN_MS 160
#define ROUNDS_MAX 40
#define EXIT_WAITING 7
#define EARLY_MS 80 /* a kill comes so long before the end at the latest: to look first takes a moment */
#define LOOK_MS 10  /* a kill that comes too early is tried again so often */

static const struct demo_step program[DEMO_STEPS] = {
    {"build", "pure", "214 files compiled", 0},
    {"test", "pure", "1,312 tests passed", 0},
    {"migrate", "once", "table users has 3 new columns", 0},
    {"release", "idempotent", "version 2.4 is out", 0},
    {"announce", "once", "4,096 mails sent", 0},
};

struct demo {
    struct cli *cli;
    struct demo_place place;
    struct demo_step steps[DEMO_STEPS];
    struct demo_child child;
    char token[TIDE_TOKEN_SIZE];
    int step_ms, kills;
    bool drawing; /* what is printed now is as wide as it may be */
    int64_t began_ms;
};

static int random_below(int n)
{
    uint32_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    return (int)(r % (uint32_t)n);
}

static bool show(const struct demo *d)
{
    return !d->cli->out.json;
}

/* Everything gathered so far, at once: people watch. */
static void put_out(struct demo *d)
{
    struct tide_err err;

    if (!d->drawing)
        out_wrap(&d->cli->out, 0);
    (void)!out_flush(&d->cli->out, &err);
}

/* ---- one process of it ---------------------------------------------------------------------------------------------- */

static void take_token(struct demo *d, struct str line)
{
    const char *at = memmem(line.ptr, line.len, "rt_", 3);
    size_t n = 0, left = at ? (size_t)(line.ptr + line.len - at) : 0;

    while (n < left && n < sizeof(d->token) - 1 && (str_is_id((struct str){at + n, 1}) || at[n] == '.' || at[n] == '-'))
        n++;
    if (n > 0 && memchr(at, '.', n))
        snprintf(d->token, sizeof(d->token), "%.*s", (int)n, at);
}

/* Shows what it prints until it and all its children have ended, killed when its time has come. True when it was. */
static bool watch(struct demo *d, struct line_reader *lines, int64_t kill_ms)
{
    struct out *out = &d->cli->out;
    struct tide_err err;
    struct str line;
    bool killed = false;

    for (;;) {
        int64_t left = kill_ms ? kill_ms - proc_clock_ms() : -1;
        struct pollfd p = {d->child.fd, POLLIN, 0};

        if (kill_ms && left <= 0) {
            killed = demo_kill(&d->place, d->child.pid);
            kill_ms = killed ? 0 : proc_clock_ms() + LOOK_MS;
            left = killed ? -1 : LOOK_MS;
        }
        if (stop_signal || (poll(&p, 1, (int)left) < 0 && errno != EINTR))
            return killed;
        if (!p.revents)
            continue;
        switch (line_reader_next(lines, true, &line, &err)) {
        case LINE_HERE:
            take_token(d, line);
            if (show(d)) {
                outf(out, "%s%.*s\n", d->drawing ? "" : "    ", STR_ARG(line));
                put_out(d);
            }
            break;
        default:
            return killed;
        }
    }
}

static void say_command(struct demo *d, const char *command)
{
    struct out *out = &d->cli->out;

    if (!show(d))
        return;
    outf(out, "\n  %s$ %s%s\n", color_code(out, COLOR_BOLD), command, color_code(out, COLOR_NONE));
    put_out(d);
}

static void say_killed(struct demo *d, int64_t after_ms)
{
    struct out *out = &d->cli->out;

    if (!show(d))
        return;
    outf(out, "  %s✗ kill -9%s, %.1f s in, at a random moment: the supervisor and its program are gone.\n",
         color_code(out, COLOR_RED), color_code(out, COLOR_NONE), (double)after_ms / 1000);
    put_out(d);
}

/* Runs one command of ours, killed after within_ms at the latest (0: not). *ret_status: its exit status, -1 when killed. */
static enum tide_code play(struct demo *d, const char *said, const char *const *args, int within_ms, int *ret_status,
                           struct tide_err *err)
{
    int64_t began = proc_clock_ms(), kill_ms = within_ms ? began + 20 + random_below(within_ms - EARLY_MS) : 0;
    struct line_reader lines;
    bool killed;
    int status;

    say_command(d, said);
    if (demo_spawn(&d->place, args, &d->child, err))
        return err->code;
    line_reader_init(&lines, d->child.fd, 1 << 16);
    killed = watch(d, &lines, kill_ms);
    if (stop_signal && !killed)
        kill(d->child.pid, SIGKILL);
    status = demo_reap(&d->child);
    line_reader_done(&lines);
    if (stop_signal)
        return tide_fail(err, TIDE_CANCELLED, "demo: stopped");
    *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (killed && *ret_status < 0) {
        d->kills++;
        say_killed(d, proc_clock_ms() - began);
    }
    return TIDE_OK;
}

/* ---- the story --------------------------------------------------------------------------------------------------------- */

static enum tide_code say_why(struct demo *d, struct tide_err *err)
{
    static const char *const why[] = {"why", SESSION, NULL};
    int status;

    return show(d) ? play(d, "tidemark why " SESSION, why, 0, &status, err) : TIDE_OK;
}

/* From here until it waits or ends, resumed as often as it is killed; killed at least once. */
static enum tide_code play_part(struct demo *d, const char *said, const char *const *first, int steps, int *ret_status,
                                struct tide_err *err)
{
    static const char *const resume[] = {"resume", SESSION, NULL};
    int kills = d->kills;
    enum tide_code code = play(d, said, first, steps * d->step_ms, ret_status, err);

    for (int i = 0; i < ROUNDS_MAX && !code && *ret_status < 0; i++) {
        bool again = d->kills == kills || random_below(3) == 0;

        code = say_why(d, err);
        if (!code)
            code = play(d, "tidemark resume " SESSION, resume, again ? steps * d->step_ms : 0, ret_status, err);
    }
    return code;
}

static enum tide_code tell_story(struct demo *d, struct tide_err *err)
{
    static const char *const create[] = {"sessions", "new", "--id", SESSION, "--title", "Deploy 2.4", NULL};
    static const char *const exec[] = {"exec", "--session", SESSION, "--", "./deploy.sh", NULL};
    const char *approve[] = {"resume", SESSION, "--token", d->token, "--input", "yes", NULL};
    int status = 0;
    enum tide_code code = play(d, "tidemark sessions new --id " SESSION, create, 0, &status, err);

    if (!code && status == 0)
        code = play_part(d, "tidemark exec --session " SESSION " -- ./deploy.sh", exec, 2, &status, err);
    if (!code && (status != EXIT_WAITING || !d->token[0]))
        return tide_fail(err, TIDE_FAILED, "demo: the program should wait for approval, and ended with status %d",
                         status);
    code = code ? code : say_why(d, err);
    if (!code)
        code = play_part(d, "tidemark resume " SESSION " --token rt_… --input yes", approve, 3, &status, err);
    if (!code && status != 0)
        code = tide_fail(err, TIDE_FAILED, "demo: the program should be done, and ended with status %d", status);
    return code;
}

/* ---- the end ----------------------------------------------------------------------------------------------------------- */

/* What must happen once happened once; everything happened. */
static bool world_is_right(const struct demo *d)
{
    bool right = true;

    for (int i = 0; i < DEMO_STEPS; i++)
        right &= strcmp(d->steps[i].effect, "once") == 0 ? d->steps[i].ran == 1 : d->steps[i].ran >= 1;
    return right;
}

static enum tide_code draw_timeline(struct demo *d, struct tide_err *err)
{
    const char *args[] = {"--color", d->cli->out.color ? "always" : "never", "sessions", "timeline", SESSION, NULL};
    enum tide_code code = TIDE_OK;
    int status;

    d->drawing = true;
    if (show(d))
        code = play(d, "tidemark sessions timeline " SESSION, args, 0, &status, err);
    d->drawing = false;
    return code;
}

static void print_json(struct demo *d, bool right)
{
    struct json_out o = out_json(&d->cli->out);

    json_out_begin(&o, '{');
    json_out_kbool(&o, STR("right"), right);
    json_out_kint(&o, STR("kills"), d->kills);
    json_out_key(&o, STR("happened"));
    json_out_begin(&o, '{');
    for (int i = 0; i < DEMO_STEPS; i++)
        json_out_kint(&o, str_from(d->steps[i].name), d->steps[i].ran);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    out_json_end(&d->cli->out);
}

static void print_verdict(struct demo *d, bool right)
{
    struct out *out = &d->cli->out;

    outf(out, "\n  Killed %d time%s in %.1f s. What happened in the world:\n", d->kills, d->kills == 1 ? "" : "s",
         (double)(proc_clock_ms() - d->began_ms) / 1000);
    for (int i = 0; i < DEMO_STEPS; i++)
        outf(out, "    %-9s %-10s %d time%s%s\n", d->steps[i].name, d->steps[i].effect, d->steps[i].ran,
             d->steps[i].ran == 1 ? "" : "s", d->steps[i].ran > 1 ? ": cut before it was recorded, so done again" : "");
    out_colored(out, right ? COLOR_GREEN : COLOR_RED,
                right ? "  Nothing was lost, no finished step ran again, what must happen once happened once."
                      : "  This is wrong: a step that must happen once did not happen exactly once.");
    outf(out, "\n");
    if (right)
        outf(out, "\n  Yours: tidemark exec -- ./your-program, with `tidemark step` and `tidemark wait` inside; "
                  "examples/ has some.\n");
    put_out(d);
}

static enum tide_code play_demo(struct demo *d, struct tide_err *err)
{
    struct out *out = &d->cli->out;
    enum tide_code code = demo_place_make(&d->place, d->steps, d->step_ms, err);
    bool right;

    if (code)
        return code;
    if (show(d)) {
        outf(out, "A deploy that cannot be lost: five steps and an approval, killed at random moments.\n\n");
        demo_show_program(out, d->steps);
        put_out(d);
    }
    code = tell_story(d, err);
    code = code ? code : draw_timeline(d, err);
    if (code)
        return code;
    demo_read_world(&d->place, d->steps);
    right = world_is_right(d);
    if (show(d))
        print_verdict(d, right);
    else
        print_json(d, right);
    d->cli->exit_status = right ? 0 : 1;
    return TIDE_OK;
}

/* Whoever watched may go on with the others. */
static enum tide_code offer_others(struct cli *cli, struct tide_err *err)
{
    char line[16] = "";

    if (cli->out.json || !cli->out.tty || !isatty(STDIN_FILENO))
        return TIDE_OK;
    outf(&cli->out, "\n  Type c and Enter for an agent that you can kill yourself, g and Enter for\n"
                    "  graphs that go on where they failed; Enter alone leaves. ");
    if (out_flush(&cli->out, err))
        return err->code;
    (void)!read(STDIN_FILENO, line, sizeof(line) - 1);
    if (line[0] == 'c' || line[0] == 'C')
        return demo_chat(cli, err);
    return line[0] == 'g' || line[0] == 'G' ? demo_graph(cli, err) : TIDE_OK;
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    struct demo d = {
        .cli = cli, .step_ms = cli->out.tty ? STEP_TERMINAL_MS : STEP_PLAIN_MS, .began_ms = proc_clock_ms()};
    enum tide_code code;

    if (args_on(&cli->args, "chat"))
        return demo_chat(cli, err);
    if (args_on(&cli->args, "graph"))
        return demo_graph(cli, err);
    memcpy(d.steps, program, sizeof(program));
    code = play_demo(&d, err);
    if (d.child.pid > 0) {
        kill(d.child.pid, SIGKILL);
        demo_reap(&d.child);
    }
    demo_place_remove(&d.place);
    return code ? code : offer_others(cli, err);
}

const struct command cmd_demo = {
    .name = "demo",
    .run = run,
    .options = (const struct opt[]){{.name = "chat", .help = "an agent at work, which you may kill: press k"},
                                    {.name = "graph", .help = "graphs that fail, wait and go on, to be chosen from"},
                                    {.name = NULL}},
    .help = "watch a program be killed at random and resumed, with nothing lost and nothing done twice",
    .more =
        "It plays on a store of its own in a temporary directory and takes it away again. Exit status 1 if anything\n"
        "that must happen once did not happen exactly once.",
};
