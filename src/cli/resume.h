/* SPDX-License-Identifier: Apache-2.0 */
/* The one resume, behind `tidemark resume ID` and `tidemark exec --resume ID`. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/cli.h"

struct resume {
    const char *id;                 /* or unique prefix */
    const char *token;              /* NULL: the right of the store's owner */
    const char *input;              /* JSON; NULL: none */
    const char *request_id;         /* NULL: none */
    const char **retry, **happened; /* names, ended by NULL; NULL: none */
    const char **sets;              /* KEY=VALUE, ended by NULL; NULL: none. Of graphs alone */
    bool now, accept_change, degrade, degrade_said;
    bool no_input;    /* nobody is asked at the terminal */
    bool keep_pause;  /* a pause that a provider asked for is waited for */
    bool unattended;  /* no person resumes it: the same, whatever it runs */
    int token_out_fd; /* for the token of the next wait; -1: shown */
    struct buf token_text, input_text;
};

/* Opens the store as well. */
enum tide_code resume_session(struct cli *cli, const struct resume *r, struct tide_err *err) MUST_CHECK;

/* TIDE_INVALID: the option is for graphs. TIDE_CORRUPT: what the session runs cannot be read. */
enum tide_code resume_refuse_no_graph(tide_session *session, const char *option, struct tide_err *err) MUST_CHECK;

/* What both commands can be told; also when it fails, resume_done() what is there. */
enum tide_code resume_take(struct cli *cli, struct resume *ret, struct tide_err *err) MUST_CHECK;
void resume_done(struct resume *r);

#define INPUT_MAX ((size_t)16 << 20)

#endif
