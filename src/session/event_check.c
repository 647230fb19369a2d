/* SPDX-License-Identifier: Apache-2.0 */
/* The one way of an event into a log: its kind, its fields, its size; without known secrets, and marked if a
 * notification is to be sent. */
#include "session/notify.h"
#include "session/redact.h"
#include "session/session.h"

enum tide_code event_check(struct store *store, struct arena *a, const struct tide_new_event *in, bool internal,
                           struct event *ret, struct parsed *ret_parsed, struct tide_err *err)
{
    struct str name = str_from(in->kind), body = {in->body, in->body_len};
    const struct json_limits limits = {store->max_record_bytes, 0};
    const struct kind *kind;
    struct json *json;
    bool compact, asks;
    enum tide_code code;

    if (!body.ptr)
        body = STR("{}");
    else if (!body.len)
        body = str_from(in->body);
    if (!kind_is_valid(name))
        return tide_fail(err, TIDE_INVALID,
                         "'%.64s' is not an event kind: 1 to 64 lower-case letters, digits, '_' and '.'", name.ptr);
    if (body.len > store->max_record_bytes)
        return tide_fail(err, TIDE_TOO_BIG,
                         "%s: the event has %zu bytes, the limit is %zu (TIDEMARK_MAX_RECORD_BYTES raises it)",
                         in->kind, body.len, store->max_record_bytes);
    kind = kind_find(name);
    if (!kind && redact_refuse_name(store, "kind of event", in->kind, err))
        return err->code;
    redact_event(store, a, name, &body);
    if (kind && kind->flags & KIND_INTERNAL && !internal)
        return tide_fail(err, TIDE_INVALID, "%s is written by its own command, not by a plain append", in->kind);
    code = json_parse(a, body, &limits, &json, &compact, err);
    if (code)
        return tide_wrap(err, "%s: the data is not valid JSON", in->kind);
    code = kind_check(kind, name, json, err);
    if (!code && str_eq(name, STR("checkpoint")))
        code = checkpoint_check(a, json, err);
    if (code)
        return code;
    asks = notify_wants(store, name, json);
    if (!compact || asks) {
        struct buf out = BUF_INIT(body.len + 32);

        json_write(&out, json);
        if (asks)
            notify_mark(&out);
        body = arena_dup(a, buf_view(&out));
        buf_done(&out);
    }
    *ret = (struct event){.kind = name, .body = body, .ts_ms = env_now_ms(store->env)};
    if (ret_parsed && (!compact || asks)) /* what is folded is what is stored, to the byte */
        code = json_parse(a, body, &limits, &json, NULL, err);
    if (ret_parsed)
        *ret_parsed = (struct parsed){kind, json};
    return code;
}
