/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log records: one line each in both formats, whatever is in them, also from many threads at once. A descriptor that takes no
 * more holds nobody up: what is lost is counted and told, and no line is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"

static int64_t fixed_time(void)
{
    return 1771668070123;
}

static void log_setup(enum tide_log_level level, enum log_format format, int fd, int64_t (*now_ms)(void))
{
    log_line_setup(format, fd, now_ms);
    tide_log_set(level, log_line, NULL);
}

/* A file in memory that the log appends to. */
static int log_file(void)
{
    int fd = memfd_create("log", 0);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    return fd;
}

static char *take_text(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = mem_zero((size_t)size + 1);

    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    close(fd);
    log_setup(TIDE_LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
    return text;
}

static void a_record_is_one_line_in_either_format(void **state)
{
    static const struct {
        const char *message, *value, *text, *json;
    } rows[] = {
        {"full disk", "/var/lib", "warn: full disk k=/var/lib\n",
         "{\"level\":\"warn\",\"msg\":\"full disk\",\"k\":\"/var/lib\"}\n"},
        {"m", "two words", "warn: m k=\"two words\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"two words\"}\n"},
        {"m", "", "warn: m k=\"\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\"}\n"},
        {"m", NULL, "warn: m\n", "{\"level\":\"warn\",\"msg\":\"m\"}\n"},
        {"m", "a=b", "warn: m k=\"a=b\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"a=b\"}\n"},
        {"m", "say \"hi\"", "warn: m k=\"say \\\"hi\\\"\"\n",
         "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"say \\\"hi\\\"\"}\n"},
        {"two\nlines", "x\ny", "warn: two?lines k=\"x\\ny\"\n",
         "{\"level\":\"warn\",\"msg\":\"two\\nlines\",\"k\":\"x\\ny\"}\n"},
        {"\x1b[2J", "\x1b", "warn: ?[2J k=\"\\u001b\"\n",
         "{\"level\":\"warn\",\"msg\":\"\\u001b[2J\",\"k\":\"\\u001b\"}\n"},
        {"m", "\xff", "warn: m k=\"\xef\xbf\xbd\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\xef\xbf\xbd\"}\n"},
        {"m", "\xc2\x9b", "warn: m k=\"??\"\n", "{\"level\":\"warn\",\"msg\":\"m\",\"k\":\"\xc2\x9b\"}\n"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        enum log_format format = i % 2 ? LOG_JSON : LOG_TEXT;
        AUTO(mem_freep) char *text = NULL;
        int fd = log_file();

        log_setup(TIDE_LOG_WARN, format, fd, NULL);
        log_write(TIDE_LOG_WARN, rows[i / 2].message, log_text("k", rows[i / 2].value));
        text = take_text(fd);
        assert_string_equal(text, format == LOG_JSON ? rows[i / 2].json : rows[i / 2].text);
    }
}

static void a_number_is_a_number_and_a_field_without_a_key_is_left_out(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    int fd = log_file();

    (void)state;
    log_setup(TIDE_LOG_WARN, LOG_TEXT, fd, NULL);
    log_write(TIDE_LOG_WARN, "m", log_number("n", INT64_MIN), log_number(NULL, 1), log_text("t", "7"));
    log_setup(TIDE_LOG_WARN, LOG_JSON, fd, NULL);
    log_write(TIDE_LOG_WARN, "m", log_number("n", -3), log_number(NULL, 1), log_text("t", "7"));
    text = take_text(fd);
    assert_string_equal(text, "warn: m n=-9223372036854775808 t=7\n"
                              "{\"level\":\"warn\",\"msg\":\"m\",\"n\":-3,\"t\":\"7\"}\n");
}

static void the_time_stands_first_when_there_is_a_clock(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    int fd = log_file();

    (void)state;
    log_setup(TIDE_LOG_DEBUG, LOG_TEXT, fd, fixed_time);
    log_write(TIDE_LOG_DEBUG, "x");
    log_setup(TIDE_LOG_DEBUG, LOG_JSON, fd, fixed_time);
    log_write(TIDE_LOG_ERROR, "x", log_text("a", "1"), log_text("b", "2"));
    text = take_text(fd);
    assert_string_equal(text, "2026-02-21T10:01:10.123Z debug: x\n"
                              "{\"ts\":\"2026-02-21T10:01:10.123Z\",\"level\":\"error\",\"msg\":\"x\","
                              "\"a\":\"1\",\"b\":\"2\"}\n");
}

static void records_above_the_level_are_left_out(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    int fd = log_file();

    (void)state;
    log_setup(TIDE_LOG_WARN, LOG_TEXT, fd, NULL);
    assert_true(log_enabled(TIDE_LOG_ERROR));
    assert_true(log_enabled(TIDE_LOG_WARN));
    assert_false(log_enabled(TIDE_LOG_INFO));
    log_write(TIDE_LOG_INFO, "no");
    log_write(TIDE_LOG_ERROR, "yes");
    text = take_text(fd);
    assert_string_equal(text, "error: yes\n");
}

static void a_long_value_is_cut_and_the_record_stays_whole(void **state)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    AUTO(mem_freep) char *text = NULL, *value = mem_zero(100001);
    struct json *v;
    int fd = log_file();

    (void)state;
    for (int i = 0; i < 100000 - 2; i += 3)
        memcpy(value + i, "\xe2\x82\xac", 3);
    log_setup(TIDE_LOG_WARN, LOG_JSON, fd, NULL);
    log_write(TIDE_LOG_WARN, "m", log_text("k", value), log_text("end", "here"));
    text = take_text(fd);
    assert_true(strlen(text) < 5000);
    assert_int_equal(json_parse(&a, str_from(text), NULL, &v, NULL, NULL), TIDE_OK);
    assert_true(str_eq(json_get_text(&a, v, STR("end")), STR("here")));
    assert_null(strstr(text, "\xef\xbf\xbd"));
}

static void errno_survives_and_a_dead_descriptor_is_no_error(void **state)
{
    (void)state;
    log_setup(TIDE_LOG_WARN, LOG_TEXT, -1, NULL);
    errno = EDOM;
    log_write(TIDE_LOG_WARN, "nobody hears");
    assert_int_equal(errno, EDOM);
    log_setup(TIDE_LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
}

#define THREADS 4
#define RECORDS 2000

static void *write_many(void *name)
{
    for (int i = 0; i < RECORDS; i++)
        log_write(TIDE_LOG_WARN, name, log_text("key", "some value with spaces"));
    return NULL;
}

static void records_of_threads_do_not_mix(void **state)
{
    static char *const names[THREADS] = {"one", "two", "three", "four"};
    AUTO(mem_freep) char *text = NULL;
    pthread_t threads[THREADS];
    int fd = log_file(), lines = 0;

    (void)state;
    log_setup(TIDE_LOG_WARN, LOG_TEXT, fd, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, names[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    text = take_text(fd);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        *end = '\0';
        assert_int_equal(memcmp(line, "warn: ", 6), 0);
        assert_string_equal(strchr(line + 6, ' '), " key=\"some value with spaces\"");
    }
    assert_int_equal(lines, THREADS * RECORDS);
}

/* ---- a descriptor that takes no more ---- */

#define PATIENCE_S 20 /* whoever waits for the descriptor waits for ever: then the alarm ends the test */
#define FLOOD 2000    /* more records than any of these takes */

struct sink {
    int in, out; /* what the log writes, what nobody reads for now */
    const char *name;
};

/* The end that nobody reads, now without waiting: all that is in it, appended. */
static void take_all(struct sink *s, struct buf *text)
{
    char piece[4096];
    ssize_t n;

    fcntl(s->out, F_SETFL, O_NONBLOCK);
    while ((n = read(s->out, piece, sizeof(piece))) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (piece[i] != '\r') /* a terminal's */
                buf_add_char(text, piece[i]);
}

static struct sink full_pipe(void)
{
    struct sink s = {.name = "pipe"};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    s.in = ends[1], s.out = ends[0];
    return s;
}

static struct sink full_socket(void)
{
    struct sink s = {.name = "socket"};
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    s.in = ends[1], s.out = ends[0];
    return s;
}

/* A terminal whose screen does not take what is written. */
static struct sink full_terminal(void)
{
    struct sink s = {.name = "terminal"};

    s.out = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (s.out < 0 || grantpt(s.out) != 0 || unlockpt(s.out) != 0)
        fail_msg("no pseudo-terminal");
    s.in = open(ptsname(s.out), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(s.in >= 0);
    return s;
}

static void sink_done(struct sink *s)
{
    log_setup(TIDE_LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
    close(s->in);
    close(s->out);
}

static void flood(const char *value, int n)
{
    alarm(PATIENCE_S);
    for (int i = 0; i < n; i++)
        log_write(TIDE_LOG_WARN, "m", log_text("k", value), log_text("l", value), log_text("m", value));
    alarm(0);
}

/* Every line is whole: one of the flood, a count of what is lost, or the last record. The counts are added up. */
static void check_lines(const struct sink *s, struct buf *text, int *ret_whole, int *ret_lost)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    char *line = (char *)(uintptr_t)buf_cstr(text);

    *ret_whole = *ret_lost = 0;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        struct json *v = NULL;
        struct str message;
        int lost = 0;

        if (json_parse(&a, (struct str){line, (size_t)(end - line)}, NULL, &v, NULL, NULL))
            fail_msg("%s: not a record: %.80s", s->name, line);
        message = json_get_text(&a, v, STR("msg"));
        if (str_eq(message, STR("m")))
            ++*ret_whole;
        else if (sscanf(arena_dup(&a, message).ptr, "%d log record%*[s] lost: the log file took no more", &lost) == 1)
            *ret_lost += lost;
        else
            assert_true(str_eq(message, STR("last")));
    }
    assert_int_equal(*line, '\0');
}

/* `size` bytes in each of three values: below and above what a pipe takes in one piece. */
static void check_full(struct sink s, int size)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    AUTO(mem_freep) char *value = mem_zero((size_t)size + 1);
    int whole, lost, flags = fcntl(s.in, F_GETFL);

    memset(value, 'x', (size_t)size);
    log_setup(TIDE_LOG_WARN, LOG_JSON, s.in, NULL);
    flood(value, FLOOD);
    take_all(&s, &text);
    for (int i = 0; i < 3; i++) { /* what was begun, what is lost, and then this one is through */
        log_write(TIDE_LOG_WARN, "last");
        take_all(&s, &text);
    }
    check_lines(&s, &text, &whole, &lost);
    if (whole == 0 || lost == 0 || whole + lost != FLOOD)
        fail_msg("%s, %d bytes: %d records came, %d are told as lost, of %d", s.name, size, whole, lost, FLOOD);
    assert_int_equal(fcntl(s.in, F_GETFL), flags); /* others share it */
    sink_done(&s);
}

static void what_takes_no_more_loses_records_and_holds_nobody_up(void **state)
{
    static struct sink (*const sinks[])(void) = {full_pipe, full_socket, full_terminal};

    (void)state;
    for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++)
        for (int size = 100; size <= 2000; size += 1900)
            check_full(sinks[i](), size);
}

/* Without a description of our own: as with a terminal of another user, or without /proc. */
static void what_cannot_be_opened_once_more_holds_nobody_up_either(void **state)
{
    struct rlimit before, none;
    struct sink s = full_pipe();

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)s.in + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    check_full(s, 100);
    s = full_pipe();
    check_full(s, 2000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void what_was_lost_is_told_before_the_next_record(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct sink s = full_pipe();
    char page[PIPE_BUF] = {0};

    (void)state;
    fcntl(s.in, F_SETFL, O_NONBLOCK);
    while (write(s.in, page, sizeof(page)) > 0)
        ;
    fcntl(s.in, F_SETFL, 0);
    assert_true(dup2(STDERR_FILENO, s.out + 10) >= 0);
    dup2(s.in, STDERR_FILENO);
    log_setup(TIDE_LOG_WARN, LOG_TEXT, STDERR_FILENO, NULL);
    alarm(PATIENCE_S);
    log_write(TIDE_LOG_WARN, "one");
    log_write(TIDE_LOG_WARN, "two");
    take_all(&s, &text);
    buf_clear(&text);
    log_write(TIDE_LOG_WARN, "three");
    log_write(TIDE_LOG_WARN, "four");
    alarm(0);
    dup2(s.out + 10, STDERR_FILENO);
    close(s.out + 10);
    take_all(&s, &text);
    assert_string_equal(buf_cstr(&text),
                        "warn: 2 log records lost: standard error took no more\nwarn: three\nwarn: four\n");
    sink_done(&s);
}

/* A file takes a part of a record, then none; with room again the line comes to its end. */
static void a_full_disk_cuts_no_line(void **state)
{
    AUTO(mem_freep) char *text = NULL;
    struct rlimit before, small;
    int fd = log_file();

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){20, before.rlim_max};
    log_setup(TIDE_LOG_WARN, LOG_TEXT, fd, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 4; i++)
        log_write(TIDE_LOG_WARN, "no room");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    log_write(TIDE_LOG_WARN, "room");
    text = take_text(fd);
    assert_string_equal(text, "warn: no room\nwarn: no room\nwarn: 2 log records lost: the log file took no more\n"
                              "warn: room\n");
}

static void threads_that_lose_records_count_them_together(void **state)
{
    AUTO(buf_done) struct buf text = BUF_INIT(SIZE_MAX / 4);
    struct sink s = full_pipe();
    pthread_t threads[THREADS];
    int whole, lost;

    (void)state;
    log_setup(TIDE_LOG_WARN, LOG_JSON, s.in, NULL);
    alarm(PATIENCE_S);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, "m"), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    take_all(&s, &text);
    log_write(TIDE_LOG_WARN, "last");
    alarm(0);
    take_all(&s, &text);
    check_lines(&s, &text, &whole, &lost);
    assert_int_equal(whole + lost, THREADS * RECORDS);
    assert_true(lost > 0);
    sink_done(&s);
}

static void a_known_secret_is_in_no_record(void **state)
{
    static const struct {
        enum log_format format;
        const char *want;
    } rows[] = {
        {LOG_TEXT, "warn: refused [redacted:K] why=\"bad [redacted:K]\"\n"},
        {LOG_JSON, "{\"level\":\"warn\",\"msg\":\"refused [redacted:K]\",\"why\":\"bad [redacted:K]\"}\n"},
    };
    struct secrets *s = secrets_new();
    char line[40] = "x hunter2\"hunter2";

    (void)state;
    assert_true(secrets_add(s, STR("K"), STR("hunter2\"hunter2")));
    log_hide(s);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = log_file();
        char *text;

        log_setup(TIDE_LOG_WARN, rows[i].format, fd, NULL);
        log_write(TIDE_LOG_WARN, "refused hunter2\"hunter2", log_text("why", "bad hunter2%22hunter2"));
        text = take_text(fd);
        assert_string_equal(text, rows[i].want);
        free(text);
    }
    log_clean(line, sizeof(line));
    assert_string_equal(line, "x [redacted:K]");
    log_unhide(s);
    secrets_free(s);
}

/* ---- a sink of the embedder's ---- */

struct heard {
    atomic_int n, inside;
    char last[200];
    const char *nested; /* logged by the sink itself */
};

static void hear(void *arg, const struct tide_log_record *r)
{
    struct heard *h = arg;

    (void)r;
    h->inside++;
    h->n++;
    if (h->nested)
        log_write(TIDE_LOG_ERROR, h->nested);
    h->inside--;
}

static void hear_one(void *arg, const struct tide_log_record *r)
{
    struct heard *h = arg;

    h->n++;
    snprintf(h->last, sizeof(h->last), "%s %s", tide_log_level_name(r->level), r->message);
    for (size_t i = 0; i < r->fields_len; i++)
        snprintf(h->last + strlen(h->last), sizeof(h->last) - strlen(h->last), " %s=%s", r->fields[i].key,
                 r->fields[i].value);
}

static void a_sink_hears_its_level_and_what_is_worse(void **state)
{
    static const struct {
        enum tide_log_level level, written;
        int heard;
    } rows[] = {
        {TIDE_LOG_OFF, TIDE_LOG_ERROR, 0},  {TIDE_LOG_ERROR, TIDE_LOG_ERROR, 1}, {TIDE_LOG_ERROR, TIDE_LOG_WARN, 0},
        {TIDE_LOG_WARN, TIDE_LOG_WARN, 1},  {TIDE_LOG_WARN, TIDE_LOG_INFO, 0},   {TIDE_LOG_INFO, TIDE_LOG_INFO, 1},
        {TIDE_LOG_INFO, TIDE_LOG_DEBUG, 0}, {TIDE_LOG_DEBUG, TIDE_LOG_DEBUG, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct heard h = {.nested = NULL};

        tide_log_set(rows[i].level, hear_one, &h);
        log_write(rows[i].written, "m", log_text("a", "1"), log_text("none", NULL), log_text("b", "2"));
        assert_int_equal(h.n, rows[i].heard);
        if (h.n)
            assert_memory_equal(strchr(h.last, ' '), " m a=1 b=2", 11);
        tide_log_set(TIDE_LOG_DEBUG, NULL, NULL);
        log_write(TIDE_LOG_ERROR, "m");
        assert_int_equal(h.n, rows[i].heard);
        assert_false(log_enabled(TIDE_LOG_ERROR));
    }
}

static void what_a_sink_makes_the_library_log_is_dropped(void **state)
{
    struct heard h = {.nested = "again"};

    (void)state;
    tide_log_set(TIDE_LOG_DEBUG, hear, &h);
    log_write(TIDE_LOG_WARN, "m");
    assert_int_equal(h.n, 1);
    tide_log_set(TIDE_LOG_OFF, NULL, NULL);
}

static void no_set_that_was_taken_away_hides_anything(void **state)
{
    struct secrets *sets[3];
    char line[] = "secret-1 secret-0 secret-2";

    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[2] = {(char)('0' + i), 0}, value[9];

        snprintf(value, sizeof(value), "secret-%d", i);
        sets[i] = secrets_new();
        assert_true(secrets_add(sets[i], str_from(name), str_from(value)));
        log_hide(sets[i]);
    }
    log_unhide(sets[0]);
    secrets_free(sets[0]);
    {
        struct heard h = {.nested = NULL};

        tide_log_set(TIDE_LOG_WARN, hear_one, &h);
        log_write(TIDE_LOG_WARN, line, log_text("k", line));
        tide_log_set(TIDE_LOG_OFF, NULL, NULL);
        assert_string_equal(h.last, "warn [redacted:1] secret-0 [redacted:2] k=[redacted:1] secret-0 [redacted:2]");
    }
    for (int i = 1; i < 3; i++) {
        log_unhide(sets[i]);
        secrets_free(sets[i]);
    }
}

static atomic_bool going;

static void *write_on(void *name)
{
    while (going)
        log_write(TIDE_LOG_WARN, name, log_text("k", "v"));
    return NULL;
}

/* One is set after the other while threads log, and stores come and go: nobody is in the one before. */
static void a_sink_may_go_when_another_is_set(void **state)
{
    static char *const names[THREADS] = {"one", "two", "three", "four"};
    pthread_t threads[THREADS];

    (void)state;
    going = true;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_on, names[i]), 0);
    for (int i = 0; i < 200; i++) {
        struct heard *h = mem_zero(sizeof(*h));
        struct secrets *s = secrets_new();

        log_hide(s);
        tide_log_set(i % 2 ? TIDE_LOG_WARN : TIDE_LOG_DEBUG, hear, h);
        for (int tries = 0; !h->n && tries < 10000; tries++)
            sched_yield();
        tide_log_set(TIDE_LOG_OFF, NULL, NULL);
        assert_true(h->n > 0);
        assert_int_equal(h->inside, 0);
        log_unhide(s);
        secrets_free(s);
        free(h);
    }
    going = false;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_one_line_in_either_format),
        cmocka_unit_test(a_number_is_a_number_and_a_field_without_a_key_is_left_out),
        cmocka_unit_test(the_time_stands_first_when_there_is_a_clock),
        cmocka_unit_test(a_known_secret_is_in_no_record),
        cmocka_unit_test(a_sink_hears_its_level_and_what_is_worse),
        cmocka_unit_test(what_a_sink_makes_the_library_log_is_dropped),
        cmocka_unit_test(no_set_that_was_taken_away_hides_anything),
        cmocka_unit_test(a_sink_may_go_when_another_is_set),
        cmocka_unit_test(records_above_the_level_are_left_out),
        cmocka_unit_test(a_long_value_is_cut_and_the_record_stays_whole),
        cmocka_unit_test(errno_survives_and_a_dead_descriptor_is_no_error),
        cmocka_unit_test(records_of_threads_do_not_mix),
        cmocka_unit_test(what_takes_no_more_loses_records_and_holds_nobody_up),
        cmocka_unit_test(what_cannot_be_opened_once_more_holds_nobody_up_either),
        cmocka_unit_test(what_was_lost_is_told_before_the_next_record),
        cmocka_unit_test(a_full_disk_cuts_no_line),
        cmocka_unit_test(threads_that_lose_records_count_them_together),
    };

    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
