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
    const char **sets;                          /* KEY=VALUE, ended by NULL; NULL: none. Of graphs alone */
    bool now, accept_change, degrade;
    bool no_input;    /* nobody is asked at the terminal */
    int token_out_fd; /* for the token of the next wait; -1: shown */
};

/* Opens the store as well. */
enum tide_code resume_session(struct cli *cli, const struct resume *r, struct tide_err *err) MUST_CHECK;

/* --token TOKEN|-|@FILE; `room` keeps what is not given as it is. */
enum tide_code take_token(const char *given, struct buf *room, const char **ret, struct tide_err *err) MUST_CHECK;
/* --input TEXT or --input-json JSON, as JSON; NULL: neither. */
enum tide_code take_input(struct cli *cli, struct buf *room, const char **ret, struct tide_err *err) MUST_CHECK;

#define TOKEN_MAX 256
#define INPUT_MAX ((size_t)16 << 20)

/* --on-store-error continue */
bool is_continue(const struct args *args);

#endif
