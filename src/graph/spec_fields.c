/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys. A row says everything about its key: a new one needs a row here and a member in spec.h. */
#include "graph/spec_fields.h"

#include <stddef.h>

const char *const spec_node_words[] = {"event_loop", "function", "router", "human_input",
                                       "lua",        "subgraph", "map",    NULL};
const char *const spec_effect_words[] = {"pure", "idempotent", "once", NULL};
const char *const spec_on_words[] = {"always", "success", "failure", "condition", "llm", "timeout", NULL};
const struct spec_synonym spec_synonyms[] = {{"on_success", "success"},    {"on_failure", "failure"},
                                             {"conditional", "condition"}, {"llm_decide", "llm"},
                                             {"on_timeout", "timeout"},    {NULL, NULL}};
static const char *const conflict_words[] = {"error", "last", "first", "merge", NULL};
static const char *const branch_words[] = {"fail_all", "continue", "wait_all", NULL};
static const char *const ask_words[] = {"input", "approval", NULL};

#define MILLION INT64_C(1000000)
#define YEAR_MS (INT64_C(366) * 86400 * 1000)
#define OF(type) (1u << SPEC_##type)

/* ---- what stands inside ---- */

#define AT(member) offsetof(struct spec_budget, member)
static const struct spec_field budget_fields[] = {
    {"max_cost", FIELD_NUMBER, AT(max_cost), .fallback = "0", .help = "maximum cost of all model calls; 0: no limit"},
    {"max_tokens", FIELD_INT, AT(max_tokens), .max = INT64_MAX, .fallback = "0",
     .help = "maximum tokens, in and out; 0: no limit"},
    {.name = NULL},
};
#undef AT
const struct spec_object spec_budget_object = {"a budget", budget_fields, sizeof(struct spec_budget), 0};

#define AT(member) offsetof(struct spec_checkpoints, member)
static const struct spec_field checkpoint_fields[] = {
    {"checkpoint_on_node_start", FIELD_BOOL, AT(on_node_start), .fallback = "true",
     .help = "a checkpoint before a node runs"},
    {"checkpoint_on_node_complete", FIELD_BOOL, AT(on_node_complete), .fallback = "true",
     .help = "a checkpoint when a node has finished"},
    {"checkpoint_on_edge", FIELD_BOOL, AT(on_edge), .fallback = "false", .help = "a checkpoint when an edge is taken"},
    {"checkpoint_on_loop_iteration", FIELD_BOOL, AT(on_loop_iteration), .fallback = "false",
     .help = "a checkpoint in each turn of an event_loop"},
    {"checkpoint_every_n_iterations", FIELD_INT, AT(every_n_iterations), .max = MILLION, .fallback = "0",
     .help = "of those only every n-th; 0: each"},
    {"max_checkpoints_per_session", FIELD_INT, AT(max_per_session), .max = MILLION, .fallback = "100",
     .help = "beyond this the oldest are pruned; 0: no limit"},
    {"prune_after_node_count", FIELD_INT, AT(prune_after_node_count), .max = MILLION, .fallback = "10",
     .help = "prune after so many nodes; 0: never"},
    {"keep_clean_checkpoints_only", FIELD_BOOL, AT(keep_clean_only), .fallback = "false",
     .help = "keep only those before which nothing failed"},
    {"async_checkpoint", FIELD_BOOL, AT(async), .fallback = "true",
     .help = "do not wait for a checkpoint before continuing"},
    {"include_conversation_snapshots", FIELD_BOOL, AT(include_conversations), .fallback = "true",
     .help = "inspect shows the conversations; the log and exports always have them"},
    {"include_full_memory", FIELD_BOOL, AT(include_full_memory), .fallback = "true",
     .help = "inspect may show the memory; explicitly true: always. The log and exports always have it"},
    {"exclude_memory_keys", FIELD_KEYS, AT(exclude_memory_keys),
     .fallback = "[\"api_key\",\"credentials\",\"access_token\"]",
     .help = "keys that are never stored and must be given again"},
    {"slow_node_ms", FIELD_INT, AT(slow_node_ms), .max = YEAR_MS, .fallback = "30000",
     .help = "a checkpoint after a node that took longer; 0: none"},
    {"risky_nodes", FIELD_TEXTS, AT(risky_nodes), .fallback = "[\"api_call\",\"external_tool\"]",
     .help = "a checkpoint before these"},
    {"memory_delta_keys", FIELD_INT, AT(memory_delta_keys), .max = MILLION, .fallback = "10",
     .help = "a checkpoint when so many keys have changed; 0: none"},
    {.name = NULL},
};
#undef AT
const struct spec_object spec_checkpoints_object = {"'checkpoints'", checkpoint_fields, sizeof(struct spec_checkpoints),
                                                    0};

#define AT(member) offsetof(struct spec_route, member)
static const struct spec_field route_fields[] = {
    {"when", FIELD_EXPR, AT(when), .required = true, .help = "the first route whose condition is true is taken"},
    {"to", FIELD_ID, AT(to), .required = true, .help = "the node it leads to"},
    {.name = NULL},
};
const struct spec_object spec_route_object = {"a route", route_fields, sizeof(struct spec_route), AT(path)};
#undef AT

/* ---- edges ---- */

#define AT(member) offsetof(struct spec_edge, member)
static const struct spec_field edge_fields[] = {
    {"id", FIELD_ID, AT(id), .help = "a name for logs; each only once"},
    {"from", FIELD_ID, AT(from), .required = true, .help = "the node it leaves"},
    {"to", FIELD_ID, AT(to), .required = true, .help = "the node it leads to"},
    {"on", FIELD_WORD, AT(on), .words = spec_on_words,
     .help = "when it is taken (default: condition with a when, llm with a question, else success)"},
    {"when", FIELD_EXPR, AT(when), .help = "the condition, a Lua expression over output, memory and result"},
    {"priority", FIELD_INT, AT(priority), .min = -MILLION, .max = MILLION, .fallback = "0",
     .help = "higher ones are evaluated first"},
    {"map", FIELD_EXPRS, AT(map), .help = "what the target gets: its keys, each with an expression"},
    {"question", FIELD_TEXT, AT(question), .help = "what the model is asked (llm)"},
    {"description", FIELD_TEXT, AT(description), .help = "for people"},
    {.name = NULL},
};
const struct spec_object spec_edge_object = {"an edge", edge_fields, sizeof(struct spec_edge), AT(path)};
#undef AT

/* ---- nodes ---- */

#define AT(member) offsetof(struct spec_node, member)
static const struct spec_field node_fields[] = {
    {"id", FIELD_ID, AT(id), .required = true, .help = "its name in edges, logs and commands; each only once"},
    {"name", FIELD_TEXT, AT(name), .help = "for people"},
    {"description", FIELD_TEXT, AT(description), .help = "for people"},
    {"type", FIELD_WORD, AT(type), .words = spec_node_words, .required = true, .help = "what it does"},
    {"inputs", FIELD_KEYS, AT(inputs), .help = "keys of the memory that it needs"},
    {"outputs", FIELD_KEYS, AT(outputs), .help = "keys of the memory that it sets"},
    {"nullable_outputs", FIELD_KEYS, AT(nullable_outputs), .help = "outputs that may stay unset"},
    {"effect", FIELD_WORD, AT(effect), .words = spec_effect_words,
     .help = "after an interruption: pure and idempotent run again, once never does (default: pure for lua and "
             "router, else idempotent)"},
    {"retries", FIELD_INT, AT(retries), .max = 1000,
     .help = "attempts after the first; for a map: of its items (default: the graph's max_retries)"},
    {"retry_on", FIELD_TEXTS, AT(retry_on), .help = "only errors with these codes are retried"},
    {"timeout_ms", FIELD_INT, AT(timeout_ms), .max = YEAR_MS, .fallback = "0", .help = "0: no limit"},
    {"max_visits", FIELD_INT, AT(max_visits), .max = MILLION, .fallback = "0",
     .help = "how often it may be entered; 0: no limit"},
    {"safe_point", FIELD_BOOL, AT(safe_point), .fallback = "false",
     .help = "a safe_point checkpoint when it is complete"},

    {"program", FIELD_TEXTS, AT(program), .types = OF(FUNCTION),
     .help = "a program and its arguments: JSON in, JSON out"},
    {"callback", FIELD_TEXT, AT(callback), .types = OF(FUNCTION),
     .help = "a registered C function, instead of program"},
    {"prompt", FIELD_TEXT, AT(prompt), .types = OF(EVENT_LOOP), .help = "what the agent is asked to do"},
    {"system_prompt", FIELD_TEXT, AT(system_prompt), .types = OF(EVENT_LOOP), .help = "what the agent is"},
    {"model", FIELD_TEXT, AT(model), .types = OF(EVENT_LOOP), .help = "default: the graph's"},
    {"provider", FIELD_TEXT, AT(provider), .types = OF(EVENT_LOOP), .help = "default: the graph's"},
    {"tools", FIELD_TOOLS, AT(tools), .types = OF(EVENT_LOOP), .fallback = "\"all\"",
     .help = "names of tools, or all, or none"},
    {"max_turns", FIELD_INT, AT(max_turns), .max = MILLION, .fallback = "0", .types = OF(EVENT_LOOP),
     .help = "0: as configured"},
    {"routes", FIELD_LIST, AT(routes), .types = OF(ROUTER), .object = &spec_route_object,
     .help = "conditions, evaluated in this order"},
    {"otherwise", FIELD_ID, AT(otherwise), .types = OF(ROUTER), .help = "the node if no route is true"},
    {"question", FIELD_TEXT, AT(question), .types = OF(HUMAN_INPUT), .help = "what the person is asked"},
    {"kind", FIELD_WORD, AT(kind), .words = ask_words, .fallback = "\"input\"", .types = OF(HUMAN_INPUT),
     .help = "text, or yes and no"},
    {"deadline", FIELD_DURATION, AT(deadline_ms), .types = OF(HUMAN_INPUT),
     .help = "how long it waits: 90s, 15m, 3h, 2d"},
    {"default", FIELD_JSON, AT(otherwise_answer), .types = OF(HUMAN_INPUT),
     .help = "the answer if there is none before the deadline"},
    {"code", FIELD_BODY, AT(code), .types = OF(LUA), .help = "Lua that returns an object with the outputs"},
    {"graph", FIELD_GRAPH, AT(graph), .types = OF(SUBGRAPH), .help = "a graph that runs as this node"},
    {"file", FIELD_TEXT, AT(file), .types = OF(SUBGRAPH), .help = "its file, instead of graph"},
    {"over", FIELD_OVER, AT(over), .types = OF(MAP), .help = "the list: a key of the memory or an expression"},
    {"as", FIELD_TEXT, AT(as), .types = OF(MAP), .fallback = "\"item\"",
     .help = "the key under which a branch finds its item"},
    {"node", FIELD_NODE, AT(node), .types = OF(MAP), .help = "what runs for each item: a node without an id"},
    {"parallel", FIELD_INT, AT(parallel), .max = 1024, .fallback = "0", .types = OF(MAP),
     .help = "branches at once; 0: the graph's"},
    {.name = NULL},
};
const struct spec_object spec_node_object = {"a node", node_fields, sizeof(struct spec_node), AT(path)};
#undef AT

const struct spec_part spec_parts[] = {
    {SPEC_EVENT_LOOP, PART_ANY, "prompt", "system_prompt"},
    {SPEC_FUNCTION, PART_ONE, "program", "callback"},
    {SPEC_ROUTER, PART_ANY, "routes", "otherwise"},
    {SPEC_HUMAN_INPUT, PART_ALL, "question", NULL},
    {SPEC_LUA, PART_ALL, "code", NULL},
    {SPEC_SUBGRAPH, PART_ONE, "graph", "file"},
    {SPEC_MAP, PART_ALL, "over", NULL},
    {SPEC_MAP, PART_ALL, "node", NULL},
    {.first = NULL},
};

/* ---- the graph ---- */

#define AT(member) offsetof(struct spec_graph, member)
static const struct spec_field graph_fields[] = {
    {"tidemark_graph", FIELD_ONE, AT(format), .required = true, .help = "the version of the format"},
    {"id", FIELD_ID, AT(id), .required = true, .help = "its name in sessions and commands"},
    {"name", FIELD_TEXT, AT(name), .help = "for people"},
    {"version", FIELD_TEXT, AT(version), .help = "for people"},
    {"description", FIELD_TEXT, AT(description), .help = "for people"},
    {"goal", FIELD_TEXT, AT(goal), .help = "what it is for: {goal} in prompts and questions; a run may give another"},
    {"entry", FIELD_ID, AT(entry), .required = true, .help = "the node that runs first"},
    {"entry_points", FIELD_ENTRIES, AT(entry_points), .help = "other nodes at which a run may begin, by name"},
    {"nodes", FIELD_LIST, AT(nodes), .max = SPEC_MAX_NODES, .required = true, .object = &spec_node_object,
     .help = "what is done"},
    {"edges", FIELD_LIST, AT(edges), .max = SPEC_MAX_EDGES, .object = &spec_edge_object,
     .help = "what comes after what"},
    {"memory", FIELD_VALUES, AT(memory), .help = "keys that are set at the start"},
    {"max_retries", FIELD_INT, AT(max_retries), .max = 1000, .fallback = "3",
     .help = "attempts after the first, for nodes without retries"},
    {"max_steps", FIELD_INT, AT(max_steps), .max = MILLION * 1000, .fallback = "1000",
     .help = "maximum number of nodes that run; 0: no limit"},
    {"parallel", FIELD_INT, AT(parallel), .min = 1, .max = 1024, .fallback = "4", .help = "branches at once"},
    {"budget", FIELD_OBJECT, AT(budget), .object = &spec_budget_object, .help = "what it may cost"},
    {"conflict", FIELD_RULES, AT(conflict), .words = conflict_words,
     .help = "which value counts if parallel branches set the same key"},
    {"branch_failure", FIELD_WORD, AT(branch_failure), .words = branch_words, .fallback = "\"fail_all\"",
     .help = "what a failed branch does to the others"},
    {"checkpoints", FIELD_OBJECT, AT(checkpoints), .object = &spec_checkpoints_object,
     .help = "when there is a checkpoint"},
    {"model", FIELD_TEXT, AT(model), .help = "for event_loop nodes that name none"},
    {"provider", FIELD_TEXT, AT(provider), .help = "for event_loop nodes that name none"},
    {.name = NULL},
};
const struct spec_object spec_graph_object = {"a graph", graph_fields, sizeof(struct spec_graph), AT(path)};
#undef AT
