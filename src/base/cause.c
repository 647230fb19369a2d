/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cause.h"

#include <sodium.h>

void cause_put_request(struct json_out *o, const struct cause *c)
{
    if (!c->id[0])
        return;
    json_out_key(o, STR("request"));
    json_out_begin(o, '{');
    json_out_kstr(o, STR("id"), str_from(c->id));
    json_out_kstr_opt(o, STR("digest"), str_from(c->digest));
    json_out_end(o, '}');
}

void cause_put(struct json_out *o, const struct cause *c)
{
    json_out_kstr_opt(o, STR("by"), str_from(c->by));
    cause_put_request(o, c);
}

void cause_make_id(struct cause *c)
{
    unsigned char bytes[(CAUSE_ID_SIZE - 1) / 2];

    randombytes_buf(bytes, sizeof bytes);
    hex_encode(c->id, bytes, sizeof bytes);
}

bool cause_is_of(const struct cause *c, struct str event)
{
    AUTO(arena_done) struct arena arena = ARENA_INIT;
    struct json *v = NULL;

    return !json_parse(&arena, event, NULL, &v, NULL, NULL) &&
           str_eq(json_get_text(&arena, json_get(v, STR("request")), STR("id")), str_from(c->id));
}
