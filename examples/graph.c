/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph whose nodes are C functions, with its own idea of when there is a checkpoint. The first run fails, because nobody
 * has set the rate; the second is given it, and continues at the node that failed: the hours are not read again. Kill it
 * wherever you like and run it again.
 *
 *   cc graph.c $(pkg-config --cflags --libs tidemark) -o graph
 *   ./graph /tmp/example.db                       fails at price: it needs 'rate'
 *   ./graph /tmp/example.db '{"rate": 80}'        continues from there
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>

#define SESSION "invoice"

static const char graph_json[] =
    "{\"tidemark_graph\": 1, \"id\": \"invoice\", \"entry\": \"hours\", \"nodes\": ["
    "  {\"id\": \"hours\", \"type\": \"function\", \"callback\": \"read_hours\", \"outputs\": [\"hours\"], \"effect\": \"pure\"},"
    "  {\"id\": \"price\", \"type\": \"function\", \"callback\": \"multiply\", \"inputs\": [\"hours\", \"rate\"],"
    "   \"outputs\": [\"total\"], \"effect\": \"pure\"},"
    "  {\"id\": \"bill\", \"type\": \"function\", \"callback\": \"send_bill\", \"inputs\": [\"total\"], \"effect\": \"once\"}],"
    " \"edges\": [{\"from\": \"hours\", \"to\": \"price\"}, {\"from\": \"price\", \"to\": \"bill\"}]}";

static struct tide_err err;

static void must(enum tide_code code)
{
    if (code == TIDE_OK)
        return;
    fprintf(stderr, "graph: %s\n", err.msg);
    exit(tide_code_exit(code));
}

static enum tide_code give(struct tide_text *ret, const char *name, long value)
{
    char json[100];

    snprintf(json, sizeof json, "{\"%s\": %ld}", name, value);
    ret->ptr = strdup(json); /* the library frees it */
    ret->len = strlen(json);
    return TIDE_OK;
}

/* A real program would parse the JSON. */
static long number(const char *json, const char *name)
{
    const char *at = strstr(json, name);

    at = at ? strchr(at, ':') : NULL;
    return at ? strtol(at + 1, NULL, 10) : 0;
}

static enum tide_code read_hours(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                                 struct tide_err *why)
{
    (void)arg;
    (void)call;
    (void)why;
    return give(ret_output, "hours", 12);
}

static enum tide_code multiply(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                               struct tide_err *why)
{
    long rate = number(call->inputs, "\"rate\"");

    (void)arg;
    if (rate <= 0) { /* the node fails with these words */
        snprintf(why->msg, sizeof why->msg, "a rate of %ld is no rate", rate);
        return TIDE_FAILED;
    }
    return give(ret_output, "total", number(call->inputs, "\"hours\"") * rate);
}

/* It must happen once: that it begins is on disk before this is called. call->key is the same in every attempt. */
static enum tide_code send_bill(void *arg, const struct tide_node_call *call, struct tide_text *ret_output,
                                struct tide_err *why)
{
    FILE *f = fopen(arg, "a");

    (void)ret_output; /* it promises no output */
    if (!f) {
        snprintf(why->msg, sizeof why->msg, "the post office is closed");
        return TIDE_FAILED;
    }
    fprintf(f, "%s\n", call->inputs);
    fclose(f);
    return TIDE_OK;
}

/* Called when it is on disk, never two at a time. */
static void on_event(void *arg, const struct tide_graph_event *e)
{
    (void)arg;
    if (e->what == TIDE_GRAPH_NODE_START)
        printf("%s starts\n", e->node);
    else if (e->what == TIDE_GRAPH_NODE_END)
        printf("%s is complete\n", e->node);
    else if (e->what == TIDE_GRAPH_NODE_FAILED)
        printf("%s failed: %s\n", e->node, e->text);
    else if (e->what == TIDE_GRAPH_CHECKPOINT)
        printf("  checkpoint: %s\n", tide_checkpoint_type_name(e->checkpoint_type));
}

static void equip(tide_graph *graph, char *bills)
{
    must(tide_graph_add_callback(graph, "read_hours", read_hours, NULL, &err));
    must(tide_graph_add_callback(graph, "multiply", multiply, NULL, &err));
    must(tide_graph_add_callback(graph, "send_bill", send_bill, bills, &err));
}

/* Starts, or continues with the stored graph. */
static enum tide_code work(tide_session *session, const struct tide_graph_options *opt, char *bills,
                           struct tide_graph_result *ret)
{
    tide_graph *graph = NULL;
    enum tide_code code = tide_graph_load(session, &graph, &err);

    if (code == TIDE_NOT_FOUND) {
        must(tide_graph_parse(graph_json, strlen(graph_json), NULL, NULL, NULL, &graph, &err));
        equip(graph, bills);
        code = tide_graph_run(session, graph, opt, ret, &err);
    } else if (!code) {
        equip(graph, bills);
        code = tide_graph_resume(session, graph, opt, ret, &err);
    }
    tide_graph_free(graph);
    return code;
}

int main(int argc, char **argv)
{
    const struct tide_store_options create = {.size = sizeof create, .flags = TIDE_OPEN_CREATE};
    struct tide_graph_options opt = {.size = sizeof opt,
                                     .checkpoints =
                                         "{\"checkpoint_on_node_start\": false, \"checkpoint_on_edge\": true}",
                                     .event = on_event};
    struct tide_graph_result result = {.token = ""};
    tide_session *session;
    tide_store *store;
    char bills[4096];
    enum tide_code code;

    if (argc != 2 && argc != 3)
        return fprintf(stderr, "usage: graph STORE [MEMORY]\n"), 2;
    opt.memory = argv[2]; /* NULL: nothing is set */
    snprintf(bills, sizeof bills, "%s.bills", argv[1]);
    must(tide_store_open(argv[1], &create, &store, &err));
    if (tide_session_open(store, SESSION, TIDE_SESSION_APPEND, &session, &err))
        must(tide_session_create(store, SESSION, NULL, &session, &err));
    code = work(session, &opt, bills, &result);
    if (code)
        fprintf(stderr, "graph: %s\n", err.msg);
    else
        printf("memory: %s\n", result.memory.ptr);
    tide_text_done(&result.memory);
    tide_session_close(session);
    tide_store_close(store);
    return tide_code_exit(code);
}
