/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections. Each is one process of ours inside the run; when it goes away with a step under way, that step was killed, and the
 * log has it.
 *
 * A request stays in its reader until it is answered (run_requests.c): one that is held costs nothing but the look whether it still is.
 */
#include "program/run_server.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/invariant.h"
#include "program/run_requests.h"
#include "program/run_socket.h"
#include "program/tree.h"

#define OUT_MAX (FRAME_HEAD + FRAME_JSON_MAX + FRAME_BLOB_MAX)
#define HEAR_MAX 4096 /* reads: more than a socket holds */

void run_server_init(struct run_server *s, tide_run *run, int listener)
{
    *s = (struct run_server){.run = run, .listener = listener};
}

size_t run_server_under_way(const struct run_server *s)
{
    size_t n = 0;

    for (const struct conn *c = s->conns; c; c = c->next)
        n += c->step[0] != '\0';
    return n;
}

/* Answers the request that has been gathered, or holds it. */
static void try_serve(struct run_server *s, struct conn *c)
{
    struct request r = {.s = s, .c = c, .arena = ARENA_INIT, .reply = BUF_INIT(FRAME_JSON_MAX)};
    struct json *json = NULL;
    struct frame frame;

    if (c->out.len > c->out_at || frame_look(&c->in, &frame) != FRAME_HERE)
        return;
    if (json_parse(&r.arena, frame.json, NULL, &json, NULL, &r.err)) {
        c->ended = true;
    } else {
        r.json = json;
        r.blob = frame.blob;
        c->held = !run_request_answer(&r);
        if (!c->held)
            frame_drop(&c->in);
    }
    buf_done(&r.reply);
    arena_done(&r.arena);
}

/* The process that did the step is gone. Whether a `once` had happened by then, nobody knows. */
static void record_killed(struct run_server *s, struct conn *c)
{
    struct tide_step_result result = {
        .size = sizeof result,
        .outcome = c->once && c->begun ? TIDE_OUTCOME_UNKNOWN : TIDE_OUTCOME_FAILED,
        .error_code = "killed",
        .error_message = "the process that ran it was killed",
    };
    struct tide_err err = {0};

    if (!c->step[0] || s->park.parked || s->lost)
        return;
    run_note_step(s, c->step, true);
    if (c->begun) /* its death took only the first process of its program along */
        tree_end_group(tide_run_id(s->run), c->group);
    if (tide_step_end(s->run, c->step, &result, NULL, &err) == TIDE_FENCED) {
        s->lost = true;
        s->err = err;
    }
    run_step_over(c);
}

static void leave_conn(struct run_server *s, struct conn **at)
{
    struct conn *c = *at;

    record_killed(s, c);
    if (s->waiter == c)
        s->waiter = NULL;
    *at = c->next;
    s->n_conns--;
    close(c->fd);
    frame_reader_done(&c->in);
    buf_done(&c->out);
    free(c);
}

static void send_out(struct conn *c)
{
    ssize_t n = c->out.len > c->out_at
                    ? send(c->fd, c->out.ptr + c->out_at, c->out.len - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT)
                    : 0;

    c->out_at += n > 0 ? (size_t)n : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        c->out_at = c->out.len; /* its end comes by reading */
    if (c->out_at == c->out.len && c->out.len > 0) {
        buf_done(&c->out);
        c->out = (struct buf)BUF_INIT(OUT_MAX);
        c->out_at = 0;
    }
}

static void receive_frames(struct run_server *s, struct conn *c, short events)
{
    enum frame_got got = FRAME_LATER;

    if (c->held) {
        c->ended = events & (POLLRDHUP | POLLHUP | POLLERR);
        return;
    }
    if (events & (POLLIN | POLLHUP | POLLRDHUP | POLLERR))
        got = frame_read(&c->in, c->fd);
    c->ended = got == FRAME_END || got == FRAME_BAD;
    if (got == FRAME_HERE)
        try_serve(s, c);
}

static void enter_conn(struct run_server *s, int fd)
{
    struct conn *c = mem_zero(sizeof(*c));

    *c = (struct conn){.next = s->conns, .fd = fd, .slot = -1, .in = FRAME_READER_INIT, .out = BUF_INIT(OUT_MAX)};
    s->conns = c;
    s->n_conns++;
    receive_frames(s, c, POLLIN); /* what connects has something to say: one round of the loop is saved */
    send_out(c);
}

size_t run_server_wants(struct run_server *s, struct pollfd fds[SERVER_CONNS_MAX + 1])
{
    size_t n = 0;

    fds[n++] = (struct pollfd){.fd = s->n_conns < SERVER_CONNS_MAX ? s->listener : -1, .events = POLLIN};
    for (struct conn *c = s->conns; c; c = c->next) {
        short events = c->out.len > c->out_at ? POLLOUT : c->held ? POLLRDHUP : POLLIN;

        c->slot = (int)n;
        INVARIANT(n <= SERVER_CONNS_MAX);
        fds[n++] = (struct pollfd){.fd = c->fd, .events = events};
    }
    INVARIANT(n == s->n_conns + 1);
    return n;
}

void run_server_move(struct run_server *s, const struct pollfd *fds, size_t n)
{
    for (struct conn *c = s->conns; c; c = c->next) {
        short events = c->slot >= 0 && (size_t)c->slot < n ? fds[c->slot].revents : 0;

        if (events & POLLOUT)
            send_out(c);
        else if (events)
            receive_frames(s, c, events);
    }
    for (struct conn **at = &s->conns; *at;) {
        if ((*at)->ended)
            leave_conn(s, at);
        else
            at = &(*at)->next;
    }
    /* Held requests are looked at again after everything else: what held them may be over now. */
    for (struct conn *c = s->conns; c; c = c->next) {
        if (c->held && !c->ended)
            try_serve(s, c);
        send_out(c);
    }
    if (n > 0 && fds[0].revents)
        for (int fd; s->n_conns < SERVER_CONNS_MAX && (fd = run_socket_accept(s->listener)) >= 0;)
            enter_conn(s, fd);
}

void run_server_close(struct run_server *s)
{
    s->closing = true;
    while (s->conns) {
        struct conn *c = s->conns;
        struct pollfd p = {.fd = c->fd, .events = POLLIN};

        /* What it said before it died counts, though it came after the last look. One that lives elsewhere may speak for
         * ever. */
        for (int i = 0; i < HEAR_MAX && !c->ended && !c->held && c->out.len == c->out_at && poll(&p, 1, 0) > 0; i++) {
            receive_frames(s, c, p.revents);
            send_out(c);
        }
        leave_conn(s, &s->conns);
    }
    INVARIANT(!s->n_conns && !s->waiter);
    if (s->listener >= 0)
        close(s->listener);
    s->listener = -1;
}
