/* SPDX-License-Identifier: Apache-2.0 */
/* The chosen line is always in the window, and the window always full while there are lines to fill it. */
#include "tui/scroll.h"

#define WHEEL 3

static int within(int value, int low, int high)
{
    return value > high ? (high < low ? low : high) : value < low ? low : value;
}

static void settle_scroll(struct scroll *s)
{
    s->at = within(s->at, 0, s->n - 1);
    if (s->at < s->top)
        s->top = s->at;
    if (s->at >= s->top + s->height)
        s->top = s->at - s->height + 1;
    s->top = within(s->top, 0, s->n - s->height);
}

void scroll_fit(struct scroll *s, int n, int height)
{
    s->n = n;
    s->height = height > 0 ? height : 1;
    if (s->follow)
        s->at = n - 1;
    settle_scroll(s);
}

void scroll_to(struct scroll *s, int line)
{
    s->at = line;
    s->follow = false;
    settle_scroll(s);
}

static void move_by(struct scroll *s, int lines)
{
    s->at = within(s->at + lines, 0, s->n - 1);
    s->follow = s->n > 0 && lines > 0 && s->follow;
    settle_scroll(s);
}

bool scroll_key(struct scroll *s, const struct key *k)
{
    int page = s->height > 1 ? s->height - 1 : 1;

    if (k->what == KEY_IS_UP || key_is(k, 'k'))
        move_by(s, -1);
    else if (k->what == KEY_IS_DOWN || key_is(k, 'j'))
        move_by(s, 1);
    else if (k->what == KEY_IS_PAGE_UP || key_is_control(k, 'b'))
        move_by(s, -page);
    else if (k->what == KEY_IS_PAGE_DOWN || key_is_control(k, 'f') || key_is(k, ' '))
        move_by(s, page);
    else if (k->what == KEY_IS_HOME || key_is(k, 'g'))
        scroll_to(s, 0);
    else if (k->what == KEY_IS_END || key_is(k, 'G'))
        scroll_to(s, s->n - 1);
    else if (k->what == KEY_IS_WHEEL_UP)
        move_by(s, -WHEEL);
    else if (k->what == KEY_IS_WHEEL_DOWN)
        move_by(s, WHEEL);
    else
        return false;
    return true;
}

bool scroll_read_key(struct scroll *s, const struct key *k)
{
    bool up = k->what == KEY_IS_UP || k->what == KEY_IS_PAGE_UP || k->what == KEY_IS_WHEEL_UP || key_is(k, 'k') ||
              key_is_control(k, 'b');

    s->at = up ? s->top : s->top + s->height - 1;
    return scroll_key(s, k);
}

int scroll_line_at(const struct scroll *s, int row)
{
    int line = s->top + row;

    return row >= 0 && row < s->height && line < s->n ? line : -1;
}
