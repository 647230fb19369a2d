/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word is drawn when it is whole, because only then it is known whether it still fits. So nothing on the screen is
 * ever taken back, and the bytes that are drawn depend on the text alone, not on the pieces it came in.
 */
#include "terminal/text_flow.h"

#define COLUMNS_MIN 8

void flow_init(struct text_flow *f, int columns)
{
    *f = (struct text_flow){.columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns};
}

static void set_style(struct text_flow *f, struct buf *out, unsigned style)
{
    static const char *const codes[] = {"1", "2", "3", "4", "9", "36"}; /* in the order of enum style */

    if (style == f->style)
        return;
    if (f->style)
        buf_add_str(out, STR("\033[0m"));
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (style & 1u << i)
            buf_addf(out, "\033[%sm", f->monochrome && 1u << i == STYLE_CODE ? "1" : codes[i]);
    f->style = style;
}

void flow_prefix(struct text_flow *f, const struct flow_prefix *prefix)
{
    f->prefix = *prefix;
    f->begun = false;
}

static void draw_prefix(struct text_flow *f, struct buf *out)
{
    const char *text = f->begun ? f->prefix.hang : f->prefix.first;

    if (f->column == 0 && *text) {
        set_style(f, out, f->prefix.style);
        buf_add_str(out, str_from(text));
        f->column = f->prefix.width;
    }
    f->begun = true;
}

static void new_line(struct text_flow *f, struct buf *out)
{
    set_style(f, out, 0);
    buf_add_char(out, '\n');
    f->column = 0;
}

static void draw_word(struct text_flow *f, struct buf *out)
{
    if (f->n == 0)
        return;
    if (f->column > f->prefix.width && f->column + f->gap + f->width > f->columns) {
        new_line(f, out);
        f->gap = 0;
    }
    draw_prefix(f, out);
    if (f->column > f->prefix.width && f->gap) {
        set_style(f, out, f->gap_style);
        for (int i = 0; i < f->gap; i++)
            buf_add_char(out, ' ');
        f->column += f->gap;
    }
    for (int i = 0; i < f->n; i++) {
        set_style(f, out, f->word[i].style);
        buf_add(out, f->word[i].text, f->word[i].len);
        f->column += f->word[i].width;
    }
    f->gap = f->n = f->width = 0;
}

/* A line may break before and behind a wide character; a word as long as a line is cut at its end. */
void flow_glyph(struct text_flow *f, struct buf *out, struct glyph g, unsigned style)
{
    struct cell *c;

    if (g.width == 2 || f->n == FLOW_WORD || f->prefix.width + f->width + g.width > f->columns)
        draw_word(f, out);
    c = &f->word[f->n++];
    *c = (struct cell){.len = (uint8_t)g.show.len, .style = (uint8_t)style, .width = (uint8_t)g.width};
    memcpy(c->text, g.show.ptr, g.show.len);
    f->width += g.width;
    if (g.width == 2)
        draw_word(f, out);
}

void flow_space(struct text_flow *f, struct buf *out, unsigned style)
{
    draw_word(f, out);
    f->gap += f->gap < f->columns;
    f->gap_style = style;
}

void flow_text(struct text_flow *f, struct buf *out, struct str text, unsigned style)
{
    while (text.len > 0) {
        struct glyph g = {1, {text.ptr, 1}, 1};

        if (text.ptr[0] == ' ' || text.ptr[0] == '\t')
            flow_space(f, out, style);
        else if (text.ptr[0] != '\r')
            flow_glyph(f, out, g = glyph_next(text, true), style);
        text = (struct str){text.ptr + g.len, text.len - g.len};
    }
}

void flow_verbatim(struct text_flow *f, struct buf *out, struct glyph g, unsigned style)
{
    draw_prefix(f, out);
    set_style(f, out, style);
    buf_add_str(out, g.show);
    f->column += g.width;
}

/* Of a line without text: no blanks at its end. */
static void draw_bare_prefix(struct text_flow *f, struct buf *out)
{
    size_t n = strlen(f->prefix.first);

    while (n > 0 && f->prefix.first[n - 1] == ' ')
        n--;
    if (n == 0)
        return;
    set_style(f, out, f->prefix.style);
    buf_add(out, f->prefix.first, n);
}

void flow_end_line(struct text_flow *f, struct buf *out)
{
    draw_word(f, out);
    if (!f->begun && f->column == 0)
        draw_bare_prefix(f, out);
    f->blank = f->column == 0 && !f->begun;
    new_line(f, out);
    f->gap = 0;
    f->begun = false;
    f->prefix = (struct flow_prefix){.width = 0};
}

void flow_break(struct text_flow *f, struct buf *out)
{
    if (f->column > 0)
        new_line(f, out);
    f->gap = 0;
}
