/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as data: uploaded, checked, shown and compared. What runs one is in create_routes.c. */
#include "engine/findings.h"
#include "engine/graph_file.h"
#include "engine/graph_versions.h"
#include "engine/graph_view.h"
#include "engine/rollback.h"
#include "engine/shapes.h"
#include "engine/stored_graphs.h"
#include "server/pages.h"
#include "server/server.h"
#include "server/start.h"

static const struct field graph_body[] = {
    {.name = "graph",
     .type = FIELD_OBJECT,
     .help = "the graph itself; files of subgraphs are refused",
     .required = true},
    {.name = NULL},
};

static enum tide_code parse_graph(struct call *c, const char *name, tide_graph **ret, struct tide_err *err)
{
    return graph_text_read(call_json(c, name), NULL, NULL, NULL, ret, err)
               ? tide_about(err, TIDE_SUBJECT_ARGUMENT, name)
               : TIDE_OK;
}

static enum tide_code upload_graph(struct call *c, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *graph = NULL;
    char id[TIDE_ID_SIZE];

    if (parse_graph(c, "graph", &graph, err) || stored_graph_put(c->server->store, graph, id, err))
        return err->code;
    call_field(c, "Location", arena_printf(c->arena, API_ROOT "/graphs/%s", tide_graph_digest(graph)));
    call_reply(c, &shape_graph_stored, &(struct stored_graph){.digest = tide_graph_digest(graph), .session_id = id});
    return TIDE_OK;
}

static enum tide_code check_graph(struct call *c, struct tide_err *err)
{
    AUTO(check_report_done) struct check_report r = {.file = ""};
    AUTO(graph_freep) tide_graph *graph = NULL;
    enum tide_code code = graph_text_read(call_json(c, "graph"), NULL, graph_check_hear, &r, &graph, err);

    if (code && !r.problems)
        return code;
    graph_check_take(c->arena, &r, graph);
    call_reply(c, &shape_graph_check, &r);
    return TIDE_OK;
}

/* ---- those that were uploaded ---- */

struct listing {
    struct call *c;
    struct json_out *o;
    struct tide_err *err;
    enum tide_code code;
};

static void put_stored(void *arg, const struct stored_graph *g)
{
    shape_put(((const struct listing *)arg)->o, &shape_stored_graph, g);
}

static void write_stored(struct json_out *o, void *arg)
{
    struct listing *l = arg;

    l->o = o;
    l->code = stored_graph_list(l->c->server->store, put_stored, l, l->err);
}

static enum tide_code list_graphs(struct call *c, struct tide_err *err)
{
    struct listing l = {.c = c, .err = err};

    return call_reply_page(c, &shape_stored_graphs, &(struct graphs_listed){{write_stored, &l}}, &l.code);
}

static enum tide_code show_graph(struct call *c, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *graph = NULL;
    struct buf body = BUF_INIT(ANSWER_MAX);

    if (stored_graph_load(c->server->store, c->params[0].ptr, &graph, err))
        return err->code;
    graph_write(graph, GRAPH_AS_JSON, &body);
    call_reply_text(c, 200, "application/json", &body);
    return TIDE_OK;
}

/* ---- two of them ---- */

static const struct field diff_body[] = {
    {.name = "before", .type = FIELD_OBJECT, .help = "a graph"},
    {.name = "before_digest", .type = FIELD_TEXT, .help = "the digest of one that was uploaded, instead"},
    {.name = "after", .type = FIELD_OBJECT, .help = "another version of it"},
    {.name = "after_digest", .type = FIELD_TEXT, .help = "the digest of one that was uploaded, instead"},
    {.name = "live",
     .type = FIELD_BOOL,
     .help = "also list unfinished sessions that could continue with the other version"},
    {.name = NULL},
};

static enum tide_code take_version(struct call *c, const char *name, const char *digest_name, tide_graph **ret,
                                   struct tide_err *err)
{
    const char *digest = call_text(c, digest_name);

    if (!call_json(c, name).len == !digest)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, name, "or '%s' is needed, and not both",
                            digest_name);
    return digest ? stored_graph_load(c->server->store, digest, ret, err) : parse_graph(c, name, ret, err);
}

static enum tide_code diff(struct call *c, struct tide_err *err)
{
    AUTO(graph_freep) tide_graph *before = NULL, *after = NULL;
    AUTO(graph_diff_done) struct graph_diff d = {.same = false};

    if (take_version(c, "before", "before_digest", &before, err) ||
        take_version(c, "after", "after_digest", &after, err))
        return err->code;
    graph_diff(&d, before, after);
    if (call_on(c, "live") && graph_diff_sessions(&d, c->server->store, before, after, err))
        return err->code;
    call_reply(c, &shape_graph_diff, &d);
    return TIDE_OK;
}

/* ---- one that runs, or ran ---- */

static const struct field view_query[] = {
    {.name = "at", .type = FIELD_TEXT, .help = "as of this seq or checkpoint [now]"},
    {.name = NULL},
};

static enum tide_code show_view(struct call *c, struct tide_err *err)
{
    const char *at = call_text(c, "at");
    struct graph_view *v;
    tide_session *session;
    int64_t seq = 0;
    enum tide_code code;

    if (call_session(c, TIDE_SESSION_READ, &session, err) || (at && session_position(session, at, &seq, err)))
        return err->code;
    v = mem_zero(sizeof *v);
    code = graph_view_read(session, seq, v, err);
    if (!code)
        call_reply(c, &shape_graph_view, v);
    graph_view_done(v);
    free(v);
    return code;
}

const struct route graph_routes[] = {
    {HTTP_POST, "/graphs", "graph.upload", SCOPE_ADMIN, upload_graph, "store a graph, under its digest",
     .body = graph_body, .answer = &shape_graph_stored, .status = 201},
    {HTTP_POST, "/graphs/check", "graph.check", SCOPE_READ, check_graph, "check a graph: list all its problems",
     .body = graph_body, .answer = &shape_graph_check},
    {HTTP_POST, "/graphs/diff", "graph.diff", SCOPE_READ, diff, "compare two versions of a graph, node by node",
     .body = diff_body, .answer = &shape_graph_diff},
    {HTTP_GET, "/graphs", "graph.list", SCOPE_READ, list_graphs, "list uploaded graphs, newest first",
     .answer = &shape_stored_graphs},
    {HTTP_GET, "/graphs/{digest}", "graph.get", SCOPE_READ, show_graph,
     "show an uploaded graph, as it is stored with a run", .type = "application/json"},
    {HTTP_GET, "/sessions/{id}/graph", "session.graph", SCOPE_READ, show_view,
     "show the graph that a session runs, and the state of its nodes", view_query, .answer = &shape_graph_view},
    {.method = 0},
};
