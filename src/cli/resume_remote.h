/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resuming, answering and sending through a server: the run continues there, this waits until it has ended or waits for
 * somebody, and prints what came of it.
 */
#ifndef CLI_RESUME_REMOTE_H
#define CLI_RESUME_REMOTE_H

#include "cli/cli.h"

struct resuming;

/* With what the options of `resume` say, which were read into `r`. */
enum tide_code resume_remote(struct cli *cli, struct resuming *r, struct tide_err *err) MUST_CHECK;
enum tide_code send_remote(struct cli *cli, struct tide_err *err) MUST_CHECK;

#endif
