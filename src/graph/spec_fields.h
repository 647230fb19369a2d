/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a graph's JSON as one table: the parser, the nearest names in its complaints, the JSON Schema and the test of
 * the published one all read it.
 */
#ifndef GRAPH_SPEC_FIELDS_H
#define GRAPH_SPEC_FIELDS_H

#include "graph/spec.h"

/* What a value is in JSON, and what it becomes. */
enum spec_field_type {
    FIELD_ONE,      /* the number 1: int64_t */
    FIELD_TEXT,     /* struct str */
    FIELD_ID,       /* the same, letters that an id may have */
    FIELD_INT,      /* int64_t within min and max */
    FIELD_NUMBER,   /* double, not negative */
    FIELD_BOOL,     /* bool */
    FIELD_WORD,     /* int: which of `words` */
    FIELD_DURATION, /* "3h": int64_t milliseconds */
    FIELD_EXPR,     /* struct spec_expr: an expression */
    FIELD_OVER,     /* the same, or a plain key */
    FIELD_BODY,     /* the same: statements */
    FIELD_KEYS,     /* struct spec_texts: keys of the memory, each once */
    FIELD_TEXTS,    /* struct spec_texts */
    FIELD_TOOLS,    /* struct spec_tools */
    FIELD_EXPRS,    /* struct spec_mappings: {key: expression} */
    FIELD_RULES,    /* struct spec_rules: {key: word} */
    FIELD_ENTRIES,  /* struct spec_entries: {name: id of a node} */
    FIELD_VALUES,   /* const struct json *: any object */
    FIELD_JSON,     /* the same: any value */
    FIELD_OBJECT,   /* `object`, in place */
    FIELD_LIST,     /* a pointer to an array of `object`, and its size_t length */
    FIELD_NODE,     /* struct spec_node * */
    FIELD_GRAPH,    /* struct spec_graph * */
};

struct spec_object;

/* Words of other graphs of this kind that mean the same. */
struct spec_synonym {
    const char *also, *word;
};
extern const struct spec_synonym spec_synonyms[]; /* ended by NULL */

struct spec_field {
    const char *name;
    enum spec_field_type type;
    size_t offset;
    const char *const *words;
    int64_t min, max;
    const char *fallback; /* JSON; NULL: none */
    unsigned types;       /* bits of enum spec_node_type that have it; 0: all */
    bool required;
    const struct spec_object *object;
    const char *help;
};

struct spec_object {
    const char *name;                /* "a node" */
    const struct spec_field *fields; /* ended by a row without a name */
    size_t size;
    size_t path_offset; /* of `const char *path`; 0: it has none */
};

/* What a node of a type must have beyond what all have. */
enum spec_part_rule { PART_ALL, PART_ONE /* exactly one of both */, PART_ANY /* one of both at least */ };
struct spec_part {
    enum spec_node_type type;
    enum spec_part_rule rule;
    const char *first, *second; /* second NULL: that one */
};
extern const struct spec_part spec_parts[]; /* ended by a row without `first` */

extern const struct spec_object spec_graph_object, spec_node_object, spec_edge_object, spec_route_object,
    spec_budget_object, spec_checkpoints_object;

#endif
