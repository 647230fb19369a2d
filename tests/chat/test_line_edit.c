/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prompts typed at a pseudo-terminal: what the keys make of them, what stands on the screen, what is kept, and in which
 * state the terminal is left. A child reads the prompts; the test types, and looks at what is drawn.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#include "terminal/glyph.h"
#include "base/clock.h"
#include "terminal/line_edit.h"
#include "kit.h"

#define WAIT_MS 20000
#define ROWS_MAX 30
#define COLUMNS_MAX 100

/* ---- a screen, as far as the editor uses one ---- */

struct screen {
    int columns, rows, row, column;
    char cells[ROWS_MAX][COLUMNS_MAX][16];
};

static void screen_clear_from(struct screen *s, int row, int column)
{
    for (; row < s->rows; row++, column = 0)
        for (int i = column; i < s->columns; i++)
            s->cells[row][i][0] = '\0';
}

static void screen_down(struct screen *s)
{
    if (s->row < s->rows - 1) {
        s->row++;
        return;
    }
    memmove(s->cells[0], s->cells[1], sizeof(s->cells[0]) * (size_t)(s->rows - 1));
    screen_clear_from(s, s->rows - 1, 0);
}

static void screen_put(struct screen *s, struct glyph g)
{
    char *cell;
    int at = g.width ? s->column : s->column - 1;

    assert_true(at >= 0 && at + g.width <= s->columns); /* the editor never lets the terminal wrap */
    cell = s->cells[s->row][at];
    snprintf(g.width ? cell : cell + strlen(cell), 8, "%.*s", STR_ARG(g.show));
    if (g.width == 2)
        memcpy(s->cells[s->row][at + 1], "\001", 2);
    s->column += g.width;
}

static size_t screen_escape(struct screen *s, struct str bytes)
{
    size_t n = 2;
    int by;

    while (n < bytes.len && !(bytes.ptr[n] >= 0x40 && bytes.ptr[n] <= 0x7e))
        n++;
    if (n >= bytes.len)
        return 0;
    by = (int)strtol(bytes.ptr + 2, NULL, 10);
    if (bytes.ptr[n] == 'A')
        s->row -= by < s->row ? by : s->row;
    else if (bytes.ptr[n] == 'C')
        s->column += by;
    else if (bytes.ptr[n] == 'J' && by == 0)
        screen_clear_from(s, s->row, s->column);
    else if (bytes.ptr[n] == 'K')
        for (int i = s->column; i < s->columns; i++)
            s->cells[s->row][i][0] = '\0';
    return n + 1;
}

/* Returns the bytes it could use. */
static size_t screen_feed(struct screen *s, struct str bytes)
{
    size_t at = 0, n;

    for (; at < bytes.len; at += n) {
        struct str rest = {bytes.ptr + at, bytes.len - at};
        struct glyph g = glyph_next(rest, false);

        n = g.len;
        if (rest.ptr[0] == '\033')
            n = rest.len > 2 ? screen_escape(s, rest) : 0;
        else if (rest.ptr[0] == '\r')
            s->column = 0;
        else if (rest.ptr[0] == '\n')
            screen_down(s);
        else if (n > 0 && rest.ptr[0] != '\a')
            screen_put(s, g);
        if (n == 0)
            break;
    }
    return at;
}

static void screen_text(const struct screen *s, struct buf *out)
{
    for (int r = 0; r < s->rows; r++) {
        int last = s->columns;

        while (last > 0 && (!s->cells[r][last - 1][0] || s->cells[r][last - 1][0] == ' '))
            last--;
        for (int c = 0; c < last; c++)
            if (s->cells[r][c][0] != '\001')
                buf_add_str(out, str_from(s->cells[r][c][0] ? s->cells[r][c] : " "));
        buf_add_char(out, '\n');
    }
    while (out->len > 1 && out->ptr[out->len - 2] == '\n')
        out->len--;
}

/* ---- a desk: a terminal, and somebody who reads prompts at it ---- */

struct desk {
    int master, slave, results, wake;
    pid_t pid;
    struct termios before;
    struct buf seen; /* not yet on the screen */
    struct buf all;  /* everything since the last look */
    struct screen screen;
};

static void complete(void *arg, struct str before, struct str word, struct line_matches *m)
{
    static const char *const words[] = {"/help", "/resume", "/rollback", "@src/", "@日本.txt", "@日米.txt"};

    (void)arg;
    (void)before;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (str_starts(str_from(words[i]), word))
            line_match_add(m, str_from(words[i]));
}

static int wake_fd;
static const char *prompt = "> ";
static bool hushing; /* between prompts it works, until a byte says how it goes on: 'h' holds what was typed */

static bool wake(void *arg)
{
    char c = 0;

    (void)arg;
    if (read(wake_fd, &c, 1) == 1 && c == 'n')
        printf("a notice\n");
    fflush(stdout);
    return c != 'n';
}

static void work(struct line_edit *e)
{
    char how = 0;

    while (read(wake_fd, &how, 1) < 0 && errno == EINTR)
        ;
    if (how == 'h')
        line_edit_hold(e);
}

static void do_nothing(int sig)
{
    (void)sig;
}

static void read_prompts(int results, const char *history)
{
    struct line_config config = {.in = 0, .out = 1, .history = history, .complete = complete, .wake = wake};
    struct line_edit *e;
    struct buf text = BUF_INIT(2 << 20);
    enum line_result result;

    config.wake_fd = wake_fd;
    e = line_edit_new(&config);
    do {
        result = line_edit_read(e, prompt, &text);
        dprintf(results, "%d %zu\n", (int)result, text.len);
        for (size_t at = 0; at < text.len;) {
            ssize_t n = write(results, text.ptr + at, text.len - at);

            at += n > 0 ? (size_t)n : 0;
        }
        if (hushing && result == LINE_OK)
            work(e);
    } while (result != LINE_END);
    line_edit_free(e);
    buf_done(&text);
}

static const int ends[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};

static void be_reader(struct desk *d, const char *name, int results, const char *history)
{
    int fd;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(d->master);
    setsid();
    fd = open(name, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        signal(ends[i], SIG_DFL);
    if (hushing)
        signal(SIGINT, do_nothing);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setenv("TERM", "xterm", 1);
    read_prompts(results, history);
    _exit(0);
}

static void desk_open(struct desk *d, int columns, int rows, const char *history)
{
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    int results[2], wakes[2];

    *d = (struct desk){.seen = BUF_INIT(8 << 20), .all = BUF_INIT(8 << 20)};
    d->screen = (struct screen){.columns = columns, .rows = rows};
    d->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(d->master >= 0 && grantpt(d->master) == 0 && unlockpt(d->master) == 0);
    d->slave = open(ptsname(d->master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_int_equal(ioctl(d->slave, TIOCSWINSZ, &size), 0);
    assert_int_equal(tcgetattr(d->slave, &d->before), 0);
    assert_int_equal(pipe2(results, O_CLOEXEC), 0);
    assert_int_equal(pipe2(wakes, O_CLOEXEC), 0);
    wake_fd = wakes[0];
    d->pid = fork();
    if (d->pid == 0)
        be_reader(d, ptsname(d->master), results[1], history);
    close(results[1]);
    close(wakes[0]);
    d->results = results[0];
    d->wake = wakes[1];
}

static void hear(struct desk *d, int timeout_ms)
{
    char bytes[4096];
    size_t used;
    ssize_t n;

    if (poll(&(struct pollfd){.fd = d->master, .events = POLLIN}, 1, timeout_ms) <= 0)
        return;
    n = read(d->master, bytes, sizeof(bytes));
    if (n <= 0)
        return;
    buf_add(&d->seen, bytes, (size_t)n);
    buf_add(&d->all, bytes, (size_t)n);
    buf_cstr(&d->seen);
    used = screen_feed(&d->screen, buf_view(&d->seen));
    memmove(d->seen.ptr, d->seen.ptr + used, d->seen.len - used);
    d->seen.len -= used;
}

static void wait_for(struct desk *d, const char *bytes)
{
    for (int i = 0; i < WAIT_MS / 10; i++) {
        const char *at = d->all.len ? memmem(d->all.ptr, d->all.len, bytes, strlen(bytes)) : NULL;

        if (at) {
            size_t n = (size_t)(at - d->all.ptr) + strlen(bytes);

            memmove(d->all.ptr, d->all.ptr + n, d->all.len - n);
            d->all.len -= n;
            return;
        }
        hear(d, 10);
    }
    fail_msg("'%s' never came; seen: %s", bytes, buf_cstr(&d->all));
}

static void type(struct desk *d, struct str keys)
{
    while (keys.len > 0) {
        ssize_t n = write(d->master, keys.ptr, keys.len < 256 ? keys.len : 256);

        assert_true(n > 0);
        keys = (struct str){keys.ptr + n, keys.len - (size_t)n};
        hear(d, 0);
    }
}

static size_t read_results(struct desk *d, char *into, size_t n)
{
    size_t at = 0;

    for (int i = 0; i < WAIT_MS / 10 && at < n; i++) {
        if (poll(&(struct pollfd){.fd = d->results, .events = POLLIN}, 1, 0) > 0) {
            ssize_t got = read(d->results, into + at, n - at);

            if (got <= 0)
                break;
            at += (size_t)got;
            i = 0;
        } else {
            hear(d, 10);
        }
    }
    return at;
}

static enum line_result next_result(struct desk *d, struct buf *text)
{
    char line[64] = "", *end;
    size_t n = 0, len;
    long result;

    while (n < sizeof(line) - 1 && read_results(d, line + n, 1) == 1 && line[n] != '\n')
        n++;
    result = strtol(line, &end, 10);
    assert_ptr_not_equal(end, line);
    len = strtoul(end, NULL, 10);
    buf_clear(text);
    assert_non_null(buf_reserve(text, len + 1));
    text->len = read_results(d, text->ptr, len);
    assert_int_equal(text->len, len);
    return (enum line_result)result;
}

static void check_restored(struct desk *d)
{
    struct termios now;

    wait_for(d, "\033[?2004l");
    assert_int_equal(tcgetattr(d->slave, &now), 0);
    assert_int_equal(now.c_lflag, d->before.c_lflag);
    assert_int_equal(now.c_iflag, d->before.c_iflag);
    assert_int_equal(now.c_oflag, d->before.c_oflag);
}

static int desk_close(struct desk *d)
{
    int status = -1;

    for (int i = 0; i < WAIT_MS / 10 && waitpid(d->pid, &status, WNOHANG) == 0; i++)
        hear(d, 10);
    close(d->master);
    close(d->slave);
    close(d->results);
    close(d->wake);
    buf_done(&d->seen);
    buf_done(&d->all);
    return status;
}

/* At an empty prompt. */
static void desk_end(struct desk *d)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);

    d->all.len = 0;
    type(d, STR("\004"));
    assert_int_equal(next_result(d, &text), LINE_END);
    check_restored(d);
    assert_int_equal(desk_close(d), 0);
}

static void desk_leave(struct desk *d)
{
    wait_for(d, "\033[?2004h");
    desk_end(d);
}

#define READY(d) wait_for(d, "\033[?2004h")

/* Soon the screen looks so. */
static void check_screen(struct desk *d, const char *want, int row, int column)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1 << 20);

    for (int i = 0; i < WAIT_MS / 10; i++) {
        buf_clear(&text);
        screen_text(&d->screen, &text);
        if (strcmp(buf_cstr(&text), want) == 0 && d->screen.row == row && d->screen.column == column)
            return;
        hear(d, 10);
    }
    fail_msg("the screen, cursor at %d,%d:\n%swant, at %d,%d:\n%s", d->screen.row, d->screen.column, buf_cstr(&text),
             row, column, want);
}

static char dir[64], file[96];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/tidemark-line-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(file, sizeof(file), "%s/history", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(dir);
}

/* ---- keys ---- */

static void keys_edit_the_text(void **state)
{
    static const struct {
        const char *name, *keys;
        enum line_result result;
        const char *text;
    } rows[] = {
        {"letters", "hello\r", LINE_OK, "hello"},
        {"characters of many bytes", "wörld 日本\r", LINE_OK, "wörld 日本"},
        {"up: the one before", "\033[A\r", LINE_OK, "wörld 日本"},
        {"up twice, down once", "now\033[A\033[A\033[B\033[B!\r", LINE_OK, "now!"},
        {"search", "\022ell\r", LINE_OK, "hello"},
        {"search given up", "x\022ell\007y\r", LINE_OK, "xy"},
        {"erase a wide one", "日本\177x\r", LINE_OK, "日x"},
        {"erase with its mark", "ae\u0301\177b\r", LINE_OK, "ab"},
        {"erase a word", "one two\027three\r", LINE_OK, "one three"},
        {"words back and forth", "one two\033b\033bX\033fY\r", LINE_OK, "XoneY two"},
        {"home and end", "b\001a\005c\r", LINE_OK, "abc"},
        {"arrows", "ac\033[Db\033OCd\r", LINE_OK, "abcd"},
        {"a sequence nobody knows", "a\033[99;9zb\033Oxc\r", LINE_OK, "abc"},
        {"kill and yank", "abc\025x\031\r", LINE_OK, "xabc"},
        {"kill to the end", "abc\033[H\006\013\r", LINE_OK, "a"},
        {"swap", "ab\024\r", LINE_OK, "ba"},
        {"Ctrl-D erases", "abc\001\004\r", LINE_OK, "bc"},
        {"Alt-Enter", "a\033\rb\r", LINE_OK, "a\nb"},
        {"a backslash goes on", "a\\\rb\r", LINE_OK, "a\nb"},
        {"a backslash within", "a\\b\r", LINE_OK, "a\\b"},
        {"up and down in the text", "aa\nbbb\n\033[A\033[AX\033[B\033[BY\r", LINE_OK, "Xaa\nbbb\nY"},
        {"bytes that are no text",
         "a\xff\xfe\xc3"
         "b\001\005\r",
         LINE_OK, "ab"},
        {"Ctrl-C clears", "junk\003ok\r", LINE_OK, "ok"},
        {"Ctrl-C on nothing", "\003", LINE_CANCELLED, ""},
        {"an empty line", "\r", LINE_OK, ""},
        {"Tab, only one", "/he\t\r", LINE_OK, "/help "},
        {"Tab, a folder", "see @s\tx\r", LINE_OK, "see @src/x"},
        {"Tab, what is common", "@\t\177@日\t本\t\r", LINE_OK, "@日本.txt "},
        {"Tab, no match", "zzz\t\r", LINE_OK, "zzz"},
        {"paste", "\033[200~x\ny\r\nz\rw\tv\033[201~!\r", LINE_OK, "x\ny\nz\nw\tv!"},
        {"paste into a text", "ab\002\033[200~1\n2\033[201~\r", LINE_OK, "a1\n2b"},
        {"paste ends with line ends", "\033[200~x\n\n\033[201~\r", LINE_OK, "x"},
        {"paste with controls", "\033[200~a\003\033[31m\004b\033[201~\r", LINE_OK, "a[31mb"},
        {"enter behind a paste is one", "\033[200~p\n\033[201~q\r", LINE_OK, "p\nq"},
    };
    AUTO(buf_done) struct buf text = BUF_INIT(2 << 20);
    enum line_result result = LINE_END;
    struct desk d;

    (void)state;
    desk_open(&d, 80, 24, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (result == LINE_OK)
            READY(&d); /* between two lines: there a Ctrl-C would be a signal, not a key */
        READY(&d);
        type(&d, str_from(rows[i].keys));
        result = next_result(&d, &text);
        if (result != rows[i].result || strcmp(buf_cstr(&text), rows[i].text) != 0)
            fail_msg("%s: %d '%s', want %d '%s'", rows[i].name, (int)result, buf_cstr(&text), (int)rows[i].result,
                     rows[i].text);
    }
    desk_leave(&d);
}

static void what_is_typed_ahead_is_kept(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct desk d;

    (void)state;
    desk_open(&d, 80, 24, NULL);
    READY(&d);
    type(&d, STR("one\rtwo\rthree\r"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next_result(&d, &text), LINE_OK);
        assert_string_equal(buf_cstr(&text), ((const char *[]){"one", "two", "three"})[i]);
    }
    desk_leave(&d);
}

/* Typed while it works, and arrived. */
static void type_ahead(struct desk *d, struct str keys)
{
    int n = 0;

    type(d, keys);
    for (int i = 0; i < WAIT_MS / 10 && n < (int)keys.len; i++) {
        hear(d, 10);
        assert_int_equal(ioctl(d->slave, FIONREAD, &n), 0);
    }
    assert_int_equal(n, keys.len);
}

static void an_enter_typed_ahead_sends(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct desk d;

    (void)state;
    hushing = true;
    desk_open(&d, 40, 6, NULL);
    READY(&d);
    type(&d, STR("one\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    type_ahead(&d, STR("two\rthr"));
    check_screen(&d, "> one\n", 1, 0);
    assert_int_equal(write(d.wake, "c", 1), 1);
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "two");
    assert_int_equal(write(d.wake, "c", 1), 1);
    check_screen(&d, "> one\n> two\n> thr\n", 2, 5);
    type(&d, STR("ee\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "three");
    assert_int_equal(write(d.wake, "c", 1), 1);
    check_screen(&d, "> one\n> two\n> three\n>\n", 3, 2);
    desk_end(&d);
    hushing = false;
}

static void what_is_typed_ahead_survives_an_interrupt_and_is_held(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct desk d;

    (void)state;
    hushing = true;
    desk_open(&d, 40, 6, NULL);
    READY(&d);
    type(&d, STR("one\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    type_ahead(&d, STR("two\rthree\r"));
    type(&d, STR("\003"));
    assert_int_equal(write(d.wake, "h", 1), 1);
    check_screen(&d, "> one\n> two\n  three\n", 2, 7);
    type(&d, STR("!\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "two\nthree!");
    assert_int_equal(write(d.wake, "c", 1), 1);
    desk_leave(&d);
    hushing = false;
}

static void a_large_paste_is_one_prompt(void **state)
{
    AUTO(buf_done) struct buf keys = BUF_INIT(2 << 20), want = BUF_INIT(2 << 20), text = BUF_INIT(2 << 20);
    struct desk d;

    (void)state;
    for (int i = 0; i < 5000; i++)
        buf_addf(&want, "%sline %d of it, with ünïcode", i ? "\n" : "", i);
    buf_add_str(&keys, STR("\033[200~"));
    buf_add_str(&keys, buf_view(&want));
    buf_add_str(&keys, STR("\033[201~\r"));
    desk_open(&d, 80, 24, NULL);
    READY(&d);
    type(&d, buf_view(&keys));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_true(str_eq(buf_view(&text), buf_view(&want)));
    desk_leave(&d);
}

/* ---- the screen ---- */

static void rows_are_broken_and_the_cursor_stands_right(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, 12, 6, NULL);
    READY(&d);
    type(&d, STR("abcdefghijkl"));
    check_screen(&d, "> abcdefghi\n  jkl\n", 1, 5);
    type(&d, STR("\001"));
    check_screen(&d, "> abcdefghi\n  jkl\n", 0, 2);
    type(&d, STR("\013日本語日本語"));
    check_screen(&d, "> 日本語日\n  本語\n", 1, 6);
    type(&d, STR("\003ab\033\rcd\033\r"));
    check_screen(&d, "> ab\n  cd\n", 2, 2);
    type(&d, STR("\177\177"));
    check_screen(&d, "> ab\n  c\n", 1, 3);
    type(&d, STR("\003"));
    check_screen(&d, ">\n", 0, 2);
    desk_end(&d);
}

static void a_prompt_wider_than_the_window_takes_several_rows(void **state)
{
    struct desk d;

    (void)state;
    prompt = "[y]es or [n]o? ";
    desk_open(&d, 11, 6, NULL);
    READY(&d);
    type(&d, STR("never"));
    check_screen(&d, "[y]es or [\nn]o? never\n", 1, 10);
    type(&d, STR("more"));
    check_screen(&d, "[y]es or [\nn]o? never\n  more\n", 2, 6);
    type(&d, STR("\003"));
    desk_end(&d);
    prompt = "> ";
}

static void a_text_taller_than_the_screen_is_shown_around_the_cursor(void **state)
{
    struct desk d;

    (void)state;
    desk_open(&d, 20, 4, NULL);
    READY(&d);
    type(&d, STR("\033[200~1\n2\n3\n4\n5\n6\033[201~"));
    check_screen(&d, "  3\n  4\n  5\n  6\n", 3, 3);
    type(&d, STR("\033[A\033[A\033[A\033[A"));
    check_screen(&d, "  2\n  3\n  4\n  5\n", 0, 3);
    type(&d, STR("\033[A"));
    check_screen(&d, "> 1\n  2\n  3\n  4\n", 0, 3);
    type(&d, STR("\003"));
    desk_end(&d);
}

/* The rows that a text must be drawn in, worked out in the plainest way. */
static int lay_out(struct str text, int columns, struct buf *out)
{
    int column = 2, rows = 1;

    buf_add_str(out, STR("> "));
    while (text.len > 0) {
        struct glyph g = glyph_next(text, true);

        if (text.ptr[0] == '\n' || column + g.width > columns - 1) {
            while (out->len > 0 && out->ptr[out->len - 1] == ' ')
                out->len--;
            buf_add_str(out, STR("\n  "));
            column = 2;
            rows++;
        }
        if (text.ptr[0] != '\n') {
            buf_add_str(out, g.show);
            column += g.width;
        }
        text = (struct str){text.ptr + g.len, text.len - g.len};
    }
    buf_add_str(out, STR("\n>\n"));
    return rows;
}

static void make_keys(struct rng *rng, struct buf *keys)
{
    static const char *const bits[] = {
        "a",
        "b c",
        "日",
        "✅",
        "e\u0301",
        "\033\r",
        "\n",
        "\177",
        "\177\177",
        "\001",
        "\005",
        "\002",
        "\006",
        "\033b",
        "\033f",
        "\033d",
        "\027",
        "\025",
        "\013",
        "\031",
        "\024",
        "\033[A",
        "\033[B",
        "\033[C",
        "\033[D",
        "\033[H",
        "\033[3~",
        "word ",
        "\033[200~x\ny\033[201~",
        "\xff",
        "\033[1;9Q",
    };

    for (int64_t n = rng_between(rng, 5, 120); n > 0; n--)
        buf_add_str(keys, str_from(bits[rng_below(rng, (int64_t)(sizeof(bits) / sizeof(bits[0])))]));
    for (int i = 0; i < 60; i++)
        buf_add_str(keys, STR("\033[B"));
    buf_add_str(keys, STR("\005z"));
}

/* In pieces, so that it is drawn in between. */
static void type_in_pieces(struct desk *d, struct rng *rng, struct str keys)
{
    while (keys.len > 0) {
        size_t n = (size_t)rng_between(rng, 1, 30);

        n = n < keys.len ? n : keys.len;
        while (n < keys.len && keys.ptr[n - 1] == '\033') /* whether it goes on would be left to the clock */
            n++;
        type(d, (struct str){keys.ptr, n});
        hear(d, rng_below(rng, 4) == 0 ? 1 : 0);
        keys = (struct str){keys.ptr + n, keys.len - n};
    }
}

static void any_keys_leave_text_and_screen_alike(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        AUTO(buf_done) struct buf keys = BUF_INIT(1 << 16), text = BUF_INIT(1 << 16), want = BUF_INIT(1 << 16);
        struct rng rng = {seed};
        int columns = (int)rng_between(&rng, 9, 60), rows;
        struct desk d;

        make_keys(&rng, &keys);
        desk_open(&d, columns, 24, NULL);
        READY(&d);
        type_in_pieces(&d, &rng, buf_view(&keys));
        type(&d, STR("\r"));
        if (next_result(&d, &text) != LINE_OK || !str_is_utf8(buf_view(&text), NULL))
            fail_msg("seed %d: '%s'", (int)seed, buf_cstr(&text));
        rows = lay_out(buf_view(&text), columns, &want);
        if (rows < 23)
            check_screen(&d, buf_cstr(&want), rows, 2);
        desk_leave(&d);
    }
}

static void a_notice_comes_between_and_the_text_stays(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct desk d;

    (void)state;
    desk_open(&d, 20, 6, NULL);
    READY(&d);
    type(&d, STR("ab\033\rcd"));
    check_screen(&d, "> ab\n  cd\n", 1, 4);
    assert_int_equal(write(d.wake, "n", 1), 1);
    check_screen(&d, "a notice\n> ab\n  cd\n", 2, 4);
    assert_int_equal(write(d.wake, "s", 1), 1);
    assert_int_equal(next_result(&d, &text), LINE_STOPPED);
    READY(&d);
    type(&d, STR("!\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "ab\ncd!");
    desk_leave(&d);
}

/* ---- what stays behind ---- */

static void the_terminal_is_restored_when_a_signal_ends_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct desk d;
        int status;

        desk_open(&d, 40, 10, NULL);
        READY(&d);
        type(&d, STR("half a"));
        check_screen(&d, "> half a\n", 0, 8);
        kill(d.pid, ends[i]);
        check_restored(&d);
        status = desk_close(&d);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), ends[i]);
    }
}

static void history_survives_with_its_line_ends(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct stat st;
    struct desk d;

    (void)state;
    desk_open(&d, 80, 24, file);
    READY(&d);
    type(&d, STR("a \\n b\033\rc\\d\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    READY(&d);
    type(&d, STR(" secret\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    desk_leave(&d);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    desk_open(&d, 80, 24, file);
    READY(&d);
    type(&d, STR("\033[A\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "a \\n b\nc\\d");
    desk_leave(&d);
}

static int lines_of_file(void)
{
    FILE *f = fopen(file, "r");
    int n = 0, c;

    assert_non_null(f);
    while ((c = fgetc(f)) != EOF)
        n += c == '\n';
    fclose(f);
    return n;
}

static void history_is_bounded(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    FILE *f = fopen(file, "w");
    struct desk d;

    (void)state;
    assert_non_null(f);
    for (int i = 0; i < 1500; i++)
        fprintf(f, "entry %d\n", i);
    fclose(f);
    desk_open(&d, 80, 24, file);
    READY(&d);
    assert_int_equal(lines_of_file(), 1000);
    type(&d, STR("\022entry 500\r"));
    assert_int_equal(next_result(&d, &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "entry 500");
    desk_leave(&d);
}

/* ---- without a terminal ---- */

static void piped_lines_are_prompts(void **state)
{
    static const char *const want[] = {"one", "two\nmore", "last"};
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    struct line_edit *e;
    int in[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], "one\ntwo\\\nmore\nlast", 18), 18);
    close(in[1]);
    e = line_edit_new(&(struct line_config){.in = in[0], .out = out, .wake_fd = -1});
    assert_false(line_edit_is_terminal(e));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(line_edit_read(e, "> ", &text), LINE_OK);
        assert_string_equal(buf_cstr(&text), want[i]);
    }
    assert_int_equal(line_edit_read(e, "> ", &text), LINE_END);
    line_edit_free(e);
    close(in[0]);
    close(out);
}

/* Nobody types: at its time the read is over; one that is past ends it at once. */
static void a_read_ends_when_it_is_too_late(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    int in[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct line_edit *e;
    int64_t at = wall_ms() + 50;

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    e = line_edit_new(&(struct line_config){.in = in[0], .out = out, .wake_fd = -1});
    alarm(20);
    line_edit_until(e, at);
    assert_int_equal(line_edit_read(e, "> ", &text), LINE_LATE);
    assert_true(wall_ms() >= at);
    line_edit_until(e, 1);
    assert_int_equal(line_edit_read(e, "> ", &text), LINE_LATE);
    assert_int_equal(write(in[1], "words\n", 6), 6);
    line_edit_until(e, 0);
    assert_int_equal(line_edit_read(e, "> ", &text), LINE_OK);
    assert_string_equal(buf_cstr(&text), "words");
    alarm(0);
    line_edit_free(e);
    close(in[0]);
    close(in[1]);
    close(out);
}

/* The handler ran before the read began: nothing comes any more that would end the wait. */
static void a_signal_before_the_read_ends_it(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(1024);
    static atomic_int leave = 1;
    struct line_edit *e;
    int in[2], out = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    e = line_edit_new(&(struct line_config){.in = in[0], .out = out, .wake_fd = -1, .stop = &leave});
    alarm(20);
    assert_int_equal(line_edit_read(e, "> ", &text), LINE_STOPPED);
    alarm(0);
    line_edit_free(e);
    close(in[0]);
    close(in[1]);
    close(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_ends_when_it_is_too_late),
        cmocka_unit_test(a_signal_before_the_read_ends_it),
        cmocka_unit_test(keys_edit_the_text),
        cmocka_unit_test(what_is_typed_ahead_is_kept),
        cmocka_unit_test(an_enter_typed_ahead_sends),
        cmocka_unit_test(what_is_typed_ahead_survives_an_interrupt_and_is_held),
        cmocka_unit_test(a_large_paste_is_one_prompt),
        cmocka_unit_test(rows_are_broken_and_the_cursor_stands_right),
        cmocka_unit_test(a_prompt_wider_than_the_window_takes_several_rows),
        cmocka_unit_test(a_text_taller_than_the_screen_is_shown_around_the_cursor),
        cmocka_unit_test(any_keys_leave_text_and_screen_alike),
        cmocka_unit_test(a_notice_comes_between_and_the_text_stays),
        cmocka_unit_test(the_terminal_is_restored_when_a_signal_ends_it),
        cmocka_unit_test_setup_teardown(history_survives_with_its_line_ends, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(history_is_bounded, make_dir, remove_dir),
        cmocka_unit_test(piped_lines_are_prompts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
