/* SPDX-License-Identifier: Apache-2.0 */
#include "tui/lines.h"

#include "base/json.h"
#include "base/timefmt.h"
#include "terminal/glyph.h"

#define TAB 4
#define TIME_COLUMNS 5 /* "19:32" */

void lines_clear(struct lines *l)
{
    l->n = 0;
    arena_reset(&l->arena);
}

void lines_done(struct lines *l)
{
    free(TAKE(l->at));
    l->n = l->cap = 0;
    arena_done(&l->arena);
}

static void push_line(struct lines *l, struct str text, const struct line *like)
{
    struct line *one;

    MEM_ROOM(l->at, l->n, l->cap);
    one = &l->at[l->n++];
    *one = *like;
    one->text = text;
}

static int width_of(struct str text, size_t *ret_len)
{
    struct glyph g;

    *ret_len = 1;
    if (text.ptr[0] == '\t')
        return TAB;
    if (text.ptr[0] == '\r')
        return 0;
    g = glyph_next(text, true);
    *ret_len = g.len;
    return g.width;
}

/* Bytes of the line that fit, up to the last blank if there is one. */
static size_t take_piece(struct str line, int columns)
{
    size_t done = 0, blank = 0, len;
    int used = 0;

    while (done < line.len) {
        int width = width_of((struct str){line.ptr + done, line.len - done}, &len);

        if (used + width > columns && done > 0)
            return line.ptr[done] == ' ' ? done + 1 : blank ? blank : done;
        used += width;
        done += len;
        if (line.ptr[done - 1] == ' ')
            blank = done;
    }
    return line.len;
}

/* The blank at which a line was broken takes no room. */
static struct str without_blank(struct str line, size_t piece)
{
    return (struct str){line.ptr, piece < line.len && line.ptr[piece - 1] == ' ' ? piece - 1 : piece};
}

static void say_rest(struct lines *l, struct str rest, const struct line *like)
{
    struct line more = *like;

    more.ink = INK_DIM;
    more.lead = NULL;
    push_line(l, str_from(arena_printf(&l->arena, "… %zu more bytes", rest.len)), &more);
}

void lines_add(struct lines *l, struct str text, int columns, int most, const struct line *like)
{
    struct line now = *like;
    int room = columns - like->indent, n = 0;
    struct str rest;

    text = rest = arena_dup(&l->arena, text);
    do {
        const char *end = rest.len ? memchr(rest.ptr, '\n', rest.len) : NULL;
        struct str line = {rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len};

        do {
            size_t piece = take_piece(line, room > 1 ? room : 1);

            if (most && n++ == most) {
                say_rest(l, rest, &now);
                return;
            }
            push_line(l, without_blank(line, piece), &now);
            now.lead = NULL;
            now.ts_ms = 0;
            line = (struct str){line.ptr + piece, line.len - piece};
            rest = (struct str){rest.ptr + piece, rest.len - piece};
        } while (line.len);
        rest = end ? (struct str){end + 1, (size_t)(text.ptr + text.len - end - 1)} : STR("");
    } while (rest.len);
}

void lines_add_one(struct lines *l, struct str text, const struct line *like)
{
    push_line(l, arena_dup(&l->arena, text), like);
}

void lines_draw(const struct lines *l, int from, struct canvas *c, int row, int col, int rows, int columns)
{
    for (int i = 0; i < rows && from + i < (int)l->n; i++) {
        const struct line *one = &l->at[from + i];

        if (one->lead)
            canvas_text(c, row + i, col + (one->indent >= 2 ? one->indent - 2 : 0), 2, one->lead, one->lead_ink);
        canvas_put(c, row + i, col + one->indent, columns - one->indent, one->text, one->ink);
        if (one->ts_ms) {
            char clock[TIME_CLOCK_SIZE];

            canvas_put(c, row + i, col + columns - TIME_COLUMNS, TIME_COLUMNS,
                       (struct str){time_clock(clock, one->ts_ms), TIME_COLUMNS}, INK_DIM);
        }
    }
}

void lines_add_json(struct lines *l, struct str json, int columns, const struct line *like)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(buf_done) struct buf out = BUF_INIT((size_t)64 << 20);
    static const struct json_limits limits = {.max_depth = JSON_MAX_DEPTH + 32};
    struct json *v = NULL;

    if (json_parse(&a, json, &limits, &v, NULL, NULL)) {
        lines_add(l, json, columns, 0, like);
        return;
    }
    json_write_pretty(&out, v);
    lines_add(l, str_trim(buf_view(&out)), columns, 0, like);
}

void lines_add_diff(struct lines *l, struct str diff, int columns, const struct line *like)
{
    while (diff.len) {
        const char *end = memchr(diff.ptr, '\n', diff.len);
        struct str line = {diff.ptr, end ? (size_t)(end - diff.ptr) : diff.len};
        struct line one = *like;

        if (line.len)
            one.ink = line.ptr[0] == '+'   ? INK_ADDED
                      : line.ptr[0] == '-' ? INK_REMOVED
                      : line.ptr[0] == '@' ? INK_DIM
                                           : INK_PLAIN;
        lines_add(l, line, columns, 0, &one);
        diff = end ? (struct str){end + 1, diff.len - line.len - 1} : STR("");
    }
}
