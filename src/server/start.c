/* SPDX-License-Identifier: Apache-2.0 */
#include "server/start.h"

#include <stdio.h>

#include "engine/graph_file.h"
#include "engine/graph_inputs.h"
#include "engine/graph_run.h"
#include "engine/housekeeping.h"
#include "engine/resume.h"
#include "engine/shapes.h"
#include "engine/stored_graphs.h"
#include "server/run_routes.h"
#include "server/server.h"

enum tide_code need_scope(const struct call *c, enum scope scope, struct tide_err *err)
{
    return c->caller.scopes & scope ? TIDE_OK
                                    : tide_fail(err, TIDE_DENIED, "this token lacks the scope %s", scope_word(scope));
}

enum tide_code start_settings(struct call *c, struct server_settings *ret, struct tide_err *err)
{
    return server_settings_read(c->server->opt.config, ret, err);
}

/* ---- graphs ---- */

/* The directory of a file. */
static const char *dir_of(struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash > path ? arena_dup(a, (struct str){path, (size_t)(slash - path)}).ptr : "/";
}

static enum tide_code read_beneath(struct call *c, const char *path, tide_graph **ret, const char **ret_dir,
                                   struct tide_err *err)
{
    AUTO(server_settings_done) struct server_settings s = {.arena = ARENA_INIT};
    const char *real;
    bool hive;

    if (start_settings(c, &s, err) || server_settings_graph(&s, path, "graph", &real, err))
        return err->code;
    *ret_dir = dir_of(c->arena, real);
    return graph_file_read(real, NULL, NULL, &hive, ret, err) ? tide_about(err, TIDE_SUBJECT_ARGUMENT, "graph")
                                                              : TIDE_OK;
}

enum tide_code start_graph_named(struct call *c, const char *digest, tide_graph **ret, struct graph_order *ret_order,
                                 struct tide_err *err)
{
    AUTO(buf_done) struct buf json = BUF_INIT(ANSWER_MAX);
    const char *path = call_text(c, "graph");
    tide_graph *graph = NULL;

    digest = digest ? digest : call_text(c, "graph_digest");
    *ret = NULL;
    *ret_order = (struct graph_order){.dir = NULL};
    if (path && digest)
        return tide_fail_of(err, TIDE_INVALID, TIDE_SUBJECT_ARGUMENT, "graph_digest",
                            "names a graph, and so does `graph`: give one of them");
    if (path && read_beneath(c, path, &graph, &ret_order->dir, err))
        return err->code;
    if (digest && (need_scope(c, SCOPE_ADMIN, err) || stored_graph_load(c->server->store, digest, &graph, err)))
        return err->code;
    if (graph && digest && stored_graph_check_trust(c->server->store, digest, err)) {
        tide_graph_free(graph);
        return err->code;
    }
    if (!graph)
        return TIDE_OK;
    graph_write(graph, GRAPH_AS_JSON, &json);
    ret_order->json = arena_dup(c->arena, buf_view(&json));
    *ret = graph;
    return TIDE_OK;
}

static void pass_over(void *arg, const char *line, const char *change)
{
    (void)arg;
    (void)line;
    (void)change;
}

enum tide_code start_check_graph(struct call *c, tide_graph *graph, const char *set, tide_session *session,
                                 struct tide_err *err)
{
    AUTO(agent_setup_done) struct agent_setup setup = {.tell = pass_over, .store = c->server->store};
    const struct graph_want want = {.opt = {.size = sizeof want.opt, .memory = set}};
    const struct graph_missing *missing;

    if (graph_missing_inputs(c->arena, graph, &want.opt, session, &missing, err) ||
        graph_refuse_missing(missing, err) || settings_open(c->server->opt.config, NULL, NULL, &setup.settings, err))
        return err->code;
    return graph_setup(&setup, graph, session, &want, err);
}

/* ---- the run ---- */

struct starting {
    struct call *c;
    char session_id[TIDE_ID_SIZE];
    int64_t made_seq; /* its last event when it was made */
    enum start_flags flags;
};

void start_reply(struct call *c, const char *session_id, const char *run_id, const char *queue_id, int64_t seq)
{
    call_reply(c, &shape_started,
               &(struct command_result){.session_id = session_id, .run_id = run_id, .queue_id = queue_id, .seq = seq});
}

/* What was made for a run that did not begin is in nobody's way: a session in which nothing ran, and that nobody used meanwhile. */
static void drop_session(struct starting *s)
{
    tide_session *session = NULL;
    const struct tide_session_info *info;
    struct tide_err ignored;
    bool unused;

    if (!(s->flags & START_MADE) ||
        tide_session_open(s->c->server->store, s->session_id, TIDE_SESSION_WHOLE, &session, &ignored))
        return;
    unused = !tide_session_get_info(session, &info, &ignored) && !info->run_id && !info->holder;
    tide_session_close(session);
    if (unused)
        (void)!housekeeping_delete_at(s->c->server->store, s->session_id, s->made_seq, &ignored);
}

static void on_begun(void *arg, const struct begun *begun, const struct tide_err *err)
{
    struct starting *s = arg;
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *event = NULL;
    const char *run_id = NULL, *queue_id = NULL;

    if (err) {
        drop_session(s);
        call_fail(s->c, err);
        return;
    }
    if (begun->seq && !json_parse(&a, begun->event, NULL, &event, NULL, NULL)) {
        run_id = arena_dup(&a, json_get_text(&a, event, STR("run_id"))).ptr;
        queue_id = arena_dup(&a, json_get_text(&a, event, STR("queue_id"))).ptr;
    }
    start_reply(s->c, s->session_id, run_id && *run_id ? run_id : NULL, queue_id && *queue_id ? queue_id : NULL,
                begun->seq);
}

static enum tide_code queue_message(struct starting *s, const char *message, struct tide_err *err)
{
    AUTO(buf_done) struct buf content = BUF_INIT(ANSWER_MAX);
    const struct queue_limits limits = {.max = MESSAGES_MAX};
    char queue_id[QUEUE_ID_SIZE];
    int64_t seq;

    json_quote(&content, str_from(message));
    if (send_queue(s->c->server->store, s->session_id, buf_view(&content), &s->c->request, &limits, queue_id, &seq,
                   err))
        return err->code;
    start_reply(s->c, s->session_id, NULL, queue_id, seq);
    return TIDE_OK;
}

enum tide_code start_run(struct call *c, struct order *order, enum start_flags flags, struct tide_err *err)
{
    struct starting *s = arena_zero(c->arena, sizeof *s);
    enum tide_code code;

    s->c = c;
    s->flags = flags;
    snprintf(s->session_id, sizeof s->session_id, "%s", order->session_id);
    order->session_id = s->session_id;
    order->request = &c->request;
    order->queue_max = MESSAGES_MAX;
    s->made_seq = tide_session_last_seq(c->session);
    call_close_session(c);
    code = runner_run(c->server->runner, order, on_begun, s, err);
    if ((code == TIDE_BUSY || code == TIDE_HELD) && order->message)
        code = queue_message(s, order->message, err);
    if (code)
        drop_session(s);
    return code;
}
