/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command is: a row with everything that parsing, help, completion and the manual's test need. Each command's file
 * holds its row; commands.c lists them.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cli;

/* How the store is opened before the command runs. */
enum need {
    NEED_NOTHING, /* not at all; or the command does it */
    NEED_READ,    /* read-only: works on a full disk */
    NEED_WRITE,
    NEED_CREATE, /* made when there is none */
};

/* What a value is: checked while parsing, and what completion offers. */
enum value_type {
    VALUE_NONE,       /* a flag */
    VALUE_TEXT,       /* UTF-8 */
    VALUE_INT,        /* within min and max */
    VALUE_WORD,       /* one of `words` */
    VALUE_ID,         /* a new id */
    VALUE_SESSION,    /* a session's id or unique prefix */
    VALUE_CHECKPOINT, /* a checkpoint's id or unique prefix */
    VALUE_POSITION,   /* a seq or a checkpoint */
    VALUE_OBJECT,     /* JSON object */
    VALUE_KIND,       /* an event's kind */
    VALUE_DATA,       /* JSON, or @ and a path */
    VALUE_FILE,       /* path, any bytes */
    VALUE_DIR,
    VALUE_STDIN, /* the operand "-" alone */
    VALUE_SHELL, /* bash, zsh, fish */
    VALUE_COMMAND,
    VALUE_SCHEMA,   /* the name of a shape */
    VALUE_SETTING,  /* a key of the settings */
    VALUE_DURATION, /* 500ms, 90s, 15m, 3h, 2d; the number is milliseconds */
    VALUE_SINCE,    /* a duration before now, or a time in UTC; the number is Unix milliseconds */
    VALUE_WHEN,     /* a duration from now, or a time in UTC; the number is Unix milliseconds */
    VALUE_SIZE,     /* bytes, or with K, M or G behind; within min and max */
    VALUE_PROGRAM,  /* a program and its arguments: it and all that follows is taken as it is */
};

struct opt {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* short form; 0: none */
    enum value_type type;
    const char *value; /* what usage calls it: "N"; NULL for flags */
    const char *help;
    int64_t min, max;  /* of VALUE_INT and VALUE_SIZE; both 0: any from 0 */
    const char *words; /* of VALUE_WORD, space separated; of others what completion offers */
    bool required;
    bool optional; /* its value may be missing: then the text is NULL */
    bool many;     /* may be given more than once: args_nth() */
    bool hidden;
};

enum operand_flags {
    OPERAND_OPTIONAL = 1,
    OPERAND_MANY = 2, /* this one and all that follow */
};

struct operand {
    const char *name; /* NULL ends the list */
    enum value_type type;
    unsigned flags;
};

#define COMMAND_OPERANDS 3
#define COMMAND_OPTIONS 40 /* in one table */

struct command {
    const char *group; /* "sessions"; NULL: stands alone */
    const char *name;
    enum tide_code (*run)(struct cli *cli, struct tide_err *err);
    enum tide_code (*remote)(struct cli *cli, struct tide_err *err); /* through a server (remote.h); NULL: not at all */
    enum need need;
    struct operand operands[COMMAND_OPERANDS + 1];
    const struct opt *options; /* ends with a NULL name; NULL: none */
    const char *help;          /* one line */
    const char *more;          /* further lines for --help; NULL: none */
    bool opens_store;          /* by itself, with NEED_NOTHING */
};

struct command_group {
    const char *name, *help; /* name NULL ends the table */
};

extern const struct command *const commands[]; /* in the order help shows them; ends with NULL */
extern const struct command_group command_groups[];
extern const struct opt global_options[];

/* `group` NULL: a command that stands alone. NULL when there is none. */
const struct command *command_find(const char *group, const char *name);
const struct command_group *command_group_find(const char *name);
bool options_have(const struct opt *table, const char *name); /* table NULL: none */

#endif
