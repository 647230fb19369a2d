/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser share: where they are in the JSON, what they have found, and where problems go. */
#ifndef GRAPH_SPEC_INTERNAL_H
#define GRAPH_SPEC_INTERNAL_H

#include <sys/types.h>

#include "graph/spec_fields.h"

/* A file that is being read, and the one that names it: a graph that contains itself is found by it. */
struct spec_open_file {
    const struct spec_open_file *up;
    dev_t device;
    ino_t inode;
};

struct spec_template {
    const struct spec_object *object;
    const void *bytes;
};

struct spec_parser {
    struct spec *spec;
    const struct spec_options *opt;
    const char *dir;
    const char *prefix;          /* from the directory of the graph to that of this file; NULL: the same */
    const struct json *document; /* the file that is read */
    const struct spec_open_file *files;
    unsigned nesting, maps;
    size_t file_bytes;                 /* of subgraphs, read so far */
    struct spec_template templates[8]; /* objects with nothing but their defaults */
    size_t n_templates;
    struct tide_err first; /* the first problem */
};

/* Where a value stands: made on the stack, written out only when something is wrong with it. */
struct spec_place {
    const struct spec_place *up; /* NULL: `path` is the whole beginning */
    const char *path;
    struct str key; /* of a member; empty: an item of a list */
    size_t index;
};

enum spec_severity { SPEC_PROBLEM, SPEC_WARNING };

/* Reports and counts. `hint` may be "". */
void spec_say(struct spec_parser *p, enum spec_severity severity, const char *path, const char *hint, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
void spec_say_at(struct spec_parser *p, const struct spec_place *at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* One value by its row into `into`. */
void spec_set(struct spec_parser *p, const struct spec_field *f, const struct json *v, const struct spec_place *at,
              void *into);

/* An object by its table into `into`, which has the object's size. */
void spec_read_object(struct spec_parser *p, const struct spec_object *object, const struct json *v,
                      const struct spec_place *at, void *into);
struct spec_graph *spec_read_graph(struct spec_parser *p, const struct json *v, const struct spec_place *at);

/* What a node of its type must have, and what follows from it; reads the file of a subgraph. */
void spec_finish_node(struct spec_parser *p, struct spec_node *n, const struct json *v, const struct spec_place *at);
void spec_finish_edge(struct spec_edge *e, const struct json *v);

/* Names become indexes, edges are put in order. */
bool spec_is_sound(const struct spec_graph *g); /* of one without problems: every index is one of a node */
void spec_resolve(struct spec_parser *p, struct spec_graph *g);

/* Everything that can be wrong with a graph whose parts are right. */
void spec_check(struct spec_parser *p, struct spec_graph *g);

/* What prompts, questions and expressions ask for: `keys` are those that somebody sets; those of nodes are put to them. */
struct map;
void spec_check_texts(struct spec_parser *p, const struct spec_graph *g, struct map *keys);

/* Names that mean nothing: of tools; in an expression, where `seen` (ended by NULL) are the values it gets. */
void spec_check_tools(struct spec_parser *p, const struct spec_node *n);
void spec_check_names(struct spec_parser *p, struct str source, const char *const *seen, const struct map *keys,
                      const char *path);

/* The hint for an expression that is not Lua; "": there is none. */
const char *spec_lua_hint(struct spec_parser *p, struct str source);

/* "did you mean 'x'?", or the names there are. */
const char *spec_hint_of(struct spec_parser *p, struct str typed, const char *const *words);

#endif
