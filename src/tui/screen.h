/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: shows a canvas, gives keys. The rest of the process says nothing on it meanwhile. */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include "base/err.h"
#include "tui/canvas.h"
#include "tui/key.h"

struct screen;

struct screen_options {
    bool color;
    bool utf8; /* the terminal shows it */
};

/* Whether the environment says that the terminal shows UTF-8. */
bool screen_has_utf8(void);

/* TIDE_INVALID: standard input or output is no terminal, or TERM names none that can be drawn on. */
enum tide_code screen_open(const struct screen_options *opt, struct screen **ret, struct tide_err *err) MUST_CHECK;
void screen_close(struct screen *s); /* the terminal is as it was; takes NULL */

void screen_size(struct screen *s, int *ret_rows, int *ret_cols);
bool screen_resized(struct screen *s); /* since it was asked last */
void screen_show(struct screen *s, const struct canvas *c);
bool screen_key(struct screen *s, struct key *ret); /* false: there is none now */
int screen_fd(const struct screen *s);              /* readable when there may be a key, or another size */
void screen_suspend(struct screen *s);              /* until this process is continued */

#endif
