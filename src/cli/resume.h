/* SPDX-License-Identifier: Apache-2.0 */
/* The one resume, behind `tidemark resume ID` and `tidemark exec --resume ID`. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/cli.h"
#include "engine/resume.h"

struct resume {
    struct resume_request ask;
    const char **sets; /* KEY=VALUE, ended by NULL; NULL: none. Of graphs alone */
    bool degrade, degrade_said;
    int token_out_fd; /* for the token of the next wait; -1: shown */
    struct buf token_text, input_text;
};

/* Opens the store as well. */
enum tide_code resume_session(struct cli *cli, const struct resume *r, struct tide_err *err) MUST_CHECK;

/* What both commands can be told; also when it fails, resume_done() what is there. */
enum tide_code resume_take(struct cli *cli, struct resume *ret, struct tide_err *err) MUST_CHECK;
void resume_done(struct resume *r);

#define INPUT_MAX ((size_t)16 << 20)

#endif
