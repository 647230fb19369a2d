/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph_file.h"

#include "engine/findings.h"
#include "engine/graph_outline.h"
#include "graph/exec.h"
#include "hive/hive.h"

_Static_assert(GRAPH_MAX_PROBLEMS == SPEC_MAX_PROBLEMS, "the same");

enum tide_code graph_file_read(const char *path, problem_fn *problem, void *arg, bool *ret_hive, tide_graph **ret_graph,
                               struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(ret_hive ? 4 * SPEC_MAX_BYTES : SPEC_MAX_BYTES);
    AUTO(buf_done) struct buf json = BUF_INIT(4 * SPEC_MAX_BYTES);
    const struct spec_options opt = {.problem = problem, .arg = arg};
    struct spec *spec = NULL;
    bool hive;

    if (spec_read(path, &text, err))
        return err->code;
    hive = ret_hive && hive_is(buf_view(&text));
    if (hive && hive_to_graph(buf_view(&text), problem, arg, &json, err))
        return tide_wrap(err, "%.150s", path);
    if (ret_hive)
        *ret_hive = hive;
    if (spec_parse_from(path, buf_view(hive ? &json : &text), &opt, &spec, err))
        return err->code;
    *ret_graph = graph_of(spec);
    return TIDE_OK;
}

enum tide_code graph_text_read(struct str text, const char *dir, problem_fn *problem, void *arg, tide_graph **ret_graph,
                               struct tide_err *err)
{
    const struct spec_options opt = {.dir = dir, .problem = problem, .arg = arg};
    struct spec *spec = NULL;

    if (text.len > SPEC_MAX_BYTES)
        return tide_fail(err, TIDE_TOO_BIG, "the graph has more than %zu bytes", SPEC_MAX_BYTES);
    if (spec_parse(text, &opt, &spec, err))
        return err->code;
    *ret_graph = graph_of(spec);
    return TIDE_OK;
}

enum tide_code graph_file_import(const char *path, problem_fn *warn, void *arg, struct buf *ret_json,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SPEC_MAX_BYTES);

    if (spec_read(path, &text, err))
        return err->code;
    if (!hive_to_graph(buf_view(&text), warn, arg, ret_json, err))
        return TIDE_OK;
    tide_about(err, TIDE_SUBJECT_FILE, strcmp(path, "-") == 0 ? "" : path);
    return tide_wrap(err, "%.150s", path);
}

void graph_check_hear(void *report, const struct problem *p)
{
    ((struct check_report *)report)->problems += !p->warning;
    findings_add(&((struct check_report *)report)->found, p->path, p->warning ? "warning" : "problem", p->what,
                 p->hint);
}

void graph_check_take(struct arena *a, struct check_report *r, const tide_graph *graph)
{
    const struct graph_outline *g = graph ? graph_outline(a, graph) : NULL;

    if (!g)
        return;
    r->ok = true;
    r->graph_id = g->id.ptr;
    r->digest = tide_graph_digest(graph);
    r->nodes = (int64_t)g->n_nodes;
    r->edges = (int64_t)g->n_ways;
}

void graph_write(const tide_graph *graph, enum graph_format format, struct buf *out)
{
    if (format == GRAPH_AS_JSON)
        buf_add_str(out, graph->spec->json);
    else
        (format == GRAPH_AS_DOT ? spec_dot : spec_mermaid)(out, graph->spec->graph);
}

void graph_schema(struct buf *out)
{
    spec_schema(out);
}
