/* SPDX-License-Identifier: Apache-2.0 */
/* What a person did: a key, or something with the mouse. */
#ifndef TUI_KEY_H
#define TUI_KEY_H

#include <stdbool.h>

#include "base/str.h"

enum key_what {
    KEY_IS_NONE,
    KEY_IS_TEXT, /* a character: `text` */
    KEY_IS_UP,
    KEY_IS_DOWN,
    KEY_IS_LEFT,
    KEY_IS_RIGHT,
    KEY_IS_PAGE_UP,
    KEY_IS_PAGE_DOWN,
    KEY_IS_HOME,
    KEY_IS_END,
    KEY_IS_ENTER,
    KEY_IS_ESCAPE,
    KEY_IS_TAB,
    KEY_IS_BACK_TAB,
    KEY_IS_ERASE,   /* to the left */
    KEY_IS_DELETE,  /* to the right */
    KEY_IS_CONTROL, /* with Ctrl: `text` is the letter */
    KEY_IS_CLICK,   /* at `row`, `col` */
    KEY_IS_DOUBLE_CLICK,
    KEY_IS_WHEEL_UP,
    KEY_IS_WHEEL_DOWN,
    KEY_IS_PASTE_BEGIN, /* what comes until the end of it is text, whatever it is */
    KEY_IS_PASTE_END,
};

struct key {
    enum key_what what;
    char text[8];
    int row, col;
};

/* Whether it is this character. */
static inline bool key_is(const struct key *k, char c)
{
    return k->what == KEY_IS_TEXT && k->text[0] == c && !k->text[1];
}

static inline bool key_is_control(const struct key *k, char c)
{
    return k->what == KEY_IS_CONTROL && k->text[0] == c;
}

#endif
