/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes in which sessions and what belongs to them are shown to programs: the same in every command and every other
 * face. Each names the struct that it is written from with shape_put().
 */
#ifndef ENGINE_SHAPES_H
#define ENGINE_SHAPES_H

#include "base/shape.h"
#include "tidemark.h"

extern const struct shape shape_usage;      /* struct tide_usage */
extern const struct shape shape_checkpoint; /* struct tide_checkpoint */
extern const struct shape shape_inspection; /* struct inspection */
extern const struct shape shape_timeline;   /* struct timeline */
extern const struct shape shape_event;      /* struct streamed_event */

#endif
