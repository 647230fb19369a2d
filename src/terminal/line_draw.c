/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are broken here and never by the terminal: the last column stays free, so that the cursor has a place behind a full
 * row and no terminal's way of wrapping matters. All of it is drawn again at every change, in one write: it is small, and
 * the terminal cannot show a half of it. When the window has become narrower the terminal has broken the old rows anew;
 * from their widths it is known how far up the first of them stands now.
 */
#include "terminal/line_draw.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "terminal/glyph.h"

#define DRAW_MAX ((size_t)8 << 20)
#define TAB 4

/* One pass over the text: counts rows, and draws those from `top` on when there is an `out`. */
struct pass {
    struct buf *out;
    int *widths;
    int width, hang; /* columns of a row; those that rows below the first are indented by */
    int top, height;
    int row, column;
    int at_row, at_column; /* of the cursor */
};

void line_screen_write(const struct line_screen *s, struct str text)
{
    fd_write(s->fd, text);
}

static bool is_seen(const struct pass *p)
{
    return p->out && p->row >= p->top && p->row < p->top + p->height;
}

static void put_cell(struct pass *p, struct str show, int width)
{
    if (is_seen(p))
        buf_add_str(p->out, show);
    p->column += width;
    if (is_seen(p))
        p->widths[p->row - p->top] = p->column;
}

static void new_row(struct pass *p)
{
    if (is_seen(p) && p->row + 1 < p->top + p->height)
        buf_add_str(p->out, STR("\033[K\r\n"));
    p->row++;
    p->column = 0;
    for (int i = 0; i < p->hang; i++)
        put_cell(p, STR(" "), 1);
}

static void put_glyph(struct pass *p, struct str rest, struct glyph *ret)
{
    struct glyph g = glyph_next(rest, true);

    if (rest.ptr[0] == '\n') {
        new_row(p);
        g.len = 1;
    } else {
        if (rest.ptr[0] == '\t')
            g = (struct glyph){1, {"    ", (size_t)(TAB - p->column % TAB)}, TAB - p->column % TAB};
        if (p->column + g.width > p->width)
            new_row(p);
        put_cell(p, g.show, g.width);
    }
    *ret = g;
}

static void pass_over(struct pass *p, struct str text, size_t at)
{
    struct glyph g;

    for (size_t i = 0; i <= text.len; i += g.len) {
        if (i == at) {
            p->at_row = p->row;
            p->at_column = p->column;
        }
        if (i == text.len)
            break;
        put_glyph(p, (struct str){text.ptr + i, text.len - i}, &g);
    }
}

/* One that is wider than the window takes several rows. */
static void put_prompt(struct pass *p, const char *prompt, bool color)
{
    struct str s = str_from(prompt);
    struct glyph g;

    if (color)
        put_cell(p, STR("\033[1m\033[36m"), 0);
    for (; s.len > 0; s = (struct str){s.ptr + g.len, s.len - g.len})
        put_glyph(p, s, &g);
    if (color)
        put_cell(p, STR("\033[0m"), 0);
    p->hang = p->row == 0 && p->column < p->width / 3 ? p->column : 2;
}

/* To where the first row drawn stands now. */
static void go_up(struct line_screen *s, struct buf *out, int columns)
{
    int up = s->row;

    if (columns < s->columns) {
        up = s->column / columns;
        for (int i = 0; i < s->row && i < SCREEN_ROWS; i++)
            up += s->widths[i] > 0 ? (s->widths[i] + columns - 1) / columns : 1;
    }
    if (up > 0)
        buf_addf(out, "\033[%dA", up);
    buf_add_char(out, '\r');
}

static void size_of(const struct line_screen *s, int *ret_columns, int *ret_rows)
{
    struct winsize size = {0};

    ioctl(s->fd, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col > 0 ? size.ws_col : 80;
    *ret_rows = size.ws_row > 0 ? size.ws_row : 24;
}

/* The rows that are shown always hold the cursor; they move no more than they must. */
static int choose_top(const struct line_screen *s, const struct pass *p, int height)
{
    int top = s->top;

    top = p->at_row >= top + height ? p->at_row - height + 1 : top;
    top = p->at_row < top ? p->at_row : top;
    return p->row + 1 - top < height ? (p->row + 1 > height ? p->row + 1 - height : 0) : top;
}

static void end_draw(struct line_screen *s, const struct pass *p, struct buf *out)
{
    int last = p->row - p->top < p->height ? p->row - p->top : p->height - 1;

    buf_add_str(out, STR("\033[K\033[J"));
    s->rows = last + 1;
    s->top = p->top;
    s->row = p->at_row - p->top;
    s->column = p->at_column;
    if (last > s->row)
        buf_addf(out, "\033[%dA", last - s->row);
    buf_add_char(out, '\r');
    if (s->column > 0)
        buf_addf(out, "\033[%dC", s->column);
}

void line_draw(struct line_screen *s, const char *prompt, struct str text, size_t at)
{
    AUTO(buf_done) struct buf out = BUF_INIT(DRAW_MAX);
    int columns, rows;
    struct pass p = {.out = NULL};

    size_of(s, &columns, &rows);
    rows = rows < SCREEN_ROWS ? rows : SCREEN_ROWS;
    p.width = columns > 4 ? columns - 1 : 4;
    put_prompt(&p, prompt, s->color);
    pass_over(&p, text, at);
    go_up(s, &out, columns);
    if (s->rows > 0 && columns != s->columns)
        buf_add_str(&out, STR("\033[J"));
    p = (struct pass){&out, s->widths, p.width, 0, choose_top(s, &p, rows), rows, 0, 0, 0, 0};
    put_prompt(&p, prompt, s->color);
    pass_over(&p, text, at);
    s->columns = columns;
    end_draw(s, &p, &out);
    line_screen_write(s, buf_view(&out));
}

void line_screen_erase(struct line_screen *s)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);
    int columns, rows;

    if (s->rows == 0)
        return;
    size_of(s, &columns, &rows);
    go_up(s, &out, columns);
    buf_add_str(&out, STR("\033[J"));
    line_screen_write(s, buf_view(&out));
    s->rows = s->row = s->column = s->top = 0;
}

void line_screen_leave(struct line_screen *s)
{
    AUTO(buf_done) struct buf out = BUF_INIT(4096);

    for (int i = s->row; i < s->rows; i++)
        buf_add_str(&out, STR("\r\n"));
    line_screen_write(s, buf_view(&out));
    s->rows = s->row = s->column = s->top = 0;
}
