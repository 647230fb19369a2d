/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote_log.h"

#include "base/timefmt.h"

enum tide_code remote_log_page(struct remote *r, struct remote_log *log, const struct json **ret, struct tide_err *err)
{
    const struct json *page, *events;
    int64_t last;

    *ret = NULL;
    if (log->to && log->after >= log->to)
        return TIDE_OK;
    remote_begin(r, "GET", "sessions", log->session_id, "log");
    remote_param_int(r, "after", log->after);
    if (log->to)
        remote_param_int(r, "to", log->to);
    if (log->inherited)
        remote_param(r, "inherited", "true");
    if (remote_ask_page(r, REMOTE_SOON, &page, err))
        return err->code;
    events = json_get(page, STR("events"));
    if (!events || !events->first)
        return TIDE_OK;
    last = json_get_int(page, STR("last_seq"), 0);
    if (last <= log->after) /* it would be asked for the same page for ever */
        return tide_fail(err, TIDE_IO, "the server repeats a page of the log: after event %lld it sent %lld",
                         (long long)log->after, (long long)last);
    log->after = last;
    *ret = events;
    return TIDE_OK;
}

/* {"seq":…,"ts":…,"kind":…,fields…}: its body is what is left. */
static void take_event(struct arena *a, const struct json *v, const char *session_id, struct tide_event *ret)
{
    struct buf body = BUF_INIT(SIZE_MAX / 4);
    struct json_out o = json_out_to(&body);

    *ret = (struct tide_event){.seq = json_get_int(v, STR("seq"), 0),
                               .session_id = session_id,
                               .kind = arena_dup(a, json_get_text(a, v, STR("kind"))).ptr};
    (void)time_parse(json_get_text(a, v, STR("ts")), &ret->ts_ms);
    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next)
        if (!json_key_eq(m, STR("seq")) && !json_key_eq(m, STR("ts")) && !json_key_eq(m, STR("kind")))
            json_out_kraw(&o, json_key_text(a, m), json_source(m));
    json_out_end(&o, '}');
    ret->body_len = body.len;
    ret->body = arena_dup(a, buf_view(&body)).ptr;
    buf_done(&body);
}

enum tide_code remote_log_read(struct remote *r, const struct tide_session_info *info, tide_event_fn *fn, void *arg,
                               struct tide_err *err)
{
    AUTO(arena_done) struct arena a = ARENA_INIT;
    struct remote_log log = {.session_id = info->id, .after = info->first_seq > 0 ? info->first_seq - 1 : 0};
    const struct json *events;

    while (!remote_log_page(r, &log, &events, err) && events)
        for (const struct json *one = events->first; one; one = one->next) {
            struct tide_event ev;

            arena_reset(&a);
            take_event(&a, one, info->id, &ev);
            if (fn(arg, &ev))
                return TIDE_OK;
        }
    return err->code;
}
