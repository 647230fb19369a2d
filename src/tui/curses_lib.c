/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/curses_lib.h"

#include "net/library.h"

struct curses curses;

static const struct library_symbol symbols[] = {
#define SYMBOL(name) LIBRARY_SYMBOL(curses, "", name)
    SYMBOL(newterm),     SYMBOL(delscreen),
    SYMBOL(endwin),      SYMBOL(newwin),
    SYMBOL(delwin),      SYMBOL(wresize),
    SYMBOL(resizeterm),  SYMBOL(raw),
    SYMBOL(noecho),      SYMBOL(nonl),
    SYMBOL(keypad),      SYMBOL(meta),
    SYMBOL(nodelay),     SYMBOL(set_escdelay),
    SYMBOL(define_key),  SYMBOL(wget_wch),
    SYMBOL(mousemask),   SYMBOL(mouseinterval),
    SYMBOL(getmouse),    SYMBOL(has_colors),
    SYMBOL(start_color), SYMBOL(use_default_colors),
    SYMBOL(init_pair),   SYMBOL(curs_set),
    SYMBOL(wmove),       SYMBOL(wattr_set),
    SYMBOL(waddnstr),    SYMBOL(wnoutrefresh),
    SYMBOL(doupdate),    SYMBOL(clearok),
    SYMBOL(werase),
#undef SYMBOL
};

static struct library library = {
    .name = "libncursesw.so.6",
    .package = "libncursesw6",
    .what = "there is no full screen",
    .symbols = symbols,
    .n = sizeof symbols / sizeof symbols[0],
    .mu = PTHREAD_MUTEX_INITIALIZER,
};

enum tide_code curses_load(struct tide_err *err)
{
    return library_load(&library, err);
}
