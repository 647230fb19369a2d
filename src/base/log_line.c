/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink that writes lines to a descriptor: one record, one line, one write(2), so that records of threads and processes that
 * share the descriptor do not mix.
 *
 *     text  [2026-02-21T10:01:10.123Z ]warn: full disk store=/var/lib/t reason="no space left"
 *     JSON  {"ts":"2026-02-21T10:01:10.123Z","level":"warn","msg":"full disk","store":"/var/lib/t",…}
 *
 * A descriptor that takes no more loses records: logging never stops the work. O_NONBLOCK would change the descriptor for
 * all who share it, so a pipe or a terminal is opened once more, for the log alone. A record of which a part was taken is
 * brought to its end before anything else, so that lines stay lines; the next one that goes through follows a line that
 * says how many were lost.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/scan.h"
#include "base/timefmt.h"

#define RECORD_MAX ((size_t)1 << 20) /* hundreds of fields: more than anyone writes */

/* How a descriptor is written to without ever waiting for it. */
enum way {
    WAY_UNKNOWN, /* until the first record */
    WAY_WRITE,   /* a file, or a description of our own that does not block */
    WAY_SEND,    /* a socket */
    WAY_ASK,     /* what cannot be opened once more, as another user's terminal: no more than it says it takes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum log_format format;
    int64_t (*now_ms)(void);
    int given, fd; /* fd is `given` or one of our own */
    enum way way;
    struct buf rest; /* of the record that was begun */
    uint64_t lost;
} sink = {LOG_TEXT, NULL, STDERR_FILENO, -1, WAY_UNKNOWN, BUF_INIT(2 * RECORD_MAX), 0};

void log_line_setup(enum log_format format, int fd, int64_t (*now_ms)(void))
{
    pthread_mutex_lock(&lock);
    if (sink.way != WAY_UNKNOWN && sink.fd != sink.given)
        close(sink.fd);
    sink.format = format;
    sink.now_ms = now_ms;
    sink.given = fd;
    sink.way = WAY_UNKNOWN;
    sink.lost = 0;
    buf_clear(&sink.rest);
    pthread_mutex_unlock(&lock);
}

/* The time of the record, or nothing. */
static struct str stamp_now(char out[TIME_TEXT_SIZE])
{
    if (!sink.now_ms)
        return STR("");
    time_format(out, sink.now_ms());
    return str_from(out);
}

static bool is_bare(struct str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.ptr[i] <= ' ' || value.ptr[i] > '~' || strchr("\"\\=", value.ptr[i]))
            return false;
    return value.len > 0;
}

static void text_record(struct buf *line, const struct tide_log_record *r)
{
    char ts[TIME_TEXT_SIZE];
    struct str when = stamp_now(ts);

    buf_add_str(line, when);
    buf_addf(line, "%s%s: %s", when.len > 0 ? " " : "", tide_log_level_name(r->level), r->message);
    for (size_t i = 0; i < r->fields_len; i++) {
        struct str value = str_from(r->fields[i].value);

        buf_addf(line, " %s=", r->fields[i].key);
        if (is_bare(value))
            buf_add_str(line, value);
        else
            json_quote(line, value);
    }
    clean_line(line->ptr, line->len);
}

static void json_record(struct buf *line, const struct tide_log_record *r)
{
    char ts[TIME_TEXT_SIZE];
    struct json_out o = json_out_to(line);

    json_out_begin(&o, '{');
    json_out_kstr_opt(&o, STR("ts"), stamp_now(ts));
    json_out_kstr(&o, STR("level"), str_from(tide_log_level_name(r->level)));
    json_out_kstr(&o, STR("msg"), str_from(r->message));
    for (size_t i = 0; i < r->fields_len; i++)
        if (r->fields[i].is_number)
            json_out_kraw(&o, str_from(r->fields[i].key), str_from(r->fields[i].value));
        else
            json_out_kstr(&o, str_from(r->fields[i].key), str_from(r->fields[i].value));
    json_out_end(&o, '}');
}

static void compose_line(struct buf *line, const struct tide_log_record *r)
{
    (sink.format == LOG_JSON ? json_record : text_record)(line, r);
    buf_add_char(line, '\n');
}

/* ---- the sink, under the lock ---- */

static void open_sink(void)
{
    char path[40];
    struct stat st;
    int flags = fcntl(sink.given, F_GETFL);

    sink.fd = sink.given;
    sink.way = WAY_WRITE;
    if (flags < 0 || (flags & O_NONBLOCK) || fstat(sink.given, &st) != 0 || S_ISREG(st.st_mode))
        return;
    if (S_ISSOCK(st.st_mode)) {
        sink.way = WAY_SEND;
        return;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", sink.given);
    sink.fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (sink.fd < 0) {
        sink.fd = sink.given;
        sink.way = WAY_ASK;
    }
}

static size_t room_for(size_t len)
{
    struct pollfd p = {sink.fd, POLLOUT, 0};

    if (sink.way != WAY_ASK)
        return len;
    if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
        return 0;
    return len < PIPE_BUF ? len : PIPE_BUF;
}

/* How many bytes were taken; 0: it takes no more. */
static size_t put_some(struct str s)
{
    size_t len = room_for(s.len);
    ssize_t n;

    if (len == 0)
        return 0;
    do
        n = sink.way == WAY_SEND ? send(sink.fd, s.ptr, len, MSG_DONTWAIT | MSG_NOSIGNAL) : write(sink.fd, s.ptr, len);
    while (n < 0 && errno == EINTR);
    return n > 0 ? (size_t)n : 0;
}

/* True when nothing is left of what was begun. */
static bool drain_rest(void)
{
    size_t at = 0, n = 1;

    for (; n > 0 && at < sink.rest.len; at += n)
        n = put_some((struct str){sink.rest.ptr + at, sink.rest.len - at});
    if (at > 0)
        memmove(sink.rest.ptr, sink.rest.ptr + at, sink.rest.len - at);
    sink.rest.len -= at;
    return sink.rest.len == 0;
}

/* False when nothing of it was taken: then it needs no end either. */
static bool put_line(struct str line)
{
    buf_add_str(&sink.rest, line);
    if (drain_rest() || sink.rest.len < line.len)
        return true;
    buf_clear(&sink.rest);
    return false;
}

/* True when the way is free for the next record. */
static bool put_lost(void)
{
    AUTO(buf_done) struct buf line = BUF_INIT(RECORD_MAX);
    char text[100];

    if (sink.lost == 0)
        return true;
    snprintf(text, sizeof(text), "%" PRIu64 " log record%s lost: %s took no more", sink.lost, sink.lost == 1 ? "" : "s",
             sink.given == STDERR_FILENO ? "standard error" : "the log file");
    compose_line(&line, &(struct tide_log_record){.level = TIDE_LOG_WARN, .message = text});
    if (!put_line(buf_view(&line)))
        return false;
    sink.lost = 0;
    return sink.rest.len == 0;
}

void log_line(void *arg, const struct tide_log_record *record)
{
    AUTO(buf_done) struct buf line = BUF_INIT(RECORD_MAX);

    (void)arg;
    pthread_mutex_lock(&lock);
    compose_line(&line, record);
    if (sink.way == WAY_UNKNOWN)
        open_sink();
    if (!drain_rest() || !put_lost() || !put_line(buf_view(&line)))
        sink.lost++;
    pthread_mutex_unlock(&lock);
}
