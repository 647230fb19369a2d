/* SPDX-License-Identifier: Apache-2.0 */
#include "session/usage_json.h"

#include <inttypes.h>
#include <stdio.h>

#define NANO 1000000000

struct tide_usage usage_of(const struct ledger *l)
{
    return (struct tide_usage){l->input_tokens, l->output_tokens, l->cached_tokens, l->calls, l->cost_nano};
}

void usage_put_cost(struct json_out *o, int64_t cost_nano)
{
    char cost[48];

    snprintf(cost, sizeof cost, "%" PRId64 ".%09" PRId64, cost_nano / NANO, cost_nano % NANO);
    json_out_raw(o, str_from(cost));
}

void usage_put(struct json_out *o, const struct tide_usage *u, unsigned parts)
{
    if (u->input_tokens || !(parts & USAGE_NONZERO))
        json_out_kint(o, STR("input_tokens"), u->input_tokens);
    if (u->output_tokens || !(parts & USAGE_NONZERO))
        json_out_kint(o, STR("output_tokens"), u->output_tokens);
    if (parts & USAGE_CACHED)
        json_out_kint(o, STR("cached_tokens"), u->cached_tokens);
    if (parts & USAGE_COST) {
        json_out_key(o, STR("cost"));
        usage_put_cost(o, u->cost_nano);
    }
}
