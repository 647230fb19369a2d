/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/signed_request.h"

#include "session/cause_sign.h"
#include "session/session.h"

void request_digest_begin(tide_store *store, struct digest_state *d)
{
    digest_begin(d, &store_of(store)->origin.user);
    digest_add_str(d, STR("tidemark request"));
}

void request_sign(tide_session *session, const struct cause *request)
{
    session->cause = *request;
}

enum tide_code request_cancel(tide_store *store, const char *id, const struct cause *request, const char *reason,
                              int wait_ms, enum tide_cancelled *ret_how, struct tide_err *err)
{
    return session_cancel(store, id, request, reason, wait_ms, ret_how, err);
}

struct search {
    struct str id;
    struct arena scratch;
    struct arena *keep;
    int64_t seq;
    struct json *event;
};

static int is_request(void *arg, const struct event *ev)
{
    struct search *f = arg;
    struct json *v = NULL;

    arena_reset(&f->scratch);
    if (json_parse(&f->scratch, ev->body, NULL, &v, NULL, NULL) ||
        !str_eq(json_get_text(&f->scratch, json_get(v, STR("request")), STR("id")), f->id))
        return 0;
    f->seq = ev->seq;
    (void)!json_parse(f->keep, arena_dup(f->keep, ev->body), NULL, &f->event, NULL, NULL); /* it was parsed before */
    return 1;
}

enum tide_code request_find(tide_session *s, struct arena *a, const char *id, int64_t from, int64_t *ret_seq,
                            struct json **ret_event, struct tide_err *err)
{
    struct search f = {.id = str_from(id), .scratch = ARENA_INIT, .keep = a};
    enum tide_code code = session_sync(s, err);

    code = code ? code : store_read(s->store, &s->head, from, 0, is_request, &f, err);
    arena_done(&f.scratch);
    *ret_seq = code ? 0 : f.seq;
    *ret_event = f.event;
    return code;
}
