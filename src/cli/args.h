/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, parsed and checked against the tables: pure, nothing is opened. Options may stand anywhere, also
 * before the command; "--" ends them, and so does the name of a program that is to be run; "--name VALUE" and "--name=VALUE"
 * are the same; one with a value stands only once unless its row says otherwise.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stddef.h>

#include "cli/command.h"

#define ARGS_GLOBALS 14

struct arg_value {
    bool given;
    const char *text;
    int64_t number;
};

/* A value of an option that may be given more than once. */
struct arg_more {
    const struct opt *opt;
    const char *text;
};

struct args {
    const struct command_group *group; /* NULL until named */
    const struct command *command;
    const char **operands; /* ends with NULL */
    size_t n_operands;
    struct arg_more *more;
    size_t n_more;
    struct arg_value globals[ARGS_GLOBALS], options[COMMAND_OPTIONS];
    char wrong[64]; /* the argument that was refused, as in the arguments of actions; "": none, or not known */
};

/*
 * TIDE_INVALID says what is wrong and what may be meant. With --help or --version, or without a command, it is satisfied
 * with what there is: look at `command` before using operands.
 */
enum tide_code args_parse(int argc, char **argv, struct args *ret_args, struct tide_err *err) MUST_CHECK;
void args_done(struct args *args);

/* By name, of the command's or the global options; asking for one that is in neither table is a bug. */
bool args_on(const struct args *args, const char *name);
const char *args_text(const struct args *args, const char *name); /* NULL when not given */
int64_t args_int(const struct args *args, const char *name, int64_t otherwise);
const char *args_nth(const struct args *args, const char *name, size_t i); /* of one that may stand more than once */
const char **args_all(const struct args *args, const char *name); /* all of them, ended by NULL; free() the list */
const char *args_operand(const struct args *args, size_t i);      /* NULL when not given */

/* TIDE_INVALID about this option or operand, which a command refuses after all were read; named as it is in its table. */
enum tide_code args_refuse(struct tide_err *err, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool args_refused(void); /* one was refused so: its words name the argument */

#endif
