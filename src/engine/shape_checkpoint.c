/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/shapes.h"

#define AT(member) SHAPE_AT(struct tide_checkpoint, member)

const struct shape shape_checkpoint = {
    .name = "checkpoint",
    .help = "A point of a session's log that it can be resumed from or rolled back to.",
    .members =
        (const struct shape_member[]){
            {"checkpoint_id", SHAPE_TEXT, AT(id), 0, "its id"},
            {"type", SHAPE_TEXT, AT(type_word), 0, "what made it",
             .words = "turn node_start node_complete edge_transition loop_iteration safe_point user_checkpoint"},
            {"created_at", SHAPE_TIME, AT(ts_ms), 0, "when it was made"},
            {"current_node", SHAPE_TEXT, AT(node), SHAPE_NULLABLE, "the node of a graph at which it was made"},
            {"next_node", SHAPE_TEXT, AT(next_node), SHAPE_NULLABLE, "the node that comes next"},
            {"is_clean", SHAPE_BOOL, AT(is_clean), 0, "nothing failed or was retried before it"},
            {"can_resume_from", SHAPE_BOOL, AT(can_resume_from), 0, "nothing was unsettled at it"},
            {"description", SHAPE_TEXT, AT(description), SHAPE_NULLABLE, "what people see in lists"},
            {"seq", SHAPE_INT, AT(seq), 0, "its event"},
            {"turn", SHAPE_INT, AT(turn), 0, "turns of the conversation so far"},
            {"rolled_back", SHAPE_BOOL, AT(rolled_back), 0, "a rollback has undone it"},
            {.name = NULL},
        },
};
#undef AT

#define AT(member) SHAPE_AT(struct checkpoints_listed, member)

const struct shape shape_checkpoints = {
    .name = "checkpoints",
    .help = "The checkpoints of a session, oldest first.",
    .members =
        (const struct shape_member[]){
            {"session_id", SHAPE_TEXT, AT(session_id), SHAPE_ID, "the session"},
            {"checkpoints", SHAPE_STREAM, AT(checkpoints), 0, "those that were asked for", .of = &shape_checkpoint},
            {"latest_checkpoint_id", SHAPE_TEXT, AT(latest_checkpoint_id), SHAPE_NULLABLE, "the newest of all"},
            {"total_checkpoints", SHAPE_INT, AT(total), 0, "how many there are, without those that a rollback undid"},
            {.name = NULL},
        },
};
