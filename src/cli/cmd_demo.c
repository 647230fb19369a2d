/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark demo: the promise, played. On a store of its own in a temporary directory, a worker (this program in another
 * process) writes a session step by step and is killed with SIGKILL in the middle, several times; each time a new one goes
 * on from the mark. This process keeps every line that was acknowledged, in memory, and never touches the store. At the
 * end a fresh process reads the log (`tidemark log show`), and each acknowledged event must be there, byte for byte.
 *
 * An event that was stored in the instant of a kill, before it could be acknowledged, is in the log as well: it was not
 * promised, and it is not lost. It is counted apart.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/demo.h"
#include "cli/lines.h"
#include "cli/progress.h"

#define SESSION "demo"
#define STEPS_TERMINAL 240 /* at this pace about seven seconds */
#define PACE_MS 24
#define STEPS_PLAIN 900
#define LINE_MAX ((size_t)64 << 10)

static const struct opt options[] = {
    {.name = "worker", .type = VALUE_ID, .value = "ID", .hidden = true, .help = "be the worker"},
    {.name = "until", .type = VALUE_INT, .value = "STEP", .hidden = true, .help = "last step of the worker"},
    {.name = "pace", .type = VALUE_INT, .value = "MS", .max = 10000, .hidden = true, .help = "pause after each step"},
    {.name = NULL},
};

struct demo {
    struct cli *cli;
    char dir[512], store[600];
    int64_t steps, pace_ms;
    char **acked; /* by step: "KIND BODY" as the worker said it; NULL: not acknowledged */
    int64_t n_acked, unanswered, found, wrong;
    struct demo_child child;
    struct demo_run runs[DEMO_KILLS + 1];
};

/* ---- small things ---- */

static uint32_t random_below(uint32_t n)
{
    uint32_t r = 0;

    (void)!getrandom(&r, sizeof(r), 0);
    return r % (n ? n : 1);
}

static bool show(struct demo *d)
{
    return !d->cli->out.json;
}

static enum tide_code stopped(struct tide_err *err)
{
    return tide_fail(err, TIDE_CANCELLED, "demo: stopped");
}

static enum tide_code make_dir(struct demo *d, struct tide_err *err)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(d->dir, sizeof(d->dir), "%.400s/tidemark-demo.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(d->dir)) {
        d->dir[0] = '\0';
        return tide_fail_errno(err, errno, "demo: make a directory in '%s'", tmp && *tmp ? tmp : "/tmp");
    }
    snprintf(d->store, sizeof(d->store), "%s/demo.db", d->dir);
    return TIDE_OK;
}

static void remove_dir(struct demo *d)
{
    DIR *dir = d->dir[0] ? opendir(d->dir) : NULL;

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    if (d->dir[0])
        rmdir(d->dir);
}

static void kill_child(struct demo *d)
{
    if (d->child.pid > 0)
        kill(d->child.pid, SIGKILL);
}

/* ---- the runs ---- */

static enum tide_code make_session(struct demo *d, struct tide_err *err)
{
    const char *const args[] = {"sessions", "new", "--store", d->store, "--id", SESSION, "--title", "the demo", NULL};

    if (demo_spawn(args, &d->child, err))
        return err->code;
    if (demo_reap(&d->child) != 0)
        return tide_fail(err, TIDE_FAILED, "demo: `tidemark sessions new` failed");
    return TIDE_OK;
}

/* "done STEP KIND BODY" or "mark STEPS". */
static enum tide_code hear(struct demo *d, struct demo_run *run, const char *line, struct tide_err *err)
{
    int64_t step = 0;
    int at = 0;

    if (sscanf(line, "mark %" SCNd64, &run->mark) == 1) {
        run->acked = run->mark;
        return TIDE_OK;
    }
    if (sscanf(line, "done %" SCNd64 " %n", &step, &at) != 1 || step < 1 || step > d->steps || d->acked[step])
        return tide_fail(err, TIDE_FAILED, "demo: the worker did a step twice or out of order: %.100s", line);
    d->acked[step] = mem_dup(str_from(line + at));
    d->n_acked++;
    run->acked = step;
    return TIDE_OK;
}

static void pause_us(int64_t us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&ts, NULL);
}

/* At a random point of what the worker writes next: it rests for its pace after each step. */
static void kill_in_a_moment(struct demo *d)
{
    pause_us(d->pace_ms * 1000 + random_below(2000));
    kill_child(d);
}

/* Listens until the worker ends; kills it soon after it has acknowledged `kill_after` (0: never). */
static enum tide_code listen_to(struct demo *d, int number, int64_t kill_after, struct tide_err *err)
{
    struct demo_run *run = &d->runs[number];
    struct lines lines;
    struct str line;
    enum line_got got;
    enum tide_code code = TIDE_OK;
    bool killed = false;

    lines_init(&lines, d->child.fd, LINE_MAX);
    while (!code && (got = lines_next(&lines, true, &line, err)) == LINE_HERE) {
        AUTO(mem_freep) char *text = mem_dup(line);

        code = hear(d, run, text, err);
        if (show(d) && d->cli->out.tty)
            demo_picture_run(&d->cli->out, d->steps, number + 1, run, false);
        if (!code && show(d))
            code = out_flush(&d->cli->out, err);
        if (!code && kill_after && run->acked >= kill_after && !killed) {
            kill_in_a_moment(d);
            killed = true;
        }
    }
    lines_done(&lines);
    if (!code && got != LINE_END)
        code = got == LINE_STOPPED ? stopped(err) : err->code;
    return code;
}

static enum tide_code one_run(struct demo *d, int number, struct tide_err *err)
{
    struct demo_run *run = &d->runs[number];
    int64_t part = d->steps / (DEMO_KILLS + 1);
    int64_t kill_after = number < DEMO_KILLS ? part * number + part / 2 + random_below((uint32_t)part) : 0;
    char until[24], pace[24];
    const char *const args[] = {"demo",    "--store", d->store, "--worker", SESSION,
                                "--until", until,     "--pace", pace,       NULL};
    enum tide_code code;
    int status;

    snprintf(until, sizeof(until), "%" PRId64, d->steps);
    snprintf(pace, sizeof(pace), "%" PRId64, d->pace_ms);
    if (demo_spawn(args, &d->child, err))
        return err->code;
    run->pid = d->child.pid;
    code = listen_to(d, number, kill_after, err);
    if (code)
        kill_child(d);
    status = demo_reap(&d->child);
    run->killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (code)
        return code;
    if (show(d))
        demo_picture_run(&d->cli->out, d->steps, number + 1, run, true);
    if (!run->killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        return tide_fail(err, TIDE_FAILED, "demo: the worker failed");
    if (show(d) && out_flush(&d->cli->out, err))
        return err->code;
    pause_us(d->pace_ms * 10000); /* long enough to see that nobody works */
    return TIDE_OK;
}

/* ---- the comparison ---- */

/* {"seq":N,"ts":"…","kind":"KIND",…}: everything but the time must be what was acknowledged. */
static bool is_event(struct str line, int64_t seq, const char *said)
{
    AUTO(buf_done) struct buf want = BUF_INIT(LINE_MAX);
    const char *space = strchr(said, ' ');
    struct str rest;

    buf_addf(&want, "{\"seq\":%" PRId64 ",\"ts\":\"", seq);
    if (!space || !str_starts(line, buf_view(&want)) || line.len < want.len + TIME_TEXT_SIZE - 1)
        return false;
    rest = (struct str){line.ptr + want.len + TIME_TEXT_SIZE - 1, line.len - want.len - (TIME_TEXT_SIZE - 1)};
    buf_clear(&want);
    buf_addf(&want, "\",\"kind\":\"%.*s\",%s", (int)(space - said), said, space + 2);
    return str_eq(rest, buf_view(&want));
}

/* Line n of the log is seq n: anything else (a gap, a repeat) shows up as a line that is not what it should be. */
static void compare_line(struct demo *d, struct str line, int64_t seq)
{
    int64_t step = seq - (DEMO_FIRST_SEQ - 1);
    AUTO(buf_done) struct buf body = BUF_INIT(LINE_MAX), meant = BUF_INIT(LINE_MAX);

    if (step < 1)
        return;
    if (step > d->steps) {
        d->wrong++;
        return;
    }
    buf_addf(&meant, "%s ", demo_event(step, &body));
    buf_add_str(&meant, buf_view(&body));
    if (!is_event(line, seq, d->acked[step] ? d->acked[step] : buf_cstr(&meant)))
        d->wrong++;
    else if (d->acked[step])
        d->found++;
    else
        d->unanswered++;
}

static enum tide_code compare(struct demo *d, struct tide_err *err)
{
    const char *const args[] = {"log", "show", SESSION, "--store", d->store, NULL};
    struct lines lines;
    struct str line;
    enum line_got got;

    if (demo_spawn(args, &d->child, err))
        return err->code;
    lines_init(&lines, d->child.fd, LINE_MAX);
    while ((got = lines_next(&lines, true, &line, err)) == LINE_HERE)
        compare_line(d, line, lines.number);
    lines_done(&lines);
    if (got != LINE_END)
        kill_child(d);
    if (demo_reap(&d->child) != 0 && got == LINE_END)
        return tide_fail(err, TIDE_FAILED, "demo: `tidemark log show` failed");
    return got == LINE_END ? TIDE_OK : got == LINE_STOPPED ? stopped(err) : err->code;
}

static bool is_equal(const struct demo *d)
{
    return d->found == d->n_acked && d->wrong == 0 && d->found + d->unanswered == d->steps;
}

static int count_kills(const struct demo *d)
{
    int kills = 0;

    for (int i = 0; i <= DEMO_KILLS; i++)
        kills += d->runs[i].killed;
    return kills;
}

/* ---- what it comes to ---- */

static void conclude_text(struct demo *d)
{
    struct out *out = &d->cli->out;
    const char *bold = color_code(out, COLOR_BOLD), *none = color_code(out, COLOR_NONE);

    outf(out, "\n%6" PRId64 "  acknowledged by the workers, in %d runs with %d kills\n", d->n_acked, DEMO_KILLS + 1,
         count_kills(d));
    outf(out, "%6" PRId64 "  of these found in the log by a fresh process, byte for byte\n", d->found);
    if (d->unanswered)
        outf(out, "%6" PRId64 "  more were stored in the instant of a kill, before the answer: kept as well\n",
             d->unanswered);
    outf(out, "%6" PRId64 "  missing, changed or twice\n\n", d->n_acked - d->found + d->wrong);
    if (is_equal(d))
        outf(out, "%s%sequal%s%s: all that was acknowledged is there; steps 1 to %" PRId64 ", each once%s\n", bold,
             color_code(out, COLOR_GREEN), none, bold, d->steps, none);
}

static void conclude_json(struct demo *d)
{
    struct json_out o = out_json(&d->cli->out);

    json_out_begin(&o, '{');
    json_out_kint(&o, STR("steps"), d->steps);
    json_out_kint(&o, STR("runs"), DEMO_KILLS + 1);
    json_out_kint(&o, STR("kills"), count_kills(d));
    json_out_kint(&o, STR("acknowledged"), d->n_acked);
    json_out_kint(&o, STR("found"), d->found);
    json_out_kint(&o, STR("stored_unanswered"), d->unanswered);
    json_out_kint(&o, STR("wrong"), d->wrong);
    json_out_kbool(&o, STR("equal"), is_equal(d));
    json_out_end(&o, '}');
    out_json_end(&d->cli->out);
}

static enum tide_code play(struct demo *d, struct tide_err *err)
{
    enum tide_code code = make_dir(d, err);

    if (!code)
        code = make_session(d, err);
    if (!code && show(d))
        demo_picture_begin(&d->cli->out, d->steps, d->store);
    for (int i = 0; i <= DEMO_KILLS && !code; i++)
        code = one_run(d, i, err);
    if (!code)
        code = compare(d, err);
    if (code)
        return code;
    if (show(d))
        conclude_text(d);
    else
        conclude_json(d);
    if (is_equal(d))
        return TIDE_OK;
    return out_flush(&d->cli->out, err) ? err->code
                                        : tide_fail(err, TIDE_FAILED, "demo: the log is not what was acknowledged");
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const char *worker = args_text(&cli->args, "worker");
    bool slow = cli->out.tty && !cli->out.json;
    struct demo d = {.cli = cli, .steps = slow ? STEPS_TERMINAL : STEPS_PLAIN, .pace_ms = slow ? PACE_MS : 0};
    enum tide_code code;

    if (worker) {
        code = cli_store_open(cli, NEED_WRITE, 0, err);
        return code ? code
                    : demo_work(cli, worker, args_int(&cli->args, "until", 0), args_int(&cli->args, "pace", 0), err);
    }
    d.acked = mem_array((size_t)d.steps + 1, sizeof(char *));
    code = play(&d, err);
    kill_child(&d);
    demo_reap(&d.child);
    remove_dir(&d);
    for (int64_t i = 0; i <= d.steps; i++)
        free(d.acked[i]);
    free(d.acked);
    return code;
}

const struct command cmd_demo = {
    .name = "demo",
    .run = run,
    .options = options,
    .help = "play it: a worker is killed again and again, and nothing is lost (on a throw-away store)",
};
