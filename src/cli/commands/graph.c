/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark graph check, show, import, schema: graphs as files, before anything of them runs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/error_hints.h"
#include "cli/graph/graph_draw.h"
#include "engine/findings.h"
#include "engine/graph_file.h"
#include "engine/shapes.h"

extern char **environ;

/* ---- check ---- */

static void put_problem(struct out *out, const struct finding *f)
{
    out_colored(out, strcmp(f->severity, "warning") == 0 ? COLOR_YELLOW : COLOR_RED, f->severity);
    outf(out, "  ");
    out_value(out, f->where);
    outf(out, ": ");
    out_value(out, f->what);
    outf(out, f->todo[0] ? "\n         " : "");
    out_value(out, f->todo);
    outf(out, "\n");
}

static void put_checked(struct out *out, const struct check_report *r)
{
    size_t problems = r->problems, warnings = r->found.n - problems;

    for (size_t i = 0; i < r->found.n; i++)
        put_problem(out, &r->found.at[i]);
    if (r->found.n > 0)
        outf(out, "\n");
    if (r->ok) {
        out_colored(out, COLOR_GREEN, "ok");
        outf(out, "  ");
        out_value(out, r->graph_id);
        outf(out, ": %" PRId64 " node%s, %" PRId64 " edge%s", r->nodes, r->nodes == 1 ? "" : "s", r->edges,
             r->edges == 1 ? "" : "s");
    } else {
        outf(out, "%zu problem%s", problems, problems == 1 ? "" : "s");
    }
    if (warnings > 0)
        outf(out, ", %zu warning%s", warnings, warnings == 1 ? "" : "s");
    if (problems >= GRAPH_MAX_PROBLEMS || warnings >= GRAPH_MAX_PROBLEMS)
        outf(out, " (there may be more)");
    outf(out, "\n");
}

static enum tide_code run_check(struct cli *cli, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(graph_freep) tide_graph *graph = NULL;
    AUTO(check_report_done) struct check_report r = {.file = args_operand(&cli->args, 0)};
    enum tide_code code = graph_file_read(r.file, graph_check_hear, &r, NULL, &graph, err);

    if (code && r.problems == 0) /* there is nothing to check */
        return code;
    cli->exit_status = tide_code_exit(code);
    graph_check_take(&a, &r, graph);
    if (cli->out.json)
        out_shape(&cli->out, &shape_graph_check, &r);
    else
        put_checked(&cli->out, &r);
    if (code && err->hints[0].action && !cli->out.json)
        outf(&cli->out, "%s\n", hints_text(&a, err->hints, 1));
    return TIDE_OK;
}

const struct command cmd_graph_check = {
    .group = "graph",
    .name = "check",
    .run = run_check,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .help = "report every problem of a graph; exit status 2 if there is an error, 0 if there are only warnings",
};

/* ---- show ---- */

static enum tide_code write_file(const char *path, struct str bytes, struct tide_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int bad = fd < 0 ? errno : fd_write(fd, bytes);

    if (fd >= 0 && close(fd) != 0 && !bad)
        bad = errno;
    return bad ? tide_fail_errno(err, bad, "write %.200s", path) : TIDE_OK;
}

/* Runs Graphviz with these two as its standard input and output; its exit status, or -1 with errno. */
static int run_dot(int in, int out)
{
    char name[] = "dot", format[] = "-Tsvg", *argv[] = {name, format, NULL};
    posix_spawn_file_actions_t actions;
    int status = 0, failed;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    failed = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) {
        errno = failed;
        return -1;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The file is written when there is a picture, not before. */
static enum tide_code draw_svg(struct str dot, struct buf *svg, struct tide_err *err)
{
    int in = memfd_create("dot", MFD_CLOEXEC), out = memfd_create("svg", MFD_CLOEXEC), status = -1;
    enum tide_code code = TIDE_OK;

    if (in < 0 || out < 0 || write(in, dot.ptr, dot.len) != (ssize_t)dot.len || lseek(in, 0, SEEK_SET) < 0)
        code = tide_fail_errno(err, errno, "hand the graph to dot");
    if (!code)
        status = run_dot(in, out);
    if (!code && status < 0)
        code = errno == ENOENT ? tide_fail(err, TIDE_NOT_FOUND,
                                           "--svg needs Graphviz, and there is no program 'dot': "
                                           "install graphviz, or use --dot or --mermaid")
                               : tide_fail_errno(err, errno, "run dot");
    else if (!code && status != 0)
        code = tide_fail(err, TIDE_FAILED, "dot ended with status %d", status);
    if (!code && lseek(out, 0, SEEK_SET) < 0)
        code = tide_fail_errno(err, errno, "read what dot wrote");
    if (!code && (buf_read_fd(svg, out) || svg->failed || svg->len == 0))
        code = tide_fail(err, TIDE_FAILED, "dot wrote no picture");
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return code;
}

enum tide_code graph_open_file(const char *file, tide_graph **ret_graph, struct tide_err *err)
{
    enum tide_code code = graph_file_read(file, NULL, NULL, NULL, ret_graph, err);
    struct tide_err why = *err;

    if (code != TIDE_INVALID)
        return code;
    tide_fail(err, TIDE_INVALID, "%.300s: `tidemark graph check %.120s` shows everything", why.msg, file);
    return tide_about(err, TIDE_SUBJECT_FILE, file);
}

static enum tide_code run_show(struct cli *cli, struct tide_err *err)
{
    const char *svg = args_text(&cli->args, "svg"), *file = args_operand(&cli->args, 0);
    bool dot = args_on(&cli->args, "dot"), mermaid = args_on(&cli->args, "mermaid");
    AUTO(buf_done) struct buf text = BUF_INIT((size_t)64 << 20), picture = BUF_INIT((size_t)256 << 20);
    AUTO(graph_freep) tide_graph *graph = NULL;

    if ((svg != NULL) + dot + mermaid + cli->out.json > 1)
        return args_refuse(err, "dot", "graph show: give one of --dot, --mermaid, --svg and --json");
    if (graph_open_file(file, &graph, err))
        return err->code;
    if (svg) {
        graph_write(graph, GRAPH_AS_DOT, &text);
        return draw_svg(buf_view(&text), &picture, err) ? err->code : write_file(svg, buf_view(&picture), err);
    }
    if (dot || mermaid)
        graph_write(graph, dot ? GRAPH_AS_DOT : GRAPH_AS_MERMAID, &cli->out.text);
    else if (cli->out.json) {
        graph_write(graph, GRAPH_AS_JSON, &cli->out.text);
        outf(&cli->out, "\n");
    } else
        graph_draw(&cli->out, graph, (int)args_int(&cli->args, "width", terminal_columns(STDOUT_FILENO)));
    return TIDE_OK;
}

static const struct opt show_options[] = {
    {.name = "dot", .help = "print it for Graphviz"},
    {.name = "mermaid", .help = "print it for Mermaid"},
    {.name = "svg", .type = VALUE_FILE, .value = "OUT", .help = "write an image to OUT, made by dot of Graphviz"},
    {.name = "width",
     .type = VALUE_INT,
     .value = "N",
     .min = 60,
     .max = 400,
     .help = "draw in N columns (default: the width of the terminal, else 80)"},
    {.name = NULL},
};

const struct command cmd_graph_show = {
    .group = "graph",
    .name = "show",
    .run = run_show,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .options = show_options,
    .help = "draw a graph as text, for Graphviz, for Mermaid, or as SVG",
    .more = "With --json, prints the graph as it is stored with a run: one line, with the files of subgraphs included.",
};

/* ---- import ---- */

static void warn_of(void *arg, const struct problem *p)
{
    AUTO(buf_done) struct buf line = BUF_INIT(4096);
    struct out clean = {.text = line};

    (void)arg;
    outf(&clean, "tidemark: warning: ");
    out_value(&clean, p->path);
    outf(&clean, ": ");
    out_value(&clean, p->what);
    if (p->hint[0]) {
        outf(&clean, " (");
        out_value(&clean, p->hint);
        outf(&clean, ")");
    }
    outf(&clean, "\n");
    line = clean.text;
    say_lines(buf_view(&line));
}

static enum tide_code run_import(struct cli *cli, struct tide_err *err)
{
    const char *file = args_operand(&cli->args, 0);
    AUTO(buf_done) struct buf json = BUF_INIT((size_t)64 << 20);

    if (graph_file_import(file, warn_of, NULL, &json, err))
        return err->code;
    buf_add_str(&cli->out.text, buf_view(&json));
    outf(&cli->out, "\n");
    return TIDE_OK;
}

const struct command cmd_graph_import = {
    .group = "graph",
    .name = "import",
    .run = run_import,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .help = "convert an agent.json of Hive (an agent framework) into a graph; report on standard error what cannot "
            "be converted",
};

/* ---- schema ---- */

static enum tide_code run_schema(struct cli *cli, struct tide_err *err)
{
    AUTO(buf_done) struct buf flat = BUF_INIT((size_t)1 << 20);
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;

    graph_schema(&flat);
    if (json_parse(&a, buf_view(&flat), NULL, &v, NULL, err))
        return tide_wrap(err, "graph schema");
    json_write_pretty(&cli->out.text, v);
    outf(&cli->out, "\n");
    return TIDE_OK;
}

const struct command cmd_graph_schema = {
    .group = "graph",
    .name = "schema",
    .run = run_schema,
    .help = "print the JSON Schema of graphs, for editors and other checkers",
};
