/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"
#include "session/usage_json.h"

static void put_cost(struct json_out *o, const void *data)
{
    usage_put_cost(o, ((const struct tide_usage *)data)->cost_nano);
}

/* "0.001200000": nanos behind the point, as put_cost() writes it. */
static bool take_cost(struct arena *a, const struct json *v, void *data)
{
    const char *point = v->type == JSON_NUMBER ? memchr(v->raw.ptr, '.', v->raw.len) : NULL;
    size_t whole = point ? (size_t)(point - v->raw.ptr) : 0;
    int64_t n = 0, nanos = 0;

    (void)a;
    if (!point || v->raw.len - whole - 1 != 9 || !str_to_int64((struct str){v->raw.ptr, whole}, &n) ||
        !str_to_int64((struct str){point + 1, 9}, &nanos) || n < 0 || n > INT64_MAX / 1000000000 - 1)
        return false;
    ((struct tide_usage *)data)->cost_nano = n * 1000000000 + nanos;
    return true;
}

#define AT(member) SHAPE_AT(struct tide_usage, member)

const struct shape shape_usage = {
    .name = "usage",
    .help = "What models were asked in a session, over its whole log: a rollback does not undo spending.",
    .members =
        (const struct shape_member[]){
            {"calls", SHAPE_INT, AT(calls), 0, "answers of models"},
            {"input_tokens", SHAPE_INT, AT(input_tokens), 0, "tokens that were sent"},
            {"output_tokens", SHAPE_INT, AT(output_tokens), 0, "tokens that were answered"},
            {"cached_tokens", SHAPE_INT, AT(cached_tokens), 0,
             "tokens that were sent and that the provider had cached"},
            {"cost", SHAPE_NUMBER, AT(cost_nano), 0, "by the configured prices; 0 without prices", .put = put_cost,
             .take = take_cost},
            {.name = NULL},
        },
};
