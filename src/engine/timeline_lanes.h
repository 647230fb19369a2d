/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of a log puts into a timeline with. */
#ifndef ENGINE_TIMELINE_LANES_H
#define ENGINE_TIMELINE_LANES_H

#include "engine/timeline.h"

/* Copies as much as fits, cut at a character, with "…" for what is missing. */
void tl_text_cut(char *out, size_t size, struct str s);
#define CUT(array, text) tl_text_cut(array, sizeof(array), text)

/* timeline_read.c: all of it, from outside. */
void tl_begin(struct timeline *t, const struct tide_session_info *info);
int tl_event_add(void *t, const struct tide_event *ev); /* non-zero: stopped */
void tl_end_all(struct timeline *t);

void tl_axis_add(struct timeline *t); /* the event that is folded */

struct tl_run *tl_run_add(struct timeline *t);
struct tl_run *tl_run_last(struct timeline *t); /* NULL: there is none */
struct tl_run *tl_run_now(struct timeline *t,
                          int64_t ts_ms); /* what happens before the first run has a lane of its own */
void tl_run_cut(struct timeline *t, struct tl_run *run, int64_t ts_ms); /* it is over: so is what was under way in it */
void tl_run_done(struct tl_run *run);

struct tl_item *tl_item_add(const struct timeline *t, struct tl_run *run, enum tl_type type, int64_t ts_ms);
void tl_item_remove(struct tl_run *run, struct tl_item *item);
void tl_item_end(const struct timeline *t, struct tl_item *item, enum tl_outcome outcome, int64_t ts_ms);
void tl_mark_add(const struct timeline *t, struct tl_run *run, enum tl_mark kind);
void tl_kept_add(struct tl_kept *k, const struct tl_item *item);

#endif
