/* SPDX-License-Identifier: Apache-2.0 */
/* Styled text that flows into lines: words are kept whole, continued lines are indented, nothing is drawn twice. */
#ifndef TERMINAL_TEXT_FLOW_H
#define TERMINAL_TEXT_FLOW_H

#include "terminal/glyph.h"

enum style {
    STYLE_BOLD = 1,
    STYLE_DIM = 2,
    STYLE_ITALIC = 4,
    STYLE_UNDERLINE = 8,
    STYLE_STRIKE = 16,
    STYLE_CODE = 32,
};

#define FLOW_WORD 128 /* characters; a longer word is cut */

/* What stands before a line of text and before the lines it continues in. */
struct flow_prefix {
    char first[96], hang[96];
    int width; /* the same for both */
    unsigned style;
};

struct text_flow {
    int columns, column;
    bool monochrome; /* what has a colour is bold instead */
    bool begun;      /* the first prefix of this line has been drawn */
    bool blank;      /* the line above is an empty one */
    unsigned style;
    struct flow_prefix prefix;
    int gap; /* blanks before the word */
    unsigned gap_style;
    struct cell {
        char text[4];
        uint8_t len, style, width;
    } word[FLOW_WORD];
    int n, width; /* of the word that is gathered */
};

void flow_init(struct text_flow *f, int columns);
void flow_prefix(struct text_flow *f, const struct flow_prefix *prefix); /* of the line that begins */
void flow_glyph(struct text_flow *f, struct buf *out, struct glyph g, unsigned style);
void flow_text(struct text_flow *f, struct buf *out, struct str text, unsigned style); /* cleaned; blanks may break */
void flow_space(struct text_flow *f, struct buf *out, unsigned style);
void flow_verbatim(struct text_flow *f, struct buf *out, struct glyph g, unsigned style); /* never wrapped, at once */
void flow_end_line(struct text_flow *f, struct buf *out);

/* Something else is to be drawn now: a new line, unless one is beginning. The word that is gathered stays for later. */
void flow_break(struct text_flow *f, struct buf *out);

#endif
