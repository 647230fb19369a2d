/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part of the list that fits into the window is drawn over itself with every key. No row is as wide as the window, so each
 * takes one line, and the cursor finds back to the first by counting them.
 */
#include "terminal/picker.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal/output.h"
#include "terminal/glyph.h"

#define SHOWN_MAX 15

struct picker {
    int out;
    bool color;
    const char *const *rows;
    size_t n, at, top, drawn; /* drawn: lines that stand there */
};

static size_t shown_rows(const struct picker *p)
{
    struct winsize size;
    size_t room = ioctl(p->out, TIOCGWINSZ, &size) == 0 && size.ws_row > 3 ? size.ws_row - 2u : SHOWN_MAX;

    room = room < SHOWN_MAX ? room : SHOWN_MAX;
    return p->n < room ? p->n : room;
}

static void take_away(const struct picker *p, struct buf *out)
{
    if (p->drawn)
        buf_addf(out, "\033[%zuA\r\033[J", p->drawn);
}

static void draw_picker(struct picker *p)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);
    size_t shown = shown_rows(p);
    int width = terminal_columns(p->out) - 4;

    p->top = p->at < p->top ? p->at : p->at >= p->top + shown ? p->at - shown + 1 : p->top;
    take_away(p, &out);
    for (size_t i = p->top; i < p->top + shown; i++) {
        bool here = i == p->at;

        buf_addf(&out, "%s%s ", here && p->color ? "\033[1m" : "", here ? "›" : " ");
        name_fit(&out, str_from(p->rows[i]), width > 8 ? width : 8);
        buf_addf(&out, "%s\n", here && p->color ? "\033[0m" : "");
    }
    buf_addf(&out, "%s%zu of %zu%s\n", p->color ? "\033[2m" : "", p->at + 1, p->n, p->color ? "\033[0m" : "");
    p->drawn = shown + 1;
    (void)!write(p->out, out.ptr, out.len);
}

size_t pick_row(struct line_edit *e, int out, bool color, const char *const *rows, size_t n)
{
    AUTO(buf_done) struct buf text = BUF_INIT(LINE_MAX_BYTES), last = BUF_INIT(256);
    struct picker p = {.out = out, .color = color, .rows = rows, .n = n};
    enum line_command key = KEY_NONE;
    bool leave = n == 0;

    while (!leave && key != KEY_ENTER) {
        draw_picker(&p);
        if (line_edit_key(e, &key, &text) != LINE_OK || key == KEY_ESCAPE || key == KEY_INTERRUPT || key == KEY_END ||
            (key == KEY_TEXT && str_eq(buf_view(&text), STR("q"))))
            leave = true;
        else if (key == KEY_UP)
            p.at -= p.at > 0;
        else if (key == KEY_DOWN)
            p.at += p.at + 1 < n;
        else if (key == KEY_SUSPEND)
            p.drawn = 0; /* what was drawn is not where it was */
    }
    take_away(&p, &last);
    (void)!write(out, buf_view(&last).ptr, last.len);
    return leave ? n : p.at;
}
