/* SPDX-License-Identifier: Apache-2.0 */
/* What a session that came from elsewhere would run, for a person who is to trust it. */
#ifndef CLI_TRUST_VIEW_H
#define CLI_TRUST_VIEW_H

#include "cli/cli.h"

/* Adds JSON text with every character that a terminal would not simply show as \uXXXX; it stays the same JSON. */
void trust_escape(struct buf *out, struct str json);

/* All of it, one thing a line. `shown` is what tide_session_show_trust() gave. */
void trust_print(struct out *out, struct str shown);

/* Asks at the terminal, after what was printed. TIDE_UNTRUSTED: no, or there is nobody to ask and no --yes. */
enum tide_code trust_ask(struct cli *cli, const char *question, struct tide_err *err) MUST_CHECK;

#endif
