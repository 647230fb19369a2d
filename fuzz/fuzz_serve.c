/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any requests to a run, from several processes at once, as whoever runs inside it can make them. Each line is one: a digit
 * (which process), the JSON, and behind a tab the blob; a digit alone: that process goes away. Then the same program is
 * executed again. Every answer is JSON, the run is never lost by a request, and the log verifies at the end.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_store.h"
#include "program/run_socket.h"
#include "program/run_server.h"

enum { CLIENTS = 4, ROUNDS = 3 };

struct client {
    int fd; /* -1: not connected */
    struct frame_reader in;
};

static void open_session(tide_store *store, unsigned create, tide_session **ret)
{
    if (create)
        MUST(tide_session_create(store, "serve", NULL, ret, NULL) == TIDE_OK);
    else
        MUST(tide_session_open(store, "serve", TIDE_SESSION_APPEND, ret, NULL) == TIDE_OK);
}

/* A disk with a session that nothing has run in, made once. */
static const struct sim_image *session_store(void)
{
    static struct sim_image *image;

    if (!image) {
        struct sim *sim = sim_new_from(1, empty_store());
        tide_store *store = open_store(sim);
        tide_session *s = NULL;

        open_session(store, 1, &s);
        tide_session_close(s);
        tide_store_close(store);
        image = sim_image_take(sim);
        sim_free(sim);
    }
    return image;
}

/* ---- the processes inside --------------------------------------------------------------------------------------------- */

static void take_answers(struct client *c)
{
    struct arena a = ARENA_INIT;
    struct json *json;
    struct frame frame;
    size_t before;

    do {
        before = c->in.bytes.len;
        if (frame_read(&c->in, c->fd) == FRAME_HERE) {
            MUST(frame_look(&c->in, &frame) == FRAME_HERE);
            MUST(json_parse(&a, frame.json, NULL, &json, NULL, NULL) == TIDE_OK && json->type == JSON_OBJECT);
            frame_drop(&c->in);
            before = SIZE_MAX;
        }
    } while (c->in.bytes.len != before);
    arena_done(&a);
}

static void leave(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    frame_reader_done(&c->in);
}

static void ask(struct client *c, const char *listener, struct str line)
{
    const char *tab = memchr(line.ptr, '\t', line.len);
    struct str json = {line.ptr, tab ? (size_t)(tab - line.ptr) : line.len};
    struct str blob = tab ? (struct str){tab + 1, line.len - json.len - 1} : STR("");
    struct buf out = BUF_INIT(SIZE_MAX / 4);

    if (c->fd < 0) {
        MUST(run_socket_connect(listener, &c->fd, NULL) == TIDE_OK);
        MUST(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
    }
    frame_put(&out, json, blob);
    (void)!send(c->fd, out.ptr, out.len, MSG_NOSIGNAL); /* more than fits: the rest is missing, which is a case too */
    buf_done(&out);
}

/* ---- the run ------------------------------------------------------------------------------------------------------------ */

static void move(struct run_server *server)
{
    static struct pollfd fds[SERVER_CONNS_MAX + 1];

    for (int i = 0; i < ROUNDS; i++) {
        size_t n = run_server_wants(server, fds);

        MUST(poll(fds, n, 0) >= 0);
        run_server_move(server, fds, n);
        MUST(!server->lost);
    }
}

static void serve_lines(struct run_server *server, const char *listener, struct str text)
{
    struct client clients[CLIENTS];

    for (size_t i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){-1, FRAME_READER_INIT};
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        struct client *c = line.len ? &clients[(unsigned char)line.ptr[0] % CLIENTS] : NULL;

        if (c && line.len > 1)
            ask(c, listener, (struct str){line.ptr + 1, line.len - 1});
        else if (c)
            leave(c);
        move(server);
        if (c && c->fd >= 0)
            take_answers(c);
        text = (struct str){line.ptr + line.len + (end != NULL), text.len - line.len - (end != NULL)};
    }
    for (size_t i = 0; i < CLIENTS; i++)
        leave(&clients[i]);
    move(server);
    run_server_close(server);
}

/* One execution of the program: what it asks for, from its start. */
static void execute(tide_session *s, struct str text, bool again)
{
    const struct tide_run_options opt = {
        .size = sizeof opt, .fields = "{\"argv\":[\"x\"],\"cwd\":\"/\"}", .input = again ? "\"yes\"" : NULL};
    const struct tide_run_result failed = {.size = sizeof failed, .outcome = TIDE_OUTCOME_FAILED, .error_code = "exit"};
    struct run_server server;
    char name[RUN_SOCKET_NAME_SIZE];
    tide_run *run = NULL;
    int listener = -1;
    enum tide_code code = again ? tide_run_resume(s, &opt, NULL, &run, NULL) : tide_run_start(s, &opt, &run, NULL);

    MUST(again || code == TIDE_OK); /* one that slept, or whose processes seem to live, is not resumed */
    if (code)
        return;
    MUST(run_socket_open(&listener, name, NULL) == TIDE_OK);
    run_server_init(&server, run, listener);
    serve_lines(&server, name, text);
    if (!server.park.parked)
        MUST(tide_run_end(run, &failed, NULL) == TIDE_OK);
    tide_run_close(run);
    MUST(tide_session_verify(s, NULL, NULL, NULL, NULL) == TIDE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim *sim = sim_new_from(3, session_store());
    tide_store *store = open_store(sim);
    struct str text = {(const char *)data, size};
    tide_session *s = NULL;

    open_session(store, 0, &s);
    execute(s, text, false);
    execute(s, text, true);
    tide_session_close(s);
    MUST(tide_store_check(store, 0, NULL, NULL, NULL, NULL) == TIDE_OK);
    tide_store_close(store);
    sim_free(sim);
    return 0;
}
