/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard error goes into memory while the screen is up, also that of processes that are started from here, and is printed when the terminal
 * is as it was. A cell that is not ASCII is drawn at a place of its own: where the terminal and we disagree on its width, the rest of the line
 * stays where it belongs.
 */
#include "tui/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "terminal/glyph.h"
#include "tui/curses_lib.h"

#define DOUBLE_MS 400
#define ESCAPE_MS 25
#define SAID_MAX 8192
#define PASTE_BEGINS 0x7001
#define PASTE_ENDS 0x7002

struct screen {
    SCREEN *screen;
    WINDOW *window;
    FILE *in, *out;
    bool color;
    bool resized;
    int said, standard_error; /* where standard error goes, and what it was */
    int64_t clicked_ms;
    int clicked_row, clicked_col;
    struct sigaction winch_before;
};

/* ---- what happens ---- */

static volatile sig_atomic_t winched;

static void on_winch(int number)
{
    (void)number;
    winched = 1;
}

bool screen_has_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);

        if (value && value[0])
            return strcasestr(value, "UTF-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* Containers often lack the locale that the environment names. */
static void set_locale(bool utf8)
{
    if (utf8 && !setlocale(LC_CTYPE, "C.UTF-8") && !setlocale(LC_CTYPE, "C.utf8") && !setlocale(LC_CTYPE, ""))
        setlocale(LC_CTYPE, "C");
}

/* ---- standard error ---- */

static void take_standard_error(struct screen *s)
{
    s->standard_error = dup(STDERR_FILENO);
    s->said = memfd_create("tidemark-said", MFD_CLOEXEC);
    if (s->standard_error < 0 || s->said < 0 || dup2(s->said, STDERR_FILENO) < 0)
        return;
    (void)fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
}

static void give_standard_error(struct screen *s)
{
    AUTO(buf_done) struct buf clean = BUF_INIT((size_t)1 << 20);
    char text[SAID_MAX];
    off_t end = s->said >= 0 ? lseek(s->said, 0, SEEK_END) : 0;
    ssize_t n = 0;

    if (s->standard_error < 0)
        return;
    fflush(stderr);
    dup2(s->standard_error, STDERR_FILENO);
    close(s->standard_error);
    if (end > 0)
        n = pread(s->said, text, sizeof text, end > SAID_MAX ? end - SAID_MAX : 0);
    if (n > 0)
        glyph_clean(&clean, (struct str){text, (size_t)n});
    if (clean.len)
        (void)!fd_write(STDERR_FILENO, buf_view(&clean));
    if (s->said >= 0)
        close(s->said);
}

/* ---- opening ---- */

enum pair { PAIR_GREEN = 1, PAIR_CYAN, PAIR_YELLOW, PAIR_RED, PAIR_BLUE };

static void set_colors(struct screen *s)
{
    s->color = s->color && curses.has_colors();
    if (!s->color)
        return;
    curses.start_color();
    curses.use_default_colors();
    curses.init_pair(PAIR_GREEN, COLOR_GREEN, -1);
    curses.init_pair(PAIR_CYAN, COLOR_CYAN, -1);
    curses.init_pair(PAIR_YELLOW, COLOR_YELLOW, -1);
    curses.init_pair(PAIR_RED, COLOR_RED, -1);
    curses.init_pair(PAIR_BLUE, COLOR_BLUE, -1);
}

static void set_input(struct screen *s)
{
    curses.raw();
    curses.noecho();
    curses.nonl();
    curses.keypad(s->window, TRUE);
    curses.nodelay(s->window, TRUE);
    curses.set_escdelay(ESCAPE_MS);
    curses.define_key("\033[200~", PASTE_BEGINS);
    curses.define_key("\033[201~", PASTE_ENDS);
    curses.mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    curses.mouseinterval(0);
}

static void mark_pastes(const struct screen *s, bool on)
{
    fputs(on ? "\033[?2004h" : "\033[?2004l", s->out);
    fflush(s->out);
}

static enum tide_code open_terminal(struct screen *s, struct tide_err *err)
{
    const char *term = getenv("TERM");

    s->in = fdopen(dup(STDIN_FILENO), "r");
    s->out = fdopen(dup(STDOUT_FILENO), "w");
    if (!s->in || !s->out)
        return tide_fail_errno(err, errno, "open the terminal");
    s->screen = curses.newterm(NULL, s->out, s->in);
    if (!s->screen)
        return tide_fail(err, TIDE_INVALID, "the terminal '%.40s' (TERM) cannot be drawn on", term ? term : "");
    s->window = curses.newwin(0, 0, 0, 0);
    if (!s->window)
        return tide_fail(err, TIDE_INVALID, "the terminal cannot be drawn on");
    return TIDE_OK;
}

enum tide_code screen_open(const struct screen_options *opt, struct screen **ret, struct tide_err *err)
{
    struct sigaction winch = {.sa_handler = on_winch};
    struct screen *s;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return tide_fail(err, TIDE_INVALID, "a full screen needs a terminal, as standard input and as standard output");
    if (curses_load(err))
        return err->code;
    s = mem_zero(sizeof *s);
    s->color = opt->color;
    s->said = s->standard_error = -1;
    set_locale(opt->utf8);
    sigaction(SIGWINCH, &winch, &s->winch_before);
    if (open_terminal(s, err)) {
        screen_close(s);
        return err->code;
    }
    set_colors(s);
    set_input(s);
    mark_pastes(s, true);
    take_standard_error(s);
    *ret = s;
    return TIDE_OK;
}

void screen_close(struct screen *s)
{
    if (!s)
        return;
    if (s->window) {
        mark_pastes(s, false);
        curses.delwin(s->window);
    }
    if (s->screen) {
        curses.endwin();
        curses.delscreen(s->screen);
    }
    sigaction(SIGWINCH, &s->winch_before, NULL);
    if (s->in)
        fclose(s->in);
    if (s->out)
        fclose(s->out);
    give_standard_error(s);
    free(s);
}

void screen_suspend(struct screen *s)
{
    mark_pastes(s, false);
    curses.endwin();
    raise(SIGTSTP);
    mark_pastes(s, true);
    winched = 1;
}

/* ---- its size ---- */

void screen_size(struct screen *s, int *ret_rows, int *ret_cols)
{
    struct winsize size = {0};

    if (ioctl(fileno(s->out), TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    *ret_rows = size.ws_row;
    *ret_cols = size.ws_col;
}

bool screen_resized(struct screen *s)
{
    int rows, cols;

    if (!winched)
        return false;
    winched = 0;
    screen_size(s, &rows, &cols);
    curses.resizeterm(rows, cols);
    curses.wresize(s->window, rows, cols);
    curses.clearok(s->window, TRUE);
    return true;
}

/* ---- drawing ---- */

struct look {
    attr_t attributes;
    short pair;
};

/* Without colours the attributes alone distinguish what must be distinguished. */
static struct look look_of(const struct screen *s, const struct cell *cell)
{
    static const struct look colored[INKS] = {
        [INK_PLAIN] = {A_NORMAL, 0},
        [INK_DIM] = {A_DIM, 0},
        [INK_BOLD] = {A_BOLD, 0},
        [INK_ACCENT] = {A_BOLD, PAIR_BLUE},
        [INK_RUNNING] = {A_NORMAL, PAIR_GREEN},
        [INK_WAITING] = {A_BOLD, PAIR_CYAN},
        [INK_WARN] = {A_NORMAL, PAIR_YELLOW},
        [INK_BAD] = {A_NORMAL, PAIR_RED},
        [INK_GOOD] = {A_NORMAL, PAIR_GREEN},
        [INK_ADDED] = {A_NORMAL, PAIR_GREEN},
        [INK_REMOVED] = {A_NORMAL, PAIR_RED},
    };
    static const attr_t plain[INKS] = {
        [INK_DIM] = A_DIM,   [INK_BOLD] = A_BOLD, [INK_ACCENT] = A_BOLD,       [INK_WAITING] = A_BOLD,
        [INK_WARN] = A_BOLD, [INK_BAD] = A_BOLD,  [INK_REMOVED] = A_UNDERLINE, [INK_RUNNING] = A_BOLD,
    };
    struct look look = s->color ? colored[cell->ink] : (struct look){plain[cell->ink], 0};

    if (cell->chosen) /* one colour for all of it: else each word would have a background of its own */
        look = (struct look){A_REVERSE | (look.attributes & A_BOLD), 0};
    return look;
}

static bool is_ascii(const struct cell *cell)
{
    return cell->len == 1 && (unsigned char)cell->text[0] < 0x80;
}

static bool same_look(const struct cell *a, const struct cell *b)
{
    return a->ink == b->ink && a->chosen == b->chosen;
}

static void show_row(struct screen *s, const struct canvas *c, int row)
{
    const struct cell *cells = &c->cells[(size_t)row * (size_t)c->cols];
    char run[512];

    for (int col = 0; col < c->cols;) {
        struct look look = look_of(s, &cells[col]);
        int n = 0;

        curses.wmove(s->window, row, col);
        curses.wattr_set(s->window, look.attributes, look.pair, NULL);
        while (col + n < c->cols && n < (int)sizeof run && is_ascii(&cells[col + n]) &&
               same_look(&cells[col], &cells[col + n])) {
            run[n] = cells[col + n].text[0];
            n++;
        }
        if (n)
            curses.waddnstr(s->window, run, n);
        else if (cells[col].len)
            curses.waddnstr(s->window, cells[col].text, cells[col].len);
        col += n ? n : 1;
    }
}

void screen_show(struct screen *s, const struct canvas *c)
{
    curses.werase(s->window);
    for (int row = 0; row < c->rows; row++)
        show_row(s, c, row);
    curses.curs_set(c->cursor_row >= 0);
    if (c->cursor_row >= 0)
        curses.wmove(s->window, c->cursor_row, c->cursor_col);
    curses.wnoutrefresh(s->window);
    curses.doupdate();
}

/* ---- keys ---- */

int screen_fd(const struct screen *s)
{
    return fileno(s->in);
}

static bool take_mouse(struct screen *s, struct key *ret)
{
    int64_t now = monotonic_ms();
    MEVENT e;

    if (curses.getmouse(&e) != OK)
        return false;
    *ret = (struct key){.row = e.y, .col = e.x};
    if (e.bstate & BUTTON4_PRESSED) {
        ret->what = KEY_IS_WHEEL_UP;
    } else if (e.bstate & BUTTON5_PRESSED) {
        ret->what = KEY_IS_WHEEL_DOWN;
    } else {
        bool twice = now - s->clicked_ms < DOUBLE_MS && s->clicked_row == e.y && s->clicked_col == e.x;

        ret->what = twice ? KEY_IS_DOUBLE_CLICK : KEY_IS_CLICK;
        s->clicked_ms = twice ? 0 : now;
        s->clicked_row = e.y;
        s->clicked_col = e.x;
    }
    return true;
}

static const struct {
    wint_t code;
    enum key_what what;
} function_keys[] = {
    {KEY_UP, KEY_IS_UP},
    {KEY_DOWN, KEY_IS_DOWN},
    {KEY_LEFT, KEY_IS_LEFT},
    {KEY_RIGHT, KEY_IS_RIGHT},
    {KEY_PPAGE, KEY_IS_PAGE_UP},
    {KEY_NPAGE, KEY_IS_PAGE_DOWN},
    {KEY_HOME, KEY_IS_HOME},
    {KEY_END, KEY_IS_END},
    {KEY_ENTER, KEY_IS_ENTER},
    {KEY_BTAB, KEY_IS_BACK_TAB},
    {KEY_BACKSPACE, KEY_IS_ERASE},
    {KEY_DC, KEY_IS_DELETE},
    {PASTE_BEGINS, KEY_IS_PASTE_BEGIN},
    {PASTE_ENDS, KEY_IS_PASTE_END},
};

static bool take_function_key(struct screen *s, wint_t code, struct key *ret)
{
    if (code == KEY_MOUSE)
        return take_mouse(s, ret);
    for (size_t i = 0; i < sizeof function_keys / sizeof function_keys[0]; i++)
        if (function_keys[i].code == code) {
            *ret = (struct key){.what = function_keys[i].what};
            return true;
        }
    return false;
}

static void put_utf8(char out[8], uint32_t c)
{
    int n = 0;

    if (c < 0x80) {
        out[n++] = (char)c;
    } else if (c < 0x800) {
        out[n++] = (char)(0xc0 | c >> 6);
    } else if (c < 0x10000) {
        out[n++] = (char)(0xe0 | c >> 12);
        out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    } else {
        out[n++] = (char)(0xf0 | c >> 18);
        out[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        out[n++] = (char)(0x80 | (c >> 6 & 0x3f));
    }
    if (c >= 0x80)
        out[n++] = (char)(0x80 | (c & 0x3f));
    out[n] = '\0';
}

static void take_character(wint_t c, struct key *ret)
{
    *ret = (struct key){.what = KEY_IS_TEXT};
    if (c == '\r' || c == '\n')
        ret->what = KEY_IS_ENTER;
    else if (c == '\t')
        ret->what = KEY_IS_TAB;
    else if (c == 0x1b)
        ret->what = KEY_IS_ESCAPE;
    else if (c == 0x7f || c == 0x08)
        ret->what = KEY_IS_ERASE;
    else if (c < 0x20) {
        ret->what = KEY_IS_CONTROL;
        ret->text[0] = (char)(c + 'a' - 1);
    } else {
        put_utf8(ret->text, (uint32_t)c);
    }
}

bool screen_key(struct screen *s, struct key *ret)
{
    wint_t c = 0;
    int got;

    while ((got = curses.wget_wch(s->window, &c)) != ERR) {
        if (got != KEY_CODE_YES) {
            take_character(c, ret);
            return true;
        }
        if (take_function_key(s, c, ret))
            return true;
    }
    return false;
}
