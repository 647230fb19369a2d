/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run_list.h"
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct run_row, member)

const struct shape shape_run_row = {
    .name = "session_run",
    .help = "A run of a session.",
    .members =
        (const struct shape_member[]){
            {"run_id", SHAPE_TEXT, AT(run_id), 0, "its id"},
            {"resumed_from", SHAPE_TEXT, AT(resumed_from), SHAPE_NULLABLE, "the run that it continues"},
            {"status", SHAPE_TEXT, AT(status), 0, "what it does, or how it ended",
             .words = "running waiting interrupted completed failed cancelled"},
            {"reason", SHAPE_TEXT, AT(reason), SHAPE_NULLABLE, "a code: why, or what it waits for"},
            {"error", SHAPE_TEXT, AT(error), SHAPE_NULLABLE, "what it failed of"},
            {"first_seq", SHAPE_INT, AT(first_seq), 0, "its first event"},
            {"last_seq", SHAPE_INT, AT(last_seq), 0, "the event that ended it; 0: it has not ended"},
            {"started_at", SHAPE_TIME, AT(started_ms), 0, "when it began"},
            {"ended_at", SHAPE_TIME, AT(ended_ms), SHAPE_NULLABLE, "when it ended"},
            {.name = NULL},
        },
};
#undef AT

const struct shape shape_runs = {
    .name = "session_runs",
    .help = "The runs of a session, oldest first.",
    .members =
        (const struct shape_member[]){
            {"runs", SHAPE_ROWS, SHAPE_ROWS_AT(struct run_list, at, n), .help = "the newest that were asked for",
             .of = &shape_run_row},
            {.name = NULL},
        },
};
