/* SPDX-License-Identifier: Apache-2.0 */
#include "session/cause_sign.h"

#include "session/session.h"

size_t cause_act(const struct tide_new_event *events, size_t n)
{
    static const char *const begins[] = {"run.started", "run.resumed"}; /* whatever it ends or queues before */
    static const char *const on_the_way[] = {"tool.", "token.", "node.", "run.interrupted", "approval."};

    for (size_t i = 0; i < n; i++)
        if (strcmp(events[i].kind, begins[0]) == 0 || strcmp(events[i].kind, begins[1]) == 0)
            return i;
    for (size_t i = 0; i < n; i++) {
        bool acts = true;

        for (size_t k = 0; k < sizeof on_the_way / sizeof on_the_way[0]; k++)
            acts &= !str_starts(str_from(events[i].kind), str_from(on_the_way[k]));
        if (acts)
            return i;
    }
    return 0;
}

/* Who it was is known better now. */
static bool is_unnamed(struct str by)
{
    return str_eq(by, STR("local")) || str_eq(by, STR("token"));
}

struct tide_new_event cause_sign(struct arena *a, const struct cause *q, const struct tide_new_event *in, bool acts)
{
    struct str body = !in->body ? STR("{}") : in->body_len ? (struct str){in->body, in->body_len} : str_from(in->body);
    struct buf out = BUF_INIT(body.len + 512);
    struct json_out o = json_out_to(&out);
    struct tide_new_event signed_one = *in;
    struct json *v = NULL;
    bool named = false;

    if (json_parse(a, body, NULL, &v, NULL, NULL) || v->type != JSON_OBJECT)
        return *in; /* it is refused, and that is said where it is checked */
    json_out_begin(&o, '{');
    for (const struct json *m = v->first; m; m = m->next) {
        struct str key = json_key_text(a, m);
        bool is_by = str_eq(key, STR("by"));

        if (str_eq(key, STR("request")))
            continue;
        if (is_by && q->by[0] && is_unnamed(json_text(a, m)))
            json_out_kstr(&o, key, str_from(q->by));
        else
            json_out_kraw(&o, key, json_source(m));
        named |= is_by;
    }
    if (acts && !named)
        json_out_kstr_opt(&o, STR("by"), str_from(q->by));
    if (acts)
        cause_put_request(&o, q);
    json_out_end(&o, '}');
    signed_one.body_len = out.len;
    signed_one.body = arena_dup(a, buf_view(&out)).ptr;
    buf_done(&out);
    return signed_one;
}
