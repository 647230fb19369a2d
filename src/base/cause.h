/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asked for a change, and by which request: written into the record that the request caused. So the record shows whether a request
 * that is repeated was carried out before, however its process ended: "by":…,"request":{"id":…,"digest":…}.
 */
#ifndef BASE_CAUSE_H
#define BASE_CAUSE_H

#include "base/json.h"

#define CAUSE_ID_SIZE 33

/* Each may be empty. */
struct cause {
    char by[256];
    char id[CAUSE_ID_SIZE], digest[CAUSE_ID_SIZE];
};

static inline bool cause_is_set(const struct cause *c)
{
    return c->by[0] || c->id[0];
}

/* As members of an object. */
void cause_put(struct json_out *o, const struct cause *c);
void cause_put_request(struct json_out *o, const struct cause *c); /* without `by` */

/* One of its own for a request that has none. */
void cause_make_id(struct cause *c);
/* Whether an event, JSON, names this request. */
bool cause_is_of(const struct cause *c, struct str event);

#endif
