/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/message_queue.h"

#include "base/json.h"
#include "session/session.h"

struct reading {
    struct arena arena;
    struct queued_message m;
};

static int take_content(void *arg, const struct tide_event *ev)
{
    struct reading *r = arg;
    const struct json *content;
    struct json *body = NULL;

    r->m.ts_ms = ev->ts_ms;
    if (json_parse(&r->arena, (struct str){ev->body, ev->body_len}, NULL, &body, NULL, NULL))
        return 1;
    content = json_get(body, STR("content"));
    if (content)
        r->m.content =
            arena_dup(&r->arena, content->type == JSON_STRING ? json_text(&r->arena, content) : json_source(content));
    return 1;
}

enum tide_code message_queue_list(tide_session *session, queued_message_fn *fn, void *arg, struct tide_err *err)
{
    const struct map *queue = &session->state->ledger.queue;

    for (struct map_entry *e = map_next(queue, NULL); e; e = map_next(queue, e)) {
        struct reading r = {.arena = ARENA_INIT, .m = {.seq = *(const int64_t *)e->value, .content = STR("")}};
        enum tide_code code = tide_session_read(session, 0, r.m.seq, r.m.seq, take_content, &r, err);

        r.m.queue_id = arena_dup(&r.arena, map_key(e)).ptr;
        if (!code)
            fn(arg, &r.m);
        arena_done(&r.arena);
        if (code)
            return code;
    }
    return TIDE_OK;
}

enum tide_code message_queue_withdraw(tide_store *store, tide_session *session, const char *queue_id,
                                      const struct cause *request, int64_t *ret_seq, struct tide_err *err)
{
    const char *id = tide_session_id(session);
    AUTO(buf_done) struct buf body = BUF_INIT(4096);
    struct json_out o = json_out_to(&body);
    const struct tide_session_info *info;

    if (tide_session_get_info(session, &info, err))
        return err->code;
    if (!map_get(&session->state->ledger.queue, str_from(queue_id)))
        return tide_fail_session(err, TIDE_NOT_FOUND, id, "has no message '%.60s' in its queue", queue_id);
    if (info->holder) { /* it may be taken at any moment */
        tide_fail_session(err, TIDE_HELD, id, "is held by %.100s, which may take the message", info->holder);
        return tide_hint(err, TIDE_ACTION_CANCEL, id);
    }
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("queue_id"), str_from(queue_id));
    cause_put(&o, request);
    json_out_end(&o, '}');
    return tide_session_input(store, id, tide_session_last_seq(session),
                              &(struct tide_new_event){"queue.withdrawn", buf_cstr(&body), body.len}, 1, ret_seq, err);
}

enum tide_code message_queue_count(tide_session *session, int64_t *ret_n, struct tide_err *err)
{
    if (tide_session_refresh(session, err))
        return err->code;
    *ret_n = (int64_t)session->state->ledger.queue.live;
    return TIDE_OK;
}
