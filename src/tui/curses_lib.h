/* SPDX-License-Identifier: Apache-2.0 */
/* ncurses, loaded when a screen opens. Its functions by the names that they have there. It has macros of common names: one file includes this. */
#ifndef TUI_CURSES_LIB_H
#define TUI_CURSES_LIB_H

#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include <curses.h>

#include "base/err.h"

struct curses {
    __typeof__(&newterm) newterm;
    __typeof__(&delscreen) delscreen;
    __typeof__(&endwin) endwin;
    __typeof__(&newwin) newwin;
    __typeof__(&delwin) delwin;
    __typeof__(&wresize) wresize;
    __typeof__(&resizeterm) resizeterm;
    __typeof__(&raw) raw;
    __typeof__(&noecho) noecho;
    __typeof__(&nonl) nonl;
    __typeof__(&keypad) keypad;
    __typeof__(&meta) meta;
    __typeof__(&nodelay) nodelay;
    __typeof__(&set_escdelay) set_escdelay;
    __typeof__(&define_key) define_key;
    __typeof__(&wget_wch) wget_wch;
    __typeof__(&mousemask) mousemask;
    __typeof__(&mouseinterval) mouseinterval;
    __typeof__(&getmouse) getmouse;
    __typeof__(&has_colors) has_colors;
    __typeof__(&start_color) start_color;
    __typeof__(&use_default_colors) use_default_colors;
    __typeof__(&init_pair) init_pair;
    __typeof__(&curs_set) curs_set;
    __typeof__(&wmove) wmove;
    __typeof__(&wattr_set) wattr_set;
    __typeof__(&waddnstr) waddnstr;
    __typeof__(&wnoutrefresh) wnoutrefresh;
    __typeof__(&doupdate) doupdate;
    __typeof__(&clearok) clearok;
    __typeof__(&werase) werase;
};
extern struct curses curses;

enum tide_code curses_load(struct tide_err *err) MUST_CHECK;

#endif
