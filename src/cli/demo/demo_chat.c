/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark demo --chat: an agent that whoever watches may kill. It answers from a script, works with real tools, and leaves
 * a line in a file outside the store each time one really runs. `k` kills it with SIGKILL, wherever it is; any key brings it
 * back; at the end that file is counted. Without a terminal it is killed at random moments.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "cli/demo.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/wrap.h"
#include "program/proc.h"

#define PROMPT "Prepare release 2.4: count the files, write the notes, tag it, and tell the team."
#define LIVES_MAX 60
#define TOOLS 3

static const char *const deeds[TOOLS] = {"counted", "tagged", "told the team"};

struct chat_demo {
    struct cli *cli;
    struct demo_place place;
    pid_t child;
    bool keys; /* a person may press them */
    struct termios before;
    int kills, random_kills;
    int ran[TOOLS];
};

/* ---- what the agent answers ---- */

/* Slow enough to be watched on a terminal. */
static void put_call(const struct chat_demo *d, struct json_out *o, const char *deed)
{
    int work_ms = d->keys ? 1500 : 150;
    char command[200];

    json_out_key(o, STR("calls"));
    json_out_begin(o, '[');
    json_out_begin(o, '{');
    json_out_kstr(o, STR("name"), deed ? STR("bash") : STR("write"));
    json_out_key(o, STR("args"));
    json_out_begin(o, '{');
    if (deed) {
        snprintf(command, sizeof(command), "sleep %d.%03d; echo '%s' >> world.log; echo %s", work_ms / 1000,
                 work_ms % 1000, deed, deed);
        json_out_kstr(o, STR("command"), str_from(command));
    } else {
        json_out_kstr(o, STR("path"), STR("NOTES.md"));
        json_out_kstr(o, STR("content"), STR("# 2.4\n\n- sessions that cannot be lost\n"));
    }
    json_out_end(o, '}');
    json_out_end(o, '}');
    json_out_end(o, ']');
}

static const struct {
    const char *text;
    bool calls;
    const char *deed; /* NULL: the notes are written */
} turns[] = {
    {"I will look at what there is first.", true, "counted"},
    {"There are **214 files**. The notes come next.", true, NULL},
    {"The notes are in `NOTES.md`. Now the tag, which must happen *once*.", true, "tagged"},
    {"Tagged. The team is told last, because mails cannot be taken back.", true, "told the team"},
    {"Release 2.4 is out:\n\n- 214 files counted\n- notes written to `NOTES.md`\n- tagged\n- the team knows\n\nNothing of "
     "this was done twice, however often I was killed.",
     false, NULL},
};

static enum tide_code write_script(const struct chat_demo *d, struct tide_err *err)
{
    AUTO(buf_done) struct buf out = BUF_INIT(65536);
    struct json_out o = json_out_to(&out);
    char path[600];
    int fd;
    bool ok;

    json_out_begin(&o, '{');
    json_out_key(&o, STR("turns"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        json_out_begin(&o, '{');
        json_out_kstr(&o, STR("text"), str_from(turns[i].text));
        json_out_kint(&o, STR("chunk_ms"), d->keys ? 60 : 5);
        if (turns[i].calls)
            put_call(d, &o, turns[i].deed);
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    snprintf(path, sizeof(path), "%s/script.json", d->place.dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ok = fd >= 0 && write(fd, out.ptr, out.len) == (ssize_t)out.len;
    if (fd >= 0)
        close(fd);
    return ok ? TIDE_OK : tide_fail_errno(err, errno, "write '%s'", path);
}

/* ---- its processes ---- */

static _Noreturn void become(const struct chat_demo *d, bool first, pid_t parent)
{
    const char *begin[] = {"tidemark", "--store",     d->place.store, "chat", "--script", "script.json", "--yes",
                           "--watch",  "--max-turns", "50",           "-p",   PROMPT,     NULL},
               *again[] = {"tidemark", "--store", d->place.store, "chat", "--continue", "--yes", "--watch", NULL};
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (d->cli->out.json)
        dup2(null, STDOUT_FILENO);
    if (d->cli->out.json || !d->keys)
        dup2(null, STDERR_FILENO);
    if (getppid() == parent && chdir(d->place.dir) == 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO &&
        unsetenv("TIDEMARK_RUN") == 0 && setenv("TIDEMARK_CONFIG", "/dev/null", 1) == 0)
        execv("/proc/self/exe", (char *const *)(uintptr_t)(first ? begin : again));
    _exit(127);
}

static bool key_pressed(const struct chat_demo *d, int wait_ms, char *ret_key)
{
    struct pollfd p = {d->keys ? STDIN_FILENO : -1, POLLIN, 0};

    return poll(&p, 1, wait_ms) == 1 && read(STDIN_FILENO, ret_key, 1) == 1;
}

static int random_below(int n)
{
    uint32_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    return (int)(r % (uint32_t)n);
}

/* Stays with it until it ends or is killed. True: it was killed. */
static bool watch(struct chat_demo *d, int *ret_status)
{
    int64_t kill_at = !d->keys && d->random_kills > 0 ? proc_clock_ms() + 30 + random_below(600) : 0;
    char key = 0;

    while (waitpid(d->child, ret_status, WNOHANG) == 0) {
        if (key_pressed(d, 20, &key) && (key == 'k' || key == 'K'))
            kill_at = proc_clock_ms();
        if (stop_signal || (kill_at && proc_clock_ms() >= kill_at && demo_kill(&d->place, d->child))) {
            kill(d->child, SIGKILL);
            waitpid(d->child, ret_status, 0);
            d->child = 0;
            d->random_kills--;
            return WIFSIGNALED(*ret_status);
        }
    }
    d->child = 0;
    return false;
}

/* ---- the story ---- */

static void put(struct chat_demo *d, enum color color, const char *text)
{
    struct tide_err err;

    if (d->cli->out.json)
        return;
    out_colored(&d->cli->out, color, text);
    outf(&d->cli->out, "\n");
    out_wrap(&d->cli->out, 0);
    (void)!out_flush(&d->cli->out, &err);
}

static void take_terminal(struct chat_demo *d)
{
    struct termios raw;

    d->keys = !d->cli->out.json && d->cli->out.tty && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &d->before) == 0;
    if (!d->keys)
        return;
    raw = d->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

static enum tide_code live(struct chat_demo *d, bool first, bool *ret_killed, struct tide_err *err)
{
    pid_t parent = getpid();
    int status = 0;

    d->child = fork();
    if (d->child == 0)
        become(d, first, parent);
    if (d->child < 0)
        return tide_fail_errno(err, errno, "start a process");
    *ret_killed = watch(d, &status);
    if (stop_signal)
        return tide_fail(err, TIDE_CANCELLED, "demo: stopped");
    if (!*ret_killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        return tide_fail(err, TIDE_FAILED, "demo: the chat ended with status %d",
                         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return TIDE_OK;
}

static enum tide_code play(struct chat_demo *d, struct tide_err *err)
{
    bool killed = true;
    char key;

    put(d, COLOR_BOLD,
        d->keys ? "An agent at work. Press k to kill it, wherever it is; as often as you like."
                : "An agent at work, killed at random moments.");
    for (int i = 0; killed && i < LIVES_MAX; i++) {
        if (live(d, i == 0, &killed, err))
            return err->code;
        if (!killed)
            break;
        d->kills++;
        if (d->keys)
            (void)!write(STDOUT_FILENO, "\r\033[K\n", 5);
        put(d, COLOR_RED,
            d->keys ? "✗ kill -9. It is gone: no process, no memory. Press any key: `tidemark chat --continue`."
                    : "✗ kill -9. It is gone: no process, no memory.");
        while (d->keys && !stop_signal && !key_pressed(d, 100, &key))
            continue;
    }
    return killed ? tide_fail(err, TIDE_FAILED, "demo: it was killed %d times", d->kills) : TIDE_OK;
}

/* ---- the end ---- */

static void read_world(struct chat_demo *d)
{
    char path[600], line[100];
    FILE *f;

    snprintf(path, sizeof(path), "%s/world.log", d->place.dir);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        for (int i = 0; i < TOOLS; i++)
            d->ran[i] += strncmp(line, deeds[i], strlen(deeds[i])) == 0;
    if (f)
        fclose(f);
}

static void print_json(struct chat_demo *d, bool right)
{
    struct json_out o = out_json(&d->cli->out);

    json_out_begin(&o, '{');
    json_out_kbool(&o, STR("right"), right);
    json_out_kint(&o, STR("kills"), d->kills);
    json_out_key(&o, STR("happened"));
    json_out_begin(&o, '{');
    for (int i = 0; i < TOOLS; i++)
        json_out_kint(&o, str_from(deeds[i]), d->ran[i]);
    json_out_end(&o, '}');
    json_out_end(&o, '}');
    out_json_end(&d->cli->out);
}

static void verdict(struct chat_demo *d)
{
    bool right = true;
    char line[160];

    read_world(d);
    for (int i = 0; i < TOOLS; i++)
        right &= d->ran[i] <= 1;
    d->cli->exit_status = right ? 0 : 1;
    if (d->cli->out.json) {
        print_json(d, right);
        return;
    }
    outf(&d->cli->out, "\n");
    snprintf(line, sizeof(line), "Killed %d time%s. What really happened, by a file outside the store:", d->kills,
             d->kills == 1 ? "" : "s");
    put(d, COLOR_BOLD, line);
    for (int i = 0; i < TOOLS; i++) {
        snprintf(line, sizeof(line), "  %-14s %s", deeds[i],
                 d->ran[i] == 1 ? "once"
                 : d->ran[i] == 0
                     ? "not: it was cut, nobody could know, so it was not done again and the model was told"
                     : "MORE THAN ONCE");
        put(d, d->ran[i] > 1 ? COLOR_RED : COLOR_NONE, line);
    }
    put(d, right ? COLOR_GREEN : COLOR_RED, right ? "Nothing happened twice." : "This is wrong.");
    outf(&d->cli->out, "\n");
    put(d, COLOR_NONE, "Yours: `tidemark chat`, with a key in ANTHROPIC_API_KEY or OPENAI_API_KEY.");
}

enum tide_code demo_chat(struct cli *cli, struct tide_err *err)
{
    struct chat_demo d = {.cli = cli, .random_kills = 2};
    enum tide_code code;

    take_terminal(&d);
    code = demo_place_make(&d.place, NULL, 0, err);
    code = code ? code : write_script(&d, err);
    code = code ? code : play(&d, err);
    if (d.keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &d.before);
    if (!code)
        verdict(&d);
    demo_place_remove(&d.place);
    return code;
}
