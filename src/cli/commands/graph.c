/* SPDX-License-Identifier: Apache-2.0 */
/* tidemark graph check, show, import, schema: graphs as files, before anything of them runs. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/graph/graph_draw.h"
#include "engine/graph_file.h"

extern char **environ;

/* ---- check ---- */

struct checking {
    struct out *out;
    struct json_out json;
    size_t problems, warnings;
};

static void put_problem_json(struct json_out *o, const struct problem *p)
{
    json_out_begin(o, '{');
    json_out_kstr(o, STR("severity"), p->warning ? STR("warning") : STR("problem"));
    json_out_kstr(o, STR("path"), str_from(p->path));
    json_out_kstr(o, STR("what"), str_from(p->what));
    json_out_kstr(o, STR("hint"), str_from(p->hint));
    json_out_end(o, '}');
}

static void hear(void *arg, const struct problem *p)
{
    struct checking *c = arg;

    *(p->warning ? &c->warnings : &c->problems) += 1;
    if (c->out->json) {
        put_problem_json(&c->json, p);
        return;
    }
    out_colored(c->out, p->warning ? COLOR_YELLOW : COLOR_RED, p->warning ? "warning" : "problem");
    outf(c->out, "  ");
    out_value(c->out, p->path);
    outf(c->out, ": ");
    out_value(c->out, p->what);
    outf(c->out, "\n");
    if (p->hint[0]) {
        outf(c->out, "         ");
        out_value(c->out, p->hint);
        outf(c->out, "\n");
    }
}

static void count_text(struct out *out, const struct graph_outline *g, const struct checking *c)
{
    if (c->problems + c->warnings > 0)
        outf(out, "\n");
    if (g) {
        out_colored(out, COLOR_GREEN, "ok");
        outf(out, "  ");
        out_value(out, g->id.ptr);
        outf(out, ": %zu node%s, %zu edge%s", g->n_nodes, g->n_nodes == 1 ? "" : "s", g->n_ways,
             g->n_ways == 1 ? "" : "s");
    } else {
        outf(out, "%zu problem%s", c->problems, c->problems == 1 ? "" : "s");
    }
    if (c->warnings > 0)
        outf(out, ", %zu warning%s", c->warnings, c->warnings == 1 ? "" : "s");
    if (c->problems >= GRAPH_MAX_PROBLEMS || c->warnings >= GRAPH_MAX_PROBLEMS)
        outf(out, " (there may be more)");
    outf(out, "\n");
}

static void conclude(struct checking *c, const tide_graph *graph)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct graph_outline *g = graph ? graph_outline(&a, graph) : NULL;

    if (!c->out->json) {
        count_text(c->out, g, c);
        return;
    }
    json_out_end(&c->json, ']');
    json_out_kbool(&c->json, STR("ok"), g != NULL);
    if (g) {
        json_out_kstr(&c->json, STR("id"), g->id);
        json_out_kint(&c->json, STR("nodes"), (int64_t)g->n_nodes);
        json_out_kint(&c->json, STR("edges"), (int64_t)g->n_ways);
        json_out_kstr(&c->json, STR("digest"), str_from(tide_graph_digest(graph)));
    }
    json_out_end(&c->json, '}');
    out_json_end(c->out);
}

static enum tide_code run_check(struct cli *cli, struct tide_err *err)
{
    struct checking c = {.out = &cli->out, .json = out_json(&cli->out)};
    AUTO(graph_freep) tide_graph *graph = NULL;
    enum tide_code code;

    if (cli->out.json) {
        json_out_begin(&c.json, '{');
        json_out_kstr(&c.json, STR("file"), str_from(args_operand(&cli->args, 0)));
        json_out_key(&c.json, STR("problems"));
        json_out_begin(&c.json, '[');
    }
    code = graph_file_read(args_operand(&cli->args, 0), hear, &c, NULL, &graph, err);
    if (code && c.problems == 0) { /* there is nothing to check */
        buf_clear(&cli->out.text);
        return code;
    }
    cli->exit_status = tide_code_exit(code);
    conclude(&c, graph);
    return TIDE_OK;
}

const struct command cmd_graph_check = {
    .group = "graph",
    .name = "check",
    .run = run_check,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .help = "print everything that is wrong with a graph; exit status 2 when something is, 0 with warnings alone",
};

/* ---- show ---- */

static enum tide_code write_file(const char *path, struct str bytes, struct tide_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool failed = fd < 0;
    int errnum;

    while (!failed && bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);

        if (n < 0 && errno == EINTR)
            continue;
        failed = n < 0;
        bytes = failed ? bytes : (struct str){bytes.ptr + n, bytes.len - (size_t)n};
    }
    errnum = errno;
    if (fd >= 0 && close(fd) != 0 && !failed) {
        errnum = errno;
        failed = true;
    }
    return failed ? tide_fail_errno(err, errnum, "write %.200s", path) : TIDE_OK;
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

static enum tide_code take_svg(int fd, struct buf *svg, struct tide_err *err)
{
    if (lseek(fd, 0, SEEK_SET) < 0)
        return tide_fail_errno(err, errno, "read what dot wrote");
    return buf_read_fd(svg, fd) || svg->failed || svg->len == 0 ? tide_fail(err, TIDE_FAILED, "dot wrote no picture")
                                                                : TIDE_OK;
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
    if (!code)
        code = take_svg(out, svg, err);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return code;
}

static enum tide_code show_svg(const tide_graph *graph, const char *path, struct tide_err *err)
{
    AUTO(buf_done) struct buf dot = BUF_INIT((size_t)64 << 20), svg = BUF_INIT((size_t)256 << 20);

    graph_write(graph, GRAPH_AS_DOT, &dot);
    if (draw_svg(buf_view(&dot), &svg, err))
        return err->code;
    return write_file(path, buf_view(&svg), err);
}

enum tide_code graph_open_file(const char *file, tide_graph **ret_graph, struct tide_err *err)
{
    enum tide_code code = graph_file_read(file, NULL, NULL, NULL, ret_graph, err);
    struct tide_err why = *err;

    if (code != TIDE_INVALID)
        return code;
    return tide_fail(err, TIDE_INVALID, "%.300s: `tidemark graph check %.120s` shows everything", why.msg, file);
}

static enum tide_code run_show(struct cli *cli, struct tide_err *err)
{
    const char *svg = args_text(&cli->args, "svg"), *file = args_operand(&cli->args, 0);
    bool dot = args_on(&cli->args, "dot"), mermaid = args_on(&cli->args, "mermaid");
    AUTO(graph_freep) tide_graph *graph = NULL;

    if ((svg != NULL) + dot + mermaid + cli->out.json > 1)
        return tide_fail(err, TIDE_INVALID, "graph show: give one of --dot, --mermaid, --svg and --json");
    if (graph_open_file(file, &graph, err))
        return err->code;
    if (svg)
        return show_svg(graph, svg, err);
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
    {.name = "svg", .type = VALUE_FILE, .value = "OUT", .help = "write a picture to OUT, made by Graphviz's dot"},
    {.name = "width",
     .type = VALUE_INT,
     .value = "N",
     .min = 60,
     .max = 400,
     .help = "draw in N columns (default: those of the terminal, else 80)"},
    {.name = NULL},
};

const struct command cmd_graph_show = {
    .group = "graph",
    .name = "show",
    .run = run_show,
    .operands = {{"FILE", VALUE_FILE, 0}},
    .options = show_options,
    .help = "draw a graph: as text, for Graphviz, for Mermaid, or as SVG",
    .more = "With --json it is printed as it is stored with a run: one line, files of subgraphs put in.",
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
    line = clean.text;
    fprintf(stderr, "%s\n", buf_cstr(&line));
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
    .help = "print a Hive agent.json as a graph; what cannot be carried over is named on standard error",
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
