/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of the run's socket: blocking, one request, one answer. */
#include "program/run_client.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program/run_socket.h"

enum tide_code code_by_name(struct str name)
{
    static const char *const names[] = {
#define CODE_NAME(name, number, exit, http, retry, text) #name,
        TIDE_CODES(CODE_NAME)
#undef CODE_NAME
    };

    for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(name, str_from(names[i])))
            return (enum tide_code)i;
    return TIDE_FAILED;
}

enum tide_code run_client_open(struct run_client *l, const char *command, struct tide_err *err)
{
    const char *name = getenv(RUN_SOCKET_ENV);

    *l = (struct run_client){.fd = -1, .reader = FRAME_READER_INIT, .request = BUF_INIT(FRAME_JSON_MAX)};
    if (!name || !*name) {
        tide_fail(err, TIDE_INVALID, "%s: not inside a run", command);
        return tide_hint(err, TIDE_ACTION_START, "");
    }
    return run_socket_connect(name, &l->fd, err) ? tide_wrap(err, "%s", command) : TIDE_OK;
}

bool run_client_is_nested(void)
{
    const char *step = getenv(STEP_ENV);

    return step && *step;
}

void run_client_close(struct run_client *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    frame_reader_done(&l->reader);
    buf_done(&l->request);
    arena_done(&l->arena);
}

void run_client_begin(struct run_client *l, const char *op)
{
    buf_clear(&l->request);
    l->o = json_out_to(&l->request);
    json_out_begin(&l->o, '{');
    json_out_kstr(&l->o, STR("op"), str_from(op));
}

static enum tide_code gone(struct tide_err *err)
{
    return tide_fail(err, TIDE_IO, "the run has ended");
}

/* All of it, in one piece where that goes; a signal does not cut a request in two. */
static enum tide_code send_all(int fd, struct str head, struct str blob, struct tide_err *err)
{
    while (head.len + blob.len > 0) {
        struct iovec parts[] = {{(char *)(uintptr_t)head.ptr, head.len}, {(char *)(uintptr_t)blob.ptr, blob.len}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        size_t of_head, n = sent > 0 ? (size_t)sent : 0;

        if (sent < 0 && errno != EINTR)
            return gone(err);
        of_head = n < head.len ? n : head.len;
        head = (struct str){head.ptr + of_head, head.len - of_head};
        blob = (struct str){blob.ptr + n - of_head, blob.len - (n - of_head)};
    }
    return TIDE_OK;
}

static enum tide_code send_request(struct run_client *l, struct str blob, struct tide_err *err)
{
    AUTO(buf_done) struct buf head = BUF_INIT(FRAME_HEAD + FRAME_JSON_MAX);
    unsigned char lengths[FRAME_HEAD];

    json_out_end(&l->o, '}');
    if (l->request.failed || blob.len > FRAME_BLOB_MAX)
        return tide_fail(err, TIDE_TOO_BIG, "the request is larger than a run takes");
    frame_head(lengths, l->request.len, blob.len);
    buf_add(&head, lengths, sizeof(lengths));
    buf_add_str(&head, buf_view(&l->request));
    return send_all(l->fd, buf_view(&head), blob, err);
}

static enum tide_code receive_frame(struct run_client *l, struct frame *ret_frame, struct tide_err *err)
{
    for (;;) {
        errno = 0;
        switch (frame_read(&l->reader, l->fd)) {
        case FRAME_HERE:
            frame_look(&l->reader, ret_frame);
            return TIDE_OK;
        case FRAME_LATER:
            if (errno == EINTR)
                return tide_fail(err, TIDE_CANCELLED, "stopped");
            break;
        case FRAME_END:
        case FRAME_BAD:
            return gone(err);
        }
    }
}

static enum tide_code take_error(struct run_client *l, const struct json *reply, enum tide_code code,
                                 struct tide_err *err)
{
    const struct json *hints = json_get(reply, STR("hints")), *detail = json_get(reply, STR("detail"));
    enum tide_subject subject = (enum tide_subject)json_get_int(detail, STR("subject"), 0);
    size_t i = 0;

    tide_fail(err, code, "%.*s", STR_ARG(json_get_text(&l->arena, reply, STR("message"))));
    tide_about_session(err, arena_dup(&l->arena, json_get_text(&l->arena, detail, STR("session_id"))).ptr);
    tide_about(err, subject, arena_dup(&l->arena, json_get_text(&l->arena, detail, STR("name"))).ptr);
    tide_about_position(err, subject, json_get_int(detail, STR("position"), 0));
    for (const struct json *h = hints ? hints->first : NULL; h && i < 2; h = h->next, i++) {
        struct str id = json_get_text(&l->arena, h, STR("session_id")), members = STR("");
        const struct json *arguments = json_get(h, STR("arguments"));

        if (arguments && arguments->type == JSON_OBJECT)
            members = json_source(arguments);
        tide_hint_with(err, (enum tide_action)json_get_int(h, STR("action"), 0), arena_dup(&l->arena, id).ptr, "%.*s",
                       members.len > 2 ? (int)members.len - 2 : 0, members.len > 2 ? members.ptr + 1 : "");
        err->hints[i].kind = (enum tide_session_kind)json_get_int(h, STR("kind"), 0);
    }
    return code;
}

enum tide_code run_client_call(struct run_client *l, struct str blob, struct reply *ret_reply, struct tide_err *err)
{
    struct frame frame;
    struct json *json = NULL;
    struct str code;

    frame_drop(&l->reader);
    arena_reset(&l->arena);
    if (send_request(l, blob, err) || receive_frame(l, &frame, err) ||
        json_parse(&l->arena, frame.json, NULL, &json, NULL, err))
        return err->code;
    code = json_get_text(&l->arena, json, STR("error"));
    if (code.len > 0)
        return take_error(l, json, code_by_name(code), err);
    *ret_reply = (struct reply){json, frame.blob};
    return TIDE_OK;
}
