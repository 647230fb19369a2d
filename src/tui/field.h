/* SPDX-License-Identifier: Apache-2.0 */
/* One line that is typed into; what does not fit is scrolled. Pure. */
#ifndef TUI_FIELD_H
#define TUI_FIELD_H

#include "terminal/line_text.h"
#include "tui/canvas.h"
#include "tui/key.h"

struct field {
    struct line_text text;
    bool secret; /* what is typed is not shown */
};

void field_init(struct field *f);
void field_done(struct field *f); /* wipes it */
void field_set(struct field *f, const char *text);
bool field_key(struct field *f, const struct key *k); /* whether the key was for it */
void field_draw(const struct field *f, struct canvas *c, int row, int col, int columns, bool cursor);

#endif
