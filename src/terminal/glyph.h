/* SPDX-License-Identifier: Apache-2.0 */
/* One character as it may be shown on a terminal, no matter who wrote it. */
#ifndef TERMINAL_GLYPH_H
#define TERMINAL_GLYPH_H

#include "base/buf.h"

struct glyph {
    size_t len;      /* bytes it takes in the source; 0: they are cut off, more must come */
    struct str show; /* in the source, or fixed text where the source must not be shown */
    int width;       /* columns: 0, 1 or 2 */
};

/*
 * The first character of `s`, which is not empty. Line ends and tabs are the caller's: here they are controls like any
 * other. `last`: no more bytes come.
 */
struct glyph glyph_next(struct str s, bool last);

/* Appends the character as JSON writes one that it escapes: \u202e, or two of them. */
void glyph_escape(struct buf *out, uint32_t c);

/* Appends JSON as a terminal may get it: what must not reach one is escaped. Controls below 0x20 are so already in JSON. */
void glyph_clean_json(struct buf *out, struct str json);

/* Appends the text cleaned; line ends stay, tabs become blanks, CR goes. */
void glyph_clean(struct buf *out, struct str text);

/* Appends what fits of one line, cleaned, with "…" where it was cut; a line end is a blank. Returns the columns used. */
int glyph_fit(struct buf *out, struct str text, int columns);

/* The same of a name or a title, which people distinguish by sight: what nobody would see is shown as "�". */
int name_fit(struct buf *out, struct str text, int columns);
int text_columns(struct str text); /* that all of it takes so */

#endif
