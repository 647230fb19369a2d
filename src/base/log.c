/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record, one line, one write(2): records of threads and processes that share the descriptor do not mix. Each
 * setting is atomic by itself, so a level may be changed while others log.
 *
 *     text  [2026-02-21T10:01:10.123Z ]warn: full disk store=/var/lib/t reason="no space left"
 *     JSON  {"ts":"2026-02-21T10:01:10.123Z","level":"warn","msg":"full disk","store":"/var/lib/t",…}
 *
 * A descriptor that takes no more loses records: logging never stops the work.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scan.h"
#include "base/timefmt.h"

#define VALUE_MAX 2048               /* bytes of one message or value; the rest is cut off */
#define RECORD_MAX ((size_t)1 << 20) /* hundreds of fields: more than anyone writes */

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static atomic_int level_now = LOG_WARN, format_now = LOG_TEXT, fd_now = STDERR_FILENO;
static int64_t (*_Atomic clock_now)(void);

void log_setup(enum log_level level, enum log_format format, int fd, int64_t (*now_ms)(void))
{
    level_now = (int)level;
    format_now = (int)format;
    fd_now = fd;
    clock_now = now_ms;
}

bool log_enabled(enum log_level level)
{
    return (int)level <= level_now;
}

static struct str clip(const char *text)
{
    return utf8_clip(str_from(text), VALUE_MAX);
}

/* The time of the record, or nothing. */
static struct str stamp(char out[TIME_TEXT_SIZE])
{
    int64_t (*now_ms)(void) = clock_now;

    if (!now_ms)
        return STR("");
    time_format(out, now_ms());
    return str_from(out);
}

static bool is_bare(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~' || strchr("\"\\=", value.ptr[i]))
            return false;
    return value.len > 0;
}

static void text_record(struct buf *line, enum log_level level, const char *message, va_list fields)
{
    char ts[TIME_TEXT_SIZE];
    struct str when = stamp(ts);

    buf_add_str(line, when);
    if (when.len > 0)
        buf_add_char(line, ' ');
    buf_add_str(line, str_from(level_names[level]));
    buf_add_str(line, STR(": "));
    buf_add_str(line, clip(message));
    for (const char *key; (key = va_arg(fields, const char *));) {
        struct str value = clip(va_arg(fields, const char *));

        buf_add_char(line, ' ');
        buf_add_str(line, str_from(key));
        buf_add_char(line, '=');
        if (is_bare(value))
            buf_add_str(line, value);
        else
            json_quote(line, value);
    }
    clean_line(line->ptr, line->len);
}

static void json_record(struct buf *line, enum log_level level, const char *message, va_list fields)
{
    char ts[TIME_TEXT_SIZE];
    struct json_out o = json_out_to(line);

    json_out_begin(&o, '{');
    json_out_kstr_opt(&o, STR("ts"), stamp(ts));
    json_out_kstr(&o, STR("level"), str_from(level_names[level]));
    json_out_kstr(&o, STR("msg"), clip(message));
    for (const char *key; (key = va_arg(fields, const char *));)
        json_out_kstr(&o, str_from(key), clip(va_arg(fields, const char *)));
    json_out_end(&o, '}');
}

static void write_line(const struct buf *line)
{
    ssize_t n;

    do
        n = write(fd_now, line->ptr, line->len);
    while (n < 0 && errno == EINTR);
}

void log_write(enum log_level level, const char *message, ...)
{
    AUTO(buf_done) struct buf line = BUF_INIT(RECORD_MAX);
    int errno_before = errno;
    va_list fields;

    if (!log_enabled(level))
        return;
    va_start(fields, message);
    (format_now == LOG_JSON ? json_record : text_record)(&line, level, message, fields);
    va_end(fields);
    buf_add_char(&line, '\n');
    write_line(&line);
    errno = errno_before;
}
