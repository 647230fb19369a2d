/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/resume.h"

#include <stdio.h>

#include "base/json.h"
#include "base/yes_no.h"
#include "session/session.h"
#include "session/status.h"

enum tide_code resume_refuse_no_graph(tide_session *session, const char *option, struct tide_err *err)
{
    struct tide_text text = {NULL, 0};

    if (tide_session_program(session, &text, err) == TIDE_CORRUPT)
        return err->code; /* nobody knows what it runs */
    tide_text_done(&text);
    return tide_fail_session(err, TIDE_INVALID, tide_session_id(session), "runs no graph: --%s is for graphs", option);
}

enum tide_session_kind session_kind_of(const tide_session *session)
{
    return session_kind(session->state);
}

enum tide_code resume_give_reason(const char *input, const char *reason, struct buf *ret, struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct json *answer = NULL;

    if (!input)
        return tide_fail(err, TIDE_INVALID, "--reason: it goes with an answer: give --input yes or no");
    if (!str_is_utf8(str_from(reason), NULL))
        return tide_fail(err, TIDE_INVALID, "--reason: it is not valid UTF-8");
    if (json_parse(&a, str_from(input), NULL, &answer, NULL, err))
        return tide_wrap(err, "the answer");
    if (answer->type == JSON_OBJECT)
        return tide_fail(err, TIDE_INVALID, "--reason: put it into the answer, as its member \"reason\"");
    yes_no_put_reason(ret, str_from(input), str_from(reason));
    return ret->failed ? tide_fail(err, TIDE_TOO_BIG, "--reason: it is too long") : TIDE_OK;
}

/* Any text answers other waits: there it would become part of the answer. */
static enum tide_code check_reason(const tide_session *session, const struct resume_request *ask, struct tide_err *err)
{
    const struct run *r = &session->state->ledger.run;
    const char *kind = r->waiting && r->wait_kind ? r->wait_kind : "";

    if (!ask->has_reason || strcmp(kind, tide_wait_kind_name(TIDE_WAIT_APPROVAL)) == 0)
        return TIDE_OK;
    return tide_fail_session(err, TIDE_INVALID, ask->id, "waits for no yes or no: omit --reason");
}

enum tide_code resume_kind(tide_session *session, const struct resume_request *ask, enum tide_session_kind *ret_kind,
                           struct tide_err *err)
{
    *ret_kind = session ? session_kind_of(session) : TIDE_KIND_GRAPH;
    if (!session && (ask->now || ask->accept_change || ask->request_id))
        return err->code; /* of a program: only the log of a graph is gone on with before its damage */
    if (session && check_reason(session, ask, err))
        return err->code;
    if (*ret_kind == TIDE_KIND_GRAPH && (ask->now || ask->accept_change || ask->request_id))
        return tide_fail_session(err, TIDE_INVALID, ask->id,
                                 "runs a graph: --now, --accept-change and --request-id are for programs");
    if (*ret_kind == TIDE_KIND_GRAPH)
        return TIDE_OK;
    if (ask->no_input || ask->values)
        return resume_refuse_no_graph(session, ask->no_input ? "no-input" : "set", err);
    if (*ret_kind == TIDE_KIND_CHAT &&
        ((ask->retry && *ask->retry) || (ask->happened && *ask->happened) || ask->now || ask->accept_change))
        return tide_fail_session(err, TIDE_INVALID, ask->id,
                                 "is a chat: --retry, --happened, --now and --accept-change are for programs");
    if (*ret_kind == TIDE_KIND_CHAT && ask->request_id) /* rather than pass over what was asked for */
        return tide_fail_session(err, TIDE_INVALID, ask->id,
                                 "is a chat: --request-id is for programs; --token makes an answer count once");
    if (*ret_kind != TIDE_KIND_CHAT && ask->keep_pause)
        return tide_fail_session(err, TIDE_INVALID, ask->id, "runs a program: --keep-pause is for chats and graphs");
    return TIDE_OK;
}

enum tide_code send_kind(tide_session *session, enum tide_session_kind *ret_kind, struct tide_err *err)
{
    const struct tide_session_info *info;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    *ret_kind = TIDE_KIND_PROGRAM;
    if (info->kind == TIDE_KIND_CHAT) /* one that somebody runs takes the message from its queue */
        *ret_kind = info->holder ? TIDE_KIND_LOG : TIDE_KIND_CHAT;
    if (info->kind == TIDE_KIND_GRAPH) /* a message is for what waits */
        *ret_kind = info->status == TIDE_STATUS_WAITING ? TIDE_KIND_GRAPH : TIDE_KIND_LOG;
    return TIDE_OK;
}

enum tide_code send_queue(tide_store *store, const char *session, struct str content, char ret_queue_id[QUEUE_ID_SIZE],
                          int64_t *ret_seq, struct tide_err *err)
{
    AUTO(buf_done) struct buf body = BUF_INIT(content.len + 4096);
    struct json_out o = json_out_to(&body);
    char id[TIDE_ID_SIZE];

    session_make_id(store_of(store), "q", id);
    snprintf(ret_queue_id, QUEUE_ID_SIZE, "%.*s", QUEUE_ID_SIZE - 1, id);
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("queue_id"), str_from(ret_queue_id));
    json_out_kraw(&o, STR("content"), content);
    json_out_end(&o, '}');
    return tide_session_input(store, session, -1, &(struct tide_new_event){"queue.added", buf_cstr(&body), body.len}, 1,
                              ret_seq, err);
}
