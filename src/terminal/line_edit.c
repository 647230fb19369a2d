/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An editor of our own and not libedit, because a prompt is a text of several lines: libedit edits one, so a paste could
 * only be shown with marks in the place of its line ends; it takes its character set from the locale, which in containers
 * is often none; it waits for keys in a read of its own, so that nothing else can be shown meanwhile; and it is one more
 * library to load. What is needed here is small.
 *
 * All bytes that are there are worked off before the text is drawn again: a paste is drawn once. Bytes behind an Enter
 * stay for the next read, so nothing typed ahead is lost.
 */
#include "terminal/line_edit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "terminal/output.h"
#include "terminal/line_complete.h"
#include "terminal/line_draw.h"
#include "terminal/line_history.h"
#include "terminal/line_keys.h"
#include "terminal/line_tty.h"

#define INPUT_MAX (LINE_MAX_BYTES + ((size_t)64 << 10))
#define ESCAPE_MS 50  /* an ESC that nothing follows for so long is the key */
#define PASTE_MS 2000 /* a paste that stands still for so long has ended, though its mark never came */
#define LOOK_MS 1000  /* how often the clock is looked at: one that was set, or a machine that slept, is noticed */
#define SEARCH_MAX 200

struct line_edit {
    struct line_config config;
    bool terminal;
    struct line_text text;
    struct line_screen screen;
    struct line_history history;
    size_t place; /* in the history; n: what is typed now */
    char *typed;  /* that, while an entry of the history is shown */
    struct buf input;
    bool pasting, ended; /* ended: no more input comes */
    char expected[16];   /* what is dropped when it comes next */
    int64_t until_ms;    /* 0: there is no hurry */
    struct {
        bool on;
        struct buf words;
        size_t place;
        char *before; /* the text that a cancelled search gives back */
    } search;
};

/* What a key leads to. */
enum outcome { GO_ON, DONE, CANCELLED, END };

struct line_edit *line_edit_new(const struct line_config *config)
{
    struct line_edit *e = mem_zero(sizeof(*e));

    e->config = *config;
    e->terminal = isatty(config->in) && isatty(config->out) && terminal_is_capable();
    e->screen = (struct line_screen){.fd = config->out, .color = config->color};
    e->input = (struct buf)BUF_INIT(INPUT_MAX);
    e->search.words = (struct buf)BUF_INIT(SEARCH_MAX);
    line_text_init(&e->text);
    line_history_open(&e->history, e->terminal ? config->history : NULL);
    return e;
}

void line_edit_free(struct line_edit *e)
{
    if (!e)
        return;
    tty_restore();
    line_text_done(&e->text);
    line_history_close(&e->history);
    buf_done(&e->input);
    buf_done(&e->search.words);
    free(e->search.before);
    free(e->typed);
    free(e);
}

bool line_edit_is_terminal(const struct line_edit *e)
{
    return e->terminal;
}

void line_edit_until(struct line_edit *e, int64_t at_ms)
{
    e->until_ms = at_ms;
}

void line_edit_prefill(struct line_edit *e, struct str text)
{
    line_text_set(&e->text, text);
}

void line_edit_hush(struct line_edit *e)
{
    if (e->terminal)
        tty_hush(e->config.in, e->config.out);
}

static void draw_line(struct line_edit *e, const char *prompt)
{
    AUTO(buf_done) struct buf searching = BUF_INIT(SEARCH_MAX + 64);

    if (e->text.text.failed) /* it did not fit */
        line_screen_write(&e->screen, STR("\a"));
    e->text.text.failed = false;
    buf_addf(&searching, "search '%s': ", buf_cstr(&e->search.words));
    line_draw(&e->screen, e->search.on ? buf_cstr(&searching) : prompt, buf_view(&e->text.text), e->text.at);
}

/* ---- history ---- */

static void show_entry(struct line_edit *e, size_t place)
{
    if (e->place == e->history.n) {
        free(e->typed);
        e->typed = mem_dup(buf_view(&e->text.text));
    }
    e->place = place;
    line_text_set(&e->text, str_from(place < e->history.n ? e->history.entries[place] : e->typed));
}

static void search_step(struct line_edit *e, size_t from)
{
    struct str words = buf_view(&e->search.words);
    long found = line_history_find(&e->history, from, words);
    const char *at;

    if (found < 0)
        return;
    e->search.place = (size_t)found;
    line_text_set(&e->text, str_from(e->history.entries[found]));
    at = words.len ? memmem(e->text.text.ptr, e->text.text.len, words.ptr, words.len) : NULL;
    e->text.at = at ? (size_t)(at - e->text.text.ptr) : e->text.at;
}

/* True: the key was the search's. Any other ends it, and then does what it does. */
static bool search_key(struct line_edit *e, struct line_key key, struct str bytes)
{
    struct buf *words = &e->search.words;

    if (key.command == KEY_TEXT) {
        buf_add(words, bytes.ptr, key.len);
        search_step(e, e->search.place < e->history.n ? e->search.place + 1 : e->history.n);
    } else if (key.command == KEY_SEARCH) {
        search_step(e, e->search.place);
    } else if (key.command == KEY_EDIT && key.edit == line_erase_left) {
        while (words->len > 0 && utf8_is_tail(words->ptr[--words->len]))
            ;
        search_step(e, e->history.n);
    } else if (key.command == KEY_ESCAPE || key.command == KEY_INTERRUPT) {
        e->search.on = false;
        line_text_set(&e->text, str_from(e->search.before));
    } else {
        e->search.on = false;
        return key.command == KEY_NONE;
    }
    return true;
}

/* ---- completion ---- */

static void use_matches(struct line_edit *e, const struct line_matches *m, size_t from)
{
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)1 << 20);
    size_t common = line_matches_common(m), had = e->text.at - from;
    bool only = m->n == 1, folder = common > 0 && m->words[0][common - 1] == '/';

    if (common >= had && (common > had || only)) {
        line_text_replace(&e->text, from, (struct str){m->words[0], common});
    } else { /* below the text, which is then drawn anew further down */
        line_matches_list(m, e->screen.columns, &out);
        line_screen_leave(&e->screen);
        line_screen_write(&e->screen, buf_view(&out));
    }
    if (only && !folder)
        line_text_insert(&e->text, STR(" "));
}

static void complete_word(struct line_edit *e)
{
    struct str before = {buf_view(&e->text.text).ptr, e->text.at};
    struct line_matches *m;
    size_t from = before.len;

    while (from > 0 && before.ptr[from - 1] != ' ' && before.ptr[from - 1] != '\n' && before.ptr[from - 1] != '\t')
        from--;
    if (!e->config.complete)
        return;
    m = mem_zero(sizeof(*m));
    e->config.complete(e->config.arg, before, (struct str){before.ptr + from, before.len - from}, m);
    if (m->n > 0)
        use_matches(e, m, from);
    line_matches_free(m);
}

/* ---- keys ---- */

/* A backslash at the end says that the text continues. */
static enum outcome enter_line(struct line_edit *e)
{
    struct str text = buf_view(&e->text.text);

    if (text.len == 0 || e->text.at < text.len || text.ptr[text.len - 1] != '\\')
        return DONE;
    line_erase_left(&e->text);
    line_new_line(&e->text);
    return GO_ON;
}

static enum outcome interrupt_line(struct line_edit *e)
{
    bool empty = e->text.text.len == 0;

    line_kill_all(&e->text);
    e->place = e->history.n;
    return empty ? CANCELLED : GO_ON;
}

static enum outcome end_input(struct line_edit *e)
{
    if (e->text.text.len == 0)
        return END;
    line_erase_right(&e->text);
    return GO_ON;
}

static enum outcome do_key(struct line_edit *e, struct line_key key, struct str bytes)
{
    if (e->search.on && search_key(e, key, bytes))
        return GO_ON;
    switch (key.command) {
    case KEY_TEXT:
        line_text_insert(&e->text, (struct str){bytes.ptr, key.len});
        break;
    case KEY_EDIT:
        key.edit(&e->text);
        break;
    case KEY_ENTER:
        return enter_line(e);
    case KEY_INTERRUPT:
        return interrupt_line(e);
    case KEY_END:
        return end_input(e);
    case KEY_UP:
        if (!line_up(&e->text) && e->place > 0)
            show_entry(e, e->place - 1);
        break;
    case KEY_DOWN:
        if (!line_down(&e->text) && e->place < e->history.n)
            show_entry(e, e->place + 1);
        break;
    case KEY_SEARCH:
        e->search.on = true;
        e->search.place = e->history.n;
        buf_clear(&e->search.words);
        free(e->search.before);
        e->search.before = mem_dup(buf_view(&e->text.text));
        break;
    case KEY_COMPLETE:
        complete_word(e);
        break;
    case KEY_CLEAR_SCREEN:
        line_screen_erase(&e->screen);
        line_screen_write(&e->screen, STR("\033[H\033[2J"));
        break;
    case KEY_SUSPEND:
        line_screen_leave(&e->screen);
        tty_suspend(e->config.in, e->config.out);
        break;
    case KEY_PASTE:
        e->pasting = true;
        break;
    case KEY_NONE:
    case KEY_ESCAPE:
        break;
    }
    return GO_ON;
}

/* ---- input ---- */

static void use_up(struct line_edit *e, size_t n)
{
    memmove(e->input.ptr, e->input.ptr + n, e->input.len - n);
    e->input.len -= n;
}

/* All of a paste is taken at once: a line end cut in two, or a character, would be two things. False: it continues. */
static bool take_paste(struct line_edit *e, bool last)
{
    struct str mark = LINE_PASTE_END;
    const char *found = memmem(e->input.ptr, e->input.len, mark.ptr, mark.len);
    size_t n = found ? (size_t)(found - e->input.ptr) : e->input.len;

    if (!found && !last && e->input.len < LINE_MAX_BYTES)
        return false;
    line_text_insert(&e->text, (struct str){e->input.ptr, n});
    use_up(e, found ? n + mark.len : n);
    e->pasting = !found && !last;
    return true;
}

/* Works off what came. `last`: nothing more came for a moment. */
static enum outcome work_off(struct line_edit *e, bool last)
{
    enum outcome outcome = GO_ON;

    e->pasting = e->pasting && !(last && e->input.len == 0);
    while (e->input.len > 0 && outcome == GO_ON) {
        struct line_key key;

        if (e->pasting) {
            if (!take_paste(e, last || e->ended))
                break;
            continue;
        }
        key = line_key_next(buf_view(&e->input), last || e->ended);
        if (key.len == 0)
            break;
        outcome = do_key(e, key, buf_view(&e->input));
        use_up(e, key.len);
    }
    return outcome;
}

enum heard { HEARD_KEYS, HEARD_NOTHING, HEARD_STOP, HEARD_NEWS, HEARD_LATE };

static enum heard read_more(struct line_edit *e)
{
    char bytes[4096];
    ssize_t n = read(e->config.in, bytes, sizeof(bytes));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return HEARD_NEWS;
    if (n <= 0)
        e->ended = true;
    else
        buf_add(&e->input, bytes, (size_t)n);
    return HEARD_KEYS;
}

static bool is_told_to_stop(const struct line_edit *e)
{
    return tty_ended() || (e->config.stop && *e->config.stop);
}

/* Signals are kept off between the look at what they set and the wait that they end: one that came there would end nothing. */
static int wait_for(const struct line_edit *e, struct pollfd *fds, nfds_t n_fds, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    sigset_t all, before;
    int n = -1;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!is_told_to_stop(e))
        n = ppoll(fds, n_fds, timeout_ms < 0 ? NULL : &timeout, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return n;
}

/* Waits for keys, for the caller's descriptor, for a signal, or until it is too late. */
static enum heard hear_key(struct line_edit *e, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = e->config.in, .events = POLLIN}, {.fd = e->config.wake_fd, .events = POLLIN}};
    int n, piece_ms;

    do {
        int64_t most_ms = timeout_ms < 0 ? LOOK_MS : timeout_ms, left_ms = e->until_ms - wall_ms();

        if (e->until_ms && left_ms <= 0)
            return HEARD_LATE;
        piece_ms = !e->until_ms ? timeout_ms : (int)(left_ms < most_ms ? left_ms : most_ms);
        n = wait_for(e, fds, e->config.wake && e->config.wake_fd >= 0 ? 2 : 1, piece_ms);
    } while (n == 0 && piece_ms != timeout_ms);
    if (n < 0 && is_told_to_stop(e))
        return HEARD_STOP;
    if (n < 0)
        return HEARD_NEWS;
    if (n == 0)
        return HEARD_NOTHING;
    if (fds[1].revents) {
        line_screen_erase(&e->screen);
        return e->config.wake(e->config.arg) ? HEARD_STOP : HEARD_NEWS;
    }
    return read_more(e);
}

static enum line_result finish_line(struct line_edit *e, const char *prompt, enum outcome outcome, struct buf *ret_text)
{
    static const enum line_result results[] = {[DONE] = LINE_OK, [CANCELLED] = LINE_CANCELLED, [END] = LINE_END};

    e->search.on = false;
    e->text.at = e->text.text.len;
    draw_line(e, prompt);
    line_screen_leave(&e->screen);
    if (outcome == DONE) {
        while (e->text.text.len > 0 && e->text.text.ptr[e->text.text.len - 1] == '\n') /* as pastes end */
            e->text.text.len--;
        buf_add_str(ret_text, buf_view(&e->text.text));
        line_history_add(&e->history, buf_view(ret_text));
    }
    line_text_set(&e->text, STR(""));
    return results[outcome];
}

static enum line_result edit_line(struct line_edit *e, const char *prompt, struct buf *ret_text)
{
    enum outcome outcome = work_off(e, false);
    enum heard heard = HEARD_KEYS;

    while (outcome == GO_ON && !e->ended) {
        if (heard != HEARD_NOTHING && !e->pasting)
            draw_line(e, prompt);
        heard = hear_key(e, e->pasting ? PASTE_MS : e->input.len > 0 ? ESCAPE_MS : -1);
        if (heard == HEARD_STOP || heard == HEARD_LATE || tty_ended()) {
            line_screen_erase(&e->screen);
            return heard == HEARD_LATE ? LINE_LATE : LINE_STOPPED;
        }
        if (tty_again()) /* what was drawn is not where it was */
            e->screen.rows = e->screen.row = e->screen.column = 0;
        outcome = work_off(e, heard == HEARD_NOTHING);
    }
    if (outcome == GO_ON)
        outcome = e->text.text.len > 0 ? DONE : END;
    return finish_line(e, prompt, outcome, ret_text);
}

/* ---- typed ahead ---- */

void line_edit_gather(struct line_edit *e)
{
    struct pollfd fd = {.fd = e->config.in, .events = POLLIN};

    while (e->terminal && !e->ended && poll(&fd, 1, 0) > 0 && read_more(e) == HEARD_KEYS)
        ;
}

void line_edit_expect(struct line_edit *e, const char *rest)
{
    snprintf(e->expected, sizeof(e->expected), "%s", rest);
}

static void drop_expected(struct line_edit *e)
{
    size_t len = strlen(e->expected);

    if (!*e->expected || !e->input.len)
        return;
    if (e->input.ptr[0] == '\r')
        use_up(e, 1);
    else if (e->input.len > len && memcmp(e->input.ptr, e->expected, len) == 0 && e->input.ptr[len] == '\r')
        use_up(e, len + 1);
    else if (e->input.len <= len && memcmp(e->input.ptr, e->expected, e->input.len) == 0)
        return; /* the rest of it may still come */
    e->expected[0] = '\0';
}

void line_edit_hold(struct line_edit *e)
{
    line_edit_gather(e);
    drop_expected(e);
    while (e->input.len > 0 && e->input.ptr[e->input.len - 1] == '\r')
        e->input.len--;
    for (size_t i = 0; i < e->input.len; i++)
        if (e->input.ptr[i] == '\r')
            e->input.ptr[i] = '\n'; /* the key that begins a new line */
}

void line_edit_pass_on(struct line_edit *from, struct line_edit *to)
{
    buf_add_str(&to->input, buf_view(&from->input));
    buf_clear(&from->input);
}

/* ---- single keys ---- */

enum line_result line_edit_key(struct line_edit *e, enum line_command *ret_command, struct buf *ret_text)
{
    struct line_key key = {.len = 0};
    enum heard heard = HEARD_KEYS;

    buf_clear(ret_text);
    if (!e->terminal || !tty_raw(e->config.in, e->config.out))
        return LINE_END;
    for (;;) {
        bool last = heard == HEARD_NOTHING || e->ended;
        const char *end;

        if (e->input.len)
            key = line_key_next(buf_view(&e->input), last);
        end = key.len && key.command == KEY_PASTE
                  ? memmem(e->input.ptr, e->input.len, LINE_PASTE_END.ptr, LINE_PASTE_END.len)
                  : NULL;
        if (key.len && (key.command != KEY_PASTE || end || last))
            break;
        if (e->ended)
            return LINE_END;
        heard = hear_key(e, key.len ? PASTE_MS : e->input.len ? ESCAPE_MS : -1);
        if (heard == HEARD_STOP || heard == HEARD_LATE || tty_ended())
            return heard == HEARD_LATE ? LINE_LATE : LINE_STOPPED;
        (void)tty_again();
    }
    *ret_command = key.command;
    if (key.command == KEY_PASTE) {
        const char *end = memmem(e->input.ptr, e->input.len, LINE_PASTE_END.ptr, LINE_PASTE_END.len);
        size_t n = end ? (size_t)(end - e->input.ptr) : e->input.len;

        buf_add(ret_text, e->input.ptr + key.len, n - key.len);
        use_up(e, end ? n + LINE_PASTE_END.len : n);
        return LINE_OK;
    }
    if (key.command == KEY_TEXT)
        buf_add(ret_text, e->input.ptr, key.len);
    use_up(e, key.len);
    if (key.command == KEY_SUSPEND)
        tty_suspend(e->config.in, e->config.out);
    return LINE_OK;
}

bool line_edit_more(struct line_edit *e)
{
    return e->input.len > 0 || (!e->ended && hear_key(e, ESCAPE_MS) == HEARD_KEYS && e->input.len > 0);
}

/* ---- without an editor ---- */

/* The next line of the input, its end included; 0: there is no whole one yet. */
static size_t line_len(const struct line_edit *e)
{
    const char *end = e->input.len ? memchr(e->input.ptr, '\n', e->input.len) : NULL;

    if (end)
        return (size_t)(end - e->input.ptr) + 1;
    return e->ended || e->input.len >= LINE_MAX_BYTES ? e->input.len : 0;
}

/* True: the prompt continues in the next line. */
static bool add_line(struct line_edit *e, size_t n, struct buf *ret_text)
{
    bool ended = e->input.ptr[n - 1] == '\n', more;
    size_t len = n - ended;

    more = ended && len > 0 && e->input.ptr[len - 1] == '\\';
    buf_add(ret_text, e->input.ptr, more ? len - 1 : len);
    if (more)
        buf_add_char(ret_text, '\n');
    use_up(e, n);
    return more;
}

static enum line_result read_plainly(struct line_edit *e, const char *prompt, struct buf *ret_text)
{
    bool more = true, any = false;

    if (isatty(e->config.in) && isatty(e->config.out))
        line_screen_write(&e->screen, str_from(prompt));
    while (more) {
        size_t n = line_len(e);

        if (n > 0) {
            any = true;
            more = add_line(e, n, ret_text);
        } else if (e->ended) {
            return any ? LINE_OK : LINE_END;
        } else {
            enum heard heard = hear_key(e, -1);

            if (heard == HEARD_LATE)
                return LINE_LATE;
            if (heard == HEARD_STOP || heard == HEARD_NEWS)
                return LINE_STOPPED;
        }
    }
    return LINE_OK;
}

enum line_result line_edit_read(struct line_edit *e, const char *prompt, struct buf *ret_text)
{
    enum line_result result;

    buf_clear(ret_text);
    if (!e->terminal || !tty_raw(e->config.in, e->config.out))
        return read_plainly(e, prompt, ret_text);
    line_edit_gather(e);
    drop_expected(e);
    e->expected[0] = '\0';
    e->place = e->history.n;
    e->search.on = e->pasting = false;
    result = edit_line(e, prompt, ret_text);
    if (result == LINE_OK)
        line_edit_hush(e);
    else
        tty_restore();
    return result;
}
