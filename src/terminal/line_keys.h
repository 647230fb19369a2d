/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a terminal to what they mean. */
#ifndef TERMINAL_LINE_KEYS_H
#define TERMINAL_LINE_KEYS_H

#include "terminal/line_text.h"

/* What the editor does itself; the rest is done to the text. */
enum line_command {
    KEY_NONE, /* nothing, but the bytes are used up */
    KEY_TEXT, /* the bytes are text */
    KEY_EDIT, /* call `edit` */
    KEY_ENTER,
    KEY_INTERRUPT,
    KEY_END, /* Ctrl-D */
    KEY_UP,
    KEY_DOWN,
    KEY_SEARCH,
    KEY_COMPLETE,
    KEY_CLEAR_SCREEN,
    KEY_SUSPEND,
    KEY_ESCAPE,
    KEY_PASTE, /* what follows, up to LINE_PASTE_END, is text */
};

struct line_key {
    enum line_command command;
    void (*edit)(struct line_text *t);
    size_t len; /* bytes used up; 0: more must come */
};

#define LINE_PASTE_END STR("\033[201~")

/* `last`: nothing more came for a moment, so what is there is all there is. */
struct line_key line_key_next(struct str bytes, bool last);

#endif
