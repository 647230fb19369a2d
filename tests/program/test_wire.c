/* SPDX-License-Identifier: Apache-2.0 */
/* The socket between exec and the commands inside it: frames in pieces, frames that lie, who may come in, results. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/run_inside.h"
#include "kit.h"
#include "program/run_socket.h"
#include "program/frame.h"
#include "program/run_client.h"
#include "program/result.h"
#include "program/run_server.h"

/* ---- frames ---- */

struct pair {
    int in, out;
};

static struct pair pair_make(void)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

static void pair_close(struct pair *p)
{
    close(p->in);
    close(p->out);
}

static void send_bytes(int fd, const void *bytes, size_t n)
{
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
}

static enum frame_got read_all(struct frame_reader *r, int fd)
{
    enum frame_got got = FRAME_LATER;

    for (int i = 0; i < 100 && got == FRAME_LATER; i++)
        got = frame_read(r, fd);
    return got;
}

static void a_frame_arrives_whole(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct frame_reader r = FRAME_READER_INIT;
    struct pair p = pair_make();
    struct frame f;

    (void)state;
    frame_put(&out, STR("{\"a\":1}"), STR("blob\0with nul"));
    send_bytes(p.out, out.ptr, out.len);
    assert_int_equal(read_all(&r, p.in), FRAME_HERE);
    assert_int_equal(frame_look(&r, &f), FRAME_HERE);
    assert_true(str_eq(f.json, STR("{\"a\":1}")));
    assert_true(str_eq(f.blob, STR("blob\0with nul")));
    frame_reader_done(&r);
    buf_done(&out);
    pair_close(&p);
}

static void a_frame_may_come_byte_by_byte_and_the_next_behind_it(void **state)
{
    struct buf out = BUF_INIT(1 << 20);
    struct frame_reader r = FRAME_READER_INIT;
    struct pair p = pair_make();
    struct frame f;

    (void)state;
    frame_put(&out, STR("{}"), STR("x"));
    for (size_t i = 0; i < out.len; i++) {
        assert_int_equal(frame_look(&r, &f), FRAME_LATER);
        send_bytes(p.out, out.ptr + i, 1);
        frame_read(&r, p.in);
    }
    send_bytes(p.out, out.ptr, out.len);
    assert_int_equal(frame_look(&r, &f), FRAME_HERE);
    assert_int_equal(frame_read(&r, p.in), FRAME_HERE); /* it does not read into the next one */
    assert_int_equal(f.blob.len, 1);
    frame_drop(&r);
    assert_int_equal(read_all(&r, p.in), FRAME_HERE);
    frame_reader_done(&r);
    buf_done(&out);
    pair_close(&p);
}

static void lengths_that_cannot_be_are_refused_before_anything_is_allocated(void **state)
{
    static const struct {
        uint32_t json, blob;
        enum frame_got want;
    } rows[] = {
        {0, 0, FRAME_BAD},          {1, 0, FRAME_BAD},          {(1 << 20) + 1, 0, FRAME_BAD},
        {UINT32_MAX, 0, FRAME_BAD}, {2, UINT32_MAX, FRAME_BAD}, {2, (49 << 20) + 1, FRAME_BAD},
        {2, 49 << 20, FRAME_LATER}, {1 << 20, 0, FRAME_LATER},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct frame_reader r = FRAME_READER_INIT;
        struct pair p = pair_make();
        unsigned char head[FRAME_HEAD];

        frame_head(head, rows[i].json, rows[i].blob);
        send_bytes(p.out, head, sizeof head);
        assert_int_equal(frame_read(&r, p.in), rows[i].want);
        assert_true(r.bytes.cap <= 4096);
        frame_reader_done(&r);
        pair_close(&p);
    }
}

static void a_frame_that_is_cut_is_the_end(void **state)
{
    struct frame_reader r = FRAME_READER_INIT;
    struct pair p = pair_make();
    unsigned char head[FRAME_HEAD];

    (void)state;
    frame_head(head, 100, 0);
    send_bytes(p.out, head, sizeof head);
    close(p.out);
    assert_int_equal(frame_read(&r, p.in), FRAME_END);
    frame_reader_done(&r);
    close(p.in);
}

/* ---- the listener ---- */

static void the_socket_lets_in_its_own_user(void **state)
{
    char name[RUN_SOCKET_NAME_SIZE], other[RUN_SOCKET_NAME_SIZE];
    int listener = -1, second = -1, client = -1, server;

    (void)state;
    OK(run_socket_open(&listener, name, &err));
    OK(run_socket_open(&second, other, &err));
    assert_string_not_equal(name, other);
    assert_int_equal(run_socket_accept(listener), -1); /* nobody has come yet */
    OK(run_socket_connect(name, &client, &err));
    server = run_socket_accept(listener);
    assert_true(server >= 0);
    assert_true(fcntl(server, F_GETFL) & O_NONBLOCK);
    close(client);
    close(server);
    close(listener);
    close(second);
    GIVES(TIDE_NOT_FOUND, run_socket_connect(name, &client, &err));
}

static void a_name_that_is_no_runs_socket_is_refused(void **state)
{
    static const char *const names[] = {"", "x", "tidemark-", "tidemark-12", "/tmp/socket"};
    char longer[400];
    int fd;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        GIVES(TIDE_INVALID, run_socket_connect(names[i], &fd, &err));
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    memcpy(longer, "tidemark-", 9);
    GIVES(TIDE_INVALID, run_socket_connect(longer, &fd, &err));
}

static void outside_a_run_the_link_says_how_to_be_inside(void **state)
{
    struct run_client l;

    (void)state;
    unsetenv("TIDEMARK_RUN");
    HINTS(TIDE_INVALID, TIDE_ACTION_START, run_client_open(&l, "step", &err));
    run_client_close(&l);
}

static void an_answer_that_is_an_error_comes_back_as_that_error(void **state)
{
    char name[RUN_SOCKET_NAME_SIZE];
    struct buf out = BUF_INIT(4096);
    struct reply reply;
    struct run_client l;
    int listener, server;

    (void)state;
    OK(run_socket_open(&listener, name, &err));
    setenv("TIDEMARK_RUN", name, 1);
    OK(run_client_open(&l, "step", &err));
    server = run_socket_accept(listener);
    frame_put(&out, STR("{\"error\":\"CHANGED\",\"message\":\"m\"}"), STR(""));
    send_bytes(server, out.ptr, out.len); /* it need not have asked for the answer to be there */
    run_client_begin(&l, "get");
    GIVES(TIDE_CHANGED, run_client_call(&l, STR(""), &reply, &err));
    close(server);
    run_client_begin(&l, "get");
    GIVES(TIDE_IO, run_client_call(&l, STR(""), &reply, &err));
    run_client_close(&l);
    close(listener);
    buf_done(&out);
    unsetenv("TIDEMARK_RUN");
    assert_int_equal(code_by_name(STR("UNSETTLED")), TIDE_UNSETTLED);
    assert_int_equal(code_by_name(STR("OK")), TIDE_FAILED); /* an error is never OK */
    assert_int_equal(code_by_name(STR("NONSENSE")), TIDE_FAILED);
}

/* ---- results ---- */

static void output_comes_back_byte_for_byte(void **state)
{
    static const struct {
        struct str bytes;
        bool exact;
    } rows[] = {
        {{"", 0}, true},
        {{"plain\n", 6}, true},
        {{"quotes \" and \\ and \t\r\n", 22}, true},
        {{"\0\1\2", 3}, true},
        {{"\xc3\xa9\xe2\x82\xac", 5}, true},
        {{"\xff", 1}, false},
        {{"a\xc3", 2}, false},
        {{"\xff\xfe\xfd\xfc", 4}, false},
        {{"ab\xff", 3}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf json = BUF_INIT(1 << 20);
        struct arena a = ARENA_INIT;
        struct str output = {NULL, 0};
        int status = -1;

        result_write(&json, (int)i, rows[i].bytes);
        OK(result_read(&a, buf_view(&json), &status, &output, &err));
        assert_int_equal(status, i);
        assert_true(str_eq(output, rows[i].bytes));
        assert_true(rows[i].exact == !strstr(buf_cstr(&json), "invalid_utf8"));
        arena_done(&a);
        buf_done(&json);
    }
}

static void every_length_of_binary_output_survives(void **state)
{
    char bytes[70];
    struct rng rng = {7};

    (void)state;
    for (size_t n = 1; n <= sizeof bytes; n++) {
        struct buf json = BUF_INIT(1 << 20);
        struct arena a = ARENA_INIT;
        struct str output;
        int status;

        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)rng_next(&rng);
        bytes[0] = '\xff';
        result_write(&json, 0, (struct str){bytes, n});
        OK(result_read(&a, buf_view(&json), &status, &output, &err));
        assert_true(str_eq(output, (struct str){bytes, n}));
        arena_done(&a);
        buf_done(&json);
    }
}

/* What json would blow up six times stays below what one record of the store may have. */
static void output_that_escapes_badly_is_kept_small_and_exact(void **state)
{
    size_t n = (size_t)8 << 20;
    char *bytes = mem_zero(n);
    struct buf json = BUF_INIT(RESULT_MAX_BYTES);
    struct arena a = ARENA_INIT;
    struct str output;
    int status;

    (void)state;
    result_write(&json, 3, (struct str){bytes, n});
    assert_true(json.len < n / 3 * 4 + ((size_t)1 << 20));
    OK(result_read(&a, buf_view(&json), &status, &output, &err));
    assert_true(str_eq(output, (struct str){bytes, n}));
    arena_done(&a);
    buf_done(&json);
    free(bytes);
}

static void a_result_of_another_maker_is_its_own_output(void **state)
{
    struct arena a = ARENA_INIT;
    struct str output;
    int status = -1;

    (void)state;
    OK(result_read(&a, STR("[1,2]"), &status, &output, &err));
    assert_true(str_eq(output, STR("[1,2]")));
    assert_int_equal(status, 0);
    GIVES(TIDE_CORRUPT, result_read(&a, STR("{\"exit\":0,\"output_base64\":\"!!!!\"}"), &status, &output, &err));
    GIVES(TIDE_CORRUPT, result_read(&a, STR("{\"exit\":0,\"output_base64\":\"QUJ\"}"), &status, &output, &err));
    arena_done(&a);
}

/* ---- the run's side ---- */

static void say_frame(int fd, const char *json)
{
    struct buf out = BUF_INIT(1 << 16);

    frame_put(&out, str_from(json), STR("out"));
    send_bytes(fd, out.ptr, out.len);
    buf_done(&out);
}

static int count_completed(void *arg, const struct tide_event *ev)
{
    *(int *)arg += strcmp(ev->kind, "tool.completed") == 0;
    return 0;
}

static void what_a_step_said_before_it_died_counts_when_the_run_closes(void **state)
{
    char dir[256], path[300], name[RUN_SOCKET_NAME_SIZE];
    struct pollfd p[SERVER_CONNS_MAX + 1];
    tide_store *store = NULL;
    tide_session *s = NULL;
    struct run_server server;
    tide_run *run = NULL;
    int listener, step, completed = 0;

    (void)state;
    dir_make(dir);
    snprintf(path, sizeof path, "%s/s.db", dir);
    OK(tide_store_open(
        path, &(struct tide_store_options){.size = sizeof(struct tide_store_options), .flags = TIDE_OPEN_CREATE},
        &store, &err));
    OK(tide_session_create(store, "wire", NULL, &s, &err));
    OK(tide_run_start(s, NULL, &run, &err));
    OK(run_socket_open(&listener, name, &err));
    OK(run_socket_connect(name, &step, &err));
    run_server_init(&server, run, listener);
    say_frame(step, "{\"op\":\"step\",\"name\":\"build\",\"effect\":\"once\",\"pid\":1073741823,\"pid_start\":1}");
    for (int i = 0; i < 100 && run_server_under_way(&server) == 0; i++) {
        size_t n = run_server_wants(&server, p);

        if (poll(p, n, 100) > 0)
            run_server_move(&server, p, n);
    }
    assert_int_equal(run_server_under_way(&server), 1);
    say_frame(step, "{\"op\":\"end\",\"name\":\"build\",\"outcome\":\"completed\",\"exit\":0}");
    close(step);
    run_server_close(&server);
    OK(tide_session_read(s, 0, 1, 0, count_completed, &completed, &err));
    assert_int_equal(completed, 1);
    tide_run_close(run);
    tide_session_close(s);
    tide_store_close(store);
    dir_remove(dir);
}

static void *let_in_and_leave(void *arg)
{
    struct pollfd p = {.fd = *(int *)arg, .events = POLLIN};

    assert_int_equal(poll(&p, 1, -1), 1);
    close(run_socket_accept(p.fd));
    return NULL;
}

static int no_signals(void *arg)
{
    (void)arg;
    return -1;
}

static void a_step_whose_run_ends_is_named(void **state)
{
    char *argv[] = {"true", NULL}, name[RUN_SOCKET_NAME_SIZE];
    struct inside_step step = {.name = "pay", .effect = "once", .argv = argv, .echo = -1, .signals = no_signals};
    pthread_t run;
    int fd = -1;

    (void)state;
    OK(run_socket_open(&fd, name, &err));
    assert_int_equal(setenv(RUN_SOCKET_ENV, name, 1), 0);
    assert_int_equal(pthread_create(&run, NULL, let_in_and_leave, &fd), 0);
    ABOUT(TIDE_FAILED, TIDE_SUBJECT_STEP, "pay", inside_step(&step, &err));
    assert_int_equal(pthread_join(run, NULL), 0);
    assert_int_equal(unsetenv(RUN_SOCKET_ENV), 0);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_arrives_whole),
        cmocka_unit_test(a_frame_may_come_byte_by_byte_and_the_next_behind_it),
        cmocka_unit_test(lengths_that_cannot_be_are_refused_before_anything_is_allocated),
        cmocka_unit_test(a_frame_that_is_cut_is_the_end),
        cmocka_unit_test(the_socket_lets_in_its_own_user),
        cmocka_unit_test(a_name_that_is_no_runs_socket_is_refused),
        cmocka_unit_test(outside_a_run_the_link_says_how_to_be_inside),
        cmocka_unit_test(an_answer_that_is_an_error_comes_back_as_that_error),
        cmocka_unit_test(output_comes_back_byte_for_byte),
        cmocka_unit_test(every_length_of_binary_output_survives),
        cmocka_unit_test(output_that_escapes_badly_is_kept_small_and_exact),
        cmocka_unit_test(a_result_of_another_maker_is_its_own_output),
        cmocka_unit_test(a_step_whose_run_ends_is_named),
        cmocka_unit_test(what_a_step_said_before_it_died_counts_when_the_run_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
