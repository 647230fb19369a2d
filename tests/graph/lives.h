/* SPDX-License-Identifier: Apache-2.0 */
/* A graph in a session and a store of its own, which is run and resumed until it is over. */
#ifndef TESTS_GRAPH_LIVES_H
#define TESTS_GRAPH_LIVES_H

#include "graphs.h"

static const struct tide_agent_options quick = {.size = sizeof quick, .retry_base_delay_ms = 1};

struct life {
    struct world w;
    tide_graph *g;
    char session[TIDE_ID_SIZE], ran[TIDE_ID_SIZE], token[TIDE_TOKEN_SIZE]; /* token: of the wait that it ended with */
    char *memory, *plan;
    struct tide_err err;
};

UNUSED static void use_graph(struct life *l, const char *json)
{
    tide_graph_free(l->g);
    l->g = world_graph(&l->w, json);
}

UNUSED static void begin(struct life *l, const char *json)
{
    memset(l, 0, sizeof *l);
    world_open(&l->w);
    use_graph(l, json);
}

UNUSED static void end(struct life *l)
{
    tide_graph_free(l->g);
    free(l->memory);
    free(l->plan);
    world_close(&l->w);
}

UNUSED static tide_session *open_session(struct life *l)
{
    static const char fields[] = "{\"agent\":\"tester\",\"title\":\"a chain\"}";
    tide_session *s = NULL;

    if (!l->session[0])
        OK(tide_session_create(l->w.store, NULL, fields, &s, &err));
    else
        OK(tide_session_open(l->w.store, l->session, TIDE_SESSION_APPEND, &s, &err));
    snprintf(l->session, sizeof l->session, "%s", tide_session_id(s));
    return s;
}

/* Runs it, or resumes what ran before. */
UNUSED static enum tide_code go(struct life *l, const struct tide_graph_options *given)
{
    struct tide_graph_options opt =
        given ? *given : (struct tide_graph_options){.size = sizeof(struct tide_graph_options)};
    struct tide_graph_result result = {0};
    bool first = !l->session[0];
    tide_session *s = open_session(l);
    enum tide_code code;

    opt.agent = opt.agent ? opt.agent : &quick;
    opt.event = world_hear;
    opt.arg = &l->w;
    code = (first ? tide_graph_run : tide_graph_resume)(s, l->g, &opt, &result, &l->err);
    tide_session_close(s);
    free(l->memory);
    l->memory = result.memory.ptr;
    memcpy(l->token, result.token, sizeof l->token);
    snprintf(l->ran, sizeof l->ran, "%s", result.session_id);
    return code;
}

#endif
