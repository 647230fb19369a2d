/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph as data: parsed, checked and resolved once, then only read. Nodes are named by their index, edges stand grouped by
 * the node they leave, the ones to look at first before the others, every expression is compiled. All of it lives in
 * one arena until spec_free.
 *
 * JSON is the whole truth: `spec->json` is the canonical text (compact, key order and number text as written, files of
 * subgraphs put in), and parsing it again gives the same graph and the same digest.
 */
#ifndef GRAPH_SPEC_H
#define GRAPH_SPEC_H

#include "base/digest.h"
#include "base/json.h"
#include "base/problem.h"
#include "graph/expr.h"

#define SPEC_MAX_BYTES ((size_t)8 << 20)
#define SPEC_MAX_NODES 4096
#define SPEC_MAX_EDGES 16384
#define SPEC_MAX_LIST 4096    /* keys, tools, arguments of one list */
#define SPEC_MAX_NESTING 8    /* graphs inside graphs */
#define SPEC_MAX_MAPS 2       /* a map, and a map inside it */
#define SPEC_MAX_PROBLEMS 200 /* that are reported; the others are counted */

#define SPEC_NONE SIZE_MAX /* an index that is none */

enum spec_node_type {
    SPEC_EVENT_LOOP,
    SPEC_FUNCTION,
    SPEC_ROUTER,
    SPEC_HUMAN_INPUT,
    SPEC_LUA,
    SPEC_SUBGRAPH,
    SPEC_MAP,
    SPEC_NODE_TYPES
};
enum spec_effect { SPEC_PURE, SPEC_IDEMPOTENT, SPEC_ONCE };
enum spec_on { SPEC_ALWAYS, SPEC_SUCCESS, SPEC_FAILURE, SPEC_CONDITION, SPEC_LLM, SPEC_TIMEOUT };
enum spec_conflict { SPEC_CONFLICT_ERROR, SPEC_CONFLICT_LAST, SPEC_CONFLICT_FIRST, SPEC_CONFLICT_MERGE };
enum spec_branch_failure { SPEC_FAIL_ALL, SPEC_CONTINUE, SPEC_WAIT_ALL };
enum spec_ask { SPEC_INPUT, SPEC_APPROVAL };
enum spec_tools_mode { SPEC_TOOLS_ALL, SPEC_TOOLS_NONE, SPEC_TOOLS_NAMED };

/* The words of the enums above as JSON has them, ended by NULL. */
extern const char *const spec_node_words[], *const spec_effect_words[], *const spec_on_words[];

struct spec_texts {
    const struct str *at; /* NUL-terminated behind each */
    size_t n;
};

static inline bool texts_have(const struct spec_texts *list, struct str text)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->at[i], text))
            return true;
    return false;
}

struct spec_expr {
    struct str source; /* empty: not given */
    struct expr *expr; /* NULL when not given */
};

struct spec_mapping {
    struct str key;
    struct spec_expr value;
};
struct spec_mappings {
    struct spec_mapping *at;
    size_t n;
};

struct spec_rule {
    struct str key;
    int rule; /* enum spec_conflict */
};
struct spec_rules {
    struct spec_rule *at;
    size_t n;
};

struct spec_route {
    struct spec_expr when;
    struct str to;
    size_t to_index;
    const char *path;
};
struct spec_routes {
    struct spec_route *at;
    size_t n;
};

/* A node at which a run may begin, by a name. */
struct spec_entry {
    struct str name, to;
    size_t to_index;
};
struct spec_entries {
    struct spec_entry *at;
    size_t n;
};

struct spec_tools {
    enum spec_tools_mode mode;
    struct spec_texts names;
};

struct spec_graph;

struct spec_node {
    struct str id, name, description; /* id is empty for the node inside a map */
    int type;                         /* enum spec_node_type */
    struct spec_texts inputs, outputs, nullable_outputs;
    int effect;      /* enum spec_effect; not given: lua and router pure, the others idempotent */
    int64_t retries; /* its own, else the graph's */
    struct spec_texts retry_on;
    int64_t timeout_ms; /* 0: none */
    int64_t max_visits; /* 0: no limit */
    bool safe_point;

    struct spec_texts program; /* function: one of both */
    struct str callback;
    struct str prompt, system_prompt, model, provider; /* event_loop; model and provider: its own, else the graph's */
    struct spec_tools tools;
    int64_t max_turns;         /* 0: as configured */
    struct spec_routes routes; /* router */
    struct str otherwise;
    size_t otherwise_index;              /* SPEC_NONE: not given */
    struct str question;                 /* human_input */
    int kind;                            /* enum spec_ask */
    int64_t deadline_ms;                 /* 0: none */
    const struct json *otherwise_answer; /* when it has passed; NULL: none */
    struct spec_expr code;               /* lua */
    struct spec_graph *graph;            /* subgraph; a file was read and put in its place */
    struct str file;
    struct spec_expr over; /* map: an expression; `over_key` instead when it is a plain key of the memory */
    struct str over_key, as;
    struct spec_node *node;
    int64_t parallel; /* 0: the graph's */

    size_t index;                      /* SPEC_NONE inside a map */
    size_t first_edge, n_edges;        /* in graph->edges */
    size_t first_arc, n_arcs;          /* in graph->arcs */
    size_t first_in, arcs_in;          /* in graph->sources */
    unsigned char digest[DIGEST_SIZE]; /* of its own JSON */
    const struct json *json;
    const char *path; /* "$.nodes[2]" */
};

struct spec_edge {
    struct str id, from, to, question, description;
    int on; /* enum spec_on; not given: condition with a `when`, llm with a `question`, else success */
    struct spec_expr when;
    int64_t priority; /* high first */
    struct spec_mappings map;

    size_t from_index, to_index; /* SPEC_NONE only while the graph has problems */
    size_t order;                /* its place in the JSON */
    const char *path;
};

/* A way from one node to another, whether an edge or a route of a router: what reachability and pictures are about. */
struct spec_arc {
    size_t from, to;
    const struct spec_edge *edge;   /* NULL: a route */
    const struct spec_route *route; /* both NULL: `otherwise` */
};

struct spec_budget {
    double max_cost;    /* 0: none */
    int64_t max_tokens; /* 0: none */
};

struct spec_checkpoints {
    bool on_node_start, on_node_complete, on_edge, on_loop_iteration;
    int64_t every_n_iterations, max_per_session, prune_after_node_count;
    bool keep_clean_only, async, include_conversations, include_full_memory;
    struct spec_texts exclude_memory_keys;
    int64_t slow_node_ms;
    struct spec_texts risky_nodes;
    int64_t memory_delta_keys;
};

struct spec_graph {
    int64_t format; /* 1 */
    struct str id, name, version, description, goal, entry, model, provider;
    struct spec_entries entry_points; /* other places than `entry` at which a run may begin */
    struct {
        struct spec_node *at;
        size_t n;
    } nodes;
    struct {
        struct spec_edge *at;
        size_t n;
    } edges;                   /* by source, then priority (high first), then order */
    const struct json *memory; /* object; NULL: none */
    int64_t max_retries, max_steps /* 0: no limit */, parallel;
    struct spec_budget budget;
    struct spec_rules conflict;
    int branch_failure; /* enum spec_branch_failure */
    struct spec_checkpoints checkpoints;

    size_t entry_index;
    size_t *by_id;         /* indexes of nodes, sorted by id */
    size_t *sources;       /* where arcs come from, by where they lead to */
    struct spec_arc *arcs; /* by source, in the order in which they are looked at */
    size_t n_arcs;
    bool max_steps_given;
    const struct json *json;
    const char *path;
};

struct spec_options {
    const char *dir;     /* where files of subgraphs, and programs, are looked for; NULL: such files are refused */
    problem_fn *problem; /* called for every problem and warning; may be NULL */
    void *arg;
};

struct spec {
    struct arena arena;
    struct spec_graph *graph;
    struct str json; /* canonical */
    const char *dir; /* where programs that it names with a relative path are looked for; absolute; NULL: not known */
    unsigned char digest[DIGEST_SIZE];
    size_t problems, warnings;
    struct expr **exprs; /* everything that was compiled */
    size_t n_exprs, cap_exprs;
};

/*
 * TIDE_INVALID when there is any problem: the error is the first, and says how many more there are. Warnings alone are no
 * error. `opt` may be NULL. The text is copied.
 */
enum tide_code spec_parse(struct str text, const struct spec_options *opt, struct spec **ret_spec, struct tide_err *err)
    MUST_CHECK;

/* The same of what was read from this file; opt->dir NULL: the file's directory. */
enum tide_code spec_parse_from(const char *path, struct str text, const struct spec_options *opt,
                               struct spec **ret_spec, struct tide_err *err) MUST_CHECK;
/* Members of an object as in `checkpoints`, over what is there. */
enum tide_code spec_change_checkpoints(struct spec *s, struct str json, struct spec_checkpoints *into,
                                       struct tide_err *err) MUST_CHECK;
/* Two objects as one: a member of `above` counts in place of the same of `below`. */
enum tide_code spec_merge_members(struct str below, struct str above, struct buf *out, struct tide_err *err) MUST_CHECK;
void spec_free(struct spec *s);
static inline void spec_freep(struct spec **s)
{
    spec_free(*s);
}

/* A whole file of at most SPEC_MAX_BYTES; "-" is standard input. */
enum tide_code spec_read(const char *path, struct buf *ret_text, struct tide_err *err) MUST_CHECK;

const struct spec_entry *spec_entry_point(const struct spec_graph *g, struct str name);     /* NULL: none */
const struct spec_node *spec_find(const struct spec_graph *g, struct str id);               /* NULL: none */
bool spec_has_edge(const struct spec_graph *g, const struct spec_node *n, enum spec_on on); /* that leaves it */
const struct spec_rule *spec_conflict_rule(const struct spec_graph *g, struct str key);

/* What is written at a way: its condition, "failure", "otherwise"…; "" for a plain one. Lives in the arena. */
const char *spec_arc_label(struct arena *a, const struct spec_graph *g, const struct spec_arc *arc);

/* The published JSON Schema of the format, from the same table as the parser. */
void spec_schema(struct buf *out);

/* For Graphviz and for Mermaid. */
void spec_dot(struct buf *out, const struct spec_graph *g);
void spec_mermaid(struct buf *out, const struct spec_graph *g);

/* A letter or _, then these and digits. */
bool spec_is_name(struct str s);

/* ---- two versions of a graph ---- */

enum spec_change {
    SPEC_SAME,       /* byte for byte, and so are the ways that leave it */
    SPEC_COMPATIBLE, /* changed, and a run that stands there can continue */
    SPEC_BROKEN,     /* changed so that it cannot: `why` */
    SPEC_REMOVED,    /* `rename`: what it may be called now, SPEC_NONE when nothing is like it */
    SPEC_ADDED,
};
extern const char *const spec_change_words[]; /* "same", "compatible", … */

struct spec_diff_node {
    enum spec_change change;
    const struct spec_node *before, *after; /* NULL when added or removed */
    size_t rename;                          /* index in the new graph */
    const char *why;                        /* "" when the same */
    struct spec_texts needs; /* inputs that the node, or the one it may be called now, did not have before */
};
struct spec_diff {
    struct spec_diff_node *nodes; /* those of the old graph by its index, then those that were added */
    size_t n;
    bool same; /* all of it, also what is not a node's */
};
void spec_compare(struct arena *a, const struct spec_graph *before, const struct spec_graph *after,
                  struct spec_diff *ret_diff);
const char *spec_lost_output(const struct spec_node *old, const struct spec_node *new); /* NULL: none */

#endif
