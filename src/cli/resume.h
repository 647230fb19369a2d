/* SPDX-License-Identifier: Apache-2.0 */
/* The one resume, behind `tidemark resume ID` and `tidemark exec --resume ID`. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/cli.h"

struct resume {
    const char *id;                             /* or unique prefix */
    const char *token;                          /* NULL: the right of the store's owner */
    const char *input;                          /* JSON; NULL: none */
    const char *request_id;                     /* NULL: none */
    const char *const *retry, *const *happened; /* names, ended by NULL; NULL: none */
    bool now, accept_change, degrade;
    int token_out_fd; /* for the token of the next wait; -1: shown */
};

/* Opens the store as well. */
enum tide_code resume_session(struct cli *cli, const struct resume *r, struct tide_err *err) MUST_CHECK;

/* --on-store-error continue */
bool is_continue(const struct args *args);

#endif
