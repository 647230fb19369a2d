/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output: gathering, colours, values cleaned for a terminal, times and sizes for people. */
#include "terminal/output.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/timefmt.h"
#include "terminal/wrap.h"
#include "engine/shapes.h"

#define OUT_MAX ((size_t)4 << 30)

void out_init(struct out *out)
{
    *out = (struct out){.tty = isatty(STDOUT_FILENO), .text = BUF_INIT(OUT_MAX)};
    out_set_color(out, NULL);
}

void out_done(struct out *out)
{
    buf_done(&out->text);
}

void out_set_color(struct out *out, const char *when)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool wanted = !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);

    out->color = !when || strcmp(when, "auto") == 0 ? out->tty && wanted : strcmp(when, "always") == 0;
}

/* Text for people is clean by now; JSON, and what is printed as it is stored, is so here. */
static int write_text(struct out *out)
{
    AUTO(buf_done) struct buf clean = BUF_INIT(OUT_MAX);

    if (out->tty)
        glyph_clean_json(&clean, buf_view(&out->text));
    out->text.failed |= clean.failed;
    return out->text.failed ? 0 : fd_write(STDOUT_FILENO, out->tty ? buf_view(&clean) : buf_view(&out->text));
}

enum tide_code out_flush(struct out *out, struct tide_err *err)
{
    int bad = write_text(out);

    if (out->text.failed)
        return tide_fail(err, TIDE_TOO_BIG, "the answer is larger than this command can print");
    out->closed |= bad == EPIPE;
    if (bad)
        return out->closed ? tide_fail(err, TIDE_CANCELLED, "write to standard output: its reader is gone")
                           : tide_fail_errno(err, bad, "write to standard output");
    buf_clear(&out->text);
    return TIDE_OK;
}

void outf(struct out *out, const char *fmt, ...)
{
    char line[512], *longer = NULL;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    if (n >= (int)sizeof(line)) {
        longer = mem_alloc((size_t)n + 1);
        va_start(args, fmt);
        vsnprintf(longer, (size_t)n + 1, fmt, args);
        va_end(args);
    }
    buf_add_str(&out->text, str_from(longer ? longer : line));
    free(longer);
}

void out_value(struct out *out, const char *text)
{
    out_fit(out, text, INT_MAX);
}

int out_fit(struct out *out, const char *text, int columns)
{
    return name_fit(&out->text, str_from(text), columns);
}

void say_lines(struct str lines)
{
    AUTO(buf_done) struct buf wrapped = BUF_INIT(OUT_MAX);

    if (isatty(STDERR_FILENO)) {
        wrap_text(&wrapped, lines, terminal_columns(STDERR_FILENO));
        lines = buf_view(&wrapped);
    }
    fwrite(lines.ptr, 1, lines.len, stderr);
}

static bool notices_json;

void say_as_json(bool json)
{
    notices_json = json;
}

void say_clean(const char *text)
{
    struct out line = {.text = BUF_INIT(OUT_MAX)};

    if (notices_json) {
        out_shape(&line, &shape_notice, &(struct notice_shown){text});
        fwrite(line.text.ptr, 1, line.text.len, stderr);
        out_done(&line);
        return;
    }
    outf(&line, "tidemark: ");
    out_value(&line, text);
    outf(&line, "\n");
    say_lines(buf_view(&line.text));
    out_done(&line);
}

void say(const char *fmt, ...)
{
    char line[8192]; /* with the path of a store, which may be given again */
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    log_clean(line, sizeof(line));
    say_clean(line);
}

const char *color_code(const struct out *out, enum color color)
{
    static const char *const codes[] = {
        [COLOR_NONE] = "\033[0m",   [COLOR_BOLD] = "\033[1m",    [COLOR_DIM] = "\033[2m",   [COLOR_RED] = "\033[31m",
        [COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m", [COLOR_BLUE] = "\033[34m", [COLOR_CYAN] = "\033[36m",
    };

    return out->color ? codes[color] : "";
}

void out_colored(struct out *out, enum color color, const char *text)
{
    buf_add_str(&out->text, str_from(color == COLOR_NONE ? "" : color_code(out, color)));
    out_value(out, text);
    buf_add_str(&out->text, str_from(color == COLOR_NONE ? "" : color_code(out, COLOR_NONE)));
}

#define FIELD_AT 13     /* column of a value */
#define FIELD_NARROW 60 /* with fewer columns its further lines are not that far to the right */

static void out_name(struct out *out, const char *name)
{
    outf(out, "%s%-12s%s ", color_code(out, COLOR_DIM), name, color_code(out, COLOR_NONE));
}

void out_field(struct out *out, const char *name, const char *value)
{
    AUTO(buf_done) struct buf clean = BUF_INIT(out->text.max);
    int columns = out->tty && !out->data ? terminal_columns(STDOUT_FILENO) : INT_MAX;

    if (!value)
        return;
    out_name(out, name);
    name_fit(&clean, str_from(value), INT_MAX);
    wrap_beside(&out->text, buf_view(&clean), FIELD_AT, columns < FIELD_NARROW ? 2 : FIELD_AT, columns);
    buf_add_char(&out->text, '\n');
}

void out_field_command(struct out *out, const char *name, const char *command)
{
    out_name(out, name);
    out_command(out, command);
    buf_add_char(&out->text, '\n');
}

void out_json_end(struct out *out)
{
    buf_add_char(&out->text, '\n');
}

void out_shape(struct out *out, const struct shape *shape, const void *data)
{
    struct json_out o = json_out_to(&out->text);

    out->data = true;
    shape_put(&o, shape, data);
    out_json_end(out);
}

void out_json_value(struct out *out, struct str json)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *v = NULL;
    bool text = !out->json && !json_parse(&a, json, NULL, &v, NULL, NULL) && v->type == JSON_STRING;

    out->data = true;
    if (text && out->tty)
        glyph_clean(&out->text, json_text(&a, v));
    else
        buf_add_str(&out->text, text ? json_text(&a, v) : json);
    buf_add_char(&out->text, '\n');
}

void out_findings(struct out *out, const struct findings *f, enum color color)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->at[i].where) {
            out_colored(out, color, f->at[i].where);
            outf(out, ": ");
        }
        out_value(out, f->at[i].what);
        outf(out, "\n");
    }
}

const char *time_ago(char buf[AGO_SIZE], int64_t unix_ms)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400 * 365, "year"}, {86400 * 30, "month"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}};
    int64_t s = (wall_ms() - unix_ms) / 1000;

    if (!unix_ms)
        return "-"; /* not known */
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        int64_t n = s / units[i].seconds;

        if (n > 0) {
            snprintf(buf, AGO_SIZE, "%" PRId64 " %s%s ago", n, units[i].name, n == 1 ? "" : "s");
            return buf;
        }
    }
    if (s > 0)
        snprintf(buf, AGO_SIZE, "%" PRId64 " second%s ago", s, s == 1 ? "" : "s");
    else
        snprintf(buf, AGO_SIZE, "now");
    return buf;
}

bool terminal_is_capable(void)
{
    const char *term = getenv("TERM");

    return term && *term && strcmp(term, "dumb") != 0;
}

int terminal_columns(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
