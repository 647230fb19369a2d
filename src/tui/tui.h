/* SPDX-License-Identifier: Apache-2.0 */
/* The full screen: on a store or through a server, until a person leaves it. */
#ifndef TUI_TUI_H
#define TUI_TUI_H

#include "tui/source.h"

struct tui_options {
    const char *session;       /* opened first, by its whole id; NULL: the list */
    bool inbox;                /* opened first */
    const char *const *starts; /* commands that start a session, for who has none; ended by NULL; NULL: none */
    bool color, ascii;
    const atomic_int *stop; /* a signal has come */
};

/* The source is stopped, and still the caller's. */
enum tide_code tui_run(struct source *source, const struct tui_options *opt, struct tide_err *err) MUST_CHECK;

#endif
