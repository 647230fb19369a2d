/* SPDX-License-Identifier: Apache-2.0 */
/* Reading for callers: ranges, all sessions, messages along the spans, failures, usage, state. */
#include <inttypes.h>

#include "base/json.h"
#include "session/session.h"
#include "session/status.h"
#include "session/usage_json.h"

struct event_out {
    const char *session_id;
    tide_event_fn *fn;
    void *arg;
};

/* In the public form. */
static int hand_out_event(void *arg, const struct event *ev)
{
    const struct event_out *o = arg;
    struct tide_event out = {
        .seq = ev->seq,
        .pos = ev->pos,
        .ts_ms = ev->ts_ms,
        .epoch = ev->epoch,
        .session_id = o->session_id,
        .kind = ev->kind.ptr,
        .body = ev->body.ptr,
        .body_len = ev->body.len,
    };

    memcpy(out.digest, ev->digest, sizeof out.digest);
    return o->fn(o->arg, &out);
}

enum tide_code tide_event_write_json(const struct tide_event *event, struct tide_text *ret_json, struct tide_err *err)
{
    struct event ev = {.seq = event->seq,
                       .ts_ms = event->ts_ms,
                       .kind = str_from(event->kind),
                       .body = {event->body, event->body_len}};
    struct buf out = BUF_INIT(SIZE_MAX / 4);

    (void)err;
    event_write_json(&out, &ev, STR(""));
    ret_json->len = out.len;
    ret_json->ptr = buf_take(&out);
    return TIDE_OK;
}

enum tide_code tide_session_read(tide_session *s, unsigned flags, int64_t from, int64_t to, tide_event_fn *fn,
                                 void *arg, struct tide_err *err)
{
    struct event_out out = {s->head.id, fn, arg};

    ERR_LOCAL(err);
    if (from < 0 || to < 0)
        return tide_fail(err, TIDE_INVALID, "a seq is 1 or more");
    if (!(s->flags & TIDE_SESSION_LOG) && (group_owes(&s->owner) || s->stale || s->head.last_seq < s->state->seq)) {
        enum tide_code code = session_sync(s, err);

        if (code)
            return code;
    }
    if (flags & TIDE_READ_INHERITED)
        return read_through(s->store, &s->head, from ? from : 1, to, hand_out_event, &out, err);
    return to && to < s->head.first_seq ? TIDE_OK : store_read(s->store, &s->head, from, to, hand_out_event, &out, err);
}

/* For the caller of the handle, until the next one. */
static int keep_event(void *arg, const struct tide_event *ev)
{
    struct tide_session *s = arg;
    struct arena *a = &s->event_texts;

    s->event = mem_zero(sizeof *s->event);
    *s->event = *ev;
    s->event->session_id = arena_dup(a, str_from(ev->session_id)).ptr;
    s->event->kind = arena_dup(a, str_from(ev->kind)).ptr;
    s->event->body = arena_dup(a, (struct str){ev->body, ev->body_len}).ptr;
    return 1;
}

enum tide_code tide_session_get_event(tide_session *s, int64_t seq, const struct tide_event **ret_event,
                                      struct tide_err *err)
{
    enum tide_code code;

    ERR_LOCAL(err);
    if (seq < 1)
        return tide_fail(err, TIDE_INVALID, "a seq is 1 or more");
    arena_reset(&s->event_texts);
    free(s->event);
    s->event = NULL;
    code = tide_session_read(s, TIDE_READ_INHERITED, seq, seq, keep_event, s, err);
    if (code)
        return code;
    if (!s->event) {
        tide_fail(err, TIDE_NOT_FOUND, "session '%s' has no event %" PRId64 " yet: it ends at %" PRId64, s->head.id,
                  seq, s->head.last_seq);
        tide_about_position(err, TIDE_SUBJECT_EVENT, seq);
        return tide_about_session(err, s->head.id);
    }
    *ret_event = s->event;
    return TIDE_OK;
}

struct all_out {
    struct head session;
    tide_event_fn *fn;
    void *arg;
};

static int hand_out_all(void *arg, const struct event *ev)
{
    struct all_out *a = arg;
    struct event_out out = {a->session.id, a->fn, a->arg};

    return hand_out_event(&out, ev);
}

enum tide_code tide_store_read(tide_store *store, int64_t after, uint64_t max, tide_event_fn *fn, void *arg,
                               struct tide_err *err)
{
    struct store *s = store_of(store);
    struct all_out all = {.fn = fn, .arg = arg};

    ERR_LOCAL(err);
    return store_read_all(s, after, max, &all.session, hand_out_all, &all, err);
}

struct chosen_out {
    struct event_out out;
    unsigned flag; /* enum kind_flags that selects */
    bool stopped;
};

static int hand_out_chosen(void *arg, const struct event *ev)
{
    struct chosen_out *c = arg;
    const struct kind *k = kind_find(ev->kind);

    if (k && k->flags & c->flag)
        c->stopped = hand_out_event(&c->out, ev) != 0;
    return c->stopped;
}

enum tide_code tide_session_read_messages(tide_session *s, int64_t seq, tide_event_fn *fn, void *arg,
                                          struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    const struct state *state;
    struct chosen_out c = {.flag = KIND_MESSAGE};
    AUTO(mem_freep) struct span *spans = NULL;
    size_t count = 0;
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_state(s, seq, &own, &state, err);
    if (!code) { /* a copy: the callback may change the handle's state */
        count = state->content.span_count;
        spans = mem_array(count + 1, sizeof *spans);
        if (count)
            memcpy(spans, state->content.spans, count * sizeof *spans);
    }
    for (size_t i = 0; !code && !c.stopped && i < count; i++) {
        struct span span = spans[i];
        struct head h;

        code = history_writer(s->store, &s->head, span.session, &h, err);
        c.out = (struct event_out){span.session, fn, arg};
        if (!code)
            code = store_read(s->store, &h, span.from, span.to, hand_out_chosen, &c, err);
    }
    return code;
}

enum tide_code tide_session_read_errors(tide_session *s, tide_event_fn *fn, void *arg, struct tide_err *err)
{
    struct chosen_out c = {{s->head.id, fn, arg}, KIND_FAILURE, false};
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_sync(s, err);
    return code ? code : store_read(s->store, &s->head, 0, 0, hand_out_chosen, &c, err);
}

enum tide_code tide_session_get_usage(tide_session *s, int64_t seq, struct tide_usage *ret_usage, struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    const struct state *state;
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_state(s, seq, &own, &state, err);
    if (!code)
        *ret_usage = usage_of(&state->ledger);
    return code;
}

static void put_status(struct buf *out, struct tide_session *s, const struct state *state)
{
    struct json_out o = json_out_to(out);
    struct status st;

    status_of_session(&st, s->store, state, s->owner.epoch || s->head.holder_alive);
    out->len--; /* before the closing brace: one more member */
    buf_add_str(out, STR(",\"status\":"));
    json_out_begin(&o, '{');
    json_out_kstr(&o, STR("status"), str_from(tide_status_name(st.status)));
    json_out_kstr(&o, STR("outcome"), str_from(tide_outcome_name(st.outcome)));
    json_out_kstr(&o, STR("reason"), str_from(st.reason));
    json_out_kstr(&o, STR("why"), str_from(st.why));
    json_out_kbool(&o, STR("is_resumable"), st.is_resumable);
    json_out_kbool(&o, STR("needs_resume"), st.needs_resume);
    if (state->ledger.run.degraded)
        json_out_kstr(&o, STR("durability"), STR("degraded"));
    json_out_key(&o, STR("next"));
    json_out_begin(&o, '[');
    for (size_t i = 0; i < st.next_count; i++)
        action_write(&o, s->head.id, &st.next[i]);
    json_out_end(&o, ']');
    json_out_end(&o, '}');
    buf_add_char(out, '}');
}

enum tide_code tide_session_get_state(tide_session *s, int64_t seq, struct tide_text *ret_json, struct tide_err *err)
{
    AUTO(state_freep) struct state *own = NULL;
    const struct state *state;
    struct buf out = BUF_INIT(SIZE_MAX / 4);
    enum tide_code code;

    ERR_LOCAL(err);
    code = session_state(s, seq, &own, &state, err);
    if (code)
        return code;
    state_encode(&out, state, STATE_ALL);
    if (!own) /* a status is of now, not of the past */
        put_status(&out, s, state);
    ret_json->len = out.len;
    ret_json->ptr = buf_take(&out);
    return TIDE_OK;
}
