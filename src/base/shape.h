/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a JSON object as a table of its members. One table writes the object from a C struct and prints the JSON
 * Schema of it, so that what is written and what is promised cannot differ.
 */
#ifndef BASE_SHAPE_H
#define BASE_SHAPE_H

#include "base/json.h"

enum shape_type {
    SHAPE_TEXT,   /* const char * */
    SHAPE_CHARS,  /* char[]; "" is absent where that may be */
    SHAPE_STR,    /* struct str, or struct tide_text; one without a pointer is absent */
    SHAPE_INT,    /* int, size_t or int64_t */
    SHAPE_BOOL,   /* bool or int */
    SHAPE_TIME,   /* int64_t, Unix milliseconds; 0 is absent */
    SHAPE_NUMBER, /* by `put` */
    SHAPE_ANY,    /* struct str: JSON, as it is; empty is absent */
    SHAPE_OBJECT, /* of the shape `of` */
    SHAPE_LIST, /* of the shape `of`, by `put`; without `of`: const char *const *, ended by NULL, or `items` by `put` */
    SHAPE_ROWS, /* an array of structs of the shape `of`: SHAPE_ROWS_AT */
    SHAPE_STREAM,  /* struct shape_stream: a list of the shape `of`, else of `items` */
    SHAPE_MAP,     /* an object whose names are data: values of the shape `of`, else `items`; by `put` */
    SHAPE_MEMBERS, /* the members of `of`, in place */
    SHAPE_VARIANT, /* the name of the variant */
};

enum shape_flags {
    SHAPE_NULLABLE = 1, /* absent: null */
    SHAPE_OPTIONAL = 2, /* absent: left out */
    SHAPE_ID = 4, /* an id (str_is_id), which commands name: what is none is not read, and neither is what lacks it */
};

struct shape;

/* Elements that nobody gathers: each is written as it comes. */
struct shape_stream {
    void (*write)(struct json_out *o, void *arg);
    void *arg;
};

/* Where it is in the struct that is written: the object `of` begins at the offset, too. */
struct shape_member {
    const char *name; /* NULL ends a table */
    enum shape_type type;
    size_t count; /* of SHAPE_ROWS: where their number is, a size_t */
    size_t offset, size;
    unsigned flags;
    const char *help;
    const struct shape *of;
    enum shape_type items;
    unsigned only;                                     /* bits of the variants that have it; 0: all */
    const char *words;                                 /* of SHAPE_TEXT: the only values, space separated; NULL: any */
    bool (*has)(const void *data);                     /* false: absent; NULL: by the value */
    void (*put)(struct json_out *o, const void *data); /* writes the value; NULL: by type and offset */
    /* Reads what `put` wrote, which is not null; false: it is no such value. NULL: by type and offset, or not at all where it has a put. */
    bool (*take)(struct arena *a, const struct json *v, void *data);
};

struct shape {
    const char *name, *help;
    const struct shape_member *members;
    bool open; /* others may follow: of what is not ours alone to say */
    /* Of one that has variants: their names, ended by NULL, and which of them it is. */
    const char *const *variants;
    int (*variant)(const void *data);
};

#define SHAPE_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define SHAPE_ROWS_AT(type, rows, n)                                                                                   \
    .count = offsetof(type, n), .offset = offsetof(type, rows), .size = sizeof(*((type *)0)->rows)

/* A shape that its members are all of. */
#define SHAPE(NAME, HELP, ...)                                                                                         \
    const struct shape shape_##NAME = {                                                                                \
        .name = #NAME, .help = HELP, .members = (const struct shape_member[]){__VA_ARGS__, {.name = NULL}}}

void shape_put(struct json_out *o, const struct shape *shape, const void *data);

/*
 * The struct that such an object was written from, as far as its members can be read back: the rest of it stays as it is. Texts are the
 * arena's. What is absent, null or not known is passed over. Elements of a stream are the caller's to read. TIDE_INVALID names a member of another type.
 */
enum tide_code shape_read(struct arena *a, const struct shape *shape, const struct json *v, void *data,
                          struct tide_err *err) MUST_CHECK;

/* "enum" of a schema: words, space separated. */
void shape_schema_words(struct json_out *o, const char *words, bool nullable);
/* The JSON Schema of it (draft 2020-12). */
void shape_schema(struct json_out *o, const struct shape *shape);

#endif
