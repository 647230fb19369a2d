/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark demo --graph: the graphs of examples/graphs, played in a place of their own: no account, no network. The files are
 * those that people read (tools/embed.awk puts them in), the commands those of their README. With a terminal whoever watches
 * chooses; without one all are played, and an exit status that is not the one that was meant is a failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/demo.h"
#include "cli/launch.h"
#include "cli/terminal/progress.h"

#define COMMANDS 4
#define ARGS 16

static const struct play {
    const char *name, *says;
    struct {
        const char *line; /* words with one space between them */
        int status;
    } commands[COMMANDS];
} plays[] = {
    {"research",
     "a search fails for its key; only that one runs again",
     {{"graph show research.json", 0},
      {"run research.json --session rivers --script research.script.json --set api_key=wrong", 1},
      {"sessions list --status failed", 0},
      {"sessions resume rivers --script research.script.json --set api_key=open-sesame", 0}}},
    {"review",
     "three at once set the same key; a verdict waits for all",
     {{"graph show review.json", 0}, {"run review.json --session review", 0}}},
    {"approval",
     "it waits for a person: no process, only the log",
     {{"run approval.json --session letter --script approval.script.json", 7},
      {"why letter", 0},
      {"sessions resume letter --script approval.script.json --input yes", 0}}},
    {"improve",
     "an agent writes until a judge is content",
     {{"graph show improve.json", 0}, {"run improve.json --session improve --script improve.script.json", 0}}},
    {"files",
     "one program a file; then it is killed at every event",
     {{"run files.json --session files", 0}, {"torture files.json", 0}}},
};
#define PLAYS (sizeof(plays) / sizeof(plays[0]))

struct graph_demo {
    struct cli *cli;
    struct demo_place place;
    bool right;
    int played;
};

/* ---- the place ---- */

static enum tide_code put_file(const struct demo_place *place, const struct demo_file *file, struct tide_err *err)
{
    char path[700];
    bool ok;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", place->dir, file->name);
    f = fopen(path, "we");
    ok = f && fputs(file->text, f) >= 0;
    ok = (!f || fclose(f) == 0) && ok && chmod(path, strstr(file->name, ".sh") ? 0700 : 0600) == 0;
    return ok ? TIDE_OK : tide_fail_errno(err, errno, "demo: write '%s'", path);
}

static enum tide_code make_place(struct demo_place *place, struct tide_err *err)
{
    char path[600];
    enum tide_code code = demo_place_make(place, NULL, 0, err);

    snprintf(path, sizeof(path), "%s/texts", place->dir);
    if (!code && mkdir(path, 0700) != 0)
        code = tide_fail_errno(err, errno, "demo: make '%s'", path);
    for (const struct demo_file *f = demo_files; f->name && !code; f++)
        code = put_file(place, f, err);
    return code;
}

static void remove_place(struct demo_place *place)
{
    char path[700];

    for (const struct demo_file *f = demo_files; f->name && place->dir[0]; f++) {
        snprintf(path, sizeof(path), "%s/%s", place->dir, f->name);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/texts", place->dir);
    if (place->dir[0])
        rmdir(path);
    demo_place_remove(place);
}

/* ---- a command ---- */

/* Its output is ours: what it draws while it runs is to be seen. */
static _Noreturn void become(const struct graph_demo *d, const char *line, pid_t parent)
{
    const char *args[ARGS + 6] = {"tidemark", "--store", d->place.store, "--color",
                                  d->cli->out.color ? "always" : "never"};
    char words[512], *w = words;
    int n = 5, null = open("/dev/null", O_RDWR | O_CLOEXEC);

    snprintf(words, sizeof(words), "%s", line);
    while (w && n < ARGS + 5) {
        args[n++] = w;
        w = strchr(w, ' ');
        if (w)
            *w++ = '\0';
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (d->cli->out.json) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    if (getppid() == parent && chdir(d->place.dir) == 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO &&
        unsetenv("TIDEMARK_RUN") == 0 && setenv("TIDEMARK_CONFIG", "/dev/null", 1) == 0)
        execv("/proc/self/exe", (char *const *)(uintptr_t)args);
    _exit(127);
}

static enum tide_code run_command(struct graph_demo *d, const char *line, int want, struct tide_err *err)
{
    struct out *out = &d->cli->out;
    pid_t parent = getpid(), child;
    int status = 0;

    if (!out->json)
        outf(out, "\n  %s$ tidemark %s%s\n", color_code(out, COLOR_BOLD), line, color_code(out, COLOR_NONE));
    if (!out->json && out_flush(out, err))
        return err->code;
    child = fork();
    if (child == 0)
        become(d, line, parent);
    if (child < 0)
        return tide_fail_errno(err, errno, "start a process");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        if (stop_signal)
            kill(child, SIGTERM);
    if (stop_signal)
        return tide_fail(err, TIDE_CANCELLED, "demo: stopped");
    if (WIFEXITED(status) && WEXITSTATUS(status) == want)
        return TIDE_OK;
    d->right = false;
    say("demo: `tidemark %s` ended with status %d, and %d was meant", line,
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), want);
    return TIDE_OK;
}

/* Each on a fresh store: it may be chosen again. */
static enum tide_code play(struct graph_demo *d, const struct play *p, struct tide_err *err)
{
    struct out *out = &d->cli->out;
    enum tide_code code = make_place(&d->place, err);

    if (!out->json) {
        outf(out, "\n");
        out_colored(out, COLOR_BOLD, p->name);
        outf(out, ": %s.\n", p->says);
    }
    for (int i = 0; i < COMMANDS && p->commands[i].line && !code; i++)
        code = run_command(d, p->commands[i].line, p->commands[i].status, err);
    remove_place(&d->place);
    d->played++;
    return code;
}

/* ---- the choice ---- */

static enum tide_code choose(struct graph_demo *d, size_t *ret, struct tide_err *err)
{
    struct out *out = &d->cli->out;
    char line[16] = "";

    outf(out, "\nGraphs that can be killed anywhere. Each runs offline, in a place of its own.\n\n");
    for (size_t i = 0; i < PLAYS; i++)
        outf(out, "  %zu  %-9s %s\n", i + 1, plays[i].name, plays[i].says);
    outf(out, "\n  A number and Enter plays it; Enter alone leaves. ");
    if (out_flush(out, err))
        return err->code;
    *ret = PLAYS;
    while (read(STDIN_FILENO, line, sizeof(line) - 1) > 0 && line[strspn(line, " \t\r\n")] && !stop_signal) {
        const char *first = line + strspn(line, " \t");

        if (*first >= '1' && (size_t)(*first - '1') < PLAYS && !first[1 + strspn(first + 1, " \t\r\n")]) {
            *ret = (size_t)(*first - '1');
            break;
        }
        outf(out, "  There is no %.*s: a number from 1 to %zu, or Enter alone. ", (int)strcspn(first, "\r\n"), first,
             PLAYS);
        if (out_flush(out, err))
            return err->code;
        memset(line, 0, sizeof(line));
    }
    return stop_signal ? tide_fail(err, TIDE_CANCELLED, "demo: stopped") : TIDE_OK;
}

static enum tide_code play_chosen(struct graph_demo *d, struct tide_err *err)
{
    size_t which = 0;
    enum tide_code code;

    for (;;) {
        code = choose(d, &which, err);
        if (code || which == PLAYS)
            return code;
        code = play(d, &plays[which], err);
        if (code)
            return code;
    }
}

static enum tide_code play_all(struct graph_demo *d, struct tide_err *err)
{
    enum tide_code code = TIDE_OK;

    for (size_t i = 0; i < PLAYS && !code; i++)
        code = play(d, &plays[i], err);
    return code;
}

static void print_json(struct graph_demo *d)
{
    struct json_out o = out_json(&d->cli->out);

    json_out_begin(&o, '{');
    json_out_kbool(&o, STR("right"), d->right);
    json_out_kint(&o, STR("played"), d->played);
    json_out_end(&o, '}');
    out_json_end(&d->cli->out);
}

enum tide_code demo_graph(struct cli *cli, struct tide_err *err)
{
    struct graph_demo d = {.cli = cli, .right = true};
    bool asked = !cli->out.json && cli->out.tty && isatty(STDIN_FILENO);
    enum tide_code code = asked ? play_chosen(&d, err) : play_all(&d, err);

    if (code)
        return code;
    if (cli->out.json)
        print_json(&d);
    cli->exit_status = d.right ? 0 : 1;
    return TIDE_OK;
}
