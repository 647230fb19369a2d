/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tidemark torture: a graph is killed everywhere and resumed. What is said of it: for people what was tried, the four things
 * that must not be, and each case of them; as JSON all of it.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/error_hints.h"
#include "cli/graph/graph_view.h"
#include "cli/graph/graph_set.h"
#include "cli/options.h"
#include "cli/next_command.h"
#include "terminal/glyph.h"
#include "terminal/progress.h"
#include "terminal/wrap.h"
#include "engine/store_url.h"
#include "torture/torture.h"

#define POINTS_DEFAULT 100
#define LABEL 27       /* columns of what stands in front */
#define SHOWN 20       /* faults of a kind that people see */
#define VALUE_SHOWN 60 /* columns of a value */

static const struct opt options[] = {
    {.name = "crash-points",
     .type = VALUE_TEXT,
     .value = "all|N",
     .words = "all",
     .help = "kill it at all points, or at N points, one in each of N equal parts (default: all, at most 100)"},
    {OPT_MANY("set", "KEY=VALUE", "set a key of the memory before anything runs, as in `tidemark run`")},
    {.name = "answer",
     .type = VALUE_TEXT,
     .value = "TEXT",
     .many = true,
     .help = "the answers to questions, in order; the last one answers all further questions (default: yes)"},
    {.name = "kills",
     .type = VALUE_INT,
     .value = "N",
     .min = 1,
     .max = 20,
     .help = "kill every session up to N times; after the first time, at random points (default: 1)"},
    {.name = "seed",
     .type = VALUE_INT,
     .value = "N",
     .help = "the seed of random choices (default: a new one each time)"},
    {.name = "script",
     .type = VALUE_FILE,
     .value = "FILE",
     .help = "answer from this file, without an account or network"},
    {.name = "yes", .help = "allow every tool of agents that the configuration does not deny"},
    {.name = "keep", .help = "keep the store with all sessions, even if nothing failed"},
    {.name = NULL},
};

/* ---- what is said of it ---- */

static const char *s_of(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* On a terminal the value is broken at words, each line below the first. */
__attribute__((format(printf, 3, 4))) static void row(struct out *out, const char *label, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 16);
    char line[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    wrap_text(&text, str_from(line), out->tty ? terminal_columns(STDOUT_FILENO) - LABEL - 4 : INT_MAX);
    for (char *at = text.len ? (char *)(uintptr_t)buf_cstr(&text) : line, *end; *at; at = end) {
        end = at + strcspn(at, "\n");
        end += *end ? 1 : 0;
        if (end[-1] == '\n')
            end[-1] = '\0';
        outf(out, "  %-*s ", LABEL, label);
        out_value(out, at);
        outf(out, "\n");
        label = "";
    }
}

static void put_clipped(struct out *out, const char *json)
{
    if (json)
        glyph_fit(&out->text, str_from(json), VALUE_SHOWN);
    else
        outf(out, "(nothing)");
}

static void put_fault(struct out *out, const struct torture_fault *f)
{
    outf(out, "      ");
    out_value(out, f->why ? f->why : f->key ? f->key : f->node);
    if (f->node && f->want)
        outf(out, ": completed %s times instead of %s", f->got, f->want);
    if (f->key) {
        outf(out, ": ");
        put_clipped(out, f->want);
        outf(out, " became ");
        put_clipped(out, f->got);
    }
    outf(out, "\n        %s%s, killed ", color_code(out, COLOR_DIM), f->session_id);
    glyph_fit(&out->text, str_from(f->killed), 100);
    outf(out, "%s\n", color_code(out, COLOR_NONE));
}

static void put_faults(struct out *out, const struct torture_report *r, enum torture_fault_kind kind)
{
    static const char *const labels[] = {[FAULT_COMPLETE_AGAIN] = "complete nodes run again",
                                         [FAULT_ONCE_AGAIN] = "`once` effects repeated",
                                         [FAULT_DIFFERS] = "outputs that differ",
                                         [FAULT_NOT_ENDED] = "sessions that did not end"};
    size_t n = r->faults[kind].n;

    outf(out, "  %-*s ", LABEL, labels[kind]);
    out_colored(out, n ? COLOR_RED : COLOR_GREEN, n ? "" : "0  ✓");
    if (n)
        outf(out, "%s%zu  ✗%s", color_code(out, COLOR_RED), n, color_code(out, COLOR_NONE));
    outf(out, "\n");
    for (size_t i = 0; i < n && i < SHOWN; i++)
        put_fault(out, &r->faults[kind].at[i]);
    if (n > SHOWN)
        outf(out, "      and %zu more: --json has them all\n", n - SHOWN);
}

static void put_tried(struct out *out, const struct torture_report *r, bool random)
{
    char seed[80] = "";

    if (random || r->tried < r->found)
        snprintf(seed, sizeof(seed), "; random seed: --seed %" PRId64, r->seed);
    row(out, "crash points",
        "%" PRId64 " of %" PRId64 ": %" PRId64 " before an append, %" PRId64 " after one, %" PRId64 " inside a node%s",
        r->tried, r->found, r->before_append, r->after_append, r->inside_node,
        r->tried < r->found ? "; --crash-points all tries them all" : "");
    if (r->reached < r->tried)
        row(out, "", "%" PRId64 " of them were not reached again: the order of parallel events differs each time",
            r->tried - r->reached);
    row(out, "killed and resumed", "%" PRId64 " time%s, %" PRId64 " time%s%s", r->kills, s_of(r->kills), r->resumes,
        s_of(r->resumes), seed);
}

static void put_fine(struct out *out, const struct torture_report *r)
{
    row(out, "interrupted and run again", "%" PRId64 "%s", r->ran_again,
        r->ran_again ? "  (not declared `once`, and not complete: this is allowed)" : "");
    if (r->happened + r->retried)
        row(out, "asked a person",
            "%" PRId64 "  (a `once` node was interrupted: %" PRId64 " had ended and %s said to have happened, %" PRId64
            " had begun and %s let run again)",
            r->happened + r->retried, r->happened, r->happened == 1 ? "was" : "were", r->retried,
            r->retried == 1 ? "was" : "were");
    if (r->left)
        row(out, "outlived their graph", "%" PRId64 " process%s of a killed run that still ran after the resume",
            r->left, r->left == 1 ? "" : "es");
    if (r->faults[FAULT_UNJUDGED].n)
        row(out, "not judged",
            "%zu  (it took another path after `once` node %s was said to have happened: its result was lost)",
            r->faults[FAULT_UNJUDGED].n, r->faults[FAULT_UNJUDGED].at[0].node);
    for (size_t i = 0; i < r->n_unsteady; i++)
        row(out, i ? "" : "not deterministic", "%s  (%s: not compared)", r->unsteady[i].what, r->unsteady[i].why);
}

static void print_text(struct out *out, const struct torture_report *r, bool random)
{
    size_t from;

    row(out, "graph", "%s, %" PRId64 " node%s run in %.2f s, %" PRId64 " appends", r->file, r->nodes, s_of(r->nodes),
        (double)r->uninterrupted_us / 1e6, r->appends);
    row(out, "store", "%s, a new one in a directory of its own", r->store_kind);
    put_tried(out, r, random);
    put_fine(out, r);
    outf(out, "\n");
    from = out->text.len;
    for (int kind = 0; kind < FAULT_UNJUDGED; kind++)
        put_faults(out, r, (enum torture_fault_kind)kind);
    outf(out, "\n  ");
    if (!r->right)
        out_colored(out, COLOR_RED, "This is wrong: a guarantee was broken.");
    else
        out_colored(
            out, COLOR_GREEN,
            r->faults[FAULT_UNJUDGED].n
                ? "Nothing was lost, nothing that was complete ran again, and where it was judged the result was the "
                  "same."
                : "Nothing was lost, nothing that was complete ran again, and the result was always the same.");
    outf(out, "  (%.1f s)\n", (double)r->ms / 1000);
    out_wrap(out, from);
    if (r->store)
        row(out, "kept", "%s: `tidemark --store %s sessions timeline ID` shows one", r->dir, r->store);
}

/* ---- the command ---- */

static enum tide_code take_count(const char *text, size_t *ret, struct tide_err *err)
{
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : POINTS_DEFAULT;

    if (text && strcmp(text, "all") == 0)
        n = INT64_MAX;
    else if (text && (!*text || *end || n < 1 || n > 1000000))
        return args_refuse(err, "crash-points", "--crash-points %.40s: give all, or a number from 1 to 1000000", text);
    *ret = (size_t)n;
    return TIDE_OK;
}

static int on_progress(void *progress, uint64_t done, uint64_t total)
{
    return progress_step(progress, done, total);
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

/* What is missing is said before any program has run. Never the store that is named: one of its kind. */
static enum tide_code make_ready(struct cli *cli, struct torture_want *w, tide_graph *graph, struct buf *memory,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf url = BUF_INIT(1 << 16);
    AUTO(mem_freep) const char **sets = args_all(&cli->args, "set");
    struct graph_want want = {.who = {.script = w->script, .yes = w->yes}};
    const struct graph_face face = {.no_input = true};

    if (graph_check_here(cli, graph, &want, err) || (sets[0] && graph_set_read(sets, memory, err)) ||
        graph_given(cli, graph, NULL, &face, &want, memory, err) || cli_store_url(cli, &url, err))
        return err->code;
    w->files = store_url_is_files(buf_cstr(&url));
    return TIDE_OK;
}

static void torturep(struct torture **t)
{
    torture_free(*t);
}

static enum tide_code run(struct cli *cli, struct tide_err *err)
{
    const struct args *a = &cli->args;
    AUTO(graph_set_done) struct buf memory = BUF_INIT(GRAPH_SETS_MAX);
    AUTO(mem_freep) const char **answers = args_all(a, "answer");
    AUTO(torturep) struct torture *t = NULL;
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    const struct torture_report *report;
    struct progress progress;
    struct torture_want want = {.file = args_operand(a, 0),
                                .config = args_text(a, "config"),
                                .log_format = args_text(a, "log-format"),
                                .script = args_text(a, "script"),
                                .yes = args_on(a, "yes"),
                                .verbose = args_on(a, "verbose"),
                                .keep = args_on(a, "keep"),
                                .answers = answers,
                                .kills = (int)args_int(a, "kills", 1),
                                .seed = args_int(a, "seed", -1),
                                .progress = on_progress,
                                .stopped = is_stopped,
                                .arg = &progress};
    enum tide_code code;

    if (take_count(args_text(a, "crash-points"), &want.points, err) || torture_new(&want, &t, err) ||
        make_ready(cli, &want, torture_graph(t), &memory, err))
        return err->code;
    progress_init(&progress, "torture", "crash points");
    code = torture_run(t, memory.len ? buf_cstr(&memory) : NULL, &report, err);
    progress_done(&progress);
    if (code == TIDE_FAILED) /* what it says of a session is of a store that is removed */
        err_advise(err, arena_printf(&arena, "`%s run %.100s` shows it", own_command(&arena), want.file));
    if (code)
        return code;
    if (cli->out.json)
        out_shape(&cli->out, &shape_torture, report);
    else
        print_text(&cli->out, report, want.kills > 1);
    cli->exit_status = report->right ? 0 : 1;
    return TIDE_OK;
}

const struct command cmd_torture = {
    .name = "torture",
    .run = run,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .options = options,
    .help = "kill a graph at every point and resume it; check that nothing is lost or done twice",
    .more = "The programs of the graph REALLY RUN, many times: use a harmless copy of the graph.\n"
            "The graph is killed with SIGKILL before and after every recorded event and inside every node, then "
            "resumed to its\n"
            "end. Each kill has its own session in a temporary store of the kind that --store names.\n"
            "Exit status: 0 if all checks pass; 1 if a completed node ran again, an effect that must happen once was "
            "repeated,\n"
            "an output differs, or a session did not end. After a failure the store is kept.",
};
