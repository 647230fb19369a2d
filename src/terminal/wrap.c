/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal breaks a long line anywhere; sentences are read more easily when they are broken at words. Colours have no
 * width. What goes to a file or a pipe is never wrapped: programs read it by lines. Beside text_flow.c, which draws pieces as
 * they come and cuts a word as long as a line: here the text is whole and a word never is, because it may be a command.
 */
#include "terminal/wrap.h"

#include <unistd.h>

#define INDENT_MAX 16

/* Length of the colour code at the start of `s`; 0: none. */
static size_t color_len(struct str s)
{
    size_t n = 2;

    if (s.len < 3 || s.ptr[0] != '\033' || s.ptr[1] != '[')
        return 0;
    while (n < s.len && s.ptr[n] != 'm')
        n++;
    return n < s.len ? n + 1 : 0;
}

static int width_of(struct str s)
{
    size_t plain = 0;
    int width = 0;

    for (size_t i = 0; i <= s.len; i++) {
        size_t code = color_len((struct str){s.ptr + i, s.len - i});

        if (!code && i < s.len)
            continue;
        width += text_columns((struct str){s.ptr + plain, i - plain});
        i += code ? code - 1 : 0;
        plain = i + 1;
    }
    return width;
}

static size_t run_of(struct str s, bool spaces)
{
    size_t n = 0;

    while (n < s.len && (s.ptr[n] == ' ') == spaces)
        n++;
    return n;
}

/* What stays in one piece: a word, or a command in backquotes with what is written against it. */
static size_t piece_of(struct str s)
{
    const char *end = s.len > 1 && s.ptr[0] == '`' ? memchr(s.ptr + 1, '`', s.len - 1) : NULL;
    size_t quoted = end ? (size_t)(end - s.ptr) : 0;

    return quoted + run_of((struct str){s.ptr + quoted, s.len - quoted}, false);
}

static void put_piece(struct buf *out, struct str piece)
{
    for (size_t i = 0; i < piece.len; i++)
        buf_add_char(out, piece.ptr[i] == WRAP_KEPT_SPACE ? ' ' : piece.ptr[i]);
}

static void put_spaces(struct buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_add_char(out, ' ');
}

/* From column `at` on; the lines below begin at `indent`. */
static void wrap_line(struct buf *out, struct str line, int columns, size_t indent, int at)
{
    while (line.len > 0) {
        size_t gap = run_of(line, true), word = piece_of((struct str){line.ptr + gap, line.len - gap});
        int width = width_of((struct str){line.ptr + gap, word});

        if (at > (int)indent && at + (int)gap + width > columns) {
            buf_add_char(out, '\n');
            put_spaces(out, indent);
            at = (int)indent;
        } else {
            put_spaces(out, gap);
            at += (int)gap;
        }
        put_piece(out, (struct str){line.ptr + gap, word});
        at += width;
        line = (struct str){line.ptr + gap + word, line.len - gap - word};
    }
}

void wrap_text(struct buf *out, struct str text, int columns)
{
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len;
        struct str line = {text.ptr, n};
        size_t indent = run_of(line, true);

        if (width_of(line) > columns)
            wrap_line(out, line, columns, indent < INDENT_MAX ? indent : INDENT_MAX, 0);
        else
            put_piece(out, line);
        if (end)
            buf_add_char(out, '\n');
        n += end != NULL;
        text = (struct str){text.ptr + n, text.len - n};
    }
}

void wrap_beside(struct buf *out, struct str line, int at, int indent, int columns)
{
    wrap_line(out, line, columns, (size_t)indent, at);
}

void out_wrap(struct out *out, size_t from)
{
    AUTO(buf_done) struct buf wrapped = BUF_INIT(out->text.max);

    if (!out->tty || out->data || from >= out->text.len)
        return;
    wrap_text(&wrapped, (struct str){out->text.ptr + from, out->text.len - from}, terminal_columns(STDOUT_FILENO));
    out->text.len = from;
    buf_add_str(&out->text, buf_view(&wrapped));
}

void out_command(struct out *out, const char *command)
{
    bool wrapped = out->tty && !out->data;

    for (; *command; command++)
        buf_add_char(&out->text, *command == ' ' && wrapped ? WRAP_KEPT_SPACE : *command);
}
