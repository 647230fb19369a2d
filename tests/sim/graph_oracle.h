/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the oracle share: tasks and frames, kept in lists and looked through from the beginning. */
#ifndef SIM_GRAPH_ORACLE_H
#define SIM_GRAPH_ORACLE_H

#include "graph.h"

enum o_state { O_READY, O_RUNNING, O_BLOCKED, O_FAILED, O_LEFT /* failed in an earlier run: first to go on */, O_GONE };

struct o_frame;

struct o_task {
    struct o_task *next; /* those that were begun in that order */
    enum o_state state;
    struct str name;
    const struct spec_graph *graph;
    const struct spec_node *node;
    struct o_frame *frame;
    int64_t item; /* of a map; -1: none */
    int64_t seq, visit, attempt;
    bool answered;
    struct str branch, inputs;
};

/* What a graph inside a node, or a map, remembers. */
struct o_frame {
    struct o_frame *next, *up;
    bool gone;
    struct str name;
    struct o_task *owner;           /* NULL: the graph itself */
    const struct spec_graph *graph; /* NULL: a map */
    struct map memory, writers;     /* key -> struct str * */
    const struct json *items;
    int64_t total, next_item;
    struct str *results; /* ptr NULL: none yet */
};

struct oracle {
    const struct plan *plan;
    const struct spec_graph *graph;
    struct arena arena;
    struct o_task *tasks;
    struct o_frame *frames;
    struct map visits; /* name -> struct str * of digits */
    bool mended[NODES], broke[NODES];
    bool failed, halting;
    int64_t seq;
    struct end *end;
};

/* ---- graph_values.c */
struct str o_text(struct oracle *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void o_put(struct oracle *o, struct map *m, struct str key, struct str value);
struct str o_get(const struct map *m, struct str key); /* ptr NULL: none */
struct o_frame *o_memory_frame(struct o_frame *f);     /* items of a map see what the map sees */
struct str o_memory(struct oracle *o, struct o_frame *f, const struct json *more);
struct str o_inputs(struct oracle *o, const struct o_task *t, struct str *ret_missing);
const struct json *o_parse(struct oracle *o, struct str json);
bool o_within(struct str branch, struct str outer);
void o_join(struct o_frame *f, struct str branch); /* branches of that graph came together */
/* Sets what a task gives; false: a conflict, *ret_code. */
bool o_values(struct oracle *o, const struct o_task *t, const struct json *output, struct str *ret_set,
              const char **ret_code);
void o_store(struct oracle *o, const struct o_task *t, struct str set);

struct o_way {
    size_t to;
    struct str values;
};
/* `error`: its code; NULL: it succeeded. */
size_t o_ways(struct oracle *o, const struct o_task *t, struct str output, struct str set, const char *error,
              struct o_way *ret, size_t max);

/* ---- graph_nodes.c */
void o_work(struct oracle *o, struct o_task *t);
void o_begin_graph(struct oracle *o, struct o_task *t);
void o_begin_map(struct oracle *o, struct o_task *t);
void o_frame_over(struct oracle *o, struct o_frame *f);

/* ---- graph_oracle.c */
void o_complete(struct oracle *o, struct o_task *t, struct str output);
void o_failed(struct oracle *o, struct o_task *t, const char *code, bool again);
void o_lead_to(struct oracle *o, struct o_frame *f, const struct spec_node *node, struct str from, struct str branch,
               struct str values);
struct o_frame *o_frame_new(struct oracle *o, struct o_task *owner, struct str name);
struct o_task *o_find(struct oracle *o, struct str name, bool ready);

#endif
