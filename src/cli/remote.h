/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in place of a store: `--server URL` and TIDEMARK_SERVER. A command's row says what it does then (struct command, `remote`): it
 * asks the server, reads the answer back into what its printer takes, and prints the same as on the store itself.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli/cli.h"
#include "remote/remote.h"

/* The server that is named, where no store is named instead; NULL: none. */
const char *remote_named(const struct args *args);

/* Runs the command through it; or refuses one that works on a store only. */
enum tide_code remote_run(struct cli *cli, struct tide_err *err) MUST_CHECK;

/* Where no server is named: the one that serves the store of the command, on its unix socket. TIDE_NOT_FOUND: there is none. */
enum tide_code remote_open_local(struct cli *cli, struct tide_err *err) MUST_CHECK;

/* Refuses the first of these options (ended by NULL) that is given: it means nothing through a server. */
enum tide_code remote_check_options(const struct cli *cli, const char *const *names, struct tide_err *err) MUST_CHECK;

/* As remote_ask(), printed as it came: with --json, of what a server says in the same words. */
enum tide_code remote_pass(struct cli *cli, enum remote_patience patience, struct tide_err *err) MUST_CHECK;

/* GET /sessions/{id}/why of the first operand: its whole id, and its status. */
enum tide_code remote_why(struct cli *cli, struct session_why *ret, struct tide_err *err) MUST_CHECK;

#endif
