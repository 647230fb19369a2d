/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and cost as members of a JSON object: of events, checkpoints, agents and what faces show. */
#ifndef SESSION_USAGE_JSON_H
#define SESSION_USAGE_JSON_H

#include "base/json.h"
#include "session/state.h"

enum usage_parts {
    USAGE_CACHED = 1,  /* cached_tokens as well */
    USAGE_COST = 2,    /* cost as well */
    USAGE_NONZERO = 4, /* what is zero is left out */
};

struct tide_usage usage_of(const struct ledger *l);

/* input_tokens, output_tokens, and what `parts` says. */
void usage_put(struct json_out *o, const struct tide_usage *u, unsigned parts);
void usage_put_cost(struct json_out *o, int64_t cost_nano); /* the number alone */

#endif
