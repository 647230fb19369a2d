/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line is always shorter than the window, so that it can be taken away; when the window has become narrower since,
 * the terminal may have broken it into several, and all of them go.
 */
#include "terminal/spinner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/timefmt.h"
#include "terminal/glyph.h"
#include "terminal/output.h"

#define FIRST_MS 120 /* what is over sooner shows nothing */
#define EVERY_MS 100
#define AGAIN_MS 400 /* after other output: where a line ends more mostly follows, and it would only flicker */

void spinner_init(struct spinner *s, int fd, bool color)
{
    *s = (struct spinner){.fd = fd, .color = color};
    s->on = isatty(fd) && terminal_is_capable();
}

void spinner_start(struct spinner *s, const char *label, int64_t now_ms)
{
    if (s->running && strncmp(s->label, label, sizeof(s->label) - 1) == 0)
        return;
    snprintf(s->label, sizeof(s->label), "%s", label);
    s->running = true;
    s->since_ms = s->now_ms = now_ms;
    s->next_ms = s->width ? now_ms : now_ms + FIRST_MS;
}

const char *spinner_frame(int n)
{
    static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};

    return frames[n % 10];
}

static void put_frame(const struct spinner *s, struct buf *out)
{
    (void)!write(s->fd, buf_view(out).ptr, out->len);
}

static void draw_frame(struct spinner *s, int64_t now_ms)
{
    AUTO(buf_done) struct buf out = BUF_INIT(2048);
    char elapsed[TIME_TAKEN_SIZE];
    int room, label;

    time_taken(elapsed, now_ms - s->since_ms);
    room = terminal_columns(s->fd) - 1 - 2 - 1 - (int)strlen(elapsed);
    buf_addf(&out, "\r%s%s ", s->color ? "\033[2m" : "", spinner_frame(s->frame++));
    label = glyph_fit(&out, str_from(s->label), room > 0 ? room : 0);
    buf_addf(&out, "%s%s%s\033[K", label ? " " : "", room >= 0 ? elapsed : "", s->color ? "\033[0m" : "");
    s->width = 2 + label + (label > 0) + (room >= 0 ? (int)strlen(elapsed) : 0);
    put_frame(s, &out);
}

void spinner_tick(struct spinner *s, int64_t now_ms)
{
    s->now_ms = now_ms;
    if (!s->on || !s->running || now_ms < s->next_ms)
        return;
    if (s->width > terminal_columns(s->fd) - 1)
        spinner_hide(s);
    draw_frame(s, now_ms);
    s->next_ms = now_ms + EVERY_MS;
}

void spinner_hide(struct spinner *s)
{
    AUTO(buf_done) struct buf out = BUF_INIT(64);
    int up = s->width > 0 ? (s->width - 1) / terminal_columns(s->fd) : 0;

    if (s->width == 0)
        return;
    if (up > 0)
        buf_addf(&out, "\033[%dA", up);
    buf_add_str(&out, up > 0 ? STR("\r\033[J") : STR("\r\033[K"));
    put_frame(s, &out);
    s->width = 0;
    s->next_ms = s->now_ms + AGAIN_MS;
}

void spinner_stop(struct spinner *s)
{
    spinner_hide(s);
    s->running = false;
}
