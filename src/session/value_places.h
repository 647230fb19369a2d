/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the log the values of the memory stand, so that a snapshot need not repeat them. */
#ifndef SESSION_VALUE_PLACES_H
#define SESSION_VALUE_PLACES_H

#include "session/state.h"

#define PLACE_SEPARATOR '\x1f' /* between frame and key */

struct value_place {
    int64_t seq;                /* of the memory.set */
    int64_t bytes, event_bytes; /* of the value; of that event's body */
    bool absent;                /* the state is being loaded, and has not read it yet */
};

void place_note(struct content *c, const struct fact *f, struct str frame, struct str key, size_t bytes);
void place_drop(struct content *c, struct str frame, struct str key);
void place_drop_frame(struct content *c, struct str frame);
void place_copy(struct content *c, struct str from, struct str to, struct str key);

/* For a snapshot: of each event, by its seq, the bytes that are still remembered of it. */
void places_weigh(const struct content *c, struct map *ret_weights);
/* The values of a frame as a JSON object; with weights those that are read from the log are null. */
void place_put_values(struct json_out *o, const struct content *c, struct str frame, const struct map *values,
                      const struct map *weights);
void places_encode(struct json_out *o, const struct content *c, const struct map *weights);
void places_decode(struct arena *a, struct content *c, const struct json *v);

/* Of a state that was read from a snapshot: an event to read, 0: there is none; and what it holds. False: not those values. */
int64_t places_next_absent(const struct content *c);
bool places_fill(struct content *c, const struct event *ev, struct arena *a);

#endif
