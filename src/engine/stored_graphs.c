/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stored_graphs.h"

#include <stdio.h>

#include "base/json.h"
#include "engine/graph_file.h"
#include "engine/graph_outline.h"

#define GRAPH_BYTES ((size_t)64 << 20)
#define DIGEST_HEX 64
#define ID_HEX 40 /* of the digest in the id: as good as all of it */

static void session_closep(tide_session **session)
{
    tide_session_close(*session);
}

static bool is_digest(const char *text)
{
    return strlen(text) == DIGEST_HEX && strspn(text, "0123456789abcdef") == DIGEST_HEX;
}

static void make_id(char ret[TIDE_ID_SIZE], const char *digest)
{
    snprintf(ret, TIDE_ID_SIZE, "graph_%.*s", ID_HEX, digest);
}

/* ---- storing ---- */

static void put_fields(struct buf *out, const tide_graph *graph)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    const struct graph_outline *g = graph_outline(&a, graph);
    struct json_out o = json_out_to(out);

    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("agent"), STR(STORED_GRAPH_AGENT));
    json_out_kstr(&o, STR("agent_id"), str_from(tide_graph_digest(graph)));
    json_out_kstr(&o, STR("title"), g->name.len ? g->name : g->id);
    json_out_end(&o, '}');
}

static enum tide_code append_graph(tide_session *session, const tide_graph *graph, struct tide_err *err)
{
    AUTO(buf_done) struct buf json = BUF_INIT(GRAPH_BYTES), body = BUF_INIT(GRAPH_BYTES);
    struct json_out o = json_out_to(&body);
    struct tide_new_event event;

    graph_write(graph, GRAPH_AS_JSON, &json);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("digest"), str_from(tide_graph_digest(graph)));
    json_out_kraw(&o, STR("graph"), buf_view(&json));
    json_out_end(&o, '}');
    event = (struct tide_new_event){"graph.stored", buf_cstr(&body), body.len};
    return tide_session_append(session, TIDE_APPEND_ANY | TIDE_APPEND_RELEASE, &event, 1, NULL, err);
}

/* Killed between the two appends, it is there without its graph: then that is appended now. */
enum tide_code stored_graph_put(tide_store *store, const tide_graph *graph, char ret_session[TIDE_ID_SIZE],
                                struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    AUTO(buf_done) struct buf fields = BUF_INIT((size_t)1 << 20);
    tide_graph *there = NULL;
    struct tide_err ignored;
    enum tide_code code;

    make_id(ret_session, tide_graph_digest(graph));
    put_fields(&fields, graph);
    code = tide_session_create(store, ret_session, buf_cstr(&fields), &session, err);
    if (code == TIDE_EXISTS && !stored_graph_load(store, tide_graph_digest(graph), &there, &ignored)) {
        tide_graph_free(there);
        return TIDE_OK;
    }
    if (code == TIDE_EXISTS)
        code = tide_session_open(store, ret_session, TIDE_SESSION_APPEND, &session, err);
    return code ? code : append_graph(session, graph, err);
}

/* ---- reading ---- */

struct reading {
    struct buf json;
};

static int take_graph(void *arg, const struct tide_event *e)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct reading *r = arg;
    struct json *body = NULL;
    const struct json *graph;

    if (strcmp(e->kind, "graph.stored") != 0 ||
        json_parse(&a, (struct str){e->body, e->body_len}, NULL, &body, NULL, NULL))
        return 0;
    graph = json_get(body, STR("graph"));
    if (graph)
        buf_add_str(&r->json, json_source(graph));
    return graph != NULL;
}

enum tide_code stored_graph_load(tide_store *store, const char *digest, tide_graph **ret_graph, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    struct reading r = {.json = BUF_INIT(GRAPH_BYTES)};
    tide_graph *graph = NULL;
    char id[TIDE_ID_SIZE];
    enum tide_code code = TIDE_NOT_FOUND;

    if (is_digest(digest)) {
        make_id(id, digest);
        code = tide_session_open(store, id, TIDE_SESSION_READ, &session, err);
        code = code ? code : tide_session_read(session, 0, 1, 0, take_graph, &r, err);
        code = code         ? code
               : r.json.len ? graph_text_read(buf_view(&r.json), NULL, NULL, NULL, &graph, err)
                            : TIDE_NOT_FOUND;
    }
    buf_done(&r.json);
    if (!code && strcmp(tide_graph_digest(graph), digest) != 0)
        code = TIDE_NOT_FOUND; /* somebody else's session of that id */
    if (code) {
        tide_graph_free(graph);
        return code == TIDE_NOT_FOUND
                   ? tide_fail(err, TIDE_NOT_FOUND, "no graph is stored with the digest %.64s", digest)
                   : code;
    }
    *ret_graph = graph;
    return TIDE_OK;
}

enum tide_code stored_graph_check_trust(tide_store *store, const char *digest, struct tide_err *err)
{
    AUTO(session_closep) tide_session *session = NULL;
    char id[TIDE_ID_SIZE];
    enum tide_code code;

    make_id(id, digest);
    code = tide_session_open(store, id, TIDE_SESSION_READ, &session, err);
    return code ? code : tide_session_check_trust(session, err);
}

struct listing {
    stored_graph_fn *fn;
    void *arg;
};

static int on_session(void *arg, const struct tide_session_info *info)
{
    const struct listing *l = arg;

    if (info->agent && strcmp(info->agent, STORED_GRAPH_AGENT) == 0 && info->agent_id && is_digest(info->agent_id))
        l->fn(l->arg, &(struct stored_graph){info->agent_id, info->title, info->id, info->created_ms});
    return 0;
}

enum tide_code stored_graph_list(tide_store *store, stored_graph_fn *fn, void *arg, struct tide_err *err)
{
    const struct tide_list_filter filter = {.size = sizeof filter, .agent = STORED_GRAPH_AGENT, .kind = TIDE_KIND_LOG};
    struct listing l = {fn, arg};

    return tide_session_list(store, &filter, on_session, &l, err);
}
