/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that the library hands out as text: their schemas alone. */
#include "engine/shapes.h"

const struct shape shape_log_event = {
    .name = "log_event",
    .help = "An event as it stands in the log; what its kind has besides follows (docs/FORMAT.md).",
    .open = true,
    .members =
        (const struct shape_member[]){
            {"pos", SHAPE_INT, .flags = SHAPE_OPTIONAL, .help = "with --all: its position in the store"},
            {"session_id", SHAPE_TEXT, .flags = SHAPE_OPTIONAL, .help = "with --all: the session"},
            {"seq", SHAPE_INT, .help = "its number in the session"},
            {"ts", SHAPE_TIME, .help = "when it was appended"},
            {"kind", SHAPE_TEXT, .help = "what happened"},
            {.name = NULL},
        },
};

SHAPE(state, "The fold of a session's log.", {"session_id", SHAPE_TEXT, .help = "the session"},
      {"seq", SHAPE_INT, .help = "as of this event"}, {"ts_ms", SHAPE_INT, .help = "when that was appended"},
      {"session", SHAPE_MAP, .help = "what it was made with and told since", .items = SHAPE_ANY},
      {"content", SHAPE_MAP, .help = "what the agent knows: a rollback cuts it, a fork inherits it",
       .items = SHAPE_ANY},
      {"ledger", SHAPE_MAP, .help = "what happened in the world: it stays", .items = SHAPE_ANY},
      {"status", SHAPE_MAP, .flags = SHAPE_OPTIONAL, .help = "as of now: where it stands", .items = SHAPE_ANY});

const struct shape shape_store_info = {
    .name = "store_info",
    .help = "A store as a whole; what its kind has besides follows.",
    .open = true,
    .members =
        (const struct shape_member[]){
            {"url", SHAPE_TEXT, .help = "where it is"},
            {"sessions", SHAPE_INT, .help = "how many sessions it has"},
            {"events", SHAPE_INT, .help = "how many events"},
            {"live_sessions", SHAPE_INT, .help = "sessions held by a process, or waiting"},
            {"sync", SHAPE_TEXT, .help = "how it is written to disk"},
            {"keyed", SHAPE_BOOL, .help = "its digests have a key"},
            {.name = NULL},
        },
};
